//! What is said about a run before it begins.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toolwright_core::schema::Strictness;
use toolwright_core::{
    Approver, CancelToken, DynModel, DynPerson, DynSandbox, Error, ModelDelta, Preparation, RunScope, Secret,
    Store, ToolError, ToolSource, Toolset, ToolsetError,
};

use super::frame::{RunFrame, RunOptions, RunShared};
use super::tools::RunTools;
use super::{DEFAULT_MAX_DEPTH, DEFAULT_MAX_PARALLEL, Run};
use crate::active::ActiveCalls;
use crate::approval::{Approvals, ModelLookup, Policy, Reviewer};
use crate::events::{DeltaListener, EventKind, EventSink, Events, FORMAT_VERSION, ToolStamp};
use crate::executor::{ErasedExecutor, Executor, LocalExecutor};
use crate::hidden::HiddenSecrets;
use crate::limits::{LimitScope, RunLimits, Spent};
use crate::redact::Redactor;
use crate::render::DEFAULT_MAX_OUTPUT;
use crate::state::RunState;
use crate::transcript::{Durability, TranscriptError, TranscriptWriter};

/// Builds a [`Run`].
pub struct RunBuilder {
    options: RunOptions,
    /// Why the tools cannot be a set; `build` reports it.
    problem: Option<ToolsetError>,
    /// Whether the sources bring the tools that the run begins with too.
    replaced: bool,
    scope: RunScope,
    approvals: Approvals,
    reviewers: Option<ModelLookup>,
    by_person: bool,
    parent_limits: Option<LimitScope>,
    spent: Spent,
    executor: Arc<dyn ErasedExecutor>,
    sinks: Vec<Arc<dyn EventSink>>,
    deltas: Vec<DeltaListener>,
    labels: BTreeMap<String, String>,
    trace: BTreeMap<String, String>,
    transcript: Option<TranscriptWriter>,
    hidden: Vec<Secret>,
    cancel: CancelToken,
    strictness: Strictness,
    max_output: usize,
    max_depth: u32,
    max_parallel: usize,
}

impl RunBuilder {
    pub(super) fn new(tools: Result<Toolset, ToolsetError>) -> Self {
        let (tools, problem) = match tools {
            Ok(tools) => (tools, None),
            Err(error) => (Toolset::new(), Some(error)),
        };
        RunBuilder {
            problem,
            options: RunOptions { tools, ..RunOptions::default() },
            replaced: false,
            scope: RunScope::new(new_run_id()),
            approvals: Approvals::default(),
            reviewers: None,
            by_person: false,
            parent_limits: None,
            spent: Spent::default(),
            executor: Arc::new(LocalExecutor),
            sinks: Vec::new(),
            deltas: Vec::new(),
            labels: BTreeMap::new(),
            trace: BTreeMap::new(),
            transcript: None,
            hidden: Vec::new(),
            cancel: CancelToken::new(),
            strictness: Strictness::default(),
            max_output: DEFAULT_MAX_OUTPUT,
            max_depth: DEFAULT_MAX_DEPTH,
            max_parallel: DEFAULT_MAX_PARALLEL,
        }
    }

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
        self.options.sources.push(Arc::new(source));
        self
    }

    /// Has this source say what the tools are from the first call on. Those the run was given are what it
    /// begins with: what is recorded of it, and known before anything is called.
    #[must_use]
    pub fn tools_from(mut self, source: impl ToolSource + 'static) -> Self {
        self.replaced = true;
        self.source(source)
    }

    /// Decides about calls by these rules. Several policies are all judged, and the strictest decision wins.
    #[must_use]
    pub fn policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.approvals.add_policy(policy.into());
        self
    }

    /// Sets rules that nothing loosens: they are judged beside every policy, hold for calls that a person
    /// makes too, and their `ask` is not answered by [`assume_yes`](Self::assume_yes). Rules that approve do
    /// not count here.
    #[must_use]
    pub fn mandatory_policy(mut self, policy: &Policy) -> Self {
        self.approvals.set_mandatory(policy);
        self
    }

    /// Approves what would be asked about. What rules refuse stays refused, and so does what a
    /// [mandatory](Self::mandatory_policy) rule asks about when there is nobody to ask.
    #[must_use]
    pub fn assume_yes(mut self) -> Self {
        self.approvals.assume_yes = true;
        self
    }

    /// Asks this approver when the policy says so. Without a policy, every call is asked about. Each call of
    /// this adds one: they are asked in this order, and
    /// [`Decision::Escalate`](toolwright_core::Decision::Escalate) passes a call on to the next. When the
    /// last one passes it on, the call is refused.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approvals.approvers.push(Arc::new(approver));
        self
    }

    /// Finds the models that rules name (`decision: review, by: NAME`).
    #[must_use]
    pub fn reviewers(
        mut self,
        find: impl Fn(&str) -> Option<Result<Arc<DynModel>, ToolError>> + Send + Sync + 'static,
    ) -> Self {
        self.reviewers = Some(Arc::new(find));
        self
    }

    /// Adds the person of the run: they are asked about calls, as an [`approver`](Self::approver) is, and
    /// tools may ask and notify them.
    #[must_use]
    pub fn person(mut self, person: Arc<DynPerson>) -> Self {
        self.scope = self.scope.with_person(person.clone());
        self.approver(person)
    }

    /// Says that a person makes the calls of this run: they are approved, with all that flows do for them,
    /// also where a tool waits for a person's word. The policy and the approvers are for the calls that
    /// models make inside them. No model can have the run's own conversation.
    #[must_use]
    pub fn started_by_person(mut self) -> Self {
        self.by_person = true;
        self
    }

    /// Limits what the run may spend.
    #[must_use]
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Makes the run spend from another run's account too.
    #[must_use]
    pub fn within(mut self, account: &LimitScope) -> Self {
        self.parent_limits = Some(account.clone());
        self
    }

    /// Gives tools access to a value; see [`ToolContext::state`](toolwright_core::ToolContext::state).
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> Self {
        self.shared_state(Arc::new(state))
    }

    /// Gives tools access to a value that the program holds too, such as a pool of connections.
    #[must_use]
    pub fn shared_state<T: Send + Sync + 'static>(mut self, state: Arc<T>) -> Self {
        self.scope = self.scope.with_shared_state(state);
        self
    }

    /// Adds a sandbox. The one named `default` is the default, else the first.
    #[must_use]
    pub fn sandbox(mut self, name: impl Into<String>, sandbox: Arc<DynSandbox>) -> Self {
        self.scope.sandboxes.insert(name.into(), sandbox);
        self
    }

    /// Puts files into the sandboxes and runs the setup script, once all sandboxes are added. When that fails
    /// the sandboxes are closed, unless somebody else holds them too.
    pub async fn prepare(self, preparation: &Preparation) -> Result<Self, ToolError> {
        preparation.carry_out(&self.scope.sandboxes).await?;
        Ok(self)
    }

    /// Gives tools a model to ask.
    #[must_use]
    pub fn model(mut self, model: Arc<DynModel>) -> Self {
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

    /// Hears the model's answers while they come; the model is then asked to stream. Pieces come in order, on
    /// the task that waits for the answer, before the event of the whole message. Must be quick.
    #[must_use]
    pub fn on_delta(mut self, listener: impl Fn(ModelDelta<'_>) + Send + Sync + 'static) -> Self {
        self.deltas.push(Arc::new(listener));
        self
    }

    /// Sets the description of the run that lists of runs show.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Sends a trace header such as `traceparent` with each call that is done elsewhere; see [`Executor`].
    #[must_use]
    pub fn trace(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.trace.insert(name.into(), value.into());
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

    /// Keeps these values inside the calls of the run: flows and tools use them, while results, messages to
    /// models and events have `[redacted]` in their place.
    #[must_use]
    pub fn hide(mut self, secrets: impl IntoIterator<Item = Secret>) -> Self {
        self.hidden.extend(secrets);
        self
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

    /// Runs at most so many calls of one message at the same time, and at least one; the others wait for
    /// their turn. Calls that tools make are not counted.
    #[must_use]
    pub fn max_parallel(mut self, calls: usize) -> Self {
        self.max_parallel = calls.max(1);
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

    /// Builds the run. An error when the tools cannot be a set, for example because two have one name, when
    /// the first event cannot be recorded, when no tool has the argument that a rule is about, or when a
    /// model that a rule names is not there.
    pub fn build(self) -> Result<Run, Error> {
        if let Some(problem) = self.problem {
            return Err(problem.into());
        }
        let mut sinks = self.sinks;
        let (mut first_seq, mut first_span) = (0, 0);
        if let Some(transcript) = self.transcript {
            (first_seq, first_span) = (transcript.next_seq(), transcript.next_span());
            sinks.insert(0, Arc::new(transcript));
        }
        let mut approvals = self.approvals;
        if !approvals.approvers.is_empty() && approvals.policy.is_none() {
            approvals.policy = Some(Arc::new(Policy::new([])?));
        }
        let RunOptions { tools, sources, limits } = self.options;
        let wrong = approvals.policies().flat_map(|policy| policy.misspelt_parameters(&tools));
        let wrong: Vec<String> = wrong.map(|problem| problem.to_string()).collect();
        if !wrong.is_empty() {
            return Err(Error::configuration(format!("the policy is wrong: {}", wrong.join("; "))));
        }
        let reviewers = Reviewer::all(approvals.policies(), self.reviewers.as_ref());
        approvals.reviewers = reviewers.map_err(|error| {
            let hint = error.hint_text().map(str::to_owned);
            Error::configuration(error).with_hint(hint)
        })?;
        let tools = match self.replaced {
            true => RunTools::replaced(tools, sources),
            false => RunTools::new(tools, sources),
        };
        let hidden = Arc::new(HiddenSecrets::new(self.hidden));
        let shared = RunShared {
            approvals,
            executor: self.executor,
            trace: self.trace,
            events: Events::new(sinks, self.deltas, first_seq, first_span).hiding(hidden.clone()),
            hidden,
            active: ActiveCalls::default(),
            strictness: self.strictness,
            max_output: self.max_output,
            max_depth: self.max_depth,
            max_parallel: self.max_parallel,
        };
        let limits = LimitScope::resumed(limits, &self.spent, self.parent_limits);
        let frame = RunFrame::root(shared, self.scope, tools, limits, self.cancel, self.by_person);
        // Who looks through runs must see where commands ran, and behind what.
        let mut labels = self.labels;
        for (name, sandbox) in &frame.scope.sandboxes {
            let key = if name == "default" { "sandbox".to_owned() } else { format!("sandbox {name}") };
            let layers = sandbox.layers().join(", ");
            let between = if layers.is_empty() { "" } else { ": " };
            labels.insert(key, format!("{}{between}{layers}", sandbox.kind()));
        }
        let stamps = frame.tools.current();
        let stamps = stamps.iter().map(|entry| ToolStamp {
            name: entry.tool.spec().name.clone(),
            fingerprint: entry.fingerprint.clone(),
        });
        let started = frame.shared.events.emit(EventKind::RunStarted {
            version: FORMAT_VERSION,
            run_id: frame.scope.run_id.clone(),
            labels,
            tools: stamps.collect(),
        });
        started.map_err(Error::unavailable)?;
        Ok(Run { frame })
    }
}

/// An id that sorts by time and does not repeat: the time in microseconds and the process.
fn new_run_id() -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{:013x}-{:x}-{count:x}", since.as_micros(), std::process::id())
}
