//! `cargo xtask vectors FAMILY FILE...`: runs observed input/output pairs through our code.
//!
//! One file per family holds the runner; adding a family means adding a file and one line in `FAMILIES`.

mod anthropic_tools;
mod expr;
mod providers;
mod stmt;
mod tagged;

use std::path::PathBuf;

use anyhow::{Result, bail};
pub use toolwright_testkit::vectors::Tally;

/// One family of vectors: its name on the command line and its runner.
type Family = (&'static str, fn(&[PathBuf]) -> Result<Tally>);

const FAMILIES: &[Family] = &[
    ("expr", expr::run),
    ("stmt", stmt::run),
    ("providers", providers::run),
    ("anthropic-tools", anthropic_tools::run),
];

/// Runs one family and prints the closing line. An error when any record failed.
pub fn run(family: &str, files: &[PathBuf]) -> Result<()> {
    let Some((_, runner)) = FAMILIES.iter().find(|(name, _)| *name == family) else {
        let known: Vec<_> = FAMILIES.iter().map(|(name, _)| *name).collect();
        bail!("unknown family `{family}`; known: {}", known.join(", "));
    };
    let tally = runner(files)?;
    for failure in &tally.failures {
        println!("{failure}");
    }
    println!("{}", tally.closing_line());
    if tally.failures.is_empty() { Ok(()) } else { bail!("{} vectors failed", tally.failures.len()) }
}
