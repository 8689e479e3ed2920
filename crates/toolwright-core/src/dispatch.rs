//! The interface through which everything that is not the model loop reaches tools and models.
//!
//! The runtime implements [`Dispatch`]; the MCP server, YAML flows and tools that call other tools use it, so
//! that every call takes the same path.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::{CancelToken, RunScope, ToolContext};
use crate::effect::{EffectVerdict, StagedEffect};
use crate::erased::DynModel;
use crate::error::ToolError;
use crate::message::{Message, ToolCall, ToolResult};
use crate::model::{ModelError, ModelReply, ModelRequest};
use crate::output::ToolOutput;
use crate::tool::{BoxFuture, ToolSpec};
use crate::toolset::Toolset;

/// Runs calls on behalf of others.
pub trait Dispatch: Send + Sync {
    /// What belongs to the whole run: state, sandboxes, the model.
    fn scope(&self) -> &RunScope;

    /// The tools that are known without asking their sources: those of sources as they were last listed.
    fn specs(&self) -> Vec<ToolSpec>;

    /// The tools that can be called; sources are asked for theirs.
    fn fresh_specs(&self) -> BoxFuture<'_, Result<Vec<ToolSpec>, ToolError>>;

    /// Runs a call from outside; the result is bounded, ready for a model.
    fn call<'a>(&'a self, call: ToolCall, origin: Origin) -> BoxFuture<'a, Result<ToolResult, ToolError>>;

    /// Runs a call that a tool makes; the output is whole, and the call is recorded under its parent.
    fn invoke<'a>(
        &'a self,
        parent: &'a ToolContext,
        invocation: Invocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Asks a model. A run counts the answer against its limits and records it. The outer error is the run's,
    /// which may not continue; the inner one the model's.
    fn ask<'a>(
        &'a self,
        purpose: AskPurpose<'a>,
        model: &'a DynModel,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Result<ModelReply, ModelError>, ToolError>>;

    /// Lets a model work with `tools` on behalf of a tool, until it asks for nothing more or has answered
    /// `turns` times. Returns what was added to the messages. A run makes the model's calls like those of its
    /// own loop: approved, bounded, limited, and recorded under the call.
    fn converse<'a>(
        &'a self,
        context: &'a ToolContext,
        model: &'a DynModel,
        tools: &'a Toolset,
        messages: Vec<Message>,
        turns: u64,
    ) -> BoxFuture<'a, Result<Vec<Message>, ToolError>>;

    /// Notes that a call waits for a person until the returned value is dropped: that time counts for none of
    /// its bounds. By default, nothing is noted.
    fn person_wait(&self, context: &ToolContext) -> PersonWait {
        let _ = context;
        PersonWait::default()
    }

    /// Decides about what a call has changed in folders, before it is applied. By default all of it is, but
    /// for what is protected.
    fn judge_effect<'a>(
        &'a self,
        context: &'a ToolContext,
        staged: &'a StagedEffect,
    ) -> BoxFuture<'a, EffectVerdict> {
        let _ = (context, staged);
        Box::pin(async { EffectVerdict::default() })
    }

    /// Records something that happened inside a call.
    fn note(&self, context: &ToolContext, note: CallNote);
}

/// Time that a call waits for a person; it ends when this is dropped.
#[derive(Default)]
pub struct PersonWait(#[expect(dead_code, reason = "held until the wait is over")] Option<Box<dyn Send>>);

impl PersonWait {
    /// Holds what books the time.
    pub fn new(guard: impl Send + 'static) -> Self {
        PersonWait(Some(Box::new(guard)))
    }
}

/// A call that a tool makes.
#[derive(Debug, Clone)]
pub struct Invocation<'a> {
    /// The call.
    pub call: ToolCall,
    /// Where the tool is found; `None` for the tools of the run.
    pub tools: Option<&'a Toolset>,
    /// How the call is made.
    pub options: InvokeOptions,
}

impl<'a> Invocation<'a> {
    /// A call of one of the run's tools.
    pub fn new(call: ToolCall) -> Self {
        Invocation { call, tools: None, options: InvokeOptions::default() }
    }

    /// The call of a tool among `tools`, which the run itself need not know.
    #[must_use]
    pub fn within(mut self, tools: &'a Toolset) -> Self {
        self.tools = Some(tools);
        self
    }

    /// The call with these options.
    #[must_use]
    pub fn options(mut self, options: InvokeOptions) -> Self {
        self.options = options;
        self
    }
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallTimeout {
    /// As long as the tool says by itself.
    #[default]
    OfTool,
    /// As long as what it is part of.
    Never,
    /// So long.
    After(Duration),
}

impl CallTimeout {
    /// The bound, where `own` is the tool's.
    pub fn or(self, own: Option<Duration>) -> Option<Duration> {
        match self {
            CallTimeout::OfTool => own,
            CallTimeout::Never => None,
            CallTimeout::After(time) => Some(time),
        }
    }
}

/// How one tool calls another.
#[derive(Clone, Default)]
pub struct InvokeOptions {
    /// What a person is shown in place of the tool's own hint; empty text shows nothing.
    pub hint: Option<Arc<str>>,
    /// How long the call may take.
    pub timeout: CallTimeout,
    /// A value for the called tool; see [`ToolContext::caller_data`].
    pub caller_data: Option<Arc<dyn Any + Send + Sync>>,
}

impl std::fmt::Debug for InvokeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InvokeOptions").field("hint", &self.hint).finish_non_exhaustive()
    }
}

/// What a model is asked for.
#[derive(Debug, Clone, Copy)]
pub enum AskPurpose<'a> {
    /// The work of a call: the answer counts against the run's tokens, money and time, and ends with the
    /// call.
    Call(&'a ToolContext),
    /// A turn of a conversation that is not the run's own loop. It is admitted, charged and recorded like one
    /// of that loop.
    Turn {
        /// The messages of the conversation so far.
        messages: usize,
    },
}

/// Where a call from outside comes from. Nothing here depends on the call's id, which models choose.
#[derive(Clone, Default)]
pub struct Origin {
    /// Receives what happens inside the call, and inside the calls that it makes.
    pub listener: Option<ProgressListener>,
    /// Stops the call when it fires.
    pub stop: Option<CancelToken>,
    /// On whose behalf the call, and the calls inside it, are made.
    pub requester: Requester,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Origin").field("requester", &self.requester).finish_non_exhaustive()
    }
}

/// On whose behalf a call is made, in a type that tools and approvers of the same program know: the client of
/// a server, for example. By default nobody in particular.
#[derive(Clone, Default)]
pub struct Requester(Option<Arc<dyn Any + Send + Sync>>);

impl Requester {
    /// Wraps the requester's identity.
    pub fn new<T: Send + Sync + 'static>(identity: T) -> Self {
        Requester(Some(Arc::new(identity)))
    }

    /// The requester's identity, when it is of type `T`.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl std::fmt::Debug for Requester {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Requester(..)" } else { "Requester(none)" })
    }
}

/// Receives what happens inside one call, and inside the calls that it makes, on the thread where it happens:
/// it must be quick. The number is that of the call where it happens ([`ToolContext::span`]).
pub type ProgressListener = Arc<dyn Fn(u64, &CallNote) + Send + Sync>;

/// Something that happened inside a call.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum CallNote {
    /// How far the work has come.
    Progress {
        /// Work done so far.
        done: f64,
        /// All the work, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// What is being done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Output while the tool still runs.
    Output {
        /// Which stream it came from, for example `stdout`.
        stream: String,
        /// The text.
        text: String,
    },
    /// What a person may be shown instead of the bare call.
    Hint {
        /// The text.
        text: String,
    },
    /// The call waits for a rate limit.
    RateLimited {
        /// How long.
        wait: Duration,
    },
    /// The result came from a cache.
    CacheHit {
        /// How old it is.
        age: Duration,
    },
    /// The work failed and is tried again.
    Retry {
        /// Which attempt failed, counting from 1.
        attempt: u32,
        /// Why.
        error: String,
        /// How long it is left alone before the next attempt.
        wait: Duration,
    },
    /// Anything else a tool wants on record.
    Data {
        /// What it is.
        name: String,
        /// The value.
        value: Value,
    },
}
