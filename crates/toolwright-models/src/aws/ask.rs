//! Requests to the services that issue credentials.

use std::time::Duration;

use reqwest::{Method, Url};
use toolwright_core::{ModelError, ModelErrorKind, Secret};
use toolwright_net::{Dial, Proxies, Reach};

use crate::error;
use crate::registry::is_here;

/// A request to a credential service.
pub(super) struct CredentialRequest<'a> {
    pub(super) method: Method,
    pub(super) address: &'a str,
    pub(super) headers: &'a [(&'static str, Secret)],
    pub(super) body: String,
}

/// The most bytes of an answer.
const MOST: usize = 1 << 20;

/// Asks a service in Amazon's cloud.
pub(super) async fn far(asked: &CredentialRequest<'_>, proxies: &Proxies) -> Result<Vec<u8>, ModelError> {
    let (connect, read) = (Duration::from_secs(10), Duration::from_secs(60));
    let here = Url::parse(asked.address).is_ok_and(|url| is_here(&url));
    let proxies = if here { Proxies::none() } else { proxies.clone() };
    let https = asked.address.starts_with("https:") || proxies.need_tls();
    once(asked, &Dial { https, connect, read, proxies, reach: Reach::Anywhere }).await
}

/// Asks a service on this machine or its host (short timeout, no proxy), at most `tries` times.
pub(super) async fn near(asked: &CredentialRequest<'_>, tries: u32) -> Result<Vec<u8>, ModelError> {
    let time = Duration::from_secs(2);
    let https = asked.address.starts_with("https:");
    let dial = Dial { https, connect: time, read: time, proxies: Proxies::none(), reach: Reach::Anywhere };
    let mut left = tries;
    loop {
        left = left.saturating_sub(1);
        match once(asked, &dial).await {
            Err(problem) if problem.kind() == ModelErrorKind::Unavailable && left > 0 => {}
            answer => return answer,
        }
    }
}

async fn once(asked: &CredentialRequest<'_>, dial: &Dial) -> Result<Vec<u8>, ModelError> {
    let bad = || error::request("the address of the service that gives out keys is not valid");
    let url = Url::parse(asked.address).map_err(|_| bad())?;
    let host = url.host_str().ok_or_else(bad)?.to_owned();
    let cannot = |what: &str| error::unavailable(format!("{host}, which gives out keys, {what}"));
    let client = dial.client().map_err(|cause| error::unavailable(cause.to_string()).with_source(cause))?;
    let mut request = client.request(asked.method.clone(), url).body(asked.body.clone());
    for (name, value) in asked.headers {
        request = request.header(*name, value.expose());
    }
    let mut response =
        request.send().await.map_err(|cause| cannot("cannot be reached").with_source(cause.without_url()))?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) =
        response.chunk().await.map_err(|cause| cannot("broke off").with_source(cause.without_url()))?
    {
        body.extend(chunk);
        if body.len() > MOST {
            return Err(cannot("said too much"));
        }
    }
    if status.is_success() {
        return Ok(body);
    }
    let secrets: Vec<Secret> = asked.headers.iter().map(|(_, value)| value.clone()).collect();
    let said = error::shown(&said(&body), &secrets);
    let text = format!("{host}, which gives out keys, answered {}: {said}", status.as_u16());
    Err(match status.as_u16() {
        408 | 429 | 500.. => error::unavailable(text),
        _ => error::auth(text),
    })
}

/// What is wrong, in the words of an answer: JSON, XML, or text.
fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body).into_owned();
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let word = ["message", "Message", "error_description", "error"]
        .iter()
        .find_map(|name| json.get(*name)?.as_str());
    word.map(str::to_owned).or_else(|| in_tag(&text, "Message")).unwrap_or(text)
}

/// The text in the first tag of that name in XML without attributes.
pub(super) fn in_tag(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    Some(plain.iter().fold(text.trim().to_owned(), |text, (from, to)| text.replace(from, to)))
}
