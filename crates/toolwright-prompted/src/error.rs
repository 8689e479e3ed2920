//! What can go wrong with prompted tool use.

use toolwright_core::{ErrorKind, ModelError, ToolError};

/// Why prompted tool use failed. A mistake of the model is not an error: the model is asked to correct it.
#[derive(Debug)]
pub struct PromptError {
    kind: PromptErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kind of a [`PromptError`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptErrorKind {
    /// The messages are not what the format demands.
    Messages,
    /// A tool is not described as the format demands.
    Tool,
    /// A mode, a model or another setting that does not exist.
    Setting,
    /// A text holds the marker that begins another speaker's turn.
    Forged,
    /// A value does not fit its parameter's type.
    Value,
    /// The model made too many mistakes in a row.
    Retries,
    /// The model used tools for too many turns.
    Turns,
    /// The run, or a call, was cancelled.
    Cancelled,
    /// A limit of the run was reached.
    Limit,
    /// The model could not answer.
    Model,
    /// A tool, or the runtime, broke.
    Fatal,
}

impl PromptError {
    pub(crate) fn new(kind: PromptErrorKind, message: impl Into<String>) -> Self {
        PromptError { kind, message: message.into(), source: None }
    }

    pub(crate) fn messages(message: impl Into<String>) -> Self {
        Self::new(PromptErrorKind::Messages, message)
    }

    /// Why a run would not let the model go on.
    pub(crate) fn ended(error: ToolError) -> Self {
        let kind = match error.kind() {
            ErrorKind::Limit => PromptErrorKind::Limit,
            ErrorKind::Cancelled => PromptErrorKind::Cancelled,
            _ => return error.into(),
        };
        Self::new(kind, error.message())
    }

    /// What to match on.
    pub fn kind(&self) -> PromptErrorKind {
        self.kind
    }
}

impl std::fmt::Display for PromptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PromptError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<ModelError> for PromptError {
    fn from(error: ModelError) -> Self {
        let message = "the model could not answer".to_owned();
        PromptError { kind: PromptErrorKind::Model, message, source: Some(Box::new(error)) }
    }
}

impl From<ToolError> for PromptError {
    fn from(error: ToolError) -> Self {
        let message = "a tool call ended the run".to_owned();
        PromptError { kind: PromptErrorKind::Fatal, message, source: Some(Box::new(error)) }
    }
}
