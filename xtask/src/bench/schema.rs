//! A tool's schema from its types, and arguments checked against it, against Inspect.

use anyhow::Result;

use super::{Report, Row, geometric_mean, nanos, ours, peer};

pub fn run() -> Result<Report> {
    let mine = ours("schema")?;
    let inspect = peer::run("inspect", &["inspect-ai==0.3.285"], &["inspect_schema.py"])?;
    let row = |work: &str, key: &str| -> Result<Row> {
        Ok(Row {
            work: work.to_owned(),
            ours: nanos(&mine, work)?,
            peer: "Inspect",
            theirs: nanos(&inspect, key)?,
        })
    };
    let rows = vec![
        row("make the schema", "parse_tool_info")?,
        row("validate and read the arguments", "validate and coerce")?,
    ];
    let about = "The schema of a tool with eight parameters, and one call's arguments; the ratio is the geometric mean.";
    Ok(Report { about: about.to_owned(), ratio: geometric_mean(&rows), rows })
}
