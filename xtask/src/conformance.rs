//! `cargo xtask conformance`: MCP's own conformance suite against our example server and our client.
//!
//! The suite and the Node it needs are installed under `target/peers/conformance`. What is known to fail, and
//! why, stands in `conformance/mcp/expected-failures.yaml`; a listed scenario that passes is as much news as
//! an unlisted one that fails.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::npm;

const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Scenarios that are on no revision's list: extensions.
const SERVER_EXTENSIONS: [&str; 10] = [
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
];

/// The same for clients, and what only an older revision asks for.
const CLIENT_EXTRAS: [(&str, &str); 4] = [
    ("auth/client-credentials-jwt", "2026-07-28"),
    ("auth/client-credentials-basic", "2026-07-28"),
    ("auth/2025-03-26-oauth-metadata-backcompat", "2025-03-26"),
    ("auth/2025-03-26-oauth-endpoint-fallback", "2025-03-26"),
];

pub fn run() -> Result<()> {
    let home = npm::install("conformance", &[SUITE])?;
    let suite = Suite {
        node: npm::node(&home),
        script: home.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"),
        expected: expected()?,
    };
    let examples = build()?;
    let mut score = Score::default();
    let server = Server::start(&examples.join("everything"))?;
    for revision in REVISIONS {
        let args = ["--suite", "all", "--spec-version", revision];
        suite.run_list(&mut score, "server", revision, &["server", "--url", &server.url], &args)?;
    }
    for scenario in SERVER_EXTENSIONS {
        suite.run_one(&mut score, "server", &["server", "--url", &server.url], scenario, "2026-07-28")?;
    }
    drop(server);
    let client = examples.join("conformance_client");
    let client = client.to_str().context("the path of the example is not text")?;
    for revision in REVISIONS {
        let args = ["--suite", "all", "--spec-version", revision];
        suite.run_list(&mut score, "client", revision, &["client", "--command", client], &args)?;
    }
    for (scenario, revision) in CLIENT_EXTRAS {
        suite.run_one(&mut score, "client", &["client", "--command", client], scenario, revision)?;
    }
    score.close(&suite.expected)
}

/// Builds the examples the suite is pointed at, and says where they are.
fn build() -> Result<PathBuf> {
    let args = ["build", "--quiet", "-p", "toolwright-mcp", "--examples"];
    let status = Command::new(env!("CARGO")).args(args).current_dir(crate::root()).status()?;
    if !status.success() {
        bail!("the examples could not be built");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from);
    Ok(target.join("debug/examples"))
}

/// The scenarios that may fail, each with its reason: lines of `name: reason`.
fn expected() -> Result<BTreeMap<String, String>> {
    let path = crate::root().join("conformance/mcp/expected-failures.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, reason) = line.split_once(": ").with_context(|| format!("no reason: {line}"))?;
            Ok((name.trim_start_matches("- ").to_owned(), reason.to_owned()))
        })
        .collect()
}

struct Suite {
    node: PathBuf,
    script: PathBuf,
    expected: BTreeMap<String, String>,
}

#[derive(Default)]
struct Score {
    passed: Vec<String>,
    failed: Vec<String>,
    skipped: usize,
}

impl Suite {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script).args(args).current_dir(crate::root().join("target/peers/conformance"));
        command
    }

    /// Runs a list of scenarios, and reads the summary at the end.
    fn run_list(
        &self,
        score: &mut Score,
        side: &str,
        revision: &str,
        on: &[&str],
        args: &[&str],
    ) -> Result<()> {
        let output = self.command(&[on, args].concat()).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let Some((_, summary)) = text.rsplit_once("SUMMARY ===") else {
            bail!("the suite gave no summary:\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
        };
        let mut seen = 0;
        for line in summary.lines().map(plain) {
            let Some((mark, rest)) = line.split_once(' ') else { continue };
            let Some((scenario, counts)) = rest.split_once(": ") else { continue };
            let name = format!("{side} {revision} {scenario}");
            match mark {
                // Nothing was looked at, so nothing was shown.
                "✓" if counts.starts_with("0 passed") => {
                    println!("{name}: {counts}");
                    score.failed.push(name);
                }
                "✓" => score.passed.push(name),
                "✗" => {
                    println!("{name}: {counts}");
                    score.failed.push(name);
                }
                _ => continue,
            }
            seen += 1;
        }
        println!("{side} {revision}: {seen} scenarios");
        if seen == 0 {
            bail!("the suite ran nothing:\n{summary}");
        }
        Ok(())
    }

    /// Runs one scenario, whatever revision it belongs to.
    fn run_one(
        &self,
        score: &mut Score,
        side: &str,
        on: &[&str],
        scenario: &str,
        revision: &str,
    ) -> Result<()> {
        let args = ["--scenario", scenario, "--spec-version", revision, "--force"];
        let output = self.command(&[on, &args].concat()).output()?;
        let text = plain(String::from_utf8_lossy(&output.stdout));
        let name = format!("{side} extension {scenario}");
        let closing = text.lines().rev().find(|line| line.starts_with("Passed: ")).unwrap_or("no result");
        match (output.status.success(), closing.starts_with("Passed: 0/0")) {
            (true, true) => score.skipped += 1,
            (true, false) => score.passed.push(name),
            (false, _) => {
                println!("{name}: {closing}");
                score.failed.push(name);
            }
        }
        Ok(())
    }
}

impl Score {
    fn close(self, expected: &BTreeMap<String, String>) -> Result<()> {
        let news: Vec<&String> = self.failed.iter().filter(|name| !expected.contains_key(*name)).collect();
        let fixed: Vec<&String> = self.passed.iter().filter(|name| expected.contains_key(*name)).collect();
        for name in &fixed {
            println!("{name}: passes, though it is listed in conformance/mcp/expected-failures.yaml");
        }
        println!("{} passed, {} failed, {} skipped", self.passed.len(), self.failed.len(), self.skipped);
        if news.is_empty() && fixed.is_empty() {
            return Ok(());
        }
        bail!("{} scenarios failed unexpectedly, {} passed unexpectedly", news.len(), fixed.len());
    }
}

/// A text without the codes for colours.
fn plain(text: impl AsRef<str>) -> String {
    let mut pieces = text.as_ref().split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or(piece, |(_, rest)| rest))
}

/// Our server, for as long as the scenarios need it.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(program: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["--http", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| program.display().to_string())?;
        let out = child.stdout.take().context("the server has no output")?;
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url)?;
        Ok(Server { child, url: url.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
