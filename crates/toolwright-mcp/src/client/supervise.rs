//! Watching over the process of a server, from start to end.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::sync::watch;
use toolwright_core::{CancelToken, DynProcessHandle};

use super::connection::ServerConnection;
use crate::error::{McpError, McpErrorKind};
use crate::transport::lines::{LineRead, LineReader};
use crate::transport::stdio::Process;

/// How long a server may take to end by itself after its input was closed.
const END_GRACE: Duration = Duration::from_secs(2);

/// The longest line of stderr that is passed on in one piece.
const MAX_LOG_LINE: usize = 64 * 1024;

/// How many server processes are watched over.
static WATCHED: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// Waits until nothing is left of the servers this program started. Ending one takes a moment; a program that
/// exits before leaves its processes behind. Servers that are still in use are waited for too, so bound the
/// time.
pub async fn servers_ended() {
    // The sender lives as long as the program, so there is always an answer.
    let _ = WATCHED.subscribe().wait_for(|watched| *watched == 0).await;
}

/// Counts a server until nothing of it is left.
pub(super) struct ServerCount(());

impl ServerCount {
    pub(super) fn new() -> Self {
        WATCHED.send_modify(|watched| *watched += 1);
        ServerCount(())
    }
}

impl Drop for ServerCount {
    fn drop(&mut self) {
        WATCHED.send_modify(|watched| *watched = watched.saturating_sub(1));
    }
}

/// Reads what a server sends, and says why it stopped.
pub(super) type ServerReader = tokio::task::JoinHandle<McpError>;

pub(super) async fn forward_errors(connection: Arc<ServerConnection>, errors: impl AsyncRead + Unpin) {
    let mut lines = LineReader::new(errors, MAX_LOG_LINE);
    loop {
        match lines.next().await {
            Ok(LineRead::Whole(line)) => connection.log(&String::from_utf8_lossy(line)),
            Ok(LineRead::TooLong) => connection.log("[a line too long to show]"),
            Ok(LineRead::End) | Err(_) => return,
        }
        tokio::task::coop::consume_budget().await;
    }
}

/// Watches over a server process from start to end. When it returns, nothing of the server is left.
pub(super) async fn supervise(
    connection: Arc<ServerConnection>,
    mut process: Process,
    mut reader: ServerReader,
    gone: CancelToken,
    _watched: ServerCount,
) {
    const MOMENT: Duration = Duration::from_secs(2);
    let mut status = None;
    tokio::select! {
        () = connection.closed().cancelled() => {}
        ended = process.child.wait() => {
            process.tree.root_ended();
            status = ended.ok();
            // What it wrote before it ended is still read; a child of it may hold the pipe open indefinitely.
            let _ = tokio::time::timeout(MOMENT, &mut reader).await;
        }
        why = &mut reader => {
            let broke = why.unwrap_or_else(|_| McpError::new(McpErrorKind::Closed, "connection closed"));
            if broke.kind() == McpErrorKind::Closed {
                status = tokio::time::timeout(MOMENT, process.child.wait()).await.ok().and_then(Result::ok);
            }
            if status.is_some() {
                process.tree.root_ended();
            } else {
                connection.close(broke);
            }
        }
    }
    if let Some(status) = status {
        let message = format!("connection closed: the server ended ({status})");
        connection.close(McpError::new(McpErrorKind::Closed, message));
    } else if connection.ended_politely() {
        // Its input is closed by now. A well-behaved server ends by itself.
        let ended = tokio::time::timeout(END_GRACE, process.child.wait()).await.is_ok();
        if ended {
            process.tree.root_ended();
        } else {
            process.tree.terminate();
            if tokio::time::timeout(MOMENT, process.child.wait()).await.is_ok() {
                process.tree.root_ended();
            }
        }
    }
    let Process { mut child, tree } = process;
    // The search through `/proc` takes a while on a busy machine.
    let _ = tokio::task::spawn_blocking(move || drop(tree)).await;
    let _ = child.wait().await;
    gone.cancel();
}

/// Watches over a server in a sandbox, whose backend knows how to end it whole.
pub(super) async fn supervise_sandboxed(
    connection: Arc<ServerConnection>,
    handle: Arc<DynProcessHandle>,
    mut reader: ServerReader,
    gone: CancelToken,
    _watched: ServerCount,
) {
    tokio::select! {
        () = connection.closed().cancelled() => {
            if connection.ended_politely() {
                let _ = tokio::time::timeout(END_GRACE, handle.wait()).await;
            }
        }
        why = &mut reader => {
            let why = why.unwrap_or_else(|_| McpError::new(McpErrorKind::Closed, "connection closed"));
            connection.close(why);
        }
    }
    handle.kill().await;
    gone.cancel();
}
