//! The places a command can run in, one file each. They share one path for starting, watching and stopping.

mod drain;
pub(crate) mod engine;
pub(crate) mod exec;
mod keyboard;
pub(crate) mod local;
pub(crate) mod process;
pub(crate) mod shared;
pub(crate) mod spare;
mod spawn;
mod staged;
