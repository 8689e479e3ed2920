//! What a saved message says, as blocks: our own, and those that LangChain keeps as a vendor gave them.

use serde_json::{Value, json};
use toolwright::content::{Content, Media, MediaSource, ToolCall};

/// The content of a message. A block that refers to one of the message's `calls` is not content: it tells the
/// place of the call.
pub struct Blocks {
    pub content: Vec<Content>,
    /// For each call, how many blocks came before it; empty when all did.
    pub calls_after: Vec<usize>,
}

/// Reads text, or a list of blocks. What is neither is text too, and a block nobody knows stays as JSON:
/// nothing is left out.
pub fn read(value: Option<&Value>, calls: &[ToolCall]) -> Blocks {
    let mut content = Vec::new();
    let mut places = vec![None; calls.len()];
    match value {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::String(text)) => content.push(Content::text(text.clone())),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                match call_of(block, calls).and_then(|at| places.get_mut(at)) {
                    Some(place) => *place = Some(content.len()),
                    None => content.push(block_of(block)),
                }
            }
        }
        Some(block @ Value::Object(_)) => content.push(block_of(block)),
        Some(other) => content.push(Content::text(other.to_string())),
    }
    let all = content.len();
    let calls_after: Vec<usize> = places.into_iter().map(|place| place.unwrap_or(all)).collect();
    let told = calls_after.iter().any(|after| *after != all);
    Blocks { content, calls_after: if told { calls_after } else { Vec::new() } }
}

/// Which of the calls a block asks for.
fn call_of(block: &Value, calls: &[ToolCall]) -> Option<usize> {
    if !matches!(word(block, "type"), "tool_use" | "tool_call" | "tool_call_chunk" | "function_call") {
        return None;
    }
    let named = |id: &str| calls.iter().position(|call| !id.is_empty() && *call.id == *id);
    named(word(block, "call_id")).or_else(|| named(word(block, "id")))
}

fn block_of(block: &Value) -> Content {
    if let Value::String(text) = block {
        return Content::text(text.clone());
    }
    if let Ok(own) = serde_json::from_value(block.clone()) {
        return own;
    }
    let known = match word(block, "type") {
        // One that cites in the way of its vendor.
        "text" => block.get("text").and_then(Value::as_str).map(Content::text),
        "thinking" | "redacted_thinking" | "reasoning" => Some(reasoning(block)),
        "image" | "image_url" => media(block, "image/*").map(Content::Image),
        "audio" => media(block, "audio/*").map(Content::Audio),
        "video" => media(block, "video/*").map(Content::Video),
        "file" | "document" => media(block, "application/octet-stream").map(Content::Document),
        _ => None,
    };
    known.unwrap_or_else(|| Content::json(block.clone()))
}

/// Reasoning with all its vendor has to see again; without a signature nobody takes it back.
fn reasoning(block: &Value) -> Content {
    let mut own = block.clone();
    if let Some(own) = own.as_object_mut() {
        own.remove("index");
    }
    let has = |key: &str| !word(block, key).is_empty();
    let (text, opaque) = match word(block, "type") {
        "thinking" if has("signature") => {
            (word(block, "thinking").to_owned(), json!({"from": "anthropic", "block": own}))
        }
        "thinking" => (word(block, "thinking").to_owned(), Value::Null),
        "redacted_thinking" => (String::new(), json!({"from": "anthropic", "block": own})),
        _ if has("reasoning") => {
            let text = word(block, "reasoning");
            let signature = block.pointer("/extras/signature").and_then(Value::as_str);
            let opaque = signature.map(|signature| {
                let block = json!({"type": "thinking", "thinking": text, "signature": signature});
                json!({"from": "anthropic", "block": block})
            });
            (text.to_owned(), opaque.unwrap_or_default())
        }
        _ => {
            let parts = block.get("summary").and_then(Value::as_array).into_iter().flatten();
            let text: Vec<&str> = parts.map(|part| word(part, "text")).collect();
            let opaque = has("encrypted_content").then(|| json!({"from": "openai", "item": own}));
            (text.join("\n"), opaque.unwrap_or_default())
        }
    };
    Content::Reasoning { text, opaque }
}

/// A picture, a sound or a document in one of the ways that LangChain and the vendors write it.
fn media(block: &Value, usual: &str) -> Option<Media> {
    let source = ["source", "image_url", "file"].iter().find_map(|key| block.get(*key)).unwrap_or(block);
    let first = |keys: &[&str]| keys.iter().map(|key| word(source, key)).find(|text| !text.is_empty());
    let mime_type = first(&["mime_type", "media_type"]).unwrap_or(usual);
    let url = source.as_str().or_else(|| first(&["url", "file_data"]));
    let mut media = match (first(&["base64", "data"]), url) {
        (Some(data), _) => Media {
            source: MediaSource::Data(data.to_owned()),
            mime_type: mime_type.to_owned(),
            name: None,
            detail: None,
        },
        (None, Some(url)) if url.starts_with("data:") => Media::from_data_url(url).ok()?,
        (None, Some(url)) => Media::from_url(mime_type, url),
        (None, None) => return None,
    };
    media.name = first(&["filename", "name", "title"]).map(str::to_owned);
    Some(media)
}

fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_vendors_become_ours() {
        let signed = json!({"type": "thinking", "thinking": "Hm.", "signature": "S"});
        let picture = |source| Media { source, mime_type: "image/png".to_owned(), name: None, detail: None };
        let data = || Content::Image(picture(MediaSource::Data("AA==".to_owned())));
        let blocks = json!([
            "bare",
            {"type": "text", "text": "said", "index": 1, "citations": [{"type": "page_location"}]},
            {"type": "thinking", "thinking": "Hm.", "signature": "S", "index": 0},
            {"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "S"}},
            {"type": "thinking", "thinking": "unsigned"},
            {"type": "image", "base64": "AA==", "mime_type": "image/png"},
            {"type": "image", "source_type": "base64", "data": "AA==", "mime_type": "image/png"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            {"type": "image_url", "image_url": "https://a.example/b.png"},
            {"type": "tool_use", "id": "other", "name": "x", "input": {}},
        ]);
        let thought = || Content::Reasoning {
            text: "Hm.".to_owned(),
            opaque: json!({"from": "anthropic", "block": signed}),
        };
        let want = [
            Content::text("bare"),
            Content::text("said"),
            thought(),
            thought(),
            Content::Reasoning { text: "unsigned".to_owned(), opaque: Value::Null },
            data(),
            data(),
            data(),
            data(),
            Content::Image(Media::from_url("image/*", "https://a.example/b.png")),
            Content::json(json!({"type": "tool_use", "id": "other", "name": "x", "input": {}})),
        ];
        assert_eq!(read(Some(&blocks), &[]).content, want);
    }

    #[test]
    fn a_call_among_the_blocks_tells_its_place_only() {
        let calls = [ToolCall::new("1", "a", json!({})), ToolCall::new("2", "b", json!({}))];
        let asks = |id: &str| json!({"type": "tool_use", "id": id, "name": "a", "input": {}});
        let text = json!({"type": "text", "text": "x"});
        let blocks = read(Some(&json!([asks("1"), text, asks("2")])), &calls);
        assert_eq!((blocks.content, blocks.calls_after), (vec![Content::text("x")], vec![0, 1]));
        let blocks = read(Some(&json!([text, asks("1"), asks("2")])), &calls);
        assert_eq!((blocks.content, blocks.calls_after), (vec![Content::text("x")], vec![]));
    }

    #[test]
    fn nothing_that_was_said_is_left_out() {
        for (value, want) in [(json!(8.5), "8.5"), (json!(true), "true"), (json!({"a": 1}), r#"{"a":1}"#)] {
            let said: Vec<_> = read(Some(&value), &[])
                .content
                .iter()
                .filter_map(Content::as_text)
                .map(String::from)
                .collect();
            assert_eq!(said, [want]);
        }
    }
}
