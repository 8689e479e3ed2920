//! Vectors of what the vendors' own clients do: streams, strict schemas, retries, the shapes of requests, and
//! Amazon's signatures and frames.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use toolwright_core::{Message, ModelOptions, ModelReply, ModelRequest, Secret, StopReason, ToolChoice};
use toolwright_models::aws::event_stream::EventStreamReader;
use toolwright_models::aws::sigv4::{Credentials, Signing, sign};
use toolwright_models::dialect::{Dialect, adapt};
use toolwright_models::retry::verdict;
use toolwright_models::vendor::find;
use toolwright_models::wire::{Delivery, ModelTarget};

use super::Tally;

/// Records where we differ on purpose; the reasons are in `docs/divergences.md`.
const DIVERGES: &[&str] = &["anthropic_stream/truncated_json_max_tokens"];

/// Runs files of vectors.
pub fn run(files: &[PathBuf]) -> Result<Tally> {
    let mut tally = Tally::default();
    for file in files {
        for vector in toolwright_testkit::vectors::load::<Value>(file)? {
            check(&vector, &mut tally).with_context(|| format!("{}", vector["id"]))?;
        }
    }
    Ok(tally)
}

fn check(vector: &Value, tally: &mut Tally) -> Result<()> {
    let id = vector["id"].as_str().unwrap_or("?");
    let (input, expected) = (&vector["input"], &vector["expected"]);
    if vector.get("quirk").is_some() || DIVERGES.contains(&id) {
        tally.skip();
        return Ok(());
    }
    let (wanted, got) = match vector["group"].as_str().unwrap_or_default() {
        "anthropic_strict_transform" => transform(expected, input, Dialect::AnthropicStrict),
        "openai_strict_transform" => transform(expected, input, Dialect::OpenAiStrict),
        "anthropic_stream" => stream(expected, input, "anthropic", anthropic_view)?,
        "openai_chat_stream" => stream(expected, input, "openai-chat", chat_view)?,
        "retry" => (expected.clone(), retry(input)),
        "request_shape" => shape(expected, input)?,
        "sigv4" => (expected.clone(), signature(input)?),
        "aws_eventstream" => frames(expected, input)?,
        _ => {
            tally.skip();
            return Ok(());
        }
    };
    tally.check(id, &wanted, &got);
    Ok(())
}

fn transform(expected: &Value, input: &Value, dialect: Dialect) -> (Value, Value) {
    let wanted = expected.get("ok").cloned().unwrap_or_else(|| "error".into());
    (wanted, adapt(input, dialect).map_or_else(|_| "error".into(), |adapted| adapted.schema))
}

fn retry(input: &Value) -> Value {
    let status = input["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or_default();
    let headers = input["headers"].as_object();
    let header = |name: &str| {
        let found = headers?.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.as_str()).map(str::to_owned)
    };
    let verdict = |vendor: &str| {
        let longest = find(vendor).and_then(|vendor| vendor.quirks.longest_after);
        let verdict = verdict(status, header, longest, SystemTime::now());
        json!({"retry": verdict.retry, "retry_after_s": verdict.after})
    };
    json!({"anthropic": verdict("anthropic"), "openai": verdict("openai")})
}

/// The schema that our own requests are tested against must agree with the vendor's client about every
/// request.
fn shape(expected: &Value, input: &Value) -> Result<(Value, Value)> {
    let api = input["api"].as_str().context("no `api`")?;
    let (name, request) = match input.get("request") {
        Some(request) => (api.to_owned(), request),
        None => (format!("{api}_{}", input["type"].as_str().unwrap_or_default()), &input["value"]),
    };
    let file = crate::root().join("testdata/wire/requests.schema.json");
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let definitions = schema["$defs"].as_object_mut().context("no `$defs`")?;
    definitions.values_mut().for_each(as_the_clients_read);
    schema["$ref"] = format!("#/$defs/{name}").into();
    let is = |key: &str| expected.get(key).and_then(Value::as_bool).unwrap_or_default();
    let accepted = jsonschema::validator_for(&schema)?.is_valid(request);
    Ok(((is("valid") && !is("unknown_keys")).into(), accepted.into()))
}

/// The clients read numbers and truth values from text too.
fn as_the_clients_read(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(as_the_clients_read),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut().filter(|(key, _)| !matches!(key.as_str(), "const" | "enum"))
            {
                match value.as_object_mut().filter(|_| key == "properties") {
                    Some(properties) => properties.values_mut().for_each(as_the_clients_read),
                    None => as_the_clients_read(value),
                }
            }
            let also = match fields.get("type").and_then(Value::as_str) {
                _ if fields.contains_key("const") => return,
                Some("integer") => json!({"pattern": "^\\s*[+-]?[0-9]+\\s*$", "type": ["string", "boolean"]}),
                Some("number") => json!({"pattern": "^\\s*[+-]?[0-9.]+\\s*$", "type": ["string", "boolean"]}),
                Some("boolean") => {
                    json!({"enum": [0, 1, "0", "1", "true", "false", "yes", "no", "on", "off", "t", "f", "y", "n"]})
                }
                _ => return,
            };
            *schema = json!({"anyOf": [schema.take(), also]});
        }
        _ => {}
    }
}

fn signature(input: &Value) -> Result<Value> {
    let word = |key: &str| input[key].as_str().with_context(|| format!("no `{key}`"));
    let headers = input["headers"].as_object().into_iter().flatten();
    let headers: Vec<_> =
        headers.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect();
    let signature = sign(&Signing {
        method: word("method")?,
        url: &word("url")?.parse()?,
        headers: &headers,
        body: word("body")?.as_bytes(),
        region: word("region")?,
        service: word("service")?,
        timestamp: word("timestamp")?,
        credentials: &Credentials {
            access_key: word("access_key")?.to_owned(),
            secret_key: Secret::new(word("secret_key")?),
            session_token: input["session_token"].as_str().map(Secret::new),
        },
    });
    Ok(json!({
        "canonical_request": signature.canonical_request,
        "string_to_sign": signature.string_to_sign,
        "signature": signature.signature,
        "authorization": signature.authorization,
    }))
}

/// Reads frames, in one piece and byte by byte.
fn frames(expected: &Value, input: &Value) -> Result<(Value, Value)> {
    let bytes = STANDARD.decode(input["base64"].as_str().context("no `base64`")?)?;
    let read = |size: usize| {
        let mut reader = EventStreamReader::new(16 << 20);
        let mut frames = Vec::new();
        for chunk in bytes.chunks(size.max(1)) {
            let Ok(more) = reader.push(chunk) else { return Value::from("error") };
            frames.extend(more.into_iter().map(
                |frame| json!({"headers": frame.headers, "payload": String::from_utf8_lossy(&frame.payload)}),
            ));
        }
        frames.into()
    };
    let (whole, cut) = (read(bytes.len()), read(1));
    let got = if whole == cut { whole } else { json!({"whole": whole, "byte by byte": cut}) };
    Ok((expected.get("ok").cloned().unwrap_or_else(|| "error".into()), got))
}

/// Decodes a stream and shows the reply as the vendor's client would: the message is sent back and looked at
/// there.
fn stream(
    expected: &Value,
    input: &Value,
    vendor: &str,
    view: fn(&ModelReply, &Value) -> Value,
) -> Result<(Value, Value)> {
    let vendor = find(vendor).context("no such vendor")?;
    let target = ModelTarget { vendor, model: "m" };
    let options = ModelOptions::default();
    let request =
        |messages| ModelRequest { messages, tools: &[], tool_choice: &ToolChoice::None, options: &options };
    let asked = [Message::user("x")];
    let bytes = input["sse"].as_str().context("no `sse`")?.as_bytes();
    let reply = vendor.wire.decoder(target, &request(&asked)).stream(bytes, &mut |_| {});
    let mut wanted = expected.get("ok").cloned().unwrap_or_else(|| "error".into());
    as_it_goes_back(&mut wanted);
    let Ok(reply) = reply else {
        // Its client takes a stream that was cut off for a reply, whose end it does not know.
        let cut = ["stop_reason", "finish_reason"].iter().any(|key| wanted.get(key) == Some(&Value::Null));
        return Ok((if cut { "error".into() } else { wanted }, "error".into()));
    };
    // Its client makes an error of a reply that reached the limit or the filter; ours says so in the reply.
    let stop = match expected.pointer("/error/type").and_then(Value::as_str) {
        Some("LengthFinishReasonError") => Some(StopReason::MaxTokens),
        Some("ContentFilterFinishReasonError") => Some(StopReason::Refusal),
        _ => None,
    };
    // Its client breaks on arguments that are no JSON; ours keeps the text, and the model is told.
    let broken = reply.message.tool_calls.iter().any(|call| call.arguments.is_string());
    if broken && expected.pointer("/error/type").and_then(Value::as_str) == Some("ValueError") {
        return Ok((wanted, "error".into()));
    }
    if let Some(stop) = stop {
        let stopped = if reply.stop == stop { "error" } else { "no error" };
        return Ok((wanted, stopped.into()));
    }
    let messages = [Message::user("x"), Message::Assistant(reply.message.clone())];
    let body = vendor.wire.encode(target, &request(&messages), Delivery::Whole)?;
    Ok((wanted, view(&reply, &body["messages"][1])))
}

/// A reply as it can be sent back: text of no length is no text, no arguments are an empty object, and JSON
/// is JSON however it is spaced.
fn as_it_goes_back(reply: &mut Value) {
    match reply.get_mut("content") {
        Some(Value::Array(blocks)) => blocks.retain(|block| block["text"] != ""),
        Some(content) if *content == "" => *content = Value::Null,
        _ => {}
    }
    for call in reply.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        let arguments = &mut call["function"]["arguments"];
        match arguments.as_str().map(serde_json::from_str::<Value>) {
            _ if *arguments == "" => *arguments = "{}".into(),
            Some(Ok(read)) => *arguments = read.to_string().into(),
            _ => {}
        }
    }
    if let Some(counts) = reply.get_mut("usage").and_then(Value::as_object_mut) {
        counts.retain(|key, count| !key.starts_with("cache_") || *count != 0);
    }
}

fn anthropic_view(reply: &ModelReply, message: &Value) -> Value {
    let usage = &reply.usage;
    let mut counts = Map::new();
    let plain = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens;
    counts.insert("input_tokens".to_owned(), plain.into());
    counts.insert("output_tokens".to_owned(), usage.output_tokens.into());
    if usage.cache_read_tokens > 0 {
        counts.insert("cache_read_input_tokens".to_owned(), usage.cache_read_tokens.into());
    }
    if usage.cache_write_tokens > 0 {
        counts.insert("cache_creation_input_tokens".to_owned(), usage.cache_write_tokens.into());
    }
    let content = message.get("content").cloned().unwrap_or_else(|| json!([]));
    json!({"content": content, "stop_reason": anthropic_stop(reply.stop), "usage": counts})
}

fn anthropic_stop(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolCalls => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Refusal => "refusal",
        StopReason::ContextLength => "model_context_window_exceeded",
        _ => "pause_turn",
    }
}

fn chat_view(reply: &ModelReply, message: &Value) -> Value {
    let finish = match reply.stop {
        StopReason::ToolCalls => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::Refusal => "content_filter",
        _ => "stop",
    };
    let usage = (reply.usage != Default::default()).then(|| {
        json!({
            "prompt_tokens": reply.usage.input_tokens,
            "completion_tokens": reply.usage.output_tokens,
            "total_tokens": reply.usage.total(),
        })
    });
    json!({
        "finish_reason": finish,
        "content": message.get("content"),
        "tool_calls": message.get("tool_calls"),
        "usage": usage,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_vectors_of_the_repository_hold() {
        let tally = super::run(&[crate::root().join("testdata/providers/providers.json")]).unwrap();
        assert!(tally.failures.is_empty(), "{:#?}", tally.failures);
        assert_eq!((tally.passed, tally.skipped), (123, 1));
    }
}
