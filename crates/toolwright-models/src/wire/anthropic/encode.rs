//! Requests of the Messages API.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use toolwright_core::{Content, Media, MediaSource, ModelError, ModelRequest, ToolChoice, ToolResult};

use super::super::content::{self, ContentPart};
use super::super::names::ToolNames;
use super::super::turns::{TurnPiece, WireTurn, drop_last_thoughts, kept_with, pieces, turns};
use super::super::{Delivery, ModelTarget, Wire, arguments, object, tools};
use crate::vendor::Vendor;

pub(crate) fn encode(
    target: ModelTarget<'_>,
    request: &ModelRequest<'_>,
    delivery: Delivery,
) -> Result<Map<String, Value>, ModelError> {
    let ModelTarget { vendor, model } = target;
    let names = tools::names(vendor.wire, request);
    let mut system = Vec::new();
    let mut messages = Messages::default();
    // The container of the continued turn; one of an earlier turn may have expired.
    let mut container = None;
    // The sets of tools that calls named; their results name them too.
    let mut toolsets: HashMap<String, Value> = HashMap::new();
    for turn in turns(request.messages) {
        match turn {
            // Instructions further down are accepted by some models only; at the top, by all.
            WireTurn::System(blocks) => system.extend(blocks.iter().filter_map(words)),
            WireTurn::User(blocks) => {
                container = None;
                messages.add("user", blocks.iter().filter_map(|block| block_of(block, vendor)));
            }
            WireTurn::Assistant(message) => {
                container = None;
                let blocks = pieces(&message, vendor.name).into_iter().filter_map(|piece| match piece {
                    TurnPiece::Content { block, kept } => {
                        block_of(block, vendor).map(|block| kept_with(kept, block))
                    }
                    TurnPiece::Own { opaque, .. } => {
                        container = container.take().or_else(|| opaque.get("container").cloned());
                        opaque.get("block").cloned()
                    }
                    TurnPiece::Call { call, kept } => {
                        let toolset = kept.and_then(|kept| kept.get("toolset_name"));
                        toolsets.extend(toolset.map(|name| (call.id.to_string(), name.clone())));
                        let input = arguments::as_object(&call.arguments);
                        let call = json!({
                            "type": "tool_use",
                            "id": vendor.quirks.ids.to_wire(&call.id),
                            "name": names.to_wire(&call.name),
                            "input": names.arguments_to_wire(&call.name, input),
                        });
                        Some(kept_with(kept, call))
                    }
                });
                let mut blocks: Vec<Value> = blocks.collect();
                drop_last_thoughts(&mut blocks, |block| {
                    let kind = block.get("type").and_then(Value::as_str);
                    matches!(kind, Some("thinking" | "redacted_thinking"))
                });
                messages.add("assistant", blocks.into_iter());
            }
            WireTurn::Results(results) => {
                let mut follow = Vec::new();
                let results = results.iter().map(|result| {
                    let mut block = tool_result(result, vendor, &names, &mut follow);
                    let toolset = toolsets.remove(&*result.call_id);
                    block.extend(toolset.map(|name| ("toolset_name".to_owned(), name)));
                    Value::Object(block)
                });
                let mut blocks: Vec<Value> = results.collect();
                // All results come first: anything before or between them is refused.
                blocks.append(&mut follow);
                messages.add("user", blocks.into_iter());
            }
        }
    }
    let options = request.options;
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("max_tokens".to_owned(), options.max_tokens.unwrap_or(vendor.quirks.max_tokens).into());
    if !system.is_empty() {
        body.insert("system".to_owned(), system.into());
    }
    body.extend(container.map(|id| ("container".to_owned(), id)));
    body.insert("messages".to_owned(), messages.0.into_iter().map(Value::Object).collect());
    if !request.tools.is_empty() {
        let tools = tools::definitions(target, request, &names);
        body.insert("tools".to_owned(), tools.into_iter().map(|tool| tool.json).collect());
        let choice = match request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Any => Some(json!({"type": "any"})),
            ToolChoice::None => Some(json!({"type": "none"})),
            ToolChoice::Tool(name) => Some(json!({"type": "tool", "name": names.to_wire(name)})),
        };
        body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    }
    if let Some(temperature) = options.temperature {
        body.insert("temperature".to_owned(), temperature.into());
    }
    if !options.stop.is_empty() {
        body.insert("stop_sequences".to_owned(), options.stop.clone().into());
    }
    if delivery == Delivery::Stream {
        body.insert("stream".to_owned(), true.into());
    }
    Ok(body)
}

/// Messages whose roles alternate: blocks of the same role join one message.
#[derive(Default)]
struct Messages(Vec<Map<String, Value>>);

impl Messages {
    fn add(&mut self, role: &str, blocks: impl Iterator<Item = Value>) {
        let mut blocks: Vec<Value> = blocks.collect();
        let last = self.0.last_mut().filter(|last| last.get("role").and_then(Value::as_str) == Some(role));
        match last.and_then(|last| last.get_mut("content")).and_then(Value::as_array_mut) {
            Some(content) => content.append(&mut blocks),
            None if blocks.is_empty() && role == "assistant" => {}
            None => {
                if blocks.is_empty() {
                    blocks.push(text("(nothing was said)"));
                }
                self.0.push(object(json!({"role": role, "content": blocks})));
            }
        }
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A text block; blank ones are refused by the API and say nothing.
fn words(block: &Content) -> Option<Value> {
    content::in_words(block).filter(|words| !words.trim().is_empty()).map(|words| text(&words))
}

fn block_of(block: &Content, vendor: &Vendor) -> Option<Value> {
    native(block, vendor).or_else(|| words(block))
}

/// The block of media that the API takes.
fn native(block: &Content, vendor: &Vendor) -> Option<Value> {
    let kind = content::kind(block)?;
    if !vendor.quirks.media.contains(&kind) {
        return None;
    }
    match block {
        Content::Image(media) if content::common_image(media) => {
            let source = match &media.source {
                MediaSource::Url(url) => json!({"type": "url", "url": url}),
                MediaSource::Data(data) => {
                    json!({"type": "base64", "media_type": media.mime_type, "data": data})
                }
            };
            Some(json!({"type": "image", "source": source}))
        }
        Content::Document(media) => document(media),
        _ => None,
    }
}

fn document(media: &Media) -> Option<Value> {
    let source = match &media.source {
        MediaSource::Url(url) => json!({"type": "url", "url": url}),
        MediaSource::Data(data) if media.mime_type == "application/pdf" => {
            json!({"type": "base64", "media_type": "application/pdf", "data": data})
        }
        MediaSource::Data(_) => {
            let unnamed = Media { name: None, ..media.clone() };
            json!({"type": "text", "media_type": "text/plain", "data": unnamed.as_text()?})
        }
    };
    let mut block = object(json!({"type": "document", "source": source}));
    if let Some(name) = &media.name {
        block.insert("title".to_owned(), name.as_str().into());
    }
    Some(Value::Object(block))
}

fn tool_result(
    result: &ToolResult,
    vendor: &Vendor,
    names: &ToolNames,
    follow: &mut Vec<Value>,
) -> Map<String, Value> {
    let sorted = content::sort(Wire::AnthropicMessages, result, |block, _| native(block, vendor).is_some());
    let mut blocks: Vec<Value> = sorted
        .inside
        .into_iter()
        .filter_map(|part| match part {
            ContentPart::Text(words) => (!words.trim().is_empty()).then(|| text(&words)),
            ContentPart::Json(value) => Some(text(&value.to_string())),
            ContentPart::Media(block) => native(block, vendor),
        })
        .collect();
    blocks.extend(content::notes(result).iter().map(|note| text(note)));
    let id = vendor.quirks.ids.to_wire(&result.call_id);
    if !sorted.follow.is_empty() {
        follow.push(text(&content::tag(&names.to_wire(&result.name), &id)));
        follow.extend(sorted.follow.iter().filter_map(|block| native(block, vendor)));
    }
    let mut block = object(json!({"type": "tool_result", "tool_use_id": id}));
    if !blocks.is_empty() {
        block.insert("content".to_owned(), blocks.into());
    }
    if result.is_error() {
        block.insert("is_error".to_owned(), true.into());
    }
    block
}
