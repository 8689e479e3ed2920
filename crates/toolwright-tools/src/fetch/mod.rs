//! `fetch_content`, `fetch_page_text`, `fetch_page_markdown`, `fetch_page_links`, `fetch_url_content` and
//! `check_website_status`: pages of the web.
//!
//! Addresses come from models, so only the public internet, or what the run's `network` opens, is reached,
//! redirects included; the size and the time of a fetch are bounded.

mod markdown;
mod text;
mod tree;
mod url_content;
mod xpath;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_core::{ErrorKind, ForeignClass, ToolContext, ToolDef, ToolError, ToolOutput, tool};
use toolwright_net::reqwest::Url;
use toolwright_net::reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use toolwright_net::{FetchedPage, PageClient, PageError, PageRequest, Reach, belongs_to_connection};

use self::tree::PageTree;
pub use self::url_content::{check_website_status, fetch_url_content};
use self::xpath::XPath;
use crate::options::{FETCH_TIME, Options, object, within_documented};

/// What a model reads of `on_error`.
const ON_ERROR: &str = "What to do when it cannot be had.";

/// The most bytes of a page.
const MAX_PAGE: usize = 4 << 20;

/// The most bytes that are made of a page.
const MAX_SHOWN: usize = 16 << 20;

/// What a link takes beside its texts.
const OF_A_LINK: usize = 64;

/// The longest a page may take.
const LONGEST: Duration = Duration::from_secs(60);

/// What to do when there is nothing, or something went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Otherwise {
    RaiseException,
    ReturnError,
    ReturnEmpty,
}

/// Which page is wanted, and what of it.
struct FetchPage {
    url: String,
    xpath: Option<String>,
    headers: HashMap<String, String>,
    on_no_content: Otherwise,
    on_error: Otherwise,
}

/// The tool `fetch_content`: what stands at an address, as text.
pub fn fetch_content(options: &Options) -> ToolDef {
    within_documented(content(&Web::new(options)), options, FETCH_TIME)
}

/// Fetch what stands at an address of the web, as text.
#[tool(name = "fetch_content", category = "web", read_only)]
async fn content(
    context: &ToolContext,
    #[tool(setup)] web: &Web,
    /// The address.
    url: String,
    /// Headers to send to it.
    #[tool(default)]
    headers: HashMap<String, String>,
    /// What to do when nothing is there.
    #[tool(default = Otherwise::ReturnEmpty)]
    on_no_content: Otherwise,
    #[tool(default = Otherwise::RaiseException, description = ON_ERROR)] on_error: Otherwise,
) -> Result<String, ToolError> {
    match web.get(context, &url, &headers, on_error).await? {
        Some((_, text)) => Ok(text),
        None => nothing(&url, "", on_no_content, String::new()),
    }
}

/// The tool `fetch_page_text`: the text of a page, or of some elements of it.
pub fn fetch_page_text(options: &Options) -> ToolDef {
    within_documented(page_text(&Web::new(options)), options, FETCH_TIME)
}

/// Fetch a page of the web, or elements of it, as plain text.
#[tool(name = "fetch_page_text", category = "web", read_only)]
async fn page_text(
    context: &ToolContext,
    #[tool(setup)] web: &Web,
    /// The address of the page.
    url: String,
    /// Which elements of it, for example `//div[@id='main']`; the whole page when nothing is said.
    #[serde(default)]
    xpath: Option<String>,
    /// Headers to send to it.
    #[tool(default)]
    headers: HashMap<String, String>,
    /// What to do when nothing is there.
    #[tool(default = Otherwise::ReturnEmpty)]
    on_no_content: Otherwise,
    #[tool(default = Otherwise::RaiseException, description = ON_ERROR)] on_error: Otherwise,
) -> Result<ToolOutput, ToolError> {
    let wanted = FetchPage { url, xpath, headers, on_no_content, on_error };
    let show: Show = |tree, _, parts| joined(parts, |at, _| Ok(text::text(tree, at)));
    shown(context, web, wanted, show, json!("")).await
}

/// The tool `fetch_page_markdown`: a page, or some elements of it, as Markdown.
pub fn fetch_page_markdown(options: &Options) -> ToolDef {
    within_documented(page_markdown(&Web::new(options)), options, FETCH_TIME)
}

/// Fetch a page of the web, or elements of it, as Markdown.
#[tool(name = "fetch_page_markdown", category = "web", read_only)]
async fn page_markdown(
    context: &ToolContext,
    #[tool(setup)] web: &Web,
    /// The address of the page.
    url: String,
    /// Which elements of it, for example `//div[@id='main']`; the whole page when nothing is said.
    #[serde(default)]
    xpath: Option<String>,
    /// Headers to send to it.
    #[tool(default)]
    headers: HashMap<String, String>,
    /// What to do when nothing is there.
    #[tool(default = Otherwise::ReturnEmpty)]
    on_no_content: Otherwise,
    #[tool(default = Otherwise::RaiseException, description = ON_ERROR)] on_error: Otherwise,
) -> Result<ToolOutput, ToolError> {
    let wanted = FetchPage { url, xpath, headers, on_no_content, on_error };
    let show: Show = |tree, url, parts| {
        joined(parts, |at, room| markdown::markdown(tree, at, url, room).ok_or_else(too_much))
    };
    shown(context, web, wanted, show, json!("")).await
}

/// The tool `fetch_page_links`: the links of a page that name a whole address.
pub fn fetch_page_links(options: &Options) -> ToolDef {
    within_documented(page_links(&Web::new(options)), options, FETCH_TIME)
}

/// Fetch the links of a page of the web, or of elements of it.
#[tool(name = "fetch_page_links", category = "web", read_only, finish = list_of_links)]
async fn page_links(
    context: &ToolContext,
    #[tool(setup)] web: &Web,
    /// The address of the page.
    url: String,
    /// Which elements of it, for example `//div[@id='main']`; the whole page when nothing is said.
    #[serde(default)]
    xpath: Option<String>,
    /// Headers to send to it.
    #[tool(default)]
    headers: HashMap<String, String>,
    /// What to do when nothing is there.
    #[tool(default = Otherwise::ReturnEmpty)]
    on_no_content: Otherwise,
    #[tool(default = Otherwise::RaiseException, description = ON_ERROR)] on_error: Otherwise,
) -> Result<ToolOutput, ToolError> {
    let wanted = FetchPage { url, xpath, headers, on_no_content, on_error };
    shown(context, web, wanted, |tree, _, parts| links(tree, parts), json!([])).await
}

fn list_of_links(tool: ToolDef, _: &Web) -> ToolDef {
    let texts = json!({"link": {"type": "string"}, "text": {"type": ["string", "null"]}});
    tool.with_output_schema(json!({"type": "array", "items": object(texts, json!({}))}))
}

/// Makes a value of the elements that were asked for.
type Show = fn(&PageTree, &Url, &[usize]) -> Result<Value, ToolError>;

/// The texts of elements, one after another. Elements stand inside each other, so together they can be far
/// more than the page. What makes a text is told how long it may be.
fn joined(
    parts: &[usize],
    text: impl Fn(usize, usize) -> Result<String, ToolError>,
) -> Result<Value, ToolError> {
    let mut out = String::new();
    for (place, at) in parts.iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        out.push_str(&text(*at, MAX_SHOWN.saturating_sub(out.len()))?);
        if out.len() > MAX_SHOWN {
            return Err(too_much());
        }
    }
    Ok(Value::from(out))
}

fn too_much() -> ToolError {
    let message = format!("what was picked of the page is more than {} MiB", MAX_SHOWN >> 20);
    ToolError::of(ErrorKind::OutputLimit, message).hint("pick fewer elements with `xpath`")
}

/// A page, or what was picked of it, as `show` shows it; `empty` where that is nothing.
async fn shown(
    context: &ToolContext,
    web: &Web,
    wanted: FetchPage,
    show: Show,
    empty: Value,
) -> Result<ToolOutput, ToolError> {
    let path = wanted.xpath.as_deref().map(XPath::parse).transpose()?;
    let found = web.get(context, &wanted.url, &wanted.headers, wanted.on_error).await?;
    let page = match &found {
        Some((url, html)) => Some((url, PageTree::parse(html)?)),
        None => None,
    };
    let parts = match (&page, &path) {
        (Some((_, tree)), Some(path)) => path.pick(tree)?,
        (Some(_), None) => vec![0],
        (None, _) => Vec::new(),
    };
    let value = match page {
        Some((url, tree)) if !parts.is_empty() => show(&tree, url, &parts)?,
        _ => {
            let path = wanted.xpath.as_deref().unwrap_or_default();
            nothing(&wanted.url, path, wanted.on_no_content, empty)?
        }
    };
    Ok(ToolOutput::json(value))
}

fn links(tree: &PageTree, parts: &[usize]) -> Result<Value, ToolError> {
    let mut found = Vec::new();
    let mut room = MAX_SHOWN;
    let mut waiting: Vec<usize> = parts.iter().rev().copied().collect();
    while let Some(at) = waiting.pop() {
        let Some(element) = tree.element(at) else { continue };
        waiting.extend(element.children.iter().rev());
        let address =
            element.attribute("href").filter(|_| element.name == "a").and_then(|href| Url::parse(href).ok());
        if address.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
            let (link, text) = (element.attribute("href").unwrap_or_default(), tree.content(at));
            room = room.checked_sub(link.len() + text.len() + OF_A_LINK).ok_or_else(too_much)?;
            let text = Some(text.trim()).filter(|text| !text.is_empty());
            found.push(json!({"link": link, "text": text}));
        }
    }
    Ok(Value::from(found))
}

/// What nothing becomes.
fn nothing<T>(url: &str, path: &str, otherwise: Otherwise, empty: T) -> Result<T, ToolError> {
    match otherwise {
        Otherwise::ReturnEmpty => Ok(empty),
        otherwise => {
            let error = ToolError::new(format!("No content matching '{path}' found at url {url}"));
            Err(match otherwise {
                Otherwise::RaiseException => error.with_source(ForeignClass::new("ValueError", None)),
                _ => error,
            })
        }
    }
}

/// What pages are fetched with.
#[derive(Clone)]
pub(crate) struct Web {
    options: Options,
    client: Arc<PageClient>,
}

impl Web {
    pub(crate) fn new(options: &Options) -> Self {
        let client = PageClient::new(options.page_proxies(), Duration::from_secs(10), LONGEST);
        Web { options: options.clone(), client: Arc::new(client) }
    }

    /// The page and where it was found; `None` when there is none. An error becomes nothing when that was
    /// asked for.
    async fn get(
        &self,
        context: &ToolContext,
        url: &str,
        headers: &HashMap<String, String>,
        on_error: Otherwise,
    ) -> Result<Option<(Url, String)>, ToolError> {
        let address = address(url)?;
        let headers = header_map(headers)?;
        let reach = self.reach(context);
        match self.page(PageRequest::get(&reach, address, &headers, MAX_PAGE), LONGEST).await.and_then(found)
        {
            // A refused address is not an empty page.
            Err(error) if on_error == Otherwise::ReturnEmpty && error.kind() != ErrorKind::Permission => {
                Ok(None)
            }
            Err(error) => {
                let message = format!("Error fetching {url}: {}", error.message());
                let failed = ToolError::of(error.kind(), message);
                Err(match on_error {
                    Otherwise::RaiseException => {
                        failed.with_source(ForeignClass::new("RequestException", Some(error.into())))
                    }
                    _ => failed.with_source(error),
                })
            }
            Ok(found) => Ok(found),
        }
    }

    /// One request, redirects included, in so much time.
    pub(crate) async fn page(
        &self,
        request: PageRequest<'_>,
        longest: Duration,
    ) -> Result<FetchedPage, ToolError> {
        let answer = tokio::time::timeout(longest, self.client.send(request)).await;
        let answer = answer
            .map_err(|_| ToolError::of(ErrorKind::Timeout, format!("the page took more than {longest:?}")))?;
        answer.map_err(|error| {
            let kind = match error {
                PageError::Refused(_) => ErrorKind::Permission,
                PageError::Header(_) => ErrorKind::Parsing,
                PageError::TooLong(_) => ErrorKind::OutputLimit,
                _ => ErrorKind::Unknown,
            };
            ToolError::of(kind, error.to_string()).with_source(error)
        })
    }

    /// Where this call may reach.
    pub(crate) fn reach(&self, context: &ToolContext) -> Reach {
        self.options.reach_in(context)
    }
}

/// The page as text; `None` when there is none. Bytes that are not text are dropped.
fn found(page: FetchedPage) -> Result<Option<(Url, String)>, ToolError> {
    match page.status {
        200 => Ok(Some((page.url, text_of(&page.body)))),
        404 => Ok(None),
        status => Err(ToolError::new(format!("the answer has the status {status}"))),
    }
}

pub(crate) fn text_of(body: &[u8]) -> String {
    body.utf8_chunks().map(|chunk| chunk.valid()).collect()
}

pub(crate) fn address(url: &str) -> Result<Url, ToolError> {
    Url::parse(url).map_err(|_| ToolError::invalid(format!("{url:?} is not an address")))
}

fn header_map(headers: &HashMap<String, String>) -> Result<HeaderMap, ToolError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let bad = || ToolError::invalid(format!("{name:?} cannot be sent as a header"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        if belongs_to_connection(&name) {
            let message = format!("`{name}` cannot be set: it belongs to the connection");
            return Err(ToolError::invalid(message).hint("name the host in `url`"));
        }
        map.insert(name, HeaderValue::from_str(value).map_err(|_| bad())?);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_does_not_become_far_more_than_it_is() {
        let url = Url::parse("http://a.example/").unwrap();
        let made = |page: &str, path: &str, show: Show| {
            let tree = PageTree::parse(page).unwrap();
            show(&tree, &url, &XPath::parse(path).unwrap().pick(&tree).unwrap()).map_err(|error| error.kind())
        };
        let text: Show = |tree, _, parts| joined(parts, |at, _| Ok(text::text(tree, at)));
        let markdown: Show = |tree, url, parts| {
            joined(parts, |at, room| markdown::markdown(tree, at, url, room).ok_or_else(too_much))
        };
        // Each element has the text of those inside it.
        let nested = format!("{}{}", "<b>".repeat(150), "x".repeat(1 << 17));
        assert_eq!(made(&nested, "//b", text), Err(ErrorKind::OutputLimit));
        assert_eq!(made(&nested, "//b", markdown), Err(ErrorKind::OutputLimit));
        // Each line has the marks of all that it stands in.
        let lists = "<ol start=18446744073709551610><li>".repeat(90);
        let quoted = format!("{lists}<pre>{}", "\n".repeat(1 << 14));
        assert_eq!(made(&quoted, "/html", markdown), Err(ErrorKind::OutputLimit));
        let linked = format!("{}{}", "<a href=http://x.example/>".repeat(150), "x".repeat(1 << 17));
        assert_eq!(made(&linked, "/html", |tree, _, parts| links(tree, parts)), Err(ErrorKind::OutputLimit));
        assert_eq!(made("<p>one", "//p", markdown), Ok(json!("one\n\n")));
    }
}
