//! Small languages inside attributes: durations, rates, names, and the nearest of several words.

use std::time::Duration;

/// `"30s"`, `"500ms"`, `"1.5m"`, `"2h"`, `"1d"`. `None` for zero and for text that is not a duration.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at_checked(at)?;
    let unit = match unit.trim() {
        "ms" => 0.001,
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return None,
    };
    number.parse::<f64>().ok().and_then(|number| positive(number * unit))
}

/// A number of seconds as it is written in the source.
pub(crate) fn seconds(digits: &str) -> Option<Duration> {
    digits.parse::<f64>().ok().and_then(positive)
}

fn positive(seconds: f64) -> Option<Duration> {
    let duration = Duration::try_from_secs_f64(seconds).ok()?;
    (!duration.is_zero()).then_some(duration)
}

/// `"10/60s"` or `"10/s"`. `None` for zero and for text that is not a rate.
pub(crate) fn rate(text: &str) -> Option<(usize, Duration)> {
    let (calls, period) = text.split_once('/')?;
    let calls = calls.trim().parse().ok().filter(|&calls| calls > 0)?;
    let period = period.trim();
    // A unit alone means one of it.
    let counted = !period.starts_with(|c: char| c.is_ascii_alphabetic());
    let period = if counted { duration(period) } else { duration(&format!("1{period}")) };
    Some((calls, period?))
}

/// What models and MCP clients accept as the name of a tool.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    (1..=128).contains(&name.len()) && name.chars().all(fine)
}

/// What every vendor accepts as the name of a parameter.
pub(crate) fn is_parameter_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(fine)
}

/// The word most like `name`, when one is like enough to be meant.
pub(crate) fn nearest<'a>(name: &str, words: &[&'a str]) -> Option<&'a str> {
    let scored = words.iter().filter_map(|word| {
        let distance = strsim::osa_distance(name, word);
        let longest = name.len().max(word.len());
        let contained = name.len() > 2 && (word.contains(name) || name.contains(word));
        (contained || distance <= longest.div_ceil(3)).then_some((distance, *word))
    });
    scored.min_by_key(|(distance, _)| *distance).map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_are_not_zero() {
        let check = |text, millis: Option<u64>| {
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
        };
        check("30s", Some(30_000));
        check("500ms", Some(500));
        check("1.5 m", Some(90_000));
        check("2h", Some(7_200_000));
        check("0.1s", Some(100));
        for wrong in ["", "30", "s", "0s", "-1s", "30 seconds", "1.2.3s", "1e9h", "99999999999999999999999h"]
        {
            check(wrong, None);
        }
        assert_eq!(seconds("2.5"), Some(Duration::from_millis(2500)));
        assert_eq!(seconds("0"), None);
    }

    #[test]
    fn rates_are_calls_per_period() {
        assert_eq!(rate("10/60s"), Some((10, Duration::from_secs(60))));
        assert_eq!(rate("2 / s"), Some((2, Duration::from_secs(1))));
        assert_eq!(rate("100/500ms"), Some((100, Duration::from_millis(500))));
        for wrong in ["10", "0/s", "10/0s", "x/s", "10/60", "-1/s", "10/", "/s", "10/.0s"] {
            assert_eq!(rate(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let words = ["timeout", "max_output", "read_only", "name"];
        assert_eq!(nearest("time_out", &words), Some("timeout"));
        assert_eq!(nearest("readonly", &words), Some("read_only"));
        assert_eq!(nearest("output", &words), Some("max_output"));
        assert_eq!(nearest("frobnicate", &words), None);
    }
}
