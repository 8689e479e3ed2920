//! The loop: the model answers, its calls are made, the results go back, until it asks for nothing more.
//!
//! Only this file ends runs. A limit, an approver's word or a cancel ends one cleanly, with the conversation so far.

use tokio::time::Instant;
use toolwright_core::{
    Message, Model, ModelError, ModelErrorKind, ModelOptions, ModelReply, ModelRequest, ToolCall, ToolChoice,
    ToolError, Usage,
};

use crate::events::EventKind;
use crate::limits::LimitReached;
use crate::run::{Run, RunEnd};

/// Which of the model's calls are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolCalls {
    /// All, until the model asks for nothing more.
    #[default]
    Loop,
    /// Those of the first answer; then the loop returns.
    Single,
    /// None: the loop returns with the calls pending, for the caller to make.
    None,
}

/// How a loop goes.
#[derive(Debug, Clone, Default)]
pub struct Loop {
    /// Which calls are made.
    pub tool_calls: ToolCalls,
    /// Whether the model must, may or may not call a tool. A named tool is asked for once; then the model is free.
    pub tool_choice: ToolChoice,
    /// How the model is to answer.
    pub options: ModelOptions,
}

/// What a loop came to.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopOutcome {
    /// The whole conversation.
    pub messages: Vec<Message>,
    /// Calls that were asked for and not made.
    pub pending: Vec<ToolCall>,
    /// How it ended; `None` while calls are pending.
    pub end: Option<RunEnd>,
}

impl LoopOutcome {
    /// The text of the model's last answer.
    pub fn completion(&self) -> String {
        let last = self.messages.iter().rev().find_map(|message| match message {
            Message::Assistant(assistant) => Some(assistant.text()),
            _ => None,
        });
        last.unwrap_or_default()
    }
}

/// Why a run failed.
#[non_exhaustive]
#[derive(Debug)]
pub enum RunError {
    /// A tool, or the runtime, broke.
    Tool(ToolError),
    /// The model could not answer.
    Model(ModelError),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Tool(_) => f.write_str("a tool call ended the run"),
            RunError::Model(_) => f.write_str("the model could not answer"),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Tool(error) => Some(error),
            RunError::Model(error) => Some(error),
        }
    }
}

impl From<ToolError> for RunError {
    fn from(error: ToolError) -> Self {
        RunError::Tool(error)
    }
}

pub(crate) async fn generate_loop(
    run: &Run,
    model: &dyn Model,
    messages: Vec<Message>,
    how: &Loop,
) -> Result<LoopOutcome, RunError> {
    for message in &messages {
        run.inner.events.emit(EventKind::MessageAdded { message: message.clone() })?;
    }
    let mut talk = Talk { run, model, messages, choice: how.tool_choice.clone(), options: &how.options };
    let pending = talk.go(how.tool_calls).await?;
    let end = if pending.is_empty() { Some(run.ended().unwrap_or(RunEnd::Done)) } else { run.ended() };
    Ok(LoopOutcome { messages: talk.messages, pending, end })
}

struct Talk<'a> {
    run: &'a Run,
    model: &'a dyn Model,
    messages: Vec<Message>,
    choice: ToolChoice,
    options: &'a ModelOptions,
}

impl Talk<'_> {
    /// Goes on until the model asks for nothing, the run ends, or calls are left to the caller.
    async fn go(&mut self, which: ToolCalls) -> Result<Vec<ToolCall>, RunError> {
        loop {
            if self.run.ended().is_some() || self.run.inner.cancel.is_cancelled() {
                return Ok(Vec::new());
            }
            if let Err(limit) = self.run.limits().admit_turn(self.messages.len()) {
                self.limit_reached(limit)?;
                return Ok(Vec::new());
            }
            let Some(reply) = self.answer().await? else { return Ok(Vec::new()) };
            let calls = reply.message.tool_calls.clone();
            let fail_fast = reply.message.fail_fast.clone();
            self.add(Message::Assistant(reply.message))?;
            if let Err(limit) =
                self.run.limits().spend(reply.usage, self.model.cost(&reply.usage).unwrap_or(0.0))
            {
                self.limit_reached(limit)?;
                return Ok(Vec::new());
            }
            if calls.is_empty() {
                return Ok(Vec::new());
            }
            if which == ToolCalls::None {
                return Ok(calls);
            }
            let results = match self.run.call_all_failing_fast(calls, &fail_fast).await {
                Ok(results) => results,
                // The approver ended the run: that is an end, not a failure.
                Err(error) => match self.run.ended() {
                    Some(RunEnd::Terminated { .. } | RunEnd::Limit { .. } | RunEnd::Cancelled) => {
                        return Ok(Vec::new());
                    }
                    _ => return Err(error.into()),
                },
            };
            for result in results {
                self.add(Message::Tool(result))?;
            }
            if let ToolChoice::Tool(_) = self.choice {
                self.choice = ToolChoice::Auto;
            }
            if which == ToolCalls::Single {
                return Ok(Vec::new());
            }
        }
    }

    /// The model's answer, or none when the run was stopped while it thought.
    async fn answer(&self) -> Result<Option<ModelReply>, RunError> {
        self.check_price()?;
        let (tools, choice) = self.choice.resolve(self.run.tools().await?.specs());
        let request = ModelRequest {
            messages: &self.messages,
            tools: &tools,
            tool_choice: &choice,
            options: self.options,
        };
        let inner = &self.run.inner;
        let deadline = inner.limits.deadline(None).map_err(ToolError::from)?;
        let asked = Instant::now();
        let Ok(reply) = inner.unless_stopped(&inner.cancel, deadline, self.model.generate(request)).await
        else {
            return Ok(None);
        };
        let reply = reply.map_err(|error| {
            inner.end(RunEnd::Failed { message: error.to_string() });
            RunError::Model(error)
        })?;
        inner.events.emit(EventKind::ModelReplied {
            model: self.model.name().to_owned(),
            usage: reply.usage,
            cost: self.model.cost(&reply.usage),
            duration: asked.elapsed(),
        })?;
        Ok(Some(reply))
    }

    /// A limit on the cost that cannot be kept is an error, not a limit that never holds.
    fn check_price(&self) -> Result<(), RunError> {
        if !self.run.limits().limits_cost() || self.model.cost(&Usage::default()).is_some() {
            return Ok(());
        }
        let name = self.model.name();
        let message = format!("the price of `{name}` is not known, so its cost cannot be limited");
        self.run.inner.end(RunEnd::Failed { message: message.clone() });
        Err(RunError::Model(ModelError::new(ModelErrorKind::Request, message)))
    }

    fn add(&mut self, message: Message) -> Result<(), ToolError> {
        if self.run.inner.events.wanted() {
            self.run.inner.events.emit(EventKind::MessageAdded { message: message.clone() })?;
        }
        self.messages.push(message);
        Ok(())
    }

    fn limit_reached(&self, limit: LimitReached) -> Result<(), ToolError> {
        self.run.inner.end(RunEnd::Limit { limit: limit.clone() });
        self.run.inner.events.emit(EventKind::LimitHit { limit })
    }
}
