//! How requests travel: through proxies, again after a broken stream, at a pace, and with which proof of who
//! asks.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::{ModelErrorKind, Secret};
use toolwright_models::{ModelConfig, ModelSettings, Proxies, RetryPolicy, connect};
use toolwright_testkit::server::{Reply, Server};

use crate::hostile::{self, ask, ask_streaming, stream_head};
use crate::support::stream_bytes;

const OK: &str = r#"{"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]}"#;

const QUICK: RetryPolicy = RetryPolicy {
    retries: 2,
    first: Duration::from_millis(10),
    longest: Duration::from_millis(20),
    budget: Duration::from_secs(30),
};

/// A proxy that tells what it was asked, head and all, and answers as `answer` says.
fn proxy(answer: impl Fn(&mut TcpStream, &str) + Send + 'static) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            answer(&mut stream, &head);
            let _ = tell.send(head);
        }
    });
    (address, asked)
}

/// An environment of a few variables.
fn environment<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
}

fn at(base: &str) -> ModelSettings {
    ModelSettings::new().base_url(base).key(Secret::new("sk-vendor-key")).retry(RetryPolicy::NEVER)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vendor_behind_tls_is_reached_through_a_tunnel() {
    let (said, hello) = channel();
    let (address, asked) = proxy(move |stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        let mut bytes = vec![0; 2048];
        let read = stream.read(&mut bytes).unwrap_or(0);
        bytes.truncate(read);
        let _ = said.send(bytes);
    });
    let with_password = format!("http://user:pass-word-9@{address}");
    let variables = [("HTTPS_PROXY", with_password.as_str())];
    let model = connect("openai-chat/m", at("https://vendor.example/v1"), environment(&variables)).unwrap();
    let error = ask(&model).await.unwrap_err();
    let head = asked.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(head.starts_with("CONNECT vendor.example:443 HTTP/1.1\r\n"), "{head}");
    // `user:pass-word-9`, for the proxy only; the vendor's key travels inside.
    let head = head.to_lowercase();
    assert!(head.contains("proxy-authorization: basic dxnlcjpwyxnzlxdvcmqtoq=="), "{head}");
    assert!(!head.contains("sk-vendor-key"), "{head}");
    // What follows is TLS, for the vendor by name.
    let hello = hello.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(hello[0], 22, "{hello:?}");
    assert!(hello.windows(14).any(|part| part == b"vendor.example"));
    assert_eq!(error.kind(), ModelErrorKind::Unavailable);
    let shown = format!("{error} {error:?} {model:?}");
    assert!(error.to_string().contains("through the proxy 127.0.0.1"), "{error}");
    assert!(!shown.contains("pass-word-9"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_vendor_is_asked_of_the_proxy() {
    let (address, asked) = proxy(|stream, _| {
        let length = OK.len();
        let _ =
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{OK}");
    });
    let model =
        connect("openai-chat/m", at("http://vendor.example/v1"), environment(&[("http_proxy", &address)]))
            .unwrap();
    assert_eq!(ask(&model).await.unwrap().message.text(), "fine");
    let head = asked.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(head.starts_with("POST http://vendor.example/v1/chat/completions HTTP/1.1\r\n"), "{head}");

    // An explicit setting counts more than the environment, in code and in files.
    let settings = at("http://vendor.example/v1").proxies(Proxies::all(&address).unwrap());
    let model =
        connect("openai-chat/m", settings, environment(&[("http_proxy", "http://127.0.0.1:1")])).unwrap();
    assert_eq!(ask(&model).await.unwrap().message.text(), "fine");
    let file =
        json!({"a": {"model": "llama.cpp/m", "base_url": "http://vendor.example/v1", "proxy": address}});
    let model = ModelConfig::read(&file).unwrap()["a"].connect(|_| None).unwrap();
    assert_eq!(ask(&model).await.unwrap().message.text(), "fine");
}

#[tokio::test(flavor = "multi_thread")]
async fn exceptions_this_machine_and_nonsense() {
    let (address, asked) = proxy(|stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 502 no\r\ncontent-length: 0\r\n\r\n");
    });
    // A host that is excepted is dialled itself; there is none of that name.
    let variables = [("http_proxy", address.as_str()), ("no_proxy", "other.example,vendor.invalid")];
    let model =
        connect("openai-chat/m", at("http://api.vendor.invalid/v1"), environment(&variables)).unwrap();
    assert_eq!(ask(&model).await.unwrap_err().kind(), ModelErrorKind::Unavailable);
    // A server on this machine never is behind a proxy.
    let server = Server::start(|_| Reply::json(200, &serde_json::from_str(OK).unwrap_or_default())).unwrap();
    let here = connect("openai-chat/m", at(&server.url()), environment(&variables)).unwrap();
    assert_eq!(ask(&here).await.unwrap().message.text(), "fine");
    assert!(asked.try_recv().is_err(), "the proxy was asked");
    let wrong = connect("openai/m", at("https://x.example"), environment(&[("HTTPS_PROXY", "socks5://x:1")]));
    let wrong = wrong.unwrap_err();
    assert_eq!(wrong.to_string(), "HTTPS_PROXY is a `socks5` proxy; only http and https proxies can be used");
    assert!(wrong.hint().unwrap().contains("NO_PROXY"));
}

fn events() -> Vec<u8> {
    let piece = |delta: Value, end: Value| json!({"choices": [{"delta": delta, "finish_reason": end}]});
    let events =
        [piece(json!({"content": "fi"}), Value::Null), piece(json!({"content": "ne"}), json!("stop"))];
    [stream_bytes("openai-chat", &events), b"data: [DONE]\n\n".to_vec()].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_before_a_word_is_asked_for_again() {
    for broken in ["nothing", "a comment", "an error event"] {
        let server = hostile::Server::new(move |number, stream| {
            stream_head(stream);
            let bytes = match (number, broken) {
                (0, "nothing") => Vec::new(),
                (0, "a comment") => b": working\n\n".to_vec(),
                (0, _) => b"data: {\"error\": {\"message\": \"overloaded\", \"code\": 503}}\n\n".to_vec(),
                _ => events(),
            };
            let _ = stream.write_all(&bytes);
        });
        let (reply, told) = ask_streaming(&server.model("openai-chat", QUICK)).await;
        assert_eq!((reply.unwrap().message.text().as_str(), told.as_str()), ("fine", "fine"), "{broken}");
        assert_eq!(server.requests(), 2, "{broken}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_after_a_word_is_an_error() {
    let server = hostile::Server::new(|_, stream| {
        stream_head(stream);
        let events = events();
        let _ = stream.write_all(&events[..events.len() / 2]);
    });
    let (reply, told) = ask_streaming(&server.model("openai-chat", QUICK)).await;
    assert!(matches!(reply.unwrap_err().kind(), ModelErrorKind::Reply | ModelErrorKind::Unavailable));
    assert_eq!((told.as_str(), server.requests()), ("fi", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_breaks_off_is_asked_for_again() {
    let server = hostile::Server::new(|number, stream| {
        let length = OK.len();
        let body = if number == 0 { &OK[..10] } else { OK };
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
        let _ = write!(stream, "{head}connection: close\r\n\r\n{body}");
    });
    assert_eq!(ask(&server.model("openai-chat", QUICK)).await.unwrap().message.text(), "fine");
    assert_eq!(server.requests(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn bedrock_takes_a_bearer_token_and_no_signature() {
    let converse = json!({
        "output": {"message": {"role": "assistant", "content": [{"text": "fine"}]}}, "stopReason": "end_turn"
    });
    let invoke = json!({"content": [{"type": "text", "text": "fine"}], "stop_reason": "end_turn"});
    let server = Server::start(move |request| {
        let body = if request.target.ends_with("/converse") { &converse } else { &invoke };
        Reply::json(200, body)
    })
    .unwrap();
    for (vendor, path) in [("bedrock", "converse"), ("bedrock-invoke", "invoke")] {
        // Keys that are there too are not used: the token comes first.
        let variables = [
            ("AWS_BEARER_TOKEN_BEDROCK", "token-1"),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ];
        let settings = ModelSettings::new().base_url(server.url()).region("us-east-1").retry(QUICK);
        let name = format!("{vendor}/anthropic.claude-3-haiku-20240307-v1:0");
        let model = connect(&name, settings, environment(&variables)).unwrap();
        assert_eq!(ask(&model).await.unwrap().message.text(), "fine", "{vendor}");
        let asked = server.requests().pop().unwrap();
        assert_eq!(asked.header("authorization"), Some("Bearer token-1"), "{vendor}");
        for signed in ["x-amz-date", "x-amz-security-token", "x-amz-content-sha256"] {
            assert_eq!(asked.header(signed), None, "{vendor}");
        }
        assert_eq!(asked.header("content-type"), Some("application/json"));
        assert_eq!(
            asked.target,
            format!("/model/anthropic.claude-3-haiku-20240307-v1%3A0/{path}"),
            "{vendor}"
        );
        let body = asked.json();
        assert_eq!(body.get("model"), None, "{vendor}");
        assert_eq!(body.get("anthropic_version").is_some(), vendor == "bedrock-invoke", "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_the_next_time_too_is_not_sent_again() {
    for (status, message, kind) in [
        (500, "image input is not supported - hint: provide the mmproj", ModelErrorKind::Request),
        (500, "the request exceeds the available context size", ModelErrorKind::ContextLength),
        (429, "Request too large for m on tokens per min (TPM)", ModelErrorKind::ContextLength),
    ] {
        let body = json!({"error": {"code": status, "message": message, "type": "server_error"}});
        let server = Server::start(move |_| Reply::json(status, &body)).unwrap();
        let settings = ModelSettings::new().base_url(server.url()).retry(QUICK);
        let model = connect("llama.cpp/m", settings, |_| None).unwrap();
        assert_eq!(ask(&model).await.unwrap_err().kind(), kind, "{message}");
        assert_eq!(server.requests().len(), 1, "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_with_a_pace_is_not_asked_faster() {
    let server = Server::start(|_| Reply::json(200, &serde_json::from_str(OK).unwrap_or_default())).unwrap();
    let pace = json!({"requests_per_second": 5, "max_bucket_size": 1});
    let file = json!({"a": {"model": "llama.cpp/m", "base_url": server.url(), "rate_limiter": pace}});
    let model = ModelConfig::read(&file).unwrap()["a"].connect(|_| None).unwrap();
    let start = std::time::Instant::now();
    for _ in 0..4 {
        ask(&model).await.unwrap();
    }
    assert!(start.elapsed() >= Duration::from_millis(600), "{:?}", start.elapsed());
}
