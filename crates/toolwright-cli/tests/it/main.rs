//! The program as a person meets it: command, stdout, stderr, exit code.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "these are tests")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

mod asking;
mod browser;
mod chat;
mod chat_kept;
mod chat_typing;
mod examples;
mod fake;
mod found;
mod governed;
mod instances;
mod looked_up;
mod mcp;
mod mistakes;
mod pages;
mod passed_on;
mod pictures;
mod proxies;
mod recorded;
mod replayed;
mod sandboxed;
mod served;
mod servers;
mod steps;
mod stopped;
mod terminal;
mod view;
mod written;

/// What ids of runs look like.
const RUN_ID: &str = r"\b[0-9a-f]{13}-[0-9a-f]+-[0-9a-f]+\b";

/// A model server on this machine is not the tests' affair.
const NO_SERVERS: [(&str, &str); 2] = [("OLLAMA_HOST", "127.0.0.1:9"), ("LLAMA_ARG_PORT", "9")];

/// Runs the program in an empty folder and shows everything it printed.
fn show(args: &[&str]) -> String {
    show_in(tempfile::tempdir().unwrap().path(), args, "")
}

fn show_in(folder: &Path, args: &[&str], input: &str) -> String {
    show_with(folder, args, input, &[])
}

/// Runs a command that lives in this folder, with this on its standard input.
fn fed(command: &mut Command, folder: &Path, input: &str) -> Output {
    let command = command.current_dir(folder).env("HOME", folder);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

fn show_with(folder: &Path, args: &[&str], input: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
    command.args(args).env_clear().env("COLUMNS", "100").envs(NO_SERVERS).envs(variables.iter().copied());
    let output = fed(&mut command, folder, input);
    let part = |name: &str, bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
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

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.to_owned() } else { format!("'{arg}'") }
}

#[test]
fn tools_are_listed_with_their_parameters() {
    insta::assert_snapshot!(show(&["tools"]));
}

#[test]
fn definitions_come_in_the_forms_others_read() {
    for format in ["json", "mcp", "anthropic", "openai", "openai-responses", "gemini", "bedrock"] {
        insta::assert_snapshot!(format!("definition_{format}"), show(&["tools", "add", "--format", format]));
    }
    // What is lost on the way is said.
    let folder = tempfile::tempdir().unwrap();
    let file = "tools:\n  - name: lookup\n    description: Looks a code up.\n    input:\n      - {name: code, \
                description: The code., type: string}\n      - {name: limit, description: How many., type: integer, default: 3}\n    \
                do:\n      - eval: ${code}\n";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    let strict = ["tools", "t.yaml", "--format", "openai", "--strict"];
    insta::assert_snapshot!(show_in(folder.path(), &strict, ""));
    insta::assert_snapshot!(show_in(folder.path(), &[&["--json"], &strict[..]].concat(), ""));
}

#[test]
fn a_call_prints_its_result_and_nothing_else_on_stdout() {
    insta::assert_snapshot!(show(&["call", "add", "x=1", "y=2"]));
    insta::assert_snapshot!(show(&["call", "word_count", "text=to be or not to be", "top=1"]));
    insta::assert_snapshot!(show(&["--json", "call", "add", "--args", "{\"x\": 1, \"y\": 2}"]));
}

#[test]
fn the_record_of_a_call_has_a_beginning_and_an_end() {
    let folder = tempfile::tempdir().unwrap();
    show_in(folder.path(), &["call", "add", "x=1", "y=2", "--transcript", "run.jsonl"], "");
    let transcript = toolwright::Transcript::load(&folder.path().join("run.jsonl")).unwrap();
    let words: Vec<String> = transcript
        .events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(words, ["run_started", "call_started", "call_decided", "call_finished", "run_finished"]);
}

#[test]
fn arguments_can_come_from_stdin() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(show_in(
        folder.path(),
        &["call", "add", "--args", "-"],
        "{\"x\": 20, \"y\": 22}"
    ));
}

#[test]
fn pictures_are_saved_and_never_overwrite_a_file() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(show_in(folder.path(), &["call", "chart", "values=[1,2]"], ""));
    let png = std::fs::read(folder.path().join("chart-2.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n"));
    insta::assert_snapshot!(show_in(folder.path(), &["call", "chart", "values=[1,2]"], ""));
}

#[test]
fn a_time_out_stops_the_call() {
    let start = std::time::Instant::now();
    insta::assert_snapshot!(show(&["call", "countdown", "seconds=60", "--timeout", "300ms"]));
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn the_demo_model_tells_its_story() {
    let mut shown = show(&["ask", "What can you do?"]);
    if shown.contains("no sandbox: ") {
        eprintln!("SKIPPED: the demo needs a sandbox, and there is none here");
        return;
    }
    for (pattern, text) in [(RUN_ID, "[run]"), (r"\S*/toolwright/demo\b", "[folder]")] {
        shown = regex::Regex::new(pattern).unwrap().replace_all(&shown, text).into_owned();
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn an_answer_as_json_is_one_object() {
    let shown = show(&["ask", "hi", "--json"]);
    let line = shown.lines().find(|line| line.starts_with('{')).unwrap();
    let answer: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(answer["end"]["status"], "done");
    assert_eq!(answer["messages"].as_array().unwrap().len(), 12);
}

#[test]
fn a_script_can_be_the_model_and_a_run_can_be_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let script = "- calls: [{tool: remember, arguments: {note: hi}}]\n- {text: Kept., expect: hi}\n";
    std::fs::write(folder.path().join("replies.yaml"), script).unwrap();
    std::fs::write(folder.path().join("policy.yaml"), "- {tools: remember, decision: approve}\n").unwrap();
    let args = [
        "ask",
        "go",
        "--model",
        "scripted/replies.yaml",
        "--policy",
        "policy.yaml",
        "--transcript",
        "run.jsonl",
    ];
    insta::assert_snapshot!(show_in(folder.path(), &args, ""));
    let transcript = toolwright::Transcript::load(&folder.path().join("run.jsonl")).unwrap();
    assert!(transcript.open_calls().is_empty() && transcript.events.len() > 5);
}

#[test]
fn a_limit_ends_a_run_with_exit_1() {
    let folder = tempfile::tempdir().unwrap();
    let script = "- calls: [{tool: add, arguments: {x: 1, y: 1}}]\n".repeat(5);
    std::fs::write(folder.path().join("replies.yaml"), script).unwrap();
    let args = ["ask", "go", "--model", "scripted/replies.yaml", "--max-turns", "2"];
    insta::assert_snapshot!(show_in(folder.path(), &[&args[..], &["--no-record"]].concat(), ""));
}

#[test]
fn check_and_completions_work() {
    insta::assert_snapshot!(show(&["check"]));
    for shell in ["bash", "zsh", "fish"] {
        let shown = show(&["completions", shell]);
        let (_, script) = shown.split_once("--- stdout\n").unwrap();
        assert!(script.contains("toolwright") && script.ends_with("--- exit 0\n"), "{shell}: {script}");
    }
    assert!(show(&["doctor"]).contains("ok      tools"));
    assert!(show(&["doctor", "--json"]).contains("\"what\": \"approvals\""));
}

#[test]
fn templates_are_evaluated() {
    insta::assert_snapshot!(show(&["eval", "${1 + 1}"]));
    insta::assert_snapshot!(show(&["eval", "Hello ${name.title()}", "--vars", "{\"name\": \"ada\"}"]));
    insta::assert_snapshot!(show(&["eval", "${[n * n for n in range(4)]}"]));
    insta::assert_snapshot!(show(&["eval", "${nam}", "--vars", "{\"name\": 1}"]));
    insta::assert_snapshot!(show(&["eval", "${1 +}"]));
    insta::assert_snapshot!(show(&["eval", "${'a' * 10 ** 12}"]));
    let large = "{\"x\": 12345678901234567890123, \"f\": 1e400}";
    insta::assert_snapshot!(show(&["eval", "${[x, f]}", "--vars", large]));
    insta::assert_snapshot!(show(&["eval", "--json", "${[x, {10 ** 30: {1, 2}}]}", "--vars", large]));
    insta::assert_snapshot!(show(&["eval", "--json", "${f}", "--vars", large]));
    insta::assert_snapshot!(show(&["eval", "--json", "${nam}", "--vars", "{\"name\": 1}"]));
    insta::assert_snapshot!(show(&["eval", "--json", "${1 // 0}"]));
    insta::assert_snapshot!(show(&["eval", "--json", "${1 +}"]));
    insta::assert_snapshot!(show(&["eval", "${10 ** 5000}"]));
    insta::assert_snapshot!(show(&["eval", "1", "--vars", "{\"a\": ,}"]));
    insta::assert_snapshot!(show(&["eval", "1", "--vars", "[1]"]));
}

#[test]
fn the_starter_file_checks_calls_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let here = |args: &[&str]| show_in(folder.path(), args, "");
    insta::assert_snapshot!(here(&["init"]));
    insta::assert_snapshot!(here(&["init"]));
    insta::assert_snapshot!(here(&["check"]));
    insta::assert_snapshot!(here(&["tools", "toolwright.yaml", "greet"]));
    insta::assert_snapshot!(here(&["call", "greet", "name=ada", "-f", "toolwright.yaml"]));
    insta::assert_snapshot!(here(&["run", "toolwright.yaml", "ada", "grace"]));
    insta::assert_snapshot!(show_in(folder.path(), &["run", "toolwright.yaml", "-"], "ada\ngrace\n"));
    std::fs::write(folder.path().join("text.txt"), "a\nthe longest line\nmiddle\n").unwrap();
    insta::assert_snapshot!(here(&[
        "call",
        "longest_lines",
        "path=text.txt",
        "count=1",
        "-f",
        "toolwright.yaml"
    ]));
}

#[test]
fn a_file_with_mistakes_is_explained_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = "\
shared:
  tools:
    - name: greet
      description: Greets.
      input: [{name: name, type: str, description: Who.}]
      do: {eval: 'Hello ${nme}'}
cli:
  process_input: one_by_one
  do:
    - {call: gret, params: {name: '${input}'}}
    - {call: greet, params: {nam: 1}}
";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    insta::assert_snapshot!(show_in(folder.path(), &["check"], ""));
    insta::assert_snapshot!(show_in(folder.path(), &["check", "--json"], ""));
}

#[test]
fn one_bad_input_does_not_stop_the_next_when_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = "cli: {process_input: one_by_one, json_output: true, do: {eval: '${10 // int(input)}'}}\n";
    std::fs::write(folder.path().join("divide.yaml"), file).unwrap();
    insta::assert_snapshot!(show_in(
        folder.path(),
        &["run", "divide.yaml", "5", "0", "2", "--keep-going"],
        ""
    ));
    insta::assert_snapshot!(show_in(folder.path(), &["run", "divide.yaml", "0", "2"], ""));
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(["tools", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(process.stdout.take());
    let output = process.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn help_teaches() {
    insta::assert_snapshot!(show(&["--help"]));
    insta::assert_snapshot!(show(&["call", "--help"]));
}

#[test]
fn ctrl_c_stops_a_call_at_once() {
    let home = tempfile::tempdir().unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(["call", "countdown", "seconds=60"])
        .env_clear()
        .env("HOME", home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Wait until it counts, then press Ctrl-C.
    let mut first = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(process.stderr.as_mut().unwrap()), &mut first)
        .unwrap();
    let killed = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let start = std::time::Instant::now();
    assert_eq!(process.wait().unwrap().code(), Some(1));
    assert!(start.elapsed() < std::time::Duration::from_secs(40));
}

#[test]
fn a_flow_asks_the_models_its_file_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = "models: {fast: scripted/answers.yaml}
tools:
  - {import_tool: build_llm_tool, name: fast, config: {model_ref: fast, extract_json: first}}
  - {import_tool: build_llm_tool, name: lost, config: {model_ref: slow}}
  - {name: t, do: [{call: fast, params: {prompt: 'How many?'}}, {eval: 'there are ${_.n + 1}'}]}
";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    let answers = "- text: |\n    Let me see.\n\n    ```json\n    {\"n\": 4}\n    ```\n  expect: How many?\n";
    std::fs::write(folder.path().join("answers.yaml"), answers).unwrap();
    let called = show_in(folder.path(), &["call", "t", "-f", "toolwright.yaml"], "");
    assert!(called.contains("--- stdout\nthere are 5\n"), "{called}");
    insta::assert_snapshot!(show_in(
        folder.path(),
        &["call", "lost", "prompt=hi", "-f", "toolwright.yaml"],
        ""
    ));
}

#[test]
fn what_a_model_inside_a_tool_may_not_know_is_the_answer_and_what_it_gets_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let file = "models: {inner: scripted/inner.yaml}
policy: [{tools: '*', decision: approve}]
tools:
  - {name: pin, description: d, confidential: true, do: {eval: PIN-1234}}
  - {name: big, description: d, do: {eval: \"${'x' * 100000}\"}}
  - {import_tool: build_llm_tool, name: helper, description: h, config: {model_ref: inner, tools: [pin, big]}}
";
    write("t.yaml", file);
    write("outer.yaml", "- calls: [{tool: helper, arguments: {prompt: go}}]\n");
    let ask = || {
        let args = ["ask", "go", "-f", "t.yaml", "--model", "scripted/outer.yaml", "--no-record"];
        show_in(folder.path(), &args, "")
    };
    for name in ["pin", "functions.pin"] {
        write("inner.yaml", &format!("- calls: [{{tool: {name}, arguments: {{}}}}]\n"));
        let asked = ask();
        // Neither model has a second answer: being asked again would be an error.
        assert!(asked.contains("exit 0") && asked.contains("--- stdout\nPIN-1234\n"), "{asked}");
    }
    write("inner.yaml", "- calls: [{tool: big, arguments: {}}]\n- text: seen\n  expect: bytes left out\n");
    write("outer.yaml", "- calls: [{tool: helper, arguments: {prompt: go}}]\n- text: done\n  expect: seen\n");
    let asked = ask();
    assert!(asked.contains("--- stdout\ndone\n"), "{asked}");
}
