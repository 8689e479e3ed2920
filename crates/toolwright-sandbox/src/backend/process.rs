//! The `process` sandbox: namespaces, a view of its own, filters and limits, with no daemon and no other
//! program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolwright_core::{
    DynSandbox, EffectJudge, ExecRequest, ExecResult, OutputSink, Sandbox, SandboxProcess, SpawnRequest,
    ToolError,
};
use toolwright_effects::CommitStore;

use super::shared::{self, LauncherHandle};
use super::spare;
use crate::launcher::client::unavailable;
use crate::launcher::wire::{LaunchMode, STAGING_FAILED, Setup};
use crate::layer::home::{self, AtHome};
use crate::layer::identity;
use crate::layer::view::PRIVATE_WORKSPACE;
use crate::policy::{Changes, Layer, Network, SandboxPolicy};
use crate::proxy::{self, NetworkEvent, Proxy};

/// A sandbox made of kernel features. Files in its private folders last as long as it does; dropping it ends
/// everything in it.
///
/// ```no_run
/// use toolwright_core::{ExecRequest, Sandbox};
/// use toolwright_sandbox::{SandboxPolicy, ProcessSandbox};
///
/// # async fn example() -> Result<(), toolwright_core::ToolError> {
/// let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace("/srv/app")).await?;
/// let result = sandbox.exec(ExecRequest::new(["ls", "-la"])).await?;
/// assert!(result.layers.contains(&"seccomp".to_owned()));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ProcessSandbox {
    handle: Arc<LauncherHandle>,
    /// Who decides about changes before they are applied.
    judge: Option<Arc<dyn EffectJudge>>,
    /// The only way out, if there is one.
    proxy: Option<Arc<Proxy>>,
    /// Why changes are live, although they were to be staged.
    live_because: Option<Arc<str>>,
}

impl ProcessSandbox {
    /// Builds a sandbox from a policy, or says with `sandbox_unavailable` what is in the way.
    pub async fn open(policy: SandboxPolicy) -> Result<Self, ToolError> {
        policy.check()?;
        match spare::take(&policy).await {
            Some(sandbox) => Ok(sandbox),
            None => Self::build(policy, &[]).await,
        }
    }

    /// Builds a sandbox whose changes are committed, or live where this machine cannot stage them;
    /// [`live_because`](Self::live_because) says why.
    pub async fn open_staged_if_possible(policy: SandboxPolicy) -> Result<Self, ToolError> {
        let error = match Self::open(SandboxPolicy { changes: Changes::Commit, ..policy.clone() }).await {
            Err(error) if error.message().contains(STAGING_FAILED) => error,
            other => return other,
        };
        let live = Self::open(SandboxPolicy { changes: Changes::Live, ..policy }).await?;
        Ok(ProcessSandbox { live_because: Some(error.message().into()), ..live })
    }

    /// Why changes are live, although they were to be staged.
    pub fn live_because(&self) -> Option<&str> {
        self.live_because.as_deref()
    }

    /// A sandbox with some layers left out, to measure what the others hold. The policy must not require
    /// them.
    #[doc(hidden)]
    pub async fn open_without(policy: SandboxPolicy, without: &[Layer]) -> Result<Self, ToolError> {
        policy.check()?;
        Self::build(policy, without).await
    }

    pub(super) async fn build(policy: SandboxPolicy, without: &[Layer]) -> Result<Self, ToolError> {
        let AtHome { mut policy, later } = home::resolve(&policy, shared::look_up)?;
        let (workspace, inside) = match &policy.workspace {
            Some(path) => {
                let path = shared::real(path)?;
                (Some(path.clone()), path)
            }
            // Without a view there is no other place for it than a folder of the host.
            None if without.contains(&Layer::MountNamespace) => {
                let path = shared::private_folder()?;
                (Some(path.clone()), path)
            }
            None => (None, PRIVATE_WORKSPACE.into()),
        };
        let setup = Setup {
            mode: LaunchMode::Isolated,
            policy: policy.clone(),
            workspace,
            later,
            without: without.to_vec(),
            staging: if policy.is_staged() { CommitStore::candidates(shared::look_up) } else { Vec::new() },
        };
        let mut session = LauncherHandle::start(setup).await?;
        let layers = shared::layer_names(&session);
        let proxy = match (&policy.network, session.way_out.take()) {
            (Network::Allow(hosts), Some(listener)) => {
                let rules = toolwright_net::HostRules::parse(hosts).map_err(unavailable)?;
                for (name, value) in proxy::variables(&rules) {
                    policy.env.set.entry(name).or_insert(value);
                }
                let started = Proxy::start(listener, rules);
                Some(Arc::new(started.map_err(|error| unavailable("no proxy").with_source(error))?))
            }
            (Network::Allow(_), None) => return Err(unavailable("the proxy's socket did not arrive")),
            (Network::Off | Network::Loopback, _) => None,
        };
        Ok(ProcessSandbox {
            handle: Arc::new(LauncherHandle {
                session: Arc::new(session),
                policy,
                workspace: inside,
                home: identity::HOME.to_owned(),
                user: identity::NAME.to_owned(),
                layers,
            }),
            judge: None,
            proxy,
            live_because: None,
        })
    }

    /// Commands and relative paths begin in this folder, which the policy shows, instead of the workspace.
    #[must_use]
    pub fn beginning_in(mut self, folder: impl Into<PathBuf>) -> Self {
        Arc::make_mut(&mut self.handle).workspace = folder.into();
        self
    }

    /// Whether the sandbox is still there.
    pub(super) fn is_alive(&self) -> bool {
        self.handle.session.is_alive()
    }

    /// Where commands begin, as they see it: the workspace, unless another folder was named.
    pub fn workspace(&self) -> &Path {
        &self.handle.workspace
    }

    /// The layers that are on.
    pub fn layers(&self) -> &[Layer] {
        &self.handle.session.layers
    }

    /// What commands asked of the proxy so far, the latest 256 requests.
    pub fn network_events(&self) -> Vec<NetworkEvent> {
        self.proxy.as_ref().map(|proxy| proxy.events()).unwrap_or_default()
    }

    /// The layers that are not on, and why; of one that is on, what it keeps from being shown.
    pub fn missing(&self) -> &[(Layer, String)] {
        &self.handle.session.missing
    }
}

impl std::fmt::Debug for ProcessSandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessSandbox").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Sandbox for ProcessSandbox {
    fn kind(&self) -> &str {
        "process"
    }

    fn isolates(&self) -> bool {
        true
    }

    fn layers(&self) -> Vec<String> {
        self.handle.layers.clone()
    }

    fn sets_search_path(&self) -> bool {
        self.handle.policy.env.sets_search_path()
    }

    async fn exec(&self, command: ExecRequest) -> Result<ExecResult, ToolError> {
        self.handle.exec(command, None, self.judge.as_ref()).await
    }

    async fn exec_live(&self, command: ExecRequest, sink: &dyn OutputSink) -> Result<ExecResult, ToolError> {
        self.handle.exec(command, Some(sink), self.judge.as_ref()).await
    }

    async fn spawn(&self, command: SpawnRequest) -> Result<SandboxProcess, ToolError> {
        self.handle.spawn(command, self.judge.as_ref()).await
    }

    async fn write_file(&self, path: &str, contents: &[u8]) -> Result<(), ToolError> {
        self.handle.write_file(path, contents, self.judge.as_ref()).await
    }

    fn judged_by(&self, judge: Arc<dyn EffectJudge>) -> Option<Arc<DynSandbox>> {
        self.handle.policy.is_staged().then(|| {
            let judge = Some(judge);
            Arc::new(ProcessSandbox { judge, ..self.clone() }) as Arc<DynSandbox>
        })
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>, ToolError> {
        self.handle.read_file(path).await
    }
}
