//! The one way to ask a model: admit, set the deadline, mask, generate, record, charge.
//!
//! The loop, tools and servers ask through it, so that every answer is paid for by the run and is on record.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use tokio::time::Instant;
use toolwright_core::{
    AskPurpose, CancelToken, DynModel, ErrorKind, Message, ModelDelta, ModelError, ModelErrorKind,
    ModelReply, ModelRequest, ToolContext, ToolError, Toolset, Usage,
};

use crate::conversation::Conversation;
use crate::events::{DeltaListener, EventKind};
use crate::limits::{LimitReached, RunLimits};
use crate::run::{AgentRole, Run, RunEnd, RunFrame, RunOptions};
use crate::turn::RunError;
use crate::{guard, history};

/// What a request counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// A turn of a conversation of so many messages.
    Turn {
        /// The messages there are.
        messages: usize,
    },
    /// No turn of its own: the request of a tool, or the last one again without its middle.
    NoTurn,
}

/// A model that the limits of the run allow to be asked once.
pub(crate) struct Admitted<'a> {
    run: &'a RunFrame,
    model: &'a DynModel,
}

/// What a model is asked, and how long it has.
pub(crate) struct ModelQuestion<'a> {
    pub(crate) request: ModelRequest<'a>,
    /// The tools that may rewrite their results for the model.
    pub(crate) rewriters: &'a Toolset,
    /// The messages that no longer fit the model.
    pub(crate) left_out: Range<usize>,
    pub(crate) cancel: &'a CancelToken,
    /// When the caller stops waiting, independent of the run's limits.
    pub(crate) own_end: Option<Instant>,
    /// Who receives the answer while it comes.
    pub(crate) listeners: &'a [DeltaListener],
}

/// The answer of a model, on record and charged.
pub(crate) struct ChargedReply {
    pub(crate) reply: ModelReply,
    /// The limit that its price went over.
    pub(crate) over: Option<LimitReached>,
}

/// Why there is no answer.
pub(crate) enum AskError {
    /// A limit does not allow the request; the run does not know of it yet.
    Limit(LimitReached),
    /// The wait was cancelled, or a limit ended the run meanwhile. `received` is the text that had come by
    /// then.
    Stopped { error: ToolError, received: String },
    /// The model could not answer.
    Model(ModelError),
    /// The runtime broke, or a sink did not take the event.
    Broken(ToolError),
}

impl From<LimitReached> for AskError {
    fn from(limit: LimitReached) -> Self {
        AskError::Limit(limit)
    }
}

impl From<ToolError> for AskError {
    fn from(error: ToolError) -> Self {
        AskError::Broken(error)
    }
}

impl<'a> Admitted<'a> {
    /// Admits a request to a model.
    pub(crate) fn new(
        run: &'a RunFrame,
        model: &'a DynModel,
        admission: Admission,
    ) -> Result<Self, AskError> {
        match admission {
            Admission::Turn { messages } => run.limits.admit_turn(messages)?,
            Admission::NoTurn => run.limits.check()?,
        }
        // A limit on the cost that cannot be kept is an error, not a limit that never holds.
        if run.limits.limits_cost() && model.cost(&Usage::default()).is_none() {
            let name = model.name();
            let message = format!("the price of `{name}` is not known, so its cost cannot be limited");
            return Err(AskError::Model(ModelError::new(ModelErrorKind::Request, message)));
        }
        Ok(Admitted { run, model })
    }

    /// Asks the model.
    pub(crate) async fn ask(self, question: ModelQuestion<'_>) -> Result<ChargedReply, AskError> {
        let Admitted { run, model } = self;
        let ModelQuestion { request, rewriters, left_out, cancel, own_end, listeners } = question;
        let mut sent = history::for_model(request.messages, rewriters, left_out)?;
        if let Some(cleaned) = run.shared.hidden.cleaned(&sent) {
            sent = Cow::Owned(cleaned);
        }
        let request = ModelRequest { messages: &sent, ..request };
        let deadline = run.limits.deadline(own_end)?;
        let asked = Instant::now();
        let mut received = String::new();
        let mut receive = |delta: ModelDelta<'_>| {
            if let ModelDelta::Text(text) = delta {
                received.push_str(text);
            }
            listeners.iter().for_each(|listener| listener(delta));
        };
        let work = contained(model, async {
            match listeners.is_empty() {
                true => model.generate(request).await,
                false => model.generate_streaming(request, &mut receive).await,
            }
        });
        let reply = match guard::unless_stopped(run, cancel, deadline, work).await {
            Ok(reply) => reply.map_err(AskError::Model)?,
            Err(error) => return Err(AskError::Stopped { error, received }),
        };
        let cost = model.cost(&reply.usage);
        run.shared.events.emit(EventKind::ModelReplied {
            model: model.name().to_owned(),
            usage: reply.usage,
            cost,
            duration: asked.elapsed(),
            stop: reply.stop,
        })?;
        let over = run.limits.spend(reply.usage, cost.unwrap_or(0.0)).err();
        Ok(ChargedReply { reply, over })
    }
}

/// The answer of a model. A panic in the model, or in a listener, is an error of the model.
async fn contained(
    model: &DynModel,
    answer: impl Future<Output = Result<ModelReply, ModelError>>,
) -> Result<ModelReply, ModelError> {
    let whose = format!("the model `{}`, or a listener to its answer,", model.name());
    let answered = guard::caught(&whose, answer).await;
    answered.unwrap_or_else(|panic| Err(ModelError::new(ModelErrorKind::Reply, panic.message())))
}

/// Asks once, outside the run's own loop: the outer error is the run's, the inner one the model's.
pub(crate) async fn once(
    run: &RunFrame,
    purpose: AskPurpose<'_>,
    model: &DynModel,
    request: ModelRequest<'_>,
) -> Result<Result<ModelReply, ModelError>, ToolError> {
    let (admission, cancel, own_end) = match purpose {
        AskPurpose::Call(context) => (Admission::NoTurn, context.cancel_token(), context.deadline()),
        AskPurpose::Turn { .. } if run.by_person => {
            return Err(ToolError::fatal(
                "the calls of this run are a person's: no model can have its conversation",
            ));
        }
        AskPurpose::Turn { messages } => (Admission::Turn { messages }, &run.cancel, None),
    };
    let answer = async {
        let (rewriters, left_out) = (&Toolset::new(), 0..0);
        let question = ModelQuestion { request, rewriters, left_out, cancel, own_end, listeners: &[] };
        Admitted::new(run, model, admission)?.ask(question).await
    };
    match answer.await {
        Ok(ChargedReply { over: Some(limit), .. }) | Err(AskError::Limit(limit)) => Err(run.refuse(limit)),
        Ok(ChargedReply { reply, over: None }) => Ok(Ok(reply)),
        Err(AskError::Model(error)) => Ok(Err(error)),
        Err(AskError::Stopped { error, .. } | AskError::Broken(error)) => Err(error),
    }
}

/// Lets a model work with tools for the call of `context`, in the loop of all models, and gives what it added
/// to the messages. The call ends with the run's limits as with its own.
pub(crate) async fn converse(
    host: Arc<RunFrame>,
    context: &ToolContext,
    model: &DynModel,
    tools: &Toolset,
    messages: Vec<Message>,
    turns: u64,
) -> Result<Vec<Message>, ToolError> {
    let around = Run { frame: host };
    let limits = RunLimits { turns: Some(turns), ..RunLimits::default() };
    let options = RunOptions { tools: tools.clone(), limits, ..RunOptions::default() };
    let run = around.nested(context.tool_name().clone(), options, AgentRole::Answers(context));
    let given = messages.len();
    let mut conversation = Conversation::new(&run);
    messages.into_iter().for_each(|message| conversation.push(message));
    let end = conversation.answer(model).await.map_err(|error| match error {
        RunError::Tool(error) => error,
        RunError::Model(error) => {
            ToolError::new(format!("the model `{}` did not answer: {error}", model.name())).with_source(error)
        }
    })?;
    match end {
        None | Some(RunEnd::Done) => Ok(conversation.into_messages().split_off(given)),
        Some(RunEnd::Limit { limit }) => {
            around.limits().check().map_err(|limit| around.frame.refuse(limit))?;
            let message = format!("the model of `{}` was stopped: {limit}", context.tool_name());
            Err(ToolError::of(ErrorKind::Limit, message))
        }
        Some(RunEnd::Cancelled) => Err(guard::cancelled()),
        Some(RunEnd::Terminated { reason }) => Err(ToolError::fatal(reason)),
        Some(RunEnd::Failed { message }) => Err(ToolError::fatal(message)),
    }
}
