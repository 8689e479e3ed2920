//! A file of Python functions, opened: its tools, and the worker that makes their calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use toolwright_core::{DynSandbox, ExecRequest, SpawnRequest, ToolError, ToolSource, Toolset};

use crate::definition::{LeftOut, PythonDefinition};
use crate::tool::PythonTool;
use crate::worker::{BOOTSTRAP, Worker};

/// How a file of Python functions is used.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PythonOptions {
    /// The longest a call may take, for functions that say nothing of it.
    pub timeout: Option<Duration>,
    /// The longest the import of the file may take.
    pub import_timeout: Duration,
    /// Whether the sandbox lets the worker neither write nor reach anything outside of itself. Calls then
    /// need no approval of their own.
    pub confined: bool,
}

impl Default for PythonOptions {
    fn default() -> Self {
        PythonOptions {
            timeout: Some(Duration::from_secs(60)),
            import_timeout: Duration::from_secs(60),
            confined: false,
        }
    }
}

/// A file of Python functions as a source of tools.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use toolwright_core::{DynSandbox, ToolError};
/// # async fn example(sandbox: Arc<DynSandbox>) -> Result<(), ToolError> {
/// use toolwright_core::{ExecRequest, ToolSource as _};
/// use toolwright_python::{PythonFile, PythonOptions};
///
/// let python = ExecRequest::new(["python3"]);
/// let file = PythonFile::open(sandbox, python, "/home/ann/tools.py", PythonOptions::default()).await?;
/// let tools = file.tools().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PythonFile {
    inner: Arc<OpenedFile>,
    tools: Toolset,
    left_out: Vec<LeftOut>,
    python: String,
}

/// What the tools of a file share.
pub(crate) struct OpenedFile {
    sandbox: Arc<DynSandbox>,
    interpreter: ExecRequest,
    path: String,
    pub(crate) options: PythonOptions,
    worker: Mutex<Option<Arc<Worker>>>,
}

impl PythonFile {
    /// Starts the worker of a file, which imports it, and reads which tools it has. The interpreter is a
    /// program in the sandbox, to which flags are added; the path is the file's in the sandbox.
    pub async fn open(
        sandbox: Arc<DynSandbox>,
        interpreter: ExecRequest,
        path: impl Into<String>,
        options: PythonOptions,
    ) -> Result<Self, ToolError> {
        let inner = OpenedFile { sandbox, interpreter, path: path.into(), options, worker: Mutex::default() };
        let inner = Arc::new(inner);
        let worker = inner.start().await?;
        let description = worker.description.clone();
        *inner.worker.lock().await = Some(Arc::new(worker));
        let (mut tools, mut left_out) = (Toolset::new(), description.left_out);
        for definition in description.tools {
            let name = definition.name.clone();
            // One function whose name or schema is not usable does not take the others away.
            match tools.clone().with(PythonTool::new(&inner, definition)) {
                Ok(grown) => tools = grown,
                Err(error) => left_out.push(LeftOut { name, line: None, reason: error.to_string() }),
            }
        }
        Ok(PythonFile { inner, tools, left_out, python: description.python })
    }

    /// The functions that cannot be tools, with the reasons.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The version of the interpreter.
    pub fn python(&self) -> &str {
        &self.python
    }
}

impl ToolSource for PythonFile {
    fn name(&self) -> &str {
        &self.inner.path
    }

    async fn tools(&self) -> Result<Toolset, ToolError> {
        Ok(self.tools.clone())
    }
}

impl std::fmt::Debug for PythonFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PythonFile").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl OpenedFile {
    async fn start(&self) -> Result<Worker, ToolError> {
        let mut request = self.interpreter.clone();
        // Isolated from the variables and packages of the user, unbuffered, and without writing byte code.
        request.command.extend(["-I", "-u", "-B", "-c", BOOTSTRAP].map(str::to_owned));
        let patience = self.options.import_timeout;
        Worker::start(&*self.sandbox, SpawnRequest::piped(request), &self.path, patience).await
    }

    /// The worker, and whether it was started for this call in the place of one that ended.
    pub(crate) async fn worker(&self, wanted: &PythonDefinition) -> Result<(Arc<Worker>, bool), ToolError> {
        let mut place = self.worker.lock().await;
        if let Some(worker) = place.as_ref() {
            worker.settled().await;
            if worker.gone().is_none() {
                return Ok((worker.clone(), false));
            }
        }
        let worker = self.start().await?;
        let now = worker.description.tools.iter().find(|tool| tool.name == wanted.name);
        if now != Some(wanted) {
            let message = format!("`{}` is no longer what it was when the file was opened", wanted.name);
            return Err(ToolError::new(message).hint("open the file again"));
        }
        let worker = Arc::new(worker);
        *place = Some(worker.clone());
        Ok((worker, true))
    }
}
