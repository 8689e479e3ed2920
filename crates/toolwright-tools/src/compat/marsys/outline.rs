//! `get_file_structure` and `read_section`: a file as paragraphs, a document as its headings, and one of
//! them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolwright_core::{RootedPath, Structured, ToolContext, ToolError, ToolOutput, tool};

use super::picture::Picture;
use super::{pages, place, read};
use crate::options::{Call, Options, within_time};
use crate::{document, paths};

/// The longest title, in characters.
const TITLE: usize = 50;
/// The most sections in a result.
const MOST: usize = 1000;

/// Lines that stand together, between blank ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Section")]
pub(super) struct TextSection {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) level: u8,
    /// The first line, counted from 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) start_line: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    end_line: usize,
    /// The pages of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start_page: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end_page: Option<u32>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) children: Vec<TextSection>,
}

impl TextSection {
    pub(super) fn new(id: String, title: String, level: u8) -> TextSection {
        TextSection {
            id,
            title,
            level,
            start_line: 0,
            end_line: 0,
            start_page: None,
            end_page: None,
            metadata: Map::new(),
            children: Vec::new(),
        }
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl std::fmt::Display for TextSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.start_page, self.end_page) {
            (Some(start), Some(end)) => write!(f, "{} (pages {start}-{end})", self.title),
            _ => write!(f, "{} (lines {}-{})", self.title, self.start_line, self.end_line),
        }
    }
}

/// The paragraphs of a text, one after another: a large file has more of them than fit in memory.
pub(super) fn sections(text: &str) -> impl Iterator<Item = TextSection> {
    let mut lines = text.lines().enumerate().peekable();
    let mut count = 0;
    std::iter::from_fn(move || {
        let (at, first) = lines.find(|(_, line)| !line.trim().is_empty())?;
        let mut end_line = at + 1;
        while lines.next_if(|(_, line)| !line.trim().is_empty()).is_some() {
            end_line += 1;
        }
        count += 1;
        let section = TextSection::new(format!("paragraph:{count}"), title(first.trim()), 1);
        Some(TextSection { start_line: at + 1, end_line, ..section })
    })
}

pub(super) fn title(line: &str) -> String {
    match line.char_indices().nth(TITLE) {
        Some((at, _)) => format!("{}...", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// What a file is called by its ending.
fn kind(path: &str) -> &'static str {
    match path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending) {
        Some("py") => "python",
        Some("js" | "jsx" | "mjs") => "javascript",
        Some("ts" | "tsx") => "typescript",
        Some("rs") => "rust",
        Some("json") => "json",
        Some("md" | "markdown") => "markdown",
        Some("yaml" | "yml") => "yaml",
        Some("html" | "htm") => "html",
        Some("csv") => "csv",
        _ => "text",
    }
}

/// The kind of a file and its sections.
#[derive(Serialize, JsonSchema)]
pub(super) struct Overview {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) sections: Vec<TextSection>,
    pub(super) metadata: Map<String, Value>,
}

pub(super) fn overview(path: &str, text: &str) -> Overview {
    let mut all = sections(text);
    let sections: Vec<TextSection> = all.by_ref().take(MOST).collect();
    let total = sections.len() + all.count();
    let mut metadata = Map::new();
    if text.is_empty() {
        metadata.insert("empty_file".to_owned(), true.into());
    } else {
        metadata.insert("total_paragraphs".to_owned(), total.into());
        metadata.insert("total_lines".to_owned(), text.split('\n').count().into());
    }
    if total > MOST {
        metadata.insert("sections_left_out".to_owned(), (total - MOST).into());
    }
    Overview { kind: kind(path).to_owned(), sections, metadata }
}

/// A picture is one section.
fn of_picture(path: &str, bytes: &[u8], picture: Picture) -> Overview {
    let name = path.rsplit('/').next().unwrap_or_default();
    let about = json!({
        "format": picture.format(),
        "width": picture.width,
        "height": picture.height,
        "total_pixels": picture.pixels(),
        "megapixels": picture.pixels() as f64 / f64::from(1 << 20),
    });
    let section = TextSection {
        start_line: 1,
        end_line: 1,
        metadata: about.as_object().cloned().unwrap_or_default(),
        ..TextSection::new("image".to_owned(), format!("Image: {name}"), 1)
    };
    let metadata = json!({
        "format": picture.format().to_lowercase(),
        "dimensions": [picture.width, picture.height],
        "file_size": bytes.len(),
    });
    let metadata = metadata.as_object().cloned().unwrap_or_default();
    Overview { kind: "image".to_owned(), sections: vec![section], metadata }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Told")]
struct OutlineReport {
    #[serde(flatten)]
    overview: Overview,
    /// The titles, one a line.
    outline: String,
}

/// Tell which sections a file has and where. Read one of them with read_section.
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub(crate) async fn get_file_structure(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file to look at.
    #[tool(alias = "file_path")]
    path: RootedPath,
) -> Result<Structured<OutlineReport>, ToolError> {
    let path = place(&path)?;
    let call = &Call::new(context, options);
    let bytes = paths::read(call, &path).await?;
    let overview = match Picture::of(&path, &bytes) {
        Some(picture) => of_picture(&path, &bytes, picture?),
        None if document::is_document(&bytes, &path) => {
            pages::overview(&pages::all_of(call, &path, &bytes).await?)
        }
        None => overview(&path, &read::text(&path, &bytes, None)?.0),
    };
    let outline = titles(&overview.sections, &|section| section.title.clone());
    Ok(Structured(OutlineReport { overview, outline }))
}

/// The sections, one a line, those below another indented.
pub(super) fn titles(sections: &[TextSection], tell: &dyn Fn(&TextSection) -> String) -> String {
    fn add(
        out: &mut Vec<String>,
        sections: &[TextSection],
        depth: usize,
        tell: &dyn Fn(&TextSection) -> String,
    ) {
        for section in sections {
            out.push(format!("{}- {}", "  ".repeat(depth), tell(section)));
            add(out, &section.children, depth + 1, tell);
        }
    }
    let mut out = Vec::new();
    add(&mut out, sections, 0, tell);
    out.join("\n")
}

/// Read one section of a text file or a document.
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub(crate) async fn read_section(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file.
    #[tool(alias = "file_path")]
    path: RootedPath,
    /// Which section, as get_file_structure names it, for example paragraph:2.
    section_id: String,
) -> Result<ToolOutput, ToolError> {
    let path = place(&path)?;
    let call = &Call::new(context, options);
    let bytes = paths::read(call, &path).await?;
    if document::is_document(&bytes, &path) {
        return pages::section(&pages::all_of(call, &path, &bytes).await?, &path, &section_id);
    }
    let (text, _) = read::text(&path, &bytes, None)?;
    let mut count = 0;
    let found = sections(&text).inspect(|_| count += 1).find(|section| section.id == section_id);
    let TextSection { title, start_line, end_line, .. } = found.ok_or_else(|| {
        let error = ToolError::new(format!("{path} has no section `{}`", section_id.escape_debug()));
        error.hint(match count {
            0 => "the file is empty".to_owned(),
            count => format!("its sections are paragraph:1 to paragraph:{count}"),
        })
    })?;
    let mut content = String::new();
    for (at, line) in text.lines().enumerate().take(end_line).skip(start_line - 1) {
        if at + 1 > start_line {
            content.push('\n');
        }
        content.push_str(line);
    }
    let output = ToolOutput::text(content).with_metadata("title", title);
    Ok(output.with_metadata("line_range", vec![start_line, end_line]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_lines_between_blank_ones() {
        let found: Vec<TextSection> =
            sections("\n\nimport os\n\ndef f(x):\n    return x\n \t\nclass K:\n    pass\n").collect();
        let told: Vec<_> =
            found.iter().map(|s| (s.id.as_str(), s.title.as_str(), s.start_line, s.end_line)).collect();
        assert_eq!(
            told,
            [
                ("paragraph:1", "import os", 3, 3),
                ("paragraph:2", "def f(x):", 5, 6),
                ("paragraph:3", "class K:", 8, 9)
            ]
        );
        assert_eq!(sections(" \n\n").count(), 0);
        assert_eq!(title(&"é".repeat(60)), format!("{}...", "é".repeat(50)));
    }
}
