//! Atomic writes: a file is written whole or not at all, and never through a link.
//!
//! Tools may write in the same folders, and a folder may come from a stranger. A link in the place of a file
//! would redirect the write outside the sandbox, so the bytes go into a new file, which then takes the place
//! of the old one.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Who may read a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Its owner alone, even if others could read the previous file.
    Owner,
    /// The permissions of the previous file; the process's umask for a new one.
    Inherit,
}

/// Writes a file in the place of what is there. If that fails, the previous content stays.
pub fn replace(path: &Path, bytes: &[u8], access: FileAccess) -> std::io::Result<()> {
    let before = std::fs::symlink_metadata(path).ok();
    if before.as_ref().is_some_and(|found| !found.is_file() && !found.is_symlink()) {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    // The previous file may hold secrets: nobody else may open the new one before it has the same
    // permissions.
    let first = if before.is_some() { FileAccess::Owner } else { access };
    let (mut file, beside) = beside(path, first)?;
    let replaced = fill(&mut file, bytes)
        .and_then(|()| match before {
            Some(found) if found.is_file() && access == FileAccess::Inherit => {
                file.set_permissions(found.permissions())
            }
            _ => Ok(()),
        })
        .and_then(|()| std::fs::rename(&beside, path));
    if replaced.is_err() {
        // Half a file may hold secrets, too.
        let _ = std::fs::remove_file(&beside);
    }
    replaced
}

/// Writes a file where there is nothing yet; [`AlreadyExists`](std::io::ErrorKind::AlreadyExists) otherwise,
/// also for a link to nowhere.
pub fn create(path: &Path, bytes: &[u8], access: FileAccess) -> std::io::Result<()> {
    let mut file = open_new(path, access)?;
    fill(&mut file, bytes).inspect_err(|_| {
        // Half a file would look like a whole one.
        let _ = std::fs::remove_file(path);
    })
}

/// A new file in the same folder, because a rename is atomic only within one file system, under a name that
/// nobody can guess and block.
fn beside(path: &Path, access: FileAccess) -> std::io::Result<(File, PathBuf)> {
    let mut word = [0; 8];
    getrandom::fill(&mut word).map_err(|error| std::io::Error::other(error.to_string()))?;
    let beside = path.with_file_name(format!(".toolwright-{:016x}.tmp", u64::from_ne_bytes(word)));
    Ok((open_new(&beside, access)?, beside))
}

/// Opens with `O_EXCL`, which fails on whatever has the name already and follows no link.
fn open_new(path: &Path, access: FileAccess) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if access == FileAccess::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    options.open(path)
}

/// Writes and syncs: a full disk shows here, and a crash after the rename does not leave an empty file.
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
    fn a_link_is_replaced_and_never_followed() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("precious"), "mine")?;
        for (link, target) in [("to-a-file", at("precious")), ("to-nowhere", at("nothing"))] {
            symlink(&target, at(link))?;
            assert!(
                create(&at(link), b"new", FileAccess::Owner)
                    .is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists)
            );
            replace(&at(link), b"new", FileAccess::Inherit)?;
            assert!(std::fs::symlink_metadata(at(link))?.is_file());
            assert_eq!(std::fs::read_to_string(at(link))?, "new");
        }
        assert_eq!(std::fs::read_to_string(at("precious"))?, "mine");
        assert_eq!(names(folder.path()), ["precious", "to-a-file", "to-nowhere"]);
        Ok(())
    }

    #[test]
    fn rights_stay_unless_the_file_is_private() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a");
        let mode = || std::fs::metadata(&path).map(|found| found.permissions().mode() & 0o777);
        std::fs::write(&path, "old")?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640))?;
        replace(&path, b"new", FileAccess::Inherit)?;
        assert_eq!(mode()?, 0o640);
        replace(&path, b"new", FileAccess::Owner)?;
        assert_eq!(mode()?, 0o600);
        Ok(())
    }

    #[test]
    fn what_cannot_be_replaced_stays_and_nothing_is_left_beside_it() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("taken");
        std::fs::create_dir(&path)?;
        assert!(replace(&path, b"new", FileAccess::Inherit).is_err());
        assert_eq!(names(folder.path()), ["taken"]);
        Ok(())
    }
}
