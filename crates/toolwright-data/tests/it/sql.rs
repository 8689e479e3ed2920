//! What a model can do to a database, and what it cannot.

use serde_json::json;
use toolwright_core::{ErrorKind, ToolCall, Toolset};
use toolwright_data::Database;
use toolwright_runtime::Run;

fn people() -> Database {
    let database = Database::in_memory().unwrap();
    database.run("CREATE TABLE people (name TEXT, age INTEGER)").unwrap();
    database.run("INSERT INTO people VALUES ('John', 42), ('O''Neil', NULL)").unwrap();
    database
}

#[test]
fn values_come_back_as_json_and_as_python() {
    let rows = people().run("SELECT *, 1.5 AS half, x'00ff' AS raw FROM people").unwrap();
    assert_eq!(rows.columns, ["name", "age", "half", "raw"]);
    assert_eq!(
        rows.to_json(),
        json!([["John", 42, 1.5, {"base64": "AP8="}], ["O'Neil", null, 1.5, {"base64": "AP8="}]])
    );
    let python = r#"[('John', 42, 1.5, b'\x00\xff'), ("O'Neil", None, 1.5, b'\x00\xff')]"#;
    assert_eq!(rows.to_python().to_string(), python);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_reads_the_schema_and_asks() {
    let database = people();
    let tool = database.tool("query_people", "Runs SQL.").unwrap();
    assert!(tool.spec().description.contains("CREATE TABLE people (name TEXT, age INTEGER);"));
    let run = Run::builder(Toolset::new().with(tool).unwrap()).build().unwrap();
    let call = |sql: &str| ToolCall::new("1", "query_people", json!({"sql_query": sql}));
    let result = run.call(call("SELECT count(*) AS n FROM people")).await.unwrap();
    assert_eq!(result.to_text(), r#"{"columns":["n"],"rows":[[2]]}"#);
    let error = run.call(call("SELEC")).await.unwrap().error.unwrap();
    assert_eq!((error.kind, error.message.contains("syntax error")), (ErrorKind::Unknown, true), "{error:?}");
}

#[test]
fn one_statement_at_a_time_and_nothing_left_open() {
    let database = people();
    let two = database.run("DELETE FROM people; SELECT 1").unwrap_err();
    assert_eq!(two.kind(), ErrorKind::Parsing);
    assert_eq!(database.run("SELECT count(*) FROM people").unwrap().to_json(), json!([[2]]));
    for nothing in ["", " ; ", "-- only words"] {
        assert_eq!(database.run(nothing).unwrap().rows, Vec::<Vec<_>>::new());
    }
    database.run("BEGIN").unwrap();
    database.run("BEGIN").unwrap();
}

#[test]
fn no_other_file_can_be_reached() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.db");
    Database::open(&other).unwrap().run("CREATE TABLE secrets (x)").unwrap();
    let database = Database::open(&folder.path().join("mine.db")).unwrap();
    for sql in [
        format!("ATTACH '{}' AS other", other.display()),
        format!("VACUUM INTO '{}'", folder.path().join("copy.db").display()),
        "SELECT load_extension('libc.so.6')".to_owned(),
        format!("SELECT readfile('{}')", other.display()),
        "PRAGMA writable_schema = on".to_owned(),
    ] {
        let outcome = database.run(&sql);
        // A pragma that is refused is silent; it must have no effect.
        if sql.starts_with("PRAGMA") {
            let written = database.run("UPDATE sqlite_schema SET sql = 'x'");
            assert!(written.is_err(), "{sql}");
        } else {
            assert!(outcome.is_err(), "{sql}");
        }
    }
    assert!(!folder.path().join("copy.db").exists());
}

#[test]
fn a_database_for_reading_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.db");
    assert_eq!(Database::open_read_only(&path).unwrap_err().kind(), ErrorKind::FileNotFound);
    Database::open(&path).unwrap().run("CREATE TABLE t (x)").unwrap();
    let database = Database::open_read_only(&path).unwrap();
    assert_eq!(database.run("INSERT INTO t VALUES (1)").unwrap_err().kind(), ErrorKind::Permission);
    let tool = database.tool("t", "Reads.").unwrap();
    assert_eq!(tool.spec().annotations.read_only, Some(true));
}

#[test]
fn too_much_is_an_error_with_what_fits() {
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n";
    let error = people().run(endless).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputLimit);
    let kept = error.partial().unwrap().value();
    assert_eq!(kept["rows"].as_array().unwrap().len(), 10_000);
    let wide = people().run("SELECT zeroblob(2000000)").unwrap_err();
    assert_eq!(wide.kind(), ErrorKind::OutputLimit);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_without_end_ends_with_its_call() {
    let database = people();
    let tool = database.tool("q", "Runs SQL.").unwrap().with_timeout(std::time::Duration::from_millis(200));
    let run = Run::builder(Toolset::new().with(tool).unwrap()).build().unwrap();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
    let result = run.call(ToolCall::new("1", "q", json!({"sql_query": endless}))).await.unwrap();
    assert_eq!(result.error.unwrap().kind, ErrorKind::Timeout);
    // The connection is free again, so the statement has stopped; this waits for it.
    assert_eq!(database.run("SELECT 1").unwrap().to_json(), json!([[1]]));
}
