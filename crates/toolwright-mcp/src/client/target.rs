//! Where a server is: a process to start, an address, or a process in a sandbox.

use std::sync::Arc;
use std::time::Duration;

use toolwright_core::{DynSandbox, ExecRequest, Secret};
use toolwright_net::Proxies;

use super::command_text::without_secrets;
use crate::oauth::OAuthOptions;
use crate::transport::secret_scrubber::holds_credentials;
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
        sandbox: Arc<DynSandbox>,
        /// What to start in it.
        command: ExecRequest,
    },
}

/// A server with an address.
#[derive(Clone)]
pub struct HttpTarget {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) connect: Duration,
    pub(crate) read: Duration,
    pub(crate) legacy: bool,
    pub(crate) oauth: Option<OAuthOptions>,
    pub(crate) proxies: Arc<Proxies>,
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
            proxies: Arc::default(),
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

    /// Gets a token where the server asks for one, unless a header `Authorization` is sent.
    #[must_use]
    pub fn oauth(mut self, options: OAuthOptions) -> Self {
        self.oauth = Some(options);
        self
    }

    /// Reaches the server, and the authorization server it names, through these proxies; a server on this
    /// machine never is behind one.
    #[must_use]
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = Arc::new(proxies);
        self
    }

    /// The address without what may be secret in it: who logs in, and the values of its query.
    pub fn to_text(&self) -> String {
        let (place, query) =
            self.url.split_once('?').map_or((&*self.url, None), |(at, more)| (at, Some(more)));
        let place = place.split('#').next().unwrap_or_default();
        let mut text = match place.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) =
                    rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
                let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
                path.map_or(format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
            }
            None => place.to_owned(),
        };
        for (number, pair) in query.into_iter().flat_map(|query| query.split(['&', '#'])).enumerate() {
            text.push(if number == 0 { '?' } else { '&' });
            let name = pair.split_once('=').map(|(name, _)| name);
            text.push_str(&name.map_or("...".to_owned(), |name| format!("{name}=...")));
        }
        text
    }
}

impl Target {
    /// The target as a person would write it. It holds no secrets.
    pub fn to_text(&self) -> String {
        match self {
            Target::Command(command) => command.to_text(),
            Target::Http(target) => target.to_text(),
            Target::Sandboxed { command, .. } => {
                let given = command.env.iter().filter(|(name, _)| holds_credentials(name));
                let secrets: Vec<Secret> = given.map(|(_, value)| Secret::new(value.as_str())).collect();
                without_secrets(&command.command, &secrets)
            }
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

impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HttpTarget").field(&self.to_text()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        for (url, shown) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://me:pw@a.example:8080/mcp@2", "https://a.example:8080/mcp@2"),
            ("https://a.example/mcp?key=s3cret&v=1#x", "https://a.example/mcp?key=...&v=...&..."),
            ("https://a.example?s3cret", "https://a.example?..."),
            ("https://me:pw@a.example", "https://a.example"),
            ("nonsense", "nonsense"),
        ] {
            let target = HttpTarget::new(url);
            assert_eq!(target.to_text(), shown);
            assert_eq!(Target::from(target).to_text(), shown);
        }
    }
}
