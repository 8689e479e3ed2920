//! Documents as blocks: the text, tables and figures of a file in reading order, each with its page and box.
//!
//! Bytes in, blocks out: nothing here opens a file or a connection (with the feature `worker`, the reading
//! can happen in a process of its own). Every reader is bounded by [`ReadLimits`]
//! and returns the pages before a failure together with the place where it stopped.
//!
//! ```
//! use toolwright_documents::{ReadOptions, read, render};
//!
//! let document = read(b"# Plan\n\nBuy *milk*.\n".to_vec(), &ReadOptions::named("plan.md"))?;
//! assert_eq!(document.outline[0].title, "Plan");
//! assert_eq!(render::markdown(&document, &render::MarkdownOptions::default()), "# Plan\n\nBuy *milk*.\n");
//! # Ok::<(), toolwright_documents::DocumentError>(())
//! ```

mod assemble;
mod detect;
mod error;
mod model;
mod office;
mod options;
#[cfg(feature = "pdf")]
mod pdf;
mod png_file;
pub mod render;
mod text;
#[cfg(feature = "worker")]
mod worker;

pub use assemble::Assembler;
pub use detect::{DocumentKind, detect};
pub use error::{DocumentError, DocumentErrorKind};
pub use model::{
    Block, Bounds, Content, Document, Figure, HiddenReason, Info, ListItem, OutlineEntry, Page, Stop, Style,
    Unit,
};
pub use options::{CellRange, FigureDetail, PageRange, ReadLimits, ReadOptions};
pub use text::csv::CsvDialect;
pub use text::decode as decode_text;
#[cfg(feature = "worker")]
pub use worker::{
    Containment, DocumentSource, WorkerLimits, can_start_worker, main_if_worker_sealed_by, read_in_worker,
};

use std::ops::ControlFlow;

/// Reads a whole document, or the pages that `options` names.
///
/// A failure after the first page is not an error: the document then holds the pages before it and
/// [`stopped`](Document::stopped) names the place and the reason.
pub fn read(bytes: Vec<u8>, options: &ReadOptions) -> Result<Document, DocumentError> {
    let mut assembler = Assembler::new();
    let outcome = read_pages(bytes, options, &mut |page| {
        assembler.add(page);
        ControlFlow::Continue(())
    });
    assembler.finish(outcome)
}

/// Reads page by page: each is given to `sink` as soon as it is ready, which may end the reading.
///
/// The pages are raw: headings that only the whole document shows, running heads and hidden passages are
/// marked by [`Assembler`].
pub fn read_pages(
    bytes: Vec<u8>,
    options: &ReadOptions,
    sink: &mut dyn FnMut(Page) -> ControlFlow<()>,
) -> Result<Info, DocumentError> {
    if bytes.len() > options.limits.bytes {
        return Err(DocumentError::limit(format!(
            "the file has {} bytes; at most {} are read",
            bytes.len(),
            options.limits.bytes
        )));
    }
    let kind = options.kind.unwrap_or_else(|| detect(&bytes, options.name.as_deref()));
    let mut reading = options::ReadingState::new(options, sink);
    let mut info = match kind {
        #[cfg(feature = "pdf")]
        DocumentKind::Pdf => pdf::read(bytes, &mut reading),
        #[cfg(not(feature = "pdf"))]
        DocumentKind::Pdf => Err(DocumentError::unsupported(format!(
            "this build has no PDF reader (feature `pdf`); the file has {} bytes and about {} pages",
            bytes.len(),
            detect::count_pdf_pages(&bytes)
        ))),
        DocumentKind::Docx => office::docx::read(bytes, &mut reading),
        DocumentKind::Pptx => office::pptx::read(bytes, &mut reading),
        DocumentKind::Odt | DocumentKind::Odp => office::odt::read(bytes, &mut reading),
        DocumentKind::Epub => office::epub::read(bytes, &mut reading),
        DocumentKind::Xlsx | DocumentKind::Xls | DocumentKind::Xlsb | DocumentKind::Ods => {
            office::sheet::read(bytes, kind, &mut reading)
        }
        DocumentKind::Html => text::html::read(&bytes, &mut reading),
        DocumentKind::Markdown => text::markdown::read(&bytes, &mut reading),
        DocumentKind::Notebook => text::notebook::read(&bytes, &mut reading),
        DocumentKind::Eml => text::mail::read(&bytes, &mut reading),
        DocumentKind::Msg => office::msg::read(bytes, &mut reading),
        DocumentKind::Csv | DocumentKind::Tsv => text::csv::read(&bytes, kind, &mut reading),
        DocumentKind::JsonLines => text::json_lines::read(&bytes, &mut reading),
        DocumentKind::Image(format) => text::image::read(bytes, format, &mut reading),
        DocumentKind::Zip => office::archive::read(bytes, &mut reading),
        DocumentKind::Text => text::plain::read(&bytes, &mut reading),
        DocumentKind::Unknown => Err(DocumentError::unsupported(format!(
            "not a document of a known kind ({} bytes of binary data)",
            bytes.len()
        ))),
    }?;
    info.kind = kind.name().to_owned();
    info.warnings.splice(0..0, reading.take_warnings());
    Ok(info)
}
