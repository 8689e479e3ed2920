//! Servers that misbehave, in every way that came to mind. Whatever they do, the client gets a typed error in
//! time, its memory stays bounded, no process is left, and other servers go on.

use std::time::Duration;

use serde_json::json;
use toolwright_core::{ErrorKind, ToolCall, ToolResult, ToolSource as _, Toolset};
use toolwright_mcp::{Client, ClientOptions, McpErrorKind, McpServer, ServerStatus};
use toolwright_runtime::Run;

use crate::support::{Log, PATIENCE, eventually, everything, is_running, script, server};

/// Calls `add` of a scripted server. Afterwards nothing of the server is left.
pub(crate) async fn call(body: &str) -> ToolResult {
    call_of(&server(body).build()).await
}

async fn call_of(server: &McpServer) -> ToolResult {
    let run = Run::builder(Toolset::new()).source(server.clone()).build().unwrap();
    let result = run.call(ToolCall::new("1", "add", json!({}))).await.expect("never fatal");
    let pid = pid(server);
    server.stop().await;
    assert!(!pid.is_some_and(is_running));
    result
}

/// A scripted server that is not waited for.
fn impatient(body: &str) -> McpServer {
    let server = server(body).timeout(Duration::from_millis(500));
    server.options(|options| options.silence = Duration::from_millis(200)).build()
}

fn pid(server: &McpServer) -> Option<u32> {
    match server.state().status {
        ServerStatus::Started { pid, .. } => pid,
        _ => None,
    }
}

pub(crate) async fn check_error(body: &str, kind: ErrorKind, words: &str) {
    let error = call(body).await.error.unwrap_or_else(|| panic!("no error from:\n{body}"));
    assert_eq!(error.kind, kind, "{}", error.message);
    assert!(error.message.contains(words), "{}", error.message);
}

pub(crate) async fn check_answer(body: &str, text: &str) {
    let result = call(body).await;
    assert_eq!(result.error, None);
    assert_eq!(result.to_text(), text);
}

/// Starts a scripted server that must not start.
pub(crate) async fn check_start(body: &str, words: &str) {
    check_start_within(PATIENCE, body, words).await;
}

async fn check_start_within(time: Duration, body: &str, words: &str) {
    let mut options = ClientOptions::default();
    options.start_timeout = time;
    let error = Client::start(&script(body), options).await.unwrap_err();
    assert_eq!(error.kind(), McpErrorKind::Start, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

pub(crate) const OK: &str = r#"'{"content":[{"type":"text","text":"ok"}]}'"#;

#[tokio::test]
async fn a_command_that_does_not_exist() {
    let error =
        Client::start(&toolwright_mcp::ServerCommand::new("/no/such/program"), ClientOptions::default())
            .await;
    assert_eq!(error.unwrap_err().kind(), McpErrorKind::Start);
}

#[tokio::test]
async fn death_before_the_greeting() {
    check_start("exit 7", "the server ended (exit status: 7)").await;
}

#[tokio::test]
async fn silence_at_the_start() {
    check_start_within(Duration::from_millis(500), "hang", "did not answer `initialize`").await;
}

#[tokio::test]
async fn a_greeting_in_an_unknown_revision() {
    check_start(r#"read l; answer 1 '{"protocolVersion":"1066-10-14"}'; forever"#, "1066-10-14").await;
}

#[tokio::test]
async fn a_malformed_handshake_is_an_error() {
    check_start("read l; answer 1 '[]'; forever", "its answer to `initialize` is malformed").await;
    check_start("read l; answer 1 '{}'; forever", "its answer to `initialize` is malformed").await;
}

#[tokio::test]
async fn a_server_that_refuses() {
    check_start(
        r#"read l; say '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"go away"}}'; forever"#,
        "go away",
    )
    .await;
}

#[tokio::test]
async fn a_server_without_sessions_is_spoken_to_in_its_own_way() {
    let server = server(
        r#"
read -r l; say '{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}'
read -r l; answer 2 '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new"}}}'
tools 3
read -r l
case "$l" in *'"io.modelcontextprotocol/protocolVersion":"2026-07-28"'*) ;; *) exit 1;; esac
answer 4 '{"content":[{"type":"text","text":"new"}],"resultType":"complete"}'
read -r l; answer 5 '{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}'
forever"#,
    )
    .build();
    let run = Run::builder(Toolset::new()).source(server).build().unwrap();
    assert_eq!(run.call(ToolCall::new("1", "add", json!({}))).await.unwrap().to_text(), "new");
    let asks = run.call(ToolCall::new("2", "add", json!({}))).await.unwrap();
    assert!(asks.error.unwrap().message.contains("`roots/list` is not offered"));
}

#[tokio::test]
async fn death_in_the_middle_of_a_call() {
    check_error(
        "init; tools 2; read l; exit 3",
        ErrorKind::Unknown,
        "connection closed: the server ended (exit status: 3)",
    )
    .await;
}

#[tokio::test]
async fn death_in_the_middle_of_a_line() {
    check_error(
        r#"init; tools 2; read l; printf '{"jsonrpc":"2.0","id":3,"res'; exit"#,
        ErrorKind::Unknown,
        "connection closed",
    )
    .await;
}

#[tokio::test]
async fn an_answer_just_before_death_still_counts() {
    check_answer(&format!("init; tools 2; read l; answer 3 {OK}; exit 1"), "ok").await;
}

#[tokio::test]
async fn output_closed_while_the_process_lives() {
    check_error("init; tools 2; read l; exec >&-; forever", ErrorKind::Unknown, "connection closed").await;
}

#[tokio::test]
async fn silence_during_a_call_ends_the_server() {
    let server = impatient("init; tools 2; forever");
    let run = Run::builder(Toolset::new()).source(server.clone()).build().unwrap();
    server.tools().await.unwrap();
    let pid = pid(&server).unwrap();
    let late = run.call(ToolCall::new("1", "add", json!({}))).await.unwrap();
    assert_eq!(late.error.unwrap().kind, ErrorKind::Timeout);
    eventually("the silent server was ended", || !is_running(pid)).await;
    let ServerStatus::Failed { why } = server.state().status else { panic!("{server:?}") };
    assert!(why.contains("sent nothing"), "{why}");
}

#[tokio::test]
async fn a_slow_server_that_still_answers_is_left_alone() {
    let body = format!(
        r#"init; tools 2; read l
read -r l; case "$l" in *notifications/cancelled*) ;; *) exit 9;; esac
read -r l; case "$l" in *ping*) answer 4 '{{}}';; *) exit 9;; esac
echo lives >&2; answer 3 {OK}
read l; answer 5 '{{"content":[{{"type":"text","text":"second"}}]}}'; forever"#
    );
    let log = Log::default();
    let mut options = ClientOptions::default();
    options.silence = PATIENCE;
    options.on_log = Some(std::sync::Arc::new(log.sink()));
    let client = Client::start(&script(&body), options).await.unwrap();
    client.list_tools().await.unwrap();
    let late = client.call_tool("add", json!({}), Duration::from_millis(300), None).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
    eventually("the server was asked whether it lives", || log.text().contains("lives")).await;
    // The late answer to the first call is not taken for the answer to the second.
    assert_eq!(client.call_tool("add", json!({}), PATIENCE, None).await.unwrap().to_text(), "second");
}

#[tokio::test]
async fn a_line_without_end() {
    check_error(
        "init; tools 2; read l; exec cat /dev/zero",
        ErrorKind::OutputLimit,
        "more than 16777216 bytes",
    )
    .await;
}

#[tokio::test]
async fn a_line_that_is_too_long() {
    check_error(
        "init; tools 2; read l; head -c 17000000 /dev/zero | tr '\\0' 'x'; echo; forever",
        ErrorKind::OutputLimit,
        "more than 16777216 bytes",
    )
    .await;
}

#[tokio::test]
async fn json_as_deep_as_a_well() {
    check_answer(
        &format!(
            "init; tools 2; read l; head -c 1000000 /dev/zero | tr '\\0' '['; echo; answer 3 {OK}; forever"
        ),
        "ok",
    )
    .await;
}

#[tokio::test]
async fn json_of_very_many_values() {
    let many = r#"printf '{"jsonrpc":"2.0","id":3,"result":['; yes 0, | head -n 3000000 | tr -d '\n'; printf '0]}\n'"#;
    let server = impatient(&format!("init; tools 2; read l; {many}; forever"));
    assert_eq!(call_of(&server).await.error.unwrap().kind, ErrorKind::Timeout);
}

#[tokio::test]
async fn garbage_between_messages() {
    let body = format!(
        "echo hello; init; echo '{{'; tools 2; read l; printf '\\377\\376\\n\\n   \\n'; echo null; answer 3 {OK}; forever"
    );
    check_answer(&body, "ok").await;
}

#[tokio::test]
async fn nothing_but_garbage() {
    check_error("init; tools 2; read l; exec yes garbage", ErrorKind::Unknown, "not messages").await;
}

#[tokio::test]
async fn batches_are_not_taken() {
    let body = format!(
        r#"init; tools 2; read l; say '[{{"jsonrpc":"2.0","id":3,"result":{{"content":[{{"type":"text","text":"batch"}}]}}}}]'; answer 3 {OK}; forever"#
    );
    check_answer(&body, "ok").await;
}

#[tokio::test]
async fn answers_under_wrong_ids() {
    let wrong = r#"'{"content":[{"type":"text","text":"wrong"}]}'"#;
    let body = format!(
        "init; tools 2; read l; for id in 1 2 4 99 -3 0 3.0 3e0 null '\"3\"' '[3]' '{{}}' true 99999999999999999999; do answer \"$id\" {wrong}; done; answer 3 {OK}; forever"
    );
    check_answer(&body, "ok").await;
}

#[tokio::test]
async fn the_same_answer_twice() {
    let again = r#"'{"content":[{"type":"text","text":"again"}]}'"#;
    let server = server(&format!(
        "init; tools 2; read l; answer 3 {OK}; answer 3 {again}; read l; answer 4 {OK}; forever"
    ))
    .build();
    let run = Run::builder(Toolset::new()).source(server).build().unwrap();
    for id in ["1", "2"] {
        assert_eq!(run.call(ToolCall::new(id, "add", json!({}))).await.unwrap().to_text(), "ok");
    }
}

#[tokio::test]
async fn a_result_and_an_error_at_once() {
    check_error(
        r#"init; tools 2; read l; say '{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":"x"}}'; forever"#,
        ErrorKind::Unknown,
        "both a result and an error",
    )
    .await;
}

#[tokio::test]
async fn neither_a_result_nor_an_error() {
    check_error(
        r#"init; tools 2; read l; say '{"jsonrpc":"2.0","id":3}'; forever"#,
        ErrorKind::Unknown,
        "neither",
    )
    .await;
    check_error(
        r#"init; tools 2; read l; answer 3 '"text"'; forever"#,
        ErrorKind::Unknown,
        "is not a tool result",
    )
    .await;
    check_error(
        r#"init; tools 2; read l; answer 3 '{"content":"text"}'; forever"#,
        ErrorKind::Unknown,
        "is not a tool result",
    )
    .await;
}

#[tokio::test]
async fn errors_of_the_protocol_keep_their_meaning() {
    let refuse = |code: i64| {
        format!(
            r#"init; tools 2; read l; say '{{"jsonrpc":"2.0","id":3,"error":{{"code":{code},"message":"said so"}}}}'; forever"#
        )
    };
    check_error(&refuse(-32602), ErrorKind::Parsing, "said so").await;
    check_error(&refuse(-32603), ErrorKind::Unknown, "said so").await;
    check_error(&refuse(-32601), ErrorKind::Unknown, "said so").await;
    check_error(&refuse(7), ErrorKind::Unknown, "said so").await;
}

#[tokio::test]
async fn a_flood_of_notifications() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1,"message":"more"}}"#;
    check_answer(
        &format!("init; tools 2; read l; yes '{note}' | head -n 20000; answer 3 {OK}; forever"),
        "ok",
    )
    .await;
}

#[tokio::test]
async fn progress_without_end_is_cut_short() {
    let body = format!(
        r#"init; tools 2; read l
i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo '{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":3,"progress":'$i'}}}}'; done
answer 3 {OK}; forever"#
    );
    let client = Client::start(&script(&body), ClientOptions::default()).await.unwrap();
    client.list_tools().await.unwrap();
    let count = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counting = count.clone();
    let on_progress = std::sync::Arc::new(move |_, _, _| {
        counting.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    });
    client.call_tool("add", json!({}), PATIENCE, Some(on_progress)).await.unwrap();
    assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), 1000);
}

#[tokio::test]
async fn a_flood_of_requests_that_never_reads_the_answers() {
    let request = r#"{"jsonrpc":"2.0","id":"r","method":"sampling/createMessage","params":{}}"#;
    check_answer(
        &format!("init; tools 2; read l; yes '{request}' | head -n 10000; answer 3 {OK}; forever"),
        "ok",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_asks_for_what_is_not_offered() {
    let body = format!(
        r#"init; tools 2; read l
say '{{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{{}}}}'; read -r l
case "$l" in *'"id":"q"'*-32601*|*-32601*'"id":"q"'*) ;; *) exit 1;; esac
say '{{"jsonrpc":"2.0","id":"p","method":"ping"}}'; read -r l
case "$l" in *'"id":"p"'*'"result":{{}}'*) ;; *) exit 1;; esac
answer 3 {OK}; forever"#
    );
    check_answer(&body, "ok").await;
}

#[tokio::test]
async fn a_server_that_never_reads() {
    let server = impatient("init; tools 2; hang");
    server.tools().await.unwrap();
    let pid = pid(&server).unwrap();
    let run = Run::builder(Toolset::new()).source(server).build().unwrap();
    let large = "x".repeat(1_000_000);
    let late = run.call(ToolCall::new("1", "add", json!({"text": large}))).await.unwrap();
    assert_eq!(late.error.unwrap().kind, ErrorKind::Timeout);
    eventually("the server that does not read was ended", || !is_running(pid)).await;
}

#[tokio::test]
async fn lists_that_never_end() {
    for cursor in ["same", "$n"] {
        let body = format!(
            r#"init; n=2; while read -r l; do printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[],"nextCursor":"{cursor}"}}}}\n' "$n"; n=$((n+1)); done"#
        )
        .replace("\"$n\"}", "\"'\"$n\"'\"}");
        let client = Client::start(&script(&body), ClientOptions::default()).await.unwrap();
        let error = client.list_tools().await.unwrap_err();
        assert_eq!(error.kind(), McpErrorKind::Limit, "{error}");
    }
}

#[tokio::test]
async fn more_tools_than_anybody_needs() {
    let body = r#"init; read l; printf '{"jsonrpc":"2.0","id":2,"result":{"tools":['
i=0; while [ $i -lt 10001 ]; do i=$((i+1)); printf '{"name":"t%s","inputSchema":{}},' $i; done
printf '{"name":"last","inputSchema":{}}]}}\n'; forever"#;
    let client = Client::start(&script(body), ClientOptions::default()).await.unwrap();
    assert_eq!(client.list_tools().await.unwrap_err().kind(), McpErrorKind::Limit);
}

#[tokio::test]
async fn patterns_of_many_tools_share_one_limit() {
    let body = r#"ADD='{"name":"add","inputSchema":{"type":"object"}}'
for i in 1 2 3 4 5; do ADD="$ADD"',{"name":"t'$i'","inputSchema":{"properties":{"p":{"pattern":"((a{1,99}){1,99}){1,99}"}}}}'; done
init; tools 2; forever"#;
    let server = server(body).build();
    assert_eq!(server.tools().await.unwrap().names().collect::<Vec<_>>(), ["add"]);
    let reasons: Vec<String> = server.state().left_out.into_iter().map(|(_, why)| why).collect();
    let of_one = |why: &String| why.contains("its patterns would take more than 16 MiB");
    assert!(reasons.len() == 5 && reasons.iter().take(4).all(of_one), "{reasons:?}");
    assert_eq!(reasons[4], "the patterns of this server's tools would take more than 64 MiB");
}

#[tokio::test]
async fn bad_tools_are_left_out_and_named() {
    let body = r##"ADD='{"name":"add","inputSchema":{"type":"object"}},{"name":"add","inputSchema":{}},{"name":"a b","inputSchema":{}},{"name":"x\u202ey","inputSchema":{}},{"name":"","inputSchema":{}},{"inputSchema":{}},7,{"name":"list","inputSchema":[]},{"name":"text","inputSchema":{"type":"string"}},{"name":"far","inputSchema":{"$ref":"http://127.0.0.1:1/"}},{"name":"bad_output","inputSchema":{},"outputSchema":{"type":"nothing"}},{"name":"fine","inputSchema":{"$defs":{"P":{"const":1}},"properties":{"p":{"$ref":"#/$defs/P"}}}}'
init; tools 2; forever"##;
    let server = server(body).build();
    let tools = server.tools().await.unwrap();
    assert_eq!(tools.names().collect::<Vec<_>>(), ["add", "fine"]);
    let named: Vec<String> = server.state().left_out.into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        named,
        [
            "add",
            "a tool without a name",
            "a tool without a name",
            "a b",
            "x\\u{202e}y",
            "",
            "list",
            "text",
            "far",
            "bad_output"
        ]
    );
    // Nothing of a schema is lost on the way.
    let fine = &tools.get("fine").unwrap().tool.spec().parameters;
    assert_eq!(fine["$defs"]["P"], json!({"const": 1}));
}

#[tokio::test]
async fn a_result_that_breaks_its_own_schema() {
    let body = r#"ADD='{"name":"add","inputSchema":{},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}'
init; tools 2; read l; answer 3 '{"content":[],"structuredContent":{"n":"many"}}'; forever"#;
    check_error(body, ErrorKind::Unknown, "does not match its output schema").await;
}

#[tokio::test]
async fn children_and_daemons_end_with_their_server() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let body = format!(
        r#"sleep 1000 & echo $! >> {0}
(setsid sleep 1001 & echo $! >> {0}) &
(setsid sh -c 'trap "" TERM HUP; sleep 1002 & echo $! >> {0}; sleep 1003' &)
echo $$ >> {0}
init; tools 2; forever"#,
        note.display()
    );
    let server = server(&body).build();
    server.tools().await.unwrap();
    let pids = || -> Vec<u32> {
        std::fs::read_to_string(&note)
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect()
    };
    eventually("all have started", || pids().len() == 4).await;
    assert!(pids().into_iter().all(is_running));
    server.stop().await;
    let left: Vec<u32> = pids().into_iter().filter(|pid| is_running(*pid)).collect();
    assert!(left.is_empty(), "{left:?} of {:?}", pids());
}

#[tokio::test]
async fn a_child_that_holds_the_pipe_open_after_its_parent_died() {
    check_error("init; tools 2; read l; sleep 1000 & exit 5", ErrorKind::Unknown, "exit status: 5").await;
}

#[tokio::test]
async fn a_server_that_ignores_every_request_to_end() {
    let server = server("trap '' TERM INT HUP; init; tools 2; while :; do sleep 0.1; done").build();
    server.tools().await.unwrap();
    let pid = pid(&server).unwrap();
    server.stop().await;
    assert!(!is_running(pid));
}

#[tokio::test]
async fn stderr_is_told_line_by_line_however_much_there_is() {
    let log = Log::default();
    let body = format!(
        "echo 'starting up' >&2; init; echo 'said hello' >&2; tools 2; read l; yes noise | head -n 100000 >&2; head -c 200000 /dev/zero | tr '\\0' y >&2; echo >&2; answer 3 {OK}; forever"
    );
    let server = server(&body).on_log(log.sink()).build();
    let run = Run::builder(Toolset::new()).source(server).build().unwrap();
    assert_eq!(run.call(ToolCall::new("1", "add", json!({}))).await.unwrap().to_text(), "ok");
    assert!(log.text().contains("starting up\n"), "{}", log.text());
    eventually("the long line is mentioned", || log.text().contains("too long to show")).await;
}

#[tokio::test]
async fn a_server_that_keeps_dying_is_started_again_with_growing_pauses() {
    let dies = |pause| server("init; tools 2; read l; exit 1").first_pause(pause).build();
    let called = async |run: &Run| {
        let result = run.call(ToolCall::new("1", "add", json!({}))).await.unwrap();
        result.error.unwrap().message
    };
    let slow = dies(PATIENCE);
    let run = Run::builder(Toolset::new()).source(slow.clone()).build().unwrap();
    assert!(called(&run).await.contains("exit status: 1"));
    // The first restart comes at once, the second after a pause.
    assert!(called(&run).await.contains("exit status: 1"));
    assert!(called(&run).await.contains("is down"));
    assert_eq!(slow.state().starts, 2);
    let quick = dies(Duration::from_millis(1));
    let run = Run::builder(Toolset::new()).source(quick.clone()).build().unwrap();
    while quick.state().starts < 4 {
        let why = called(&run).await;
        assert!(why.contains("exit status: 1") || why.contains("is down"), "{why}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_list_of_slow_pages_has_the_time_of_one_request() {
    let body = r#"init; n=2; while read -r l; do sleep 0.2; answer $n "{\"tools\":[],\"nextCursor\":\"c$n\"}"; n=$((n+1)); done"#;
    let mut options = ClientOptions::default();
    options.start_timeout = PATIENCE;
    options.request_timeout = Duration::from_secs(1);
    let client = Client::start(&script(body), options).await.unwrap();
    let late = tokio::time::timeout(PATIENCE, client.list_tools()).await.expect("in time");
    assert_eq!(late.unwrap_err().kind(), McpErrorKind::Timeout);
}

#[tokio::test]
async fn a_call_does_not_wait_for_a_start_longer_than_it_may_take() {
    let folder = tempfile::tempdir().unwrap();
    let (mark, ready) = (folder.path().join("mark"), folder.path().join("ready"));
    // It dies in its first call. Started again, it takes until it is told.
    let body = format!(
        "if [ -e {mark} ]; then until [ -e {ready} ]; do sleep 0.05; done; init; tools 2; read l; answer 3 {OK}; forever; fi
: > {mark}; init; tools 2; read l; exit 1",
        mark = mark.display(),
        ready = ready.display()
    );
    let server = server(&body).timeout(Duration::from_secs(1)).build();
    let run = Run::builder(Toolset::new()).source(server.clone()).build().unwrap();
    let call = || async { run.call(ToolCall::new("1", "add", json!({}))).await.unwrap() };
    assert!(call().await.error.unwrap().message.contains("connection closed"));
    let late = tokio::time::timeout(PATIENCE, call()).await.expect("in time").error.unwrap();
    assert_eq!(
        (late.kind, late.message.contains("was not ready within")),
        (ErrorKind::Timeout, true),
        "{late:?}"
    );
    // The start goes on without it, and serves the next call.
    std::fs::write(&ready, "").unwrap();
    let started = server.clone();
    eventually("it is there", || matches!(started.state().status, ServerStatus::Started { .. })).await;
    assert_eq!(call().await.to_text(), "ok");
    assert_eq!(server.state().starts, 2);
}

#[tokio::test]
async fn a_server_that_hangs_is_not_waited_for_at_every_turn() {
    let hangs = server("hang")
        .first_pause(Duration::from_millis(1))
        .options(|options| options.start_timeout = Duration::from_secs(1))
        .build();
    for _ in 0..10 {
        assert!(hangs.tools().await.unwrap().is_empty());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(hangs.state().starts, 1);
}

#[tokio::test]
async fn a_failing_server_leaves_the_others_alone_unless_it_is_required() {
    let good = McpServer::builder("good", everything()).tools(["add"]).build();
    let bad = server("exit 1").build();
    let run = Run::builder(Toolset::new()).source(bad.clone()).source(good.clone()).build().unwrap();
    let sum = run.call(ToolCall::new("1", "add", json!({"x": 1, "y": 2}))).await.unwrap();
    assert_eq!(sum.structured, Some(json!({"result": 3})));
    assert!(matches!(bad.state().status, ServerStatus::Failed { .. }));
    let required = server("exit 1").required().build();
    assert!(required.tools().await.is_err());
}

#[tokio::test]
async fn a_flood_from_one_server_does_not_hold_up_another() {
    let flood = server("init; tools 2; read l; exec yes '{\"jsonrpc\":\"2.0\",\"method\":\"x\"}'")
        .prefix("flood_")
        .timeout(Duration::from_secs(3))
        .build();
    let good = McpServer::builder("good", everything()).tools(["add"]).build();
    let run = Run::builder(Toolset::new()).source(flood).source(good).build().unwrap();
    let (flooded, sum) = tokio::join!(run.call(ToolCall::new("1", "flood_add", json!({}))), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        run.call(ToolCall::new("2", "add", json!({"x": 1, "y": 2}))).await
    });
    assert_eq!(flooded.unwrap().error.unwrap().kind, ErrorKind::Timeout);
    assert_eq!(sum.unwrap().error, None);
}

#[tokio::test]
async fn only_allowed_variables_reach_a_server() {
    let log = Log::default();
    let command = script("env >&2; init; tools 2; forever").env("GIVEN", "yes");
    let server = McpServer::builder("env", command).on_log(log.sink()).build();
    server.tools().await.unwrap();
    eventually("the variables are listed", || log.text().contains("GIVEN=yes")).await;
    assert!(!log.text().contains("CARGO_MANIFEST_DIR"), "{}", log.text());
    assert!(log.text().contains("PATH="));
}
