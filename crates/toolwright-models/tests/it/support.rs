//! What the tests share.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use toolwright_core::{Message, ModelOptions, ModelRequest, ToolChoice, ToolSpec};
use toolwright_models::aws::event_stream::crc32;
use toolwright_models::vendor::{Vendor, find};
use toolwright_models::wire::ModelTarget;

/// The vendor that stands for each wire format, and the folder of the format's data.
pub(crate) const FORMATS: [(&str, &str); 6] = [
    ("anthropic", "anthropic"),
    ("openai-chat", "openai_chat"),
    ("openai", "openai_responses"),
    ("google", "gemini"),
    ("bedrock", "bedrock_converse"),
    ("bedrock-invoke", "bedrock_invoke"),
];

/// A file of the repository.
pub(crate) fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

pub(crate) fn json(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file(path)).unwrap()).unwrap()
}

pub(crate) fn vendor(name: &str) -> &'static Vendor {
    find(name).unwrap()
}

pub(crate) fn target(name: &str) -> ModelTarget<'static> {
    // On Bedrock and with Gemini it depends on the model what may be sent; these take everything.
    let model = match name {
        "bedrock" => "amazon.nova-2-omni-v1:0",
        "google" => "gemini-3-pro-preview",
        _ => "m",
    };
    ModelTarget { vendor: vendor(name), model }
}

/// The bytes of a stream that brings these events to that vendor's client.
pub(crate) fn stream_bytes(name: &str, events: &[Value]) -> Vec<u8> {
    let sse = |data: &Value| match (data.as_str(), data.get("type").and_then(Value::as_str)) {
        (Some(text), _) => format!("data: {text}\n\n").into_bytes(),
        (None, Some(kind)) => format!("event: {kind}\ndata: {data}\n\n").into_bytes(),
        (None, None) => format!("data: {data}\n\n").into_bytes(),
    };
    let frame = |event: &Value| match name {
        "bedrock-invoke" => {
            let bytes = STANDARD.encode(event.to_string());
            frame("event", ":event-type", "chunk", &serde_json::json!({"bytes": bytes, "p": "abc"}))
        }
        _ => {
            let (kind, event) = event.as_object().unwrap().iter().next().unwrap();
            match kind.ends_with("Exception") {
                true => frame("exception", ":exception-type", kind, event),
                false => frame("event", ":event-type", kind, event),
            }
        }
    };
    events
        .iter()
        .flat_map(|event| if name.starts_with("bedrock") { frame(event) } else { sse(event) })
        .collect()
}

/// One frame of Amazon's event stream.
fn frame(message: &str, which: &str, kind: &str, payload: &Value) -> Vec<u8> {
    let header = |name: &str, value: &str| {
        let (name_length, length) = (u8::try_from(name.len()).unwrap(), u16::try_from(value.len()).unwrap());
        [&[name_length], name.as_bytes(), &[7], &length.to_be_bytes(), value.as_bytes()].concat()
    };
    let headers = [header(which, kind), header(":message-type", message)].concat();
    let payload = payload.to_string();
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut bytes = [total, u32::try_from(headers.len()).unwrap()].map(u32::to_be_bytes).concat();
    bytes.extend(crc32(&bytes).to_be_bytes());
    bytes.extend(headers);
    bytes.extend(payload.as_bytes());
    bytes.extend(crc32(&bytes).to_be_bytes());
    bytes
}

/// A request that owns what it is made of.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    #[serde(default)]
    pub(crate) tools: Vec<ToolSpec>,
    #[serde(default)]
    pub(crate) tool_choice: ToolChoice,
    #[serde(default)]
    pub(crate) options: ModelOptions,
}

impl Conversation {
    pub(crate) fn of(messages: impl IntoIterator<Item = Message>) -> Self {
        Conversation { messages: messages.into_iter().collect(), ..Conversation::default() }
    }

    pub(crate) fn request(&self) -> ModelRequest<'_> {
        ModelRequest {
            messages: &self.messages,
            tools: &self.tools,
            tool_choice: &self.tool_choice,
            options: &self.options,
        }
    }
}

/// Compares `got` with a file, or writes the file when `TOOLWRIGHT_BLESS` is set.
pub(crate) fn matches_file(path: &str, got: &str) {
    let path = file(path);
    if std::env::var_os("TOOLWRIGHT_BLESS").is_some() {
        std::fs::write(&path, got).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(wanted == got, "{} is out of date; run the tests with TOOLWRIGHT_BLESS=1", path.display());
}
