//! The tools of a file as they are now: servers bring new tools, and take others back, while a program runs.

use std::sync::{Arc, Mutex};

use toolwright_core::{
    DynTool, DynToolSource, Entry, Fingerprint, Patterns, Tool, ToolError, ToolSource, Toolset, ToolsetError,
};
use toolwright_util::lock;

use crate::build::texts;
use crate::flow::ImportedTool;
use crate::hint::Hint;
use crate::yaml::Node;

/// Which tools of a source a file takes in, and what it says of them.
#[derive(Clone)]
pub(crate) struct ImportRule {
    pub(crate) prefix: String,
    pub(crate) filter: Patterns,
    hints: Option<Patterns>,
    no_hints: Option<Patterns>,
    confirm: Option<Patterns>,
    no_confirm: Option<Patterns>,
    /// The arguments that hints show.
    shown: Vec<String>,
}

impl ImportRule {
    /// What an `import_tools` says.
    pub(crate) fn of(node: &Node, prefix: String) -> Self {
        let patterns = |key: &str| node.get(key).map(|node| Patterns::new(texts(node)));
        ImportRule {
            prefix,
            filter: patterns("filter").unwrap_or_else(|| Patterns::new(["*"])),
            hints: patterns("force_ui_hints_for"),
            no_hints: patterns("force_no_ui_hints_for"),
            confirm: patterns("force_require_confirmation_for"),
            no_confirm: patterns("force_no_confirmation_for"),
            shown: node.get("ui_hints_args").map(texts).unwrap_or_default(),
        }
    }

    /// All tools of a server as `<server>_<tool>`, with hints.
    pub(crate) fn automatic(server: &str) -> Self {
        let all = || Patterns::new(["*"]);
        ImportRule {
            prefix: format!("{server}_"),
            filter: all(),
            hints: Some(all()),
            no_hints: None,
            confirm: None,
            no_confirm: None,
            shown: Vec::new(),
        }
    }

    /// The tool as the file has it; `None` when the file does not take it in. Rules follow a tool of a server
    /// as `mcp:server/tool`, since the server chooses the bare name.
    pub(crate) fn take(&self, tool: &Arc<DynTool>, server: Option<&str>) -> Option<ImportedTool> {
        let (mut spec, mut policy) = (tool.spec().clone(), tool.policy().clone());
        let own = spec.name.clone();
        if !self.filter.matches(&own) {
            return None;
        }
        let matches =
            |patterns: &Option<Patterns>| patterns.as_ref().is_some_and(|patterns| patterns.matches(&own));
        match server {
            Some(server) => {
                let server = server.strip_prefix("mcp:").unwrap_or(server);
                policy.was_called(&format!("mcp:{server}/{own}").into());
            }
            None if !self.prefix.is_empty() => policy.was_called(&own),
            None => {}
        }
        spec.name = format!("{}{own}", self.prefix).into();
        let hint = if matches(&self.hints) {
            Some(Hint::Calling(self.shown.clone()))
        } else {
            matches(&self.no_hints).then_some(Hint::Silent)
        };
        if matches(&self.confirm) {
            policy.require_confirmation = Some(true);
        } else if matches(&self.no_confirm) {
            policy.require_confirmation = Some(false);
        }
        Some(ImportedTool::new(tool.clone(), spec, policy, hint))
    }
}

/// An import from a server, for as long as the file is used.
#[derive(Clone)]
pub(crate) struct ServerImport {
    pub(crate) server: String,
    pub(crate) what: ImportScope,
    /// The names in the file of what it brought when the file was loaded.
    pub(crate) names: Vec<Arc<str>>,
    /// Whether only the chat has it.
    pub(crate) chat: bool,
    /// Whether what the server has later is wanted too.
    pub(crate) open: bool,
}

/// What is imported.
#[derive(Clone)]
pub(crate) enum ImportScope {
    /// One tool, by the server's name for it.
    One(String),
    All(Box<ImportRule>),
}

/// A server of a file that can be asked again.
#[derive(Clone)]
pub(crate) struct LiveServer {
    pub(crate) name: String,
    pub(crate) source: Arc<DynToolSource>,
    /// Its tools when the file was loaded.
    pub(crate) tools: Toolset,
}

/// Tools of a file as they are now: what its servers no longer offer is not among them, and what they offer
/// anew is, where a whole server is imported. What the file itself calls stays what it was when the file was
/// loaded.
pub struct CurrentTools {
    /// As they were when the file was loaded.
    loaded: Toolset,
    servers: Vec<LiveServer>,
    imports: Vec<ServerImport>,
    /// Which new tools are wanted.
    wanted: Patterns,
    /// The last answer, and what it was made of.
    last: Mutex<(Listed, Toolset)>,
}

/// The definitions of each server.
type Listed = Vec<Vec<Fingerprint>>;

impl CurrentTools {
    pub(crate) fn new(
        loaded: Toolset,
        servers: Vec<LiveServer>,
        imports: Vec<ServerImport>,
        wanted: Patterns,
    ) -> Self {
        let listed = servers.iter().map(|server| definitions(&server.tools)).collect();
        let last = Mutex::new((listed, loaded.clone()));
        CurrentTools { loaded, servers, imports, wanted, last }
    }

    /// The tools, with those the servers have now in the places of those they had.
    fn made(&self, now: &[Toolset]) -> Result<Toolset, ToolsetError> {
        let mut tools = Toolset::new();
        let mut done = vec![false; self.imports.len()];
        for entry in self.loaded.iter() {
            let brings = |live: &&ServerImport| live.names.contains(&entry.tool.spec().name);
            match self.imports.iter().position(|live| brings(&live)) {
                None => tools = tools.with_from(entry.tool.clone(), &entry.origin)?,
                Some(at) => {
                    let before = done.get_mut(at).is_some_and(|done| std::mem::replace(done, true));
                    if let Some(live) = self.imports.get(at).filter(|_| !before) {
                        tools = self.brought(live, now, tools);
                    }
                }
            }
        }
        for (live, _) in self.imports.iter().zip(done).filter(|(_, done)| !done) {
            tools = self.brought(live, now, tools);
        }
        Ok(tools)
    }

    /// The tools, and what an import brings now. What cannot be used is left out.
    fn brought(&self, live: &ServerImport, now: &[Toolset], mut tools: Toolset) -> Toolset {
        let server = self.servers.iter().position(|server| server.name == live.server);
        let Some(has) = server.and_then(|at| now.get(at)) else { return tools };
        let origin = crate::python::described(&live.server);
        let mut add = |tool: Arc<DynTool>, origin: &str| {
            if let Ok(grown) = tools.clone().with_from(tool, origin) {
                tools = grown;
            }
        };
        match &live.what {
            ImportScope::One(own) if has.get(own).is_some() => {
                let known = live.names.iter().filter_map(|name| self.loaded.get(name));
                known.for_each(|entry| add(entry.tool.clone(), &entry.origin));
            }
            ImportScope::One(_) => {}
            ImportScope::All(rule) => {
                for tool in has.iter().filter_map(|entry: &Entry| rule.take(&entry.tool, Some(&live.server)))
                {
                    let name = &tool.spec().name;
                    let known = live.names.contains(name);
                    // A new tool takes no name that the file has given to another.
                    let wanted = match self.loaded.get(name) {
                        Some(_) => known,
                        None => live.open && !known && self.wanted.matches(name),
                    };
                    if wanted {
                        add(Arc::new(tool), &origin);
                    }
                }
            }
        }
        tools
    }
}

impl ToolSource for CurrentTools {
    fn name(&self) -> &str {
        "file"
    }

    async fn tools(&self) -> Result<Toolset, ToolError> {
        let mut now = Vec::new();
        for server in &self.servers {
            now.push(server.source.tools().await?);
        }
        let listed: Listed = now.iter().map(definitions).collect();
        let mut last = lock(&self.last);
        if last.0 != listed {
            *last = (listed, self.made(&now)?);
        }
        Ok(last.1.clone())
    }
}

fn definitions(tools: &Toolset) -> Vec<Fingerprint> {
    tools.iter().map(|entry| entry.fingerprint.clone()).collect()
}
