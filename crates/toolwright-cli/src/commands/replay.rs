//! `toolwright replay`: a recorded run again, offline.
//!
//! Everything but the work is real: calls are parsed, found, validated, approved and bounded as today's
//! tools, file and policy say; the model's answers and what the tools gave back come from the record. Flows
//! of a file only combine calls, so they are run again, with the calls they make answered from the record.
//! MCP servers are not started: their tools are known from the record only. The replay is recorded too, in a
//! file of its own that is compared and removed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright::content::{AssistantMessage, Message, ToolCall, ToolResult};
use toolwright::events::{Durability, Event, EventKind};
use toolwright::file::Connect;
use toolwright::lang::{CLI_TOOL, Loaded};
use toolwright::run::{Conversation, LoopOptions, RunEnd, RunError, ToolCalls};
use toolwright::tool::{ErrorInfo, ErrorKind, ToolDef, ToolSpec};
use toolwright::{Run, ToolError, ToolOutput, Toolset};
use toolwright_core::text::clip;

use crate::args::Replay;
use crate::commands::{ask, diff, run};
use crate::console::Console;
use crate::opening::{FileChoice, Opening};
use crate::prompt::printable;
use crate::runs;
use crate::runs::index::TimelineKind;
use crate::runs::recall::{Record, Recorded, Scene};
use crate::runs::source::TranscriptSource;
use crate::runs::story::{self, Story};
use crate::{report, toolbox};

pub async fn run(what: Replay, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let path = runs::find(&what.run)?;
    let source = TranscriptSource::open(&path)?;
    let Today { tools, flows, absent, mut remarks } = today(console, &what, &path, &source).await?;
    let record = Arc::new(Record::of(source, flows, &absent));
    let mut builder = Run::builder(tools);
    if what.policy.is_some() {
        builder = builder.policy(ask::policy(what.policy.as_deref())?);
    }
    // Whoever decided then decides again; a run that asked nobody asks nobody now.
    if what.policy.is_some() || record.decisions {
        builder = builder.approver(Recorded(record.clone()));
    }
    let heard = record.clone();
    builder = builder.on_event(move |event: &Event| heard.hear(&event.kind));
    let folder = Scratch(runs::scratch("replay")?);
    let again = folder.0.join("replay.jsonl");
    let run = builder
        .executor(Recorded(record.clone()))
        .max_output(0)
        .transcript(&again, [], Durability::Process)
        .map_err(report::unusable)?
        .build()?;
    // A run that was cut off has no end, and neither has its replay.
    let end = recorded_end(record.source())?;
    if let Some(end) = play(&run, &record, end.clone()).await? {
        run.finish(end)?;
    }
    drop(run);
    let replayed = TranscriptSource::open(&again)?;
    let then = Story::played(record.source(), &record.answered());
    let changes = story::compare(&then, &Story::played(&replayed, &HashSet::new()));
    if let (Some(RunEnd::Limit { limit }), true) = (end, changes.is_empty()) {
        remarks.push(format!("the replay ends where the run ended: {limit}"));
    }
    if json {
        console.line(json!({"run": runs::id_of(&path), "remarks": remarks, "changes": changes}))?;
    } else {
        remarks.iter().for_each(|remark| console.say(printable(remark)));
        diff::print(console, &changes)?;
    }
    diff::outcome(&changes)
}

/// Today's tools under the names of the record, which of them are flows, and what is to be said about them.
struct Today {
    tools: Toolset,
    flows: Vec<String>,
    /// Tools in the record that the file takes in with all of a server.
    absent: HashSet<String>,
    remarks: Vec<String>,
}

async fn today(
    console: &Console,
    what: &Replay,
    path: &Path,
    source: &TranscriptSource,
) -> anyhow::Result<Today> {
    let Some((labels, stamps)) = source.beginning().and_then(|event| match event {
        EventKind::RunStarted { labels, tools, .. } => Some((labels, tools)),
        _ => None,
    }) else {
        return Err(report::Usage::new("the transcript has no beginning, so it cannot be replayed").into());
    };
    let mut remarks = Vec::new();
    let recorded = labels.get("file").map(PathBuf::from);
    // Only the person's own record says which content was used before.
    let own = runs::folder().is_some_and(|folder| path.starts_with(folder));
    let used_before = labels.get(runs::record::FILE_CONTENT).filter(|_| own).cloned();
    let recorded = || {
        let path = recorded.filter(|path| path.exists())?;
        Some(FileChoice { used_before, ..FileChoice::found(path) })
    };
    let file = what.file.clone().map(FileChoice::named).or_else(recorded);
    let command = labels.get("command").map_or("", String::as_str);
    let opened = match &file {
        Some(file) => {
            let arguments = (command == "run").then(|| arguments(source, &file.path, labels.get("folder")));
            let opening = Opening { connect: Connect::Never, arguments, ..Opening::default() };
            Some(opening.open(console, file.parse(console).await?).await?)
        }
        None => None,
    };
    let loaded = opened.as_ref().map(|opened| opened.session.loaded());
    let built_in = toolbox::all()?;
    let (mut tools, mut flows) = (built_in.clone(), Vec::new());
    if let Some(loaded) = loaded {
        flows = loaded.flows().chain([CLI_TOOL]).map(str::to_owned).collect();
        tools = tools_of(loaded, command)?;
    }
    // With an empty prefix, every name could be one of the server's.
    let of_server =
        |loaded: &Loaded, name: &str| !loaded.has_anywhere(name) && loaded.why_missing(name).is_some();
    let absent = |name: &str| loaded.is_some_and(|loaded| of_server(loaded, name));
    let mut of_servers = Vec::new();
    for stamp in stamps {
        match tools.get(&stamp.name) {
            Some(entry) if entry.fingerprint == stamp.fingerprint => {}
            Some(entry) if takes_anything(entry.tool.spec()) => of_servers.push(format!("`{}`", stamp.name)),
            Some(_) => remarks.push(format!("the definition of `{}` has changed since", stamp.name)),
            None if absent(&stamp.name) => {
                of_servers.push(format!("`{}`", stamp.name));
                flows.retain(|flow| **flow != *stamp.name);
                tools = tools.with(stand_in(&stamp.name))?;
            }
            None => {
                // Beside a file, `call` reaches built-in tools too; no other happens to have the name.
                let same = built_in.get(&stamp.name).filter(|entry| entry.fingerprint == stamp.fingerprint);
                let same = same.filter(|_| command == "call");
                tools = match same {
                    Some(entry) => tools.with(ToolDef::of(entry.tool.clone()))?,
                    None => {
                        remarks.push(format!(
                            "`{}` is not here now, so its arguments are not checked",
                            stamp.name
                        ));
                        // A flow of that name is another tool, and cannot be run in its place.
                        flows.retain(|flow| **flow != *stamp.name);
                        tools.with(stand_in(&stamp.name))?
                    }
                };
            }
        }
    }
    if !of_servers.is_empty() {
        let names = of_servers.join(", ");
        let names = clip(&names, 200);
        remarks.push(format!("no server is started, so the arguments of its tools are not checked: {names}"));
    }
    let absent = source.index.names.iter().filter(|name| absent(name)).cloned().collect();
    Ok(Today { tools, flows, absent, remarks })
}

/// The tools that a command takes from a file.
fn tools_of(loaded: &Loaded, command: &str) -> anyhow::Result<Toolset> {
    Ok(match (command, loaded.chat(), loaded.cli()) {
        ("chat", Some(chat), _) => chat.tools.clone(),
        ("run", _, Some(cli)) => loaded.tools().clone().with(cli.tool())?,
        ("serve: prompts", ..) => loaded.prompts().clone(),
        _ => loaded.tools().clone(),
    })
}

/// The command line of a `run`, as its file saw it: the inputs are those that were worked on.
fn arguments(source: &TranscriptSource, file: &Path, folder: Option<&String>) -> Value {
    let calls =
        source.index.items.iter().filter(|item| item.call.as_ref().is_some_and(|call| call.parent.is_none()));
    let inputs = calls.filter_map(|item| match source.event(item.at).ok()?.kind {
        EventKind::CallStarted { tool, mut arguments, .. } if *tool == *CLI_TOOL => {
            Some(arguments.get_mut("input")?.take())
        }
        _ => None,
    });
    let inputs = inputs.flat_map(|input| match input {
        Value::Array(inputs) => inputs,
        input => vec![input],
    });
    let inputs: Vec<String> = inputs.filter_map(|input| input.as_str().map(str::to_owned)).collect();
    // It was most likely named from the folder of the run.
    let file = folder.and_then(|folder| file.strip_prefix(folder).ok()).unwrap_or(file);
    run::arguments(file, &inputs)
}

/// True for what stands in a file for the tool of a server that was not started: every other says what it
/// takes.
fn takes_anything(spec: &ToolSpec) -> bool {
    spec.parameters == json!({"type": "object"})
}

/// A tool that takes everything; the executor answers for it.
fn stand_in(name: &str) -> ToolDef {
    let mut spec = ToolSpec::new(name, "Known from a record only.");
    spec.parameters = json!({"type": "object"});
    ToolDef::dynamic(spec, |_, _: Value| async { Err::<ToolOutput, _>(ToolError::fatal("it is not here")) })
}

/// How the record ends; nothing when it was cut off.
fn recorded_end(source: &TranscriptSource) -> anyhow::Result<Option<RunEnd>> {
    let end = source.index.items.iter().rev().find(|item| item.kind == TimelineKind::End);
    Ok(match end.map(|item| source.event(item.at)).transpose()?.map(|event| event.kind) {
        Some(EventKind::RunFinished { end }) => Some(end),
        _ => None,
    })
}

/// Plays the conversation, or the calls of a run without one, as far as the record goes. Says how that ends.
///
/// The record says when the model is asked and which of its calls are made, for a limit of time does not hit
/// again by itself, and a caller who made the calls is not there.
async fn play(run: &Run, record: &Arc<Record>, end: Option<RunEnd>) -> anyhow::Result<Option<RunEnd>> {
    let mut alone = record.scenes.iter().map_while(|scene| match scene {
        Scene::Called(place) => Some(record.call(*place)),
        Scene::Said(_) | Scene::Answered { .. } => None,
    });
    if record.silent() {
        for call in alone {
            run.call(call?).await?;
        }
        return Ok(end);
    }
    let model = Recorded(record.clone());
    // What an earlier process was asked for stands before this record.
    let calls = alone.by_ref().collect::<anyhow::Result<Vec<ToolCall>>>()?;
    let asked = Message::Assistant(AssistantMessage::calls(calls));
    let earlier = run.state(vec![asked], Vec::new())?;
    let by_hand = LoopOptions { tool_calls: ToolCalls::None, ..LoopOptions::default() };
    let mut talk = Conversation::resume(run, &earlier).with_loop(by_hand);
    record.stopped_by(talk.stopper());
    let mut played = talk.make_pending().await;
    for scene in &record.scenes {
        if let Err(error) = played {
            return Ok(Some(RunEnd::Failed { message: error.to_string() }));
        }
        played = match scene {
            Scene::Called(_) => continue,
            Scene::Said(place) => {
                talk.push(record.message(*place)?);
                continue;
            }
            Scene::Answered { direct: true, .. }
                if matches!(talk.messages().last(), Some(Message::Assistant(_))) =>
            {
                record.pass_over();
                continue;
            }
            Scene::Answered { begun, .. } => answer(&mut talk, &model, begun).await,
        };
        if run.ended().is_some() {
            break;
        }
    }
    if talk.pending().is_empty() {
        // What was said last, and not answered, is on record too; what broke the run now broke it then.
        let _ = talk.make_pending().await;
    }
    Ok(end)
}

/// Has the model answer, and makes those calls that were made then.
async fn answer(
    talk: &mut Conversation,
    model: &Recorded,
    begun: &[(String, String)],
) -> Result<Option<RunEnd>, RunError> {
    talk.answer(model).await?;
    let mut begun = begun.to_vec();
    for call in talk.pending() {
        match begun.iter().position(|(id, tool)| **id == *call.id && **tool == *call.name) {
            Some(at) => drop(begun.swap_remove(at)),
            None => {
                let message = "the call was not made then".to_owned();
                let error = ErrorInfo { kind: ErrorKind::Cancelled, message, hint: None };
                talk.push(Message::Tool(ToolResult::failed(&call, error)));
            }
        }
    }
    talk.make_pending().await
}

/// A folder of our own that goes away with this value.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
