//! Numbers that JSON can write and 64 bits cannot hold. Reading such a number rounds it, which is right for a
//! measured value and wrong for an identifier, so it is found before, or refused where an integer is wanted.

use super::fit::decimal;

/// The first integer in a JSON text that is not the same number any more once it is read: one that neither 64
/// bits nor a double hold exactly.
///
/// ```
/// use toolwright_core::schema::lossy_integer;
///
/// assert_eq!(lossy_integer(r#"{"id": 123456789012345678901234}"#), Some("123456789012345678901234"));
/// assert_eq!(lossy_integer(r#"{"id": "123456789012345678901234", "n": [18446744073709551615, 6.02e23]}"#), None);
/// ```
pub fn lossy_integer(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = rest.get(start..)?;
        if let Some(text) = rest.strip_prefix('"') {
            rest = after_text(text)?;
            continue;
        }
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        // Shorter ones fit, whatever they are.
        let is_long = number.len() > 18 && !number.contains(['.', 'e', 'E']);
        if is_long
            && number.parse::<i64>().is_err()
            && number.parse::<u64>().is_err()
            && decimal(number).is_none()
        {
            return Some(number);
        }
        rest = after;
    }
    None
}

/// What follows the text that these characters begin inside.
fn after_text(text: &str) -> Option<&str> {
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                characters.next();
            }
            '"' => return text.get(at + 1..),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integers_that_change_are_found() {
        for kept in [
            "{}",
            "[9223372036854775807, -9223372036854775808, 18446744073709551615]",
            "[1e300, 0.12345678901234567890123, 100000000000000000000000]",
            r#"{"123456789012345678901234": "\\"}"#,
            r#""\" 123456789012345678901234""#,
            "\"12345678901234567890123",
        ] {
            assert_eq!(lossy_integer(kept), None, "{kept}");
        }
        for (text, found) in [
            ("18446744073709551617", "18446744073709551617"),
            ("[-9223372036854775809]", "-9223372036854775809"),
            (r#"{"a\"b": [1, {"c":123456789012345678901234}]}"#, "123456789012345678901234"),
        ] {
            assert_eq!(lossy_integer(text), Some(found), "{text}");
        }
    }
}
