//! The one error type of the crate: a small kind to match on, a message, a place and a way out.
//! Python's class names are kept beside the kinds because flows catch errors by those names.

use std::borrow::Cow;
use std::fmt;

/// A half-open range of bytes in the source text an error points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A span from byte `start` up to, not including, byte `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: clamp(start), end: clamp(end) }
    }

    /// The smallest span covering both.
    pub(crate) fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

fn clamp(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// What went wrong, small enough to match on.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not a program of this language.
    Syntax,
    /// The text asks for something the language leaves out on purpose.
    Forbidden,
    /// A name that is neither a variable nor a built-in.
    UnknownName,
    /// An operation on a value of the wrong type.
    Type,
    /// A value of the right type that does not fit.
    Value,
    /// Division or modulo by zero.
    ZeroDivision,
    /// A key that is not in the dict or set.
    Key,
    /// A position outside the sequence.
    Index,
    /// An attribute or method the value does not have.
    Attribute,
    /// A number too large for the result type.
    Overflow,
    /// A limit of the evaluation was reached; see [`Error::limit`].
    Limit,
    /// The evaluation was cancelled or its deadline passed.
    Cancelled,
    /// An `assert` that did not hold.
    Assertion,
    /// A `raise` statement.
    Raised,
    /// A host function failed.
    Host,
    /// The program did something the evaluator refuses at run time.
    Runtime,
}

impl ErrorKind {
    /// The name used in JSON, transcripts and documentation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Forbidden => "forbidden",
            Self::UnknownName => "unknown_name",
            Self::Type => "type",
            Self::Value => "value",
            Self::ZeroDivision => "zero_division",
            Self::Key => "key",
            Self::Index => "index",
            Self::Attribute => "attribute",
            Self::Overflow => "overflow",
            Self::Limit => "limit",
            Self::Cancelled => "cancelled",
            Self::Assertion => "assertion",
            Self::Raised => "raised",
            Self::Host => "host",
            Self::Runtime => "runtime",
        }
    }

    fn python_class(self) -> &'static str {
        match self {
            Self::Syntax | Self::Forbidden => "SyntaxError",
            Self::UnknownName => "NameError",
            Self::Type => "TypeError",
            Self::Value => "ValueError",
            Self::ZeroDivision => "ZeroDivisionError",
            Self::Key => "KeyError",
            Self::Index => "IndexError",
            Self::Attribute => "AttributeError",
            Self::Overflow => "OverflowError",
            Self::Limit => "MemoryError",
            Self::Cancelled => "CancelledError",
            Self::Assertion => "AssertionError",
            Self::Raised | Self::Host => "Exception",
            Self::Runtime => "RuntimeError",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which limit ended an evaluation.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// Steps of work.
    Steps,
    /// Bytes allocated.
    Bytes,
    /// Nesting of code, calls or data.
    Depth,
    /// Size of the result.
    Output,
    /// Size of an integer.
    Digits,
    /// Length of the source text.
    Source,
}

impl LimitKind {
    /// The name of the field of [`EvalLimits`](crate::EvalLimits) that was reached.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Bytes => "bytes",
            Self::Depth => "depth",
            Self::Output => "output",
            Self::Digits => "digits",
            Self::Source => "source",
        }
    }
}

/// Why a program could not be compiled or evaluated.
pub struct Error {
    repr: Box<Repr>,
}

struct Repr {
    kind: ErrorKind,
    limit: Option<LimitKind>,
    message: Cow<'static, str>,
    hint: Option<String>,
    span: Option<Span>,
    class: Option<Cow<'static, str>>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// What went wrong, to match on.
    pub fn kind(&self) -> ErrorKind {
        self.repr.kind
    }

    /// What went wrong, in words, without place or hint.
    pub fn message(&self) -> &str {
        &self.repr.message
    }

    /// What to try instead, when we know.
    pub fn hint(&self) -> Option<&str> {
        self.repr.hint.as_deref()
    }

    /// The bytes of the source the error points at.
    pub fn span(&self) -> Option<Span> {
        self.repr.span
    }

    /// Which limit was reached, when [`kind`](Self::kind) is [`ErrorKind::Limit`].
    pub fn limit(&self) -> Option<LimitKind> {
        self.repr.limit
    }

    /// The name of the exception class Python would raise; flows catch errors by it.
    pub fn python_class(&self) -> &str {
        match (&self.repr.class, self.repr.limit) {
            (Some(class), _) => class,
            (None, Some(LimitKind::Steps)) => "TimeoutError",
            (None, Some(LimitKind::Depth)) => "RecursionError",
            (None, Some(LimitKind::Digits)) => "OverflowError",
            (None, _) => self.repr.kind.python_class(),
        }
    }

    /// The host's own error, when a host function failed with one.
    pub fn into_host_source(self) -> Option<Box<dyn std::error::Error + Send + Sync>> {
        self.repr.source
    }

    /// The error as a person reads it: message, line and column, the line itself, hint.
    pub fn render(&self, source: &str) -> String {
        let mut out = format!("error: {}", self.message());
        if let Some(span) = self.span() {
            let place = SourceLine::find(source, span);
            out.push_str(&format!("\n  --> {}:{}\n", place.line, place.column));
            let gutter = " ".repeat(place.line.to_string().len());
            out.push_str(&format!("{} | {}\n", place.line, place.text));
            out.push_str(&format!("{gutter} | {}{}", " ".repeat(place.column - 1), "^".repeat(place.width)));
        }
        if let Some(hint) = self.hint() {
            out.push_str(&format!("\n\nhint: {hint}"));
        }
        out
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let message = bounded(message.into());
        Self {
            repr: Box::new(Repr {
                kind,
                limit: None,
                message,
                hint: None,
                span: None,
                class: None,
                source: None,
            }),
        }
    }

    #[cold]
    pub(crate) fn syntax(message: impl Into<Cow<'static, str>>, span: Span) -> Self {
        Self::new(ErrorKind::Syntax, message).at(span)
    }

    #[cold]
    pub(crate) fn type_(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Type, message)
    }

    #[cold]
    pub(crate) fn value(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Value, message)
    }

    #[cold]
    pub(crate) fn index(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Index, message)
    }

    #[cold]
    pub(crate) fn overflow(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Overflow, message)
    }

    #[cold]
    pub(crate) fn zero_division(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::ZeroDivision, message)
    }

    #[cold]
    pub(crate) fn runtime(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Runtime, message)
    }

    #[cold]
    pub(crate) fn limited(limit: LimitKind, message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::new(ErrorKind::Limit, message);
        error.repr.limit = Some(limit);
        error
    }

    /// Gives the error a place unless it already has a more precise one.
    pub(crate) fn at(mut self, span: Span) -> Self {
        self.repr.span.get_or_insert(span);
        self
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.repr.hint = Some(hint.into());
        self
    }

    pub(crate) fn with_class(mut self, class: impl Into<Cow<'static, str>>) -> Self {
        self.repr.class = Some(class.into());
        self
    }

    pub(crate) fn with_source(mut self, source: Option<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.repr.source = source;
        self
    }
}

/// Messages may quote data; a megabyte of it is unreadable and may hold a secret.
const MESSAGE_CAP: usize = 400;

fn bounded(message: Cow<'static, str>) -> Cow<'static, str> {
    match message.char_indices().nth(MESSAGE_CAP) {
        None => message,
        Some((end, _)) => {
            let head = message.get(..end).unwrap_or_default();
            Cow::Owned(format!("{head}... ({} more bytes)", message.len() - end))
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repr.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.repr.kind)
            .field("limit", &self.repr.limit)
            .field("class", &self.python_class())
            .field("message", &self.repr.message)
            .field("hint", &self.repr.hint)
            .field("span", &self.repr.span)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.repr.source.as_ref().map(|source| source.as_ref() as _)
    }
}

/// Where a span begins, for people: line and column count from one, columns in characters.
struct SourceLine<'a> {
    line: usize,
    column: usize,
    text: &'a str,
    width: usize,
}

impl<'a> SourceLine<'a> {
    fn find(source: &'a str, span: Span) -> Self {
        let start = floor_boundary(source, span.start as usize);
        let end = floor_boundary(source, span.end as usize).max(start);
        let before = source.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let text = source.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let column = source.get(line_start..start).unwrap_or_default().chars().count() + 1;
        let line_end = line_start + text.len();
        let width =
            source.get(start..end.min(line_end).max(start)).unwrap_or_default().chars().count().max(1);
        SourceLine { line: before.matches('\n').count() + 1, column, text, width }
    }
}

fn floor_boundary(source: &str, position: usize) -> usize {
    let mut at = position.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The candidate nearest to `name`, if one is close enough to be a likely slip of the finger.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > 64 {
        return None;
    }
    let allowed = (name.chars().count() / 3).clamp(1, 2);
    candidates
        .filter(|candidate| candidate.len() <= 64)
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= allowed && *edits < candidate.chars().count())
        .min_by_key(|(edits, candidate)| (*edits, candidate.len()))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render_shows_line_column_and_hint() {
        let error = Error::syntax("unexpected `=`", Span::new(8, 9)).with_hint("compare with `==`");
        assert_eq!(
            error.render("first\nx = 1"),
            "error: unexpected `=`\n  --> 2:3\n2 | x = 1\n  |   ^\n\nhint: compare with `==`"
        );
    }

    #[test]
    fn render_survives_spans_outside_the_source() {
        let error = Error::syntax("late", Span::new(900, 1000));
        assert!(error.render("é").contains("1:2"));
    }

    #[test]
    fn long_messages_are_cut() {
        let error = Error::value("é".repeat(10_000));
        assert!(error.message().len() < 1_000);
        assert!(error.message().ends_with("more bytes)"));
    }

    #[test]
    fn nearest_name_forgives_one_slip() {
        let names = ["items", "item_count", "total"];
        assert_eq!(nearest("itmes", names.into_iter()), Some("items"));
        assert_eq!(nearest("tootal", names.into_iter()), Some("total"));
        assert_eq!(nearest("zebra", names.into_iter()), None);
    }
}
