//! Files are parsed, checked and opened without a home folder, and no variable is read but those that are
//! passed in.

use std::process::Command;

use serde_json::json;
use toolwright::Policy;
use toolwright::content::ToolCall;
use toolwright::file::{
    Caller, Connect, Environment, KnownTools, SandboxSection, Sandboxing, Session, ToolFile,
};
use toolwright::lang::{Source, Wanted};

/// Set in the process without a home.
const ALONE: &str = "TOOLWRIGHT_TEST_WITHOUT_HOME";

const SERVER: &str = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
read -r l; answer 1 '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
read -r l; read -r l; answer 2 '{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}'
read -r l; answer 3 '{"content":[{"type":"text","text":"gone"}]}'
cat > /dev/null"#;

#[test]
fn no_entry_point_reads_what_was_not_passed_in() {
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(without_home());
    }
    // The variables of a process cannot be changed safely, so the work is done in one that has only these.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "environment::no_entry_point_reads_what_was_not_passed_in", "--nocapture"])
        .env_clear()
        .env(ALONE, "1")
        .env("OPENAI_API_KEY", "a key of the process")
        .env("TOKEN", "a token of the process")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn without_home() {
    assert!(std::env::var_os("HOME").is_none());
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.sh");
    std::fs::write(&script, SERVER).unwrap();
    let text = format!(
        "
env: {{TOKEN: {{}}}}
models: {{fast: openai/gpt-5}}
policy: [{{tools: '*', decision: approve}}]
limits: {{tool_calls: 9}}
sandbox: none
mcp: {{s: {{transport: stdio, command: /bin/sh, args: ['{}'], auto_import_scope: shared}}}}
tools:
  - {{import_tool: think}}
  - {{import_tool: build_llm_tool, name: model, config: {{model_ref: fast}}}}
  - {{name: plain, do: {{eval: fine}}}}
  - {{name: token, do: {{eval: '${{env.TOKEN}}'}}}}
",
        script.display()
    );
    let parsed = || ToolFile::parse_in(Source::text("t.yaml", &text), folder.path()).into_result().unwrap();
    // What a file declares is looked up, and nothing else is.
    let declared_only = Environment::from_fn(|name| {
        assert_eq!(name, "TOKEN", "a variable was read that nobody declared");
        None
    });
    let known = KnownTools::new().environment(declared_only).lock(folder.path().join("tools.lock"));
    let file = parsed();
    assert_eq!(file.check(&known).len(), 1, "the server is unknown");
    assert!(file.needs(&Wanted::everything()).variable("TOKEN"));
    let session = Session::builder(file)
        .known(known)
        .wanted(Wanted::tools(["plain", "s_*"]))
        .connect(Connect::Required)
        .policy(Policy::approve_all())
        .sandboxing(Sandboxing::AsNeeded)
        .open()
        .await
        .unwrap();
    let run = session.run(Caller::Model).build().unwrap();
    for (tool, said) in [("plain", "fine"), ("s_go", "gone")] {
        assert_eq!(run.call(ToolCall::new("1", tool, json!({}))).await.unwrap().to_text(), said);
    }
    assert!(SandboxSection::default().check().is_ok());
    // The values of the process stand for nothing that was not passed in.
    assert!(Session::builder(parsed()).wanted(Wanted::tool("token")).open().await.is_err());
    let session = Session::builder(parsed()).wanted(Wanted::tool("model")).open().await.unwrap();
    let run = session.run(Caller::Person).build().unwrap();
    let asked = run.call(ToolCall::new("1", "model", json!({"prompt": "hello"}))).await;
    let told = format!("{asked:?}");
    assert!(told.contains("OPENAI_API_KEY"), "{told}");
}
