//! How tools and servers reach a run: every call that does not come from its own loop comes through here.

use std::sync::Arc;

use toolwright_core::{
    BoxFuture, CallNote, Dispatch, Manner, Model, ModelError, ModelReply, ModelRequest, RunScope, ToolCall,
    ToolContext, ToolError, ToolOutput, ToolResult, ToolSpec, Toolset, Watch,
};

use super::{RunEnd, RunInner};
use crate::events::EventKind;
use crate::{ask, call};

impl Dispatch for RunInner {
    fn scope(&self) -> &RunScope {
        &self.scope
    }

    fn specs(&self) -> Vec<ToolSpec> {
        self.current_tools().specs()
    }

    fn fresh_specs(&self) -> BoxFuture<'_, Result<Vec<ToolSpec>, ToolError>> {
        Box::pin(async { Ok(self.refresh_tools().await?.specs()) })
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

    fn turn<'a>(
        &'a self,
        model: &'a dyn Model,
        messages: usize,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Result<ModelReply, ModelError>, ToolError>> {
        Box::pin(ask::turn(self, model, messages, request))
    }

    fn note(&self, context: &ToolContext, note: CallNote) {
        if let CallNote::RateLimited { wait } | CallNote::Retry { wait, .. } = &note {
            self.announce(context.span(), *wait);
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
