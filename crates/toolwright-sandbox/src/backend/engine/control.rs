//! The control channel to process 1 of a container: the marks of live commands, and one order at a time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use toolwright_core::{ExecRequest, SandboxProcess, ToolError};
use toolwright_util::lock;

use super::super::shared::{LauncherHandle, look_up};
use super::super::spawn;
use crate::launcher::client::unavailable;
use crate::policy::Layer;

/// How long a container may take to start.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Polling interval for a command whose output another process holds open.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long a new command waits for leftovers of earlier ones to end.
const SETTLE_PATIENCE: Duration = Duration::from_secs(10);
/// How many orders may wait.
const WAITING: usize = 4096;

#[derive(Debug)]
pub(super) struct Clerk {
    orders: mpsc::Sender<Order>,
    marks: Arc<Mutex<Marks>>,
}

/// The numbers commands carry in their environment.
#[derive(Debug, Default)]
struct Marks {
    next: u64,
    live: BTreeSet<u64>,
}

/// A request to process 1.
#[derive(Debug)]
enum OrderKind {
    Sweep { mark: u64, root: i32 },
    Alive { root: i32 },
    Signal { number: u8, root: i32 },
    Size { rows: u16, columns: u16, root: i32 },
}

#[derive(Debug)]
struct Order {
    kind: OrderKind,
    /// Receives the four-letter reply.
    done: oneshot::Sender<[u8; 4]>,
}

impl Clerk {
    /// Starts the container and reads which layers protect it.
    pub(super) async fn start(
        client: &LauncherHandle,
        command: Vec<String>,
    ) -> Result<(Clerk, Vec<Layer>), ToolError> {
        let program = command.first().cloned().unwrap_or_default();
        let mut job = client.job(&ExecRequest::new(command), look_up)?;
        job.announce = true;
        job.grace = super::GRACE;
        let mut process = spawn::start(client.session.clone(), job, Vec::new(), spawn::At::Here, None)
            .await
            .map_err(|error| unavailable(format!("`{program}` cannot be started")).with_source(error))?;
        let gone = || unavailable("the client has no streams");
        let stdout = process.stdout.take().ok_or_else(gone)?;
        let mut stdout = BufReader::new(stdout.take(u64::MAX));
        let mut stderr = process.stderr.take().ok_or_else(gone)?;
        let mut layers = vec![
            Layer::MountNamespace,
            Layer::PidNamespace,
            Layer::NetNamespace,
            Layer::IpcNamespace,
            Layer::UtsNamespace,
            Layer::ProcessLimits,
        ];
        let greeting = async {
            loop {
                let mut line = String::new();
                stdout.get_mut().set_limit(4096);
                if stdout.read_line(&mut line).await.unwrap_or(0) == 0 {
                    return false;
                }
                match line.trim_end() {
                    "ready" => return true,
                    line => layers.extend(layer(line)),
                }
            }
        };
        let ready = tokio::time::timeout(START_PATIENCE, greeting).await;
        if !matches!(ready, Ok(true)) {
            let mut words = Vec::new();
            let mut stderr = stderr.take(4096);
            let _ = tokio::time::timeout(Duration::from_secs(1), stderr.read_to_end(&mut words)).await;
            let words = String::from_utf8_lossy(&words).trim().to_owned();
            let words = if words.is_empty() { "it did not answer".to_owned() } else { words };
            return Err(unavailable(format!("`{program}` did not start a container: {words}")));
        }
        layers.sort();
        let (orders, waiting) = mpsc::channel(WAITING);
        let marks = Arc::new(Mutex::new(Marks { next: 1, live: BTreeSet::new() }));
        let orders_loop = OrderLoop { marks: marks.clone(), process, stdout, waiting };
        tokio::spawn(orders_loop.serve());
        tokio::spawn(async move { tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await });
        Ok((Clerk { orders, marks }, layers))
    }

    /// A mark for a new command.
    pub(super) fn begin(&self) -> u64 {
        let mut marks = lock(&self.marks);
        let mark = marks.next;
        marks.next += 1;
        marks.live.insert(mark);
        mark
    }

    /// The command is over; processes that still carry its mark are leftovers.
    pub(super) fn end(&self, mark: u64) {
        lock(&self.marks).live.remove(&mark);
    }

    /// The order to sweep, as process 1 reads it.
    pub(super) fn order(&self, mark: u64, root: i32) -> String {
        lock(&self.marks).order(mark, root)
    }

    /// Kills what a command left behind; returns when that is done.
    pub(super) async fn sweep(&self, mark: u64, root: i32) {
        self.ask(OrderKind::Sweep { mark, root }).await;
    }

    /// Signals the group in the foreground of a command.
    pub(super) async fn signal(&self, number: u8, root: i32) {
        self.ask(OrderKind::Signal { number, root }).await;
    }

    /// Gives a command's terminal another size, some time soon.
    pub(super) fn resize(&self, rows: u16, columns: u16, root: i32) {
        let (done, _) = oneshot::channel();
        let _ = self.orders.try_send(Order { kind: OrderKind::Size { rows, columns, root }, done });
    }

    /// Returns when the command's first process has ended.
    pub(super) async fn outlive(&self, root: impl Fn() -> i32) {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            let root = root();
            if root != 0 && self.ask(OrderKind::Alive { root }).await == Some(*b"gone") {
                return;
            }
        }
    }

    /// Waits, at most [`SETTLE_PATIENCE`], until leftover processes are gone: a new command must not be taken
    /// for one of them.
    pub(super) async fn settle(&self) {
        let _ = tokio::time::timeout(SETTLE_PATIENCE, self.ask(OrderKind::Alive { root: 1 })).await;
    }

    /// Sends an order and waits for the reply; `None` when the container has ended.
    async fn ask(&self, kind: OrderKind) -> Option<[u8; 4]> {
        let (done, finished) = oneshot::channel();
        self.orders.send(Order { kind, done }).await.ok()?;
        finished.await.ok()
    }
}

impl Marks {
    fn order(&self, mark: u64, root: i32) -> String {
        let live: Vec<String> = self.live.iter().map(u64::to_string).collect();
        format!("sweep {} {mark} {root} {}", self.next, live.join(" "))
    }
}

/// The layer that a line of the handshake reports.
fn layer(line: &str) -> Option<Layer> {
    let (name, value) = line.split_once(' ')?;
    let number = value.trim().parse::<u64>().ok();
    match name {
        "Seccomp:" => (number == Some(2)).then_some(Layer::Seccomp),
        "NoNewPrivs:" => (number == Some(1)).then_some(Layer::NoNewPrivileges),
        "CapBnd:" => value.trim().chars().all(|digit| digit == '0').then_some(Layer::NoCapabilities),
        "Users:" => (number? < u64::from(u32::MAX)).then_some(Layer::UserNamespace),
        // Version 1 says "no limit" with a number near the largest.
        "Memory:" => (number? < 1 << 60).then_some(Layer::MemoryCgroup),
        "Processes:" => number.map(|_| Layer::PidsCgroup),
        _ => None,
    }
}

/// The task that writes orders to process 1 and reads its replies.
struct OrderLoop<R> {
    marks: Arc<Mutex<Marks>>,
    /// The container ends when this is dropped.
    process: SandboxProcess,
    stdout: R,
    waiting: mpsc::Receiver<Order>,
}

impl<R: tokio::io::AsyncBufRead + Unpin> OrderLoop<R> {
    async fn serve(mut self) {
        while let Some(Order { kind, done }) = self.waiting.recv().await {
            let line = match kind {
                OrderKind::Sweep { mark, root } => lock(&self.marks).order(mark, root),
                OrderKind::Alive { root } => format!("alive {root}"),
                OrderKind::Signal { number, root } => format!("signal {number} {root}"),
                OrderKind::Size { rows, columns, root } => format!("size {rows} {columns} {root}"),
            };
            let Some(stdin) = &mut self.process.stdin else { return };
            if stdin.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                return;
            }
            // The reply to every order is four letters and a newline.
            let mut answer = [0; 5];
            if self.stdout.read_exact(&mut answer).await.is_err() {
                return;
            }
            let [a, b, c, d, _] = answer;
            let _ = done.send([a, b, c, d]);
        }
    }
}
