//! Replies: a whole one and the stream of the same reply give the same message, wherever the bytes are cut.

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_core::{Message, ModelDelta, ModelError, ModelErrorKind, ModelReply, StopReason};
use toolwright_models::sse::SseReader;
use toolwright_models::wire::Delivery;

use crate::support::{Conversation, FORMATS, json, target, vendor};

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

fn sse(events: &[Value]) -> String {
    let event = |data: &Value| match data.as_str() {
        Some(text) => format!("data: {text}\n\n"),
        None => format!("data: {data}\n\n"),
    };
    events.iter().map(event).collect()
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
    let mut reader = SseReader::new(1 << 20);
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
        let recorded: Vec<Recorded> =
            serde_json::from_value(json(&format!("testdata/wire/{folder}/replies.json"))).unwrap();
        for Recorded { name: what, body, stream, want, echo, error } in recorded {
            let what = format!("{folder}: {what}");
            let mut replies = Vec::new();
            replies.extend(body.as_ref().map(|body| whole(name, body)));
            if let Some(events) = &stream {
                let text = sse(events);
                let (reply, told) = streamed(name, &[text.as_bytes()]);
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

#[test]
fn a_stream_cut_anywhere_gives_the_same_reply_and_one_that_ends_early_gives_none() {
    for (name, folder) in FORMATS {
        let recorded: Vec<Recorded> =
            serde_json::from_value(json(&format!("testdata/wire/{folder}/replies.json"))).unwrap();
        for Recorded { name: what, stream, error, .. } in recorded {
            let (Some(events), None) = (stream, error) else { continue };
            let text = sse(&events);
            let wanted = streamed(name, &[text.as_bytes()]);
            for at in 0..text.len() {
                let (left, right) = text.as_bytes().split_at(at);
                let got = streamed(name, &[left, right]);
                assert_eq!(
                    got.0.as_ref().unwrap(),
                    wanted.0.as_ref().unwrap(),
                    "{folder}: {what}, cut at {at}"
                );
                assert_eq!(got.1, wanted.1);
                // What is left of a stream that breaks off here is complete, or an error; never a shorter reply.
                if let Ok(reply) = streamed(name, &[left]).0 {
                    let whole = wanted.0.as_ref().unwrap();
                    assert_eq!(
                        (&reply.message, reply.stop),
                        (&whole.message, whole.stop),
                        "{folder}: {what}"
                    );
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
