//! Programs that are needed beside Rust: found on the path, or installed from Debian's packages.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Whether a program is on the path and starts.
pub fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Installs packages (options of `apt-get install` may stand among them), which only root can do. Lists of
/// packages that are missing or old are fetched first.
pub fn install(packages: &[&str]) -> Result<()> {
    let args = [&["install", "--yes", "--quiet"], packages].concat();
    if apt(&args)? || (apt(&["update", "--quiet"])? && apt(&args)?) {
        return Ok(());
    }
    bail!("`apt-get install {}` failed; it needs root and Debian's packages", packages.join(" "))
}

fn apt(args: &[&str]) -> Result<bool> {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
    eprintln!("$ {command:?}");
    Ok(command.status().with_context(|| format!("{command:?}"))?.success())
}
