//! The path of one call: parse, find, validate, approve, admit, run, bound, record.
//!
//! A failure here is news for the model, not the end of the run; only fatal errors leave this file as errors.

use std::sync::Arc;

use toolwright_core::{
    CallInfo, CallNote, CancelToken, Entry, Invocation, InvokeOptions, Prepared, ProgressListener, Requester,
    ToolCall, ToolContext, ToolError, ToolOutput, ToolResult, Toolset,
};

use crate::events::EventKind;
use crate::executor::{self, Envelope};
use crate::limits::LimitReached;
use crate::record::{CallFrame, CallRecord};
use crate::run::{AnsweredCall, RunFrame};
use crate::{guard, parse, render};

/// A call from outside: of a model, a program, or the client of a server.
pub(crate) struct ExternalCall<'a> {
    /// What stops the call: the run's signal, or one below it.
    pub(crate) cancel: &'a CancelToken,
    pub(crate) requester: Requester,
    pub(crate) listener: Option<ProgressListener>,
}

impl<'a> ExternalCall<'a> {
    /// A call of the run's own model; one of an agent is on behalf of the same as the call that the agent
    /// answers.
    pub(crate) fn of_model(run: &RunFrame, cancel: &'a CancelToken) -> Self {
        match run.answered_call().cloned() {
            Some(AnsweredCall { requester, listener, .. }) => ExternalCall { cancel, requester, listener },
            None => ExternalCall { cancel, requester: Requester::default(), listener: None },
        }
    }
}

/// Makes one call from outside, with the tools given or those the run has now.
pub(crate) async fn run_external(
    run: &Arc<RunFrame>,
    mut call: ToolCall,
    tools: Option<&Toolset>,
    from: ExternalCall<'_>,
) -> Result<ToolResult, ToolError> {
    let ExternalCall { cancel, requester, listener } = from;
    let tools = match tools {
        Some(tools) => tools.clone(),
        None => run.refresh_tools(cancel).await?,
    };
    let lookup = Lookup::new(&tools, &call);
    let limit = lookup.output_limit(run);
    let id = call.id.clone();
    if let Some(answered) = run.answered_call() {
        call.id = format!("{}.{id}", answered.call_id).into();
    }
    let record = CallRecord::open(run, &call, run.answered_call().map(|answered| answered.span))?;
    let info = CallInfo {
        call_id: call.id.clone(),
        tool: call.name.clone(),
        span: record.span,
        depth: run.depth(),
        deadline: None,
        cancel: cancel.clone(),
        max_output: limit,
        options: InvokeOptions::default(),
        requester,
        listener,
    };
    let outcome = match attempt(run, lookup, &mut call, record.frame(info)).await {
        Err(error) if error.is_fatal() => return Err(record.close_fatal(error)),
        outcome => outcome,
    };
    let mut result = render::result(&call, outcome, limit);
    run.shared.hidden.clean(&mut result);
    record.close(Some(&result))?;
    // The caller knows the call by the id that it was given.
    result.call_id = id;
    Ok(result)
}

/// Makes one call for a tool: the output is whole, and the record names the parent.
pub(crate) async fn run_nested(
    run: &Arc<RunFrame>,
    parent: &ToolContext,
    invocation: Invocation<'_>,
) -> Result<ToolOutput, ToolError> {
    let Invocation { mut call, tools, options } = invocation;
    let tools = tools.cloned().unwrap_or_else(|| run.tools.current());
    let lookup = Lookup::new(&tools, &call);
    let limit = lookup.output_limit(run);
    let record = CallRecord::open(run, &call, Some(parent.span()))?;
    if let Some(text) = &options.hint
        && record.is_kept()
    {
        record.note(CallNote::Hint { text: text.to_string() })?;
    }
    let info = CallInfo {
        call_id: call.id.clone(),
        tool: call.name.clone(),
        span: record.span,
        depth: parent.depth() + 1,
        // A call inside another ends with it, and is told so: a command then hands over what it has in time.
        deadline: parent.deadline().map(|end| end + run.shared.active.waited_for_person(parent.span())),
        cancel: parent.cancel_token().clone(),
        // The parent gets everything.
        max_output: 0,
        options,
        requester: parent.requester().clone(),
        listener: parent.listener().cloned(),
    };
    let outcome = match attempt(run, lookup, &mut call, record.frame(info)).await {
        Err(error) if error.is_fatal() => return Err(record.close_fatal(error)),
        outcome => outcome,
    };
    if record.is_kept() {
        // The record is bounded like a model's result; the parent gets everything.
        let copy = match &outcome {
            Ok(output) => Ok(output.clone()),
            Err(error) => Err(ToolError::from(error.info())),
        };
        record.close(Some(&render::result(&call, copy, limit)))?;
    } else {
        record.close(None)?;
    }
    outcome
}

/// The tools there are, and the one that a call names. It is looked up before the record is opened, because
/// the record of a call is bounded as its tool says.
struct Lookup<'a> {
    tools: &'a Toolset,
    found: Result<&'a Entry, ToolError>,
}

impl<'a> Lookup<'a> {
    fn new(tools: &'a Toolset, call: &ToolCall) -> Self {
        Lookup { tools, found: tools.find(&call.name) }
    }

    fn output_limit(&self, run: &RunFrame) -> usize {
        let own = self.found.as_ref().ok().and_then(|entry| entry.tool.policy().max_output);
        own.unwrap_or(run.shared.max_output)
    }
}

/// The steps in their order. Each one may end the call.
async fn attempt(
    run: &Arc<RunFrame>,
    lookup: Lookup<'_>,
    call: &mut ToolCall,
    frame: CallFrame<'_>,
) -> Result<ToolOutput, ToolError> {
    run.may_call(&frame.info)?;
    let shared = &*run.shared;
    let Lookup { tools, found } = lookup;
    let arguments =
        parse::arguments(call.arguments.take(), found.as_ref().ok().map(|entry| entry.tool.spec()));
    // Unreadable arguments are reported before an unknown name, as the model must correct both anyway.
    let arguments = arguments?;
    let entry = found?;
    to_real_name(entry, call);
    let prepared = entry.prepare(arguments, shared.strictness)?;
    let prepared = shared.approvals.review(run, entry, call, prepared, &frame).await?;
    let Prepared { arguments, description, .. } = prepared;
    let CallFrame { mut info, clock, person } = frame;
    let span = info.span;
    let policy = entry.tool.policy();
    let timeout = info.options.timeout.or(policy.timeout);
    if info.options.hint.is_none()
        && shared.events.wanted()
        && let Some(text) = description.and_then(|description| description.hint)
    {
        shared.events.emit(EventKind::CallNoted { span, note: CallNote::Hint { text } })?;
    }
    let context;
    let _active;
    // What only the beginning needs is gone when the work is waited for.
    let work = {
        let permit = run.limits.admit_call(timeout).map_err(|limit| run.refuse(limit))?;
        let deadline = permit.deadline.as_ref().map(|(deadline, _)| *deadline);
        info.deadline = deadline.into_iter().chain(info.deadline).min();
        info.tool.clone_from(&entry.tool.spec().name);
        let envelope = Envelope {
            call_id: call.id.clone(),
            span,
            tool: info.tool.clone(),
            fingerprint: entry.fingerprint.clone(),
            arguments,
            deadline_ms: info.deadline.map(executor::epoch_ms),
            policy: shared.approvals.policy.as_ref().map(|policy| policy.id.clone()),
            idempotency_key: shared
                .executor
                .is_remote()
                .then(|| format!("{}/{span}", run.scope.run_id).into()),
            trace: shared.trace.clone(),
        };
        let host: Arc<RunFrame> = run.clone();
        context = ToolContext::new(host, info);
        _active = shared.active.enter(&context, clock, person);
        guard::run(run, tools, envelope, &context, permit, timeout)
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

/// Marks what a confidential tool returned or said, wherever it goes from here. What was wrong with the call
/// itself is nobody's secret, and does not come here.
fn in_confidence(outcome: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
    match outcome {
        Ok(output) => Ok(ToolOutput { confidential: true, ..output }),
        Err(error) => Err(error.in_confidence()),
    }
}

/// Gives a call the name of the tool it is for, so that rules about the tool hold however a model wrote the
/// name.
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
