//! JSON over HTTP for the services this crate speaks to: bounded, tried again when that helps, and without a
//! key in any error.

use std::time::Duration;

use serde_json::Value;
use toolwright_core::{ErrorKind, Secret, ToolError, text};
use toolwright_net::reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use toolwright_net::reqwest::{Client, Method, Response, Url};
use toolwright_net::{Dial, Proxies, Reach};

/// The longest to wait for a connection, and for the next byte.
const CONNECT: Duration = Duration::from_secs(10);
const READ: Duration = Duration::from_secs(60);

/// The most bytes of an answer.
const MAX_BODY: usize = 32 << 20;

/// How often a request is made, and the pause before the second time.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// Where a service is, and which proxies lead there. A text is an address that is reached directly.
#[derive(Debug, Clone)]
pub struct Address {
    pub(crate) base: String,
    pub(crate) proxies: Proxies,
}

impl Address {
    /// The address, reached through these proxies.
    #[must_use]
    pub fn through(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }
}

impl<T: Into<String>> From<T> for Address {
    fn from(base: T) -> Self {
        Address { base: base.into(), proxies: Proxies::none() }
    }
}

/// A service at an address.
#[derive(Debug)]
pub(crate) struct Api {
    client: Client,
    base: Url,
    headers: HeaderMap,
    secret: Secret,
}

/// What a service answered: its status and, where the body is JSON, that.
pub(crate) type ServiceResponse = (u16, Value);

impl Api {
    /// The service at an address; `header` proves who asks.
    pub(crate) fn new(address: &Address, header: Option<(&str, String)>) -> Result<Self, ToolError> {
        let Address { base, proxies } = address;
        let url = Url::parse(base.trim_end_matches('/'))
            .map_err(|_| ToolError::invalid(format!("{base:?} is not an address")))?;
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("application/json"));
        let secret = Secret::new(header.as_ref().map(|(_, value)| value.clone()).unwrap_or_default());
        if let Some((name, value)) = header {
            let bad = || ToolError::invalid(format!("the key for {base} cannot be sent in a header"));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let https = url.scheme() == "https" || proxies.need_tls();
        let dial =
            Dial { https, connect: CONNECT, read: READ, proxies: proxies.clone(), reach: Reach::Anywhere };
        let client = dial.client().map_err(|cause| ToolError::new(cause.to_string()).with_source(cause))?;
        Ok(Api { client, base: url, headers, secret })
    }

    /// Keeps a key out of errors that is not in the header.
    pub(crate) fn hiding(mut self, key: Secret) -> Self {
        self.secret = key;
        self
    }

    /// The address of something of this service that people look at.
    pub(crate) fn address_of(&self, folder: &str, name: &str) -> String {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{folder}/{name}", self.base.path().trim_end_matches('/')));
        url.into()
    }

    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<ServiceResponse, ToolError> {
        self.send(Method::GET, path, query, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<ServiceResponse, ToolError> {
        self.send(Method::POST, path, &[], Some((body.to_string(), "application/json"))).await
    }

    pub(crate) async fn post_text(
        &self,
        path: &str,
        body: String,
        kind: &str,
    ) -> Result<ServiceResponse, ToolError> {
        self.send(Method::POST, path, &[], Some((body, kind))).await
    }

    /// What a request must have answered.
    pub(crate) fn expect(&self, what: &str, (status, body): ServiceResponse) -> Result<Value, ToolError> {
        if (200..300).contains(&status) {
            return Ok(body);
        }
        let said = match &body {
            Value::Null => String::new(),
            Value::String(text) => format!(": {text}"),
            other => format!(": {other}"),
        };
        let said = match self.secret.expose() {
            "" => said,
            secret => said.replace(secret, "[secret]"),
        };
        let kind = if matches!(status, 401 | 403) { ErrorKind::Permission } else { ErrorKind::Unknown };
        Err(ToolError::of(kind, format!("{what} answered {status}{}", text::clip(&said, 300))))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<(String, &str)>,
    ) -> Result<ServiceResponse, ToolError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let mut request = self.client.request(method.clone(), url.clone()).headers(self.headers.clone());
            if let Some((body, kind)) = &body {
                request = request.header("content-type", *kind).body(body.clone());
            }
            let sent = request.send().await;
            let passing = match &sent {
                Ok(answer) => matches!(answer.status().as_u16(), 408 | 429 | 500..),
                Err(cause) => cause.is_connect() || cause.is_timeout(),
            };
            if passing && tries < TRIES {
                tokio::time::sleep(PAUSE * tries).await;
                continue;
            }
            let mut answer = sent.map_err(|cause| {
                let host = url.host_str().unwrap_or_default();
                ToolError::new(format!("cannot reach {host}")).with_source(cause.without_url())
            })?;
            let bytes = body_of(&mut answer, MAX_BODY).await?;
            let status = answer.status().as_u16();
            let body = match serde_json::from_slice(&bytes) {
                Ok(body) => body,
                Err(_) if bytes.is_empty() => Value::Null,
                Err(cause) if answer.status().is_success() => {
                    let host = url.host_str().unwrap_or_default();
                    return Err(ToolError::new(format!("{host} did not answer with JSON")).with_source(cause));
                }
                Err(_) => Value::String(String::from_utf8_lossy(&bytes).into_owned()),
            };
            return Ok((status, body));
        }
    }
}

/// The bytes of an answer, up to a bound.
pub(crate) async fn body_of(answer: &mut Response, most: usize) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    let broken = |cause: toolwright_net::reqwest::Error| {
        ToolError::new("the connection broke in the middle of the answer").with_source(cause.without_url())
    };
    while let Some(chunk) = answer.chunk().await.map_err(broken)? {
        if bytes.len() + chunk.len() > most {
            return Err(ToolError::of(ErrorKind::OutputLimit, format!("the answer is over {most} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// One segment of a path, encoded.
pub(crate) fn segment(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_~.".contains(byte);
    let dots = !text.is_empty() && text.bytes().all(|byte| byte == b'.');
    text.bytes()
        .map(|byte| if plain(&byte) && !dots { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
