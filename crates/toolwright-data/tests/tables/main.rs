//! Tables of files, asked and written as a model does it. A `main` of their own: workbooks and documents are
//! read by a worker, which is this test program started again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests, in a harness that clippy does not know for one"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};
use toolwright_core::{DynSandbox, ErrorKind, ToolCall, ToolResult, Toolset};
use toolwright_data::{TableOptions, describe_data, query_data, save_table};
use toolwright_documents::Containment;
use toolwright_runtime::Run;
use toolwright_sandbox::{LocalSandbox, SandboxPolicy};

fn main() {
    toolwright_sandbox::launcher::main_if_launcher();
    toolwright_documents::main_if_worker_sealed_by(|| match toolwright_sandbox::only_compute() {
        Ok(()) => Containment { sealed: true, missing: None },
        Err(error) => Containment { sealed: false, missing: Some(error.to_string()) },
    });
    let trial = |name: &str, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok::<(), Failed>(())
        })
    };
    let trials = vec![
        trial("a_question_joins_files_of_different_kinds", a_question_joins_files_of_different_kinds),
        trial("a_statement_only_reads", a_statement_only_reads),
        trial(
            "functions_that_sqlite_lacks_are_those_of_python",
            functions_that_sqlite_lacks_are_those_of_python,
        ),
        trial("what_was_read_and_rejected_is_said", what_was_read_and_rejected_is_said),
        trial("a_result_is_shown_in_part_and_saved_whole", a_result_is_shown_in_part_and_saved_whole),
        trial("columns_are_described_in_one_pass", columns_are_described_in_one_pass),
        trial("a_statement_without_end_ends_with_its_call", a_statement_without_end_ends_with_its_call),
        trial("tables_of_documents_can_be_asked", tables_of_documents_can_be_asked),
        trial("odd_files_are_errors_or_told", odd_files_are_errors_or_told),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

struct Bench {
    run: Run,
    folder: PathBuf,
    runtime: tokio::runtime::Runtime,
    _temporary: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().canonicalize().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let policy = SandboxPolicy { workspace: Some(folder.clone()), ..SandboxPolicy::private() };
        let sandbox: Arc<DynSandbox> = Arc::new(runtime.block_on(LocalSandbox::open(policy)).unwrap());
        let options = TableOptions::new();
        let timeout = Duration::from_secs(5);
        let tools = Toolset::new()
            .with(query_data(&options).with_timeout(timeout))
            .and_then(|set| set.with(describe_data(&options)))
            .and_then(|set| set.with(save_table(&options)))
            .unwrap();
        let run = Run::builder(tools).sandbox("default", sandbox).build().unwrap();
        Bench { run, folder, runtime, _temporary: temporary }
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.folder.join(name), contents).unwrap();
    }

    fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.runtime.block_on(self.run.call(ToolCall::new("1", tool, arguments))).unwrap()
    }

    fn ask(&self, files: &[&str], sql: &str) -> ToolResult {
        let result = self.call("query_data", json!({"files": files, "sql": sql}));
        assert!(result.error.is_none(), "{sql}: {:?}", result.error);
        result
    }

    fn rows(&self, files: &[&str], sql: &str) -> Value {
        self.ask(files, sql).structured.unwrap()["rows"].clone()
    }

    fn error(&self, tool: &str, arguments: Value) -> (ErrorKind, String, String) {
        let error = self.call(tool, arguments).error.unwrap();
        (error.kind, error.message, error.hint.unwrap_or_default())
    }
}

const SALES: &str =
    "city;day;amount\nBerlin;2024-01-02;10\nParis;2024-01-03;20.5\nBerlin;2024-02-01;\nRome;2024-02-02;7\n";

fn a_question_joins_files_of_different_kinds() {
    let bench = Bench::new();
    bench.write("sales.csv", SALES);
    bench
        .write("cities.json", r#"[{"name": "Berlin", "country": "DE"}, {"name": "Paris", "country": "FR"}]"#);
    let result = bench.ask(
        &["sales.csv", "cities.json"],
        "SELECT country, count(*) AS n, sum(amount) AS total FROM sales JOIN cities ON name = city GROUP BY 1 ORDER BY 1",
    );
    let text = result.to_text();
    assert!(
        text.starts_with(
            "| country | n | total |\n| --- | ---: | ---: |\n| DE | 2 | 10 |\n| FR | 1 | 20.5 |\n[2 rows]\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("[sales: 4 rows, 3 columns; sales.csv; CSV: delimiter ';', header yes, 0 rejected]"),
        "{text}"
    );
    let data = result.structured.unwrap();
    assert_eq!(data["rows"], json!([["DE", 2, 10.0], ["FR", 1, 20.5]]));
    assert_eq!(data["tables"][0], "sales(city text, day text, amount number)");
    let tables = bench.call("query_data", json!({"files": ["sales.csv"]})).to_text();
    assert!(tables.starts_with("sales(city text, day text, amount number)\n"), "{tables}");
}

fn a_statement_only_reads() {
    let bench = Bench::new();
    bench.write("a.csv", "x,y\n1,2\n");
    for sql in [
        "DELETE FROM a",
        "INSERT INTO a VALUES (1, 2)",
        "CREATE TABLE b (x)",
        "ATTACH '/tmp/x.db' AS other",
        "PRAGMA table_info(a)",
        "VACUUM INTO '/tmp/x.db'",
        "SELECT load_extension('x')",
        "SELECT writefile('x', 'y')",
        "BEGIN",
    ] {
        let (kind, message, _) = bench.error("query_data", json!({"files": ["a.csv"], "sql": sql}));
        assert!(matches!(kind, ErrorKind::Permission | ErrorKind::Unknown), "{sql}: {kind:?} {message}");
    }
    let two = bench.error("query_data", json!({"files": ["a.csv"], "sql": "SELECT 1; SELECT 2"}));
    assert_eq!(two.0, ErrorKind::Parsing);
    let (_, message, hint) = bench.error("query_data", json!({"files": ["a.csv"], "sql": "SELECT z FROM a"}));
    assert!(
        message.contains("no such column") && hint == "there are: a(x integer, y integer)",
        "{message} {hint}"
    );
}

/// The numbers are those of Python's `statistics`.
fn functions_that_sqlite_lacks_are_those_of_python() {
    let bench = Bench::new();
    bench.write("n.csv", "x,y,t\n1,2,abc\n2,4,\n3,6,xbc\n4,9,zzz\n");
    let sql = "SELECT median(x), quantile(x, 0.9), round(stddev(x), 9), round(corr(x, y), 9), sum(t REGEXP '^.bc$') FROM n";
    assert_eq!(bench.rows(&["n.csv"], sql), json!([[2.5, 3.7, 1.290994449, 0.994376713, 2]]));
    assert_eq!(
        bench.rows(&["n.csv"], "SELECT median(x), stddev(x) FROM n WHERE x > 9"),
        json!([[null, null]])
    );
    let wrong = json!({"files": ["n.csv"], "sql": "SELECT quantile(x, 2) FROM n"});
    assert!(bench.error("query_data", wrong).1.contains("between 0 and 1"));
}

fn what_was_read_and_rejected_is_said() {
    let bench = Bench::new();
    bench.write("r.csv", "id,name\n007,a\n12,b,too many\n13\n");
    let result = bench.ask(&["r.csv"], "SELECT * FROM r");
    assert_eq!(result.structured.as_ref().unwrap()["rows"], json!([["007", "a"], ["13", null]]));
    assert!(result.to_text().contains("1 rejected"), "{}", result.to_text());
    bench.write("plain.csv", "1,2\n3,4\n");
    assert_eq!(bench.rows(&["plain.csv"], "SELECT column_2 FROM plain ORDER BY 1 DESC"), json!([[4], [2]]));
    // Two files of one name are two tables.
    std::fs::create_dir(bench.folder.join("d")).unwrap();
    bench.write("d/r.csv", "k,v\na,1\n");
    assert_eq!(bench.rows(&["r.csv", "d/r.csv"], "SELECT v FROM r_2"), json!([[1]]));
}

fn a_result_is_shown_in_part_and_saved_whole() {
    let bench = Bench::new();
    let rows: String = (0..3000).map(|n| format!("{n},{}\n", n * 2)).collect();
    bench.write("n.csv", format!("a,b\n{rows}"));
    let result = bench.ask(&["n.csv"], "SELECT * FROM n");
    let text = result.to_text();
    assert!(
        text.contains("[50 of 3000 rows shown; the whole result: save_table with the same sql]"),
        "{text}"
    );
    for (name, first) in [("out.csv", "a,b\n0,0\n1,2\n"), ("out.jsonl", "{\"a\":0,\"b\":0}\n")] {
        let saved =
            bench.call("save_table", json!({"path": name, "files": ["n.csv"], "sql": "SELECT * FROM n"}));
        assert!(saved.error.is_none(), "{:?}", saved.error);
        let told = value_of(&saved);
        assert_eq!(
            (&told["success"], &told["rows"], &told["columns"]),
            (&json!(true), &json!(3000), &json!(2))
        );
        let written = std::fs::read_to_string(bench.folder.join(name)).unwrap();
        assert!(written.starts_with(first) && told["bytes_written"] == written.len(), "{written}");
        assert_eq!(bench.rows(&[name], "SELECT sum(b) FROM out"), json!([[8_997_000]]));
    }
    let saved = bench
        .call("save_table", json!({"path": "people.xlsx", "rows": [{"name": "A", "age": 3}, {"name": "B"}]}));
    assert!(saved.error.is_none(), "{:?}", saved.error);
    assert_eq!(bench.rows(&["people.xlsx"], "SELECT name, age FROM Sheet1"), json!([["A", 3], ["B", null]]));
    let neither = bench.error("save_table", json!({"path": "x.csv"}));
    assert_eq!(neither.0, ErrorKind::Parsing);
    assert_eq!(bench.error("save_table", json!({"path": "x.txt", "rows": [{"a": 1}]})).0, ErrorKind::Parsing);
}

fn value_of(result: &ToolResult) -> Value {
    match (&result.structured, result.content.as_slice()) {
        (Some(value), _) => value.clone(),
        (None, [toolwright_core::Content::Json { value }]) => value.clone(),
        other => panic!("{other:?}"),
    }
}

fn columns_are_described_in_one_pass() {
    let bench = Bench::new();
    bench.write("sales.csv", SALES);
    let result = bench.call("describe_data", json!({"path": "sales.csv"}));
    let text = result.to_text();
    assert!(
        text.contains("| city | text | 0 | 3 | Berlin | Rome |  |  |  | Berlin, Paris, Rome |"),
        "{text}"
    );
    assert!(text.contains("| day | date | 0 | 4 | 2024-01-02 | 2024-02-02 |"), "{text}");
    assert!(
        text.contains("| amount | number | 1 | 3 | 7 | 20.5 | 12.5 | 7.088723 | 8.5 / 10 / 15.25 |"),
        "{text}"
    );
    let column = &result.structured.unwrap()["tables"][0]["columns"][2];
    assert_eq!(
        (&column["missing"], &column["mean"], &column["max"]),
        (&json!(1), &json!(12.5), &json!(20.5))
    );
}

fn a_statement_without_end_ends_with_its_call() {
    let bench = Bench::new();
    bench.write("a.csv", "x,y\n1,2\n");
    let begun = Instant::now();
    let sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
    let result = bench.call("query_data", json!({"files": ["a.csv"], "sql": sql}));
    assert_eq!(result.error.unwrap().kind, ErrorKind::Timeout);
    assert!(begun.elapsed() < Duration::from_secs(60));
    let many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n";
    let cut = bench.ask(&["a.csv"], many);
    assert!(cut.to_text().contains("[50 of more than 10000 rows shown"), "{}", cut.to_text());
}

fn tables_of_documents_can_be_asked() {
    let bench = Bench::new();
    bench.write("page.html", "<h1>Cities</h1><table><tr><th>name</th><th>people</th></tr><tr><td>A</td><td>5</td></tr><tr><td>B</td><td>7</td></tr></table>");
    assert_eq!(bench.rows(&["page.html"], "SELECT name FROM page WHERE people > 5"), json!([["B"]]));
    bench.write("none.md", "# Words\n\nNo table.\n");
    let (kind, message, _) = bench.error("query_data", json!({"files": ["none.md"], "sql": "SELECT 1"}));
    assert_eq!((kind, message.as_str()), (ErrorKind::Parsing, "none.md holds no table"));
}

fn odd_files_are_errors_or_told() {
    let bench = Bench::new();
    bench.write("deep.json", "[".repeat(100_000));
    bench.write("nul.bin", [0u8, 1, 2, 255]);
    bench.write("empty.csv", "");
    bench.write("wide.csv", "a,".repeat(5000) + "\n1\n");
    bench.write("line.csv", "x".repeat(8 << 20));
    for (file, kind) in [
        ("deep.json", ErrorKind::Parsing),
        ("nul.bin", ErrorKind::Parsing),
        ("empty.csv", ErrorKind::Parsing),
        ("wide.csv", ErrorKind::Limit),
        ("missing.csv", ErrorKind::FileNotFound),
    ] {
        let error = bench.error("query_data", json!({"files": [file], "sql": "SELECT 1"}));
        assert_eq!(error.0, kind, "{file}: {}", error.1);
        assert_eq!(bench.error("describe_data", json!({"path": file})).0, kind, "{file}");
    }
    let line = bench.call("describe_data", json!({"path": "line.csv"}));
    assert!(line.error.is_none() && line.to_text().len() < 4000, "{:?}", line.error);
    let none = bench.error("query_data", json!({"files": [], "sql": "SELECT 1"}));
    assert_eq!(none.0, ErrorKind::Parsing);
}
