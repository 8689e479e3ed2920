//! Requests of the Chat Completions API.

use serde_json::{Map, Value, json};
use toolwright_core::{
    AssistantMessage, Content, Detail, Media, MediaSource, ModelError, ModelRequest, ToolChoice, ToolResult,
};

use super::super::content::{self, ContentPart};
use super::super::names::ToolNames;
use super::super::turns::{TurnPiece, WireTurn, drop_last_thoughts, kept_with, pieces, turns};
use super::super::{Delivery, ModelTarget, Wire, arguments, object, tools};
use crate::vendor::{Any, Results, Vendor};

pub(crate) fn encode(
    target: ModelTarget<'_>,
    request: &ModelRequest<'_>,
    delivery: Delivery,
) -> Result<Map<String, Value>, ModelError> {
    let ModelTarget { vendor, model } = target;
    let names = ToolNames::new(request);
    let mut messages = Messages::default();
    if let Some(words) = tools::told_schema(vendor, request.options) {
        messages.add(json!({"role": "system", "content": words}));
    }
    for turn in turns(request.messages) {
        match turn {
            WireTurn::System(blocks) => {
                let words: Vec<_> = blocks.iter().filter_map(content::in_words).collect();
                messages.add(json!({"role": "system", "content": words.join("\n")}));
            }
            WireTurn::User(blocks) => {
                messages.said |= true;
                messages.user.extend(blocks.iter().filter_map(|block| part(block, vendor)));
            }
            WireTurn::Assistant(message) => {
                if let Some(message) = assistant(&message, vendor, &names) {
                    messages.add(message);
                }
            }
            WireTurn::Results(results) => {
                let mut follow = Vec::new();
                for result in &results {
                    messages.add(tool(result, vendor, &names, &mut follow));
                }
                // All results of a batch come first: anything between them is refused.
                messages.said |= !follow.is_empty();
                messages.user.append(&mut follow);
            }
        }
    }
    let messages = messages.finish();
    let options = request.options;
    let mut body = object(json!({"model": model, "messages": messages}));
    if !request.tools.is_empty() {
        let tools = tools::definitions(target, request, &names);
        body.insert("tools".to_owned(), tools.into_iter().map(|tool| tool.json).collect());
        let choice = match (request.tool_choice, vendor.quirks.any) {
            (ToolChoice::Auto, _) => None,
            (ToolChoice::Any, any) => Some(any.word().into()),
            (ToolChoice::None, _) => Some("none".into()),
            // Where naming a function is not honoured, the runtime has left only that function to call.
            (ToolChoice::Tool(_), Any::RequiredOnly) => Some("required".into()),
            (ToolChoice::Tool(name), _) => {
                Some(json!({"type": "function", "function": {"name": names.to_wire(name)}}))
            }
        };
        body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    }
    if let Some(most) = options.max_tokens {
        body.insert(vendor.quirks.max_tokens_field.to_owned(), most.into());
    }
    if let Some(temperature) = options.temperature {
        body.insert("temperature".to_owned(), temperature.into());
    }
    if !options.stop.is_empty() {
        body.insert("stop".to_owned(), options.stop.clone().into());
    }
    if delivery == Delivery::Stream {
        body.insert("stream".to_owned(), true.into());
        if vendor.quirks.stream_usage {
            body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
    }
    Ok(body)
}

/// Messages in which the user never speaks twice in a row: some servers refuse that.
#[derive(Default)]
struct Messages {
    done: Vec<Value>,
    user: Vec<Value>,
    said: bool,
}

impl Messages {
    fn add(&mut self, message: Value) {
        self.flush();
        self.done.push(message);
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.said) {
            let content = one_text(std::mem::take(&mut self.user));
            self.done.push(json!({"role": "user", "content": content}));
        }
    }

    fn finish(mut self) -> Vec<Value> {
        self.flush();
        self.done
    }
}

fn assistant(message: &AssistantMessage, vendor: &Vendor, names: &ToolNames) -> Option<Value> {
    let mut fields = object(json!({"role": "assistant", "content": null}));
    let (mut parts, mut calls) = (Vec::new(), Vec::new());
    for piece in pieces(message, vendor.name) {
        match piece {
            TurnPiece::Content { block, .. } => {
                parts.extend(content::in_words(block).map(|words| text(&words)))
            }
            TurnPiece::Own { opaque, .. } => {
                let own = opaque.get("fields").and_then(Value::as_object);
                fields.extend(own.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
                parts.extend(opaque.get("chunk").cloned());
            }
            TurnPiece::Call { call, kept } => {
                let (name, arguments) = (names.to_wire(&call.name), arguments::as_text(&call.arguments));
                let call = json!({
                    "id": vendor.quirks.ids.to_wire(&call.id),
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                });
                calls.push(kept_with(kept, call));
            }
        }
    }
    if calls.is_empty() {
        drop_last_thoughts(&mut parts, |part| part.get("thinking").is_some());
    }
    if parts.is_empty() && calls.is_empty() {
        return None;
    }
    if !parts.is_empty() {
        fields.insert("content".to_owned(), one_text(parts));
    }
    if !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), calls.into());
    }
    Some(Value::Object(fields))
}

fn tool(result: &ToolResult, vendor: &Vendor, names: &ToolNames, follow: &mut Vec<Value>) -> Value {
    let beside = !result.metadata.is_empty() && !result.content.is_empty() && result.error.is_none();
    if beside && vendor.quirks.results == Results::Text {
        return explained(result, vendor, names, follow);
    }
    let sorted = content::sort(Wire::OpenAiChat, result, |block, _| media_part(block, vendor).is_some());
    let words = sorted.inside.into_iter().map(|part| match part {
        ContentPart::Text(text) => text.into_owned(),
        ContentPart::Json(value) => value.to_string(),
        ContentPart::Media(block) => content::in_words(block).unwrap_or_default().into_owned(),
    });
    let words: Vec<String> = words.chain(content::notes(result)).collect();
    let words = words.join("\n");
    let id = vendor.quirks.ids.to_wire(&result.call_id);
    let name = names.to_wire(&result.name);
    let mut media = sorted.follow.into_iter().filter_map(|block| media_part(block, vendor)).peekable();
    let mut content = Value::String(words);
    if media.peek().is_some() {
        match vendor.quirks.results {
            Results::Text => {
                follow.push(text(&content::tag(&name, &id)));
                follow.extend(media);
            }
            Results::Parts => {
                let words = text(content.as_str().unwrap_or_default());
                content = std::iter::once(words).chain(media).collect();
            }
        }
    }
    let mut message = object(json!({"role": "tool", "tool_call_id": id, "content": content}));
    if vendor.quirks.named_results {
        message.insert("name".to_owned(), name.into());
    }
    Value::Object(message)
}

/// A result whose tool explains it: the explanation is the tool's message, and what it explains is what
/// follows, in its order.
fn explained(result: &ToolResult, vendor: &Vendor, names: &ToolNames, follow: &mut Vec<Value>) -> Value {
    let (id, name) = (vendor.quirks.ids.to_wire(&result.call_id), names.to_wire(&result.name));
    let metadata = match result.explanation() {
        Some(Value::String(note)) => note,
        facts => facts.unwrap_or_default().to_string(),
    };
    let words =
        format!("Tool execution completed. Metadata: {metadata}\nIts content is in the next message.");
    follow.push(text(&content::tag(&name, &id)));
    follow.extend(result.content.iter().filter_map(|block| part(block, vendor)));
    let mut message = object(json!({"role": "tool", "tool_call_id": id, "content": words}));
    if vendor.quirks.named_results {
        message.insert("name".to_owned(), name.into());
    }
    Value::Object(message)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn part(block: &Content, vendor: &Vendor) -> Option<Value> {
    media_part(block, vendor).or_else(|| content::in_words(block).map(|words| text(&words)))
}

/// Parts that are all text become one text, which every server takes.
fn one_text(parts: Vec<Value>) -> Value {
    let words: Option<Vec<&str>> =
        parts.iter().map(|part| part.get("text").and_then(Value::as_str)).collect();
    match words {
        Some(words) => words.join("\n").into(),
        None => parts.into(),
    }
}

/// The part of media that the vendor takes.
fn media_part(block: &Content, vendor: &Vendor) -> Option<Value> {
    if !vendor.quirks.media.contains(&content::kind(block)?) {
        return None;
    }
    match block {
        Content::Image(media) if content::common_image(media) => {
            let mut image = object(json!({"url": media.to_url()}));
            let detail = media.detail.map(|detail| match detail {
                Detail::Auto => "auto",
                Detail::Low => "low",
                Detail::High | Detail::Original => "high",
            });
            image.extend(detail.map(|detail| ("detail".to_owned(), detail.into())));
            Some(json!({"type": "image_url", "image_url": image}))
        }
        Content::Audio(Media { source: MediaSource::Data(data), mime_type, .. }) => {
            let format = match mime_type.as_str() {
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                "audio/mpeg" | "audio/mp3" => "mp3",
                _ => return None,
            };
            Some(json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}))
        }
        Content::Document(media) => match (&media.source, &*media.mime_type) {
            (MediaSource::Data(_), "application/pdf") => Some(json!({"type": "file", "file": {
                "filename": media.name.as_deref().unwrap_or("document.pdf"),
                "file_data": media.to_url(),
            }})),
            _ => None,
        },
        _ => None,
    }
}
