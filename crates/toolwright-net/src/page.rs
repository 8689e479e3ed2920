//! Requests whose address comes from outside: redirects are followed step by step, each address is judged,
//! and no more is read than was asked for.

use std::error::Error as _;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Client, Method, Url};

use crate::dial::{Dial, SetupError, tls};
use crate::proxy::Proxies;
use crate::reach::{Reach, RefusedAddress};

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// Headers that say how a request travels. A caller that could set them would let a rule see one host and a
/// server another, or would end the request where the server sees a second one.
const CONNECTION_HEADERS: [&str; 11] = [
    "host",
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// True for `Host` and the hop-by-hop headers, which arguments of tools cannot set.
pub fn belongs_to_connection(name: &HeaderName) -> bool {
    CONNECTION_HEADERS.contains(&name.as_str())
}

/// The response at an address.
#[derive(Debug)]
pub struct FetchedPage {
    /// The address after all redirects.
    pub url: Url,
    /// The status of the response.
    pub status: u16,
    /// The response's content type.
    pub content_type: Option<String>,
    /// The bytes; none when no body was wanted.
    pub body: Vec<u8>,
}

/// Why a page cannot be read.
#[derive(Debug)]
pub enum PageError {
    /// The address may not be dialled.
    Refused(String),
    /// A header that belongs to the connection was given.
    Header(HeaderName),
    /// No connection, or one that broke.
    Unreachable(reqwest::Error),
    /// No connection can be set up from here.
    Setup(SetupError),
    /// A redirect leads to no address, or there are too many.
    Astray(String),
    /// It has more bytes than this.
    TooLong(usize),
}

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PageError::Refused(reason) | PageError::Astray(reason) => f.write_str(reason),
            PageError::Header(name) => write!(f, "the header `{name}` cannot be set by a call"),
            PageError::Unreachable(cause) => {
                write!(f, "the page cannot be reached: {}", innermost(cause))
            }
            PageError::Setup(error) => error.fmt(f),
            PageError::TooLong(most) => write!(f, "the page has more than {most} bytes"),
        }
    }
}

/// What was wrong in the end: the errors around it say no more than that a request failed.
fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

impl std::error::Error for PageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PageError::Unreachable(cause) => Some(cause),
            PageError::Setup(error) => error.source(),
            _ => None,
        }
    }
}

/// A client for addresses from outside. TLS is set up when it is first needed.
#[derive(Debug)]
pub struct PageClient {
    pub(crate) proxies: Proxies,
    connect: Duration,
    read: Duration,
    tls: OnceLock<rustls::ClientConfig>,
}

/// One request.
#[derive(Debug)]
pub struct PageRequest<'a> {
    /// Where connections may go.
    pub reach: &'a Reach,
    /// The method.
    pub method: Method,
    /// The address.
    pub url: Url,
    /// Headers for the host that was named and for no other, because they may hold credentials.
    pub headers: &'a HeaderMap,
    /// The most bytes of the body; without a number it is not read at all.
    pub most: Option<usize>,
}

impl<'a> PageRequest<'a> {
    /// Gets a page of at most so many bytes.
    pub fn get(reach: &'a Reach, url: Url, headers: &'a HeaderMap, most: usize) -> Self {
        PageRequest { reach, method: Method::GET, url, headers, most: Some(most) }
    }
}

impl PageClient {
    /// A client that goes through these proxies, which may not be pages themselves.
    pub fn new(proxies: Proxies, connect: Duration, read: Duration) -> Self {
        PageClient { proxies, connect, read, tls: OnceLock::new() }
    }

    /// Makes a request and follows its redirects.
    pub async fn send(&self, request: PageRequest<'_>) -> Result<FetchedPage, PageError> {
        let PageRequest { reach, method, mut url, headers, most } = request;
        if let Some(name) = headers.keys().find(|name| belongs_to_connection(name)) {
            return Err(PageError::Header(name.clone()));
        }
        let named = url.origin();
        for _ in 0..=MAX_REDIRECTS {
            if let Some(refusal) = self.proxies.refusal(reach, &url) {
                return Err(PageError::Refused(refusal));
            }
            let client = self.client(reach, &url).map_err(PageError::Setup)?;
            let mut request = client.request(method.clone(), url.clone());
            if url.origin() == named {
                request = request.headers(headers.clone());
            }
            let mut response = request.send().await.map_err(failed)?;
            let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
            if let (true, Some(next)) = (response.status().is_redirection(), header("location")) {
                let astray = |_| PageError::Astray("the page redirects to no address".to_owned());
                url = url.join(next).map_err(astray)?;
                continue;
            }
            let (status, content_type) =
                (response.status().as_u16(), header("content-type").map(str::to_owned));
            let mut body = Vec::new();
            if let Some(most) = most {
                while let Some(piece) = response.chunk().await.map_err(failed)? {
                    if body.len() + piece.len() > most {
                        return Err(PageError::TooLong(most));
                    }
                    body.extend_from_slice(&piece);
                }
            }
            return Ok(FetchedPage { url, status, content_type, body });
        }
        Err(PageError::Astray(format!("the page is behind more than {MAX_REDIRECTS} redirects")))
    }

    /// A client for one address: names are judged with the port they are dialled at.
    pub(crate) fn client(&self, reach: &Reach, url: &Url) -> Result<Client, SetupError> {
        let (proxies, reach) = (self.proxies.clone(), reach.clone());
        let dial = Dial { https: true, connect: self.connect, read: self.read, proxies, reach };
        let tls = match self.tls.get() {
            Some(tls) => tls,
            None => {
                let made = tls(true).map_err(SetupError::Tls)?;
                self.tls.get_or_init(|| made)
            }
        };
        dial.client_with(tls.clone(), url.port_or_known_default().unwrap_or_default())
    }
}

/// A refusal of the resolver is what was wrong, however deep in the error it is.
pub(crate) fn failed(error: reqwest::Error) -> PageError {
    let error = error.without_url();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(RefusedAddress(reason)) = inner.downcast_ref() {
            return PageError::Refused(reason.clone());
        }
        cause = inner.source();
    }
    PageError::Unreachable(error)
}
