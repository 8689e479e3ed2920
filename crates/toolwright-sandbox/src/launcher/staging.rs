//! The monitor's side of staged changes: where they are kept, and what becomes of them.
//!
//! Commits are made here because this process has the caller's rights and outlives a runtime that is killed.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolwright_core::{CallEffect, EffectVerdict, StagedEffect};
use toolwright_effects::{CommitRequest, CommitStore, OverlayBaseline, PendingCommit, SourceUse};

use super::wire::{
    MAX_STAGE_MESSAGE, STAGING_FAILED, Settle, StageAnswer, StageOrder, StageReply, StageRequest,
};
use crate::layer::commit_rules::CommitRules;
use crate::layer::identity::Identity;
use crate::layer::stage::{job_folder, upper};
use crate::policy::Changes;
use crate::remove;
use crate::sys::{self, socket};

/// How long removing the layer of a job may take.
const REMOVAL: Duration = Duration::from_secs(60);

/// The name of the folder, in a store, that holds the staging folders of sandboxes.
const FOLDER: &str = "staging";
/// The name of the folder, in a store, that holds the files of changes that were set aside.
const ASIDE: &str = "aside";
/// A file that the monitor of a staging folder holds the lock of.
const LOCK: &str = "lock";

/// Where the changes of one sandbox are staged.
#[derive(Debug)]
pub(super) struct Staging {
    /// For this sandbox alone.
    pub(super) folder: PathBuf,
    store: CommitStore,
    lock: File,
    /// The folders that can be written, in the order of the overlays.
    targets: Vec<PathBuf>,
    rules: CommitRules,
    /// When changes become real.
    changes: Changes,
    /// For what is not applied, on the file system of the staging folder.
    aside: PathBuf,
    baselines: HashMap<u64, Vec<OverlayBaseline>>,
    /// What somebody decides about.
    pending: HashMap<u64, PendingStage>,
}

/// The changes of one job, one difference for each folder.
#[derive(Debug)]
struct PendingStage {
    settle: Settle,
    /// The number of the folder, and what is different.
    commits: Vec<(usize, PendingCommit)>,
}

impl Staging {
    /// Makes a staging folder in the first of the candidates that can hold one, after finishing what killed
    /// processes have left there.
    pub(super) fn make(
        candidates: &[PathBuf],
        targets: Vec<PathBuf>,
        rules: CommitRules,
        changes: Changes,
        identity: Identity,
    ) -> Result<Staging, String> {
        let mut store = None;
        let mut reasons = Vec::new();
        for candidate in candidates {
            let within = |target: &PathBuf| candidate.starts_with(target) || target.starts_with(candidate);
            if targets.iter().any(within) {
                reasons.push(format!("`{}`: a folder that can be written holds it", candidate.display()));
                continue;
            }
            let made = CommitStore::open(candidate).and_then(|opened| {
                // The first that can be opened holds journals, whatever its file system.
                if store.is_none() {
                    opened.recover()?;
                    store = Some(opened);
                }
                if !sys::takes_overlays(candidate)? {
                    return Err(io::Error::other("its file system cannot hold the changes of an overlay"));
                }
                private_folder(&candidate.join(ASIDE))?;
                make_folder(&candidate.join(FOLDER), identity)
            });
            match (made, &store) {
                (Ok((folder, lock)), Some(store)) => {
                    let (store, aside) = (store.clone(), candidate.join(ASIDE));
                    let (baselines, pending) = (HashMap::new(), HashMap::new());
                    return Ok(Staging {
                        folder,
                        store,
                        lock,
                        targets,
                        rules,
                        changes,
                        aside,
                        baselines,
                        pending,
                    });
                }
                (Ok(_), None) => {}
                (Err(error), _) => reasons.push(format!("`{}`: {error}", candidate.display())),
            }
        }
        Err(format!("{STAGING_FAILED}{}", reasons.join("; ")))
    }

    /// What commands must not see, even where a folder that they see holds it.
    pub(super) fn hidden(&self) -> [PathBuf; 3] {
        [self.folder.clone(), self.store.folder().to_owned(), self.aside.clone()]
    }

    /// Settles what the runtime asks for until it hangs up or the sandbox has ended.
    pub(super) fn serve(&mut self, socket: &OwnedFd, keeper: &OwnedFd) {
        loop {
            let Ok([asked, ended]) =
                sys::poll([(socket.as_fd(), libc::POLLIN), (keeper.as_fd(), libc::POLLIN)], None)
            else {
                return self.leave();
            };
            if asked == 0 && ended != 0 {
                return self.leave();
            }
            if asked != 0 {
                let Ok(StageRequest { stage, order }) = read_request(socket) else { return self.leave() };
                let done = self.obey(stage, order);
                let (reply, over): (StageReply, _) = match done {
                    Ok((answer, over)) => (Ok(answer), over),
                    Err(error) => (Err(error.to_string()), false),
                };
                let Ok(text) = serde_json::to_vec(&reply) else { return self.leave() };
                // A runtime that is gone needs no answer; what it asked for is done.
                let _ = send_whole(socket, &text);
                // Nobody waits for that. What could not be committed stays until the sandbox ends.
                if over {
                    self.forget(stage);
                }
            }
        }
    }

    /// Carries out one order; true when the layer of the job is of no more use.
    fn obey(&mut self, stage: u64, order: StageOrder) -> io::Result<(StageAnswer, bool)> {
        let before = self.pending.remove(&stage);
        let (pending, verdict) = match order {
            StageOrder::Decide(verdict) => {
                (before.ok_or_else(|| io::Error::other("there is nothing to decide about"))?, verdict)
            }
            StageOrder::Settle { settle: Settle::Drop, .. } => {
                return Ok((StageAnswer::Settled(Box::default()), true));
            }
            StageOrder::Settle { settle, call, judged } => {
                let commits = self.compare(stage, settle, call.as_deref())?;
                let pending = PendingStage { settle, commits };
                let is_empty = pending.commits.iter().all(|(_, commit)| commit.is_empty());
                let verdict = match self.changes {
                    Changes::Discard => {
                        EffectVerdict::Discard { reason: "`changes` of the sandbox is `discard`".to_owned() }
                    }
                    Changes::Ask | Changes::Commit if judged && !is_empty => {
                        let mut staged = StagedEffect::default();
                        pending.commits.iter().for_each(|(_, commit)| commit.describe(&mut staged));
                        staged.ask = self.changes == Changes::Ask;
                        self.pending.insert(stage, pending);
                        return Ok((StageAnswer::Staged(Box::new(staged)), false));
                    }
                    Changes::Ask => EffectVerdict::SetAside { reason: "nobody could be asked".to_owned() },
                    Changes::Commit | Changes::Live => EffectVerdict::default(),
                };
                (pending, verdict)
            }
        };
        let over = pending.settle != Settle::Interim;
        Ok((StageAnswer::Settled(Box::new(self.settle(stage, pending, &verdict)?)), over))
    }

    /// Compares what a job wrote with the folders.
    fn compare(
        &mut self,
        stage: u64,
        settle: Settle,
        call: Option<&str>,
    ) -> io::Result<Vec<(usize, PendingCommit)>> {
        let job = job_folder(&self.folder, stage);
        // A job that failed before it had its overlays changed nothing.
        let made = match fs::symlink_metadata(&job) {
            Ok(_) => OverlayBaseline::of_folder(&job)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        // Another job could still hold a file of this one that it was handed, and write to it later.
        let source = match settle {
            Settle::Last if self.is_alone(stage)? => SourceUse::Take,
            _ => SourceUse::Copy,
        };
        let count = self.targets.len();
        let baselines = self.baselines.entry(stage).or_insert_with(|| vec![made; count]);
        let mut commits = Vec::new();
        for (index, (target, baseline)) in self.targets.iter().zip(baselines).enumerate() {
            let upper = upper(&job, index);
            if !upper.exists() {
                continue;
            }
            let view = self.rules.for_folder(target, &upper)?;
            commits.push((
                index,
                PendingCommit::compare(CommitRequest {
                    store: &self.store,
                    folder: target,
                    upper: &upper,
                    aside: &self.aside,
                    call,
                    source,
                    baseline,
                    protect: &|path| view.is_protected(path),
                })?,
            ));
        }
        Ok(commits)
    }

    fn is_alone(&self, stage: u64) -> io::Result<bool> {
        let own = job_folder(&self.folder, stage);
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.path() != own && entry.file_type()?.is_dir() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn settle(
        &mut self,
        stage: u64,
        pending: PendingStage,
        verdict: &EffectVerdict,
    ) -> io::Result<CallEffect> {
        let mut effect = CallEffect::default();
        let baselines = self.baselines.entry(stage).or_default();
        for (index, commit) in pending.commits {
            let baseline = baselines.get_mut(index).ok_or_else(|| io::Error::other("no such folder"))?;
            effect.merge(commit.settle(verdict, baseline)?);
        }
        Ok(effect)
    }

    /// Removes the layer of a job that has ended. What cannot be removed now goes with the staging folder.
    fn forget(&mut self, stage: u64) {
        self.baselines.remove(&stage);
        let _ = remove::tree(&job_folder(&self.folder, stage), Instant::now() + REMOVAL);
    }

    /// Keeps the changes of ended calls that somebody was being asked about.
    fn leave(&mut self) {
        let verdict =
            EffectVerdict::SetAside { reason: "the program ended before anybody had decided".to_owned() };
        for (stage, pending) in std::mem::take(&mut self.pending) {
            if pending.settle == Settle::Last {
                let _ = self.settle(stage, pending, &verdict);
            }
        }
    }

    /// Removes the staging folder with what was never committed.
    pub(super) fn remove(self) {
        let _ = remove::tree(&self.folder, Instant::now() + REMOVAL);
        drop(self.lock);
    }
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn make_folder(parent: &Path, identity: Identity) -> io::Result<(PathBuf, File)> {
    match DirBuilder::new().mode(0o700).create(parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => remove_stale(parent),
    }
    let folder = parent.join(format!("{:016x}", sys::random_u64()));
    DirBuilder::new().mode(0o700).create(&folder)?;
    let lock = File::create(folder.join(LOCK))?;
    lock.try_lock().map_err(io::Error::from)?;
    if sys::effective_ids().0 == 0 {
        chown(&folder, Some(identity.uid), Some(identity.gid))?;
    }
    Ok((folder, lock))
}

/// Removes the staging folders of monitors that were killed; their journals are finished by now.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let Ok(lock) = File::open(entry.path().join(LOCK)) else {
            // Just made, or cut off before it had a lock.
            let age =
                entry.metadata().and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > REMOVAL) {
                let _ = remove::tree(&entry.path(), Instant::now() + REMOVAL);
            }
            continue;
        };
        if lock.try_lock().is_ok() {
            let _ = remove::tree(&entry.path(), Instant::now() + REMOVAL);
        }
    }
}

fn read_request(socket: &OwnedFd) -> io::Result<StageRequest> {
    let mut length = [0; 4];
    sys::read_exact(socket.as_fd(), &mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_STAGE_MESSAGE {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let mut body = vec![0; length];
    sys::read_exact(socket.as_fd(), &mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

fn send_whole(socket: &OwnedFd, text: &[u8]) -> io::Result<()> {
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    let message = [&length.to_le_bytes(), text].concat();
    let mut rest = message.as_slice();
    while !rest.is_empty() {
        let sent = socket::send(socket.as_fd(), rest, &[])?;
        rest = rest.get(sent..).unwrap_or_default();
    }
    Ok(())
}
