//! Takes the steps of a journal, each at most once: a step that was taken before the process was killed is
//! recognised by its result.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, RenameFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use crate::blobs::Blobs;
use crate::failpoint;
use crate::folder::{FolderCache, OpenFolder, is_of_overlay};
use crate::identity::FileIdentity;
use crate::journal::{CommitJournal, CommitStep, ContentSource, StepAction};

/// How names begin that a commit needs inside a folder for a moment. A call cannot make such a name.
pub const RESERVED_PREFIX: &str = ".toolwright-commit-";

/// The error of a file that its process has changed again while it was committed.
pub(crate) const CHANGED_MEANWHILE: &str = "the process went on writing it; it is committed next time";

/// How a step went.
#[derive(Debug)]
pub(crate) enum StepOutcome {
    /// What is at the path now.
    Done(Option<FileIdentity>),
    /// Something else is there than when the commit was decided.
    Conflict,
    Failed(io::Error),
}

/// Whether the last part of a path is a name that commits keep for themselves.
pub(crate) fn is_reserved(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(RESERVED_PREFIX.as_bytes())
}

pub(crate) struct StepRunner<'a> {
    journal: &'a CommitJournal,
    blobs: &'a Blobs,
    target: FolderCache,
    upper: Option<FolderCache>,
    /// An earlier process may have taken some of the steps.
    resumed: bool,
    /// The steps that put something at a path, by path: some do so after another step has removed what was
    /// there.
    puts: HashMap<&'a Path, usize>,
}

impl<'a> StepRunner<'a> {
    pub(crate) fn new(journal: &'a CommitJournal, blobs: &'a Blobs, resumed: bool) -> io::Result<Self> {
        let target = FolderCache::new(OpenFolder::open(&journal.folder)?);
        let upper = match &journal.upper {
            Some(upper) => match OpenFolder::open(upper) {
                Ok(upper) => Some(FolderCache::new(upper)),
                // The steps that remain need none, or fail one by one.
                Err(error) if resumed && error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let puts = |action: &StepAction| {
            use StepAction::{MakeFolder, PutFile, PutLink};
            matches!(action, MakeFolder { .. } | PutFile { .. } | PutLink { .. })
        };
        let steps = journal.steps.iter().enumerate().filter(|(_, step)| puts(&step.action));
        let puts = steps.map(|(number, step)| (step.path.as_path(), number)).collect();
        Ok(StepRunner { journal, blobs, target, upper, resumed, puts })
    }

    /// Takes every step, in order.
    pub(crate) fn all(mut self) -> Vec<StepOutcome> {
        let steps = self.journal.steps.iter().enumerate();
        steps.map(|(number, step)| self.step(number, step).unwrap_or_else(StepOutcome::Failed)).collect()
    }

    /// Whether an earlier process has already put something else where a removed path was, or above it.
    fn is_replaced(&mut self, number: usize, path: &Path) -> bool {
        path.ancestors().any(|above| {
            let later = self.puts.get(above).filter(|later| **later > number);
            let Some(put) = later.and_then(|later| self.journal.steps.get(*later)) else { return false };
            let there = match self.target.parent(above) {
                Ok((parent, name)) => parent.status(name).ok().flatten(),
                Err(_) => None,
            };
            let makes_folder = matches!(put.action, StepAction::MakeFolder { .. });
            there.is_some_and(|there| there.is_folder() == makes_folder)
        })
    }

    fn step(&mut self, number: usize, step: &CommitStep) -> io::Result<StepOutcome> {
        if self.resumed && is_removal(&step.action) && self.is_replaced(number, &step.path) {
            return Ok(StepOutcome::Done(None));
        }
        let temporary = PathBuf::from(format!("{RESERVED_PREFIX}{}-{number}", self.journal.id));
        let (parent, name) = match self.target.parent(&step.path) {
            Ok(found) => found,
            // A parent that is gone took the path with it.
            Err(error) if error.kind() == ErrorKind::NotFound && is_removal(&step.action) => {
                return Ok(StepOutcome::Done(None));
            }
            Err(error) => return Err(error),
        };
        if self.resumed {
            remove_if_there(parent, &temporary)?;
        }
        let there = parent.status(name)?;
        let is_as_before = match (&there, &step.before) {
            (Some(there), Some(before)) if before.is_folder() => there.is_folder(),
            // Steps before this one may have changed the number of links.
            (Some(there), Some(before)) => there.same_contents(before),
            (there, before) => there.is_none() && before.is_none(),
        };
        match &step.action {
            StepAction::MakeFolder { mode } => {
                match there {
                    Some(there) if there.is_folder() => return Ok(StepOutcome::Done(Some(there))),
                    Some(_) => return Ok(StepOutcome::Conflict),
                    None => {}
                }
                failpoint::pass();
                rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o700))?;
                own_new(parent, name, self.journal.owner)?;
                set_mode(parent, name, *mode)?;
            }
            StepAction::SetMode { mode } => {
                match there {
                    Some(there) if there.permissions() == *mode => {
                        return Ok(StepOutcome::Done(Some(there)));
                    }
                    _ if !is_as_before => return Ok(StepOutcome::Conflict),
                    _ => {}
                }
                failpoint::pass();
                set_mode(parent, name, *mode)?;
            }
            StepAction::Remove => {
                if there.is_none() {
                    return Ok(StepOutcome::Done(None));
                }
                if !is_as_before {
                    return Ok(StepOutcome::Conflict);
                }
                failpoint::pass();
                rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
            }
            StepAction::RemoveFolder => {
                failpoint::pass();
                let removed = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
                self.target.forget();
                return match removed {
                    Ok(()) | Err(Errno::NOENT) => Ok(StepOutcome::Done(None)),
                    // Something was put there since.
                    Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(StepOutcome::Conflict),
                    Err(error) => Err(error.into()),
                };
            }
            StepAction::PutLink { to } => {
                if self.resumed
                    && there.is_some_and(|there| there.is_link())
                    && parent.link_target(name)? == *to
                {
                    return Ok(StepOutcome::Done(there));
                }
                if !is_as_before {
                    return Ok(StepOutcome::Conflict);
                }
                failpoint::pass();
                rustix::fs::symlinkat(to, parent, &temporary)?;
                own_new(parent, &temporary, self.journal.owner)?;
                if !place(parent, &temporary, parent, name, there.as_ref())? {
                    remove_if_there(parent, &temporary)?;
                    return Ok(StepOutcome::Conflict);
                }
            }
            StepAction::PutFile { source, mode, size, modified, owner } => {
                let aside;
                let staged = match (source, &mut self.upper) {
                    (ContentSource::Upper { .. }, Some(upper)) => Some(upper.parent(&step.path)),
                    (ContentSource::Aside(number), Some(upper)) => {
                        aside = PathBuf::from(number.to_string());
                        Some(upper.parent(&aside))
                    }
                    (ContentSource::Upper { .. } | ContentSource::Aside(_), None) => {
                        Some(Err(ErrorKind::NotFound.into()))
                    }
                    (ContentSource::Blob(_), _) => None,
                };
                let is_there = there.is_some_and(|there| {
                    let key = (there.is_file(), there.size, there.modified, there.permissions());
                    key == (true, *size, *modified, *mode)
                });
                if self.resumed && is_there {
                    return Ok(StepOutcome::Done(there));
                }
                if !is_as_before {
                    return Ok(StepOutcome::Conflict);
                }
                let before = there.as_ref().filter(|there| there.is_file());
                let owner =
                    owner.or_else(|| before.map(|before| (before.uid, before.gid))).or(self.journal.owner);
                let version = match source {
                    ContentSource::Upper { changed } if !self.journal.take => Some((*size, *changed)),
                    _ => None,
                };
                let keep_group = before.is_some();
                let new = NewFile { mode: *mode, modified: *modified, owner, keep_group, version };
                let placed = match (staged.transpose()?, source) {
                    (Some((folder, from)), _) if self.journal.take => {
                        match new.move_to(folder, from, parent, name, there.as_ref()) {
                            Err(error) if error.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => {
                                let input = folder.file(from)?;
                                new.copy(
                                    &input,
                                    Some((folder, from)),
                                    parent,
                                    &temporary,
                                    name,
                                    there.as_ref(),
                                )?
                            }
                            moved => moved?,
                        }
                    }
                    (Some((folder, from)), _) => {
                        let input = folder.file(from)?;
                        new.copy(&input, Some((folder, from)), parent, &temporary, name, there.as_ref())?
                    }
                    (None, ContentSource::Blob(hash)) => {
                        let input = self.blobs.open(hash)?;
                        new.copy(&input, None, parent, &temporary, name, there.as_ref())?
                    }
                    (None, ContentSource::Upper { .. } | ContentSource::Aside(_)) => {
                        return Err(ErrorKind::NotFound.into());
                    }
                };
                if !placed {
                    return Ok(StepOutcome::Conflict);
                }
            }
        }
        Ok(StepOutcome::Done(parent.status(name)?))
    }
}

fn is_removal(action: &StepAction) -> bool {
    matches!(action, StepAction::Remove | StepAction::RemoveFolder)
}

/// What a file is to have in the folder.
struct NewFile {
    mode: u32,
    modified: i64,
    owner: Option<(u32, u32)>,
    /// The file it replaces may be shared with a group, so its group is kept, or it stays as it is.
    keep_group: bool,
    /// The size and the last change of the version that was looked at. Processes that live on may have
    /// changed it since.
    version: Option<(u64, i64)>,
}

impl NewFile {
    /// Moves a file out of the upper layer. False when something else has come to its place.
    fn move_to(
        &self,
        folder: &OpenFolder,
        from: &Path,
        parent: &OpenFolder,
        name: &Path,
        there: Option<&FileIdentity>,
    ) -> io::Result<bool> {
        let about = folder.status(from)?.ok_or(ErrorKind::NotFound)?;
        for attribute in folder.attribute_names(from).into_iter().filter(is_of_overlay) {
            // A file without rights for its owner keeps it; nothing reads it there.
            let _ = rustix::fs::lremovexattr(folder.proc_path(from), attribute.as_os_str());
        }
        self.give_owner(&about, |uid, gid| {
            Ok(rustix::fs::chownat(folder, from, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
        })?;
        if about.permissions() != self.mode {
            set_mode(folder, from, self.mode)?;
        }
        place(folder, from, parent, name, there)
    }

    /// Copies an open file to a temporary name, and gives it its own when it is complete.
    fn copy(
        &self,
        input: &File,
        attributes: Option<(&OpenFolder, &Path)>,
        parent: &OpenFolder,
        temporary: &Path,
        name: &Path,
        there: Option<&FileIdentity>,
    ) -> io::Result<bool> {
        failpoint::pass();
        let copied = self.copy_to(input, attributes, &parent.proc_path(temporary));
        let placed = copied.and_then(|()| place(parent, temporary, parent, name, there));
        if !matches!(placed, Ok(true)) {
            remove_if_there(parent, temporary)?;
        }
        placed
    }

    fn copy_to(
        &self,
        mut input: &File,
        attributes: Option<(&OpenFolder, &Path)>,
        path: &Path,
    ) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        self.check_version(&rustix::fs::fstat(input)?.into())?;
        io::copy(&mut input, &mut file)?;
        self.check_version(&rustix::fs::fstat(input)?.into())?;
        if let Some((folder, from)) = attributes {
            let own = |name: &std::ffi::OsString| {
                let bytes = name.as_encoded_bytes();
                (bytes.starts_with(b"user.") || bytes == b"system.posix_acl_access") && !is_of_overlay(name)
            };
            for attribute in folder.attribute_names(from).into_iter().filter(own) {
                if let Some(value) = folder.attribute(from, &attribute) {
                    let flags = rustix::fs::XattrFlags::empty();
                    rustix::fs::fsetxattr(&file, attribute.as_os_str(), &value, flags)?;
                }
            }
        }
        let about = rustix::fs::fstat(&file)?.into();
        self.give_owner(&about, |uid, gid| Ok(rustix::fs::fchown(&file, uid, gid)?))?;
        file.set_permissions(Permissions::from_mode(self.mode))?;
        let time = Timespec {
            tv_sec: self.modified.div_euclid(1_000_000_000),
            tv_nsec: self.modified.rem_euclid(1_000_000_000),
        };
        Ok(rustix::fs::futimens(&file, &Timestamps { last_access: time, last_modification: time })?)
    }

    fn check_version(&self, about: &FileIdentity) -> io::Result<()> {
        let as_seen = self.version.is_none_or(|version| version == (about.size, about.changed));
        if as_seen { Ok(()) } else { Err(io::Error::other(CHANGED_MEANWHILE)) }
    }

    fn give_owner(
        &self,
        about: &FileIdentity,
        give: impl FnOnce(Option<Uid>, Option<Gid>) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some((uid, gid)) = self.owner.filter(|owner| *owner != (about.uid, about.gid)) else {
            return Ok(());
        };
        if rustix::process::geteuid().is_root() {
            return give(Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        }
        match give(None, (gid != about.gid).then(|| Gid::from_raw(gid))) {
            Err(error) if self.keep_group => Err(error),
            _ => Ok(()),
        }
    }
}

/// Gives a file the name it is to have. Where there was nothing, nothing is replaced.
fn place(
    from: &OpenFolder,
    old: &Path,
    to: &OpenFolder,
    name: &Path,
    there: Option<&FileIdentity>,
) -> io::Result<bool> {
    failpoint::pass();
    let flags = if there.is_none() { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
    match rustix::fs::renameat_with(from, old, to, name, flags) {
        // File systems without that flag.
        Err(Errno::INVAL) if there.is_none() => Ok(rustix::fs::renameat(from, old, to, name).map(|()| true)?),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(true),
    }
}

/// Sets the permissions of an entry that is not a link. Goes by way of `/proc`, since no call takes a name
/// and does not follow.
fn set_mode(folder: &OpenFolder, name: &Path, mode: u32) -> io::Result<()> {
    let place = folder.place(name)?;
    if FileIdentity::from(rustix::fs::fstat(&place)?).is_link() {
        return Err(Errno::LOOP.into());
    }
    let path = Path::new("/proc/self/fd").join(place.as_raw_fd().to_string());
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Gives a new folder or link its owner, for a caller that is root.
fn own_new(folder: &OpenFolder, name: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    let Some((uid, gid)) = owner.filter(|_| rustix::process::geteuid().is_root()) else { return Ok(()) };
    let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    Ok(rustix::fs::chownat(folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn remove_if_there(parent: &OpenFolder, name: &Path) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
