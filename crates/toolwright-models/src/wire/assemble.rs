//! Putting a reply together from pieces that come in any order and any size.
//!
//! The formats differ in how they name the pieces; what becomes of them is the same for all and is decided
//! here.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolwright_core::schema::{lossy_integer, repeated_key};
use toolwright_core::{
    AssistantMessage, Citation, Content, Message, ModelError, ModelReply, ModelRequest, StopReason, ToolCall,
    Usage,
};

use super::names::{ToolNames, hash};
use super::{check_shapes, tools};
use crate::computer::NativeComputer;
use crate::error;
use crate::vendor::Vendor;

/// The most blocks of one reply.
pub(super) const MAX_PIECES: usize = 4096;

/// The error of a reply with more of them.
pub(super) fn too_many() -> ModelError {
    error::reply(format!("the reply has more than {MAX_PIECES} blocks"))
}

/// One block of a reply.
#[derive(Debug)]
pub(super) enum BlockPiece {
    Text {
        text: String,
        citations: Vec<Citation>,
        kept: Map<String, Value>,
    },
    /// Reasoning, and everything else that goes back as it came.
    Own {
        text: String,
        opaque: Map<String, Value>,
    },
    Call {
        id: String,
        name: String,
        arguments: CallArguments,
        kept: Map<String, Value>,
    },
}

impl BlockPiece {
    pub(super) fn text(text: impl Into<String>) -> Self {
        BlockPiece::Text { text: text.into(), citations: Vec::new(), kept: Map::new() }
    }
}

/// The fields of a block beside the `known` ones. The vendor wants them back with the block, so they are kept
/// as they came; see [`kept_with`](super::turns::kept_with).
pub(super) fn kept(block: &Value, known: &[&str]) -> Map<String, Value> {
    let beside = |(key, value): &(&String, &Value)| !known.contains(&key.as_str()) && !value.is_null();
    let fields = block.as_object().into_iter().flatten().filter(beside);
    fields.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The arguments of a call: text as it comes in, or a value that came whole.
#[derive(Debug)]
pub(super) enum CallArguments {
    Text(String),
    Value(Value),
}

impl CallArguments {
    /// The arguments of a call after which nothing came, in a reply that reached its limit. Text shows by
    /// itself whether it is whole; a value only shows what the server made of it, so it becomes text that is
    /// cut off.
    fn cut_off(&mut self) {
        let text = match self {
            CallArguments::Text(text) | CallArguments::Value(Value::String(text)) => std::mem::take(text),
            CallArguments::Value(Value::Null) => String::new(),
            CallArguments::Value(value) => {
                let mut text = value.to_string();
                text.pop();
                text
            }
        };
        // What does not begin as an object would be read as the first argument.
        let object = text.trim_start().starts_with('{');
        *self = CallArguments::Text(if object { text } else { format!("{{{text}") });
    }

    /// Whether these are surely all arguments of a call.
    fn is_whole(&self) -> bool {
        match self {
            CallArguments::Value(value) => value.is_object(),
            CallArguments::Text(text) => serde_json::from_str::<Map<String, Value>>(text).is_ok(),
        }
    }

    fn is_blank(&self) -> bool {
        matches!(self, CallArguments::Text(text) if text.trim().is_empty())
    }

    /// An object as it is, and text when it is an object in JSON. Other text stays text, because the runtime
    /// reads it leniently and never completes what was cut off.
    fn into_value(self) -> Value {
        match self {
            CallArguments::Value(Value::Null) => Value::Object(Map::new()),
            CallArguments::Value(Value::String(text)) => CallArguments::Text(text).into_value(),
            CallArguments::Value(value) => value,
            CallArguments::Text(text) if text.trim().is_empty() => Value::Object(Map::new()),
            // Reading it would change a number or drop a value; the runtime says so.
            CallArguments::Text(text) if lossy_integer(&text).is_some() || repeated_key(&text).is_some() => {
                Value::String(text)
            }
            CallArguments::Text(text) => match serde_json::from_str::<Map<String, Value>>(&text) {
                Ok(map) => Value::Object(map),
                Err(_) => Value::String(text),
            },
        }
    }
}

/// Which block of a stream is which piece. Servers number their blocks; some do it wrong, or not at all, and
/// then the order in which blocks start tells.
#[derive(Debug, Default)]
pub(super) struct Places {
    started: Vec<Started>,
}

#[derive(Debug)]
struct Started {
    index: Option<u64>,
    place: usize,
    ended: bool,
}

impl Places {
    /// The last block with this number; without a number, the last one.
    fn numbered(&self, index: Option<u64>) -> Option<&Started> {
        self.started.iter().rev().find(|block| index.is_none() || block.index == index)
    }

    /// The piece of an open block.
    pub(super) fn find(&self, index: Option<u64>) -> Option<usize> {
        let nth = || self.started.get(usize::try_from(index?).ok()?);
        self.numbered(index).or_else(nth).map(|block| block.place)
    }

    /// The piece of an open block, if it started under this number.
    pub(super) fn same(&self, index: Option<u64>) -> Option<usize> {
        self.numbered(index).map(|block| block.place)
    }

    /// The piece of a block that started under this number and has not ended.
    pub(super) fn open(&self, index: Option<u64>) -> Option<usize> {
        self.numbered(Some(index?)).filter(|block| !block.ended).map(|block| block.place)
    }

    pub(super) fn start(&mut self, index: Option<u64>, place: usize) {
        self.started.push(Started { index, place, ended: false });
    }

    pub(super) fn end(&mut self, index: Option<u64>) {
        let block = self.started.iter_mut().rev().find(|block| block.index == index);
        if let Some(block) = block {
            block.ended = true;
        }
    }
}

/// A reply in the making.
#[derive(Debug)]
pub(super) struct Assembly {
    vendor: &'static str,
    names: ToolNames,
    /// Makes invented ids differ from turn to turn.
    turn: usize,
    /// The ids of calls in the conversation so far.
    ids: HashSet<Arc<str>>,
    /// The tool behind a vendor's own computer tool.
    computer: Option<NativeComputer>,
    pub(super) pieces: Vec<BlockPiece>,
    pub(super) stop: Option<StopReason>,
    pub(super) usage: Usage,
}

impl Assembly {
    pub(super) fn new(vendor: &Vendor, request: &ModelRequest<'_>) -> Self {
        Assembly {
            vendor: vendor.name,
            names: tools::names(vendor.wire, request),
            turn: request.messages.len(),
            ids: request.messages.iter().flat_map(calls).map(|call| call.id.clone()).collect(),
            computer: NativeComputer::of(vendor, request),
            pieces: Vec::new(),
            stop: None,
            usage: Usage::default(),
        }
    }

    /// Adds a block and says where it is.
    pub(super) fn add(&mut self, piece: BlockPiece) -> Result<usize, ModelError> {
        if self.pieces.len() >= MAX_PIECES {
            return Err(too_many());
        }
        self.pieces.push(piece);
        Ok(self.pieces.len() - 1)
    }

    /// Adds to the last block when it is text, else starts one.
    pub(super) fn text(&mut self, more: &str) -> Result<(), ModelError> {
        match self.pieces.last_mut() {
            Some(BlockPiece::Text { text, .. }) => text.push_str(more),
            _ => drop(self.add(BlockPiece::text(more))?),
        }
        Ok(())
    }

    /// Whether the vendor was offered its own computer tool.
    pub(super) fn has_computer(&self) -> bool {
        self.computer.is_some()
    }

    pub(super) fn native_name(&self, wire: &str) -> String {
        self.names.to_native(wire)
    }

    /// Whether there are calls, and each of them is whole. A call without a word of arguments is one of a
    /// tool that takes none only where the stream `ended` in order.
    pub(super) fn has_whole_calls(&self, ended: bool) -> bool {
        let whole = |arguments: &CallArguments| arguments.is_whole() || (ended && arguments.is_blank());
        let mut calls = self.pieces.iter().filter_map(|piece| match piece {
            BlockPiece::Call { name, arguments, .. } => Some(!name.is_empty() && whole(arguments)),
            _ => None,
        });
        calls.next().is_some_and(|first| first) && calls.all(|whole| whole)
    }

    /// The reply, unless its arguments exceed the limits.
    pub(super) fn finish(self) -> Result<ModelReply, ModelError> {
        check_shapes(self.pieces.iter().filter_map(|piece| match piece {
            BlockPiece::Call {
                arguments: CallArguments::Text(text) | CallArguments::Value(Value::String(text)),
                ..
            } => Some(text.as_str()),
            _ => None,
        }))?;
        let mut message = AssistantMessage::default();
        let mut ids = self.ids;
        let mut pieces = self.pieces;
        let own = |fields: Map<String, Value>| {
            let mut own = Map::from_iter([("from".to_owned(), Value::from(self.vendor))]);
            own.extend(fields);
            Value::Object(own)
        };
        let keep = |kept: Map<String, Value>, call: Option<&str>| {
            let call = call.map(|id| ("call".to_owned(), id.into()));
            let fields = [("kept".to_owned(), kept.into())].into_iter().chain(call);
            Content::Reasoning { text: String::new(), opaque: own(fields.collect()) }
        };
        if matches!(self.stop, Some(StopReason::MaxTokens | StopReason::ContextLength)) {
            let blank =
                |piece: &&mut BlockPiece| matches!(piece, BlockPiece::Text { text, .. } if text.is_empty());
            if let Some(BlockPiece::Call { arguments, .. }) =
                pieces.iter_mut().rev().find(|piece| !blank(piece))
            {
                arguments.cut_off();
            }
        }
        for piece in pieces {
            match piece {
                BlockPiece::Text { text, .. } if text.is_empty() => {}
                BlockPiece::Text { text, citations, kept } => {
                    if !kept.is_empty() {
                        message.content.push(keep(kept, None));
                    }
                    message.content.push(Content::Text { text, citations });
                }
                BlockPiece::Own { text, opaque } => {
                    message.content.push(Content::Reasoning { text, opaque: own(opaque) });
                }
                BlockPiece::Call { id, name, arguments, kept } => {
                    let mut arguments = arguments.into_value();
                    let (mut name, mut kept) = (self.names.to_native(&name), kept);
                    let computer = self.computer.as_ref();
                    match computer.and_then(|computer| computer.call(&name, &arguments, &kept)) {
                        Some(call) => (name, arguments, kept) = (call.name, call.arguments, call.kept),
                        None => arguments = self.names.arguments_to_native(&name, arguments),
                    }
                    let position = message.tool_calls.len();
                    // Some servers give no ids, others the same one twice, in one reply or in each; results
                    // could not be told apart.
                    let id: Arc<str> = if id.is_empty() || ids.contains(id.as_str()) {
                        format!("call_{}", hash(&format!("{} {position} {id} {name}", self.turn), 20)).into()
                    } else {
                        id.into()
                    };
                    ids.insert(id.clone());
                    if !kept.is_empty() {
                        message.content.push(keep(kept, Some(&id)));
                    }
                    message.tool_calls.push(ToolCall::new(id, name, arguments));
                    message.calls_after.push(message.content.len());
                }
            }
        }
        if message.calls_after.iter().all(|before| *before == message.content.len()) {
            message.calls_after.clear();
        }
        let calls = !message.tool_calls.is_empty();
        let stop = match self.stop.unwrap_or_default() {
            StopReason::EndTurn if calls => StopReason::ToolCalls,
            StopReason::ToolCalls if !calls => StopReason::EndTurn,
            other => other,
        };
        Ok(ModelReply { message, stop, usage: self.usage })
    }
}

fn calls(message: &Message) -> &[ToolCall] {
    match message {
        Message::Assistant(message) => &message.tool_calls,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwright_core::{ModelOptions, ToolChoice};

    #[test]
    fn the_last_call_of_a_reply_that_was_cut_off_is_not_taken_for_whole() {
        let options = ModelOptions::default();
        let request =
            ModelRequest { messages: &[], tools: &[], tool_choice: &ToolChoice::Auto, options: &options };
        let text = |text: &str| CallArguments::Text(text.to_owned());
        let reply = |stop, arguments, after: Option<&str>| {
            let mut assembly = Assembly::new(crate::vendor::find("openai-chat").unwrap(), &request);
            let (id, name, kept) = ("1".to_owned(), "wipe".to_owned(), Map::new());
            assembly.add(BlockPiece::Call { id, name, arguments, kept }).unwrap();
            if let Some(after) = after {
                assembly.add(BlockPiece::text(after)).unwrap();
            }
            assembly.stop = Some(stop);
            assembly.finish().unwrap().message.tool_calls.remove(0).arguments
        };
        for stop in [StopReason::MaxTokens, StopReason::ContextLength] {
            // Without its arguments it would be another call.
            assert_eq!(reply(stop, text(""), None), Value::from("{"));
            assert_eq!(reply(stop, text("{\"a\":1"), Some("")), Value::from("{\"a\":1"));
            assert_eq!(reply(stop, text("rm -rf /tm"), None), Value::from("{rm -rf /tm"));
            assert_eq!(reply(stop, CallArguments::Value(json!({"a": 1})), None), Value::from("{\"a\":1"));
            assert_eq!(reply(stop, CallArguments::Value(json!({})), None), Value::from("{"));
            // These are whole for sure: the text is, or something came after.
            assert_eq!(reply(stop, text("{\"a\":1}"), None), json!({"a": 1}));
            assert_eq!(reply(stop, CallArguments::Value(json!({"a": 1})), Some("I")), json!({"a": 1}));
        }
        assert_eq!(reply(StopReason::ToolCalls, text(""), None), json!({}));
        assert_eq!(
            reply(StopReason::ToolCalls, CallArguments::Value(json!({"a": 1})), None),
            json!({"a": 1})
        );
    }

    #[test]
    fn a_number_that_reading_would_change_stays_text() {
        let text = r#"{"id": 123456789012345678901234}"#;
        assert_eq!(CallArguments::Text(text.to_owned()).into_value(), Value::from(text));
        let text = r#"{"id": 12345678901234567890}"#;
        assert_eq!(
            CallArguments::Text(text.to_owned()).into_value(),
            json!({"id": 12_345_678_901_234_567_890_u64})
        );
    }
}
