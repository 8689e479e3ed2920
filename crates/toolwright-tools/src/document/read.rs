//! `read_file` for documents: the part that is asked for, as far as it fits, with its pictures, and the call
//! that reads on.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toolwright_core::{Content, ToolError, ToolOutput};
use toolwright_documents::{Document, FigureDetail, PageRange, ReadOptions, Unit, render};

use super::figures::{ScaledPicture, chosen, drawn};
use super::outline::{counted, overview};
use super::reader::{open, options_for};
use super::selection::{Selection, blocks_of};
use super::view::{DocumentLine, fitting, lines_of, next_call, resting_place};
use crate::options::Call;

/// The most bytes of text of a call that says nothing: about 8,000 tokens.
const DEFAULT_BUDGET: usize = 32_000;

/// What the notes about a part take of the budget.
const FOR_NOTES: usize = 800;

/// A document that is so many times longer than the budget begins with its outline.
const LONG: u32 = 3;

/// The most pages that are read for the headings of a document without a table of contents.
const MOST_FOR_HEADINGS: u32 = 500;

/// The most pages that are drawn in one call, and how finely, in dots per inch.
const MOST_DRAWN: u32 = 4;
const RESOLUTION: u16 = 110;

/// What becomes of the pictures of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImageDetail {
    // Comments, not documentation: each would be a schema of its own in every request.
    // Named in the text.
    None,
    // Shown where they stand.
    Figures,
    // The pages themselves, drawn.
    Pages,
}

/// What a call wants of a document.
pub(crate) struct DocumentRequest<'a> {
    pub(crate) pages: Option<&'a str>,
    pub(crate) section: Option<&'a str>,
    pub(crate) images: Option<ImageDetail>,
    pub(crate) password: Option<String>,
    /// The most bytes of text.
    pub(crate) budget: Option<usize>,
    /// Which lines, of so many.
    pub(crate) lines: &'a (dyn Fn(usize) -> Result<std::ops::Range<usize>, ToolError> + Sync),
    /// Whether lines are asked for at all.
    pub(crate) names_lines: bool,
}

/// Reads what is wanted.
pub(crate) async fn read(
    call: &Call<'_>,
    path: &str,
    bytes: &[u8],
    wanted: DocumentRequest<'_>,
) -> Result<ToolOutput, ToolError> {
    let mut selection = Selection::parse(wanted.pages, wanted.section)?;
    // A caller that is given everything gets everything, unless it asks for less.
    let most = wanted.budget.or(call.context.max_output().map(|most| most.min(DEFAULT_BUDGET)));
    let budget = most.map(|most| most.saturating_sub(FOR_NOTES).max(most / 2));
    let images = wanted.images.unwrap_or(match budget {
        Some(_) => ImageDetail::Figures,
        None => ImageDetail::None,
    });
    let mut options = ReadOptions {
        pages: selection.pages,
        cells: selection.cells,
        password: wanted.password.clone(),
        figures: if images == ImageDetail::Figures { FigureDetail::Encoded } else { FigureDetail::Named },
        ..options_for(path)
    };
    if images == ImageDetail::Pages {
        options.page_pictures = Some(RESOLUTION);
        let first = selection.pages.map_or(1, |pages| pages.first);
        let last = selection.pages.map_or(u32::MAX, |pages| pages.last);
        options.pages = Some(PageRange { first, last: last.min(first.saturating_add(MOST_DRAWN - 1)) });
    }
    // A section may begin on any page, and lines are counted from the first.
    if selection.title.is_none() && !wanted.names_lines {
        options.enough = budget;
    }
    let is_first_look = selection == Selection::default()
        && !wanted.names_lines
        && images != ImageDetail::Pages
        && budget.is_some();
    let mut document = open(call, path, bytes, options.clone()).await?;
    if selection.cells.is_some() && document.info.unit != Unit::Sheet {
        // A title can look like the address of a cell.
        selection.title = wanted.section.map(str::to_owned);
        selection.cells = None;
        document =
            open(call, path, bytes, ReadOptions { cells: None, enough: None, ..options.clone() }).await?;
    }
    let mut parts = DocumentAnswer { path, call, selection, budget, head: String::new() };
    if is_first_look && parts.is_long(&document) {
        parts.head = parts.overview(&document, bytes, options).await?;
    }
    parts.output(document, &wanted, images).await
}

/// What the answer is put together from.
struct DocumentAnswer<'a> {
    path: &'a str,
    call: &'a Call<'a>,
    selection: Selection,
    budget: Option<usize>,
    head: String,
}

impl DocumentAnswer<'_> {
    /// Whether the first pages are a small part of the document.
    fn is_long(&self, document: &Document) -> bool {
        let Some(budget) = self.budget else { return false };
        let read = u32::try_from(document.pages.len()).unwrap_or(u32::MAX).max(1);
        let text: usize = document.blocks.iter().map(|block| block.content.text().len() + 2).sum();
        document.info.total > read.saturating_mul(LONG) || text > budget.saturating_mul(LONG as usize)
    }

    /// The outline of a long document. Where the file has no table of contents, all of it is read for its
    /// headings.
    async fn overview(
        &self,
        document: &Document,
        bytes: &[u8],
        options: ReadOptions,
    ) -> Result<String, ToolError> {
        let room = self.budget.unwrap_or(DEFAULT_BUDGET) / 2;
        let is_part = document.info.total > u32::try_from(document.pages.len()).unwrap_or(u32::MAX);
        if document.info.contents.is_empty() && is_part && document.info.total <= MOST_FOR_HEADINGS {
            let all = ReadOptions { figures: FigureDetail::None, enough: None, ..options };
            let all = open(self.call, self.path, bytes, all).await?;
            return Ok(overview(&all, self.path, room));
        }
        Ok(overview(document, self.path, room))
    }

    async fn output(
        self,
        mut document: Document,
        wanted: &DocumentRequest<'_>,
        images: ImageDetail,
    ) -> Result<ToolOutput, ToolError> {
        let blocks = blocks_of(&document, &self.selection, self.path)?;
        let lines = lines_of(&document, blocks);
        let shown = if wanted.names_lines { (wanted.lines)(lines.len())? } else { 0..lines.len() };
        let by_pages = self.selection.title.is_none() && document.info.total > 1;
        let end = match self.budget {
            None => shown.end,
            Some(budget) => {
                let lengths = lines.iter().take(shown.end).skip(shown.start).map(|line| line.text.len());
                let fits = shown.start + fitting(lengths, budget.saturating_sub(self.head.len()));
                match fits < shown.end {
                    true => resting_place(&lines, shown.start, fits, by_pages),
                    false => shown.end,
                }
            }
        };
        let part = lines.get(shown.start..end).unwrap_or_default();
        let figures: Vec<usize> = part.iter().filter_map(|line| line.figure).collect();
        let (mut pictures, mut pages) = (HashMap::new(), Vec::new());
        if images != ImageDetail::None {
            (document, pictures, pages) = tokio::task::spawn_blocking(move || {
                let pictures = chosen(&mut document, &figures);
                let pages = drawn(&mut document);
                (document, pictures, pages)
            })
            .await
            .map_err(|error| ToolError::new("the pictures cannot be shown").with_source(error))?;
        }
        let is_named = part.iter().filter_map(|line| line.figure).find(|at| !pictures.contains_key(at));
        let mut notes = self.notes(&document, &lines, shown.start..end, shown.end);
        if images != ImageDetail::Pages {
            notes.extend(self.about_empty_pages(&document, &lines, shown.start..end));
        }
        if let Some(figure) = is_named.and_then(|at| document.figures.get(at))
            && images != ImageDetail::Pages
        {
            notes.extend(self.about_figures(&figure.id));
        }
        let mut content = blocks_of_content(self.head, part, pictures);
        for (page, picture) in pages {
            content.push(Content::text(format!("[{} {page}]", document.info.unit.name())));
            content.push(Content::image(picture.mime, &picture.bytes));
        }
        add_text(&mut content, &notes.join("\n"));
        if content.is_empty() {
            content.push(Content::text(format!("[{}: no text]", self.path)));
        }
        Ok(ToolOutput::blocks(content))
    }

    /// What there is to say of the part: where it ends and how to go on, what is hidden, what went wrong.
    fn notes(
        &self,
        document: &Document,
        lines: &[DocumentLine],
        shown: std::ops::Range<usize>,
        wanted: usize,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let info = &document.info;
        let unit = info.unit.name();
        let page_of = |at: usize| lines.get(at).map_or(0, |line| line.page);
        let total = lines.len();
        let mut next: Vec<(&str, String)> = Vec::new();
        let mut what = None;
        if shown.end < wanted {
            let (first, following) = (page_of(shown.start), page_of(shown.end));
            if self.selection.title.is_none() && shown.start == 0 && first < following && info.total > 1 {
                what = Some(pages_shown(unit, first, following - 1, info.total));
                next.push(("pages", self.rest_of_pages(following)));
            } else {
                // Lines are counted in what was read, so it is the same that is read again.
                what = Some(format!("lines {}-{} of {total} shown", shown.start + 1, shown.end));
                match &self.selection.title {
                    Some(_) => next.extend(self.selection_arguments()),
                    None if info.total > 1 && first == page_of(shown.end) && self.is_one_page(document) => {
                        what = Some(format!(
                            "lines {}-{} of {total} of {unit} {first} of {} shown",
                            shown.start + 1,
                            shown.end,
                            info.total
                        ));
                        next.push(("pages", first.to_string()));
                    }
                    None => next.extend(self.selection_arguments()),
                }
                next.push(("offset", shown.end.to_string()));
            }
        } else if let Some(last) = document.pages.last().copied().filter(|last| *last < info.total)
            && self.budget.is_some()
            && self.selection.title.is_none()
            && document.stopped.is_none()
        {
            let first = document.pages.first().copied().unwrap_or(last);
            what = Some(pages_shown(unit, first, last, info.total));
            if self.selection.pages.is_none_or(|pages| last < pages.last) || self.is_one_page(document) {
                next.push(("pages", self.rest_of_pages(last.saturating_add(1))));
            }
        }
        if let Some(what) = what {
            let next = match next.is_empty() {
                true => String::new(),
                false => format!("; next: {}", next_call(self.call.context.tool_name(), self.path, &next)),
            };
            let or = match info.unit {
                Unit::Sheet if shown.end < wanted => "; or ask it with query_data",
                _ if !self.head.is_empty() && !document.outline.is_empty() => {
                    "; or a title of the outline as `section`"
                }
                _ => "",
            };
            notes.push(format!("[{what}{next}{or}]"));
        }
        if document.hidden > 0 {
            notes.push(render::hidden_note(document.hidden));
        }
        if let Some(stopped) = &document.stopped {
            notes.push(format!("[{stopped}; the file has {}]", counted(info.unit, info.total.max(1))));
        }
        notes.extend(info.warnings.iter().take(3).map(|warning| format!("[warning: {warning}]")));
        notes
    }

    /// A page on which things are only drawn has neither text nor a picture of its own.
    fn about_empty_pages(
        &self,
        document: &Document,
        lines: &[DocumentLine],
        shown: std::ops::Range<usize>,
    ) -> Option<String> {
        let page_of = |at: usize| lines.get(at).map_or(0, |line| line.page);
        let first = if shown.start == 0 { 0 } else { page_of(shown.start) };
        let last = if shown.end >= lines.len() { u32::MAX } else { page_of(shown.end.saturating_sub(1)) };
        let has_lines = |page: u32| lines.binary_search_by_key(&page, |line| line.page).is_ok();
        let mut pages = document.pages.iter().filter(|page| (first..=last).contains(*page));
        let page = pages.find(|page| !has_lines(**page))?;
        if document.info.kind != "pdf" || self.selection.title.is_some() {
            return None;
        }
        let see = [("pages", page.to_string()), ("images", "pages".to_owned())];
        let call = next_call(self.call.context.tool_name(), self.path, &see);
        Some(format!("[page {page} has no text; see it: {call}]"))
    }

    fn is_one_page(&self, document: &Document) -> bool {
        document.pages.len() == 1
    }

    fn rest_of_pages(&self, first: u32) -> String {
        match self.selection.pages.map(|pages| pages.last) {
            Some(last) if last != u32::MAX && last >= first => format!("{first}-{last}"),
            _ => format!("{first}-"),
        }
    }

    /// The part that was asked for, as arguments.
    fn selection_arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = Vec::new();
        if let Some(pages) = self.selection.pages {
            let last = if pages.last == u32::MAX { String::new() } else { pages.last.to_string() };
            arguments.push(("pages", format!("{}-{last}", pages.first)));
        }
        if let Some(title) = &self.selection.title {
            arguments.push(("section", title.clone()));
        }
        arguments
    }

    /// How to see a figure that is only named, where the run has the tool for it.
    fn about_figures(&self, id: &str) -> Option<String> {
        let specs = self.call.context.host().specs();
        let tool = specs.iter().find(|spec| *spec.name == *"read_figure")?;
        let call = next_call(&tool.name, self.path, &[("figure", id.to_owned())]);
        Some(format!("[see a figure: {call}]"))
    }
}

fn pages_shown(unit: &str, first: u32, last: u32, total: u32) -> String {
    match first == last {
        true => format!("{unit} {first} of {total} shown"),
        false => format!("{unit}s {first}-{last} of {total} shown"),
    }
}

/// The lines as text blocks, with the pictures between them.
fn blocks_of_content(
    head: String,
    lines: &[DocumentLine],
    mut pictures: HashMap<usize, ScaledPicture>,
) -> Vec<Content> {
    let mut content = Vec::new();
    let mut text = head;
    for line in lines {
        if !(text.is_empty() && line.text.is_empty()) {
            text.push_str(&line.text);
            text.push('\n');
        }
        if let Some(picture) = line.figure.and_then(|at| pictures.remove(&at)) {
            content.push(Content::text(std::mem::take(&mut text)));
            content.push(Content::image(picture.mime, &picture.bytes));
        }
    }
    if !text.is_empty() {
        content.push(Content::text(text));
    }
    content
}

/// Adds to the last text, or as a text of its own after a picture.
fn add_text(content: &mut Vec<Content>, more: &str) {
    if more.is_empty() {
        return;
    }
    match content.last_mut() {
        Some(Content::Text { text, .. }) => {
            text.push('\n');
            text.push_str(more);
            text.push('\n');
        }
        _ => content.push(Content::text(format!("{more}\n"))),
    }
}
