//! What changed, told to every client that wants to know: over its session, or over a stream it listens on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::session::Session;
use super::tasks::needs_extension;
use super::watch::Watch;
use super::{Inner, Outcome, Request, Watching};
use crate::jsonrpc::{self, INVALID_PARAMS, RpcError};
use crate::protocol::{SUBSCRIPTION_KEY, TASKS_EXTENSION};

/// How many changes a slow client may be behind; then it is only told that everything may have changed.
const BACKLOG: usize = 256;

/// The most resources one stream watches.
const MAX_WATCHED: usize = 1000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    Tools,
    Prompts,
    Resources,
    Resource(String),
}

#[derive(Clone)]
pub(super) struct Hub(Changes);

impl Hub {
    pub(super) fn new() -> Self {
        Hub(Changes { sender: broadcast::channel(BACKLOG).0, tools_told: Arc::default() })
    }

    pub(super) fn changes(&self) -> Changes {
        self.0.clone()
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.0.sender.subscribe()
    }

    /// Whether clients were told since the tools were last listed that these changed. They are about to be listed.
    pub(super) fn tools_listed(&self) -> bool {
        self.0.tools_told.swap(false, Ordering::AcqRel)
    }
}

/// Tells clients that something on offer changed. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Changes {
    sender: broadcast::Sender<Change>,
    /// Whether clients were told of changed tools, and none has listed them since.
    tools_told: Arc<AtomicBool>,
}

impl Changes {
    /// The list of tools changed.
    pub fn tools(&self) {
        self.tools_told.store(true, Ordering::Release);
        let _ = self.sender.send(Change::Tools);
    }

    /// The list of prompts changed.
    pub fn prompts(&self) {
        let _ = self.sender.send(Change::Prompts);
    }

    /// The list of resources changed.
    pub fn resources(&self) {
        let _ = self.sender.send(Change::Resources);
    }

    /// What a resource holds changed.
    pub fn resource(&self, uri: impl Into<String>) {
        let _ = self.sender.send(Change::Resource(uri.into()));
    }
}

impl Change {
    fn notification(&self) -> (&'static str, Value) {
        match self {
            Change::Tools => ("notifications/tools/list_changed", json!({})),
            Change::Prompts => ("notifications/prompts/list_changed", json!({})),
            Change::Resources => ("notifications/resources/list_changed", json!({})),
            Change::Resource(uri) => ("notifications/resources/updated", json!({"uri": uri})),
        }
    }
}

/// Waits for the next changes. A client that fell behind is told that every list changed, and all it watches.
async fn next(
    changes: &mut broadcast::Receiver<Change>,
    watched: impl FnOnce() -> Vec<String>,
) -> Option<Vec<Change>> {
    match changes.recv().await {
        Ok(change) => Some(vec![change]),
        Err(broadcast::error::RecvError::Lagged(_)) => {
            let lists = [Change::Tools, Change::Prompts, Change::Resources];
            Some(lists.into_iter().chain(watched().into_iter().map(Change::Resource)).collect())
        }
        Err(broadcast::error::RecvError::Closed) => None,
    }
}

/// Tells a session about changes until it ends or the client is gone.
pub(super) async fn tell_session(
    mut changes: broadcast::Receiver<Change>,
    session: &Session,
    out: &tokio::sync::mpsc::Sender<Vec<u8>>,
) {
    loop {
        let changed = tokio::select! {
            changed = next(&mut changes, || session.all_watched()) => changed,
            () = session.ended.cancelled() => None,
            () = out.closed() => None,
        };
        let Some(changed) = changed else { return };
        if session.agreed().is_none() {
            continue;
        }
        for change in changed {
            if matches!(&change, Change::Resource(uri) if !session.watches(uri)) {
                continue;
            }
            let (method, params) = change.notification();
            if out.send(jsonrpc::notification(method, params)).await.is_err() {
                return;
            }
        }
    }
}

/// What a stream wants to be told.
struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    watched: Vec<String>,
    _watches: Vec<Watch>,
}

impl Filter {
    fn read(server: &Inner, request: &Request, params: &Value) -> Result<Self, RpcError> {
        let Some(wanted) = params.get("notifications").filter(|wanted| wanted.is_object()) else {
            return Err(RpcError::new(INVALID_PARAMS, "`notifications` says what to listen for"));
        };
        if wanted.get("taskIds").is_some() && !request.client_has_extension(TASKS_EXTENSION) {
            return Err(needs_extension());
        }
        let says = |key: &str| wanted.get(key) == Some(&Value::Bool(true));
        let watched = match wanted.get("resourceSubscriptions") {
            None => Vec::new(),
            Some(uris) => serde_json::from_value::<Vec<String>>(uris.clone())
                .ok()
                .filter(|uris| uris.len() <= MAX_WATCHED)
                .ok_or_else(|| {
                    let message = format!("`resourceSubscriptions` is a list of at most {MAX_WATCHED} texts");
                    RpcError::new(INVALID_PARAMS, message)
                })?,
        };
        // What cannot be watched is left out, and the client is told what was not.
        let watched = if server.watching() == Watching::No { Vec::new() } else { watched };
        let watched =
            watched.into_iter().filter_map(|uri| server.watch(&uri, true).ok().map(|watch| (uri, watch)));
        let (watched, watches) = watched.unzip();
        Ok(Filter {
            tools: says("toolsListChanged"),
            prompts: says("promptsListChanged") && server.prompts.is_some(),
            resources: says("resourcesListChanged") && server.watching() == Watching::Told,
            watched,
            _watches: watches,
        })
    }

    fn accepted(&self) -> Value {
        let mut accepted = serde_json::Map::new();
        for (key, on) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if on {
                accepted.insert(key.to_owned(), json!(true));
            }
        }
        if !self.watched.is_empty() {
            accepted.insert("resourceSubscriptions".to_owned(), json!(self.watched));
        }
        accepted.into()
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.watched.contains(uri),
        }
    }
}

/// Answers `subscriptions/listen`: goes on until the client stops it, or the server ends.
pub(super) async fn listen(server: &Inner, request: &Request, params: &Value) -> Outcome {
    let filter = match Filter::read(server, request, params) {
        Ok(filter) => filter,
        Err(error) => return Some(Err(error)),
    };
    let mut changes = server.hub.subscribe();
    let tagged = |mut params: Value| {
        if let Value::Object(members) = &mut params {
            members.insert("_meta".to_owned(), json!({SUBSCRIPTION_KEY: request.id}));
        }
        params
    };
    let out = &request.outlet.messages;
    let first = jsonrpc::notification(
        "notifications/subscriptions/acknowledged",
        tagged(json!({"notifications": filter.accepted()})),
    );
    if out.send(first).await.is_err() {
        return None;
    }
    loop {
        let changed = tokio::select! {
            changed = next(&mut changes, || filter.watched.clone()) => changed,
            () = request.cancel.cancelled() => return None,
            () = out.closed() => return None,
        };
        let Some(changed) = changed else {
            return Some(Ok(json!({"_meta": {SUBSCRIPTION_KEY: request.id}})));
        };
        for change in changed.iter().filter(|change| filter.wants(change)) {
            let (method, params) = change.notification();
            if out.send(jsonrpc::notification(method, tagged(params))).await.is_err() {
                return None;
            }
        }
    }
}
