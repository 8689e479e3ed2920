//! Web pages as text.

use std::time::Duration;

use toolwright_core::{BoxFuture, ErrorKind, ToolError};
use toolwright_net::reqwest::Url;
use toolwright_net::reqwest::header::HeaderMap;
use toolwright_net::{PageClient, PageError, PageRequest, Proxies, Reach};

/// Where the text of pages comes from.
pub trait Pages: Send + Sync {
    /// The text of a page; `None` when there is none.
    fn text<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Option<String>, ToolError>>;
}

/// The most bytes of a page.
const MAX_PAGE: usize = 4 << 20;

/// The longest a page may take.
const LONGEST: Duration = Duration::from_secs(30);

/// Pages of the web. Addresses come from search engines, so only the public internet is reached; each
/// redirect is checked the same way.
#[derive(Debug)]
pub struct WebPages {
    client: PageClient,
    reach: Reach,
}

impl WebPages {
    /// Pages of the public internet.
    pub fn public() -> Result<Self, ToolError> {
        Self::within(Reach::Public)
    }

    /// Pages that `reach` allows.
    pub fn within(reach: Reach) -> Result<Self, ToolError> {
        Self::through(reach, Proxies::none())
    }

    /// Pages that `reach` allows, through these proxies.
    pub fn through(reach: Reach, proxies: Proxies) -> Result<Self, ToolError> {
        Ok(WebPages { client: PageClient::new(proxies, Duration::from_secs(10), LONGEST), reach })
    }

    async fn fetch(&self, url: &str) -> Result<Option<String>, ToolError> {
        let bad = |_| ToolError::invalid(format!("{url:?} is not an address"));
        let url = Url::parse(url).map_err(bad)?;
        let none = HeaderMap::new();
        let request = PageRequest::get(&self.reach, url, &none, MAX_PAGE);
        let page = self.client.send(request).await.map_err(failed)?;
        if page.status != 200 {
            return Ok(None);
        }
        let plain = page.content_type.is_some_and(|kind| kind.starts_with("text/plain"));
        let text = String::from_utf8_lossy(&page.body).into_owned();
        Ok(Some(if plain { text.trim().to_owned() } else { html_to_text(&text) }))
    }
}

fn failed(error: PageError) -> ToolError {
    let kind = match error {
        PageError::Refused(_) => ErrorKind::Permission,
        PageError::TooLong(_) => ErrorKind::OutputLimit,
        _ => ErrorKind::Unknown,
    };
    ToolError::of(kind, error.to_string()).with_source(error)
}

impl Pages for WebPages {
    fn text<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Option<String>, ToolError>> {
        Box::pin(async move {
            let fetched = tokio::time::timeout(LONGEST, self.fetch(url)).await;
            fetched.unwrap_or_else(|_| {
                Err(ToolError::of(ErrorKind::Timeout, format!("the page took more than {LONGEST:?}")))
            })
        })
    }
}

/// What a page says: its pieces of text, one a line, without scripts and styles.
pub fn html_to_text(html: &str) -> String {
    use html5gum::Token;
    let hidden = |name: &[u8]| matches!(name, b"script" | b"style" | b"template" | b"noscript");
    let (mut lines, mut inside) = (Vec::new(), None::<Vec<u8>>);
    for Ok(token) in html5gum::Tokenizer::new(html) {
        match (token, &inside) {
            (Token::StartTag(tag), None) if hidden(&tag.name) && !tag.self_closing => {
                inside = Some(tag.name.to_vec());
            }
            (Token::EndTag(tag), Some(name)) if *name == *tag.name => inside = None,
            (Token::String(text), None) => {
                let text = String::from_utf8_lossy(&text);
                let text = text.trim();
                if !text.is_empty() {
                    lines.push(text.to_owned());
                }
            }
            _ => {}
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_lines_of_text() {
        let page = "<!doctype html><html><head><title> T </title><style>p { x }</style></head>\
                    <body><!-- no --><p>One &amp; <b>two</b></p><script>if (a < b) {}</script>\n<p>three</body>";
        assert_eq!(html_to_text(page), "T\nOne &\ntwo\nthree");
        assert_eq!(html_to_text("plain"), "plain");
        assert_eq!(html_to_text("<script>never closed"), "");
    }
}
