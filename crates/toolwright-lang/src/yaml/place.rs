//! Where a part of a scalar stands in the file.

use std::sync::Arc;

use crate::diag::{Place, Sources};

/// Where a scalar's text begins, kept to tell places inside it while a flow runs.
#[derive(Debug)]
pub(crate) struct Origin {
    file: Arc<str>,
    line: usize,
    column: usize,
    /// The text stands in the file as it is, line for line.
    exact: bool,
}

impl Origin {
    pub(crate) fn new(sources: &mut Sources, place: Place, text: &str) -> Origin {
        let source = sources.text(place.file);
        let first = within(source, place, text, 0, 0);
        let next = text.find('\n').map(|at| at + 1).filter(|at| *at < text.len());
        let second = next.map(|at| within(source, place, text, at, at));
        let (line, column) = sources.position(first);
        let line_for_line =
            second.is_none_or(|second| second != place && sources.position(second).0 == line + 1);
        Origin { file: sources.name(place.file), line, column, exact: first != place && line_for_line }
    }

    /// The place of a byte of the text as `file:line:column`, or of the text as a whole.
    pub(crate) fn at(&self, text: &str, offset: Option<u32>) -> String {
        let before = offset.filter(|_| self.exact).and_then(|at| text.get(..at as usize)).unwrap_or_default();
        let line = self.line + before.matches('\n').count();
        let column = self.column + before.rsplit('\n').next().unwrap_or_default().chars().count();
        format!("{}:{line}:{column}", self.file)
    }
}

/// Where byte `offset` of a scalar's text stands in the file. Exact for text written as it is and for literal blocks;
/// otherwise the scalar as a whole.
pub(crate) fn within(source: &str, place: Place, text: &str, start: usize, end: usize) -> Place {
    let raw = source.get(place.start as usize..place.end as usize).unwrap_or_default();
    let at = |offset: usize, end: usize| {
        Place::new(place.file, place.start as usize + offset, place.start as usize + end)
    };
    if raw == text {
        return at(start, end);
    }
    if raw.len() >= 2 && raw.starts_with(['\'', '"']) && raw.get(1..raw.len() - 1) == Some(text) {
        return at(start + 1, end + 1);
    }
    // A block: each line of the text stands on a line of its own, indented. The span may begin with the mark or with the
    // first line of the content.
    let before = text.get(..start).unwrap_or_default();
    let line = before.matches('\n').count();
    let column = start - before.rfind('\n').map_or(0, |at| at + 1);
    let wanted = text.lines().nth(line).unwrap_or_default();
    let skipped = usize::from(raw.starts_with(['|', '>']));
    let mut offset = 0;
    for (index, raw_line) in raw.split('\n').enumerate() {
        if index == line + skipped && raw_line.trim() == wanted.trim() {
            let indent = raw_line.len() - raw_line.trim_start().len();
            let own = wanted.len() - wanted.trim_start().len();
            let first = offset + (indent + column).saturating_sub(own);
            return at(first, first + (end - start));
        }
        offset += raw_line.len() + 1;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_inside_text_are_exact_where_they_can_be() {
        let source = "a: '${x}'\nb: |\n  one\n  ${y}\n";
        let quoted = Place::new(0, 3, 9);
        assert_eq!(within(source, quoted, "${x}", 2, 3), Place::new(0, 6, 7));
        let start = source.find('|').unwrap();
        let block = Place::new(0, start, source.len());
        let place = within(source, block, "one\n${y}\n", 6, 7);
        assert_eq!(source.get(place.start as usize..place.end as usize), Some("y"));
    }

    #[test]
    fn places_are_told_later_where_the_text_stands_as_it_is() {
        let mut sources = Sources::default();
        let text = "a: '${x}'\nb: |\n  one\n  ${y}\nc: 'it''s ${z}'\n";
        let file = sources.add("t.yaml", text);
        let mut origin = |from: &str, to: &str, text_of: &str| {
            let start = text.find(from).unwrap();
            let end = start + text.get(start..).unwrap().find(to).unwrap() + to.len();
            Origin::new(&mut sources, Place::new(file, start, end), text_of)
        };
        assert_eq!(origin("'${x}", "}'", "${x}").at("${x}", Some(2)), "t.yaml:1:7");
        let block = "one\n${y}\n";
        assert_eq!(origin("|", "${y}\n", block).at(block, Some(6)), "t.yaml:4:5");
        let escaped = "it's ${z}";
        assert_eq!(origin("'it", "}'", escaped).at(escaped, Some(7)), "t.yaml:5:4");
    }
}
