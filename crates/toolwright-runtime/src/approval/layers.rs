//! Policies of several origins judged together: the strictest decision wins, and a mandatory policy can only
//! tighten.

use std::sync::Arc;

use toolwright_core::{Fingerprint, ToolCall, ToolError, ToolPolicy, ToolSpec};

use super::policy::{Policy, Ruling};
use super::rule::{CompiledRule, Rule, RuleDecision};
use super::{Approvals, Case, is_contained, record};
use crate::record::CallFrame;

/// What rules see of a tool beside the call.
pub(super) struct CallSubject<'a> {
    pub(super) spec: &'a ToolSpec,
    pub(super) tool: &'a ToolPolicy,
    /// Whether the tool works in a sandbox that isolates.
    pub(super) contained: bool,
}

impl CallSubject<'_> {
    fn ruling(&self, policy: &Policy, call: &ToolCall) -> Ruling {
        policy.ruling(&mut call.clone(), self.spec, self.tool, self.contained)
    }
}

impl Case<'_> {
    pub(super) fn subject(&self) -> CallSubject<'_> {
        let (spec, tool) = (self.entry.tool.spec(), self.entry.tool.policy());
        CallSubject { spec, tool, contained: is_contained(self.run, tool) }
    }
}

/// The ruling of several policies about a call of a tool that has no policy of its own, as a run with these
/// policies comes to it. Nobody is asked and nothing is recorded. `None` without any policy.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolwright_core::{ToolCall, ToolSpec};
/// use toolwright_runtime::{Policy, RuleDecision, strictest_ruling};
///
/// let policy = |text| Policy::from_yaml(text).map(Arc::new);
/// let project = policy("- {tools: '*', decision: approve}")?;
/// let user = policy("- {tools: deploy, decision: ask}")?;
/// let decide = |name: &str| {
///     let policies = [project.clone(), user.clone()];
///     strictest_ruling(policies, None, &ToolCall::new("1", name, json!({})), &ToolSpec::new(name, ""))
/// };
/// assert_eq!(decide("deploy").unwrap().decision, RuleDecision::Ask);
/// assert_eq!(decide("build").unwrap().decision, RuleDecision::Approve);
/// # Ok::<(), toolwright_runtime::PolicyError>(())
/// ```
pub fn strictest_ruling(
    policies: impl IntoIterator<Item = Arc<Policy>>,
    mandatory: Option<&Policy>,
    call: &ToolCall,
    spec: &ToolSpec,
) -> Option<Ruling> {
    strictest_ruling_about(policies, mandatory, call, spec, &ToolPolicy::default())
}

/// The same about a tool that says more of itself: its other names, and which of its parameters a shell runs.
pub fn strictest_ruling_about(
    policies: impl IntoIterator<Item = Arc<Policy>>,
    mandatory: Option<&Policy>,
    call: &ToolCall,
    spec: &ToolSpec,
    tool: &ToolPolicy,
) -> Option<Ruling> {
    let mut approvals = Approvals::default();
    policies.into_iter().for_each(|policy| approvals.add_policy(policy));
    mandatory.into_iter().for_each(|policy| approvals.set_mandatory(policy));
    let about = CallSubject { spec, tool, contained: false };
    let ruling = about.ruling(approvals.policy.as_deref()?, call);
    Some(approvals.strictest(ruling, call, &about))
}

impl Policy {
    /// The rules of several policies as one: the strictest decision of all of them wins. A policy of
    /// `approvers:`, whose first match decides, cannot be among them.
    fn union(policies: &[&Policy], otherwise_approved: bool) -> Self {
        let mut rules: Vec<CompiledRule> = Vec::new();
        for (layer, policy) in policies.iter().enumerate() {
            rules.extend(policy.rules.iter().map(|rule| CompiledRule::of_layer(rule, layer)));
        }
        if otherwise_approved {
            rules.extend(approve_all());
        }
        let ids: Vec<&str> = policies.iter().map(|policy| &*policy.id).collect();
        let id = Fingerprint::of(&serde_json::json!([ids, otherwise_approved])).0;
        let effects = policies.iter().flat_map(|policy| policy.effects.iter().cloned()).collect();
        Policy::of_compiled(id, rules, effects, policies.iter().any(|policy| policy.trusts_tools()))
    }

    /// The same rules without those that approve. What none of them is about is approved, which leaves the
    /// decision to others.
    fn only_tightening(&self) -> Self {
        let strict = self.rules.iter().filter(|rule| rule.rule.decision > RuleDecision::Approve).cloned();
        let rules = strict.chain(approve_all()).collect();
        Policy::of_compiled(self.id.clone(), rules, self.effects.clone(), false)
    }
}

fn approve_all() -> Option<CompiledRule> {
    CompiledRule::of(Rule { decision: RuleDecision::Approve, ..Rule::about(["*"]) }).ok()
}

impl Approvals {
    /// Adds rules that are judged beside those there are: the strictest decision of all wins. What no rule of
    /// any policy is about is asked about.
    pub(crate) fn add_policy(&mut self, policy: Arc<Policy>) {
        self.layers.push(policy);
        self.policy = None;
        self.beside.clear();
        let (ordered, strict): (Vec<_>, Vec<_>) =
            self.layers.iter().cloned().partition(|policy| policy.takes_first());
        match (ordered.as_slice(), strict.as_slice()) {
            ([], [only]) => self.policy = Some(only.clone()),
            ([], strict) => {
                let strict: Vec<&Policy> = strict.iter().map(|policy| &**policy).collect();
                self.policy = Some(Arc::new(Policy::union(&strict, false)));
            }
            // A list of approvers decides about every call, so what others are silent about is up to it.
            ([first, others @ ..], strict) => {
                self.policy = Some(first.clone());
                self.beside.extend(others.iter().cloned());
                if !strict.is_empty() {
                    let strict: Vec<&Policy> = strict.iter().map(|policy| &**policy).collect();
                    self.beside.push(Arc::new(Policy::union(&strict, true)));
                }
            }
        }
    }

    /// Sets rules that nothing loosens: they hold for calls of persons too, and `assume_yes` does not answer
    /// their `ask`. Those that approve do not count.
    pub(crate) fn set_mandatory(&mut self, policy: &Policy) {
        self.mandatory = Some(Arc::new(policy.only_tightening()));
    }

    /// The strictest of a ruling and those of the other policies.
    pub(super) fn strictest(&self, mut ruling: Ruling, call: &ToolCall, about: &CallSubject<'_>) -> Ruling {
        for policy in self.beside.iter().chain(&self.mandatory) {
            let mut other = about.ruling(policy, call);
            if ruling.reviews_otherwise(&other) {
                ruling = Ruling { set: ruling.set, ..Ruling::disputed() };
            }
            // Of two values for one argument the mandatory one wins, else that of the stricter ruling.
            let mut binding = self.mandatory.as_ref().is_some_and(|mandatory| Arc::ptr_eq(mandatory, policy));
            if other.decision > ruling.decision {
                // An approvers' list ends with whom it passes a call on to; nobody goes on in another list.
                other.next = None;
                std::mem::swap(&mut ruling, &mut other);
                binding = false;
            }
            for (name, value) in other.set {
                if binding {
                    ruling.set.insert(name, value);
                } else {
                    ruling.set.entry(name).or_insert(value);
                }
            }
        }
        ruling
    }

    /// Every policy that was added, and the mandatory one.
    pub(crate) fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.layers.iter().chain(&self.mandatory).map(|policy| &**policy)
    }

    /// Whether a mandatory rule wants a person, or a model before them, to decide about this call.
    pub(super) fn must_ask(&self, case: &Case<'_>, call: &ToolCall) -> bool {
        let mandatory = self.mandatory.as_ref();
        mandatory.is_some_and(|policy| case.subject().ruling(policy, call).decision >= RuleDecision::Review)
    }

    /// An error when a mandatory rule refuses a call that a person made. A person who makes a call has
    /// answered what would be asked about it.
    pub(super) fn allowed_to_person(
        &self,
        case: &Case<'_>,
        call: &ToolCall,
        frame: &CallFrame<'_>,
    ) -> Result<(), ToolError> {
        let Some(policy) = &self.mandatory else { return Ok(()) };
        let ruling = case.subject().ruling(policy, call);
        if ruling.decision < RuleDecision::Reject {
            return Ok(());
        }
        let reason = ruling.reason.unwrap_or_else(|| "the policy does not allow this call".to_owned());
        record(case.run, frame.info.span, "policy", "reject", Some(reason.clone()), None)?;
        Err(ToolError::of(toolwright_core::ErrorKind::Approval, reason))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwright_core::{ToolCall, ToolSpec};

    use super::*;

    const DECISIONS: [&str; 4] = ["approve", "ask", "reject", "terminate"];

    fn policy(text: &str) -> Arc<Policy> {
        Arc::new(Policy::from_yaml(text).unwrap())
    }

    fn rules(decision: &str) -> Arc<Policy> {
        policy(&format!("- {{tools: t, decision: {decision}}}"))
    }

    fn decide(policies: &[Arc<Policy>], mandatory: Option<&Policy>) -> RuleDecision {
        let call = ToolCall::new("1", "t", json!({}));
        let ruling = strictest_ruling(policies.to_vec(), mandatory, &call, &ToolSpec::new("t", ""));
        ruling.unwrap().decision
    }

    #[test]
    fn of_every_two_policies_the_stricter_decides_whichever_is_first() {
        for (index, one) in DECISIONS.iter().enumerate() {
            for (other_index, other) in DECISIONS.iter().enumerate() {
                let wanted = decide(&[rules(DECISIONS[index.max(other_index)])], None);
                assert_eq!(decide(&[rules(one), rules(other)], None), wanted, "{one}, {other}");
            }
        }
    }

    #[test]
    fn a_policy_that_is_silent_leaves_the_decision_to_others() {
        let silent = policy("- {tools: other, decision: reject}");
        assert_eq!(decide(&[silent.clone(), rules("approve")], None), RuleDecision::Approve);
        assert_eq!(decide(&[silent.clone(), silent.clone()], None), RuleDecision::Ask);
        assert_eq!(decide(&[rules("approve")], Some(&silent)), RuleDecision::Approve);
    }

    #[test]
    fn a_mandatory_policy_tightens_and_never_approves() {
        for decision in DECISIONS {
            let alone = decide(&[rules(decision)], None);
            assert_eq!(decide(&[rules("approve")], Some(&rules(decision))), alone, "{decision}");
            // What it approves is still decided by the others.
            assert_eq!(decide(&[rules(decision)], Some(&rules("approve"))), alone, "{decision}");
        }
        let silent = policy("- {tools: other, decision: ask}");
        assert_eq!(decide(&[silent], Some(&rules("approve"))), RuleDecision::Ask);
    }

    #[test]
    fn a_review_of_one_policy_does_not_stand_in_for_that_of_another() {
        let review = |by: &str| policy(&format!("- {{tools: t, decision: review, by: {by}}}"));
        let (one, other) = (review("one"), review("other"));
        assert_eq!(decide(&[one.clone(), one.clone()], None), RuleDecision::Review);
        assert_eq!(decide(&[one.clone(), other.clone()], None), RuleDecision::Ask);
        assert_eq!(decide(std::slice::from_ref(&one), Some(&other)), RuleDecision::Ask);
        assert_eq!(decide(&[rules("approve")], Some(&other)), RuleDecision::Review);
        assert_eq!(decide(&[one, rules("reject")], Some(&other)), RuleDecision::Reject);
    }

    #[test]
    fn a_list_of_approvers_is_one_of_the_judged_policies() {
        let auto = policy("approvers: [{name: auto, tools: t}]");
        let none = policy("approvers: [{name: auto, tools: other}]");
        let silent = policy("- {tools: other, decision: reject}");
        assert_eq!(decide(&[auto.clone(), silent.clone()], None), RuleDecision::Approve);
        assert_eq!(decide(&[silent, none.clone()], None), RuleDecision::Reject);
        assert_eq!(decide(&[auto.clone(), rules("reject")], None), RuleDecision::Reject);
        assert_eq!(decide(&[rules("approve"), none], None), RuleDecision::Reject);
        assert_eq!(decide(&[auto], Some(&rules("ask"))), RuleDecision::Ask);
    }

    #[test]
    fn arguments_set_by_several_policies_are_merged_and_the_mandatory_value_wins() {
        let set = |value: u64| {
            policy(&format!("- {{tools: t, decision: modify, set: {{n: {value}, v{value}: 1}}}}"))
        };
        let call = ToolCall::new("1", "t", json!({}));
        let spec = ToolSpec::new("t", "");
        let ruling = strictest_ruling([set(1), set(2)], Some(&set(3)), &call, &spec).unwrap();
        assert_eq!(serde_json::Value::Object(ruling.set), json!({"n": 3, "v1": 1, "v2": 1, "v3": 1}));
    }

    #[test]
    fn rules_about_shell_text_judge_every_command_in_each_policy() {
        let decide = |policies: &[Arc<Policy>], mandatory: Option<&Policy>, text: &str| {
            let mut approvals = Approvals::default();
            policies.iter().for_each(|policy| approvals.add_policy(policy.clone()));
            mandatory.into_iter().for_each(|policy| approvals.set_mandatory(policy));
            let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}}});
            let (spec, mut tool) = (ToolSpec::new("bash", ""), ToolPolicy::default());
            let spec = ToolSpec { parameters, ..spec };
            tool.shell.push("command".into());
            let about = CallSubject { spec: &spec, tool: &tool, contained: false };
            let call = ToolCall::new("1", "bash", json!({"command": text}));
            let ruling = about.ruling(approvals.policy.as_deref().unwrap(), &call);
            approvals.strictest(ruling, &call, &about).decision
        };
        let git = policy("- {tools: bash, when: {command: 'git *'}, decision: approve}");
        let no_push = policy("- {tools: bash, when: {command: 'git push*'}, decision: reject}");
        let any = policy("- {tools: bash, decision: approve}");
        let both = [git.clone(), no_push.clone()];
        assert_eq!(decide(&both, None, "git status && git log"), RuleDecision::Approve);
        assert_eq!(decide(&both, None, "git status; rm -r x"), RuleDecision::Ask);
        assert_eq!(decide(&both, None, "git status; git push"), RuleDecision::Reject);
        for text in ["git push", "cd a && git push", "echo $(git push)", "sudo git push"] {
            assert_eq!(
                decide(std::slice::from_ref(&any), Some(&no_push), text),
                RuleDecision::Reject,
                "{text}"
            );
        }
        assert_eq!(decide(std::slice::from_ref(&any), Some(&no_push), "ls -l"), RuleDecision::Approve);
        assert_eq!(decide(&[any], Some(&no_push), "$(cat x)"), RuleDecision::Ask);
        // What a mandatory policy approves widens nothing.
        assert_eq!(
            decide(&[git], Some(&policy("- {tools: bash, decision: approve}")), "rm x"),
            RuleDecision::Ask
        );
    }
}
