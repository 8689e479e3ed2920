//! What it costs to drain a flood: the same bytes through a plain pipe and out of our sandbox, one at a time and many at
//! once, and how much memory that takes.
//!
//! The sizes in MiB are the arguments: of one flood (1024 unless said), and of each of 64 at once (64 unless said).

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use toolwright_core::{ErrorKind, ExecRequest, Sandbox as _};
use toolwright_sandbox::{Policy, ProcessSandbox, launcher};

const ROUNDS: usize = 5;
const AT_ONCE: usize = 64;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    launcher::main_if_launcher();
    let mut sizes = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (one, each) = (sizes.next().unwrap_or(1024), sizes.next().unwrap_or(64));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let sandbox = runtime.block_on(ProcessSandbox::open(Policy::private()))?;
    runtime.block_on(sandbox.exec(ExecRequest::new(["true"])))?;

    let before = peak()?;
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        through_a_pipe(one)?;
        plain.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        runtime.block_on(through_the_sandbox(&sandbox, one))?;
        ours.push(start.elapsed().as_secs_f64());
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
    let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min) * 1e9;
    toolwright_bench::report(&[
        ("plain pipe", best(&plain)),
        ("sandbox", best(&ours)),
        ("mebibytes", one as f64),
        ("memory of one", one_grew as f64),
        ("memory of many", grew as f64),
    ]);
    Ok(())
}

fn script(mebibytes: u64) -> String {
    format!("exec head -c {} /dev/zero", mebibytes << 20)
}

/// The fastest plain reader: a pipe as wide as ours, read in pieces of the same size.
fn through_a_pipe(mebibytes: u64) -> Outcome<()> {
    let mut child = Command::new("sh").args(["-c", &script(mebibytes)]).stdout(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdout.take() {
        let mut buffer = vec![0; 128 * 1024];
        while pipe.read(&mut buffer)? > 0 {}
    }
    child.wait()?;
    Ok(())
}

async fn through_the_sandbox(sandbox: &ProcessSandbox, mebibytes: u64) -> Outcome<()> {
    match sandbox.exec(ExecRequest::new(["sh", "-c", &script(mebibytes)])).await {
        Err(error) if error.kind() == ErrorKind::OutputLimit => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// The most memory this process ever used, in KiB.
fn peak() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}
