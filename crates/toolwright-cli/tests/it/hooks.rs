//! `toolwright hook`: JSON of an agent in, the answer of our rules out, and a record of both. What cannot be
//! judged is refused.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::{fed, json as run_json, show_in};

const US: &str = env!("CARGO_BIN_EXE_toolwright");

const POLICY: &str = "
- {read_only: true, decision: approve}
- {tools: bash, when: {command: 'git status*'}, decision: approve}
- {tools: bash, when: {command: '*rm -rf*'}, decision: reject, reason: never}
- {tools: bash, when: {command: 'ls*'}, decision: modify, set: {command: ls -l}}
- {tools: read_file, when: {path: '.env'}, decision: reject, reason: a secret}
- {tools: write_file, when: {path: 'src/*'}, decision: approve}
- {tools: write_file, when: {path: '*/src/locked'}, decision: reject, reason: locked}
- {tools: 'mcp:shop/*', decision: approve}
- {tools: 'mcp:shop/sell', decision: ask, reason: costs money}
- {tools: Task, decision: terminate, reason: no helpers}
";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.yaml"), POLICY).unwrap();
    folder
}

fn event(name: &str, tool: &str, input: &Value, more: &Value) -> String {
    let mut event = json!({
        "session_id": "s1", "transcript_path": "/x.jsonl", "cwd": "/work", "permission_mode": "default",
        "hook_event_name": name, "tool_name": tool, "tool_input": input, "tool_use_id": "toolu_1",
        "turn_id": "1", "model": "m"
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event.to_string()
}

/// The exit code, stdout as JSON, and stderr.
fn hook(home: &Path, args: &[&str], input: &str) -> (Option<i32>, Value, String) {
    let mut command = Command::new(US);
    let output = fed(command.arg("hook").args(args).env_clear(), home, input);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let answer = if stdout.is_empty() { Value::Null } else { serde_json::from_str(&stdout).unwrap() };
    (output.status.code(), answer, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn calls_of_an_agent_are_judged_by_the_rules_for_our_own_tools() {
    let home = folder();
    let judge = |client: &str, tool: &str, input: Value| {
        let args = ["--client", client, "--policy", "p.yaml", "--no-record"];
        let (code, answer, said) = hook(home.path(), &args, &event("PreToolUse", tool, &input, &json!({})));
        assert_eq!((code, said.as_str()), (Some(0), ""), "{tool} {input}");
        let output = &answer["hookSpecificOutput"];
        let text = |key: &str| output[key].as_str().unwrap_or("-").to_owned();
        (text("permissionDecision"), text("permissionDecisionReason"), output["updatedInput"].clone())
    };
    let bash = |command: &str| json!({"command": command, "description": "d"});
    let none = Value::Null;
    for (tool, input, decision, reason, changed) in [
        ("Bash", bash("git status -s"), "allow", "-", none.clone()),
        ("Bash", bash("git status; rm -rf /"), "deny", "never", none.clone()),
        ("Bash", bash("/bin/rm -r -f x"), "deny", "never", none.clone()),
        ("Bash", bash("ls /"), "allow", "-", json!({"command": "ls -l", "description": "d"})),
        ("Bash", bash("make"), "ask", "no rule is about `make`", none.clone()),
        ("Read", json!({"file_path": "/work/a/../.env"}), "deny", "a secret", none.clone()),
        ("Read", json!({"file_path": "/work/README.md"}), "allow", "-", none.clone()),
        ("Write", json!({"file_path": "/work/src/a.rs", "content": ""}), "allow", "-", none.clone()),
        ("Write", json!({"file_path": "/work/src/locked", "content": ""}), "deny", "locked", none.clone()),
        (
            "Write",
            json!({"file_path": "/etc/passwd", "content": ""}),
            "ask",
            "no rule is about this call",
            none.clone(),
        ),
        ("mcp__shop__list", json!({}), "allow", "-", none.clone()),
        ("mcp__shop__sell", json!({"n": 1}), "ask", "costs money", none.clone()),
        ("mcp__other__list", json!({}), "ask", "no rule is about this call", none.clone()),
        ("Task", json!({"prompt": "x"}), "deny", "no helpers", none.clone()),
    ] {
        let wanted = (decision.to_owned(), reason.to_owned(), changed.clone());
        assert_eq!(judge("claude-code", tool, input.clone()), wanted, "{tool} {input}");
        let (word, why, set) = judge("codex", tool, input.clone());
        match decision {
            // Codex takes no answer as a yes, and knows no question.
            "allow" if changed.is_null() => assert_eq!((word.as_str(), set), ("-", Value::Null), "{tool}"),
            "ask" => assert!(word == "deny" && why.contains("Codex cannot ask"), "{tool} {input}: {why}"),
            _ => assert_eq!((word, why, set), wanted, "{tool} {input}"),
        }
    }
}

/// A rule that lets an agent write anything does not let it write the rules.
#[test]
fn agent_is_asked_before_it_changes_the_rules() {
    let home = folder();
    std::fs::write(home.path().join("all.yaml"), "- {tools: '*', decision: approve}\n").unwrap();
    let root = std::fs::canonicalize(home.path()).unwrap();
    let place = |name: &str| json!({"file_path": root.join(name), "content": ""});
    let here = json!({"cwd": root});
    let judge = |tool: &str, input: Value| {
        let args = ["--client", "claude-code", "--policy", "all.yaml", "--no-record"];
        let (_, answer, said) = hook(&root, &args, &event("PreToolUse", tool, &input, &here));
        let decision = answer["hookSpecificOutput"]["permissionDecision"].as_str();
        decision.unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    std::os::unix::fs::symlink("all.yaml", home.path().join("link")).unwrap();
    for name in [
        "all.yaml",
        ".claude/settings.json",
        "x/../.codex/hooks.json",
        "link",
        ".config/toolwright/policy.yaml",
    ] {
        assert_eq!(judge("Write", place(name)), "ask", "{name}");
        assert_eq!(judge("Read", place(name)), "allow", "{name}");
    }
    assert_eq!(judge("Write", place("other.yaml")), "allow");
    let patch =
        |file: &str| json!({"command": format!("*** Begin Patch\n*** Update File: {file}\n*** End Patch")});
    assert_eq!(judge("apply_patch", patch("./all.yaml")), "ask");
    assert_eq!(judge("apply_patch", patch("src/a.rs")), "allow");
}

/// Agents take exit code 2 as a refusal, and any other failure as no answer at all.
#[test]
fn what_cannot_be_judged_is_refused_with_a_reason() {
    let home = folder();
    std::fs::write(home.path().join("broken.yaml"), "- {tools: bash, decision: perhaps}\n").unwrap();
    std::fs::write(
        home.path().join("unproved.yaml"),
        "- {tools: bash, when: {command: a*}, decision: approve, examples: {match: [{command: b}]}}\n",
    )
    .unwrap();
    let call = event("PreToolUse", "Bash", &json!({"command": "ls"}), &json!({}));
    let claude = ["--client", "claude-code", "--no-record", "--policy"];
    for (args, input, part) in [
        ([&claude[..], &["broken.yaml"]].concat(), call.as_str(), "perhaps"),
        ([&claude[..], &["unproved.yaml"]].concat(), &call, "example"),
        ([&claude[..], &["none.yaml"]].concat(), &call, "none.yaml"),
        ([&claude[..], &["p.yaml"]].concat(), "", "stdin"),
        ([&claude[..], &["p.yaml"]].concat(), "{\"hook_event_name\": 1}", "stdin"),
        (vec!["--no-record"], &call, "--client"),
        (
            vec!["--client", "claude-code", "--policy", "p.yaml", "--transcript", "/proc/none"],
            &call,
            "/proc/none",
        ),
        (vec!["--client", "cobol"], &call, "cobol"),
    ] {
        let (code, answer, said) = hook(home.path(), &args, input);
        assert_eq!((code, answer), (Some(2), Value::Null), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
    }
    // The person's own rules hold too, broken ones included.
    std::fs::create_dir_all(home.path().join(".config/toolwright")).unwrap();
    std::fs::write(
        home.path().join(".config/toolwright/policy.yaml"),
        "- {tools: '*', decision: reject, reason: mine}\n",
    )
    .unwrap();
    let (_, answer, _) = hook(home.path(), &["--client", "codex", "--policy", "p.yaml"], &call);
    assert_eq!(answer["hookSpecificOutput"]["permissionDecisionReason"], "mine");
    std::fs::write(home.path().join(".config/toolwright/policy.yaml"), "- [").unwrap();
    assert_eq!(hook(home.path(), &["--client", "codex"], &call).0, Some(2));
}

#[test]
fn session_of_an_agent_is_one_run() {
    let home = folder();
    let args = ["--client", "claude-code", "--policy", "p.yaml"];
    let send = |name: &str, command: &str, more: Value| {
        let input = json!({"command": command});
        let (code, ..) = hook(home.path(), &args, &event(name, "Bash", &input, &more));
        assert_eq!(code, Some(0), "{name}");
    };
    let id = |id: &str| json!({"tool_use_id": id});
    send("PreToolUse", "git status", id("a"));
    send("PreToolUse", "rm -rf /", id("b"));
    send("PreToolUse", "make", id("c"));
    send(
        "PostToolUse",
        "git status",
        json!({"tool_use_id": "a", "tool_response": {"stdout": "x".repeat(40_000)}}),
    );
    // Several hooks at once end up in the same record.
    std::thread::scope(|scope| {
        for number in 0..6 {
            scope.spawn(move || send("PreToolUse", "git status", id(&format!("p{number}"))));
        }
    });
    send("SessionEnd", "", json!({}));
    let runs = run_json(home.path(), &["runs"]).stdout;
    assert_eq!(runs.lines().count(), 1, "{runs}");
    let shown = show_in(home.path(), &["runs", "show", "last"], "");
    let listed = show_in(home.path(), &["runs"], "");
    assert!(shown.ends_with("--- exit 0\n") && listed.contains("hook: claude-code"), "{shown}{listed}");
    let record = std::fs::read_dir(home.path().join(".local/share/toolwright/runs")).unwrap();
    let path = record.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some()).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (0..events.len() as u64).collect::<Vec<_>>());
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!(
        (of("run_started"), of("call_started"), of("call_decided"), of("call_finished")),
        (1, 9, 9, 9)
    );
    let of_call = |id: &str, kind: &str| {
        let span = &events.iter().find(|event| event["call_id"] == id).unwrap()["span"];
        events.iter().find(|event| event["event"] == kind && &event["span"] == span).unwrap()
    };
    assert_eq!(of_call("a", "call_decided")["decision"], "approve");
    assert_eq!(of_call("a", "call_finished")["result"]["truncated"]["original"], 40_013);
    assert_eq!(of_call("b", "call_decided")["decision"], "reject");
    assert_eq!(of_call("b", "call_finished")["error"]["type"], "approval");
    assert_eq!(of_call("c", "call_decided")["decision"], "escalate");
    assert_eq!(of_call("c", "call_finished")["interrupted"], true);
}

/// What is installed: a hook that crashes, or is not there, refuses the call.
#[test]
fn installed_hook_refuses_when_it_crashes() {
    let home = folder();
    let settings = home.path().join(".claude/settings.json");
    std::fs::create_dir(home.path().join(".claude")).unwrap();
    let theirs = json!({"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]});
    std::fs::write(&settings, json!({"model": "m", "hooks": {"PreToolUse": [theirs]}}).to_string()).unwrap();
    let install = ["hook", "install", "--client", "claude-code", "--policy", "p.yaml"];
    assert!(show_in(home.path(), &install, "").contains("--write"));
    for _ in 0..2 {
        let shown = show_in(home.path(), &[&install[..], &["--write"]].concat(), "");
        assert!(shown.ends_with("--- exit 0\n"), "{shown}");
    }
    let written: Value = serde_json::from_slice(&std::fs::read(&settings).unwrap()).unwrap();
    let groups = written["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!((groups.len(), &groups[0], &written["model"]), (2, &theirs, &json!("m")), "{written}");
    let command = groups[1]["hooks"][0]["command"].as_str().unwrap();
    let call = |command: &str, line: &str| {
        let mut shell = Command::new("sh");
        let input = event("PreToolUse", "Bash", &json!({"command": line}), &json!({}));
        let output = fed(shell.args(["-c", command]), home.path(), &input);
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, said) = call(command, "git status");
    assert!(code == Some(0) && said.contains("\"allow\""), "{said}");
    let missing = command.replace(US, "/no/such/toolwright");
    let killed = command.replace(US, "kill -SEGV $$; #");
    for broken in [missing, killed.replace("kill -SEGV $$; #", "sh -c \"kill -SEGV \\$\\$\" x")] {
        let (code, said) = call(&broken, "git status");
        assert!(code == Some(2) && said.contains("so the call is refused"), "{broken}: {code:?} {said}");
    }
    std::fs::remove_file(home.path().join("p.yaml")).unwrap();
    let (code, said) = call(command, "git status");
    assert!(code == Some(2) && said.contains("p.yaml") && !said.contains("exit code"), "{said}");
    // Rules that cannot be used are not installed.
    let shown = show_in(home.path(), &[&install[..], &["--write"]].concat(), "");
    assert!(shown.ends_with("--- exit 2\n"), "{shown}");
    let shown = show_in(home.path(), &["hook", "install", "--client", "codex", "--write"], "");
    assert!(shown.contains("/hooks") && home.path().join(".codex/hooks.json").is_file(), "{shown}");
}
