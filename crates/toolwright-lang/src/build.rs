//! From a file's tree to tools: definitions are read, imports found, flows compiled, in the order of the
//! file.
//!
//! A flow can call the tools above it and its own local ones, nothing else; so every name is resolved here,
//! once, and no cycle can be written. Statements are compiled in `statements`, tools from elsewhere are found
//! in `imports`, and lists that name tools are read in `references`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value as Json;
use toolwright_core::schema::Schema;
use toolwright_core::{Annotations, DynTool, ToolPolicy, ToolSpec, Toolset, nearest};
use toolwright_expr::is_builtin;

use crate::diag::{FileSpan, Problems, Severity};
use crate::exec::{FlowLimits, Globals};
use crate::file;
use crate::flow::FlowTool;
use crate::hint::Hint;
use crate::host::{Host, ServerState, ServerTools};
use crate::input::{self, Input, Type};
use crate::missing_tools::Absent;
use crate::sections::seconds;
use crate::server_imports::ServerImport;
use crate::shape::{self, Shape};
use crate::step::call::{Callee, Param};
use crate::step::{Body, StatementKind};
use crate::strict_arguments::exact;
use crate::template::{self, Snippet, TemplateTree};
use crate::yaml::{self, Data, Node};

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
pub(crate) struct FileBuilder<'b> {
    pub(crate) problems: &'b mut Problems,
    pub(crate) host: &'b Host,
    /// The names of the file's MCP servers.
    pub(crate) servers: Vec<String>,
    /// How those are that were connected, or could not be.
    pub(crate) states: &'b HashMap<String, ServerState>,
    /// What the file's names for models stand for.
    pub(crate) models: &'b IndexMap<String, String>,
    /// The names of the file's sandboxes beside the default one.
    pub(crate) sandboxes: Vec<String>,
    /// Tools of servers that were asked already.
    pub(crate) asked: IndexMap<String, Option<ServerTools>>,
    /// Tools of servers that cannot be used, and why, until somebody was told.
    pub(crate) left_out: IndexMap<String, Vec<(String, String)>>,
    pub(crate) globals: Arc<Globals>,
    pub(crate) limits: Arc<FlowLimits>,
    pub(crate) flows: Vec<FlowInfo>,
    /// All names that will be defined in the scope being built, for hints about order.
    pub(crate) coming: Vec<Arc<str>>,
    /// Prefixes of tools whose servers were not asked for them.
    pub(crate) unasked: Vec<String>,
    /// Servers that the file imports from and whose tools are unknown.
    pub(crate) unknown: Vec<(String, FileSpan)>,
    /// Tools that the file would have.
    pub(crate) absent: Vec<Absent>,
    /// The names of all tools that were made, in whatever part of the file.
    pub(crate) made: HashSet<Arc<str>>,
    /// What the file takes in from servers.
    pub(crate) live: Vec<ServerImport>,
    /// Names of tools that could not be built; a call of one is not reported as an unknown tool.
    pub(crate) broken: Vec<String>,
}

impl<'b> FileBuilder<'b> {
    pub(crate) fn new(
        problems: &'b mut Problems,
        host: &'b Host,
        (servers, states): (Vec<String>, &'b HashMap<String, ServerState>),
        models: &'b IndexMap<String, String>,
        globals: Arc<Globals>,
    ) -> Self {
        FileBuilder {
            problems,
            host,
            servers,
            states,
            models,
            sandboxes: Vec::new(),
            asked: IndexMap::new(),
            left_out: IndexMap::new(),
            globals,
            limits: Arc::new(host.limits.clone()),
            flows: Vec::new(),
            coming: Vec::new(),
            unasked: Vec::new(),
            unknown: Vec::new(),
            absent: Vec::new(),
            made: HashSet::new(),
            live: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// Makes the tools of a list of definitions. `outer` is what they can call; `None` means each other, in
    /// order.
    pub(crate) fn definitions(
        &mut self,
        nodes: &[Node],
        outer: Option<&Tools>,
        into: &mut Tools,
        scope: &str,
    ) {
        let names = nodes.iter().filter_map(|node| node.get("name").and_then(Node::text).cloned());
        self.coming.extend(names);
        let mut seen: HashMap<Arc<str>, FileSpan> = HashMap::new();
        for node in nodes {
            if let Some(named) = node.get("name")
                && let Some(name) = named.text()
                && let Some(first) = seen.insert(name.clone(), named.place)
                // One that could not be made is not there to be found by the other.
                && !into.contains_key(name)
            {
                self.two_tools(name, named.place, first, scope);
            }
            self.definition(node, outer, into, scope, None);
        }
    }

    fn two_tools(&mut self, name: &str, place: FileSpan, first: FileSpan, scope: &str) {
        let first = self.problems.sources.locate(first);
        self.problems.error_hint(
            place,
            format!("there are two tools `{name}` in {scope}"),
            format!("the other one is at {first}; give one of them another name"),
        );
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
        shape::check(self.problems, node, shape);
        if self.problems.errors() == before {
            match found.first().map(|(key, _)| *key) {
                Some("import_tool") => self.import_tool(node, outer, into, scope),
                Some("import_tools") => self.import_tools(node, into, scope),
                _ => self.custom(node, outer, into, scope, parent),
            }
        } else if let Some(body) = node.get("do") {
            // The statements are looked at all the same, so that one run shows every problem.
            let local = Tools::new();
            self.body(body, Visible { local: &local, outer: outer.unwrap_or(into) });
            self.hint(node);
        }
        if self.problems.errors() > before {
            let imported = || Some(text(node, "import_tool")?.rsplit(['.', '/']).next()?.to_owned());
            self.broken.extend(text(node, "name").or_else(imported));
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
        // With its parameters known, calls of the tool can be checked, whatever else is wrong with it.
        let callable = self.problems.errors() == before;
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
        let Some(body) = node.get("do") else { return };
        let visible = Visible { local: &local, outer: outer.unwrap_or(into) };
        let body = Arc::new(self.body(body, visible));
        let output = node.get("output").and_then(|node| self.output(node));
        let hint = self.hint(node);
        if let Some(Hint::Template(snippet)) = &hint {
            self.hint_names(snippet, &inputs);
        }
        if let Some(info) = self.flows.get_mut(index) {
            info.body = body.clone();
        }
        if !callable {
            return;
        }
        let broken = self.problems.errors() > before;
        let mut spec = ToolSpec::new(name.as_str(), text(node, "description").unwrap_or_default());
        spec.parameters = input::schema(&inputs);
        spec.annotations = node.get("annotations").map(annotations).unwrap_or_default();
        let (promised, output) = output.unzip();
        spec.output_schema = promised;
        let quick = body.is_pure() && !body.loops();
        let mut policy = ToolPolicy::default();
        policy.delegates = true;
        // What neither calls nor loops is bounded by its fuel.
        policy.timeout = (!quick).then_some(FLOW_TIME);
        common_policy(node, &mut policy);
        self.configure(node, &mut policy);
        let takes = takes(&body, &inputs);
        let (globals, limits) = (self.globals.clone(), self.limits.clone());
        let tool = FlowTool { spec, policy, inputs, output, body, globals, limits, hint, quick };
        self.register(Arc::new(tool), takes, false, name_place, into, scope);
        if let Some(own) = into.get_mut(name.as_str()).filter(|own| own.place == name_place) {
            own.broken |= broken;
        }
    }

    /// What `config` says about the calls of a tool made of statements.
    fn configure(&mut self, node: &Node, policy: &mut ToolPolicy) {
        let Some(config) = node.get("config") else { return };
        policy.timeout = seconds(self.problems, config, "timeout").or(policy.timeout);
        if let Some(confirm) = config.get("require_confirmation").and_then(shape::flag) {
            policy.require_confirmation = Some(confirm);
        }
    }

    fn inputs(&mut self, node: &Node) -> Vec<Input> {
        let Some(Node { data: Data::List(nodes), .. }) = node.get("input") else { return Vec::new() };
        let mut inputs: Vec<Input> = Vec::new();
        for node in nodes {
            let before = self.problems.errors();
            shape::check(self.problems, node, &file::INPUT);
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
                    // Expressions that use the parameter are not to blame.
                    Type::Any
                }
            };
            let place = node.get("default").unwrap_or(node).place;
            let default = node.get("default").map(Node::to_json).filter(|value| !value.is_null());
            if default.is_none() && node.get("default").is_some_and(|node| matches!(node.data, Data::Null)) {
                let message = format!("`default: null` counts as left out, so `{name}` is required");
                let hint = "give a value, such as '' or [], or leave `default` out".to_owned();
                self.problems.add(Severity::Warning, place, message, Some(hint));
            }
            let description = text(node, "description");
            inputs.push(Input { name: name.into(), description, kind, default, place });
        }
        inputs
    }

    /// What a result is to be: a type word or a JSON Schema, as it is told and as it is checked.
    fn output(&mut self, node: &Node) -> Option<(Json, Schema)> {
        let schema = match (&node.data, node.text()) {
            (Data::Null | Data::Bad, _) => return None,
            (_, Some(word)) => match Type::parse(word) {
                Ok(kind) => Json::Object(kind.schema()),
                Err(problem) => {
                    self.problems.error_hint(node.place, problem, format!("the types are: {}", Type::WORDS));
                    return None;
                }
            },
            _ => node.to_json(),
        };
        match Schema::compile_any(&schema) {
            Ok(compiled) => Some((schema, compiled)),
            Err(error) => {
                self.problems.error(node.place, format!("`output` is not a usable JSON Schema: {error}"));
                None
            }
        }
    }

    /// A text with templates over `env` and the shared data, evaluated now.
    pub(crate) fn evaluated(&mut self, node: &Node) -> Option<String> {
        let snippet = Snippet::compile(self.problems, node)?;
        match snippet.template.evaluate(&*self.globals, &self.limits.expression) {
            Ok(value) => Some(value.to_string()),
            Err(error) => {
                template::report_names(self.problems, &snippet, &error, &self.globals, &[]);
                None
            }
        }
    }

    /// A hint sees the arguments and nothing else; one that fails is not shown.
    fn hint_names(&mut self, snippet: &Snippet, inputs: &[Input]) {
        for (name, at) in snippet.template.places() {
            if is_builtin(name) || inputs.iter().any(|input| *input.name == *name) {
                continue;
            }
            let source = self.problems.sources.text(snippet.place.file);
            let (start, end) = (at.start as usize, at.end as usize);
            let place = yaml::within(source, snippet.place, &snippet.source, start, end);
            let message = format!("`ui_hint` sees the parameters only, and `{name}` is not a parameter");
            let near = nearest(name, inputs.iter().map(|input| &*input.name));
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            self.problems.add(Severity::Warning, place, message, hint);
        }
    }

    pub(crate) fn hint(&mut self, node: &Node) -> Option<Hint> {
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

    pub(crate) fn register(
        &mut self,
        tool: Arc<DynTool>,
        takes: Vec<Arc<str>>,
        gives_blocks: bool,
        place: FileSpan,
        into: &mut Tools,
        scope: &str,
    ) {
        let name = tool.spec().name.clone();
        if let Some(first) = into.get(&name).map(|first| first.place) {
            self.two_tools(&name, place, first, scope);
            return;
        }
        // What a server calls its tools is its own business.
        if name.contains('/') && !gives_blocks {
            let message = format!("`{name}` cannot be a tool's name: use letters, digits, `_`, `-` and `.`");
            self.problems.error(place, message);
            return;
        }
        let origin = self.problems.sources.name(place.file);
        match Toolset::new().with_from(tool, &origin) {
            Ok(tools) => {
                // So is what they take.
                let called = if gives_blocks { tools.clone() } else { exact(tools.clone()) };
                let takes = takes.into();
                let callee =
                    Callee { name: name.clone(), tools, called, takes, place, gives_blocks, broken: false };
                self.made.insert(name.clone());
                into.insert(name, callee);
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
                StatementKind::Call(call) => found.extend(call.callee.takes.iter().cloned()),
                StatementKind::Script(script) => {
                    found.extend(script.script.references().map(Arc::from));
                    found.extend(script.tools.iter().flat_map(|tool| tool.takes.iter().cloned()));
                }
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
    for callee in tools.into_iter().filter(|callee| !callee.broken) {
        // Names are unique already, so nothing can clash.
        set = set.clone().combined(callee.tools.clone()).unwrap_or(set);
    }
    set
}

fn annotations(node: &Node) -> Annotations {
    let flag = |key: &str| node.get(key).and_then(shape::flag);
    Annotations {
        title: text(node, "title"),
        read_only: flag("read_only"),
        destructive: flag("destructive"),
        idempotent: flag("idempotent"),
        open_world: flag("open_world"),
    }
}

/// How long a call of a flow may take.
const FLOW_TIME: Duration = Duration::from_secs(600);

pub(crate) fn common_policy(node: &Node, policy: &mut ToolPolicy) {
    if let Some(timeout) = node.get("timeout").and_then(shape::timeout) {
        policy.timeout = timeout.or(policy.timeout);
    }
    let flag = |key: &str| node.get(key).and_then(shape::flag);
    if let Some(direct) = flag("return_direct") {
        policy.return_direct = direct;
    }
    if let Some(confidential) = flag("confidential") {
        policy.confidential = confidential;
    }
    policy.return_direct |= policy.confidential;
    if let Some(parallel) = flag("parallel") {
        policy.parallel = Some(parallel);
    }
    if let Some(confirm) = flag("require_confirmation") {
        policy.require_confirmation = Some(confirm);
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

/// The entries of `params`, compiled.
pub(crate) fn params(problems: &mut Problems, node: &Node) -> Vec<Param> {
    let Data::Map(entries) = &node.data else { return Vec::new() };
    let compiled = entries.iter().map(|(key, value)| Param {
        name: key.key_text().into(),
        named: key.place,
        value: TemplateTree::compile(problems, value),
        place: value.place,
    });
    compiled.collect()
}
