//! Errors of flows: the Python class a `catch` may name, beside our own kinds.
//!
//! Files written for llm-workers catch errors by Python class names. A [`Raised`] travels as the source of a
//! [`ToolError`] and keeps the class; errors without one have the class that goes with their kind.

use std::borrow::Cow;

use toolwright_core::{ErrorKind, ForeignClass, ToolError};
use toolwright_expr::{ErrorKind as ExprKind, LimitKind};

/// The most callers that an error remembers.
const MAX_CALLERS: usize = 8;

/// The class of an error, in Python's words, and the place of the step that failed.
#[derive(Debug, Clone)]
pub struct Raised {
    class: Cow<'static, str>,
    cause: Option<String>,
    place: Option<String>,
    tool: Option<String>,
    callers: Vec<String>,
}

impl Raised {
    fn new(class: impl Into<Cow<'static, str>>, place: Option<String>) -> Self {
        Raised { class: class.into(), cause: None, place, tool: None, callers: Vec::new() }
    }

    /// The class `catch` sees, for example `ToolException`.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// The class of what was wrong underneath, for example `ZeroDivisionError`.
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// Where the failing step stands, as `file:line:column`.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// The flow whose step failed.
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// Where that flow was called, and its caller, and so on.
    pub fn callers(&self) -> &[String] {
        &self.callers
    }
}

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.cause.as_deref().unwrap_or(&self.class))?;
        if let Some(tool) = &self.tool {
            write!(f, " in `{tool}`")?;
        }
        if let Some(place) = &self.place {
            write!(f, " at {place}")?;
        }
        self.callers.iter().try_for_each(|place| write!(f, ", called at {place}"))
    }
}

impl std::error::Error for Raised {}

/// An error of a Python class, for tools that stand in for Python ones.
///
/// ```
/// use toolwright_lang::{class_of, raise};
///
/// let error = raise("ValueError", "no such thing");
/// assert_eq!((class_of(&error), error.message()), ("ValueError", "no such thing"));
/// ```
pub fn raise(class: impl Into<String>, message: impl Into<String>) -> ToolError {
    let class: String = class.into();
    ToolError::new(message).with_source(Raised::new(class, None))
}

/// The Python class of an error, as `catch` sees it.
pub fn class_of(error: &ToolError) -> &str {
    match raised(error) {
        Some(raised) => raised.class(),
        None => class_of_kind(error.kind()),
    }
}

/// What an error carries when a flow made it.
pub fn raised(error: &ToolError) -> Option<&Raised> {
    std::error::Error::source(error).and_then(|source| source.downcast_ref())
}

/// The class that goes with a kind.
pub(crate) fn class_of_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Parsing => "ValidationError",
        ErrorKind::Timeout => "TimeoutError",
        ErrorKind::UnicodeDecode => "UnicodeDecodeError",
        ErrorKind::Permission | ErrorKind::Approval => "PermissionError",
        ErrorKind::FileNotFound => "FileNotFoundError",
        ErrorKind::IsADirectory => "IsADirectoryError",
        ErrorKind::Limit | ErrorKind::OutputLimit => "MemoryError",
        ErrorKind::Cancelled => "CancelledError",
        ErrorKind::SandboxUnavailable | ErrorKind::Fatal => "RuntimeError",
        _ => "ToolException",
    }
}

/// The errors a `catch` names.
#[derive(Debug, Default)]
pub(crate) struct Catch {
    pub(crate) all: bool,
    pub(crate) names: Vec<Box<str>>,
}

impl Catch {
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut catch = Catch::default();
        for name in names {
            if matches!(name, "*" | "all") {
                catch.all = true;
            }
            catch.names.push(name.into());
        }
        catch
    }

    /// What is wrong with a name that no error has, and what to write.
    pub(crate) fn unknown(name: &str) -> Option<(String, String)> {
        let shown = toolwright_core::text::clip(name, 80);
        if matches!(name, "Exception" | "BaseException" | "OSError" | "IOError" | "EnvironmentError") {
            let message = format!("`{shown}` does not catch the classes below it: names are compared");
            return Some((message, "`all` catches every error".to_owned()));
        }
        let kinds = ErrorKind::ALL.into_iter();
        let known = kinds.flat_map(|kind| [kind.as_str(), class_of_kind(kind)]);
        let classes = toolwright_expr::builtin_names().into_iter();
        let known: Vec<&str> = known
            .chain(classes.filter(|name| name.ends_with("Error")))
            .chain(["*", "all", "RequestException"])
            .collect();
        if known.contains(&name) || toolwright_expr::is_builtin(name) {
            return None;
        }
        let hint = match toolwright_core::nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write one of our error types, such as `file_not_found`, a class of Python, or `all`"
                .to_owned(),
        };
        Some((format!("no error is called `{shown}`"), hint))
    }

    /// Whether the error is one of those named. Errors that end the run cannot be caught.
    pub(crate) fn takes(&self, error: &ToolError) -> bool {
        if error.is_fatal() {
            return false;
        }
        let raised = raised(error);
        let named = |name: &str| {
            name == error.kind().as_str()
                || name == class_of(error)
                || raised.and_then(Raised::cause).is_some_and(|cause| cause == name)
                || ForeignClass::of(error).is_some_and(|class| class == name)
                || name == "ToolException" && of_a_tool(error)
        };
        self.all && error.kind() != ErrorKind::Cancelled || self.names.iter().any(|name| named(name))
    }
}

/// Whether a tool failed at its work and named no class: llm-workers' tools raise ToolException then,
/// whatever was wrong underneath.
fn of_a_tool(error: &ToolError) -> bool {
    let of_kind = |raised: &Raised| raised.cause().is_none() && raised.class() == class_of_kind(error.kind());
    let at_work = matches!(
        error.kind(),
        ErrorKind::FileNotFound
            | ErrorKind::IsADirectory
            | ErrorKind::Permission
            | ErrorKind::UnicodeDecode
            | ErrorKind::OutputLimit
            | ErrorKind::Timeout
    );
    at_work && raised(error).is_none_or(of_kind)
}

/// A template that failed. The model reads what and why; the place is for the operator.
pub(crate) fn evaluation(code: &str, error: toolwright_expr::Error, place: String) -> ToolError {
    let class = error.python_class().to_owned();
    let shown = toolwright_core::text::clip(code.trim(), 120);
    let message = format!("cannot evaluate `{shown}`: {}", words(&error));
    failed(error, message, Some(("ToolException", class)), place)
}

/// A script that failed. Its errors keep their own class.
pub(crate) fn script(error: toolwright_expr::Error, place: String) -> ToolError {
    let message = words(&error);
    failed(error, message, None, place)
}

/// A value that cannot be the result of its flow. `place` is where the flow's last statement stands.
pub(crate) fn stays(error: toolwright_expr::Error, place: Option<&str>) -> ToolError {
    no_document(error, "a value cannot leave the flow".to_owned(), place)
}

/// A value that cannot be an argument.
pub(crate) fn kept_out(
    error: toolwright_expr::Error,
    parameter: &str,
    tool: &str,
    place: Option<&str>,
) -> ToolError {
    no_document(error, format!("the value of `{parameter}` cannot enter `{tool}`"), place)
}

/// A value that cannot become a document, and what therefore cannot be done with it.
pub(crate) fn no_document(error: toolwright_expr::Error, what: String, place: Option<&str>) -> ToolError {
    let class = error.python_class().to_owned();
    let words = match error.limit() {
        Some(LimitKind::Output) => "it takes more than 128 MiB of memory".to_owned(),
        _ => words(&error),
    };
    let raised = Raised { cause: Some(class), ..Raised::new("ToolException", place.map(str::to_owned)) };
    let message = format!("{what}: {words}");
    hinted(ToolError::of(kind_of(&error), message).with_source(raised), &error)
}

/// What an error says, with its class where that says nothing alone: Python's KeyError is only the key.
fn words(error: &toolwright_expr::Error) -> String {
    match (error.python_class(), error.message()) {
        (class, "") => class.to_owned(),
        ("KeyError", key) => format!("KeyError: {key}"),
        (_, message) => message.to_owned(),
    }
}

fn failed(
    error: toolwright_expr::Error,
    message: String,
    wrapped: Option<(&'static str, String)>,
    place: String,
) -> ToolError {
    let kind = kind_of(&error);
    let (class, cause) = match wrapped {
        Some((class, cause)) => (Cow::Borrowed(class), Some(cause)),
        None => (Cow::Owned(error.python_class().to_owned()), None),
    };
    let raised = Raised { cause, ..Raised::new(class, Some(place)) };
    hinted(ToolError::of(kind, message).with_source(raised), &error)
}

/// With what to try instead.
fn hinted(failed: ToolError, error: &toolwright_expr::Error) -> ToolError {
    match (error.hint(), error.limit()) {
        (Some(hint), _) => failed.hint(hint),
        (None, Some(LimitKind::Steps)) => failed.hint("`limits: {steps: ...}` in the file allows more"),
        (None, Some(LimitKind::Bytes)) => failed.hint("`limits: {memory: ...}` in the file allows more"),
        _ => failed,
    }
}

fn kind_of(error: &toolwright_expr::Error) -> ErrorKind {
    match error.kind() {
        ExprKind::Limit => ErrorKind::Limit,
        ExprKind::Cancelled if error.python_class() == "TimeoutError" => ErrorKind::Timeout,
        ExprKind::Cancelled => ErrorKind::Cancelled,
        _ => ErrorKind::Unknown,
    }
}

/// An error of a called tool, with the place of the call. What others keep beside their errors stays as it
/// is.
pub(crate) fn called(error: ToolError, place: String) -> ToolError {
    let raised = match raised(&error) {
        Some(old) if old.place.is_none() => Raised { place: Some(place), ..old.clone() },
        Some(old) if old.callers.len() < MAX_CALLERS => {
            let mut raised = old.clone();
            raised.callers.push(place);
            raised
        }
        Some(_) => return error,
        None if std::error::Error::source(&error).is_some() => return error,
        None => Raised::new(class_of_kind(error.kind()), Some(place)),
    };
    error.with_source(raised)
}

/// An error that leaves a flow, with the flow's name when the failing step is its own.
pub(crate) fn leaving(error: ToolError, flow: &str) -> ToolError {
    match raised(&error) {
        Some(old) if old.tool.is_none() && old.place.is_some() => {
            let raised = Raised { tool: Some(flow.to_owned()), ..old.clone() };
            error.with_source(raised)
        }
        _ => error,
    }
}

/// A step that did what flows may not do.
pub(crate) fn refused(message: impl Into<String>, place: String) -> ToolError {
    ToolError::new(message).with_source(Raised::new("RuntimeError", Some(place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(names: &[&str], error: &ToolError) -> bool {
        Catch::new(names.iter().copied()).takes(error)
    }

    #[test]
    fn errors_are_caught_by_kind_by_class_and_by_star() {
        let missing = ToolError::of(ErrorKind::FileNotFound, "no such file");
        assert!(takes(&["file_not_found"], &missing) && takes(&["FileNotFoundError"], &missing));
        assert!(takes(&["*"], &missing) && takes(&["all"], &missing));
        assert!(!takes(&["OSError"], &missing) && !takes(&[], &missing));
        // A tool of llm-workers raises ToolException, whatever was wrong.
        assert!(takes(&["ToolException"], &missing));
        assert!(takes(&["ToolException"], &called(missing, "f:1:1".to_owned())));
        assert!(!takes(&["ToolException"], &ToolError::invalid("no such parameter")));
        assert!(!takes(&["ToolException"], &raise("FileNotFoundError", "gone")));
        let refused = ToolError::new("refused").with_source(ForeignClass::new("RequestException", None));
        assert!(takes(&["RequestException"], &refused) && takes(&["ToolException"], &refused));
        let value = raise("ValueError", "boom");
        assert!(takes(&["KeyError", "ValueError"], &value) && takes(&["unknown"], &value));
        assert!(!takes(&["valueerror"], &value) && !takes(&["Exception"], &value));
    }

    #[test]
    fn what_ends_a_run_or_a_call_is_not_caught() {
        assert!(!takes(&["*", "fatal"], &ToolError::fatal("broken")));
        assert!(!takes(&["*"], &ToolError::of(ErrorKind::Cancelled, "stopped")));
    }
}
