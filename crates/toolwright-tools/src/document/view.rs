//! A document as the lines of its Markdown, and how many of them fit a budget.

use std::ops::Range;

use toolwright_documents::{Content, Document, render};

/// The longest line, in bytes: longer ones are broken, so that each can be shown.
const LONGEST_LINE: usize = 4_000;

/// A line of a document.
pub(crate) struct DocumentLine {
    pub(crate) page: u32,
    pub(crate) text: String,
    /// The figure that the line stands for, as an index.
    pub(crate) figure: Option<usize>,
}

/// The lines of some blocks of a document; a blank one stands between two blocks.
pub(crate) fn lines_of(document: &Document, blocks: Range<usize>) -> Vec<DocumentLine> {
    let options = render::MarkdownOptions::default();
    let mut lines: Vec<DocumentLine> = Vec::new();
    for block in document.blocks.get(blocks).unwrap_or_default() {
        let Some(text) = render::block(document, block, &options).filter(|text| !text.is_empty()) else {
            continue;
        };
        let page = block.page;
        if !lines.is_empty() {
            lines.push(DocumentLine { page, text: String::new(), figure: None });
        }
        for line in text.split('\n') {
            let mut rest = line;
            while let Some((part, more)) = broken(rest) {
                lines.push(DocumentLine { page, text: part.to_owned(), figure: None });
                rest = more;
            }
            let figure = match &block.content {
                Content::Figure { figure } => Some(*figure),
                _ => None,
            };
            lines.push(DocumentLine { page, text: rest.to_owned(), figure });
        }
    }
    lines
}

/// The first part of a line that is too long, up to a blank where there is one, and the rest.
fn broken(line: &str) -> Option<(&str, &str)> {
    if line.len() <= LONGEST_LINE {
        return None;
    }
    let most = line.floor_char_boundary(LONGEST_LINE);
    let part = line.get(..most)?;
    let at = part.rfind(' ').filter(|at| *at > LONGEST_LINE / 2).unwrap_or(most);
    let (part, rest) = line.split_at_checked(at)?;
    Some((part, rest.strip_prefix(' ').unwrap_or(rest)))
}

/// About how many bytes so many tokens are.
pub(crate) fn bytes_of_tokens(tokens: i64) -> usize {
    usize::try_from(tokens).unwrap_or(0).saturating_mul(4)
}

/// How many of the lines fit a budget: at least one, so that reading on always gets further.
pub(crate) fn fitting(lengths: impl IntoIterator<Item = usize>, budget: usize) -> usize {
    let mut sum = 0usize;
    let mut count = 0;
    for length in lengths {
        sum = sum.saturating_add(length + 1);
        if sum > budget && count > 0 {
            break;
        }
        count += 1;
    }
    count
}

/// Where to end a part that begins at `from`, when lines up to `end` fit: with a page, else with a block.
pub(crate) fn resting_place(lines: &[DocumentLine], from: usize, end: usize, by_pages: bool) -> usize {
    let Some(next) = lines.get(end) else { return end };
    if by_pages && lines.get(from).is_some_and(|first| first.page < next.page) {
        return lines.partition_point(|line| line.page < next.page).max(from + 1);
    }
    let half = from + (end - from) / 2;
    let blank = (half..end).rev().find(|at| lines.get(*at).is_some_and(|line| line.text.is_empty()));
    blank.map_or(end, |at| at + 1)
}

/// A call that reads on, as a model would write it.
pub(crate) fn next_call(tool: &str, path: &str, arguments: &[(&str, String)]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut call = format!("{tool}(path={}", quoted(path));
    for (name, value) in arguments {
        let value =
            if value.parse::<i64>().is_ok() && *name != "pages" { value.clone() } else { quoted(value) };
        call.push_str(&format!(", {name}={value}"));
    }
    call.push(')');
    call
}

#[cfg(test)]
mod tests {
    use toolwright_documents::{ReadOptions, read};

    use super::*;

    #[test]
    fn long_lines_are_broken_and_nothing_is_lost() {
        let text = "word ".repeat(3000).trim_end().to_owned();
        let document = read(text.clone().into_bytes(), &ReadOptions::named("a.txt")).unwrap();
        let lines = lines_of(&document, 0..document.blocks.len());
        assert!(lines.len() > 3 && lines.iter().all(|line| line.text.len() <= LONGEST_LINE));
        let again: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(again.join(" "), text);
        let wide = "é".repeat(LONGEST_LINE);
        let (part, rest) = broken(&wide).unwrap();
        assert_eq!((part.to_owned() + rest, part.len() <= LONGEST_LINE), (wide.clone(), true));
    }

    #[test]
    fn at_least_one_line_fits_and_a_part_ends_with_a_block() {
        assert_eq!(fitting([10, 10, 10], 22), 2);
        assert_eq!(fitting([100], 5), 1);
        assert_eq!(fitting([], 5), 0);
        let line = |page: u32, text: &str| DocumentLine { page, text: text.to_owned(), figure: None };
        let lines = [line(1, "a"), line(1, ""), line(1, "b"), line(2, ""), line(2, "c"), line(2, "d")];
        assert_eq!(resting_place(&lines, 0, 5, true), 3);
        assert_eq!(resting_place(&lines, 3, 5, true), 5);
        assert_eq!(resting_place(&lines, 0, 5, false), 4);
        assert_eq!(resting_place(&lines, 0, 6, true), 6);
    }

    #[test]
    fn the_next_call_is_written_out() {
        let arguments = [("pages", "7".to_owned()), ("offset", "120".to_owned())];
        let call = next_call("read_file", "a \"b\".pdf", &arguments);
        assert_eq!(call, r#"read_file(path="a \"b\".pdf", pages="7", offset=120)"#);
    }
}
