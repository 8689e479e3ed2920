//! `apply_patch` beside the real `git apply`: the same patches on the same files must leave the same files,
//! and what is not understood must leave everything as it was.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};
use serde_json::json;
use toolwright_tools::{Options, apply_patch};

use crate::support::{self, Backend, Bench};

/// Contents and whether it is executable, by path.
type Tree = BTreeMap<String, (Vec<u8>, bool)>;

pub(crate) fn trials() -> Vec<Trial> {
    let git = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    let trial = |name: &str, backend: Backend, run: fn(Backend) -> support::Future| {
        Trial::test(format!("{}::{name}", backend.name()), move || {
            support::block_on(run(backend));
            Ok::<(), Failed>(())
        })
        .with_ignored_flag(!git || backend.missing())
    };
    let both = Backend::ALL.into_iter();
    both.flat_map(|backend| {
        [
            trial("git_diffs_are_applied_as_git_does", backend, |backend| Box::pin(generated(backend))),
            trial("patches_are_applied_as_git_does_or_refused", backend, |backend| {
                Box::pin(by_hand(backend))
            }),
        ]
    })
    .collect()
}

fn git(folder: &Path, arguments: &[&str], input: &str) -> Result<String, String> {
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Git may not read what it has no use for.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8(output.stdout).unwrap())
}

fn put(folder: &Path, tree: &Tree) {
    for (name, (contents, executable)) in tree {
        let path = folder.join(name);
        let mut parent = path.parent().unwrap().to_owned();
        std::fs::create_dir_all(&parent).unwrap();
        while parent != folder {
            std::fs::set_permissions(&parent, PermissionsExt::from_mode(0o777)).unwrap();
            parent.pop();
        }
        std::fs::write(&path, contents).unwrap();
        let mode = if *executable { 0o777 } else { 0o666 };
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }
}

fn tree_of(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if name == ".home" || name == ".git" {
                continue;
            }
            let about = std::fs::symlink_metadata(&path).unwrap();
            if about.is_dir() {
                folders.push(path);
            } else {
                let executable = about.permissions().mode() & 0o100 != 0;
                tree.insert(name, (std::fs::read(&path).unwrap(), executable));
            }
        }
    }
    tree
}

/// What git and we make of a patch.
async fn both(
    backend: Backend,
    before: &Tree,
    patch: &str,
    options: &[&str],
) -> (Result<Tree, String>, Result<Tree, String>) {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("files");
    std::fs::create_dir(&folder).unwrap();
    put(&folder, before);
    let theirs = git(&folder, &[&["apply", "--whitespace=nowarn"], options].concat(), patch);
    let theirs = theirs.map(|_| tree_of(&folder));
    let bench = Bench::of(backend, [apply_patch(&Options::new())]).await;
    put(&bench.folder, before);
    let result = bench.call("apply_patch", json!({"patch": patch})).await;
    let after = tree_of(&bench.folder);
    let ours = match result.error {
        None => Ok(after),
        Some(error) => {
            assert_eq!(&after, before, "a patch that fails changes nothing: {}\n{patch}", error.message);
            Err(error.message)
        }
    };
    (theirs, ours)
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides).unwrap()).unwrap()
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.roll(list.len())]
    }

    fn line(&mut self) -> String {
        let line = self.of(&[
            "one",
            "two",
            "",
            "}",
            "-- x",
            "++ y",
            "-- a/f",
            "++ b/f",
            "@@ -1 +1 @@",
            "*** Begin Patch",
            "diff --git a/x b/x",
            "\\ No newline at end of file",
            "rename to g",
            "GIT binary patch",
            "-",
            "- ",
            "\tend",
        ]);
        let number = if self.roll(2) == 0 { String::new() } else { self.roll(20).to_string() };
        let end = if self.roll(12) == 0 { "\r" } else { "" };
        format!("{line}{number}{end}")
    }

    fn contents(&mut self) -> Vec<u8> {
        if self.roll(8) == 0 {
            return Vec::new();
        }
        let count = self.roll(25) + 1;
        let end = if self.roll(6) == 0 { "\r\n" } else { "\n" };
        let mut text: String = (0..count).flat_map(|_| [self.line(), end.to_owned()]).collect();
        if self.roll(5) == 0 {
            text.pop();
        }
        text.into_bytes()
    }

    fn edited(&mut self, contents: &[u8]) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> =
            contents.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        // A line without a carriage return in a file that has them everywhere is given one: that is for
        // models, not for git.
        let windows = lines.iter().all(|line| line.ends_with(b"\r\n"));
        let end = if windows { "\r\n" } else { "\n" };
        for _ in 0..=self.roll(3) {
            let at = self.roll(lines.len() + 1);
            match self.roll(3) {
                0 => lines.insert(at, format!("{}{end}", self.line()).into_bytes()),
                1 if at < lines.len() => drop(lines.remove(at)),
                _ if at < lines.len() => lines[at] = format!("{}{end}", self.line()).into_bytes(),
                _ => {}
            }
        }
        let mut after = lines.concat();
        if self.roll(6) == 0 && after.ends_with(b"\n") {
            after.pop();
        }
        after
    }
}

const NAMES: [&str; 9] = ["f", "g", "d/h", "d/i j", "d/e/k", "é", "q\"t", "tab\tx", "-dash"];

fn trees(dice: &mut Dice) -> (Tree, Tree) {
    let mut before = Tree::new();
    for name in NAMES {
        if dice.roll(2) == 0 {
            before.insert(name.to_owned(), (dice.contents(), dice.roll(4) == 0));
        }
    }
    let mut after = before.clone();
    for (name, (contents, executable)) in &before {
        let other = dice.of(&NAMES).to_owned();
        let edited = dice.edited(contents);
        match dice.roll(9) {
            0 => drop(after.remove(name)),
            1 | 2 => drop(after.insert(name.clone(), (edited, *executable))),
            3 => drop(after.insert(name.clone(), (contents.clone(), !executable))),
            4 | 5 if !after.contains_key(&other) => {
                let kept = if dice.roll(2) == 0 { contents.clone() } else { edited };
                if dice.roll(2) == 0 {
                    after.remove(name);
                }
                after.insert(other, (kept, *executable));
            }
            6 => {
                let first = after.get(name).cloned();
                let second = after.get(&other).cloned();
                for (name, file) in [(name, second), (&other, first)] {
                    match file {
                        Some(file) => drop(after.insert(name.clone(), file)),
                        None => drop(after.remove(name)),
                    }
                }
            }
            _ => {}
        }
    }
    let new = dice.of(&NAMES);
    if !after.contains_key(new) {
        let binary = dice.roll(10) == 0;
        after.insert(
            new.to_owned(),
            (if binary { vec![0, 1, 2] } else { dice.contents() }, dice.roll(3) == 0),
        );
    }
    (before, after)
}

fn stored(repository: &Path, tree: &Tree) -> String {
    for entry in std::fs::read_dir(repository).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with(".git") {
            std::fs::remove_dir_all(path).unwrap();
        } else if path.is_file() {
            std::fs::remove_file(path).unwrap();
        }
    }
    put(repository, tree);
    git(repository, &["add", "-A"], "").unwrap();
    git(repository, &["write-tree"], "").unwrap().trim().to_owned()
}

async fn generated(backend: Backend) {
    let scratch = tempfile::tempdir().unwrap();
    let repository = scratch.path().join("repository");
    std::fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "-q"], "").unwrap();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let rounds = if backend == Backend::Local {
        std::env::var("ROUNDS").map_or(40, |n| n.parse().unwrap())
    } else {
        8
    };
    for round in 0..rounds {
        let (before, after) = trees(&mut dice);
        let (old, new) = (stored(&repository, &before), stored(&repository, &after));
        let mut diff = vec!["diff"];
        diff.extend(match dice.roll(5) {
            0 => vec!["--no-renames"],
            1 => vec!["-M"],
            2 => vec!["-C", "--find-copies-harder"],
            3 => vec!["-B", "-M"],
            _ => vec!["-M20%", "-C10%"],
        });
        diff.extend([
            dice.of(&["-U0", "-U1", "-U2", "-U3"]),
            dice.of(&["--binary", "--text", "--no-binary"]),
        ]);
        let bare = dice.roll(3) == 0;
        diff.extend(bare.then_some("--no-prefix"));
        diff.retain(|option| *option != "--no-binary");
        diff.extend([old.as_str(), new.as_str()]);
        let patch = git(&repository, &diff, "").unwrap();
        if patch.is_empty() {
            continue;
        }
        let options: &[&str] = if bare { &["--unidiff-zero", "-p0"] } else { &["--unidiff-zero"] };
        let (theirs, ours) = both(backend, &before, &patch, options).await;
        let binary =
            patch.lines().any(|line| line == "GIT binary patch" || line.starts_with("Binary files "));
        if binary {
            let message = ours.expect_err("a binary file");
            assert!(message.contains("binary file"), "round {round}: {message}\n{patch}");
            continue;
        }
        assert_eq!(theirs.as_ref(), Ok(&after), "round {round}: git itself\n{patch}");
        assert_eq!(ours, theirs, "round {round}\n{patch}");
    }
}

/// Each must come out as in git, or be refused by both; where we refuse what git takes, that is said.
async fn by_hand(backend: Backend) {
    let change = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
    let parts = [
        ("rename", "diff --git a/g b/h\nsimilarity index 100%\nrename from g\nrename to h\n", true),
        ("copy", "diff --git a/g b/h\nsimilarity index 100%\ncopy from g\ncopy to h\n", true),
        ("empty file", "diff --git a/n b/n\nnew file mode 100755\nindex 0000000..e69de29\n", true),
        ("empty file away", "diff --git a/e b/e\ndeleted file mode 100644\nindex e69de29..0000000\n", true),
        ("full file away", "diff --git a/g b/g\ndeleted file mode 100644\nindex e69de29..0000000\n", true),
        ("mode", "diff --git a/g b/g\nold mode 100644\nnew mode 100755\n", true),
        ("mode of a name with a blank", "diff --git a/i j b/i j\nold mode 100644\nnew mode 100755\n", true),
        (
            "program",
            "diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n",
            true,
        ),
        (
            "name in quotes",
            "diff --git \"a/\\303\\251\" \"b/\\303\\251\"\n--- \"a/\\303\\251\"\n+++ \"b/\\303\\251\"\n@@ -1 +1 @@\n-z\n+y\n",
            true,
        ),
        ("lines like a header", "--- a/dashes\n+++ b/dashes\n@@ -1,2 +1,2 @@\n a\n--- x\n+++ y\n", true),
        ("one half of a rename", "diff --git a/g b/h\nrename to h\n", true),
        (
            "rename of another file",
            "diff --git a/g b/h\nrename from g\nrename to h\n--- a/f\n+++ b/h\n@@ -1 +1 @@\n-a\n+b\n",
            true,
        ),
        (
            "link",
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n",
            false,
        ),
        ("bytes", "diff --git a/g b/g\nindex 1..2 100644\nBinary files a/g and b/g differ\n", true),
        (
            "git's bytes",
            "diff --git a/e b/e\nindex e69de29bb2d1d6434b8b29ae775ad8c2e48c5391..f76dd238ade08917e6712764a16a22005a50573d 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n",
            false,
        ),
        (
            "swap",
            "diff --git a/g b/i j\nrename from g\nrename to i j\ndiff --git a/i j b/g\nrename from i j\nrename to g\n",
            true,
        ),
    ];
    let file = |text: &str| (text.as_bytes().to_vec(), false);
    let before = Tree::from(
        [("f", "a\n"), ("g", "z\n"), ("e", ""), ("i j", "ij\n"), ("é", "z\n"), ("dashes", "a\n-- x\n")]
            .map(|(name, text)| (name.to_owned(), file(text))),
    );
    for (name, part, as_git) in parts {
        for patch in [part.to_owned(), format!("{part}{change}"), format!("{change}{part}")] {
            let (theirs, ours) = both(backend, &before, &patch, &[]).await;
            if as_git {
                assert_eq!(ours.as_ref().ok(), theirs.as_ref().ok(), "{name}: {ours:?} {theirs:?}\n{patch}");
            } else {
                assert!(ours.is_err(), "{name}\n{patch}");
            }
        }
    }
}
