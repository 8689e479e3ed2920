//! Our server over HTTP, spoken to byte by byte, by clients that mean no good.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::support::{eventually, example};

pub(crate) struct Served {
    /// The process, when it is not this one.
    child: Option<Child>,
    pub(crate) address: String,
}

/// The example server, over HTTP.
pub(crate) async fn serve(token: Option<&str>) -> Served {
    let mut command = Command::new(example());
    command.args(["--http", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    if let Some(token) = token {
        command.env("EVERYTHING_TOKEN", token);
    }
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
    let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
    Served { child: Some(child), address: address.to_owned() }
}

/// An answer: its status, its head, its body.
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap()
    }
}

impl Served {
    /// A server of this process.
    pub(crate) fn at(address: std::net::SocketAddr) -> Self {
        Served { child: None, address: address.to_string() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) async fn raw(&self, request: &[u8]) -> Reply {
        let mut connection = TcpStream::connect(&self.address).await.unwrap();
        // A server that has read enough may close before everything was written.
        let _ = connection.write_all(request).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), connection.read_to_end(&mut answer)).await;
        let _ = read.expect("an answer in time");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_owned(), body: unchunked(head, body) }
    }

    pub(crate) async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut request =
            format!("{method} /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        self.raw(format!("{request}\r\n{body}").as_bytes()).await
    }

    pub(crate) async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Reply {
        let json = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        self.send("POST", &[&json, headers].concat(), &message.to_string()).await
    }

    /// Begins a session and says which.
    pub(crate) async fn session(&self, headers: &[(&str, &str)]) -> String {
        self.session_of(headers, &initialize()).await
    }

    /// Begins a session with this greeting.
    pub(crate) async fn session_of(&self, headers: &[(&str, &str)], greeting: &Value) -> String {
        let greeting = self.post(headers, greeting).await;
        assert_eq!(greeting.status, 200, "{}", greeting.body);
        greeting.header("mcp-session-id").unwrap().to_owned()
    }

    /// A request of the revision without sessions, with the headers it needs.
    pub(crate) async fn alone(&self, headers: &[(&str, &str)], method: &str, mut params: Value) -> Reply {
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        params["_meta"] = meta();
        let own =
            [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Mcp-Name", name.as_str())];
        let own: Vec<_> =
            own.into_iter().filter(|(key, _)| !headers.iter().any(|(given, _)| given == key)).collect();
        self.post(&[&own, headers].concat(), &request(method, params)).await
    }

    async fn still_answers(&self) {
        let answer =
            self.alone(&[], "tools/call", json!({"name": "test_simple_text", "arguments": {}})).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

fn unchunked(head: &str, body: &str) -> String {
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || after.len() < size {
            break;
        }
        whole.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}

pub(crate) fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) fn initialize() -> Value {
    let client = json!({"name": "t", "version": "0"});
    request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}))
}

pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}
    })
}

#[tokio::test]
async fn other_host_names_and_origins_are_refused() {
    let server = serve(None).await;
    for headers in [
        vec![("Host", "evil.example.com")],
        vec![("Host", "localhost.evil.example.com")],
        vec![("Origin", "http://evil.example.com")],
        vec![("Origin", "null")],
        vec![("Origin", "http://localhost:1")],
    ] {
        for method in ["POST", "GET", "DELETE", "OPTIONS"] {
            let answer = server.send(method, &headers, "").await;
            assert_eq!(answer.status, 403, "{method} {headers:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    let health = format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
    assert_eq!(server.raw(health.as_bytes()).await.body, r#"{"status":"ok"}"#);
    server.still_answers().await;
}

#[tokio::test]
async fn two_hosts_or_none_are_refused() {
    let server = serve(None).await;
    let both = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n";
    assert!([400, 403].contains(&server.raw(both.as_bytes()).await.status));
    let none = "GET /mcp HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert!([400, 403].contains(&server.raw(none.as_bytes()).await.status));
}

#[tokio::test]
async fn a_token_is_needed_and_a_foreign_one_is_worth_nothing() {
    let server = serve(Some("the right token")).await;
    let none = server.post(&[], &initialize()).await;
    assert_eq!((none.status, none.header("www-authenticate")), (401, Some("Bearer")));
    for token in
        ["Bearer wrong", "Bearer the right toke", "Bearer", "Basic dGhlIHJpZ2h0IHRva2Vu", "the right token"]
    {
        assert_eq!(server.post(&[("Authorization", token)], &initialize()).await.status, 401, "{token}");
        assert_eq!(server.send("GET", &[("Authorization", token)], "").await.status, 401, "{token}");
    }
    assert_eq!(server.post(&[("Authorization", "Bearer the right token")], &initialize()).await.status, 200);
}

#[tokio::test]
async fn sessions_that_do_not_exist_are_not_found() {
    let server = serve(None).await;
    let list = request("tools/list", json!({}));
    for id in ["x", "../../etc/passwd", "\u{7f}", &"a".repeat(10_000)] {
        let headers = [("Mcp-Session-Id", id)];
        assert!([400, 404].contains(&server.post(&headers, &list).await.status), "{id}");
    }
    let accept = [("Mcp-Session-Id", "x"), ("Accept", "text/event-stream")];
    assert_eq!(server.send("GET", &accept, "").await.status, 404);
    assert_eq!(server.send("DELETE", &[("Mcp-Session-Id", "x")], "").await.status, 404);
    assert_eq!(server.post(&[], &list).await.status, 400, "no session at all");
    server.still_answers().await;
}

#[tokio::test]
async fn a_session_that_was_ended_is_gone() {
    let server = serve(None).await;
    let id = server.session(&[]).await;
    let headers = [("Mcp-Session-Id", id.as_str())];
    assert_eq!(server.post(&headers, &request("ping", json!({}))).await.status, 200);
    assert_eq!(server.send("DELETE", &headers, "").await.status, 204);
    assert_eq!(server.post(&headers, &request("ping", json!({}))).await.status, 404);
    assert_eq!(server.send("DELETE", &headers, "").await.status, 404);
}

/// In a session 404 says that it is gone, and clients begin a new one or give up.
#[tokio::test]
async fn a_method_that_does_not_exist_is_not_found_only_without_a_session() {
    let server = serve(None).await;
    let unknown = request("no/such", json!({}));
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut greeting = initialize();
        greeting["params"]["protocolVersion"] = json!(version);
        let id = server.session_of(&[], &greeting).await;
        let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", version)];
        let answer = server.post(&headers, &unknown).await;
        assert_eq!((answer.status, answer.code()), (200, -32601), "{version}");
        assert_eq!(server.post(&headers, &request("ping", json!({}))).await.status, 200);
    }
    let alone = server.alone(&[], "no/such", json!({})).await;
    assert_eq!((alone.status, alone.code()), (404, -32601));
}

#[tokio::test]
async fn events_of_streams_that_do_not_exist_are_refused() {
    let server = serve(None).await;
    let id = server.session(&[]).await;
    for event in ["99-0", "1", "-1--1", "18446744073709551616-0", "a-b", ""] {
        let headers =
            [("Mcp-Session-Id", id.as_str()), ("Accept", "text/event-stream"), ("Last-Event-ID", event)];
        assert_eq!(server.send("GET", &headers, "").await.status, 400, "{event}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let server = serve(None).await;
    let head =
        format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n", server.address);
    let said = format!("{head}Content-Length: 99999999999\r\nConnection: close\r\n\r\n{{");
    assert_eq!(server.raw(said.as_bytes()).await.status, 413);
    let mut chunked = format!("{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n").into_bytes();
    for _ in 0..80 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend_from_slice(&vec![b' '; 0x10000]);
        chunked.extend_from_slice(b"\r\n");
    }
    // The server answers and closes while the rest is on its way; the answer may be lost to a reset.
    assert!([413, 0].contains(&server.raw(&chunked).await.status));
    server.still_answers().await;
}

#[tokio::test]
async fn heads_without_end_are_refused() {
    let server = serve(None).await;
    let long = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1_000_000));
    assert!([431, 400, 0].contains(&server.raw(long.as_bytes()).await.status));
    let many = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(5_000));
    assert!([431, 400, 0].contains(&server.raw(many.as_bytes()).await.status));
    server.still_answers().await;
}

#[tokio::test]
async fn slow_clients_do_not_hold_up_others() {
    let server = serve(None).await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut connection = TcpStream::connect(&server.address).await.unwrap();
        connection.write_all(b"POST /mcp HTTP/1.1\r\nHost: loc").await.unwrap();
        slow.push(connection);
    }
    server.still_answers().await;
}

#[tokio::test]
async fn bodies_that_are_no_messages_say_why() {
    let server = serve(None).await;
    let json = [("Content-Type", "application/json")];
    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("3", -32600),
        ("", -32700),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
    ] {
        let answer = server.send("POST", &json, body).await;
        assert_eq!((answer.status, answer.code()), (400, code), "{body}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(server.send("POST", &json, &deep).await.status, 400);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let answer = server.send("POST", &[("Content-Type", kind)], &initialize().to_string()).await;
        assert_eq!(answer.status, 415, "a page could send this without asking: {kind}");
    }
    for method in ["PUT", "PATCH", "TRACE"] {
        assert_eq!(server.send(method, &[], "").await.status, 405, "{method}");
    }
}

#[tokio::test]
async fn headers_that_contradict_the_body_are_refused() {
    let server = serve(None).await;
    let call = json!({"name": "test_simple_text", "arguments": {}});
    for header in [
        ("Mcp-Method", "tools/list"),
        ("Mcp-Name", "break_down"),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("MCP-Protocol-Version", "2099-01-01"),
    ] {
        let answer = server.alone(&[header], "tools/call", call.clone()).await;
        assert_eq!((answer.status, answer.code()), (400, -32020), "{header:?}");
    }
}

#[tokio::test]
async fn a_forged_or_borrowed_state_is_refused() {
    let server = serve(None).await;
    let tool = "test_input_required_result_multi_round";
    let first = server.alone(&[], "tools/call", json!({"name": tool, "arguments": {}})).await.json();
    let state = first["result"]["requestState"].as_str().unwrap().to_owned();
    let answers = json!({"step1": {"action": "accept", "content": {"name": "Ada"}}});
    let with = |name: &str, state: &str| json!({"name": name, "arguments": {}, "inputResponses": answers.clone(), "requestState": state});
    let (payload, tag) = state.split_once('.').unwrap();
    let forged = [
        format!("{state}x"),
        format!("{payload}."),
        format!(".{tag}"),
        tag.to_owned(),
        format!("{}.{tag}", payload.to_ascii_lowercase()),
        "e30.e30".to_owned(),
        "x".repeat(100_000),
        String::new(),
    ];
    for state in &forged {
        let answer = server.alone(&[], "tools/call", with(tool, state)).await;
        assert_eq!(answer.code(), -32602, "{}", &state[..state.len().min(40)]);
    }
    let other = server.alone(&[], "tools/call", with("test_input_required_result_elicitation", &state)).await;
    assert_eq!(other.code(), -32602, "the state of another call");
    let elsewhere = serve(None).await;
    let answer = elsewhere.alone(&[], "tools/call", with(tool, &state)).await;
    assert_eq!(answer.code(), -32602, "the state of another server");
    let good = server.alone(&[], "tools/call", with(tool, &state)).await.json();
    assert_eq!(good["result"]["inputRequests"]["step2"]["method"], "elicitation/create");
}

#[tokio::test]
async fn who_hangs_up_cancels_the_call() {
    let server = serve(None).await;
    let folder = tempfile::tempdir().unwrap();
    let (witness, begun) = (folder.path().join("witness"), folder.path().join("begun"));
    let call = json!({
        "name": "wait", "arguments": {"seconds": 600.0, "witness": witness, "begun": begun}, "_meta": meta()
    });
    let body = request("tools/call", call).to_string();
    let mut connection = TcpStream::connect(&server.address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: wait\r\nContent-Length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    connection.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    eventually("the call began", || begun.exists()).await;
    drop(connection);
    eventually("the tool was stopped", || witness.exists()).await;
}

#[tokio::test]
async fn requests_to_end_are_answered_before_the_end() {
    let mut server = serve(None).await;
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let call = json!({"name": "wait", "arguments": {"seconds": 1.0, "begun": begun}});
    let mut child = server.child.take().unwrap();
    let pid = child.id().unwrap();
    let (answer, ()) = tokio::join!(server.alone(&[], "tools/call", call), async {
        eventually("the call began", || begun.exists()).await;
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    });
    assert_eq!(answer.json()["result"]["content"][0]["text"], "waited");
    let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await.expect("an end");
    assert!(ended.unwrap().success());
}

#[tokio::test]
async fn long_calls_go_on_as_tasks_that_only_their_client_can_look_at_and_stop() {
    let server = serve(Some("one")).await;
    let token = ("Authorization", "Bearer one");
    let send = async |method: &str, mut params: Value| {
        let name = params
            .get("taskId")
            .or(params.get("name"))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let headers = [
            token,
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
            ("Mcp-Name", name.as_str()),
        ];
        params["_meta"] = meta();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        server.post(&headers, &request(method, params)).await.json()
    };
    let start = async |seconds: f64| {
        let begun =
            send("tools/call", json!({"name": "slow_compute", "arguments": {"seconds": seconds}})).await;
        assert_eq!(begun["result"]["resultType"], "task", "{begun}");
        begun["result"]["taskId"].as_str().unwrap().to_owned()
    };
    let look = async |task: &str| send("tasks/get", json!({"taskId": task})).await;
    let task = start(0.2).await;
    let mut seen = look(&task).await;
    for _ in 0..600 {
        if seen["result"]["status"] != "working" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        seen = look(&task).await;
    }
    assert_eq!(seen["result"]["status"], "completed", "{seen}");
    assert!(seen.to_string().contains("work is done"), "{seen}");
    let endless = start(3000.0).await;
    send("tasks/cancel", json!({"taskId": endless})).await;
    assert_eq!(look(&endless).await["result"]["status"], "cancelled");
    // A guessed task does not exist, nor does a task without its token.
    assert_eq!(look("0123456789abcdef").await["error"]["code"], -32602);
    let stranger =
        server.alone(&[("Authorization", "Bearer two")], "tasks/get", json!({"taskId": task})).await;
    assert_eq!(stranger.status, 401);
    // A client that does not know tasks waits for the answer instead.
    let params = json!({"name": "slow_compute", "arguments": {"seconds": 0.1}});
    let waited = server.alone(&[token], "tools/call", params).await.json();
    assert_eq!(waited["result"]["content"][0]["text"], "work is done", "{waited}");
}
