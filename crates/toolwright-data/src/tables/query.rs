//! `query_data`: a question in SQL about files.

use std::time::Instant;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Value as Json, json};
use tokio::time::Instant as Deadline;
use toolwright_core::{CancelToken, ErrorKind, ToolContext, ToolError, ToolOutput, WorkspacePath, tool};

use super::load::{LoadedTable, failed, load};
use super::profile::shown;
use super::source::{Table, tables_of};
use super::{TableOptions, cell_text, off_thread, pipe_table};

/// The most rows and bytes of a result.
const MAX_ROWS: usize = 10_000;
const MAX_BYTES: usize = 4 << 20;

/// The most bytes of a result as a table for a model, unless the run gives less.
const MAX_TEXT: usize = 32_000;

/// The longest a cell may be shown.
const CELL: usize = 60;

/// How many of SQLite's steps pass between two looks at the clock.
const STEPS: i32 = 10_000;

/// The most files of a question.
const MOST_FILES: usize = 20;

/// Ask tables of files with SQL: CSV, JSON, workbooks (one table a sheet), tables of documents. A table is
/// named as its file or sheet; SQLite dialect with median, quantile, stddev, corr and REGEXP; read-only.
#[tool(category = "data", sandboxed, read_only)]
pub async fn query_data(
    context: &ToolContext,
    #[tool(setup)] options: &TableOptions,
    /// The files.
    files: Vec<WorkspacePath>,
    /// One SELECT statement. Left out, the result says which tables and columns there are.
    sql: Option<String>,
    /// The most rows to show.
    #[tool(default = 50)]
    limit: i64,
) -> Result<ToolOutput, ToolError> {
    let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
    let limit = limit.ok_or_else(|| ToolError::invalid("`limit` must be a positive number"))?.min(MAX_ROWS);
    let begun = Instant::now();
    let answer = ask(context, options, &files, sql).await?;
    let most = context.max_output().map_or(MAX_TEXT, |most| most.min(MAX_TEXT));
    Ok(answer.output(limit, most.saturating_sub(1_500).max(most / 2), begun))
}

/// What was found, and in what.
pub(super) struct QueryAnswer {
    pub(super) tables: Vec<LoadedTable>,
    pub(super) found: Option<ResultRows>,
}

/// The rows of a result.
pub(super) struct ResultRows {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Json>>,
    /// There are more, which were not read.
    pub(super) is_cut: bool,
}

/// Loads the tables of files and runs a statement on them.
pub(super) async fn ask(
    context: &ToolContext,
    options: &TableOptions,
    files: &[WorkspacePath],
    sql: Option<String>,
) -> Result<QueryAnswer, ToolError> {
    if files.is_empty() || files.len() > MOST_FILES {
        return Err(ToolError::invalid(format!(
            "`files` must name 1 to {MOST_FILES} files, got {}",
            files.len()
        )));
    }
    let sandbox = options.sandbox(context)?;
    let mut tables: Vec<Table> = Vec::new();
    for path in files {
        tables.extend(tables_of(context, &*sandbox, path).await?);
    }
    let (cancel, deadline) = (context.cancel_token().clone(), context.deadline());
    off_thread(move || {
        let (connection, tables) = load(tables, &cancel)?;
        let found = match sql {
            Some(sql) => {
                Some(run(&connection, &sql, &cancel, deadline).map_err(|error| hinted(error, &tables))?)
            }
            None => None,
        };
        Ok(QueryAnswer { tables, found })
    })
    .await
}

/// What a wrong name could have been.
fn hinted(error: ToolError, tables: &[LoadedTable]) -> ToolError {
    if error.message().contains("no such table") || error.message().contains("no such column") {
        let signatures: Vec<String> = tables.iter().take(10).map(LoadedTable::signature).collect();
        let text: String = signatures.join("; ").chars().take(2_000).collect();
        return error.hint(format!("there are: {text}"));
    }
    error
}

fn run(
    connection: &Connection,
    sql: &str,
    cancel: &CancelToken,
    deadline: Option<Deadline>,
) -> Result<ResultRows, ToolError> {
    use rusqlite::fallible_iterator::FallibleIterator as _;
    let stop = cancel.clone();
    let ends = move || stop.is_cancelled() || deadline.is_some_and(|deadline| Deadline::now() >= deadline);
    connection.progress_handler(STEPS, Some(ends));
    let failed = |cause: rusqlite::Error| failed(&cause);
    let mut statements = rusqlite::Batch::new(connection, sql);
    let Some(mut first) = statements.next().map_err(failed)? else {
        return Err(ToolError::invalid("`sql` holds no statement"));
    };
    if statements.next().map_err(failed)?.is_some() {
        return Err(
            ToolError::invalid("only one statement can be run at a time").hint("make one call for each")
        );
    }
    let columns: Vec<String> = first.column_names().into_iter().map(str::to_owned).collect();
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut rows = first.raw_query();
    while let Some(row) = rows.next().map_err(failed)? {
        let cells: Vec<Json> = (0..columns.len())
            .map(|column| row.get_ref(column).map(value))
            .collect::<rusqlite::Result<_>>()
            .map_err(failed)?;
        bytes += cells.iter().map(toolwright_core::json_size).sum::<usize>();
        if found.len() >= MAX_ROWS || bytes > MAX_BYTES {
            return Ok(ResultRows { columns, rows: found, is_cut: true });
        }
        found.push(cells);
    }
    Ok(ResultRows { columns, rows: found, is_cut: false })
}

fn value(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => json!(format!("({} bytes)", bytes.len())),
    }
}

impl QueryAnswer {
    /// A table for a model, and what the tables were made from; the rows as data for a program.
    fn output(self, limit: usize, most: usize, begun: Instant) -> ToolOutput {
        let mut text = String::new();
        let mut data = serde_json::Map::new();
        let tables: Vec<String> = self.tables.iter().map(LoadedTable::signature).collect();
        data.insert("tables".to_owned(), json!(tables));
        match self.found {
            Some(found) => {
                text.push_str(&found.table(limit, most));
                data.insert("columns".to_owned(), json!(found.columns));
                data.insert("rows".to_owned(), json!(found.rows));
                data.insert("complete".to_owned(), json!(!found.is_cut));
            }
            None => {
                for table in &self.tables {
                    text.push_str(&table.signature());
                    text.push('\n');
                }
            }
        }
        for table in self.tables.iter().take(10) {
            text.push_str(&format!("[{}]\n", table.facts()));
        }
        text.push_str(&format!("[{:.1} s]\n", begun.elapsed().as_secs_f32()));
        ToolOutput::text(text).with_structured(data.into())
    }
}

impl ResultRows {
    fn table(&self, limit: usize, most: usize) -> String {
        let is_number = |at: usize| {
            let mut cells =
                self.rows.iter().filter_map(|row| row.get(at)).filter(|cell| !cell.is_null()).peekable();
            cells.peek().is_some() && cells.all(Json::is_number)
        };
        let right: Vec<bool> = (0..self.columns.len()).map(is_number).collect();
        let columns: Vec<String> = self.columns.iter().map(|name| cell_text(name, CELL)).collect();
        let mut left = most;
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .take(limit)
            .map(|row| row.iter().map(cell).collect::<Vec<String>>())
            .take_while(|row| {
                let size = row.iter().map(|cell| cell.len() + 3).sum::<usize>() + 2;
                left = left.saturating_sub(size);
                left > 0
            })
            .collect();
        let mut text = pipe_table(&columns, &rows, &right);
        let total = match self.is_cut {
            true => format!("more than {}", self.rows.len()),
            false => self.rows.len().to_string(),
        };
        if rows.len() < self.rows.len() || self.is_cut {
            text.push_str(&format!(
                "[{} of {total} rows shown; the whole result: save_table with the same sql]\n",
                rows.len()
            ));
        } else {
            text.push_str(&format!("[{total} rows]\n"));
        }
        text
    }
}

fn cell(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => cell_text(text, CELL),
        Json::Number(number) if number.is_f64() => shown(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

pub(super) fn too_many() -> ToolError {
    ToolError::of(
        ErrorKind::OutputLimit,
        format!("the result has more than {MAX_ROWS} rows or {MAX_BYTES} bytes"),
    )
}
