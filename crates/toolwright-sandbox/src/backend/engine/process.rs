//! Long-lived processes in a container: the client's streams, with the entering script's first line taken
//! out.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use toolwright_core::{
    DynProcessHandle, ProcessHandle, SandboxProcess, SpawnRequest, TerminalSize, ToolError,
};

use super::super::spawn;
use super::entry_report::Entered;
use super::running::ContainerCommand;
use super::{Inner, shown};
use crate::launcher::client::unavailable;

/// How long a process may take to start.
const START_PATIENCE: Duration = Duration::from_secs(30);

type ByteStream = Box<dyn AsyncRead + Send + Unpin>;

pub(super) async fn spawn(inner: &Arc<Inner>, request: SpawnRequest) -> Result<SandboxProcess, ToolError> {
    inner.covered.check()?;
    inner.clerk.settle().await;
    let running = ContainerCommand::new(inner, request.exec.user.clone());
    let (options, size): (&[&str], _) = match request.terminal {
        Some(size) => (&["--interactive", "--tty"], (size.rows, size.columns)),
        None => (&["--interactive"], (0, 0)),
    };
    let (mut job, folder) = inner.command(&running, &request.exec, options, size)?;
    job.terminal = request.terminal;
    job.announce = true;
    let mut process =
        spawn::start(inner.client.session.clone(), job, inner.layers.clone(), spawn::At::Relayed, None)
            .await?;
    let stream = if request.terminal.is_some() { &mut process.stdout } else { &mut process.stderr };
    let said = stream.take().ok_or_else(|| unavailable("the client has no streams"))?;
    let mut entered = Entered::Waiting(Vec::new());
    let heard = tokio::time::timeout(START_PATIENCE, listen(said, &running, &mut entered)).await;
    *stream = Some(heard.map_err(|_| unavailable("the container did not answer"))?);
    let name = shown(request.exec.command.first().map(String::as_str).unwrap_or_default());
    if let Some(failure) = entered.failure(&name, &folder, request.exec.user.as_deref()) {
        return Err(failure);
    }
    let SandboxProcess { stdin, stdout, stderr, handle } = process;
    Ok(SandboxProcess {
        stdin,
        stdout,
        stderr,
        handle: Box::new(ContainerProcess { client: handle, running }),
    })
}

/// Reads until the first line was understood or the stream is over, and gives back what follows it.
async fn listen(mut from: ByteStream, running: &ContainerCommand, entered: &mut Entered) -> ByteStream {
    let mut buffer = [0; 1024];
    while let Ok(count) = from.read(&mut buffer).await {
        let rest = entered.take(running, buffer.get(..count).unwrap_or_default()).to_vec();
        if count == 0 || !matches!(entered, Entered::Waiting(_)) {
            return Box::new(Cursor::new(rest).chain(from));
        }
    }
    from
}

struct ContainerProcess {
    client: Box<DynProcessHandle>,
    running: ContainerCommand,
}

impl ProcessHandle for ContainerProcess {
    async fn wait(&self) -> Result<i32, ToolError> {
        self.running.watch(self.client.wait()).await
    }

    async fn kill(&self) {
        self.running.sweep().await;
        self.client.kill().await;
    }

    async fn signal(&self, signal: i32) -> Result<(), ToolError> {
        let number = u8::try_from(signal).ok().filter(|number| (1..=64).contains(number));
        let number = number.ok_or_else(|| ToolError::invalid(format!("there is no signal {signal}")))?;
        self.running.inner.clerk.signal(number, self.running.root()).await;
        Ok(())
    }

    fn resize(&self, size: TerminalSize) -> Result<(), ToolError> {
        self.running.inner.clerk.resize(size.rows, size.columns, self.running.root());
        self.client.resize(size)
    }

    fn layers(&self) -> &[String] {
        self.client.layers()
    }
}
