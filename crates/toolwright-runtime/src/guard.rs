//! Holding one piece of work to its bounds: it ends on time, on cancel, and a panic in it stays in it.
//!
//! Work without a deadline is polled where the caller is, and costs nothing extra when it is ready at once.
//! Work with a deadline gets a task of its own, so that code which never yields cannot hold up the clock; so
//! does every call that is [`LEVELS_PER_TASK`] deeper than the last such, so that calls inside calls do not
//! fill up a stack. Either way, and whether it is late or cancelled, the work is told to stop through its
//! context, has [`GRACE`] to hand over what it has, and is then dropped. So a call that ends late has also
//! what the calls inside it had.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;
use toolwright_core::{
    BoxFuture, CancelToken, ErrorKind, ToolContext, ToolError, ToolOutput, Toolset, panic_error, panic_of,
};

use crate::executor::Envelope;
use crate::limits::{Deadline, LimitReached, Permit};
use crate::run::RunFrame;

/// How long stopped work may take to hand over its partial output: a command has to be killed and drained
/// first.
const GRACE: Duration = Duration::from_millis(480);

/// How much longer a call may take for each level of calls inside it, as these have to hand over first.
const GRACE_INSIDE: Duration = Duration::from_millis(250);

/// For how many levels at most: what is deeper has had its chance by then.
const MAX_LEVELS: u32 = 4;

/// How many calls inside one another are polled on one stack. A level with an agent takes about 120 KiB of it
/// in a debug build, and a worker of Tokio has 2 MiB.
const LEVELS_PER_TASK: u32 = 4;

/// How soon the end of a call is looked at again at the earliest, while it moves.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);

type WorkResult = Result<ToolOutput, ToolError>;

/// Runs a call under its permit. It begins at once; what is left to wait for is small, as every call has a
/// place for it.
pub(crate) fn run<'a>(
    run: &'a RunFrame,
    tools: &'a Toolset,
    envelope: Envelope,
    context: &'a ToolContext,
    permit: Permit,
    timeout: Option<Duration>,
) -> impl Future<Output = WorkResult> + 'a {
    let deep = context.depth() % LEVELS_PER_TASK == LEVELS_PER_TASK - 1;
    let here = permit.deadline.is_none() && !deep;
    let work = if context.is_cancelled() {
        Err(cancelled())
    } else if here {
        // Code may break before there is anything to wait for.
        contain(|| run.shared.executor.execute(tools, envelope, context))
    } else {
        Ok(in_task(run, tools.clone(), envelope, context.clone(), permit, timeout))
    };
    async move {
        let work = work?;
        if !here {
            return work.await;
        }
        let mut watched = UntilCancelled { work: Catch(work), context, cancelled: None };
        if let Some(outcome) = (&mut watched).await {
            return outcome;
        }
        Err(Box::pin(handed_over(cancelled(), &mut watched.work, grace(run, context))).await)
    }
}

/// Runs a call on a task of its own, until its end.
fn in_task(
    run: &RunFrame,
    tools: Toolset,
    envelope: Envelope,
    context: ToolContext,
    permit: Permit,
    timeout: Option<Duration>,
) -> BoxFuture<'_, WorkResult> {
    let mut deadline = permit.deadline;
    let task = {
        let (executor, context) = (run.shared.executor.clone(), context.clone());
        OwnTask::new(async move { Catch(executor.execute(&tools, envelope, &context)).await })
    };
    Box::pin(async move {
        let context = &context;
        let mut watched = UntilCancelled { work: task, context, cancelled: None };
        let limit = loop {
            let end = deadline.as_ref().map(|(end, _)| *end);
            tokio::select! {
                biased;
                outcome = &mut watched => return match outcome {
                    Some(outcome) => outcome,
                    None => Err(handed_over(cancelled(), &mut watched.work, grace(run, context)).await),
                },
                () = at(end) => {}
            }
            // Time spent waiting, say for a rate limit, is not working time: the end may have moved.
            // The call's own end moves by the time in which it waited for a person.
            let waited = run.shared.active.waited_for_person(context.span());
            let own_end = permit.own_end.and_then(|end| end.checked_add(waited));
            match run.limits.deadline(own_end) {
                Ok(Some((later, limit))) if later > Instant::now() => {
                    deadline = Some((later.max(Instant::now() + SHORTEST_LOOK), limit));
                }
                _ => break deadline.and_then(|(_, limit)| limit),
            }
        };
        context.stop();
        Err(handed_over(overdue(timeout, limit), &mut watched.work, grace(run, context)).await)
    })
}

/// Waits until the deadline; without one, indefinitely.
async fn at(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// Waits for work that is not a call, such as a person or a model, unless it is cancelled or its time is up
/// first. What the work reports as idle is not working time.
pub(crate) async fn unless_stopped<T>(
    run: &RunFrame,
    cancel: &CancelToken,
    mut deadline: Option<Deadline>,
    work: impl Future<Output = T>,
) -> Result<T, ToolError> {
    let mut work = std::pin::pin!(run.limits.clock().follow(work));
    let limit = loop {
        let end = deadline.as_ref().map(|(end, _)| *end);
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = cancel.cancelled() => return Err(cancelled()),
            () = at(end) => {}
        }
        let Some((_, Some(limit))) = deadline else { break None };
        // The end may have moved in the meantime.
        match run.limits.deadline(None) {
            Ok(Some(later)) if later.0 > Instant::now() => deadline = Some(later),
            _ => break Some(limit),
        }
    };
    Err(match limit {
        Some(limit) => run.refuse(limit),
        None => cancelled(),
    })
}

/// How long a call that was told to stop has: longer when calls inside it, which were told with it, are still
/// under way.
fn grace(run: &RunFrame, context: &ToolContext) -> Duration {
    let deepest = run.shared.active.deepest_stopped(context.depth());
    let levels = deepest.map_or(0, |deepest| deepest - context.depth());
    GRACE + GRACE_INSIDE * levels.min(MAX_LEVELS)
}

/// The error for cancelled work, with the output it still hands over.
async fn handed_over(error: ToolError, work: impl Future<Output = WorkResult>, grace: Duration) -> ToolError {
    let partial = match tokio::time::timeout(grace, work).await {
        Ok(Ok(output)) => Some(output),
        Ok(Err(mut last)) => {
            let partial = last.take_partial();
            // A secret stays one.
            partial.map(|partial| ToolOutput {
                confidential: partial.confidential || last.is_confidential(),
                ..partial
            })
        }
        Err(_) => None,
    };
    match partial {
        Some(partial) => error.with_partial(partial),
        None => error,
    }
}

/// The error for work that did not end on time.
fn overdue(timeout: Option<Duration>, limit: Option<LimitReached>) -> ToolError {
    match (limit, timeout) {
        (Some(limit), _) => limit.into(),
        (None, Some(timeout)) => ToolError::of(
            ErrorKind::Timeout,
            format!("the call took longer than {timeout:?} and was stopped"),
        ),
        (None, None) => ToolError::of(ErrorKind::Timeout, "the call took too long and was stopped"),
    }
}

/// Work, until its context is cancelled: then there is nothing, and the work is left as it is. The work is
/// polled first: what is ready is not lost to a cancel that comes at the same moment.
struct UntilCancelled<'a, W> {
    work: W,
    context: &'a ToolContext,
    /// Waits for the cancel; made only when the work was not ready at once.
    cancelled: Option<BoxFuture<'static, ()>>,
}

impl<W: Future<Output = WorkResult> + Unpin> Future for UntilCancelled<'_, W> {
    type Output = Option<WorkResult>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WorkResult>> {
        let this = &mut *self;
        if let Poll::Ready(outcome) = Pin::new(&mut this.work).poll(cx) {
            return Poll::Ready(Some(outcome));
        }
        let token = this.context.cancel_token().clone();
        let wait = this.cancelled.get_or_insert_with(|| Box::pin(token.cancelled_owned()));
        wait.as_mut().poll(cx).map(|()| None)
    }
}

pub(crate) fn cancelled() -> ToolError {
    ToolError::of(ErrorKind::Cancelled, "the call was cancelled")
}

/// Does a tool's work at once; a panic in it becomes a fatal error. What the work was changing is not used
/// after that.
pub(crate) fn contain<T>(work: impl FnOnce() -> T) -> Result<T, ToolError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| panic_error(&*payload))
}

/// What a task of a tool's came to; `None` when it was aborted.
pub(crate) fn joined<T>(task: Result<Result<T, ToolError>, JoinError>) -> Option<Result<T, ToolError>> {
    match task.map_err(JoinError::try_into_panic) {
        Ok(outcome) => Some(outcome),
        Err(Ok(payload)) => Some(Err(panic_error(&*payload))),
        Err(Err(_)) => None,
    }
}

/// A tool's work, in which a panic becomes a fatal error.
struct Catch<'a, T>(BoxFuture<'a, Result<T, ToolError>>);

impl<T> Future for Catch<'_, T> {
    type Output = Result<T, ToolError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic the future is dropped and never polled again, so its state cannot be seen half
        // changed.
        contain(|| self.0.as_mut().poll(cx)).unwrap_or_else(|panic| Poll::Ready(Err(panic)))
    }
}

/// Waits for foreign code other than a tool's, such as a tool source or a model. A panic in it becomes a
/// fatal error that names its origin.
pub(crate) async fn caught<T>(whose: &str, work: impl Future<Output = T>) -> Result<T, ToolError> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(payload) => Poll::Ready(Err(panic_of(whose, &*payload))),
    })
    .await
}

/// Work on a task of its own, which is aborted when nobody waits for it any more.
pub(crate) struct OwnTask<T>(JoinHandle<Result<T, ToolError>>);

impl<T: Send + 'static> OwnTask<T> {
    pub(crate) fn new(work: impl Future<Output = Result<T, ToolError>> + Send + 'static) -> Self {
        OwnTask(tokio::spawn(work))
    }
}

impl<T> Future for OwnTask<T> {
    type Output = Result<T, ToolError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|task| joined(task).unwrap_or_else(|| Err(cancelled())))
    }
}

impl<T> Drop for OwnTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
