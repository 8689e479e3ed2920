//! Our server, spoken to byte by byte.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use toolwright_core::{ToolDef, ToolSpec, Toolset};
use toolwright_mcp::{ClientPerson, Server};
use toolwright_runtime::{Policy, Run};

use crate::support::{PATIENCE, example};

struct Raw {
    child: Child,
    input: Option<ChildStdin>,
    output: tokio::io::Lines<BufReader<ChildStdout>>,
}

impl Raw {
    fn start() -> Raw {
        let mut child = Command::new(example())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Raw { input: child.stdin.take(), output, child }
    }

    async fn initialized(version: &str) -> (Raw, Value) {
        let mut raw = Raw::start();
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let answer = raw.ask("initialize", params).await;
        raw.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await;
        (raw, answer)
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(10), self.output.next_line()).await;
        serde_json::from_str(&line.expect("an answer").unwrap().expect("no end")).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.write(format!("{request}\n").as_bytes()).await;
        self.read().await
    }

    /// Closes the server's input and reads the rest.
    async fn end(mut self) -> (Vec<Value>, bool) {
        self.input = None;
        let mut rest = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        let status = tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await.expect("an end");
        (rest, status.unwrap().success())
    }
}

#[tokio::test]
async fn each_revision_is_agreed_on_and_others_get_the_newest() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (_, answer) = Raw::initialized(version).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
    }
    let (mut raw, answer) = Raw::initialized("1999-01-01").await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let capabilities: Vec<_> = answer["result"]["capabilities"].as_object().unwrap().keys().collect();
    assert_eq!(capabilities, ["tools", "resources", "prompts", "completions", "logging"]);
    assert_eq!(
        raw.ask("initialize", json!({"protocolVersion": "2025-11-25"})).await["error"]["code"],
        -32600
    );
}

#[tokio::test]
async fn a_session_begins_with_initialize_but_ping_is_always_answered() {
    let mut raw = Raw::start();
    assert_eq!(raw.ask("tools/list", json!({})).await["error"]["code"], -32600);
    assert_eq!(raw.ask("ping", json!({})).await["result"], json!({}));
    assert_eq!(raw.ask("initialize", json!({})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn older_clients_get_no_words_they_do_not_know() {
    let (mut raw, _) = Raw::initialized("2024-11-05").await;
    let answer = raw.ask("tools/call", json!({"name": "test_multiple_content_types"})).await;
    let kinds: Vec<_> =
        answer["result"]["content"].as_array().unwrap().iter().map(|b| b["type"].clone()).collect();
    assert_eq!(kinds, ["text", "image", "resource", "resource", "text"]);
    assert_eq!(answer["result"].get("structuredContent"), None);
    let sound = raw.ask("tools/call", json!({"name": "test_audio_content"})).await;
    assert_eq!(sound["result"]["content"][0]["type"], "resource");
}

#[tokio::test]
async fn the_stateless_revision_needs_no_session() {
    let mut raw = Raw::start();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let answer = raw.ask("server/discover", json!({"_meta": meta})).await;
    assert_eq!(answer["result"]["supportedVersions"][0], "2026-07-28");
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolwright");
    let list = raw.ask("tools/list", json!({"_meta": meta})).await;
    assert_eq!((&list["result"]["ttlMs"], &list["result"]["cacheScope"]), (&json!(0), &json!("private")));
    let call = json!({"name": "add", "arguments": {"x": 1, "y": 2}, "_meta": meta});
    let answer = raw.ask("tools/call", call).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"result": 3}));
    assert_eq!(answer["result"]["resultType"], "complete");

    let mut other = meta.clone();
    other["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let refused = raw.ask("tools/list", json!({"_meta": other})).await;
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
    let mut half = meta;
    half.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(raw.ask("tools/list", json!({"_meta": half})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn wrong_requests_get_the_codes_of_the_protocol() {
    let (mut raw, _) = Raw::initialized("2025-11-25").await;
    let mut code = async |method: &str, params: Value| raw.ask(method, params).await["error"]["code"].clone();
    assert_eq!(code("roots/list", json!({})).await, -32601);
    assert_eq!(code("server/discover", json!({})).await, -32601);
    assert_eq!(code("tools/list", json!({"cursor": "x"})).await, -32602);
    assert_eq!(code("tools/list", json!({"cursor": "from-999999"})).await, -32602);
    assert_eq!(code("tools/list", json!({"cursor": 3})).await, -32602);
    assert_eq!(code("tools/call", json!({})).await, -32602);
    assert_eq!(code("tools/call", json!({"name": "nothing"})).await, -32602);
    assert_eq!(code("tools/call", json!({"name": "add", "arguments": [1, 2]})).await, -32602);
    assert_eq!(code("tools/call", json!({"name": "add", "arguments": "{}"})).await, -32602);
    assert_eq!(code("tools/call", json!([1])).await, -32602);
    // Wrong arguments are for the model to mend, so they are a result.
    let answer = raw.ask("tools/call", json!({"name": "add", "arguments": {"x": 1}})).await;
    assert_eq!(answer["result"]["isError"], true);
}

#[tokio::test]
async fn lines_that_are_no_messages_are_answered_and_survived() {
    let (mut raw, _) = Raw::initialized("2025-11-25").await;
    for (line, code) in [
        ("garbage".to_owned(), -32700),
        ("{\"jsonrpc\":\"2.0\"".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#.to_owned(), -32600),
        (r#"{"id":1,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#.to_owned(), -32600),
        ("[".repeat(100_000), -32600),
        (format!("[{}1]", "1,".repeat(300_000)), -32600),
        ("\"\u{0}\"".to_owned(), -32700),
        ("x".repeat(17 * 1024 * 1024), -32700),
    ] {
        raw.write(line.as_bytes()).await;
        raw.write(b"\n").await;
        assert_eq!(raw.read().await["error"]["code"], code, "{}", &line[..line.len().min(60)]);
    }
    // Bytes that are not text, answers to nothing, empty lines, another line end, a byte order mark.
    raw.write(b"\xff\xfe\n").await;
    assert_eq!(raw.read().await["error"]["code"], -32700);
    raw.write(b"\n  \n\r\n{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n").await;
    raw.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard-of\"}\r\n").await;
    raw.write(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\r\n").await;
    assert_eq!(raw.read().await, json!({"jsonrpc": "2.0", "id": "a", "result": {}}));
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_a_cancelled_call_gets_no_answer() {
    let (mut raw, _) = Raw::initialized("2025-11-25").await;
    let slow = br#"{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"wait","arguments":{"seconds":600}}}
"#;
    raw.write(slow).await;
    raw.write(slow).await;
    let refused = raw.read().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("s"), &json!(-32600)));
    raw.write(
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"s\"}}\n",
    )
    .await;
    raw.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"nobody\"}}\n")
        .await;
    assert_eq!(raw.ask("ping", json!({})).await["id"], 1);
    let (rest, well) = raw.end().await;
    assert_eq!((rest, well), (vec![], true));
}

#[tokio::test]
async fn calls_under_way_are_answered_after_the_input_ends_even_from_a_partial_line() {
    let (mut raw, _) = Raw::initialized("2025-11-25").await;
    // The last line has no end.
    raw.write(br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wait","arguments":{"seconds":0.3}}}"#)
        .await;
    let (rest, well) = raw.end().await;
    assert_eq!(rest[0]["result"]["content"][0]["text"], "waited");
    assert!(well);
}

#[tokio::test]
async fn a_call_that_never_ends_does_not_keep_the_server_alive() {
    let (mut raw, _) = Raw::initialized("2025-11-25").await;
    raw.write(
        br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wait","arguments":{"seconds":3000}}}
{"jsonrpc":"2.0","id":"#,
    )
    .await;
    let (rest, well) = raw.end().await;
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!(rest[0]["error"]["code"], -32700);
    // Whoever closed its side may still read, and learns that there is no result.
    let problem = "the call was stopped: the client closed its side, and the call took too long";
    assert_eq!(rest[1], json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -32000, "message": problem}}));
    assert!(well);
}

#[tokio::test]
async fn a_question_ends_with_the_input_and_so_does_the_server() {
    let tool = ToolDef::dynamic(ToolSpec::new("t", "T."), |_, _| async { "done" });
    let policy = Policy::from_yaml("- {tools: t, decision: ask}\n").unwrap();
    let run = Run::builder(Toolset::new().with(tool).unwrap())
        .policy(policy)
        .person(Arc::new(ClientPerson::default()))
        .build();
    // Calls may go on for much longer than this test would wait.
    let server = Server::new(run.unwrap().dispatch()).drain(Duration::from_secs(3600));
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(async move { server.serve(input, output).await });
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "0"}});
    for request in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "t", "arguments": {}}}),
    ] {
        write.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    }
    while !lines.next_line().await.unwrap().unwrap().contains("elicitation/create") {}
    write.shutdown().await.unwrap();
    // The call fails, its answer still goes out, and then the server ends.
    let answer = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(answer.contains("the client has gone"), "{answer}");
    tokio::time::timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
}
