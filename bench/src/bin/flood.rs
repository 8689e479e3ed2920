//! What it costs to drain a flood: the same bytes through a plain pipe and out of our sandbox, one at a time
//! and many at once, and how much memory that takes.
//!
//! The sizes in MiB are the arguments: of one flood (1024 unless said), and of each of 64 at once (64 unless
//! said).

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use toolwright_core::{ErrorKind, ExecRequest, Sandbox as _};
use toolwright_sandbox::{ProcessSandbox, SandboxPolicy, launcher};

const ROUNDS: usize = 5;
const AT_ONCE: usize = 64;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    launcher::main_if_launcher();
    let mut sizes = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (one, each) = (sizes.next().unwrap_or(1024), sizes.next().unwrap_or(64));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let sandbox = runtime.block_on(ProcessSandbox::open(SandboxPolicy::private()))?;
    runtime.block_on(sandbox.exec(ExecRequest::new(["true"])))?;

    let before = peak()?;
    let (mut plain, mut ours) = (Best::new(), Best::new());
    for _ in 0..ROUNDS {
        plain.take(|| through_a_pipe(one))?;
        ours.take(|| runtime.block_on(through_the_sandbox(&sandbox, one)))?;
    }
    let one_grew = peak()? - before;
    runtime.block_on(async {
        let floods = (0..AT_ONCE).map(|_| {
            let sandbox = sandbox.clone();
            tokio::spawn(async move {
                through_the_sandbox(&sandbox, each).await.map_err(|error| error.to_string())
            })
        });
        for flood in floods.collect::<Vec<_>>() {
            flood.await??;
        }
        Outcome::Ok(())
    })?;
    let grew = peak()? - before;
    toolwright_bench::report(&[
        ("plain pipe", plain.wall * 1e9),
        ("sandbox", ours.wall * 1e9),
        ("plain pipe cpu", plain.cpu * 1e9),
        ("sandbox cpu", ours.cpu * 1e9),
        ("mebibytes", one as f64),
        ("memory of one", one_grew as f64),
        ("memory of many", grew as f64),
    ]);
    Ok(())
}

/// The least time of all rounds, in seconds.
struct Best {
    wall: f64,
    /// Of both ends together.
    cpu: f64,
}

impl Best {
    fn new() -> Self {
        Best { wall: f64::INFINITY, cpu: f64::INFINITY }
    }

    /// Times a flood, which tells how much the writing end used.
    fn take(&mut self, flood: impl FnOnce() -> Outcome<String>) -> Outcome<()> {
        let (start, used) = (Instant::now(), own_cpu()?);
        let told = flood()?;
        self.wall = self.wall.min(start.elapsed().as_secs_f64());
        self.cpu = self.cpu.min(own_cpu()? - used + writer_cpu(&told)?);
        Ok(())
    }
}

/// Writes so much, then tells what that took.
fn script(mebibytes: u64) -> String {
    format!("head -c {} /dev/zero; times >&2", mebibytes << 20)
}

/// Seconds from what the shell's `times` prints: two lines of `0m0.01s 0m0.30s`, the second of its children.
fn writer_cpu(told: &str) -> Outcome<f64> {
    let mut seconds = 0.0;
    for time in told.split_whitespace() {
        let (minutes, rest) = time.split_once('m').ok_or("no minutes")?;
        seconds += minutes.parse::<f64>()? * 60.0 + rest.trim_end_matches('s').parse::<f64>()?;
    }
    Ok(seconds)
}

/// Seconds of processor time the threads of this process used. Threads that end take theirs with them, so
/// floods are drained by threads that stay for ten seconds.
fn own_cpu() -> Outcome<f64> {
    let mut nanoseconds = 0.0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        nanoseconds += text.split_whitespace().next().unwrap_or_default().parse::<f64>().unwrap_or(0.0);
    }
    Ok(nanoseconds / 1e9)
}

/// A plain reader: a pipe as it comes, read by blocking reads of the same size.
fn through_a_pipe(mebibytes: u64) -> Outcome<String> {
    let mut child = Command::new("sh")
        .args(["-c", &script(mebibytes)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut pipe) = child.stdout.take() {
        let mut buffer = vec![0; 128 * 1024];
        while pipe.read(&mut buffer)? > 0 {}
    }
    Ok(String::from_utf8(child.wait_with_output()?.stderr)?)
}

async fn through_the_sandbox(sandbox: &ProcessSandbox, mebibytes: u64) -> Outcome<String> {
    match sandbox.exec(ExecRequest::new(["sh", "-c", &script(mebibytes)])).await {
        Err(error) if error.kind() == ErrorKind::OutputLimit => {
            let told = error.partial().and_then(|partial| partial.structured.as_ref());
            Ok(told.and_then(|told| told["stderr"].as_str()).unwrap_or_default().to_owned())
        }
        Err(error) => Err(error.into()),
        Ok(_) => Err("the flood was smaller than the limit of 10 MiB".into()),
    }
}

/// The most memory this process ever used, in KiB.
fn peak() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}
