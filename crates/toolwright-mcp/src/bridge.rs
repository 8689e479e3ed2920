//! MCP's results and ours, each way.
//!
//! From a server: text, images, sounds, embedded resources, links and structured content each become one of our
//! blocks; a kind this crate does not know is kept as JSON, and what our blocks have no place for is `extras`. To a client:
//! what MCP has no word for travels in `_meta`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use toolwright_core::schema::Schema;
use toolwright_core::{
    Citation, Content, ErrorInfo, ErrorKind, Media, MediaSource, ToolError, ToolOutput, ToolResult, ToolSpec,
};

use crate::extras;
use crate::protocol::{CITATIONS_KEY, CallResult, METADATA_KEY, is_object_schema, wrapped_schema};

/// How many blocks of a result are read.
const MAX_BLOCKS: usize = 10_000;

/// What a server's answer to `tools/call` means: an output, or the tool's own error.
pub(crate) fn read_result(result: Value) -> Result<ToolOutput, ToolError> {
    let result: CallResult = serde_json::from_value(result)
        .map_err(|error| ToolError::new(format!("the server's result is not one: {error}")))?;
    if let Some(kind) = &result.result_type
        && kind != "complete"
    {
        return Err(ToolError::new(format!("the server asks for `{kind}`, which is not offered to it")));
    }
    let mut content = result.content;
    content.truncate(MAX_BLOCKS);
    let extras = extras::read(&content, &result.meta);
    let mut output = ToolOutput::blocks(content.into_iter().map(read_block));
    output.extras = extras;
    output.structured = result.structured_content;
    if let Some(Value::Object(metadata)) = result.meta.get(METADATA_KEY) {
        output.metadata = metadata.clone();
    }
    if result.is_error {
        return Err(read_error(output));
    }
    if output.content.is_empty()
        && let Some(value) = &output.structured
    {
        output.content.push(Content::json(value.clone()));
    }
    Ok(output)
}

/// The text of the error is what the server wrote; anything that is not text stays with it as partial output.
fn read_error(output: ToolOutput) -> ToolError {
    let texts: Vec<_> = output.content.iter().filter_map(Content::as_text).collect();
    let message = match texts.join("\n\n") {
        empty if empty.is_empty() => "the tool failed and did not say why".to_owned(),
        message => message,
    };
    let rest: Vec<Content> =
        output.content.iter().filter(|block| block.as_text().is_none()).cloned().collect();
    let error = ToolError::new(message);
    if rest.is_empty() { error } else { error.with_partial(ToolOutput::blocks(rest)) }
}

pub(crate) fn read_block(block: Value) -> Content {
    let text = |key: &str| block.get(key).and_then(Value::as_str).map(str::to_owned);
    let media = |data: String| Media {
        source: MediaSource::Data(data),
        mime_type: text("mimeType").unwrap_or_else(|| "application/octet-stream".to_owned()),
        name: None,
        detail: None,
    };
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    let read = match kind {
        "text" => text("text").map(|text| Content::Text { text, citations: citations(&block) }),
        "image" => text("data").map(|data| Content::Image(media(data))),
        "audio" => text("data").map(|data| Content::Audio(media(data))),
        "resource" => block.get("resource").and_then(read_resource),
        "resource_link" => text("uri").map(|uri| Content::ResourceLink {
            name: text("name").unwrap_or_else(|| uri.clone()),
            uri,
            description: text("description"),
            mime_type: text("mimeType"),
        }),
        _ => None,
    };
    read.unwrap_or_else(|| Content::json(block.clone()))
}

/// An embedded resource. Text stays readable and keeps its address as a citation.
fn read_resource(resource: &Value) -> Option<Content> {
    let member = |key: &str| resource.get(key).and_then(Value::as_str).map(str::to_owned);
    let uri = member("uri")?;
    if let Some(text) = member("text")
        && let Some(name) = uri.strip_prefix(RESOURCE_SCHEME)
    {
        // A text file of ours stays a file.
        let mime_type = member("mimeType").unwrap_or_else(|| "text/plain".to_owned());
        return Some(Content::document(mime_type, name, text.as_bytes()));
    }
    if let Some(text) = member("text") {
        let citations = vec![Citation { url: uri, title: member("name"), quote: None }];
        return Some(Content::Text { text, citations });
    }
    let mime_type = member("mimeType").unwrap_or_else(|| "application/octet-stream".to_owned());
    let name = uri.strip_prefix(RESOURCE_SCHEME).map_or(uri.clone(), str::to_owned);
    let media = Media {
        source: MediaSource::Data(member("blob")?),
        name: (!name.is_empty()).then_some(name),
        detail: None,
        mime_type,
    };
    Some(match media.mime_type.split('/').next() {
        Some("image") => Content::Image(media),
        Some("audio") => Content::Audio(media),
        Some("video") => Content::Video(media),
        _ => Content::Document(media),
    })
}

fn citations(block: &Value) -> Vec<Citation> {
    let found = block.get("_meta").and_then(|meta| meta.get(CITATIONS_KEY));
    found.and_then(|found| serde_json::from_value(found.clone()).ok()).unwrap_or_default()
}

/// The address of an embedded file that has none of its own.
const RESOURCE_SCHEME: &str = "toolwright:///";

/// The answer to `tools/call` for one of our results.
pub(crate) fn write_result(result: ToolResult, spec: &ToolSpec) -> Value {
    let structured = structured(&result, spec);
    let (metadata, extras) = (result.metadata, result.extras.unwrap_or_default());
    let mut content: Vec<Value> = match extras.get("content") {
        None => result.content.into_iter().map(write_block).collect(),
        Some(_) => {
            let mut content: Vec<Value> = result.content.iter().cloned().map(write_block).collect();
            extras::write(&extras, &result.content, &mut content);
            content
        }
    };
    let failed = result.error.is_some();
    if let Some(error) = &result.error {
        content.push(json!({"type": "text", "text": error.to_json().to_string()}));
    }
    let mut answer = json!({"content": content, "isError": failed});
    if let Value::Object(members) = &mut answer {
        if let Some(structured) = structured
            && !failed
        {
            members.insert("structuredContent".to_owned(), structured);
        }
        let mut meta = extras.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default();
        if !metadata.is_empty() {
            meta.insert(METADATA_KEY.to_owned(), metadata.into());
        }
        if !meta.is_empty() {
            members.insert("_meta".to_owned(), meta.into());
        }
    }
    answer
}

/// Makes an error of a result that was cut, when the output schema promises what is no longer there: clients refuse an answer that
/// breaks the promise, and would not see what is left of it.
pub(crate) fn keep_promise(result: &mut ToolResult, spec: &ToolSpec) {
    let (Some(schema), Some(cut), None) = (&spec.output_schema, &result.truncated, &result.error) else {
        return;
    };
    let listed = wrapped_schema(schema);
    let kept = structured(result, spec).is_some_and(|value| {
        Schema::compile_any(&listed).is_ok_and(|schema| schema.problems(&value).is_empty())
    });
    if !kept {
        let message = format!(
            "the result is larger than {} bytes and was cut, so it is not what its output schema says",
            cut.limit
        );
        let hint = Some("ask for less at a time".to_owned());
        result.error = Some(ErrorInfo { kind: ErrorKind::OutputLimit, message, hint });
    }
}

/// The structured result, as the output schema that was listed promises it.
fn structured(result: &ToolResult, spec: &ToolSpec) -> Option<Value> {
    let value = match (&result.structured, result.content.as_slice()) {
        (Some(value), _) => value.clone(),
        (None, [Content::Json { value }]) => value.clone(),
        (None, [Content::Text { text, .. }]) if spec.output_schema.is_some() => Value::String(text.clone()),
        (None, []) if spec.output_schema.is_some() => Value::Null,
        _ => return None,
    };
    match &spec.output_schema {
        Some(schema) if !is_object_schema(schema) => Some(json!({"result": value})),
        _ if value.is_object() => Some(value),
        _ => None,
    }
}

pub(crate) fn write_block(block: Content) -> Value {
    match block {
        Content::Text { text, citations } if citations.is_empty() => json!({"type": "text", "text": text}),
        Content::Text { text, citations } => {
            json!({"type": "text", "text": text, "_meta": {CITATIONS_KEY: citations}})
        }
        Content::Json { value } => json!({"type": "text", "text": value.to_string()}),
        Content::Image(media) => write_media("image", media),
        Content::Audio(media) => write_media("audio", media),
        Content::Video(media) | Content::Document(media) => write_media("resource", media),
        Content::ResourceLink { uri, name, description, mime_type } => {
            let mut link = Map::new();
            link.insert("type".to_owned(), json!("resource_link"));
            link.insert("uri".to_owned(), uri.into());
            link.insert("name".to_owned(), name.into());
            link.extend(description.map(|text| ("description".to_owned(), text.into())));
            link.extend(mime_type.map(|kind| ("mimeType".to_owned(), kind.into())));
            link.into()
        }
        Content::Reasoning { text, .. } => json!({"type": "text", "text": text}),
        // A block that is newer than this crate still reaches the client.
        other => json!({"type": "text", "text": serde_json::to_string(&other).unwrap_or_default()}),
    }
}

fn write_media(kind: &str, media: Media) -> Value {
    let name = media.name.clone().unwrap_or_default();
    match (media.source, kind) {
        (MediaSource::Url(uri), _) => {
            let name = if name.is_empty() { uri.clone() } else { name };
            json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": media.mime_type})
        }
        (MediaSource::Data(blob), "resource") => {
            let uri = if name.contains("://") { name } else { format!("{RESOURCE_SCHEME}{name}") };
            let text = media.mime_type.starts_with("text/").then(|| as_text(&blob)).flatten();
            let mut resource = json!({"uri": uri, "mimeType": media.mime_type});
            if let Value::Object(members) = &mut resource {
                match text {
                    Some(text) => members.insert("text".to_owned(), text.into()),
                    None => members.insert("blob".to_owned(), blob.into()),
                };
            }
            json!({"type": "resource", "resource": resource})
        }
        (MediaSource::Data(data), _) => json!({"type": kind, "data": data, "mimeType": media.mime_type}),
    }
}

/// The text that Base64 stands for, when it is one.
fn as_text(blob: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(blob).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright_core::{ToolCall, Truncation};

    fn result(content: Vec<Content>) -> ToolResult {
        let call = ToolCall::new("1", "t", json!({}));
        let info = ErrorInfo { kind: ErrorKind::Unknown, message: String::new(), hint: None };
        ToolResult { content, error: None, ..ToolResult::failed(&call, info) }
    }

    #[test]
    fn every_block_survives_the_way_there_and_back() {
        let blocks = vec![
            Content::text("hi"),
            Content::Text {
                text: "said".into(),
                citations: vec![Citation { url: "https://a/".into(), title: None, quote: Some("q".into()) }],
            },
            Content::image("image/png", b"\x89PNG"),
            Content::audio("audio/wav", b"RIFF"),
            Content::Video(Media::from_bytes("video/mp4", b"mp4").named("a.mp4")),
            Content::document("application/pdf", "a.pdf", b"%PDF"),
            Content::ResourceLink {
                uri: "file:///a".into(),
                name: "a".into(),
                description: Some("d".into()),
                mime_type: Some("text/plain".into()),
            },
        ];
        let spec = ToolSpec::new("t", "d");
        let mut ours = result(blocks.clone());
        ours.metadata.insert("pages".to_owned(), json!(3));
        let output = read_result(write_result(ours, &spec)).unwrap();
        assert_eq!(output.content, blocks);
        assert_eq!(output.metadata["pages"], json!(3));
    }

    #[test]
    fn structured_results_are_objects_and_match_the_listed_schema() {
        let mut spec = ToolSpec::new("t", "d");
        let answer = write_result(result(vec![Content::json(json!({"a": 1}))]), &spec);
        assert_eq!(answer["structuredContent"], json!({"a": 1}));
        assert_eq!(answer["content"], json!([{"type": "text", "text": "{\"a\":1}"}]));
        assert_eq!(
            write_result(result(vec![Content::json(json!([1]))]), &spec).get("structuredContent"),
            None
        );
        spec.output_schema = Some(json!({"type": "integer"}));
        let answer = write_result(result(vec![Content::json(json!(5))]), &spec);
        assert_eq!(answer["structuredContent"], json!({"result": 5}));
    }

    #[test]
    fn a_failed_call_is_the_tools_own_error_with_its_text() {
        let answer = json!({"isError": true, "content": [
            {"type": "text", "text": "no such city"}, {"type": "text", "text": "try Paris"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"}
        ]});
        let error = read_result(answer).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unknown, "no such city\n\ntry Paris"));
        assert_eq!(error.partial().unwrap().content.len(), 1);
    }

    #[test]
    fn a_result_that_was_cut_promises_nothing() {
        let cut = |schema: Option<Value>| {
            let mut spec = ToolSpec::new("t", "d");
            spec.output_schema = schema;
            let mut result = result(vec![Content::text("[1, 2, … 9]")]);
            result.truncated = Some(Truncation { original: 900, limit: 10 });
            keep_promise(&mut result, &spec);
            write_result(result, &spec)
        };
        for schema in [json!({"type": "object"}), json!({"type": "array"})] {
            let answer = cut(Some(schema));
            assert_eq!((&answer["isError"], answer.get("structuredContent")), (&json!(true), None));
            assert_eq!(answer["content"][0]["text"], "[1, 2, … 9]");
            assert!(answer["content"][1]["text"].as_str().unwrap().contains("output_limit"), "{answer}");
        }
        let text = cut(Some(json!({"type": "string"})));
        assert_eq!(text["structuredContent"], json!({"result": "[1, 2, … 9]"}));
        assert_eq!(cut(None)["isError"], json!(false));
    }

    #[test]
    fn what_a_server_says_beside_its_blocks_comes_out_again() {
        let about = json!({"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"});
        let content = json!([
            {"type": "text", "text": "t", "annotations": about, "_meta": {"m": 1}},
            {"type": "text", "text": "plain"},
            {"type": "image", "data": "AA==", "mimeType": "image/png", "annotations": about},
            {"type": "resource", "annotations": about,
             "resource": {"uri": "file:///a.csv", "mimeType": "text/csv", "text": "a,b", "_meta": {"r": 1}}},
            {"type": "resource", "resource": {"uri": "x://b", "mimeType": "image/png", "blob": "AA=="}},
            {"type": "resource_link", "uri": "x://l", "name": "l", "title": "T", "size": 5, "annotations": about,
             "icons": [{"src": "https://x"}]},
        ]);
        let answer = json!({"content": content, "isError": false, "_meta": {"top": 1}});
        let output = read_result(answer.clone()).unwrap();
        let mut ours = result(output.content);
        ours.extras = Some(Box::new(output.extras));
        assert_eq!(write_result(ours, &ToolSpec::new("t", "d")), answer);
    }

    #[test]
    fn null_is_read_as_what_is_not_there() {
        let answer = json!({"content": null, "isError": null, "_meta": null, "structuredContent": {"a": 1}});
        assert_eq!(read_result(answer).unwrap().structured, Some(json!({"a": 1})));
        let answer = json!({"content": [{"type": "text", "text": "hi"}], "resultType": null, "_meta": null});
        assert_eq!(read_result(answer).unwrap().to_text(), "hi");
    }

    #[test]
    fn an_unknown_kind_of_block_is_kept_as_json() {
        let block = json!({"type": "hologram", "data": "x"});
        let output = read_result(json!({"content": [block.clone(), {"type": "text"}, 3]})).unwrap();
        assert_eq!(
            output.content,
            [Content::json(block), Content::json(json!({"type": "text"})), Content::json(json!(3))]
        );
    }

    #[test]
    fn an_embedded_text_stays_text_and_names_its_source() {
        let block = json!({"type": "resource", "resource": {"uri": "file:///a.md", "text": "# A"}});
        let output = read_result(json!({"content": [block]})).unwrap();
        let Content::Text { text, citations } = &output.content[0] else { panic!("{output:?}") };
        assert_eq!((text.as_str(), citations[0].url.as_str()), ("# A", "file:///a.md"));
    }
}
