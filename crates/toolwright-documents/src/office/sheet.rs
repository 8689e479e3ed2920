//! Workbooks: each sheet is a page with one table of its used cells, as they are shown.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use calamine::{
    Data, DataRef, ExcelDateTime, Reader as _, SheetType, Sheets, Xls, XlsError, Xlsb, XlsbError, Xlsx,
    XlsxError,
};

use super::odt;
use super::package::Package;
use crate::detect::DocumentKind;
use crate::error::DocumentError;
use crate::model::{Block, Content, Info, Page, Stop, Unit};
use crate::options::{CellRange, ReadingEnd, ReadingState};

/// The most cells of a sheet, filled or between filled ones.
const MAX_CELLS: usize = 4_000_000;

/// The most empty rows that are kept between cells that were asked for by address.
const MAX_GAP: u32 = 1_048_576;

/// The widest sheet.
const MAX_COLUMNS: u32 = 16_384;

type Workbook = Sheets<Cursor<Vec<u8>>>;

pub(crate) fn read(
    bytes: Vec<u8>,
    kind: DocumentKind,
    reading: &mut ReadingState<'_>,
) -> Result<Info, DocumentError> {
    if kind == DocumentKind::Ods {
        return read_open_document(bytes, reading);
    }
    if kind != DocumentKind::Xls && bytes.starts_with(b"PK") {
        check_expansion(&bytes, reading)?;
    }
    let opened = catch_unwind(AssertUnwindSafe(|| open(bytes, kind)));
    let mut book = opened.map_err(|_| damaged())??;
    let sheets: Vec<(String, bool)> = book
        .sheets_metadata()
        .iter()
        .map(|sheet| {
            (sheet.name.clone(), sheet.typ == SheetType::WorkSheet || sheet.typ == SheetType::MacroSheet)
        })
        .collect();
    let mut info = Info { unit: Unit::Sheet, total: count(sheets.len()), ..Info::default() };
    reading.check_range("sheet", info.total)?;
    for (number, (name, table)) in (1u32..).zip(sheets) {
        if !reading.wants(number) {
            continue;
        }
        if reading.is_late() {
            info.stopped = Some(Stop { page: number, reason: reading.late() });
            break;
        }
        let rows = if table {
            let wanted = reading.options.cells;
            catch_unwind(AssertUnwindSafe(|| cells(&mut book, &name, wanted)))
                .unwrap_or_else(|_| Err(damaged()))
        } else {
            Ok(Grid::default())
        };
        let page = match rows {
            Ok(grid) => page(number, name, grid),
            Err(error) => {
                let warning = format!("the sheet `{name}` could not be read: {error}");
                Page { number, name: Some(name), warnings: vec![warning], ..Page::default() }
            }
        };
        match reading.give(page) {
            Ok(()) => {}
            Err(ReadingEnd::Enough) => break,
            Err(ReadingEnd::Limit(reason)) => {
                info.stopped = Some(Stop { page: number, reason });
                break;
            }
        }
    }
    Ok(info)
}

/// The library expands what it likes, so the parts are measured before it sees them.
fn check_expansion(bytes: &[u8], reading: &mut ReadingState<'_>) -> Result<(), DocumentError> {
    let mut package = Package::open(bytes.to_vec())?;
    let names: Vec<String> =
        package.names().filter(|name| name.starts_with("xl/")).map(str::to_owned).collect();
    for name in names.iter().filter(|name| name.ends_with(".xml") || name.ends_with(".bin")) {
        package.part(name, reading)?;
    }
    Ok(())
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn damaged() -> DocumentError {
    DocumentError::damaged("the workbook is damaged")
}

fn encrypted() -> DocumentError {
    DocumentError::encrypted("the workbook is encrypted, which is not supported")
        .with_hint("save it without a password")
}

fn open(bytes: Vec<u8>, kind: DocumentKind) -> Result<Workbook, DocumentError> {
    let cursor = Cursor::new(bytes);
    match kind {
        DocumentKind::Xls => match Xls::new(cursor) {
            Ok(book) => Ok(Sheets::Xls(book)),
            Err(XlsError::Password) => Err(encrypted()),
            Err(error) => Err(DocumentError::damaged(format!("the workbook is damaged: {error}"))),
        },
        DocumentKind::Xlsb => match Xlsb::new(cursor) {
            Ok(book) => Ok(Sheets::Xlsb(book)),
            Err(XlsbError::Password) => Err(encrypted()),
            Err(error) => Err(DocumentError::damaged(format!("the workbook is damaged: {error}"))),
        },
        _ => match Xlsx::new(cursor) {
            Ok(book) => Ok(Sheets::Xlsx(book)),
            Err(XlsxError::Password) => Err(encrypted()),
            Err(error) => Err(DocumentError::damaged(format!("the workbook is damaged: {error}"))),
        },
    }
}

/// Filled cells with the corner they begin at.
#[derive(Default)]
struct Grid {
    cells: Vec<(u32, u32, String)>,
    wanted: Option<CellRange>,
    cut: bool,
}

fn cells(book: &mut Workbook, name: &str, wanted: Option<CellRange>) -> Result<Grid, DocumentError> {
    let failed = |error: &dyn std::fmt::Display| DocumentError::damaged(error.to_string());
    let mut grid = Grid { wanted, ..Grid::default() };
    match book {
        // These two are read cell by cell: what a sheet claims to be large is never allocated.
        Sheets::Xlsx(book) => {
            let mut reader = book.worksheet_cells_reader(name).map_err(|error| failed(&error))?;
            while let Some(cell) = reader.next_cell().map_err(|error| failed(&error))? {
                if !grid.add(cell.get_position(), &text_ref(cell.get_value())) {
                    break;
                }
            }
        }
        Sheets::Xlsb(book) => {
            let mut reader = book.worksheet_cells_reader(name).map_err(|error| failed(&error))?;
            while let Some(cell) = reader.next_cell().map_err(|error| failed(&error))? {
                if !grid.add(cell.get_position(), &text_ref(cell.get_value())) {
                    break;
                }
            }
        }
        other => {
            let range = other.worksheet_range(name).map_err(|error| failed(&error))?;
            let (row0, column0) = range.start().unwrap_or((0, 0));
            for (row, column, value) in range.used_cells() {
                let at = (row0.saturating_add(count(row)), column0.saturating_add(count(column)));
                if !grid.add(at, &text(value)) {
                    break;
                }
            }
        }
    }
    Ok(grid)
}

impl Grid {
    fn add(&mut self, (row, column): (u32, u32), text: &str) -> bool {
        if self.wanted.is_some_and(|wanted| !wanted.contains(row, column)) {
            return true;
        }
        if column >= MAX_COLUMNS || self.cells.len() >= MAX_CELLS {
            self.cut = true;
            return column >= MAX_COLUMNS;
        }
        if !text.is_empty() {
            self.cells.push((row, column, text.to_owned()));
        }
        true
    }
}

/// A sheet as a table: rows and columns without any text are left out at the edges, kept between.
fn page(number: u32, name: String, mut grid: Grid) -> Page {
    let mut page = Page { number, ..Page::default() };
    page.blocks.push(Block::heading(2, name.clone()));
    if grid.cut {
        page.warnings.push(format!("the sheet `{name}` has more cells than are read"));
    }
    page.name = Some(name);
    grid.cells.sort_by_key(|(row, column, _)| (*row, *column));
    let (Some(first), Some(last)) =
        (grid.cells.first().map(|cell| cell.0), grid.cells.last().map(|cell| cell.0))
    else {
        return page;
    };
    // Cells that were asked for by address stay where they are.
    let first = grid.wanted.map_or(first, |wanted| wanted.first_row);
    let left = grid.cells.iter().map(|cell| cell.1).min().unwrap_or(0);
    let left = grid.wanted.map_or(left, |wanted| wanted.first_column);
    let right = grid.cells.iter().map(|cell| cell.1).max().unwrap_or(0);
    let columns = (right - left + 1) as usize;
    // Rows that are empty one after the other shrink to one; a far corner does not make a large table.
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut at = first;
    let mut total = 0usize;
    for (row, column, text) in grid.cells {
        if rows.is_empty() {
            rows.push(Vec::new());
        }
        if row > at {
            let most = if grid.wanted.is_some() { MAX_GAP } else { 1 };
            let gap = (row - at - 1).min(most);
            rows.extend(std::iter::repeat_n(Vec::new(), gap as usize + 1));
            at = row;
        }
        if let Some(cells) = rows.last_mut() {
            let place = (column - left) as usize;
            total += place.saturating_sub(cells.len()) + 1;
            if total > MAX_CELLS {
                page.warnings.push("the sheet is cut: its filled cells stand too far apart".to_owned());
                break;
            }
            cells.resize(place.max(cells.len()), String::new());
            cells.push(text);
        }
    }
    page.blocks.push(Block::paragraph(format!(
        "Cells {}{}:{}{}",
        column_name(left),
        first + 1,
        column_name(right),
        last + 1
    )));
    let first_row = rows.first();
    let header = rows.len() > 1
        && first_row.is_some_and(|row| {
            row.len() == columns && row.iter().all(|cell| !cell.is_empty() && cell.parse::<f64>().is_err())
        });
    page.blocks.push(Block::new(Content::Table { rows, header }));
    page
}

/// The letters of a column.
fn column_name(column: u32) -> String {
    let mut letters = Vec::new();
    let mut rest = column + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(b'A' + u8::try_from(rest % 26).unwrap_or(0)));
        rest /= 26;
    }
    letters.iter().rev().collect()
}

fn text(value: &Data) -> String {
    match value {
        Data::Empty => String::new(),
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Int(number) => number.to_string(),
        Data::Float(number) => self::number(*number),
        Data::Bool(flag) => if *flag { "TRUE" } else { "FALSE" }.to_owned(),
        Data::DateTime(time) => date(time),
        Data::Error(error) => error.to_string(),
        #[allow(unreachable_patterns, reason = "the library may add kinds of cells")]
        other => other.to_string(),
    }
}

fn text_ref(value: &DataRef<'_>) -> String {
    match value {
        DataRef::SharedString(text) => (*text).to_owned(),
        other => text(&Data::from(other.clone())),
    }
}

/// A number as a sheet shows it: 15 digits, which leaves out what binary fractions add.
fn number(number: f64) -> String {
    if number == number.trunc() && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    let short: f64 = format!("{number:.14e}").parse().unwrap_or(number);
    if short != 0.0 && !(1e-5..1e21).contains(&short.abs()) {
        format!("{short:e}")
    } else {
        short.to_string()
    }
}

fn date(time: &ExcelDateTime) -> String {
    if time.is_duration() {
        let seconds = (time.as_f64() * 86_400.0).round();
        let sign = if seconds < 0.0 { "-" } else { "" };
        let seconds = seconds.abs();
        let (hours, minutes) = ((seconds / 3_600.0).trunc(), (seconds / 60.0).trunc() % 60.0);
        return format!("{sign}{hours:.0}:{minutes:02.0}:{:02.0}", seconds % 60.0);
    }
    // Serial numbers beyond the year 9999 are not dates.
    if !(0.0..2_958_466.0).contains(&time.as_f64()) {
        return number(time.as_f64());
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    match (time.as_f64() < 1.0, hour, minute, second) {
        (false, 0, 0, 0) => format!("{year:04}-{month:02}-{day:02}"),
        (true, ..) => format!("{hour:02}:{minute:02}:{second:02}"),
        _ => format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"),
    }
}

/// OpenDocument sheets are read from their tree, so that a cell repeated a million times does not become a
/// table of a million.
fn read_open_document(bytes: Vec<u8>, reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let mut package = Package::open(bytes)?;
    let tree = odt::content(&mut package, reading)?;
    let mut info = super::about(&mut package, "meta.xml", reading);
    let sheets: Vec<u32> = match tree.find(tree.root(), "spreadsheet") {
        Some(at) => tree.children(at).iter().copied().filter(|child| tree.name(*child) == "table").collect(),
        None => Vec::new(),
    };
    info.unit = Unit::Sheet;
    info.total = count(sheets.len());
    reading.check_range("sheet", info.total)?;
    let text = |cell: u32| {
        let lines: Vec<String> = tree
            .children(cell)
            .iter()
            .filter(|child| tree.name(**child) == "p")
            .map(|child| tree.text(*child))
            .collect();
        let shown = lines.join("\n");
        if !shown.is_empty() {
            return shown;
        }
        let value = ["string-value", "date-value", "time-value", "boolean-value", "value"];
        value.iter().find_map(|name| tree.attribute(cell, name)).unwrap_or_default().to_owned()
    };
    for (number, sheet) in (1u32..).zip(sheets) {
        if !reading.wants(number) {
            continue;
        }
        let name = tree.attribute(sheet, "name").unwrap_or("Sheet").to_owned();
        let rows = odt::rows(&tree, sheet, &text, 1_048_576);
        let mut grid = Grid { wanted: reading.options.cells, ..Grid::default() };
        for (row, cells) in (0u32..).zip(rows) {
            for (column, text) in (0u32..).zip(cells) {
                grid.add((row, column), &text);
            }
        }
        match reading.give(page(number, name, grid)) {
            Ok(()) => {}
            Err(ReadingEnd::Enough) => break,
            Err(ReadingEnd::Limit(reason)) => {
                info.stopped = Some(Stop { page: number, reason });
                break;
            }
        }
    }
    Ok(info)
}

#[cfg(test)]
mod tests {
    use super::{column_name, number};

    #[test]
    fn cells_are_shown_as_sheets_show_them() {
        assert_eq!(number(0.1 + 0.2), "0.3");
        assert_eq!(number(1e15), "1000000000000000");
        assert_eq!(number(-3.0), "-3");
        assert_eq!([0, 25, 26, 701, 702].map(column_name), ["A", "Z", "AA", "ZZ", "AAA"]);
    }
}
