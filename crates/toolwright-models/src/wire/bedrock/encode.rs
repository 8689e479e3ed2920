//! Requests of Converse.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};
use toolwright_core::{
    Content, Media, MediaSource, Message, ModelError, ModelRequest, ToolChoice, ToolResult,
};

use super::super::content::{self, ContentKind, ContentPart};
use super::super::names::ToolNames;
use super::super::turns::{Alternating, TurnPiece, WireTurn, drop_last_thoughts, kept_with, pieces, turns};
use super::super::{ModelTarget, Wire, arguments, object, tools};

pub(crate) fn encode(
    target: ModelTarget<'_>,
    request: &ModelRequest<'_>,
) -> Result<Map<String, Value>, ModelError> {
    let vendor = target.vendor;
    let names = tools::names(vendor.wire, request);
    let mut system = Vec::new();
    let mut messages = Alternating::new("assistant", "content");
    for turn in turns(request.messages) {
        match turn {
            WireTurn::System(blocks) => system.extend(blocks.iter().filter_map(words)),
            WireTurn::User(blocks) => {
                let blocks: Vec<Value> = blocks.iter().filter_map(|block| block_of(block, target)).collect();
                messages.add("user", accompanied(blocks));
            }
            WireTurn::Assistant(message) => {
                let blocks = pieces(&message, vendor.name).into_iter().filter_map(|piece| match piece {
                    TurnPiece::Content { block, .. } => words(block),
                    TurnPiece::Own { opaque, .. } => opaque.get("block").cloned(),
                    TurnPiece::Call { call, kept } => {
                        let input = arguments::as_object(&call.arguments);
                        let call = json!({
                            "toolUseId": vendor.quirks.ids.to_wire(&call.id),
                            "name": names.to_wire(&call.name),
                            "input": names.arguments_to_wire(&call.name, input),
                        });
                        Some(json!({"toolUse": kept_with(kept, call)}))
                    }
                });
                let mut blocks: Vec<Value> = blocks.collect();
                drop_last_thoughts(&mut blocks, |block| block.get("reasoningContent").is_some());
                messages.add("assistant", blocks);
            }
            WireTurn::Results(results) => {
                let mut follow = Vec::new();
                let blocks = results.iter().map(|result| tool_result(result, target, &names, &mut follow));
                let mut blocks: Vec<Value> = blocks.collect();
                blocks.append(&mut follow);
                messages.add("user", blocks);
            }
        }
    }
    tell_documents_apart(&mut messages.messages);
    let options = request.options;
    let mut body = object(json!({"messages": messages.messages}));
    if !system.is_empty() {
        body.insert("system".to_owned(), system.into());
    }
    if let Some(config) = tool_config(target, request, &names) {
        body.insert("toolConfig".to_owned(), config);
    }
    let mut config = Map::new();
    config.extend(options.max_tokens.map(|most| ("maxTokens".to_owned(), most.into())));
    config.extend(options.temperature.map(|value| ("temperature".to_owned(), value.into())));
    if !options.stop.is_empty() {
        config.insert("stopSequences".to_owned(), options.stop.clone().into());
    }
    if !config.is_empty() {
        body.insert("inferenceConfig".to_owned(), config.into());
    }
    Ok(body)
}

/// The tools. A conversation in which tools were called is refused without any, so those are then named as
/// they were.
fn tool_config(target: ModelTarget<'_>, request: &ModelRequest<'_>, names: &ToolNames) -> Option<Value> {
    let tools = tools::definitions(target, request, names);
    let mut tools: Vec<Value> = tools.into_iter().map(|tool| tool.json).collect();
    if tools.is_empty() {
        let called = request.messages.iter().filter_map(|message| match message {
            Message::Assistant(message) => {
                Some(message.tool_calls.iter().map(|call| names.to_wire(&call.name)))
            }
            _ => None,
        });
        let called: BTreeSet<String> = called.flatten().collect();
        tools.extend(called.into_iter().map(|name| {
            json!({"toolSpec": {
                "name": name,
                "description": "Not available any more. Do not call it.",
                "inputSchema": {"json": {"type": "object"}},
            }})
        }));
    }
    if tools.is_empty() {
        return None;
    }
    let mut config = object(json!({"tools": tools}));
    let choice = match request.tool_choice {
        // There is no word for `none`: the runtime then offers no tools.
        ToolChoice::Auto | ToolChoice::None => None,
        ToolChoice::Any => Some(json!({"any": {}})),
        ToolChoice::Tool(name) => Some(json!({"tool": {"name": names.to_wire(name)}})),
    };
    config.extend(choice.map(|choice| ("toolChoice".to_owned(), choice)));
    Some(Value::Object(config))
}

/// A text block; blank ones are refused and say nothing.
fn words(block: &Content) -> Option<Value> {
    content::in_words(block).filter(|words| !words.trim().is_empty()).map(|words| json!({"text": words}))
}

fn block_of(block: &Content, target: ModelTarget<'_>) -> Option<Value> {
    native(block, target).or_else(|| words(block))
}

/// A user's document is refused without text beside it.
fn accompanied(mut blocks: Vec<Value>) -> Vec<Value> {
    let has = |key: &str| blocks.iter().any(|block| block.get(key).is_some());
    if has("document") && !has("text") {
        blocks.insert(0, json!({"text": "Read this document."}));
    }
    blocks
}

/// The block of media that the API takes.
fn native(block: &Content, target: ModelTarget<'_>) -> Option<Value> {
    let media = content::media(block)?;
    let kind = content::kind(block)?;
    if !target.vendor.quirks.media.contains(&kind) || !model_takes(kind, target.model) {
        return None;
    }
    // An address is only understood when it is one of Amazon's own store.
    let source = match &media.source {
        MediaSource::Data(data) => json!({"bytes": data}),
        MediaSource::Url(url) if url.starts_with("s3://") => json!({"s3Location": {"uri": url}}),
        MediaSource::Url(_) => return None,
    };
    let of = |key: &str, format: &str| Some(json!({key: {"format": format, "source": source}}));
    match block {
        Content::Image(_) => of("image", format_of(media, IMAGES)?),
        Content::Video(_) => of("video", format_of(media, VIDEOS)?),
        Content::Audio(_) => of("audio", format_of(media, SOUNDS)?),
        Content::Document(_) => Some(json!({"document": {
            "format": format_of(media, DOCUMENTS)?, "name": document_name(media), "source": source,
        }})),
        _ => None,
    }
}

/// Whether a model takes that kind: pictures and documents are described to none, films and sounds to most.
fn model_takes(kind: ContentKind, model: &str) -> bool {
    let named = |names: &[&str]| names.iter().any(|name| model.contains(name));
    match kind {
        ContentKind::Video => named(&["nova", "pegasus"]),
        ContentKind::Audio => named(&["nova-2", "voxtral"]),
        _ => true,
    }
}

/// What the API calls the media types it takes.
type Formats = &'static [(&'static str, &'static str)];

const IMAGES: Formats =
    &[("image/png", "png"), ("image/jpeg", "jpeg"), ("image/gif", "gif"), ("image/webp", "webp")];

const VIDEOS: Formats = &[
    ("video/mp4", "mp4"),
    ("video/quicktime", "mov"),
    ("video/x-matroska", "mkv"),
    ("video/webm", "webm"),
    ("video/x-flv", "flv"),
    ("video/mpeg", "mpeg"),
    ("video/x-ms-wmv", "wmv"),
    ("video/3gpp", "three_gp"),
];

const SOUNDS: Formats = &[
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/ogg", "ogg"),
    ("audio/flac", "flac"),
    ("audio/aac", "aac"),
    ("audio/webm", "webm"),
];

const DOCUMENTS: Formats = &[
    ("application/pdf", "pdf"),
    ("text/csv", "csv"),
    ("application/msword", "doc"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("text/html", "html"),
    ("text/plain", "txt"),
    ("text/markdown", "md"),
];

fn format_of(media: &Media, known: Formats) -> Option<&'static str> {
    known.iter().find(|(mime_type, _)| *mime_type == media.mime_type).map(|(_, format)| *format)
}

/// A document's name in the letters that are allowed: letters, digits, single spaces, `-`, and brackets.
fn document_name(media: &Media) -> String {
    let name = media.name.as_deref().unwrap_or("document");
    let keep = |c: char| if c.is_ascii_alphanumeric() || "-()[]".contains(c) { c } else { ' ' };
    let name: String = name.chars().take(200).map(keep).collect();
    let name: Vec<&str> = name.split_whitespace().collect();
    if name.is_empty() { "document".to_owned() } else { name.join(" ") }
}

/// Gives each document of the conversation a name of its own: one that is there before is refused, and with
/// it every later request. The first keeps its name, so that what was sent stays the same from turn to turn.
fn tell_documents_apart(messages: &mut [Value]) {
    fn documents(block: &mut Value) -> Vec<&mut Value> {
        match block.get("document") {
            Some(_) => block.pointer_mut("/document/name").into_iter().collect(),
            None => {
                let inside = block.pointer_mut("/toolResult/content").and_then(Value::as_array_mut);
                inside.into_iter().flatten().filter_map(|block| block.pointer_mut("/document/name")).collect()
            }
        }
    }
    let mut taken = HashSet::new();
    let blocks = messages.iter_mut().filter_map(|message| message.get_mut("content")?.as_array_mut());
    for name in blocks.flatten().flat_map(documents) {
        let Some(own) = name.as_str() else { continue };
        let short: String = own.chars().take(190).collect();
        let others = (2..).map(|number| format!("{} {number}", short.trim_end()));
        // Letters count as the same whether they are capitals or not.
        let free =
            std::iter::once(own.to_owned()).chain(others).find(|name| taken.insert(name.to_lowercase()));
        *name = free.into();
    }
}

/// Whether a model takes the mark of a failed result: other vendors' models refuse the whole conversation.
/// The error is also sent as text.
fn takes_status(model: &str) -> bool {
    ["claude", "nova"].iter().any(|name| model.contains(name))
}

fn tool_result(
    result: &ToolResult,
    target: ModelTarget<'_>,
    names: &ToolNames,
    follow: &mut Vec<Value>,
) -> Value {
    let sorted = content::sort(Wire::BedrockConverse, result, |block, _| native(block, target).is_some());
    let text = |words: &str| (!words.trim().is_empty()).then(|| json!({"text": words}));
    let mut blocks: Vec<Value> = sorted
        .inside
        .into_iter()
        .filter_map(|part| match part {
            ContentPart::Text(words) => text(&words),
            // Only objects are taken here, although the documents say any value is.
            ContentPart::Json(value @ Value::Object(_)) => Some(json!({"json": value})),
            ContentPart::Json(value) => text(&value.to_string()),
            ContentPart::Media(block) => native(block, target),
        })
        .collect();
    blocks.extend(content::notes(result).iter().filter_map(|note| text(note)));
    if blocks.is_empty() {
        blocks.push(json!({"text": content::NOTHING}));
    }
    let id = target.vendor.quirks.ids.to_wire(&result.call_id);
    if !sorted.follow.is_empty() {
        let name = names.to_wire(&result.name);
        follow.push(json!({"text": content::tag(&name, &id)}));
        follow.extend(sorted.follow.iter().filter_map(|block| native(block, target)));
    }
    let mut block = object(json!({"toolUseId": id, "content": blocks}));
    if result.is_error() && takes_status(target.model) {
        block.insert("status".to_owned(), "error".into());
    }
    json!({"toolResult": block})
}
