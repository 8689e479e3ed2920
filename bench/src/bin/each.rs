//! `for_each` over 10,000 elements: one expression, and an expression with a branch.

use serde_json::{Value, json};
use toolwright_bench::{nanos_prepared, report};
use toolwright_core::ToolCall;
use toolwright_lang::{Host, Source, load};
use toolwright_runtime::Run;

const FILE: &str = include_str!("../../files/each.yaml");

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let loaded = load(Source::text("each.yaml", FILE), &Host::new())?;
    let run = Run::builder(loaded.tools().clone()).max_output(0).build()?;
    let items: Vec<i64> = (0..10_000).collect();
    let mut rows = Vec::new();
    for (work, tool) in [
        ("one expression", "one_eval"),
        ("expression and branch", "eval_if"),
        ("a dict, one expression", "dict_eval"),
    ] {
        let arguments = match tool {
            "dict_eval" => {
                let entries = items.iter().map(|n| (format!("k{n}"), Value::from(*n)));
                json!({"items": entries.collect::<serde_json::Map<_, _>>()})
            }
            _ => json!({ "items": items }),
        };
        let call = ToolCall::new("1", tool, arguments);
        let result = run.call(call.clone()).await?;
        assert!(result.error.is_none(), "{result:?}");
        let time = nanos_prepared(
            || call.clone(),
            async |call| {
                assert!(run.call(call).await.is_ok_and(|result| result.error.is_none()));
            },
        );
        rows.push((work, time.await));
    }
    report(&rows);
    Ok(())
}
