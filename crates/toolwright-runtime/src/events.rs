//! Everything that happens in a run, as one typed stream.
//!
//! Calls are told apart by their span, a number no other call of the run has, because models reuse call ids.
//! Every span that is opened by [`EventKind::CallStarted`] is closed by exactly one
//! [`EventKind::CallFinished`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwright_core::{
    CallNote, ErrorInfo, Fingerprint, Message, ModelDelta, StopReason, ToolError, ToolResult, Usage,
};
use toolwright_util::lock;

use crate::hidden::HiddenSecrets;
use crate::limits::LimitReached;
use crate::time;

/// The version of the event format.
pub const FORMAT_VERSION: u32 = 1;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up within a run, without gaps.
    pub seq: u64,
    /// When it happened.
    #[serde(with = "time")]
    pub time: SystemTime,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The run began, or was taken up again.
    RunStarted {
        /// The version of the event format.
        version: u32,
        /// The run.
        run_id: Arc<str>,
        /// What the run is about, as lists of runs show it: the command, the folder.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        labels: BTreeMap<String, String>,
        /// The tools it offers.
        tools: Vec<ToolStamp>,
    },
    /// A message joined the conversation.
    MessageAdded {
        /// The message.
        message: Message,
    },
    /// A message joined the conversation of an agent that answers a call.
    AgentMessage {
        /// The call's number.
        span: u64,
        /// The agent.
        agent: Arc<str>,
        /// The message.
        message: Message,
    },
    /// The conversation no longer fits its model, so a part of it is no longer sent.
    MiddleLeftOut {
        /// How many messages are left out.
        messages: usize,
    },
    /// A model answered.
    ModelReplied {
        /// Which model.
        model: String,
        /// What it cost in tokens.
        usage: Usage,
        /// What that is in dollars, when the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// How long it took.
        #[serde(with = "time::micros", rename = "duration_us")]
        duration: Duration,
        /// Why it stopped.
        #[serde(default)]
        stop: StopReason,
    },
    /// A model could not answer. A conversation goes on after that.
    ModelFailed {
        /// Which model.
        model: String,
        /// Why.
        message: String,
    },
    /// Somebody stopped an answer. What there was of it stays, and the conversation goes on.
    AnswerStopped,
    /// The end of the conversation was taken back.
    Rewound {
        /// How many messages it still has.
        messages: usize,
    },
    /// A call began.
    CallStarted {
        /// The call's number.
        span: u64,
        /// The number of the call that made this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<u64>,
        /// The id the model gave it.
        call_id: Arc<str>,
        /// The tool, as the model named it.
        tool: Arc<str>,
        /// The arguments, as the model gave them.
        arguments: Value,
    },
    /// Somebody, or a rule, decided about a call.
    CallDecided {
        /// The call's number.
        span: u64,
        /// Who decided.
        approver: String,
        /// The word for the decision: `approve`, `modify`, `reject`, `escalate` or `terminate`.
        decision: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The arguments that will be used, when they are not the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// Something happened inside a call.
    CallNoted {
        /// The call's number.
        span: u64,
        /// What.
        #[serde(flatten)]
        note: CallNote,
    },
    /// A call ended.
    CallFinished {
        /// The call's number.
        span: u64,
        /// How long it took, without the time in which somebody decided about it, or about calls inside it.
        #[serde(with = "time::micros", rename = "duration_us")]
        duration: Duration,
        /// True when the run ended, or the caller went away, before the call did.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
        /// Why it failed, fatal errors included.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        /// What went back; absent when the call was cut off. It comes last, so that a reader who only wants
        /// to know how the call went need not read on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<ToolResult>,
    },
    /// A limit of the run was reached.
    LimitHit {
        /// Which, and how far.
        #[serde(flatten)]
        limit: LimitReached,
    },
    /// The run ended.
    RunFinished {
        /// How.
        #[serde(flatten)]
        end: crate::run::RunEnd,
    },
}

/// A tool's name and the hash of its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStamp {
    /// The name.
    pub name: Arc<str>,
    /// The hash.
    pub fingerprint: Fingerprint,
}

/// Takes events as they happen. Must not block for long: the run waits for it. What is an event itself, such
/// as [`Run::finish`](crate::Run::finish), fails inside a sink; [`Run::cancel`](crate::Run::cancel) does not.
pub trait EventSink: Send + Sync {
    /// Takes one event. An error ends the run: what cannot be recorded must not happen.
    fn take(&self, event: &Event) -> Result<(), ToolError>;
}

/// A sink that is a closure.
impl<F: Fn(&Event) + Send + Sync> EventSink for F {
    fn take(&self, event: &Event) -> Result<(), ToolError> {
        self(event);
        Ok(())
    }
}

/// Hears a model's answer piece by piece; see [`RunBuilder::on_delta`](crate::RunBuilder::on_delta).
pub(crate) type DeltaListener = Arc<dyn Fn(ModelDelta<'_>) + Send + Sync>;

/// Numbers events and hands them to the sinks.
#[derive(Default)]
pub(crate) struct Events {
    sinks: Vec<Arc<dyn EventSink>>,
    /// Receives answers while they stream. Pieces are not events: the whole message follows, and only that is
    /// recorded.
    pub(crate) deltas: Vec<DeltaListener>,
    /// Keeps the numbers in the order of the sinks' input.
    order: Mutex<u64>,
    /// The thread whose event the sinks are taking.
    telling: Mutex<Option<ThreadId>>,
    spans: AtomicU64,
    hidden: Arc<HiddenSecrets>,
}

impl Events {
    pub(crate) fn new(
        sinks: Vec<Arc<dyn EventSink>>,
        deltas: Vec<DeltaListener>,
        first_seq: u64,
        first_span: u64,
    ) -> Self {
        let (order, spans) = (Mutex::new(first_seq), AtomicU64::new(first_span));
        Events { sinks, deltas, order, telling: Mutex::default(), spans, hidden: Arc::default() }
    }

    /// Takes these secrets out of every event.
    pub(crate) fn hiding(self, hidden: Arc<HiddenSecrets>) -> Self {
        Events { hidden, ..self }
    }

    /// A number for a new call.
    pub(crate) fn new_span(&self) -> u64 {
        self.spans.fetch_add(1, Ordering::Relaxed)
    }

    /// True when somebody listens; lets callers skip making events nobody takes.
    pub(crate) fn wanted(&self) -> bool {
        !self.sinks.is_empty()
    }

    /// Hands an event to every sink.
    pub(crate) fn emit(&self, kind: EventKind) -> Result<(), ToolError> {
        if self.sinks.is_empty() {
            return Ok(());
        }
        let me = std::thread::current().id();
        if *lock(&self.telling) == Some(me) {
            let message = "a sink of events did something that is an event itself while it was taking one";
            return Err(ToolError::fatal(message).hint(
                "do it after `take` has returned, from another task: `Run::cancel` is the one thing a sink can do at once",
            ));
        }
        let mut order = lock(&self.order);
        let event = self.hidden.event(Event { seq: *order, time: SystemTime::now(), kind })?;
        *order += 1;
        let _telling = Telling::new(&self.telling, me);
        // The record comes first: an event that cannot be written is not reported.
        self.sinks.iter().try_for_each(|sink| sink.take(&event))
    }
}

/// While the sinks take an event; also when one panics.
struct Telling<'a>(&'a Mutex<Option<ThreadId>>);

impl<'a> Telling<'a> {
    fn new(telling: &'a Mutex<Option<ThreadId>>, thread: ThreadId) -> Self {
        *lock(telling) = Some(thread);
        Telling(telling)
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}
