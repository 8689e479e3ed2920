//! A run: tools, policy, limits, state and record, built once and shared by all its calls.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use serde::{Deserialize, Serialize};
use toolwright_core::schema::Strictness;
use toolwright_core::{
    Approver, BoxFuture, CallNote, CancelToken, Dispatch, Manner, Message, Model, ModelDelta, ModelReply,
    ModelRequest, RunScope, Sandbox, Secret, Store, ToolCall, ToolContext, ToolError, ToolOutput, ToolResult,
    ToolSource, ToolSpec, Toolset, Watch,
};

use crate::approval::{Approvals, Policy};
use crate::conversation::Conversation;
use crate::events::{DeltaListener, EventKind, EventSink, Events, FORMAT_VERSION, ToolStamp};
use crate::executor::{Executor, LocalExecutor};
use crate::limits::{Deadline, LimitScope, Limits, Spent};
use crate::redact::Redactor;
use crate::render::DEFAULT_MAX_OUTPUT;
use crate::state::{RunState, STATE_VERSION};
use crate::transcript::{Durability, TranscriptError, TranscriptWriter};
use crate::turn::{Loop, LoopOutcome, RunError};
use crate::{ask, batch, call, guard};

/// How deep tools may call tools, unless the run says otherwise.
pub const DEFAULT_MAX_DEPTH: u32 = 16;

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
    pub(crate) limits: LimitScope,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) events: Arc<Events>,
    pub(crate) cancel: CancelToken,
    pub(crate) strictness: Strictness,
    pub(crate) max_output: usize,
    pub(crate) max_depth: u32,
    /// Calls under way, so that one can be cancelled by its id.
    active: Arc<Mutex<Calls>>,
    /// Who wants to be told what happens inside a call, by its id.
    watches: Arc<Mutex<HashMap<Arc<str>, Watch>>>,
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
    /// How deep its calls are.
    pub(crate) depth: u32,
    /// Whether its messages are those of the conversation, and go on record as such.
    heard: bool,
}

/// Lets tools of this crate find the run they work in.
struct Handle(Weak<RunInner>);

/// Contexts of calls by their spans, which are numbers of our own, so a fixed hash will do.
pub(crate) type Calls = HashMap<u64, ToolContext, foldhash::fast::FixedState>;

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
        RunBuilder {
            tools,
            sources: Vec::new(),
            scope: RunScope::new(new_run_id()),
            approvals: Approvals::default(),
            limits: Limits::default(),
            parent_limits: None,
            spent: Spent::default(),
            executor: Arc::new(LocalExecutor),
            sinks: Vec::new(),
            deltas: Vec::new(),
            labels: BTreeMap::new(),
            transcript: None,
            cancel: CancelToken::new(),
            strictness: Strictness::default(),
            max_output: DEFAULT_MAX_OUTPUT,
            max_depth: DEFAULT_MAX_DEPTH,
        }
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
        let handle = context.state::<Handle>()?;
        let inner = handle.0.upgrade().ok_or_else(|| ToolError::fatal("the run is gone"))?;
        Ok(Run { inner })
    }

    /// A run inside this one for an agent: other tools and its own limits within these; the same policy, approver,
    /// sandboxes, state, executor and record. It answers the call of `context`, or has the conversation to itself.
    pub(crate) fn nested(
        &self,
        agent: &Arc<str>,
        tools: Toolset,
        limits: Limits,
        context: Option<&ToolContext>,
    ) -> Run {
        self.nest(agent, tools, limits, context, true)
    }

    /// Like [`nested`](Self::nested), for an agent whose messages somebody else puts on record.
    pub(crate) fn nested_unheard(&self, agent: &Arc<str>, tools: Toolset, limits: Limits) -> Run {
        self.nest(agent, tools, limits, None, false)
    }

    fn nest(
        &self,
        agent: &Arc<str>,
        tools: Toolset,
        limits: Limits,
        context: Option<&ToolContext>,
        heard: bool,
    ) -> Run {
        let outer = &self.inner;
        let cancel = context.map_or(&outer.cancel, ToolContext::cancel_token).child_token();
        let depth = context
            .map_or(outer.outer.as_ref().map_or(0, |outer| outer.depth), |context| context.depth() + 1);
        let inner = Arc::new_cyclic(|me: &Weak<RunInner>| RunInner {
            me: me.clone(),
            scope: outer.scope.clone().with_state::<Handle>(Handle(me.clone())),
            own_tools: tools.clone(),
            sources: Vec::new(),
            tools: RwLock::new(tools),
            approvals: outer.approvals.clone(),
            limits: outer.limits.nested(limits),
            executor: outer.executor.clone(),
            events: outer.events.clone(),
            cancel,
            strictness: outer.strictness,
            max_output: outer.max_output,
            max_depth: outer.max_depth,
            active: outer.active.clone(),
            watches: outer.watches.clone(),
            end: Mutex::default(),
            outer: Some(Outer {
                run: outer.clone(),
                agent: agent.clone(),
                span: context.map(ToolContext::span).or(outer.outer.as_ref().and_then(|outer| outer.span)),
                depth,
                heard,
            }),
        });
        Run { inner }
    }

    /// The tools as they are now; those of sources are asked for.
    pub async fn tools(&self) -> Result<Toolset, ToolError> {
        self.inner.refresh_tools().await
    }

    /// Lets a model work with the run's tools until it is done; see [`Loop`]. For a conversation that goes on after
    /// that, see [`Conversation`].
    pub async fn generate_loop(
        &self,
        model: &dyn Model,
        messages: Vec<Message>,
        how: &Loop,
    ) -> Result<LoopOutcome, RunError> {
        let mut conversation = Conversation::new(self).going(how.clone());
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

    /// Stops the calls with that id; says whether there was one.
    pub fn cancel_call(&self, call_id: &str) -> bool {
        self.inner.cancel(call_id)
    }

    /// The ids of the calls under way.
    pub fn active_calls(&self) -> Vec<Arc<str>> {
        self.inner.active().values().map(|context| context.call_id().clone()).collect()
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

    /// The run as one value, for another process to take up.
    pub fn state(&self, messages: Vec<Message>, pending: Vec<ToolCall>) -> RunState {
        RunState {
            version: STATE_VERSION,
            run_id: self.id().to_string(),
            messages,
            pending,
            spent: self.spent(),
            store: self.inner.scope.store.save(),
        }
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

    pub(crate) fn ended(&self) -> Option<RunEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn active(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watches(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn current_tools(&self) -> Toolset {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the sources for their tools. Without sources this is only a look at the set.
    pub(crate) async fn refresh_tools(&self) -> Result<Toolset, ToolError> {
        if self.sources.is_empty() {
            return Ok(self.current_tools());
        }
        let mut tools = self.own_tools.clone();
        for source in &self.sources {
            tools = tools.combined(source.tools().await?)?;
        }
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = tools.clone();
        Ok(tools)
    }

    /// Waits for what is not a call, such as a person or a model, unless it is cancelled or the time is up first.
    pub(crate) async fn unless_stopped<T>(
        &self,
        cancel: &CancelToken,
        deadline: Option<Deadline>,
        work: impl Future<Output = T>,
    ) -> Result<T, ToolError> {
        let (end, limit) = deadline.map_or((None, None), |(end, limit)| (Some(end), limit));
        let time_is_up = async {
            match end {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = cancel.cancelled() => Err(guard::cancelled()),
            () = time_is_up => Err(match limit {
                Some(limit) => {
                    call::limit_reached(self, &limit);
                    limit.into()
                }
                None => guard::cancelled(),
            }),
        }
    }

    pub(crate) fn host(&self) -> Result<Arc<RunInner>, ToolError> {
        self.me.upgrade().ok_or_else(|| ToolError::fatal("the run is gone"))
    }
}

impl Dispatch for RunInner {
    fn scope(&self) -> &RunScope {
        &self.scope
    }

    fn specs(&self) -> Vec<ToolSpec> {
        self.current_tools().specs()
    }

    fn dispatch<'a>(&'a self, call: ToolCall) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move { call::run_call(&self.host()?, call, None, &self.cancel).await })
    }

    fn dispatch_watched<'a>(
        &'a self,
        call: ToolCall,
        watch: Watch,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let _watched = Watched::enter(self, call.id.clone(), watch);
            call::run_call(&self.host()?, call, None, &self.cancel).await
        })
    }

    fn cancel(&self, call_id: &str) -> bool {
        let active = self.active();
        let found: Vec<ToolContext> =
            active.values().filter(|context| **context.call_id() == *call_id).cloned().collect();
        drop(active);
        found.iter().for_each(ToolContext::stop);
        !found.is_empty()
    }

    fn invoke<'a>(
        &'a self,
        parent: &'a ToolContext,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { call::run_nested(&self.host()?, None, call, parent, Manner::default()).await })
    }

    fn invoke_in<'a>(
        &'a self,
        parent: &'a ToolContext,
        tools: &'a Toolset,
        call: ToolCall,
        manner: Manner,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { call::run_nested(&self.host()?, Some(tools), call, parent, manner).await })
    }

    fn ask<'a>(
        &'a self,
        context: &'a ToolContext,
        model: &'a dyn Model,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ToolError>> {
        Box::pin(ask::ask(self, context, model, request))
    }

    fn note(&self, context: &ToolContext, note: CallNote) {
        if let CallNote::RateLimited { wait } | CallNote::Retry { wait, .. } = &note {
            self.limits.waited(*wait);
        }
        let watch = self.watches().get(context.call_id()).cloned();
        if let Some(watch) = watch {
            watch(&note);
        }
        // A note that cannot be recorded ends the run; the call itself learns of it through the cancel.
        if let Err(error) = self.events.emit(EventKind::CallNoted { span: context.span(), note }) {
            self.end(RunEnd::Failed { message: error.message().to_owned() });
            self.cancel.cancel();
        }
    }
}

/// Keeps a watch for as long as its call runs.
struct Watched<'a> {
    run: &'a RunInner,
    call_id: Arc<str>,
}

impl<'a> Watched<'a> {
    fn enter(run: &'a RunInner, call_id: Arc<str>, watch: Watch) -> Self {
        run.watches().insert(call_id.clone(), watch);
        Watched { run, call_id }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.run.watches().remove(&self.call_id);
    }
}

/// Builds a [`Run`].
pub struct RunBuilder {
    tools: Toolset,
    sources: Vec<Arc<dyn ToolSource>>,
    scope: RunScope,
    approvals: Approvals,
    limits: Limits,
    parent_limits: Option<LimitScope>,
    spent: Spent,
    executor: Arc<dyn Executor>,
    sinks: Vec<Arc<dyn EventSink>>,
    deltas: Vec<DeltaListener>,
    labels: BTreeMap<String, String>,
    transcript: Option<TranscriptWriter>,
    cancel: CancelToken,
    strictness: Strictness,
    max_output: usize,
    max_depth: u32,
}

impl RunBuilder {
    /// Names the run; otherwise it gets a name of its own.
    #[must_use]
    pub fn id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.scope.run_id = id.into();
        self
    }

    /// The id the run will have.
    pub fn run_id(&self) -> &Arc<str> {
        &self.scope.run_id
    }

    /// Adds tools that are found at run time.
    #[must_use]
    pub fn source(mut self, source: impl ToolSource + 'static) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Decides about calls by these rules.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.approvals.policy = Some(Arc::new(policy));
        self
    }

    /// Asks this approver when the policy says so. Without a policy, every call is asked about.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approvals.approver = Some(Arc::new(approver));
        self
    }

    /// Limits what the run may spend.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes the run spend from another run's account too.
    #[must_use]
    pub fn within(mut self, account: &LimitScope) -> Self {
        self.parent_limits = Some(account.clone());
        self
    }

    /// Gives tools access to a value; see [`ToolContext::state`].
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, state: impl Into<Arc<T>>) -> Self {
        self.scope = self.scope.with_state(state);
        self
    }

    /// Adds a sandbox; the first is the default.
    #[must_use]
    pub fn sandbox(mut self, name: impl Into<String>, sandbox: Arc<dyn Sandbox>) -> Self {
        self.scope.sandboxes.insert(name.into(), sandbox);
        self
    }

    /// Gives tools a model to ask.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.scope.model = Some(model);
        self
    }

    /// Runs the calls elsewhere.
    #[must_use]
    pub fn executor(mut self, executor: impl Executor + 'static) -> Self {
        self.executor = Arc::new(executor);
        self
    }

    /// Hands every event to a sink, for example a closure.
    #[must_use]
    pub fn on_event(mut self, sink: impl EventSink + 'static) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }

    /// Hears the model's answers while they come; the model is then asked to stream. Pieces come in order, on the task
    /// that waits for the answer, before the event of the whole message. Must be quick.
    #[must_use]
    pub fn on_delta(mut self, listener: impl Fn(ModelDelta<'_>) + Send + Sync + 'static) -> Self {
        self.deltas.push(Arc::new(listener));
        self
    }

    /// Says in the record what the run is about, for whoever looks through runs.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Records the run in a file, without the given secrets. A file that is there already is continued.
    pub fn transcript(
        mut self,
        path: &Path,
        secrets: impl IntoIterator<Item = Secret>,
        durability: Durability,
    ) -> Result<Self, TranscriptError> {
        self.transcript = Some(TranscriptWriter::open(path, Redactor::new(secrets))?.durability(durability));
        Ok(self)
    }

    /// Accepts only arguments that the schemas accept as they are.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strictness = Strictness::Strict;
        self
    }

    /// Bounds each result to so many bytes of text, unless the tool says otherwise; 0 means no bound.
    #[must_use]
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    /// Lets tools call tools at most so deep.
    #[must_use]
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.max_depth = depth;
        self
    }

    /// Stops the run when this token is cancelled.
    #[must_use]
    pub fn cancel_token(mut self, token: &CancelToken) -> Self {
        self.cancel = token.child_token();
        self
    }

    /// Goes on from the state of another process.
    #[must_use]
    pub fn resume(mut self, state: &RunState) -> Self {
        self.scope.run_id = state.run_id.as_str().into();
        self.scope.store = Store::restore(state.store.clone());
        self.spent = state.spent.clone();
        self
    }

    /// Builds the run. An error when the first event cannot be recorded.
    pub fn build(self) -> Result<Run, ToolError> {
        let mut sinks = self.sinks;
        let (mut first_seq, mut first_span) = (0, 0);
        if let Some(transcript) = self.transcript {
            (first_seq, first_span) = (transcript.next_seq(), transcript.next_span());
            sinks.insert(0, Arc::new(transcript));
        }
        let mut approvals = self.approvals;
        if approvals.approver.is_some() && approvals.policy.is_none() {
            approvals.policy = Some(Arc::new(Policy::new([])?));
        }
        let limits = LimitScope::resumed(self.limits, &self.spent, self.parent_limits);
        let inner = Arc::new_cyclic(|me: &Weak<RunInner>| RunInner {
            me: me.clone(),
            scope: self.scope.with_state::<Handle>(Handle(me.clone())),
            own_tools: self.tools.clone(),
            sources: self.sources,
            tools: RwLock::new(self.tools),
            approvals,
            limits,
            executor: self.executor,
            events: Arc::new(Events::new(sinks, self.deltas, first_seq, first_span)),
            cancel: self.cancel,
            strictness: self.strictness,
            max_output: self.max_output,
            max_depth: self.max_depth,
            active: Arc::default(),
            watches: Arc::default(),
            end: Mutex::default(),
            outer: None,
        });
        let stamps = inner.current_tools();
        let stamps = stamps.iter().map(|entry| ToolStamp {
            name: entry.tool.spec().name.clone(),
            fingerprint: entry.fingerprint.clone(),
        });
        inner.events.emit(EventKind::RunStarted {
            version: FORMAT_VERSION,
            run_id: inner.scope.run_id.clone(),
            labels: self.labels,
            tools: stamps.collect(),
        })?;
        Ok(Run { inner })
    }
}

impl From<crate::approval::PolicyError> for ToolError {
    fn from(error: crate::approval::PolicyError) -> Self {
        ToolError::fatal(error.to_string()).with_source(error)
    }
}

/// An id that sorts by time and does not repeat: the time in microseconds and the process.
fn new_run_id() -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{:013x}-{:x}-{count:x}", since.as_micros(), std::process::id())
}
