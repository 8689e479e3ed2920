//! Calls that wait for the person's decision.

use tokio::sync::oneshot;
use toolwright::approval::{Choice, Decision, Rule, RuleDecision, Validator};
use toolwright::content::ToolCall;

/// The keys that answer a question: the word each stands for, how it is offered, and what it comes to.
pub const KEYS: [(char, &str, &str, Choice); 6] = [
    ('y', "yes", "[y]es once", Choice::Approve),
    ('a', "always", "[a]lways for these arguments", Choice::Approve),
    ('e', "edit", "[e]dit", Choice::Modify),
    ('n', "no", "[n]o", Choice::Reject),
    ('p', "pass", "[p]ass it on", Choice::Escalate),
    ('q', "quit", "[q]uit the run", Choice::Terminate),
];

/// The rule that approves this call and no other, as a line of a policy.
pub fn approving_rule(call: &ToolCall) -> String {
    let mut rule = Rule::about([call.name.to_string()]);
    rule.decision = RuleDecision::Approve;
    let given = call.arguments.as_object().into_iter().flatten();
    rule.when = given.map(|(name, value)| (name.clone(), serde_json::json!({"equals": value}))).collect();
    if rule.when.is_empty() {
        rule.tools = vec![format!("{}()", call.name)];
    }
    serde_json::to_string(&rule).unwrap_or_default()
}

/// A call that waits for the person's word.
pub struct Question {
    pub shown: String,
    pub reason: Option<String>,
    /// The rule that "always" writes, for the rest of this chat.
    pub rule: String,
    pub arguments: serde_json::Value,
    /// Whether the tool takes what somebody makes of them.
    pub validator: Validator,
    /// The keys of the answers that may be given.
    pub keys: Vec<char>,
    pub answer: oneshot::Sender<Decision>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwright::Policy;
    use toolwright::tool::ToolSpec;

    #[test]
    fn the_rule_of_always_approves_the_call_and_nothing_else() {
        let rule = |arguments| approving_rule(&ToolCall::new("1", "bash", arguments));
        let approves = |rule: &str, arguments| {
            let policy = Policy::from_yaml(&format!("- {rule}")).unwrap();
            let call = ToolCall::new("1", "bash", arguments);
            policy.decide(&call, &ToolSpec::new("bash", "")).decision == RuleDecision::Approve
        };
        let one = rule(json!({"command": "git status; ls *"}));
        assert!(approves(&one, json!({"command": "git status; ls *"})));
        assert!(!approves(&one, json!({"command": "git status; ls x"})));
        let none = rule(json!({}));
        assert!(approves(&none, json!({})) && !approves(&none, json!({"command": "ls"})));
    }
}
