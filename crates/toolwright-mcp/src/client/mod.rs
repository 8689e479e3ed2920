//! The client: one session with one server.
//!
//! [`McpServer`](crate::McpServer) wraps it with supervision and offers its tools to a run; this is the plain session.

pub(crate) mod connection;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use toolwright_core::{ToolError, ToolOutput, text};

use self::connection::{Connection, set_meta};
pub use self::connection::{OnLog, OnProgress};
use crate::bridge;
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{METHOD_NOT_FOUND, UNSUPPORTED_VERSION};
use crate::protocol::{
    CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, DiscoverResult, Implementation, InitializeResult,
    LATEST_SESSION_VERSION, SERVER_INFO_KEY, SESSION_VERSIONS, STATELESS_VERSION, ToolDefinition, ToolPage,
    VERSION_KEY,
};
use crate::transport::lines::{Line, LineReader, write_lines};
use crate::transport::stdio::{Process, ServerCommand};

/// The most tools a server may list.
pub const MAX_TOOLS: usize = 10_000;

/// The most pages a list of tools may have.
const MAX_PAGES: usize = 1_000;

/// The longest definition of a tool, in bytes of JSON.
const MAX_DEFINITION: usize = 1024 * 1024;

/// How long a server may take to end by itself after its input was closed.
const END_GRACE: Duration = Duration::from_secs(2);

/// The longest line of stderr that is passed on in one piece.
const MAX_LOG_LINE: usize = 64 * 1024;

/// How a session behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// What the client calls itself.
    pub client_info: Implementation,
    /// How long the greeting may take; starting a server may mean installing it.
    pub start_timeout: Duration,
    /// How long listing tools and the like may take.
    pub request_timeout: Duration,
    /// How long a server may say nothing at all after a call timed out before it is ended.
    pub silence: Duration,
    /// Is told what the server writes for people.
    pub on_log: Option<OnLog>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            client_info: Implementation::ours(),
            start_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(30),
            silence: Duration::from_secs(5),
            on_log: None,
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
    gone: toolwright_core::CancelToken,
}

/// What a server said of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Greeting {
    /// The revision that is spoken.
    pub version: String,
    /// What the server calls itself.
    pub server: Implementation,
    /// What it says about how to use it.
    pub instructions: Option<String>,
    /// What it can do.
    pub capabilities: Value,
}

impl Client {
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
        let (connection, reader) = open(output, input, &options);
        tokio::spawn(forward_errors(connection.clone(), errors));
        let gone = toolwright_core::CancelToken::new();
        tokio::spawn(supervise(connection.clone(), process, reader, gone.clone()));
        Client { connection, options, greeting: Greeting::default(), pid, gone }.greeted().await
    }

    /// Greets a server at the other end of two streams, for example one in a sandbox.
    pub async fn connect(
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        options: ClientOptions,
    ) -> Result<Client, McpError> {
        let (connection, reader) = open(input, output, &options);
        let closing = connection.clone();
        tokio::spawn(async move {
            let why = reader.await;
            closing.close(why.unwrap_or_else(|_| McpError::new(McpErrorKind::Closed, "connection closed")));
        });
        let gone = toolwright_core::CancelToken::new();
        gone.cancel();
        Client { connection, options, greeting: Greeting::default(), pid: None, gone }.greeted().await
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
        self.connection.closed().is_cancelled().then(|| self.connection.why_closed())
    }

    /// True when the server said that its tools changed, and they were not listed since.
    pub fn tools_changed(&self) -> bool {
        self.connection.tools_changed.load(Ordering::Acquire)
    }

    /// Like [`tools_changed`](Self::tools_changed), and forgets it: true once after the server said so.
    pub fn take_tools_changed(&self) -> bool {
        self.connection.tools_changed.swap(false, Ordering::AcqRel)
    }

    /// Asks for a sign of life.
    pub async fn ping(&self) -> Result<(), McpError> {
        self.request("ping", Value::Null, self.options.request_timeout, None).await.map(drop)
    }

    /// Lists the tools, page by page. Definitions that cannot be used are left out and named.
    pub async fn list_tools(&self) -> Result<Listing, McpError> {
        let mut listing = Listing::default();
        let mut seen_cursors: Vec<String> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let page = self.request("tools/list", params, self.options.request_timeout, None).await?;
            let page: ToolPage = serde_json::from_value(page).map_err(|error| {
                McpError::new(McpErrorKind::Protocol, format!("the list of tools is not one: {error}"))
            })?;
            for tool in page.tools {
                listing.take(tool)?;
            }
            let Some(next) = page.next_cursor else { return Ok(listing) };
            if seen_cursors.contains(&next) || seen_cursors.len() >= MAX_PAGES {
                let message =
                    format!("the list of tools does not end after {} pages", seen_cursors.len() + 1);
                return Err(McpError::new(McpErrorKind::Limit, message));
            }
            seen_cursors.push(next.clone());
            cursor = Some(next);
        }
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
        let params = json!({"name": name, "arguments": arguments});
        let mut abandoned = Abandoned { client: self, armed: true };
        let answer = self.request("tools/call", params, timeout, progress).await;
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

    /// Ends the session, and waits until nothing of the server is left. The server may end by itself for a moment.
    pub async fn close(&self) {
        self.connection.end();
        self.gone.cancelled().await;
    }

    async fn request(
        &self,
        method: &str,
        mut params: Value,
        timeout: Duration,
        progress: Option<OnProgress>,
    ) -> Result<Value, McpError> {
        if self.greeting.version == STATELESS_VERSION {
            self.say_who(&mut params);
        }
        self.connection.request(method, params, timeout, progress).await
    }

    fn say_who(&self, params: &mut Value) {
        set_meta(params, VERSION_KEY, json!(STATELESS_VERSION));
        set_meta(params, CLIENT_INFO_KEY, json!(self.options.client_info));
        set_meta(params, CLIENT_CAPABILITIES_KEY, json!({}));
    }

    /// Begins the session: `initialize`, and `server/discover` for servers that know no sessions.
    async fn greeted(mut self) -> Result<Client, McpError> {
        let params = json!({
            "protocolVersion": LATEST_SESSION_VERSION, "capabilities": {}, "clientInfo": self.options.client_info
        });
        let answer = self.connection.request("initialize", params, self.options.start_timeout, None).await;
        let greeting = match answer {
            Ok(answer) => read_initialize(answer).inspect(|_| {
                self.connection.notify("notifications/initialized", json!({}));
            }),
            Err(error) if matches!(error.code(), Some(METHOD_NOT_FOUND | UNSUPPORTED_VERSION)) => {
                let mut params = json!({});
                self.say_who(&mut params);
                let answer =
                    self.connection.request("server/discover", params, self.options.start_timeout, None);
                answer.await.and_then(read_discover)
            }
            Err(error) => Err(error),
        };
        match greeting {
            Ok(greeting) => {
                self.greeting = greeting;
                Ok(self)
            }
            Err(error) => {
                self.connection.close(error.clone());
                self.gone.cancelled().await;
                Err(McpError::new(McpErrorKind::Start, format!("the server did not start: {error}")))
            }
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
        f.debug_struct("Client")
            .field("greeting", &self.greeting)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

fn read_initialize(answer: Value) -> Result<Greeting, McpError> {
    let answer: InitializeResult = serde_json::from_value(answer).map_err(|error| {
        McpError::new(McpErrorKind::Protocol, format!("its greeting is not one: {error}"))
    })?;
    if !SESSION_VERSIONS.contains(&answer.protocol_version.as_str()) {
        let version = text::clip(&answer.protocol_version, 100);
        return Err(McpError::new(McpErrorKind::Protocol, format!("it speaks revision `{version}` only")));
    }
    Ok(Greeting {
        version: answer.protocol_version,
        server: answer.server_info,
        instructions: answer.instructions,
        capabilities: answer.capabilities,
    })
}

fn read_discover(answer: Value) -> Result<Greeting, McpError> {
    let answer: DiscoverResult = serde_json::from_value(answer).map_err(|error| {
        McpError::new(McpErrorKind::Protocol, format!("its greeting is not one: {error}"))
    })?;
    if !answer.supported_versions.iter().any(|version| version == STATELESS_VERSION) {
        let versions = text::clip(&answer.supported_versions.join(", "), 200);
        return Err(McpError::new(McpErrorKind::Protocol, format!("it speaks revisions {versions} only")));
    }
    let server = answer.meta.get(SERVER_INFO_KEY).and_then(|info| serde_json::from_value(info.clone()).ok());
    Ok(Greeting {
        version: STATELESS_VERSION.to_owned(),
        server: server.unwrap_or_default(),
        instructions: answer.instructions,
        capabilities: answer.capabilities,
    })
}

/// The tools of a server.
#[derive(Debug, Default)]
pub struct Listing {
    /// The usable ones, in the server's order.
    pub tools: Vec<ToolDefinition>,
    /// The others: a name, cut and escaped, and why it cannot be used.
    pub left_out: Vec<(String, String)>,
}

impl Listing {
    fn take(&mut self, tool: Value) -> Result<(), McpError> {
        if self.tools.len() + self.left_out.len() >= MAX_TOOLS {
            let message = format!("the server lists more than {MAX_TOOLS} tools");
            return Err(McpError::new(McpErrorKind::Limit, message));
        }
        let name = tool.get("name").and_then(Value::as_str).unwrap_or("a tool without a name");
        let name = crate::lock::visible(&text::clip(name, 200));
        let problem = if tool.to_string().len() > MAX_DEFINITION {
            Some(format!("its definition is larger than {MAX_DEFINITION} bytes"))
        } else {
            match serde_json::from_value::<ToolDefinition>(tool) {
                Err(error) => Some(format!("its definition is not one: {error}")),
                Ok(tool) if self.tools.iter().any(|known| known.name == tool.name) => {
                    Some("another tool has the same name".to_owned())
                }
                Ok(tool) => {
                    self.tools.push(tool);
                    None
                }
            }
        };
        self.left_out.extend(problem.map(|problem| (name, problem)));
        Ok(())
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
            let _ = connection.request("ping", Value::Null, silence, None).await;
            if connection.heard() == heard {
                let message =
                    format!("connection closed: the server said nothing for {silence:?} and was ended");
                connection.close(McpError::new(McpErrorKind::Closed, message));
            }
        });
    }
}

type Reader = tokio::task::JoinHandle<McpError>;

fn open(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    options: &ClientOptions,
) -> (Arc<Connection>, Reader) {
    let (out, lines) = mpsc::channel(64);
    let connection = Arc::new(Connection::new(out, options.on_log.clone()));
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

async fn forward_errors(connection: Arc<Connection>, errors: impl AsyncRead + Unpin) {
    let mut lines = LineReader::new(errors, MAX_LOG_LINE);
    loop {
        match lines.next().await {
            Ok(Line::Whole(line)) => connection.log(&String::from_utf8_lossy(line)),
            Ok(Line::TooLong) => connection.log("[a line too long to show]"),
            Ok(Line::End) | Err(_) => return,
        }
        tokio::task::coop::consume_budget().await;
    }
}

/// Watches over a server process from start to end. When it returns, nothing of the server is left.
async fn supervise(
    connection: Arc<Connection>,
    mut process: Process,
    mut reader: Reader,
    gone: toolwright_core::CancelToken,
) {
    const MOMENT: Duration = Duration::from_millis(500);
    let mut status = None;
    tokio::select! {
        () = connection.closed().cancelled() => {}
        ended = process.child.wait() => {
            process.tree.root_ended();
            status = ended.ok();
            // What it wrote before it ended is still read; a child of it may hold the pipe open for ever.
            let _ = tokio::time::timeout(MOMENT, &mut reader).await;
        }
        why = &mut reader => {
            let broke = why.unwrap_or_else(|_| McpError::new(McpErrorKind::Closed, "connection closed"));
            if broke.kind() == McpErrorKind::Closed {
                status = tokio::time::timeout(MOMENT, process.child.wait()).await.ok().and_then(Result::ok);
            }
            if status.is_some() {
                process.tree.root_ended();
            } else {
                connection.close(broke);
            }
        }
    }
    if let Some(status) = status {
        let message = format!("connection closed: the server ended ({status})");
        connection.close(McpError::new(McpErrorKind::Closed, message));
    } else if connection.ended_politely() {
        // Its input is closed by now. A well-behaved server ends by itself.
        let ended = tokio::time::timeout(END_GRACE, process.child.wait()).await.is_ok();
        if ended {
            process.tree.root_ended();
        } else {
            process.tree.terminate();
            if tokio::time::timeout(MOMENT, process.child.wait()).await.is_ok() {
                process.tree.root_ended();
            }
        }
    }
    let Process { mut child, tree } = process;
    // The search through `/proc` takes a while on a busy machine.
    let _ = tokio::task::spawn_blocking(move || drop(tree)).await;
    let _ = child.wait().await;
    gone.cancel();
}
