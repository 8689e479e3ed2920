//! `tools/call` over stdio and HTTP: our server, rmcp alone and fastmcp, each driven by the same client.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Report, Row, geometric_mean, nanos, peer, time};

const PACKAGES: &[&str] = &["mcp==2.3.0", "fastmcp==4.1.2"];

/// Who is measured, and what starts its server.
struct Side {
    name: &'static str,
    command: Vec<PathBuf>,
    /// Calls in one round.
    calls: usize,
}

pub fn run() -> Result<Report> {
    let driver = built(&["--package", "toolwright-bench", "--bin", "mcp"], "mcp")?;
    let python = peer::python("mcp", PACKAGES)?;
    let script = crate::root().join("xtask/peers/fastmcp_add.py");
    let sides = [
        Side { name: "toolwright", command: vec![driver.clone(), "serve".into()], calls: 20_000 },
        Side { name: "rmcp 3.8", command: vec![rmcp()?], calls: 20_000 },
        Side { name: "fastmcp 4.1", command: vec![python, script], calls: 2000 },
    ];
    let mut about = "`tools/call` of a tool that adds two numbers, in sessions of revision 2025-11-25, driven by one \
        plain client: over stdio on one pipe, over HTTP with a connection and a session for each client. Calls per \
        second, and the 99th of 100 calls:\n\n| server | transport | clients | calls per second | p99 |\n\
        | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let (mut against_rmcp, mut against_fastmcp) = (Vec::new(), Vec::new());
    for transport in ["stdio", "http"] {
        let measured: Vec<Value> =
            sides.iter().map(|side| side.drive(&driver, transport)).collect::<Result<_>>()?;
        for (clients, key) in [("1", "one"), ("64", "many")] {
            for (side, measured) in sides.iter().zip(&measured) {
                let (each, p99) = (nanos(measured, key)?, nanos(measured, &format!("{key}_p99"))?);
                let rate = 1e9 / each;
                writeln!(about, "| {} | {transport} | {clients} | {rate:.0} | {} |", side.name, time(p99))?;
            }
            let [ours, rmcp, fastmcp] = measured.as_slice() else { continue };
            let row = |peer: &'static str, theirs: &Value| -> Result<Row> {
                let work = format!("{transport}, clients: {clients}");
                Ok(Row { work, ours: nanos(ours, key)?, peer, theirs: nanos(theirs, key)? })
            };
            against_rmcp.push(row("rmcp 3.8", rmcp)?);
            against_fastmcp.push(row("fastmcp 4.1", fastmcp)?);
        }
    }
    let (resident, own) = idle_memory()?;
    write!(
        about,
        "\nAn idle `toolwright serve` has {resident:.1} MB resident: {own:.1} MB of its own, the rest pages of the program's \
        file. The ratio below is the geometric mean of those against fastmcp; that of those against rmcp is {:.1}.\n",
        geometric_mean(&against_rmcp)
    )?;
    let ratio = geometric_mean(&against_fastmcp);
    against_rmcp.extend(against_fastmcp);
    Ok(Report { about, rows: against_rmcp, ratio })
}

impl Side {
    fn drive(&self, driver: &Path, transport: &str) -> Result<Value> {
        let mut command = Command::new(driver);
        command.args(["drive", transport, &self.calls.to_string()]).args(&self.command);
        if transport == "http" {
            command.arg("http");
        }
        super::output(&mut command)
    }
}

/// Builds a program of ours for release, and says where it is: next to this program, where cargo puts what it
/// builds.
fn built(what: &[&str], name: &str) -> Result<PathBuf> {
    peer::check(
        Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release"])
            .args(what)
            .current_dir(crate::root()),
    )?;
    let here = std::env::current_exe()?;
    let target = here.parent().and_then(Path::parent).context("no target folder")?;
    Ok(target.join("release").join(name))
}

/// The server written with rmcp: a workspace of its own, so that the product is never built with it.
fn rmcp() -> Result<PathBuf> {
    let target = crate::root().join("target/peers/rmcp");
    let manifest = crate::root().join("bench/rmcp/Cargo.toml");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]).arg(manifest);
    peer::check(build.arg("--target-dir").arg(&target))?;
    Ok(target.join("release/rmcp-peer"))
}

/// The memory of a `toolwright serve` that has answered its first client and waits, in megabytes: all that is
/// resident, and what is its own.
fn idle_memory() -> Result<(f64, f64)> {
    use std::io::{BufRead as _, Write as _};
    let program = built(&["--package", "toolwright-cli"], "toolwright")?;
    let mut server =
        Command::new(program).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut to = server.stdin.take().context("no pipe")?;
    let mut from = std::io::BufReader::new(server.stdout.take().context("no pipe")?);
    let params =
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}"#;
    writeln!(to, r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#)?;
    writeln!(to, r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list"}}"#)?;
    for _ in 0..2 {
        from.read_line(&mut String::new())?;
    }
    // It gives back what only starting needed, two seconds after it began.
    std::thread::sleep(std::time::Duration::from_secs(4));
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()));
    drop(to);
    server.wait()?;
    let status = status.context("the memory of a process is read from /proc")?;
    let megabytes = |key: &str| -> Result<f64> {
        let line =
            status.lines().find_map(|line| line.strip_prefix(key)).with_context(|| format!("no {key}"))?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024.0 / 1e6)
    };
    Ok((megabytes("VmRSS:")?, megabytes("RssAnon:")?))
}
