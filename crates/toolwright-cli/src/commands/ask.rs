//! `toolwright ask`: a model works with the tools until it has an answer.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use toolwright::approval::call_text;
use toolwright::content::{Content, Message, ToolCall, ToolResult};
use toolwright::events::{Event, EventKind};
use toolwright::file::Caller;
use toolwright::limits::RunLimits;
use toolwright::model::{DynModel, ModelDelta, StopReason, ToolChoice};
use toolwright::prompted::{PromptFormat, Prompted};
use toolwright::run::{Conversation, LoopOptions, RunBuilder, RunEnd, RunError, completion};
use toolwright::tool::{CallNote, ErrorInfo, Secret};
use toolwright::{Policy, Toolset};
use toolwright_core::text;

use crate::args::{Ask, PromptWay, UsingArgs};
use crate::commands::told_to_stop;
use crate::console::Console;
use crate::lines::{self, DIM, StyledLine, WordWrapper};
use crate::opening::{self, FileChoice};
use crate::prompt::printable;
use crate::report::Usage;
use crate::runs::record::{About, UsedFile, record};
use crate::spending::Spending;
use crate::{demo, files, models, report};

/// How many answers a model may give when nobody says otherwise.
const MAX_TURNS: u64 = 20;

pub async fn run(mut what: Ask, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let using = &mut what.using;
    let mut file = models::file_for(console, what.model.as_deref(), using.file.take())?;
    if file.is_none() && using.tools.is_empty() && models::demo_answers(console, what.model.as_deref()) {
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
    let mut builder = builder.limits(RunLimits { turns: Some(turns), ..limits }).model(model.clone());
    if let Some(bytes) = what.max_output {
        builder = builder.max_output(bytes);
    }
    let about = About { command: "ask", file: used.as_ref() };
    let (mut builder, recorded) = record(console, builder, &what.record, &about, secrets)?;
    let screen = Arc::new(Screen::new(console));
    if !json {
        console.say(format_args!("model: {}", model.name()));
        let shown = screen.clone();
        builder = builder.on_event(move |event: &Event| shown.event(&event.kind));
    }
    if screen.streams() {
        let shown = screen.clone();
        builder = builder.on_delta(move |delta| shown.piece(delta));
    }
    let run = builder.build()?;
    let how = going(&what.tool_choice, &run.tools().await.map_err(|error| Usage::from(error.info()))?)?;
    let mut conversation = Conversation::new(&run).with_loop(how);
    let stopper = conversation.stopper();
    // A person who has seen enough keeps what there is.
    let interrupt = async {
        loop {
            told_to_stop().await;
            stopper.stop();
        }
    };
    let answer = tokio::select! {
        // The signal comes first, so that it is listened for before any work begins.
        biased;
        () = interrupt => Ok(Some(RunEnd::Cancelled)),
        answer = conversation.say(&*model, &what.prompt) => answer,
    };
    screen.end_line();
    let told = screen.tell_spending();
    let stop = conversation.last_stop();
    let warning = stop.and_then(StopReason::warning);
    let end = match answer {
        Ok(end) => {
            let end = end.unwrap_or(RunEnd::Done);
            let nothing = completion(conversation.messages()).trim().is_empty();
            let silent = !conversation.messages().iter().any(says_something);
            run.finish(match warning {
                Some(warning) if nothing && end == RunEnd::Done => {
                    RunEnd::Failed { message: format!("the model gave no answer: {warning}") }
                }
                None if silent && end == RunEnd::Done => {
                    RunEnd::Failed { message: "the model gave no answer".to_owned() }
                }
                _ => end,
            })?
        }
        Err(error) => {
            let error = because(error);
            run.finish(RunEnd::Failed { message: error.root_cause().to_string() })?;
            return Err(error);
        }
    };
    let messages = conversation.into_messages();
    let mut out = console.stdout();
    if json {
        let mut answer = serde_json::json!({
            "answer": completion(&messages), "end": end, "spent": run.spent(), "messages": messages
        });
        if let (Some(serde_json::Value::Object(end)), Some(stop)) = (answer.get_mut("end"), stop) {
            end.insert("stop".to_owned(), serde_json::to_value(stop)?);
        }
        console.line(answer)?;
    } else if !screen.streams() {
        writeln!(out, "{}", completion(&messages))?;
    }
    if let Some(id) = recorded.filter(|_| !json) {
        let gap = if told { "" } else { "\n" };
        console.say(format_args!(
            "{gap}recorded as {id}: `toolwright view` shows it, `toolwright runs show` prints it"
        ));
    }
    if let Some(warning) = warning.filter(|_| end == RunEnd::Done) {
        console.say(format_args!("warning: {warning}"));
    }
    report::outcome(end)
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
    let (mut builder, _) = opened.run(Caller::Model, &using.tools)?;
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

/// The run as it happens: the model's words on stdout while they come, when that is a terminal; all else on
/// stderr.
struct Screen {
    console: Console,
    /// The model's words on their way to a terminal.
    words: Option<Mutex<WordWrapper>>,
    calls: Mutex<FinalCalls>,
    spending: Mutex<Spending>,
}

impl Screen {
    fn new(console: &Console) -> Self {
        let columns = if console.is_json() { None } else { lines::columns(&console.stdout()) };
        let words = columns.map(|columns| Mutex::new(WordWrapper::new(columns)));
        Screen { console: console.clone(), words, calls: Mutex::default(), spending: Mutex::default() }
    }

    fn streams(&self) -> bool {
        self.words.is_some()
    }

    fn piece(&self, delta: ModelDelta<'_>) {
        let Some(Ok(mut words)) = self.words.as_ref().map(Mutex::lock) else { return };
        if let ModelDelta::Text(text) = delta {
            let (mut shown, mut out) = (String::new(), self.console.stdout());
            words.push(&printable(text), &mut shown);
            // A terminal that went away is noticed when the run writes its end.
            let _ = write!(out, "{shown}").and_then(|()| out.flush());
        }
    }

    /// Ends the line of the model's words, if there is one.
    fn end_line(&self) {
        let Some(Ok(mut words)) = self.words.as_ref().map(Mutex::lock) else { return };
        let (mut rest, mut out) = (String::new(), self.console.stdout());
        if words.end(&mut rest) {
            let _ = writeln!(out, "{rest}").and_then(|()| out.flush());
        }
    }

    /// Says what was spent; true when there was something.
    fn tell_spending(&self) -> bool {
        let Ok(spending) = self.spending.lock() else { return false };
        if spending.is_empty() {
            return false;
        }
        self.console.say(format_args!(
            "\n{}",
            StyledLine::new(DIM, spending.line()).ansi(lines::has_colours(self.console.stderr()))
        ));
        true
    }

    fn event(&self, event: &EventKind) {
        if let (EventKind::ModelReplied { model, usage, cost, .. }, Ok(mut spending)) =
            (event, self.spending.lock())
        {
            spending.add(model, *usage, *cost);
        }
        if !matches!(event, EventKind::MessageAdded { .. }) {
            self.end_line();
        }
        if let Ok(mut calls) = self.calls.lock() {
            calls.show(&self.console, event, self.streams());
        }
    }
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

/// The calls of the last answer.
#[derive(Default)]
struct FinalCalls {
    /// Those under way, and the calls inside of them: how deep each is, and its tool.
    open: BTreeMap<u64, (usize, Arc<str>)>,
    /// Those that were not begun.
    asked: Vec<ToolCall>,
}

impl FinalCalls {
    /// Shows what happens; the words of the model are `heard` on their way.
    fn show(&mut self, console: &Console, event: &EventKind, heard: bool) {
        match event {
            EventKind::MessageAdded { message: Message::Assistant(message) } => {
                let said = message.text();
                if !(said.is_empty() || message.tool_calls.is_empty() || heard) {
                    console.say(format_args!("\n{}", printable(&said)));
                }
                self.asked.clone_from(&message.tool_calls);
            }
            // A call that is refused before it begins has only a result.
            EventKind::MessageAdded { message: Message::Tool(result) } => {
                let asked = self.asked.iter().position(|call| call.id == result.call_id);
                if let Some(call) = asked.map(|at| self.asked.remove(at)) {
                    tell(console, 1, "⏺", &call_text(&call));
                    self.outcome(console, 1, &call.name, result.error.as_ref(), Some(result));
                }
            }
            EventKind::CallStarted { span, call_id, tool, arguments, parent } => {
                if parent.is_none() {
                    self.asked.retain(|call| call.id != *call_id);
                }
                let depth =
                    parent.and_then(|parent| self.open.get(&parent)).map_or(1, |(depth, _)| depth + 1);
                self.open.insert(*span, (depth, tool.clone()));
                let call = ToolCall::new(call_id.clone(), tool.clone(), arguments.clone());
                tell(console, depth, "⏺", &call_text(&call));
            }
            EventKind::CallNoted { span, note: CallNote::Hint { text } } if !text.is_empty() => {
                if let Some((depth, _)) = self.open.get(span) {
                    tell(console, depth + 1, "", text);
                }
            }
            EventKind::CallDecided { span, decision, reason, .. } if decision != "approve" => {
                let reason = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
                tell(
                    console,
                    self.open.get(span).map_or(2, |(depth, _)| depth + 1),
                    "",
                    &format!("{decision}{reason}"),
                );
            }
            EventKind::CallFinished { span, result, error, .. } => {
                let (depth, tool) = self.open.remove(span).unwrap_or((1, "".into()));
                self.outcome(console, depth, &tool, error.as_ref(), result.as_ref());
            }
            EventKind::LimitHit { limit } => console.say(limit),
            _ => {}
        }
    }

    /// Says how a call went. Of several at a time it is said which one this is.
    fn outcome(
        &self,
        console: &Console,
        depth: usize,
        tool: &str,
        error: Option<&ErrorInfo>,
        result: Option<&ToolResult>,
    ) {
        let line = match (error, result) {
            (Some(error), _) => format!("{}: {}", error.kind, error.message),
            (None, Some(result)) => result.to_text(),
            (None, None) => "no result".to_owned(),
        };
        let among = self.open.values().any(|(other, _)| *other == depth);
        let whose = if among { format!("{tool}: ") } else { String::new() };
        tell(console, depth + 1, "└", &format!("{whose}{line}"));
        if let Some(hint) = report::way_out_of(error, result) {
            tell(console, depth + 1, "", &format!("hint: {hint}"));
        }
    }
}

/// Says something about a call on one line, which a terminal gets cut to its width.
fn tell(console: &Console, depth: usize, mark: &str, words: &str) {
    let words = printable(&text::clip(&words.replace('\n', " "), 200));
    let line = format!("{}{mark}{}{words}", "  ".repeat(depth), if mark.is_empty() { "" } else { " " });
    match lines::columns(console.stderr()) {
        Some(columns) => console.say(lines::cut(&line, columns)),
        None => console.say(line),
    }
}
