//! Requests, compared as whole JSON values.

use serde_json::{Value, json};
use toolwright_core::{AssistantMessage, Message, ModelErrorKind, ToolCall, ToolChoice};
use toolwright_models::vendor::VENDORS;
use toolwright_models::wire::{Delivery, ModelTarget, Wire};

use crate::support::{Conversation, FORMATS, json, matches_file, target, vendor};

fn encode(name: &str, conversation: &Conversation, delivery: Delivery) -> Value {
    vendor(name).wire.encode(target(name), &conversation.request(), delivery).unwrap()
}

#[test]
fn a_conversation_with_everything_becomes_the_request_on_file() {
    let conversation: Conversation = serde_json::from_value(json("testdata/wire/conversation.json")).unwrap();
    for (name, folder) in FORMATS {
        let body = encode(name, &conversation, Delivery::Whole);
        let text = serde_json::to_string_pretty(&body).unwrap() + "\n";
        matches_file(&format!("testdata/wire/{folder}/request.json"), &text);
    }
}

#[test]
fn a_plain_question_is_as_small_as_can_be() {
    let plain = Conversation::of([Message::user("x")]);
    let part = json!([{"type": "text", "text": "x"}]);
    let wanted = [
        json!({"model": "m", "max_tokens": 8192, "messages": [{"role": "user", "content": part}]}),
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}]}),
        json!({"model": "m", "store": false, "include": ["reasoning.encrypted_content"], "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}]}),
        json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}]}),
        json!({"messages": [{"role": "user", "content": [{"text": "x"}]}]}),
        json!({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 8192,
            "messages": [{"role": "user", "content": part}]}),
    ];
    for ((name, _), wanted) in FORMATS.iter().zip(wanted) {
        assert_eq!(encode(name, &plain, Delivery::Whole), wanted, "{name}");
    }
    let streamed = encode("openai-chat", &plain, Delivery::Stream);
    assert_eq!(streamed["stream_options"], json!({"include_usage": true}));
    assert_eq!(encode("anthropic", &plain, Delivery::Stream)["stream"], true);
    assert_eq!(encode("mistral", &plain, Delivery::Stream).get("stream_options"), None);
}

#[test]
fn every_choice_of_tool_has_its_words() {
    let mut conversation = Conversation::of([Message::user("x")]);
    conversation.tools.push(toolwright_core::ToolSpec::new("a.b", "d"));
    let mut words = |name: &str, pointer: &str| {
        [ToolChoice::Auto, ToolChoice::Any, ToolChoice::None, ToolChoice::Tool("a.b".into())].map(|choice| {
            conversation.tool_choice = choice;
            encode(name, &conversation, Delivery::Whole).pointer(pointer).cloned().unwrap_or_default()
        })
    };
    let null = Value::Null;
    assert_eq!(
        words("anthropic", "/tool_choice"),
        [
            null.clone(),
            json!({"type": "any"}),
            json!({"type": "none"}),
            json!({"type": "tool", "name": "a_b"})
        ]
    );
    let named = json!({"type": "function", "function": {"name": "a_b"}});
    assert_eq!(
        words("openai-chat", "/tool_choice"),
        [null.clone(), json!("required"), json!("none"), named.clone()]
    );
    assert_eq!(words("mistral", "/tool_choice"), [null.clone(), json!("any"), json!("none"), named]);
    assert_eq!(
        words("llama.cpp", "/tool_choice"),
        [null.clone(), json!("required"), json!("none"), json!("required")]
    );
    assert_eq!(
        words("openai", "/tool_choice"),
        [null.clone(), json!("required"), json!("none"), json!({"type": "function", "name": "a_b"})]
    );
    assert_eq!(
        words("bedrock", "/toolConfig/toolChoice"),
        [null.clone(), json!({"any": {}}), null.clone(), json!({"tool": {"name": "a_b"}})]
    );
    assert_eq!(
        words("google", "/toolConfig/functionCallingConfig"),
        [
            null,
            json!({"mode": "ANY"}),
            json!({"mode": "NONE"}),
            json!({"mode": "ANY", "allowedFunctionNames": ["a_b"]})
        ]
    );
}

/// llama.cpp answers 500 to a whole conversation with arguments in it that are no JSON, and templates read
/// objects.
#[test]
fn arguments_that_are_no_object_go_back_inside_one() {
    let cases = [
        (json!("{\"a\": "), json!({"INVALID_JSON": "{\"a\": "})),
        (json!("look at this"), json!({"INVALID_JSON": "look at this"})),
        (json!("[1]"), json!({"INVALID_JSON": "[1]"})),
        (json!("null"), json!({})),
        (json!([1]), json!({"INVALID_JSON": "[1]"})),
        (json!("{\"b\":1, \"a\": 2}"), json!({"b": 1, "a": 2})),
        (json!(" "), json!({})),
        (Value::Null, json!({})),
    ];
    for (arguments, wanted) in cases {
        let call = ToolCall::new("c", "f", arguments.clone());
        let call = Message::Assistant(AssistantMessage::calls([call]));
        let conversation = Conversation::of([Message::user("x"), call]);
        let sent = |name: &str, pointer: &str| {
            let body = encode(name, &conversation, Delivery::Whole);
            body.pointer(pointer).unwrap_or_else(|| panic!("{name}: {body}")).clone()
        };
        for (name, pointer) in [
            ("anthropic", "/messages/1/content/0/input"),
            ("google", "/contents/1/parts/0/functionCall/args"),
            ("bedrock", "/messages/1/content/0/toolUse/input"),
        ] {
            assert_eq!(sent(name, pointer), wanted, "{name}: {arguments}");
        }
        for (name, pointer) in [
            ("llama.cpp", "/messages/1/tool_calls/0/function/arguments"),
            ("openai-chat", "/messages/1/tool_calls/0/function/arguments"),
            ("openai", "/input/1/arguments"),
        ] {
            let text = sent(name, pointer);
            let text = text.as_str().unwrap();
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), wanted, "{name}: {arguments}");
            // What is an object already stays as it was written.
            let written = arguments.as_str().filter(|text| text.contains("\"b\""));
            assert_eq!(written.unwrap_or(text), text);
        }
    }
}

#[test]
fn mistral_gets_ids_of_nine_letters_that_still_match() {
    let call = ToolCall::new("toolu_0123456789", "f", json!({}));
    let result = toolwright_core::ToolResult::failed(&call, toolwright_core::ToolError::new("no").info());
    let conversation = Conversation::of([
        Message::user("x"),
        Message::Assistant(AssistantMessage::calls([call])),
        Message::Tool(result),
    ]);
    let body = encode("mistral", &conversation, Delivery::Whole);
    let id = body.pointer("/messages/1/tool_calls/0/id").and_then(Value::as_str).unwrap();
    assert_eq!(id.len(), 9);
    assert_eq!(body["messages"][2]["tool_call_id"], id);
    assert_eq!(body["messages"][2]["name"], "f");
}

#[test]
fn mistral_gets_pictures_inside_the_result() {
    let call = ToolCall::new("abcdefgh1", "f", json!({}));
    let mut result = toolwright_core::ToolResult::failed(&call, toolwright_core::ToolError::new("no").info());
    result.error = None;
    result.content.push(toolwright_core::Content::image("image/png", b"hi"));
    let call = Message::Assistant(AssistantMessage::calls([call]));
    let conversation = Conversation::of([Message::user("x"), call, Message::Tool(result)]);
    let body = encode("mistral", &conversation, Delivery::Whole);
    assert_eq!(
        body["messages"][2],
        json!({"role": "tool", "tool_call_id": "abcdefgh1", "name": "f", "content": [
            {"type": "text", "text": "[image (image/png): included below]"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ]})
    );
    assert_eq!(body["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn pictures_are_described_to_a_vendor_that_only_reads() {
    let picture = toolwright_core::Content::image("image/png", b"hi");
    let conversation = Conversation::of([Message::User { content: vec![picture] }]);
    let body = encode("deepseek", &conversation, Delivery::Whole);
    let wanted = "[image (image/png), about 3 bytes: cannot be shown to this model]";
    assert_eq!(body["messages"][0]["content"], wanted);
}

#[test]
fn converse_keeps_its_own_rules_about_tools_and_documents() {
    let call = ToolCall::new("c", "f", json!({}));
    let error = toolwright_core::ToolError::new("no").info();
    let result = toolwright_core::ToolResult::failed(&call, error);
    let document = toolwright_core::Content::document("application/pdf", "../a  b_c.pdf", b"hi");
    let conversation = Conversation::of([
        Message::User { content: vec![document] },
        Message::Assistant(AssistantMessage::calls([call])),
        Message::Tool(result),
    ]);
    let body = encode("bedrock", &conversation, Delivery::Whole);
    // Without tools, a conversation in which one was called is refused; so is a document without words.
    assert_eq!(
        body["toolConfig"],
        json!({"tools": [{"toolSpec": {"name": "f", "description": "Not available any more. Do not call it.",
            "inputSchema": {"json": {"type": "object"}}}}]})
    );
    assert_eq!(
        body["messages"][0]["content"],
        json!([{"text": "Read this document."},
            {"document": {"format": "pdf", "name": "a b c pdf", "source": {"bytes": "aGk="}}}])
    );
    assert_eq!(body["messages"][2]["content"][0]["toolResult"]["status"], "error");
    // Models of other vendors refuse the mark of a failure; all read the error.
    let llama = ModelTarget { vendor: vendor("bedrock"), model: "us.meta.llama4-scout-17b-instruct-v1:0" };
    let body = Wire::BedrockConverse.encode(llama, &conversation.request(), Delivery::Whole).unwrap();
    let told = &body["messages"][2]["content"][0]["toolResult"];
    assert_eq!(told.get("status"), None);
    assert!(told["content"][0]["text"].as_str().unwrap().contains("no"), "{told}");
    let film = Conversation::of([Message::User {
        content: vec![toolwright_core::Content::video("video/mp4", b"hi")],
    }]);
    let claude = ModelTarget { vendor: vendor("bedrock"), model: "anthropic.claude-v2:1" };
    let body = Wire::BedrockConverse.encode(claude, &film.request(), Delivery::Whole).unwrap();
    let wanted = "[video (video/mp4), about 3 bytes: cannot be shown to this model]";
    assert_eq!(body["messages"][0]["content"][0]["text"], wanted);
    assert_eq!(
        Wire::BedrockConverse.path("anthropic.claude-v2:1", Delivery::Stream),
        "/model/anthropic.claude-v2%3A1/converse-stream"
    );
}

/// A document whose name was there before is refused, in whichever turn.
#[test]
fn documents_have_names_of_their_own_for_converse() {
    let pdf = |name: &str| toolwright_core::Content::document("application/pdf", name, b"hi");
    let long = "x".repeat(250);
    let spaced = format!("{} y", "x".repeat(189));
    let call = |id: &str| ToolCall::new(id, "f", json!({}));
    let mut first = toolwright_core::ToolResult::text(&call("1"), "here");
    first.content.extend([pdf("a.pdf"), pdf(&long), pdf(&long), pdf(&spaced), pdf(&spaced)]);
    let mut unnamed = toolwright_core::ToolResult::text(&call("2"), "here");
    let nameless =
        toolwright_core::Media { name: None, ..toolwright_core::Media::from_bytes("application/pdf", b"hi") };
    unnamed.content.extend([1, 2].map(|_| toolwright_core::Content::Document(nameless.clone())));
    let conversation = Conversation::of([
        Message::User { content: vec![pdf("a.pdf"), pdf("A.PDF"), pdf("a pdf 3")] },
        Message::Assistant(AssistantMessage::calls([call("1"), call("2")])),
        Message::Tool(first),
        Message::Tool(unnamed),
    ]);
    let body = encode("bedrock", &conversation, Delivery::Whole).to_string();
    let names: Vec<&str> =
        body.split("\"name\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "f").collect();
    let (cut, again) = ("x".repeat(200), format!("{} 2", "x".repeat(190)));
    let single = format!("{} 2", "x".repeat(189));
    let wanted =
        ["a pdf", "A PDF 2", "a pdf 3", "a pdf 4", &cut, &again, &spaced, &single, "document", "document 2"];
    assert_eq!(names, wanted);
}

#[test]
fn what_a_format_cannot_say_is_an_error_and_the_rest_is_merged() {
    let mut conversation = Conversation::of([Message::user("x")]);
    conversation.options.stop = vec!["END".into()];
    let error =
        Wire::OpenAiResponses.encode(target("openai"), &conversation.request(), Delivery::Whole).unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Request);
    conversation.options.max_tokens = Some(5);
    let extra = json!({"generationConfig": {"topK": 1}, "safetySettings": []});
    conversation.options.extra = extra.as_object().unwrap().clone();
    let body = encode("google", &conversation, Delivery::Whole);
    let config = json!({"maxOutputTokens": 5, "stopSequences": ["END"], "topK": 1});
    assert_eq!((&body["generationConfig"], &body["safetySettings"]), (&config, &json!([])));
}

#[test]
fn tools_among_the_extra_fields_stand_beside_those_of_the_run() {
    for (vendor, own, extra, place) in [
        ("openai", 1, json!({"tools": [{"type": "web_search"}]}), "/tools"),
        ("anthropic", 1, json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}), "/tools"),
        ("google", 1, json!({"tools": [{"google_search": {}}]}), "/tools"),
    ] {
        let mut conversation = Conversation::of([Message::user("x")]);
        conversation.tools = vec![toolwright_core::ToolSpec::new("add", "Adds.")];
        let extra = extra.as_object().unwrap().clone();
        conversation.options.extra = extra.clone();
        let body = encode(vendor, &conversation, Delivery::Whole);
        let tools = body.pointer(place).unwrap().as_array().unwrap();
        assert_eq!(tools.len(), own + 1, "{vendor}: {tools:?}");
        assert_eq!(tools.last(), extra["tools"].as_array().unwrap().last(), "{vendor}");
    }
}

#[test]
fn no_vendor_loses_a_message_or_panics_on_an_odd_conversation() {
    let odd = [
        vec![],
        vec![Message::User { content: vec![] }],
        vec![Message::assistant("")],
        vec![Message::Assistant(AssistantMessage::calls([ToolCall::new("", "", "not json")]))],
        vec![Message::system("a"), Message::system("b")],
    ];
    for vendor in VENDORS {
        for messages in &odd {
            let conversation = Conversation::of(messages.iter().cloned());
            for delivery in [Delivery::Whole, Delivery::Stream] {
                let body = vendor.wire.encode(target(vendor.name), &conversation.request(), delivery);
                assert!(body.is_ok_and(|body| body.is_object()), "{}", vendor.name);
            }
        }
    }
}

/// Every kind of content as a result and as a user's message, every choice of tool, both deliveries: each
/// request has the shape that the vendor's own client accepts, with no key it does not know.
#[test]
fn every_request_has_the_shape_the_vendors_clients_accept() {
    let everything: Conversation = serde_json::from_value(json("testdata/wire/conversation.json")).unwrap();
    let blocks: Vec<_> = everything.messages.iter().flat_map(|message| message.content().to_vec()).collect();
    let choices = [ToolChoice::Auto, ToolChoice::Any, ToolChoice::None, ToolChoice::Tool("measure".into())];
    for (name, definition) in [
        ("anthropic", "anthropic_messages"),
        ("openai-chat", "openai_chat"),
        ("openai", "openai_responses"),
        ("google", "gemini"),
    ] {
        let mut schema = json("testdata/wire/requests.schema.json");
        schema["$ref"] = format!("#/$defs/{definition}").into();
        // Known to servers that reason, not to the client's types.
        schema["$defs"]["openai_chat.ChatCompletionAssistantMessageParam"]["properties"]["reasoning_content"] =
            json!({"type": "string"});
        let schema = jsonschema::validator_for(&schema).unwrap();
        let mut checked = 0;
        for block in &blocks {
            for choice in &choices {
                for delivery in [Delivery::Whole, Delivery::Stream] {
                    let call = ToolCall::new("call_1", "files.look", json!({"path": "a"}));
                    let mut result = toolwright_core::ToolResult::failed(
                        &call,
                        toolwright_core::ToolError::new("no").info(),
                    );
                    result.content.push(block.clone());
                    let conversation = Conversation {
                        messages: vec![
                            Message::User { content: vec![block.clone()] },
                            Message::Assistant(AssistantMessage {
                                content: vec![block.clone()],
                                tool_calls: vec![call],
                                ..AssistantMessage::default()
                            }),
                            Message::Tool(result),
                        ],
                        tools: everything.tools.clone(),
                        tool_choice: choice.clone(),
                        options: toolwright_core::ModelOptions { max_tokens: Some(9), ..Default::default() },
                    };
                    let body = encode(name, &conversation, delivery);
                    let problems: Vec<String> =
                        schema.iter_errors(&body).map(|problem| problem.to_string()).collect();
                    assert!(problems.is_empty(), "{name}: {problems:?}\n{body}");
                    checked += 1;
                }
            }
        }
        assert_eq!(checked, blocks.len() * 8);
    }
}
