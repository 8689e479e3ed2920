//! `think`: a place to put a thought. It does nothing, and that is its use.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolwright_core::{CallView, ToolContext, ToolDef};

use crate::options::{Effect, finish};

#[derive(Deserialize, JsonSchema)]
struct Think {
    /// A thought to think about.
    #[serde(rename = "thought")]
    _thought: String,
}

/// The tool `think`.
pub fn think() -> ToolDef {
    let tool = ToolDef::typed(
        "think",
        "Write a thought down. Nothing is looked up and nothing changes; use it to reason through something involved, \
         to go over the rules that apply, or to check a result before going on.",
        |_: ToolContext, _: Think| async { "" },
    );
    let viewer = |call: &toolwright_core::ToolCall| {
        let thought = call.arguments.get("thought").and_then(Value::as_str).unwrap_or_default();
        Ok(CallView::markdown("Thought", thought))
    };
    finish(tool.with_viewer(viewer), "planning", Effect::Reads, &[])
}
