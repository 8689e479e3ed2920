//! From the command line to a sandbox: what is said there comes on top of what the file says.

use std::sync::Arc;

use toolwright::ToolError;
use toolwright::file::Environment;
use toolwright::file::{SandboxPlan, ToolFile, in_sandbox};
use toolwright::sandbox::{DynSandbox, ExecRequest};

use crate::args::SandboxArgs;
use crate::report::Usage;

/// What the command line asks for, with what the file says.
pub fn of(args: &SandboxArgs, file: &ToolFile) -> SandboxArgs {
    SandboxArgs {
        section: file.sandbox().cloned().unwrap_or_default(),
        named: file.sandboxes().to_vec(),
        ..args.clone()
    }
}

/// The policy of a command line.
pub fn plan(args: &SandboxArgs) -> anyhow::Result<SandboxPlan> {
    Ok(args.all().plan().map_err(refused)?)
}

/// The sandbox of a command line, with what this program needs shown beside what the command line names.
/// `None` when it asks for none.
pub async fn open_for(
    args: &SandboxArgs,
    command: ExecRequest,
) -> anyhow::Result<Option<(Arc<DynSandbox>, ExecRequest)>> {
    Ok(args.all().open_for(command, &Environment::of_process()).await.map_err(refused)?)
}

/// Finds what is wrong with the plans before anything is opened.
pub fn check(args: &SandboxArgs) -> anyhow::Result<()> {
    args.all().check().map_err(refused)?;
    for (name, section) in &args.named {
        section.check().map_err(|error| refused(in_sandbox(name, &error)))?;
    }
    Ok(())
}

pub fn refused(error: ToolError) -> Usage {
    Usage::from(error.info())
}
