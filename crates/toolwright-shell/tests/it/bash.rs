//! Bash itself is the oracle: whatever program it starts for a text is among the parts that were read from
//! the text.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use toolwright_shell::{ShellPart, ShellPartKind, parts};

/// Programs that only record how they were called.
const RECORDERS: &[&str] = &["git", "rm", "ls", "make", "touch"];
/// Programs that are what they are called, so that wrappers wrap.
const REAL: &[&str] =
    &["env", "xargs", "timeout", "nice", "nohup", "sh", "bash", "find", "cat", "true", "sleep"];

/// A source of numbers with a seed that is printed when a test fails.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

fn word(numbers: &mut Numbers, depth: usize) -> String {
    match numbers.below(if depth == 0 { 12 } else { 20 }) {
        0..8 => numbers.pick(&["a", "-s", "b.c", "x=y", "--", "1", "-n", "d/e"]).to_owned(),
        8 => numbers
            .pick(&[
                "'a b'",
                "\"c d\"",
                "'; rm q'",
                "\"&& rm q\"",
                "a\\ b",
                "\\;",
                "$'r\\x6d'",
                "'#'",
                "\"#\"",
            ])
            .to_owned(),
        9 => numbers
            .pick(&["$HOME", "${x:-y}", "\"$x\"", "*", "~", "{a,b}", "$((1+2))", "a#b", "${#x}", "$#"])
            .to_owned(),
        10 => numbers
            .pick(&["a\"b\"'c'", "\"\\\"\"", "'\\'", "\\\\", "\"\\\\\"", "a\\\nb", "$\"x\""])
            .to_owned(),
        11 => numbers.pick(&["2>&1", ">/dev/null", "<f", ">g", "2>h", "&>i", ">|j", ">&2"]).to_owned(),
        12 | 13 => format!("$({})", list(numbers, depth - 1)),
        14 => format!("\"$({})\"", list(numbers, depth - 1)),
        15 => format!("`{}`", command(numbers, 0).replace(['`', '\\'], "")),
        16 => format!("<({})", list(numbers, depth - 1)),
        17 => format!("${{x:-$({})}}", command(numbers, 0)),
        18 => format!("\"a `{}`\"", command(numbers, 0).replace(['`', '\\', '"'], "")),
        _ => format!("$(( 1 + $({}) ))", command(numbers, 0)),
    }
}

fn command(numbers: &mut Numbers, depth: usize) -> String {
    let words = |numbers: &mut Numbers, most: usize| -> String {
        (0..numbers.below(most)).map(|_| format!(" {}", word(numbers, depth))).collect()
    };
    let simple = |numbers: &mut Numbers| {
        let name = numbers
            .pick(&["git", "rm", "ls", "make", "touch", "g\"i\"t", "r\\m", "'ls'", "echo", ":", "true"]);
        format!("{name}{}", words(numbers, 4))
    };
    match numbers.below(if depth == 0 { 8 } else { 24 }) {
        0..7 => simple(numbers),
        7 => format!("X={} {}", numbers.pick(&["1", "'a b'", "$(rm z)", ""]), simple(numbers)),
        8 => format!("env A=b {}", simple(numbers)),
        9 => format!("timeout 5 {}", simple(numbers)),
        10 => format!("echo a | xargs {}", simple(numbers)),
        11 => format!("sh -c '{}'", list(numbers, 0).replace('\'', "")),
        12 => format!("nice -n 1 {}", simple(numbers)),
        13 => format!("if {}; then {}; fi", command(numbers, depth - 1), list(numbers, depth - 1)),
        14 => format!("( {} )", list(numbers, depth - 1)),
        15 => format!("{{ {}; }}", list(numbers, depth - 1)),
        16 => format!("for i in a b; do {}; done", list(numbers, depth - 1)),
        17 => format!("f() {{ {}; }}; f", list(numbers, depth - 1)),
        18 => format!("case a in a) {};; *) rm n;; esac", list(numbers, depth - 1)),
        19 => format!("cat <<E\na $({}) b\nE\n", command(numbers, 0)),
        20 => "cat <<'E'\n$(rm never)\nE\n".to_owned(),
        21 => format!("eval '{}'", command(numbers, 0).replace('\'', "")),
        22 => format!("! {}", command(numbers, depth - 1)),
        _ => format!("while {}; do break; done", command(numbers, depth - 1)),
    }
}

fn list(numbers: &mut Numbers, depth: usize) -> String {
    let mut text = command(numbers, depth);
    for _ in 0..numbers.below(3) {
        let joint =
            numbers.pick(&["; ", " && ", " || ", " | ", "\n", ";\n", " # note\n", " &\n", " |& ", "  ;  "]);
        text = format!("{text}{joint}{}", command(numbers, depth));
    }
    text
}

/// Prepares a folder with recorders and real programs; gives its path and that of the record.
fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for name in RECORDERS {
        let path = bin.join(name);
        // One `printf`, so that programs that run together do not mix their lines.
        let script = "#!/bin/sh\nprintf '%s\\001' \"${0##*/}\" \"$@\" '<end>' >> \"$RECORD\"\n";
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in REAL {
        let real = ["/bin", "/usr/bin"].iter().map(|at| Path::new(at).join(name)).find(|path| path.exists());
        symlink(real.unwrap(), bin.join(name)).unwrap();
    }
    folder
}

/// The programs that bash started for a text.
fn started(folder: &Path, round: u64, text: &str) -> Vec<Vec<String>> {
    // A record for each round: what an earlier one left in the background may still write.
    let record = folder.join(format!("record-{round}"));
    std::fs::create_dir(folder.join(format!("work-{round}"))).unwrap();
    let mut child = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", text])
        .current_dir(folder.join(format!("work-{round}")))
        .env_clear()
        .env("PATH", folder.join("bin"))
        .env("RECORD", &record)
        .env("HOME", "/nowhere")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(5);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let recorded = std::fs::read(&record).unwrap_or_default();
    let recorded = String::from_utf8_lossy(&recorded).into_owned();
    let calls = recorded.split("<end>\u{1}").filter(|call| !call.is_empty());
    calls.map(|call| call.split_terminator('\u{1}').map(str::to_owned).collect()).collect()
}

/// Words in the form that parts have.
fn shown(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    let quoted = |word: &String| {
        let bare = !word.is_empty() && word.chars().all(plain);
        if bare { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn begins_with(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

#[test]
fn no_program_that_bash_starts_is_missing_from_the_parts() {
    let seed = std::env::var("TOOLWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_118);
    let rounds =
        std::env::var("TOOLWRIGHT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(400);
    let (folder, mut numbers) = (folder(), Numbers(seed));
    let (mut readable, mut programs) = (0, 0);
    for round in 0..rounds {
        let text = list(&mut numbers, 2);
        let Ok(parts) = parts(&text) else { continue };
        readable += 1;
        if parts.iter().any(|part| part.opaque.is_some()) {
            continue;
        }
        for argv in started(folder.path(), round, &text) {
            programs += 1;
            let name = argv.first().map(String::as_str).unwrap_or_default();
            let same = |part: &ShellPart| {
                part.text == shown(&argv)
                    || part.text.contains(['$', '`', '*', '~', '<', '>', '{']) && begins_with(&part.text, name)
                    // What `xargs` reads is added to the words it has.
                    || part.wrappers.iter().any(|around| begins_with(around, "xargs"))
                        && shown(&argv).starts_with(&part.text)
            };
            let known = parts.iter().any(same);
            assert!(
                known,
                "seed {seed}, round {round}: bash started {argv:?} for {text:?}; the parts are {parts:#?}"
            );
        }
        for file in
            std::fs::read_dir(folder.path().join(format!("work-{round}"))).unwrap().map(|file| file.unwrap())
        {
            let name = file.file_name().into_string().unwrap();
            let known = parts.iter().any(|part| {
                part.kind == ShellPartKind::Redirection && part.text.ends_with(&format!(" {name}"))
            });
            assert!(
                known,
                "seed {seed}, round {round}: bash made {name:?} for {text:?}; the parts are {parts:#?}"
            );
        }
    }
    println!("seed {seed}: {readable} of {rounds} texts could be read, {programs} programs were started");
    assert!(readable * 2 > rounds, "only {readable} of {rounds} texts could be read");
    assert!(programs > rounds, "only {programs} programs were started");
}
