//! Where a part of a scalar stands in the file.

use crate::diag::Place;

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
}
