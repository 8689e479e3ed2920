//! One browser of a run: its process, its connection, and what its events say about tabs, loading, dialogs
//! and downloads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use toolwright_core::{DynSandbox, ToolError};

use crate::cdp::{Cdp, CdpError, CdpEvent, lock};
use crate::launch::{BrowserProcess, LaunchedBrowser, launch};

/// The most tabs of one context; further ones are closed at once.
pub(crate) const MAX_TABS: usize = 8;
/// How long a browser may take to answer its first command.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The most things that are kept for the next report.
const MAX_NOTICES: usize = 20;
/// The most requests that are followed at once.
const MAX_REQUESTS: usize = 2000;

/// A running browser. Dropping the last handle ends it.
pub(crate) struct Engine {
    pub(crate) cdp: Cdp,
    pub(crate) shared: Arc<EngineState>,
    process: BrowserProcess,
}

/// What events change.
pub(crate) struct EngineState {
    tabs: Mutex<Tabs>,
    changes: watch::Sender<u64>,
}

/// The tabs of all contexts, and the sessions of frames in processes of their own.
#[derive(Default)]
pub(crate) struct Tabs {
    pub(crate) list: Vec<Tab>,
    /// Sessions of frames: the frame, and the tab it is in.
    frames: HashMap<String, FrameSession>,
    downloads: HashMap<String, (String, String)>,
    /// The last number of a tab, by context.
    numbers: HashMap<String, u32>,
}

struct FrameSession {
    frame: String,
    target: String,
}

/// One tab.
pub(crate) struct Tab {
    pub(crate) number: u32,
    pub(crate) context: String,
    /// The target, which is also the id of the main frame.
    pub(crate) target: String,
    pub(crate) session: String,
    pub(crate) url: String,
    pub(crate) crashed: bool,
    pub(crate) load: LoadState,
    pub(crate) requests: HashMap<String, RequestKind>,
    pub(crate) notices: Vec<Notice>,
    /// How often each frame got a new document.
    pub(crate) documents: HashMap<String, u64>,
    /// How dialogs are answered while a step runs.
    pub(crate) dialog_answer: Option<DialogAnswer>,
}

/// How far the main document of a tab is.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadState {
    /// A navigation of the main frame has begun and no document of it is there yet.
    pub(crate) pending: bool,
    /// The document was parsed.
    pub(crate) ready: bool,
    /// The status of the main document's answer.
    pub(crate) status: Option<u16>,
    /// Why the last main request failed.
    pub(crate) failure: Option<String>,
}

/// A request that is under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RequestKind {
    /// The main document.
    Document,
    /// One whose answer is likely to change the page.
    Counted,
}

/// Something that happened beside the page text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Notice {
    /// A dialog, and how it was answered.
    Dialog { kind: String, message: String, answer: String },
    /// A download began.
    DownloadStarted { name: String },
    /// A download ended.
    DownloadDone { name: String, bytes: u64 },
    /// A download failed or was cancelled.
    DownloadFailed { name: String },
    /// A page opened another tab.
    TabOpened { number: u32 },
    /// A page wanted more tabs than there may be.
    TabRefused,
}

/// The answer to the dialogs of a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DialogAnswer {
    Accept(Option<String>),
    Dismiss,
}

impl Engine {
    /// Starts a browser in a sandbox.
    pub(crate) async fn start(
        sandbox: Arc<DynSandbox>,
        program: Option<&str>,
    ) -> Result<Arc<Engine>, ToolError> {
        let LaunchedBrowser { reader, writer, process } = launch(sandbox, program).await?;
        let shared = Arc::new(EngineState { tabs: Mutex::default(), changes: watch::channel(0).0 });
        let (state, ended) = (shared.clone(), shared.clone());
        let cdp =
            Cdp::start(reader, writer, move |cdp, event| state.on_event(cdp, event), move || ended.changed());
        let engine = Engine { cdp, shared, process };
        let first = engine.cdp.send_within(None, "Browser.getVersion", json!({}), START_TIMEOUT).await;
        if first.is_err() {
            return Err(engine.process.failure().await);
        }
        let pages = json!([{"type": "page"}, {"type": "iframe"}]);
        for (method, params) in [
            ("Target.setDiscoverTargets", json!({"discover": true, "filter": [{"type": "page"}]})),
            (
                "Target.setAutoAttach",
                json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": pages}),
            ),
        ] {
            engine.send(None, method, params).await?;
        }
        Ok(Arc::new(engine))
    }

    /// Whether the browser has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.cdp.is_closed()
    }

    /// A command whose failure is an error for the model.
    pub(crate) async fn send(
        &self,
        session: Option<&str>,
        method: &'static str,
        params: Value,
    ) -> Result<Value, ToolError> {
        match self.cdp.send(session, method, params).await {
            Ok(result) => Ok(result),
            Err(error) => Err(self.explain(error).await),
        }
    }

    pub(crate) async fn explain(&self, error: CdpError) -> ToolError {
        match error {
            CdpError::Closed => {
                self.process.failure().await.hint("the next call starts a new browser; open the page again")
            }
            CdpError::Timeout(_) => {
                ToolError::new(error.to_string()).hint("reload the page or open another one; it may be busy")
            }
            CdpError::Refused(message) => ToolError::new(format!("the browser refused: {message}")),
        }
    }
}

impl EngineState {
    /// The tabs, to read or change.
    pub(crate) fn tabs(&self) -> MutexGuard<'_, Tabs> {
        lock(&self.tabs)
    }

    /// Changes after each event.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn on_event(&self, cdp: &Cdp, event: CdpEvent) {
        let relevant = {
            let mut tabs = self.tabs();
            match event.session.as_deref() {
                None => tabs.on_browser_event(cdp, &event.method, &event.params),
                Some(session) => tabs.on_session_event(cdp, session, &event.method, &event.params),
            }
        };
        if relevant {
            self.changed();
        }
    }
}

fn text<'a>(params: &'a Value, pointer: &str) -> &'a str {
    params.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Tabs {
    /// The tab of a target.
    pub(crate) fn of_target(&mut self, target: &str) -> Option<&mut Tab> {
        self.list.iter_mut().find(|tab| tab.target == target)
    }

    /// The session of a frame in a process of its own.
    pub(crate) fn session_of_frame(&self, frame: &str) -> Option<String> {
        let found = self.frames.iter().find(|(_, known)| known.frame == frame);
        found.map(|(session, _)| session.clone())
    }

    fn of_session(&mut self, session: &str) -> Option<&mut Tab> {
        let target = match self.frames.get(session) {
            Some(frame) => frame.target.clone(),
            None => return self.list.iter_mut().find(|tab| tab.session == session),
        };
        self.of_target(&target)
    }

    fn on_browser_event(&mut self, cdp: &Cdp, method: &str, params: &Value) -> bool {
        match method {
            "Target.attachedToTarget" => self.attach(cdp, None, params),
            "Target.detachedFromTarget" => {
                let session = text(params, "/sessionId");
                self.list.retain(|tab| tab.session != session);
                true
            }
            "Target.targetInfoChanged" => {
                let info = params.get("targetInfo").unwrap_or(&Value::Null);
                if let Some(tab) = self.of_target(text(info, "/targetId")) {
                    tab.url = text(info, "/url").to_owned();
                }
                true
            }
            "Target.targetCrashed" => {
                if let Some(tab) = self.of_target(text(params, "/targetId")) {
                    tab.crashed = true;
                }
                true
            }
            "Browser.downloadWillBegin" => {
                let (guid, name) = (text(params, "/guid"), text(params, "/suggestedFilename"));
                let target = self.target_of_frame(text(params, "/frameId"));
                self.downloads.insert(guid.to_owned(), (target.clone(), name.to_owned()));
                if let Some(tab) = self.of_target(&target) {
                    tab.load.pending = false;
                    tab.notice(Notice::DownloadStarted { name: name.to_owned() });
                }
                true
            }
            "Browser.downloadProgress" => {
                let state = text(params, "/state");
                if state == "inProgress" {
                    return false;
                }
                let Some((target, name)) = self.downloads.remove(text(params, "/guid")) else { return false };
                let bytes = params.get("receivedBytes").and_then(Value::as_f64).unwrap_or_default();
                if let Some(tab) = self.of_target(&target) {
                    tab.notice(match state {
                        "completed" => Notice::DownloadDone { name, bytes: bytes as u64 },
                        _ => Notice::DownloadFailed { name },
                    });
                }
                true
            }
            _ => false,
        }
    }

    fn target_of_frame(&mut self, frame: &str) -> String {
        if self.of_target(frame).is_some() {
            return frame.to_owned();
        }
        let own = self.frames.values().find(|known| known.frame == frame).map(|known| known.target.clone());
        let local = || self.list.iter().find(|tab| tab.documents.contains_key(frame));
        own.or_else(|| Some(local()?.target.clone()))
            .or_else(|| Some(self.list.first()?.target.clone()))
            .unwrap_or_default()
    }

    /// A new page or frame, which waits until it is set up.
    fn attach(&mut self, cdp: &Cdp, parent: Option<&str>, params: &Value) -> bool {
        let session = text(params, "/sessionId");
        let target = text(params, "/targetInfo/targetId");
        let resume = || cdp.post(Some(session), "Runtime.runIfWaitingForDebugger", json!({}));
        match text(params, "/targetInfo/type") {
            "page" => {
                let context = text(params, "/targetInfo/browserContextId");
                let opener = params.pointer("/targetInfo/openerId").and_then(Value::as_str);
                let many = self.list.iter().filter(|tab| tab.context == context).count() >= MAX_TABS;
                if many {
                    cdp.post(None, "Target.closeTarget", json!({"targetId": target}));
                    if let Some(tab) = opener.and_then(|opener| self.of_target(opener)) {
                        tab.notice(Notice::TabRefused);
                    }
                    return true;
                }
                let last = self.numbers.entry(context.to_owned()).or_default();
                *last += 1;
                let number = *last;
                if let Some(tab) = opener.and_then(|opener| self.of_target(opener)) {
                    tab.notice(Notice::TabOpened { number });
                }
                self.list.push(Tab {
                    number,
                    context: context.to_owned(),
                    target: target.to_owned(),
                    session: session.to_owned(),
                    url: text(params, "/targetInfo/url").to_owned(),
                    crashed: false,
                    load: LoadState { pending: opener.is_some(), ..LoadState::default() },
                    requests: HashMap::new(),
                    notices: Vec::new(),
                    documents: HashMap::new(),
                    dialog_answer: None,
                });
                // The size of a window includes its bars in some builds of Chromium; that of a page does not.
                let page = json!({"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false});
                cdp.post(Some(session), "Emulation.setDeviceMetricsOverride", page);
            }
            "iframe" => {
                let owner = parent.and_then(|parent| self.of_session(parent)).map(|tab| tab.target.clone());
                let Some(owner) = owner else {
                    resume();
                    return false;
                };
                let known = FrameSession { frame: target.to_owned(), target: owner };
                self.frames.insert(session.to_owned(), known);
            }
            _ => {
                resume();
                return false;
            }
        }
        let nested = json!({
            "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": [{"type": "iframe"}],
        });
        cdp.post(Some(session), "Page.enable", json!({}));
        cdp.post(
            Some(session),
            "Network.enable",
            json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}),
        );
        cdp.post(Some(session), "Target.setAutoAttach", nested);
        resume();
        true
    }

    fn on_session_event(&mut self, cdp: &Cdp, session: &str, method: &str, params: &Value) -> bool {
        match method {
            "Target.attachedToTarget" => return self.attach(cdp, Some(session), params),
            "Target.detachedFromTarget" => {
                self.frames.remove(text(params, "/sessionId"));
                return true;
            }
            _ => {}
        }
        let Some(tab) = self.of_session(session) else { return false };
        match method {
            "Page.frameRequestedNavigation" if text(params, "/disposition") != "currentTab" => false,
            "Page.frameRequestedNavigation" | "Page.frameStartedNavigating" => {
                if text(params, "/frameId") == tab.target
                    && !matches!(text(params, "/navigationType"), "sameDocument" | "historySameDocument")
                {
                    tab.load.pending = true;
                }
                true
            }
            "Page.frameNavigated" => {
                let frame = text(params, "/frame/id").to_owned();
                if frame == tab.target {
                    // A page from the back/forward cache is whole: its loading ended before, in other events.
                    let ready = text(params, "/type") == "BackForwardCacheRestore";
                    tab.load = LoadState { status: tab.load.status, ready, ..LoadState::default() };
                    tab.url = text(params, "/frame/url").to_owned();
                    // Requests of the document before this one do not end here; their events may be missed.
                    tab.requests.retain(|_, kind| *kind == RequestKind::Document);
                    tab.documents.retain(|known, _| *known == frame);
                }
                *tab.documents.entry(frame).or_default() += 1;
                true
            }
            "Page.frameDetached" => {
                tab.documents.remove(text(params, "/frameId"));
                false
            }
            "Page.navigatedWithinDocument" => {
                if text(params, "/frameId") == tab.target {
                    tab.url = text(params, "/url").to_owned();
                }
                true
            }
            "Page.domContentEventFired" => {
                if tab.session == session {
                    tab.load.ready = true;
                }
                true
            }
            "Page.frameStoppedLoading" | "Page.frameClearedScheduledNavigation" => {
                if text(params, "/frameId") == tab.target {
                    tab.load.pending = false;
                    tab.load.ready = true;
                }
                true
            }
            "Page.javascriptDialogOpening" => {
                tab.answer_dialog(cdp, session, params);
                true
            }
            "Network.requestWillBeSent" => tab.request_starts(params),
            "Network.responseReceived" => {
                let id = text(params, "/requestId");
                if tab.requests.get(id) == Some(&RequestKind::Document) {
                    let status = params.pointer("/response/status").and_then(Value::as_u64);
                    tab.load.status = status.and_then(|status| u16::try_from(status).ok());
                }
                false
            }
            "Network.loadingFinished" => tab.requests.remove(text(params, "/requestId")).is_some(),
            "Network.loadingFailed" => {
                let kind = tab.requests.remove(text(params, "/requestId"));
                if kind == Some(RequestKind::Document) {
                    tab.load.failure = Some(text(params, "/errorText").to_owned());
                    tab.load.pending = false;
                }
                kind.is_some()
            }
            _ => false,
        }
    }
}

impl Tab {
    fn notice(&mut self, notice: Notice) {
        if self.notices.len() < MAX_NOTICES {
            self.notices.push(notice);
        }
    }

    fn request_starts(&mut self, params: &Value) -> bool {
        let id = text(params, "/requestId").to_owned();
        let kind = match text(params, "/type") {
            "Document" if text(params, "/frameId") == self.target => {
                self.load.pending = true;
                self.load.failure = None;
                self.load.status = None;
                RequestKind::Document
            }
            "Document" | "XHR" | "Fetch" | "Script" | "Stylesheet" => RequestKind::Counted,
            // Pictures, sockets and beacons come and go without changing the text.
            _ => return false,
        };
        if self.requests.len() < MAX_REQUESTS {
            self.requests.insert(id, kind);
        }
        true
    }

    /// A dialog stops its page, so it is answered at once: as the step asks, else with no. A page may always
    /// be left.
    fn answer_dialog(&mut self, cdp: &Cdp, session: &str, params: &Value) {
        let kind = text(params, "/type");
        let (accept, prompt, words) = match (kind, &self.dialog_answer) {
            ("alert", _) => (true, None, "closed".to_owned()),
            ("beforeunload", _) => (true, None, "left the page".to_owned()),
            (_, Some(DialogAnswer::Accept(Some(text)))) => {
                (true, Some(text.clone()), format!("accepted with {text:?}"))
            }
            (_, Some(DialogAnswer::Accept(None))) => (true, None, "accepted".to_owned()),
            (_, Some(DialogAnswer::Dismiss)) => (false, None, "dismissed".to_owned()),
            (_, None) => {
                (false, None, "dismissed; to accept it, repeat the step with `dialog: \"accept\"`".to_owned())
            }
        };
        let mut answer = json!({"accept": accept});
        if let (Some(prompt), Some(answer)) = (prompt, answer.as_object_mut()) {
            answer.insert("promptText".to_owned(), prompt.into());
        }
        cdp.post(Some(session), "Page.handleJavaScriptDialog", answer);
        let message = text(params, "/message").chars().take(300).collect();
        self.notice(Notice::Dialog { kind: kind.to_owned(), message, answer: words });
    }
}
