//! What kind of file some bytes are: by content, then by name.

/// A kind of file that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is the name of a format")]
pub enum DocumentKind {
    Pdf,
    Docx,
    Pptx,
    Odt,
    Odp,
    Epub,
    Xlsx,
    Xls,
    Xlsb,
    Ods,
    Html,
    Markdown,
    Notebook,
    Eml,
    Msg,
    Csv,
    Tsv,
    JsonLines,
    Image(&'static str),
    Zip,
    Text,
    /// Binary data that no reader knows.
    Unknown,
}

impl DocumentKind {
    /// Its name, as in [`Info::kind`](crate::Info::kind).
    pub fn name(self) -> &'static str {
        match self {
            DocumentKind::Pdf => "pdf",
            DocumentKind::Docx => "docx",
            DocumentKind::Pptx => "pptx",
            DocumentKind::Odt => "odt",
            DocumentKind::Odp => "odp",
            DocumentKind::Epub => "epub",
            DocumentKind::Xlsx => "xlsx",
            DocumentKind::Xls => "xls",
            DocumentKind::Xlsb => "xlsb",
            DocumentKind::Ods => "ods",
            DocumentKind::Html => "html",
            DocumentKind::Markdown => "markdown",
            DocumentKind::Notebook => "notebook",
            DocumentKind::Eml => "eml",
            DocumentKind::Msg => "msg",
            DocumentKind::Csv => "csv",
            DocumentKind::Tsv => "tsv",
            DocumentKind::JsonLines => "json_lines",
            DocumentKind::Image(_) => "image",
            DocumentKind::Zip => "zip",
            DocumentKind::Text => "text",
            DocumentKind::Unknown => "unknown",
        }
    }
}

/// The kind of some bytes; `name` decides where the content leaves it open.
pub fn detect(bytes: &[u8], name: Option<&str>) -> DocumentKind {
    let extension = name
        .and_then(|name| name.rsplit_once('.'))
        .map(|(_, end)| end.to_ascii_lowercase())
        .unwrap_or_default();
    let head = bytes.get(..bytes.len().min(1_024)).unwrap_or_default();
    if head.windows(5).any(|window| window == b"%PDF-") {
        return DocumentKind::Pdf;
    }
    if let Some(media_type) = image_type(head) {
        return DocumentKind::Image(media_type);
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return zip_kind(bytes, &extension);
    }
    if head.starts_with(&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]) {
        return match extension.as_str() {
            "msg" => DocumentKind::Msg,
            // An encrypted workbook is a compound file as well; the reader says so.
            "xlsx" | "xlsm" | "xlsb" => DocumentKind::Xlsx,
            "docx" | "pptx" => DocumentKind::Unknown,
            _ if find(bytes, b"_\0_\0s\0u\0b\0s\0t\0g\0") => DocumentKind::Msg,
            _ => DocumentKind::Xls,
        };
    }
    if !looks_like_text(head) {
        return DocumentKind::Unknown;
    }
    match extension.as_str() {
        "html" | "htm" | "xhtml" => DocumentKind::Html,
        "md" | "markdown" => DocumentKind::Markdown,
        "ipynb" => DocumentKind::Notebook,
        "eml" | "mht" | "mhtml" => DocumentKind::Eml,
        "csv" => DocumentKind::Csv,
        "tsv" | "tab" => DocumentKind::Tsv,
        "jsonl" | "ndjson" => DocumentKind::JsonLines,
        _ => text_kind(head),
    }
}

fn text_kind(head: &[u8]) -> DocumentKind {
    let text = String::from_utf8_lossy(head);
    let start = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let lower: String = start.chars().take(200).flat_map(char::to_lowercase).collect();
    if lower.starts_with("<!doctype html") || lower.starts_with("<html") {
        return DocumentKind::Html;
    }
    if lower.starts_with('{') && lower.contains("\"cells\"") && text.contains("\"cell_type\"") {
        return DocumentKind::Notebook;
    }
    let field = |name: &str| start.lines().take(30).any(|line| line.to_ascii_lowercase().starts_with(name));
    if field("from:") && field("subject:") && (field("date:") || field("to:") || field("mime-version:")) {
        return DocumentKind::Eml;
    }
    DocumentKind::Text
}

fn image_type(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => "image/bmp",
        [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => "image/tiff",
        _ => return None,
    })
}

/// A package is recognised by the names of its parts, which are not compressed.
fn zip_kind(bytes: &[u8], extension: &str) -> DocumentKind {
    // `mimetype` is the first part of OpenDocument files and EPUB, stored without compression.
    let head = bytes.get(..bytes.len().min(200)).unwrap_or_default();
    let stated = |name: &[u8]| find(head, name);
    if stated(b"application/epub+zip") {
        return DocumentKind::Epub;
    }
    if stated(b"application/vnd.oasis.opendocument.text") {
        return DocumentKind::Odt;
    }
    if stated(b"application/vnd.oasis.opendocument.spreadsheet") {
        return DocumentKind::Ods;
    }
    if stated(b"application/vnd.oasis.opendocument.presentation") {
        return DocumentKind::Odp;
    }
    match extension {
        "docx" | "docm" | "dotx" => return DocumentKind::Docx,
        "pptx" | "pptm" | "ppsx" | "potx" => return DocumentKind::Pptx,
        "xlsx" | "xlsm" | "xltx" => return DocumentKind::Xlsx,
        "xlsb" => return DocumentKind::Xlsb,
        "ods" => return DocumentKind::Ods,
        "odt" | "ott" => return DocumentKind::Odt,
        "odp" => return DocumentKind::Odp,
        "epub" => return DocumentKind::Epub,
        "zip" | "jar" | "whl" => return DocumentKind::Zip,
        _ => {}
    }
    // The directory of a package stands at its end.
    let tail = bytes.get(bytes.len().saturating_sub(256 << 10)..).unwrap_or_default();
    if find(tail, b"word/document.xml") {
        DocumentKind::Docx
    } else if find(tail, b"ppt/presentation.xml") {
        DocumentKind::Pptx
    } else if find(tail, b"xl/workbook.xml") {
        DocumentKind::Xlsx
    } else if find(tail, b"xl/workbook.bin") {
        DocumentKind::Xlsb
    } else {
        DocumentKind::Zip
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn looks_like_text(head: &[u8]) -> bool {
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return true;
    }
    !head.contains(&0)
}

/// The number of page objects in a PDF, by looking for them.
#[cfg(not(feature = "pdf"))]
pub(crate) fn count_pdf_pages(bytes: &[u8]) -> usize {
    let pages = |needle: &[u8]| bytes.windows(needle.len()).filter(|window| *window == needle).count();
    (pages(b"/Type /Page") + pages(b"/Type/Page"))
        .saturating_sub(pages(b"/Type /Pages") + pages(b"/Type/Pages"))
}
