//! The client: one session with one server.
//!
//! [`McpServer`](crate::McpServer) wraps it with supervision and offers its tools to a run; this is the plain
//! session.

mod answers;
mod caller;
mod calls;
pub(crate) mod command_text;
pub(crate) mod connection;
mod connection_end;
mod handshake;
mod listing;
mod questions;
mod requests;
mod supervise;
pub(crate) mod target;
mod tasks;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use toolwright_core::{
    CancelToken, Content, DynProcessHandle, EffectJudge, ProcessHandle, SpawnRequest, ToolContext, ToolError,
    ToolOutput,
};
use toolwright_util::lock;

pub use self::answers::{Answers, Sampling, ThroughApprover};
use self::caller::{Caller, PutOff};
pub use self::calls::Paying;
use self::calls::{CallOrigin, Calling};
pub(crate) use self::connection::OnToolsChanged;
pub use self::connection::{OnLog, OnProgress};
use self::connection::{Out, ServerConnection};
pub use self::handshake::SessionInfo;
use self::listing::HeaderArguments;
pub use self::listing::{Listing, MAX_TOOLS};
use self::requests::Ask;
pub use self::supervise::servers_ended;
use self::supervise::{ServerCount, ServerReader, forward_errors, supervise, supervise_sandboxed};
pub use self::target::{HttpTarget, Target};
use self::tasks::Time;
use crate::bridge;
use crate::error::{McpError, McpErrorKind};
use crate::protocol::{
    CallParams, ClientRequest, Empty, Implementation, InputRequired, RequestMeta, ResultType, Round,
    STATELESS_VERSION, TASKS_EXTENSION, Task,
};
use crate::server::Peer;
use crate::transport::http::Link;
use crate::transport::lines::write_lines;
use crate::transport::stdio::ServerCommand;

/// The most questions that a server may ask at once in place of a result.
const MAX_QUESTIONS_AT_ONCE: usize = 100;

/// How often a server may ask for more before it answers.
const MAX_ROUNDS: usize = 10;

/// How a session behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// The name and version that the client gives itself.
    pub client_info: Implementation,
    /// How long the handshake may take; starting a server may mean installing it.
    pub start_timeout: Duration,
    /// How long listing tools and the like may take, all pages together.
    pub request_timeout: Duration,
    /// How long a server may send nothing at all after a call timed out, before it is ended.
    pub silence: Duration,
    /// Receives what the server writes for people.
    pub on_log: Option<OnLog>,
    /// The answers to the server's questions.
    pub answers: Answers,
    /// The program's name for the server, for messages.
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
    connection: Arc<ServerConnection>,
    options: ClientOptions,
    info: SessionInfo,
    pid: Option<u32>,
    /// Fires when nothing of the server is left; without a process it fires at once.
    gone: CancelToken,
    /// Which arguments are repeated in headers, by tool.
    header_arguments: Mutex<HeaderArguments>,
    /// The tools that are run as tasks only.
    tasked: Mutex<HashSet<String>>,
    /// The server's process in a sandbox, which may stage what the server changes.
    sandboxed: Option<Arc<DynProcessHandle>>,
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
                let handle: Arc<DynProcessHandle> = Arc::from(process.handle);
                tokio::spawn(supervise_sandboxed(
                    connection.clone(),
                    handle.clone(),
                    reader,
                    gone.clone(),
                    ServerCount::new(),
                ));
                let mut client = Client::new(connection, options, None, gone);
                client.sandboxed = Some(handle);
                client.handshake().await
            }
        }
    }

    /// Starts a server process and begins a session with it.
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
        tokio::spawn(supervise(connection.clone(), process, reader, gone.clone(), ServerCount::new()));
        Client::new(connection, options, pid, gone).handshake().await
    }

    /// Begins a session with a server that has an address.
    pub async fn dial(target: &HttpTarget, options: ClientOptions) -> Result<Client, McpError> {
        let link = Arc::new(Link::new(target)?);
        let connection = Arc::new(ServerConnection::new(Out::Http(link.clone()), &options));
        if link.is_legacy() {
            link.open_legacy(&connection, options.start_timeout).await?;
        }
        let gone = CancelToken::new();
        gone.cancel();
        Client::new(connection, options, None, gone).handshake().await
    }

    /// Begins a session with a server at the other end of two streams.
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
        Client::new(connection, options, None, gone).handshake().await
    }

    fn new(
        connection: Arc<ServerConnection>,
        options: ClientOptions,
        pid: Option<u32>,
        gone: CancelToken,
    ) -> Self {
        let (header_arguments, tasked) = (Mutex::default(), Mutex::default());
        let (info, sandboxed) = (SessionInfo::default(), None);
        Client { connection, options, info, pid, gone, header_arguments, tasked, sandboxed }
    }

    /// What was agreed with the server when the session began.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// The server's process, when there is one.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// The reason why the session ended, once it has.
    pub fn closed(&self) -> Option<McpError> {
        self.connection.closed_reason()
    }

    /// True when the server said that its tools changed, and they were not listed since.
    pub fn tools_changed(&self) -> bool {
        self.connection.tools_changed()
    }

    /// Like [`tools_changed`](Self::tools_changed), and forgets it: true once after the server said so.
    pub fn take_tools_changed(&self) -> bool {
        self.connection.set_tools_changed(false)
    }

    /// Has this call pay for what the server asks a model, until what is returned is dropped: the answers
    /// count against the limits of its run, and stop with it. When several calls pay at once and the server
    /// does not say for which it asks, as over pipes with a session, the latest does.
    /// [`ToolContext::detached`] stands for a program that has no run.
    #[must_use = "the call pays only as long as this is kept"]
    pub fn paid_by(&self, context: &ToolContext) -> Paying {
        Paying::begin(&self.connection, context)
    }

    /// Checks that the server answers.
    pub async fn ping(&self) -> Result<(), McpError> {
        let request = match self.is_stateless() {
            true => ClientRequest::Discover(Empty {}),
            false => ClientRequest::Ping(Empty {}),
        };
        self.request(Ask::new(&request, self.options.request_timeout)).await.map(drop)
    }

    /// Calls a tool. Running out of time, or dropping the future, tells the server to stop; a server that
    /// then says nothing at all is ended.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        timeout: Duration,
        progress: Option<OnProgress>,
    ) -> Result<ToolOutput, ToolError> {
        self.call_tool_for(None, name, arguments, timeout, progress).await
    }

    /// Calls a tool for a call of ours, which pays for what the server asks a model meanwhile; the client
    /// that made it is asked what the server asks, where that is wanted.
    pub(crate) async fn call_tool_for(
        &self,
        context: Option<&ToolContext>,
        name: &str,
        arguments: Value,
        timeout: Duration,
        progress: Option<OnProgress>,
    ) -> Result<ToolOutput, ToolError> {
        let _paying = context.map(|context| self.paid_by(context));
        let mut whose = CallOrigin { caller: None, payer: context.cloned() };
        if !self.connection.questions.notes_callers() {
            return self.call(&whose, name, arguments, timeout, progress).await;
        }
        let peer = context.and_then(Peer::of);
        whose.caller =
            peer.map(|peer| Caller::new(peer, self.connection.questions.server(), name, &arguments));
        let calling = Calling::begin(&self.connection, whose.caller.clone());
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
        whose: &CallOrigin,
        name: &str,
        arguments: Value,
        timeout: Duration,
        progress: Option<OnProgress>,
    ) -> Result<ToolOutput, ToolError> {
        let headers = lock(&self.header_arguments).headers(name, &arguments);
        let params = CallParams { name: name.to_owned(), arguments, ..CallParams::default() };
        // What changed outside until now changed before this call.
        let _ = self.commit(whose.payer.as_ref()).await;
        let mut abandoned = Abandoned { client: self, armed: true };
        let answer = match self.runs_as_task(name) {
            true => self.call_as_task(whose, params, timeout, progress, headers).await,
            false => self.call_in_rounds(whose, params, timeout, progress, headers).await,
        };
        abandoned.armed = matches!(&answer, Err(error) if error.kind() == McpErrorKind::Timeout);
        drop(abandoned);
        let kept_back = self.commit(whose.payer.as_ref()).await?;
        match answer {
            Ok(result) => {
                let output = bridge::read_result(result)?;
                Ok(if kept_back.is_empty() { output } else { output.with(Content::text(kept_back)) })
            }
            Err(error) if error.kind() == McpErrorKind::Timeout => Err(ToolError::of(
                toolwright_core::ErrorKind::Timeout,
                format!("the tool `{name}` did not answer within {timeout:?} and was cancelled"),
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// Applies what a sandboxed server has changed during a call, and reports what was not applied.
    async fn commit(&self, context: Option<&ToolContext>) -> Result<String, ToolError> {
        let Some(process) = &self.sandboxed else { return Ok(String::new()) };
        let judge = context.map(|context| Arc::new(context.clone()) as Arc<dyn EffectJudge>);
        Ok(process.commit(judge).await?.kept_back_text())
    }

    /// Calls a tool, and waits for the task that a server may make of the call.
    async fn call_in_rounds(
        &self,
        whose: &CallOrigin,
        params: CallParams,
        timeout: Duration,
        progress: Option<OnProgress>,
        headers: Vec<(String, String)>,
    ) -> Result<Value, McpError> {
        let time = Time::new(timeout);
        let mut request = ClientRequest::CallTool(params);
        let result = self.ask_in_rounds(whose, &mut request, timeout, progress.clone(), headers).await?;
        match self.is_stateless() && ResultType::of(&result) == Some(ResultType::Task) {
            true => self.follow_task(whose, Task::read(result), time, progress).await,
            false => Ok(result),
        }
    }

    /// Makes a request, and answers what the server asks before it gives a result.
    async fn ask_in_rounds(
        &self,
        whose: &CallOrigin,
        request: &mut ClientRequest,
        timeout: Duration,
        progress: Option<OnProgress>,
        headers: Vec<(String, String)>,
    ) -> Result<Value, McpError> {
        let until = tokio::time::Instant::now().checked_add(timeout);
        let left =
            || until.map_or(timeout, |until| until.saturating_duration_since(tokio::time::Instant::now()));
        for _ in 0..MAX_ROUNDS {
            let (progress, headers) = (progress.clone(), headers.clone());
            let ask = Ask { progress, headers, ..Ask::new(request, left()) };
            let result = self.request_for(whose, ask).await?;
            if ResultType::of(&result) != Some(ResultType::InputRequired) {
                return Ok(result);
            }
            let late = |_| {
                let problem = format!("the server's questions were not answered within {timeout:?}");
                McpError::new(McpErrorKind::Timeout, problem)
            };
            let asked = InputRequired::read(result);
            let answers = tokio::time::timeout(left(), self.answer_questions(whose, &asked.input_requests));
            let answers = answers.await.map_err(late)??;
            if let Some(round) = request.round_mut() {
                *round = Round { input_responses: Some(answers), request_state: asked.request_state };
            }
        }
        Err(McpError::new(McpErrorKind::Limit, format!("the server asked for more in {MAX_ROUNDS} rounds")))
    }

    /// An answer for each question, under the question's name.
    async fn answer_questions(
        &self,
        whose: &CallOrigin,
        questions: &Map<String, Value>,
    ) -> Result<Map<String, Value>, McpError> {
        if questions.len() > MAX_QUESTIONS_AT_ONCE {
            return Err(McpError::new(McpErrorKind::Limit, "the server asks too many questions at once"));
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
                let message = format!("a question of the server was not answered: {}", error.message);
                McpError::new(McpErrorKind::Refused, message)
            })?;
            answers.insert(key.clone(), answer);
        }
        Ok(answers)
    }

    /// Ends the session, and waits until nothing of the server is left. The server may end by itself for a
    /// moment.
    pub async fn close(&self) {
        self.connection.end();
        self.gone.cancelled().await;
    }

    async fn request(&self, ask: Ask<'_>) -> Result<Value, McpError> {
        self.request_for(&CallOrigin::default(), ask).await
    }

    async fn request_for(&self, whose: &CallOrigin, mut ask: Ask<'_>) -> Result<Value, McpError> {
        if self.is_stateless() {
            ask.meta = self.introduction(whose);
        }
        ask.whose = whose.clone();
        self.connection.request(ask).await
    }

    fn is_stateless(&self) -> bool {
        self.info.version == STATELESS_VERSION
    }

    /// `_meta` of a request without a session.
    fn introduction(&self, whose: &CallOrigin) -> RequestMeta {
        let mut capabilities = self.connection.questions.capabilities(whose.caller.as_ref());
        capabilities.extensions.insert(TASKS_EXTENSION.to_owned(), json!({}));
        RequestMeta {
            version: Some(STATELESS_VERSION.into()),
            client_info: Some(self.options.client_info.clone()),
            capabilities: Some(capabilities),
            ..RequestMeta::default()
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.end();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("info", &self.info).field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// Ends a server that sends nothing at all, once a call of it was given up.
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
            let _ = connection.request(Ask::new(&ClientRequest::Ping(Empty {}), silence)).await;
            if connection.heard() == heard {
                let message =
                    format!("connection closed: the server sent nothing for {silence:?} and was ended");
                connection.close(McpError::new(McpErrorKind::Closed, message));
            }
        });
    }
}

fn pipes(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    options: &ClientOptions,
) -> (Arc<ServerConnection>, ServerReader) {
    let (out, lines) = mpsc::channel(64);
    let connection = Arc::new(ServerConnection::new(Out::Lines(out), options));
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
