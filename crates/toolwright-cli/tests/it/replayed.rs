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

/// The tools of servers are known from the record only, in flows too.
#[test]
fn a_replay_starts_no_server() {
    let us = env!("CARGO_BIN_EXE_toolwright");
    let file = format!(
        "\
mcp:
  all: {{transport: stdio, command: sh, args: ['-c', 'echo x >> started; exec {us} serve'], auto_import_scope: shared}}
  one: {{transport: stdio, command: sh, args: ['-c', 'echo x >> started; exec {us} serve'], auto_import_scope: none}}
models: {{default: scripted/asks.yaml}}
policy: [{{tools: '*', decision: approve}}]
tools:
  - {{import_tool: mcp:one/add, name: plus}}
  - name: sum
    description: d
    do: [{{call: all_add, params: {{x: 1, y: 2}}}}, {{eval: 'it is ${{_[0].text}}'}}]
  - name: more
    description: d
    do: [{{call: sum}}, {{call: plus, params: {{x: 3, y: 4}}}}, {{eval: 'more is ${{_[0].text}}'}}]
"
    );
    let asks = "- calls: [{tool: all_add, arguments: {x: 1, y: 2}}, {tool: plus, arguments: {x: 5, y: 6}}]\n- text: done\n";
    let folder = folder(&[("t.yaml", &file), ("asks.yaml", asks)]);
    let started = || std::fs::read_to_string(folder.path().join("started")).unwrap_or_default().len();
    let unchecked = "no server is started, so the arguments of its tools are not checked: ";
    for args in [&["call", "more", "-f", "t.yaml"][..], &["ask", "go", "-f", "t.yaml"]] {
        let shown = show_in(folder.path(), args, "");
        assert!(shown.contains("more is 7") || shown.contains("done"), "{shown}");
        let before = started();
        let shown = show_in(folder.path(), &["replay", "last", "-f", "t.yaml"], "");
        assert!(shown.contains("no difference") && shown.ends_with("--- exit 0\n"), "{shown}");
        assert!(shown.contains(unchecked) && !shown.contains("changed"), "{shown}");
        assert_eq!(started(), before);
    }
    // What a flow makes of a tool that it names by itself is today's.
    show_in(folder.path(), &["call", "more", "-f", "t.yaml"], "");
    std::fs::write(folder.path().join("t.yaml"), file.replace("more is", "now it is")).unwrap();
    let shown = show_in(folder.path(), &["replay"], "");
    assert!(shown.contains("more gives now it is 7") && shown.ends_with("--- exit 1\n"), "{shown}");
}

/// A server whose tools have no prefix could have any tool; those that the file has elsewhere are not the server's.
#[test]
fn a_server_without_prefix_hides_no_change_of_a_flow() {
    let us = env!("CARGO_BIN_EXE_toolwright");
    let file = format!(
        "\
mcp:
  s: {{transport: stdio, command: {us}, args: [serve, --tools, add], auto_import_scope: none}}
models: {{default: scripted/asks.yaml}}
tools:
  - {{import_tools: mcp:s, prefix: ''}}
  - name: outer
    description: d
    tools: [{{name: own, do: {{eval: 'mine'}}}}]
    do: [{{call: own}}, {{eval: 'it is ${{_}}'}}]
cli:
  process_input: one_by_one
  tools: [{{name: shout, input: [{{name: text, type: str}}], do: {{eval: '${{text.upper()}}'}}}}]
  do: [{{call: shout, params: {{text: '${{input}}'}}}}, {{eval: 'so ${{_}}'}}]
"
    );
    let folder = folder(&[("t.yaml", &file), ("asks.yaml", "- text: done\n")]);
    for (args, old, new, told) in [
        (&["call", "outer", "-f", "t.yaml"][..], "it is", "now it is", "outer gives now it is mine"),
        (&["run", "t.yaml", "ada"], "so ", "now so ", "now so ADA"),
    ] {
        std::fs::write(folder.path().join("t.yaml"), &file).unwrap();
        let shown = replayed(folder.path(), args);
        assert!(shown.contains("no difference"), "{shown}");
        std::fs::write(folder.path().join("t.yaml"), file.replace(old, new)).unwrap();
        let shown = show_in(folder.path(), &["replay"], "");
        assert!(shown.contains(told) && shown.ends_with("--- exit 1\n"), "{shown}");
    }
}
