//! The layer that takes the changes of one job: an overlay over each folder that can be written, mounted in
//! the job's own mount namespace.
//!
//! The finished view has these folders read-only. Where overlays keep what is written is a folder of the
//! host, mounted at a place of the view from which each job takes it away again once its overlays are on.

use std::ffi::CString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::landlock::{self, Allow};
use super::view::beneath;
use crate::policy::Network;
use crate::sys::{self, mount};

/// Where the staging folder is in the view, until a job has its overlays.
pub(crate) const STAGE: &str = "/run/.stage";

/// The folder of a job in the staging folder.
pub(crate) fn job_folder(staging: &Path, number: u64) -> PathBuf {
    staging.join(number.to_string())
}

/// What was written to the folder of that index, in the folder of a job.
pub(crate) fn upper(job: &Path, index: usize) -> PathBuf {
    job.join(format!("u{index}"))
}

fn work(job: &Path, index: usize) -> PathBuf {
    job.join(format!("w{index}"))
}

/// The folders that are staged, and what is shown within them.
#[derive(Debug, Clone)]
pub(crate) struct StagedFolders {
    /// The folders that can be written, as the view shows them, outer ones first.
    pub(crate) folders: Vec<PathBuf>,
    /// Folders and files of the policy that are read-only inside one of those.
    pub(crate) read_only: Vec<PathBuf>,
    /// What Landlock allows; it does not know an overlay by the folder below it.
    pub(crate) rules: Vec<(PathBuf, Allow)>,
    pub(crate) network: Network,
}

impl StagedFolders {
    /// Tries an overlay of each folder, and takes it off again.
    pub(crate) fn probe(&self) -> io::Result<()> {
        self.mount(0)?;
        for folder in self.folders.iter().rev() {
            mount::take_off(&sys::c_path(folder)?)?;
        }
        fs::remove_dir_all(job_folder(Path::new(STAGE), 0)).or_else(|error| {
            // The kernel may still hold its work folder; the staging folder is removed as a whole at the end.
            if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
        })
    }

    /// Puts an overlay on each folder. What is shown inside one is put on again, since overlays hide it.
    pub(crate) fn mount(&self, number: u64) -> io::Result<()> {
        let root = sys::open_at(None, c"/", libc::O_PATH | libc::O_DIRECTORY, 0)?;
        let job = job_folder(Path::new(STAGE), number);
        DirBuilder::new().mode(0o700).create(&job)?;
        let within =
            |path: &&PathBuf| self.folders.iter().any(|folder| path.starts_with(folder) && *path != folder);
        let inner = self.folders.iter().chain(&self.read_only).filter(within);
        let mut inner: Vec<(&PathBuf, OwnedFd)> = inner
            .map(|path| Ok((path, mount::detach_one(beneath(root.as_fd(), path)?.as_fd())?)))
            .collect::<io::Result<_>>()?;
        inner.sort_by_key(|(path, _)| path.components().count());
        let outer = self.folders.iter().filter(|folder| !within(folder));
        for folder in outer {
            self.overlay(&root, &job, folder)?;
        }
        for (path, mounted) in inner {
            mount::attach(mounted.as_fd(), beneath(root.as_fd(), path)?.as_fd())?;
            if self.folders.contains(path) {
                self.overlay(&root, &job, path)?;
            }
        }
        Ok(())
    }

    fn overlay(&self, root: &OwnedFd, job: &Path, folder: &Path) -> io::Result<()> {
        let index = self.folders.iter().position(|one| one == folder).unwrap_or_default();
        let lower = beneath(root.as_fd(), folder)?;
        // By way of the descriptor, no character of the path means something to the kernel.
        let place = format!("/proc/self/fd/{}", lower.as_raw_fd());
        let (upper, work) = (upper(job, index), work(job, index));
        DirBuilder::new().mode(0o700).create(&upper)?;
        DirBuilder::new().mode(0o700).create(&work)?;
        // The overlay has the permissions that its upper folder has.
        fs::set_permissions(&upper, Permissions::from_mode(fs::metadata(&place)?.mode() & 0o777))?;
        let options = format!(
            "lowerdir={place},upperdir={},workdir={},userxattr,volatile",
            upper.display(),
            work.display()
        );
        let text = |text: String| CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        mount::filesystem(c"overlay", &text(place)?, flags, &text(options)?)
    }

    /// Landlock's rules with the overlays on.
    pub(crate) fn ruleset(&self) -> io::Result<OwnedFd> {
        landlock::ruleset(self.rules.iter().map(|(path, allow)| (path.as_path(), *allow)), &self.network)
    }
}

/// Takes the staging folder out of the view of this job.
pub(crate) fn hide() -> io::Result<()> {
    mount::take_off(c"/run/.stage")
}
