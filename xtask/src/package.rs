//! `cargo xtask package`: the program with its manual pages and completions, as an archive and as a Debian package; or,
//! with `static`, an archive with a program that needs no C library.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::test::{cargo, check};

/// Shells, and the file each wants its completions in.
const SHELLS: &[(&str, &str)] =
    &[("bash", "toolwright"), ("zsh", "_toolwright"), ("fish", "toolwright.fish")];

const BUILD: &[&str] = &["build", "--release", "--locked", "--package", "toolwright-cli"];

/// Builds, packs, unpacks what was packed and runs it.
pub fn run() -> Result<()> {
    cargo(BUILD)?;
    let release = crate::target().join("release");
    println!("{}", pack(&release)?.display());
    let package = debian()?;
    println!("{}", package.display());
    Ok(())
}

/// The same without a C library, for any Linux of this processor: an archive.
pub fn run_static() -> Result<()> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    check(Command::new("rustup").args(["target", "add", &target]))?;
    cargo(&[BUILD, &["--target", &target]].concat())?;
    let release = crate::target().join(&target).join("release");
    let program = release.join("toolwright");
    let output = Command::new("ldd").arg(&program).output().context("cannot start ldd")?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let is_static = said.contains("statically linked") || said.contains("not a dynamic executable");
    ensure!(is_static, "{} needs libraries: {said}", program.display());
    println!("{}", pack(&release)?.display());
    Ok(())
}

/// An archive of what was built in a folder, beside the manual pages and completions.
fn pack(release: &Path) -> Result<PathBuf> {
    // The names that `package.metadata.deb` knows.
    let folder = release.join("package");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let program = release.join("toolwright");
    extras(&program, &folder)?;
    archive(&program, &folder)
}

/// What the program says about itself: manual pages and completions.
fn extras(program: &Path, folder: &Path) -> Result<()> {
    let pages = folder.join("man");
    std::fs::create_dir_all(&pages)?;
    check(Command::new(program).args(["man", "--to"]).arg(&pages))?;
    let completions = folder.join("completions");
    std::fs::create_dir_all(&completions)?;
    for (shell, name) in SHELLS {
        let file = std::fs::File::create(completions.join(name))?;
        check(Command::new(program).args(["completions", shell]).stdout(Stdio::from(file)))?;
    }
    Ok(())
}

/// `toolwright-VERSION-TARGET.tar.gz`, seen to hold a program that runs.
fn archive(program: &Path, folder: &Path) -> Result<PathBuf> {
    let said = said(program)?;
    // toolwright VERSION (COMMIT, TARGET, PROFILE)
    let mut words = said.split([' ', '(', ')', ',']).filter(|word| !word.is_empty()).skip(1);
    let (version, target) = (words.next().unwrap_or("0"), words.nth(1).unwrap_or("unknown"));
    let name = format!("toolwright-{version}-{target}");
    let inside = folder.join(&name);
    std::fs::create_dir_all(&inside)?;
    check(
        Command::new("cp")
            .arg("-r")
            .args([program, &folder.join("man"), &folder.join("completions")])
            .arg(&inside),
    )?;
    for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        std::fs::copy(crate::root().join(file), inside.join(file))?;
    }
    let archive = folder.join(format!("{name}.tar.gz"));
    check(Command::new("tar").arg("-C").arg(folder).arg("-czf").arg(&archive).arg(&name))?;
    std::fs::remove_dir_all(&inside)?;
    let unpacked = folder.join("unpacked");
    std::fs::create_dir_all(&unpacked)?;
    check(Command::new("tar").arg("-C").arg(&unpacked).arg("-xzf").arg(&archive))?;
    ensure!(
        self::said(&unpacked.join(&name).join("toolwright"))? == said,
        "the archive holds another program"
    );
    std::fs::remove_dir_all(&unpacked)?;
    Ok(archive)
}

/// The Debian package, by `cargo deb`.
fn debian() -> Result<PathBuf> {
    if !Command::new("cargo-deb").arg("--version").output().is_ok_and(|output| output.status.success()) {
        cargo(&["install", "--locked", "--quiet", "cargo-deb"])?;
    }
    let mut command = Command::new(env!("CARGO"));
    command.args(["deb", "--no-build", "--no-strip", "--package", "toolwright-cli"]);
    let output = command.current_dir(crate::root()).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{command:?} failed: {}", output.status);
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ensure!(Path::new(&path).is_file(), "cargo deb wrote no package, but said: {path}");
    Ok(PathBuf::from(path))
}

fn said(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(output.status.success(), "{} --version failed", program.display());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
