//! Which part of a document is meant: pages, and within them a heading, a sheet or cells.

use std::ops::Range;

use toolwright_core::ToolError;
use toolwright_documents::{CellRange, Content, Document, PageRange};

/// How many headings an error lists.
const MOST_LISTED: usize = 20;

/// What a call asks for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Selection {
    pub(crate) pages: Option<PageRange>,
    /// The title of a section, or the name of a sheet.
    pub(crate) title: Option<String>,
    pub(crate) cells: Option<CellRange>,
}

impl Selection {
    /// Reads `pages`, and `section`: a title, `Sheet`, `Sheet!A1:B2` or `A1:B2`.
    pub(crate) fn parse(pages: Option<&str>, section: Option<&str>) -> Result<Self, ToolError> {
        let pages = pages.map(PageRange::parse).transpose();
        let pages = pages.map_err(|error| ToolError::invalid(format!("`pages`: {error}")))?;
        let Some(section) = section.map(str::trim).filter(|section| !section.is_empty()) else {
            return Ok(Selection { pages, ..Selection::default() });
        };
        let (sheet, cells) = match section.rsplit_once('!') {
            Some((sheet, cells)) => (Some(sheet.trim_matches('\'')), CellRange::parse(cells)),
            None => (None, CellRange::parse(section)),
        };
        let title = match cells {
            Some(_) => sheet,
            None => Some(section),
        };
        Ok(Selection { pages, title: title.map(str::to_owned), cells })
    }
}

/// The blocks of a section: from its heading to the next one of the same level or above. All of them without
/// a title.
pub(crate) fn blocks_of(
    document: &Document,
    selection: &Selection,
    path: &str,
) -> Result<Range<usize>, ToolError> {
    let all = 0..document.blocks.len();
    let Some(title) = &selection.title else { return Ok(all) };
    // Cells have an address in each workbook, and titles in other documents can look like one.
    let headings: Vec<(usize, u8, &str)> = document
        .blocks
        .iter()
        .enumerate()
        .filter_map(|(at, block)| match &block.content {
            Content::Heading { level, text } => Some((at, *level, text.as_str())),
            _ => None,
        })
        .collect();
    let wanted = letters(title);
    let found = headings
        .iter()
        .position(|(_, _, text)| letters(text) == wanted)
        .or_else(|| headings.iter().position(|(_, _, text)| letters(unnumbered(text)) == wanted))
        .or_else(|| {
            let mut holding =
                headings.iter().enumerate().filter(|(_, (_, _, text))| letters(text).contains(&wanted));
            let first = holding.next().map(|(at, _)| at);
            first.filter(|_| holding.next().is_none() && !wanted.is_empty())
        });
    if let Some((first, level, _)) = found.and_then(|at| headings.get(at)) {
        let end = headings.iter().find(|(at, other, _)| at > first && other <= level);
        return Ok(*first..end.map_or(all.end, |(at, _, _)| *at));
    }
    // The file's own table of contents may name what is not a heading in the text.
    if let Some(at) = document.outline.iter().position(|entry| letters(&entry.title) == wanted)
        && let Some(entry) = document.outline.get(at).filter(|entry| entry.page > 0)
    {
        let after = document.outline.iter().skip(at + 1).find(|other| other.level <= entry.level);
        let last = after.map_or(u32::MAX, |other| other.page.max(entry.page));
        let place = |page: u32| document.blocks.partition_point(|block| block.page < page);
        return Ok(place(entry.page)..place(last.saturating_add(1)).min(all.end));
    }
    let titles: Vec<&str> = headings.iter().map(|(_, _, text)| *text).collect();
    let error = ToolError::invalid(format!("{path} has no section `{}`", title.escape_debug()));
    Err(match titles.len() {
        0 => error.hint("it has no headings: use `pages` or `offset`"),
        count => {
            let listed = titles.iter().take(MOST_LISTED).map(|title| format!("`{title}`"));
            let more = if count > MOST_LISTED { ", ..." } else { "" };
            error.hint(format!("its sections are {}{more}", listed.collect::<Vec<_>>().join(", ")))
        }
    })
}

fn letters(text: &str) -> String {
    text.chars().filter(|ch| ch.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn unnumbered(text: &str) -> &str {
    match text.split_once(' ') {
        Some((number, rest)) if number.chars().all(|ch| ch.is_ascii_digit() || ch == '.') => rest,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use toolwright_documents::{ReadOptions, read};

    use super::*;

    #[test]
    fn a_section_is_a_title_a_sheet_or_cells() {
        let of = |section: &str| Selection::parse(None, Some(section)).unwrap();
        assert_eq!(of("Methods").title.as_deref(), Some("Methods"));
        assert_eq!(of("B2:F40").cells, CellRange::parse("B2:F40"));
        let cells = of("'My Sheet'!$B$2");
        assert_eq!((cells.title.as_deref(), cells.cells), (Some("My Sheet"), CellRange::parse("B2")));
        assert_eq!(of("Wow! Really").title.as_deref(), Some("Wow! Really"));
        assert_eq!(Selection::parse(Some("2-"), None).unwrap().pages.unwrap().first, 2);
        assert!(Selection::parse(Some("5-2"), None).is_err());
        let range = CellRange::parse("f40:B2").unwrap();
        assert_eq!((range.first_row, range.first_column, range.last_row, range.last_column), (1, 1, 39, 5));
        for wrong in ["", "B", "2", "B0", "ABCD1", "B2:", "1B"] {
            assert!(CellRange::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_section_ends_with_the_next_heading_of_its_level() {
        let text = "# A\n\none\n\n## 1.1 B\n\ntwo\n\n## C\n\nthree\n\n# D\n\nfour\n";
        let document = read(text.into(), &ReadOptions::named("a.md")).unwrap();
        let text_of = |section: &str| -> Result<String, ToolError> {
            let selection = Selection::parse(None, Some(section)).unwrap();
            let blocks = blocks_of(&document, &selection, "a.md")?;
            Ok(document.blocks[blocks].iter().map(|block| block.content.text() + "|").collect())
        };
        assert_eq!(text_of("a").unwrap(), "A|one|1.1 B|two|C|three|");
        assert_eq!(text_of("B").unwrap(), "1.1 B|two|");
        assert_eq!(text_of("d").unwrap(), "D|four|");
        let missing = text_of("zz").unwrap_err();
        assert_eq!(missing.hint_text(), Some("its sections are `A`, `1.1 B`, `C`, `D`"));
    }
}
