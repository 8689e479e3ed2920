//! HTTP to a vendor: connections, timeouts, retries, and limits on the size of replies.
//!
//! It reads no environment: proxies and credentials are given. Redirects are never followed, because they
//! could carry a key to another host.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use toolwright_core::{ModelError, ModelErrorKind, Secret};
use toolwright_net::{Dial, Proxies, Reach};

use crate::aws::Signer;
use crate::error;
use crate::pace::Bucket;
use crate::retry::{AttemptFailure, RetryPolicy, asked_in, verdict, with_wait};

/// How long to wait, and how much to read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HttpLimits {
    /// The longest to wait for a connection.
    pub connect: Duration,
    /// The longest silence: before the first byte, and between two of them.
    pub read: Duration,
    /// The longest a whole answer may take.
    pub total: Duration,
    /// The most bytes of an answer.
    pub body: usize,
    /// The most bytes of one event of a stream.
    pub event: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        HttpLimits {
            connect: Duration::from_secs(10),
            read: Duration::from_secs(600),
            total: Duration::from_secs(3600),
            body: 64 << 20,
            event: 16 << 20,
        }
    }
}

/// What every body is.
const JSON: &str = "application/json";

/// How much of an error's body is read.
const ERROR_BODY: usize = 64 << 10;

/// How requests travel to one vendor.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) limits: HttpLimits,
    pub(crate) retry: RetryPolicy,
    pub(crate) longest_after: Option<f64>,
    pub(crate) signer: Option<Signer>,
    pub(crate) proxies: Proxies,
    pub(crate) bucket: Option<Bucket>,
}

/// A connection to one vendor.
#[derive(Debug)]
pub(crate) struct Http {
    client: Client,
    headers: HeaderMap,
    pub(crate) route: Route,
    /// What must not appear in an error, beside the keys of the signer.
    fixed: Vec<Secret>,
}

impl Http {
    pub(crate) fn new(base: &Url, headers: &[(String, Secret)], route: Route) -> Result<Self, ModelError> {
        let mut map = HeaderMap::new();
        map.insert("content-type", HeaderValue::from_static(JSON));
        for (name, value) in headers {
            let (name, value) = header(name, value)?;
            map.insert(name, value);
        }
        let dial = Dial {
            https: base.scheme() == "https" || route.proxies.need_tls(),
            connect: route.limits.connect,
            read: route.limits.read,
            proxies: route.proxies.clone(),
            reach: Reach::Anywhere,
        };
        let client =
            dial.client().map_err(|cause| error::unavailable(cause.to_string()).with_source(cause))?;
        let secrets = headers.iter().map(|(_, value)| value.clone());
        // A bearer header is the key with a word before it; the key alone must not leak either.
        let bare = headers.iter().filter_map(|(_, value)| value.expose().strip_prefix("Bearer "));
        let secrets = secrets.chain(bare.map(Secret::new));
        let secrets = secrets
            .chain(route.proxies.passwords().map(Secret::new))
            .filter(|secret| secret.expose().len() >= 4)
            .collect();
        Ok(Http { client, headers: map, route, fixed: secrets })
    }

    /// Everything that must not appear in an error.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let signed = self.route.signer.iter().flat_map(|signer| signer.keys.secrets());
        self.fixed.iter().cloned().chain(signed.filter(|secret| secret.expose().len() >= 4)).collect()
    }

    /// Sends `body` until the head of a reply comes, an error is final, or the retry policy ends the tries.
    pub(crate) async fn post(&self, url: &Url, body: &[u8]) -> Result<StreamingResponse, ModelError> {
        let mut retries = self.route.retry.start();
        loop {
            match self.attempt(url, body).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => retries.wait(failure).await?,
            }
        }
    }

    /// One try: the head of a successful reply.
    pub(crate) async fn attempt(&self, url: &Url, body: &[u8]) -> Result<StreamingResponse, AttemptFailure> {
        if let Some(bucket) = &self.route.bucket {
            bucket.take().await;
        }
        let mut headers = self.headers.clone();
        // Signed for each try, because a signature holds for some minutes only.
        if let Some(signer) = &self.route.signer {
            for (name, value) in signer.headers(url, JSON, body).await? {
                let (name, value) = header(name, &value).map_err(AttemptFailure::Final)?;
                headers.insert(name, value);
            }
        }
        let request = self.client.post(url.clone()).headers(headers).body(body.to_vec());
        let response = request.send().await.map_err(|cause| {
            let host = url.host_str().unwrap_or_default();
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let text = if cause.is_timeout() && !cause.is_connect() {
                format!("no answer from {host}{port} within {:?}", self.route.limits.read)
            } else {
                let through =
                    self.route.proxies.host_for(url).map(|proxy| format!(" through the proxy {proxy}"));
                format!("cannot reach {host}{port}{}: {}", through.unwrap_or_default(), root(&cause))
            };
            AttemptFailure::Retryable(error::unavailable(text).with_source(cause.without_url()), None)
        })?;
        let status = response.status();
        let mut answer = StreamingResponse {
            response,
            ahead: Vec::new(),
            left: self.route.limits.body,
            limits: self.route.limits,
        };
        if status.is_success() {
            return Ok(answer);
        }
        if status.is_redirection() {
            let to = answer.response.headers().get("location").and_then(|to| to.to_str().ok());
            let host = to.and_then(|to| url.join(to).ok()).and_then(|to| to.host_str().map(str::to_owned));
            let text = format!(
                "the server answered {} and points to {}; redirects are not followed",
                status.as_u16(),
                host.as_deref().map_or("nowhere".to_owned(), |host| error::shown(host, &self.secrets())),
            );
            return Err(AttemptFailure::Final(error::request(text)));
        }
        let header = |name: &str| answer.response.headers().get(name)?.to_str().ok().map(str::to_owned);
        let verdict = verdict(status.as_u16(), header, self.route.longest_after, SystemTime::now());
        answer.left = ERROR_BODY;
        let body = answer.head().await;
        let failed = error::from_status(status.as_u16(), &body, &self.secrets());
        let after = verdict.after.or_else(|| asked_in(&body));
        // Some servers answer 500, or 429, to what would be wrong the next time too.
        let hopeless = match failed.kind() {
            ModelErrorKind::ContextLength => true,
            ModelErrorKind::Request => status.is_server_error(),
            _ => false,
        };
        let retry = verdict.retry && !hopeless;
        Err(match (retry, after) {
            (true, after) => AttemptFailure::Retryable(failed, after),
            (false, Some(after)) if after >= 1.0 => AttemptFailure::Final(with_wait(&failed, after)),
            (false, _) => AttemptFailure::Final(failed),
        })
    }
}

/// The innermost cause of an error, which is the specific one.
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error::shown(&error.to_string(), &[])
}

/// A header that no log shows.
fn header(name: &str, value: &Secret) -> Result<(HeaderName, HeaderValue), ModelError> {
    let bad = || error::request(format!("the header `{name}` cannot be sent"));
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
    let mut value = HeaderValue::from_str(value.expose()).map_err(|_| bad())?;
    value.set_sensitive(true);
    Ok((key, value))
}

/// An answer that is being read.
pub(crate) struct StreamingResponse {
    response: Response,
    /// Bytes read ahead to detect a stream, not yet consumed.
    ahead: Vec<u8>,
    left: usize,
    limits: HttpLimits,
}

impl StreamingResponse {
    /// True when the body is a stream of events: its type says so, or is not that of a document and it begins
    /// like one.
    pub(crate) async fn is_stream(&mut self) -> Result<bool, ModelError> {
        let streams = ["text/event-stream", "application/vnd.amazon.eventstream"];
        let kind = self.response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if let Some(kind) = kind {
            let kind = kind.trim_start().to_ascii_lowercase();
            let stream = streams.iter().any(|stream| kind.starts_with(stream));
            if stream || kind.starts_with(JSON) {
                return Ok(stream);
            }
        }
        let first = loop {
            match self.ahead.iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(first) => break Some(*first),
                None => match self.next().await? {
                    Some(chunk) => self.ahead.extend(chunk),
                    None => break None,
                },
            }
        };
        // `data:`, `event:`, `id:`, `retry:`, or a comment. No JSON begins so.
        Ok(first.is_some_and(|first| b"deir:".contains(&first)))
    }

    /// The next bytes; `None` at the end. An error when the connection broke or there is too much.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, ModelError> {
        match self.ahead.is_empty() {
            true => self.next().await,
            false => Ok(Some(std::mem::take(&mut self.ahead))),
        }
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, ModelError> {
        let chunk = self.response.chunk().await.map_err(|cause| {
            let text = if cause.is_timeout() {
                format!("the answer fell silent for {:?}", self.limits.read)
            } else {
                "the connection broke in the middle of the answer".to_owned()
            };
            error::unavailable(text).with_source(cause.without_url())
        })?;
        let Some(chunk) = chunk else { return Ok(None) };
        match self.left.checked_sub(chunk.len()) {
            Some(left) => self.left = left,
            None => return Err(error::reply(format!("the answer is over {} bytes", self.limits.body))),
        }
        Ok(Some(chunk.to_vec()))
    }

    /// All bytes.
    pub(crate) async fn body(&mut self) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            body.extend(chunk);
        }
        Ok(body)
    }

    /// As many bytes as are allowed, without complaint about the rest.
    async fn head(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = self.chunk().await {
            body.extend(chunk);
        }
        body
    }
}
