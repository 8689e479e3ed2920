//! What a container was started with and cannot be given again. Its masks and guards are mounts, and a mount
//! goes away when, on the host, something else takes the place of what it covers: an editor that saves a file
//! under its name is enough. The `process` sandbox puts them on again for each command; here the next
//! command is refused.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toolwright_core::ToolError;

use crate::launcher::client::unavailable;
use crate::sys;

/// What is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum As {
    Masked,
    Protected,
}

/// The paths that are covered.
#[derive(Debug)]
pub(super) struct Covered(Vec<One>);

#[derive(Debug)]
struct One {
    path: PathBuf,
    how: As,
    was: Was,
}

/// What was there when the container was started.
#[derive(Debug)]
enum Was {
    Nothing,
    /// Held open: the number of a file that is gone would be given to the next one.
    Here(OwnedFd),
    /// In a folder that this user cannot enter, such as another user's home folder.
    Closed,
}

impl Covered {
    pub(super) fn now(paths: impl Iterator<Item = (PathBuf, As)>) -> Result<Covered, ToolError> {
        let one = |(path, how): (PathBuf, As)| {
            let was = Was::at(&path).map_err(|error| unseen(&path, &error))?;
            Ok(One { path, how, was })
        };
        paths.map(one).collect::<Result<_, _>>().map(Covered)
    }

    /// An error when something is covered no more.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        self.0.iter().try_for_each(One::check)
    }
}

impl Was {
    fn at(path: &Path) -> io::Result<Was> {
        match sys::open_at(None, &sys::c_path(path)?, libc::O_PATH | libc::O_NOFOLLOW, 0) {
            Ok(file) => Ok(Was::Here(file)),
            Err(error) if is_absent(&error) => Ok(Was::Nothing),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(Was::Closed),
            Err(error) => Err(error),
        }
    }
}

impl One {
    fn check(&self) -> Result<(), ToolError> {
        let same = match (&self.was, std::fs::symlink_metadata(&self.path)) {
            // What is gone is not shown either.
            (Was::Nothing, Err(error)) if is_absent(&error) => true,
            (_, Err(error)) if is_absent(&error) => self.how == As::Masked,
            (Was::Closed, Err(_)) => true,
            (_, Err(error)) => return Err(unseen(&self.path, &error)),
            (Was::Here(file), Ok(now)) => {
                sys::stat(file.as_fd()).is_ok_and(|was| (was.st_dev, was.st_ino) == (now.dev(), now.ino()))
            }
            (Was::Nothing | Was::Closed, Ok(_)) => false,
        };
        if same {
            return Ok(());
        }
        let how = if self.how == As::Masked { "masked" } else { "protected" };
        let message = format!(
            "`{}` was replaced on the host since the container was started, and is not {how} in it any more",
            self.path.display()
        );
        Err(unavailable(message).hint("open the sandbox again"))
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn unseen(path: &Path, error: &io::Error) -> ToolError {
    let message =
        format!("it cannot be seen whether `{}` is still the same on the host: {error}", path.display());
    unavailable(message).hint("see to it that the folders on the way can be entered")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_takes_the_place_of_something_covered_is_noticed() {
        let folder = std::env::temp_dir().join(format!("tw-covered-{:016x}", sys::random_u64()));
        fs::create_dir(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        let covered = || {
            let paths = [(at("guard"), As::Protected), (at("mask"), As::Masked), (at("later"), As::Masked)];
            Covered::now(paths.into_iter()).unwrap()
        };
        let replace = |name: &str| {
            fs::write(at("new"), "").unwrap();
            fs::rename(at("new"), at(name)).unwrap();
        };
        for name in ["guard", "mask"] {
            fs::write(at(name), "").unwrap();
        }
        let first = covered();
        fs::write(at("guard"), "written in place").unwrap();
        first.check().unwrap();
        replace("guard");
        assert!(first.check().unwrap_err().message().contains("guard` was replaced"));
        let second = covered();
        replace("later");
        assert!(second.check().unwrap_err().message().contains("is not masked in it any more"));
        let third = covered();
        fs::remove_file(at("mask")).unwrap();
        third.check().unwrap();
        fs::remove_file(at("guard")).unwrap();
        assert!(third.check().is_err(), "a command could make it");
        fs::remove_dir_all(folder).unwrap();
    }

    /// File systems give the number of a file that is gone to the next one.
    #[test]
    fn what_is_removed_and_made_again_is_noticed() {
        let folder = std::env::temp_dir().join(format!("tw-covered-{:016x}", sys::random_u64()));
        fs::create_dir(&folder).unwrap();
        for (name, how) in [("guard", As::Protected), ("mask", As::Masked)] {
            let path = folder.join(name);
            fs::write(&path, "").unwrap();
            let covered = Covered::now([(path.clone(), how)].into_iter()).unwrap();
            fs::remove_file(&path).unwrap();
            fs::write(&path, "").unwrap();
            assert!(covered.check().unwrap_err().message().contains("was replaced"), "{name}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_called_replaced() {
        let one = |was: Was| One { path: format!("/{}", "n".repeat(300)).into(), how: As::Protected, was };
        let held = Was::at(Path::new("/")).unwrap();
        let error = one(held).check().unwrap_err();
        assert!(error.message().starts_with("it cannot be seen whether `/nnn"), "{error}");
        one(Was::Closed).check().unwrap();
    }
}
