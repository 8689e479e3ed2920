//! The requests that wait for their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use toolwright_core::text;
use toolwright_util::lock;

use super::calls::CallOrigin;
use super::connection::OnProgress;
use crate::error::McpError;
use crate::protocol::{ClientRequest, ProgressParams, RequestMeta};
/// The most progress notifications of one call that are passed on.
const MAX_PROGRESS: u32 = 1000;

/// A request to be made.
pub(crate) struct Ask<'a> {
    pub(crate) request: &'a ClientRequest,
    pub(crate) meta: RequestMeta,
    pub(crate) timeout: Duration,
    pub(crate) progress: Option<OnProgress>,
    /// Headers for arguments, over HTTP.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) whose: CallOrigin,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(request: &'a ClientRequest, timeout: Duration) -> Self {
        Ask {
            request,
            meta: RequestMeta::default(),
            timeout,
            progress: None,
            headers: Vec::new(),
            whose: CallOrigin::default(),
        }
    }
}

/// A request that waits.
pub(super) struct Pending {
    reply: oneshot::Sender<Result<Value, McpError>>,
    whose: CallOrigin,
    progress: Option<OnProgress>,
    notifications: u32,
    last: f64,
}

/// The requests that wait, by id.
pub(super) struct Requests {
    pending: Mutex<HashMap<i64, Pending>>,
    next_id: AtomicI64,
}

impl Requests {
    pub(super) fn new() -> Self {
        Requests { pending: Mutex::default(), next_id: AtomicI64::new(1) }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<i64, Pending>> {
        lock(&self.pending)
    }

    pub(super) fn next_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a request, and returns what its answer comes on.
    pub(super) fn add(
        &self,
        id: i64,
        whose: CallOrigin,
        progress: Option<OnProgress>,
    ) -> oneshot::Receiver<Result<Value, McpError>> {
        let (reply, answer) = oneshot::channel();
        let pending = Pending { reply, whose, progress, notifications: 0, last: f64::NEG_INFINITY };
        self.pending().insert(id, pending);
        answer
    }

    /// Takes a request out. The caller drops it: its listener may be the last owner of a run and so of this
    /// session, and must not be dropped while the lock is held.
    pub(super) fn remove(&self, id: i64) -> Option<Pending> {
        self.pending().remove(&id)
    }

    /// Takes all requests out; see [`Self::remove`].
    pub(super) fn take_all(&self) -> HashMap<i64, Pending> {
        std::mem::take(&mut *self.pending())
    }

    pub(super) fn contains(&self, id: i64) -> bool {
        self.pending().contains_key(&id)
    }

    /// Whose request it is.
    pub(super) fn whose(&self, id: i64) -> Option<CallOrigin> {
        Some(self.pending().get(&id)?.whose.clone())
    }

    /// Delivers an answer. One to no open request, or a second one, is dropped.
    pub(super) fn answer(&self, id: i64, outcome: Result<Value, McpError>) {
        // Not in one line: the lock is released before the request is dropped.
        let waiting = self.remove(id);
        if let Some(Pending { reply, .. }) = waiting {
            let _ = reply.send(outcome);
        }
    }

    /// Passes progress on to the listener of its request.
    pub(super) fn progress(&self, params: ProgressParams) {
        let Some(id) = params.progress_token.as_id() else { return };
        let on_progress = {
            let mut pending = self.pending();
            let Some(call) = pending.get_mut(&id) else { return };
            // Progress only grows; anything else is noise, and so is more of it than anybody can read.
            if params.progress <= call.last || call.notifications >= MAX_PROGRESS {
                return;
            }
            call.last = params.progress;
            call.notifications += 1;
            call.progress.clone()
        };
        if let Some(on_progress) = on_progress {
            on_progress(
                params.progress,
                params.total,
                params.message.map(|message| text::clip(&message, 1000)),
            );
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pending().len()
    }
}
