//! Loading a file, to everything a program needs from it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value as Json;
use toolwright_core::{Misfit, Patterns, Secret, Step, Toolset};
use toolwright_expr::Value;

use crate::absent::Absent;
use crate::build::{self, Builder, FlowInfo, Tools};
use crate::check;
use crate::cli::Cli;
use crate::diag::{Diagnostic, LoadError, Place, Problems, Severity};
use crate::env::{self, Variable};
use crate::exec::Globals;
use crate::file;
use crate::files::{Loader, Source};
use crate::host::{Host, ServerTools};
use crate::live::{CurrentTools, Live, LiveServer};
use crate::models;
use crate::sections::{self, Chat};
use crate::shape;
use crate::yaml::{Data, Node};

/// Where tools are for all programs, as messages and `auto_import_scope` say it; and where they are for the chat.
pub(crate) const FILE: &str = "the file";
pub(crate) const SHARED: &str = "shared";
pub(crate) const CHAT: &str = "chat";

/// Loads a file. All problems that keep it from being used are told at once.
///
/// ```
/// use toolwright_lang::{Host, Source, load};
///
/// let source = Source::text("hello.yaml", "tools:\n  - name: hello\n    do: {eval: 'Hello!'}\n");
/// let loaded = load(source, &Host::new()).unwrap();
/// assert_eq!(loaded.tools().names().collect::<Vec<_>>(), ["hello"]);
/// ```
pub fn load(source: impl Into<Source>, host: &Host) -> Result<Loaded, LoadError> {
    let loaded = load_all(source, host);
    loaded.problems.as_error().map_or(Ok(loaded), Err)
}

/// Loads what can be loaded: tools with problems are left out, and [`Loaded::problems`] says which and why.
pub fn load_all(source: impl Into<Source>, host: &Host) -> Loaded {
    let mut problems = Problems::default();
    let mut loader = Loader::new(host);
    let root = loader.root(&mut problems, source.into());
    let root = root.unwrap_or(Node { data: Data::Bad, place: Place::default() });
    Loaded::build(root, host, problems)
}

/// The environment variables a file declares, so that a program can ask for those that are not set.
pub fn declared_env(source: impl Into<Source>, host: &Host) -> Result<Vec<Variable>, LoadError> {
    let mut problems = Problems::default();
    let root = Loader::new(host).root(&mut problems, source.into());
    match problems.as_error() {
        Some(error) => Err(error),
        None => Ok(root.map(|root| env::declared(&mut problems, &root, host)).unwrap_or_default()),
    }
}

/// Everything a program needs from a file.
pub struct Loaded {
    tools: Toolset,
    data: IndexMap<Arc<str>, Value>,
    prompts: Toolset,
    chat: Option<Chat>,
    cli: Option<Cli>,
    sections: IndexMap<&'static str, Section>,
    env: Vec<Variable>,
    secrets: Vec<Secret>,
    absent: Vec<Absent>,
    made: HashSet<Arc<str>>,
    live: Vec<Live>,
    servers: Vec<LiveServer>,
    pub(crate) globals: Arc<Globals>,
    pub(crate) flows: Vec<FlowInfo>,
    pub(crate) problems: Problems,
    malformed: Option<LoadError>,
}

/// A section that this crate only carries: `models`, `policy`, `limits`, `sandbox`, `sandboxes` or `resources`.
#[derive(Debug, Clone)]
pub struct Section {
    /// What it holds.
    pub value: Json,
    /// Where it stands, as `file:line:column`.
    pub place: String,
    node: Node,
}

impl PartialEq for Section {
    fn eq(&self, other: &Self) -> bool {
        (&self.value, &self.place) == (&other.value, &other.place)
    }
}

impl Section {
    /// The place at the end of a way into the section; as much of the way is gone as there is.
    fn at(&self, path: &[Step]) -> Place {
        let (mut node, mut place) = (&self.node, self.node.place);
        for step in path {
            let found = match (step, &node.data) {
                (Step::Key(key), Data::Map(entries)) => {
                    entries.iter().find(|(name, _)| name.is_key(key)).map(|(name, value)| (value, name.place))
                }
                (Step::Index(index), Data::List(items)) => items.get(*index).map(|item| (item, item.place)),
                _ => None,
            };
            match found {
                Some(found) => (node, place) = found,
                None => break,
            }
        }
        place
    }
}

impl Loaded {
    /// The shared tools of the file, in its order.
    pub fn tools(&self) -> &Toolset {
        &self.tools
    }

    /// The names of the tools that are flows: they compute and call tools, and do nothing else.
    pub fn flows(&self) -> impl Iterator<Item = &str> {
        self.flows.iter().map(|flow| &*flow.name)
    }

    /// The tools as they are now, for a run: see [`CurrentTools`]. Of the tools that servers bring later, those whose names match
    /// are among them. `None` when the file takes in no tools of servers, so that [`tools`](Self::tools) is all there is.
    pub fn current_tools<S: AsRef<str>>(
        &self,
        patterns: impl IntoIterator<Item = S>,
    ) -> Option<CurrentTools> {
        let patterns: Vec<S> = patterns.into_iter().collect();
        let (tools, wanted) = (self.tools.clone().filtered(&patterns), Patterns::new(&patterns));
        self.following(tools, wanted, self.live.iter().filter(|live| !live.chat).cloned().collect())
    }

    /// The same for the tools of the chat. What servers bring later is among them where the chat has all of a server.
    pub fn current_chat_tools<S: AsRef<str>>(
        &self,
        patterns: impl IntoIterator<Item = S>,
    ) -> Option<CurrentTools> {
        let patterns: Vec<S> = patterns.into_iter().collect();
        let tools = &self.chat.as_ref()?.tools;
        let of_chat = self.live.iter().cloned().map(|live| {
            let open = live.chat || live.names.iter().all(|name| tools.get(name).is_some());
            Live { open, ..live }
        });
        self.following(tools.clone().filtered(&patterns), Patterns::new(&patterns), of_chat.collect())
    }

    fn following(&self, tools: Toolset, wanted: Patterns, imports: Vec<Live>) -> Option<CurrentTools> {
        let there = !imports.is_empty() && !self.servers.is_empty();
        there.then(|| CurrentTools::new(tools, self.servers.clone(), imports, wanted))
    }

    /// Why a tool that the file speaks of is not among its [`tools`](Self::tools): it is suspended or cannot be used, or its server
    /// cannot be had. Another tool of that name is not what the file means. `None` for a name the file
    /// does not know.
    pub fn why_missing(&self, name: &str) -> Option<String> {
        if self.tools.get(name).is_some() {
            return None;
        }
        Absent::find(&self.absent, name).map(|absent| absent.why.clone())
    }

    /// Whether any part of the file has a tool of this name: also the chat, the batch program, or a single flow.
    pub fn has_anywhere(&self, name: &str) -> bool {
        self.made.contains(name) || self.flows().any(|flow| flow == name)
    }

    /// The shared data, evaluated.
    pub fn data(&self) -> &IndexMap<Arc<str>, Value> {
        &self.data
    }

    /// The prompts, as tools whose result is what a prompt says.
    pub fn prompts(&self) -> &Toolset {
        &self.prompts
    }

    /// The chat program.
    pub fn chat(&self) -> Option<&Chat> {
        self.chat.as_ref()
    }

    /// The batch program.
    pub fn cli(&self) -> Option<&Cli> {
        self.cli.as_ref()
    }

    /// One of the sections `models`, `policy`, `limits`, `sandbox`, `sandboxes` and `resources`, as data.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.get(name)
    }

    /// A problem with such a section, found by whoever knows what it should hold. It stands where the way to it leads.
    pub fn problem_in(&self, section: &Section, misfit: Misfit) -> Diagnostic {
        let Misfit { path, message, hint } = misfit;
        self.problems.sources.diagnostic(Severity::Error, section.at(&path), message, hint)
    }

    /// The environment variables the file declares.
    pub fn env(&self) -> &[Variable] {
        &self.env
    }

    /// The values of secret variables, to be kept out of records.
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// What is wrong with the form of the file, before any tool of it was made: it cannot be read, or has keys and values that
    /// mean nothing. What the rest of it says, about a sandbox for one, cannot be relied on then.
    pub fn malformed(&self) -> Option<&LoadError> {
        self.malformed.as_ref()
    }

    /// What was found while loading.
    pub fn problems(&self) -> Vec<Diagnostic> {
        self.problems.found.all()
    }

    /// Everything that can be known before running: unknown names, missing and mistyped parameters, branches that are
    /// never taken, and what was found while loading. In the order of the file.
    pub fn check(&self) -> Vec<Diagnostic> {
        check::run(self)
    }

    fn build(root: Node, host: &Host, mut problems: Problems) -> Loaded {
        let fine = !matches!(root.data, Data::Bad);
        if fine && !matches!(root.data, Data::Null) {
            shape::check(&mut problems, &root, &file::FILE);
        }
        let malformed = problems.as_error();
        let host = &with_limits(&root, host);
        let (variables, secrets, env_value) = env::read(&mut problems, &root, host);
        let mut globals = Globals::new();
        globals.insert("env", env_value);
        let servers = sections::servers(&mut problems, &root, &globals);
        let data = sections::data(&mut problems, &root, &mut globals, host);
        let globals = Arc::new(globals);
        let models = models::read(&mut problems, &root);
        let mut builder = Builder::new(&mut problems, host, servers, models, globals.clone());
        if let Some(Node { data: Data::Map(entries), .. }) = root.get("sandboxes") {
            builder.sandboxes = entries.iter().map(|(name, _)| name.key_text()).collect();
        }

        let mut shared = Tools::new();
        let mut chat_tools = Tools::new();
        for (name, place, scope) in sections::auto_imports(&root) {
            let into = if scope == SHARED { &mut shared } else { &mut chat_tools };
            builder.auto_import(&name, place, into, &scope);
            if scope == CHAT && root.get("chat").is_none() {
                let message = format!(
                    "the tools of the MCP server `{name}` are for `chat`, which the file does not have"
                );
                let hint = "`auto_import_scope: shared` gives them to all programs".to_owned();
                builder.problems.add(Severity::Warning, place, message, Some(hint));
            }
        }
        let lists = [root.get("shared").and_then(|shared| shared.get("tools")), root.get("tools")];
        for list in lists.into_iter().flatten() {
            if let Data::List(nodes) = &list.data {
                builder.definitions(nodes, None, &mut shared, FILE);
            }
        }
        let mut prompts = Tools::new();
        if let Some(Node { data: Data::List(nodes), .. }) = root.get("prompts") {
            builder.definitions(nodes, Some(&shared), &mut prompts, "the prompts");
        }
        let chat = root.get("chat").and_then(|node| sections::chat(&mut builder, node, &shared, chat_tools));
        let cli = root.get("cli").and_then(|node| sections::cli(&mut builder, node, &shared));
        let (flows, absent) = (std::mem::take(&mut builder.flows), std::mem::take(&mut builder.absent));
        let (live, made) = (std::mem::take(&mut builder.live), std::mem::take(&mut builder.made));
        let asked = std::mem::take(&mut builder.asked).into_iter();
        let servers = asked.filter_map(|(name, known)| {
            let ServerTools { tools, source, .. } = known?;
            Some(LiveServer { name, source: source?, tools })
        });
        let servers = servers.collect();
        let sections = ["models", "policy", "limits", "sandbox", "sandboxes", "resources"]
            .into_iter()
            .filter_map(|name| {
                let node = root.get(name)?;
                let (value, place) = (node.to_json(), problems.sources.locate(node.place));
                Some((name, Section { value, place, node: node.clone() }))
            });
        let sections = sections.collect();
        for name in ["policy", "limits", "sandbox", "sandboxes"] {
            let applied = host.applied.iter().any(|known| known == name);
            if let Some(node) = root.get(name).filter(|node| !applied && !matches!(node.data, Data::Null)) {
                problems.error_hint(
                    node.place,
                    format!("the file has a section `{name}`, and this program does not apply it"),
                    "open it with `toolwright::file::ToolFile`, which does, or apply it and say so with `Host::applies`",
                );
            }
        }
        let tools = build::to_toolset(shared.values());
        let prompts = build::to_toolset(prompts.values());
        Loaded {
            tools,
            data,
            prompts,
            chat,
            cli,
            sections,
            env: variables,
            secrets,
            absent,
            made,
            live,
            servers,
            globals,
            flows,
            problems,
            malformed,
        }
    }
}

/// The host with what the file says about single expressions. What does not fit was told when the shape was checked.
fn with_limits<'h>(root: &Node, host: &'h Host) -> Cow<'h, Host> {
    let Some(section) = root.get("limits") else { return Cow::Borrowed(host) };
    let number =
        |key: &str| section.get(key).and_then(shape::count).and_then(|count| u64::try_from(count).ok());
    let (steps, memory) = (number("steps"), number("memory"));
    if steps.is_none() && memory.is_none() {
        return Cow::Borrowed(host);
    }
    let mut limits = host.limits.clone();
    limits.expression.steps = steps.unwrap_or(limits.expression.steps);
    limits.expression.bytes = memory.unwrap_or(limits.expression.bytes);
    Cow::Owned(host.clone().limits(limits))
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("tools", &self.tools).field("cli", &self.cli).finish_non_exhaustive()
    }
}
