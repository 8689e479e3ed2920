//! The eight `web_browser_*` tools of Inspect, on the same engine.

use std::sync::atomic::{AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_core::{ToolContext, ToolDef, ToolError, ToolOutput, Toolset, ToolsetError, tool};

use crate::act::{PageStep, StepAction, run_step};
use crate::ax_tree::{AxText, Viewport, ax_text};
use crate::instance::{Instance, WorldError};
use crate::options::BrowserOptions;
use crate::reading::host_of;
use crate::report::external;
use crate::tools::of_browser;

/// The window that these tools have there.
const VIEWPORT: Viewport = Viewport { width: 1280.0, height: 1080.0 };

/// The names of the eight tools.
pub const WEB_BROWSER_NAMES: [&str; 8] = [
    "web_browser_go",
    "web_browser_click",
    "web_browser_type_submit",
    "web_browser_type",
    "web_browser_scroll",
    "web_browser_back",
    "web_browser_forward",
    "web_browser_refresh",
];

/// The `web_browser` tools of Inspect; those that are not `interactive` neither click nor type. Each set has
/// a context of its own unless the options name an [instance](BrowserOptions::instance); an empty name is one
/// for the whole run, as `instance=None` is there.
///
/// ```
/// use toolwright_browser::{BrowserOptions, web_browser};
///
/// assert_eq!(web_browser(&BrowserOptions::new(), true)?.len(), 8);
/// assert!(web_browser(&BrowserOptions::new(), false)?.get("web_browser_click").is_none());
/// # Ok::<(), toolwright_core::ToolsetError>(())
/// ```
pub fn web_browser(options: &BrowserOptions, interactive: bool) -> Result<Toolset, ToolsetError> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let own = || format!("web_browser#{}", MADE.fetch_add(1, Ordering::Relaxed));
    let options = match options.instance_name() {
        Some(_) => options.clone(),
        None => options.clone().instance(own()),
    };
    let acts = |name: &&&str| name.contains("click") || name.contains("type");
    let names = WEB_BROWSER_NAMES.iter().filter(|name| interactive || !acts(name));
    names.filter_map(|name| web_browser_tool(name, &options)).try_fold(Toolset::new(), Toolset::with)
}

/// One of them.
pub(crate) fn web_browser_tool(name: &str, options: &BrowserOptions) -> Option<ToolDef> {
    Some(match name {
        "web_browser_go" => web_browser_go(options),
        "web_browser_click" => web_browser_click(options),
        "web_browser_type_submit" => web_browser_type_submit(options),
        "web_browser_type" => web_browser_type(options),
        "web_browser_scroll" => web_browser_scroll(options),
        "web_browser_back" => web_browser_back(options),
        "web_browser_forward" => web_browser_forward(options),
        "web_browser_refresh" => web_browser_refresh(options),
        _ => return None,
    })
}

/// Opens an address in the web browser and shows the page as a tree of elements, with their roles, names and
/// numbers. The numbers, in brackets before each element, are what the other tools take.
#[tool(sandboxed, open_world, finish = of_browser)]
async fn web_browser_go(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// The address to open.
    url: String,
) -> Result<ToolOutput, ToolError> {
    let mut open = options.enter(ctx).await?;
    let browser = open.get()?;
    browser.prepare_window().await?;
    browser.open_page(&url, false).await?;
    browser.tree().await
}

/// Clicks an element of the page in the web browser: a link, a button, a field.
#[tool(sandboxed, open_world, finish = of_browser)]
async fn web_browser_click(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// The number of the element, as the tree shows it.
    element_id: i64,
) -> Result<ToolOutput, ToolError> {
    act(ctx, options, Some(element_id), &[(StepAction::Click, None)]).await
}

/// Replaces the text of a field in the web browser and presses Enter, which sends its form.
#[tool(sandboxed, open_world, finish = of_browser)]
async fn web_browser_type_submit(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// The number of the field, as the tree shows it.
    element_id: i64,
    /// The text to type.
    text: String,
) -> Result<ToolOutput, ToolError> {
    let steps = [(StepAction::Fill, Some(text.as_str())), (StepAction::Press, Some("Enter"))];
    act(ctx, options, Some(element_id), &steps).await
}

/// Types text into a field of the page in the web browser, behind what is there.
#[tool(sandboxed, open_world, finish = of_browser)]
async fn web_browser_type(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// The number of the field, as the tree shows it.
    element_id: i64,
    /// The text to type.
    text: String,
) -> Result<ToolOutput, ToolError> {
    act(ctx, options, Some(element_id), &[(StepAction::Type, Some(text.as_str()))]).await
}

/// Where to scroll.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum ScrollDirection {
    Up,
    Down,
}

/// Scrolls the page in the web browser by about a window.
#[tool(sandboxed, open_world, finish = of_browser)]
async fn web_browser_scroll(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// "up" or "down".
    direction: ScrollDirection,
) -> Result<ToolOutput, ToolError> {
    let direction = match direction {
        ScrollDirection::Up => "up",
        ScrollDirection::Down => "down",
    };
    act(ctx, options, None, &[(StepAction::Scroll, Some(direction))]).await
}

/// Goes back to the page before in the web browser.
#[tool(sandboxed, open_world, finish = of_browser)]
async fn web_browser_back(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
) -> Result<ToolOutput, ToolError> {
    travel(ctx, options, "back").await
}

/// Goes forward to the page after this one in the web browser.
#[tool(sandboxed, open_world, finish = of_browser)]
async fn web_browser_forward(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
) -> Result<ToolOutput, ToolError> {
    travel(ctx, options, "forward").await
}

/// Loads the page in the web browser again.
#[tool(sandboxed, open_world, finish = of_browser)]
async fn web_browser_refresh(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
) -> Result<ToolOutput, ToolError> {
    travel(ctx, options, "reload").await
}

async fn travel(ctx: &ToolContext, options: &BrowserOptions, how: &str) -> Result<ToolOutput, ToolError> {
    let mut open = options.enter(ctx).await?;
    let browser = open.get()?;
    browser.open_page(how, false).await?;
    browser.tree().await
}

/// Makes steps on one element, each decided about like those of `browser_act`, and shows the page.
async fn act(
    ctx: &ToolContext,
    options: &BrowserOptions,
    element: Option<i64>,
    steps: &[(StepAction, Option<&str>)],
) -> Result<ToolOutput, ToolError> {
    let reference = match element {
        None => None,
        Some(id) => {
            let mut open = options.enter(ctx).await?;
            Some(open.get()?.reference_of(id).await?)
        }
    };
    for (index, (action, text)) in steps.iter().enumerate() {
        let step = PageStep::new(*action, reference.clone(), text.map(str::to_owned));
        run_step(ctx, options, &step, index + 1 == steps.len()).await?;
    }
    let mut open = options.enter(ctx).await?;
    let browser = open.get()?;
    browser.follow_new_tabs().await;
    browser.tree().await
}

impl Instance {
    /// Gives the current tab the window that these tools have.
    async fn prepare_window(&mut self) -> Result<(), ToolError> {
        let tab = match self.tabs().is_empty() {
            true => self.new_tab().await?,
            false => self.tab(None)?,
        };
        let window = json!({"width": 1280, "height": 1080, "deviceScaleFactor": 1, "mobile": false});
        self.send(&tab.session, "Emulation.setDeviceMetricsOverride", window).await?;
        // Numbers of nodes stay the same for as long as this is on.
        self.send(&tab.session, "Accessibility.enable", json!({})).await.map(|_| ())
    }

    /// The page as Inspect shows it.
    async fn tree(&mut self) -> Result<ToolOutput, ToolError> {
        self.prepare_window().await?;
        let tab = self.tab(None)?;
        let tree = self.send(&tab.session, "Accessibility.getFullAXTree", json!({})).await?;
        let params = json!({"computedStyles": []});
        let snapshot = self.send(&tab.session, "DOMSnapshot.captureSnapshot", params).await?;
        // Both are large for large pages; the text is made where that does no harm.
        let made = tokio::task::spawn_blocking(move || ax_text(&tree, &snapshot, VIEWPORT)).await;
        let made = made.map_err(|_| ToolError::new("the page could not be made text"))?;
        let AxText { tree, main, nodes } = made;
        self.numbered = nodes;
        let notices = self.take_notices();
        let mut body: String =
            notices.iter().map(|notice| format!("{}\n", self.notice_line(notice))).collect();
        if let Some(main) = main {
            body.push_str(&format!("main content:\n{main}\n\naccessibility tree:\n"));
        }
        match tree.is_empty() {
            true => body.push_str("(no web accessibility tree available)"),
            false => body.push_str(tree.trim_end_matches('\n')),
        }
        Ok(external(&host_of(&tab.url), &body, ""))
    }

    /// A reference to the element that a number of the last tree stands for.
    async fn reference_of(&mut self, id: i64) -> Result<String, ToolError> {
        let missing = || ToolError::new(format!("Could not find element with id {id}"));
        let dom = self.numbered.get(&id).copied().ok_or_else(missing)?;
        let tab = self.tab(None)?;
        let world = self.main_world(&tab).await?;
        let params = json!({"backendNodeId": dom, "executionContextId": world.context()});
        let object = self.engine.cdp.send(Some(world.session()), "DOM.resolveNode", params).await;
        let object = object.map_err(|_| missing())?;
        let object = object.pointer("/object/objectId").and_then(Value::as_str).ok_or_else(missing)?;
        let number: u64 = match self.call_on(&world, object, "take").await {
            Ok(number) => number,
            Err(WorldError::Lost) => return Err(missing()),
            Err(WorldError::Tool(error)) => return Err(error),
        };
        Ok(self.refs.number(crate::refs::ElementKey { world: world.id, number }).to_string())
    }
}
