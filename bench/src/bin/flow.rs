//! A YAML tool of three steps, called through the whole path: three expressions, and one with a tool in the
//! middle.

use serde_json::json;
use toolwright_bench::{nanos_async, report};
use toolwright_core::{ToolCall, ToolDef, ToolOutput, ToolSpec, Toolset};
use toolwright_lang::{Host, Source, load};
use toolwright_runtime::Run;

const FILE: &str = include_str!("../../files/flow.yaml");

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut spec = ToolSpec::new("add", "Adds.");
    spec.parameters = json!({"type": "object", "required": ["a", "b"],
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    let add = ToolDef::dynamic(spec, |_, arguments| async move {
        let number = |name: &str| arguments.get(name).and_then(serde_json::Value::as_i64).unwrap_or_default();
        ToolOutput::json((number("a") + number("b")).into())
    });
    let host = Host::new().builtins(Toolset::new().with(add)?);
    let loaded = load(Source::text("flow.yaml", FILE), &host)?;
    let run = Run::builder(loaded.tools().clone()).build()?;
    let mut rows = Vec::new();
    for (work, tool, want) in [
        ("three expressions", "three_evals", "result: 42"),
        ("expression, tool, expression", "with_call", "result: 42"),
        ("expression, branch, expression", "with_if", "result: 42"),
    ] {
        let call = ToolCall::new("1", tool, json!({"x": 20}));
        assert_eq!(run.call(call.clone()).await?.to_text(), want);
        let time = nanos_async(|| async {
            assert!(run.call(call.clone()).await.is_ok_and(|result| result.error.is_none()));
        });
        rows.push((work, time.await));
    }
    report(&rows);
    Ok(())
}
