//! More servers that misbehave, with faults inside what looks like an answer: a typed error each time, in
//! bounded time and memory, and no key in any of them.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_core::{ModelErrorKind, StopReason};
use toolwright_models::RetryPolicy;

use crate::hostile::{KEY, Server, ask, ask_streaming, check, respond, stream_head};
use crate::support::{FORMATS, stream_bytes};

/// Every vendor that stands for a format.
fn vendors() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|(name, _)| *name)
}

/// A head for the kind of stream that a vendor sends.
fn head_for(vendor: &str, stream: &mut std::net::TcpStream) {
    if vendor.starts_with("bedrock") {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
    } else {
        stream_head(stream);
    }
}

#[tokio::test]
async fn a_head_that_comes_letter_by_letter_ends_with_the_time() {
    let server = Server::new(|_, stream| {
        for byte in "HTTP/1.1 200 OK\r\nx-slow: ".bytes().chain(std::iter::repeat(b'y')) {
            if stream.write_all(&[byte]).and_then(|()| stream.flush()).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let started = Instant::now();
    let error = ask(&server.hasty_model("openai-chat")).await.unwrap_err();
    check(&error, ModelErrorKind::Unavailable, "");
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn an_answer_that_trickles_ends_with_the_time() {
    for vendor in vendors() {
        let server = Server::new(move |_, stream| {
            head_for(vendor, stream);
            while stream.write_all(b":").and_then(|()| stream.flush()).is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let error = ask_streaming(&server.hasty_model(vendor)).await.0.unwrap_err();
        // Amazon's frames start with a checksum, so theirs may be seen to be nonsense before.
        let nonsense = vendor.starts_with("bedrock") && error.kind() == ModelErrorKind::Reply;
        let kind = if nonsense { ModelErrorKind::Reply } else { ModelErrorKind::Unavailable };
        check(&error, kind, "");
    }
}

#[tokio::test]
async fn a_hundred_megabytes_in_one_event_are_not_read() {
    for vendor in vendors() {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = sent.clone();
        let server = Server::new(move |_, stream| {
            head_for(vendor, stream);
            let start: &[u8] = if vendor.starts_with("bedrock") { &HUGE_FRAME } else { b"data: {\"x\": \"" };
            let _ = stream.write_all(start);
            let block = [b'x'; 1 << 16];
            while count.load(Ordering::SeqCst) < 100 << 20 && stream.write_all(&block).is_ok() {
                count.fetch_add(block.len(), Ordering::SeqCst);
            }
        });
        let error = ask_streaming(&server.model(vendor, RetryPolicy::NEVER)).await.0.unwrap_err();
        check(&error, ModelErrorKind::Reply, "an event of the stream is over 65536 bytes");
        // What the system's buffers took on the way is all that was sent.
        assert!(sent.load(Ordering::SeqCst) < 16 << 20, "{vendor}: {}", sent.load(Ordering::SeqCst));
    }
}

/// The start of a frame that says it is 100 MB long, with the right checksum.
const HUGE_FRAME: [u8; 12] = {
    let mut frame = [0x06, 0x40, 0x00, 0x00, 0, 0, 0, 0, 0, 0, 0, 0];
    let crc = crc32_of_eight(&frame);
    frame[8] = (crc >> 24) as u8;
    frame[9] = (crc >> 16) as u8;
    frame[10] = (crc >> 8) as u8;
    frame[11] = crc as u8;
    frame
};

const fn crc32_of_eight(bytes: &[u8; 12]) -> u32 {
    let (mut crc, mut at) = (u32::MAX, 0);
    while at < 8 {
        crc ^= bytes[at] as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        at += 1;
    }
    !crc
}

#[tokio::test]
async fn pages_for_people_are_no_answers() {
    for vendor in vendors() {
        let page = "<!doctype html><title>Sign in</title>";
        let server =
            Server::new(move |_, stream| respond(stream, "200 OK", "content-type: text/html\r\n", page));
        let error = ask_streaming(&server.model(vendor, RetryPolicy::NEVER)).await.0.unwrap_err();
        check(&error, ModelErrorKind::Reply, "not JSON; it starts with \"<!doctype html>");
        let server =
            Server::new(move |_, stream| respond(stream, "502 Bad", "content-type: text/html\r\n", page));
        let error = ask(&server.model(vendor, RetryPolicy::NEVER)).await.unwrap_err();
        check(&error, ModelErrorKind::Unavailable, "the server answered 502: <!doctype html>");
    }
}

#[tokio::test]
async fn every_kind_of_nonsense_in_a_stream_is_an_error_and_never_a_panic() {
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let deep_object = "{\"a\":".repeat(20_000);
    let nonsense: Vec<String> = [
        "null",
        "true",
        "7",
        "\"x\"",
        "[]",
        "[[]]",
        "{}",
        "{\"type\": 7}",
        "{\"choices\": 7}",
        "{\"choices\": [7]}",
        "{\"choices\": [{\"delta\": 7}]}",
        "{\"choices\": [{\"delta\": {\"tool_calls\": [7, null, {}]}}]}",
        "{\"candidates\": {}}",
        "{\"candidates\": [{\"content\": {\"parts\": [7, {}]}}]}",
        "{\"type\": \"content_block_start\"}",
        "{\"type\": \"content_block_delta\", \"index\": 99}",
        "{\"type\": \"content_block_delta\", \"index\": -1, \"delta\": null}",
        "{\"type\": \"response.output_item.done\"}",
        "{\"type\": \"response.completed\", \"response\": 7}",
        "{\"contentBlockDelta\": 7}",
        "{\"contentBlockStart\": {\"start\": {\"toolUse\": 7}}}",
        "{\"messageStop\": null}",
        "{\"metadata\": []}",
        "{\"type\": \"message_delta\", \"usage\": {\"output_tokens\": 1e99}}",
        "{",
        "{\"a\": \"\\ud800\"}",
        "\u{feff}{}",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([deep, deep_object])
    .collect();
    for vendor in vendors() {
        for text in &nonsense {
            let event = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
            let bytes = match (vendor.starts_with("bedrock"), event) {
                (true, Some(event)) if !event.as_object().unwrap().is_empty() => {
                    stream_bytes(vendor, &[event])
                }
                (true, _) => text.clone().into_bytes(),
                (false, _) => format!("data: {text}\n\n").into_bytes(),
            };
            let server = Server::new(move |_, stream| {
                head_for(vendor, stream);
                let _ = stream.write_all(&bytes);
            });
            let reply = ask_streaming(&server.model(vendor, RetryPolicy::NEVER)).await.0;
            let shown: String = text.chars().take(60).collect();
            match reply {
                Err(error) => check(&error, ModelErrorKind::Reply, ""),
                // Some of it is an empty reply that says it is complete, which one may say.
                Ok(reply) => assert!(reply.message.tool_calls.is_empty(), "{vendor}: {shown}: {reply:?}"),
            }
        }
    }
}

#[tokio::test]
async fn wrong_and_repeated_ids_are_sorted_out_or_refused() {
    // The same id twice, and none at all: results could not be told apart, so the calls get ids of their own.
    let call =
        |id: Value| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let body = json!({"choices": [{"message": {"tool_calls": [call("a".into()), call("a".into()), call(Value::Null)]}}]});
    let server = Server::new(move |_, stream| respond(stream, "200 OK", "", &body.to_string()));
    let reply = ask(&server.model("openai-chat", RetryPolicy::NEVER)).await.unwrap();
    let ids: std::collections::HashSet<_> = reply.message.tool_calls.iter().map(|call| &call.id).collect();
    assert_eq!((ids.len(), reply.stop), (3, StopReason::ToolCalls));

    // More of a block that never started.
    for (vendor, start, event) in [
        (
            "anthropic",
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": "x"}}),
        ),
        (
            "bedrock",
            json!({"messageStart": {"role": "assistant"}}),
            json!({"contentBlockDelta": {"contentBlockIndex": 4, "delta": {"toolUse": {"input": "{}"}}}}),
        ),
    ] {
        let bytes = stream_bytes(vendor, &[start, event]);
        let server = Server::new(move |_, stream| {
            head_for(vendor, stream);
            let _ = stream.write_all(&bytes);
        });
        let error = ask_streaming(&server.model(vendor, RetryPolicy::NEVER)).await.0.unwrap_err();
        check(&error, ModelErrorKind::Reply, "block 4, which never started");
    }
}

#[tokio::test]
async fn damaged_frames_end_the_answer_and_what_came_before_is_not_taken_for_all() {
    let events = [
        json!({"messageStart": {"role": "assistant"}}),
        json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "half"}}}),
        json!({"messageStop": {"stopReason": "end_turn"}}),
    ];
    let whole = stream_bytes("bedrock", &events);
    for at in [3, 9, 30, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let server = Server::new(move |_, stream| {
            head_for("bedrock", stream);
            let _ = stream.write_all(&bytes);
        });
        let error = ask_streaming(&server.model("bedrock", RetryPolicy::NEVER)).await.0.unwrap_err();
        check(&error, ModelErrorKind::Reply, "");
    }
    let told = json!({"accessDeniedException": {"message": format!("the key {KEY} may not")}});
    let bytes = stream_bytes("bedrock", &[told]);
    let server = Server::new(move |_, stream| {
        head_for("bedrock", stream);
        let _ = stream.write_all(&bytes);
    });
    let error = ask_streaming(&server.model("bedrock", RetryPolicy::NEVER)).await.0.unwrap_err();
    check(&error, ModelErrorKind::Auth, "the key [secret] may not");
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let server = Server::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        let line = format!("x-more: {}\r\n", "y".repeat(4096));
        for _ in 0..100_000 {
            if stream.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    let error = ask(&server.model("anthropic", RetryPolicy::NEVER)).await.unwrap_err();
    check(&error, ModelErrorKind::Unavailable, "cannot reach 127.0.0.1");
}
