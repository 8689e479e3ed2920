//! Reading order, tables, figures, headings and hidden text of PDF files.

use toolwright_documents::{
    Content, DocumentErrorKind, FigureDetail, HiddenReason, PageRange, ReadLimits, ReadOptions, read,
};

use crate::paper::{Paper, wrap};
use crate::{Random, headings, markdown, open, paragraphs, tables};

fn texts(random: &mut Random, count: usize) -> Vec<String> {
    (0..count)
        .map(|_| format!("{} {} {}", random.sentence(9), random.sentence(11), random.sentence(8)))
        .collect()
}

#[test]
fn two_columns_are_read_one_after_the_other() {
    let mut random = Random(1);
    let (left, right) = (texts(&mut random, 5), texts(&mut random, 5));
    let mut paper = Paper::new();
    paper.page().bold(150.0, 790.0, 18.0, "A head above two columns");
    let (mut y, mut z) = (750.0, 750.0);
    for (a, b) in left.iter().zip(&right) {
        y = paper.column(60.0, y, 225.0, 10.0, a) - 6.0;
        z = paper.column(310.0, z, 225.0, 10.0, b) - 6.0;
    }
    let document = open("a.pdf", paper.bytes());
    assert_eq!(headings(&document), [(1, "A head above two columns".to_owned())]);
    assert_eq!(paragraphs(&document), [left, right].concat());
}

#[test]
fn columns_drawn_line_by_line_are_read_as_columns() {
    let mut random = Random(2);
    let columns: Vec<Vec<String>> = (0..3).map(|_| texts(&mut random, 4)).collect();
    let mut paper = Paper::new();
    paper.page();
    let lines: Vec<Vec<String>> = columns
        .iter()
        .map(|column| {
            let wrapped = column.iter().map(|text| wrap(text, 150.0, 9.0));
            wrapped
                .flat_map(|mut lines| {
                    lines.push(String::new());
                    lines
                })
                .collect()
        })
        .collect();
    for at in 0..lines.iter().map(Vec::len).max().unwrap_or(0) {
        for (column, lines) in lines.iter().enumerate() {
            if let Some(line) = lines.get(at).filter(|line| !line.is_empty()) {
                paper.text(50.0 + column as f32 * 172.0, 780.0 - at as f32 * 11.0, 9.0, line);
            }
        }
    }
    let document = open("a.pdf", paper.bytes());
    assert_eq!(paragraphs(&document), columns.concat());
}

#[test]
fn full_width_text_between_columns_divides_them() {
    let mut random = Random(3);
    let parts = texts(&mut random, 5);
    let mut paper = Paper::new();
    paper.page();
    let a = paper.column(60.0, 780.0, 225.0, 10.0, &parts[0]);
    let b = paper.column(310.0, 780.0, 225.0, 10.0, &parts[1]);
    let y = paper.column(60.0, a.min(b) - 20.0, 475.0, 10.0, &parts[2]) - 20.0;
    paper.column(60.0, y, 225.0, 10.0, &parts[3]);
    paper.column(310.0, y, 225.0, 10.0, &parts[4]);
    assert_eq!(paragraphs(&open("a.pdf", paper.bytes())), parts);
}

#[test]
fn single_column_blocks_come_from_top_to_bottom_however_they_are_drawn() {
    let mut random = Random(4);
    let parts = texts(&mut random, 6);
    let mut paper = Paper::new();
    paper.page();
    for (at, text) in parts.iter().enumerate().rev() {
        paper.column(60.0, 780.0 - at as f32 * 100.0, 475.0, 11.0, text);
    }
    assert_eq!(paragraphs(&open("a.pdf", paper.bytes())), parts);
}

#[test]
fn a_ruled_table_keeps_its_cells() {
    let rows =
        [["Name", "Amount", "Remark"], ["Alice", "12.50", "first of all"], ["Bob", "7", "a longer remark"]];
    let mut paper = Paper::new();
    paper.page().text(60.0, 780.0, 10.0, "Above the table.");
    for at in 0..4 {
        let y = 750.0 - at as f32 * 20.0;
        paper.line(60.0, y, 360.0, y);
        let x = 60.0 + at as f32 * 100.0;
        paper.line(x, 750.0, x, 690.0);
    }
    for (row, cells) in rows.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            paper.text(64.0 + column as f32 * 100.0, 736.0 - row as f32 * 20.0, 10.0, cell);
        }
    }
    paper.text(60.0, 660.0, 10.0, "Below the table.");
    let document = open("a.pdf", paper.bytes());
    assert_eq!(tables(&document), [rows.map(|row| row.map(str::to_owned).to_vec()).to_vec()]);
    let shown = markdown(&document);
    assert!(
        shown.starts_with("Above the table.\n\n| Name | Amount | Remark |\n| --- | --- | --- |\n"),
        "{shown}"
    );
    assert!(shown.ends_with("\n\nBelow the table.\n"), "{shown}");
}

#[test]
fn a_table_without_rules_keeps_its_cells() {
    let rows = [
        ["City", "People", "Area"],
        ["Berlin", "3,700,000", "891"],
        ["Paris", "2,100,000", "105"],
        ["Rome", "2,800,000", "1285"],
    ];
    let mut paper = Paper::new();
    paper.page().column(60.0, 790.0, 475.0, 10.0, &Random(9).sentence(30));
    for (row, cells) in rows.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            paper.text(60.0 + column as f32 * 130.0, 700.0 - row as f32 * 14.0, 10.0, cell);
        }
    }
    let document = open("a.pdf", paper.bytes());
    assert_eq!(tables(&document), [rows.map(|row| row.map(str::to_owned).to_vec()).to_vec()]);
}

#[test]
fn figures_stand_between_the_right_blocks() {
    let mut random = Random(5);
    let parts = texts(&mut random, 3);
    let mut paper = Paper::new();
    paper.page().image(60.0, 590.0, 120.0, 90.0).image(200.0, 420.0, 120.0, 60.0);
    paper.column(60.0, 780.0, 475.0, 11.0, &parts[0]);
    paper.column(60.0, 570.0, 475.0, 11.0, &parts[1]);
    paper.text(60.0, 400.0, 11.0, "Figure 2: the second one");
    paper.column(60.0, 370.0, 475.0, 11.0, &parts[2]);
    let options = ReadOptions { figures: FigureDetail::Encoded, ..ReadOptions::default() };
    let document = read(paper.bytes(), &options).unwrap();
    let order: String = document
        .blocks
        .iter()
        .map(|block| if matches!(block.content, Content::Figure { .. }) { 'f' } else { 't' })
        .collect();
    assert_eq!(order, "tftftt");
    assert_eq!(document.figures.len(), 2);
    assert_eq!(document.figures[1].caption.as_deref(), Some("Figure 2: the second one"));
    for figure in &document.figures {
        assert_eq!((figure.width, figure.height, figure.media_type.as_str()), (40, 30, "image/png"));
        assert!(figure.data.starts_with(b"\x89PNG"), "an encoded picture");
    }
}

#[test]
fn headings_come_from_the_size_of_the_type_and_running_heads_are_taken_out() {
    let mut random = Random(6);
    let mut paper = Paper::new();
    for page in 1..=4 {
        paper.page().text(60.0, 820.0, 8.0, "Annual Report").text(
            290.0,
            25.0,
            8.0,
            &format!("Page {page} of 4"),
        );
        paper.bold(60.0, 770.0, 18.0, &format!("{page} Chapter")).bold(
            60.0,
            730.0,
            14.0,
            &format!("{page}.1 Section"),
        );
        paper.column(60.0, 700.0, 475.0, 10.0, &texts(&mut random, 3).join(" "));
    }
    let document = open("a.pdf", paper.bytes());
    let wanted: Vec<(u8, String)> =
        (1..=4).flat_map(|page| [(1, format!("{page} Chapter")), (2, format!("{page}.1 Section"))]).collect();
    assert_eq!(headings(&document), wanted);
    let kinds =
        |wanted: fn(&Content) -> bool| document.blocks.iter().filter(|block| wanted(&block.content)).count();
    assert_eq!(kinds(|content| matches!(content, Content::Header { .. })), 4);
    assert_eq!(kinds(|content| matches!(content, Content::Footer { .. })), 4);
    assert!(!markdown(&document).contains("Annual Report"));
    assert_eq!(document.outline.len(), 8);
    assert_eq!((document.outline[6].title.as_str(), document.outline[6].page), ("4 Chapter", 4));
}

#[test]
fn bookmarks_are_the_outline() {
    let mut paper = Paper::new();
    paper.page().bold(60.0, 700.0, 11.0, "First part").column(
        60.0,
        680.0,
        400.0,
        11.0,
        &Random(8).sentence(40),
    );
    paper.page().text(60.0, 700.0, 11.0, "Second part");
    paper.catalog(
        "/Outlines 100 0 R",
        &[
            "<< /First 101 0 R /Last 102 0 R >>",
            "<< /Title (First part) /Parent 100 0 R /Next 102 0 R /Dest [1000 0 R /Fit] >>",
            "<< /Title <FEFF005300650063006F006E006400200070006100720074> /Parent 100 0 R /Dest [1002 0 R /Fit] /Next 101 0 R >>",
        ],
    );
    let document = open("a.pdf", paper.bytes());
    let outline: Vec<(&str, u32)> =
        document.outline.iter().map(|entry| (entry.title.as_str(), entry.page)).collect();
    assert_eq!(outline, [("First part", 1), ("Second part", 2)]);
    assert_eq!(headings(&document), [(1, "First part".to_owned()), (1, "Second part".to_owned())]);
}

#[test]
fn hidden_text_never_reaches_the_reader_unmarked() {
    let mut paper = Paper::new();
    paper.page().text(60.0, 780.0, 12.0, "The total is 100.");
    paper.raw("1 1 1 rg").text(60.0, 740.0, 12.0, "white secret").raw("0 0 0 rg");
    paper.raw("BT 3 Tr /F1 12 Tf 60 700 Td (mode secret) Tj 0 Tr ET");
    paper.text(-300.0, 660.0, 12.0, "outside secret").text(60.0, 620.0, 0.4, "tiny secret");
    paper.text(60.0, 580.0, 12.0, "covered secret").fill("0.8 0.8 0.8", 50.0, 570.0, 200.0, 30.0);
    paper.raw("q 400 400 20 20 re W n").text(60.0, 500.0, 12.0, "clipped secret").raw("Q");
    paper.fill("0 0 0.6", 50.0, 440.0, 300.0, 40.0);
    paper.raw("1 1 1 rg").text(60.0, 455.0, 12.0, "white on blue is seen").raw("0 0 0 rg");
    paper.fill("0.9 0.9 0.2", 50.0, 390.0, 300.0, 30.0).text(60.0, 400.0, 12.0, "marked is seen");
    let document = open("a.pdf", paper.bytes());
    let shown = markdown(&document);
    assert!(!shown.contains("secret"), "{shown}");
    for seen in
        ["The total is 100.", "white on blue is seen", "marked is seen", "[6 hidden passages left out]"]
    {
        assert!(shown.contains(seen), "{seen}: {shown}");
    }
    let mut reasons: Vec<HiddenReason> = document
        .blocks
        .iter()
        .filter_map(|block| match &block.content {
            Content::Hidden { reason, text } if text.contains("secret") => Some(*reason),
            _ => None,
        })
        .collect();
    reasons.sort();
    use HiddenReason::*;
    assert_eq!(reasons, [Invisible, Color, OffPage, OffPage, Tiny, Covered]);
}

#[test]
fn rotated_pages_and_turned_text_are_read_in_order() {
    let mut random = Random(7);
    let parts = texts(&mut random, 3);
    for rotate in [90, 180, 270] {
        let mut paper = Paper::new();
        paper.page_with(&format!("/Rotate {rotate}"));
        for (at, text) in parts.iter().enumerate() {
            paper.column(60.0, 780.0 - at as f32 * 120.0, 400.0, 11.0, text);
        }
        assert_eq!(paragraphs(&open("a.pdf", paper.bytes())), parts, "/Rotate {rotate}");
    }
    let mut paper = Paper::new();
    paper.page().column(60.0, 780.0, 400.0, 11.0, &parts[0]);
    paper.raw("BT /F1 11 Tf 0 1 -1 0 560 100 Tm (Turned up the margin) Tj ET");
    assert_eq!(paragraphs(&open("a.pdf", paper.bytes())), [parts[0].as_str(), "Turned up the margin"]);
}

#[test]
fn lists_and_hyphens() {
    let mut paper = Paper::new();
    paper.page().text(60.0, 780.0, 11.0, "We speak of the develop-").text(
        60.0,
        766.0,
        11.0,
        "ment of readers.",
    );
    for (at, item) in ["one thing", "another thing", "the last"].iter().enumerate() {
        let y = 730.0 - at as f32 * 14.0;
        paper.text(60.0, y, 11.0, "-").text(74.0, y, 11.0, item);
    }
    let document = open("a.pdf", paper.bytes());
    assert_eq!(
        markdown(&document),
        "We speak of the development of readers.\n\n- one thing\n- another thing\n- the last\n"
    );
}

#[test]
fn only_the_pages_asked_for_are_read() {
    let mut paper = Paper::new();
    for page in 1..=9 {
        paper.page().text(60.0, 700.0, 11.0, &format!("This is page number {page}"));
    }
    let pages = Some(PageRange::parse("3-4").unwrap());
    let document = read(paper.bytes(), &ReadOptions { pages, ..ReadOptions::default() }).unwrap();
    assert_eq!((document.pages.as_slice(), document.info.total), ([3, 4].as_slice(), 9));
    assert_eq!(paragraphs(&document), ["This is page number 3", "This is page number 4"]);
    assert_eq!(document.blocks[1].id, "p4.b1");
    let pages = Some(PageRange::parse("12").unwrap());
    let error = read(paper.bytes(), &ReadOptions { pages, ..ReadOptions::default() }).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (DocumentErrorKind::Range, "there is no page 12: the file has 9")
    );
}

#[test]
fn a_limit_gives_the_pages_before_it() {
    let mut paper = Paper::new();
    for _ in 0..6 {
        paper.page().text(60.0, 700.0, 11.0, "Some words of a page.");
    }
    let limits = ReadLimits { pages: 4, ..ReadLimits::default() };
    let document = read(paper.bytes(), &ReadOptions { limits, ..ReadOptions::default() }).unwrap();
    assert_eq!(document.pages, [1, 2, 3, 4]);
    let stopped = document.stopped.as_ref().expect("a place");
    assert_eq!((stopped.page, stopped.reason.as_str()), (5, "4 pages are read at most"));
    assert!(markdown(&document).ends_with("[reading stopped at page 5: 4 pages are read at most]\n"));
}

#[test]
fn encrypted_files_need_their_password() {
    // AES-256, user password `open sesame`; made with pypdf.
    let bytes = include_bytes!("encrypted.pdf").to_vec();
    let error = read(bytes.clone(), &ReadOptions::default()).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (DocumentErrorKind::Encrypted, "the PDF is encrypted and needs a password")
    );
    let with = |password: &str| {
        read(bytes.clone(), &ReadOptions { password: Some(password.to_owned()), ..ReadOptions::default() })
    };
    assert_eq!(with("wrong").unwrap_err().to_string(), "the password does not open the PDF");
    assert_eq!(paragraphs(&with("open sesame").unwrap()), ["The treasure is behind the rock."]);
}

#[test]
fn a_page_is_drawn_as_a_picture() {
    let mut paper = Paper::new();
    paper.page().fill("1 0 0", 0.0, 0.0, 595.0, 842.0);
    let document =
        read(paper.bytes(), &ReadOptions { page_pictures: Some(36), ..ReadOptions::default() }).unwrap();
    let picture = document.figures.iter().find(|figure| figure.id == "p1.picture").expect("a picture");
    assert_eq!((picture.width, picture.height), (297, 421));
    let mut reader = png::Decoder::new(std::io::Cursor::new(&picture.data)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    assert_eq!(pixels[(200 * 297 + 150) * 3..][..3], [255, 0, 0]);
}

#[test]
fn tags_of_the_file_name_headings_and_stand_for_figures() {
    let mut paper = Paper::new();
    paper.page_with("/StructParents 0");
    paper.raw("/H2 <</MCID 0>> BDC").text(60.0, 780.0, 10.0, "A quiet heading").raw("EMC");
    paper.raw("/P <</MCID 1>> BDC").text(60.0, 760.0, 10.0, "And a paragraph.").raw("EMC");
    paper.raw("/Figure <</MCID 2>> BDC").image(60.0, 600.0, 100.0, 80.0).raw("EMC");
    paper.raw("/Artifact <</Type /Pagination>> BDC").text(60.0, 30.0, 8.0, "page 1").raw("EMC");
    paper.catalog(
        "/StructTreeRoot 100 0 R /MarkInfo << /Marked true >>",
        &[
            "<< /Type /StructTreeRoot /RoleMap << /Kicker /H2 >> /ParentTree << /Nums [0 [101 0 R 102 0 R 103 0 R]] >> >>",
            "<< /S /Kicker /P 100 0 R >>",
            "<< /S /P /P 100 0 R >>",
            "<< /S /Figure /P 100 0 R /Alt (A red square) >>",
        ],
    );
    let document = open("a.pdf", paper.bytes());
    let text = markdown(&document);
    assert_eq!(text, "## A quiet heading\n\nAnd a paragraph.\n\n[figure p1.f1: 40x30, A red square]\n");
}
