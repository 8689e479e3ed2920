//! A host with small stand-ins for the tools that examples import, and one way to call a tool of a file.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright_core::{CallNote, ErrorKind, ToolCall, ToolDef, ToolError, ToolOutput, ToolSpec, Toolset};
use toolwright_lang::{Host, Loaded, Source, load};
use toolwright_runtime::{Event, EventKind, Run};

/// A tool of text parameters.
pub(crate) fn tool(
    name: &str,
    parameters: &[&str],
    work: impl Fn(&[String]) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
) -> ToolDef {
    let mut spec = ToolSpec::new(name, format!("Stands in for `{name}`."));
    let properties: serde_json::Map<String, Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    spec.parameters = json!({"type": "object", "properties": properties, "required": parameters});
    let names: Vec<String> = parameters.iter().map(|name| (*name).to_owned()).collect();
    ToolDef::from_fn(spec, move |_, arguments| {
        let values: Vec<String> =
            names.iter().map(|name| arguments[name].as_str().unwrap_or_default().to_owned()).collect();
        let outcome = work(&values);
        Box::pin(async move { outcome })
    })
}

fn says(
    name: &str,
    parameters: &[&str],
    work: impl Fn(&[String]) -> String + Send + Sync + 'static,
) -> ToolDef {
    tool(name, parameters, move |values| Ok(ToolOutput::text(work(values))))
}

fn read_file() -> ToolDef {
    let mut spec = ToolSpec::new("read_file", "Reads a file.");
    spec.parameters = json!({"type": "object", "additionalProperties": false, "required": ["path"],
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}});
    ToolDef::dynamic(spec, |_, arguments| async move {
        let lines =
            arguments["lines"].as_u64().map_or(usize::MAX, |lines| usize::try_from(lines).unwrap_or(0));
        match arguments["path"].as_str() {
            Some("notes.txt") => Ok("one\ntwo\nthree\n"
                .lines()
                .take(lines)
                .map(|line| format!("{line}\n"))
                .collect::<String>()),
            Some("empty.txt") => Ok(String::new()),
            _ => Err(ToolError::of(ErrorKind::FileNotFound, "no such file or folder")),
        }
    })
}

/// A host with all stand-ins.
pub(crate) fn host() -> Host {
    let tools = [
        read_file(),
        says("request_approval", &["prompt"], |_| r#"{"approval_token": "t"}"#.to_owned()),
        says("validate_approval", &["approval_token"], |_| "fine".to_owned()),
        says("consume_approval", &["approval_token"], |_| "consumed".to_owned()),
        says("run_python_script", &["script"], |v| {
            if v[0] == "print(6 * 7)" { "42\n".to_owned() } else { format!("ran {}", v[0]) }
        }),
    ];
    let tools = tools.into_iter().fold(Toolset::new(), |set, tool| set.with(tool).unwrap());
    Host::new().builtins(tools).variable("UserName", "ann")
}

/// A file from text; panics with the problems when it does not load.
pub(crate) fn loaded(text: &str) -> Loaded {
    load(Source::text("test.yaml", text), &host()).unwrap_or_else(|error| panic!("{error}"))
}

/// The problems of a file that does not load, as `line:column message`.
pub(crate) fn problems(text: &str) -> Vec<String> {
    match load(Source::text("test.yaml", text), &host()) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().iter().map(short).collect(),
    }
}

pub(crate) fn short(problem: &toolwright_lang::Diagnostic) -> String {
    format!("{}:{} {}", problem.line, problem.column, problem.message)
}

/// Calls a tool; an error is its kind and message.
pub(crate) async fn call(loaded: &Loaded, name: &str, arguments: Value) -> Result<Value, String> {
    call_shown(loaded, name, arguments).await.0
}

/// Calls a tool, and tells the hints that were noted.
pub(crate) async fn call_shown(
    loaded: &Loaded,
    name: &str,
    arguments: Value,
) -> (Result<Value, String>, Vec<String>) {
    let hints: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = hints.clone();
    let run = Run::builder(loaded.tools().clone())
        .max_output(0)
        .on_event(move |event: &Event| {
            if let EventKind::CallNoted { note: CallNote::Hint { text }, .. } = &event.kind {
                heard.lock().unwrap().push(text.clone());
            }
        })
        .build()
        .unwrap();
    let result = run.call(ToolCall::new("1", name, arguments)).await.unwrap();
    let hints = hints.lock().unwrap().clone();
    let outcome = match result.error {
        Some(error) => Err(format!("{}: {}", error.kind, error.message)),
        None => {
            let output = ToolOutput {
                content: result.content,
                structured: result.structured,
                metadata: result.metadata,
                ..ToolOutput::default()
            };
            Ok(output.value())
        }
    };
    (outcome, hints)
}
