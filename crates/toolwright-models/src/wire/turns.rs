//! A conversation in the shape every vendor demands: each call is answered, in order, right after it was asked for.

use std::borrow::Cow;

use serde_json::{Value, json};
use toolwright_core::{AssistantMessage, Content, ErrorInfo, ErrorKind, Message, ToolCall, ToolResult};

/// One turn of a conversation.
pub(super) enum Turn<'a> {
    System(&'a [Content]),
    User(Vec<Cow<'a, Content>>),
    Assistant(&'a AssistantMessage),
    /// The results of the calls of the assistant turn before, in the order of the calls, none missing.
    Results(Vec<Cow<'a, ToolResult>>),
}

/// The turns of a conversation. A call that was never answered gets an error for an answer, and a result that
/// answers nothing is told by the user: dropping either would lose something, and sending them is refused.
pub(super) fn turns(messages: &[Message]) -> Vec<Turn<'_>> {
    let mut turns = Vec::new();
    let mut rest = messages.iter().peekable();
    while let Some(message) = rest.next() {
        let calls: &[ToolCall] = match message {
            Message::System { content } => {
                turns.push(Turn::System(content));
                continue;
            }
            Message::User { content } => {
                turns.push(Turn::User(content.iter().map(Cow::Borrowed).collect()));
                continue;
            }
            Message::Assistant(message) => {
                turns.push(Turn::Assistant(message));
                &message.tool_calls
            }
            Message::Tool(result) => {
                turns.push(Turn::User(told(result)));
                continue;
            }
        };
        let mut results = Vec::new();
        while let Some(Message::Tool(result)) = rest.peek() {
            results.push(result);
            rest.next();
        }
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            let at = results.iter().position(|result| result.call_id == call.id);
            answers.push(match at {
                Some(at) => Cow::Borrowed(results.remove(at)),
                None => Cow::Owned(unanswered(call)),
            });
        }
        if !answers.is_empty() {
            turns.push(Turn::Results(answers));
        }
        turns.extend(results.into_iter().map(|result| Turn::User(told(result))));
    }
    turns
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
pub(super) enum Piece<'a> {
    Content(&'a Content),
    /// What this vendor sent and wants to see again.
    Own {
        text: &'a str,
        opaque: &'a serde_json::Map<String, serde_json::Value>,
    },
    Call(&'a ToolCall),
}

/// The pieces of an assistant turn. Reasoning of other vendors is left out: they cannot read it.
pub(super) fn pieces<'a>(message: &'a AssistantMessage, vendor: &str) -> Vec<Piece<'a>> {
    let mut calls = message.tool_calls.iter().zip(message.calls_after.iter().copied()).peekable();
    let mut placed = 0;
    let mut pieces = Vec::new();
    for (position, content) in message.content.iter().enumerate() {
        while let Some((call, _)) = calls.next_if(|(_, after)| *after <= position) {
            pieces.push(Piece::Call(call));
            placed += 1;
        }
        pieces.extend(match content {
            Content::Reasoning { text, opaque } => opaque
                .as_object()
                .filter(|opaque| opaque.get("from").and_then(Value::as_str) == Some(vendor))
                .map(|opaque| Piece::Own { text, opaque }),
            other => Some(Piece::Content(other)),
        });
    }
    pieces.extend(message.tool_calls.iter().skip(placed).map(Piece::Call));
    pieces
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
                self.messages.push(json!({"role": role, (self.field): said}));
            }
        }
    }
}
