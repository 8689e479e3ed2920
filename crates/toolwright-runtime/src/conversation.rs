//! A conversation that goes on: one run, one list of messages that grows with every answer.

use std::sync::{Arc, Mutex};

use toolwright_core::{CancelToken, DynModel, Message, StopReason, ToolCall, ToolError};
use toolwright_util::lock;

use crate::events::EventKind;
use crate::run::{Run, RunEnd};
use crate::state::RunState;
use crate::turn::{self, LoopOptions, RunError};

/// A conversation with a model that uses the tools of a run: what a chat program holds.
///
/// Every [`answer`](Self::answer) lets the model work until it has something to say. The conversation
/// outlives what goes wrong in one: an answer that is [stopped](Stopper), cut off by dropping its future, or
/// lost to a broken connection leaves all messages there were, and the next one goes on from them. With
/// [`RunBuilder::on_delta`](crate::RunBuilder::on_delta) the answers are heard while they come.
///
/// ```
/// use toolwright_core::{ModelDelta, Toolset};
/// use toolwright_models::{Reply, ScriptedModel};
/// use toolwright_runtime::{Conversation, Run, RunEnd};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let run = Run::builder(Toolset::new())
///     .on_delta(|delta| if let ModelDelta::Text(text) = delta { print!("{text}") })
///     .build()?;
/// let model = ScriptedModel::new([Reply::text("Hello!"), Reply::text("Bye!")]);
/// let mut chat = Conversation::new(&run);
/// let stopper = chat.stopper(); // for the handler of Ctrl-C: it ends an answer, not the conversation
/// assert_eq!(chat.say(&model, "Hi.").await?, Some(RunEnd::Done));
/// chat.say(&model, "I must go.").await?;
/// assert_eq!(chat.messages().len(), 4);
/// # stopper.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Conversation {
    run: Run,
    options: LoopOptions,
    log: MessageLog,
    stopper: Stopper,
}

impl Conversation {
    /// A conversation in which nothing was said yet.
    pub fn new(run: &Run) -> Self {
        Conversation {
            run: run.clone(),
            options: LoopOptions::default(),
            log: MessageLog::default(),
            stopper: Stopper::default(),
        }
    }

    /// Takes up a conversation where another process left it. The run is one that
    /// [resumes](crate::RunBuilder::resume) the same state.
    pub fn resume(run: &Run, state: &RunState) -> Self {
        let log = MessageLog { recorded: state.messages.len(), messages: state.messages.clone(), stop: None };
        Conversation { log, ..Conversation::new(run) }
    }

    /// The conversation with these options.
    #[must_use]
    pub fn with_loop(mut self, options: LoopOptions) -> Self {
        self.options = options;
        self
    }

    /// Its options; what is changed here holds from the next answer on.
    pub fn options_mut(&mut self) -> &mut LoopOptions {
        &mut self.options
    }

    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// What was said.
    pub fn messages(&self) -> &[Message] {
        &self.log.messages
    }

    /// What was said, for good.
    pub fn into_messages(self) -> Vec<Message> {
        self.log.messages
    }

    /// Why the model's last answer ended; `None` before there is one. See [`StopReason::warning`].
    pub fn last_stop(&self) -> Option<StopReason> {
        self.log.stop
    }

    /// Adds a message: what the user says, or the result of a pending call.
    pub fn push(&mut self, message: Message) {
        self.log.messages.push(message);
    }

    /// Forgets all but the first `count` messages.
    pub fn rewind(&mut self, count: usize) {
        self.log.messages.truncate(count);
        if self.log.recorded > count {
            self.log.recorded = count;
            // A record that cannot be written says so when the next message is.
            let _ = self.note(EventKind::Rewound { messages: count });
        }
    }

    /// Puts on record what happened to the conversation as a whole. What happens to an agent's is told with
    /// its call.
    fn note(&self, kind: EventKind) -> Result<(), ToolError> {
        match self.run.frame.outer {
            Some(_) => Ok(()),
            None => self.run.frame.shared.events.emit(kind),
        }
    }

    /// Calls that the model asked for and that have no result yet.
    pub fn pending(&self) -> Vec<ToolCall> {
        turn::unanswered(&self.log.messages)
    }

    /// Makes the calls that wait for a result, as [`answer`](Self::answer) does in automatic mode: a result
    /// may be the answer itself (`return_direct`), and an agent may take over. Says how that ended; `None`
    /// when it is the model's turn. Those calls that were made have their results here even when an error
    /// ends the rest, so that nothing is done twice.
    pub async fn make_pending(&mut self) -> Result<Option<RunEnd>, RunError> {
        self.log.catch_up(&self.run)?;
        let stop = self.stopper.arm(&self.run.frame.cancel);
        let calls = self.pending();
        let left = turn::make_calls(&self.run, &mut self.log, None, calls, &stop.token).await?;
        Ok(turn::end(&self.run, &stop.token, left))
    }

    /// What stops an answer under way, from another task or a signal handler.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// The conversation as one value, for another process to take up. An error when what a tool keeps in the
    /// store is no JSON.
    pub fn state(&self) -> Result<RunState, ToolError> {
        self.run.state(self.log.messages.clone(), self.pending())
    }

    /// Says something to the model and lets it [answer](Self::answer).
    pub async fn say(
        &mut self,
        model: &DynModel,
        text: impl Into<String>,
    ) -> Result<Option<RunEnd>, RunError> {
        self.push(Message::user(text));
        self.answer(model).await
    }

    /// Lets the model work until it has answered. Pending calls are made first. Says how that ended; `None`
    /// when calls are left to the caller. Only a limit, an approver and a cancelled run end the run with it.
    pub async fn answer(&mut self, model: &DynModel) -> Result<Option<RunEnd>, RunError> {
        self.log.catch_up(&self.run)?;
        let stop = self.stopper.arm(&self.run.frame.cancel);
        let outcome = turn::run_loop(&self.run, model, &mut self.log, &self.options, &stop.token).await;
        match &outcome {
            Err(RunError::Model(error)) => {
                self.note(EventKind::ModelFailed {
                    model: model.name().to_owned(),
                    message: error.to_string(),
                })?;
            }
            Ok(Some(RunEnd::Cancelled)) if self.run.ended().is_none() => {
                self.note(EventKind::AnswerStopped)?
            }
            _ => {}
        }
        outcome
    }
}

/// The messages of a conversation, and how many of them are on record.
#[derive(Debug, Default)]
pub(crate) struct MessageLog {
    pub(crate) messages: Vec<Message>,
    recorded: usize,
    /// Why the model's last answer ended.
    pub(crate) stop: Option<StopReason>,
}

impl MessageLog {
    /// Adds a message and puts it on record.
    pub(crate) fn add(&mut self, run: &Run, message: Message) -> Result<(), ToolError> {
        self.messages.push(message);
        self.catch_up(run)
    }

    fn catch_up(&mut self, run: &Run) -> Result<(), ToolError> {
        while let Some(message) = self.messages.get(self.recorded) {
            run.frame.record(message)?;
            self.recorded += 1;
        }
        Ok(())
    }
}

/// Stops the answer a [`Conversation`] is waiting for. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct Stopper(Arc<Mutex<Option<CancelToken>>>);

impl Stopper {
    /// Stops the answer under way: the model is no longer listened to, calls are told to stop, and what there
    /// is so far stays in the conversation. Says whether there was an answer to stop; a later one is not
    /// affected.
    pub fn stop(&self) -> bool {
        let token = self.lock().clone();
        token.inspect(CancelToken::cancel).is_some()
    }

    fn arm(&self, parent: &CancelToken) -> Armed<'_> {
        Armed { token: self.lock().insert(parent.child_token()).clone(), stopper: self }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<CancelToken>> {
        lock(&self.0)
    }
}

/// An answer under way; when it is over, or given up, there is nothing to stop.
struct Armed<'a> {
    token: CancelToken,
    stopper: &'a Stopper,
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        self.stopper.lock().take();
    }
}
