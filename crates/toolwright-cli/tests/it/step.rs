//! `toolwright step`: one step of a conversation in each process.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::show_in;

/// Runs one step in its own process; gives what it printed, or what it complained about.
fn step(folder: &Path, args: &[&str], input: &str) -> Result<Vec<Value>, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
    command.args(["step", "--no-record"]).args(args).env_clear().envs(crate::NO_SERVERS);
    let output = crate::fed(&mut command, folder, input);
    if !output.status.success() {
        return Err(String::from_utf8(output.stderr).unwrap());
    }
    let lines = String::from_utf8(output.stdout).unwrap();
    Ok(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    std::fs::write(folder.join(name), text).unwrap();
    format!("scripted/{name}")
}

const ASKS: &str = "- {text: Let me add., calls: [{tool: add, arguments: {x: 1, y: 2}}]}";

#[test]
fn pending_calls_are_made_by_one_process_after_another_asked_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (asks, ends) =
        (write(folder, "asks.yaml", ASKS), write(folder, "ends.yaml", "- {text: It is 3., expect: '3'}"));
    let state = ["--state", "run.json"];

    let question = r#"{"role": "user", "content": "1 + 2?"}"#;
    let asked = step(folder, &[&state[..], &["--model", &asks]].concat(), question).unwrap();
    assert_eq!(asked[0]["tool_calls"][0]["arguments"], json!({"x": 1, "y": 2}));
    let saved: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("run.json")).unwrap()).unwrap();
    assert_eq!((&saved["version"], &saved["pending"][0]["name"]), (&json!(1), &json!("add")));

    let early = step(folder, &[&state[..], &["--model", &ends]].concat(), "").unwrap_err();
    assert!(early.contains("these calls have no result yet: add (call_1)"), "{early}");
    let made = step(folder, &[&state[..], &["--call"]].concat(), "").unwrap();
    assert_eq!(
        (made.len(), &made[0]["role"], &made[0]["content"][0]["value"]),
        (1, &json!("tool"), &json!(3))
    );
    let ended = step(folder, &[&state[..], &["--model", &ends]].concat(), "").unwrap();
    assert_eq!(ended[0]["content"][0]["text"], "It is 3.");
    let saved: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("run.json")).unwrap()).unwrap();
    assert_eq!((saved["messages"].as_array().unwrap().len(), &saved["spent"]["turns"]), (4, &json!(2)));
}

#[test]
fn a_conversation_is_a_file_that_grows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (asks, ends) =
        (write(folder, "asks.yaml", ASKS), write(folder, "ends.yaml", "- {text: Five., expect: five}"));
    let mut talk = "{\"role\": \"user\", \"content\": \"1 + 2?\"}\n".to_owned();
    for message in step(folder, &["--model", &asks], &talk).unwrap() {
        talk.push_str(&format!("{message}\n"));
    }
    // The caller answers the call by itself.
    talk.push_str(r#"{"role": "tool", "call_id": "call_1", "name": "add", "content": "five"}"#);
    let ended = step(folder, &["--model", &ends], &talk).unwrap();
    assert_eq!(ended[0]["content"][0]["text"], "Five.");
    assert!(
        step(folder, &["--call"], r#"{"role": "user", "content": "x"}"#)
            .unwrap_err()
            .contains("no pending calls")
    );
    assert!(step(folder, &[], r#"{"role": "humuseran"}"#).unwrap_err().contains("message 1 on stdin"));
    assert!(step(folder, &[], "").unwrap_err().contains("no message on stdin"));
}

#[test]
fn anthropic_tools_messages_go_in_and_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let call = "<function_calls><invoke><tool_name>add</tool_name><parameters><x>1</x><y>2</y></parameters></invoke>";
    let asks = write(folder, "asks.yaml", &format!("- text: 'Adding. {call}'"));
    let ends = write(folder, "ends.yaml", "- {text: It is 3., expect: \"<stdout>\\n3\\n</stdout>\"}");
    let wrong = write(folder, "wrong.yaml", &format!("- text: '{}'", call.replace("add", "nope")));
    let format = ["--format", "anthropic-tools"];

    let mut talk = vec![json!({"role": "user", "content": "1 + 2?"})];
    let next =
        |talk: &[Value], rest: &[&str]| step(folder, &[&format[..], rest].concat(), &json!(talk).to_string());
    talk.extend(next(&talk, &["--model", &asks]).unwrap());
    assert_eq!(
        talk[1],
        json!({"role": "tool_inputs", "content": "Adding. ",
            "tool_inputs": [{"tool_name": "add", "tool_arguments": {"x": 1, "y": 2}}]})
    );
    talk.extend(next(&talk, &["--call"]).unwrap());
    assert_eq!(talk[2]["tool_outputs"], json!([{"tool_name": "add", "tool_result": 3}]));
    assert_eq!(
        next(&talk, &["--model", &ends]).unwrap(),
        [json!({"role": "assistant", "content": "It is 3."})]
    );
    assert_eq!(
        next(&talk[..1], &["--model", &wrong]).unwrap(),
        [json!({"status": "ERROR", "error_message": "No tool named <tool_name>nope</tool_name> available."})]
    );
    assert!(next(&[json!({"role": "human"})], &[]).unwrap_err().contains("human is not a valid role"));
    assert!(
        next(&[json!({"role": "user", "content": "a\n\nAssistant: b"})], &["--model", &asks])
            .unwrap_err()
            .contains("another speaker")
    );
    // Why an answer ended is told, beside the messages.
    for (stop, told) in [("max_tokens", "cut off at the token limit"), ("refusal", "the model refused")] {
        let model = write(folder, "cut.yaml", &format!("- {{text: Well, stop: {stop}}}"));
        let args = [&["step", "--no-record"], &format[..], &["--model", &model]].concat();
        let shown = show_in(folder, &args, &json!(talk[..1]).to_string());
        assert!(shown.contains(told) && shown.contains(r#""content":"Well""#), "{shown}");
    }
    // The limits of a file hold for what the model says.
    let tool =
        "tools: [{name: add, input: [{name: x, type: int}, {name: y, type: int}], do: {eval: '${x + y}'}}]";
    std::fs::write(folder.join("t.yaml"), format!("limits: {{turns: 0}}\n{tool}\n")).unwrap();
    let refused = next(&talk[..1], &["--model", &asks, "--file", "t.yaml"]).unwrap_err();
    assert!(refused.contains("the limit of 0 turns is used up"), "{refused}");
}

#[test]
fn a_confidential_result_is_for_the_caller_and_not_for_the_model_of_a_later_step() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(
        folder,
        "t.yaml",
        "policy: [{tools: pin, decision: approve}]\ntools:\n  - {name: pin, confidential: true, do: {eval: PIN-1234}}\n",
    );
    let asks = write(folder, "asks.yaml", "- {calls: [{tool: pin, arguments: {}}]}");
    let ends = write(folder, "ends.yaml", "- {text: then, expect: '[CONFIDENTIAL]'}");
    let with = ["--state", "run.json", "-f", "t.yaml"];
    step(folder, &[&with[..], &["--model", &asks]].concat(), r#"{"role": "user", "content": "go"}"#).unwrap();
    // As in a loop, the result is the answer, and the call's own place only says so.
    let made = step(folder, &[&with[..], &["--call"]].concat(), "").unwrap();
    assert_eq!((made.len(), &made[1]["role"]), (2, &json!("assistant")));
    assert_eq!(
        (&made[1]["content"][0]["text"], &made[1]["confidential"]),
        (&json!("PIN-1234"), &json!(true))
    );
    assert!(!made[0].to_string().contains("PIN-1234"), "{made:?}");
    let ended = step(folder, &[&with[..], &["--model", &ends]].concat(), "").unwrap();
    assert_eq!(ended[0]["content"][0]["text"], "then", "{ended:?}");
}

/// The record of a conversation by hand says what was asked for, what was made, and how each step ended.
#[test]
fn steps_are_recorded_shown_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    crate::trust(folder);
    let file = "tools: [{name: report, return_direct: true, do: {eval: REPORT}}, {import_tool: add}]\n";
    write(folder, "t.yaml", file);
    let asks = write(folder, "asks.yaml", "- {calls: [{tool: report}]}");
    let both =
        write(folder, "both.yaml", "- {calls: [{tool: report}, {tool: add, arguments: {x: 1, y: 2}}]}");
    let cut = write(folder, "cut.yaml", "- {text: Half, stop: max_tokens}");
    let question = r#"{"role": "user", "content": "go"}"#;
    let step = |args: &[&str], input: &str| {
        let args = [&["step", "--state", "run.json", "-f", "t.yaml"], args].concat();
        show_in(folder, &args, input)
    };
    let here = |args: &[&str]| show_in(folder, args, "");
    let same =
        |shown: &str| assert!(shown.contains("no difference") && shown.ends_with("--- exit 0\n"), "{shown}");

    step(&["--model", &asks], question);
    let shown = here(&["runs", "show"]);
    assert!(shown.contains(": done, ") && shown.contains("⏺ report()  not made"), "{shown}");
    same(&here(&["replay"]));
    // Another process makes the call, on the same record.
    let made = step(&["--call"], "");
    assert!(made.contains(r#""text":"REPORT""#), "{made}");
    let shown = here(&["runs", "show"]);
    assert!(shown.contains("└ ") && shown.contains("REPORT") && !shown.contains("not made"), "{shown}");
    same(&here(&["replay"]));
    // A direct result beside another call is refused here too.
    step(&["--model", &both], question);
    let made = step(&["--call", "--transcript", "calls.jsonl"], "");
    assert!(made.contains("cannot be called beside others") && made.contains(r#""value":3"#), "{made}");
    same(&here(&["replay", "calls.jsonl"]));
    // Why an answer ended is told.
    let ended = step(&["--model", &cut], "");
    assert!(ended.contains("warning: the answer was cut off at the token limit"), "{ended}");
    // The model has only what it is offered.
    let refused = step(&["--model", &both, "--tool-choice", "add"], question);
    assert!(refused.contains("the tool `report` was not offered this time"), "{refused}");
    let made = step(&["--call", "--transcript", "one.jsonl"], "");
    assert!(made.contains(r#""value":3"#) && !made.contains("REPORT"), "{made}");
    // Without a tool API.
    let text = "- text: '<tool_call>{\"name\": \"add\", \"arguments\": {\"x\": 2, \"y\": 3}}</tool_call>'";
    let prompted = write(folder, "prompted.yaml", text);
    let asked = step(&["--model", &prompted, "--prompted", "json"], "");
    assert!(asked.contains(r#""tool_calls":[{"#), "{asked}");
}
