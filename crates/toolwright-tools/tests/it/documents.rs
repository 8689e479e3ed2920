//! `read_file` and `read_figure` on documents, called as a model calls them: the reader runs in a worker,
//! which is this test program started again.

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::{Value, json};
use toolwright_core::{Content, ErrorKind, ToolCall, ToolResult};
use toolwright_runtime::Run;
use toolwright_tools::standard;

use crate::paper::Paper;
use crate::support::{Backend, Bench, cases};

cases![
    a_long_paper_begins_with_its_outline_and_each_next_call_goes_on_where_it_ended,
    pages_and_sections_can_be_named,
    figures_are_pictures_in_reading_order,
    a_figure_can_be_fetched_later,
    cells_of_a_workbook_keep_their_addresses,
    texts_stay_as_they_are,
    a_program_is_given_everything,
    a_text_is_read_within_a_budget,
    files_that_cannot_be_read_say_why,
    a_page_without_end_is_read_in_parts,
];

/// So many pages, each with a heading and sentences that occur once.
fn paper(pages: usize) -> Vec<u8> {
    let mut paper = Paper::new();
    for page in 1..=pages {
        paper.page().bold(60.0, 790.0, 18.0, &format!("Chapter {page}"));
        let mut y = 760.0;
        for paragraph in 1..=6 {
            let text = format!("Page {page} paragraph {paragraph} says this. ").repeat(9);
            y = paper.column(60.0, y, 475.0, 10.0, text.trim()) - 8.0;
        }
    }
    paper.bytes()
}

/// The result as a model gets it, within the limit that runs have.
async fn as_model(bench: &Bench, tool: &str, arguments: Value) -> ToolResult {
    let run = Run::builder(standard().unwrap()).sandbox("default", bench.sandbox.clone()).build().unwrap();
    let result = run.call(ToolCall::new("1", tool, arguments)).await.unwrap();
    assert!(result.error.is_none(), "{:?}", result.error);
    assert!(result.truncated.is_none(), "the tool ends before the run cuts: {:?}", result.truncated);
    result
}

/// The call that a note names.
fn next_call(text: &str) -> Option<Value> {
    let call = text.rsplit_once("next: read_file(")?.1;
    let mut arguments = json!({});
    for part in call.split_once(')').unwrap().0.split(", ") {
        let (name, value) = part.split_once('=').unwrap();
        arguments[name] = serde_json::from_str(value).unwrap();
    }
    Some(arguments)
}

async fn a_long_paper_begins_with_its_outline_and_each_next_call_goes_on_where_it_ended(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("a b.pdf", paper(40));
    let first = as_model(&bench, "read_file", json!({"path": "a b.pdf"})).await.to_text();
    assert!(first.starts_with("[a b.pdf: pdf, 40 pages"), "{first}");
    assert!(first.contains("Chapter 40  (page 40)\n"), "{first}");
    let mut text = first.split_once("[end of the outline]\n").unwrap().1.to_owned();
    let mut next = next_call(&first);
    let mut calls = 1;
    while let Some(arguments) = next {
        assert_eq!(arguments["path"], "a b.pdf");
        let more = as_model(&bench, "read_file", arguments).await.to_text();
        next = next_call(&more);
        text.push_str(&more);
        calls += 1;
        assert!(calls < 40, "reading on gets further");
    }
    for page in 1..=40 {
        for paragraph in 1..=6 {
            let count = text.matches(&format!("Page {page} paragraph {paragraph} says this.")).count();
            assert_eq!(count, 9, "page {page} paragraph {paragraph}");
        }
    }
    assert!(calls >= 4, "{calls}");
}

async fn pages_and_sections_can_be_named(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("a.pdf", paper(12));
    let page = as_model(&bench, "read_file", json!({"path": "a.pdf", "pages": "3"})).await.to_text();
    assert!(page.starts_with("# Chapter 3\n\nPage 3 paragraph 1"), "{page}");
    assert!(
        page.ends_with("[page 3 of 12 shown; next: read_file(path=\"a.pdf\", pages=\"4-\")]\n"),
        "{page}"
    );
    let two = as_model(&bench, "read_file", json!({"path": "a.pdf", "pages": "3-4"})).await.to_text();
    assert!(two.contains("Page 4 paragraph 6") && two.ends_with("[pages 3-4 of 12 shown]\n"), "{two}");
    let section =
        as_model(&bench, "read_file", json!({"path": "a.pdf", "section": "chapter 5"})).await.to_text();
    assert!(section.starts_with("# Chapter 5\n") && section.contains("Page 5 paragraph 6"), "{section}");
    assert!(!section.contains("Page 6"), "{section}");
    let lines = json!({"path": "a.pdf", "pages": "3", "lines": [1, 1]});
    assert_eq!(bench.text("read_file", lines).await.lines().next(), Some("# Chapter 3"));
    for (wrong, said) in [
        (json!({"path": "a.pdf", "pages": "13"}), "there is no page 13: the file has 12"),
        (json!({"path": "a.pdf", "pages": "x"}), "`pages`"),
        (json!({"path": "a.pdf", "section": "Appendix"}), "no section `Appendix`"),
        (json!({"path": "a.pdf", "max_tokens": 0}), "`max_tokens`"),
    ] {
        let (kind, message) = bench.error("read_file", wrong).await;
        assert!(kind == ErrorKind::Parsing && message.contains(said), "{message}");
    }
    bench.write("n.ipynb", r##"{"cells": [{"cell_type": "markdown", "source": "# One"}, {"cell_type": "code", "source": "x = 1", "outputs": []}], "nbformat": 4}"##);
    let cell = bench.text("read_file", json!({"path": "n.ipynb", "pages": "2"})).await;
    assert!(cell.contains("x = 1") && !cell.contains("One"), "{cell}");
}

fn with_figures() -> Vec<u8> {
    let mut paper = Paper::new();
    paper.page();
    paper.text(60.0, 800.0, 11.0, "Above the first figure there is this sentence.");
    paper.image_of((160, 120), 60.0, 600.0, 200.0, 150.0);
    paper.text(60.0, 580.0, 11.0, "Figure 1: a plain square");
    paper.text(60.0, 540.0, 11.0, "Between the figures there is another sentence.");
    paper.image_of((2000, 100), 60.0, 400.0, 400.0, 20.0);
    paper.text(60.0, 360.0, 11.0, "Below them there is the last one.");
    paper.image(60.0, 200.0, 20.0, 15.0);
    paper.bytes()
}

/// The kinds of blocks in order, texts by a word in them.
fn shapes(result: &ToolResult, words: &[&str]) -> Vec<String> {
    let shape = |block: &Content| match block {
        Content::Text { text, .. } => {
            words.iter().filter(|word| text.contains(**word)).copied().collect::<Vec<_>>().join("+")
        }
        Content::Image(media) => {
            let image = image::load_from_memory(&media.bytes().unwrap()).unwrap();
            format!("{}x{}", image.width(), image.height())
        }
        other => format!("{other:?}"),
    };
    result.content.iter().map(shape).collect()
}

async fn figures_are_pictures_in_reading_order(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("f.pdf", with_figures());
    let words = ["Above", "Between", "Below", "read_figure"];
    let result = as_model(&bench, "read_file", json!({"path": "f.pdf"})).await;
    assert_eq!(shapes(&result, &words), ["Above", "160x120", "Between", "1568x78", "Below+read_figure"]);
    let text = result.to_text();
    assert!(text.contains("[figure p1.f1: 160x120, Figure 1: a plain square]"), "{text}");
    let none = as_model(&bench, "read_file", json!({"path": "f.pdf", "images": "none"})).await;
    assert_eq!(shapes(&none, &words), ["Above+Between+Below+read_figure"]);
    let pages = as_model(&bench, "read_file", json!({"path": "f.pdf", "images": "pages"})).await;
    assert_eq!(shapes(&pages, &words).last().unwrap(), "909x1286");
    // A page on which things are only drawn can be seen.
    let mut drawing = Paper::new();
    drawing.page().line(60.0, 700.0, 400.0, 300.0);
    drawing.page().text(60.0, 700.0, 11.0, "A page with words.");
    bench.write("d.pdf", drawing.bytes());
    let drawn = as_model(&bench, "read_file", json!({"path": "d.pdf"})).await.to_text();
    assert!(
        drawn.contains(
            "[page 1 has no text; see it: read_file(path=\"d.pdf\", pages=\"1\", images=\"pages\")]"
        ),
        "{drawn}"
    );
    let seen = as_model(&bench, "read_file", json!({"path": "d.pdf", "pages": "1", "images": "pages"})).await;
    assert!(shapes(&seen, &[]).contains(&"909x1286".to_owned()), "{seen:?}");
    // Figures count: many of them end a read before all pages are read.
    let mut many = Paper::new();
    for page in 0..30 {
        many.page().text(60.0, 800.0, 11.0, &format!("Scan {page}")).image_of(
            (100, 100),
            60.0,
            100.0,
            400.0,
            600.0,
        );
    }
    bench.write("s.pdf", many.bytes());
    let scans = as_model(&bench, "read_file", json!({"path": "s.pdf"})).await;
    let shown = scans.content.iter().filter(|block| matches!(block, Content::Image(_))).count();
    assert!(
        (1..=8).contains(&shown) && scans.to_text().contains(" of 30 shown; next: "),
        "{}",
        scans.to_text()
    );
    // A picture is a document of one figure.
    let mut png = std::io::Cursor::new(Vec::new());
    image::DynamicImage::new_rgb8(300, 200).write_to(&mut png, image::ImageFormat::Png).unwrap();
    bench.write("p.png", png.into_inner());
    let picture = as_model(&bench, "read_file", json!({"path": "p.png"})).await;
    assert_eq!(shapes(&picture, &["p1.f1"]), ["p1.f1", "300x200"]);
}

async fn a_figure_can_be_fetched_later(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("f.pdf", with_figures());
    let one = as_model(&bench, "read_figure", json!({"path": "f.pdf", "figure": "p1.f3"})).await;
    assert_eq!(shapes(&one, &["p1.f3: 40x30"]), ["p1.f3: 40x30", "40x30"]);
    let page = as_model(&bench, "read_figure", json!({"path": "f.pdf", "figure": "p1"})).await;
    assert_eq!(shapes(&page, &["p1.picture"]), ["p1.picture", "1108x1568"]);
    for (figure, said) in
        [("p1.f9", "no figure `p1.f9`"), ("p9.f1", "there is no page 9"), ("x", "`figure` must be")]
    {
        let (kind, message) = bench.error("read_figure", json!({"path": "f.pdf", "figure": figure})).await;
        assert!(kind == ErrorKind::Parsing && message.contains(said), "{message}");
    }
}

/// A workbook as its format demands at least.
fn workbook(rows: &[(&str, &str)]) -> Vec<u8> {
    let mut sheet = String::from(
        r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>"#,
    );
    for (number, (name, amount)) in (1..).zip(rows) {
        let _ = write!(
            sheet,
            r#"<row r="{number}"><c r="B{number}" t="inlineStr"><is><t>{name}</t></is></c><c r="C{number}"><v>{amount}</v></c></row>"#
        );
    }
    sheet.push_str("</sheetData></worksheet>");
    let parts = [
        ("[Content_Types].xml", r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>"#.to_owned()),
        ("_rels/.rels", r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#.to_owned()),
        ("xl/workbook.xml", r#"<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Prices" sheetId="1" r:id="r1"/></sheets></workbook>"#.to_owned()),
        ("xl/_rels/workbook.xml.rels", r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#.to_owned()),
        ("xl/worksheets/sheet1.xml", sheet),
    ];
    let mut file = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in parts {
        file.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
    file.finish().unwrap().into_inner()
}

async fn cells_of_a_workbook_keep_their_addresses(backend: Backend) {
    let bench = Bench::new(backend).await;
    let rows: Vec<(String, String)> = (1..=3000).map(|n| (format!("row {n}"), format!("{n}.5"))).collect();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    bench.write("w.xlsx", workbook(&rows));
    let text = |arguments: Value| async { bench.text("read_file", arguments).await };
    let part = text(json!({"path": "w.xlsx", "section": "Prices!B20:C21"})).await;
    assert_eq!(
        part,
        "## Prices\n\nCells B20:C21\n\n|  |  |\n| --- | --- |\n| row 20 | 20.5 |\n| row 21 | 21.5 |\n"
    );
    let column = text(json!({"path": "w.xlsx", "section": "A7:C7"})).await;
    assert!(column.ends_with("|  | row 7 | 7.5 |\n"), "{column}");
    let first = as_model(&bench, "read_file", json!({"path": "w.xlsx"})).await.to_text();
    assert!(first.contains("row 1 ") && first.contains("query_data"), "{first}");
    let next = as_model(&bench, "read_file", next_call(&first).unwrap()).await.to_text();
    let last = |text: &str| text.lines().rfind(|line| line.starts_with("| row")).unwrap().to_owned();
    let number = |line: &str| line.split(' ').nth(2).unwrap().parse::<u32>().unwrap();
    let following = next.lines().find(|line| line.starts_with("| row")).unwrap();
    assert_eq!(number(following), number(&last(&first)) + 1);
    let (kind, message) = bench.error("read_file", json!({"path": "w.xlsx", "section": "Costs"})).await;
    assert!(kind == ErrorKind::Parsing && message.contains("no section `Costs`"), "{message}");
}

async fn texts_stay_as_they_are(backend: Backend) {
    let bench = Bench::new(backend).await;
    for (name, text) in [
        ("a.csv", "x;y\n1;2\n"),
        ("a.html", "<p>Hello</p>"),
        ("a.md", "# One\n\n\n* two\n"),
        ("a.rs", "const MARK: &[u8] = b\"%PDF-\";\n"),
        ("a.eml", "From: a\nSubject: b\nDate: c\n\nhi\n"),
        ("a.pdf", ""),
    ] {
        bench.write(name, text);
        assert_eq!(as_model(&bench, "read_file", json!({"path": name})).await.to_text(), text, "{name}");
    }
    let table = bench.text("read_file", json!({"path": "a.csv", "pages": "1"})).await;
    assert!(table.contains("delimiter `;`") && table.contains("| 1 | 2 |"), "{table}");
    let section = bench.text("read_file", json!({"path": "a.md", "section": "One"})).await;
    assert_eq!(section, "# One\n\n- two\n");
    bench.write("bytes", [0u8, 1, 2, 0xff]);
    assert_eq!(bench.error("read_file", json!({"path": "bytes"})).await.0, ErrorKind::UnicodeDecode);
}

async fn a_program_is_given_everything(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("a.pdf", paper(40));
    // This run has no limit, as the command `call` has none.
    let text = bench.text("read_file", json!({"path": "a.pdf"})).await;
    assert!(text.starts_with("# Chapter 1\n") && text.contains("Page 40 paragraph 6"), "{}", text.len());
    let some = bench.text("read_file", json!({"path": "a.pdf", "max_tokens": 1000})).await;
    assert!(some.len() <= 4000 && next_call(&some).is_some(), "{some}");
}

async fn a_text_is_read_within_a_budget(backend: Backend) {
    let bench = Bench::new(backend).await;
    let lines: Vec<String> = (0..500).map(|n| format!("line {n}\n")).collect();
    bench.write("a.txt", lines.concat());
    let mut text = String::new();
    let mut next = Some(json!({"path": "a.txt", "max_tokens": 300}));
    while let Some(arguments) = next {
        let part = bench.text("read_file", arguments).await;
        next = next_call(&part);
        assert!(part.len() < 1400);
        text.push_str(part.rsplit_once("[lines").map_or(part.as_str(), |(lines, _)| lines));
    }
    assert_eq!(text, lines.concat());
    bench.write("long.txt", "x".repeat(10_000));
    let cut = bench.text("read_file", json!({"path": "long.txt", "max_tokens": 100})).await;
    assert!(cut.ends_with("\n[9600 more bytes in line 1]\n"), "{cut}");
}

async fn files_that_cannot_be_read_say_why(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("broken.pdf", "%PDF-1.7\nnothing\n");
    let (kind, message) = bench.error("read_file", json!({"path": "broken.pdf"})).await;
    assert!(
        kind == ErrorKind::Unknown && message.starts_with("broken.pdf: the file is not a PDF"),
        "{message}"
    );
    bench.write("broken.docx", b"PK\x03\x04rest");
    assert_eq!(bench.error("read_file", json!({"path": "broken.docx"})).await.0, ErrorKind::Unknown);
    let missing = bench.error("read_file", json!({"path": "none.pdf"})).await;
    assert_eq!(missing.0, ErrorKind::FileNotFound);
}

async fn a_page_without_end_is_read_in_parts(backend: Backend) {
    let bench = Bench::new(backend).await;
    let paragraphs: Vec<String> =
        (0..2000).map(|n| format!("<p>Paragraph {n} of one long page.</p>")).collect();
    bench.write("a.html", paragraphs.concat());
    let mut next = Some(json!({"path": "a.html", "pages": "1"}));
    let mut text = String::new();
    while let Some(arguments) = next {
        let part = as_model(&bench, "read_file", arguments).await.to_text();
        next = next_call(&part);
        text.push_str(&part);
    }
    for n in [0, 1, 700, 1500, 1999] {
        assert_eq!(text.matches(&format!("Paragraph {n} of")).count(), 1, "{n}");
    }
}
