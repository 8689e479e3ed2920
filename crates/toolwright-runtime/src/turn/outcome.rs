//! What a loop came to.

use toolwright_core::{Error, Message, ModelError, ToolCall, ToolError};

use super::last_assistant;
use crate::run::RunEnd;

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

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        Error::tool_failure(error)
    }
}

impl From<ToolError> for RunError {
    fn from(error: ToolError) -> Self {
        RunError::Tool(error)
    }
}
