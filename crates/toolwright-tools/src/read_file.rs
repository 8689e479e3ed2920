//! `read_file`: lines of a text file.

use schemars::JsonSchema;
use serde::Deserialize;
use toolwright_core::{ErrorKind, ToolDef, ToolError, ToolOutput};

use crate::options::{Call, Effect, Options, count, define, finish};
use crate::{decode, paths};

#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// The file to read.
    path: String,
    /// How many lines, all of them when left out; a negative number leaves that many out at the end. Or the first and
    /// the last line, counted from 1: [3, 5].
    lines: Option<Lines>,
    /// How many lines to pass over first; a negative number counts from the end.
    #[serde(default)]
    offset: i64,
    /// Put the number before each line.
    #[serde(default)]
    show_line_numbers: bool,
    /// How the text is stored when not as UTF-8, for example latin-1.
    encoding: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
enum Lines {
    Count(i64),
    Range([i64; 2]),
}

/// The tool `read_file`. `file_path` and `filename` are accepted for `path`, `limit` for `lines`.
pub fn read_file(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "read_file",
        "Read a text file, or some of its lines.",
        |call: Call, ReadFile { path, lines, offset, show_line_numbers, encoding }| async move {
            let text = match encoding {
                Some(encoding) => decode::as_named(&paths::read(&call, &path).await?, &encoding)?.0,
                None => read(&call, &path).await?,
            };
            let all: Vec<&str> = text.split_inclusive('\n').collect();
            let shown = match lines {
                None => slice(&all, offset, None),
                Some(Lines::Count(count)) => slice(&all, offset, Some(count)),
                Some(Lines::Range([first, last])) => {
                    let first = first.max(1);
                    let count = last.saturating_sub(first).saturating_add(1).max(0);
                    slice(&all, first.saturating_sub(1).saturating_add(offset.max(0)), Some(count))
                }
            };
            let left = all.len() - (shown.0 + shown.1.len()).min(all.len());
            let text = if show_line_numbers { with_numbers(shown, ": ") } else { shown.1.concat() };
            Ok::<_, ToolError>(telling(text, left, all.len()))
        },
    );
    let aliases = [("file_path", "path"), ("filename", "path"), ("limit", "lines")];
    finish(tool, "files", Effect::Reads, &aliases)
}

#[derive(Deserialize, JsonSchema)]
struct ReadNumbered {
    /// The file to read.
    file_path: String,
    /// How many lines to pass over first.
    #[serde(default)]
    offset: i64,
    /// How many lines; all of them when left out.
    limit: Option<i64>,
}

/// `read_file` as Inspect has it: every line with its number and a tab.
pub(crate) fn read_file_numbered(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "read_file",
        "Read a text file, or some of its lines, with line numbers.",
        |call: Call, ReadNumbered { file_path, offset, limit }| async move {
            let limit = limit.map(|limit| count("limit", limit)).transpose()?;
            let text = read(&call, &file_path).await.map_err(|error| match error.kind() {
                // There, a file that cannot be read is the tool's own error.
                ErrorKind::FileNotFound | ErrorKind::IsADirectory | ErrorKind::Permission => {
                    error.with_kind(ErrorKind::Unknown)
                }
                _ => error,
            })?;
            let all: Vec<&str> = text.split_inclusive('\n').collect();
            let start = usize::try_from(offset).unwrap_or(0).min(all.len());
            let lines = all.get(start..).unwrap_or_default();
            let end = limit.map_or(lines.len(), |limit| limit.min(lines.len()));
            let text = with_numbers((start, lines.get(..end).unwrap_or_default()), "\t");
            Ok::<_, ToolError>(telling(text, lines.len() - end, all.len()))
        },
    );
    finish(tool, "files", Effect::Reads, &[("path", "file_path"), ("lines", "limit")])
}

/// The lines, and beside them that there are more.
fn telling(text: String, left: usize, all: usize) -> ToolOutput {
    match left {
        0 => ToolOutput::text(text),
        left => ToolOutput::text(text).with_metadata("lines_left", left).with_metadata("total_lines", all),
    }
}

pub(crate) async fn read(call: &Call, path: &str) -> Result<String, ToolError> {
    let outcome = paths::read_text(call, path).await;
    outcome.map_err(|error| match error.kind() {
        ErrorKind::OutputLimit => error.hint("read a part of it with `bash`: head, tail or sed"),
        ErrorKind::UnicodeDecode => {
            error.hint("the file is not text; look at it with `bash`: file, xxd or strings")
        }
        _ => error,
    })
}

/// The lines of a slice and where it starts; `lines` counted from there, or back from the end when negative.
fn slice<'a, 'b>(all: &'b [&'a str], offset: i64, lines: Option<i64>) -> (usize, &'b [&'a str]) {
    let total = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let start = if offset < 0 { total.saturating_add(offset).max(0) } else { offset.min(total) };
    let end = match lines.map(|lines| start.saturating_add(lines)) {
        None => total,
        Some(end) if end < 0 => total.saturating_add(end).max(0),
        Some(end) => end.min(total),
    };
    let (start, end) = (usize::try_from(start).unwrap_or(0), usize::try_from(end).unwrap_or(0));
    (start, all.get(start..end.max(start)).unwrap_or_default())
}

fn with_numbers((start, lines): (usize, &[&str]), mark: &str) -> String {
    let line = |(index, line): (usize, &&str)| {
        let line = line.strip_suffix('\n').unwrap_or(line);
        format!("{}{mark}{}", start + index + 1, line.strip_suffix('\r').unwrap_or(line))
    };
    lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_counts_from_either_end() {
        let all = ["a\n", "b\n", "c"];
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
            assert_eq!(slice(&all, offset, lines).1.concat(), wanted, "{offset} {lines:?}");
        }
    }
}
