//! Replies of the Chat Completions API. A whole reply is read as a stream of one chunk.

use serde_json::{Map, Value, json};
use toolwright_core::{DeltaSink, ModelDelta, ModelError, ModelReply, StopReason};

use super::super::assemble::{Assembly, BlockPiece, CallArguments, MAX_PIECES, kept, too_many};
use super::super::stop::stop;
use super::super::{Decode, broken, merge, tokens, word};
use crate::error;

/// The fields in which servers put reasoning as text.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

pub(crate) struct Decoder {
    assembly: Assembly,
    /// The calls so far: the server's number, if it gives one, and the place in the assembly.
    calls: Vec<(Option<u64>, usize)>,
    /// Reasoning so far, under the names of its fields.
    reasoning: Map<String, Value>,
    refused: bool,
    /// It ended with an unknown stop reason.
    unknown: bool,
    said: bool,
    complete: bool,
    /// More came behind a reason to end.
    goes_on: bool,
    over: bool,
}

impl Decoder {
    pub(crate) fn new(assembly: Assembly) -> Self {
        Decoder {
            assembly,
            calls: Vec::new(),
            reasoning: Map::new(),
            refused: false,
            unknown: false,
            said: false,
            complete: false,
            goes_on: false,
            over: false,
        }
    }

    fn chunk(&mut self, chunk: &Value, message: &str, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        if let Some(failed) = chunk.get("error").filter(|failed| !failed.is_null()) {
            return Err(error::from_event(failed));
        }
        let usage = chunk.get("usage").filter(|usage| usage.is_object());
        self.count(usage.or_else(|| chunk.pointer("/x_groq/usage")));
        let choices = chunk.get("choices").and_then(Value::as_array).into_iter().flatten();
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        for choice in choices.filter(first) {
            if let Some(delta) = choice.get(message) {
                let says = says_something(delta);
                self.said |= says;
                self.goes_on |= says && self.complete;
                self.delta(delta, sink)?;
            }
            match word(choice, "/finish_reason") {
                None => {}
                Some("error" | "network_error") => {
                    return Err(error::from_event(choice.get("error").unwrap_or(choice)));
                }
                Some(reason) => {
                    self.unknown = stop(reason).is_none();
                    self.assembly.stop = Some(stop(reason).unwrap_or(StopReason::Other));
                    self.complete = true;
                }
            }
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        // Some servers send the same reasoning under both names.
        let told = REASONING.iter().find_map(|key| Some((*key, delta.get(*key)?.as_str()?)));
        if let Some((key, text)) = told {
            reason(&mut self.reasoning, key, text, sink);
        }
        if let Some(details) = delta.get("reasoning_details").and_then(Value::as_array) {
            self.details(details)?;
            if told.is_none() {
                let texts = details.iter().filter_map(|detail| detail.get("text").and_then(Value::as_str));
                texts.filter(|text| !text.is_empty()).for_each(|text| sink(ModelDelta::Reasoning(text)));
            }
        }
        match delta.get("content") {
            Some(Value::String(text)) => self.text(text, sink)?,
            // Mistral's reasoning models send a list of parts.
            Some(Value::Array(parts)) => {
                for part in parts {
                    match (part.get("text").and_then(Value::as_str), part.as_object()) {
                        (Some(text), _) => self.text(text, sink)?,
                        (None, Some(part)) if part.contains_key("thinking") => self.think(part, sink)?,
                        (None, _) => {}
                    }
                }
            }
            _ => {}
        }
        if let Some(text) = delta.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            self.refused = true;
            self.text(text, sink)?;
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call, sink)?;
        }
        // The one call of servers that know no lists of calls.
        if let Some(function) = delta.get("function_call").filter(|function| function.is_object()) {
            self.call(&json!({"index": u64::MAX, "function": function}), sink)?;
        }
        Ok(())
    }

    /// Adds to the text. A message of this format has one, whatever comes between its pieces; only thoughts
    /// part it.
    fn text(&mut self, more: &str, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        if more.is_empty() {
            return Ok(());
        }
        sink(ModelDelta::Text(more));
        let mut since = self
            .assembly
            .pieces
            .iter_mut()
            .rev()
            .take_while(|piece| !matches!(piece, BlockPiece::Own { .. }));
        let known = since.find_map(|piece| match piece {
            BlockPiece::Text { text, .. } => Some(text),
            _ => None,
        });
        match known {
            Some(text) => text.push_str(more),
            None => self.assembly.text(more)?,
        }
        Ok(())
    }

    /// Adds to the part that is reasoning: the texts of a stream join, everything else is kept as it came.
    /// What follows words, calls or a signature is a part of its own.
    fn think(&mut self, part: &Map<String, Value>, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let last = self.assembly.pieces.last_mut().and_then(thought);
        if !last.is_some_and(|(_, chunk)| goes_on(chunk, part)) {
            // Nothing between two pieces of a text does not part them.
            if part.get("thinking") == Some(&json!([])) && !part.contains_key("signature") {
                return Ok(());
            }
            let opaque = Map::from_iter([("chunk".to_owned(), json!({}))]);
            self.assembly.add(BlockPiece::Own { text: String::new(), opaque })?;
        }
        let Some((text, chunk)) = self.assembly.pieces.last_mut().and_then(thought) else { return Ok(()) };
        for (key, value) in part {
            match value {
                Value::Null => {}
                Value::Array(more) if key == "thinking" => {
                    join(chunk, more)?;
                    let texts = more.iter().filter_map(|thought| thought.get("text")?.as_str());
                    for more in texts.filter(|text| !text.is_empty()) {
                        sink(ModelDelta::Reasoning(more));
                        text.push_str(more);
                    }
                }
                _ => drop(chunk.insert(key.clone(), value.clone())),
            }
        }
        Ok(())
    }

    /// Joins the details of reasoning: pieces with the same number and type are parts of one.
    fn details(&mut self, details: &[Value]) -> Result<(), ModelError> {
        let known = self.reasoning.entry("reasoning_details").or_insert_with(|| Value::Array(Vec::new()));
        let Some(known) = known.as_array_mut() else { return Ok(()) };
        for detail in details.iter().filter_map(Value::as_object) {
            let same = |old: &Value| {
                detail.get("index").is_some()
                    && old.get("index") == detail.get("index")
                    && old.get("type") == detail.get("type")
            };
            let full = known.len() >= 4096;
            match known.last_mut().filter(|last| same(last)).and_then(Value::as_object_mut) {
                None if full => return Err(error::reply("the reply has too many reasoning details")),
                None => known.push(Value::Object(detail.clone())),
                Some(last) => {
                    for (key, value) in detail {
                        match (key.as_str(), value.as_str()) {
                            ("text" | "summary" | "data", Some(more)) => append(last, key, more),
                            _ if value.is_null() => {}
                            _ => drop(last.insert(key.clone(), value.clone())),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes a fragment of a call. The first has the id and the name, later ones only more of the arguments;
    /// some servers leave the number out, or give every call the same one.
    fn call(&mut self, call: &Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let index = call.get("index").and_then(Value::as_u64);
        let given_id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = call.get("function").unwrap_or(&Value::Null);
        let given_name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let known = match index {
            Some(_) => self.calls.iter().rev().find(|(number, _)| *number == index),
            None => self.calls.last(),
        };
        let known = known.map(|(_, place)| *place).filter(|place| match self.assembly.pieces.get(*place) {
            // The beginning may come after its first arguments.
            Some(BlockPiece::Call { id, name, .. })
                if index.is_some() && id.is_empty() && name.is_empty() =>
            {
                true
            }
            Some(BlockPiece::Call { id, .. }) => {
                let other_id = !given_id.is_empty() && id != given_id;
                let another = other_id || (index.is_none() && given_id.is_empty());
                given_name.is_empty() || !another
            }
            _ => false,
        });
        let place = match known {
            Some(place) => place,
            None => {
                sink(ModelDelta::Call { name: &self.assembly.native_name(given_name) });
                let arguments = CallArguments::Text(String::new());
                let (id, name, kept) = (given_id.to_owned(), String::new(), Map::new());
                let place = self.assembly.add(BlockPiece::Call { id, name, arguments, kept })?;
                self.calls.push((index, place));
                place
            }
        };
        let piece = self.assembly.pieces.get_mut(place);
        let Some(BlockPiece::Call { id, name, arguments, kept: known }) = piece else { return Ok(()) };
        merge(known, &kept(call, &["index", "id", "type", "function"]));
        if id.is_empty() {
            given_id.clone_into(id);
        }
        if name.is_empty() {
            given_name.clone_into(name);
        }
        match (function.get("arguments"), arguments) {
            (Some(Value::String(more)), CallArguments::Text(text)) => text.push_str(more),
            (Some(whole @ Value::Object(_)), arguments) => *arguments = CallArguments::Value(whole.clone()),
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, counts: Option<&Value>) {
        let Some(counts) = counts else { return };
        let usage = &mut self.assembly.usage;
        let first =
            |paths: &[&str], old: u64| paths.iter().find_map(|path| tokens(counts, path)).unwrap_or(old);
        usage.input_tokens = first(&["/prompt_tokens"], usage.input_tokens);
        usage.output_tokens = first(&["/completion_tokens"], usage.output_tokens);
        let cached = ["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"];
        usage.cache_read_tokens = first(&cached, usage.cache_read_tokens);
        let written = ["/prompt_tokens_details/cache_write_tokens"];
        usage.cache_write_tokens = first(&written, usage.cache_write_tokens);
        let reasoning = ["/completion_tokens_details/reasoning_tokens"];
        usage.reasoning_tokens = first(&reasoning, usage.reasoning_tokens);
    }
}

/// Whether there is anything in a piece of a message but who says it.
fn says_something(delta: &Value) -> bool {
    let fields = delta.as_object().into_iter().flatten().filter(|(name, _)| *name != "role");
    fields.into_iter().any(|(_, value)| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => false,
    })
}

impl Decode for Decoder {
    fn event(&mut self, data: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        self.chunk(&data, "delta", sink)
    }

    fn whole(&mut self, mut body: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        // Here each call is whole, so none is a fragment of another, whatever its id says.
        let calls = body.pointer_mut("/choices/0/message/tool_calls").and_then(Value::as_array_mut);
        for (index, call) in calls.into_iter().flatten().enumerate() {
            if let Some(call) = call.as_object_mut() {
                call.insert("index".to_owned(), index.into());
            }
        }
        self.chunk(&body, "message", sink)?;
        if body.pointer("/choices/0/message").is_none() {
            return Err(error::reply("the reply has no `choices` with a message"));
        }
        self.complete = true;
        Ok(())
    }

    fn ended(&mut self) {
        if !self.complete {
            // It does not say why, so it may have been cut off.
            self.assembly.stop = Some(StopReason::Other);
            self.unknown = true;
        }
        (self.complete, self.over) = (true, true);
    }

    fn is_complete(&self) -> bool {
        let empty = self.assembly.stop == Some(StopReason::EndTurn) && !self.said;
        self.complete && !self.goes_on && !empty
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn finish(mut self: Box<Self>) -> Result<ModelReply, ModelError> {
        if !self.complete {
            return Err(broken());
        }
        // Servers invent words for the end of an answer. Calls that are whole were meant to be made.
        if self.unknown && self.assembly.has_whole_calls(self.over) {
            self.assembly.stop = Some(StopReason::ToolCalls);
        }
        if self.refused {
            self.assembly.stop = Some(StopReason::Refusal);
        }
        if !self.reasoning.is_empty() {
            let fields = std::mem::take(&mut self.reasoning);
            let named = REASONING.iter().find_map(|key| fields.get(*key));
            let detailed = || {
                let details = fields.get("reasoning_details")?.as_array()?.iter();
                let text = |detail: &Value| {
                    Some(detail.get("text").or_else(|| detail.get("summary"))?.as_str()?.to_owned())
                };
                Some(Value::String(details.filter_map(text).collect()))
            };
            let text = named.cloned().or_else(detailed);
            let text = text.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
            let opaque = Map::from_iter([("fields".to_owned(), fields.into())]);
            self.assembly.pieces.insert(0, BlockPiece::Own { text, opaque });
        }
        self.assembly.finish()
    }
}

/// A part that is reasoning: its text, and all of it.
fn thought(piece: &mut BlockPiece) -> Option<(&mut String, &mut Map<String, Value>)> {
    match piece {
        BlockPiece::Own { text, opaque } => Some((text, opaque.get_mut("chunk")?.as_object_mut()?)),
        _ => None,
    }
}

/// Whether more of a thought belongs to this one: what has a signature is whole.
fn goes_on(chunk: &Map<String, Value>, more: &Map<String, Value>) -> bool {
    match chunk.get("signature").and_then(Value::as_str).unwrap_or_default() {
        "" => true,
        signed => more.get("signature").and_then(Value::as_str) == Some(signed),
    }
}

/// Adds to the texts of a thought.
fn join(chunk: &mut Map<String, Value>, more: &[Value]) -> Result<(), ModelError> {
    let known = chunk.entry("thinking").or_insert_with(|| Value::Array(Vec::new()));
    let Some(known) = known.as_array_mut() else { return Ok(()) };
    if known.len() + more.len() > MAX_PIECES {
        return Err(too_many());
    }
    for (at, thought) in more.iter().enumerate() {
        let text = thought.get("text").and_then(Value::as_str);
        let last = known.last_mut().filter(|_| at == 0).and_then(|last| last.get_mut("text"));
        match (text, last) {
            (Some(more), Some(Value::String(last))) => last.push_str(more),
            _ => known.push(thought.clone()),
        }
    }
    Ok(())
}

/// Adds to reasoning under the name of its field.
fn reason(fields: &mut Map<String, Value>, key: &str, text: &str, sink: DeltaSink<'_>) {
    if !text.is_empty() {
        sink(ModelDelta::Reasoning(text));
        append(fields, key, text);
    }
}

fn append(fields: &mut Map<String, Value>, key: &str, more: &str) {
    match fields.get_mut(key) {
        Some(Value::String(text)) => text.push_str(more),
        _ => drop(fields.insert(key.to_owned(), more.into())),
    }
}
