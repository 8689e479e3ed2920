//! `read_file` and `smart_read_file`: a range of lines or pages, and where in the file it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwright_core::{ErrorKind, RootedPath, ToolContext, ToolError, ToolOutput, tool};

use super::outline::{self, Overview, TextSection};
use super::pages::{self, PageOptions};
use super::picture::{self, Picture, PictureOptions};
use super::place;
use crate::options::{Call, Options, within_time};
use crate::{decode, document, paths};

/// The most lines of one read.
const MOST_LINES: i64 = 250;
/// How many lines a start without an end gives.
const FROM_START: i64 = 100;
/// The most characters of one read.
pub(super) const MOST_CHARACTERS: usize = 120_000;
/// JSON that is longer is cut when all of it is asked for: its texts to so many characters, its lists to so
/// many items.
const LONG_JSON: usize = 40_000;
const LONG_TEXT: usize = 200;
const LONG_LIST: usize = 20;

/// How much of a file is read.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
pub(super) enum Strategy {
    #[default]
    Partial,
    Auto,
    Full,
    Progressive,
    Overview,
}

impl Strategy {
    /// What it comes to for a text of so many characters.
    pub(super) fn decided(self, characters: usize) -> Strategy {
        match (self, characters) {
            (Strategy::Auto, ..10_000) => Strategy::Full,
            (Strategy::Auto, ..100_000) => Strategy::Partial,
            (Strategy::Auto, ..500_000) => Strategy::Progressive,
            (Strategy::Auto, _) => Strategy::Overview,
            (decided, _) => decided,
        }
    }
}

/// Read lines of a text file, at most 250 at once, pages of a document, or look at a picture.
// What is told is true: a file that is shown whole is not called partial, and the range is that of the lines
// shown.
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub(crate) async fn read_file(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file to read.
    #[tool(alias = "file_path")]
    path: RootedPath,
    /// The first line, counted from 1. Left out, the first 250 lines are read.
    start_line: Option<i64>,
    /// The last line; at most 250 lines are read at once.
    end_line: Option<i64>,
    #[tool(
        default,
        description = "What to read without a start: partial is the first 250 lines or 5 pages, full all of it, progressive \
                       the titles of its\nsections, overview also their lines; auto decides by the length."
    )]
    strategy: Strategy,
    #[tool(
        description = "How the text is stored, for example utf-8 or latin-1; found out when left out. What does not fit it \
                       is read as\nlatin-1."
    )]
    encoding: Option<String>,
    /// Also tell which sections the file has.
    #[tool(default)]
    include_overview: bool,
    /// Make a picture smaller that has more pixels.
    max_pixels: Option<u64>,
    /// Whose tokens a picture is counted in: openai, anthropic, google or xai.
    provider: Option<String>,
    /// How closely a picture will be looked at: high or low.
    detail: Option<String>,
    /// Of a document such as a PDF: the first page, counted from 1. Left out, the first 5 are read.
    start_page: Option<i64>,
    /// The last page; at most 20 are read at once.
    end_page: Option<i64>,
    /// Also give the pictures of a document, in reading order.
    #[tool(default)]
    extract_images: bool,
    /// The most pictures of a page.
    #[tool(default = 10)]
    max_images_per_page: i64,
) -> Result<ToolOutput, ToolError> {
    let look = PictureOptions {
        most_pixels: max_pixels.unwrap_or(picture::MOST_PIXELS).clamp(1, picture::MOST_PIXELS),
        vendor: provider.unwrap_or_else(|| "generic".to_owned()),
        low: detail.as_deref() == Some("low"),
    };
    let max_images = crate::options::count("max_images_per_page", max_images_per_page)?;
    let pages = PageOptions { start_page, end_page, extract_images, max_images };
    let lines = LineOptions { start_line, end_line, encoding };
    let call = &Call::new(context, options);
    read(call, place(&path)?, lines, pages, look, strategy, include_overview).await
}

/// Read any file as it suits a model: text, pages of a document with their pictures, or a picture.
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub(crate) async fn smart_read_file(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file to read.
    #[tool(alias = "file_path")]
    path: RootedPath,
) -> Result<ToolOutput, ToolError> {
    let look = PictureOptions { most_pixels: picture::MOST_PIXELS, vendor: "generic".to_owned(), low: false };
    let pages = PageOptions { start_page: None, end_page: None, extract_images: true, max_images: 10 };
    let lines = LineOptions { start_line: None, end_line: None, encoding: None };
    let call = &Call::new(context, options);
    read(call, place(&path)?, lines, pages, look, Strategy::Partial, false).await
}

/// Which lines of a text.
struct LineOptions {
    start_line: Option<i64>,
    end_line: Option<i64>,
    encoding: Option<String>,
}

async fn read(
    call: &Call<'_>,
    path: String,
    lines: LineOptions,
    pages: PageOptions,
    look: PictureOptions,
    strategy: Strategy,
    include_overview: bool,
) -> Result<ToolOutput, ToolError> {
    let LineOptions { start_line, end_line, encoding } = lines;
    let range = range(start_line, end_line)?;
    let bytes = paths::read(call, &path).await?;
    if let Some(picture) = Picture::of(&path, &bytes) {
        return picture?.show(path, bytes, look).await;
    }
    if document::is_document(&bytes, &path) {
        return pages::read(call, path, &bytes, &pages, &look, strategy, include_overview).await;
    }
    let (text, encoding) = text(&path, &bytes, encoding.as_deref())?;
    let overview = include_overview.then(|| outline::overview(&path, &text));
    let strategy = match start_line {
        None => strategy.decided(text.chars().count()),
        Some(_) => Strategy::Partial,
    };
    let shown = match strategy {
        Strategy::Partial | Strategy::Auto => show(path, &text, range)?,
        Strategy::Full => whole(path, &text)?,
        Strategy::Progressive => outlined(path, &text, |section| section.title.clone()),
        Strategy::Overview => outlined(path, &text, |section| section.to_string()),
    };
    let shown = Shown { encoding, file_size: bytes.len(), overview, ..shown };
    let output = ToolOutput::serialize(&shown)?;
    Ok(match shown.note() {
        Some(note) => output.with_metadata("status", "partial").with_metadata("message", note),
        None => output,
    })
}

/// The text of a file and the name of its encoding.
pub(super) fn text(path: &str, bytes: &[u8], encoding: Option<&str>) -> Result<(String, String), ToolError> {
    if let Some(kind) = no_text(bytes) {
        return Err(ToolError::of(ErrorKind::UnicodeDecode, format!("{path} is {kind}, not text")));
    }
    let (text, found) = match encoding.map(|encoding| (encoding, decode::as_named(bytes, encoding))) {
        Some((encoding, Ok((text, _)))) => return Ok((text, encoding.to_owned())),
        Some((_, Err(error))) if error.kind() != ErrorKind::UnicodeDecode => return Err(error),
        Some(_) => decode::as_named(bytes, "latin-1")?,
        None => decode::guess(bytes),
    };
    Ok((text, found.to_owned()))
}

/// What a file is that begins like this, when it is certainly no text.
fn no_text(bytes: &[u8]) -> Option<&'static str> {
    let starts: [(&[u8], &str); 3] =
        [(b"%PDF-", "a PDF document"), (b"PK\x03\x04", "a ZIP archive"), (b"\x7fELF", "a program")];
    starts.into_iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, kind)| kind)
}

/// The lines to read, counted from 1 and both included. An end alone means nothing, as there.
fn range(start: Option<i64>, end: Option<i64>) -> Result<(i64, i64), ToolError> {
    let Some(start) = start else { return Ok((1, MOST_LINES)) };
    let start = start.max(1);
    let end = match end {
        None => start.saturating_add(FROM_START),
        // As there.
        Some(0) => start.saturating_add(MOST_LINES - 1),
        Some(end) => end,
    };
    let lines = end.saturating_sub(start).saturating_add(1);
    if lines > MOST_LINES {
        let message =
            format!("lines {start} to {end} are {lines} lines; one read gives at most {MOST_LINES}");
        let hint = format!("read from {start} to {}", start.saturating_add(MOST_LINES - 1));
        return Err(ToolError::invalid(message).hint(hint));
    }
    Ok((start, end))
}

/// The result of a read.
#[derive(Default, Serialize)]
struct Shown {
    content: String,
    path: String,
    /// Lines are missing.
    partial: bool,
    encoding: String,
    /// The lines that are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_range: Option<[usize; 2]>,
    total_lines: usize,
    file_size: usize,
    character_count: usize,
    estimated_tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    overview: Option<Overview>,
    /// The sections, where nothing else is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    structure: Option<Overview>,
}

/// All lines; of long JSON what there is of everything, with its texts and lists cut.
fn whole(path: String, text: &str) -> Result<Shown, ToolError> {
    let json = path.ends_with(".json") && text.chars().nth(LONG_JSON).is_some();
    let Some(value) = json.then(|| serde_json::from_str(text).ok()).flatten() else {
        return show(path, text, (1, i64::MAX));
    };
    let shown = show(path, &format!("{:#}", shortened(value)), (1, i64::MAX))?;
    Ok(Shown { partial: true, line_range: None, total_lines: count_lines(text), ..shown })
}

fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) => text.chars().take(LONG_TEXT).collect::<String>().into(),
        Value::Array(items) => items.into_iter().take(LONG_LIST).map(shortened).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, shortened(value))).collect(),
        other => other,
    }
}

/// The sections in place of the text.
fn outlined(path: String, text: &str, tell: impl Fn(&TextSection) -> String) -> Shown {
    let structure = outline::overview(&path, text);
    let content = structure.sections.iter().map(|section| format!("- {}", tell(section)));
    let content = content.collect::<Vec<_>>().join("\n");
    let character_count = content.chars().count();
    Shown {
        content,
        path,
        partial: true,
        total_lines: count_lines(text),
        character_count,
        estimated_tokens: character_count / 4,
        structure: Some(structure),
        ..Shown::default()
    }
}

fn count_lines(text: &str) -> usize {
    if text.is_empty() { 0 } else { text.split('\n').count() }
}

fn show(path: String, text: &str, (start, end): (i64, i64)) -> Result<Shown, ToolError> {
    let total_lines = count_lines(text);
    let first = usize::try_from(start - 1).unwrap_or(usize::MAX).min(total_lines);
    let last = usize::try_from(end).unwrap_or(0).min(total_lines);
    let lines = text.split('\n').take(last).skip(first);
    let shown = last.saturating_sub(first);
    let content = lines.collect::<Vec<_>>().join("\n");
    let character_count = content.chars().count();
    if character_count > MOST_CHARACTERS {
        let message = format!(
            "lines {} to {last} are {character_count} characters; one read gives at most {MOST_CHARACTERS}",
            first + 1
        );
        return Err(ToolError::of(ErrorKind::OutputLimit, message).hint("read fewer lines"));
    }
    Ok(Shown {
        content,
        path,
        partial: shown < total_lines,
        line_range: (shown > 0).then_some([first + 1, last]),
        total_lines,
        character_count,
        estimated_tokens: character_count / 4,
        ..Shown::default()
    })
}

impl Shown {
    /// What to say of a read that is not the whole file.
    fn note(&self) -> Option<String> {
        let shown = match self.line_range {
            _ if self.structure.is_some() => {
                "the titles of its sections, which read_section reads".to_owned()
            }
            None if !self.content.is_empty() => "JSON with long texts and lists cut".to_owned(),
            None => "none of the lines".to_owned(),
            Some([first, last]) => format!("lines {first} to {last}"),
        };
        self.partial.then(|| {
            format!(
                "This is a part of the file: {shown}, of {}. Read on with start_line and end_line, at most {MOST_LINES} \
                 lines at once, or look for a text with search_files.",
                self.total_lines
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_what_it_says() {
        assert_eq!(range(None, Some(2)).unwrap(), (1, 250));
        assert_eq!(range(Some(10), None).unwrap(), (10, 110));
        assert_eq!(range(Some(-4), Some(2)).unwrap(), (1, 2));
        assert_eq!(range(Some(5), Some(3)).unwrap(), (5, 3));
        assert!(range(Some(1), Some(251)).is_err() && range(Some(i64::MIN), Some(i64::MAX)).is_err());
        assert_eq!(range(Some(i64::MAX), None).unwrap(), (i64::MAX, i64::MAX));
    }

    #[test]
    fn a_file_that_is_shown_whole_is_not_called_partial() {
        let whole = show("f".to_owned(), "a\nb\n", (1, 250)).unwrap();
        assert_eq!((whole.partial, whole.line_range, whole.note()), (false, Some([1, 3]), None));
        let past = show("f".to_owned(), "a\nb\n", (9, 12)).unwrap();
        assert!(past.note().unwrap().contains("none of the lines, of 3"));
    }
}
