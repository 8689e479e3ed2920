//! Where commits are written down: journals of those under way, records of those that were made, and the
//! contents that undoing one needs. Outside every workspace, for its owner alone, bounded in age and size.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use toolwright_core::{CallEffect, KeepReason};

use crate::aside::{self, SetAside};
use crate::blobs::{Blobs, private_folder};
use crate::commit::{finish, is_plain, kept_back, target_of};
use crate::failpoint;
use crate::identity::FileIdentity;
use crate::journal::{CommitJournal, PastVersion};
use crate::path_text;

/// How long a commit can be undone.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many bytes of replaced contents are kept; the oldest commits lose theirs first.
const KEPT_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// How often what is too old or too much is removed.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// A folder of this user that holds what commits need.
#[derive(Debug, Clone)]
pub struct CommitStore {
    root: PathBuf,
    blobs: Blobs,
}

/// A commit that was killed, and finished now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredCommit {
    /// The folder it changes.
    pub folder: PathBuf,
    /// What it did, with what earlier processes had done.
    pub effect: CallEffect,
}

/// A commit that can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitSummary {
    /// As [`CallEffect::commits`] names it.
    pub id: String,
    /// The folder it changed.
    pub folder: PathBuf,
    /// How many paths it changed.
    pub paths: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CommitRecord {
    pub(crate) id: String,
    /// The call whose changes these were.
    #[serde(default)]
    pub(crate) call: Option<String>,
    #[serde(with = "path_text::one")]
    pub(crate) folder: PathBuf,
    pub(crate) entries: Vec<UndoEntry>,
}

/// One path that a commit changed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UndoEntry {
    #[serde(with = "path_text::one")]
    pub(crate) path: PathBuf,
    pub(crate) before: Option<FileIdentity>,
    pub(crate) past: PastVersion,
    pub(crate) after: Option<FileIdentity>,
}

/// A journal that this process holds the lock of.
#[derive(Debug)]
pub(crate) struct HeldJournal {
    path: PathBuf,
    _lock: File,
}

impl HeldJournal {
    pub(crate) fn remove(self) -> io::Result<()> {
        failpoint::pass();
        fs::remove_file(self.path)
    }
}

impl CommitStore {
    /// Where a user's store can be, the best first: in the data folder of the user, or in a temporary one.
    /// `look_up` is the environment.
    pub fn candidates(look_up: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        let set = |name: &str| look_up(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
        let own = format!("toolwright-{}", rustix::process::geteuid().as_raw());
        let temporary =
            set("TMPDIR").into_iter().chain(["/tmp".into(), "/var/tmp".into(), "/dev/shm".into()]);
        let data = data.into_iter().map(|data| data.join("toolwright/changes"));
        data.chain(temporary.map(|folder: PathBuf| folder.join(&own))).collect()
    }

    /// The store in a folder, which is made if it is not there.
    pub fn open(root: &Path) -> io::Result<CommitStore> {
        private_folder(root)?;
        let about = fs::symlink_metadata(root)?;
        let is_own = about.uid() == rustix::process::geteuid().as_raw();
        if !about.is_dir() || !is_own || about.mode() & 0o077 != 0 {
            let why = format!("`{}` must be a folder of this user alone", root.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(CommitStore { root: root.to_owned(), blobs: Blobs::in_folder(root.join("blobs")) })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.root
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    fn journals(&self) -> PathBuf {
        self.root.join("journals")
    }

    fn records(&self) -> PathBuf {
        self.root.join("commits")
    }

    pub(crate) fn asides(&self) -> PathBuf {
        self.root.join("aside")
    }

    /// What was set aside, the latest first.
    pub fn set_aside(&self) -> Vec<SetAside> {
        aside::all(self)
    }

    /// The call that made the latest change to a path, if a commit of this store did.
    pub(crate) fn last_change(&self, folder: &Path, path: &Path) -> Option<String> {
        /// So many of the latest commits are looked at.
        const LATEST: usize = 100;
        let mut names = self.record_names();
        names.sort_unstable();
        let there = match target_of(folder).ok()?.parent(path) {
            Ok((parent, name)) => parent.status(name).ok()?,
            Err(_) => None,
        };
        names.iter().rev().take(LATEST).find_map(|id| {
            let record = self.read_record(id).ok().filter(|record| record.folder == folder)?;
            let entry = record.entries.iter().find(|entry| entry.path == path)?;
            let same = match (&there, &entry.after) {
                (Some(there), Some(after)) => there.same_contents(after),
                (there, after) => there.is_none() && after.is_none(),
            };
            same.then_some(record.call).flatten()
        })
    }

    /// Writes a journal down as a whole, locked for as long as this process lives.
    pub(crate) fn write_journal(&self, journal: &CommitJournal) -> io::Result<HeldJournal> {
        private_folder(&self.journals())?;
        let path = self.journals().join(format!("{}.json", journal.id));
        let lock = write_whole(&path, &serde_json::to_vec(journal)?)?;
        Ok(HeldJournal { path, _lock: lock })
    }

    /// Records a commit, so that it can be undone.
    pub(crate) fn record(
        &self,
        journal: &CommitJournal,
        after: &[Option<Option<FileIdentity>>],
    ) -> io::Result<()> {
        private_folder(&self.records())?;
        let entry = |(step, after): (&crate::journal::CommitStep, &Option<Option<FileIdentity>>)| {
            let after = (*after)?;
            Some(UndoEntry { path: step.path.clone(), before: step.before, past: step.past.clone(), after })
        };
        let entries = journal.steps.iter().zip(after).filter_map(entry).collect();
        let (id, call) = (journal.id.clone(), journal.call.clone());
        let record = CommitRecord { id, call, folder: journal.folder.clone(), entries };
        let path = self.records().join(format!("{}.json", journal.id));
        write_whole(&path, &serde_json::to_vec(&record)?).map(drop)
    }

    pub(crate) fn read_record(&self, id: &str) -> io::Result<CommitRecord> {
        let is_id = id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') && !id.is_empty();
        if !is_id {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let record: CommitRecord =
            serde_json::from_slice(&fs::read(self.records().join(format!("{id}.json")))?)?;
        match record.entries.iter().all(|entry| is_plain(&entry.path)) {
            true => Ok(record),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// The commits that can be undone, the latest first.
    pub fn commits(&self) -> Vec<CommitSummary> {
        let mut found: Vec<CommitSummary> = self
            .record_names()
            .into_iter()
            .filter_map(|id| {
                let record = self.read_record(&id).ok()?;
                Some(CommitSummary { id, folder: record.folder, paths: record.entries.len() })
            })
            .collect();
        found.sort_by(|a, b| b.id.cmp(&a.id));
        found
    }

    fn record_names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.records()).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
        entries.filter_map(name).collect()
    }

    /// Forgets a commit, which cannot be undone then.
    pub(crate) fn forget(&self, id: &str) -> io::Result<()> {
        fs::remove_file(self.records().join(format!("{id}.json")))
    }

    /// Finishes the commits whose process was killed, and removes what is too old or too much to be kept.
    pub fn recover(&self) -> io::Result<Vec<RecoveredCommit>> {
        let mut recovered = Vec::new();
        let entries = match fs::read_dir(self.journals()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(recovered),
            Err(error) => return Err(error),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(lock) = OpenOptions::new().read(true).open(&path) else { continue };
            // A process that is still at work holds the lock.
            if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() || !path.exists() {
                continue;
            }
            let held = HeldJournal { path: path.clone(), _lock: lock };
            let journal =
                fs::read(&path).ok().and_then(|text| serde_json::from_slice::<CommitJournal>(&text).ok());
            match journal {
                Some(journal) if journal.steps.iter().all(|step| is_plain(&step.path)) => {
                    let folder = journal.folder.clone();
                    let effect = match finish(self, journal, held, true) {
                        Ok(done) => done.effect,
                        // The folder is gone, and the commit with it.
                        Err(error) if is_gone(&error) => {
                            fs::remove_file(&path)?;
                            continue;
                        }
                        // It may be possible later. It must not keep other folders from being used.
                        Err(error) => {
                            let mut effect = CallEffect::default();
                            let (path, why) = (Path::new(""), Some(error.to_string()));
                            effect.keep_back(kept_back(&folder, path, KeepReason::Failed, why));
                            effect
                        }
                    };
                    recovered.push(RecoveredCommit { folder, effect });
                }
                // Cut off while it was written: nothing of it was done.
                _ => held.remove()?,
            }
        }
        self.sweep()?;
        Ok(recovered)
    }

    fn sweep(&self) -> io::Result<()> {
        let marker = self.root.join("swept");
        let now = SystemTime::now();
        let age = |path: &Path| now.duration_since(fs::metadata(path).ok()?.modified().ok()?).ok();
        if age(&marker).is_some_and(|age| age < SWEEP_EVERY) {
            return Ok(());
        }
        File::create(&marker)?;
        for entry in fs::read_dir(self.records()).into_iter().flatten().flatten() {
            let is_temporary = entry.path().extension().is_some_and(|kind| kind == "new");
            if is_temporary && age(&entry.path()).is_some_and(|age| age > SWEEP_EVERY) {
                fs::remove_file(entry.path())?;
            }
        }
        for id in aside::names(self) {
            let path = self.asides().join(format!("{id}.json"));
            if age(&path).is_some_and(|age| age > KEPT_FOR) {
                aside::drop_set_aside(self, &id)?;
            }
        }
        let mut names = self.record_names();
        names.sort_unstable();
        let too_old =
            |id: &String| age(&self.records().join(format!("{id}.json"))).is_some_and(|age| age > KEPT_FOR);
        for id in names.iter().filter(|id| too_old(id)) {
            self.forget(id)?;
        }
        names.retain(|id| !too_old(id));
        let blobs = self.blobs.list();
        let mut used = HashSet::new();
        let mut bytes = 0;
        // The latest commits keep theirs.
        for id in names.iter().rev() {
            let Ok(record) = self.read_record(id) else { continue };
            let own: HashSet<String> = record
                .entries
                .into_iter()
                .filter_map(|entry| match entry.past {
                    PastVersion::File { blob } => blob,
                    _ => None,
                })
                .filter(|hash| !used.contains(hash))
                .collect();
            bytes +=
                blobs.iter().filter(|(hash, ..)| own.contains(hash)).map(|(_, size, _)| size).sum::<u64>();
            if bytes > KEPT_BYTES {
                self.forget(id)?;
            } else {
                used.extend(own);
            }
        }
        for (hash, _, last_use) in blobs {
            let unused = now.duration_since(last_use).is_ok_and(|age| age > SWEEP_EVERY);
            if unused && !used.contains(&hash) {
                let _ = self.blobs.remove(&hash);
            }
        }
        Ok(())
    }
}

/// Whether a folder is no longer what it was: removed, or something else now.
fn is_gone(error: &io::Error) -> bool {
    let is_link = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    is_link || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Writes a file that is there as a whole or not at all, and returns it locked.
pub(crate) fn write_whole(path: &Path, contents: &[u8]) -> io::Result<File> {
    let temporary = path.with_extension(format!("{}.new", unique_id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    failpoint::pass();
    file.write_all(contents)?;
    failpoint::pass();
    fs::rename(&temporary, path)?;
    Ok(file)
}

/// A name that no other commit has; later ones sort after earlier ones.
pub(crate) fn unique_id() -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{time:012x}-{:08x}", hasher.finish() & 0xffff_ffff)
}
