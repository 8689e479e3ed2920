//! The client: one session with one server.
//!
//! [`McpServer`](crate::McpServer) wraps it with supervision and offers its tools to a run; this is the plain session.

mod answers;
mod caller;
pub(crate) mod connection;
mod greeting;
mod listing;
mod supervise;
pub(crate) mod target;
mod tasks;

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use toolwright_core::{CancelToken, SpawnRequest, ToolContext, ToolError, ToolOutput};

pub use self::answers::{Answers, Sampling, ThroughApprover};
use self::caller::{Caller, PutOff};
pub(crate) use self::connection::OnToolsChanged;
use self::connection::{Ask, Connection, Out, Whose, set_meta};
pub use self::connection::{OnLog, OnProgress, Paying};
pub use self::greeting::Greeting;
use self::listing::Mirrored;
pub use self::listing::{Listing, MAX_TOOLS};
pub use self::supervise::servers_ended;
use self::supervise::{Reader, Watched, forward_errors, supervise, supervise_sandboxed};
pub use self::target::{HttpTarget, Target};
use self::tasks::Time;
use crate::bridge;
use crate::error::{McpError, McpErrorKind};
use crate::protocol::{
    CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, Implementation, STATELESS_VERSION, TASKS_EXTENSION, VERSION_KEY,
};
use crate::server::Peer;
use crate::transport::http::Link;
use crate::transport::lines::write_lines;
use crate::transport::stdio::ServerCommand;

/// How often a server may ask for more before it answers.
const MAX_ROUNDS: usize = 10;

/// How a session behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// What the client calls itself.
    pub client_info: Implementation,
    /// How long the greeting may take; starting a server may mean installing it.
    pub start_timeout: Duration,
    /// How long listing tools and the like may take, all pages together.
    pub request_timeout: Duration,
    /// How long a server may say nothing at all after a call timed out before it is ended.
    pub silence: Duration,
    /// Is told what the server writes for people.
    pub on_log: Option<OnLog>,
    /// Who answers what the server asks.
    pub answers: Answers,
    /// What the program calls the server, for messages.
    pub name: String,
    pub(crate) on_tools_changed: Option<OnToolsChanged>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            client_info: Implementation::ours(),
            start_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(30),
            silence: Duration::from_secs(5),
            on_log: None,
            answers: Answers::default(),
            name: "server".to_owned(),
            on_tools_changed: None,
        }
    }
}

impl std::fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientOptions")
            .field("start_timeout", &self.start_timeout)
            .field("request_timeout", &self.request_timeout)
            .finish_non_exhaustive()
    }
}

/// A session with a server. Dropping it ends the server and everything it started.
pub struct Client {
    connection: Arc<Connection>,
    options: ClientOptions,
    greeting: Greeting,
    pid: Option<u32>,
    /// Fires when nothing of the server is left; without a process it fires at once.
    gone: CancelToken,
    /// Which arguments are repeated in headers, by tool.
    mirrored: Mutex<Mirrored>,
    /// The tools that are run as tasks only.
    tasked: Mutex<HashSet<String>>,
}

impl Client {
    /// Begins a session with a server, wherever it is.
    pub async fn open(target: &Target, options: ClientOptions) -> Result<Client, McpError> {
        match target {
            Target::Command(command) => Client::start(command, options).await,
            Target::Http(target) => Client::dial(target, options).await,
            Target::Sandboxed { sandbox, command } => {
                let mut process =
                    sandbox.spawn(SpawnRequest::piped(command.clone())).await.map_err(|error| {
                        let message = format!("cannot start `{}` in the sandbox: {error}", target.to_text());
                        McpError::new(McpErrorKind::Start, message)
                    })?;
                let streams = (process.stdin.take(), process.stdout.take(), process.stderr.take());
                let (Some(input), Some(output), Some(errors)) = streams else {
                    return Err(McpError::new(
                        McpErrorKind::Start,
                        "the process in the sandbox has no pipes",
                    ));
                };
                let (connection, reader) = pipes(output, input, &options);
                tokio::spawn(forward_errors(connection.clone(), errors));
                let gone = CancelToken::new();
                tokio::spawn(supervise_sandboxed(
                    connection.clone(),
                    process.handle,
                    reader,
                    gone.clone(),
                    Watched::new(),
                ));
                Client::new(connection, options, None, gone).greeted().await
            }
        }
    }

    /// Starts a server process and greets it.
    pub async fn start(command: &ServerCommand, options: ClientOptions) -> Result<Client, McpError> {
        let mut process = command.spawn().map_err(|error| {
            McpError::new(McpErrorKind::Start, format!("cannot start `{}`: {error}", command.to_text()))
        })?;
        let streams = (process.child.stdin.take(), process.child.stdout.take(), process.child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = streams else {
            return Err(McpError::new(McpErrorKind::Start, "the server process has no pipes"));
        };
        let pid = process.child.id();
        let (connection, reader) = pipes(output, input, &options);
        tokio::spawn(forward_errors(connection.clone(), errors));
        let gone = CancelToken::new();
        tokio::spawn(supervise(connection.clone(), process, reader, gone.clone(), Watched::new()));
        Client::new(connection, options, pid, gone).greeted().await
    }

    /// Greets a server that has an address.
    pub async fn dial(target: &HttpTarget, options: ClientOptions) -> Result<Client, McpError> {
        let link = Arc::new(Link::new(target)?);
        let connection = Arc::new(Connection::new(Out::Http(link.clone()), &options));
        if link.is_legacy() {
            link.open_legacy(&connection, options.start_timeout).await?;
        }
        let gone = CancelToken::new();
        gone.cancel();
        Client::new(connection, options, None, gone).greeted().await
    }

    /// Greets a server at the other end of two streams.
    pub async fn connect(
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        options: ClientOptions,
    ) -> Result<Client, McpError> {
        let (connection, reader) = pipes(input, output, &options);
        let closing = connection.clone();
        tokio::spawn(async move {
            let why = reader.await;
            closing.close(why.unwrap_or_else(|_| McpError::new(McpErrorKind::Closed, "connection closed")));
        });
        let gone = CancelToken::new();
        gone.cancel();
        Client::new(connection, options, None, gone).greeted().await
    }

    fn new(connection: Arc<Connection>, options: ClientOptions, pid: Option<u32>, gone: CancelToken) -> Self {
        let (mirrored, tasked) = (Mutex::default(), Mutex::default());
        Client { connection, options, greeting: Greeting::default(), pid, gone, mirrored, tasked }
    }

    /// What the server said of itself.
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// The server's process, when there is one.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Why the session is over, once it is.
    pub fn closed(&self) -> Option<McpError> {
        self.connection.closed_reason()
    }

    /// True when the server said that its tools changed, and they were not listed since.
    pub fn tools_changed(&self) -> bool {
        self.connection.tools_changed.load(Ordering::Acquire)
    }

    /// Like [`tools_changed`](Self::tools_changed), and forgets it: true once after the server said so.
    pub fn take_tools_changed(&self) -> bool {
        self.connection.tools_changed.swap(false, Ordering::AcqRel)
    }

    /// Has this call pay for what the server asks a model, until what is returned is dropped: the answers count against
    /// the limits of its run, and stop with it. When several calls pay at once and the server does not say for which it asks, as
    /// over pipes with a session, the latest does. [`ToolContext::detached`] stands for a program that has no run.
    #[must_use = "the call pays only as long as this is kept"]
    pub fn paid_by(&self, context: &ToolContext) -> Paying {
        self.connection.paid_by(context)
    }

    /// Asks for a sign of life.
    pub async fn ping(&self) -> Result<(), McpError> {
        let method = if self.greeting.version == STATELESS_VERSION { "server/discover" } else { "ping" };
        self.request(Ask::new(method, json!({}), self.options.request_timeout)).await.map(drop)
    }

    /// Calls a tool. Running out of time, or dropping the future, tells the server to stop; a server that then says
    /// nothing at all is ended.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        timeout: Duration,
        progress: Option<OnProgress>,
    ) -> Result<ToolOutput, ToolError> {
        self.call_tool_for(None, name, arguments, timeout, progress).await
    }

    /// Calls a tool for a call of ours, which pays for what the server asks a model meanwhile; the client that made it is asked
    /// what the server asks, where that is wanted.
    pub(crate) async fn call_tool_for(
        &self,
        context: Option<&ToolContext>,
        name: &str,
        arguments: Value,
        timeout: Duration,
        progress: Option<OnProgress>,
    ) -> Result<ToolOutput, ToolError> {
        let _paying = context.map(|context| self.paid_by(context));
        let mut whose = Whose { caller: None, payer: context.cloned() };
        if !self.connection.notes_callers() {
            return self.call(&whose, name, arguments, timeout, progress).await;
        }
        let peer = context.and_then(Peer::of);
        whose.caller = peer.map(|peer| Caller::new(peer, self.connection.name(), name, &arguments));
        let calling = self.connection.calling(whose.caller.clone());
        let call = self.call(&whose, name, arguments, timeout, progress);
        let Some(caller) = &calling.caller else { return call.await };
        tokio::select! {
            biased;
            () = caller.put_off.cancelled() => Err(ToolError::new("the client is asked what the server asks")),
            output = call => output,
        }
    }

    async fn call(
        &self,
        whose: &Whose,
        name: &str,
        arguments: Value,
        timeout: Duration,
        progress: Option<OnProgress>,
    ) -> Result<ToolOutput, ToolError> {
        let headers = self.mirrored.lock().unwrap_or_else(PoisonError::into_inner).headers(name, &arguments);
        let params = json!({"name": name, "arguments": arguments});
        let mut abandoned = Abandoned { client: self, armed: true };
        let ask = Ask { progress, headers, ..Ask::new("tools/call", params, timeout) };
        let answer = match self.runs_as_task(name) {
            true => self.call_as_task(whose, ask).await,
            false => self.call_in_rounds(whose, ask).await,
        };
        abandoned.armed = matches!(&answer, Err(error) if error.kind() == McpErrorKind::Timeout);
        drop(abandoned);
        match answer {
            Ok(result) => bridge::read_result(result),
            Err(error) if error.kind() == McpErrorKind::Timeout => Err(ToolError::of(
                toolwright_core::ErrorKind::Timeout,
                format!("the tool `{name}` did not answer within {timeout:?} and was cancelled"),
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// Calls a tool, and waits for the task that a server may make of the call.
    async fn call_in_rounds(&self, whose: &Whose, ask: Ask<'_>) -> Result<Value, McpError> {
        let (time, progress) = (Time::new(ask.timeout), ask.progress.clone());
        let result = self.ask_in_rounds(whose, ask).await?;
        let is_task = result.get("resultType").and_then(Value::as_str) == Some("task");
        match is_task && self.greeting.version == STATELESS_VERSION {
            true => self.follow_task(whose, result, time, progress).await,
            false => Ok(result),
        }
    }

    /// Makes a request, and answers what the server asks before it gives a result.
    async fn ask_in_rounds(&self, whose: &Whose, ask: Ask<'_>) -> Result<Value, McpError> {
        let Ask { method, params, timeout, progress, headers, .. } = ask;
        let until = tokio::time::Instant::now().checked_add(timeout);
        let left =
            || until.map_or(timeout, |until| until.saturating_duration_since(tokio::time::Instant::now()));
        let mut more = Map::new();
        for _ in 0..MAX_ROUNDS {
            let mut params = params.clone();
            if let Value::Object(members) = &mut params {
                members.extend(std::mem::take(&mut more));
            }
            let (progress, headers) = (progress.clone(), headers.clone());
            let ask = Ask { progress, headers, ..Ask::new(method, params, left()) };
            let result = self.request_for(whose, ask).await?;
            if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(result);
            }
            let late = |_| {
                let problem = format!("what the server asked was not answered within {timeout:?}");
                McpError::new(McpErrorKind::Timeout, problem)
            };
            more =
                tokio::time::timeout(left(), self.answer_questions(whose, &result)).await.map_err(late)??;
        }
        Err(McpError::new(McpErrorKind::Limit, format!("the server asked for more in {MAX_ROUNDS} rounds")))
    }

    /// What the next round carries: an answer for each question, and the server's own state as it came.
    async fn answer_questions(&self, whose: &Whose, result: &Value) -> Result<Map<String, Value>, McpError> {
        let none = Map::new();
        let questions = result.get("inputRequests").and_then(Value::as_object).unwrap_or(&none);
        if questions.len() > 100 {
            return Err(McpError::new(McpErrorKind::Limit, "the server asks too many things at once"));
        }
        let asked: Vec<(&str, &Value)> = questions
            .values()
            .map(|question| {
                let method = question.get("method").and_then(Value::as_str).unwrap_or_default();
                (method, question.get("params").unwrap_or(&Value::Null))
            })
            .collect();
        let put_off = |PutOff| McpError::new(McpErrorKind::Cancelled, "the client answers first");
        let answered = self.connection.answer_all(whose, &asked).await.map_err(put_off)?;
        let mut answers = Map::new();
        for (key, answer) in questions.keys().zip(answered) {
            let answer = answer.map_err(|error| {
                let message = format!("what the server asks is not answered: {}", error.message);
                McpError::new(McpErrorKind::Refused, message)
            })?;
            answers.insert(key.clone(), answer);
        }
        let mut more = Map::from_iter([("inputResponses".to_owned(), answers.into())]);
        more.extend(result.get("requestState").map(|state| ("requestState".to_owned(), state.clone())));
        Ok(more)
    }

    /// Ends the session, and waits until nothing of the server is left. The server may end by itself for a moment.
    pub async fn close(&self) {
        self.connection.end();
        self.gone.cancelled().await;
    }

    async fn request(&self, ask: Ask<'_>) -> Result<Value, McpError> {
        self.request_for(&Whose::default(), ask).await
    }

    async fn request_for(&self, whose: &Whose, mut ask: Ask<'_>) -> Result<Value, McpError> {
        if self.greeting.version == STATELESS_VERSION {
            self.say_who(whose, &mut ask.params);
        }
        ask.whose = whose.clone();
        self.connection.request(ask).await
    }

    fn say_who(&self, whose: &Whose, params: &mut Value) {
        set_meta(params, VERSION_KEY, json!(STATELESS_VERSION));
        set_meta(params, CLIENT_INFO_KEY, json!(self.options.client_info));
        let mut can = self.connection.capabilities(whose.caller.as_ref());
        if let Value::Object(members) = &mut can {
            members.insert("extensions".to_owned(), json!({TASKS_EXTENSION: {}}));
        }
        set_meta(params, CLIENT_CAPABILITIES_KEY, can);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.end();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("greeting", &self.greeting)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// Ends a server that has gone silent, once a call of it was given up.
struct Abandoned<'a> {
    client: &'a Client,
    armed: bool,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if !self.armed || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (connection, silence) = (self.client.connection.clone(), self.client.options.silence);
        let heard = connection.heard();
        tokio::spawn(async move {
            // Any answer, an error too, is a sign of life.
            let _ = connection.request(Ask::new("ping", json!({}), silence)).await;
            if connection.heard() == heard {
                let message =
                    format!("connection closed: the server said nothing for {silence:?} and was ended");
                connection.close(McpError::new(McpErrorKind::Closed, message));
            }
        });
    }
}

fn pipes(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    options: &ClientOptions,
) -> (Arc<Connection>, Reader) {
    let (out, lines) = mpsc::channel(64);
    let connection = Arc::new(Connection::new(Out::Lines(out), options));
    let closed = connection.closed().clone();
    tokio::spawn(async move {
        // Ends, and so closes the server's input, when the session is over.
        tokio::select! {
            _ = write_lines(lines, output) => {}
            () = closed.cancelled() => {}
        }
    });
    let (reading, closed) = (connection.clone(), connection.closed().clone());
    let reader = tokio::spawn(async move {
        tokio::select! {
            why = reading.read_all(input) => why,
            () = closed.cancelled() => reading.why_closed(),
        }
    });
    (connection, reader)
}
