//! One connection to a server: messages out and in.
//!
//! Nothing here grows with what a server sends: lines are bounded, answers to no open request are dropped,
//! and so are replies to a server's own requests when it does not read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, watch};
use toolwright_core::{CancelToken, text};

use super::calls::PendingCalls;
use super::connection_end::Ending;
use super::questions::Questions;
use super::requests::{Ask, Requests};
use crate::client::ClientOptions;
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{self, Id, RpcMessage};
use crate::protocol::{
    CancelledParams, ClientNotification, ClientRequest, LogLevel, LogMessageParams, Method, ProgressToken,
    RequestMeta, ServerNotification,
};
use crate::transport::http::{Link, Outgoing};
use crate::transport::lines::{LineRead, LineReader};

/// How many lines that are not messages a server may write in a row. Some print a banner.
const MAX_JUNK: u32 = 1000;

/// Receives the progress of a call: done, total, message.
pub type OnProgress = Arc<dyn Fn(f64, Option<f64>, Option<String>) + Send + Sync>;

/// Called when the tools changed, once until they are listed again.
pub(crate) type OnToolsChanged = Arc<dyn Fn() + Send + Sync>;

/// Receives what a server writes for people: lines of its stderr, log messages, and lines that are not
/// messages.
pub type OnLog = Arc<dyn Fn(&str) + Send + Sync>;

/// One connection to a server.
pub(crate) struct ServerConnection {
    out: Out,
    pub(super) requests: Requests,
    ending: Ending,
    pub(super) questions: Questions,
    pub(super) calls: PendingCalls,
    tools_changed: AtomicBool,
    on_tools_changed: Option<OnToolsChanged>,
    on_log: Option<OnLog>,
}

/// How messages reach the server.
pub(crate) enum Out {
    Lines(mpsc::Sender<Vec<u8>>),
    Http(Arc<Link>),
}

/// The parameters of a request as they are sent.
#[derive(Serialize)]
struct Params<'p> {
    #[serde(flatten)]
    request: &'p ClientRequest,
    #[serde(rename = "_meta", skip_serializing_if = "RequestMeta::is_empty")]
    meta: &'p RequestMeta,
}

/// A listener for progress that also says that there was some.
fn beating(progress: Option<OnProgress>) -> (Option<OnProgress>, Option<watch::Receiver<()>>) {
    let Some(progress) = progress else { return (None, None) };
    let (sender, beats) = watch::channel(());
    let listener: OnProgress = Arc::new(move |done, total, message| {
        sender.send_replace(());
        progress(done, total, message);
    });
    (Some(listener), Some(beats))
}

/// Ends with the next progress; never, when there is none to come.
async fn beat(beats: &mut Option<watch::Receiver<()>>) {
    if let Some(beats) = beats
        && beats.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Waits until the value is such. Its sender lives as long as the connection does.
async fn until<T>(value: &mut watch::Receiver<T>, is_so: impl FnMut(&T) -> bool) {
    let _ = value.wait_for(is_so).await;
}

impl ServerConnection {
    pub(crate) fn new(out: Out, options: &ClientOptions) -> Self {
        ServerConnection {
            out,
            requests: Requests::new(),
            ending: Ending::default(),
            questions: Questions::new(options.answers.clone(), options.name.clone()),
            calls: PendingCalls::default(),
            tools_changed: AtomicBool::new(false),
            on_tools_changed: options.on_tools_changed.clone(),
            on_log: options.on_log.clone(),
        }
    }

    /// Sends a request and waits for its answer. When the future is dropped or time runs out, the server is
    /// told to stop.
    pub(crate) async fn request(self: &Arc<Self>, ask: Ask<'_>) -> Result<Value, McpError> {
        let Ask { request, mut meta, timeout, progress, headers, whose } = ask;
        if let Some(reason) = self.ending.reason() {
            return Err(reason);
        }
        let (id, method) = (self.requests.next_id(), request.method());
        if method == Method::CallTool {
            self.questions.call_begins();
        }
        if progress.is_some() {
            meta.progress_token = Some(ProgressToken::Number(id.into()));
        }
        let (progress, mut beats) = beating(progress);
        let answer = self.requests.add(id, whose, progress);
        let mut waiting = Waiting { connection: self, id, method, sent: false, done: false };
        let message = jsonrpc::request(&Id::Number(id), method.as_str(), &Params { request, meta: &meta });
        if message.len() > jsonrpc::MAX_MESSAGE_BYTES {
            let most = jsonrpc::MAX_MESSAGE_BYTES;
            return Err(McpError::new(
                McpErrorKind::Limit,
                format!("the request is larger than {most} bytes"),
            ));
        }
        let exchange = async {
            match &self.out {
                // A server that does not read its input fills the pipe; the timeout covers that too.
                Out::Lines(lines) => {
                    if lines.send(message).await.is_err() {
                        return Err(self.why_closed());
                    }
                }
                Out::Http(link) => {
                    let (method, name) = (method.as_str().to_owned(), request.name().map(str::to_owned));
                    link.send(self, Outgoing { message, id: Some(id), method, name, headers });
                }
            }
            waiting.sent = true;
            tokio::select! {
                biased;
                answer = answer => answer.unwrap_or_else(|_| Err(self.why_closed())),
                () = self.closed().cancelled() => Err(self.why_closed()),
            }
        };
        let answer = {
            let mut exchange = std::pin::pin!(exchange);
            loop {
                tokio::select! {
                    biased;
                    answer = exchange.as_mut() => break Some(answer),
                    // A server that reports progress is at work: its time begins anew.
                    () = beat(&mut beats) => {}
                    () = self.run_out(timeout) => break None,
                }
            }
        };
        match answer {
            Some(answer) => {
                waiting.done = true;
                answer
            }
            None => Err(McpError::new(
                McpErrorKind::Timeout,
                format!("the server did not answer `{}` within {timeout:?}", method.as_str()),
            )),
        }
    }

    /// Ends after this long. Time in which a person answers the server, or whether it may be used, does not
    /// count.
    pub(crate) async fn run_out(&self, mut left: Duration) {
        let mut people = self.questions.people();
        let mut asking = self.link().and_then(|link| link.asking());
        loop {
            let start = tokio::time::Instant::now();
            let asked = async {
                tokio::select! {
                    () = until(&mut people, |people| *people > 0) => {}
                    () = async {
                        match &mut asking {
                            Some(asking) => until(asking, |asking| *asking).await,
                            None => std::future::pending().await,
                        }
                    } => {}
                }
            };
            if tokio::time::timeout(left, asked).await.is_err() {
                return;
            }
            left = left.saturating_sub(start.elapsed());
            until(&mut people, |people| *people == 0).await;
            if let Some(asking) = &mut asking {
                until(asking, |asking| !*asking).await;
            }
        }
    }

    /// Sends a notification, unless the server does not read: then it is dropped.
    pub(crate) fn notify(self: &Arc<Self>, notification: &ClientNotification) {
        let method = notification.method();
        self.try_send(method, jsonrpc::notification(method, notification));
    }

    pub(super) fn try_send(self: &Arc<Self>, method: &str, message: Vec<u8>) {
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

    /// True while the request with that id waits for its answer.
    pub(crate) fn waits_for(&self, id: i64) -> bool {
        self.requests.contains(id)
    }

    pub(crate) fn closed_reason(&self) -> Option<McpError> {
        self.ending.reason()
    }

    /// Sets the reason why the connection is about to be closed: no request is made over it any more.
    pub(crate) fn doom(&self, reason: McpError) {
        self.ending.doom(reason);
    }

    /// Closes the connection; the first reason counts.
    pub(crate) fn close(&self, reason: McpError) {
        self.doom(reason);
        self.ending.closed.cancel();
        self.give_up();
    }

    /// Gives up all requests. Their listeners may be the last owners of a run, and so of this session: they
    /// are dropped while no lock is held.
    fn give_up(&self) {
        let waiting = self.requests.take_all();
        drop(waiting);
    }

    /// Ends the session because it is no longer needed.
    pub(crate) fn end(&self) {
        self.ending.end_politely();
        self.give_up();
        if let Some(link) = self.link() {
            link.end();
        }
    }

    pub(crate) fn ended_politely(&self) -> bool {
        self.ending.is_polite()
    }

    pub(crate) fn closed(&self) -> &CancelToken {
        &self.ending.closed
    }

    pub(crate) fn why_closed(&self) -> McpError {
        self.ending.reason().unwrap_or_else(|| McpError::new(McpErrorKind::Closed, "connection closed"))
    }

    /// Records that the server sent something, whatever it was.
    pub(crate) fn note_life(&self) {
        self.ending.note_life();
    }

    /// How often the server has sent something.
    pub(crate) fn heard(&self) -> u64 {
        self.ending.heard()
    }

    pub(crate) fn log(&self, text: &str) {
        if let Some(on_log) = &self.on_log {
            on_log(text);
        }
    }

    /// Reads what the server sends until it ends or breaks a bound. Returns why.
    pub(crate) async fn read_all(self: &Arc<Self>, input: impl AsyncRead + Unpin) -> McpError {
        let mut lines = LineReader::new(input, jsonrpc::MAX_MESSAGE_BYTES);
        let mut junk = 0;
        loop {
            let line = match lines.next().await {
                Ok(LineRead::Whole(line)) => line,
                Ok(LineRead::TooLong) => {
                    let most = jsonrpc::MAX_MESSAGE_BYTES;
                    let message =
                        format!("connection closed: the server sent a line of more than {most} bytes");
                    return McpError::new(McpErrorKind::Limit, message);
                }
                Ok(LineRead::End) | Err(_) => {
                    return McpError::new(McpErrorKind::Closed, "connection closed");
                }
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
                        self.requests.answer(id, Err(McpError::new(McpErrorKind::Protocol, message)));
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

    /// Handles a message. `of` is the request it was sent beside, where the transport shows that.
    pub(crate) fn take(self: &Arc<Self>, message: RpcMessage, of: Option<i64>) {
        self.note_life();
        match message {
            RpcMessage::Response { id: Id::Number(id), outcome } => {
                self.requests.answer(id, outcome.map_err(|error| McpError::refused(&error)));
            }
            // All our ids are numbers, so this answers nothing.
            RpcMessage::Response { .. } => {}
            RpcMessage::Request { id, method, params } => {
                let whose = of.and_then(|of| self.requests.whose(of));
                self.asked(id, method, params, whose);
            }
            RpcMessage::Notification { method, params } => match ServerNotification::read(&method, params) {
                Some(ServerNotification::Progress(params)) => self.requests.progress(params),
                Some(ServerNotification::ToolsChanged(_)) => self.tools_may_differ(),
                Some(ServerNotification::LogMessage(params)) => self.log_message(params),
                Some(ServerNotification::Cancelled(params)) => self.questions.cancelled(&params.request_id),
                // Resources and prompts are requested anew each time.
                _ => {}
            },
        }
    }

    /// Delivers the outcome of a request.
    pub(crate) fn answer(&self, id: i64, outcome: Result<Value, McpError>) {
        self.requests.answer(id, outcome);
    }

    /// Records that the tools are to be listed again.
    pub(crate) fn tools_may_differ(&self) {
        let known = self.tools_changed.swap(true, Ordering::AcqRel);
        self.on_tools_changed.iter().filter(|_| !known).for_each(|on_changed| on_changed());
    }

    /// Whether the tools are to be listed again.
    pub(super) fn tools_changed(&self) -> bool {
        self.tools_changed.load(Ordering::Acquire)
    }

    /// Sets whether the tools are to be listed again, and returns whether they were.
    pub(super) fn set_tools_changed(&self, changed: bool) -> bool {
        self.tools_changed.swap(changed, Ordering::AcqRel)
    }

    /// Passes a log message of the server on.
    fn log_message(&self, params: LogMessageParams) {
        let data = match params.data {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        let data = text::clip(&data, 4096);
        self.log(&data);
        if let Some(Some(caller)) = self.calls.caller() {
            caller.log(params.level.unwrap_or(LogLevel::Info), data.into());
        }
    }
}

/// A request that waits. However the waiting ends, it is removed, and a request that is given up is cancelled
/// at the server.
struct Waiting<'a> {
    connection: &'a Arc<ServerConnection>,
    id: i64,
    method: Method,
    sent: bool,
    done: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let gone = self.connection.requests.remove(self.id);
        drop(gone);
        if let Some(link) = self.connection.link()
            && link.is_stateless()
        {
            // A request without a session is cancelled by closing its connection.
            link.abort(self.id);
            return;
        }
        // The protocol forbids cancelling `initialize`.
        if self.sent && self.method != Method::Initialize {
            let reason = Some("nobody waits for the answer any more".to_owned());
            let params = CancelledParams { request_id: Id::Number(self.id), reason };
            self.connection.notify(&ClientNotification::Cancelled(params));
        }
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
