//! A Python function in its sandboxed worker: the first call of a file, and calls through the whole path.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::json;
use toolwright_bench::report;
use toolwright_core::{ExecRequest, ToolCall, ToolSource as _};
use toolwright_python::{PythonFile, PythonOptions};
use toolwright_runtime::{Event, Policy, Run, RunLimits};
use toolwright_sandbox::{ProcessSandbox, SandboxPolicy};

const ADD: &str = "def add(x: int, y: int) -> int:\n    \"\"\"Adds two numbers.\"\"\"\n    return x + y\n";
const CALLS: usize = 20_000;
const STARTS: usize = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    toolwright_sandbox::launcher::main_if_launcher();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let print = "import os, sys; print(os.path.realpath(sys.executable)); print(sys.base_prefix)";
    let output = Command::new("python3").args(["-I", "-c", print]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let (program, prefix) = text.trim().split_once('\n').ok_or("python3 does not say where it is")?;
    let folder = std::env::temp_dir().join(format!("toolwright-bench-python-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("add.py");
    std::fs::write(&file, ADD)?;
    let place = file.to_string_lossy().into_owned();
    let call = ToolCall::new("call_1", "add", json!({"x": 1, "y": 2}));

    let mut starts = Vec::new();
    let mut opened = None;
    for _ in 0..STARTS {
        let since = Instant::now();
        let mut policy = SandboxPolicy::default();
        policy.read.extend([folder.clone(), PathBuf::from(prefix)]);
        let sandbox = Arc::new(ProcessSandbox::open(policy).await?);
        let options = PythonOptions::default();
        let file = PythonFile::open(sandbox, ExecRequest::new([program]), place.clone(), options).await?;
        let run = Run::builder(file.tools().await?).build()?;
        assert_eq!(run.call(call.clone()).await?.to_text(), "3");
        starts.push(since.elapsed().as_nanos() as f64);
        opened = Some(file);
    }

    let file = opened.ok_or("no file")?;
    let events = Arc::new(AtomicU64::new(0));
    let counted = events.clone();
    let run = Run::builder(file.tools().await?)
        .policy(Policy::from_yaml("- {tools: 'add*', decision: approve}\n- {tools: rm, decision: reject}")?)
        .limits(RunLimits { tool_calls: Some(u64::MAX), tokens: Some(1), ..RunLimits::default() })
        .on_event(move |_: &Event| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .build()?;
    let mut calls = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let since = Instant::now();
        let result = run.call(call.clone()).await?;
        calls.push(since.elapsed().as_nanos() as f64);
        assert!(result.error.is_none());
    }
    assert!(events.load(Ordering::Relaxed) > 0);
    std::fs::remove_dir_all(&folder)?;
    report(&[("start", median(starts)), ("call", median(calls))]);
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
