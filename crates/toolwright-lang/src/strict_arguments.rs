//! Tools from elsewhere as flows call them. A model that writes 5 where text is wanted means the text; a flow
//! that computes 5 has made a mistake, and is told so, as llm-workers tells it.

use std::sync::Arc;

use serde_json::Value as Json;
use toolwright_core::{Arguments, DynTool, Entry, ToolError, Toolset};

use crate::flow::ImportedTool;

/// The same tools, which do not take a number for text.
pub(crate) fn exact(tools: Toolset) -> Toolset {
    tools.replaced(|entry| {
        let texts = texts(entry);
        if is_flow(entry) || texts.is_empty() {
            return None;
        }
        let tool: Arc<DynTool> = Arc::new(ImportedTool::exact(entry.tool.clone(), texts));
        Some(tool)
    })
}

/// Whether a tool is made of statements: those read their arguments by rules of their own.
pub(crate) fn is_flow(entry: &Entry) -> bool {
    entry.tool.policy().delegates
}

/// The parameters that are text and nothing else.
fn texts(entry: &Entry) -> Vec<String> {
    let properties = entry.tool.spec().parameters.get("properties").and_then(Json::as_object);
    let texts = properties
        .into_iter()
        .flatten()
        .filter(|(_, schema)| schema.get("type").is_some_and(|kind| kind == "string"));
    texts.map(|(name, _)| name.clone()).collect()
}

/// The arguments, unless one of them is a number where text is wanted.
pub(crate) fn read<'a>(texts: &[String], arguments: Arguments<'a>) -> Result<Arguments<'a>, ToolError> {
    let given = arguments.value();
    let number = |name: &&String| given.get(name.as_str()).is_some_and(Json::is_number);
    let Some(name) = texts.iter().find(number) else { return Ok(arguments) };
    let number = given.get(name.as_str()).unwrap_or(&Json::Null);
    let message = format!("the arguments do not fit:\n- `{name}`: {number} is not text");
    Err(ToolError::invalid(message).hint("`${str(...)}` makes text of a number"))
}
