//! The vendors' own clients as judges: they read every request we can make, and the same streams as we do.
//!
//! `cargo xtask test` installs them; where they are missing, the tests say so and pass.

use std::path::PathBuf;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use toolwright_core::{
    AssistantMessage, Content, Message, ModelOptions, ModelReply, StopReason, ToolCall, ToolChoice,
    ToolError, ToolResult, ToolSpec,
};
use toolwright_models::wire::Delivery;

use crate::support::{Conversation, FORMATS, file, json as read_json, stream_bytes, target, vendor};

/// Runs a script of the clients' environment on some data, or says what is missing.
fn judge(script: &str, data: &Value) -> Result<Output, String> {
    let python = file("target/peers/sdks/bin/python");
    if !python.exists() {
        return Err("the vendors' clients are not installed (cargo xtask test installs them)".to_owned());
    }
    let folder = std::env::temp_dir();
    let path: PathBuf = folder.join(format!("toolwright-{script}-{}.json", std::process::id()));
    std::fs::write(&path, data.to_string()).unwrap();
    let output =
        Command::new(python).arg(file(&format!("xtask/peers/{script}"))).arg(&path).output().unwrap();
    std::fs::remove_file(path).unwrap();
    Ok(output)
}

/// A conversation in which `block` is said by the user, by the model, and by a tool that failed or not.
fn about(
    block: &Content,
    failed: bool,
    tools: &[ToolSpec],
    choice: &ToolChoice,
    options: &ModelOptions,
) -> Conversation {
    let call = ToolCall::new("call_1", "files.look", json!({"path": "a"}));
    let mut result = ToolResult::failed(&call, ToolError::new("no").info());
    result.content.push(block.clone());
    result.metadata.insert("k".to_owned(), 1.into());
    if !failed {
        result.error = None;
    }
    let said = AssistantMessage {
        content: vec![block.clone()],
        tool_calls: vec![call],
        ..AssistantMessage::default()
    };
    let mut messages = vec![
        Message::system("Be brief."),
        Message::User { content: vec![block.clone()] },
        Message::Assistant(said),
        Message::Tool(result),
    ];
    if !failed {
        messages.push(Message::user("go on"));
    }
    Conversation { messages, tools: tools.to_vec(), tool_choice: choice.clone(), options: options.clone() }
}

#[test]
fn the_vendors_clients_know_every_key_of_every_request() {
    let everything: Conversation =
        serde_json::from_value(read_json("testdata/wire/conversation.json")).unwrap();
    let blocks: Vec<_> = everything.messages.iter().flat_map(|message| message.content().to_vec()).collect();
    let choices = [ToolChoice::Auto, ToolChoice::Any, ToolChoice::None, ToolChoice::Tool("measure".into())];
    let answer = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let plain = ModelOptions { max_tokens: Some(9), ..ModelOptions::default() };
    let rich = ModelOptions {
        temperature: Some(0.5),
        strict: Some(true),
        cache: Some(true),
        response_schema: Some(answer),
        ..plain.clone()
    };
    let mut requests = Vec::new();
    for (name, format) in FORMATS {
        let mut add = |conversation: &Conversation, delivery: Delivery| {
            let body = vendor(name).wire.encode(target(name), &conversation.request(), delivery).unwrap();
            let request = json!({"format": format, "streamed": delivery == Delivery::Stream, "body": body});
            requests.push(request);
        };
        for delivery in [Delivery::Whole, Delivery::Stream] {
            for block in &blocks {
                for choice in &choices {
                    for failed in [false, true] {
                        add(&about(block, failed, &everything.tools, choice, &plain), delivery);
                    }
                    add(&about(block, false, &everything.tools, choice, &rich), delivery);
                }
            }
            // The vendor's own replies, sent back.
            for message in echoed(name, format) {
                add(&Conversation::of([Message::user("x"), Message::Assistant(message)]), delivery);
            }
        }
        let mut whole: Conversation =
            serde_json::from_value(read_json("testdata/wire/conversation.json")).unwrap();
        whole.options.extra = Map::new();
        if name == "openai" {
            whole.options.stop.clear();
        }
        add(&whole, Delivery::Whole);
    }
    assert!(requests.len() > 1000, "{}", requests.len());
    let output = match judge("check_requests.py", &requests.into()) {
        Ok(output) => output,
        Err(missing) => {
            println!("skipped the_vendors_clients_know_every_key_of_every_request: {missing}");
            return;
        }
    };
    let shown: String = String::from_utf8_lossy(&output.stdout).chars().take(6000).collect();
    assert!(output.status.success(), "{shown}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The messages in the recorded replies of a format.
fn echoed(name: &str, format: &str) -> Vec<AssistantMessage> {
    let folder = if name == "bedrock-invoke" { "anthropic" } else { format };
    let recorded = read_json(&format!("testdata/wire/{folder}/replies.json"));
    let messages = recorded.as_array().unwrap().iter().filter_map(|reply| {
        let mut message = reply.get("want")?.get("message")?.clone();
        // What this vendor said, whoever recorded it.
        for block in message.get_mut("content")?.as_array_mut()? {
            if let Some(from) = block.pointer_mut("/opaque/from") {
                *from = name.into();
            }
        }
        serde_json::from_value(message).ok()
    });
    messages.collect()
}

/// A reply in the making: its text in pieces, its thoughts, its calls with their arguments in pieces.
#[derive(Debug, Clone)]
struct Script {
    thoughts: Vec<String>,
    text: Vec<String>,
    calls: Vec<(String, Map<String, Value>, Vec<usize>)>,
    tokens: (u64, u64),
}

fn script() -> impl Strategy<Value = Script> {
    let words = || {
        prop::sample::select(vec![
            "a", " b\n", "é", "\"q\"", "\\", "漢字", "🙂", "\u{2028}", "data: x", "</s>",
        ])
    };
    let pieces = |most: usize| prop::collection::vec(words().prop_map(str::to_owned), 0..most);
    let value = prop_oneof![
        Just(json!(null)),
        any::<i32>().prop_map(Value::from),
        words().prop_map(Value::from),
        Just(json!({"deep": [1, {"er": "é\n"}]})),
    ];
    let key = prop::sample::select(vec!["path", "n", "größe", "a b"]).prop_map(str::to_owned);
    let arguments = prop::collection::btree_map(key, value, 0..4).prop_map(|map| map.into_iter().collect());
    let call =
        (prop::sample::select(vec!["look", "measure"]), arguments, prop::collection::vec(0_usize..40, 0..4))
            .prop_map(|(name, arguments, cuts)| (name.to_owned(), arguments, cuts));
    (pieces(4), pieces(6), prop::collection::vec(call, 0..4), (1_u64..1000, 1_u64..1000)).prop_map(
        |(thoughts, mut text, calls, tokens)| {
            if text.is_empty() && calls.is_empty() {
                text.push("ok".to_owned());
            }
            Script { thoughts, text, calls, tokens }
        },
    )
}

/// Text cut at these places, as near as characters allow.
fn cut(text: &str, places: &[usize]) -> Vec<String> {
    let mut places: Vec<usize> = places.iter().copied().filter(|at| text.is_char_boundary(*at)).collect();
    places.sort_unstable();
    let ends = places.iter().copied().chain([text.len()]);
    let mut start = 0;
    ends.map(|end| text[std::mem::replace(&mut start, end)..end].to_owned()).collect()
}

impl Script {
    /// The events that bring this reply in a format, with everything the vendor sends.
    fn events(&self, format: &str) -> Vec<Value> {
        match format {
            "anthropic" | "bedrock_invoke" => self.anthropic(),
            "openai_chat" => self.chat(),
            "openai_responses" => self.responses(),
            "gemini" => self.gemini(),
            _ => self.converse(),
        }
    }

    fn call(&self, number: usize) -> (String, &str, Vec<String>) {
        let (name, arguments, cuts) = &self.calls[number];
        (format!("call_{number}"), name, cut(&Value::from(arguments.clone()).to_string(), cuts))
    }

    fn anthropic(&self) -> Vec<Value> {
        let (input, output) = self.tokens;
        let mut events = vec![json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
            "role": "assistant", "model": "m", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": input, "output_tokens": 1}}})];
        let mut index = 0;
        let mut block = |start: Value, deltas: Vec<Value>| {
            let mut list =
                vec![json!({"type": "content_block_start", "index": index, "content_block": start})];
            list.extend(
                deltas
                    .into_iter()
                    .map(|d| json!({"type": "content_block_delta", "index": index, "delta": d})),
            );
            list.push(json!({"type": "content_block_stop", "index": index}));
            index += 1;
            list
        };
        if !self.thoughts.is_empty() {
            let mut deltas: Vec<Value> =
                self.thoughts.iter().map(|t| json!({"type": "thinking_delta", "thinking": t})).collect();
            deltas.push(json!({"type": "signature_delta", "signature": "sig"}));
            events.extend(block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas));
        }
        if !self.text.is_empty() {
            let deltas = self.text.iter().map(|t| json!({"type": "text_delta", "text": t})).collect();
            events.extend(block(json!({"type": "text", "text": ""}), deltas));
        }
        for number in 0..self.calls.len() {
            let (id, name, pieces) = self.call(number);
            let deltas =
                pieces.iter().map(|p| json!({"type": "input_json_delta", "partial_json": p})).collect();
            events.extend(block(json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas));
        }
        let stop = if self.calls.is_empty() { "end_turn" } else { "tool_use" };
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": output}}));
        events.push(json!({"type": "message_stop"}));
        events
    }

    fn chat(&self) -> Vec<Value> {
        let chunk = |delta: Value, finish: Value| {
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": null}]})
        };
        let mut events = vec![chunk(json!({"role": "assistant", "content": null}), Value::Null)];
        events.extend(self.text.iter().map(|text| chunk(json!({"content": text}), Value::Null)));
        for number in 0..self.calls.len() {
            let (id, name, pieces) = self.call(number);
            let first = json!({"index": number, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
            events.push(chunk(json!({"tool_calls": [first]}), Value::Null));
            events.extend(pieces.iter().map(|piece| {
                chunk(
                    json!({"tool_calls": [{"index": number, "function": {"arguments": piece}}]}),
                    Value::Null,
                )
            }));
        }
        let stop = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        events.push(chunk(json!({}), stop.into()));
        let (input, output) = self.tokens;
        let mut last = chunk(json!({}), Value::Null);
        last["choices"] = json!([]);
        last["usage"] =
            json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
        events.extend([last, json!("[DONE]")]);
        events
    }

    fn responses(&self) -> Vec<Value> {
        let (input, output) = self.tokens;
        let response = |status: &str, output_items: &[Value], usage: Value| {
            json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status,
                "output": output_items, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "error": null,
                "incomplete_details": null, "usage": usage, "metadata": {}})
        };
        let mut events =
            vec![json!({"type": "response.created", "response": response("in_progress", &[], Value::Null)})];
        let mut items: Vec<Value> = Vec::new();
        if !self.thoughts.is_empty() {
            let item = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "e",
                "summary": [{"type": "summary_text", "text": self.thoughts.concat()}]});
            let mut added = item.clone();
            added["summary"] = json!([]);
            events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": added}));
            events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
            items.push(item);
        }
        if !self.text.is_empty() {
            let at = items.len();
            let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
            let message = |content: Value, status: &str| json!({"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content});
            events.push(json!({"type": "response.output_item.added", "output_index": at, "item": message(json!([]), "in_progress")}));
            let place = json!({"item_id": "msg_1", "output_index": at, "content_index": 0});
            let mut event = |kind: &str, fields: Value| {
                let mut event = json!({"type": kind});
                let all = place.as_object().unwrap().iter().chain(fields.as_object().unwrap());
                all.for_each(|(key, value)| event[key] = value.clone());
                events.push(event);
            };
            event("response.content_part.added", json!({"part": part("")}));
            self.text
                .iter()
                .for_each(|text| event("response.output_text.delta", json!({"delta": text, "logprobs": []})));
            event("response.output_text.done", json!({"text": self.text.concat(), "logprobs": []}));
            event("response.content_part.done", json!({"part": part(&self.text.concat())}));
            let item = message(json!([part(&self.text.concat())]), "completed");
            events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
            items.push(item);
        }
        for number in 0..self.calls.len() {
            let (id, name, pieces) = self.call(number);
            let (at, item_id) = (items.len(), format!("fc_{number}"));
            let item = |arguments: String, status: &str| {
                json!({"type": "function_call", "id": item_id, "call_id": id, "name": name, "arguments": arguments,
                    "status": status})
            };
            events.push(json!({"type": "response.output_item.added", "output_index": at, "item": item(String::new(), "in_progress")}));
            events.extend(pieces.iter().map(|piece| {
                json!({"type": "response.function_call_arguments.delta", "item_id": item_id, "output_index": at, "delta": piece})
            }));
            events.push(json!({"type": "response.function_call_arguments.done", "item_id": item_id, "output_index": at,
                "name": name, "arguments": pieces.concat()}));
            let item = item(pieces.concat(), "completed");
            events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
            items.push(item);
        }
        let usage = json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}});
        events.push(json!({"type": "response.completed", "response": response("completed", &items, usage)}));
        for (number, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = number.into();
        }
        events
    }

    fn gemini(&self) -> Vec<Value> {
        // Google's client takes U+2028 for the end of a line, which it is not here.
        let plain = |text: &String| text.replace('\u{2028}', "");
        let chunk = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]});
        let mut events: Vec<Value> =
            self.thoughts.iter().map(plain).map(|t| chunk(json!([{"text": t, "thought": true}]))).collect();
        events.extend(self.text.iter().map(plain).map(|text| chunk(json!([{"text": text}]))));
        let calls = self.calls.iter().enumerate().map(|(number, (name, arguments, _))| {
            json!({"functionCall": {"id": format!("call_{number}"), "name": name, "args": arguments}})
        });
        let calls: Value = calls.collect();
        let calls = calls.to_string().replace('\u{2028}', "");
        let mut last = chunk(serde_json::from_str(&calls).unwrap());
        last["candidates"][0]["finishReason"] = "STOP".into();
        let (input, output) = self.tokens;
        last["usageMetadata"] = json!({"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output});
        events.push(last);
        events
    }

    fn converse(&self) -> Vec<Value> {
        let mut events = vec![json!({"messageStart": {"role": "assistant"}})];
        let mut index = 0;
        let mut block = |start: Option<Value>, deltas: Vec<Value>| {
            let start =
                start.map(|start| json!({"contentBlockStart": {"contentBlockIndex": index, "start": start}}));
            let deltas = deltas
                .into_iter()
                .map(|d| json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": d}}));
            let end = json!({"contentBlockStop": {"contentBlockIndex": index}});
            events.extend(start.into_iter().chain(deltas).chain([end]));
            index += 1;
        };
        if !self.thoughts.is_empty() {
            let mut deltas: Vec<Value> =
                self.thoughts.iter().map(|t| json!({"reasoningContent": {"text": t}})).collect();
            deltas.push(json!({"reasoningContent": {"signature": "sig"}}));
            block(None, deltas);
        }
        if !self.text.is_empty() {
            block(None, self.text.iter().map(|text| json!({"text": text})).collect());
        }
        for number in 0..self.calls.len() {
            let (id, name, pieces) = self.call(number);
            let deltas = pieces.iter().map(|piece| json!({"toolUse": {"input": piece}})).collect();
            block(Some(json!({"toolUse": {"toolUseId": id, "name": name}})), deltas);
        }
        let stop = if self.calls.is_empty() { "end_turn" } else { "tool_use" };
        let (input, output) = self.tokens;
        events.push(json!({"messageStop": {"stopReason": stop}}));
        events.push(json!({"metadata": {"usage": {"inputTokens": input, "outputTokens": output,
            "totalTokens": input + output}, "metrics": {"latencyMs": 1}}}));
        events
    }
}

/// A reply in the form in which the clients' are compared.
fn view(reply: &ModelReply, format: &str) -> Value {
    let calls = reply.message.tool_calls.iter().map(|call| json!([call.id, call.name, call.arguments]));
    let called = reply.stop == StopReason::ToolCalls;
    let stop = match format {
        "openai_chat" if called => "tool_calls",
        "openai_chat" => "stop",
        "openai_responses" => "completed",
        "gemini" => "STOP",
        _ if called => "tool_use",
        _ => "end_turn",
    };
    let thoughts = reply.message.content.iter().filter_map(|block| match block {
        Content::Reasoning { text, .. } => Some(text.as_str()),
        _ => None,
    });
    json!({
        "text": reply.message.text(),
        "reasoning": thoughts.collect::<String>(),
        "calls": calls.collect::<Vec<_>>(),
        "stop": stop,
        "usage": [reply.usage.input_tokens, reply.usage.output_tokens],
    })
}

#[test]
fn the_vendors_clients_and_we_read_the_same_in_the_same_bytes() {
    let mut runner = TestRunner::deterministic();
    let mut streams = Vec::new();
    let mut ours = Map::new();
    for (name, format) in FORMATS {
        for number in 0..12 {
            let script = script().new_tree(&mut runner).unwrap().current();
            let events = script.events(format);
            let bytes = stream_bytes(name, &events);
            let conversation = Conversation::of([Message::user("x")]);
            let wire = vendor(name).wire;
            let decode = |chunks: &[&[u8]]| {
                let mut decoder = wire.decoder(target(name), &conversation.request());
                let mut reader = wire.reader(1 << 20);
                for event in chunks.iter().flat_map(|chunk| reader.push(chunk).unwrap()) {
                    decoder.event(&event, &mut |_| {}).unwrap();
                }
                decoder.finish().unwrap()
            };
            let whole = decode(&[&bytes]);
            assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), whole);
            // Each place once, spread over the scripts.
            for at in (number..bytes.len()).step_by(12) {
                let (left, right) = bytes.split_at(at);
                assert_eq!(decode(&[left, right]), whole, "{format}, cut at {at}");
            }
            let id = format!("{}-{number}", format.replace('_', "-"));
            streams.push(json!({"id": id, "format": format, "base64": STANDARD.encode(&bytes)}));
            ours.insert(id, view(&whole, format));
        }
    }
    let output = match judge("read_streams.py", &streams.into()) {
        Ok(output) => output,
        Err(missing) => {
            println!("skipped the_vendors_clients_and_we_read_the_same_in_the_same_bytes: {missing}");
            return;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let theirs: Map<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(theirs.len(), ours.len());
    for (id, ours) in &ours {
        // Some clients join what we keep apart; the letters must be the same.
        assert_eq!(&normal(&theirs[id]), &normal(ours), "{id}");
    }
}

/// Whole numbers as such: one client reads every number as a float.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 => json!(float as i64),
            _ => value.clone(),
        },
        Value::Array(list) => list.iter().map(normal).collect(),
        Value::Object(map) => {
            let sorted: std::collections::BTreeMap<_, _> = map.iter().collect();
            sorted.into_iter().map(|(key, value)| (key.clone(), normal(value))).collect()
        }
        _ => value.clone(),
    }
}
