//! Arguments of `read`.

use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args)]
pub struct ReadArgs {
    /// The file: PDF, Word, slides, OpenDocument, a workbook, a book, HTML, Markdown, a notebook, mail, CSV,
    /// ...
    pub file: PathBuf,
    /// Read only these pages, slides, sheets, chapters or cells: `3`, `1-5`, `7-`.
    #[arg(short, long, value_name = "RANGE")]
    pub pages: Option<String>,
    /// The password of an encrypted PDF; also taken from the variable `TOOLWRIGHT_PASSWORD`, which other
    /// users of the machine do not see.
    #[arg(long, value_name = "PASSWORD")]
    pub password: Option<String>,
    /// Print the outline alone: headings, or the file's own table of contents, with pages.
    #[arg(long)]
    pub outline: bool,
    /// Save the figures into this folder, each under its name in the text. Files are not overwritten.
    #[arg(long, value_name = "FOLDER")]
    pub figures: Option<PathBuf>,
    /// With `--figures`: also draw each page of a PDF as a picture, in dots per inch.
    #[arg(long, value_name = "DPI", requires = "figures", value_parser = clap::value_parser!(u16).range(18..=600))]
    pub page_pictures: Option<u16>,
    /// Begin each page with a line that names it.
    #[arg(long)]
    pub page_marks: bool,
    /// Also print running heads and feet.
    #[arg(long)]
    pub furniture: bool,
    /// Also print hidden text, marked; it may hold instructions nobody was meant to see.
    #[arg(long)]
    pub hidden: bool,
    /// Stop after this long, with the pages read until then: `30`, `1.5s`, `2m`.
    #[arg(long, value_name = "TIME", value_parser = super::duration, default_value = "2m")]
    pub timeout: Duration,
}

pub const EXAMPLES: &str = "\
The file is read in a process of its own, without network or file system, with bounded memory and time. What it \
prints is what a model gets: Markdown, with a placeholder for each figure. With --json: blocks with page and box.

Exit codes: 0 the whole file, or all pages asked for; 1 not readable, or not to its end; 2 wrong usage.

Examples:
  toolwright read paper.pdf --pages 1-5
  toolwright read report.docx --figures pictures
  toolwright read book.epub --outline
  toolwright --json read prices.xlsx | jq '.blocks[] | select(.kind == \"table\")'";
