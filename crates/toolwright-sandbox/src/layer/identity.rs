//! Who the sandbox is outside. Inside it is always the ordinary user `sandbox`.
//!
//! An ordinary caller stays itself. A caller that is root does not: its sandbox belongs to the owner of the
//! workspace, or, when that is root too, to `nobody`, and the folders are shown through a mount that maps
//! owners, every writable one with its own owner. Where the file system of the workspace cannot do that, the
//! sandbox is root outside without any capability, and the layer list says so.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use crate::sys;
use crate::sys::process::{ForkSide, exit_now, fork, kill, wait};

/// The user and group inside.
pub(crate) const INSIDE: u32 = 1000;
/// The name of the user inside.
pub(crate) const NAME: &str = "sandbox";
/// The home folder of the user inside.
pub(crate) const HOME: &str = "/home/sandbox";

const NOBODY: u32 = 65534;

/// Who the sandbox is outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Files of this owner are shown as the sandbox's own.
    pub(crate) shown: Option<(u32, u32)>,
}

impl Identity {
    /// Chooses for a workspace with the given owner.
    pub(crate) fn choose(owner: (u32, u32)) -> Identity {
        match sys::effective_ids() {
            (0, _) if owner.0 != 0 => Identity { uid: owner.0, gid: owner.1, shown: None },
            (0, _) => Identity { uid: NOBODY, gid: NOBODY, shown: Some(owner) },
            (uid, gid) => Identity { uid, gid, shown: None },
        }
    }

    /// What is left when owners cannot be mapped.
    pub(crate) fn without_mapping(self) -> Identity {
        let (uid, gid) = sys::effective_ids();
        Identity { uid, gid, shown: None }
    }

    /// Writes the mapping of a new user namespace, from outside it.
    pub(crate) fn write_maps(self, pid: i32) -> io::Result<()> {
        write_maps(pid, (INSIDE, self.uid), (INSIDE, self.gid))
    }

    /// The owner whose files are shown as the sandbox's own in a folder, if that takes a mapping. A folder
    /// that the sandbox may write as it is stays so, and the files it has there already stay its own.
    pub(crate) fn shown_in(self, folder: &libc::stat, writable: bool) -> Option<(u32, u32)> {
        let everybody = folder.st_mode & libc::S_IWOTH != 0;
        let group = folder.st_mode & libc::S_IWGRP != 0 && folder.st_gid == self.gid;
        if !writable || (self.shown.is_none() && (everybody || group)) {
            return self.shown;
        }
        (folder.st_uid != self.uid).then_some((folder.st_uid, folder.st_gid))
    }

    /// A user namespace that shows an owner as the sandbox's user, for mounts.
    pub(crate) fn mount_namespace(self, (uid, gid): (u32, u32)) -> io::Result<OwnedFd> {
        let (hold, release) = sys::pipe()?;
        match fork(libc::CLONE_NEWUSER)? {
            ForkSide::Child => {
                drop(release);
                let _ = sys::read(hold.as_fd(), &mut [0]);
                exit_now(0)
            }
            ForkSide::Parent(pid) => {
                let made = write_maps(pid, (uid, self.uid), (gid, self.gid))
                    .and_then(|()| fs::File::open(format!("/proc/{pid}/ns/user")));
                kill(pid, libc::SIGKILL)?;
                wait(pid, true)?;
                made.map(OwnedFd::from)
            }
        }
    }
}

fn write_maps(pid: i32, uid: (u32, u32), gid: (u32, u32)) -> io::Result<()> {
    let write = |file: &str, text: String| {
        // One `write` call each: the kernel takes a mapping whole or not at all.
        fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/{file}"))?.write_all(text.as_bytes())
    };
    if sys::effective_ids().0 != 0 {
        write("setgroups", "deny".to_owned())?;
    }
    write("gid_map", format!("{} {} 1\n", gid.0, gid.1))?;
    write("uid_map", format!("{} {} 1\n", uid.0, uid.1))
}
