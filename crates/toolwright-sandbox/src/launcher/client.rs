//! The runtime's end: starts launchers, sends jobs, and listens to them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::watch;
use toolwright_core::{ErrorKind, ToolError};
use toolwright_util::lock;

use super::wire::{
    self, Job, JobEvent, MAX_SETUP, MAX_STAGE_MESSAGE, Setup, SetupReply, StageAnswer, StageReply,
    StageRequest,
};
use crate::backend::spare;
use crate::policy::Layer;
use crate::probe::{SETUP_FAILED, remedy};
use crate::sys::{self, socket};

/// How long a launcher may take to build its sandbox.
const PATIENCE_MS: i32 = 20_000;

/// How many launchers of this program have not ended.
static LIVE: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// Private folders that could not be removed, and why.
static LEFT: Mutex<Vec<(PathBuf, io::Error)>> = Mutex::new(Vec::new());

/// Waits until nothing is left of the sandboxes this program opened. Closing one takes some milliseconds,
/// after which its placeholders are gone; a program that ends before leaves them to be seen for that long.
/// Sandboxes that are still in use are waited for too, so bound the time.
///
/// Reports, once and with the reason, private folders of `local` sandboxes that could not be removed.
pub async fn sandboxes_ended() -> Vec<(PathBuf, io::Error)> {
    spare::put_away();
    // The sender lives as long as the program, so there is always an answer.
    let _ = LIVE.subscribe().wait_for(|live| *live == 0).await;
    std::mem::take(&mut lock(&LEFT))
}

/// Counts a launcher until it has ended.
#[derive(Debug)]
struct LauncherCount(());

impl LauncherCount {
    fn new() -> Self {
        LIVE.send_modify(|live| *live += 1);
        LauncherCount(())
    }
}

impl Drop for LauncherCount {
    fn drop(&mut self) {
        LIVE.send_modify(|live| *live = live.saturating_sub(1));
    }
}

/// A running launcher and its sandbox. Dropping it ends both.
#[derive(Debug)]
pub(crate) struct LauncherSession {
    /// Gone only while dropping.
    control: Option<OwnedFd>,
    child: Mutex<Option<(Child, LauncherCount)>>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) missing: Vec<(Layer, String)>,
    /// The listening socket of the proxy, in the sandbox's network.
    pub(crate) way_out: Option<OwnedFd>,
    /// The folder of the host that the launcher removes at its end.
    private: Option<PathBuf>,
    /// The line to the monitor about staged changes, for one question at a time.
    changes: Option<Mutex<std::os::unix::net::UnixStream>>,
    last_stage: AtomicU64,
}

impl LauncherSession {
    /// Starts a launcher and waits until its sandbox is ready. Blocks for some milliseconds.
    pub(crate) fn start(setup: &Setup) -> Result<LauncherSession, ToolError> {
        let program = super::program().ok_or_else(|| {
            unavailable("this program does not call `toolwright_sandbox::launcher::main_if_launcher()`")
                .hint("call it first in `main`, or name a launcher with `launcher::use_program`")
        })?;
        let text = serde_json::to_vec(setup).map_err(|error| broken("write the setup", error))?;
        if text.len() > MAX_SETUP {
            return Err(unavailable("the policy is too large"));
        }
        let (control, theirs) = socket::packet_pair().map_err(|error| broken("make a socket", error))?;
        let child = Command::new(program)
            .arg0(super::NAME)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .spawn()
            .map_err(|error| broken("start the launcher", error))?;
        let mut session = LauncherSession {
            control: Some(control),
            child: Mutex::new(Some((child, LauncherCount::new()))),
            layers: Vec::new(),
            missing: Vec::new(),
            way_out: None,
            private: None,
            changes: None,
            last_stage: AtomicU64::new(0),
        };
        let changes = if setup.staging.is_empty() {
            None
        } else {
            Some(socket::stream_pair().map_err(|error| broken("make a socket", error))?)
        };
        let theirs: Vec<BorrowedFd<'_>> = changes.iter().map(|(_, theirs)| theirs.as_fd()).collect();
        socket::send(session.control()?, &text, &theirs)
            .map_err(|error| broken("reach the launcher", error))?;
        let ours = changes.map(|(ours, _)| ours);
        match session.hear() {
            Ok((SetupReply::Ready { layers, missing }, way_out)) => {
                session.layers = layers;
                session.way_out = way_out;
                session.missing = missing;
                session.private = setup.workspace.clone().filter(|_| setup.policy.workspace.is_none());
                sys::set_nonblocking(session.control()?, true)
                    .map_err(|error| broken("use the socket", error))?;
                session.changes = ours.map(|ours| Mutex::new(ours.into()));
                Ok(session)
            }
            Ok((SetupReply::Failed { message }, _)) => {
                let error = unavailable(format!("{SETUP_FAILED}{message}"));
                Err(match remedy(&message) {
                    Some(command) => error.hint(format!("this may help: {command}")),
                    None => error,
                })
            }
            Err(error) => Err(broken("hear from the launcher", error)),
        }
    }

    /// A number for the changes of a new job, where changes are staged.
    pub(crate) fn next_stage(&self) -> Option<u64> {
        // 0 is the launcher's own.
        self.changes.as_ref().map(|_| self.last_stage.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Has the monitor settle the changes of a job. Blocks until it is done.
    pub(crate) fn settle(&self, request: &StageRequest) -> Result<StageAnswer, ToolError> {
        let changes = self.changes.as_ref().ok_or_else(lost)?;
        let asked = (|| {
            let mut line = lock(changes);
            let text = serde_json::to_vec(request)?;
            let length = u32::try_from(text.len()).map_err(io::Error::other)?;
            line.write_all(&[&length.to_le_bytes(), text.as_slice()].concat())?;
            let mut length = [0; 4];
            line.read_exact(&mut length)?;
            let length = u32::from_le_bytes(length) as usize;
            if length > MAX_STAGE_MESSAGE {
                return Err(io::Error::from_raw_os_error(libc::E2BIG));
            }
            let mut reply = vec![0; length];
            line.read_exact(&mut reply)?;
            Ok(serde_json::from_slice::<StageReply>(&reply)?)
        })();
        let reply = asked.map_err(|error| unavailable("the changes were not settled").with_source(error))?;
        reply.map_err(|why| ToolError::new(format!("the changes were not applied: {why}")))
    }

    /// Whether the launcher still listens.
    pub(crate) fn is_alive(&self) -> bool {
        let heard = self.control().and_then(|control| {
            sys::poll([(control, libc::POLLIN)], Some(0)).map_err(|error| broken("use the socket", error))
        });
        heard.is_ok_and(|[events]| events == 0)
    }

    fn control(&self) -> Result<BorrowedFd<'_>, ToolError> {
        self.control.as_ref().map(|control| control.as_fd()).ok_or_else(lost)
    }

    fn hear(&self) -> io::Result<(SetupReply, Option<OwnedFd>)> {
        let control = self.control().map_err(io::Error::other)?;
        let [ready] = sys::poll([(control, libc::POLLIN)], Some(PATIENCE_MS))?;
        if ready == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut buffer = vec![0; MAX_SETUP];
        let (count, mut fds) = socket::receive(control, &mut buffer)?;
        Ok((serde_json::from_slice(buffer.get(..count).unwrap_or_default())?, fds.pop()))
    }

    /// Sends a job on its way with its three streams.
    pub(crate) async fn submit(&self, job: &Job, stdio: [OwnedFd; 3]) -> Result<JobConnection, ToolError> {
        let body = serde_json::to_vec(job).map_err(|error| broken("write the job", error))?;
        if body.len() > wire::MAX_JOB {
            return Err(ToolError::invalid("the command and its environment are too large"));
        }
        let (ours, theirs) = socket::stream_pair().map_err(|error| broken("make a socket", error))?;
        sys::set_nonblocking(ours.as_fd(), true).map_err(|error| broken("use the socket", error))?;
        let mut message = (body.len() as u32).to_le_bytes().to_vec();
        message.extend_from_slice(&body);
        // What fits goes ahead, so that the job finds it there and need not wait for us again.
        let ahead = sys::write_once(ours.as_fd(), &message).unwrap_or(0);
        let [stdin, stdout, stderr] = &stdio;
        let fds = [theirs.as_fd(), stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        for wait in (0..).map(Duration::from_millis) {
            match socket::send(self.control()?, b"job", &fds) {
                Ok(_) => break,
                // Many at once: the keeper forks them one after the other.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ETOOMANYREFS))
                        && wait < Duration::from_millis(150) =>
                {
                    tokio::time::sleep(wait).await;
                }
                Err(error) => return Err(unavailable("the sandbox is gone").with_source(error)),
            }
        }
        drop((theirs, stdio));
        let mut stream =
            UnixStream::from_std(ours.into()).map_err(|error| broken("use the socket", error))?;
        // A job that already failed has hung up; its report is still there to be read.
        match stream.write_all(message.get(ahead..).unwrap_or_default()).await {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(broken("send the job", error)),
            _ => Ok(JobConnection { stream }),
        }
    }
}

impl Drop for LauncherSession {
    fn drop(&mut self) {
        let child = self.child.get_mut().map(Option::take).unwrap_or_default();
        let Some((mut child, live)) = child else { return };
        // Hanging up is the order to stop. The launcher ends within milliseconds; collecting it must not
        // block here.
        self.control = None;
        let private = self.private.take();
        let reap = move || {
            let ended = child.wait().ok().and_then(|status| status.code());
            if let (Some(folder), Some(errno)) = (private, ended.filter(|code| *code != 0)) {
                let mut left = lock(&LEFT);
                left.push((folder, io::Error::from_raw_os_error(errno)));
            }
            drop(live);
        };
        let _ = std::thread::Builder::new().name("sandbox-reaper".to_owned()).spawn(reap);
    }
}

/// The line to one job. Dropping it stops the job and everything it started.
#[derive(Debug)]
pub(crate) struct JobConnection {
    stream: UnixStream,
}

impl JobConnection {
    /// The next report; a lost line is an error.
    pub(crate) async fn event(&mut self) -> Result<JobEvent, ToolError> {
        let mut bytes = [0; JobEvent::SIZE];
        let heard = self.stream.read_exact(&mut bytes).await;
        heard.ok().and_then(|_| JobEvent::decode(bytes)).ok_or_else(lost)
    }

    /// The next report, with the descriptor that may come with it.
    pub(crate) async fn event_with_fd(&mut self) -> Result<(JobEvent, Option<OwnedFd>), ToolError> {
        let mut bytes = [0; JobEvent::SIZE];
        let (count, mut fds) = self
            .stream
            .async_io(Interest::READABLE, || socket::receive(self.stream.as_fd(), &mut bytes))
            .await
            .map_err(|_| lost())?;
        let event = (count == JobEvent::SIZE).then(|| JobEvent::decode(bytes)).flatten();
        Ok((event.ok_or_else(lost)?, fds.pop()))
    }

    /// Orders something.
    pub(crate) async fn order(&mut self, command: wire::JobCommand) -> io::Result<()> {
        self.stream.write_all(&command.encode()).await
    }

    /// Both directions, to be used apart.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream
    }
}

fn lost() -> ToolError {
    unavailable("the sandbox ended while the command was running")
}

/// An error of the sandbox itself.
pub(crate) fn unavailable(message: impl Into<String>) -> ToolError {
    ToolError::of(ErrorKind::SandboxUnavailable, message)
}

fn broken(what: &str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ToolError {
    unavailable(format!("could not {what}")).with_source(error)
}

/// Standard input at its end.
pub(crate) fn nothing() -> io::Result<OwnedFd> {
    Ok(File::options().read(true).write(true).open("/dev/null")?.into())
}
