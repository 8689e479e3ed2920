//! The calendar, in UTC.

/// A moment as calendars and clocks show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// The year; those before the year 1 are zero and less.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
}

/// Days from 1 March of the year 0 to 1970-01-01. Years begin in March here, so that the leap day is the last
/// one.
const EPOCH: i64 = 719_468;
/// Days in 400 years.
const ERA: i64 = 146_097;

impl Civil {
    /// The moment so many seconds after the beginning of 1970.
    ///
    /// ```
    /// let moment = toolwright_core::time::Civil::of(951_827_696);
    /// assert_eq!((moment.year, moment.month, moment.day), (2000, 2, 29));
    /// assert_eq!((moment.hour, moment.minute, moment.second), (12, 34, 56));
    /// ```
    pub fn of(seconds: i64) -> Civil {
        let (days, clock) = (seconds.div_euclid(86_400) + EPOCH, seconds.rem_euclid(86_400));
        let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
        let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
        Civil { year: era * 400 + year, month, day, hour, minute, second }
    }

    /// The moment of a clock of the system; those before 1970 count as its beginning.
    pub fn of_system(time: std::time::SystemTime) -> Civil {
        let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Civil::of(i64::try_from(since.as_secs()).unwrap_or(i64::MAX / 2))
    }

    /// Seconds since the beginning of 1970. The fields are taken as they are; years beyond a few million are
    /// not asked for.
    pub fn seconds(self) -> i64 {
        let (year, month) =
            if self.month > 2 { (self.year, self.month - 3) } else { (self.year - 1, self.month + 9) };
        let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_year = (153 * month + 2) / 5 + self.day - 1;
        let days = era * ERA + year * 365 + year / 4 - year / 100 + day_of_year - EPOCH;
        days * 86_400 + self.hour * 3600 + self.minute * 60 + self.second
    }
}

/// `2026-01-31T12:00:00`, without a zone.
impl std::fmt::Display for Civil {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Civil { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_a_calendar_library() {
        for step in -40_000_i64..40_000 {
            let seconds = step * 1_234_567;
            let moment = Civil::of(seconds);
            let zoned = jiff::Timestamp::from_second(seconds).unwrap().to_zoned(jiff::tz::TimeZone::UTC);
            assert_eq!(moment.to_string(), zoned.strftime("%Y-%m-%dT%H:%M:%S").to_string());
            assert_eq!(moment.seconds(), seconds);
        }
    }
}
