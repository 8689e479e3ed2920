//! A shell that goes on from call to call.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use toolwright_core::{ErrorKind, ToolCall};
use toolwright_tools::{Options, bash_session, configured};

use crate::support::{Backend, Bench, cases};

cases![
    a_typed_line_may_be_long,
    an_escape_sequence_without_an_end_hides_nothing,
    a_session_keeps_its_state_and_its_programs,
    a_program_that_does_not_read_can_be_interrupted,
    a_wait_that_no_clock_can_hold_is_a_long_one,
    the_end_of_a_shell_is_told_at_once,
    each_tool_has_a_shell_and_instances_share_one,
    a_session_ends_with_its_run,
    a_flood_neither_blocks_nor_grows,
    wrong_actions_are_parsing_errors,
];

fn session(wait: u64) -> toolwright_core::ToolDef {
    bash_session(&Options::new().wait_for_output(Duration::from_millis(wait)))
}

async fn submit(bench: &Bench, input: &str) -> String {
    bench.text("bash_session", json!({"action": "type_submit", "input": input})).await
}

async fn a_session_keeps_its_state_and_its_programs(backend: Backend) {
    let bench = Bench::of(backend, [session(4000)]).await;
    submit(&bench, "export PS1='P> '").await;
    assert_eq!(submit(&bench, "cd /usr && X=5").await, "P> ");
    assert_eq!(submit(&bench, "echo $X $PWD").await, "5 /usr\nP> ");
    assert_eq!(submit(&bench, "test -t 0 && echo terminal").await, "terminal\nP> ");
    assert_eq!(submit(&bench, "read line; echo got $line").await, "", "it waits to be answered");
    assert_eq!(submit(&bench, "né ✓").await, "got né ✓\nP> ");
    let interrupted = async || bench.text("bash_session", json!({"action": "interrupt"})).await;
    bench.text("bash_session", json!({"action": "type", "input": "sleep 100\n"})).await;
    let told = interrupted().await;
    assert!(told.ends_with("P> "), "{told:?}");
    submit(&bench, "printf '\\033[31mred\\033[0m\\007\\n'").await;
    assert_eq!(submit(&bench, "printf '\\033[31mred\\033[0m\\007\\n'").await, "red\nP> ");
}

async fn a_program_that_does_not_read_can_be_interrupted(backend: Backend) {
    for before in ["", "stty -icanon; "] {
        let bench = Bench::of(backend, [session(1000)]).await;
        submit(&bench, &format!("{before}sleep 1000")).await;
        let much = json!({"action": "type", "input": "x".repeat(100_000)});
        assert!(bench.error("bash_session", much).await.1.contains("does not read what is typed"));
        let told = bench.call("bash_session", json!({"action": "interrupt"})).await;
        assert!(told.error.is_none(), "{:?}", told.error);
        until(&bench, "echo $((6 * 7))", "42\n").await;
    }
}

/// Types a line and reads until the text is there.
async fn until(bench: &Bench, input: &str, wanted: &str) {
    let mut told = submit(bench, input).await;
    let started = Instant::now();
    while !told.contains(wanted) {
        assert!(started.elapsed() < Duration::from_secs(60), "{wanted:?} is not in {told:?}");
        told += &bench.text("bash_session", json!({"action": "read"})).await;
    }
}

async fn a_typed_line_may_be_long(backend: Backend) {
    let bench = Bench::of(backend, [session(4000)]).await;
    let long = "x".repeat(10_000);
    until(&bench, &format!("cat > long <<'END'\n{long}\nEND\nwc -c long"), "10001 long\n").await;
    until(&bench, &format!("echo {long} | wc -c"), "10001\n").await;
    until(&bench, "printf 'r%s\\n' eady; read -r line; echo ${#line}", "ready\n").await;
    until(&bench, &long, "10000\n").await;
    // A program that reads keys as they come gets these and nothing else.
    until(&bench, "stty raw; printf 'r%s\\n' eady; head -c 9000 | tr -d y | wc -c; stty -raw", "ready\n")
        .await;
    until(&bench, &"y".repeat(8999), "1\n").await;
}

async fn an_escape_sequence_without_an_end_hides_nothing(backend: Backend) {
    let bench = Bench::of(backend, [session(4000)]).await;
    until(&bench, "printf '\\033]0;building...\\n'; echo IMPORTANT-RE'SULT'", "IMPORTANT-RESULT\n").await;
    // Cut between two calls.
    until(&bench, "printf 'go\\n\\033['; read -r line; printf '31mred\\n'", "go\n").await;
    let told = submit(&bench, "").await;
    assert!(told.starts_with("red\n"), "{told:?}");
    until(&bench, "printf '\\033]0;title'; read -r -p 'Name? ' name", "Name? ").await;
}

async fn a_wait_that_no_clock_can_hold_is_a_long_one(backend: Backend) {
    let session = configured("bash_session", &json!({"wait_for_output": 1.0e19})).unwrap().unwrap();
    let bench = Bench::of(backend, [session]).await;
    until(&bench, "echo $((6 * 7))", "42\n").await;
}

async fn the_end_of_a_shell_is_told_at_once(backend: Backend) {
    let bench = Bench::of(backend, [session(20_000)]).await;
    let started = Instant::now();
    submit(&bench, "X=1").await;
    let told = submit(&bench, "exit 3").await;
    assert!(told.contains("[the shell has ended: exit code 3; the next call starts a new one]"), "{told:?}");
    assert!(
        submit(&bench, "echo \"still $X\"").await.contains("still \n"),
        "a new shell without the variable"
    );
    let told = submit(&bench, "kill -9 $$").await;
    assert!(told.contains("ended by signal 9") || told.contains("exit code 137"), "{told:?}");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

async fn each_tool_has_a_shell_and_instances_share_one(backend: Backend) {
    let options = Options::new().wait_for_output(Duration::from_secs(3));
    let shared = options.clone().instance("shared");
    let said = json!({"wait_for_output": 3, "instance": null});
    let whole_run = || configured("inspect_ai.tool.bash_session", &said).unwrap().unwrap();
    let tools = [
        bash_session(&options).with_name("one"),
        bash_session(&options).with_name("two"),
        bash_session(&shared).with_name("three"),
        bash_session(&shared).with_name("four"),
        whole_run().with_name("five"),
        whole_run().with_name("six"),
    ];
    let bench = Bench::of(backend, tools).await;
    let submit = async |tool: &str, input: &str| {
        bench.text(tool, json!({"action": "type_submit", "input": input})).await
    };
    submit("one", "X=one").await;
    submit("three", "X=three").await;
    assert!(submit("two", "echo \"[$X]\"").await.contains("[]"));
    assert!(submit("four", "echo \"[$X]\"").await.contains("[three]"));
    assert!(submit("five", "echo \"[$X]\"; X=five").await.contains("[]"));
    assert!(submit("six", "echo \"[$X]\"").await.contains("[five]"), "`null` is one shell for the whole run");
    let restarted = bench.text("one", json!({"action": "restart"})).await;
    assert!(restarted.contains("restarted"));
    assert!(submit("one", "echo \"[$X]\"").await.contains("[]"));
}

async fn a_session_ends_with_its_run(backend: Backend) {
    let bench = Bench::of(backend, [session(3000)]).await;
    let marker = marker();
    submit(&bench, &format!("(sleep {marker} &) ; sleep {marker} &")).await;
    assert!(running(&marker), "it runs");
    let Bench { run, sandbox, .. } = bench;
    drop(run);
    let deadline = Instant::now() + Duration::from_secs(30);
    while running(&marker) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!running(&marker), "the run is gone and its shell is not");
    drop(sandbox);
}

/// How long a `sleep` is to take that no other test has started: tests of both backends run side by side.
pub(crate) fn marker() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}", std::process::id() + 40_000_000, MADE.fetch_add(1, Ordering::Relaxed))
}

/// Whether a `sleep` with that argument runs anywhere on the machine.
pub(crate) fn running(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&format!("sleep\0{marker}\0"))
    })
}

async fn a_flood_neither_blocks_nor_grows(backend: Backend) {
    let bench = Bench::of(backend, [session(5000)]).await;
    submit(&bench, "export PS1='P> '").await;
    let first = submit(&bench, "head -c 30000000 /dev/zero | tr '\\0' x; echo; echo done").await;
    assert!(first.len() >= 4096, "{}", first.len());
    // The end may come in several pieces.
    let mut end = toolwright_core::text::tail(&first, 64).to_owned();
    let started = Instant::now();
    while !end.ends_with("done\nP> ") && started.elapsed() < Duration::from_secs(30) {
        let more = bench.text("bash_session", json!({"action": "read"})).await;
        assert!(more.len() < 11 << 20);
        end = toolwright_core::text::tail(&format!("{end}{more}"), 64).to_owned();
    }
    assert!(end.ends_with("done\nP> "), "{end:?}");
}

async fn wrong_actions_are_parsing_errors(backend: Backend) {
    let bench = Bench::of(backend, [session(1000)]).await;
    for arguments in [
        json!({"action": "type"}),
        json!({"action": "read", "input": "x"}),
        json!({"action": "interrupt", "input": "x"}),
        json!({"action": "restart", "input": "x"}),
        json!({"action": "zzz"}),
        json!({}),
    ] {
        assert_eq!(bench.error("bash_session", arguments).await.0, ErrorKind::Parsing);
    }
    // A call that is cut short leaves the session usable.
    let call = bench.run.call(ToolCall::new(
        "2",
        "bash_session",
        json!({"action": "type_submit", "input": "sleep 0.3"}),
    ));
    assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
    bench.text("bash_session", json!({"action": "read"})).await;
}
