//! The vendors' own computer tools. A model that was trained for one is offered it in place of the `computer`
//! tool of a run, and its calls become calls of that tool.
//!
//! Each vendor has a table of its names in a file of its own. Encoders and decoders of the formats know
//! nothing of it: a request is rewritten when it is complete, and a call before it becomes a `ToolCall`.

mod anthropic;
mod gemini;
mod openai;

use serde_json::{Map, Value};
use toolwright_core::{Message, ModelRequest};

use crate::vendor::Vendor;
use crate::wire::{ModelTarget, Wire};

/// The name under which a definition says how large the screen of its computer is.
const EXTRA: &str = "computer";

/// What is kept with a call that came in a vendor's own form.
const KEPT: &str = "computer_call";

/// The tool of a run that stands behind a vendor's own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NativeComputer {
    table: Table,
    /// What the run calls its tool.
    name: String,
    /// The size of its screenshots.
    width: i64,
    height: i64,
}

/// Whose names are used.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Table {
    Anthropic,
    OpenAi,
    Gemini,
}

/// A call as the tool of the run takes it.
#[derive(Debug, PartialEq)]
pub(crate) struct ComputerCall {
    pub(crate) name: String,
    pub(crate) arguments: Value,
    pub(crate) kept: Map<String, Value>,
}

impl NativeComputer {
    /// The computer of a request, where it is wanted and the vendor has a tool for it.
    pub(crate) fn of(vendor: &Vendor, request: &ModelRequest<'_>) -> Option<NativeComputer> {
        if request.options.computer != Some(true) {
            return None;
        }
        let table = match (vendor.name, vendor.wire) {
            ("anthropic", Wire::AnthropicMessages) => Table::Anthropic,
            ("openai", Wire::OpenAiResponses) => Table::OpenAi,
            ("google", Wire::Gemini) => Table::Gemini,
            _ => return None,
        };
        request.tools.iter().find_map(|tool| {
            let size = tool.extras.get(EXTRA)?;
            let side = |name: &str| size.get(name)?.as_i64().filter(|side| (1..=1 << 16).contains(side));
            Some(NativeComputer {
                table,
                name: tool.name.to_string(),
                width: side("width")?,
                height: side("height")?,
            })
        })
    }

    /// What the run calls its tool.
    pub(crate) fn tool(&self) -> &str {
        &self.name
    }

    /// Rewrites a request: the definition, and the calls and results of the conversation so far.
    pub(crate) fn encode(
        &self,
        target: ModelTarget<'_>,
        request: &ModelRequest<'_>,
        wire_name: &str,
        body: &mut Map<String, Value>,
    ) {
        let failed = |id: &str| {
            request.messages.iter().any(|message| match message {
                Message::Tool(result) => {
                    result.is_error() && target.vendor.quirks.ids.to_wire(&result.call_id) == id
                }
                _ => false,
            })
        };
        match self.table {
            Table::Anthropic => anthropic::encode(wire_name, body),
            Table::OpenAi => openai::encode(wire_name, body, failed),
            Table::Gemini => gemini::encode(wire_name, target.model, body, failed),
        }
    }

    /// A call of the vendor's tool as a call of the run's. `None` for calls of other tools.
    pub(crate) fn call(
        &self,
        name: &str,
        arguments: &Value,
        kept: &Map<String, Value>,
    ) -> Option<ComputerCall> {
        let (arguments, kept) = match self.table {
            Table::Anthropic => anthropic::call(name, arguments, kept)?,
            Table::OpenAi => openai::call(kept)?,
            Table::Gemini => gemini::call(name, arguments, kept, (self.width, self.height))?,
        };
        Some(ComputerCall { name: self.name.clone(), arguments, kept })
    }
}

/// An action of the run's tool, from pairs of names and values; absent values are left out.
fn action<const N: usize>(name: &str, fields: [(&str, Option<Value>); N]) -> Value {
    let fields = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object([("action".to_owned(), name.into())].into_iter().chain(fields).collect())
}

/// One action as it is, several as a list.
fn arguments_of(mut actions: Vec<Value>) -> Value {
    match (actions.len(), actions.pop()) {
        (1, Some(one)) => one,
        (_, last) => {
            actions.extend(last);
            Value::Object(Map::from_iter([("actions".to_owned(), actions.into())]))
        }
    }
}

/// Keys of a list as one combination.
fn combination(keys: Option<&Value>) -> Option<Value> {
    let keys = keys?;
    let names: Vec<&str> = match keys {
        Value::String(text) => return Some(text.as_str().into()),
        keys => keys.as_array()?.iter().filter_map(Value::as_str).collect(),
    };
    (!names.is_empty()).then(|| names.join("+").into())
}

/// Notches of a wheel for a distance in pixels, at least one.
fn notches(pixels: i64) -> i64 {
    (pixels.saturating_abs().saturating_add(50) / 100).clamp(1, 100)
}

/// Takes the definition of the run's tool out of a list, and puts the vendor's at its place.
fn replace_definition(tools: &mut [Value], is_ours: impl Fn(&Value) -> bool, native: Value) {
    if let Some(tool) = tools.iter_mut().find(|tool| is_ours(tool)) {
        *tool = native;
    }
}
