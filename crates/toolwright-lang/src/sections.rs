//! The sections of a file beside its tools: shared data, MCP servers, the chat and batch programs.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use toolwright_core::Toolset;
use toolwright_expr::Value;

use crate::build::{self, FileBuilder, FlowInfo, Tools, Visible, text};
use crate::cli::{CLI_TOOL, Cli, CliOutput, ProcessInput};
use crate::diag::{FileSpan, Problems, Severity};
use crate::error;
use crate::exec::Globals;
use crate::host::{Host, Server, Trust};
use crate::json;
use crate::needs::Needs;
use crate::shape;
use crate::template::{self, TemplateTree};
use crate::yaml::{Data, Node};

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

/// Evaluates the shared data in order; later entries see earlier ones.
pub(crate) fn data(
    problems: &mut Problems,
    root: &Node,
    globals: &mut Globals,
    host: &Host,
    needs: &Needs,
) -> IndexMap<Arc<str>, Value> {
    let mut data = IndexMap::new();
    let Some(Node { data: Data::Map(entries), .. }) =
        root.get("shared").and_then(|shared| shared.get("data"))
    else {
        return data;
    };
    let names: Vec<String> = entries.iter().map(|(key, _)| key.key_text()).collect();
    for (index, (key, node)) in entries.iter().enumerate() {
        let name: Arc<str> = key.key_text().into();
        if !matches!(key.data, Data::Text(_)) {
            let message = format!("the name of shared data is text, not {}", key.kind());
            problems.error_hint(key.place, message, "expressions can only use names, such as `total`");
        }
        let before = problems.errors();
        let document = TemplateTree::compile(problems, node);
        let compiled = problems.errors() == before;
        let later = names.get(index..).unwrap_or_default();
        // An unused entry may need variables that are not set; its failure is not a problem of the file.
        let mut aside = (!needs.data(&name)).then(|| problems.clone());
        let told = aside.as_mut().unwrap_or(problems);
        match compiled.then(|| evaluate(told, &document, globals, host, later)).flatten() {
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

/// The value of a document that holds for the whole file. What fails in it has been reported; `later` are the
/// names that come below it.
fn evaluate(
    problems: &mut Problems,
    document: &TemplateTree,
    globals: &Globals,
    host: &Host,
    later: &[String],
) -> Option<Value> {
    let limits = &host.limits.expression;
    if let TemplateTree::Template(snippet) = document {
        // Evaluated once only: it may take its time.
        let made = snippet.template.evaluate(globals, limits);
        return made.map_err(|error| template::report_names(problems, snippet, &error, globals, later)).ok();
    }
    if let Ok(value) = document.evaluate(globals, limits) {
        return Some(value);
    }
    document.snippets(&mut |snippet| {
        if let Err(error) = snippet.template.evaluate(globals, limits) {
            template::report_names(problems, snippet, &error, globals, later);
        }
    });
    None
}

/// Where an evaluated text is put, which decides what may not be in it.
#[derive(Clone, Copy)]
enum Goes {
    ToProgram,
    ToHeader,
}

/// The names of the MCP servers of a file.
pub(crate) fn server_names(root: &Node) -> Vec<String> {
    match root.get("mcp").map(|node| &node.data) {
        Some(Data::Map(entries)) => entries.iter().map(|(name, _)| name.key_text()).collect(),
        _ => Vec::new(),
    }
}

/// The MCP servers with their templates evaluated; of a part of the file, those that it needs.
pub(crate) fn servers(
    problems: &mut Problems,
    root: &Node,
    globals: &Globals,
    needs: &Needs,
) -> IndexMap<String, Server> {
    let mut servers = IndexMap::new();
    let Some(Node { data: Data::Map(entries), .. }) = root.get("mcp") else { return servers };
    let limits = toolwright_expr::EvalLimits::default();
    for (name, node) in entries.iter().filter(|(name, _)| needs.evaluates(&name.key_text())) {
        if let Some(server) = server(problems, node, globals, &limits) {
            servers.insert(name.key_text(), server);
        }
    }
    servers
}

fn server(
    problems: &mut Problems,
    node: &Node,
    globals: &Globals,
    limits: &toolwright_expr::EvalLimits,
) -> Option<Server> {
    let sandbox = node.get("sandbox").filter(|node| !matches!(node.data, Data::Null)).map(|node| {
        let document = TemplateTree::compile(problems, node);
        match document.evaluate(globals, limits).and_then(|value| {
            let broken = |error| error::no_document(error, "this cannot be used".to_owned(), None);
            json::from_value(&value, limits).map_err(broken)
        }) {
            Ok(json) => json,
            Err(error) => {
                let hint = error.hint_text().map(str::to_owned);
                problems.add(Severity::Error, node.place, error.message().to_owned(), hint);
                serde_json::Value::Null
            }
        }
    });
    let (timeout, read_timeout) =
        (seconds(problems, node, "timeout"), seconds(problems, node, "sse_read_timeout"));
    let call_timeout = seconds(problems, node, "call_timeout");
    let tool_timeouts = match node.get("tool_timeouts") {
        Some(Node { data: Data::Map(entries), .. }) => {
            let one =
                |(name, time): &(Node, Node)| Some((name.key_text(), time_of(problems, time, "a time-out")?));
            entries.iter().filter_map(one).collect()
        }
        _ => Vec::new(),
    };
    let mut evaluated = |node: &Node, goes: Goes| -> String {
        let Some(snippet) = template::Snippet::compile(problems, node) else { return String::new() };
        let text = match snippet.template.evaluate(globals, limits) {
            Ok(value) => value.to_string(),
            Err(error) => {
                template::report(problems, node, &snippet.source, &error);
                return String::new();
            }
        };
        match goes {
            Goes::ToProgram if text.contains('\0') => {
                problems.error(node.place, "an argument may not hold a NUL character");
            }
            Goes::ToHeader if text.contains(|c: char| c.is_control() && c != '\t') => {
                problems.error(node.place, "a header may not hold control characters");
            }
            _ => {}
        }
        text
    };
    let list = |node: Option<&Node>| match node.map(|node| &node.data) {
        Some(Data::List(items)) => items.clone(),
        _ => Vec::new(),
    };
    let map = |node: Option<&Node>| match node.map(|node| &node.data) {
        Some(Data::Map(entries)) => entries.clone(),
        _ => Vec::new(),
    };
    let trust = Trust {
        required: node.get("required").and_then(shape::flag).unwrap_or(true),
        sampling: text(node, "sampling"),
        reading_tools: node.get("reading_tools").and_then(shape::flag).unwrap_or(false),
        call_timeout,
        tool_timeouts,
    };
    match (text(node, "command"), text(node, "url")) {
        (Some(command), _) => Some(Server::Stdio {
            command,
            args: list(node.get("args")).iter().map(|value| evaluated(value, Goes::ToProgram)).collect(),
            env: map(node.get("env"))
                .iter()
                .map(|(key, value)| (key.key_text(), evaluated(value, Goes::ToProgram)))
                .collect(),
            cwd: node
                .get("cwd")
                .filter(|node| matches!(node.data, Data::Text(_)))
                .map(|node| evaluated(node, Goes::ToProgram)),
            sandbox,
            trust,
        }),
        (None, Some(url)) => Some(Server::Http {
            url,
            headers: map(node.get("headers"))
                .iter()
                .map(|(key, value)| {
                    evaluated(key, Goes::ToHeader);
                    (key.key_text(), evaluated(value, Goes::ToHeader))
                })
                .collect(),
            sse: text(node, "transport").is_some_and(|transport| transport == "sse"),
            timeout,
            read_timeout,
            trust,
        }),
        _ => None,
    }
}

/// A number of seconds.
pub(crate) fn seconds(problems: &mut Problems, node: &Node, key: &str) -> Option<Duration> {
    time_of(problems, node.get(key)?, &format!("`{key}`"))
}

fn time_of(problems: &mut Problems, node: &Node, what: &str) -> Option<Duration> {
    let given = match &node.data {
        Data::Int(given) => given.to_string().parse().ok(),
        Data::Float(given) => Some(*given),
        // The check of the shape reports other types.
        _ => return None,
    };
    let seconds = given.filter(|seconds: &f64| *seconds >= 0.001 && *seconds <= 86_400.0);
    if seconds.is_none() {
        problems.error(node.place, format!("{what} is a number of seconds, from 0.001 to 86400"));
    }
    seconds.map(Duration::from_secs_f64)
}

/// Servers whose tools appear by themselves: name, place, scope.
pub(crate) fn auto_imports(root: &Node) -> Vec<(String, FileSpan, String)> {
    let Some(Node { data: Data::Map(entries), .. }) = root.get("mcp") else { return Vec::new() };
    let scope = |node: &Node| text(node, "auto_import_scope").filter(|scope| scope != "none");
    entries.iter().filter_map(|(name, node)| Some((name.key_text(), node.place, scope(node)?))).collect()
}

pub(crate) fn chat(builder: &mut FileBuilder<'_>, node: &Node, shared: &Tools, auto: Tools) -> Option<Chat> {
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
    let model_ref = text(node, "model_ref").unwrap_or_else(|| "default".to_owned());
    // In a file that names no models, as those of llm-workers, another one stands in.
    if !builder.models.is_empty() {
        builder.check_model(&model_ref, node.get("model_ref").unwrap_or(node).place);
    }
    Some(Chat {
        model_ref,
        system_message,
        tools: build::to_toolset(tools.values()),
        default_prompt: text(node, "default_prompt"),
        user_banner: text(node, "user_banner"),
    })
}

pub(crate) fn cli(builder: &mut FileBuilder<'_>, node: &Node, shared: &Tools) -> Option<Cli> {
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
        place: node.place,
    };
    builder.flows.push(FlowInfo {
        name: CLI_TOOL.into(),
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
    let output = match node.get("json_output") {
        Some(node) if node.text().is_some_and(|word| &**word == "pretty") => CliOutput::PrettyJson,
        Some(node) if shape::flag(node) == Some(true) => CliOutput::Json,
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
