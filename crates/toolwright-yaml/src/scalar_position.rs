//! Where a part of a scalar stands in the file.

use std::sync::Arc;

use crate::diag::{FileSpan, Sources};

/// Where a scalar's text stands, kept to tell places inside it while a flow runs.
#[derive(Debug)]
pub struct Origin {
    file: Arc<str>,
    line: usize,
    column: usize,
    inside: TextMapping,
}

/// How the text goes on from its beginning.
#[derive(Debug)]
enum TextMapping {
    /// It is not known.
    Whole,
    /// As it is, line for line.
    Lines,
    /// In parts: from which byte of the text on, the line and the column.
    Parts(Box<[(u32, u32, u32)]>),
}

impl Origin {
    /// The origin of the text that a scalar at a place has.
    pub fn new(sources: &mut Sources, place: FileSpan, text: &str) -> Origin {
        let raw = raw(sources.text(place.file), place);
        let (first, inside) = match verbatim(raw, text) {
            Some(quote) => (quote, TextMapping::Lines),
            None if line_for_line(raw, text) => (start_of(raw, text), TextMapping::Lines),
            None => {
                let parts = parts(raw, text);
                let first = parts.first().map_or(0, |(_, at)| *at);
                let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                let placed = |(from, at): (usize, usize)| {
                    let (line, column) = sources.position(inner(place, at, at));
                    (small(from), small(line), small(column))
                };
                let parts: Box<[_]> = parts.into_iter().map(placed).collect();
                (first, if parts.is_empty() { TextMapping::Whole } else { TextMapping::Parts(parts) })
            }
        };
        let (line, column) = sources.position(inner(place, first, first));
        Origin { file: sources.name(place.file), line, column, inside }
    }

    /// The place of a byte of the text as `file:line:column`, or of the text as a whole.
    pub fn at(&self, text: &str, offset: Option<u32>) -> String {
        let (line, column) = self.position(text, offset).unwrap_or((self.line, self.column));
        format!("{}:{line}:{column}", self.file)
    }

    fn position(&self, text: &str, offset: Option<u32>) -> Option<(usize, usize)> {
        let at = offset?;
        let (from, line, column) = match &self.inside {
            TextMapping::Whole => return None,
            TextMapping::Lines => {
                let before = text.get(..at as usize)?;
                let start = before.rfind('\n').map_or(0, |end| end + 1);
                (start, self.line + before.matches('\n').count(), self.column)
            }
            TextMapping::Parts(parts) => {
                let (from, line, column) = parts.iter().take_while(|(from, ..)| *from <= at).last()?;
                (*from as usize, *line as usize, *column as usize)
            }
        };
        Some((line, column + text.get(from..at as usize)?.chars().count()))
    }
}

/// Where bytes of a scalar's text stand in the file, however it is written; the scalar as a whole when that
/// cannot be told.
pub fn within(source: &str, place: FileSpan, text: &str, start: usize, end: usize) -> FileSpan {
    let raw = raw(source, place);
    if let Some(quote) = verbatim(raw, text) {
        return inner(place, start + quote, end + quote);
    }
    let mut found: Option<(usize, usize)> = None;
    let last = align(raw, text, |at, from, to| {
        if at >= start && found.is_none() {
            found = Some((from, from));
        }
        if let Some(found) = &mut found
            && at < end
        {
            found.1 = to;
        }
        found.is_none() || at < end
    });
    match (found, last) {
        (Some((from, to)), _) => inner(place, from, to),
        // The end of the text.
        (None, Some(last)) => inner(place, last, last),
        (None, None) => place,
    }
}

fn raw(source: &str, place: FileSpan) -> &str {
    source.get(place.start as usize..place.end as usize).unwrap_or_default()
}

fn inner(place: FileSpan, start: usize, end: usize) -> FileSpan {
    FileSpan::new(place.file, place.start as usize + start, place.start as usize + end)
}

/// Where the text begins in what is written, when it stands there as it is.
fn verbatim(raw: &str, text: &str) -> Option<usize> {
    let quoted = || raw.len() >= 2 && raw.starts_with(['\'', '"']) && raw.get(1..raw.len() - 1) == Some(text);
    if raw == text { Some(0) } else { quoted().then_some(1) }
}

/// The lines of a block without its head. Its span may begin with the mark or with the first line.
fn content(raw: &str) -> usize {
    let head = raw.starts_with(['|', '>']);
    if head { raw.find('\n').map_or(raw.len(), |end| end + 1) } else { 0 }
}

/// Whether every line of the text stands on a line of its own, all of them indented alike.
fn line_for_line(raw: &str, text: &str) -> bool {
    let mut indent = None;
    let mut lines = raw.get(content(raw)..).unwrap_or_default().split('\n');
    text.lines().enumerate().all(|(index, wanted)| {
        let Some(line) = lines.next() else { return false };
        let line = line.trim_end_matches('\r');
        if wanted.is_empty() {
            return line.trim().is_empty();
        }
        let Some(before) = line.strip_suffix(wanted) else { return false };
        // The first line may have been cut at its beginning.
        let alike = index == 0 || *indent.get_or_insert(before.len()) == before.len();
        alike && before.bytes().all(|byte| byte == b' ')
    })
}

/// Where the first line of such a text begins.
fn start_of(raw: &str, text: &str) -> usize {
    let start = content(raw);
    let line = raw.get(start..).unwrap_or_default().split('\n').next().unwrap_or_default();
    let own = text.lines().next().unwrap_or_default();
    start + line.trim_end_matches('\r').len().saturating_sub(own.len())
}

/// The parts of a text that stand as they are: from which byte of it on, and where. Empty when that cannot be
/// told.
fn parts(raw: &str, text: &str) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let mut next = None;
    let whole = align(raw, text, |at, from, to| {
        if next != Some((at, from)) {
            parts.push((at, from));
        }
        let c = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
        // A character that is written otherwise ends the part.
        next = (to - from == c.len_utf8() && c != '\n').then_some((at + c.len_utf8(), to));
        true
    });
    if whole.is_some() { parts } else { Vec::new() }
}

/// Walks over a text and what is written for it. `visit` gets a byte of the text, and the bytes that stand
/// for its character; it says whether to go on. `None` when the two do not fit; else where the walk ended.
///
/// Folding, indentation and line breaks change only blanks, so everything else is found in its order.
fn align(raw: &str, text: &str, mut visit: impl FnMut(usize, usize, usize) -> bool) -> Option<usize> {
    let style = match raw.bytes().next() {
        Some(b'"') => ScalarStyle::Double,
        Some(b'\'') => ScalarStyle::Single,
        _ => ScalarStyle::Plain,
    };
    let mut from = if style == ScalarStyle::Plain { content(raw) } else { 1 };
    for (at, c) in text.char_indices() {
        let mut to = from;
        if is_blank(c) {
            if let Some(Unit::Char(found, length)) = style.unit(raw, from)
                && found == c
            {
                to += length;
            }
        } else {
            loop {
                match style.unit(raw, from)? {
                    Unit::Char(found, length) if found == c => {
                        to = from + length;
                        break;
                    }
                    Unit::Char(found, length) if is_blank(found) => from += length,
                    Unit::Nothing(length) => from += length,
                    Unit::Char(..) => return None,
                }
            }
        }
        if !visit(at, from, to) {
            return Some(to);
        }
        from = to;
    }
    Some(from)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// How a scalar is written. Blocks are plain here: nothing in them is escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScalarStyle {
    Plain,
    Single,
    Double,
}

/// What the next bytes stand for.
enum Unit {
    /// A character, and how many bytes stand for it.
    Char(char, usize),
    /// Nothing: an escaped line break.
    Nothing(usize),
}

impl ScalarStyle {
    fn unit(self, raw: &str, at: usize) -> Option<Unit> {
        let rest = raw.get(at..)?;
        let c = rest.chars().next()?;
        match (self, c) {
            (ScalarStyle::Single, '\'') => rest.starts_with("''").then_some(Unit::Char('\'', 2)),
            (ScalarStyle::Double, '\\') => escaped(rest),
            _ => Some(Unit::Char(c, c.len_utf8())),
        }
    }
}

/// An escape of a text in double quotes.
fn escaped(rest: &str) -> Option<Unit> {
    let mark = rest.chars().nth(1)?;
    let coded = |digits: usize| {
        let code = u32::from_str_radix(rest.get(2..2 + digits)?, 16).ok()?;
        Some(Unit::Char(char::from_u32(code)?, 2 + digits))
    };
    let c = match mark {
        '\n' => return Some(Unit::Nothing(2)),
        '\r' => return Some(Unit::Nothing(if rest.starts_with("\\\r\n") { 3 } else { 2 })),
        'x' => return coded(2),
        'u' => return coded(4),
        'U' => return coded(8),
        '0' => '\0',
        'a' => '\x07',
        'b' => '\x08',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\x0b',
        'f' => '\x0c',
        'r' => '\r',
        'e' => '\x1b',
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        other => other,
    };
    Some(Unit::Char(c, 1 + mark.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_inside_text_are_exact_where_they_can_be() {
        let source = "a: '${x}'\nb: |\n  one\n  ${y}\n";
        let quoted = FileSpan::new(0, 3, 9);
        assert_eq!(within(source, quoted, "${x}", 2, 3), FileSpan::new(0, 6, 7));
        let start = source.find('|').unwrap();
        let block = FileSpan::new(0, start, source.len());
        let place = within(source, block, "one\n${y}\n", 6, 7);
        assert_eq!(source.get(place.start as usize..place.end as usize), Some("y"));
    }

    /// The text of a scalar as it is written, its value, and the word that is looked for in both.
    #[test]
    fn places_are_found_however_a_scalar_is_written() {
        for (raw, text) in [
            ("'It''s ${naem}'", "It's ${naem}"),
            (r#""\"hi\" \u00e4 ${naem}""#, "\"hi\" ä ${naem}"),
            ("\"a\\\n   b ${naem}\"", "ab ${naem}"),
            (r#""x = 1\nresult = naem""#, "x = 1\nresult = naem"),
            (">\n  one\n  two ${naem}\n  three\n", "one two ${naem} three\n"),
            (">-\n  one\n\n    more\n  two\n  ${naem}", "one\n  more\ntwo ${naem}"),
            ("plain\n  and ${naem}", "plain and ${naem}"),
            ("'a\n\n  b ''q'' ${naem}'", "a\nb 'q' ${naem}"),
            ("|\n  def f():\n    return naem\n", "def f():\n  return naem\n"),
            ("|\r\n  one\r\n  naem\r\n", "one\nnaem\n"),
        ] {
            let source = format!("k: {raw}\n");
            let place = FileSpan::new(0, 3, 3 + raw.len());
            let start = text.find("naem").unwrap();
            let found = within(&source, place, text, start, start + 4);
            assert_eq!(source.get(found.start as usize..found.end as usize), Some("naem"), "{raw}");
            let mut sources = Sources::default();
            let file = sources.add("t", &source);
            let origin = Origin::new(&mut sources, FileSpan { file, ..place }, text);
            let before = source.get(..source.find("naem").unwrap()).unwrap();
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
            let told = origin.at(text, u32::try_from(start).ok());
            assert_eq!(told, format!("t:{line}:{column}"), "{raw}");
        }
        // What does not fit is told as a whole.
        let place = FileSpan::new(0, 0, 4);
        assert_eq!(within("abcd", place, "abxd", 3, 4), place);
    }

    #[test]
    fn places_are_told_later_where_the_text_stands_as_it_is() {
        let mut sources = Sources::default();
        let text = "a: '${x}'\nb: |\n  one\n  ${y}\nc: 'it''s ${z}'\n";
        let file = sources.add("t.yaml", text);
        let mut origin = |from: &str, to: &str, text_of: &str| {
            let start = text.find(from).unwrap();
            let end = start + text.get(start..).unwrap().find(to).unwrap() + to.len();
            Origin::new(&mut sources, FileSpan::new(file, start, end), text_of)
        };
        assert_eq!(origin("'${x}", "}'", "${x}").at("${x}", Some(2)), "t.yaml:1:7");
        let block = "one\n${y}\n";
        assert_eq!(origin("|", "${y}\n", block).at(block, Some(6)), "t.yaml:4:5");
        let escaped = "it's ${z}";
        assert_eq!(origin("'it", "}'", escaped).at(escaped, Some(7)), "t.yaml:5:13");
    }
}
