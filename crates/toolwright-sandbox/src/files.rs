//! Reading and writing one file, run where the commands of a sandbox run: a path can lead nowhere a command
//! could not go, so links and races inside the sandbox gain nothing.
//!
//! Only regular files are read, decided on the opened descriptor. A file is replaced as a whole or not at
//! all, unless that would change who can use it.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::launcher::wire::Work;
use crate::sys;

/// Not a regular file.
pub(crate) const NOT_A_FILE: i32 = libc::EOPNOTSUPP;
/// Larger than may be read.
pub(crate) const TOO_LARGE: i32 = libc::EFBIG;

/// How much of a file that is too large is still sent.
const SAMPLE: u64 = 1024 * 1024;

/// Does the file work of a job between the standard streams.
pub(crate) fn serve(work: &Work) -> io::Result<()> {
    // The worker owns its streams; they end with the process.
    let (input, output) = (io::stdin(), io::stdout());
    match work {
        Work::Read { path, limit } => {
            let mut output = File::from(output.as_fd().try_clone_to_owned()?);
            read(path, *limit, &mut output)
        }
        Work::Write { path, size } => {
            let mut input = File::from(input.as_fd().try_clone_to_owned()?);
            write(path, &mut input, *size)
        }
        Work::Exec { .. } => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
}

/// Sends a file, at most `limit` bytes of it. Never blocks on a pipe or a device.
pub(crate) fn read(path: &Path, limit: u64, output: &mut dyn Write) -> io::Result<()> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let mut file = match file {
        // A socket in the file system.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Err(own(NOT_A_FILE)),
        other => other?,
    };
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(own(libc::EISDIR));
    }
    if !about.is_file() {
        return Err(own(NOT_A_FILE));
    }
    if about.len() > limit {
        io::copy(&mut (&mut file).take(SAMPLE.min(limit)), output)?;
        return Err(own(TOO_LARGE));
    }
    // Counted by what arrives, not by what `stat` said: files grow, and those in `/proc` say 0.
    io::copy(&mut (&mut file).take(limit), output)?;
    match file.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(own(TOO_LARGE)),
    }
}

/// Replaces a file, making its folders. Readers see the old contents or the new, never a mix, and the new
/// file has the owner, group, mode, access list and `user.` attributes of the old. Where those cannot be
/// given to a new file, the old one is written in place, so that an edit changes no ownership.
///
/// The input must hold exactly `size` bytes. A caller that cancels closes the pipe before anything can kill
/// this process, and without the size a cut input would look like a complete one.
pub(crate) fn write(path: &Path, input: &mut dyn Read, size: u64) -> io::Result<()> {
    let target = resolve(path)?;
    let folder = target.parent().map_or(Path::new("/"), |folder| folder);
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::create_dir_all(folder)?;
    let traits = match fs::metadata(&target) {
        Ok(about) if about.is_dir() => return Err(own(libc::EISDIR)),
        Ok(about) if !about.is_file() => return Err(own(NOT_A_FILE)),
        Ok(_) => {
            // Replacing needs only rights on the folder; a file that cannot be written must still refuse.
            let file = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&target)?;
            Some(Traits::of(file)?)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let temporary = folder.join(format!(".toolwright-{:016x}.tmp", sys::random_u64()));
    // Until it is complete the new file has no name, so a kill in the middle leaves nothing behind.
    let made = match (nameless(folder), &traits) {
        (Ok(file), _) => Ok((file, false)),
        // A single writable file in a folder that is not: it can only be written in place.
        (Err(error), Some(old)) if refused(&error) => {
            let mut complete = Vec::new();
            complete.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX))?;
            copy_all(input, &mut complete, size)?;
            return old.write_in_place(&mut complete.as_slice());
        }
        (Err(error), None) if refused(&error) => return Err(error),
        (Err(_), _) => named(&temporary).map(|file| (file, true)),
    };
    let replaced = made.and_then(|(mut file, has_name)| {
        copy_all(input, &mut file, size)?;
        if let Some(old) = &traits
            && !old.give_to(&file)
        {
            file.rewind()?;
            old.write_in_place(&mut file)?;
            return if has_name { fs::remove_file(&temporary) } else { Ok(()) };
        }
        if traits.is_none() {
            file.set_permissions(PermissionsExt::from_mode(0o644))?;
        }
        file.sync_data()?;
        if !has_name {
            give_name(&mut file, &temporary, traits.as_ref())?;
        }
        fs::rename(&temporary, &target)
    });
    if replaced.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

/// Copies an input of exactly `size` bytes.
fn copy_all(input: &mut dyn Read, output: &mut impl Write, size: u64) -> io::Result<()> {
    let copied = io::copy(&mut input.take(size.saturating_add(1)), output)?;
    if copied == size { Ok(()) } else { Err(own(libc::ECANCELED)) }
}

/// A file that is there, and what a new file in its place must have in common with it.
struct Traits {
    file: File,
    about: fs::Metadata,
    attributes: io::Result<FileAttributes>,
}

impl Traits {
    fn of(file: File) -> io::Result<Traits> {
        let (about, attributes) = (file.metadata()?, kept_attributes(&file));
        if !about.is_file() {
            return Err(own(NOT_A_FILE));
        }
        Ok(Traits { file, about, attributes })
    }

    /// Gives a new file everything the old one has. False when it does not have all of it then.
    fn give_to(&self, new: &File) -> bool {
        let Ok(attributes) = &self.attributes else { return false };
        let (owner, group) = (self.about.uid(), self.about.gid());
        let same_owner = |about: &fs::Metadata| {
            (about.uid(), about.gid()) == (owner, group) && sys::is_own_id(owner) && sys::is_own_id(group)
        };
        let given = || {
            if !same_owner(&new.metadata()?) {
                std::os::unix::fs::fchown(new, Some(owner), Some(group))?;
            }
            new.set_permissions(PermissionsExt::from_mode(self.about.mode() & 0o777))?;
            // A folder can give new files an access list that the old file has not.
            for name in kept_attributes(new)?.into_keys().filter(|name| !attributes.contains_key(name)) {
                sys::remove_attribute(new.as_fd(), &name)?;
            }
            attributes.iter().try_for_each(|(name, value)| sys::set_attribute(new.as_fd(), name, value))
        };
        given().is_ok() && new.metadata().is_ok_and(|about| same_owner(&about))
    }

    /// Writes over the old contents. What is given up: readers can see a mix while it is written, and a full
    /// disk or the end of the system in the middle leaves one. `input` is complete by then.
    fn write_in_place(&self, input: &mut dyn Read) -> io::Result<()> {
        // Its other names may be outside the sandbox, where nothing may change.
        if self.about.nlink() > 1 {
            return Err(own(libc::EBUSY));
        }
        let mut file = &self.file;
        let length = io::copy(input, &mut file)?;
        file.set_len(length)?;
        file.sync_data()
    }
}

type FileAttributes = BTreeMap<CString, Vec<u8>>;

/// The extended attributes that belong to a file's user: their own, and the access list.
fn kept_attributes(file: &File) -> io::Result<FileAttributes> {
    let names = match sys::attribute_names(file.as_fd()) {
        Err(error) if error.raw_os_error() == Some(libc::ENOTSUP) => return Ok(FileAttributes::new()),
        other => other?,
    };
    let kept = |name: &CString| {
        name.as_bytes().starts_with(b"user.") || name.as_bytes() == b"system.posix_acl_access"
    };
    names
        .into_iter()
        .filter(kept)
        .map(|name| Ok((name.clone(), sys::attribute(file.as_fd(), &name)?)))
        .collect()
}

fn refused(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn nameless(folder: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder)
}

fn named(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Gives a nameless file its name; where the system refuses that, copies it to a named one.
fn give_name(file: &mut File, path: &Path, old: Option<&Traits>) -> io::Result<()> {
    if sys::link_open_file(file.as_fd(), path).is_ok() {
        return Ok(());
    }
    file.rewind()?;
    let mut copy = named(path)?;
    io::copy(file, &mut copy)?;
    match old {
        Some(old) if !old.give_to(&copy) => return Err(own(libc::EPERM)),
        Some(_) => {}
        None => copy.set_permissions(PermissionsExt::from_mode(0o644))?,
    }
    copy.sync_data()
}

/// Follows links to the file that is meant, which need not exist.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let mut here = path.to_owned();
    for _ in 0..40 {
        match fs::read_link(&here) {
            Ok(to) => here = here.parent().map_or_else(|| to.clone(), |folder| folder.join(&to)),
            Err(_) => return Ok(here),
        }
    }
    Err(own(libc::ELOOP))
}

fn own(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_was_cut_off_replaces_nothing() {
        let folder = std::env::temp_dir().join(format!("toolwright-{:016x}", sys::random_u64()));
        let path = folder.join("file");
        write(&path, &mut &b"whole"[..], 5).unwrap();
        for (input, size) in [(&b""[..], 1), (&b"hal"[..], 4), (&b"too long"[..], 4)] {
            let error = write(&path, &mut &*input, size).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
            assert_eq!(fs::read(&path).unwrap(), b"whole");
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
