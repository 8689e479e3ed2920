//! Peers from npm: installed under `target/peers`, together with a Node that is new enough for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The Node that the peers run on; it comes from npm like them.
const NODE: &str = "node@22";

/// Whether packages can be installed at all.
pub fn is_there() -> bool {
    Command::new("npm").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The folder that has the packages; made on first use.
pub fn install(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let home = crate::root().join("target/peers").join(name);
    let stamp = home.join("installed");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && node(&home).exists() {
        return Ok(home);
    }
    eprintln!("installing {} into target/peers/{name}", packages.join(", "));
    std::fs::create_dir_all(&home)?;
    std::fs::write(home.join("package.json"), "{\"private\": true}\n")?;
    let mut command = Command::new("npm");
    command.args(["install", "--no-audit", "--no-fund", "--loglevel", "error", NODE]).args(packages);
    let status = command.current_dir(&home).status().context("npm was not found; the peers need it")?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    std::fs::write(stamp, wanted)?;
    Ok(home)
}

/// The Node of such a folder.
pub fn node(home: &Path) -> PathBuf {
    home.join("node_modules/node/bin/node")
}
