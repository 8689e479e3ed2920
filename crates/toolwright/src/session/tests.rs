use serde_json::json;
use toolwright_core::{Error, ErrorKind, ToolCall, ToolError, ToolResult};
use toolwright_lang::{LoadError, Source, Wanted};

use super::*;
use crate::environment::Environment;
use crate::file::KnownTools;

const TOOL: &str = "tools: [{name: t, do: {eval: ran}}]";

fn parse(text: &str) -> Result<ToolFile, LoadError> {
    ToolFile::parse(Source::text("t.yaml", text)).map_err(of_file)
}

fn of_file(error: Error) -> LoadError {
    assert!(error.is_file(), "{error:?}");
    let line = error.location().unwrap().line;
    let error: LoadError = error.downcast().unwrap();
    assert_eq!(line, error.problems()[0].line);
    error
}

fn refused(opened: Result<Session, Error>) -> LoadError {
    of_file(opened.unwrap_err())
}

fn builder(text: &str) -> SessionBuilder {
    Session::builder(parse(text).unwrap_or_else(|error| panic!("{error}")))
}

async fn call(session: &Session, tool: &str) -> ToolResult {
    let run = session.run(Caller::Model).build().unwrap();
    run.call(ToolCall::new("1", tool, json!({}))).await.unwrap()
}

async fn called(sections: &str) -> ToolResult {
    call(&builder(&format!("{TOOL}\n{sections}")).open().await.unwrap(), "t").await
}

#[tokio::test]
async fn a_run_keeps_to_the_policy_and_the_limits_of_the_file() {
    assert_eq!(called("").await.to_text(), "ran");
    let refused = called("policy: [{tools: t, decision: reject, reason: not today}]").await.error.unwrap();
    assert_eq!((refused.kind, refused.message.as_str()), (ErrorKind::Approval, "not today"));
    assert_eq!(called("limits: {tool_calls: 0}").await.error.unwrap().kind, ErrorKind::Limit);
    assert_eq!(called("limits: {max_output: 2}").await.truncated.map(|cut| cut.limit), Some(2));
    assert_eq!(called("limits: {max_output: 3}").await.to_text(), "ran");
}

#[tokio::test]
async fn rules_of_the_program_replace_those_of_the_file_or_stand_in_for_them() {
    let reject = || Policy::from_yaml("- {tools: '*', decision: reject, reason: ours}").unwrap();
    let own = format!("{TOOL}\npolicy: [{{tools: t, decision: approve}}]");
    let refused =
        |session: Session| async move { call(&session, "t").await.error.map(|error| error.message) };
    assert_eq!(
        refused(builder(TOOL).default_policy(reject()).open().await.unwrap()).await.as_deref(),
        Some("ours")
    );
    assert_eq!(refused(builder(&own).default_policy(reject()).open().await.unwrap()).await, None);
    assert_eq!(refused(builder(&own).policy(reject()).open().await.unwrap()).await.as_deref(), Some("ours"));
}

#[test]
fn problems_of_sections_are_found_by_parsing_each_at_its_location() {
    let text = format!(
        "{TOOL}\npolicy: [{{tools: t, decision: maybe}}]\nlimits: {{cost: -1}}\nmodels: {{a: {{modle: x/y}}}}\npolcy: []\n"
    );
    let error = parse(&text).unwrap_err();
    let mut lines: Vec<usize> = error.problems().iter().map(|problem| problem.line).collect();
    lines.dedup();
    lines.sort_unstable();
    assert!(lines.contains(&2) && lines.contains(&5), "{error}");
    let file = ToolFile::parse_all(Source::text("t.yaml", &text));
    let checked = file.check(&KnownTools::new());
    assert!(checked.len() >= lines.len(), "{checked:?}");
}

#[tokio::test]
async fn a_variable_must_be_set_only_for_what_uses_it() {
    let text = "
env: {TOKEN: {secret: true}}
tools: [{name: plain, do: {eval: fine}}, {name: secret, do: {eval: '${env.TOKEN}'}}]
";
    let wanted = |name: &str| builder(text).wanted(Wanted::tool(name));
    assert_eq!(call(&wanted("plain").open().await.unwrap(), "plain").await.to_text(), "fine");
    let error = refused(wanted("secret").open().await);
    assert!(error.problems()[0].message.contains("`TOKEN` is not set"), "{error}");
    let known = KnownTools::new().environment(Environment::of([("TOKEN", "0123456789abcdef")]));
    let session = wanted("secret").known(known).open().await.unwrap();
    assert_eq!(call(&session, "secret").await.to_text(), "[redacted]");
    assert_eq!(session.secrets().len(), 1);
}

#[cfg(all(feature = "sandbox", feature = "tools"))]
#[tokio::test]
async fn the_sandbox_the_file_asks_for_is_opened_or_told() {
    let open = |sandbox: &str| builder(&format!("tools: [{{import_tool: bash}}]\n{sandbox}")).open();
    let failed = |error: Option<Error>| {
        let error = error.unwrap();
        assert!(error.is_unavailable() && !error.is_file(), "{error:?}");
        error.downcast::<ToolError>().unwrap()
    };
    let bash = |session: Session| async move {
        let run = session.run(Caller::Model).build().unwrap();
        let result = run.call(ToolCall::new("1", "bash", json!({"command": "echo hello"}))).await.unwrap();
        result.error.unwrap()
    };
    // Tests have no launcher, so none can be opened here: an error, never a quiet run without one.
    for kind in ["process", "local"] {
        let error = failed(open(&format!("sandbox: {kind}")).await.err());
        assert_eq!(error.kind(), ErrorKind::SandboxUnavailable, "{kind}");
    }
    let none = bash(open("sandbox: none").await.unwrap()).await;
    assert_eq!(none.kind, ErrorKind::SandboxUnavailable);
    // The file asks for none, so it is opened; a call that needs one hears why there is none.
    let refused = bash(open("").await.unwrap()).await;
    assert_eq!(refused.kind, ErrorKind::SandboxUnavailable);
    assert!(refused.message.contains("launcher"), "{refused:?}");
    let wrong = failed(open("sandbox: {kind: local, read: [/]}").await.err());
    assert!(wrong.message().contains("isolates nothing"), "{wrong}");
    let wrong = failed(open("sandbox: none\nsandboxes: {victim: {kind: local, read: [/]}}").await.err());
    assert!(wrong.message().starts_with("the sandbox `victim`: "), "{wrong}");
    for (said, line, column, told) in [
        ("[victim]", 2, 12, "`sandboxes` is a map"),
        ("{default: local}", 2, 13, "`default` is"),
        ("{victim: {kidn: local}}", 2, 22, "`sandboxes.victim`: unknown key `kidn`"),
    ] {
        let error = parse(&format!("sandbox: none\nsandboxes: {said}")).unwrap_err();
        let [problem] = error.problems() else { panic!("{error}") };
        assert_eq!((problem.line, problem.column), (line, column), "{error}");
        assert!(problem.message.contains(told), "{error}");
    }
}

#[cfg(feature = "mcp")]
mod servers {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::*;

    /// A server in shell with one tool, `go`. It leaves a mark when it is started.
    const SERVER: &str = r#"touch "$1"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
read -r l; sleep "$2"; answer 1 '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
read -r l; read -r l; answer 2 '{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}'
read -r l; answer 3 '{"content":[{"type":"text","text":"gone"}]}'
cat > /dev/null"#;

    /// A file with two servers, `a` and `b`, that take so many seconds to start.
    fn file(folder: &Path, seconds: &str) -> String {
        let script = folder.join("server.sh");
        std::fs::write(&script, SERVER).unwrap();
        let server = |name: &str| {
            format!(
                "  {name}: {{transport: stdio, command: /bin/sh, args: ['{}', '{}', '{seconds}'], auto_import_scope: shared}}\n",
                script.display(),
                folder.join(name).display()
            )
        };
        format!("mcp:\n{}{}tools: [{{name: plain, do: {{eval: fine}}}}]\n", server("a"), server("b"))
    }

    async fn uses_a_server() {
        let folder = tempfile::tempdir().unwrap();
        let text = file(folder.path(), "0");
        let session = builder(&text).wanted(Wanted::tool("a_go")).open().await.unwrap();
        assert_eq!(call(&session, "a_go").await.to_text(), "gone");
        assert!(folder.path().join("a").exists(), "it was needed");
        assert!(!folder.path().join("b").exists(), "it was not needed");
    }

    #[test]
    fn servers_are_connected_on_every_runtime() {
        let alone = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        alone.block_on(uses_a_server());
        tokio::task::LocalSet::new().block_on(&alone, uses_a_server());
        let several =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        several.block_on(uses_a_server());
        tokio::task::LocalSet::new().block_on(&several, uses_a_server());
    }

    #[tokio::test]
    async fn servers_start_together_and_none_for_a_tool_that_needs_none() {
        let folder = tempfile::tempdir().unwrap();
        let text = file(folder.path(), "2");
        let session = builder(&text).wanted(Wanted::tool("plain")).open().await.unwrap();
        assert_eq!(call(&session, "plain").await.to_text(), "fine");
        assert!(!folder.path().join("a").exists() && !folder.path().join("b").exists());
        let since = Instant::now();
        let session = builder(&text).open().await.unwrap();
        assert_eq!(session.tools().names().collect::<Vec<_>>(), ["a_go", "b_go", "plain"]);
        // One after the other they would take four seconds.
        assert!(since.elapsed() < Duration::from_millis(3900), "{:?}", since.elapsed());
    }

    #[tokio::test]
    async fn opening_ends_what_it_started_when_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let text = file(folder.path(), "3600");
        let opening = builder(&text).open();
        assert!(tokio::time::timeout(Duration::from_secs(1), opening).await.is_err());
        assert!(folder.path().join("a").exists());
        tokio::time::timeout(Duration::from_secs(20), toolwright_mcp::servers_ended()).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_with_problems_starts_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let text = file(folder.path(), "0") + "shared: {data: {x: '${nothing}'}}\n";
        assert!(builder(&text).open().await.is_err());
        assert!(!folder.path().join("a").exists());
    }

    #[tokio::test]
    async fn a_server_that_fails_is_an_error_a_warning_or_never_started() {
        let text = "mcp: {s: {transport: stdio, command: /no/such/program, auto_import_scope: shared}}\n";
        refused(builder(text).open().await);
        let session = builder(text).connect(Connect::WherePossible).open().await.unwrap();
        assert_eq!(session.loaded().problems().len(), 1);
        assert!(session.loaded().why_missing("s_go").unwrap().contains("could not list the tools"));
        let session = builder(text).connect(Connect::Never).open().await.unwrap();
        assert_eq!(session.loaded().problems().len(), 0);
        assert!(session.loaded().why_missing("s_go").unwrap().contains("was not started"));
    }

    #[test]
    fn a_lock_says_which_tools_there_are_before_anything_is_started() {
        let folder = tempfile::tempdir().unwrap();
        let definition: toolwright_mcp::ToolDefinition = serde_json::from_value(json!({
            "name": "log", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}
        }))
        .unwrap();
        let mut lock = toolwright_mcp::LockFile::default();
        let identity = toolwright_mcp::Identity::default();
        lock.servers.insert("s".to_owned(), toolwright_mcp::LockedServer::of(identity, &[definition]));
        lock.save(&folder.path().join("tools.lock")).unwrap();
        let text = "
mcp: {s: {transport: stdio, command: /no/such/program, auto_import_scope: shared}}
tools:
  - {name: right, do: [{call: s_log, params: {n: 1}}, {call: s_later, params: {x: 1}}]}
  - {name: wrong, do: {call: s_log, params: {m: 1}}}
";
        let known = KnownTools::new().lock(folder.path().join("tools.lock"));
        let problems = parse(text).unwrap().check(&known);
        let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [5], "{problems:?}");
    }
}
