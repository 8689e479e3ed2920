//! Cutting text to size without splitting characters, showing what cannot be seen, numbers and money in
//! words.

/// The longest start of `text` that is at most `bytes` long.
pub fn head(text: &str, bytes: usize) -> &str {
    let end = text.floor_char_boundary(bytes);
    text.get(..end).unwrap_or(text)
}

/// The longest end of `text` that is at most `bytes` long.
pub fn tail(text: &str, bytes: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    text.get(start..).unwrap_or(text)
}

/// The start of `text`, with a mark when something was left out.
pub fn clip(text: &str, bytes: usize) -> String {
    if text.len() <= bytes { text.to_owned() } else { format!("{}…", head(text, bytes)) }
}

/// The text with everything that cannot be seen, or that changes the direction of what follows, written as an
/// escape.
///
/// ```
/// assert_eq!(toolwright_core::text::visible("add\u{200b} \u{202e}x"), "add\\u{200b} \\u{202e}x");
/// ```
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Control, zero-width, bidirectional, filler, tag and private-use characters, and selectors of variants.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

/// A number with a comma after every third digit: `1,234`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Money: `$0.0123 USD`. Small sums have more decimals; a currency without a sign has its code on both sides.
pub fn money(amount: f64, currency: &str) -> String {
    let decimals = match amount {
        much if much >= 0.01 => 4,
        some if some >= 0.001 => 5,
        _ => 6,
    };
    let sign = match currency {
        "USD" => "$".to_owned(),
        "EUR" => "€".to_owned(),
        "GBP" => "£".to_owned(),
        "JPY" => "¥".to_owned(),
        other => format!("{other} "),
    };
    format!("{sign}{amount:.decimals$} {currency}")
}

/// `name` with `ending` behind it, unless it has it already.
pub fn with_ending(name: &str, ending: &str) -> String {
    if name.ends_with(ending) { name.to_owned() } else { format!("{name}{ending}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!((head("aé", 2), tail("éa", 2)), ("a", "a"));
        assert_eq!((head("ab", 9), tail("ab", 9)), ("ab", "ab"));
        assert_eq!(clip("abc", 2), "ab…");
    }

    #[test]
    fn numbers_and_money_are_written_for_people() {
        let counts = [0, 999, 1000, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(money(0.0549, "USD"), "$0.0549 USD");
        assert_eq!(money(0.0042, "EUR"), "€0.00420 EUR");
        assert_eq!(money(0.00042, "CHF"), "CHF 0.000420 CHF");
        assert_eq!((with_ending("a", ".md"), with_ending("a.md", ".md")), ("a.md".into(), "a.md".into()));
    }
}
