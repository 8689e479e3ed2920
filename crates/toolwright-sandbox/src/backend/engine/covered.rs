//! What a container was started with and cannot be given again. Its masks and guards are mounts, and a mount goes away when,
//! on the host, something else takes the place of what it covers: an editor that saves a file under its name is enough. The
//! `process` sandbox puts them on again for every command; here the next command is refused.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toolwright_core::ToolError;

use crate::launcher::client::unavailable;

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
    /// What was there when the container was started.
    was: Option<(u64, u64)>,
}

impl Covered {
    pub(super) fn now(paths: impl Iterator<Item = (PathBuf, As)>) -> Covered {
        Covered(paths.map(|(path, how)| One { was: found(&path), path, how }).collect())
    }

    /// An error when something is covered no more.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        for One { path, how, was } in &self.0 {
            let now = found(path);
            // What is gone is not shown either.
            if now == *was || (*how == As::Masked && now.is_none()) {
                continue;
            }
            let how = if *how == As::Masked { "masked" } else { "protected" };
            let message = format!(
                "`{}` was replaced on the host since the container was started, and is not {how} in it any more",
                path.display()
            );
            return Err(unavailable(message).hint("open the sandbox again"));
        }
        Ok(())
    }
}

/// What is at a path: its file system and its number there.
fn found(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|about| (about.dev(), about.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_takes_the_place_of_something_covered_is_noticed() {
        let folder = std::env::temp_dir().join(format!("tw-covered-{:016x}", crate::sys::random_u64()));
        fs::create_dir(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        let covered = || {
            let paths = [(at("guard"), As::Protected), (at("mask"), As::Masked), (at("later"), As::Masked)];
            Covered::now(paths.into_iter())
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
}
