//! The `docker` and `podman` sandboxes: one container for each sandbox, driven through the engine's command
//! line.
//!
//! The engine's client runs under our own launcher like any other program, so starting, draining and stopping
//! it is the path all backends share. Process 1 of the container lives on the client's input: when the
//! runtime goes, however it goes, the client does, the input ends, and the engine removes the container.
//! Commands enter with the client's `exec` and tell with a first line of their own whether they start; what
//! they leave behind is killed by process 1.

mod arguments;
mod control;
mod entry_report;
mod process;
mod running;
mod stale_mounts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolwright_core::{
    Connection, ErrorKind, ExecRequest, ExecResult, MAX_READ_FILE, OutputSink, Sandbox, SandboxProcess,
    SpawnRequest, ToolError, ToolOutput,
};

use self::control::Clerk;
use self::entry_report::Entered;
use self::running::ContainerCommand;
use self::stale_mounts::{As, Covered};
use super::exec::{self, Each, Finish};
use super::shared::{FILE_PATIENCE, LauncherHandle, ignore, look_up};
use crate::env;
use crate::launcher::client::unavailable;
use crate::launcher::wire::{Job, LaunchMode, Setup};
use crate::layer::guard::{Guards, unprotected};
use crate::layer::home::{self, AtHome};
use crate::layer::identity::{HOME, NAME};
use crate::layer::view::PRIVATE_WORKSPACE;
use crate::policy::{EnvPolicy, Layer, SandboxPolicy};
use crate::sys;

const INIT: &str = include_str!("init.sh");
const ENTER: &str = include_str!("enter.sh");
const READ: &str = include_str!("read.sh");
const WRITE: &str = include_str!("write.sh");

/// How long a container may take to end by itself.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// How many milliseconds an engine without a daemon may take to clear up after a container or a command: the
/// processes that do it are descendants of its client.
const GRACE: u64 = 5_000;
/// What the engine's client finds of the caller's environment.
const CLIENT_VARIABLES: [&str; 10] = [
    "PATH",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "XDG_RUNTIME_DIR",
];

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Docker,
    Podman,
}

impl Engine {
    fn program(self) -> &'static str {
        match self {
            Engine::Docker => "docker",
            Engine::Podman => "podman",
        }
    }
}

/// A sandbox in a container of Docker or Podman. The image needs `sh` and the usual small tools, nothing of
/// ours.
#[derive(Debug, Clone)]
pub struct EngineSandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    /// Where the client runs.
    client: LauncherHandle,
    /// The container.
    name: String,
    policy: SandboxPolicy,
    workspace: PathBuf,
    layers: Vec<String>,
    clerk: Clerk,
    covered: Covered,
    /// Held by the monitor too, which outlives a runtime that is killed.
    _guards: Guards,
}

impl EngineSandbox {
    /// Starts a container of the policy's image with Docker.
    pub async fn docker(policy: SandboxPolicy) -> Result<Self, ToolError> {
        Self::open(Engine::Docker, policy).await
    }

    /// Starts a container of the policy's image with Podman.
    pub async fn podman(policy: SandboxPolicy) -> Result<Self, ToolError> {
        Self::open(Engine::Podman, policy).await
    }

    async fn open(engine: Engine, policy: SandboxPolicy) -> Result<Self, ToolError> {
        policy.check()?;
        super::shared::only_live(&policy, engine.program())?;
        let AtHome { mut policy, later } = home::resolve(&policy, look_up)?;
        let folder = policy.workspace.as_deref().map(super::shared::real).transpose()?;
        let write = policy.write.iter().map(|path| super::shared::exists(path)).collect::<Result<_, _>>()?;
        let pass = CLIENT_VARIABLES.map(str::to_owned).to_vec();
        let host = SandboxPolicy {
            workspace: Some(folder.clone().unwrap_or_else(|| PathBuf::from("/"))),
            read_only: folder.is_none() || policy.read_only,
            write,
            protect: policy.protect.clone(),
            env: EnvPolicy { pass, ..EnvPolicy::default() },
            ..SandboxPolicy::default()
        };
        let at = host.workspace.clone().unwrap_or_default();
        let setup = Setup {
            mode: LaunchMode::Local,
            policy: host.clone(),
            workspace: Some(at.clone()),
            later: Vec::new(),
            without: Vec::new(),
            staging: Vec::new(),
        };
        let client = LauncherHandle {
            session: Arc::new(LauncherHandle::start(setup).await?),
            home: std::env::var("HOME").unwrap_or_else(|_| "/".to_owned()),
            user: sys::effective_ids().0.to_string(),
            layers: Vec::new(),
            workspace: at.clone(),
            policy: host,
        };
        policy.workspace = folder;
        let workspace = policy.workspace.clone().unwrap_or_else(|| PRIVATE_WORKSPACE.into());
        let kept = policy.mask.iter().chain(&policy.read).chain(&policy.write);
        let kept: Vec<PathBuf> = kept.map(|path| workspace.join(path)).collect();
        let guards =
            Guards::prepare(&Guards::folders(&client.policy, Some(&at)), &client.policy.protect, &kept)
                .map_err(|reason| unavailable(unprotected(reason)))?;
        let name = format!("toolwright-{:016x}", sys::random_u64());
        let start = arguments::run(engine, &policy, &workspace, &guards.list, &name)?;
        let covered = Self::covered(&policy, later, &workspace, &guards)?;
        let (clerk, layers) = Clerk::start(&client, start).await?;
        require(&policy, &layers)?;
        let layers = layers.iter().map(|layer| layer.as_str().to_owned()).collect();
        let inner =
            Inner { engine, client, name, policy, workspace, layers, clerk, covered, _guards: guards };
        Ok(EngineSandbox { inner: Arc::new(inner) })
    }

    /// What of the host's folders the container masks and protects.
    fn covered(
        policy: &SandboxPolicy,
        later: Vec<PathBuf>,
        workspace: &Path,
        guards: &Guards,
    ) -> Result<Covered, ToolError> {
        let shown = policy.workspace.iter().chain(&policy.read).chain(&policy.write);
        let shown: Vec<PathBuf> = shown.filter_map(|path| super::shared::exists(path).ok()).collect();
        let is_shown = |path: &PathBuf| shown.iter().any(|folder| path.starts_with(folder));
        let masks = policy.mask.iter().map(|path| workspace.join(path)).filter(is_shown).chain(later);
        let guards = guards.list.iter().filter(|guard| !guard.pin).map(|guard| guard.path.clone());
        Covered::now(masks.map(|path| (path, As::Masked)).chain(guards.map(|path| (path, As::Protected))))
    }

    /// The workspace as commands see it.
    pub fn workspace(&self) -> &Path {
        &self.inner.workspace
    }
}

/// A policy that does not say what it requires gets what a container can give; one that does gets that or
/// nothing.
fn require(policy: &SandboxPolicy, layers: &[Layer]) -> Result<(), ToolError> {
    let said = policy.require != Layer::DEFAULT_REQUIRED;
    let ordinary = |layer: &&Layer| said || !matches!(layer, Layer::UserNamespace);
    match policy.require.iter().filter(ordinary).find(|layer| !layers.contains(layer)) {
        Some(layer) => {
            Err(unavailable(format!("the policy requires `{layer}`, which the container does not have")))
        }
        None => Ok(()),
    }
}

fn shown(text: &str) -> String {
    format!("`{}`", text.chars().take(200).collect::<String>().escape_debug())
}

impl Inner {
    fn client_words<const N: usize>(&self, words: [&str; N]) -> Vec<String> {
        std::iter::once(self.engine.program()).chain(words).map(str::to_owned).collect()
    }

    /// The client's job that enters the container.
    fn enter(
        &self,
        running: &ContainerCommand,
        options: &[&str],
        values: BTreeMap<String, String>,
        script: Vec<String>,
    ) -> Result<Job, ToolError> {
        let mark = format!("TOOLWRIGHT_JOB={}.", running.mark);
        let mut command = self.client_words(["exec", "--env", &mark]);
        command.extend(options.iter().map(|&option| option.to_owned()));
        if let Some(user) = &running.user {
            if user.is_empty() || user.starts_with('-') {
                return Err(ToolError::of(ErrorKind::Permission, format!("cannot run as {}", shown(user))));
            }
            command.extend(["--user".to_owned(), user.clone()]);
        }
        let mut request = ExecRequest::new(Vec::<String>::new());
        for (name, value) in values {
            // Only the name is an argument: arguments can be seen by every user of the machine.
            command.extend(["--env".to_owned(), name.clone()]);
            request.env.insert(name, value);
        }
        command.extend([self.name.clone(), "/bin/sh".to_owned(), "-c".to_owned()]);
        command.extend(script);
        request.command = command;
        let mut job = self.client.job(&request, look_up)?;
        if self.engine == Engine::Podman {
            job.grace = GRACE;
        }
        Ok(job)
    }

    /// The job of a command, and the folder it runs in.
    fn command(
        &self,
        running: &ContainerCommand,
        request: &ExecRequest,
        options: &[&str],
        size: (u16, u16),
    ) -> Result<(Job, PathBuf), ToolError> {
        super::shared::validate(request)?;
        let policy = &self.policy.env;
        let mut variables = env::build(policy, &request.env, HOME, NAME, look_up);
        if ![policy.set.contains_key("PATH"), request.env.contains_key("PATH")].contains(&true) {
            // Images know best where their programs are.
            variables.remove("PATH");
        }
        let plain = |name: &str| {
            name.chars().all(|one| one == '_' || one.is_ascii_alphanumeric())
                && !name.starts_with(|one: char| one.is_ascii_digit())
        };
        if let Some(name) = variables.keys().find(|name| !plain(name)) {
            return Err(ToolError::invalid(format!("{} cannot be set by a shell", shown(name))));
        }
        let folder = request.cwd.as_ref().map_or(self.workspace.clone(), |cwd| self.workspace.join(cwd));
        let mut script = vec![ENTER.to_owned(), "sh".to_owned(), running.word.clone()];
        script.push(folder.to_string_lossy().into_owned());
        let input = u8::from(request.input.is_some()).to_string();
        script.extend([size.0.to_string(), size.1.to_string(), input, variables.len().to_string()]);
        script.extend(variables.keys().cloned());
        script.extend(request.command.iter().cloned());
        let count = variables.len();
        let values = variables
            .into_values()
            .enumerate()
            .map(|(at, value)| (format!("TOOLWRIGHT_VALUE_{}", count - at), value))
            .collect();
        Ok((self.enter(running, options, values, script)?, folder))
    }

    fn timeout(&self, asked: Option<Duration>) -> Option<Duration> {
        let most = self.policy.limits.timeout_seconds.map(Duration::from_secs);
        [asked, most].into_iter().flatten().min()
    }
}

impl Drop for Inner {
    /// The container ends with its input. One that does not, because what runs in it keeps its first process
    /// busy, is removed.
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let words = self.client_words(["rm", "--force", &self.name]);
        let Ok(job) = self.client.job(&ExecRequest::new(words), look_up) else { return };
        let session = self.client.session.clone();
        runtime.spawn(async move {
            tokio::time::sleep(END_PATIENCE).await;
            let deadline = Some(tokio::time::Instant::now() + FILE_PATIENCE);
            let _ = exec::run(&session, &job, None, deadline, ignore(), ignore()).await;
        });
    }
}

impl EngineSandbox {
    async fn run(
        &self,
        request: ExecRequest,
        sink: Option<&dyn OutputSink>,
    ) -> Result<ExecResult, ToolError> {
        let inner = &self.inner;
        inner.covered.check()?;
        inner.clerk.settle().await;
        let running = ContainerCommand::new(inner, request.user.clone());
        let input: &[&str] = if request.input.is_some() { &["--interactive"] } else { &[] };
        let (job, folder) = inner.command(&running, &request, input, (0, 0))?;
        let mut entered = Entered::Waiting(Vec::new());
        let timeout = inner.timeout(request.timeout);
        let result = {
            let skip = |bytes: &[u8]| bytes.len() - entered.take(&running, bytes).len();
            let input = request.input.as_deref();
            let session = &inner.client.session;
            running.watch(exec::command(session, &job, input, timeout, sink, &inner.layers, skip)).await
        };
        let timed_out = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Timeout);
        running.end().await;
        let name = shown(request.command.first().map(String::as_str).unwrap_or_default());
        match entered.failure(&name, &folder, request.user.as_deref()) {
            Some(failure) if !timed_out => Err(failure),
            _ => result,
        }
    }

    /// Runs one of the scripts that move files.
    async fn file(
        &self,
        script: &str,
        path: &str,
        size: usize,
        input: Option<&[u8]>,
        take: impl FnMut(&[u8]),
    ) -> Result<i32, ToolError> {
        if path.is_empty() || path.contains('\0') {
            return Err(ToolError::invalid("a path cannot be empty or contain a NUL byte"));
        }
        let inner = &self.inner;
        inner.covered.check()?;
        inner.clerk.settle().await;
        let running = ContainerCommand::new(inner, None);
        let full = inner.workspace.join(path).to_string_lossy().into_owned();
        let words = [script, "sh", &running.word, &full, &size.to_string()].map(str::to_owned);
        let options: &[&str] = if input.is_some() { &["--interactive"] } else { &[] };
        let job = inner.enter(&running, options, BTreeMap::new(), words.to_vec())?;
        let mut entered = Entered::Waiting(Vec::new());
        let deadline = Some(tokio::time::Instant::now() + FILE_PATIENCE);
        let hear = |bytes: &[u8]| {
            entered.take(&running, bytes);
        };
        let finish =
            exec::run(&inner.client.session, &job, input, deadline, Each::new(take), Each::new(hear)).await?;
        running.end().await;
        match (finish, entered.failure(&shown(path), &inner.workspace, None)) {
            (Finish::TimedOut, _) => {
                Err(ToolError::of(ErrorKind::Timeout, "reading or writing the file took too long"))
            }
            (_, Some(failure)) => Err(failure),
            (Finish::Ended(code), None) => Ok(code),
            (Finish::Failed(stage, errno), None) => Err(exec::failure(&job, stage, errno)),
        }
    }

    async fn write(&self, path: &str, contents: &[u8]) -> Result<(), ToolError> {
        match self.file(WRITE, path, contents.len(), Some(contents), |_| {}).await? {
            0 => Ok(()),
            3 | 4 => Err(ToolError::of(
                ErrorKind::Limit,
                format!("{} does not fit: the space of the sandbox is used up", shown(path)),
            )),
            _ => Err(ToolError::of(ErrorKind::Permission, format!("{} cannot be replaced", shown(path)))),
        }
    }

    async fn read(&self, path: &str) -> Result<Vec<u8>, ToolError> {
        let mut contents = Vec::new();
        let take = |bytes: &[u8]| {
            let room = (MAX_READ_FILE + 1).saturating_sub(contents.len());
            contents.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        };
        let code = self.file(READ, path, MAX_READ_FILE + 1, None, take).await?;
        if contents.len() > MAX_READ_FILE {
            contents.truncate(1024 * 1024);
            let partial = ToolOutput::text(String::from_utf8_lossy(&contents));
            let message =
                format!("{} is larger than the {} MiB that may be read", shown(path), MAX_READ_FILE >> 20);
            return Err(ToolError::of(ErrorKind::OutputLimit, message).with_partial(partial));
        }
        match code {
            0 => Ok(contents),
            _ => Err(ToolError::of(ErrorKind::Permission, format!("{} cannot be read", shown(path)))),
        }
    }
}

impl Sandbox for EngineSandbox {
    fn kind(&self) -> &str {
        self.inner.engine.program()
    }

    fn isolates(&self) -> bool {
        true
    }

    fn layers(&self) -> Vec<String> {
        self.inner.layers.clone()
    }

    fn sets_search_path(&self) -> bool {
        self.inner.policy.env.sets_search_path()
    }

    async fn exec(&self, command: ExecRequest) -> Result<ExecResult, ToolError> {
        self.run(command, None).await
    }

    async fn exec_live(&self, command: ExecRequest, sink: &dyn OutputSink) -> Result<ExecResult, ToolError> {
        self.run(command, Some(sink)).await
    }

    async fn spawn(&self, command: SpawnRequest) -> Result<SandboxProcess, ToolError> {
        process::spawn(&self.inner, command).await
    }

    async fn write_file(&self, path: &str, contents: &[u8]) -> Result<(), ToolError> {
        self.write(path, contents).await
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>, ToolError> {
        self.read(path).await
    }

    async fn connection(&self, user: Option<&str>) -> Result<Option<Connection>, ToolError> {
        let user = user.map(|user| format!(" --user '{}'", user.replace('\'', "'\\''"))).unwrap_or_default();
        let command =
            format!("{} exec --interactive --tty{user} {} sh", self.inner.engine.program(), self.inner.name);
        let kind = self.kind().to_owned();
        Ok(Some(Connection { kind, command }))
    }
}
