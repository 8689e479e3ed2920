//! `toolwright call`: one tool, called by a person, and therefore approved.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value};
use toolwright::Toolset;
use toolwright::content::{Content, Media, ToolCall, ToolResult};
use toolwright::events::{Event, EventKind};
use toolwright::file::{Caller, Connect, Sandboxing};
use toolwright::lang::Wanted;
use toolwright::run::RunEnd;
use toolwright::tool::{CallNote, ToolDef};

use crate::args::CallArgs;
use crate::commands::until_stopped;
use crate::console::Console;
use crate::opening::{FileChoice, Opened, Opening, ParsedFile};
use crate::prompt::printable;
use crate::report::{self, Failed, Trail, Usage};
use crate::runs::record::{About, record};
use crate::write_file::{self, FileAccess};
use crate::{files, prompt, toolbox};

pub async fn run(what: CallArgs, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let (built_in, own_name) = toolbox::for_call(&what.tool)?;
    let known = built_in.get(&own_name).is_some();
    let (mut opened, tools, name) = open(console, &what, (built_in, own_name)).await?;
    let what = CallArgs { tool: name, ..what };
    let tools = with_timeout(tools, &what)?;
    if tools.get(&what.tool).is_none() && !known {
        opened.loaded().into_iter().for_each(|loaded| files::tell_of_chat(console, loaded));
    }
    tools.find(&what.tool).map_err(|error| Usage::from(error.info()))?;
    let arguments = arguments(console, what.args.as_deref(), &what.arguments)?;
    let sandboxing = match (toolbox::needs_sandbox(&tools, &what.tool), opened.loaded()) {
        (true, _) => Sandboxing::Required,
        // What a flow calls may need one.
        (false, Some(_)) => Sandboxing::WherePossible,
        (false, None) => Sandboxing::Never,
    };
    opened.sandboxes(&what.sandbox, sandboxing).await?;
    let mut builder = opened.session.run_with(Caller::Person, tools).max_output(what.max_output);
    if let Some(person) = console.person() {
        builder = builder.person(person);
    }
    // The file's secrets may reach the sandbox, also when the file was found and not named.
    let secrets = opened.session.secrets();
    let trail = Trail::default();
    let (heard, console_of_run) = (trail.clone(), console.clone());
    builder = builder.on_event(move |event: &Event| {
        heard.follow(&event.kind);
        if !json {
            show(&console_of_run, &event.kind);
        }
    });
    let used = opened.used();
    let about = About { command: "call", file: used.as_ref() };
    let (builder, _) = record(console, builder, &what.record, &about, secrets)?;
    let run = builder.build()?;
    let call = run.call(ToolCall::new("call_1", what.tool.as_str(), arguments));
    let result = until_stopped(&run, call).await?;
    let failure = match &result {
        Ok(result) => result.error.as_ref().map(|error| error.message.clone()),
        Err(error) => Some(error.to_string()),
    };
    run.finish(failure.map_or(RunEnd::Done, |message| RunEnd::Failed { message }))?;
    let result = result?;
    if json {
        console.line(serde_json::to_string(&result)?)?;
    } else {
        print(console, &result, what.save_to.as_deref())?;
        if result.error.is_none() {
            report::hint_to_write(console, &result.to_text());
        }
    }
    match result.error {
        None => Ok(()),
        Some(error) => Err(trail.explain(Failed(error))),
    }
}

/// The file in use, the tools to call among, and the name of the tool there.
async fn open(
    console: &Console,
    what: &CallArgs,
    (built_in, own_name): (Toolset, String),
) -> anyhow::Result<(Opened, Toolset, String)> {
    let known = built_in.get(&own_name).is_some();
    // A tool that is not built in may be one of the default file's.
    let choice = match known {
        true => what.file.clone().map(FileChoice::named),
        false => files::choose(console, what.file.clone()),
    };
    let Some(choice) = choice else {
        let parsed = match files::around(console).await? {
            Some(parsed) => parsed,
            None => ParsedFile::of(console, None).await?,
        };
        let opening = Opening { wanted: Wanted::nothing(), connect: Connect::Never, ..Opening::default() };
        let mut opened = opening.open(console, parsed).await?;
        opened.uses_tools = false;
        return Ok((opened, built_in, own_name));
    };
    // Only what this tool needs is started: an unavailable server may not be needed.
    let opening = Opening {
        wanted: Wanted::tool(what.tool.as_str()),
        connect: Connect::WherePossible,
        ..Opening::default()
    };
    let opened = opening.open(console, choice.parse(console).await?).await?;
    let loaded = opened.session.loaded();
    files::not_of_a_section(loaded, &what.tool, known)?;
    if let Some(why) = loaded.why_missing(&what.tool) {
        let problem = Usage::new(format!("`{}` cannot be called: {why}", what.tool));
        return Err(match known {
            true => problem.hint("without `-f`, this calls the built-in tool of that name").into(),
            false => problem.into(),
        });
    }
    let own = loaded.tools().clone();
    Ok(match !known || own.get(&what.tool).is_some() {
        true => (opened, own, what.tool.clone()),
        false => (opened, built_in, own_name),
    })
}

/// The set in which the called tool has the time-out of the command line.
fn with_timeout(tools: Toolset, what: &CallArgs) -> anyhow::Result<Toolset> {
    let Some(timeout) = what.timeout else { return Ok(tools) };
    let changed = tools.iter().map(|entry| {
        let tool = ToolDef::of(entry.tool.clone());
        if *tool.spec().name == *what.tool { tool.with_timeout(timeout) } else { tool }
    });
    Ok(changed.into_iter().try_fold(Toolset::new(), Toolset::with)?)
}

/// An error when reading the JSON text would change a number in it, or drop a value.
fn all_kept(json: &str) -> anyhow::Result<()> {
    if let Some(key) = toolwright::tool::schema::repeated_key(json) {
        let key = printable(&toolwright_core::text::clip(&key, 100));
        return Err(Usage::new(format!("the key `{key}` is in the arguments twice")).into());
    }
    let Some(number) = toolwright::tool::schema::lossy_integer(json) else { return Ok(()) };
    let number = toolwright_core::text::clip(number, 100);
    let error = Usage::new(format!("the number {number} has more digits than are kept"));
    Err(error
        .hint("integers have at most 64 bits; write a larger one as text where the tool takes text")
        .into())
}

/// The arguments of a call: one JSON object, and what single arguments add to it.
pub fn arguments(console: &Console, args: Option<&str>, pairs: &[String]) -> anyhow::Result<Value> {
    let mut arguments = match args {
        None => Map::new(),
        Some(text) => {
            let mut text = text.to_owned();
            if text == "-" {
                text.clear();
                console
                    .stdin()
                    .lock()
                    .read_to_string(&mut text)
                    .context("cannot read the arguments from stdin")?;
            }
            all_kept(&text)?;
            match serde_json::from_str(&text) {
                Ok(Value::Object(map)) => map,
                Ok(_) => return Err(Usage::new("--args is JSON, but not an object").into()),
                Err(error) => return Err(Usage::new(format!("--args is not JSON: {error}")).into()),
            }
        }
    };
    for pair in pairs {
        let (name, value) = match (pair.split_once(":="), pair.split_once('=')) {
            (Some((name, text)), _) if !name.contains('=') => {
                all_kept(text)?;
                let value = serde_json::from_str(text);
                (
                    name,
                    value
                        .map_err(|error| Usage::new(format!("the value of `{name}` is not JSON: {error}")))?,
                )
            }
            (_, Some((name, text))) => (name, Value::String(text.to_owned())),
            _ => {
                let error = Usage::new(format!("`{pair}` is not an argument"));
                let whole = pair.starts_with('{');
                let hint = if whole {
                    "a JSON object goes behind --args"
                } else {
                    "write name=value, or name:=JSON"
                };
                return Err(error.hint(hint).into());
            }
        };
        if arguments.insert(name.to_owned(), value).is_some() {
            return Err(Usage::new(format!("`{name}` is given twice")).into());
        }
    }
    Ok(Value::Object(arguments))
}

/// What happens inside the call, on stderr.
pub fn show(console: &Console, event: &EventKind) {
    if let EventKind::CallNoted { note, .. } = event {
        match note {
            CallNote::Progress { message: Some(message), .. } | CallNote::Hint { text: message }
                if !message.is_empty() =>
            {
                console.say(prompt::printable(message));
            }
            CallNote::RateLimited { wait } => {
                console.say(format_args!("waiting {wait:.1?} for the rate limit"))
            }
            CallNote::Retry { attempt, error, .. } => {
                console.say(format_args!("attempt {attempt} failed: {}", prompt::printable(error)))
            }
            _ => {}
        }
    }
}

/// Prints a result. Its files are saved in a folder, if one was named.
pub fn print(console: &Console, result: &ToolResult, folder: Option<&Path>) -> anyhow::Result<()> {
    let mut out = console.stdout();
    let to_people = out.is_terminal();
    let mut not_saved = None;
    for (index, block) in result.content.iter().enumerate() {
        match block {
            Content::Text { text, .. } => {
                let text = if to_people { prompt::coloured(text).into() } else { Cow::from(text.as_str()) };
                write!(out, "{text}{}", if text.ends_with('\n') { "" } else { "\n" })?;
            }
            Content::Json { value } => {
                let text = serde_json::to_string_pretty(value)?;
                writeln!(out, "{}", if to_people { prompt::printable(&text) } else { text })?;
            }
            Content::Image(media)
            | Content::Audio(media)
            | Content::Video(media)
            | Content::Document(media) => {
                let name = file_name(result, index, media);
                let Some(folder) = folder else {
                    let what = prompt::printable(&media.mime_type);
                    console.say(format_args!("`{name}` ({what}) is not shown; --save-to FOLDER saves it"));
                    continue;
                };
                let path = folder.join(name);
                // The rest of the result is shown all the same: the call was made.
                match media.bytes().map_err(Into::into).and_then(|bytes| save(&path, &bytes)) {
                    Ok(()) => console.say(format_args!("saved {}", path.display())),
                    Err(error) => not_saved = Some(error),
                }
            }
            Content::ResourceLink { uri, name, .. } => {
                writeln!(out, "{}", prompt::printable(&format!("{name}: {uri}")))?
            }
            _ => {}
        }
    }
    for (key, value) in &result.metadata {
        console.say(prompt::printable(&format!("{key}: {value}")));
    }
    not_saved.map_or(Ok(()), Err)
}

/// Saves a file of a result, in a folder that is made when it is not there.
fn save(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    }
    write_file::create(path, bytes, FileAccess::Inherit)
}

/// A name for a file of the result: the tool, the place in the result, an ending that fits the media type.
fn file_name(result: &ToolResult, index: usize, media: &Media) -> String {
    let subtype = media.mime_type.rsplit('/').next().unwrap_or_default();
    let ending: String = subtype
        .split('+')
        .next()
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(8)
        .collect();
    let ending = if ending.is_empty() { "bin".to_owned() } else { ending };
    let tool: String = result.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{tool}-{}.{ending}", index + 1)
}
