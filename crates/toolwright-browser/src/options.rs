//! How the browser tools are set up, and the browser that a run keeps.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use toolwright_core::{DynSandbox, ErrorKind, ToolContext, ToolError};

use crate::engine::Engine;
use crate::instance::Instance;

/// The longest a call of a browser tool may take.
const TIMEOUT: Duration = Duration::from_secs(180);

/// How browser tools are set up.
///
/// ```
/// use toolwright_browser::{BrowserOptions, browser_tools};
///
/// let tools = browser_tools(&BrowserOptions::new().instance("research"))?;
/// assert!(tools.get("browser_open").is_some());
/// # Ok::<(), toolwright_core::ToolsetError>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct BrowserOptions {
    sandbox: Option<Arc<str>>,
    instance: Option<Arc<str>>,
    program: Option<Arc<str>>,
    timeout: Option<Duration>,
}

impl BrowserOptions {
    /// The run's default sandbox, one context for the whole run, the first browser that is installed.
    pub fn new() -> Self {
        BrowserOptions::default()
    }

    /// Works in the sandbox of that name.
    pub fn in_sandbox(mut self, name: impl Into<Arc<str>>) -> Self {
        self.sandbox = Some(name.into());
        self
    }

    /// Keeps tabs, cookies and references apart from those of tools with another instance name.
    pub fn instance(mut self, name: impl Into<Arc<str>>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// The browser to start: a name or a path inside the sandbox.
    pub fn program(mut self, program: impl Into<Arc<str>>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// The longest a call may take; 180 seconds when nothing is stated.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The options a file gives as a tool's `config`: `sandbox`, `instance`, `program`, and `timeout` in
    /// seconds.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolwright_browser::BrowserOptions;
    ///
    /// assert!(BrowserOptions::from_config(&json!({"instance": "research"})).is_ok());
    /// assert!(BrowserOptions::from_config(&json!({"instanec": "research"})).is_err());
    /// ```
    pub fn from_config(config: &Value) -> Result<Self, ToolError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Config {
            sandbox: Option<Arc<str>>,
            instance: Option<Arc<str>>,
            program: Option<Arc<str>>,
            timeout: Option<f64>,
            #[serde(rename = "require_confirmation")]
            _require_confirmation: Option<bool>,
        }
        if config.is_null() {
            return Ok(BrowserOptions::new());
        }
        let config: Config = serde_json::from_value(config.clone())
            .map_err(|error| ToolError::invalid(format!("`config`: {error}")))?;
        let timeout = config.timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.ok().filter(|time| *time != Some(Duration::ZERO)).ok_or_else(|| {
            ToolError::invalid("`config`: `timeout` must be a number of seconds above zero")
        })?;
        Ok(BrowserOptions {
            sandbox: config.sandbox,
            instance: config.instance,
            program: config.program,
            timeout,
        })
    }

    pub(crate) fn instance_name(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }

    /// The instance of these options in the run of a call, for one user at a time. The browser is started on
    /// first use, and again after it ended.
    pub(crate) async fn enter(&self, context: &ToolContext) -> Result<OpenInstance, ToolError> {
        let name = self.sandbox.as_deref().unwrap_or_default();
        let key = format!("{name}\n{}", self.instance_name().unwrap_or_default());
        let slot = context.store_as::<InstanceSlot>(&key).read(|slot| slot.instance.clone());
        let mut open = slot.lock_owned().await;
        if open.as_ref().is_some_and(|instance| instance.engine.is_gone()) {
            *open = None;
        }
        if open.is_none() {
            let sandbox = match &self.sandbox {
                Some(name) => context.sandbox_named(name)?,
                None => context.sandbox()?,
            };
            let engine = self.engine(context, name, sandbox.clone()).await?;
            let made = match Instance::open(engine.clone(), sandbox.clone()).await {
                // Chromium crashes now and then while it starts.
                Err(_) if engine.is_gone() => {
                    let engine = self.engine(context, name, sandbox.clone()).await?;
                    Instance::open(engine, sandbox).await?
                }
                made => made?,
            };
            *open = Some(made);
        }
        Ok(OpenInstance { slot: open })
    }

    async fn engine(
        &self,
        context: &ToolContext,
        name: &str,
        sandbox: Arc<DynSandbox>,
    ) -> Result<Arc<Engine>, ToolError> {
        let slot = context.store::<EngineSlot>().read(|slot| slot.engines.clone());
        let mut engines = slot.lock().await;
        if let Some(engine) = engines.get(name).filter(|engine| !engine.is_gone()) {
            return Ok(engine.clone());
        }
        let engine = Engine::start(sandbox, self.program.as_deref()).await?;
        engines.insert(name.to_owned(), engine.clone());
        Ok(engine)
    }
}

/// The browsers of a run, by sandbox. They are not saved with it.
#[derive(Default, Serialize, Deserialize)]
struct EngineSlot {
    #[serde(skip)]
    engines: Arc<Mutex<HashMap<String, Arc<Engine>>>>,
}

/// One instance of a run. It is not saved with it.
#[derive(Default, Serialize, Deserialize)]
struct InstanceSlot {
    #[serde(skip)]
    instance: Arc<Mutex<Option<Instance>>>,
}

/// An instance in use.
pub(crate) struct OpenInstance {
    slot: OwnedMutexGuard<Option<Instance>>,
}

impl OpenInstance {
    pub(crate) fn get(&mut self) -> Result<&mut Instance, ToolError> {
        self.slot.as_mut().ok_or_else(|| ToolError::of(ErrorKind::SandboxUnavailable, "the browser is gone"))
    }
}
