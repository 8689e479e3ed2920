//! HTTP clients: TLS that trusts what the system trusts, bounded waits, chosen proxies, judged addresses.

use std::sync::Arc;
use std::time::Duration;

use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::proxy::{Proxies, ProxyError};
use crate::reach::Reach;
use crate::resolve::JudgedNames;

/// Why there can be no connection at all.
#[derive(Debug)]
pub enum SetupError {
    /// The system's certificates cannot be used.
    Tls(rustls::Error),
    /// The proxies cannot be used.
    Proxy(ProxyError),
    /// The rest.
    Http(reqwest::Error),
}

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SetupError::Tls(_) => f.write_str("cannot set up TLS"),
            SetupError::Proxy(error) => error.fmt(f),
            SetupError::Http(_) => f.write_str("cannot set up HTTP"),
        }
    }
}

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SetupError::Tls(cause) => Some(cause),
            SetupError::Proxy(_) => None,
            SetupError::Http(cause) => Some(cause),
        }
    }
}

/// What dials. `connect` bounds the time for a connection, `read` the silence before the first byte and
/// between two. TLS trusts what the system trusts; a client that will only ever make plain connections
/// (`https` is false) loads no certificates, which takes time and fails on machines that have none.
pub fn client(https: bool, connect: Duration, read: Duration) -> Result<reqwest::Client, SetupError> {
    Dial { https, connect, read, proxies: Proxies::none(), reach: Reach::Anywhere }.client()
}

/// How to dial.
#[derive(Debug, Clone)]
pub struct Dial {
    /// Whether there will be connections with TLS.
    pub https: bool,
    /// The longest to wait for a connection.
    pub connect: Duration,
    /// The longest silence.
    pub read: Duration,
    /// Which proxies to go through.
    pub proxies: Proxies,
    /// Where connections may go. A proxy resolves names itself, so `Public` holds for what it is asked for by
    /// address only. Proxies are exempt: a person named them. So code that dials an address from outside asks
    /// [`Proxies::refusal`] first, which keeps it from being theirs.
    pub reach: Reach,
}

impl Dial {
    /// What dials so.
    pub fn client(&self) -> Result<reqwest::Client, SetupError> {
        self.client_with(tls(self.https).map_err(SetupError::Tls)?, 0)
    }

    /// What dials so with this TLS, to one port if addresses are judged with theirs.
    pub(crate) fn client_with(
        &self,
        tls: rustls::ClientConfig,
        port: u16,
    ) -> Result<reqwest::Client, SetupError> {
        if let Some(error) = self.proxies.unusable() {
            return Err(SetupError::Proxy(error.clone()));
        }
        let failed = |cause: reqwest::Error| SetupError::Http(cause.without_url());
        let mut builder = reqwest::Client::builder()
            .connect_timeout(self.connect)
            .read_timeout(self.read)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls);
        for proxy in self.proxies.to_reqwest().map_err(failed)? {
            builder = builder.proxy(proxy);
        }
        if self.reach != Reach::Anywhere {
            let (reach, proxies) = (self.reach.clone(), self.proxies.names());
            builder = builder.dns_resolver(JudgedNames { reach, port, proxies });
        }
        builder.build().map_err(failed)
    }
}

pub(crate) fn tls(wanted: bool) -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = if wanted {
        builder.with_platform_verifier()?
    } else {
        builder.with_root_certificates(rustls::RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}
