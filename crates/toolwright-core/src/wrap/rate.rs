//! A sliding-window rate limit: at most so many calls start in any period, in the order they asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use toolwright_util::lock;

use super::around;
use crate::definition::ToolDef;
use crate::dispatch::CallNote;
use crate::tool::Tool;

/// Longer than any call waits, and short enough for each clock.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// A rate limit. Clones share it, so several tools can be put under one.
///
/// ```
/// use std::time::Duration;
/// use toolwright_core::RateLimit;
///
/// let limit = RateLimit::new(10, Duration::from_secs(60));
/// assert_eq!(limit.calls(), 10);
/// ```
#[derive(Debug, Clone)]
pub struct RateLimit {
    calls: usize,
    period: Duration,
    /// When calls were, or will be, let through: in order, one entry per call of the last period and per
    /// waiting call.
    admitted: Arc<Mutex<VecDeque<Instant>>>,
}

impl RateLimit {
    /// At most `calls` calls (at least one) in any `period`.
    pub fn new(calls: usize, period: Duration) -> Self {
        RateLimit { calls: calls.max(1), period, admitted: Arc::default() }
    }

    /// How many calls a period takes.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Waits for a turn; says how long that was.
    pub async fn acquire(&self) -> Duration {
        self.acquire_telling(|_| {}).await
    }

    async fn acquire_telling(&self, tell: impl FnOnce(Duration)) -> Duration {
        let now = Instant::now();
        let turn = self.reserve(now);
        let wait = turn.saturating_duration_since(now);
        if !wait.is_zero() {
            tell(wait);
            let reservation = Reservation { limit: self, turn, taken: false };
            tokio::time::sleep_until(turn).await;
            reservation.take();
        }
        wait
    }

    /// Books the next free moment. Bookings are in order, so each is at least a period after the one `calls`
    /// before it.
    fn reserve(&self, now: Instant) -> Instant {
        let mut admitted = lock(&self.admitted);
        while admitted.front().is_some_and(|&first| self.after(first) <= now) {
            admitted.pop_front();
        }
        let free = match admitted.len().checked_sub(self.calls).and_then(|index| admitted.get(index)) {
            Some(&blocking) => now.max(self.after(blocking)),
            None => now,
        };
        let turn = admitted.back().map_or(free, |&last| last.max(free));
        admitted.push_back(turn);
        turn
    }

    /// One period later; when no clock gets that far, a moment that no call lives to see.
    fn after(&self, turn: Instant) -> Instant {
        turn.checked_add(self.period).unwrap_or(turn + NEVER)
    }
}

/// A booked turn that has not come yet; given back when the call is cancelled while waiting.
struct Reservation<'a> {
    limit: &'a RateLimit,
    turn: Instant,
    taken: bool,
}

impl Reservation<'_> {
    fn take(mut self) {
        self.taken = true;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.taken {
            let mut admitted = lock(&self.limit.admitted);
            if let Some(index) = admitted.iter().rposition(|&turn| turn == self.turn) {
                admitted.remove(index);
            }
        }
    }
}

pub(super) fn wrap(tool: impl Tool + 'static, limit: RateLimit) -> ToolDef {
    around(tool, move |tool, context, arguments| {
        let limit = limit.clone();
        Box::pin(async move {
            limit.acquire_telling(|wait| context.note(CallNote::RateLimited { wait })).await;
            tool.call(context, arguments).await
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_period_that_never_ends_lets_its_calls_through_and_no_more() {
        let limit = RateLimit::new(2, Duration::MAX);
        for _ in 0..2 {
            assert_eq!(limit.acquire().await, Duration::ZERO);
        }
        let year = Duration::from_secs(365 * 24 * 3600);
        assert!(tokio::time::timeout(year, limit.acquire()).await.is_err());
    }

    async fn admissions(concurrent: bool) -> Vec<u128> {
        let limit = RateLimit::new(2, Duration::from_millis(500));
        let start = Instant::now();
        if !concurrent {
            let mut times = Vec::new();
            for _ in 0..7 {
                limit.acquire().await;
                times.push(start.elapsed().as_millis());
            }
            return times;
        }
        let tasks: Vec<_> = (0..7)
            .map(|_| {
                let limit = limit.clone();
                tokio::spawn(async move {
                    limit.acquire().await;
                    start.elapsed().as_millis()
                })
            })
            .collect();
        let mut times = Vec::new();
        for task in tasks {
            times.push(task.await.unwrap());
        }
        times.sort_unstable();
        times
    }

    #[tokio::test(start_paused = true)]
    async fn seven_calls_under_two_per_half_second_take_their_turns() {
        let want = [0, 0, 500, 500, 1000, 1000, 1500];
        assert_eq!(admissions(false).await, want);
        assert_eq!(admissions(true).await, want);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_wait_gives_its_turn_back() {
        let limit = RateLimit::new(1, Duration::from_secs(10));
        limit.acquire().await;
        let waiting = tokio::time::timeout(Duration::from_secs(1), limit.acquire()).await;
        assert!(waiting.is_err());
        let start = Instant::now();
        limit.acquire().await;
        assert_eq!(start.elapsed().as_secs(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn no_window_ever_holds_more_than_the_limit() {
        let limit = RateLimit::new(3, Duration::from_millis(100));
        let mut times = Vec::new();
        for step in 0..200_u64 {
            tokio::time::advance(Duration::from_millis(step * 7 % 53)).await;
            limit.acquire().await;
            times.push(Instant::now());
        }
        for window in times.windows(4) {
            assert!(window[3] - window[0] >= Duration::from_millis(100));
        }
    }
}
