//! A run: tools, policy, limits, state and record, shared by all its calls. `builder` makes it, `dispatch` is how tools
//! and servers reach it.

mod builder;
mod dispatch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use serde::{Deserialize, Serialize};
use toolwright_core::schema::Strictness;
use toolwright_core::{
    Asker, CancelToken, Dispatch, Message, Model, RunScope, ToolCall, ToolContext, ToolError, ToolResult,
    ToolSource, Toolset, Watch,
};

use crate::active::ActiveCalls;
use crate::approval::Approvals;
use crate::conversation::Conversation;
use crate::events::{DeltaListener, EventKind, Events};
use crate::executor::Executor;
use crate::limits::{LimitReached, LimitScope, Limits, Spent};
use crate::state::{RunState, STATE_VERSION};
use crate::turn::{LoopOptions, LoopOutcome, RunError};
use crate::{batch, call, guard};

pub use builder::RunBuilder;

/// How deep tools and agents may call one another or hand over, unless the run says otherwise.
pub const DEFAULT_MAX_DEPTH: u32 = 16;

/// How many calls of one message run at the same time, unless the run says otherwise.
pub const DEFAULT_MAX_PARALLEL: usize = 16;

/// A run. Cloning shares it.
///
/// ```
/// use serde_json::json;
/// use toolwright_core::{ToolCall, ToolDef, ToolSpec, Toolset};
/// use toolwright_runtime::Run;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let hello = ToolDef::dynamic(ToolSpec::new("hello", "Greets."), |_, _| async { "hi" });
/// let run = Run::builder(Toolset::new().with(hello)?).build()?;
/// let result = run.call(ToolCall::new("1", "hello", json!({}))).await?;
/// assert_eq!(result.to_text(), "hi");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Run {
    pub(crate) inner: Arc<RunInner>,
}

pub(crate) struct RunInner {
    me: Weak<RunInner>,
    pub(crate) scope: RunScope,
    own_tools: Toolset,
    sources: Vec<Arc<dyn ToolSource>>,
    tools: RwLock<Toolset>,
    pub(crate) approvals: Approvals,
    /// True when a person makes the calls, and not a model.
    pub(crate) by_person: bool,
    pub(crate) limits: LimitScope,
    pub(crate) executor: Arc<dyn Executor>,
    /// What goes with each call to where it is done.
    pub(crate) trace: BTreeMap<String, String>,
    pub(crate) events: Arc<Events>,
    pub(crate) cancel: CancelToken,
    pub(crate) strictness: Strictness,
    pub(crate) max_output: usize,
    pub(crate) max_depth: u32,
    pub(crate) max_parallel: usize,
    pub(crate) active: ActiveCalls,
    end: Mutex<Option<RunEnd>>,
    /// The run an agent works in, when this is the agent's.
    pub(crate) outer: Option<Outer>,
}

/// Where the run of an agent stands.
pub(crate) struct Outer {
    run: Arc<RunInner>,
    agent: Arc<str>,
    /// The call the agent answers; none when it has the conversation to itself.
    pub(crate) span: Option<u64>,
    /// That call's id: those of the agent's calls begin with it.
    pub(crate) call_id: Option<Arc<str>>,
    /// How deep its calls are.
    pub(crate) depth: u32,
    /// How many agents around it, itself included, were handed the conversation: each works inside the loop of the one
    /// that had it.
    pub(crate) handoffs: u32,
    /// Who asked for that call.
    pub(crate) asker: Asker,
    /// Who follows it.
    pub(crate) watch: Option<Watch>,
    /// Whether its messages are those of the conversation, and go on record as such.
    heard: bool,
}

/// What the run of an agent has of its own.
pub(crate) struct Part {
    pub(crate) agent: Arc<str>,
    pub(crate) tools: Toolset,
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) limits: Limits,
}

/// Lets tools of this crate find the run they work in.
struct Handle(Weak<RunInner>);

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RunEnd {
    /// The work was done.
    Done,
    /// A limit was reached; the transcript is complete.
    Limit {
        /// Which, and how far.
        #[serde(flatten)]
        limit: crate::limits::LimitReached,
    },
    /// An approver ended it.
    Terminated {
        /// Why.
        reason: String,
    },
    /// It was cancelled from outside.
    Cancelled,
    /// Something broke.
    Failed {
        /// What.
        message: String,
    },
}

impl Run {
    /// A run with these tools, no policy, no limits and no record, until the builder is told otherwise.
    pub fn builder(tools: Toolset) -> RunBuilder {
        RunBuilder::new(tools)
    }

    /// The run's id.
    pub fn id(&self) -> &Arc<str> {
        &self.inner.scope.run_id
    }

    /// Makes one call. An error here ends the run; what the model should know is in the result.
    pub async fn call(&self, call: ToolCall) -> Result<ToolResult, ToolError> {
        call::run_call(&self.inner, call, None, &self.inner.cancel).await
    }

    /// Makes all calls of one assistant message; the results are in the order of the calls.
    pub async fn call_all(&self, calls: Vec<ToolCall>) -> Result<Vec<ToolResult>, ToolError> {
        batch::run_batch(&self.inner, calls, &[], &self.inner.cancel).await
    }

    /// Like [`call_all`](Self::call_all); after one of the `fail_fast` tools failed, its later calls are skipped.
    pub async fn call_all_failing_fast(
        &self,
        calls: Vec<ToolCall>,
        fail_fast: &[String],
    ) -> Result<Vec<ToolResult>, ToolError> {
        batch::run_batch(&self.inner, calls, fail_fast, &self.inner.cancel).await
    }

    /// The run that makes the call of `context`, for tools that work with a run of their own inside it.
    pub(crate) fn of(context: &ToolContext) -> Result<Run, ToolError> {
        let handle = context.state::<Handle>().map_err(|_| {
            ToolError::fatal("the call belongs to no run, so no agent can work in it")
                .hint("make the call through a `Run`; a context from `ToolContext::detached` has none")
        })?;
        let inner = handle.0.upgrade().ok_or_else(|| ToolError::fatal("the run is gone"))?;
        Ok(Run { inner })
    }

    /// A run inside this one for an agent: other tools and its own limits within these; the same policy, approvers,
    /// sandboxes, state, executor and record. It answers the call of `context`, or has the conversation to itself.
    pub(crate) fn nested(&self, part: Part, context: Option<&ToolContext>) -> Run {
        let cancel = context.map_or(&self.inner.cancel, ToolContext::cancel_token);
        self.nest(part, context, cancel, true)
    }

    /// Like [`nested`](Self::nested), for an agent that works until `stop` fires, and whose messages somebody else puts on
    /// record.
    pub(crate) fn nested_unheard(&self, part: Part, stop: &CancelToken) -> Run {
        self.nest(part, None, stop, false)
    }

    fn nest(&self, part: Part, context: Option<&ToolContext>, cancel: &CancelToken, heard: bool) -> Run {
        let Part { agent, tools, sources, limits } = part;
        let outer = &self.inner;
        let cancel = cancel.child_token();
        let around = outer.outer.as_ref();
        let depth = context.map_or(around.map_or(0, |around| around.depth), |context| context.depth() + 1);
        let handoffs = around.map_or(0, |around| around.handoffs) + u32::from(!heard);
        let inner = Arc::new_cyclic(|me: &Weak<RunInner>| RunInner {
            me: me.clone(),
            scope: outer.scope.clone().with_state(Handle(me.clone())),
            own_tools: tools.clone(),
            sources,
            tools: RwLock::new(tools),
            approvals: outer.approvals.clone(),
            by_person: false,
            limits: outer.limits.nested(limits),
            executor: outer.executor.clone(),
            trace: outer.trace.clone(),
            events: outer.events.clone(),
            cancel,
            strictness: outer.strictness,
            max_output: outer.max_output,
            max_depth: outer.max_depth,
            max_parallel: outer.max_parallel,
            active: outer.active.clone(),
            end: Mutex::default(),
            outer: Some(Outer {
                run: outer.clone(),
                agent,
                span: context.map(ToolContext::span).or(around.and_then(|around| around.span)),
                call_id: match context {
                    Some(context) => Some(context.call_id().clone()),
                    None => around.and_then(|around| around.call_id.clone()),
                },
                depth,
                handoffs,
                asker: match context {
                    Some(context) => context.asker().clone(),
                    None => around.map(|around| around.asker.clone()).unwrap_or_default(),
                },
                watch: match context {
                    Some(context) => context.watch().cloned(),
                    None => around.and_then(|around| around.watch.clone()),
                },
                heard,
            }),
        });
        Run { inner }
    }

    /// The tools as they are now; those of sources are asked for, unless the run has ended.
    pub async fn tools(&self) -> Result<Toolset, ToolError> {
        self.inner.refresh_tools(&self.inner.cancel).await
    }

    /// Lets a model work with the run's tools until it is done; see [`LoopOptions`]. For a conversation that goes on after
    /// that, see [`Conversation`].
    pub async fn generate_loop(
        &self,
        model: &dyn Model,
        messages: Vec<Message>,
        options: &LoopOptions,
    ) -> Result<LoopOutcome, RunError> {
        let mut conversation = Conversation::new(self).with_loop(options.clone());
        messages.into_iter().for_each(|message| conversation.push(message));
        let end = conversation.answer(model).await.inspect_err(|error| {
            self.inner.end(RunEnd::Failed { message: error.to_string() });
        })?;
        let pending = if end.is_none() { conversation.pending() } else { Vec::new() };
        Ok(LoopOutcome { messages: conversation.into_messages(), pending, end })
    }

    /// What was spent so far.
    pub fn spent(&self) -> Spent {
        self.inner.limits.spent()
    }

    /// The account of the run, for nested limits.
    pub fn limits(&self) -> &LimitScope {
        &self.inner.limits
    }

    /// Stops every call of the run, and makes later ones fail.
    pub fn cancel(&self) {
        self.inner.end(RunEnd::Cancelled);
        self.inner.cancel.cancel();
    }

    /// Stops the calls with that id; says whether there was one. Calls that tools make stop with theirs.
    pub fn cancel_call(&self, call_id: &str) -> bool {
        self.inner.cancel(call_id)
    }

    /// The ids of the calls under way.
    pub fn active_calls(&self) -> Vec<Arc<str>> {
        self.inner.active.ids()
    }

    /// How the run ended, if it has.
    pub fn ended(&self) -> Option<RunEnd> {
        self.inner.ended()
    }

    /// Ends the run and records it. Later ends are ignored: the first reason is the true one.
    pub fn finish(&self, end: RunEnd) -> Result<RunEnd, ToolError> {
        let end = self.inner.end(end);
        self.inner.cancel.cancel();
        self.inner.events.emit(EventKind::RunFinished { end: end.clone() })?;
        Ok(end)
    }

    /// The run as one value, for another process to take up. An error when what a tool keeps in the store is no JSON.
    pub fn state(&self, messages: Vec<Message>, pending: Vec<ToolCall>) -> Result<RunState, ToolError> {
        Ok(RunState {
            version: STATE_VERSION,
            run_id: self.id().to_string(),
            messages,
            pending,
            spent: self.spent(),
            store: self.inner.scope.store.save()?,
        })
    }

    /// Puts a message on record.
    pub(crate) fn record(&self, message: &Message) -> Result<(), ToolError> {
        if !self.inner.events.wanted() {
            return Ok(());
        }
        let message = message.clone();
        self.inner.events.emit(match &self.inner.outer {
            Some(Outer { heard: false, .. }) => return Ok(()),
            Some(Outer { agent, span: Some(span), .. }) => {
                EventKind::AgentMessage { span: *span, agent: agent.clone(), message }
            }
            _ => EventKind::MessageAdded { message },
        })
    }

    /// The door for the MCP server and everything else that is not the model loop.
    pub fn dispatch(&self) -> Arc<dyn Dispatch> {
        self.inner.clone()
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("id", self.id()).finish_non_exhaustive()
    }
}

impl RunInner {
    pub(crate) fn end(&self, end: RunEnd) -> RunEnd {
        // An approver who ends the run means all of it.
        if let (RunEnd::Terminated { .. }, Some(outer)) = (&end, &self.outer) {
            outer.run.end(end.clone());
        }
        let mut slot = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert(end).clone()
    }

    /// Ends the run at a limit. That is written before it holds: a run whose record cannot be kept has failed.
    pub(crate) fn limit_reached(&self, limit: LimitReached) -> Result<(), ToolError> {
        let written = self.events.emit(EventKind::LimitHit { limit: limit.clone() });
        self.end(match &written {
            Ok(()) => RunEnd::Limit { limit },
            Err(error) => RunEnd::Failed { message: error.message().to_owned() },
        });
        written
    }

    /// Ends the run at a limit, with the error for whoever ran into it.
    pub(crate) fn refuse(&self, limit: LimitReached) -> ToolError {
        self.limit_reached(limit.clone()).err().unwrap_or_else(|| limit.into())
    }

    pub(crate) fn ended(&self) -> Option<RunEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Who receives what the model says while it comes. What an agent says while it answers a call is not the answer of the
    /// conversation.
    pub(crate) fn listeners(&self) -> &[DeltaListener] {
        let inside = self.outer.as_ref().is_some_and(|outer| outer.span.is_some());
        if inside { &[] } else { &self.events.deltas }
    }

    pub(crate) fn current_tools(&self) -> Toolset {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the sources for their tools, until the run ends or `cancel` fires: then the tools are those there were, and no
    /// call of them is made any more. Without sources this is only a look at the set.
    pub(crate) async fn refresh_tools(&self, cancel: &CancelToken) -> Result<Toolset, ToolError> {
        if self.sources.is_empty() {
            return Ok(self.current_tools());
        }
        let mut tools = self.own_tools.clone();
        for source in &self.sources {
            let whose = format!("the source of tools `{}`", source.name());
            let asking = guard::caught(&whose, async { source.tools().await });
            let deadline = match self.limits.deadline(None) {
                Ok(deadline) => deadline,
                Err(limit) => {
                    if self.ended().is_none() {
                        self.limit_reached(limit)?;
                    }
                    return Ok(self.current_tools());
                }
            };
            let Ok(found) = guard::unless_stopped(self, cancel, deadline, asking).await else {
                return Ok(self.current_tools());
            };
            tools = tools.combined(found??)?;
        }
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = tools.clone();
        Ok(tools)
    }

    pub(crate) fn host(&self) -> Result<Arc<RunInner>, ToolError> {
        self.me.upgrade().ok_or_else(|| ToolError::fatal("the run is gone"))
    }
}

impl From<crate::approval::PolicyError> for ToolError {
    fn from(error: crate::approval::PolicyError) -> Self {
        ToolError::fatal(error.to_string()).with_source(error)
    }
}
