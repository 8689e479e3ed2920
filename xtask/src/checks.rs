//! `cargo xtask checks`: everything that must hold beside the tests.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::test::{cargo, check};
use crate::tidy;

/// The version of cargo-deny: a newer one may know new rules, and a check must not change by itself.
const DENY: &str = "0.20.2";

/// Format, house rules, lints, features, documentation, licences.
pub fn run() -> Result<()> {
    format()?;
    tidy::run(false)?;
    lints()?;
    features()?;
    doc()?;
    deny()
}

/// The program compiles as people build it, without what only tests ask of its dependencies, and so does each
/// feature of the crate that people depend on.
fn features() -> Result<()> {
    cargo(&["check", "--quiet", "--package", "toolwright-cli"])?;
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(crate::root());
    let told: serde_json::Value = serde_json::from_slice(&command.output()?.stdout)?;
    let packages = told["packages"].as_array().into_iter().flatten();
    let facade = packages.into_iter().find(|package| package["name"] == "toolwright");
    let features = facade.and_then(|facade| facade["features"].as_object()).context("no features")?;
    for feature in features.keys().filter(|name| *name != "default") {
        let package = ["check", "--quiet", "--package", "toolwright", "--no-default-features"];
        cargo(&[&package[..], &["--features", feature]].concat())?;
    }
    Ok(())
}

fn doc() -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    check(command.current_dir(crate::root()))
}

/// Licences, bans and sources. The list of advisories needs a network, so it is not asked here.
fn deny() -> Result<()> {
    let program = cargo_deny()?;
    let mut command = Command::new(program);
    command.args(["--log-level", "error", "check", "licenses", "bans", "sources"]);
    check(command.current_dir(crate::root()))
}

/// The pinned cargo-deny: the installed one if it has the version, else one under `target/tools`.
fn cargo_deny() -> Result<PathBuf> {
    let root = crate::root().join("target/tools");
    for program in [PathBuf::from("cargo-deny"), root.join("bin/cargo-deny")] {
        let version = Command::new(&program).arg("--version").output();
        if version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(DENY)) {
            return Ok(program);
        }
    }
    let place = root.display().to_string();
    cargo(&["install", "--locked", "--quiet", "cargo-deny", "--version", DENY, "--root", &place])?;
    Ok(root.join("bin/cargo-deny"))
}

pub fn format() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])
}

pub fn lints() -> Result<()> {
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
}
