//! Replies made up, and the events that bring each of them in every format.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A reply in the making: its blocks in their order, each in the pieces in which it comes.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) blocks: Vec<Block>,
    pub(crate) tokens: (u64, u64),
}

#[derive(Debug, Clone)]
pub(crate) enum Block {
    Thought(Vec<String>),
    Text(Vec<String>),
    /// A name, the arguments, and the places at which their text is cut.
    Call(&'static str, Map<String, Value>, Vec<usize>),
}

pub(crate) fn script() -> impl Strategy<Value = Script> {
    let words = || {
        prop::sample::select(vec![
            "a", " b\n", "é", "\"q\"", "\\", "漢字", "🙂", "\u{2028}", "data: x", "</s>",
        ])
    };
    let pieces = |most: usize| prop::collection::vec(words().prop_map(str::to_owned), 1..most);
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
            .prop_map(|(name, arguments, cuts)| Block::Call(name, arguments, cuts));
    let block = prop_oneof![
        1 => pieces(4).prop_map(Block::Thought),
        2 => pieces(6).prop_map(Block::Text),
        2 => call,
    ];
    (prop::collection::vec(block, 0..6), (1_u64..1000, 1_u64..1000)).prop_map(|(mut blocks, tokens)| {
        // No client tells two blocks of the same kind apart in every format.
        blocks.dedup_by(|a, b| {
            !matches!(a, Block::Call(..)) && std::mem::discriminant(a) == std::mem::discriminant(b)
        });
        if blocks.iter().all(|block| matches!(block, Block::Thought(_))) {
            blocks.push(Block::Text(vec!["ok".to_owned()]));
        }
        Script { blocks, tokens }
    })
}

/// Text cut at these places, as near as characters allow.
fn cut(text: &str, places: &[usize]) -> Vec<String> {
    let mut places: Vec<usize> = places.iter().copied().filter(|at| text.is_char_boundary(*at)).collect();
    places.sort_unstable();
    let ends = places.iter().copied().chain([text.len()]);
    let mut start = 0;
    ends.map(|end| text[std::mem::replace(&mut start, end)..end].to_owned()).collect()
}

/// The text of a call's arguments, in pieces.
fn written(arguments: &Map<String, Value>, cuts: &[usize]) -> Vec<String> {
    cut(&Value::from(arguments.clone()).to_string(), cuts)
}

impl Script {
    /// The events that bring this reply in a format, with everything the vendor sends.
    pub(crate) fn events(&self, format: &str) -> Vec<Value> {
        match format {
            "anthropic" | "bedrock_invoke" => self.anthropic(),
            "openai_chat" => self.chat(),
            "openai_responses" => self.responses(),
            "gemini" => self.gemini(),
            _ => self.converse(),
        }
    }

    fn calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, Block::Call(..)))
    }

    fn anthropic(&self) -> Vec<Value> {
        let (input, output) = self.tokens;
        let mut events = vec![json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
            "role": "assistant", "model": "m", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": input, "output_tokens": 1}}})];
        for (index, block) in self.blocks.iter().enumerate() {
            let (start, deltas): (Value, Vec<Value>) = match block {
                Block::Thought(pieces) => {
                    let told = pieces.iter().map(|t| json!({"type": "thinking_delta", "thinking": t}));
                    let sign = json!({"type": "signature_delta", "signature": "sig"});
                    let start = json!({"type": "thinking", "thinking": "", "signature": ""});
                    (start, told.chain([sign]).collect())
                }
                Block::Text(pieces) => {
                    let told = pieces.iter().map(|t| json!({"type": "text_delta", "text": t}));
                    (json!({"type": "text", "text": ""}), told.collect())
                }
                Block::Call(name, arguments, cuts) => {
                    let pieces = written(arguments, cuts);
                    let told = pieces.iter().map(|p| json!({"type": "input_json_delta", "partial_json": p}));
                    let id = format!("call_{index}");
                    (json!({"type": "tool_use", "id": id, "name": name, "input": {}}), told.collect())
                }
            };
            events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
            let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.extend(deltas.into_iter().map(delta));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        let stop = if self.calls() { "tool_use" } else { "end_turn" };
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
        let mut number = 0;
        for (index, block) in self.blocks.iter().enumerate() {
            match block {
                // Its client knows no reasoning.
                Block::Thought(_) => {}
                Block::Text(pieces) => {
                    events.extend(pieces.iter().map(|text| chunk(json!({"content": text}), Value::Null)));
                }
                Block::Call(name, arguments, cuts) => {
                    let first = json!({"index": number, "id": format!("call_{index}"), "type": "function",
                        "function": {"name": name, "arguments": ""}});
                    events.push(chunk(json!({"tool_calls": [first]}), Value::Null));
                    events.extend(written(arguments, cuts).iter().map(|piece| {
                        let more = json!({"index": number, "function": {"arguments": piece}});
                        chunk(json!({"tool_calls": [more]}), Value::Null)
                    }));
                    number += 1;
                }
            }
        }
        let stop = if self.calls() { "tool_calls" } else { "stop" };
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
        for (at, block) in self.blocks.iter().enumerate() {
            let (added, between, item) = match block {
                Block::Thought(pieces) => thought(at, &pieces.concat()),
                Block::Text(pieces) => message(at, pieces),
                Block::Call(name, arguments, cuts) => call(at, name, &written(arguments, cuts)),
            };
            events.push(json!({"type": "response.output_item.added", "output_index": at, "item": added}));
            events.extend(between);
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
        let chunk = |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]});
        let mut events: Vec<Value> = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            match block {
                Block::Thought(pieces) => {
                    let told = pieces.iter().map(plain).map(|t| chunk(json!({"text": t, "thought": true})));
                    events.extend(told);
                }
                Block::Text(pieces) => {
                    events.extend(pieces.iter().map(plain).map(|text| chunk(json!({"text": text}))));
                }
                Block::Call(name, arguments, _) => {
                    let arguments = plain(&Value::from(arguments.clone()).to_string());
                    let arguments: Value = serde_json::from_str(&arguments).unwrap();
                    let id = format!("call_{index}");
                    events.push(chunk(json!({"functionCall": {"id": id, "name": name, "args": arguments}})));
                }
            }
        }
        let mut last = chunk(json!({"text": ""}));
        last["candidates"][0]["finishReason"] = "STOP".into();
        let (input, output) = self.tokens;
        last["usageMetadata"] = json!({"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output});
        events.push(last);
        events
    }

    fn converse(&self) -> Vec<Value> {
        let mut events = vec![json!({"messageStart": {"role": "assistant"}})];
        for (index, block) in self.blocks.iter().enumerate() {
            let (start, deltas): (Option<Value>, Vec<Value>) = match block {
                Block::Thought(pieces) => {
                    let told = pieces.iter().map(|t| json!({"reasoningContent": {"text": t}}));
                    (None, told.chain([json!({"reasoningContent": {"signature": "sig"}})]).collect())
                }
                Block::Text(pieces) => (None, pieces.iter().map(|text| json!({"text": text})).collect()),
                Block::Call(name, arguments, cuts) => {
                    let pieces = written(arguments, cuts);
                    let told = pieces.iter().map(|piece| json!({"toolUse": {"input": piece}}));
                    let start = json!({"toolUse": {"toolUseId": format!("call_{index}"), "name": name}});
                    (Some(start), told.collect())
                }
            };
            let start =
                start.map(|start| json!({"contentBlockStart": {"contentBlockIndex": index, "start": start}}));
            let deltas = deltas
                .into_iter()
                .map(|d| json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": d}}));
            let end = json!({"contentBlockStop": {"contentBlockIndex": index}});
            events.extend(start.into_iter().chain(deltas).chain([end]));
        }
        let stop = if self.calls() { "tool_use" } else { "end_turn" };
        let (input, output) = self.tokens;
        events.push(json!({"messageStop": {"stopReason": stop}}));
        events.push(json!({"metadata": {"usage": {"inputTokens": input, "outputTokens": output,
            "totalTokens": input + output}, "metrics": {"latencyMs": 1}}}));
        events
    }
}

/// An item of the Responses API: as it is when it begins, the events on the way, and as it is in the end.
type Item = (Value, Vec<Value>, Value);

fn thought(at: usize, text: &str) -> Item {
    let item = |summary: Value| json!({"type": "reasoning", "id": format!("rs_{at}"), "encrypted_content": "e", "summary": summary});
    (item(json!([])), Vec::new(), item(json!([{"type": "summary_text", "text": text}])))
}

fn message(at: usize, pieces: &[String]) -> Item {
    let id = format!("msg_{at}");
    let text = pieces.concat();
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let item = |content: Value, status: &str| json!({"type": "message", "id": id, "role": "assistant", "status": status, "content": content});
    let event = |kind: &str, key: &str, value: Value| {
        let mut event =
            json!({"type": kind, "item_id": id, "output_index": at, "content_index": 0, key: value});
        if kind.contains("output_text") {
            event["logprobs"] = json!([]);
        }
        event
    };
    let mut events = vec![event("response.content_part.added", "part", part(""))];
    events.extend(
        pieces.iter().map(|piece| event("response.output_text.delta", "delta", piece.as_str().into())),
    );
    events.push(event("response.output_text.done", "text", text.as_str().into()));
    events.push(event("response.content_part.done", "part", part(&text)));
    (item(json!([]), "in_progress"), events, item(json!([part(&text)]), "completed"))
}

fn call(at: usize, name: &str, pieces: &[String]) -> Item {
    let id = format!("fc_{at}");
    let item = |arguments: &str, status: &str| {
        json!({"type": "function_call", "id": id, "call_id": format!("call_{at}"), "name": name,
            "arguments": arguments, "status": status})
    };
    let delta = |piece: &String| json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": at, "delta": piece});
    let done = json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": at,
        "name": name, "arguments": pieces.concat()});
    let events = pieces.iter().map(delta).chain([done]).collect();
    (item("", "in_progress"), events, item(&pieces.concat(), "completed"))
}
