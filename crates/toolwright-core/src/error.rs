//! What can go wrong in a tool call, in one vocabulary for Rust, JSON, the terminal and the transcript.
//!
//! A [`ToolError`] carries a small [`ErrorKind`] to match on, the text a model reads, and the cause a person
//! reads. Every kind but [`ErrorKind::Fatal`] goes back to the model; a fatal error ends the run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::output::ToolOutput;

/// The kind of a [`ToolError`]; its wire name is what JSON, transcripts and `catch:` use.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The call itself was wrong: unreadable arguments, unknown tool, a value the schema refuses.
    Parsing,
    /// The work took too long and was stopped.
    Timeout,
    /// Bytes that should have been text were not.
    UnicodeDecode,
    /// The caller may not do this.
    Permission,
    /// A file or folder does not exist.
    FileNotFound,
    /// A file was wanted and a folder was found.
    IsADirectory,
    /// A limit of the run was reached; the message names it.
    Limit,
    /// More output than may be kept; the kept part travels with the error.
    OutputLimit,
    /// An approver refused the call.
    Approval,
    /// The call was stopped before it finished.
    Cancelled,
    /// The sandbox that policy requires is not available.
    SandboxUnavailable,
    /// The tool's own error, written for the model.
    Unknown,
    /// Never reaches the model: it ends the run (a panic, an unexpected I/O error, a broken runtime).
    Fatal,
}

impl ErrorKind {
    /// Every kind, in the order of the reference page.
    pub const ALL: [ErrorKind; 13] = [
        ErrorKind::Parsing,
        ErrorKind::Timeout,
        ErrorKind::UnicodeDecode,
        ErrorKind::Permission,
        ErrorKind::FileNotFound,
        ErrorKind::IsADirectory,
        ErrorKind::Limit,
        ErrorKind::OutputLimit,
        ErrorKind::Approval,
        ErrorKind::Cancelled,
        ErrorKind::SandboxUnavailable,
        ErrorKind::Unknown,
        ErrorKind::Fatal,
    ];

    /// The wire name, for example `file_not_found`.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Parsing => "parsing",
            ErrorKind::Timeout => "timeout",
            ErrorKind::UnicodeDecode => "unicode_decode",
            ErrorKind::Permission => "permission",
            ErrorKind::FileNotFound => "file_not_found",
            ErrorKind::IsADirectory => "is_a_directory",
            ErrorKind::Limit => "limit",
            ErrorKind::OutputLimit => "output_limit",
            ErrorKind::Approval => "approval",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::SandboxUnavailable => "sandbox_unavailable",
            ErrorKind::Unknown => "unknown",
            ErrorKind::Fatal => "fatal",
        }
    }

    /// One sentence for the reference page and for `--help`.
    pub fn meaning(self) -> &'static str {
        match self {
            ErrorKind::Parsing => {
                "The call was wrong: unreadable arguments, an unknown tool, a value the schema refuses."
            }
            ErrorKind::Timeout => "The work took too long and was stopped.",
            ErrorKind::UnicodeDecode => "Bytes that should have been text were not.",
            ErrorKind::Permission => "The caller may not do this.",
            ErrorKind::FileNotFound => "A file or folder does not exist.",
            ErrorKind::IsADirectory => "A file was wanted and a folder was found.",
            ErrorKind::Limit => "A limit of the run was reached; the message names it.",
            ErrorKind::OutputLimit => "More output than may be kept; the kept part comes with the error.",
            ErrorKind::Approval => "An approver refused the call.",
            ErrorKind::Cancelled => "The call was stopped before it finished.",
            ErrorKind::SandboxUnavailable => "The sandbox that policy requires is not available.",
            ErrorKind::Unknown => "The tool's own error, written for the model.",
            ErrorKind::Fatal => "Never reaches the model: it ends the run.",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a tool call failed.
///
/// ```
/// use toolwright_core::{ErrorKind, ToolError};
///
/// let error = ToolError::new("`line` is past the end").hint("the file has 40 lines");
/// assert_eq!(error.kind(), ErrorKind::Unknown);
/// assert_eq!(error.message(), "`line` is past the end");
///
/// let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
/// assert_eq!(ToolError::from(missing).kind(), ErrorKind::FileNotFound);
/// ```
pub struct ToolError {
    repr: Box<Repr>,
}

struct Repr {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    partial: Option<ToolOutput>,
    confidential: bool,
    of_runtime: bool,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ToolError {
    /// The tool's own error: the model reads `message` and may try something else.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Unknown, message)
    }

    /// The arguments were wrong in a way the schema cannot express.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Parsing, message)
    }

    /// The run cannot go on. The message reaches the operator, never the model.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Fatal, message)
    }

    /// An error of the given kind.
    pub fn of(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        let repr = Repr {
            kind,
            message,
            hint: None,
            partial: None,
            confidential: false,
            of_runtime: false,
            source: None,
        };
        ToolError { repr: Box::new(repr) }
    }

    /// Adds what the reader can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.repr.hint = Some(hint.into());
        self
    }

    /// Keeps what had been produced before the failure; it reaches the model together with the error.
    #[must_use]
    pub fn with_partial(mut self, output: ToolOutput) -> Self {
        self.repr.partial = Some(output);
        self
    }

    /// Keeps the cause for the operator; the model does not see it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.repr.source = Some(source.into());
        self
    }

    /// The error, whose words no model may be shown: a confidential tool said them.
    #[must_use]
    pub fn in_confidence(mut self) -> Self {
        self.repr.confidential = true;
        self
    }

    /// Marks the error as one of the runtime, not of a tool: a limit of the run, a call inside this one that
    /// ended the run, a record that cannot be written. No wrapper turns it into a result.
    #[must_use]
    pub fn in_runtime(mut self) -> Self {
        self.repr.of_runtime = true;
        self
    }

    /// The same error under another kind, for example to make an expected error fatal.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.repr.kind = kind;
        self
    }

    /// What to match on.
    pub fn kind(&self) -> ErrorKind {
        self.repr.kind
    }

    /// What the model reads.
    pub fn message(&self) -> &str {
        &self.repr.message
    }

    /// What the reader can do about it, if the author said.
    pub fn hint_text(&self) -> Option<&str> {
        self.repr.hint.as_deref()
    }

    /// What had been produced before the failure.
    pub fn partial(&self) -> Option<&ToolOutput> {
        self.repr.partial.as_ref()
    }

    /// Takes the partial output out, leaving the error without one.
    pub fn take_partial(&mut self) -> Option<ToolOutput> {
        self.repr.partial.take()
    }

    /// True when no model may be shown what the error says.
    pub fn is_confidential(&self) -> bool {
        self.repr.confidential || self.repr.partial.as_ref().is_some_and(|partial| partial.confidential)
    }

    /// True when the error ends the run.
    pub fn is_fatal(&self) -> bool {
        self.repr.kind == ErrorKind::Fatal
    }

    /// True when the runtime made the error, and not the tool.
    pub fn is_of_runtime(&self) -> bool {
        self.repr.of_runtime
    }

    /// The part of the error that travels: kind, message and hint.
    pub fn info(&self) -> ErrorInfo {
        ErrorInfo { kind: self.repr.kind, message: self.repr.message.clone(), hint: self.repr.hint.clone() }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repr.message)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("kind", &self.repr.kind)
            .field("message", &self.repr.message)
            .field("hint", &self.repr.hint)
            .field("source", &self.repr.source)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for ToolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.repr.source.as_deref().map(|source| source as _)
    }
}

/// The part of a [`ToolError`] that is written down and sent: kind, message, hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// The kind, under its wire name.
    #[serde(rename = "type")]
    pub kind: ErrorKind,
    /// What went wrong.
    pub message: String,
    /// What can be done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ErrorInfo {
    /// The JSON object a model reads: `{"error": {"type", "message", "hint"}}`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "error": self })
    }
}

/// The class that an error has in the system whose tool was called, as the source of a [`ToolError`]. A
/// `catch:` written for that system names it.
///
/// ```
/// use toolwright_core::{ForeignClass, ToolError};
///
/// let class = ForeignClass::new("RequestException", None);
/// let error = ToolError::new("the page cannot be reached").with_source(class);
/// assert_eq!(ForeignClass::of(&error), Some("RequestException"));
/// ```
#[derive(Debug)]
pub struct ForeignClass {
    name: &'static str,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ForeignClass {
    /// The class of that name, and the cause of the error.
    pub fn new(name: &'static str, cause: Option<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        ForeignClass { name, cause }
    }

    /// The name of the class of an error that has one.
    pub fn of(error: &ToolError) -> Option<&'static str> {
        let class: &ForeignClass = std::error::Error::source(error)?.downcast_ref()?;
        Some(class.name)
    }
}

impl fmt::Display for ForeignClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{}: {cause}", self.name),
            None => f.write_str(self.name),
        }
    }
}

impl std::error::Error for ForeignClass {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().and_then(std::error::Error::source)
    }
}

impl From<ErrorInfo> for ToolError {
    fn from(info: ErrorInfo) -> Self {
        let error = ToolError::of(info.kind, info.message);
        match info.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl From<std::io::Error> for ToolError {
    /// Expected file errors keep their kind; anything else is unexpected and fatal.
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match error.kind() {
            Io::NotFound => ErrorKind::FileNotFound,
            Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::Permission,
            Io::IsADirectory => ErrorKind::IsADirectory,
            Io::TimedOut => ErrorKind::Timeout,
            Io::InvalidData => ErrorKind::UnicodeDecode,
            _ => ErrorKind::Fatal,
        };
        let message = match kind {
            ErrorKind::FileNotFound => "no such file or folder".to_owned(),
            ErrorKind::Permission => "permission denied".to_owned(),
            ErrorKind::IsADirectory => "this is a folder, not a file".to_owned(),
            ErrorKind::Timeout => "the operation timed out".to_owned(),
            _ => error.to_string(),
        };
        ToolError::of(kind, message).with_source(error)
    }
}

impl From<std::str::Utf8Error> for ToolError {
    fn from(error: std::str::Utf8Error) -> Self {
        let message =
            format!("the bytes are not valid UTF-8 text (first bad byte at {})", error.valid_up_to());
        ToolError::of(ErrorKind::UnicodeDecode, message).with_source(error)
    }
}

impl From<std::string::FromUtf8Error> for ToolError {
    fn from(error: std::string::FromUtf8Error) -> Self {
        error.utf8_error().into()
    }
}

impl From<tokio::time::error::Elapsed> for ToolError {
    fn from(error: tokio::time::error::Elapsed) -> Self {
        ToolError::of(ErrorKind::Timeout, "the operation timed out").with_source(error)
    }
}

impl From<serde_json::Error> for ToolError {
    fn from(error: serde_json::Error) -> Self {
        match error.classify() {
            serde_json::error::Category::Io => {
                ToolError::fatal("could not read or write JSON").with_source(error)
            }
            _ => ToolError::new(format!("not the JSON that was expected: {error}")).with_source(error),
        }
    }
}

impl From<std::num::ParseIntError> for ToolError {
    fn from(error: std::num::ParseIntError) -> Self {
        ToolError::invalid(format!("not a whole number: {error}")).with_source(error)
    }
}

impl From<std::num::ParseFloatError> for ToolError {
    fn from(error: std::num::ParseFloatError) -> Self {
        ToolError::invalid(format!("not a number: {error}")).with_source(error)
    }
}

/// Turns the errors of other libraries into tool errors at the place where their meaning is known.
///
/// ```
/// use toolwright_core::{ErrorKind, ResultExt, ToolError};
///
/// fn port(text: &str) -> Result<u16, ToolError> {
///     text.parse().explain("the port must be a number from 0 to 65535")
/// }
/// assert_eq!(port("http").unwrap_err().kind(), ErrorKind::Unknown);
/// ```
pub trait ResultExt<T> {
    /// The model reads `message`; the cause is kept for the operator.
    fn explain(self, message: impl Into<String>) -> Result<T, ToolError>;

    /// The error ends the run; the cause is kept for the operator.
    fn fatal(self, message: impl Into<String>) -> Result<T, ToolError>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> ResultExt<T> for Result<T, E> {
    fn explain(self, message: impl Into<String>) -> Result<T, ToolError> {
        self.map_err(|error| ToolError::new(message).with_source(error))
    }

    fn fatal(self, message: impl Into<String>) -> Result<T, ToolError> {
        self.map_err(|error| ToolError::fatal(message).with_source(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_same_name_in_json_and_in_text() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn io_errors_keep_their_kind_and_hide_host_paths() {
        let error = ToolError::from(std::fs::read("/no/such/file/here").unwrap_err());
        assert_eq!(error.kind(), ErrorKind::FileNotFound);
        assert!(!error.message().contains("/no/such"));
        let odd = ToolError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(odd.is_fatal());
    }

    #[test]
    fn the_model_reads_one_json_object() {
        let error = ToolError::invalid("`line` is past the end").hint("the file has 40 lines");
        assert_eq!(
            error.info().to_json(),
            serde_json::json!({"error": {
                "type": "parsing", "message": "`line` is past the end", "hint": "the file has 40 lines"
            }})
        );
    }
}
