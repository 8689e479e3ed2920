//! Commands as a person meets them: tools and their definitions, help, completions, batches.

use std::process::{Command, Stdio};

use crate::{show, show_in};

#[test]
fn tools_are_listed_with_their_parameters() {
    insta::assert_snapshot!("tools", show(&["tools"]));
}

#[test]
fn definitions_come_in_the_forms_others_read() {
    for format in ["json", "mcp", "anthropic", "openai", "openai-responses", "gemini", "bedrock"] {
        insta::assert_snapshot!(format!("definition_{format}"), show(&["tools", "add", "--format", format]));
    }
    // A default that strict schemas cannot express is reported.
    let folder = tempfile::tempdir().unwrap();
    let file = "tools:\n  - name: lookup\n    description: Looks a code up.\n    input:\n      - {name: code, \
                description: The code., type: string}\n      - {name: limit, description: How many., type: integer, default: 3}\n    \
                do:\n      - eval: ${code}\n";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    let strict = ["tools", "t.yaml", "--format", "openai", "--strict"];
    insta::assert_snapshot!("definition_openai_strict", show_in(folder.path(), &strict, ""));
    insta::assert_snapshot!(
        "definition_openai_strict_json",
        show_in(folder.path(), &[&["--json"], &strict[..]].concat(), "")
    );
}

#[test]
fn check_completions_and_doctor_exit_with_0() {
    insta::assert_snapshot!("check", show(&["check"]));
    for shell in ["bash", "zsh", "fish"] {
        let shown = show(&["completions", shell]);
        let (_, script) = shown.split_once("--- stdout\n").unwrap();
        assert!(script.contains("toolwright") && script.ends_with("--- exit 0\n"), "{shell}: {script}");
    }
    assert!(show(&["doctor"]).contains("ok      tools"));
    assert!(show(&["doctor", "--json"]).contains("\"what\": \"approvals\""));
}

#[test]
fn file_of_tools_may_be_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let file = "tools: [{name: two, description: Two., do: {eval: '${1 + 1}'}}]\n";
    assert!(show_in(folder.path(), &["check", "/dev/stdin"], file).ends_with("--- exit 0\n"));
    let shown = show_in(folder.path(), &["call", "two", "-f", "/dev/stdin"], file);
    assert!(shown.contains("--- stdout\n2\n"), "{shown}");
}

#[test]
fn help_shows_commands_and_examples() {
    insta::assert_snapshot!("help", show(&["--help"]));
    insta::assert_snapshot!("help_call", show(&["call", "--help"]));
}

#[test]
fn keep_going_takes_the_next_input_after_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = "cli: {process_input: one_by_one, json_output: true, do: {eval: '${10 // int(input)}'}}\n";
    std::fs::write(folder.path().join("divide.yaml"), file).unwrap();
    insta::assert_snapshot!(
        "run_keep_going",
        show_in(folder.path(), &["run", "divide.yaml", "5", "0", "2", "--keep-going"], "")
    );
    insta::assert_snapshot!(
        "run_stops_at_an_error",
        show_in(folder.path(), &["run", "divide.yaml", "0", "2"], "")
    );
}

#[test]
fn a_closed_stdout_is_not_an_error() {
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
