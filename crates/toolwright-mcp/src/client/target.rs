//! Where a server is: a process to start, an address, or a process in a sandbox.

use std::sync::Arc;
use std::time::Duration;

use toolwright_core::{ExecRequest, Sandbox, Secret};

use crate::oauth::OAuthOptions;
use crate::transport::stdio::ServerCommand;

/// Where a server is.
#[derive(Clone)]
#[non_exhaustive]
pub enum Target {
    /// A process of this machine.
    Command(ServerCommand),
    /// An address.
    Http(HttpTarget),
    /// A process in a sandbox.
    Sandboxed {
        /// The sandbox.
        sandbox: Arc<dyn Sandbox>,
        /// What to start in it.
        command: ExecRequest,
    },
}

/// A server with an address.
#[derive(Debug, Clone)]
pub struct HttpTarget {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) connect: Duration,
    pub(crate) read: Duration,
    pub(crate) legacy: bool,
    pub(crate) oauth: Option<OAuthOptions>,
}

impl HttpTarget {
    /// A server at this address.
    pub fn new(url: impl Into<String>) -> Self {
        HttpTarget {
            url: url.into(),
            headers: Vec::new(),
            connect: Duration::from_secs(10),
            read: Duration::from_secs(300),
            legacy: false,
            oauth: None,
        }
    }

    /// Sends this header with every request. The value is treated as a secret.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// The longest to wait for a connection.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.connect = time;
        self
    }

    /// The longest silence of a stream.
    #[must_use]
    pub fn sse_read_timeout(mut self, time: Duration) -> Self {
        self.read = time;
        self
    }

    /// Speaks the transport of 2024-11-05: one stream of events for all answers.
    #[must_use]
    pub fn legacy_sse(mut self) -> Self {
        self.legacy = true;
        self
    }

    /// Gets a token where the server asks for one.
    #[must_use]
    pub fn oauth(mut self, options: OAuthOptions) -> Self {
        self.oauth = Some(options);
        self
    }
}

impl Target {
    /// The target as a person would write it. It holds no secrets.
    pub fn to_text(&self) -> String {
        match self {
            Target::Command(command) => command.to_text(),
            Target::Http(target) => target.url.clone(),
            Target::Sandboxed { command, .. } => command.command.join(" "),
        }
    }
}

impl From<ServerCommand> for Target {
    fn from(command: ServerCommand) -> Self {
        Target::Command(command)
    }
}

impl From<HttpTarget> for Target {
    fn from(target: HttpTarget) -> Self {
        Target::Http(target)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Target").field(&self.to_text()).finish()
    }
}
