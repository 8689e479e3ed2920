//! A process that is killed loses nothing it had reported.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use toolwright_core::ToolCall;
use toolwright_runtime::{Durability, EventKind, Run, Transcript};

use crate::support::{add, tools};

const CALLS: usize = 200;

/// The child: makes its calls and reports each finished one on stdout.
fn child(path: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let run =
            Run::builder(tools([add()])).transcript(path, [], Durability::Process).unwrap().build().unwrap();
        let mut out = std::io::stdout();
        for n in 0..CALLS {
            // Results of very different sizes, so that kills also fall into long writes.
            let call =
                ToolCall::new(format!("call-{n}-{}", "x".repeat(n * 20)), "add", json!({"x": n, "y": 1}));
            run.call(call).await.unwrap();
            writeln!(out, "finished {n}").unwrap();
            out.flush().unwrap();
        }
    });
}

#[test]
fn a_run_killed_at_any_moment_keeps_every_reported_call() {
    if let Some(path) = std::env::var_os("TOOLWRIGHT_KILL_CHILD") {
        return child(Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut cut_short = 0;
    for round in 0..500 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let path = folder.path().join(format!("{round}.jsonl"));
        let mut process = Command::new(&this)
            .args([
                "--exact",
                "kill::a_run_killed_at_any_moment_keeps_every_reported_call",
                "--nocapture",
                "--test-threads=1",
            ])
            .env("TOOLWRIGHT_KILL_CHILD", &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        // Wait for a random number of reports, then a random moment, then kill.
        let wait_for = (random % (CALLS as u64)) as usize;
        let pause = Duration::from_micros(random / 1000 % 300);
        let mut reported = 0;
        let mut lines = lines.lines().map_while(Result::ok).filter(|line| line.starts_with("finished"));
        while reported < wait_for && lines.next().is_some() {
            reported += 1;
        }
        std::thread::sleep(pause);
        process.kill().unwrap();
        process.wait().unwrap();
        reported += lines.count();

        if reported == 0 && !path.exists() {
            continue; // Killed before it had begun.
        }
        let before = Transcript::load(&path).unwrap_or_else(|error| panic!("round {round}: {error:?}"));
        let finished =
            before.events.iter().filter(|event| matches!(event.kind, EventKind::CallFinished { .. })).count();
        assert!(finished >= reported, "round {round}: {reported} reported, {finished} on record");
        cut_short += usize::from(finished < CALLS);
        let run =
            Run::builder(tools([add()])).transcript(&path, [], Durability::Process).unwrap().build().unwrap();
        drop(run);
        let after = Transcript::load(&path).unwrap();
        assert!(after.open_calls().is_empty() && !after.torn, "round {round}");
        std::fs::remove_file(&path).unwrap();
    }
    assert!(cut_short > 400, "only {cut_short} of 500 kills came in time");
}
