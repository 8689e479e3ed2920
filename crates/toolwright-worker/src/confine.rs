//! Limits the kernel keeps for the worker, set by the worker itself before it reads anything hostile.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::parent::WorkerLimits;

/// Bounds memory and processor time of this process, and takes away writing files, opening many, and dumping
/// core.
pub fn limit_this_process(limits: &WorkerLimits) -> io::Result<()> {
    let seconds = limits.processor.as_secs().max(1);
    for (resource, value) in [
        (Resource::As, limits.memory),
        (Resource::Cpu, seconds),
        (Resource::Fsize, 0),
        (Resource::Nofile, 64),
        // Not 0: with that some kernels still start the host's handler of crashes.
        (Resource::Core, 1),
    ] {
        let hard = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let value = Some(value.min(hard));
        setrlimit(resource, Rlimit { current: value, maximum: value })?;
    }
    Ok(())
}
