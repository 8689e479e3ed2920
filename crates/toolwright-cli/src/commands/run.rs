//! `toolwright run`: the `cli` section of a file, input by input.

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use toolwright::Run;
use toolwright::events::{Event, EventKind};
use toolwright::file::{Caller, Sandboxing};
use toolwright::lang::{Cli, CliResult, Wanted};
use toolwright::run::RunEnd;
use toolwright::tool::CallNote;
use toolwright_util::lock;

use crate::args::RunFile;
use crate::commands::until_stopped;
use crate::console::Console;
use crate::opening::{FileChoice, Opening};
use crate::prompt::printable;
use crate::report::{self, Trail, Usage};
use crate::runs::record::{About, record};

pub async fn run(what: RunFile, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let opening = Opening {
        wanted: Wanted::cli(),
        arguments: Some(arguments(&what.file, &what.inputs)),
        ..Opening::default()
    };
    let mut opened = opening.open(console, FileChoice::named(&what.file).parse(console).await?).await?;
    opened.sandboxes(&what.sandbox, Sandboxing::WherePossible).await?;
    let loaded = opened.session.loaded();
    let Some(cli) = loaded.cli() else {
        let error = Usage::new(format!("`{}` has no `cli` section", what.file.display()));
        return Err(error.hint("add one: `cli: {process_input: one_by_one, do: {eval: '${input}'}}`").into());
    };
    let tools = loaded.tools().clone().with(cli.tool())?;
    let trail = Trail::default();
    let heard = trail.clone();
    let hints = Hints { console: console.clone(), silent: Arc::default() };
    let mut builder = opened.session.run_with(Caller::Person, tools).on_event(move |event: &Event| {
        heard.follow(&event.kind);
        if !json {
            hints.hear(&event.kind);
        }
    });
    if let Some(person) = console.person() {
        builder = builder.person(person);
    }
    let used = opened.used();
    let about = About { command: "run", file: used.as_ref() };
    let (builder, _) = record(console, builder, &what.record, &about, opened.session.secrets())?;
    let run = builder.build()?;
    let inputs = cli.inputs(inputs(console, &what.inputs)?);
    let work = one_after_another(console, cli, &run, inputs, what.keep_going, &trail);
    let outcome = match until_stopped(&run, work).await? {
        Ok(0) => Ok(()),
        Ok(count) => Err(anyhow::anyhow!("{} failed", report::counted(count as u64, "input"))),
        Err(error) => Err(error),
    };
    run.finish(match &outcome {
        Ok(()) => RunEnd::Done,
        Err(error) => RunEnd::Failed { message: error.to_string() },
    })?;
    outcome
}

/// The command line as a file sees it in `env.CLI_ARGS`: what llm-workers-cli puts there.
pub fn arguments(file: &Path, inputs: &[String]) -> serde_json::Value {
    let file = file.to_string_lossy();
    serde_json::json!({"verbose": 0, "debug": 0, "level": [], "script_file": file, "inputs": inputs})
}

/// Runs the inputs and prints each result at once; says how many failed.
async fn one_after_another(
    console: &Console,
    cli: &Cli,
    run: &Run,
    inputs: Vec<serde_json::Value>,
    keep_going: bool,
    trail: &Trail,
) -> anyhow::Result<usize> {
    let json = console.is_json();
    let mut failed = 0;
    for input in inputs {
        if !json {
            console.say(format_args!("Processing input: {}", printable(&Cli::show_input(&input))));
        }
        match cli.run_input(&*run.dispatch(), input.clone()).await {
            Ok(CliResult { text, value, .. }) => {
                if json {
                    console.line(serde_json::json!({"input": input, "output": value}))?;
                } else {
                    writeln!(console.stdout(), "{text}\n\n")?;
                }
                console.stdout().flush()?;
                if !json {
                    report::hint_to_write(console, &text);
                }
            }
            Err(error) => {
                let goes_on = keep_going && !error.is_fatal();
                let mut error = trail.explain(error);
                if json {
                    error = error.context(report::OfInput(input));
                }
                if !goes_on {
                    return Err(error);
                }
                failed += 1;
                report::print(console, &error);
            }
        }
    }
    Ok(failed)
}

/// The inputs of the command line, with the lines of stdin in place of `-`.
fn inputs(console: &Console, given: &[String]) -> anyhow::Result<Vec<String>> {
    let mut inputs = Vec::new();
    for input in given {
        if input == "-" {
            for line in console.stdin().lock().lines() {
                inputs.push(line?.trim().to_owned());
            }
        } else {
            inputs.push(input.clone());
        }
    }
    Ok(inputs)
}

/// The spans and tools of calls.
type Silent = Vec<(u64, Arc<str>)>;

/// What a flow tells while it works, on stderr: the hint of every call in it, or its name when it has none.
#[derive(Clone)]
struct Hints {
    console: Console,
    /// Calls that began and have not said yet what they do.
    silent: Arc<Mutex<Silent>>,
}

impl Hints {
    /// How long a call may take to say what it does.
    const PATIENCE: Duration = Duration::from_millis(50);

    fn hear(&self, event: &EventKind) {
        match event {
            EventKind::CallStarted { span, parent: Some(parent), tool, .. } => {
                self.name(*parent);
                self.lock().push((*span, tool.clone()));
                let (hints, span) = (self.clone(), *span);
                tokio::spawn(async move {
                    tokio::time::sleep(Self::PATIENCE).await;
                    hints.name(span);
                });
            }
            EventKind::CallNoted { span, note: CallNote::Hint { text } } => {
                self.lock().retain(|(silent, _)| silent != span);
                if !text.is_empty() {
                    self.console.say(printable(text));
                }
            }
            EventKind::CallFinished { span, .. } => self.name(*span),
            _ => {}
        }
    }

    /// Names the tool of a call that has said nothing.
    fn name(&self, span: u64) {
        let mut silent = self.lock();
        if let Some(at) = silent.iter().position(|(one, _)| *one == span) {
            let (_, tool) = silent.remove(at);
            self.console.say(format_args!("Running tool {}", printable(&tool)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Silent> {
        lock(&self.silent)
    }
}
