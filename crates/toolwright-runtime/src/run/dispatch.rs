//! How tools and servers reach a run: every call that does not come from its own loop comes through here.

use toolwright_core::{
    BoxFuture, CallNote, Dispatch, Manner, Message, Model, ModelError, ModelReply, ModelRequest, Origin,
    RunScope, ToolCall, ToolContext, ToolError, ToolOutput, ToolResult, ToolSpec, Toolset,
};

use super::{RunEnd, RunInner};
use crate::call::Outside;
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
        Box::pin(async { Ok(self.refresh_tools(&self.cancel).await?.specs()) })
    }

    fn dispatch<'a>(&'a self, call: ToolCall) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move { call::run_call(&self.host()?, call, None, &self.cancel).await })
    }

    fn dispatch_from<'a>(
        &'a self,
        origin: Origin,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let Origin { watch, stop, asker } = origin;
            let cancel = self.cancel.child_token();
            // A caller who went away has stopped too.
            let gone = cancel.clone().drop_guard();
            let host = self.host()?;
            let work = call::run_call_from(&host, call, None, Outside { cancel: &cancel, asker, watch });
            let mut work = std::pin::pin!(work);
            let stopped = async {
                match &stop {
                    Some(stop) => stop.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            let result = tokio::select! {
                biased;
                result = &mut work => result,
                () = stopped => {
                    cancel.cancel();
                    work.await
                }
            };
            gone.disarm();
            result
        })
    }

    fn cancel(&self, call_id: &str) -> bool {
        // The calls of tools and agents inside others are not for outsiders to name.
        let depth = self.outer.as_ref().map_or(0, |outer| outer.depth);
        self.active.cancel(depth, call_id)
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
        Box::pin(ask::for_tool(self, context, model, request))
    }

    fn turn<'a>(
        &'a self,
        model: &'a dyn Model,
        messages: usize,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Result<ModelReply, ModelError>, ToolError>> {
        Box::pin(ask::turn(self, model, messages, request))
    }

    fn converse<'a>(
        &'a self,
        context: &'a ToolContext,
        model: &'a dyn Model,
        tools: &'a Toolset,
        messages: Vec<Message>,
        turns: u64,
    ) -> BoxFuture<'a, Result<Vec<Message>, ToolError>> {
        Box::pin(async move { ask::converse(self.host()?, context, model, tools, messages, turns).await })
    }

    fn note(&self, context: &ToolContext, note: CallNote) {
        if let CallNote::RateLimited { wait } | CallNote::Retry { wait, .. } = &note {
            self.active.announce(context.span(), self.limits.clock(), *wait);
        }
        if let Some(watch) = context.watch() {
            watch(context.span(), &note);
        }
        // A note that cannot be recorded ends the run; the call itself learns of it through the cancel.
        if let Err(error) = self.events.emit(EventKind::CallNoted { span: context.span(), note }) {
            self.end(RunEnd::Failed { message: error.message().to_owned() });
            self.cancel.cancel();
        }
    }
}
