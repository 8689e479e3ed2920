//! Peers written by others: the official Python client against our server, and our client against fastmcp.
//!
//! They need `target/peers/mcp` (made by `cargo xtask bench mcp`, or by hand: a virtual environment with
//! `mcp` and `fastmcp`); where it is missing the tests are skipped, by name.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::{BoxFuture, Content, ErrorKind};
use toolwright_mcp::{Browser, Client, ClientOptions, HttpTarget, OAuthOptions, ServerCommand, TokenStore};

use crate::support::example;

pub(crate) fn python(test: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/mcp/bin/python");
    if root.exists() {
        return Some(root);
    }
    eprintln!("skipped: {test} (no Python peers in target/peers/mcp)");
    None
}

pub(crate) fn beside(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(file)
}

async fn check_official_client(test: &str, mode: &str) {
    let Some(python) = python(test) else { return };
    let mut command = tokio::process::Command::new(python);
    command.arg(beside("official_client.py")).arg(example()).arg(mode).kill_on_drop(true);
    let output =
        tokio::time::timeout(Duration::from_secs(60), command.output()).await.expect("in time").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tools = seen.as_object_mut().unwrap().remove("tools").unwrap();
    assert_eq!(tools[0], "test_simple_text");
    assert_eq!(
        seen,
        json!({
            "text": "This is a simple text response for testing.",
            "image": ["image", "image/png"],
            "many": ["text", "image", "resource", "resource", "resource_link", "text"],
            "structured": {"result": 3},
            "error": true,
            "wrong": true,
            "progress": [[0.0, 100.0], [50.0, 100.0], [100.0, 100.0]],
            "many_calls": 2016,
            "cancel": true,
            "after": "waited"
        })
    );
}

#[tokio::test]
async fn the_official_client_uses_our_server_with_a_session() {
    check_official_client("the_official_client_uses_our_server_with_a_session", "legacy").await;
}

#[tokio::test]
async fn the_official_client_uses_our_server_without_a_session() {
    check_official_client("the_official_client_uses_our_server_without_a_session", "2026-07-28").await;
}

#[tokio::test]
async fn the_official_client_finds_out_by_itself() {
    check_official_client("the_official_client_finds_out_by_itself", "auto").await;
}

#[tokio::test]
async fn our_client_uses_a_fastmcp_server() {
    check_server("our_client_uses_a_fastmcp_server", "fastmcp_server.py").await;
}

#[tokio::test]
async fn our_client_uses_a_server_of_the_official_sdk() {
    check_server("our_client_uses_a_server_of_the_official_sdk", "mcp_server.py").await;
}

async fn check_server(test: &str, script: &str) {
    let Some(python) = python(test) else { return };
    let command = ServerCommand::new(python).args([beside(script)]);
    let client = Client::start(&command, ClientOptions::default()).await.unwrap();
    assert_eq!(client.info().server.name, "peer");
    let soon = Duration::from_secs(60);
    let listing = client.list_tools().await.unwrap();
    let names: Vec<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add", "picture", "fail", "count", "wait"]);
    let sum = client.call_tool("add", json!({"x": 1, "y": 2}), soon, None).await.unwrap();
    assert_eq!(sum.structured, Some(json!({"result": 3})));
    let picture = client.call_tool("picture", json!({}), soon, None).await.unwrap();
    assert_eq!(picture.content, [Content::image("image/png", b"\x89PNG\r\n\x1a\n")]);
    let error = client.call_tool("fail", json!({}), soon, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    // The official SDK tells clients only that the tool failed, not why.
    let says_why = script == "fastmcp_server.py";
    assert!(!says_why || error.message().contains("no such city"), "{error}");
    let seen: Arc<Mutex<Vec<f64>>> = Arc::default();
    let noting = seen.clone();
    let on_progress = Arc::new(move |done, _, _| noting.lock().unwrap().push(done));
    client.call_tool("count", json!({}), soon, Some(on_progress)).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [1.0, 2.0, 3.0]);
    let late = client.call_tool("wait", json!({"seconds": 600}), Duration::from_millis(300), None).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
    let after = client.call_tool("wait", json!({"seconds": 1}), soon, None).await.unwrap();
    assert_eq!(after.to_text(), "waited");
    client.close().await;
}

/// A person who allows what the page asks, which sends them straight back.
struct Willing;

impl Browser for Willing {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:5/callback".to_owned()
    }

    fn visit<'a>(&'a self, page: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let soon = Duration::from_secs(60);
            let client = toolwright_net::client(false, soon, soon).unwrap();
            let answer = client.get(page).send().await.map_err(|error| error.to_string())?;
            let back = answer.headers().get("location").ok_or_else(|| format!("{answer:?}"))?;
            Ok(back.to_str().unwrap().to_owned())
        })
    }
}

#[tokio::test]
async fn our_client_is_allowed_into_a_guarded_fastmcp_server() {
    let Some(python) = python("our_client_is_allowed_into_a_guarded_fastmcp_server") else { return };
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let start = async || {
        let mut server = tokio::process::Command::new(&python);
        server.arg(beside("fastmcp_guarded.py")).arg(port.to_string()).kill_on_drop(true);
        let server = server.stderr(std::process::Stdio::null()).spawn().unwrap();
        let up = async {
            while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), up).await.expect("the server starts");
        server
    };
    let folder = tempfile::tempdir().unwrap();
    let greeted = async || {
        let mut oauth = OAuthOptions::default();
        oauth.browser = Some(Arc::new(Willing));
        oauth.store = TokenStore::in_file(folder.path().join("tokens.json"));
        let target = HttpTarget::new(format!("http://127.0.0.1:{port}/mcp")).oauth(oauth);
        let client = Client::dial(&target, ClientOptions::default()).await.unwrap();
        let said = client.call_tool("hello", json!({"name": "Ada"}), Duration::from_secs(60), None).await;
        assert_eq!(said.unwrap().to_text(), "hello Ada");
        client.close().await;
    };
    let mut server = start().await;
    greeted().await;
    server.kill().await.unwrap();
    // Started again, it knows neither the token nor the client.
    let _server = start().await;
    greeted().await;
}
