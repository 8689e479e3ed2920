//! Models that tools and servers ask: their answers are paid for by the run like those of its own loop.

use std::sync::Arc;

use tokio::time::Instant;
use toolwright_core::{
    CancelToken, ErrorKind, Message, Model, ModelError, ModelErrorKind, ModelReply, ModelRequest,
    ToolContext, ToolError, Toolset, Usage,
};

use crate::conversation::Conversation;
use crate::events::EventKind;
use crate::limits::{LimitScope, Limits};
use crate::run::{Part, Run, RunEnd, RunInner};
use crate::turn::RunError;
use crate::{direct, guard};

/// Asks a model for the call of `context`. Tokens, money and time count against the run's limits; turns and messages
/// are those of its own loop.
pub(crate) async fn ask(
    run: &RunInner,
    context: &ToolContext,
    model: &dyn Model,
    request: ModelRequest<'_>,
) -> Result<ModelReply, ToolError> {
    run.limits.check().map_err(|limit| run.refuse(limit))?;
    check_price(&run.limits, model).map_err(|error| failed(model, error))?;
    let reply = charged(run, context.cancel_token(), context.deadline(), model, request).await?;
    reply.map_err(|error| failed(model, error))
}

/// Asks a model to take a turn in a conversation of so many messages, like the run's own loop.
pub(crate) async fn turn(
    run: &RunInner,
    model: &dyn Model,
    messages: usize,
    request: ModelRequest<'_>,
) -> Result<Result<ModelReply, ModelError>, ToolError> {
    if run.by_person {
        return Err(ToolError::fatal(
            "the calls of this run are a person's: no model can have its conversation",
        ));
    }
    run.limits.admit_turn(messages).map_err(|limit| run.refuse(limit))?;
    if let Err(error) = check_price(&run.limits, model) {
        return Ok(Err(error));
    }
    charged(run, &run.cancel, None, model, request).await
}

/// The answer of a model, paid for by the run and on record.
async fn charged(
    run: &RunInner,
    cancel: &CancelToken,
    own_end: Option<Instant>,
    model: &dyn Model,
    request: ModelRequest<'_>,
) -> Result<Result<ModelReply, ModelError>, ToolError> {
    let deadline = run.limits.deadline(own_end).map_err(|limit| run.refuse(limit))?;
    let asked = Instant::now();
    let masked = direct::masked(request.messages);
    let messages = masked.as_deref().unwrap_or(request.messages);
    let request = ModelRequest { messages, ..request };
    let work = unbroken(model, async { model.generate(request).await });
    let reply = match run.unless_stopped(cancel, deadline, work).await? {
        Ok(reply) => reply,
        Err(error) => return Ok(Err(error)),
    };
    let cost = model.cost(&reply.usage);
    run.events.emit(EventKind::ModelReplied {
        model: model.name().to_owned(),
        usage: reply.usage,
        cost,
        duration: asked.elapsed(),
        stop: reply.stop,
    })?;
    run.limits.spend(reply.usage, cost.unwrap_or(0.0)).map_err(|limit| run.refuse(limit))?;
    Ok(Ok(reply))
}

/// Lets a model work with tools for the call of `context`, in the loop of all models, and gives what it added to the
/// messages. The call ends with the run's limits as with its own.
pub(crate) async fn converse(
    host: Arc<RunInner>,
    context: &ToolContext,
    model: &dyn Model,
    tools: &Toolset,
    messages: Vec<Message>,
    turns: u64,
) -> Result<Vec<Message>, ToolError> {
    let around = Run { inner: host };
    let limits = Limits { turns: Some(turns), ..Limits::default() };
    let part = Part { agent: context.tool_name().clone(), tools: tools.clone(), sources: Vec::new(), limits };
    let run = around.nested(part, Some(context));
    let given = messages.len();
    let mut conversation = Conversation::new(&run);
    messages.into_iter().for_each(|message| conversation.push(message));
    let end = conversation.answer(model).await.map_err(|error| match error {
        RunError::Tool(error) => error,
        RunError::Model(error) => failed(model, error),
    })?;
    match end {
        None | Some(RunEnd::Done) => Ok(conversation.into_messages().split_off(given)),
        Some(RunEnd::Limit { limit }) => {
            around.limits().check().map_err(|limit| around.inner.refuse(limit))?;
            let message = format!("the model of `{}` was stopped: {limit}", context.tool_name());
            Err(ToolError::of(ErrorKind::Limit, message))
        }
        Some(RunEnd::Cancelled) => Err(guard::cancelled()),
        Some(RunEnd::Terminated { reason }) => Err(ToolError::fatal(reason)),
        Some(RunEnd::Failed { message }) => Err(ToolError::fatal(message)),
    }
}

/// The answer of a model. A panic in the model, or in those who hear its answer while it comes, is an error of it.
pub(crate) async fn unbroken(
    model: &dyn Model,
    answer: impl Future<Output = Result<ModelReply, ModelError>>,
) -> Result<ModelReply, ModelError> {
    let whose = format!("the model `{}`, or whoever hears its answer,", model.name());
    let answered = guard::caught(&whose, answer).await;
    answered.unwrap_or_else(|panic| Err(ModelError::new(ModelErrorKind::Reply, panic.message())))
}

/// A limit on the cost that cannot be kept is an error, not a limit that never holds.
pub(crate) fn check_price(limits: &LimitScope, model: &dyn Model) -> Result<(), ModelError> {
    if !limits.limits_cost() || model.cost(&Usage::default()).is_some() {
        return Ok(());
    }
    let name = model.name();
    let message = format!("the price of `{name}` is not known, so its cost cannot be limited");
    Err(ModelError::new(ModelErrorKind::Request, message))
}

fn failed(model: &dyn Model, error: ModelError) -> ToolError {
    ToolError::new(format!("the model `{}` did not answer: {error}", model.name())).with_source(error)
}
