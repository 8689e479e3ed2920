//! The calls under way: for which client each is, and which pays when the server asks a model.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use toolwright_core::ToolContext;
use toolwright_util::lock;

use super::caller::Caller;
use super::connection::ServerConnection;
/// Whose request it is: questions that the server asks while it works on it are answered for them.
#[derive(Clone, Default)]
pub(crate) struct CallOrigin {
    /// The client of ours that made the call, where questions are passed on.
    pub(crate) caller: Option<Arc<Caller>>,
    /// The call that pays for what the server asks a model.
    pub(crate) payer: Option<ToolContext>,
}

/// The calls under way.
#[derive(Default)]
pub(super) struct PendingCalls {
    /// The calls that pay; the latest is the last.
    payers: Mutex<BTreeMap<u64, ToolContext>>,
    /// Each call with the client it is for, when questions are passed on.
    callers: Mutex<Vec<(i64, Option<Arc<Caller>>)>>,
    next_caller: AtomicI64,
}

impl PendingCalls {
    fn payers(&self) -> MutexGuard<'_, BTreeMap<u64, ToolContext>> {
        lock(&self.payers)
    }

    fn callers(&self) -> MutexGuard<'_, Vec<(i64, Option<Arc<Caller>>)>> {
        lock(&self.callers)
    }

    /// The payer when the server does not say for which call it asks: the latest.
    pub(super) fn payer(&self) -> Option<ToolContext> {
        self.payers().values().next_back().cloned()
    }

    /// The client whose call the server works on: `None` when that is ambiguous, `Some(None)` when no client
    /// made it.
    pub(super) fn caller(&self) -> Option<Option<Arc<Caller>>> {
        let callers = self.callers();
        let Some((_, last)) = callers.last() else { return Some(None) };
        let same = |other: &Option<Arc<Caller>>| match (last, other) {
            (Some(last), Some(other)) => last.same_client(other),
            (None, None) => true,
            _ => false,
        };
        callers.iter().all(|(_, other)| same(other)).then(|| last.clone())
    }
}

/// From [`Client::paid_by`](crate::Client::paid_by): a call pays for what a server asks a model for as long
/// as this lives.
pub struct Paying {
    connection: Arc<ServerConnection>,
    number: u64,
}

impl Paying {
    /// Has this call pay for what the server asks a model meanwhile.
    pub(super) fn begin(connection: &Arc<ServerConnection>, context: &ToolContext) -> Self {
        let mut payers = connection.calls.payers();
        let number = payers.keys().next_back().map_or(0, |last| last + 1);
        payers.insert(number, context.clone());
        Paying { connection: connection.clone(), number }
    }
}

impl Drop for Paying {
    fn drop(&mut self) {
        // The lock is released before the context is dropped, which may be the last owner of a run.
        let gone = self.connection.calls.payers().remove(&self.number);
        drop(gone);
    }
}

/// A call under way, with the client that it is for.
pub(super) struct Calling {
    connection: Arc<ServerConnection>,
    number: i64,
    pub(super) caller: Option<Arc<Caller>>,
}

impl Calling {
    /// Registers a call until the guard is dropped.
    pub(super) fn begin(connection: &Arc<ServerConnection>, caller: Option<Arc<Caller>>) -> Self {
        let number = connection.calls.next_caller.fetch_add(1, Ordering::Relaxed);
        connection.calls.callers().push((number, caller.clone()));
        Calling { connection: connection.clone(), number, caller }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        self.connection.calls.callers().retain(|(number, _)| *number != self.number);
        if let Some(caller) = &self.caller {
            caller.over.cancel();
        }
    }
}
