//! MCP's results and ours, each way.
//!
//! From a server: text, images, sounds, embedded resources, links and structured content each become one of
//! our blocks; an unknown kind is kept as JSON. Members that our blocks have no place for (the audience of a
//! block, its `_meta`, the size of a link, the media type of an embedded text) travel in the `extras` of the
//! result, which no model is sent, and come out again where the result is served. To a client: what MCP has
//! no member for travels in `_meta`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use toolwright_core::schema::Schema;
use toolwright_core::{
    Citation, Content, ErrorInfo, ErrorKind, Media, MediaSource, ToolError, ToolOutput, ToolResult, ToolSpec,
    Truncation,
};

use crate::protocol::{
    AudioBlock, CITATIONS_KEY, CallAnswer, CallResult, ContentBlock, EmbeddedResource, ImageBlock, JSON_KEY,
    LinkBlock, METADATA_KEY, ResourceBlock, TextBlock, is_object_schema, wrapped_schema,
};

/// The most blocks of a result that are read.
const MAX_BLOCKS: usize = 10_000;

/// The prefix of the protocol's own keys in `_meta`.
const RESERVED: &str = "io.modelcontextprotocol/";

/// The text of a result that is null. Gemini CLI takes the text `null` for a broken structured result.
const NO_OUTPUT: &str = "(no output)";

/// The address of an embedded file that has none of its own.
const RESOURCE_SCHEME: &str = "toolwright:///";

/// Reads a server's answer to `tools/call`: an output, or the tool's own error.
pub(crate) fn read_result(answer: Value) -> Result<ToolOutput, ToolError> {
    let answer = CallAnswer::read(answer)
        .map_err(|problem| ToolError::new(format!("the server's result is not a tool result: {problem}")))?;
    if let Some(kind) = &answer.other_type {
        return Err(ToolError::new(format!("the server asks for `{kind}`, which is not offered to it")));
    }
    let mut content = answer.content;
    content.truncate(MAX_BLOCKS);
    let (blocks, beside): (Vec<Content>, Vec<Value>) = content.into_iter().map(read_parts).unzip();
    let mut output = ToolOutput::blocks(blocks);
    let meta = own(&answer.meta);
    if !meta.is_empty() {
        output.extras.insert("_meta".to_owned(), meta.into());
    }
    if !beside.iter().all(Value::is_null) {
        output.extras.insert("content".to_owned(), beside.into());
    }
    output.structured = answer.structured_content;
    if let Some(Value::Object(metadata)) = answer.meta.get(METADATA_KEY) {
        output.metadata = metadata.clone();
    }
    if answer.is_error {
        return Err(read_error(output));
    }
    if output.content.is_empty()
        && let Some(value) = &output.structured
    {
        output.content.push(Content::json(value.clone()));
    }
    Ok(output)
}

/// The text of the error is what the server wrote; other blocks stay with it as partial output.
fn read_error(output: ToolOutput) -> ToolError {
    let texts: Vec<_> = output.content.iter().filter_map(Content::as_text).collect();
    let message = match texts.join("\n\n") {
        empty if empty.is_empty() => "the tool failed without a message".to_owned(),
        message => message,
    };
    let rest: Vec<Content> =
        output.content.iter().filter(|block| block.as_text().is_none()).cloned().collect();
    let error = ToolError::new(message);
    if rest.is_empty() { error } else { error.with_partial(ToolOutput::blocks(rest)) }
}

/// Reads one block of content.
pub(crate) fn read_block(block: Value) -> Content {
    read_parts(block).0
}

/// Reads one block, and the members for which our block has no place; `null` when there are none.
fn read_parts(block: Value) -> (Content, Value) {
    match ContentBlock::read(block) {
        Err(block) => (Content::json(block), Value::Null),
        Ok(block) => {
            let (content, beside) = content(block);
            (content, if beside.is_empty() { Value::Null } else { beside.into() })
        }
    }
}

/// Our block and the members beside it.
fn content(block: ContentBlock) -> (Content, Map<String, Value>) {
    let media = |block: ImageBlock| Media {
        source: MediaSource::Data(block.data),
        mime_type: block.mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        name: None,
        detail: None,
    };
    match block {
        ContentBlock::Text(TextBlock { text, mut beside }) => {
            let citations = citations(&beside);
            let is_json = beside.get("_meta").and_then(|meta| meta.get(JSON_KEY)) == Some(&Value::Bool(true));
            keep_own(&mut beside);
            let value = if text == NO_OUTPUT { Some(Value::Null) } else { serde_json::from_str(&text).ok() };
            match value.filter(|_| is_json) {
                Some(value) => (Content::Json { value }, beside),
                None => (Content::Text { text, citations }, beside),
            }
        }
        ContentBlock::Image(mut block) => {
            let mut beside = std::mem::take(&mut block.beside);
            keep_own(&mut beside);
            (Content::Image(media(block)), beside)
        }
        ContentBlock::Audio(mut block) => {
            let mut beside = std::mem::take(&mut block.beside);
            keep_own(&mut beside);
            (Content::Audio(media(block)), beside)
        }
        ContentBlock::Resource(ResourceBlock { mut resource, mut beside }) => {
            let (text, blob) = (resource.text.take(), resource.blob.take());
            let about = serde_json::to_value(&resource).unwrap_or_default();
            keep_own(&mut beside);
            beside.insert("resource".to_owned(), about);
            (embedded(resource, text, blob.unwrap_or_default()), beside)
        }
        ContentBlock::ResourceLink(link) => {
            let LinkBlock { uri, name, description, mime_type, mut beside } = link;
            keep_own(&mut beside);
            let name = name.unwrap_or_else(|| uri.clone());
            (Content::ResourceLink { uri, name, description, mime_type }, beside)
        }
    }
}

/// An embedded resource. Text stays readable and keeps its address as a citation; a text file of ours stays a
/// file.
fn embedded(resource: EmbeddedResource, text: Option<String>, blob: String) -> Content {
    let EmbeddedResource { uri, mime_type, beside, .. } = resource;
    if let Some(text) = text {
        if let Some(name) = uri.strip_prefix(RESOURCE_SCHEME) {
            let mime_type = mime_type.unwrap_or_else(|| "text/plain".to_owned());
            return Content::document(mime_type, name, text.as_bytes());
        }
        let title = beside.get("name").and_then(Value::as_str).map(str::to_owned);
        return Content::Text { text, citations: vec![Citation { url: uri, title, quote: None }] };
    }
    let name = uri.strip_prefix(RESOURCE_SCHEME).map_or(uri.clone(), str::to_owned);
    let media = Media {
        source: MediaSource::Data(blob),
        name: (!name.is_empty()).then_some(name),
        detail: None,
        mime_type: mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
    };
    match media.mime_type.split('/').next() {
        Some("image") => Content::Image(media),
        Some("audio") => Content::Audio(media),
        Some("video") => Content::Video(media),
        _ => Content::Document(media),
    }
}

fn citations(beside: &Map<String, Value>) -> Vec<Citation> {
    let found = beside.get("_meta").and_then(|meta| meta.get(CITATIONS_KEY));
    found.and_then(|found| serde_json::from_value(found.clone()).ok()).unwrap_or_default()
}

/// Reduces the `_meta` of a block to the members that are neither ours nor the protocol's.
fn keep_own(beside: &mut Map<String, Value>) {
    if let Some(Value::Object(meta)) = beside.get("_meta") {
        let meta = own(meta);
        match meta.is_empty() {
            true => beside.shift_remove("_meta"),
            false => beside.insert("_meta".to_owned(), meta.into()),
        };
    }
}

/// The members of `_meta` that are neither ours nor the protocol's.
fn own(meta: &Map<String, Value>) -> Map<String, Value> {
    let foreign =
        |key: &str| ![METADATA_KEY, CITATIONS_KEY, JSON_KEY].contains(&key) && !key.starts_with(RESERVED);
    meta.iter().filter(|(key, _)| foreign(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The icons and `_meta` of a listed tool. Entries that point to pages of the server for a client to show are
/// left out: they are not served on, and nobody has approved them.
pub(crate) fn tool_extras(icons: Option<Value>, meta: Option<Value>) -> Map<String, Value> {
    let icons = icons.filter(|icons| icons.as_array().is_some_and(|icons| !icons.is_empty()));
    let mut meta = meta.as_ref().and_then(Value::as_object).map(own).unwrap_or_default();
    meta.retain(|_, value| !names_page(value));
    let meta = Some(meta).filter(|meta| !meta.is_empty());
    let icons = icons.map(|icons| ("icons".to_owned(), icons));
    icons.into_iter().chain(meta.map(|meta| ("_meta".to_owned(), meta.into()))).collect()
}

/// True when the address of a page is somewhere in the value.
fn names_page(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with("ui://"),
        Value::Array(items) => items.iter().any(names_page),
        Value::Object(members) => members.values().any(names_page),
        _ => false,
    }
}

/// The answer to `tools/call` for one of our results, and its `_meta`.
pub(crate) fn write_result(result: ToolResult, spec: &ToolSpec) -> (CallResult, Map<String, Value>) {
    let failed = result.error.is_some();
    let structured_content = structured(&result, spec).filter(|_| !failed);
    let mut extras = result.extras.map(|extras| *extras).unwrap_or_default();
    // A result that was shortened has other blocks than the extras were read with.
    let beside = match extras.remove("content") {
        Some(Value::Array(beside)) if beside.len() == result.content.len() => beside,
        _ => Vec::new(),
    };
    let beside = beside.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
    let mut content: Vec<ContentBlock> =
        result.content.into_iter().zip(beside).map(|(block, beside)| write_parts(block, beside)).collect();
    if let Some(error) = &result.error {
        content.push(ContentBlock::text(error.to_json().to_string()));
    }
    let mut meta = match extras.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    if !result.metadata.is_empty() {
        meta.insert(METADATA_KEY.to_owned(), result.metadata.into());
    }
    (CallResult { content, is_error: failed, structured_content }, meta)
}

/// Turns a result that was cut into an error, if what is left no longer matches the output schema: clients
/// refuse such an answer, and would not see what is left of it.
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

/// Moves a structured result that no schema asks for into the text, where there are pictures or files beside
/// it: some clients give their model the structured result alone, and the rest would be lost.
pub(crate) fn keep_pictures(result: &mut CallResult, spec: &ToolSpec) {
    let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
    if spec.output_schema.is_some() || result.content.iter().all(is_text) {
        return;
    }
    let Some(value) = result.structured_content.take() else { return };
    let text = value.to_string();
    let is_said = |block: &ContentBlock| matches!(block, ContentBlock::Text(block) if block.text == text);
    if !result.content.iter().any(is_said) {
        result.content.push(ContentBlock::text(text));
    }
}

/// Adds what a client would otherwise not know: that there is no value, and that the result was cut, once
/// more as its last line. Some clients cut the middle out of a long text, and with it the notice that stands
/// there; Codex leaves out further blocks as well.
pub(crate) fn say_what_is_missing(result: &mut CallResult, cut: Option<&Truncation>) {
    if result.content.is_empty() && result.structured_content.is_none() {
        result.content.push(write_block(Content::json(Value::Null)));
    }
    if let Some(Truncation { original, limit, .. }) = cut {
        let notice = format!("[the result has {original} bytes and was cut to {limit}]");
        match result.content.last_mut() {
            Some(ContentBlock::Text(last)) if last.beside.is_empty() => {
                last.text.push_str(if last.text.ends_with('\n') { "" } else { "\n" });
                last.text.push_str(&notice);
            }
            _ => result.content.push(ContentBlock::text(notice)),
        }
    }
}

/// Writes one block, with the members that came beside it.
fn write_parts(block: Content, beside: Option<Value>) -> ContentBlock {
    let Some(Value::Object(mut more)) = beside else { return write_block(block) };
    let mut written = match more.remove("resource") {
        Some(Value::Object(about)) => match resource(about, block) {
            Ok(resource) => ContentBlock::Resource(ResourceBlock { resource, beside: Map::new() }),
            // It was read from a resource, but is no longer one.
            Err(block) => return write_block(block),
        },
        _ => write_block(block),
    };
    for (key, value) in more {
        match (written.beside_mut().get_mut(&key), value) {
            (Some(Value::Object(there)), Value::Object(more)) => there.extend(more),
            (_, value) => {
                written.beside_mut().insert(key, value);
            }
        }
    }
    written
}

/// The embedded resource that one of our blocks was read from; the block, when it cannot be that any more.
fn resource(about: Map<String, Value>, block: Content) -> Result<EmbeddedResource, Content> {
    let mut resource = EmbeddedResource::read(about);
    match block {
        Content::Text { text, .. } => resource.text = Some(text),
        Content::Image(Media { source: MediaSource::Data(blob), .. })
        | Content::Audio(Media { source: MediaSource::Data(blob), .. })
        | Content::Video(Media { source: MediaSource::Data(blob), .. })
        | Content::Document(Media { source: MediaSource::Data(blob), .. }) => resource.blob = Some(blob),
        other => return Err(other),
    }
    Ok(resource)
}

/// Writes one block.
pub(crate) fn write_block(block: Content) -> ContentBlock {
    match block {
        Content::Text { text, citations } if citations.is_empty() => ContentBlock::text(text),
        Content::Text { text, citations } => {
            let meta = json!({CITATIONS_KEY: citations});
            ContentBlock::Text(TextBlock { text, beside: Map::from_iter([("_meta".to_owned(), meta)]) })
        }
        // An object travels as the structured result.
        Content::Json { value } if value.is_object() => ContentBlock::text(value.to_string()),
        Content::Json { value } => {
            let meta = json!({JSON_KEY: true});
            let beside = Map::from_iter([("_meta".to_owned(), meta)]);
            let text = if value.is_null() { NO_OUTPUT.to_owned() } else { value.to_string() };
            ContentBlock::Text(TextBlock { text, beside })
        }
        Content::Image(Media { source: MediaSource::Data(data), mime_type, .. }) => {
            ContentBlock::Image(ImageBlock { data, mime_type: Some(mime_type), beside: Map::new() })
        }
        Content::Audio(Media { source: MediaSource::Data(data), mime_type, .. }) => {
            ContentBlock::Audio(AudioBlock { data, mime_type: Some(mime_type), beside: Map::new() })
        }
        Content::Image(media) | Content::Audio(media) | Content::Video(media) | Content::Document(media) => {
            write_file(media)
        }
        Content::ResourceLink { uri, name, description, mime_type } => {
            let beside = title_of(&name);
            ContentBlock::ResourceLink(LinkBlock { uri, name: Some(name), description, mime_type, beside })
        }
        Content::Reasoning { text, .. } => ContentBlock::text(text),
        // A block that is newer than this crate still reaches the client.
        other => ContentBlock::text(serde_json::to_string(&other).unwrap_or_default()),
    }
}

/// Writes a file: one with an address as a link, any other as an embedded resource.
fn write_file(media: Media) -> ContentBlock {
    let name = media.name.unwrap_or_default();
    let mime_type = Some(media.mime_type);
    let blob = match media.source {
        MediaSource::Url(uri) => {
            let name = if name.is_empty() { uri.clone() } else { name };
            let beside = title_of(&name);
            return ContentBlock::ResourceLink(LinkBlock {
                uri,
                name: Some(name),
                description: None,
                mime_type,
                beside,
            });
        }
        MediaSource::Data(blob) => blob,
    };
    let uri = if name.contains("://") { name } else { format!("{RESOURCE_SCHEME}{name}") };
    let is_text = mime_type.as_ref().is_some_and(|mime_type| mime_type.starts_with("text/"));
    let (text, blob) = match is_text.then(|| decoded(&blob)).flatten() {
        Some(text) => (Some(text), None),
        None => (None, Some(blob)),
    };
    let resource = EmbeddedResource { uri, mime_type, text, blob, beside: Map::new() };
    ContentBlock::Resource(ResourceBlock { resource, beside: Map::new() })
}

/// The `title` of a link: some clients show it alone.
fn title_of(name: &str) -> Map<String, Value> {
    Map::from_iter([("title".to_owned(), name.into())])
}

/// The text that Base64 encodes, if it is valid UTF-8.
fn decoded(blob: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(blob).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright_core::ToolCall;

    fn result(content: Vec<Content>) -> ToolResult {
        let call = ToolCall::new("1", "t", json!({}));
        let info = ErrorInfo { kind: ErrorKind::Unknown, message: String::new(), hint: None };
        ToolResult { content, error: None, ..ToolResult::failed(&call, info) }
    }

    /// The answer as it is sent.
    fn write_result(result: ToolResult, spec: &ToolSpec) -> Value {
        let (result, meta) = super::write_result(result, spec);
        let body = crate::protocol::ResultBody::CallTool(result);
        let message = crate::protocol::ResultMessage { meta, ..body.into() };
        serde_json::to_value(message).unwrap()
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
    fn json_without_an_output_schema_keeps_its_type() {
        let spec = ToolSpec::new("t", "d");
        for value in [json!(10.0), json!([1, "a"]), json!(true), json!("10"), json!(null), json!({"a": 1})] {
            let output =
                read_result(write_result(result(vec![Content::json(value.clone())]), &spec)).unwrap();
            assert_eq!(output.value(), value);
        }
        let text = read_result(write_result(result(vec![Content::text("10")]), &spec)).unwrap();
        assert_eq!(text.content, [Content::text("10")]);
    }

    #[test]
    fn picture_is_not_hidden_behind_a_structured_result() {
        let mut spec = ToolSpec::new("t", "d");
        let written = |content: Vec<Content>, spec: &ToolSpec| {
            let mut seen = result(content);
            seen.structured = Some(json!({"a": 1}));
            let (mut written, _) = super::write_result(seen, spec);
            keep_pictures(&mut written, spec);
            serde_json::to_value(written).unwrap()
        };
        let picture = Content::image("image/png", b"\x89PNG");
        let value = json!({"type": "text", "text": "{\"a\":1}"});
        for content in [vec![picture.clone()], vec![picture.clone(), Content::json(json!({"a": 1}))]] {
            let answer = written(content, &spec);
            assert_eq!(answer.get("structuredContent"), None);
            assert_eq!(answer["content"].as_array().unwrap().len(), 2);
            assert_eq!(answer["content"][1], value);
        }
        assert_eq!(written(vec![Content::text("one")], &spec)["structuredContent"], json!({"a": 1}));
        spec.output_schema = Some(json!({"type": "object"}));
        assert_eq!(written(vec![picture], &spec)["structuredContent"], json!({"a": 1}));
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
    fn cut_or_empty_result_says_so_at_its_end() {
        let spec = ToolSpec::new("t", "d");
        let written = |content: Vec<Content>, cut: Option<Truncation>| {
            let (mut written, _) = super::write_result(result(content), &spec);
            say_what_is_missing(&mut written, cut.as_ref());
            serde_json::to_value(written).unwrap()
        };
        let empty = written(Vec::new(), None);
        assert_eq!(empty["content"][0]["text"], NO_OUTPUT);
        assert_eq!(read_result(empty).unwrap().value(), Value::Null);
        let cut = written(vec![Content::text("a … z")], Some(Truncation { original: 900, limit: 10 }));
        assert_eq!(cut["content"][0]["text"], "a … z\n[the result has 900 bytes and was cut to 10]");
        assert_eq!(written(vec![Content::text("")], None)["content"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn link_has_a_title() {
        let link = Content::ResourceLink {
            uri: "file:///a".into(),
            name: "a".into(),
            description: None,
            mime_type: None,
        };
        let answer = write_result(result(vec![link]), &ToolSpec::new("t", "d"));
        assert_eq!(answer["content"][0]["title"], "a");
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
