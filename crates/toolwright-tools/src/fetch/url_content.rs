//! `fetch_url_content` and `check_website_status`, as MARSYS documents them.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_core::{ErrorKind, ToolContext, ToolDef, ToolError, ToolOutput, tool};
use toolwright_net::PageRequest;
use toolwright_net::reqwest::Method;
use toolwright_net::reqwest::header::HeaderMap;

use super::tree::PageTree;
use super::{LONGEST, MAX_PAGE, MAX_SHOWN, Web, address, markdown, text, text_of, too_much};
use crate::options::{FETCH_TIME, Options, object, within_documented};

/// How long a site may take to answer.
const SITE_TIME: Duration = Duration::from_secs(30);

/// How the content of a page is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum PageFormat {
    #[default]
    Text,
    Markdown,
    Html,
}

/// The tool `fetch_url_content`: a page as text, Markdown or HTML.
pub fn fetch_url_content(options: &Options) -> ToolDef {
    within_documented(url_content(&Web::new(options)), options, FETCH_TIME)
}

/// Fetch the content of a page of the web.
#[tool(name = "fetch_url_content", category = "web", read_only)]
async fn url_content(
    context: &ToolContext,
    #[tool(setup)] web: &Web,
    /// The address of the page.
    url: String,
    /// As plain text, as Markdown, or as the page is.
    #[tool(default)]
    format: PageFormat,
    /// Run the page's scripts first, in a browser.
    #[tool(default)]
    render: bool,
) -> Result<String, ToolError> {
    if render {
        let error = "scripts of a page are run in a browser, which this tool does not have";
        return Err(ToolError::invalid(error).hint("leave out `render`, or use a tool that drives a browser"));
    }
    content(web, context, &url, format).await
}

async fn content(
    web: &Web,
    context: &ToolContext,
    url: &str,
    format: PageFormat,
) -> Result<String, ToolError> {
    let (reach, none) = (web.reach(context), HeaderMap::new());
    let page = web.page(PageRequest::get(&reach, address(url)?, &none, MAX_PAGE), LONGEST).await?;
    if page.status >= 400 {
        return Err(ToolError::new(format!("{url} answered with the status {}", page.status)));
    }
    let kind = page.content_type.unwrap_or_default().to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let readable = ["json", "xml", "javascript", "yaml", "html"].iter().any(|word| kind.contains(word));
    if !kind.is_empty() && !kind.starts_with("text/") && !readable {
        return Err(ToolError::new(format!("{url} is not text but {kind}")));
    }
    let body = text_of(&page.body);
    let is_html = kind.contains("html") || kind.is_empty() && body.trim_start().starts_with('<');
    if format == PageFormat::Html || !is_html {
        return Ok(body);
    }
    let tree = PageTree::parse(&body)?;
    match format {
        PageFormat::Markdown => markdown::markdown(&tree, 0, &page.url, MAX_SHOWN).ok_or_else(too_much),
        _ => Ok(text::text(&tree, 0)),
    }
}

/// The tool `check_website_status`: whether a site answers, with what status and how fast.
pub fn check_website_status(options: &Options) -> ToolDef {
    within_documented(website_status(&Web::new(options)), options, FETCH_TIME)
}

/// Check whether a website can be reached.
#[tool(name = "check_website_status", category = "web", read_only, finish = with_status)]
async fn website_status(
    context: &ToolContext,
    #[tool(setup)] web: &Web,
    /// The address to check.
    url: String,
) -> Result<ToolOutput, ToolError> {
    status(web, context, &url).await.map(ToolOutput::json)
}

fn with_status(tool: ToolDef, _: &Web) -> ToolDef {
    tool.with_output_schema(object(
        json!({
            "online": {"type": "boolean"},
            "status_code": {"type": ["integer", "null"]},
            "response_time": {"type": "number"},
        }),
        json!({"error": {"type": "string"}}),
    ))
}

/// A site is online when it answers and its server did not fail. A refused address says nothing about a site.
async fn status(web: &Web, context: &ToolContext, url: &str) -> Result<Value, ToolError> {
    let (reach, none, start) = (web.reach(context), HeaderMap::new(), Instant::now());
    let url = address(url)?;
    // `HEAD` is answered otherwise than `GET` by many servers; the body is not read.
    let request = PageRequest { reach: &reach, method: Method::GET, url, headers: &none, most: None };
    let outcome = web.page(request, SITE_TIME).await;
    let seconds = (start.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
    match outcome {
        Ok(page) => {
            Ok(json!({"online": page.status < 500, "status_code": page.status, "response_time": seconds}))
        }
        Err(error) if matches!(error.kind(), ErrorKind::Permission | ErrorKind::Parsing) => Err(error),
        Err(error) => {
            let why = error.message();
            Ok(json!({"online": false, "status_code": null, "response_time": seconds, "error": why}))
        }
    }
}
