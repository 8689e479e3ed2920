//! The launcher: this very program, started again under another name, which keeps a sandbox and starts its
//! commands.
//!
//! One launcher serves one sandbox. It becomes three kinds of process:
//!
//! | process | lives | does |
//! | --- | --- | --- |
//! | monitor | as long as the sandbox | what needs the caller's rights: control groups, owner maps, placeholders, clean-up |
//! | keeper | as long as the sandbox | is process 1 of the sandbox's namespaces, built the view, forks a job per command |
//! | job | as long as a command | is process 1 of the command's own pid namespace: starts it, reaps, kills the whole tree |
//!
//! The runtime talks to the keeper over one socket and to each job over another. Closing a socket is the
//! order to stop; the kernel closes them when the runtime dies, so nothing outlives it.
//!
//! A program that wants sandboxes calls [`main_if_launcher`] first thing in `main`.

pub(crate) mod client;
mod job;
mod keeper;
mod memory;
mod monitor;
mod staging;
pub(crate) mod wire;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name a launcher is started under.
const NAME: &str = "toolwright-sandbox";

static CALLED: AtomicBool = AtomicBool::new(false);
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Becomes a launcher if this process was started as one, and never returns then. Otherwise returns at once.
///
/// Call it before anything else in `main`, before threads are started:
///
/// ```no_run
/// toolwright_sandbox::launcher::main_if_launcher();
/// // the program itself
/// ```
pub fn main_if_launcher() {
    CALLED.store(true, Ordering::Release);
    if std::env::args_os().next().is_some_and(|name| name == NAME) {
        monitor::run();
    }
}

/// Uses another program as the launcher, one that calls [`main_if_launcher`]. For libraries loaded into
/// programs that cannot, such as an interpreter. Only the first call counts; it tells whether this was it.
pub fn use_program(path: impl Into<PathBuf>) -> bool {
    PROGRAM.set(path.into()).is_ok()
}

/// The program to start as a launcher, if there is one. Starting a program that does not know its part would
/// run its `main` again, so without the hook nothing is started.
pub(crate) fn program() -> Option<PathBuf> {
    match PROGRAM.get() {
        Some(path) => Some(path.clone()),
        None => CALLED.load(Ordering::Acquire).then(|| PathBuf::from("/proc/self/exe")),
    }
}
