//! Reading a page whose address comes from outside: redirects are followed step by step, each address is
//! judged, and no more is read than was asked for.

use reqwest::header::HeaderMap;
use reqwest::{Client, Url};

use crate::{Proxies, Reach};

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// What stands at an address.
#[derive(Debug)]
pub struct Page {
    /// Where it was found in the end.
    pub url: Url,
    /// The status of the answer.
    pub status: u16,
    /// What it says it is.
    pub content_type: Option<String>,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// Why a page cannot be read.
#[derive(Debug)]
pub enum PageError {
    /// The address may not be dialled.
    Refused(String),
    /// Nobody answers, or not to the end.
    Unreachable(reqwest::Error),
    /// A redirect leads to no address, or on and on.
    Astray(String),
    /// It has more bytes than this.
    TooLong(usize),
}

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PageError::Refused(reason) | PageError::Astray(reason) => f.write_str(reason),
            PageError::Unreachable(_) => f.write_str("the page cannot be reached"),
            PageError::TooLong(most) => write!(f, "the page has more than {most} bytes"),
        }
    }
}

impl std::error::Error for PageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PageError::Unreachable(cause) => Some(cause),
            _ => None,
        }
    }
}

/// Gets a page with a client that goes through these proxies, which may not be pages themselves. The headers
/// go to the host that was named and to no other, because they may hold credentials.
pub async fn get_page(
    client: &Client,
    reach: Reach,
    proxies: &Proxies,
    url: Url,
    headers: &HeaderMap,
    most: usize,
) -> Result<Page, PageError> {
    let unreachable = |cause: reqwest::Error| PageError::Unreachable(cause.without_url());
    let named = url.origin();
    let mut url = url;
    for _ in 0..=MAX_REDIRECTS {
        if let Some(refusal) = proxies.refusal(reach, &url) {
            return Err(PageError::Refused(refusal));
        }
        let mut request = client.get(url.clone());
        if url.origin() == named {
            request = request.headers(headers.clone());
        }
        let mut answer = request.send().await.map_err(unreachable)?;
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        if let (true, Some(next)) = (answer.status().is_redirection(), header("location")) {
            let astray = |_| PageError::Astray("the page points to no address".to_owned());
            url = url.join(next).map_err(astray)?;
            continue;
        }
        let (status, content_type) = (answer.status().as_u16(), header("content-type").map(str::to_owned));
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
            if body.len() + piece.len() > most {
                return Err(PageError::TooLong(most));
            }
            body.extend_from_slice(&piece);
        }
        return Ok(Page { url, status, content_type, body });
    }
    Err(PageError::Astray(format!("the page is behind more than {MAX_REDIRECTS} redirects")))
}
