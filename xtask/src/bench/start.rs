//! From the command to its first output: the whole life of a program that has little to do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::{Report, Row, peer};

/// The largest the program may be, in bytes.
const LARGEST: u64 = 40 << 20;

pub fn run() -> Result<Report> {
    // A program that is installed or packaged already can be measured as it is.
    let program = match std::env::var_os("TOOLWRIGHT_PROGRAM") {
        Some(program) => PathBuf::from(program),
        None => build()?,
    };
    let size = std::fs::metadata(&program)?.len();
    ensure!(size < LARGEST, "the program has {size} bytes, and {LARGEST} are allowed");
    let inspect = peer::python("inspect", &["inspect-ai==0.3.285"])?;
    let workers = peer::python("llm-workers-tools", &["llm-workers-tools==1.1.4"])?;
    // Their `1 + 1` needs a script and a file that names models; both stand in a folder of their own.
    let folder = crate::root().join("target/peers/start");
    std::fs::create_dir_all(folder.join(".config/llm-workers"))?;
    std::fs::write(folder.join(".config/llm-workers/config.yaml"), "models: []\n")?;
    let script = folder.join("one.yaml");
    std::fs::write(&script, "cli: {process_input: one_by_one, do: {eval: '${1+1}'}}\n")?;
    let beside = |python: &Path, name: &str| python.with_file_name(name);
    let version = best(Command::new(&program).arg("--version"), 30)?;
    let eval = best(Command::new(&program).args(["eval", "${1+1}"]), 30)?;
    let their_version = best(Command::new(beside(&inspect, "inspect")).arg("--version"), 3)?;
    let mut their_eval = Command::new(beside(&workers, "llm-workers-cli"));
    their_eval.arg(&script).arg("x").env("HOME", &folder).current_dir(&folder);
    let their_eval = best(&mut their_eval, 3)?;
    let row = |work: &str, ours, peer, theirs| Row { work: work.to_owned(), ours, peer, theirs };
    let rows = vec![
        row("`--version`", version, "inspect --version", their_version),
        row("one expression, `1 + 1`", eval, "llm-workers-cli", their_eval),
    ];
    let ratio = rows.iter().map(Row::ratio).fold(f64::MAX, f64::min);
    let about = format!(
        "Starting the program, doing one small thing, and ending; the best of several. The program has {:.1} MB.",
        size as f64 / 1e6
    );
    Ok(Report { about, rows, ratio })
}

/// Builds the program for release; where it is.
fn build() -> Result<PathBuf> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--package", "toolwright-cli"]);
    ensure!(build.current_dir(crate::root()).status()?.success(), "our side does not build");
    let here = std::env::current_exe()?;
    let target = here.parent().and_then(Path::parent).context("no target folder")?;
    Ok(target.join("release/toolwright"))
}

/// The shortest of several runs, in nanoseconds; the first only warms up.
fn best(command: &mut Command, rounds: usize) -> Result<f64> {
    let mut best = f64::MAX;
    for round in 0..=rounds {
        let start = Instant::now();
        let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
        let took = start.elapsed().as_nanos() as f64;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{command:?} failed: {said}");
        if round > 0 {
            best = best.min(took);
        }
    }
    Ok(best)
}
