//! What MCP says of a result beside what our blocks hold: for whom a block is, its `_meta`, the size and icons of a link, the
//! media type of an embedded text. It travels in the extras of the result, which no model is sent, and comes out again where the
//! result is served.

use serde_json::{Map, Value, json};
use toolwright_core::Content;

use crate::protocol::{CITATIONS_KEY, METADATA_KEY};

/// What our blocks hold of MCP's.
const HELD: [&str; 8] = ["type", "text", "data", "mimeType", "uri", "name", "description", "resource"];

/// What the protocol itself says in `_meta`.
const RESERVED: &str = "io.modelcontextprotocol/";

/// What the blocks of a result and its `_meta` say beside.
pub(crate) fn read(blocks: &[Value], meta: &Map<String, Value>) -> Map<String, Value> {
    let content: Vec<Value> = blocks.iter().map(of_block).collect();
    let meta = own(meta);
    let mut extras = Map::new();
    if !meta.is_empty() {
        extras.insert("_meta".to_owned(), meta.into());
    }
    if !content.iter().all(Value::is_null) {
        extras.insert("content".to_owned(), content.into());
    }
    extras
}

fn of_block(block: &Value) -> Value {
    let Some(members) = block.as_object() else { return Value::Null };
    let mut extras = Map::new();
    for (key, value) in members {
        match (key.as_str(), value) {
            ("_meta", Value::Object(meta)) => {
                let meta = own(meta);
                extras.extend((!meta.is_empty()).then(|| (key.clone(), meta.into())));
            }
            ("resource", Value::Object(resource)) => {
                let about = resource.iter().filter(|(key, _)| !matches!(key.as_str(), "text" | "blob"));
                let about: Map<String, Value> =
                    about.map(|(key, value)| (key.clone(), value.clone())).collect();
                extras.insert(key.clone(), about.into());
            }
            (known, _) if HELD.contains(&known) => {}
            _ => {
                extras.insert(key.clone(), value.clone());
            }
        }
    }
    let known = matches!(
        members.get("type").and_then(Value::as_str),
        Some("text" | "image" | "audio" | "resource" | "resource_link")
    );
    // A block of an unknown kind is kept whole already.
    if extras.is_empty() || !known { Value::Null } else { extras.into() }
}

/// What a server lists of a tool beside its definition: its icons, and `_meta`, without what points to pages of the server
/// for a client to show: they are not served on, and nobody has approved them.
pub(crate) fn of_tool(icons: Option<Value>, meta: Option<Value>) -> Map<String, Value> {
    let icons = icons.filter(|icons| icons.as_array().is_some_and(|icons| !icons.is_empty()));
    let mut meta = meta.as_ref().and_then(Value::as_object).map(own).unwrap_or_default();
    meta.retain(|_, value| !names_page(value));
    let meta = Some(meta).filter(|meta| !meta.is_empty());
    let icons = icons.map(|icons| ("icons".to_owned(), icons));
    icons.into_iter().chain(meta.map(|meta| ("_meta".to_owned(), meta.into()))).collect()
}

/// True when the address of a page stands somewhere in it.
fn names_page(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with("ui://"),
        Value::Array(items) => items.iter().any(names_page),
        Value::Object(members) => members.values().any(names_page),
        _ => false,
    }
}

/// The members of `_meta` that neither we nor the protocol put there.
fn own(meta: &Map<String, Value>) -> Map<String, Value> {
    let foreign = |key: &str| key != METADATA_KEY && key != CITATIONS_KEY && !key.starts_with(RESERVED);
    meta.iter().filter(|(key, _)| foreign(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Puts what was said beside back on the blocks of an answer, whose own are `ours`. A result that was shortened has lost it.
pub(crate) fn write(extras: &Map<String, Value>, ours: &[Content], content: &mut [Value]) {
    let Some(all) = extras.get("content").and_then(Value::as_array) else { return };
    if all.len() != ours.len() || content.len() < ours.len() {
        return;
    }
    for ((extra, our), block) in all.iter().zip(ours).zip(content) {
        let Some(extra) = extra.as_object() else { continue };
        if let Some(Value::Object(about)) = extra.get("resource") {
            let Some(resource) = resource(about, our) else { continue };
            *block = json!({"type": "resource", "resource": resource});
        }
        let Value::Object(members) = block else { continue };
        for (key, value) in extra.iter().filter(|(key, _)| *key != "resource") {
            match (members.get_mut(key), value) {
                (Some(Value::Object(there)), Value::Object(more)) => there.extend(more.clone()),
                _ => {
                    members.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

/// The embedded resource that one of our blocks was read from.
fn resource(about: &Map<String, Value>, our: &Content) -> Option<Map<String, Value>> {
    let mut resource = about.clone();
    let (key, held) = match our {
        Content::Text { text, .. } => ("text", text.clone()),
        Content::Image(media) | Content::Audio(media) | Content::Video(media) | Content::Document(media) => {
            match &media.source {
                toolwright_core::MediaSource::Data(blob) => ("blob", blob.clone()),
                toolwright_core::MediaSource::Url(_) => return None,
            }
        }
        _ => return None,
    };
    resource.insert(key.to_owned(), held.into());
    Some(resource)
}
