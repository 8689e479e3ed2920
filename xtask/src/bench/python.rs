//! A Python function as a tool, sandboxed, against fastmcp's client and server.

use anyhow::Result;

use super::{Report, Row, nanos, ours, peer};

pub fn run() -> Result<Report> {
    let mine = ours("python")?;
    let fastmcp = peer::run("mcp", &["mcp==2.3.0", "fastmcp==4.1.2"], &["fastmcp_client.py"])?;
    let row = |work: &str, key: &str| -> Result<Row> {
        Ok(Row {
            work: work.to_owned(),
            ours: nanos(&mine, key)?,
            peer: "fastmcp 4.1",
            theirs: nanos(&fastmcp, key)?,
        })
    };
    let rows = vec![row("one call", "call")?, row("start, until the first call has ended", "start")?];
    let ratio = rows.first().map(Row::ratio).unwrap_or_default();
    let about = "A function of Python that adds two numbers. Ours runs in its sandboxed worker, with validation, an approval \
        rule, limits and an event listener; the peer is its own client and its server over stdio, without a \
        sandbox. Medians; the ratio is that of the calls.";
    Ok(Report { about: about.to_owned(), rows, ratio })
}
