//! `toolwright call`: results on stdout, records, pictures, timeouts and Ctrl-C.

use std::process::{Command, Stdio};

use crate::{show, show_in};

#[test]
fn a_call_prints_its_result_and_nothing_else_on_stdout() {
    insta::assert_snapshot!("add", show(&["call", "add", "x=1", "y=2"]));
    insta::assert_snapshot!("word_count", show(&["call", "word_count", "text=to be or not to be", "top=1"]));
    insta::assert_snapshot!("add_json", show(&["--json", "call", "add", "--args", "{\"x\": 1, \"y\": 2}"]));
}

#[test]
fn the_record_of_a_call_has_a_beginning_and_an_end() {
    let folder = tempfile::tempdir().unwrap();
    show_in(folder.path(), &["call", "add", "x=1", "y=2", "--transcript", "run.jsonl"], "");
    let transcript = toolwright::events::Transcript::load(&folder.path().join("run.jsonl")).unwrap();
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
    insta::assert_snapshot!(
        "arguments_from_stdin",
        show_in(folder.path(), &["call", "add", "--args", "-"], "{\"x\": 20, \"y\": 22}")
    );
}

#[test]
fn pictures_are_saved_and_never_overwrite_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let shown = show_in(folder.path(), &["call", "chart", "values=[1,2]"], "");
    assert!(shown.contains("`chart-2.png` (image/png) is not shown; --save-to FOLDER saves it"), "{shown}");
    assert!(!folder.path().join("chart-2.png").exists());
    insta::assert_snapshot!(
        "chart",
        show_in(folder.path(), &["call", "chart", "values=[1,2]", "--save-to", "."], "")
    );
    let png = std::fs::read(folder.path().join("chart-2.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n"));
    insta::assert_snapshot!(
        "chart_again",
        show_in(folder.path(), &["call", "chart", "values=[1,2]", "--save-to", "."], "")
    );
}

#[test]
fn a_time_out_stops_the_call() {
    let start = std::time::Instant::now();
    insta::assert_snapshot!("timeout", show(&["call", "countdown", "seconds=60", "--timeout", "300ms"]));
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
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
    insta::assert_snapshot!(
        "unknown_model_of_a_flow",
        show_in(folder.path(), &["call", "lost", "prompt=hi", "-f", "toolwright.yaml"], "")
    );
}
