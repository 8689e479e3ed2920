//! `ask` and `run` in pipes: stdin, attachments, instructions, structured answers, events, and what is left
//! out.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{json, json_with, show_in, show_with};

const ASK: &[&str] = &["ask", "--model", "scripted/replies.yaml", "--tools", "none"];

fn folder(replies: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("replies.yaml"), replies).unwrap();
    folder
}

/// What the model was asked: the text of the user's messages.
fn asked(folder: &Path, args: &[&str], input: &str) -> Vec<String> {
    let outcome = json_with(folder, &[ASK, args].concat(), input, &[]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let answer = outcome.value();
    let of_user = answer["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    of_user.map(|message| message["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_piped_in_is_context_or_the_question_itself() {
    let folder = folder("- text: Because.\n");
    let folder = folder.path();
    std::fs::write(folder.join("notes.txt"), "first note\n").unwrap();
    let log = "<file name=\"stdin\">\nit broke\n</file>";
    let notes = "<file name=\"notes.txt\">\nfirst note\n</file>";
    for (args, input, question) in [
        (&["Why?"][..], "", "Why?".to_owned()),
        (&["Why?"], "it broke\n", format!("{log}\n\nWhy?")),
        (&["Why", "did", "it?"], "", "Why did it?".to_owned()),
        (&[], "Why?\n", "Why?".to_owned()),
        (&["-"], "Why?\n", "Why?".to_owned()),
        (&["Read this:", "-"], "a text\n", "Read this:\n\na text".to_owned()),
        (&["Why?", "-a", "notes.txt"], "", format!("{notes}\n\nWhy?")),
        (&["@notes.txt", "Why?"], "it broke", format!("{log}\n\n{notes}\n\nWhy?")),
        // Other people's text attaches nothing.
        (&[], "@notes.txt", "@notes.txt".to_owned()),
    ] {
        assert_eq!(asked(folder, args, input), [question], "{args:?} {input:?}");
    }
    json(folder, ASK).fails("parsing", 2, &["stdin is empty"]);
    json(folder, &[ASK, &["Why?", "@missing.txt"]].concat()).fails("parsing", 2, &["missing.txt"]);
}

#[test]
fn pictures_are_attached_as_pictures_and_documents_as_their_text() {
    let folder = folder("- text: Fine.\n");
    let folder = folder.path();
    std::fs::write(folder.join("p.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
    let mail = "From: ada@example.com\nTo: bob@example.com\nSubject: Lunch\nDate: Mon, 2 Nov 2026 10:00:00 +0000\n\nAt noon?\n";
    std::fs::write(folder.join("m.eml"), mail).unwrap();
    let args = [ASK, &["What is it?", "-a", "p.png", "-a", "m.eml"]].concat();
    let answer = json(folder, &args).value();
    let content = &answer["messages"][1]["content"];
    assert_eq!((&content[0]["type"], &content[1]["type"]), (&"image".into(), &"text".into()), "{answer}");
    let text = content[1]["text"].as_str().unwrap();
    assert!(text.contains("At noon?") && text.contains("Lunch") && text.ends_with("What is it?"), "{text}");
}

#[test]
fn instructions_are_usual_given_or_none() {
    let folder = folder("- text: Yes.\n");
    let folder = folder.path();
    std::fs::write(folder.join("rules.txt"), "Answer in Latin.").unwrap();
    let system = |args: &[&str]| {
        let answer = json(folder, &[ASK, &["Well?"], args].concat()).value();
        let first = answer["messages"][0].clone();
        (first["role"] == "system").then(|| first["content"][0]["text"].as_str().unwrap().to_owned())
    };
    assert!(system(&[]).unwrap().contains("Answer what is asked"));
    assert!(system(&["--tools", "bash"]).unwrap().contains("never the same call twice"));
    assert_eq!(system(&["--system", "Be kind."]).as_deref(), Some("Be kind."));
    assert_eq!(system(&["--system", "@rules.txt"]).as_deref(), Some("Answer in Latin."));
    assert_eq!(system(&["--system", ""]), None);
    let shown = show_in(folder, &[ASK, &["Well?", "-v", "--no-record"]].concat(), "");
    for told in ["instructions: You are", "tools: none", "for the conversation", "--- stdout\nYes.\n"] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
}

#[test]
fn an_answer_that_does_not_follow_the_schema_is_asked_for_again() {
    let wanted = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    let good = "- text: four\n- {text: '{\"n\": \"four\"}', expect: no JSON value}\n- {text: '{\"n\": 4}', expect: '`n`'}\n";
    let ask = |folder: &Path, args: &[&str]| {
        std::fs::write(folder.join("schema.json"), wanted).unwrap();
        json(folder, &[ASK, &["How many?", "--schema"], args].concat())
    };
    let first = folder(good);
    let outcome = ask(first.path(), &["schema.json"]);
    assert_eq!((outcome.code, outcome.value()["value"].clone()), (Some(0), serde_json::json!({"n": 4})));
    let plain = show_in(first.path(), &[ASK, &["How many?", "--schema", wanted, "-q"]].concat(), "");
    assert!(plain.ends_with("--- stdout\n{\n  \"n\": 4\n}\n--- exit 0\n"), "{plain}");
    let stubborn = folder("- text: no\n- text: no\n- text: no\n");
    let outcome = ask(stubborn.path(), &["schema.json"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.error()["message"].as_str().unwrap().contains("no answer in 3 tries follows the schema"));
    ask(stubborn.path(), &["nowhere.json"]).fails("parsing", 2, &["nowhere.json"]);
}

#[test]
fn a_conversation_continues_with_its_model() {
    let folder = folder("- text: I am well.\n");
    let folder = folder.path();
    std::fs::write(folder.join("more.yaml"), "- {text: As I said., expect: And now?}\n").unwrap();
    let outcome = json(folder, &["ask", "-c", "And now?"]);
    outcome.fails("parsing", 2, &["no conversation in this folder"]);
    assert_eq!(asked(folder, &["How are you?"], ""), ["How are you?"]);
    // The script begins anew in each process, and knows one answer.
    assert_eq!(asked(folder, &["-c", "And now?"], ""), ["How are you?", "And now?"]);
    let other = ["ask", "-c", "And now?", "--tools", "none", "--model", "scripted/more.yaml"];
    let answer = json(folder, &other).value();
    assert_eq!(answer["answer"], "As I said.");
    assert_eq!(answer["messages"].as_array().unwrap().len(), 7, "{answer}");
    // The model of the last one is the one that goes on, and a chat takes the conversation up too.
    let answer = json(folder, &["ask", "-c", "And now?", "--tools", "none"]).value();
    assert_eq!(answer["answer"], "As I said.");
    let chat = show_in(folder, &["chat", "--resume", "--tools", "none", "--no-record"], "And now?\n");
    assert!(chat.contains("As I said."), "{chat}");
}

#[test]
fn events_are_printed_one_a_line() {
    let folder = folder("- calls: [{tool: bash, arguments: {command: echo hello}}]\n- text: Done.\n");
    let ask = ["ask", "go", "--model", "scripted/replies.yaml", "--tools", "bash", "--jsonl", "--no-record"];
    let shown = show_in(folder.path(), &ask, "");
    let lines = shown.lines().filter(|line| line.starts_with('{'));
    let events: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names[0], *names.last().unwrap()), ("run_started", "run_finished"), "{shown}");
    assert!(names.contains(&"call_finished") && !shown.contains("--- stderr"), "{shown}");
}

#[test]
fn a_quiet_command_prints_its_answer_only_and_nested_calls_are_folded() {
    let file = "tools:
  - {name: one, description: d, input: [{name: n, type: int, description: d}], do: {eval: \"${n}\"}}
  - name: many
    description: d
    do: {for_each: \"${range(40)}\", do: {call: one, params: {n: \"${_}\"}}}
";
    let folder = folder("- calls: [{tool: many, arguments: {}}]\n- text: Done.\n");
    let folder = folder.path();
    std::fs::write(folder.join("t.yaml"), file).unwrap();
    let ask = ["ask", "go", "--model", "scripted/replies.yaml", "-f", "t.yaml", "--yes"];
    let shown = show_in(folder, &ask, "");
    assert!(shown.contains("and 32 further calls"), "{shown}");
    assert!(shown.lines().count() < 25, "{shown}");
    let whole = show_in(folder, &[&ask[..], &["-v"]].concat(), "");
    assert!(whole.matches("one(n=").count() == 40, "{whole}");
    let quiet = show_in(folder, &[&ask[..], &["-q"]].concat(), "");
    assert!(quiet.ends_with("-q\n--- stdout\nDone.\n--- exit 0\n"), "{quiet}");
}

#[test]
fn tools_are_named_before_and_behind_the_question() {
    let folder = folder("- text: Done.\n");
    let offered = |args: &[&str]| {
        let args = [&["ask", "--model", "scripted/replies.yaml", "-v", "--no-record"], args].concat();
        let shown = show_in(folder.path(), &args, "");
        let line = shown.lines().find_map(|line| line.strip_prefix("tools: ")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{shown}"))
    };
    assert_eq!(offered(&["--tools", "bash", "go"]), "bash");
    assert_eq!(offered(&["go", "--tools", "bash,read_file"]), "bash, read_file");
    assert_eq!(offered(&["--tools", "read_*", "--tools=bash", "go"]), "bash, read_file, read_figure");
    assert_eq!(offered(&["--tools", "none", "go"]), "none");
    let default = offered(&["--profile", "default", "go"]);
    assert_eq!(default.split(", ").count(), 8, "{default}");
    assert_eq!(offered(&["--profile", "default", "--tools", "!bash", "go"]), default.replace("bash, ", ""));
    assert!(offered(&["--profile", "code", "go"]).contains("apply_patch"));
    let unknown =
        json(folder.path(), &["ask", "--tools", "read_fil", "go", "--model", "scripted/replies.yaml"]);
    unknown.fails("parsing", 2, &["`read_fil`", "did you mean `read_file`"]);
}

#[test]
fn a_run_reads_its_inputs_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let file = "cli: {process_input: one_by_one, do: {eval: \"got ${input}\"}}\n";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    for args in [&["run", "t.yaml", "-q"][..], &["run", "t.yaml", "-", "-q"]] {
        let shown = show_with(folder.path(), args, "a\nb\n", &[]);
        assert!(shown.contains("--- stdout\ngot a\ngot b\n--- exit 0"), "{shown}");
    }
}

/// A program may start us with a pipe that it never closes: that is said.
#[test]
fn waiting_for_stdin_is_reported() {
    let folder = folder("- text: Done.\n");
    let mut process = Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(ASK)
        .arg("go")
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stderr = std::io::BufReader::new(process.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.contains("reading stdin"), "{line}");
    drop(process.stdin.take());
    assert!(process.wait().unwrap().success());
}
