//! Says on a command's standard error that the memory of its sandbox was used up. The kernel kills without a
//! word, and "signal 9" does not tell a model what to do otherwise.

use std::os::fd::{AsFd, OwnedFd};

use crate::layer::cgroup::Kills;
use crate::sys;

/// How long the reader of a full pipe is waited for.
const PATIENCE_MS: i32 = 100;

/// The memory of the sandbox while one command runs in it.
pub(super) struct Memory<'a> {
    pub(super) kills: &'a Kills,
    pub(super) limit: u64,
    /// How many were killed before the command.
    pub(super) before: u64,
    pub(super) stderr: OwnedFd,
}

impl Memory<'_> {
    /// Writes a line if the kernel killed a process for its memory, and closes the stream: its reader waits
    /// for that.
    pub(super) fn tell(self) {
        if self.kills.count() <= self.before {
            return;
        }
        let line = format!(
            "toolwright: out of memory: the sandbox may use {}, and a process in it was killed\n",
            size(self.limit)
        );
        // A pipe that says it has room takes this much at once; a pipe without a reader must not block us.
        let ready = sys::poll([(self.stderr.as_fd(), libc::POLLOUT)], Some(PATIENCE_MS));
        if ready.is_ok_and(|[events]| events & libc::POLLOUT != 0) {
            let _ = sys::write_all(self.stderr.as_fd(), line.as_bytes());
        }
    }
}

fn size(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} bytes")
}
