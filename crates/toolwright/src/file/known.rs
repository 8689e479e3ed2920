//! What a program knows before anything is started: its own tools, those it can make for an import, the tools
//! of MCP servers that a lock lists, and values of variables.

#[cfg(feature = "mcp")]
use std::collections::HashMap;
#[cfg(feature = "mcp")]
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use toolwright_core::{DynTool, ToolError, Toolset};
#[cfg(feature = "mcp")]
use toolwright_lang::ServerState;
use toolwright_lang::{Host, Imports};
#[cfg(feature = "mcp")]
use toolwright_mcp::{LockFile, LockedServer, Proxies, ToolDefinition};
#[cfg(all(feature = "tools", not(feature = "mcp")))]
use toolwright_tools::Proxies;

use crate::environment::Environment;

/// What a program lends to a file, and knows about it, before anything is started.
///
/// ```
/// use toolwright::file::{Environment, KnownTools, ToolFile};
/// use toolwright::lang::Source;
///
/// let file = ToolFile::parse(Source::text("t.yaml", "
/// env: {REGION: {}}
/// tools:
///   - {name: where, do: {eval: '${env.REGION}'}}
///   - {name: lost, do: {call: wher}}
/// "))?;
/// let known = KnownTools::new().environment(Environment::of([("REGION", "eu")]));
/// let problems = file.check(&known);
/// assert_eq!(problems[0].hint.as_deref(), Some("did you mean `where`?"));
/// # Ok::<(), toolwright::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct KnownTools {
    host: Host,
    library: Library,
    environment: Environment,
    #[cfg(feature = "mcp")]
    locks: Vec<PathBuf>,
}

impl KnownTools {
    /// The tools that files may import by the names other systems give them (feature `tools`), and nothing
    /// else.
    pub fn new() -> Self {
        KnownTools::default()
    }

    /// Adds the program's own tools, which a file imports by their names.
    #[must_use]
    pub fn builtins(mut self, tools: Toolset) -> Self {
        self.host = self.host.builtins(tools);
        self
    }

    /// Adds tools that look things up.
    #[cfg(feature = "data")]
    #[must_use]
    pub fn data(mut self, data: toolwright_data::DataTools) -> Self {
        self.library.data = Some(Arc::new(data));
        self
    }

    /// The proxies on the way to pages that tools fetch, and to MCP servers with an address; none by default.
    /// Tools that look things up have their own. Names that a proxy resolves are not restricted to the public
    /// internet.
    #[cfg(any(feature = "tools", feature = "mcp"))]
    #[must_use]
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.library.proxies = proxies;
        self
    }

    /// The values of the variables that a file declares, of vendors' keys, and of `PATH` where a program must
    /// be found for a sandbox. Without this, no variable is set.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// A value that every file sees as `${env.NAME}`, whether it declares it or not.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.host = self.host.variable(name, value);
        self
    }

    /// The command line of a batch program, which the file sees as `${env.CLI_ARGS}`.
    #[must_use]
    pub fn arguments(mut self, arguments: &Value) -> Self {
        self.host = self.host.arguments(arguments);
        self
    }

    /// A file of approved definitions (`tools.lock`). It need not exist. Of several, the first that lists a
    /// server counts for it: the server then has no other tools than those.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn lock(mut self, path: impl Into<PathBuf>) -> Self {
        self.locks.push(path.into());
        self
    }

    /// The variables.
    pub(crate) fn variables(&self) -> &Environment {
        &self.environment
    }

    #[cfg(feature = "mcp")]
    pub(crate) fn through(&self) -> &Proxies {
        &self.library.proxies
    }

    /// What is lent to a file that declares these variables.
    pub(crate) fn host<'n>(&self, declared: impl IntoIterator<Item = &'n str>) -> Host {
        let value = |name: &str| Some((name.to_owned(), self.environment.get(name)?));
        let set: Vec<_> = declared.into_iter().filter_map(value).collect();
        self.host.clone().imports(self.library.clone()).environment(set)
    }

    /// What is lent to a file that is not trusted: its tools can be checked, and no variable is read and
    /// nothing opened.
    pub(crate) fn inert_host(&self) -> Host {
        self.host.clone().imports(InertLibrary(self.library.clone()))
    }

    /// The approved tools of a server, and the lock that lists them.
    #[cfg(feature = "mcp")]
    pub(crate) fn locked(&self, name: &str) -> Result<Option<(LockedServer, &Path)>, ToolError> {
        for path in self.locks.iter().filter(|path| path.exists()) {
            let mut file = LockFile::load(path).map_err(|error| ToolError::new(error.to_string()))?;
            if let Some(server) = file.servers.remove(name) {
                return Ok(Some((server, path)));
            }
        }
        Ok(None)
    }

    /// The tools of these servers as far as locks list them. Nothing is started.
    #[cfg(feature = "mcp")]
    pub(crate) fn listed<'n>(
        &self,
        servers: impl Iterator<Item = &'n String>,
    ) -> HashMap<String, ServerState> {
        let state = |name: &String| match self.locked(name) {
            Ok(locked) => Some((name.clone(), ServerState::Known(definitions(&locked?.0)))),
            Err(error) => Some((name.clone(), ServerState::Failed { error, required: true })),
        };
        servers.filter_map(state).collect()
    }
}

/// The tools of a lock, to check calls against. They cannot be called.
#[cfg(feature = "mcp")]
fn definitions(server: &LockedServer) -> Toolset {
    let definition = |tool: &toolwright_mcp::LockedTool| -> Option<ToolDefinition> {
        serde_json::from_value(tool.definition.clone()).ok()
    };
    let mut tools = Toolset::new();
    for definition in server.tools.values().filter_map(definition) {
        let mut spec = toolwright_core::ToolSpec::new(
            definition.name.as_str(),
            definition.description.as_deref().unwrap_or_default(),
        );
        spec.parameters = definition.input_schema;
        spec.output_schema = definition.output_schema;
        let tool = toolwright_core::ToolDef::dynamic(spec, |_, _| async {
            Err::<toolwright_core::ToolOutput, _>(ToolError::new("the server of this tool was not started"))
        });
        // A definition that cannot be used is left out, as it is when the server is connected.
        tools = tools.clone().with(tool).unwrap_or(tools);
    }
    tools
}

/// Makes tools for the imports of a file: by the names other systems give them, and those that look things
/// up.
#[derive(Clone, Default)]
struct Library {
    #[cfg(feature = "data")]
    data: Option<Arc<toolwright_data::DataTools>>,
    #[cfg(any(feature = "tools", feature = "mcp"))]
    proxies: Proxies,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").finish_non_exhaustive()
    }
}

/// The library for a file that is not trusted. A database is not opened, and engines have no variables.
#[derive(Debug)]
struct InertLibrary(Library);

impl Imports for InertLibrary {
    fn tool(&self, reference: &str, config: &Value) -> Option<Result<Arc<DynTool>, ToolError>> {
        #[cfg(feature = "tools")]
        if let Some(tool) = toolwright_tools::configured(reference, config) {
            return Some(tool.map(|tool| Arc::new(tool) as Arc<DynTool>));
        }
        // A browser is started by the first call.
        #[cfg(feature = "browser")]
        if let Some(tool) = toolwright_browser::configured(reference, config) {
            return Some(tool.map(|tool| Arc::new(tool) as Arc<DynTool>));
        }
        #[cfg(feature = "data")]
        if let Some(tool) =
            self.0.data.as_ref().and_then(|_| toolwright_data::DataTools::inert(reference, config))
        {
            return Some(tool.map(|tool| Arc::new(tool) as Arc<DynTool>));
        }
        let _ = (reference, config);
        None
    }

    #[cfg(feature = "tools")]
    fn toolkit(&self, reference: &str) -> Option<Result<Toolset, ToolError>> {
        self.0.toolkit(reference)
    }
}

impl Imports for Library {
    fn tool(&self, reference: &str, config: &Value) -> Option<Result<Arc<DynTool>, ToolError>> {
        #[cfg(feature = "tools")]
        if let Some(tool) = toolwright_tools::configured_through(reference, config, &self.proxies) {
            return Some(tool.map(|tool| Arc::new(tool) as Arc<DynTool>));
        }
        #[cfg(feature = "browser")]
        if let Some(tool) = toolwright_browser::configured(reference, config) {
            return Some(tool.map(|tool| Arc::new(tool) as Arc<DynTool>));
        }
        #[cfg(feature = "data")]
        if let Some(tool) = self.data.as_ref().and_then(|data| data.tool(reference, config)) {
            return Some(tool.map(|tool| Arc::new(tool) as Arc<DynTool>));
        }
        let _ = (reference, config);
        None
    }

    #[cfg(feature = "tools")]
    fn toolkit(&self, reference: &str) -> Option<Result<Toolset, ToolError>> {
        let set = toolwright_tools::toolkit(reference)?;
        Some(set.map_err(|error| ToolError::new(error.to_string())))
    }
}
