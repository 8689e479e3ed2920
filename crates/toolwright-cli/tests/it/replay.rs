//! Replays: with nothing changed, nothing differs and nothing is started; what changed is shown.

use std::path::Path;

use crate::records::{ASK, calm, folder};
use crate::terminal::Terminal;
use crate::{json, show_in};

/// A folder with these files.
fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
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

/// Replays a run that must not differ, and gives the remarks about it.
#[track_caller]
fn no_difference(folder: &Path, args: &[&str]) -> Vec<String> {
    let replayed = json(folder, args);
    assert_eq!(
        (replayed.code, &replayed.value()["changes"]),
        (Some(0), &serde_json::json!([])),
        "{replayed:?}"
    );
    let remarks = replayed.value()["remarks"].clone();
    remarks.as_array().into_iter().flatten().filter_map(|remark| Some(remark.as_str()?.to_owned())).collect()
}

/// Nothing is different, and there are no remarks.
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
    let folder = folder_with(&[("t.yaml", file)]);
    crate::trust(folder.path());
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
    let folder = folder_with(&[("t.yaml", file), ("asks.yaml", asks)]);
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
    let remarks = no_difference(folder.path(), &["replay", "last", "-f", "u.yaml"]);
    assert!(remarks.len() == 1 && remarks[0].contains("`greet`"), "{remarks:?}");
}

/// A tool that asks a model is replayed as a whole, so the calls of that model are not a difference.
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
    let folder = folder_with(&[("t.yaml", file), ("inner.yaml", inner), ("asks.yaml", asks)]);
    crate::trust(folder.path());
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
  all: {{transport: stdio, command: sh, args: ['-c', 'echo x >> started; exec {us} serve --profile demo'], auto_import_scope: shared}}
  one: {{transport: stdio, command: sh, args: ['-c', 'echo x >> started; exec {us} serve --profile demo'], auto_import_scope: none}}
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
    let folder = folder_with(&[("t.yaml", &file), ("asks.yaml", asks)]);
    crate::trust(folder.path());
    let started = || std::fs::read_to_string(folder.path().join("started")).unwrap_or_default().len();
    for args in [&["call", "more", "-f", "t.yaml"][..], &["ask", "go", "-f", "t.yaml"]] {
        let shown = show_in(folder.path(), args, "");
        assert!(shown.contains("more is 7") || shown.contains("done"), "{shown}");
        let before = started();
        let remarks = no_difference(folder.path(), &["replay", "last", "-f", "t.yaml"]);
        assert!(
            remarks.len() == 1 && remarks[0].contains("_add") | remarks[0].contains("plus"),
            "{remarks:?}"
        );
        assert_eq!(started(), before);
    }
    // What a flow makes of a tool that it names by itself is today's.
    show_in(folder.path(), &["call", "more", "-f", "t.yaml"], "");
    std::fs::write(folder.path().join("t.yaml"), file.replace("more is", "now it is")).unwrap();
    let shown = show_in(folder.path(), &["replay"], "");
    assert!(shown.contains("more gives now it is 7") && shown.ends_with("--- exit 1\n"), "{shown}");
}

/// A server whose tools have no prefix could have any tool; those that the file has elsewhere are not the
/// server's.
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
    let folder = folder_with(&[("t.yaml", &file), ("asks.yaml", "- text: done\n")]);
    crate::trust(folder.path());
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

#[test]
fn a_replay_is_the_same_until_something_changed() {
    let folder = folder();
    let here = |args: &[&str]| calm(folder.path(), &show_in(folder.path(), args, ""));
    show_in(folder.path(), ASK, "");
    insta::assert_snapshot!("replay_same", here(&["replay"]));
    std::fs::write(folder.path().join("open.yaml"), "- {tools: '*', decision: approve}\n").unwrap();
    insta::assert_snapshot!("replay_other_policy", here(&["replay", "last", "--policy", "open.yaml"]));
    // A call that a person made has no conversation, and is replayed all the same.
    show_in(folder.path(), &["call", "countdown", "seconds=1"], "");
    no_difference(folder.path(), &["replay"]);
    // One that failed is a run that failed, and so is its replay.
    show_in(folder.path(), &["call", "add", "x=1"], "");
    let listed = here(&["runs", "--limit", "1"]);
    assert!(listed.contains("failed") && !listed.contains("done"), "{listed}");
    no_difference(folder.path(), &["replay"]);
}

/// A tool that is gone is played from the record, whatever arguments it took.
#[test]
fn a_replay_does_without_tools_that_are_gone() {
    let folder = folder();
    crate::trust(folder.path());
    let here = |args: &[&str]| calm(folder.path(), &show_in(folder.path(), args, ""));
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("tools.yaml", "tools: [{import_tool: add}]\n");
    write("adds.yaml", "- calls: [{tool: add, arguments: {x: 1, y: 2}}]\n- text: three\n");
    assert!(here(&["ask", "q", "-f", "tools.yaml", "--model", "scripted/adds.yaml"]).contains("three"));
    write("tools.yaml", "tools: [{import_tool: read_file}]\n");
    let remarks = no_difference(folder.path(), &["replay"]);
    assert!(remarks.len() == 1 && remarks[0].contains("`add`"), "{remarks:?}");
}

/// A file's tool that is gone is not the built-in tool of its name.
#[test]
fn a_replay_takes_no_built_in_tool_for_one_of_the_file() {
    let folder = folder();
    let here = |args: &[&str]| calm(folder.path(), &show_in(folder.path(), args, ""));
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let file = "tools: [{name: add, description: Adds., input: [{name: a, type: int, description: A.}], do: {eval: '${a + 1}'}}]\n";
    write("tools.yaml", file);
    write("other.yaml", &file.replace("name: add", "name: plus"));
    write("adds.yaml", "- calls: [{tool: add, arguments: {a: 1}}]\n- text: two\n");
    assert!(here(&["ask", "q", "-f", "tools.yaml", "--model", "scripted/adds.yaml"]).contains("two"));
    let remarks = no_difference(folder.path(), &["replay", "last", "-f", "other.yaml"]);
    assert!(remarks.len() == 1 && remarks[0].contains("`add`"), "{remarks:?}");
}

/// What was said before is history, and no answer of this run.
#[test]
fn a_replay_of_a_conversation_that_was_taken_up_goes_on_from_there() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let session = "\
script_name: null
messages:
- {type: human, content: Add.}
- {type: ai, content: '', tool_calls: [{name: add, args: {x: 1, y: 2}, id: c1}]}
- {type: tool, content: '3', tool_call_id: c1, name: add}
- {type: ai, content: Three.}
";
    write("a.chat.yaml", session);
    write("more.yaml", "- calls: [{tool: add, arguments: {x: 2, y: 3}}]\n- text: Five.\n- text: Bye.\n");
    let args =
        ["chat", "a.chat.yaml", "--resume", "--model", "scripted/more.yaml", "--transcript", "t.jsonl"];
    let shown = show_in(folder.path(), &args, "more\nbye\n");
    assert!(shown.contains("Five.\n") && shown.ends_with("--- exit 0\n"), "{shown}");
    no_difference(folder.path(), &["replay", "t.jsonl"]);
}

/// Whoever stops a run instead of answering has not approved anything.
#[test]
fn a_replay_stops_where_a_question_was_left_open() {
    let folder = folder();
    crate::trust(folder.path());
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "tools.yaml",
        "tools: [{name: go, description: Goes., require_confirmation: true, do: {eval: gone}}]\n",
    );
    write("goes.yaml", "- calls: [{tool: go}]\n- text: done\n");
    let args = ["ask", "q", "-f", "tools.yaml", "--model", "scripted/goes.yaml", "--transcript", "t.jsonl"];
    let mut terminal = Terminal::start(folder.path(), &args, 80, 24, &[]);
    terminal.wait("Allow it?");
    terminal.send("\x03");
    assert_eq!(terminal.end(), 130);
    no_difference(folder.path(), &["replay", "t.jsonl"]);
}

/// A limit ends a replay where it ended the run, one of time too; and what the model could not have is not
/// called.
#[test]
fn a_replay_ends_where_the_record_ends() {
    let folder = folder();
    crate::trust(folder.path());
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let tools = "tools: [{name: slow, input: [{name: n, type: int}], do: {eval: 'did ${n}'}}, {import_tool: countdown}]\n";
    let asks = "- calls: [{tool: slow, arguments: {n: 1}}, {tool: countdown, arguments: {seconds: 2}}, {tool: slow, arguments: {n: 3}}]\n  usage: {input_tokens: 90, output_tokens: 20}\n";
    write("asks.yaml", &format!("{}- text: fin\n", asks.repeat(4)));
    for limit in ["tool_calls: 2", "turns: 1", "messages: 3", "wall_time: 0.5", "repeats: 1", "tokens: 100"] {
        write("t.yaml", &format!("limits: {{{limit}}}\n{tools}"));
        let args = ["ask", "q", "-f", "t.yaml", "--model", "scripted/asks.yaml", "--transcript", "lim.tr"];
        let shown = show_in(folder.path(), &args, "");
        assert!(shown.ends_with("--- exit 1\n"), "{limit}: {shown}");
        // The file is found without a word about where it is.
        let shown = show_in(folder.path(), &["replay", "lim.tr"], "");
        assert!(shown.contains("no difference") && shown.ends_with("--- exit 0\n"), "{limit}: {shown}");
        assert!(shown.contains("the replay ends where the run ended: "), "{limit}: {shown}");
        std::fs::remove_file(folder.path().join("lim.tr")).unwrap();
    }
    write("t.yaml", tools);
    write("asks.yaml", &format!("{asks}- text: fin\n"));
    for choice in ["none", "slow"] {
        let args = ["ask", "q", "-f", "t.yaml", "--model", "scripted/asks.yaml", "--tool-choice", choice];
        let shown = show_in(folder.path(), &[&args[..], &["--json"]].concat(), "");
        let refused = "the tool `countdown` was not offered this time, so it was not called";
        assert!(shown.contains(refused) && shown.contains("fin"), "{shown}");
        // A person sees what was asked for and refused.
        let seen = show_in(folder.path(), &[&args[..], &["--no-record"]].concat(), "");
        let seen = seen.lines().skip_while(|line| !line.contains("⏺ countdown(seconds=2)"));
        let seen: Vec<&str> = seen.take(2).collect();
        assert!(seen.len() == 2 && seen[1].ends_with(refused), "{seen:?}");
        no_difference(folder.path(), &["replay"]);
        let told = show_in(folder.path(), &["runs", "show"], "");
        let told: Vec<&str> = told.lines().skip_while(|line| !line.contains("└ countdown: ")).collect();
        assert!(told.first().is_some_and(|line| line.contains(refused)), "{told:?}");
        let found = show_in(folder.path(), &["runs", "--failed", "--tool", "countdown", "--json"], "");
        let refusals = if choice == "none" { r#""errors":3"# } else { r#""errors":1"# };
        assert!(found.contains(r#""calls":3"#) && found.contains(refusals), "{found}");
    }
}

/// A direct result is not a reply of the model.
#[test]
fn a_replay_of_a_direct_answer_goes_on_after_it() {
    let folder = folder();
    crate::trust(folder.path());
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "t.yaml",
        "tools: [{name: report, return_direct: true, do: {eval: REPORT}}]\nchat: {tools: [report]}\n",
    );
    write("talk.yaml", "- calls: [{tool: report}]\n- text: You are welcome.\n");
    let args = ["chat", "t.yaml", "--model", "scripted/talk.yaml", "--transcript", "t.jsonl"];
    let shown = show_in(folder.path(), &args, "report\nthanks\n");
    assert!(shown.contains("REPORT") && shown.contains("You are welcome."), "{shown}");
    no_difference(folder.path(), &["replay", "t.jsonl"]);
}

/// What was over when somebody stopped the run is over in the replay too, though the question came first.
#[test]
fn a_replay_stops_after_what_was_done_beside_an_open_question() {
    let folder = folder();
    crate::trust(folder.path());
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let file = "\
tools:
  - {name: go, description: Goes., require_confirmation: true, do: {eval: gone}}
  - {import_tool: add}
";
    write("tools.yaml", file);
    write("goes.yaml", "- calls: [{tool: go}, {tool: add, arguments: {x: 1, y: 2}}]\n- text: Hello.\n");
    let args = ["chat", "tools.yaml", "--model", "scripted/goes.yaml", "--transcript", "t.jsonl"];
    let mut terminal = Terminal::start(folder.path(), &args, 80, 24, &[]);
    terminal.wait("#1");
    terminal.send("go\r");
    terminal.wait("Allow it?");
    terminal.wait("│ 3");
    terminal.send("\x03");
    terminal.wait("#2");
    // What is said after that stands after it.
    terminal.send("hi\r");
    terminal.wait("Hello.");
    terminal.wait("#3");
    terminal.send("\x04");
    assert_eq!(terminal.end(), 0);
    no_difference(folder.path(), &["replay", "t.jsonl"]);
}

/// A flow only combines calls, so it is run again as it is written now; what it calls is answered from the
/// record.
#[test]
fn a_replay_runs_flows_again_as_they_are_now() {
    let folder = folder();
    let here = |args: &[&str]| calm(folder.path(), &show_in(folder.path(), args, ""));
    let file = |text: &str| std::fs::write(folder.path().join("toolwright.yaml"), text).unwrap();
    let flow = "\
tools:
  - import_tool: word_count
  - name: words
    input: [{name: text, type: str}]
    do:
      - {call: word_count, params: {text: '${text}', top: 1}}
      - eval: '${_.words} words'
";
    file(flow);
    assert!(here(&["call", "words", "text=to be or not to be", "-f", "toolwright.yaml"]).contains("6 words"));
    no_difference(folder.path(), &["replay"]);
    file(&flow.replace("words} words", "words * 10} tenths"));
    // The record says which content was used; another one must be named, or trusted.
    let refused = crate::json(folder.path(), &["replay"]);
    refused.fails("parsing", 2, &["-f ", "toolwright.yaml"]);
    crate::trust(folder.path());
    insta::assert_snapshot!("replay_changed_flow", here(&["replay"]));
    // A call that was not made then has no answer.
    file(&flow.replace("text: '${text}', top", "text: '${text} that', top"));
    insta::assert_snapshot!("replay_changed_call", here(&["replay"]));
}
