//! Several instances of a server behind one address: whichever answers, the client sees one server.

use std::io::{BufRead as _, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

const FILE: &str = "
tools:
  - {name: shout, description: Shouts., input: [{name: text, type: str}], do: {eval: '${text.upper()}'}}
  - {name: count, description: Counts., input: [{name: text, type: str}], do: {eval: '${len(text)}'}}
prompts:
  - {name: hello, do: {eval: 'Say hello.'}}
resources: [t.yaml]
policy:
  - {tools: [count], decision: approve}
";

/// One instance; ends with the test.
struct Instance {
    child: Child,
    address: String,
}

impl Instance {
    fn start(folder: &Path, key: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolwright"))
            .args([
                "serve",
                "t.yaml",
                "--http",
                "127.0.0.1:0",
                "--token-env",
                "TOKEN",
                "--state-key-env",
                "KEY",
            ])
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("TOKEN", "t0ken")
            .env("KEY", key)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        Instance { child, address }
    }

    /// Makes a request of the revision without sessions.
    fn ask(&self, method: &str, name: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let name = if name.is_empty() { String::new() } else { format!("Mcp-Name: {name}\r\n") };
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json\r\nAuthorization: Bearer t0ken\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        let mut connection = std::net::TcpStream::connect(&self.address).unwrap();
        connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_client_need_not_know_which_of_two_instances_answers() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.yaml"), FILE).unwrap();
    let key = "a key that both of them have been given";
    let both = [Instance::start(folder.path(), key), Instance::start(folder.path(), key)];
    let turn = std::cell::Cell::new(0);
    // One request after the other, each to the other instance.
    let ask = |method: &str, name: &str, params: Value| {
        turn.set(turn.get() + 1);
        both[turn.get() % 2].ask(method, name, params)
    };
    for (method, name, params) in [
        ("server/discover", "", json!({})),
        ("tools/list", "", json!({})),
        ("prompts/list", "", json!({})),
        ("resources/list", "", json!({})),
        ("prompts/get", "hello", json!({"name": "hello"})),
        ("resources/read", "file:///t.yaml", json!({"uri": "file:///t.yaml"})),
        ("tools/call", "count", json!({"name": "count", "arguments": {"text": "four"}})),
    ] {
        let (one, other) = (ask(method, name, params.clone()), ask(method, name, params));
        assert!(one["result"].is_object(), "{one}");
        assert_eq!(one, other, "{method}");
    }
    let call = json!({"name": "shout", "arguments": {"text": "hey"}});
    for _ in 0..4 {
        // One instance asks, and the other is told the answer.
        let asked = ask("tools/call", "shout", call.clone());
        let (key, _) =
            asked["result"]["inputRequests"].as_object().expect("a question").iter().next().unwrap();
        let mut again = call.clone();
        again["inputResponses"] = json!({key: {"action": "accept", "content": {"allow": true}}});
        again["requestState"] = asked["result"]["requestState"].clone();
        let done = ask("tools/call", "shout", again.clone());
        assert_eq!(done["result"]["content"][0]["text"], "HEY", "{done}");
        // The state is not valid for another request, on either instance.
        again["arguments"]["text"] = json!("another text");
        assert_eq!(ask("tools/call", "shout", again)["error"]["code"], -32602);
    }
    // An instance with another key is another server.
    let stranger = Instance::start(folder.path(), "a key that nobody else has been given");
    let asked = ask("tools/call", "shout", call.clone());
    let mut again = call;
    again["requestState"] = asked["result"]["requestState"].clone();
    assert_eq!(stranger.ask("tools/call", "shout", again)["error"]["code"], -32602);
    // A task would live in one of them, so they have none.
    let can = ask("server/discover", "", json!({}));
    assert_eq!(can["result"]["capabilities"]["extensions"], Value::Null, "{can}");
}
