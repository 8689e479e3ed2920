//! The side that starts a worker.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value as Json;

use crate::frame::{self, Failure, FrameLimits, WorkerMessage};

/// How often a worker that may be stopped is checked on.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// What is kept of a worker's standard error.
const STDERR: u64 = 16 << 10;

/// How to start a worker.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl Command {
    /// This very program with some arguments.
    pub fn this_program<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> io::Result<Self> {
        // Where the file was replaced while the program ran, this link still leads to the running one.
        let link = PathBuf::from("/proc/self/exe");
        let program = if link.exists() { link } else { std::env::current_exe()? };
        Ok(Command { program, arguments: arguments.into_iter().map(Into::into).collect() })
    }
}

/// Bounds of a worker.
#[derive(Debug, Clone, Copy)]
pub struct WorkerLimits {
    /// Address space in bytes.
    pub memory: u64,
    /// Processor time.
    pub processor: Duration,
    /// Time by the clock, after which it is killed.
    pub time: Duration,
    /// Bytes of everything it says.
    pub output: u64,
    /// Bounds of one message.
    pub frame: FrameLimits,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        WorkerLimits {
            memory: 1 << 30,
            processor: Duration::from_secs(60),
            time: Duration::from_secs(120),
            output: 1 << 30,
            frame: FrameLimits::default(),
        }
    }
}

/// What a worker says before its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// How far it is.
    Progress {
        /// What is done so far.
        done: u64,
        /// Of how much; 0 when unknown.
        total: u64,
    },
    /// A part of the result, with its attachments.
    Output(Json, Vec<Vec<u8>>),
    /// A question, to be answered with [`Worker::answer`].
    Ask(Json),
    /// The end.
    Result(Json),
}

/// Why a worker gave no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkerError {
    /// It could not be started or talked to.
    Io(io::Error),
    /// It reports that the work failed.
    Failed(Failure),
    /// It is gone: crashed, or killed for a limit.
    Died(String),
    /// Its time is up; it has been killed.
    TimedOut(Duration),
    /// It said more than it may; it has been killed.
    TooMuch(u64),
    /// Its result is no longer wanted; it has been killed.
    Stopped,
}

impl fmt::Display for WorkerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerError::Io(_) => out.write_str("the worker could not be started or reached"),
            WorkerError::Failed(failure) => out.write_str(&failure.message),
            WorkerError::Died(how) => write!(out, "the worker {how}"),
            WorkerError::TimedOut(after) => {
                write!(out, "the worker was stopped after {} s", after.as_secs_f32())
            }
            WorkerError::TooMuch(most) => write!(out, "the worker returned more than {most} bytes"),
            WorkerError::Stopped => out.write_str("the worker was stopped"),
        }
    }
}

impl std::error::Error for WorkerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WorkerError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for WorkerError {
    fn from(error: io::Error) -> Self {
        WorkerError::Io(error)
    }
}

/// A worker under way. Dropping it kills it with everything it started.
pub struct Worker {
    child: Child,
    socket: UnixStream,
    stderr: mpsc::Receiver<String>,
    limits: WorkerLimits,
    deadline: Instant,
    said: u64,
    stop: Option<Box<dyn Fn() -> bool + Send>>,
}

impl Worker {
    /// Starts a worker and gives it a call with the descriptors of files.
    pub fn start(
        command: &Command,
        limits: WorkerLimits,
        operation: &str,
        arguments: Json,
        files: &[&File],
    ) -> Result<Self, WorkerError> {
        Self::start_with(command, limits, operation, arguments, files, &[])
    }

    /// Starts a worker and gives it a call with the descriptors of files, and with bytes for which there is
    /// no file.
    pub fn start_with(
        command: &Command,
        limits: WorkerLimits,
        operation: &str,
        arguments: Json,
        files: &[&File],
        attachments: &[&[u8]],
    ) -> Result<Self, WorkerError> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut child = std::process::Command::new(&command.program)
            .args(&command.arguments)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (sender, stderr) = mpsc::channel();
        if let Some(pipe) = child.stderr.take() {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let mut pipe = pipe;
                // The rest is read away, so that the worker never waits for its complaints to be read.
                let kept = pipe.by_ref().take(STDERR).read_to_end(&mut text);
                if kept.is_ok() {
                    let _ = io::copy(&mut pipe, &mut io::sink());
                }
                let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
            });
        }
        let deadline = Instant::now() + limits.time.min(Duration::from_secs(86_400));
        let mut worker = Worker { child, socket, stderr, limits, deadline, said: 0, stop: None };
        worker.send_files(files)?;
        let call = WorkerMessage::Call { operation: operation.to_owned(), arguments };
        worker.socket.set_write_timeout(Some(limits.time.max(Duration::from_millis(1))))?;
        match frame::write(&mut worker.socket, &call, attachments) {
            Ok(()) => Ok(worker),
            Err(_) => Err(worker.died()),
        }
    }

    /// One byte with the number of files carries their descriptors.
    fn send_files(&self, files: &[&File]) -> io::Result<()> {
        let handles: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
        let count = u8::try_from(handles.len()).ok().filter(|count| *count <= 16);
        let count = count.ok_or_else(|| io::Error::other("at most 16 files are handed to a worker"))?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !handles.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&handles)) {
            return Err(io::Error::other("too many files"));
        }
        rustix::net::sendmsg(&self.socket, &[IoSlice::new(&[count])], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Kills the worker soon after `stop` begins to say yes.
    pub fn stop_when(&mut self, stop: impl Fn() -> bool + Send + 'static) {
        self.stop = Some(Box::new(stop));
    }

    /// Waits for what the worker says next.
    pub fn next_event(&mut self) -> Result<Event, WorkerError> {
        loop {
            let message = self.receive()?;
            return Ok(match message {
                (WorkerMessage::Progress { done, total }, _) => Event::Progress { done, total },
                (WorkerMessage::Output { value }, attachments) => Event::Output(value, attachments),
                (WorkerMessage::Ask { question }, _) => Event::Ask(question),
                (WorkerMessage::Result { value }, _) => Event::Result(value),
                (WorkerMessage::Error { failure }, _) => return Err(WorkerError::Failed(failure)),
                // What only a parent says is not understood from a worker.
                (WorkerMessage::Call { .. } | WorkerMessage::Answer { .. } | WorkerMessage::Cancel, _) => {
                    continue;
                }
            });
        }
    }

    /// Answers a question of the worker.
    pub fn answer(&mut self, value: Json) -> Result<(), WorkerError> {
        Ok(frame::write(&mut self.socket, &WorkerMessage::Answer { value }, &[])?)
    }

    /// Asks the worker to stop; if it goes on, it is killed at the deadline.
    pub fn cancel(&mut self) -> Result<(), WorkerError> {
        Ok(frame::write(&mut self.socket, &WorkerMessage::Cancel, &[])?)
    }

    fn receive(&mut self) -> Result<(WorkerMessage, Vec<Vec<u8>>), WorkerError> {
        let mut input = Bounded { worker: self, over: None };
        let limits = input.worker.limits.frame;
        let outcome = frame::read(&mut input, &limits);
        let over = input.over.take();
        match (outcome, over) {
            (_, Some(error)) => {
                self.kill();
                Err(error)
            }
            (Ok(Some(message)), None) => Ok(message),
            (Ok(None), None) => Err(self.died()),
            (Err(error), None) if error.kind() == io::ErrorKind::InvalidData => {
                self.kill();
                Err(WorkerError::Io(error))
            }
            (Err(_), None) => Err(self.died()),
        }
    }

    fn kill(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
    }

    /// How the worker ended.
    fn died(&mut self) -> WorkerError {
        self.kill();
        let status = match self.child.wait() {
            Ok(status) => status,
            Err(error) => return WorkerError::Io(error),
        };
        let said = self.stderr.recv_timeout(Duration::from_millis(500)).unwrap_or_default();
        let out_of_memory = said.contains("memory allocation of");
        let how = match (status.signal(), status.code()) {
            _ if out_of_memory => format!("needed more than {} MiB of memory", self.limits.memory >> 20),
            (Some(signal), _) if signal == Signal::XCPU.as_raw() => {
                format!("used more than {} s of processor time", self.limits.processor.as_secs())
            }
            // The limit of processor time ends with this signal when the first is not enough; so does a kill
            // from here.
            (Some(signal), _) if signal == Signal::KILL.as_raw() => "was killed".to_owned(),
            (Some(signal), _) => format!("crashed (signal {signal})"),
            (None, Some(code)) => format!("ended with code {code} and without a result"),
            (None, None) => "ended without a result".to_owned(),
        };
        WorkerError::Died(how)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

/// The socket until the deadline, counted.
struct Bounded<'w> {
    worker: &'w mut Worker,
    over: Option<WorkerError>,
}

impl io::Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let worker = &mut *self.worker;
        let left = worker.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.over = Some(WorkerError::TimedOut(worker.limits.time));
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A worker that nobody can stop is waited for until its deadline.
        let patience = if worker.stop.is_some() { left.min(STOP_CHECK_INTERVAL) } else { left };
        worker.socket.set_read_timeout(Some(patience))?;
        match worker.socket.read(buffer) {
            Ok(read) => {
                worker.said += read as u64;
                if worker.said > worker.limits.output {
                    self.over = Some(WorkerError::TooMuch(worker.limits.output));
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(read)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if worker.stop.as_ref().is_some_and(|stop| stop()) {
                    self.over = Some(WorkerError::Stopped);
                } else if patience == left {
                    self.over = Some(WorkerError::TimedOut(worker.limits.time));
                } else {
                    // The readers of frames try again.
                    return Err(io::ErrorKind::Interrupted.into());
                }
                Err(error)
            }
            Err(error) => Err(error),
        }
    }
}
