//! Files that the program itself writes: whole or not at all, and never through a link.
//!
//! Tools may write in the same folders, and a folder may come from a stranger. A link in the place of a file
//! would send what is written wherever its maker wanted, outside the sandbox; so a file is made under a new
//! name and takes the place.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone, whoever could read what stood there before.
    Owner,
    /// Whoever could read the file before; of a new one, whoever may read new files.
    AsUsual,
}

/// Writes a file that takes the place of what is there; when it cannot be written, what was there stays.
pub fn replace(path: &Path, bytes: &[u8], readers: Readers) -> anyhow::Result<()> {
    let replace = || -> std::io::Result<()> {
        let before = std::fs::symlink_metadata(path).ok();
        if before.as_ref().is_some_and(|found| !found.is_file() && !found.is_symlink()) {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        // What is there may hold secrets: nobody else reads the new one before it has the rights of the old.
        let first = if before.is_some() { Readers::Owner } else { readers };
        let (mut file, beside) = beside(path, first)?;
        let replaced = fill(&mut file, bytes)
            .and_then(|()| match before {
                Some(found) if found.is_file() && readers == Readers::AsUsual => {
                    file.set_permissions(found.permissions())
                }
                _ => Ok(()),
            })
            .and_then(|()| std::fs::rename(&beside, path));
        if replaced.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        replaced
    };
    replace().with_context(|| unwritable(path))
}

/// Writes a file where there is nothing yet; see [`is_there`].
pub fn create(path: &Path, bytes: &[u8], readers: Readers) -> anyhow::Result<()> {
    let create = || -> std::io::Result<()> {
        let mut file = new(path, readers)?;
        fill(&mut file, bytes).inspect_err(|_| {
            // Half a file would look like a whole one.
            let _ = std::fs::remove_file(path);
        })
    };
    create().with_context(|| unwritable(path))
}

/// True for the error of [`create`] that says that there is something already.
pub fn is_there(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::AlreadyExists)
}

fn unwritable(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}

/// A new file in the same folder, under a name that nobody can guess.
fn beside(path: &Path, readers: Readers) -> std::io::Result<(File, PathBuf)> {
    let mut word = [0; 8];
    getrandom::fill(&mut word).map_err(|error| std::io::Error::other(error.to_string()))?;
    let beside = path.with_file_name(format!(".toolwright-{:016x}.tmp", u64::from_ne_bytes(word)));
    Ok((new(&beside, readers)?, beside))
}

/// A file that was not there: in the place of one, a link to nowhere included, it is an error.
fn new(path: &Path, readers: Readers) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if readers == Readers::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    options.open(path)
}

/// On the disk, so that a full one is noticed here.
fn fill(file: &mut File, bytes: &[u8]) -> std::io::Result<()> {
    file.write_all(bytes).and_then(|()| file.sync_all())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_link_is_replaced_and_never_followed() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("precious"), "mine")?;
        for (link, target) in [("to-a-file", at("precious")), ("to-nowhere", at("nothing"))] {
            symlink(&target, at(link))?;
            assert!(create(&at(link), b"new", Readers::Owner).is_err_and(|error| is_there(&error)));
            replace(&at(link), b"new", Readers::AsUsual)?;
            assert!(std::fs::symlink_metadata(at(link))?.is_file());
            assert_eq!(std::fs::read_to_string(at(link))?, "new");
        }
        assert_eq!(std::fs::read_to_string(at("precious"))?, "mine");
        assert_eq!(names(folder.path()), ["precious", "to-a-file", "to-nowhere"]);
        Ok(())
    }

    #[test]
    fn rights_stay_unless_the_file_is_private() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a");
        let mode = || std::fs::metadata(&path).map(|found| found.permissions().mode() & 0o777);
        std::fs::write(&path, "old")?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640))?;
        replace(&path, b"new", Readers::AsUsual)?;
        assert_eq!(mode()?, 0o640);
        replace(&path, b"new", Readers::Owner)?;
        assert_eq!(mode()?, 0o600);
        Ok(())
    }

    #[test]
    fn what_cannot_be_replaced_stays_and_nothing_is_left_beside_it() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("taken");
        std::fs::create_dir(&path)?;
        let error = replace(&path, b"new", Readers::AsUsual).map_err(|error| error.to_string());
        assert_eq!(error, Err(format!("cannot write `{}`", path.display())));
        assert_eq!(names(folder.path()), ["taken"]);
        Ok(())
    }
}
