//! Replies of the Responses API. A stream's small events are only told; the items of the whole reply at its
//! end make the message, or those that were completed on the way when there are more of them: some servers
//! repeat none at the end.

use serde_json::{Map, Value};
use toolwright_core::{Citation, DeltaSink, ModelDelta, ModelError, ModelReply, StopReason};

use super::super::assemble::{Assembly, BlockPiece, CallArguments, MAX_PIECES, kept, too_many};
use super::super::{Decode, broken, tokens, word};
use crate::error;

pub(crate) struct Decoder {
    assembly: Assembly,
    /// The items that were completed on the way, with their places.
    items: Vec<(Option<u64>, Value)>,
    /// What the message before was: a remark on the way, or the answer.
    phase: Option<String>,
    refused: bool,
    complete: bool,
}

impl Decoder {
    pub(crate) fn new(assembly: Assembly) -> Self {
        Decoder { assembly, items: Vec::new(), phase: None, refused: false, complete: false }
    }

    /// Keeps an item for the end; one that comes twice counts once.
    fn keep(&mut self, index: Option<u64>, item: Value) -> Result<(), ModelError> {
        if !item.is_object() {
            return Ok(());
        }
        let full = self.items.len() >= MAX_PIECES;
        match self.items.iter_mut().find(|(known, _)| index.is_some() && *known == index) {
            Some((_, known)) => *known = item,
            None if full => return Err(too_many()),
            None => self.items.push((index, item)),
        }
        Ok(())
    }

    fn item(&mut self, item: Value) -> Result<(), ModelError> {
        let word = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let piece = match word("type").as_str() {
            "message" => {
                // A model that gets its own messages back without their phase takes remarks for answers.
                let phase = item.get("phase").and_then(Value::as_str).map(str::to_owned);
                if phase != self.phase {
                    let opaque = Map::from_iter([("phase".to_owned(), phase.clone().into())]);
                    self.assembly.add(BlockPiece::Own { text: String::new(), opaque })?;
                    self.phase = phase;
                }
                for part in item.get("content").and_then(Value::as_array).into_iter().flatten() {
                    self.part(part)?;
                }
                return Ok(());
            }
            // What it stands for is known to `computer`.
            "computer_call" if self.assembly.has_computer() => BlockPiece::Call {
                id: word("call_id"),
                name: "computer".to_owned(),
                arguments: CallArguments::Value(Value::Null),
                kept: Map::from_iter([("computer_call".to_owned(), item)]),
            },
            "function_call" => BlockPiece::Call {
                id: word("call_id"),
                name: word("name"),
                arguments: CallArguments::Value(item.get("arguments").cloned().unwrap_or_default()),
                kept: kept(&item, &["type", "id", "call_id", "name", "arguments", "status"]),
            },
            _ => {
                let texts = |key: &str| {
                    let list = item.get(key).and_then(Value::as_array);
                    list.into_iter()
                        .flatten()
                        .filter_map(|part| part.get("text")?.as_str())
                        .collect::<Vec<_>>()
                };
                let text = [texts("summary"), texts("content")].concat().join("\n");
                BlockPiece::Own { text, opaque: Map::from_iter([("item".to_owned(), item)]) }
            }
        };
        self.assembly.add(piece).map(drop)
    }

    fn part(&mut self, part: &Value) -> Result<(), ModelError> {
        if let Some(refusal) = part.get("refusal").and_then(Value::as_str) {
            self.refused = true;
            return self.assembly.text(refusal);
        }
        let Some(text) = part.get("text").and_then(Value::as_str) else { return Ok(()) };
        let annotations = part.get("annotations").and_then(Value::as_array).into_iter().flatten();
        let citations = annotations.filter_map(|note| {
            let word = |key: &str| note.get(key).and_then(Value::as_str).map(str::to_owned);
            Some(Citation { url: word("url")?, title: word("title"), quote: None })
        });
        let (text, citations, kept) = (text.to_owned(), citations.collect(), Map::new());
        self.assembly.add(BlockPiece::Text { text, citations, kept }).map(drop)
    }

    /// The end of a reply: its items, and what it came to; `usual` is the status of one that does not say.
    fn response(&mut self, mut response: Value, usual: &str) -> Result<(), ModelError> {
        if let Some(failed) = response.get("error").filter(|failed| !failed.is_null()) {
            return Err(error::from_event(failed));
        }
        let mut kept = std::mem::take(&mut self.items);
        // One without a place stays where it came.
        kept.sort_by_key(|(index, _)| index.unwrap_or(u64::MAX));
        let items = match response.get_mut("output").map(Value::take) {
            Some(Value::Array(items)) if items.len() >= kept.len() => items,
            _ => kept.into_iter().map(|(_, item)| item).collect(),
        };
        items.into_iter().try_for_each(|item| self.item(item))?;
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        let status = word(&response, "/status").unwrap_or(usual);
        self.assembly.stop = Some(match (status, reason) {
            ("completed", _) | ("", None) => StopReason::EndTurn,
            (_, Some("max_output_tokens")) => StopReason::MaxTokens,
            (_, Some("content_filter")) => StopReason::Refusal,
            ("failed", _) => return Err(error::unavailable("the server reported that the reply failed")),
            _ => StopReason::Other,
        });
        if let Some(counts) = response.get("usage") {
            let usage = &mut self.assembly.usage;
            usage.input_tokens = tokens(counts, "/input_tokens").unwrap_or(0);
            usage.output_tokens = tokens(counts, "/output_tokens").unwrap_or(0);
            usage.cache_read_tokens = tokens(counts, "/input_tokens_details/cached_tokens").unwrap_or(0);
            usage.reasoning_tokens = tokens(counts, "/output_tokens_details/reasoning_tokens").unwrap_or(0);
        }
        self.complete = true;
        Ok(())
    }
}

impl Decode for Decoder {
    fn event(&mut self, mut data: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        let kind = data.get("type").and_then(Value::as_str).unwrap_or_default();
        let delta = data.get("delta").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => sink(ModelDelta::Text(delta)),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                sink(ModelDelta::Reasoning(delta));
            }
            "response.output_item.added" => {
                let name = data.pointer("/item/name").and_then(Value::as_str);
                match (data.pointer("/item/type").and_then(Value::as_str), name) {
                    (Some("function_call"), Some(name)) => {
                        sink(ModelDelta::Call { name: &self.assembly.native_name(name) });
                    }
                    (Some("computer_call"), _) => sink(ModelDelta::Call { name: "computer" }),
                    _ => {}
                }
            }
            "response.output_item.done" => {
                let index = data.get("output_index").and_then(Value::as_u64);
                let item = data.get_mut("item").map(Value::take).unwrap_or_default();
                self.keep(index, item)?;
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let usual = kind.trim_start_matches("response.").to_owned();
                let response = data.get_mut("response").map(Value::take).unwrap_or_default();
                self.response(response, &usual)?;
            }
            "error" => return Err(error::from_event(data.get("error").unwrap_or(&data))),
            "" if data.get("error").is_some() => {
                return Err(error::from_event(data.get("error").unwrap_or(&data)));
            }
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: Value, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        if body.get("output").is_none() && body.get("error").is_none_or(Value::is_null) {
            return Err(error::reply("the reply has no `output`"));
        }
        self.response(body, "")?;
        for piece in &self.assembly.pieces {
            match piece {
                BlockPiece::Text { text, .. } => sink(ModelDelta::Text(text)),
                BlockPiece::Own { text, .. } if !text.is_empty() => sink(ModelDelta::Reasoning(text)),
                BlockPiece::Own { .. } => {}
                BlockPiece::Call { name, .. } => {
                    sink(ModelDelta::Call { name: &self.assembly.native_name(name) })
                }
            }
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn is_over(&self) -> bool {
        self.complete
    }

    fn finish(mut self: Box<Self>) -> Result<ModelReply, ModelError> {
        if !self.complete {
            return Err(broken());
        }
        if self.refused {
            self.assembly.stop = Some(StopReason::Refusal);
        }
        self.assembly.finish()
    }
}
