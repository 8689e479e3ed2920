//! Retries with exponential back-off: which failures are retried, and after which pause.

use std::hash::{BuildHasher as _, Hasher as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use toolwright_core::{ModelError, ModelErrorKind};

/// How often and how long a request is tried again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// The most further tries.
    pub retries: u32,
    /// The pause before the first of them; each later one is twice as long.
    pub first: Duration,
    /// The longest pause, unless the server asks for more.
    pub longest: Duration,
    /// The most time spent waiting, over all tries. A server that asks for more gets no further try.
    pub budget: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            retries: 3,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(8),
            budget: Duration::from_secs(120),
        }
    }
}

impl RetryPolicy {
    /// Never tries again.
    pub const NEVER: RetryPolicy =
        RetryPolicy { retries: 0, first: Duration::ZERO, longest: Duration::ZERO, budget: Duration::ZERO };

    /// Begins the tries of one request.
    pub(crate) fn start(&self) -> Retries<'_> {
        Retries { policy: self, tries: 0, waited: Duration::ZERO }
    }

    /// The pause before try number `tries + 1`, or `None` to give up. `after` is the wait that the server
    /// requested; without it, the pause has jitter, so that clients that failed together do not retry
    /// together.
    pub(crate) fn pause(&self, tries: u32, after: Option<f64>, waited: Duration) -> Option<Duration> {
        if tries >= self.retries {
            return None;
        }
        let asked = after.filter(|seconds| *seconds > 0.0).map(Duration::try_from_secs_f64);
        let pause = match asked {
            Some(asked) => asked.unwrap_or(Duration::MAX),
            None => {
                let full = self.first.saturating_mul(2_u32.saturating_pow(tries)).min(self.longest);
                full.mul_f64(0.75 + 0.25 * random())
            }
        };
        (waited.saturating_add(pause) <= self.budget).then_some(pause)
    }
}

/// The failure of one try.
#[derive(Debug)]
pub(crate) enum AttemptFailure {
    /// Trying again cannot help.
    Final(ModelError),
    /// Trying again may help, after the seconds that the server asked for.
    Retryable(ModelError, Option<f64>),
}

impl AttemptFailure {
    pub(crate) fn into_error(self) -> ModelError {
        match self {
            AttemptFailure::Final(error) | AttemptFailure::Retryable(error, _) => error,
        }
    }
}

impl From<ModelError> for AttemptFailure {
    fn from(error: ModelError) -> Self {
        match error.kind() {
            ModelErrorKind::Unavailable | ModelErrorKind::RateLimit => AttemptFailure::Retryable(error, None),
            _ => AttemptFailure::Final(error),
        }
    }
}

/// The tries of one request so far: the one place that decides about the next.
#[derive(Debug)]
pub(crate) struct Retries<'p> {
    policy: &'p RetryPolicy,
    tries: u32,
    waited: Duration,
}

impl Retries<'_> {
    /// Waits until the next try may begin; the error to report when there is to be none.
    pub(crate) async fn wait(&mut self, failure: AttemptFailure) -> Result<(), ModelError> {
        let (error, after) = match failure {
            AttemptFailure::Final(error) => return Err(error),
            AttemptFailure::Retryable(error, after) => (error, after),
        };
        let Some(pause) = self.policy.pause(self.tries, after, self.waited) else {
            return Err(match after {
                Some(after) if after >= 1.0 => with_wait(&error, after),
                _ if self.tries > 0 => with_note(&error, &format!("tried {} times", self.tries + 1)),
                _ => error,
            });
        };
        toolwright_core::wait(pause).await;
        self.tries += 1;
        self.waited = self.waited.saturating_add(pause);
        Ok(())
    }
}

/// The error of a server whose requested wait exceeds the retry budget.
pub(crate) fn with_wait(failed: &ModelError, seconds: f64) -> ModelError {
    with_note(failed, &format!("try again in {seconds:.0} s"))
}

fn with_note(failed: &ModelError, note: &str) -> ModelError {
    ModelError::new(failed.kind(), format!("{failed} ({note})"))
}

/// A number from 0 to 1. The standard library's hash keys are random, and this needs no better.
fn random() -> f64 {
    let bits = std::hash::RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

/// Whether a failed reply may be retried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryAdvice {
    /// Whether trying again may help.
    pub retry: bool,
    /// The seconds the server asks to wait, which may be nonsense.
    pub after: Option<f64>,
}

/// Reads a failed reply: its status, and the headers `x-should-retry`, `retry-after-ms` and `retry-after`. A
/// server that asks to wait more than `longest_after` seconds does not mean this client.
pub fn verdict(
    status: u16,
    header: impl Fn(&str) -> Option<String>,
    longest_after: Option<f64>,
    now: SystemTime,
) -> RetryAdvice {
    let number = |name: &str| {
        let text = header(name)?;
        let number = text.trim().parse::<f64>().ok()?;
        // A number that is too large to be one asks for more patience than there is; `inf` is only nonsense.
        let endless = number == f64::INFINITY && text.contains(|c: char| c.is_ascii_digit());
        Some(match longest_after.filter(|_| endless) {
            Some(longest) => (longest + 1.0) * if name.ends_with("-ms") { 1000.0 } else { 1.0 },
            None => number,
        })
    };
    let date = || {
        let at = http_date(header("retry-after")?.trim())?;
        Some(at - now.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
    };
    let after = number("retry-after-ms").map(|ms| ms / 1000.0);
    let after = after.or_else(|| number("retry-after")).or_else(date).filter(|after| after.is_finite());
    let retry = match header("x-should-retry").as_deref() {
        Some("true") => true,
        Some("false") => false,
        _ => matches!(status, 408 | 409 | 429 | 500..),
    };
    let too_long = matches!((after, longest_after), (Some(after), Some(longest)) if after > longest);
    RetryAdvice { retry: retry && !too_long, after }
}

/// The seconds to wait that Google's errors name in their body.
pub(crate) fn asked_in(body: &[u8]) -> Option<f64> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(&body);
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    delay.strip_suffix('s')?.parse::<f64>().ok().filter(|seconds| seconds.is_finite())
}

/// The seconds since 1970 of a date in one of the three forms of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT`,
/// `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`. The weekday may be missing, the zone may
/// be a number (`+0100`), and without one it is GMT: servers write all of that.
fn http_date(text: &str) -> Option<f64> {
    let (mut day, mut month, mut year, mut clock, mut zone) = (None, None, None, None, 0);
    for (at, word) in text.split([' ', ',', '\t']).filter(|word| !word.is_empty()).enumerate() {
        let mut date = word.splitn(3, '-');
        if let (Some(first), Some(second), Some(third)) = (date.next(), date.next(), date.next()) {
            (day, month, year) = (Some(number(first)?), Some(month_of(second)?), Some(number(third)?));
        } else if word.contains(':') {
            clock = Some(seconds_of_day(word)?);
        } else if let Some(offset) = word.strip_prefix('+') {
            zone = zone_of(offset)?;
        } else if let Some(offset) = word.strip_prefix('-') {
            zone = -zone_of(offset)?;
        } else if word.starts_with(|first: char| first.is_ascii_digit()) {
            let slot = if day.is_none() { &mut day } else { &mut year };
            *slot = Some(number(word)?);
        } else if let Some(found) = month_of(word) {
            month = Some(found);
        } else if at > 0 && !matches!(word, "GMT" | "UTC" | "UT" | "Z") {
            return None;
        }
    }
    let (day, month, clock) = (day.filter(|day| (1..=31).contains(day))?, month?, clock?);
    let year = match year? {
        year @ 0..69 => year + 2000,
        year @ 69..100 => year + 1900,
        year => year,
    };
    if !(1970..10_000).contains(&year) {
        return None;
    }
    // Days since 1970 in the calendar whose year starts in March, so that the leap day comes last.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    Some((days * 86_400 + clock - zone) as f64)
}

/// A number of at most four digits.
fn number(text: &str) -> Option<i64> {
    let digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

fn month_of(name: &str) -> Option<i64> {
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    months.iter().position(|month| month.eq_ignore_ascii_case(name)).map(|at| at as i64 + 1)
}

fn seconds_of_day(clock: &str) -> Option<i64> {
    let parts: Vec<i64> = clock.split(':').map(number).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match parts.as_slice() {
        [hours, minutes] => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, *seconds),
        _ => return None,
    };
    (*hours < 24 && *minutes < 60 && seconds <= 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

/// The seconds of an offset such as `0130`.
fn zone_of(offset: &str) -> Option<i64> {
    let offset = number(offset).filter(|_| offset.len() == 4)?;
    Some(offset / 100 * 3600 + offset % 100 * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_nonsense_is_not() {
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:10 GMT"), Some(10.0));
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777.0));
        assert_eq!(http_date("Tue, 29 Feb 2028 00:00:00 GMT"), Some(1_835_395_200.0));
        for (same, time) in [
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777.0),
            ("Sun Nov  6 08:49:37 1994", 784_111_777.0),
            ("Sun, 06 Nov 1994 08:49:37", 784_111_777.0),
            ("06 Nov 1994 08:49:37 GMT", 784_111_777.0),
            ("6 Nov 1994 09:49:37 +0100", 784_111_777.0),
            ("Sun, 06 Nov 1994 08:19:37 -0030", 784_111_777.0),
            ("Sun, 06 Nov 1994 08:49 GMT", 784_111_740.0),
        ] {
            assert_eq!(http_date(same), Some(time), "{same}");
        }
        for bad in [
            "",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "x, y z",
            "soon",
            "2001-01-01T00:00:00Z",
            "Sun, 06 Nov 1994 99999999999999999:49:37 GMT",
            "Sun, 99 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 +9999999999999999",
            "Sun, 06 Nov 99999 08:49:37 GMT",
        ] {
            assert_eq!(http_date(bad), None, "{bad}");
        }
        let header = |name: &str| (name == "retry-after").then(|| "Thu, 01 Jan 1970 00:01:00 GMT".to_owned());
        let now = UNIX_EPOCH + Duration::from_secs(20);
        assert_eq!(verdict(429, header, None, now), RetryAdvice { retry: true, after: Some(40.0) });
    }

    #[test]
    fn the_wait_that_google_asks_for_is_in_the_body() {
        let error = |delay: &str| {
            let detail =
                serde_json::json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
            serde_json::json!({"error": {"code": 429, "details": [{"@type": "x"}, detail]}})
        };
        assert_eq!(asked_in(error("6s").to_string().as_bytes()), Some(6.0));
        assert_eq!(asked_in(Value::from(vec![error("1.5s")]).to_string().as_bytes()), Some(1.5));
        for bad in [error("soon").to_string(), error("infs").to_string(), "{}".to_owned(), "no".to_owned()] {
            assert_eq!(asked_in(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn pauses_double_stay_in_their_bounds_and_end_with_the_budget() {
        let policy = RetryPolicy { retries: 9, ..RetryPolicy::default() };
        for tries in 0..9 {
            let full = 0.5 * f64::from(1_u32 << tries);
            let pause = policy.pause(tries, None, Duration::ZERO).unwrap().as_secs_f64();
            assert!((full.min(8.0) * 0.75..=full.min(8.0)).contains(&pause), "{tries}: {pause}");
        }
        assert_eq!(policy.pause(9, None, Duration::ZERO), None);
        assert_eq!(policy.pause(0, Some(3.0), Duration::ZERO), Some(Duration::from_secs(3)));
        assert_eq!(policy.pause(0, Some(121.0), Duration::ZERO), None);
        assert_eq!(policy.pause(0, Some(100.0), Duration::from_secs(30)), None);
        assert_eq!(policy.pause(0, Some(1e300), Duration::ZERO), None);
        assert!(policy.pause(0, Some(-1.0), Duration::ZERO).unwrap() < Duration::from_secs(1));
        assert_eq!(RetryPolicy::NEVER.pause(0, None, Duration::ZERO), None);
    }
}
