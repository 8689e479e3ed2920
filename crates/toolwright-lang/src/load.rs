//! Compiling a file, to everything a program needs from it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use toolwright_core::{Patterns, Secret, ToolError, Toolset};
use toolwright_expr::Value;

use crate::bind::BoundFile;
use crate::build::{self, FileBuilder, FlowInfo, Tools};
use crate::check;
use crate::cli::Cli;
use crate::diag::{Diagnostic, FileSpan, LoadError, Problems, Severity};
use crate::env::{FileSecret, Variable};
use crate::exec::Globals;
use crate::file_sources;
use crate::files::Source;
use crate::host::{Host, Server, ServerState, ServerTools};
use crate::missing_tools::Absent;
use crate::needs::Wanted;
use crate::parse::SourceFile;
use crate::sections::{self, Chat};
use crate::server_imports::{CurrentTools, LiveServer, ServerImport};
use crate::yaml::{Data, Node};

/// Where tools are for all programs, as messages and `auto_import_scope` say it; and where they are for the
/// chat.
pub(crate) const FILE: &str = "the file";
pub(crate) const SHARED: &str = "shared";
pub(crate) const CHAT: &str = "chat";

/// Loads a file whose tools need no MCP server. All problems that keep it from being used are reported at
/// once.
///
/// ```
/// use toolwright_lang::{Host, Source, load};
///
/// let source = Source::text("hello.yaml", "tools:\n  - name: hello\n    do: {eval: 'Hello!'}\n");
/// let loaded = load(source, &Host::new()).unwrap();
/// assert_eq!(loaded.tools().names().collect::<Vec<_>>(), ["hello"]);
/// ```
///
/// This is [`SourceFile::parse`], [`SourceFile::bind`] and [`BoundFile::compile`] in one; a program that
/// connects servers or reads sections of the file takes these steps itself.
pub fn load(source: impl Into<Source>, host: &Host) -> Result<Loaded, LoadError> {
    load_all(source, host).into_result()
}

/// Loads what can be loaded: tools with problems are left out, and [`Loaded::problems`] says which and why.
pub fn load_all(source: impl Into<Source>, host: &Host) -> Loaded {
    let file = SourceFile::parse(source);
    let bound = file.bind(host, &file.needs(&Wanted::everything()));
    let none = |(name, server): (&String, &Server)| {
        let (error, required) =
            (ToolError::new("this program connects to no servers"), server.trust().required);
        (name.clone(), ServerState::Failed { error, required })
    };
    let servers = bound.servers().iter().map(none).collect();
    bound.compile(&servers)
}

/// Everything a program needs from a file.
pub struct Loaded {
    tools: Toolset,
    data: IndexMap<Arc<str>, Value>,
    prompts: Toolset,
    chat: Option<Chat>,
    cli: Option<Cli>,
    env: Vec<Variable>,
    secrets: Vec<FileSecret>,
    absent: Vec<Absent>,
    made: HashSet<Arc<str>>,
    live: Vec<ServerImport>,
    servers: Vec<LiveServer>,
    pub(crate) unknown: Vec<(String, FileSpan)>,
    pub(crate) globals: Arc<Globals>,
    pub(crate) flows: Vec<FlowInfo>,
    pub(crate) problems: Problems,
}

impl Loaded {
    /// The file, unless one of its problems keeps it from being used.
    pub fn into_result(self) -> Result<Self, LoadError> {
        self.problems.as_error().map_or(Ok(self), Err)
    }

    /// The shared tools of the file, in its order.
    pub fn tools(&self) -> &Toolset {
        &self.tools
    }

    /// The names of the tools that are flows: they compute and call tools, and do nothing else.
    pub fn flows(&self) -> impl Iterator<Item = &str> {
        self.flows.iter().map(|flow| &*flow.name)
    }

    /// The tools as they are now, for a run: see [`CurrentTools`]. Of the tools that servers bring later,
    /// those whose names match are included. `None` when the file imports no tools of servers: then
    /// [`tools`](Self::tools) is complete.
    pub fn current_tools<S: AsRef<str>>(
        &self,
        patterns: impl IntoIterator<Item = S>,
    ) -> Option<CurrentTools> {
        let patterns: Vec<S> = patterns.into_iter().collect();
        let (tools, wanted) = (self.tools.clone().filtered(&patterns), Patterns::new(&patterns));
        self.following(tools, wanted, self.live.iter().filter(|live| !live.chat).cloned().collect())
    }

    /// The same for the tools of the chat. What servers bring later is among them where the chat has all of a
    /// server.
    pub fn current_chat_tools<S: AsRef<str>>(
        &self,
        patterns: impl IntoIterator<Item = S>,
    ) -> Option<CurrentTools> {
        let patterns: Vec<S> = patterns.into_iter().collect();
        let tools = &self.chat.as_ref()?.tools;
        let of_chat = self.live.iter().cloned().map(|live| {
            let open = live.chat || live.names.iter().all(|name| tools.get(name).is_some());
            ServerImport { open, ..live }
        });
        self.following(tools.clone().filtered(&patterns), Patterns::new(&patterns), of_chat.collect())
    }

    fn following(
        &self,
        tools: Toolset,
        wanted: Patterns,
        imports: Vec<ServerImport>,
    ) -> Option<CurrentTools> {
        let there = !imports.is_empty() && !self.servers.is_empty();
        there.then(|| CurrentTools::new(tools, self.servers.clone(), imports, wanted))
    }

    /// Why a tool that the file mentions is not among its [`tools`](Self::tools): it is suspended or
    /// unusable, or its server is unavailable. Another tool of that name is not what the file means. `None`
    /// for a name the file does not know.
    pub fn why_missing(&self, name: &str) -> Option<String> {
        if self.tools.get(name).is_some() {
            return None;
        }
        Absent::find(&self.absent, name).map(|absent| absent.why.clone())
    }

    /// Whether any part of the file has a tool of this name: also the chat, the batch program, or a single
    /// flow.
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

    /// The environment variables the file declares.
    pub fn env(&self) -> &[Variable] {
        &self.env
    }

    /// The values of secret variables, to be kept out of records.
    pub fn secrets(&self) -> Vec<Secret> {
        self.secrets.iter().map(|secret| secret.value.clone()).collect()
    }

    /// Those of them that models and people are not shown.
    pub fn hidden_secrets(&self) -> Vec<Secret> {
        let hidden = self.secrets.iter().filter(|secret| !secret.visible_to_model);
        hidden.map(|secret| secret.value.clone()).collect()
    }

    /// What was found while loading.
    pub fn problems(&self) -> Vec<Diagnostic> {
        self.problems.found.all()
    }

    /// Everything that can be known before running: unknown names, missing and mistyped parameters, branches
    /// that are never taken, and what was found while loading. In the order of the file.
    pub fn check(&self) -> Vec<Diagnostic> {
        check::run(self)
    }
}

impl BoundFile {
    /// Makes the tools of the file out of its definitions and the tools of servers. Those of a server without
    /// a state are unknown: the file's names for them mean tools that cannot be called.
    pub fn compile(self, servers: &HashMap<String, ServerState>) -> Loaded {
        let BoundFile { root, mut problems, host, globals, models, .. } = self;
        let mut names = sections::server_names(&root);
        names.extend(file_sources::files(&root));
        let mut builder = FileBuilder::new(&mut problems, &host, (names, servers), &models, globals.clone());
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
        let FileBuilder { flows, absent, live, made, asked, unknown, .. } = builder;
        let asked = asked.into_iter().filter_map(|(name, known)| {
            let ServerTools { tools, source, .. } = known?;
            Some(LiveServer { name, source: source?, tools })
        });
        let servers = asked.collect();
        for (name, place) in self.unread {
            problems.error_hint(
                place,
                format!("the file has a section `{name}`, and this program does not apply it"),
                "open it with `toolwright::Session`, which does, or read it with `SourceFile::section`",
            );
        }
        let tools = build::to_toolset(shared.values());
        let prompts = build::to_toolset(prompts.values());
        Loaded {
            tools,
            data: self.data,
            prompts,
            chat,
            cli,
            env: self.variables,
            secrets: self.secrets,
            absent,
            made,
            live,
            servers,
            unknown,
            globals,
            flows,
            problems,
        }
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("tools", &self.tools).field("cli", &self.cli).finish_non_exhaustive()
    }
}
