//! A running worker: one process, the calls that wait for it, and how it ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use toolwright_core::{
    CallEffect, DynProcessHandle, DynSandbox, ProcessHandle as _, SpawnRequest, ToolContext, ToolError,
};

use crate::definition::Description;
use crate::frame::{self, WorkerFrame};

/// How long a cancelled call may take to end before the worker is killed.
const GRACE: Duration = Duration::from_secs(1);
/// The most bytes of output that are kept and reported of one call.
const MAX_OUTPUT: usize = 1 << 20;
/// The most progress reports and questions of one call.
const MAX_EVENTS: usize = 10_000;
/// What is kept of what the interpreter prints before the worker runs.
const MAX_STDERR: u64 = 16 << 10;

/// The program of the worker, in the order in which its modules need one another.
const MODULES: [(&str, &str); 8] = [
    ("_toolwright_wire", include_str!("worker/wire.py")),
    ("_toolwright_docstring", include_str!("worker/docstring.py")),
    ("_toolwright_schema", include_str!("worker/schema.py")),
    ("_toolwright_values", include_str!("worker/values.py")),
    ("_toolwright_results", include_str!("worker/results.py")),
    ("_toolwright_api", include_str!("worker/api.py")),
    ("_toolwright_discover", include_str!("worker/discover.py")),
    ("_toolwright_main", include_str!("worker/main.py")),
];

/// What an interpreter runs to become a worker.
pub(crate) const BOOTSTRAP: &str = include_str!("worker/bootstrap.py");

/// What happens in a call.
#[derive(Debug)]
pub(crate) enum CallEvent {
    Output {
        stream: String,
        text: String,
    },
    Progress {
        done: f64,
        total: Option<f64>,
        message: String,
    },
    Ask {
        number: u64,
        question: Value,
    },
    /// The call has ended, well or not.
    End(WorkerFrame),
    /// The worker has ended, for this reason.
    Gone(String),
}

/// Calls that wait for the worker, and why there can be no more.
#[derive(Default)]
struct WaitingCalls {
    calls: HashMap<u64, Call>,
    gone: Option<String>,
}

struct Call {
    events: mpsc::UnboundedSender<CallEvent>,
    output: usize,
    count: usize,
}

/// What the reader of the worker and its calls share.
struct Shared {
    handle: Box<DynProcessHandle>,
    waiting: Mutex<WaitingCalls>,
    /// How many calls have been stopped and have not ended.
    stopping: watch::Sender<usize>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, WaitingCalls> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why the worker ends, if that is not known yet, and kills it with everything it started.
    async fn end(&self, reason: &str) {
        let calls = {
            let mut waiting = self.waiting();
            waiting.gone.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut waiting.calls)
        };
        for call in calls.into_values() {
            // A call that has ended by itself listens no longer.
            let _ = call.events.send(CallEvent::Gone(reason.to_owned()));
        }
        self.handle.kill().await;
    }
}

/// A running worker. Dropping it kills its process.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    input: Arc<tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>>,
    next: AtomicU64,
    reader: JoinHandle<()>,
    pub(crate) description: Description,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Worker {
    /// Starts a worker and has it import its file. The import must end in this time.
    pub(crate) async fn start(
        sandbox: &DynSandbox,
        request: SpawnRequest,
        file: &str,
        patience: Duration,
    ) -> Result<Self, ToolError> {
        let mut process = sandbox.spawn(request).await?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(ToolError::new("the sandbox gave the Python worker no pipes"));
        };
        let stderr = process.stderr.take();
        let input = Arc::new(tokio::sync::Mutex::new(input));
        let shared = Arc::new(Shared {
            handle: process.handle,
            waiting: Mutex::default(),
            stopping: watch::Sender::new(0),
        });
        let (ready, described) = oneshot::channel();
        let stderr_tail = tokio::spawn(head(stderr));
        let reader = tokio::spawn(read(output, shared.clone(), ready));
        let mut worker = Worker {
            shared,
            input,
            next: AtomicU64::new(1),
            reader,
            description: Description { tools: Vec::new(), left_out: Vec::new(), python: String::new() },
        };
        let modules: Vec<&str> = MODULES.iter().map(|(name, _)| *name).collect();
        let sources: Vec<&[u8]> = MODULES.iter().map(|(_, source)| source.as_bytes()).collect();
        worker.send(json!({"type": "start", "file": file, "modules": modules}), &sources).await?;
        match tokio::time::timeout(patience, described).await {
            Ok(Ok(description)) => worker.description = description?,
            Ok(Err(_)) => {
                let tail = stderr_tail.await.unwrap_or_default();
                let why = worker.shared.waiting().gone.clone();
                let why = why.unwrap_or_else(|| "it ended before it had imported the file".to_owned());
                let error = ToolError::new(format!("the Python worker could not start: {why}"));
                let tail = tail.trim();
                return Err(if tail.is_empty() { error } else { error.hint(format!("it printed:\n{tail}")) });
            }
            Err(_) => {
                let seconds = patience.as_secs();
                let message = format!("importing the file took more than {seconds} s");
                worker.shared.end(&message).await;
                let hint = "move what takes long out of the top level of the file, or raise `import_timeout`";
                return Err(ToolError::new(message).hint(hint));
            }
        }
        Ok(worker)
    }

    /// Why the worker takes no more calls.
    pub(crate) fn gone(&self) -> Option<String> {
        self.shared.waiting().gone.clone()
    }

    /// Applies what functions have changed in folders, where the sandbox stages changes.
    pub(crate) async fn commit(&self, context: &ToolContext) -> Result<CallEffect, ToolError> {
        self.shared.handle.commit(Some(Arc::new(context.clone()))).await
    }

    /// Waits until calls that were stopped have ended, or the worker has ended with them: a new call must not
    /// be killed for an old one.
    pub(crate) async fn settled(&self) {
        // The sender is here, so waiting cannot fail.
        let _ = self.shared.stopping.subscribe().wait_for(|stopping| *stopping == 0).await;
    }

    /// Begins a call.
    pub(crate) async fn begin(&self, tool: &str, arguments: &Value) -> Result<RunningCall, ToolError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (events, receiver) = mpsc::unbounded_channel();
        {
            let mut waiting = self.shared.waiting();
            if let Some(reason) = &waiting.gone {
                return Err(gone(reason));
            }
            waiting.calls.insert(number, Call { events, output: 0, count: 0 });
        }
        let call = RunningCall {
            number,
            events: receiver,
            shared: self.shared.clone(),
            input: self.input.clone(),
            ended: false,
        };
        self.send(json!({"type": "call", "id": number, "tool": tool, "arguments": arguments}), &[]).await?;
        Ok(call)
    }

    async fn send(&self, header: Value, attachments: &[&[u8]]) -> Result<(), ToolError> {
        send(&self.input, header, attachments).await
    }
}

async fn send(
    input: &tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>,
    header: Value,
    attachments: &[&[u8]],
) -> Result<(), ToolError> {
    let bytes = frame::encode(header, attachments).map_err(|error| ToolError::new(error.to_string()))?;
    let mut input = input.lock().await;
    let sent = async {
        input.write_all(&bytes).await?;
        input.flush().await
    };
    sent.await.map_err(|error| gone(&format!("it takes no more input ({error})")))
}

/// The error of a call whose worker has ended.
pub(crate) fn gone(reason: &str) -> ToolError {
    ToolError::new(format!("the Python worker ended: {reason}"))
        .hint("the next call starts a new one; what the functions kept in memory is lost")
}

/// A call that the worker makes. Dropping it before its end cancels it.
pub(crate) struct RunningCall {
    number: u64,
    events: mpsc::UnboundedReceiver<CallEvent>,
    shared: Arc<Shared>,
    input: Arc<tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>>,
    ended: bool,
}

impl RunningCall {
    /// The next event. After an end there are no others.
    pub(crate) async fn next(&mut self) -> CallEvent {
        let event = self.events.recv().await;
        let event = event.unwrap_or_else(|| CallEvent::Gone("its connection was closed".to_owned()));
        self.ended = matches!(event, CallEvent::End(_) | CallEvent::Gone(_));
        event
    }

    /// Answers a question.
    pub(crate) async fn answer(
        &self,
        number: u64,
        answer: Result<Value, ToolError>,
    ) -> Result<(), ToolError> {
        let header = match answer {
            Ok(value) => json!({"type": "answer", "number": number, "value": value}),
            Err(error) => json!({
                "type": "answer", "number": number, "error": error.message(),
                "kind": error.kind().as_str(), "hint": error.hint_text(),
            }),
        };
        send(&self.input, header, &[]).await
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (_, empty) = mpsc::unbounded_channel();
        let mut events = std::mem::replace(&mut self.events, empty);
        let (shared, input, number) = (self.shared.clone(), self.input.clone(), self.number);
        shared.stopping.send_modify(|stopping| *stopping += 1);
        runtime.spawn(async move {
            let stopped = async {
                send(&input, json!({"type": "cancel", "id": number}), &[]).await?;
                while let Some(event) = events.recv().await {
                    match event {
                        CallEvent::End(_) | CallEvent::Gone(_) => break,
                        // Nobody is left to answer: the function gets an error in place of its wait.
                        CallEvent::Ask { number, .. } => {
                            let error = json!({
                                "type": "answer", "number": number, "kind": "cancelled",
                                "error": "the call was cancelled",
                            });
                            send(&input, error, &[]).await?;
                        }
                        _ => {}
                    }
                }
                Ok::<_, ToolError>(())
            };
            if !matches!(tokio::time::timeout(GRACE, stopped).await, Ok(Ok(()))) {
                let reason = "a call was stopped and did not end, so its process was killed";
                shared.end(reason).await;
            }
            shared.stopping.send_modify(|stopping| *stopping -= 1);
        });
    }
}

/// Reads the beginning of what the interpreter prints, and drops the rest.
async fn head(stderr: Option<Box<dyn AsyncRead + Send + Unpin>>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut bytes = Vec::new();
    if (&mut stderr).take(MAX_STDERR).read_to_end(&mut bytes).await.is_ok() {
        let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Hands what the worker sends to the calls, until its end.
async fn read(
    mut output: Box<dyn AsyncRead + Send + Unpin>,
    shared: Arc<Shared>,
    ready: oneshot::Sender<Result<Description, ToolError>>,
) {
    let mut ready = Some(ready);
    let reason = loop {
        match frame::read(&mut output).await {
            Ok(Some(frame)) => {
                if let Err(reason) = take(&shared, &mut ready, frame) {
                    break reason;
                }
            }
            Ok(None) => break ended(&shared).await,
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                break format!("it sent what is not a frame ({error})");
            }
            Err(_) => break ended(&shared).await,
        }
    };
    shared.end(&reason).await;
}

/// How the process ended.
async fn ended(shared: &Shared) -> String {
    match tokio::time::timeout(GRACE, shared.handle.wait()).await {
        Ok(Ok(code)) if code < 0 => format!("signal {}", -i64::from(code)),
        Ok(Ok(code)) => format!("its process exited with code {code}"),
        Ok(Err(error)) => error.message().to_owned(),
        Err(_) => "it closed its connection".to_owned(),
    }
}

/// Takes one frame; the error says why no more are taken.
fn take(
    shared: &Shared,
    ready: &mut Option<oneshot::Sender<Result<Description, ToolError>>>,
    frame: WorkerFrame,
) -> Result<(), String> {
    let header = &frame.header;
    let text = |key: &str| header.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = text("type");
    match kind.as_str() {
        "tools" => {
            let description = serde_json::from_value(frame.header)
                .map_err(|error| format!("its description of the file cannot be read ({error})"))?;
            if let Some(ready) = ready.take() {
                let _ = ready.send(Ok(description));
            }
            return Ok(());
        }
        "failed" => {
            if let Some(ready) = ready.take() {
                let message = format!("the file cannot be imported: {}", text("message"));
                let _ = ready.send(Err(ToolError::new(message).hint(text("trace"))));
            }
            return Ok(());
        }
        _ => {}
    }
    let Some(number) = header.get("id").and_then(Value::as_u64) else {
        // Output that belongs to no call.
        return Ok(());
    };
    let mut waiting = shared.waiting();
    let Some(call) = waiting.calls.get_mut(&number) else { return Ok(()) };
    let event = match kind.as_str() {
        "output" => {
            let text = text("text");
            call.output = call.output.saturating_add(text.len());
            if call.output > MAX_OUTPUT {
                return Ok(());
            }
            CallEvent::Output { stream: self::text(header, "stream"), text }
        }
        "progress" | "ask" if call.count >= MAX_EVENTS => {
            if kind == "progress" {
                return Ok(());
            }
            return Err(format!("one call asked more than {MAX_EVENTS} questions"));
        }
        "progress" => {
            call.count += 1;
            let done = header.get("done").and_then(Value::as_f64).unwrap_or_default();
            CallEvent::Progress {
                done,
                total: header.get("total").and_then(Value::as_f64),
                message: text("message"),
            }
        }
        "ask" => {
            call.count += 1;
            let question = header.get("number").and_then(Value::as_u64);
            let Some(question) = question else { return Err("it asked without a number".to_owned()) };
            CallEvent::Ask { number: question, question: frame.header }
        }
        "result" | "error" => {
            if let Some(call) = waiting.calls.remove(&number) {
                let _ = call.events.send(CallEvent::End(frame));
            }
            return Ok(());
        }
        other => return Err(format!("it sent a frame of the unknown type `{}`", other.escape_debug())),
    };
    // The call may have been dropped meanwhile.
    let _ = call.events.send(event);
    Ok(())
}

fn text(header: &Value, key: &str) -> String {
    header.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}
