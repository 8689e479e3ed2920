//! Texts that would be read back as something else when written bare: YAML 1.1's words and numbers.

/// Whether a bare text would be read as a truth value, null, a number, a date or a merge key.
pub(super) fn reads_otherwise(text: &str) -> bool {
    // A pattern's end also stands before a last line break.
    let text = text.strip_suffix('\n').unwrap_or(text);
    const WORDS: [&str; 26] = [
        "yes", "Yes", "YES", "no", "No", "NO", "true", "True", "TRUE", "false", "False", "FALSE", "on", "On",
        "ON", "off", "Off", "OFF", "null", "Null", "NULL", "~", "", "<<", "=", ".nan",
    ];
    WORDS.contains(&text) || is_integer(text) || is_float(text) || is_time(text)
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

/// The rest after a run of characters, which may be empty.
fn skip(text: &str, part: impl Fn(char) -> bool) -> &str {
    text.trim_start_matches(part)
}

fn digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn grouped(c: char) -> bool {
    c.is_ascii_digit() || c == '_'
}

/// `:30:59`: the rest after at least one part of a number to the base of sixty.
fn sixties(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(after) = rest.strip_prefix(':') {
        let end = skip(after, digit);
        let part = after.len() - end.len();
        let fine = part == 1 || part == 2 && after.starts_with(|c| ('0'..='5').contains(&c));
        if !fine {
            return None;
        }
        rest = end;
    }
    (rest.len() < text.len()).then_some(rest)
}

fn is_integer(text: &str) -> bool {
    let text = unsigned(text);
    let all = |rest: &str, part: fn(char) -> bool| !rest.is_empty() && rest.chars().all(part);
    if let Some(rest) = text.strip_prefix("0b") {
        return all(rest, |c| matches!(c, '0' | '1' | '_'));
    }
    if let Some(rest) = text.strip_prefix("0x") {
        return all(rest, |c| c.is_ascii_hexdigit() || c == '_');
    }
    if let Some(rest) = text.strip_prefix('0') {
        return rest.is_empty() || all(rest, |c| matches!(c, '0'..='7' | '_'));
    }
    if !text.starts_with(digit) {
        return false;
    }
    let rest = skip(text, grouped);
    rest.is_empty() || sixties(rest).is_some_and(str::is_empty)
}

fn is_float(text: &str) -> bool {
    if let Some(word) = text.strip_prefix('.')
        && (matches!(word, "NaN" | "NAN") || word.starts_with(digit) && is_exponent(skip(word, grouped)))
    {
        return true;
    }
    let text = unsigned(text);
    if matches!(text, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    if !text.starts_with(digit) {
        return false;
    }
    let rest = skip(text, grouped);
    match rest.strip_prefix('.') {
        Some(fraction) => is_exponent(skip(fraction, grouped)),
        None => sixties(rest)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|fraction| skip(fraction, grouped).is_empty()),
    }
}

/// Nothing, or `e+10`; the sign is needed.
fn is_exponent(text: &str) -> bool {
    let Some(exponent) = text.strip_prefix(['e', 'E']) else { return text.is_empty() };
    let digits = exponent.strip_prefix(['-', '+']);
    digits.is_some_and(|digits| !digits.is_empty() && digits.chars().all(digit))
}

/// `2001-12-14`, and longer forms with a time and an offset.
fn is_time(text: &str) -> bool {
    time(text).is_some_and(str::is_empty)
}

fn time(text: &str) -> Option<&str> {
    let (after_year, _) = digits(text, 4, 4)?;
    let (after_month, month) = digits(after_year.strip_prefix('-')?, 1, 2)?;
    let (rest, day) = digits(after_month.strip_prefix('-')?, 1, 2)?;
    if rest.is_empty() {
        return (month == 2 && day == 2).then_some(rest);
    }
    let clock = rest.strip_prefix(['T', 't']).unwrap_or_else(|| skip(rest, blank));
    if clock.len() == rest.len() {
        return None;
    }
    let (rest, _) = digits(clock, 1, 2)?;
    let (rest, _) = digits(rest.strip_prefix(':')?, 2, 2)?;
    let (rest, _) = digits(rest.strip_prefix(':')?, 2, 2)?;
    let rest = rest.strip_prefix('.').map_or(rest, |fraction| skip(fraction, digit));
    if rest.is_empty() {
        return Some(rest);
    }
    let offset = skip(rest, blank);
    if let Some(rest) = offset.strip_prefix('Z') {
        return Some(rest);
    }
    let (rest, _) = digits(offset.strip_prefix(['-', '+'])?, 1, 2)?;
    match rest.strip_prefix(':') {
        Some(minutes) => digits(minutes, 2, 2).map(|(rest, _)| rest),
        None => Some(rest),
    }
}

fn blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// The rest after so many digits, and how many there were.
fn digits(text: &str, least: usize, most: usize) -> Option<(&str, usize)> {
    let found = text.chars().take(most).take_while(|c| digit(*c)).count();
    (found >= least).then(|| (text.get(found..).unwrap_or_default(), found))
}

#[cfg(test)]
mod tests {
    use super::reads_otherwise;

    #[test]
    fn words_and_numbers_of_yaml_are_known() {
        for text in [
            "yes",
            "NULL",
            "~",
            "",
            "<<",
            "=",
            "0",
            "-12",
            "+1_000",
            "0b1_0",
            "0o7".replace('o', "").as_str(),
            "0xFf",
            "1:30",
            "1.",
            "1_0.5e+3",
            ".5",
            "-.inf",
            ".nan",
            "1:30.5",
            "2001-12-14",
            "2001-1-1 1:02:03.4 +01:30",
            "2001-12-14t21:59:43.10-05:00",
            "2001-12-14 21:59:43Z",
        ] {
            assert!(reads_otherwise(text), "{text}");
        }
        for text in [
            "yEs",
            "nil",
            "1e5",
            "1.5e5",
            "08",
            "0o7",
            "1:60",
            "-.5",
            "+.nan",
            "2001-1-1",
            "1 2",
            "-",
            ".",
            "1:",
            "12a",
            "2001-12-14T",
            "\u{661}",
        ] {
            assert!(!reads_otherwise(text), "{text}");
        }
    }
}
