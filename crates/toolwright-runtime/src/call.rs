//! The path of one call: parse, find, validate, approve, admit, run, bound, record.
//!
//! A failure here is news for the model, not the end of the run; only fatal errors leave this file as errors.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use toolwright_core::{
    Asker, CallNote, CancelToken, Entry, ErrorKind, Manner, Prepared, ToolCall, ToolContext, ToolError,
    ToolOutput, ToolResult, Toolset, Watch,
};

use crate::events::EventKind;
use crate::executor::Envelope;
use crate::limits::LimitReached;
use crate::record::{CallFrame, CallRecord};
use crate::run::{RunEnd, RunInner};
use crate::{guard, parse, render};

/// Makes one call for a model. `cancel` is the run's signal, or one below it.
pub(crate) async fn run_call(
    run: &Arc<RunInner>,
    call: ToolCall,
    fresh: Option<&Toolset>,
    cancel: &CancelToken,
) -> Result<ToolResult, ToolError> {
    let asker = run.outer.as_ref().map(|outer| outer.asker.clone()).unwrap_or_default();
    let watch = run.outer.as_ref().and_then(|outer| outer.watch.clone());
    run_call_from(run, call, fresh, Outside { cancel, asker, watch }).await
}

/// Makes one call for whoever asks from outside.
pub(crate) async fn run_call_from(
    run: &Arc<RunInner>,
    mut call: ToolCall,
    fresh: Option<&Toolset>,
    from: Outside<'_>,
) -> Result<ToolResult, ToolError> {
    let tools = match fresh {
        Some(tools) => tools.clone(),
        None => run.refresh_tools(from.cancel).await?,
    };
    let found = tools.find(&call.name);
    let limit = output_limit(run, &found);
    let id = call.id.clone();
    let outer_span = run.outer.as_ref().and_then(|outer| outer.span);
    if let Some(parent) = run.outer.as_ref().and_then(|outer| outer.call_id.as_ref()) {
        call.id = format!("{parent}.{id}").into();
    }
    let record = CallRecord::open(run, &call, outer_span)?;
    let tools = (&tools, found);
    let outcome = attempt(run, tools, &mut call, &record, Caller::Outside(from)).await;
    let outcome = match outcome {
        Err(error) if error.is_fatal() => return Err(record.close_fatal(error)),
        outcome => outcome,
    };
    let mut result = render::result(&call, outcome, limit);
    record.close(Some(&result))?;
    // Whoever asked knows the call by the id that they gave it.
    result.call_id = id;
    Ok(result)
}

/// Makes one call for a tool: the output is whole, and the record names the parent. The tool is one of `own`, or of
/// the run.
pub(crate) async fn run_nested(
    run: &Arc<RunInner>,
    own: Option<&Toolset>,
    mut call: ToolCall,
    parent: &ToolContext,
    manner: Manner,
) -> Result<ToolOutput, ToolError> {
    let tools = own.cloned().unwrap_or_else(|| run.current_tools());
    let found = tools.find(&call.name);
    let limit = output_limit(run, &found);
    let record = CallRecord::open(run, &call, Some(parent.span()))?;
    if let Some(text) = &manner.hint
        && run.events.wanted()
    {
        let note = CallNote::Hint { text: text.to_string() };
        run.events.emit(EventKind::CallNoted { span: record.span, note })?;
    }
    let tools = (&tools, found);
    let outcome = attempt(run, tools, &mut call, &record, Caller::Tool(parent, manner)).await;
    let outcome = match outcome {
        Err(error) if error.is_fatal() => return Err(record.close_fatal(error)),
        outcome => outcome,
    };
    if run.events.wanted() {
        // The record is bounded like a model's result; the parent gets everything.
        let copy = match &outcome {
            Ok(output) => Ok(output.clone()),
            Err(error) => Err(ToolError::from(error.info())),
        };
        let result = render::result(&call, copy, limit);
        record.close(Some(&result))?;
    } else {
        record.close(None)?;
    }
    outcome
}

/// Where a call from outside comes from.
pub(crate) struct Outside<'a> {
    /// What stops the call.
    pub(crate) cancel: &'a CancelToken,
    pub(crate) asker: Asker,
    pub(crate) watch: Option<Watch>,
}

/// Who makes a call.
enum Caller<'a> {
    /// A model, or somebody else outside.
    Outside(Outside<'a>),
    /// Another call.
    Tool(&'a ToolContext, Manner),
}

/// The steps in their order. Each one may end the call. `tools` are all there are, and the one that is asked for.
async fn attempt(
    run: &Arc<RunInner>,
    tools: (&Toolset, Result<&Entry, ToolError>),
    call: &mut ToolCall,
    record: &CallRecord<'_>,
    caller: Caller<'_>,
) -> Result<ToolOutput, ToolError> {
    let (span, clock) = (record.span, record.clock.as_ref());
    let (frame, manner, watch, parents_end) = match caller {
        Caller::Outside(Outside { cancel, asker, watch }) => {
            let depth = run.outer.as_ref().map_or(0, |outer| outer.depth);
            (CallFrame { span, depth, cancel, asker, clock }, Manner::default(), watch, None)
        }
        Caller::Tool(parent, manner) => {
            let (depth, cancel, asker) = (parent.depth() + 1, parent.cancel_token(), parent.asker().clone());
            let watch = parent.watch().cloned();
            (CallFrame { span, depth, cancel, asker, clock }, manner, watch, parent.deadline())
        }
    };
    may_begin(run, &frame)?;
    let (tools, found) = tools;
    let arguments =
        parse::arguments(call.arguments.take(), found.as_ref().ok().map(|entry| entry.tool.spec()));
    // Unreadable arguments are reported before an unknown name, as the model must mend both anyway.
    let arguments = arguments?;
    let entry = found?;
    to_real_name(entry, call);
    let prepared = entry.prepare(arguments, run.strictness)?;
    let prepared = run.approvals.review(run, entry, call, prepared, &frame).await?;
    let Prepared { arguments, description, .. } = prepared;
    let policy = entry.tool.policy();
    if manner.hint.is_none()
        && run.events.wanted()
        && let Some(text) = description.and_then(|description| description.hint)
    {
        run.events.emit(EventKind::CallNoted { span, note: CallNote::Hint { text } })?;
    }
    let context;
    let _active;
    // What only the beginning needs is gone when the work is waited for.
    let work = {
        let permit = run.limits.admit_call(policy.timeout).map_err(|limit| run.refuse(limit))?;
        // A call inside another ends with it, and is told so: a command then hands over what it has in time.
        let deadline = permit.deadline.as_ref().map(|(deadline, _)| *deadline);
        let deadline = deadline.into_iter().chain(parents_end).min();
        let host: Arc<RunInner> = run.clone();
        context = ToolContext::new(
            host,
            call.id.clone(),
            entry.tool.spec().name.clone(),
            span,
            frame.depth,
            deadline,
            frame.cancel.clone(),
        )
        .in_manner(manner)
        .asked_by(frame.asker, watch);
        let envelope = Envelope {
            call_id: call.id.clone(),
            span,
            tool: entry.tool.spec().name.clone(),
            fingerprint: entry.fingerprint.clone(),
            arguments,
            deadline_ms: deadline.map(epoch_ms),
            policy: run.approvals.policy.as_ref().map(|policy| policy.id.clone()),
            idempotency_key: run.executor.is_remote().then(|| format!("{}/{span}", run.scope.run_id).into()),
            trace: run.trace.clone(),
        };
        _active = run.active.enter(&context, clock);
        guard::run(run, tools, envelope, &context, permit, policy.timeout)
    };
    let outcome = work.await;
    run.scope.store.check()?;
    if let Err(error) = &outcome
        && let Some(limit) = std::error::Error::source(error).and_then(|source| source.downcast_ref())
    {
        run.limit_reached(LimitReached::clone(limit))?;
    }
    if policy.confidential { in_confidence(outcome) } else { outcome }
}

/// Whether the run goes on, and how deep a call of it may be.
fn may_begin(run: &RunInner, frame: &CallFrame<'_>) -> Result<(), ToolError> {
    if run.cancel.is_cancelled() || frame.cancel.is_cancelled() {
        return Err(guard::cancelled());
    }
    // Somebody may go on asking: a flow that catches everything, a client that does not know.
    match run.ended() {
        Some(RunEnd::Terminated { reason }) => {
            return Err(ToolError::fatal(format!("the run was ended by an approver: {reason}")));
        }
        Some(RunEnd::Limit { limit }) => return Err(ToolError::from(limit)),
        _ => {}
    }
    let handoffs = run.outer.as_ref().map_or(0, |outer| outer.handoffs);
    let most = run.max_depth;
    if frame.depth.saturating_add(handoffs) <= most {
        return Ok(());
    }
    let may = if handoffs == 0 {
        "tools may call tools"
    } else {
        "tools and agents may call one another and hand over"
    };
    Err(ToolError::of(ErrorKind::Limit, format!("{may} {most} deep, and this call would be one deeper")))
}

/// Marks what a confidential tool returned or said, wherever it goes from here. What was wrong with the call itself is
/// nobody's secret, and does not come here.
fn in_confidence(outcome: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
    match outcome {
        Ok(output) => Ok(ToolOutput { confidential: true, ..output }),
        Err(error) => Err(error.in_confidence()),
    }
}

/// Gives a call the name of the tool it is for, so that rules about the tool hold however a model wrote the name.
fn to_real_name(entry: &Entry, call: &mut ToolCall) {
    let name = &entry.tool.spec().name;
    if call.name != *name {
        call.name = name.clone();
    }
}

/// [`to_real_name`] for all calls of a message.
pub(crate) fn to_real_names(tools: &Toolset, calls: &mut [ToolCall]) {
    for call in calls {
        if let Ok(entry) = tools.find(&call.name) {
            to_real_name(entry, call);
        }
    }
}

fn output_limit(run: &RunInner, found: &Result<&Entry, ToolError>) -> usize {
    found.as_ref().ok().and_then(|entry| entry.tool.policy().max_output).unwrap_or(run.max_output)
}

fn epoch_ms(deadline: Instant) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = now.saturating_add(deadline.saturating_duration_since(Instant::now()));
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}
