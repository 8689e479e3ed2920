//! The sandbox contract: run commands and move files where a model cannot do harm.
//!
//! Every method lists the errors a tool may expect; they reach the model. Anything else is fatal. Backends
//! live in `toolwright-sandbox`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::effect::{CallEffect, EffectJudge};
use crate::erased::{DynProcessHandle, DynSandbox};
use crate::error::{ErrorKind, ToolError};
use crate::output::ToolOutput;

/// The most output of one stream that [`Sandbox::exec`] keeps.
pub const MAX_EXEC_OUTPUT: usize = 10 * 1024 * 1024;

/// The largest file that [`Sandbox::read_file`] returns.
pub const MAX_READ_FILE: usize = 100 * 1024 * 1024;

/// What is empty and was last changed in this second since 1970 stands for nothing: a sandbox put it where a
/// protected file could otherwise be made.
pub const PLACEHOLDER_TIME: i64 = 1;

/// The one such file that is not empty, and what it says. A login shell reads the first of three files that
/// is there, so this one must pass on to those it hides.
pub const PLACEHOLDER_LOGIN: (&str, &str) = (
    ".bash_profile",
    "if [ -s ~/.bash_login ]; then . ~/.bash_login; elif [ -r ~/.profile ]; then . ~/.profile; fi\n",
);

/// A place to run commands and keep files. Write the methods as `async fn`.
pub trait Sandbox: Send + Sync {
    /// The kind of sandbox, for example `process` or `docker`.
    fn kind(&self) -> &str;

    /// Whether what runs inside is kept from harming the machine. A backend that isolates nothing says no,
    /// and a policy that approves sandboxed tools then does not count tools as sandboxed.
    fn isolates(&self) -> bool;

    /// The protections that are on, by name; the record of a run lists them.
    fn layers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether its policy sets the search path of programs. A tool then starts no login shell, whose profile
    /// would set another.
    fn sets_search_path(&self) -> bool {
        false
    }

    /// Runs a command to its end. A non-zero exit is a result, not an error.
    ///
    /// Expected errors: `timeout` and `output_limit` (both with the partial output), `permission`,
    /// `file_not_found`.
    fn exec(&self, command: ExecRequest) -> impl Future<Output = Result<ExecResult, ToolError>> + Send;

    /// Runs a command to its end like [`Sandbox::exec`], handing output to `sink` as it arrives.
    ///
    /// The result is the same as without a sink. A backend that cannot stream hands everything over at the
    /// end.
    fn exec_live<'a>(
        &'a self,
        command: ExecRequest,
        sink: &'a dyn OutputSink,
    ) -> impl Future<Output = Result<ExecResult, ToolError>> + Send {
        async move {
            let result = self.exec(command).await?;
            sink.output(OutputStream::Stdout, result.stdout.as_bytes());
            sink.output(OutputStream::Stderr, result.stderr.as_bytes());
            Ok(result)
        }
    }

    /// Starts a long-lived process and returns its streams; dropping the [`SandboxProcess`] stops it and all
    /// it started.
    ///
    /// Expected errors: `permission`, `file_not_found`, and `sandbox_unavailable` where the backend has no
    /// such thing.
    fn spawn(&self, command: SpawnRequest) -> impl Future<Output = Result<SandboxProcess, ToolError>> + Send {
        let _ = command;
        let message = format!("the `{}` sandbox cannot keep processes running", self.kind());
        async move { Err(ToolError::of(ErrorKind::SandboxUnavailable, message)) }
    }

    /// Writes a file, making its parent folders. Expected errors: `permission`, `is_a_directory`.
    fn write_file<'a>(
        &'a self,
        path: &'a str,
        contents: &'a [u8],
    ) -> impl Future<Output = Result<(), ToolError>> + Send;

    /// Reads a file, byte for byte. Expected errors: `file_not_found`, `permission`, `is_a_directory`,
    /// `output_limit`.
    fn read_file<'a>(&'a self, path: &'a str) -> impl Future<Output = Result<Vec<u8>, ToolError>> + Send;

    /// Reads a text file, newlines kept. Expected errors: those of `read_file`, and `unicode_decode`.
    fn read_text<'a>(&'a self, path: &'a str) -> impl Future<Output = Result<String, ToolError>> + Send {
        async move { Ok(String::from_utf8(self.read_file(path).await?)?) }
    }

    /// The same sandbox for one call, whose changes this judge decides about before they are applied; `None`
    /// where changes are not staged.
    fn judged_by(&self, judge: Arc<dyn EffectJudge>) -> Option<Arc<DynSandbox>> {
        let _ = judge;
        None
    }

    /// How a person can log in, if that is possible.
    fn connection<'a>(
        &'a self,
        user: Option<&'a str>,
    ) -> impl Future<Output = Result<Option<Connection>, ToolError>> + Send {
        let _ = user;
        async { Ok(None) }
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
    /// Whether a backend that is known to lose commands may try again after a time-out. Say no when running
    /// twice does harm.
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
    /// The exit code; minus the signal number when a signal ended it. Containers say 128 plus the number,
    /// which a command can also say itself.
    pub code: i32,
    /// What it wrote to standard output, invalid UTF-8 replaced.
    pub stdout: String,
    /// What it wrote to standard error, invalid UTF-8 replaced.
    pub stderr: String,
    /// True when some of it was no UTF-8 and was replaced: the program wrote bytes, not text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// The protections that were on while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
    /// What it changed, where the sandbox stages changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<CallEffect>,
}

impl ExecResult {
    /// True when the exit code is 0.
    pub fn success(&self) -> bool {
        self.code == 0
    }

    /// The result, unless the program wrote bytes where text was expected: then `unicode_decode`, with what
    /// could be read.
    pub fn decoded(self) -> Result<Self, ToolError> {
        if !self.replaced {
            return Ok(self);
        }
        let error = ToolError::of(ErrorKind::UnicodeDecode, "the output of the command is not text");
        Err(error.with_partial(ToolOutput::text(self.stdout)))
    }
}

/// Which stream output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output, or the terminal of a process that has one.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    /// The wire name, as in a [`CallNote::Output`](crate::CallNote::Output).
    pub fn as_str(self) -> &'static str {
        match self {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
        }
    }
}

/// Receives output while a command runs. Closures are sinks. What is beyond [`MAX_EXEC_OUTPUT`] may not be
/// told.
pub trait OutputSink: Send + Sync {
    /// Takes one piece, as it was read; a piece may end inside a character. Must not block.
    fn output(&self, stream: OutputStream, bytes: &[u8]);
}

impl<F: Fn(OutputStream, &[u8]) + Send + Sync> OutputSink for F {
    fn output(&self, stream: OutputStream, bytes: &[u8]) {
        self(stream, bytes);
    }
}

/// A process to start with [`Sandbox::spawn`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnRequest {
    /// What to run. `input` and `timeout` are not used: the caller owns the streams and the time.
    pub exec: ExecRequest,
    /// A terminal of this size in place of the three pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
}

impl SpawnRequest {
    /// A process with pipes.
    pub fn piped(exec: ExecRequest) -> Self {
        SpawnRequest { exec, terminal: None }
    }

    /// A process with a terminal of its own.
    pub fn with_terminal(exec: ExecRequest, rows: u16, columns: u16) -> Self {
        SpawnRequest { exec, terminal: Some(TerminalSize { rows, columns }) }
    }
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// A running process and its streams. With a terminal, `stdin` and `stdout` are its two directions and
/// `stderr` is empty.
pub struct SandboxProcess {
    /// What the process reads; dropping it is end of input.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// What the process writes.
    pub stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// What the process writes to standard error.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// How to signal, wait for and stop it.
    pub handle: Box<DynProcessHandle>,
}

impl std::fmt::Debug for SandboxProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxProcess").field("layers", &self.handle.layers()).finish_non_exhaustive()
    }
}

/// Control over a running process. Dropping it stops the process and everything it started.
pub trait ProcessHandle: Send + Sync {
    /// Waits for the end. The code is minus the signal number when a signal ended it; asking again gives the
    /// same answer.
    fn wait(&self) -> impl Future<Output = Result<i32, ToolError>> + Send;

    /// Stops the process and everything it started, and waits until all of it is gone.
    fn kill(&self) -> impl Future<Output = ()> + Send;

    /// Sends a signal to the process group in the foreground, for example 2 for an interrupt.
    fn signal(&self, signal: i32) -> impl Future<Output = Result<(), ToolError>> + Send;

    /// Changes the size of the terminal; without one this does nothing.
    fn resize(&self, size: TerminalSize) -> Result<(), ToolError>;

    /// The protections that are on.
    fn layers(&self) -> &[String];

    /// Applies what the process has changed until now, where the sandbox stages changes; elsewhere there is
    /// nothing to apply. Call it at the end of each interaction with the process; the judge, if there is one,
    /// decides about these changes and all until the next interaction.
    fn commit(
        &self,
        judge: Option<Arc<dyn EffectJudge>>,
    ) -> impl Future<Output = Result<CallEffect, ToolError>> + Send {
        let _ = judge;
        async { Ok(CallEffect::default()) }
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
