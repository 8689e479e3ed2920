//! The vendors' own clients and we read the same in the same bytes: in streams as they should be, and in odd
//! ones.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use toolwright_core::{Content, Message, ModelError, ModelReply, StopReason};
use toolwright_models::wire::Delivery;

use crate::oracle::judge;
use crate::scripts::{Block, Script, script};
use crate::support::{Conversation, FORMATS, stream_bytes, target, vendor};

/// Decodes a stream that comes in these pieces.
fn decode(name: &str, chunks: &[&[u8]]) -> Result<ModelReply, ModelError> {
    let wire = vendor(name).wire;
    let conversation = Conversation::of([Message::user("x")]);
    let mut decoder = wire.decoder(target(name), &conversation.request());
    let mut reader = wire.reader(1 << 20);
    for chunk in chunks {
        for event in reader.push(chunk)? {
            if decoder.is_over() {
                return decoder.finish();
            }
            decoder.event(&event, &mut |_| {})?;
        }
    }
    decoder.finish()
}

/// A reply in the form in which the clients' are compared.
fn view(name: &str, reply: &ModelReply) -> Value {
    let message = &reply.message;
    let calls = message.tool_calls.iter().map(|call| json!([call.id, call.name, call.arguments]));
    let texts = message.content.iter().filter_map(|block| match block {
        Content::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let thoughts = message.content.iter().filter_map(|block| match block {
        Content::Reasoning { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let stop = match reply.stop {
        StopReason::EndTurn | StopReason::ToolCalls => "done",
        _ => "other",
    };
    json!({
        "text": texts.collect::<String>(),
        "reasoning": thoughts.collect::<String>(),
        "calls": calls.collect::<Vec<_>>(),
        "stop": stop,
        "usage": [reply.usage.input_tokens, reply.usage.output_tokens],
        "order": order(name, reply),
    })
}

/// The blocks of a reply in the order in which the next request brings them back.
fn order(name: &str, reply: &ModelReply) -> Vec<String> {
    let conversation = Conversation::of([Message::user("x"), Message::Assistant(reply.message.clone())]);
    let body = vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap();
    let blocks = match name {
        // A message of this format is words, then calls.
        "openai-chat" => return Vec::new(),
        "openai" => &body["input"],
        "google" => &body["contents"][1]["parts"],
        _ => &body["messages"][1]["content"],
    };
    let word = |block: &Value, path: &str| block.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let one = |block: &Value| {
        let call = ["/id", "/call_id", "/functionCall/id", "/toolUse/toolUseId"];
        let thought = ["/thinking", "/summary/0/text", "/reasoningContent/reasoningText/text"];
        let kind = word(block, "/type").unwrap_or_default();
        if kind == "function_call_output" || block["role"] == "user" {
            None
        } else if let Some(text) = thought.iter().find_map(|path| word(block, path)) {
            Some(format!("thought:{text}"))
        } else if block["thought"] == true {
            word(block, "/text").map(|text| format!("thought:{text}"))
        } else if let Some(text) = word(block, "/text").or_else(|| word(block, "/content")) {
            Some(format!("text:{text}"))
        } else {
            call.iter().find_map(|path| word(block, path)).map(|id| format!("call:{id}"))
        }
    };
    blocks.as_array().into_iter().flatten().filter_map(one).collect()
}

/// The streams and what we make of them, by their ids.
#[derive(Default)]
struct Streams {
    streams: Vec<Value>,
    ours: BTreeMap<String, Value>,
}

impl Streams {
    fn add(&mut self, id: String, format: &str, bytes: &[u8], ours: Value) {
        self.streams.push(json!({"id": id, "format": format, "base64": STANDARD.encode(bytes)}));
        self.ours.insert(id, ours);
    }

    /// What the clients make of the streams, beside what we do; or what is missing.
    fn judged(self) -> Result<BTreeMap<String, (Value, Value)>, String> {
        let output = judge("read_streams.py", &self.streams.into())?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut theirs: Map<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(theirs.len(), self.ours.len());
        let both = self.ours.into_iter().map(|(id, ours)| {
            let theirs = theirs.remove(&id).unwrap();
            (id, (normal(&ours), normal(&theirs)))
        });
        Ok(both.collect())
    }
}

#[test]
fn the_vendors_clients_and_we_read_the_same_in_the_same_bytes() {
    let mut runner = TestRunner::deterministic();
    let mut streams = Streams::default();
    for (name, format) in FORMATS {
        for number in 0..12 {
            let script = script().new_tree(&mut runner).unwrap().current();
            let bytes = stream_bytes(name, &script.events(format));
            let whole = decode(name, &[&bytes]).unwrap();
            assert_eq!(decode(name, &bytes.chunks(1).collect::<Vec<_>>()).unwrap(), whole);
            // Each place once, spread over the scripts.
            for at in (number..bytes.len()).step_by(12) {
                let (left, right) = bytes.split_at(at);
                assert_eq!(decode(name, &[left, right]).unwrap(), whole, "{format}, cut at {at}");
            }
            let id = format!("{}-{number}", format.replace('_', "-"));
            streams.add(id, format, &bytes, view(name, &whole));
        }
    }
    match streams.judged() {
        Ok(judged) => judged.iter().for_each(|(id, (ours, theirs))| assert_eq!(ours, theirs, "{id}")),
        Err(missing) => {
            println!("skipped the_vendors_clients_and_we_read_the_same_in_the_same_bytes: {missing}");
        }
    }
}

/// Whole numbers as such, keys in order: one client reads every number as a float. Neighbours of one kind in
/// the order of blocks are one: some clients join what we keep apart. Blank texts say nothing, and no vendor
/// takes them back.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 => json!(float as i64),
            _ => value.clone(),
        },
        Value::Array(list) => list.iter().map(normal).collect(),
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            let field = |(key, value): (&String, &Value)| match (key.as_str(), value) {
                ("order", Value::Array(blocks)) => (key.clone(), joined(blocks)),
                _ => (key.clone(), normal(value)),
            };
            sorted.into_iter().map(field).collect()
        }
        _ => value.clone(),
    }
}

fn joined(blocks: &[Value]) -> Value {
    let mut joined: Vec<(&str, String)> = Vec::new();
    for (kind, text) in blocks.iter().filter_map(|block| block.as_str()?.split_once(':')) {
        match joined.last_mut().filter(|(last, _)| *last == kind && kind != "call") {
            _ if text.trim().is_empty() => {}
            Some((_, known)) => known.push_str(text),
            None => joined.push((kind, text.to_owned())),
        }
    }
    // Thoughts with nothing behind them do not go back.
    joined.pop_if(|(kind, _)| *kind == "thought");
    joined.into_iter().map(|(kind, text)| Value::from(format!("{kind}:{text}"))).collect()
}

/// A reply with everything in it, short.
fn everything() -> Script {
    let text = |words: &[&str]| Block::Text(words.iter().map(|word| (*word).to_owned()).collect());
    let call = Block::Call("look", Map::from_iter([("n".to_owned(), 1.into())]), vec![3]);
    let blocks = vec![Block::Thought(vec!["hm".to_owned()]), text(&["a", "b"]), call, text(&["c"])];
    Script { blocks, tokens: (7, 5) }
}

/// A stream made odd in one place, in many ways and places; the name says how.
fn odd(events: &[Value]) -> Vec<(String, Vec<Value>)> {
    let mut odd = Vec::new();
    let last = events.len() - 1;
    let mut add = |how: &str, at: usize, change: &dyn Fn(&mut Vec<Value>)| {
        let mut changed = events.to_vec();
        change(&mut changed);
        odd.push((format!("{how} {at} {}", kind(&events[at])), changed));
    };
    for at in 0..events.len() {
        add("twice", at, &|events| events.insert(at, events[at].clone()));
        add("without", at, &|events| drop(events.remove(at)));
        add("ended before", at, &|events| events.truncate(at));
        if at < last {
            add("swapped", at, &|events| events.swap(at, at + 1));
            add("last", at, &|events| events[at..].rotate_left(1));
        }
    }
    let mut seen = std::collections::HashSet::new();
    for (at, event) in events.iter().enumerate() {
        // One of each kind is enough.
        if !seen.insert(shape(event)) {
            continue;
        }
        // Amazon's events are named in their frames: the only key is not part of what is sent.
        let named = event.as_object().is_some_and(|map| map.len() == 1);
        let paths = paths(event).into_iter().filter(|path| !named || path.matches('/').count() > 1);
        for (number, path) in paths.enumerate() {
            let set = |value: Option<Value>| {
                let mut changed = events.to_vec();
                let (parent, key) = path.rsplit_once('/').unwrap();
                match (changed[at].pointer_mut(parent), value) {
                    (Some(Value::Object(map)), None) => drop(map.remove(key)),
                    (Some(Value::Object(map)), Some(value)) => drop(map.insert(key.to_owned(), value)),
                    (Some(Value::Array(list)), None) => drop(list.remove(key.parse().unwrap())),
                    (Some(Value::Array(list)), Some(value)) => list[key.parse::<usize>().unwrap()] = value,
                    _ => unreachable!(),
                }
                changed
            };
            let mut add = |how: &str, value: Option<Value>| {
                odd.push((format!("{how} {at} {}{path}", kind(event)), set(value)));
            };
            // What is not there and what is null is the same to nearly everyone.
            match number % 3 {
                0 => add("no", None),
                _ => add("null", Some(Value::Null)),
            }
            match event.pointer(&path).unwrap() {
                Value::Number(_) => add("seven", Some(json!(7))),
                Value::String(_) if number % 2 == 0 => add("empty", Some(json!(""))),
                Value::String(_) => add("odd", Some(json!("odd"))),
                Value::Object(map) => {
                    let mut map = map.clone();
                    map.insert("later_version".to_owned(), json!({"a": [1]}));
                    add("more", Some(map.into()));
                }
                Value::Array(_) => add("nothing", Some(json!([]))),
                _ => {}
            }
        }
    }
    odd
}

/// What kind of event this is.
fn kind(event: &Value) -> String {
    match event.get("type").and_then(Value::as_str) {
        Some(kind) => kind.to_owned(),
        None => event.as_object().and_then(|map| map.keys().next().cloned()).unwrap_or_default(),
    }
}

/// What fields an event has.
fn shape(event: &Value) -> String {
    format!("{} {:?}", kind(event), paths(event))
}

/// The places in a value.
fn paths(value: &Value) -> Vec<String> {
    let below = |key: &str, value: &Value| {
        let mut list = vec![format!("/{key}")];
        list.extend(paths(value).into_iter().map(|path| format!("/{key}{path}")));
        list
    };
    match value {
        Value::Object(map) => map.iter().flat_map(|(key, value)| below(key, value)).collect(),
        Value::Array(list) => {
            list.iter().enumerate().flat_map(|(at, value)| below(&at.to_string(), value)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the events hold all of a reply: its beginning, where there is one, and its end.
fn is_whole(format: &str, events: &[Value]) -> bool {
    let at = |path: &str| {
        events
            .iter()
            .position(|event| matches!(event.pointer(path), Some(Value::String(word)) if !word.is_empty()))
    };
    let kind = |kind: &str| events.iter().position(|event| event["type"] == kind);
    match format {
        "anthropic" => {
            let begun = kind("message_start");
            let end = at("/delta/stop_reason").or(kind("message_stop"));
            begun.is_some() && begun < end
        }
        "openai_chat" => {
            at("/choices/0/finish_reason").is_some() || events.iter().any(|event| event == "[DONE]")
        }
        "openai_responses" => kind("response.completed").is_some(),
        "gemini" => at("/candidates/0/finishReason").is_some(),
        _ => events.iter().any(|event| event.get("messageStop").is_some()),
    }
}

/// The calls without what we mend: ids that are missing or come twice, names that are missing, and arguments
/// that are no JSON, which stay the text they are.
fn repaired(calls: &Value, beside: &Value) -> Vec<(Value, Value)> {
    let calls = calls.as_array().into_iter().flatten().zip(beside.as_array().into_iter().flatten());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |(call, other): (&Value, &Value)| {
        let read = call[2].is_object() && other[2].is_object();
        (text(&call[1]).into(), if read { call[2].clone() } else { Value::Null })
    };
    calls.map(one).collect()
}

/// Why we may read an odd stream in another way than the vendor's client; each has its line in
/// `docs/divergences.md`. `None` when there is no reason.
fn reason(format: &str, how: &str, straight: &Value, ours: &Value, theirs: &Value) -> Option<&'static str> {
    let same = |keys: &[&str]| keys.iter().all(|key| ours.get(key) == theirs.get(key));
    let counted = |view: &Value| view["calls"].as_array().map(Vec::len);
    if ours.get("error").is_some() {
        return theirs.get("error").is_some().then_some("both refuse it");
    }
    if theirs.get("error").is_some() {
        Some("the client stumbles over it")
    } else if ours == straight {
        Some("nothing of the reply is lost")
    } else if how.starts_with("last ") || (how.starts_with("swapped ") && how.ends_with("message_delta")) {
        Some("what comes after the end is not read")
    } else if how.contains("/usage") && same(&["text", "reasoning", "calls", "stop"]) {
        Some("a count that is missing keeps what was counted before")
    } else if how.contains("/type ") || how.ends_with("/type") && same(&["text", "calls"]) {
        Some("a block of an unknown kind is kept and goes back")
    } else if format == "bedrock_converse" && how.starts_with("seven ") && same(&["reasoning", "calls"]) {
        Some("blocks stand in the order in which they start")
    } else if format == "openai_responses" && same(&["text", "calls", "stop", "usage"]) {
        Some("reasoning without words goes back too")
    } else {
        let repaired = counted(ours) == counted(theirs)
            && repaired(&ours["calls"], &theirs["calls"]) == repaired(&theirs["calls"], &ours["calls"]);
        (repaired && same(&["text", "reasoning", "stop", "usage"]))
            .then_some("calls get ids and keep their text")
    }
}

#[test]
fn the_vendors_clients_and_we_read_the_same_in_odd_streams() {
    let mut streams = Streams::default();
    let mut made = BTreeMap::new();
    // InvokeModel's events are those of the Messages API.
    for (name, format) in FORMATS.into_iter().take(5) {
        let events = everything().events(format);
        let straight = normal(&view(name, &decode(name, &[&stream_bytes(name, &events)]).unwrap()));
        for (number, (how, events)) in odd(&events).into_iter().enumerate() {
            let bytes = stream_bytes(name, &events);
            let ours = match decode(name, &[&bytes]) {
                Ok(reply) => view(name, &reply),
                Err(error) => {
                    let broken = error.to_string().contains("broke off");
                    assert!(!broken || !is_whole(format, &events), "{format}, {how}: {error}");
                    if broken {
                        // Half an answer is not the answer, whatever the client makes of it.
                        continue;
                    }
                    json!({"error": error.to_string()})
                }
            };
            let id = format!("{}-{number}", format.replace('_', "-"));
            streams.add(id.clone(), format, &bytes, ours);
            made.insert(id, (format, how, straight.clone()));
        }
    }
    let judged = match streams.judged() {
        Ok(judged) => judged,
        Err(missing) => {
            println!("skipped the_vendors_clients_and_we_read_the_same_in_odd_streams: {missing}");
            return;
        }
    };
    let differing: Vec<String> = judged
        .into_iter()
        .filter_map(|(id, (ours, theirs))| {
            let (format, how, straight) = &made[&id];
            let fine = ours == theirs || reason(format, how, straight, &ours, &theirs).is_some();
            (!fine).then(|| format!("{format}, {how}\n  ours   {ours}\n  theirs {theirs}"))
        })
        .collect();
    assert!(differing.is_empty(), "{} differ\n{}", differing.len(), differing.join("\n"));
}
