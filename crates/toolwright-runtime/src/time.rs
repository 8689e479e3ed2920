//! Times as text: RFC 3339 in UTC with microseconds, written and read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};
use toolwright_core::time::Civil;

pub(crate) fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*time))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text)
        .ok_or_else(|| D::Error::custom(format!("`{text}` is not a time like 2026-01-31T12:00:00.000000Z")))
}

/// Durations as whole microseconds.
pub(crate) mod micros {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}

/// The date, in UTC, of a moment given as the time since 1970: `2026-01-31`.
pub fn utc_date(since_1970: Duration) -> String {
    let Civil { year, month, day, .. } = Civil::of(i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Reads a time as events have it: `2026-01-31T12:00:00.000000Z`.
pub fn parse_time(text: &str) -> Option<SystemTime> {
    parse(text)
}

/// A time as events have it.
pub fn format_time(time: SystemTime) -> String {
    format(time)
}

pub(crate) fn format(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:06}Z", Civil::of_system(time), since.subsec_micros())
}

fn parse(text: &str) -> Option<SystemTime> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let sane = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..61).contains(&second)
        && fraction.len() <= 9;
    let nanos = format!("{fraction:0<9}").parse::<u64>().ok()?;
    if !sane {
        return None;
    }
    let seconds = u64::try_from(Civil { year, month, day, hour, minute, second }.seconds()).ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_that_no_clock_reaches_is_still_a_date() {
        assert_eq!(utc_date(Duration::from_secs(951_827_696)), "2000-02-29");
        assert_eq!(utc_date(Duration::MAX), "292277026596-12-04");
    }

    #[test]
    fn times_are_written_as_people_write_them_and_read_back() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_827_696, "2000-02-29T12:34:56.000000Z"),
            (1_794_700_800, "2026-11-15T00:00:00.000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(format(time), text);
            assert_eq!(parse(text), Some(time));
        }
        for bad in ["", "2026-13-01T00:00:00Z", "2026-01-01 00:00:00Z", "x-y-zT1:2:3Z", "2026-01-01T00:00:00"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
