//! The loop of a model and tools, with the model's answers given: what each request held, which calls were
//! asked about, what came back for each call.
//!
//! Texts of errors are our own, so of a failed call only its failing is compared.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value as Json, json};
use toolwright_core::{
    ApprovalRequest, Approver, AssistantMessage, Content, Decision, Message, Model, ModelError, ModelReply,
    ModelRequest, ToolResult,
};
use toolwright_lang::load;
use toolwright_models::{Reply, ScriptedCall, ScriptedModel};
use toolwright_runtime::{LoopOptions, Policy, Run};

use super::{Verdict, host, source};

pub(super) async fn run(vector: &Json) -> Verdict {
    let expect = vector.get("expect").unwrap_or(&Json::Null);
    let Seen { asked, said, requests } = play(vector).await.map_err(|error| (expect.to_string(), error))?;
    let requests: Vec<_> = requests.into_iter().map(in_order).collect();
    let got = json!({"asked": asked, "said": in_order(said), "requests": requests});
    let wanted = json!({
        "asked": wanted_questions(expect),
        "said": in_order(events(expect, "message").map(wanted_message).collect()),
        "requests": wanted_requests(expect).into_iter().map(in_order).collect::<Vec<_>>(),
    });
    if got == wanted { Ok(()) } else { Err((wanted.to_string(), got.to_string())) }
}

/// An error that ends the turn there: here the model is told that its call failed, and answers again.
pub(super) async fn goes_on(vector: &Json) -> Verdict {
    let wanted = "a model that is told of the error and asked again";
    let Seen { said, requests, .. } = play(vector).await.map_err(|error| (wanted.to_owned(), error))?;
    let told = |message: &Json| message.get("failed").is_some_and(|failed| failed == true);
    let again = requests.last().is_some_and(|request| request.iter().any(told));
    if again && said.iter().any(told) { Ok(()) } else { Err((wanted.to_owned(), json!(said).to_string())) }
}

/// The calls that the record saw cancelled by the user.
fn cancelled(vector: &Json) -> Vec<&str> {
    let expect = vector.get("expect").unwrap_or(&Json::Null);
    events(expect, "message")
        .filter(|message| field_of(message, "content") == "Tool error: execution canceled by user")
        .map(|message| field_of(message, "tool_call_id"))
        .collect()
}

fn field_of<'v>(value: &'v Json, name: &str) -> &'v str {
    value.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// Whether a call was cancelled that nobody was asked about.
pub(super) fn cancels_unasked(vector: &Json) -> bool {
    let asked = wanted_questions(vector.get("expect").unwrap_or(&Json::Null));
    cancelled(vector).iter().any(|id| !asked.iter().any(|asked| asked == id))
}

/// Whether the turn ended because nothing was approved.
pub(super) fn ends_rejected(vector: &Json) -> bool {
    let expect = vector.get("expect").unwrap_or(&Json::Null);
    let last = events(expect, "message").last().map(|message| field_of(message, "content"));
    last == Some("Tool error: execution canceled by user")
}

/// Calls that nobody was asked about are made, if they can be.
pub(super) async fn makes_unasked(vector: &Json) -> Verdict {
    let wanted = "the calls that nobody was asked about made";
    let Seen { asked, said, .. } = play(vector).await.map_err(|error| (wanted.to_owned(), error))?;
    let made =
        |id: &str| said.iter().any(|message| field_of(message, "id") == id && message.get("value").is_some());
    let unasked = cancelled(vector).into_iter().filter(|id| !asked.iter().any(|asked| asked == id));
    let fine = unasked.into_iter().all(|id| made(id) || !callable_beside_others(vector, id));
    if fine { Ok(()) } else { Err((wanted.to_owned(), json!(said).to_string())) }
}

/// Whether a call names a tool, and one that may be called beside others.
fn callable_beside_others(vector: &Json, id: &str) -> bool {
    let replies = vector.get("script").and_then(Json::as_array).into_iter().flatten();
    let mut calls = replies.filter_map(|reply| reply.get("tool_calls")?.as_array()).flatten();
    let Some(name) = calls.find(|call| field_of(call, "id") == id).map(|call| field_of(call, "name")) else {
        return false;
    };
    let Ok(loaded) = load(source(vector), &host()) else { return false };
    let entry = loaded.chat().and_then(|chat| chat.tools.get(name));
    entry.is_some_and(|entry| !entry.tool.policy().return_direct)
}

/// What happened when the model's answers were played.
struct Seen {
    asked: Vec<String>,
    said: Vec<Json>,
    requests: Vec<Vec<Json>>,
}

async fn play(vector: &Json) -> Result<Seen, String> {
    let loaded = load(source(vector), &host()).map_err(|problems| format!("{problems}"))?;
    let chat = loaded.chat().ok_or("no `chat` section")?;
    let asked = Asked::new(vector);
    let model = Recorded::new(vector);
    let run = Run::builder(chat.tools.clone()).policy(Policy::approve_all()).approver(asked.clone()).build();
    let run = run.map_err(|error| error.to_string())?;
    let mut messages: Vec<Message> = chat.system_message.iter().map(Message::system).collect();
    messages.extend(vector.get("history").and_then(Json::as_array).into_iter().flatten().map(earlier));
    messages.push(Message::user(vector.get("user").and_then(Json::as_str).unwrap_or_default()));
    let first = messages.len();
    let outcome = run.generate_loop(&model, messages, &LoopOptions::default()).await;
    let outcome = outcome.map_err(|error| error.to_string())?;
    let said = outcome.messages.iter().skip(first).map(shown).collect();
    Ok(Seen { asked: asked.ids(), said, requests: model.requests() })
}

/// A message of an earlier turn.
fn earlier(message: &Json) -> Message {
    let text = message.get("content").and_then(Json::as_str).unwrap_or_default();
    if message.get("role").is_some_and(|role| role == "ai") {
        let confidential = message.get("confidential").is_some_and(|flag| flag == true);
        let content = vec![Content::text(text)];
        return Message::Assistant(AssistantMessage { content, confidential, ..AssistantMessage::default() });
    }
    Message::user(text)
}

fn events<'v>(expect: &'v Json, kind: &'static str) -> impl Iterator<Item = &'v Json> {
    let all = expect.get("events").and_then(Json::as_array).into_iter().flatten();
    all.filter(move |event| event.get("event").is_some_and(|own| own == kind))
}

/// The calls that were asked about. Calls of one reply run side by side, so their order says nothing.
fn wanted_questions(expect: &Json) -> Vec<String> {
    let mut asked: Vec<String> = events(expect, "confirmation_request")
        .filter_map(|event| event.get("calls").and_then(Json::as_object))
        .flat_map(|calls| calls.keys().cloned())
        .collect();
    asked.sort();
    asked
}

fn wanted_requests(expect: &Json) -> Vec<Vec<Json>> {
    let requests = expect.get("llm_inputs").and_then(Json::as_array).into_iter().flatten();
    requests.map(|one| one.as_array().into_iter().flatten().map(wanted_message).collect()).collect()
}

/// A message of the record, with errors and JSON in a form that can be compared.
fn wanted_message(message: &Json) -> Json {
    let field = |name: &str| message.get(name).and_then(Json::as_str).unwrap_or_default();
    let text = field("content");
    match field("role") {
        "tool" => {
            let failed = text.to_lowercase().starts_with("tool error");
            result_shown(field("tool_call_id"), failed, text)
        }
        "ai" => {
            let confidential = message.get("confidential").is_some_and(|flag| flag == true);
            assistant_shown(text, confidential)
        }
        role => json!({"role": role, "text": text}),
    }
}

fn shown(message: &Message) -> Json {
    match message {
        Message::System { content } => json!({"role": "system", "text": text_of(content)}),
        Message::User { content } => json!({"role": "human", "text": text_of(content)}),
        Message::Assistant(assistant) => assistant_shown(&assistant.text(), assistant.confidential),
        Message::Tool(ToolResult { call_id, error, .. }) if error.is_some() => {
            result_shown(call_id, true, "")
        }
        Message::Tool(result) => result_shown(&result.call_id, false, &result.to_text()),
    }
}

/// A text that stands in place of a confidential one is known by itself.
fn assistant_shown(text: &str, confidential: bool) -> Json {
    json!({"role": "ai", "text": text, "confidential": confidential || text == "[CONFIDENTIAL]"})
}

/// Results of one reply may come in any order.
fn in_order(mut messages: Vec<Json>) -> Vec<Json> {
    let is_result = |message: &Json| field_of(message, "role") == "tool";
    for run in messages.chunk_by_mut(|a, b| is_result(a) && is_result(b)) {
        run.sort_by_key(|message| field_of(message, "id").to_owned());
    }
    messages
}

fn text_of(content: &[Content]) -> String {
    content.iter().filter_map(Content::as_text).collect()
}

fn result_shown(id: &str, failed: bool, text: &str) -> Json {
    // In place of a result that went to the user there is a sentence, which is ours here and theirs there.
    if text.contains("shown") && text.contains("user") {
        return json!({"role": "tool", "id": id, "shown": true});
    }
    if failed {
        return json!({"role": "tool", "id": id, "failed": true});
    }
    let value = serde_json::from_str(text).unwrap_or_else(|_| Json::from(text));
    json!({"role": "tool", "id": id, "value": value})
}

/// Gives the answers of the record, and keeps what it was asked.
struct Recorded {
    answers: ScriptedModel,
    requests: Mutex<Vec<Vec<Json>>>,
}

impl Recorded {
    fn new(vector: &Json) -> Self {
        let script = vector.get("script").and_then(Json::as_array).into_iter().flatten();
        Recorded { answers: ScriptedModel::new(script.map(reply)), requests: Mutex::default() }
    }

    fn requests(&self) -> Vec<Vec<Json>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn reply(answer: &Json) -> Reply {
    let text =
        |value: &Json, name: &str| value.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
    let mut reply = Reply::text(text(answer, "content"));
    for call in answer.get("tool_calls").and_then(Json::as_array).into_iter().flatten() {
        let arguments = call.get("args").cloned().unwrap_or_default();
        reply.calls.push(ScriptedCall { tool: text(call, "name"), arguments, id: Some(text(call, "id")) });
    }
    reply
}

impl Model for Recorded {
    fn name(&self) -> &str {
        self.answers.name()
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let messages = request.messages.iter().map(shown).collect();
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(messages);
        self.answers.generate(request).await
    }
}

/// Approves the calls that the record approves, and keeps which it was asked about.
#[derive(Clone)]
struct Asked {
    approved: Arc<[String]>,
    ids: Arc<Mutex<Vec<String>>>,
}

impl Asked {
    fn new(vector: &Json) -> Self {
        let approved = vector.get("approve").and_then(Json::as_array).into_iter().flatten();
        let approved = approved.filter_map(Json::as_str).map(str::to_owned).collect();
        Asked { approved, ids: Arc::default() }
    }

    fn ids(&self) -> Vec<String> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ids.sort();
        ids
    }
}

impl Approver for Asked {
    fn name(&self) -> &str {
        "record"
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        let id = request.call.id.to_string();
        let fine = self.approved.contains(&id);
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        if fine { Decision::Approve } else { Decision::reject("execution canceled by user") }
    }
}
