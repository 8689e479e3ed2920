//! From an upper layer to a changed folder: compared, decided about, kept for undo, written down, applied.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use toolwright_core::{
    CallEffect, ChangeKind, EffectOutcome, EffectVerdict, FileChange, KeepReason, KeptBackChange,
    MAX_JUDGED_CHANGES, MAX_LISTED_CHANGES, StagedEffect,
};

use crate::apply::{CHANGED_MEANWHILE, StepOutcome, StepRunner};
use crate::blobs::MAX_BLOB;
use crate::compare::{Difference, OverlayBaseline, compare};
use crate::folder::{FolderCache, OpenFolder};
use crate::identity::FileIdentity;
use crate::journal::{CommitJournal, CommitStep, PastVersion, StepAction};
use crate::store::{CommitStore, HeldJournal, unique_id};
use crate::{aside, diff, moves};

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
    /// A folder on the file system of the upper layer, for what is not applied now.
    pub aside: &'a Path,
    /// The call whose changes these are.
    pub call: Option<&'a str>,
    /// Whether something still uses it.
    pub source: SourceUse,
    /// What the overlay is compared with.
    pub baseline: &'a OverlayBaseline,
    /// Which paths, relative to the folder, are never changed.
    pub protect: &'a dyn Fn(&Path) -> bool,
}

/// Applies what an upper layer holds to the folder below it, and reports the effect. What is protected, and
/// what changed outside meanwhile, is set aside. An error means that nothing was changed; what could not be
/// applied of a commit is in [`CallEffect::kept_back`].
pub fn commit(request: CommitRequest<'_>, baseline: &mut OverlayBaseline) -> io::Result<CallEffect> {
    PendingCommit::compare(request)?.settle(&EffectVerdict::default(), baseline)
}

/// The difference between an upper layer and its folder, before anything is done about it.
#[derive(Debug)]
pub struct PendingCommit {
    store: CommitStore,
    folder: PathBuf,
    upper: PathBuf,
    aside: PathBuf,
    call: Option<String>,
    source: SourceUse,
    since: i64,
    found: Difference,
}

impl PendingCommit {
    /// Compares an upper layer with the folder below it. Nothing is changed.
    pub fn compare(request: CommitRequest<'_>) -> io::Result<PendingCommit> {
        let CommitRequest { store, folder, upper, aside, call, source, baseline, protect } = request;
        let (layer, target) = (OpenFolder::open(upper)?, OpenFolder::open(folder)?);
        let since = Difference::time();
        let found = compare(&layer, &target, baseline, protect)?;
        Ok(PendingCommit {
            store: store.clone(),
            folder: folder.to_owned(),
            upper: upper.to_owned(),
            aside: aside.to_owned(),
            call: call.map(str::to_owned),
            source,
            since,
            found,
        })
    }

    /// Whether there is something to decide.
    pub fn is_empty(&self) -> bool {
        self.found.steps.is_empty()
    }

    /// Adds what would be changed to what others would change, for whoever decides.
    pub fn describe(&self, staged: &mut StagedEffect) {
        let steps = || self.found.steps.iter().enumerate();
        let of = |held: Option<KeepReason>| steps().filter(move |(_, step)| step.held == held);
        for (held, all) in [(None, &mut staged.changes), (Some(KeepReason::Protected), &mut staged.protected)]
        {
            let room = MAX_JUDGED_CHANGES.saturating_sub(all.len());
            let (changes, more) = changes(&self.folder, of(held), room);
            all.extend(changes);
            staged.more = staged.more.saturating_add(more);
        }
        staged.folders.push(self.folder.display().to_string());
        let counted = |step: &CommitStep| step.held != Some(KeepReason::Conflict);
        let moved = moves::pairs(steps()).len() as u64;
        let removed = steps().filter(|(_, step)| counted(step) && matches!(step.action, StepAction::Remove));
        let removed = (removed.count() as u64).saturating_sub(moved);
        staged.deletes = staged.deletes.saturating_add(removed);
        staged.deletes_most |= self.removes_most(removed);
        let bytes = steps().filter(|(_, step)| counted(step)).map(|(_, step)| match step.action {
            StepAction::PutFile { size, .. } => size,
            _ => 0,
        });
        staged.bytes = bytes.fold(staged.bytes, u64::saturating_add);
        diff::add(&mut staged.diff, &self.folder, &self.upper, &self.found.steps);
    }

    /// Whether more than half of the folder's files are removed. Looks at no more of them than it needs.
    fn removes_most(&self, removed: u64) -> bool {
        /// Fewer files are not most of anything.
        const FEWEST: u64 = 3;
        /// The most names that are looked at.
        const MAX_LOOKS: usize = 20_000;
        if removed < FEWEST {
            return false;
        }
        let (mut files, mut looks) = (0_u64, 0_usize);
        let mut open = vec![PathBuf::new()];
        let Ok(root) = OpenFolder::open(&self.folder) else { return false };
        while let Some(path) = open.pop() {
            let Ok(folder) = root.folder(&path) else { continue };
            for name in folder.names().unwrap_or_default() {
                looks += 1;
                match folder.status(&name) {
                    Ok(Some(there)) if there.is_folder() => open.push(path.join(name)),
                    Ok(Some(_)) => files += 1,
                    _ => {}
                }
                if files >= removed.saturating_mul(2) || looks > MAX_LOOKS {
                    return false;
                }
            }
        }
        true
    }

    fn kept_back(&self) -> Vec<KeptBackChange> {
        /// So many conflicts are traced to the call that made the other change.
        const TRACED: usize = 20;
        let mut traced = 0;
        let one = |(path, reason, error): &(PathBuf, KeepReason, Option<String>)| {
            let mut kept = kept_back(&self.folder, path, *reason, error.clone());
            if *reason == KeepReason::Conflict && traced < TRACED {
                traced += 1;
                kept.by = self.store.last_change(&self.folder, path);
            }
            kept
        };
        self.found.kept_back.iter().map(one).collect()
    }

    /// Does what was decided, and reports the effect.
    pub fn settle(
        mut self,
        verdict: &EffectVerdict,
        baseline: &mut OverlayBaseline,
    ) -> io::Result<CallEffect> {
        let mut effect = CallEffect { call: self.call.clone(), ..CallEffect::default() };
        self.kept_back().into_iter().for_each(|kept| effect.keep_back(kept));
        let steps = std::mem::take(&mut self.found.steps);
        let mut later = HashSet::new();
        match verdict {
            EffectVerdict::Commit { protected, except } => {
                let choice = Choice { folder: &self.folder, protected: *protected, except };
                let (steps, mut rest) = choice.split(steps, &mut effect);
                if !steps.is_empty() {
                    let journal = self.journal(steps)?;
                    let target = FolderCache::new(OpenFolder::open(&self.folder)?);
                    let done = carry_out(&self.store, journal, target)?;
                    effect.merge(done.effect);
                    for (step, outcome) in done.left {
                        match outcome {
                            StepOutcome::Failed(error) if error.to_string() == CHANGED_MEANWHILE => {
                                later.insert(step.path);
                            }
                            _ => rest.push(step),
                        }
                    }
                }
                if !rest.is_empty() {
                    effect.set_aside.extend(self.set_aside(rest, None, &mut effect.kept_back)?);
                }
            }
            EffectVerdict::SetAside { reason } => {
                list(&mut effect, &self.folder, steps.iter().enumerate());
                if !steps.is_empty() {
                    effect.decided(EffectOutcome::SetAside, reason);
                    effect.set_aside.extend(self.set_aside(steps, Some(reason), &mut effect.kept_back)?);
                }
            }
            EffectVerdict::Discard { reason } => {
                list(&mut effect, &self.folder, steps.iter().enumerate());
                if !steps.is_empty() {
                    effect.decided(EffectOutcome::Discarded, reason);
                }
            }
        }
        if self.source == SourceUse::Copy {
            self.found.settle(baseline, self.since, &OpenFolder::open(&self.folder)?, &later);
        }
        Ok(effect)
    }

    fn journal(&self, steps: Vec<CommitStep>) -> io::Result<CommitJournal> {
        let own = OpenFolder::open(&self.folder)?.own_status()?;
        Ok(CommitJournal {
            id: unique_id(),
            call: self.call.clone(),
            folder: self.folder.clone(),
            upper: Some(self.upper.clone()),
            take: self.source == SourceUse::Take,
            owner: rustix::process::geteuid().is_root().then_some((own.uid, own.gid)),
            steps,
        })
    }

    /// Keeps steps for later; the number under which they are kept. What cannot be kept is reported.
    fn set_aside(
        &self,
        steps: Vec<CommitStep>,
        reason: Option<&str>,
        failed: &mut Vec<KeptBackChange>,
    ) -> io::Result<Option<String>> {
        let journal = self.journal(steps)?;
        match aside::put(&self.store, &self.aside, journal, reason) {
            Ok(id) => Ok(id),
            Err(error) => {
                failed.push(kept_back(
                    &self.folder,
                    Path::new(""),
                    KeepReason::Failed,
                    Some(error.to_string()),
                ));
                Ok(None)
            }
        }
    }
}

/// Which steps are taken.
struct Choice<'a> {
    folder: &'a Path,
    protected: bool,
    /// Absolute paths, as they are shown.
    except: &'a [String],
}

impl Choice<'_> {
    /// Those that are taken, and those that are set aside.
    fn split(&self, steps: Vec<CommitStep>, effect: &mut CallEffect) -> (Vec<CommitStep>, Vec<CommitStep>) {
        let except: HashSet<&str> = self.except.iter().map(|path| path.trim_end_matches('/')).collect();
        let is_excepted = |path: &Path| {
            let mut above = path.ancestors().filter(|above| !above.as_os_str().is_empty());
            above.any(|above| except.contains(&*self.folder.join(above).to_string_lossy()))
        };
        let mut left: HashSet<PathBuf> = HashSet::new();
        let (mut taken, mut rest) = (Vec::new(), Vec::new());
        let mut declined = Vec::new();
        for step in steps {
            let held = match step.held {
                Some(KeepReason::Protected) => !self.protected,
                Some(_) => true,
                None => false,
            };
            let chosen_not = !except.is_empty() && is_excepted(&step.path);
            // A folder of which something stays is not removed.
            let needed = step.action.is_folder_removal() && left.contains(&step.path);
            if !(held || chosen_not || needed) {
                taken.push(step);
                continue;
            }
            left.extend(step.path.ancestors().skip(1).map(Path::to_owned));
            if chosen_not && !held {
                declined.push(kept_back(self.folder, &step.path, KeepReason::Declined, None));
            }
            rest.push(step);
        }
        if self.protected {
            effect.kept_back.retain(|kept| kept.reason != KeepReason::Protected);
        }
        declined.into_iter().for_each(|kept| effect.keep_back(kept));
        (taken, rest)
    }
}

/// What became of the steps of a journal.
pub(crate) struct CarriedOut {
    pub(crate) effect: CallEffect,
    /// The steps that were not taken, and why.
    pub(crate) left: Vec<(CommitStep, StepOutcome)>,
}

/// Keeps what the steps replace, writes them down, and takes them.
pub(crate) fn carry_out(
    store: &CommitStore,
    mut journal: CommitJournal,
    mut target: FolderCache,
) -> io::Result<CarriedOut> {
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
    finish(store, journal, held, false)
}

/// Takes the steps of a journal that is written down, and records what was done.
pub(crate) fn finish(
    store: &CommitStore,
    journal: CommitJournal,
    held: HeldJournal,
    resumed: bool,
) -> io::Result<CarriedOut> {
    let outcomes = StepRunner::new(&journal, store.blobs(), resumed)?.all();
    let mut effect = CallEffect::default();
    let mut after: Vec<Option<Option<FileIdentity>>> = Vec::with_capacity(outcomes.len());
    let mut left = HashMap::new();
    for (number, (step, outcome)) in journal.steps.iter().zip(outcomes).enumerate() {
        let (reason, error) = match &outcome {
            StepOutcome::Done(now) => {
                after.push(Some(*now));
                continue;
            }
            StepOutcome::Conflict => (KeepReason::Conflict, None),
            StepOutcome::Failed(error) => (KeepReason::Failed, Some(error.to_string())),
        };
        after.push(None);
        effect.keep_back(kept_back(&journal.folder, &step.path, reason, error));
        left.insert(number, outcome);
    }
    let taken = journal.steps.iter().enumerate().filter(|(number, _)| !left.contains_key(number));
    list(&mut effect, &journal.folder, taken);
    if left.len() < journal.steps.len() {
        store.record(&journal, &after)?;
        effect.commits.push(journal.id.clone());
    }
    held.remove()?;
    let steps = journal.steps.into_iter().enumerate();
    let left = steps.filter_map(|(number, step)| Some((step, left.remove(&number)?))).collect();
    Ok(CarriedOut { effect, left })
}

pub(crate) fn kept_back(
    folder: &Path,
    path: &Path,
    reason: KeepReason,
    error: Option<String>,
) -> KeptBackChange {
    KeptBackChange { path: folder.join(path).display().to_string(), reason, error, by: None }
}

/// Adds steps to an effect as changes.
pub(crate) fn list<'s>(
    effect: &mut CallEffect,
    folder: &Path,
    steps: impl Iterator<Item = (usize, &'s CommitStep)> + Clone,
) {
    let room = MAX_LISTED_CHANGES.saturating_sub(effect.files.len());
    let (changes, more) = changes(folder, steps, room);
    effect.files.extend(changes);
    effect.more = effect.more.saturating_add(more);
}

/// Steps as changes, at most so many, and how many more there are.
fn changes<'s>(
    folder: &Path,
    steps: impl Iterator<Item = (usize, &'s CommitStep)> + Clone,
    room: usize,
) -> (Vec<FileChange>, u64) {
    let (mut changes, mut more) = (Vec::new(), 0);
    let moved = moves::pairs(steps.clone());
    let gone: HashSet<usize> = moved.values().copied().collect();
    let by_number: HashMap<usize, &CommitStep> = match moved.is_empty() {
        true => HashMap::new(),
        false => steps.clone().collect(),
    };
    let text = |path: &Path| folder.join(path).display().to_string();
    for (number, step) in steps {
        if gone.contains(&number) {
            continue;
        }
        if changes.len() >= room {
            more += 1;
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
                    change.executable &= from.before.is_some_and(|before| before.mode & 0o111 == 0);
                }
            }
        }
        changes.push(change);
    }
    (changes, more)
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
