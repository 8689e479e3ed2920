//! Requests of the Responses API. Nothing is kept on the server: each request brings the whole conversation,
//! with the model's reasoning as it came.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use toolwright_core::{Content, Detail, MediaSource, ModelError, ModelRequest, ToolChoice, ToolResult};

use super::super::content::{self, ContentPart};
use super::super::names::ToolNames;
use super::super::turns::{TurnPiece, WireTurn, drop_last_thoughts, kept_with, pieces, turns};
use super::super::{Delivery, ModelTarget, Wire, arguments, object, tools};
use crate::error;
use crate::vendor::Vendor;

/// Models without reasoning; they refuse to be asked for it.
const PLAIN_MODELS: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-"];

pub(crate) fn encode(
    target: ModelTarget<'_>,
    request: &ModelRequest<'_>,
    delivery: Delivery,
) -> Result<Map<String, Value>, ModelError> {
    let ModelTarget { vendor, model } = target;
    let options = request.options;
    if !options.stop.is_empty() {
        return Err(error::request("the Responses API has no stop texts"));
    }
    let names = ToolNames::new(request);
    let mut input = Vec::new();
    // What calls say of who called and where the tool is; their results say it too.
    let mut origins: HashMap<String, Map<String, Value>> = HashMap::new();
    for turn in turns(request.messages) {
        match turn {
            WireTurn::System(blocks) => {
                let parts = blocks.iter().filter_map(|block| item(block, vendor));
                input.push(message("system", parts.collect()));
            }
            WireTurn::User(blocks) => {
                let parts = blocks.iter().filter_map(|block| item(block, vendor));
                input.push(message("user", parts.collect()));
            }
            WireTurn::Assistant(message) => {
                let (mut phase, mut said) = (None, Vec::new());
                for piece in pieces(&message, vendor.name) {
                    said.extend(match piece {
                        TurnPiece::Content { block, .. } => content::in_words(block).map(|words| {
                            let message = json!({"type": "message", "role": "assistant", "content": words});
                            let mut message = object(message);
                            message.extend(phase.clone().map(|phase| ("phase".to_owned(), phase)));
                            Value::Object(message)
                        }),
                        TurnPiece::Own { opaque, .. } if opaque.contains_key("phase") => {
                            phase = opaque.get("phase").filter(|phase| !phase.is_null()).cloned();
                            None
                        }
                        TurnPiece::Own { opaque, .. } => opaque.get("item").cloned(),
                        TurnPiece::Call { call, kept } => {
                            if let Some(kept) = kept {
                                let known = ["caller", "namespace"].into_iter();
                                let origin =
                                    known.filter_map(|key| Some((key.to_owned(), kept.get(key)?.clone())));
                                origins.insert(call.id.to_string(), origin.collect());
                            }
                            let call = json!({
                                "type": "function_call",
                                "call_id": vendor.quirks.ids.to_wire(&call.id),
                                "name": names.to_wire(&call.name),
                                "arguments": arguments::as_text(&call.arguments),
                            });
                            Some(kept_with(kept, call))
                        }
                    });
                }
                let is_thought = |item: &Value| item.get("type").and_then(Value::as_str) == Some("reasoning");
                drop_last_thoughts(&mut said, is_thought);
                input.append(&mut said);
            }
            WireTurn::Results(results) => input.extend(
                results.iter().map(|result| kept_with(origins.get(&*result.call_id), output(result, vendor))),
            ),
        }
    }
    let mut body = object(json!({"model": model, "input": input, "store": false}));
    if !PLAIN_MODELS.iter().any(|plain| model.starts_with(plain)) {
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    if !request.tools.is_empty() {
        let tools = tools::definitions(target, request, &names);
        body.insert("tools".to_owned(), tools.into_iter().map(|tool| tool.json).collect());
        let choice = match request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Any => Some("required".into()),
            ToolChoice::None => Some("none".into()),
            ToolChoice::Tool(name) => Some(json!({"type": "function", "name": names.to_wire(name)})),
        };
        body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    }
    if let Some(most) = options.max_tokens {
        body.insert("max_output_tokens".to_owned(), most.into());
    }
    if let Some(temperature) = options.temperature {
        body.insert("temperature".to_owned(), temperature.into());
    }
    if delivery == Delivery::Stream {
        body.insert("stream".to_owned(), true.into());
    }
    Ok(body)
}

fn message(role: &str, content: Vec<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn item(block: &Content, vendor: &Vendor) -> Option<Value> {
    native(block, vendor).or_else(|| content::in_words(block).map(|words| text(&words)))
}

fn native(block: &Content, vendor: &Vendor) -> Option<Value> {
    if !vendor.quirks.media.contains(&content::kind(block)?) {
        return None;
    }
    match block {
        Content::Image(media) if content::common_image(media) => {
            let detail = match media.detail {
                None | Some(Detail::Auto) => "auto",
                Some(Detail::Low) => "low",
                Some(Detail::High | Detail::Original) => "high",
            };
            Some(json!({"type": "input_image", "image_url": media.to_url(), "detail": detail}))
        }
        Content::Document(media) => match (&media.source, &*media.mime_type) {
            (MediaSource::Url(url), _) => Some(json!({"type": "input_file", "file_url": url})),
            (MediaSource::Data(_), "application/pdf") => Some(json!({
                "type": "input_file",
                "filename": media.name.as_deref().unwrap_or("document.pdf"),
                "file_data": media.to_url(),
            })),
            _ => None,
        },
        _ => None,
    }
}

fn output(result: &ToolResult, vendor: &Vendor) -> Value {
    let sorted = content::sort(Wire::OpenAiResponses, result, |block, _| native(block, vendor).is_some());
    let has_media = sorted.inside.iter().any(|part| matches!(part, ContentPart::Media(_)));
    let words = |part: &ContentPart<'_>| match part {
        ContentPart::Text(text) => text.to_string(),
        ContentPart::Json(value) => value.to_string(),
        ContentPart::Media(_) => String::new(),
    };
    let notes = content::notes(result);
    let output: Value = if has_media {
        let parts = sorted.inside.iter().filter_map(|part| match part {
            ContentPart::Media(block) => native(block, vendor),
            other => Some(text(&words(other))),
        });
        parts.chain(notes.iter().map(|note| text(note))).collect()
    } else {
        let words: Vec<String> = sorted.inside.iter().map(words).chain(notes).collect();
        words.join("\n").into()
    };
    json!({
        "type": "function_call_output",
        "call_id": vendor.quirks.ids.to_wire(&result.call_id),
        "output": output,
    })
}
