//! The program around a record: the tools its `meta` describes, our built-in tools, and an environment of one
//! variable.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use toolwright_core::{DynTool, ToolDef, ToolError, ToolOutput, ToolSpec, Toolset};
use toolwright_lang::{Host, Imports, raise};

/// What the program lends to the file of a record.
pub(super) fn host() -> Host {
    let host = Host::new().variable("HOME", "/home/u").imports(BuiltIn);
    let tools = harness();
    let names: Vec<String> = tools.names().map(str::to_owned).collect();
    names.into_iter().fold(host.builtins(tools), |host, name| host.alias(format!("harness.{name}"), name))
}

/// Our own tools, by the names llm-workers gives them.
struct BuiltIn;

impl Imports for BuiltIn {
    fn tool(&self, reference: &str, _config: &Json) -> Option<Result<Arc<DynTool>, ToolError>> {
        Some(Ok(Arc::new(toolwright_tools::resolve(reference)?)))
    }

    fn toolkit(&self, reference: &str) -> Option<Result<Toolset, ToolError>> {
        let set = toolwright_tools::toolkit(reference)?;
        Some(set.map_err(|error| ToolError::new(error.to_string())))
    }
}

/// The tools described in `meta.harness_tools`.
fn harness() -> Toolset {
    let spec = |name: &str, properties: Json, required: Json| {
        let mut spec = ToolSpec::new(name, format!("The harness tool `{name}`."));
        spec.parameters = json!({"type": "object", "properties": properties, "required": required});
        spec
    };
    let number =
        |arguments: &Json, name: &str| arguments.get(name).and_then(Json::as_i64).unwrap_or_default();
    let text = |arguments: &Json, name: &str, other: &str| {
        arguments.get(name).and_then(Json::as_str).unwrap_or(other).to_owned()
    };
    let integer = json!({"type": "integer"});
    let tools = [
        ToolDef::dynamic(
            spec("add", json!({"a": integer, "b": integer}), json!(["a", "b"])),
            move |_, arguments| async move {
                ToolOutput::json((number(&arguments, "a") + number(&arguments, "b")).into())
            },
        ),
        ToolDef::dynamic(
            spec("echo", json!({"value": {}}), json!(["value"])),
            |_, mut arguments| async move {
                ToolOutput::json(arguments.get_mut("value").map(Json::take).unwrap_or_default())
            },
        ),
        ToolDef::dynamic(
            spec("concat", json!({"left": {"type": "string"}, "right": {"type": "string"}}), json!(["left"])),
            move |_, arguments| async move { text(&arguments, "left", "") + &text(&arguments, "right", "!") },
        ),
        ToolDef::dynamic(
            spec(
                "fail",
                json!({"kind": {"type": "string"}, "message": {"type": "string"}}),
                json!(["kind", "message"]),
            ),
            move |_, arguments| async move {
                Err::<String, _>(raise(text(&arguments, "kind", ""), text(&arguments, "message", "")))
            },
        ),
        ToolDef::dynamic(spec("none_tool", json!({}), json!([])), |_, _| async {}),
        ToolDef::dynamic(
            spec("stats", json!({"numbers": {"type": "array", "items": integer}}), json!(["numbers"])),
            |_, arguments| async move {
                let numbers: Vec<i64> = arguments
                    .get("numbers")
                    .and_then(Json::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(Json::as_i64)
                    .collect();
                ToolOutput::json(json!({"count": numbers.len(), "total": numbers.iter().sum::<i64>()}))
            },
        ),
    ];
    tools.into_iter().fold(Toolset::new(), |set, tool| set.clone().with(tool).unwrap_or(set))
}
