//! What a person is shown while a tool runs.

use std::sync::Arc;

use serde_json::Value as Json;
use toolwright_core::{CallNote, Patterns, ToolContext};
use toolwright_expr::{EvalLimits, Value};

use crate::template::Snippet;

/// How long a hint made from a name and arguments may be.
const MAX_HINT: usize = 80;

/// What a definition says about hints.
pub(crate) enum Hint {
    /// `ui_hint: false`, or empty text.
    Silent,
    /// `ui_hint: true`: the name, and the arguments that match.
    Calling(Vec<String>),
    /// A template over the arguments.
    Template(Box<Snippet>),
}

impl Hint {
    /// Records the hint for a call, unless the caller chose another one.
    pub(crate) fn note(&self, context: &ToolContext, name: &str, arguments: &Json) {
        if context.caller_hint().is_some() {
            return;
        }
        if let Some(text) = self.text(name, arguments) {
            context.note(CallNote::Hint { text });
        }
    }

    /// The text; `None` when the template fails, so that the usual hint is shown.
    fn text(&self, name: &str, arguments: &Json) -> Option<String> {
        match self {
            Hint::Silent => Some(String::new()),
            Hint::Calling(patterns) => {
                let left = MAX_HINT.saturating_sub("Calling ()".len() + name.chars().count());
                let shown = format_arguments(arguments, patterns, left);
                Some(if shown.is_empty() {
                    format!("Calling {name}")
                } else {
                    format!("Calling {name}({shown})")
                })
            }
            Hint::Template(snippet) => {
                let variables: Vec<(&str, Value)> = arguments
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, value)| (name.as_str(), Value::from_json(value)))
                    .collect();
                let value = snippet.template.evaluate(&variables.as_slice(), &EvalLimits::default()).ok()?;
                Some(value.to_string().trim().to_owned())
            }
        }
    }
}

/// The arguments whose names match, as Python shows them; those that do not fit are left out with a mark.
///
/// ```
/// let arguments = serde_json::json!({"path": "a.txt", "token": "s3cret"});
/// assert_eq!(toolwright_lang::format_arguments(&arguments, &["!token"], 80), "'path': 'a.txt'");
/// ```
pub fn format_arguments<S: AsRef<str>>(arguments: &Json, patterns: &[S], longest: usize) -> String {
    let patterns = Patterns::new(patterns.iter().map(AsRef::as_ref));
    let mut shown: Vec<String> = Vec::new();
    let (mut length, mut left_out) = (0, false);
    for (name, value) in arguments.as_object().into_iter().flatten() {
        if !patterns.matches(name) {
            continue;
        }
        let text = format!("{:?}", Value::from_json(value));
        let added = name.chars().count() + text.chars().count() + 4 + if length == 0 { 0 } else { 2 };
        if length + added > longest {
            left_out = true;
        } else {
            shown.push(format!("'{name}': {text}"));
            length += added;
        }
    }
    if left_out {
        shown.push("[...]".to_owned());
    }
    shown.join(", ")
}

/// The hint of a `call` statement: trimmed, and nothing when empty.
pub(crate) fn of_call(value: &Value) -> Option<Arc<str>> {
    let text = value.to_string();
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}
