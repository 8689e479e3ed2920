//! Work in a process of its own: this program, started again with a socket in place of its standard input.
//!
//! Both sides speak in [`WorkerMessage`]s: the parent sends a call with the descriptors of files, the worker
//! sends progress, output and in the end a result or an error. Every length is checked before anything is
//! read. The parent kills the worker with everything it started when its time is up, when it says too much,
//! or when [`Worker`] is dropped.

mod confine;
mod frame;
mod parent;
mod worker;

pub use confine::limit_this_process;
pub use frame::{Failure, FrameLimits, WorkerMessage};
pub use parent::{Command, Event, Worker, WorkerError, WorkerLimits};
pub use worker::Connection;
