//! Errors for the person at the terminal, or as JSON for a program.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use toolwright_util::lock;

use clap::error::{ContextKind, ContextValue};
use serde_json::{Value, json};
use toolwright::ToolError;
use toolwright::content::ToolResult;
use toolwright::events::EventKind;
use toolwright::lang::expr;
use toolwright::lang::{Diagnostic, FAILED_AT, Severity};
use toolwright::run::RunEnd;
use toolwright::tool::{CallNote, ErrorInfo, ErrorKind};
use toolwright_core::{nearest, text};

use crate::console::Console;
use crate::prompt::printable;

/// A wrong command line, file or environment: exit 2.
#[derive(Debug)]
pub struct Usage {
    message: String,
    hint: Option<String>,
    /// What is wrong with a file, one by one.
    problems: Vec<Diagnostic>,
}

impl Usage {
    pub fn new(message: impl Into<String>) -> Self {
        Usage { message: message.into(), hint: None, problems: Vec::new() }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The problems of a file, which are shown with the error.
    pub fn showing(mut self, problems: &[Diagnostic]) -> Self {
        self.problems = problems.to_vec();
        self
    }
}

impl From<ErrorInfo> for Usage {
    fn from(info: ErrorInfo) -> Self {
        Usage { hint: info.hint, ..Usage::new(info.message) }
    }
}

/// A file that was named and cannot be used, with the causes in one line.
pub fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> Usage {
    Usage::new(format!("{:#}", anyhow::Error::new(error)))
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Usage {}

/// A call, or a run, that ended without success: exit 1. The model's view of the error is all there is to
/// say.
#[derive(Debug)]
pub struct Failed(pub ErrorInfo);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Failed {}

/// An expression that does not compile (exit 2), or fails (exit 1).
#[derive(Debug)]
pub struct Unevaluated {
    info: ErrorInfo,
    kind: expr::ErrorKind,
    span: Option<expr::Span>,
    /// As a person reads it, the hint included.
    shown: String,
}

impl Unevaluated {
    /// `source` is the text of the expression, when the error has its place in it.
    pub fn new(error: &expr::Error, source: Option<&str>) -> Self {
        let kind = match error.kind() {
            expr::ErrorKind::Syntax | expr::ErrorKind::Forbidden => ErrorKind::Parsing,
            expr::ErrorKind::Limit => ErrorKind::Limit,
            _ => ErrorKind::Unknown,
        };
        let message = error.message().to_owned();
        let shown = source.map_or_else(|| message.clone(), |source| error.render(source));
        let shown = shown.trim_end().trim_start_matches("error: ").to_owned();
        let info = ErrorInfo { kind, message, hint: error.hint().map(str::to_owned) };
        Unevaluated { info, kind: error.kind(), span: source.and(error.span()), shown }
    }
}

impl std::fmt::Display for Unevaluated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

impl std::error::Error for Unevaluated {}

/// Where the last call from outside failed, if that was in a flow.
#[derive(Clone, Default)]
pub struct Trail(Arc<Mutex<Steps>>);

#[derive(Default)]
struct Steps {
    span: Option<u64>,
    failed_at: Option<String>,
}

impl Trail {
    /// Hears what happens in the run.
    pub fn follow(&self, event: &EventKind) {
        let mut steps = lock(&self.0);
        match event {
            EventKind::CallStarted { span, parent: None, .. } => {
                *steps = Steps { span: Some(*span), failed_at: None };
            }
            EventKind::CallNoted { span, note: CallNote::Data { name, value } }
                if name == FAILED_AT && steps.span == Some(*span) =>
            {
                steps.failed_at = value.as_str().map(str::to_owned);
            }
            _ => {}
        }
    }

    /// The error of that call, with its place as the cause.
    pub fn explain(&self, error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
        let mut steps = lock(&self.0);
        match steps.failed_at.take() {
            Some(place) => anyhow::Error::new(FlowLocation(place)).context(error),
            None => error.into(),
        }
    }
}

/// The place in a file where a flow failed.
#[derive(Debug)]
struct FlowLocation(String);

impl std::fmt::Display for FlowLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FlowLocation {}

/// The input that failed, for programs: a person was told before.
#[derive(Debug)]
pub struct OfInput(pub Value);

impl std::fmt::Display for OfInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the input {} failed", self.0)
    }
}

/// Prints where something can be reached from now on.
pub fn address(console: &Console, address: &str) -> std::io::Result<()> {
    if console.is_json() { console.line(json!({"address": address})) } else { console.line(address) }
}

/// How a command ends whose run ended so.
pub fn outcome(end: RunEnd) -> anyhow::Result<()> {
    match end {
        RunEnd::Done => Ok(()),
        RunEnd::Limit { limit } => anyhow::bail!("{limit}"),
        RunEnd::Terminated { reason } => anyhow::bail!("the run was ended: {reason}"),
        RunEnd::Cancelled => anyhow::bail!("stopped"),
        RunEnd::Failed { message } => anyhow::bail!("the run failed: {message}"),
    }
}

/// `1 call`, `2 calls`.
pub fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// What is said when a file has problems; they were shown.
pub fn found(problems: usize) -> Usage {
    let verb = if problems == 1 { "was" } else { "were" };
    Usage::new(format!("{} {verb} found", counted(problems as u64, "problem")))
}

/// A file that cannot be used: how many problems it has, and each of them.
pub fn refused(problems: &[Diagnostic]) -> Usage {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    found(errors).showing(problems)
}

/// A problem of a file as a program reads it.
pub fn problem(problem: &Diagnostic) -> Value {
    json!({
        "severity": problem.severity.as_str(), "file": problem.file, "line": problem.line,
        "column": problem.column, "message": problem.message, "hint": problem.hint
    })
}

/// True when the reader of our output has gone away, as `head` does: it has what it wanted.
pub fn reader_left(error: &anyhow::Error) -> bool {
    let is_pipe = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_pipe))
}

/// The longest line of an error; an argument, or a tool, may be of any length.
const LONGEST: usize = 2000;

/// Prints what is wrong with a command line, or the help that was asked for; gives the exit code.
pub fn misused(console: &Console, mut error: clap::Error) -> ExitCode {
    let code = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    if !error.use_stderr() {
        // A reader that went away has what it wanted.
        let _ = error.print();
        return code;
    }
    let unknown = error.get(ContextKind::InvalidSubcommand).cloned();
    if let Some(ContextValue::String(word)) = unknown
        && error.get(ContextKind::SuggestedSubcommand).is_none()
        && let Some(close) = nearest(&word, crate::args::command_names().iter().map(String::as_str))
    {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![close.to_owned()]));
    }
    let said = error.render().to_string();
    if std::env::args_os().take_while(|argument| argument != "--").any(|argument| argument == "--json") {
        let message = said.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        let hint = said.lines().find_map(|line| line.trim_start().strip_prefix("tip: ")).map(str::to_owned);
        let message = text::clip(message, LONGEST);
        console.say(ErrorInfo { kind: ErrorKind::Parsing, message, hint }.to_json());
    } else if said.lines().any(|line| line.len() > LONGEST) {
        said.lines().for_each(|line| console.say(printable(&text::clip(line, LONGEST))));
    } else {
        let _ = error.print();
    }
    code
}

/// Prints an error: what, the causes, the way out.
pub fn print(console: &Console, error: &anyhow::Error) {
    let problems = error.downcast_ref::<Usage>().map_or(&[][..], |usage| &usage.problems);
    if console.is_json() {
        let mut told = info(error).to_json();
        if let Some(told) = told.pointer_mut("/error").and_then(Value::as_object_mut) {
            if !problems.is_empty() {
                told.insert("problems".to_owned(), problems.iter().map(problem).collect());
            }
            if let Some(Unevaluated { kind, span, .. }) = error.downcast_ref() {
                told.insert("kind".to_owned(), json!(kind.as_str()));
                let span = span.map(|span| json!({"start": span.start, "end": span.end}));
                told.insert("span".to_owned(), json!(span));
            }
            if let Some(FlowLocation(place)) = error.chain().find_map(|cause| cause.downcast_ref()) {
                told.insert(FAILED_AT.to_owned(), json!(place));
            }
        }
        if let (Some(OfInput(input)), Some(told)) = (error.downcast_ref(), told.as_object_mut()) {
            told.insert("input".to_owned(), input.clone());
        }
        console.say(told);
        return;
    }
    problems.iter().for_each(|problem| console.say(format_args!("{}\n", printable(&problem.render()))));
    // What a tool or a server says is among it.
    let say = |words: String| {
        let lines: Vec<String> = words.split('\n').map(|line| text::clip(line, LONGEST)).collect();
        console.say(printable(&lines.join("\n")));
    };
    say(format!("error: {error}"));
    for cause in error.chain().skip(1) {
        say(format!("  because: {cause}"));
    }
    if let Some(hint) = info(error).hint.filter(|_| !error.is::<Unevaluated>()) {
        say(format!("\nhint: {hint}"));
    }
}

/// An error as one text: what, each problem of a file with its place, and the way out.
pub fn in_one_text(error: &anyhow::Error) -> String {
    let problems = error.downcast_ref::<Usage>().map_or(&[][..], |usage| &usage.problems);
    let place = |problem: &Diagnostic| {
        let Diagnostic { file, line, column, message, hint, .. } = problem;
        let hint = hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("\n{file}:{line}:{column}: {message}{hint}")
    };
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let places: String = errors.take(MAX_PROBLEMS).map(place).collect();
    let hint = info(error).hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
    text::clip(&printable(&format!("{error:#}{places}{hint}")), LONGEST)
}

/// How many problems of a file one text names.
const MAX_PROBLEMS: usize = 10;

pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    let unread = |error: &Unevaluated| error.info.kind == ErrorKind::Parsing;
    let usage = error.is::<Usage>() || error.downcast_ref().is_some_and(unread);
    if usage { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The way out of an error, if there is one.
pub fn hint_of(error: &anyhow::Error) -> Option<String> {
    info(error).hint
}

fn info(error: &anyhow::Error) -> ErrorInfo {
    let mut info = plain_info(error);
    info.hint = way_out(&info);
    info
}

/// What a person can do about an error. What a tool may write is theirs to say, whatever a model is told.
pub fn way_out(info: &ErrorInfo) -> Option<String> {
    let refused = info.kind == ErrorKind::Permission && info.message.ends_with("is read-only");
    match refused || info.message.contains(READ_ONLY) {
        true => Some(WRITE.to_owned()),
        false => info.hint.clone(),
    }
}

/// What a person can do about how a call went: its error, or a program in it that may not write.
pub fn way_out_of(error: Option<&ErrorInfo>, result: Option<&ToolResult>) -> Option<String> {
    match (error, result) {
        (Some(error), _) => way_out(error),
        (None, Some(result)) => result.to_text().contains(READ_ONLY).then(|| WRITE.to_owned()),
        (None, None) => None,
    }
}

/// Says how to let tools write, when what one gave tells that it wanted to.
pub fn hint_to_write(console: &Console, output: &str) {
    if output.contains(READ_ONLY) {
        console.say(format_args!("\nhint: {WRITE}"));
    }
}

/// What programs say that may not write.
const READ_ONLY: &str = "Read-only file system";

/// The way out for a tool that wanted to write.
const WRITE: &str = "tools may write where they are allowed to: `--write .` on the command line, or `sandbox: {write: [.]}` in \
                     the file";

fn plain_info(error: &anyhow::Error) -> ErrorInfo {
    if let Some(Failed(info)) = error.downcast_ref::<Failed>() {
        return info.clone();
    }
    if let Some(error) = error.downcast_ref::<ToolError>() {
        return error.info();
    }
    if let Some(Unevaluated { info, .. }) = error.downcast_ref() {
        return info.clone();
    }
    let set_up = error.downcast_ref::<toolwright::Error>();
    if let Some(error) = set_up.and_then(|error| error.downcast_ref::<ToolError>()) {
        return error.info();
    }
    let hint = match error.downcast_ref::<Usage>() {
        Some(usage) => usage.hint.clone(),
        None => set_up.and_then(|error| error.hint()).map(str::to_owned),
    };
    let kind = if error.downcast_ref::<Usage>().is_some() { ErrorKind::Parsing } else { ErrorKind::Fatal };
    // With its causes, which a person is shown line by line.
    ErrorInfo { kind, message: format!("{error:#}"), hint }
}
