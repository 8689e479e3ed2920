//! Sandboxed `/bin/true` beside bubblewrap and plain fork and exec.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::{Report, Row, nanos, ours};

pub fn run() -> Result<Report> {
    ensure_bwrap()?;
    let times = ours("spawn")?;
    let warm = nanos(&times, "sandbox, open")?;
    let cold = nanos(&times, "sandbox, opened for it")?;
    let (plain, bwrap) = (nanos(&times, "plain fork and exec")?, nanos(&times, "bwrap --unshare-all")?);
    let row = |work: &str, ours, peer, theirs| Row { work: work.to_owned(), ours, peer, theirs };
    let rows = vec![
        row("in a sandbox that is open", warm, "bwrap --unshare-all", bwrap),
        row("in a sandbox opened for it", cold, "bwrap --unshare-all", bwrap),
        row("what the sandbox costs", warm, "plain fork and exec", plain),
    ];
    // The smaller of the two that have a peer of their kind.
    let ratio = rows.iter().take(2).map(Row::ratio).fold(f64::INFINITY, f64::min);
    let about = "One `/bin/true` with all layers on: medians of 200 interleaved rounds. The ratio is that of the slower of the \
        first two rows. A program that opens one private sandbox after another finds the next one prepared.";
    Ok(Report { about: about.to_owned(), rows, ratio })
}

fn ensure_bwrap() -> Result<()> {
    let there = Command::new("bwrap").arg("--version").stdout(Stdio::null()).status();
    if there.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let installed =
        Command::new("apt-get").args(["install", "-y", "bubblewrap"]).stdout(Stdio::null()).status();
    if installed.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    bail!("bubblewrap is missing and could not be installed; try `apt-get install bubblewrap`")
}
