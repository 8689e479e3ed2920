//! A conversation in the shape every vendor demands: each call is answered, in order, right after it was
//! asked for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_core::{AssistantMessage, Content, ErrorInfo, ErrorKind, Message, ToolCall, ToolResult};

use super::names::hash;

/// One turn of a conversation.
pub(super) enum WireTurn<'a> {
    System(&'a [Content]),
    User(Vec<Cow<'a, Content>>),
    Assistant(Cow<'a, AssistantMessage>),
    /// The results of the calls of the assistant turn before, in the order of the calls, none missing.
    Results(Vec<Cow<'a, ToolResult>>),
}

/// The turns of a conversation. A call that was never answered gets an error for an answer, and a result that
/// answers nothing is told by the user: dropping either would lose something, and sending them is refused. An
/// id that an earlier call has is replaced, for the call and its result: vendors refuse it too.
pub(super) fn turns(messages: &[Message]) -> Vec<WireTurn<'_>> {
    let mut turns = Vec::new();
    let mut ids = Ids::default();
    let mut rest = messages.iter().peekable();
    while let Some(message) = rest.next() {
        let message = match message {
            Message::System { content } => {
                turns.push(WireTurn::System(content));
                continue;
            }
            Message::User { content } => {
                turns.push(WireTurn::User(content.iter().map(Cow::Borrowed).collect()));
                continue;
            }
            Message::Tool(result) => {
                turns.push(WireTurn::User(told(result)));
                continue;
            }
            Message::Assistant(message) => message,
        };
        let sent = ids.once(message);
        let mut results = Vec::new();
        while let Some(Message::Tool(result)) = rest.peek() {
            results.push(result);
            rest.next();
        }
        let mut answers = Vec::with_capacity(message.tool_calls.len());
        for (call, sent) in message.tool_calls.iter().zip(&sent.tool_calls) {
            let at = results.iter().position(|result| result.call_id == call.id);
            answers.push(match at.map(|at| results.remove(at)) {
                None => Cow::Owned(unanswered(sent)),
                Some(result) if sent.id == call.id => Cow::Borrowed(result),
                Some(result) => Cow::Owned(ToolResult { call_id: sent.id.clone(), ..result.clone() }),
            });
        }
        turns.push(WireTurn::Assistant(sent));
        if !answers.is_empty() {
            turns.push(WireTurn::Results(answers));
        }
        turns.extend(results.into_iter().map(|result| WireTurn::User(told(result))));
    }
    turns
}

/// The ids of calls so far, and how many calls have each.
#[derive(Default)]
struct Ids<'a>(HashMap<&'a str, usize>);

impl<'a> Ids<'a> {
    /// The message, with ids that no call before has.
    fn once(&mut self, message: &'a AssistantMessage) -> Cow<'a, AssistantMessage> {
        let mut sent = Cow::Borrowed(message);
        for (at, call) in message.tool_calls.iter().enumerate() {
            let count = self.0.entry(&*call.id).or_default();
            *count += 1;
            if *count > 1 {
                let id = format!("call_{}", hash(&format!("{count} {}", call.id), 24));
                rename(sent.to_mut(), at, id.into());
            }
        }
        sent
    }
}

/// Gives a call another id, and what is kept with it too.
fn rename(message: &mut AssistantMessage, at: usize, id: Arc<str>) {
    let Some(call) = message.tool_calls.get_mut(at) else { return };
    let old = std::mem::replace(&mut call.id, id.clone());
    for block in &mut message.content {
        if let Content::Reasoning { opaque, .. } = block
            && let Some(call) = opaque.get_mut("call").filter(|call| call.as_str() == Some(&old))
        {
            *call = (*id).into();
        }
    }
}

fn unanswered(call: &ToolCall) -> ToolResult {
    let message = "this call was not made".to_owned();
    ToolResult::failed(call, ErrorInfo { kind: ErrorKind::Cancelled, message, hint: None })
}

fn told(result: &ToolResult) -> Vec<Cow<'_, Content>> {
    let mut content = vec![Cow::Owned(Content::text(format!("Result of the tool `{}`:", result.name)))];
    content.extend(result.content.iter().map(Cow::Borrowed));
    content.extend(result.error.iter().map(|error| Cow::Owned(Content::json(error.to_json()))));
    content
}

/// A piece of an assistant turn, in the order in which the model made them.
pub(super) enum TurnPiece<'a> {
    Content {
        block: &'a Content,
        kept: KeptFields<'a>,
    },
    /// What this vendor sent and wants to see again.
    Own {
        text: &'a str,
        opaque: &'a Map<String, Value>,
    },
    Call {
        call: &'a ToolCall,
        kept: KeptFields<'a>,
    },
}

/// The fields that came with a block and that this vendor wants to see again.
pub(super) type KeptFields<'a> = Option<&'a Map<String, Value>>;

/// A block with the fields that came with it, as far as it has no such field by now.
pub(super) fn kept_with(kept: KeptFields<'_>, mut block: Value) -> Value {
    if let Some(block) = block.as_object_mut() {
        for (key, value) in kept.into_iter().flatten() {
            block.entry(key).or_insert_with(|| value.clone());
        }
    }
    block
}

/// The pieces of an assistant turn. Reasoning of other vendors is left out: they cannot read it.
pub(super) fn pieces<'a>(message: &'a AssistantMessage, vendor: &str) -> Vec<TurnPiece<'a>> {
    let own = |content: &'a Content| match content {
        Content::Reasoning { text, opaque } => opaque
            .as_object()
            .filter(|opaque| opaque.get("from").and_then(Value::as_str) == Some(vendor))
            .map(|opaque| (text.as_str(), opaque)),
        _ => None,
    };
    let of_calls =
        message.content.iter().filter_map(own).filter_map(|(_, opaque)| {
            Some((opaque.get("call")?.as_str()?, opaque.get("kept")?.as_object()?))
        });
    let of_calls: HashMap<&str, &Map<String, Value>> = of_calls.collect();
    let piece = |call: &'a ToolCall| TurnPiece::Call { call, kept: of_calls.get(&*call.id).copied() };
    let mut calls = message.tool_calls.iter().zip(message.calls_after.iter().copied()).peekable();
    let mut placed = 0;
    let mut pieces = Vec::new();
    let mut of_next = None;
    for (position, content) in message.content.iter().enumerate() {
        while let Some((call, _)) = calls.next_if(|(_, after)| *after <= position) {
            pieces.push(piece(call));
            placed += 1;
        }
        let kept = of_next.take();
        match (content, own(content)) {
            (_, Some((_, opaque))) if opaque.contains_key("kept") => {
                of_next = opaque.get("kept").and_then(Value::as_object);
                of_next = of_next.filter(|_| !opaque.contains_key("call"));
            }
            (_, Some((text, opaque))) => pieces.push(TurnPiece::Own { text, opaque }),
            (Content::Reasoning { .. }, None) => {}
            (block, None) => pieces.push(TurnPiece::Content { block, kept }),
        }
    }
    pieces.extend(message.tool_calls.iter().skip(placed).map(piece));
    pieces
}

/// Takes thoughts from the end of what a model said: an answer that was cut off while the model thought has
/// nothing after them. Vendors refuse that, and with it every later request.
pub(super) fn drop_last_thoughts(said: &mut Vec<Value>, is_thought: impl Fn(&Value) -> bool) {
    while said.pop_if(|last| is_thought(last)).is_some() {}
}

/// Messages whose roles alternate: what the same role says next joins its last message.
pub(super) struct Alternating {
    /// The model's role, which may have nothing to say.
    model: &'static str,
    /// The field that holds what is said.
    field: &'static str,
    pub(super) messages: Vec<Value>,
}

impl Alternating {
    pub(super) fn new(model: &'static str, field: &'static str) -> Self {
        Alternating { model, field, messages: Vec::new() }
    }

    pub(super) fn add(&mut self, role: &str, mut said: Vec<Value>) {
        let last = self.messages.last_mut();
        let last = last.filter(|last| last.get("role").and_then(Value::as_str) == Some(role));
        match last.and_then(|last| last.get_mut(self.field)).and_then(Value::as_array_mut) {
            Some(known) => known.append(&mut said),
            None if said.is_empty() && role == self.model => {}
            None => {
                if said.is_empty() {
                    said.push(json!({"text": "(nothing was said)"}));
                }
                self.start(role, said);
            }
        }
    }

    /// Starts a message of its own, also when the last one has the same role.
    pub(super) fn start(&mut self, role: &str, said: Vec<Value>) {
        self.messages.push(json!({"role": role, (self.field): said}));
    }
}
