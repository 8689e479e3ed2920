//! The loop: the model answers, its calls are made, the results go back, until it asks for nothing more.
//!
//! A limit, an approver's word or a cancel ends a run cleanly, with the conversation so far. Whoever meets the end says
//! so (a call its limit, an approver his word), the first reason stays, and the loop goes no further.

use std::ops::Range;
use std::sync::Arc;

use tokio::time::Instant;
use toolwright_core::{
    AssistantMessage, CancelToken, ErrorInfo, ErrorKind, Message, Model, ModelDelta, ModelError,
    ModelErrorKind, ModelOptions, ModelReply, ModelRequest, StopReason, ToolCall, ToolChoice, ToolError,
    ToolResult, Toolset, Usage,
};

use crate::agent::Handoff;
use crate::conversation::Said;
use crate::events::EventKind;
use crate::limits::{self, LimitKind};
use crate::repeats::{self, Repeats};
use crate::run::{Run, RunEnd};
use crate::{ask, batch, call, direct, history, parse};

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
    /// Whether the model must, may or may not call a tool.
    pub tool_choice: ToolChoice,
    /// What the choice becomes once tools were called, for example [`ToolChoice::None`] to switch them off. Left out, a
    /// named tool is asked for once and then the model is free; everything else stays.
    pub choice_after: Option<ToolChoice>,
    /// How the model is to answer.
    pub options: ModelOptions,
    /// What happens when the conversation no longer fits the model.
    pub overflow: Overflow,
    /// Ends the loop when one of these holds after calls were made.
    pub stop_when: Vec<StopWhen>,
}

/// What happens when a conversation no longer fits its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The middle of it is no longer sent: the instructions, the first question and the latest messages are, with a note
    /// in between. The conversation itself stays whole.
    #[default]
    LeaveOutMiddle,
    /// The model's answer, or its error, is the end.
    Stop,
}

/// A reason to end a loop; it looks at the conversation.
#[derive(Clone)]
pub struct StopWhen(Arc<Condition>);

type Condition = dyn Fn(&[Message]) -> bool + Send + Sync;

impl StopWhen {
    /// Ends the loop when this holds.
    pub fn new(holds: impl Fn(&[Message]) -> bool + Send + Sync + 'static) -> Self {
        StopWhen(Arc::new(holds))
    }

    pub(crate) fn holds(&self, messages: &[Message]) -> bool {
        (self.0)(messages)
    }
}

impl std::fmt::Debug for StopWhen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StopWhen")
    }
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
        completion(&self.messages)
    }
}

/// The text of the model's last answer in a conversation.
pub fn completion(messages: &[Message]) -> String {
    last_assistant(messages).map(|(_, message)| message.text()).unwrap_or_default()
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

/// Lets the model work on what was said until it asks for nothing, the run ends, `stop` fires, or calls are left to the
/// caller (`None`). New messages are added as they come, so that whatever ends this, they are there.
pub(crate) async fn go(
    run: &Run,
    model: &dyn Model,
    said: &mut Said,
    how: &Loop,
    stop: &CancelToken,
) -> Result<Option<RunEnd>, RunError> {
    let choice = how.tool_choice.clone();
    let repeats = match run.limits().repeats() {
        Some(_) => Repeats::so_far(&said.messages, !unanswered(&said.messages).is_empty()),
        None => Repeats::default(),
    };
    let mut talk =
        Talk { run, model, said, how, choice, stop, left_out: 0..0, repeats, unread: 0, tools: None };
    let left_to_caller = talk.go().await?;
    Ok(end(run, stop, left_to_caller))
}

/// How work ended; `None` when it goes on.
pub(crate) fn end(run: &Run, stop: &CancelToken, goes_on: bool) -> Option<RunEnd> {
    match run.ended() {
        Some(end) => Some(end),
        None if stop.is_cancelled() => Some(RunEnd::Cancelled),
        None if goes_on => None,
        None => Some(RunEnd::Done),
    }
}

/// How often in a row a model is asked to mend a call that the vendor could not read.
const UNREAD: usize = 3;

/// How often in a row a model may pause without having said anything.
const PAUSES: usize = 3;

/// What it is told then.
const MEND: &str = "Your last answer was meant to call a tool, and the call could not be read, so nothing was called. Make \
     the call again, with arguments that fit the tool's parameters, or answer without a tool.";

struct Talk<'a> {
    run: &'a Run,
    model: &'a dyn Model,
    said: &'a mut Said,
    how: &'a Loop,
    choice: ToolChoice,
    stop: &'a CancelToken,
    /// The messages that no longer fit the model.
    left_out: Range<usize>,
    repeats: Repeats,
    /// How many answers in a row held a call that the vendor could not read.
    unread: usize,
    /// The tools the model was last told of. Its calls are made with them, and with no others.
    tools: Option<Toolset>,
}

impl Talk<'_> {
    /// Goes on until there is nothing more to do here; true when calls are left to the caller.
    async fn go(&mut self) -> Result<bool, RunError> {
        // Calls that an earlier answer left are made first: this is how another process goes on.
        let mut calls = unanswered(&self.said.messages);
        // The last request was too long, and is made again without its middle.
        let mut again = false;
        let mut pauses = 0;
        loop {
            if self.stopped() {
                return Ok(false);
            }
            if calls.is_empty() {
                let limits = self.run.limits();
                let admitted = match std::mem::take(&mut again) {
                    true => limits.check(),
                    false => limits.admit_turn(self.said.messages.len()),
                };
                if let Err(limit) = admitted {
                    self.run.inner.limit_reached(limit)?;
                    return Ok(false);
                }
                let Some(reply) = self.answer().await? else { return Ok(false) };
                let cost = self.model.cost(&reply.usage).unwrap_or(0.0);
                let spent = self.run.limits().spend(reply.usage, cost);
                if reply.stop == StopReason::ContextLength && spent.is_ok() && self.leave_out_more()? {
                    again = true;
                    continue;
                }
                calls = reply.message.tool_calls.clone();
                pauses = if reply.message.content.is_empty() && calls.is_empty() { pauses + 1 } else { 0 };
                self.said.stop = Some(reply.stop);
                self.add(Message::Assistant(reply.message))?;
                if let Err(limit) = spent {
                    self.run.inner.limit_reached(limit)?;
                    return Ok(false);
                }
                if !makes_calls(reply.stop) {
                    for call in std::mem::take(&mut calls) {
                        self.add(Message::Tool(not_made(&call, reply.stop)))?;
                    }
                    if reply.stop == StopReason::MalformedCall && self.unread < UNREAD {
                        self.unread += 1;
                        self.add(Message::user(MEND))?;
                        continue;
                    }
                    return Ok(false);
                }
                self.unread = 0;
                if calls.is_empty() {
                    // What was interrupted goes on once the model has its own words back.
                    if reply.stop == StopReason::Paused && pauses < PAUSES {
                        continue;
                    }
                    return Ok(false);
                }
                self.refuse_unoffered(&mut calls)?;
            }
            if !self.refuse_repeated(&mut calls)? {
                return Ok(false);
            }
            if self.how.tool_calls == ToolCalls::None {
                return Ok(true);
            }
            if !self.call(std::mem::take(&mut calls)).await? || self.how.tool_calls == ToolCalls::Single {
                return Ok(false);
            }
            if self.how.stop_when.iter().any(|stop| stop.holds(&self.said.messages)) {
                return Ok(false);
            }
            match (&self.how.choice_after, &self.choice) {
                (Some(after), _) => self.choice = after.clone(),
                (None, ToolChoice::Tool(_)) => self.choice = ToolChoice::Auto,
                _ => {}
            }
        }
    }

    /// Takes out the calls of tools that the model was not told of this time; each gets the result that says so.
    fn refuse_unoffered(&mut self, calls: &mut Vec<ToolCall>) -> Result<(), ToolError> {
        let Some(offered) = self.tools.clone() else { return Ok(()) };
        let all = self.run.inner.current_tools();
        let hidden = |call: &mut ToolCall| offered.find(&call.name).is_err() && all.find(&call.name).is_ok();
        for call in calls.extract_if(.., hidden) {
            self.add(Message::Tool(not_offered(&call, &offered)))?;
        }
        Ok(())
    }

    /// Takes out calls that were asked for too often in a row; each gets the result that says so. False when that ended
    /// the run.
    fn refuse_repeated(&mut self, calls: &mut Vec<ToolCall>) -> Result<bool, ToolError> {
        let Some(max) = self.run.limits().repeats() else { return Ok(true) };
        // All that the model asked for counts, also what it cannot have.
        let asked = last_assistant(&self.said.messages).map(|(_, message)| &*message.tool_calls);
        let length = self.repeats.count(asked.unwrap_or_default());
        if length > max + 1 {
            self.run.inner.limit_reached(limits::reached(LimitKind::Repeats, max as f64, length as f64))?;
            return Ok(false);
        }
        if length > max {
            for call in calls.drain(..) {
                self.add(Message::Tool(repeats::told(&call, max)))?;
            }
        }
        Ok(true)
    }

    /// Makes calls and adds their results; false when that ended the run, or the turn.
    async fn call(&mut self, calls: Vec<ToolCall>) -> Result<bool, RunError> {
        let tools = self.tools.take();
        make(self.run, self.said, tools, calls, self.stop).await
    }

    /// The model's answer, or none when it was stopped while it thought. What it had said by then stays.
    async fn answer(&mut self) -> Result<Option<ModelReply>, RunError> {
        ask::check_price(self.run.limits(), self.model).map_err(RunError::Model)?;
        let set = self.run.inner.refresh_tools(self.stop).await?;
        if self.stopped() {
            return Ok(None);
        }
        let offered = match &self.choice {
            ToolChoice::None => Toolset::new(),
            ToolChoice::Tool(name) => set.clone().filtered([name]),
            ToolChoice::Auto | ToolChoice::Any => set.clone(),
        };
        let (tools, choice) = self.choice.resolve(offered.specs());
        let sent = history::for_model(&self.said.messages, &set, self.left_out.clone())?;
        let request =
            ModelRequest { messages: &sent, tools: &tools, tool_choice: &choice, options: &self.how.options };
        let inner = &self.run.inner;
        let deadline = match inner.limits.deadline(None) {
            Ok(deadline) => deadline,
            Err(limit) => {
                self.run.inner.limit_reached(limit)?;
                return Ok(None);
            }
        };
        let asked = Instant::now();
        let mut said = String::new();
        // What an agent says while it answers a call is not the answer of the conversation.
        let inside = inner.outer.as_ref().is_some_and(|outer| outer.span.is_some());
        let listeners = if inside { &[] } else { inner.events.deltas.as_slice() };
        let mut hear = |delta: ModelDelta<'_>| {
            if let ModelDelta::Text(text) = delta {
                said.push_str(text);
            }
            listeners.iter().for_each(|listener| listener(delta));
        };
        let work = async {
            match listeners.is_empty() {
                true => self.model.generate(request).await,
                false => self.model.generate_streaming(request, &mut hear).await,
            }
        };
        let work = ask::unbroken(self.model, work);
        let Ok(reply) = inner.unless_stopped(self.stop, deadline, work).await else {
            if !said.is_empty() {
                self.add(Message::assistant(said))?;
            }
            return Ok(None);
        };
        let mut reply = match reply {
            Err(error) if error.kind() == ModelErrorKind::ContextLength => {
                let message = AssistantMessage::default();
                let reply = ModelReply { message, stop: StopReason::ContextLength, usage: Usage::default() };
                return if self.can_leave_out_more() { Ok(Some(reply)) } else { Err(RunError::Model(error)) };
            }
            other => other.map_err(RunError::Model)?,
        };
        call::to_real_names(&set, &mut reply.message.tool_calls);
        parse::deep_as_text(&mut reply.message.tool_calls);
        self.tools = Some(offered);
        inner.events.emit(EventKind::ModelReplied {
            model: self.model.name().to_owned(),
            usage: reply.usage,
            cost: self.model.cost(&reply.usage),
            duration: asked.elapsed(),
            stop: reply.stop,
        })?;
        Ok(Some(reply))
    }

    fn can_leave_out_more(&self) -> bool {
        self.how.overflow == Overflow::LeaveOutMiddle
            && !history::middle(&self.said.messages, &self.left_out).is_empty()
    }

    /// Leaves out more of a conversation that does not fit; false when nothing more can go.
    fn leave_out_more(&mut self) -> Result<bool, ToolError> {
        if !self.can_leave_out_more() {
            return Ok(false);
        }
        self.left_out = history::middle(&self.said.messages, &self.left_out);
        self.run.inner.events.emit(EventKind::MiddleLeftOut { messages: self.left_out.len() })?;
        Ok(true)
    }

    fn stopped(&self) -> bool {
        self.run.ended().is_some() || self.stop.is_cancelled()
    }

    fn add(&mut self, message: Message) -> Result<(), ToolError> {
        self.said.add(self.run, message)
    }
}

/// Makes calls of the last answer, with these tools or those of the run, and adds their results; false when that ended
/// the run, or the turn.
pub(crate) async fn make(
    run: &Run,
    said: &mut Said,
    tools: Option<Toolset>,
    mut calls: Vec<ToolCall>,
    stop: &CancelToken,
) -> Result<bool, RunError> {
    let fail_fast = last_assistant(&said.messages).map(|(_, message)| message.fail_fast.clone());
    let fail_fast = fail_fast.unwrap_or_default();
    let tools = match tools {
        Some(tools) => tools,
        None => run.inner.refresh_tools(stop).await?,
    };
    let refused = direct::refuse_mixed(&tools, &mut calls);
    let results = batch::Results::default();
    let mut made = Made { said: &mut *said, run, tools: &tools, results: results.clone(), refused };
    let outcome = batch::run_into(&results, &run.inner, &tools, calls, &fail_fast, stop).await;
    let (answered, handoffs) = made.add()?;
    drop(made);
    if let Err(error) = outcome {
        // An approver ended the run: that is an end, not a failure.
        return match run.ended() {
            Some(RunEnd::Terminated { .. } | RunEnd::Cancelled) => Ok(false),
            _ => Err(error.into()),
        };
    }
    // Several agents go on one after the other, each with what the one before has said.
    for handoff in handoffs {
        if run.ended().is_some() || stop.is_cancelled() {
            return Ok(false);
        }
        let (added, outcome) = handoff.take_over(run, &said.messages, stop).await;
        for message in added {
            said.add(run, message)?;
        }
        outcome?;
    }
    Ok(!answered)
}

/// Whether the calls of an answer that ended so are made. Those of one that was refused, or that ended for a reason
/// nobody knows, are not; of one that was cut off, the model's client has marked what is not whole.
fn makes_calls(stop: StopReason) -> bool {
    !matches!(stop, StopReason::Refusal | StopReason::MalformedCall | StopReason::Other)
}

/// The result of a call that is not made, because the answer that asks for it ended as it did.
fn not_made(call: &ToolCall, stop: StopReason) -> ToolResult {
    let why = stop.warning().unwrap_or("the answer was not whole");
    let message = format!("this call was not made: {why}");
    ToolResult::failed(call, ErrorInfo { kind: ErrorKind::Cancelled, message, hint: None })
}

/// The result of a call that is not made, because the model was not told of the tool when it was asked.
fn not_offered(call: &ToolCall, offered: &Toolset) -> ToolResult {
    let names: Vec<&str> = offered.names().collect();
    let error = ErrorInfo {
        kind: ErrorKind::Parsing,
        message: format!("the tool `{}` was not offered this time, so it was not called", call.name),
        hint: Some(match names.as_slice() {
            [] => "no tools are available now: answer without one".to_owned(),
            names => format!("what was offered: {}", names.join(", ")),
        }),
    };
    ToolResult::failed(call, error)
}

/// The results of calls on their way into the conversation. They get there also when a call breaks the run, or when
/// nobody waits any more: what was done is not done again.
struct Made<'a> {
    said: &'a mut Said,
    run: &'a Run,
    tools: &'a Toolset,
    results: batch::Results,
    /// Calls that were not made, with their places.
    refused: Vec<(usize, ToolResult)>,
}

impl Made<'_> {
    /// Adds the results there are. Says whether one of them is the answer, and who goes on with the conversation.
    fn add(&mut self) -> Result<(bool, Vec<Handoff>), ToolError> {
        self.results.insert(std::mem::take(&mut self.refused));
        let mut results = self.results.take();
        let answer = direct::answer(self.tools, &mut results);
        let entry = |result: &ToolResult| self.tools.get(&result.name);
        let handoffs = results
            .iter()
            .filter(|result| !result.is_error())
            .filter_map(|result| entry(result).and_then(|entry| Handoff::of(&*entry.tool)))
            .collect();
        let answered = answer.is_some();
        for message in results.into_iter().map(Message::Tool).chain(answer) {
            self.said.add(self.run, message)?;
        }
        Ok((answered, handoffs))
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        // A record that cannot be written has ended the run already.
        let _ = self.add();
    }
}

/// The calls of the last assistant message that have no result yet. Once somebody else has spoken, nobody waits for
/// them any more.
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
