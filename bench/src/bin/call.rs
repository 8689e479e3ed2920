//! One in-process tool call through the whole path: validation, an approval rule, limits, an event listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use toolwright_bench::{nanos_async, report};
use toolwright_core::{ToolCall, ToolContext, ToolDef, Toolset};
use toolwright_runtime::{Event, Policy, Run, RunLimits};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair {
    /// First number.
    x: i64,
    /// Second number.
    y: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let add =
        ToolDef::typed(
            "add",
            "Adds two numbers.",
            |_: ToolContext, pair: Pair| async move { pair.x + pair.y },
        );
    let tools = Toolset::new().with(add)?;
    let heard = Arc::new(AtomicU64::new(0));
    let ears = heard.clone();
    let full = Run::builder(tools.clone())
        .policy(Policy::from_yaml("- {tools: 'add*', decision: approve}\n- {tools: rm, decision: reject}")?)
        .limits(RunLimits { tool_calls: Some(u64::MAX), tokens: Some(1), ..RunLimits::default() })
        .on_event(move |_: &Event| {
            ears.fetch_add(1, Ordering::Relaxed);
        })
        .build()?;
    let bare = Run::builder(tools).build()?;
    let call = ToolCall::new("call_1", "add", json!({"x": 1, "y": 2}));
    assert_eq!(full.call(call.clone()).await?.to_text(), "3");

    let rows = [
        ("whole path", time(&full, &call).await),
        ("no policy, limits or listener", time(&bare, &call).await),
    ];
    report(&rows);
    assert!(heard.load(Ordering::Relaxed) > 0);
    Ok(())
}

async fn time(run: &Run, call: &ToolCall) -> f64 {
    nanos_async(|| async {
        let result = run.call(call.clone()).await;
        assert!(result.is_ok_and(|result| result.error.is_none()));
    })
    .await
}
