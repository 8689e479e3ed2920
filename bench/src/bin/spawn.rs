//! What it costs to run `/bin/true`: plainly, in our sandbox, in a new sandbox each time, and under
//! bubblewrap.
//!
//! The four are interleaved, so that a busy machine slows all of them alike, and compared by their medians.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use toolwright_core::{ExecRequest, Sandbox as _};
use toolwright_sandbox::{ProcessSandbox, SandboxPolicy, launcher};

const ROUNDS: usize = 200;

/// The first rounds warm the caches.
const WARM_UP: usize = 10;

const BWRAP: [&str; 7] = ["--unshare-all", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "/bin/true"];

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A name, the times taken so far, and the work.
type Contender<'a> = (&'static str, Vec<Duration>, Box<dyn FnMut() -> Outcome + 'a>);

fn main() -> Outcome {
    launcher::main_if_launcher();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let open = || runtime.block_on(ProcessSandbox::open(SandboxPolicy::private()));
    let sandbox = open()?;
    let sandboxed = |sandbox: &ProcessSandbox| -> Outcome {
        let result = runtime.block_on(sandbox.exec(ExecRequest::new(["/bin/true"])))?;
        if result.success() { Ok(()) } else { Err("/bin/true failed in the sandbox".into()) }
    };
    let mut work: [Contender<'_>; 4] = [
        ("plain fork and exec", Vec::new(), Box::new(|| command("/bin/true", &[]))),
        ("sandbox, open", Vec::new(), Box::new(|| sandboxed(&sandbox))),
        ("sandbox, opened for it", Vec::new(), Box::new(|| sandboxed(&open()?))),
        ("bwrap --unshare-all", Vec::new(), Box::new(|| command("bwrap", &BWRAP))),
    ];
    for round in 0..ROUNDS + WARM_UP {
        for (_, times, job) in &mut work {
            let start = Instant::now();
            job()?;
            if round >= WARM_UP {
                times.push(start.elapsed());
            }
        }
    }
    let medians = work.iter_mut().map(|(name, times, _)| {
        times.sort_unstable();
        (*name, times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e9))
    });
    toolwright_bench::report(&medians.collect::<Vec<_>>());
    Ok(())
}

fn command(program: &str, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output()?;
    if output.status.success() { Ok(()) } else { Err(format!("`{program}` failed").into()) }
}
