//! `ask_user`, `user_input` and `notify_user`: a model asks and notifies the person of the run.
//!
//! A run without a person (`RunBuilder::person`) answers with an error.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolwright_core::schema::Schema;
use toolwright_core::{
    DynPerson, Form, FormAuthor, FormBody, FormReply, Notice, ToolContext, ToolError, tool,
};

use crate::options::Options;

/// The longest text that a person is shown, in bytes.
const LONGEST: usize = 16 * 1024;

fn person(context: &ToolContext) -> Result<Arc<DynPerson>, ToolError> {
    context.person().ok_or_else(|| {
        ToolError::new("no user is available to answer").hint("go on without, and say what you assumed")
    })
}

fn bounded(name: &str, text: &str) -> Result<(), ToolError> {
    match text.len() {
        0 => Err(ToolError::invalid(format!("`{name}` is empty"))),
        1..=LONGEST => Ok(()),
        _ => Err(ToolError::invalid(format!("`{name}` is longer than {LONGEST} bytes"))),
    }
}

/// The tool `ask_user`: the answer is the form, filled in.
#[tool(
    description = "Ask the person you work for, and wait for the answer. The schema describes the form they fill in, for \
                   example {\"type\": \"object\", \"properties\": {\"colour\": {\"type\": \"string\", \"enum\": [\"red\", \
                   \"blue\"]}}, \"required\": [\"colour\"]}.",
    category = "people",
    read_only,
    parallel = false
)]
pub async fn ask_user(
    context: &ToolContext,
    #[tool(setup)] _options: &Options,
    /// What to ask.
    message: String,
    /// The form to fill in, as a JSON Schema of an object: its `properties` are the fields.
    schema: Map<String, Value>,
) -> Result<String, ToolError> {
    bounded("message", &message)?;
    let schema = form(schema)?;
    let compiled = Schema::compile(&schema)
        .map_err(|error| ToolError::new("`schema` is not a form that can be filled in").with_source(error))?;
    let form = Form::new(FormAuthor::Model, message, FormBody::Fields(schema));
    let form = form.requested_by(context.requester().clone());
    match person(context)?.answer(&form).await {
        FormReply::Declined => Err(ToolError::new("the user declined to answer")),
        FormReply::Cancelled => Err(ToolError::new("the user did not answer")),
        FormReply::Accepted(mut answer) => {
            form.add_defaults(&mut answer);
            let answer = Value::Object(answer);
            match compiled.problems(&answer).first() {
                Some(problem) => Err(ToolError::new(format!("the answer does not fit the form: {problem}"))),
                None => Ok(answer.to_string()),
            }
        }
    }
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

/// Ask the person you work for to write something, and wait for it.
#[tool(category = "people", read_only, parallel = false)]
pub async fn user_input(
    context: &ToolContext,
    #[tool(setup)] _options: &Options,
    /// What to ask for.
    prompt: String,
) -> Result<String, ToolError> {
    bounded("prompt", &prompt)?;
    let form = Form::new(FormAuthor::Model, prompt, FormBody::Text).requested_by(context.requester().clone());
    match person(context)?.answer(&form).await {
        FormReply::Accepted(written) => {
            Ok(written.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
        }
        FormReply::Declined | FormReply::Cancelled => Err(ToolError::new("the user did not answer")),
    }
}

/// Tell the person you work for something that needs no answer.
#[tool(category = "people", read_only, parallel = false)]
pub async fn notify_user(
    context: &ToolContext,
    #[tool(setup)] _options: &Options,
    /// What it is about, in a few words.
    title: String,
    /// What to tell.
    message: String,
) -> Result<&'static str, ToolError> {
    bounded("title", &title)?;
    bounded("message", &message)?;
    let notice = Notice::new(title, message).requested_by(context.requester().clone());
    person(context)?.notify(&notice).await;
    Ok("the user was told")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
