//! Asking and telling a person, who is a script here.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright_core::{
    ApprovalRequest, Decision, ErrorKind, Form, FormReply, Notice, Person, ToolCall, ToolResult, Toolset,
};
use toolwright_runtime::Run;
use toolwright_tools::resolve;

use crate::support::{Backend, cases};

cases![a_person_at_hand_is_asked_and_told, nobody_at_hand_is_an_error_for_the_model];

/// Gives one answer to everything, and remembers what was said.
struct Scripted {
    reply: FormReply,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Person for Scripted {
    async fn approve(&self, _: &ApprovalRequest<'_>) -> Decision {
        Decision::Approve
    }

    async fn answer(&self, form: &Form) -> FormReply {
        self.heard.lock().unwrap().push(form.message.clone());
        self.reply.clone()
    }

    async fn notify(&self, notice: &Notice) {
        self.heard.lock().unwrap().push(format!("{}: {}", notice.title, notice.message));
    }
}

fn tools() -> Toolset {
    ["ask_user", "notify_user", "user_input"]
        .into_iter()
        .fold(Toolset::new(), |set, name| set.with(resolve(name).unwrap()).unwrap())
}

async fn call(run: &Run, tool: &str, arguments: Value) -> ToolResult {
    run.call(ToolCall::new("1", tool, arguments)).await.unwrap()
}

fn question() -> Value {
    let colour = json!({"type": "STRING", "enum": ["red", "blue"]});
    let count = json!({"type": "integer", "default": 3});
    let properties = json!({"colour": colour, "count": count});
    json!({
        "message": "Which colour?",
        "schema": {"type": "object", "properties": properties, "required": ["colour"]},
    })
}

async fn a_person_at_hand_is_asked_and_told(_: Backend) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let asked = async |answer: FormReply| {
        let person = Arc::new(Scripted { reply: answer, heard: heard.clone() });
        let run = Run::builder(tools()).person(person).build().unwrap();
        let told = call(&run, "notify_user", json!({"title": "Done", "message": "All of it."})).await;
        assert!(told.error.is_none(), "{told:?}");
        call(&run, "ask_user", question()).await
    };
    let given = |value: Value| FormReply::Accepted(value.as_object().unwrap().clone());
    let answer = asked(given(json!({"colour": "red"}))).await;
    assert_eq!(answer.to_text(), r#"{"colour":"red","count":3}"#);
    assert_eq!(*heard.lock().unwrap(), ["Done: All of it.", "Which colour?"]);
    let person = Arc::new(Scripted { reply: given(json!({"text": "two\nlines"})), heard: heard.clone() });
    let run = Run::builder(tools()).person(person).build().unwrap();
    assert_eq!(call(&run, "user_input", json!({"prompt": "Say more:"})).await.to_text(), "two\nlines");
    assert_eq!(heard.lock().unwrap().pop().as_deref(), Some("Say more:"));
    for answer in
        [FormReply::Declined, FormReply::Cancelled, given(json!({"colour": "green"})), given(json!({}))]
    {
        let result = asked(answer.clone()).await;
        assert_eq!(result.error.map(|error| error.kind), Some(ErrorKind::Unknown), "{answer:?}");
    }
}

async fn nobody_at_hand_is_an_error_for_the_model(_: Backend) {
    let run = Run::builder(tools()).build().unwrap();
    for (tool, arguments) in [
        ("ask_user", question()),
        ("notify_user", json!({"title": "a", "message": "b"})),
        ("user_input", json!({"prompt": "a"})),
    ] {
        let error = call(&run, tool, arguments).await.error.unwrap();
        assert!(error.kind == ErrorKind::Unknown && error.hint.is_some(), "{error:?}");
    }
    for wrong in [json!({"message": "", "schema": {"type": "object"}}), json!({"message": "x", "schema": {}})]
    {
        assert!(call(&run, "ask_user", wrong).await.error.is_some());
    }
}
