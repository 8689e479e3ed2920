//! A transcript as a model, an approver and an executor: each answers as it did then. What is needed is read
//! from the file at that moment; only ids and places are kept.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use toolwright_util::lock;

use serde_json::Value;
use tokio::sync::Notify;
use toolwright::approval::{ApprovalRequest, Approver, Decision};
use toolwright::content::{Message, ToolCall};
use toolwright::events::EventKind;
use toolwright::model::{Model, ModelError, ModelErrorKind, ModelReply, ModelRequest};
use toolwright::run::{Envelope, Executor, LocalExecutor, Stopper};
use toolwright::tool::{ErrorInfo, ErrorKind};
use toolwright::{ToolContext, ToolError, ToolOutput, Toolset};

use super::index::{ItemState, LineRange, TimelineKind};
use super::source::TranscriptSource;

/// How long a replay that is to be stopped waits for calls that were made then and may not be made now.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a record says: the model's answers, what others said, and how each call went.
pub struct Record {
    source: TranscriptSource,
    answers: Vec<LineRange>,
    next: AtomicUsize,
    /// What happened, as far as it has to happen again.
    pub scenes: Vec<Scene>,
    calls: Vec<RecordedCall>,
    /// The calls of each id and tool, in their order; models reuse ids.
    by_id: HashMap<(String, String), Vec<usize>>,
    used: Mutex<HashSet<(usize, Use)>>,
    /// The items of the calls that were answered whole.
    answered: Mutex<HashSet<usize>>,
    /// True when somebody, or a rule, was asked about a call, or may have been when the run was stopped.
    pub decisions: bool,
    /// What stops the replay where the run was stopped.
    stopper: OnceLock<Stopper>,
    /// How many calls of the replay are over, those that were cancelled apart, and who waits for more.
    over: AtomicUsize,
    one_more: Notify,
    /// Flows of today's file: they are run again, and what they call is answered from the record.
    flows: Vec<String>,
}

/// Something that happened.
pub enum Scene {
    /// Somebody spoke to the model.
    Said(LineRange),
    /// A model answered, or a result was the answer (`direct`).
    Answered {
        direct: bool,
        /// The ids and tools of its calls that were begun: a limit, a person, or what was offered, kept it
        /// from others.
        begun: Vec<(String, String)>,
    },
    /// A call that no answer of this record asked for was made.
    Called(LineRange),
}

/// A call that was made.
struct RecordedCall {
    item: usize,
    arguments: Value,
    /// True when a call inside it gave back more than the record keeps, or when it was stopped before there
    /// was one: that does not happen again by itself. Also when one inside it was of a server's tool that is
    /// not there, which a flow can neither name nor read as it did then.
    cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    Decision,
    Result,
}

impl Record {
    /// Reads where everything is. `flows` are the tools that can be run again without harm; what called one
    /// of `absent` cannot.
    pub fn of(source: TranscriptSource, flows: Vec<String>, absent: &HashSet<String>) -> Self {
        let mut record = Record {
            answers: Vec::new(),
            next: AtomicUsize::new(0),
            scenes: Vec::new(),
            calls: Vec::new(),
            by_id: HashMap::new(),
            used: Mutex::default(),
            answered: Mutex::default(),
            decisions: false,
            stopper: OnceLock::new(),
            over: AtomicUsize::new(0),
            one_more: Notify::new(),
            flows,
            source,
        };
        let replied = !record.source.index.replies.is_empty();
        for (number, item) in record.source.index.items.iter().enumerate() {
            // What a model said before this run, in a conversation that was taken up, is part of what was
            // said to it.
            let taken_up =
                replied && item.reply.is_none() && record.answers.is_empty() && record.calls.is_empty();
            match item.kind {
                TimelineKind::Assistant if !taken_up => {
                    record.answers.push(item.at);
                    let direct = item.reply.is_none() && !record.calls.is_empty();
                    record.scenes.push(Scene::Answered { direct, begun: Vec::new() });
                }
                TimelineKind::System | TimelineKind::User | TimelineKind::Assistant => {
                    record.scenes.push(Scene::Said(item.at))
                }
                TimelineKind::Call => {
                    let Ok(EventKind::CallStarted { call_id, tool, arguments, .. }) =
                        record.source.event(item.at).map(|event| event.kind)
                    else {
                        continue;
                    };
                    record.decisions |= item.call.as_ref().is_some_and(|call| call.decided.is_some());
                    if item.call.as_ref().is_some_and(|call| call.parent.is_none()) {
                        let answers = record.scenes.iter_mut().rev();
                        match answers.into_iter().find_map(|scene| match scene {
                            Scene::Answered { begun, .. } => Some(begun),
                            Scene::Said(_) | Scene::Called(_) => None,
                        }) {
                            Some(begun) => begun.push((call_id.to_string(), tool.to_string())),
                            None => record.scenes.push(Scene::Called(item.at)),
                        }
                    }
                    let of_id = record.by_id.entry((call_id.to_string(), tool.to_string())).or_default();
                    of_id.push(record.calls.len());
                    record.calls.push(RecordedCall { item: number, arguments, cut: false });
                }
                TimelineKind::Given
                | TimelineKind::Failed
                | TimelineKind::Stopped
                | TimelineKind::Rewound
                | TimelineKind::Limit
                | TimelineKind::End => {}
            }
        }
        record.mark_cut(absent);
        record.decisions |= record.calls.iter().any(|known| record.undecided(known));
        record
    }

    /// True when a limit, the clock or somebody stopped the call.
    fn was_stopped(&self, known: &RecordedCall) -> bool {
        let stops = [ErrorKind::Limit, ErrorKind::Timeout, ErrorKind::Cancelled];
        self.failed(known).is_some_and(|error| stops.contains(&error.kind))
    }

    /// Why a call failed.
    fn failed(&self, known: &RecordedCall) -> Option<ErrorInfo> {
        let call = self.source.index.items.get(known.item)?.call.as_ref()?;
        let place = call.end.filter(|_| matches!(call.state, ItemState::Error | ItemState::Interrupted))?;
        match self.source.event(place).ok()?.kind {
            EventKind::CallFinished { error, .. } => error,
            _ => None,
        }
    }

    /// Finds the calls that are answered as they were then, also when they could be run again.
    fn mark_cut(&mut self, absent: &HashSet<String>) {
        let (items, names) = (&self.source.index.items, &self.source.index.names);
        let (mut cut, mut around, mut beside) = (HashSet::new(), HashSet::new(), HashSet::new());
        for known in &self.calls {
            let Some(call) = items.get(known.item).and_then(|item| item.call.as_ref()) else { continue };
            let Some(mut parent) = call.parent else { continue };
            around.insert(parent);
            if names.get(call.tool as usize).is_some_and(|tool| absent.contains(tool)) {
                beside.insert(parent);
            }
            let end = call.end.and_then(|end| self.source.event(end).ok()).map(|event| event.kind);
            let whole = matches!(end, Some(EventKind::CallFinished { result: Some(result), .. }) if result.truncated.is_none());
            if whole {
                continue;
            }
            // Parents have smaller numbers, so this ends.
            while cut.insert(parent) {
                let outer =
                    items.get(parent).and_then(|item| item.call.as_ref()).and_then(|call| call.parent);
                match outer.filter(|outer| *outer < parent) {
                    Some(outer) => parent = outer,
                    None => break,
                }
            }
        }
        let stopped: Vec<bool> = self.calls.iter().map(|known| self.was_stopped(known)).collect();
        for (known, stopped) in self.calls.iter_mut().zip(stopped) {
            let item = &known.item;
            known.cut = cut.contains(item) || beside.contains(item) || (stopped && !around.contains(item));
        }
    }

    /// True when nobody talks: a person made the calls.
    pub fn silent(&self) -> bool {
        self.scenes.iter().all(|scene| matches!(scene, Scene::Called(_)))
    }

    /// Passes over an answer that no model gave.
    pub fn pass_over(&self) {
        self.next.fetch_add(1, Ordering::Relaxed);
    }

    /// The call that begins there.
    pub fn call(&self, place: LineRange) -> anyhow::Result<ToolCall> {
        match self.source.event(place)?.kind {
            EventKind::CallStarted { call_id, tool, arguments, .. } => {
                Ok(ToolCall::new(call_id, tool, arguments))
            }
            _ => anyhow::bail!("there is no call where the index says so"),
        }
    }

    pub fn message(&self, place: LineRange) -> anyhow::Result<Message> {
        match self.source.event(place)?.kind {
            EventKind::MessageAdded { message } => Ok(message),
            _ => anyhow::bail!("there is no message where the index says so"),
        }
    }

    /// Has the replay stopped where somebody stopped the run.
    pub fn stopped_by(&self, stopper: Stopper) {
        let _ = self.stopper.set(stopper);
    }

    /// True when the run was stopped before anybody had decided about the call.
    fn undecided(&self, known: &RecordedCall) -> bool {
        let call = self.source.index.items.get(known.item).and_then(|item| item.call.as_ref());
        if !call.is_some_and(|call| matches!(call.state, ItemState::Error | ItemState::Interrupted)) {
            return false;
        }
        let stopped = self.failed(known).is_none_or(|error| error.kind == ErrorKind::Cancelled);
        stopped && matches!(self.decided(known), None | Some(Decision::Escalate))
    }

    /// Hears what happens in the replay.
    pub fn hear(&self, event: &EventKind) {
        let EventKind::CallFinished { error, .. } = event else { return };
        if error.as_ref().is_none_or(|error| error.kind != ErrorKind::Cancelled) {
            self.over.fetch_add(1, Ordering::Relaxed);
            self.one_more.notify_waiters();
        }
    }

    /// Stops the replay where the run was stopped before anybody had decided about this call: calls beside it
    /// that were over by then come first. False when there is nothing to stop.
    async fn stop_at(&self, known: &RecordedCall) -> bool {
        let end = |known: &RecordedCall| self.source.index.items.get(known.item)?.call.as_ref()?.end;
        let last = end(known).map_or(u64::MAX, |LineRange(at, _)| at);
        let whole =
            |known: &RecordedCall| self.failed(known).is_none_or(|error| error.kind != ErrorKind::Cancelled);
        let before =
            |other: &&RecordedCall| end(other).is_some_and(|LineRange(at, _)| at < last) && whole(other);
        let before = self.calls.iter().filter(before).count();
        let wait = async {
            loop {
                let one_more = self.one_more.notified();
                if self.over.load(Ordering::Relaxed) >= before {
                    return;
                }
                one_more.await;
            }
        };
        // Today there may be fewer of them.
        let _ = tokio::time::timeout(PATIENCE, wait).await;
        self.stopper.get().is_some_and(Stopper::stop)
    }

    /// The transcript.
    pub fn source(&self) -> &TranscriptSource {
        &self.source
    }

    /// The items of the calls that were answered as they were then, without what happened inside of them.
    pub fn answered(&self) -> HashSet<usize> {
        lock(&self.answered).clone()
    }

    /// The call of the record that this one repeats: the first with its id that was not asked for yet, and
    /// among the calls a tool made, the first with these arguments.
    fn find(&self, id: &str, tool: &str, arguments: &Value, inner: bool, what: Use) -> Option<&RecordedCall> {
        let numbers = self.by_id.get(&(id.to_owned(), tool.to_owned()))?;
        let mut used = lock(&self.used);
        let number = numbers.iter().find(|number| {
            let same =
                self.calls.get(**number).is_some_and(|known| !inner || holds(arguments, &known.arguments));
            same && !used.contains(&(**number, what))
        })?;
        used.insert((*number, what));
        self.calls.get(*number)
    }

    fn decided(&self, known: &RecordedCall) -> Option<Decision> {
        let place = self.source.index.items.get(known.item)?.call.as_ref()?.decided?;
        let EventKind::CallDecided { decision, reason, arguments, .. } = self.source.event(place).ok()?.kind
        else {
            return None;
        };
        let reason = reason.unwrap_or_default();
        Some(match decision.as_str() {
            "reject" => Decision::Reject { reason },
            "terminate" => Decision::Terminate { reason },
            "escalate" => Decision::Escalate,
            // What was approved may have been changed by a rule before.
            _ => arguments.map_or(Decision::Approve, |arguments| Decision::Modify { arguments }),
        })
    }

    fn result(&self, known: &RecordedCall) -> Result<ToolOutput, ToolError> {
        let end = self.source.index.items.get(known.item).and_then(|item| item.call.as_ref()?.end);
        let event = end.and_then(|place| self.source.event(place).ok()).map(|event| event.kind);
        let Some(EventKind::CallFinished { result, error, .. }) = event else {
            return Err(ToolError::new("the record has no end of this call"));
        };
        let output = result.map(|result| ToolOutput {
            content: result.content,
            structured: result.structured,
            metadata: result.metadata,
            extras: result.extras.map(|extras| *extras).unwrap_or_default(),
            confidential: result.confidential,
        });
        match error {
            None => Ok(output.unwrap_or_default()),
            Some(error) if matches!(error.kind, ErrorKind::Parsing | ErrorKind::Approval) => {
                Err(ToolError::new(
                    "the call was refused then and would run now; the record has no answer for it",
                ))
            }
            Some(error) => {
                let error = ToolError::from(error);
                Err(match output {
                    Some(output) => error.with_partial(output),
                    None => error,
                })
            }
        }
    }
}

/// True when everything in `part` is in `whole` too: a schema may have added defaults and read text as
/// numbers.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| holds(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| holds(whole, part))
        }
        (whole, Value::String(text)) if !whole.is_string() => {
            serde_json::from_str::<Value>(text).is_ok_and(|read| read == *whole)
        }
        (whole, part) => whole == part,
    }
}

/// The record, as a model, an approver and an executor.
#[derive(Clone)]
pub struct Recorded(pub Arc<Record>);

impl Model for Recorded {
    fn name(&self) -> &str {
        "recorded"
    }

    async fn generate(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let next = self.0.next.fetch_add(1, Ordering::Relaxed);
        let none = || ModelError::new(ModelErrorKind::Script, "the record has no further answer");
        let answer =
            self.0.answers.get(next).ok_or_else(none).and_then(|place| match self.0.message(*place) {
                Ok(Message::Assistant(answer)) => Ok(answer),
                _ => Err(ModelError::new(ModelErrorKind::Script, "an answer in the record cannot be read")),
            });
        answer.map(ModelReply::from)
    }
}

impl Approver for Recorded {
    fn name(&self) -> &str {
        "record"
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        let call = request.call;
        let known = self.0.find(&call.id, &call.name, &call.arguments, false, Use::Decision);
        // What nobody approved then, because they stopped the run instead, is not approved now.
        if let Some(known) = known.filter(|known| self.0.undecided(known)) {
            return match self.0.stop_at(known).await {
                true => std::future::pending().await,
                false => Decision::Reject { reason: "nobody answered then".to_owned() },
            };
        }
        // A call that nobody was asked about then is approved now.
        known.and_then(|known| self.0.decided(known)).unwrap_or(Decision::Approve)
    }
}

impl Executor for Recorded {
    async fn execute(
        &self,
        tools: &Toolset,
        envelope: Envelope,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let inner = context.depth() > 0;
        let known = self.0.find(&envelope.call_id, &envelope.tool, &envelope.arguments, inner, Use::Result);
        if known.is_none_or(|known| !known.cut) && self.0.flows.iter().any(|flow| **flow == *envelope.tool) {
            return LocalExecutor.execute(tools, envelope, context).await;
        }
        match known {
            Some(known) => {
                lock(&self.0.answered).insert(known.item);
                self.0.result(known)
            }
            None => Err(ToolError::new("the record does not have this call")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_the_same_with_their_defaults() {
        assert!(holds(&json!({"path": "a", "limit": 10}), &json!({"path": "a"})));
        assert!(holds(&json!({"n": 2, "l": [1]}), &json!({"n": "2", "l": ["1"]})));
        assert!(!holds(&json!({"path": "a"}), &json!({"path": "b"})));
        assert!(!holds(&json!({"path": "a"}), &json!({"path": "a", "limit": 10})));
        assert!(!holds(&json!({"l": [1, 2]}), &json!({"l": [1]})));
    }
}
