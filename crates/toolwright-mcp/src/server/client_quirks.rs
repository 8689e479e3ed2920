//! What single clients do to tools on the way to their model, and what is done so that the model loses
//! nothing by it. A client is known by the name that it gives itself in `initialize`.

use serde_json::{Map, Value, json};
use toolwright_core::ToolSpec;

use crate::protocol::ToolDefinition;

/// Codex: of an input schema it drops defaults, and descriptions of parameters without a type.
const CODEX: &str = "codex-mcp-client";

/// An argument that Gemini CLI adds to the schema of every tool that it shows its model, and sends on
/// unchanged.
const FOREIGN_ARGUMENT: &str = "wait_for_previous";

/// Every type of JSON, for a parameter that takes any value.
const ANY_TYPE: [&str; 6] = ["string", "number", "boolean", "object", "array", "null"];

/// The longest default that is repeated in a description.
const MAX_DEFAULT: usize = 200;

/// Keywords that say what a parameter takes in place of `type`.
const TYPED_BY: [&str; 7] = ["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"];

/// Removes the argument that a client added by itself, unless the tool has a parameter of that name.
pub(super) fn drop_foreign_argument(spec: &ToolSpec, arguments: &mut Value) {
    let Value::Object(members) = arguments else { return };
    let known = spec.parameters.get("properties").is_some_and(|known| known.get(FOREIGN_ARGUMENT).is_some());
    if !known {
        members.shift_remove(FOREIGN_ARGUMENT);
    }
}

/// The definition of a tool as this client needs it.
pub(super) fn definition(spec: &ToolSpec, client: &str) -> ToolDefinition {
    let mut definition = ToolDefinition::of(spec);
    if client == CODEX
        && let Some(Value::Object(properties)) = definition.input_schema.get_mut("properties")
    {
        properties.values_mut().filter_map(Value::as_object_mut).for_each(keep_description_and_default);
    }
    definition
}

/// Says the default of a parameter in its description, and gives a parameter of any type all types.
fn keep_description_and_default(parameter: &mut Map<String, Value>) {
    let shown = parameter.get("default").filter(|default| !default.is_null()).map(Value::to_string);
    if let Some(shown) = shown.filter(|shown| shown.len() <= MAX_DEFAULT) {
        let said = parameter.get("description").and_then(Value::as_str).unwrap_or_default();
        let blank = if said.is_empty() { "" } else { " " };
        let said = format!("{said}{blank}Default: {shown}.");
        parameter.insert("description".to_owned(), said.into());
    }
    if parameter.contains_key("description") && !TYPED_BY.iter().any(|key| parameter.contains_key(*key)) {
        parameter.insert("type".to_owned(), json!(ANY_TYPE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(properties: Value) -> ToolSpec {
        let mut spec = ToolSpec::new("t", "d");
        spec.parameters = json!({"type": "object", "properties": properties});
        spec
    }

    #[test]
    fn argument_that_gemini_cli_adds_is_dropped_unless_the_tool_has_it() {
        let with = |properties: Value| {
            let mut arguments = json!({"path": "a", "wait_for_previous": true});
            drop_foreign_argument(&spec(properties), &mut arguments);
            arguments.get("wait_for_previous").is_some()
        };
        assert!(!with(json!({"path": {}})));
        assert!(with(json!({"path": {}, "wait_for_previous": {"type": "boolean"}})));
    }

    #[test]
    fn codex_is_given_defaults_and_descriptions_in_a_form_that_it_keeps() {
        let spec = spec(json!({
            "offset": {"type": "integer", "description": "First line.", "default": 0},
            "value": {"description": "Anything."},
            "bare": {},
            "choice": {"enum": ["a"], "default": "a"},
            "none": {"type": "string", "default": null},
            "point": {"$ref": "#/$defs/Point", "description": "Where."},
        }));
        let of = |client: &str| definition(&spec, client).input_schema["properties"].clone();
        assert_eq!(
            of(CODEX),
            json!({
                "offset": {"type": "integer", "description": "First line. Default: 0.", "default": 0},
                "value": {"description": "Anything.", "type": ANY_TYPE},
                "bare": {},
                "choice": {"enum": ["a"], "default": "a", "description": "Default: \"a\"."},
                "none": {"type": "string", "default": null},
                "point": {"$ref": "#/$defs/Point", "description": "Where."},
            })
        );
        assert_eq!(of("claude-code"), spec.parameters["properties"]);
    }
}
