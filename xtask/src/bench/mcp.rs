//! `tools/call` over stdio: our server and fastmcp's, each driven by our client.

use std::process::Command;

use anyhow::{Context, Result};

use super::{Report, Row, nanos, peer};

const PACKAGES: &[&str] = &["mcp==2.3.0", "fastmcp==4.1.2"];

pub fn run() -> Result<Report> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--package", "toolwright-bench", "--bin", "mcp"]);
    let built = build.current_dir(crate::root()).status().context("cannot build our side")?;
    anyhow::ensure!(built.success(), "our side does not build");
    // Next to this program, where cargo puts what it builds.
    let here = std::env::current_exe()?;
    let target = here.parent().and_then(|folder| folder.parent()).context("no target folder")?;
    let driver = target.join("release/mcp");
    let python = peer::python("mcp", PACKAGES)?;
    let script = crate::root().join("xtask/peers/fastmcp_add.py");
    let ours = super::output(Command::new(&driver).args(["drive", "20000"]).arg(&driver).arg("serve"))?;
    let theirs = super::output(Command::new(&driver).args(["drive", "2000"]).arg(python).arg(script))?;
    let row = |work: &str, key: &str| -> Result<Row> {
        Ok(Row {
            work: work.to_owned(),
            ours: nanos(&ours, key)?,
            peer: "fastmcp 4.1",
            theirs: nanos(&theirs, key)?,
        })
    };
    let rows = vec![row("one call at a time", "alone")?, row("64 calls at a time", "together")?];
    let ratio = rows.iter().map(Row::ratio).fold(f64::MAX, f64::min);
    let about =
        "`tools/call` of a tool that adds two numbers, over the pipes of a server process.".to_owned();
    Ok(Report { about, rows, ratio })
}
