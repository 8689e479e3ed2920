//! One connection to a server: requests that wait for their answers, and everything a server sends unasked.
//!
//! Nothing here grows with what a server sends: lines are bounded, answers to nobody are dropped, and replies to a
//! server's own requests are dropped when it does not read them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot};
use toolwright_core::{CancelToken, ToolContext, text};

use crate::client::ClientOptions;
use crate::client::answers::Answers;
use crate::client::caller::{Caller, PutOff, unanswered};
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{self, BUSY, Id, Message, RpcError};
use crate::server::LogLevel;
use crate::transport::http::{Link, Outgoing};
use crate::transport::lines::{Line, LineReader};

/// How many lines that are no messages a server may write in a row. Some print a banner.
const MAX_JUNK: u32 = 1000;

/// How many questions of a server are answered at once.
const MAX_QUESTIONS: usize = 8;

/// How many questions a server may ask for each call that is made of it. People and models are not to be kept busy.
const MAX_QUESTIONS_A_CALL: usize = 100;

/// How many progress notifications of one call are passed on.
const MAX_PROGRESS: u32 = 1000;

/// Is told how far a call has come: done, total, message.
pub type OnProgress = Arc<dyn Fn(f64, Option<f64>, Option<String>) + Send + Sync>;

/// Is told that the tools changed, once until they are listed again.
pub(crate) type OnToolsChanged = Arc<dyn Fn() + Send + Sync>;

/// Is told what a server writes for people: lines of its stderr, log messages, and lines that are no messages.
pub type OnLog = Arc<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Connection {
    pending: Mutex<HashMap<i64, Pending>>,
    next_id: AtomicI64,
    out: Out,
    /// Fires once the connection is closed, after the reason was set.
    closed: CancelToken,
    reason: OnceLock<McpError>,
    /// True when we ended the session ourselves, and not because the server broke a rule or went silent.
    polite: AtomicBool,
    /// Counts messages, so that silence can be noticed.
    heard: AtomicU64,
    pub(crate) tools_changed: AtomicBool,
    on_tools_changed: Option<OnToolsChanged>,
    pub(crate) on_log: Option<OnLog>,
    answers: Answers,
    /// What the program calls the server.
    name: String,
    questions: AtomicUsize,
    /// The questions that are being answered; the server may take one back.
    answering: Mutex<Vec<(Id, CancelToken)>>,
    /// Questions since the last call.
    asked: AtomicUsize,
    /// The calls under way, which pay for what the server asks a model; the latest is the last.
    payers: Mutex<BTreeMap<u64, ToolContext>>,
    /// The calls under way, each with the client it is for, when questions are passed on.
    callers: Mutex<Vec<(i64, Option<Arc<Caller>>)>>,
    next_caller: AtomicI64,
}

/// From [`Client::paid_by`](crate::Client::paid_by): a call pays for what a server asks a model for as long as this lives.
pub struct Paying {
    connection: Arc<Connection>,
    number: u64,
}

impl Drop for Paying {
    fn drop(&mut self) {
        // The guard is gone before the context is, which may be the last that holds a run.
        let gone = self.connection.payers().remove(&self.number);
        drop(gone);
    }
}

/// How messages reach the server.
pub(crate) enum Out {
    Lines(mpsc::Sender<Vec<u8>>),
    Http(Arc<Link>),
}

/// Whose request it is: what the server asks while it works on it is answered for them.
#[derive(Clone, Default)]
pub(crate) struct Whose {
    /// The client of ours that made the call, where questions are passed on.
    pub(crate) caller: Option<Arc<Caller>>,
    /// The call that pays for what the server asks a model.
    pub(crate) payer: Option<ToolContext>,
}

/// A request to be made.
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Value,
    pub(crate) timeout: Duration,
    pub(crate) progress: Option<OnProgress>,
    /// Headers for arguments, over HTTP.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) whose: Whose,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(method: &'a str, params: Value, timeout: Duration) -> Self {
        Ask { method, params, timeout, progress: None, headers: Vec::new(), whose: Whose::default() }
    }
}

struct Pending {
    reply: oneshot::Sender<Result<Value, McpError>>,
    whose: Whose,
    progress: Option<OnProgress>,
    notes: u32,
    last: f64,
}

impl Connection {
    pub(crate) fn new(out: Out, options: &ClientOptions) -> Self {
        Connection {
            pending: Mutex::default(),
            next_id: AtomicI64::new(1),
            out,
            closed: CancelToken::new(),
            reason: OnceLock::new(),
            polite: AtomicBool::new(false),
            heard: AtomicU64::new(0),
            tools_changed: AtomicBool::new(false),
            on_tools_changed: options.on_tools_changed.clone(),
            on_log: options.on_log.clone(),
            answers: options.answers.clone(),
            name: options.name.clone(),
            questions: AtomicUsize::new(0),
            answering: Mutex::default(),
            asked: AtomicUsize::new(0),
            payers: Mutex::default(),
            callers: Mutex::default(),
            next_caller: AtomicI64::new(1),
        }
    }

    /// Has this call pay for what the server asks a model meanwhile.
    pub(crate) fn paid_by(self: &Arc<Self>, context: &ToolContext) -> Paying {
        let mut payers = self.payers();
        let number = payers.keys().next_back().map_or(0, |last| last + 1);
        payers.insert(number, context.clone());
        Paying { connection: self.clone(), number }
    }

    /// Who pays when the server does not say for which call it asks: the latest.
    fn payer(&self) -> Option<ToolContext> {
        self.payers().values().next_back().cloned()
    }

    fn payers(&self) -> MutexGuard<'_, BTreeMap<u64, ToolContext>> {
        self.payers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and waits for its answer. Dropping the future, or running out of time, tells the server to stop.
    pub(crate) async fn request(self: &Arc<Self>, ask: Ask<'_>) -> Result<Value, McpError> {
        let Ask { method, mut params, timeout, progress, headers, whose } = ask;
        if let Some(reason) = self.reason.get() {
            return Err(reason.clone());
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        if method == "tools/call" {
            self.asked.store(0, Ordering::Relaxed);
        }
        if progress.is_some() {
            set_meta(&mut params, "progressToken", json!(id));
        }
        let (reply, answer) = oneshot::channel();
        let pending = Pending { reply, whose, progress, notes: 0, last: f64::NEG_INFINITY };
        self.pending().insert(id, pending);
        let mut waiting = Waiting { connection: self, id, method, sent: false, done: false };
        let name =
            ["name", "uri", "taskId"].iter().find_map(|key| params.get(key)?.as_str().map(str::to_owned));
        let message = jsonrpc::request(&Id::Number(id), method, params);
        if message.len() > jsonrpc::MAX_MESSAGE_BYTES {
            let most = jsonrpc::MAX_MESSAGE_BYTES;
            return Err(McpError::new(
                McpErrorKind::Limit,
                format!("the request is larger than {most} bytes"),
            ));
        }
        let exchange = async {
            match &self.out {
                // A server that does not read its input fills the pipe; the time-out covers that too.
                Out::Lines(lines) => {
                    if lines.send(message).await.is_err() {
                        return Err(self.why_closed());
                    }
                }
                Out::Http(link) => {
                    let method = method.to_owned();
                    link.send(self, Outgoing { message, id: Some(id), method, name, headers });
                }
            }
            waiting.sent = true;
            tokio::select! {
                biased;
                answer = answer => answer.unwrap_or_else(|_| Err(self.why_closed())),
                () = self.closed.cancelled() => Err(self.why_closed()),
            }
        };
        tokio::select! {
            biased;
            answer = exchange => {
                waiting.done = true;
                answer
            }
            () = self.run_out(timeout) => Err(McpError::new(
                McpErrorKind::Timeout,
                format!("the server did not answer `{method}` within {timeout:?}"),
            )),
        }
    }

    /// Ends after this long. The time in which a person is asked whether we may use the server does not count.
    pub(crate) async fn run_out(&self, mut left: Duration) {
        let Some(mut asking) = self.link().and_then(|link| link.asking()) else {
            return tokio::time::sleep(left).await;
        };
        loop {
            let start = tokio::time::Instant::now();
            if tokio::time::timeout(left, asking.wait_for(|asking| *asking)).await.is_err() {
                return;
            }
            left = left.saturating_sub(start.elapsed());
            // The sender lives as long as the connection does.
            let _ = asking.wait_for(|asking| !*asking).await;
        }
    }

    /// Sends a notification, unless the server does not read: then it is dropped.
    pub(crate) fn notify(self: &Arc<Self>, method: &str, params: Value) {
        self.try_send(method, jsonrpc::notification(method, params));
    }

    fn try_send(self: &Arc<Self>, method: &str, message: Vec<u8>) {
        match &self.out {
            Out::Lines(lines) => {
                let _ = lines.try_send(message);
            }
            Out::Http(link) => {
                let method = method.to_owned();
                link.send(self, Outgoing { message, id: None, method, name: None, headers: Vec::new() });
            }
        }
    }

    pub(crate) fn link(&self) -> Option<&Arc<Link>> {
        match &self.out {
            Out::Http(link) => Some(link),
            Out::Lines(_) => None,
        }
    }

    /// True while somebody waits for the answer with that id.
    pub(crate) fn waits_for(&self, id: i64) -> bool {
        self.pending().contains_key(&id)
    }

    pub(crate) fn closed_reason(&self) -> Option<McpError> {
        self.reason.get().cloned()
    }

    /// Says why the connection is about to be closed: nothing is asked over it any more.
    pub(crate) fn doom(&self, reason: McpError) {
        let _ = self.reason.set(reason);
    }

    /// Closes the connection; the first reason is the one that counts.
    pub(crate) fn close(&self, reason: McpError) {
        self.doom(reason);
        self.closed.cancel();
        self.give_up();
    }

    /// Forgets who waits. What they are told of progress with may be the last that holds a run, and so this session: it is
    /// dropped when nothing is locked.
    fn give_up(&self) {
        let waiting = std::mem::take(&mut *self.pending());
        drop(waiting);
    }

    /// Ends the session because it is no longer needed.
    pub(crate) fn end(&self) {
        if self
            .reason
            .set(McpError::new(McpErrorKind::Closed, "connection closed: it was ended here"))
            .is_ok()
        {
            self.polite.store(true, Ordering::Release);
        }
        self.closed.cancel();
        self.give_up();
        if let Some(link) = self.link() {
            link.end();
        }
    }

    pub(crate) fn ended_politely(&self) -> bool {
        self.polite.load(Ordering::Acquire)
    }

    pub(crate) fn closed(&self) -> &CancelToken {
        &self.closed
    }

    pub(crate) fn why_closed(&self) -> McpError {
        self.reason.get().cloned().unwrap_or_else(|| McpError::new(McpErrorKind::Closed, "connection closed"))
    }

    /// Notes that the server said something, whatever it was.
    pub(crate) fn note_life(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    pub(crate) fn log(&self, text: &str) {
        if let Some(on_log) = &self.on_log {
            on_log(text);
        }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<i64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what the server sends until it ends or breaks a bound. Returns why.
    pub(crate) async fn read_all(self: &Arc<Self>, input: impl AsyncRead + Unpin) -> McpError {
        let mut lines = LineReader::new(input, jsonrpc::MAX_MESSAGE_BYTES);
        let mut junk = 0;
        loop {
            let line = match lines.next().await {
                Ok(Line::Whole(line)) => line,
                Ok(Line::TooLong) => {
                    let most = jsonrpc::MAX_MESSAGE_BYTES;
                    let message =
                        format!("connection closed: the server sent a line of more than {most} bytes");
                    return McpError::new(McpErrorKind::Limit, message);
                }
                Ok(Line::End) | Err(_) => return McpError::new(McpErrorKind::Closed, "connection closed"),
            };
            if line.is_empty() {
                continue;
            }
            match jsonrpc::parse(line) {
                Ok(message) => {
                    junk = 0;
                    self.take(message, None);
                }
                Err(malformed) => {
                    self.note_life();
                    junk += 1;
                    let shown = String::from_utf8_lossy(line.get(..line.len().min(200)).unwrap_or(line));
                    self.log(&format!("not a message ({}): {shown}", malformed.problem));
                    if let Some(Id::Number(id)) = malformed.id {
                        let message = format!("the server's answer is not JSON-RPC: {}", malformed.problem);
                        self.answer(id, Err(McpError::new(McpErrorKind::Protocol, message)));
                    }
                    if junk > MAX_JUNK {
                        let message = "connection closed: the server writes lines that are not messages";
                        return McpError::new(McpErrorKind::Protocol, message);
                    }
                }
            }
            // A flood must leave the other tasks of this thread their turn.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Takes a message. `of` is the request it was sent beside, where the transport shows that.
    pub(crate) fn take(self: &Arc<Self>, message: Message, of: Option<i64>) {
        self.note_life();
        match message {
            Message::Response { id: Id::Number(id), outcome } => {
                self.answer(id, outcome.map_err(|error| McpError::refused(&error)));
            }
            // All our ids are numbers, so this answers nothing.
            Message::Response { .. } => {}
            Message::Request { id, method, params } => {
                let whose = of.and_then(|of| Some(self.pending().get(&of)?.whose.clone()));
                self.asked(id, method, params, whose);
            }
            Message::Notification { method, params } => match method.as_str() {
                "notifications/progress" => self.progress(&params),
                "notifications/tools/list_changed" => self.tools_may_differ(),
                "notifications/message" => self.said(&params),
                "notifications/cancelled" => self.taken_back(&params),
                _ => {}
            },
        }
    }

    /// Notes that the tools are to be listed again.
    pub(crate) fn tools_may_differ(&self) {
        let known = self.tools_changed.swap(true, Ordering::AcqRel);
        self.on_tools_changed.iter().filter(|_| !known).for_each(|told| told());
    }

    /// Something for people, from the server itself.
    fn said(&self, params: &Value) {
        let data = params.get("data").map(|data| match data {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let data = text::clip(&data.unwrap_or_default(), 4096);
        self.log(&data);
        let level = params.get("level").and_then(Value::as_str).and_then(LogLevel::from_word);
        if let Some(Some(caller)) = self.caller() {
            caller.log(level.unwrap_or(LogLevel::Info), data.into());
        }
    }

    /// Notes that a call is under way, and for which client, until the guard is gone.
    pub(crate) fn calling(self: &Arc<Self>, caller: Option<Arc<Caller>>) -> Calling {
        let number = self.next_caller.fetch_add(1, Ordering::Relaxed);
        self.callers().push((number, caller.clone()));
        Calling { connection: self.clone(), number, caller }
    }

    fn callers(&self) -> MutexGuard<'_, Vec<(i64, Option<Arc<Caller>>)>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose call the server works on: `None` when that cannot be told, `Some(None)` when it is no client's.
    fn caller(&self) -> Option<Option<Arc<Caller>>> {
        let callers = self.callers();
        let Some((_, last)) = callers.last() else { return Some(None) };
        let same = |other: &Option<Arc<Caller>>| match (last, other) {
            (Some(last), Some(other)) => last.same_client(other),
            (None, None) => true,
            _ => false,
        };
        callers.iter().all(|(_, other)| same(other)).then(|| last.clone())
    }

    /// Answers a question; without `whose`, one that came without saying which call it is for.
    async fn answer_somebody(
        &self,
        method: &str,
        params: &Value,
        whose: Option<Whose>,
    ) -> Result<Value, RpcError> {
        let (caller, payer) = match whose {
            Some(Whose { caller, payer }) => (Some(caller), payer.or_else(|| self.payer())),
            None => (self.caller(), self.payer()),
        };
        match caller {
            Some(Some(caller)) if self.passes_on(method) => caller.ask(method, params).await,
            Some(_) => self.answers.answer(&self.name, method, params, payer).await,
            None => {
                self.log(&format!("`{method}` was asked during calls of several clients: nobody was asked"));
                unanswered(method, "decline")
            }
        }
    }

    /// Whether the client that made a call answers this.
    fn passes_on(&self, method: &str) -> bool {
        let given = method == "sampling/createMessage" && self.answers.sampling.is_some();
        self.answers.passed_on && !given && method != "roots/list"
    }

    /// Answers a question of the server; what takes time goes on by itself.
    fn asked(self: &Arc<Self>, id: Id, method: String, params: Value, whose: Option<Whose>) {
        if method == "ping" {
            self.try_send("", jsonrpc::response(Some(&id), Ok(json!({}))));
            return;
        }
        let too_many = self.asked.fetch_add(1, Ordering::Relaxed) >= MAX_QUESTIONS_A_CALL;
        if self.questions.fetch_add(1, Ordering::AcqRel) >= MAX_QUESTIONS || too_many {
            self.questions.fetch_sub(1, Ordering::AcqRel);
            let error = RpcError::new(BUSY, "one thing at a time, and not without end");
            self.try_send("", jsonrpc::response(Some(&id), Err(error)));
            return;
        }
        let (connection, taken_back) = (self.clone(), CancelToken::new());
        self.answering().push((id.clone(), taken_back.clone()));
        tokio::spawn(async move {
            let outcome = tokio::select! {
                outcome = connection.answer_somebody(&method, &params, whose) => Some(outcome),
                () = connection.closed.cancelled() => None,
                // What is taken back gets no answer, says the protocol.
                () = taken_back.cancelled() => None,
            };
            {
                let mut answering = connection.answering();
                let at = answering.iter().position(|(other, _)| *other == id);
                at.map(|at| answering.swap_remove(at));
            }
            connection.questions.fetch_sub(1, Ordering::AcqRel);
            if let Some(outcome) = outcome {
                connection.try_send("", jsonrpc::response(Some(&id), outcome));
            }
        });
    }

    fn answering(&self) -> MutexGuard<'_, Vec<(Id, CancelToken)>> {
        self.answering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops answering a question that the server has taken back: a model is not asked for nothing.
    fn taken_back(&self, params: &Value) {
        let id = params.get("requestId").and_then(|id| serde_json::from_value::<Id>(id.clone()).ok());
        let asked = self.answering().clone();
        asked.iter().filter(|(other, _)| Some(other) == id.as_ref()).for_each(|(_, token)| token.cancel());
    }

    /// Answers what a server asks in place of a result, all of it at once.
    pub(crate) async fn answer_all(
        &self,
        whose: &Whose,
        questions: &[(&str, &Value)],
    ) -> Result<Vec<Result<Value, RpcError>>, PutOff> {
        let caller = whose.caller.as_ref();
        let passed_on = |method: &str| caller.is_some() && self.passes_on(method);
        let mut asked: std::vec::IntoIter<_> = match caller {
            Some(caller) => {
                let theirs = questions.iter().filter(|(method, _)| passed_on(method)).copied().collect();
                caller.ask_all(theirs).await?.into_iter()
            }
            None => Vec::new().into_iter(),
        };
        let mut answers = Vec::new();
        for (method, params) in questions {
            let answer = if passed_on(method) { asked.next() } else { None };
            answers.push(match answer {
                Some(answer) => answer,
                None => {
                    let payer = whose.payer.clone().or_else(|| self.payer());
                    self.answers.answer(&self.name, method, params, payer).await
                }
            });
        }
        Ok(answers)
    }

    /// What a server may ask, during this client's call or any.
    pub(crate) fn capabilities(&self, caller: Option<&Arc<Caller>>) -> Value {
        let Some(caller) = caller else { return self.answers.capabilities() };
        let mut can = caller.capabilities();
        let own = Answers { passed_on: false, person: None, ..self.answers.clone() }.capabilities();
        can.extend(own.as_object().cloned().unwrap_or_default());
        can.into()
    }

    /// Whether calls are noted with the clients they are for.
    pub(crate) fn notes_callers(&self) -> bool {
        self.answers.passed_on
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Hands an answer to who waits for it. An answer to nobody, or a second one, is dropped.
    pub(crate) fn answer(&self, id: i64, outcome: Result<Value, McpError>) {
        // Not in one line: the lock is free before what waited is dropped.
        let waiting = self.pending().remove(&id);
        if let Some(Pending { reply, .. }) = waiting {
            let _ = reply.send(outcome);
        }
    }

    fn progress(&self, params: &Value) {
        let Some(id) = params.get("progressToken").and_then(Value::as_i64) else { return };
        let Some(done) = params.get("progress").and_then(Value::as_f64) else { return };
        let on_progress = {
            let mut pending = self.pending();
            let Some(call) = pending.get_mut(&id) else { return };
            // Progress only grows; anything else is noise, and so is more of it than anybody can read.
            if done <= call.last || call.notes >= MAX_PROGRESS {
                return;
            }
            call.last = done;
            call.notes += 1;
            call.progress.clone()
        };
        if let Some(on_progress) = on_progress {
            let message = params.get("message").and_then(Value::as_str).map(|text| text::clip(text, 1000));
            on_progress(done, params.get("total").and_then(Value::as_f64), message);
        }
    }
}

/// Sets one entry of a request's `_meta`.
pub(crate) fn set_meta(params: &mut Value, key: &str, value: Value) {
    if params.is_null() {
        *params = json!({});
    }
    if let Value::Object(members) = params
        && let Value::Object(meta) = members.entry("_meta").or_insert_with(|| json!({}))
    {
        meta.insert(key.to_owned(), value);
    }
}

/// A call under way.
pub(crate) struct Calling {
    connection: Arc<Connection>,
    number: i64,
    pub(crate) caller: Option<Arc<Caller>>,
}

impl Drop for Calling {
    fn drop(&mut self) {
        self.connection.callers().retain(|(number, _)| *number != self.number);
        if let Some(caller) = &self.caller {
            caller.over.cancel();
        }
    }
}

/// A request that waits. However the waiting ends, nothing of it stays, and the server is told when nobody waits any
/// more.
struct Waiting<'a> {
    connection: &'a Arc<Connection>,
    id: i64,
    method: &'a str,
    sent: bool,
    done: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let gone = self.connection.pending().remove(&self.id);
        drop(gone);
        if let Some(link) = self.connection.link()
            && link.is_stateless()
        {
            // Hanging up is how a request without a session is cancelled.
            link.abort(self.id);
            return;
        }
        // The protocol forbids cancelling `initialize`.
        if self.sent && self.method != "initialize" {
            let params = json!({"requestId": self.id, "reason": "nobody waits for the answer any more"});
            self.connection.notify("notifications/cancelled", params);
        }
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
