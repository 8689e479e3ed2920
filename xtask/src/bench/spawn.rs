//! What it costs to run `/bin/true`: plainly, in our sandbox, in a new sandbox each time, and under bubblewrap.
//!
//! The four are interleaved, so that a busy machine slows all of them alike, and compared by their medians.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use toolwright_core::{ExecRequest, Sandbox};
use toolwright_sandbox::{Policy, ProcessSandbox};

const ROUNDS: usize = 200;

/// A name, the times taken so far, and the work.
type Contender<'a> = (&'static str, Vec<Duration>, Box<dyn FnMut() -> Result<()> + 'a>);

/// Prints the table and returns bubblewrap's time divided by ours.
pub(crate) fn run() -> Result<f64> {
    ensure_bwrap()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let open =
        || runtime.block_on(ProcessSandbox::open(Policy::private())).context("the sandbox does not open");
    let sandbox = open()?;
    let sandboxed = |sandbox: &ProcessSandbox| -> Result<()> {
        let result = runtime.block_on(sandbox.exec(ExecRequest::new(["/bin/true"])))?;
        if result.success() { Ok(()) } else { bail!("/bin/true failed in the sandbox") }
    };
    let mut work: [Contender<'_>; 4] = [
        ("plain fork and exec", Vec::new(), Box::new(|| command("/bin/true", &[]))),
        ("our sandbox, open", Vec::new(), Box::new(|| sandboxed(&sandbox))),
        ("our sandbox, opened for it", Vec::new(), Box::new(|| sandboxed(&open()?))),
        ("bwrap --unshare-all", Vec::new(), Box::new(|| command("bwrap", &BWRAP))),
    ];
    for round in 0..ROUNDS + 10 {
        for (_, times, job) in &mut work {
            let start = Instant::now();
            job()?;
            // The first rounds warm the caches.
            if round >= 10 {
                times.push(start.elapsed());
            }
        }
    }
    println!("{:<28} {:>9} {:>9}", "start of /bin/true", "p50 ms", "p95 ms");
    let mut medians = Vec::new();
    for (name, times, _) in &mut work {
        times.sort_unstable();
        let at = |share: f64| {
            times.get((times.len() as f64 * share) as usize).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        println!("{name:<28} {:>9.2} {:>9.2}", at(0.5), at(0.95));
        medians.push(at(0.5));
    }
    let [plain, warm, cold, bwrap] = medians.as_slice() else { bail!("four measurements") };
    let layers: Vec<&str> = sandbox.layers().iter().map(|layer| layer.as_str()).collect();
    println!("layers on: {}", layers.join(", "));
    println!(
        "over plain: {:.2} ms; bwrap / ours: {:.2} (opened for each: {:.2})",
        warm - plain,
        bwrap / warm,
        bwrap / cold
    );
    Ok(bwrap / warm)
}

const BWRAP: [&str; 7] = ["--unshare-all", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "/bin/true"];

fn command(program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().with_context(|| format!("cannot run `{program}`"))?;
    if output.status.success() {
        Ok(())
    } else {
        bail!("`{program}` failed: {}", String::from_utf8_lossy(&output.stderr))
    }
}

fn ensure_bwrap() -> Result<()> {
    if Command::new("bwrap")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        return Ok(());
    }
    let status = Command::new("apt-get").args(["install", "-y", "bubblewrap"]).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => bail!("bubblewrap is missing and could not be installed; try `apt-get install bubblewrap`"),
    }
}
