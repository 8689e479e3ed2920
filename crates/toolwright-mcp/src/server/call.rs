//! `tools/call`: one call through the run's door, with progress, questions, cancelling and tasks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use toolwright_core::{CallNote, CancelToken, ProgressListener, ToolCall, ToolResult, ToolSpec, text};

use super::rounds::Rounds;
use super::tasks::{self, TaskSupport, needs_extension};
use super::{CANCEL_GRACE, Era, Inner, Outcome, Outlet, Peer, Request};
use crate::bridge;
use crate::jsonrpc::{self, BUSY, INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use crate::protocol::TASKS_EXTENSION;

/// Counts the calls of this process, so that each has an id of its own.
static CALLS: AtomicU64 = AtomicU64::new(1);

/// The first revision with structured results, and with links.
const STRUCTURED_SINCE: &str = "2025-06-18";

/// A call that passed the checks.
struct Ready {
    server: Arc<Inner>,
    peer: Peer,
    tools: Arc<Vec<ToolSpec>>,
    at: usize,
    arguments: Value,
    token: Option<Value>,
}

pub(super) async fn answer(server: &Arc<Inner>, request: Request, params: Value) -> Outcome {
    match ready(server, request, params).await {
        Ok(ready) => ready.answer().await,
        Err(error) => Some(Err(error)),
    }
}

async fn ready(server: &Arc<Inner>, request: Request, mut params: Value) -> Result<Ready, RpcError> {
    let invalid = |message: &str| RpcError::new(INVALID_PARAMS, message);
    let name = params.get("name").and_then(Value::as_str).ok_or_else(|| invalid("`name` is missing"))?;
    let Some((tools, at)) = server.tool(name).await? else {
        return Err(invalid(&format!("there is no tool `{}`", text::clip(name, 200))));
    };
    let name = name.to_owned();
    let token = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
    let token = token.filter(|token| token.is_string() || token.is_number());
    let arguments = match params.get_mut("arguments").map(Value::take) {
        None | Some(Value::Null) => json!({}),
        Some(arguments @ Value::Object(_)) => arguments,
        Some(_) => return Err(invalid("`arguments` must be an object")),
    };
    let rounds = Rounds::open(&server.state_key, &request, ("tools/call", &name, &arguments), &params)?;
    let peer = Peer::new(request, rounds);
    Ok(Ready { server: server.clone(), peer, tools, at, arguments, token })
}

impl Ready {
    async fn answer(self) -> Outcome {
        let (server, request) = (self.server.clone(), self.peer.request().clone());
        let support = self.tools.get(self.at).and_then(|spec| server.task_support(&spec.name));
        let support = support.filter(|_| request.era.is_stateless());
        match support {
            None => self.run(request.cancel).await,
            Some(support) if !request.client_has_extension(TASKS_EXTENSION) => match support {
                TaskSupport::Required => Some(Err(needs_extension())),
                TaskSupport::After(_) | TaskSupport::Always => self.run(request.cancel).await,
            },
            Some(support) => self.run_as_task(support).await,
        }
    }

    /// Runs the call to its end, or until it goes on as a task.
    async fn run_as_task(self, support: TaskSupport) -> Outcome {
        let (server, request) = (self.server.clone(), self.peer.request().clone());
        let Some(task) = server.tasks.create(&request) else {
            return Some(Err(RpcError::new(BUSY, "there are too many tasks")));
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
                outcome = &mut work => {
                    server.tasks.forget(&task);
                    return outcome.unwrap_or_default();
                }
                () = request.cancel.cancelled() => {
                    task.cancel.cancel();
                    let _ = work.await;
                    server.tasks.forget(&task);
                    return None;
                }
                () = tokio::time::sleep(patience) => peer.goes_on_as(task.clone()),
            }
        }
        let (kept, running) = (server.tasks.clone(), task.clone());
        tokio::spawn(async move {
            let outcome = match tokio::time::timeout(tasks::LIFETIME, &mut work).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    running.cancel.cancel();
                    work.await
                }
            };
            kept.ended(&running, outcome.unwrap_or_default());
        });
        Some(Ok(server.finish(task.created(), request.era)))
    }

    /// Runs the call to its end; `None` when it was cancelled.
    async fn run(self, cancel: CancelToken) -> Outcome {
        let Ready { server, peer, tools, at, arguments, token } = self;
        let Some(spec) = tools.get(at) else {
            return Some(Err(RpcError::new(INTERNAL_ERROR, "the tool is gone")));
        };
        let (era, outlet) = (peer.request().era, peer.request().outlet.clone());
        let call_id = format!("mcp-{}", CALLS.fetch_add(1, Ordering::Relaxed));
        let asked_with = if era.is_stateless() { arguments.clone() } else { Value::Null };
        let call = ToolCall::new(call_id, spec.name.clone(), arguments);
        let stop = CancelToken::new();
        let origin = peer.origin(Some(stop.clone()), token.map(|token| progress(outlet, token)));
        let mut work = server.dispatch.call(call, origin);
        let outcome = tokio::select! {
            biased;
            outcome = &mut work => outcome,
            () = cancel.cancelled() => {
                stop.cancel();
                let _ = tokio::time::timeout(CANCEL_GRACE, work).await;
                return None;
            }
        };
        if let Some(instead) = peer.instead(&server.state_key, ("tools/call", &spec.name, &asked_with)) {
            return Some(instead.map(|result| server.finish(result, era)));
        }
        Some(match outcome {
            Ok(result) => Ok(server.finish(to_wire(result, spec, era), era)),
            Err(error) => {
                server.log(&format!("the call failed: {error}"));
                Err(RpcError::new(INTERNAL_ERROR, "the tool could not be run; the server's log says why"))
            }
        })
    }
}

fn to_wire(mut result: ToolResult, spec: &ToolSpec, era: Era) -> Value {
    if era.version >= STRUCTURED_SINCE {
        bridge::keep_promise(&mut result, spec);
    }
    let mut answer = bridge::write_result(result, spec);
    downgrade(&mut answer, era);
    answer
}

/// Sends on how far a call has come; nothing is sent when the client does not read.
fn progress(outlet: Outlet, token: Value) -> ProgressListener {
    let reports = Mutex::new(Reports::default());
    Arc::new(move |span, note| {
        let CallNote::Progress { done, total, message } = note else { return };
        let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((done, total)) = reports.add(span, *done, *total) else { return };
        let mut params = json!({"progressToken": token, "progress": done});
        if let Value::Object(members) = &mut params {
            members.extend(total.map(|total| ("total".to_owned(), json!(total))));
            members.extend(message.as_ref().map(|text| ("message".to_owned(), json!(text))));
        }
        outlet.try_send(jsonrpc::notification("notifications/progress", params));
    })
}

/// What was reported by a client's call and by the calls that it makes. The client sees them as one, so it is told the sum.
#[derive(Default)]
struct Reports {
    latest: BTreeMap<u64, (f64, Option<f64>)>,
    told: Option<f64>,
}

impl Reports {
    /// Of a flow that makes more calls than this, those after them are not told of.
    const MAX: usize = 2_000;

    /// What to tell the client, if anything: its progress must grow.
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
        if !done.is_finite() || self.told.is_some_and(|told| done <= told) {
            return None;
        }
        self.told = Some(done);
        Some((done, total.filter(|total| total.is_finite())))
    }
}

/// Says in the words of an older revision what it has no word for.
fn downgrade(answer: &mut Value, era: Era) {
    let (no_links, no_sounds) = (era.version < STRUCTURED_SINCE, era.version < "2025-03-26");
    if !no_links {
        return;
    }
    let Value::Object(members) = answer else { return };
    members.shift_remove("structuredContent");
    let Some(Value::Array(blocks)) = members.get_mut("content") else { return };
    for block in blocks {
        let member = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let older = match member("type") {
            "resource_link" => Some(json!({
                "type": "text", "text": format!("{}: {}", member("name"), member("uri"))
            })),
            "audio" if no_sounds => Some(json!({"type": "resource", "resource": {
                "uri": "toolwright:///audio", "mimeType": member("mimeType"), "blob": member("data")
            }})),
            _ => None,
        };
        if let Some(older) = older {
            *block = older;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_of_several_calls_grows() {
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
