//! The sandbox contract: run commands and move files where a model cannot do harm.
//!
//! Every method lists the errors a tool may expect; they reach the model. Anything else is fatal. Backends live in
//! `toolwright-sandbox`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::ToolError;
use crate::tool::BoxFuture;

/// The most output of one stream that [`Sandbox::exec`] keeps.
pub const MAX_EXEC_OUTPUT: usize = 10 * 1024 * 1024;

/// The largest file that [`Sandbox::read_file`] returns.
pub const MAX_READ_FILE: usize = 100 * 1024 * 1024;

/// A place to run commands and keep files.
pub trait Sandbox: Send + Sync {
    /// The kind of sandbox, for example `process` or `docker`.
    fn kind(&self) -> &str;

    /// Runs a command to its end. A non-zero exit is a result, not an error.
    ///
    /// Expected errors: `timeout` and `output_limit` (both with the partial output), `permission`, `file_not_found`.
    fn exec<'a>(&'a self, command: ExecRequest) -> BoxFuture<'a, Result<ExecResult, ToolError>>;

    /// Writes a file, making its parent folders. Expected errors: `permission`, `is_a_directory`.
    fn write_file<'a>(&'a self, path: &'a str, contents: &'a [u8]) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Reads a file, byte for byte. Expected errors: `file_not_found`, `permission`, `is_a_directory`, `output_limit`.
    fn read_file<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<u8>, ToolError>>;

    /// Reads a text file, newlines kept. Expected errors: those of `read_file`, and `unicode_decode`.
    fn read_text<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async move { Ok(String::from_utf8(self.read_file(path).await?)?) })
    }

    /// How a person can log in, if that is possible.
    fn connection<'a>(
        &'a self,
        user: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Connection>, ToolError>> {
        let _ = user;
        Box::pin(async { Ok(None) })
    }
}

/// A command to run in a [`Sandbox`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// The program and its arguments; no shell is involved.
    pub command: Vec<String>,
    /// What the program reads on its standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Vec<u8>>,
    /// The folder to run in; relative to the sandbox's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables to set beside the sandbox's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Who to run as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The longest it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Whether a backend that is known to lose commands may try again after a time-out. Say no when running twice does harm.
    #[serde(default = "yes")]
    pub timeout_retry: bool,
}

fn yes() -> bool {
    true
}

impl ExecRequest {
    /// A command with nothing but its arguments.
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        ExecRequest {
            command: command.into_iter().map(Into::into).collect(),
            input: None,
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            timeout: None,
            timeout_retry: true,
        }
    }

    /// Sets what the program reads.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Sets the folder to run in.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets one variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the longest it may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecResult {
    /// The exit code; minus the signal number when a signal ended it.
    pub code: i32,
    /// What it wrote to standard output, invalid UTF-8 replaced.
    pub stdout: String,
    /// What it wrote to standard error, invalid UTF-8 replaced.
    pub stderr: String,
    /// The protections that were on while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
}

impl ExecResult {
    /// True when the exit code is 0.
    pub fn success(&self) -> bool {
        self.code == 0
    }
}

/// How a person can log in to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The kind of sandbox.
    pub kind: String,
    /// A shell command that opens a session.
    pub command: String,
}
