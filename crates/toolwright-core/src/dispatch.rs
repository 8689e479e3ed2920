//! The door through which everything that is not the model loop reaches tools.
//!
//! The runtime implements [`Dispatch`]; the MCP server, YAML flows and tools that call other tools use it, so that
//! every call takes the same path whoever asks.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::{RunScope, ToolContext};
use crate::error::ToolError;
use crate::message::{ToolCall, ToolResult};
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

    /// Like [`dispatch`](Self::dispatch), and tells `watch` what happens inside the call. The call's id must be one
    /// that no other call under way has. A host that cannot be watched runs the call all the same.
    fn dispatch_watched<'a>(
        &'a self,
        call: ToolCall,
        watch: Watch,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        let _ = watch;
        self.dispatch(call)
    }

    /// Tells the calls with that id to stop; says whether there was one.
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

/// Is told what happens inside one call, on the thread where it happens: it must be quick.
pub type Watch = Arc<dyn Fn(&CallNote) + Send + Sync>;

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
