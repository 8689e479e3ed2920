//! The door through which everything that is not the model loop reaches tools.
//!
//! The runtime implements [`Dispatch`]; the MCP server, YAML flows and tools that call other tools use it, so that
//! every call takes the same path whoever asks.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::{CancelToken, RunScope, ToolContext};
use crate::error::ToolError;
use crate::message::{Message, ToolCall, ToolResult};
use crate::model::{Model, ModelError, ModelReply, ModelRequest};
use crate::output::ToolOutput;
use crate::tool::{BoxFuture, ToolSpec};
use crate::toolset::Toolset;

/// Runs calls on behalf of others.
pub trait Dispatch: Send + Sync {
    /// What belongs to the whole run: state, sandboxes, the model.
    fn scope(&self) -> &RunScope;

    /// The tools that are known without asking anybody: those of sources as they were when they were last asked for.
    fn specs(&self) -> Vec<ToolSpec>;

    /// The tools that can be called; those of sources are asked for.
    fn fresh_specs(&self) -> BoxFuture<'_, Result<Vec<ToolSpec>, ToolError>> {
        Box::pin(async { Ok(self.specs()) })
    }

    /// Runs a call from outside; the result is bounded, ready for a model.
    fn dispatch<'a>(&'a self, call: ToolCall) -> BoxFuture<'a, Result<ToolResult, ToolError>>;

    /// Like [`dispatch`](Self::dispatch), for somebody who can be told things, asked things, and who may stop the call. A
    /// host that knows none of this runs the call all the same.
    fn dispatch_from<'a>(
        &'a self,
        origin: Origin,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        let _ = origin;
        self.dispatch(call)
    }

    /// Tells the calls with that id to stop; says whether there was one. Calls that tools make stop with theirs.
    fn cancel(&self, call_id: &str) -> bool {
        let _ = call_id;
        false
    }

    /// Runs a call that a tool makes; the output is whole, and the call is recorded under its parent.
    fn invoke<'a>(
        &'a self,
        parent: &'a ToolContext,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Like [`invoke`](Self::invoke), for a tool of `tools` that the run itself need not know.
    fn invoke_in<'a>(
        &'a self,
        parent: &'a ToolContext,
        tools: &'a Toolset,
        call: ToolCall,
        manner: Manner,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Asks a model on behalf of a tool. A run counts the answer against its limits, and ends it with the call.
    fn ask<'a>(
        &'a self,
        context: &'a ToolContext,
        model: &'a dyn Model,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ToolError>> {
        let _ = context;
        Box::pin(async move {
            model.generate(request).await.map_err(|error| {
                let message = format!("the model `{}` did not answer: {error}", model.name());
                ToolError::new(message).with_source(error)
            })
        })
    }

    /// Asks a model to take a turn in a conversation of so many messages that is not the run's own loop. A run admits,
    /// charges and records it like a turn of that loop: the outer error is the run's, which may not go on; the inner
    /// one the model's.
    fn turn<'a>(
        &'a self,
        model: &'a dyn Model,
        messages: usize,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Result<ModelReply, ModelError>, ToolError>> {
        let _ = messages;
        Box::pin(async move { Ok(model.generate(request).await) })
    }

    /// Lets a model work with `tools` on behalf of a tool, until it asks for nothing more or has answered `turns` times.
    /// Gives what was added to the messages. A run makes the model's calls like those of its own loop: approved, bounded,
    /// limited, and on record under the call.
    fn converse<'a>(
        &'a self,
        context: &'a ToolContext,
        model: &'a dyn Model,
        tools: &'a Toolset,
        messages: Vec<Message>,
        turns: u64,
    ) -> BoxFuture<'a, Result<Vec<Message>, ToolError>> {
        let _ = (context, model, tools, messages, turns);
        Box::pin(async { Err(ToolError::fatal("a model can work with tools in a run only")) })
    }

    /// Records something that happened inside a call.
    fn note(&self, context: &ToolContext, note: CallNote);
}

/// How one tool calls another.
#[derive(Clone, Default)]
pub struct Manner {
    /// What a person is shown in place of the tool's own hint; empty text shows nothing.
    pub hint: Option<Arc<str>>,
    /// Whatever the caller lends to a tool that knows what to do with it.
    pub lent: Option<Arc<dyn Any + Send + Sync>>,
}

impl std::fmt::Debug for Manner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manner").field("hint", &self.hint).finish_non_exhaustive()
    }
}

/// Where a call from outside comes from. Nothing here hangs on the call's id, which models choose.
#[derive(Clone, Default)]
pub struct Origin {
    /// Is told what happens inside the call, and inside the calls that it makes.
    pub watch: Option<Watch>,
    /// Stops the call when it fires.
    pub stop: Option<CancelToken>,
    /// Who asks for the call, and for the calls that are made inside it.
    pub asker: Asker,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Origin").field("asker", &self.asker).finish_non_exhaustive()
    }
}

/// Who asks for a call, in a type that their tools and approvers know: the client of a server, for example. By default
/// that is nobody in particular.
#[derive(Clone, Default)]
pub struct Asker(Option<Arc<dyn Any + Send + Sync>>);

impl Asker {
    /// Them.
    pub fn new<T: Send + Sync + 'static>(asker: T) -> Self {
        Asker(Some(Arc::new(asker)))
    }

    /// Them, when they are of type `T`.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Asker(..)" } else { "Asker(nobody)" })
    }
}

/// Is told what happens inside one call, and inside the calls that it makes, on the thread where it happens: it must be
/// quick. The number is that of the call where it happens ([`ToolContext::span`]).
pub type Watch = Arc<dyn Fn(u64, &CallNote) + Send + Sync>;

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
