//! `cargo xtask live [FORMAT] [TASK]`: tasks for a small model that is real and errs, over real tools, judged
//! by what they did.
//!
//! The model runs on this machine, on a llama.cpp server that xtask starts. This is not a test: a model of
//! this size fails at some tasks. It shows how well our definitions, errors and repairs lead it, and whether
//! the wire formats differ.

mod tasks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tasks::{After, TASKS, Task};
use toolwright_core::{DynModel, DynSandbox, DynTool, Message, ModelOptions, Secret, Toolset};
use toolwright_lang::{Host, Source, load};
use toolwright_models::{HttpLimits, ModelSettings, connect};
use toolwright_runtime::{LoopOptions, LoopOutcome, Run, RunLimits};
use toolwright_sandbox::{LocalSandbox, SandboxPolicy};

/// The wire formats that the server speaks, and a vendor for each.
const FORMATS: &[(&str, &str)] = &[
    ("openai-chat", "llama.cpp/m"),
    ("openai-responses", "openai/m"),
    ("anthropic-messages", "anthropic-compatible/m"),
];

/// Runs, on the server at `url`, the tasks whose names hold `task` over the formats whose names hold
/// `format`.
pub fn run(url: &str, format: &str, task: &str) -> Result<()> {
    let formats: Vec<_> = FORMATS.iter().filter(|(name, _)| name.contains(format)).collect();
    let chosen: Vec<&Task> = TASKS.iter().filter(|each| each.name.contains(task)).collect();
    if formats.is_empty() || chosen.is_empty() {
        let names: Vec<_> = FORMATS.iter().map(|(name, _)| *name).collect();
        bail!(
            "no such format or task; formats: {}; tasks: see xtask/runs/src/live/tasks.rs",
            names.join(", ")
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut lines = Vec::new();
    for (name, vendor) in formats {
        // A busy machine takes minutes to read a prompt.
        let limits = HttpLimits { read: Duration::from_secs(1800), ..HttpLimits::default() };
        let settings = ModelSettings::new().base_url(url).key(Secret::new("none")).limits(limits);
        let model = connect(vendor, settings, |_| None)?;
        let mut good = 0;
        for task in &chosen {
            let started = Instant::now();
            let (done, story) = runtime.block_on(attempt(&model, task))?;
            good += usize::from(done);
            let mark = if done { "done  " } else { "FAILED" };
            println!("{mark} {name}: {} ({:.0} s)", task.name, started.elapsed().as_secs_f64());
            if !done {
                println!("{story}");
            }
        }
        let share = 100.0 * good as f64 / chosen.len() as f64;
        lines.push(format!("{name}: {good} of {} tasks done ({share:.0} %)", chosen.len()));
    }
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

async fn attempt(model: &DynModel, task: &Task) -> Result<(bool, String)> {
    let folder = tempfile::tempdir()?;
    for (path, text) in task.files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
        std::fs::write(path, text)?;
    }
    let policy = SandboxPolicy { workspace: Some(folder.path().to_owned()), ..SandboxPolicy::private() };
    let sandbox: Arc<DynSandbox> = Arc::new(LocalSandbox::open(policy).await?);
    let limits = RunLimits { turns: Some(8), repeats: Some(2), ..RunLimits::default() };
    let run = Run::builder(tools(task)?).sandbox("default", sandbox).limits(limits).build()?;
    let options = ModelOptions { max_tokens: Some(400), temperature: Some(0.0), ..ModelOptions::default() };
    let how = LoopOptions { options, ..LoopOptions::default() };
    let instructions = "You work on files and data with the tools you are given. Use a tool whenever the task needs one, \
                        and then answer in one short sentence.";
    let messages = vec![Message::system(instructions), Message::user(task.prompt)];
    let outcome = match run.generate_loop(model, messages, &how).await {
        Ok(outcome) => outcome,
        Err(error) => return Ok((false, format!("  {error}"))),
    };
    let calls =
        outcome.messages.iter().filter(|each| matches!(each, Message::Tool(result) if !result.is_error()));
    let after = After { folder: folder.path(), answer: &outcome.completion(), calls: calls.count() };
    Ok(((task.done)(&after), story(&outcome)))
}

/// The tools a task offers.
fn tools(task: &Task) -> Result<Toolset> {
    let standard = toolwright_tools::standard()?;
    let host = Host::new().builtins(standard.clone());
    let loaded = load(Source::text("tools.yaml", include_str!("tools.yaml")), &host);
    let loaded = loaded.context("tools.yaml")?;
    let mut offered = Toolset::new();
    for name in task.tools {
        let found = loaded.tools().get(name).or_else(|| standard.get(name));
        let found = found.with_context(|| format!("there is no tool `{name}`"))?;
        offered = offered.with(found.tool.clone() as Arc<DynTool>)?;
    }
    Ok(offered)
}

/// What was said and done, to see why a task failed.
fn story(outcome: &LoopOutcome) -> String {
    let mut lines = Vec::new();
    for message in outcome.messages.iter().skip(2) {
        match message {
            Message::Assistant(said) => {
                lines.push(format!("  says: {:?}", said.text()));
                lines.extend(
                    said.tool_calls.iter().map(|call| format!("  calls: {} {}", call.name, call.arguments)),
                );
            }
            Message::Tool(result) => {
                lines.push(format!("  gets: {:?}", toolwright_core::text::clip(&result.to_text(), 300)))
            }
            _ => {}
        }
    }
    lines.push(format!("  end: {:?}", outcome.end));
    lines.join("\n")
}
