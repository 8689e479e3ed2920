//! A text as someone else would read it: with escapes undone, or with lines joined. What is found in such a
//! view is taken out of the text itself.

use std::ops::Range;

/// A text made of another, and where its parts come from.
pub(super) struct View {
    pub(super) text: String,
    parts: Vec<ViewPart>,
}

/// A part of a view: text that was copied, or one character in place of an escape. Small, because there may
/// be many.
struct ViewPart {
    /// Where it begins here.
    here: u32,
    /// Where what it stands for begins and ends in the original.
    there: (u32, u32),
    copied: bool,
}

/// Lines shorter than this are not joined with the next: nothing is wrapped to so few characters.
const SHORTEST_LINE: usize = 8;

/// What stands at a place of the original: so many bytes, read as this text.
type ReadSpan = (usize, Option<char>);

impl View {
    /// The text with percent signs undone, as in addresses and forms; `None` when there are none.
    pub(super) fn of_percent(text: &str) -> Option<View> {
        View::build(text, &['%'], |rest| {
            let mut bytes = Vec::new();
            // The bytes of one character.
            for escape in
                rest.as_bytes().chunks_exact(3).take(4).take_while(|escape| escape.starts_with(b"%"))
            {
                let digits = std::str::from_utf8(escape.get(1..)?).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                if let Ok(read) = std::str::from_utf8(&bytes) {
                    return Some((bytes.len() * 3, read.chars().next()));
                }
            }
            None
        })
    }

    /// The text with backslashes undone, as in JSON and most programming languages; `None` when there are
    /// none.
    pub(super) fn of_backslashes(text: &str) -> Option<View> {
        View::build(text, &['\\'], |rest| {
            let read = match rest.chars().nth(1)? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let unit = |from: usize| u16::from_str_radix(rest.get(from..from + 4)?, 16).ok();
                    let first = unit(2)?;
                    let second = rest.get(6..8).filter(|next| *next == "\\u").and_then(|_| unit(8));
                    let pair = [first, second.unwrap_or_default()];
                    let read = char::decode_utf16(pair).next()?.ok()?;
                    return Some((if read.len_utf16() == 2 { 12 } else { 6 }, Some(read)));
                }
                other if other.is_ascii_punctuation() => other,
                _ => return None,
            };
            Some((2, Some(read)))
        })
    }

    /// The text with its lines joined, and what they are indented by left out; `None` when it has one line.
    pub(super) fn of_lines(text: &str) -> Option<View> {
        let mut line = 0;
        View::build(text, &['\r', '\n'], |rest| {
            let at = text.len() - rest.len();
            let blank = rest.bytes().take_while(|byte| b" \t\r\n".contains(byte)).count();
            // The second half of a line's end, and of several ends in a row, begins no line.
            let length = at.checked_sub(line)?;
            line = at + blank;
            (length >= SHORTEST_LINE).then_some((blank, None))
        })
    }

    /// A view in which what `read` makes of the places with one of `marks` stands for them.
    fn build(text: &str, marks: &[char], mut read: impl FnMut(&str) -> Option<ReadSpan>) -> Option<View> {
        if u32::try_from(text.len()).is_err() {
            return None;
        }
        let mut view = View { text: String::new(), parts: Vec::new() };
        let mut done = 0;
        for (at, _) in text.match_indices(marks) {
            if at < done {
                continue;
            }
            let Some((length, character)) = text.get(at..).and_then(&mut read) else { continue };
            view.copy(text, done..at);
            view.part(at..at + length, false);
            view.text.extend(character);
            done = at + length;
        }
        if done == 0 {
            return None;
        }
        view.copy(text, done..text.len());
        Some(view)
    }

    fn copy(&mut self, text: &str, range: Range<usize>) {
        if !range.is_empty() {
            self.part(range.clone(), true);
            self.text.push_str(text.get(range).unwrap_or_default());
        }
    }

    fn part(&mut self, there: Range<usize>, copied: bool) {
        // Every place fits: `build` has seen to it, and a view is never longer than its original.
        let small = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let (here, there) = (small(self.text.len()), (small(there.start), small(there.end)));
        self.parts.push(ViewPart { here, there, copied });
    }

    /// The range in the original of a range here.
    pub(super) fn range(&self, found: &Range<usize>) -> Range<usize> {
        // The last part that begins there; parts without text before it stand for nothing.
        let part = |place: usize| {
            let after = self.parts.partition_point(|part| part.here as usize <= place);
            after.checked_sub(1).and_then(|part| self.parts.get(part))
        };
        let place = |part: &ViewPart, place: usize| part.there.0 as usize + (place - part.here as usize);
        let start = part(found.start).map_or(found.start, |part| match part.copied {
            true => place(part, found.start),
            false => part.there.0 as usize,
        });
        let end = part(found.end.saturating_sub(1)).map_or(found.end, |part| match part.copied {
            true => place(part, found.end),
            false => part.there.1 as usize,
        });
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The original's text of what is found in a view.
    fn found<'a>(view: Option<View>, text: &'a str, wanted: &str) -> Option<&'a str> {
        let view = view?;
        let start = view.text.find(wanted)?;
        text.get(view.range(&(start..start + wanted.len())))
    }

    #[test]
    fn what_is_found_is_taken_where_it_came_from() {
        let text = "x%20s3cr3t%2fvalu%C3%A9%zz%";
        assert_eq!(found(View::of_percent(text), text, "s3cr3t/valué"), Some("s3cr3t%2fvalu%C3%A9"));
        let text = r#"{\"k\": \"a\/b\nc\u00e9\ud83d\ude42\""#;
        assert_eq!(found(View::of_backslashes(text), text, "a/b\ncé🙂"), Some(r"a\/b\nc\u00e9\ud83d\ude42"));
        let text = "line one\r\n  line two\n\nthree\nfour";
        assert_eq!(found(View::of_lines(text), text, "eline twoth"), Some("e\r\n  line two\n\nth"));
        assert_eq!(found(View::of_lines(text), text, "line two"), Some("line two"));
        assert_eq!(found(View::of_lines(text), text, "threefour"), None);
        assert!(View::of_lines("one").is_none() && View::of_percent("5 %").is_none());
        assert!(View::of_backslashes(r"C:\dir \ud800 \u12").is_none());
    }
}
