//! The difference that an upper layer makes to a folder, as steps. Reads both, changes neither.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use toolwright_core::KeepReason;

use crate::apply::is_reserved;
use crate::folder::OpenFolder;
use crate::identity::FileIdentity;
use crate::journal::{CommitStep, ContentSource, PastVersion, StepAction};

/// How deep folders may lie in one another. The walk is recursive.
const MAX_DEPTH: usize = 128;

/// The most paths that one call may change.
const MAX_STEPS: usize = 1_000_000;

/// What an overlay is compared with: the time it was mounted, and what earlier commits of it have settled.
#[derive(Debug, Clone)]
pub struct OverlayBaseline {
    /// Files of the folder that changed after this time did so outside.
    since: i64,
    settled: HashMap<PathBuf, SettledEntry>,
}

#[derive(Debug, Clone, Copy)]
struct SettledEntry {
    upper: FileIdentity,
    target: Option<FileIdentity>,
}

impl OverlayBaseline {
    /// The baseline of an overlay that is mounted now. File systems use a coarser clock: a change outside in
    /// the rest of this tick (at most 10 ms) counts as made before.
    pub fn now() -> Self {
        OverlayBaseline { since: now(), settled: HashMap::new() }
    }

    /// The baseline of an overlay that was mounted when this folder was last changed.
    pub fn of_folder(folder: &Path) -> io::Result<Self> {
        let about = OpenFolder::open(folder)?.own_status()?;
        Ok(OverlayBaseline { since: about.changed, settled: HashMap::new() })
    }
}

fn now() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// What the comparison found.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// In an order in which they can be taken; those that are held with the others.
    pub(crate) steps: Vec<CommitStep>,
    pub(crate) kept_back: Vec<(PathBuf, KeepReason, Option<String>)>,
    /// What becomes settled once the steps are done, by path.
    settling: Vec<(PathBuf, FileIdentity)>,
}

/// Which paths are never changed.
pub(crate) type Protect<'a> = &'a dyn Fn(&Path) -> bool;

/// One entry of the upper layer, and what the folder has in its place.
struct LayerEntry<'e> {
    upper: &'e OpenFolder,
    target: Option<&'e OpenFolder>,
    name: &'e Path,
    path: PathBuf,
    staged: FileIdentity,
    there: Option<FileIdentity>,
    depth: usize,
}

struct LayerWalk<'a> {
    baseline: &'a OverlayBaseline,
    protect: Protect<'a>,
    /// Why the steps that are found now are held.
    held: Option<KeepReason>,
    /// More was changed than is committed.
    overflow: bool,
    found: Difference,
}

/// Compares an upper layer with the folder below it.
pub(crate) fn compare(
    upper: &OpenFolder,
    target: &OpenFolder,
    baseline: &OverlayBaseline,
    protect: Protect<'_>,
) -> io::Result<Difference> {
    let found = Difference::default();
    let mut walk = LayerWalk { baseline, protect, held: None, overflow: false, found };
    walk.folder(upper, Some(target), Path::new(""), 0)?;
    match walk.overflow {
        true => Err(io::Error::other(format!("more than {MAX_STEPS} paths were changed"))),
        false => Ok(walk.found),
    }
}

impl LayerWalk<'_> {
    fn folder(
        &mut self,
        upper: &OpenFolder,
        target: Option<&OpenFolder>,
        path: &Path,
        depth: usize,
    ) -> io::Result<()> {
        for name in upper.names()? {
            let path = path.join(&name);
            let Some(staged) = upper.status(&name)? else { continue };
            let there = match target.map(|target| target.status(&name)).transpose() {
                Ok(there) => there.flatten(),
                Err(error) => {
                    self.keep_back(path, KeepReason::Failed, Some(&error));
                    continue;
                }
            };
            // An earlier commit of this overlay has dealt with this version.
            if self.baseline.settled.get(&path).is_some_and(|settled| settled.upper == staged) {
                continue;
            }
            if self.overflow {
                return Ok(());
            }
            self.entry(LayerEntry { upper, target, name: &name, path, staged, there, depth })?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: LayerEntry<'_>) -> io::Result<()> {
        let LayerEntry { upper, target, name, ref staged, there, depth, .. } = entry;
        let empty = staged.is_file() && staged.size == 0;
        if is_whiteout(staged) || (empty && upper.is_whiteout_file(name)) {
            self.settle(&entry.path, staged);
            if let (Some(target), Some(there)) = (target, there) {
                self.remove(target, name, entry.path, there, depth);
            }
            return Ok(());
        }
        match staged.kind() {
            FileType::Directory => self.staged_folder(entry),
            FileType::RegularFile | FileType::Symlink => {
                self.settle(&entry.path, staged);
                self.staged_file(entry)
            }
            _ => {
                self.settle(&entry.path, staged);
                self.keep_back(entry.path, KeepReason::Unsupported, None);
                Ok(())
            }
        }
    }

    fn staged_folder(&mut self, entry: LayerEntry<'_>) -> io::Result<()> {
        let LayerEntry { upper, target, name, path, staged, there, depth } = entry;
        let inner = match upper.folder(name) {
            Ok(inner) => inner,
            Err(error) => {
                self.keep_back(path, KeepReason::Failed, Some(&error));
                return Ok(());
            }
        };
        let lower = match (there.filter(FileIdentity::is_folder), target) {
            (Some(there), Some(target)) => match target.folder(name) {
                Ok(folder) => Some((there, folder)),
                Err(error) => {
                    self.keep_back(path, KeepReason::Failed, Some(&error));
                    return Ok(());
                }
            },
            _ => None,
        };
        let is_opaque = lower.is_some() && upper.is_opaque(name);
        let mode = staged.permissions();
        let same_mode = lower.as_ref().is_some_and(|(there, _)| there.permissions() == mode);
        // Overlayfs copies the folders above a changed file, which are not changed by that.
        if same_mode && !is_opaque && inner.names()?.is_empty() {
            return Ok(());
        }
        let reason = self.refusal(&path, depth);
        let applied = self.unless(reason, &path, |walk| {
            let Some((there, below)) = lower else {
                if let (Some(target), Some(there)) = (target, there)
                    && !walk.remove(target, name, path.clone(), there, depth)
                {
                    return Ok(());
                }
                walk.step(path.clone(), StepAction::MakeFolder { mode }, None, PastVersion::Absent);
                return walk.folder(&inner, None, &path, depth + 1);
            };
            if !same_mode {
                walk.step(path.clone(), StepAction::SetMode { mode }, Some(there), PastVersion::Folder);
            }
            if is_opaque {
                let kept = inner.names()?;
                for gone in below.names()?.into_iter().filter(|name| kept.binary_search(name).is_err()) {
                    if let Some(there) = below.status(&gone)? {
                        walk.remove(&below, &gone, path.join(&gone), there, depth + 1);
                    }
                }
            }
            walk.folder(&inner, Some(&below), &path, depth + 1)
        });
        applied.unwrap_or(Ok(()))
    }

    /// Does what adds steps, unless there is a reason against it. What is protected or in conflict is kept
    /// back and its steps are held, so that a person can still have them taken.
    fn unless<T>(
        &mut self,
        reason: Option<KeepReason>,
        path: &Path,
        add: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let outer = self.held;
        if let (None, Some(reason)) = (outer, reason) {
            self.keep_back(path.to_owned(), reason, None);
            match reason {
                KeepReason::Protected | KeepReason::Conflict => self.held = Some(reason),
                _ => return None,
            }
        }
        let added = add(self);
        self.held = outer;
        Some(added)
    }

    fn staged_file(&mut self, entry: LayerEntry<'_>) -> io::Result<()> {
        let LayerEntry { upper, target, name, path, staged, there, depth } = entry;
        let mode = staged.permissions() & 0o777;
        let mut action = if staged.is_link() {
            StepAction::PutLink { to: upper.link_target(name)? }
        } else {
            let (size, modified) = (staged.size, staged.modified);
            let source = ContentSource::Upper { changed: staged.changed };
            StepAction::PutFile { source, mode, size, modified, owner: None }
        };
        let mut past = PastVersion::Absent;
        if let (Some(there), Some(target)) = (there, target) {
            if there.is_link() {
                let old = target.link_target(name)?;
                if matches!(&action, StepAction::PutLink { to } if *to == old) {
                    return Ok(());
                }
                past = PastVersion::Link { to: old };
            } else if there.is_file() {
                past = PastVersion::File { blob: None };
                // A program that only opened the file for writing had it copied, too.
                let same = staged.is_file()
                    && (there.size, there.modified) == (staged.size, staged.modified)
                    && same_bytes(upper, target, name).unwrap_or(false);
                if same && there.permissions() == staged.permissions() {
                    return Ok(());
                }
                if same {
                    action = StepAction::SetMode { mode };
                }
            }
        }
        let conflict = || self.is_conflict(&path, there.as_ref()).then_some(KeepReason::Conflict);
        let reason = self.refusal(&path, depth).or_else(conflict);
        self.unless(reason, &path, |walk| {
            if let (Some(folder), Some(target)) = (there.filter(FileIdentity::is_folder), target) {
                if walk.remove(target, name, path.clone(), folder, depth) {
                    walk.step(path.clone(), action, None, PastVersion::Absent);
                }
            } else {
                walk.step(path.clone(), action, there, past);
            }
        });
        Ok(())
    }

    /// Adds the steps that remove what is at a path, with all below. False when something of it stays.
    fn remove(
        &mut self,
        parent: &OpenFolder,
        name: &Path,
        path: PathBuf,
        there: FileIdentity,
        depth: usize,
    ) -> bool {
        if self.overflow {
            return false;
        }
        let conflict = || self.is_conflict(&path, Some(&there)).then_some(KeepReason::Conflict);
        if let (None, Some(reason)) = (self.held, self.refusal(&path, depth).or_else(conflict)) {
            self.unless(Some(reason), &path, |walk| walk.remove(parent, name, path.clone(), there, depth));
            return false;
        }
        if !there.is_folder() {
            let past = match there.kind() {
                FileType::Symlink => match parent.link_target(name) {
                    Ok(to) => PastVersion::Link { to },
                    Err(error) => {
                        self.keep_back(path, KeepReason::Failed, Some(&error));
                        return false;
                    }
                },
                _ => PastVersion::File { blob: None },
            };
            self.step(path, StepAction::Remove, Some(there), past);
            return true;
        }
        let listed = parent.folder(name).and_then(|folder| folder.names().map(|names| (folder, names)));
        let (folder, names) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.keep_back(path, KeepReason::Failed, Some(&error));
                return false;
            }
        };
        let mut whole = true;
        for inner in names {
            let path = path.join(&inner);
            match folder.status(&inner) {
                Ok(Some(there)) => whole &= self.remove(&folder, &inner, path, there, depth + 1),
                Ok(None) => {}
                Err(error) => {
                    self.keep_back(path, KeepReason::Failed, Some(&error));
                    whole = false;
                }
            }
        }
        if whole {
            self.step(path, StepAction::RemoveFolder, Some(there), PastVersion::Folder);
        }
        whole
    }

    fn refusal(&self, path: &Path, depth: usize) -> Option<KeepReason> {
        if is_reserved(path) || depth > MAX_DEPTH {
            return Some(KeepReason::Unsupported);
        }
        (self.protect)(path).then_some(KeepReason::Protected)
    }

    fn is_conflict(&self, path: &Path, there: Option<&FileIdentity>) -> bool {
        match (self.baseline.settled.get(path), there) {
            (Some(settled), there) => settled.target.as_ref() != there,
            (None, Some(there)) => !there.is_folder() && there.changed > self.baseline.since,
            (None, None) => false,
        }
    }

    fn settle(&mut self, path: &Path, staged: &FileIdentity) {
        self.found.settling.push((path.to_owned(), *staged));
    }

    fn step(&mut self, path: PathBuf, action: StepAction, before: Option<FileIdentity>, past: PastVersion) {
        if self.found.steps.len() + self.found.kept_back.len() >= MAX_STEPS {
            self.overflow = true;
            return;
        }
        self.found.steps.push(CommitStep { path, action, before, past, held: self.held });
    }

    fn keep_back(&mut self, path: PathBuf, reason: KeepReason, error: Option<&io::Error>) {
        if self.found.steps.len() + self.found.kept_back.len() >= MAX_STEPS {
            self.overflow = true;
            return;
        }
        self.found.kept_back.push((path, reason, error.map(ToString::to_string)));
    }
}

impl Difference {
    /// Lets the baseline know what the commit has dealt with: everything but the paths of `later`.
    pub(crate) fn settle(
        &self,
        baseline: &mut OverlayBaseline,
        since: i64,
        target: &OpenFolder,
        later: &HashSet<PathBuf>,
    ) {
        let mut cache = None;
        for (path, upper) in self.settling.iter().filter(|(path, _)| !later.contains(path)) {
            let parent = path.parent().unwrap_or(Path::new("")).to_owned();
            if cache.as_ref().is_none_or(|(open, _)| *open != parent) {
                cache = Some((parent.clone(), target.folder(&parent).ok()));
            }
            let folder = cache.as_ref().and_then(|(_, folder)| folder.as_ref());
            let name = path.file_name().map(Path::new).unwrap_or(path);
            let now = folder.and_then(|folder| folder.status(name).ok().flatten());
            baseline.settled.insert(path.clone(), SettledEntry { upper: *upper, target: now });
        }
        baseline.since = since;
    }

    pub(crate) fn time() -> i64 {
        now()
    }
}

/// A device with the number 0:0 stands for an absence.
fn is_whiteout(staged: &FileIdentity) -> bool {
    staged.kind() == FileType::CharacterDevice
}

fn same_bytes(one: &OpenFolder, other: &OpenFolder, name: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (one.file(name)?, other.file(name)?);
    let (mut left, mut right) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let (read, also) = (fill(&mut one, &mut left)?, fill(&mut other, &mut right)?);
        if left.get(..read) != right.get(..also) {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}
