//! PDF: what a page draws is collected and put into reading order.

mod blocks;
mod codes;
mod device;
mod figures;
mod layout;
mod lines;
mod outline;
mod picture;
mod regions;
mod rules;
mod tags;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_interpret::hayro_syntax::object::{Dict, String as PdfString};
use hayro_interpret::hayro_syntax::page::Page as PdfPage;
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::kurbo::Rect;
use hayro_interpret::{Context, InterpreterCache, InterpreterSettings, TransformExt as _, interpret_page};

use self::codes::CodeMaps;
use self::device::{Abort, Collector};
use self::figures::FigureStore;
use crate::error::DocumentError;
use crate::model::{Info, Page, Stop, Unit};
use crate::options::{FigureDetail, ReadingEnd, ReadingState};

/// Reads the pages that are asked for.
pub(crate) fn read(bytes: Vec<u8>, reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let pdf = open(bytes, reading.options.password.as_deref())?;
    let pages = pdf.pages();
    let total = u32::try_from(pages.len()).unwrap_or(u32::MAX);
    if total == 0 {
        return Err(DocumentError::damaged("the PDF has no pages that can be found"));
    }
    reading.check_range("page", total)?;
    let mut info = guarded(|| about(&pdf, total)).unwrap_or_default();
    info.unit = Unit::Page;
    info.total = total;

    let mut store = FigureStore::new(reading.options.figures, reading.figures_left);
    let mut codes = CodeMaps::default();
    let mut cache = InterpreterCache::new();
    let mut since_new_cache = 0usize;
    for (index, page) in pages.iter().enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        if !reading.wants(number) {
            continue;
        }
        let stop = |reason: String| Some(Stop { page: number, reason });
        if reading.is_late() {
            info.stopped = stop(reading.late());
            break;
        }
        if let Err(reason) = expand(page, reading) {
            info.stopped = stop(reason.to_string());
            break;
        }
        // Decoded pictures are kept in the cache: a new one from time to time bounds them.
        since_new_cache += 1;
        if since_new_cache > 200 {
            cache = InterpreterCache::new();
            since_new_cache = 0;
        }
        let read = read_page(&pdf, page, number, &cache, &mut store, &mut codes, reading);
        let page = match read {
            Ok(page) => page,
            Err(PageFailure::Stop(reason)) => {
                info.stopped = stop(reason);
                break;
            }
            // The rest of the document may still be fine; the page is there, with a warning in place of its
            // text.
            Err(PageFailure::Broken(reason)) => {
                cache = InterpreterCache::new();
                let warning = format!("page {number} could not be read: {reason}");
                reading.warn(warning.clone());
                Page { number, warnings: vec![warning], ..Page::default() }
            }
        };
        match reading.give(page) {
            Ok(()) => {}
            Err(ReadingEnd::Enough) => break,
            Err(ReadingEnd::Limit(reason)) => {
                info.stopped = stop(reason);
                break;
            }
        }
    }
    if store.skipped > 0 && reading.options.figures == FigureDetail::Encoded {
        reading.warn(format!("{} figures are too large or could not be decoded", store.skipped));
    }
    Ok(info)
}

fn open(bytes: Vec<u8>, password: Option<&str>) -> Result<Pdf, DocumentError> {
    let opened = guarded(|| match password {
        Some(password) => Pdf::new_with_password(bytes, password),
        None => Pdf::new(bytes),
    });
    match opened {
        Some(Ok(pdf)) => Ok(pdf),
        Some(Err(LoadPdfError::Decryption(DecryptionError::PasswordProtected))) => Err(match password {
            None => DocumentError::encrypted("the PDF is encrypted and needs a password")
                .with_hint("give the password of the file"),
            Some(_) => DocumentError::encrypted("the password does not open the PDF"),
        }),
        Some(Err(LoadPdfError::Decryption(error))) => {
            Err(DocumentError::encrypted(format!("the encryption of the PDF is not supported ({error:?})")))
        }
        Some(Err(LoadPdfError::Invalid)) | None => {
            Err(DocumentError::damaged("the file is not a PDF, or too damaged to find its pages"))
        }
    }
}

/// Does something that may panic in a library; `None` when it does.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Takes the decompressed size of a page off what is left. Only large streams are looked at: small ones
/// cannot be bombs.
fn expand(page: &PdfPage<'_>, reading: &mut ReadingState<'_>) -> Result<(), DocumentError> {
    use hayro_interpret::hayro_syntax::object::{Array, Object, Stream};
    let mut streams: Vec<Stream<'_>> = Vec::new();
    if let Some(stream) = page.raw().get::<Stream<'_>>(b"Contents".as_slice()) {
        streams.push(stream);
    } else if let Some(parts) = page.raw().get::<Array<'_>>(b"Contents".as_slice()) {
        streams.extend(parts.iter::<Object<'_>>().take(10_000).filter_map(Object::into_stream));
    }
    for stream in streams {
        let raw = stream.raw_data();
        // Deflate reaches a factor of 1,032.
        if raw.len().saturating_mul(1_032) < 64 << 20 {
            continue;
        }
        let size = inflated(&raw, reading.expanded_left());
        reading.expand(size)?;
    }
    Ok(())
}

/// The decompressed size of zlib data, counted no further than one past a bound.
fn inflated(data: &[u8], most: usize) -> usize {
    use std::io::Read as _;
    let mut decoder = flate2::read::ZlibDecoder::new(data);
    let mut buffer = vec![0; 64 << 10];
    let mut size = 0usize;
    while size <= most {
        match decoder.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => size += read,
        }
    }
    size
}

fn about(pdf: &Pdf, total: u32) -> Info {
    let metadata = pdf.metadata();
    let text = |bytes: &Option<Box<[u8]>>| {
        bytes.as_deref().map(outline::text).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    let language = catalog
        .as_ref()
        .and_then(|catalog| catalog.get::<PdfString<'_>>(b"Lang".as_slice()))
        .map(|text| outline::text(text.as_bytes()))
        .filter(|text| !text.is_empty());
    Info {
        title: text(&metadata.title),
        author: text(&metadata.author),
        language,
        total,
        contents: outline::read(pdf),
        ..Info::default()
    }
}

/// Why a page is missing.
enum PageFailure {
    /// Nothing after it is read either.
    Stop(String),
    /// Only this page.
    Broken(String),
}

fn read_page<'a>(
    pdf: &'a Pdf,
    page: &'a PdfPage<'a>,
    number: u32,
    cache: &InterpreterCache<'a>,
    store: &mut FigureStore,
    codes: &mut CodeMaps,
    reading: &ReadingState<'_>,
) -> Result<Page, PageFailure> {
    let (width, height) = page.render_dimensions();
    let deadline = reading.deadline();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut collector = Collector::new((width, height), store, codes, deadline);
        let mut context = Context::new(
            page.initial_transform(true).to_kurbo(),
            Rect::new(0.0, 0.0, f64::from(width), f64::from(height)),
            cache,
            pdf.xref(),
            InterpreterSettings::default(),
        );
        interpret_page(page, &mut context, &mut collector);
        (collector.finish(), tags::read(pdf, page))
    }));
    let (drawing, tags) = match outcome {
        Ok(drawn) => drawn,
        Err(panic) => {
            return Err(match panic.downcast::<Abort>() {
                Ok(abort) => PageFailure::Stop(abort.0),
                Err(_) => PageFailure::Broken("its content is damaged".to_owned()),
            });
        }
    };
    let (letters, unknown) = (drawing.glyphs.len(), drawing.unknown);
    let mut out = layout::page(number, drawing, &store.art, &tags);
    if unknown > 0 && unknown * 10 > letters {
        out.warnings.push(format!(
            "page {number}: {unknown} of {letters} characters have no known letter; look at the page as a picture"
        ));
    }
    if let Some(dpi) = reading.options.page_pictures
        && let Some(figure) = guarded(|| picture::draw(page, number, dpi)).flatten()
    {
        out.figures.push(figure);
    }
    Ok(out)
}
