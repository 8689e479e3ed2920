//! The client, as a tool, a prompt or an approver sees it: it can be asked things and told things.
//!
//! How a question travels depends on the revision. With a session it is a request to the client. Without one, the
//! call ends with "input required", and is made again with the answer: what stands before a question runs again, so it
//! should change nothing. In a task, the question waits until the client looks at the task.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolwright_core::schema::Schema;
use toolwright_core::{
    CancelToken, ErrorKind, Origin, ProgressListener, Requester, ToolContext, ToolError, canonical_json, text,
};

use super::Request;
use super::rounds::{Rounds, StateKey};
use super::tasks::Task;
use crate::jsonrpc::{self, MISSING_CAPABILITY, RpcError};

/// The client a call comes from. Cloning is cheap.
#[derive(Clone)]
pub struct Peer {
    inner: Arc<PeerInner>,
}

struct PeerInner {
    request: Request,
    rounds: Mutex<Asking>,
}

struct Asking {
    rounds: Rounds,
    /// Set once the call goes on as a task.
    task: Option<Arc<Task>>,
    /// What the client must answer before the call can be made again.
    open: Vec<(String, Question)>,
    /// What the request is answered with in place of a result.
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

    pub(super) fn new(request: Request, rounds: Rounds) -> Self {
        let rounds = Mutex::new(Asking { rounds, task: None, open: Vec::new(), refusal: None });
        Peer { inner: Arc::new(PeerInner { request, rounds }) }
    }

    /// Where a call of the client comes from: this is how its tools and approvers find the client. `stop` ends it.
    pub(super) fn origin(&self, stop: Option<CancelToken>, listener: Option<ProgressListener>) -> Origin {
        Origin { listener, stop, requester: Requester::new(self.clone()) }
    }

    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.inner.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn request(&self) -> &Request {
        &self.inner.request
    }

    /// True when the client says it can answer such a question.
    pub fn can_answer(&self, question: &Question) -> bool {
        match question.capability {
            "elicitation" if question.is_page() => self.can_open_pages(),
            "elicitation" => self.can_fill_in(),
            capability => self.can_be_asked() && self.inner.request.client_can(capability),
        }
    }

    /// False when a question would not reach the client. Without a session it is part of the answer, which does.
    fn can_be_asked(&self) -> bool {
        self.inner.request.session.is_none() || self.inner.request.outlet.takes_questions()
    }

    /// True when a person can be asked to fill in a form. A client that names no way of asking has this one.
    pub(crate) fn can_fill_in(&self) -> bool {
        let ways = self.inner.request.capabilities.get("elicitation").and_then(Value::as_object);
        self.can_be_asked() && ways.is_some_and(|ways| ways.contains_key("form") || !ways.contains_key("url"))
    }

    /// True when a person can be asked to open a page.
    pub(crate) fn can_open_pages(&self) -> bool {
        let pages = self.inner.request.capabilities.pointer("/elicitation/url");
        self.can_be_asked() && pages.is_some_and(Value::is_object)
    }

    pub(crate) fn can_sample(&self) -> bool {
        self.can_be_asked() && self.inner.request.client_can("sampling")
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
        self.asking().rounds.resumed
    }

    /// Asks the client. The key names the question; it is the same each time the call is made.
    pub async fn ask(&self, key: &str, question: Question) -> Result<Reply, ToolError> {
        let replies = self.ask_all(vec![(key.to_owned(), question)]).await?;
        replies.into_iter().next().ok_or_else(|| ToolError::new("there is no answer"))
    }

    /// Asks several things at once. The answers come in the order of the questions.
    pub async fn ask_all(&self, questions: Vec<(String, Question)>) -> Result<Vec<Reply>, ToolError> {
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

    async fn ask_in_session(&self, question: Question) -> Result<Reply, ToolError> {
        let request = &self.inner.request;
        let Some(session) = &request.session else { return Err(self.cannot(&question)) };
        let answer = session.ask(&request.outlet, question.method, question.params.clone()).await;
        let answer = answer.map_err(|why| ToolError::of(ErrorKind::Cancelled, why))?;
        let answer = answer.map_err(|error| {
            ToolError::new(format!("the client refused to answer: {}", text::clip(&error.message, 1000)))
        })?;
        if !question.fits(&answer) {
            return Err(ToolError::new("the client's answer is not what was asked for"));
        }
        Ok(Reply(answer))
    }

    /// Gives what was answered already, or notes what must be.
    fn ask_in_rounds(&self, questions: Vec<(String, Question)>) -> Result<Vec<Reply>, ToolError> {
        let mut asking = self.asking();
        let mut replies = Vec::new();
        let mut missing = Vec::new();
        for (key, question) in questions {
            match asking.rounds.answers.get(&key) {
                Some(answer) if question.fits(answer) => replies.push(Reply(answer.clone())),
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

    /// Says that the client cannot do what the call needs.
    fn cannot(&self, question: &Question) -> ToolError {
        if !self.can_be_asked() {
            return ToolError::new("the client cannot be asked: it takes no `text/event-stream`");
        }
        let message = format!("the client does not offer `{}`", question.capability);
        if self.inner.request.era.is_stateless() {
            let mut error = RpcError::new(MISSING_CAPABILITY, message.clone());
            error.data = Some(json!({"requiredCapabilities": {question.capability: {}}}));
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

    /// Tells the client something for its log. It is only sent to clients that want messages of that level.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        self.log_as("toolwright", level, data.into());
    }

    /// The same in another's name.
    pub(crate) fn log_as(&self, logger: &str, level: LogLevel, data: Value) {
        let request = &self.inner.request;
        let least = match &request.session {
            Some(session) => Some(session.log_level()),
            None => request.log_level,
        };
        if least.is_some_and(|least| level >= least) {
            let params = json!({"level": level.as_str(), "logger": logger, "data": data});
            request.outlet.try_send(jsonrpc::notification("notifications/message", params));
        }
    }

    /// Closes the stream the answer would come on. The call goes on, and a client over HTTP comes back for the answer.
    pub fn hang_up(&self) {
        self.inner.request.outlet.hang_up.cancel();
    }

    pub(super) fn goes_on_as(&self, task: Arc<Task>) {
        self.asking().task = Some(task);
    }

    /// What the request is answered with in place of the result, when something is missing.
    pub(super) fn instead(
        &self,
        key: &StateKey,
        what: (&str, &str, &Value),
    ) -> Option<Result<Value, RpcError>> {
        let mut asking = self.asking();
        if let Some(refusal) = asking.refusal.take() {
            return Some(Err(refusal));
        }
        if asking.open.is_empty() {
            return None;
        }
        asking.rounds.bind(&self.inner.request, what);
        let requests: Map<String, Value> =
            std::mem::take(&mut asking.open).into_iter().map(|(key, asked)| (key, asked.to_wire())).collect();
        let mut answers = std::mem::take(&mut asking.rounds.answers);
        answers.retain(|key, _| !requests.contains_key(key));
        let state = asking.rounds.seal(key, answers);
        Some(Ok(json!({"resultType": "input_required", "inputRequests": requests, "requestState": state})))
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").field("version", &self.inner.request.era.version).finish_non_exhaustive()
    }
}

/// Something a client can be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    method: &'static str,
    capability: &'static str,
    params: Value,
}

impl Question {
    /// Asks the person for something. The schema is a flat object of plain values.
    pub fn elicit(message: impl Into<String>, schema: Value) -> Self {
        let params = json!({"message": message.into(), "requestedSchema": schema});
        Question { method: "elicitation/create", capability: "elicitation", params }
    }

    /// Asks the person to open a page. The id is the server's own name for this.
    pub(crate) fn open_page(message: String, url: String, id: &str) -> Self {
        let params = json!({"mode": "url", "message": message, "url": url, "elicitationId": id});
        Question { method: "elicitation/create", capability: "elicitation", params }
    }

    fn is_page(&self) -> bool {
        self.params.get("mode").is_some_and(|mode| mode == "url")
    }

    /// Asks the client's model what these parameters of the protocol say.
    pub(crate) fn sample_as(params: Map<String, Value>) -> Self {
        Question { method: "sampling/createMessage", capability: "sampling", params: params.into() }
    }

    /// Asks the client's model.
    pub fn sample(prompt: impl Into<String>, max_tokens: u32) -> Self {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt.into()}});
        let params = json!({"messages": [message], "maxTokens": max_tokens});
        Question { method: "sampling/createMessage", capability: "sampling", params }
    }

    /// Asks which folders the client works in.
    pub fn roots() -> Self {
        Question { method: "roots/list", capability: "roots", params: json!({}) }
    }

    /// A key for [`Peer::ask`] that tells what is asked: another question has another one.
    pub fn key(&self) -> String {
        let mut asked = self.to_wire();
        if let Some(Value::Object(params)) = asked.get_mut("params") {
            // It is new each time the same thing is asked.
            params.shift_remove("elicitationId");
        }
        key_of("ask", &canonical_json(&asked))
    }

    pub(super) fn to_wire(&self) -> Value {
        json!({"method": self.method, "params": self.params})
    }

    /// Whether this is an answer to the question.
    pub(super) fn fits(&self, answer: &Value) -> bool {
        match self.capability {
            "elicitation" => match answer.get("action").and_then(Value::as_str) {
                Some("decline" | "cancel") => true,
                Some("accept") if self.is_page() => true,
                Some("accept") => {
                    let content = answer.get("content").filter(|content| content.is_object());
                    let schema = self.params.get("requestedSchema").map(Schema::compile_any);
                    match (content, schema) {
                        (Some(content), Some(Ok(schema))) => schema.problems(content).is_empty(),
                        (content, _) => content.is_some(),
                    }
                }
                _ => false,
            },
            "sampling" => answer.get("content").is_some_and(|said| said.is_object() || said.is_array()),
            _ => answer.get("roots").is_some_and(Value::is_array),
        }
    }
}

/// What a client answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply(pub(super) Value);

impl Reply {
    /// The answer as it came.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// What the person filled in; `None` when they declined.
    pub fn accepted(&self) -> Option<&Map<String, Value>> {
        let accepted = self.0.get("action").and_then(Value::as_str) == Some("accept");
        self.0.get("content").and_then(Value::as_object).filter(|_| accepted)
    }

    /// What the model said.
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

/// How important a log message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For those who look for a fault.
    Debug,
    /// As expected.
    Info,
    /// As expected, and worth knowing.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something failed.
    Error,
    /// Something important failed.
    Critical,
    /// Somebody must act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    const ALL: [(LogLevel, &'static str); 8] = [
        (LogLevel::Debug, "debug"),
        (LogLevel::Info, "info"),
        (LogLevel::Notice, "notice"),
        (LogLevel::Warning, "warning"),
        (LogLevel::Error, "error"),
        (LogLevel::Critical, "critical"),
        (LogLevel::Alert, "alert"),
        (LogLevel::Emergency, "emergency"),
    ];

    /// The protocol's word for it.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(level, _)| *level == self).map_or("info", |(_, word)| word)
    }

    /// The level of that name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(level, _)| *level)
    }

    pub(super) fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).map_or(LogLevel::Info, |(level, _)| *level)
    }
}

/// The name of a question: an answer to another one, even one made to look alike, is never taken for its answer.
pub(super) fn key_of(kind: &str, what: &str) -> String {
    let hash = Sha256::digest(what.as_bytes());
    let hash: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}-{hash}")
}
