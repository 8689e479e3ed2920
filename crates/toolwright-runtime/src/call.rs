//! The path of one call: parse, find, validate, approve, admit, run, bound, record.
//!
//! A failure here is news for the model, not the end of the run; only fatal errors leave this file as errors.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use toolwright_core::{
    Asker, CallNote, CancelToken, Entry, ErrorInfo, ErrorKind, Manner, Prepared, ToolCall, ToolContext,
    ToolError, ToolOutput, ToolResult, Toolset, Watch,
};

use crate::events::EventKind;
use crate::executor::Envelope;
use crate::limits::LimitReached;
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
    let mut record = Record::open(run, &call, outer_span)?;
    let tools = (&tools, found);
    let outcome = attempt(run, tools, &mut call, &mut record, Caller::Outside(from)).await;
    let outcome = match outcome {
        Err(error) if error.is_fatal() => return Err(record.close_fatal(error)),
        outcome => outcome,
    };
    let mut result = render::result(&call, outcome, limit);
    record.close(Some(&result), result.error.as_ref())?;
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
    let mut record = Record::open(run, &call, Some(parent.span()))?;
    if let Some(text) = &manner.hint
        && run.events.wanted()
    {
        let note = CallNote::Hint { text: text.to_string() };
        run.events.emit(EventKind::CallNoted { span: record.span, note })?;
    }
    let tools = (&tools, found);
    let outcome = attempt(run, tools, &mut call, &mut record, Caller::Tool(parent, manner)).await;
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
        record.close(Some(&result), result.error.as_ref())?;
    } else {
        record.close(None, None)?;
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

/// Where a call stands, for those who decide about it.
pub(crate) struct Standing<'a> {
    pub(crate) span: u64,
    pub(crate) depth: u32,
    pub(crate) cancel: &'a CancelToken,
    pub(crate) asker: Asker,
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
    record: &mut Record<'_>,
    caller: Caller<'_>,
) -> Result<ToolOutput, ToolError> {
    let span = record.span;
    let (standing, manner, watch, parents_end) = match caller {
        Caller::Outside(Outside { cancel, asker, watch }) => {
            let depth = run.outer.as_ref().map_or(0, |outer| outer.depth);
            (Standing { span, depth, cancel, asker }, Manner::default(), watch, None)
        }
        Caller::Tool(parent, manner) => {
            let (depth, cancel, asker) = (parent.depth() + 1, parent.cancel_token(), parent.asker().clone());
            let watch = parent.watch().cloned();
            (Standing { span, depth, cancel, asker }, manner, watch, parent.deadline())
        }
    };
    may_begin(run, &standing)?;
    let (tools, found) = tools;
    let arguments =
        parse::arguments(call.arguments.take(), found.as_ref().ok().map(|entry| entry.tool.spec()));
    // Unreadable arguments are reported before an unknown name, as the model must mend both anyway.
    let arguments = arguments?;
    let entry = found?;
    to_real_name(entry, call);
    let prepared = entry.prepare(arguments, run.strictness)?;
    record.pause();
    let prepared = run.approvals.review(run, entry, call, prepared, &standing).await?;
    record.go_on();
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
            standing.depth,
            deadline,
            standing.cancel.clone(),
        )
        .in_manner(manner)
        .asked_by(standing.asker, watch);
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
        _active = Active::enter(run, span, &context);
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
fn may_begin(run: &RunInner, standing: &Standing<'_>) -> Result<(), ToolError> {
    if run.cancel.is_cancelled() || standing.cancel.is_cancelled() {
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
    if standing.depth.saturating_add(handoffs) <= most {
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

/// Keeps a call in the list of calls under way, where it can be cancelled.
pub(crate) struct Active<'a> {
    run: &'a RunInner,
    span: u64,
}

impl<'a> Active<'a> {
    pub(crate) fn enter(run: &'a RunInner, span: u64, context: &ToolContext) -> Self {
        run.active().insert(span, context.clone());
        Active { run, span }
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.run.active().remove(&self.span);
        self.run.give_up_waits(self.span);
    }
}

/// The record of one call: opened once, closed once, whatever happens in between.
struct Record<'a> {
    run: &'a RunInner,
    span: u64,
    /// The call that made this one.
    parent: Option<u64>,
    /// When it began; nobody who listens, nobody who asks.
    started: Option<Instant>,
    /// Since when somebody thinks about it, and when somebody did: a person who is away is no work of the tool's.
    paused: Option<Instant>,
    asked: Option<Asked>,
    open: bool,
}

impl<'a> Record<'a> {
    fn open(run: &'a RunInner, call: &ToolCall, parent: Option<u64>) -> Result<Self, ToolError> {
        let span = run.events.new_span();
        let wanted = run.events.wanted();
        if wanted {
            run.events.emit(EventKind::CallStarted {
                span,
                parent,
                call_id: call.id.clone(),
                tool: call.name.clone(),
                arguments: call.arguments.clone(),
            })?;
        }
        let started = wanted.then(Instant::now);
        Ok(Record { run, span, parent, started, paused: None, asked: None, open: true })
    }

    /// The time until [`go_on`](Self::go_on) does not count.
    fn pause(&mut self) {
        self.paused = self.started.map(|_| Instant::now());
    }

    fn go_on(&mut self) {
        self.asked = self.paused.take().map(|since| (since, Instant::now())).or(self.asked);
    }

    fn close(&mut self, result: Option<&ToolResult>, error: Option<&ErrorInfo>) -> Result<(), ToolError> {
        match self.started {
            Some(_) => self.finish(result.cloned(), error.cloned(), false),
            None => self.finish(None, None, false),
        }
    }

    fn close_fatal(mut self, error: ToolError) -> ToolError {
        self.run.end(RunEnd::Failed { message: error.message().to_owned() });
        match self.finish(None, Some(error.info()), false) {
            Ok(()) => error,
            Err(unrecorded) => unrecorded,
        }
    }

    fn finish(
        &mut self,
        result: Option<ToolResult>,
        error: Option<ErrorInfo>,
        interrupted: bool,
    ) -> Result<(), ToolError> {
        self.open = false;
        let Some(started) = self.started else { return Ok(()) };
        self.go_on();
        let duration = started.elapsed().saturating_sub(self.waited());
        self.run.events.emit(EventKind::CallFinished {
            span: self.span,
            result,
            error,
            duration,
            interrupted,
        })
    }
}

impl Record<'_> {
    /// How long somebody thought about the call, and about those inside it; questions that were open at the same time count
    /// once. The calls around it are taken to wait meanwhile: one that makes several at the same time can come out shorter than
    /// a call inside it that worked on.
    fn waited(&self) -> Duration {
        let own = self.asked.map(|(from, to)| to.duration_since(from)).unwrap_or_default();
        let mut all = self.run.events.asked_inside(self.span);
        let waited = if all.is_empty() {
            own
        } else {
            all.extend(self.asked);
            together(&mut all)
        };
        if let Some(parent) = self.parent.filter(|_| waited >= NOTICED) {
            if all.is_empty() {
                all.extend(self.asked);
            }
            // One that is over has been told of.
            if self.run.active().contains_key(&parent) {
                self.run.events.note_asked(parent, all);
            }
        }
        waited
    }
}

/// From when until when somebody was asked.
pub(crate) type Asked = (Instant, Instant);

/// The shortest time that a person thinks; rules take less.
const NOTICED: Duration = Duration::from_millis(1);

/// How long at least one of them was going on.
fn together(times: &mut [Asked]) -> Duration {
    times.sort_unstable();
    let (mut sum, mut end) = (Duration::ZERO, None);
    for (from, to) in times.iter().copied() {
        sum += to.saturating_duration_since(end.map_or(from, |end: Instant| end.max(from)));
        end = end.max(Some(to));
    }
    sum
}

impl Drop for Record<'_> {
    /// The caller went away, or a panic passed through: the record is closed all the same.
    fn drop(&mut self) {
        if self.open {
            let error = ErrorInfo {
                kind: ErrorKind::Cancelled,
                message: "the caller stopped waiting for the call".to_owned(),
                hint: None,
            };
            let recorded = self.finish(None, Some(error), true);
            if let Err(error) = recorded {
                self.run.end(RunEnd::Failed { message: error.message().to_owned() });
            }
        }
    }
}
