//! The runtime's side of staged changes: one layer for each job, settled once, and what is reported of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use toolwright_core::{CallEffect, EffectJudge, EffectOutcome, ErrorKind, KeepReason, ToolError};
use toolwright_util::lock;

use crate::launcher::client::{LauncherSession, unavailable};
use crate::launcher::wire::{Settle, StageAnswer, StageOrder, StageRequest};

/// The layer of a job that runs. Dropping it drops the changes that are not settled.
pub(crate) struct OpenStage {
    session: Arc<LauncherSession>,
    number: u64,
    settled: AtomicBool,
    /// The effect of the last commit, for a caller that asks after the end.
    last: Mutex<CallEffect>,
    /// Who decides about the changes: the call that worked with the process last.
    judge: Mutex<Option<Arc<dyn EffectJudge>>>,
    /// What one is asked about is not settled by another meanwhile.
    turn: tokio::sync::Mutex<()>,
}

impl OpenStage {
    /// A layer for a new job; `None` where changes are live.
    pub(crate) fn begin(
        session: &Arc<LauncherSession>,
        judge: Option<&Arc<dyn EffectJudge>>,
    ) -> Option<OpenStage> {
        let number = session.next_stage()?;
        Some(OpenStage {
            session: session.clone(),
            number,
            settled: AtomicBool::new(false),
            last: Mutex::default(),
            judge: Mutex::new(judge.cloned()),
            turn: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    async fn order(&self, order: StageOrder) -> Result<StageAnswer, ToolError> {
        let (session, request) = (self.session.clone(), StageRequest { stage: self.number, order });
        let work = tokio::task::spawn_blocking(move || session.settle(&request));
        work.await.map_err(|error| unavailable("the commit was interrupted").with_source(error))?
    }

    /// Settles the changes, once the judge has decided about them. From then on it is done, whether or not
    /// the future is polled to its end.
    pub(crate) async fn settle(&self, settle: Settle) -> Result<CallEffect, ToolError> {
        let _turn = self.turn.lock().await;
        let over = || {
            if settle != Settle::Interim {
                self.settled.store(true, Ordering::SeqCst);
            }
        };
        let judge = lock(&self.judge).clone();
        let call = judge.as_ref().and_then(|judge| judge.call_id()).map(str::to_owned);
        if judge.is_none() {
            over();
        }
        let order = StageOrder::Settle { settle, call, judged: judge.is_some() };
        let mut answer = self.order(order).await?;
        if let (StageAnswer::Staged(staged), Some(judge)) = (&answer, &judge) {
            let verdict = judge.judge(staged).await;
            over();
            answer = self.order(StageOrder::Decide(verdict)).await?;
        }
        over();
        let StageAnswer::Settled(effect) = answer else {
            return Err(unavailable("the changes were not settled"));
        };
        if let Some(judge) = judge {
            judge.settled(&effect);
        }
        Ok(*effect)
    }

    /// Settles the changes of a process that has ended, and keeps the effect.
    pub(crate) async fn settle_at_end(&self) {
        // Without an answer the sandbox is gone, which the next use of it reports.
        if let Ok(effect) = self.settle(Settle::Last).await {
            lock(&self.last).merge(effect);
        }
    }

    /// Applies what the process has changed since the last time, as the judge decides.
    pub(crate) async fn settle_now(
        &self,
        judge: Option<Arc<dyn EffectJudge>>,
    ) -> Result<CallEffect, ToolError> {
        if judge.is_some() {
            *lock(&self.judge) = judge;
        }
        if !self.settled.load(Ordering::SeqCst) {
            return self.settle(Settle::Interim).await;
        }
        Ok(std::mem::take(&mut *lock(&self.last)))
    }
}

impl Drop for OpenStage {
    fn drop(&mut self) {
        // A call that was given up changes nothing.
        if !self.settled.load(Ordering::SeqCst)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let order = StageOrder::Settle { settle: Settle::Drop, call: None, judged: false };
            let request = StageRequest { stage: self.number, order };
            let session = self.session.clone();
            runtime.spawn_blocking(move || session.settle(&request));
        }
    }
}

/// The outcome of writing one file.
pub(crate) fn written(effect: &CallEffect, path: &str) -> Result<(), ToolError> {
    if effect.outcome != EffectOutcome::Applied {
        return Err(ToolError::of(ErrorKind::Permission, effect.kept_back_text().trim_end().to_owned()));
    }
    match effect.kept_back.first() {
        None => Ok(()),
        Some(kept) if kept.reason == KeepReason::Protected => Err(protected(path)),
        Some(kept) if kept.reason == KeepReason::Conflict => {
            Err(ToolError::of(ErrorKind::Permission, effect.kept_back_text().trim_end().to_owned()))
        }
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
