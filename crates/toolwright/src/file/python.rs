//! The section `python` of a file: which interpreter runs its Python functions, and what they see.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use toolwright_core::{
    DataError, DynSandbox, ErrorKind, ExecRequest, ToolError, ToolOutput, read_data, run_blocking,
};
use toolwright_python::{PythonFile, PythonOptions};
use toolwright_sandbox::{Network, ProcessSandbox, SandboxPolicy};

use super::sandbox::show_program;
use crate::environment::Environment;

/// How far above a file a `.venv` is looked for.
const MAX_ABOVE: usize = 16;

/// What prints the place of an interpreter.
const WHERE: &str = "import sys; print(sys.executable)";

/// What a file's `python` section says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PythonSection {
    interpreter: Option<String>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    network: Network,
    env: Vec<String>,
    timeout: Option<f64>,
    import_timeout: Option<f64>,
}

impl PythonSection {
    pub(super) fn read(value: &Value) -> Result<Self, DataError> {
        let section: PythonSection = if value.is_null() { Self::default() } else { read_data(value)? };
        for (name, seconds) in [("timeout", section.timeout), ("import_timeout", section.import_timeout)] {
            if let Some(seconds) = seconds
                && !(seconds > 0.0 && seconds <= 86_400.0)
            {
                let message =
                    format!("`{name}` must be seconds, more than 0 and at most 86400, got {seconds}");
                return Err(DataError::new(message).inside(name));
            }
        }
        Ok(section)
    }

    /// Opens a file of Python functions: a worker in a sandbox of its own imports it. The path, and those of
    /// the section, begin in this folder.
    pub(crate) async fn open(
        &self,
        path: &str,
        folder: &Path,
        environment: &Environment,
    ) -> Result<PythonFile, ToolError> {
        let real = |path: &Path| {
            let path = folder.join(path);
            path.canonicalize().map_err(|error| {
                let error = ToolError::of(ErrorKind::FileNotFound, format!("`{}`: {error}", path.display()));
                error.hint("paths of Python files are relative to the tool file that imports them")
            })
        };
        let file = real(Path::new(path))?;
        let own = file.parent().unwrap_or(Path::new("/")).to_owned();
        let interpreter = self.interpreter(folder, &own, environment).await?;
        let mut policy = SandboxPolicy { network: self.network.clone(), ..SandboxPolicy::default() };
        policy.read.push(own.clone());
        for path in &self.read {
            policy.read.push(real(path)?);
        }
        for path in &self.write {
            policy.write.push(real(path)?);
        }
        let mut command = ExecRequest::new([interpreter]).cwd(own.to_string_lossy());
        for name in &self.env {
            if let Some(value) = environment.get(name) {
                command = command.env(name, value);
            }
        }
        let command = show_program(&mut policy, command, environment)?;
        let sandbox: Arc<DynSandbox> = Arc::new(ProcessSandbox::open_staged_if_possible(policy).await?);
        let mut options = PythonOptions::default();
        let seconds = |seconds: Option<f64>| seconds.map(Duration::from_secs_f64);
        options.timeout = seconds(self.timeout).or(options.timeout);
        options.import_timeout = seconds(self.import_timeout).unwrap_or(options.import_timeout);
        options.confined = self.write.is_empty() && self.network == Network::Off;
        PythonFile::open(sandbox, command, file.to_string_lossy(), options).await
    }

    /// The interpreter: that of the section, of an environment beside or above the file, of `VIRTUAL_ENV`, or
    /// `python3` of the `PATH`.
    async fn interpreter(
        &self,
        folder: &Path,
        own: &Path,
        environment: &Environment,
    ) -> Result<String, ToolError> {
        if let Some(named) = &self.interpreter {
            let named = if named.contains('/') { folder.join(named) } else { PathBuf::from(named) };
            return Ok(named.to_string_lossy().into_owned());
        }
        let beside = own.ancestors().take(MAX_ABOVE).map(|folder| folder.join(".venv"));
        let active = environment.get("VIRTUAL_ENV").map(PathBuf::from);
        let program =
            beside.chain(active).map(|folder| folder.join("bin/python")).find(|path| path.is_file());
        if let Some(program) = program {
            return Ok(program.to_string_lossy().into_owned());
        }
        let path = environment.get("PATH").unwrap_or_else(|| super::programs::SYSTEM_PATH.to_owned());
        let found =
            std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|path| path.is_file());
        let found = found.ok_or_else(|| {
            ToolError::new("there is no `python3` on the PATH")
                .hint("install Python 3.9 or newer, or name one: `python: {interpreter: PATH}`")
        })?;
        if !is_script(&found) {
            return Ok(found.to_string_lossy().into_owned());
        }
        // A version manager's script finds the interpreter with files that the sandbox does not show.
        let path = path.clone();
        let home = environment.get("HOME").unwrap_or_default();
        run_blocking(move || {
            let mut command = Command::new(&found);
            command.args(["-I", "-c", WHERE]).env_clear().env("PATH", path).env("HOME", home);
            let output = command
                .stdin(Stdio::null())
                .output()
                .map_err(|error| ToolError::new(format!("could not run `{}`: {error}", found.display())))?;
            let place = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() && !place.is_empty() {
                return Ok(ToolOutput::text(place));
            }
            let message = format!("`{}` does not start Python", found.display());
            Err(ToolError::new(message).hint("name an interpreter: `python: {interpreter: PATH}`"))
        })
        .await
        .map(|output| output.to_text())
    }
}

fn is_script(program: &Path) -> bool {
    use std::io::Read as _;
    let mut head = [0; 2];
    std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *b"#!"
}
