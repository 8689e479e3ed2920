//! Tools from elsewhere: built-ins, toolkits, MCP servers and models, with what a file says about them.

use std::sync::Arc;

use serde_json::Value as Json;
use toolwright_core::{DynTool, Entry, Tool, ToolPolicy, ToolSpec, Toolset, nearest};

use crate::build::{FileBuilder, Tools, common_policy, text, to_toolset};
use crate::diag::{FileSpan, Severity};
use crate::flow::ImportedTool;
use crate::host::ServerState;
use crate::llm::{ExtractJson, LlmTool};
use crate::load::{CHAT, FILE, SHARED};
use crate::missing_tools::{stand_in, takes_anything};
use crate::server_imports::{ImportRule, ImportScope, ServerImport};
use crate::yaml::{Data, Node};
use crate::{file, python, shape};

impl FileBuilder<'_> {
    pub(crate) fn import_tool(&mut self, node: &Node, outer: Option<&Tools>, into: &mut Tools, scope: &str) {
        let Some(reference) = text(node, "import_tool") else { return };
        let place = node.get("import_tool").map_or(node.place, |node| node.place);
        let config = node.get("config").map_or(Json::Null, Node::to_json);
        if reference.ends_with("llm_tool.build_llm_tool") || reference == "build_llm_tool" {
            self.llm_tool(node, outer, into, scope);
            return;
        }
        let Some(tool) = self.imported(&reference, &config, node) else {
            let halves = self.halves(&reference).filter(|(source, _)| is_server(source));
            if let Some((source, own)) = halves {
                let name = text(node, "name").unwrap_or_else(|| own.to_owned());
                self.note_gone(source, name);
            }
            return;
        };
        self.check_sandbox(node, &tool);
        let (takes, blocks) = (Vec::new(), is_server(&reference));
        let name = text(node, "name");
        if let Some((source, own)) = self.halves(&reference).filter(|_| blocks) {
            let named = name.clone().map_or_else(|| tool.spec().name.clone(), Arc::from);
            self.follow(source, ImportScope::One(own.to_owned()), vec![named], scope);
        }
        let changed = [
            "name",
            "description",
            "parameters",
            "parallel",
            "return_direct",
            "confidential",
            "require_confirmation",
            "timeout",
            "ui_hint",
        ]
        .iter()
        .any(|key| node.get(key).is_some_and(|value| !matches!(value.data, Data::Null)));
        let place = node.get("name").map_or(place, |node| node.place);
        if !changed && !blocks && config.get("require_confirmation").is_none() {
            self.register(tool, takes, blocks, place, into, scope);
            return;
        }
        let (mut spec, mut policy) = (tool.spec().clone(), tool.policy().clone());
        let halves_of_server = self.halves(&reference).filter(|_| blocks);
        // A server chooses the names of its own tools: rules follow them by server.
        match halves_of_server {
            Some((source, own)) => policy.was_called(&format!("{source}/{own}").into()),
            None if name.as_ref().is_some_and(|name| **name != *spec.name) => policy.was_called(&spec.name),
            None => {}
        }
        if let Some(name) = name {
            spec.name = name.into();
        }
        if let Some(description) = text(node, "description") {
            spec.description = description;
        }
        // Which parameters the tool of an unconnected server has is unknown.
        let halves = self.halves(&reference);
        let unknown = halves.is_some_and(|(source, _)| blocks && self.is_unknown(source));
        if !(unknown && takes_anything(&spec)) {
            self.describe_parameters(node, &mut spec);
        }
        if let Some(confirm) = config.get("require_confirmation").and_then(Json::as_bool) {
            policy.require_confirmation = Some(confirm);
        }
        common_policy(node, &mut policy);
        let hint = self.hint(node);
        let tool = ImportedTool::new(tool, spec, policy, hint);
        self.register(Arc::new(tool), takes, blocks, place, into, scope);
    }

    /// Warns of a tool that is to work in a sandbox the file does not describe. The program that uses the
    /// file may have it.
    fn check_sandbox(&mut self, node: &Node, tool: &Arc<DynTool>) {
        let Some(named) = node.get("config").and_then(|config| config.get("sandbox")) else { return };
        let Some(name) = named.text().filter(|_| tool.policy().sandboxed) else { return };
        if &**name == "default" || self.sandboxes.iter().any(|known| **known == **name) {
            return;
        }
        let hint = match nearest(name, self.sandboxes.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("describe it under `sandboxes: {{{name}: ...}}`"),
        };
        let message = format!("the file has no sandbox `{name}`");
        self.problems.warn_hint(named.place, message, hint);
    }

    /// Puts the file's descriptions of parameters in place of the tool's own.
    fn describe_parameters(&mut self, node: &Node, spec: &mut ToolSpec) {
        let Some(Node { data: Data::Map(entries), .. }) = node.get("parameters") else { return };
        for (key, value) in entries {
            let (name, Some(description)) = (key.key_text(), value.text()) else { continue };
            let schema = spec.parameters.pointer_mut("/properties").and_then(|all| all.get_mut(&name));
            if let Some(schema) = schema {
                if !schema.is_object() {
                    *schema = Json::Object(Default::default());
                }
                if let Some(members) = schema.as_object_mut() {
                    members.insert("description".to_owned(), Json::String(description.to_string()));
                }
                continue;
            }
            let known: Vec<_> = spec.parameter_names().collect();
            let hint = match nearest(&name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => "it has none".to_owned(),
                None => format!("it has: {}", known.join(", ")),
            };
            let message = format!("`{}` has no parameter `{name}`", spec.name);
            self.problems.error_hint(key.place, message, hint);
        }
    }

    /// The tool a reference names. `None` when there is none; the problem has been reported.
    fn imported(&mut self, reference: &str, config: &Json, node: &Node) -> Option<Arc<DynTool>> {
        let place = node.get("import_tool").map_or(node.place, |node| node.place);
        if let Some((source, tool)) = self.halves(reference) {
            let all = self.source(source, place);
            let tools = all.clone().unwrap_or_default().filtered([tool]);
            if tools.is_empty() && is_server(source) && self.is_unknown(source) {
                return Some(Arc::new(stand_in(tool, "the server of this tool was not started")));
            }
            let all = all?;
            let mut found: Vec<&Entry> = tools.iter().collect();
            return match (found.pop(), found.is_empty()) {
                (Some(entry), true) => Some(entry.tool.clone()),
                (None, _) if let Some(why) = self.why_left_out(source, tool) => {
                    let message = format!("`{tool}` of `{source}` cannot be used: {why}");
                    self.problems.error(place, message);
                    None
                }
                (several, _) => {
                    let message = format!(
                        "`{source}` has {} tools that match `{tool}`, and one is wanted",
                        tools.len()
                    );
                    let names: Vec<_> =
                        if several.is_some() { &tools } else { &all }.names().take(12).collect();
                    let hint = match nearest(tool, names.iter().copied()).filter(|_| several.is_none()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("there are: {}", names.join(", ")),
                    };
                    self.problems.error_hint(place, message, hint);
                    None
                }
            };
        }
        if let Some(found) = self.host.imports.as_ref().and_then(|imports| imports.tool(reference, config)) {
            return match found {
                Ok(tool) => Some(tool),
                Err(error) => {
                    let place = setting_of(node, error.message()).unwrap_or(place);
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

    /// The halves of `mcp:server/tool` and `toolkit/tool`. Servers may have slashes in the names of their
    /// tools.
    fn halves<'r>(&self, reference: &'r str) -> Option<(&'r str, &'r str)> {
        if python::is_python(reference) {
            return python::halves(reference);
        }
        let Some(rest) = reference.strip_prefix("mcp:") else { return reference.rsplit_once('/') };
        let named =
            |name: &&String| rest.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let server = self.servers.iter().filter(named).map(String::len).max().or_else(|| rest.find('/'))?;
        let at = reference.len() - rest.len() + server;
        Some((reference.get(..at)?, reference.get(at + 1..)?))
    }

    fn unknown_import(&mut self, reference: &str, place: FileSpan) {
        if self.host.toolkit_names(reference).is_some() {
            let message = format!("`{reference}` is several tools");
            let hint = format!("import them with `- import_tools: {reference}`");
            self.problems.error_hint(place, message, hint);
            return;
        }
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
            None if is_python(reference) => {
                let (module, class) = reference.rsplit_once('.').unwrap_or_default();
                let hint = format!(
                    "code in Python is reached over MCP: serve `{class}` of `{module}` with FastMCP in server.py, declare \
                     `mcp: {{mine: {{transport: stdio, command: python3, args: [server.py]}}}}`, and write \
                     `import_tool: mcp:mine/TOOL`"
                );
                self.problems.error_hint(place, message, hint);
            }
            None if self.host.builtins.is_empty() => self.problems.error(place, message),
            None => {
                let names: Vec<_> = self.host.builtins.names().take(12).collect();
                self.problems.error_hint(place, message, format!("there are: {}", names.join(", ")));
            }
        }
    }

    /// All tools of a toolkit or an MCP server.
    fn source(&mut self, reference: &str, place: FileSpan) -> Option<Toolset> {
        if python::is_python(reference) {
            return self.server_tools(reference, place);
        }
        if let Some((scheme, server)) = reference.split_once(':') {
            if scheme != "mcp" {
                let message = format!("tools cannot be imported from `{scheme}:`");
                self.problems.error_hint(
                    place,
                    message,
                    "use `mcp:SERVER`, `python:FILE.py` or the name of a toolkit",
                );
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

    fn server_tools(&mut self, name: &str, place: FileSpan) -> Option<Toolset> {
        if let Some(known) = self.asked.get(name) {
            return known.as_ref().map(|known| known.tools.clone());
        }
        if !self.servers.iter().any(|known| known == name) {
            let message = format!("there is no MCP server `{name}`");
            let hint = match nearest(name, self.servers.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "declare it under `mcp`".to_owned(),
            };
            self.problems.error_hint(place, message, hint);
            return None;
        }
        let tools = match self.states.get(name) {
            Some(ServerState::Connected(known)) => {
                self.left_out.insert(name.to_owned(), known.left_out.clone());
                Some(known.clone())
            }
            Some(ServerState::Known(tools)) => Some(tools.clone().into()),
            Some(ServerState::Failed { error, required }) => {
                let severity = if *required { Severity::Error } else { Severity::Warning };
                let message = format!("could not list the tools of {}: {error}", python::described(name));
                self.problems.add(severity, place, message, error.hint_text().map(str::to_owned));
                None
            }
            None => {
                self.unknown.push((name.to_owned(), place));
                None
            }
        };
        let own = tools.as_ref().map(|known| known.tools.clone());
        self.asked.insert(name.to_owned(), tools);
        own
    }

    /// Whether a server has or may have tools that are unknown, because it has not been connected.
    fn is_unknown(&self, server: &str) -> bool {
        let server = server.strip_prefix("mcp:").unwrap_or(server);
        let declared = self.servers.iter().any(|known| known == server);
        declared && matches!(self.states.get(server), None | Some(ServerState::Known(_)))
    }

    /// Why one tool of a server cannot be used.
    fn why_left_out(&mut self, server: &str, tool: &str) -> Option<String> {
        let told = self.take_left_out(server, |name| name == tool).pop();
        let known = self.asked.get(server.strip_prefix("mcp:").unwrap_or(server)).and_then(Option::as_ref);
        let suspended = || known?.suspended.iter().find(|(name, _)| name == tool).cloned();
        Some(told.or_else(suspended)?.1)
    }

    /// Removes the tools of a server from those that are unusable and not yet reported.
    fn take_left_out(&mut self, server: &str, wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let server = server.strip_prefix("mcp:").unwrap_or(server);
        let Some(left_out) = self.left_out.get_mut(server) else { return Vec::new() };
        let (taken, rest) = std::mem::take(left_out).into_iter().partition(|(name, _)| wanted(name));
        *left_out = rest;
        taken
    }

    /// Warns of tools of a server that are not imported: one of them does not spoil the rest.
    fn tell_left_out(&mut self, server: &str, left_out: &[(String, String)], place: FileSpan) {
        let server = server.strip_prefix("mcp:").unwrap_or(server);
        for (tool, why) in left_out.iter().take(MAX_TOLD) {
            let message = format!("`{tool}` of {} is left out: {why}", python::described(server));
            self.problems.add(Severity::Warning, place, message, None);
        }
        let more = left_out.len().saturating_sub(MAX_TOLD);
        if more > 0 {
            let message = format!("{more} more tools of {} are left out", python::described(server));
            self.problems.add(Severity::Warning, place, message, None);
        }
    }

    pub(crate) fn import_tools(&mut self, node: &Node, into: &mut Tools, scope: &str) {
        let Some(reference) = text(node, "import_tools") else { return };
        let place = node.get("import_tools").map_or(node.place, |node| node.place);
        let from_server = is_server(&reference);
        // As llm-workers has it for toolkits.
        if node.get("prefix").is_none() && !from_server {
            let message = "`import_tools` of a toolkit needs the key `prefix`";
            self.problems.error_hint(
                place,
                message,
                "what each name gets in front; `prefix: ''` for nothing",
            );
        }
        let prefix = text(node, "prefix").unwrap_or_default();
        if from_server && self.is_unknown(&reference) {
            self.unasked.push(prefix.clone());
        }
        let tools = self.source(&reference, place);
        let rule = ImportRule::of(node, prefix);
        if from_server {
            self.note_absent(&reference, &rule);
        } else if tools.is_none() && !rule.prefix.is_empty() {
            // Whoever calls them is not to blame.
            self.unasked.push(rule.prefix.clone());
        }
        let Some(tools) = tools else { return };
        let names = self.take_in(&tools, &rule, (&reference, from_server), place, into, scope);
        if from_server {
            self.follow(&reference, ImportScope::All(Box::new(rule)), names, scope);
        }
    }

    /// Takes in all tools of a server as `<server>_<tool>`, with hints.
    pub(crate) fn auto_import(&mut self, server: &str, place: FileSpan, into: &mut Tools, scope: &str) {
        let rule = ImportRule::automatic(server);
        if self.is_unknown(server) {
            self.unasked.push(rule.prefix.clone());
        }
        let tools = self.server_tools(server, place);
        self.note_absent(server, &rule);
        let Some(tools) = tools else { return };
        let names = self.take_in(&tools, &rule, (server, true), place, into, scope);
        self.follow(server, ImportScope::All(Box::new(rule)), names, scope);
    }

    /// Takes in the tools that a rule wants. Their names in the file are returned.
    fn take_in(
        &mut self,
        tools: &Toolset,
        rule: &ImportRule,
        (source, from_server): (&str, bool),
        place: FileSpan,
        into: &mut Tools,
        scope: &str,
    ) -> Vec<Arc<str>> {
        let mut left_out = match from_server {
            true => self.take_left_out(source, |name| rule.filter.matches(name)),
            false => Vec::new(),
        };
        let mut names = Vec::new();
        for entry in tools.iter() {
            let Some(tool) = rule.take(&entry.tool, from_server.then_some(source)) else { continue };
            let name = tool.spec().name.clone();
            if from_server && let Some(problem) = unusable(&name) {
                left_out.push((entry.tool.spec().name.to_string(), problem));
                continue;
            }
            self.register(Arc::new(tool), Vec::new(), from_server, place, into, scope);
            names.push(name);
        }
        if names.is_empty() && left_out.is_empty() && !tools.is_empty() {
            let known: Vec<&str> = tools.iter().map(|entry| &*entry.tool.spec().name).collect();
            let known = toolwright_core::text::clip(&known.join(", "), 200);
            let message = format!("the `filter` takes none of the tools of `{source}`");
            self.problems.warn_hint(place, message, format!("it has {known}"));
        }
        self.tell_left_out(source, &left_out, place);
        names
    }

    /// Notes an import from a server, when the file's programs have it.
    fn follow(&mut self, server: &str, what: ImportScope, names: Vec<Arc<str>>, scope: &str) {
        let chat = match scope {
            SHARED | FILE => false,
            CHAT => true,
            _ => return,
        };
        let server = server.strip_prefix("mcp:").unwrap_or(server).to_owned();
        self.live.push(ServerImport { server, what, names, chat, open: true });
    }

    /// Warns of a name that the file does not explain.
    pub(crate) fn check_model(&mut self, model_ref: &str, place: FileSpan) {
        if model_ref == "default" || model_ref.contains('/') || self.models.contains_key(model_ref) {
            return;
        }
        let hint = match nearest(model_ref, self.models.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("say which it is: `models: {{{model_ref}: vendor/model}}`"),
        };
        self.problems.warn_hint(place, format!("the file has no model `{model_ref}`"), hint);
    }

    fn llm_tool(&mut self, node: &Node, outer: Option<&Tools>, into: &mut Tools, scope: &str) {
        let config = node.get("config");
        let setting = |key: &str| config.and_then(|config| config.get(key));
        if let Some(config @ Node { data: Data::Map(_), .. }) = config {
            shape::check(self.problems, config, &file::MODEL_TOOL);
        }
        let name = text(node, "name").unwrap_or_else(|| "llm".to_owned());
        let tools = match setting("tools") {
            Some(list @ Node { data: Data::List(_), .. }) => {
                let shared = outer.unwrap_or(into).clone();
                let scope = format!("the tools of `{name}`");
                to_toolset(self.references(list, &shared, &scope).values())
            }
            _ => Toolset::new(),
        };
        let system_message = setting("system_message").and_then(|node| self.evaluated(node));
        let mut policy = ToolPolicy::default();
        common_policy(node, &mut policy);
        let model_ref =
            config.and_then(|config| text(config, "model_ref")).unwrap_or_else(|| "default".to_owned());
        // A program that lends models may know the name.
        if self.host.models.is_none() {
            self.check_model(&model_ref, setting("model_ref").unwrap_or(node).place);
        }
        let mut spec = LlmTool::spec(&name, text(node, "description").as_deref());
        self.describe_parameters(node, &mut spec);
        let tool = LlmTool {
            spec,
            policy: policy.clone(),
            model_name: self.models.get(&model_ref).unwrap_or(&model_ref).clone(),
            model_ref,
            system_message,
            tools,
            extract: setting("extract_json")
                .map_or(ExtractJson::None, |node| ExtractJson::from_json(&node.to_json())),
            models: self.host.models.clone(),
        };
        let place = node.get("name").unwrap_or(node).place;
        let tool: Arc<DynTool> = match self.hint(node) {
            None => Arc::new(tool),
            Some(hint) => {
                let (spec, tool) = (tool.spec.clone(), Arc::new(tool));
                Arc::new(ImportedTool::new(tool, spec, policy, Some(hint)))
            }
        };
        self.register(tool, Vec::new(), false, place, into, scope);
    }
}

/// Where the setting stands that an error names first.
fn setting_of(node: &Node, message: &str) -> Option<FileSpan> {
    let config = node.get("config")?;
    let Data::Map(entries) = &config.data else { return Some(config.place) };
    let named = entries.iter().filter_map(|(key, _)| {
        let at = message.find(&format!("`{}`", key.key_text()))?;
        Some((at, key.place))
    });
    named.min_by_key(|(at, _)| *at).map(|(_, place)| place)
}

/// How many tools of one server that are left out are named.
const MAX_TOLD: usize = 10;

/// Why a server's tool cannot have this name in the file.
fn unusable(name: &str) -> Option<String> {
    let problem = Toolset::check_name(name).err()?;
    Some(format!("{problem}; import it by itself, with a `name`"))
}

/// Whether a reference means something whose tools are unknown until it is started: an MCP server, or a file
/// of Python functions.
fn is_server(reference: &str) -> bool {
    reference.starts_with("mcp:") || python::is_python(reference)
}

/// Whether a reference is written as the path of a class or function in Python.
fn is_python(reference: &str) -> bool {
    let is_word = |word: &str| {
        let mut letters = word.chars();
        letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    reference.contains('.') && reference.split('.').all(is_word) && !reference.starts_with("llm_workers.")
}
