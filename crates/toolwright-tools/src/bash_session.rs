//! `bash_session`: one shell on a terminal that goes on from call to call.
//!
//! The shell belongs to the run and ends with it; a run that is resumed elsewhere begins with a new one. A
//! reader takes everything the terminal prints, within bounds, whether or not a call waits for it; so the
//! shell never blocks, and what was printed between two calls is delivered by the next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use toolwright_core::{
    DynProcessHandle, DynSandbox, ExecRequest, SandboxProcess, SpawnRequest, ToolContext, ToolDef, ToolError,
    ToolOutput, tool,
};
use toolwright_util::lock;

use crate::options::{Call, Options, within_documented};
use crate::terminal;

/// How long the terminal must be quiet before an answer is taken for whole.
const QUIET: Duration = Duration::from_millis(500);
/// So much output is handed over at once.
const ENOUGH: usize = 4096;
/// So much output is kept when nobody asks for it: the end counts.
const MOST_KEPT: usize = 10 << 20;
/// Printed once nothing is echoed any more; what is typed before that would be.
const READY: &str = "\u{1e}ready\u{1e}";
/// How long a shell may take to begin.
const BEGINNING: Duration = Duration::from_secs(20);
/// How long a call may take beside its wait for output: a sandbox may have to be opened first.
const STARTING: Duration = Duration::from_secs(180);
const CTRL_C: &[u8] = b"\x03";
const SIGINT: i32 = 2;
/// How long typing may stand still when the shell does not read.
const TYPING: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum Action {
    Type,
    TypeSubmit,
    Restart,
    Read,
    Interrupt,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Action::Type => "type",
            Action::TypeSubmit => "type_submit",
            Action::Restart => "restart",
            Action::Read => "read",
            Action::Interrupt => "interrupt",
        }
    }
}

/// The tool `bash_session`. Each tool made here has a shell of its own in each run; tools that are given the
/// same [`Options::instance`] share one. An empty name is one shell for the whole run, as `instance=None` of
/// Inspect.
pub fn bash_session(options: &Options) -> ToolDef {
    static MADE: AtomicU64 = AtomicU64::new(0);
    match options.instance {
        Some(_) => session(options),
        None => session(&options.clone().instance(format!("#{}", MADE.fetch_add(1, Ordering::Relaxed)))),
    }
}

/// The tool, in the shell of its instance.
#[tool(
    name = "bash_session",
    description = "Work in a bash shell that stays open: variables, the folder and running programs are kept from one call to \
                   the next, and programs can be answered. A call returns when the terminal is quiet; a program that is still \
                   running is watched with `read`.",
    category = "shell",
    sandboxed,
    parallel = false,
    finish = finish_session
)]
async fn session(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    #[tool(
        description = "`type` and `type_submit` (with Enter) type the input; `interrupt` is Ctrl-C; `read` waits; \
                       `restart` starts over."
    )]
    action: Action,
    /// The text to type, for `type` and `type_submit`.
    input: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let call = &Call::new(context, options);
    match (action, &input) {
        (Action::Type, None) => return Err(ToolError::invalid("`type` needs `input`")),
        (Action::Restart | Action::Read | Action::Interrupt, Some(_)) => {
            return Err(ToolError::invalid(format!("`{}` takes no `input`", action.name())));
        }
        _ => {}
    }
    let slot = context.store_as::<SessionSlot>(options.instance_name()).read(|kept| kept.shell.clone());
    let mut session = slot.lock().await;
    if action == Action::Restart {
        if let Some(old) = session.take() {
            old.handle.kill().await;
            old.handle.commit(call.judge()).await?;
        }
        *session = Some(ShellSession::start(call).await?);
        return Ok(ToolOutput::text("the shell was restarted"));
    }
    let shell = match &mut *session {
        Some(shell) => shell,
        none => none.insert(ShellSession::start(call).await?),
    };
    // What changed outside until now changed before this call; what the shell changed is not this call's.
    shell.handle.commit(call.judge()).await?;
    if !shell.has_ended() {
        match action {
            Action::Type => shell.press(input.unwrap_or_default().as_bytes()).await?,
            Action::TypeSubmit => shell.press(format!("{}\n", input.unwrap_or_default()).as_bytes()).await?,
            Action::Interrupt => shell.interrupt().await?,
            Action::Read | Action::Restart => {}
        }
    }
    let (mut text, ended) = shell.output(options.wait()).await;
    let effect = shell.handle.commit(call.judge()).await?;
    let kept_back = effect.kept_back_text();
    if !kept_back.is_empty() && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&kept_back);
    let Some(code) = ended else { return Ok(ToolOutput::text(text)) };
    // The next call begins with a new shell.
    session.take();
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let told = format!(
        "{text}{newline}[the shell has ended: {}; the next call starts a new one]",
        crate::shell::ending(code)
    );
    Ok(ToolOutput::text(told).with_metadata("exit_code", code))
}

fn finish_session(tool: ToolDef, options: &Options) -> ToolDef {
    let tool = within_documented(tool, options, options.wait().saturating_add(STARTING));
    // What is typed is judged as commands; what a running program reads then looks like none that is known.
    tool.edit(|_, policy| policy.shell.push("input".into()))
}

/// What the run keeps of a session: the shell, which is not written down. One call at a time uses it.
#[derive(Default, Serialize, Deserialize)]
struct SessionSlot {
    #[serde(skip)]
    shell: Arc<tokio::sync::Mutex<Option<ShellSession>>>,
}

/// A running shell.
struct ShellSession {
    keyboard: Box<dyn AsyncWrite + Send + Unpin>,
    handle: Arc<DynProcessHandle>,
    printed: Arc<Mutex<Printed>>,
    news: watch::Receiver<u64>,
    /// The beginning of an escape sequence whose end has not come yet.
    held: String,
    // The sandbox stays open for as long as its shell does.
    _sandbox: Arc<DynSandbox>,
}

/// What the terminal printed and nobody has seen yet.
#[derive(Default)]
struct Printed {
    bytes: Vec<u8>,
    lost: u64,
    ended: Option<i32>,
}

impl ShellSession {
    async fn start(call: &Call<'_>) -> Result<ShellSession, ToolError> {
        let sandbox = call.sandbox()?;
        // Nothing is echoed and nothing is coloured; what is typed is not told twice.
        let begin = r#"stty -echo -onlcr 2>/dev/null; printf %s "$1"; exec bash --noediting -i"#;
        let mut request: ExecRequest = call.request(["bash", "-c", begin, "bash", READY]).env("TERM", "dumb");
        request.timeout = None;
        let mut process = sandbox.spawn(SpawnRequest::with_terminal(request, 50, 200)).await?;
        let keyboard = process.stdin.take().ok_or_else(|| ToolError::fatal("the terminal takes no input"))?;
        let printed = Arc::new(Mutex::new(Printed::default()));
        let (sender, news) = watch::channel(0);
        let handle = watch_terminal(process, printed.clone(), sender);
        let mut session =
            ShellSession { keyboard, handle, printed, news, held: String::new(), _sandbox: sandbox };
        session.wait_until_ready().await?;
        Ok(session)
    }

    async fn wait_until_ready(&mut self) -> Result<(), ToolError> {
        let deadline = Instant::now() + BEGINNING;
        loop {
            let seen = *self.news.borrow_and_update();
            let ended = {
                let mut printed = lock(&self.printed);
                let found = printed.bytes.windows(READY.len()).position(|part| part == READY.as_bytes());
                if let Some(at) = found {
                    printed.bytes.drain(..at + READY.len());
                    return Ok(());
                }
                printed.ended.is_some()
            };
            let changed = timeout_at(deadline, self.news.wait_for(|news| *news != seen)).await;
            if ended || !matches!(changed, Ok(Ok(_))) {
                let said = terminal::plain(&String::from_utf8_lossy(&lock(&self.printed).bytes));
                return Err(ToolError::new(format!("the shell did not begin: {said}")));
            }
        }
    }

    fn has_ended(&self) -> bool {
        lock(&self.printed).ended.is_some()
    }

    async fn press(&mut self, keys: &[u8]) -> Result<(), ToolError> {
        let typed = type_keys(&mut self.keyboard, keys).await;
        if typed == keys.len() {
            return Ok(());
        }
        let message = format!(
            "the program in the terminal does not read what is typed: {typed} of {} bytes were taken",
            keys.len()
        );
        Err(ToolError::new(message).hint("use `interrupt` or `restart`"))
    }

    /// Types Ctrl-C. When more is typed than the program has read, the key is not looked at; then a signal
    /// tells the program, and the key what comes to read after it.
    async fn interrupt(&mut self) -> Result<(), ToolError> {
        if is_taken(&mut self.keyboard, CTRL_C).await {
            return Ok(());
        }
        self.handle.signal(SIGINT).await?;
        self.press(CTRL_C).await?;
        // The shell may have been reading when that came; what it had read by then goes with the next one.
        tokio::time::sleep(QUIET).await;
        self.press(CTRL_C).await
    }

    /// What was printed: when the terminal has been quiet for a while, when there is enough, or when `wait`
    /// is over.
    async fn output(&mut self, wait: Duration) -> (String, Option<i32>) {
        let deadline = Instant::now() + wait;
        loop {
            let seen = *self.news.borrow_and_update();
            let (length, ended) = {
                let printed = lock(&self.printed);
                (printed.bytes.len(), printed.ended)
            };
            if ended.is_some() || length >= ENOUGH {
                break;
            }
            let until = if length > 0 { deadline.min(Instant::now() + QUIET) } else { deadline };
            let changed = timeout_at(until, self.news.wait_for(|news| *news != seen)).await;
            if !matches!(changed, Ok(Ok(_))) {
                break;
            }
        }
        let mut printed = lock(&self.printed);
        let bytes = printed.take_whole();
        let lost = std::mem::take(&mut printed.lost);
        let text = std::mem::take(&mut self.held) + &String::from_utf8_lossy(&bytes);
        let (plain, rest) = terminal::split(&text);
        // A title that does not go on is taken for text: it may be a question.
        let text = if printed.ended.is_some() || (bytes.is_empty() && terminal::is_string(rest)) {
            terminal::plain(&text)
        } else {
            self.held = rest.to_owned();
            plain
        };
        let text = if lost > 0 { format!("[{lost} bytes before this were not kept]\n{text}") } else { text };
        (text, printed.ended)
    }
}

/// Whether a key is taken at once. One that nobody can take any more counts: the end of the shell is told
/// with the output.
async fn is_taken(keyboard: &mut (dyn AsyncWrite + Send + Unpin), key: &[u8]) -> bool {
    timeout(QUIET, keyboard.write(key)).await.is_ok()
}

/// How many of the keys were taken before nothing went on for a while. The end of the shell takes all of
/// them; it is told with its output.
async fn type_keys(keyboard: &mut (dyn AsyncWrite + Send + Unpin), keys: &[u8]) -> usize {
    let mut typed = 0;
    while let Some(rest) = keys.get(typed..).filter(|rest| !rest.is_empty()) {
        match timeout(TYPING, keyboard.write(rest)).await {
            Ok(Ok(count @ 1..)) => typed += count,
            Ok(_) => return keys.len(),
            Err(_) => break,
        }
    }
    typed
}

impl Printed {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > MOST_KEPT {
            // Half goes at once, so that a flood does not move memory for each piece.
            let over = self.bytes.len() - MOST_KEPT / 2;
            self.bytes.drain(..over);
            self.lost += over as u64;
        }
    }

    /// Everything but the beginning of a character whose end has not come yet.
    fn take_whole(&mut self) -> Vec<u8> {
        let all = std::mem::take(&mut self.bytes);
        if self.ended.is_some() {
            return all;
        }
        match std::str::from_utf8(&all) {
            Err(error) if error.error_len().is_none() => {
                let (whole, rest) = all.split_at_checked(error.valid_up_to()).unwrap_or((&all, &[]));
                self.bytes = rest.to_vec();
                whole.to_vec()
            }
            _ => all,
        }
    }
}

/// Reads the terminal until it is closed, then waits for the shell. The task ends with the shell, and the
/// shell ends when its session is dropped.
fn watch_terminal(
    mut process: SandboxProcess,
    printed: Arc<Mutex<Printed>>,
    news: watch::Sender<u64>,
) -> Arc<DynProcessHandle> {
    let handle: Arc<DynProcessHandle> = Arc::from(process.handle);
    let screen = process.stdout.take();
    let weak = Arc::downgrade(&handle);
    tokio::spawn(async move {
        if let Some(mut screen) = screen {
            let mut piece = vec![0; 16 * 1024];
            while let Ok(length @ 1..) = screen.read(&mut piece).await {
                lock(&printed).push(piece.get(..length).unwrap_or_default());
                news.send_modify(|news| *news += 1);
            }
        }
        let code = match weak.upgrade() {
            Some(handle) => match timeout(QUIET, handle.wait()).await {
                Ok(code) => code.unwrap_or(-9),
                // It closed its terminal and goes on; nobody could reach it any more.
                Err(_) => {
                    handle.kill().await;
                    -9
                }
            },
            None => -9,
        };
        lock(&printed).ended = Some(code);
        news.send_modify(|news| *news += 1);
    });
    handle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn typing_goes_on_for_as_long_as_it_is_read() {
        let (mut keyboard, mut reader) = tokio::io::duplex(1);
        let slow = tokio::spawn(async move {
            for _ in 0..8 {
                tokio::time::sleep(TYPING / 2).await;
                reader.read_u8().await.unwrap();
            }
            tokio::time::sleep(TYPING * 2).await;
            drop(reader);
        });
        assert_eq!(type_keys(&mut keyboard, b"12345678").await, 8);
        assert_eq!(type_keys(&mut keyboard, b"abc").await, 1, "nobody reads any more");
        slow.await.unwrap();
        assert_eq!(type_keys(&mut keyboard, b"abc").await, 3, "the end is told elsewhere");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_for_a_shell_that_has_ended_is_no_mistake() {
        let (mut keyboard, reader) = tokio::io::duplex(1);
        assert!(is_taken(&mut keyboard, CTRL_C).await);
        assert!(!is_taken(&mut keyboard, CTRL_C).await, "the first is not read");
        drop(reader);
        assert!(is_taken(&mut keyboard, CTRL_C).await, "the end is told elsewhere");
    }

    #[test]
    fn a_flood_is_kept_within_bounds() {
        let mut printed = Printed::default();
        for _ in 0..50 {
            printed.push(&vec![b'x'; 1 << 20]);
        }
        assert!(printed.bytes.len() <= MOST_KEPT);
        assert_eq!(printed.bytes.len() as u64 + printed.lost, 50 << 20);
    }

    #[test]
    fn a_character_is_never_cut_in_two() {
        let mut printed = Printed::default();
        printed.push(b"a\xc3");
        assert_eq!(printed.take_whole(), b"a");
        printed.push(b"\xa9\xff!");
        assert_eq!(printed.take_whole(), "é".bytes().chain([0xff, b'!']).collect::<Vec<_>>());
    }
}
