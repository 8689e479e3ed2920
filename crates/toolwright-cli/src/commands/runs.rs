//! `toolwright runs`: what happened in earlier runs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;
use serde_json::{Value, json};
use toolwright::approval::call_text;
use toolwright::content::{Message, ToolCall};
use toolwright::events::EventKind;
use toolwright::sandbox::{CallEffect, EFFECT_NOTE};
use toolwright::tool::CallNote;
use toolwright_core::text;

use crate::args::{Runs, RunsWhat};
use crate::changes;
use crate::console::{Console, visible_json};
use crate::lines;
use crate::prompt::printable;
use crate::report::{Usage, counted};
use crate::runs::index::{Index, ItemState, TimelineItem, TimelineKind};
use crate::runs::source::{TranscriptSource, Whole};
use crate::runs::{self, story};

pub fn run(what: &Runs, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    match &what.what {
        None => list(console, what),
        Some(RunsWhat::Show { run, full }) => show(console, &runs::find(run)?, *full),
        Some(RunsWhat::Path { run }) => {
            let path = runs::find(run)?;
            if json {
                console.line(json!({"run": runs::id_of(&path), "path": path.to_string_lossy()}))?;
            } else {
                console.line(path.display())?;
            }
            Ok(())
        }
        Some(RunsWhat::Remove { runs: names }) => {
            let paths =
                names.iter().map(|name| runs::find_recorded(name)).collect::<anyhow::Result<Vec<_>>>()?;
            // A name may be a path: nothing but runs is removed, and nothing before all are known to be some.
            if let Some(other) = paths.iter().find(|path| !runs::is_transcript(path)) {
                let other = printable(&other.display().to_string());
                return Err(Usage::new(format!("`{other}` is not the transcript of a run")).into());
            }
            for path in &paths {
                runs::remove(path).with_context(|| format!("cannot remove `{}`", path.display()))?;
                if !json {
                    console.say(format_args!("removed {}", runs::id_of(path)));
                }
            }
            if json {
                let removed: Vec<String> = paths.iter().map(|path| runs::id_of(path)).collect();
                console.line(json!({"removed": removed}))?;
            }
            Ok(())
        }
    }
}

fn list(console: &Console, what: &Runs) -> anyhow::Result<()> {
    let json = console.is_json();
    let most = if what.all { usize::MAX } else { what.limit };
    let mut out = console.stdout();
    let mut shown = 0;
    for path in runs::list() {
        if shown >= most {
            break;
        }
        let Ok(source) = TranscriptSource::open(&path) else { continue };
        if !wanted(what, &source)? {
            continue;
        }
        shown += 1;
        if json {
            console.line(summary(&path, &source.index))?;
        } else {
            writeln!(out, "{}", line(&path, &source.index))?;
        }
    }
    if shown == 0 && !json {
        console.say("no run matches; `toolwright ask 'What can you do?'` makes one");
    }
    Ok(())
}

fn wanted(what: &Runs, source: &TranscriptSource) -> anyhow::Result<bool> {
    let index = &source.index;
    let command = what.command.as_ref();
    if command.is_some_and(|command| index.labels.get("command") != Some(command)) {
        return Ok(false);
    }
    if what.failed && !index.failed() {
        return Ok(false);
    }
    if let Some(tool) = &what.tool {
        let calls = index.items.iter().filter_map(|item| item.call.as_ref());
        if !calls.into_iter().any(|call| index.name_of(call.tool) == tool) {
            return Ok(false);
        }
    }
    match &what.search {
        Some(text) => Ok(!source.search(text, 1)?.is_empty()),
        None => Ok(true),
    }
}

/// One run as a program reads it.
pub fn summary(path: &Path, index: &Index) -> Value {
    json!({
        "run": runs::id_of(path), "path": path.to_string_lossy(), "command": index.labels.get("command"), "labels": index.labels,
        "started": index.started.map(moment), "duration_us": index.duration_us(),
        "status": index.state(), "models": index.models(), "prompt": index.prompt, "turns": index.replies.len(),
        "calls": index.calls, "errors": index.errors, "usage": index.usage, "cost": index.cost,
        "bytes": index.bytes, "broken_lines": index.broken_lines,
    })
}

fn line(path: &Path, index: &Index) -> String {
    let command = index.labels.get("command").map_or("", String::as_str);
    let about = match index.prompt.as_str() {
        "" => {
            index.items.iter().find_map(|item| item.call.as_ref()).map_or("", |call| index.name_of(call.tool))
        }
        prompt => prompt,
    };
    let errors = if index.errors > 0 { format!(", {} failed", index.errors) } else { String::new() };
    let line = format!(
        "{}  {:<19}  {command:<4}  {:<8} {:>10}  {}{errors}  {}",
        runs::id_of(path),
        day_and_time(index.started),
        index.state(),
        index.duration_us().map_or_else(|| "?".to_owned(), span),
        counted(index.calls, "call"),
        text::clip(&about.replace('\n', " "), 60),
    );
    printable(line.trim_end())
}

fn show(console: &Console, path: &Path, full: bool) -> anyhow::Result<()> {
    let json = console.is_json();
    let mut out = console.stdout();
    if json {
        let file = std::fs::File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let (mut file, mut line) = (BufReader::new(file), Vec::new());
        while file.read_until(b'\n', &mut line)? > 0 {
            match std::str::from_utf8(&line) {
                Ok(text) => out.write_all(visible_json(text).as_bytes())?,
                Err(_) => out.write_all(&line)?,
            }
            line.clear();
        }
        return Ok(());
    }
    let columns = lines::columns(&out);
    let source = TranscriptSource::open(path)?;
    let index = &source.index;
    let command = index.labels.get("command").map_or("run", String::as_str);
    let took = index.duration_us().map_or_else(String::new, |took| format!(", {}", span(took)));
    writeln!(out, "{command} {}: {}{took}", runs::id_of(path), index.state())?;
    writeln!(out, "{}", facts(index))?;
    if let Some(folder) = index.labels.get("folder") {
        writeln!(out, "in {}", printable(folder))?;
    }
    // Its layers, which differ between machines, are in the record.
    for (name, what) in index.labels.iter().filter(|(name, _)| name.starts_with("sandbox")) {
        let kind = what.split(':').next().unwrap_or_default();
        writeln!(out, "{}: {}", printable(name), printable(kind))?;
    }
    for (number, item) in index.items.iter().enumerate() {
        let whole = match source.whole(item) {
            Ok(whole) => whole,
            Err(error) => {
                writeln!(out, "\n(an event cannot be shown: {error})")?;
                continue;
            }
        };
        let mut told = shown(index, item, &whole, full);
        for call in unmade(&source, number, &whole) {
            let most = if full { usize::MAX } else { 200 };
            told = format!("{told}\n  ⏺ {}  not made", text::clip(&call_text(&call), most));
        }
        let told = printable(&told);
        let told = columns.map_or_else(|| told.clone(), |columns| lines::wrapped(&told, columns, 2));
        writeln!(out, "{}", told.trim_end())?;
    }
    if index.broken_lines > 0 {
        writeln!(out, "\n{} of the file cannot be read as events", counted(index.broken_lines, "line"))?;
    }
    Ok(())
}

/// The calls that a message asks for and that this run did not make: they were left to the caller, or a limit
/// was in between.
fn unmade(source: &TranscriptSource, number: usize, whole: &Whole) -> Vec<ToolCall> {
    let Some(Message::Assistant(answer)) = whole.message() else { return Vec::new() };
    let mut left = answer.tool_calls.clone();
    let after = source.index.items.iter().skip(number + 1);
    let calls = after.take_while(|item| {
        !matches!(item.kind, TimelineKind::System | TimelineKind::User | TimelineKind::Assistant)
    });
    for item in calls.filter(|item| item.call.as_ref().is_some_and(|call| call.depth == 0)) {
        if left.is_empty() {
            break;
        }
        if let Ok(EventKind::CallStarted { call_id, .. }) = source.event(item.at).map(|event| event.kind)
            && let Some(at) = left.iter().position(|call| call.id == call_id)
        {
            left.remove(at);
        }
    }
    left
}

/// When, which model, how much.
fn facts(index: &Index) -> String {
    let models = index.models();
    let model = if models.is_empty() { String::new() } else { format!(", {}", models.join(", ")) };
    let cost = if index.cost > 0.0 { format!(", ${:.4}", index.cost) } else { String::new() };
    format!(
        "{}{model}, {}, {} ({} failed), {}{cost}",
        day_and_time(index.started),
        counted(index.replies.len() as u64, "turn"),
        counted(index.calls, "call"),
        index.errors,
        counted(index.usage.total(), "token"),
    )
}

/// One item as text.
fn shown(index: &Index, item: &TimelineItem, whole: &Whole, full: bool) -> String {
    let most = |short: usize| if full { usize::MAX } else { short };
    if let Some(Message::Tool(result)) = whole.message() {
        let given = text::clip(result.to_text().trim_end(), most(500)).replace('\n', "\n      ");
        return format!("    └ {}: {given}", result.name);
    }
    if let Some(message) = whole.message() {
        let who = match item.kind {
            TimelineKind::System => "system",
            TimelineKind::User => "user",
            _ => "assistant",
        };
        let reply = item.reply.and_then(|number| index.replies.get(number as usize));
        let figures = reply.map_or(String::new(), |reply| {
            let usage = &reply.usage;
            let time = took(reply.duration_us);
            match usage.total() {
                0 => format!("  ({time})"),
                _ => format!("  ({time}, {} in, {} out)", usage.input_tokens, usage.output_tokens),
            }
        });
        let said = text::clip(&message.text(), most(2000)).replace('\n', "\n  ");
        let said = if said.is_empty() { said } else { format!("\n  {said}") };
        return format!("\n{who}{figures}{said}");
    }
    match (&whole.event, &item.call) {
        (EventKind::CallStarted { call_id, tool, arguments, .. }, Some(call)) => {
            let indent = "  ".repeat(usize::from(call.depth) + 1);
            let asked = ToolCall::new(call_id.clone(), tool.clone(), arguments.clone());
            let took = match call.state_in(index.is_running()) {
                ItemState::Running => "still running".to_owned(),
                ItemState::Interrupted => "interrupted".to_owned(),
                _ => took(call.duration_us),
            };
            let mut out = format!("{indent}⏺ {}  {took}", text::clip(&call_text(&asked), most(200)));
            for note in &whole.notes {
                match note {
                    CallNote::Hint { text } => {
                        out = format!("{out}\n{indent}  {}", text::clip(text, most(200)));
                    }
                    CallNote::Data { name, value } if name == EFFECT_NOTE => {
                        let effect: CallEffect = serde_json::from_value(value.clone()).unwrap_or_default();
                        let commits = effect.commits.join(", ");
                        out = format!("{out}\n{indent}  changes {commits}: {}", changes::summary(&effect));
                        for line in changes::lines(&effect, most(10)) {
                            out = format!("{out}\n{indent}    {line}");
                        }
                    }
                    _ => {}
                }
            }
            if let Some(EventKind::CallDecided { approver, decision, reason, .. }) = &whole.decided
                && (decision != "approve" || approver != "policy")
            {
                let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                out = format!("{out}\n{indent}  {approver}: {decision}{reason}");
            }
            let given = match (whole.result(), &whole.finished) {
                (Some(result), _) => result.to_text(),
                (None, Some(EventKind::CallFinished { error: Some(error), .. })) => error.message.clone(),
                _ => String::new(),
            };
            if !given.is_empty() {
                let given = text::clip(given.trim_end(), most(500));
                out = format!("{out}\n{indent}  └ {}", given.replace('\n', &format!("\n{indent}    ")));
            }
            out
        }
        (EventKind::LimitHit { limit }, _) => format!("\n{limit}"),
        (EventKind::RunFinished { end }, _) => format!("\nend: {}", story::end_text(end)),
        (event, _) => story::turn_text(event).map(|told| format!("\n{told}")).unwrap_or_default(),
    }
}

const NOT_KNOWN: &str = "time not known";

/// `2026-01-31 12:00:00`, in UTC.
fn day_and_time(micros: Option<u64>) -> String {
    let told = micros.map(moment);
    told.as_deref().and_then(|told| told.get(..19)).unwrap_or(NOT_KNOWN).replace('T', " ")
}

/// How long something took, as far as the record says so.
pub fn took(micros: Option<u64>) -> String {
    micros.map_or_else(|| NOT_KNOWN.to_owned(), span)
}

fn moment(micros: u64) -> String {
    toolwright_runtime::format_time(UNIX_EPOCH + Duration::from_micros(micros))
}

/// A time span as a person says it.
pub fn span(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        1_000_000..60_000_000 => format!("{:.1} s", micros as f64 / 1e6),
        _ => format!("{} min {} s", micros / 60_000_000, micros / 1_000_000 % 60),
    }
}
