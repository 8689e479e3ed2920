//! Wire formats: how a conversation becomes a vendor's JSON, and how its replies become messages again.
//!
//! There are few formats and many vendors; what a vendor does differently is data in `vendor`. Each format
//! has one decoder, which whole replies and streams share. Sending bytes belongs to `http`.

mod anthropic;
mod arguments;
mod assemble;
mod bedrock;
mod cache;
pub mod content;
mod gemini;
pub(crate) mod names;
mod openai_chat;
mod openai_responses;
mod stop;
mod tools;
mod turns;

pub use tools::{Definition, define};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use toolwright_core::{DeltaSink, JsonShape, ModelError, ModelReply, ModelRequest};
use toolwright_net::{SseEvent, SseReader};

use crate::aws::event_stream::{EventFrame, EventStreamReader};
use crate::computer::NativeComputer;
use crate::error;
use crate::vendor::Vendor;

/// A vendor-independent shape of requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Anthropic's Messages API.
    AnthropicMessages,
    /// OpenAI's Chat Completions API, which most servers speak.
    OpenAiChat,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Google's `generateContent`.
    Gemini,
    /// Amazon Bedrock's Converse.
    BedrockConverse,
    /// Amazon Bedrock's InvokeModel, for Claude.
    BedrockInvoke,
}

/// Whether the answer comes at once or piece by piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// One JSON document.
    Whole,
    /// Events, one after the other.
    Stream,
}

/// Which model of which vendor a request is for.
#[derive(Debug, Clone, Copy)]
pub struct ModelTarget<'a> {
    /// The vendor.
    pub vendor: &'a Vendor,
    /// The model, as the vendor calls it.
    pub model: &'a str,
}

impl Wire {
    /// All formats.
    pub const ALL: [Wire; 6] = [
        Wire::AnthropicMessages,
        Wire::OpenAiChat,
        Wire::OpenAiResponses,
        Wire::Gemini,
        Wire::BedrockConverse,
        Wire::BedrockInvoke,
    ];

    /// The name people know it by.
    pub fn title(self) -> &'static str {
        match self {
            Wire::AnthropicMessages => "Anthropic Messages",
            Wire::OpenAiChat => "OpenAI Chat Completions",
            Wire::OpenAiResponses => "OpenAI Responses",
            Wire::Gemini => "Gemini generateContent",
            Wire::BedrockConverse => "Bedrock Converse",
            Wire::BedrockInvoke => "Bedrock InvokeModel (Claude)",
        }
    }

    /// The address of a request, after the vendor's base address.
    pub fn path(self, model: &str, delivery: Delivery) -> String {
        match (self, delivery) {
            (Wire::AnthropicMessages, _) => "/v1/messages".to_owned(),
            (Wire::OpenAiChat, _) => "/chat/completions".to_owned(),
            (Wire::OpenAiResponses, _) => "/responses".to_owned(),
            (Wire::Gemini, Delivery::Whole) => format!("/models/{}:generateContent", segment(model)),
            (Wire::Gemini, Delivery::Stream) => {
                format!("/models/{}:streamGenerateContent?alt=sse", segment(model))
            }
            (Wire::BedrockConverse, Delivery::Whole) => format!("/model/{}/converse", segment(model)),
            (Wire::BedrockConverse, Delivery::Stream) => format!("/model/{}/converse-stream", segment(model)),
            (Wire::BedrockInvoke, Delivery::Whole) => format!("/model/{}/invoke", segment(model)),
            (Wire::BedrockInvoke, Delivery::Stream) => {
                format!("/model/{}/invoke-with-response-stream", segment(model))
            }
        }
    }

    /// The body of a request.
    pub fn encode(
        self,
        target: ModelTarget<'_>,
        request: &ModelRequest<'_>,
        delivery: Delivery,
    ) -> Result<Value, ModelError> {
        let mut body = match self {
            Wire::AnthropicMessages => anthropic::encode(target, request, delivery),
            Wire::OpenAiChat => openai_chat::encode(target, request, delivery),
            Wire::OpenAiResponses => openai_responses::encode(target, request, delivery),
            Wire::Gemini => gemini::encode(target, request),
            Wire::BedrockConverse => bedrock::encode(target, request),
            Wire::BedrockInvoke => bedrock::encode_invoke(target, request),
        }?;
        if let Some(computer) = NativeComputer::of(target.vendor, request) {
            let name = tools::names(self, request).to_wire(computer.tool());
            computer.encode(target, request, &name, &mut body);
        }
        if let Some(schema) = &request.options.response_schema {
            merge(&mut body, &tools::respond_with(target.vendor, schema)?);
        }
        cache::mark(target, request, &mut body);
        add(&mut body, &request.options.extra);
        Ok(Value::Object(body))
    }

    /// The address and body of a request that only counts what `request` would read; `None` where there is
    /// none.
    pub fn count(
        self,
        target: ModelTarget<'_>,
        request: &ModelRequest<'_>,
    ) -> Result<Option<(String, Value)>, ModelError> {
        let mut body = match self.encode(target, request, Delivery::Whole)? {
            Value::Object(body) => body,
            _ => return Ok(None),
        };
        let model = segment(target.model);
        let only = |body: &mut Map<String, Value>, kept: &[&str]| {
            body.retain(|key, _| kept.contains(&key.as_str()));
            Value::Object(std::mem::take(body))
        };
        Ok(Some(match self {
            Wire::AnthropicMessages => {
                let kept =
                    ["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"];
                ("/v1/messages/count_tokens".to_owned(), only(&mut body, &kept))
            }
            Wire::OpenAiResponses => {
                let kept = ["model", "input", "tools", "tool_choice", "text", "reasoning"];
                ("/responses/input_tokens".to_owned(), only(&mut body, &kept))
            }
            Wire::Gemini => {
                body.insert("model".to_owned(), format!("models/{}", target.model).into());
                (format!("/models/{model}:countTokens"), serde_json::json!({"generateContentRequest": body}))
            }
            Wire::BedrockConverse => {
                let kept = ["messages", "system", "toolConfig", "additionalModelRequestFields"];
                let body = only(&mut body, &kept);
                (format!("/model/{model}/count-tokens"), serde_json::json!({"input": {"converse": body}}))
            }
            Wire::BedrockInvoke => {
                let body = STANDARD.encode(Value::Object(body).to_string());
                let body = serde_json::json!({"input": {"invokeModel": {"body": body}}});
                (format!("/model/{model}/count-tokens"), body)
            }
            Wire::OpenAiChat => return Ok(None),
        }))
    }

    /// What reads the reply to `request`.
    pub fn decoder(self, target: ModelTarget<'_>, request: &ModelRequest<'_>) -> Decoder {
        let assembly = assemble::Assembly::new(target.vendor, request);
        let format: Box<dyn Decode> = match self {
            Wire::AnthropicMessages | Wire::BedrockInvoke => Box::new(anthropic::Decoder::new(assembly)),
            Wire::OpenAiChat => Box::new(openai_chat::Decoder::new(assembly)),
            Wire::OpenAiResponses => Box::new(openai_responses::Decoder::new(assembly)),
            Wire::Gemini => Box::new(gemini::Decoder::new(assembly)),
            Wire::BedrockConverse => Box::new(bedrock::Decoder::new(assembly)),
        };
        Decoder { wire: self, format }
    }

    /// What takes the bytes of a stream apart; events of more than `max_event` bytes are refused.
    pub fn reader(self, max_event: usize) -> FrameReader {
        match self {
            Wire::BedrockConverse | Wire::BedrockInvoke => {
                FrameReader::Frames(EventStreamReader::new(max_event))
            }
            _ => FrameReader::Lines(SseReader::new(max_event)),
        }
    }
}

/// Takes the bytes of a stream apart.
#[derive(Debug)]
pub enum FrameReader {
    /// Server-sent events.
    Lines(SseReader),
    /// Amazon's frames.
    Frames(EventStreamReader),
}

impl FrameReader {
    /// Takes the next bytes and gives the events they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, ModelError> {
        match self {
            FrameReader::Lines(reader) => reader.push(bytes).map_err(|cause| error::reply(cause.to_string())),
            FrameReader::Frames(reader) => {
                reader.push(bytes)?.into_iter().map(EventFrame::into_event).collect()
            }
        }
    }
}

/// Reads one reply, whole or streamed.
pub struct Decoder {
    wire: Wire,
    format: Box<dyn Decode>,
}

impl Decoder {
    /// Takes one event of a stream.
    pub fn event(&mut self, event: &SseEvent, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        if event.data.trim() == "[DONE]" {
            self.format.ended();
            return Ok(());
        }
        // A sign of life.
        if event.data.trim().is_empty() {
            return Ok(());
        }
        check_shape(event.data.as_bytes())?;
        let data: Value = serde_json::from_str(&event.data).map_err(|cause| {
            error::reply("the stream holds something that is not JSON").with_source(cause)
        })?;
        self.format.event(data, sink)
    }

    /// Takes a whole reply.
    pub fn body(&mut self, body: &[u8], sink: DeltaSink<'_>) -> Result<(), ModelError> {
        check_shape(body)?;
        let body: Value = serde_json::from_slice(body).map_err(|cause| {
            let start = error::shown(&String::from_utf8_lossy(body.get(..80).unwrap_or(body)), &[]);
            error::reply(format!("the reply is not JSON; it starts with {start:?}")).with_source(cause)
        })?;
        self.format.whole(body, sink)
    }

    /// True when the reply is whole; what may still come says what it cost.
    pub(crate) fn is_complete(&self) -> bool {
        self.format.is_complete()
    }

    /// True when the stream has said that nothing more will come, even if the connection stays open.
    pub fn is_over(&self) -> bool {
        self.format.is_over()
    }

    /// The reply. A stream that broke off is an error, never a shorter reply.
    pub fn finish(self) -> Result<ModelReply, ModelError> {
        self.format.finish()
    }

    /// Takes a whole stream that is already here, for recorded replies.
    pub fn stream(mut self, bytes: &[u8], sink: DeltaSink<'_>) -> Result<ModelReply, ModelError> {
        let mut reader = self.wire.reader(bytes.len().max(1));
        for event in reader.push(bytes)? {
            self.event(&event, sink)?;
        }
        self.finish()
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

/// What each format knows about its replies.
trait Decode: Send {
    /// One event of a stream.
    fn event(&mut self, data: Value, sink: DeltaSink<'_>) -> Result<(), ModelError>;
    /// A whole reply.
    fn whole(&mut self, body: Value, sink: DeltaSink<'_>) -> Result<(), ModelError>;
    /// The stream said that it is over.
    fn ended(&mut self) {}
    /// True when the reply has said why it ended, and that can be believed: some servers say it with every
    /// event, or with empty ones before the first word.
    fn is_complete(&self) -> bool;
    /// True when nothing more will come.
    fn is_over(&self) -> bool {
        false
    }
    /// The reply, if it is complete.
    fn finish(self: Box<Self>) -> Result<ModelReply, ModelError>;
}

/// The most values in one document.
const MOST_VALUES: usize = 500_000;

/// Nothing is built from a document that would take far more memory than it is long.
fn check_shape(document: &[u8]) -> Result<(), ModelError> {
    if document.len() <= MOST_VALUES || JsonShape::of(document).values <= MOST_VALUES {
        return Ok(());
    }
    Err(too_many_values())
}

/// The same for the documents that came as text inside of a reply, all together.
fn check_shapes<'a>(documents: impl Iterator<Item = &'a str> + Clone) -> Result<(), ModelError> {
    let total = |size: fn(&str) -> usize| documents.clone().map(size).fold(0, usize::saturating_add);
    let values = |text: &str| JsonShape::of(text.as_bytes()).values;
    if total(str::len) <= MOST_VALUES || total(values) <= MOST_VALUES {
        Ok(())
    } else {
        Err(too_many_values())
    }
}

fn too_many_values() -> ModelError {
    error::reply(format!("the reply has more than {MOST_VALUES} values"))
}

/// The error of a stream that ended too soon.
fn broken() -> ModelError {
    error::reply("the stream broke off before the reply was complete")
}

/// The error of a stream that continues an unknown block.
fn never_started(index: Option<u64>) -> ModelError {
    let block = index.map_or("a block".to_owned(), |index| format!("block {index}"));
    error::reply(format!("the stream continues {block}, which never started"))
}

/// A word at a place in a reply. Some servers write an empty one where others write none.
fn word<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str).filter(|word| !word.is_empty())
}

/// Puts a caller's own fields into a request: objects are merged, everything else replaces what was there.
fn merge(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        match (body.get_mut(key), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => merge(inner, more),
            _ => drop(body.insert(key.clone(), value.clone())),
        }
    }
}

/// [`merge`], where tools are added to those of the run: a vendor's own stand beside them.
fn add(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        match (body.get_mut(key), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => add(inner, more),
            (Some(Value::Array(own)), Value::Array(more)) if key == "tools" => {
                own.extend(more.iter().cloned())
            }
            _ => drop(body.insert(key.clone(), value.clone())),
        }
    }
}

/// A model's name as one segment of an address.
fn segment(model: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    model.bytes().map(|b| if keep(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// The object in a JSON value, for the literals that are written as objects.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A number of tokens at a place in a reply; absent, null and nonsense count as none.
fn tokens(usage: &Value, path: &str) -> Option<u64> {
    usage.pointer(path).and_then(Value::as_u64)
}
