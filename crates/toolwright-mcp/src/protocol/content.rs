//! Content blocks: what a tool returns and a prompt says.
//!
//! A block passes through this program on its way from a server to a client, so members without a type here
//! (`annotations`, `icons`, `size`, a foreign `_meta`) are kept in `beside`.

use serde::Serialize;
use serde_json::{Map, Value};

/// One block of content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ContentBlock {
    Text(TextBlock),
    Image(ImageBlock),
    Audio(AudioBlock),
    Resource(ResourceBlock),
    ResourceLink(LinkBlock),
}

/// Text.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct TextBlock {
    pub(crate) text: String,
    #[serde(flatten)]
    pub(crate) beside: Map<String, Value>,
}

/// A picture, in Base64.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageBlock {
    pub(crate) data: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mime_type: Option<String>,
    #[serde(flatten)]
    pub(crate) beside: Map<String, Value>,
}

/// A sound, in Base64. It has the members of a picture.
pub(crate) type AudioBlock = ImageBlock;

/// A resource within the result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ResourceBlock {
    pub(crate) resource: EmbeddedResource,
    #[serde(flatten)]
    pub(crate) beside: Map<String, Value>,
}

/// The resource of a block. A block has either a text or Base64.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EmbeddedResource {
    pub(crate) uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blob: Option<String>,
    #[serde(flatten)]
    pub(crate) beside: Map<String, Value>,
}

/// The address of a resource that the client may read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LinkBlock {
    pub(crate) uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mime_type: Option<String>,
    #[serde(flatten)]
    pub(crate) beside: Map<String, Value>,
}

impl ContentBlock {
    /// Reads a block, and moves what it holds; the value itself for kinds that we do not know and blocks
    /// without content.
    pub(crate) fn read(block: Value) -> Result<Self, Value> {
        let Value::Object(mut members) = block else { return Err(block) };
        let is_text =
            |members: &Map<String, Value>, key: &str| members.get(key).is_some_and(Value::is_string);
        let known = match members.get("type").and_then(Value::as_str) {
            Some("text") => is_text(&members, "text"),
            Some("image" | "audio") => is_text(&members, "data"),
            Some("resource_link") => is_text(&members, "uri"),
            Some("resource") => members.get("resource").and_then(Value::as_object).is_some_and(|resource| {
                is_text(resource, "uri") && (is_text(resource, "text") || is_text(resource, "blob"))
            }),
            _ => false,
        };
        let Some(Value::String(kind)) = members.get("type").filter(|_| known).cloned() else {
            return Err(members.into());
        };
        members.shift_remove("type");
        let mut take = |key: &str| text(&mut members, key);
        Ok(match kind.as_str() {
            "text" => {
                let text = take("text").unwrap_or_default();
                ContentBlock::Text(TextBlock { text, beside: members })
            }
            "image" | "audio" => {
                let (data, mime_type) = (take("data").unwrap_or_default(), take("mimeType"));
                let block = ImageBlock { data, mime_type, beside: members };
                if kind == "image" { ContentBlock::Image(block) } else { ContentBlock::Audio(block) }
            }
            "resource_link" => {
                let uri = take("uri").unwrap_or_default();
                let (name, description, mime_type) = (take("name"), take("description"), take("mimeType"));
                ContentBlock::ResourceLink(LinkBlock { uri, name, description, mime_type, beside: members })
            }
            _ => {
                let resource = match members.shift_remove("resource") {
                    Some(Value::Object(resource)) => EmbeddedResource::read(resource),
                    _ => EmbeddedResource::default(),
                };
                ContentBlock::Resource(ResourceBlock { resource, beside: members })
            }
        })
    }

    /// The members without a type here.
    pub(crate) fn beside_mut(&mut self) -> &mut Map<String, Value> {
        match self {
            ContentBlock::Text(block) => &mut block.beside,
            ContentBlock::Image(block) | ContentBlock::Audio(block) => &mut block.beside,
            ContentBlock::Resource(block) => &mut block.beside,
            ContentBlock::ResourceLink(block) => &mut block.beside,
        }
    }

    /// A text without anything beside it.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        ContentBlock::Text(TextBlock { text: text.into(), beside: Map::new() })
    }
}

impl EmbeddedResource {
    /// Reads the members, and moves what they hold.
    pub(crate) fn read(mut members: Map<String, Value>) -> Self {
        let mut take = |key: &str| text(&mut members, key);
        let uri = take("uri").unwrap_or_default();
        let (mime_type, text, blob) = (take("mimeType"), take("text"), take("blob"));
        EmbeddedResource { uri, mime_type, text, blob, beside: members }
    }
}

/// Takes a member that is a string. One of another type is dropped.
fn text(members: &mut Map<String, Value>, key: &str) -> Option<String> {
    match members.shift_remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}
