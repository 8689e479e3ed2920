//! A workbook of one sheet, written as its format demands at least.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use serde_json::Value as Json;
use toolwright_core::ToolError;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The most rows of a sheet, and the most characters of a cell.
pub(super) const MAX_ROWS: usize = 1_048_575;
const MAX_CELL: usize = 32_767;

const TYPES: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>"#;
const RELATIONS: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#;
const BOOK: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>"#;
const SHEETS: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#;

/// The workbook as bytes.
pub(super) fn workbook(columns: &[String], rows: &[Vec<Json>]) -> Result<Vec<u8>, ToolError> {
    let failed =
        |cause: zip::result::ZipError| ToolError::new("the workbook could not be written").with_source(cause);
    let mut sheet = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<worksheet \
         xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData>",
    );
    let names: Vec<Json> = columns.iter().map(|name| name.as_str().into()).collect();
    for (number, row) in (1..).zip(std::iter::once(&names).chain(rows)) {
        let _ = write!(sheet, "<row r=\"{number}\">");
        for (at, value) in row.iter().enumerate() {
            cell(&mut sheet, &format!("{}{number}", letters(at)), value);
        }
        sheet.push_str("</row>");
    }
    sheet.push_str("</sheetData></worksheet>");
    let mut file = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in [
        ("[Content_Types].xml", TYPES),
        ("_rels/.rels", RELATIONS),
        ("xl/workbook.xml", BOOK),
        ("xl/_rels/workbook.xml.rels", SHEETS),
        ("xl/worksheets/sheet1.xml", &sheet),
    ] {
        file.start_file(name, SimpleFileOptions::default()).map_err(failed)?;
        file.write_all(text.as_bytes())?;
    }
    Ok(file.finish().map_err(failed)?.into_inner())
}

fn cell(out: &mut String, place: &str, value: &Json) {
    let _ = match value {
        Json::Null => Ok(()),
        Json::Number(number) => write!(out, "<c r=\"{place}\"><v>{number}</v></c>"),
        Json::Bool(flag) => write!(out, "<c r=\"{place}\" t=\"b\"><v>{}</v></c>", u8::from(*flag)),
        other => {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            write!(
                out,
                "<c r=\"{place}\" t=\"inlineStr\"><is><t xml:space=\"preserve\">{}</t></is></c>",
                escaped(&text)
            )
        }
    };
}

/// A text as XML: what XML cannot hold is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ch in text.chars().take(MAX_CELL) {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' | '\n' | '\r' => out.push(ch),
            ch if ch.is_control() || matches!(ch, '\u{fffe}' | '\u{ffff}') => {}
            ch => out.push(ch),
        }
    }
    out
}

/// The letters of a column, counted from 0.
fn letters(column: usize) -> String {
    let mut name = Vec::new();
    let mut rest = column + 1;
    while rest > 0 {
        rest -= 1;
        name.push(char::from(b'A' + u8::try_from(rest % 26).unwrap_or(0)));
        rest /= 26;
    }
    name.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use toolwright_documents::{Content, ReadOptions, read};

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let rows = vec![
            vec![Json::from("a<b & \u{1}c"), Json::from(1.5), Json::Null],
            vec![Json::Null, Json::from(-3), Json::from(true)],
        ];
        let bytes = workbook(&["text".to_owned(), "n".to_owned(), "flag".to_owned()], &rows).unwrap();
        let document = read(bytes, &ReadOptions::named("a.xlsx")).unwrap();
        let tables: Vec<&Vec<Vec<String>>> = document
            .blocks
            .iter()
            .filter_map(|block| match &block.content {
                Content::Table { rows, .. } => Some(rows),
                _ => None,
            })
            .collect();
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            *tables[0],
            [row(&["text", "n", "flag"]), row(&["a<b & c", "1.5"]), row(&["", "-3", "TRUE"])]
        );
        assert_eq!([0, 25, 26, 701, 702].map(letters), ["A", "Z", "AA", "ZZ", "AAA"]);
    }
}
