//! What files import from outside: tools by the names other systems give them, tools that look things up, MCP servers.

#[cfg(feature = "mcp")]
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "mcp")]
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
#[cfg(feature = "tools")]
use toolwright_core::Toolset;
use toolwright_core::{Tool, ToolError};
use toolwright_lang::Imports;
#[cfg(feature = "mcp")]
use toolwright_lang::{Server, ServerTools};
#[cfg(feature = "mcp")]
use toolwright_mcp::Proxies;
#[cfg(feature = "mcp")]
use toolwright_mcp::{
    Answers, HttpTarget, LockFile, LockedServer, McpServer, OAuthOptions, Pinning, ServerCommand,
    ServerState, ServerStatus, Suspension, Target,
};
#[cfg(all(feature = "tools", not(feature = "mcp")))]
use toolwright_tools::Proxies;

/// Finds what files import, for [`Host::imports`](crate::lang::Host::imports): tools by the names other systems give them
/// (feature `tools`), tools that look things up (`data`), and the tools of MCP servers (`mcp`).
///
/// ```
/// use toolwright::file::{Importer, ToolFile};
/// use toolwright::lang::{Host, Source};
///
/// let host = Host::new().imports(Importer::new());
/// let file = ToolFile::load(Source::text("t.yaml", "tools: []"), host)?;
/// # Ok::<(), toolwright::lang::LoadError>(())
/// ```
///
/// MCP servers are started while the file is loaded, and end with the last of their tools. That needs a runtime of tokio
/// with several threads; nothing else does.
#[derive(Default)]
pub struct Importer {
    #[cfg(feature = "data")]
    data: Option<toolwright_data::DataTools>,
    #[cfg(feature = "mcp")]
    answers: Option<AnswersFor>,
    #[cfg(feature = "mcp")]
    oauth: Option<TokensFor>,
    #[cfg(feature = "mcp")]
    locks: Vec<PathBuf>,
    #[cfg(feature = "mcp")]
    on_suspended: Option<OnSuspended>,
    #[cfg(feature = "mcp")]
    on_listed: Option<Arc<dyn Fn() + Send + Sync>>,
    #[cfg(feature = "mcp")]
    allowed: Option<Allowed>,
    #[cfg(any(feature = "tools", feature = "mcp"))]
    proxies: Proxies,
}

/// Who answers a server of a file.
#[cfg(feature = "mcp")]
type AnswersFor = Arc<dyn Fn(&Server) -> Answers + Send + Sync>;

/// How a client comes by the tokens of a server that wants one.
#[cfg(feature = "mcp")]
type TokensFor = Arc<dyn Fn() -> OAuthOptions + Send + Sync>;

/// Is told the name of a server, which of its tools is not what was approved, and the lock that says so; without one it is not
/// what it was when the server was started.
#[cfg(feature = "mcp")]
type OnSuspended = Arc<dyn Fn(&str, &Suspension, Option<&Path>) + Send + Sync>;

/// Whether a server of a file, with its name, may be started or reached.
#[cfg(feature = "mcp")]
type Allowed = Arc<dyn Fn(&str, &Server) -> Result<(), ToolError> + Send + Sync>;

impl Importer {
    /// An importer that lends nothing of its own: servers get no answers, and tools that look things up are not known.
    pub fn new() -> Self {
        Importer::default()
    }

    /// Makes tools that look things up.
    #[cfg(feature = "data")]
    #[must_use]
    pub fn data(mut self, data: toolwright_data::DataTools) -> Self {
        self.data = Some(data);
        self
    }

    /// Says who answers what a server asks.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn answers(mut self, answers: impl Fn(&Server) -> Answers + Send + Sync + 'static) -> Self {
        self.answers = Some(Arc::new(answers));
        self
    }

    /// Says how to come by the token of a server that asks for one. Servers that are sent an `Authorization` of the file's own
    /// are not asked for another.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn oauth(mut self, tokens: impl Fn() -> OAuthOptions + Send + Sync + 'static) -> Self {
        self.oauth = Some(Arc::new(tokens));
        self
    }

    /// Offers only what this file of approved definitions says, for the servers it names. It need not be there. Of several,
    /// the first that names a server counts for it.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn lock(mut self, path: impl Into<PathBuf>) -> Self {
        self.locks.push(path.into());
        self
    }

    /// Is told about tools that are left out because they are not what was approved: by a lock, or by being what the server
    /// listed first. They may become so at any time.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn on_suspended(
        mut self,
        told: impl Fn(&str, &Suspension, Option<&Path>) + Send + Sync + 'static,
    ) -> Self {
        self.on_suspended = Some(Arc::new(told));
        self
    }

    /// Is told when a server has listed its tools again, because they changed or it was started again.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn on_listed(mut self, told: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_listed = Some(Arc::new(told));
        self
    }

    /// The proxies on the way to pages that tools fetch, and to MCP servers with an address; none when nothing is said. Tools
    /// that look things up have their own. Names that a proxy resolves are not held to the public internet.
    #[cfg(any(feature = "tools", feature = "mcp"))]
    #[must_use]
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Is asked before a server is started or reached; the error says why it is not. Without this, all of them are: whoever
    /// loads a file trusts the commands in it.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn allow(
        mut self,
        allowed: impl Fn(&str, &Server) -> Result<(), ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.allowed = Some(Arc::new(allowed));
        self
    }
}

impl std::fmt::Debug for Importer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Importer").finish_non_exhaustive()
    }
}

impl Imports for Importer {
    fn tool(&self, reference: &str, config: &Value) -> Option<Result<Arc<dyn Tool>, ToolError>> {
        #[cfg(feature = "tools")]
        if let Some(tool) = toolwright_tools::configured_through(reference, config, &self.proxies) {
            return Some(tool.map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        }
        #[cfg(feature = "data")]
        if let Some(tool) = self.data.as_ref().and_then(|data| data.tool(reference, config)) {
            return Some(tool.map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        }
        let _ = (reference, config);
        None
    }

    #[cfg(feature = "tools")]
    fn toolkit(&self, reference: &str) -> Option<Result<Toolset, ToolError>> {
        let set = toolwright_tools::toolkit(reference)?;
        Some(set.map_err(|error| ToolError::new(error.to_string())))
    }

    /// Starts or reaches the server and lists its tools. It ends with the last of them.
    #[cfg(feature = "mcp")]
    fn server(&self, name: &str, server: &Server) -> Result<ServerTools, ToolError> {
        if let Some(allowed) = &self.allowed {
            allowed(name, server)?;
        }
        let answers = self.answers.as_ref().map(|answers| answers(server)).unwrap_or_default();
        let mut builder =
            McpServer::builder(name, target(server, self.oauth.as_ref(), &self.proxies)?).answers(answers);
        let trust = server.trust();
        builder = trust.call_timeout.into_iter().fold(builder, |builder, time| builder.timeout(time));
        let each = trust.tool_timeouts.iter();
        builder = each.fold(builder, |builder, (pattern, time)| builder.tool_timeout(pattern, *time));
        builder = if trust.reading_tools { builder.reading_tools() } else { builder };
        let locked = locked(&self.locks, name)?;
        if let Some((lock, _)) = &locked {
            builder = builder.pinning(Pinning::Locked(lock.clone()));
        }
        let lock = locked.map(|(_, path)| path.to_owned());
        let server = builder.on_listed(self.watch(name, lock.clone())).build();
        // Files are read once, before anything else happens, so nobody is kept waiting.
        let tools = wait(async { toolwright_core::ToolSource::tools(&server).await })??;
        let state = server.state();
        if let Some(told) = &self.on_suspended {
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
}

#[cfg(feature = "mcp")]
impl Importer {
    /// What happens when a server has listed its tools again: what is suspended now and was not before is told.
    fn watch(&self, name: &str, lock: Option<PathBuf>) -> impl Fn(&ServerState) + Send + Sync + 'static {
        let (on_suspended, on_listed, name) =
            (self.on_suspended.clone(), self.on_listed.clone(), name.to_owned());
        let before: Mutex<Vec<Suspension>> = Mutex::default();
        move |state| {
            let mut before = before.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(told) = &on_suspended {
                let new = state.suspended.iter().filter(|suspension| !before.contains(suspension));
                new.for_each(|suspension| told(&name, suspension, lock.as_deref()));
            }
            before.clone_from(&state.suspended);
            on_listed.iter().for_each(|told| told());
        }
    }
}

/// Where a server is, as the file says it.
#[cfg(feature = "mcp")]
fn target(server: &Server, tokens: Option<&TokensFor>, proxies: &Proxies) -> Result<Target, ToolError> {
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
            let (sandbox, command) = wait(super::open_policy(policy.clone(), command))??;
            Target::Sandboxed { sandbox, command }
        }
        #[cfg(not(feature = "sandbox"))]
        Server::Stdio { sandbox: Some(_), .. } => {
            return Err(ToolError::new("the server is to run in a sandbox, and this program has none"));
        }
        Server::Http { url, headers, sse, timeout, read_timeout, .. } => {
            let mut target = HttpTarget::new(url).proxies(proxies.clone());
            for (name, value) in headers {
                target = target.header(name, toolwright_core::Secret::new(value.as_str()));
            }
            if let Some(tokens) = tokens {
                target = target.oauth(tokens());
            }
            target = if *sse { target.legacy_sse() } else { target };
            target = timeout.map_or(target.clone(), |time| target.timeout(time));
            read_timeout.map_or(target.clone(), |time| target.sse_read_timeout(time)).into()
        }
    })
}

/// What was approved of a server, if anything was, and where that stands.
#[cfg(feature = "mcp")]
fn locked<'l>(locks: &'l [PathBuf], name: &str) -> Result<Option<(LockedServer, &'l Path)>, ToolError> {
    for path in locks.iter().filter(|path| path.exists()) {
        let mut file = LockFile::load(path).map_err(|error| ToolError::new(error.to_string()))?;
        if let Some(server) = file.servers.remove(name) {
            return Ok(Some((server, path)));
        }
    }
    Ok(None)
}

/// Waits for work on the runtime that is there; an error when it has no thread to spare.
#[cfg(feature = "mcp")]
fn wait<T>(work: impl Future<Output = T>) -> Result<T, ToolError> {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use tokio::runtime::{Handle, RuntimeFlavor};
    let refused = || {
        let message = "MCP servers can be started only inside a runtime of tokio with several threads";
        ToolError::new(message)
            .hint("use `#[tokio::main]` as it is, and load the file inside it, not inside a `LocalSet`")
    };
    let handle = Handle::try_current().map_err(|_| refused())?;
    if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Err(refused());
    }
    // Inside a `LocalSet` tokio panics before it begins, and there is no other way to learn of one.
    let mut began = false;
    let waited = catch_unwind(AssertUnwindSafe(|| {
        tokio::task::block_in_place(|| {
            began = true;
            handle.block_on(work)
        })
    }));
    match waited {
        Ok(done) => Ok(done),
        Err(panic) if began => resume_unwind(panic),
        Err(_) => Err(refused()),
    }
}

#[cfg(all(test, feature = "mcp"))]
mod tests {
    use super::*;

    #[test]
    fn where_no_thread_can_be_spared_that_is_an_error_and_not_a_panic() {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let alone = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(wait(async {}).is_err());
        assert!(alone.block_on(async { wait(async {}) }).is_err());
        assert!(threads.block_on(async { wait(async {}) }).is_ok());
        let set = tokio::task::LocalSet::new();
        let error = set.block_on(&threads, async { wait(async {}) }).unwrap_err();
        assert!(error.message().contains("several threads"), "{error}");
    }
}
