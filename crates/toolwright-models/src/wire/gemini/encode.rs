//! Requests of `generateContent`.

use serde_json::{Map, Value, json};
use toolwright_core::{Content, MediaSource, ModelError, ModelRequest, ToolChoice, ToolResult};

use super::super::content::{self, ContentPart, Placement};
use super::super::names::ToolNames;
use super::super::turns::{Alternating, TurnPiece, WireTurn, kept_with, pieces, turns};
use super::super::{ModelTarget, Wire, arguments, object, tools};
use crate::vendor::Vendor;

/// Addresses the API fetches by itself; others it refuses.
const FETCHED: [&str; 3] =
    ["gs://", "https://generativelanguage.googleapis.com/", "https://www.youtube.com/watch"];

/// What stands for the signature of a call that another model made. Without one, the newer models refuse the
/// turn.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(crate) fn encode(
    target: ModelTarget<'_>,
    request: &ModelRequest<'_>,
) -> Result<Map<String, Value>, ModelError> {
    let vendor = target.vendor;
    let names = ToolNames::new(request);
    let mut system = Vec::new();
    let mut contents = Alternating::new("model", "parts");
    for turn in turns(request.messages) {
        match turn {
            WireTurn::System(blocks) => system.extend(blocks.iter().filter_map(words)),
            WireTurn::User(blocks) => {
                told(&mut contents, blocks.iter().filter_map(|block| part(block, vendor)).collect());
            }
            WireTurn::Assistant(message) => {
                let mut parts = model_parts(pieces(&message, vendor.name), vendor, &names);
                if wants_signatures(target.model) {
                    sign_first_call(&mut parts);
                }
                contents.add("model", parts);
            }
            WireTurn::Results(results) => {
                let mut follow = Vec::new();
                let parts = results.iter().map(|result| response(result, target, &names, &mut follow));
                contents.add("user", parts.collect());
                if !follow.is_empty() {
                    told(&mut contents, follow);
                }
            }
        }
    }
    let options = request.options;
    let mut body = object(json!({"contents": contents.messages}));
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({"parts": system}));
    }
    if !request.tools.is_empty() {
        let tools = tools::definitions(target, request, &names);
        let tools: Vec<Value> = tools.into_iter().map(|tool| tool.json).collect();
        body.insert("tools".to_owned(), json!([{"functionDeclarations": tools}]));
        let config = match request.tool_choice {
            // Its strict mode; `ANY` is strict as it is.
            ToolChoice::Auto if options.strict == Some(true) => Some(json!({"mode": "VALIDATED"})),
            ToolChoice::Auto => None,
            ToolChoice::Any => Some(json!({"mode": "ANY"})),
            ToolChoice::None => Some(json!({"mode": "NONE"})),
            ToolChoice::Tool(name) => {
                Some(json!({"mode": "ANY", "allowedFunctionNames": [names.to_wire(name)]}))
            }
        };
        body.extend(config.map(|config| ("toolConfig".to_owned(), json!({"functionCallingConfig": config}))));
    }
    let mut config = Map::new();
    config.extend(options.max_tokens.map(|most| ("maxOutputTokens".to_owned(), most.into())));
    config.extend(options.temperature.map(|value| ("temperature".to_owned(), value.into())));
    if !options.stop.is_empty() {
        config.insert("stopSequences".to_owned(), options.stop.clone().into());
    }
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), config.into());
    }
    Ok(body)
}

/// Adds what the user says. In one message with results, the API would take it for the model's own words.
fn told(contents: &mut Alternating, parts: Vec<Value>) {
    let results =
        contents.messages.last().is_some_and(|last| last.pointer("/parts/0/functionResponse").is_some());
    match results && !parts.is_empty() {
        true => contents.start("user", parts),
        false => contents.add("user", parts),
    }
}

/// Whether a model refuses calls without a signature: Gemini 3 and later do, and so does what is the latest.
fn wants_signatures(model: &str) -> bool {
    let latest = || model.contains("gemini-") && model.ends_with("-latest");
    generation(model).map_or_else(latest, |number| number >= 3)
}

/// Whether a model takes this media inside of a result. Gemini 3 and later do, for some types; the others
/// refuse the whole request, and so may a model whose name says nothing.
fn takes_inside(model: &str, block: &Content) -> bool {
    let known = ["image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"];
    let media = content::media(block);
    generation(model).is_some_and(|number| number >= 3)
        && media.is_some_and(|media| known.contains(&&*media.mime_type))
}

/// Which Gemini a model is.
fn generation(model: &str) -> Option<u32> {
    let (_, version) = model.rsplit_once("gemini-")?;
    let number: String = version.chars().take_while(char::is_ascii_digit).collect();
    number.parse().ok()
}

/// Signs the first call of a turn, unless it is signed.
fn sign_first_call(parts: &mut [Value]) {
    let call = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(call) = call.and_then(Value::as_object_mut) {
        call.entry("thoughtSignature").or_insert_with(|| UNSIGNED.into());
    }
}

/// The parts of a model's turn, each signature where it was: some models refuse a turn that lacks one.
fn model_parts(pieces: Vec<TurnPiece<'_>>, vendor: &Vendor, names: &ToolNames) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let (mut call_signature, mut done) = (None, 0);
    for piece in pieces {
        match piece {
            TurnPiece::Content { block, .. } => {
                parts.extend(part(block, vendor));
                done = 0;
            }
            TurnPiece::Own { text, opaque } => {
                if let Some(signature) = opaque.get("callSignature") {
                    call_signature = Some(signature.clone());
                } else if let Some(signature) = opaque.get("textSignature") {
                    sign_text(&mut parts, &mut done, signature, opaque);
                } else if opaque.contains_key("attempt") {
                    parts.push(json!({"text": text}));
                } else if let Some(Value::Object(own)) = opaque.get("part") {
                    let mut own = own.clone();
                    if own.contains_key("thought") {
                        own.insert("text".to_owned(), text.into());
                    }
                    parts.push(Value::Object(own));
                }
            }
            TurnPiece::Call { call, kept } => {
                let function = json!({
                    "id": vendor.quirks.ids.to_wire(&call.id),
                    "name": names.to_wire(&call.name),
                    "args": arguments::as_object(&call.arguments),
                });
                let inside = kept.and_then(|kept| kept.get("functionCall")?.as_object());
                let mut part = object(json!({"functionCall": kept_with(inside, function)}));
                part.extend(call_signature.take().map(|value| ("thoughtSignature".to_owned(), value)));
                parts.push(kept_with(kept, Value::Object(part)));
            }
        }
    }
    parts
}

/// Signs the part of the last text that a signature is for. What is not signed stays a part of its own, as
/// Google wants it; `done` bytes of the text are in parts before.
fn sign_text(parts: &mut Vec<Value>, done: &mut usize, signature: &Value, opaque: &Map<String, Value>) {
    let signed = |part: &Value| ["thought", "thoughtSignature"].iter().any(|key| part.get(*key).is_some());
    let last = parts.pop_if(|last| last.get("text").is_some() && !signed(last));
    let text = last.as_ref().and_then(|last| last.get("text")?.as_str()).unwrap_or_default();
    let place = |key: &str| usize::try_from(opaque.get(key)?.as_u64()?).ok()?.checked_sub(*done);
    let cut = || {
        let (start, end) = (place("start")?, place("end")?);
        Some((text.get(..start)?, text.get(start..end)?, text.get(end..)?))
    };
    let (before, own, after) = cut().unwrap_or(("", text, ""));
    let plain = |text: &str| (!text.is_empty()).then(|| json!({"text": text}));
    parts.extend(plain(before));
    parts.push(json!({"text": own, "thoughtSignature": signature}));
    parts.extend(plain(after));
    *done += before.len() + own.len();
}

fn response(
    result: &ToolResult,
    target: ModelTarget<'_>,
    names: &ToolNames,
    follow: &mut Vec<Value>,
) -> Value {
    let vendor = target.vendor;
    let sorted = content::sort(Wire::Gemini, result, |block, place| {
        media_part(block, vendor).is_some()
            && (place != Placement::Native || takes_inside(target.model, block))
    });
    let mut response = Map::new();
    let spoken: Vec<_> = sorted.inside.iter().filter(|part| !matches!(part, ContentPart::Media(_))).collect();
    let output = match spoken.as_slice() {
        [ContentPart::Json(value)] => (*value).clone(),
        spoken => {
            let words = spoken.iter().map(|part| match part {
                ContentPart::Text(text) => text.to_string(),
                ContentPart::Json(value) => value.to_string(),
                ContentPart::Media(_) => String::new(),
            });
            words.collect::<Vec<_>>().join("\n").into()
        }
    };
    if !spoken.is_empty() || result.error.is_none() {
        response.insert("output".to_owned(), output);
    }
    if let Some(facts) = result.explanation() {
        response.insert("metadata".to_owned(), facts);
    }
    if let Some(error) = &result.error {
        response.insert("error".to_owned(), error.to_json().get("error").cloned().unwrap_or_default());
    }
    let id = vendor.quirks.ids.to_wire(&result.call_id);
    let name = names.to_wire(&result.name);
    if !sorted.follow.is_empty() {
        follow.push(json!({"text": content::tag(&name, &id)}));
        follow.extend(sorted.follow.iter().filter_map(|block| media_part(block, vendor)));
    }
    let mut function = object(json!({"id": id, "name": name, "response": response}));
    let media: Vec<Value> = sorted
        .inside
        .iter()
        .filter_map(|part| match part {
            ContentPart::Media(block) => media_part(block, vendor),
            _ => None,
        })
        .collect();
    if !media.is_empty() {
        function.insert("parts".to_owned(), media.into());
    }
    json!({"functionResponse": function})
}

fn words(block: &Content) -> Option<Value> {
    content::in_words(block).filter(|words| !words.is_empty()).map(|words| json!({"text": words}))
}

fn part(block: &Content, vendor: &Vendor) -> Option<Value> {
    media_part(block, vendor).or_else(|| words(block))
}

fn media_part(block: &Content, vendor: &Vendor) -> Option<Value> {
    let media = content::media(block)?;
    if !vendor.quirks.media.contains(&content::kind(block)?) {
        return None;
    }
    let known = match block {
        Content::Image(_) => {
            matches!(
                &*media.mime_type,
                "image/png" | "image/jpeg" | "image/webp" | "image/heic" | "image/heif"
            )
        }
        Content::Document(_) => media.mime_type == "application/pdf" || media.mime_type.starts_with("text/"),
        _ => true,
    };
    match &media.source {
        _ if !known => None,
        MediaSource::Data(data) => Some(json!({"inlineData": {"mimeType": media.mime_type, "data": data}})),
        MediaSource::Url(url) if FETCHED.iter().any(|start| url.starts_with(start)) => {
            Some(json!({"fileData": {"mimeType": media.mime_type, "fileUri": url}}))
        }
        MediaSource::Url(_) => None,
    }
}
