//! `toolwright ask`: a model works with the tools until it has an answer.

mod prompt_content;
mod screen;
mod structured;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::Value;
use toolwright::content::{Content, Message};
use toolwright::events::Event;
use toolwright::file::Caller;
use toolwright::limits::RunLimits;
use toolwright::model::{DynModel, StopReason, ToolChoice};
use toolwright::prompted::{PromptFormat, Prompted};
use toolwright::run::{Conversation, LoopOptions, RunBuilder, RunEnd, RunError, completion};
use toolwright::tool::Secret;
use toolwright::{Policy, Run, Toolset};

use self::prompt_content::PromptContent;
use self::screen::Screen;
use self::structured::{AnswerSchema, TRIES, correction};
use crate::args::{Ask, PromptWay, UsingArgs};
use crate::chat::session::{self, SavedChat};
use crate::commands::stop_signal;
use crate::console::Console;
use crate::context_room;
use crate::opening::{self, FileChoice};
use crate::report::{Stopped, Usage};
use crate::runs::record::{About, UsedFile, record, redactor};
use crate::settings::Settings;
use crate::toolbox::Profile;
use crate::{demo, files, models, report, system_prompt};

/// How many turns a model may take by default.
const MAX_TURNS: u64 = 20;

pub async fn run(mut what: Ask, console: &Console) -> anyhow::Result<()> {
    let settings = Settings::read()?;
    let schema = what.schema.as_deref().map(AnswerSchema::read).transpose()?;
    let system = what.system.as_deref().map(system_prompt::given).transpose()?;
    let question = PromptContent::read(console, &what.prompt, &what.attach)?;
    let earlier = match what.go_on {
        true => Some(session::latest()?),
        false => None,
    };
    let using = &mut what.using;
    if let Some((path, earlier)) = &earlier {
        what.model = what.model.take().or_else(|| earlier.model.clone());
        if let (None, Some(name)) = (&using.file, &earlier.script_name) {
            using.file = Some(session::script(path, name)?);
        }
    }
    let mut file = models::file_for(console, what.model.as_deref(), using.file.take())?;
    let demo =
        file.is_none() && using.tools.is_empty() && models::demo_answers(console, what.model.as_deref())?;
    if demo {
        what.model = Some(demo::NAME.to_owned());
        let staged = demo::stage(console, &mut what.record, &mut using.policy, &mut using.sandbox)?;
        file = Some(FileChoice::named(staged));
        using.sandbox.write.push(".".into());
    }
    let Prepared { builder, named, secrets, limits, used } =
        prepare(console, &what.using, file.as_ref()).await?;
    let model = models::choose(console, what.model.as_deref(), &named)?;
    let model: Arc<DynModel> = Arc::from(prompted(model, what.prompted));
    let turns = what.max_turns.or(limits.turns).unwrap_or(MAX_TURNS);
    let repeats = limits.repeats.or(Some(system_prompt::REPEATS));
    let cost = what.max_cost.or(limits.cost);
    let limits = RunLimits { turns: Some(turns), repeats, cost, ..limits };
    let mut builder = builder.limits(limits).model(model.clone());
    if let Some(bytes) = what.max_output {
        builder = builder.max_output(bytes);
    }
    let about = About { command: "ask", file: used.as_ref() };
    let redactor = redactor(secrets.clone());
    let (mut builder, recorded) = record(console, builder, &what.record, &about, secrets)?;
    let screen = Screen::new(console, schema.is_some(), what.verbose);
    if what.jsonl {
        let (out, cleaned) = (console.clone(), redactor.clone());
        builder = builder.on_event(move |event: &Event| print_event(&out, &cleaned, event));
    } else if !console.is_json() {
        console.remark(format_args!("model: {}", model.name()));
        builder = screen.watch(builder);
    }
    let run = builder.build()?;
    tell_of_search(console, &run);
    let tools = run.tools().await.map_err(|error| Usage::from(error.info()))?;
    let mut how = going(&what.tool_choice, &tools)?;
    if let Some(schema) = schema.as_ref().filter(|_| tools.is_empty()) {
        // With tools the model must stay free to call them.
        how.options.response_schema = Some(schema.json().clone());
    }
    let instructions = [
        system.or_else(|| system_prompt::usual(&settings, &tools).filter(|_| !demo)),
        schema.as_ref().map(AnswerSchema::instruction),
    ];
    let instructions: Vec<String> =
        instructions.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    let mut conversation = Conversation::new(&run).with_loop(how);
    if !instructions.is_empty() {
        conversation.push(Message::system(instructions.join("\n\n")));
    }
    earlier
        .into_iter()
        .flat_map(|(_, earlier)| earlier.messages)
        .for_each(|message| conversation.push(message));
    conversation.push(question.into_message());
    if what.verbose {
        context_room::show(console, conversation.messages(), &tools);
    }
    let stopper = conversation.stopper();
    // A person who has seen enough keeps what there is.
    let stopped = std::sync::OnceLock::new();
    let interrupt = async {
        loop {
            let signal = stop_signal().await;
            let _ = stopped.set(signal);
            stopper.stop();
        }
    };
    let drawing = screen.draw();
    let answer = tokio::select! {
        // The signal comes first, so that it is listened for before any work begins.
        biased;
        () = interrupt => Ok((Some(RunEnd::Cancelled), None)),
        answer = answered(&mut conversation, &*model, schema.as_ref()) => answer,
    };
    drop(drawing);
    screen.end_line();
    let told = screen.tell_spending();
    let stop = conversation.last_stop();
    let warning = stop.and_then(StopReason::warning);
    let (end, value) = match answer {
        Ok((end, value)) => {
            let end = end.unwrap_or(RunEnd::Done);
            let nothing = completion(conversation.messages()).trim().is_empty();
            let silent = !conversation.messages().iter().any(says_something);
            let misfit = schema.is_some() && !matches!(value, Some(Ok(_)));
            let end = match (warning, value.as_ref().and_then(|value| value.as_ref().err())) {
                (Some(warning), _) if nothing && end == RunEnd::Done => {
                    RunEnd::Failed { message: format!("the model gave no answer: {warning}") }
                }
                (None, _) if silent && end == RunEnd::Done => {
                    RunEnd::Failed { message: "the model gave no answer".to_owned() }
                }
                (_, problem) if misfit && end == RunEnd::Done => {
                    let problem = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
                    let message = format!("no answer in {TRIES} tries follows the schema{problem}");
                    RunEnd::Failed { message }
                }
                _ => end,
            };
            (run.finish(end)?, value.and_then(Result::ok))
        }
        Err(error) => {
            let too_long = context_room::of_error(&error, conversation.messages(), &tools);
            let error = because(error);
            run.finish(RunEnd::Failed { message: error.root_cause().to_string() })?;
            return Err(too_long.map_or(error, Into::into));
        }
    };
    let messages = conversation.into_messages();
    if !(demo || what.record.no_record || what.record.transcript.is_some()) {
        let script_name = used.as_ref().map(|used| used.path.display().to_string());
        let asked =
            SavedChat { script_name, model: Some(model.name().to_owned()), messages: messages.clone() };
        session::save_asked(console, &asked, &redactor);
    }
    if console.is_json() {
        let mut answer = serde_json::json!({
            "answer": completion(&messages), "end": end, "spent": run.spent(), "messages": messages
        });
        if let (Some(serde_json::Value::Object(end)), Some(stop)) = (answer.get_mut("end"), stop) {
            end.insert("stop".to_owned(), serde_json::to_value(stop)?);
        }
        if let (Some(value), Some(answer)) = (value, answer.as_object_mut()) {
            answer.insert("value".to_owned(), value);
        }
        if !what.jsonl {
            console.line(answer)?;
        }
    } else if schema.is_some() {
        if let Some(value) = value {
            console.line(serde_json::to_string_pretty(&value)?)?;
        }
    } else if !screen.streams() {
        writeln!(console.stdout(), "{}", completion(&messages))?;
    }
    if let Some(id) = recorded {
        let gap = if told { "" } else { "\n" };
        console.remark(format_args!(
            "{gap}recorded as {id}: `toolwright view` shows it, `toolwright runs show` prints it"
        ));
    }
    if let Some(warning) = warning.filter(|_| end == RunEnd::Done) {
        console.say(format_args!("warning: {warning}"));
    }
    match (end, stopped.get()) {
        (RunEnd::Cancelled, Some(signal)) => Err(Stopped(*signal).into()),
        (end, _) => report::outcome(end),
    }
}

/// Lets the model answer, and again while its answer does not follow the schema. Gives how that ended, and
/// the value of the last answer or what is wrong with it.
async fn answered(
    conversation: &mut Conversation,
    model: &DynModel,
    schema: Option<&AnswerSchema>,
) -> Result<(Option<RunEnd>, Option<Result<Value, String>>), RunError> {
    let mut end = conversation.answer(model).await?;
    let Some(schema) = schema else { return Ok((end, None)) };
    for _ in 1..TRIES {
        let value = schema.value(&completion(conversation.messages()));
        match value {
            Err(problem) if end == Some(RunEnd::Done) => {
                end = conversation.say(model, correction(&problem)).await?;
            }
            value => return Ok((end, Some(value))),
        }
    }
    Ok((end, Some(schema.value(&completion(conversation.messages())))))
}

/// Prints one event of the run, without secrets.
fn print_event(console: &Console, redactor: &toolwright::events::Redactor, event: &Event) {
    let Ok(mut value) = serde_json::to_value(event) else { return };
    redactor.redact(&mut value);
    // A reader that went away is noticed at the end.
    let _ = console.line(value);
}

/// Whether a model says something here; what it thinks is not said.
fn says_something(message: &Message) -> bool {
    let said = |block: &Content| match block {
        Content::Text { text, .. } => !text.trim().is_empty(),
        Content::Reasoning { .. } => false,
        _ => true,
    };
    matches!(message, Message::Assistant(answer) if answer.content.iter().any(said))
}

/// How the model works: which tools it must call before it is free.
pub fn going(choice: &str, tools: &Toolset) -> anyhow::Result<LoopOptions> {
    let tool_choice = match choice {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Any,
        "none" => ToolChoice::None,
        name => {
            tools.find(name).map_err(|error| Usage::from(error.info()))?;
            ToolChoice::Tool(name.to_owned())
        }
    };
    let choice_after = matches!(tool_choice, ToolChoice::Any).then_some(ToolChoice::Auto);
    Ok(LoopOptions { tool_choice, choice_after, ..LoopOptions::default() })
}

/// The error of a run, with what the model or the tool said.
pub fn because(error: RunError) -> anyhow::Error {
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    anyhow::anyhow!("{cause}").context(error.to_string())
}

/// A run with the tools, the policy and the sandbox that were asked for.
pub struct Prepared {
    pub builder: RunBuilder,
    /// The models of the file.
    pub named: models::Named,
    /// What to keep out of records.
    pub secrets: Vec<Secret>,
    /// What the file lets a run spend; the builder has them.
    pub limits: RunLimits,
    /// The file.
    pub used: Option<UsedFile>,
}

/// Makes a run as it was asked for.
pub async fn prepare(
    console: &Console,
    using: &UsingArgs,
    file: Option<&FileChoice>,
) -> anyhow::Result<Prepared> {
    let opened =
        opening::for_model(console, file, &using.tools, using.policy.as_deref(), using.yes, &using.sandbox)
            .await?;
    opened.loaded().into_iter().for_each(|loaded| files::tell_of_chat(console, loaded));
    let (mut builder, _) = opened.run(Caller::Model, Profile::chosen(using.profile)?, &using.tools)?;
    if let Some(person) = console.person() {
        builder = builder.person(person);
    }
    let (named, limits) = (opened.parsed.models(), opened.parsed.file.limits().limits.clone());
    Ok(Prepared { builder, named, secrets: opened.session.secrets(), limits, used: opened.used() })
}

/// The model, told about the tools in the prompt when that was asked for.
pub fn prompted(model: Box<DynModel>, format: Option<PromptWay>) -> Box<DynModel> {
    match format {
        None => model,
        Some(PromptWay::Xml) => Box::new(Prompted::new(model).format(PromptFormat::Xml)),
        Some(PromptWay::Json) => Box::new(Prompted::new(model).format(PromptFormat::Json)),
    }
}

pub fn policy(path: Option<&Path>) -> anyhow::Result<Policy> {
    let Some(path) = path else { return Ok(Policy::cautious()) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()));
    let text = text.map_err(|error| Usage::new(format!("{error:#}")))?;
    Policy::from_yaml(&text).map_err(|error| Usage::new(format!("`{}`: {error}", path.display())).into())
}

/// Reports in one line when most definitions are left out of requests, and why.
pub fn tell_of_search(console: &Console, run: &Run) {
    if let Some(reason) = run.search_reason() {
        console.remark(format_args!("{reason}"));
    }
}
