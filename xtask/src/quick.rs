//! `cargo xtask quick`: the loop of a contributor. Format, house rules, lints, and the unit tests, which need
//! no peers.

use std::time::Instant;

use anyhow::Result;

use crate::test::cargo;
use crate::{checks, tidy};

/// One step: its name, and what it does.
type Step = (&'static str, fn() -> Result<()>);

const STEPS: [Step; 4] = [
    ("format", checks::format),
    ("tidy", || tidy::run(false)),
    ("lints", checks::lints),
    ("unit tests", unit_tests),
];

/// Runs the steps in order, cheapest first, and stops at the first that fails.
pub fn run() -> Result<()> {
    let mut times = Vec::new();
    for (name, step) in STEPS {
        let start = Instant::now();
        step()?;
        times.push(format!("{name} {:.1} s", start.elapsed().as_secs_f64()));
    }
    eprintln!("ok: {}", times.join(", "));
    Ok(())
}

/// The tests inside the sources. Integration tests, which start programs, are for `cargo xtask test`.
pub fn unit_tests() -> Result<()> {
    let programs = ["--bin", "toolwright", "--bin", "xtask"];
    let args = ["nextest", "run", "--workspace", "--lib"];
    cargo(&[&args[..], &programs[..], &["--profile", "quick"]].concat())
}
