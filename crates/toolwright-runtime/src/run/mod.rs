//! A run: tools, policy, limits, state and record, shared by all its calls. `builder` makes it, `frame` is
//! what it consists of, `dispatch` is how tools and servers reach it.

mod builder;
mod dispatch;
mod frame;
mod tools;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolwright_core::{
    Dispatch, DynModel, Error, IntoToolset, Message, ToolCall, ToolError, ToolResult, Toolset,
};

use crate::call::ExternalCall;
use crate::conversation::Conversation;
use crate::events::EventKind;
use crate::limits::{LimitScope, Spent};
use crate::state::{RunState, STATE_VERSION};
use crate::turn::{LoopOptions, LoopOutcome, RunError};
use crate::{batch, call};

pub use builder::RunBuilder;
pub(crate) use frame::{AgentRole, AnsweredCall, RunFrame, RunOptions};

/// How deep tools and agents may call one another or hand over, unless the run says otherwise.
pub const DEFAULT_MAX_DEPTH: u32 = 16;

/// How many calls of one message run at the same time, unless the run says otherwise.
pub const DEFAULT_MAX_PARALLEL: usize = 16;

/// A run. Cloning shares it.
///
/// ```
/// use serde_json::json;
/// use toolwright_core::{ToolCall, ToolDef, ToolSpec};
/// use toolwright_runtime::Run;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let hello = ToolDef::dynamic(ToolSpec::new("hello", "Greets."), |_, _| async { "hi" });
/// let run = Run::builder(hello).build()?;
/// let result = run.call(ToolCall::new("1", "hello", json!({}))).await?;
/// assert_eq!(result.to_text(), "hi");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Run {
    pub(crate) frame: Arc<RunFrame>,
}

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
    /// A run with these tools, and without policy, limits and record unless the builder adds them. A tool, a
    /// set, and an array, a list or a tuple of these will do; [`build`](RunBuilder::build) reports a clash.
    pub fn builder(tools: impl IntoToolset) -> RunBuilder {
        RunBuilder::new(tools.into_toolset())
    }

    /// The run's id.
    pub fn id(&self) -> &Arc<str> {
        &self.frame.scope.run_id
    }

    /// Makes one call. An error here ends the run; what the model should know is in the result.
    pub async fn call(&self, call: ToolCall) -> Result<ToolResult, ToolError> {
        let from = ExternalCall::of_model(&self.frame, &self.frame.cancel);
        call::run_external(&self.frame, call, None, from).await
    }

    /// Makes all calls of one assistant message; the results are in the order of the calls.
    pub async fn call_all(&self, calls: Vec<ToolCall>) -> Result<Vec<ToolResult>, ToolError> {
        batch::run_batch(&self.frame, calls, &[], &self.frame.cancel).await
    }

    /// Like [`call_all`](Self::call_all); after one of the `fail_fast` tools failed, its later calls are
    /// skipped.
    pub async fn call_all_failing_fast(
        &self,
        calls: Vec<ToolCall>,
        fail_fast: &[String],
    ) -> Result<Vec<ToolResult>, ToolError> {
        batch::run_batch(&self.frame, calls, fail_fast, &self.frame.cancel).await
    }

    /// The tools as they are now; those of sources are asked for, unless the run has ended.
    pub async fn tools(&self) -> Result<Toolset, ToolError> {
        self.frame.refresh_tools(&self.frame.cancel).await
    }

    /// Asks a model, and lets it work with the run's tools until it has answered.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolwright_core::{ToolDef, ToolSpec};
    /// use toolwright_models::{Reply, ScriptedModel};
    /// use toolwright_runtime::Run;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let time = ToolDef::dynamic(ToolSpec::new("time", "Tells the time."), |_, _| async { "12:00" });
    /// let run = Run::builder(time).build()?;
    /// let model = ScriptedModel::new([Reply::call("time", json!({})), Reply::text("It is noon.")]);
    /// assert_eq!(run.ask(&model, "What time is it?").await?.completion(), "It is noon.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn ask(&self, model: &DynModel, question: impl Into<String>) -> Result<LoopOutcome, RunError> {
        self.generate_loop(model, vec![Message::user(question)], &LoopOptions::default()).await
    }

    /// Lets a model work on a conversation until it is done; see [`LoopOptions`]. For a conversation that
    /// goes on after that, see [`Conversation`].
    pub async fn generate_loop(
        &self,
        model: &DynModel,
        messages: Vec<Message>,
        options: &LoopOptions,
    ) -> Result<LoopOutcome, RunError> {
        let mut conversation = Conversation::new(self).with_loop(options.clone());
        messages.into_iter().for_each(|message| conversation.push(message));
        let end = conversation.answer(model).await.inspect_err(|error| {
            self.frame.end(RunEnd::Failed { message: error.to_string() });
        })?;
        let pending = if end.is_none() { conversation.pending() } else { Vec::new() };
        Ok(LoopOutcome { messages: conversation.into_messages(), pending, end })
    }

    /// What was spent so far.
    pub fn spent(&self) -> Spent {
        self.frame.limits.spent()
    }

    /// The account of the run, for nested limits.
    pub fn limits(&self) -> &LimitScope {
        &self.frame.limits
    }

    /// Stops every call of the run, and makes later ones fail.
    pub fn cancel(&self) {
        self.frame.end(RunEnd::Cancelled);
        self.frame.cancel.cancel();
    }

    /// Stops the calls with that id; says whether there was one. Calls that tools make stop with theirs.
    pub fn cancel_call(&self, call_id: &str) -> bool {
        self.frame.shared.active.cancel(self.frame.depth(), call_id)
    }

    /// The ids of the calls under way.
    pub fn active_calls(&self) -> Vec<Arc<str>> {
        self.frame.shared.active.ids()
    }

    /// How the run ended, if it has.
    pub fn ended(&self) -> Option<RunEnd> {
        self.frame.ended()
    }

    /// Ends the run and records it. Later ends are ignored: the first reason is the true one.
    pub fn finish(&self, end: RunEnd) -> Result<RunEnd, ToolError> {
        let end = self.frame.end(end);
        self.frame.cancel.cancel();
        self.frame.shared.events.emit(EventKind::RunFinished { end: end.clone() })?;
        Ok(end)
    }

    /// The run as one value, for another process to take up. An error when what a tool keeps in the store is
    /// no JSON.
    pub fn state(&self, messages: Vec<Message>, pending: Vec<ToolCall>) -> Result<RunState, ToolError> {
        Ok(RunState {
            version: STATE_VERSION,
            run_id: self.id().to_string(),
            messages,
            pending,
            spent: self.spent(),
            store: self.frame.scope.store.save()?,
        })
    }

    /// The interface for the MCP server and everything else that is not the model loop.
    pub fn dispatch(&self) -> Arc<dyn Dispatch> {
        self.frame.clone()
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("id", self.id()).finish_non_exhaustive()
    }
}

/// A policy is a file, or a text like one.
impl From<crate::approval::PolicyError> for Error {
    fn from(error: crate::approval::PolicyError) -> Self {
        Error::file(error)
    }
}

impl From<crate::approval::PolicyError> for ToolError {
    fn from(error: crate::approval::PolicyError) -> Self {
        ToolError::fatal(error.to_string()).with_source(error)
    }
}
