//! What one use of a file needs of it: which MCP servers must be connected, and which variables must be set.
//!
//! Whether a server has a tool is unknown until it is connected. So a name is traced through the definitions
//! of the file; a server is needed where a tool of it is imported by name, or where an import of all its
//! tools could bring the name. The answer may be too large, never too small.

use std::collections::{BTreeSet, HashMap};

use toolwright_core::Patterns;
use toolwright_expr::Script;

use crate::build::{text, texts};
use crate::file_sources;
use crate::load::CHAT;
use crate::sections;
use crate::yaml::{Data, Node};

/// The part of a file that is used.
///
/// ```
/// use toolwright_lang::{Source, SourceFile, Wanted};
///
/// let text = "
/// mcp:
///   git: {transport: stdio, command: git-mcp, auto_import_scope: shared}
///   mail: {transport: stdio, command: mail-mcp, auto_import_scope: shared}
/// ";
/// let needs = SourceFile::parse(Source::text("t.yaml", text)).needs(&Wanted::tool("git_log"));
/// assert!(needs.server("git") && !needs.server("mail"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    parts: Vec<FilePart>,
}

#[derive(Debug, Clone)]
enum FilePart {
    Everything,
    Tool(String),
    Tools(Vec<String>),
    Chat,
    Cli,
    Prompts,
}

impl Wanted {
    /// The whole file.
    pub fn everything() -> Self {
        Self::default().with(FilePart::Everything)
    }

    /// None of its tools: only sections are looked at.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// One tool.
    pub fn tool(name: impl Into<String>) -> Self {
        Self::default().with(FilePart::Tool(name.into()))
    }

    /// The tools whose names match, as in [`Patterns`]; all of them without patterns.
    pub fn tools<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Self {
        Self::default().and_tools(patterns)
    }

    /// The chat program with its tools.
    pub fn chat() -> Self {
        Self::default().with(FilePart::Chat)
    }

    /// The batch program.
    pub fn cli() -> Self {
        Self::default().with(FilePart::Cli)
    }

    /// The same, and tools whose names match.
    #[must_use]
    pub fn and_tools<S: Into<String>>(self, patterns: impl IntoIterator<Item = S>) -> Self {
        let mut patterns: Vec<String> = patterns.into_iter().map(Into::into).collect();
        if patterns.is_empty() {
            patterns.push("*".to_owned());
        }
        self.with(FilePart::Tools(patterns))
    }

    /// The same, and the prompts.
    #[must_use]
    pub fn and_prompts(self) -> Self {
        self.with(FilePart::Prompts)
    }

    fn with(mut self, part: FilePart) -> Self {
        self.parts.push(part);
        self
    }
}

/// What one use of a file needs of it.
#[derive(Debug, Clone)]
pub struct Needs {
    servers: BTreeSet<String>,
    variables: NeededNames,
    data: NeededNames,
    /// Whether a needed variable must be set; one that is not set is empty otherwise.
    strict: bool,
}

/// Some names, or all.
#[derive(Debug, Clone, Default)]
struct NeededNames {
    all: bool,
    some: BTreeSet<String>,
}

impl NeededNames {
    fn has(&self, name: &str) -> bool {
        self.all || self.some.contains(name)
    }
}

impl Needs {
    pub(crate) fn of(root: &Node, wanted: &Wanted) -> Self {
        let mut trace = Trace::new(root);
        for part in &wanted.parts {
            trace.part(part);
        }
        let Trace { servers, variables, seen_data, .. } = trace;
        let everything = wanted.parts.iter().any(|part| matches!(part, FilePart::Everything));
        let all = |names: NeededNames| NeededNames { all: names.all || everything, ..names };
        let data = NeededNames { all: false, some: seen_data };
        Needs { servers, variables: all(variables), data: all(data), strict: true }
    }

    /// The same, where a variable that is not set counts as empty: for looking at a file without running it.
    #[must_use]
    pub fn without_variables(mut self) -> Self {
        self.strict = false;
        self
    }

    /// The names of the servers, in alphabetical order.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(String::as_str)
    }

    /// Whether this server must be connected.
    pub fn server(&self, name: &str) -> bool {
        self.servers.contains(name)
    }

    /// Whether the templates of this server are evaluated. Of the whole file they are, even if nothing is
    /// imported from it: what is wrong with them is found then.
    pub(crate) fn evaluates(&self, name: &str) -> bool {
        self.data.all || self.server(name)
    }

    /// Whether this variable must be set.
    pub fn variable(&self, name: &str) -> bool {
        self.strict && self.variables.has(name)
    }

    /// Whether this entry of the shared data is used.
    pub(crate) fn data(&self, name: &str) -> bool {
        self.data.has(name)
    }
}

/// All tools of a server that match, under a prefix.
struct Bulk {
    server: String,
    prefix: String,
    filter: Vec<String>,
}

impl Bulk {
    /// Whether it could bring a tool of this name.
    fn could_bring(&self, name: &str) -> bool {
        let own = name.strip_prefix(self.prefix.as_str());
        own.is_some_and(|own| Patterns::new(&self.filter).matches(own))
    }

    /// Whether it could bring a tool whose name matches.
    fn could_match(&self, wanted: &[String]) -> bool {
        let taken = |pattern: &&String| !pattern.starts_with('!');
        let (mut wanted, filter) = (wanted.iter().filter(taken).peekable(), self.filter.iter().filter(taken));
        let heads: Vec<String> = filter.map(|own| format!("{}{}", self.prefix, head(own))).collect();
        wanted.peek().is_none()
            || wanted.any(|pattern| match is_pattern(pattern) {
                true => {
                    heads.iter().any(|own| own.starts_with(head(pattern)) || head(pattern).starts_with(own))
                }
                false => self.could_bring(pattern),
            })
    }
}

struct Trace<'n> {
    root: &'n Node,
    /// The definitions of the file, by the names of their tools.
    definitions: HashMap<String, Vec<&'n Node>>,
    bulks: Vec<Bulk>,
    data: HashMap<String, &'n Node>,
    declared: Vec<String>,
    seen: BTreeSet<String>,
    seen_data: BTreeSet<String>,
    servers: BTreeSet<String>,
    variables: NeededNames,
}

impl<'n> Trace<'n> {
    fn new(root: &'n Node) -> Self {
        let mut trace = Trace {
            root,
            definitions: HashMap::new(),
            bulks: Vec::new(),
            data: HashMap::new(),
            declared: sections::server_names(root),
            seen: BTreeSet::new(),
            seen_data: BTreeSet::new(),
            servers: BTreeSet::new(),
            variables: NeededNames::default(),
        };
        for (server, _, scope) in sections::auto_imports(root) {
            if scope != CHAT {
                let prefix = format!("{server}_");
                trace.bulks.push(Bulk { server, prefix, filter: vec!["*".to_owned()] });
            }
        }
        let shared = root.get("shared");
        for list in [shared.and_then(|shared| shared.get("tools")), root.get("tools")].into_iter().flatten() {
            if let Data::List(nodes) = &list.data {
                nodes.iter().for_each(|node| trace.define(node));
            }
        }
        if let Some(Node { data: Data::Map(entries), .. }) = shared.and_then(|shared| shared.get("data")) {
            trace.data.extend(entries.iter().map(|(name, node)| (name.key_text(), node)));
        }
        trace
    }

    fn define(&mut self, node: &'n Node) {
        if let Some(reference) = text(node, "import_tools") {
            let server = reference.strip_prefix("mcp:");
            if let Some(server) =
                server.or_else(|| Some(&*reference).filter(|one| file_sources::is_file(one)))
            {
                let filter = node.get("filter").map_or_else(|| vec!["*".to_owned()], texts);
                let prefix = text(node, "prefix").unwrap_or_default();
                self.bulks.push(Bulk { server: server.to_owned(), prefix, filter });
            }
            return;
        }
        // What comes of a pattern has a name of its own, which only its server knows.
        let reference = text(node, "import_tool");
        let own = |reference: String| match reference.strip_prefix("mcp:") {
            Some(rest) => rest.split_once('/').map(|(_, own)| own.to_owned()),
            None if file_sources::is_file(&reference) => file_sources::own_name(&reference),
            None => reference.rsplit(['.', '/']).next().map(str::to_owned),
        };
        let Some(name) = text(node, "name").or_else(|| own(reference?)) else { return };
        self.definitions.entry(name).or_default().push(node);
    }

    fn part(&mut self, part: &FilePart) {
        let root = self.root;
        match part {
            FilePart::Everything => {
                for (server, _, _) in sections::auto_imports(root) {
                    self.server(&server);
                }
                for name in ["shared", "tools", "chat", "cli", "prompts"] {
                    root.get(name).into_iter().for_each(|node| self.visit(node));
                }
            }
            FilePart::Tool(name) => self.tool(name),
            FilePart::Tools(patterns) => self.matching(patterns),
            FilePart::Chat => {
                root.get("chat").into_iter().for_each(|node| self.visit(node));
                let of_chat = sections::auto_imports(root).into_iter().filter(|(_, _, scope)| scope == CHAT);
                of_chat.for_each(|(server, _, _)| self.server(&server));
            }
            FilePart::Cli => root.get("cli").into_iter().for_each(|node| self.visit(node)),
            FilePart::Prompts => root.get("prompts").into_iter().for_each(|node| self.visit(node)),
        }
    }

    /// A tool of the file by its name.
    fn tool(&mut self, name: &str) {
        if !self.seen.insert(name.to_owned()) {
            return;
        }
        if let Some(nodes) = self.definitions.get(name).cloned() {
            // A name that the file gives itself is not given by a server as well.
            nodes.into_iter().for_each(|node| self.visit(node));
            return;
        }
        self.servers_of(|bulk| bulk.could_bring(name));
        // The tool that a pattern finds has a name that only its server knows.
        for name in self.definitions.keys().filter(|name| is_pattern(name)).cloned().collect::<Vec<_>>() {
            self.tool(&name);
        }
    }

    /// The tools of the file whose names match.
    fn matching(&mut self, patterns: &[String]) {
        let wanted = Patterns::new(patterns);
        let names: Vec<String> = self.definitions.keys().cloned().collect();
        for name in names.into_iter().filter(|name| is_pattern(name) || wanted.matches(name)) {
            self.tool(&name);
        }
        self.servers_of(|bulk| bulk.could_match(patterns));
    }

    fn servers_of(&mut self, brings: impl Fn(&Bulk) -> bool) {
        let bulks = self.bulks.iter().filter(|bulk| brings(bulk));
        let servers: Vec<String> = bulks.map(|bulk| bulk.server.clone()).collect();
        servers.iter().for_each(|server| self.server(server));
    }

    fn server(&mut self, name: &str) {
        if !self.servers.insert(name.to_owned()) {
            return;
        }
        let root = self.root;
        if let Some(Node { data: Data::Map(entries), .. }) = root.get("mcp") {
            let own = entries.iter().filter(|(key, _)| key.key_text() == name);
            own.for_each(|(_, node)| self.visit(node));
        }
    }

    /// Everything that a part of the file names: tools, servers, data, variables.
    fn visit(&mut self, node: &'n Node) {
        match &node.data {
            Data::Text(text) => self.words(text, text.contains("${")),
            Data::List(items) => items.iter().for_each(|item| self.visit(item)),
            Data::Map(entries) => {
                for (key, value) in entries {
                    self.visit(key);
                    match (key.key_text().as_str(), &value.data) {
                        ("call", Data::Text(name)) => self.tool(name),
                        ("starlark", Data::Text(source)) => self.script(source),
                        ("import_tool" | "import_tools", Data::Text(reference)) => self.reference(reference),
                        ("tools", Data::List(items)) => self.references(items),
                        _ => self.visit(value),
                    }
                }
            }
            _ => {}
        }
    }

    /// A reference of an import. Servers may have slashes in their names, and so may their tools.
    fn reference(&mut self, reference: &str) {
        if file_sources::is_file(reference) {
            let file = file_sources::halves(reference).map_or(reference, |(file, _)| file).to_owned();
            self.server(&file);
            return;
        }
        let Some(rest) = reference.strip_prefix("mcp:") else { return };
        let of = |name: &&String| {
            rest.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let named = self.declared.iter().filter(of).max_by_key(|name| name.len()).cloned();
        if let Some(server) = named {
            self.server(&server);
        }
    }

    /// A list of tools: names, patterns, and definitions of its own.
    fn references(&mut self, items: &'n [Node]) {
        for item in items {
            match (item.text(), item.get("match")) {
                (Some(name), _) => self.tool(name),
                (None, Some(patterns)) => self.matching(&texts(patterns)),
                (None, None) => self.visit(item),
            }
        }
    }

    fn script(&mut self, source: &str) {
        self.words(source, true);
        if let Ok(script) = Script::compile(source) {
            let names: Vec<String> = script.references().map(str::to_owned).collect();
            names.iter().for_each(|name| self.tool(name));
        }
    }

    /// The names in a text: of shared data, and of variables behind `env`. `evaluated` says whether it is a
    /// template.
    fn words(&mut self, text: &str, evaluated: bool) {
        if !evaluated {
            return;
        }
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| c.is_alphabetic() || c == '_') {
            let from = rest.get(start..).unwrap_or_default();
            let end = from.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            if word == "env" {
                self.variable(after);
            } else if !self.seen_data.contains(word)
                && let Some(node) = self.data.get(word).copied()
            {
                self.seen_data.insert(word.to_owned());
                self.visit(node);
            }
            rest = after;
        }
    }

    /// The variable that stands behind `env`; any of them where that is not written out.
    fn variable(&mut self, after: &str) {
        let name = |text: &str| {
            let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
            text.get(..end).filter(|name| !name.is_empty()).map(str::to_owned)
        };
        let after = after.trim_start();
        let quoted = || {
            let inside = after.strip_prefix('[')?.trim_start();
            name(inside.strip_prefix(['\'', '"'])?)
        };
        match after.strip_prefix('.').and_then(|rest| name(rest.trim_start())).or_else(quoted) {
            Some(name) => drop(self.variables.some.insert(name)),
            None => self.variables.all = true,
        }
    }
}

/// The characters that mean something in a pattern.
const SPECIAL: [char; 5] = ['*', '?', '[', '{', '\\'];

fn is_pattern(name: &str) -> bool {
    name.contains(SPECIAL)
}

/// What every name begins with that matches a pattern.
fn head(pattern: &str) -> &str {
    pattern.find(SPECIAL).and_then(|end| pattern.get(..end)).unwrap_or(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Source;
    use crate::parse::SourceFile;

    const FILE: &str = "
env: {GIT_TOKEN: {secret: true}, MAIL_TOKEN: {secret: true}, HOST: {}, SPARE: {}}
mcp:
  git: {transport: stdio, command: x, env: {T: '${env.GIT_TOKEN}'}, auto_import_scope: shared}
  mail: {transport: stdio, command: x, env: {T: '${env[\"MAIL_TOKEN\"]}'}, auto_import_scope: none}
  web: {transport: stdio, command: x, auto_import_scope: none}
  talk: {transport: stdio, command: x, auto_import_scope: chat}
shared: {data: {base: 'https://${env.HOST}', other: '${env.SPARE}'}}
tools:
  - {import_tools: 'mcp:web', prefix: '', filter: ['fetch_*']}
  - {import_tool: 'mcp:mail/send', name: post}
  - {name: plain, do: {eval: 1}}
  - {name: url, do: {eval: '${base}/x'}}
  - {name: log, do: {call: git_log}}
  - {name: outer, do: [{if: '${True}', then: {call: log}}, {for_each: [1], do: {call: post}}]}
  - {name: script, do: {starlark: 'result = fetch_page(url=1)'}}
  - {name: own, tools: [{import_tool: 'mcp:mail/read', name: r}], do: {call: r}}
  - {import_tool: build_llm_tool, name: think, config: {tools: [plain, {match: ['git_*']}]}}
chat: {tools: [url]}
";

    fn needed(wanted: &Wanted) -> (Vec<String>, Vec<String>) {
        let needs = SourceFile::parse(Source::text("t.yaml", FILE)).needs(wanted);
        let variables = ["GIT_TOKEN", "HOST", "MAIL_TOKEN", "SPARE"];
        let variables = variables.into_iter().filter(|name| needs.variable(name));
        (needs.servers().map(str::to_owned).collect(), variables.map(str::to_owned).collect())
    }

    #[test]
    fn a_tool_needs_the_servers_and_variables_it_can_reach_and_no_others() {
        for (tool, servers, variables) in [
            ("plain", &[][..], &[][..]),
            ("url", &[], &["HOST"]),
            ("git_log", &["git"], &["GIT_TOKEN"]),
            ("log", &["git"], &["GIT_TOKEN"]),
            ("outer", &["git", "mail"], &["GIT_TOKEN", "MAIL_TOKEN"]),
            ("post", &["mail"], &["MAIL_TOKEN"]),
            ("own", &["mail"], &["MAIL_TOKEN"]),
            ("think", &["git"], &["GIT_TOKEN"]),
            ("fetch_page", &["web"], &[]),
            ("script", &["web"], &[]),
            ("unknown", &[], &[]),
        ] {
            let (found, set) = needed(&Wanted::tool(tool));
            let wanted = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            assert_eq!((found, set), (wanted(servers), wanted(variables)), "{tool}");
        }
    }

    #[test]
    fn parts_of_a_file_need_what_they_name() {
        assert_eq!(needed(&Wanted::nothing()), (vec![], vec![]));
        assert_eq!(needed(&Wanted::chat()).0, ["talk"]);
        assert_eq!(needed(&Wanted::tools(["git_*", "p*"])).0, ["git", "mail"]);
        assert_eq!(needed(&Wanted::tools(["p*", "!post"])).0, Vec::<String>::new());
        assert_eq!(needed(&Wanted::tools(["fetch_page"])).0, ["web"]);
        assert_eq!(needed(&Wanted::tools(Vec::<String>::new())).0, ["git", "mail", "web"]);
        let (servers, variables) = needed(&Wanted::everything());
        assert_eq!(servers, ["git", "mail", "talk", "web"]);
        assert_eq!(variables.len(), 4);
    }
}
