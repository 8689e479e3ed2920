//! A Python that runs one program after another and keeps its variables, in the sandbox.
//!
//! What a program prints comes as it is, up to a mark that was made up for it; a program that finds the mark
//! out can only end its own output with it. Python and everything it started end with the session: when a
//! program runs out of time, when its call is given up, when the run ends.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};
use toolwright_core::{
    DynProcessHandle, DynSandbox, ErrorKind, OutputSink as _, OutputStream, ResultExt as _, SpawnRequest,
    ToolError, ToolOutput,
};

use super::bounded_output::BoundedOutput;
use crate::live_output::LiveOutput;
use crate::options::Call;

const KERNEL: &str = include_str!("kernel.py");
/// The most sessions of one run.
const MOST_SESSIONS: usize = 8;
/// The longest word of how a program went.
const LONGEST_REPORT: usize = 64 * 1024;
const CHUNK: usize = 64 * 1024;

/// One program to run.
#[derive(Serialize)]
pub(super) struct PythonProgram {
    pub(super) code: String,
    pub(super) stdin: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    /// Nothing comes after it, so what it left to be done at the end is done.
    pub(super) last: bool,
    pub(super) mark: String,
}

impl PythonProgram {
    pub(super) fn new(code: String, stdin: Option<String>, env: BTreeMap<String, String>) -> PythonProgram {
        let word = || std::collections::hash_map::RandomState::new().build_hasher().finish();
        let mark = format!("\u{1e}{:016x}{:016x}\u{1e}", word(), word());
        PythonProgram { code, stdin, env, last: false, mark }
    }
}

/// How a program ended.
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// The pictures it showed: files in the sandbox.
    pub(super) pictures: Vec<String>,
    pub(super) left_out: u64,
    /// Where it began.
    pub(super) folder: String,
    /// Python ended with it.
    pub(super) ended: bool,
}

/// What Python says of how a program went.
#[derive(Default, Deserialize)]
struct ProgramReport {
    code: i32,
    pictures: Vec<String>,
    left_out: u64,
    folder: String,
}

type SharedPython = Arc<Mutex<Option<Python>>>;

/// The sessions of a run, by name. They are not written down: a run that is resumed elsewhere begins with new
/// ones.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Sessions {
    #[serde(skip)]
    open: BTreeMap<String, SharedPython>,
}

impl Sessions {
    fn slot(&mut self, name: &str) -> Result<SharedPython, ToolError> {
        if let Some(slot) = self.open.get(name) {
            return Ok(slot.clone());
        }
        // One that ended has nothing to lose.
        self.open.retain(|_, slot| slot.try_lock().map_or(true, |python| python.is_some()));
        if self.open.len() >= MOST_SESSIONS {
            let names: Vec<String> =
                self.open.keys().map(|name| format!("`{}`", name.escape_debug())).collect();
            let message = format!("a run has at most {MOST_SESSIONS} sessions of Python");
            return Err(ToolError::of(ErrorKind::Limit, message)
                .hint(format!("use one of {}, or none", names.join(", "))));
        }
        Ok(self.open.entry(name.to_owned()).or_default().clone())
    }
}

/// Runs a program in the session of that name, or in a Python of its own.
pub(super) async fn run(
    call: &Call<'_>,
    session: Option<&str>,
    mut program: PythonProgram,
    time: Duration,
) -> Result<Ran, ToolError> {
    let Some(name) = session else {
        program.last = true;
        let deadline = Instant::now().checked_add(time);
        return Python::start(call).await?.run(call, &program, deadline).await;
    };
    let slot =
        call.context.store_as::<Sessions>(call.options.instance_name()).update(|all| all.slot(name))?;
    let mut slot = slot.lock().await;
    let deadline = Instant::now().checked_add(time);
    // Only a Python whose program has ended comes back: a call that is given up ends it.
    let mut python = match slot.take() {
        Some(python) => python,
        None => Python::start(call).await?,
    };
    let outcome = python.run(call, &program, deadline).await;
    if python.waits {
        *slot = Some(python);
    }
    outcome
}

/// A Python that runs programs one after another.
struct Python {
    input: Box<dyn AsyncWrite + Send + Unpin>,
    stdout: PrintedStream,
    stderr: PrintedStream,
    handle: Box<DynProcessHandle>,
    /// The last program has ended, and Python waits for the next.
    waits: bool,
    // The sandbox stays open for as long as its Python does.
    _sandbox: Arc<DynSandbox>,
}

/// How Python went on after a program.
enum PythonEnd {
    /// It waits for the next one.
    Said(ProgramReport),
    Gone(i32),
    TimeUp,
}

impl Python {
    async fn start(call: &Call<'_>) -> Result<Python, ToolError> {
        let sandbox = call.sandbox()?;
        let mut request = call.request(["python3", "-c", KERNEL]);
        request.timeout = None;
        let process = sandbox.spawn(SpawnRequest::piped(request)).await?;
        let (Some(input), Some(stdout), Some(stderr)) = (process.stdin, process.stdout, process.stderr)
        else {
            return Err(ToolError::fatal("the sandbox gave a process without streams"));
        };
        let stream = |from| PrintedStream { from, held: Vec::new() };
        let (stdout, stderr) = (stream(stdout), stream(stderr));
        Ok(Python { input, stdout, stderr, handle: process.handle, waits: true, _sandbox: sandbox })
    }

    async fn run(
        &mut self,
        call: &Call<'_>,
        program: &PythonProgram,
        deadline: Option<Instant>,
    ) -> Result<Ran, ToolError> {
        self.waits = false;
        // What changed outside until now changed before this call.
        self.handle.commit(call.judge()).await?;
        let live = LiveOutput::new(call.context);
        let (mut stdout, mut stderr) = (BoundedOutput::default(), BoundedOutput::default());
        let end = self.talk(program, deadline, &live, &mut stdout, &mut stderr).await?;
        live.finish();
        let omitted = stdout.omitted() + stderr.omitted();
        let (stdout, stderr) = (stdout.text(), stderr.text());
        let partial = |stdout: &str, stderr: &str| {
            let told = [stdout, stderr].map(str::trim_end).join("\n");
            ToolOutput::text(told.trim_start_matches('\n')).with_structured(serde_json::json!({
                "stdout": stdout, "stderr": stderr, "omitted_bytes": omitted,
            }))
        };
        let gone = "Python was ended with it, and its variables are gone";
        let (code, pictures, left_out, folder) = match end {
            PythonEnd::TimeUp => {
                let message = format!("the program was stopped because its time was up; {gone}");
                return Err(
                    ToolError::of(ErrorKind::Timeout, message).with_partial(partial(&stdout, &stderr))
                );
            }
            PythonEnd::Gone(code) => (code, Vec::new(), 0, call.folder(None).await?),
            PythonEnd::Said(report) => {
                self.waits = true;
                (report.code, report.pictures, report.left_out, report.folder)
            }
        };
        if omitted > 0 {
            let message = format!("the output limit was exceeded; {omitted} bytes were left out");
            return Err(
                ToolError::of(ErrorKind::OutputLimit, message).with_partial(partial(&stdout, &stderr))
            );
        }
        let effect = self.handle.commit(call.judge()).await?;
        let mut stderr = stderr;
        stderr.push_str(&effect.kept_back_text());
        Ok(Ran { code, stdout, stderr, pictures, left_out, folder, ended: !self.waits })
    }

    /// Asks for a program to be run and listens until it has ended, one way or the other.
    async fn talk(
        &mut self,
        program: &PythonProgram,
        deadline: Option<Instant>,
        live: &LiveOutput<'_>,
        out: &mut BoundedOutput,
        err: &mut BoundedOutput,
    ) -> Result<PythonEnd, ToolError> {
        let request = serde_json::to_vec(program).fatal("the program cannot be written as JSON")?;
        let mark = program.mark.as_bytes();
        let Python { input, stdout, stderr, handle, .. } = self;
        let ask = async {
            // A Python that is gone shows in its streams.
            let _ = input.write_all(format!("{}\n", request.len()).as_bytes()).await;
            let _ = input.write_all(&request).await;
            let _ = input.flush().await;
        };
        let answer = async {
            let heard = stdout.listen(mark, |bytes| {
                out.push(bytes);
                live.output(OutputStream::Stdout, bytes);
            });
            if heard.await { stdout.report().await } else { None }
        };
        let errors = stderr.listen(mark, |bytes| {
            err.push(bytes);
            live.output(OutputStream::Stderr, bytes);
        });
        let all = async { tokio::join!(ask, answer, errors).1 };
        tokio::pin!(all);
        let talk = async {
            tokio::select! {
                report = &mut all => report,
                // What it left behind may hold its streams, so that is ended too.
                _ = handle.wait() => {
                    handle.kill().await;
                    all.await
                }
            }
        };
        let report = match deadline {
            Some(deadline) => timeout_at(deadline, talk).await,
            None => Ok(talk.await),
        };
        match report {
            Ok(Some(report)) => Ok(PythonEnd::Said(report)),
            Ok(None) => {
                handle.kill().await;
                Ok(PythonEnd::Gone(handle.wait().await?))
            }
            Err(_) => {
                handle.kill().await;
                Ok(PythonEnd::TimeUp)
            }
        }
    }
}

/// What Python prints, and what of it was read and not yet told.
struct PrintedStream {
    from: Box<dyn AsyncRead + Send + Unpin>,
    held: Vec<u8>,
}

impl PrintedStream {
    /// Tells everything up to the mark; false when the stream ended before it.
    async fn listen(&mut self, mark: &[u8], mut tell: impl FnMut(&[u8])) -> bool {
        loop {
            if let Some(at) = self.held.windows(mark.len()).position(|part| part == mark) {
                tell(self.held.get(..at).unwrap_or_default());
                self.held.drain(..at + mark.len());
                return true;
            }
            // The beginning of a mark is held back until it is known to be none.
            let begun = (1..mark.len())
                .rev()
                .find(|length| mark.get(..*length).is_some_and(|beginning| self.held.ends_with(beginning)));
            let plain = self.held.len() - begun.unwrap_or(0);
            if plain > 0 {
                tell(self.held.get(..plain).unwrap_or_default());
                self.held.drain(..plain);
            }
            if !self.more().await {
                tell(&std::mem::take(&mut self.held));
                return false;
            }
        }
    }

    /// The line after the mark.
    async fn report(&mut self) -> Option<ProgramReport> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                return serde_json::from_slice(&line).ok();
            }
            if self.held.len() > LONGEST_REPORT || !self.more().await {
                return None;
            }
        }
    }

    async fn more(&mut self) -> bool {
        let before = self.held.len();
        self.held.reserve(CHUNK);
        matches!((&mut self.from).take(CHUNK as u64).read_buf(&mut self.held).await, Ok(1..))
            && self.held.len() > before
    }
}
