//! The runtime's side of staged changes: one layer for each job, settled once, and what is reported of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use toolwright_core::{CallEffect, ErrorKind, KeepReason, ToolError};

use crate::launcher::client::{LauncherSession, unavailable};
use crate::launcher::wire::{Settle, StageRequest};

/// The layer of a job that runs. Dropping it drops the changes that are not settled.
#[derive(Debug)]
pub(crate) struct OpenStage {
    session: Arc<LauncherSession>,
    number: u64,
    settled: AtomicBool,
    /// The effect of the last commit, for a caller that asks after the end.
    last: Mutex<CallEffect>,
}

impl OpenStage {
    /// A layer for a new job; `None` where changes are live.
    pub(crate) fn begin(session: &Arc<LauncherSession>) -> Option<OpenStage> {
        let number = session.next_stage()?;
        Some(OpenStage {
            session: session.clone(),
            number,
            settled: AtomicBool::new(false),
            last: Mutex::default(),
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Settles the changes. Once begun it is done, whether or not the future is polled to its end.
    pub(crate) async fn settle(&self, settle: Settle) -> Result<CallEffect, ToolError> {
        if settle != Settle::Interim {
            self.settled.store(true, Ordering::SeqCst);
        }
        let (session, request) = (self.session.clone(), StageRequest { stage: self.number, settle });
        let work = tokio::task::spawn_blocking(move || session.settle(request));
        work.await.map_err(|error| unavailable("the commit was interrupted").with_source(error))?
    }
}

impl OpenStage {
    /// Settles the changes of a process that has ended, and keeps the effect.
    pub(crate) async fn settle_at_end(&self) {
        // Without an answer the sandbox is gone, which the next use of it reports.
        if let Ok(effect) = self.settle(Settle::Last).await {
            self.last.lock().unwrap_or_else(PoisonError::into_inner).merge(effect);
        }
    }

    /// Applies what the process has changed since the last time.
    pub(crate) async fn settle_now(&self) -> Result<CallEffect, ToolError> {
        if !self.settled.load(Ordering::SeqCst) {
            return self.settle(Settle::Interim).await;
        }
        Ok(std::mem::take(&mut *self.last.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Drop for OpenStage {
    fn drop(&mut self) {
        // A call that was given up changes nothing.
        if !self.settled.load(Ordering::SeqCst)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let request = StageRequest { stage: self.number, settle: Settle::Drop };
            let session = self.session.clone();
            runtime.spawn_blocking(move || session.settle(request));
        }
    }
}

/// The outcome of writing one file.
pub(crate) fn written(effect: CallEffect, path: &str) -> Result<CallEffect, ToolError> {
    match effect.kept_back.first() {
        None => Ok(effect),
        Some(kept) if kept.reason == KeepReason::Protected => Err(protected(path)),
        Some(kept) => {
            let error = kept.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let message = format!("`{}` {}{error}", path.escape_debug(), kept.reason.as_text());
            Err(ToolError::of(ErrorKind::Permission, message))
        }
    }
}

/// The error for a file that programs outside obey.
pub(crate) fn protected(path: &str) -> ToolError {
    let message = format!("`{}` is protected", path.escape_debug());
    ToolError::of(ErrorKind::Permission, message)
        .hint("programs outside obey it, so it stays as it is; `protect` in the policy names such files")
}
