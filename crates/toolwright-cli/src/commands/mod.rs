//! One file per command.

pub mod ask;
pub mod call;
pub mod check;
pub mod completions;
pub mod diff;
pub mod doctor;
pub mod eval;
pub mod init;
pub mod man;
pub mod mcp;
pub mod mcp_install;
pub mod models;
pub mod replay;
pub mod run;
pub mod runs;
pub mod sandbox;
pub mod serve;
pub mod step;
pub mod tools;
pub mod view;

/// Waits for Ctrl-C, or for whoever manages services to ask for an end.
pub async fn told_to_stop() -> &'static str {
    #[cfg(unix)]
    if let Ok(mut asked) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return "Ctrl-C",
            _ = asked.recv() => return "SIGTERM",
        }
    }
    let _ = tokio::signal::ctrl_c().await;
    "Ctrl-C"
}
