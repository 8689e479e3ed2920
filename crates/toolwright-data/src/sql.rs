//! SQL that a model writes, run on SQLite.
//!
//! The file that is open is all there is: no other file can be attached, no extension loaded. A statement
//! ends when its call does.

use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::time::Instant;
use toolwright_core::{
    Annotations, CancelToken, ErrorKind, ToolContext, ToolDef, ToolError, ToolOutput, ToolSpec,
};
use toolwright_expr::Value;
use toolwright_util::lock;

/// The most rows and bytes of an answer.
const MAX_ROWS: usize = 10_000;
const MAX_BYTES: usize = 1 << 20;

/// How many of SQLite's steps pass between two looks at the clock.
const STEPS: i32 = 10_000;

/// An SQLite database.
#[derive(Debug, Clone)]
pub struct Database {
    connection: Arc<Mutex<Connection>>,
    read_only: bool,
}

/// What a statement found.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A value of a database.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl Database {
    /// A database in a file, which is made when it is not there.
    pub fn open(path: &Path) -> Result<Self, ToolError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Self::of(Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX), false)
    }

    /// A database in a file, which nothing can change.
    pub fn open_read_only(path: &Path) -> Result<Self, ToolError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::of(Connection::open_with_flags(path, flags), true)
    }

    /// An empty database in memory.
    pub fn in_memory() -> Result<Self, ToolError> {
        Self::of(Connection::open_in_memory(), false)
    }

    fn of(connection: rusqlite::Result<Connection>, read_only: bool) -> Result<Self, ToolError> {
        let set_up = || -> rusqlite::Result<Connection> {
            let connection = connection?;
            connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 64 << 20)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            Ok(connection)
        };
        let connection = set_up().map_err(|cause| failed(&cause))?;
        Ok(Database { connection: Arc::new(Mutex::new(connection)), read_only })
    }

    /// Runs one statement, and keeps what it changed.
    pub fn run(&self, sql: &str) -> Result<Rows, ToolError> {
        self.run_until(sql, &CancelToken::new(), None)
    }

    /// The statements that made the tables, for a model to read.
    pub fn schema(&self) -> Result<String, ToolError> {
        let found = self.run("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")?;
        let texts = found.rows.iter().flatten().filter_map(|cell| match cell {
            Cell::Text(sql) => Some(format!("{sql};")),
            _ => None,
        });
        Ok(texts.collect::<Vec<_>>().join("\n"))
    }

    /// A tool that runs the SQL it is given. Its description says which tables there are now.
    pub fn tool(&self, name: &str, description: &str) -> Result<ToolDef, ToolError> {
        let about = format!(
            "{description}\nThe database uses SQLite dialect. The schema of the database is provided to you here:\n\
             <schema>\n{}\n</schema>",
            self.schema()?
        );
        let mut spec = ToolSpec::new(name, about);
        spec.parameters = json!({"type": "object", "properties": {
            "sql_query": {"type": "string", "description": "The query to run: one statement."}
        }, "required": ["sql_query"], "additionalProperties": false});
        spec.output_schema = Some(json!({"type": "object", "properties": {
            "columns": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": {"type": "array"}}
        }, "required": ["columns", "rows"]}));
        let database = self.clone();
        let tool = ToolDef::blocking(spec, move |context: ToolContext, arguments: Json| {
            let Arguments { sql_query } =
                serde_json::from_value(arguments).map_err(|cause| ToolError::invalid(cause.to_string()))?;
            let rows = database.run_until(&sql_query, context.cancel_token(), context.deadline())?;
            Ok::<_, ToolError>(ToolOutput::json(json!({"columns": rows.columns, "rows": rows.to_json()})))
        });
        let annotations = Annotations {
            read_only: Some(self.read_only),
            destructive: Some(!self.read_only),
            open_world: Some(false),
            ..Annotations::default()
        };
        Ok(tool.with_annotations(annotations).with_parallel(self.read_only).with_category("data"))
    }

    fn run_until(
        &self,
        sql: &str,
        cancel: &CancelToken,
        deadline: Option<Instant>,
    ) -> Result<Rows, ToolError> {
        let connection = lock(&self.connection);
        let stop = cancel.clone();
        let ends = move || stop.is_cancelled() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        connection.progress_handler(STEPS, Some(ends));
        let outcome = statement(&connection, sql);
        connection.progress_handler(0, None::<fn() -> bool>);
        // What a statement began is ended with it: kept when it succeeded, undone when not.
        if !connection.is_autocommit() {
            let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
            connection.execute_batch(end).map_err(|cause| failed(&cause))?;
        }
        outcome
    }
}

#[derive(Deserialize)]
struct Arguments {
    sql_query: String,
}

fn statement(connection: &Connection, sql: &str) -> Result<Rows, ToolError> {
    use rusqlite::fallible_iterator::FallibleIterator as _;
    let mut statements = rusqlite::Batch::new(connection, sql);
    let first = statements.next().map_err(|cause| failed(&cause))?;
    let Some(mut first) = first else { return Ok(Rows { columns: Vec::new(), rows: Vec::new() }) };
    if statements.next().map_err(|cause| failed(&cause))?.is_some() {
        return Err(
            ToolError::invalid("only one statement can be run at a time").hint("make one call for each")
        );
    }
    let columns: Vec<String> = first.column_names().into_iter().map(str::to_owned).collect();
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut rows = first.raw_query();
    while let Some(row) = rows.next().map_err(|cause| failed(&cause))? {
        let cells: Vec<Cell> = (0..columns.len())
            .map(|column| Ok(cell(row.get_ref(column)?)))
            .collect::<rusqlite::Result<_>>()
            .map_err(|cause| failed(&cause))?;
        bytes += cells.iter().map(Cell::size).sum::<usize>();
        if found.len() >= MAX_ROWS || bytes > MAX_BYTES {
            let part = Rows { columns: columns.clone(), rows: found }.to_json();
            let text = format!("the answer has more than {MAX_ROWS} rows or {MAX_BYTES} bytes");
            return Err(ToolError::of(ErrorKind::OutputLimit, text)
                .hint("ask for less: name columns, use WHERE, LIMIT or an aggregate")
                .with_partial(ToolOutput::json(json!({"columns": columns, "rows": part}))));
        }
        found.push(cells);
    }
    Ok(Rows { columns, rows: found })
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    }
}

/// SQLite's own words are the best a model can get; where something was not allowed, the kind says so.
fn failed(cause: &rusqlite::Error) -> ToolError {
    let kind = match cause.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => ErrorKind::Timeout,
        Some(
            ErrorCode::ReadOnly | ErrorCode::AuthorizationForStatementDenied | ErrorCode::PermissionDenied,
        ) => ErrorKind::Permission,
        Some(ErrorCode::CannotOpen) => ErrorKind::FileNotFound,
        _ => ErrorKind::Unknown,
    };
    ToolError::of(kind, cause.to_string())
}

impl Cell {
    fn size(&self) -> usize {
        match self {
            Cell::Null | Cell::Integer(_) | Cell::Real(_) => 8,
            Cell::Text(text) => text.len(),
            Cell::Blob(bytes) => bytes.len(),
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Cell::Null => Json::Null,
            Cell::Integer(number) => json!(number),
            Cell::Real(number) => json!(number),
            Cell::Text(text) => json!(text),
            Cell::Blob(bytes) => json!({"base64": STANDARD.encode(bytes)}),
        }
    }

    fn to_python(&self) -> Value {
        match self {
            Cell::Null => Value::None,
            Cell::Integer(number) => Value::from_json(&json!(number)),
            Cell::Real(number) => Value::Float(*number),
            Cell::Text(text) => Value::str(text.as_str()),
            Cell::Blob(bytes) => Value::bytes(bytes.clone()),
        }
    }
}

impl Rows {
    /// The rows as JSON: a list of lists. Bytes are an object with `base64`.
    pub fn to_json(&self) -> Json {
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::to_json).collect::<Json>());
        rows.collect()
    }

    /// The rows as Python gives them: a list of tuples.
    pub fn to_python(&self) -> Value {
        let rows = self.rows.iter().map(|row| Value::tuple(row.iter().map(Cell::to_python).collect()));
        Value::list(rows.collect())
    }
}
