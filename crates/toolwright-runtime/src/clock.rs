//! The ledger of idle and working time.
//!
//! A [`Clock`] measures one scope: a run, an agent's run inside it, or one call. Time in which the scope only
//! waits, for a person, a rate limit or the next attempt, is booked with an [`IdleGuard`] in its clock and in
//! those around it. Waits that overlap count once, and what is not idle time is working time.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;
use toolwright_core::with_idle_listener;
use toolwright_util::lock;

/// Longer than anything lasts, and still a time that can be added to an [`Instant`].
pub(crate) const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The time of one scope. Cloning shares it.
#[derive(Debug, Clone)]
pub(crate) struct Clock(Arc<ClockScope>);

#[derive(Debug)]
struct ClockScope {
    started: Instant,
    /// Time that passed before this process took the run up.
    earlier: Duration,
    idle: Mutex<IdleTime>,
    outer: Option<Clock>,
}

impl Clock {
    /// A clock that starts now, inside `outer`.
    pub(crate) fn start(outer: Option<Clock>) -> Self {
        Self::resume(Duration::ZERO, Duration::ZERO, outer)
    }

    /// A clock that continues after `elapsed`, of which `idle` was idle time.
    pub(crate) fn resume(elapsed: Duration, idle: Duration, outer: Option<Clock>) -> Self {
        let idle = Mutex::new(IdleTime { booked: idle, ..IdleTime::default() });
        Clock(Arc::new(ClockScope { started: Instant::now(), earlier: elapsed, idle, outer }))
    }

    /// Time by the clock on the wall.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.started.elapsed() + self.0.earlier
    }

    /// The part of it that was spent waiting.
    pub(crate) fn idle(&self) -> Duration {
        self.0.idle().total(Instant::now())
    }

    /// The rest.
    pub(crate) fn working(&self) -> Duration {
        self.elapsed().saturating_sub(self.idle())
    }

    /// The time from now until the guard is dropped is idle.
    pub(crate) fn pause(&self) -> IdleGuard {
        let guard = self.idle_guard();
        guard.book(None);
        guard
    }

    /// A guard that books what is [announced](IdleGuard::announce), and nothing before.
    pub(crate) fn idle_guard(&self) -> IdleGuard {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        IdleGuard { clock: self.clone(), id: COUNT.fetch_add(1, Ordering::Relaxed) }
    }

    /// Does `work`; what it [reports](toolwright_core::wait) as idle is booked, until the work is over or
    /// dropped.
    pub(crate) fn follow<F: Future>(&self, work: F) -> impl Future<Output = F::Output> {
        let guard = self.idle_guard();
        with_idle_listener(move |time| guard.announce(time), work)
    }

    fn each(&self, mut look: impl FnMut(&mut IdleTime)) {
        let around = std::iter::successors(Some(self), |clock| clock.0.outer.as_ref());
        around.for_each(|clock| look(&mut clock.0.idle()));
    }
}

impl ClockScope {
    fn idle(&self) -> MutexGuard<'_, IdleTime> {
        lock(&self.idle)
    }
}

/// Idle time that is being booked. It ends when this is dropped, or when the announced time is over.
#[derive(Debug)]
pub(crate) struct IdleGuard {
    clock: Clock,
    id: u64,
}

impl IdleGuard {
    /// The time from now on is idle, for so long at most.
    pub(crate) fn announce(&self, time: Duration) {
        self.book(Some(time));
    }

    fn book(&self, time: Option<Duration>) {
        let now = Instant::now();
        let until = time.map(|time| now + time.min(FOREVER));
        self.clock.each(|idle| idle.begin(self.id, now, until));
    }
}

impl Drop for IdleGuard {
    fn drop(&mut self) {
        let now = Instant::now();
        self.clock.each(|idle| idle.end(self.id, now));
    }
}

/// The idle time of one scope: the union of the times that its guards book.
#[derive(Debug, Default)]
struct IdleTime {
    /// What is over.
    booked: Duration,
    /// Since when at least one guard books.
    since: Option<Instant>,
    /// The guards that book, and until when at most.
    open: BTreeMap<u64, Option<Instant>>,
}

impl IdleTime {
    fn begin(&mut self, id: u64, now: Instant, until: Option<Instant>) {
        self.settle(now);
        self.since.get_or_insert(now);
        // A shorter wait beside a longer one of the same guard ends nothing early.
        let end = self.open.entry(id).or_insert(until);
        *end = end.zip(until).map(|(end, until)| end.max(until));
    }

    fn end(&mut self, id: u64, now: Instant) {
        self.settle(now);
        if self.open.remove(&id).is_some() && self.open.is_empty() {
            self.booked = self.total(now);
            self.since = None;
        }
    }

    /// Books what ended by itself.
    fn settle(&mut self, now: Instant) {
        let booked = self.total(now);
        self.open.retain(|_, until| until.is_none_or(|until| until > now));
        if self.open.is_empty() {
            (self.booked, self.since) = (booked, None);
        }
    }

    fn total(&self, now: Instant) -> Duration {
        let last = self.open.values().map(|until| until.unwrap_or(now).min(now)).max().unwrap_or(now);
        self.booked + self.since.map_or(Duration::ZERO, |since| last.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn announced(clock: &Clock, seconds: u64) -> IdleGuard {
        let guard = clock.idle_guard();
        guard.announce(Duration::from_secs(seconds));
        guard
    }

    #[tokio::test(start_paused = true)]
    async fn waits_at_the_same_time_count_once() {
        let clock = Clock::start(None);
        let (one, two) = (clock.pause(), clock.pause());
        pass(3).await;
        drop(one);
        pass(1).await;
        assert_eq!(clock.idle().as_secs(), 4);
        drop(two);
        pass(10).await;
        assert_eq!(clock.idle().as_secs(), 4);
        // Announced waits beside each other, and beside an open question.
        let guards = [5, 6].map(|seconds| announced(&clock, seconds));
        let asking = clock.pause();
        pass(2).await;
        drop(asking);
        pass(10).await;
        assert_eq!(clock.idle().as_secs(), 10);
        let later = announced(&clock, 1);
        pass(5).await;
        assert_eq!(clock.idle().as_secs(), 11, "the time between two waits is working time");
        drop((guards, later));
        assert_eq!((clock.idle().as_secs(), clock.working().as_secs()), (11, 20));
    }

    #[tokio::test(start_paused = true)]
    async fn one_guard_books_several_waits() {
        let clock = Clock::start(None);
        let guard = announced(&clock, 5);
        guard.announce(Duration::from_secs(2));
        pass(10).await;
        assert_eq!(clock.idle().as_secs(), 5, "the longest of those that overlap");
        guard.announce(Duration::from_secs(3));
        pass(1).await;
        drop(guard);
        pass(10).await;
        assert_eq!(clock.idle().as_secs(), 6, "a wait that is given up is booked as far as it went");
    }

    #[tokio::test(start_paused = true)]
    async fn an_inner_wait_is_one_of_the_clocks_around_it_and_not_of_their_neighbours() {
        let run = Clock::start(None);
        let (call, beside) = (Clock::start(Some(run.clone())), Clock::start(Some(run.clone())));
        let nested = Clock::start(Some(call.clone()));
        let (asking, other) = (nested.pause(), beside.pause());
        pass(2).await;
        drop(asking);
        pass(1).await;
        drop(other);
        let idle = [&run, &call, &nested, &beside].map(|clock| clock.idle().as_secs());
        assert_eq!(idle, [3, 2, 2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn reported_waits_are_booked_until_the_work_is_dropped() {
        let clock = Clock::start(None);
        clock.follow(toolwright_core::wait(Duration::from_secs(4))).await;
        pass(1).await;
        let unfinished = clock.follow(toolwright_core::wait(Duration::from_secs(3600)));
        assert!(tokio::time::timeout(Duration::from_secs(2), unfinished).await.is_err());
        pass(10).await;
        assert_eq!(clock.idle().as_secs(), 6);
    }
}
