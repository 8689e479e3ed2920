//! OpenDocument: texts, presentations and (for `sheet`) the same tree.

use super::package::Package;
use super::xml::XmlTree;
use crate::error::DocumentError;
use crate::model::{Block, Content, HiddenReason, Info, ListItem, Page, Stop, Unit};
use crate::options::{ReadingEnd, ReadingState};

/// How deep tables, frames and lists may stand inside each other.
const MAX_DEPTH: usize = 60;

/// How often a repeated cell, row or space counts.
const MAX_REPEATS: usize = 1_000;

pub(crate) fn read(bytes: Vec<u8>, reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let mut package = Package::open(bytes)?;
    let tree = content(&mut package, reading)?;
    let mut info = super::about(&mut package, "meta.xml", reading);
    let body = tree.find(tree.root(), "body").unwrap_or_else(|| tree.root());
    let slides: Vec<u32> = match tree.child(body, "presentation") {
        Some(at) => tree.children(at).iter().copied().filter(|child| tree.name(*child) == "page").collect(),
        None => Vec::new(),
    };
    info.unit = if slides.is_empty() { Unit::Page } else { Unit::Slide };
    let parts = if slides.is_empty() { vec![body] } else { slides };
    info.total = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    reading.check_range(info.unit.name(), info.total)?;
    for (number, part) in (1u32..).zip(parts) {
        if !reading.wants(number) {
            continue;
        }
        let mut writer = OdtWriter {
            tree: &tree,
            package: &mut package,
            reading,
            page: Page { number, ..Page::default() },
            slide: info.unit == Unit::Slide,
        };
        writer.blocks(part, 0);
        let page = writer.page;
        match reading.give(page) {
            Ok(()) => {}
            Err(ReadingEnd::Enough) => break,
            Err(ReadingEnd::Limit(reason)) => {
                info.stopped = Some(Stop { page: number, reason });
                break;
            }
        }
    }
    Ok(info)
}

/// The content of a package; encrypted ones say so in their manifest.
pub(super) fn content(
    package: &mut Package,
    reading: &mut ReadingState<'_>,
) -> Result<XmlTree, DocumentError> {
    if let Ok(Some(manifest)) = package.xml("META-INF/manifest.xml", reading)
        && manifest.find(manifest.root(), "encryption-data").is_some()
    {
        return Err(DocumentError::encrypted(
            "the document is encrypted, which is not supported for OpenDocument",
        )
        .with_hint("save it without a password"));
    }
    package
        .xml("content.xml", reading)?
        .ok_or_else(|| DocumentError::damaged("the package has no OpenDocument content in it"))
}

struct OdtWriter<'w, 'r, 'o> {
    tree: &'w XmlTree,
    package: &'w mut Package,
    reading: &'r mut ReadingState<'o>,
    page: Page,
    slide: bool,
}

/// What a paragraph leaves behind.
#[derive(Default)]
struct Rest {
    notes: Vec<(String, String)>,
    comments: Vec<(Option<String>, String)>,
    frames: Vec<u32>,
    hidden: Vec<String>,
}

impl OdtWriter<'_, '_, '_> {
    fn push(&mut self, content: Content) {
        self.page.blocks.push(Block::new(content));
    }

    fn blocks(&mut self, at: u32, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let tree = self.tree;
        for child in tree.children(at).iter().copied() {
            match tree.name(child) {
                "h" => {
                    let level = tree
                        .attribute(child, "outline-level")
                        .and_then(|level| level.parse().ok())
                        .unwrap_or(1);
                    self.paragraph(child, Some(level), depth);
                }
                "p" => self.paragraph(child, None, depth),
                "list" => {
                    let mut items = Vec::new();
                    let mut rest = Rest::default();
                    self.list(child, 0, &mut items, &mut rest);
                    if !items.is_empty() {
                        self.push(Content::List { items });
                    }
                    self.leave(rest, depth);
                }
                "table" => self.table(child, depth),
                "frame" => self.frame(child, depth),
                "notes" => {
                    let text = self.plain(child);
                    if !text.is_empty() {
                        self.push(Content::Comment { author: Some("speaker notes".to_owned()), text });
                    }
                }
                "tracked-changes" => {
                    for deletion in tree.all(child, "deletion") {
                        let author = tree.find(deletion, "creator").map(|at| tree.text(at));
                        let text: Vec<String> = tree
                            .children(deletion)
                            .iter()
                            .filter(|part| matches!(tree.name(**part), "p" | "h"))
                            .map(|part| tree.text(*part))
                            .collect();
                        if !text.is_empty() {
                            self.push(Content::Comment {
                                author,
                                text: format!("deleted: {}", text.join(" ")),
                            });
                        }
                    }
                }
                "annotation" => {
                    let mut rest = Rest::default();
                    self.annotation(child, &mut rest);
                    self.leave(rest, depth);
                }
                "sequence-decls" | "forms" | "variable-decls" | "user-field-decls" => {}
                "custom-shape" | "g" | "rect" | "ellipse" | "text-box" => self.blocks(child, depth + 1),
                "" => {}
                _ => self.blocks(child, depth + 1),
            }
        }
    }

    fn paragraph(&mut self, at: u32, level: Option<u8>, depth: usize) {
        let mut text = String::new();
        let mut rest = Rest::default();
        self.inline(at, &mut text, &mut rest, 0);
        let text = text.trim().to_owned();
        if !text.is_empty() {
            match level {
                Some(level) => self.page.blocks.push(Block::heading(level, text)),
                None => self.page.blocks.push(Block::paragraph(text)),
            }
        }
        self.leave(rest, depth);
    }

    fn leave(&mut self, rest: Rest, depth: usize) {
        for frame in rest.frames {
            self.frame(frame, depth + 1);
        }
        for (mark, text) in rest.notes {
            self.push(Content::Footnote { mark, text });
        }
        for (author, text) in rest.comments {
            self.push(Content::Comment { author, text });
        }
        for text in rest.hidden {
            self.push(Content::Hidden { reason: HiddenReason::Marked, text });
        }
    }

    fn inline(&self, at: u32, text: &mut String, rest: &mut Rest, depth: usize) {
        let tree = self.tree;
        if depth > MAX_DEPTH {
            return;
        }
        for child in tree.children(at).iter().copied() {
            if let Some(words) = tree.own_text(child) {
                // Line breaks and runs of spaces in the file are one space.
                for ch in words.chars() {
                    let ch = if ch == '\n' || ch == '\r' || ch == '\t' { ' ' } else { ch };
                    if ch != ' ' || !text.ends_with(' ') {
                        text.push(ch);
                    }
                }
                continue;
            }
            match tree.name(child) {
                "s" => {
                    let count = tree.attribute(child, "c").and_then(|count| count.parse().ok()).unwrap_or(1);
                    text.extend(std::iter::repeat_n(' ', usize::min(count, MAX_REPEATS)));
                }
                "tab" => text.push('\t'),
                "line-break" => text.push('\n'),
                "note" => {
                    let citation =
                        tree.child(child, "note-citation").map(|at| tree.text(at)).unwrap_or_default();
                    let body = tree.child(child, "note-body").map(|at| self.plain(at)).unwrap_or_default();
                    text.push_str(&format!("[^{citation}]"));
                    rest.notes.push((citation, body));
                }
                "annotation" => self.annotation(child, rest),
                "annotation-end" => {}
                "frame" | "custom-shape" => rest.frames.push(child),
                "hidden-text" => rest.hidden.extend(tree.attribute(child, "string-value").map(str::to_owned)),
                "ruby" => {
                    if let Some(base) = tree.child(child, "ruby-base") {
                        self.inline(base, text, rest, depth + 1);
                    }
                }
                _ => self.inline(child, text, rest, depth + 1),
            }
        }
    }

    fn annotation(&self, at: u32, rest: &mut Rest) {
        let tree = self.tree;
        let author = tree.child(at, "creator").map(|at| tree.text(at)).filter(|author| !author.is_empty());
        let lines: Vec<String> = tree
            .children(at)
            .iter()
            .filter(|part| matches!(tree.name(**part), "p" | "list"))
            .map(|part| self.plain(*part))
            .collect();
        let text = lines.join(" ").trim().to_owned();
        if !text.is_empty() {
            rest.comments.push((author, text));
        }
    }

    /// The words of something, in one line.
    fn plain(&self, at: u32) -> String {
        let tree = self.tree;
        let mut text = String::new();
        let mut rest = Rest::default();
        if matches!(tree.name(at), "p" | "h") {
            self.inline(at, &mut text, &mut rest, 0);
        }
        for node in tree.walk(at) {
            if matches!(tree.name(node), "p" | "h") {
                if !text.is_empty() {
                    text.push(' ');
                }
                self.inline(node, &mut text, &mut rest, 0);
            }
        }
        text.trim().to_owned()
    }

    fn list(&self, at: u32, depth: u8, items: &mut Vec<ListItem>, rest: &mut Rest) {
        let tree = self.tree;
        for item in tree.children(at).iter().copied() {
            if !matches!(tree.name(item), "list-item" | "list-header") {
                continue;
            }
            for child in tree.children(item).iter().copied() {
                match tree.name(child) {
                    "p" | "h" => {
                        let mut text = String::new();
                        self.inline(child, &mut text, rest, 0);
                        if !text.trim().is_empty() {
                            items.push(ListItem { depth, mark: None, text: text.trim().to_owned() });
                        }
                    }
                    "list" if depth < 20 => self.list(child, depth + 1, items, rest),
                    _ => {}
                }
            }
        }
    }

    fn table(&mut self, at: u32, depth: usize) {
        let rows = rows(self.tree, at, &|cell| self.plain_cell(cell), MAX_REPEATS);
        let mut frames = Vec::new();
        for cell in self.tree.all(at, "frame") {
            frames.push(cell);
        }
        match rows.as_slice() {
            [] => {}
            [row] if row.len() == 1 => {
                if let Some(text) = row.first().filter(|text| !text.is_empty()) {
                    self.page.blocks.push(Block::paragraph(text.clone()));
                }
            }
            _ if rows.iter().flatten().all(String::is_empty) => {}
            _ => {
                let header = rows.len() > 1;
                self.push(Content::Table { rows, header });
            }
        }
        for frame in frames.into_iter().take(MAX_REPEATS) {
            if self.tree.find(frame, "image").is_some() {
                self.frame(frame, depth + 1);
            }
        }
    }

    fn plain_cell(&self, at: u32) -> String {
        self.plain(at)
    }

    fn frame(&mut self, at: u32, depth: usize) {
        let tree = self.tree;
        if depth > MAX_DEPTH {
            return;
        }
        let class = tree.attribute(at, "class").unwrap_or_default();
        if matches!(class, "page-number" | "date-time" | "footer" | "header") {
            return;
        }
        if self.slide && matches!(class, "title") {
            let text = self.plain(at);
            if !text.is_empty() {
                self.page.blocks.push(Block::heading(1, text));
            }
            return;
        }
        if let Some(image) = tree.child(at, "image") {
            let caption =
                ["title", "desc"].iter().find_map(|name| tree.child(at, name)).map(|at| tree.text(at));
            let path = tree.attribute(image, "href").unwrap_or_default().trim_start_matches("./").to_owned();
            if let Some(figure) = super::figure(self.package, &path, caption, self.reading) {
                self.push(Content::Figure { figure: self.page.figures.len() });
                self.page.figures.push(figure);
            }
            return;
        }
        self.blocks(at, depth + 1);
    }
}

/// The rows of a table. Empty rows and cells at its end, however often they are repeated, are left out.
pub(super) fn rows(
    tree: &XmlTree,
    at: u32,
    text: &dyn Fn(u32) -> String,
    most_rows: usize,
) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut empty = 0usize;
    let mut stack: Vec<u32> = tree.children(at).iter().rev().copied().collect();
    while let Some(node) = stack.pop() {
        match tree.name(node) {
            "table-header-rows" | "table-rows" | "table-row-group" => {
                stack.extend(tree.children(node).iter().rev().copied());
            }
            "table-row" => {
                let row = row(tree, node, text);
                let repeated = repeats(tree, node, "number-rows-repeated");
                if row.is_empty() {
                    empty = empty.saturating_add(repeated);
                    continue;
                }
                let gap = std::mem::take(&mut empty).min(MAX_REPEATS);
                rows.extend(std::iter::repeat_n(Vec::new(), gap));
                rows.extend(std::iter::repeat_n(row, repeated.min(MAX_REPEATS)));
                if rows.len() >= most_rows.max(1) && most_rows > MAX_REPEATS {
                    rows.truncate(most_rows);
                    break;
                }
            }
            _ => {}
        }
    }
    rows
}

fn row(tree: &XmlTree, at: u32, text: &dyn Fn(u32) -> String) -> Vec<String> {
    let mut cells = Vec::new();
    let mut empty = 0usize;
    for cell in tree.children(at).iter().copied() {
        let covered = tree.name(cell) == "covered-table-cell";
        if !covered && tree.name(cell) != "table-cell" {
            continue;
        }
        let repeated = repeats(tree, cell, "number-columns-repeated");
        let text = if covered { String::new() } else { text(cell) };
        if text.is_empty() {
            empty = empty.saturating_add(repeated);
            continue;
        }
        cells.extend(std::iter::repeat_n(String::new(), std::mem::take(&mut empty).min(16_384)));
        cells.extend(std::iter::repeat_n(text, repeated.min(MAX_REPEATS)));
        if cells.len() > 16_384 {
            break;
        }
    }
    cells
}

fn repeats(tree: &XmlTree, at: u32, name: &str) -> usize {
    tree.attribute(at, name).and_then(|count| count.parse().ok()).unwrap_or(1)
}
