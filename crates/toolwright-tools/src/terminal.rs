//! What a terminal prints, as plain text.

/// The longest title or link that is waited for, in bytes.
const LONGEST: usize = 64 << 10;
/// The longest control sequence, in bytes.
const LONGEST_CONTROL: usize = 256;

/// What begins with an escape character.
enum Sequence {
    /// So many bytes, and it is over.
    Whole(usize),
    /// An unterminated sequence: after this many bytes it is treated as text.
    Broken(usize),
    /// Its end has not been printed yet.
    Unfinished,
}

/// The text without escape sequences and control characters; tabs, newlines and carriage returns stay.
pub(crate) fn plain(text: &str) -> String {
    let (mut plain, rest) = split(text);
    if is_string(rest) {
        plain.extend(rest.chars().skip(2).filter(|c| is_text(*c)));
    }
    plain
}

/// The plain text, and a sequence at the end that is not finished.
pub(crate) fn split(text: &str) -> (String, &str) {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\u{1b}' => match sequence(rest) {
                Sequence::Whole(length) | Sequence::Broken(length) => length,
                Sequence::Unfinished => return (out, rest),
            },
            c => {
                out.extend(is_text(c).then_some(c));
                c.len_utf8()
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    (out, rest)
}

fn is_text(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || !c.is_control()
}

/// Whether a sequence is a title, a link or the like, which has text in it.
pub(crate) fn is_string(sequence: &str) -> bool {
    matches!(sequence.as_bytes().get(1), Some(b']' | b'P' | b'X' | b'^' | b'_'))
}

fn sequence(text: &str) -> Sequence {
    let mut chars = text.char_indices().skip(1);
    let Some((_, kind)) = chars.next() else { return Sequence::Unfinished };
    match kind {
        // A control sequence ends with a letter or one of `@[\]^_{|}~` and the backquote.
        '[' => {
            for (at, c) in chars {
                match c {
                    '\u{40}'..='\u{7e}' => return Sequence::Whole(at + 1),
                    '\u{20}'..='\u{3f}' if at < LONGEST_CONTROL => {}
                    _ => return Sequence::Broken(at),
                }
            }
            Sequence::Unfinished
        }
        // A title or a link ends with BEL, or ESC and a backslash. Without that, what follows it is not lost.
        _ if is_string(text) => {
            while let Some((at, c)) = chars.next() {
                match c {
                    '\u{7}' | '\u{18}' | '\u{1a}' => return Sequence::Whole(at + 1),
                    '\u{9c}' => return Sequence::Whole(at + 2),
                    '\u{1b}' => match chars.next() {
                        Some((at, '\\')) => return Sequence::Whole(at + 1),
                        Some(_) => return Sequence::Broken(2),
                        None => break,
                    },
                    '\n' => return Sequence::Broken(2),
                    _ => {}
                }
            }
            if text.len() > LONGEST { Sequence::Broken(2) } else { Sequence::Unfinished }
        }
        '(' | ')' | '*' | '+' | '#' | '%' | ' ' => match chars.next() {
            Some((at, c)) => Sequence::Whole(at + c.len_utf8()),
            None => Sequence::Unfinished,
        },
        c if c.is_control() => Sequence::Broken(1),
        c => Sequence::Whole(1 + c.len_utf8()),
    }
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

    #[test]
    fn a_sequence_without_an_end_hides_nothing() {
        for (given, wanted) in [
            ("\u{1b}]0;building...\nRESULT\n", "0;building...\nRESULT\n"),
            ("\u{1b}]0;a\u{1b}[31mred", "0;ared"),
            ("\u{1b}P\u{1b}]0;t\u{7}x", "x"),
            ("\u{1b}[31\nnext", "\nnext"),
            ("\u{1b}\nnext", "\nnext"),
            ("\u{1b}]0;no more", "0;no more"),
        ] {
            assert_eq!(plain(given), wanted, "{given:?}");
        }
        let long = format!("\u{1b}]{}", "x".repeat(LONGEST));
        assert_eq!(split(&long), ("x".repeat(LONGEST), ""));
    }

    #[test]
    fn a_sequence_that_is_cut_is_kept_for_later() {
        let text = "a\u{1b}[1;31mred\u{1b}[0m\u{1b}]0;é\u{1b}\\b\u{1b}(B";
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (now, later) = text.split_at(at);
            let (first, held) = split(now);
            let later = format!("{held}{later}");
            let (second, rest) = split(&later);
            assert_eq!((first + &second, rest), ("aredb".to_owned(), ""), "{at}");
        }
    }
}
