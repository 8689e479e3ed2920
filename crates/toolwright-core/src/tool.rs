//! The tool contract: the definition models receive, how the runtime treats a call, and the call itself.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::{Content, ToolOutput};
use crate::path::PathParameters;
use crate::prepare::{Arguments, Prepared};
use crate::schema::parameters_and_paths;
use crate::tool_policy::{DEFAULT_POLICY, ToolPolicy};

/// A future on the heap, as the object-safe traits here return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something a model can call.
///
/// Most tools are written with [`#[tool]`](macro@crate::tool) or built as a [`ToolDef`](crate::ToolDef); the
/// trait is for those that need more, such as a proxy for tools that live elsewhere. Behind a pointer, a tool
/// is a [`DynTool`](crate::DynTool).
///
/// ```
/// use serde_json::{Value, json};
/// use toolwright_core::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Toolset};
///
/// struct Clock {
///     spec: ToolSpec,
/// }
///
/// impl Tool for Clock {
///     fn spec(&self) -> &ToolSpec {
///         &self.spec
///     }
///
///     async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolError> {
///         ToolOutput::serialize(&json!({"hour": 12}))
///     }
/// }
///
/// let tools = Toolset::new().with(Clock { spec: ToolSpec::new("clock", "Reads the clock.") })?;
/// assert!(tools.get("clock").is_some());
/// # Ok::<(), toolwright_core::ToolsetError>(())
/// ```
pub trait Tool: Send + Sync {
    /// The definition that models receive.
    fn spec(&self) -> &ToolSpec;

    /// How the runtime treats a call. The defaults fit most tools.
    fn policy(&self) -> &ToolPolicy {
        &DEFAULT_POLICY
    }

    /// Gets a call ready before anybody decides about it: reads the arguments by rules of the tool's own, has
    /// them [checked](Arguments::check), and describes the call for people. It does no I/O, and it
    /// runs again when an approver changes the arguments.
    fn prepare(&self, arguments: Arguments<'_>) -> Result<Prepared, ToolError> {
        arguments.check()
    }

    /// Does the work. The arguments have passed the schema and the approver. Write it as `async fn`.
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Value,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;

    /// The same in a box, for a tool that has its future in one.
    #[doc(hidden)]
    fn call_boxed<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.call(context, arguments))
    }

    /// Rewrites old results of the tool before each model request, where the tool wants that.
    fn result_rewriter(&self) -> Option<&dyn RewriteResults> {
        None
    }

    /// The agent that goes on with the conversation after a call, where the tool hands it over.
    fn handoff(&self) -> Option<&dyn Handoff> {
        None
    }

    /// Tells tools apart whatever they are called; only a [`ToolDef`](crate::ToolDef) has such a number.
    #[doc(hidden)]
    fn identity(&self) -> Option<u64> {
        None
    }
}

/// Rewrites old results of one tool before each model request. Functions of this shape implement it.
pub trait RewriteResults: Send + Sync {
    /// The content of result number `index`, counted from 0, of the `total` results of the tool.
    fn rewrite(&self, index: usize, total: usize, content: &[Content]) -> Vec<Content>;
}

impl<F: Fn(usize, usize, &[Content]) -> Vec<Content> + Send + Sync> RewriteResults for F {
    fn rewrite(&self, index: usize, total: usize, content: &[Content]) -> Vec<Content> {
        self(index, total, content)
    }
}

/// An agent that goes on with a conversation. The runtime that made it knows it by its own type, and runs it.
pub trait Handoff: Any + Send + Sync {
    /// The agent's name.
    fn agent(&self) -> &str;
}

/// The definition of a tool that models receive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name a model calls it by.
    pub name: Arc<str>,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, always of type `object`.
    pub parameters: Value,
    /// JSON Schema of the structured result, when the tool promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints about the tool's effects.
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
    /// What a protocol says of the tool beside this, such as the icons an MCP server lists. No model is told,
    /// and the fingerprint does without.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extras: Map<String, Value>,
    /// Which parameters are paths of the workspace. No model is told, and neither the fingerprint nor a
    /// stored definition has it.
    #[serde(skip)]
    pub paths: PathParameters,
}

impl ToolSpec {
    /// A tool without parameters; set [`parameters`](Self::parameters) for more.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<String>) -> Self {
        ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters: empty_parameters(),
            output_schema: None,
            annotations: Annotations::default(),
            extras: Map::new(),
            paths: PathParameters::default(),
        }
    }

    /// The same tool with parameters that are the fields of a type.
    #[must_use]
    pub fn with_parameters_of<A: JsonSchema>(mut self) -> Self {
        (self.parameters, self.paths) = parameters_and_paths::<A>();
        self
    }

    /// The names of the parameters, in declaration order.
    pub fn parameter_names(&self) -> impl Iterator<Item = &str> {
        self.parameters
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
    }

    /// A hash of everything a model is told: it changes when, and only when, the definition does.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut definition = serde_json::to_value(self).unwrap_or(Value::Null);
        if let Value::Object(members) = &mut definition {
            members.shift_remove("extras");
        }
        Fingerprint::of(&definition)
    }
}

/// The parameters of a tool that takes none.
pub fn empty_parameters() -> Value {
    serde_json::json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false})
}

/// A short hash that identifies a tool's definition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub Arc<str>);

impl Fingerprint {
    /// The hash of a value, whatever the order of its keys.
    pub fn of(value: &Value) -> Self {
        let digest = Sha256::digest(canonical_json(value).as_bytes());
        Fingerprint(digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>().into())
    }
}

/// Compact JSON with sorted keys, so that equal values give equal text.
///
/// ```
/// use toolwright_core::canonical_json;
///
/// assert_eq!(canonical_json(&serde_json::json!({"b": 1, "a": [true, null]})), r#"{"a":[true,null],"b":1}"#);
/// ```
pub fn canonical_json(value: &Value) -> String {
    fn write(value: &Value, out: &mut String) {
        match value {
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write(item, out);
                }
                out.push(']');
            }
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                out.push('{');
                for (index, (key, item)) in entries.into_iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(&Value::String(key.clone()).to_string());
                    out.push(':');
                    write(item, out);
                }
                out.push('}');
            }
            scalar => out.push_str(&scalar.to_string()),
        }
    }
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Hints about what a tool does to the world. `None` means the author did not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotations {
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// May destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Calling it twice is the same as calling it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Reaches things outside the run, such as the internet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl Annotations {
    /// True when the author said nothing.
    pub fn is_empty(&self) -> bool {
        *self == Annotations::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_ignores_key_order_and_sees_every_change() {
        let mut spec = ToolSpec::new("add", "Adds.");
        spec.parameters = serde_json::json!({"type": "object", "properties": {"x": {"type": "integer"}}});
        let first = spec.fingerprint();
        spec.parameters = serde_json::json!({"properties": {"x": {"type": "integer"}}, "type": "object"});
        spec.paths = PathParameters::named(["x"]);
        assert_eq!(spec.fingerprint(), first);
        spec.description.push('\u{200b}');
        assert_ne!(spec.fingerprint(), first);
    }
}
