//! From the command line to a sandbox: what is said there comes on top of what the file says.

use std::sync::Arc;

use toolwright::file::{Plan, SandboxSection, give_sandboxes, in_sandbox};
use toolwright::lang::Loaded;
use toolwright::{ExecRequest, RunBuilder, Sandbox, ToolError};

use crate::args::SandboxArgs;
use crate::console::Console;
use crate::report::Usage;
use crate::trust;

/// What the command line asks for, with what the file says.
pub fn of(args: &SandboxArgs, loaded: Option<&Loaded>) -> anyhow::Result<SandboxArgs> {
    let mut args = args.clone();
    if let Some(loaded) = loaded {
        args.section = SandboxSection::of(loaded).map_err(refused)?.unwrap_or_default();
        args.named = SandboxSection::named(loaded).map_err(refused)?;
    }
    Ok(args)
}

/// The policy of a command line.
pub fn plan(args: &SandboxArgs) -> anyhow::Result<Plan> {
    Ok(args.all().plan().map_err(refused)?)
}

/// The sandboxes of a run.
#[derive(Clone, Default)]
pub struct Opened {
    default: Option<Arc<dyn Sandbox>>,
    named: Vec<(String, Arc<dyn Sandbox>)>,
}

impl Opened {
    /// Gives them to a run.
    pub fn give(&self, builder: RunBuilder) -> RunBuilder {
        give_sandboxes(builder, self.default.clone(), self.named.clone())
    }
}

/// Opens what the command line and the file ask for, with the files and the setup script of the file. The default sandbox
/// must be had; a tool that works in another is refused when that cannot.
pub async fn open(console: &Console, args: &SandboxArgs) -> anyhow::Result<Opened> {
    check_named(args)?;
    trust::sandboxes(console, &args.section, &args.named).map_err(refused)?;
    let default = args.all().open().await.map_err(refused)?;
    Ok(Opened { default, named: open_named(console, args).await? })
}

/// Like [`open`], with what this program needs shown beside what the command line names. `None` when it asks for none.
pub async fn open_for(
    args: &SandboxArgs,
    command: ExecRequest,
) -> anyhow::Result<Option<(Arc<dyn Sandbox>, ExecRequest)>> {
    Ok(args.all().open_for(command).await.map_err(refused)?)
}

/// Gives a run the sandboxes the command line and the file ask for.
pub async fn lend(
    console: &Console,
    args: &SandboxArgs,
    loaded: Option<&Loaded>,
    builder: RunBuilder,
) -> anyhow::Result<RunBuilder> {
    Ok(try_open(console, &of(args, loaded)?).await?.give(builder))
}

/// Opens what is asked for. On a machine that has no sandbox, tools that need one are refused call by call, and the others
/// work; what the command line or the file gets wrong is an error.
pub async fn try_open(console: &Console, args: &SandboxArgs) -> anyhow::Result<Opened> {
    check(args)?;
    check_named(args)?;
    trust::sandboxes(console, &args.section, &args.named).map_err(refused)?;
    let all = args.all();
    let default = all.open_bare().await.unwrap_or_else(|error| {
        console.say(format_args!("no sandbox: {error:#}"));
        None
    });
    if let Some(sandbox) = &default {
        all.prepare(sandbox).await.map_err(refused)?;
    }
    Ok(Opened { default, named: open_named(console, args).await? })
}

/// Opens the sandboxes with names, as far as they can be had.
async fn open_named(
    console: &Console,
    args: &SandboxArgs,
) -> anyhow::Result<Vec<(String, Arc<dyn Sandbox>)>> {
    let mut named = Vec::new();
    for (name, section) in &args.named {
        let opened = section.open_bare().await.unwrap_or_else(|error| {
            console.say(format_args!("no sandbox `{name}`: {error:#}"));
            None
        });
        if let Some(sandbox) = opened {
            section.prepare(&sandbox).await.map_err(|error| refused(in_sandbox(name, &error)))?;
            named.push((name.clone(), sandbox));
        }
    }
    Ok(named)
}

/// Finds what is wrong with a plan before anything is opened.
pub fn check(args: &SandboxArgs) -> anyhow::Result<()> {
    Ok(args.all().check().map_err(refused)?)
}

/// The same for the sandboxes with names.
pub fn check_named(args: &SandboxArgs) -> anyhow::Result<()> {
    for (name, section) in &args.named {
        section.check().map_err(|error| refused(in_sandbox(name, &error)))?;
    }
    Ok(())
}

fn refused(error: ToolError) -> Usage {
    Usage::from(error.info())
}
