//! Cutting text to size without splitting characters.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!((head("aé", 2), tail("éa", 2)), ("a", "a"));
        assert_eq!((head("ab", 9), tail("ab", 9)), ("ab", "ab"));
        assert_eq!(clip("abc", 2), "ab…");
    }
}
