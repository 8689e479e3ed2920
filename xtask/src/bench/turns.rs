//! Turns of a model with one tool call each, over HTTP on the loopback, against Inspect and pydantic-ai.

use std::io::BufRead as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Report, Row, nanos, output, peer};

/// The turns of one conversation; ten of them are measured.
const TURNS: &str = "100";

pub fn run() -> Result<Report> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--package", "toolwright-bench", "--bin", "loop"]);
    peer::check(build.current_dir(crate::root()))?;
    let server = Server::start()?;
    let mine = output(Command::new(program()).args(["run", &server.url]))?;
    let inspect = ["inspect-ai==0.3.285", "openai==3.49.0"];
    let inspect = peer::run("inspect-openai", &inspect, &["inspect_loop.py", &server.url])?;
    let pydantic = peer::run(
        "pydantic-ai",
        &["pydantic-ai-slim[openai]==2.66.0"],
        &["pydantic_ai_loop.py", &server.url],
    )?;
    let ours = nanos(&mine, "turn")?;
    let row = |peer, theirs| Row { work: "one turn".to_owned(), ours, peer, theirs };
    let rows = vec![
        row("Inspect generate_loop", nanos(&inspect, "turn")?),
        row("pydantic-ai Agent.run", nanos(&pydantic, "turn")?),
    ];
    let ratio = rows.iter().map(Row::ratio).fold(f64::INFINITY, f64::min);
    let about = format!(
        "Ten conversations of {TURNS} turns, each with one tool call, through the same HTTP server on the loopback; every request \
         holds the whole conversation so far. The smaller ratio counts."
    );
    Ok(Report { about, rows, ratio })
}

/// The server, which stops with this value.
struct Server {
    process: std::process::Child,
    url: String,
}

impl Server {
    fn start() -> Result<Self> {
        let mut process = Command::new(program()).args(["serve", TURNS]).stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        std::io::BufReader::new(process.stdout.take().context("no stdout")?).read_line(&mut url)?;
        Ok(Server { process, url: url.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> std::path::PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target.map_or_else(|| crate::root().join("target"), Into::into).join("release/loop")
}
