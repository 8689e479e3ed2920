//! Models that tools ask: their answers are paid for by the run like those of its own loop.

use tokio::time::Instant;
use toolwright_core::{
    Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, ToolContext, ToolError, Usage,
};

use crate::call::limit_reached;
use crate::events::EventKind;
use crate::limits::LimitScope;
use crate::run::RunInner;

/// Asks a model for the call of `context`. Tokens, money and time count against the run's limits; turns and messages
/// are those of its own loop.
pub(crate) async fn ask(
    run: &RunInner,
    context: &ToolContext,
    model: &dyn Model,
    request: ModelRequest<'_>,
) -> Result<ModelReply, ToolError> {
    let refuse = |limit| {
        limit_reached(run, &limit);
        ToolError::from(limit)
    };
    run.limits.check().map_err(refuse)?;
    check_price(&run.limits, model).map_err(|error| failed(model, error))?;
    let deadline = run.limits.deadline(context.deadline()).map_err(refuse)?;
    let asked = Instant::now();
    let reply = run.unless_stopped(context.cancel_token(), deadline, model.generate(request)).await?;
    let reply = reply.map_err(|error| failed(model, error))?;
    let cost = model.cost(&reply.usage);
    run.events.emit(EventKind::ModelReplied {
        model: model.name().to_owned(),
        usage: reply.usage,
        cost,
        duration: asked.elapsed(),
    })?;
    run.limits.spend(reply.usage, cost.unwrap_or(0.0)).map_err(refuse)?;
    Ok(reply)
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
