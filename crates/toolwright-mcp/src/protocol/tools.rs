//! `tools/*`: definitions, calls and their results.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolwright_core::{Annotations, ToolSpec};

use super::{CacheHint, ContentBlock, Round, TaskMetadata};
use crate::jsonrpc::{INVALID_PARAMS, RpcError};

/// A tool as a server lists it. Schemas are kept whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// The name by which it is called.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The tool's effects, as the server claims them; nothing verifies that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Hints>,
    /// Icons, for clients that show tools to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Value>,
    /// Data for programs that know it.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// The effects of a tool, as a server claims them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hints {
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// May destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it twice is the same as calling it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Reaches things outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl From<&Annotations> for Hints {
    fn from(annotations: &Annotations) -> Self {
        Hints {
            title: annotations.title.clone(),
            read_only_hint: annotations.read_only,
            destructive_hint: annotations.destructive,
            idempotent_hint: annotations.idempotent,
            open_world_hint: annotations.open_world,
        }
    }
}

impl From<&Hints> for Annotations {
    fn from(hints: &Hints) -> Self {
        Annotations {
            title: hints.title.clone(),
            read_only: hints.read_only_hint,
            destructive: hints.destructive_hint,
            idempotent: hints.idempotent_hint,
            open_world: hints.open_world_hint,
        }
    }
}

impl ToolDefinition {
    /// Describes one of our tools. A result that is not an object is wrapped as `{"result": ...}`, because
    /// structured results are objects in every revision with sessions.
    pub fn of(spec: &ToolSpec) -> Self {
        ToolDefinition {
            name: spec.name.to_string(),
            title: spec.annotations.title.clone(),
            description: Some(spec.description.clone()),
            input_schema: object_schema(&spec.parameters),
            output_schema: spec.output_schema.as_ref().map(wrapped_schema),
            annotations: (!spec.annotations.is_empty()).then(|| Hints::from(&spec.annotations)),
            icons: spec.extras.get("icons").cloned(),
            meta: spec.extras.get("_meta").cloned(),
        }
    }
}

/// MCP requires `type: object` at the root.
fn object_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(members) if members.contains_key("type") => schema.clone(),
        Value::Object(members) => {
            let mut typed = Map::from_iter([("type".to_owned(), json!("object"))]);
            typed.extend(members.clone());
            typed.into()
        }
        _ => json!({"type": "object"}),
    }
}

/// Whether structured results of this schema travel as they are.
pub(crate) fn is_object_schema(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

pub(crate) fn wrapped_schema(schema: &Value) -> Value {
    if is_object_schema(schema) {
        return schema.clone();
    }
    let mut inner = schema.clone();
    // References such as `#/$defs/Point` are read from the root, so the definitions move there.
    let definitions: Vec<(String, Value)> = match &mut inner {
        Value::Object(members) => ["$defs", "definitions", "$schema"]
            .into_iter()
            .filter_map(|key| members.shift_remove(key).map(|value| (key.to_owned(), value)))
            .collect(),
        _ => Vec::new(),
    };
    let mut outer = json!({"type": "object", "properties": {"result": inner}, "required": ["result"]});
    if let Value::Object(members) = &mut outer {
        members.extend(definitions);
    }
    outer
}

/// Whether a tool is run as a task (2025-11-25).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskMode {
    Required,
    Optional,
    Forbidden,
}

impl TaskMode {
    /// The mode that a listed tool names.
    pub(crate) fn of(tool: &Value) -> Option<Self> {
        TaskMode::deserialize(tool.get("execution")?.get("taskSupport")?).ok()
    }
}

/// The answer to `tools/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListToolsResult {
    pub(crate) tools: Vec<ToolDefinition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
    #[serde(flatten)]
    pub(crate) cache: Option<CacheHint>,
}

/// `tools/call`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct CallParams {
    pub(crate) name: String,
    /// An object, as large as a message may be.
    pub(crate) arguments: Value,
    /// Asks for a task in place of a result (2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<TaskMetadata>,
    #[serde(flatten)]
    pub(crate) round: Round,
}

impl CallParams {
    /// Reads the parameters member by member: the arguments are moved, however many values they hold.
    pub(crate) fn read(mut params: Map<String, Value>) -> Result<Self, RpcError> {
        let invalid = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let Some(Value::String(name)) = params.remove("name") else {
            return Err(invalid("`name` is missing"));
        };
        let arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(arguments @ Value::Object(_)) => arguments,
            Some(_) => return Err(invalid("`arguments` must be an object")),
        };
        Ok(CallParams { name, arguments, task: None, round: Round::take(&mut params)? })
    }
}

/// The answer to `tools/call`. `_meta` stands in the envelope of every result.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallResult {
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) structured_content: Option<Value>,
}

/// The answer of a server to `tools/call`, as our client reads it. Its blocks are read one by one.
#[derive(Debug, Default)]
pub(crate) struct CallAnswer {
    pub(crate) content: Vec<Value>,
    pub(crate) structured_content: Option<Value>,
    pub(crate) is_error: bool,
    /// What the answer is, when it is not a result; kept as it came, for messages.
    pub(crate) other_type: Option<String>,
    pub(crate) meta: Map<String, Value>,
}

impl CallAnswer {
    /// Reads an answer. Members are moved, so that a large result is not walked through once more.
    pub(crate) fn read(answer: Value) -> Result<Self, String> {
        let Value::Object(mut members) = answer else { return Err("it is not an object".to_owned()) };
        let mut member = |key: &str| members.remove(key).filter(|value| !value.is_null());
        Ok(CallAnswer {
            content: match member("content") {
                None => Vec::new(),
                Some(Value::Array(blocks)) => blocks,
                Some(_) => return Err("`content` is not a list".to_owned()),
            },
            structured_content: member("structuredContent"),
            is_error: match member("isError") {
                None => false,
                Some(Value::Bool(is_error)) => is_error,
                Some(_) => return Err("`isError` is not a boolean".to_owned()),
            },
            other_type: match member("resultType") {
                None => None,
                Some(Value::String(kind)) => Some(kind).filter(|kind| kind != "complete"),
                Some(_) => return Err("`resultType` is not a string".to_owned()),
            },
            meta: match member("_meta") {
                None => Map::new(),
                Some(Value::Object(meta)) => meta,
                Some(_) => return Err("`_meta` is not an object".to_owned()),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_schema_of_another_type_is_wrapped_with_its_references_intact() {
        let mut spec = ToolSpec::new("points", "Points.");
        spec.output_schema = Some(json!({
            "type": "array", "items": {"$ref": "#/$defs/P"}, "$defs": {"P": {"type": "integer"}}
        }));
        assert_eq!(
            ToolDefinition::of(&spec).output_schema,
            Some(json!({
                "type": "object",
                "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/P"}}},
                "required": ["result"],
                "$defs": {"P": {"type": "integer"}}
            }))
        );
    }

    #[test]
    fn definition_survives_the_wire() {
        let mut spec = ToolSpec::new("rm", "Removes.");
        spec.annotations = Annotations { destructive: Some(true), ..Annotations::default() };
        let definition = ToolDefinition::of(&spec);
        let wire = serde_json::to_value(&definition).unwrap();
        assert_eq!(wire["annotations"], json!({"destructiveHint": true}));
        assert_eq!(serde_json::from_value::<ToolDefinition>(wire).unwrap(), definition);
    }
}
