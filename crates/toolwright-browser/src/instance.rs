//! One instance of the browser tools: a context of its own in the run's browser, its tabs, and what it has
//! shown to the model.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use toolwright_core::{DynSandbox, ExecRequest, ToolError};

use crate::cdp::CdpError;
use crate::engine::{Engine, LoadState, Notice};
use crate::refs::{ElementKey, Refs};
use crate::report::PageLine;
use crate::script;

/// How long a new document may take until it is parsed.
pub(crate) const LOAD_TIMEOUT: Duration = Duration::from_secs(20);

/// A context of a browser, and what a model was shown of it.
pub(crate) struct Instance {
    pub(crate) engine: Arc<Engine>,
    pub(crate) sandbox: Arc<DynSandbox>,
    context: String,
    /// The number of the tab that calls without a tab are about.
    pub(crate) current: u32,
    pub(crate) refs: Refs,
    worlds: Vec<World>,
    last_world: u32,
    /// The text of each tab when it was last reported.
    pub(crate) shown: HashMap<u32, Vec<PageLine>>,
    pub(crate) downloads: String,
    /// The DOM nodes behind the numbers of the last tree.
    pub(crate) numbered: HashMap<i64, i64>,
}

/// The isolated world of one document.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) id: u32,
    pub(crate) tab: u32,
    frame: String,
    session: String,
    context: i64,
    token: String,
    epoch: u64,
    /// The frame element that the document stands in.
    pub(crate) parent: Option<ElementKey>,
}

/// A tab as the instance needs it.
#[derive(Clone, Debug)]
pub(crate) struct TabHead {
    pub(crate) number: u32,
    pub(crate) target: String,
    pub(crate) session: String,
    pub(crate) url: String,
    pub(crate) load: LoadState,
}

/// How a command to a document failed.
pub(crate) enum WorldError {
    /// The document is gone.
    Lost,
    Tool(ToolError),
}

impl From<ToolError> for WorldError {
    fn from(error: ToolError) -> Self {
        WorldError::Tool(error)
    }
}

impl World {
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    pub(crate) fn context(&self) -> i64 {
        self.context
    }
}

impl Instance {
    /// A new context with one empty tab.
    pub(crate) async fn open(engine: Arc<Engine>, sandbox: Arc<DynSandbox>) -> Result<Instance, ToolError> {
        let made = engine.send(None, "Target.createBrowserContext", json!({"disposeOnDetach": true})).await?;
        let context = string(&made, "browserContextId");
        let folder = sandbox.exec(ExecRequest::new(["mktemp", "-d", "-t", "downloads-XXXXXX"])).await?;
        let downloads = folder.stdout.trim().to_owned();
        let behaviour = if downloads.is_empty() { "deny" } else { "allow" };
        let params = json!({
            "behavior": behaviour, "browserContextId": context, "downloadPath": downloads, "eventsEnabled": true,
        });
        engine.send(None, "Browser.setDownloadBehavior", params).await?;
        let mut instance = Instance {
            engine,
            sandbox,
            context,
            current: 0,
            refs: Refs::default(),
            worlds: Vec::new(),
            last_world: 0,
            shown: HashMap::new(),
            downloads,
            numbered: HashMap::new(),
        };
        instance.new_tab().await?;
        Ok(instance)
    }

    /// Opens an empty tab and makes it the current one.
    pub(crate) async fn new_tab(&mut self) -> Result<TabHead, ToolError> {
        if self.tabs().len() >= crate::engine::MAX_TABS {
            let error =
                ToolError::new(format!("{} tabs are open, which is the most", crate::engine::MAX_TABS));
            return Err(error.hint("close one with `browser_tabs`"));
        }
        let params = json!({"url": "about:blank", "browserContextId": self.context});
        let made = self.engine.send(None, "Target.createTarget", params).await?;
        let target = string(&made, "targetId");
        let mut changes = self.engine.shared.changes();
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            changes.borrow_and_update();
            if let Some(tab) = self.tabs().into_iter().find(|tab| tab.target == target) {
                self.current = tab.number;
                if let Some(tab) = self.engine.shared.tabs().of_target(&target) {
                    tab.load.ready = true;
                }
                return Ok(tab);
            }
            if !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                return Err(ToolError::new("the browser did not open a tab"));
            }
        }
    }

    /// The tabs of this instance.
    pub(crate) fn tabs(&self) -> Vec<TabHead> {
        let tabs = self.engine.shared.tabs();
        let own = tabs.list.iter().filter(|tab| tab.context == self.context);
        own.map(|tab| TabHead {
            number: tab.number,
            target: tab.target.clone(),
            session: tab.session.clone(),
            url: tab.url.clone(),
            load: tab.load.clone(),
        })
        .collect()
    }

    /// The tab of a number; without one, the current tab.
    pub(crate) fn tab(&mut self, number: Option<u32>) -> Result<TabHead, ToolError> {
        let tabs = self.tabs();
        let wanted = number.unwrap_or(self.current);
        if let Some(tab) = tabs.iter().find(|tab| tab.number == wanted) {
            return Ok(tab.clone());
        }
        let known: Vec<String> = tabs.iter().map(|tab| tab.number.to_string()).collect();
        match (number, tabs.last()) {
            (None, Some(last)) => {
                self.current = last.number;
                Ok(last.clone())
            }
            (None, None) => Err(ToolError::new("no page is open").hint("open one with `browser_open`")),
            (Some(number), _) => Err(ToolError::invalid(format!("there is no tab {number}"))
                .hint(format!("tabs: {}", known.join(", ")))),
        }
    }

    /// Whether the page of a tab crashed.
    pub(crate) fn is_crashed(&self, target: &str) -> bool {
        self.engine.shared.tabs().of_target(target).is_some_and(|tab| tab.crashed)
    }

    /// What happened beside the text since the last report.
    pub(crate) fn take_notices(&self) -> Vec<Notice> {
        let mut tabs = self.engine.shared.tabs();
        let own = tabs.list.iter_mut().filter(|tab| tab.context == self.context);
        own.flat_map(|tab| std::mem::take(&mut tab.notices)).collect()
    }

    /// The isolated world of a frame's document; made when the document is new.
    pub(crate) async fn world(
        &mut self,
        tab: &TabHead,
        frame: &str,
        session: &str,
        parent: Option<ElementKey>,
    ) -> Result<World, ToolError> {
        let epoch = self.epoch(&tab.target, frame);
        let same = |world: &World| world.frame == frame && world.epoch == epoch && world.session == session;
        if let Some(world) = self.worlds.iter().find(|world| same(world)) {
            return Ok(world.clone());
        }
        let params = json!({"frameId": frame, "worldName": "toolwright"});
        let made = self.engine.send(Some(session), "Page.createIsolatedWorld", params).await?;
        let context = made.get("executionContextId").and_then(Value::as_i64).unwrap_or_default();
        self.last_world += 1;
        let token = format!("{}-{}", self.last_world, random());
        let params = json!({"expression": script::source(&token), "contextId": context});
        let answer = self.engine.send(Some(session), "Runtime.evaluate", params).await?;
        if let Some(why) = answer.pointer("/exceptionDetails/exception/description").and_then(Value::as_str) {
            return Err(ToolError::fatal(format!("the page script failed: {why}")));
        }
        self.worlds.retain(|world| world.frame != frame);
        let world = World {
            id: self.last_world,
            tab: tab.number,
            frame: frame.to_owned(),
            session: session.to_owned(),
            context,
            token,
            epoch,
            parent,
        };
        self.worlds.push(world.clone());
        Ok(world)
    }

    fn epoch(&self, target: &str, frame: &str) -> u64 {
        let mut tabs = self.engine.shared.tabs();
        tabs.of_target(target).and_then(|tab| tab.documents.get(frame).copied()).unwrap_or_default()
    }

    /// The world of the main document of a tab.
    pub(crate) async fn main_world(&mut self, tab: &TabHead) -> Result<World, ToolError> {
        if self.is_crashed(&tab.target) {
            return Err(ToolError::new("the page crashed").hint("open it again, or another one"));
        }
        let (target, session) = (tab.target.clone(), tab.session.clone());
        self.world(tab, &target, &session, None).await
    }

    /// The world that an element belongs to, while its document is there.
    pub(crate) fn world_of(&self, key: ElementKey) -> Option<World> {
        let world = self.worlds.iter().find(|world| world.id == key.world)?;
        let target = self.tabs().into_iter().find(|tab| tab.number == world.tab)?.target;
        (self.epoch(&target, &world.frame) == world.epoch).then(|| world.clone())
    }

    /// Calls a command of the page script.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        world: &World,
        command: &str,
        arguments: Value,
    ) -> Result<T, WorldError> {
        let value = self.evaluate(world, command, arguments, true).await?;
        let value = value.pointer("/result/value").cloned().unwrap_or_default();
        if value.get("lost").is_some() {
            return Err(WorldError::Lost);
        }
        serde_json::from_value(value).map_err(|error| {
            WorldError::Tool(ToolError::fatal(format!("the page script answered `{command}` oddly: {error}")))
        })
    }

    /// The handle of an object that a command of the page script returns.
    pub(crate) async fn object(
        &self,
        world: &World,
        command: &str,
        arguments: Value,
    ) -> Result<Option<String>, WorldError> {
        let value = self.evaluate(world, command, arguments, false).await?;
        Ok(value.pointer("/result/objectId").and_then(Value::as_str).map(str::to_owned))
    }

    /// Calls a command of the page script with an object as its argument.
    pub(crate) async fn call_on<T: DeserializeOwned>(
        &self,
        world: &World,
        object: &str,
        command: &str,
    ) -> Result<T, WorldError> {
        let params = json!({
            "functionDeclaration": script::CALL_ON,
            "objectId": object,
            "arguments": [{"value": world.token}, {"value": command}],
            "returnByValue": true,
        });
        let answer = self.engine.cdp.send(Some(&world.session), "Runtime.callFunctionOn", params).await;
        let answer = answer.map_err(|_| WorldError::Lost)?;
        let value = answer.pointer("/result/value").cloned().unwrap_or_default();
        serde_json::from_value(value).map_err(|_| WorldError::Lost)
    }

    async fn evaluate(
        &self,
        world: &World,
        command: &str,
        arguments: Value,
        by_value: bool,
    ) -> Result<Value, WorldError> {
        let params = json!({
            "functionDeclaration": script::CALL,
            "executionContextId": world.context,
            "arguments": [{"value": world.token}, {"value": command}, {"value": arguments}],
            "returnByValue": by_value,
            "awaitPromise": true,
        });
        match self.engine.cdp.send(Some(&world.session), "Runtime.callFunctionOn", params).await {
            Ok(value) => {
                match value.pointer("/exceptionDetails/exception/description").and_then(Value::as_str) {
                    None => Ok(value),
                    Some(why) => {
                        let why = toolwright_core::text::clip(why, 300);
                        Err(ToolError::new(format!("the page could not be read: {why}")).into())
                    }
                }
            }
            // The document, its frame or its process is gone.
            Err(CdpError::Refused(_)) => Err(WorldError::Lost),
            Err(error) => Err(self.engine.explain(error).await.into()),
        }
    }

    /// A command to a session of this instance, whose failure is an error for the model.
    pub(crate) async fn send(
        &self,
        session: &str,
        method: &'static str,
        params: Value,
    ) -> Result<Value, ToolError> {
        self.engine.send(Some(session), method, params).await
    }

    /// The frame that a frame element shows, and the session it lives in.
    pub(crate) async fn frame_of(&self, world: &World, number: u64) -> Option<(String, String)> {
        let object = self.object(world, "nodeOf", json!([number])).await.ok()??;
        let params = json!({"objectId": object});
        let node =
            self.engine.cdp.send(Some(&world.session), "DOM.describeNode", params.clone()).await.ok()?;
        self.engine.cdp.post(Some(&world.session), "Runtime.releaseObject", params);
        let frame = node.pointer("/node/frameId").and_then(Value::as_str)?.to_owned();
        let own = self.engine.shared.tabs().session_of_frame(&frame);
        Some((frame, own.unwrap_or_else(|| world.session.clone())))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let params = json!({"browserContextId": self.context});
        self.engine.cdp.post(None, "Target.disposeBrowserContext", params);
    }
}

fn string(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn random() -> String {
    let mut bytes = [0; 8];
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
