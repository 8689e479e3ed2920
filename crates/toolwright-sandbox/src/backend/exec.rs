//! Runs one job to its end: feeds it, drains it in bounded memory, and keeps its time.
//!
//! The sequence: submit, hear that it started, then pump the streams until the job reports its end or the
//! time is up. The report comes after everything the command started is dead, so draining ends by itself; a
//! cap guards it anyway.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::time::Instant;
use toolwright_core::{
    ErrorKind, ExecResult, MAX_EXEC_OUTPUT, OutputSink, OutputStream, ToolError, ToolOutput,
};

use super::drain::{self, SharedCapture};
use crate::capture::{CHUNK, Capture, Captured};
use crate::files;
use crate::launcher::client::{JobConnection, LauncherSession, nothing, unavailable};
use crate::launcher::wire::{Job, JobCommand, JobEvent, Stage, Work};
use crate::sys;

/// How long the end of a killed tree is waited for.
const KILL_PATIENCE: Duration = Duration::from_millis(380);
/// How long draining may take after the end.
const DRAIN_PATIENCE: Duration = Duration::from_millis(100);
/// How a job went.
pub(crate) enum Finish {
    /// It ended by itself.
    Ended(i32),
    /// It never ran, or its file work failed.
    Failed(Stage, i32),
    /// It was stopped because its time was up.
    TimedOut,
}

/// The streams between us and a job.
struct JobStreams {
    stdin: Option<pipe::Sender>,
    stdout: pipe::Receiver,
    /// Standard output is wide enough for a flood.
    wide: bool,
    stderr: pipe::Receiver,
}

fn streams(piped_input: bool) -> std::io::Result<(JobStreams, [OwnedFd; 3])> {
    let mut stdin = None;
    let theirs_in = if piped_input {
        let (read, write) = sys::pipe()?;
        stdin = Some(pipe::Sender::from_owned_fd(write)?);
        read
    } else {
        nothing()?
    };
    let (stdout, theirs_out) = sys::pipe()?;
    let (stderr, theirs_err) = sys::pipe()?;
    let wide = sys::widen_pipe(std::os::fd::AsFd::as_fd(&stdout), drain::WIDE);
    let ours = JobStreams {
        stdin,
        wide,
        stdout: pipe::Receiver::from_owned_fd(stdout)?,
        stderr: pipe::Receiver::from_owned_fd(stderr)?,
    };
    Ok((ours, [theirs_in, theirs_out, theirs_err]))
}

/// Where output goes: straight into a place of its own.
pub(crate) trait Sink {
    /// Room for the next bytes; never empty.
    fn space(&mut self) -> &mut [u8];
    /// So many bytes were put there.
    fn filled(&mut self, count: usize);
    /// Where a drain thread may put further output, once it no longer has to be reported.
    fn lend(&mut self) -> Option<Weak<SharedCapture>> {
        None
    }
    /// The thread is done.
    fn take_back(&mut self) {}
}

/// Hands every piece of output to a function.
pub(crate) struct Each<F> {
    buffer: Vec<u8>,
    take: F,
}

impl<F: FnMut(&[u8])> Each<F> {
    pub(crate) fn new(take: F) -> Self {
        Each { buffer: vec![0; CHUNK], take }
    }
}

impl<F: FnMut(&[u8])> Sink for Each<F> {
    fn space(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn filled(&mut self, count: usize) {
        (self.take)(self.buffer.get(..count).unwrap_or_default());
    }
}

/// Captures stdout, and reports it to a sink up to the limit.
struct CapturedStdout<'a> {
    capture: Capture,
    lent: Option<Arc<SharedCapture>>,
    sink: Option<&'a dyn OutputSink>,
}

impl<S: Sink> Sink for &mut S {
    fn space(&mut self) -> &mut [u8] {
        (**self).space()
    }

    fn filled(&mut self, count: usize) {
        (**self).filled(count);
    }

    fn lend(&mut self) -> Option<Weak<SharedCapture>> {
        (**self).lend()
    }

    fn take_back(&mut self) {
        (**self).take_back();
    }
}

impl Sink for CapturedStdout<'_> {
    fn space(&mut self) -> &mut [u8] {
        self.capture.space()
    }

    fn filled(&mut self, count: usize) {
        let bytes = self.capture.filled(count);
        if let Some(sink) = self.sink {
            sink.output(OutputStream::Stdout, bytes);
        }
    }

    fn lend(&mut self) -> Option<Weak<SharedCapture>> {
        if !self.capture.is_over() {
            return None;
        }
        let lent = SharedCapture::new(std::mem::take(&mut self.capture));
        let weak = Arc::downgrade(&lent);
        self.lent = Some(lent);
        Some(weak)
    }

    fn take_back(&mut self) {
        if let Some(capture) = self.lent.take().and_then(|lent| lent.take()) {
            self.capture = capture;
        }
    }
}

/// Runs a job. The sinks receive every piece of output.
pub(crate) async fn run(
    session: &LauncherSession,
    job: &Job,
    input: Option<&[u8]>,
    deadline: Option<Instant>,
    mut out: impl Sink,
    mut err: impl Sink,
) -> Result<Finish, ToolError> {
    let (ours, theirs) =
        streams(input.is_some()).map_err(|error| unavailable("could not make pipes").with_source(error))?;
    let mut line = session.submit(job, theirs).await?;
    let JobStreams { stdin, stdout, wide, stderr } = ours;
    let pump = async {
        let (out, err) = (drain(stdout, wide, &mut out), drain(stderr, false, &mut err));
        tokio::join!(feed(stdin, input.unwrap_or_default()), out, err)
    };
    tokio::pin!(pump);
    let time_up = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(time_up);

    let mut pumped = false;
    let finish = {
        let end = wait_for_end(&mut line);
        tokio::pin!(end);
        loop {
            // The clock and the end come first: output that never pauses must not starve them.
            tokio::select! {
                biased;
                finish = &mut end => break Some(finish?),
                () = &mut time_up => break None,
                _ = &mut pump, if !pumped => pumped = true,
            }
        }
    };
    let finish = match finish {
        Some(finish) => finish,
        None => {
            let _ = line.order(JobCommand::Kill).await;
            let gone = async {
                let end = wait_for_end(&mut line);
                tokio::pin!(end);
                loop {
                    tokio::select! {
                        biased;
                        _ = &mut end => break,
                        _ = &mut pump, if !pumped => pumped = true,
                    }
                }
            };
            let _ = tokio::time::timeout(KILL_PATIENCE, gone).await;
            Finish::TimedOut
        }
    };
    if !pumped {
        let _ = tokio::time::timeout(DRAIN_PATIENCE, &mut pump).await;
    }
    Ok(finish)
}

async fn wait_for_end(line: &mut JobConnection) -> Result<Finish, ToolError> {
    loop {
        match line.event().await? {
            JobEvent::Started => {}
            JobEvent::Failed(stage, code) => return Ok(Finish::Failed(stage, code)),
            JobEvent::Ended(code) => return Ok(Finish::Ended(code)),
        }
    }
}

async fn feed(stdin: Option<pipe::Sender>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A program may stop reading whenever it likes.
        let _ = stdin.write_all(input).await;
    }
}

async fn drain(mut from: pipe::Receiver, wide: bool, sink: &mut impl Sink) {
    let mut since = 0;
    while let Ok(count) = from.read(sink.space()).await {
        if count == 0 {
            break;
        }
        sink.filled(count);
        since += count;
        // A stream that is beyond the limit and fast is drained elsewhere until it falls silent.
        if wide && since >= drain::WIDE {
            since = 0;
            if let Some(lent) = sink.lend() {
                let rest = drain::drain(from, lent).await;
                sink.take_back();
                match rest {
                    Some(rest) => from = rest,
                    None => break,
                }
            }
        }
    }
}

/// Runs a command and turns the outcome into a result or one of the expected errors. `skip` tells how much of
/// a piece of standard error is not the command's own.
pub(crate) async fn command(
    session: &LauncherSession,
    job: &Job,
    input: Option<&[u8]>,
    timeout: Option<Duration>,
    sink: Option<&dyn OutputSink>,
    layers: &[String],
    mut skip: impl FnMut(&[u8]) -> usize,
) -> Result<ExecResult, ToolError> {
    let mut stdout = CapturedStdout { capture: Capture::new(MAX_EXEC_OUTPUT), lent: None, sink };
    let mut stderr = Capture::new(MAX_EXEC_OUTPUT);
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let finish = run(
        session,
        job,
        input,
        deadline,
        &mut stdout,
        Each::new(|bytes: &[u8]| {
            let own = skip(bytes);
            let bytes = bytes.get(own..).unwrap_or_default();
            stderr.push(bytes);
            if let Some(sink) = sink.filter(|_| !bytes.is_empty()) {
                sink.output(OutputStream::Stderr, bytes);
            }
        }),
    )
    .await?;
    stdout.take_back();
    let (stdout, stderr) = (stdout.capture.finish(), stderr.finish());
    match finish {
        Finish::Ended(code) if stdout.omitted + stderr.omitted > 0 => {
            let message = format!(
                "the output limit of {} MiB was exceeded; {} bytes were left out",
                MAX_EXEC_OUTPUT >> 20,
                stdout.omitted + stderr.omitted
            );
            Err(ToolError::of(ErrorKind::OutputLimit, message).with_partial(partial(
                stdout,
                stderr,
                Some(code),
            )))
        }
        Finish::Ended(code) => {
            let replaced = stdout.replaced || stderr.replaced;
            let (stdout, stderr) = (stdout.text, stderr.text);
            Ok(ExecResult { code, stdout, stderr, replaced, layers: layers.to_vec(), effect: None })
        }
        Finish::TimedOut => {
            let seconds = (timeout.unwrap_or_default().as_secs_f64() * 100.0).round() / 100.0;
            let message = format!("the command was stopped after its time of {seconds} s was up");
            Err(ToolError::of(ErrorKind::Timeout, message).with_partial(partial(stdout, stderr, None)))
        }
        Finish::Failed(stage, errno) => Err(failure(job, stage, errno)),
    }
}

/// What a model gets to see of a command that did not end well.
fn partial(stdout: Captured, stderr: Captured, code: Option<i32>) -> ToolOutput {
    let mut text = stdout.text.clone();
    if !text.is_empty() && !text.ends_with('\n') && !stderr.text.is_empty() {
        text.push('\n');
    }
    text.push_str(&stderr.text);
    let omitted = stdout.omitted + stderr.omitted;
    ToolOutput::text(text).with_structured(serde_json::json!({
        "code": code, "stdout": stdout.text, "stderr": stderr.text, "omitted_bytes": omitted,
    }))
}

/// The expected error behind an errno of a job.
pub(crate) fn failure(job: &Job, stage: Stage, errno: i32) -> ToolError {
    let source = std::io::Error::from_raw_os_error(errno);
    let subject = match (&job.work, stage) {
        (_, Stage::Cwd) => format!("`{}`", job.cwd.display()),
        (Work::Exec { command }, _) => {
            let name: String =
                command.first().map(String::as_str).unwrap_or_default().chars().take(200).collect();
            format!("`{}`", name.escape_debug())
        }
        (Work::Read { path, .. } | Work::Write { path, .. }, _) => format!("`{}`", path.display()),
    };
    if stage == Stage::Setup {
        let error = match errno {
            libc::EAGAIN | libc::ENOMEM => {
                ToolError::of(ErrorKind::Limit, "no process can be started: the sandbox's limit is reached")
            }
            _ => unavailable("a protection could not be put on")
                .hint("protected files may have been changed outside; open the sandbox again to see which"),
        };
        return error.with_source(source);
    }
    let (kind, what) = match errno {
        libc::ENOENT => (ErrorKind::FileNotFound, "does not exist"),
        libc::ENOTDIR if stage == Stage::Cwd => (ErrorKind::FileNotFound, "is not a folder"),
        // Making a folder where a link leads nowhere finds the link in its way.
        libc::ENOTDIR | libc::EEXIST => {
            (ErrorKind::FileNotFound, "goes through something that is not a folder")
        }
        libc::EACCES | libc::EPERM if stage == Stage::Exec => (ErrorKind::Permission, "may not be executed"),
        libc::EACCES | libc::EPERM => (ErrorKind::Permission, "is not permitted"),
        libc::EROFS if matches!(job.work, Work::Write { .. }) => {
            (ErrorKind::Permission, "cannot be written: its place is read-only")
        }
        libc::EROFS => (ErrorKind::Permission, "is read-only"),
        libc::EBUSY | libc::ETXTBSY => (ErrorKind::Permission, "cannot be replaced"),
        libc::ENOEXEC => (ErrorKind::Permission, "is not a program"),
        libc::EISDIR => (ErrorKind::IsADirectory, "is a folder"),
        libc::E2BIG => (ErrorKind::Parsing, "has more arguments than the system allows"),
        libc::ENAMETOOLONG => (ErrorKind::Parsing, "is too long a name"),
        libc::EINVAL => (ErrorKind::Parsing, "is not a usable name"),
        libc::ELOOP => (ErrorKind::Permission, "goes round in links"),
        libc::ENOSPC | libc::EDQUOT => {
            (ErrorKind::Limit, "does not fit: the space of the sandbox is used up")
        }
        libc::EAGAIN | libc::ENOMEM => (ErrorKind::Limit, "cannot run: a limit of the sandbox is reached"),
        files::NOT_A_FILE => (ErrorKind::Permission, "is not a regular file"),
        files::TOO_LARGE if matches!(job.work, Work::Write { .. }) => {
            (ErrorKind::Limit, "does not fit: the sandbox allows no file so large")
        }
        files::TOO_LARGE => (ErrorKind::OutputLimit, "is larger than the 100 MiB that may be read"),
        _ => (ErrorKind::Fatal, "failed in an unexpected way"),
    };
    let error = ToolError::of(kind, format!("{subject} {what}")).with_source(source);
    match errno {
        libc::EROFS => error.hint("the sandbox is read-only there; its policy can allow writing"),
        _ => error,
    }
}
