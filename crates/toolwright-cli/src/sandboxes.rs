//! From the command line to a sandbox: the current folder to look at, and only what is named to write in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright::lang::Loaded;
use toolwright::sandbox::{LocalSandbox, Network, Policy, ProcessSandbox};
use toolwright::{
    BoxFuture, Connection, ExecRequest, ExecResult, OutputSink, RunBuilder, Sandbox, SandboxProcess,
    SpawnRequest, ToolError,
};

use crate::args::{SandboxArgs, SandboxKind};
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
    // Protections of files that other programs obey go with the workspace, so a writable current folder becomes it.
    let workspace = write.contains(&folder).then(|| folder.clone());
    let mut policy = Policy { workspace, read, ..Policy::default() };
    policy.write = write.into_iter().filter(|path| *path != folder).collect();
    let shown = |paths: &[PathBuf]| paths.iter().any(|path| folder.starts_with(path));
    if policy.workspace.is_none() {
        // A private workspace has nothing to protect.
        policy.protect = Vec::new();
        if !shown(&policy.read) && !shown(&policy.write) && !shown(&policy.system) {
            policy.read.push(folder.clone());
        }
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

/// Opens what the command line asks for; `None` when it asks for none.
pub async fn open(args: &SandboxArgs) -> anyhow::Result<Option<Arc<dyn Sandbox>>> {
    let Plan { policy, folder } = plan(args)?;
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

/// Gives a run the sandbox the command line asks for. On a machine that has none, tools that need one are refused call by
/// call, and the others work; what the command line itself gets wrong is an error.
pub async fn lend(
    args: &SandboxArgs,
    loaded: Option<&Loaded>,
    builder: RunBuilder,
) -> anyhow::Result<RunBuilder> {
    let args = of(args, loaded)?;
    check(&args)?;
    match open(&args).await {
        Ok(Some(sandbox)) => Ok(builder.sandbox("default", sandbox)),
        Ok(None) => Ok(builder),
        Err(error) => {
            eprintln!("no sandbox: {error:#}");
            Ok(builder)
        }
    }
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
