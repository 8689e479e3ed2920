//! Edits as MARSYS was seen to make them, where its context was right.

use serde_json::{Value, json};
use toolwright_tools::resolve;

use super::{finish, tally, to_run};
use crate::support::{Backend, Bench, cases};

cases![edits_do_what_marsys_does_where_it_is_right, diffs_go_where_their_context_is];

fn thirty_lines() -> String {
    (1..=30).map(|n| format!("line {n}\n")).collect()
}

/// What the file held before, which the observation does not say.
fn before(id: &str) -> String {
    match id {
        "edit/search_replace_all" => "x x x\n".to_owned(),
        "edit/crlf_file" => "a\r\nb\r\n".to_owned(),
        _ => thirty_lines(),
    }
}

async fn edits_do_what_marsys_does_where_it_is_right(backend: Backend) {
    let mut tally = tally();
    for vector in to_run("marsys/tools").into_iter().filter(|vector| vector.id.starts_with("edit/")) {
        let bench = Bench::of(backend, resolve("marsys.edit_file")).await;
        bench.write("e.txt", before(&vector.id));
        let mut arguments = json!({"path": vector.given["file"], "changes": vector.given["changes"]});
        for (name, value) in vector.given["kw"].as_object().unwrap() {
            arguments[name] = value.clone();
        }
        let result = bench.call("edit_file", arguments).await;
        let worked = vector.observed["result"]["ok"]["success"] == true;
        let after = match &vector.observed["file_after"] {
            Value::String(text) => text.clone(),
            _ => before(&vector.id),
        };
        tally.check(&vector.id, &(worked, after), &(result.error.is_none(), bench.read("e.txt")));
    }
    finish(&tally);
}

async fn diffs_go_where_their_context_is(backend: Backend) {
    let bench = Bench::of(backend, resolve("marsys.edit_file")).await;
    let edit = async |before: &str, changes: &str| {
        bench.write("e.txt", before);
        let result = bench.call("edit_file", json!({"path": "e.txt", "changes": changes})).await;
        (result.error.map(|error| error.message), bench.read("e.txt"))
    };
    let text = thirty_lines();
    let inserted = edit(&text, "@@ -20,2 +20,3 @@\n line 20\n+INSERTED\n line 21\n").await;
    assert_eq!(inserted, (None, text.replace("line 20\n", "line 20\nINSERTED\n")));
    let between = edit(&text, "@@ -3,3 +3,3 @@\n-line 3\n+L3\n line 4\n-line 5\n+L5\n").await;
    assert_eq!(between, (None, text.replace("line 3\n", "L3\n").replace("line 5\n", "L5\n")));
    let second = edit("dup\nx\ndup\ny\ndup\n", "@@ -3,2 +3,2 @@\n x\n-dup\n+DUP\n y\n").await;
    assert_eq!(second, (None, "dup\nx\nDUP\ny\ndup\n".to_owned()));
    let far = edit(&text, "@@ -1,1 +1,1 @@\n-line 28\n+L28\n").await;
    assert_eq!(far, (None, text.replace("line 28", "L28")));
    assert_eq!(edit("a\r\nb\r\n", "@@ -1,1 +1,1 @@\n-a\n+A\n").await, (None, "A\r\nb\r\n".to_owned()));
}
