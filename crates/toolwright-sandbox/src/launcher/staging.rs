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

use toolwright_core::CallEffect;
use toolwright_effects::{CommitRequest, CommitStore, OverlayBaseline, SourceUse, commit};

use super::wire::{MAX_STAGE_MESSAGE, STAGING_FAILED, Settle, StageReply, StageRequest};
use crate::layer::commit_rules::CommitRules;
use crate::layer::identity::Identity;
use crate::layer::stage::{job_folder, upper};
use crate::remove;
use crate::sys::{self, socket};

/// How long removing the layer of a job may take.
const REMOVAL: Duration = Duration::from_secs(60);

/// The name of the folder, in a store, that holds the staging folders of sandboxes.
const FOLDER: &str = "staging";
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
    discard: bool,
    baselines: HashMap<u64, Vec<OverlayBaseline>>,
}

impl Staging {
    /// Makes a staging folder in the first of the candidates that can hold one, after finishing what killed
    /// processes have left there.
    pub(super) fn make(
        candidates: &[PathBuf],
        targets: Vec<PathBuf>,
        rules: CommitRules,
        discard: bool,
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
                make_folder(&candidate.join(FOLDER), identity)
            });
            match (made, &store) {
                (Ok((folder, lock)), Some(store)) => {
                    let (store, baselines) = (store.clone(), HashMap::new());
                    return Ok(Staging { folder, store, lock, targets, rules, discard, baselines });
                }
                (Ok(_), None) => {}
                (Err(error), _) => reasons.push(format!("`{}`: {error}", candidate.display())),
            }
        }
        Err(format!("{STAGING_FAILED}{}", reasons.join("; ")))
    }

    /// What commands must not see, even where a folder that they see holds it.
    pub(super) fn hidden(&self) -> [PathBuf; 2] {
        [self.folder.clone(), self.store.folder().to_owned()]
    }

    /// Settles what the runtime asks for until it hangs up or the sandbox has ended.
    pub(super) fn serve(&mut self, socket: &OwnedFd, keeper: &OwnedFd) {
        loop {
            let Ok([asked, ended]) =
                sys::poll([(socket.as_fd(), libc::POLLIN), (keeper.as_fd(), libc::POLLIN)], None)
            else {
                return;
            };
            if asked == 0 && ended != 0 {
                return;
            }
            if asked != 0 {
                let Ok(request) = read_request(socket) else { return };
                let reply: StageReply = self.settle(request).map_err(|error| error.to_string());
                let Ok(text) = serde_json::to_vec(&reply) else { return };
                // A runtime that is gone needs no answer; what it asked for is done.
                let _ = send_whole(socket, &text);
                // Nobody waits for that. What could not be committed stays until the sandbox ends.
                if reply.is_ok() {
                    self.forget(request);
                }
            }
        }
    }

    fn settle(&mut self, request: StageRequest) -> io::Result<CallEffect> {
        let StageRequest { stage, settle } = request;
        let job = job_folder(&self.folder, stage);
        // A job that failed before it had its overlays changed nothing.
        let made = match fs::symlink_metadata(&job) {
            Ok(_) => OverlayBaseline::of_folder(&job)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CallEffect::default()),
            Err(error) => return Err(error),
        };
        let mut effect = CallEffect::default();
        if settle != Settle::Drop {
            let count = self.targets.len();
            let baselines = self.baselines.entry(stage).or_insert_with(|| vec![made; count]);
            let source = if settle == Settle::Last { SourceUse::Take } else { SourceUse::Copy };
            for (index, (target, baseline)) in self.targets.iter().zip(baselines).enumerate() {
                let upper = upper(&job, index);
                if !upper.exists() {
                    continue;
                }
                let view = self.rules.for_folder(target, &upper)?;
                effect.merge(commit(CommitRequest {
                    store: &self.store,
                    folder: target,
                    upper: &upper,
                    source,
                    baseline,
                    protect: &|path| view.is_protected(path),
                    discard: self.discard,
                })?);
            }
        }
        Ok(effect)
    }

    /// Removes the layer of a job that has ended. What cannot be removed now goes with the staging folder.
    fn forget(&mut self, request: StageRequest) {
        if request.settle != Settle::Interim {
            self.baselines.remove(&request.stage);
            let _ = remove::tree(&job_folder(&self.folder, request.stage), Instant::now() + REMOVAL);
        }
    }

    /// Removes the staging folder with what was never committed.
    pub(super) fn remove(self) {
        let _ = remove::tree(&self.folder, Instant::now() + REMOVAL);
        drop(self.lock);
    }
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
