//! Replies of `generateContent`. A whole reply and one event of a stream are the same thing.

use serde_json::{Map, Value};
use toolwright_core::{DeltaSink, ModelDelta, ModelError, ModelReply, StopReason};

use super::super::assemble::{Assembly, BlockPiece, CallArguments, kept};
use super::super::stop::stop;
use super::super::{Decode, broken, tokens, word};
use crate::error;

pub(crate) struct Decoder {
    assembly: Assembly,
    said: bool,
    complete: bool,
    /// More came behind a reason to end.
    goes_on: bool,
}

impl Decoder {
    pub(crate) fn new(assembly: Assembly) -> Self {
        Decoder { assembly, said: false, complete: false, goes_on: false }
    }

    fn part(&mut self, part: &Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let signature = part.get("thoughtSignature");
        let own = |key: &str, value: &Value| Map::from_iter([(key.to_owned(), value.clone())]);
        if let Some(call) = part.get("functionCall").filter(|call| call.is_object()) {
            let word = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let name = word("name");
            sink(ModelDelta::Call { name: &self.assembly.native_name(&name) });
            if let Some(signature) = signature {
                let opaque = own("callSignature", signature);
                self.assembly.add(BlockPiece::Own { text: String::new(), opaque })?;
            }
            let arguments = CallArguments::Value(call.get("args").cloned().unwrap_or_default());
            let mut beside = kept(part, &["functionCall", "thoughtSignature"]);
            let inside = kept(call, &["id", "name", "args", "partialArgs", "willContinue"]);
            if !inside.is_empty() {
                beside.insert("functionCall".to_owned(), inside.into());
            }
            return self
                .assembly
                .add(BlockPiece::Call { id: word("id"), name, arguments, kept: beside })
                .map(drop);
        }
        let Some(text) = part.get("text").and_then(Value::as_str) else {
            let opaque = own("part", part);
            return self.assembly.add(BlockPiece::Own { text: String::new(), opaque }).map(drop);
        };
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            if !text.is_empty() {
                sink(ModelDelta::Reasoning(text));
            }
            return self.thought(text, part);
        }
        if !text.is_empty() {
            sink(ModelDelta::Text(text));
        }
        self.text(text, signature)
    }

    /// Adds to the text. A signature is for the part it came with, which may be any piece of the text.
    fn text(&mut self, more: &str, signature: Option<&Value>) -> Result<(), ModelError> {
        let of_text = |piece: &BlockPiece| matches!(piece, BlockPiece::Own { opaque, .. } if opaque.contains_key("textSignature"));
        let mut start = 0;
        match self.assembly.pieces.iter_mut().rev().find(|piece| !of_text(piece)) {
            Some(BlockPiece::Text { text, .. }) => {
                start = text.len();
                text.push_str(more);
            }
            _ if more.is_empty() => {}
            _ => drop(self.assembly.add(BlockPiece::text(more))?),
        }
        let Some(signature) = signature else { return Ok(()) };
        let opaque = [
            ("textSignature", signature.clone()),
            ("start", start.into()),
            ("end", (start + more.len()).into()),
        ];
        let opaque = opaque.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        self.assembly.add(BlockPiece::Own { text: String::new(), opaque }).map(drop)
    }

    /// Adds to the last thought, as long as nothing signs either: a signature is for its own part.
    fn thought(&mut self, more: &str, part: &Value) -> Result<(), ModelError> {
        let mut kept = part.as_object().cloned().unwrap_or_default();
        kept.shift_remove("text");
        if !kept.contains_key("thoughtSignature")
            && let Some(BlockPiece::Own { text, opaque }) = self.assembly.pieces.last_mut()
            && let Some(last) = opaque.get_mut("part").and_then(Value::as_object_mut)
            && last.contains_key("thought")
            && !last.contains_key("thoughtSignature")
        {
            text.push_str(more);
            last.extend(kept);
            return Ok(());
        }
        let opaque = Map::from_iter([("part".to_owned(), Value::Object(kept))]);
        self.assembly.add(BlockPiece::Own { text: more.to_owned(), opaque }).map(drop)
    }

    fn count(&mut self, counts: &Value) {
        let usage = &mut self.assembly.usage;
        let count = |path: &str| tokens(counts, path).unwrap_or(0);
        usage.input_tokens = count("/promptTokenCount").saturating_add(count("/toolUsePromptTokenCount"));
        usage.reasoning_tokens = count("/thoughtsTokenCount");
        usage.output_tokens = count("/candidatesTokenCount").saturating_add(usage.reasoning_tokens);
        usage.cache_read_tokens = count("/cachedContentTokenCount");
    }
}

impl Decode for Decoder {
    fn event(&mut self, data: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        if let Some(failed) = data.get("error").filter(|failed| !failed.is_null()) {
            return Err(error::from_event(failed));
        }
        if let Some(counts) = data.get("usageMetadata") {
            self.count(counts);
        }
        if data.pointer("/promptFeedback/blockReason").is_some() {
            self.assembly.stop = Some(StopReason::Refusal);
            self.complete = true;
        }
        let Some(candidate) = data.pointer("/candidates/0") else { return Ok(()) };
        for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
            let says = part.get("text").and_then(Value::as_str) != Some("");
            self.said |= says;
            self.goes_on |= says && self.complete;
            self.part(part, sink)?;
        }
        if let Some(reason) = word(candidate, "/finishReason") {
            let stop = stop(reason).unwrap_or(StopReason::Other);
            if let (StopReason::MalformedCall, Some(wrote)) = (stop, word(candidate, "/finishMessage")) {
                // The text in place of a call. It is not an answer, but the model has to see it to correct
                // it.
                sink(ModelDelta::Reasoning(wrote));
                let opaque = Map::from_iter([("attempt".to_owned(), true.into())]);
                self.assembly.add(BlockPiece::Own { text: wrote.to_owned(), opaque })?;
            }
            self.assembly.stop = Some(stop);
            self.complete = true;
        }
        Ok(())
    }

    fn whole(&mut self, body: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let known = ["candidates", "promptFeedback", "error"].iter().any(|key| body.get(*key).is_some());
        if !known {
            return Err(error::reply("the reply has no `candidates`"));
        }
        self.event(body, sink)?;
        self.complete = true;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        let empty = self.assembly.stop == Some(StopReason::EndTurn) && !self.said;
        self.complete && !self.goes_on && !empty
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, ModelError> {
        if self.complete { self.assembly.finish() } else { Err(broken()) }
    }
}
