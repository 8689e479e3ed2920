//! What the program lends to a file: built-in tools, models, values of variables.
//!
//! This crate starts no programs and dials no servers. A program connects the servers that a
//! [`BoundFile`](crate::BoundFile) names, and hands their tools to the compiler as [`ServerState`]s.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;
use toolwright_core::{DynModel, DynTool, DynToolSource, ToolError, Toolset};

use crate::exec::FlowLimits;

/// Where llm-workers keeps its tools: `llm_workers.tools.fs.read_file`.
const MODULES: [&str; 5] = ["fs", "unsafe", "fetch", "misc", "llm_tool"];

/// Finds what a file imports.
pub trait Imports: Send + Sync {
    /// The tool a reference names, made with the `config` of its import; `None` when the reference means
    /// nothing here.
    fn tool(&self, reference: &str, config: &Value) -> Option<Result<Arc<DynTool>, ToolError>> {
        let _ = (reference, config);
        None
    }

    /// The tools of a toolkit; `None` when the reference means nothing here.
    fn toolkit(&self, reference: &str) -> Option<Result<Toolset, ToolError>> {
        let _ = reference;
        None
    }
}

/// What an MCP server has for a file.
#[derive(Clone, Default)]
pub struct ServerTools {
    /// Its tools, under their own names.
    pub tools: Toolset,
    /// The names of those that cannot be used, each with the reason. A file that would import one has a
    /// warning.
    pub left_out: Vec<(String, String)>,
    /// The same for those that wait for approval, of which somebody was told already.
    pub suspended: Vec<(String, String)>,
    /// Where to look for the tools it has later.
    pub source: Option<Arc<DynToolSource>>,
}

impl std::fmt::Debug for ServerTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTools").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// How a server of a file is when the file is compiled. A server without a state has not been connected:
/// which tools it has is unknown.
#[derive(Debug)]
pub enum ServerState {
    /// It is connected, and these are its tools.
    Connected(ServerTools),
    /// It has not been connected, and these of its tools are known. There may be others.
    Known(Toolset),
    /// It could not be connected.
    Failed {
        /// The reason.
        error: ToolError,
        /// Whether the file is then of no use.
        required: bool,
    },
}

impl From<Toolset> for ServerTools {
    fn from(tools: Toolset) -> Self {
        ServerTools { tools, ..ServerTools::default() }
    }
}

/// An MCP server, as a file declares it, with its templates evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// A program to start.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment variables.
        env: IndexMap<String, String>,
        /// The folder it runs in.
        cwd: Option<String>,
        /// The policy of the sandbox it runs in.
        sandbox: Option<Value>,
        /// What it is trusted with.
        trust: Trust,
    },
    /// An address to talk to.
    Http {
        /// The address.
        url: String,
        /// Headers to send.
        headers: IndexMap<String, String>,
        /// Whether it speaks the transport of 2024-11-05, with one stream of events.
        sse: bool,
        /// How long a connection may take.
        timeout: Option<Duration>,
        /// How long a stream may be silent.
        read_timeout: Option<Duration>,
        /// What it is trusted with.
        trust: Trust,
    },
}

/// What a file entrusts an MCP server with: what it may do, and how long it may take. The default is what a
/// file that says nothing of it means.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// Whether the file is of no use without it.
    pub required: bool,
    /// The model it may ask.
    pub sampling: Option<String>,
    /// Whether its resources and prompts can be read with tools.
    pub reading_tools: bool,
    /// How long a call of one of its tools may take.
    pub call_timeout: Option<Duration>,
    /// How long calls of the tools that match may take; the first pattern that matches counts.
    pub tool_timeouts: Vec<(String, Duration)>,
}

impl Default for Trust {
    fn default() -> Self {
        Trust {
            required: true,
            sampling: None,
            reading_tools: false,
            call_timeout: None,
            tool_timeouts: Vec::new(),
        }
    }
}

impl Server {
    /// What the file entrusts it with.
    pub fn trust(&self) -> &Trust {
        match self {
            Server::Stdio { trust, .. } | Server::Http { trust, .. } => trust,
        }
    }
}

/// Gives models by name; `None` when the name means nothing here.
pub type Models = Arc<dyn Fn(&str) -> Option<Result<Arc<DynModel>, ToolError>> + Send + Sync>;

/// What the program lends to a file.
///
/// ```
/// use toolwright_core::{ToolDef, ToolSpec, Toolset};
/// use toolwright_lang::Host;
///
/// let clock = ToolDef::dynamic(ToolSpec::new("clock", "Tells the time."), |_, _| async { "noon" });
/// let host = Host::new().builtins(Toolset::new().with(clock)?).variable("UserName", "ann");
/// # Ok::<(), toolwright_core::ToolsetError>(())
/// ```
#[derive(Clone, Default)]
pub struct Host {
    pub(crate) builtins: Toolset,
    pub(crate) aliases: HashMap<String, String>,
    pub(crate) toolkits: HashMap<String, Vec<String>>,
    pub(crate) imports: Option<Arc<dyn Imports>>,
    pub(crate) models: Option<Models>,
    pub(crate) variables: IndexMap<String, toolwright_expr::Value>,
    pub(crate) environment: HashMap<String, String>,
    pub(crate) limits: FlowLimits,
}

impl Host {
    /// A host that lends nothing.
    pub fn new() -> Self {
        Host::default()
    }

    /// Built-in tools, imported by their names.
    #[must_use]
    pub fn builtins(mut self, tools: Toolset) -> Self {
        self.builtins = tools;
        self
    }

    /// Another reference for a built-in.
    #[must_use]
    pub fn alias(mut self, reference: impl Into<String>, builtin: impl Into<String>) -> Self {
        self.aliases.insert(reference.into(), builtin.into());
        self
    }

    /// Several built-ins under one reference, for `import_tools`.
    #[must_use]
    pub fn toolkit<S: Into<String>>(
        mut self,
        reference: impl Into<String>,
        builtins: impl IntoIterator<Item = S>,
    ) -> Self {
        self.toolkits.insert(reference.into(), builtins.into_iter().map(Into::into).collect());
        self
    }

    /// Finds other tools.
    #[must_use]
    pub fn imports(mut self, imports: impl Imports + 'static) -> Self {
        self.imports = Some(Arc::new(imports));
        self
    }

    /// Finds models by what a file calls them: `vendor/model`, or a name that its `models` section does not
    /// explain. Tools that ask for `default`, when it means nothing here, ask the run's model.
    #[must_use]
    pub fn models(
        mut self,
        models: impl Fn(&str) -> Option<Result<Arc<DynModel>, ToolError>> + Send + Sync + 'static,
    ) -> Self {
        self.models = Some(Arc::new(models));
        self
    }

    /// A variable that every file sees as `${env.NAME}`, declared or not.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), toolwright_expr::Value::str(value.into()));
        self
    }

    /// The command line that started a file's batch program, which it sees as `${env.CLI_ARGS}`.
    #[must_use]
    pub fn arguments(mut self, arguments: &Value) -> Self {
        self.variables.insert("CLI_ARGS".to_owned(), toolwright_expr::Value::from_json(arguments));
        self
    }

    /// Values for the variables a file declares. A file sees none that it does not declare.
    #[must_use]
    pub fn environment<N: Into<String>, V: Into<String>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// What one run of a flow may spend.
    #[must_use]
    pub fn limits(mut self, limits: FlowLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The built-in a reference means, if there is one.
    pub(crate) fn builtin(&self, reference: &str) -> Option<&toolwright_core::Entry> {
        if let Some(name) = self.aliases.get(reference) {
            return self.builtins.get(name);
        }
        let there = reference.strip_prefix("llm_workers.tools.").and_then(|rest| rest.split_once('.'));
        match there {
            Some((module, name)) if MODULES.contains(&module) => self.builtins.get(name),
            Some(_) => None,
            None => self.builtins.get(reference),
        }
    }

    /// The built-ins of a toolkit.
    pub(crate) fn toolkit_names(&self, reference: &str) -> Option<Vec<String>> {
        if let Some(names) = self.toolkits.get(reference) {
            return Some(names.clone());
        }
        let file_tools =
            ["read_file", "write_file", "edit_file", "glob_files", "grep_files", "file_info", "list_files"];
        (reference == "llm_workers.tools.fs.FilesystemToolkit")
            .then(|| file_tools.map(str::to_owned).to_vec())
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("builtins", &self.builtins).finish_non_exhaustive()
    }
}
