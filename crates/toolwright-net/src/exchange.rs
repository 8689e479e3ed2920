//! One request to an API and its reply: a body each way, no redirects, and no more read than was asked for.

use reqwest::header::HeaderMap;
use reqwest::{Method, Url};

use crate::page::{PageClient, PageError, belongs_to_connection, failed};
use crate::reach::Reach;

/// One request.
#[derive(Debug)]
pub struct ApiExchange<'a> {
    /// Where connections may go.
    pub reach: &'a Reach,
    /// The method.
    pub method: Method,
    /// The address.
    pub url: Url,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; none at all without one.
    pub body: Option<Vec<u8>>,
    /// The most bytes of the reply.
    pub most: usize,
}

/// The reply to a request.
#[derive(Debug)]
pub struct ExchangeReply {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl PageClient {
    /// Makes one request. A redirect is a reply like any other: following it could carry a key elsewhere.
    pub async fn exchange(&self, exchange: ApiExchange<'_>) -> Result<ExchangeReply, PageError> {
        let ApiExchange { reach, method, url, headers, body, most } = exchange;
        if let Some(name) = headers.keys().find(|name| belongs_to_connection(name)) {
            return Err(PageError::Header(name.clone()));
        }
        if let Some(refusal) = self.proxies.refusal(reach, &url) {
            return Err(PageError::Refused(refusal));
        }
        let client = self.client(reach, &url).map_err(PageError::Setup)?;
        let mut request = client.request(method, url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let mut response = request.send().await.map_err(failed)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > most {
                return Err(PageError::TooLong(most));
            }
            body.extend_from_slice(&piece);
        }
        Ok(ExchangeReply { status, headers, body })
    }
}
