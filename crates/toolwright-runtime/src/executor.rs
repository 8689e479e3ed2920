//! Where the work of a call is done.
//!
//! A call that was validated, approved and admitted travels as an [`Envelope`], plain data, to an
//! [`Executor`]. Nothing before or after knows where it ran: [`LocalExecutor`] runs it in this process;
//! others may send it elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use toolwright_core::{BoxFuture, Fingerprint, ToolContext, ToolError, ToolOutput, Toolset};

/// A call on its way to the place that runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// The id the model gave the call.
    pub call_id: Arc<str>,
    /// The call's number in its run.
    pub span: u64,
    /// The tool.
    pub tool: Arc<str>,
    /// The definition the model received; another one must not run in its place.
    pub fingerprint: Fingerprint,
    /// The validated arguments.
    pub arguments: Value,
    /// When the call will be stopped, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The policy under which it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Arc<str>>,
    /// The same for each attempt at the same call, so that a worker can refuse to do it twice. Left out
    /// where a call never leaves the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Arc<str>>,
    /// Trace headers, such as `traceparent`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trace: BTreeMap<String, String>,
}

/// A deadline as another process reads it: in milliseconds since 1970.
pub(crate) fn epoch_ms(deadline: Instant) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = now.saturating_add(deadline.saturating_duration_since(Instant::now()));
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}

/// Runs calls.
pub trait Executor: Send + Sync {
    /// True when the work happens elsewhere, so that the envelope needs its idempotency key.
    fn is_remote(&self) -> bool {
        false
    }

    /// Does the work of one call. Progress and cancellation go through the context. Write it as `async fn`.
    fn execute<'a>(
        &'a self,
        tools: &'a Toolset,
        envelope: Envelope,
        context: &'a ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;

    /// The same in a box, for an executor that has its future in one.
    #[doc(hidden)]
    fn execute_boxed<'a>(
        &'a self,
        tools: &'a Toolset,
        envelope: Envelope,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.execute(tools, envelope, context))
    }
}

/// The object-safe twin of [`Executor`].
pub(crate) trait ErasedExecutor: Send + Sync {
    fn is_remote(&self) -> bool;

    fn execute<'a>(
        &'a self,
        tools: &'a Toolset,
        envelope: Envelope,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

impl<E: Executor> ErasedExecutor for E {
    fn is_remote(&self) -> bool {
        Executor::is_remote(self)
    }

    fn execute<'a>(
        &'a self,
        tools: &'a Toolset,
        envelope: Envelope,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.execute_boxed(tools, envelope, context)
    }
}

/// Runs calls in this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalExecutor;

impl Executor for LocalExecutor {
    async fn execute(
        &self,
        tools: &Toolset,
        envelope: Envelope,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        self.execute_boxed(tools, envelope, context).await
    }

    fn execute_boxed<'a>(
        &'a self,
        tools: &'a Toolset,
        envelope: Envelope,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        match tools.find(&envelope.tool) {
            Ok(entry) if entry.fingerprint == envelope.fingerprint => {
                (*entry.tool).call(context, envelope.arguments)
            }
            Ok(_) => Box::pin(async move {
                Err(ToolError::fatal(format!(
                    "the definition of `{}` changed after it was approved",
                    envelope.tool
                )))
            }),
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }
}
