//! `cargo xtask bench NAME`: our code and the peer's, side by side in one run, and the ratio of their times.
//!
//! One file per benchmark; adding one means adding a file and a line in `BENCHES`.

mod call;
mod documents;
mod expr;
mod flood;
mod flow;
mod mcp;
pub mod peer;
mod python;
mod schema;
mod spawn;
mod start;
mod turns;

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

type Bench = (&'static str, fn() -> Result<Report>);

const BENCHES: &[Bench] = &[
    ("call", call::run),
    ("schema", schema::run),
    ("expr", expr::evaluate),
    ("load", expr::load),
    ("flow", flow::flow),
    ("each", flow::each),
    ("spawn", spawn::run),
    ("flood", flood::run),
    ("start", start::run),
    ("mcp", mcp::run),
    ("loop", turns::run),
    ("documents", documents::run),
    ("python", python::run),
];

/// What a benchmark found.
pub struct Report {
    /// What was measured, in one sentence.
    pub about: String,
    pub rows: Vec<Row>,
    /// The peer's time divided by ours, for the row or rows that count.
    pub ratio: f64,
}

/// One line of the table: times in nanoseconds.
pub struct Row {
    pub work: String,
    pub ours: f64,
    pub peer: &'static str,
    pub theirs: f64,
}

impl Row {
    pub fn ratio(&self) -> f64 {
        self.theirs / self.ours
    }
}

/// The geometric mean of the rows' ratios.
fn geometric_mean(rows: &[Row]) -> f64 {
    (rows.iter().map(|row| row.ratio().ln()).sum::<f64>() / rows.len() as f64).exp()
}

/// Runs one benchmark, or all of them into `docs/benchmarks.md`.
pub fn run(name: &str) -> Result<()> {
    if name == "all" {
        return run_all();
    }
    let Some((_, bench)) = BENCHES.iter().find(|(known, _)| *known == name) else {
        let known: Vec<_> = BENCHES.iter().map(|(name, _)| *name).collect();
        bail!("unknown benchmark `{name}`; known: all, {}", known.join(", "));
    };
    let report = bench()?;
    println!("{}\n{}", report.about, table(&report));
    println!("ratio: {:.1}", report.ratio);
    Ok(())
}

fn run_all() -> Result<()> {
    let mut page =
        "# Benchmarks\n\nWritten by `cargo xtask bench all`: both sides run on the same machine in the same \
        run, and the best of several rounds counts. The ratio is the peer's time divided by ours.\n"
            .to_owned();
    for (name, bench) in BENCHES {
        eprintln!("bench {name}");
        let report = bench()?;
        println!("{name}: ratio {:.1}", report.ratio);
        write!(page, "\n## {name}\n\n{}\n\n{}\nratio: {:.1}\n", report.about, table(&report), report.ratio)?;
    }
    std::fs::write(crate::root().join("docs/benchmarks.md"), page)?;
    println!("wrote docs/benchmarks.md");
    Ok(())
}

fn table(report: &Report) -> String {
    let mut out = "| work | ours | peer | theirs | ratio |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for row in &report.rows {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {:.1} |",
            row.work,
            time(row.ours),
            row.peer,
            time(row.theirs),
            row.ratio()
        );
    }
    out
}

fn time(nanos: f64) -> String {
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.2} µs", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

/// Runs our side of a benchmark, built for release, and reads its JSON.
fn ours(name: &str) -> Result<Value> {
    output(&mut our_command(name))
}

/// The same, with a folder to work on.
fn ours_in(name: &str, folder: &std::path::Path) -> Result<Value> {
    output(our_command(name).arg("--").arg(folder))
}

fn our_command(name: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--release", "--package", "toolwright-bench", "--bin", name]);
    cargo.current_dir(crate::root());
    cargo
}

fn output(command: &mut Command) -> Result<Value> {
    let output =
        command.stderr(std::process::Stdio::inherit()).output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.trim().lines().last().unwrap_or_default();
    serde_json::from_str(last).with_context(|| format!("{command:?} printed {last:?}"))
}

fn nanos(value: &Value, key: &str) -> Result<f64> {
    value.get(key).and_then(Value::as_f64).with_context(|| format!("no `{key}` in {value}"))
}
