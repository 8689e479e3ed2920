//! The `approvers:` files of Inspect, against what Inspect's own patterns were seen to be about.

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_core::{ToolCall, ToolPolicy, ToolSpec};

use super::policy::Policy;
use super::rule::RuleDecision;

#[derive(Deserialize)]
struct Observations {
    vectors: Vec<Observed>,
}

#[derive(Deserialize)]
struct Observed {
    tools: String,
    name: String,
    arguments: Value,
    about: bool,
}

fn entry(tools: &str, decision: &str) -> Value {
    json!({"name": "auto", "tools": tools, "decision": decision})
}

/// True when the entries let a call of a tool with this schema run.
fn runs(entries: &[Value], name: &str, arguments: &Value, schema: &Value) -> bool {
    let policy = Policy::from_value(json!({"approvers": entries})).unwrap();
    let mut spec = ToolSpec::new(name, "A tool.");
    spec.parameters = schema.clone();
    let call = ToolCall::new("1", name, arguments.clone());
    policy.rule_from(0, &call, &spec, &ToolPolicy::default(), false).decision == RuleDecision::Approve
}

/// What a pattern is about there, an entry that refuses refuses here, and one that approves approves nothing
/// else.
#[test]
fn patterns_are_about_what_they_are_about_in_inspect() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/inspect/approvers.json");
    let all: Observations = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let open = json!({"type": "object"});
    let (mut wrong, mut stricter, mut same) = (Vec::new(), 0, 0);
    for seen in &all.vectors {
        let told = || format!("{} {}({}) there: {}", seen.tools, seen.name, seen.arguments, seen.about);
        let refusing = [entry(&seen.tools, "reject"), entry("*", "approve")];
        let refused = !runs(&refusing, &seen.name, &seen.arguments, &open);
        // A comma may stand inside a call; such a pattern is not always read where it would let calls pass.
        let approving = json!({"approvers": [entry(&seen.tools, "approve")]});
        let approved = Policy::from_value(approving).is_ok()
            && runs(&[entry(&seen.tools, "approve")], &seen.name, &seen.arguments, &open);
        if (seen.about && !refused) || (!seen.about && approved) {
            wrong.push(told());
        }
        match (refused, approved) == (seen.about, seen.about) {
            true => same += 1,
            false => stricter += 1,
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(same > 4 * stricter, "{same} as in Inspect, {stricter} stricter");
}

#[test]
fn an_entry_that_refuses_sees_the_call_as_inspect_writes_it() {
    let schema = json!({"type": "object", "properties": {
        "command": {}, "force": {"default": false}, "args": {}, "dry": {"default": true},
    }});
    for (pattern, arguments) in [
        ("*rm -rf*", json!({"command": "rm -rf /"})),
        ("bash(*force=True*", json!({"command": "x", "force": true})),
        ("bash(*sh -c '*", json!({"command": "sh -c 'x'"})),
        ("bash(*args=['--all'*", json!({"command": "x", "args": ["--all"]})),
        ("bash(command='a\nb'", json!({"command": "a\nb"})),
        ("bash(command='x', force=True", json!({"command": "x"})),
        // What a call leaves out, and the order in which it has its arguments, get it past no entry.
        ("bash(*dry=True*", json!({"command": "x"})),
        ("bash(command='rm*", json!({"force": true, "command": "rm x"})),
        // The writing of our own rules, too.
        ("bash(*force=true*", json!({"force": true})),
    ] {
        let entries = [entry(pattern, "reject"), entry("*", "approve")];
        assert!(!runs(&entries, "bash", &arguments, &schema), "{pattern}");
        assert!(runs(&entries, "bash", &json!({"command": "ls", "dry": false}), &schema), "{pattern}");
        let person = [json!({"name": "human", "tools": pattern}), entry("*", "approve")];
        assert!(!runs(&person, "bash", &arguments, &schema), "a person is asked: {pattern}");
    }
}

#[test]
fn an_entry_that_approves_is_not_talked_round() {
    let schema = json!({"type": "object"});
    for (pattern, arguments, approved) in [
        ("bash(command='ls', force=False", json!({"command": "ls", "force": false}), true),
        ("bash(command='ls', force=False", json!({"command": "ls', force=False, x='; rm x"}), false),
        ("bash(command='ls')", json!({"command": "ls"}), true),
        ("bash(command='ls')", json!({"command": "ls') || rm x"}), false),
        ("bash(command='a\\nb')", json!({"command": "a\nb"}), false),
        ("*command='ls'*", json!({"command": "ls"}), true),
        ("*ls*", json!({"command": "ls"}), false),
        ("ba", json!({"command": "ls"}), true),
        ("*ash", json!({"command": "ls"}), true),
    ] {
        let got = runs(&[entry(pattern, "approve")], "bash", &arguments, &schema);
        assert_eq!(got, approved, "{pattern} {arguments}");
    }
    let taken_away = json!({"approvers": [{"name": "auto", "tools": ["*", "!bash"], "decision": "reject"}]});
    assert!(Policy::from_value(taken_away).unwrap_err().to_string().contains("nothing is taken away"));
}
