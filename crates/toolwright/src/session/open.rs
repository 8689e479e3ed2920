//! Opening a file: its variables are bound, the servers it needs are connected, its tools are made, its
//! sandboxes opened.

#[cfg(not(feature = "mcp"))]
use std::collections::HashMap;
use std::sync::Arc;

use toolwright_core::{DynModel, Error, ToolError};
use toolwright_lang::{Host, Loaded, Needs, Wanted};
use toolwright_runtime::Policy;

#[cfg(feature = "sandbox")]
use super::sandboxes::{OnNotice, Sandboxes, Sandboxing};
#[cfg(feature = "mcp")]
use super::servers::{Listeners, Servers};
use super::{Session, UntrustedFile};
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

/// How an open session finds models.
#[derive(Clone)]
pub(super) struct ModelFinder(pub(super) Models);

impl std::fmt::Debug for ModelFinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ModelFinder")
    }
}

/// Opens a [`Session`].
#[derive(Clone)]
pub struct SessionBuilder {
    pub(super) file: Arc<ToolFile>,
    pub(super) known: KnownTools,
    wanted: Wanted,
    variables_required: bool,
    pub(super) connect: Connect,
    policies: Vec<Arc<Policy>>,
    standing: Vec<Arc<Policy>>,
    default_policy: Option<Arc<Policy>>,
    mandatory: Option<Arc<Policy>>,
    assume_yes: bool,
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
            policies: Vec::new(),
            standing: Vec::new(),
            default_policy: None,
            mandatory: None,
            assume_yes: false,
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

    /// Adds rules about calls. Those of the file are judged too, and the strictest decision wins.
    #[must_use]
    pub fn policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.policies.push(policy.into());
        self
    }

    /// Adds rules of the person that are judged beside all others. They do not stand for the policy of the
    /// file: without one, the default policy decides what they are silent about.
    #[must_use]
    pub fn standing_policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.standing.push(policy.into());
        self
    }

    /// Sets rules that nothing loosens; see [`RunBuilder::mandatory_policy`].
    ///
    /// [`RunBuilder::mandatory_policy`]: toolwright_runtime::RunBuilder::mandatory_policy
    #[must_use]
    pub fn mandatory_policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.mandatory = Some(policy.into());
        self
    }

    /// Approves what would be asked about; see [`RunBuilder::assume_yes`].
    ///
    /// [`RunBuilder::assume_yes`]: toolwright_runtime::RunBuilder::assume_yes
    #[must_use]
    pub fn assume_yes(mut self, yes: bool) -> Self {
        self.assume_yes = yes;
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
    /// it cannot be connected, the error is a [`LoadError`](toolwright_lang::LoadError) inside, with all problems;
    /// for a file that was found and is not trusted, an [`UntrustedFile`].
    pub async fn open(self) -> Result<Session, Error> {
        if !self.file.is_trusted() {
            return Err(Error::configuration(UntrustedFile));
        }
        if let Some(error) = self.file.error() {
            return Err(error.into());
        }
        let (loaded, connected) = self.make().await;
        let loaded = loaded.into_result()?;
        let models = self.find_models().map(ModelFinder);
        let mut policies = self.policies;
        policies.extend(self.file.policy().cloned());
        if policies.is_empty() {
            policies.extend(self.default_policy);
        }
        policies.extend(self.standing);
        #[cfg(not(feature = "mcp"))]
        let () = connected;
        #[cfg_attr(not(feature = "sandbox"), allow(unused_mut))]
        let mut session = Session {
            file: self.file,
            loaded,
            policies,
            mandatory: self.mandatory,
            assume_yes: self.assume_yes,
            models,
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
            (None, Connect::Required | Connect::WherePossible) if self.file.is_trusted() => {
                self.connect_all(bound.servers(), &needs, &listeners).await
            }
            _ => std::collections::HashMap::new(),
        };
        let states = self.with_python(&bound, &needs, states).await;
        (bound.compile(&states), listeners)
    }

    #[cfg(not(feature = "mcp"))]
    async fn make(&self) -> (Loaded, ()) {
        let (bound, needs) = self.bind();
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
        let states = self.with_python(&bound, &needs, states).await;
        (bound.compile(&states), ())
    }

    /// The states, and those of the files of Python functions that are needed.
    #[cfg(feature = "python")]
    async fn with_python(
        &self,
        bound: &toolwright_lang::BoundFile,
        needs: &Needs,
        mut states: std::collections::HashMap<String, toolwright_lang::ServerState>,
    ) -> std::collections::HashMap<String, toolwright_lang::ServerState> {
        // For a file that cannot be used nothing is started.
        if bound.error().is_none() && self.connect != Connect::Never {
            self.open_python(bound, needs, &mut states).await;
        }
        states
    }

    #[cfg(not(feature = "python"))]
    async fn with_python(
        &self,
        bound: &toolwright_lang::BoundFile,
        needs: &Needs,
        mut states: std::collections::HashMap<String, toolwright_lang::ServerState>,
    ) -> std::collections::HashMap<String, toolwright_lang::ServerState> {
        for (name, _) in bound.python_files().into_iter().filter(|(name, _)| needs.server(name)) {
            if self.connect != Connect::Never {
                let error = ToolError::new("this program is built without the feature `python`");
                let required = self.connect == Connect::Required;
                states.insert(name, toolwright_lang::ServerState::Failed { error, required });
            }
        }
        states
    }

    fn bind(&self) -> (toolwright_lang::BoundFile, Needs) {
        let needs = self.needs();
        let host = self.lend_models(self.file.host(&self.known));
        (self.file.source().bind(&host, &needs), needs)
    }

    fn lend_models(&self, host: Host) -> Host {
        match self.find_models() {
            Some(models) => host.models(move |name| models(name)),
            None => host,
        }
    }

    /// How models are found by name; `None` when this program has none.
    fn find_models(&self) -> Option<Models> {
        if let Some(models) = self.models.clone() {
            return Some(models);
        }
        #[cfg(feature = "models")]
        {
            let (file, environment) = (self.file.clone(), self.known.variables().clone());
            Some(Arc::new(move |name: &str| {
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
            }))
        }
        #[cfg(not(feature = "models"))]
        None
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
