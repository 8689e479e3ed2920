//! What a run finds in its sandboxes when it begins: files, and what a script has done.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::erased::DynSandbox;
use crate::{ErrorKind, ExecRequest, ToolError};

/// How long a setup script may take.
const SETUP_TIME: Duration = Duration::from_secs(300);

/// Files and a setup script for the sandboxes of a run.
///
/// A file is named by its path, which belongs to the first sandbox, or by `NAME:PATH` for another one. The
/// script is run once, in the first sandbox, after all files are there; it may begin with `#!`, and is a
/// shell script otherwise.
///
/// ```
/// use toolwright_core::Preparation;
///
/// let preparation = Preparation::new()
///     .file("data/input.csv", "a,b\n1,2\n")
///     .file("victim:/tmp/flag", "secret")
///     .setup("pip install --quiet ./package");
/// # let _ = preparation;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[must_use]
pub struct Preparation {
    files: BTreeMap<String, Contents>,
    setup: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Contents {
    Text(String),
    Bytes(Vec<u8>),
}

impl Preparation {
    /// Nothing to do.
    pub fn new() -> Self {
        Preparation::default()
    }

    /// Adds a file: text or bytes.
    pub fn file(mut self, path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        let contents = match String::from_utf8(contents.into()) {
            Ok(text) => Contents::Text(text),
            Err(error) => Contents::Bytes(error.into_bytes()),
        };
        self.files.insert(path.into(), contents);
        self
    }

    /// Sets the script.
    pub fn setup(mut self, script: impl Into<String>) -> Self {
        self.setup = Some(script.into());
        self
    }

    /// True when there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.setup.is_none()
    }

    /// Writes the files and runs the script. All names are looked up before anything is written; the first
    /// failure is the error, and the caller closes the sandboxes.
    pub async fn carry_out(&self, sandboxes: &IndexMap<String, Arc<DynSandbox>>) -> Result<(), ToolError> {
        if self.is_empty() {
            return Ok(());
        }
        let (_, first) = sandboxes
            .first()
            .ok_or_else(|| ToolError::of(ErrorKind::SandboxUnavailable, "there is no sandbox to prepare"))?;
        let mut places = Vec::new();
        for (name, contents) in &self.files {
            places.push((place(sandboxes, first, name)?, contents));
        }
        for ((sandbox, path), contents) in places {
            let bytes = match contents {
                Contents::Text(text) => text.as_bytes(),
                Contents::Bytes(bytes) => bytes,
            };
            sandbox.write_file(path, bytes).await.map_err(|error| not_prepared(path, error))?;
        }
        match &self.setup {
            Some(script) => set_up(&**first, script).await,
            None => Ok(()),
        }
    }
}

/// The sandbox and the path that a name stands for.
fn place<'a>(
    sandboxes: &'a IndexMap<String, Arc<DynSandbox>>,
    first: &'a Arc<DynSandbox>,
    name: &'a str,
) -> Result<(&'a Arc<DynSandbox>, &'a str), ToolError> {
    let Some((sandbox, path)) = name.split_once(':') else { return Ok((first, name)) };
    match sandboxes.get(sandbox) {
        Some(found) => Ok((found, path)),
        None => {
            let names: Vec<&str> = sandboxes.keys().map(String::as_str).collect();
            Err(ToolError::invalid(format!(
                "`{name}` is a file for the sandbox `{sandbox}`, which is not there"
            ))
            .hint(format!(
                "what stands before a colon is the name of a sandbox; there are: {}",
                names.join(", ")
            )))
        }
    }
}

async fn set_up(sandbox: &DynSandbox, script: &str) -> Result<(), ToolError> {
    // A name nobody can guess: without isolation the folder for temporary files is everybody's.
    let path = format!("/tmp/toolwright-setup-{:016x}", RandomState::new().build_hasher().finish());
    sandbox.write_file(&path, script.as_bytes()).await?;
    let command: Vec<&str> = match script.starts_with("#!") {
        true => vec!["sh", "-c", "chmod +x \"$0\" && exec \"$0\"", &path],
        false => vec!["sh", &path],
    };
    let mut request = ExecRequest::new(command).timeout(SETUP_TIME);
    request.timeout_retry = false;
    let result = sandbox.exec(request).await;
    let _ = sandbox.exec(ExecRequest::new(["rm", "-f", &path])).await;
    let result = result?;
    if result.success() {
        return Ok(());
    }
    let told = if result.stderr.trim().is_empty() { &result.stdout } else { &result.stderr };
    Err(ToolError::new(format!("the setup script failed with code {}: {}", result.code, told.trim())))
}

fn not_prepared(path: &str, error: ToolError) -> ToolError {
    let kind = error.kind();
    ToolError::of(kind, format!("`{path}` cannot be put into the sandbox")).with_source(error)
}
