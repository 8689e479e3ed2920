//! Replies of Converse. A whole reply is read as the stream that would have brought it.

use serde_json::{Map, Value, json};
use toolwright_core::{DeltaSink, ModelDelta, ModelError, ModelReply, StopReason};

use super::super::assemble::{Assembly, BlockPiece, CallArguments, Places, kept};
use super::super::stop::stop;
use super::super::{Decode, broken, never_started, tokens};
use crate::error;

pub(crate) struct Decoder {
    assembly: Assembly,
    places: Places,
    complete: bool,
    over: bool,
}

impl Decoder {
    pub(crate) fn new(assembly: Assembly) -> Self {
        Decoder { assembly, places: Places::default(), complete: false, over: false }
    }

    fn add(&mut self, index: Option<u64>, piece: BlockPiece) -> Result<(), ModelError> {
        let place = self.assembly.add(piece)?;
        self.places.start(index, place);
        Ok(())
    }

    /// The first word about a block. Text and reasoning have none: they start with their first piece.
    fn start(&mut self, index: Option<u64>, start: &Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let Some(call) = start.get("toolUse").filter(|call| call.is_object()) else { return Ok(()) };
        let open = self.places.open(index).and_then(|place| self.assembly.pieces.get(place));
        let given = call.get("toolUseId").and_then(Value::as_str);
        if matches!(open, Some(BlockPiece::Call { id, .. }) if Some(id.as_str()) == given) {
            // The same event once more.
            return Ok(());
        }
        self.call(index, call, CallArguments::Text(String::new()), sink)
    }

    fn call(
        &mut self,
        index: Option<u64>,
        call: &Value,
        arguments: CallArguments,
        sink: DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let word = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = word("name");
        sink(ModelDelta::Call { name: &self.assembly.native_name(&name) });
        let kept = kept(call, &["toolUseId", "name", "input"]);
        self.add(index, BlockPiece::Call { id: word("toolUseId"), name, arguments, kept })
    }

    fn delta(&mut self, index: Option<u64>, delta: &Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        // Text and reasoning have no start: a number that is new is a new block.
        let place = self.places.same(index);
        if let Some(more) = delta.get("text").and_then(Value::as_str) {
            if !more.is_empty() {
                sink(ModelDelta::Text(more));
            }
            match place.and_then(|place| self.assembly.pieces.get_mut(place)) {
                Some(BlockPiece::Text { text, .. }) => text.push_str(more),
                _ => self.add(index, BlockPiece::text(more))?,
            }
        } else if let Some(reasoning) = delta.get("reasoningContent") {
            self.reasoning(index, reasoning, sink)?;
        } else if let Some(more) = delta.pointer("/toolUse/input").and_then(Value::as_str) {
            let place = self.places.find(index);
            match place.and_then(|place| self.assembly.pieces.get_mut(place)) {
                Some(BlockPiece::Call { arguments: CallArguments::Text(text), .. }) => text.push_str(more),
                _ => return Err(never_started(index)),
            }
        }
        Ok(())
    }

    /// Adds to a block of reasoning: text, then a signature, or hidden content.
    fn reasoning(&mut self, index: Option<u64>, more: &Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let known = self.places.same(index).and_then(|place| self.assembly.pieces.get(place));
        if !matches!(known, Some(BlockPiece::Own { .. })) {
            self.add(index, BlockPiece::Own { text: String::new(), opaque: Map::new() })?;
        }
        let place = self.places.same(index);
        let Some(BlockPiece::Own { text, opaque }) =
            place.and_then(|place| self.assembly.pieces.get_mut(place))
        else {
            return Ok(());
        };
        let word = |key: &str| more.get(key).and_then(Value::as_str);
        if let Some(more) = word("text") {
            text.push_str(more);
            if !more.is_empty() {
                sink(ModelDelta::Reasoning(more));
            }
        }
        for key in ["signature", "redactedContent"] {
            let Some(more) = word(key) else { continue };
            match opaque.get_mut(key) {
                Some(Value::String(known)) => known.push_str(more),
                _ => drop(opaque.insert(key.to_owned(), more.into())),
            }
        }
        Ok(())
    }

    /// A whole block.
    fn block(&mut self, index: Option<u64>, mut block: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        if let Some(call) = block.get("toolUse") {
            let arguments = CallArguments::Value(call.get("input").cloned().unwrap_or_default());
            return self.call(index, call, arguments, sink);
        }
        if let Some(reasoning) = block.get("reasoningContent") {
            let reasoning = reasoning.get("reasoningText").unwrap_or(reasoning);
            return self.reasoning(index, reasoning, sink);
        }
        if block.get("text").is_some() {
            return self.delta(index, &block, sink);
        }
        let opaque = Map::from_iter([("block".to_owned(), block.take())]);
        self.add(index, BlockPiece::Own { text: String::new(), opaque })
    }

    fn stopped(&mut self, reason: Option<&Value>) {
        // A missing reason is not an unknown one.
        let reason = reason.and_then(Value::as_str).filter(|reason| !reason.is_empty());
        self.assembly.stop = reason.map(|reason| stop(reason).unwrap_or(StopReason::Other));
        self.complete = true;
    }

    fn count(&mut self, counts: &Value) {
        let count = |path: &str| tokens(counts, path).unwrap_or(0);
        let usage = &mut self.assembly.usage;
        usage.cache_read_tokens = count("/cacheReadInputTokens");
        usage.cache_write_tokens = count("/cacheWriteInputTokens");
        // The API counts what came from the cache apart.
        let cached = usage.cache_read_tokens.saturating_add(usage.cache_write_tokens);
        usage.input_tokens = count("/inputTokens").saturating_add(cached);
        usage.output_tokens = count("/outputTokens");
    }
}

impl Decode for Decoder {
    /// An event is an object with its type as the only key.
    fn event(&mut self, data: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let Some((kind, event)) = data.as_object().and_then(|map| map.iter().next()) else { return Ok(()) };
        let index = event.get("contentBlockIndex").and_then(Value::as_u64);
        let part = |key: &str| event.get(key).unwrap_or(&Value::Null);
        match kind.as_str() {
            "contentBlockStart" => self.start(index, part("start"), sink)?,
            "contentBlockDelta" => self.delta(index, part("delta"), sink)?,
            "contentBlockStop" => self.places.end(index),
            "messageStop" => self.stopped(event.get("stopReason")),
            "metadata" => {
                self.count(part("usage"));
                // It comes last.
                self.over = self.complete;
            }
            // The start of a message, and events this version does not know.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, mut body: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let content = body.pointer_mut("/output/message/content").map(Value::take);
        let Some(Value::Array(blocks)) = content else {
            return Err(error::reply("the reply has no `output` with a message"));
        };
        for (index, block) in blocks.into_iter().enumerate() {
            self.block(Some(index as u64), block, sink)?;
        }
        self.stopped(body.get("stopReason"));
        self.count(body.get("usage").unwrap_or(&Value::Null));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn finish(mut self: Box<Self>) -> Result<ModelReply, ModelError> {
        if !self.complete {
            return Err(broken());
        }
        for piece in &mut self.assembly.pieces {
            if let BlockPiece::Own { text, opaque } = piece
                && !opaque.contains_key("block")
            {
                let mut parts = std::mem::take(opaque);
                let reasoning = match parts.shift_remove("redactedContent") {
                    Some(hidden) => json!({"redactedContent": hidden}),
                    None => {
                        parts.insert("text".to_owned(), text.as_str().into());
                        json!({"reasoningText": parts})
                    }
                };
                opaque.insert("block".to_owned(), json!({"reasoningContent": reasoning}));
            }
        }
        self.assembly.finish()
    }
}
