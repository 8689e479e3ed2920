//! Markup, notebooks, separated values, JSON lines and pictures.

use toolwright_documents::{Content, DocumentKind, ReadOptions, Unit, detect, read};

use crate::{headings, markdown, open, tables};

#[test]
fn html_without_what_is_not_for_readers() {
    let page = "<!doctype html><html lang=de><head><title> A  page </title><style>p{}</style></head><body><nav>Menu</nav>\
        <h1>Head <em>line</em></h1><p>Words &amp; a <a href='https://example.org/'>link</a>.<br>Second line</p>\
        <div style='display: none'>secret <b>words</b></div><ol start=3><li>c<ul><li>inner</ul><li>d</ol>\
        <table><tr><th>a</th><th>b</th></tr><tr><td rowspan=2>1</td><td>2</td></tr><tr><td>3|4</td></tr></table>\
        <pre><code class=language-rust>fn x() {\n  1\n}</code></pre><img src=a.png alt='A box' width=5 height=6><script>bad()</script>";
    let document = open("a.html", page);
    assert_eq!(
        (document.info.title.as_deref(), document.info.language.as_deref()),
        (Some("A page"), Some("de"))
    );
    let wanted = "Menu\n\n# Head line\n\nWords & a [link](https://example.org/).\nSecond line\n\n3. c\n  - inner\n4. d\n\n\
        | a | b |\n| --- | --- |\n| 1 | 2 |\n|  | 3\\|4 |\n\n```rust\nfn x() {\n  1\n}\n```\n\n[figure p1.f1: 5x6, A box]\n\n\
        [1 hidden passage left out]\n";
    assert_eq!(markdown(&document), wanted);
}

#[test]
fn markdown_stays_what_it_is() {
    let text = "# Title\n\nA *paragraph*\nof two lines.\n\n- one\n  - inner\n- two\n\n1. first\n2. second\n\n| a | b |\n| --- | --- |\n| 1 | x\\|y |\n\n\
        ```python\n# no heading\n```\n\n## Part\n";
    let document = open("a.md", text);
    assert_eq!(markdown(&document), text);
    assert_eq!(headings(&document), [(1, "Title".to_owned()), (2, "Part".to_owned())]);
    let underlined = open("a.md", "Title\n=====\n\nPart\n---\n");
    assert_eq!(headings(&underlined), [(1, "Title".to_owned()), (2, "Part".to_owned())]);
}

#[test]
fn notebooks_show_their_outputs() {
    let long: String = (0..60).map(|line| format!("{line}\\n")).collect();
    let book = format!(
        r##"{{"metadata":{{"kernelspec":{{"language":"python"}}}},"cells":[{{"cell_type":"markdown","source":["# T\n","text"]}},
        {{"cell_type":"code","source":"print(1)","outputs":[{{"output_type":"stream","text":["{long}"]}},
        {{"output_type":"display_data","data":{{"image/png":"iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAYAAACddGYaAAAADElEQVQI12NgoBMAAABpAAFEI8ARAAAAAElFTkSuQmCC"}}}},
        {{"output_type":"error","ename":"ValueError","evalue":"no","traceback":[]}}]}}]}}"##
    );
    let document = open("a.ipynb", book);
    assert_eq!((document.info.unit, document.info.total), (Unit::Cell, 2));
    let shown = markdown(&document);
    assert!(shown.starts_with("# T\n\ntext\n\n```python\nprint(1)\n```\n\n```output\n0\n1\n"), "{shown}");
    assert!(
        shown.contains("39\n[20 more lines]\n```\n\n[figure p2.f1: 3x2]\n\n```output\nValueError: no\n```"),
        "{shown}"
    );
}

#[test]
fn separated_values_say_how_they_were_read() {
    let document = open("a.csv", "name;price\nx;1,50\n\"y;z\";2\n");
    let wanted = "2 rows, 2 columns; delimiter `;`, header yes\n\n| name | price |\n| --- | --- |\n| x | 1,50 |\n| y;z | 2 |\n";
    assert_eq!(markdown(&document), wanted);
    let document = open("a.csv", "1,2\n3,4,5\n");
    assert!(
        markdown(&document).starts_with(
            "2 rows, 2 columns; delimiter `,`, header no, 1 rows with another number of cells\n"
        )
    );
}

#[test]
fn json_lines_of_objects_are_a_table() {
    let document = open("a.jsonl", "{\"a\":1,\"b\":null}\n\n{\"a\":\"x\",\"c\":[1]}\nnot json\n");
    let wanted = [["a", "b", "c"], ["1", "", ""], ["x", "", "[1]"]];
    assert_eq!(tables(&document), [wanted.map(|row| row.map(str::to_owned).to_vec()).to_vec()]);
    assert!(markdown(&document).starts_with("2 rows, 3 columns; JSON lines, 1 lines rejected\n"));
}

#[test]
fn kinds_are_told_by_content_first() {
    let wanted = [
        (b"%PDF-1.4".as_slice(), "a.txt", DocumentKind::Pdf),
        (b"<!DOCTYPE html><p>", "page", DocumentKind::Html),
        (b"\x89PNG\r\n\x1a\n", "a.jpg", DocumentKind::Image("image/png")),
        (b"From: a\nSubject: b\nDate: c\n\nd", "mail", DocumentKind::Eml),
        (b"hello", "a.txt", DocumentKind::Text),
        (b"a\0b", "a.txt", DocumentKind::Unknown),
        (b"a,b", "a.csv", DocumentKind::Csv),
    ];
    for (bytes, name, kind) in wanted {
        assert_eq!(detect(bytes, Some(name)), kind, "{name}");
    }
    assert!(read(b"a\0b".to_vec(), &ReadOptions::default()).is_err());
}

#[test]
fn texts_in_old_encodings_are_read() {
    let document = open("a.txt", b"caf\xe9\n\nsecond".to_vec());
    let first = Content::Paragraph { text: "café".to_owned() };
    assert_eq!(document.blocks[0].content, first);
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("hé".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(open("a.txt", utf16).blocks[0].content, Content::Paragraph { text: "hé".to_owned() });
}
