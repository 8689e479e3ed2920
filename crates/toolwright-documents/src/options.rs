//! What to read, how much of it, and the state of a reading.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::detect::DocumentKind;
use crate::error::DocumentError;
use crate::model::Page;

/// What to read of a document.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ReadOptions {
    /// The name of the file: it decides where the content leaves the kind open.
    pub name: Option<String>,
    /// The kind, where the caller knows better.
    #[serde(skip)]
    pub kind: Option<DocumentKind>,
    /// The pages, slides, sheets, chapters or cells; `None` for all.
    pub pages: Option<PageRange>,
    /// The cells of the sheets; `None` for all that are filled.
    #[serde(default)]
    pub cells: Option<CellRange>,
    /// The password of an encrypted file.
    pub password: Option<String>,
    /// How much of the figures to read.
    pub figures: FigureDetail,
    /// Also draw a picture of each page, in dots per inch.
    pub page_pictures: Option<u16>,
    /// End with the page whose text brings the sum to so many bytes; that is not a bound that was reached. A
    /// figure that is encoded counts as a passage of text.
    #[serde(default)]
    pub enough: Option<usize>,
    /// Bounds.
    pub limits: ReadLimits,
}

impl ReadOptions {
    /// Everything of a file of this name.
    pub fn named(name: impl Into<String>) -> Self {
        ReadOptions { name: Some(name.into()), ..Self::default() }
    }
}

/// How much of the figures to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureDetail {
    /// Nothing.
    None,
    /// Where they are and how large.
    #[default]
    Named,
    /// The encoded pictures too.
    Encoded,
}

/// A range of pages, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRange {
    /// The first page.
    pub first: u32,
    /// The last page.
    pub last: u32,
}

impl PageRange {
    /// Reads `3`, `2-5`, `7-` or `-4`.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let wrong =
            || DocumentError::range(format!("pages must be a number or a range such as 2-5, got `{text}`"));
        let number = |part: &str| part.trim().parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(wrong);
        let (first, last) = match text.trim().split_once('-') {
            None => {
                let page = number(text)?;
                (page, page)
            }
            Some(("", "")) => return Err(wrong()),
            Some(("", last)) => (1, number(last)?),
            Some((first, "")) => (number(first)?, u32::MAX),
            Some((first, last)) => (number(first)?, number(last)?),
        };
        if first > last {
            return Err(DocumentError::range(format!("the range of pages `{text}` ends before it begins")));
        }
        Ok(PageRange { first, last })
    }

    pub(crate) fn contains(self, page: u32) -> bool {
        (self.first..=self.last).contains(&page)
    }
}

/// A range of cells, both corners included; rows and columns are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRange {
    /// The first row.
    pub first_row: u32,
    /// The first column.
    pub first_column: u32,
    /// The last row.
    pub last_row: u32,
    /// The last column.
    pub last_column: u32,
}

impl CellRange {
    /// Reads `B2:F40` or `C7`; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let corner = |text: &str| {
            let text = text.trim().replace('$', "");
            let digits = text.find(|ch: char| ch.is_ascii_digit())?;
            let (letters, row) = text.split_at_checked(digits)?;
            if letters.is_empty() || letters.len() > 3 || !letters.bytes().all(|b| b.is_ascii_alphabetic()) {
                return None;
            }
            let column = letters
                .bytes()
                .fold(0u32, |sum, letter| sum * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1);
            let row: u32 = row.parse().ok().filter(|row| (1..=1_048_576).contains(row))?;
            Some((row - 1, column - 1))
        };
        let (first, last) = text.split_once(':').unwrap_or((text, text));
        let ((row, column), (other_row, other_column)) = (corner(first)?, corner(last)?);
        Some(CellRange {
            first_row: row.min(other_row),
            first_column: column.min(other_column),
            last_row: row.max(other_row),
            last_column: column.max(other_column),
        })
    }

    pub(crate) fn contains(self, row: u32, column: u32) -> bool {
        (self.first_row..=self.last_row).contains(&row)
            && (self.first_column..=self.last_column).contains(&column)
    }
}

/// What an encoded figure counts as, in bytes of text: a model takes about so many tokens for it.
const FIGURE_AS_TEXT: usize = 2_000;

/// Bounds of a reading. The process that reads files from elsewhere is bounded from outside as well.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadLimits {
    /// Bytes of the file.
    pub bytes: usize,
    /// Pages, slides, sheets or cells.
    pub pages: u32,
    /// Nesting of elements, parts and lists.
    pub depth: usize,
    /// Bytes of everything that is decompressed.
    pub expanded: usize,
    /// Characters of text that are returned.
    pub text: usize,
    /// Bytes of all encoded figures.
    pub figures: usize,
    /// Time for the whole reading.
    pub time: Duration,
}

impl Default for ReadLimits {
    fn default() -> Self {
        ReadLimits {
            bytes: 512 << 20,
            pages: 20_000,
            depth: 200,
            expanded: 512 << 20,
            text: 64 << 20,
            figures: 256 << 20,
            time: Duration::from_secs(120),
        }
    }
}

/// A reading under way: what is left of its bounds, and where its pages go.
pub(crate) struct ReadingState<'a> {
    pub(crate) options: &'a ReadOptions,
    sink: &'a mut dyn FnMut(Page) -> ControlFlow<()>,
    deadline: Instant,
    text_left: usize,
    expanded_left: usize,
    pub(crate) figures_left: usize,
    pages_given: u32,
    text_given: usize,
    warnings: Vec<String>,
}

/// Why a reading ends before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadingEnd {
    /// Whoever takes the pages wants no more.
    Enough,
    /// A bound was reached.
    Limit(String),
}

impl<'a> ReadingState<'a> {
    pub(crate) fn new(options: &'a ReadOptions, sink: &'a mut dyn FnMut(Page) -> ControlFlow<()>) -> Self {
        let limits = &options.limits;
        // A time that no clock reaches is not a bound.
        let now = Instant::now();
        let deadline = now.checked_add(limits.time).unwrap_or_else(|| now + Duration::from_secs(86_400));
        ReadingState {
            options,
            sink,
            deadline,
            text_left: limits.text,
            expanded_left: limits.expanded,
            figures_left: limits.figures,
            pages_given: 0,
            text_given: 0,
            warnings: Vec::new(),
        }
    }

    /// Whether a page is asked for.
    pub(crate) fn wants(&self, page: u32) -> bool {
        self.options.pages.is_none_or(|range| range.contains(page))
    }

    /// Checks a range against what there is.
    pub(crate) fn check_range(&self, unit: &str, total: u32) -> Result<(), DocumentError> {
        match self.options.pages {
            Some(range) if range.first > total.max(1) => {
                Err(DocumentError::range(format!("there is no {unit} {}: the file has {total}", range.first)))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// The error of a time that is up.
    pub(crate) fn late(&self) -> String {
        format!("the time limit of {} s is reached", self.options.limits.time.as_secs_f32())
    }

    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        if self.warnings.len() < 100 {
            self.warnings.push(warning.into());
        }
    }

    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Takes bytes off what may still be decompressed.
    pub(crate) fn expand(&mut self, bytes: usize) -> Result<(), DocumentError> {
        match self.expanded_left.checked_sub(bytes) {
            Some(left) => {
                self.expanded_left = left;
                Ok(())
            }
            None => Err(DocumentError::limit(format!(
                "the file expands to more than {} bytes",
                self.options.limits.expanded
            ))),
        }
    }

    pub(crate) fn expanded_left(&self) -> usize {
        self.expanded_left
    }

    /// Hands over a page.
    pub(crate) fn give(&mut self, mut page: Page) -> Result<(), ReadingEnd> {
        if self.is_late() {
            return Err(ReadingEnd::Limit(self.late()));
        }
        if self.pages_given >= self.options.limits.pages {
            return Err(ReadingEnd::Limit(format!("{} pages are read at most", self.options.limits.pages)));
        }
        let text: usize = page.blocks.iter().map(|block| text_len(&block.content)).sum();
        match self.text_left.checked_sub(text) {
            Some(left) => self.text_left = left,
            None => {
                return Err(ReadingEnd::Limit(format!(
                    "the text is longer than {} characters",
                    self.options.limits.text
                )));
            }
        }
        if self.options.figures == FigureDetail::None {
            page.blocks.retain(|block| !matches!(block.content, crate::model::Content::Figure { .. }));
            page.figures.clear();
        }
        for figure in &mut page.figures {
            match self.figures_left.checked_sub(figure.data.len()) {
                Some(left) => self.figures_left = left,
                None => {
                    figure.data = Vec::new();
                    figure.media_type = String::new();
                }
            }
        }
        self.pages_given += 1;
        let figures = match self.options.figures {
            FigureDetail::Encoded => page.figures.iter().filter(|figure| figure.is_picture()).count(),
            _ => 0,
        };
        self.text_given = self.text_given.saturating_add(text).saturating_add(figures * FIGURE_AS_TEXT);
        let is_enough = self.options.enough.is_some_and(|enough| self.text_given >= enough);
        match (self.sink)(page) {
            ControlFlow::Continue(()) if is_enough => Err(ReadingEnd::Enough),
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ReadingEnd::Enough),
        }
    }
}

fn text_len(content: &crate::model::Content) -> usize {
    use crate::model::Content;
    match content {
        Content::Table { rows, .. } => rows.iter().flatten().map(|cell| cell.len() + 1).sum(),
        Content::List { items } => items.iter().map(|item| item.text.len() + 1).sum(),
        other => other.text().len(),
    }
}
