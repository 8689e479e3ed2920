//! The conversation: messages, the calls a model asks for, and the results that go back.
//!
//! These types are the native format of Toolwright: they serialise, and every vendor's format converts to and
//! from them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ErrorInfo;
use crate::output::{Content, NOTE};

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Instructions for the model.
    System {
        /// The instructions.
        content: Vec<Content>,
    },
    /// What the user says.
    User {
        /// What is said.
        content: Vec<Content>,
    },
    /// What the model says, and the tools it asks for.
    Assistant(AssistantMessage),
    /// The result of one tool call.
    Tool(ToolResult),
}

impl Message {
    /// A system message of one piece of text.
    pub fn system(text: impl Into<String>) -> Self {
        Message::System { content: vec![Content::text(text)] }
    }

    /// A user message of one piece of text.
    pub fn user(text: impl Into<String>) -> Self {
        Message::User { content: vec![Content::text(text)] }
    }

    /// An assistant message of one piece of text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Message::Assistant(AssistantMessage {
            content: vec![Content::text(text)],
            ..AssistantMessage::default()
        })
    }

    /// The content blocks, for any role.
    pub fn content(&self) -> &[Content] {
        match self {
            Message::System { content } | Message::User { content } => content,
            Message::Assistant(message) => &message.content,
            Message::Tool(result) => &result.content,
        }
    }

    /// All text of the message, joined by newlines.
    pub fn text(&self) -> String {
        let parts: Vec<_> = self.content().iter().filter_map(Content::as_text).collect();
        parts.join("\n")
    }
}

/// What a model says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Text, reasoning and other blocks, in the order they came.
    #[serde(default)]
    pub content: Vec<Content>,
    /// The tools it asks for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// For each call, how many blocks of `content` came before it. Empty when all of them did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls_after: Vec<usize>,
    /// Names of tools whose later calls in this message are skipped once one of them failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail_fast: Vec<String>,
    /// A result of a confidential tool, given to the user as it is: models are not shown it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confidential: bool,
}

impl AssistantMessage {
    /// A message that only asks for tools.
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        AssistantMessage { tool_calls: calls.into_iter().collect(), ..AssistantMessage::default() }
    }

    /// All text of the message, joined by newlines.
    pub fn text(&self) -> String {
        let parts: Vec<_> = self.content.iter().filter_map(Content::as_text).collect();
        parts.join("\n")
    }
}

/// A model's wish to call a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Ties the result to the call.
    pub id: Arc<str>,
    /// The tool's name, as the model wrote it.
    pub name: Arc<str>,
    /// An object of arguments; or the text a model wrote, which the runtime reads leniently.
    #[serde(default)]
    pub arguments: Value,
}

impl ToolCall {
    /// A call. Arguments that are a JSON string are text still to be parsed.
    pub fn new(id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, arguments: impl Into<Value>) -> Self {
        ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
    }
}

/// What goes back for one call: bounded content, and the error if there was one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call this answers.
    pub call_id: Arc<str>,
    /// The tool that was called.
    pub name: Arc<str>,
    /// What the tool returned; on an error, what it had produced before.
    #[serde(default)]
    pub content: Vec<Content>,
    /// The value for programs, when it differs from the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Facts beside the content.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What else came with the output, for programs alone: a model is not sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extras: Option<Box<Map<String, Value>>>,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// What was cut to stay within bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
    /// What the tool returned, or said when it failed, is for the user alone; see [`conceal`](Self::conceal).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confidential: bool,
}

/// What a model reads in place of what it may not know.
pub const CONFIDENTIAL: &str = "[CONFIDENTIAL]";

impl ToolResult {
    /// A result that is only an error.
    pub fn failed(call: &ToolCall, error: ErrorInfo) -> Self {
        ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: Vec::new(),
            structured: None,
            metadata: Map::new(),
            extras: None,
            error: Some(error),
            truncated: None,
            confidential: false,
        }
    }

    /// A result that is one piece of text, for callers who run tools themselves.
    pub fn text(call: &ToolCall, text: impl Into<String>) -> Self {
        ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: vec![Content::text(text)],
            structured: None,
            metadata: Map::new(),
            extras: None,
            error: None,
            truncated: None,
            confidential: false,
        }
    }

    /// Takes out what no model may be shown; what is left says so. Whoever gives results to a model asks for
    /// this first, as the loop of a run does.
    pub fn conceal(&mut self) {
        if !std::mem::take(&mut self.confidential) {
            return;
        }
        self.content = match &mut self.error {
            None => vec![Content::text(CONFIDENTIAL)],
            Some(error) => {
                error.message = format!("the call failed ({}); what it said is confidential", error.kind);
                error.hint = None;
                Vec::new()
            }
        };
        self.structured = None;
        self.metadata.clear();
        self.extras = None;
        self.truncated = None;
    }

    /// The facts beside the content as a model reads them: a note alone as its words, others as a map.
    pub fn explanation(&self) -> Option<Value> {
        match self.metadata.get(NOTE) {
            Some(note @ Value::String(_)) if self.metadata.len() == 1 => Some(note.clone()),
            _ => (!self.metadata.is_empty()).then(|| Value::Object(self.metadata.clone())),
        }
    }

    /// True when the call failed.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// What a model that only takes text reads: the content, then the error as JSON.
    pub fn to_text(&self) -> String {
        let mut parts: Vec<_> = self.content.iter().filter_map(Content::as_text).collect();
        if let Some(error) = &self.error {
            parts.push(error.to_json().to_string().into());
        }
        parts.join("\n")
    }
}

/// How much output there was, and how much of it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// Bytes the tool produced.
    pub original: usize,
    /// Bytes a model may be given.
    pub limit: usize,
}
