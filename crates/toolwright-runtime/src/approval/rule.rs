//! One rule of a policy: which calls it is about, what it decides, and examples that prove it means what it says.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolwright_core::{Patterns, ToolCall, ToolSettings, ToolSpec, glob_match};

use super::call_text::call_text;

/// What a rule decides, from mildest to strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    /// Run the call.
    #[serde(alias = "allow")]
    Approve,
    /// Run it with the arguments of `set` in place of the model's.
    Modify,
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
    /// Patterns over tool names; one with a parenthesis is matched against the whole call, as `bash(command='git *`.
    #[serde(default = "every_tool", deserialize_with = "one_or_many")]
    pub tools: Vec<String>,
    /// Patterns over arguments, by name (`options.path` reaches inside); all must match.
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
    /// What the model, or the person who is asked, is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Calls that must, and must not, match; checked when the policy loads.
    #[serde(default, skip_serializing_if = "Examples::is_empty")]
    pub examples: Examples,
}

impl Rule {
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
            reason: None,
            examples: Examples::default(),
        }
    }
}

/// Calls that prove a rule. Each is a map of arguments, or `{tool, args}` where the rule's patterns name no single tool.
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

fn every_tool() -> Vec<String> {
    vec!["*".to_owned()]
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(text) => text.split(',').map(|part| part.trim().to_owned()).collect(),
        OneOrMany::Many(list) => list,
    })
}

/// A rule ready to be asked.
#[derive(Debug)]
pub(super) struct CompiledRule {
    names: Patterns,
    calls: Vec<String>,
    when: Vec<(Vec<String>, Match)>,
    pub(super) rule: Rule,
}

impl CompiledRule {
    /// Compiles a rule and tries its examples; the error says what is wrong.
    pub(super) fn new(rule: Rule) -> Result<Self, String> {
        if rule.tools.is_empty() {
            return Err("`tools` is empty, so the rule is about nothing".to_owned());
        }
        if rule.decision == RuleDecision::Modify && rule.set.is_empty() {
            return Err("`decision: modify` needs `set` with the arguments to use".to_owned());
        }
        if rule.decision != RuleDecision::Modify && !rule.set.is_empty() {
            return Err("`set` only goes with `decision: modify`".to_owned());
        }
        let (calls, names): (Vec<String>, Vec<String>) =
            rule.tools.iter().cloned().partition(|text| text.contains('('));
        let when = rule.when.iter().map(|(path, pattern)| {
            let path = path.split('.').map(str::to_owned).collect();
            Match::new(pattern).map(|pattern| (path, pattern)).map_err(|problem| format!("`when`: {problem}"))
        });
        let when = when.collect::<Result<_, String>>()?;
        let compiled = CompiledRule { names: Patterns::new(names), calls, when, rule };
        compiled.try_examples()?;
        Ok(compiled)
    }

    pub(super) fn matches(&self, call: &ToolCall, spec: &ToolSpec, settings: &ToolSettings) -> bool {
        let says = |wanted: Option<bool>, actual: bool| wanted.is_none_or(|wanted| wanted == actual);
        says(self.rule.read_only, spec.annotations.read_only == Some(true))
            && says(self.rule.destructive, spec.annotations.destructive == Some(true))
            && says(self.rule.sandboxed, settings.sandboxed)
            && self.matches_call(call)
    }

    fn matches_call(&self, call: &ToolCall) -> bool {
        let named = self.names.matches(&call.name)
            || (!self.calls.is_empty() && {
                let text = call_text(call);
                self.calls.iter().any(|pattern| glob_match(&format!("{pattern}*"), &text))
            });
        named
            && self.when.iter().all(|(path, pattern)| {
                argument(&call.arguments, path).is_some_and(|value| pattern.matches(value))
            })
    }

    fn try_examples(&self) -> Result<(), String> {
        let sides = [(&self.rule.examples.matching, true), (&self.rule.examples.no_match, false)];
        for (examples, wanted) in sides {
            for example in examples {
                let call = self.example_call(example)?;
                if self.matches_call(&call) != wanted {
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

fn argument<'a>(arguments: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(arguments, |value, part| match value {
        Value::Object(map) => map.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// A pattern over one argument.
#[derive(Debug)]
pub enum Match {
    /// A shell pattern over the text (or the JSON) of the value; any of several.
    Glob(Vec<String>),
    /// Exactly this value.
    Equals(Value),
    /// A regular expression found somewhere in the text (or the JSON) of the value.
    Regex(Box<regex::Regex>),
    /// None of these patterns.
    Not(Box<Match>),
    /// A number above this one.
    Above(f64),
    /// A number below this one.
    Below(f64),
}

impl Match {
    /// A pattern from its form in a file: text or a list (globs), a scalar (equals), or a map with one of `equals`,
    /// `regex`, `not`, `above`, `below`.
    pub fn new(pattern: &Value) -> Result<Self, String> {
        match pattern {
            Value::String(text) => Ok(Match::Glob(vec![text.clone()])),
            Value::Array(list) => list
                .iter()
                .map(|item| {
                    item.as_str().map(str::to_owned).ok_or_else(|| format!("{item} is not a pattern"))
                })
                .collect::<Result<_, _>>()
                .map(Match::Glob),
            Value::Object(map) => {
                let mut entries = map.iter();
                let (Some((key, value)), None) = (entries.next(), entries.next()) else {
                    return Err(
                        "a pattern map has one of `equals`, `regex`, `not`, `above`, `below`".to_owned()
                    );
                };
                match (key.as_str(), value) {
                    ("equals", value) => Ok(Match::Equals(value.clone())),
                    ("not", value) => Ok(Match::Not(Box::new(Match::new(value)?))),
                    ("regex", Value::String(text)) => regex::RegexBuilder::new(text)
                        .size_limit(1 << 20)
                        .build()
                        .map(|regex| Match::Regex(Box::new(regex)))
                        .map_err(|error| error.to_string()),
                    ("above", Value::Number(number)) => {
                        Ok(Match::Above(number.as_f64().unwrap_or(f64::INFINITY)))
                    }
                    ("below", Value::Number(number)) => {
                        Ok(Match::Below(number.as_f64().unwrap_or(f64::NEG_INFINITY)))
                    }
                    _ => Err(format!("`{key}: {value}` is not a pattern")),
                }
            }
            scalar => Ok(Match::Equals(scalar.clone())),
        }
    }

    /// True when the value fits the pattern.
    pub fn matches(&self, value: &Value) -> bool {
        let text = || match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match self {
            Match::Glob(patterns) => {
                let text = text();
                patterns.iter().any(|pattern| glob_match(pattern, &text))
            }
            Match::Equals(wanted) => value == wanted,
            Match::Regex(regex) => regex.is_match(&text()),
            Match::Not(inner) => !inner.matches(value),
            Match::Above(limit) => value.as_f64().is_some_and(|number| number > *limit),
            Match::Below(limit) => value.as_f64().is_some_and(|number| number < *limit),
        }
    }
}
