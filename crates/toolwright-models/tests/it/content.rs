//! The table of content: what it promises is what the encoders do.

use serde_json::{Value, json};
use toolwright_core::{AssistantMessage, Content, ErrorInfo, ErrorKind, Message, ToolCall, ToolResult};
use toolwright_models::wire::Delivery;
use toolwright_models::wire::content::{ContentKind, Placement, reference, rule};

use crate::support::{Conversation, FORMATS, matches_file, target, vendor};

/// A mark that the content carries, to find it again: as text, and as the base64 of media.
const MARK: &str = "bWFyaw==";

fn result(kind: ContentKind) -> ToolResult {
    let mut result = ToolResult {
        call_id: "c".into(),
        name: "f".into(),
        content: Vec::new(),
        structured: None,
        metadata: Default::default(),
        extras: Default::default(),
        error: None,
        truncated: None,
        confidential: false,
    };
    match kind {
        ContentKind::Text => result.content.push(Content::text(MARK)),
        ContentKind::Json => result.content.push(Content::json(json!({"k": MARK}))),
        ContentKind::Image => result.content.push(Content::image("image/png", b"mark")),
        ContentKind::Audio => result.content.push(Content::audio("audio/wav", b"mark")),
        ContentKind::Video => result.content.push(Content::video("video/mp4", b"mark")),
        ContentKind::Document => result.content.push(Content::document("application/pdf", "d.pdf", b"mark")),
        ContentKind::Link => result.content.push(Content::link("https://x/y", MARK)),
        ContentKind::Error => {
            result.error = Some(ErrorInfo { kind: ErrorKind::Unknown, message: MARK.into(), hint: None });
        }
        ContentKind::Metadata => {
            result.metadata.insert("k".into(), MARK.into());
        }
    }
    result
}

/// The part of a request that is the tool's result, and what comes after it.
fn parts(name: &str, body: &Value) -> (Value, Value) {
    match name {
        "anthropic" => (body["messages"][2]["content"][0].clone(), body["messages"][2]["content"][1].clone()),
        "bedrock-invoke" => parts("anthropic", body),
        "bedrock" => (
            body["messages"][2]["content"][0].clone(),
            body["messages"][2]["content"].as_array().unwrap().iter().skip(1).cloned().collect(),
        ),
        "openai-chat" => (body["messages"][2].clone(), body["messages"][3].clone()),
        "openai" => (body["input"][2].clone(), body["input"][3].clone()),
        _ => (body["contents"][2].clone(), body["contents"][3].clone()),
    }
}

/// Whether the mark is inside a text, rather than a value or block of its own.
fn in_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(MARK) && text != MARK && !text.starts_with("data:"),
        Value::Array(items) => items.iter().any(in_text),
        Value::Object(map) => map.values().any(in_text),
        _ => false,
    }
}

#[test]
fn every_kind_goes_where_the_table_says() {
    for (name, _) in FORMATS {
        for kind in ContentKind::ALL {
            let call = ToolCall::new("c", "f", json!({}));
            let conversation = Conversation::of([
                Message::user("x"),
                Message::Assistant(AssistantMessage::calls([call])),
                Message::Tool(result(kind)),
            ]);
            let wire = vendor(name).wire;
            let body = wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap();
            let (inside, after) = parts(name, &body);
            let (has, follows) = (inside.to_string().contains(MARK), after.to_string().contains(MARK));
            let what = format!("{name} {kind:?}: {body}");
            match rule(wire, kind).place {
                Placement::Native => {
                    assert!(has && !follows, "{what}");
                    let flagged =
                        inside.get("is_error").is_some() || inside.pointer("/toolResult/status").is_some();
                    assert!(!in_text(&inside) || flagged, "{what}");
                }
                Placement::Text => assert!(in_text(&inside) && !follows, "{what}"),
                Placement::Follow => {
                    assert!(!has && follows, "{what}");
                    assert!(inside.to_string().contains("included below"), "{what}");
                }
                Placement::Described => {
                    assert!(!has && !follows, "{what}");
                    assert!(inside.to_string().contains("cannot be shown to this model"), "{what}");
                }
            }
        }
    }
}

/// Gemini before 3 refuses a request whose results hold media, and so may a model whose name says nothing.
#[test]
fn media_follows_the_results_for_a_model_that_takes_none_inside() {
    let encoded = |model: &str, content: Content| {
        let call = ToolCall::new("c", "f", json!({}));
        let conversation = Conversation::of([
            Message::user("x"),
            Message::Assistant(AssistantMessage::calls([call])),
            Message::Tool(ToolResult { content: vec![content], ..result(ContentKind::Text) }),
            Message::user("and?"),
        ]);
        let google = vendor("google");
        let target = toolwright_models::wire::ModelTarget { vendor: google, model };
        let body = google.wire.encode(target, &conversation.request(), Delivery::Whole).unwrap();
        body["contents"].as_array().unwrap()[2..].to_vec()
    };
    let png = || Content::image("image/png", b"mark");
    let pdf = || Content::document("application/pdf", "d.pdf", b"mark");
    for (model, content, inside) in [
        ("gemini-2.5-pro", png(), false),
        ("models/gemini-2.0-flash", pdf(), false),
        ("gemini-flash-latest", png(), false),
        ("my-proxy-model", png(), false),
        ("gemini-3-pro-preview", png(), true),
        ("models/gemini-3.1-flash", pdf(), true),
        ("gemini-3-pro-preview", Content::image("image/heic", b"mark"), false),
        ("gemini-3-pro-preview", Content::document("text/csv", "d.csv", b"mark"), false),
    ] {
        let sent = encoded(model, content);
        assert_eq!(sent.len(), 2, "{model}: what is said after results is a message of its own");
        let response = &sent[0]["parts"][0]["functionResponse"];
        assert_eq!(response.get("parts").is_some(), inside, "{model}: {response}");
        assert_eq!(response.to_string().contains("included below"), !inside, "{model}: {response}");
        let follows: Vec<&Value> = sent[1]["parts"].as_array().unwrap().iter().collect();
        assert_eq!(follows.len(), if inside { 1 } else { 3 }, "{model}: {follows:?}");
        assert_eq!(follows.iter().any(|part| part["inlineData"]["data"] == MARK), !inside, "{model}");
    }
}

/// Claude refuses a failed result that holds anything but text, and the conversation could not go on.
#[test]
fn media_of_a_failed_result_follows_all_results() {
    for name in ["anthropic", "bedrock-invoke", "bedrock"] {
        let calls = ["c", "d"].map(|id| ToolCall::new(id, "f", json!({})));
        let mut failed = result(ContentKind::Image);
        failed.content.push(Content::document("application/pdf", "d.pdf", b"mark"));
        failed.error = result(ContentKind::Error).error;
        let conversation = Conversation::of([
            Message::user("x"),
            Message::Assistant(AssistantMessage::calls(calls)),
            Message::Tool(failed),
            Message::Tool(ToolResult { call_id: "d".into(), ..result(ContentKind::Image) }),
        ]);
        let body = vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap();
        let blocks = body["messages"][2]["content"].as_array().unwrap();
        let kinds: Vec<Value> = blocks
            .iter()
            .map(|block| match block.get("type") {
                Some(kind) => kind.clone(),
                None => block.as_object().unwrap().keys().next().unwrap().clone().into(),
            })
            .collect();
        let results = if name == "bedrock" { "toolResult" } else { "tool_result" };
        assert_eq!(kinds, [results, results, "text", "image", "document"], "{name}");
        let inside = |at: usize| match name {
            "bedrock" => blocks[at]["toolResult"]["content"].to_string(),
            _ => blocks[at]["content"].to_string(),
        };
        assert!(inside(0).contains("[image (image/png): included below]"), "{name}: {}", inside(0));
        assert!(
            !inside(0).contains("\"image\"") && !inside(0).contains("\"document\""),
            "{name}: {}",
            inside(0)
        );
        assert!(inside(1).contains("\"image\""), "one that did not fail keeps its picture: {name}");
        assert_eq!(blocks[2]["text"], "[content of the result of `f`, call c]");
    }
}

#[test]
fn what_a_tool_explains_follows_its_explanation_in_chat_completions() {
    let encoded = |result: ToolResult, vendor: &str| {
        let call = ToolCall::new("c", "f", json!({}));
        let messages = [Message::Assistant(AssistantMessage::calls([call])), Message::Tool(result)];
        let conversation = Conversation::of(messages);
        let wire = crate::support::vendor(vendor).wire;
        let body = wire.encode(target(vendor), &conversation.request(), Delivery::Whole).unwrap();
        body["messages"].as_array().unwrap()[1..].to_vec()
    };
    let mut weather = result(ContentKind::Json);
    weather.metadata.insert("note".into(), "Weather data for Boston".into());
    let told = |metadata: &str| {
        json!([
            {"role": "tool", "tool_call_id": "c", "content":
                format!("Tool execution completed. Metadata: {metadata}\nIts content is in the next message.")},
            {"role": "user", "content": "[content of the result of `f`, call c]\n{\"k\":\"bWFyaw==\"}"},
        ])
    };
    assert_eq!(json!(encoded(weather.clone(), "openai-chat")), told("Weather data for Boston"));
    let mut facts = weather.clone();
    facts.metadata.insert("unit".into(), "F".into());
    let wanted = told(r#"{"note":"Weather data for Boston","unit":"F"}"#);
    assert_eq!(json!(encoded(facts, "openai-chat")), wanted);
    // One message without an explanation, with nothing to explain, for an error, and where parts are taken.
    assert_eq!(encoded(result(ContentKind::Json), "openai-chat").len(), 1);
    assert_eq!(encoded(result(ContentKind::Metadata), "openai-chat").len(), 1);
    let mut failed = result(ContentKind::Error);
    failed.metadata.clone_from(&weather.metadata);
    failed.content.push(Content::text("partial"));
    assert_eq!(encoded(failed, "openai-chat").len(), 1);
    assert_eq!(encoded(weather, "mistral").len(), 1);
}

#[test]
fn a_note_is_told_in_its_own_words() {
    for (name, _) in FORMATS {
        let mut explained = result(ContentKind::Json);
        explained.metadata.insert("note".into(), "Weather data for \"Boston\"".into());
        explained.error = Some(ErrorInfo { kind: ErrorKind::Unknown, message: "e".into(), hint: None });
        let call = ToolCall::new("c", "f", json!({}));
        let messages = [Message::Assistant(AssistantMessage::calls([call])), Message::Tool(explained)];
        let conversation = Conversation::of(messages);
        let body = vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap();
        // As a text in the request, escaped once.
        assert!(body.to_string().contains(r#"Weather data for \"Boston\""#), "{name}: {body}");
    }
}

#[test]
fn a_result_that_holds_nothing_says_so() {
    for (name, _) in FORMATS {
        for content in [vec![], vec![Content::text("")]] {
            let mut empty = result(ContentKind::Text);
            empty.content = content;
            let call = ToolCall::new("c", "f", json!({}));
            let messages = [Message::Assistant(AssistantMessage::calls([call])), Message::Tool(empty)];
            let conversation = Conversation::of(messages);
            let body =
                vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap();
            assert!(body.to_string().contains("(done, no output)"), "{name}: {body}");
        }
    }
}

#[test]
fn the_reference_page_is_fresh() {
    matches_file("docs/reference/content.md", &reference());
}

#[test]
fn the_guide_names_every_vendor_and_its_key() {
    let guide = std::fs::read_to_string(crate::support::file("docs/guide/models.md")).unwrap();
    for vendor in toolwright_models::vendor::VENDORS {
        let row = guide.lines().find(|line| line.starts_with(&format!("| `{}` |", vendor.name)));
        let row = row.unwrap_or_else(|| panic!("{} is not in the guide", vendor.name));
        let keyed = vendor.key_variables.iter().all(|name| row.contains(name));
        let local = row.contains("none needed");
        assert!(keyed || local, "{row}");
    }
}

#[test]
fn the_page_of_prices_is_fresh() {
    matches_file("docs/reference/prices.md", &toolwright_models::price::reference());
}

#[test]
fn the_page_of_dialects_is_fresh() {
    matches_file("docs/reference/dialects.md", &toolwright_models::dialect::reference());
}
