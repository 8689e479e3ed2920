//! Pages become a document: names of blocks, running heads, headings, the outline, hidden passages.

use std::collections::HashMap;

use crate::error::DocumentError;
use crate::model::{Block, Content, Document, Figure, Info, OutlineEntry, Page, Stop, Unit};

/// The share of a page, at its head and at its foot, in which running lines stand.
const MARGIN: f32 = 0.12;

/// The fewest pages on which a line must stand to be a running one.
const MIN_REPEATS: usize = 3;

/// A type size this much larger than that of the body is a heading's.
const LARGER: f32 = 1.12;

/// Puts pages together, one after the other.
#[derive(Debug, Default)]
pub struct Assembler {
    pages: Vec<Page>,
}

impl Assembler {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next page.
    pub fn add(&mut self, page: Page) {
        self.pages.push(page);
    }

    /// How many pages there are so far.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether no page was added yet.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The document of the pages so far. An error after the first page becomes the place where reading
    /// stopped.
    pub fn finish(mut self, outcome: Result<Info, DocumentError>) -> Result<Document, DocumentError> {
        let info = match outcome {
            Ok(info) => info,
            Err(error) if self.pages.is_empty() => return Err(error),
            Err(error) => {
                let last = self.pages.last().map_or(0, |page| page.number);
                let stopped = Stop { page: last.saturating_add(1), reason: error.to_string() };
                Info { stopped: Some(stopped), ..Info::default() }
            }
        };
        if info.unit == Unit::Page && self.pages.iter().any(|page| page.height > 0.0) {
            let body = body_size(&self.pages);
            running_lines(&mut self.pages, body);
            headings(&mut self.pages, &info.contents, body);
        }
        Ok(self.document(info))
    }

    fn document(self, mut info: Info) -> Document {
        let stopped = info.stopped.take();
        let mut document = Document { stopped, ..Document::default() };
        for page in self.pages {
            let number = page.number;
            document.pages.push(number);
            info.warnings.extend(page.warnings);
            let first = document.figures.len();
            for (at, mut figure) in page.figures.into_iter().enumerate() {
                if figure.id.is_empty() {
                    figure.id = format!("p{number}.f{}", at + 1);
                }
                figure.page = number;
                document.figures.push(figure);
            }
            for (at, mut block) in page.blocks.into_iter().enumerate() {
                block.id = format!("p{number}.b{}", at + 1);
                block.page = number;
                match &mut block.content {
                    Content::Figure { figure } => *figure += first,
                    Content::Hidden { .. } => document.hidden += 1,
                    _ => {}
                }
                document.blocks.push(block);
            }
        }
        // Warnings of pages repeat those of the reading.
        let mut seen = std::collections::HashSet::new();
        info.warnings.retain(|warning| seen.insert(warning.clone()));
        document.outline = outline(&document.blocks, &info);
        if info.title.is_none() {
            let first = document.blocks.iter().find_map(|block| match &block.content {
                Content::Heading { level: 1, text } => Some(text.clone()),
                _ => None,
            });
            info.title = first;
        }
        document.info = info;
        captions(&mut document.figures, &document.blocks);
        document
    }
}

/// The file's own table of contents where it has one, else its headings.
fn outline(blocks: &[Block], info: &Info) -> Vec<OutlineEntry> {
    if info.contents.len() >= 2 {
        return info.contents.clone();
    }
    let headings = blocks.iter().filter_map(|block| match &block.content {
        Content::Heading { level, text } => {
            Some(OutlineEntry { level: *level, title: text.clone(), page: block.page })
        }
        _ => None,
    });
    headings.collect()
}

/// A figure's caption is the paragraph after or before it that begins as one.
fn captions(figures: &mut [Figure], blocks: &[Block]) {
    let caption = |block: Option<&Block>| match &block?.content {
        Content::Paragraph { text } if is_caption(text) => Some(text.clone()),
        _ => None,
    };
    for (at, block) in blocks.iter().enumerate() {
        let Content::Figure { figure } = &block.content else { continue };
        let Some(figure) = figures.get_mut(*figure).filter(|figure| figure.caption.is_none()) else {
            continue;
        };
        let before = at.checked_sub(1).and_then(|before| blocks.get(before));
        figure.caption = caption(blocks.get(at + 1)).or_else(|| caption(before));
    }
}

fn is_caption(text: &str) -> bool {
    let lower = text.trim_start().to_lowercase();
    ["figure", "fig.", "fig ", "abb.", "abbildung", "image", "plate", "photo", "chart"].iter().any(|word| {
        lower
            .strip_prefix(word)
            .is_some_and(|rest| rest.trim_start().starts_with(|ch: char| ch.is_ascii_digit()))
    })
}

/// A line as running heads repeat it: without what counts.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for ch in text.chars() {
        if ch.is_ascii_digit() {
            if !shape.ends_with('#') {
                shape.push('#');
            }
        } else if !ch.is_whitespace() {
            shape.extend(ch.to_lowercase());
        }
    }
    shape
}

/// Whether a text is a page number and nothing else.
fn is_page_number(shape: &str) -> bool {
    let bare: String =
        shape.chars().filter(|ch| !matches!(ch, '-' | '–' | '—' | '|' | '[' | ']' | '.')).collect();
    matches!(bare.as_str(), "#" | "page#" | "#/#" | "page#of#" | "#of#" | "p#" | "seite#" | "seite#von#")
        || (!bare.is_empty() && bare.len() <= 7 && bare.chars().all(|ch| matches!(ch, 'i' | 'v' | 'x' | 'l')))
}

/// Finds lines at the head or foot of pages that many pages repeat.
fn running_lines(pages: &mut [Page], body: f32) {
    let mut seen: HashMap<(bool, String, i32), Vec<(usize, usize)>> = HashMap::new();
    for (at, page) in pages.iter().enumerate() {
        for (number, block) in page.blocks.iter().enumerate() {
            let (Some(bounds), Content::Paragraph { text }) = (block.bounds, &block.content) else {
                continue;
            };
            let upper = bounds.y1 < page.height * MARGIN;
            let lower = bounds.y0 > page.height * (1.0 - MARGIN);
            // Large type at the head of a page begins a chapter.
            let large = block.style.is_some_and(|style| style.size > body * LARGER);
            if (!upper && !lower) || large || text.chars().count() > 200 {
                continue;
            }
            // Left and right pages differ in x, so only the height counts.
            let place = (bounds.y0 / 6.0).round() as i32;
            let shape = shape(text);
            // Page numbers change their shape with their digits, running titles with each chapter.
            let key = if is_page_number(&shape) { "#".to_owned() } else { shape };
            seen.entry((upper, key, place)).or_default().push((at, number));
        }
    }
    let enough = MIN_REPEATS.max(pages.len().min(60) / 12);
    let mut marks: Vec<(usize, usize, bool)> = Vec::new();
    for ((upper, shape, _), places) in &seen {
        let two = pages.len() == 2 && places.len() == 2 && !shape.is_empty();
        if places.len() >= enough || two {
            marks.extend(places.iter().map(|(page, block)| (*page, *block, *upper)));
        }
    }
    for (page, block, upper) in marks {
        let Some(block) = pages.get_mut(page).and_then(|page| page.blocks.get_mut(block)) else { continue };
        if let Content::Paragraph { text } = &mut block.content {
            let text = std::mem::take(text);
            block.content = if upper { Content::Header { text } } else { Content::Footer { text } };
        }
    }
}

/// Finds headings by the file's own table of contents and by the size of their type.
fn headings(pages: &mut [Page], contents: &[OutlineEntry], body: f32) {
    if body <= 0.0 {
        return;
    }
    let titled: HashMap<String, u8> =
        contents.iter().map(|entry| (letters(&entry.title), entry.level)).collect();
    let tagged = pages
        .iter()
        .flat_map(|page| &page.blocks)
        .any(|block| matches!(block.content, Content::Heading { .. }));
    // The largest sizes, in steps, are the levels.
    let mut sizes: Vec<i32> = pages
        .iter()
        .flat_map(|page| &page.blocks)
        .filter(|block| candidate(block).is_some())
        .filter_map(|block| block.style)
        .filter(|style| style.size > body * LARGER)
        .map(|style| (style.size * 2.0).round() as i32)
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    sizes.truncate(4);
    for block in pages.iter_mut().flat_map(|page| &mut page.blocks) {
        let Some(text) = candidate(block) else { continue };
        let Some(style) = block.style else { continue };
        let size = (style.size * 2.0).round() as i32;
        let by_size = || {
            (style.size > body * LARGER).then(|| {
                let rank = sizes.iter().position(|other| *other == size).unwrap_or(sizes.len());
                u8::try_from(rank + 1).unwrap_or(4).min(4)
            })
        };
        let by_weight = || {
            let bold = style.bold && style.size >= body * 0.98 && is_title(text) && text.chars().count() < 80;
            let numbered =
                bold || (style.size >= body * 0.98 && numbered_depth(text).is_some() && style.bold);
            (bold || numbered).then(|| {
                let rank = u8::try_from(sizes.len()).unwrap_or(4) + 1;
                numbered_depth(text).unwrap_or(rank).min(6)
            })
        };
        let by_contents =
            titled.get(&letters(text)).or_else(|| titled.get(&letters(unnumbered(text)))).copied();
        let level = by_contents.map(|level| level.min(6)).or_else(|| {
            if tagged || (!contents.is_empty() && contents.len() >= 4) {
                None
            } else {
                by_size().or_else(by_weight)
            }
        });
        // Where the table of contents does not name them, large lines are still headings: the title above
        // all.
        let level =
            level.or_else(|| if tagged { None } else { by_size().filter(|_| style.size > body * 1.25) });
        if let Some(level) = level {
            block.content = Content::Heading { level, text: text.to_owned() };
        }
    }
}

/// The text of a block that may be a heading.
fn candidate(block: &Block) -> Option<&str> {
    match &block.content {
        Content::Paragraph { text } => {
            let length = text.chars().count();
            let words = text.chars().any(char::is_alphabetic);
            ((2..=200).contains(&length) && words).then_some(text)
        }
        _ => None,
    }
}

fn is_title(text: &str) -> bool {
    !text.ends_with(['.', ',', ';', ':']) && text.chars().next().is_some_and(|ch| !ch.is_lowercase())
}

/// The depth of a section's number: 2 for `3.1 Methods`.
fn numbered_depth(text: &str) -> Option<u8> {
    let (number, rest) = text.split_once(' ')?;
    let digits = number.trim_end_matches('.');
    let parts = digits.split('.');
    let fits = !digits.is_empty()
        && digits
            .split('.')
            .all(|part| !part.is_empty() && part.len() <= 2 && part.bytes().all(|b| b.is_ascii_digit()))
        && rest.chars().next().is_some_and(char::is_alphabetic);
    fits.then(|| u8::try_from(parts.count()).unwrap_or(6).min(6))
}

fn unnumbered(text: &str) -> &str {
    match text.split_once(' ') {
        Some((number, rest)) if number.chars().all(|ch| ch.is_ascii_digit() || ch == '.') => rest,
        _ => text,
    }
}

fn letters(text: &str) -> String {
    text.chars().filter(|ch| ch.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The type size of most of the text.
fn body_size(pages: &[Page]) -> f32 {
    let mut sizes: HashMap<i32, usize> = HashMap::new();
    for block in pages.iter().flat_map(|page| &page.blocks) {
        let length = match &block.content {
            Content::Paragraph { text } => text.len(),
            Content::List { items } => items.iter().map(|item| item.text.len()).sum(),
            _ => continue,
        };
        if let Some(style) = block.style {
            *sizes.entry((style.size * 2.0).round() as i32).or_default() += length;
        }
    }
    sizes
        .into_iter()
        .max_by_key(|(size, length)| (*length, -*size))
        .map_or(0.0, |(size, _)| size as f32 / 2.0)
}
