//! `think`: a place to put a thought. It does nothing, and that is its use.

use serde_json::Value;
use toolwright_core::{CallView, ToolDef, ToolError, tool};

/// The tool `think`, with what a file's `config` says of it beside the options of every tool: `description`,
/// and `thought_description` for its parameter. These are taken out of `config`.
pub(crate) fn from_config(config: &mut Value) -> Result<ToolDef, ToolError> {
    let mut said = |name: &str| match config.as_object_mut().and_then(|config| config.remove(name)) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ToolError::invalid(format!("`config`: `{name}` must be text"))),
    };
    let (description, thought) = (said("description")?, said("thought_description")?);
    let tool = think();
    let tool = if let Some(text) = description { tool.with_description(text) } else { tool };
    if let Some(text) = thought { tool.describe_parameter("thought", text) } else { Ok(tool) }
}

/// The tool `think`.
#[tool(
    description = "Write a thought down. Nothing is looked up and nothing changes; use it to reason through something \
                   involved, to go over the rules that apply, or to check a result before going on.",
    category = "planning",
    read_only,
    viewer = thought_view
)]
pub async fn think(
    /// A thought to think about.
    #[tool(rename = "thought")]
    _thought: String,
) -> &'static str {
    ""
}

fn thought_view(arguments: &Value) -> CallView {
    let thought = arguments.get("thought").and_then(Value::as_str).unwrap_or_default();
    CallView::markdown("Thought", thought)
}
