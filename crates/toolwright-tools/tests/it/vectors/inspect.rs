//! The standard tools of Inspect: outcomes and kinds of failure must be equal, sentences need not.

use serde_json::{Value, json};
use toolwright_core::{CallView, Tool as _, ToolDef, ToolResult};
use toolwright_tools::{Memory, Options, resolve};

use super::{Vector, finish, tally, to_run};
use crate::support::{Backend, Bench, cases};

cases![
    plain_tools_do_what_inspect_does,
    the_editor_does_what_inspect_does,
    memories_are_what_they_are_in_inspect,
    definitions_are_those_of_inspect,
    sessions_answer_as_in_inspect,
];

fn of_area(area: &str) -> Vec<Vector> {
    to_run("inspect/tools").into_iter().filter(|vector| vector.area == area).collect()
}

fn kind(result: &ToolResult) -> Value {
    result.error.as_ref().map_or(Value::Null, |error| error.kind.as_str().into())
}

fn wanted_kind(vector: &Vector) -> Value {
    vector.observed["error"]["type"].clone()
}

async fn plain_tools_do_what_inspect_does(backend: Backend) {
    let names = ["bash", "python", "list_files", "grep", "read_file", "think", "update_plan", "todo_write"];
    let tools = names.map(|name| resolve(&format!("inspect_ai.tool.{name}")).unwrap());
    let bench = Bench::of(backend, tools).await;
    bench.write("d/one.txt", "alpha\nbeta\nalphabet\n");
    bench.write("d/two.md", "nothing\n");
    bench.write("d/sub/three.txt", "Alpha (x)\n");
    bench.write("d/.hid", "");
    let mut tally = tally();
    for vector in of_area("tools") {
        let tool = vector.id.split('.').next().unwrap();
        let mut arguments = vector.given.clone();
        if let Some(Value::String(command)) = arguments.get_mut("command") {
            *command = command.replace("\\0", "\0");
        }
        let result = bench.call(tool, arguments).await;
        let mut text = if result.error.is_some() { String::new() } else { result.to_text() };
        let mut wanted = vector.observed["content"].as_str().unwrap().to_owned();
        if let Some((before, _)) = text.split_once("[exit code ") {
            text = before.to_owned();
        }
        // These say the same in other words.
        if matches!(tool, "update_plan" | "todo_write") {
            (text, wanted) = (String::new(), String::new());
        }
        tally.check(&vector.id, &(wanted_kind(&vector), wanted), &(kind(&result), text));
    }
    finish(&tally);
}

/// The numbered lines of a view, tabs as the columns they look like.
fn numbered(text: &str) -> Vec<String> {
    let is_numbered = |line: &&str| {
        let number = line.split('\t').next().unwrap_or_default();
        number.len() == 6 && line.contains('\t') && number.trim().parse::<u32>().is_ok()
    };
    text.split('\n')
        .filter(is_numbered)
        .map(|line| line.replacen('\t', "|", 1).replace('\t', "        "))
        .collect()
}

async fn the_editor_does_what_inspect_does(backend: Backend) {
    let bench = Bench::of(backend, resolve("inspect_ai.tool.text_editor")).await;
    let folder = bench.folder.display().to_string();
    let edit = async |arguments: Value| {
        let text = arguments.to_string().replace("$SANDBOX", &folder);
        bench.call("text_editor", serde_json::from_str(&text).unwrap()).await
    };
    bench.write("bin.dat", [0xff, 0xfe]);
    bench.write("crlf.txt", "a\r\nb\r\n");
    let path = "$SANDBOX/f.txt";
    // What happened between the observations that were kept.
    let between: [(&str, Vec<Value>); 3] = [
        (
            "text_editor.file_after_edits",
            vec![
                json!({"command": "str_replace", "path": path, "old_str": "five", "new_str": "FIVE\nFIVE-B"}),
                json!({"command": "str_replace", "path": path, "old_str": "FIVE-B\n"}),
                json!({"command": "str_replace", "path": path, "old_str": "three", "new_str": "THREE"}),
                json!({"command": "insert", "path": path, "insert_line": 1, "new_str": "inserted\nlines"}),
                json!({"command": "insert", "path": path, "insert_line": 0, "new_str": "zero"}),
            ],
        ),
        ("text_editor.insert_end", vec![]),
        (
            "text_editor.undo_more_2",
            vec![
                json!({"command": "undo_edit", "path": path}),
                json!({"command": "undo_edit", "path": path}),
            ],
        ),
    ];
    let mut tally = tally();
    let mut edited = false;
    for vector in of_area("text_editor") {
        let first_insert = vector.id == "text_editor.insert_end" && !edited;
        for (id, steps) in &between {
            if *id == vector.id || (first_insert && *id == "text_editor.file_after_edits") {
                edited |= *id == "text_editor.file_after_edits";
                for step in steps {
                    let result = edit(step.clone()).await;
                    assert!(result.error.is_none(), "{step}: {:?}", result.error);
                }
            }
        }
        let result = edit(vector.given.clone()).await;
        let got = numbered(&result.to_text());
        let wanted = numbered(vector.observed["content"].as_str().unwrap());
        tally.check(&vector.id, &(wanted_kind(&vector), wanted), &(kind(&result), got));
        if result.error.is_none() {
            let named = if vector.id.contains("crlf") { "crlf.txt" } else { "f.txt" };
            assert!(
                result.to_text().contains(&format!("{folder}/{named}")),
                "{}: {}",
                vector.id,
                result.to_text()
            );
        }
    }
    finish(&tally);
}

async fn memories_are_what_they_are_in_inspect(backend: Backend) {
    let memory =
        Memory::new().file("/memories/seed.md", "new").file("/memories/a/b.txt", "one\ntwo\nthree\n");
    let bench = Bench::of(backend, [memory.tool(&Options::new())]).await;
    let listed = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with("/memories/") && !line.contains(' '))
            .map(str::to_owned)
            .collect()
    };
    let mut tally = tally();
    for vector in of_area("memory") {
        let result = bench.call("memory", vector.given.clone()).await;
        let text = result.to_text();
        let content = vector.observed["content"].as_str().unwrap();
        let wanted = (wanted_kind(&vector), numbered(content), listed(content));
        tally.check(&vector.id, &wanted, &(kind(&result), numbered(&text), listed(&text)));
    }
    finish(&tally);
    if super::is_asked() {
        return;
    }
    let empty = bench.text("memory", json!({"command": "view", "path": "/memories"})).await;
    assert!(listed(&empty).is_empty(), "{empty}");
}

/// Whether an approver sees more of a call than its arguments.
fn has_viewer(tool: &ToolDef) -> bool {
    let parameters = &tool.spec().parameters;
    let sample = |schema: &Value| match (&schema["enum"][0], schema["type"].as_str()) {
        (Value::Null, Some("array")) => json!([]),
        (Value::Null, Some("integer")) => json!(1),
        (Value::Null, Some("object")) => json!({}),
        (Value::Null, _) => json!("x"),
        (first, _) => first.clone(),
    };
    let required = parameters["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let arguments = required.map(|name| (name.to_owned(), sample(&parameters["properties"][name])));
    let prepared = tool.prepared(Value::Object(arguments.collect())).unwrap();
    prepared.description.is_some_and(|description| description.view != CallView::default())
}

async fn definitions_are_those_of_inspect(_: Backend) {
    let mut tally = tally();
    for vector in of_area("std_schema") {
        let name = vector.given["tool"].as_str().unwrap();
        let tool = resolve(&format!("inspect_ai.tool.{name}")).unwrap();
        let facts = |schema: &Value, parallel: bool, viewer: bool| {
            let properties = schema["properties"].as_object().unwrap();
            let mut names: Vec<String> = properties.keys().cloned().collect();
            names.sort();
            (names, schema["required"].clone(), schema["additionalProperties"].clone(), parallel, viewer)
        };
        let observed = &vector.observed;
        let wanted =
            facts(&observed["parameters"], observed["parallel"] == true, observed["has_viewer"] == true);
        let got = facts(&tool.spec().parameters, tool.policy().is_parallel(), has_viewer(&tool));
        tally.check(&vector.id, &wanted, &got);
    }
    finish(&tally);
}

async fn sessions_answer_as_in_inspect(backend: Backend) {
    let options = Options::new().wait_for_output(std::time::Duration::from_millis(3500));
    let bench = Bench::of(backend, [toolwright_tools::bash_session(&options)]).await;
    let mut tally = tally();
    for vector in of_area("bash_session") {
        // What happened between the observations that were kept.
        let before: &[Value] = match vector.id.as_str() {
            "bash_session.silent_sleep" => &[json!({"action": "interrupt"}), json!({"action": "read"})],
            "bash_session.unmatched_interrupt" => &[json!({"action": "type_submit", "input": "echo \"open"})],
            _ => &[],
        };
        for step in before {
            bench.call("bash_session", step.clone()).await;
        }
        let result = bench.call("bash_session", vector.given.clone()).await;
        let text = if result.error.is_some() { String::new() } else { result.to_text() };
        // The first prompt names the machine, and we say that a shell has ended.
        let text = text.split("[the shell has ended").next().unwrap_or_default();
        let wanted = vector.observed["content"].as_str().unwrap();
        let wanted = wanted.split_once("# ").map_or(wanted, |(_, rest)| rest);
        // Nothing that is typed is shown, Ctrl-C neither.
        let wanted = wanted.trim_start_matches("^C");
        let same = if vector.id.ends_with("first_cmd") { text.ends_with(wanted) } else { text == wanted };
        if same && kind(&result) == wanted_kind(&vector) {
            tally.check(&vector.id, &true, &true);
        } else {
            tally.fail(&vector.id, format!("{wanted:?}"), format!("{text:?} {:?}", result.error));
        }
    }
    finish(&tally);
}
