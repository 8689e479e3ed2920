//! `cargo xtask package`: the program with its manual pages and completions, as an archive and as a Debian
//! package; then, without a C library, as an archive, a wheel for PyPI and a package for npm. Each is
//! unpacked or installed, and what comes out is run.

mod registries;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::test::{cargo, check};

/// Shells, and the file each wants its completions in.
const SHELLS: &[(&str, &str)] =
    &[("bash", "toolwright"), ("zsh", "_toolwright"), ("fish", "toolwright.fish")];

const BUILD: &[&str] = &["build", "--release", "--locked", "--package", "toolwright-cli"];

/// Which packages are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    All,
    /// Those with a program that needs the C library of this machine.
    Linked,
    /// Those with a program that needs none.
    Static,
}

/// Builds, packs, installs what was packed and runs it.
pub fn run(kind: Kind) -> Result<()> {
    if kind != Kind::Static {
        cargo(BUILD)?;
        let release = crate::target().join("release");
        println!("{}", pack(&release)?.display());
        println!("{}", debian(&release)?.display());
    }
    if kind != Kind::Linked {
        let release = build_static()?;
        println!("{}", pack(&release)?.display());
        let (program, folder) = (release.join("toolwright"), release.join("package"));
        println!("{}", registries::wheel(&program, &folder)?.display());
        println!("{}", registries::npm(&program, &folder)?.display());
    }
    Ok(())
}

/// The program without a C library, for any Linux of this processor; gives back its folder.
fn build_static() -> Result<PathBuf> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    // The compiler that whoever builds chose, by the names that the `cc` crate knows.
    let chosen = [format!("CC_{target}"), format!("CC_{}", target.replace('-', "_"))];
    let compiler = || Command::new("musl-gcc").arg("--version").stdout(Stdio::null()).status();
    ensure!(
        chosen.iter().any(|name| std::env::var_os(name).is_some())
            || compiler().is_ok_and(|status| status.success()),
        "there is no C compiler for musl (`musl-gcc`); on Debian: apt install musl-tools"
    );
    check(Command::new("rustup").args(["target", "add", &target]))?;
    cargo(&[BUILD, &["--target", &target]].concat())?;
    let release = crate::target().join(&target).join("release");
    let program = release.join("toolwright");
    let output = Command::new("ldd").arg(&program).output().context("cannot start ldd")?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let is_static = said.contains("statically linked") || said.contains("not a dynamic executable");
    ensure!(is_static, "{} needs libraries: {said}", program.display());
    Ok(release)
}

/// An archive of what was built in a folder, beside the manual pages and completions.
fn pack(release: &Path) -> Result<PathBuf> {
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
    let line = VersionLine::of(program)?;
    let (said, version, target) = (&line.0, line.version(), line.target());
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
        self::said(&unpacked.join(&name).join("toolwright"))? == *said,
        "the archive holds another program"
    );
    std::fs::remove_dir_all(&unpacked)?;
    Ok(archive)
}

/// The Debian package, made by `dpkg-deb` from what [`pack`] left, and seen to hold a program that runs.
fn debian(release: &Path) -> Result<PathBuf> {
    let (folder, program) = (release.join("package"), release.join("toolwright"));
    let said = said(&program)?;
    let version = said.split(' ').nth(1).unwrap_or("0").to_owned();
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let (tree, unpacked) = (folder.join("tree"), folder.join("unpacked"));
    lay_out(&program, &folder, &tree)?;
    let size: u64 = output(Command::new("du").arg("-sk").arg(&tree))?
        .split_whitespace()
        .next()
        .and_then(|size| size.parse().ok())
        .context("du said nothing")?;
    let library = c_library(&std::fs::read(&program)?)
        .map_or_else(String::new, |version| format!("Depends: libc6 (>= {version})\n"));
    let control = format!(
        "Package: toolwright\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: The Toolwright contributors\n\
         Installed-Size: {size}\nSection: utils\nPriority: optional\n{library}\
         Description: the tool runtime for language models\n \
         Write a tool once; give it to any model or any MCP client; every call is\n \
         validated, approved, bounded and recorded, and what it runs is sandboxed.\n"
    );
    std::fs::create_dir_all(tree.join("DEBIAN"))?;
    std::fs::write(tree.join("DEBIAN/control"), control)?;
    let package = folder.join(format!("toolwright_{version}_{architecture}.deb"));
    check(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).args([&tree, &package]))?;
    std::fs::remove_dir_all(&tree)?;
    check(Command::new("dpkg-deb").arg("-x").args([&package, &unpacked]))?;
    ensure!(self::said(&unpacked.join("usr/bin/toolwright"))? == said, "the package holds another program");
    std::fs::remove_dir_all(&unpacked)?;
    Ok(package)
}

/// Puts everything where Debian wants it.
fn lay_out(program: &Path, folder: &Path, tree: &Path) -> Result<()> {
    let place = |from: &Path, to: &str, mode: &str| -> Result<()> {
        check(Command::new("install").args(["-D", "-m", mode]).arg(from).arg(tree.join(to)))
    };
    place(program, "usr/bin/toolwright", "755")?;
    for entry in std::fs::read_dir(folder.join("man"))? {
        let page = entry?;
        let to = format!("usr/share/man/man1/{}", page.file_name().to_string_lossy());
        place(&page.path(), &to, "644")?;
        check(Command::new("gzip").arg("-9n").arg(tree.join(to)))?;
    }
    for (shell, name) in SHELLS {
        let to = match *shell {
            "bash" => "usr/share/bash-completion/completions",
            "zsh" => "usr/share/zsh/vendor-completions",
            _ => "usr/share/fish/vendor_completions.d",
        };
        place(&folder.join("completions").join(name), &format!("{to}/{name}"), "644")?;
    }
    let root = crate::root();
    for (file, name) in [
        ("README.md", "README.md"),
        ("CHANGELOG.md", "CHANGELOG.md"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
        ("LICENSE-MIT", "copyright"),
    ] {
        place(&root.join(file), &format!("usr/share/doc/toolwright/{name}"), "644")?;
    }
    Ok(())
}

/// The newest version of the C library that a program asks for; none when it asks for no such library.
fn c_library(program: &[u8]) -> Option<String> {
    const MARK: &[u8] = b"GLIBC_2.";
    let places = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let minors = places.filter_map(|(at, _)| {
        let digits = program.get(at + MARK.len()..)?.iter().take_while(|byte| byte.is_ascii_digit()).take(3);
        String::from_utf8(digits.copied().collect()).ok()?.parse::<u32>().ok()
    });
    minors.max().map(|minor| format!("2.{minor}"))
}

/// What a command prints, without the end of the line.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed: {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What `--version` prints: `toolwright VERSION (COMMIT, TARGET, PROFILE)`.
struct VersionLine(String);

impl VersionLine {
    fn of(program: &Path) -> Result<Self> {
        said(program).map(VersionLine)
    }

    fn word(&self, number: usize) -> Option<&str> {
        self.0.split([' ', '(', ')', ',']).filter(|word| !word.is_empty()).nth(number)
    }

    fn version(&self) -> &str {
        self.word(1).unwrap_or("0")
    }

    fn target(&self) -> &str {
        self.word(3).unwrap_or("unknown")
    }
}

fn said(program: &Path) -> Result<String> {
    output(Command::new(program).arg("--version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that says what ours says, packed, unpacked and started.
    #[test]
    fn packages_hold_the_program_its_pages_and_completions() -> Result<()> {
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            eprintln!("SKIPPED: no dpkg-deb here");
            return Ok(());
        }
        let release = tempfile::tempdir()?;
        let program = release.path().join("toolwright");
        let script = "#!/bin/sh\ncase $1 in --version) echo 'toolwright 9.9.9 (abc, x-y-z, release)';; \
                      man) echo .TH > $3/toolwright.1;; *) echo $2;; esac\n# GLIBC_2.9 GLIBC_2.34\n";
        std::fs::write(&program, script)?;
        check(Command::new("chmod").arg("755").arg(&program))?;
        let archive = pack(release.path())?;
        assert!(archive.ends_with("toolwright-9.9.9-x-y-z.tar.gz"), "{}", archive.display());
        let package = debian(release.path())?;
        let contents = output(Command::new("dpkg-deb").arg("--contents").arg(&package))?;
        for path in [
            "./usr/bin/toolwright",
            "./usr/share/man/man1/toolwright.1.gz",
            "./usr/share/bash-completion/completions/toolwright",
            "./usr/share/zsh/vendor-completions/_toolwright",
            "./usr/share/fish/vendor_completions.d/toolwright.fish",
            "./usr/share/doc/toolwright/copyright",
        ] {
            assert!(
                contents.lines().any(|line| line.ends_with(path) && line.contains("root/root")),
                "{path}: {contents}"
            );
        }
        let field = |name: &str| output(Command::new("dpkg-deb").arg("-f").arg(&package).arg(name));
        assert_eq!(
            (field("Depends")?, field("Version")?),
            ("libc6 (>= 2.34)".to_owned(), "9.9.9".to_owned())
        );
        Ok(())
    }
}
