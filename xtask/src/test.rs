//! `cargo xtask test`: everything the tests need, then all tests; `cargo xtask checks`: everything else that must hold.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs every test of the workspace. Further arguments go to the test runner.
pub fn run(rest: &[&str]) -> Result<()> {
    // Documentation examples first: the last line printed is then that of the test runner.
    if rest.is_empty() {
        cargo(&["test", "--workspace", "--doc", "--quiet"])?;
    }
    let nextest = Command::new(env!("CARGO")).args(["nextest", "--version"]).output();
    if nextest.is_ok_and(|output| output.status.success()) {
        cargo(&[&["nextest", "run", "--workspace", "--no-fail-fast"], rest].concat())
    } else {
        cargo(&[&["test", "--workspace", "--all-targets", "--no-fail-fast"], rest].concat())
    }
}

/// Format, lints, documentation, licences.
pub fn checks() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    doc()?;
    deny()
}

fn doc() -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    check(command.current_dir(crate::root()))
}

/// Licences, bans and sources. The list of advisories needs a network, so it is not asked here.
fn deny() -> Result<()> {
    let found =
        Command::new("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        cargo(&["install", "--locked", "--quiet", "cargo-deny"])?;
    }
    cargo(&["deny", "--log-level", "error", "check", "licenses", "bans", "sources"])
}

fn cargo(args: &[&str]) -> Result<()> {
    check(Command::new(env!("CARGO")).args(args).current_dir(crate::root()))
}

fn check(command: &mut Command) -> Result<()> {
    eprintln!("$ {command:?}");
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}
