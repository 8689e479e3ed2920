//! A script as a tool: its call in the sandbox of the run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toolwright_core::{
    CallNote, DynSandbox, ErrorKind, ExecRequest, ExecResult, OutputSink, OutputStream, ToolContext, ToolDef,
    ToolError, ToolOutput,
};

use crate::definition::ScriptDefinition;
use crate::request::request;

/// How much of stderr an error carries.
const STDERR_TAIL: usize = 4 << 10;
/// The most bytes of a call that are reported while it runs.
const MAX_LIVE: usize = 64 << 10;
/// The longest a call may take where neither the script nor the options say.
const USUAL_TIME: Duration = Duration::from_secs(600);
/// A command ends so long after its call, whose own error says more; it comes in time to carry the output.
const AFTER_THE_CALL: Duration = Duration::from_millis(5);

/// How scripts are called.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ScriptOptions {
    /// The longest a call may take, for scripts that do not say; 10 minutes when nothing is said.
    pub timeout: Option<Duration>,
    /// Variables that scripts see beside those of the sandbox.
    pub env: BTreeMap<String, String>,
}

/// A script that was read.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) path: PathBuf,
    /// Of its content when it was read.
    pub(crate) hash: [u8; 32],
    pub(crate) command: Vec<String>,
    pub(crate) definition: ScriptDefinition,
    /// Whether it writes its result to the file that `LLM_OUTPUT` names.
    pub(crate) uses_output_file: bool,
}

/// The tool of a script.
pub(crate) fn script_tool(script: Script, options: &Arc<ScriptOptions>) -> ToolDef {
    let (spec, own_time) = (script.definition.spec(), script.definition.timeout);
    let (script, options) = (Arc::new(script), options.clone());
    let time = own_time.or(options.timeout).unwrap_or(USUAL_TIME);
    let tool = ToolDef::dynamic(spec, move |context, arguments| {
        let (script, options) = (script.clone(), options.clone());
        async move { script.call(&context, &arguments, &options).await }
    });
    tool.with_sandboxed(true).with_timeout(time).with_category("scripts")
}

impl Script {
    async fn call(
        &self,
        context: &ToolContext,
        arguments: &Value,
        options: &ScriptOptions,
    ) -> Result<ToolOutput, ToolError> {
        let sandbox = context.sandbox()?;
        self.check_content(&*sandbox).await?;
        for name in &self.definition.required_env {
            if !options.env.contains_key(name) {
                let message = format!("the script needs the variable `{name}`, which is not set");
                return Err(ToolError::new(message)
                    .hint(format!("set it, and let scripts see it: `scripts: {{env: [{name}]}}`")));
            }
        }
        let mut request = request(&self.command, &self.definition, arguments)?;
        request.env.extend(self.definition.default_env.iter().cloned());
        request.env.extend(options.env.clone());
        request.env.insert("LLM_TOOL_NAME".to_owned(), self.definition.name.clone());
        if let Some(root) =
            self.path.parent().filter(|folder| folder.ends_with("tools")).and_then(|f| f.parent())
        {
            request.env.insert("LLM_ROOT_DIR".to_owned(), root.to_string_lossy().into_owned());
        }
        if !self.uses_output_file {
            let result = run(context, &*sandbox, request).await?;
            return self.output(result, None);
        }
        let file = output_file();
        sandbox.write_file(&file, b"").await?;
        request.env.insert("LLM_OUTPUT".to_owned(), file.clone());
        let result = run(context, &*sandbox, request).await;
        let written = sandbox.read_text(&file).await;
        // What is left is gone with the sandbox.
        let _ = sandbox.exec(ExecRequest::new(["rm", "-f", &file]).timeout(Duration::from_secs(10))).await;
        self.output(result?, Some(written?))
    }

    /// The script must be what it was when it was read: rules and trust are about that.
    async fn check_content(&self, sandbox: &DynSandbox) -> Result<(), ToolError> {
        let path = self.path.to_string_lossy();
        let content = sandbox.read_file(&path).await.map_err(|error| {
            let message = format!("the sandbox does not show the script `{path}`: {}", error.message());
            ToolError::of(error.kind(), message).hint("name its folder in `sandbox: {read: [...]}`")
        })?;
        if <[u8; 32]>::from(Sha256::digest(&content)) == self.hash {
            return Ok(());
        }
        let message = format!("the script `{path}` is no longer what it was when the file was opened");
        Err(ToolError::of(ErrorKind::Permission, message).hint("open the tool file again"))
    }

    fn output(&self, result: ExecResult, written: Option<String>) -> Result<ToolOutput, ToolError> {
        let output = written.filter(|written| !written.is_empty()).unwrap_or(result.stdout);
        if result.code != 0 {
            let ending = match result.code {
                code if code < 0 => format!("was ended by signal {}", code.unsigned_abs()),
                code => format!("ended with exit code {code}"),
            };
            let tail = tail(result.stderr.trim_end());
            let message = match tail.is_empty() {
                true => format!("the script {ending}"),
                false => format!("the script {ending}:\n{tail}"),
            };
            let error = ToolError::new(message);
            return Err(if output.is_empty() { error } else { error.with_partial(ToolOutput::text(output)) });
        }
        if !self.definition.json_output {
            return Ok(ToolOutput::text(output));
        }
        serde_json::from_str(output.trim()).map(ToolOutput::json).map_err(|error| {
            ToolError::new(format!("the output of the script is not JSON: {error}"))
                .with_partial(ToolOutput::text(output))
        })
    }
}

/// The end of a text.
fn tail(text: &str) -> &str {
    let from = text.len().saturating_sub(STDERR_TAIL);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(from);
    text.get(from..).unwrap_or_default()
}

/// Runs a command; cancelling the call kills it.
async fn run(
    context: &ToolContext,
    sandbox: &DynSandbox,
    mut request: ExecRequest,
) -> Result<ExecResult, ToolError> {
    request.timeout = context.time_left().map(|left| left.saturating_add(AFTER_THE_CALL));
    let live = LiveNotes { context, reported: Mutex::new(0) };
    let cancelled = async {
        context.cancel_token().cancelled().await;
        // When the time is up, the command ends by itself and hands over what it has.
        if context.time_left().is_some_and(|left| left.is_zero()) {
            std::future::pending::<()>().await;
        }
    };
    let work = sandbox.exec_live(request, &live);
    let (mut work, mut cancelled) = (std::pin::pin!(work), std::pin::pin!(cancelled));
    std::future::poll_fn(|context| {
        use std::task::Poll;
        if let Poll::Ready(result) = work.as_mut().poll(context) {
            return Poll::Ready(result);
        }
        cancelled
            .as_mut()
            .poll(context)
            .map(|()| Err(ToolError::of(ErrorKind::Cancelled, "the call was cancelled")))
    })
    .await
}

/// Reports output as it comes.
struct LiveNotes<'a> {
    context: &'a ToolContext,
    reported: Mutex<usize>,
}

impl OutputSink for LiveNotes<'_> {
    fn output(&self, stream: OutputStream, bytes: &[u8]) {
        let mut reported = self.reported.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *reported < MAX_LIVE {
            *reported += bytes.len();
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.context.note(CallNote::Output { stream: stream.as_str().to_owned(), text });
        }
    }
}

/// A new file in the sandbox.
fn output_file() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("/tmp/toolwright-{}-{time:x}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
