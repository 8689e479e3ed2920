//! One file per command.

pub mod ask;
pub mod call;
pub mod check;
pub mod commit;
pub mod completions;
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

/// Waits for Ctrl-C or for SIGTERM, which service managers send.
pub async fn told_to_stop() -> &'static str {
    #[cfg(unix)]
    if let Ok(mut asked) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            Ok(()) = tokio::signal::ctrl_c() => return "Ctrl-C",
            _ = asked.recv() => return "SIGTERM",
        }
    }
    match tokio::signal::ctrl_c().await {
        Ok(()) => "Ctrl-C",
        // Who cannot be told is never told.
        Err(_) => std::future::pending().await,
    }
}

/// Does something until it is done or told to stop. What it started is ended either way.
pub async fn interruptible<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::select! {
        // Listened for before anything is started.
        biased;
        by = told_to_stop() => anyhow::bail!("stopped by {by}"),
        outcome = work => outcome,
    }
}

/// Does the work of a run until it is done or told to stop, which the record of the run then tells.
pub async fn until_stopped<T>(run: &Run, work: impl Future<Output = T>) -> anyhow::Result<T> {
    tokio::select! {
        biased;
        by = told_to_stop() => {
            run.finish(RunEnd::Cancelled)?;
            anyhow::bail!("stopped by {by}")
        }
        outcome = work => Ok(outcome),
    }
}
