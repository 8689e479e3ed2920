//! Reading and writing one file, run where the commands of a sandbox run: a path can lead nowhere a command could not
//! go, so links and races inside the sandbox gain nothing.
//!
//! Only regular files are read, decided on the opened descriptor. A file is replaced as a whole or not at all.

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
        Work::Write { path } => {
            let mut input = File::from(input.as_fd().try_clone_to_owned()?);
            write(path, &mut input)
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

/// Replaces a file, making its folders. Readers see the old contents or the new, never a mix.
pub(crate) fn write(path: &Path, input: &mut dyn Read) -> io::Result<()> {
    let target = resolve(path)?;
    let folder = target.parent().map_or(Path::new("/"), |folder| folder);
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::create_dir_all(folder)?;
    let mode = match fs::metadata(&target) {
        Ok(about) if about.is_dir() => return Err(own(libc::EISDIR)),
        Ok(about) if !about.is_file() => return Err(own(NOT_A_FILE)),
        Ok(about) => {
            // Replacing needs only rights on the folder; a file that cannot be written must still refuse.
            OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&target)?;
            about.mode() & 0o777
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0o644,
        Err(error) => return Err(error),
    };
    let temporary = folder.join(format!(".toolwright-{:016x}.tmp", sys::random_u64()));
    let written = match nameless(folder) {
        // Until it is complete the new file has no name, so a kill in the middle leaves nothing behind.
        Ok(mut file) => io::copy(input, &mut file)
            .and_then(|_| finish(&file, mode))
            .and_then(|()| give_name(&mut file, &temporary, mode)),
        Err(error) if refused(&error) && target.exists() => {
            // A single writable file in a folder that is not: it can only be written in place.
            let mut file = OpenOptions::new().write(true).truncate(true).open(&target)?;
            return io::copy(input, &mut file).map(drop);
        }
        Err(error) if refused(&error) => return Err(error),
        Err(_) => named(&temporary).and_then(|mut file| {
            io::copy(input, &mut file)?;
            finish(&file, mode)
        }),
    };
    let replaced = written.and_then(|()| fs::rename(&temporary, &target));
    if replaced.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

fn refused(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn nameless(folder: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder)
}

fn named(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn finish(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(PermissionsExt::from_mode(mode))?;
    file.sync_data()
}

/// Gives a nameless file its name; where the system refuses that, copies it to a named one.
fn give_name(file: &mut File, path: &Path, mode: u32) -> io::Result<()> {
    if sys::link_open_file(file.as_fd(), path).is_ok() {
        return Ok(());
    }
    file.rewind()?;
    let mut copy = named(path)?;
    io::copy(file, &mut copy)?;
    finish(&copy, mode)
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
