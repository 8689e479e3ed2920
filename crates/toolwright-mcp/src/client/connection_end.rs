//! The end of a connection: whether it has come, why, and whether the server still shows signs of life.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use toolwright_core::CancelToken;

use crate::error::{McpError, McpErrorKind};

/// The end of a connection.
#[derive(Default)]
pub(super) struct Ending {
    /// Fires once the connection is closed, after the reason was set.
    pub(super) closed: CancelToken,
    reason: OnceLock<McpError>,
    /// True when we ended the session ourselves, and not because the server broke a rule or went silent.
    polite: AtomicBool,
    /// Counts messages, so that silence can be noticed.
    heard: AtomicU64,
}

impl Ending {
    /// Sets the reason; the first one counts.
    pub(super) fn doom(&self, reason: McpError) {
        let _ = self.reason.set(reason);
    }

    /// Ends the connection because it is no longer needed.
    pub(super) fn end_politely(&self) {
        let reason = McpError::new(McpErrorKind::Closed, "connection closed: it was ended here");
        if self.reason.set(reason).is_ok() {
            self.polite.store(true, Ordering::Release);
        }
        self.closed.cancel();
    }

    pub(super) fn is_polite(&self) -> bool {
        self.polite.load(Ordering::Acquire)
    }

    pub(super) fn reason(&self) -> Option<McpError> {
        self.reason.get().cloned()
    }

    /// Records that the server sent something, whatever it was.
    pub(super) fn note_life(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the server has sent something.
    pub(super) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }
}
