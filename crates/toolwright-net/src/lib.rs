//! How Toolwright dials. Models and MCP servers are reached through [`client`], and nothing else connects to anything.
//!
//! It reads no environment: no proxy variables, no credentials. Redirects are never followed, because they could carry
//! a key to another host.

mod sse;

use std::sync::Arc;
use std::time::Duration;

use rustls_platform_verifier::BuilderVerifierExt as _;

pub use reqwest;
pub use sse::{SseError, SseEvent, SseReader};

/// Why there can be no connection at all.
#[derive(Debug)]
pub enum SetupError {
    /// The system's certificates cannot be used.
    Tls(rustls::Error),
    /// The rest.
    Http(reqwest::Error),
}

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SetupError::Tls(_) => "cannot set up TLS",
            SetupError::Http(_) => "cannot set up HTTP",
        })
    }
}

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SetupError::Tls(cause) => Some(cause),
            SetupError::Http(cause) => Some(cause),
        }
    }
}

/// What dials. `connect` bounds the time for a connection, `read` the silence before the first byte and between two.
/// TLS trusts what the system trusts; a client that will only ever make plain connections (`https` is false) loads no
/// certificates, which takes time and fails on machines that have none.
pub fn client(https: bool, connect: Duration, read: Duration) -> Result<reqwest::Client, SetupError> {
    reqwest::Client::builder()
        .connect_timeout(connect)
        .read_timeout(read)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls(https).map_err(SetupError::Tls)?)
        .build()
        .map_err(|cause| SetupError::Http(cause.without_url()))
}

fn tls(wanted: bool) -> Result<rustls::ClientConfig, rustls::Error> {
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
