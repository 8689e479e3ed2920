//! A list of rules, and the one ruling they come to for a call.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolwright_core::{
    Choice, DataError, Fingerprint, PathSegment, ToolCall, ToolPolicy, ToolSpec, read_data,
};
use toolwright_yaml::YamlDocument;

use super::effects::{CompiledEffectRule, EffectRule};
use super::in_declared_order;
use super::matching::real_name;
use super::naming::Naming;
use super::rule::{CompiledRule, JudgedCall, Rule, RuleDecision};
use super::shell;

/// Rules about calls. The strictest matching rule wins; a call no rule matches is asked about. In an
/// `approvers:` file the first that does not pass a call on decides, and a call that none decides about is
/// refused.
#[derive(Debug)]
pub struct Policy {
    /// Identifies the policy in envelopes: a name, or a hash of its rules.
    pub(crate) id: Arc<str>,
    pub(super) rules: Vec<CompiledRule>,
    /// Rules about what calls have changed.
    pub(super) effects: Vec<CompiledEffectRule>,
    order: Order,
    /// What no rule decides is approved when the tool's own policy speaks for it.
    trusts_tools: bool,
}

/// Which of several matching rules decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The strictest.
    Strictest,
    /// The first that does not pass the question on, as in an `approvers:` list.
    First,
}

impl Order {
    fn naming(self, rule: &Rule) -> Result<Naming, String> {
        match self {
            Order::Strictest => Naming::new(&rule.tools),
            Order::First => Naming::of_approver(&rule.tools, rule.lets_pass()),
        }
    }

    /// What is wrong with a rule, with its number and the way to it.
    fn in_rule(self, index: usize, misfit: DataError) -> DataError {
        let misfit = misfit.about(format_args!("rule {}", index + 1)).inside(index);
        match self {
            Order::Strictest => misfit,
            Order::First => misfit.inside(APPROVERS),
        }
    }
}

/// The key of the rules in a file as Inspect writes it.
const APPROVERS: &str = "approvers";

/// A rule, and the only answers its approver may give.
type Offering = (Rule, Option<Arc<[Choice]>>);

/// What a policy decides about one call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ruling {
    /// The decision.
    pub decision: RuleDecision,
    /// The reason of the rule that decides.
    pub reason: Option<String>,
    /// The model that reviews the call, with [`RuleDecision::Review`].
    pub by: Option<String>,
    /// The arguments that all matching `modify` rules set; the first of two rules for one argument wins.
    pub set: Map<String, Value>,
    /// The only answers that the approver is offered.
    pub(super) choices: Option<Arc<[Choice]>>,
    /// The rule after the one that decides, in an `approvers:` list.
    pub(super) next: Option<usize>,
}

impl Ruling {
    /// Whether an approver may approve the call.
    pub(super) fn offers_approval(&self) -> bool {
        self.choices.as_ref().is_none_or(|choices| choices.contains(&Choice::Approve))
    }

    /// A ruling that changes nothing and offers every answer.
    pub(super) fn of(decision: RuleDecision, reason: Option<String>) -> Self {
        Ruling { decision, reason, by: None, set: Map::new(), choices: None, next: None }
    }

    /// The ruling where policies want different reviews: one model must not stand in for another.
    pub(super) fn disputed() -> Self {
        Ruling::of(RuleDecision::Ask, Some("several policies want different reviews of this call".to_owned()))
    }

    /// Whether both rulings are reviews, by different models or with different guidance.
    pub(super) fn reviews_otherwise(&self, other: &Ruling) -> bool {
        let reviews = self.decision == RuleDecision::Review && other.decision == RuleDecision::Review;
        reviews && (&self.by, &self.reason) != (&other.by, &other.reason)
    }

    /// The rule that decides when everybody who is asked passes the call on; none where that is not offered.
    pub(super) fn passed_on_to(&self) -> Option<usize> {
        let offered = self.choices.as_ref().is_some_and(|choices| choices.contains(&Choice::Escalate));
        self.next.filter(|_| offered)
    }
}

impl Policy {
    /// A policy from rules. Their examples are tried; all problems are reported.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Result<Self, PolicyError> {
        Self::build(rules.into_iter().map(|rule| Ok((rule, None))).enumerate(), Order::Strictest)
    }

    fn build(
        rules: impl IntoIterator<Item = (usize, Result<Offering, DataError>)>,
        order: Order,
    ) -> Result<Self, PolicyError> {
        let (mut compiled, mut problems, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for (index, read) in rules {
            if let Ok((rule, choices)) = &read {
                told.extend(serde_json::to_value(rule));
                told.extend(choices.as_deref().map(serde_json::to_value).transpose().ok().flatten());
            }
            let compile = |(rule, choices)| {
                let naming =
                    order.naming(&rule).map_err(|problem| DataError::new(problem).inside("tools"))?;
                let mut rule = CompiledRule::new(rule, naming).map_err(DataError::new)?;
                (rule.index, rule.choices) = (index, choices);
                Ok(rule)
            };
            match read.and_then(compile) {
                Ok(rule) => compiled.push(rule),
                Err(misfit) => problems.push(order.in_rule(index, misfit)),
            }
        }
        if !problems.is_empty() {
            return Err(PolicyError { problems });
        }
        let id = Fingerprint::of(&serde_json::json!([format!("{order:?}"), told])).0;
        Ok(Policy { id, rules: compiled, effects: Vec::new(), order, trusts_tools: false })
    }

    /// A policy from YAML or JSON: a list of rules, or a map with `approvers` as Inspect writes them.
    pub fn from_yaml(text: &str) -> Result<Self, PolicyError> {
        let document = YamlDocument::read("policy", text)
            .map_err(|error| PolicyError { problems: error.into_iter().map(DataError::from).collect() })?;
        Self::from_value(document.to_json()).map_err(|error| {
            let with_line = |misfit: DataError| match document.line_of(&misfit.path) {
                Some(line) => misfit.about(format_args!("line {line}")),
                None => misfit,
            };
            PolicyError { problems: error.problems.into_iter().map(with_line).collect() }
        })
    }

    /// A policy from data, in either form of [`from_yaml`](Self::from_yaml).
    pub fn from_value(value: Value) -> Result<Self, PolicyError> {
        let one = |misfit: DataError| PolicyError { problems: vec![misfit] };
        match &value {
            Value::Array(rules) => {
                let is_about_effects = |rule: &Value| rule.get("effects").is_some();
                let read = |(index, rule)| (index, read_data::<Rule>(rule).map(|rule| (rule, None)));
                let calls = rules.iter().enumerate().filter(|(_, rule)| !is_about_effects(rule)).map(read);
                let effects = rules.iter().enumerate().filter(|(_, rule)| is_about_effects(rule));
                with_effects(Self::build(calls, Order::Strictest), effects)
            }
            Value::Object(map) if map.contains_key(APPROVERS) => {
                let file: ApproverFile = read_data(&value).map_err(|misfit| match misfit.path.get(1) {
                    Some(&PathSegment::Index(index)) => one(misfit.about(format_args!("rule {}", index + 1))),
                    _ => one(misfit),
                })?;
                let rules = file.approvers.into_iter().enumerate();
                // An entry that only passes the question on is not a rule, but counts where rules are
                // counted.
                let rules = rules.filter_map(|(index, entry)| Some((index, entry.into_rule().transpose()?)));
                Self::build(rules, Order::First)
            }
            _ => Err(one(DataError::new("a policy is a list of rules, or a map with `approvers`"))),
        }
    }

    /// The way to a rule in a file, and what is wrong with it.
    pub(super) fn in_rule(&self, rule: &CompiledRule, misfit: DataError) -> DataError {
        self.order.in_rule(rule.index, misfit)
    }

    /// The program's own default: approves tools that change nothing or work in a sandbox, those that only
    /// call others (which are decided about), and those that are said to need no confirmation; asks about the
    /// rest.
    pub fn cautious() -> Self {
        let rules = [
            Rule { read_only: Some(true), decision: RuleDecision::Approve, ..Rule::about(["*"]) },
            Rule { sandboxed: Some(true), decision: RuleDecision::Approve, ..Rule::about(["*"]) },
        ]
        .map(CompiledRule::of);
        Policy {
            id: "cautious".into(),
            rules: rules.into_iter().flatten().collect(),
            effects: Vec::new(),
            order: Order::Strictest,
            trusts_tools: true,
        }
    }

    /// A policy that approves everything, for calls a person typed.
    pub fn approve_all() -> Self {
        let rule = Rule { decision: RuleDecision::Approve, ..Rule::about(["*"]) };
        Policy {
            id: "approve_all".into(),
            rules: CompiledRule::of(rule).into_iter().collect(),
            effects: Vec::new(),
            order: Order::Strictest,
            trusts_tools: false,
        }
    }

    /// The rules, in the order of the file.
    pub fn rules(&self) -> Vec<&Rule> {
        self.rules.iter().map(|compiled| &compiled.rule).collect()
    }

    /// The rules about effects, in the order of the file.
    pub fn effect_rules(&self) -> Vec<&EffectRule> {
        self.effects.iter().map(|compiled| &compiled.rule).collect()
    }

    /// A policy of compiled rules, of which the strictest decides.
    pub(super) fn of_compiled(
        id: Arc<str>,
        rules: Vec<CompiledRule>,
        effects: Vec<CompiledEffectRule>,
        trusts_tools: bool,
    ) -> Self {
        Policy { id, rules, effects, order: Order::Strictest, trusts_tools }
    }

    /// Whether the first rule that matches decides.
    pub fn takes_first(&self) -> bool {
        self.order == Order::First
    }

    /// Whether what no rule decides is approved when the tool's own policy speaks for it.
    pub(super) fn trusts_tools(&self) -> bool {
        self.trusts_tools
    }

    /// The ruling about a call of a tool that has no policy of its own. Nobody is asked and nothing is
    /// recorded.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolwright_core::{ToolCall, ToolSpec};
    /// use toolwright_runtime::{Policy, RuleDecision};
    ///
    /// let policy = Policy::from_yaml("- {tools: 'mcp_*', decision: reject, reason: no questions}")?;
    /// let call = ToolCall::new("1", "mcp_sampling", json!({"server": "notes"}));
    /// let ruling = policy.decide(&call, &ToolSpec::new("mcp_sampling", ""));
    /// assert_eq!(ruling.decision, RuleDecision::Reject);
    /// assert_eq!(ruling.reason.as_deref(), Some("no questions"));
    /// # Ok::<(), toolwright_runtime::PolicyError>(())
    /// ```
    pub fn decide(&self, call: &ToolCall, spec: &ToolSpec) -> Ruling {
        self.ruling(&mut call.clone(), spec, &ToolPolicy::default(), false)
    }

    /// The ruling about a call, whose arguments are put in the order in which the tool declares them. A model
    /// cannot choose an order that no rule is about: the stricter of both rulings counts.
    pub(super) fn ruling(
        &self,
        call: &mut ToolCall,
        spec: &ToolSpec,
        tool: &ToolPolicy,
        contained: bool,
    ) -> Ruling {
        // The patterns of Inspect see arguments in the order that a model gave them.
        let as_given = self.takes_first().then(|| self.rule_from(0, call, spec, tool, contained));
        in_declared_order(spec, &mut call.arguments);
        let ruling = self.rule_from(0, call, spec, tool, contained);
        as_given.filter(|as_given| as_given.decision > ruling.decision).unwrap_or(ruling)
    }

    /// The ruling of the rules from this one on. `contained` says whether the tool works in a sandbox that
    /// isolates.
    pub(super) fn rule_from(
        &self,
        first: usize,
        call: &ToolCall,
        spec: &ToolSpec,
        tool: &ToolPolicy,
        contained: bool,
    ) -> Ruling {
        let case = JudgedCall { call, spec, tool, contained };
        let whole = self
            .ruling_by(first, &case, |_, rule| rule.matches(&case))
            .unwrap_or_else(|| self.unmatched(tool, "no rule is about this call"));
        shell::judged(self, first, &case, &whole).unwrap_or(whole)
    }

    /// The ruling of the rules that match, from this one on; `None` when there are none.
    pub(super) fn ruling_by(
        &self,
        first: usize,
        case: &JudgedCall<'_>,
        matches: impl Fn(usize, &CompiledRule) -> bool,
    ) -> Option<Ruling> {
        let mut deciding: Option<&CompiledRule> = None;
        let (mut set, mut choices, mut next) = (Map::new(), None, None);
        let mut disputed = false;
        let rules = self.rules.iter().enumerate().skip(first);
        for (index, compiled) in rules.filter(|(index, rule)| matches(*index, rule)) {
            let rule = &compiled.rule;
            // Of equally strict rules the first one gives the reason.
            match deciding {
                Some(best) if rule.decision == best.rule.decision => {
                    disputed |= compiled.layer != best.layer && rule.reviews_otherwise(&best.rule);
                }
                Some(best) if rule.decision < best.rule.decision => {}
                _ => (deciding, disputed) = (Some(compiled), false),
            }
            for (name, value) in &rule.set {
                let name = real_name(name, &case.spec.parameters, &case.tool.aliases);
                set.entry(name).or_insert_with(|| value.clone());
            }
            if self.order == Order::First {
                choices.clone_from(&compiled.choices);
                next = Some(index + 1);
                break;
            }
        }
        let rule = &deciding?.rule;
        if disputed {
            return Some(Ruling { set, ..Ruling::disputed() });
        }
        let (decision, reason, by) = (rule.decision, rule.reason.clone(), rule.by.clone());
        Some(Ruling { decision, reason, by, set, choices, next })
    }

    /// The ruling about what no rule matches.
    pub(super) fn unmatched(&self, tool: &ToolPolicy, reason: &str) -> Ruling {
        let trusted = self.trusts_tools && (tool.delegates || tool.require_confirmation == Some(false));
        if trusted {
            return Ruling::of(RuleDecision::Approve, None);
        }
        let (decision, reason) = match self.order {
            Order::Strictest => (RuleDecision::Ask, reason),
            Order::First => (RuleDecision::Reject, "no approver of the policy decides about this call"),
        };
        Ruling::of(decision, Some(reason.to_owned()))
    }
}

/// Adds the rules about effects to a policy, or their problems to its own.
fn with_effects<'v>(
    read: Result<Policy, PolicyError>,
    rules: impl Iterator<Item = (usize, &'v Value)>,
) -> Result<Policy, PolicyError> {
    let (mut compiled, mut problems) = (Vec::new(), Vec::new());
    for (index, value) in rules {
        let rule = read_data::<EffectRule>(value);
        match rule.and_then(|rule| CompiledEffectRule::new(rule).map_err(DataError::new)) {
            Ok(rule) => compiled.push(rule),
            Err(misfit) => problems.push(Order::Strictest.in_rule(index, misfit)),
        }
    }
    match read {
        Ok(policy) if problems.is_empty() => {
            if compiled.is_empty() {
                return Ok(policy);
            }
            let told: Vec<_> = compiled.iter().map(|compiled| &compiled.rule).collect();
            let id = Fingerprint::of(&serde_json::json!([policy.id, told])).0;
            Ok(Policy { id, effects: compiled, ..policy })
        }
        Ok(_) => Err(PolicyError { problems }),
        Err(error) => {
            problems.extend(error.problems);
            Err(PolicyError { problems })
        }
    }
}

/// A policy file as Inspect writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproverFile {
    approvers: Vec<ApproverEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproverEntry {
    name: String,
    tools: Value,
    #[serde(default)]
    decision: Option<RuleDecision>,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    choices: Option<Value>,
}

impl ApproverEntry {
    /// The rule and its choices; `None` when the entry only passes the question on.
    fn into_rule(self) -> Result<Option<Offering>, DataError> {
        let choices = match self.choices.or_else(|| self.params.get("choices").cloned()) {
            Some(_) if self.name == "auto" => return Err(DataError::new("`choices` only go with `human`")),
            choices => choices.map(|choices| read_choices(&choices)).transpose()?,
        };
        let given = self.decision.map(Ok).or_else(|| {
            self.params
                .get("decision")
                .map(|said| read_data(said).map_err(|misfit| misfit.inside("decision").inside("params")))
        });
        let decision = match (self.name.as_str(), given) {
            ("auto", None) => RuleDecision::Approve,
            ("auto", Some(decision)) => decision?,
            ("human", _) => RuleDecision::Ask,
            (other, _) => {
                let told = format!("there is no approver `{other}`; there are `auto` and `human`");
                return Err(DataError::new(told).inside("name"));
            }
        };
        if self.name == "auto" && decision == RuleDecision::Ask {
            return Ok(None);
        }
        let wrong = |told: &str| DataError::new(told).inside("tools");
        let texts = match self.tools {
            Value::String(text) => vec![text],
            Value::Array(list) => list
                .into_iter()
                .map(|item| serde_json::from_value(item).map_err(|_| wrong("`tools` holds more than texts")))
                .collect::<Result<Vec<String>, DataError>>()?,
            _ => return Err(wrong("`tools` is text or a list of texts")),
        };
        Ok(Some((Rule { decision, ..Rule::about(texts) }, choices)))
    }
}

/// The `choices` of a human approver. Where nobody can edit arguments `modify` is not offered, so it never
/// stands alone.
fn read_choices(choices: &Value) -> Result<Arc<[Choice]>, DataError> {
    let choices: Vec<Choice> =
        read_data(choices).map_err(|misfit| misfit.about("`choices`").inside("choices"))?;
    if choices.iter().all(|choice| *choice == Choice::Modify) {
        let told = "`choices` needs at least one of `approve`, `reject`, `terminate` and `escalate`";
        return Err(DataError::new(told).inside("choices"));
    }
    Ok(choices.into())
}

/// Why a policy cannot be used: every problem, with the number of its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    problems: Vec<DataError>,
}

impl PolicyError {
    /// The problems, each with the way to its rule and, when the policy was text, its line.
    pub fn problems(&self) -> &[DataError] {
        &self.problems
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems: Vec<String> = self.problems.iter().map(DataError::to_string).collect();
        write!(f, "the policy is wrong: {}", problems.join("; "))
    }
}

impl std::error::Error for PolicyError {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decide(policy: &str, name: &str, arguments: Value) -> RuleDecision {
        let policy = Policy::from_yaml(policy).unwrap();
        let call = ToolCall::new("1", name, arguments);
        policy.rule_from(0, &call, &ToolSpec::new(name, "d"), &ToolPolicy::default(), false).decision
    }

    #[test]
    fn the_strictest_matching_rule_wins_whatever_the_order() {
        let rules =
            "- {tools: '*', decision: approve}\n- {tools: bash, when: {command: 'rm *'}, decision: reject}\n";
        assert_eq!(decide(rules, "bash", json!({"command": "rm x"})), RuleDecision::Reject);
        assert_eq!(decide(rules, "bash", json!({"command": "ls"})), RuleDecision::Approve);
        assert_eq!(decide(rules, "rm", json!({})), RuleDecision::Approve);
    }

    #[test]
    fn what_no_rule_is_about_is_asked() {
        assert_eq!(decide("[]", "bash", json!({})), RuleDecision::Ask);
        assert_eq!(decide("- {tools: add, decision: approve}", "sub", json!({})), RuleDecision::Ask);
    }

    #[test]
    fn argument_patterns_reach_inside_and_need_the_argument() {
        let check = |when: &str, arguments: Value| {
            decide(&format!("- {{tools: t, when: {when}, decision: approve}}"), "t", arguments)
                == RuleDecision::Approve
        };
        assert!(check("{a.b.0: 'x*'}", json!({"a": {"b": ["xy"]}})));
        assert!(check("{n: {above: 5}}", json!({"n": 6})) && !check("{n: {above: 5}}", json!({"n": "6"})));
        assert!(check("{s: {regex: '^a+$'}}", json!({"s": "aaa"})));
        assert!(check("{s: {not: 'a*'}}", json!({"s": "b"})) && !check("{s: {not: 'a*'}}", json!({})));
        assert!(check("{s: [x, y]}", json!({"s": "y"})) && check("{b: true}", json!({"b": true})));
    }

    #[test]
    fn whole_call_patterns_match_a_prefix_of_the_call() {
        let rules = "- {tools: 'add(x=1*', decision: reject}\n- {tools: '*', decision: approve}\n";
        assert_eq!(decide(rules, "add", json!({"x": 1, "y": 2})), RuleDecision::Reject);
        assert_eq!(decide(rules, "add", json!({"x": 2})), RuleDecision::Approve);
    }

    #[test]
    fn a_pattern_is_never_wider_than_it_was_written() {
        let pay = |to: &str, amount: f64| json!({"to": to, "amount": amount});
        let rules = r#"- {tools: "pay(to='me', amount=1.0", decision: approve}"#;
        assert_eq!(decide(rules, "pay", pay("me", 1.0)), RuleDecision::Approve);
        assert_eq!(decide(rules, "pay", pay("me", 1e6)), RuleDecision::Ask);
        let rules = r#"- {tools: ['*', "!pay(to='evil'"], decision: approve}"#;
        assert_eq!(decide(rules, "pay", pay("me", 1.0)), RuleDecision::Approve);
        assert_eq!(decide(rules, "pay", pay("evil", 1.0)), RuleDecision::Ask);
        let file = |tools: &str| format!("approvers: [{{name: auto, tools: {tools}, decision: approve}}]");
        assert_eq!(decide(&file("'add,'"), "add", json!({})), RuleDecision::Approve);
        assert_eq!(decide(&file("'add,'"), "pay", json!({})), RuleDecision::Reject);
        let whole = file(r#"["pay(to='me', amount=1.0"]"#);
        assert_eq!(decide(&whole, "pay", pay("me", 1.0)), RuleDecision::Approve);
        assert_eq!(decide(&whole, "pay", pay("me", 1e6)), RuleDecision::Reject);
        for wrong in ["'add,'", "''", "['!']", "[]", "\"pay(x=1), add\""] {
            assert!(
                Policy::from_yaml(&format!("- {{tools: {wrong}, decision: approve}}")).is_err(),
                "{wrong}"
            );
        }
        for wrong in ["','", "''", "[add, '!']", "[add, 1]"] {
            assert!(Policy::from_yaml(&file(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_a_call_leaves_out_is_decided_by_its_default() {
        let rules =
            "- {tools: '*', decision: approve}\n- {tools: del, when: {force: true}, decision: reject}\n";
        let policy = Policy::from_yaml(rules).unwrap();
        let mut spec = ToolSpec::new("del", "d");
        spec.parameters = json!({"properties": {"force": {"type": "boolean", "default": true}}});
        let ruling = |arguments: Value| {
            policy
                .rule_from(0, &ToolCall::new("1", "del", arguments), &spec, &ToolPolicy::default(), false)
                .decision
        };
        assert_eq!(ruling(json!({})), RuleDecision::Reject);
        assert_eq!(ruling(json!({"force": false})), RuleDecision::Approve);
    }

    #[test]
    fn rules_may_use_the_other_names_of_parameters() {
        let policy = |rule: &str| {
            Policy::from_yaml(&format!("- {{tools: '*', decision: approve}}\n- {rule}\n")).unwrap()
        };
        let mut spec = ToolSpec::new("bash", "d");
        spec.parameters =
            json!({"properties": {"command": {}, "timeout": {}}, "additionalProperties": false});
        let mut tool = ToolPolicy::default();
        tool.aliases = vec![("cmd".into(), "command".into())];
        let call = ToolCall::new("1", "bash", json!({"command": "cat secret", "timeout": 5}));
        for rule in [
            "{tools: bash, when: {cmd: '*secret*'}, decision: reject}",
            "{tools: bash, when: {command: '*secret*'}, decision: reject}",
            r#"{tools: ["bash(cmd='cat *"], decision: reject}"#,
            r#"{tools: ["bash(command='cat *"], decision: reject}"#,
        ] {
            assert_eq!(
                policy(rule).rule_from(0, &call, &spec, &tool, false).decision,
                RuleDecision::Reject,
                "{rule}"
            );
        }
        let changed = policy("{tools: bash, decision: modify, set: {cmd: ls}}")
            .rule_from(0, &call, &spec, &tool, false);
        assert_eq!(Value::Object(changed.set), json!({"command": "ls"}));
    }

    #[test]
    fn words_mean_what_they_mean_in_a_tool_file() {
        let rules = "- {tools: t, when: {force: yes, mode: 'no', letter: y}, decision: approve}";
        let given = json!({"force": true, "mode": "no", "letter": "y"});
        assert_eq!(decide(rules, "t", given), RuleDecision::Approve);
        assert_eq!(
            decide(rules, "t", json!({"force": "yes", "mode": "no", "letter": "y"})),
            RuleDecision::Ask
        );
    }

    #[test]
    fn all_problems_of_a_policy_are_reported_together() {
        let error = Policy::from_yaml(concat!(
            "- {tools: bash, decision: reject, when: {command: 'rm *'}, examples: {match: [{command: ls}]}}\n",
            "- {tools: bash, decision: modify}\n",
            "- {tools: '*', decision: approve, examples: {match: [{x: 1}]}}\n",
        ))
        .unwrap_err();
        assert_eq!(error.problems().len(), 3, "{error}");
        assert!(error.to_string().contains("rule 1: the rule does not match its example bash(command='ls')"));
    }

    #[test]
    fn what_is_wrong_with_a_rule_is_told_with_its_line_and_what_was_meant() {
        let check = |text: &str, told: &str| {
            let error = Policy::from_yaml(text).unwrap_err();
            assert_eq!(error.problems().iter().map(DataError::to_string).collect::<Vec<_>>(), [told]);
        };
        let fine = "- tools: a\n  decision: ask\n";
        check(
            &format!("{fine}- tools: b\n  decison: ask\n"),
            "line 4: rule 2: unknown key `decison`; did you mean `decision`?",
        );
        check(
            &format!("{fine}- tools: b\n  decision: approv\n"),
            "line 4: rule 2: `decision` cannot be `approv`; did you mean `approve`?",
        );
        check(&format!("{fine}- tools: b\n"), "line 3: rule 2: the key `decision` is missing");
        check(
            &format!("{fine}- decision: ask\n  tools: ''\n"),
            "line 4: rule 2: a pattern of `tools` is empty; `*` means every tool",
        );
        // An entry that only passes the question on counts, too.
        let passes = "approvers:\n- {name: auto, tools: a, decision: escalate}\n";
        check(
            &format!("{passes}- {{name: robot, tools: b}}\n"),
            "line 3: rule 2: there is no approver `robot`; there are `auto` and `human`",
        );
        check(
            &format!("{passes}- name: auto\n  tools: b\n  decison: ask\n"),
            "line 5: rule 2: unknown key `decison`; did you mean `decision`?",
        );
        check("rules: []", "a policy is a list of rules, or a map with `approvers`");
    }

    #[test]
    fn an_approvers_file_is_read_in_order() {
        let file = "approvers:\n- {name: auto, tools: ad, decision: approve}\n- {name: auto, tools: '*', decision: reject}\n";
        assert_eq!(decide(file, "add", json!({})), RuleDecision::Approve);
        assert_eq!(decide(file, "sub", json!({})), RuleDecision::Reject);
        let human = "approvers:\n- {name: human, tools: [bash, python]}\n- {name: auto, tools: '*'}\n";
        assert_eq!(decide(human, "bash", json!({})), RuleDecision::Ask);
        assert!(Policy::from_yaml("approvers: [{name: robot, tools: '*'}]").is_err());
        let passed_on = "approvers: [{name: auto, tools: add, decision: escalate}]";
        for name in ["add", "sub"] {
            assert_eq!(decide(passed_on, name, json!({})), RuleDecision::Reject);
        }
    }

    #[test]
    fn the_choices_of_a_person_are_read() {
        let file = |entry: &str| Policy::from_yaml(&format!("approvers: [{{tools: '*', {entry}}}]"));
        let call = ToolCall::new("1", "t", json!({}));
        for entry in [
            "name: human, choices: [approve, escalate]",
            "name: human, params: {choices: [approve, escalate]}",
        ] {
            let policy = file(entry).unwrap();
            let ruling = policy.rule_from(0, &call, &ToolSpec::new("t", "d"), &ToolPolicy::default(), false);
            assert_eq!(ruling.choices.as_deref(), Some([Choice::Approve, Choice::Escalate].as_slice()));
            assert_ne!(policy.id, file("name: human").unwrap().id);
        }
        for (wrong, told) in [
            ("name: human, choices: [frobnicate]", "rule 1: `choices`: unknown word `frobnicate`"),
            ("name: human, choices: approve", "rule 1: `choices`: invalid type"),
            ("name: human, choices: []", "needs at least one of"),
            ("name: human, choices: [modify]", "needs at least one of"),
            ("name: auto, choices: [approve]", "only go with `human`"),
        ] {
            let error = file(wrong).unwrap_err().to_string();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_cautious_policy_asks_unless_a_tool_is_harmless() {
        let ruling = |read_only: Option<bool>, sandboxed: bool| {
            let mut spec = ToolSpec::new("t", "d");
            spec.annotations.read_only = read_only;
            let (call, tool) = (ToolCall::new("1", "t", json!({})), ToolPolicy::default());
            Policy::cautious().rule_from(0, &call, &spec, &tool, sandboxed).decision
        };
        assert_eq!(ruling(None, false), RuleDecision::Ask);
        assert_eq!(ruling(Some(true), false), RuleDecision::Approve);
        assert_eq!(ruling(None, true), RuleDecision::Approve);
        let set = |policy: Policy, change: fn(&mut ToolPolicy)| {
            let (spec, mut tool) = (ToolSpec::new("t", "d"), ToolPolicy::default());
            change(&mut tool);
            policy.rule_from(0, &ToolCall::new("1", "t", json!({})), &spec, &tool, false).decision
        };
        let changes: [fn(&mut ToolPolicy); 2] =
            [|tool| tool.delegates = true, |tool| tool.require_confirmation = Some(false)];
        for change in changes {
            assert_eq!(set(Policy::cautious(), change), RuleDecision::Approve);
            // Rules of one's own say what is approved.
            assert_eq!(set(Policy::new([]).unwrap(), change), RuleDecision::Ask);
        }
    }
}
