//! The sections `sandbox` and `sandboxes` of a file: the current folder to look at, and only what is named to
//! write in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
#[cfg(feature = "mcp")]
use serde_json::json;
use toolwright_core::{
    BoxFuture, Connection, DataError, DynSandbox, EffectJudge, ErrorKind, ExecRequest, ExecResult,
    OutputSink, Preparation, Sandbox, SandboxProcess, SpawnRequest, ToolError, read_data,
};
use toolwright_net::{HostRules, Reach};
use toolwright_runtime::RunBuilder;
use toolwright_sandbox::{
    Backend, Changes, EnvPolicy, Layer, LocalSandbox, Network, ProcessSandbox, SandboxLimits, SandboxPolicy,
    nearest_backend,
};

use super::{granted, programs};
use crate::environment::Environment;

/// What a file's `sandbox` section says, or one entry of `sandboxes`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSection {
    /// The kind of sandbox; left out, a process.
    pub kind: Option<SandboxKind>,
    /// What may be read, beside the current folder and the system.
    pub read: Vec<PathBuf>,
    /// Where may be written.
    pub write: Vec<PathBuf>,
    /// What may be reached.
    pub network: Network,
    /// Whether the file says anything about the network; `off` then holds for fetched pages too.
    #[serde(skip)]
    pub names_network: bool,
    /// Shown empty, beside what always is.
    pub mask: Vec<PathBuf>,
    /// What cannot be written although it lies in a folder that can; left out, the usual files that run
    /// programs.
    pub protect: Option<Vec<PathBuf>>,
    /// The environment of programs.
    pub env: EnvPolicy,
    /// What programs may use up.
    pub limits: SandboxLimits,
    /// The layers without which nothing runs; left out, the usual ones.
    pub require: Option<Vec<Layer>>,
    /// When changes to folders become real; left out, at the end of each call where the kind of sandbox and
    /// this machine can do that, and at once elsewhere.
    pub changes: Option<Changes>,
    /// Files that are put into the sandbox when it is opened, by path.
    pub files: BTreeMap<String, String>,
    /// A script that is run in it then.
    pub setup: Option<String>,
}

/// The word for no sandbox at all.
const NONE: &str = "none";

/// The kinds of sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum SandboxKind {
    /// A process with a view of its own.
    Process,
    /// `docker` or `podman`, and the image.
    Engine(String),
    /// No isolation.
    Local,
    /// None: tools that need a sandbox are refused.
    None,
}

impl std::str::FromStr for SandboxKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == NONE {
            return Ok(SandboxKind::None);
        }
        match Backend::named(text) {
            Some(Backend::Process) => Ok(SandboxKind::Process),
            Some(Backend::Local) => Ok(SandboxKind::Local),
            Some(Backend::Docker(None) | Backend::Podman(None)) => {
                Err(format!("name the image, for example {text}:debian:12"))
            }
            Some(Backend::Docker(Some(_)) | Backend::Podman(Some(_))) => {
                Ok(SandboxKind::Engine(text.to_owned()))
            }
            None => Err(match nearest_backend(text, [NONE]) {
                Some(near) => {
                    format!("there is no sandbox `{}`; did you mean `{near}`?", text.escape_debug())
                }
                None => "the kinds are process, docker:IMAGE, podman:IMAGE, local and none".to_owned(),
            }),
        }
    }
}

impl TryFrom<String> for SandboxKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A section as a policy.
#[derive(Debug, Clone)]
pub struct SandboxPlan {
    /// What programs see and may do.
    pub policy: SandboxPolicy,
    /// The folder that relative paths begin in.
    pub folder: PathBuf,
}

impl SandboxSection {
    /// The sandboxes of a file beside the default one, by name.
    pub(super) fn read_named(said: &Value) -> Result<Vec<(String, Self)>, DataError> {
        let entries = match said {
            Value::Null => return Ok(Vec::new()),
            Value::Object(entries) => entries,
            _ => return Err(DataError::new("`sandboxes` is a map of names to sandboxes")),
        };
        let read = entries.iter().map(|(name, said)| {
            let said = match name.as_str() {
                "default" => Err(DataError::new("`default` is the one that `sandbox` describes")),
                _ => Self::read(said).map_err(|misfit| misfit.about(format_args!("`sandboxes.{name}`"))),
            };
            Ok((name.clone(), said.map_err(|misfit| misfit.inside(name.as_str()))?))
        });
        read.collect()
    }

    pub(super) fn read(said: &Value) -> Result<Self, DataError> {
        match said {
            // The kind alone is enough.
            Value::String(kind) => {
                let kind = kind.parse().map_err(|problem: String| DataError::new(problem))?;
                Ok(SandboxSection { kind: Some(kind), ..SandboxSection::default() })
            }
            Value::Null => Ok(SandboxSection::default()),
            other => {
                let section: SandboxSection = read_data(other)?;
                Ok(SandboxSection { names_network: other.get("network").is_some(), ..section })
            }
        }
    }

    /// The kind of sandbox that is meant.
    pub fn kind(&self) -> SandboxKind {
        self.kind.clone().unwrap_or(SandboxKind::Process)
    }

    /// Where tools that fetch pages may go: what the sandbox's network opens and nothing else; `None` where
    /// nothing is said about the network.
    pub fn reach(&self) -> Result<Option<Reach>, ToolError> {
        Ok(match &self.network {
            Network::Allow(hosts) => {
                let wrong = |why| ToolError::invalid(format!("not a rule for hosts: {why}"));
                Some(Reach::Hosts(HostRules::parse(hosts).map_err(wrong)?))
            }
            Network::Off if !self.names_network => None,
            Network::Off | Network::Loopback => Some(Reach::Hosts(HostRules::nothing())),
        })
    }

    /// The section as a policy. Relative paths begin in the current folder, which is shown, and written in
    /// when it is named.
    pub fn plan(&self) -> Result<SandboxPlan, ToolError> {
        let folder = real(Path::new("."))?;
        let all = |said: &[PathBuf]| {
            said.iter().map(|path| granted::granted(path, &folder)).collect::<Result<Vec<_>, _>>()
        };
        let (read, write) = (all(&self.read)?, all(&self.write)?);
        let workspace = write.contains(&folder).then(|| folder.clone());
        let mut policy = SandboxPolicy { workspace, read, ..SandboxPolicy::default() };
        policy.write = write.into_iter().filter(|path| *path != folder).collect();
        let shown = |paths: &[PathBuf]| paths.iter().any(|path| folder.starts_with(path));
        if policy.workspace.is_none()
            && !shown(&policy.read)
            && !shown(&policy.write)
            && !shown(&policy.system)
        {
            if folder.parent().is_none() {
                let error = "the current folder is the root, which is too much for a sandbox to show";
                return Err(
                    ToolError::invalid(error).hint("go into another folder, or name one that may be read")
                );
            }
            policy.read.push(folder.clone());
        }
        policy.changes = self.changes.unwrap_or(match self.kind() {
            SandboxKind::Process => Changes::Commit,
            SandboxKind::Engine(_) | SandboxKind::Local | SandboxKind::None => Changes::Live,
        });
        policy.network.clone_from(&self.network);
        policy.mask.extend(self.mask.iter().map(|path| masked(path, &folder)));
        if let Some(protect) = &self.protect {
            policy.protect.clone_from(protect);
        }
        (policy.env, policy.limits) = (self.env.clone(), self.limits.clone());
        if let Some(require) = &self.require {
            policy.require.clone_from(require);
        }
        Ok(SandboxPlan { policy, folder })
    }

    /// Finds what is wrong with the section before anything is opened.
    pub fn check(&self) -> Result<(), ToolError> {
        self.plan()?.policy.check()
    }

    /// Opens the sandbox with its files, and runs its setup script; `None` when none is asked for.
    pub async fn open(&self) -> Result<Option<Arc<DynSandbox>>, ToolError> {
        let opened = self.open_bare().await?;
        if let Some(sandbox) = &opened {
            self.prepare(sandbox).await?;
        }
        Ok(opened)
    }

    /// Opens the sandbox as it is without files and script; `None` when none is asked for.
    pub async fn open_bare(&self) -> Result<Option<Arc<DynSandbox>>, ToolError> {
        self.open_plan(self.plan()?).await
    }

    /// Like [`open_bare`](Self::open_bare), with what this program needs shown beside what the section names.
    /// It is found on the `PATH` of the environment.
    pub async fn open_for(
        &self,
        command: ExecRequest,
        environment: &Environment,
    ) -> Result<Option<(Arc<DynSandbox>, ExecRequest)>, ToolError> {
        let mut plan = self.plan()?;
        // Containers have programs of their own.
        let command = match self.kind() {
            SandboxKind::Process => show_program(&mut plan.policy, command, environment)?,
            _ => command,
        };
        Ok(self.open_plan(plan).await?.map(|sandbox| (sandbox, command)))
    }

    async fn open_plan(&self, plan: SandboxPlan) -> Result<Option<Arc<DynSandbox>>, ToolError> {
        let SandboxPlan { policy, folder } = plan;
        match &self.kind() {
            SandboxKind::None => Ok(None),
            SandboxKind::Process => {
                let opened = match self.changes {
                    Some(_) => ProcessSandbox::open(policy).await?,
                    None => ProcessSandbox::open_staged_if_possible(policy).await?,
                };
                Ok(Some(Arc::new(opened.beginning_in(folder))))
            }
            SandboxKind::Engine(kind) => {
                let sandbox = toolwright_sandbox::open(Some(kind), policy).await?;
                Ok(Some(Arc::new(FolderSandbox { sandbox, folder })))
            }
            SandboxKind::Local => {
                if !self.read.is_empty() || !self.write.is_empty() || self.network != Network::Off {
                    let error = ToolError::invalid(
                        "the `local` sandbox isolates nothing, so what may be read, written and reached means \
                         nothing to it",
                    );
                    return Err(error.hint("leave that out, or use the `process` sandbox"));
                }
                let (workspace, changes) = (Some(folder), policy.changes);
                let policy = SandboxPolicy { workspace, changes, ..SandboxPolicy::default() };
                Ok(Some(Arc::new(LocalSandbox::open(policy).await?)))
            }
        }
    }

    /// Puts the files of the section into a sandbox, and runs its setup script.
    pub async fn prepare(&self, sandbox: &Arc<DynSandbox>) -> Result<(), ToolError> {
        let mut preparation = Preparation::new();
        for (path, contents) in &self.files {
            preparation = preparation.file(path.clone(), contents.clone());
        }
        if let Some(script) = &self.setup {
            preparation = preparation.setup(script.clone());
        }
        let sandboxes = [("default".to_owned(), sandbox.clone())].into_iter().collect();
        preparation.carry_out(&sandboxes).await
    }
}

/// An error of one of several sandboxes, which is named.
pub fn in_sandbox(name: &str, error: &ToolError) -> ToolError {
    let told = ToolError::of(error.kind(), format!("the sandbox `{name}`: {}", error.message()));
    match error.hint_text() {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

/// Gives a run the sandboxes of a file: the default one, if there is one, and others by name. Without a
/// default one, tools that name none are refused; they do not work in one of the others.
pub(crate) fn give_sandboxes(
    mut builder: RunBuilder,
    default: Option<Arc<DynSandbox>>,
    named: impl IntoIterator<Item = (String, Arc<DynSandbox>)>,
) -> RunBuilder {
    let mut named = named.into_iter().peekable();
    let none = || ToolError::of(ErrorKind::SandboxUnavailable, "the run has no default sandbox");
    let closed = || named.peek().is_some().then(|| closed(none()));
    if let Some(default) = default.or_else(closed) {
        builder = builder.sandbox("default", default);
    }
    named.fold(builder, |builder, (name, sandbox)| builder.sandbox(name, sandbox))
}

/// A sandbox in which nothing can be done, for the reason that is given.
pub(crate) fn closed(why: ToolError) -> Arc<DynSandbox> {
    Arc::new(Closed(why))
}

/// Stands where the default sandbox would be: nothing can be done in it, and each call is told why.
struct Closed(ToolError);

impl Closed {
    fn refuse<'a, T: 'a>(&self) -> BoxFuture<'a, Result<T, ToolError>> {
        let error = ToolError::of(ErrorKind::SandboxUnavailable, self.0.message());
        let error = match self.0.hint_text() {
            Some(hint) => error.hint(hint),
            None => error,
        };
        Box::pin(async { Err(error) })
    }
}

impl Sandbox for Closed {
    fn kind(&self) -> &str {
        NONE
    }

    fn isolates(&self) -> bool {
        true
    }

    async fn exec(&self, _: ExecRequest) -> Result<ExecResult, ToolError> {
        self.refuse().await
    }

    async fn spawn(&self, _: SpawnRequest) -> Result<SandboxProcess, ToolError> {
        self.refuse().await
    }

    async fn write_file(&self, _: &str, _: &[u8]) -> Result<(), ToolError> {
        self.refuse().await
    }

    async fn read_file(&self, _: &str) -> Result<Vec<u8>, ToolError> {
        self.refuse().await
    }
}

/// Opens the sandbox that a file asks for, for one program: the policy as the file says it, and what the
/// program needs.
#[cfg(feature = "mcp")]
pub(crate) async fn open_policy(
    said: Value,
    command: ExecRequest,
    environment: &Environment,
) -> Result<(Arc<DynSandbox>, ExecRequest), ToolError> {
    let said = if said.is_null() { json!({}) } else { said };
    let mut policy: SandboxPolicy =
        read_data(&said).map_err(|misfit| misfit.about("`sandbox` is not a policy"))?;
    let here = real(Path::new("."))?;
    for path in policy.workspace.iter_mut().chain(&mut policy.read).chain(&mut policy.write) {
        *path = granted::granted(path, &here).map_err(|error| {
            let told = format!("`sandbox` names `{}`: {}", path.display(), error.message());
            match error.hint_text() {
                Some(hint) => ToolError::invalid(told).hint(hint),
                None => ToolError::invalid(told),
            }
        })?;
    }
    if policy.workspace.is_none() {
        // A private workspace has nothing to hide; what is meant lies where the other paths begin.
        let folder = real(Path::new("."))?;
        policy.mask.iter_mut().for_each(|path| *path = masked(path, &folder));
    }
    let command = show_program(&mut policy, command, environment)?;
    let opened = match said.get("changes") {
        Some(_) => ProcessSandbox::open(policy).await?,
        None => ProcessSandbox::open_staged_if_possible(policy).await?,
    };
    Ok((Arc::new(opened), command))
}

/// Shows a program and what it needs; the command that starts it there.
pub(super) fn show_program(
    policy: &mut SandboxPolicy,
    mut command: ExecRequest,
    environment: &Environment,
) -> Result<ExecRequest, ToolError> {
    let shown: Vec<PathBuf> = [&policy.system, &policy.read, &policy.write]
        .into_iter()
        .flatten()
        .chain(&policy.workspace)
        .cloned()
        .collect();
    let needs = programs::needs(&command.command, &shown, environment)?;
    policy.read.extend(needs.read);
    command.command = needs.command;
    if !needs.path.is_empty() && !command.env.contains_key("PATH") {
        let system = std::env::split_paths(programs::SYSTEM_PATH);
        let path = std::env::join_paths(needs.path.into_iter().chain(system)).unwrap_or_default();
        command.env.insert("PATH".to_owned(), path.to_string_lossy().into_owned());
    }
    Ok(command)
}

/// A path to mask: in the folder, unless it says where it is itself.
fn masked(path: &Path, folder: &Path) -> PathBuf {
    if path.starts_with("~") { path.to_owned() } else { folder.join(path) }
}

fn real(path: &Path) -> Result<PathBuf, ToolError> {
    let real = path.canonicalize();
    real.map_err(|error| ToolError::invalid(format!("cannot use `{}`: {error}", path.display())))
}

/// A container whose commands and relative paths begin in a folder.
struct FolderSandbox {
    sandbox: Arc<DynSandbox>,
    folder: PathBuf,
}

impl FolderSandbox {
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

impl Sandbox for FolderSandbox {
    fn kind(&self) -> &str {
        self.sandbox.kind()
    }

    fn isolates(&self) -> bool {
        self.sandbox.isolates()
    }

    fn layers(&self) -> Vec<String> {
        self.sandbox.layers()
    }

    fn sets_search_path(&self) -> bool {
        self.sandbox.sets_search_path()
    }

    async fn exec(&self, command: ExecRequest) -> Result<ExecResult, ToolError> {
        self.sandbox.exec(self.here(command)).await
    }

    async fn exec_live(&self, command: ExecRequest, sink: &dyn OutputSink) -> Result<ExecResult, ToolError> {
        self.sandbox.exec_live(self.here(command), sink).await
    }

    async fn spawn(&self, mut command: SpawnRequest) -> Result<SandboxProcess, ToolError> {
        command.exec = self.here(command.exec);
        self.sandbox.spawn(command).await
    }

    async fn write_file(&self, path: &str, contents: &[u8]) -> Result<(), ToolError> {
        self.sandbox.write_file(&self.path(path), contents).await
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>, ToolError> {
        self.sandbox.read_file(&self.path(path)).await
    }

    fn judged_by(&self, judge: Arc<dyn EffectJudge>) -> Option<Arc<DynSandbox>> {
        let (sandbox, folder) = (self.sandbox.judged_by(judge)?, self.folder.clone());
        Some(Arc::new(FolderSandbox { sandbox, folder }))
    }

    async fn connection(&self, user: Option<&str>) -> Result<Option<Connection>, ToolError> {
        self.sandbox.connection(user).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whatever_is_asked_of_a_closed_sandbox_is_told_why() {
        let why = ToolError::of(ErrorKind::SandboxUnavailable, "no user namespaces").hint("allow them");
        let sandbox = closed(why);
        let refused = [
            sandbox.exec(ExecRequest::new(["true"])).await.err(),
            sandbox.spawn(SpawnRequest::piped(ExecRequest::new(["true"]))).await.err(),
            sandbox.write_file("a", b"").await.err(),
            sandbox.read_file("a").await.err(),
        ];
        for error in refused {
            let told = error.as_ref().map(|error| (error.kind(), error.message(), error.hint_text()));
            let want = (ErrorKind::SandboxUnavailable, "no user namespaces", Some("allow them"));
            assert_eq!(told, Some(want));
        }
    }
}
