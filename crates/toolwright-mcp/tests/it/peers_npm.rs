//! Peers from npm: the reference servers under our client, and our server under the TypeScript SDK and the
//! Inspector.
//!
//! They need `target/peers/mcp-npm`, which `cargo xtask test` installs; where it is missing the tests are
//! skipped, by name.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use toolwright_core::{Content, ErrorKind};
use toolwright_mcp::{Client, ClientOptions, HttpTarget, ServerCommand};

use crate::http::serve;
use crate::peers::{beside, python};
use crate::support::eventually;

const SOON: Duration = Duration::from_secs(60);

fn home(test: &str) -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/mcp-npm");
    if home.join("node_modules/node/bin/node").exists() {
        return home.canonicalize().ok();
    }
    eprintln!("skipped: {test} (no npm peers in target/peers/mcp-npm)");
    None
}

fn node(home: &Path) -> PathBuf {
    home.join("node_modules/node/bin/node")
}

fn script(home: &Path, package: &str) -> PathBuf {
    home.join("node_modules/@modelcontextprotocol").join(package).join("dist/index.js")
}

async fn printed(mut command: Command) -> Value {
    let output =
        tokio::time::timeout(SOON, command.kill_on_drop(true).output()).await.expect("in time").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn use_server_everything(client: &Client) {
    let names: Vec<_> = client.list_tools().await.unwrap().tools.into_iter().map(|tool| tool.name).collect();
    assert!(names.iter().any(|name| name == "get-structured-content"), "{names:?}");
    let echo = client.call_tool("echo", json!({"message": "hi"}), SOON, None).await.unwrap();
    assert_eq!(echo.to_text(), "Echo: hi");
    let image = client.call_tool("get-tiny-image", json!({}), SOON, None).await.unwrap();
    assert!(image.content.iter().any(|block| matches!(block, Content::Image(_))));
    let weather = json!({"location": "New York"});
    let structured = client.call_tool("get-structured-content", weather, SOON, None).await.unwrap();
    assert!(structured.structured.unwrap().get("temperature").is_some());
    let wrong = client.call_tool("get-sum", json!({"a": "one"}), SOON, None).await.unwrap_err();
    assert!(matches!(wrong.kind(), ErrorKind::Unknown | ErrorKind::Parsing), "{wrong}");
    let seen: Arc<Mutex<Vec<f64>>> = Arc::default();
    let noting = seen.clone();
    let on_progress = Arc::new(move |done, _, _| noting.lock().unwrap().push(done));
    let long = json!({"duration": 1, "steps": 3});
    client.call_tool("trigger-long-running-operation", long, SOON, Some(on_progress)).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [1.0, 2.0, 3.0]);
    let long = json!({"duration": 60, "steps": 60});
    let late =
        client.call_tool("trigger-long-running-operation", long, Duration::from_millis(300), None).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
    let echo = client.call_tool("echo", json!({"message": "still here"}), SOON, None).await.unwrap();
    assert_eq!(echo.to_text(), "Echo: still here");
    let topic = json!({"topic": "tools"});
    let research = client.call_tool("simulate-research-query", topic, SOON, None).await.unwrap();
    assert!(research.to_text().contains("tools"), "a tool that is a task only: {research:?}");
    let resources = client.list_resources().await.unwrap();
    assert!(!client.read_resource(&resources[0].uri).await.unwrap().is_empty());
    assert!(!client.list_prompts().await.unwrap().is_empty());
}

#[tokio::test]
async fn the_reference_server_over_pipes() {
    let Some(home) = home("the_reference_server_over_pipes") else { return };
    let command = ServerCommand::new(node(&home)).args([script(&home, "server-everything")]);
    let client = Client::start(&command, ClientOptions::default()).await.unwrap();
    use_server_everything(&client).await;
    client.close().await;
}

/// Starts the reference server over HTTP and says where it is.
async fn over_http(home: &Path, mode: &str) -> (tokio::process::Child, u16) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(node(home));
    command.arg(script(home, "server-everything")).arg(mode).env("PORT", port.to_string()).kill_on_drop(true);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let child = command.spawn().unwrap();
    for _ in 0..600 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    (child, port)
}

#[tokio::test]
async fn the_reference_server_over_streamable_http() {
    let Some(home) = home("the_reference_server_over_streamable_http") else { return };
    let (_server, port) = over_http(&home, "streamableHttp").await;
    let target = HttpTarget::new(format!("http://127.0.0.1:{port}/mcp"));
    let client = Client::dial(&target, ClientOptions::default()).await.unwrap();
    assert_eq!(client.info().version, "2025-11-25");
    use_server_everything(&client).await;
}

#[tokio::test]
async fn the_reference_server_over_the_older_http() {
    let Some(home) = home("the_reference_server_over_the_older_http") else { return };
    let (_server, port) = over_http(&home, "sse").await;
    let target = HttpTarget::new(format!("http://127.0.0.1:{port}/sse")).legacy_sse();
    let client = Client::dial(&target, ClientOptions::default()).await.unwrap();
    use_server_everything(&client).await;
}

#[tokio::test]
async fn the_reference_server_for_files() {
    let Some(home) = home("the_reference_server_for_files") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::write(folder.join("a.txt"), "one\ntwo\n").unwrap();
    let command = ServerCommand::new(node(&home)).args([script(&home, "server-filesystem"), folder.clone()]);
    let client = Client::start(&command, ClientOptions::default()).await.unwrap();
    let read =
        async |path: &Path| client.call_tool("read_text_file", json!({"path": path}), SOON, None).await;
    assert_eq!(read(&folder.join("a.txt")).await.unwrap().to_text(), "one\ntwo\n");
    let outside = read(Path::new("/etc/passwd")).await.unwrap_err();
    assert!(outside.message().contains("denied"), "{outside}");
    let write = json!({"path": folder.join("b.txt"), "content": "three"});
    client.call_tool("write_file", write, SOON, None).await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("b.txt")).unwrap(), "three");
    std::fs::write(folder.join("p.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    let picture = json!({"path": folder.join("p.png")});
    let picture = client.call_tool("read_media_file", picture, SOON, None).await.unwrap();
    assert_eq!(picture.content, [Content::image("image/png", b"\x89PNG\r\n\x1a\n")]);
    let listed = json!({"path": folder});
    let listed = client.call_tool("list_directory", listed, SOON, None).await.unwrap();
    assert!(listed.structured.is_some_and(|value| value.to_string().contains("b.txt")));
    // Many files take a while to search: one search is given up, the next one is waited for.
    for number in 0..2000 {
        std::fs::write(folder.join(format!("f{number}.txt")), "x").unwrap();
    }
    let search = || json!({"path": folder, "pattern": "**/f1999.txt"});
    let late = client.call_tool("search_files", search(), Duration::from_millis(1), None).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout);
    let on_progress = Arc::new(|_, _, _| {});
    let found = client.call_tool("search_files", search(), SOON, Some(on_progress)).await.unwrap();
    assert!(found.to_text().contains("f1999.txt"));
    client.close().await;
}

/// What every client must see.
fn expected() -> Value {
    json!({
        "tools": true,
        "text": "This is a simple text response for testing.",
        "image": "image/png",
        "structured": {"result": 3},
        "error": true,
        "progress": [0, 50, 100],
        "cancel": true,
        "after": "waited",
        "resource": "This is the content of the static text resource.",
        "prompt": "This is a simple prompt for testing."
    })
}

async fn check_typescript_client(test: &str, revision: Option<&str>) {
    let Some(home) = home(test) else { return };
    let server = serve(None).await;
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("witness");
    let mut command = Command::new(node(&home));
    command.arg(beside("sdk_client.mjs")).arg(&home).arg(server.url()).arg(&witness).args(revision);
    assert_eq!(printed(command).await, expected());
    eventually("the cancelled call was stopped", || witness.exists()).await;
}

#[tokio::test]
async fn the_typescript_client_uses_our_server() {
    check_typescript_client("the_typescript_client_uses_our_server", None).await;
}

#[tokio::test]
async fn the_newer_typescript_client_uses_our_server_without_a_session() {
    let test = "the_newer_typescript_client_uses_our_server_without_a_session";
    check_typescript_client(test, Some("2026-07-28")).await;
}

#[tokio::test]
async fn the_fastmcp_client_uses_our_server_over_http() {
    let Some(python) = python("the_fastmcp_client_uses_our_server_over_http") else { return };
    let server = serve(None).await;
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("witness");
    let mut command = Command::new(python);
    command.arg(beside("fastmcp_client.py")).arg(server.url()).arg(&witness);
    let mut seen = printed(command).await;
    eventually("the cancelled call was stopped", || witness.exists()).await;
    let progress: Vec<f64> = serde_json::from_value(seen["progress"].take()).unwrap();
    assert_eq!(progress, [0.0, 50.0, 100.0]);
    seen["progress"] = json!([0, 50, 100]);
    assert_eq!(seen, expected());
}

/// Its command line makes one request and waits for the answer: there is no way to give up on a call.
#[tokio::test]
async fn the_inspector_uses_our_server() {
    let Some(home) = home("the_inspector_uses_our_server") else { return };
    let server = serve(None).await;
    let command = |args: &[&str]| {
        let mut command = Command::new(node(&home));
        command.arg(home.join("node_modules/.bin/mcp-inspector")).arg("--cli").arg(server.url());
        let folders =
            std::env::join_paths([home.join("node_modules/node/bin"), "/usr/bin".into(), "/bin".into()]);
        command.args(["--transport", "http"]).args(args).env("PATH", folders.unwrap()).kill_on_drop(true);
        command
    };
    let inspect = |args: &[&str]| printed(command(args));
    let call = async |tool: &str, args: &[&str]| {
        inspect(&[&["--method", "tools/call", "--tool-name", tool], args].concat()).await
    };
    let text = call("test_simple_text", &[]).await;
    assert_eq!(text["content"][0]["text"], "This is a simple text response for testing.", "{text}");
    let sum = call("add", &["--tool-arg", "x=1", "y=2"]).await;
    assert_eq!(sum["structuredContent"], json!({"result": 3}), "{sum}");
    let image = call("test_image_content", &[]).await;
    assert_eq!(image["content"][0]["mimeType"], "image/png", "{image}");
    // It tells of a tool's error on stderr.
    let arguments = ["--method", "tools/call", "--tool-name", "test_error_handling"];
    let failed = tokio::time::timeout(SOON, command(&arguments).output()).await.expect("in time").unwrap();
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && said.contains("isError:true"), "{said}");
    let progress = call("test_tool_with_progress", &[]).await;
    assert!(progress["content"][0]["text"].is_string(), "{progress}");
    let long = call("wait", &["--tool-arg", "seconds=2"]).await;
    assert_eq!(long["content"][0]["text"], "waited", "{long}");
    let list = inspect(&["--method", "resources/list"]).await;
    assert_eq!(list["resources"][0]["uri"], "test://static-text", "{list}");
}
