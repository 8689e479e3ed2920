//! Any bytes as documents: the reader returns blocks or an error, within its time and memory.

#![allow(dead_code, reason = "each target uses one of these")]

use std::io::{Cursor, Write as _};
use std::time::Duration;

use toolwright_documents::{FigureDetail, DocumentKind, ReadLimits, ReadOptions, read, render};

fn any(bytes: &[u8], kind: DocumentKind) {
    let limits = ReadLimits {
        time: Duration::from_secs(5),
        expanded: 64 << 20,
        text: 8 << 20,
        figures: 16 << 20,
        ..ReadLimits::default()
    };
    let options =
        ReadOptions { kind: Some(kind), figures: FigureDetail::Encoded, limits, ..ReadOptions::default() };
    if let Ok(document) = read(bytes.to_vec(), &options) {
        let _ = render::markdown(&document, &render::MarkdownOptions::default());
        for block in &document.blocks {
            assert!(document.pages.contains(&block.page), "a block of a page that was not read");
        }
    }
}

/// The first byte chooses among some kinds.
fn chosen(bytes: &[u8], kinds: &[DocumentKind]) -> Option<(DocumentKind, Vec<u8>)> {
    let (first, rest) = bytes.split_first()?;
    Some((*kinds.get(usize::from(*first) % kinds.len())?, rest.to_vec()))
}

/// Any bytes as a PDF.
pub fn pdf(bytes: &[u8]) {
    any(bytes, DocumentKind::Pdf);
}

/// Any bytes as markup, mail, values or a picture.
pub fn text(bytes: &[u8]) {
    let kinds = [
        DocumentKind::Html,
        DocumentKind::Markdown,
        DocumentKind::Notebook,
        DocumentKind::Eml,
        DocumentKind::Csv,
        DocumentKind::JsonLines,
        DocumentKind::Image("image/png"),
        DocumentKind::Text,
    ];
    if let Some((kind, rest)) = chosen(bytes, &kinds) {
        any(&rest, kind);
    }
}

/// Any bytes as a compound file, an old workbook or an archive.
pub fn binary(bytes: &[u8]) {
    let kinds = [DocumentKind::Xls, DocumentKind::Xlsb, DocumentKind::Msg, DocumentKind::Zip, DocumentKind::Docx];
    if let Some((kind, rest)) = chosen(bytes, &kinds) {
        any(&rest, kind);
    }
}

/// Any bytes as the main part of a package.
pub fn package(bytes: &[u8]) {
    let kinds = [DocumentKind::Docx, DocumentKind::Pptx, DocumentKind::Odt, DocumentKind::Ods, DocumentKind::Odp, DocumentKind::Xlsx, DocumentKind::Epub];
    let Some((kind, rest)) = chosen(bytes, &kinds) else { return };
    let relation = |target: &str, kind: &str| {
        format!(r#"<Relationships><Relationship Id="r" Type="x/{kind}" Target="{target}"/></Relationships>"#)
    };
    let parts: Vec<(&str, Vec<u8>)> = match kind {
        DocumentKind::Docx => vec![
            ("word/document.xml", rest.clone()),
            ("word/styles.xml", rest.clone()),
            ("word/numbering.xml", rest),
        ],
        DocumentKind::Pptx => vec![
            ("ppt/presentation.xml", br#"<p><sldId id="r"/></p>"#.to_vec()),
            ("ppt/_rels/presentation.xml.rels", relation("s.xml", "slide").into_bytes()),
            ("ppt/s.xml", rest),
        ],
        DocumentKind::Xlsx => vec![
            ("_rels/.rels", relation("xl/workbook.xml", "officeDocument").into_bytes()),
            (
                "xl/workbook.xml",
                br#"<workbook><sheets><sheet name="a" r:id="r"/></sheets></workbook>"#.to_vec(),
            ),
            ("xl/_rels/workbook.xml.rels", relation("s.xml", "worksheet").into_bytes()),
            ("xl/s.xml", rest),
        ],
        DocumentKind::Epub => vec![
            ("META-INF/container.xml", br#"<rootfile full-path="a.opf"/>"#.to_vec()),
            ("a.opf", br#"<p><item id="a" href="a.xhtml"/><itemref idref="a"/></p>"#.to_vec()),
            ("a.xhtml", rest),
        ],
        _ => vec![("content.xml", rest)],
    };
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, data) in parts {
        let written = zip.start_file(name, options).is_ok() && zip.write_all(&data).is_ok();
        assert!(written, "a package in memory takes everything");
    }
    if let Ok(package) = zip.finish() {
        any(&package.into_inner(), kind);
    }
}
