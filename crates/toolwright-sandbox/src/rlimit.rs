//! SandboxLimits that the kernel enforces for each process (rlimits). They hold where control groups cannot
//! be used, and beside them.

use std::io;

use crate::policy::SandboxLimits;
use crate::sys::process::limit;

/// What a memory limit becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryLimit {
    /// A control group counts the sandbox as a whole.
    WholeSandbox,
    /// Each process has the limit for its writable private memory. Address space that is only reserved does
    /// not count, so runtimes that reserve a lot (Go, Java, Node) still start.
    EachProcess,
}

/// Puts the limits on this process; what it starts inherits them and cannot raise them.
pub(crate) fn apply(limits: &SandboxLimits, memory: MemoryLimit) -> io::Result<()> {
    // Not 0: with that the kernel still starts the host's handler of crashes, as root, when there is one.
    // With 1 it does not, and a file of one byte is not a core dump either.
    limit(libc::RLIMIT_CORE, 1)?;
    let memory = limits.memory.filter(|_| memory == MemoryLimit::EachProcess);
    for (resource, value) in [
        (libc::RLIMIT_DATA, memory),
        (libc::RLIMIT_NPROC, limits.processes),
        (libc::RLIMIT_CPU, limits.cpu_seconds),
        (libc::RLIMIT_FSIZE, limits.file_size),
        (libc::RLIMIT_NOFILE, limits.open_files),
        (libc::RLIMIT_MEMLOCK, Some(8 << 20)),
        (libc::RLIMIT_MSGQUEUE, Some(1 << 20)),
    ] {
        if let Some(value) = value {
            limit(resource, value)?;
        }
    }
    Ok(())
}
