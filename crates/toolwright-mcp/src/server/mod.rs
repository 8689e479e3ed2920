//! The server: offers the tools of a run to MCP clients, with resources, prompts and everything else beside
//! them.
//!
//! Every call goes through [`Dispatch`], so it is validated, approved, bounded and recorded like a model's.
//! One connection takes both eras: a request that carries its revision in `_meta` is answered without a
//! session. `pipe` and `http` transport messages, `router` leads from a method to its handler, and `call`,
//! `read`, `hub` and `tasks` handle requests.

mod call;
mod client_quirks;
mod features;
mod files;
mod http;
mod hub;
mod peer;
mod person;
mod pipe;
mod prompts;
mod read;
mod readers;
mod request;
mod response;
mod router;
mod sealed_state;
mod session;
mod stdio;
mod tasks;
mod watch;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use toolwright_core::{Dispatch, Patterns, ToolSpec};

pub use self::features::{
    CompletionRequest, Completions, PromptMessage, PromptResult, Prompts, Resources, Watching,
};
pub use self::files::FileResources;
pub use self::http::{HttpOptions, HttpServer, ResourceServer};
pub use self::hub::Changes;
pub use self::peer::{ClientReply, Peer, Question};
pub use self::person::ClientPerson;
pub use self::prompts::ToolPrompts;
pub use self::sealed_state::StateKey;
pub use self::tasks::TaskSupport;

use self::hub::Hub;
use self::request::{Audience, ClientSender, Era, IncomingRequest};
use self::tasks::Tasks;
use self::watch::Watches;
use crate::client::OnLog;
use crate::jsonrpc::{INTERNAL_ERROR, RpcError};
use crate::protocol::Implementation;

/// How long a cancelled call may take to clean up.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// Offers the tools of a run to MCP clients. Cloning is cheap; each connection is served on its own.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    dispatch: Arc<RwLock<Arc<dyn Dispatch>>>,
    info: Implementation,
    instructions: Option<String>,
    page_size: usize,
    max_calls: usize,
    drain: Duration,
    on_log: Option<OnLog>,
    /// The tools when they were last listed; `None` before the first time.
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
    /// Offers the tools of a run.
    pub fn new(dispatch: Arc<dyn Dispatch>) -> Self {
        Server {
            inner: Arc::new(Inner {
                dispatch: Arc::new(RwLock::new(dispatch)),
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

    /// The name and version that the server gives itself.
    #[must_use]
    pub fn info(self, info: Implementation) -> Self {
        self.change(|inner| inner.info = info)
    }

    /// Instructions for the models of clients: when and how to use the tools.
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

    /// How long calls may go on after the client closed its side, or the server was stopped; 10 seconds by
    /// default. Longer calls are stopped, and answered with an error. When the client no longer reads either,
    /// calls are stopped at once.
    #[must_use]
    pub fn drain(self, time: Duration) -> Self {
        self.change(|inner| inner.drain = time)
    }

    /// Reports internal errors, which clients do not see.
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

    /// Names the calls that may go on as tasks, which clients poll (the tasks extension). The first
    /// pattern that matches a tool counts; a tool that none matches is always answered directly.
    #[must_use]
    pub fn tasks<S: Into<String>>(self, patterns: impl IntoIterator<Item = S>, support: TaskSupport) -> Self {
        let patterns = Patterns::new(patterns.into_iter().map(Into::into));
        self.change(|inner| inner.task_support.push((patterns, support)))
    }

    /// The key that seals what clients carry for the server between the rounds of a call. Instances behind
    /// one load balancer share a key; without one, each server makes its own.
    #[must_use]
    pub fn state_key(self, key: StateKey) -> Self {
        self.change(|inner| inner.state_key = key)
    }

    /// Offers the tools of another run from now on, and announces the change. Calls that are under way end in
    /// the run in which they began.
    pub fn replace(&self, dispatch: Arc<dyn Dispatch>) {
        *self.inner.dispatch.write().unwrap_or_else(PoisonError::into_inner) = dispatch;
        *self.inner.tools.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.inner.hub.changes().tools();
    }

    /// Announces changes to clients.
    pub fn changes(&self) -> Changes {
        self.inner.hub.changes()
    }

    /// Serves one client over this process's standard streams, as [`serve`](Self::serve) does. Nothing else
    /// may write to stdout meanwhile.
    pub async fn serve_stdio(&self) -> std::io::Result<()> {
        let stdio::StdStreams { input, output, reader_gone } = stdio::open()?;
        let inner = self.inner.clone();
        // On a task of its own, which the thread that waits for input runs itself; the caller's may be run
        // elsewhere.
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(async move { pipe::serve(&inner, input, output, reader_gone).await });
        serving.join_next().await.unwrap_or(Ok(Ok(())))?
    }

    /// Answers the first request of a client on this process's standard streams with an error, and ends: a
    /// client shows its user what it got, and mostly not what a server wrote on stderr. A client that sends
    /// nothing is waited for at most ten seconds.
    pub async fn refuse_stdio(why: &str) -> std::io::Result<()> {
        let stdio::StdStreams { input, output, .. } = stdio::open()?;
        pipe::refuse(input, output, why).await
    }

    /// Serves one client until it closes its side; calls that are under way then are finished first, within
    /// the time that [`drain`](Self::drain) gives them.
    pub async fn serve(
        &self,
        input: impl AsyncRead + Unpin + Send,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> std::io::Result<()> {
        pipe::serve(&self.inner, input, output, std::future::pending()).await
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
    /// The run that is offered now.
    fn dispatch(&self) -> Arc<dyn Dispatch> {
        self.dispatch.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The tools as they are now, those of sources included. Changes are announced to clients.
    async fn refreshed_tools(&self) -> Result<Arc<Vec<ToolSpec>>, RpcError> {
        let announced = self.hub.tools_listed();
        let dispatch = self.dispatch();
        let now = dispatch.fresh_specs().await.map_err(|error| {
            self.log(&format!("could not list the tools: {error}"));
            RpcError::new(INTERNAL_ERROR, "could not list the tools")
        })?;
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let changed = tools.as_ref().is_some_and(|known| **known != now);
        let now = Arc::new(now);
        *tools = Some(now.clone());
        drop(tools);
        if changed && !announced {
            self.hub.changes().tools();
        }
        Ok(now)
    }

    /// The tool of that name. The list is refreshed before a name counts as unknown.
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

    /// How clients learn of changed resources.
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
