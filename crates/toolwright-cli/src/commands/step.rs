//! `toolwright step`: a model takes one step, and the caller decides what happens next.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use serde_json::Value;
use toolwright::Run;
use toolwright::content::{Message, ToolCall};
use toolwright::events::{Event, EventKind};
use toolwright::model::StopReason;
use toolwright::prompted::{
    CallMode, ModelCompleter, Next, PromptError, PromptErrorKind, PromptMessage, ToolUser,
};
use toolwright::run::{Conversation, LoopOptions, RunEnd, RunState, ToolCalls};
use toolwright::tool::schema::{depth, flatten};

use crate::args::{StepArgs, StepFormat};
use crate::commands::{ask, interruptible, until_stopped};
use crate::console::{Console, visible_json};
use crate::files;
use crate::models;
use crate::report::{self, Usage};
use crate::runs::record::{About, record};
use crate::write_file::{self, FileAccess};

/// The most that is read from stdin.
const MAX_INPUT: u64 = 256 * 1024 * 1024;

/// How deep a state is nested in its file.
const MAX_LEVELS: usize = 120;

pub async fn run(what: StepArgs, console: &Console) -> anyhow::Result<()> {
    let file = files::choose(console, what.using.file.clone());
    let given = messages(console)?;
    if given.is_empty() && what.state.is_none() {
        return Err(nothing().into());
    }
    let earlier = what.state.as_deref().map(load).transpose()?.flatten();
    let ask::Prepared { mut builder, named, secrets, used, .. } =
        interruptible(ask::prepare(console, &what.using, file.as_ref())).await?;
    if let Some(state) = &earlier {
        builder = builder.resume(state);
    }
    let about = About { command: "step", file: used.as_ref() };
    let (mut builder, _) = record(console, builder, &what.record, &about, secrets)?;
    let stopped: Arc<Mutex<Option<StopReason>>> = Arc::default();
    let heard = stopped.clone();
    builder = builder.on_event(move |event: &Event| {
        if let (EventKind::ModelReplied { stop, .. }, Ok(mut heard)) = (&event.kind, heard.lock()) {
            *heard = Some(*stop);
        }
    });
    let run = builder.build()?;
    let step = async {
        match what.format {
            StepFormat::Native => native(console, &what, &run, &named, given, earlier).await,
            StepFormat::AnthropicTools => {
                let step = anthropic_tools(console, &what, &run, &named, given).await;
                // Their messages have no place for why an answer ended.
                warn(console, stopped.lock().ok().and_then(|stop| *stop).filter(|_| !what.call));
                step
            }
        }
    };
    let step = until_stopped(&run, step).await?;
    run.finish(match &step {
        Ok(()) => RunEnd::Done,
        Err(error) => RunEnd::Failed { message: error.root_cause().to_string() },
    })?;
    step
}

async fn native(
    console: &Console,
    what: &StepArgs,
    run: &Run,
    named: &models::Named,
    given: Vec<Value>,
    earlier: Option<RunState>,
) -> anyhow::Result<()> {
    let tools = run.tools().await.map_err(|error| Usage::from(error.info()))?;
    let manual = LoopOptions { tool_calls: ToolCalls::None, ..ask::going(&what.tool_choice, &tools)? };
    let mut conversation = match &earlier {
        Some(state) => Conversation::resume(run, state),
        None => Conversation::new(run),
    }
    .with_loop(manual);
    for (index, mut message) in given.into_iter().enumerate() {
        // Plain text stands for one block of it.
        if let Some(content) = message.get_mut("content").filter(|content| content.is_string()) {
            *content = serde_json::json!([{"type": "text", "text": content.take()}]);
        }
        let message: Message = serde_json::from_value(message).map_err(|error| {
            Usage::new(format!("message {} on stdin is not a message: {error}", index + 1))
        })?;
        conversation.push(message);
    }
    if conversation.messages().is_empty() {
        return Err(nothing().into());
    }
    let before = conversation.messages().len();
    let pending = conversation.pending();
    let step = match (what.call, pending.is_empty()) {
        (true, true) => return Err(Usage::new("there are no pending calls to make").into()),
        (true, false) => conversation.make_pending().await,
        (false, false) => return Err(unanswered(&pending).into()),
        (false, true) => {
            let model = ask::prompted(models::choose(console, what.model.as_deref(), named)?, what.prompted);
            conversation.answer(&*model).await
        }
    };
    // What was said and made is printed and saved whatever came of it, so that it is not done again.
    if let Some(path) = &what.state {
        save(path, &conversation.state()?)?;
    }
    for message in conversation.messages().iter().skip(before) {
        writeln!(console.stdout(), "{}", visible_json(&serde_json::to_string(message)?))?;
    }
    let end = step.map_err(ask::because)?.or_else(|| run.ended()).unwrap_or(RunEnd::Done);
    warn(console, conversation.last_stop());
    report::outcome(end)
}

/// Says what a person should know about an answer that ended so.
fn warn(console: &Console, stop: Option<StopReason>) {
    if let Some(warning) = stop.and_then(StopReason::warning) {
        console.say(format_args!("warning: {warning}"));
    }
}

fn nothing() -> Usage {
    Usage::new("there is no message on stdin to answer")
        .hint("for example: echo '{\"role\": \"user\", \"content\": \"Hello\"}' | toolwright step")
}

fn unanswered(pending: &[ToolCall]) -> Usage {
    let names: Vec<_> = pending.iter().map(|call| format!("{} ({})", call.name, call.id)).collect();
    Usage::new(format!("these calls have no result yet: {}", names.join(", ")))
        .hint("add their results to the messages, or let --call make them")
}

async fn anthropic_tools(
    console: &Console,
    what: &StepArgs,
    run: &Run,
    named: &models::Named,
    given: Vec<Value>,
) -> anyhow::Result<()> {
    if what.state.is_some() {
        return Err(Usage::new("--state is for native messages; these hold everything themselves").into());
    }
    if what.prompted.is_some() || what.tool_choice != "auto" {
        let problem = Usage::new("--prompted and --tool-choice are for native messages");
        return Err(problem.hint("these always tell of all tools in the prompt").into());
    }
    let messages = PromptMessage::list_from_json(&Value::Array(given)).map_err(refused)?;
    // Making calls asks no model.
    let model = if what.call {
        models::open(console, "demo", named)?
    } else {
        models::choose(console, what.model.as_deref(), named)?
    };
    let model: Arc<toolwright::model::DynModel> = Arc::from(model);
    let user = ToolUser::new(run.dispatch(), Arc::new(ModelCompleter::new(model))).await.map_err(refused)?;
    let next = match (what.call, messages.last()) {
        (true, Some(PromptMessage::ToolInputs { tool_inputs, .. })) => {
            Next::Message(user.run_tools(tool_inputs).await.map_err(refused)?)
        }
        (true, _) => return Err(Usage::new("the last message has no tool_inputs to make").into()),
        (false, Some(PromptMessage::ToolInputs { .. })) => {
            let usage = Usage::new("the last message asks for tools, and there is no tool_outputs message");
            return Err(usage.hint("add one, or let --call make the calls").into());
        }
        (false, _) => user.use_tools(&messages, CallMode::Manual).await.map_err(refused)?,
    };
    let line = match next {
        Next::Message(message) => message.to_json(),
        Next::Mistake(error) => serde_json::json!({"status": "ERROR", "error_message": error}),
    };
    writeln!(console.stdout(), "{}", visible_json(&line.to_string()))?;
    Ok(())
}

/// What the caller wrote is a usage error; what happened later is not.
fn refused(error: PromptError) -> anyhow::Error {
    match error.kind() {
        PromptErrorKind::Messages | PromptErrorKind::Forged => Usage::new(error.to_string()).into(),
        _ => error.into(),
    }
}

/// The messages on stdin: a JSON list, or one message after the other.
fn messages(console: &Console) -> anyhow::Result<Vec<Value>> {
    let mut text = String::new();
    let read = console.stdin().lock().take(MAX_INPUT + 1).read_to_string(&mut text);
    read.context("cannot read stdin")?;
    if text.len() as u64 > MAX_INPUT {
        return Err(Usage::new(format!("stdin holds more than {MAX_INPUT} bytes")).into());
    }
    let mut messages = Vec::new();
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        match value.map_err(|error| Usage::new(format!("stdin is not JSON: {error}")))? {
            Value::Array(all) => messages.extend(all),
            message => messages.push(message),
        }
    }
    Ok(messages)
}

/// The state in a file, if there is one.
fn load(path: &Path) -> anyhow::Result<Option<RunState>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Usage::new(format!("cannot read `{}`: {error}", path.display())).into()),
    };
    let state = serde_json::from_str(&text).map_err(|error| {
        Usage::new(format!("`{}` does not hold the state of a run: {error}", path.display()))
    })?;
    Ok(Some(state))
}

/// Writes the state, for its owner only: a conversation may hold what is nobody else's business.
fn save(path: &Path, state: &RunState) -> anyhow::Result<()> {
    let mut state = serde_json::to_value(state)?;
    // Readers of JSON stop at 128 levels; what a tool gave may be deeper.
    if depth(&state) > MAX_LEVELS {
        flatten(&mut state, MAX_LEVELS);
    }
    write_file::replace(path, state.to_string().as_bytes(), FileAccess::Owner)
}
