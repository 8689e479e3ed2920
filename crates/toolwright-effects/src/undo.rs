//! Restores what a commit changed, where it is still as the commit left it.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use toolwright_core::{CallEffect, KeepReason, KeptBackChange};

use crate::commit::{carry_out, target_of};
use crate::identity::FileIdentity;
use crate::journal::{CommitJournal, CommitStep, ContentSource, PastVersion, StepAction};
use crate::store::{CommitRecord, CommitStore, UndoEntry, unique_id};

/// Undoes a commit, and reports the effect of that, which can be undone in turn. What changed since is left
/// as it is.
pub fn undo(store: &CommitStore, id: &str) -> io::Result<CallEffect> {
    let CommitRecord { folder, entries, .. } = store.read_record(id)?;
    let mut target = target_of(&folder)?;
    let mut steps = Vec::new();
    let mut kept_back = Vec::new();
    // Paths at which the steps so far leave nothing.
    let mut cleared: HashSet<PathBuf> = HashSet::new();
    for entry in entries.into_iter().rev() {
        let path = folder.join(&entry.path).display().to_string();
        let is_cleared = entry.path.ancestors().any(|above| cleared.contains(above));
        let there = match target.parent(&entry.path) {
            _ if is_cleared => None,
            Ok((parent, name)) => parent.status(name)?,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                None
            }
            Err(error) => return Err(error),
        };
        let as_left = match (&there, &entry.after) {
            (Some(there), Some(after)) if after.is_folder() => there.is_folder(),
            (Some(there), Some(after)) => there.same_contents(after),
            (there, after) => there.is_none() && after.is_none(),
        };
        match (as_left, step(&entry, there, &mut target)?) {
            (true, Some(step)) => {
                if entry.past == PastVersion::Absent {
                    cleared.insert(entry.path);
                }
                steps.push(step);
            }
            (true, None) => {
                let error = Some("its contents were too large to be kept".to_owned());
                kept_back.push(kept_back_at(path, KeepReason::Unsupported, error));
            }
            (false, _) => kept_back.push(kept_back_at(path, KeepReason::Conflict, None)),
        }
    }
    let mut effect = CallEffect::default();
    if !steps.is_empty() {
        let own = target.root().own_status()?;
        let owner = rustix::process::geteuid().is_root().then_some((own.uid, own.gid));
        let (id, call) = (unique_id(), None);
        let journal = CommitJournal { id, call, folder, upper: None, take: false, owner, steps };
        effect = carry_out(store, journal, target)?.effect;
    }
    kept_back.into_iter().for_each(|kept| effect.keep_back(kept));
    if effect.kept_back.is_empty() {
        store.forget(id)?;
    }
    Ok(effect)
}

fn step(
    entry: &UndoEntry,
    there: Option<FileIdentity>,
    target: &mut crate::folder::FolderCache,
) -> io::Result<Option<CommitStep>> {
    let action = match (&entry.past, &entry.before) {
        (PastVersion::Absent, _) => match &entry.after {
            Some(after) if after.is_folder() => StepAction::RemoveFolder,
            _ => StepAction::Remove,
        },
        (PastVersion::Link { to }, _) => StepAction::PutLink { to: to.clone() },
        (PastVersion::Folder, Some(before)) => match entry.after {
            Some(_) => StepAction::SetMode { mode: before.permissions() },
            None => StepAction::MakeFolder { mode: before.permissions() },
        },
        (PastVersion::File { blob: Some(hash) }, Some(before)) => StepAction::PutFile {
            source: ContentSource::Blob(hash.clone()),
            mode: before.permissions() & 0o777,
            size: before.size,
            modified: before.modified,
            owner: Some((before.uid, before.gid)),
        },
        (PastVersion::File { blob: None }, Some(before)) => match &entry.after {
            // Only the permissions were changed.
            Some(after) if (after.inode, after.size) == (before.inode, before.size) => {
                StepAction::SetMode { mode: before.permissions() }
            }
            _ => return Ok(None),
        },
        (PastVersion::Folder | PastVersion::File { .. }, None) => return Ok(None),
    };
    let past = match there {
        None => PastVersion::Absent,
        Some(now) if now.is_folder() => PastVersion::Folder,
        Some(now) if now.is_link() => {
            let (parent, name) = target.parent(&entry.path)?;
            PastVersion::Link { to: parent.link_target(name)? }
        }
        Some(_) => PastVersion::File { blob: None },
    };
    let path: PathBuf = entry.path.clone();
    Ok(Some(CommitStep { path, action, before: there, past, held: None }))
}

fn kept_back_at(path: String, reason: KeepReason, error: Option<String>) -> KeptBackChange {
    KeptBackChange { path, reason, error, by: None }
}
