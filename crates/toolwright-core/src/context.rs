//! What a tool can reach while it runs: who called it, the run's state, other tools, the sandbox, and the
//! signal to stop.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::dispatch::{
    AskPurpose, CallNote, Dispatch, Invocation, InvokeOptions, Origin, ProgressListener, Requester,
};
use crate::effect::{CallEffect, EFFECT_NOTE};
use crate::erased::{DynModel, DynSandbox};
use crate::error::{ErrorKind, ToolError};
use crate::message::{Message, ToolCall, ToolResult};
use crate::model::{ModelError, ModelReply, ModelRequest};
use crate::output::ToolOutput;

use crate::store::{Store, StoreState, Stored};
use crate::tool::{BoxFuture, ToolSpec};
use crate::toolset::Toolset;

/// The signal that a call, or the whole run, is to stop.
pub type CancelToken = CancellationToken;

/// What a tool can reach while it runs. Cloning is cheap.
#[derive(Clone)]
pub struct ToolContext {
    inner: Arc<Inner>,
}

struct Inner {
    call: CallInfo,
    /// The call's own signal, made when something waits for it or fires it.
    cancel: OnceLock<CancelToken>,
    host: Arc<dyn Dispatch>,
}

/// What a context knows of its call.
#[derive(Clone, Default)]
pub struct CallInfo {
    /// The id of the call.
    pub call_id: Arc<str>,
    /// The name of the tool.
    pub tool: Arc<str>,
    /// A number no other call of the run has; models do reuse call ids.
    pub span: u64,
    /// How many calls this one is nested in.
    pub depth: u32,
    /// When the call will be stopped, if there is such a time.
    pub deadline: Option<Instant>,
    /// The signal that stops the call together with others.
    pub cancel: CancelToken,
    /// How the caller makes the call.
    pub options: InvokeOptions,
    /// On whose behalf the call is made.
    pub requester: Requester,
    /// Receives what happens inside the call.
    pub listener: Option<ProgressListener>,
}

impl std::fmt::Debug for CallInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallInfo")
            .field("call_id", &self.call_id)
            .field("tool", &self.tool)
            .field("span", &self.span)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl ToolContext {
    /// A context for one call. The runtime makes these; tests use [`ToolContext::detached`].
    pub fn new(host: Arc<dyn Dispatch>, call: CallInfo) -> Self {
        ToolContext { inner: Arc::new(Inner { call, cancel: OnceLock::new(), host }) }
    }

    /// A context outside any run, for unit tests of a tool: it has its own state and no other tools.
    pub fn detached() -> Self {
        Self::detached_in(RunScope::default())
    }

    /// A context outside any run, with the given state and sandboxes.
    pub fn detached_in(scope: RunScope) -> Self {
        let call = CallInfo { call_id: "call".into(), tool: "tool".into(), ..CallInfo::default() };
        ToolContext::new(Arc::new(Detached { scope }), call)
    }

    /// The id of the call being run.
    pub fn call_id(&self) -> &Arc<str> {
        &self.inner.call.call_id
    }

    /// The name of the tool being run.
    pub fn tool_name(&self) -> &Arc<str> {
        &self.inner.call.tool
    }

    /// A number no other call of the run has; models do reuse call ids.
    pub fn span(&self) -> u64 {
        self.inner.call.span
    }

    /// How many calls this one is nested in.
    pub fn depth(&self) -> u32 {
        self.inner.call.depth
    }

    /// On whose behalf the call, or the call that this one is part of, is made.
    pub fn requester(&self) -> &Requester {
        &self.inner.call.requester
    }

    /// What receives the progress of this call, or of the call that this one is part of.
    pub fn listener(&self) -> Option<&ProgressListener> {
        self.inner.call.listener.as_ref()
    }

    /// When the call will be stopped, if there is such a time.
    pub fn deadline(&self) -> Option<Instant> {
        self.inner.call.deadline
    }

    /// The time left before the call is stopped.
    pub fn time_left(&self) -> Option<Duration> {
        self.inner.call.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Fires when the call is to stop: it timed out, it was cancelled, or the run ends.
    pub fn cancel_token(&self) -> &CancelToken {
        self.inner.cancel.get_or_init(|| self.inner.call.cancel.child_token())
    }

    /// True once the call is to stop. Long loops ask this.
    pub fn is_cancelled(&self) -> bool {
        // A call that nobody watches yet has no token of its own, and stops when its parent does.
        self.inner.cancel.get().unwrap_or(&self.inner.call.cancel).is_cancelled()
    }

    /// An error once the call is to stop, for use with `?` in long loops.
    pub fn check_cancelled(&self) -> Result<(), ToolError> {
        if self.is_cancelled() {
            return Err(ToolError::of(ErrorKind::Cancelled, "the call was cancelled"));
        }
        Ok(())
    }

    /// Stops whatever still works for this call. The runtime calls it on a time-out.
    pub fn stop(&self) {
        self.cancel_token().cancel();
    }

    /// The run's state of type `T`.
    pub fn store<T: StoreState>(&self) -> Stored<T> {
        self.scope().store.of(None)
    }

    /// The run's state of type `T` under an instance name, so that one tool can be given several times.
    pub fn store_as<T: StoreState>(&self, instance: &str) -> Stored<T> {
        self.scope().store.of(Some(instance))
    }

    /// What the program put in with [`RunScope::with_state`], for example a database pool.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, ToolError> {
        self.scope().state()
    }

    /// The default sandbox of the run.
    pub fn sandbox(&self) -> Result<Arc<DynSandbox>, ToolError> {
        self.scope().sandbox(None).map(|sandbox| self.judging(sandbox))
    }

    /// The sandbox of that name.
    pub fn sandbox_named(&self, name: &str) -> Result<Arc<DynSandbox>, ToolError> {
        self.scope().sandbox(Some(name)).map(|sandbox| self.judging(sandbox))
    }

    /// A sandbox whose changes are decided about, and on record, as those of this call.
    fn judging(&self, sandbox: Arc<DynSandbox>) -> Arc<DynSandbox> {
        sandbox.judged_by(Arc::new(self.clone())).unwrap_or(sandbox)
    }

    /// The first sandbox in which `file` can be read.
    pub async fn sandbox_with(&self, file: &str) -> Option<Arc<DynSandbox>> {
        for sandbox in self.scope().sandboxes.values() {
            if sandbox.read_file(file).await.is_ok() {
                return Some(self.judging(sandbox.clone()));
            }
        }
        None
    }

    /// The model of the run, for tools that ask one.
    pub fn model(&self) -> Result<Arc<DynModel>, ToolError> {
        let model = self.scope().model.clone();
        model.ok_or_else(|| ToolError::fatal("the tool asks a model, and the run has none"))
    }

    /// Asks a model for this call: its answer counts against the run's limits, and stops with the call.
    pub async fn ask(&self, model: &DynModel, request: ModelRequest<'_>) -> Result<ModelReply, ToolError> {
        self.inner.host.ask(AskPurpose::Call(self), model, request).await?.map_err(|error| {
            let message = format!("the model `{}` did not answer: {error}", model.name());
            ToolError::new(message).with_source(error)
        })
    }

    /// Everything that belongs to the run.
    pub fn scope(&self) -> &RunScope {
        self.inner.host.scope()
    }

    /// The tools of the run; those of its sources are asked for.
    pub async fn tools(&self) -> Result<Vec<ToolSpec>, ToolError> {
        self.inner.host.fresh_specs().await
    }

    /// Calls another tool. The call is validated, approved, limited and recorded like any other.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let id = format!("{}.{tool}", self.inner.call.call_id);
        self.inner.host.invoke(self, Invocation::new(ToolCall::new(id, tool, arguments))).await
    }

    /// Calls a tool of `tools` that the run itself need not know; otherwise like [`call`](Self::call).
    pub async fn call_in(
        &self,
        tools: &Toolset,
        tool: &str,
        arguments: Value,
        options: InvokeOptions,
    ) -> Result<ToolOutput, ToolError> {
        let id = format!("{}.{tool}", self.inner.call.call_id);
        let call = ToolCall::new(id, tool, arguments);
        self.inner.host.invoke(self, Invocation::new(call).within(tools).options(options)).await
    }

    /// What the caller wants a person to be shown for this call; its hint is recorded already.
    pub fn caller_hint(&self) -> Option<&Arc<str>> {
        self.inner.call.options.hint.as_ref()
    }

    /// The [caller's data](InvokeOptions::caller_data), when it is of type `T`.
    pub fn caller_data<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.inner.call.options.caller_data.clone().and_then(|any| any.downcast().ok())
    }

    /// Says how far the work has come.
    pub fn progress(&self, done: f64, total: Option<f64>, message: impl Into<String>) {
        self.note(CallNote::Progress { done, total, message: Some(message.into()) });
    }

    /// Puts something on record.
    pub fn note(&self, note: CallNote) {
        self.inner.host.note(self, note);
    }

    /// Puts what the call changed in folders on record, unless it is nothing.
    pub fn record_effect(&self, effect: &CallEffect) {
        if !effect.is_empty() {
            // Plain data is always JSON.
            let value = serde_json::to_value(effect).unwrap_or_default();
            self.note(CallNote::Data { name: EFFECT_NOTE.to_owned(), value });
        }
    }

    /// The runtime, for tools that pass calls on.
    pub fn host(&self) -> &Arc<dyn Dispatch> {
        &self.inner.host
    }
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.inner.call.call_id)
            .field("tool", &self.inner.call.tool)
            .field("depth", &self.inner.call.depth)
            .finish_non_exhaustive()
    }
}

/// What belongs to a whole run and is shared by its calls.
#[derive(Clone, Default)]
pub struct RunScope {
    /// The run's id.
    pub run_id: Arc<str>,
    /// State that tools keep between calls.
    pub store: Store,
    /// The sandboxes by name. The one named `default` is the default, else the first.
    pub sandboxes: indexmap::IndexMap<String, Arc<DynSandbox>>,
    /// The model that tools may ask.
    pub model: Option<Arc<DynModel>>,
    states: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl RunScope {
    /// The scope of the run of that name, with nothing in it yet.
    pub fn new(run_id: impl Into<Arc<str>>) -> Self {
        RunScope { run_id: run_id.into(), ..RunScope::default() }
    }

    /// Gives tools access to `state`, one value per type.
    #[must_use]
    pub fn with_state<T: Send + Sync + 'static>(self, state: T) -> Self {
        self.with_shared_state(Arc::new(state))
    }

    /// Gives tools access to a value that the program holds too.
    #[must_use]
    pub fn with_shared_state<T: Send + Sync + 'static>(mut self, state: Arc<T>) -> Self {
        self.states.insert(TypeId::of::<T>(), state);
        self
    }

    /// The injected value of type `T`.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, ToolError> {
        let found = self.states.get(&TypeId::of::<T>()).cloned().and_then(|any| any.downcast::<T>().ok());
        found.ok_or_else(|| {
            let name = std::any::type_name::<T>();
            ToolError::fatal(format!("the run has no state of type `{name}`"))
                .hint("add it when building the run: `.state(...)` with a value of that type")
        })
    }

    /// The sandbox of that name; without one, the default.
    pub fn sandbox(&self, name: Option<&str>) -> Result<Arc<DynSandbox>, ToolError> {
        let found = match name {
            None | Some("default") if !self.sandboxes.contains_key("default") => {
                self.sandboxes.first().map(|(_, sandbox)| sandbox)
            }
            None => self.sandboxes.get("default"),
            Some(name) => self.sandboxes.get(name),
        };
        found.cloned().ok_or_else(|| {
            let names: Vec<_> = self.sandboxes.keys().map(String::as_str).collect();
            let message = match name {
                Some(name) if !names.is_empty() => {
                    format!("there is no sandbox `{name}`; there are: {}", names.join(", "))
                }
                _ => "the run has no sandbox".to_owned(),
            };
            ToolError::of(ErrorKind::SandboxUnavailable, message)
        })
    }
}

impl std::fmt::Debug for RunScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sandboxes: Vec<_> = self.sandboxes.keys().collect();
        f.debug_struct("RunScope")
            .field("run_id", &self.run_id)
            .field("sandboxes", &sandboxes)
            .finish_non_exhaustive()
    }
}

/// A value the program injects into tools: the parameter `db: State<Db>` is not told to the model.
#[derive(Debug)]
pub struct State<T>(pub Arc<T>);

impl<T> std::ops::Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The host of a context outside any run.
struct Detached {
    scope: RunScope,
}

impl Dispatch for Detached {
    fn scope(&self) -> &RunScope {
        &self.scope
    }

    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn fresh_specs(&self) -> BoxFuture<'_, Result<Vec<ToolSpec>, ToolError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn call<'a>(&'a self, call: ToolCall, _origin: Origin) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move { Err(no_tools(&call)) })
    }

    fn invoke<'a>(
        &'a self,
        _parent: &'a ToolContext,
        invocation: Invocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Err(no_tools(&invocation.call)) })
    }

    fn ask<'a>(
        &'a self,
        _purpose: AskPurpose<'a>,
        model: &'a DynModel,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Result<ModelReply, ModelError>, ToolError>> {
        Box::pin(async move { Ok(model.generate(request).await) })
    }

    fn converse<'a>(
        &'a self,
        _context: &'a ToolContext,
        _model: &'a DynModel,
        _tools: &'a Toolset,
        _messages: Vec<Message>,
        _turns: u64,
    ) -> BoxFuture<'a, Result<Vec<Message>, ToolError>> {
        Box::pin(async { Err(ToolError::fatal("a model can work with tools in a run only")) })
    }

    fn note(&self, _context: &ToolContext, _note: CallNote) {}
}

fn no_tools(call: &ToolCall) -> ToolError {
    ToolError::invalid(format!("there is no tool `{}`: the context belongs to no run", call.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injected_state_is_found_by_type_and_its_absence_is_fatal() {
        let context = ToolContext::detached_in(RunScope::default().with_state("db".to_owned()));
        assert_eq!(*context.state::<String>().unwrap(), "db");
        let missing = context.state::<u32>().unwrap_err();
        assert!(missing.is_fatal() && missing.message().contains("u32"));
    }

    #[test]
    fn a_run_without_a_sandbox_says_so() {
        let error = ToolContext::detached().sandbox().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::SandboxUnavailable);
    }

    #[test]
    fn stopping_a_call_is_seen_inside_it() {
        let context = ToolContext::detached();
        assert!(context.check_cancelled().is_ok());
        context.stop();
        assert_eq!(context.check_cancelled().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
