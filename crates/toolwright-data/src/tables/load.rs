//! Tables into a scratch database in memory, which is then only read.

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::Null;
use rusqlite::{Connection, ToSql};
use toolwright_core::{CancelToken, ErrorKind, ToolError};

use super::profile::{ColumnProfile, ColumnType, integer, number};
use super::source::Table;
use super::{cancelled, functions};

/// The most memory of a scratch database, in pages of 4 KiB.
const MAX_PAGES: u32 = 196_608;

/// How many rows are read between two looks at whether the call still lasts.
const ROWS: u64 = 10_000;

/// A table that was loaded.
pub(super) struct LoadedTable {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) columns: Vec<(String, ColumnType)>,
    pub(super) rows: u64,
    pub(super) rejected: usize,
}

impl LoadedTable {
    /// `people(name text, age integer)`.
    pub(super) fn signature(&self) -> String {
        let columns =
            self.columns.iter().map(|(name, kind)| format!("{} {}", quoted_if_needed(name), kind.name()));
        format!("{}({})", quoted_if_needed(&self.name), columns.collect::<Vec<_>>().join(", "))
    }

    /// Where it is from, how it was read and how many rows it has.
    pub(super) fn facts(&self) -> String {
        format!(
            "{}: {} rows, {} columns; {}, {} rejected",
            self.name,
            self.rows,
            self.columns.len(),
            self.about,
            self.rejected
        )
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn quoted_if_needed(name: &str) -> String {
    let is_plain = name.chars().next().is_some_and(|ch| ch.is_alphabetic() || ch == '_')
        && name.chars().all(|ch| ch.is_alphanumeric() || ch == '_');
    if is_plain { name.to_owned() } else { quoted(name) }
}

/// Loads tables; two of one name get numbers.
pub(super) fn load(
    tables: Vec<Table>,
    cancel: &CancelToken,
) -> Result<(Connection, Vec<LoadedTable>), ToolError> {
    let failed = |cause: rusqlite::Error| self::failed(&cause);
    let connection = open().map_err(failed)?;
    let mut loaded: Vec<LoadedTable> = Vec::new();
    for table in tables {
        let taken = |name: &str, loaded: &[LoadedTable]| {
            loaded.iter().any(|other| other.name.eq_ignore_ascii_case(name))
        };
        let mut name = table.name.clone();
        let mut number = 2;
        while taken(&name, &loaded) {
            name = format!("{}_{number}", table.name);
            number += 1;
        }
        loaded.push(load_one(&connection, table, name, cancel)?);
    }
    // From here on only SELECT and what it needs, whatever the text of a statement says.
    connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if !function_name.eq_ignore_ascii_case("load_extension") => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }));
    Ok((connection, loaded))
}

fn open() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 64 << 20)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "journal_mode", "off")?;
    connection.pragma_update(None, "max_page_count", MAX_PAGES)?;
    // Sorting and grouping of models' statements stays in memory too: nothing is written anywhere.
    connection.pragma_update(None, "temp_store", "memory")?;
    functions::add(&connection)?;
    Ok(connection)
}

/// One pass finds the types, the next loads: a column is a number when all its values are.
fn load_one(
    connection: &Connection,
    table: Table,
    name: String,
    cancel: &CancelToken,
) -> Result<LoadedTable, ToolError> {
    let failed = |cause: rusqlite::Error| self::failed(&cause);
    let types = types_of(&table, cancel)?;
    let columns: Vec<String> = table
        .columns
        .iter()
        .zip(&types)
        .map(|(column, kind)| {
            let affinity = match kind {
                ColumnType::Integer => "INTEGER",
                ColumnType::Real => "REAL",
                _ => "TEXT",
            };
            format!("{} {affinity}", quoted(column))
        })
        .collect();
    connection
        .execute_batch(&format!("CREATE TABLE {} ({})", quoted(&name), columns.join(", ")))
        .map_err(failed)?;
    let places = vec!["?"; columns.len()].join(", ");
    let mut insert =
        connection.prepare(&format!("INSERT INTO {} VALUES ({places})", quoted(&name))).map_err(failed)?;
    connection.execute_batch("BEGIN").map_err(failed)?;
    let mut rows = 0;
    let rejected = table.each(&mut |cells| {
        rows += 1;
        if rows % ROWS == 0 && cancel.is_cancelled() {
            return Err(cancelled());
        }
        for (at, (cell, kind)) in cells.iter().zip(&types).enumerate() {
            let place = at + 1;
            match (cell, kind) {
                (None, _) => insert.raw_bind_parameter(place, Null),
                (Some(text), ColumnType::Integer) => insert.raw_bind_parameter(place, integer(text)),
                (Some(text), ColumnType::Real) => insert.raw_bind_parameter(place, number(text)),
                (Some(text), _) => insert.raw_bind_parameter(place, text as &dyn ToSql),
            }
            .map_err(failed)?;
        }
        insert.raw_execute().map_err(failed)?;
        Ok(())
    })?;
    connection.execute_batch("COMMIT").map_err(failed)?;
    let columns = table.columns.into_iter().zip(types).collect();
    Ok(LoadedTable { name, about: table.about, columns, rows, rejected })
}

fn types_of(table: &Table, cancel: &CancelToken) -> Result<Vec<ColumnType>, ToolError> {
    // Only the types are wanted of a profile here, which costs less.
    let mut kinds: Vec<TypeCount> = table.columns.iter().map(|_| TypeCount::default()).collect();
    let mut rows = 0u64;
    table.each(&mut |cells| {
        rows += 1;
        if rows.is_multiple_of(ROWS) && cancel.is_cancelled() {
            return Err(cancelled());
        }
        for (kind, text) in kinds.iter_mut().zip(cells).filter_map(|(kind, cell)| Some((kind, (*cell)?))) {
            kind.add(text);
        }
        Ok(())
    })?;
    Ok(kinds.iter().map(TypeCount::column_type).collect())
}

/// What all values of a column are so far; texts end the looking.
#[derive(Default)]
struct TypeCount {
    profile: ColumnProfile,
    is_text: bool,
}

impl TypeCount {
    fn add(&mut self, text: &str) {
        if !self.is_text && number(text).is_none() {
            self.is_text = true;
        }
        if !self.is_text {
            self.profile.add_type(text);
        }
    }

    fn column_type(&self) -> ColumnType {
        if self.is_text { ColumnType::Text } else { self.profile.column_type() }
    }
}

/// SQLite's own words are the best a model can get; where something was not allowed, the kind says so.
pub(super) fn failed(cause: &rusqlite::Error) -> ToolError {
    use rusqlite::ErrorCode;
    match cause.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            ToolError::of(ErrorKind::Timeout, "the statement took too long").hint("ask for less")
        }
        Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => {
            ToolError::of(ErrorKind::Permission, format!("only SELECT and WITH can be run: {cause}"))
        }
        Some(ErrorCode::DiskFull | ErrorCode::OutOfMemory | ErrorCode::TooBig) => {
            let message = format!("the tables are larger than {} MiB in memory", (MAX_PAGES >> 10) * 4);
            ToolError::of(ErrorKind::Limit, message)
        }
        _ => ToolError::new(cause.to_string()),
    }
}
