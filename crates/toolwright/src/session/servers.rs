//! Connecting the MCP servers of a file.

use std::collections::HashMap;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::Poll;

use indexmap::IndexMap;
use toolwright_core::{ToolError, ToolSource as _};
use toolwright_lang::{Needs, Server, ServerState, ServerTools};
use toolwright_mcp::{
    Answers, HttpTarget, McpServer, OAuthOptions, Pinning, ServerCommand, ServerStatus, Suspension, Target,
};

use super::open::{Connect, SessionBuilder};

/// Who answers a server of a file.
type AnswersFor = Arc<dyn Fn(&Server) -> Answers + Send + Sync>;

/// How a client comes by the tokens of a server that wants one.
type TokensFor = Arc<dyn Fn() -> OAuthOptions + Send + Sync>;

/// Hears the name of a server, which of its tools is not what was approved, and the lock that says so;
/// without one it is not what it was when the server was started.
type OnSuspended = Arc<dyn Fn(&str, &Suspension, Option<&Path>) + Send + Sync>;

/// What a program says about the MCP servers of a file.
#[derive(Clone, Default)]
pub(super) struct Servers {
    answers: Option<AnswersFor>,
    oauth: Option<TokensFor>,
    on_suspended: Option<OnSuspended>,
}

impl SessionBuilder {
    /// Says who answers what a server asks.
    #[must_use]
    pub fn answers(mut self, answers: impl Fn(&Server) -> Answers + Send + Sync + 'static) -> Self {
        self.servers.answers = Some(Arc::new(answers));
        self
    }

    /// Says how to come by the token of a server that asks for one. A server that is sent an `Authorization`
    /// header of the file's own needs no other.
    #[must_use]
    pub fn oauth(mut self, tokens: impl Fn() -> OAuthOptions + Send + Sync + 'static) -> Self {
        self.servers.oauth = Some(Arc::new(tokens));
        self
    }

    /// Hears about tools that are left out because they are not what was approved: by a lock, or by being
    /// what the server listed first. They may become so at any time.
    #[must_use]
    pub fn on_suspended(
        mut self,
        told: impl Fn(&str, &Suspension, Option<&Path>) + Send + Sync + 'static,
    ) -> Self {
        self.servers.on_suspended = Some(Arc::new(told));
        self
    }

    /// Connects the servers that are needed, all at the same time.
    pub(super) async fn connect_all(
        &self,
        servers: &IndexMap<String, Server>,
        needs: &Needs,
        listeners: &Listeners,
    ) -> HashMap<String, ServerState> {
        let needed = servers.iter().filter(|(name, _)| needs.server(name));
        let connecting = needed.map(|(name, server)| self.connect_one(name, server, listeners));
        all(connecting.collect()).await.into_iter().collect()
    }

    fn failed(&self, server: &Server, error: ToolError) -> ServerState {
        let required = server.trust().required && self.connect == Connect::Required;
        ServerState::Failed { error, required }
    }

    async fn connect_one(&self, name: &str, server: &Server, listeners: &Listeners) -> (String, ServerState) {
        let state = match self.tools_of(name, server, listeners).await {
            Ok(tools) => ServerState::Connected(tools),
            Err(error) => self.failed(server, error),
        };
        (name.to_owned(), state)
    }

    /// Starts or reaches the server and lists its tools. It ends with the last of them.
    async fn tools_of(
        &self,
        name: &str,
        server: &Server,
        listeners: &Listeners,
    ) -> Result<ServerTools, ToolError> {
        let answers = self.servers.answers.as_ref().map(|answers| answers(server)).unwrap_or_default();
        let mut builder = McpServer::builder(name, self.target(server).await?).answers(answers);
        let trust = server.trust();
        builder = trust.call_timeout.into_iter().fold(builder, |builder, time| builder.timeout(time));
        let each = trust.tool_timeouts.iter();
        builder = each.fold(builder, |builder, (pattern, time)| builder.tool_timeout(pattern, *time));
        builder = if trust.reading_tools { builder.reading_tools() } else { builder };
        let locked = self.known.locked(name)?;
        if let Some((lock, _)) = &locked {
            builder = builder.pinning(Pinning::Locked(lock.clone()));
        }
        let lock = locked.map(|(_, path)| path.to_owned());
        let server = builder.on_listed(self.watch(name, lock.clone(), listeners.clone())).build();
        let tools = server.tools().await?;
        let state = server.state();
        if let Some(told) = &self.servers.on_suspended {
            state.suspended.iter().for_each(|suspension| told(name, suspension, lock.as_deref()));
        }
        match state.status {
            ServerStatus::Failed { why } if state.last_output.is_empty() => Err(ToolError::new(why)),
            ServerStatus::Failed { why } => {
                let said = state.last_output.join("\n    ");
                Err(ToolError::new(why).hint(format!("what it wrote last:\n    {said}")))
            }
            ServerStatus::Configured | ServerStatus::Started { .. } => {
                let why = |suspension: Suspension| {
                    let lock = lock.as_ref().map_or_else(String::new, |path| path.display().to_string());
                    let why = format!(
                        "it is suspended, because it is not what {lock} approved; `toolwright mcp lock --name {name}` approves it"
                    );
                    (suspension.tool, why)
                };
                let suspended = state.suspended.into_iter().map(why).collect();
                Ok(ServerTools { tools, left_out: state.left_out, suspended, source: Some(Arc::new(server)) })
            }
        }
    }

    /// What happens when a server has listed its tools again: what is suspended now and was not before is
    /// reported.
    fn watch(
        &self,
        name: &str,
        lock: Option<PathBuf>,
        listeners: Listeners,
    ) -> impl Fn(&toolwright_mcp::ServerState) + Send + Sync + 'static {
        let (on_suspended, name) = (self.servers.on_suspended.clone(), name.to_owned());
        let before: Mutex<Vec<Suspension>> = Mutex::default();
        move |state| {
            let mut before = toolwright_util::lock(&before);
            if let Some(told) = &on_suspended {
                let new = state.suspended.iter().filter(|suspension| !before.contains(suspension));
                new.for_each(|suspension| told(&name, suspension, lock.as_deref()));
            }
            before.clone_from(&state.suspended);
            listeners.notify();
        }
    }

    /// Where a server is, as the file says it.
    async fn target(&self, server: &Server) -> Result<Target, ToolError> {
        Ok(match server {
            Server::Stdio { command, args, env, cwd, sandbox: None, .. } => {
                let mut command = ServerCommand::new(command).args(args);
                if let Some(folder) = cwd {
                    command = command.folder(folder);
                }
                env.iter().fold(command, |command, (name, value)| command.env(name, value)).into()
            }
            #[cfg(feature = "sandbox")]
            Server::Stdio { command, args, env, cwd, sandbox: Some(policy), .. } => {
                let mut command = toolwright_core::ExecRequest::new(std::iter::once(command).chain(args));
                command.cwd.clone_from(cwd);
                command.env.extend(env.clone());
                let environment = self.known.variables();
                let opened = crate::file::open_policy(policy.clone(), command, environment).await;
                let (sandbox, command) = opened?;
                Target::Sandboxed { sandbox, command }
            }
            #[cfg(not(feature = "sandbox"))]
            Server::Stdio { sandbox: Some(_), .. } => {
                return Err(ToolError::new("the server is to run in a sandbox, and this program has none"));
            }
            Server::Http { url, headers, sse, timeout, read_timeout, .. } => {
                let mut target = HttpTarget::new(url).proxies(self.known.through().clone());
                for (name, value) in headers {
                    target = target.header(name, toolwright_core::Secret::new(value.as_str()));
                }
                if let Some(tokens) = &self.servers.oauth {
                    target = target.oauth(tokens());
                }
                target = if *sse { target.legacy_sse() } else { target };
                target = timeout.map_or(target.clone(), |time| target.timeout(time));
                read_timeout.map_or(target.clone(), |time| target.sse_read_timeout(time)).into()
            }
        })
    }
}

/// Called when a server has listed its tools again.
type Listener = Box<dyn Fn() + Send + Sync>;

/// The listeners for changed tools of servers.
#[derive(Clone, Default)]
pub(super) struct Listeners(Arc<RwLock<Vec<Listener>>>);

impl Listeners {
    pub(super) fn add(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    fn notify(&self) {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().for_each(|listener| listener());
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

/// Waits for all of these at the same time. They are few, so each is polled whenever one wakes; dropping this
/// drops them.
async fn all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut left: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
    let mut done = Vec::with_capacity(left.len());
    poll_fn(|context| {
        left.retain_mut(|future| match future.as_mut().poll(context) {
            Poll::Ready(value) => {
                done.push(value);
                false
            }
            Poll::Pending => true,
        });
        if left.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done
}
