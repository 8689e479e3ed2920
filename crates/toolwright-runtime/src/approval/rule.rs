//! One rule of a policy: which calls it is about, what it decides, and examples that prove it means what it
//! says.

use std::sync::Arc;

use serde::{Deserialize, Serialize, de::Error as _};
use serde_json::{Map, Value};
use toolwright_core::{Choice, ToolCall, ToolPolicy, ToolSpec};

use super::call_text::call_text;
use super::matching::{ArgumentMatch, meant, real_name};
use super::naming::{Naming, ToolNames, split};

/// What a rule decides, from mildest to strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    /// Run the call.
    #[serde(alias = "allow")]
    Approve,
    /// Run it with the arguments of `set` in place of the model's.
    Modify,
    /// Let the model that `by` names approve it; what that model does not approve, a person is asked about.
    Review,
    /// Let the approver decide.
    #[serde(alias = "escalate")]
    Ask,
    /// Refuse it.
    #[serde(alias = "deny")]
    Reject,
    /// End the run.
    Terminate,
}

/// One rule of a policy.
///
/// ```
/// use toolwright_runtime::Policy;
///
/// let policy = Policy::from_yaml(r#"
/// - tools: bash
///   decision: approve
/// - tools: bash
///   when: { command: "*rm -rf*" }
///   decision: reject
///   reason: nothing is deleted here
///   examples:
///     match: [{ command: "rm -rf /" }]
///     no_match: [{ command: "ls" }]
/// "#)?;
/// assert_eq!(policy.rules().len(), 2);
/// # Ok::<(), toolwright_runtime::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Patterns over tool names; one with a parenthesis is matched against the whole call, as
    /// `bash(command='git *`. A leading `!` takes names or calls away.
    #[serde(default = "every_tool", deserialize_with = "one_or_many")]
    pub tools: Vec<String>,
    /// Patterns over arguments, by name or alias (`options.path` reaches inside, unless that is a name); all
    /// must match.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub when: Map<String, Value>,
    /// Only tools that say they change nothing (or, with `false`, only the others).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Only tools that may destroy something (or, with `false`, only the others).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Only tools that work inside a sandbox (or, with `false`, only the others).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandboxed: Option<bool>,
    /// What to do.
    pub decision: RuleDecision,
    /// Arguments to put in place of the model's, with `decision: modify`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// The model that looks at the call, with `decision: review`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for the model, or for the person who decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Calls that must, and must not, match; checked when the policy loads.
    #[serde(default, skip_serializing_if = "Examples::is_empty")]
    pub examples: Examples,
}

impl Rule {
    /// Whether both rules want a review, by different models or with different guidance.
    pub(super) fn reviews_otherwise(&self, other: &Rule) -> bool {
        let review = self.decision == RuleDecision::Review && other.decision == RuleDecision::Review;
        review && (&self.by, &self.reason) != (&other.by, &other.reason)
    }

    /// A rule about the tools that match, which asks; change the fields for more.
    pub fn about<S: Into<String>>(tools: impl IntoIterator<Item = S>) -> Self {
        Rule {
            tools: tools.into_iter().map(Into::into).collect(),
            when: Map::new(),
            read_only: None,
            destructive: None,
            sandboxed: None,
            decision: RuleDecision::Ask,
            set: Map::new(),
            by: None,
            reason: None,
            examples: Examples::default(),
        }
    }

    /// True when a call that the rule decides about runs without a question.
    pub(super) fn lets_pass(&self) -> bool {
        self.decision <= RuleDecision::Modify
    }
}

/// Calls that prove a rule. Each is a map of arguments, or `{tool, args}` where the rule's patterns name no
/// single tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Examples {
    /// Calls the rule is about.
    #[serde(rename = "match")]
    pub matching: Vec<Value>,
    /// Calls it is not about.
    pub no_match: Vec<Value>,
}

impl Examples {
    fn is_empty(&self) -> bool {
        self.matching.is_empty() && self.no_match.is_empty()
    }
}

pub(super) fn every_tool() -> Vec<String> {
    vec!["*".to_owned()]
}

pub(super) fn one_or_many<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(text) => split(&text).map_err(D::Error::custom)?,
        OneOrMany::Many(list) => list,
    })
}

/// A call, and what rules look at beside it.
#[derive(Clone, Copy)]
pub(super) struct JudgedCall<'a> {
    pub(super) call: &'a ToolCall,
    pub(super) spec: &'a ToolSpec,
    pub(super) tool: &'a ToolPolicy,
    /// Whether the tool works in a sandbox that isolates.
    pub(super) contained: bool,
}

impl<'a> JudgedCall<'a> {
    pub(super) fn names(&self) -> ToolNames<'a> {
        ToolNames { now: &self.call.name, before: &self.tool.known_as }
    }
}

/// A rule ready to be asked.
#[derive(Debug, Clone)]
pub(super) struct CompiledRule {
    pub(super) naming: Naming,
    when: Vec<(String, ArgumentMatch)>,
    pub(super) rule: Rule,
    /// Where it stands in its file, counting from 0.
    pub(super) index: usize,
    /// Which of several policies it is from.
    pub(super) layer: usize,
    /// The only answers an approver may give, if the policy names them.
    pub(super) choices: Option<Arc<[Choice]>>,
}

impl CompiledRule {
    /// The rule as one of that policy among several.
    pub(super) fn of_layer(rule: &CompiledRule, layer: usize) -> Self {
        CompiledRule { layer, ..rule.clone() }
    }

    /// Compiles a rule whose patterns are ours.
    pub(super) fn of(rule: Rule) -> Result<Self, String> {
        let naming = Naming::new(&rule.tools)?;
        Self::new(rule, naming)
    }

    /// Compiles a rule and tries its examples; the error says what is wrong.
    pub(super) fn new(rule: Rule, naming: Naming) -> Result<Self, String> {
        if rule.decision == RuleDecision::Modify && rule.set.is_empty() {
            return Err("`decision: modify` needs `set` with the arguments to use".to_owned());
        }
        if rule.decision != RuleDecision::Modify && !rule.set.is_empty() {
            return Err("`set` only goes with `decision: modify`".to_owned());
        }
        if (rule.decision == RuleDecision::Review) != rule.by.is_some() {
            return Err("`decision: review` and `by: MODEL` go together".to_owned());
        }
        let when = rule.when.iter().map(|(name, pattern)| {
            let pattern = ArgumentMatch::new(pattern).map_err(|problem| format!("`when`: {problem}"))?;
            if matches!(pattern, ArgumentMatch::Shell(_)) && name.contains('.') {
                return Err(format!("`when`: `shell` is for a parameter, and `{name}` is a part of one"));
            }
            Ok((name.clone(), pattern))
        });
        let when = when.collect::<Result<_, String>>()?;
        let compiled = CompiledRule { naming, when, rule, index: 0, layer: 0, choices: None };
        compiled.try_examples()?;
        Ok(compiled)
    }

    pub(super) fn matches(&self, case: &JudgedCall<'_>) -> bool {
        self.allows_tool(case) && self.matches_call(case)
    }

    /// Whether the rule is about tools that say of themselves what this one does.
    fn allows_tool(&self, case: &JudgedCall<'_>) -> bool {
        let says = |wanted: Option<bool>, actual: bool| wanted.is_none_or(|wanted| wanted == actual);
        let annotations = &case.spec.annotations;
        says(self.rule.read_only, annotations.read_only == Some(true))
            && says(self.rule.destructive, annotations.destructive == Some(true))
            && says(self.rule.sandboxed, case.contained)
    }

    fn matches_call(&self, case: &JudgedCall<'_>) -> bool {
        let (schema, aliases) = (&case.spec.parameters, &case.tool.aliases);
        self.naming.matches(case.call, case.names(), schema, aliases, self.rule.lets_pass())
            && self.when.iter().all(|condition| self.holds(condition, case))
    }

    fn holds(&self, (name, pattern): &(String, ArgumentMatch), case: &JudgedCall<'_>) -> bool {
        let values = meant(&case.call.arguments, &case.spec.parameters, &case.tool.aliases, name);
        // Where a name may mean two arguments, a rule that lets a call pass must be right about both.
        match self.rule.lets_pass() {
            true => !values.is_empty() && values.iter().all(|value| pattern.matches(value)),
            false => values.iter().any(|value| pattern.matches(value)),
        }
    }

    /// The conditions about a parameter.
    fn about<'r>(
        &'r self,
        parameter: &'r str,
        case: &JudgedCall<'r>,
    ) -> impl Iterator<Item = &'r ArgumentMatch> {
        let (schema, aliases) = (&case.spec.parameters, &case.tool.aliases);
        let about = move |name: &str| real_name(name, schema, aliases) == parameter;
        self.when.iter().filter(move |(name, _)| about(name)).map(|(_, pattern)| pattern)
    }

    /// Whether it depends on the text of this parameter whether the rule is about the call.
    pub(super) fn looks_at(&self, parameter: &str, case: &JudgedCall<'_>) -> bool {
        let (schema, aliases) = (&case.spec.parameters, &case.tool.aliases);
        let others = || {
            let others = self.when.iter().filter(|(name, _)| real_name(name, schema, aliases) != parameter);
            others.into_iter().all(|condition| self.holds(condition, case))
        };
        let looks = self.about(parameter, case).any(|pattern| !pattern.is_any());
        self.allows_tool(case)
            && self.naming.is_about(case.names())
            && (looks || self.naming.looks_at_arguments(case.names()))
            && others()
    }

    /// Whether the rule names this very text of the parameter.
    pub(super) fn names_exactly(&self, parameter: &str, text: &str, case: &JudgedCall<'_>) -> bool {
        let mut about = self.about(parameter, case).peekable();
        about.peek().is_some() && about.all(|pattern| pattern.names_exactly(text))
    }

    /// The patterns over the text of a parameter, each with whether it is a glob.
    pub(super) fn patterns(&self, parameter: &str, case: &JudgedCall<'_>) -> Vec<(&str, bool)> {
        let (schema, aliases) = (&case.spec.parameters, &case.tool.aliases);
        let about = self.when.iter().filter(|(name, _)| real_name(name, schema, aliases) == parameter);
        let own = about.flat_map(|(_, pattern)| pattern.sources());
        own.chain(self.naming.text_globs().map(|glob| (glob, true))).collect()
    }

    /// The parameters whose text the rule takes for that of a shell, whatever the tool says.
    pub(super) fn shell_parameters(&self) -> impl Iterator<Item = &str> {
        let shell = self.when.iter().filter(|(_, pattern)| matches!(pattern, ArgumentMatch::Shell(_)));
        shell.map(|(name, _)| name.as_str())
    }

    fn try_examples(&self) -> Result<(), String> {
        let sides = [(&self.rule.examples.matching, true), (&self.rule.examples.no_match, false)];
        for (examples, wanted) in sides {
            for example in examples {
                let call = self.example_call(example)?;
                let (spec, tool) = (ToolSpec::new(call.name.clone(), ""), ToolPolicy::default());
                let case = JudgedCall { call: &call, spec: &spec, tool: &tool, contained: false };
                if self.matches_call(&case) != wanted {
                    let verb = if wanted { "does not match" } else { "matches" };
                    return Err(format!("the rule {verb} its example {}", call_text(&call)));
                }
            }
        }
        Ok(())
    }

    fn example_call(&self, example: &Value) -> Result<ToolCall, String> {
        let object = example.as_object().ok_or("an example is a map of arguments, or `{tool, args}`")?;
        let explicit = object
            .get("tool")
            .and_then(Value::as_str)
            .filter(|_| object.keys().all(|key| key == "tool" || key == "args"));
        if let Some(tool) = explicit {
            return Ok(ToolCall::new("example", tool, object.get("args").cloned().unwrap_or_default()));
        }
        let name = self.rule.tools.iter().map(|text| text.split('(').next().unwrap_or(text));
        let name = name.into_iter().find(|name| !name.is_empty() && !name.contains(['*', '?', '[', '!']));
        match name {
            Some(name) => Ok(ToolCall::new("example", name, example.clone())),
            None => Err("say which tool an example calls: `{tool: ..., args: {...}}`".to_owned()),
        }
    }
}
