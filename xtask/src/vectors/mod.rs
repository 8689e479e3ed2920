//! `cargo xtask vectors FAMILY FILE...`: runs observed input/output pairs through our code.
//!
//! One file per family holds the runner; adding a family means adding a file and one line in `FAMILIES`.

mod expr;
mod tagged;

use std::path::PathBuf;

use anyhow::{Result, bail};

/// One family of vectors: its name on the command line and its runner.
type Family = (&'static str, fn(&[PathBuf]) -> Result<Tally>);

const FAMILIES: &[Family] = &[("expr", expr::run)];

/// What a run of vectors came to. `notes` are printed before the closing line.
#[derive(Debug, Default)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Tally {
    pub fn pass(&mut self) {
        self.passed += 1;
    }

    pub fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Counts a failure and says which record it was, what was wanted and what came.
    pub fn fail(&mut self, id: &str, wanted: impl std::fmt::Display, got: impl std::fmt::Display) {
        self.failed += 1;
        println!("FAILED {id}\n  wanted: {wanted}\n  got:    {got}");
    }
}

/// Runs one family and prints the closing line. An error when any record failed.
pub fn run(family: &str, files: &[PathBuf]) -> Result<()> {
    let Some((_, runner)) = FAMILIES.iter().find(|(name, _)| *name == family) else {
        let known: Vec<_> = FAMILIES.iter().map(|(name, _)| *name).collect();
        bail!("unknown family `{family}`; known: {}", known.join(", "));
    };
    let tally = runner(files)?;
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    if tally.failed > 0 { bail!("{} vectors failed", tally.failed) } else { Ok(()) }
}
