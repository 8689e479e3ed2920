//! A command that writes without end, drained by our sandbox and by a plain pipe.

use anyhow::Result;

use super::{Report, Row, nanos, ours};

pub fn run() -> Result<Report> {
    let times = ours("flood")?;
    let mebibytes = |key| nanos(&times, key).map(|kibibytes| kibibytes / 1024.0);
    let size = nanos(&times, "mebibytes")?;
    let row = |work: String, kind: &str| {
        anyhow::Ok(Row {
            work,
            ours: nanos(&times, &format!("sandbox{kind}"))?,
            peer: "a plain pipe",
            theirs: nanos(&times, &format!("plain pipe{kind}"))?,
        })
    };
    let rows = vec![
        row(format!("{size} MiB to standard output"), "")?,
        row("the same, processor time of both ends".to_owned(), " cpu")?,
    ];
    let ratio = rows.first().map_or(0.0, Row::ratio);
    let about = format!(
        "Output is drained in bounded memory, head and tail kept, with the clock watched: the best of 5 interleaved rounds. \
         The runtime grew by {:.0} MiB for one flood and by {:.0} MiB for 64 at once.",
        mebibytes("memory of one")?,
        mebibytes("memory of many")?
    );
    Ok(Report { about, rows, ratio })
}
