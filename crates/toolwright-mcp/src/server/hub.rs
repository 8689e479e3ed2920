//! Changes, announced to every client that subscribed to them: over its session, or over a stream of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::{Map, json};
use tokio::sync::broadcast;

use super::response::Response;
use super::session::Session;
use super::tasks::needs_extension;
use super::watch::Watch;
use super::{IncomingRequest, Inner, Watching};
use crate::jsonrpc::{self, Id};
use crate::protocol::{
    Empty, ResultBody, ResultMessage, SUBSCRIPTION_KEY, ServerNotification, SubscriptionFilter,
};

/// How many changes a slow client may lag behind; beyond that it hears only that everything may have changed.
const BACKLOG: usize = 256;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ChangeNotice {
    Tools,
    Prompts,
    Resources,
    Resource(String),
}

#[derive(Clone)]
pub(super) struct Hub(Changes);

impl Hub {
    pub(super) fn new() -> Self {
        Hub(Changes { sender: broadcast::channel(BACKLOG).0, tools_announced: Arc::default() })
    }

    pub(super) fn changes(&self) -> Changes {
        self.0.clone()
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<ChangeNotice> {
        self.0.sender.subscribe()
    }

    /// Whether a change of the tools was announced since they were last listed. They are about to be listed.
    pub(super) fn tools_listed(&self) -> bool {
        self.0.tools_announced.swap(false, Ordering::AcqRel)
    }
}

/// Announces changes to clients. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Changes {
    sender: broadcast::Sender<ChangeNotice>,
    /// Whether a change of the tools was announced, and no client has listed them since.
    tools_announced: Arc<AtomicBool>,
}

impl Changes {
    /// The list of tools changed.
    pub fn tools(&self) {
        self.tools_announced.store(true, Ordering::Release);
        let _ = self.sender.send(ChangeNotice::Tools);
    }

    /// The list of prompts changed.
    pub fn prompts(&self) {
        let _ = self.sender.send(ChangeNotice::Prompts);
    }

    /// The list of resources changed.
    pub fn resources(&self) {
        let _ = self.sender.send(ChangeNotice::Resources);
    }

    /// The content of a resource changed.
    pub fn resource(&self, uri: impl Into<String>) {
        let _ = self.sender.send(ChangeNotice::Resource(uri.into()));
    }
}

impl ChangeNotice {
    fn notification(&self) -> ServerNotification {
        match self {
            ChangeNotice::Tools => ServerNotification::ToolsChanged(Map::new()),
            ChangeNotice::Prompts => ServerNotification::PromptsChanged(Map::new()),
            ChangeNotice::Resources => ServerNotification::ResourcesChanged(Map::new()),
            ChangeNotice::Resource(uri) => ServerNotification::resource_updated(uri.clone()),
        }
    }
}

/// Waits for the next changes. For a client that lagged behind, every list and all it watches changed.
async fn next(
    changes: &mut broadcast::Receiver<ChangeNotice>,
    watched: impl FnOnce() -> Vec<String>,
) -> Option<Vec<ChangeNotice>> {
    match changes.recv().await {
        Ok(change) => Some(vec![change]),
        Err(broadcast::error::RecvError::Lagged(_)) => {
            let lists = [ChangeNotice::Tools, ChangeNotice::Prompts, ChangeNotice::Resources];
            Some(lists.into_iter().chain(watched().into_iter().map(ChangeNotice::Resource)).collect())
        }
        Err(broadcast::error::RecvError::Closed) => None,
    }
}

/// Announces changes to a session until it ends or the client is gone.
pub(super) async fn announce_to_session(
    mut changes: broadcast::Receiver<ChangeNotice>,
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
            if matches!(&change, ChangeNotice::Resource(uri) if !session.watches(uri)) {
                continue;
            }
            let notification = change.notification();
            let line = jsonrpc::notification(notification.method(), &notification);
            if out.send(line).await.is_err() {
                return;
            }
        }
    }
}

/// What a stream carries: the part of the client's wish that this server announces.
struct Subscription {
    filter: SubscriptionFilter,
    _watches: Vec<Watch>,
}

impl Subscription {
    fn new(server: &Inner, wanted: SubscriptionFilter) -> Self {
        // Resources that cannot be watched are left out, and the acknowledgement does not name them.
        let uris = if server.watching() == Watching::No { Vec::new() } else { wanted.resource_subscriptions };
        let watched =
            uris.into_iter().filter_map(|uri| server.watch(&uri, true).ok().map(|watch| (uri, watch)));
        let (resource_subscriptions, watches) = watched.unzip();
        let filter = SubscriptionFilter {
            tools_list_changed: wanted.tools_list_changed,
            prompts_list_changed: wanted.prompts_list_changed && server.prompts.is_some(),
            resources_list_changed: wanted.resources_list_changed && server.watching() == Watching::Announced,
            resource_subscriptions,
            task_ids: None,
        };
        Subscription { filter, _watches: watches }
    }

    fn wants(&self, change: &ChangeNotice) -> bool {
        match change {
            ChangeNotice::Tools => self.filter.tools_list_changed,
            ChangeNotice::Prompts => self.filter.prompts_list_changed,
            ChangeNotice::Resources => self.filter.resources_list_changed,
            ChangeNotice::Resource(uri) => self.filter.resource_subscriptions.contains(uri),
        }
    }
}

/// A notification that names its stream.
#[derive(Serialize)]
struct OfStream<'n> {
    #[serde(flatten)]
    notification: &'n ServerNotification,
    #[serde(rename = "_meta")]
    meta: StreamMeta<'n>,
}

#[derive(Serialize)]
struct StreamMeta<'n> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: &'n Id,
}

fn line(notification: &ServerNotification, subscription: &Id) -> Vec<u8> {
    let meta = StreamMeta { subscription };
    jsonrpc::notification(notification.method(), &OfStream { notification, meta })
}

/// Answers `subscriptions/listen`: goes on until the client stops it, or the server ends.
pub(super) async fn listen(
    server: &Inner,
    request: &IncomingRequest,
    wanted: SubscriptionFilter,
) -> Response {
    if wanted.task_ids.is_some() && !request.knows_tasks() {
        return needs_extension().into();
    }
    let subscription = Subscription::new(server, wanted);
    let mut changes = server.hub.subscribe();
    let out = &request.sender.messages;
    let acknowledged = ServerNotification::acknowledged(subscription.filter.clone());
    if out.send(line(&acknowledged, &request.id)).await.is_err() {
        return Response::Cancelled;
    }
    loop {
        let changed = tokio::select! {
            changed = next(&mut changes, || subscription.filter.resource_subscriptions.clone()) => changed,
            () = request.cancel.cancelled() => return Response::Cancelled,
            () = out.closed() => return Response::Cancelled,
        };
        let Some(changed) = changed else {
            let meta = Map::from_iter([(SUBSCRIPTION_KEY.to_owned(), json!(request.id))]);
            return ResultMessage { meta, ..ResultBody::Empty(Empty {}).into() }.into();
        };
        for change in changed.iter().filter(|change| subscription.wants(change)) {
            if out.send(line(&change.notification(), &request.id)).await.is_err() {
                return Response::Cancelled;
            }
        }
    }
}
