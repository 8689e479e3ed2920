//! From a file's tree to tools: definitions are read, imports found, flows compiled, in the order of the file.
//!
//! A flow can call the tools above it and its own local ones, nothing else; so every name is resolved here, once, and
//! no cycle can be written. Statements are compiled in `statements`.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value as Json;
use toolwright_core::{Entry, Patterns, Tool, ToolSettings, ToolSpec, Toolset, nearest};
use toolwright_expr::is_builtin;

use crate::diag::{Place, Problems};
use crate::exec::{FlowLimits, Globals};
use crate::file::{self, Shape};
use crate::flow::{FlowTool, ImportedTool};
use crate::hint::Hint;
use crate::host::{Host, Server};
use crate::input::{self, Input, Type};
use crate::llm::{ExtractJson, LlmTool};
use crate::step::call::Callee;
use crate::step::{Body, Step};
use crate::template::{Document, Snippet};
use crate::yaml::{Data, Node};

/// Tools by name, in the order they were made.
pub(crate) type Tools = IndexMap<Arc<str>, Callee>;

/// The tools a flow can call: its own first, then those of the file above it.
#[derive(Clone, Copy)]
pub(crate) struct Visible<'v> {
    pub(crate) local: &'v Tools,
    pub(crate) outer: &'v Tools,
}

impl<'v> Visible<'v> {
    pub(crate) fn get(self, name: &str) -> Option<&'v Callee> {
        self.local.get(name).or_else(|| self.outer.get(name))
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'v str> {
        self.local.keys().chain(self.outer.keys()).map(|name| &**name)
    }
}

/// A flow, kept for checking.
pub(crate) struct FlowInfo {
    pub(crate) name: Arc<str>,
    pub(crate) inputs: Arc<[Input]>,
    pub(crate) body: Arc<Body>,
    /// The flow whose local tool this one is.
    pub(crate) parent: Option<usize>,
}

/// Builds the tools of one file.
pub(crate) struct Builder<'b> {
    pub(crate) problems: &'b mut Problems,
    pub(crate) host: &'b Host,
    pub(crate) servers: IndexMap<String, Server>,
    /// Tools of servers that were asked already.
    asked: IndexMap<String, Option<Toolset>>,
    pub(crate) globals: Arc<Globals>,
    pub(crate) limits: Arc<FlowLimits>,
    pub(crate) flows: Vec<FlowInfo>,
    /// All names that will be defined in the scope being built, for hints about order.
    pub(crate) coming: Vec<Arc<str>>,
}

impl<'b> Builder<'b> {
    pub(crate) fn new(
        problems: &'b mut Problems,
        host: &'b Host,
        servers: IndexMap<String, Server>,
        globals: Arc<Globals>,
    ) -> Self {
        Builder {
            problems,
            host,
            servers,
            asked: IndexMap::new(),
            globals,
            limits: Arc::new(host.limits.clone()),
            flows: Vec::new(),
            coming: Vec::new(),
        }
    }

    /// Makes the tools of a list of definitions. `outer` is what they can call; `None` means each other, in order.
    pub(crate) fn definitions(
        &mut self,
        nodes: &[Node],
        outer: Option<&Tools>,
        into: &mut Tools,
        scope: &str,
    ) {
        let names = nodes.iter().filter_map(|node| node.get("name").and_then(Node::text).cloned());
        self.coming.extend(names);
        for node in nodes {
            self.definition(node, outer, into, scope, None);
        }
    }

    /// Makes the tools of one definition.
    pub(crate) fn definition(
        &mut self,
        node: &Node,
        outer: Option<&Tools>,
        into: &mut Tools,
        scope: &str,
        parent: Option<usize>,
    ) {
        let Data::Map(_) = &node.data else {
            if !matches!(node.data, Data::Bad) {
                self.problems.error(node.place, format!("a tool definition is a map, not {}", node.kind()));
            }
            return;
        };
        let found: Vec<&(&str, &Shape)> =
            file::DEFINITIONS.iter().filter(|(key, _)| node.get(key).is_some()).collect();
        let shape = match found.as_slice() {
            [(_, shape)] => *shape,
            [] => {
                let message = "a tool definition needs one of `import_tool`, `import_tools`, `do`";
                self.problems.error(node.place, message);
                return;
            }
            many => {
                let keys: Vec<_> = many.iter().map(|(key, _)| format!("`{key}`")).collect();
                let message = format!("a tool definition cannot have {} together", keys.join(" and "));
                self.problems.error(node.place, message);
                return;
            }
        };
        let before = self.problems.errors();
        file::check(self.problems, node, shape);
        if self.problems.errors() > before {
            return;
        }
        match found.first().map(|(key, _)| *key) {
            Some("import_tool") => self.import_tool(node, outer, into, scope),
            Some("import_tools") => self.import_tools(node, into, scope),
            _ => self.custom(node, outer, into, scope, parent),
        }
    }

    fn custom(
        &mut self,
        node: &Node,
        outer: Option<&Tools>,
        into: &mut Tools,
        scope: &str,
        parent: Option<usize>,
    ) {
        let Some(name) = text(node, "name") else { return };
        let name_place = node.get("name").map_or(node.place, |node| node.place);
        let before = self.problems.errors();
        let inputs: Arc<[Input]> = self.inputs(node).into();
        // The flow's number is known before its local tools are built, so that they can name their parent.
        let index = self.flows.len();
        let placeholder = FlowInfo {
            name: name.as_str().into(),
            inputs: inputs.clone(),
            body: Arc::new(Body::List(Vec::new())),
            parent,
        };
        self.flows.push(placeholder);
        let mut local = Tools::new();
        if let Some(Node { data: Data::List(nodes), .. }) = node.get("tools") {
            let file_tools = outer.unwrap_or(into).clone();
            for node in nodes {
                let scope = format!("the tools of `{name}`");
                self.definition(node, Some(&file_tools), &mut local, &scope, Some(index));
            }
        }
        let body = match node.get("do") {
            Some(body) => {
                let visible = Visible { local: &local, outer: outer.unwrap_or(into) };
                self.body(body, visible)
            }
            None => None,
        };
        let hint = self.hint(node);
        let Some(body) = body else { return };
        if self.problems.errors() > before {
            return;
        }
        let body = Arc::new(body);
        if let Some(info) = self.flows.get_mut(index) {
            info.body = body.clone();
        }
        let mut spec = ToolSpec::new(name.as_str(), text(node, "description").unwrap_or_default());
        spec.parameters = input::schema(&inputs);
        let mut settings = ToolSettings::default();
        common_settings(node, &mut settings);
        let reads = inputs.clone();
        settings.reader = Some(Arc::new(move |arguments| input::read(&reads, arguments)));
        let takes = takes(&body, &inputs);
        let quick = body.is_pure() && !body.loops();
        let (globals, limits) = (self.globals.clone(), self.limits.clone());
        let tool = FlowTool { spec, settings, inputs, body, globals, limits, hint, quick };
        self.register(Arc::new(tool), takes, name_place, into, scope);
    }

    fn inputs(&mut self, node: &Node) -> Vec<Input> {
        let Some(Node { data: Data::List(nodes), .. }) = node.get("input") else { return Vec::new() };
        let mut inputs: Vec<Input> = Vec::new();
        for node in nodes {
            let before = self.problems.errors();
            file::check(self.problems, node, &file::INPUT);
            if self.problems.errors() > before {
                continue;
            }
            let (Some(name), Some(word)) = (text(node, "name"), text(node, "type")) else { continue };
            let place = node.get("name").map_or(node.place, |node| node.place);
            if name.starts_with('_') || name.is_empty() {
                self.problems.error_hint(
                    place,
                    format!("`{name}` cannot be a parameter"),
                    "names that start with `_` cannot be read by expressions",
                );
                continue;
            }
            if inputs.iter().any(|input| *input.name == *name) {
                self.problems.error(place, format!("the parameter `{name}` comes twice"));
                continue;
            }
            let kind = match Type::parse(&word) {
                Ok(kind) => kind,
                Err(problem) => {
                    let place = node.get("type").map_or(node.place, |node| node.place);
                    self.problems.error_hint(place, problem, format!("the types are: {}", Type::WORDS));
                    continue;
                }
            };
            let default = node.get("default").map(Node::to_json).filter(|value| !value.is_null());
            inputs.push(Input { name: name.into(), description: text(node, "description"), kind, default });
        }
        inputs
    }

    fn import_tool(&mut self, node: &Node, outer: Option<&Tools>, into: &mut Tools, scope: &str) {
        let Some(reference) = text(node, "import_tool") else { return };
        let place = node.get("import_tool").map_or(node.place, |node| node.place);
        let config = node.get("config").map_or(Json::Null, Node::to_json);
        if reference.ends_with("llm_tool.build_llm_tool") || reference == "build_llm_tool" {
            self.llm_tool(node, outer, into, scope);
            return;
        }
        let Some(tool) = self.imported(&reference, &config, place) else { return };
        let takes = Vec::new();
        let name = text(node, "name");
        let changed =
            ["name", "description", "return_direct", "confidential", "require_confirmation", "ui_hint"]
                .iter()
                .any(|key| node.get(key).is_some_and(|value| !matches!(value.data, Data::Null)));
        let place = node.get("name").map_or(place, |node| node.place);
        if !changed && config.get("require_confirmation").is_none() {
            self.register(tool, takes, place, into, scope);
            return;
        }
        let (mut spec, mut settings) = (tool.spec().clone(), tool.settings().clone());
        if let Some(name) = name {
            spec.name = name.into();
        }
        if let Some(description) = text(node, "description") {
            spec.description = description;
        }
        if let Some(confirm) = config.get("require_confirmation").and_then(Json::as_bool) {
            settings.require_confirmation = Some(confirm);
        }
        common_settings(node, &mut settings);
        let hint = self.hint(node);
        self.register(Arc::new(ImportedTool { tool, spec, settings, hint }), takes, place, into, scope);
    }

    /// The tool a reference names. `None` when there is none; the problem has been reported.
    fn imported(&mut self, reference: &str, config: &Json, place: Place) -> Option<Arc<dyn Tool>> {
        if let Some((source, tool)) = reference.rsplit_once('/') {
            let tools = self.source(source, place)?.filtered([tool]);
            let mut found: Vec<&Entry> = tools.iter().collect();
            return match (found.pop(), found.is_empty()) {
                (Some(entry), true) => Some(entry.tool.clone()),
                _ => {
                    let names: Vec<_> = tools.names().collect();
                    let message = format!(
                        "`{source}` has {} tools that match `{tool}`, and one is wanted",
                        names.len()
                    );
                    self.problems.error_hint(place, message, format!("they are: {}", names.join(", ")));
                    None
                }
            };
        }
        if let Some(found) = self.host.imports.as_ref().and_then(|imports| imports.tool(reference, config)) {
            return match found {
                Ok(tool) => Some(tool),
                Err(error) => {
                    self.problems.error(place, format!("`{reference}` cannot be imported: {error}"));
                    None
                }
            };
        }
        if let Some(entry) = self.host.builtin(reference) {
            return Some(entry.tool.clone());
        }
        self.unknown_import(reference, place);
        None
    }

    fn unknown_import(&mut self, reference: &str, place: Place) {
        let message = match reference.strip_prefix("llm_workers.tools.") {
            Some(rest) => format!(
                "`{}` of llm-workers is not among the built-in tools here",
                rest.rsplit('.').next().unwrap_or(rest)
            ),
            None => format!("there is no tool `{reference}` to import"),
        };
        let names = self.host.builtins.names().chain(self.host.aliases.keys().map(String::as_str));
        match nearest(reference, names) {
            Some(near) => self.problems.error_hint(place, message, format!("did you mean `{near}`?")),
            None if self.host.builtins.is_empty() => self.problems.error(place, message),
            None => {
                let names: Vec<_> = self.host.builtins.names().take(12).collect();
                self.problems.error_hint(place, message, format!("there are: {}", names.join(", ")));
            }
        }
    }

    /// All tools of a toolkit or an MCP server.
    fn source(&mut self, reference: &str, place: Place) -> Option<Toolset> {
        if let Some((scheme, server)) = reference.split_once(':') {
            if scheme != "mcp" {
                let message = format!("tools cannot be imported from `{scheme}:`");
                self.problems.error_hint(place, message, "use `mcp:server` or a toolkit's name");
                return None;
            }
            return self.server_tools(server, place);
        }
        if let Some(found) = self.host.imports.as_ref().and_then(|imports| imports.toolkit(reference)) {
            return match found {
                Ok(tools) => Some(tools),
                Err(error) => {
                    self.problems.error(place, format!("`{reference}` cannot be imported: {error}"));
                    None
                }
            };
        }
        let Some(names) = self.host.toolkit_names(reference) else {
            self.problems.error(place, format!("there is no toolkit `{reference}`"));
            return None;
        };
        let missing: Vec<_> =
            names.iter().filter(|name| self.host.builtins.get(name).is_none()).map(String::as_str).collect();
        if !missing.is_empty() {
            let message =
                format!("`{reference}` needs built-in tools that do not exist here: {}", missing.join(", "));
            self.problems.error(place, message);
            return None;
        }
        Some(self.host.builtins.clone().filtered(names))
    }

    pub(crate) fn server_tools(&mut self, name: &str, place: Place) -> Option<Toolset> {
        if let Some(known) = self.asked.get(name) {
            return known.clone();
        }
        let Some(server) = self.servers.get(name) else {
            let message = format!("there is no MCP server `{name}`");
            let hint = match nearest(name, self.servers.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "declare it under `mcp`".to_owned(),
            };
            self.problems.error_hint(place, message, hint);
            return None;
        };
        let tools = match &self.host.imports {
            Some(imports) => imports.server(name, server).map_err(|error| error.to_string()),
            None => Err("this program connects to no servers".to_owned()),
        };
        let tools = match tools {
            Ok(tools) => Some(tools),
            Err(problem) => {
                self.problems
                    .error(place, format!("the tools of MCP server `{name}` cannot be had: {problem}"));
                None
            }
        };
        self.asked.insert(name.to_owned(), tools.clone());
        tools
    }

    fn import_tools(&mut self, node: &Node, into: &mut Tools, scope: &str) {
        let Some(reference) = text(node, "import_tools") else { return };
        let place = node.get("import_tools").map_or(node.place, |node| node.place);
        let Some(tools) = self.source(&reference, place) else { return };
        let prefix = text(node, "prefix").unwrap_or_default();
        let patterns = |key: &str| node.get(key).map(|node| Patterns::new(texts(node)));
        let filter = patterns("filter").unwrap_or_else(|| Patterns::new(["*"]));
        let matches = |patterns: &Option<Patterns>, name: &str| {
            patterns.as_ref().is_some_and(|patterns| patterns.matches(name))
        };
        let (hints, no_hints) = (patterns("force_ui_hints_for"), patterns("force_no_ui_hints_for"));
        let (confirm, no_confirm) =
            (patterns("force_require_confirmation_for"), patterns("force_no_confirmation_for"));
        let shown: Vec<String> = node.get("ui_hints_args").map(texts).unwrap_or_default();
        for entry in tools.iter() {
            let own: &str = &entry.tool.spec().name;
            if !filter.matches(own) {
                continue;
            }
            let (mut spec, mut settings) = (entry.tool.spec().clone(), entry.tool.settings().clone());
            spec.name = format!("{prefix}{own}").into();
            let hint = if matches(&hints, own) {
                Some(Hint::Calling(shown.clone()))
            } else {
                matches(&no_hints, own).then_some(Hint::Silent)
            };
            if matches(&confirm, own) {
                settings.require_confirmation = Some(true);
            } else if matches(&no_confirm, own) {
                settings.require_confirmation = Some(false);
            }
            let tool = ImportedTool { tool: entry.tool.clone(), spec, settings, hint };
            self.register(Arc::new(tool), Vec::new(), place, into, scope);
        }
    }

    /// Takes in all tools of a server as `<server>_<tool>`, with hints.
    pub(crate) fn auto_import(&mut self, server: &str, place: Place, into: &mut Tools, scope: &str) {
        let Some(tools) = self.server_tools(server, place) else { return };
        for entry in tools.iter() {
            let (mut spec, settings) = (entry.tool.spec().clone(), entry.tool.settings().clone());
            spec.name = format!("{server}_{}", spec.name).into();
            let hint = Some(Hint::Calling(Vec::new()));
            let tool = ImportedTool { tool: entry.tool.clone(), spec, settings, hint };
            self.register(Arc::new(tool), Vec::new(), place, into, scope);
        }
    }

    fn llm_tool(&mut self, node: &Node, outer: Option<&Tools>, into: &mut Tools, scope: &str) {
        let config = node.get("config");
        let setting = |key: &str| config.and_then(|config| config.get(key));
        if let Some(Data::Map(entries)) = config.map(|config| &config.data) {
            for (key, _) in entries {
                let known = ["model_ref", "system_message", "tools", "extract_json"];
                if !known.contains(&key.key_text().as_str()) {
                    let message = format!("a model tool has no setting `{}`", key.key_text());
                    self.problems.error_hint(
                        key.place,
                        message,
                        format!("the settings are: {}", known.join(", ")),
                    );
                }
            }
        }
        let name = text(node, "name").unwrap_or_else(|| "llm".to_owned());
        let tools = match setting("tools") {
            Some(list) => {
                let shared = outer.unwrap_or(into).clone();
                let scope = format!("the tools of `{name}`");
                to_toolset(self.references(list, &shared, &scope).values())
            }
            None => Toolset::new(),
        };
        let system_message = setting("system_message").and_then(|node| self.evaluated(node));
        let mut settings = ToolSettings::default();
        common_settings(node, &mut settings);
        let tool = LlmTool {
            spec: LlmTool::spec(&name, text(node, "description").as_deref()),
            settings: settings.clone(),
            model_ref: setting("model_ref")
                .and_then(Node::text)
                .map_or("default".to_owned(), |text| text.to_string()),
            system_message,
            tools,
            extract: setting("extract_json")
                .map_or(ExtractJson::None, |node| ExtractJson::from_json(&node.to_json())),
            models: self.host.models.clone(),
        };
        let place = node.get("name").unwrap_or(node).place;
        let tool: Arc<dyn Tool> = match self.hint(node) {
            None => Arc::new(tool),
            Some(hint) => {
                let (spec, tool) = (tool.spec.clone(), Arc::new(tool));
                Arc::new(ImportedTool { tool, spec, settings, hint: Some(hint) })
            }
        };
        self.register(tool, Vec::new(), place, into, scope);
    }

    /// A list of references and definitions: names, `match` patterns, or new tools. References come first.
    pub(crate) fn references(&mut self, list: &Node, shared: &Tools, scope: &str) -> Tools {
        let Data::List(nodes) = &list.data else {
            self.problems.error(list.place, format!("`tools` is a list, not {}", list.kind()));
            return Tools::new();
        };
        let (mut referred, mut defined) = (Tools::new(), Tools::new());
        for node in nodes {
            if let Some(name) = node.text() {
                match shared.get(&**name) {
                    Some(callee) => {
                        referred.insert(name.clone(), callee.clone());
                    }
                    None => self.unknown_tool(name, node.place, shared.keys().map(|name| &**name)),
                }
            } else if let Some(patterns) = node.get("match") {
                self.matching(node, patterns, shared, &mut referred);
            } else {
                self.definition(node, Some(shared), &mut defined, scope, None);
            }
        }
        referred.extend(defined);
        referred
    }

    fn matching(&mut self, node: &Node, patterns: &Node, shared: &Tools, into: &mut Tools) {
        if let Data::Map(entries) = &node.data {
            for (key, _) in entries.iter().filter(|(key, _)| !key.is_key("match")) {
                self.problems.error(
                    key.place,
                    format!("`match` stands alone; `{}` means nothing here", key.key_text()),
                );
            }
        }
        let words = texts(patterns);
        if !matches!(&patterns.data, Data::List(items) if items.len() == words.len()) {
            self.problems.error(patterns.place, "`match` takes a list of patterns");
            return;
        }
        let wanted = Patterns::new(&words);
        let found: Vec<_> = shared.iter().filter(|(name, _)| wanted.matches(name)).collect();
        if found.is_empty() {
            self.problems.error(patterns.place, format!("no tool matches {}", words.join(", ")));
        }
        into.extend(found.into_iter().map(|(name, callee)| (name.clone(), callee.clone())));
    }

    pub(crate) fn unknown_tool<'n>(
        &mut self,
        name: &str,
        place: Place,
        known: impl Iterator<Item = &'n str> + Clone,
    ) {
        let message = format!("there is no tool `{}`", toolwright_core::text::clip(name, 80));
        let hint = if self.coming.iter().any(|coming| **coming == *name) {
            format!(
                "`{name}` is defined further down, or is this very tool; a flow can call the tools above it"
            )
        } else {
            match nearest(name, known.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let names: Vec<_> = known.take(12).collect();
                    if names.is_empty() {
                        "no tools are defined above".to_owned()
                    } else {
                        format!("the tools are: {}", names.join(", "))
                    }
                }
            }
        };
        self.problems.error_hint(place, message, hint);
    }

    /// A text with templates over `env` and the shared data, evaluated now.
    pub(crate) fn evaluated(&mut self, node: &Node) -> Option<String> {
        let snippet = Snippet::compile(self.problems, node)?;
        match snippet.template.evaluate(&*self.globals, &self.limits.expression) {
            Ok(value) => Some(value.to_string()),
            Err(error) => {
                crate::template::report(self.problems, node, &snippet.source, &error);
                None
            }
        }
    }

    fn hint(&mut self, node: &Node) -> Option<Hint> {
        let shown = node.get("ui_hint")?;
        match &shown.data {
            Data::Bool(false) => Some(Hint::Silent),
            Data::Bool(true) => Some(Hint::Calling(node.get("ui_hint_args").map(texts).unwrap_or_default())),
            Data::Text(text) if text.is_empty() => Some(Hint::Silent),
            Data::Text(_) => {
                Snippet::compile(self.problems, shown).map(|snippet| Hint::Template(Box::new(snippet)))
            }
            _ => None,
        }
    }

    fn register(
        &mut self,
        tool: Arc<dyn Tool>,
        takes: Vec<Arc<str>>,
        place: Place,
        into: &mut Tools,
        scope: &str,
    ) {
        let name = tool.spec().name.clone();
        if let Some(first) = into.get(&name) {
            let first = self.problems.sources.locate(first.place);
            self.problems.error_hint(
                place,
                format!("there are two tools `{name}` in {scope}"),
                format!("the other one is at {first}; give one of them another name"),
            );
            return;
        }
        if name.contains('/') {
            let message = format!("`{name}` cannot be a tool's name: use letters, digits, `_`, `-` and `.`");
            self.problems.error(place, message);
            return;
        }
        let origin = self.problems.sources.name(place.file);
        match Toolset::new().with_from(tool, &origin) {
            Ok(tools) => {
                into.insert(name.clone(), Callee { name, tools, takes: takes.into(), place });
            }
            Err(error) => self.problems.error(place, error.to_string()),
        }
    }
}

/// Variables a flow may take from its caller: all it names, except its own inputs.
fn takes(body: &Body, inputs: &[Input]) -> Vec<Arc<str>> {
    fn walk(body: &Body, found: &mut Vec<Arc<str>>) {
        for statement in body.statements() {
            statement.step.snippets(&mut |snippet: &Snippet| {
                found.extend(snippet.template.references().into_iter().map(Arc::from));
            });
            match &statement.step {
                Step::Call(call) => found.extend(call.callee.takes.iter().cloned()),
                Step::Script(script) => found.extend(script.script.references().map(Arc::from)),
                _ => {}
            }
            statement.step.bodies().into_iter().for_each(|body| walk(body, found));
        }
        // A list's first statement sees the caller's `_`, and an empty list returns it.
        if matches!(body, Body::List(statements) if statements.is_empty()) {
            found.push("_".into());
        }
    }
    let mut found = Vec::new();
    walk(body, &mut found);
    let own = |name: &Arc<str>| inputs.iter().any(|input| input.name == *name);
    found.retain(|name| !own(name) && !is_builtin(name));
    found.sort();
    found.dedup();
    found
}

/// The tools as a set.
pub(crate) fn to_toolset<'t>(tools: impl IntoIterator<Item = &'t Callee>) -> Toolset {
    let mut set = Toolset::new();
    for callee in tools {
        // Names are unique already, so nothing can clash.
        set = set.clone().combined(callee.tools.clone()).unwrap_or(set);
    }
    set
}

fn common_settings(node: &Node, settings: &mut ToolSettings) {
    let flag = |key: &str| match node.get(key).map(|node| &node.data) {
        Some(Data::Bool(flag)) => Some(*flag),
        _ => None,
    };
    if let Some(direct) = flag("return_direct") {
        settings.return_direct = direct;
    }
    if let Some(confidential) = flag("confidential") {
        settings.confidential = confidential;
    }
    settings.return_direct |= settings.confidential;
    if let Some(confirm) = flag("require_confirmation") {
        settings.require_confirmation = Some(confirm);
    }
}

/// The text under a key.
pub(crate) fn text(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(Node::text).map(|text| text.to_string())
}

/// The texts of a list, or the one text.
pub(crate) fn texts(node: &Node) -> Vec<String> {
    match &node.data {
        Data::Text(text) => vec![text.to_string()],
        Data::List(items) => {
            items.iter().filter_map(|item| item.text().map(|text| text.to_string())).collect()
        }
        _ => Vec::new(),
    }
}

/// The entries of a map of documents, compiled.
pub(crate) fn documents(problems: &mut Problems, node: &Node) -> Option<Vec<(Arc<str>, Document, Place)>> {
    let Data::Map(entries) = &node.data else { return Some(Vec::new()) };
    let compiled: Vec<_> = entries
        .iter()
        .map(|(key, value)| {
            Document::compile(problems, value)
                .map(|document| (Arc::from(key.key_text()), document, value.place))
        })
        .collect();
    compiled.into_iter().collect()
}
