//! The `local` sandbox: no isolation at all, for work that is trusted. Chosen by name, never as a fallback.
//!
//! It shares the path of the `process` sandbox for starting, draining and stopping: a job adopts every orphan
//! of its command and kills the whole tree at the end.

use std::path::Path;
use std::sync::Arc;

use toolwright_core::{
    ExecRequest, ExecResult, OutputSink, Sandbox, SandboxProcess, SpawnRequest, ToolError,
};

use super::shared::{self, LauncherHandle};
use crate::launcher::client::unavailable;
use crate::launcher::wire::{LaunchMode, Setup};
use crate::policy::SandboxPolicy;

/// Runs commands as the caller, in a folder, with a rebuilt environment and a bounded life.
#[derive(Debug, Clone)]
pub struct LocalSandbox {
    handle: LauncherHandle,
}

impl LocalSandbox {
    /// Starts a launcher without layers. Of the policy only workspace, environment and time limit are used.
    pub async fn open(policy: SandboxPolicy) -> Result<Self, ToolError> {
        if policy.read_only {
            return Err(unavailable(
                "the `local` sandbox isolates nothing, so it cannot keep the workspace as it is",
            ));
        }
        shared::only_live(&policy, "local")?;
        let workspace = match &policy.workspace {
            Some(path) => shared::real(path)?,
            None => shared::private_folder()?,
        };
        let setup = Setup {
            mode: LaunchMode::Local,
            // Where nothing is isolated nothing can be protected.
            policy: SandboxPolicy { protect: Vec::new(), ..policy.clone() },
            workspace: Some(workspace.clone()),
            later: Vec::new(),
            without: Vec::new(),
            staging: Vec::new(),
        };
        let session = LauncherHandle::start(setup).await?;
        let home = std::env::var("HOME").unwrap_or_else(|_| "/".to_owned());
        let user = user_name(crate::sys::effective_ids().0);
        let handle =
            LauncherHandle { session: Arc::new(session), policy, workspace, home, user, layers: Vec::new() };
        Ok(LocalSandbox { handle })
    }

    /// The folder commands run in.
    pub fn workspace(&self) -> &Path {
        &self.handle.workspace
    }
}

/// The name of a user: what the system calls it, else what the caller calls itself, else its number.
fn user_name(id: u32) -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    });
    found.or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| id.to_string())
}

impl Sandbox for LocalSandbox {
    fn kind(&self) -> &str {
        "local"
    }

    fn isolates(&self) -> bool {
        false
    }

    fn sets_search_path(&self) -> bool {
        self.handle.policy.env.sets_search_path()
    }

    async fn exec(&self, command: ExecRequest) -> Result<ExecResult, ToolError> {
        self.handle.exec(command, None, None).await
    }

    async fn exec_live(&self, command: ExecRequest, sink: &dyn OutputSink) -> Result<ExecResult, ToolError> {
        self.handle.exec(command, Some(sink), None).await
    }

    async fn spawn(&self, command: SpawnRequest) -> Result<SandboxProcess, ToolError> {
        self.handle.spawn(command, None).await
    }

    async fn write_file(&self, path: &str, contents: &[u8]) -> Result<(), ToolError> {
        self.handle.write_file(path, contents, None).await
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>, ToolError> {
        self.handle.read_file(path).await
    }
}
