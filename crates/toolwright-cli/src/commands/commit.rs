//! `toolwright commit`: applies, or drops, changes of calls that were set aside.

use std::io::ErrorKind;

use anyhow::Context as _;
use serde_json::json;
use toolwright::sandbox::CallEffect;
use toolwright::sandbox::effects::{CommitStore, SetAside, commit_set_aside, drop_set_aside};

use crate::args::Commit;
use crate::changes;
use crate::console::Console;
use crate::prompt::printable;
use crate::report::Usage;

pub fn run(what: &Commit, console: &Console) -> anyhow::Result<()> {
    let stores = changes::stores();
    let all: Vec<(&CommitStore, SetAside)> =
        stores.iter().flat_map(|store| store.set_aside().into_iter().map(move |one| (store, one))).collect();
    let Some(name) = &what.what else { return list(&all, console) };
    let meant = |one: &SetAside| one.id == *name || one.call.as_deref() == Some(name);
    let mut chosen: Vec<_> = all.iter().filter(|(_, one)| meant(one)).collect();
    if chosen.is_empty() {
        let error = Usage::new(format!("nothing is set aside under `{name}`"));
        return Err(error.hint("`toolwright commit` lists what is").into());
    }
    // Models use the ids of calls again; only the latest call of a folder is meant.
    if chosen.iter().all(|(_, one)| one.id != *name) {
        let mut folders = std::collections::HashSet::new();
        chosen.retain(|(_, one)| folders.insert(one.folder.clone()));
    }
    let mut effect = CallEffect::default();
    for (store, one) in chosen {
        let outcome = match what.drop {
            true => drop_set_aside(store, &one.id).map(|()| CallEffect::default()),
            false => commit_set_aside(store, &one.id),
        };
        match outcome {
            Ok(done) => effect.merge(done),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                anyhow::bail!("`{}` is gone", printable(&one.folder.display().to_string()));
            }
            Err(error) => return Err(error).with_context(|| format!("cannot apply {}", one.id)),
        }
    }
    if console.is_json() {
        console.line(json!({"effect": effect}))?;
    } else {
        for line in changes::lines(&effect, usize::MAX) {
            console.line(printable(&line))?;
        }
        if !effect.commits.is_empty() {
            console.say(format_args!("`toolwright undo {}` undoes it", effect.commits.join("` and `")));
        }
    }
    match effect.kept_back.is_empty() {
        true => Ok(()),
        false => anyhow::bail!("some of it was not applied, and stays set aside"),
    }
}

fn list(all: &[(&CommitStore, SetAside)], console: &Console) -> anyhow::Result<()> {
    for (_, one) in all {
        if console.is_json() {
            let folder = one.folder.display().to_string();
            let (call, reason) = (&one.call, &one.reason);
            console.line(json!({
                "id": one.id, "call": call, "folder": folder, "reason": reason, "effect": one.effect,
            }))?;
            continue;
        }
        let folder = one.folder.display();
        let reason = one.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let text = format!("{}  {folder}: {}{reason}", one.id, changes::summary(&one.effect));
        console.line(printable(&text))?;
        for line in changes::lines(&one.effect, 10) {
            console.line(printable(&format!("    {line}")))?;
        }
    }
    if all.is_empty() && !console.is_json() {
        console.say("nothing is set aside");
    }
    Ok(())
}
