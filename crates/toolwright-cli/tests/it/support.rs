//! Runs the program for tests, and shows what it printed.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What ids of runs look like.
pub const RUN_ID: &str = r"\b[0-9a-f]{13}-[0-9a-f]+-[0-9a-f]+\b";

/// A model server on this machine is not the tests' affair, and the tools of the demo are.
pub const NO_SERVERS: [(&str, &str); 3] =
    [("OLLAMA_HOST", "127.0.0.1:9"), ("LLAMA_ARG_PORT", "9"), ("TOOLWRIGHT_TOOL_PROFILE", "demo")];

/// Runs the program in an empty folder and shows everything it printed.
pub fn show(args: &[&str]) -> String {
    show_in(tempfile::tempdir().unwrap().path(), args, "")
}

pub fn show_in(folder: &Path, args: &[&str], input: &str) -> String {
    show_with(folder, args, input, &[])
}

/// Runs a command that lives in this folder, with this on its standard input.
pub fn fed(command: &mut Command, folder: &Path, input: &str) -> Output {
    let command = command.current_dir(folder).env("HOME", folder);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

pub fn show_with(folder: &Path, args: &[&str], input: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
    command.args(args).env_clear().env("COLUMNS", "100").envs(NO_SERVERS).envs(variables.iter().copied());
    let output = fed(&mut command, folder, input);
    let part = |name: &str, bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let text = if name == "stderr" { without_times(&text) } else { text.into_owned() };
        if text.is_empty() { String::new() } else { format!("--- {name}\n{}\n", text.trim_end()) }
    };
    format!(
        "$ toolwright {}\n{}{}--- exit {}\n",
        args.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(" "),
        part("stdout", &output.stdout),
        part("stderr", &output.stderr),
        output.status.code().map_or("by signal".to_owned(), |code| code.to_string()),
    )
}

/// The calls that `ask` shows, without how long they took.
fn without_times(text: &str) -> String {
    let time = regex::Regex::new(r"(?m)^( *[⏺└○] .*)  [0-9.]+ (?:µs|ms|s)$").unwrap();
    time.replace_all(text, "$1").into_owned()
}

/// Trusts a folder: the `toolwright.yaml` in it is used without a question, whatever it says.
pub fn trust(folder: &Path) {
    let trusted = json(folder, &["trust", ".", "--yes"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
}

/// Waits for a condition that the program brings about, at most a minute.
#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "never came about: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.to_owned() } else { format!("'{arg}'") }
}

/// How a command with `--json` ended, and what it printed.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a command with `--json`.
pub fn json(folder: &Path, args: &[&str]) -> Outcome {
    json_with(folder, args, "", &[])
}

pub fn json_with(folder: &Path, args: &[&str], input: &str, variables: &[(&str, &str)]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
    command.arg("--json").args(args).env_clear().envs(NO_SERVERS).envs(variables.iter().copied());
    let output = fed(&mut command, folder, input);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

impl Outcome {
    /// The value on stdout.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The error on stderr, which may follow warnings: `type`, `message`, `hint`, `problems`.
    pub fn error(&self) -> Value {
        let line = self.stderr.lines().find(|line| line.starts_with("{\"error\"")).unwrap_or_default();
        let error: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        error["error"].clone()
    }

    /// The names of the tools that `tools` or `mcp list` printed.
    #[track_caller]
    pub fn names(&self) -> Vec<String> {
        assert_eq!(self.code, Some(0), "{self:?}");
        let tools = self.value();
        let names = tools.as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// The kind of the error and the exit code.
    pub fn failure(&self) -> (String, Option<i32>) {
        (self.error()["type"].as_str().unwrap_or_default().to_owned(), self.code)
    }

    /// Fails unless the error has this kind and exit code, and names each of these values.
    #[track_caller]
    pub fn fails(&self, kind: &str, code: i32, names: &[&str]) {
        assert_eq!(self.failure(), (kind.to_owned(), Some(code)), "{self:?}");
        let error = self.error().to_string();
        for name in names {
            assert!(error.contains(&json_text(name)), "{name:?} is not named: {self:?}");
        }
    }

    /// The problems of a file, reported by `check` on stdout and by other commands with the error, as
    /// `error tools.yaml:1:11` and their texts.
    pub fn problems(&self) -> Vec<(String, String)> {
        let checked = serde_json::from_str::<Value>(&self.stdout).ok();
        let problems =
            checked.map_or_else(|| self.error()["problems"].clone(), |value| value["problems"].clone());
        let problems = problems.as_array().unwrap_or_else(|| panic!("no problems: {self:?}")).clone();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let place = |problem: &Value| match problem["file"].as_str() {
            Some(file) => format!(" {file}:{}:{}", problem["line"], problem["column"]),
            None => String::new(),
        };
        let entry = |problem: &Value| {
            let said = format!("{} {}", text(&problem["message"]), text(&problem["hint"]));
            (text(&problem["severity"]) + &place(problem), said)
        };
        problems.iter().map(entry).collect()
    }

    /// Fails unless these are the problems: where each is, and a value that its text names.
    #[track_caller]
    pub fn has_problems(&self, wanted: &[(&str, &str)]) {
        let problems = self.problems();
        assert_eq!(problems.len(), wanted.len(), "{self:?}");
        for ((place, text), (wanted, name)) in problems.iter().zip(wanted) {
            assert!(place == wanted && text.contains(name), "{wanted}, {name}: {self:?}");
        }
    }
}

/// A text as it stands inside JSON.
fn json_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned()
}

/// Where the session of the last chat is, for a program whose home folder this is.
pub fn last_session(home: &Path) -> std::path::PathBuf {
    let chats = home.join(".local/share/toolwright/chats");
    let mut found = std::fs::read_dir(&chats).unwrap().map(|entry| entry.unwrap().path());
    let session = found.next().unwrap_or_else(|| panic!("there is no session in {}", chats.display()));
    assert_eq!(found.next(), None);
    session
}
