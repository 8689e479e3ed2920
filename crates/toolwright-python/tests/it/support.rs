//! A file of functions in a sandbox, for one test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tempfile::TempDir;
use toolwright_core::{
    BoxFuture, ExecRequest, ToolCall, ToolError, ToolOutput, ToolResult, ToolSource as _, ToolSpec,
};
use toolwright_python::{PythonFile, PythonOptions};
use toolwright_runtime::Run;
use toolwright_sandbox::{ProcessSandbox, SandboxPolicy};

pub(crate) type Test = (&'static str, fn() -> BoxFuture<'static, ()>);

pub(crate) fn block_on(work: BoxFuture<'static, ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work);
}

/// The interpreter and its installation; `None` where there is no Python.
pub(crate) fn python() -> Option<&'static (PathBuf, PathBuf)> {
    static PYTHON: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    PYTHON
        .get_or_init(|| {
            let print = "import os, sys; print(os.path.realpath(sys.executable)); print(sys.base_prefix)";
            let output = Command::new("python3").args(["-I", "-c", print]).output().ok()?;
            let text = String::from_utf8(output.stdout).ok()?;
            let (program, prefix) = text.trim().split_once('\n')?;
            Some((program.into(), prefix.into()))
        })
        .as_ref()
}

/// A file of functions and its folder, which is gone with it.
pub(crate) struct Opened {
    pub(crate) file: PythonFile,
    pub(crate) run: Run,
    _folder: TempDir,
}

impl Opened {
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.run.call(ToolCall::new("1", tool, arguments)).await.unwrap()
    }

    pub(crate) async fn specs(&self) -> Vec<ToolSpec> {
        self.file.tools().await.unwrap().iter().map(|entry| entry.tool.spec().clone()).collect()
    }
}

pub(crate) async fn try_open(source: &str, options: PythonOptions) -> Result<Opened, ToolError> {
    let (program, prefix) = python().unwrap();
    open_with(source, options, program, vec![prefix.clone()]).await
}

/// Opens a file with an interpreter, which needs these folders.
pub(crate) async fn open_with(
    source: &str,
    options: PythonOptions,
    program: &Path,
    read: Vec<PathBuf>,
) -> Result<Opened, ToolError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tools.py");
    std::fs::write(&path, source).unwrap();
    let mut policy = SandboxPolicy::default();
    policy.read.push(folder.path().to_owned());
    policy.read.extend(read);
    let sandbox = Arc::new(ProcessSandbox::open(policy).await.unwrap());
    let command = ExecRequest::new([program.to_str().unwrap()]);
    let file = PythonFile::open(sandbox, command, path.to_str().unwrap(), options).await?;
    let run = Run::builder(file.tools().await.unwrap()).build().unwrap();
    Ok(Opened { file, run, _folder: folder })
}

pub(crate) async fn open(source: &str) -> Opened {
    try_open(source, PythonOptions::default()).await.unwrap()
}

/// The value of a result, as programs see it.
pub(crate) trait ResultValue {
    fn value(&self) -> Value;
}

impl ResultValue for ToolResult {
    fn value(&self) -> Value {
        let output =
            ToolOutput { structured: self.structured.clone(), ..ToolOutput::blocks(self.content.clone()) };
        output.value()
    }
}
