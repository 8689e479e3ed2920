//! `toolwright undo`: restores what calls changed.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use toolwright::events::{Event, EventKind};
use toolwright::sandbox::effects::{CommitStore, undo};
use toolwright::sandbox::{CallEffect, EFFECT_NOTE};
use toolwright::tool::CallNote;

use crate::args::Undo;
use crate::changes;
use crate::console::Console;
use crate::prompt::printable;
use crate::report::Usage;
use crate::runs;

pub fn run(what: &Undo, console: &Console) -> anyhow::Result<()> {
    let stores = changes::stores();
    let mut undone = Vec::new();
    let mut effect = CallEffect::default();
    for id in chosen(what, &stores)? {
        effect.merge(undo_one(&stores, &id)?);
        undone.push(id);
    }
    if console.is_json() {
        console.line(json!({"undone": undone, "effect": effect}))?;
    } else {
        for line in changes::lines(&effect, usize::MAX) {
            console.line(printable(&line))?;
        }
        if !effect.commits.is_empty() {
            console.say(format_args!("`toolwright undo {}` does it again", effect.commits.join("` and `")));
        }
    }
    match effect.kept_back.is_empty() {
        true => Ok(()),
        false => anyhow::bail!("some of it was not undone"),
    }
}

fn undo_one(stores: &[CommitStore], id: &str) -> anyhow::Result<CallEffect> {
    for store in stores {
        match undo(store, id) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => return other.with_context(|| format!("cannot undo {id}")),
        }
    }
    Err(Usage::new(format!("the commit {id} is not kept any more, or its folder is gone")).into())
}

/// The commits to undo, the latest first.
fn chosen(what: &Undo, stores: &[CommitStore]) -> anyhow::Result<Vec<String>> {
    let known: Vec<_> = stores.iter().flat_map(CommitStore::commits).collect();
    let Some(name) = &what.what else {
        let here = std::env::current_dir()?.canonicalize()?;
        let latest = known.iter().find(|one| one.folder.starts_with(&here) || here.starts_with(&one.folder));
        let latest = latest.ok_or_else(|| Usage::new("no change of this folder can be undone"))?;
        return Ok(vec![latest.id.clone()]);
    };
    if let Some(one) = known.iter().find(|one| one.id == *name) {
        return Ok(vec![one.id.clone()]);
    }
    let (mut commits, whose) = match runs::find(name) {
        Ok(run) => (commits_of(&run, None)?, format!("the run `{name}`")),
        Err(_) => (commits_of(&runs::find(&what.run)?, Some(name))?, format!("`{name}`")),
    };
    if commits.is_empty() {
        let error = Usage::new(format!("{whose} changed no folder, or is not known"));
        return Err(error
            .hint("name a run, a call of the run, or a commit; `toolwright runs show` has all three")
            .into());
    }
    commits.reverse();
    Ok(commits)
}

/// The commits that a run has on record, in order; only those of one call, if it is named.
fn commits_of(run: &Path, call: Option<&str>) -> anyhow::Result<Vec<String>> {
    let mut commits = Vec::new();
    let mut spans = Vec::new();
    for line in BufReader::new(File::open(run)?).split(b'\n') {
        let Ok(Event { kind, .. }) = serde_json::from_slice(&line?) else { continue };
        match kind {
            EventKind::CallStarted { span, call_id, parent, .. } => {
                // What a call has called belongs to it.
                let inner = parent.is_some_and(|parent| spans.contains(&parent));
                if inner || call.is_none_or(|call| *call == *call_id) {
                    spans.push(span);
                }
            }
            EventKind::CallNoted { span, note: CallNote::Data { name, value } }
                if name == EFFECT_NOTE && spans.contains(&span) =>
            {
                let effect: CallEffect = serde_json::from_value(value).unwrap_or_default();
                commits.extend(effect.commits);
            }
            _ => {}
        }
    }
    Ok(commits)
}
