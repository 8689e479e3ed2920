//! Documents as Markdown for models and people, and as JSON for programs.

use std::fmt::Write as _;

use crate::model::{Block, Content, Document, Figure, Unit};

/// What the Markdown of a document shows beside its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct MarkdownOptions {
    /// A line at the beginning of each page.
    pub page_marks: bool,
    /// Running heads and feet.
    pub furniture: bool,
    /// Hidden passages, marked as such; otherwise only their number is given.
    pub hidden: bool,
}

/// A document as Markdown.
pub fn markdown(document: &Document, options: &MarkdownOptions) -> String {
    let mut out = String::new();
    let mut page = 0;
    for block in &document.blocks {
        let Some(text) = self::block(document, block, options) else { continue };
        if options.page_marks && block.page != page {
            separate(&mut out);
            let _ = write!(out, "--- {} {} ---", capital(document.info.unit), block.page);
        }
        page = block.page;
        if !text.is_empty() {
            separate(&mut out);
            out.push_str(&text);
        }
    }
    if document.hidden > 0 && !options.hidden {
        separate(&mut out);
        out.push_str(&hidden_note(document.hidden));
    }
    if let Some(stopped) = &document.stopped {
        separate(&mut out);
        let _ = write!(out, "[{stopped}]");
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// What the Markdown says of hidden passages that are left out of it.
pub fn hidden_note(count: usize) -> String {
    format!("[{count} hidden {} left out]", if count == 1 { "passage" } else { "passages" })
}

/// A block of a document as Markdown, without a line break at its end; `None` for what the options leave out.
pub fn block(document: &Document, block: &Block, options: &MarkdownOptions) -> Option<String> {
    let mut text = String::new();
    match &block.content {
        Content::Heading { level, text: title } => {
            text.extend(std::iter::repeat_n('#', usize::from(*level).clamp(1, 6)));
            let _ = write!(text, " {}", one_line(title));
        }
        Content::Paragraph { text: words } => text.push_str(words.trim_end()),
        Content::List { items } => {
            let lines = items.iter().map(|item| {
                let mark = item.mark.as_deref().unwrap_or("-");
                let indent = "  ".repeat(usize::from(item.depth));
                format!("{indent}{mark} {}", one_line(&item.text))
            });
            text = lines.collect::<Vec<_>>().join("\n");
        }
        Content::Table { rows, header } => table(&mut text, rows, *header),
        Content::Figure { figure } => text = placeholder(document.figures.get(*figure)?),
        Content::Code { language, text: code } => {
            let fence = "`".repeat(3.max(longest_run(code) + 1));
            let language = language.as_deref().unwrap_or_default();
            let _ = write!(text, "{fence}{language}\n{}\n{fence}", code.trim_end_matches('\n'));
        }
        Content::Footnote { mark, text: note } => {
            let mark = if mark.is_empty() { "*" } else { mark };
            let _ = write!(text, "[^{mark}]: {}", one_line(note));
        }
        Content::Header { text: words } | Content::Footer { text: words } => {
            text = options.furniture.then(|| one_line(words))?;
        }
        Content::Comment { author, text: words } => {
            text = match author {
                Some(author) => format!("> [comment by {}] {}", one_line(author), one_line(words)),
                None => format!("> [comment] {}", one_line(words)),
            };
        }
        Content::Hidden { text: words, .. } => {
            text = options.hidden.then(|| format!("> [hidden text] {}", one_line(words)))?;
        }
    }
    Some(text)
}

/// The words of a document without any marks.
pub fn plain_text(document: &Document) -> String {
    let mut out = String::new();
    for block in &document.blocks {
        let skipped = matches!(
            block.content,
            Content::Hidden { .. } | Content::Header { .. } | Content::Footer { .. } | Content::Figure { .. }
        );
        let text = block.content.text();
        if skipped || text.is_empty() {
            continue;
        }
        separate(&mut out);
        out.push_str(&text);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// The outline, one line an entry, with its page.
pub fn outline(document: &Document) -> String {
    let mut out = String::new();
    for entry in &document.outline {
        let indent = "  ".repeat(usize::from(entry.level).saturating_sub(1).min(8));
        let _ = write!(out, "{indent}{}", one_line(&entry.title));
        if entry.page > 0 && document.info.total > 1 {
            let _ = write!(out, "  ({} {})", document.info.unit.name(), entry.page);
        }
        out.push('\n');
    }
    out
}

/// What stands in the text for a figure.
pub fn placeholder(figure: &Figure) -> String {
    let mut text = format!("[figure {}: {}x{}", figure.id, figure.width, figure.height);
    if let Some(caption) = &figure.caption {
        let caption: String = one_line(caption).chars().take(200).collect();
        let _ = write!(text, ", {caption}");
    }
    text.push(']');
    text
}

fn separate(out: &mut String) {
    if !out.is_empty() {
        out.push_str("\n\n");
    }
}

fn capital(unit: Unit) -> &'static str {
    match unit {
        Unit::Page => "Page",
        Unit::Slide => "Slide",
        Unit::Sheet => "Sheet",
        Unit::Cell => "Cell",
        Unit::Chapter => "Chapter",
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for ch in text.chars() {
        run = if ch == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// A table with pipes; without a header its first row is empty, as the form demands one.
fn table(out: &mut String, rows: &[Vec<String>], header: bool) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    if columns == 0 {
        return;
    }
    let line = |out: &mut String, row: &[String]| {
        out.push('|');
        for column in 0..columns {
            let cell = row.get(column).map(String::as_str).unwrap_or_default();
            let cell = one_line(cell).replace('|', "\\|");
            let _ = write!(out, " {cell} |");
        }
    };
    let (first, rest) = match rows.split_first() {
        Some((first, rest)) if header => (first.as_slice(), rest),
        _ => (&[] as &[String], rows),
    };
    line(out, first);
    out.push_str("\n|");
    out.push_str(&" --- |".repeat(columns));
    for row in rest {
        out.push('\n');
        line(out, row);
    }
}
