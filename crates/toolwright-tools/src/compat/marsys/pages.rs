//! Pages of documents: text and pictures as ordered chunks, headings as sections.

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolwright_core::{Content, ErrorKind, ToolError, ToolOutput};
use toolwright_documents::{Block, Content as Part, Document, FigureDetail, PageRange, ReadOptions, render};

use super::outline::{self, Overview, TextSection, titles};
use super::picture::{Picture, PictureOptions};
use super::read::{MOST_CHARACTERS, Strategy};
use super::tokens;
use crate::document;
use crate::options::Call;

/// How many pages a read without a range gives, and the most that one gives.
const FIRST_PAGES: i64 = 5;
const MOST_PAGES: i64 = 20;
/// The most sections in a result.
const MOST_SECTIONS: usize = 1000;

/// Which pages, and what of them.
pub(super) struct PageOptions {
    pub(super) start_page: Option<i64>,
    pub(super) end_page: Option<i64>,
    pub(super) extract_images: bool,
    pub(super) max_images: usize,
}

/// A piece of a document, as MARSYS orders them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Chunk {
    Text { text: String, page: u32, block_num: usize },
    Image { image_index: usize, page: u32, block_num: usize, dimensions: String, tokens: u64 },
}

/// A document that was read, or a part of it.
#[derive(Serialize)]
struct FileContent {
    content: String,
    path: String,
    partial: bool,
    file_size: usize,
    character_count: usize,
    estimated_tokens: usize,
    metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overview: Option<Overview>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structure: Option<Overview>,
}

/// All of a document, without its pictures.
pub(super) async fn all_of(call: &Call<'_>, path: &str, bytes: &[u8]) -> Result<Document, ToolError> {
    document::open(call, path, bytes, document::options_for(path)).await
}

/// Reads pages of a document, or tells its sections.
pub(super) async fn read(
    call: &Call<'_>,
    path: String,
    bytes: &[u8],
    pages: &PageOptions,
    look: &PictureOptions,
    strategy: Strategy,
    include_overview: bool,
) -> Result<ToolOutput, ToolError> {
    let given = pages.start_page.is_some() || pages.end_page.is_some();
    let mut strategy = if given { Strategy::Partial } else { strategy };
    let whole = match include_overview || strategy != Strategy::Partial {
        true => Some(all_of(call, &path, bytes).await?),
        false => None,
    };
    if let Some(whole) = &whole {
        strategy = strategy.decided(render::plain_text(whole).chars().count());
    }
    if let (Some(whole), Strategy::Progressive | Strategy::Overview) = (&whole, strategy) {
        return outlined(whole, path, bytes.len(), strategy);
    }
    let range = if strategy == Strategy::Full { None } else { Some(range(pages)?) };
    let options = ReadOptions {
        pages: range,
        figures: if pages.extract_images { FigureDetail::Encoded } else { FigureDetail::None },
        ..document::options_for(&path)
    };
    let document = document::open(call, &path, bytes, options).await?;
    let shown = shown(document, path, bytes.len(), pages, look)?;
    let overview = whole.filter(|_| include_overview).map(|whole| overview(&whole));
    shown.output(overview)
}

/// The pages to read. What lies past the end of the document is left away by the reader.
fn range(pages: &PageOptions) -> Result<PageRange, ToolError> {
    let (first, last) = match (pages.start_page, pages.end_page) {
        (None, None) => (1, FIRST_PAGES),
        (None, Some(last)) => (1, last),
        (Some(first), last) => (first.max(1), last.unwrap_or(first.max(1))),
    };
    let count = last.saturating_sub(first).saturating_add(1);
    if count < 1 {
        return Err(ToolError::invalid(format!("`end_page` {last} comes before `start_page` {first}")));
    }
    if count > MOST_PAGES {
        let message =
            format!("pages {first} to {last} are {count} pages; one read gives at most {MOST_PAGES}");
        let hint = format!("read from {first} to {}", first.saturating_add(MOST_PAGES - 1));
        return Err(ToolError::invalid(message).hint(hint));
    }
    let page = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(PageRange { first: page(first), last: page(last) })
}

/// What was read, with the pictures in their places.
struct PageChunks {
    document: Document,
    path: String,
    file_size: usize,
    chunks: Vec<Chunk>,
    /// The pictures by their index.
    pictures: Vec<(&'static str, Vec<u8>)>,
    tokens: u64,
    left_out: usize,
}

fn shown(
    mut document: Document,
    path: String,
    file_size: usize,
    pages: &PageOptions,
    look: &PictureOptions,
) -> Result<PageChunks, ToolError> {
    let blocks = std::mem::take(&mut document.blocks);
    let (mut chunks, mut pictures) = (Vec::new(), Vec::new());
    let (mut page, mut block_num, mut on_page) = (0, 0, 0);
    let (mut characters, mut all_tokens, mut left_out) = (0usize, 0, 0);
    for block in &blocks {
        if block.page != page {
            (page, block_num, on_page) = (block.page, 0, 0);
        }
        if let Part::Figure { figure } = &block.content {
            let data = document.figures.get_mut(*figure).map(|figure| std::mem::take(&mut figure.data));
            let data = data.filter(|data| !data.is_empty() && on_page < pages.max_images);
            let found = data.and_then(|data| {
                Picture::of(&path, &data)?.and_then(|picture| picture.fitting(&path, data, look)).ok()
            });
            let Some((picture, bytes, mime)) = found else {
                left_out += 1;
                continue;
            };
            let tokens = tokens::of_picture(picture.width, picture.height, &look.vendor, look.low);
            all_tokens += tokens;
            let dimensions = format!("{}x{}", picture.width, picture.height);
            chunks.push(Chunk::Image { image_index: pictures.len(), page, block_num, dimensions, tokens });
            pictures.push((mime, bytes));
            on_page += 1;
        } else {
            let text = words(&document, block);
            if text.is_empty() {
                continue;
            }
            characters += text.chars().count();
            if characters > MOST_CHARACTERS {
                let message = format!(
                    "these pages have more than the {MOST_CHARACTERS} characters that one read gives"
                );
                return Err(ToolError::of(ErrorKind::OutputLimit, message).hint("read fewer pages"));
            }
            chunks.push(Chunk::Text { text, page, block_num });
        }
        block_num += 1;
    }
    Ok(PageChunks { document, path, file_size, chunks, pictures, tokens: all_tokens, left_out })
}

/// A block as MARSYS writes text: titles without marks, lines that all pages repeat like any other.
fn words(document: &Document, block: &Block) -> String {
    match &block.content {
        Part::Heading { text, .. } | Part::Paragraph { text } => text.trim_end().to_owned(),
        _ => {
            let options = render::MarkdownOptions { furniture: true, ..render::MarkdownOptions::default() };
            render::block(document, block, &options).unwrap_or_default()
        }
    }
}

impl Chunk {
    fn as_text(&self) -> String {
        match self {
            Chunk::Text { text, .. } => text.clone(),
            Chunk::Image { image_index, page, dimensions, tokens, .. } => {
                format!("[IMAGE {}: {dimensions}, ~{tokens} tokens, page {page}]", image_index + 1)
            }
        }
    }
}

impl PageChunks {
    fn output(self, overview: Option<Overview>) -> Result<ToolOutput, ToolError> {
        let PageChunks { document, path, file_size, chunks, pictures, tokens, left_out } = self;
        let content = chunks.iter().map(Chunk::as_text).collect::<Vec<_>>().join("\n\n");
        let character_count = content.chars().count();
        let total = document.info.total;
        let pages = match (document.pages.first(), document.pages.last()) {
            (Some(first), Some(last)) => format!("{first}-{last}"),
            _ => String::new(),
        };
        let partial = u32::try_from(document.pages.len()).is_ok_and(|read| read < total);
        let mut metadata = Map::new();
        metadata.insert("type".to_owned(), document.info.kind.as_str().into());
        metadata.insert("total_pages".to_owned(), total.into());
        metadata.insert("pages_read".to_owned(), pages.as_str().into());
        metadata.insert("images_extracted".to_owned(), pictures.len().into());
        metadata.insert("total_image_tokens".to_owned(), tokens.into());
        metadata.insert("ordered_chunks".to_owned(), serde_json::to_value(&chunks)?);
        let report = FileContent {
            content,
            path: path.clone(),
            partial,
            file_size,
            character_count,
            estimated_tokens: character_count / 4,
            metadata,
            overview,
            structure: None,
        };
        let (count, has_images) = (pictures.len(), !pictures.is_empty());
        let mut output = match has_images {
            false => ToolOutput::serialize(&report)?,
            true => {
                let report = serde_json::to_value(&report)?;
                ToolOutput::blocks(in_order(&chunks, pictures)).with_structured(report)
            }
        };
        output = output
            .with_metadata("path", path)
            .with_metadata("partial", partial)
            .with_metadata("total_pages", total)
            .with_metadata("pages_shown", pages.as_str());
        if has_images {
            output = output
                .with_metadata("has_images", true)
                .with_metadata("image_count", count)
                .with_metadata("total_image_tokens", tokens);
        }
        if left_out > 0 {
            output = output.with_metadata("images_left_out", left_out);
        }
        if let Some(stopped) = &document.stopped {
            output = output.with_metadata("stopped", stopped.to_string());
        }
        if document.hidden > 0 {
            output = output.with_metadata("hidden_passages_left_out", document.hidden);
        }
        Ok(match partial {
            false => output,
            true => {
                let note = format!(
                    "This is a part of the file: pages {pages} of {total}. Read on with start_page and end_page, at most \
                     {MOST_PAGES} pages at once, or look for a text with search_files."
                );
                output.with_metadata("status", "partial").with_metadata("message", note)
            }
        })
    }
}

/// Texts and pictures in reading order; texts between two pictures are one block. A picture's placeholder
/// stands before it, for models that see no pictures.
fn in_order(chunks: &[Chunk], pictures: Vec<(&'static str, Vec<u8>)>) -> Vec<Content> {
    let mut content = Vec::new();
    let mut text = String::new();
    let mut pictures = pictures.into_iter();
    for chunk in chunks {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&chunk.as_text());
        if let Chunk::Image { .. } = chunk {
            content.push(Content::text(std::mem::take(&mut text)));
            content.extend(pictures.next().map(|(mime, bytes)| Content::image(mime, &bytes)));
        }
    }
    if !text.is_empty() {
        content.push(Content::text(text));
    }
    content
}

/// The sections in place of the text.
fn outlined(
    document: &Document,
    path: String,
    file_size: usize,
    strategy: Strategy,
) -> Result<ToolOutput, ToolError> {
    let structure = overview(document);
    let content = match strategy {
        Strategy::Overview => titles(&structure.sections, &|section| section.to_string()),
        _ => titles(&structure.sections, &|section| section.title.clone()),
    };
    let character_count = content.chars().count();
    let mut metadata = Map::new();
    metadata.insert("type".to_owned(), document.info.kind.as_str().into());
    metadata.insert("total_pages".to_owned(), document.info.total.into());
    let report = FileContent {
        content,
        path,
        partial: true,
        file_size,
        character_count,
        estimated_tokens: character_count / 4,
        metadata,
        overview: None,
        structure: Some(structure),
    };
    let note =
        "These are the titles of its sections, which read_section reads; start_page and end_page read pages.";
    Ok(ToolOutput::serialize(&report)?.with_metadata("status", "partial").with_metadata("message", note))
}

/// A heading: its place among the blocks, level, title and page.
struct HeadingPlace<'d> {
    at: usize,
    level: u8,
    title: &'d str,
    page: u32,
    id: String,
}

fn headings(document: &Document) -> Vec<HeadingPlace<'_>> {
    let mut counts = [0usize; 7];
    let mut found = Vec::new();
    for (at, block) in document.blocks.iter().enumerate() {
        let Part::Heading { level, text } = &block.content else { continue };
        let Some(count) = counts.get_mut(usize::from(*level)) else { continue };
        *count += 1;
        let id = format!("section:{level}:{count}");
        found.push(HeadingPlace { at, level: *level, title: text, page: block.page, id });
    }
    found
}

/// The headings of a document as a tree.
pub(super) fn overview(document: &Document) -> Overview {
    let all = headings(document);
    let mut metadata = Map::new();
    metadata.insert("total_pages".to_owned(), document.info.total.into());
    metadata.insert("pages_processed".to_owned(), document.pages.len().into());
    metadata.insert("total_sections".to_owned(), all.len().into());
    if all.len() > MOST_SECTIONS {
        metadata.insert("sections_left_out".to_owned(), (all.len() - MOST_SECTIONS).into());
    }
    let mut sections: Vec<TextSection> = Vec::new();
    for (number, heading) in all.iter().enumerate().take(MOST_SECTIONS) {
        let next = all.iter().skip(number + 1).find(|next| next.level <= heading.level);
        let end = next.map_or(document.info.total, |next| next.page.saturating_sub(1)).max(heading.page);
        let mut section = TextSection::new(heading.id.clone(), outline::title(heading.title), heading.level);
        (section.start_page, section.end_page) = (Some(heading.page), Some(end));
        section.metadata.insert("heading_level".to_owned(), heading.level.into());
        if let Some(style) = document.blocks.get(heading.at).and_then(|block| block.style) {
            section.metadata.insert("font_size".to_owned(), json!(style.size));
        }
        insert(&mut sections, section);
    }
    Overview { kind: document.info.kind.clone(), sections, metadata }
}

/// Puts a section below the last one that stands above it.
fn insert(sections: &mut Vec<TextSection>, section: TextSection) {
    match sections.last_mut() {
        Some(last) if last.level < section.level => insert(&mut last.children, section),
        _ => sections.push(section),
    }
}

/// One section of a document.
pub(super) fn section(document: &Document, path: &str, id: &str) -> Result<ToolOutput, ToolError> {
    let all = headings(document);
    let Some((number, heading)) = all.iter().enumerate().find(|(_, heading)| heading.id == id) else {
        let error = ToolError::new(format!("{path} has no section `{}`", id.escape_debug()));
        return Err(match (all.first(), all.last()) {
            (Some(first), Some(last)) => error
                .hint(format!("its sections are {} to {}, as get_file_structure says", first.id, last.id)),
            _ => error.hint("it has no headings: read its pages"),
        });
    };
    let end = all.iter().skip(number + 1).find(|next| next.level <= heading.level);
    let end = end.map_or(document.blocks.len(), |next| next.at);
    let blocks = document.blocks.get(heading.at..end).unwrap_or_default();
    let texts: Vec<String> =
        blocks.iter().map(|block| words(document, block)).filter(|text| !text.is_empty()).collect();
    let last = blocks.last().map_or(heading.page, |block| block.page);
    let output = ToolOutput::text(texts.join("\n\n")).with_metadata("title", heading.title);
    Ok(output.with_metadata("page_range", vec![heading.page, last]))
}

/// The text of each page, and the headings with their ids, pages and titles.
pub(super) fn page_texts(document: &Document) -> Vec<(u32, String)> {
    let mut pages: Vec<(u32, String)> = Vec::new();
    for block in &document.blocks {
        let text = words(document, block);
        if text.is_empty() || matches!(block.content, Part::Figure { .. }) {
            continue;
        }
        match pages.last_mut().filter(|(page, _)| *page == block.page) {
            Some((_, all)) => {
                all.push('\n');
                all.push_str(&text);
            }
            None => pages.push((block.page, text)),
        }
    }
    pages
}

/// The headings of a document: id, page and title.
pub(super) fn titled(document: &Document) -> Vec<(String, u32, String)> {
    headings(document)
        .into_iter()
        .map(|heading| (heading.id, heading.page, heading.title.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use toolwright_documents::{ReadOptions, read};

    use super::*;

    fn of(start_page: Option<i64>, end_page: Option<i64>) -> Result<(u32, u32), ToolError> {
        let pages = PageOptions { start_page, end_page, extract_images: false, max_images: 10 };
        range(&pages).map(|range| (range.first, range.last))
    }

    #[test]
    fn a_range_of_pages_is_what_it_says() {
        assert_eq!(of(None, None).unwrap(), (1, 5));
        assert_eq!(of(Some(3), None).unwrap(), (3, 3));
        assert_eq!(of(None, Some(2)).unwrap(), (1, 2));
        assert_eq!(of(Some(5), Some(10)).unwrap(), (5, 10));
        assert_eq!(of(Some(0), Some(1)).unwrap(), (1, 1));
        for (first, last) in
            [(Some(4), Some(2)), (Some(1), Some(21)), (None, Some(500)), (Some(i64::MIN), Some(i64::MAX))]
        {
            assert_eq!(of(first, last).unwrap_err().kind(), ErrorKind::Parsing);
        }
    }

    #[test]
    fn headings_are_a_tree_with_numbers_in_each_level() {
        let text = "# A\n\n## B\n\n## C\n\n# D\n\n### E\n";
        let document = read(text.into(), &ReadOptions::named("a.md")).unwrap();
        let overview = overview(&document);
        let outline = titles(&overview.sections, &|section| section.id.clone());
        assert_eq!(
            outline,
            "- section:1:1\n  - section:2:1\n  - section:2:2\n- section:1:2\n  - section:3:1"
        );
        assert_eq!(section(&document, "a.md", "section:2:2").unwrap().to_text(), "C");
        assert!(section(&document, "a.md", "section:9:9").is_err());
    }
}
