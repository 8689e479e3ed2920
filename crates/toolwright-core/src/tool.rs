//! The tool contract: what a model is told, how the runtime treats a call, and the call itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::message::ToolCall;
use crate::output::{Content, ToolOutput};

/// A future on the heap, as the object-safe traits here return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something a model can call.
///
/// Most tools are written with [`#[tool]`](macro@crate::tool) or built as a [`ToolDef`](crate::ToolDef); the trait is
/// for those that need more, such as a proxy for tools that live elsewhere.
pub trait Tool: Send + Sync {
    /// What a model is told.
    fn spec(&self) -> &ToolSpec;

    /// How the runtime treats a call. The defaults fit most tools.
    fn settings(&self) -> &ToolSettings {
        &DEFAULT_SETTINGS
    }

    /// Does the work. The arguments have passed the schema and the approver.
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Tells tools apart whatever they are called; only a [`ToolDef`](crate::ToolDef) has such a number.
    #[doc(hidden)]
    fn identity(&self) -> Option<u64> {
        None
    }
}

impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn spec(&self) -> &ToolSpec {
        (**self).spec()
    }

    fn settings(&self) -> &ToolSettings {
        (**self).settings()
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (**self).call(context, arguments)
    }

    fn identity(&self) -> Option<u64> {
        (**self).identity()
    }
}

/// What a model is told about a tool.
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
    /// What a protocol says of the tool beside this, such as the icons an MCP server lists. No model is told, and the fingerprint
    /// does without.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extras: Map<String, Value>,
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
        }
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

/// How the runtime treats calls of a tool. Nothing here is told to a model.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ToolSettings {
    /// Whether calls may run beside others of the same batch; `None` means yes.
    pub parallel: Option<bool>,
    /// The longest a call may take.
    pub timeout: Option<Duration>,
    /// The most bytes of output a model is given; 0 means no bound, `None` the run's default.
    pub max_output: Option<usize>,
    /// Which group the tool belongs to, for choosing tools.
    pub category: Option<Arc<str>>,
    /// True when the tool works inside a sandbox, so that the program's default policy need not ask.
    pub sandboxed: bool,
    /// True when the tool does nothing by itself: it works out values and calls other tools, about each of which is decided
    /// apart. The program's default policy need not ask about it.
    pub delegates: bool,
    /// The result goes to the user as it is, and the turn ends.
    pub return_direct: bool,
    /// The result is never shown to a model again.
    pub confidential: bool,
    /// Whether a person must confirm each call, even one that a policy approves; `None` leaves it to the tool's
    /// [`words`](Self::words) and the policy.
    pub require_confirmation: Option<bool>,
    /// Reads arguments before they are checked, for tools with rules of their own about what fits.
    pub reader: Option<Reader>,
    /// Puts checked arguments into the one form that rules and people decide about and the tool gets: a path without
    /// `..`, for example.
    pub canonical: Option<Canonical>,
    /// Shows a call to an approver.
    pub viewer: Option<Viewer>,
    /// Puts a call into words for people, and says whether it needs their word.
    pub words: Option<Words>,
    /// Rewrites old results of this tool before each model request.
    pub model_input: Option<ModelInput>,
    /// Other names for parameters: `(alias, parameter)`. A model is not told about them.
    pub aliases: Vec<(Arc<str>, Arc<str>)>,
    /// What only the runtime understands, such as the agent behind a handoff.
    pub extension: Option<Arc<dyn std::any::Any + Send + Sync>>,
}

static DEFAULT_SETTINGS: ToolSettings = ToolSettings {
    parallel: None,
    timeout: None,
    max_output: None,
    category: None,
    sandboxed: false,
    delegates: false,
    return_direct: false,
    confidential: false,
    require_confirmation: None,
    reader: None,
    canonical: None,
    viewer: None,
    words: None,
    model_input: None,
    aliases: Vec::new(),
    extension: None,
};

impl ToolSettings {
    /// The arguments with every alias under its parameter's own name. Where the parameter itself is given too, the
    /// alias stays, so that the schema refuses it like any name it does not know.
    pub fn with_real_names(&self, mut arguments: Value) -> Value {
        if let Some(map) = arguments.as_object_mut() {
            for (alias, parameter) in &self.aliases {
                if map.contains_key(&**alias)
                    && !map.contains_key(&**parameter)
                    && let Some(value) = map.shift_remove(&**alias)
                {
                    map.insert(parameter.to_string(), value);
                }
            }
        }
        arguments
    }

    /// Whether calls may run beside others of the same batch.
    pub fn is_parallel(&self) -> bool {
        self.parallel.unwrap_or(true)
    }
}

impl std::fmt::Debug for ToolSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolSettings")
            .field("parallel", &self.parallel)
            .field("timeout", &self.timeout)
            .field("max_output", &self.max_output)
            .field("category", &self.category)
            .field("sandboxed", &self.sandboxed)
            .finish_non_exhaustive()
    }
}

/// Reads the arguments of a call; what it returns is then checked against the schema.
pub type Reader = Arc<dyn Fn(Value) -> Result<Value, ToolError> + Send + Sync>;

/// Puts checked arguments into the form that is decided about and acted on. Their types stay what they are.
pub type Canonical = Arc<dyn Fn(Value) -> Value + Send + Sync>;

/// Makes the view of a call that an approver sees. An error refuses the call under a policy.
pub type Viewer = Arc<dyn Fn(&ToolCall) -> Result<CallView, ToolError> + Send + Sync>;

/// Puts a call into words, from its checked arguments.
pub type Words = Arc<dyn Fn(&Value) -> CallWords + Send + Sync>;

/// A call in words for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallWords {
    /// What is shown while it runs; `None` leaves that to the program.
    pub hint: Option<String>,
    /// What it does, as the object of "may it ...?".
    pub action: Option<String>,
    /// Whether a person must confirm this very call. [`ToolSettings::require_confirmation`] overrules it.
    pub confirm: bool,
}

/// Rewrites an old result: gets which result of this tool it is, counted from 0, and how many of this tool there are.
pub type ModelInput = Arc<dyn Fn(usize, usize, &[Content]) -> Vec<Content> + Send + Sync>;

/// A call as an approver sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallView {
    /// What surrounds the call, for example the page it acts on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ViewContent>,
    /// The call itself; `None` shows the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ViewContent>,
}

/// One part of a [`CallView`]. `{{name}}` in the content stands for the argument of that name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewContent {
    /// A heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How to read the content.
    pub format: ViewFormat,
    /// The content.
    pub content: String,
}

/// How the content of a view is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewFormat {
    /// As it stands.
    Text,
    /// As markdown.
    Markdown,
}

impl CallView {
    /// A view of the call as markdown under a title.
    pub fn markdown(title: impl Into<String>, content: impl Into<String>) -> Self {
        let call =
            ViewContent { title: Some(title.into()), format: ViewFormat::Markdown, content: content.into() };
        CallView { context: None, call: Some(call) }
    }

    /// A view of the call as plain text.
    pub fn text(content: impl Into<String>) -> Self {
        let call = ViewContent { title: None, format: ViewFormat::Text, content: content.into() };
        CallView { context: None, call: Some(call) }
    }

    /// The same view with `{{name}}` replaced by the call's arguments; unknown names stay.
    #[must_use]
    pub fn substitute(mut self, arguments: &Value) -> Self {
        for part in [&mut self.context, &mut self.call].into_iter().flatten() {
            part.content = substitute(&part.content, arguments);
        }
        self
    }
}

fn substitute(content: &str, arguments: &Value) -> String {
    let mut out = String::with_capacity(content.len());
    let mut rest = content;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((name, tail)) = after.split_once("}}") else {
            out.push_str("{{");
            rest = after;
            continue;
        };
        match arguments.get(name.trim()) {
            Some(Value::String(text)) => out.push_str(text),
            Some(value) => out.push_str(&value.to_string()),
            None => out.push_str(&format!("{{{{{name}}}}}")),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
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
        assert_eq!(spec.fingerprint(), first);
        spec.description.push('\u{200b}');
        assert_ne!(spec.fingerprint(), first);
    }

    #[test]
    fn placeholders_in_a_view_stand_for_arguments() {
        let view = CallView::text("run {{cmd}} {{other}} {{n}} {{")
            .substitute(&serde_json::json!({"cmd": "ls", "n": 2}));
        assert_eq!(view.call.unwrap().content, "run ls {{other}} 2 {{");
    }
}
