//! One in-process tool call through the whole path, against Inspect and MARSYS.

use anyhow::Result;

use super::{Report, Row, nanos, ours, peer};

pub fn run() -> Result<Report> {
    let mine = ours("call")?;
    let inspect = peer::run("inspect", &["inspect-ai==0.3.285"], &["inspect_call.py"])?;
    let marsys = peer::run("marsys", &["marsys==0.2.1"], &["marsys_call.py"])?;
    let whole = nanos(&mine, "whole path")?;
    let bare = nanos(&mine, "no policy, limits or listener")?;
    let row = |work: &str, ours, peer, theirs| Row { work: work.to_owned(), ours, peer, theirs };
    let rows = vec![
        row(
            "validation, approval rule, limits, events",
            whole,
            "Inspect execute_tools",
            nanos(&inspect, "execute_tools")?,
        ),
        row(
            "the same, against a peer that validates nothing",
            whole,
            "MARSYS executor",
            nanos(&marsys, "executor")?,
        ),
        row("no policy, limits or listener", bare, "MARSYS executor", nanos(&marsys, "executor")?),
    ];
    let ratio = rows.first().map_or(0.0, Row::ratio);
    Ok(Report { about: "One call of a tool that adds two numbers, in process.".to_owned(), rows, ratio })
}
