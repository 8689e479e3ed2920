//! From the command line to a sandbox: the current folder to look at, and only what is named to write in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright::lang::Loaded;
use toolwright::sandbox::{LocalSandbox, Network, Policy, ProcessSandbox};
use toolwright::{
    BoxFuture, Connection, ExecRequest, ExecResult, OutputSink, Preparation, RunBuilder, Sandbox,
    SandboxProcess, SpawnRequest, ToolError,
};

use crate::args::{SandboxArgs, SandboxKind, SandboxSection};
use crate::programs;
use crate::report::Usage;

/// What the command line asks for.
pub struct Plan {
    pub policy: Policy,
    /// The folder that relative paths begin in.
    pub folder: PathBuf,
}

/// What the command line asks for, with what the file says.
pub fn of(args: &SandboxArgs, loaded: Option<&Loaded>) -> anyhow::Result<SandboxArgs> {
    let mut args = args.clone();
    if let Some(section) = loaded.and_then(|loaded| loaded.section("sandbox")) {
        // The kind alone is enough.
        let value = match &section.value {
            Value::String(kind) => json!({ "kind": kind }),
            other => other.clone(),
        };
        let said = serde_json::from_value(value);
        args.section = said.map_err(|error| Usage::new(format!("{}: `sandbox`: {error}", section.place)))?;
    }
    Ok(args)
}

/// The policy of a command line.
pub fn plan(args: &SandboxArgs) -> anyhow::Result<Plan> {
    let folder = real(Path::new("."))?;
    let section = &args.section;
    let all = |said: &[PathBuf], more: &[PathBuf]| -> Result<Vec<PathBuf>, Usage> {
        said.iter().chain(more).map(|path| real(path)).collect()
    };
    let (read, write) = (all(&section.read, &args.read)?, all(&section.write, &args.write)?);
    let workspace = write.contains(&folder).then(|| folder.clone());
    let mut policy = Policy { workspace, read, ..Policy::default() };
    policy.write = write.into_iter().filter(|path| *path != folder).collect();
    let shown = |paths: &[PathBuf]| paths.iter().any(|path| folder.starts_with(path));
    if policy.workspace.is_none() && !shown(&policy.read) && !shown(&policy.write) && !shown(&policy.system) {
        if folder.parent().is_none() {
            let error = Usage::new("the current folder is the root, which is too much for a sandbox to show");
            return Err(error.hint("go into another folder, or name one with --read").into());
        }
        policy.read.push(folder.clone());
    }
    policy.network = match (&section.network, args.allow_net.as_slice()) {
        (network, []) => network.clone(),
        (Network::Allow(hosts), more) => Network::Allow(hosts.iter().chain(more).cloned().collect()),
        (_, hosts) => Network::Allow(hosts.to_vec()),
    };
    policy.mask.extend(section.mask.iter().cloned());
    (policy.env, policy.limits) = (section.env.clone(), section.limits.clone());
    if let Some(require) = &section.require {
        policy.require.clone_from(require);
    }
    Ok(Plan { policy, folder })
}

/// Opens what the command line and the file ask for, with the files and the setup script of the file; `None` when they ask
/// for none.
pub async fn open(args: &SandboxArgs) -> anyhow::Result<Option<Arc<dyn Sandbox>>> {
    let opened = open_plan(args, plan(args)?).await?;
    prepare(&args.section, opened.as_ref()).await?;
    Ok(opened)
}

/// Like [`open`], with what this program needs shown beside what the command line names. `None` when it asks for none.
pub async fn open_for(
    args: &SandboxArgs,
    command: ExecRequest,
) -> anyhow::Result<Option<(Arc<dyn Sandbox>, ExecRequest)>> {
    let mut plan = plan(args)?;
    // Containers have programs of their own.
    let command = match args.kind() {
        SandboxKind::Process => show_program(&mut plan.policy, command)?,
        _ => command,
    };
    Ok(open_plan(args, plan).await?.map(|sandbox| (sandbox, command)))
}

/// Opens the sandbox that a file asks for, for one program: the policy as the file says it, and what the program needs.
pub async fn open_policy(
    said: serde_json::Value,
    command: ExecRequest,
) -> Result<(Arc<dyn Sandbox>, ExecRequest), ToolError> {
    let mut said = if said.is_null() { serde_json::json!({}) } else { said };
    // In YAML, `off` is false.
    if let Some(network) = said.get_mut("network").filter(|network| **network == serde_json::json!(false)) {
        *network = "off".into();
    }
    let mut policy: Policy = serde_json::from_value(said)
        .map_err(|error| ToolError::invalid(format!("`sandbox` is not a policy: {error}")))?;
    for path in policy.workspace.iter_mut().chain(&mut policy.read).chain(&mut policy.write) {
        *path = path
            .canonicalize()
            .map_err(|error| ToolError::invalid(format!("`sandbox` names `{}`: {error}", path.display())))?;
    }
    let command =
        show_program(&mut policy, command).map_err(|error| ToolError::invalid(error.to_string()))?;
    Ok((Arc::new(ProcessSandbox::open(policy).await?), command))
}

/// Shows a program and what it needs; the command that starts it there.
fn show_program(policy: &mut Policy, mut command: ExecRequest) -> Result<ExecRequest, Usage> {
    let shown: Vec<PathBuf> = [&policy.system, &policy.read, &policy.write]
        .into_iter()
        .flatten()
        .chain(&policy.workspace)
        .cloned()
        .collect();
    let needs = programs::needs(&command.command, &shown)?;
    policy.read.extend(needs.read);
    command.command = needs.command;
    if !needs.path.is_empty() && !command.env.contains_key("PATH") {
        let system = std::env::split_paths(programs::SYSTEM_PATH);
        let path = std::env::join_paths(needs.path.into_iter().chain(system)).unwrap_or_default();
        command.env.insert("PATH".to_owned(), path.to_string_lossy().into_owned());
    }
    Ok(command)
}

async fn open_plan(args: &SandboxArgs, plan: Plan) -> anyhow::Result<Option<Arc<dyn Sandbox>>> {
    let Plan { policy, folder } = plan;
    let refused = |error: ToolError| Usage::from(error.info());
    match &args.kind() {
        SandboxKind::None => Ok(None),
        SandboxKind::Process => {
            let sandbox = Arc::new(ProcessSandbox::open(policy).await.map_err(refused)?);
            Ok(Some(Arc::new(Inside { sandbox, folder })))
        }
        SandboxKind::Engine(kind) => {
            let sandbox = toolwright::sandbox::open(Some(kind), policy).await.map_err(refused)?;
            Ok(Some(Arc::new(Inside { sandbox, folder })))
        }
        SandboxKind::Local => {
            let opens = |paths: &[PathBuf], said: &[PathBuf]| !paths.is_empty() || !said.is_empty();
            let section = &args.section;
            if opens(&args.read, &section.read)
                || opens(&args.write, &section.write)
                || !args.allow_net.is_empty()
                || section.network != Network::Off
            {
                let error = Usage::new(
                    "the `local` sandbox isolates nothing, so --read, --write and --allow-net mean nothing to it",
                );
                return Err(error.hint("leave them out, or use --sandbox process").into());
            }
            let policy = Policy { workspace: Some(folder), ..Policy::default() };
            Ok(Some(Arc::new(LocalSandbox::open(policy).await.map_err(refused)?)))
        }
    }
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
    let opened = open_plan(args, plan(args)?).await.unwrap_or_else(|error| {
        eprintln!("no sandbox: {error:#}");
        None
    });
    prepare(&args.section, opened.as_ref()).await?;
    Ok(opened)
}

/// Puts the files of a file's `sandbox` section in, and runs its setup script.
async fn prepare(section: &SandboxSection, sandbox: Option<&Arc<dyn Sandbox>>) -> Result<(), Usage> {
    let Some(sandbox) = sandbox else { return Ok(()) };
    let mut preparation = Preparation::new();
    for (path, contents) in &section.files {
        preparation = preparation.file(path.clone(), contents.clone());
    }
    if let Some(script) = &section.setup {
        preparation = preparation.setup(script.clone());
    }
    let sandboxes = [("default".to_owned(), sandbox.clone())].into_iter().collect();
    preparation.carry_out(&sandboxes).await.map_err(|error| Usage::from(error.info()))
}

/// Finds what is wrong with a plan before anything is opened.
pub fn check(args: &SandboxArgs) -> anyhow::Result<()> {
    Ok(plan(args)?.policy.check().map_err(|error| Usage::from(error.info()))?)
}

fn real(path: &Path) -> Result<PathBuf, Usage> {
    path.canonicalize().map_err(|error| Usage::new(format!("cannot use `{}`: {error}", path.display())))
}

/// A sandbox whose commands and relative paths begin in a folder.
struct Inside {
    sandbox: Arc<dyn Sandbox>,
    folder: PathBuf,
}

impl Inside {
    fn here(&self, mut command: ExecRequest) -> ExecRequest {
        command.cwd = Some(self.path(command.cwd.as_deref().unwrap_or_default()));
        command
    }

    fn path(&self, path: &str) -> String {
        if path.is_empty() { self.folder.clone() } else { self.folder.join(path) }
            .to_string_lossy()
            .into_owned()
    }
}

impl Sandbox for Inside {
    fn kind(&self) -> &str {
        self.sandbox.kind()
    }

    fn isolates(&self) -> bool {
        self.sandbox.isolates()
    }

    fn exec<'a>(&'a self, command: ExecRequest) -> BoxFuture<'a, Result<ExecResult, ToolError>> {
        self.sandbox.exec(self.here(command))
    }

    fn exec_live<'a>(
        &'a self,
        command: ExecRequest,
        sink: &'a dyn OutputSink,
    ) -> BoxFuture<'a, Result<ExecResult, ToolError>> {
        self.sandbox.exec_live(self.here(command), sink)
    }

    fn spawn<'a>(&'a self, mut command: SpawnRequest) -> BoxFuture<'a, Result<SandboxProcess, ToolError>> {
        command.exec = self.here(command.exec);
        self.sandbox.spawn(command)
    }

    fn write_file<'a>(&'a self, path: &'a str, contents: &'a [u8]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move { self.sandbox.write_file(&self.path(path), contents).await })
    }

    fn read_file<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(async move { self.sandbox.read_file(&self.path(path)).await })
    }

    fn connection<'a>(
        &'a self,
        user: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Connection>, ToolError>> {
        self.sandbox.connection(user)
    }
}
