//! Content blocks: as a flow sees those of the tools it calls, and as content again when a flow returns them.
//!
//! A flow sees blocks under the names llm-workers has for them: `file` is everything that is neither text nor
//! a picture, its bytes are `base64`, its address is `url`. What llm-workers does not have keeps our names.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Map, Value as Json, json};
use toolwright_core::{Content, Media, MediaSource, ToolOutput};
use toolwright_expr::Value;
use toolwright_util::lock;

/// What a flow sees of a tool's output.
pub(crate) fn value_of(output: &ToolOutput) -> Value {
    match (&output.structured, output.content.as_slice()) {
        (Some(value), _) => Value::from_json(value),
        (None, [Content::Json { value }]) => Value::from_json(value),
        (None, [Content::Text { text, .. }]) => Value::str(text.as_str()),
        _ => Value::from_json(&plain(output)),
    }
}

/// What a flow sees of the output of a server's tool: always a list of blocks.
pub(crate) fn list_of(output: &ToolOutput) -> Value {
    let blocks: Vec<Json> = match output.content.as_slice() {
        // A result without blocks: what is here is its structured part, for models to read.
        [Content::Json { value }] if output.structured.as_ref() == Some(value) => Vec::new(),
        blocks => blocks.iter().map(server_block).collect(),
    };
    Value::from_json(&Json::Array(blocks))
}

/// The value of an output: a list of blocks when there is more in it than text.
fn plain(output: &ToolOutput) -> Json {
    match output.content.as_slice() {
        [_, ..] if output.structured.is_none() && output.content.iter().any(is_more) => {
            Json::Array(output.content.iter().map(block_of).collect())
        }
        _ => output.value(),
    }
}

/// Whether the block is neither text nor JSON.
fn is_more(block: &Content) -> bool {
    block.as_text().is_none()
}

fn server_block(content: &Content) -> Json {
    match content {
        Content::Text { text, .. } => json!({"type": "text", "text": text}),
        Content::Json { value } => json!({"type": "text", "text": value.to_string()}),
        other => block_of(other),
    }
}

fn block_of(content: &Content) -> Json {
    let kind_of = |mime_type: &str| if mime_type.starts_with("image/") { "image" } else { "file" };
    let mut block = match content {
        Content::Image(media) => media_block("image", media),
        Content::Document(media) => media_block("file", media),
        Content::Audio(media) => media_block("audio", media),
        Content::Video(media) => media_block("video", media),
        Content::ResourceLink { uri, name, description, mime_type } => {
            let kind = mime_type.as_deref().map_or("file", kind_of);
            json!({"type": kind, "url": uri, "mime_type": mime_type, "name": name, "description": description})
        }
        other => serde_json::to_value(other).unwrap_or_default(),
    };
    if let Json::Object(members) = &mut block {
        members.retain(|_, value| !value.is_null());
    }
    block
}

fn media_block(kind: &str, media: &Media) -> Json {
    let (key, source) = match &media.source {
        MediaSource::Data(data) => ("base64", data),
        MediaSource::Url(url) => ("url", url),
    };
    json!({"type": kind, key: source, "mime_type": media.mime_type, "name": media.name, "detail": media.detail})
}

/// A flow's result as a tool's output. Blocks are content again, so that a model sees a picture and not its
/// base64; who calls the flow from another finds the value as it was.
pub(crate) fn output(value: Json) -> ToolOutput {
    let Some(content) = content_of(&value) else { return ToolOutput::json(value) };
    let output = ToolOutput::blocks(content);
    if plain(&output) == value { output } else { output.with_structured(value) }
}

/// The blocks of a value that is nothing else: a list of them, a list of such lists as a loop makes it, or
/// one that is more than text.
fn content_of(value: &Json) -> Option<Vec<Content>> {
    match value {
        Json::Array(items) if !items.is_empty() => {
            let mut content = Vec::new();
            for item in items {
                match item {
                    Json::Object(members) => content.push(content_block(members)?),
                    Json::Array(inner) => {
                        for block in inner {
                            content.push(content_block(block.as_object()?)?);
                        }
                    }
                    _ => return None,
                }
            }
            Some(content).filter(|content| !content.is_empty())
        }
        Json::Object(members) => content_block(members).filter(is_more).map(|block| vec![block]),
        _ => None,
    }
}

/// The block this map is, if it has the keys of one and no others.
fn content_block(members: &Map<String, Json>) -> Option<Content> {
    let only = |keys: &[&str]| members.keys().all(|key| key == "type" || keys.contains(&key.as_str()));
    let read = || serde_json::from_value(Json::Object(members.clone())).ok();
    match members.get("type")?.as_str()? {
        "text" if only(&["text", "citations"]) => read(),
        "json" if only(&["value"]) && members.contains_key("value") => read(),
        "resource_link" if only(&["uri", "name", "description", "mime_type"]) => read(),
        kind @ ("image" | "audio" | "video" | "file" | "document")
            if only(&["base64", "data", "url", "mime_type", "name", "description", "detail"]) =>
        {
            media(kind, members)
        }
        _ => None,
    }
}

fn media(kind: &str, members: &Map<String, Json>) -> Option<Content> {
    let text = |key: &str| members.get(key).and_then(Json::as_str).map(str::to_owned);
    let (name, mime_type) = (text("name"), text("mime_type"));
    let source = match (text("base64").or_else(|| text("data")), text("url")) {
        (Some(data), None) => MediaSource::Data(data),
        (None, Some(url)) => {
            // Whatever has a name and only an address came as a link.
            if name.is_some() || mime_type.is_none() || kind == "file" {
                let name = name.unwrap_or_else(|| url.clone());
                return Some(Content::ResourceLink {
                    uri: url,
                    name,
                    description: text("description"),
                    mime_type,
                });
            }
            MediaSource::Url(url)
        }
        _ => return None,
    };
    let detail = members.get("detail").and_then(|detail| serde_json::from_value(detail.clone()).ok());
    let media = Media { source, mime_type: mime_type?, name, detail };
    if matches!(media.source, MediaSource::Data(_)) && media.bytes().is_err() {
        return None;
    }
    Some(match kind {
        "image" => Content::Image(media),
        "audio" => Content::Audio(media),
        "video" => Content::Video(media),
        _ => Content::Document(media),
    })
}

/// How much is kept beside values, in bytes and in calls: what a run passes on of one call is less.
const MAX_KEPT: usize = 64 << 20;
const MAX_CALLS: usize = 256;

/// Pictures and the like of called tools whose value is not made of blocks: the flow's expressions do not see
/// them, and they travel along when the flow returns the value as it came. A number or a truth value is like
/// any other that is equal to it, so it is the one that came only when nothing was done after the call.
#[derive(Default)]
pub(crate) struct Beside(OnceLock<Arc<Mutex<StoredBlocks>>>);

#[derive(Default)]
struct StoredBlocks {
    calls: VecDeque<Pictured>,
    bytes: usize,
    left_out: usize,
}

/// A value and what is beside it.
struct Pictured {
    value: Value,
    blocks: Vec<Content>,
    /// How many statements the flow had left after the call; none when a script made it, whose steps are not
    /// counted.
    left: Option<u64>,
}

impl Pictured {
    /// True when this is the value that came from the call.
    fn is(&self, value: &Value, left: u64) -> bool {
        match (&self.value, value) {
            (Value::List(_) | Value::Dict(_), _) => self.value.is(value),
            (Value::Str(known), Value::Str(text)) if known.as_str().as_ptr() == text.as_str().as_ptr() => {
                true
            }
            _ => self.left == Some(left) && self.value.is(value),
        }
    }
}

/// Where one flow keeps them; for a script, which outlives the borrow of its flow.
#[derive(Clone)]
pub(crate) struct BlockStore(Arc<Mutex<StoredBlocks>>);

impl Beside {
    pub(crate) fn keeper(&self) -> BlockStore {
        BlockStore(self.0.get_or_init(Arc::default).clone())
    }

    /// Keeps what is beside the value of an output, if anything is. `left` is how many statements the flow
    /// has left.
    #[inline]
    pub(crate) fn keep(&self, value: &Value, output: &mut ToolOutput, left: u64) {
        if output.structured.is_some() && output.content.iter().any(is_more) {
            self.keeper().keep(value, output, Some(left));
        }
    }

    /// The output of a flow that returns this value, which is this document, and has so many statements left.
    pub(crate) fn output(&self, value: &Value, json: Json, left: u64) -> ToolOutput {
        let beside = self.0.get().map(|kept| lock(kept).of(value, left));
        match beside {
            Some(beside) if !beside.is_empty() => {
                let mut output = ToolOutput::json(json.clone()).with_structured(json);
                output.content.extend(beside);
                output
            }
            _ => output(json),
        }
    }
}

impl BlockStore {
    pub(crate) fn keep(&self, value: &Value, output: &mut ToolOutput, left: Option<u64>) {
        if output.structured.is_none() {
            return;
        }
        let blocks: Vec<Content> = output.content.extract_if(.., |block| is_more(block)).collect();
        if !blocks.is_empty() {
            let pictured = Pictured { value: value.clone(), blocks, left };
            lock(&self.0).add(pictured);
        }
    }
}

impl StoredBlocks {
    fn add(&mut self, pictured: Pictured) {
        self.bytes += size(&pictured.blocks);
        self.calls.push_back(pictured);
        while self.calls.len() > MAX_CALLS || self.bytes > MAX_KEPT {
            let Some(oldest) = self.calls.pop_front() else { return };
            self.bytes -= size(&oldest.blocks);
            self.left_out += 1;
        }
    }

    /// What is beside this value, or beside the elements of this list.
    fn of(&self, value: &Value, left: u64) -> Vec<Content> {
        let beside = |value: &Value| self.calls.iter().rev().find(|pictured| pictured.is(value, left));
        let mut found: Vec<Content> = match (beside(value), value) {
            (Some(pictured), _) => return pictured.blocks.clone(),
            (None, Value::List(items)) => {
                let items = items.snapshot();
                let containers = items.iter().filter(|item| matches!(item, Value::List(_) | Value::Dict(_)));
                containers.filter_map(beside).flat_map(|pictured| pictured.blocks.clone()).collect()
            }
            _ => Vec::new(),
        };
        if self.left_out > 0 && !found.is_empty() {
            let calls = self.left_out;
            found.push(Content::text(format!("[… pictures and files of {calls} earlier calls left out …]")));
        }
        found
    }
}

fn size(blocks: &[Content]) -> usize {
    blocks.iter().map(Content::size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Json) -> Option<Vec<Content>> {
        content_of(&value)
    }

    #[test]
    fn blocks_are_content_again() {
        let blocks = [
            Content::text("hi"),
            Content::image("image/png", b"png"),
            Content::audio("audio/wav", b"wav"),
            Content::video("video/mp4", b"mp4"),
            Content::document("application/pdf", "a.pdf", b"%PDF"),
            Content::link("https://a.example/1", "one"),
            Content::Image(Media::from_url("image/png", "https://a.example/1.png")),
            Content::json(json!({"a": 1})),
        ];
        let output_of = |blocks: &[Content]| ToolOutput::blocks(blocks.to_vec());
        let value = plain(&output_of(&blocks));
        assert_eq!(output(value), output_of(&blocks));
        // As our blocks are written elsewhere.
        assert_eq!(read(serde_json::to_value(&blocks).unwrap()).unwrap(), blocks);
        // A value of another shape stays beside its blocks.
        let text = json!([{"type": "text", "text": "hi"}]);
        assert_eq!(output(text.clone()), ToolOutput::text("hi").with_structured(text));
        let loops = json!([plain(&output_of(&blocks[1..2])), plain(&output_of(&blocks[2..3]))]);
        assert_eq!(output(loops.clone()), output_of(&blocks[1..3]).with_structured(loops));
        let alone = block_of(&blocks[1]);
        assert_eq!(output(alone.clone()), output_of(&blocks[1..2]).with_structured(alone));
    }

    #[test]
    fn what_only_looks_like_a_block_is_data() {
        for value in [
            json!([]),
            json!([[]]),
            json!([1]),
            json!({"type": "text", "text": "alone"}),
            json!([{"type": "text", "text": "x", "id": 7}]),
            json!([{"type": "text", "text": "x"}, "y"]),
            json!([{"type": "image", "base64": "not base64!", "mime_type": "image/png"}]),
            json!([{"type": "image", "base64": "AA=="}]),
            json!([{"type": "image", "base64": "AA==", "url": "x", "mime_type": "image/png"}]),
            json!([{"type": "file", "path": "a", "url": "https://a.example", "name": "a"}]),
            json!([{"type": "json"}]),
        ] {
            assert_eq!(output(value.clone()), ToolOutput::json(value));
        }
    }

    #[test]
    fn what_is_kept_beside_values_is_bounded() {
        let beside = Beside::default();
        let values: Vec<Value> = (0..MAX_CALLS + 2).map(|_| Value::dict([("a", Value::Int(1))])).collect();
        for value in &values {
            let picture = Content::image("image/png", b"png");
            beside.keep(value, &mut ToolOutput::block(picture).with_structured(json!({"a": 1})), 0);
        }
        assert_eq!(beside.output(values.last().unwrap(), json!({}), 0).content.len(), 2);
        assert_eq!(beside.output(&values[0], json!({}), 0).content.len(), 1);
        let all = beside.output(&Value::list(values), json!([]), 0).content;
        assert_eq!(all.len(), 1 + MAX_CALLS + 1);
        assert!(all.last().unwrap().as_text().unwrap().contains("2 earlier calls"));
    }
}
