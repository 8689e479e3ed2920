//! `read_file`: lines of a text file, or a part of a document.

use std::fmt::Write as _;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use toolwright_core::{ErrorKind, MAX_READ_FILE, ToolContext, ToolError, ToolOutput, WorkspacePath, tool};

use crate::document::{self, DocumentRequest, ImageDetail};
use crate::options::{Call, Options, within_time};
use crate::{decode, paths};

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
enum Lines {
    Count(i64),
    Range([i64; 2]),
}

/// Read a file or a part of it: text, PDF, Office, e-mail, workbook, e-book, picture.
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub async fn read_file(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file to read.
    #[tool(alias("file_path", "filename"))]
    path: WorkspacePath,
    #[tool(
        alias = "limit",
        description = "How many lines; a negative number omits that many at the end. Or the first and last: [3, 5]."
    )]
    lines: Option<Lines>,
    /// Lines to skip first; negative counts from the end.
    #[tool(default)]
    offset: i64,
    /// Number the lines.
    #[tool(default)]
    show_line_numbers: bool,
    /// Of text that is not UTF-8, such as latin-1.
    encoding: Option<String>,
    /// Of a document: 3, 2-5 or 7-.
    pages: Option<String>,
    /// Of a document: a title, a sheet, or cells (Sheet1!B2:F40).
    section: Option<String>,
    /// In a document: named, shown in place, or whole pages drawn.
    images: Option<ImageDetail>,
    /// The most to read; the result names the next call.
    max_tokens: Option<i64>,
    /// Of a document.
    password: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let call = &Call::new(context, options);
    let budget = match max_tokens {
        Some(..1) => return Err(ToolError::invalid("`max_tokens` must be a positive number")),
        tokens => tokens.map(document::bytes_of_tokens),
    };
    let names_lines = lines.is_some() || offset != 0;
    let shown = |total: usize| match lines {
        None => Ok(slice(total, offset, None)),
        Some(Lines::Count(count)) => Ok(slice(total, offset, Some(count))),
        Some(Lines::Range([first, last])) => range(total, first, last, offset),
    };
    let text = match encoding {
        Some(encoding) => decode::as_named(&paths::read(call, &path).await?, &encoding)?.0,
        None => {
            let bytes = bytes(call, &path).await?;
            let as_document = pages.is_some() || section.is_some() || images.is_some();
            if as_document || document::is_document(&bytes, &path) {
                let (pages, section) = (pages.as_deref(), section.as_deref());
                let lines = &shown;
                let wanted = DocumentRequest { pages, section, images, password, budget, lines, names_lines };
                return document::read(call, &path, &bytes, wanted).await;
            }
            text_of(bytes)?
        }
    };
    let total = text.split_inclusive('\n').count();
    let shown = shown(total)?;
    if let Some(budget) = budget {
        return part_of_text(call, &path, &text, shown, budget);
    }
    let left = total - shown.end.min(total);
    let mark = show_line_numbers.then_some(": ");
    Ok(telling(show(&path, &text, shown, mark)?, left, total))
}

/// The lines of a text that fit a budget, and the call that reads on.
fn part_of_text(
    call: &Call<'_>,
    path: &str,
    text: &str,
    shown: Range<usize>,
    budget: usize,
) -> Result<ToolOutput, ToolError> {
    let lengths = text.split('\n').take(shown.end).skip(shown.start).map(str::len);
    let end = shown.start + document::fitting(lengths, budget).min(shown.len());
    let mut part = show(path, text, shown.start..end, None)?;
    // One line may be longer than everything that was asked for.
    if part.len() > budget.saturating_mul(2) {
        let (most, length) = (part.floor_char_boundary(budget), part.len());
        part.truncate(most);
        part.push_str(&format!("\n[{} more bytes in line {end}]\n", length - most));
    }
    if end < shown.end {
        let next = document::next_call(
            context_name(call),
            path,
            &[("offset", end.to_string()), ("max_tokens", (budget / 4).to_string())],
        );
        let total = text.split_inclusive('\n').count();
        part.push_str(&format!("[lines {}-{end} of {total} shown; next: {next}]\n", shown.start + 1));
    }
    Ok(ToolOutput::text(part))
}

fn context_name<'a>(call: &Call<'a>) -> &'a str {
    call.context.tool_name()
}

/// What Inspect puts between a number and its line. There, the carriage return at the end of a line is shown
/// too.
pub(crate) const INSPECTS: &str = "\t";

/// The lines, and beside them that there are more.
pub(crate) fn telling(text: String, left: usize, all: usize) -> ToolOutput {
    match left {
        0 => ToolOutput::text(text),
        left => ToolOutput::text(text).with_metadata("lines_left", left).with_metadata("total_lines", all),
    }
}

pub(crate) async fn read(call: &Call<'_>, path: &str) -> Result<String, ToolError> {
    text_of(bytes(call, path).await?)
}

async fn bytes(call: &Call<'_>, path: &str) -> Result<Vec<u8>, ToolError> {
    paths::read(call, path).await.map_err(|error| match error.kind() {
        ErrorKind::OutputLimit => error.hint("read a part of it with `bash`: head, tail or sed"),
        _ => error,
    })
}

fn text_of(bytes: Vec<u8>) -> Result<String, ToolError> {
    String::from_utf8(bytes).map_err(|error| {
        ToolError::from(error).hint("the file is not text; look at it with `bash`: file, xxd or strings")
    })
}

/// The lines from the first to the last, counted from 1. A range of no line is a mistake.
fn range(total: usize, first: i64, last: i64, offset: i64) -> Result<Range<usize>, ToolError> {
    let wrong = |why: String| ToolError::invalid(format!("`lines` is [{first}, {last}]: {why}"));
    if first < 1 {
        return Err(wrong("lines are counted from 1".to_owned()));
    }
    if last < first {
        return Err(wrong("the last line comes before the first".to_owned()));
    }
    let start = first.saturating_sub(1).saturating_add(offset.max(0));
    if usize::try_from(start).is_ok_and(|start| start >= total) && !(total == 0 && start == 0) {
        let count = if total == 1 { "1 line".to_owned() } else { format!("{total} lines") };
        return Err(wrong(format!("the file has {count}")));
    }
    Ok(slice(total, start, Some(last.saturating_sub(first).saturating_add(1))))
}

/// Which of `total` lines are meant, from 0; `lines` counted from the offset, or back from the end when
/// negative.
fn slice(total: usize, offset: i64, lines: Option<i64>) -> Range<usize> {
    let total = i64::try_from(total).unwrap_or(i64::MAX);
    let start = if offset < 0 { total.saturating_add(offset).max(0) } else { offset.min(total) };
    let end = match lines.map(|lines| start.saturating_add(lines)) {
        None => total,
        Some(end) if end < 0 => total.saturating_add(end).max(0),
        Some(end) => end.min(total),
    };
    let (start, end) = (usize::try_from(start).unwrap_or(0), usize::try_from(end).unwrap_or(0));
    start..end.max(start)
}

/// Lines of a text as they are, or each with its number and the mark. Numbers can make much of short lines,
/// so the result may be no larger than a file that is read.
pub(crate) fn show(
    path: &str,
    text: &str,
    lines: Range<usize>,
    mark: Option<&str>,
) -> Result<String, ToolError> {
    let mut shown = String::new();
    for (index, line) in text.split_inclusive('\n').enumerate().take(lines.end).skip(lines.start) {
        match mark {
            None => shown.push_str(line),
            Some(mark) => {
                let line = line.strip_suffix('\n').unwrap_or(line);
                let shown_whole = mark == INSPECTS;
                let line = if shown_whole { line } else { line.strip_suffix('\r').unwrap_or(line) };
                let newline = if index == lines.start { "" } else { "\n" };
                // Writing to a text cannot fail.
                let _ = write!(shown, "{newline}{}{mark}{line}", index + 1);
            }
        }
        if mark.is_some() && shown.len() > MAX_READ_FILE {
            let message = format!("{path} with line numbers is larger than {} MiB", MAX_READ_FILE >> 20);
            return Err(ToolError::of(ErrorKind::OutputLimit, message).hint("read fewer lines"));
        }
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_that_means_no_line_is_a_mistake() {
        assert_eq!(range(4, 2, 3, 0).unwrap(), 1..3);
        assert_eq!(range(4, 3, 9, 0).unwrap(), 2..4);
        assert_eq!(range(0, 1, 9, 0).unwrap(), 0..0);
        for (first, last, offset) in [(3, 2, 0), (9, 10, 0), (0, 1, 0), (-2, -1, 0), (2, 3, 9)] {
            let error = range(4, first, last, offset).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Parsing, "[{first}, {last}]");
        }
    }

    #[test]
    fn a_slice_counts_from_either_end() {
        let shown = |offset, lines| show("f", "a\nb\nc", slice(3, offset, lines), None).unwrap();
        for (offset, lines, wanted) in [
            (0, None, "a\nb\nc"),
            (0, Some(0), ""),
            (0, Some(-1), "a\nb\n"),
            (-2, Some(1), "b\n"),
            (-100, Some(2), "a\nb\n"),
            (9, None, ""),
            (1, Some(i64::MAX), "b\nc"),
            (i64::MIN, Some(i64::MIN), ""),
        ] {
            assert_eq!(shown(offset, lines), wanted, "{offset} {lines:?}");
        }
    }

    #[test]
    fn numbers_do_not_make_more_than_a_file_that_can_be_read() {
        let text = "\n".repeat(1 << 20);
        assert_eq!(show("f", &text, 0..2, Some(": ")).unwrap(), "1: \n2: ");
        let error = show("f", &text, 0..text.len(), Some(&"-".repeat(1000))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutputLimit);
    }
}
