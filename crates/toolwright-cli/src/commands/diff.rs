//! `toolwright diff`: two recorded runs beside each other.

use std::io::Write as _;

use serde_json::json;
use toolwright::tool::{ErrorInfo, ErrorKind};

use crate::args::DiffRuns;
use crate::commands::runs::{summary, took};
use crate::console::Console;
use crate::prompt::printable;
use crate::report::{Failed, counted};
use crate::runs;
use crate::runs::source::TranscriptSource;
use crate::runs::story::{self, Story};

pub fn run(what: &DiffRuns, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let (a, b) =
        (TranscriptSource::open(&runs::find(&what.a)?)?, TranscriptSource::open(&runs::find(&what.b)?)?);
    let changes = story::compare(&Story::of(&a), &Story::of(&b));
    let told = |source: &TranscriptSource| summary(&source.path, &source.index);
    if json {
        console.line(json!({"a": told(&a), "b": told(&b), "changes": changes}))?;
    } else {
        let mut out = console.stdout();
        for (mark, TranscriptSource { path, index }) in [("-", &a), ("+", &b)] {
            let took = took(index.duration_us());
            writeln!(
                out,
                "{mark} {}  {}, {}, {}, {}, {took}",
                runs::id_of(path),
                index.state(),
                counted(index.replies.len() as u64, "turn"),
                counted(index.calls, "call"),
                counted(index.usage.total(), "token")
            )?;
        }
        drop(out);
        print(console, &changes)?;
    }
    outcome(&changes)
}

pub fn print(console: &Console, changes: &[String]) -> std::io::Result<()> {
    let mut out = console.stdout();
    if changes.is_empty() {
        return writeln!(out, "no difference");
    }
    changes.iter().try_for_each(|line| writeln!(out, "{}", printable(line)))
}

/// An error when something differs.
pub fn outcome(changes: &[String]) -> anyhow::Result<()> {
    let differ = changes.iter().filter(|line| line.starts_with(['-', '+'])).count();
    if differ == 0 {
        return Ok(());
    }
    let verb = if differ == 1 { "differs" } else { "differ" };
    let message = format!("{} {verb}", counted(differ as u64, "line"));
    Err(Failed(ErrorInfo { kind: ErrorKind::Unknown, message, hint: None }).into())
}
