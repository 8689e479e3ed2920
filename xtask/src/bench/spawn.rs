//! Sandboxed `/bin/true` beside bubblewrap and plain fork and exec.

use anyhow::Result;

use super::{Report, Row, nanos, ours};
use crate::programs;

pub fn run() -> Result<Report> {
    if !programs::has("bwrap") {
        programs::install(&["bubblewrap"])?;
    }
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
