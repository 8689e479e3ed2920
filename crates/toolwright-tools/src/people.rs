//! `ask_user`, `user_input` and `notify_user`: a person who is at hand may be asked and told.
//!
//! Who that is, the program says: it puts an [`AtHand`] into the run. A run without one has nobody to ask.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolwright_core::schema::Schema;
use toolwright_core::{BoxFuture, ToolContext, ToolDef, ToolError};

use crate::options::{Effect, Options, finish};

/// The longest text that a person is shown, in bytes.
const LONGEST: usize = 16 * 1024;

/// Somebody whom a model may ask and tell.
pub trait Person: Send + Sync {
    /// Asks for the values of a form. The context is that of the call that asks, for those who serve several people at
    /// once.
    fn ask<'a>(&'a self, context: &'a ToolContext, question: &'a Question) -> BoxFuture<'a, Answer>;

    /// Lets them write something, in as many lines as they like; `None` when they do not want to. Where nothing else is
    /// said, that is a form of one field.
    fn read<'a>(&'a self, context: &'a ToolContext, prompt: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            let question = Question { message: prompt.to_owned(), schema };
            match self.ask(context, &question).await {
                Answer::Given(form) => {
                    Some(form.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
                }
                Answer::Declined | Answer::Cancelled => None,
            }
        })
    }

    /// Tells something that needs no answer.
    fn tell<'a>(&'a self, context: &'a ToolContext, notice: &'a Notice) -> BoxFuture<'a, ()>;
}

/// What a model wants somebody to know. The words are the model's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub title: String,
    /// What is told.
    pub message: String,
}

/// What a model wants to know. The words are the model's: show them as what they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What is asked.
    pub message: String,
    /// The form: an object of named values.
    pub schema: Value,
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The form, filled in.
    Given(Map<String, Value>),
    /// No.
    Declined,
    /// Neither yes nor no.
    Cancelled,
}

/// The person of a run.
///
/// ```
/// use std::sync::Arc;
/// use toolwright_core::{BoxFuture, RunScope, ToolContext};
/// use toolwright_tools::{Answer, AtHand, Notice, Person, Question};
///
/// struct Nobody;
///
/// impl Person for Nobody {
///     fn ask<'a>(&'a self, _: &'a ToolContext, _: &'a Question) -> BoxFuture<'a, Answer> {
///         Box::pin(async { Answer::Declined })
///     }
///
///     fn tell<'a>(&'a self, _: &'a ToolContext, _: &'a Notice) -> BoxFuture<'a, ()> {
///         Box::pin(async {})
///     }
/// }
///
/// let scope = RunScope::default().with_state(AtHand::new(Nobody));
/// # let _ = scope;
/// ```
#[derive(Clone)]
pub struct AtHand(Arc<dyn Person>);

impl AtHand {
    /// That person.
    pub fn new(person: impl Person + 'static) -> Self {
        AtHand(Arc::new(person))
    }
}

impl std::fmt::Debug for AtHand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AtHand")
    }
}

fn at_hand(context: &ToolContext) -> Result<Arc<AtHand>, ToolError> {
    context.state().map_err(|_| {
        ToolError::new("there is nobody at hand to ask or tell")
            .hint("go on without, and say what you assumed")
    })
}

fn bounded(name: &str, text: &str) -> Result<(), ToolError> {
    match text.len() {
        0 => Err(ToolError::invalid(format!("`{name}` is empty"))),
        1..=LONGEST => Ok(()),
        _ => Err(ToolError::invalid(format!("`{name}` is longer than {LONGEST} bytes"))),
    }
}

#[derive(Deserialize, JsonSchema)]
struct AskUser {
    /// What to ask.
    message: String,
    /// The form to fill in, as a JSON Schema of an object: its `properties` are the fields.
    schema: Map<String, Value>,
}

/// The tool `ask_user`: the answer is the form, filled in.
pub fn ask_user(_: &Options) -> ToolDef {
    let tool = ToolDef::typed(
        "ask_user",
        "Ask the person you work for, and wait for the answer. The schema describes the form they fill in, for example \
         {\"type\": \"object\", \"properties\": {\"colour\": {\"type\": \"string\", \"enum\": [\"red\", \"blue\"]}}, \
         \"required\": [\"colour\"]}.",
        |context: ToolContext, AskUser { message, schema }: AskUser| async move {
            bounded("message", &message)?;
            let schema = form(schema)?;
            let compiled = Schema::compile(&schema).map_err(|error| {
                ToolError::new("`schema` is not a form that can be filled in").with_source(error)
            })?;
            let question = Question { message, schema };
            match at_hand(&context)?.0.ask(&context, &question).await {
                Answer::Declined => Err(ToolError::new("the user declined to answer")),
                Answer::Cancelled => Err(ToolError::new("the user did not answer")),
                Answer::Given(mut answer) => {
                    add_defaults(&question.schema, &mut answer);
                    let answer = Value::Object(answer);
                    match compiled.problems(&answer).first() {
                        Some(problem) => {
                            Err(ToolError::new(format!("the answer does not fit the form: {problem}")))
                        }
                        None => Ok(answer.to_string()),
                    }
                }
            }
        },
    );
    one_at_a_time(tool)
}

/// A form with the types in small letters, as some models write them in capitals.
fn form(schema: Map<String, Value>) -> Result<Value, ToolError> {
    let mut schema = Value::Object(schema);
    lower_types(&mut schema, 0);
    let fields = schema.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    if schema.get("type").is_none_or(|kind| kind != "object") || fields == 0 {
        return Err(ToolError::new("`schema` must be an object with `properties`, one for each field"));
    }
    Ok(schema)
}

/// What has a default and was left out is added.
fn add_defaults(schema: &Value, answer: &mut Map<String, Value>) {
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, field) in fields {
        if let Some(default) = field.get("default").filter(|_| !answer.contains_key(name)) {
            answer.insert(name.clone(), default.clone());
        }
    }
}

fn lower_types(schema: &mut Value, depth: usize) {
    // Deeper than this no form is filled in by anybody.
    if depth > 8 {
        return;
    }
    match schema {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::String(kind) if name == "type" => *kind = kind.to_lowercase(),
                    other => lower_types(other, depth + 1),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| lower_types(item, depth + 1)),
        _ => {}
    }
}

#[derive(Deserialize, JsonSchema)]
struct UserInput {
    /// What to ask for.
    prompt: String,
}

/// The tool `user_input`: what the person writes.
pub fn user_input(_: &Options) -> ToolDef {
    let tool = ToolDef::typed(
        "user_input",
        "Ask the person you work for to write something, and wait for it.",
        |context: ToolContext, UserInput { prompt }: UserInput| async move {
            bounded("prompt", &prompt)?;
            let written = at_hand(&context)?.0.read(&context, &prompt).await;
            written.ok_or_else(|| ToolError::new("the user did not answer"))
        },
    );
    one_at_a_time(tool)
}

#[derive(Deserialize, JsonSchema)]
struct NotifyUser {
    /// What it is about, in a few words.
    title: String,
    /// What to tell.
    message: String,
}

/// The tool `notify_user`: tells the person something and goes on.
pub fn notify_user(_: &Options) -> ToolDef {
    let tool = ToolDef::typed(
        "notify_user",
        "Tell the person you work for something that needs no answer.",
        |context: ToolContext, NotifyUser { title, message }: NotifyUser| async move {
            bounded("title", &title)?;
            bounded("message", &message)?;
            at_hand(&context)?.0.tell(&context, &Notice { title, message }).await;
            Ok::<_, ToolError>("the user was told")
        },
    );
    one_at_a_time(tool)
}

fn one_at_a_time(tool: ToolDef) -> ToolDef {
    finish(tool, "people", Effect::Reads, &[]).edit(|_, policy| policy.parallel = Some(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_fields_and_types_in_small_letters() {
        let schema =
            json!({"type": "OBJECT", "properties": {"n": {"type": "Integer"}, "type": {"type": "STRING"}}});
        let Value::Object(schema) = schema else { panic!() };
        let wanted =
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "type": {"type": "string"}}});
        assert_eq!(form(schema).unwrap(), wanted);
        for schema in [json!({}), json!({"type": "string"}), json!({"type": "object", "properties": {}})] {
            assert!(form(schema.as_object().unwrap().clone()).is_err(), "{schema}");
        }
    }
}
