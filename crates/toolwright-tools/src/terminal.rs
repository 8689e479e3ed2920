//! What a terminal prints, as plain text.

/// The text without escape sequences and control characters; tabs, newlines and carriage returns stay.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                // A control sequence ends with a letter or one of `@[\]^_{|}~` and the backquote.
                Some('[') => while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
                // A title or a link ends with BEL, or ESC and a backslash.
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    while let Some(c) = chars.next() {
                        if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
                    chars.next();
                }
                _ => {}
            },
            '\t' | '\n' | '\r' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_titles_and_bells_are_taken_out() {
        for (given, wanted) in [
            ("\u{1b}[1;31mred\u{1b}[0m\n", "red\n"),
            ("\u{1b}]0;title\u{7}$ ", "$ "),
            ("\u{1b}]8;;http://x\u{1b}\\link", "link"),
            ("a\u{8}\u{7}b\tc\r\n", "ab\tc\r\n"),
            ("\u{1b}(Bx\u{1b}=y", "xy"),
            ("cut \u{1b}[3", "cut "),
            ("é ✓", "é ✓"),
        ] {
            assert_eq!(plain(given), wanted, "{given:?}");
        }
    }
}
