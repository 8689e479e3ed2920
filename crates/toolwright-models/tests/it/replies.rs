//! Replies: a whole one and the stream of the same reply give the same message, wherever the bytes are cut.

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_core::{
    AssistantMessage, Message, ModelDelta, ModelError, ModelErrorKind, ModelReply, StopReason, ToolCall,
    ToolResult,
};
use toolwright_models::wire::{Delivery, ModelTarget};
use toolwright_net::SseEvent;

use crate::support::{Conversation, FORMATS, file, stream_bytes, target, vendor};

/// One recorded reply, in both deliveries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    name: String,
    /// The whole reply.
    body: Option<Value>,
    /// The data of the events.
    stream: Option<Vec<Value>>,
    want: Option<Value>,
    /// What the vendor must get back when the conversation goes on.
    echo: Option<Value>,
    error: Option<ModelErrorKind>,
}

fn conversation() -> Conversation {
    let mut conversation = Conversation::of([Message::user("x")]);
    conversation.tools.push(toolwright_core::ToolSpec::new("files.look", "d"));
    conversation
}

/// The recorded replies of a format; InvokeModel's are those of the Messages API.
fn recorded(name: &str, folder: &str) -> Vec<Recorded> {
    let folder = if name == "bedrock-invoke" { "anthropic" } else { folder };
    let text = std::fs::read_to_string(file(&format!("testdata/wire/{folder}/replies.json"))).unwrap();
    serde_json::from_str(&text.replace("\"from\": \"anthropic\"", &format!("\"from\": \"{name}\""))).unwrap()
}

fn whole(name: &str, body: &Value) -> Result<ModelReply, ModelError> {
    let conversation = conversation();
    let mut decoder = vendor(name).wire.decoder(target(name), &conversation.request());
    decoder.body(body.to_string().as_bytes(), &mut |_| {})?;
    decoder.finish()
}

/// Decodes a stream that arrives in these pieces; also gives what was told on the way.
fn streamed(name: &str, chunks: &[&[u8]]) -> (Result<ModelReply, ModelError>, String) {
    let conversation = conversation();
    let mut decoder = vendor(name).wire.decoder(target(name), &conversation.request());
    let mut told = String::new();
    let mut sink = |delta: ModelDelta<'_>| {
        if let ModelDelta::Text(text) = delta {
            told.push_str(text);
        }
    };
    let mut reader = vendor(name).wire.reader(1 << 20);
    for chunk in chunks {
        let events = match reader.push(chunk) {
            Ok(events) => events,
            Err(error) => return (Err(error), told),
        };
        for event in events {
            if let Err(error) = decoder.event(&event, &mut sink) {
                return (Err(error), told);
            }
        }
    }
    (decoder.finish(), told)
}

#[test]
fn recorded_replies_decode_alike_whole_and_streamed() {
    for (name, folder) in FORMATS {
        for Recorded { name: what, body, stream, want, echo, error } in recorded(name, folder) {
            let what = format!("{folder}: {what}");
            let mut replies = Vec::new();
            replies.extend(body.as_ref().map(|body| whole(name, body)));
            if let Some(events) = &stream {
                let (reply, told) = streamed(name, &[&stream_bytes(name, events)]);
                if let Ok(reply) = &reply {
                    assert_eq!(told, reply.message.text(), "{what}: what was told is what was said");
                }
                replies.push(reply);
            }
            assert!(!replies.is_empty(), "{what}");
            for reply in replies {
                match (reply, error) {
                    (Ok(reply), None) => {
                        assert_eq!(serde_json::to_value(&reply).unwrap(), want.clone().unwrap(), "{what}");
                        check_echo(name, reply, echo.as_ref(), &what);
                    }
                    (Err(failed), Some(kind)) => assert_eq!(failed.kind(), kind, "{what}: {failed}"),
                    (got, _) => panic!("{what}: {got:?}"),
                }
            }
        }
    }
}

/// All vendors' stop reasons map to the same words.
#[test]
fn why_a_reply_ended_is_known() {
    let anthropic = |stop: &str| json!({"type": "message", "role": "assistant", "stop_reason": stop, "content": [{"type": "text", "text": "I"}]});
    let google =
        |stop: &str| json!({"candidates": [{"content": {"parts": [{"text": "I"}]}, "finishReason": stop}]});
    let bedrock = |stop: &str| {
        json!({"output": {"message": {"role": "assistant", "content": [{"text": "I"}]}},
        "stopReason": stop})
    };
    let chat = |stop: &str| json!({"choices": [{"message": {"content": "I"}, "finish_reason": stop}]});
    for (name, body, stop) in [
        ("anthropic", anthropic("pause_turn"), StopReason::Paused),
        ("anthropic", anthropic("compaction"), StopReason::Paused),
        ("anthropic", anthropic("stop"), StopReason::EndTurn),
        ("anthropic", anthropic("max_tokens"), StopReason::MaxTokens),
        ("anthropic", anthropic("refusal"), StopReason::Refusal),
        ("google", google("MALFORMED_FUNCTION_CALL"), StopReason::MalformedCall),
        ("google", google("UNEXPECTED_TOOL_CALL"), StopReason::MalformedCall),
        ("google", google("TOO_MANY_TOOL_CALLS"), StopReason::MalformedCall),
        ("google", google("SAFETY"), StopReason::Refusal),
        ("google", json!({"promptFeedback": {"blockReason": "SAFETY"}}), StopReason::Refusal),
        ("bedrock", bedrock("malformed_tool_use"), StopReason::MalformedCall),
        ("bedrock", bedrock("guardrail_intervened"), StopReason::Refusal),
        ("openai-chat", chat("length"), StopReason::MaxTokens),
        ("openai-chat", chat("content_filter"), StopReason::Refusal),
        ("openai-chat", chat("SAFETY"), StopReason::Refusal),
        ("openai-chat", chat("eos_token"), StopReason::EndTurn),
        ("openai-chat", chat("max_tokens"), StopReason::MaxTokens),
        ("openai-chat", chat("abort"), StopReason::Other),
        ("openai-chat", chat("whatever"), StopReason::Other),
    ] {
        assert_eq!(whole(name, &body).unwrap().stop, stop, "{name}: {body}");
    }
}

/// Servers that speak another's format have words of their own for the end of an answer.
#[test]
fn calls_are_made_under_every_word_for_an_answer_that_is_whole() {
    let calls = |arguments: &str, stop: &str| {
        let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}});
        let other = json!({"id": "2", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        json!({"choices": [{"message": {"content": null, "tool_calls": [call, other]}, "finish_reason": stop}]})
    };
    for word in ["stop", "STOP", "eos", "eos_token", "tool_call", "function_call", "COMPLETE", "halted"] {
        assert_eq!(whole("openai-chat", &calls("{}", word)).unwrap().stop, StopReason::ToolCalls, "{word}");
    }
    for (arguments, word, stop) in [
        ("{\"a\": 1", "halted", StopReason::Other),
        ("", "halted", StopReason::Other),
        ("{}", "abort", StopReason::Other),
        ("{}", "insufficient_system_resource", StopReason::Other),
        ("{}", "content_filter", StopReason::Refusal),
        ("{}", "SAFETY", StopReason::Refusal),
        ("{}", "sensitive", StopReason::Refusal),
        ("{}", "MAX_TOKENS", StopReason::MaxTokens),
    ] {
        let reply = whole("openai-chat", &calls(arguments, word)).unwrap();
        assert_eq!(reply.stop, stop, "{word}, {arguments:?}");
    }
}

/// What stands in place of a call goes back to the model, and is not its answer.
#[test]
fn a_call_that_gemini_could_not_read_goes_back_as_it_was_written() {
    let wrote = "Malformed function call: print(default_api.f(x=))";
    let body = json!({"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": wrote}]});
    let reply = whole("google", &body).unwrap();
    assert_eq!((reply.stop, reply.message.text().as_str()), (StopReason::MalformedCall, ""));
    let said = [Message::user("x"), Message::Assistant(reply.message), Message::user("again")];
    let conversation = Conversation::of(said);
    let body =
        vendor("google").wire.encode(target("google"), &conversation.request(), Delivery::Whole).unwrap();
    assert_eq!(body["contents"][1], json!({"role": "model", "parts": [{"text": wrote}]}));
}

/// The model goes on where it was interrupted when it gets its own words back, and nothing else.
#[test]
fn an_interrupted_turn_goes_back_as_it_came() {
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let body = json!({"type": "message", "role": "assistant", "stop_reason": "pause_turn", "content": [
        {"type": "text", "text": "I search."}, search]});
    let reply = whole("anthropic", &body).unwrap();
    assert_eq!(reply.stop, StopReason::Paused);
    let said = [Message::user("x"), Message::Assistant(reply.message), Message::assistant("Found.")];
    for (messages, last) in [(2, search), (3, json!({"type": "text", "text": "Found."}))] {
        let conversation = Conversation::of(said.iter().take(messages).cloned());
        let wire = vendor("anthropic").wire;
        let body = wire.encode(target("anthropic"), &conversation.request(), Delivery::Whole).unwrap();
        let sent = body["messages"].as_array().unwrap();
        assert_eq!((sent.len(), &sent[1]["role"]), (2, &json!("assistant")));
        assert_eq!(sent[1]["content"].as_array().unwrap().last(), Some(&last));
    }
}

fn check_echo(name: &str, reply: ModelReply, echo: Option<&Value>, what: &str) {
    let Some(echo) = echo else { return };
    let mut conversation = conversation();
    conversation.messages.push(Message::Assistant(reply.message));
    let body = vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap();
    let got = match name {
        "openai" => {
            let items = body["input"].as_array().unwrap().iter().skip(1);
            items.filter(|item| item["type"] != "function_call_output").cloned().collect()
        }
        "google" => body["contents"][1]["parts"].clone(),
        "openai-chat" => body["messages"][1].clone(),
        _ => body["messages"][1]["content"].clone(),
    };
    assert_eq!(&got, echo, "{what}");
}

/// A decoder only sees events. So it is enough that the same events come wherever the bytes are cut, and that
/// any number of them is a whole reply or an error.
#[test]
fn a_stream_cut_anywhere_gives_the_same_reply_and_one_that_ends_early_gives_none() {
    for (name, folder) in FORMATS {
        for Recorded { name: what, stream, error, .. } in recorded(name, folder) {
            let (Some(events), None) = (stream, error) else { continue };
            let bytes = stream_bytes(name, &events);
            let read = |chunks: &[&[u8]]| -> Vec<SseEvent> {
                let mut reader = vendor(name).wire.reader(1 << 20);
                chunks.iter().flat_map(|chunk| reader.push(chunk).unwrap()).collect()
            };
            let whole = read(&[&bytes]);
            assert_eq!(whole.len(), events.len(), "{folder}: {what}");
            for at in 0..bytes.len() {
                let (left, right) = bytes.split_at(at);
                assert_eq!(read(&[left, right]), whole, "{folder}: {what}, cut at {at}");
            }
            assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()), whole, "{folder}: {what}, byte by byte");

            let wanted = streamed(name, &[&bytes]).0.unwrap();
            for length in 0..whole.len() {
                let conversation = conversation();
                let mut decoder = vendor(name).wire.decoder(target(name), &conversation.request());
                whole.iter().take(length).for_each(|event| decoder.event(event, &mut |_| {}).unwrap());
                // What is left of a stream that breaks off here is complete, or an error; never a shorter
                // reply.
                if let Ok(reply) = decoder.finish() {
                    let got = (&reply.message, reply.stop);
                    assert_eq!(got, (&wanted.message, wanted.stop), "{folder}: {what}, {length} events");
                }
            }
        }
    }
}

#[test]
fn ids_that_are_missing_or_repeated_are_replaced() {
    let call = json!({"id": "same", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let nameless = json!({"type": "function", "function": {"name": "f", "arguments": "{}"}});
    let body = json!({"choices": [{"message": {"tool_calls": [call, call, nameless, nameless]}}]});
    let reply = whole("openai-chat", &body).unwrap();
    let ids: std::collections::HashSet<_> =
        reply.message.tool_calls.iter().map(|call| call.id.clone()).collect();
    assert_eq!((ids.len(), reply.stop), (4, StopReason::ToolCalls));
    assert_eq!(whole("openai-chat", &body).unwrap(), reply, "and always in the same way");
}

/// Programs and machines on the vendor's side go on only when they are named again, also beside the result.
#[test]
fn what_came_with_a_call_goes_back_with_its_result_and_to_nobody_else() {
    let encode = |name: &str, said: &[Message]| {
        let conversation = Conversation::of(said.iter().cloned());
        vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap()
    };
    let said = |name: &str, folder: &str, what: &str| {
        let recorded = recorded(name, folder).into_iter().find(|recorded| recorded.name.contains(what));
        let message = whole(name, &recorded.unwrap().body.unwrap()).unwrap().message;
        let result = ToolResult::text(&message.tool_calls[0], "seen");
        vec![Message::user("x"), Message::Assistant(message), Message::Tool(result)]
    };
    let mut claude = said("anthropic", "anthropic", "model's code");
    let body = encode("anthropic", &claude);
    assert_eq!(body["container"], "container_1");
    assert_eq!(body["messages"][2]["content"][0]["toolset_name"], "computer");
    claude.push(Message::user("more"));
    assert_eq!(encode("anthropic", &claude).get("container"), None, "by then it may be gone");

    let gpt = said("openai", "openai_responses", "model's program");
    let output = &encode("openai", &gpt)["input"][2];
    assert_eq!((&output["namespace"], &output["caller"]["caller_id"]), (&json!("files"), &json!("prog_1")));

    for (name, _) in FORMATS {
        for (from, said) in [("anthropic", &claude), ("openai", &gpt)] {
            let sent = encode(name, said).to_string();
            let told = ["container_1", "toolset_name", "caller"].iter().any(|word| sent.contains(word));
            assert_eq!(told, name == from, "{from} to {name}: {sent}");
        }
    }
}

/// Vendors refuse a turn that ends with thoughts, and would from then on.
#[test]
fn thoughts_of_an_answer_that_was_cut_off_do_not_go_back() {
    let claude = json!({"type": "thinking", "thinking": "hm", "signature": ""});
    let converse = json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "hm"}}});
    let gpt = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "hm"});
    let reply = |name: &str, words: bool| {
        let mut content = match (name, words) {
            (_, false) => vec![],
            ("openai", true) => {
                vec![json!({"type": "message", "content": [{"type": "output_text", "text": "Well"}]})]
            }
            ("bedrock", true) => vec![json!({"text": "Well"})],
            _ => vec![json!({"type": "text", "text": "Well"})],
        };
        match name {
            "openai" => {
                content.push(gpt.clone());
                json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": content})
            }
            "bedrock" => {
                content.push(converse.clone());
                json!({"output": {"message": {"content": content}}, "stopReason": "max_tokens"})
            }
            _ => {
                content.push(claude.clone());
                json!({"content": content, "stop_reason": "max_tokens"})
            }
        }
    };
    for name in ["anthropic", "bedrock-invoke", "bedrock", "openai"] {
        for words in [false, true] {
            let message = whole(name, &reply(name, words)).unwrap().message;
            let said = [Message::user("x"), Message::Assistant(message.clone()), Message::user("go on")];
            let encode = |said: &[Message]| {
                let conversation = Conversation::of(said.iter().cloned());
                let wire = vendor(name).wire;
                wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap().to_string()
            };
            let sent = encode(&said);
            assert!(!sent.contains("\"hm\"") && sent.contains("Well") == words, "{name}: {sent}");
            // The model went on without having seen them.
            let more = Message::assistant("And so on.");
            let sent = encode(&[Message::user("x"), Message::Assistant(message), more]);
            assert!(!sent.contains("\"hm\"") && sent.contains("Well") == words, "{name}: {sent}");
        }
    }
}

#[test]
fn fields_of_a_call_that_nobody_knows_go_back_with_it() {
    let bedrock =
        json!({"toolUse": {"toolUseId": "c1", "name": "f", "input": {}, "type": "server_tool_use"}});
    let gemini = json!({"functionCall": {"id": "c1", "name": "f", "args": {}, "tier": 2}, "thoughtSignature": "c2ln", "partMetadata": {"a": 1}});
    let whole_reply = |name: &str, call: &Value| match name {
        "bedrock" => json!({"output": {"message": {"content": [call]}}, "stopReason": "tool_use"}),
        _ => json!({"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]}),
    };
    for (name, call) in [("bedrock", &bedrock), ("google", &gemini)] {
        let reply = whole(name, &whole_reply(name, call)).unwrap();
        check_echo(name, reply.clone(), Some(&json!([call])), name);
        let other = if name == "google" { "bedrock" } else { "google" };
        let conversation = Conversation::of([Message::user("x"), Message::Assistant(reply.message)]);
        let sent =
            vendor(other).wire.encode(target(other), &conversation.request(), Delivery::Whole).unwrap();
        assert!(
            !["tier", "partMetadata", "server_tool_use"].iter().any(|word| sent.to_string().contains(word))
        );
    }
    let events = [
        json!({"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {
            "toolUseId": "c1", "name": "f", "type": "server_tool_use"}}}}),
        json!({"messageStop": {"stopReason": "tool_use"}}),
    ];
    let reply = streamed("bedrock", &[&stream_bytes("bedrock", &events)]).0.unwrap();
    check_echo("bedrock", reply, Some(&json!([bedrock])), "a stream");
}

/// Vendors refuse an id that was there before; models and histories that moved do not care.
#[test]
fn ids_that_an_earlier_turn_had_are_replaced() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"a": 1}});
    let body = json!({"choices": [{"message": {"tool_calls": [call]}}]});
    let asked = whole("openai-chat", &body).unwrap().message;
    let result = |text: &str| Message::Tool(ToolResult::text(&asked.tool_calls[0], text));
    let said = [Message::user("x"), Message::Assistant(asked.clone()), result("1")];
    let again = [Message::Assistant(asked.clone()), result("2")];

    let conversation = Conversation::of(said.clone());
    let mut decoder = vendor("openai-chat").wire.decoder(target("openai-chat"), &conversation.request());
    decoder.body(body.to_string().as_bytes(), &mut |_| {}).unwrap();
    let id = decoder.finish().unwrap().message.tool_calls[0].id.clone();
    assert_ne!(&*id, "c1");

    let conversation = Conversation::of(said.into_iter().chain(again));
    for (name, _) in FORMATS {
        let sent = vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap();
        let sent = sent.to_string();
        assert_eq!(sent.matches("\"c1\"").count(), 2, "{name}: the first call and its result: {sent}");
        let new = sent.split('"').find(|word| word.starts_with("call_") && word.len() == 29).unwrap();
        assert_eq!(sent.matches(new).count(), 2, "{name}: the second call and its result: {sent}");
        assert_eq!(sent.matches("extra_content").count(), if name == "openai-chat" { 2 } else { 0 });
    }
}

/// The newer models of Google's refuse a turn of calls without a signature, as those of other models are.
#[test]
fn calls_of_other_models_are_signed_for_gemini() {
    let calls = ["a", "b"].map(|id| ToolCall::new(id, "f", json!({})));
    let conversation =
        Conversation::of([Message::user("x"), Message::Assistant(AssistantMessage::calls(calls))]);
    for (model, signed) in [
        ("gemini-3-pro", true),
        ("gemini-3.1-flash-preview", true),
        ("models/gemini-10", true),
        ("gemini-flash-latest", true),
        ("gemini-2.5-flash", false),
        ("gemma-3-27b", false),
    ] {
        let target = ModelTarget { vendor: vendor("google"), model };
        let body = target.vendor.wire.encode(target, &conversation.request(), Delivery::Whole).unwrap();
        let parts = &body["contents"][1]["parts"];
        let mark = json!("skip_thought_signature_validator");
        assert_eq!(parts[0].get("thoughtSignature"), signed.then_some(&mark), "{model}");
        assert_eq!(parts[1].get("thoughtSignature"), None, "{model}");
    }
}

#[test]
fn the_one_call_of_an_old_server_is_a_call() {
    let function = json!({"name": "files_look", "arguments": "{\"path\":\"a\"}"});
    let body =
        json!({"choices": [{"message": {"function_call": function}, "finish_reason": "function_call"}]});
    let chunk = |delta: Value| json!({"choices": [{"delta": delta, "finish_reason": null}]});
    let events = [
        chunk(json!({"function_call": {"name": "files_look", "arguments": ""}})),
        chunk(json!({"function_call": {"arguments": "{\"path\":\"a\"}"}})),
        json!({"choices": [{"delta": {}, "finish_reason": "function_call"}]}),
    ];
    let streamed = streamed("openai-chat", &[&stream_bytes("openai-chat", &events)]).0.unwrap();
    assert_eq!(whole("openai-chat", &body).unwrap(), streamed);
    let call = &streamed.message.tool_calls[0];
    assert_eq!((&*call.name, &call.arguments), ("files.look", &json!({"path": "a"})));
}

/// Some servers of the Messages API write the input of a call as text.
#[test]
fn input_that_is_no_object_is_kept() {
    for (input, arguments) in [
        (json!("{\"a\": 1}"), json!({"a": 1})),
        (json!("{\"a\": 1"), json!("{\"a\": 1")),
        (json!([1]), json!([1])),
        (json!(""), json!({})),
        (json!(null), json!({})),
    ] {
        let call = json!({"type": "tool_use", "id": "t1", "name": "f", "input": input});
        let body =
            json!({"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [call]});
        let events = [
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_start", "index": 0, "content_block": call}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ];
        let streamed = streamed("anthropic", &[&stream_bytes("anthropic", &events)]).0.unwrap();
        assert_eq!(whole("anthropic", &body).unwrap(), streamed);
        assert_eq!(streamed.message.tool_calls[0].arguments, arguments);
    }
}

/// A whole reply does not show where it was cut off: the server has made values of half a call.
#[test]
fn the_last_call_of_a_whole_reply_that_was_cut_off_is_not_whole() {
    let anthropic = |name: &str| json!({"type": "tool_use", "id": name, "name": name, "input": {"a": 1}});
    let bedrock = |name: &str| json!({"toolUse": {"toolUseId": name, "name": name, "input": {"a": 1}}});
    let google = |name: &str| json!({"functionCall": {"id": name, "name": name, "args": {"a": 1}}});
    for (name, body) in [
        (
            "anthropic",
            json!({"role": "assistant", "stop_reason": "max_tokens", "content": [anthropic("f"), anthropic("g")]}),
        ),
        (
            "bedrock",
            json!({"stopReason": "max_tokens", "output": {"message": {"content": [bedrock("f"), bedrock("g")]}}}),
        ),
        (
            "google",
            json!({"candidates": [{"finishReason": "MAX_TOKENS", "content": {"parts": [google("f"), google("g")]}}]}),
        ),
    ] {
        let calls = whole(name, &body).unwrap().message.tool_calls;
        let arguments: Vec<&Value> = calls.iter().map(|call| &call.arguments).collect();
        assert_eq!(arguments, [&json!({"a": 1}), &json!("{\"a\":1")], "{name}");
    }
}

#[test]
fn replies_that_are_none_are_errors() {
    for (name, _) in FORMATS {
        for body in
            [json!({}), json!([]), json!(null), json!("x"), json!({"choices": []}), json!({"content": 1})]
        {
            let error = whole(name, &body).unwrap_err();
            assert_eq!(error.kind(), ModelErrorKind::Reply, "{name} {body}: {error}");
        }
        for text in ["", "data: {}\n\n", "data: nonsense\n\n", "data: []\n\n", ": only a comment\n\n"] {
            let error = streamed(name, &[text.as_bytes()]).0.unwrap_err();
            assert_eq!(error.kind(), ModelErrorKind::Reply, "{name} {text}: {error}");
        }
    }
}

#[test]
fn a_flood_of_blocks_is_refused() {
    let blocks: Vec<Value> = (0..5000).map(|_| json!({"type": "text", "text": "x"})).collect();
    let error = whole("anthropic", &json!({"content": blocks})).unwrap_err();
    assert_eq!(error.to_string(), "the reply has more than 4096 blocks");
}
