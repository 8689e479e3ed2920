//! The loop: the model answers, its calls are made, the results go back, until it asks for nothing more.
//!
//! A limit, an approver's decision or a cancel ends a run cleanly, with the conversation so far. Whatever
//! meets the end first records it (a call its limit, an approver the decision), the first reason stays, and
//! the loop goes no further. [`next`] decides what comes next; this file does it.

mod next;
mod options;
mod outcome;
mod refusals;
mod repeats;
mod results;

use std::ops::Range;

use toolwright_core::{
    AssistantMessage, CancelToken, DynModel, Message, ModelErrorKind, ModelReply, ModelRequest, StopReason,
    ToolCall, ToolChoice, ToolError, Toolset, Usage,
};

use self::next::{AskRequest, LoopEvent, LoopState, Next};
use self::repeats::Repeats;
use self::results::PendingResults;
use crate::ask::{Admission, Admitted, AskError, ChargedReply, ModelQuestion};
use crate::conversation::MessageLog;
use crate::events::EventKind;
use crate::limits::{self, LimitKind};
use crate::run::{Run, RunEnd};
use crate::{batch, call, history, parse};

pub use options::{LoopOptions, Overflow, StopWhen, ToolCalls};
pub use outcome::{LoopOutcome, RunError, completion};
pub(crate) use refusals::Refusals;

/// The message after a call that could not be read.
const REPAIR: &str = "Your last answer was meant to call a tool, and the call could not be read, so nothing was called. Make \
     the call again, with arguments that fit the tool's parameters, or answer without a tool.";

/// What is left to do when a loop stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing that the loop knows of.
    Nothing,
    /// Calls for the caller to make, or a turn of the model.
    Work,
}

/// Lets the model work on the conversation until it asks for nothing, the run ends, `stop` fires, or calls
/// are left to the caller (`None`). New messages are added as they come, so that whatever ends this, they are
/// there.
pub(crate) async fn run_loop(
    run: &Run,
    model: &DynModel,
    log: &mut MessageLog,
    options: &LoopOptions,
    stop: &CancelToken,
) -> Result<Option<RunEnd>, RunError> {
    let repeats = match run.limits().repeats() {
        Some(_) => Repeats::so_far(&log.messages, !unanswered(&log.messages).is_empty()),
        None => Repeats::default(),
    };
    let turns = TurnLoop { run, model, log, options, stop, left_out: 0..0, repeats, offered: None };
    let left = turns.go().await?;
    Ok(end(run, stop, left))
}

/// How work ended; `None` when it goes on.
pub(crate) fn end(run: &Run, stop: &CancelToken, left: Left) -> Option<RunEnd> {
    match (run.ended(), left) {
        (Some(end), _) => Some(end),
        (None, _) if stop.is_cancelled() => Some(RunEnd::Cancelled),
        (None, Left::Work) => None,
        (None, Left::Nothing) => Some(RunEnd::Done),
    }
}

struct TurnLoop<'a> {
    run: &'a Run,
    model: &'a DynModel,
    log: &'a mut MessageLog,
    options: &'a LoopOptions,
    stop: &'a CancelToken,
    /// The messages that no longer fit the model.
    left_out: Range<usize>,
    repeats: Repeats,
    /// The tools that the model was last offered. Its calls are made with them, and with no others.
    offered: Option<Toolset>,
}

impl TurnLoop<'_> {
    async fn go(mut self) -> Result<Left, RunError> {
        if self.stopped() {
            return Ok(Left::Nothing);
        }
        let mut state = LoopState::new(self.options);
        let mut event = LoopEvent::Began { pending: unanswered(&self.log.messages) };
        loop {
            let happened = match state.step(event, &self.log.messages) {
                Next::Ask(request) => self.ask(request, &state.choice).await?,
                Next::Call(calls) => match self.allowed(calls)? {
                    Some(calls) => Some(self.call(calls).await?),
                    None => None,
                },
                Next::Hand(calls) => {
                    let allowed = self.allowed(calls)?;
                    return Ok(if allowed.is_some() { Left::Work } else { Left::Nothing });
                }
                Next::Stop => None,
            };
            match happened {
                Some(happened) => event = happened,
                None => return Ok(Left::Nothing),
            }
        }
    }

    /// Asks the model; `None` when the run ended, or the loop was stopped, before it answered. The text that
    /// had come by then stays.
    async fn ask(&mut self, request: AskRequest, choice: &ToolChoice) -> Result<Option<LoopEvent>, RunError> {
        let admission = match request {
            AskRequest::Again => Admission::NoTurn,
            AskRequest::Turn => Admission::Turn { messages: self.log.messages.len() },
            AskRequest::Repair => {
                self.add(Message::user(REPAIR))?;
                Admission::Turn { messages: self.log.messages.len() }
            }
        };
        if self.stopped() {
            return Ok(None);
        }
        let ChargedReply { reply, over } = match self.answer(admission, choice).await {
            Ok(Some(answer)) => answer,
            Ok(None) => return Ok(None),
            Err(AskError::Limit(limit)) => {
                self.run.frame.limit_reached(limit)?;
                return Ok(None);
            }
            Err(AskError::Stopped { received, .. }) => {
                if !received.is_empty() {
                    self.add(Message::assistant(received))?;
                }
                return Ok(None);
            }
            Err(AskError::Model(error))
                if error.kind() == ModelErrorKind::ContextLength && self.can_leave_out_more() =>
            {
                let (message, stop) = (AssistantMessage::default(), StopReason::ContextLength);
                let over = self.run.limits().spend(Usage::default(), 0.0).err();
                ChargedReply { reply: ModelReply { message, stop, usage: Usage::default() }, over }
            }
            Err(AskError::Model(error)) => return Err(RunError::Model(error)),
            Err(AskError::Broken(error)) => return Err(error.into()),
        };
        if reply.stop == StopReason::ContextLength && over.is_none() && self.leave_out_more()? {
            return Ok(Some(LoopEvent::Shortened));
        }
        let stop = reply.stop;
        let mut calls = reply.message.tool_calls.clone();
        let silent = reply.message.content.is_empty() && calls.is_empty();
        self.log.stop = Some(stop);
        self.add(Message::Assistant(reply.message))?;
        if let Some(limit) = over {
            self.run.frame.limit_reached(limit)?;
            return Ok(None);
        }
        let unfinished = refusals::unfinished(stop, &mut calls);
        self.refuse(unfinished)?;
        Ok(Some(LoopEvent::Replied { stop, silent, calls }))
    }

    /// The model's answer; `None` when the loop was stopped before the model was asked.
    async fn answer(
        &mut self,
        admission: Admission,
        choice: &ToolChoice,
    ) -> Result<Option<ChargedReply>, AskError> {
        let run = &*self.run.frame;
        let admitted = Admitted::new(run, self.model, admission)?;
        let set = run.refresh_tools(self.stop).await?;
        if self.stopped() {
            return Ok(None);
        }
        let offered = match choice {
            ToolChoice::None => Toolset::new(),
            ToolChoice::Tool(name) => set.clone().filtered([name]),
            ToolChoice::Auto | ToolChoice::Any => set.clone(),
        };
        let (tools, tool_choice) = choice.resolve(offered.specs());
        let options = &self.options.options;
        let request =
            ModelRequest { messages: &self.log.messages, tools: &tools, tool_choice: &tool_choice, options };
        let mut answer = admitted
            .ask(ModelQuestion {
                request,
                rewriters: &set,
                left_out: self.left_out.clone(),
                cancel: self.stop,
                own_end: None,
                listeners: run.delta_listeners(),
            })
            .await?;
        call::to_real_names(&set, &mut answer.reply.message.tool_calls);
        parse::deep_as_text(&mut answer.reply.message.tool_calls);
        self.offered = Some(offered);
        Ok(Some(answer))
    }

    /// The calls that may be made; the others get their results. `None` when asking for them ended the run.
    fn allowed(&mut self, mut calls: Vec<ToolCall>) -> Result<Option<Vec<ToolCall>>, ToolError> {
        if let Some(offered) = &self.offered {
            let unoffered = refusals::unoffered(offered, &self.run.frame.tools.current(), &mut calls);
            self.refuse(unoffered)?;
        }
        let Some(max) = self.run.limits().repeats() else { return Ok(Some(calls)) };
        // All that the model asked for counts, also what it cannot have.
        let asked = last_assistant(&self.log.messages).map(|(_, message)| &*message.tool_calls);
        let length = self.repeats.count(asked.unwrap_or_default());
        if length > max + 1 {
            self.run.frame.limit_reached(limits::reached(LimitKind::Repeats, max as f64, length as f64))?;
            return Ok(None);
        }
        if length > max {
            self.refuse(refusals::repeated(max, &mut calls))?;
        }
        Ok(Some(calls))
    }

    async fn call(&mut self, calls: Vec<ToolCall>) -> Result<LoopEvent, RunError> {
        let tools = self.offered.take();
        let left = make_calls(self.run, self.log, tools, calls, self.stop).await?;
        Ok(LoopEvent::Called { over: left == Left::Nothing })
    }

    fn can_leave_out_more(&self) -> bool {
        self.options.overflow == Overflow::LeaveOutMiddle
            && !history::middle(&self.log.messages, &self.left_out).is_empty()
    }

    /// Leaves out more of a conversation that does not fit; false when nothing more can go.
    fn leave_out_more(&mut self) -> Result<bool, ToolError> {
        if !self.can_leave_out_more() {
            return Ok(false);
        }
        self.left_out = history::middle(&self.log.messages, &self.left_out);
        self.run.frame.shared.events.emit(EventKind::MiddleLeftOut { messages: self.left_out.len() })?;
        Ok(true)
    }

    fn stopped(&self) -> bool {
        self.run.ended().is_some() || self.stop.is_cancelled()
    }

    fn refuse(&mut self, refusals: Refusals) -> Result<(), ToolError> {
        refusals.into_iter().try_for_each(|(_, result)| self.add(Message::Tool(result)))
    }

    fn add(&mut self, message: Message) -> Result<(), ToolError> {
        self.log.add(self.run, message)
    }
}

/// Makes calls of the last answer, with these tools or those of the run, and adds their results. The model's
/// turn is left unless that ended the run, or one of the results is the answer.
pub(crate) async fn make_calls(
    run: &Run,
    log: &mut MessageLog,
    tools: Option<Toolset>,
    mut calls: Vec<ToolCall>,
    stop: &CancelToken,
) -> Result<Left, RunError> {
    let fail_fast = last_assistant(&log.messages).map(|(_, message)| message.fail_fast.clone());
    let fail_fast = fail_fast.unwrap_or_default();
    let tools = match tools {
        Some(tools) => tools,
        None => run.frame.refresh_tools(stop).await?,
    };
    let refused = refusals::mixed(&tools, &mut calls);
    let results = batch::Results::default();
    let mut pending =
        PendingResults { log: &mut *log, run, tools: &tools, results: results.clone(), refused };
    let outcome = batch::run_into(&results, &run.frame, &tools, calls, &fail_fast, stop).await;
    let (answered, handoffs) = pending.add()?;
    drop(pending);
    if let Err(error) = outcome {
        // An approver ended the run: that is an end, not a failure.
        return match run.ended() {
            Some(RunEnd::Terminated { .. } | RunEnd::Cancelled) => Ok(Left::Nothing),
            _ => Err(error.into()),
        };
    }
    // Several agents go on one after the other, each with what the one before has said.
    for handoff in handoffs {
        if run.ended().is_some() || stop.is_cancelled() {
            return Ok(Left::Nothing);
        }
        let (added, outcome) = handoff.take_over(run, &log.messages, stop).await;
        for message in added {
            log.add(run, message)?;
        }
        outcome?;
    }
    Ok(if answered { Left::Nothing } else { Left::Work })
}

/// The calls of the last assistant message that have no result yet. Once somebody else has spoken, nobody
/// waits for them any more.
pub(crate) fn unanswered(messages: &[Message]) -> Vec<ToolCall> {
    let Some((at, assistant)) = last_assistant(messages) else { return Vec::new() };
    let after = messages.get(at + 1..).unwrap_or_default();
    let mut calls = assistant.tool_calls.clone();
    for message in after {
        let Message::Tool(result) = message else { return Vec::new() };
        if let Some(at) = calls.iter().position(|call| call.id == result.call_id) {
            calls.remove(at);
        }
    }
    calls
}

fn last_assistant(messages: &[Message]) -> Option<(usize, &AssistantMessage)> {
    messages.iter().enumerate().rev().find_map(|(at, message)| match message {
        Message::Assistant(assistant) => Some((at, assistant)),
        _ => None,
    })
}
