//! The calls under way: where each can be cancelled, reports that it waits, and where the calls inside it
//! find its clock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use toolwright_core::ToolContext;
use toolwright_util::lock;

use crate::clock::{Clock, IdleGuard};

/// The calls under way by their spans, which are numbers of our own, so a fixed hash will do. Cloning shares
/// the list.
#[derive(Clone, Default)]
pub(crate) struct ActiveCalls(Arc<Mutex<HashMap<u64, ActiveCall, foldhash::fast::FixedState>>>);

struct ActiveCall {
    context: ToolContext,
    /// What measures the call; `None` when no sink is attached.
    clock: Option<Clock>,
    /// Books the time in which the call, or one inside it, waits for a person; and how much that was before
    /// the call was admitted.
    person: (Clock, Duration),
    /// Books the waits that the call announces, once it does.
    waits: Option<IdleGuard>,
}

impl ActiveCalls {
    /// Keeps a call in the list until the returned value is dropped.
    pub(crate) fn enter(&self, context: &ToolContext, clock: Option<&Clock>, person: &Clock) -> Active<'_> {
        let person = (person.clone(), person.idle());
        let call = ActiveCall { context: context.clone(), clock: clock.cloned(), person, waits: None };
        let span = context.span();
        self.lock().insert(span, call);
        Active { calls: self, span }
    }

    /// The clock of a call that is under way and on record.
    pub(crate) fn clock(&self, span: u64) -> Option<Clock> {
        self.lock().get(&span).and_then(|call| call.clock.clone())
    }

    /// What books the time in which a call that is under way waits for a person.
    pub(crate) fn person_clock(&self, span: u64) -> Option<Clock> {
        self.lock().get(&span).map(|call| call.person.0.clone())
    }

    /// For how long a call has waited for a person since it was admitted.
    pub(crate) fn waited_for_person(&self, span: u64) -> Duration {
        let person = self.lock().get(&span).map(|call| call.person.clone());
        person.map_or(Duration::ZERO, |(clock, before)| clock.idle().saturating_sub(before))
    }

    /// Books a wait of a call in the clock of its run; it ends with the call at the latest.
    pub(crate) fn announce(&self, span: u64, run: &Clock, time: Duration) {
        if let Some(call) = self.lock().get_mut(&span) {
            call.waits.get_or_insert_with(|| run.idle_guard()).announce(time);
        }
    }

    /// Stops the calls of that depth with that id; says whether there was one.
    pub(crate) fn cancel(&self, depth: u32, call_id: &str) -> bool {
        let meant = |context: &&ToolContext| context.depth() == depth && **context.call_id() == *call_id;
        let calls = self.lock();
        let found: Vec<ToolContext> =
            calls.values().map(|call| &call.context).filter(meant).cloned().collect();
        drop(calls);
        found.iter().for_each(ToolContext::stop);
        !found.is_empty()
    }

    /// The depth of the deepest call that was cancelled, if it is deeper than `depth`.
    pub(crate) fn deepest_stopped(&self, depth: u32) -> Option<u32> {
        let calls = self.lock();
        let contexts = calls.values().map(|call| &call.context);
        contexts
            .filter(|inside| inside.depth() > depth && inside.is_cancelled())
            .map(ToolContext::depth)
            .max()
    }

    /// The ids of all calls.
    pub(crate) fn ids(&self) -> Vec<Arc<str>> {
        self.lock().values().map(|call| call.context.call_id().clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, ActiveCall, foldhash::fast::FixedState>> {
        lock(&self.0)
    }
}

/// A call's place in the list.
pub(crate) struct Active<'a> {
    calls: &'a ActiveCalls,
    span: u64,
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        // What it waits for is given up outside the lock.
        let gone = self.calls.lock().remove(&self.span);
        drop(gone);
    }
}
