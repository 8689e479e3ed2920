//! `transform_json`: a jq filter over JSON, run by jaq in a worker. A filter is a program of a model: it may
//! never end, or take all memory, and its worker is stopped then.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolwright_core::{ErrorKind, ToolError, ToolOutput, tool};
use toolwright_worker::{
    Command, Connection, Event, Failure, Worker, WorkerError, WorkerLimits, limit_this_process,
};

use crate::options::Options;

/// The arguments under which this program is a worker for filters.
const ARGUMENTS: [&str; 2] = ["__worker", "jq"];

/// How long a filter may take.
const TIME: Duration = Duration::from_secs(5);

/// How much memory it may take.
const MEMORY: u64 = 512 << 20;

/// The most bytes of JSON that go in, or come out.
const MOST_JSON: usize = 16 << 20;

/// Set by a program that becomes a worker when it is started as one.
static CAN_BE_WORKER: AtomicBool = AtomicBool::new(false);

/// What a worker is asked for.
#[derive(Serialize, Deserialize)]
struct JqCall {
    filter: String,
    /// As text, whose numbers are read as they are written.
    input: String,
}

/// Becomes a worker if this process was started as one, and never returns then. Otherwise returns at once.
///
/// A program whose tools include `transform_json` calls this first thing in `main`.
pub fn main_if_worker() {
    CAN_BE_WORKER.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    if arguments.by_ref().take(ARGUMENTS.len()).eq(ARGUMENTS) && arguments.next().is_none() {
        // Whatever goes wrong here, the other side sees that the connection ends.
        std::process::exit(i32::from(work().is_err()));
    }
}

fn work() -> io::Result<()> {
    let mut connection = Connection::from_stdin()?;
    let (_, arguments, _) = connection.call()?;
    let call: JqCall = serde_json::from_value(arguments)?;
    limit_this_process(&limits())?;
    match filtered(&call.filter, &call.input) {
        Ok(value) => connection.result(value),
        Err(failure) => connection.error(failure),
    }
}

fn limits() -> WorkerLimits {
    WorkerLimits { memory: MEMORY, processor: TIME, time: TIME, ..WorkerLimits::default() }
}

/// Transform JSON using JQ-like syntax.
#[tool(category = "data", read_only)]
pub fn transform_json(
    #[tool(setup)] _options: &Options,
    /// The JSON to transform.
    json_data: Map<String, Value>,
    /// The jq filter, for example .items | map(.price) | add. Several outputs are given as a list.
    jq_filter: String,
) -> Result<ToolOutput, ToolError> {
    let input = serde_json::to_string(&json_data)?;
    if input.len() > MOST_JSON {
        let message = format!("`json_data` has more than {} MiB", MOST_JSON >> 20);
        return Err(ToolError::of(ErrorKind::Limit, message));
    }
    in_worker(JqCall { filter: jq_filter, input }).map(ToolOutput::json)
}

fn in_worker(call: JqCall) -> Result<Value, ToolError> {
    if !CAN_BE_WORKER.load(Ordering::Relaxed) {
        let error = ToolError::of(ErrorKind::SandboxUnavailable, "this program cannot start a worker for jq");
        return Err(error.hint("call `toolwright::tools::main_if_worker` first thing in `main`"));
    }
    let command = Command::this_program(ARGUMENTS)?;
    let call = serde_json::to_value(call)?;
    let mut worker = Worker::start(&command, limits(), "jq", call, &[]).map_err(failed)?;
    loop {
        if let Event::Result(value) = worker.next_event().map_err(failed)? {
            return Ok(value);
        }
    }
}

fn failed(error: WorkerError) -> ToolError {
    match error {
        WorkerError::Failed(Failure { kind, message, hint }) => {
            let kind = if kind == ErrorKind::OutputLimit.as_str() {
                ErrorKind::OutputLimit
            } else {
                ErrorKind::Unknown
            };
            let error = ToolError::of(kind, message);
            match hint {
                Some(hint) => error.hint(hint),
                None => error,
            }
        }
        WorkerError::TimedOut(_) => late(),
        WorkerError::Io(error) => ToolError::of(
            ErrorKind::SandboxUnavailable,
            format!("the worker for jq could not be started or reached: {error}"),
        ),
        other => {
            let message =
                format!("the filter was stopped: {}", other.to_string().replace("the worker", "it"));
            let hint = format!("it may take {} s and {} MiB", TIME.as_secs(), MEMORY >> 20);
            ToolError::of(ErrorKind::Limit, message).hint(hint)
        }
    }
}

fn late() -> ToolError {
    ToolError::of(ErrorKind::Timeout, format!("the filter took more than {} s", TIME.as_secs()))
}

fn failure(kind: ErrorKind, message: String) -> Failure {
    Failure { kind: kind.as_str().to_owned(), message, hint: None }
}

/// The only output of a filter, or all of several as a list; null when there is none.
fn filtered(filter: &str, input: &str) -> Result<Value, Failure> {
    let wrong = |message: String| failure(ErrorKind::Unknown, message);
    let arena = Arena::default();
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let modules = Loader::new(definitions)
        .load(&arena, File { code: filter, path: () })
        .map_err(|errors| wrong(unreadable(filter, errors)))?;
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let compiled = Compiler::default()
        .with_funs(functions)
        .compile(modules)
        .map_err(|errors| wrong(undefined(filter, errors)))?;
    let input = read::parse_single(input.as_bytes())
        .map_err(|error| wrong(format!("`json_data` cannot be read: {error}")))?;
    let context = Ctx::<data::JustLut<Val>>::new(&compiled.lut, Vars::new([]));
    let mut outputs = Vec::new();
    let mut size = 0;
    for output in compiled.id.run((context, input)).map(unwrap_valr) {
        let output = output.map_err(|error| wrong(format!("the filter failed: {error}")))?.to_string();
        size += output.len();
        if size > MOST_JSON {
            let message = format!("the filter gives more than {} MiB", MOST_JSON >> 20);
            return Err(failure(ErrorKind::OutputLimit, message));
        }
        let output = serde_json::from_str(&output).map_err(|_| {
            wrong(
                "an output of the filter is not JSON: a number that is not finite, binary data or too deep"
                    .to_owned(),
            )
        })?;
        outputs.push(output);
    }
    Ok(match outputs.len() {
        0 => Value::Null,
        1 => outputs.remove(0),
        _ => Value::Array(outputs),
    })
}

/// What is wrong with a filter that cannot be parsed, and where.
fn unreadable(filter: &str, errors: load::Errors<&str, ()>) -> String {
    let first = errors.into_iter().find_map(|(_, error)| match error {
        load::Error::Io(errors) => errors.first().map(|(path, _)| format!("there is no module `{path}`")),
        load::Error::Lex(errors) => {
            errors.first().map(|(wanted, rest)| expected(filter, wanted.as_str(), rest))
        }
        load::Error::Parse(errors) => {
            errors.first().map(|(wanted, found)| expected(filter, wanted.as_str(), found))
        }
    });
    format!("`jq_filter` is not a filter: {}", first.unwrap_or_else(|| "it cannot be parsed".to_owned()))
}

fn expected(filter: &str, wanted: &str, rest: &str) -> String {
    let at = load::span(filter, rest).start;
    let place = filter.get(..at).map_or(at, |before| before.chars().count());
    match rest.chars().next() {
        Some(found) => format!("expected {wanted}, found {found:?} at character {}", place + 1),
        None => format!("expected {wanted} at its end"),
    }
}

/// Which name a filter uses that does not exist, and where.
fn undefined(filter: &str, errors: jaq_core::compile::Errors<&str, ()>) -> String {
    let first = errors.into_iter().flat_map(|(_, errors)| errors).next();
    match first {
        Some((name, what)) => {
            let at = load::span(filter, name).start;
            let place = filter.get(..at).map_or(at, |before| before.chars().count());
            format!(
                "`jq_filter` is not a filter: undefined {} `{name}` at character {}",
                what.as_str(),
                place + 1
            )
        }
        None => "`jq_filter` is not a filter: it uses a name that is not defined".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(filter: &str, input: Value) -> Result<Value, String> {
        filtered(filter, &input.to_string()).map_err(|failure| failure.message)
    }

    #[test]
    fn one_output_is_the_result_and_several_are_a_list() {
        let data =
            json!({"items": [{"n": "a", "p": 2.5}, {"n": "b", "p": 4}], "big": 12345678901234567890_u64});
        for (filter, wanted) in [
            (".items | map(.p) | add", json!(6.5)),
            (".items[].n", json!(["a", "b"])),
            ("[.items[].n]", json!(["a", "b"])),
            ("empty", json!(null)),
            (".missing", json!(null)),
            (".items | map({(.n): .p}) | add", json!({"a": 2.5, "b": 4})),
            ("[.items[] | select(.p > 3) | .n] | join(\",\")", json!("b")),
            (".big", json!(12345678901234567890_u64)),
            ("def f(x): x * 2; .items[0].p | f(.)", json!(5.0)),
        ] {
            assert_eq!(run(filter, data.clone()), Ok(wanted), "{filter}");
        }
    }

    #[test]
    fn filter_that_is_wrong_is_told_with_its_place() {
        for (filter, place) in [
            (". |", "at its end"),
            (".a[", "at its end"),
            (".a ^ 1", "character 4"),
            ("nosuch(.)", "`nosuch`"),
            ("$x", "`$x`"),
        ] {
            let message = run(filter, json!({})).unwrap_err();
            assert!(message.contains(place), "{filter}: {message}");
        }
        assert!(run(".a + {}", json!({"a": 1})).unwrap_err().contains("failed"));
        assert!(run("import \"x\" as x; .", json!({})).is_err());
        assert!(run("infinite", json!({})).is_err());
    }
}
