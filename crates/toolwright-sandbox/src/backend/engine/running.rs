//! A command inside the container, from before it starts until nothing of it is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use toolwright_core::ExecRequest;

use super::super::exec;
use super::super::shared::{ignore, look_up};
use super::Inner;
use crate::sys;

/// What finds and kills everything of one command.
pub(super) const SWEEP: &str = include_str!("sweep.sh");

/// How long the end of what a command left behind is waited for.
const SWEEP_PATIENCE: Duration = Duration::from_millis(450);
/// How long to wait for it after the caller has dropped the command.
const LAST_PATIENCE: Duration = Duration::from_secs(10);
/// When a command that may not have started yet is looked for again.
const SECOND_LOOKS: [Duration; 3] =
    [Duration::from_millis(150), Duration::from_millis(800), Duration::from_secs(3)];

/// A command on its way through the container. Dropping it kills the command.
pub(super) struct ContainerCommand {
    pub(super) inner: Arc<Inner>,
    pub(super) mark: u64,
    /// The word that only the entering script knows.
    pub(super) word: String,
    pub(super) user: Option<String>,
    /// The command's first process inside, once it is known.
    root: AtomicI32,
    swept: bool,
}

impl ContainerCommand {
    pub(super) fn new(inner: &Arc<Inner>, user: Option<String>) -> Self {
        let word = format!("{:016x}", sys::random_u64());
        let (inner, mark) = (inner.clone(), inner.clerk.begin());
        ContainerCommand { inner, mark, word, user, root: AtomicI32::new(0), swept: false }
    }

    pub(super) fn root(&self) -> i32 {
        self.root.load(Ordering::Acquire)
    }

    /// The command's first process is known.
    pub(super) fn started(&self, pid: i32) {
        self.root.store(pid, Ordering::Release);
    }

    /// Ends a command with its first process: the client reads for as long as any process holds the output
    /// open.
    pub(super) async fn watch<T>(&self, work: impl Future<Output = T>) -> T {
        let clear = async {
            self.inner.clerk.outlive(|| self.root()).await;
            sweep(self.inner.clone(), self.mark, self.root(), self.user.clone()).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            done = work => done,
            () = clear => std::future::pending().await,
        }
    }

    /// Kills leftover processes and waits, for a bounded time, until they are gone.
    pub(super) async fn end(mut self) {
        self.swept = true;
        self.inner.clerk.end(self.mark);
        self.sweep().await;
    }

    pub(super) async fn sweep(&self) {
        let sweep = sweep(self.inner.clone(), self.mark, self.root(), self.user.clone());
        let _ = timeout(SWEEP_PATIENCE, sweep).await;
    }
}

impl Drop for ContainerCommand {
    fn drop(&mut self) {
        if self.swept {
            return;
        }
        self.inner.clerk.end(self.mark);
        let (inner, mark, root, user) = (self.inner.clone(), self.mark, self.root(), self.user.take());
        // Without a runtime to run this on, the client goes as well, and the container with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // A container that does not answer must not be kept for it.
                let sweep = || timeout(LAST_PATIENCE, sweep(inner.clone(), mark, root, user.clone()));
                let _ = sweep().await;
                for wait in SECOND_LOOKS.into_iter().filter(|_| root == 0) {
                    tokio::time::sleep(wait).await;
                    let _ = sweep().await;
                }
            });
        }
    }
}

async fn sweep(inner: Arc<Inner>, mark: u64, root: i32, user: Option<String>) {
    let Some(user) = user else { return inner.clerk.sweep(mark, root).await };
    // Process 1 may not kill another user's processes; that user may.
    let order = inner.clerk.order(mark, root);
    let script = format!("{SWEEP}\n\"$@\"");
    let mut command = inner.client_words(["exec", "--user", &user]);
    command.extend([inner.name.clone(), "/bin/sh".into(), "-c".into(), script, "sh".into()]);
    command.extend(order.splitn(5, ' ').map(str::to_owned));
    if let Ok(job) = inner.client.job(&ExecRequest::new(command), look_up) {
        let _ = exec::run(&inner.client.session, &job, None, None, ignore(), ignore()).await;
    }
}
