//! Points at which tests kill the process, to see that a commit survives it.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many more points are passed; 0 never stops.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Ends this process without any clean-up when it passes the `count`-th point from now.
pub fn stop_at(count: u64) {
    LEFT.store(count, Ordering::SeqCst);
}

/// One point: before each change to a file system that a commit makes.
pub(crate) fn pass() {
    let is_last = |left: u64| left.checked_sub(1);
    if LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_last) == Ok(1) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
