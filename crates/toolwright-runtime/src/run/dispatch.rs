//! How tools and servers reach a run: every call that does not come from its own loop comes through here.

use toolwright_core::{
    AskPurpose, BoxFuture, CallNote, Dispatch, DynModel, EffectVerdict, Invocation, Message, ModelError,
    ModelReply, ModelRequest, Origin, PersonWait, RunScope, StagedEffect, ToolCall, ToolContext, ToolError,
    ToolOutput, ToolResult, ToolSpec, Toolset,
};

use super::{RunEnd, RunFrame};
use crate::call::ExternalCall;
use crate::events::EventKind;
use crate::{ask, call};

impl Dispatch for RunFrame {
    fn scope(&self) -> &RunScope {
        &self.scope
    }

    fn specs(&self) -> Vec<ToolSpec> {
        self.tools.current().specs()
    }

    fn fresh_specs(&self) -> BoxFuture<'_, Result<Vec<ToolSpec>, ToolError>> {
        Box::pin(async { Ok(self.refresh_tools(&self.cancel).await?.specs()) })
    }

    fn call<'a>(&'a self, call: ToolCall, origin: Origin) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let Origin { listener, stop, requester } = origin;
            let cancel = self.cancel.child_token();
            // A caller who went away has stopped too.
            let gone = cancel.clone().drop_guard();
            let host = self.host()?;
            let from = ExternalCall { cancel: &cancel, requester, listener };
            let mut work = std::pin::pin!(call::run_external(&host, call, None, from));
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

    fn invoke<'a>(
        &'a self,
        parent: &'a ToolContext,
        invocation: Invocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let outcome = async { call::run_nested(&self.host()?, parent, invocation).await };
            outcome.await.map_err(ends_run)
        })
    }

    fn ask<'a>(
        &'a self,
        purpose: AskPurpose<'a>,
        model: &'a DynModel,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Result<ModelReply, ModelError>, ToolError>> {
        Box::pin(async move { ask::once(self, purpose, model, request).await.map_err(ends_run) })
    }

    fn converse<'a>(
        &'a self,
        context: &'a ToolContext,
        model: &'a DynModel,
        tools: &'a Toolset,
        messages: Vec<Message>,
        turns: u64,
    ) -> BoxFuture<'a, Result<Vec<Message>, ToolError>> {
        Box::pin(async move {
            let outcome = async { ask::converse(self.host()?, context, model, tools, messages, turns).await };
            outcome.await.map_err(ends_run)
        })
    }

    fn person_wait(&self, context: &ToolContext) -> PersonWait {
        let span = context.span();
        let call = self.shared.active.clock(span).map(|clock| clock.pause());
        let person = self.shared.active.person_clock(span).map(|clock| clock.pause());
        PersonWait::new((self.limits.clock().pause(), call, person))
    }

    fn judge_effect<'a>(
        &'a self,
        context: &'a ToolContext,
        staged: &'a StagedEffect,
    ) -> BoxFuture<'a, EffectVerdict> {
        Box::pin(self.shared.approvals.judge_effect(self, context, staged))
    }

    fn note(&self, context: &ToolContext, note: CallNote) {
        if let CallNote::RateLimited { wait } | CallNote::Retry { wait, .. } = &note {
            self.shared.active.announce(context.span(), self.limits.clock(), *wait);
        }
        if let Some(listener) = context.listener() {
            listener(context.span(), &note);
        }
        // A note that cannot be recorded ends the run; the call itself learns of it through the cancel.
        if let Err(error) = self.shared.events.emit(EventKind::CallNoted { span: context.span(), note }) {
            self.end(RunEnd::Failed { message: error.message().to_owned() });
            self.cancel.cancel();
        }
    }
}

/// A fatal error of what a tool asked the run for has ended the run, whatever the tool makes of it.
fn ends_run(error: ToolError) -> ToolError {
    if error.is_fatal() { error.in_runtime() } else { error }
}
