//! Files damaged on purpose: an error or what is left of them, never a panic, never without end.

use std::io::Write as _;
use std::time::{Duration, Instant};

use toolwright_documents::{DocumentErrorKind, DocumentKind, FigureDetail, ReadLimits, ReadOptions, read};

use crate::paper::Paper;
use crate::{Random, office};

/// How often each sample is damaged.
const ROUNDS: usize = 24;

fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let mut paper = Paper::new();
    for page in 0..3 {
        let mut random = Random(page);
        paper.page().bold(60.0, 800.0, 16.0, "A heading").image(300.0, 300.0, 90.0, 60.0);
        let text = random.sentence(60);
        paper.column(60.0, 760.0, 220.0, 10.0, &text);
        paper.column(310.0, 760.0, 220.0, 10.0, &text);
        paper
            .line(60.0, 200.0, 200.0, 200.0)
            .line(60.0, 180.0, 200.0, 180.0)
            .line(130.0, 200.0, 130.0, 180.0);
    }
    let mail = b"From: a@example.org\nTo: b@example.org\nSubject: Hello\nMIME-Version: 1.0\nContent-Type: multipart/mixed; \
        boundary=xx\n\n--xx\nContent-Type: text/plain\n\nThe body.\n--xx\nContent-Type: text/html\n\n<p>More</p>\n--xx--\n";
    vec![
        ("a.pdf", paper.bytes()),
        ("a.docx", office::word(office::DOCUMENT)),
        ("a.pptx", office::slides()),
        ("a.odt", office::open_text()),
        ("a.ods", office::open_sheet()),
        ("a.xlsx", office::workbook()),
        ("a.epub", office::book()),
        ("a.html", b"<h1>T</h1><table><tr><td rowspan=2>a<td>b<tr><td>c</table><ul><li>x<ul><li>y</ul></ul>".to_vec()),
        ("a.md", b"# T\n\n- a\n  - b\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```rust\nfn x() {}\n```\n".to_vec()),
        ("a.ipynb", br##"{"cells":[{"cell_type":"markdown","source":["# T"]},{"cell_type":"code","source":"1","outputs":[{"output_type":"stream","text":"1\n"}]}]}"##.to_vec()),
        ("a.eml", mail.to_vec()),
        ("a.csv", b"a,b\n1,\"x\ny\"\n2,z\n".to_vec()),
        ("a.jsonl", b"{\"a\":1}\n{\"a\":2,\"b\":\"x\"}\n".to_vec()),
    ]
}

#[test]
fn damaged_files_are_errors_or_less_text() {
    let seed = std::env::var("TOOLWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2026);
    println!("seed {seed}: set TOOLWRIGHT_SEED to repeat it");
    let mut random = Random(seed);
    let limits = ReadLimits { time: Duration::from_secs(10), ..ReadLimits::default() };
    for (name, sample) in samples() {
        for round in 0..ROUNDS {
            let mut bytes = sample.clone();
            match round % 4 {
                0 => bytes.truncate(random.below(bytes.len())),
                1 => {
                    let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
                    let piece = bytes[from.min(to)..from.max(to)].to_vec();
                    let at = random.below(bytes.len());
                    bytes.splice(at..at, piece);
                }
                _ => {
                    for _ in 0..1 + random.below(40) {
                        let at = random.below(bytes.len());
                        bytes[at] = random.next() as u8;
                    }
                }
            }
            let options = ReadOptions {
                name: Some(name.to_owned()),
                figures: FigureDetail::Encoded,
                limits: limits.clone(),
                ..ReadOptions::default()
            };
            let start = Instant::now();
            // A panic fails the test with the round it happened in.
            let outcome = std::panic::catch_unwind(|| read(bytes, &options));
            assert!(outcome.is_ok(), "{name}, round {round} of seed {seed}");
            assert!(start.elapsed() < Duration::from_secs(20), "{name}, round {round} of seed {seed}");
        }
    }
}

fn limited(name: &str, bytes: Vec<u8>) -> DocumentErrorKind {
    let start = Instant::now();
    let outcome = read(bytes, &ReadOptions::named(name));
    assert!(start.elapsed() < Duration::from_secs(20), "{name} took {:?}", start.elapsed());
    match outcome {
        Ok(document) => panic!("{name} was read: {:?}", document.stopped),
        Err(error) => error.kind(),
    }
}

#[test]
fn bombs_are_limits() {
    let laughs: String = (0..200).map(|_| "<w:p>".to_owned()).chain(["<w:r/>".repeat(10)]).collect();
    let deep = format!("<w:document><w:body>{}", laughs.repeat(30));
    assert_eq!(limited("deep.docx", office::word(&deep)), DocumentErrorKind::Limit);
    let zeros = vec![b' '; 64 << 20];
    assert_eq!(
        limited("bomb.docx", office::package(&[("word/document.xml", &zeros)])),
        DocumentErrorKind::Limit
    );
    let nested = "Content-Type: multipart/mixed; boundary=b\n\n--b\n".repeat(1000);
    let mail = format!("From: a\nSubject: b\nDate: c\n{nested}");
    assert_eq!(limited("deep.eml", mail.into_bytes()), DocumentErrorKind::Limit);
    assert_eq!(limited("deep.ipynb", "[".repeat(100_000).into_bytes()), DocumentErrorKind::Damaged);
    let limits = ReadLimits { bytes: 10, ..ReadLimits::default() };
    let error = read(vec![b'a'; 11], &ReadOptions { limits, ..ReadOptions::default() }).unwrap_err();
    assert_eq!(error.kind(), DocumentErrorKind::Limit);
}

#[test]
fn entities_of_a_document_type_are_not_expanded() {
    let text = "<!DOCTYPE x [<!ENTITY a \"secret secret\">]><w:document><w:body><w:p><w:r><w:t>A &a; B</w:t></w:r></w:p></w:body></w:document>";
    let document = crate::open("a.docx", office::word(text));
    assert_eq!(crate::paragraphs(&document), ["A  B"]);
}

#[test]
fn a_sheet_that_claims_to_be_huge_is_small() {
    let sheet = r#"<worksheet><dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1"><v>1</v></c></row>
        <row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData></worksheet>"#;
    let start = Instant::now();
    let document = crate::open("a.xlsx", office::workbook_of(sheet));
    assert!(start.elapsed() < Duration::from_secs(5));
    let table = &crate::tables(&document)[0];
    assert_eq!(
        (table[0][0].as_str(), table.last().and_then(|row| row.last()).map(String::as_str)),
        ("1", Some("2"))
    );
}

#[test]
fn a_compressed_page_that_expands_without_end_is_a_limit() {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let line = b"q Q ".repeat(1 << 18);
    for _ in 0..700 {
        encoder.write_all(&line).unwrap();
    }
    let packed = encoder.finish().unwrap();
    let head = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\n\
        endobj\n3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] /Contents 4 0 R >>\nendobj\n";
    let stream = format!("4 0 obj\n<< /Filter /FlateDecode /Length {} >>\nstream\n", packed.len());
    let bytes =
        [head.as_slice(), stream.as_bytes(), &packed, b"\nendstream\nendobj\ntrailer\n<< /Root 1 0 R >>\n"]
            .concat();
    let document =
        read(bytes, &ReadOptions { kind: Some(DocumentKind::Pdf), ..ReadOptions::default() }).unwrap();
    assert!(document.stopped.expect("a place").reason.contains("expands to more than"), "the bound is named");
}
