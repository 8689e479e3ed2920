//! Text as lines and as something to change in one place, byte for byte elsewhere.
//!
//! Lines are what lies between newlines, so a text that ends in one has an empty last line. A file whose
//! every line ends in CR LF keeps them: text that comes with bare newlines is fitted to the file, never the
//! file to the text.

use std::collections::HashMap;
use std::ops::Range;

use toolwright_core::{ErrorKind, MAX_READ_FILE, ToolError, text::clip};

/// The most lines shown around a change.
const AROUND: usize = 4;
/// The most bytes of a file that one view shows.
const MOST_SHOWN: usize = 16_000;
/// The most places that are named when a text is not unique.
const MOST_PLACES: usize = 20;
/// The longest text in which tabs are taken for the spaces they look like; that takes up to 40 times as much
/// memory.
const MOST_EXPANDED: usize = 8 << 20;

/// A text after a change, and the lines (from 0) that are worth showing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    pub(crate) text: String,
    pub(crate) shown: Range<usize>,
}

impl Edited {
    /// The lines around the change, with their numbers.
    pub(crate) fn snippet(&self) -> String {
        let lines = self.text.split('\n').enumerate().skip(self.shown.start);
        numbered(lines.take(self.shown.len()))
    }
}

/// Lines with their numbers, counted from 1. The carriage return of a line ending is not shown.
fn numbered<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> String {
    lines
        .map(|(index, line)| format!("{:6}\t{}\n", index + 1, line.strip_suffix('\r').unwrap_or(line)))
        .collect()
}

/// A whole text, or a range of it, with line numbers. `range` is the first and the last line; -1 is the end.
pub(crate) fn view(text: &str, range: Option<&[i64]>) -> Result<String, ToolError> {
    let total = text.split('\n').count();
    let (first, last) = match range {
        None | Some([]) => (1, total),
        Some([first, last]) => lines_of(*first, *last, total)?,
        Some(other) => {
            let message = format!(
                "`view_range` has {} numbers; it takes two, the first and the last line",
                other.len()
            );
            return Err(ToolError::new(message));
        }
    };
    let mut shown = String::new();
    let mut left = MOST_SHOWN;
    for (index, line) in text.split('\n').enumerate().take(last).skip(first - 1) {
        if line.len() >= left {
            shown.push_str(&numbered(std::iter::once((index, toolwright_core::text::head(line, left)))));
            let cut = index + 1;
            if cut < last || line.len() > left {
                shown.push_str(&format!(
                    "[cut at line {cut} of {total}: use `view_range` to see the rest, or search for what you need]\n"
                ));
            }
            break;
        }
        left -= line.len() + 1;
        shown.push_str(&numbered(std::iter::once((index, line))));
    }
    Ok(shown)
}

fn lines_of(first: i64, last: i64, total: usize) -> Result<(usize, usize), ToolError> {
    let wrong = |what: String| ToolError::new(format!("`view_range` is [{first}, {last}]: {what}"));
    let start = usize::try_from(first).ok().filter(|start| (1..=total).contains(start));
    let start = start.ok_or_else(|| wrong(format!("the first line must be within [1, {total}]")))?;
    if last == -1 {
        return Ok((start, total));
    }
    let end = usize::try_from(last).unwrap_or(0);
    if end < start {
        return Err(wrong("the last line comes before the first; -1 stands for the end".to_owned()));
    }
    Ok((start, end.min(total)))
}

/// `text` with its first `count` occurrences of `old` replaced. What would be larger than a file that can be
/// read is refused before it is made: a short text in a large file can ask for any amount of memory.
pub(crate) fn replace(
    path: &str,
    text: &str,
    old: &str,
    new: &str,
    count: usize,
) -> Result<String, ToolError> {
    let size =
        count.saturating_mul(new.len()).saturating_add(text.len() - (count * old.len()).min(text.len()));
    fits(path, size)?;
    Ok(text.replacen(old, new, count))
}

/// Refuses to make a file of a size that could not be read again.
fn fits(path: &str, size: usize) -> Result<(), ToolError> {
    if size <= MAX_READ_FILE {
        return Ok(());
    }
    let message = format!("{path} would have {size} bytes, and {} MiB is the most", MAX_READ_FILE >> 20);
    Err(ToolError::of(ErrorKind::OutputLimit, message)
        .hint("nothing was changed; replace less, or with less text"))
}

/// Replaces the one occurrence of `old`. None, or more than one, is an error that says so.
pub(crate) fn replace_once(path: &str, text: &str, old: &str, new: &str) -> Result<Edited, ToolError> {
    if old.is_empty() {
        return Err(
            ToolError::new("`old_str` is empty; it is the text to replace").hint("use `insert` to add text")
        );
    }
    let (old, new) = (fit(text, old), fit(text, new));
    let (range, new) = find_once(path, text, &old, &new)?;
    let (before, after) =
        (text.get(..range.start).unwrap_or_default(), text.get(range.end..).unwrap_or_default());
    let line = before.matches('\n').count();
    let added = new.matches('\n').count();
    let text = [before, &new, after].concat();
    Ok(Edited { shown: line.saturating_sub(AROUND)..line + added + AROUND + 1, text })
}

fn find_once(path: &str, text: &str, old: &str, new: &str) -> Result<(Range<usize>, String), ToolError> {
    let mut places = text.match_indices(old).map(|(at, _)| at..at + old.len());
    let (first, second) = (places.next(), places.next());
    match (first, second) {
        (Some(range), None) => Ok((range, new.to_owned())),
        (Some(_), Some(_)) => {
            let lines = text.match_indices(old).map(|(at, _)| line_at(text, at));
            Err(not_unique(path, old, lines))
        }
        (None, _) => match find_with_tabs(text, old, new).as_slice() {
            [(range, new)] => Ok((range.clone(), new.clone())),
            [] => {
                let shown = clip(old, 200);
                Err(ToolError::new(format!("nothing was replaced: {path} does not contain `{shown}`"))
                    .hint("`old_str` must be in the file character for character, white space included"))
            }
            many => Err(not_unique(path, old, many.iter().map(|(range, _)| line_at(text, range.start)))),
        },
    }
}

fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

fn not_unique(path: &str, old: &str, lines: impl Iterator<Item = usize>) -> ToolError {
    let mut lines: Vec<String> = lines.take(MOST_PLACES + 1).map(|line| line.to_string()).collect();
    if lines.len() > MOST_PLACES {
        lines.truncate(MOST_PLACES);
        lines.push("and more".to_owned());
    }
    let places = lines.join(", ");
    ToolError::new(format!(
        "nothing was replaced: `{}` is in {path} more than once, in lines {places}",
        clip(old, 200)
    ))
    .hint("add lines before or after it until it is unique")
}

/// Places that read like `old` when tabs are taken for the spaces they look like. What `old` and `new` have
/// in common stays as it is in the file, so its tabs stay tabs.
fn find_with_tabs(text: &str, old: &str, new: &str) -> Vec<(Range<usize>, String)> {
    let longest = text.len().max(old.len()).max(new.len());
    if longest > MOST_EXPANDED || (!text.contains('\t') && !old.contains('\t')) {
        return Vec::new();
    }
    let (file, old) = (Expanded::of(text), Expanded::of(old).flat);
    let mut found = Vec::new();
    for (start, _) in file.flat.match_indices(&old) {
        let end = start + old.len();
        let (Some(own_start), Some(own_end)) = (file.place(start), file.place(end)) else { continue };
        let new = indented_like(text.get(own_start..own_end).unwrap_or_default(), new);
        let own = Expanded::of(&new);
        let mut same = common(old.bytes(), own.flat.bytes());
        let whole = |same: usize| file.place(start + same).is_some() && own.place(same).is_some();
        while same > 0 && !whole(same) {
            same -= 1;
        }
        let most = old.len().min(own.flat.len()) - same;
        let mut tail = common(old.bytes().rev(), own.flat.bytes().rev()).min(most);
        let whole =
            |tail: usize| file.place(end - tail).is_some() && own.place(own.flat.len() - tail).is_some();
        while tail > 0 && !whole(tail) {
            tail -= 1;
        }
        if let (Some(from), Some(to)) = (file.place(start + same), file.place(end - tail))
            && let (Some(a), Some(b)) = (own.place(same), own.place(own.flat.len() - tail))
            && let Some(rest) = new.get(a..b)
        {
            found.push((from..to, rest.to_owned()));
        }
        // More are not told, and each is worked out anew.
        if found.len() > MOST_PLACES {
            break;
        }
    }
    found
}

/// `new` with the leading white space of each line as `old` writes white space of that width.
fn indented_like(old: &str, new: &str) -> String {
    let indent = |line: &str| {
        let rest = line.trim_start_matches([' ', '\t']);
        let space = line.strip_suffix(rest).unwrap_or_default().to_owned();
        (Expanded::of(&space).flat, space)
    };
    let mut known: HashMap<String, String> = HashMap::new();
    for (flat, space) in old.split('\n').map(indent) {
        known.entry(flat).or_insert(space);
    }
    let line = |line: &str| {
        let (flat, space) = indent(line);
        let own = known.get(&flat).unwrap_or(&space);
        format!("{own}{}", line.strip_prefix(space.as_str()).unwrap_or(line))
    };
    new.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn common(a: impl Iterator<Item = u8>, b: impl Iterator<Item = u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// A text with tabs as spaces up to the next column of eight.
struct Expanded {
    flat: String,
    /// For each byte of it, and its end, the place in the original; `INSIDE` a character or a tab there is
    /// none.
    places: Vec<u32>,
}

const INSIDE: u32 = u32::MAX;

impl Expanded {
    fn of(text: &str) -> Expanded {
        let mut flat = String::with_capacity(text.len());
        let mut places = Vec::with_capacity(text.len() + 1);
        let place = |at: usize| u32::try_from(at).unwrap_or(INSIDE);
        let mut column = 0;
        for (at, c) in text.char_indices() {
            places.push(place(at));
            match c {
                '\t' => {
                    let width = 8 - column % 8;
                    flat.push_str(&" ".repeat(width));
                    places.extend(std::iter::repeat_n(INSIDE, width - 1));
                    column += width;
                }
                c => {
                    flat.push(c);
                    places.extend(std::iter::repeat_n(INSIDE, c.len_utf8() - 1));
                    column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
                }
            }
        }
        places.push(place(text.len()));
        Expanded { flat, places }
    }

    fn place(&self, offset: usize) -> Option<usize> {
        self.places.get(offset).filter(|place| **place != INSIDE).map(|place| *place as usize)
    }
}

/// Puts lines after line `line`; 0 is the top. A newline at the end of `new` ends its last line and adds no
/// other.
pub(crate) fn insert(text: &str, line: i64, new: &str) -> Result<Edited, ToolError> {
    let total = text.matches('\n').count() + 1;
    let at = usize::try_from(line)
        .ok()
        .filter(|at| *at <= total)
        .ok_or_else(|| ToolError::new(format!("`insert_line` is {line}; it must be within [0, {total}]")))?;
    let new = fit(text, new);
    // Files that are Windows' throughout stay so: the line that gets a newline after it gets the carriage
    // return too.
    let newline = if ends_in_crlf(text) { "\r\n" } else { "\n" };
    let body = new.strip_suffix('\n').unwrap_or(&new);
    let count = body.matches('\n').count() + 1;
    let body = if newline == "\r\n" { body.strip_suffix('\r').unwrap_or(body) } else { body };
    let text = match at.checked_sub(1).map(|before| text.match_indices('\n').nth(before)) {
        None => [body, newline, text].concat(),
        Some(Some((end, _))) => {
            let (before, after) = text.split_at_checked(end + 1).unwrap_or((text, ""));
            [before, body, newline, after].concat()
        }
        // After the last line, which no newline ends.
        Some(None) => [text, newline, body].concat(),
    };
    Ok(Edited { text, shown: at.saturating_sub(AROUND)..at + count + AROUND })
}

/// Whether every line of the text ends in CR LF.
pub(crate) fn ends_in_crlf(text: &str) -> bool {
    let newlines = text.matches('\n').count();
    newlines > 0 && newlines == text.matches("\r\n").count()
}

/// `part` with the line endings of `text`.
pub(crate) fn fit(text: &str, part: &str) -> String {
    if !ends_in_crlf(text) {
        return part.to_owned();
    }
    part.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str, old: &str, new: &str) -> String {
        replace_once("f", text, old, new)
            .map_or_else(|error| error.message().to_owned(), |edited| edited.text)
    }

    #[test]
    fn a_text_is_replaced_once_or_not_at_all() {
        assert_eq!(replaced("a b c", "b", "B"), "a B c");
        assert!(replaced("a b b", "b", "B").contains("more than once, in lines 1, 1"));
        assert!(replaced("a", "x", "").contains("does not contain `x`"));
        assert!(replaced("a", "", "y").contains("empty"));
        assert_eq!(replaced("one\ntwo\n", "two\n", ""), "one\n");
    }

    #[test]
    fn nothing_else_of_the_file_changes() {
        for (text, old, new, wanted) in [
            ("\ta\n\tb\n", "b", "B", "\ta\n\tB\n"),
            ("a\r\nb\r\nc", "b", "x\ny", "a\r\nx\r\ny\r\nc"),
            ("a\r\nb\r\n", "a\nb", "A\nB", "A\r\nB\r\n"),
            ("a\r\nb\n", "b", "x\ny", "a\r\nx\ny\n"),
            ("naïve ✓\u{feff}", "✓", "é", "naïve é\u{feff}"),
            ("no end", "end", "newline", "no newline"),
            // Typed with spaces where the file has tabs.
            ("x\n\tthree\n\tend\n", "        three", "        THREE", "x\n\tTHREE\n\tend\n"),
            (
                "\tif a:\n\t\tb\n",
                "        if a:\n                b",
                "        if c:\n                d",
                "\tif c:\n\t\td\n",
            ),
        ] {
            assert_eq!(replaced(text, old, new), wanted, "{text:?}");
        }
    }

    #[test]
    fn lines_go_after_the_line_that_is_named() {
        for (text, line, new, wanted) in [
            ("a\nb\n", 0, "x", "x\na\nb\n"),
            ("a\nb\n", 1, "x\ny", "a\nx\ny\nb\n"),
            ("a\nb\n", 2, "x\n", "a\nb\nx\n"),
            ("a\nb\n", 3, "x", "a\nb\n\nx"),
            ("a", 1, "b", "a\nb"),
            ("", 0, "b", "b\n"),
            ("a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n"),
            ("a\r\nb", 2, "x\ny", "a\r\nb\r\nx\r\ny"),
            ("\ta\n", 1, "\tb", "\ta\n\tb\n"),
        ] {
            assert_eq!(insert(text, line, new).unwrap().text, wanted, "{text:?} {line}");
        }
        assert!(insert("a", 2, "x").is_err() && insert("a", -1, "x").is_err());
    }

    #[test]
    fn a_view_shows_the_lines_asked_for() {
        assert_eq!(view("one\n\ttwo\n", None).unwrap(), "     1\tone\n     2\t\ttwo\n     3\t\n");
        assert_eq!(view("a\r\nb", Some(&[2, -1])).unwrap(), "     2\tb\n");
        assert_eq!(view("a", Some(&[])).unwrap(), "     1\ta\n");
        assert_eq!(view("a\nb", Some(&[2, 500])).unwrap(), "     2\tb\n");
        for range in [&[0, 1][..], &[3, 4], &[2, 1], &[1], &[1, 2, 3], &[1, -2]] {
            assert!(view("a\nb", Some(range)).is_err(), "{range:?}");
        }
    }

    #[test]
    fn long_views_are_cut_and_say_so() {
        let text: String = (0..4000).map(|n| format!("line {n}\n")).collect();
        let shown = view(&text, None).unwrap();
        assert!(shown.len() < 40_000 && shown.ends_with("what you need]\n"), "{}", shown.len());
        let long = "é".repeat(20_000);
        assert!(view(&long, None).unwrap().contains("[cut at line 1 of 1"));
        assert_eq!(replaced(&format!("{long}x"), "x", "y"), format!("{long}y"));
    }
}
