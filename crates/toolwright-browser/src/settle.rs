//! Waiting until a page has taken in what was done to it, by its events: a new document, requests that
//! began since, and one painted frame.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::engine::RequestKind;
use crate::instance::{Instance, LOAD_TIMEOUT};

/// How long requests that began with an action are waited for once the document is there.
const QUIET_TIMEOUT: Duration = Duration::from_millis(1500);

/// How far a page came.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Settled {
    /// Requests that are still under way.
    pub(crate) requests: usize,
    /// The document has not been parsed.
    pub(crate) loading: bool,
}

enum Phase {
    Loading,
    Requests(usize),
    Quiet,
    Gone,
}

impl Instance {
    /// The requests of a tab that are under way; those that begin later are waited for.
    pub(crate) fn requests(&self, target: &str) -> HashSet<String> {
        let mut tabs = self.engine.shared.tabs();
        tabs.of_target(target).map(|tab| tab.requests.keys().cloned().collect()).unwrap_or_default()
    }

    /// Waits until nothing that began after `before` is under way and a frame was painted since.
    pub(crate) async fn settle(&mut self, target: &str, before: &HashSet<String>) -> Settled {
        let start = Instant::now();
        let mut changes = self.engine.shared.changes();
        let mut quiet_until = start + QUIET_TIMEOUT;
        let mut painted = false;
        loop {
            changes.borrow_and_update();
            match self.phase(target, before) {
                Phase::Gone => return Settled::default(),
                Phase::Loading => {
                    painted = false;
                    let deadline = start + LOAD_TIMEOUT;
                    if !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                        return Settled { requests: 0, loading: true };
                    }
                    quiet_until = Instant::now() + QUIET_TIMEOUT;
                }
                Phase::Requests(requests) => {
                    painted = false;
                    if !matches!(timeout_at(quiet_until, changes.changed()).await, Ok(Ok(()))) {
                        return Settled { requests, loading: false };
                    }
                }
                Phase::Quiet if painted => return Settled::default(),
                Phase::Quiet => {
                    // What an answer brought is put on the page, and may ask for more.
                    self.paint(target).await;
                    painted = true;
                }
            }
        }
    }

    fn phase(&self, target: &str, before: &HashSet<String>) -> Phase {
        let mut tabs = self.engine.shared.tabs();
        let Some(tab) = tabs.of_target(target).filter(|tab| !tab.crashed) else { return Phase::Gone };
        if self.engine.is_gone() {
            return Phase::Gone;
        }
        if tab.load.pending || !tab.load.ready {
            return Phase::Loading;
        }
        let counted =
            tab.requests.iter().filter(|(id, kind)| **kind == RequestKind::Counted && !before.contains(*id));
        match counted.count() {
            0 => Phase::Quiet,
            count => Phase::Requests(count),
        }
    }

    /// Waits for one painted frame of the main document.
    async fn paint(&mut self, target: &str) {
        let Some(tab) = self.tabs().into_iter().find(|tab| tab.target == target) else { return };
        if let Ok(world) = self.main_world(&tab).await {
            let painted = self.call::<Value>(&world, "frame", json!([]));
            let _ = tokio::time::timeout(Duration::from_secs(2), painted).await;
        }
    }
}
