//! Time and streams: what is stopped stays stopped, and what runs can be followed and talked to.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use toolwright_core::{
    DynSandbox, ErrorKind, ExecRequest, OutputStream, SandboxProcess, SpawnRequest, TerminalSize, ToolError,
};

use super::{CheckFailure, CheckResult, check, equal, fails, holds, shell};

/// How late anything here may be on a machine that is busy with other work; what is to be stopped would go on
/// for longer.
const PATIENCE: Duration = Duration::from_secs(30);

async fn timed(sandbox: &DynSandbox, script: &str, timeout: Duration) -> Result<ToolError, CheckFailure> {
    let start = Instant::now();
    let request = ExecRequest::new(["sh", "-c", script]).timeout(timeout);
    let error = fails(sandbox.exec(request).await, ErrorKind::Timeout)?;
    let took = start.elapsed();
    holds(&format!("it took {took:?}"), took < timeout + PATIENCE)?;
    Ok(error)
}

/// A file that something alive keeps writing stops growing.
async fn stays_dead(sandbox: &DynSandbox, file: &str) -> CheckResult {
    let size = || async { shell(sandbox, &format!("wc -c < {file}")).await.map(|result| result.stdout) };
    let start = Instant::now();
    let mut before = size().await?;
    loop {
        tokio::time::sleep(Duration::from_millis(400)).await;
        let now = size().await?;
        if now == before {
            return Ok(());
        }
        holds(&format!("`{file}` still grows"), start.elapsed() < PATIENCE)?;
        before = now;
    }
}

check!(A_TIMEOUT_STOPS_THE_COMMAND, "a_timeout_stops_the_command", |sandbox| {
    timed(sandbox, "sleep 60", Duration::from_millis(500)).await.map(drop)
});

check!(A_TIMEOUT_KEEPS_THE_OUTPUT, "a_timeout_keeps_the_output", |sandbox| {
    let mut text = String::new();
    // A busy machine may not have started the command by then.
    for seconds in [1, 5, 25] {
        let timeout = Duration::from_secs(seconds);
        let error = timed(sandbox, "echo before; echo oops >&2; sleep 90", timeout).await?;
        text = error.partial().map(|partial| partial.to_text()).unwrap_or_default();
        if !text.is_empty() {
            break;
        }
    }
    equal(text.as_str(), "before\noops\n")
});

check!(A_TIMEOUT_STOPS_CHILDREN, "a_timeout_stops_children", |sandbox| {
    let script = "(while :; do echo x >> grows; sleep 0.05; done) & sleep 60";
    timed(sandbox, script, Duration::from_secs(1)).await?;
    stays_dead(sandbox, "grows").await
});

check!(A_TIMEOUT_STOPS_THE_STUBBORN, "a_timeout_stops_the_stubborn", |sandbox| {
    let script = "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM INT HUP; while :; do echo x >> stubborn; \
                  sleep 0.05; done' & while :; do sleep 1; done";
    timed(sandbox, script, Duration::from_secs(1)).await?;
    stays_dead(sandbox, "stubborn").await
});

check!(A_CHILD_THAT_HOLDS_THE_PIPE_DOES_NOT_BLOCK, "a_child_that_holds_the_pipe_does_not_block", |sandbox| {
    let start = Instant::now();
    let result = shell(sandbox, "echo done; sleep 60 & exit 3").await?;
    equal((result.code, result.stdout.as_str()), (3, "done\n"))?;
    holds("it returned at once", start.elapsed() < PATIENCE)
});

check!(A_DROPPED_CALL_STOPS_THE_COMMAND, "a_dropped_call_stops_the_command", |sandbox| {
    let endless = shell(sandbox, "while :; do echo x >> dropped; sleep 0.05; done");
    let _ = tokio::time::timeout(Duration::from_millis(500), endless).await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    stays_dead(sandbox, "dropped").await
});

check!(OUTPUT_CAN_BE_SEEN_LIVE, "output_can_be_seen_live", |sandbox| {
    let seen = Mutex::new(Vec::new());
    let first = Notify::new();
    let sink = |stream: OutputStream, bytes: &[u8]| {
        if let Ok(mut seen) = seen.lock() {
            seen.push((stream, bytes.to_vec()));
        }
        first.notify_one();
    };
    // The command continues only after its first output was received.
    let script = "rm -f heard; echo one; until [ -e heard ]; do sleep 0.05; done; echo two >&2";
    let request = ExecRequest::new(["sh", "-c", script]).timeout(PATIENCE);
    let answer = async {
        let _ = tokio::time::timeout(PATIENCE, first.notified()).await;
        sandbox.write_file("heard", b"").await
    };
    let (result, answered) = tokio::join!(sandbox.exec_live(request, &sink), answer);
    answered?;
    let result = result?;
    equal((result.stdout.as_str(), result.stderr.as_str()), ("one\n", "two\n"))?;
    let seen = seen.into_inner().map_err(|_| CheckFailure::Fail("the sink panicked".to_owned()))?;
    equal(seen, vec![(OutputStream::Stdout, b"one\n".to_vec()), (OutputStream::Stderr, b"two\n".to_vec())])
});

async fn spawn(sandbox: &DynSandbox, request: SpawnRequest) -> Result<SandboxProcess, CheckFailure> {
    match sandbox.spawn(request).await {
        Err(error) if error.kind() == ErrorKind::SandboxUnavailable => {
            Err(CheckFailure::Skip(error.to_string()))
        }
        other => Ok(other?),
    }
}

/// Reads until the text has been seen or it takes too long.
async fn expect(process: &mut SandboxProcess, text: &str) -> Result<String, CheckFailure> {
    let mut seen = String::new();
    let mut buffer = [0; 1024];
    let Some(stdout) = &mut process.stdout else {
        return Err(CheckFailure::Fail("no output stream".to_owned()));
    };
    while !seen.contains(text) {
        match tokio::time::timeout(PATIENCE, stdout.read(&mut buffer)).await {
            Ok(Ok(count)) if count > 0 => {
                seen.push_str(&String::from_utf8_lossy(buffer.get(..count).unwrap_or_default()));
            }
            other => return Err(CheckFailure::Fail(format!("saw {seen:?}, not {text:?}; then {other:?}"))),
        }
    }
    Ok(seen)
}

async fn say(process: &mut SandboxProcess, text: &str) -> CheckResult {
    let Some(stdin) = &mut process.stdin else {
        return Err(CheckFailure::Fail("no input stream".to_owned()));
    };
    stdin.write_all(text.as_bytes()).await.map_err(|error| CheckFailure::Fail(error.to_string()))
}

check!(A_PROCESS_CAN_BE_TALKED_TO, "a_process_can_be_talked_to", |sandbox| {
    let script = "while read line; do echo \"heard $line\"; done; exit 5";
    let mut process = spawn(sandbox, SpawnRequest::piped(ExecRequest::new(["sh", "-c", script]))).await?;
    say(&mut process, "one\n").await?;
    expect(&mut process, "heard one\n").await?;
    say(&mut process, "two\n").await?;
    expect(&mut process, "heard two\n").await?;
    process.stdin = None;
    equal(process.handle.wait().await?, 5)?;
    equal(process.handle.wait().await?, 5)
});

check!(A_PROCESS_CAN_HAVE_A_TERMINAL, "a_process_can_have_a_terminal", |sandbox| {
    let request = SpawnRequest::with_terminal(ExecRequest::new(["sh"]).env("PS1", "ready> "), 40, 120);
    let mut process = spawn(sandbox, request).await?;
    expect(&mut process, "ready> ").await?;
    say(&mut process, "stty size\n").await?;
    expect(&mut process, "40 120").await?;
    say(&mut process, "tty\n").await?;
    expect(&mut process, "/dev/pts/").await?;
    process.handle.resize(TerminalSize { rows: 50, columns: 100 })?;
    // A terminal far away learns of its size a little later.
    say(&mut process, "until stty size | grep '50 100'; do sleep 0.1; done\n").await?;
    expect(&mut process, "50 100\r\n").await?;
    let job =
        "sh -c 'trap \"echo inter\"rupted\"; exit\" INT; echo wait\"ing\"; while :; do sleep 0.1; done'\n";
    say(&mut process, job).await?;
    expect(&mut process, "waiting").await?;
    process.handle.signal(2).await?;
    expect(&mut process, "interrupted").await?;
    say(&mut process, "exit 4\n").await?;
    equal(process.handle.wait().await?, 4)
});

check!(A_TERMINAL_TAKES_LONG_LINES, "a_terminal_takes_long_lines", |sandbox| {
    let script = "stty -echo; echo go; IFS= read -r line; echo ${#line}; wc -c";
    let request = SpawnRequest::with_terminal(ExecRequest::new(["sh", "-c", script]), 40, 120);
    let mut process = spawn(sandbox, request).await?;
    expect(&mut process, "go\r\n").await?;
    say(&mut process, &format!("{}\n", "é".repeat(10_000))).await?;
    expect(&mut process, "0000\r\n").await?;
    // Four pieces of one line, and the end of the input.
    say(&mut process, &format!("{}\n\u{4}", "x".repeat(4001 * 4))).await?;
    expect(&mut process, "16005\r\n").await?;
    equal(process.handle.wait().await?, 0)
});

check!(A_DROPPED_PROCESS_STOPS, "a_dropped_process_stops", |sandbox| {
    let script = "setsid sh -c 'while :; do echo x >> orphan; sleep 0.05; done' & sleep 60";
    let process = spawn(sandbox, SpawnRequest::piped(ExecRequest::new(["sh", "-c", script]))).await?;
    tokio::time::sleep(Duration::from_millis(400)).await;
    drop(process);
    tokio::time::sleep(Duration::from_millis(250)).await;
    stays_dead(sandbox, "orphan").await
});
