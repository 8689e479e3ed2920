//! One mistake of each kind a person makes: what is printed, and the exit code.

use crate::{json, show, show_in};

#[test]
fn wrong_calls_are_explained() {
    let cases: [(&str, &[&str]); 12] = [
        ("unknown_tool", &["ad", "x=1"]),
        ("wrong_arguments", &["add", "x=one", "z=3"]),
        ("argument_without_value", &["add", "x"]),
        ("argument_twice", &["add", "x=1", "x=2"]),
        ("argument_not_json", &["add", "x:=[1"]),
        ("args_not_an_object", &["add", "--args", "[1]"]),
        ("args_not_json", &["add", "--args", "{x: 1}"]),
        ("overflow", &["add", "x=9223372036854775807", "y=1"]),
        ("missing_argument_json", &["add", "x=1", "--json"]),
        ("tool_error", &["chart", "values=[0]"]),
        ("timeout_without_unit", &["add", "x=1", "y=2", "--timeout", "5x"]),
        ("transcript_without_folder", &["add", "x=1", "y=2", "--transcript", "no/such/folder/t.jsonl"]),
    ];
    for (case, args) in cases {
        insta::assert_snapshot!(format!("call_{case}"), show(&[&["call"], args].concat()));
    }
}

#[test]
fn unknown_names_and_models_are_explained() {
    let cases: [(&str, &[&str]); 7] = [
        ("no_matching_tool", &["tools", "nothing_*"]),
        ("model_without_vendor", &["ask", "hi", "--model", "gpt-9"]),
        ("script_missing", &["ask", "hi", "--model", "scripted/missing.yaml"]),
        ("unknown_command", &["frobnicate"]),
        ("key_missing", &["ask", "hi", "--model", "anthropic/claude-sonnet-4-5"]),
        ("base_url_missing", &["ask", "hi", "--model", "openai-compatible/m"]),
        ("vendor_misspelt", &["ask", "hi", "--model", "antropic/m"]),
    ];
    for (case, args) in cases {
        insta::assert_snapshot!(case, show(args));
    }
}

/// The file that is here is used without being named; the demo keeps to its own tools.
#[test]
fn the_default_file_is_used_and_the_demo_keeps_its_own_tools() {
    let folder = tempfile::tempdir().unwrap();
    let here = |args: &[&str]| show_in(folder.path(), args, "");
    here(&["init"]);
    insta::assert_snapshot!("default_file_call", here(&["call", "greet", "name=ada"]));
    insta::assert_snapshot!("default_file_tools", here(&["tools", "greet"]));
    insta::assert_snapshot!("default_file_call_misspelt", here(&["call", "gret", "name=ada"]));
    // A built-in tool needs no file.
    assert!(!here(&["call", "add", "x=1", "y=2"]).contains("toolwright.yaml"));
    insta::assert_snapshot!("default_file_ask", here(&["ask", "hi"]));
    insta::assert_snapshot!(
        "default_file_ask_demo_with_file",
        here(&["ask", "hi", "-f", "toolwright.yaml", "--model", "demo"])
    );
    insta::assert_snapshot!("default_file_check_misspelt", here(&["check", "tolwright.yaml"]));
    assert!(here(&["ask", "hi", "--model", "demo"]).contains("I am a script"));
}

/// What is wrong with the command line itself, for people and for programs.
#[test]
fn wrong_commands_and_options_are_explained() {
    insta::assert_snapshot!("command_misspelt", show(&["aks", "hi"]));
    insta::assert_snapshot!("command_misspelt_json", show(&["--json", "aks", "hi"]));
    insta::assert_snapshot!("option_misspelt_json", show(&["ask", "hi", "--modle", "x", "--json"]));
    insta::assert_snapshot!("json_as_argument", show(&["call", "add", "{\"x\": 1}"]));
    insta::assert_snapshot!("check_a_folder", show(&["check", "."]));
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
fn wrong_policies_and_scripts_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let bad = "- {tools: bash, decision: perhaps}\n- {tools: bash, decision: reject, when: {c: 'x*'}, examples: {match: [{c: y}]}}\n";
    std::fs::write(folder.path().join("policy.yaml"), bad).unwrap();
    insta::assert_snapshot!("policy_file", show_in(folder.path(), &["check", "--policy", "policy.yaml"], ""));
    std::fs::write(folder.path().join("replies.yaml"), "- {txt: hi}\n").unwrap();
    insta::assert_snapshot!(
        "script_file",
        show_in(folder.path(), &["ask", "x", "--model", "scripted/replies.yaml"], "")
    );
}

/// The mistake is in the second entry, and the first one has the same keys.
#[test]
fn a_mistake_in_a_section_has_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |sections: &str| {
        let file = format!("tools: [{{name: t, do: {{eval: x}}}}, {{import_tool: bash}}]\n{sections}");
        std::fs::write(folder.path().join("tools.yaml"), file).unwrap();
    };
    for (sections, place, name) in [
        (
            "policy:\n  - {tools: t, decision: approve}\n  - {tools: t, decision: perhaps}\n",
            "4:16",
            "`perhaps`",
        ),
        (
            "policy:\n  - {tools: t, decision: approve}\n  - {tools: t, decison: approve}\n",
            "4:16",
            "`decision`",
        ),
        (
            "policy:\n  - {tools: t, decision: approve}\n  - {tools: bash, decision: reject, when: {comand: x}}\n",
            "4:44",
            "`command`",
        ),
        ("sandbox:\n  read: []\n  kind: procss\n", "4:3", "`process`"),
        ("sandboxes:\n  one: {kind: local}\n  two: {kind: local, raed: [x]}\n", "4:22", "`raed`"),
        ("sandboxes:\n  one: {kind: local}\n  two: {write: [no/such/folder]}\n", "4:3", "`no/such/folder`"),
        (
            "models:\n  a: {model: ollama/m, timeout: 5}\n  b: {model: ollama/m, timeout: 1e300}\n",
            "4:24",
            "1e300",
        ),
        (
            "models:\n  - {name: a, model: ollama/m, retries: 1}\n  - {name: b, model: ollama/m, retires: 1}\n",
            "4:32",
            "`retires`",
        ),
    ] {
        write(sections);
        let checked = json(folder.path(), &["check", "tools.yaml"]);
        checked.has_problems(&[(&format!("error tools.yaml:{place}"), name)]);
        checked.fails("parsing", 2, &[]);
    }
    // One precise text, as a person reads it.
    write("policy:\n  - {tools: t, decision: approve}\n  - {tools: t, decison: approve}\n");
    insta::assert_snapshot!("misspelt_key_of_a_rule", show_in(folder.path(), &["check", "tools.yaml"], ""));
}

#[test]
fn a_misspelt_sandbox_is_corrected() {
    let folder = tempfile::tempdir().unwrap();
    let called = json(folder.path(), &["call", "bash", "command=true", "--sandbox", "procss"]);
    called.fails("parsing", 2, &["`procss`", "`process`"]);
}

#[test]
fn models_of_a_file_are_asked_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = "models:\n  default: scripted/replies.yaml\n  big: {model: anthropic/claude-sonnet-4-5, key_env: MY_KEY}\ntools: []\n";
    std::fs::write(folder.path().join("tools.yaml"), file).unwrap();
    std::fs::write(folder.path().join("replies.yaml"), "- {text: hello}\n").unwrap();
    insta::assert_snapshot!(
        "model_default",
        show_in(folder.path(), &["ask", "x", "-f", "tools.yaml", "--no-record"], "")
    );
    insta::assert_snapshot!(
        "model_by_name",
        show_in(folder.path(), &["ask", "x", "-f", "tools.yaml", "--model", "big"], "")
    );
    insta::assert_snapshot!(
        "model_unknown",
        show_in(folder.path(), &["ask", "x", "-f", "tools.yaml", "--model", "small"], "")
    );
    std::fs::write(folder.path().join("bad.yaml"), "models: {a: {modle: x/y}}\ntools: []\n").unwrap();
    insta::assert_snapshot!("model_key_unknown", show_in(folder.path(), &["check", "bad.yaml"], ""));
}

/// The one line of JSON that was printed on `stdout` or `stderr`, and nothing else on it.
fn json_on(stream: &str, shown: &str) -> serde_json::Value {
    let part = shown.split(&format!("--- {stream}\n")).nth(1).unwrap_or_else(|| panic!("{shown}"));
    let part = part.split("\n--- ").next().unwrap_or_default();
    serde_json::from_str(part).unwrap_or_else(|error| panic!("{error}: {shown}"))
}

/// `--json` applies to each result and each error; commands without a JSON form refuse it.
#[test]
fn programs_get_json_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let here = |args: &[&str]| show_in(folder.path(), &[&["--json"], args].concat(), "hello\n");
    std::fs::write(folder.path().join("bad.yaml"), "tools:\n  - nam: x\n").unwrap();
    for args in [
        &["tools", "-f", "bad.yaml"][..],
        &["call", "x", "-f", "bad.yaml"],
        &["ask", "x", "-f", "bad.yaml"],
        &["run", "bad.yaml", "x"],
        &["serve", "bad.yaml"],
    ] {
        let shown = here(args);
        assert!(shown.ends_with("--- exit 2\n") && !shown.contains("--- stdout"), "{shown}");
        let error = &json_on("stderr", &shown)["error"];
        let problem = &error["problems"][0];
        assert_eq!((&error["type"], &problem["file"]), (&"parsing".into(), &"bad.yaml".into()), "{shown}");
        assert_eq!((&problem["severity"], &problem["line"]), (&"error".into(), &2.into()), "{shown}");
    }
    for args in [&["chat"][..], &["completions", "bash"], &["man"]] {
        let shown = here(args);
        assert!(shown.ends_with("--- exit 2\n") && !shown.contains("--- stdout"), "{shown}");
        let error = json_on("stderr", &shown);
        assert_eq!(error["error"]["message"], "what this command prints is not JSON");
        let help = show_in(folder.path(), &[args, &["--help"]].concat(), "");
        assert!(!help.contains("--json  "), "{help}");
    }
    let answer = |args: &[&str]| {
        let shown = here(args);
        assert!(shown.ends_with("--- exit 0\n") && !shown.contains("--- stderr"), "{shown}");
        json_on("stdout", &shown)
    };
    assert_eq!(answer(&["init", "made.yaml"]), serde_json::json!({"file": "made.yaml"}));
    here(&["call", "add", "x=1", "y=2"]);
    let path = answer(&["runs", "path"]);
    assert!(path["path"].as_str().unwrap().ends_with(&format!("{}.jsonl", path["run"].as_str().unwrap())));
    assert_eq!(answer(&["runs", "remove", "last"]), serde_json::json!({"removed": [path["run"]]}));
    let cli = "cli: {process_input: one_by_one, do: {eval: 'got ${input}'}}\n";
    std::fs::write(folder.path().join("cli.yaml"), cli).unwrap();
    let ran = answer(&["run", "cli.yaml", "one"]);
    assert_eq!(ran, serde_json::json!({"input": "one", "output": "got one"}));
    let cli = "cli: {process_input: one_by_one, json_output: true, do: {eval: '${ {\"n\": int(input)} }'}}\n";
    std::fs::write(folder.path().join("cli.yaml"), cli).unwrap();
    let shown = here(&["run", "cli.yaml", "7", "x", "8", "--keep-going"]);
    let lines: Vec<serde_json::Value> =
        shown.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let made = |input: &str, n: i64| serde_json::json!({"input": input, "output": {"n": n}});
    assert_eq!(lines[..2], [made("7", 7), made("8", 8)], "{shown}");
    assert_eq!(lines[2]["input"], "x", "{shown}");
    assert!(lines[2]["error"]["message"].as_str().unwrap().contains("int()"), "{shown}");
    for client in ["cursor", "codex"] {
        let told = answer(&["mcp", "install", "--client", client, "made.yaml"]);
        assert_eq!((&told["written"], told["settings"].is_object()), (&false.into(), true), "{told}");
    }
}

/// A file that has put its own tool in the place of a built-in one is not gone around.
#[test]
fn a_tool_of_a_section_is_not_taken_for_the_built_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = "chat:\n  tools: [{name: add, require_confirmation: true, do: {eval: mine}}]\n\
                cli: {process_input: one_by_one, tools: [{name: own, do: {eval: 1}}], do: {call: own}}\n";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    let called = json(folder.path(), &["call", "add", "x=1", "y=2", "-f", "t.yaml"]);
    called.fails("parsing", 2, &["`add`", "`chat.tools`", "built-in"]);
    assert_eq!(called.stdout, "");
    json(folder.path(), &["call", "own", "-f", "t.yaml"]).fails("parsing", 2, &["`own`", "`cli.tools`"]);
    let called = json(folder.path(), &["call", "add", "x=1", "y=2"]);
    assert_eq!(called.value()["content"][0]["value"], 3, "{called:?}");
}

/// A policy in a file of its own is checked with the tools that are here: those of the file, and the built-in
/// ones.
#[test]
fn a_policy_is_checked_with_the_file_that_is_here() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("toolwright.yaml", "tools: [{name: mine, do: {eval: hello}}]\n");
    let args = ["check", "--policy", "policy.yaml"];
    write(
        "policy.yaml",
        "- {tools: [mine, read_file], decision: approve}\n- {tools: bash, decision: reject}\n",
    );
    let checked = json(folder.path(), &args);
    checked.has_problems(&[]);
    assert_eq!(checked.value()["rules"], 2, "{checked:?}");
    assert_eq!(checked.code, Some(0));
    write("policy.yaml", "- {tools: mien, decision: approve}\n");
    let checked = json(folder.path(), &args);
    checked.has_problems(&[("warning", "`mien`")]);
    assert_eq!(checked.code, Some(0));
    // Mistakes of both files are reported together.
    write("policy.yaml", "- {tools: mine, decision: perhaps}\n");
    write("toolwright.yaml", "tools: [{name: mine, do: {eval: '${who}'}}]\n");
    let checked = json(folder.path(), &args);
    let mut problems = checked.problems();
    problems.sort();
    assert!(problems[0].0 == "error" && problems[0].1.contains("`perhaps`"), "{checked:?}");
    assert!(
        problems[1].0.starts_with("error toolwright.yaml:1:") && problems[1].1.contains("`who`"),
        "{checked:?}"
    );
    assert_eq!((problems.len(), checked.code), (2, Some(2)));
}

/// A reader of stderr that goes away changes neither the work nor how it ends.
#[test]
fn a_closed_stderr_does_not_panic() {
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
    insta::assert_snapshot!("all_problems", show_in(folder.path(), &["check"], ""));
    insta::assert_snapshot!("all_problems_json", show_in(folder.path(), &["check", "--json"], ""));
}
