//! The words of MCP: revisions, methods, and the shapes of what crosses the wire.
//!
//! Two eras share them. Up to 2025-11-25 a session begins with `initialize`; from 2026-07-28 on every request carries
//! its revision and the client's capabilities in `_meta`, and every result says what type it has.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use toolwright_core::{Annotations, ToolSpec};

/// The revisions that begin with `initialize`, oldest first.
pub const SESSION_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The newest revision that begins with `initialize`.
pub const LATEST_SESSION_VERSION: &str = "2025-11-25";

/// The revision without sessions.
pub const STATELESS_VERSION: &str = "2026-07-28";

pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const CLIENT_CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// The least important log messages a request wants.
pub(crate) const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
/// Which stream a notification belongs to.
pub(crate) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
/// The name of the tasks extension.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The key of a parameter's schema that names the header its value is repeated in.
pub(crate) const PARAMETER_HEADER: &str = "x-mcp-header";
/// Facts beside the content, which MCP has no place for.
pub(crate) const METADATA_KEY: &str = "toolwright/metadata";
/// Where a text comes from, which MCP has no place for.
pub(crate) const CITATIONS_KEY: &str = "toolwright/citations";

/// Who speaks: the name and version a client or server gives itself. It is not verified by anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Implementation {
    /// The name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The version.
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl Implementation {
    /// A name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Implementation { name: name.into(), version: version.into(), title: None }
    }

    /// This library.
    pub(crate) fn ours() -> Self {
        Implementation::new("toolwright", env!("CARGO_PKG_VERSION"))
    }
}

/// A tool as a server lists it. Schemas are kept whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// The name to call it by.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the server says of the tool's effects; nobody checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Hints>,
    /// Pictures of it, for clients that show tools to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Value>,
    /// What the server says for programs that know it.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// What a server says of a tool's effects.
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
    /// What a server tells of one of our tools. A result that is not an object is wrapped as `{"result": ...}`, because
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

/// MCP wants `type: object` said at the root.
fn object_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(members) if members.contains_key("type") => schema.clone(),
        Value::Object(members) => {
            let mut said = Map::from_iter([("type".to_owned(), json!("object"))]);
            said.extend(members.clone());
            said.into()
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

/// The answer to `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResult {
    pub(crate) protocol_version: String,
    #[serde(default)]
    pub(crate) capabilities: Value,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) server_info: Implementation,
    #[serde(default)]
    pub(crate) instructions: Option<String>,
}

/// The answer to `server/discover`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiscoverResult {
    pub(crate) supported_versions: Vec<String>,
    #[serde(default)]
    pub(crate) capabilities: Value,
    #[serde(default)]
    pub(crate) instructions: Option<String>,
    #[serde(default, rename = "_meta")]
    pub(crate) meta: Value,
}

/// The answer to `tools/call`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallResult {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) content: Vec<Value>,
    #[serde(default)]
    pub(crate) structured_content: Option<Value>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) is_error: bool,
    #[serde(default)]
    pub(crate) result_type: Option<String>,
    #[serde(default, rename = "_meta", deserialize_with = "or_default")]
    pub(crate) meta: Map<String, Value>,
}

/// Reads `null` as if it were not there: many languages write what is not set so.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_schema_that_is_no_object_is_wrapped_with_its_references_intact() {
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
    fn a_definition_survives_the_wire() {
        let mut spec = ToolSpec::new("rm", "Removes.");
        spec.annotations = Annotations { destructive: Some(true), ..Annotations::default() };
        let definition = ToolDefinition::of(&spec);
        let wire = serde_json::to_value(&definition).unwrap();
        assert_eq!(wire["annotations"], json!({"destructiveHint": true}));
        assert_eq!(serde_json::from_value::<ToolDefinition>(wire).unwrap(), definition);
    }
}
