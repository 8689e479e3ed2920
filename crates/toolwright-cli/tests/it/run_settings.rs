//! What a file says about its runs: limits, rules and the sandbox.

use crate::support::Outcome;
use crate::{json, json_with, show_in};

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

fn ask(section: &str, more: &[&str]) -> Outcome {
    let args = ["ask", "go", "-f", "tools.yaml", "--model", "scripted/replies.yaml", "--no-record"];
    json(folder(section).path(), &[&args, more].concat())
}

#[test]
fn limits_of_a_file_hold_with_any_policy() {
    let reached = |outcome: Outcome, limit: &str, max: f64| {
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let end = &outcome.value()["end"];
        assert_eq!((&end["status"], &end["limit"]), (&"limit".into(), &limit.into()), "{end}");
        assert_eq!(end["max"].as_f64(), Some(max), "{end}");
    };
    let done = |outcome: Outcome| {
        assert_eq!((outcome.code, &outcome.value()["answer"]), (Some(0), &"all done".into()), "{outcome:?}");
    };
    for more in [&[][..], &["--policy", "rules.yaml"]] {
        reached(ask("limits: {tool_calls: 1}", more), "tool_calls", 1.0);
    }
    reached(ask("limits: {turns: 2}", &[]), "turns", 2.0);
    done(ask("limits: {turns: 2}", &["--max-turns", "9"]));
    done(ask("", &["--policy", "rules.yaml"]));
}

#[test]
fn the_sandbox_of_a_file_is_read_and_checked() {
    for (section, place, name) in [
        ("sandbox: {nonsense: 7}", "error tools.yaml:1:11", "`nonsense`"),
        ("sandbox: podmann", "error tools.yaml:1:10", "`podman`"),
        ("sandbox: 7", "error tools.yaml:1:10", "7"),
        ("sandbox: {write: [no/such/folder]}", "error tools.yaml:1:10", "`no/such/folder`"),
        ("sandbox: {network: [http://x/]}", "error tools.yaml:1:10", "http://x/"),
    ] {
        let folder = folder(section);
        let checked = json(folder.path(), &["check", "tools.yaml"]);
        checked.has_problems(&[(place, name)]);
        checked.fails("parsing", 2, &[]);
        json(folder.path(), &["call", "sum", "x=1", "-f", "tools.yaml"]).fails("parsing", 2, &[name]);
    }
    let folder = folder("sandbox: none");
    let called = json(folder.path(), &["call", "bash", "command=true", "-f", "tools.yaml"]);
    called.fails("sandbox_unavailable", 1, &[]);
    let called = json(folder.path(), &["call", "sum", "x=1", "-f", "tools.yaml", "--read", "/no/such"]);
    called.fails("parsing", 2, &["`/no/such`"]);
}

#[test]
fn the_other_sandboxes_of_a_file_are_checked_too() {
    for (section, place, name) in [
        ("sandboxes: {victim: {nonsense: 7}}", "error tools.yaml:1:22", "`nonsense`"),
        ("sandboxes: {victim: {write: [no/such/folder]}}", "error tools.yaml:1:13", "`no/such/folder`"),
        ("sandboxes: {default: process}", "error tools.yaml:1:13", "`default`"),
        ("sandboxes: [victim]", "error tools.yaml:1:12", "`sandboxes`"),
    ] {
        let folder = folder(section);
        let checked = json(folder.path(), &["check", "tools.yaml"]);
        checked.has_problems(&[(place, name)]);
        checked.fails("parsing", 2, &[]);
        json(folder.path(), &["call", "sum", "x=1", "-f", "tools.yaml"]).fails("parsing", 2, &[name]);
    }
    // A tool that names a sandbox of the file, misspelt.
    let section = |sandboxes: &str| {
        let tool = "{import_tool: bash, name: other, config: {sandbox: victin}}";
        format!("{sandboxes}\nshared: {{tools: [{tool}]}}")
    };
    for (sandboxes, suggestion) in
        [("sandbox: process", "`sandboxes: {victin: ...}`"), ("sandboxes: {victim: process}", "`victim`")]
    {
        let checked = json(folder(&section(sandboxes)).path(), &["check", "tools.yaml"]);
        checked.has_problems(&[("warning tools.yaml:2:69", suggestion)]);
        assert!(checked.problems()[0].1.contains("`victin`"), "{checked:?}");
    }
    let checked = json(folder(&section("sandboxes: {victin: process}")).path(), &["check", "tools.yaml"]);
    assert!(checked.problems().iter().all(|(_, text)| !text.contains("victin")), "{checked:?}");
}

#[test]
fn output_for_the_model_is_cut_at_the_limit_of_the_command_or_the_file() {
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
    // The bytes of the output that the model was given, and the limit that its note names.
    let given = |more: &[&str]| {
        let args = ["ask", "go", "-f", "t.yaml", "--model", "scripted/replies.yaml", "--no-record"];
        let outcome = json(folder.path(), &[&args, more].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let messages = outcome.value()["messages"].clone();
        let result = messages.as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap();
        let text = result["content"].to_string();
        (text.matches("ab").count() * 2, text.matches("16384").count() + text.matches("2000").count())
    };
    file("");
    let (bytes, noted) = given(&[]);
    assert!((15_000..=16_384).contains(&bytes) && noted == 1, "{bytes} bytes");
    file("limits: {max_output: 100}");
    let (bytes, _) = given(&[]);
    assert!((2..=100).contains(&bytes), "{bytes} bytes");
    let (bytes, noted) = given(&["--max-output", "2000"]);
    assert!((1_000..=2_000).contains(&bytes) && noted == 1, "{bytes} bytes");
    assert_eq!(given(&["--max-output", "0"]), (40_000, 0));
}

#[test]
fn tool_choice_reaches_the_model() {
    let model = crate::fake_model::FakeModel::start();
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
        json_with(place.path(), &args, "", &variables)
    };
    for (choice, tools, wanted) in
        [("auto", 2, "auto"), ("any", 2, "any"), ("none", 0, ""), ("sum", 1, "tool")]
    {
        let asked = ask(choice);
        assert_eq!(asked.code, Some(0), "{asked:?}");
        let body: serde_json::Value =
            serde_json::from_str(&model.bodies.lock().unwrap().pop().unwrap()).unwrap();
        assert_eq!(body["tools"].as_array().map_or(0, Vec::len), tools, "{body}");
        let told = body["tool_choice"]["type"].as_str().unwrap_or_default();
        assert!(told == wanted || choice == "auto" && told.is_empty(), "{body}");
    }
    ask("smu").fails("parsing", 2, &["`smu`", "sum"]);
}

#[test]
fn rules_that_can_never_match_are_reported() {
    let rules = concat!(
        "- {tools: '*', decision: approve}\n",
        "- {tools: summ, when: {x: 1}, decision: reject}\n",
        "- {tools: bash, when: {comand: '*secret*'}, decision: reject}\n",
    );
    // A wrong parameter is an error; a tool that is not there may be meant for other files.
    let place = folder("");
    let path = place.path().join("tools.yaml");
    let file = std::fs::read_to_string(&path).unwrap();
    let own = format!("policy:\n{}", rules.replace("- {", "  - {"));
    std::fs::write(&path, file.replace("policy: [{tools: '*', decision: approve}]", &own)).unwrap();
    let checked = json(place.path(), &["check", "tools.yaml"]);
    checked.has_problems(&[("warning tools.yaml:4:6", "`sum`"), ("error tools.yaml:5:26", "`command`")]);
    assert_eq!(checked.code, Some(2));
    let place = folder("");
    std::fs::write(place.path().join("mine.yaml"), rules).unwrap();
    let checked = json(place.path(), &["check", "tools.yaml", "--policy", "mine.yaml"]);
    checked.has_problems(&[("error", "`command`"), ("warning", "`sum`")]);
    assert_eq!(checked.code, Some(2));
    // One precise text: the file of the rules, the number of the rule, and what to write.
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
        let called = json(place.path(), &[&["call", "sum", "-f", "tools.yaml"], given].concat());
        called.fails("parsing", 2, &["123456789012345678901234"]);
    }
}

#[test]
fn rules_beside_a_file_are_checked_too() {
    let place = folder("");
    std::fs::write(place.path().join("bad.yaml"), "- {tools: '*', decision: perhaps}\n").unwrap();
    let checked = json(place.path(), &["check", "tools.yaml", "--policy", "bad.yaml"]);
    checked.has_problems(&[("error", "`perhaps`")]);
    checked.fails("parsing", 2, &[]);
}

#[test]
fn check_reports_the_problems_of_all_sections_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = "policy: [{tools: bash, decision: maybe}]\nlimits: {turnz: 3}\nsandbox: {nonsense: 7}\n\
                tools:\n  - {name: x, do: {eval: '${nobody}'}}\n";
    std::fs::write(folder.path().join("tools.yaml"), file).unwrap();
    let checked = json(folder.path(), &["check", "tools.yaml"]);
    let problems = checked.problems();
    for (place, name) in [
        ("error tools.yaml:1:24", "`maybe`"),
        ("error tools.yaml:2:10", "`turnz`"),
        ("error tools.yaml:3:11", "`nonsense`"),
        ("error tools.yaml:5:29", "`nobody`"),
    ] {
        let found = problems.iter().any(|(at, text)| at == place && text.contains(name));
        assert!(found, "{place}, {name}: {problems:?}");
    }
    assert_eq!((problems.len(), checked.code), (4, Some(2)), "{problems:?}");
}

#[test]
fn the_config_of_a_standard_tool_is_used_and_checked() {
    let file = |config: &str| format!("tools:\n  - import_tool: bash\n    config: {config}\n");
    let folder = tempfile::tempdir().unwrap();
    let write = |config: &str| std::fs::write(folder.path().join("tools.yaml"), file(config)).unwrap();
    write("{timeout: 1}");
    let start = std::time::Instant::now();
    let args = ["call", "bash", "command=echo before; sleep 60", "-f", "tools.yaml", "--sandbox", "local"];
    let shown = show_in(folder.path(), &args, "");
    // The sandbox and the call have the same second, so either may report the timeout.
    assert!(shown.contains("before") && start.elapsed().as_secs() < 50, "{shown}");
    for (config, name) in
        [("{timeuot: 1}", "`timeuot`"), ("{timeout: -1}", "`timeout`"), ("{timeout: soon}", "soon")]
    {
        write(config);
        let checked = json(folder.path(), &["check", "tools.yaml"]);
        let (place, text) = &checked.problems()[0];
        assert!(place.starts_with("error tools.yaml:") && text.contains(name), "{config}: {checked:?}");
        checked.fails("parsing", 2, &[]);
    }
}

#[test]
fn a_model_inside_a_call_of_a_person_needs_approval() {
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
        (approve, "pay", "\"type\":\"approval\""),
        ("", "pay", "\"type\":\"approval\""),
        (approve, "flow", "\"type\":\"approval\""),
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
fn the_sandbox_of_the_default_file_holds_for_built_in_tools() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        "sandbox: none\nmcp: {s: {transport: stdio, command: /no/such/server, auto_import_scope: shared}}\n";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    crate::trust(folder.path());
    let called = json(folder.path(), &["call", "bash", "command=true"]);
    called.fails("sandbox_unavailable", 1, &[]);
    let shown = show_in(folder.path(), &["call", "bash", "command=true"], "");
    assert!(shown.contains("the sandbox and the limits of ./toolwright.yaml"), "{shown}");
    assert_eq!(json(folder.path(), &["call", "think", "thought=x"]).code, Some(0));
}

#[test]
fn a_default_file_that_cannot_be_read_stops_built_in_tools() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret.txt"), "tr0ub4dor").unwrap();
    let mask = "sandbox: {mask: [secret.txt]}\n";
    for (more, name) in [
        ("tools: [\n", "toolwright.yaml"),
        ("tools: !include no/such/file.yaml\n", "no/such/file.yaml"),
        ("snadbox: {write: [.]}\n", "snadbox"),
        ("limits: {tool_calls: many}\n", "tool_calls"),
    ] {
        std::fs::write(folder.path().join("toolwright.yaml"), format!("{mask}{more}")).unwrap();
        let called = json(folder.path(), &["call", "bash", "command=cat secret.txt"]);
        called.fails("parsing", 2, &[name]);
        assert!(!called.stdout.contains("tr0ub4dor") && !called.stderr.contains("tr0ub4dor"), "{called:?}");
    }
    // A tool that fails to load, here for want of a variable, does not stop other tools.
    let unset = "env: {LIST: {description: x}}\ntools: [{name: a, do: {eval: '${nonsense}'}}]\n";
    std::fs::write(folder.path().join("toolwright.yaml"), unset).unwrap();
    assert_eq!(json(folder.path(), &["call", "think", "thought=x"]).code, Some(0));
}

#[test]
fn secrets_of_a_file_that_was_found_are_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let file = "env: {MY_KEY: {description: k, secret: true}}\nlimits: {tool_calls: 5}\n";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    crate::trust(folder.path());
    let args = ["call", "--transcript", "tr.jsonl", "think", "thought=sk-SecretValue1234567890"];
    let shown = crate::show_with(folder.path(), &args, "", &[("MY_KEY", "sk-SecretValue1234567890")]);
    assert!(shown.ends_with("--- exit 0\n"), "{shown}");
    let recorded = std::fs::read_to_string(folder.path().join("tr.jsonl")).unwrap();
    assert!(recorded.contains("think") && !recorded.contains("sk-Secret"), "{recorded}");
}

#[test]
fn problems_of_models_have_their_place() {
    let folder = tempfile::tempdir().unwrap();
    for (file, place, name) in [
        (
            "models: {fast: {model: a/b, price: {input: 1, output: 2, currency: EUR}}}\n",
            "error t.yaml:1:58",
            "currency",
        ),
        (
            "models:\n  - {name: a, model: a/b}\n  - {name: fast, model: a/b, modle: 1}\n",
            "error t.yaml:3:30",
            "`modle`",
        ),
        ("models: {fast: {model: a/b, timeout: -1}}\n", "error t.yaml:1:29", "`timeout`"),
    ] {
        std::fs::write(folder.path().join("t.yaml"), file).unwrap();
        let checked = json(folder.path(), &["check", "t.yaml"]);
        checked.has_problems(&[(place, name)]);
        checked.fails("parsing", 2, &[]);
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
        let failed = json(folder.path(), args);
        assert_eq!(failed.code, Some(1), "{failed:?}");
        let output = failed.stdout.clone() + &failed.stderr;
        let failed_at = output.split("\"failed_at\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let failed_at = failed_at.unwrap_or_else(|| panic!("no failed_at: {failed:?}"));
        for part in ["KeyError", "`inner`", "t.yaml:2:", "t.yaml:6:"] {
            assert!(failed_at.contains(part), "{part}: {failed_at}");
        }
        // The text for a person: the error, then where it happened and who called it.
        let shown = show_in(folder.path(), args, "");
        assert!(shown.contains("KeyError: 'missing'\n"), "{shown}");
        assert!(shown.contains("KeyError in `inner` at t.yaml:2:"), "{shown}");
        assert!(shown.contains(", called at t.yaml:6:"), "{shown}");
    }
}

#[test]
fn a_run_names_the_tools_without_a_hint() {
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
