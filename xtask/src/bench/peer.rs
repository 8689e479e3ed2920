//! Python peers: found, installed into a virtual environment under `target/`, run.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Runs a peer's script (its name, then its arguments) with the given packages installed, and reads its JSON.
pub fn run(environment: &str, packages: &[&str], script: &[&str]) -> Result<Value> {
    let python = python(environment, packages)?;
    let mut command = Command::new(python);
    command.current_dir(crate::root().join("xtask/peers")).args(script);
    super::output(&mut command)
}

/// The Python of a virtual environment that has the packages; made on first use.
pub fn python(environment: &str, packages: &[&str]) -> Result<PathBuf> {
    let home = crate::root().join("target/peers").join(environment);
    let python = home.join("bin/python");
    let stamp = home.join("installed");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    eprintln!("installing {} into target/peers/{environment}", packages.join(", "));
    let base = find_python().context("no Python 3.12 or newer was found; the peers need one")?;
    check(Command::new(base).args(["-m", "venv", "--clear"]).arg(&home))?;
    check(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--no-cache-dir"]).args(packages))?;
    std::fs::write(stamp, wanted)?;
    Ok(python)
}

/// A Python of at least 3.12: on the path, or among those of pyenv.
pub fn find_python() -> Option<PathBuf> {
    let named = ["python3.13", "python3.12", "python3"].map(PathBuf::from);
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| std::env::home_dir().map(|home| home.join(".pyenv")));
    let pyenv = root
        .map(|root| root.join("versions"))
        .into_iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .flatten();
    let pyenv = pyenv.map(|entry| entry.path().join("bin/python3"));
    named.into_iter().chain(pyenv).find(|python| {
        let test = "import sys; sys.exit(not ((3, 12) <= sys.version_info < (3, 14)))";
        Command::new(python)
            .args(["-c", test])
            .stderr(std::process::Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    })
}

/// Runs a command that must succeed.
pub fn check(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}
