//! Loading a file: from disk or text, with what it includes, to everything a program needs from it.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value as Json;
use toolwright_core::{Secret, Toolset};
use toolwright_expr::Value;

use crate::build::{self, Builder, FlowInfo, Tools, Visible, text};
use crate::check;
use crate::cli::{Cli, CliOutput, ProcessInput};
use crate::diag::{Diagnostic, Place, Problems, Severity};
use crate::env::{self, Variable};
use crate::exec::Globals;
use crate::file;
use crate::host::{Host, MissingEnv, Server};
use crate::models;
use crate::template::{self, Document};
use crate::yaml::{self, Budget, Data, Include, MAX_BYTES, Node};

/// How deep files may include files.
const MAX_INCLUDE_DEPTH: usize = 16;

/// How often a file that changes while it is read is read again.
const READS: usize = 5;

/// How many files may be included in all.
const MAX_INCLUDES: usize = 64;

/// Where a file comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file on disk.
    Path(PathBuf),
    /// A text, under the name that messages use.
    Text {
        /// The name.
        name: String,
        /// The text.
        text: String,
    },
}

impl Source {
    /// A text, under the name that messages use.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Source::Text { name: name.into(), text: text.into() }
    }
}

impl<P: Into<PathBuf>> From<P> for Source {
    fn from(path: P) -> Self {
        Source::Path(path.into())
    }
}

/// Loads a file. All problems that keep it from being used are told at once.
///
/// ```
/// use toolwright_lang::{Host, Source, load};
///
/// let source = Source::text("hello.yaml", "tools:\n  - name: hello\n    do: {eval: 'Hello!'}\n");
/// let loaded = load(source, &Host::new()).unwrap();
/// assert_eq!(loaded.tools().names().collect::<Vec<_>>(), ["hello"]);
/// ```
pub fn load(source: impl Into<Source>, host: &Host) -> Result<Loaded, Vec<Diagnostic>> {
    let loaded = load_all(source, host);
    if loaded.problems.errors() > 0 { Err(loaded.problems.found) } else { Ok(loaded) }
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
pub fn declared_env(source: impl Into<Source>, host: &Host) -> Result<Vec<Variable>, Vec<Diagnostic>> {
    let mut problems = Problems::default();
    let root = Loader::new(host).root(&mut problems, source.into());
    match root {
        Some(root) if problems.errors() == 0 => Ok(env::declared(&mut problems, &root, host)),
        _ => Err(problems.found),
    }
}

/// Everything a program needs from a file.
pub struct Loaded {
    tools: Toolset,
    data: IndexMap<Arc<str>, Value>,
    chat: Option<Chat>,
    cli: Option<Cli>,
    sections: IndexMap<&'static str, Section>,
    env: Vec<Variable>,
    secrets: Vec<Secret>,
    pub(crate) globals: Arc<Globals>,
    pub(crate) flows: Vec<FlowInfo>,
    pub(crate) problems: Problems,
}

/// The `chat` section.
#[derive(Debug, Clone)]
pub struct Chat {
    /// The model to talk to.
    pub model_ref: String,
    /// Instructions for the model.
    pub system_message: Option<String>,
    /// The tools the model may call.
    pub tools: Toolset,
    /// What the first input starts with.
    pub default_prompt: Option<String>,
    /// Markdown shown at the start.
    pub user_banner: Option<String>,
}

/// A section that this crate only carries: `models`, `policy`, `limits` or `sandbox`.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// What it holds.
    pub value: Json,
    /// Where it stands, as `file:line:column`.
    pub place: String,
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

    /// The shared data, evaluated.
    pub fn data(&self) -> &IndexMap<Arc<str>, Value> {
        &self.data
    }

    /// The chat program.
    pub fn chat(&self) -> Option<&Chat> {
        self.chat.as_ref()
    }

    /// The batch program.
    pub fn cli(&self) -> Option<&Cli> {
        self.cli.as_ref()
    }

    /// One of the sections `models`, `policy`, `limits` and `sandbox`, as data.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.get(name)
    }

    /// The environment variables the file declares.
    pub fn env(&self) -> &[Variable] {
        &self.env
    }

    /// The values of secret variables, to be kept out of records.
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// What was found while loading.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems.found
    }

    /// Everything that can be known before running: unknown names, missing and mistyped parameters, branches that are
    /// never taken, and what was found while loading. In the order of the file.
    pub fn check(&self) -> Vec<Diagnostic> {
        check::run(self)
    }

    fn build(root: Node, host: &Host, mut problems: Problems) -> Loaded {
        let fine = !matches!(root.data, Data::Bad);
        if fine && !matches!(root.data, Data::Null) {
            file::check(&mut problems, &root, &file::FILE);
        }
        let (variables, secrets, env_value) = env::read(&mut problems, &root, host);
        let mut globals = Globals::new();
        globals.insert("env", env_value);
        let servers = servers(&mut problems, &root, &globals);
        let data = data(&mut problems, &root, &mut globals, host);
        let globals = Arc::new(globals);
        let models = models::read(&mut problems, &root);
        let mut builder = Builder::new(&mut problems, host, servers, models, globals.clone());

        let mut shared = Tools::new();
        let mut chat_tools = Tools::new();
        for (name, place, scope) in auto_imports(&root) {
            let into = if scope == "shared" { &mut shared } else { &mut chat_tools };
            builder.auto_import(&name, place, into, &scope);
        }
        let lists = [root.get("shared").and_then(|shared| shared.get("tools")), root.get("tools")];
        for list in lists.into_iter().flatten() {
            if let Data::List(nodes) = &list.data {
                builder.definitions(nodes, None, &mut shared, "the file");
            }
        }
        let chat = root.get("chat").and_then(|node| chat(&mut builder, node, &shared, chat_tools));
        let cli = root.get("cli").and_then(|node| cli(&mut builder, node, &shared));
        let flows = std::mem::take(&mut builder.flows);
        let sections = ["models", "policy", "limits", "sandbox"].into_iter().filter_map(|name| {
            let node = root.get(name)?;
            Some((name, Section { value: node.to_json(), place: problems.sources.locate(node.place) }))
        });
        let sections = sections.collect();
        let tools = build::to_toolset(shared.values());
        Loaded { tools, data, chat, cli, sections, env: variables, secrets, globals, flows, problems }
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("tools", &self.tools).field("cli", &self.cli).finish_non_exhaustive()
    }
}

/// Evaluates the shared data in order; later entries see earlier ones.
fn data(
    problems: &mut Problems,
    root: &Node,
    globals: &mut Globals,
    host: &Host,
) -> IndexMap<Arc<str>, Value> {
    let mut data = IndexMap::new();
    let Some(Node { data: Data::Map(entries), .. }) =
        root.get("shared").and_then(|shared| shared.get("data"))
    else {
        return data;
    };
    for (key, node) in entries {
        let name: Arc<str> = key.key_text().into();
        let before = problems.errors();
        let document = Document::compile(problems, node);
        let compiled = problems.errors() == before;
        match compiled.then(|| evaluate(problems, node, &document, globals, host)).flatten() {
            Some(value) => {
                globals.insert(&name, value.clone());
                data.insert(name, value);
            }
            None => {
                // Later entries that use it should not be blamed as well.
                globals.insert(&name, Value::None);
            }
        }
    }
    data
}

fn evaluate(
    problems: &mut Problems,
    node: &Node,
    document: &Document,
    globals: &Globals,
    host: &Host,
) -> Option<Value> {
    match document.evaluate(globals, &host.limits.expression) {
        Ok(value) => Some(value),
        Err(error) => {
            let place = failing(document, globals, host).unwrap_or(node.place);
            let hint = error.hint_text().map(str::to_owned);
            problems.add(Severity::Error, place, error.message().to_owned(), hint);
            None
        }
    }
}

/// Where the template stands that fails. A single one is not evaluated again: it may have taken its time.
fn failing(document: &Document, globals: &Globals, host: &Host) -> Option<Place> {
    let mut all = Vec::new();
    document.snippets(&mut |snippet| all.push(snippet));
    if let [only] = all.as_slice() {
        return Some(only.place);
    }
    let fails =
        |snippet: &&&template::Snippet| snippet.template.evaluate(globals, &host.limits.expression).is_err();
    all.iter().find(fails).map(|snippet| snippet.place)
}

fn servers(problems: &mut Problems, root: &Node, globals: &Globals) -> IndexMap<String, Server> {
    let mut servers = IndexMap::new();
    let Some(Node { data: Data::Map(entries), .. }) = root.get("mcp") else { return servers };
    let limits = toolwright_expr::Limits::default();
    let mut evaluated = |node: &Node| -> String {
        let Some(snippet) = template::Snippet::compile(problems, node) else { return String::new() };
        match snippet.template.evaluate(globals, &limits) {
            Ok(value) => value.to_string(),
            Err(error) => {
                template::report(problems, node, &snippet.source, &error);
                String::new()
            }
        }
    };
    for (name, node) in entries {
        let list = |node: Option<&Node>| match node.map(|node| &node.data) {
            Some(Data::List(items)) => items.clone(),
            _ => Vec::new(),
        };
        let map = |node: Option<&Node>| match node.map(|node| &node.data) {
            Some(Data::Map(entries)) => entries.clone(),
            _ => Vec::new(),
        };
        let server = match (text(node, "command"), text(node, "url")) {
            (Some(command), _) => Server::Stdio {
                command,
                args: list(node.get("args")).iter().map(&mut evaluated).collect(),
                env: map(node.get("env"))
                    .iter()
                    .map(|(key, value)| (key.key_text(), evaluated(value)))
                    .collect(),
            },
            (None, Some(url)) => Server::Http {
                url,
                headers: map(node.get("headers"))
                    .iter()
                    .map(|(key, value)| (key.key_text(), evaluated(value)))
                    .collect(),
            },
            _ => continue,
        };
        servers.insert(name.key_text(), server);
    }
    servers
}

/// Servers whose tools appear by themselves: name, place, scope.
fn auto_imports(root: &Node) -> Vec<(String, Place, String)> {
    let Some(Node { data: Data::Map(entries), .. }) = root.get("mcp") else { return Vec::new() };
    let scope = |node: &Node| text(node, "auto_import_scope").filter(|scope| scope != "none");
    entries.iter().filter_map(|(name, node)| Some((name.key_text(), node.place, scope(node)?))).collect()
}

fn chat(builder: &mut Builder<'_>, node: &Node, shared: &Tools, auto: Tools) -> Option<Chat> {
    if !matches!(node.data, Data::Map(_)) {
        return None;
    }
    let mut tools = match node.get("tools") {
        Some(list @ Node { data: Data::List(_), .. }) => builder.references(list, shared, "`chat`"),
        _ => Tools::new(),
    };
    tools.extend(auto);
    let system_message = match node.get("system_message") {
        Some(message @ Node { data: Data::Text(_), .. }) => builder.evaluated(message),
        _ => None,
    };
    Some(Chat {
        model_ref: text(node, "model_ref").unwrap_or_else(|| "default".to_owned()),
        system_message,
        tools: build::to_toolset(tools.values()),
        default_prompt: text(node, "default_prompt"),
        user_banner: text(node, "user_banner"),
    })
}

fn cli(builder: &mut Builder<'_>, node: &Node, shared: &Tools) -> Option<Cli> {
    if !matches!(node.data, Data::Map(_)) {
        return None;
    }
    let tools = match node.get("tools") {
        Some(list @ Node { data: Data::List(_), .. }) => builder.references(list, shared, "`cli`"),
        _ => Tools::new(),
    };
    let before = builder.problems.errors();
    let body = builder.body(node.get("do")?, Visible { local: &tools, outer: shared });
    let body = Arc::new(body);
    let input = crate::input::Input {
        name: "input".into(),
        description: None,
        kind: crate::input::Type::Any,
        default: None,
    };
    builder.flows.push(FlowInfo {
        name: "cli".into(),
        inputs: [input].into(),
        body: body.clone(),
        parent: None,
    });
    if builder.problems.errors() > before {
        return None;
    }
    let process_input = match text(node, "process_input")?.as_str() {
        "one_by_one" => ProcessInput::OneByOne,
        "all_as_list" => ProcessInput::AllAsList,
        _ => return None,
    };
    let output = match node.get("json_output").map(|node| &node.data) {
        Some(Data::Bool(true)) => CliOutput::Json,
        Some(Data::Text(_)) => CliOutput::PrettyJson,
        _ => CliOutput::Text,
    };
    Some(Cli {
        process_input,
        output,
        tools: build::to_toolset(tools.values()),
        body,
        globals: builder.globals.clone(),
        limits: builder.limits.clone(),
    })
}

/// Reads files, and what they include.
struct Loader {
    work_dir: Option<PathBuf>,
    /// The files being read, outermost first.
    stack: Vec<PathBuf>,
    /// The folders their includes are relative to.
    folders: Vec<PathBuf>,
    included: usize,
}

impl Loader {
    fn new(host: &Host) -> Self {
        Loader { work_dir: host.work_dir.clone(), stack: Vec::new(), folders: Vec::new(), included: 0 }
    }

    fn root(&mut self, problems: &mut Problems, source: Source) -> Option<Node> {
        let (name, text, folder) = match source {
            Source::Text { name, text } if text.len() > MAX_BYTES => {
                let file = problems.sources.add(&name, "");
                let message = format!("the file is larger than {MAX_BYTES} bytes");
                problems.error(Place::new(file, 0, 0), message);
                return None;
            }
            Source::Text { name, text } => (name, text, None),
            Source::Path(path) => {
                let name = path.display().to_string();
                let text = match read_text(&path) {
                    Ok(text) => text,
                    Err((problem, at)) => {
                        let file = problems.sources.add(&name, &at.1);
                        problems.error(Place::new(file, at.0, at.0 + 1), problem);
                        return None;
                    }
                };
                self.stack.push(path.canonicalize().unwrap_or_else(|_| path.clone()));
                (name, text, path.parent().map(Path::to_owned))
            }
        };
        let here = || PathBuf::from(".");
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        self.folders.push(folder.or_else(|| self.work_dir.clone()).unwrap_or_else(here));
        let file = problems.sources.add(&name, &text);
        yaml::parse(problems, &mut Budget::default(), self, file)
    }

    /// The file an include names, or what is wrong with the name.
    fn resolve(&self, path: &str) -> Result<PathBuf, String> {
        if path.is_empty() {
            return Err("the path is empty".to_owned());
        }
        if path.split_once(':').is_some_and(|(prefix, _)| prefix.chars().count() > 1) {
            return Err("resources of Python packages cannot be included".to_owned());
        }
        let relative = Path::new(path);
        let escapes = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
        if relative.components().any(escapes) || path.contains('\0') {
            return Err("a path may not leave its folder: no `..`, and nothing absolute".to_owned());
        }
        let own = self.folders.last().cloned().unwrap_or_default();
        let base = if path.starts_with("./") { self.work_dir.clone().unwrap_or(own) } else { own };
        let whole = base.join(relative);
        // A link may lead anywhere; where it ends must still be inside.
        match (whole.canonicalize(), base.canonicalize()) {
            (Ok(real), Ok(base)) if !real.starts_with(&base) => {
                Err("the path leads out of its folder through a link".to_owned())
            }
            _ => Ok(whole),
        }
    }
}

impl Include for Loader {
    fn include(
        &mut self,
        problems: &mut Problems,
        budget: &mut Budget,
        path: &str,
        required: bool,
        place: Place,
    ) -> Option<Data> {
        let shown = toolwright_core::text::clip(path, 120);
        let fail = |problems: &mut Problems, problem: &str| {
            problems.error(place, format!("cannot include `{shown}`: {problem}"));
            None
        };
        let whole = match self.resolve(path) {
            Ok(whole) => whole,
            Err(problem) => return fail(problems, &problem),
        };
        if !whole.exists() {
            return if required {
                fail(problems, "there is no such file")
            } else {
                Some(Data::Text("".into()))
            };
        }
        self.included += 1;
        if self.included > MAX_INCLUDES {
            return fail(problems, &format!("more than {MAX_INCLUDES} files are included"));
        }
        let real = whole.canonicalize().unwrap_or_else(|_| whole.clone());
        if self.stack.contains(&real) {
            return fail(problems, "the file includes itself");
        }
        if self.stack.len() >= MAX_INCLUDE_DEPTH {
            return fail(problems, &format!("files are included more than {MAX_INCLUDE_DEPTH} deep"));
        }
        let text = match read_text(&whole) {
            Ok(text) => text,
            Err((problem, _)) => return fail(problems, &problem),
        };
        match whole.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => {
                let file = problems.sources.add(&whole.display().to_string(), &text);
                self.stack.push(real);
                self.folders.push(whole.parent().map(Path::to_owned).unwrap_or_default());
                budget.level += 1;
                let node = yaml::parse(problems, budget, self, file);
                budget.level -= 1;
                self.folders.pop();
                self.stack.pop();
                node.map(|node| node.data)
            }
            Some("json") => {
                let json: Json = match serde_json::from_str(&text) {
                    Ok(json) => json,
                    Err(error) => return fail(problems, &format!("not JSON: {error}")),
                };
                if toolwright_core::schema::depth(&json) > yaml::MAX_DEPTH {
                    return fail(problems, "it is nested too deep");
                }
                match yaml::from_json(&json, place, budget) {
                    Some(node) => Some(node.data),
                    None => fail(problems, "it has too many values"),
                }
            }
            _ => Some(Data::Text(text.into())),
        }
    }
}

/// A file's text, or what is wrong and at which byte of what could be read.
fn read_text(path: &Path) -> Result<String, (String, (usize, String))> {
    let problem = |text: String| (text, (0, String::new()));
    let bytes = read_whole(path).map_err(problem)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        (
            "the file is not UTF-8 text".to_owned(),
            (at, String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    })
}

/// Reads a file that nobody wrote to meanwhile. One that is replaced as a whole is the old one or the new one; one that is
/// written in place is read again.
fn read_whole(path: &Path) -> Result<Vec<u8>, String> {
    for _ in 0..READS {
        let mut file = std::fs::File::open(path).map_err(|error| io_problem(&error))?;
        let before = file.metadata().map_err(|error| io_problem(&error))?;
        if before.is_dir() {
            return Err("it is a folder, not a file".to_owned());
        }
        if before.len() > MAX_BYTES as u64 {
            return Err(format!("the file is larger than {MAX_BYTES} bytes"));
        }
        let mut bytes = Vec::new();
        // Read no more than is allowed even when the file grows meanwhile.
        let mut bounded = std::io::Read::take(&mut file, MAX_BYTES as u64 + 1);
        std::io::Read::read_to_end(&mut bounded, &mut bytes).map_err(|error| io_problem(&error))?;
        let after = file.metadata().map_err(|error| io_problem(&error))?;
        if !before.is_file()
            || after.modified().ok() == before.modified().ok() && after.len() == bytes.len() as u64
        {
            return Ok(bytes);
        }
    }
    Err("the file is being written to".to_owned())
}

fn io_problem(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "the file may not be read".to_owned(),
        _ => format!("the file cannot be read: {error}"),
    }
}

impl Host {
    pub(crate) fn empty_when_missing(&self) -> bool {
        self.missing_env == MissingEnv::Empty
    }
}
