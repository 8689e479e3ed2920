//! Flow vectors observed from llm-workers: files that are loaded and run, the schemas they tell models, the
//! batch program, and pure helpers. Values are compared with their types, errors by phase and Python class.

mod decided;
mod files;
mod harness;
mod worker;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::{Value as Json, json};
use toolwright_core::{
    CallInfo, CallNote, DynSandbox, Invocation, Patterns, ToolCall, ToolContext, ToolError, ToolOutput,
    Usage, text as words,
};
use toolwright_expr::{EvalLimits, Program, Value};
use toolwright_lang::{
    CLI_TOOL, Cli, ExtractJson, Loaded, Source, cache_key, class_of, format_arguments, load, raised,
    split_type_parameters,
};
use toolwright_runtime::{Event, EventKind, Run};

use self::decided::{Decision, Skipped, Why, decision};
use self::harness::host;
use super::Tally;
use super::tagged::{from_tagged, matches};

/// Runs files of flow vectors.
pub fn run(files: &[PathBuf]) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut optional = Tally::default();
    let mut counts = Skipped::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for file in files {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let document: Json = serde_json::from_str(&text)?;
        let files = document.pointer("/meta/fs_files").and_then(Json::as_object).cloned().unwrap_or_default();
        let vectors = document.get("vectors").and_then(Json::as_array).context("no `vectors` in the file")?;
        for vector in vectors {
            let tally = if vector.get("optional").is_some() { &mut optional } else { &mut tally };
            runtime.block_on(check(vector, &files, tally, &mut counts));
        }
    }
    println!("{counts}");
    println!("optional: {}", optional.closing_line());
    Ok(tally)
}

async fn check(vector: &Json, files: &files::Files, tally: &mut Tally, counts: &mut Skipped) {
    let field = |name: &str| vector.get(name).and_then(Json::as_str).unwrap_or_default();
    let (id, kind) = (field("id"), field("kind"));
    // Accidents are not scored, but for those whose note says what is right instead.
    let expect = vector.get("expect").unwrap_or(&Json::Null);
    if vector.get("quirk").is_some() && !is_caught(expect) {
        return counts.skip(tally, Why::Accident);
    }
    match decision(vector) {
        Some(Decision::NotPossible) => return counts.skip(tally, Why::NotPossible),
        Some(decision) => {
            return match decision.holds(vector, files).await {
                Ok(()) => counts.skip(tally, Why::Decided),
                Err((wanted, got)) => tally.fail(id, wanted, got),
            };
        }
        None => {}
    }
    let verdict = match kind {
        "tool" => tool(vector).await,
        "schema" => schema(vector),
        "cli" => cli(vector).await,
        "util" => util(vector),
        "fs" => files::run(vector, files).await,
        "confirm" => files::confirm(vector),
        "worker" => worker::run(vector).await,
        other => Err(("a kind we know".to_owned(), other.to_owned())),
    };
    match verdict {
        Ok(()) => tally.pass(),
        Err((wanted, got)) => tally.fail(id, wanted, got),
    }
}

/// What was wanted and what came instead.
type Verdict = Result<(), (String, String)>;

async fn tool(vector: &Json) -> Verdict {
    let expect = vector.get("expect").unwrap_or(&Json::Null);
    let wanted = describe(expect);
    let loaded = match load(source(vector), &host()) {
        Ok(loaded) => loaded,
        Err(problems) => {
            let phase = expect.pointer("/error/phase").and_then(Json::as_str);
            let told: Vec<_> = problems.problems().iter().map(|problem| problem.message.as_str()).collect();
            return if phase == Some("load") {
                Ok(())
            } else {
                Err((wanted, format!("load: {}", told.join("; "))))
            };
        }
    };
    let name = vector.get("tool").and_then(Json::as_str).unwrap_or_default();
    let input = vector.get("input").map_or_else(|| json!({}), plain);
    let sandbox = match files::needed(vector) {
        true => Some(files::empty().await.map_err(|error| (wanted.clone(), error))?),
        false => None,
    };
    let (outcome, hints) = call(&loaded, name, input, sandbox).await;
    let got = match &outcome {
        Ok(output) => format!("{} with hints {hints:?}", output.value()),
        Err(error) => {
            let cause = raised(error).and_then(toolwright_lang::Raised::cause).unwrap_or_default();
            format!("{} {cause}: {} with hints {hints:?}", class_of(error), error.message())
        }
    };
    // Hints of tools that a script calls are lost there; here they are shown.
    let script = vector.get("yaml").and_then(Json::as_str).is_some_and(|yaml| yaml.contains("starlark:"));
    let same_hints = script || expect.get("hints").is_none_or(|wanted| *wanted == json!(hints));
    if outcome_matches(expect, &outcome) && same_hints { Ok(()) } else { Err((wanted, got)) }
}

fn outcome_matches(expect: &Json, outcome: &Result<ToolOutput, ToolError>) -> bool {
    let field = |name: &str| expect.pointer(&format!("/error/{name}")).and_then(Json::as_str);
    match outcome {
        Ok(output) if is_caught(expect) => match output.value() {
            Json::Object(map) => map.contains_key("error") && map.contains_key("message"),
            // A statement that came after put the value into a text.
            other => {
                other.as_str().is_some_and(|text| text.contains("'error': ") && text.contains("'message': "))
            }
        },
        Ok(output) => expect.get("ok").is_some_and(|wanted| same_value(wanted, &output.value())),
        Err(error) => {
            let own =
                raised(error).and_then(toolwright_lang::Raised::cause).unwrap_or_else(|| class_of(error));
            // Python's class for a bad regular expression is called `error`.
            let wanted = field("cause").filter(|cause| *cause != "error").or(field("class"));
            field("phase") == Some("run") && wanted == Some(own)
        }
    }
}

/// A caught error is a value here; there it was raised again as the repr of a tuple.
fn is_caught(expect: &Json) -> bool {
    let message = expect.pointer("/error/message").and_then(Json::as_str);
    message.is_some_and(|message| message.starts_with("('") || message.starts_with("(\""))
}

/// Integers and floats are told apart, as Python does.
fn same_value(wanted: &Json, got: &Json) -> bool {
    as_json(wanted) == *got || matches(wanted, &Value::from_json(got))
}

/// Results of tools are JSON here: what is walked through arrives as a list, structs as objects, and what
/// JSON has no value for as text.
fn as_json(wanted: &Json) -> Json {
    match wanted {
        Json::Array(items) => Json::Array(items.iter().map(as_json).collect()),
        Json::Object(map) => match map.iter().next() {
            Some((tag, Json::Array(items))) if tag == "$tuple" || tag == "$set" => {
                as_json(&Json::Array(items.clone()))
            }
            Some((tag, Json::Array(bounds))) if tag == "$range" => range(bounds),
            Some((tag, _)) if tag == "$view" => as_json(map.get("items").unwrap_or(&Json::Null)),
            Some((tag, _)) if ["$float", "$int", "$bytes", "$complex"].contains(&tag.as_str()) => {
                from_tagged(wanted).to_string().into()
            }
            Some((tag, fields)) if tag == "$struct" => as_json(fields),
            Some((tag, Json::Array(pairs))) if tag == "$dict" => {
                let text = |key: &Json| match key {
                    Json::String(text) => text.clone(),
                    Json::Null | Json::Bool(_) => key.to_string(),
                    other => from_tagged(other).to_string(),
                };
                let pair = |pair: &Json| Some((text(pair.get(0)?), as_json(pair.get(1)?)));
                Json::Object(pairs.iter().filter_map(pair).collect())
            }
            _ => Json::Object(map.iter().map(|(key, value)| (key.clone(), as_json(value))).collect()),
        },
        scalar => scalar.clone(),
    }
}

fn range(bounds: &[Json]) -> Json {
    let [start, stop, step] = [0, 1, 2].map(|at| bounds.get(at).and_then(Json::as_i64).unwrap_or_default());
    let next = |number: &i64| number.checked_add(step);
    let inside = |number: &i64| if step > 0 { *number < stop } else { step < 0 && *number > stop };
    std::iter::successors(Some(start), next).take_while(inside).map(Json::from).collect()
}

fn describe(expect: &Json) -> String {
    match expect.get("error") {
        Some(error) => format!("{error} with hints {}", expect.get("hints").unwrap_or(&Json::Null)),
        None => format!(
            "{} with hints {}",
            expect.get("ok").unwrap_or(&Json::Null),
            expect.get("hints").unwrap_or(&Json::Null)
        ),
    }
}

/// Calls a tool, and tells what a person would have been shown.
async fn call(
    loaded: &Loaded,
    name: &str,
    input: Json,
    sandbox: Option<Arc<DynSandbox>>,
) -> (Result<ToolOutput, ToolError>, Vec<String>) {
    let shown = Shown::default();
    let mut builder = Run::builder(loaded.tools().clone()).on_event(shown.listener());
    if let Some(sandbox) = sandbox {
        builder = builder.sandbox("default", sandbox);
    }
    let run = match builder.build() {
        Ok(run) => run,
        Err(error) => return (Err(error.into()), Vec::new()),
    };
    // Called as a tool would call it, because results for models lose the class of an error.
    let context = ToolContext::new(
        run.dispatch(),
        CallInfo { call_id: "root".into(), tool: "root".into(), span: u64::MAX, ..CallInfo::default() },
    );
    let call = ToolCall::new("1", name, input);
    let outcome = run.dispatch().invoke(&context, Invocation::new(call).within(loaded.tools())).await;
    (outcome, shown.lines())
}

/// The call a line belongs to, and the line.
type Line = (Option<u64>, String);

/// What a person is shown: one line for each call, in the order they start.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<Line>>>);

impl Shown {
    fn listener(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let shown = self.clone();
        move |event: &Event| {
            let mut lines = shown.0.lock().unwrap_or_else(PoisonError::into_inner);
            match &event.kind {
                EventKind::CallStarted { span, tool, .. } if **tool != *CLI_TOOL => {
                    lines.push((Some(*span), format!("Running tool {tool}")));
                }
                EventKind::CallNoted { span, note: CallNote::Hint { text } } => {
                    if let Some((_, line)) = lines.iter_mut().find(|(owner, _)| *owner == Some(*span)) {
                        line.clone_from(text);
                    }
                }
                _ => {}
            }
        }
    }

    fn say(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((None, line));
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines
            .iter()
            .filter(|(owner, line)| owner.is_none() || !line.is_empty())
            .map(|(_, line)| line.clone())
            .collect()
    }
}

fn schema(vector: &Json) -> Verdict {
    let name = vector.get("tool").and_then(Json::as_str).unwrap_or_default();
    let loaded =
        load(source(vector), &host()).map_err(|problems| ("a tool".to_owned(), format!("{problems}")))?;
    let entry = loaded.tools().get(name).ok_or(("a tool".to_owned(), "none".to_owned()))?;
    let spec = entry.tool.spec();
    let got = json!({"type": "function", "function": {
        "name": spec.name, "description": spec.description, "parameters": spec.parameters
    }});
    let wanted = vector.pointer("/expect/ok/openai_tool").unwrap_or(&Json::Null);
    if got == *wanted { Ok(()) } else { Err((wanted.to_string(), got.to_string())) }
}

async fn cli(vector: &Json) -> Verdict {
    let expect = vector.get("expect").unwrap_or(&Json::Null);
    let loaded = match load(source(vector), &host()) {
        Ok(loaded) => loaded,
        Err(problems) => {
            let fine = expect.pointer("/error/phase").is_some_and(|phase| phase == "load");
            return if fine { Ok(()) } else { Err((expect.to_string(), format!("{problems}"))) };
        }
    };
    let Some(cli) = loaded.cli() else {
        let fine = expect.pointer("/error/class").is_some_and(|class| class == "UsageError");
        return if fine { Ok(()) } else { Err((expect.to_string(), "no `cli` section".to_owned())) };
    };
    let shown = Shown::default();
    let tools =
        loaded.tools().clone().with(cli.tool()).map_err(|error| (expect.to_string(), error.to_string()))?;
    let run = Run::builder(tools).on_event(shown.listener()).build();
    let run = run.map_err(|error| (expect.to_string(), error.to_string()))?;
    let mut stdout = String::new();
    let mut failure = None;
    for input in cli.inputs(inputs(vector)) {
        shown.say(format!("Processing input: {}", Cli::show_input(&input)));
        match cli.run_input(&*run.dispatch(), input).await {
            Ok(made) => stdout.push_str(&format!("{}\n\n\n", made.text)),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    let stderr: String = shown.lines().iter().map(|line| format!("{line}\n")).collect();
    let failed = expect.get("error").is_some() == failure.is_some();
    let same =
        |key: &str, got: &str| expect.get(key).and_then(Json::as_str).is_none_or(|wanted| wanted == got);
    if failed && same("stdout", &stdout) && same("stderr", &stderr) {
        return Ok(());
    }
    Err((expect.to_string(), json!({"stdout": stdout, "stderr": stderr}).to_string()))
}

/// The inputs of the batch program: arguments, and the lines of stdin in place of `-`.
fn inputs(vector: &Json) -> Vec<String> {
    let stdin = vector.get("stdin").and_then(Json::as_str).unwrap_or_default();
    let arguments =
        vector.get("args").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    let mut lines = stdin.lines();
    arguments
        .flat_map(|argument| match argument {
            // Who reads a second time finds nothing left.
            "-" => lines.by_ref().map(|line| line.trim().to_owned()).collect(),
            other => vec![other.to_owned()],
        })
        .collect()
}

fn util(vector: &Json) -> Verdict {
    let argument = |index: usize| vector.get("args").and_then(|args| args.get(index)).unwrap_or(&Json::Null);
    let text = |index: usize| argument(index).as_str().unwrap_or_default();
    let texts = |index: usize| -> Vec<String> {
        argument(index).as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
    };
    let got = match vector.get("fn").and_then(Json::as_str).unwrap_or_default() {
        "matches_patterns" => Patterns::new(texts(1)).matches(text(0)).into(),
        "extract_json_blocks" => ExtractJson::from_json(argument(1)).text(text(0)).into(),
        "format_tool_args" => {
            let longest = argument(2).as_u64().and_then(|longest| usize::try_from(longest).ok()).unwrap_or(0);
            format_arguments(argument(0), &texts(1), longest).into()
        }
        "format_cost" => words::money(argument(0).as_f64().unwrap_or_default(), text(1)).into(),
        "format_usage" => usage(argument(0)).map_or(Json::Null, |usage| usage.to_string().into()),
        "calculate_hash" => cache_key(&from_tagged(argument(0))).into(),
        "is_safe_to_open" => toolwright_tools::is_safe_to_open(text(0)).into(),
        "normalize_session_filename" => words::with_ending(text(0), ".chat.yaml").into(),
        "split_type_parameters" => split_type_parameters(text(0)).into(),
        "format_as_yaml" => {
            let scope = [("value", from_tagged(argument(0))), ("trim", from_tagged(argument(1)))];
            let program = Program::compile("str(as_yaml(value, trim))");
            let value = program.and_then(|program| program.evaluate(&scope, &EvalLimits::default()));
            value.map_or_else(|error| json!(error.to_string()), |value| json!(value.to_string()))
        }
        other => json!(format!("no helper `{other}`")),
    };
    let wanted = vector.pointer("/expect/ok").unwrap_or(&Json::Null);
    if got == *wanted { Ok(()) } else { Err((wanted.to_string(), got.to_string())) }
}

/// Tokens as that system counts them; nothing when there are none.
fn usage(told: &Json) -> Option<Usage> {
    let number = |path: &str| told.pointer(path).and_then(Json::as_u64).unwrap_or_default();
    let usage = Usage {
        input_tokens: number("/input_tokens"),
        output_tokens: number("/output_tokens"),
        cache_read_tokens: number("/input_token_details/cache_read"),
        reasoning_tokens: number("/output_token_details/reasoning"),
        ..Usage::default()
    };
    (usage.total() > 0).then_some(usage)
}

fn source(vector: &Json) -> Source {
    Source::text("script.yaml", vector.get("yaml").and_then(Json::as_str).unwrap_or_default())
}

/// Tagged input as the JSON a model would send.
fn plain(input: &Json) -> Json {
    from_tagged(input).to_json().unwrap_or_else(|_| input.clone())
}
