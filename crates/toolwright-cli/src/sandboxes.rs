//! From the command line to a sandbox: what is said there comes on top of what the file says.

use std::sync::Arc;

use toolwright::file::{Plan, SandboxSection};
use toolwright::lang::Loaded;
use toolwright::{ExecRequest, RunBuilder, Sandbox, ToolError};

use crate::args::SandboxArgs;
use crate::report::Usage;

/// What the command line asks for, with what the file says.
pub fn of(args: &SandboxArgs, loaded: Option<&Loaded>) -> anyhow::Result<SandboxArgs> {
    let mut args = args.clone();
    if let Some(loaded) = loaded {
        args.section = SandboxSection::of(loaded).map_err(refused)?.unwrap_or_default();
    }
    Ok(args)
}

/// The policy of a command line.
pub fn plan(args: &SandboxArgs) -> anyhow::Result<Plan> {
    Ok(args.all().plan().map_err(refused)?)
}

/// Opens what the command line and the file ask for, with the files and the setup script of the file; `None` when they ask
/// for none.
pub async fn open(args: &SandboxArgs) -> anyhow::Result<Option<Arc<dyn Sandbox>>> {
    Ok(args.all().open().await.map_err(refused)?)
}

/// Like [`open`], with what this program needs shown beside what the command line names. `None` when it asks for none.
pub async fn open_for(
    args: &SandboxArgs,
    command: ExecRequest,
) -> anyhow::Result<Option<(Arc<dyn Sandbox>, ExecRequest)>> {
    Ok(args.all().open_for(command).await.map_err(refused)?)
}

/// Gives a run the sandbox the command line and the file ask for.
pub async fn lend(
    args: &SandboxArgs,
    loaded: Option<&Loaded>,
    builder: RunBuilder,
) -> anyhow::Result<RunBuilder> {
    Ok(match try_open(&of(args, loaded)?).await? {
        Some(sandbox) => builder.sandbox("default", sandbox),
        None => builder,
    })
}

/// Opens what is asked for. On a machine that has no sandbox, tools that need one are refused call by call, and the others
/// work; what the command line or the file gets wrong is an error.
pub async fn try_open(args: &SandboxArgs) -> anyhow::Result<Option<Arc<dyn Sandbox>>> {
    check(args)?;
    let all = args.all();
    let opened = all.open_bare().await.unwrap_or_else(|error| {
        eprintln!("no sandbox: {error:#}");
        None
    });
    if let Some(sandbox) = &opened {
        all.prepare(sandbox).await.map_err(refused)?;
    }
    Ok(opened)
}

/// Finds what is wrong with a plan before anything is opened.
pub fn check(args: &SandboxArgs) -> anyhow::Result<()> {
    Ok(args.all().check().map_err(refused)?)
}

fn refused(error: ToolError) -> Usage {
    Usage::from(error.info())
}
