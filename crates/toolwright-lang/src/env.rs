//! `env`: the variables a file declares, where their values come from, and which are secret.

use toolwright_core::Secret;
use toolwright_expr::{EvalLimits, Value};

use crate::build::text;
use crate::diag::Problems;
use crate::host::Host;
use crate::needs::Needs;
use crate::shape;
use crate::template::{self, Snippet};
use crate::yaml::{Data, Node};

/// A variable that a file declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What a person is asked when it is not set.
    pub description: Option<String>,
    /// Whether an answer is kept in the `.env` file.
    pub persistent: bool,
    /// Whether the value is hidden.
    pub secret: bool,
    /// Whether the host has a value for it.
    pub is_set: bool,
    /// Whether it must be set for the intended use of the file.
    pub is_needed: bool,
}

/// A secret value of a file.
#[derive(Debug, Clone)]
pub(crate) struct FileSecret {
    pub(crate) value: Secret,
    /// The file says that models and people may read it.
    pub(crate) visible_to_model: bool,
}

/// The declared variables, the secret values, and the value of `env` in expressions.
pub(crate) fn read(
    problems: &mut Problems,
    root: &Node,
    host: &Host,
    needs: &Needs,
) -> (Vec<Variable>, Vec<FileSecret>, Value) {
    let mut visible: Vec<(String, Value)> =
        host.variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let (mut variables, mut secrets) = (Vec::new(), Vec::new());
    let empty = Vec::new();
    let entries = match root.get("env").map(|node| &node.data) {
        Some(Data::Map(entries)) => entries,
        _ => &empty,
    };
    for (key, node) in entries {
        let name = key.key_text();
        // Names are written into `.env` files and go to programs; anything else there is a line of its own.
        if !is_name(&name) {
            problems.error_hint(
                key.place,
                format!("`{name}` cannot be the name of an environment variable"),
                "a name has letters of English, digits and `_`, and does not begin with a digit",
            );
            continue;
        }
        let flag = |key: &str| node.get(key).and_then(shape::flag).unwrap_or(false);
        let description = node.get("description").filter(|node| node.text().is_some());
        let description = description.and_then(|node| describe(problems, node, &visible));
        let value = host.environment.get(&name);
        match value {
            Some(value) => {
                if flag("secret") && !value.is_empty() {
                    let visible_to_model = flag("secret_visible_to_model");
                    secrets.push(FileSecret { value: Secret::new(value.as_str()), visible_to_model });
                }
                visible.push((name.clone(), Value::str(value.as_str())));
            }
            None if !needs.variable(&name) => visible.push((name.clone(), Value::str(""))),
            None => {
                let message = format!("the environment variable `{name}` is not set");
                problems.error_hint(
                    key.place,
                    message,
                    format!("set it, or write `{name}=...` into a `.env` file"),
                );
                // Told once; expressions that use it need not complain as well.
                visible.push((name.clone(), Value::str("")));
            }
        }
        variables.push(Variable {
            description: description.or_else(|| text(node, "description")),
            persistent: flag("persistent"),
            secret: flag("secret"),
            is_set: value.is_some(),
            is_needed: needs.variable(&name),
            name,
        });
    }
    (variables, secrets, Value::dict(visible))
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn describe(problems: &mut Problems, node: &Node, visible: &[(String, Value)]) -> Option<String> {
    let snippet = Snippet::compile(problems, node)?;
    let env = Value::dict(visible.iter().map(|(name, value)| (name.as_str(), value.clone())));
    match snippet.template.evaluate(&[("env", env)], &EvalLimits::default()) {
        Ok(value) => Some(value.to_string()),
        Err(error) => {
            template::report(problems, node, &snippet.source, &error);
            None
        }
    }
}
