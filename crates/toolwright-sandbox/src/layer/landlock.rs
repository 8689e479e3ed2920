//! The second lock: a Landlock ruleset over the same folders as the view, plus TCP, abstract sockets and
//! signals.
//!
//! It is made once for a sandbox, after the view is in place, and entered by every command. It holds on its
//! own if the view has a hole; it does not stop UDP, `chmod` or `stat`, which the other layers do.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use crate::policy::Network;
use crate::sys;
use crate::sys::process::{landlock_allow, landlock_ruleset, landlock_version};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
const ON_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// What is allowed below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allow {
    /// Reading, not executing.
    Look,
    /// Reading and executing.
    Read,
    /// Everything but making devices.
    Write,
    /// Reading and writing devices that are there, and talking to them.
    Device,
}

/// Makes a ruleset that allows the given paths and nothing else.
pub(crate) fn ruleset<'a>(
    paths: impl IntoIterator<Item = (&'a Path, Allow)>,
    network: &Network,
) -> io::Result<OwnedFd> {
    let version = landlock_version()?;
    let mut handled = (1 << 13) - 1;
    for (since, access) in [(2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)] {
        if version >= since {
            handled |= access;
        }
    }
    let tcp = if *network == Network::Off { 3 } else { 0 };
    let scopes = 3;
    let size = match version {
        0..=3 => 8,
        4..=5 => 16,
        _ => 24,
    };
    let ruleset = landlock_ruleset(&[handled, tcp, scopes], size)?;
    for (path, allow) in paths {
        let at = match sys::open_at(None, &sys::c_path(path)?, libc::O_PATH, 0) {
            Ok(at) => at,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let access = match allow {
            Allow::Look => READ_FILE | READ_DIR,
            Allow::Read => READ,
            Allow::Write => handled & !(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV),
            Allow::Device => READ | WRITE_FILE | TRUNCATE | IOCTL_DEV,
        };
        let folder = sys::stat(at.as_fd())?.st_mode & libc::S_IFMT == libc::S_IFDIR;
        let access = access & handled & if folder { u64::MAX } else { ON_FILES };
        landlock_allow(ruleset.as_fd(), at.as_fd(), access)?;
    }
    Ok(ruleset)
}
