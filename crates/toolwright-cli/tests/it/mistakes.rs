//! One mistake of each kind a person makes: what is printed, and the exit code.

use crate::{show, show_in};

#[test]
fn mistakes_in_calls() {
    insta::assert_snapshot!(show(&["call", "ad", "x=1"]));
    insta::assert_snapshot!(show(&["call", "add", "x=one", "z=3"]));
    insta::assert_snapshot!(show(&["call", "add", "x"]));
    insta::assert_snapshot!(show(&["call", "add", "x=1", "x=2"]));
    insta::assert_snapshot!(show(&["call", "add", "x:=[1"]));
    insta::assert_snapshot!(show(&["call", "add", "--args", "[1]"]));
    insta::assert_snapshot!(show(&["call", "add", "--args", "{x: 1}"]));
    insta::assert_snapshot!(show(&["call", "add", "x=9223372036854775807", "y=1"]));
    insta::assert_snapshot!(show(&["call", "add", "x=1", "--json"]));
    insta::assert_snapshot!(show(&["call", "chart", "values=[0]"]));
    insta::assert_snapshot!(show(&["call", "add", "x=1", "y=2", "--timeout", "5x"]));
    insta::assert_snapshot!(show(&["call", "add", "x=1", "y=2", "--transcript", "no/such/folder/t.jsonl"]));
}

#[test]
fn mistakes_in_what_is_asked() {
    insta::assert_snapshot!(show(&["tools", "nothing_*"]));
    insta::assert_snapshot!(show(&["ask", "hi", "--model", "gpt-9"]));
    insta::assert_snapshot!(show(&["ask", "hi", "--model", "scripted/missing.yaml"]));
    insta::assert_snapshot!(show(&["frobnicate"]));
    insta::assert_snapshot!(show(&["ask", "hi", "--model", "anthropic/claude-sonnet-4-5"]));
    insta::assert_snapshot!(show(&["ask", "hi", "--model", "openai-compatible/m"]));
    insta::assert_snapshot!(show(&["ask", "hi", "--model", "antropic/m"]));
}

/// The file that is here is used without being named; the demo keeps to its own tools.
#[test]
fn the_default_file_is_used_and_the_demo_is_not_made_to() {
    let folder = tempfile::tempdir().unwrap();
    let here = |args: &[&str]| show_in(folder.path(), args, "");
    here(&["init"]);
    insta::assert_snapshot!(here(&["call", "greet", "name=ada"]));
    insta::assert_snapshot!(here(&["tools", "greet"]));
    insta::assert_snapshot!(here(&["call", "gret", "name=ada"]));
    // A built-in tool needs no file.
    assert!(!here(&["call", "add", "x=1", "y=2"]).contains("toolwright.yaml"));
    insta::assert_snapshot!(here(&["ask", "hi"]));
    insta::assert_snapshot!(here(&["ask", "hi", "-f", "toolwright.yaml", "--model", "demo"]));
    insta::assert_snapshot!(here(&["check", "tolwright.yaml"]));
    assert!(here(&["ask", "hi", "--model", "demo"]).contains("I am a script"));
}

/// What is wrong with the command line itself, for people and for programs.
#[test]
fn mistakes_in_commands_and_options() {
    insta::assert_snapshot!(show(&["aks", "hi"]));
    insta::assert_snapshot!(show(&["--json", "aks", "hi"]));
    insta::assert_snapshot!(show(&["ask", "hi", "--modle", "x", "--json"]));
    insta::assert_snapshot!(show(&["call", "add", "{\"x\": 1}"]));
    insta::assert_snapshot!(show(&["check", "."]));
    // An option of one command is an option of its neighbours.
    let folder = tempfile::tempdir().unwrap();
    let here = |args: &[&str]| show_in(folder.path(), args, "");
    here(&["init", "mine"]);
    for command in ["tools", "check", "models", "chat"] {
        let shown = here(&[command, "-f", "mine", "--json"]);
        assert!(!shown.contains("unexpected argument") && !shown.contains("there is no file"), "{shown}");
    }
    // However long a word is, the answer is not.
    let long = "x".repeat(100_000);
    let commands: [&[&str]; 4] =
        [&[&long], &["call", &long], &["check", &long], &["ask", "hi", "--model", &long]];
    for args in commands {
        let shown = show(args);
        let (_, answer) = shown.split_once("--- stderr").unwrap();
        assert!(answer.len() < 5000 && answer.contains("--- exit 2"), "{}", answer.len());
    }
}

#[test]
fn mistakes_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let bad = "- {tools: bash, decision: perhaps}\n- {tools: bash, decision: reject, when: {c: 'x*'}, examples: {match: [{c: y}]}}\n";
    std::fs::write(folder.path().join("policy.yaml"), bad).unwrap();
    insta::assert_snapshot!(show_in(folder.path(), &["check", "--policy", "policy.yaml"], ""));
    std::fs::write(folder.path().join("replies.yaml"), "- {txt: hi}\n").unwrap();
    insta::assert_snapshot!(show_in(folder.path(), &["ask", "x", "--model", "scripted/replies.yaml"], ""));
}

#[test]
fn models_of_a_file_are_asked_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = "models:\n  default: scripted/replies.yaml\n  big: {model: anthropic/claude-sonnet-4-5, key_env: MY_KEY}\ntools: []\n";
    std::fs::write(folder.path().join("tools.yaml"), file).unwrap();
    std::fs::write(folder.path().join("replies.yaml"), "- {text: hello}\n").unwrap();
    insta::assert_snapshot!(show_in(folder.path(), &["ask", "x", "-f", "tools.yaml", "--no-record"], ""));
    insta::assert_snapshot!(show_in(folder.path(), &["ask", "x", "-f", "tools.yaml", "--model", "big"], ""));
    insta::assert_snapshot!(show_in(
        folder.path(),
        &["ask", "x", "-f", "tools.yaml", "--model", "small"],
        ""
    ));
    std::fs::write(folder.path().join("bad.yaml"), "models: {a: {modle: x/y}}\ntools: []\n").unwrap();
    insta::assert_snapshot!(show_in(folder.path(), &["check", "bad.yaml"], ""));
}

/// A reader of stderr that goes away changes neither the work nor how it ends.
#[test]
fn problems_are_told_to_nobody_without_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.yaml"), "tools: [{name: t, do: {eval: '${who}'}}]\n").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(["check", "bad.yaml"])
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path())
        .stdout(std::process::Stdio::null())
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(2));
}
