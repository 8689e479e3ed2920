//! Servers that misbehave, over real connections on loopback: a typed error each time, in bounded time and
//! memory, and no key in any of them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use toolwright_core::{Message, Model as _, ModelDelta, ModelError, ModelErrorKind, ModelReply, Secret};
use toolwright_models::{HttpLimits, ModelSettings, RetryPolicy, VendorModel, connect};

use crate::support::Conversation;

pub(crate) const KEY: &str = "sk-very-secret-0123456789";

/// A server that lets `answer` write to each connection, once the request is read.
pub(crate) struct Server {
    url: String,
    requests: Arc<AtomicUsize>,
    _thread: JoinHandle<()>,
}

impl Server {
    pub(crate) fn new(answer: impl Fn(usize, &mut TcpStream) + Send + 'static) -> Self {
        Self::start(move |number, _, stream| answer(number, stream))
    }

    /// A server that is given what it is asked.
    fn recording(answer: impl Fn(String, &mut TcpStream) + Send + 'static) -> Self {
        Self::start(move |_, request, stream| answer(request, stream))
    }

    fn start(answer: impl Fn(usize, String, &mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let count = requests.clone();
        let _thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let number = count.fetch_add(1, Ordering::SeqCst);
                let request = read_request(&mut stream);
                answer(number, request, &mut stream);
            }
        });
        Server { url, requests, _thread }
    }

    /// How often it was asked.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn model(&self, vendor: &str, retry: RetryPolicy) -> VendorModel {
        self.limited(vendor, retry, Duration::from_secs(60), Duration::from_secs(60))
    }

    /// A model that takes silence for an error after two seconds.
    fn nervous_model(&self, vendor: &str) -> VendorModel {
        self.limited(vendor, RetryPolicy::NEVER, Duration::from_secs(60), Duration::from_secs(2))
    }

    /// A model that waits two seconds for a whole answer.
    pub(crate) fn hasty_model(&self, vendor: &str) -> VendorModel {
        self.limited(vendor, RetryPolicy::NEVER, Duration::from_secs(2), Duration::from_secs(60))
    }

    fn limited(&self, vendor: &str, retry: RetryPolicy, total: Duration, read: Duration) -> VendorModel {
        let limits =
            HttpLimits { connect: Duration::from_secs(60), read, total, body: 1 << 20, event: 64 << 10 };
        let settings = ModelSettings::new()
            .base_url(&self.url)
            .key(Secret::new(KEY))
            .region("us-east-1")
            .limits(limits)
            .retry(retry);
        connect(&format!("{vendor}/m"), settings, |_| None).unwrap()
    }
}

/// Reads the head of a request, and as much body as it promises.
fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap_or(0);
        text.extend_from_slice(&buffer[..read]);
        let string = String::from_utf8_lossy(&text).to_lowercase();
        let Some((head, body)) = string.split_once("\r\n\r\n") else {
            if read == 0 {
                return string;
            }
            continue;
        };
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
        if read == 0 || body.len() >= length.unwrap_or(0) {
            return string;
        }
    }
}

pub(crate) fn respond(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    );
}

pub(crate) fn stream_head(stream: &mut TcpStream) {
    let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
}

const QUICK: RetryPolicy = RetryPolicy {
    retries: 2,
    first: Duration::from_millis(10),
    longest: Duration::from_millis(20),
    budget: Duration::from_secs(5),
};

pub(crate) async fn ask(model: &VendorModel) -> Result<ModelReply, ModelError> {
    let conversation = Conversation::of([Message::user("x")]);
    model.generate(conversation.request()).await
}

pub(crate) async fn ask_streaming(model: &VendorModel) -> (Result<ModelReply, ModelError>, String) {
    let conversation = Conversation::of([Message::user("x")]);
    let mut told = String::new();
    let mut sink = |delta: ModelDelta<'_>| {
        if let ModelDelta::Text(text) = delta {
            told.push_str(text);
        }
    };
    let reply = model.generate_streaming(conversation.request(), &mut sink).await;
    (reply, told)
}

/// The error's whole story, causes included.
fn story(error: &ModelError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text += &format!(" {next} {next:?}");
        cause = next.source();
    }
    text
}

#[track_caller]
pub(crate) fn check(error: &ModelError, kind: ModelErrorKind, text: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(text), "{error}");
    assert!(!story(error).contains(&KEY[3..]), "{}", story(error));
}

const OK: &str = r#"{"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]}"#;

#[tokio::test]
async fn a_good_server_is_answered_and_sees_the_key_once_where_it_belongs() {
    let (tell, seen) = std::sync::mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            tell.send(read_request(&mut stream)).unwrap();
            respond(&mut stream, "200 OK", "", OK);
        }
    });
    let settings = ModelSettings::new().base_url(&url).key(Secret::new(KEY)).header("x-extra", "1");
    let model = connect("openai-compatible/m", settings, |_| None).unwrap();
    assert_eq!(ask(&model).await.unwrap().message.text(), "fine");
    let request = seen.recv().unwrap();
    assert!(request.starts_with("post /v1/chat/completions http/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("authorization: bearer {KEY}\r\n")), "{request}");
    assert!(request.contains("x-extra: 1\r\n"), "{request}");
    assert_eq!(request.matches(KEY).count(), 1);

    let settings =
        ModelSettings::new().base_url(&url).key(Secret::new(KEY)).header("Anthropic-Version", "2026-10-21");
    let model = connect("anthropic-compatible/m", settings, |_| None).unwrap();
    assert_eq!(ask(&model).await.unwrap_err().kind(), ModelErrorKind::Reply);
    let request = seen.recv().unwrap();
    assert!(request.starts_with("post /v1/messages http/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("x-api-key: {KEY}\r\n")), "{request}");
    assert!(request.contains("anthropic-version: 2026-10-21\r\n"), "{request}");
    assert!(!request.contains("2023-06-01"), "{request}");
}

#[tokio::test]
async fn garbage_is_a_typed_error_for_every_format() {
    for vendor in ["anthropic", "openai", "openai-chat", "google"] {
        let server = Server::new(|_, stream| respond(stream, "200 OK", "", "<html>nope</html>"));
        let error = ask(&server.model(vendor, RetryPolicy::NEVER)).await.unwrap_err();
        check(&error, ModelErrorKind::Reply, "not JSON; it starts with \"<html>nope</html>\"");

        let server = Server::new(|_, stream| drop(stream.write_all(b"\x00\x01\x02 what?\r\n\r\n")));
        let error = ask(&server.model(vendor, RetryPolicy::NEVER)).await.unwrap_err();
        check(&error, ModelErrorKind::Unavailable, "cannot reach 127.0.0.1");

        let server = Server::new(|_, stream| {
            stream_head(stream);
            let _ = stream.write_all(b"data: \xff\xfe\n\n");
        });
        let error = ask_streaming(&server.model(vendor, RetryPolicy::NEVER)).await.0.unwrap_err();
        check(&error, ModelErrorKind::Reply, "not UTF-8");
    }
}

#[tokio::test]
async fn endless_answers_and_huge_events_stop_at_their_bounds() {
    let line = "x".repeat(8192);
    let flood = line.clone();
    let server = Server::new(move |_, stream| {
        stream_head(stream);
        // One event without an end; writing stops when the client hangs up.
        while stream.write_all(flood.as_bytes()).is_ok() {}
    });
    let started = Instant::now();
    let error = ask_streaming(&server.model("anthropic", RetryPolicy::NEVER)).await.0.unwrap_err();
    check(&error, ModelErrorKind::Reply, "an event of the stream is over 65536 bytes");

    let server = Server::new(|_, stream| {
        stream_head(stream);
        let chunk = r#"data: {"choices": [{"delta": {"content": "more and more "}}]}"#;
        while stream.write_all(format!("{chunk}\n\n").as_bytes()).is_ok() {}
    });
    let error = ask_streaming(&server.model("openai-chat", RetryPolicy::NEVER)).await.0.unwrap_err();
    check(&error, ModelErrorKind::Reply, "the answer is over 1048576 bytes");

    let server = Server::new(move |_, stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
        while stream.write_all(line.as_bytes()).is_ok() {}
    });
    let error = ask(&server.model("google", RetryPolicy::NEVER)).await.unwrap_err();
    check(&error, ModelErrorKind::Reply, "the answer is over 1048576 bytes");
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn silence_is_an_error_before_the_head_and_in_the_middle() {
    let server = Server::new(|_, _| std::thread::sleep(Duration::from_secs(30)));
    let error = ask(&server.nervous_model("openai-chat")).await.unwrap_err();
    check(&error, ModelErrorKind::Unavailable, "within 2s");

    let server = Server::new(|_, stream| {
        stream_head(stream);
        let _ = stream.write_all(b"data: {\"choices\": [{\"delta\": {\"content\": \"a\"}}]}\n\n");
        std::thread::sleep(Duration::from_secs(30));
    });
    let (reply, told) = ask_streaming(&server.nervous_model("openai-chat")).await;
    check(&reply.unwrap_err(), ModelErrorKind::Unavailable, "fell silent for 2s");
    assert_eq!(told, "a");
}

#[tokio::test]
async fn a_death_in_mid_stream_is_never_a_shorter_reply() {
    let server = Server::new(|_, stream| {
        stream_head(stream);
        let _ = stream.write_all(b"data: {\"choices\": [{\"delta\": {\"content\": \"a\"}}]}\n\ndata: {\"ch");
    });
    let (reply, _) = ask_streaming(&server.model("openai-chat", QUICK)).await;
    check(&reply.unwrap_err(), ModelErrorKind::Reply, "broke off");
    assert_eq!(server.requests(), 1, "what was told is not told twice");

    // The head promises more than comes.
    let server = Server::new(|_, stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{OK}");
    });
    let error = ask(&server.model("openai-chat", RetryPolicy::NEVER)).await.unwrap_err();
    check(&error, ModelErrorKind::Unavailable, "broke in the middle");
}

#[tokio::test]
async fn passing_failures_are_tried_again_and_others_are_not() {
    let server = Server::new(|number, stream| match number {
        0 => respond(stream, "429 Too Many", "retry-after: 0.05\r\n", "{}"),
        1 => respond(stream, "529 Overloaded", "", "{}"),
        _ => respond(stream, "200 OK", "", OK),
    });
    // Both waits are said to be such, so that a run does not count them as work.
    let waits = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = waits.clone();
    let ear = move |time| heard.lock().unwrap().push(time);
    let reply =
        toolwright_core::with_idle_listener(ear, ask(&server.model("openai-chat", QUICK))).await.unwrap();
    assert_eq!((reply.message.text(), server.requests()), ("fine".to_owned(), 3));
    let waits = waits.lock().unwrap().clone();
    assert!(waits.len() == 2 && waits[0] >= std::time::Duration::from_millis(50), "{waits:?}");

    // A connection that dies without a word is tried again too.
    let server = Server::new(|number, stream| {
        if number > 0 {
            respond(stream, "200 OK", "", OK)
        }
    });
    assert!(ask(&server.model("openai-chat", QUICK)).await.is_ok());

    let body = format!(r#"{{"error": {{"message": "no such key: {KEY}"}}}}"#);
    for (status, kind, tries) in [
        ("400 Bad", ModelErrorKind::Request, 1),
        ("401 No", ModelErrorKind::Auth, 1),
        ("404 None", ModelErrorKind::Request, 1),
        ("429 Slow", ModelErrorKind::RateLimit, 3),
        ("500 Oh", ModelErrorKind::Unavailable, 3),
    ] {
        let body = body.clone();
        let server = Server::new(move |_, stream| respond(stream, status, "", &body));
        let error = ask(&server.model("anthropic", QUICK)).await.unwrap_err();
        check(&error, kind, "no such key: [secret]");
        assert_eq!(server.requests(), tries, "{status}");
    }
}

#[tokio::test]
async fn a_server_that_asks_for_too_much_patience_is_reported_at_once() {
    let server = Server::new(|_, stream| respond(stream, "429 Slow", "retry-after: 90\r\n", "{}"));
    let started = Instant::now();
    let error = ask(&server.model("openai-chat", QUICK)).await.unwrap_err();
    check(&error, ModelErrorKind::RateLimit, "(try again in 90 s)");
    assert!(started.elapsed() < Duration::from_secs(40));

    // More than the vendor's own clients would wait: it is not tried again, and still says how long.
    let server = Server::new(|_, stream| respond(stream, "429 Slow", "retry-after: 300\r\n", "{}"));
    let error = ask(&server.model("openai", RetryPolicy::default())).await.unwrap_err();
    check(&error, ModelErrorKind::RateLimit, "(try again in 300 s)");
    assert_eq!(server.requests(), 1);

    // Google says it in the body.
    let body = r#"{"error": {"code": 429, "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "400s"}]}}"#;
    let server = Server::new(move |_, stream| respond(stream, "429 Slow", "", body));
    let error = ask(&server.model("google", RetryPolicy::default())).await.unwrap_err();
    check(&error, ModelErrorKind::RateLimit, "(try again in 400 s)");
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_stream_is_one_however_its_type_is_written_or_when_it_has_none() {
    let kinds = ["content-type: Text/Event-Stream; charset=utf-8\r\n", "content-type: text/plain\r\n", ""];
    for kind in kinds {
        let server = Server::new(move |_, stream| {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n{kind}\r\n\n");
            let chunk =
                r#"{"choices": [{"index": 0, "delta": {"content": "fine"}, "finish_reason": "stop"}]}"#;
            // A heartbeat is not part of the answer.
            let _ = write!(stream, "data:\n\ndata: {chunk}\n\ndata: [DONE]\n\n");
        });
        let (reply, told) = ask_streaming(&server.model("openai-chat", RetryPolicy::NEVER)).await;
        assert_eq!((reply.unwrap().message.text().as_str(), told.as_str()), ("fine", "fine"), "{kind}");
    }
    // A document without a type stays one.
    let server = Server::new(|_, stream| respond(stream, "200 OK", "", OK));
    let (reply, _) = ask_streaming(&server.model("openai-chat", RetryPolicy::NEVER)).await;
    assert_eq!(reply.unwrap().message.text(), "fine");
}

#[tokio::test]
async fn a_model_that_cannot_see_is_told_of_pictures() {
    let picture = || toolwright_core::Content::image("image/png", b"\x89PNG\r\n\x1a\n");
    let call = toolwright_core::ToolCall::new("c", "look", serde_json::json!({}));
    let mut result = toolwright_core::ToolResult::failed(&call, toolwright_core::ToolError::new("no").info());
    result.error = None;
    result.content.push(picture());
    result.content.push(toolwright_core::Content::document("application/pdf", "a.pdf", b"<html>"));
    let conversation = Conversation::of([
        Message::User { content: vec![picture()] },
        Message::Assistant(toolwright_core::AssistantMessage::calls([call])),
        Message::Tool(result),
    ]);
    let (sent, received) = std::sync::mpsc::channel();
    let server = Server::recording(move |request, stream| {
        let _ = sent.send(request);
        respond(stream, "200 OK", "", OK);
    });
    for (images, shown) in [(None, true), (Some(true), true), (Some(false), false)] {
        let config =
            serde_json::json!({"m": {"model": "llama.cpp/m", "base_url": server.url, "images": images}});
        let model = toolwright_models::ModelConfig::read(&config).unwrap()["m"].connect(|_| None).unwrap();
        assert_eq!(model.generate(conversation.request()).await.unwrap().message.text(), "fine");
        let request = received.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(request.matches("data:image/png").count(), if shown { 2 } else { 0 }, "{request}");
        assert_eq!(request.matches("cannot be shown to this model").count(), if shown { 0 } else { 2 });
        assert!(request.contains("left out: its data is not a pdf"), "{request}");
    }
}

#[tokio::test]
async fn redirects_are_refused_and_the_key_stays_here() {
    let other = Server::new(|_, stream| respond(stream, "200 OK", "", OK));
    let location = other.url.replace("127.0.0.1", "localhost");
    let server = Server::new(move |_, stream| {
        respond(stream, "307 Go", &format!("location: {location}/v1/messages\r\n"), "");
    });
    let error = ask(&server.model("anthropic", QUICK)).await.unwrap_err();
    check(
        &error,
        ModelErrorKind::Request,
        "answered 307 and points to localhost; redirects are not followed",
    );
    assert_eq!(other.requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_key_repeated_inside_a_stream_is_not_repeated_by_us() {
    let server = Server::new(|_, stream| {
        stream_head(stream);
        let data = format!(r#"{{"type": "error", "error": {{"type": "x", "message": "key {KEY} is bad"}}}}"#);
        let _ = write!(stream, "data: {data}\n\n");
    });
    let error = ask_streaming(&server.model("anthropic", RetryPolicy::NEVER)).await.0.unwrap_err();
    check(&error, ModelErrorKind::Unavailable, "key [secret] is bad");
    // Nor where a long text is clipped inside of it, or the text is the body of something that is not a
    // reply.
    for (vendor, before) in [("anthropic", 460), ("openai-chat", 480), ("google", 490), ("bedrock", 450)] {
        let server = Server::new(move |_, stream| {
            let said = format!("{}{KEY} and more", "x".repeat(before));
            respond(stream, "400 Bad", "", &format!(r#"{{"error": {{"message": "{said}"}}}}"#));
        });
        let error = ask(&server.model(vendor, RetryPolicy::NEVER)).await.unwrap_err();
        check(&error, ModelErrorKind::Request, "xxx");
        assert!(!error.to_string().contains(KEY.get(..8).unwrap()), "{error}");
    }
    for before in 40..80 {
        let server = Server::new(move |_, stream| {
            respond(stream, "200 OK", "", &format!("{}{KEY} and more", "y".repeat(before)));
        });
        let error = ask(&server.model("openai-chat", RetryPolicy::NEVER)).await.unwrap_err();
        let shown = error.to_string();
        assert!(!shown.contains(KEY.get(..8).unwrap()), "{shown}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let settings = ModelSettings::new().base_url(format!("http://{address}")).retry(QUICK);
    let model = connect("ollama/m", settings, |_| None).unwrap();
    check(&ask(&model).await.unwrap_err(), ModelErrorKind::Unavailable, &format!("cannot reach {address}"));
}

#[tokio::test]
async fn an_error_body_without_end_is_cut() {
    let server = Server::new(|_, stream| {
        let _ = write!(stream, "HTTP/1.1 400 Bad\r\nconnection: close\r\n\r\n");
        while stream.write_all(&[b'x'; 8192]).is_ok() {}
    });
    let error = ask(&server.model("google", RetryPolicy::NEVER)).await.unwrap_err();
    check(&error, ModelErrorKind::Request, "the server answered 400: xxx");
    assert!(error.to_string().len() < 1000);
}

#[tokio::test]
async fn a_server_that_streams_unasked_is_understood() {
    let done = r#"{"choices": [{"delta": {"content": "fine"}, "finish_reason": "stop"}]}"#;
    let events = format!("data: {done}\n\ndata: [DONE]\n\n");
    let server = Server::new(move |_, stream| {
        respond(stream, "200 OK", "content-type: text/event-stream\r\n", &events);
    });
    let reply = ask(&server.model("openai-chat", RetryPolicy::NEVER)).await.unwrap();
    assert_eq!(reply.message.text(), "fine");
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let server = Server::new(|_, stream| respond(stream, "200 OK", "content-type: application/json\r\n", OK));
    let (reply, told) = ask_streaming(&server.model("openai-chat", RetryPolicy::NEVER)).await;
    assert_eq!((reply.unwrap().message.text(), told), ("fine".to_owned(), "fine".to_owned()));
}

#[tokio::test]
async fn a_connection_that_stays_open_after_the_end_is_not_waited_for() {
    let start = r#"{"type": "message_start", "message": {}}"#;
    let message = r#"{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}"#;
    let done = r#"{"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}"#;
    for (vendor, stream) in [
        (
            "anthropic",
            format!("data: {start}\n\ndata: {message}\n\ndata: {{\"type\": \"message_stop\"}}\n\n"),
        ),
        ("openai-chat", format!("data: {done}\n\ndata: [DONE]\n\n")),
        (
            "openai",
            "data: {\"type\": \"response.completed\", \"response\": {\"status\": \"completed\"}}\n\n".into(),
        ),
    ] {
        let server = Server::new(move |_, connection| {
            stream_head(connection);
            let _ = connection.write_all(stream.as_bytes());
            std::thread::sleep(Duration::from_secs(1));
        });
        let (reply, _) = ask_streaming(&server.model(vendor, RetryPolicy::NEVER)).await;
        assert!(reply.is_ok(), "{vendor}: {reply:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_whole_is_not_lost_when_the_connection_ends_badly() {
    let done = r#"{"choices": [{"delta": {"content": "fine"}, "finish_reason": "stop"}]}"#;
    let end = r#"{"candidates": [{"content": {"parts": [{"text": "fine"}]}, "finishReason": "STOP"}]}"#;
    for (vendor, event) in [("openai-chat", done), ("google", end)] {
        for stays in [false, true] {
            let server = Server::new(move |_, connection| {
                let _ = write!(
                    connection,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                );
                let event = format!("data: {event}\n\n");
                let _ = write!(connection, "{:x}\r\n{event}\r\n", event.len());
                if stays {
                    std::thread::sleep(Duration::from_secs(30));
                }
            });
            let (reply, _) = ask_streaming(&server.nervous_model(vendor)).await;
            assert_eq!(reply.unwrap().message.text(), "fine", "{vendor} {stays}");
        }
    }
}

#[tokio::test]
async fn an_end_that_is_said_with_every_event_is_believed_only_when_the_stream_ends() {
    let chat = |text: &str| {
        format!(r#"{{"choices": [{{"delta": {{"content": "{text}"}}, "finish_reason": "stop"}}]}}"#)
    };
    let gemini = |text: &str| {
        format!(
            r#"{{"candidates": [{{"content": {{"parts": [{{"text": "{text}"}}]}}, "finishReason": "STOP"}}]}}"#
        )
    };
    for (vendor, event) in [("openai-chat", &chat as &dyn Fn(&str) -> String), ("google", &gemini)] {
        for texts in [&["", ""][..], &["", "Hel", "lo"], &["Hel", "lo"]] {
            for ends in [false, true] {
                let events: String = texts.iter().map(|text| format!("data: {}\n\n", event(text))).collect();
                let server = Server::new(move |_, connection| {
                    let _ = write!(
                        connection,
                        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                    );
                    let end = if ends { "0\r\n\r\n" } else { "" };
                    let _ = write!(connection, "{:x}\r\n{events}\r\n{end}", events.len());
                });
                let (reply, _) = ask_streaming(&server.model(vendor, RetryPolicy::NEVER)).await;
                match reply {
                    Ok(reply) => {
                        assert!(ends && reply.message.text() == texts.concat(), "{vendor} {texts:?}")
                    }
                    Err(error) => assert!(!ends, "{vendor} {texts:?}: {error}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_call_without_arguments_is_made_where_the_server_never_says_why_it_ended() {
    let call = r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "1", "function": {"name": "now", "arguments": ""}}]}}]}"#;
    let server = Server::new(move |_, connection| {
        stream_head(connection);
        let _ = write!(connection, "data: {call}\n\ndata: [DONE]\n\n");
    });
    let (reply, _) = ask_streaming(&server.model("openai-chat", RetryPolicy::NEVER)).await;
    assert_eq!(reply.unwrap().stop, toolwright_core::StopReason::ToolCalls);
}

#[tokio::test]
async fn arguments_of_very_many_values_are_refused_before_they_are_built() {
    let many = serde_json::Value::from(format!(r#"{{"x": [{}0]}}"#, "0,".repeat(300_000)));
    let call = |id: u8| format!(r#"{{"id": "{id}", "function": {{"name": "f", "arguments": {many}}}}}"#);
    let chat = format!(
        r#"{{"choices": [{{"message": {{"tool_calls": [{}, {}]}}, "finish_reason": "tool_calls"}}]}}"#,
        call(1),
        call(2)
    );
    let one = chat.replace(&format!(", {}", call(2)), "");
    let server = Server::new(move |number, stream| {
        let body = if number == 0 { &one } else { &chat };
        respond(stream, "200 OK", "content-type: application/json\r\n", body);
    });
    let settings = ModelSettings::new().base_url(&server.url).retry(RetryPolicy::NEVER);
    let model = connect("ollama/m", settings, |_| None).unwrap();
    assert!(ask(&model).await.unwrap().message.tool_calls.len() == 1);
    let error = ask(&model).await.unwrap_err();
    check(&error, ModelErrorKind::Reply, "the reply has more than 500000 values");
}

#[tokio::test]
async fn an_answer_that_does_not_say_why_it_ended_may_be_cut_off() {
    let half = r#"{"choices": [{"delta": {"content": "half an ans"}}]}"#;
    let server = Server::new(move |_, connection| {
        stream_head(connection);
        let _ = write!(connection, "data: {half}\n\ndata: [DONE]\n\n");
    });
    let (reply, _) = ask_streaming(&server.model("openai-chat", RetryPolicy::NEVER)).await;
    assert_eq!(reply.unwrap().stop, toolwright_core::StopReason::Other);
}

#[tokio::test]
async fn a_document_of_very_many_values_is_refused_before_it_is_built() {
    let many = format!(r#"{{"choices": [], "x": [{}0]}}"#, "0,".repeat(600_000));
    let quoted = format!(
        r#"{{"choices": [{{"message": {{"content": "{}\"["}}, "finish_reason": "stop"}}]}}"#,
        "a,".repeat(600_000)
    );
    let server = Server::new(move |number, stream| {
        let body = if number == 0 { &quoted } else { &many };
        respond(stream, "200 OK", "content-type: application/json\r\n", body);
    });
    let settings = ModelSettings::new().base_url(&server.url).retry(RetryPolicy::NEVER);
    let model = connect("ollama/m", settings, |_| None).unwrap();
    // Commas and brackets inside a text do not count.
    assert!(ask(&model).await.unwrap().message.text().ends_with("a,\"["));
    let error = ask(&model).await.unwrap_err();
    check(&error, ModelErrorKind::Reply, "the reply has more than 500000 values");
}

#[tokio::test]
async fn a_message_without_its_beginning_is_an_error_and_what_comes_before_it_is_not_part_of_it() {
    let text = |text: &str| {
        let start = serde_json::json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}});
        format!("data: {start}\n\n")
    };
    let start = "data: {\"type\": \"message_start\", \"message\": {}}\n\n";
    let end = "data: {\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"end_turn\"}}\n\ndata: {\"type\": \"message_stop\"}\n\n";
    let heard = async |stream: String| {
        let server = Server::new(move |_, connection| {
            stream_head(connection);
            let _ = connection.write_all(stream.as_bytes());
        });
        ask_streaming(&server.model("anthropic", RetryPolicy::NEVER)).await.0
    };
    let error = heard(format!("{}{end}", text("half"))).await.unwrap_err();
    check(&error, ModelErrorKind::Reply, "the stream broke off");
    let reply = heard(format!("{}{start}{}{end}", text("another's"), text("own"))).await.unwrap();
    assert_eq!(reply.message.text(), "own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_models_that_is_none_is_an_error() {
    let long = format!("HTTP/1.1 200 OK\r\n\r\n{}", "[".repeat(2 << 20));
    for (answer, wanted) in [
        ("HTTP/1.1 200 OK\r\n\r\n<html>", "the list of models is not JSON"),
        ("HTTP/1.1 200 OK\r\n\r\n{\"data\": 1}", "the list of models has no `data`"),
        ("HTTP/1.1 404 Not Found\r\n\r\n", "the server does not say which models it has"),
        (&*long, "the list of models is too long"),
    ] {
        let answer = answer.to_owned();
        let server = Server::new(move |_, stream| drop(stream.write_all(answer.as_bytes())));
        let wait = Duration::from_secs(60);
        let error = toolwright_models::offered(&server.url, wait, wait).await.unwrap_err();
        assert_eq!(error.to_string(), wanted);
    }
}
