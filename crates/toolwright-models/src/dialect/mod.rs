//! Schema dialects: one definition of a tool's parameters, in the subset of JSON Schema that a vendor's
//! strict mode takes, with a report of everything that had to change.
//!
//! A strict server does not replace validation: the runtime checks every call against the original schema.

mod anthropic;
mod gemini;
mod openai;
mod page;
mod plain;

use serde_json::{Map, Value};

pub(crate) use gemini::ignored as ignored_by_gemini;
pub use page::reference;
pub(crate) use plain::plain;

/// The subset of JSON Schema that a strict mode takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Anthropic's `strict` tools and structured output.
    AnthropicStrict,
    /// OpenAI's `strict` functions and structured output.
    OpenAiStrict,
}

/// A schema in a dialect, and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapted {
    /// The schema to send.
    pub schema: Value,
    /// Everything that had to change, in order. Empty when the schema means exactly the same as before.
    pub changes: Vec<Change>,
}

/// One thing that had to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where, as a JSON pointer into the original.
    pub at: String,
    /// What was done.
    pub what: String,
    /// What it does to the values that are accepted.
    pub effect: Effect,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.effect {
            Effect::Told if self.at.is_empty() => f.write_str(&self.what)?,
            _ => write!(f, "{}: {}", place(&self.at), self.what)?,
        }
        match self.effect {
            Effect::Looser => f.write_str(" (the vendor may send what the tool refuses)"),
            Effect::Tighter | Effect::Closed => {
                f.write_str(" (some values the tool takes can no longer be sent)")
            }
            Effect::Refused | Effect::Told => Ok(()),
        }
    }
}

/// What a change does to the values that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Values pass that the original refuses; validation still catches them.
    Looser,
    /// Values are refused that the original accepts.
    Tighter,
    /// Properties that the schema does not mention are refused, and nothing else.
    Closed,
    /// The vendor may refuse the schema.
    Refused,
    /// Nothing, but a reader may want to know.
    Told,
}

/// Why a schema has no form in a dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialectError {
    /// Where, as a JSON pointer.
    pub at: String,
    /// What cannot be expressed.
    pub problem: String,
}

impl std::fmt::Display for DialectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the schema cannot be sent in strict mode: {}: {}", place(&self.at), self.problem)
    }
}

impl std::error::Error for DialectError {}

/// A place for people: the whole schema has no name of its own.
fn place(at: &str) -> &str {
    if at.is_empty() { "/" } else { at }
}

/// The schema in a dialect.
///
/// ```
/// use serde_json::json;
/// use toolwright_models::dialect::{Dialect, adapt};
///
/// let schema = json!({"type": "integer", "minimum": 1, "description": "How many."});
/// let adapted = adapt(&schema, Dialect::AnthropicStrict)?;
/// assert_eq!(adapted.schema, json!({"type": "integer", "description": "How many.\n\n{minimum: 1}"}));
/// assert_eq!(
///     adapted.changes[0].to_string(),
///     "/: `minimum` is only described (the vendor may send what the tool refuses)",
/// );
/// # Ok::<(), toolwright_models::dialect::DialectError>(())
/// ```
pub fn adapt(schema: &Value, dialect: Dialect) -> Result<Adapted, DialectError> {
    let mut report = ChangeReport { root: schema, changes: Vec::new(), left: MAX_NODES };
    let schema = match dialect {
        Dialect::AnthropicStrict => anthropic::adapt(schema, &SchemaPath::Root, &mut report),
        Dialect::OpenAiStrict => openai::adapt(schema.clone(), &SchemaPath::Root, &mut report),
    }?;
    if let Some(problem) = (dialect == Dialect::OpenAiStrict).then(|| openai::refused(&schema)).flatten() {
        report.changed(&SchemaPath::Root, problem, Effect::Refused);
    }
    Ok(Adapted { schema, changes: report.changes })
}

/// Whether some definition of a schema leads back to itself.
pub(crate) fn is_recursive(schema: &Value) -> bool {
    fn targets<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
        match schema {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| targets(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| targets(value, found)),
            _ => {}
        }
    }
    let resolve = |reference: &str| schema.pointer(reference.strip_prefix('#')?);
    let mut starts = vec!["#"];
    targets(schema, &mut starts);
    starts.sort_unstable();
    starts.dedup();
    starts.iter().any(|start| {
        let mut open = Vec::new();
        resolve(start).into_iter().for_each(|inner| targets(inner, &mut open));
        let mut seen = std::collections::HashSet::new();
        while let Some(next) = open.pop() {
            if next == *start {
                return true;
            }
            if seen.insert(next) {
                resolve(next).into_iter().for_each(|inner| targets(inner, &mut open));
            }
        }
        false
    })
}

/// Whether a keyword constrains the accepted values.
fn is_rule(key: &str) -> bool {
    !matches!(
        key,
        "description"
            | "title"
            | "default"
            | "examples"
            | "$comment"
            | "deprecated"
            | "$defs"
            | "definitions"
    )
}

/// The most schemas within a schema; definitions that are written out in place could go on without end.
const MAX_NODES: usize = 10_000;

/// The deepest nesting.
const MAX_DEPTH: usize = 100;

struct ChangeReport<'a> {
    root: &'a Value,
    changes: Vec<Change>,
    left: usize,
}

impl ChangeReport<'_> {
    fn changed(&mut self, at: &SchemaPath<'_>, what: impl Into<String>, effect: Effect) {
        self.changes.push(Change { at: at.pointer(), what: what.into(), effect });
    }

    /// Tells that an object allows its named properties only. Where others were meant (a map, and not just an
    /// object that does not mention them), that takes something away.
    fn closed(&mut self, at: &SchemaPath<'_>, properties: &Map<String, Value>, others: Option<&Value>) {
        match others {
            Some(Value::Bool(false)) => {}
            None if !properties.is_empty() || matches!(at, SchemaPath::Root) => {
                self.changed(at, "only the named properties remain", Effect::Closed);
            }
            _ => self.changed(at, "a map can have no properties without a name", Effect::Tighter),
        }
    }

    /// Counts one schema, so that no schema takes forever.
    fn enter(&mut self, at: &SchemaPath<'_>) -> Result<(), DialectError> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || at.depth() > MAX_DEPTH {
            return Err(at.error("it is too large, or refers to itself"));
        }
        Ok(())
    }
}

/// Where in the schema we are.
enum SchemaPath<'a> {
    Root,
    In(&'a SchemaPath<'a>, &'a str),
}

impl SchemaPath<'_> {
    fn pointer(&self) -> String {
        match self {
            SchemaPath::Root => String::new(),
            SchemaPath::In(outer, key) => {
                format!("{}/{}", outer.pointer(), key.replace('~', "~0").replace('/', "~1"))
            }
        }
    }

    fn depth(&self) -> usize {
        match self {
            SchemaPath::Root => 0,
            SchemaPath::In(outer, _) => outer.depth() + 1,
        }
    }

    fn error(&self, problem: impl Into<String>) -> DialectError {
        DialectError { at: self.pointer(), problem: problem.into() }
    }
}

#[cfg(test)]
mod tests;
