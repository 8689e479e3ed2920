//! Replays of what each command records: with nothing changed, nothing differs, and nothing is started.

use std::path::Path;

use crate::show_in;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Runs a command, which does well, and replays it: gives what the replay says.
fn replayed(folder: &Path, args: &[&str]) -> String {
    let shown = show_in(folder, args, "");
    assert!(shown.ends_with("--- exit 0\n"), "{shown}");
    show_in(folder, &["replay"], "")
}

/// Nothing is different, and nothing is said about it.
fn same(shown: &str) {
    assert_eq!(shown, "$ toolwright replay\n--- stdout\nno difference\n--- exit 0\n");
}

/// The flow of a `cli` section is run again, input by input, with what it stored and the command line it saw.
#[test]
fn a_replay_of_a_batch_runs_its_flow_again() {
    let file = "\
cli:
  process_input: one_by_one
  tools: [{name: shout, input: [{name: text, type: str}], do: {eval: '${text.upper()}'}}]
  do:
    - {call: shout, params: {text: '${input}'}}
    - eval: '${_} of ${env.CLI_ARGS.inputs} in ${env.CLI_ARGS.script_file}'
";
    let folder = folder(&[("t.yaml", file)]);
    same(&replayed(folder.path(), &["run", "t.yaml", "ada", "grace"]));
    std::fs::write(folder.path().join("t.yaml"), file.replace("upper", "title")).unwrap();
    let shown = show_in(folder.path(), &["replay"], "");
    assert!(shown.contains("shout gives Ada") && shown.ends_with("--- exit 1\n"), "{shown}");
    // All inputs as one.
    let file = file.replace("one_by_one", "all_as_list").replace("'${input}'", "'${input[0]}'");
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    same(&replayed(folder.path(), &["run", "t.yaml", "ada", "grace"]));
    // The file that `init` writes.
    show_in(folder.path(), &["init", "--yes"], "");
    same(&replayed(folder.path(), &["run", "toolwright.yaml", "ada"]));
}

/// A `chat` section says what the chat has, and nothing about other commands.
#[test]
fn a_replay_has_the_tools_of_its_command() {
    let file = "\
models: {default: scripted/asks.yaml}
tools:
  - {name: greet, description: Greets., input: [{name: who, type: str}], do: {eval: 'Hello ${who}'}}
  - {import_tool: add}
chat:
  tools: [add, {name: own, description: d, do: {eval: mine}}]
cli: {process_input: one_by_one, do: {call: greet, params: {who: '${input}'}}}
";
    let asks = "- calls: [{tool: greet, arguments: {who: ada}}, {tool: add, arguments: {x: 1, y: 2}}]\n- text: done\n";
    let folder = folder(&[("t.yaml", file), ("asks.yaml", asks)]);
    same(&replayed(folder.path(), &["call", "greet", "who=ada", "-f", "t.yaml"]));
    same(&replayed(folder.path(), &["run", "t.yaml", "ada"]));
    same(&replayed(folder.path(), &["ask", "go", "-f", "t.yaml"]));
    // The chat's own are those of a chat.
    std::fs::write(folder.path().join("asks.yaml"), "- calls: [{tool: own}]\n- text: done\n").unwrap();
    let shown = show_in(folder.path(), &["chat", "t.yaml"], "go\n");
    assert!(shown.contains("mine") && shown.ends_with("--- exit 0\n"), "{shown}");
    same(&show_in(folder.path(), &["replay"], ""));
    // With another file the name may be a flow that is not for the command: it is not run.
    let file = file.replace("name: greet", "name: other").replace("name: own", "name: greet");
    std::fs::write(folder.path().join("u.yaml"), file.replace("call: greet", "call: other")).unwrap();
    show_in(folder.path(), &["call", "greet", "who=ada", "-f", "t.yaml"], "");
    let shown = show_in(folder.path(), &["replay", "last", "-f", "u.yaml"], "");
    assert!(shown.contains("`greet` is not here now") && shown.contains("no difference"), "{shown}");
}

/// A tool that asks a model is answered whole, so the calls of that model are no difference.
#[test]
fn a_replay_does_not_miss_what_a_model_inside_a_tool_called() {
    let file = "\
models: {default: scripted/asks.yaml, inner: scripted/inner.yaml}
policy: [{tools: '*', decision: approve}]
tools:
  - {import_tool: add}
  - {name: pin, description: d, do: {eval: PIN-1234}}
  - {import_tool: build_llm_tool, name: helper, description: h, config: {model_ref: inner, tools: [pin, add]}}
  - {name: twice, description: d, do: [{call: helper, params: {prompt: go}}, {eval: '${_ * 2}'}]}
";
    let inner = "- calls: [{tool: pin}, {tool: add, arguments: {x: 1, y: 2}}]\n- text: seen\n";
    let asks = "- calls: [{tool: helper, arguments: {prompt: go}}]\n- text: done\n";
    let folder = folder(&[("t.yaml", file), ("inner.yaml", inner), ("asks.yaml", asks)]);
    same(&replayed(folder.path(), &["ask", "go", "-f", "t.yaml"]));
    same(&replayed(folder.path(), &["call", "twice", "-f", "t.yaml"]));
    // What is around it is looked at as before.
    std::fs::write(folder.path().join("t.yaml"), file.replace("_ * 2", "_ * 3")).unwrap();
    let shown = show_in(folder.path(), &["replay"], "");
    assert!(
        shown.contains("- ") && shown.contains("seenseenseen") && shown.ends_with("--- exit 1\n"),
        "{shown}"
    );
}
