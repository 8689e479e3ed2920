//! Removes a directory tree that was built to resist removal: chains of folders deeper than
//! any path, folders without permissions, more files than can be listed.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use crate::sys;

/// Removes a folder. What is in folders within it is brought up to the top first, so that neither paths nor
/// the number of open files grow with the depth. The error says why something is left: it cannot be removed,
/// or time is up.
pub(crate) fn tree(top: &Path, until: Instant) -> io::Result<()> {
    open_up(top)?;
    loop {
        let (mut failed, mut removed) = (None, false);
        for entry in fs::read_dir(top)? {
            let entry = entry?;
            match clear(&entry, top, until) {
                Ok(()) => removed = true,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            // What came up from below may not have been listed.
            _ if removed => {}
            Some(error) => return Err(error),
            None => return fs::remove_dir(top),
        }
    }
}

/// Removes an entry of the top folder, bringing up the folders within.
fn clear(entry: &fs::DirEntry, top: &Path, until: Instant) -> io::Result<()> {
    let path = entry.path();
    if !entry.file_type()?.is_dir() {
        in_time(until)?;
        return fs::remove_file(path);
    }
    open_up(&path)?;
    for inner in fs::read_dir(&path)? {
        in_time(until)?;
        let inner = inner?;
        if inner.file_type()?.is_dir() {
            // Its entry for the folder above is changed, so it must be writable.
            open_up(&inner.path())?;
            fs::rename(inner.path(), top.join(format!("{:016x}", sys::random_u64())))?;
        } else {
            fs::remove_file(inner.path())?;
        }
    }
    fs::remove_dir(path)
}

fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

fn in_time(until: Instant) -> io::Result<()> {
    if Instant::now() < until { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn folder() -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("tw-remove-{:016x}", sys::random_u64()));
        fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn depth_modes_and_links_are_no_obstacle() {
        let (top, outside) = (folder(), folder());
        fs::write(outside.join("kept"), "").unwrap();
        fs::create_dir(top.join("chain")).unwrap();
        for _ in 0..5_000 {
            fs::create_dir(top.join("next")).unwrap();
            fs::rename(top.join("chain"), top.join("next/chain")).unwrap();
            fs::rename(top.join("next"), top.join("chain")).unwrap();
        }
        fs::create_dir_all(top.join("closed/inner")).unwrap();
        fs::write(top.join("closed/file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, top.join("closed/link")).unwrap();
        for path in ["closed/inner", "closed"] {
            fs::set_permissions(top.join(path), Permissions::from_mode(0o000)).unwrap();
        }
        tree(&top, Instant::now() + Duration::from_secs(600)).unwrap();
        assert!(!top.exists());
        assert!(outside.join("kept").exists());
        fs::remove_dir_all(outside).unwrap();
    }

    #[test]
    fn it_ends_in_time() {
        let top = folder();
        fs::write(top.join("file"), "").unwrap();
        assert_eq!(tree(&top, Instant::now()).unwrap_err().kind(), io::ErrorKind::TimedOut);
        fs::remove_dir_all(top).unwrap();
    }
}
