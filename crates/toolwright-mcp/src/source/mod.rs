//! A server under supervision, whose tools a run can use.
//!
//! The server is started when its tools are first asked for, shared by all calls, and started again with
//! growing pauses after it ended. A model sees what a person, or the first listing, approved: a tool
//! whose definition changed is suspended.

mod builder;
mod reading;
mod stderr_tail;
mod tool;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;
use toolwright_core::schema::Schema;
use toolwright_core::text::visible;
use toolwright_core::{Patterns, Tool as _, ToolError, ToolSource, Toolset};
use toolwright_util::lock;

pub use self::builder::{DEFAULT_CALL_TIMEOUT, McpServerBuilder, Pinning};

use self::stderr_tail::StderrTail;
use self::tool::McpTool;
use crate::client::{Client, ClientOptions, Listing, OnLog, Target};
use crate::error::{McpError, McpErrorKind};
use crate::lock::{Identity, LockedServer, Suspension, fingerprint};
use crate::protocol::ToolDefinition;

/// The longest pause before a server is started again.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// A server that ran at least this long did not fail at the start.
const SETTLED: Duration = Duration::from_secs(10);

/// After a failure, listing tools skips the server for so many times as long as the failure took, twice as
/// long after each further one, up to the longest. Otherwise a model would wait for it at every turn.
const REST: u32 = 10;
const LONGEST_REST: Duration = Duration::from_secs(3600);

/// Changed tools are listed again at most this often.
const LIST_PAUSE: Duration = Duration::from_millis(100);

/// The most that the patterns in the schemas of one server may take once they are compiled, in bytes.
const MAX_PATTERNS: usize = 64 * 1024 * 1024;

/// A server whose tools a run can use. Cloning shares it; the last clone to go ends the server.
///
/// ```no_run
/// use toolwright_mcp::{McpServer, ServerCommand};
///
/// let command = ServerCommand::new("npx").args(["-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"]);
/// let files = McpServer::builder("files", command).tools(["read_*", "list_*"]).prefix("files_").build();
/// # let _ = files;
/// ```
#[derive(Clone)]
pub struct McpServer {
    inner: Arc<Inner>,
    /// The tools made from the last listing. They hold `inner`, so `inner` must not hold them.
    made: Arc<Mutex<Option<(u64, Toolset)>>>,
}

struct Inner {
    name: Arc<str>,
    target: Target,
    options: ClientOptions,
    offer: Offer,
    timeouts: Timeouts,
    /// Whether a run fails when the server does not start.
    required: bool,
    on_log: Option<OnLog>,
    on_listed: Option<OnListed>,
    stderr_tail: StderrTail,
    /// Held while a server is started or listed, so that this happens once.
    live: tokio::sync::Mutex<SessionState>,
    seen: Mutex<SourceStatus>,
}

/// Which of the server's tools are offered, and how.
struct Offer {
    patterns: Patterns,
    prefix: String,
    pinning: PinMode,
    /// Whether claims about a tool's effects are believed.
    trusted: bool,
    /// Whether resources and prompts are offered as tools.
    reading: bool,
}

/// What becomes of tools whose definition differs from the approved one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PinMode {
    Off,
    FirstSeen,
    Locked,
}

/// How long calls and pauses take.
struct Timeouts {
    call: Duration,
    /// For the tools that match; the first pattern counts.
    by_tool: Vec<(String, Duration)>,
    first_pause: Duration,
}

impl Timeouts {
    /// How long a call of this tool may take.
    fn of(&self, tool: &str) -> Duration {
        let own = self.by_tool.iter().find(|(pattern, _)| toolwright_core::glob_match(pattern, tool));
        own.map_or(self.call, |(_, timeout)| *timeout)
    }
}

/// Receives the state of the server when its tools were listed again.
type OnListed = Arc<dyn Fn(&ServerState) + Send + Sync>;

/// The session, and what is remembered of earlier ones.
#[derive(Default)]
struct SessionState {
    started: Option<Instant>,
    listed: Option<Instant>,
    failures: u32,
    retry_at: Option<Instant>,
}

/// What can be read without waiting.
#[derive(Default)]
struct SourceStatus {
    client: Option<Arc<Client>>,
    failure: Option<McpError>,
    /// Until when it is not started or listed merely for its tools.
    rests_until: Option<Instant>,
    starts: u32,
    /// Counts the listings; 0 before the first.
    listings: u64,
    /// The tools on offer and their hashes, in the server's order.
    offered: Vec<(ToolDefinition, String)>,
    pins: LockedServer,
    /// The last definitions, so that a suspended one can be approved.
    listed: Vec<ToolDefinition>,
    suspended: Vec<Suspension>,
    left_out: Vec<(String, String)>,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStatus {
    /// Not started yet.
    Configured,
    /// Running.
    Started {
        /// Its process.
        pid: Option<u32>,
        /// The revision in use.
        version: String,
    },
    /// Not running; it is started again when it is needed.
    Failed {
        /// The reason.
        why: String,
    },
}

/// A server as a person sees it.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerState {
    /// Whether it runs.
    pub status: ServerStatus,
    /// How often it was started.
    pub starts: u32,
    /// The tools on offer.
    pub tools: Vec<String>,
    /// The tools that wait for approval, and why.
    pub suspended: Vec<Suspension>,
    /// The tools that cannot be used, and why.
    pub left_out: Vec<(String, String)>,
    /// The last lines it wrote for people, each of bounded length.
    pub last_output: Vec<String>,
}

impl McpServer {
    /// A server that is started with a command, or has an address, under a name for messages.
    pub fn builder(name: impl Into<Arc<str>>, target: impl Into<Target>) -> McpServerBuilder {
        McpServerBuilder::new(name.into(), target.into())
    }

    /// The server as it is now. Nothing is started for it.
    pub fn state(&self) -> ServerState {
        self.inner.state()
    }

    /// Approves a suspended tool as the server lists it now; false when it lists none of that name.
    pub fn approve(&self, tool: &str) -> bool {
        let mut seen = self.inner.seen();
        let Some(definition) = seen.listed.iter().find(|known| known.name == tool).cloned() else {
            return false;
        };
        seen.pins.approve(&definition);
        let listing = Listing { tools: seen.listed.clone(), left_out: Vec::new() };
        let identity = seen.pins.identity.clone();
        self.inner.review(&mut seen, &identity, listing);
        true
    }

    /// The tools that are approved now, for a lock file. What changed and waits for approval is not among
    /// them, nor what the patterns leave out.
    pub async fn lock(&self) -> Result<LockedServer, McpError> {
        self.inner.session().await?;
        let seen = self.inner.seen();
        let offered: Vec<ToolDefinition> = seen.offered.iter().map(|(tool, _)| tool.clone()).collect();
        Ok(LockedServer::of(seen.pins.identity.clone(), &offered))
    }

    /// The tools of the last listing; `None` before the first.
    fn made(&self) -> Option<Toolset> {
        let (listings, offered) = {
            let seen = self.inner.seen();
            let made = lock(&self.made);
            match &*made {
                _ if seen.listings == 0 => return None,
                Some((of, tools)) if *of == seen.listings => return Some(tools.clone()),
                _ => (seen.listings, seen.offered.clone()),
            }
        };
        let (mut tools, mut left_out, mut patterns) = (Toolset::new(), Vec::new(), 0_usize);
        let origin = format!("the MCP server `{}`", self.inner.name);
        for (definition, hash) in offered {
            let remote = definition.name.clone();
            let schemas = [Some(&definition.input_schema), definition.output_schema.as_ref()];
            for schema in schemas.into_iter().flatten() {
                if patterns > MAX_PATTERNS {
                    break;
                }
                // A schema that has too many is refused for that when it is compiled.
                patterns += Schema::pattern_weight(schema).unwrap_or(MAX_PATTERNS / 4);
            }
            if patterns > MAX_PATTERNS {
                let most = MAX_PATTERNS / (1024 * 1024);
                let problem = format!("the patterns of this server's tools would take more than {most} MiB");
                left_out.push((remote, problem));
                continue;
            }
            let tool = McpTool::new(&self.inner, definition, hash);
            let grown = tool
                .and_then(|tool| tools.clone().with_from(tool, &origin).map_err(|error| error.to_string()));
            match grown {
                Ok(grown) => tools = grown,
                Err(problem) => left_out.push((remote, problem)),
            }
        }
        let client = self.inner.seen().client.clone();
        if let Some(client) = client.filter(|_| self.inner.offer.reading) {
            for tool in reading::tools(&self.inner, &client.info().capabilities) {
                let name = tool.spec().name.to_string();
                match tools.clone().with_from(tool, &origin) {
                    Ok(grown) => tools = grown,
                    Err(problem) => left_out.push((name, problem.to_string())),
                }
            }
        }
        let mut seen = self.inner.seen();
        if seen.listings == listings {
            for (remote, problem) in left_out {
                seen.offered.retain(|(tool, _)| tool.name != remote);
                seen.left_out.push((visible(&remote), visible(&problem)));
            }
            *lock(&self.made) = Some((listings, tools.clone()));
        }
        Some(tools)
    }

    /// Ends the server and everything it started. It is started again when it is needed.
    pub async fn stop(&self) {
        let client = self.inner.seen().client.take();
        if let Some(client) = client {
            client.close().await;
        }
    }
}

/// A start that is aborted when its guard is dropped, unless it is to go on.
struct Starting {
    task: tokio::task::JoinHandle<Result<Arc<Client>, McpError>>,
    goes_on: bool,
}

impl Drop for Starting {
    fn drop(&mut self) {
        if !self.goes_on {
            self.task.abort();
        }
    }
}

/// A change of the tools. It counts as not yet listed when the guard is dropped before `listed` is set.
struct ListingGuard<'a> {
    client: &'a Client,
    listed: bool,
}

impl Drop for ListingGuard<'_> {
    fn drop(&mut self) {
        if !self.listed {
            self.client.note_tools_changed();
        }
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("name", &self.inner.name).field("state", &self.state()).finish()
    }
}

impl ToolSource for McpServer {
    fn name(&self) -> &str {
        &self.inner.name
    }

    async fn tools(&self) -> Result<Toolset, ToolError> {
        let client = self.inner.seen().client.clone();
        // A server that ended is started again by the next call of it, not by everybody else's.
        if client.is_some_and(|client| client.closed().is_some() || !client.tools_changed())
            && let Some(tools) = self.made()
        {
            return Ok(tools);
        }
        if self.inner.rests() && !self.inner.required {
            return Ok(self.made().unwrap_or_default());
        }
        let outcome = self.inner.session().await;
        match (outcome, self.made()) {
            (_, Some(tools)) => Ok(tools),
            (Err(error), None) if self.inner.required => {
                Err(ToolError::fatal(format!("the MCP server `{}`: {error}", self.inner.name)))
            }
            (_, None) => Ok(Toolset::new()),
        }
    }
}

impl Inner {
    fn seen(&self) -> MutexGuard<'_, SourceStatus> {
        lock(&self.seen)
    }

    fn state(&self) -> ServerState {
        let seen = self.seen();
        let status = match (&seen.client, &seen.failure) {
            (Some(client), _) => match client.closed() {
                None => ServerStatus::Started { pid: client.pid(), version: client.info().version.clone() },
                Some(why) => ServerStatus::Failed { why: why.to_string() },
            },
            (None, Some(why)) => ServerStatus::Failed { why: why.to_string() },
            (None, None) => ServerStatus::Configured,
        };
        ServerState {
            status,
            starts: seen.starts,
            tools: seen
                .offered
                .iter()
                .map(|(tool, _)| format!("{}{}", self.offer.prefix, tool.name))
                .collect(),
            suspended: seen.suspended.clone(),
            left_out: seen.left_out.clone(),
            last_output: self.stderr_tail.lines(),
        }
    }

    /// The running session, with its tools listed and reviewed; started if need be.
    async fn session(self: &Arc<Self>) -> Result<Arc<Client>, McpError> {
        let mut live = self.live.lock().await;
        let client = self.seen().client.clone();
        if let Some(client) = client {
            let Some(why) = client.closed() else {
                let rested = live.listed.is_none_or(|at| at.elapsed() >= LIST_PAUSE);
                if rested && client.take_tools_changed() {
                    let since = Instant::now();
                    let mut change = ListingGuard { client: &client, listed: false };
                    if let Err(error) = self.list(&mut live, &client).await {
                        self.rest(since, 0);
                        return Err(error);
                    }
                    change.listed = true;
                    self.seen().rests_until = None;
                }
                return Ok(client);
            };
            let short_lived = live.started.is_some_and(|at| at.elapsed() < SETTLED);
            live.failures = if short_lived { live.failures } else { 0 };
            self.failed(&mut live, why);
        }
        if let Some(at) = live.retry_at
            && at > Instant::now()
        {
            let why = self.seen().failure.as_ref().map_or_else(String::new, ToString::to_string);
            let wait = at.saturating_duration_since(Instant::now());
            return Err(McpError::new(
                McpErrorKind::Closed,
                format!("the server `{}` is down ({why}); next attempt in {wait:.1?}", self.name),
            ));
        }
        self.seen().starts += 1;
        let since = Instant::now();
        live.started = Some(since);
        let started = Client::open(&self.target, self.options.clone()).await;
        let listed = match started {
            Ok(client) => self.list(&mut live, &client).await.map(|()| Arc::new(client)),
            Err(error) => Err(error),
        };
        match listed {
            Ok(client) => {
                live.retry_at = None;
                let mut seen = self.seen();
                (seen.failure, seen.rests_until) = (None, None);
                seen.client = Some(client.clone());
                Ok(client)
            }
            Err(error) => {
                self.rest(since, live.failures);
                self.failed(&mut live, error.clone());
                Err(error)
            }
        }
    }

    /// The running session, for a call that has so much time. A start that takes longer goes on for the calls
    /// that follow.
    async fn session_within(self: &Arc<Self>, time: Duration) -> Result<Arc<Client>, McpError> {
        if let Ok(_nobody_lists) = self.live.try_lock() {
            let client = self.seen().client.clone();
            if let Some(client) = client.filter(|client| client.closed().is_none() && !client.tools_changed())
            {
                return Ok(client);
            }
        }
        let server = self.clone();
        let mut starting =
            Starting { task: tokio::spawn(async move { server.session().await }), goes_on: false };
        match tokio::time::timeout(time, &mut starting.task).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(McpError::new(McpErrorKind::Closed, "the server could not be started")),
            Err(_) => {
                starting.goes_on = true;
                let message = format!("the server `{}` was not ready within {time:?}", self.name);
                Err(McpError::new(McpErrorKind::Timeout, message))
            }
        }
    }

    /// Skips the server for a while when tools are listed, after a failure.
    fn rest(&self, since: Instant, failures: u32) {
        let rest = since.elapsed().saturating_mul(REST << failures.min(10)).min(LONGEST_REST);
        self.seen().rests_until = Some(Instant::now() + rest);
    }

    fn rests(&self) -> bool {
        self.seen().rests_until.is_some_and(|until| until > Instant::now())
    }

    /// Records a failure, and how long to wait before the next attempt. The first restart of a server that
    /// had worked for a while comes at once.
    fn failed(&self, live: &mut SessionState, why: McpError) {
        if live.failures > 0 || self.seen().client.is_none() {
            let doubled = self.timeouts.first_pause.saturating_mul(1 << live.failures.min(10));
            live.retry_at = Some(Instant::now() + doubled.min(MAX_PAUSE));
        }
        live.failures += 1;
        let message = format!("{}: {why}", self.name);
        let mut seen = self.seen();
        let gone = seen.client.take();
        seen.failure = Some(why);
        drop(seen);
        drop(gone);
        // The listener may read the state, so no lock is held.
        if let Some(on_log) = &self.on_log {
            on_log(&message);
        }
    }

    async fn list(self: &Arc<Self>, live: &mut SessionState, client: &Client) -> Result<(), McpError> {
        let has_tools = client.info().capabilities.get("tools").is_some();
        let listing = if has_tools { client.list_tools().await? } else { Listing::default() };
        live.listed = Some(Instant::now());
        let identity = Identity { command: self.target.to_text(), name: client.info().server.name.clone() };
        let again = {
            let mut seen = self.seen();
            self.review(&mut seen, &identity, listing);
            seen.listings > 1
        };
        // The listener may read the state, so no lock is held.
        if let Some(on_listed) = self.on_listed.as_ref().filter(|_| again) {
            on_listed(&self.state());
        }
        Ok(())
    }

    /// Decides which of the listed tools are offered.
    fn review(&self, seen: &mut SourceStatus, identity: &Identity, listing: Listing) {
        let pinning = self.offer.pinning;
        if seen.pins.tools.is_empty() && pinning != PinMode::Locked {
            seen.pins.identity = identity.clone();
        }
        seen.listed = listing.tools.clone();
        seen.left_out = listing.left_out;
        seen.suspended.clear();
        seen.offered.clear();
        for definition in listing.tools.into_iter().filter(|tool| self.offer.patterns.matches(&tool.name)) {
            if pinning == PinMode::FirstSeen && !seen.pins.tools.contains_key(&definition.name) {
                seen.pins.approve(&definition);
            }
            if pinning != PinMode::Off
                && let Some(suspension) = seen.pins.suspends(identity, &definition)
            {
                seen.suspended.push(suspension);
                continue;
            }
            let hash = fingerprint(identity, &definition);
            seen.offered.push((definition, hash));
        }
        seen.listings += 1;
    }
}
