//! The description of a supervised server, before it is started.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use toolwright_core::Patterns;

use super::{
    Inner, LIST_PAUSE, McpServer, Offer, OnListed, PinMode, ServerState, SourceStatus, StderrTail, Timeouts,
};
use crate::client::{Answers, ClientOptions, OnLog, OnToolsChanged, Target};
use crate::lock::LockedServer;

/// How long a call may take, unless told otherwise.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// What happens to tools whose definition differs from the approved one.
#[derive(Debug, Clone, Default)]
pub enum Pinning {
    /// The first listing counts as approved for as long as the program runs. New tools are offered.
    #[default]
    FirstSeen,
    /// Only the tools that a lock approved are offered.
    Locked(LockedServer),
    /// Every listed tool is offered.
    Off,
}

/// Builds an [`McpServer`].
pub struct McpServerBuilder {
    name: Arc<str>,
    target: Target,
    options: ClientOptions,
    patterns: Option<Vec<String>>,
    prefix: String,
    timeout: Duration,
    timeouts: Vec<(String, Duration)>,
    pinning: Pinning,
    required: bool,
    trusted: bool,
    reading: bool,
    first_pause: Duration,
    on_listed: Option<OnListed>,
}

impl McpServerBuilder {
    pub(super) fn new(name: Arc<str>, target: Target) -> Self {
        let options = ClientOptions { name: name.to_string(), ..ClientOptions::default() };
        McpServerBuilder {
            name,
            target,
            options,
            patterns: None,
            prefix: String::new(),
            timeout: DEFAULT_CALL_TIMEOUT,
            timeouts: Vec::new(),
            pinning: Pinning::default(),
            required: false,
            trusted: false,
            reading: false,
            first_pause: Duration::from_millis(500),
            on_listed: None,
        }
    }

    /// Offers only the tools that match, by the server's names; a pattern with a leading `!` takes names
    /// away.
    #[must_use]
    pub fn tools<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.patterns = Some(patterns.into_iter().map(Into::into).collect());
        self
    }

    /// Sets a prefix for each name.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long a call may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long calls of the tools that match may take; the first pattern that matches counts.
    #[must_use]
    pub fn tool_timeout(mut self, pattern: impl Into<String>, timeout: Duration) -> Self {
        self.timeouts.push((pattern.into(), timeout));
        self
    }

    /// Sets what happens to tools whose definition differs from the approved one.
    #[must_use]
    pub fn pinning(mut self, pinning: Pinning) -> Self {
        self.pinning = pinning;
        self
    }

    /// Makes a failed start an error of the run. Otherwise its tools are missing, and its state has the
    /// reason.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Offers the server's resources and prompts as tools too: `list_resources`, `read_resource`,
    /// `list_prompts`, `get_prompt`.
    #[must_use]
    pub fn reading_tools(mut self) -> Self {
        self.reading = true;
        self
    }

    /// Believes the server's claims about its tools' effects. Otherwise a tool that claims to change nothing
    /// is treated like one without claims, because policies approve read-only tools without asking.
    #[must_use]
    pub fn trust_annotations(mut self) -> Self {
        self.trusted = true;
        self
    }

    /// Receives what the server writes for people: stderr and log messages, line by line.
    #[must_use]
    pub fn on_log(mut self, on_log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let on_log: OnLog = Arc::new(on_log);
        self.options.on_log = Some(on_log);
        self
    }

    /// Sets who answers the server's questions: a person, a model. Without this, no capability is offered to
    /// it.
    #[must_use]
    pub fn answers(mut self, answers: Answers) -> Self {
        self.options.answers = answers;
        self
    }

    /// Called when the tools were listed again: the server announced a change, or was started again. With
    /// this, changed tools are listed at once, and not only when they are needed next.
    #[must_use]
    pub fn on_listed(mut self, on_listed: impl Fn(&ServerState) + Send + Sync + 'static) -> Self {
        self.on_listed = Some(Arc::new(on_listed));
        self
    }

    /// Changes how the session behaves.
    #[must_use]
    pub fn options(mut self, change: impl FnOnce(&mut ClientOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// The pause after the first failure; each further failure doubles it, up to 30 seconds.
    #[must_use]
    pub fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// The server; nothing is started yet.
    pub fn build(mut self) -> McpServer {
        let (pins, pinning) = match self.pinning {
            Pinning::FirstSeen => (LockedServer::default(), PinMode::FirstSeen),
            Pinning::Locked(lock) => (lock, PinMode::Locked),
            Pinning::Off => (LockedServer::default(), PinMode::Off),
        };
        let stderr_tail = StderrTail::default();
        let (tail, on_log) = (stderr_tail.clone(), self.options.on_log.take());
        let listener = on_log.clone();
        self.options.on_log = Some(Arc::new(move |line| {
            tail.add(line);
            if let Some(listener) = &listener {
                listener(line);
            }
        }));
        let eager = self.on_listed.is_some();
        let inner = |me: &Weak<Inner>| Inner {
            name: self.name,
            target: self.target,
            options: ClientOptions {
                on_tools_changed: eager.then(|| listing_soon(me.clone())),
                ..self.options
            },
            offer: Offer {
                patterns: self.patterns.map_or_else(|| Patterns::new(["*"]), Patterns::new),
                prefix: self.prefix,
                pinning,
                trusted: self.trusted,
                reading: self.reading,
            },
            timeouts: Timeouts { call: self.timeout, by_tool: self.timeouts, first_pause: self.first_pause },
            required: self.required,
            on_log,
            on_listed: self.on_listed,
            stderr_tail,
            live: tokio::sync::Mutex::default(),
            seen: Mutex::new(SourceStatus { pins, ..SourceStatus::default() }),
        };
        McpServer { inner: Arc::new_cyclic(inner), made: Arc::default() }
    }
}

/// Lists the tools of a server whenever it announces a change, with pauses.
fn listing_soon(server: Weak<Inner>) -> OnToolsChanged {
    Arc::new(move || {
        let server = server.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LIST_PAUSE).await;
                let Some(server) = server.upgrade() else { return };
                // A server that ended is started again by a call of it.
                let there = server.seen().client.clone().filter(|client| client.closed().is_none());
                let Some(client) = there else { return };
                if !client.tools_changed() || server.session().await.is_err() {
                    return;
                }
            }
        });
    })
}
