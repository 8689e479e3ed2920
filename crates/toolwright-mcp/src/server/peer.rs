//! The client as a tool, a prompt or an approver sees it: it answers questions and takes log messages.
//!
//! How a question travels depends on the revision. With a session it is a request to the client. Without one,
//! the call ends with "input required", and is made again with the answer: what stands before a question runs
//! again, so it should change nothing. In a task, the question waits until the client looks at the task.

use std::sync::{Arc, Mutex, MutexGuard};

use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolwright_core::schema::Schema;
use toolwright_core::{
    CancelToken, ErrorKind, Origin, ProgressListener, Requester, ToolContext, ToolError, canonical_json, text,
};
use toolwright_util::lock;

use super::IncomingRequest;
use super::response::Response;
use super::sealed_state::{Binding, SealedState, StateKey};
use super::tasks::Task;
use crate::jsonrpc::{MISSING_CAPABILITY, RpcError};
use crate::protocol::{
    ElicitAction, ElicitParams, ElicitResult, Empty, InputRequired, LogLevel, LogMessageParams, PageMode,
    ResultBody, RootsResult, SampleParams, SampleResult, ServerNotification, ServerRequest,
};

/// The client a call comes from. Cloning is cheap.
#[derive(Clone)]
pub struct Peer {
    inner: Arc<PeerInner>,
}

struct PeerInner {
    request: IncomingRequest,
    asking: Mutex<QuestionRound>,
}

struct QuestionRound {
    sealed: SealedState,
    /// Set once the call goes on as a task.
    task: Option<Arc<Task>>,
    /// The questions that the client must answer before the call can be made again.
    open: Vec<(String, Question)>,
    /// The error that is sent in place of a result.
    refusal: Option<RpcError>,
}

impl Peer {
    /// The client that made this call, or the call that this one is part of; `None` when no MCP client did.
    pub fn of(context: &ToolContext) -> Option<Peer> {
        context.requester().get().cloned()
    }

    /// The client that asks for something, such as a decision about a call.
    pub fn of_requester(requester: &Requester) -> Option<Peer> {
        requester.get().cloned()
    }

    pub(super) fn new(request: IncomingRequest, sealed: SealedState) -> Self {
        let asking = Mutex::new(QuestionRound { sealed, task: None, open: Vec::new(), refusal: None });
        Peer { inner: Arc::new(PeerInner { request, asking }) }
    }

    /// Where a call of the client comes from: this is how its tools and approvers find the client. `stop`
    /// ends it.
    pub(super) fn origin(&self, stop: Option<CancelToken>, listener: Option<ProgressListener>) -> Origin {
        Origin { listener, stop, requester: Requester::new(self.clone()) }
    }

    fn asking(&self) -> MutexGuard<'_, QuestionRound> {
        lock(&self.inner.asking)
    }

    pub(super) fn request(&self) -> &IncomingRequest {
        &self.inner.request
    }

    /// True when the client names the capability to answer such a question.
    pub fn can_answer(&self, question: &Question) -> bool {
        match &question.0 {
            ServerRequest::Elicit(ElicitParams::Page { .. }) => self.can_open_pages(),
            ServerRequest::Elicit(ElicitParams::Form { .. }) => self.can_fill_in(),
            ServerRequest::Sample(_) => self.can_sample(),
            ServerRequest::ListRoots(_) => {
                self.can_be_asked() && self.inner.request.capabilities.roots.is_some()
            }
        }
    }

    /// False when a question would not reach the client. Without a session it is part of the answer, which
    /// does.
    fn can_be_asked(&self) -> bool {
        self.inner.request.session.is_none() || self.inner.request.sender.takes_questions()
    }

    /// True when a person can be asked to fill in a form.
    pub(crate) fn can_fill_in(&self) -> bool {
        let elicitation = self.inner.request.capabilities.elicitation.as_ref();
        self.can_be_asked() && elicitation.is_some_and(|elicitation| elicitation.takes_forms())
    }

    /// True when a person can be asked to open a page.
    pub(crate) fn can_open_pages(&self) -> bool {
        let elicitation = self.inner.request.capabilities.elicitation.as_ref();
        self.can_be_asked() && elicitation.is_some_and(|elicitation| elicitation.url.is_some())
    }

    pub(crate) fn can_sample(&self) -> bool {
        self.can_be_asked() && self.inner.request.capabilities.sampling.is_some()
    }

    /// True when both calls come from one session; without sessions every call is somebody's own.
    pub(crate) fn same_client(&self, other: &Peer) -> bool {
        match (&self.inner.request.session, &other.inner.request.session) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => Arc::ptr_eq(&self.inner, &other.inner),
        }
    }

    /// True when the call ends here, and is made again with an answer.
    pub(crate) fn must_answer_first(&self) -> bool {
        !self.asking().open.is_empty()
    }

    /// True when the client made this call before and brings back what it was given then.
    pub fn resumed(&self) -> bool {
        self.asking().sealed.resumed
    }

    /// Asks the client. The key names the question; it is the same each time the call is made.
    pub async fn ask(&self, key: &str, question: Question) -> Result<ClientReply, ToolError> {
        let replies = self.ask_all(vec![(key.to_owned(), question)]).await?;
        replies.into_iter().next().ok_or_else(|| ToolError::new("there is no answer"))
    }

    /// Asks several things at once. The answers come in the order of the questions.
    pub async fn ask_all(&self, questions: Vec<(String, Question)>) -> Result<Vec<ClientReply>, ToolError> {
        for (_, question) in &questions {
            if !self.can_answer(question) {
                return Err(self.cannot(question));
            }
        }
        if self.inner.request.session.is_some() {
            let mut replies = Vec::new();
            for (_, question) in questions {
                replies.push(self.ask_in_session(question).await?);
            }
            return Ok(replies);
        }
        let task = self.asking().task.clone();
        match task {
            Some(task) => task.ask(questions).await,
            None => self.ask_in_rounds(questions),
        }
    }

    async fn ask_in_session(&self, question: Question) -> Result<ClientReply, ToolError> {
        let request = &self.inner.request;
        let Some(session) = &request.session else { return Err(self.cannot(&question)) };
        let answer = session.ask(&request.sender, &question.0).await;
        let answer = answer.map_err(|why| ToolError::of(ErrorKind::Cancelled, why))?;
        let answer = answer.map_err(|error| {
            ToolError::new(format!("the client refused to answer: {}", text::clip(&error.message, 1000)))
        })?;
        if !question.fits(&answer) {
            return Err(ToolError::new("the client's answer is not what was asked for"));
        }
        Ok(ClientReply(answer))
    }

    /// Returns the answers of earlier rounds, or records the questions that are open.
    fn ask_in_rounds(&self, questions: Vec<(String, Question)>) -> Result<Vec<ClientReply>, ToolError> {
        let mut asking = self.asking();
        let mut replies = Vec::new();
        let mut missing = Vec::new();
        for (key, question) in questions {
            match asking.sealed.answers.get(&key) {
                Some(answer) if question.fits(answer) => replies.push(ClientReply(answer.clone())),
                // An answer that does not fit is asked for again.
                _ => missing.push((key, question)),
            }
        }
        if missing.is_empty() {
            return Ok(replies);
        }
        let keys: Vec<_> = missing.iter().map(|(key, _)| key.as_str()).collect();
        let error = ToolError::new(format!("the client is asked for: {}", keys.join(", ")));
        for (key, question) in missing {
            if !asking.open.iter().any(|(open, _)| *open == key) {
                asking.open.push((key, question));
            }
        }
        Err(error)
    }

    /// The error of a call that needs more than the client can do.
    fn cannot(&self, question: &Question) -> ToolError {
        if !self.can_be_asked() {
            return ToolError::new("the client cannot be asked: it takes no `text/event-stream`");
        }
        let message = format!("the client does not offer `{}`", question.0.capability());
        if self.inner.request.era.is_stateless() {
            let mut error = RpcError::new(MISSING_CAPABILITY, message.clone());
            error.data = Some(json!({"requiredCapabilities": {question.0.capability(): {}}}));
            self.asking().refusal = Some(error);
        }
        ToolError::new(message)
    }

    /// Answers the request with an error of the protocol, whatever the tool returns.
    pub fn refuse(&self, code: i64, message: impl Into<String>) -> ToolError {
        let message = message.into();
        self.asking().refusal = Some(RpcError::new(code, message.clone()));
        ToolError::new(message)
    }

    /// Sends a log message to the client, if it wants messages of that level.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        self.log_as("toolwright", level, data.into());
    }

    /// The same under the name of another logger.
    pub(crate) fn log_as(&self, logger: &str, level: LogLevel, data: Value) {
        let request = &self.inner.request;
        let least = match &request.session {
            Some(session) => Some(session.log_level()),
            None => request.log_level,
        };
        if least.is_some_and(|least| level >= least) {
            let params = LogMessageParams { level: Some(level), logger: Some(logger.to_owned()), data };
            request.sender.try_notify(&ServerNotification::LogMessage(params));
        }
    }

    /// Closes the stream the answer would come on. The call goes on, and a client over HTTP comes back for
    /// the answer.
    pub fn hang_up(&self) {
        self.inner.request.sender.hang_up.cancel();
    }

    pub(super) fn goes_on_as(&self, task: Arc<Task>) {
        self.asking().task = Some(task);
    }

    /// True when the call goes on as a task.
    pub(super) fn is_task(&self) -> bool {
        self.asking().task.is_some()
    }

    /// The response in place of the result, when something is missing.
    pub(super) fn instead(&self, key: &StateKey, binding: Binding<'_>) -> Option<Response> {
        let mut asking = self.asking();
        if let Some(refusal) = asking.refusal.take() {
            return Some(refusal.into());
        }
        if asking.open.is_empty() {
            return None;
        }
        asking.sealed.bind(&self.inner.request, binding);
        let input_requests: Map<String, Value> =
            std::mem::take(&mut asking.open).into_iter().map(|(key, asked)| (key, asked.to_wire())).collect();
        let mut answers = std::mem::take(&mut asking.sealed.answers);
        answers.retain(|key, _| !input_requests.contains_key(key));
        let request_state = Some(asking.sealed.seal(key, answers).into());
        Some(ResultBody::InputRequired(InputRequired { input_requests, request_state }).into())
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").field("version", &self.inner.request.era.version).finish_non_exhaustive()
    }
}

/// A question to a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Question(ServerRequest);

impl Question {
    /// Asks the person for something. The schema is a flat object of plain values.
    pub fn elicit(message: impl Into<String>, schema: Value) -> Self {
        let (message, requested_schema) = (message.into(), schema);
        Question(ServerRequest::Elicit(ElicitParams::Form { message, requested_schema }))
    }

    /// Asks the person to open a page. The id is the server's own name for this.
    pub(crate) fn open_page(message: String, url: String, id: &str) -> Self {
        let (mode, elicitation_id) = (PageMode::Url, id.to_owned());
        Question(ServerRequest::Elicit(ElicitParams::Page { mode, message, url, elicitation_id }))
    }

    /// Asks the client's model what these parameters of the protocol say.
    pub(crate) fn sample_as(params: SampleParams) -> Self {
        Question(ServerRequest::Sample(Box::new(params)))
    }

    /// Asks the client's model.
    pub fn sample(prompt: impl Into<String>, max_tokens: u32) -> Self {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt.into()}});
        let max_tokens = max_tokens.into();
        let params = SampleParams { messages: vec![message], max_tokens, ..SampleParams::default() };
        Question::sample_as(params)
    }

    /// Asks for the folders in which the client works.
    pub fn roots() -> Self {
        Question(ServerRequest::ListRoots(Empty {}))
    }

    /// A key for [`Peer::ask`]: equal for equal questions only.
    pub fn key(&self) -> String {
        let mut asked = self.to_wire();
        if let Some(Value::Object(params)) = asked.get_mut("params") {
            // It is new each time the same thing is asked.
            params.shift_remove("elicitationId");
        }
        key_of("ask", &canonical_json(&asked))
    }

    pub(super) fn to_wire(&self) -> Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }

    /// Whether this is an answer to the question.
    pub(super) fn fits(&self, answer: &Value) -> bool {
        // A list would be taken for the members in their order.
        if !answer.is_object() {
            return false;
        }
        match &self.0 {
            ServerRequest::Elicit(asked) => match (ElicitResult::deserialize(answer), asked) {
                (Ok(ElicitResult { action: ElicitAction::Decline | ElicitAction::Cancel, .. }), _)
                | (Ok(_), ElicitParams::Page { .. }) => true,
                (Ok(ElicitResult { content, .. }), ElicitParams::Form { requested_schema, .. }) => {
                    // An empty form may be accepted without content.
                    let content = Value::Object(content.unwrap_or_default());
                    Schema::compile_any(requested_schema)
                        .map_or(true, |schema| schema.problems(&content).is_empty())
                }
                (Err(_), _) => false,
            },
            ServerRequest::Sample(_) => SampleResult::deserialize(answer)
                .is_ok_and(|answer| answer.content.is_object() || answer.content.is_array()),
            ServerRequest::ListRoots(_) => RootsResult::deserialize(answer).is_ok(),
        }
    }
}

/// The answer of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientReply(pub(super) Value);

impl ClientReply {
    /// The answer as it came.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The protocol's word for what the user did: `accept`, `decline` or `cancel`.
    pub(super) fn action(&self) -> &str {
        self.0.get("action").and_then(Value::as_str).unwrap_or_default()
    }

    /// True when the user accepted, unless the content says `allow: false`, as an older form had it.
    pub(super) fn is_accepted(&self) -> bool {
        self.action() == "accept" && self.0.pointer("/content/allow") != Some(&Value::Bool(false))
    }

    /// The form as the person filled it in; `None` when they declined.
    pub fn accepted(&self) -> Option<&Map<String, Value>> {
        let accepted = self.0.get("action").and_then(Value::as_str) == Some("accept");
        self.0.get("content").and_then(Value::as_object).filter(|_| accepted)
    }

    /// The text of the model.
    pub fn text(&self) -> String {
        let said = match self.0.get("content") {
            Some(Value::Array(blocks)) => blocks.as_slice(),
            Some(block) => std::slice::from_ref(block),
            None => &[],
        };
        let texts = said.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
        texts.collect::<Vec<_>>().join("\n\n")
    }
}

/// The name of a question: an answer to another one, even one made to look alike, is never taken for its
/// answer.
pub(super) fn key_of(kind: &str, what: &str) -> String {
    let hash = Sha256::digest(what.as_bytes());
    let hash: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}-{hash}")
}
