//! The document model: one shape for each kind of file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What was read of a document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// What the file says about itself.
    #[serde(flatten)]
    pub info: Info,
    /// The blocks of all pages in reading order.
    pub blocks: Vec<Block>,
    /// The figures the blocks refer to, in reading order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// Headings, or the document's own table of contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outline: Vec<OutlineEntry>,
    /// The numbers of the pages that were read.
    pub pages: Vec<u32>,
    /// How many passages are hidden and left out of the text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: usize,
    /// Where the reading stopped before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stop>,
}

/// What a file says about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// The kind of the file: `pdf`, `docx`, ...
    #[serde(default)]
    pub kind: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its language, as the file names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What a page is called in this kind of file.
    #[serde(default)]
    pub unit: Unit,
    /// How many pages the file has.
    #[serde(default)]
    pub total: u32,
    /// Whether the file is encrypted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub encrypted: bool,
    /// The table of contents of the file itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<OutlineEntry>,
    /// What could not be read as it should, and what was taken for granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Where the reading stopped before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stop>,
}

/// What a page is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unit {
    /// A page, or the whole of a file without pages.
    #[default]
    Page,
    /// A slide of a presentation.
    Slide,
    /// A sheet of a workbook.
    Sheet,
    /// A cell of a notebook.
    Cell,
    /// A chapter of a book.
    Chapter,
}

impl Unit {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Page => "page",
            Unit::Slide => "slide",
            Unit::Sheet => "sheet",
            Unit::Cell => "cell",
            Unit::Chapter => "chapter",
        }
    }
}

/// A line of the outline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlineEntry {
    /// Its depth, from 1.
    pub level: u8,
    /// Its words.
    pub title: String,
    /// Its page; 0 when the file does not say.
    pub page: u32,
}

/// The place at which reading stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The first page that is missing.
    pub page: u32,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Stop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "reading stopped at page {}: {}", self.page, self.reason)
    }
}

/// One page as a reader finds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Its number, from 1.
    pub number: u32,
    /// Its name: that of a sheet or a slide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its width in points.
    #[serde(default)]
    pub width: f32,
    /// Its height in points.
    #[serde(default)]
    pub height: f32,
    /// Its blocks in reading order. A figure block holds an index into `figures`.
    pub blocks: Vec<Block>,
    /// Its figures.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A box on a page, in points from its upper left corner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f32; 4]", into = "[f32; 4]")]
pub struct Bounds {
    /// Left edge.
    pub x0: f32,
    /// Upper edge.
    pub y0: f32,
    /// Right edge.
    pub x1: f32,
    /// Lower edge.
    pub y1: f32,
}

impl From<[f32; 4]> for Bounds {
    fn from([x0, y0, x1, y1]: [f32; 4]) -> Self {
        Bounds { x0, y0, x1, y1 }
    }
}

impl From<Bounds> for [f32; 4] {
    fn from(bounds: Bounds) -> Self {
        // A tenth of a point is finer than anything that is laid out.
        [bounds.x0, bounds.y0, bounds.x1, bounds.y1].map(|edge| (edge * 10.0).round() / 10.0)
    }
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Its name in the document: `p5.b3` is the third block of page 5.
    #[serde(default)]
    pub id: String,
    /// Its page.
    #[serde(default)]
    pub page: u32,
    /// Its place on the page, where there is one.
    #[serde(default, rename = "box", skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// How its text is set, where the file says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<Style>,
    /// What it is.
    #[serde(flatten)]
    pub content: Content,
}

/// How a text is set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Style {
    /// Size of the type in points.
    pub size: f32,
    /// Whether all of it is bold.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bold: bool,
}

/// What a block is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// A heading of level 1 to 6.
    Heading {
        /// Its level.
        level: u8,
        /// Its words.
        text: String,
    },
    /// A paragraph.
    Paragraph {
        /// Its words.
        text: String,
    },
    /// A list.
    List {
        /// Its items.
        items: Vec<ListItem>,
    },
    /// A table. A cell that spans several holds its text once; the others are empty.
    Table {
        /// Rows of cells.
        rows: Vec<Vec<String>>,
        /// Whether the first row names the columns.
        header: bool,
    },
    /// A figure.
    Figure {
        /// Its index in the figures of the document (of the page, before they are put together).
        figure: usize,
    },
    /// Lines that stay as they are.
    Code {
        /// The language, where the file says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        /// The lines.
        text: String,
    },
    /// A footnote or an endnote.
    Footnote {
        /// Its mark.
        mark: String,
        /// Its words.
        text: String,
    },
    /// A running head.
    Header {
        /// Its words.
        text: String,
    },
    /// A running foot.
    Footer {
        /// Its words.
        text: String,
    },
    /// A comment, a speaker's note or a tracked change.
    Comment {
        /// Who wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<String>,
        /// Its words.
        text: String,
    },
    /// Text that a reader of the page does not see.
    Hidden {
        /// Why it is not seen.
        reason: HiddenReason,
        /// Its words.
        text: String,
    },
}

impl Content {
    /// The words of the block; cells and items are separated by tabs and line breaks.
    pub fn text(&self) -> String {
        match self {
            Content::Heading { text, .. }
            | Content::Paragraph { text }
            | Content::Code { text, .. }
            | Content::Footnote { text, .. }
            | Content::Header { text }
            | Content::Footer { text }
            | Content::Comment { text, .. }
            | Content::Hidden { text, .. } => text.clone(),
            Content::List { items } => {
                items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>().join("\n")
            }
            Content::Table { rows, .. } => {
                rows.iter().map(|row| row.join("\t")).collect::<Vec<_>>().join("\n")
            }
            Content::Figure { .. } => String::new(),
        }
    }
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListItem {
    /// How deep it stands, from 0.
    #[serde(default)]
    pub depth: u8,
    /// Its number or letter with what follows it (`2.`, `b)`); `None` for a bullet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// Its words.
    pub text: String,
}

/// Why a text is not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HiddenReason {
    /// Drawn without ink, where no scan lies above it.
    Invisible,
    /// The color of its background, or transparent.
    Color,
    /// Outside the page or the area that is shown.
    OffPage,
    /// Smaller than a point.
    Tiny,
    /// Something opaque is drawn over it.
    Covered,
    /// The file marks it as hidden.
    Marked,
}

/// A picture of a document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name: `p5.f1` is the first figure of page 5.
    #[serde(default)]
    pub id: String,
    /// Its page.
    #[serde(default)]
    pub page: u32,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The media type of `data`; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// Its caption, or the text that stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// The encoded picture; empty when only named.
    #[serde(skip)]
    pub data: Vec<u8>,
}

impl Figure {
    /// Whether it is large enough to show something: smaller ones are ornaments.
    pub fn is_picture(&self) -> bool {
        self.width >= 64 && self.height >= 64
    }
}

impl Block {
    pub(crate) fn new(content: Content) -> Self {
        Block { id: String::new(), page: 0, bounds: None, style: None, content }
    }

    pub(crate) fn paragraph(text: impl Into<String>) -> Self {
        Self::new(Content::Paragraph { text: text.into() })
    }

    pub(crate) fn heading(level: u8, text: impl Into<String>) -> Self {
        Self::new(Content::Heading { level: level.clamp(1, 6), text: text.into() })
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}
