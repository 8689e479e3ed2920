//! How many requests a model gets a second.

use std::sync::Mutex;
use std::time::Duration;

use toolwright_util::lock;

use serde::Deserialize;
use tokio::time::Instant;

/// The most requests a second, and how many of them may come at once: a bucket that fills at that rate.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// How many requests a second on average; `0.5` is one in two seconds.
    pub requests_per_second: f64,
    /// How many may come at once after a pause.
    #[serde(default = "one")]
    pub max_bucket_size: f64,
    /// For files of llm-workers. Nobody looks now and then here: a request waits exactly as long as it must.
    #[serde(default, rename = "check_every_n_seconds")]
    _check_every: Option<f64>,
}

fn one() -> f64 {
    1.0
}

impl Pace {
    /// So many requests a second, one at a time.
    pub fn per_second(requests: f64) -> Self {
        Pace { requests_per_second: requests, max_bucket_size: 1.0, _check_every: None }
    }

    /// What is wrong with it, if anything is.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let rate = self.requests_per_second;
        if !(rate.is_finite() && rate >= 1e-5) {
            return Some("`requests_per_second` must be a number above 0");
        }
        let size = self.max_bucket_size;
        (!(size.is_finite() && size >= 1.0)).then_some("`max_bucket_size` must be at least 1")
    }
}

/// The bucket of one model.
#[derive(Debug)]
pub(crate) struct Bucket {
    pace: Pace,
    /// What is in it, and since when. Requests that wait have taken theirs already, so it may be less than
    /// nothing.
    level: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub(crate) fn new(pace: Pace) -> Self {
        Bucket { pace, level: Mutex::new((pace.max_bucket_size, Instant::now())) }
    }

    /// Waits until it is this request's turn. Requests have theirs in the order they come.
    pub(crate) async fn take(&self) {
        let time = self.wait(Instant::now());
        if !time.is_zero() {
            let turn = Turn(self);
            toolwright_core::wait(time).await;
            std::mem::forget(turn);
        }
    }

    fn wait(&self, now: Instant) -> Duration {
        let mut level = lock(&self.level);
        let grown = now.saturating_duration_since(level.1).as_secs_f64() * self.pace.requests_per_second;
        level.0 = (level.0 + grown).min(self.pace.max_bucket_size) - 1.0;
        level.1 = now;
        let seconds = (-level.0 / self.pace.requests_per_second).max(0.0);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// A request that waits. One that is given up leaves its place to others.
struct Turn<'a>(&'a Bucket);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.0.level).0 += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_that_is_given_up_leaves_its_place() {
        let bucket = Bucket::new(Pace::per_second(0.01));
        bucket.take().await;
        for _ in 0..3 {
            tokio::time::timeout(Duration::ZERO, bucket.take()).await.unwrap_err();
        }
        let next = bucket.wait(Instant::now()).as_secs();
        assert!((90..=100).contains(&next), "{next}");
    }

    #[test]
    fn a_bucket_lets_through_what_fills_it() {
        let bucket = Bucket::new(Pace { max_bucket_size: 2.0, ..Pace::per_second(4.0) });
        let start = Instant::now();
        let waits: Vec<_> = (0..4).map(|_| bucket.wait(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 250, 500]);
        // A long pause fills it, and no more than that.
        let later = start + Duration::from_secs(100);
        let waits: Vec<_> = (0..3).map(|_| bucket.wait(later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 250]);
    }

    #[tokio::test]
    async fn who_waits_for_his_turn_says_so() {
        let heard = std::sync::Arc::new(Mutex::new(Vec::new()));
        let ear = heard.clone();
        let bucket = Bucket::new(Pace::per_second(500.0));
        // Taken at a later time, so that nothing grows back, however slow this machine is.
        bucket.wait(Instant::now() + Duration::from_secs(3600));
        toolwright_core::with_idle_listener(move |time| ear.lock().unwrap().push(time), bucket.take()).await;
        assert_eq!(*heard.lock().unwrap(), [Duration::from_millis(2)]);
    }

    #[test]
    fn a_pace_that_never_comes_is_refused() {
        for pace in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Pace::per_second(pace).problem().is_some(), "{pace}");
        }
        assert!(Pace { max_bucket_size: 0.5, ..Pace::per_second(1.0) }.problem().is_some());
        assert_eq!(Pace::per_second(0.1).problem(), None);
    }
}
