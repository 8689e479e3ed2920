//! Packages written here: Word, presentations, OpenDocument, workbooks and books.

use std::io::{Cursor, Write as _};

use toolwright_documents::{Content, FigureDetail, HiddenReason, ReadOptions, Unit, read};

use crate::{headings, markdown, open, tables};

/// A package of parts; `mimetype` comes first and is stored.
pub(crate) fn package(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, data) in parts {
        let method = if *name == "mimetype" {
            zip::CompressionMethod::Stored
        } else {
            zip::CompressionMethod::Deflated
        };
        zip.start_file(*name, zip::write::SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(data).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn picture() -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, 20, 10);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header().unwrap().write_image_data(&[7; 200]).unwrap();
    out
}

pub(crate) const DOCUMENT: &str = r#"<w:document xmlns:w="w" xmlns:r="r" xmlns:a="a"><w:body>
<w:p><w:pPr><w:pStyle w:val="T"/></w:pPr><w:r><w:t>The report</w:t></w:r></w:p>
<w:p><w:pPr><w:pStyle w:val="H2"/></w:pPr><w:r><w:t>First </w:t></w:r><w:r><w:t>part</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">Words with a </w:t></w:r><w:hyperlink r:id="l"><w:r><w:t>link</w:t></w:r></w:hyperlink>
<w:r><w:t>, a note</w:t><w:footnoteReference w:id="2"/></w:r><w:del w:author="Eve"><w:r><w:delText>old words</w:delText></w:r></w:del>
<w:ins><w:r><w:t>, new words</w:t></w:r></w:ins><w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r><w:r><w:commentReference w:id="1"/></w:r></w:p>
<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>one</w:t></w:r></w:p>
<w:p><w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>inner</w:t></w:r></w:p>
<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>two</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr><w:p><w:r><w:t>wide</w:t></w:r></w:p></w:tc></w:tr>
<w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr>
<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc><w:tc><w:p><w:r><w:t>c</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
<w:p><w:r><w:drawing><wp:inline><wp:docPr descr="A gray box"/><a:blip r:embed="i"/></wp:inline></w:drawing></w:r></w:p>
</w:body></w:document>"#;

pub(crate) fn word(document: &str) -> Vec<u8> {
    let styles = r#"<w:styles><w:style w:styleId="T"><w:name w:val="Title"/></w:style>
        <w:style w:styleId="X"><w:name w:val="heading 2"/></w:style><w:style w:styleId="H2"><w:basedOn w:val="X"/></w:style></w:styles>"#;
    let numbering = r#"<w:numbering><w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/></w:lvl>
        <w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num></w:numbering>"#;
    let relations = r#"<Relationships><Relationship Id="l" Type="x/hyperlink" Target="https://example.org/" TargetMode="External"/>
        <Relationship Id="i" Type="x/image" Target="media/a.png"/><Relationship Id="h" Type="x/header" Target="header1.xml"/></Relationships>"#;
    let notes = r#"<w:footnotes><w:footnote w:id="0" w:type="separator"><w:p><w:r><w:t>--</w:t></w:r></w:p></w:footnote>
        <w:footnote w:id="2"><w:p><w:r><w:t>The note.</w:t></w:r></w:p></w:footnote></w:footnotes>"#;
    let comments = r#"<w:comments><w:comment w:id="1" w:author="Ada"><w:p><w:r><w:t>Is it so?</w:t></w:r></w:p></w:comment></w:comments>"#;
    let core =
        "<cp:coreProperties><dc:title>A title</dc:title><dc:creator>Ada</dc:creator></cp:coreProperties>";
    package(&[
        ("word/document.xml", document.as_bytes()),
        ("word/styles.xml", styles.as_bytes()),
        ("word/numbering.xml", numbering.as_bytes()),
        ("word/_rels/document.xml.rels", relations.as_bytes()),
        ("word/footnotes.xml", notes.as_bytes()),
        ("word/comments.xml", comments.as_bytes()),
        ("word/header1.xml", b"<w:hdr><w:p><w:r><w:t>Running head</w:t></w:r></w:p></w:hdr>"),
        ("word/media/a.png", &picture()),
        ("docProps/core.xml", core.as_bytes()),
    ])
}

#[test]
fn a_word_document_with_everything() {
    let options = ReadOptions { figures: FigureDetail::Encoded, ..ReadOptions::named("a.docx") };
    let document = read(word(DOCUMENT), &options).unwrap();
    assert_eq!(
        (document.info.title.as_deref(), document.info.author.as_deref()),
        (Some("A title"), Some("Ada"))
    );
    let wanted = "# The report\n\n## First part\n\nWords with a [link](https://example.org/), a note[^2], new words\n\n\
        > [comment by Ada] Is it so?\n\n> [comment by Eve] deleted: old words\n\n1. one\n  - inner\n2. two\n\n\
        | wide |  |\n| --- | --- |\n| a | b |\n|  | c |\n\n[figure p1.f1: 20x10, A gray box]\n\n[^2]: The note.\n\n\
        [1 hidden passages left out]\n";
    assert_eq!(markdown(&document), wanted.replace("1 hidden passages", "1 hidden passage"));
    assert!(
        document
            .blocks
            .iter()
            .any(|block| block.content == Content::Header { text: "Running head".to_owned() })
    );
    let hidden = Content::Hidden { reason: HiddenReason::Marked, text: "secret".to_owned() };
    assert!(document.blocks.iter().any(|block| block.content == hidden));
    assert!(document.figures[0].data.starts_with(b"\x89PNG"));
}

pub(crate) fn slides() -> Vec<u8> {
    let shape = |kind: &str, y: u32, body: &str| {
        format!(
            r#"<p:sp><p:nvSpPr><p:nvPr>{kind}</p:nvPr></p:nvSpPr><p:spPr><a:xfrm><a:off x="100" y="{y}"/><a:ext cx="10" cy="10"/></a:xfrm></p:spPr>
            <p:txBody>{body}</p:txBody></p:sp>"#
        )
    };
    let text = |text: &str| format!("<a:p><a:r><a:t>{text}</a:t></a:r></a:p>");
    let low = shape("", 5_000_000, &text("At the foot"));
    let title = shape(r#"<p:ph type="title"/>"#, 3_000_000, &text("The title"));
    let items = format!(r#"{}<a:p><a:pPr lvl="1"/><a:r><a:t>inner</a:t></a:r></a:p>"#, text("point"));
    let body = shape(r#"<p:ph idx="1"/>"#, 1_000_000, &items);
    let table = r#"<p:graphicFrame><p:xfrm><a:off x="0" y="4000000"/><a:ext cx="1" cy="1"/></p:xfrm><a:graphic><a:tbl><a:tblPr firstRow="1"/>
        <a:tr><a:tc><a:txBody><a:p><a:r><a:t>k</a:t></a:r></a:p></a:txBody></a:tc><a:tc><a:txBody><a:p><a:r><a:t>v</a:t></a:r></a:p></a:txBody></a:tc></a:tr>
        <a:tr><a:tc><a:txBody><a:p><a:r><a:t>1</a:t></a:r></a:p></a:txBody></a:tc><a:tc><a:txBody><a:p/></a:txBody></a:tc></a:tr></a:tbl></a:graphic></p:graphicFrame>"#;
    let slide = format!("<p:sld><p:cSld><p:spTree>{low}{table}{body}{title}</p:spTree></p:cSld></p:sld>");
    let notes = format!(
        "<p:notes><p:spTree>{}</p:spTree></p:notes>",
        shape(r#"<p:ph type="body"/>"#, 0, &text("Say hello"))
    );
    package(&[
        (
            "ppt/presentation.xml",
            br#"<p:presentation xmlns:r="r"><p:sldIdLst><p:sldId id="256" r:id="rId2"/></p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/></p:presentation>"#,
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            br#"<Relationships><Relationship Id="rId2" Type="x/slide" Target="slides/slide1.xml"/></Relationships>"#,
        ),
        ("ppt/slides/slide1.xml", slide.as_bytes()),
        (
            "ppt/slides/_rels/slide1.xml.rels",
            br#"<Relationships><Relationship Id="n" Type="x/notesSlide" Target="../notesSlides/n1.xml"/></Relationships>"#,
        ),
        ("ppt/notesSlides/n1.xml", notes.as_bytes()),
    ])
}

#[test]
fn slides_are_read_from_top_to_bottom() {
    let document = open("a.pptx", slides());
    assert_eq!((document.info.unit, document.info.total), (Unit::Slide, 1));
    let wanted = "# The title\n\n- point\n  - inner\n\n| k | v |\n| --- | --- |\n| 1 |  |\n\nAt the foot\n\n\
        > [comment by speaker notes] Say hello\n";
    assert_eq!(markdown(&document), wanted);
}

pub(crate) fn open_text() -> Vec<u8> {
    let content = r#"<office:document-content><office:body><office:text>
        <text:h text:outline-level="2">A heading</text:h><text:p>Words<text:s text:c="2"/>with <text:span>parts</text:span><text:note>
        <text:note-citation>1</text:note-citation><text:note-body><text:p>A note</text:p></text:note-body></text:note></text:p>
        <text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>inner</text:p></text:list-item></text:list></text:list-item></text:list>
        <table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell table:number-columns-repeated="2"><text:p>b</text:p></table:table-cell></table:table-row>
        <table:table-row><table:table-cell><text:p>c</text:p></table:table-cell></table:table-row></table:table>
        <text:p><draw:frame><draw:image xlink:href="Pictures/a.png"/></draw:frame><office:annotation><dc:creator>Ada</dc:creator><text:p>Sure?</text:p></office:annotation></text:p>
        </office:text></office:body></office:document-content>"#;
    package(&[
        ("mimetype", b"application/vnd.oasis.opendocument.text"),
        ("content.xml", content.as_bytes()),
        ("Pictures/a.png", &picture()),
        ("meta.xml", b"<m><dc:title>Text</dc:title></m>"),
    ])
}

#[test]
fn an_open_text() {
    let document = open("unnamed", open_text());
    assert_eq!(document.info.kind, "odt");
    let wanted = "## A heading\n\nWords  with parts[^1]\n\n[^1]: A note\n\n- one\n  - inner\n\n| a | b | b |\n| --- | --- | --- |\n\
        | c |  |  |\n\n[figure p1.f1: 20x10]\n\n> [comment by Ada] Sure?\n";
    assert_eq!(markdown(&document), wanted);
}

pub(crate) fn open_sheet() -> Vec<u8> {
    let content = r#"<x><office:body><office:spreadsheet><table:table table:name="Data"><table:table-row><table:table-cell><text:p>n</text:p></table:table-cell>
        <table:table-cell><text:p>v</text:p></table:table-cell></table:table-row><table:table-row><table:table-cell office:value="3"/><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>
        <table:table-row table:number-rows-repeated="1048574"><table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table></office:spreadsheet></office:body></x>"#;
    package(&[
        ("mimetype", b"application/vnd.oasis.opendocument.spreadsheet"),
        ("content.xml", content.as_bytes()),
    ])
}

pub(crate) fn workbook_of(sheet: &str) -> Vec<u8> {
    package(&[
        (
            "_rels/.rels",
            br#"<Relationships><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#,
        ),
        (
            "[Content_Types].xml",
            br#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>"#,
        ),
        (
            "xl/workbook.xml",
            br#"<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Data" sheetId="1" r:id="rId1"/></sheets></workbook>"#,
        ),
        (
            "xl/_rels/workbook.xml.rels",
            br#"<Relationships><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#,
        ),
        ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
    ])
}

pub(crate) fn workbook() -> Vec<u8> {
    workbook_of(
        r#"<worksheet><sheetData><row r="2"><c r="B2" t="inlineStr"><is><t>name</t></is></c><c r="C2" t="inlineStr"><is><t>sum</t></is></c></row>
        <row r="3"><c r="B3" t="inlineStr"><is><t>x</t></is></c><c r="C3"><v>0.30000000000000004</v></c></row>
        <row r="9"><c r="B9" t="b"><v>1</v></c></row></sheetData></worksheet>"#,
    )
}

#[test]
fn sheets_are_tables_of_their_used_cells() {
    let document = open("a.xlsx", workbook());
    assert_eq!((document.info.unit, document.info.total), (Unit::Sheet, 1));
    let wanted =
        "## Data\n\nCells B2:C9\n\n| name | sum |\n| --- | --- |\n| x | 0.3 |\n|  |  |\n| TRUE |  |\n";
    assert_eq!(markdown(&document), wanted);
    let document = open("a.ods", open_sheet());
    assert_eq!(
        tables(&document),
        [[["n", "v"], ["3", "x"]].map(|row| row.map(str::to_owned).to_vec()).to_vec()]
    );
}

pub(crate) fn book() -> Vec<u8> {
    package(&[
        ("mimetype", b"application/epub+zip"),
        ("META-INF/container.xml", br#"<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>"#),
        (
            "OPS/book.opf",
            br#"<package><metadata><dc:title>A book</dc:title><dc:language>en</dc:language></metadata><manifest>
            <item id="a" href="one.xhtml" media-type="application/xhtml+xml"/><item id="b" href="two%20b.xhtml" media-type="application/xhtml+xml"/>
            <item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest><spine><itemref idref="b"/><itemref idref="a"/></spine></package>"#,
        ),
        (
            "OPS/toc.ncx",
            br#"<ncx><navMap><navPoint><navLabel><text>Two</text></navLabel><content src="two%20b.xhtml"/></navPoint>
            <navPoint><navLabel><text>One</text></navLabel><content src="one.xhtml#x"/></navPoint></navMap></ncx>"#,
        ),
        ("OPS/one.xhtml", b"<html><body><h1>One</h1><p>First written.</p></body></html>"),
        ("OPS/two b.xhtml", br#"<html><body><h1>Two</h1><p>Read first.</p><img src="img/a.png" alt="Box"/></body></html>"#),
        ("OPS/img/a.png", &picture()),
    ])
}

#[test]
fn a_book_is_read_along_its_spine() {
    let document = open("a.epub", book());
    assert_eq!((document.info.unit, document.info.total), (Unit::Chapter, 2));
    assert_eq!(headings(&document), [(1, "Two".to_owned()), (1, "One".to_owned())]);
    assert_eq!(document.outline.iter().map(|entry| entry.page).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(
        markdown(&document),
        "# Two\n\nRead first.\n\n[figure p1.f1: 20x10, Box]\n\n# One\n\nFirst written.\n"
    );
}

#[test]
fn an_archive_is_a_list() {
    let document = open("a.zip", package(&[("a.txt", b"hello"), ("../out", b"x")]));
    let table = &tables(&document)[0];
    assert_eq!(table[1][..2], ["a.txt".to_owned(), "5".to_owned()]);
    assert_eq!(document.info.warnings, ["1 entries have paths that leave the archive"]);
}
