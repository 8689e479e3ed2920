//! What a column holds, found in one pass: its type, how many values are missing or distinct, and measures.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

/// Up to so many different values are counted one by one.
const MOST_DISTINCT: usize = 100_000;

/// Quantiles are those of so many values; of more, an even sample is kept.
const SAMPLE: usize = 20_000;

/// How many examples are kept.
const EXAMPLES: usize = 3;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnType {
    Integer,
    Real,
    Date,
    Boolean,
    Text,
    /// No values at all.
    Empty,
}

impl ColumnType {
    pub(super) fn name(self) -> &'static str {
        match self {
            ColumnType::Integer => "integer",
            ColumnType::Real => "number",
            ColumnType::Date => "date",
            ColumnType::Boolean => "boolean",
            ColumnType::Text => "text",
            ColumnType::Empty => "empty",
        }
    }
}

/// A value that is a whole number as SQL writes it: `007` is a text.
pub(super) fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()));
    is_plain.then(|| text.parse().ok()).flatten()
}

/// A value that is a number.
pub(super) fn number(text: &str) -> Option<f64> {
    let first = text.bytes().next()?;
    let digits = text.trim_start_matches('-');
    let padded = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    let plain = (first.is_ascii_digit() || first == b'-' || first == b'.')
        && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E'));
    (plain && !padded).then(|| text.parse::<f64>().ok()).flatten().filter(|number| number.is_finite())
}

/// `2024-05-01`, with a time after it or not.
fn is_date(text: &str) -> bool {
    let part = |range: std::ops::Range<usize>| {
        text.get(range)
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|d| d.parse::<u32>().ok())
    };
    let dashes = text.as_bytes().get(4) == Some(&b'-') && text.as_bytes().get(7) == Some(&b'-');
    let rest = text.as_bytes().get(10);
    dashes
        && part(0..4).is_some()
        && part(5..7).is_some_and(|month| (1..=12).contains(&month))
        && part(8..10).is_some_and(|day| (1..=31).contains(&day))
        && rest.is_none_or(|b| matches!(b, b' ' | b'T'))
}

/// What is known of a column so far.
pub(super) struct ColumnProfile {
    pub(super) count: u64,
    pub(super) nulls: u64,
    integers: u64,
    numbers: u64,
    dates: u64,
    booleans: u64,
    seen: HashSet<u64>,
    many: bool,
    pub(super) least: Option<f64>,
    pub(super) most: Option<f64>,
    least_text: Option<String>,
    most_text: Option<String>,
    mean: f64,
    spread: f64,
    sample: Vec<f64>,
    stride: u64,
    pub(super) examples: Vec<String>,
}

impl Default for ColumnProfile {
    fn default() -> Self {
        ColumnProfile {
            count: 0,
            nulls: 0,
            integers: 0,
            numbers: 0,
            dates: 0,
            booleans: 0,
            seen: HashSet::new(),
            many: false,
            least: None,
            most: None,
            least_text: None,
            most_text: None,
            mean: 0.0,
            spread: 0.0,
            sample: Vec::new(),
            stride: 1,
            examples: Vec::new(),
        }
    }
}

impl ColumnProfile {
    pub(super) fn add(&mut self, cell: Option<&str>) {
        let Some(text) = cell else {
            self.nulls += 1;
            return;
        };
        self.count += 1;
        self.integers += u64::from(integer(text).is_some());
        if let Some(number) = number(text) {
            self.add_number(number);
        } else {
            self.dates += u64::from(is_date(text));
            self.booleans += u64::from(["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)));
        }
        if self.least_text.as_deref().is_none_or(|least| text < least) {
            self.least_text = Some(text.to_owned());
        }
        if self.most_text.as_deref().is_none_or(|most| text > most) {
            self.most_text = Some(text.to_owned());
        }
        if !self.many {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            let is_new = self.seen.insert(hasher.finish());
            if is_new && self.examples.len() < EXAMPLES {
                self.examples.push(text.to_owned());
            }
            if self.seen.len() > MOST_DISTINCT {
                self.many = true;
                self.seen = HashSet::new();
            }
        }
    }

    /// Counts a value for the type alone.
    pub(super) fn add_type(&mut self, text: &str) {
        self.count += 1;
        self.integers += u64::from(integer(text).is_some());
        self.numbers += u64::from(number(text).is_some());
    }

    fn add_number(&mut self, number: f64) {
        self.numbers += 1;
        self.least = Some(self.least.map_or(number, |least| least.min(number)));
        self.most = Some(self.most.map_or(number, |most| most.max(number)));
        // Welford's method: no sum of squares that loses its digits.
        let delta = number - self.mean;
        self.mean += delta / self.numbers as f64;
        self.spread += delta * (number - self.mean);
        if self.numbers.is_multiple_of(self.stride) {
            self.sample.push(number);
            if self.sample.len() >= SAMPLE {
                let mut keep = false;
                self.sample.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.stride *= 2;
            }
        }
    }

    pub(super) fn column_type(&self) -> ColumnType {
        match self.count {
            0 => ColumnType::Empty,
            count if self.integers == count => ColumnType::Integer,
            count if self.numbers == count => ColumnType::Real,
            count if self.dates == count => ColumnType::Date,
            count if self.booleans == count => ColumnType::Boolean,
            _ => ColumnType::Text,
        }
    }

    /// How many different values there are; `None` when there are more than are counted.
    pub(super) fn distinct(&self) -> Option<usize> {
        (!self.many).then_some(self.seen.len())
    }

    pub(super) fn is_numeric(&self) -> bool {
        matches!(self.column_type(), ColumnType::Integer | ColumnType::Real)
    }

    /// Mean and standard deviation of a sample.
    pub(super) fn measures(&self) -> Option<(f64, Option<f64>)> {
        self.is_numeric().then(|| {
            let deviation = (self.numbers > 1).then(|| (self.spread / (self.numbers - 1) as f64).sqrt());
            (self.mean, deviation)
        })
    }

    /// A quantile, and whether it is one of a sample.
    pub(super) fn quantiles(&self) -> Option<[f64; 3]> {
        if !self.is_numeric() {
            return None;
        }
        let mut sorted = self.sample.clone();
        sorted.sort_by(f64::total_cmp);
        Some([0.25, 0.5, 0.75].map(|share| quantile(&sorted, share).unwrap_or_default()))
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.stride > 1
    }

    /// The least and the largest value, as texts.
    pub(super) fn ends(&self) -> (String, String) {
        match (self.is_numeric(), self.least, self.most) {
            (true, Some(least), Some(most)) => (shown(least), shown(most)),
            _ => (self.least_text.clone().unwrap_or_default(), self.most_text.clone().unwrap_or_default()),
        }
    }
}

/// A quantile of sorted numbers, between two of them where it falls there.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let low = *sorted.get(place.floor() as usize)?;
    let high = *sorted.get(place.ceil() as usize)?;
    Some(low + (high - low) * (place - place.floor()))
}

/// A number with at most six digits after the point.
pub(super) fn shown(number: f64) -> String {
    if number == number.trunc() && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    let text = format!("{number:.6}");
    if number.abs() >= 1e-4 && number.abs() < 1e15 {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{number:e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cells: &[&str]) -> ColumnProfile {
        let mut profile = ColumnProfile::default();
        for cell in cells {
            profile.add(Some(*cell).filter(|cell| !cell.is_empty()));
        }
        profile
    }

    #[test]
    fn a_type_holds_for_all_values() {
        for (cells, wanted) in [
            (&["1", "-2", "0"][..], ColumnType::Integer),
            (&["1", "2.5", "1e3", ""], ColumnType::Real),
            (&["007", "12"], ColumnType::Text),
            (&["1", "x"], ColumnType::Text),
            (&["2024-01-31", "2024-02-01 10:00"], ColumnType::Date),
            (&["2024-13-31"], ColumnType::Text),
            (&["true", "False"], ColumnType::Boolean),
            (&["", ""], ColumnType::Empty),
            (&["nan", "inf", "infinity"], ColumnType::Text),
            (&["99999999999999999999"], ColumnType::Real),
        ] {
            assert_eq!(of(cells).column_type(), wanted, "{cells:?}");
        }
    }

    /// The numbers are those of Python: `statistics.stdev` and `quantiles(n=4, method="inclusive")`.
    #[test]
    fn measures_are_those_of_python() {
        let profile = of(&["2", "4", "4", "4", "5", "5", "7", "9", ""]);
        let (mean, deviation) = profile.measures().unwrap();
        assert_eq!((mean, shown(deviation.unwrap())), (5.0, "2.13809".to_owned()));
        assert_eq!(profile.quantiles().unwrap(), [4.0, 4.5, 5.5]);
        assert_eq!((profile.count, profile.nulls, profile.distinct()), (8, 1, Some(5)));
        assert_eq!(profile.ends(), ("2".to_owned(), "9".to_owned()));
        assert_eq!(profile.examples, ["2", "4", "5"]);
    }

    #[test]
    fn many_values_are_sampled_evenly_and_not_kept() {
        let mut profile = ColumnProfile::default();
        for number in 0..300_000 {
            profile.add(Some(&number.to_string()));
        }
        assert_eq!(profile.distinct(), None);
        assert!(profile.sample.len() <= SAMPLE && profile.is_sampled());
        let [low, middle, high] = profile.quantiles().unwrap();
        for (got, wanted) in [(low, 75_000.0), (middle, 150_000.0), (high, 225_000.0)] {
            assert!((got - wanted).abs() < 300.0, "{got} {wanted}");
        }
        assert_eq!(profile.measures().unwrap().0, 149_999.5);
    }
}
