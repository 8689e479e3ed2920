//! Packages for people who have no compiler: a wheel for PyPI and a package for npm, each with the program in
//! it. Both are installed in an empty place and used there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{VersionLine, c_library, output, said};
use crate::test::check;

/// The wheel, seen to install a program that works.
pub fn wheel(program: &Path, folder: &Path) -> Result<PathBuf> {
    let version = VersionLine::of(program)?;
    let root = crate::root();
    let mut pack = Command::new("python3");
    pack.arg(root.join("xtask/peers/pack_wheel.py")).arg(program).arg(version.version());
    pack.arg(platform(program)?).arg(root.join("README.md"));
    pack.args(["LICENSE-APACHE", "LICENSE-MIT"].map(|name| root.join(name))).arg(folder);
    let wheel = PathBuf::from(output(&mut pack)?);
    let scratch = tempfile::tempdir()?;
    let venv = scratch.path().join("venv");
    check(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let pip = ["install", "--quiet", "--no-index", "--disable-pip-version-check"];
    check(Command::new(venv.join("bin/pip")).args(pip).arg(&wheel))?;
    works(&venv.join("bin/toolwright"), &version, scratch.path())?;
    Ok(wheel)
}

/// The package for npm, seen to install a program that works.
pub fn npm(program: &Path, folder: &Path) -> Result<PathBuf> {
    let version = VersionLine::of(program)?;
    let root = crate::root();
    let scratch = tempfile::tempdir()?;
    let package = scratch.path().join("package");
    std::fs::create_dir_all(package.join("bin"))?;
    std::fs::copy(program, package.join("bin/toolwright"))?;
    for name in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        std::fs::copy(root.join(name), package.join(name))?;
    }
    let mut about = json!({
        "name": "toolwright",
        "version": version.version(),
        "description": "The tool runtime for language models",
        "keywords": ["llm", "agents", "tools", "mcp", "sandbox"],
        "license": "(MIT OR Apache-2.0)",
        "bin": {"toolwright": "bin/toolwright"},
        "files": ["bin", "LICENSE-APACHE", "LICENSE-MIT"],
        "os": ["linux"],
        "cpu": [npm_cpu()],
    });
    if c_library(&std::fs::read(program)?).is_some() {
        about["libc"] = json!(["glibc"]);
    }
    std::fs::write(package.join("package.json"), serde_json::to_string_pretty(&about)? + "\n")?;
    let mut pack = Command::new("npm");
    pack.args(["pack", "--loglevel", "error", "--pack-destination"]).arg(folder).current_dir(&package);
    let name = output(&mut pack)?;
    let archive = folder.join(name.lines().last().context("npm pack printed nothing")?);
    let empty = scratch.path().join("empty");
    std::fs::create_dir(&empty)?;
    let install = ["install", "--no-audit", "--no-fund", "--offline", "--loglevel", "error"];
    check(Command::new("npm").args(install).arg(&archive).current_dir(&empty))?;
    works(&empty.join("node_modules/.bin/toolwright"), &version, scratch.path())?;
    Ok(archive)
}

/// Whether an installed program is ours, and answers without a key or a server.
fn works(installed: &Path, version: &VersionLine, home: &Path) -> Result<()> {
    ensure!(said(installed)? == version.0, "{} is another program", installed.display());
    let mut ask = Command::new(installed);
    ask.args(["ask", "What can you do?"]).current_dir(home).env_clear().env("HOME", home);
    // No model server of this machine is asked.
    ask.env("OLLAMA_HOST", "127.0.0.1:9").env("LLAMA_ARG_PORT", "9").env("PATH", "/usr/bin:/bin");
    let answer = output(ask.stdin(Stdio::null()))?;
    ensure!(!answer.is_empty(), "`{} ask` answered nothing", installed.display());
    Ok(())
}

/// The platforms of a wheel, as PyPI names them: any Linux for a program without a C library, otherwise those
/// with one that is new enough.
fn platform(program: &Path) -> Result<String> {
    let arch = std::env::consts::ARCH;
    Ok(match c_library(&std::fs::read(program)?) {
        Some(version) => format!("manylinux_{}_{arch}", version.replace('.', "_")),
        None => format!("manylinux_2_17_{arch}.musllinux_1_1_{arch}"),
    })
}

/// This processor, as npm names it.
fn npm_cpu() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that says what ours says, installed from both packages.
    #[test]
    fn packages_of_registries_install_a_program_that_answers() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("toolwright");
        let script = "#!/bin/sh\ncase $1 in --version) echo 'toolwright 9.9.9 (abc, x-y-z, release)';; *) echo hello;; esac\n# GLIBC_2.34\n";
        std::fs::write(&program, script)?;
        check(Command::new("chmod").arg("755").arg(&program))?;
        let has = |name: &str, args: &[&str]| {
            let found = Command::new(name).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
            found.is_ok_and(|status| status.success())
        };
        if has("python3", &["-m", "venv", "--help"]) {
            let wheel = wheel(&program, folder.path())?;
            let arch = std::env::consts::ARCH;
            let name = format!("toolwright-9.9.9-py3-none-manylinux_2_34_{arch}.whl");
            assert!(wheel.ends_with(&name), "{}", wheel.display());
        } else {
            eprintln!("SKIPPED: no python3 with venv here");
        }
        if has("npm", &["--version"]) {
            let package = npm(&program, folder.path())?;
            assert!(package.ends_with("toolwright-9.9.9.tgz"), "{}", package.display());
        } else {
            eprintln!("SKIPPED: no npm here");
        }
        Ok(())
    }
}
