//! A command that writes without end, drained by our sandbox and by a plain pipe.

use anyhow::Result;

use super::{Report, Row, nanos, ours};

pub fn run() -> Result<Report> {
    let times = ours("flood")?;
    let mebibytes = |key| nanos(&times, key).map(|kibibytes| kibibytes / 1024.0);
    let rows = vec![Row {
        work: format!("{} MiB to standard output", nanos(&times, "mebibytes")?),
        ours: nanos(&times, "sandbox")?,
        peer: "a plain pipe",
        theirs: nanos(&times, "plain pipe")?,
    }];
    let ratio = rows.first().map_or(0.0, Row::ratio);
    let about = format!(
        "Output is drained in bounded memory, head and tail kept, with the clock watched: the best of 5 interleaved rounds. \
         The runtime grew by {:.0} MiB for one flood and by {:.0} MiB for 64 at once.",
        mebibytes("memory of one")?,
        mebibytes("memory of many")?
    );
    Ok(Report { about, rows, ratio })
}
