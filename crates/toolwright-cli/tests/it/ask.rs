//! `toolwright ask`: the demo, scripted models, limits, and models inside tools.

use crate::{show, show_in};

#[test]
fn the_demo_model_tells_its_story() {
    let mut shown = show(&["ask", "What can you do?"]);
    if shown.contains("no sandbox: ") {
        eprintln!("SKIPPED: the demo needs a sandbox, and there is none here");
        return;
    }
    for (pattern, text) in [(crate::RUN_ID, "[run]"), (r"\S*/toolwright/demo\b", "[folder]")] {
        shown = regex::Regex::new(pattern).unwrap().replace_all(&shown, text).into_owned();
    }
    insta::assert_snapshot!("demo", shown);
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
    insta::assert_snapshot!("scripted_model", show_in(folder.path(), &args, ""));
    let transcript = toolwright::events::Transcript::load(&folder.path().join("run.jsonl")).unwrap();
    assert!(transcript.open_calls().is_empty() && transcript.events.len() > 5);
}

#[test]
fn a_limit_ends_a_run_with_exit_1() {
    let folder = tempfile::tempdir().unwrap();
    let script = "- calls: [{tool: add, arguments: {x: 1, y: 1}}]\n".repeat(5);
    std::fs::write(folder.path().join("replies.yaml"), script).unwrap();
    let args = ["ask", "go", "--model", "scripted/replies.yaml", "--max-turns", "2"];
    insta::assert_snapshot!(
        "turn_limit",
        show_in(folder.path(), &[&args[..], &["--no-record"]].concat(), "")
    );
}

#[test]
fn a_confidential_result_is_the_answer_of_a_nested_model_and_long_results_are_cut() {
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
