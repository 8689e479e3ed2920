//! Peers live in virtual environments under `target/peers`, made on first use.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The interpreter of an environment that has `requirement` installed, or `None` without a fitting Python.
pub fn environment(name: &str, requirement: &str) -> Result<Option<PathBuf>> {
    let Some(base) = python() else { return Ok(None) };
    let folder = target_folder().join("peers").join(name);
    let interpreter = folder.join("bin").join("python");
    let stamp = folder.join("requirement.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == requirement) {
        return Ok(Some(interpreter));
    }
    run(Command::new(&base).args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&interpreter).args(["-m", "pip", "install", "--quiet", requirement]))?;
    std::fs::write(&stamp, requirement).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(Some(interpreter))
}

/// A Python of version 3.12 or later.
pub fn python() -> Option<PathBuf> {
    let mut candidates: Vec<PathBuf> = vec!["python3.12".into(), "python3.13".into(), "python3".into()];
    if let Some(home) = std::env::var_os("HOME") {
        let versions = PathBuf::from(home).join(".pyenv").join("versions");
        let found = std::fs::read_dir(versions).into_iter().flatten().flatten().map(|entry| entry.path());
        candidates.extend(found.map(|path| path.join("bin").join("python3")));
    }
    candidates.into_iter().find(|candidate| {
        let check = "import sys; sys.exit(sys.version_info < (3, 12))";
        Command::new(candidate).args(["-c", check]).output().is_ok_and(|output| output.status.success())
    })
}

fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
