//! Word documents: styles name the headings, numbering the lists; notes, comments and tracked changes are
//! kept, marked.

use std::collections::HashMap;

use super::package::{Package, Relation};
use super::xml::XmlTree;
use crate::error::DocumentError;
use crate::model::{Block, Content, HiddenReason, Info, ListItem, Page, Stop, Unit};
use crate::options::{ReadingEnd, ReadingState};

/// How deep tables may stand inside each other.
const MAX_TABLES: usize = 8;

pub(crate) fn read(bytes: Vec<u8>, reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let mut package = Package::open(bytes)?;
    let main = main_part(&mut package, reading);
    let tree = package
        .xml(&main, reading)?
        .ok_or_else(|| DocumentError::damaged("the package has no Word document in it"))?;
    let relations = package.relations(&main, reading);
    let folder = main.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let part = |kind: &str, name: &str| {
        let related = relations.values().find(|relation| relation.kind == kind);
        related.map_or_else(|| format!("{folder}/{name}"), |relation| relation.target.clone())
    };
    let styles = package.xml(&part("styles", "styles.xml"), reading).ok().flatten();
    let numbering = package.xml(&part("numbering", "numbering.xml"), reading).ok().flatten();
    let notes = [("footnotes", "footnote"), ("endnotes", "endnote")].map(|(kind, element)| {
        (element, package.xml(&part(kind, &format!("{kind}.xml")), reading).ok().flatten())
    });
    let comments = package.xml(&part("comments", "comments.xml"), reading).ok().flatten();

    let mut writer = DocxWriter {
        tree: &tree,
        styles: styles.as_ref().map(heading_styles).unwrap_or_default(),
        numbering: numbering.as_ref().map(Numbering::read).unwrap_or_default(),
        relations: &relations,
        comments: comments.as_ref().map(read_comments).unwrap_or_default(),
        page: Page { number: 1, ..Page::default() },
        package: &mut package,
        reading,
        tables: 0,
        counters: HashMap::new(),
    };
    let body = tree.find(tree.root(), "body").unwrap_or_else(|| tree.root());
    writer.blocks(body, &mut Vec::new());
    for (element, tree) in &notes {
        let Some(tree) = tree else { continue };
        for note in tree.all(tree.root(), element) {
            // The first two are the lines above the notes.
            let kind = tree.attribute(note, "type").unwrap_or_default();
            let text = note_text(tree, note);
            if !matches!(kind, "separator" | "continuationSeparator" | "continuationNotice")
                && !text.is_empty()
            {
                let id = tree.attribute(note, "id").unwrap_or_default();
                let mark = if *element == "endnote" { format!("e{id}") } else { id.to_owned() };
                writer.page.blocks.push(Block::new(Content::Footnote { mark, text }));
            }
        }
    }
    let mut page = writer.page;
    let mut furniture: Vec<(&str, &str)> = relations
        .values()
        .filter(|relation| matches!(relation.kind.as_str(), "header" | "footer"))
        .map(|relation| (relation.kind.as_str(), relation.target.as_str()))
        .collect();
    furniture.sort_unstable();
    for (kind, target) in furniture {
        let Ok(Some(tree)) = package.xml(target, reading) else { continue };
        let text = note_text(&tree, tree.root());
        if text.is_empty() {
            continue;
        }
        if kind == "header" {
            page.blocks.insert(0, Block::new(Content::Header { text }));
        } else {
            page.blocks.push(Block::new(Content::Footer { text }));
        }
    }
    let mut info = super::about(&mut package, "docProps/core.xml", reading);
    info.unit = Unit::Page;
    info.total = 1;
    reading.check_range("page", 1)?;
    if let Err(ReadingEnd::Limit(reason)) = reading.give(page) {
        info.stopped = Some(Stop { page: 1, reason });
    }
    Ok(info)
}

/// The main part is the one that the package's own relations name.
fn main_part(package: &mut Package, reading: &mut ReadingState<'_>) -> String {
    let relations = package.relations("", reading);
    let main = relations.into_values().find(|relation| relation.kind == "officeDocument");
    main.map_or_else(|| "word/document.xml".to_owned(), |relation| relation.target)
}

/// The text of a note, of a comment or of a running head.
fn note_text(tree: &XmlTree, at: u32) -> String {
    let mut text = String::new();
    for node in tree.walk(at) {
        match tree.name(node) {
            "p" if !text.is_empty() => text.push(' '),
            "t" => text.push_str(&tree.text(node)),
            "tab" | "br" => text.push(' '),
            _ => {}
        }
    }
    text.trim().to_owned()
}

fn read_comments(tree: &XmlTree) -> HashMap<String, (Option<String>, String)> {
    tree.all(tree.root(), "comment")
        .into_iter()
        .filter_map(|at| {
            let id = tree.attribute(at, "id")?.to_owned();
            let author = tree.attribute(at, "author").filter(|author| !author.is_empty()).map(str::to_owned);
            Some((id, (author, note_text(tree, at))))
        })
        .collect()
}

/// The heading level of each style: by its name, its outline level, or the style it is based on.
fn heading_styles(tree: &XmlTree) -> HashMap<String, StyleInfo> {
    let mut styles: HashMap<String, StyleInfo> = HashMap::new();
    let mut based: Vec<(String, String)> = Vec::new();
    for style in tree.all(tree.root(), "style") {
        let Some(id) = tree.attribute(style, "styleId") else { continue };
        let value = |name: &str| tree.child(style, name).and_then(|at| tree.attribute(at, "val"));
        let name = value("name").unwrap_or_default().to_lowercase();
        let level = match name.as_str() {
            "title" => Some(1),
            "subtitle" => Some(2),
            name => name.strip_prefix("heading ").and_then(|level| level.parse::<u8>().ok()),
        };
        let outline =
            tree.find(style, "outlineLvl").and_then(|at| tree.attribute(at, "val")?.parse::<u8>().ok());
        let level = level.or_else(|| outline.filter(|level| *level < 9).map(|level| level + 1));
        let list = tree
            .find(style, "numPr")
            .and_then(|at| tree.child(at, "numId"))
            .and_then(|at| tree.attribute(at, "val"));
        let named_list = name.starts_with("list bullet") || name.starts_with("list number");
        if let Some(parent) = value("basedOn") {
            based.push((id.to_owned(), parent.to_owned()));
        }
        let info = StyleInfo {
            level,
            list: list.map(str::to_owned),
            listed: named_list.then(|| name.starts_with("list number")),
            code: name.contains("code") || name.contains("preformatted"),
        };
        styles.insert(id.to_owned(), info);
    }
    for _ in 0..8 {
        for (id, parent) in &based {
            let inherited = styles.get(parent).cloned().unwrap_or_default();
            if let Some(style) = styles.get_mut(id) {
                style.level = style.level.or(inherited.level);
                style.list = style.list.take().or(inherited.list);
                style.listed = style.listed.or(inherited.listed);
            }
        }
    }
    styles
}

/// What a paragraph style means.
#[derive(Debug, Clone, Default)]
struct StyleInfo {
    level: Option<u8>,
    /// The numbering it brings along.
    list: Option<String>,
    /// Whether its name is that of a list, and of a numbered one.
    listed: Option<bool>,
    code: bool,
}

/// The form of list levels by the number of the list.
#[derive(Debug, Default)]
struct Numbering {
    formats: HashMap<(String, String), (String, u32)>,
}

impl Numbering {
    fn read(tree: &XmlTree) -> Self {
        let mut forms: HashMap<(String, String), (String, u32)> = HashMap::new();
        for form in tree.all(tree.root(), "abstractNum") {
            let Some(id) = tree.attribute(form, "abstractNumId") else { continue };
            for level in tree.all(form, "lvl") {
                let value = |name: &str| tree.child(level, name).and_then(|at| tree.attribute(at, "val"));
                let format = value("numFmt").unwrap_or("decimal").to_owned();
                let start = value("start").and_then(|start| start.parse().ok()).unwrap_or(1);
                let depth = tree.attribute(level, "ilvl").unwrap_or("0").to_owned();
                forms.insert((id.to_owned(), depth), (format, start));
            }
        }
        let mut formats = HashMap::new();
        for list in tree.all(tree.root(), "num") {
            let Some(id) = tree.attribute(list, "numId") else { continue };
            let Some(form) = tree.child(list, "abstractNumId").and_then(|at| tree.attribute(at, "val"))
            else {
                continue;
            };
            for depth in 0..9 {
                let depth = depth.to_string();
                if let Some(format) = forms.get(&(form.to_owned(), depth.clone())) {
                    formats.insert((id.to_owned(), depth), format.clone());
                }
            }
        }
        Numbering { formats }
    }
}

struct DocxWriter<'w, 'r, 'o> {
    tree: &'w XmlTree,
    styles: HashMap<String, StyleInfo>,
    numbering: Numbering,
    relations: &'w HashMap<String, Relation>,
    comments: HashMap<String, (Option<String>, String)>,
    page: Page,
    package: &'w mut Package,
    reading: &'r mut ReadingState<'o>,
    tables: usize,
    counters: HashMap<(String, u8), u32>,
}

/// A paragraph as it is collected.
#[derive(Default)]
struct Paragraph {
    text: String,
    hidden: String,
    deleted: Vec<(Option<String>, String)>,
    comments: Vec<String>,
    figures: Vec<(String, Option<String>)>,
    /// Paragraphs of text boxes that stand in it.
    boxes: Vec<u32>,
}

impl DocxWriter<'_, '_, '_> {
    /// The blocks of a container, with the items of a list that is still open.
    fn blocks(&mut self, at: u32, items: &mut Vec<ListItem>) {
        let tree = self.tree;
        for child in tree.children(at).iter().copied() {
            match tree.name(child) {
                "p" => self.paragraph(child, items),
                "tbl" => {
                    self.close(items);
                    self.table(child);
                }
                "sectPr" | "pPr" => {}
                // Content controls, insertions and what else stands around paragraphs.
                _ => self.blocks(child, items),
            }
        }
        if tree.name(at) == "body" || tree.name(at) == "txbxContent" {
            self.close(items);
        }
    }

    fn close(&mut self, items: &mut Vec<ListItem>) {
        if !items.is_empty() {
            self.page.blocks.push(Block::new(Content::List { items: std::mem::take(items) }));
        }
    }

    fn paragraph(&mut self, at: u32, items: &mut Vec<ListItem>) {
        let tree = self.tree;
        let properties = tree.child(at, "pPr");
        let value = |name: &str| {
            properties.and_then(|at| tree.child(at, name)).and_then(|at| tree.attribute(at, "val"))
        };
        let style = value("pStyle").and_then(|id| self.styles.get(id)).cloned().unwrap_or_default();
        let outline =
            value("outlineLvl").and_then(|level| level.parse::<u8>().ok()).filter(|level| *level < 9);
        let numbered = properties.and_then(|at| tree.child(at, "numPr"));
        let own_list =
            numbered.and_then(|at| tree.child(at, "numId")).and_then(|at| tree.attribute(at, "val"));
        let depth = numbered
            .and_then(|at| tree.child(at, "ilvl"))
            .and_then(|at| tree.attribute(at, "val")?.parse::<u8>().ok())
            .unwrap_or(0)
            .min(8);
        let mut paragraph = Paragraph::default();
        self.runs(at, &mut paragraph, None);
        let text = paragraph.text.trim().to_owned();
        let level = outline.map(|level| level + 1).or(style.level);
        let list = own_list.map(str::to_owned).or(style.list).filter(|list| list != "0");
        if !text.is_empty() {
            match (level, list, style.listed) {
                (Some(level), ..) => {
                    self.close(items);
                    self.page.blocks.push(Block::heading(level, text));
                }
                (None, Some(list), _) => {
                    let mark = self.mark(&list, depth);
                    items.push(ListItem { depth, mark, text });
                }
                (None, None, Some(numbered)) => {
                    let mark = numbered.then(|| format!("{}.", items.len() + 1));
                    items.push(ListItem { depth, mark, text });
                }
                _ if style.code => {
                    self.close(items);
                    self.page
                        .blocks
                        .push(Block::new(Content::Code { language: None, text: paragraph.text.clone() }));
                }
                _ => {
                    self.close(items);
                    self.page.blocks.push(Block::paragraph(text));
                }
            }
        }
        self.leave(paragraph, items);
    }

    /// What a paragraph leaves behind: figures, text boxes, comments, deletions, hidden text.
    fn leave(&mut self, paragraph: Paragraph, items: &mut Vec<ListItem>) {
        for (path, caption) in paragraph.figures {
            if let Some(figure) = super::figure(self.package, &path, caption, self.reading) {
                self.close(items);
                let block = Block::new(Content::Figure { figure: self.page.figures.len() });
                self.page.figures.push(figure);
                self.page.blocks.push(block);
            }
        }
        for content in paragraph.boxes {
            self.close(items);
            if self.tables < MAX_TABLES {
                self.tables += 1;
                self.blocks(content, items);
                self.tables -= 1;
            }
        }
        for id in paragraph.comments {
            if let Some((author, text)) = self.comments.remove(&id).filter(|(_, text)| !text.is_empty()) {
                self.close(items);
                self.page.blocks.push(Block::new(Content::Comment { author, text }));
            }
        }
        for (author, text) in paragraph.deleted {
            if !text.trim().is_empty() {
                self.close(items);
                let text = format!("deleted: {}", text.trim());
                self.page.blocks.push(Block::new(Content::Comment { author, text }));
            }
        }
        if !paragraph.hidden.trim().is_empty() {
            let text = paragraph.hidden.trim().to_owned();
            self.page.blocks.push(Block::new(Content::Hidden { reason: HiddenReason::Marked, text }));
        }
    }

    fn mark(&mut self, list: &str, depth: u8) -> Option<String> {
        let (format, start) = self.numbering.formats.get(&(list.to_owned(), depth.to_string()))?.clone();
        if format == "bullet" || format == "none" {
            return None;
        }
        // Deeper levels count anew under each item.
        self.counters.retain(|(other, level), _| other != list || *level <= depth);
        let counter = self.counters.entry((list.to_owned(), depth)).or_insert(start.saturating_sub(1));
        *counter = counter.saturating_add(1);
        let number = *counter;
        Some(match format.as_str() {
            "lowerLetter" => format!("{})", letter(number, 'a')),
            "upperLetter" => format!("{})", letter(number, 'A')),
            _ => format!("{number}."),
        })
    }

    /// The texts of a paragraph's runs.
    fn runs(&mut self, at: u32, out: &mut Paragraph, deleted: Option<&Option<String>>) {
        let tree = self.tree;
        for child in tree.children(at).iter().copied() {
            match tree.name(child) {
                "pPr" | "rPr" | "Fallback" | "instrText" | "fldData" => {}
                "r" => {
                    let hidden = tree
                        .child(child, "rPr")
                        .and_then(|properties| tree.child(properties, "vanish"))
                        .is_some_and(|at| !matches!(tree.attribute(at, "val"), Some("0" | "false" | "off")));
                    if hidden {
                        out.hidden.push_str(&note_text(tree, child));
                    } else {
                        self.runs(child, out, deleted);
                    }
                }
                "t" => out.text.push_str(&tree.text(child)),
                "delText" => {
                    let text = tree.text(child);
                    match (out.deleted.last_mut(), deleted) {
                        (Some((author, before)), Some(now)) if author == now => before.push_str(&text),
                        (_, Some(author)) => out.deleted.push((author.clone(), text)),
                        (_, None) => out.deleted.push((None, text)),
                    }
                }
                "del" | "moveFrom" => {
                    let author = tree.attribute(child, "author").map(str::to_owned);
                    self.runs(child, out, Some(&author));
                }
                "tab" | "ptab" => out.text.push('\t'),
                "br" | "cr" => out.text.push('\n'),
                "noBreakHyphen" => out.text.push('-'),
                "softHyphen" => {}
                "sym" => {
                    let code =
                        tree.attribute(child, "char").and_then(|code| u32::from_str_radix(code, 16).ok());
                    let code =
                        code.map(|code| if (0xf020..=0xf0ff).contains(&code) { code - 0xf000 } else { code });
                    out.text.extend(code.and_then(char::from_u32));
                }
                "footnoteReference" => {
                    out.text.push_str(&format!("[^{}]", tree.attribute(child, "id").unwrap_or_default()));
                }
                "endnoteReference" => {
                    out.text.push_str(&format!("[^e{}]", tree.attribute(child, "id").unwrap_or_default()));
                }
                "commentReference" => out.comments.extend(tree.attribute(child, "id").map(str::to_owned)),
                "hyperlink" => {
                    let before = out.text.len();
                    self.runs(child, out, deleted);
                    self.link(child, before, out);
                }
                "blip" => {
                    let relation = tree.attribute(child, "embed").and_then(|id| self.relations.get(id));
                    if let Some(relation) = relation.filter(|relation| !relation.external) {
                        out.figures.push((relation.target.clone(), None));
                    }
                }
                "imagedata" => {
                    let relation = tree.attribute(child, "id").and_then(|id| self.relations.get(id));
                    if let Some(relation) = relation.filter(|relation| !relation.external) {
                        let caption = tree.attribute(child, "title").map(str::to_owned);
                        out.figures.push((relation.target.clone(), caption));
                    }
                }
                "inline" | "anchor" => {
                    let first = out.figures.len();
                    self.runs(child, out, deleted);
                    let caption = tree
                        .child(child, "docPr")
                        .and_then(|at| tree.attribute(at, "descr").or_else(|| tree.attribute(at, "title")));
                    for (_, slot) in out.figures.iter_mut().skip(first) {
                        *slot = slot.take().or_else(|| caption.map(str::to_owned));
                    }
                }
                "txbxContent" => out.boxes.push(child),
                _ => self.runs(child, out, deleted),
            }
        }
    }

    /// Adds the address of a link to the words it stands on.
    fn link(&self, at: u32, before: usize, out: &mut Paragraph) {
        let Some(relation) = self.tree.attribute(at, "id").and_then(|id| self.relations.get(id)) else {
            return;
        };
        let words = out.text.get(before..).unwrap_or_default().trim().to_owned();
        let web = ["http://", "https://", "mailto:"].iter().any(|scheme| relation.target.starts_with(scheme));
        if relation.external && web && !words.is_empty() && words != relation.target {
            out.text.truncate(before);
            out.text.push_str(&format!("[{words}]({})", relation.target));
        }
    }

    fn table(&mut self, at: u32) {
        if self.tables >= MAX_TABLES {
            return;
        }
        self.tables += 1;
        let tree = self.tree;
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut left: Vec<Paragraph> = Vec::new();
        for row in self.children_through(at, "tr") {
            let mut cells: Vec<String> = Vec::new();
            for cell in self.children_through(row, "tc") {
                let properties = tree.child(cell, "tcPr");
                let property = |name: &str| properties.and_then(|at| tree.child(at, name));
                let span = property("gridSpan")
                    .and_then(|at| tree.attribute(at, "val")?.parse::<usize>().ok())
                    .unwrap_or(1)
                    .clamp(1, 200);
                let goes_on =
                    property("vMerge").is_some_and(|at| tree.attribute(at, "val") != Some("restart"));
                let mut text = String::new();
                if !goes_on {
                    self.cell(cell, &mut text, &mut left);
                }
                cells.push(text.trim().to_owned());
                cells.extend(std::iter::repeat_n(String::new(), span - 1));
            }
            rows.push(cells);
        }
        self.tables -= 1;
        if rows.iter().flatten().any(|cell| !cell.is_empty()) {
            // A table of one cell is a box around text.
            if let [row] = rows.as_slice()
                && let [text] = row.as_slice()
            {
                self.page.blocks.push(Block::paragraph(text.clone()));
            } else {
                let header = rows.len() > 1;
                self.page.blocks.push(Block::new(Content::Table { rows, header }));
            }
        }
        for paragraph in left {
            self.leave(paragraph, &mut Vec::new());
        }
    }

    /// The rows of a table or the cells of a row, also those inside content controls.
    fn children_through(&self, at: u32, name: &str) -> Vec<u32> {
        let mut found = Vec::new();
        let mut stack: Vec<u32> = self.tree.children(at).iter().rev().copied().collect();
        while let Some(node) = stack.pop() {
            match self.tree.name(node) {
                found_name if found_name == name => found.push(node),
                "sdt" | "sdtContent" | "ins" | "customXml" => {
                    stack.extend(self.tree.children(node).iter().rev().copied());
                }
                _ => {}
            }
        }
        found
    }

    fn cell(&mut self, at: u32, text: &mut String, left: &mut Vec<Paragraph>) {
        let tree = self.tree;
        for child in tree.children(at).iter().copied() {
            match tree.name(child) {
                "p" => {
                    let mut paragraph = Paragraph::default();
                    self.runs(child, &mut paragraph, None);
                    if !paragraph.text.trim().is_empty() {
                        if !text.is_empty() {
                            text.push('\n');
                        }
                        text.push_str(paragraph.text.trim());
                    }
                    left.push(paragraph);
                }
                "tcPr" => {}
                _ => self.cell(child, text, left),
            }
        }
    }
}

fn letter(number: u32, first: char) -> String {
    let at = (number.saturating_sub(1)) % 26;
    char::from_u32(u32::from(first) + at).map(String::from).unwrap_or_default()
}
