//! The tables that a file holds.

use std::time::Duration;

use serde_json::Value as Json;
use toolwright_core::{DynSandbox, ErrorKind, ToolContext, ToolError};
use toolwright_documents::{
    Content, CsvDialect, Document, DocumentError, DocumentErrorKind, DocumentKind, DocumentSource,
    FigureDetail, ReadLimits, ReadOptions, WorkerLimits, can_start_worker, decode_text, detect,
    read_in_worker,
};

use super::{cancelled, off_thread};

/// The most columns of a table.
pub(super) const MOST_COLUMNS: usize = 1_000;

/// The most tables of one file.
const MOST_TABLES: usize = 200;

/// The longest that reading a document may take.
const READ_TIME: Duration = Duration::from_secs(60);

/// A table as its file has it: texts, or nothing where a cell is empty.
pub(super) struct Table {
    pub(super) name: String,
    /// Where it is from, and how it was read.
    pub(super) about: String,
    pub(super) columns: Vec<String>,
    rows: TableRows,
}

/// Takes a row: texts, or nothing where a cell is empty.
type TakeRow<'t> = dyn FnMut(&[Option<&str>]) -> Result<(), ToolError> + 't;

enum TableRows {
    /// A text of separated values, read as it is asked for.
    Csv {
        text: String,
        dialect: CsvDialect,
    },
    Cells(Vec<Vec<Option<String>>>),
}

impl Table {
    /// Calls `take` for each row, with as many cells as there are columns; returns how many rows had more
    /// cells and were left out.
    pub(super) fn each(&self, take: &mut TakeRow<'_>) -> Result<usize, ToolError> {
        let width = self.columns.len();
        let mut rejected = 0;
        match &self.rows {
            TableRows::Cells(rows) => {
                let mut cells: Vec<Option<&str>> = Vec::with_capacity(width);
                for row in rows {
                    if row.iter().skip(width).any(Option::is_some) {
                        rejected += 1;
                        continue;
                    }
                    cells.clear();
                    cells.extend(row.iter().take(width).map(Option::as_deref));
                    cells.resize(width, None);
                    take(&cells)?;
                }
            }
            TableRows::Csv { text, dialect } => {
                let mut reader = csv::ReaderBuilder::new()
                    .delimiter(dialect.delimiter)
                    .has_headers(dialect.header)
                    .flexible(true)
                    .from_reader(text.as_bytes());
                let mut record = csv::StringRecord::new();
                loop {
                    match reader.read_record(&mut record) {
                        Ok(false) => break,
                        Ok(true) if record.len() > width => rejected += 1,
                        Ok(true) => {
                            let mut cells: Vec<Option<&str>> = record
                                .iter()
                                .map(|cell| Some(cell).filter(|cell| !cell.is_empty()))
                                .collect();
                            cells.resize(width, None);
                            take(&cells)?;
                        }
                        Err(_) => rejected += 1,
                    }
                }
            }
        }
        Ok(rejected)
    }
}

/// Reads the tables of a file.
pub(super) async fn tables_of(
    context: &ToolContext,
    sandbox: &DynSandbox,
    path: &str,
) -> Result<Vec<Table>, ToolError> {
    let bytes = sandbox.read_file(path).await?;
    let kind = detect(&bytes, Some(path));
    let extension = path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default();
    let owned = path.to_owned();
    let tables = match kind {
        DocumentKind::Csv | DocumentKind::Tsv => off_thread(move || csv_table(&owned, &bytes)).await?,
        DocumentKind::JsonLines => off_thread(move || json_lines(&owned, &bytes)).await?,
        DocumentKind::Text if extension == "json" => off_thread(move || json_tables(&owned, &bytes)).await?,
        DocumentKind::Text if matches!(extension.as_str(), "txt" | "dat" | "") => {
            off_thread(move || csv_table(&owned, &bytes)).await?
        }
        DocumentKind::Text | DocumentKind::Unknown | DocumentKind::Image(_) => {
            let message = format!("{path} is not a file with tables");
            return Err(ToolError::invalid(message)
                .hint("tables are read from CSV, TSV, JSON, JSON lines, workbooks and documents"));
        }
        _ => document_tables(context, path, bytes).await?,
    };
    if tables.is_empty() {
        return Err(ToolError::invalid(format!("{path} holds no table")));
    }
    Ok(tables)
}

/// The name of a file without its folder and ending, as a name in SQL.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    identifier(name.rsplit_once('.').map_or(name, |(stem, _)| stem))
}

/// A text as a name that needs no quotes.
fn identifier(text: &str) -> String {
    let mut name: String =
        text.trim().chars().map(|ch| if ch.is_alphanumeric() { ch } else { '_' }).take(60).collect();
    if name.chars().next().is_none_or(|ch| ch.is_ascii_digit()) {
        name.insert_str(0, "t_");
    }
    name
}

/// Names of columns: what is empty or there already gets a number.
fn column_names(given: impl IntoIterator<Item = String>) -> Result<Vec<String>, ToolError> {
    let mut seen = std::collections::HashSet::new();
    let mut names: Vec<String> = Vec::new();
    for (at, name) in given.into_iter().enumerate() {
        if at >= MOST_COLUMNS {
            return Err(ToolError::of(
                ErrorKind::Limit,
                format!("a table has more than {MOST_COLUMNS} columns"),
            ));
        }
        let name: String = name.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(100).collect();
        let base = if name.is_empty() { format!("column_{}", at + 1) } else { name };
        let mut name = base.clone();
        let mut count = 2;
        // SQL does not tell capital letters from small ones.
        while !seen.insert(name.to_lowercase()) {
            name = format!("{base}_{count}");
            count += 1;
        }
        names.push(name);
    }
    Ok(names)
}

fn csv_table(path: &str, bytes: &[u8]) -> Result<Vec<Table>, ToolError> {
    let text = decode_text(bytes);
    let dialect = CsvDialect::of(&text, Some(path));
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(dialect.delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let first: Vec<String> = match reader.records().next() {
        Some(Ok(record)) => record.iter().map(str::to_owned).collect(),
        _ => return Ok(Vec::new()),
    };
    let columns = match dialect.header {
        true => column_names(first)?,
        false => column_names(first.into_iter().map(|_| String::new()))?,
    };
    let delimiter = match dialect.delimiter {
        b'\t' => "tab".to_owned(),
        other => format!("'{}'", char::from(other)),
    };
    let header = if dialect.header { "yes" } else { "no" };
    let about = format!("{path}; CSV: delimiter {delimiter}, header {header}");
    Ok(vec![Table { name: stem(path), about, columns, rows: TableRows::Csv { text, dialect } }])
}

fn json_lines(path: &str, bytes: &[u8]) -> Result<Vec<Table>, ToolError> {
    let text = decode_text(bytes);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut broken = 0;
    let records: Vec<Json> = lines
        .filter_map(|line| {
            let record = serde_json::from_str(line).ok();
            broken += usize::from(record.is_none());
            record
        })
        .collect();
    let mut about = format!("{path}; JSON lines");
    if broken > 0 {
        about.push_str(&format!(", {broken} lines that are not JSON rejected"));
    }
    Ok(table_of_records(stem(path), about, &records)?.into_iter().collect())
}

/// A list of records is a table; in a map each list of records is one.
fn json_tables(path: &str, bytes: &[u8]) -> Result<Vec<Table>, ToolError> {
    let value: Json = serde_json::from_str(&decode_text(bytes))
        .map_err(|cause| ToolError::invalid(format!("{path} is not JSON: {cause}")))?;
    let about = format!("{path}; JSON");
    match &value {
        Json::Array(records) => Ok(table_of_records(stem(path), about, records)?.into_iter().collect()),
        Json::Object(map) => {
            let lists = map.iter().filter_map(|(key, value)| Some((key, value.as_array()?)));
            let mut tables = Vec::new();
            for (key, records) in lists.filter(|(_, list)| list.iter().any(Json::is_object)).take(MOST_TABLES)
            {
                tables.extend(table_of_records(identifier(key), format!("{about}, `{key}`"), records)?);
            }
            if tables.is_empty() {
                tables.extend(table_of_records(stem(path), about, std::slice::from_ref(&value))?);
            }
            Ok(tables)
        }
        _ => Ok(Vec::new()),
    }
}

fn table_of_records(name: String, about: String, records: &[Json]) -> Result<Option<Table>, ToolError> {
    let text = |value: &Json| match value {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let mut keys: Vec<&str> = Vec::new();
    let mut places: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for key in records.iter().filter_map(Json::as_object).flat_map(|record| record.keys()) {
        places.entry(key).or_insert_with(|| {
            keys.push(key);
            keys.len() - 1
        });
        if keys.len() > MOST_COLUMNS {
            break;
        }
    }
    if keys.is_empty() {
        let rows: Vec<Vec<Option<String>>> = match records.iter().all(Json::is_array) {
            true => {
                records.iter().filter_map(Json::as_array).map(|row| row.iter().map(text).collect()).collect()
            }
            false => records.iter().map(|value| vec![text(value)]).collect(),
        };
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let columns = column_names((0..width).map(|_| String::new()))?;
        return Ok((width > 0).then_some(Table { name, about, columns, rows: TableRows::Cells(rows) }));
    }
    let columns = column_names(keys.iter().map(|key| (*key).to_owned()))?;
    let rows = records.iter().filter_map(Json::as_object).map(|record| {
        let mut row = vec![None; columns.len()];
        for (key, value) in record {
            if let Some(cell) = places.get(key.as_str()).and_then(|at| row.get_mut(*at)) {
                *cell = text(value);
            }
        }
        row
    });
    let rows = TableRows::Cells(rows.collect());
    Ok(Some(Table { name, about, columns, rows }))
}

/// The tables of a workbook or a document, which a worker reads.
async fn document_tables(context: &ToolContext, path: &str, bytes: Vec<u8>) -> Result<Vec<Table>, ToolError> {
    if !can_start_worker() {
        let message = "this program cannot start a worker that reads documents";
        return Err(ToolError::of(ErrorKind::SandboxUnavailable, message)
            .hint("call `toolwright::documents::main_if_worker` first thing in `main`"));
    }
    let time = context.time_left().map_or(READ_TIME, |left| left.min(READ_TIME));
    let options = ReadOptions {
        figures: FigureDetail::None,
        limits: ReadLimits { time, ..ReadLimits::default() },
        ..ReadOptions::named(path.rsplit('/').next().unwrap_or(path))
    };
    let limits = WorkerLimits {
        time: time + Duration::from_secs(3),
        processor: time + Duration::from_secs(1),
        ..WorkerLimits::default()
    };
    let cancel = context.cancel_token().clone();
    let stop = cancel.clone();
    let owned = path.to_owned();
    let document = off_thread(move || {
        let stop: Box<dyn Fn() -> bool + Send> = Box::new(move || stop.is_cancelled());
        let source = DocumentSource::Bytes(&bytes);
        let read = read_in_worker(source, &options, limits, Some(stop), &mut |_| {});
        read.map(|(document, _)| document).map_err(|cause| failed(&owned, &cause))
    })
    .await;
    if cancel.is_cancelled() {
        return Err(cancelled());
    }
    of_document(path, document?)
}

fn failed(path: &str, cause: &DocumentError) -> ToolError {
    let kind = match cause.kind() {
        DocumentErrorKind::Encrypted => ErrorKind::Permission,
        DocumentErrorKind::Limit => ErrorKind::Limit,
        DocumentErrorKind::Unsupported => ErrorKind::UnicodeDecode,
        _ => ErrorKind::Unknown,
    };
    ToolError::of(kind, format!("{path}: {cause}"))
}

/// Each table of a document; those of a workbook are called as their sheets.
fn of_document(path: &str, document: Document) -> Result<Vec<Table>, ToolError> {
    let is_workbook = document.info.unit == toolwright_documents::Unit::Sheet;
    let unit = document.info.unit.name();
    let stopped = document.stopped.as_ref().map(|stopped| format!("; {stopped}")).unwrap_or_default();
    let mut tables: Vec<Table> = Vec::new();
    let mut title = String::new();
    for block in document.blocks {
        match block.content {
            Content::Heading { text, .. } => title = text,
            Content::Table { rows, header } if tables.len() < MOST_TABLES => {
                let mut rows = rows.into_iter();
                let width = rows.as_slice().iter().map(Vec::len).max().unwrap_or(0);
                let mut names = if header { rows.next().unwrap_or_default() } else { Vec::new() };
                names.resize(width, String::new());
                let columns = column_names(names)?;
                let cells = rows.filter(|row| row.iter().any(|cell| !cell.is_empty())).map(|row| {
                    row.into_iter().map(|cell| Some(cell).filter(|cell| !cell.is_empty())).collect()
                });
                let rows = TableRows::Cells(cells.collect());
                let number = tables.len() + 1;
                let name = if is_workbook { identifier(&title) } else { format!("{}_{number}", stem(path)) };
                let place = match is_workbook {
                    true => format!("sheet `{title}`"),
                    false => format!("table {number}, {unit} {}", block.page),
                };
                let about = format!("{path}; {place}, header {}{stopped}", if header { "yes" } else { "no" });
                tables.push(Table { name, about, columns, rows });
            }
            _ => {}
        }
    }
    // The only table of a document is called as its file.
    if let [only] = tables.as_mut_slice()
        && !is_workbook
    {
        only.name = stem(path);
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(table: &Table) -> (Vec<Vec<Option<String>>>, usize) {
        let mut rows = Vec::new();
        let rejected = table
            .each(&mut |row| {
                rows.push(row.iter().map(|cell| cell.map(str::to_owned)).collect());
                Ok(())
            })
            .unwrap();
        (rows, rejected)
    }

    #[test]
    fn rows_are_as_wide_as_the_header_and_longer_ones_are_counted() {
        let table = csv_table("d/my file.csv", b"a;b;a\n1;2;3\n4\n5;6;7;8\n").unwrap().remove(0);
        assert_eq!(
            (table.name.as_str(), table.columns.as_slice()),
            ("my_file", ["a", "b", "a_2"].map(str::to_owned).as_slice())
        );
        let (rows, rejected) = rows_of(&table);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(rows, [vec![text("1"), text("2"), text("3")], vec![text("4"), None, None]]);
        assert_eq!(rejected, 1);
        assert!(table.about.ends_with("CSV: delimiter ';', header yes"), "{}", table.about);
    }

    #[test]
    fn records_become_rows_whatever_their_keys() {
        let tables = json_tables(
            "a.json",
            br#"{"n": 1, "people": [{"name": "A", "age": 3}, {"age": null, "tags": ["x"]}]}"#,
        );
        let table = tables.unwrap().remove(0);
        assert_eq!((table.name.as_str(), table.columns.join(",")), ("people", "name,age,tags".to_owned()));
        let (rows, _) = rows_of(&table);
        assert_eq!(rows[1], [None, None, Some("[\"x\"]".to_owned())]);
        let lines = json_lines("a.jsonl", b"{\"a\": 1}\nnot json\n\n{\"a\": 2}\n").unwrap().remove(0);
        assert!(lines.about.contains("1 lines that are not JSON rejected"), "{}", lines.about);
        assert_eq!(rows_of(&lines).0.len(), 2);
        let lists = json_tables("2024.json", b"[[1, 2], [3]]").unwrap().remove(0);
        assert_eq!(
            (lists.name.as_str(), lists.columns.join(",")),
            ("t_2024", "column_1,column_2".to_owned())
        );
        assert!(json_tables("a.json", b"3").unwrap().is_empty() && json_tables("a.json", b"{").is_err());
    }

    #[test]
    fn more_columns_than_a_database_has_are_an_error() {
        let wide = "a,".repeat(2000) + "\n" + &"1,".repeat(2000);
        assert_eq!(csv_table("a.csv", wide.as_bytes()).err().unwrap().kind(), ErrorKind::Limit);
    }
}
