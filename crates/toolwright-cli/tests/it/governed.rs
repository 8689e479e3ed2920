//! What a file says about its runs: limits, rules and the sandbox.

use crate::show_in;

/// A folder with a file of tools, a model that asks for three sums, and rules that allow them.
fn folder(section: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let sum = "  - {name: sum, input: [{name: x, type: int, description: X.}], do: {eval: '${x + 1}'}}\n";
    let rules = "policy: [{tools: '*', decision: approve}]";
    write("tools.yaml", &format!("{section}\n{rules}\ntools:\n{sum}  - import_tool: bash\n"));
    let calls: String =
        (0..3).map(|x| format!("- calls: [{{tool: sum, arguments: {{x: {x}}}}}]\n")).collect();
    write("replies.yaml", &format!("{calls}- {{text: all done}}\n"));
    write("rules.yaml", "- {tools: '*', decision: approve}\n");
    folder
}

fn ask(section: &str, more: &[&str]) -> String {
    let args = ["ask", "go", "-f", "tools.yaml", "--model", "scripted/replies.yaml", "--no-record"];
    show_in(folder(section).path(), &[&args, more].concat(), "")
}

#[test]
fn limits_of_a_file_hold_whoever_makes_the_rules() {
    let limits = "limits: {tool_calls: 1}";
    for more in [&[][..], &["--policy", "rules.yaml"]] {
        let shown = ask(limits, more);
        assert!(shown.contains("the limit of 1 tool calls is used up"), "{shown}");
        assert!(shown.ends_with("--- exit 1\n"), "{shown}");
    }
    assert!(ask("limits: {turns: 2}", &[]).contains("the limit of 2 turns is used up"));
    assert!(ask("limits: {turns: 2}", &["--max-turns", "9"]).contains("--- stdout\nall done"));
    assert!(ask("", &["--policy", "rules.yaml"]).contains("--- stdout\nall done"));
}

#[test]
fn the_sandbox_of_a_file_is_read_and_checked() {
    for (section, wanted) in [
        ("sandbox: {nonsense: 7}", "unknown key `nonsense`"),
        ("sandbox: podmann", "did you mean `podman`?"),
        ("sandbox: 7", "invalid type"),
        ("sandbox: {write: [no/such/folder]}", "cannot use `no/such/folder`"),
        ("sandbox: {network: [http://x/]}", "not a rule for hosts"),
    ] {
        let place = folder(section);
        let shown = show_in(place.path(), &["check", "tools.yaml"], "");
        assert!(shown.contains(wanted) && shown.ends_with("--- exit 2\n"), "{section}: {shown}");
        let called = show_in(place.path(), &["call", "sum", "x=1", "-f", "tools.yaml"], "");
        assert!(called.contains(wanted) && called.ends_with("--- exit 2\n"), "{section}: {called}");
    }
    let place = folder("sandbox: none");
    let shown = show_in(place.path(), &["call", "bash", "command=true", "-f", "tools.yaml"], "");
    assert!(shown.contains("sandbox") && shown.ends_with("--- exit 1\n"), "{shown}");
    let shown = show_in(place.path(), &["call", "sum", "x=1", "-f", "tools.yaml", "--read", "/no/such"], "");
    assert!(shown.contains("cannot use `/no/such`") && shown.ends_with("--- exit 2\n"), "{shown}");
}

#[test]
fn the_other_sandboxes_of_a_file_are_checked_too() {
    for (section, wanted) in [
        ("sandboxes: {victim: {nonsense: 7}}", "unknown key `nonsense`"),
        (
            "sandboxes: {victim: {write: [no/such/folder]}}",
            "the sandbox `victim`: cannot use `no/such/folder`",
        ),
        ("sandboxes: {default: process}", "`default` is the one that `sandbox` describes"),
        ("sandboxes: [victim]", "`sandboxes` is a map of names"),
    ] {
        let place = folder(section);
        let shown = show_in(place.path(), &["check", "tools.yaml"], "");
        assert!(shown.contains(wanted) && shown.ends_with("--- exit 2\n"), "{section}: {shown}");
        assert!(shown.contains("tools.yaml:1:"), "{section}: {shown}");
        let called = show_in(place.path(), &["call", "sum", "x=1", "-f", "tools.yaml"], "");
        assert!(called.contains(wanted) && called.ends_with("--- exit 2\n"), "{section}: {called}");
    }
    let named = "- {import_tool: bash, name: other, config: {sandbox: victin}}";
    let section =
        |sandboxes: &str| format!("{sandboxes}\nshared: {{tools: [{}]}}", named.trim_start_matches("- "));
    for (sandboxes, hint) in [
        ("sandbox: process", "describe it under `sandboxes: {victin: ...}`"),
        ("sandboxes: {victim: process}", "did you mean `victim`?"),
    ] {
        let shown = show_in(folder(&section(sandboxes)).path(), &["check", "tools.yaml"], "");
        assert!(shown.contains("the file has no sandbox `victin`") && shown.contains(hint), "{shown}");
    }
    let shown =
        show_in(folder(&section("sandboxes: {victin: process}")).path(), &["check", "tools.yaml"], "");
    assert!(!shown.contains("no sandbox"), "{shown}");
}

#[test]
fn a_model_is_given_as_much_of_an_output_as_the_file_and_the_command_say() {
    let folder = tempfile::tempdir().unwrap();
    let file = |limits: &str| {
        let text = format!(
            "{limits}\ntools: [{{name: long, do: {{eval: \"${{'ab' * 20000}}\"}}}}]\npolicy: [{{tools: '*', decision: approve}}]\n"
        );
        std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    };
    std::fs::write(
        folder.path().join("replies.yaml"),
        "- calls: [{tool: long, arguments: {}}]\n- {text: done}\n",
    )
    .unwrap();
    let given = |more: &[&str]| {
        let args = ["ask", "go", "-f", "t.yaml", "--model", "scripted/replies.yaml", "--no-record", "--json"];
        let shown = show_in(folder.path(), &[&args, more].concat(), "");
        let cut = shown.split("is cut to ").nth(1).and_then(|rest| rest.split(' ').next().map(str::to_owned));
        assert!(shown.ends_with("--- exit 0\n"), "{shown}");
        cut
    };
    file("");
    assert_eq!(given(&[]).as_deref(), Some("16384"));
    file("limits: {max_output: 100}");
    assert_eq!(given(&[]).as_deref(), Some("100"));
    assert_eq!(given(&["--max-output", "2000"]).as_deref(), Some("2000"));
    assert_eq!(given(&["--max-output", "0"]), None);
}

#[test]
fn the_model_is_told_whether_to_call_tools() {
    let model = crate::fake::FakeModel::start();
    let url = format!("http://{}", model.address);
    let variables = [("ANTHROPIC_API_KEY", "sk-test"), ("ANTHROPIC_BASE_URL", url.as_str())];
    let place = folder("");
    let ask = |choice: &str| {
        let args = [
            "ask",
            "go",
            "-f",
            "tools.yaml",
            "--no-record",
            "--model",
            "anthropic/m",
            "--tool-choice",
            choice,
        ];
        crate::show_with(place.path(), &args, "", &variables)
    };
    for (choice, tools, wanted) in
        [("auto", 2, "auto"), ("any", 2, "any"), ("none", 0, ""), ("sum", 1, "tool")]
    {
        let shown = ask(choice);
        assert!(shown.ends_with("--- exit 0\n"), "{shown}");
        let body: serde_json::Value =
            serde_json::from_str(&model.bodies.lock().unwrap().pop().unwrap()).unwrap();
        assert_eq!(body["tools"].as_array().map_or(0, Vec::len), tools, "{body}");
        let told = body["tool_choice"]["type"].as_str().unwrap_or_default();
        assert!(told == wanted || choice == "auto" && told.is_empty(), "{body}");
    }
    let wrong = ask("smu");
    assert!(wrong.contains("`smu`") && wrong.contains("sum") && wrong.ends_with("--- exit 2\n"), "{wrong}");
}

#[test]
fn rules_that_can_never_match_are_told() {
    let rules = concat!(
        "- {tools: '*', decision: approve}\n",
        "- {tools: summ, when: {x: 1}, decision: reject}\n",
        "- {tools: bash, when: {comand: '*secret*'}, decision: reject}\n",
    );
    let tool = "`summ` matches no tool; is `sum` meant?";
    let parameter = "`comand` is no parameter of `bash`; is `command` meant?";
    // In the file it is an error; rules beside it may be meant for other files too.
    let place = folder("");
    let path = place.path().join("tools.yaml");
    let file = std::fs::read_to_string(&path).unwrap();
    let own = format!("policy:\n{}", rules.replace("- {", "  - {"));
    std::fs::write(&path, file.replace("policy: [{tools: '*', decision: approve}]", &own)).unwrap();
    let shown = show_in(place.path(), &["check", "tools.yaml"], "");
    assert!(shown.contains(&format!("warning: rule 2: {tool}")), "{shown}");
    assert!(shown.contains(&format!("error: rule 3: {parameter}")), "{shown}");
    assert!(shown.ends_with("--- exit 2\n"), "{shown}");
    let place = folder("");
    std::fs::write(place.path().join("mine.yaml"), rules).unwrap();
    let shown = show_in(place.path(), &["check", "tools.yaml", "--policy", "mine.yaml"], "");
    for text in [tool, parameter] {
        assert!(shown.contains("warning: mine.yaml: rule") && shown.contains(text), "{shown}");
    }
    assert!(shown.contains("2 warnings") && shown.ends_with("--- exit 0\n"), "{shown}");
    let rules =
        "- {tools: bash, when: {cmd: '*secret*'}, decision: reject}\n- {tools: bassh, decision: ask}\n";
    std::fs::write(place.path().join("mine.yaml"), rules).unwrap();
    let shown = show_in(place.path(), &["check", "--policy", "mine.yaml"], "");
    assert!(
        shown.contains("warning: mine.yaml: rule 2: `bassh` matches no tool; is `bash` meant?"),
        "{shown}"
    );
    assert!(!shown.contains("rule 1") && shown.contains("2 rules: 1 warning"), "{shown}");
}

#[test]
fn integers_that_would_be_rounded_are_refused() {
    let place = folder("");
    for given in [&["--args", r#"{"x": 123456789012345678901234}"#][..], &["x:=123456789012345678901234"]] {
        let shown = show_in(place.path(), &[&["call", "sum", "-f", "tools.yaml"], given].concat(), "");
        assert!(shown.contains("the number 123456789012345678901234 has more digits"), "{shown}");
        assert!(shown.ends_with("--- exit 2\n"), "{shown}");
    }
}

#[test]
fn rules_beside_a_file_are_checked_too() {
    let place = folder("");
    std::fs::write(place.path().join("bad.yaml"), "- {tools: '*', decision: perhaps}\n").unwrap();
    let shown = show_in(place.path(), &["check", "tools.yaml", "--policy", "bad.yaml"], "");
    assert!(shown.contains("perhaps") && shown.ends_with("--- exit 2\n"), "{shown}");
}

#[test]
fn check_tells_what_is_wrong_with_every_section_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = "policy: [{tools: bash, decision: maybe}]\nlimits: {turnz: 3}\nsandbox: {nonsense: 7}\n\
                tools:\n  - {name: x, do: {eval: '${nobody}'}}\n";
    std::fs::write(folder.path().join("tools.yaml"), file).unwrap();
    let shown = show_in(folder.path(), &["check", "tools.yaml"], "");
    for wanted in
        ["maybe", "turnz", "nonsense", "nobody", "tools.yaml:1:24", "tools.yaml:2:10", "tools.yaml:3:11"]
    {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let told = show_in(folder.path(), &["--json", "check", "tools.yaml"], "");
    assert!(
        told.contains("\"line\":2") && told.contains("turnz") && told.ends_with("--- exit 2\n"),
        "{told}"
    );
}

#[test]
fn the_config_of_a_standard_tool_is_heard() {
    let file = |config: &str| format!("tools:\n  - import_tool: bash\n    config: {config}\n");
    let folder = tempfile::tempdir().unwrap();
    let write = |config: &str| std::fs::write(folder.path().join("tools.yaml"), file(config)).unwrap();
    let call = || {
        let args =
            ["call", "bash", "command=echo before; sleep 60", "-f", "tools.yaml", "--sandbox", "local"];
        show_in(folder.path(), &args, "")
    };
    write("{timeout: 1}");
    let shown = call();
    // The sandbox and the call have the same second; who tells of its end first is not said.
    let told = ["longer than 1s", "its time of 1 s was up"].iter().any(|told| shown.contains(told));
    assert!(shown.contains("before") && told, "{shown}");
    for (config, wanted) in [
        ("{timeuot: 1}", "unknown field `timeuot`"),
        ("{timeout: -1}", "must be a number of seconds above zero"),
        (
            "{timeout: soon}",
            "`timeout`: invalid type: string \"soon\", expected a number\n  --> tools.yaml:3:14",
        ),
    ] {
        write(config);
        let shown = show_in(folder.path(), &["check", "tools.yaml"], "");
        assert!(shown.contains(wanted) && shown.ends_with("--- exit 2\n"), "{config}: {shown}");
    }
}

#[test]
fn a_model_inside_a_call_of_a_person_is_no_person() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let file = |policy: &str| {
        format!(
            "models: {{inner: scripted/inner.yaml}}
{policy}
tools:
  - {{name: pay, description: d, require_confirmation: true, do: {{eval: PAID}}}}
  - {{name: look, description: d, do: {{eval: SEEN}}}}
  - {{name: flow, description: d, do: {{call: pay}}}}
  - {{import_tool: build_llm_tool, name: agent, description: a, config: {{model_ref: inner, tools: [pay, look, flow]}}}}
cli: {{process_input: one_by_one, do: {{call: agent, params: {{prompt: '${{input}}'}}}}}}
"
        )
    };
    let approve = "policy: [{tools: '*', decision: approve}]";
    let reject =
        "policy: [{tools: '*', decision: approve}, {tools: look, decision: reject, reason: never look}]";
    for (policy, tool, wanted) in [
        (approve, "pay", "needs approval, and there is nobody to ask"),
        ("", "pay", "needs approval, and there is nobody to ask"),
        (approve, "flow", "needs approval, and there is nobody to ask"),
        (reject, "look", "never look"),
        (approve, "look", "SEEN"),
    ] {
        write("t.yaml", &file(policy));
        // What the call gave is what the model repeats.
        write(
            "inner.yaml",
            &format!("- calls: [{{tool: {tool}, arguments: {{}}}}]\n- text: heard\n  expect: {wanted:?}\n"),
        );
        for args in [
            &["call", "agent", "prompt=go", "-f", "t.yaml", "--no-record"][..],
            &["run", "t.yaml", "go", "--no-record"],
        ] {
            let shown = show_in(folder.path(), args, "");
            assert!(shown.contains("--- stdout\nheard\n"), "{policy} {tool} {args:?}: {shown}");
        }
    }
    let shown = show_in(folder.path(), &["run", "t.yaml", "go", "--no-record", "--json"], "");
    assert!(shown.contains("--- stdout\n{\"input\":\"go\",\"output\":\"heard\"}\n--- exit 0"), "{shown}");
    // What the person calls, and what a flow does for it, is the person's.
    for tool in ["pay", "flow"] {
        let shown = show_in(folder.path(), &["call", tool, "-f", "t.yaml", "--no-record"], "");
        assert!(shown.contains("--- stdout\nPAID\n"), "{shown}");
    }
}

#[test]
fn the_sandbox_of_the_file_that_is_here_holds_for_built_in_tools() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        "sandbox: none\nmcp: {s: {transport: stdio, command: /no/such/server, auto_import_scope: shared}}\n";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    let shown = show_in(folder.path(), &["call", "bash", "command=true"], "");
    assert!(shown.contains("the run has no sandbox") && shown.ends_with("--- exit 1\n"), "{shown}");
    assert!(shown.contains("using the sandbox and the limits of toolwright.yaml"), "{shown}");
    let shown = show_in(folder.path(), &["call", "think", "thought=x"], "");
    assert!(shown.ends_with("--- exit 0\n"), "{shown}");
}

#[test]
fn a_file_that_is_here_and_cannot_be_read_is_no_way_around_its_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret.txt"), "tr0ub4dor").unwrap();
    let mask = "sandbox: {mask: [secret.txt]}\n";
    for (more, told) in [
        ("tools: [\n", "not YAML"),
        ("tools: !include no/such/file.yaml\n", "no/such/file.yaml"),
        ("snadbox: {write: [.]}\n", "snadbox"),
        ("limits: {tool_calls: many}\n", "tool_calls"),
    ] {
        std::fs::write(folder.path().join("toolwright.yaml"), format!("{mask}{more}")).unwrap();
        let shown = show_in(folder.path(), &["call", "bash", "command=cat secret.txt"], "");
        assert!(shown.contains(told) && shown.ends_with("--- exit 2\n"), "{shown}");
        assert!(shown.contains("hold for built-in tools too") && !shown.contains("tr0ub4dor"), "{shown}");
    }
    // A tool that fails to load, here for want of a variable, is not in the way of others.
    let unset = "env: {LIST: {description: x}}\ntools: [{name: a, do: {eval: '${nonsense}'}}]\n";
    std::fs::write(folder.path().join("toolwright.yaml"), unset).unwrap();
    let shown = show_in(folder.path(), &["call", "think", "thought=x"], "");
    assert!(shown.ends_with("--- exit 0\n"), "{shown}");
}

#[test]
fn secrets_of_a_file_that_was_found_are_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let file = "env: {MY_KEY: {description: k, secret: true}}\nlimits: {tool_calls: 5}\n";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    let args = ["call", "--transcript", "tr.jsonl", "think", "thought=sk-SecretValue1234567890"];
    let shown = crate::show_with(folder.path(), &args, "", &[("MY_KEY", "sk-SecretValue1234567890")]);
    assert!(shown.ends_with("--- exit 0\n"), "{shown}");
    let recorded = std::fs::read_to_string(folder.path().join("tr.jsonl")).unwrap();
    assert!(recorded.contains("think") && !recorded.contains("sk-Secret"), "{recorded}");
}

#[test]
fn what_is_wrong_with_a_model_is_told_where_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    for (file, place) in [
        ("models: {fast: {model: a/b, price: {input: 1, output: 2, currency: EUR}}}\n", "t.yaml:1:58"),
        ("models:\n  - {name: a, model: a/b}\n  - {name: fast, model: a/b, modle: 1}\n", "t.yaml:3:30"),
        ("models: {fast: {model: a/b, timeout: -1}}\n", "t.yaml:1:29"),
    ] {
        std::fs::write(folder.path().join("t.yaml"), file).unwrap();
        let shown = show_in(folder.path(), &["check", "t.yaml"], "");
        assert!(shown.contains(place) && shown.ends_with("--- exit 2\n"), "{place}: {shown}");
    }
}

#[test]
fn a_failing_flow_is_placed_for_the_person_who_called_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = "tools:
  - {name: inner, input: [{name: d, type: dict}], do: {eval: \"${d['missing']}\"}}
  - name: outer
    do:
      for_each: [{missing: y}, {}]
      do: {call: inner, params: {d: '${_}'}}
cli: {process_input: one_by_one, do: {call: outer}}
";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    for args in [&["call", "outer", "-f", "t.yaml"][..], &["run", "t.yaml", "x"]] {
        let shown = show_in(folder.path(), args, "");
        assert!(shown.contains("KeyError: 'missing'\n"), "{shown}");
        assert!(shown.contains("KeyError in `inner` at t.yaml:2:"), "{shown}");
        assert!(shown.contains(", called at t.yaml:6:"), "{shown}");
        assert!(shown.ends_with("--- exit 1\n"), "{shown}");
        let shown = show_in(folder.path(), &[args, &["--json"]].concat(), "");
        assert!(shown.contains("\"failed_at\":\"KeyError in `inner` at t.yaml:2:"), "{shown}");
    }
}

#[test]
fn a_run_names_the_tools_that_say_nothing_of_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let file = "tools:
  - {name: twice, input: [{name: x, type: int}], do: {eval: '${x * 2}'}}
  - {name: outer, do: {call: twice, params: {x: 3}}}
  - {name: hinted, ui_hint: Working, do: {call: twice, params: {x: 4}}}
  - {name: silent, ui_hint: false, do: {call: twice, params: {x: 5}}}
cli: {process_input: one_by_one, do: [{call: outer}, {call: hinted}, {call: silent}]}
";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    let shown = show_in(folder.path(), &["run", "t.yaml", "x"], "");
    let told = "Processing input: x
Running tool outer
Running tool twice
Working
Running tool twice
Running tool twice
";
    assert!(shown.contains(told), "{shown}");
    let shown = show_in(folder.path(), &["call", "silent", "-f", "t.yaml"], "");
    assert!(!shown.contains("\n\n"), "{shown}");
}
