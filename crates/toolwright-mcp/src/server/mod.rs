//! The server: offers the tools of a run to MCP clients, with resources, prompts and everything else beside them.
//!
//! Every call goes through [`Dispatch`], so it is validated, approved, bounded and recorded like a model's. Both eras
//! are spoken on one connection: a request that carries its revision in `_meta` is answered without a session. How
//! messages travel belongs to `pipe` and `http`; what they mean to `answer`.

mod answer;
mod call;
mod features;
mod files;
mod http;
mod hub;
mod peer;
mod person;
mod pipe;
mod prompts;
mod readers;
mod rounds;
mod session;
mod standard_streams;
mod tasks;
mod watch;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use toolwright_core::{CancelToken, Dispatch, Patterns, ToolSpec};

pub use self::features::{
    CompletionRequest, Completions, Prompt, PromptArgument, PromptMessage, PromptResult, Prompts, Resource,
    ResourceBody, ResourceContents, ResourceTemplate, Resources, Role, Watching,
};
pub use self::files::FileResources;
pub use self::http::{HttpOptions, HttpServer, ResourceServer};
pub use self::hub::Changes;
pub use self::peer::{LogLevel, Peer, Question, Reply};
pub use self::person::ClientPerson;
pub use self::prompts::ToolPrompts;
pub use self::rounds::StateKey;
pub use self::tasks::TaskSupport;

use self::hub::Hub;
use self::readers::Readers;
use self::session::Session;
use self::tasks::Tasks;
use self::watch::Watches;
use crate::client::OnLog;
use crate::jsonrpc::{INTERNAL_ERROR, Id, RpcError};
use crate::protocol::{Implementation, STATELESS_VERSION};

/// How long a cancelled call may take to clean up.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// Offers the tools of a run to MCP clients. Cloning is cheap; each connection is served on its own.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    dispatch: Arc<dyn Dispatch>,
    info: Implementation,
    instructions: Option<String>,
    page_size: usize,
    max_calls: usize,
    drain: Duration,
    on_log: Option<OnLog>,
    /// The tools when they were last listed; none before the first time.
    tools: Arc<RwLock<Option<Arc<Vec<ToolSpec>>>>>,
    resources: Option<Arc<dyn Resources>>,
    prompts: Option<Arc<dyn Prompts>>,
    completions: Option<Arc<dyn Completions>>,
    task_support: Vec<(Patterns, TaskSupport)>,
    hub: Hub,
    watches: Watches,
    tasks: Tasks,
    state_key: StateKey,
}

impl Server {
    /// Offers the tools behind this door.
    pub fn new(dispatch: Arc<dyn Dispatch>) -> Self {
        Server {
            inner: Arc::new(Inner {
                dispatch,
                info: Implementation::ours(),
                instructions: None,
                page_size: 250,
                max_calls: 1024,
                drain: Duration::from_secs(10),
                on_log: None,
                tools: Arc::default(),
                resources: None,
                prompts: None,
                completions: None,
                task_support: Vec::new(),
                hub: Hub::new(),
                watches: Watches::default(),
                tasks: Tasks::default(),
                state_key: StateKey::random(),
            }),
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.inner));
        self
    }

    /// What the server calls itself.
    #[must_use]
    pub fn info(self, info: Implementation) -> Self {
        self.change(|inner| inner.info = info)
    }

    /// What the server says about how to use it.
    #[must_use]
    pub fn instructions(self, text: impl Into<String>) -> Self {
        self.change(|inner| inner.instructions = Some(text.into()))
    }

    /// How many entries one page of a list holds.
    #[must_use]
    pub fn page_size(self, entries: usize) -> Self {
        self.change(|inner| inner.page_size = entries.max(1))
    }

    /// How many calls of one client may run at once.
    #[must_use]
    pub fn max_calls(self, calls: usize) -> Self {
        self.change(|inner| inner.max_calls = calls)
    }

    /// How long calls may go on after the client closed its side, or the server was told to end; 10 seconds unless this says
    /// otherwise. Those that take longer are stopped, and answered with an error.
    #[must_use]
    pub fn drain(self, time: Duration) -> Self {
        self.change(|inner| inner.drain = time)
    }

    /// Is told what went wrong inside, which clients are not.
    #[must_use]
    pub fn on_log(self, on_log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.change(|inner| inner.on_log = Some(Arc::new(on_log)))
    }

    /// Offers resources.
    #[must_use]
    pub fn resources(self, resources: impl Resources + 'static) -> Self {
        self.change(|inner| inner.resources = Some(Arc::new(resources)))
    }

    /// Offers prompts.
    #[must_use]
    pub fn prompts(self, prompts: impl Prompts + 'static) -> Self {
        self.change(|inner| inner.prompts = Some(Arc::new(prompts)))
    }

    /// Proposes values for the arguments of prompts and resource templates.
    #[must_use]
    pub fn completions(self, completions: impl Completions + 'static) -> Self {
        self.change(|inner| inner.completions = Some(Arc::new(completions)))
    }

    /// Says which calls may go on as tasks that clients look at from time to time (the tasks extension). The first
    /// pattern that matches a tool counts; a tool that none matches is always answered directly.
    #[must_use]
    pub fn tasks<S: Into<String>>(self, patterns: impl IntoIterator<Item = S>, support: TaskSupport) -> Self {
        let patterns = Patterns::new(patterns.into_iter().map(Into::into));
        self.change(|inner| inner.task_support.push((patterns, support)))
    }

    /// The key that seals what clients carry for the server between the rounds of a call. Instances behind one load
    /// balancer share a key; without one, each server makes its own.
    #[must_use]
    pub fn state_key(self, key: StateKey) -> Self {
        self.change(|inner| inner.state_key = key)
    }

    /// Tells clients that something on offer changed.
    pub fn changes(&self) -> Changes {
        self.inner.hub.changes()
    }

    /// Serves one client over this process's standard streams, as [`serve`](Self::serve) does. Nothing else may write to
    /// stdout meanwhile.
    pub async fn serve_stdio(&self) -> std::io::Result<()> {
        let (input, output) = standard_streams::open()?;
        let inner = self.inner.clone();
        // On a task of its own, which the thread that waits for input runs itself; the caller's may be run elsewhere.
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(async move { pipe::serve(&inner, input, output).await });
        serving.join_next().await.unwrap_or(Ok(Ok(())))?
    }

    /// Serves one client until it closes its side; calls that are under way then are finished first, within the time that
    /// [`drain`](Self::drain) gives them.
    pub async fn serve(
        &self,
        input: impl AsyncRead + Unpin + Send,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> std::io::Result<()> {
        pipe::serve(&self.inner, input, output).await
    }

    /// Listens for clients over HTTP. Nothing is answered before [`HttpServer::run`].
    pub async fn listen(
        &self,
        address: std::net::SocketAddr,
        options: HttpOptions,
    ) -> std::io::Result<HttpServer> {
        HttpServer::bind(self.inner.clone(), address, options).await
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("info", &self.inner.info).finish_non_exhaustive()
    }
}

impl Inner {
    /// The tools as they are now, those of sources included; clients are told when they changed.
    async fn refreshed_tools(&self) -> Result<Arc<Vec<ToolSpec>>, RpcError> {
        let told = self.hub.tools_listed();
        let now = self.dispatch.fresh_specs().await.map_err(|error| {
            self.log(&format!("the tools cannot be listed: {error}"));
            RpcError::new(INTERNAL_ERROR, "the tools cannot be listed")
        })?;
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let changed = tools.as_ref().is_some_and(|known| **known != now);
        let now = Arc::new(now);
        *tools = Some(now.clone());
        drop(tools);
        if changed && !told {
            self.hub.changes().tools();
        }
        Ok(now)
    }

    /// The tool of that name. The list is looked at again before a name is called unknown.
    async fn tool(&self, name: &str) -> Result<Option<(Arc<Vec<ToolSpec>>, usize)>, RpcError> {
        let known = self.tools.read().unwrap_or_else(PoisonError::into_inner).clone();
        let found = |tools: Arc<Vec<ToolSpec>>| {
            let at = tools.iter().position(|spec| *spec.name == *name)?;
            Some((tools, at))
        };
        if let Some(found) = known.and_then(found) {
            return Ok(Some(found));
        }
        Ok(found(self.refreshed_tools().await?))
    }

    /// How clients learn that a resource changed.
    fn watching(&self) -> Watching {
        self.resources.as_ref().map_or(Watching::No, |resources| resources.watching())
    }

    fn task_support(&self, tool: &str) -> Option<TaskSupport> {
        self.task_support.iter().find(|(patterns, _)| patterns.matches(tool)).map(|(_, support)| *support)
    }

    fn log(&self, text: &str) {
        if let Some(on_log) = &self.on_log {
            on_log(text);
        }
    }
}

/// The revision a request is answered in.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Era {
    version: &'static str,
}

impl Era {
    const STATELESS: Era = Era { version: STATELESS_VERSION };

    fn is_stateless(self) -> bool {
        self.version == STATELESS_VERSION
    }
}

/// One request, and everything that must be known to answer it.
#[derive(Clone)]
struct Request {
    id: Id,
    era: Era,
    /// What the client says it can do.
    capabilities: Arc<serde_json::Value>,
    /// The least important log messages the client wants; `None` wants none.
    log_level: Option<LogLevel>,
    /// The session, in the era that has them.
    session: Option<Arc<Session>>,
    /// Where messages that belong to this request go.
    outlet: Outlet,
    /// Fires when nobody waits for the answer any more.
    cancel: CancelToken,
    /// Who asks, as far as that was established: what one client was given is of no use to another.
    subject: Arc<str>,
}

impl Request {
    /// True when the client says it can do this.
    fn client_can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(serde_json::Value::is_object)
    }

    fn client_has_extension(&self, extension: &str) -> bool {
        self.capabilities.get("extensions").and_then(|all| all.get(extension)).is_some()
    }
}

/// Where messages to a client go.
#[derive(Clone)]
struct Outlet {
    messages: tokio::sync::mpsc::Sender<Vec<u8>>,
    /// Fires when the stream is to be closed early; the client comes back for the rest. Pipes have no such thing.
    hang_up: CancelToken,
    audience: Audience,
}

/// Who reads what is sent to a client before the answer.
#[derive(Clone)]
enum Audience {
    /// Whoever holds the other end.
    Connected,
    /// A client that may lose the stream, and come back for it.
    Returning(Readers),
    /// Nobody: the client takes the answer, and nothing else.
    Nobody,
}

impl Outlet {
    fn new(messages: tokio::sync::mpsc::Sender<Vec<u8>>, audience: Audience) -> Self {
        Outlet { messages, hang_up: CancelToken::new(), audience }
    }

    /// False when a question would reach nobody.
    fn takes_questions(&self) -> bool {
        !matches!(self.audience, Audience::Nobody)
    }

    /// Waits until nobody reads any more, nor will.
    async fn abandoned(&self) {
        match &self.audience {
            Audience::Connected | Audience::Nobody => self.messages.closed().await,
            Audience::Returning(readers) => tokio::select! {
                () = self.messages.closed() => {}
                () = readers.gone() => {}
            },
        }
    }

    /// Sends a message, unless the client does not read: then it is dropped.
    fn try_send(&self, message: Vec<u8>) -> bool {
        self.messages.try_send(message).is_ok()
    }
}

/// `None`: who asked wants no answer any more.
type Outcome = Option<Result<serde_json::Value, RpcError>>;
