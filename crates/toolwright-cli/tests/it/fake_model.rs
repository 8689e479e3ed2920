//! A model's server for tests: it says one thing, in the forms of Anthropic and of OpenAI, and keeps what it
//! was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub struct FakeModel {
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// First lines of the requests that came.
    pub asked: Arc<Mutex<Vec<String>>>,
    /// The bodies of those that had one.
    pub bodies: Arc<Mutex<Vec<String>>>,
}

pub const THOUGHT: &str = "They greet me, so I greet them.";
pub const ANSWER: &str = "Good day to you.";

impl FakeModel {
    pub fn start() -> FakeModel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let (kept, read) = (asked.clone(), bodies.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, read) = (kept.clone(), read.clone());
                // A client that goes away in the middle is its own affair.
                std::thread::spawn(move || answer(stream, &kept, &read));
            }
        });
        FakeModel { address, asked, bodies }
    }
}

fn answer(mut stream: TcpStream, asked: &Mutex<Vec<String>>, bodies: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if first.trim().is_empty() {
        return None;
    }
    asked.lock().unwrap().push(first.trim().to_owned());
    let body = String::from_utf8_lossy(&body).into_owned();
    let streamed = body.replace(' ', "").contains("\"stream\":true");
    if !body.is_empty() {
        bodies.lock().unwrap().push(body);
    }
    let (kind, text) = match (first.split_whitespace().nth(1)?, streamed) {
        ("/v1/models", _) => ("application/json", r#"{"data": [{"id": "tiny"}]}"#.to_owned()),
        ("/v1/messages", true) => ("text/event-stream", anthropic()),
        ("/v1/messages", false) => ("application/json", anthropic_whole()),
        ("/v1/chat/completions", true) => ("text/event-stream", openai()),
        ("/v1/chat/completions", false) => ("application/json", openai_whole()),
        _ => ("text/plain", "no".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(text.as_bytes()).ok()
}

fn anthropic() -> String {
    let events = [
        r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":1200,"output_tokens":1}}}"#.to_owned(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#.to_owned(),
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"thinking_delta","thinking":"{THOUGHT}"}}}}"#),
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#.to_owned(),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#.to_owned(),
        format!(r#"{{"type":"content_block_delta","index":1,"delta":{{"type":"text_delta","text":"{ANSWER}"}}}}"#),
        r#"{"type":"content_block_stop","index":1}"#.to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":50}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    let name = |event: &str| event.split('"').nth(3).unwrap_or_default().to_owned();
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", name(event))).collect()
}

fn anthropic_whole() -> String {
    format!(
        r#"{{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"{ANSWER}"}}],"stop_reason":"end_turn","usage":{{"input_tokens":1200,"output_tokens":50}}}}"#
    )
}

fn openai() -> String {
    let chunk = |delta: String, end: &str| {
        format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"tiny\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{end}}}]}}\n\n"
        )
    };
    let text = format!("{{\"role\":\"assistant\",\"content\":\"{ANSWER}\"}}");
    chunk(text, "null") + &chunk("{}".to_owned(), "\"stop\"") + "data: [DONE]\n\n"
}

fn openai_whole() -> String {
    format!(
        r#"{{"id":"c","object":"chat.completion","created":1,"model":"tiny","choices":[{{"index":0,"message":{{"role":"assistant","content":"{ANSWER}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}}}"#
    )
}
