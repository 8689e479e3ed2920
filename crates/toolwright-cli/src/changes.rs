//! The changes that calls made to folders: where they are written down, and how they are shown.

use std::path::PathBuf;

use toolwright::sandbox::effects::CommitStore;
use toolwright::sandbox::{CallEffect, ChangeKind};

use crate::console::Console;
use crate::prompt::printable;
use crate::report::counted;

/// The user's stores that are there.
pub fn stores() -> Vec<CommitStore> {
    let look_up = |name: &str| std::env::var(name).ok();
    let there = |path: &PathBuf| path.join("journals").is_dir() || path.join("commits").is_dir();
    CommitStore::candidates(look_up)
        .into_iter()
        .filter(there)
        .filter_map(|path| CommitStore::open(&path).ok())
        .collect()
}

/// Finishes the commits whose process was killed, and says so.
pub fn recover(console: &Console) {
    for store in stores() {
        match store.recover() {
            Ok(recovered) => {
                for one in recovered {
                    let what = summary(&one.effect);
                    let folder = one.folder.display().to_string();
                    let told = format!("a change of {} was finished that had been cut off: {what}", folder);
                    console.say(printable(&told));
                }
            }
            Err(error) => console.say(format_args!("a change that was cut off cannot be finished: {error}")),
        }
    }
}

/// How much changed, in a few words.
pub fn summary(effect: &CallEffect) -> String {
    let count = |kind: ChangeKind| effect.files.iter().filter(|one| one.change == kind).count();
    let kinds = [
        (ChangeKind::Added, "added"),
        (ChangeKind::Changed, "changed"),
        (ChangeKind::Removed, "removed"),
        (ChangeKind::Moved, "moved"),
        (ChangeKind::Mode, "with other permissions"),
    ];
    let mut parts: Vec<String> = kinds
        .into_iter()
        .map(|(kind, word)| (count(kind), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if effect.more > 0 {
        parts.push(format!("{} more", effect.more));
    }
    if !effect.kept_back.is_empty() {
        parts.push(format!("{} not applied", counted(effect.kept_back.len() as u64, "change")));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

/// Each change on a line of its own, at most so many.
pub fn lines(effect: &CallEffect, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for change in effect.files.iter().take(most) {
        let from = change.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        let link = change.link.as_ref().map(|to| format!(" -> {to}")).unwrap_or_default();
        let bytes = change.bytes.map(|bytes| format!("  {bytes} bytes")).unwrap_or_default();
        let runs = if change.executable { "  executable" } else { "" };
        lines.push(format!("{:<7} {}{link}{from}{bytes}{runs}", change.change.as_str(), change.path));
    }
    let rest = effect.files.len().saturating_sub(most) as u64 + effect.more;
    if rest > 0 {
        lines.push(format!("and {rest} more"));
    }
    for kept in effect.kept_back.iter().take(most) {
        let error = kept.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        lines.push(format!("not applied: {} {}{error}", kept.path, kept.reason.as_text()));
    }
    lines
}
