//! `browser_act`: steps on a page. Each step that changes something is a call of its own, `browser_step`,
//! whose arguments are facts of the page, so that rules and people decide about what will really happen.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolwright_core::{InvokeOptions, ToolContext, ToolError, ToolOutput, Toolset, text::visible, tool};

use crate::engine::DialogAnswer;
use crate::input::check_key;
use crate::instance::WorldError;
use crate::locate::{ElementFacts, Located};
use crate::options::BrowserOptions;
use crate::perform::StepTarget;
use crate::reading::gone;
use crate::refs::ElementKey;
use crate::report::{external, quoted};
use crate::risk::risk_of;
use crate::tools::of_browser;

/// The most steps of one call.
const MAX_STEPS: usize = 10;
/// The longest `wait`.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepAction {
    Click,
    DoubleClick,
    RightClick,
    Hover,
    Fill,
    Type,
    Press,
    Select,
    Check,
    Uncheck,
    Scroll,
    Drag,
    Upload,
    Wait,
    WaitGone,
}

impl StepAction {
    fn name(self) -> &'static str {
        match self {
            StepAction::Click => "click",
            StepAction::DoubleClick => "double_click",
            StepAction::RightClick => "right_click",
            StepAction::Hover => "hover",
            StepAction::Fill => "fill",
            StepAction::Type => "type",
            StepAction::Press => "press",
            StepAction::Select => "select",
            StepAction::Check => "check",
            StepAction::Uncheck => "uncheck",
            StepAction::Scroll => "scroll",
            StepAction::Drag => "drag",
            StepAction::Upload => "upload",
            StepAction::Wait => "wait",
            StepAction::WaitGone => "wait_gone",
        }
    }

    /// Whether the page, or somebody behind it, may be changed.
    fn changes(self) -> bool {
        !matches!(self, StepAction::Hover | StepAction::Scroll | StepAction::Wait | StepAction::WaitGone)
    }

    fn types(self) -> bool {
        matches!(self, StepAction::Fill | StepAction::Type | StepAction::Select | StepAction::Upload)
    }
}

/// One step.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageStep {
    #[serde(rename = "do")]
    pub(crate) action: StepAction,
    /// The element.
    #[serde(rename = "ref")]
    pub(crate) reference: Option<String>,
    /// fill (replaces), type (key by key): the text; press: a key as `Enter`, `Control+A`; select: an option;
    /// scroll: `up`, `down`; upload: a file; wait: a text or seconds.
    pub(crate) text: Option<String>,
    /// drag: the element to drop it on.
    pub(crate) to: Option<String>,
    /// A place in the picture, without `ref`.
    pub(crate) x: Option<f64>,
    pub(crate) y: Option<f64>,
    /// `accept` or `dismiss` the dialog that this opens, or the text to answer it with.
    pub(crate) dialog: Option<String>,
}

impl PageStep {
    pub(crate) fn new(action: StepAction, reference: Option<String>, text: Option<String>) -> PageStep {
        PageStep { action, reference, text, to: None, x: None, y: None, dialog: None }
    }

    pub(crate) fn text(&self) -> Result<&str, ToolError> {
        let missing = || ToolError::invalid(format!("`{}` needs `text`", self.action.name()));
        self.text.as_deref().ok_or_else(missing)
    }

    fn dialog_answer(&self) -> Option<DialogAnswer> {
        Some(match self.dialog.as_deref()? {
            "accept" => DialogAnswer::Accept(None),
            "dismiss" => DialogAnswer::Dismiss,
            text => DialogAnswer::Accept(Some(text.to_owned())),
        })
    }

    /// Finds mistakes before the first step is made.
    fn check(&self) -> Result<(), ToolError> {
        let name = self.action.name();
        let place = match (self.x, self.y) {
            (Some(x), Some(y)) if (0.0..=4096.0).contains(&x) && (0.0..=4096.0).contains(&y) => true,
            (None, None) => false,
            _ => {
                return Err(ToolError::invalid(format!(
                    "`{name}`: `x` and `y` must be a place in the picture"
                )));
            }
        };
        let needs_element = matches!(
            self.action,
            StepAction::Fill
                | StepAction::Select
                | StepAction::Check
                | StepAction::Uncheck
                | StepAction::Upload
        );
        if needs_element && self.reference.is_none() {
            return Err(ToolError::invalid(format!("`{name}` needs `ref`")));
        }
        let pointing = matches!(
            self.action,
            StepAction::Click
                | StepAction::DoubleClick
                | StepAction::RightClick
                | StepAction::Hover
                | StepAction::Drag
        );
        if pointing && self.reference.is_some() == place {
            return Err(ToolError::invalid(format!("`{name}` needs either `ref` or `x` and `y`")));
        }
        match self.action {
            StepAction::Press => check_key(self.text()?),
            StepAction::Drag if self.to.is_none() => Err(ToolError::invalid("`drag` needs `to`")),
            StepAction::Fill
            | StepAction::Type
            | StepAction::Select
            | StepAction::Upload
            | StepAction::Wait
            | StepAction::WaitGone => self.text().map(|_| ()),
            StepAction::Scroll => match self.text.as_deref().unwrap_or("down") {
                "up" | "down" | "left" | "right" => Ok(()),
                other => Err(ToolError::invalid(format!(
                    "`scroll` goes up, down, left or right, not {}",
                    quoted(other)
                ))),
            },
            _ => Ok(()),
        }
    }
}

/// Acts on the page in up to ten steps, and shows what changed. It stops at the first step that fails.
#[tool(sandboxed, open_world, destructive, finish = of_browser)]
pub(crate) async fn browser_act(
    ctx: &ToolContext,
    #[tool(setup)] options: &BrowserOptions,
    /// The steps, in order.
    #[tool(min_items = 1, max_items = 10)]
    steps: Vec<PageStep>,
) -> Result<ToolOutput, ToolError> {
    if steps.is_empty() || steps.len() > MAX_STEPS {
        return Err(ToolError::invalid(format!(
            "there are {} steps; 1 to {MAX_STEPS} are done",
            steps.len()
        )));
    }
    for (index, step) in steps.iter().enumerate() {
        step.check().map_err(|error| numbered(index, &error))?;
    }
    let (mut tab, mut world) = {
        let mut open = options.enter(ctx).await?;
        let browser = open.get()?;
        let tab = browser.tab(None)?;
        (tab.number, browser.main_world(&tab).await.ok().map(|world| world.id))
    };
    let mut done = Vec::new();
    let mut failure = None;
    let mut settled = crate::settle::Settled::default();
    for (index, step) in steps.iter().enumerate() {
        match run_step(ctx, options, step, index + 1 == steps.len()).await {
            Ok(outcome) => {
                if outcome.tab != tab {
                    (tab, world) = (outcome.tab, None);
                }
                settled = outcome.settled;
                done.push(outcome.words);
            }
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => {
                failure = Some((index, error));
                break;
            }
        }
    }
    let mut open = options.enter(ctx).await?;
    let browser = open.get()?;
    let notices = browser.take_notices();
    for notice in &notices {
        if let crate::engine::Notice::TabOpened { number } = notice
            && let Ok(opened) = browser.tab(Some(*number))
        {
            browser.current = *number;
            (tab, world) = (*number, None);
            settled = browser.settle_now(&opened.target).await;
        }
        done.push(browser.notice_line(notice));
    }
    let scrolled = steps.last().is_some_and(|step| step.action == StepAction::Scroll);
    let report = match (done.is_empty(), scrolled && failure.is_none()) {
        (true, _) => None,
        (_, true) => {
            Some(browser.view(tab, settled).await.map(|report| (report.host, report.body, report.note)))
        }
        _ => Some(browser.changes(tab, world, &settled).await),
    };
    let (host, body, note) = match report {
        None => Default::default(),
        Some(Ok(report)) => report,
        // The page may have closed itself.
        Some(Err(error)) => (String::new(), String::new(), error.message().to_owned()),
    };
    let mut lines = done.join("\n");
    if !body.is_empty() {
        lines = format!("{lines}\n{body}");
    }
    let Some((index, error)) = failure else { return Ok(external(&host, &lines, &note)) };
    let rest = steps.len() - index - 1;
    let mut failed = numbered(index, &error);
    if rest > 0 {
        failed = failed.hint(format!(
            "{}; the {rest} steps after it were not made",
            error.info().hint.unwrap_or_default()
        ));
    }
    Err(if done.is_empty() { failed } else { failed.with_partial(external(&host, &lines, &note)) })
}

/// The error of a step, with its number.
fn numbered(index: usize, error: &ToolError) -> ToolError {
    let info = error.info();
    let named = ToolError::of(info.kind, format!("step {}: {}", index + 1, info.message));
    match info.hint {
        Some(hint) => named.hint(hint),
        None => named,
    }
}

/// What a step did.
pub(crate) struct StepOutcome {
    pub(crate) words: String,
    pub(crate) tab: u32,
    pub(crate) settled: crate::settle::Settled,
}

/// A step on its way through the decision about it.
struct PendingStep {
    options: BrowserOptions,
    step: PageStep,
    target: StepTarget,
    facts: ElementFacts,
    last: bool,
    outcome: std::sync::Mutex<Option<StepOutcome>>,
}

pub(crate) async fn run_step(
    ctx: &ToolContext,
    options: &BrowserOptions,
    step: &PageStep,
    last: bool,
) -> Result<StepOutcome, ToolError> {
    let (target, facts) = find_target(ctx, options, step).await?;
    if !step.action.changes() {
        let mut open = options.enter(ctx).await?;
        return open.get()?.perform(step, &target, &facts, last).await;
    }
    let risk = risk_of(&facts, step.action.types());
    let mut arguments = Map::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            arguments.insert(name.to_owned(), Value::from(visible(value)));
        }
    };
    put("action", step.action.name());
    put("host", &facts.host);
    put("element", &if target.key().is_some() { facts.words() } else { String::new() });
    put("page", &facts.title);
    put("risk", risk.map_or("", |risk| risk.name()));
    if step.action != StepAction::Press && (facts.role == "button" || facts.role == "link") {
        put("goes_to", if facts.role == "link" { &facts.href } else { &facts.action });
    }
    if let Some(text) = &step.text {
        arguments.insert("text".to_owned(), text.as_str().into());
    }
    let pending = Arc::new(PendingStep {
        options: options.clone(),
        step: step.clone(),
        target,
        facts,
        last,
        outcome: std::sync::Mutex::default(),
    });
    // Nothing that may cost money, delete or publish counts as contained by the sandbox.
    let tools = Toolset::new().with(browser_step().with_sandboxed(risk.is_none()))?;
    let invoke = InvokeOptions { caller_data: Some(pending.clone()), ..InvokeOptions::default() };
    ctx.call_in(&tools, "browser_step", Value::Object(arguments), invoke).await?;
    let outcome = crate::cdp::lock(&pending.outcome).take();
    outcome.ok_or_else(|| ToolError::new("the step was not made"))
}

/// Where a step acts, and what is there.
async fn find_target(
    ctx: &ToolContext,
    options: &BrowserOptions,
    step: &PageStep,
) -> Result<(StepTarget, ElementFacts), ToolError> {
    let mut open = options.enter(ctx).await?;
    let browser = open.get()?;
    let tab = browser.tab(None)?;
    let page = ElementFacts { host: crate::reading::host_of(&tab.url), ..ElementFacts::default() };
    let Some(reference) = &step.reference else {
        return Ok((StepTarget::Place(step.x.zip(step.y)), page));
    };
    let key = browser.element(reference)?;
    let located = located(browser.locate(key, true).await, reference)?;
    let to = match &step.to {
        Some(to) => Some(browser.element(to)?),
        None => None,
    };
    Ok((StepTarget::Element { key, to }, located.facts))
}

/// A located element, or the error for the model.
pub(crate) fn located(found: Result<Located, WorldError>, reference: &str) -> Result<Located, ToolError> {
    match found {
        Ok(located) => Ok(located),
        Err(WorldError::Lost) => Err(gone(reference)),
        Err(WorldError::Tool(error)) => Err(error),
    }
}

impl StepTarget {
    fn key(&self) -> Option<ElementKey> {
        match self {
            StepTarget::Element { key, .. } => Some(*key),
            StepTarget::Place(_) => None,
        }
    }
}

/// One step on a page, as it is decided about: made by `browser_act` only.
#[tool(open_world, destructive, parallel = false, category = "web")]
async fn browser_step(
    ctx: &ToolContext,
    /// What is done.
    action: String,
    /// The text that is typed, or the key.
    text: Option<String>,
    /// Role and name of the element.
    element: Option<String>,
    /// Host and port of the page.
    host: Option<String>,
    /// The title of the page.
    page: Option<String>,
    /// The class of what it may mean outside of the page.
    risk: Option<String>,
    /// Where a link or a form leads.
    goes_to: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let (_, _, _, _, _, _) = (action, element, host, page, risk, goes_to);
    let pending = ctx.caller_data::<PendingStep>();
    let pending = pending.ok_or_else(|| ToolError::invalid("`browser_step` is part of `browser_act`"))?;
    let mut open = pending.options.enter(ctx).await?;
    let browser = open.get()?;
    // An approver may have changed the text.
    let step = PageStep { text, ..pending.step.clone() };
    if let Some(answer) = step.dialog_answer() {
        let tab = browser.tab(None)?;
        if let Some(tab) = browser.engine.shared.tabs().of_target(&tab.target) {
            tab.dialog_answer = Some(answer);
        }
    }
    let outcome = browser.perform(&step, &pending.target, &pending.facts, pending.last).await;
    for tab in &mut browser.engine.shared.tabs().list {
        tab.dialog_answer = None;
    }
    let outcome = outcome?;
    let output = ToolOutput::text(outcome.words.clone());
    *crate::cdp::lock(&pending.outcome) = Some(outcome);
    Ok(output)
}

/// How long a `wait` may take, and for what.
pub(crate) fn wait_of(step: &PageStep) -> Result<(Option<Duration>, Duration), ToolError> {
    let text = step.text()?;
    match text.trim().parse::<f64>() {
        Ok(seconds) if step.action == StepAction::Wait => {
            let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| *time <= MAX_WAIT);
            let time = time.ok_or_else(|| ToolError::invalid("`wait` takes 0 to 30 seconds"))?;
            Ok((Some(time), time))
        }
        _ => Ok((None, MAX_WAIT)),
    }
}

/// The arguments that name a page script's element.
pub(crate) fn number_of(key: ElementKey) -> Value {
    json!([key.number])
}
