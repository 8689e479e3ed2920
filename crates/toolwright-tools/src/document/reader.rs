//! From the bytes of a file to a document, in a worker.

use std::time::Duration;

use toolwright_core::{ErrorKind, ToolError};
use toolwright_documents::{
    Document, DocumentError, DocumentErrorKind, DocumentKind, DocumentSource, ReadLimits, ReadOptions,
    WorkerLimits, can_start_worker, detect, read_in_worker,
};

use crate::options::Call;

/// The longest that reading a document may take.
const READ_TIME: Duration = Duration::from_secs(60);

/// The most bytes of pictures that are taken out of a document at once.
const MAX_FIGURES: usize = 48 << 20;

/// Whether a file can only be read as a document: its bytes are not text.
pub(crate) fn is_document(bytes: &[u8], path: &str) -> bool {
    let is_text = || std::str::from_utf8(bytes).is_ok();
    match detect(bytes, Some(path)) {
        // A text may mention the first bytes of a PDF.
        DocumentKind::Pdf => bytes.trim_ascii_start().starts_with(b"%PDF-") || !is_text(),
        DocumentKind::Image(_) => bytes.contains(&0) || !is_text(),
        DocumentKind::Docx
        | DocumentKind::Pptx
        | DocumentKind::Odt
        | DocumentKind::Odp
        | DocumentKind::Epub
        | DocumentKind::Xlsx
        | DocumentKind::Xls
        | DocumentKind::Xlsb
        | DocumentKind::Ods
        | DocumentKind::Msg
        | DocumentKind::Zip => true,
        _ => false,
    }
}

/// The options of a reading of a file, bounded for a call.
pub(crate) fn options_for(path: &str) -> ReadOptions {
    let name = path.rsplit('/').next().unwrap_or(path);
    let limits = ReadLimits { figures: MAX_FIGURES, time: READ_TIME, ..ReadLimits::default() };
    ReadOptions { limits, ..ReadOptions::named(name) }
}

/// Reads a document. The worker ends with the call.
pub(crate) async fn open(
    call: &Call<'_>,
    path: &str,
    bytes: &[u8],
    mut options: ReadOptions,
) -> Result<Document, ToolError> {
    if !can_start_worker() {
        let message = "this program cannot start a worker that reads documents";
        return Err(ToolError::of(ErrorKind::SandboxUnavailable, message)
            .hint("call `toolwright::documents::main_if_worker` first thing in `main`"));
    }
    options.limits.time = call.time(options.limits.time);
    let limits = WorkerLimits {
        time: options.limits.time + Duration::from_secs(3),
        processor: options.limits.time + Duration::from_secs(1),
        ..WorkerLimits::default()
    };
    let cancel = call.context.cancel_token().clone();
    let stop = cancel.clone();
    let bytes = bytes.to_vec();
    let reading = tokio::task::spawn_blocking(move || {
        let stop: Box<dyn Fn() -> bool + Send> = Box::new(move || stop.is_cancelled());
        read_in_worker(DocumentSource::Bytes(&bytes), &options, limits, Some(stop), &mut |_| {})
    });
    let outcome = reading
        .await
        .map_err(|error| ToolError::new(format!("{path} could not be read")).with_source(error))?;
    if cancel.is_cancelled() {
        return Err(ToolError::of(ErrorKind::Cancelled, "the call was cancelled"));
    }
    outcome.map(|(document, _)| document).map_err(|error| failed(path, &error))
}

fn failed(path: &str, error: &DocumentError) -> ToolError {
    let kind = match error.kind() {
        DocumentErrorKind::Unsupported => ErrorKind::UnicodeDecode,
        DocumentErrorKind::Encrypted => ErrorKind::Permission,
        DocumentErrorKind::Limit => ErrorKind::Limit,
        DocumentErrorKind::Range => ErrorKind::Parsing,
        _ => ErrorKind::Unknown,
    };
    let shown = ToolError::of(kind, format!("{path}: {error}"));
    match error.hint() {
        _ if error.kind() == DocumentErrorKind::Encrypted
            && error.to_string().contains("needs a password") =>
        {
            shown.hint("give its `password`")
        }
        Some(hint) => shown.hint(hint),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::is_document;

    #[test]
    fn texts_that_mention_a_format_stay_texts() {
        for (bytes, path, wanted) in [
            (b"%PDF-1.7\n".as_slice(), "a", true),
            (b"// the mark is %PDF-\n", "a.rs", false),
            (b"BM notes\n", "a.txt", false),
            (b"GIF89a is a format", "a.md", false),
            (b"\x89PNG\r\n\x1a\n\0", "a", true),
            (b"PK\x03\x04", "a.docx", true),
            (b"a,b\n", "a.csv", false),
            (b"{\"cells\": []}", "a.ipynb", false),
            (b"\0\x01\x02\xff", "a.bin", false),
            (b"", "empty.pdf", false),
        ] {
            assert_eq!(is_document(bytes, path), wanted, "{path} {bytes:?}");
        }
    }
}
