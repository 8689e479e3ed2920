//! [`Error`]: why something could not be set up. What fails in a call of a tool is a [`ToolError`].

use std::fmt;
use std::sync::Arc;

use crate::error::{ErrorKind, ToolError};
use crate::toolset::ToolsetError;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why something could not be set up: a file, the configuration of a program, a connection.
///
/// The methods say whose fault it is and where; what a program reports is the text. All errors of set-up
/// convert into it, and the one that was converted is found with [`downcast_ref`](Self::downcast_ref).
///
/// ```
/// use toolwright_core::{Error, ToolDef, ToolSpec, Toolset, ToolsetError};
/// # fn tool(name: &str) -> ToolDef { ToolDef::dynamic(ToolSpec::new(name, "d"), |_, _| async { "ok" }) }
///
/// fn tools() -> Result<Toolset, Error> {
///     Ok(Toolset::of([tool("add"), tool("add")])?)
/// }
///
/// let error = tools().unwrap_err();
/// assert!(error.is_configuration() && !error.is_tool_failure());
/// assert!(matches!(error.downcast_ref(), Some(ToolsetError::Clash { .. })));
/// ```
pub struct Error {
    repr: Box<ErrorParts>,
}

struct ErrorParts {
    fault: Fault,
    location: Option<FileLocation>,
    hint: Option<String>,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    File,
    Configuration,
    Missing,
    Unavailable,
    Tool,
}

/// Where something stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLocation {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, counting from 1; 0 for the whole file.
    pub line: usize,
    /// The column in characters, counting from 1; 0 for the whole line.
    pub column: usize,
}

impl fmt::Display for FileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileLocation { file, line, column } = self;
        match (line, column) {
            (0, _) => f.write_str(file),
            (line, 0) => write!(f, "{file}:{line}"),
            (line, column) => write!(f, "{file}:{line}:{column}"),
        }
    }
}

impl Error {
    /// A file, or a text like one, is wrong.
    pub fn file(cause: impl Into<Cause>) -> Self {
        Self::new(Fault::File, cause)
    }

    /// What the program asked for is wrong.
    pub fn configuration(cause: impl Into<Cause>) -> Self {
        Self::new(Fault::Configuration, cause)
    }

    /// A variable is not set, such as one for a key.
    pub fn missing_variable(cause: impl Into<Cause>) -> Self {
        Self::new(Fault::Missing, cause)
    }

    /// Something outside of the program cannot be used: a server, a sandbox, a disk.
    pub fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::new(Fault::Unavailable, cause)
    }

    /// A tool, or a model, failed while a run went on.
    pub fn tool_failure(cause: impl Into<Cause>) -> Self {
        Self::new(Fault::Tool, cause)
    }

    fn new(fault: Fault, cause: impl Into<Cause>) -> Self {
        Error { repr: Box::new(ErrorParts { fault, location: None, hint: None, cause: cause.into() }) }
    }

    /// The same with the place it is about.
    #[must_use]
    pub fn at(mut self, location: FileLocation) -> Self {
        self.repr.location = Some(location);
        self
    }

    /// The same with what the reader can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: Option<String>) -> Self {
        self.repr.hint = hint;
        self
    }

    /// True when a file, or a text like one, is wrong: tools, a policy, a script, a transcript.
    pub fn is_file(&self) -> bool {
        self.repr.fault == Fault::File
    }

    /// True when what the program asked for is wrong: two tools of one name, an unknown vendor, an address.
    pub fn is_configuration(&self) -> bool {
        self.repr.fault == Fault::Configuration
    }

    /// True when a variable is not set, such as one for a key.
    pub fn is_missing_variable(&self) -> bool {
        self.repr.fault == Fault::Missing
    }

    /// True when something outside of the program cannot be used: a server, a sandbox, a disk.
    pub fn is_unavailable(&self) -> bool {
        self.repr.fault == Fault::Unavailable
    }

    /// True when nothing is wrong with the set-up, and a tool or a model failed while a run went on.
    pub fn is_tool_failure(&self) -> bool {
        self.repr.fault == Fault::Tool
    }

    /// Where in which file, if the error is about one place of one.
    pub fn location(&self) -> Option<&FileLocation> {
        self.repr.location.as_ref()
    }

    /// What the reader can do about it, if that is known.
    pub fn hint(&self) -> Option<&str> {
        self.repr.hint.as_deref()
    }

    /// The error this was made of.
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.repr.cause.downcast_ref()
    }

    /// The error this was made of, or this one again.
    pub fn downcast<E: std::error::Error + 'static>(self) -> Result<E, Self> {
        let ErrorParts { fault, location, hint, cause } = *self.repr;
        match cause.downcast() {
            Ok(cause) => Ok(*cause),
            Err(cause) => Err(Error { repr: Box::new(ErrorParts { fault, location, hint, cause }) }),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.repr.cause.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("fault", &self.repr.fault)
            .field("location", &self.repr.location)
            .field("hint", &self.repr.hint)
            .field("cause", &self.repr.cause)
            .finish()
    }
}

/// The text is the cause's own, so the next in the chain is its source.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.repr.cause.source()
    }
}

impl From<ToolsetError> for Error {
    fn from(error: ToolsetError) -> Self {
        Error::configuration(error)
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        let hint = error.hint_text().map(str::to_owned);
        let error = match error.kind() {
            ErrorKind::SandboxUnavailable => Error::unavailable(error),
            _ => Error::tool_failure(error),
        };
        error.with_hint(hint)
    }
}

/// For tools that set something up themselves: it ends the run, unless it was an error of a tool before.
impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let error = match error.downcast::<ToolError>() {
            Ok(error) => return error,
            Err(error) => error,
        };
        let failed = ToolError::fatal(error.to_string());
        let failed = match error.hint() {
            Some(hint) => failed.hint(hint),
            None => failed,
        };
        failed.with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_can_tell_a_wrong_file_from_a_failed_tool() {
        let place = FileLocation { file: "t.yaml".into(), line: 3, column: 7 };
        let file = Error::file("expected a list").at(place.clone());
        assert!(file.is_file() && !file.is_tool_failure());
        assert_eq!(file.location(), Some(&place));
        assert_eq!(place.to_string(), "t.yaml:3:7");

        let tool = Error::from(ToolError::new("no rows").hint("use another table"));
        assert!(tool.is_tool_failure() && !tool.is_file());
        assert_eq!((tool.hint(), tool.location()), (Some("use another table"), None));

        let sandbox = Error::from(ToolError::of(ErrorKind::SandboxUnavailable, "no user namespaces"));
        assert!(sandbox.is_unavailable());
    }

    #[test]
    fn the_error_inside_comes_out_as_it_was() {
        let inside = ToolsetError::Name { name: "a b".to_owned() };
        let error = Error::from(inside.clone());
        assert!(error.downcast_ref::<ToolError>().is_none());
        let error = error.downcast::<ToolError>().unwrap_err();
        assert!(error.is_configuration());
        assert_eq!(error.downcast::<ToolsetError>().unwrap(), inside);
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
