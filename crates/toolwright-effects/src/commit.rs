//! From an upper layer to a changed folder: compared, kept for undo, written down, applied.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use toolwright_core::{CallEffect, ChangeKind, FileChange, KeepReason, KeptBackChange};

use crate::apply::{StepOutcome, StepRunner};
use crate::blobs::MAX_BLOB;
use crate::compare::{Difference, OverlayBaseline, compare};
use crate::folder::{FolderCache, OpenFolder};
use crate::identity::FileIdentity;
use crate::journal::{CommitJournal, CommitStep, PastVersion, StepAction};
use crate::moves;
use crate::store::{CommitStore, unique_id};

/// Whether something still uses the upper layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceUse {
    /// Nothing does: files are moved out of it where that is possible.
    Take,
    /// Processes may go on using it: files are copied.
    Copy,
}

/// What is to be committed, and how.
pub struct CommitRequest<'a> {
    /// Where the journal and what is replaced are kept.
    pub store: &'a CommitStore,
    /// The folder, without links.
    pub folder: &'a Path,
    /// The upper layer of an overlay of that folder.
    pub upper: &'a Path,
    /// Whether something still uses it.
    pub source: SourceUse,
    /// What the overlay is compared with.
    pub baseline: &'a mut OverlayBaseline,
    /// Which paths, relative to the folder, are never changed.
    pub protect: &'a dyn Fn(&Path) -> bool,
    /// Change nothing; only the effect is wanted.
    pub discard: bool,
}

/// Applies what an upper layer holds to the folder below it, and reports the effect. An error means that
/// nothing was changed; what could not be applied of a commit is in [`CallEffect::kept_back`].
pub fn commit(request: CommitRequest<'_>) -> io::Result<CallEffect> {
    let CommitRequest { store, folder, upper, source, baseline, protect, discard } = request;
    let (layer, target) = (OpenFolder::open(upper)?, OpenFolder::open(folder)?);
    let since = Difference::time();
    let mut found = compare(&layer, &target, baseline, protect)?;
    let mut effect = CallEffect::default();
    for (path, reason, error) in std::mem::take(&mut found.kept_back) {
        effect.kept_back.push(kept_back(folder, &path, reason, error));
    }
    let steps = std::mem::take(&mut found.steps);
    if discard {
        let all = steps.iter().enumerate();
        list(&mut effect, folder, all);
        return Ok(effect);
    }
    if !steps.is_empty() {
        let own = target.own_status()?;
        let journal = CommitJournal {
            id: unique_id(),
            folder: folder.to_owned(),
            upper: Some(upper.to_owned()),
            take: source == SourceUse::Take,
            owner: rustix::process::geteuid().is_root().then_some((own.uid, own.gid)),
            steps,
        };
        effect.merge(carry_out(store, journal, FolderCache::new(OpenFolder::open(folder)?))?);
    }
    if source == SourceUse::Copy {
        found.settle(baseline, since, &target);
    }
    Ok(effect)
}

/// Keeps what the steps replace, writes them down, and takes them.
pub(crate) fn carry_out(
    store: &CommitStore,
    mut journal: CommitJournal,
    mut target: FolderCache,
) -> io::Result<CallEffect> {
    for step in &mut journal.steps {
        let PastVersion::File { blob } = &mut step.past else { continue };
        let is_small = step.before.is_some_and(|before| before.is_file() && before.size <= MAX_BLOB);
        // A change of permissions is undone without the contents.
        if !is_small || matches!(step.action, StepAction::SetMode { .. }) {
            continue;
        }
        let (parent, name) = target.parent(&step.path)?;
        *blob = match parent.file(name) {
            Ok(file) => store.blobs().put(file)?,
            // A file that may not be read can still be replaced; it cannot be restored.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
    }
    let held = store.write_journal(&journal)?;
    finish(store, &journal, held, false)
}

/// Takes the steps of a journal that is written down, and records what was done.
pub(crate) fn finish(
    store: &CommitStore,
    journal: &CommitJournal,
    held: crate::store::HeldJournal,
    resumed: bool,
) -> io::Result<CallEffect> {
    let outcomes = StepRunner::new(journal, store.blobs(), resumed)?.all();
    let mut effect = CallEffect::default();
    let mut done = HashSet::new();
    let mut after: Vec<Option<Option<FileIdentity>>> = Vec::with_capacity(outcomes.len());
    for (number, (step, outcome)) in journal.steps.iter().zip(outcomes).enumerate() {
        let (reason, error) = match outcome {
            StepOutcome::Done(now) => {
                done.insert(number);
                after.push(Some(now));
                continue;
            }
            StepOutcome::Conflict => (KeepReason::Conflict, None),
            StepOutcome::Failed(error) => (KeepReason::Failed, Some(error.to_string())),
        };
        after.push(None);
        effect.kept_back.push(kept_back(&journal.folder, &step.path, reason, error));
    }
    let taken = journal.steps.iter().enumerate().filter(|(number, _)| done.contains(number));
    list(&mut effect, &journal.folder, taken);
    if !done.is_empty() {
        store.record(journal, &after)?;
        effect.commits.push(journal.id.clone());
    }
    held.remove()?;
    Ok(effect)
}

fn kept_back(folder: &Path, path: &Path, reason: KeepReason, error: Option<String>) -> KeptBackChange {
    KeptBackChange { path: folder.join(path).display().to_string(), reason, error }
}

fn list<'s>(
    effect: &mut CallEffect,
    folder: &Path,
    steps: impl Iterator<Item = (usize, &'s CommitStep)> + Clone,
) {
    let moved = moves::pairs(steps.clone());
    let gone: HashSet<usize> = moved.values().copied().collect();
    let by_number: std::collections::HashMap<usize, &CommitStep> = steps.clone().collect();
    let text = |path: &Path| folder.join(path).display().to_string();
    for (number, step) in steps {
        if gone.contains(&number) {
            continue;
        }
        let mut change = FileChange {
            path: text(&step.path),
            change: if step.before.is_some() { ChangeKind::Changed } else { ChangeKind::Added },
            from: None,
            bytes: None,
            link: None,
            executable: false,
        };
        let could_run = step.before.is_some_and(|before| before.is_file() && before.mode & 0o111 != 0);
        match &step.action {
            StepAction::MakeFolder { .. } => change.path.push('/'),
            StepAction::RemoveFolder => {
                change.path.push('/');
                change.change = ChangeKind::Removed;
            }
            StepAction::Remove => change.change = ChangeKind::Removed,
            StepAction::SetMode { mode } => {
                change.change = ChangeKind::Mode;
                let is_file = step.before.is_some_and(|before| before.is_file());
                change.executable = is_file && mode & 0o111 != 0 && !could_run;
            }
            StepAction::PutLink { to } => change.link = Some(to.display().to_string()),
            StepAction::PutFile { mode, size, .. } => {
                change.bytes = Some(*size);
                change.executable = mode & 0o111 != 0 && !could_run;
                if let Some(from) = moved.get(&number).and_then(|from| by_number.get(from)) {
                    change.change = ChangeKind::Moved;
                    change.from = Some(text(&from.path));
                }
            }
        }
        effect.list(change);
    }
}

/// A path of a commit without what leads out of its folder; recorded paths are read back from a file.
pub(crate) fn is_plain(path: &Path) -> bool {
    use std::path::Component;
    !path.as_os_str().is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// The folder of a journal or record, opened to be changed.
pub(crate) fn target_of(folder: &Path) -> io::Result<FolderCache> {
    OpenFolder::open(folder).map(FolderCache::new)
}
