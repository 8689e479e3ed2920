//! Long-lived processes: shells, servers, anything whose streams the caller keeps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::unix::pipe;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, watch};
use toolwright_core::{CallEffect, EffectJudge, ProcessHandle, SandboxProcess, TerminalSize, ToolError};

use super::exec::failure;
use super::keyboard::Keyboard;
use super::staged::OpenStage;
use crate::launcher::client::{LauncherSession, nothing, unavailable};
use crate::launcher::wire::{Job, JobCommand, JobEvent};
use crate::sys;

/// Where the terminal of a process is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Here,
    /// Behind that of the client which is started here.
    Relayed,
}

/// Starts a job and hands its streams out.
pub(crate) async fn start(
    session: Arc<LauncherSession>,
    job: Job,
    layers: Vec<String>,
    at: At,
    stage: Option<OpenStage>,
) -> Result<SandboxProcess, ToolError> {
    let broken = |error: io::Error| unavailable("could not make the streams").with_source(error);
    let mut ours = None;
    let theirs = if job.terminal.is_some() {
        [nothing().map_err(broken)?, nothing().map_err(broken)?, nothing().map_err(broken)?]
    } else {
        let ((stdin, write), (read_out, stdout), (read_err, stderr)) =
            (|| Ok((sys::pipe()?, sys::pipe()?, sys::pipe()?)))().map_err(broken)?;
        ours = Some((write, read_out, read_err));
        [stdin, stdout, stderr]
    };
    let mut line = session.submit(&job, theirs).await?;
    let master = match line.event_with_fd().await? {
        (JobEvent::Started, master) => master,
        (JobEvent::Failed(stage, errno), _) => return Err(failure(&job, stage, errno)),
        (JobEvent::Ended(_), _) => return Err(unavailable("the process ended before it started")),
    };
    let (reports, orders) = line.into_stream().into_split();
    let (tell, status) = watch::channel(None);
    let stage = stage.map(Arc::new);
    let listener = tokio::spawn(listen(reports, tell, stage.clone()));

    let mut terminal = None;
    let (stdin, stdout, stderr) = match (ours, master) {
        (Some((stdin, stdout, stderr)), _) => {
            let stdin = pipe::Sender::from_owned_fd(stdin).map_err(broken)?;
            let stdout = pipe::Receiver::from_owned_fd(stdout).map_err(broken)?;
            let stderr = pipe::Receiver::from_owned_fd(stderr).map_err(broken)?;
            let stdin: Box<dyn AsyncWrite + Send + Unpin> = Box::new(stdin);
            let stdout: Box<dyn AsyncRead + Send + Unpin> = Box::new(stdout);
            let stderr: Box<dyn AsyncRead + Send + Unpin> = Box::new(stderr);
            (Some(stdin), Some(stdout), Some(stderr))
        }
        (None, Some(master)) => {
            sys::set_nonblocking(master.as_fd(), true).map_err(broken)?;
            terminal = Some(master.try_clone().map_err(broken)?);
            let copy = master.try_clone().map_err(broken)?;
            let stdin: Box<dyn AsyncWrite + Send + Unpin> = {
                let terminal = Terminal::new(copy).map_err(broken)?;
                Box::new(Keyboard::new(terminal, at == At::Relayed))
            };
            let stdout: Box<dyn AsyncRead + Send + Unpin> = Box::new(Terminal::new(master).map_err(broken)?);
            (Some(stdin), Some(stdout), None)
        }
        (None, None) => return Err(unavailable("the terminal did not arrive")),
    };
    let orders = Mutex::new(orders);
    let handle = SpawnedProcess { orders, status, terminal, layers, listener, stage, _session: session };
    Ok(SandboxProcess { stdin, stdout, stderr, handle: Box::new(handle) })
}

/// How a process ended: its code, or that the sandbox was lost.
type ExitReport = Option<Result<i32, ()>>;

async fn listen(mut reports: OwnedReadHalf, tell: watch::Sender<ExitReport>, stage: Option<Arc<OpenStage>>) {
    let mut bytes = [0; JobEvent::SIZE];
    let status = loop {
        if reports.read_exact(&mut bytes).await.is_err() {
            break Err(());
        }
        match JobEvent::decode(bytes) {
            Some(JobEvent::Started) => {}
            Some(JobEvent::Ended(code)) => break Ok(code),
            Some(JobEvent::Failed(..)) | None => break Err(()),
        }
    };
    if let Some(stage) = stage {
        // A caller that waits for the end finds what the process has changed.
        stage.settle_at_end().await;
    }
    tell.send_replace(Some(status));
}

struct SpawnedProcess {
    orders: Mutex<OwnedWriteHalf>,
    status: watch::Receiver<ExitReport>,
    terminal: Option<OwnedFd>,
    layers: Vec<String>,
    listener: tokio::task::JoinHandle<()>,
    /// The layer that takes its changes.
    stage: Option<Arc<OpenStage>>,
    /// The sandbox lives as long as its processes.
    _session: Arc<LauncherSession>,
}

impl Drop for SpawnedProcess {
    fn drop(&mut self) {
        let kill = JobCommand::Kill.encode();
        if self.stage.is_some() && self.orders.get_mut().try_write(&kill).is_ok() {
            // The listener commits what the process has changed once it is dead.
            return;
        }
        // Both halves of the connection must be dropped for the job to see that its reader is gone.
        self.listener.abort();
    }
}

impl SpawnedProcess {
    async fn ended(&self) -> Result<i32, ToolError> {
        let mut status = self.status.clone();
        let seen = status.wait_for(Option::is_some).await.ok().and_then(|status| *status);
        match seen {
            Some(Ok(code)) => Ok(code),
            Some(Err(())) | None => Err(unavailable("the sandbox ended while the process was running")),
        }
    }

    async fn order(&self, command: JobCommand) -> Result<(), ToolError> {
        let sent = self.orders.lock().await.write_all(&command.encode()).await;
        sent.map_err(|error| ToolError::new("the process has ended").with_source(error))
    }
}

impl ProcessHandle for SpawnedProcess {
    async fn wait(&self) -> Result<i32, ToolError> {
        self.ended().await
    }

    async fn kill(&self) {
        let _ = self.order(JobCommand::Kill).await;
        let _ = tokio::time::timeout(std::time::Duration::from_millis(500), self.ended()).await;
    }

    async fn signal(&self, signal: i32) -> Result<(), ToolError> {
        let number = u8::try_from(signal).ok().filter(|number| (1..=64).contains(number));
        let number = number.ok_or_else(|| ToolError::invalid(format!("there is no signal {signal}")))?;
        self.order(JobCommand::Signal(number)).await
    }

    fn resize(&self, size: TerminalSize) -> Result<(), ToolError> {
        match &self.terminal {
            Some(terminal) => Ok(sys::set_terminal_size(terminal.as_fd(), size.rows, size.columns)?),
            None => Ok(()),
        }
    }

    fn layers(&self) -> &[String] {
        &self.layers
    }

    async fn commit(&self, judge: Option<Arc<dyn EffectJudge>>) -> Result<CallEffect, ToolError> {
        match &self.stage {
            Some(stage) => stage.settle_now(judge).await,
            None => Ok(CallEffect::default()),
        }
    }
}

/// The master side of a terminal. It reports an error once its last user is gone; that is its end of file.
pub(crate) struct Terminal {
    fd: AsyncFd<OwnedFd>,
}

impl Terminal {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        // SAFETY: `OwnedFd` keeps the same descriptor open for as long as it is registered, and hands it to
        // no other owner.
        Ok(Terminal { fd: unsafe { AsyncFd::register(fd) }? })
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.get_ref().as_fd()
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = match self.fd.poll_read_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => return Poll::Pending,
            };
            let space = buffer.initialize_unfilled();
            match ready.try_io(|fd| sys::read(fd.get_ref().as_fd(), space)) {
                Ok(Ok(count)) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.raw_os_error() == Some(libc::EIO) => return Poll::Ready(Ok(())),
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = match self.fd.poll_write_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => return Poll::Pending,
            };
            match ready.try_io(|fd| sys::write_once(fd.get_ref().as_fd(), bytes)) {
                Ok(result) => return Poll::Ready(result),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
