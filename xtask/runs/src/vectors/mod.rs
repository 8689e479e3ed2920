//! `cargo xtask vectors FAMILY FILE...`: runs observed input/output pairs through our code.
//!
//! One file per family holds the runner; adding a family means adding a file and one line in `FAMILIES`.

mod anthropic_tools;
mod expr;
mod observed;
mod providers;
mod stmt;
mod tagged;

use std::path::PathBuf;

use anyhow::{Result, bail};
pub use toolwright_testkit::vectors::Tally;

/// One family of vectors: its name on the command line, what it holds, and its runner.
type Family = (&'static str, &'static str, fn(&[PathBuf]) -> Result<Tally>);

const FAMILIES: &[Family] = &[
    ("expr", "Python expressions and scripts, from llm-workers", expr::run),
    ("stmt", "YAML tools and chat turns, from llm-workers", stmt::run),
    ("providers", "streams, schemas, retries and signatures, from the vendors' clients", providers::run),
    ("anthropic-tools", "prompted tool use, from anthropic-tools", anthropic_tools::run),
    ("inspect", "tools, calls and sandboxes, from inspect_ai", |files| observed::run("inspect", files)),
    ("marsys", "tools, calls and results, from marsys", |files| observed::run("marsys", files)),
];

/// What `cargo xtask vectors --help` prints.
fn help() -> String {
    let families: Vec<_> = FAMILIES.iter().map(|(name, about, _)| format!("  {name:<16} {about}")).collect();
    format!(
        "Runs observed input/output pairs through our code.

usage: cargo xtask vectors FAMILY FILE...

A FILE is a JSON list of records, or an object with the list under `vectors` or `records`.

families:
{}

Each failed record is printed with what was observed and what we did. The last line is
`N passed, N failed, N skipped`. The exit code is 0 when nothing failed.",
        families.join("\n")
    )
}

/// Runs one family and prints the closing line. An error when any record failed.
pub fn main(words: &[&str]) -> Result<()> {
    let (family, files) = match words {
        [] | ["help"] => {
            println!("{}", help());
            return Ok(());
        }
        words if words.iter().any(|word| ["--help", "-h"].contains(word)) => {
            println!("{}", help());
            return Ok(());
        }
        [family, files @ ..] => (*family, files.iter().map(PathBuf::from).collect::<Vec<_>>()),
    };
    let Some((_, _, runner)) = FAMILIES.iter().find(|(name, ..)| *name == family) else {
        let known: Vec<_> = FAMILIES.iter().map(|(name, ..)| *name).collect();
        bail!("unknown family `{family}`; known: {}", known.join(", "));
    };
    if files.is_empty() {
        bail!("no FILE was given; see `cargo xtask vectors --help`");
    }
    let tally = runner(&files)?;
    for failure in &tally.failures {
        println!("{failure}");
    }
    println!("{}", tally.closing_line());
    if tally.failures.is_empty() { Ok(()) } else { bail!("{} vectors failed", tally.failures.len()) }
}
