//! One file per command.

pub mod ask;
pub mod call;
pub mod check;
pub mod completions;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod eval;
pub mod init;
pub mod man;
pub mod mcp;
pub mod mcp_install;
pub mod models;
pub mod read;
pub mod replay;
pub mod run;
pub mod runs;
pub mod sandbox;
pub mod serve;
pub mod serve_reload;
pub mod step;
pub mod tools;
pub mod trust;
pub mod undo;
pub mod view;

use toolwright::Run;
use toolwright::run::RunEnd;

use crate::report::Stopped;

/// What told the program to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, which service managers send.
    Terminate,
}

impl StopSignal {
    /// The exit code of a program that the signal ended, as shells report it.
    pub fn exit_code(self) -> u8 {
        match self {
            StopSignal::Interrupt => 130,
            StopSignal::Terminate => 143,
        }
    }
}

impl std::fmt::Display for StopSignal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StopSignal::Interrupt => "Ctrl-C",
            StopSignal::Terminate => "SIGTERM",
        })
    }
}

/// Waits for Ctrl-C or SIGTERM.
pub async fn stop_signal() -> StopSignal {
    #[cfg(unix)]
    if let Ok(mut asked) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            Ok(()) = tokio::signal::ctrl_c() => return StopSignal::Interrupt,
            _ = asked.recv() => return StopSignal::Terminate,
        }
    }
    match tokio::signal::ctrl_c().await {
        Ok(()) => StopSignal::Interrupt,
        // Where signals cannot be received none arrives.
        Err(_) => std::future::pending().await,
    }
}

/// Does something until it is done or told to stop. What it started is ended either way.
pub async fn interruptible<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::select! {
        // Listened for before anything is started.
        biased;
        signal = stop_signal() => Err(Stopped(signal).into()),
        outcome = work => outcome,
    }
}

/// Does the work of a run until it is done or told to stop, which the record of the run then says.
pub async fn until_stopped<T>(run: &Run, work: impl Future<Output = T>) -> anyhow::Result<T> {
    tokio::select! {
        biased;
        signal = stop_signal() => {
            run.finish(RunEnd::Cancelled)?;
            Err(Stopped(signal).into())
        }
        outcome = work => Ok(outcome),
    }
}
