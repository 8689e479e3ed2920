//! Replies of the Messages API. A whole reply is read as the stream that would have brought it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use toolwright_core::{Citation, DeltaSink, ModelDelta, ModelError, ModelReply, StopReason};

use super::super::assemble::{Assembly, BlockPiece, CallArguments, Places, kept};
use super::super::stop::stop;
use super::super::{Decode, broken, check_shapes, never_started, object, tokens, word};
use crate::error;

pub(crate) struct Decoder {
    assembly: Assembly,
    places: Places,
    /// The input of blocks that are kept as they came, such as calls of server-side tools.
    inputs: HashMap<usize, String>,
    usage: Counts,
    /// The server-side machine on which the model runs code; the next request names it.
    container: Option<String>,
    state: MessageState,
}

/// How far the message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageState {
    /// `message_start` has not arrived.
    Waiting,
    Started,
    /// The stop reason is known.
    Complete,
    /// `message_stop` has arrived.
    Stopped,
    /// `message_stop` arrived without a start: a broken reply.
    Headless,
}

/// The API's own counts; later ones replace earlier ones.
#[derive(Default)]
struct Counts {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Decoder {
    pub(crate) fn new(assembly: Assembly) -> Self {
        Decoder {
            assembly,
            places: Places::default(),
            inputs: HashMap::new(),
            usage: Counts::default(),
            container: None,
            state: MessageState::Waiting,
        }
    }

    fn start_block(
        &mut self,
        index: Option<u64>,
        block: Value,
        sink: DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let word = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let open = self.places.open(index).and_then(|place| self.assembly.pieces.get(place));
        let twice = open.is_some_and(|piece| match (piece, word("type").as_str()) {
            (BlockPiece::Text { .. }, "text") => true,
            (BlockPiece::Call { id, .. }, "tool_use") => *id == word("id"),
            (BlockPiece::Own { opaque, .. }, _) => opaque.get("block") == Some(&block),
            _ => false,
        });
        if twice {
            return Ok(());
        }
        let piece = match word("type").as_str() {
            "text" => {
                let text = word("text");
                tell(&text, ModelDelta::Text, sink);
                let given = block.get("citations").and_then(Value::as_array).into_iter().flatten();
                let citations: Vec<Citation> = given.clone().filter_map(citation).collect();
                let mut kept = kept(&block, &["type", "text"]);
                if given.count() == 0 {
                    kept.shift_remove("citations");
                }
                BlockPiece::Text { text, citations, kept }
            }
            "tool_use" => {
                let name = word("name");
                sink(ModelDelta::Call { name: &self.assembly.native_name(&name) });
                // A stream starts with `{}`, or with nothing, and brings the text of the input later.
                let arguments = match block.get("input") {
                    None | Some(Value::Null) => CallArguments::Text(String::new()),
                    Some(Value::Object(input)) if input.is_empty() => CallArguments::Text(String::new()),
                    Some(input) => CallArguments::Value(input.clone()),
                };
                let kept = kept(&block, &["type", "id", "name", "input"]);
                BlockPiece::Call { id: word("id"), name, arguments, kept }
            }
            _ => {
                let text = word("thinking");
                tell(&text, ModelDelta::Reasoning, sink);
                BlockPiece::Own { text, opaque: Map::from_iter([("block".to_owned(), block)]) }
            }
        };
        let place = self.assembly.add(piece)?;
        self.places.start(index, place);
        Ok(())
    }

    fn delta(&mut self, index: Option<u64>, delta: &Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let word = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        let place = self.places.find(index);
        let Some((place, piece)) = place.and_then(|at| Some((at, self.assembly.pieces.get_mut(at)?))) else {
            return Err(never_started(index));
        };
        match (word("type"), piece) {
            ("text_delta", BlockPiece::Text { text, .. }) => {
                text.push_str(word("text"));
                tell(word("text"), ModelDelta::Text, sink);
            }
            ("citations_delta", BlockPiece::Text { citations, kept, .. }) => {
                let Some(given) = delta.get("citation") else { return Ok(()) };
                citations.extend(citation(given));
                let list = kept.entry("citations").or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().into_iter().for_each(|list| list.push(given.clone()));
            }
            ("input_json_delta", BlockPiece::Call { arguments, .. }) => match arguments {
                CallArguments::Text(text) => text.push_str(word("partial_json")),
                CallArguments::Value(_) => *arguments = CallArguments::Text(word("partial_json").to_owned()),
            },
            ("input_json_delta", BlockPiece::Own { .. }) => {
                self.inputs.entry(place).or_default().push_str(word("partial_json"));
            }
            ("thinking_delta", BlockPiece::Own { text, .. }) => {
                text.push_str(word("thinking"));
                tell(word("thinking"), ModelDelta::Reasoning, sink);
            }
            ("signature_delta", BlockPiece::Own { opaque, .. }) => {
                set(opaque, "signature", word("signature").into())
            }
            // A kind of delta this version does not know, for a block it keeps as it came or cannot keep at
            // all.
            _ => {}
        }
        Ok(())
    }

    fn message_delta(&mut self, data: &Value) {
        if let Some(reason) = word(data, "/delta/stop_reason") {
            self.assembly.stop = Some(stop(reason).unwrap_or(StopReason::Other));
            if self.state == MessageState::Started {
                self.state = MessageState::Complete;
            }
        }
        self.contained(data.pointer("/delta/container"));
        self.count(data.get("usage"));
    }

    fn contained(&mut self, container: Option<&Value>) {
        let id = container.and_then(|container| word(container, "/id")).map(str::to_owned);
        self.container = id.or(self.container.take());
    }

    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let counts = &mut self.usage;
        let update = |count: &mut u64, key: &str| *count = tokens(usage, key).unwrap_or(*count);
        update(&mut counts.input, "/input_tokens");
        update(&mut counts.output, "/output_tokens");
        update(&mut counts.cache_read, "/cache_read_input_tokens");
        update(&mut counts.cache_write, "/cache_creation_input_tokens");
        let reasoning = tokens(usage, "/output_tokens_details/thinking_tokens");
        self.assembly.usage.reasoning_tokens = reasoning.unwrap_or(self.assembly.usage.reasoning_tokens);
    }
}

impl Decode for Decoder {
    fn event(&mut self, mut data: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let index = data.get("index").and_then(Value::as_u64);
        match data.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => {
                if self.state == MessageState::Waiting {
                    self.state = MessageState::Started;
                }
                self.contained(data.pointer("/message/container"));
                self.count(data.pointer("/message/usage"));
            }
            "content_block_start" | "content_block_delta" | "message_delta"
                if self.state == MessageState::Waiting => {}
            "content_block_start" => {
                let block = data.get_mut("content_block").map(Value::take).unwrap_or_default();
                self.start_block(index, block, sink)?;
            }
            "content_block_delta" => {
                let delta = data.get("delta").cloned().unwrap_or_default();
                self.delta(index, &delta, sink)?;
            }
            "content_block_stop" => self.places.end(index),
            "message_delta" => self.message_delta(&data),
            "message_stop" if matches!(self.state, MessageState::Waiting | MessageState::Headless) => {
                self.state = MessageState::Headless;
            }
            "message_stop" => self.state = MessageState::Stopped,
            "error" => return Err(error::from_event(data.get("error").unwrap_or(&data))),
            // llama.cpp reports errors without a type.
            "" if data.get("error").is_some() => {
                return Err(error::from_event(data.get("error").unwrap_or(&data)));
            }
            // Pings, and events this version does not know.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, mut body: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        if let Some(failed) = body.get("error").filter(|failed| !failed.is_null()) {
            return Err(error::from_event(failed));
        }
        let Some(Value::Array(blocks)) = body.get_mut("content").map(Value::take) else {
            return Err(error::reply("the reply has no `content`"));
        };
        for (index, block) in blocks.into_iter().enumerate() {
            self.start_block(Some(index as u64), block, sink)?;
        }
        let delta = json!({"stop_reason": body.get("stop_reason"), "container": body.get("container")});
        self.message_delta(&json!({"delta": delta, "usage": body.get("usage")}));
        self.state = MessageState::Complete;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        !matches!(self.state, MessageState::Waiting | MessageState::Started)
    }

    fn is_over(&self) -> bool {
        matches!(self.state, MessageState::Stopped | MessageState::Headless)
    }

    fn finish(mut self: Box<Self>) -> Result<ModelReply, ModelError> {
        if !matches!(self.state, MessageState::Complete | MessageState::Stopped) {
            return Err(broken());
        }
        check_shapes(self.inputs.values().map(String::as_str))?;
        for (place, input) in std::mem::take(&mut self.inputs) {
            if let Some(BlockPiece::Own { opaque, .. }) = self.assembly.pieces.get_mut(place) {
                set(opaque, "input", serde_json::from_str(&input).unwrap_or_else(|_| json!({})));
            }
        }
        for piece in &mut self.assembly.pieces {
            if let BlockPiece::Own { text, opaque } = piece
                && !text.is_empty()
            {
                set(opaque, "thinking", text.as_str().into());
            }
        }
        if let Some(id) = self.container.take() {
            let opaque = Map::from_iter([("container".to_owned(), id.into())]);
            self.assembly.pieces.insert(0, BlockPiece::Own { text: String::new(), opaque });
        }
        let counts = &self.usage;
        let usage = &mut self.assembly.usage;
        usage.input_tokens =
            counts.input.saturating_add(counts.cache_read).saturating_add(counts.cache_write);
        usage.output_tokens = counts.output;
        usage.cache_read_tokens = counts.cache_read;
        usage.cache_write_tokens = counts.cache_write;
        self.assembly.finish()
    }
}

/// Changes one field of a block that is kept as it came.
fn set(opaque: &mut Map<String, Value>, key: &str, value: Value) {
    let block = opaque.entry("block").or_insert_with(|| Value::Object(object(json!({}))));
    if let Some(block) = block.as_object_mut() {
        block.insert(key.to_owned(), value);
    }
}

fn tell<'a>(text: &'a str, delta: fn(&'a str) -> ModelDelta<'a>, sink: DeltaSink<'_>) {
    if !text.is_empty() {
        sink(delta(text));
    }
}

fn citation(citation: &Value) -> Option<Citation> {
    let word = |key: &str| citation.get(key).and_then(Value::as_str).map(str::to_owned);
    let title = word("title").or_else(|| word("document_title"));
    let url = word("url").or_else(|| word("source")).or_else(|| title.clone())?;
    Some(Citation { url, title, quote: word("cited_text") })
}
