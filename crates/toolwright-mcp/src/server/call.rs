//! `tools/call`: one call through the run's `Dispatch`, with progress, questions, cancellation and tasks.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;
use toolwright_core::{
    CallNote, CancelToken, ProgressListener, ToolCall, ToolResult, ToolSpec, nearest, text,
};
use toolwright_util::lock;

use super::response::Response;
use super::sealed_state::{Binding, SealedState};
use super::tasks::{self, TaskSupport, needs_extension};
use super::{CANCEL_GRACE, ClientSender, Era, IncomingRequest, Inner, Peer, client_quirks};
use crate::bridge;
use crate::jsonrpc::{BUSY, INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use crate::protocol::{
    CallParams, CallResult, ContentBlock, EmbeddedResource, ProgressParams, ProgressToken, ResourceBlock,
    ResultBody, ResultMessage, ServerNotification,
};

/// Counts the calls of this process, so that each has an id of its own.
static CALLS: AtomicU64 = AtomicU64::new(1);

/// The first revision with structured results, and with links.
const STRUCTURED_SINCE: &str = "2025-06-18";

/// The first revision with sounds.
const SOUNDS_SINCE: &str = "2025-03-26";

/// The longest time without a sign of progress. Clients with the limit of 60 s that is usual would give up
/// otherwise.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A call that passed the checks.
struct Ready {
    server: Arc<Inner>,
    peer: Peer,
    tools: Arc<Vec<ToolSpec>>,
    at: usize,
    arguments: Value,
}

pub(super) async fn answer(server: &Arc<Inner>, request: IncomingRequest, params: CallParams) -> Response {
    match ready(server, request, params).await {
        Ok(ready) => ready.answer().await,
        Err(error) => error.into(),
    }
}

async fn ready(server: &Arc<Inner>, request: IncomingRequest, params: CallParams) -> Result<Ready, RpcError> {
    let CallParams { name, mut arguments, round, .. } = params;
    let Some((tools, at)) = server.tool(&name).await? else {
        let mut problem = format!("there is no tool `{}`", text::clip(&name, 200));
        let tools = server.refreshed_tools().await?;
        if let Some(near) = nearest(&name, tools.iter().map(|spec| &*spec.name)) {
            problem.push_str(&format!("; did you mean `{near}`?"));
        }
        return Err(RpcError::new(INVALID_PARAMS, problem));
    };
    if let Some(spec) = tools.get(at) {
        client_quirks::drop_foreign_argument(spec, &mut arguments);
    }
    let binding = Binding { method: "tools/call", name: &name, arguments: &arguments };
    let sealed = SealedState::open(&server.state_key, &request, binding, round)?;
    let peer = Peer::new(request, sealed);
    Ok(Ready { server: server.clone(), peer, tools, at, arguments })
}

impl Ready {
    async fn answer(self) -> Response {
        let (server, request) = (self.server.clone(), self.peer.request().clone());
        let support = self.tools.get(self.at).and_then(|spec| server.task_support(&spec.name));
        let support = support.filter(|_| request.era.is_stateless());
        match support {
            None => self.run(request.cancel).await,
            Some(support) if !request.knows_tasks() => match support {
                TaskSupport::Required => needs_extension().into(),
                TaskSupport::After(_) | TaskSupport::Always => self.run(request.cancel).await,
            },
            Some(support) => self.run_as_task(support).await,
        }
    }

    /// Runs the call to its end, or until it goes on as a task.
    async fn run_as_task(self, support: TaskSupport) -> Response {
        let (server, request) = (self.server.clone(), self.peer.request().clone());
        let Some(task) = server.tasks.create(&request) else {
            return RpcError::new(BUSY, "there are too many tasks").into();
        };
        let peer = self.peer.clone();
        if !matches!(support, TaskSupport::After(_)) {
            peer.goes_on_as(task.clone());
        }
        let cancel = task.cancel.clone();
        let mut work = tokio::spawn(async move { self.run(cancel).await });
        if let TaskSupport::After(patience) = support {
            tokio::select! {
                biased;
                response = &mut work => {
                    server.tasks.forget(&task);
                    return response.unwrap_or_default();
                }
                () = request.cancel.cancelled() => {
                    task.cancel.cancel();
                    let _ = work.await;
                    server.tasks.forget(&task);
                    return Response::Cancelled;
                }
                () = tokio::time::sleep(patience) => peer.goes_on_as(task.clone()),
            }
        }
        let (running, created) = (task.clone(), task.created());
        tokio::spawn(async move {
            let response = match tokio::time::timeout(tasks::LIFETIME, &mut work).await {
                Ok(response) => response,
                Err(_) => {
                    running.cancel.cancel();
                    work.await
                }
            };
            // The result is kept as it would have been sent.
            let response = server.complete(response.unwrap_or_default(), request.era);
            server.tasks.ended(&running, response);
        });
        ResultBody::CreateTask(created).into()
    }

    /// Runs the call to its end.
    async fn run(self, cancel: CancelToken) -> Response {
        let Ready { server, peer, tools, at, arguments } = self;
        let Some(spec) = tools.get(at) else {
            return RpcError::new(INTERNAL_ERROR, "the tool is gone").into();
        };
        let era = peer.request().era;
        let call_id = format!("mcp-{}", CALLS.fetch_add(1, Ordering::Relaxed));
        let asked_with = if era.is_stateless() { arguments.clone() } else { Value::Null };
        let call = ToolCall::new(call_id, spec.name.clone(), arguments);
        let stop = CancelToken::new();
        let progress = peer
            .request()
            .progress_token
            .clone()
            .map(|token| Arc::new(Progress::new(peer.request().sender.clone(), token)));
        let origin = peer.origin(Some(stop.clone()), progress.clone().map(Progress::listener));
        let dispatch = server.dispatch();
        let mut work = dispatch.call(call, origin);
        let heartbeats = async {
            match &progress {
                Some(progress) => progress.beat(&peer).await,
                None => std::future::pending().await,
            }
        };
        let outcome = tokio::select! {
            biased;
            outcome = &mut work => outcome,
            never = heartbeats => match never {},
            () = cancel.cancelled() => {
                stop.cancel();
                let _ = tokio::time::timeout(CANCEL_GRACE, work).await;
                return Response::Cancelled;
            }
        };
        let binding = Binding { method: "tools/call", name: &spec.name, arguments: &asked_with };
        if let Some(instead) = peer.instead(&server.state_key, binding) {
            return instead;
        }
        match outcome {
            Ok(result) => to_wire(result, spec, era).into(),
            Err(error) => {
                server.log(&format!("the call failed: {error}"));
                RpcError::new(INTERNAL_ERROR, "the tool could not be run; see the log of the server").into()
            }
        }
    }
}

fn to_wire(mut result: ToolResult, spec: &ToolSpec, era: Era) -> ResultMessage {
    if era.version >= STRUCTURED_SINCE {
        bridge::keep_promise(&mut result, spec);
    }
    let cut = result.truncated.clone().filter(|_| result.error.is_none());
    let (mut result, meta) = bridge::write_result(result, spec);
    if era.version >= STRUCTURED_SINCE {
        bridge::keep_pictures(&mut result, spec);
    }
    bridge::say_what_is_missing(&mut result, cut.as_ref());
    downgrade(&mut result, era);
    ResultMessage { meta, ..ResultBody::CallTool(result).into() }
}

/// Reports to a client how far its call has come; nothing is sent when the client does not read.
struct Progress {
    sender: ClientSender,
    token: ProgressToken,
    reports: Mutex<Reports>,
}

impl Progress {
    fn new(sender: ClientSender, token: ProgressToken) -> Self {
        Progress { sender, token, reports: Mutex::default() }
    }

    fn listener(self: Arc<Self>) -> ProgressListener {
        Arc::new(move |span, note| {
            let CallNote::Progress { done, total, message } = note else { return };
            let mut reports = lock(&self.reports);
            if let Some((done, total)) = reports.add(span, *done, *total) {
                self.send(done, total, message.clone());
            }
        })
    }

    /// Reports that the call still runs whenever nothing else was reported for a while.
    async fn beat(&self, peer: &Peer) -> Infallible {
        let start = Instant::now();
        let mut next = start + HEARTBEAT;
        loop {
            tokio::time::sleep_until(next).await;
            // A task is looked at by its client.
            if peer.is_task() {
                return std::future::pending().await;
            }
            let mut reports = lock(&self.reports);
            let now = Instant::now();
            let quiet_since = reports.sent_at.unwrap_or(start);
            if now.duration_since(quiet_since) >= HEARTBEAT {
                let (done, total) = reports.still_running();
                let message = format!("still running, {} s", now.duration_since(start).as_secs());
                self.send(done, total, Some(message));
                next = now + HEARTBEAT;
            } else {
                next = quiet_since + HEARTBEAT;
            }
        }
    }

    fn send(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let progress_token = self.token.clone();
        let params = ProgressParams { progress_token, progress, total, message };
        self.sender.try_notify(&ServerNotification::Progress(params));
    }
}

/// The progress of a client's call and of the calls that it makes. The client sees them as one, so it gets
/// the sum.
#[derive(Default)]
struct Reports {
    latest: BTreeMap<u64, (f64, Option<f64>)>,
    sent: Option<f64>,
    /// When something was sent last; `None` before the first time.
    sent_at: Option<Instant>,
}

impl Reports {
    /// The most calls of one flow whose progress is counted.
    const MAX: usize = 2_000;

    /// The progress to report, if any: it must grow.
    fn add(&mut self, span: u64, done: f64, total: Option<f64>) -> Option<(f64, Option<f64>)> {
        let before = self.latest.get(&span).map(|(done, _)| *done);
        if !done.is_finite()
            || before.is_some_and(|before| done <= before)
            || (before.is_none() && self.latest.len() >= Self::MAX)
        {
            return None;
        }
        self.latest.insert(span, (done, total));
        let done: f64 = self.latest.values().map(|(done, _)| done).sum();
        let total: Option<f64> = self.latest.values().map(|(_, total)| *total).sum();
        if !done.is_finite() || self.sent.is_some_and(|sent| done <= sent) {
            return None;
        }
        self.sent = Some(done);
        self.sent_at = Some(Instant::now());
        Some((done, total.filter(|total| total.is_finite())))
    }

    /// The progress of a call that only says that it still runs: hardly more than before, so that what the
    /// call itself reports next is more than this.
    fn still_running(&mut self) -> (f64, Option<f64>) {
        let before = self.sent.unwrap_or(0.0);
        let done = (before + 0.001).max(before.next_up());
        self.sent = Some(done);
        self.sent_at = Some(Instant::now());
        let total: Option<f64> = self.latest.values().map(|(_, total)| *total).sum();
        (done, total.filter(|total| total.is_finite() && !self.latest.is_empty()))
    }
}

/// Replaces what an older revision does not have.
fn downgrade(result: &mut CallResult, era: Era) {
    if era.version >= STRUCTURED_SINCE {
        return;
    }
    result.structured_content = None;
    for block in &mut result.content {
        let older = match block {
            ContentBlock::ResourceLink(link) => {
                ContentBlock::text(format!("{}: {}", link.name.as_deref().unwrap_or_default(), link.uri))
            }
            ContentBlock::Audio(audio) if era.version < SOUNDS_SINCE => {
                let resource = EmbeddedResource {
                    uri: "toolwright:///audio".to_owned(),
                    mime_type: audio.mime_type.take(),
                    blob: Some(std::mem::take(&mut audio.data)),
                    ..EmbeddedResource::default()
                };
                ContentBlock::Resource(ResourceBlock { resource, beside: Map::new() })
            }
            _ => continue,
        };
        *block = older;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeat_is_more_than_before_and_less_than_the_next_step() {
        let mut reports = Reports::default();
        assert_eq!(reports.still_running(), (0.001, None));
        assert_eq!(reports.add(1, 1.0, Some(4.0)), Some((1.0, Some(4.0))));
        assert_eq!(reports.still_running(), (1.001, Some(4.0)));
        assert_eq!(reports.add(1, 2.0, Some(4.0)), Some((2.0, Some(4.0))));
        reports.add(2, 1e18, None);
        let (done, _) = reports.still_running();
        assert!(done > 1e18 && done.is_finite());
    }

    #[test]
    fn progress_of_several_calls_grows() {
        let mut reports = Reports::default();
        // One after the other, and one that does not say how much there is.
        assert_eq!(reports.add(1, 0.0, Some(2.0)), Some((0.0, Some(2.0))));
        assert_eq!(reports.add(1, 2.0, Some(2.0)), Some((2.0, Some(2.0))));
        assert_eq!(reports.add(2, 0.0, Some(4.0)), None);
        assert_eq!(reports.add(2, 1.0, Some(4.0)), Some((3.0, Some(6.0))));
        assert_eq!(reports.add(1, 1.0, Some(2.0)), None, "it goes back");
        assert_eq!(reports.add(3, 1.0, None), Some((4.0, None)));
        assert_eq!(reports.add(3, f64::INFINITY, None), None);
        assert_eq!(reports.add(4, -3.0, None), None);
        assert_eq!(reports.add(4, f64::MAX, None), Some((f64::MAX, None)));
        assert_eq!(reports.add(5, f64::MAX, None), None);
        for span in 0..3_000 {
            reports.add(span, 0.0, None);
        }
        assert_eq!(reports.latest.len(), Reports::MAX);
    }
}
