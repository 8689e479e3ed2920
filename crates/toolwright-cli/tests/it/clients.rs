//! `serve` and `mcp install` as the agents that people run meet them: a server that cannot start, a file that
//! changes while it is served, and the settings of each client.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::{show_in, show_with};

const US: &str = env!("CARGO_BIN_EXE_toolwright");

const SOUND: &str = "
title: Shop
instructions: Ask about stock before you sell.
env: {SHOP_KEY: {secret: true, description: The key.}}
tools:
  - {name: greet, description: Greets., input: [{name: who, type: any, description: Who., default: all}], do: {eval: 'Hi ${who}'}}
  - {name: nothing, description: Does nothing., do: {eval: '${None}'}}
  - {name: long, description: Long., do: {eval: '${\"0123456789abcde\\n\" * 65536}'}}
";

/// A client of `toolwright serve`, one message at a time.
struct McpSession {
    process: Child,
    lines: BufReader<ChildStdout>,
    next: u64,
}

impl McpSession {
    fn start(folder: &Path, args: &[&str], client: &str) -> (McpSession, Value) {
        let mut process = Command::new(US)
            .arg("serve")
            .args(args)
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("SHOP_KEY", "long-enough-secret")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut session = McpSession { process, lines, next: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": client, "version": "1"}
        });
        let answer = session.request("initialize", hello);
        (session, answer)
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.process.stdin.as_mut().unwrap(), "{request}").unwrap();
        self.message(|message| message["id"] == id)
    }

    /// The next message that is wanted.
    fn message(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the server closed its output");
            let message: Value = serde_json::from_str(&line).unwrap();
            if wanted(&message) {
                return message;
            }
        }
    }

    fn names(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn end(mut self) -> Option<i32> {
        drop(self.process.stdin.take());
        self.process.wait().unwrap().code()
    }
}

fn with_file(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    folder
}

/// C3, C10, C20: clients show what a server answered, and mostly not what it wrote on stderr.
#[test]
fn server_that_cannot_start_answers_with_the_reason() {
    let secret = "env: {NOT_SET: {secret: true}}\ntools: [{name: a, do: {eval: '${env.NOT_SET}'}}]\n";
    for (text, place) in [
        ("tools:\n  - name: x\n    doo: {eval: 1}\n", "t.yaml:2:5: "),
        ("tools: [{name: x, do: {eval: '${nosuch}'}}]\n", "t.yaml:1:"),
        (secret, "NOT_SET"),
    ] {
        let folder = with_file(text);
        let (session, answer) = McpSession::start(folder.path(), &["t.yaml"], "codex-mcp-client");
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(place), "{message}");
        assert_eq!(session.end(), Some(2), "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (session, answer) = McpSession::start(folder.path(), &["none.yaml"], "t");
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("there is no file `none.yaml`"),
        "{answer}"
    );
    assert_eq!(session.end(), Some(2));
}

/// C7, C9, C12, C17.
#[test]
fn client_is_told_what_the_tools_are_for_and_what_is_missing_in_a_result() {
    let folder = with_file(SOUND);
    let (mut codex, hello) = McpSession::start(folder.path(), &["t.yaml"], "codex-mcp-client");
    assert_eq!(hello["result"]["instructions"], "Ask about stock before you sell.");
    assert_eq!(hello["result"]["serverInfo"]["title"], "Shop");
    let listed = codex.request("tools/list", json!({}));
    let who = &listed["result"]["tools"][0]["inputSchema"]["properties"]["who"];
    assert_eq!((who["description"].as_str(), who["type"].is_array()), (Some("Who. Default: \"all\"."), true));
    let nothing = codex.request("tools/call", json!({"name": "nothing", "arguments": {}}));
    assert_eq!(nothing["result"]["content"][0]["text"], "(no output)", "{nothing}");
    let long = codex.request("tools/call", json!({"name": "long", "arguments": {}}));
    let content = long["result"]["content"].as_array().unwrap();
    let lines = content[0]["text"].as_str().unwrap().lines();
    let last = lines.last();
    assert_eq!((content.len(), last), (1, Some("[the result has 1048576 bytes and was cut to 16384]")));
    assert_eq!(codex.end(), Some(0));
    let (mut other, _) = McpSession::start(folder.path(), &["t.yaml"], "claude-code");
    let listed = other.request("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"][0]["inputSchema"]["properties"]["who"]["description"], "Who.");
    assert_eq!(other.end(), Some(0));
}

/// C14: a sound change is offered at once, and a broken one leaves everything as it was.
#[test]
fn changed_file_is_offered_and_a_broken_one_is_not() {
    let folder =
        with_file("tools: [{name: one, do: {eval: 1}}]\npolicy: [{tools: ['*'], decision: approve}]\n");
    let path = folder.path().join("t.yaml");
    let (mut session, _) = McpSession::start(folder.path(), &["t.yaml", "--transcript", "c.jsonl"], "t");
    assert_eq!(session.names(), ["one"]);
    let changed = |message: &Value| message["method"] == "notifications/tools/list_changed";
    std::fs::write(&path, "tools: [{name: one, doo: 1}]\n").unwrap();
    let refused =
        || std::fs::read_to_string(folder.path().join("stderr")).unwrap().contains("stay as they were");
    crate::support::wait_until("the broken file is reported", refused);
    assert_eq!(session.names(), ["one"]);
    let text = "tools: [{name: one, do: {eval: 1}}, {name: two, do: {eval: 22}}]\npolicy: [{tools: ['*'], decision: approve}]\n";
    std::fs::write(&path, text).unwrap();
    session.message(changed);
    assert_eq!(session.names(), ["one", "two"]);
    let called = session.request("tools/call", json!({"name": "two", "arguments": {}}));
    assert_eq!(called["result"]["content"][0]["text"], "22", "{called}");
    assert_eq!(session.end(), Some(0));
    let recorded = std::fs::read_to_string(folder.path().join("c.2.jsonl")).unwrap();
    assert!(recorded.contains("\"tool\":\"two\""), "{recorded}");
}

/// C10, C13: each client's own settings, with the variables that the file uses.
#[test]
fn each_client_gets_its_own_entry_and_the_variables_of_the_file() {
    let folder = with_file(SOUND);
    let home = folder.path();
    let install = |args: &[&str]| {
        let args = [&["mcp", "install", "t.yaml", "--name", "shop", "--client"], args].concat();
        show_with(home, &args, "", &[])
    };
    let shown = install(&["codex"]);
    assert!(
        shown.contains("[mcp_servers.shop]\n") && shown.contains("\nenv_vars = [\"SHOP_KEY\"]\n"),
        "{shown}"
    );
    std::fs::create_dir(home.join(".codex")).unwrap();
    std::fs::write(home.join(".codex/config.toml"), "model = 'm' # mine\n").unwrap();
    assert!(install(&["codex", "--write"]).contains("added `shop`"));
    let written = std::fs::read_to_string(home.join(".codex/config.toml")).unwrap();
    assert!(
        written.starts_with("model = 'm' # mine\n") && written.contains("[mcp_servers.shop]"),
        "{written}"
    );
    assert!(install(&["codex", "--write"]).contains("replaced `shop`"));
    let shown = install(&["gemini-cli"]);
    assert!(shown.contains("\"SHOP_KEY\": \"$SHOP_KEY\"") && shown.contains("/trust"), "{shown}");
    assert!(install(&["opencode", "--write"]).contains("opencode/opencode.json"));
    let written: Value =
        serde_json::from_slice(&std::fs::read(home.join(".config/opencode/opencode.json")).unwrap()).unwrap();
    let file = std::fs::canonicalize(home).unwrap().join("t.yaml");
    let command = json!([US, "serve", file]);
    assert_eq!(written, json!({"mcp": {"shop": {"type": "local", "command": command}}}));
    let shown = install(&["cursor"]);
    assert!(shown.contains("`SHOP_KEY`: set them in `env`"), "{shown}");
}

/// C3: nothing is written for a file that would not start.
#[test]
fn broken_file_is_not_installed() {
    let folder = with_file("tools:\n  - name: x\n    doo: {eval: 1}\n");
    for client in ["codex", "claude-code", "opencode", "gemini-cli", "vscode"] {
        let shown = show_in(folder.path(), &["mcp", "install", "--client", client, "--write", "t.yaml"], "");
        assert!(shown.contains("t.yaml:2:5") && shown.ends_with("--- exit 2\n"), "{shown}");
    }
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["t.yaml"]);
}

/// A server that is approved for the first time is one line for each tool.
#[test]
fn first_lock_is_a_summary() {
    let folder = with_file("tools: [{name: only, description: Says hello., do: {eval: hello}}]\n");
    let lock = |more: &[&str]| {
        let file = format!("--file={}.lock", more.len());
        let args = [&["mcp", "lock", "--name", "a", &file], more, &["--", US, "serve", "t.yaml"]].concat();
        show_in(folder.path(), &args, "")
    };
    let shown = lock(&[]);
    assert!(shown.contains("--- stdout\nonly                     Says hello.\n---"), "{shown}");
    assert!(shown.contains("approved 1 tool in `0.lock`"), "{shown}");
    let shown = lock(&["--verbose"]);
    assert!(shown.contains("only\n    ") && !shown.contains("--verbose shows"), "{shown}");
}
