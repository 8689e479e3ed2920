//! Separated values: the dialect is guessed from the first lines, and said.

use crate::detect::DocumentKind;
use crate::error::DocumentError;
use crate::model::{Block, Content, Info, Page};
use crate::options::ReadingState;

/// How a file of separated values is written, as far as its beginning shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvDialect {
    /// What stands between two values.
    pub delimiter: u8,
    /// Whether the first row names the columns.
    pub header: bool,
}

impl CsvDialect {
    /// The dialect of a text; the name of the file counts when it ends in `.tsv`.
    pub fn of(text: &str, name: Option<&str>) -> Self {
        let is_tabs = name.is_some_and(|name| name.to_ascii_lowercase().ends_with(".tsv"));
        let delimiter = if is_tabs { b'\t' } else { sniff(text) };
        let sample = text.get(..text.floor_char_boundary(SAMPLE)).unwrap_or_default();
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(sample.as_bytes());
        let rows: Vec<Vec<String>> = reader
            .records()
            .flatten()
            .take(20)
            .map(|record| record.iter().map(str::to_owned).collect())
            .collect();
        // Names that occur twice are names still, above numbers.
        let is_number = |cell: &String| cell.trim().parse::<f64>().is_ok();
        let names_above_numbers = rows.split_first().is_some_and(|(first, rest)| {
            !first.iter().any(|cell| is_number(cell) || cell.trim().is_empty())
                && rest.iter().flatten().any(is_number)
        });
        CsvDialect { delimiter, header: names_above_numbers || looks_like_header(&rows) }
    }
}

/// The bytes from which the dialect is guessed.
const SAMPLE: usize = 64 << 10;

/// The most cells that are read.
const MAX_CELLS: usize = 4_000_000;

pub(crate) fn read(
    bytes: &[u8],
    kind: DocumentKind,
    reading: &mut ReadingState<'_>,
) -> Result<Info, DocumentError> {
    let text = super::decode(bytes);
    let delimiter = if kind == DocumentKind::Tsv { b'\t' } else { sniff(&text) };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut rejected = 0usize;
    let mut cells = 0usize;
    for (count, record) in reader.records().enumerate() {
        if count.is_multiple_of(16_384) && reading.is_late() {
            reading.warn(format!("rows after {} are left out: {}", rows.len(), reading.late()));
            break;
        }
        match record {
            Ok(record) => {
                cells += record.len();
                if cells > MAX_CELLS {
                    reading
                        .warn(format!("rows after {} are left out: the file has too many cells", rows.len()));
                    break;
                }
                rows.push(record.iter().map(str::to_owned).collect());
            }
            Err(_) => rejected += 1,
        }
    }
    let columns = rows.first().map_or(0, Vec::len);
    let ragged = rows.iter().filter(|row| row.len() != columns).count();
    let header = looks_like_header(&rows);
    let name = match delimiter {
        b'\t' => "tab".to_owned(),
        other => format!("`{}`", char::from(other)),
    };
    let mut said = format!(
        "{} rows, {columns} columns; delimiter {name}, header {}",
        rows.len().saturating_sub(usize::from(header)),
        if header { "yes" } else { "no" }
    );
    if ragged > 0 {
        said.push_str(&format!(", {ragged} rows with another number of cells"));
    }
    if rejected > 0 {
        said.push_str(&format!(", {rejected} rows rejected"));
    }
    let mut blocks = vec![Block::paragraph(said)];
    if !rows.is_empty() {
        blocks.push(Block::new(Content::Table { rows, header }));
    }
    super::single(Page { blocks, ..Page::default() }, Info::default(), reading)
}

/// The delimiter with which most of the first lines have the same number of cells, and more than one.
fn sniff(text: &str) -> u8 {
    let sample: String = text.chars().take(SAMPLE).collect();
    let mut best = (0usize, b',');
    for delimiter in *b",;\t|" {
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(sample.as_bytes());
        let widths: Vec<usize> = reader.records().flatten().take(200).map(|record| record.len()).collect();
        let Some(first) = widths.first().copied().filter(|width| *width > 1) else { continue };
        let same = widths.iter().filter(|width| **width == first).count();
        // Agreement counts first, the number of cells second.
        let score = same * 1_000 / widths.len().max(1) * 100 + first.min(99);
        if score > best.0 {
            best = (score, delimiter);
        }
    }
    best.1
}

/// A first row of distinct words above others that have numbers, or simply words.
pub(super) fn looks_like_header(rows: &[Vec<String>]) -> bool {
    let Some((first, rest)) = rows.split_first() else { return false };
    let number = |cell: &String| cell.trim().parse::<f64>().is_ok();
    let mut names: Vec<&str> = first.iter().map(|cell| cell.trim()).collect();
    names.sort_unstable();
    names.dedup();
    names.len() == first.len()
        && !rest.is_empty()
        && !first.iter().any(|cell| number(cell) || cell.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::sniff;

    #[test]
    fn the_delimiter_is_the_one_that_makes_rows_equal() {
        assert_eq!(sniff("a,b,c\n1,2,3\n"), b',');
        assert_eq!(sniff("name;price\nx;1,50\ny;2,75\n"), b';');
        assert_eq!(sniff("a\tb\n1\t2\n"), b'\t');
        assert_eq!(sniff("a|b\n\"x|y\"|2\n"), b'|');
        assert_eq!(sniff("one\ntwo\n"), b',');
    }
}
