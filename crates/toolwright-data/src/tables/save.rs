//! `save_table`: rows as a CSV file, JSON lines or a workbook.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use toolwright_core::{Structured, ToolContext, ToolError, WorkspacePath, tool};

use super::query::{ask, too_many};
use super::{TableOptions, off_thread, workbook};

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SavedTable {
    success: bool,
    path: String,
    rows: usize,
    columns: usize,
    bytes_written: usize,
}

/// Save a table as .csv, .tsv, .jsonl, .json or .xlsx: rows that you give, or the result of a SELECT over
/// files as in query_data.
#[tool(category = "data", sandboxed, read_only = false, parallel = false)]
pub async fn save_table(
    context: &ToolContext,
    #[tool(setup)] options: &TableOptions,
    /// The file to write; its ending says the form. One that is there is replaced.
    #[tool(alias = "file_path")]
    path: WorkspacePath,
    /// Records, each a map from column to value.
    rows: Option<Vec<Map<String, Json>>>,
    /// One SELECT statement, in place of rows.
    sql: Option<String>,
    /// The files that it asks.
    #[tool(default)]
    files: Vec<WorkspacePath>,
) -> Result<Structured<SavedTable>, ToolError> {
    let form = TableFormat::of(&path)?;
    let (columns, rows) = match (rows, sql) {
        (Some(records), None) => of_records(records),
        (None, Some(sql)) => {
            let found = ask(context, options, &files, Some(sql)).await?.found;
            let found = found.ok_or_else(|| ToolError::invalid("`sql` holds no statement"))?;
            if found.is_cut {
                return Err(too_many());
            }
            (found.columns, found.rows)
        }
        _ => return Err(ToolError::invalid("give either `rows` or `sql` with `files`")),
    };
    if columns.is_empty() {
        return Err(ToolError::invalid("there are no columns to write"));
    }
    let (count, width) = (rows.len(), columns.len());
    let bytes = off_thread(move || form.bytes(&columns, &rows)).await?;
    options.sandbox(context)?.write_file(&path, &bytes).await?;
    let path = path.to_string();
    Ok(Structured(SavedTable {
        success: true,
        path,
        rows: count,
        columns: width,
        bytes_written: bytes.len(),
    }))
}

/// The columns in the order in which they first occur.
fn of_records(records: Vec<Map<String, Json>>) -> (Vec<String>, Vec<Vec<Json>>) {
    let mut seen = std::collections::HashSet::new();
    let mut columns: Vec<String> = Vec::new();
    for key in records.iter().flat_map(Map::keys) {
        if seen.insert(key.clone()) {
            columns.push(key.clone());
        }
    }
    let rows = records
        .into_iter()
        .map(|mut record| columns.iter().map(|name| record.remove(name).unwrap_or_default()).collect())
        .collect();
    (columns, rows)
}

/// The form of a file of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TableFormat {
    Separated(u8),
    JsonLines,
    Json,
    Workbook,
}

impl TableFormat {
    fn of(path: &str) -> Result<Self, ToolError> {
        let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
        Ok(match ending.as_str() {
            "csv" => TableFormat::Separated(b','),
            "tsv" => TableFormat::Separated(b'\t'),
            "jsonl" | "ndjson" => TableFormat::JsonLines,
            "json" => TableFormat::Json,
            "xlsx" => TableFormat::Workbook,
            _ => {
                let message = format!(
                    "`path` must end in .csv, .tsv, .jsonl, .json or .xlsx, got `{}`",
                    path.escape_debug()
                );
                return Err(ToolError::invalid(message));
            }
        })
    }

    fn bytes(self, columns: &[String], rows: &[Vec<Json>]) -> Result<Vec<u8>, ToolError> {
        let record = |row: &Vec<Json>| -> Json {
            columns.iter().cloned().zip(row.iter().cloned()).collect::<Map<String, Json>>().into()
        };
        match self {
            TableFormat::Separated(delimiter) => {
                let mut out = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
                let failed =
                    |cause: csv::Error| ToolError::new("the table could not be written").with_source(cause);
                out.write_record(columns).map_err(failed)?;
                for row in rows {
                    out.write_record(row.iter().map(text)).map_err(failed)?;
                }
                out.into_inner().map_err(|cause| ToolError::new(cause.to_string()))
            }
            TableFormat::JsonLines => {
                let mut out = Vec::new();
                for row in rows {
                    serde_json::to_writer(&mut out, &record(row))?;
                    out.push(b'\n');
                }
                Ok(out)
            }
            TableFormat::Json => {
                let mut out = serde_json::to_vec_pretty(&rows.iter().map(record).collect::<Vec<_>>())?;
                out.push(b'\n');
                Ok(out)
            }
            TableFormat::Workbook if rows.len() > workbook::MAX_ROWS => Err(too_many()),
            TableFormat::Workbook => workbook::workbook(columns, rows),
        }
    }
}

fn text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_is_written_in_the_form_of_its_name() {
        let records: Vec<Map<String, Json>> =
            serde_json::from_value(json!([{"a": 1, "b": "x,\"y\""}, {"b": null, "c": [1]}])).unwrap();
        let (columns, rows) = of_records(records);
        let of = |path: &str| {
            String::from_utf8(TableFormat::of(path).unwrap().bytes(&columns, &rows).unwrap()).unwrap()
        };
        assert_eq!(of("t.csv"), "a,b,c\n1,\"x,\"\"y\"\"\",\n,,[1]\n");
        assert_eq!(
            of("t.jsonl"),
            "{\"a\":1,\"b\":\"x,\\\"y\\\"\",\"c\":null}\n{\"a\":null,\"b\":null,\"c\":[1]}\n"
        );
        assert_eq!(serde_json::from_str::<Json>(&of("t.json")).unwrap()[1]["c"], json!([1]));
        assert!(TableFormat::of("t.parquet").is_err() && TableFormat::of("csv").is_err());
    }
}
