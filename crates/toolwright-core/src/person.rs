//! The person contract: the human side of a run, who decides about calls, fills in forms, and is notified.
//!
//! A terminal, a chat and an MCP client each implement [`Person`]. A run has at most one; tools find it with
//! [`ToolContext::person`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::approval::{ApprovalRequest, Approver, Decision};
use crate::context::{RunScope, ToolContext};
use crate::dispatch::Requester;
use crate::erased::DynPerson;

/// The human side of a run: approves, answers forms, is notified.
///
/// Write the methods as `async fn`. What a form or a notice says was written by a model or a server: show it
/// escaped, as what it is.
///
/// ```
/// use std::sync::Arc;
/// use toolwright_core::{Form, FormReply, Person, RunScope, ToolContext};
///
/// struct Away;
///
/// impl Person for Away {
///     async fn answer(&self, _: &Form) -> FormReply {
///         FormReply::Cancelled
///     }
/// }
///
/// let context = ToolContext::detached_in(RunScope::default().with_person(Arc::new(Away)));
/// assert!(context.person().is_some());
/// ```
pub trait Person: Send + Sync {
    /// The name of this person as an approver, written into events.
    fn name(&self) -> &str {
        "human"
    }

    /// Decides about one call. The arguments have passed the schema. By default, every call is rejected.
    fn approve<'a>(&'a self, request: &'a ApprovalRequest<'a>) -> impl Future<Output = Decision> + Send {
        let _ = request;
        async { Decision::reject("this person does not decide about calls") }
    }

    /// Fills in a form. The caller checks what was filled in against the form's schema.
    fn answer<'a>(&'a self, form: &'a Form) -> impl Future<Output = FormReply> + Send;

    /// Shows something that needs no answer. By default, it is dropped.
    fn notify<'a>(&'a self, notice: &'a Notice) -> impl Future<Output = ()> + Send {
        let _ = notice;
        async {}
    }
}

/// Every person can be an approver of a run; `Arc<DynPerson>` is one too.
impl Approver for DynPerson {
    fn name(&self) -> &str {
        Person::name(self)
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        self.approve(request).await
    }
}

/// A question to a person.
#[non_exhaustive]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Form {
    /// Who wrote the question.
    pub author: FormAuthor,
    /// The question. It may say anything.
    pub message: String,
    /// What is to be filled in.
    pub body: FormBody,
    /// Whose call asks; a person who serves several clients answers through that one.
    #[serde(skip)]
    pub requester: Requester,
}

/// Who wrote a [`Form`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormAuthor {
    /// The model that works on the run.
    Model,
    /// An MCP server, by the name the program gave it.
    Server(String),
}

/// What a [`Form`] wants.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormBody {
    /// The values of an object with this JSON Schema.
    Fields(Value),
    /// Free text of any number of lines, returned as the value `text`.
    Text,
    /// A visit to the page at this address; accepting means to open it.
    Page(String),
}

/// What a person did with a [`Form`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormReply {
    /// Filled in.
    Accepted(Map<String, Value>),
    /// Refused.
    Declined,
    /// Neither: the question was dismissed, or nobody answered.
    Cancelled,
}

/// Something a model wants a person to know. The words are the model's.
#[non_exhaustive]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Notice {
    /// The subject, in a few words.
    pub title: String,
    /// The message.
    pub message: String,
    /// Whose call notifies.
    #[serde(skip)]
    pub requester: Requester,
}

impl Form {
    /// A form that no particular client asks for.
    pub fn new(author: FormAuthor, message: impl Into<String>, body: FormBody) -> Self {
        Form { author, message: message.into(), body, requester: Requester::default() }
    }

    /// The form, asked for by this call's requester.
    #[must_use]
    pub fn requested_by(mut self, requester: Requester) -> Self {
        self.requester = requester;
        self
    }

    /// The JSON Schema of what is to be filled in, whatever the body: free text is an object with the one
    /// field `text`, and a page has no fields.
    pub fn schema(&self) -> Value {
        match &self.body {
            FormBody::Fields(schema) => schema.clone(),
            FormBody::Text => json!({"type": "object", "properties": {"text": {"type": "string"}}}),
            FormBody::Page(_) => json!({"type": "object"}),
        }
    }

    /// Adds the defaults of fields that were left out.
    pub fn add_defaults(&self, content: &mut Map<String, Value>) {
        let FormBody::Fields(schema) = &self.body else { return };
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        for (name, field) in fields {
            if let Some(default) = field.get("default").filter(|_| !content.contains_key(name)) {
                content.insert(name.clone(), default.clone());
            }
        }
    }
}

impl Notice {
    /// A notice that no particular client's call gives.
    pub fn new(title: impl Into<String>, message: impl Into<String>) -> Self {
        Notice { title: title.into(), message: message.into(), requester: Requester::default() }
    }

    /// The notice, given by this call's requester.
    #[must_use]
    pub fn requested_by(mut self, requester: Requester) -> Self {
        self.requester = requester;
        self
    }
}

/// How the person of a run is kept in its state.
struct PersonOfRun(Arc<DynPerson>);

impl RunScope {
    /// Adds the person whom tools may ask and notify.
    #[must_use]
    pub fn with_person(self, person: Arc<DynPerson>) -> Self {
        self.with_state(PersonOfRun(person))
    }
}

impl ToolContext {
    /// The person of the run, if it has one. Time in which a call waits for an answer counts for no bound of
    /// the call, nor of those around it.
    pub fn person(&self) -> Option<Arc<DynPerson>> {
        let person = self.state::<PersonOfRun>().ok()?.0.clone();
        Some(Arc::new(AwaitedPerson { person, context: self.clone() }))
    }
}

/// The person of a run as one call asks them.
struct AwaitedPerson {
    person: Arc<DynPerson>,
    context: ToolContext,
}

impl Person for AwaitedPerson {
    fn name(&self) -> &str {
        Person::name(&self.person)
    }

    async fn approve(&self, request: &ApprovalRequest<'_>) -> Decision {
        let _wait = self.context.host().person_wait(&self.context);
        self.person.approve(request).await
    }

    async fn answer(&self, form: &Form) -> FormReply {
        let _wait = self.context.host().person_wait(&self.context);
        self.person.answer(form).await
    }

    async fn notify(&self, notice: &Notice) {
        self.person.notify(notice).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_fill_in_what_was_left_out() {
        let schema =
            json!({"type": "object", "properties": {"a": {"default": 1}, "b": {"default": 2}, "c": {}}});
        let form = Form::new(FormAuthor::Model, "?", FormBody::Fields(schema));
        let mut content = Map::from_iter([("b".to_owned(), json!(3))]);
        form.add_defaults(&mut content);
        assert_eq!(Value::Object(content), json!({"a": 1, "b": 3}));
    }

    #[test]
    fn a_form_travels_as_json_without_its_asker() {
        let form = Form::new(FormAuthor::Server("files".to_owned()), "Sure?", FormBody::Text);
        let wire = serde_json::to_value(form.requested_by(Requester::new(1))).unwrap();
        assert_eq!(wire, json!({"author": {"server": "files"}, "message": "Sure?", "body": "text"}));
        let back: Form = serde_json::from_value(wire).unwrap();
        assert!(back.requester.get::<i32>().is_none());
        assert_eq!(back.schema()["properties"]["text"]["type"], json!("string"));
    }
}
