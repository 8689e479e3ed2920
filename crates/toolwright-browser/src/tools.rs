//! The six tools.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_core::text::{clip, visible};
use toolwright_core::{ToolContext, ToolDef, ToolError, ToolOutput, Toolset, ToolsetError, tool};

use crate::act::browser_act;
use crate::inspect::web_browser_tool;
use crate::instance::{Instance, TabHead, WorldError};
use crate::locate::Located;
use crate::options::BrowserOptions;
use crate::reading::{PageReport, gone};
use crate::report::{external, quoted};
use crate::settle::Settled;

/// The browser tools, which share one instance.
pub fn browser_tools(options: &BrowserOptions) -> Result<Toolset, ToolsetError> {
    NAMES.iter().filter_map(|name| browser_tool(name, options)).try_fold(Toolset::new(), Toolset::with)
}

/// The names of the browser tools.
pub const NAMES: [&str; 6] =
    ["browser_open", "browser_read", "browser_find", "browser_act", "browser_look", "browser_tabs"];

/// The browser tool of that name, or the one that another system calls so.
pub fn browser_tool(name: &str, options: &BrowserOptions) -> Option<ToolDef> {
    let name = name.strip_prefix("inspect_ai.tool.").unwrap_or(name);
    Some(match name {
        "browser_open" => browser_open(options),
        "browser_read" => browser_read(options),
        "browser_find" => browser_find(options),
        "browser_act" => browser_act(options),
        "browser_look" => browser_look(options),
        "browser_tabs" => browser_tabs(options),
        _ => return web_browser_tool(name, options),
    })
}

/// The tool that a name stands for, set up as a file's `config` says; see [`BrowserOptions::from_config`].
///
/// ```
/// use serde_json::{Value, json};
/// use toolwright_browser::configured;
///
/// let open = configured("browser_open", &json!({"instance": "research"})).unwrap()?;
/// assert_eq!(&*open.spec().name, "browser_open");
/// assert!(configured("browser_open", &json!({"instanec": ""})).unwrap().is_err());
/// assert!(configured("bash", &json!({})).is_none());
/// # Ok::<(), toolwright_core::ToolError>(())
/// ```
pub fn configured(reference: &str, config: &Value) -> Option<Result<ToolDef, ToolError>> {
    let usual = browser_tool(reference, &BrowserOptions::new())?;
    let options = BrowserOptions::from_config(config);
    Some(options.map(|options| browser_tool(reference, &options).unwrap_or(usual)))
}

/// What all of them have in common.
pub(crate) fn of_browser(tool: ToolDef, options: &BrowserOptions) -> ToolDef {
    tool.with_category("web").with_parallel(false).with_timeout(options.call_timeout())
}

/// Opens a web page and shows its visible part as text. `[a3 Home]` is a link, b a button, i a field, c a
/// checkbox or radio button, s a select, f a frame, e another element.
#[tool(sandboxed, open_world, finish = of_browser)]
async fn browser_open(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// An http(s) address, or `back`, `forward`, `reload`.
    #[tool(min_length = 1, max_length = 8000)]
    url: String,
    /// Open it in a new tab.
    #[tool(default)]
    new_tab: bool,
) -> Result<ToolOutput, ToolError> {
    let mut open = options.enter(ctx).await?;
    let browser = open.get()?;
    let report = browser.open_page(&url, new_tab).await;
    if report.is_ok() || !browser.engine.is_gone() {
        return Ok(report?.output());
    }
    // The browser crashed; opening a page needs nothing of the one before.
    drop(open);
    let mut open = options.enter(ctx).await?;
    Ok(open.get()?.open_page(&url, new_tab).await?.output())
}

/// Reads the page as text, or one element (frame, table, select) by its ref. Long pages come in parts.
#[tool(sandboxed, read_only, open_world, finish = of_browser)]
async fn browser_read(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// Read only this element.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// The first line to show.
    #[tool(default = 1, min = 1)]
    from: usize,
    /// Show the addresses of links.
    #[tool(default)]
    urls: bool,
    /// Another tab than the current one.
    tab: Option<u32>,
) -> Result<ToolOutput, ToolError> {
    let mut open = options.enter(ctx).await?;
    let browser = open.get()?;
    let report = browser.read(tab, reference.as_deref(), from, urls).await?;
    Ok(report.output())
}

/// Finds the lines of the page that contain a text.
#[tool(sandboxed, read_only, open_world, finish = of_browser)]
async fn browser_find(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// The text, in any case.
    #[tool(min_length = 1, max_length = 1000)]
    text: String,
    /// The text is a regular expression.
    #[tool(default)]
    regex: bool,
) -> Result<ToolOutput, ToolError> {
    let mut open = options.enter(ctx).await?;
    let report = open.get()?.find(None, &text, regex).await?;
    Ok(report.output())
}

/// A part of the visible page.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Region {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Takes a picture of the visible page (1280x800), of one element or of a region.
#[tool(sandboxed, read_only, open_world, finish = of_browser)]
async fn browser_look(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// Only this element.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// Only this part, in pixels.
    region: Option<Region>,
) -> Result<ToolOutput, ToolError> {
    let mut open = options.enter(ctx).await?;
    let browser = open.get()?;
    let part = match (&reference, region) {
        (Some(_), Some(_)) => return Err(ToolError::invalid("give `ref` or `region`, not both")),
        (None, None) => None,
        (None, Some(Region { x, y, width, height })) => {
            let inside = x >= 0.0 && y >= 0.0 && width >= 1.0 && height >= 1.0;
            if !inside || x + width > 4096.0 || y + height > 4096.0 {
                return Err(ToolError::invalid(
                    "`region` must lie inside the page that can be seen (1280x800)",
                ));
            }
            Some(json!({"x": x, "y": y, "width": width, "height": height, "scale": 1}))
        }
        (Some(reference), None) => Some(browser.clip_of(reference).await?),
    };
    browser.picture(None, part).await
}

/// What to do with tabs.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum TabAction {
    List,
    Switch,
    Close,
}

/// Lists, switches or closes tabs.
#[tool(sandboxed, open_world, finish = of_browser)]
async fn browser_tabs(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// What to do.
    #[tool(default = TabAction::List)]
    action: TabAction,
    /// The number of the tab.
    tab: Option<u32>,
) -> Result<ToolOutput, ToolError> {
    let mut open = options.enter(ctx).await?;
    let browser = open.get()?;
    match (action, tab) {
        (TabAction::List, _) => Ok(browser.tab_list().await),
        (_, None) => Err(ToolError::invalid("`tab` is missing: which tab?")),
        (TabAction::Switch, Some(number)) => {
            let tab = browser.tab(Some(number))?;
            browser.current = number;
            browser.send(&tab.session, "Page.bringToFront", json!({})).await?;
            let settled = browser.settle_now(&tab.target).await;
            Ok(browser.view(number, settled).await?.output())
        }
        (TabAction::Close, Some(number)) => {
            let tab = browser.tab(Some(number))?;
            browser.close_tab(&tab).await?;
            Ok(browser.tab_list().await)
        }
    }
}

impl Instance {
    /// Opens an address, or goes through the history, and shows the first view.
    pub(crate) async fn open_page(&mut self, url: &str, new_tab: bool) -> Result<PageReport, ToolError> {
        let travel = matches!(url.trim(), "back" | "forward" | "reload");
        let address = if travel { String::new() } else { web_address(url)? };
        let tab = match new_tab && !travel || self.tabs().is_empty() {
            true => self.new_tab().await?,
            false => self.tab(None)?,
        };
        // A page that crashed cannot be used again.
        let tab = match self.is_crashed(&tab.target) {
            true => {
                self.close_tab(&tab).await?;
                self.new_tab().await?
            }
            false => tab,
        };
        let settled: Settled = match url.trim() {
            "back" => self.travel(&tab, -1).await?,
            "forward" => self.travel(&tab, 1).await?,
            "reload" => self.reload(&tab).await?,
            _ => self.go(&tab, &address).await?,
        };
        self.view(tab.number, settled).await
    }

    /// Closes a tab and waits until it is gone.
    async fn close_tab(&mut self, tab: &TabHead) -> Result<(), ToolError> {
        let mut changes = self.engine.shared.changes();
        self.engine.send(None, "Target.closeTarget", json!({"targetId": tab.target})).await?;
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(5);
        while self.tabs().iter().any(|open| open.number == tab.number) {
            if !matches!(tokio::time::timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                break;
            }
        }
        if self.current == tab.number {
            self.current = self.tabs().last().map_or(0, |tab| tab.number);
        }
        self.shown.remove(&tab.number);
        Ok(())
    }

    async fn tab_list(&self) -> ToolOutput {
        let mut lines = Vec::new();
        for tab in self.tabs() {
            let current = if tab.number == self.current { " (current)" } else { "" };
            // Events do not report titles that change.
            let params = json!({"targetId": tab.target});
            let info = self.engine.send(None, "Target.getTargetInfo", params).await.unwrap_or_default();
            let title = info.pointer("/targetInfo/title").and_then(Value::as_str).unwrap_or_default();
            let (title, url) = (clip(title, 100), clip(&tab.url, 200));
            lines.push(visible(&format!("tab {}{current}: {title} | {url}", tab.number)));
        }
        match lines.is_empty() {
            true => ToolOutput::text("no tab is open"),
            false => external("tabs", &lines.join("\n"), ""),
        }
    }

    /// The part of the page that an element takes.
    async fn clip_of(&mut self, reference: &str) -> Result<serde_json::Value, ToolError> {
        let key = self.element(reference)?;
        let located = match self.locate(key, true).await {
            Ok(located) => located,
            Err(WorldError::Lost) => return Err(gone(reference)),
            Err(WorldError::Tool(error)) => return Err(error),
        };
        let Located { left, top, width, height, .. } = located;
        let (left, top) = (left.max(0.0), top.max(0.0));
        let (width, height) = (width.clamp(1.0, 1280.0), height.clamp(1.0, 2000.0));
        Ok(json!({"x": left, "y": top, "width": width, "height": height, "scale": 1}))
    }
}

/// An address of the web. One without a scheme is taken for https, as people write it.
pub(crate) fn web_address(url: &str) -> Result<String, ToolError> {
    let url = url.trim();
    let refused = |what: &str| {
        ToolError::invalid(format!("{} is not a web address: {what}", quoted(url)))
            .hint("addresses begin with `https://` or `http://`")
    };
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(refused("it has spaces or control characters"));
    }
    if url == "about:blank" {
        return Ok(url.to_owned());
    }
    match url.split_once("://") {
        Some((scheme, rest)) if matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") => {
            if rest.split(['/', '?', '#']).next().unwrap_or_default().is_empty() {
                return Err(refused("it has no host"));
            }
            Ok(url.to_owned())
        }
        Some((scheme, _)) => Err(refused(&format!("the scheme `{}` is not opened", scheme.escape_debug()))),
        None => {
            let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
            let (name, port) = authority.split_once(':').unwrap_or((authority, "443"));
            let scheme = ["javascript", "data", "blob", "about", "chrome", "file"];
            if name.is_empty() || port.parse::<u16>().is_err() || scheme.contains(&name) {
                return Err(refused("the scheme is not opened"));
            }
            Ok(format!("https://{url}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_web_are_opened() {
        for (given, taken) in [
            ("https://a.example/x", "https://a.example/x"),
            ("HTTP://a.example", "HTTP://a.example"),
            ("a.example:8080/x", "https://a.example:8080/x"),
            (" example.com ", "https://example.com"),
        ] {
            assert_eq!(web_address(given).unwrap(), taken);
        }
        for wrong in [
            "file:///etc/passwd",
            "chrome://version",
            "javascript:alert(1)",
            "javascript:1",
            "data:text/html,x",
            "view-source:x",
            "https://",
            "blob:https://a/b",
            "",
            "a b",
            "https://a\n.example",
            "about:config",
        ] {
            assert!(web_address(wrong).is_err(), "{wrong}");
        }
    }
}
