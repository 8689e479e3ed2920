//! The errors between a client and a server.

use std::fmt;

use toolwright_core::{ErrorKind, ToolError};

use crate::jsonrpc::{INVALID_PARAMS, RpcError};

/// The kind of an [`McpError`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum McpErrorKind {
    /// The server could not be started, or the handshake failed.
    Start,
    /// The connection is closed: the server ended, or was ended.
    Closed,
    /// The server did not answer in time.
    Timeout,
    /// The caller stopped waiting.
    Cancelled,
    /// The server requires a token that could not be obtained.
    Unauthorized,
    /// The server answered with a JSON-RPC error; see [`McpError::code`].
    Refused,
    /// The server sent something that is not MCP.
    Protocol,
    /// A bound of ours was reached; the message names it.
    Limit,
}

/// The error of a request to an MCP server.
#[derive(Debug, Clone)]
pub struct McpError {
    kind: McpErrorKind,
    message: String,
    code: Option<i64>,
    /// The revisions the server named, when it refused the one it was asked in.
    supported: Vec<String>,
    /// True when the server has not even begun, so that asking again is safe.
    unheard: bool,
}

impl McpError {
    pub(crate) fn new(kind: McpErrorKind, message: impl Into<String>) -> Self {
        McpError { kind, message: message.into(), code: None, supported: Vec::new(), unheard: false }
    }

    pub(crate) fn refused(error: &RpcError) -> Self {
        let message = toolwright_core::text::clip(&error.message, 4096);
        let supported = error.data.as_ref().and_then(|data| data.get("supported")).cloned();
        let supported = supported.and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default();
        McpError { kind: McpErrorKind::Refused, message, code: Some(error.code), supported, unheard: false }
    }

    /// Marks the error of a request that the server has not begun with.
    pub(crate) fn unheard(self) -> Self {
        McpError { unheard: true, ..self }
    }

    /// Whether this is why a call failed, and the server has not begun with it.
    pub(crate) fn is_unheard(error: &ToolError) -> bool {
        let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<McpError>());
        cause.is_some_and(|cause| cause.unheard)
    }

    /// What to match on.
    pub fn kind(&self) -> McpErrorKind {
        self.kind
    }

    pub(crate) fn supports(&self, version: &str) -> bool {
        self.supported.iter().any(|known| known == version)
    }

    /// The JSON-RPC code, when the server gave one.
    pub fn code(&self) -> Option<i64> {
        self.code
    }
}

impl fmt::Display for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for McpError {}

impl From<McpError> for ToolError {
    /// Nothing a server does is fatal to the run.
    fn from(error: McpError) -> Self {
        let kind = match error.kind {
            McpErrorKind::Refused if error.code == Some(INVALID_PARAMS) => ErrorKind::Parsing,
            McpErrorKind::Timeout => ErrorKind::Timeout,
            McpErrorKind::Cancelled => ErrorKind::Cancelled,
            McpErrorKind::Limit => ErrorKind::OutputLimit,
            McpErrorKind::Unauthorized => ErrorKind::Permission,
            McpErrorKind::Start | McpErrorKind::Closed | McpErrorKind::Refused | McpErrorKind::Protocol => {
                ErrorKind::Unknown
            }
        };
        ToolError::of(kind, error.message.clone()).with_source(error)
    }
}
