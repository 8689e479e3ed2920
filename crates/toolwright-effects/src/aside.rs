//! Changes that were not applied, kept until a person applies or drops them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolwright_core::{CallEffect, MAX_LISTED_CHANGES};

use crate::blobs::private_folder;
use crate::commit::{carry_out, is_plain, list, target_of};
use crate::folder::{FolderCache, OpenFolder};
use crate::identity::FileIdentity;
use crate::journal::{CommitJournal, ContentSource, StepAction};
use crate::store::{CommitStore, write_whole};

/// Changes that were set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// As [`CallEffect::set_aside`] names it.
    pub id: String,
    /// The call whose changes these are.
    pub call: Option<String>,
    /// The folder they are changes of.
    pub folder: PathBuf,
    /// Why they were not applied, where somebody decided so.
    pub reason: Option<String>,
    /// The changes.
    pub effect: CallEffect,
}

#[derive(Debug, Serialize, Deserialize)]
struct AsideRecord {
    reason: Option<String>,
    journal: CommitJournal,
}

/// Keeps the steps of a journal, with the contents that they need, in `place`: moved there from the upper
/// layer where nothing uses it any more, which takes no space.
pub(crate) fn put(
    store: &CommitStore,
    place: &Path,
    mut journal: CommitJournal,
    reason: Option<&str>,
) -> io::Result<Option<String>> {
    let id = journal.id.clone();
    let folder = place.join(&id);
    private_folder(&folder)?;
    let mut upper = match &journal.upper {
        Some(upper) => FolderCache::new(OpenFolder::open(upper)?),
        None => return Err(io::ErrorKind::NotFound.into()),
    };
    let to = OpenFolder::open(&folder)?;
    let mut kept = Vec::new();
    for (number, mut step) in std::mem::take(&mut journal.steps).into_iter().enumerate() {
        if let StepAction::PutFile { source, .. } = &mut step.action {
            let number = number as u64;
            let name = PathBuf::from(number.to_string());
            let (parent, from) = upper.parent(&step.path)?;
            match move_or_copy(parent, from, &to, &name, journal.take) {
                Ok(()) => {}
                // Taken by a step that was not reported as done.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            *source = ContentSource::Aside(number);
        }
        kept.push(step);
    }
    if kept.is_empty() {
        fs::remove_dir(&folder)?;
        return Ok(None);
    }
    (journal.steps, journal.upper, journal.take) = (kept, Some(folder), true);
    write(store, &AsideRecord { reason: reason.map(str::to_owned), journal })?;
    Ok(Some(id))
}

fn move_or_copy(
    from: &OpenFolder,
    name: &Path,
    to: &OpenFolder,
    new: &Path,
    may_move: bool,
) -> io::Result<()> {
    if may_move {
        match rustix::fs::renameat(from, name, to, new) {
            Err(rustix::io::Errno::XDEV) => {}
            moved => return Ok(moved?),
        }
    }
    let mut input = from.file(name)?;
    let mut output = File::options().write(true).create_new(true).open(to.proc_path(new))?;
    io::copy(&mut input, &mut output)?;
    let about: FileIdentity = rustix::fs::fstat(&input)?.into();
    rustix::fs::futimens(&output, &about.times())?;
    Ok(())
}

fn write(store: &CommitStore, record: &AsideRecord) -> io::Result<()> {
    private_folder(&store.asides())?;
    let path = store.asides().join(format!("{}.json", record.journal.id));
    write_whole(&path, &serde_json::to_vec(record)?).map(drop)
}

fn read(store: &CommitStore, id: &str) -> io::Result<AsideRecord> {
    let is_id = id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') && !id.is_empty();
    if !is_id {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let record: AsideRecord = serde_json::from_slice(&fs::read(store.asides().join(format!("{id}.json")))?)?;
    match record.journal.steps.iter().all(|step| is_plain(&step.path)) {
        true => Ok(record),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// What is set aside, the latest first.
pub(crate) fn all(store: &CommitStore) -> Vec<SetAside> {
    let mut found: Vec<SetAside> = names(store)
        .into_iter()
        .filter_map(|id| {
            let AsideRecord { reason, journal } = read(store, &id).ok()?;
            let mut effect = CallEffect { call: journal.call.clone(), ..CallEffect::default() };
            list(&mut effect, &journal.folder, journal.steps.iter().enumerate());
            debug_assert!(effect.files.len() <= MAX_LISTED_CHANGES);
            Some(SetAside { id, call: journal.call, folder: journal.folder, reason, effect })
        })
        .collect();
    found.sort_by(|a, b| b.id.cmp(&a.id));
    found
}

pub(crate) fn names(store: &CommitStore) -> Vec<String> {
    let entries = fs::read_dir(store.asides()).into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
    entries.filter_map(name).collect()
}

/// Applies what was set aside, where the folder is still as it was then. What is left of it stays set aside.
pub fn commit_set_aside(store: &CommitStore, id: &str) -> io::Result<CallEffect> {
    let AsideRecord { reason, journal } = read(store, id)?;
    let (place, call) = (journal.upper.clone(), journal.call.clone());
    let folder = journal.folder.clone();
    let target = target_of(&folder)?;
    let own = target.root().own_status()?;
    let owner = rustix::process::geteuid().is_root().then_some((own.uid, own.gid));
    let done = carry_out(store, CommitJournal { id: crate::store::unique_id(), owner, ..journal }, target)?;
    let steps: Vec<_> = done.left.into_iter().map(|(step, _)| step).collect();
    let mut effect = CallEffect { call: call.clone(), ..done.effect };
    if steps.is_empty() {
        drop_set_aside(store, id)?;
    } else {
        effect.set_aside.push(id.to_owned());
        let journal =
            CommitJournal { id: id.to_owned(), call, folder, upper: place, take: true, owner, steps };
        write(store, &AsideRecord { reason, journal })?;
    }
    Ok(effect)
}

/// Drops what was set aside.
pub fn drop_set_aside(store: &CommitStore, id: &str) -> io::Result<()> {
    let AsideRecord { journal, .. } = read(store, id)?;
    fs::remove_file(store.asides().join(format!("{id}.json")))?;
    match journal.upper.filter(|place| place.ends_with(id)) {
        Some(place) => fs::remove_dir_all(place).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }),
        None => Ok(()),
    }
}
