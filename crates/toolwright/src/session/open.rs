//! Opening a file: its variables are bound, the servers it needs are connected, its tools are made, its
//! sandboxes opened.

#[cfg(not(feature = "mcp"))]
use std::collections::HashMap;
use std::sync::Arc;

use toolwright_core::{DynModel, Error, ToolError};
use toolwright_lang::{Host, Loaded, Needs, Wanted};
use toolwright_runtime::Policy;

use super::Session;
#[cfg(feature = "sandbox")]
use super::sandboxes::{OnNotice, Sandboxes, Sandboxing};
#[cfg(feature = "mcp")]
use super::servers::{Listeners, Servers};
use crate::file::{KnownTools, ToolFile};

/// What to make of the MCP servers that are needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Connect {
    /// All of them must be connected, but those with `required: false`.
    #[default]
    Required,
    /// One that cannot be connected is a warning; calls of its tools fail.
    WherePossible,
    /// None is connected. Their tools are unknown, and calls of them fail.
    Never,
}

/// Gives models by name; `None` when the name means nothing.
type Models = Arc<dyn Fn(&str) -> Option<Result<Arc<DynModel>, ToolError>> + Send + Sync>;

/// Opens a [`Session`].
#[derive(Clone)]
pub struct SessionBuilder {
    pub(super) file: Arc<ToolFile>,
    pub(super) known: KnownTools,
    wanted: Wanted,
    variables_required: bool,
    pub(super) connect: Connect,
    policy: Option<Arc<Policy>>,
    default_policy: Option<Arc<Policy>>,
    models: Option<Models>,
    #[cfg(feature = "sandbox")]
    sandboxing: Sandboxing,
    #[cfg(feature = "sandbox")]
    on_notice: Option<OnNotice>,
    #[cfg(feature = "mcp")]
    pub(super) servers: Servers,
}

impl SessionBuilder {
    pub(super) fn new(file: Arc<ToolFile>) -> Self {
        SessionBuilder {
            file,
            known: KnownTools::new(),
            wanted: Wanted::everything(),
            variables_required: true,
            connect: Connect::default(),
            policy: None,
            default_policy: None,
            models: None,
            #[cfg(feature = "sandbox")]
            sandboxing: Sandboxing::default(),
            #[cfg(feature = "sandbox")]
            on_notice: None,
            #[cfg(feature = "mcp")]
            servers: Servers::default(),
        }
    }

    /// The program's own tools, and values of variables. Without this a file has no built-in tools of the
    /// program, and no variable is set.
    #[must_use]
    pub fn known(mut self, known: KnownTools) -> Self {
        self.known = known;
        self
    }

    /// The part of the file that is used; the whole file by default. A server is connected, and a variable
    /// must be set, only when this part can need it.
    #[must_use]
    pub fn wanted(mut self, wanted: Wanted) -> Self {
        self.wanted = wanted;
        self
    }

    /// A variable that is not set counts as empty: for looking at a file without running it.
    #[must_use]
    pub fn without_variables(mut self) -> Self {
        self.variables_required = false;
        self
    }

    /// What to make of the MCP servers that are needed.
    #[must_use]
    pub fn connect(mut self, connect: Connect) -> Self {
        self.connect = connect;
        self
    }

    /// The rules about calls, in place of those of the file.
    #[must_use]
    pub fn policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// The rules about calls for a file that has none. Without this such a file has every call approved.
    #[must_use]
    pub fn default_policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.default_policy = Some(policy.into());
        self
    }

    /// Finds models by what a file calls them, for tools that ask one. By default those of its `models`
    /// section and `vendor/model` are found (feature `models`), with the keys of the environment.
    #[must_use]
    pub fn models(
        mut self,
        models: impl Fn(&str) -> Option<Result<Arc<DynModel>, ToolError>> + Send + Sync + 'static,
    ) -> Self {
        self.models = Some(Arc::new(models));
        self
    }

    /// What to make of the sandboxes.
    #[cfg(feature = "sandbox")]
    #[must_use]
    pub fn sandboxing(mut self, sandboxing: Sandboxing) -> Self {
        self.sandboxing = sandboxing;
        self
    }

    /// Receives the sandboxes that could not be opened where that is not an error.
    #[cfg(feature = "sandbox")]
    #[must_use]
    pub fn on_notice(mut self, told: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_notice = Some(Arc::new(told));
        self
    }

    /// What is needed of the file.
    pub fn needs(&self) -> Needs {
        let needs = self.file.needs(&self.wanted);
        if self.variables_required { needs } else { needs.without_variables() }
    }

    /// Connects the servers that are needed and opens the sandboxes. When the file cannot be used or a server of
    /// it cannot be connected, the error is a [`LoadError`](toolwright_lang::LoadError) inside, with all problems.
    pub async fn open(self) -> Result<Session, Error> {
        if let Some(error) = self.file.error() {
            return Err(error.into());
        }
        let (loaded, connected) = self.make().await;
        let loaded = loaded.into_result()?;
        let policy = self.policy.or_else(|| self.file.policy().cloned()).or(self.default_policy);
        #[cfg(not(feature = "mcp"))]
        let () = connected;
        #[cfg_attr(not(feature = "sandbox"), allow(unused_mut))]
        let mut session = Session {
            file: self.file,
            loaded,
            policy,
            #[cfg(feature = "sandbox")]
            sandboxes: Sandboxes::new(self.on_notice),
            #[cfg(feature = "mcp")]
            listeners: connected,
        };
        #[cfg(feature = "sandbox")]
        session.open_sandboxes(None, self.sandboxing).await.map_err(unavailable)?;
        Ok(session)
    }

    /// Connects the servers that are needed, and makes the tools that can be made; its problems say what is
    /// wrong with the others. For looking at a file.
    pub async fn compile(&self) -> Loaded {
        self.make().await.0
    }

    #[cfg(feature = "mcp")]
    async fn make(&self) -> (Loaded, Listeners) {
        let (bound, needs) = self.bind();
        let listeners = Listeners::default();
        // For a file that cannot be used nothing is started.
        let states = match (bound.error(), self.connect) {
            (None, Connect::Required | Connect::WherePossible) => {
                self.connect_all(bound.servers(), &needs, &listeners).await
            }
            _ => std::collections::HashMap::new(),
        };
        (bound.compile(&states), listeners)
    }

    #[cfg(not(feature = "mcp"))]
    async fn make(&self) -> (Loaded, ()) {
        let (bound, _) = self.bind();
        let state = |name: &String| {
            let error = ToolError::new("this program connects to no servers");
            (
                name.clone(),
                toolwright_lang::ServerState::Failed { error, required: self.connect == Connect::Required },
            )
        };
        let states: HashMap<_, _> = match self.connect {
            Connect::Never => HashMap::new(),
            Connect::Required | Connect::WherePossible => bound.servers().keys().map(state).collect(),
        };
        (bound.compile(&states), ())
    }

    fn bind(&self) -> (toolwright_lang::BoundFile, Needs) {
        let needs = self.needs();
        let host = self.lend_models(self.file.host(&self.known));
        (self.file.source().bind(&host, &needs), needs)
    }

    fn lend_models(&self, host: Host) -> Host {
        if let Some(models) = self.models.clone() {
            return host.models(move |name| models(name));
        }
        #[cfg(feature = "models")]
        {
            let (file, environment) = (self.file.clone(), self.known.variables().clone());
            host.models(move |name| {
                let named =
                    || toolwright_models::ModelConfig { model: name.to_owned(), ..Default::default() };
                let config = file.models().get(name).cloned().or_else(|| name.contains('/').then(named))?;
                let model = config.connect(|variable| environment.get(variable));
                let model = model.map(|model| Arc::new(model) as Arc<DynModel>);
                Some(
                    model.map_err(|error| {
                        ToolError::new(format!("the model `{name}` cannot be used: {error}"))
                    }),
                )
            })
        }
        #[cfg(not(feature = "models"))]
        host
    }
}

/// A sandbox that cannot be opened, whatever the kind of its error.
#[cfg(feature = "sandbox")]
fn unavailable(error: ToolError) -> Error {
    let hint = error.hint_text().map(str::to_owned);
    Error::unavailable(error).with_hint(hint)
}

impl std::fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionBuilder").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}
