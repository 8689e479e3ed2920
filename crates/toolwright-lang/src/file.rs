//! The shapes of a tool file: which keys stand where, what they hold, and what they are for.
//!
//! These tables are the one definition of the format. The loader checks files against them, the JSON Schema for editors
//! and the reference page are written from them. What the values mean is decided in `build`.

use toolwright_core::nearest;

use crate::diag::Problems;
use crate::yaml::{Data, Node};

/// A map with known keys.
#[derive(Debug)]
pub(crate) struct Shape {
    /// What it is, as messages and the reference page call it.
    pub(crate) name: &'static str,
    /// One sentence for the reference page.
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [Key],
    /// What an unknown key is.
    pub(crate) unknown: Unknown,
}

/// What an unknown key is: a mistake, or something another program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    Error,
    Warning,
}

/// One key of a shape.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) needed: Needed,
    pub(crate) about: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    Required,
    Optional,
}

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// Text with `${...}`.
    Template,
    Flag,
    Count,
    /// Any value, taken as it is.
    Any,
    /// Any value; every text in it is a template.
    Document,
    /// A map of documents.
    Documents,
    /// One of these words.
    Word(&'static [&'static str]),
    Texts,
    TextOrTexts,
    Templates,
    TemplateMap,
    /// A statement or a list of statements.
    Body,
    Inputs,
    /// Tool definitions.
    Definitions,
    /// Tool definitions, names, and `match` patterns.
    References,
    Matchers,
    /// A template, or whether to show a hint at all.
    Hint,
    /// `true`, `false` or `pretty`.
    JsonOutput,
    Object(&'static Shape),
    /// A map from names to this shape.
    Named(&'static Shape),
    /// A map from names to MCP servers.
    Servers,
}

const fn required(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, needed: Needed::Required, about }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, needed: Needed::Optional, about }
}

const fn strict(name: &'static str, about: &'static str, keys: &'static [Key]) -> Shape {
    Shape { name, about, keys, unknown: Unknown::Error }
}

pub(crate) static FILE: Shape = strict(
    "file",
    "The top of a tool file.",
    &[
        optional("env", Kind::Named(&ENV), "Environment variables the file uses."),
        optional("mcp", Kind::Servers, "MCP servers whose tools the file uses."),
        optional("shared", Kind::Object(&SHARED), "Data and tools for everything in the file."),
        optional("tools", Kind::Definitions, "The same as `shared.tools`."),
        optional("chat", Kind::Object(&CHAT), "The chat program."),
        optional("cli", Kind::Object(&CLI), "The batch program: one run for each input."),
        optional(
            "models",
            Kind::Any,
            "What the names of models in `model_ref` stand for: a map of names to `vendor/model` or to a map with `model`, address, options and price; or a list of such maps with a `name`.",
        ),
        optional("policy", Kind::Any, "Approval rules."),
        optional("limits", Kind::Any, "What a run may spend."),
        optional("sandbox", Kind::Any, "Where tools that start programs run."),
    ],
);

static ENV: Shape = strict(
    "environment variable",
    "A variable the file uses as `${env.NAME}`.",
    &[
        optional("description", Kind::Template, "What a person is asked when it is not set."),
        optional("persistent", Kind::Flag, "Whether an answer is kept in the `.env` file."),
        optional("secret", Kind::Flag, "Whether the value is hidden while typed and in records."),
    ],
);

const SCOPES: Kind = Kind::Word(&["none", "shared", "chat"]);

pub(crate) static SERVER_STDIO: Shape = strict(
    "MCP server (stdio)",
    "A server that is started as a program.",
    &[
        required("transport", Kind::Word(&["stdio"]), "How to reach the server."),
        required("command", Kind::Text, "The program to start."),
        optional("args", Kind::Templates, "Its arguments."),
        optional("env", Kind::TemplateMap, "Its environment variables."),
        required("auto_import_scope", SCOPES, "Where all its tools appear as `<server>_<tool>`."),
    ],
);

pub(crate) static SERVER_HTTP: Shape = strict(
    "MCP server (HTTP)",
    "A server that is reached over HTTP.",
    &[
        required("transport", Kind::Word(&["streamable_http"]), "How to reach the server."),
        required("url", Kind::Text, "Its address."),
        optional("headers", Kind::TemplateMap, "Headers to send."),
        required("auto_import_scope", SCOPES, "Where all its tools appear as `<server>_<tool>`."),
    ],
);

static SHARED: Shape = strict(
    "shared",
    "What everything in the file can use.",
    &[
        optional(
            "data",
            Kind::Documents,
            "Values by name, evaluated once in order; later ones see earlier ones.",
        ),
        optional("tools", Kind::Definitions, "Tools, made in order; a flow can call the ones above it."),
    ],
);

static CHAT: Shape = strict(
    "chat",
    "The chat program.",
    &[
        optional("model_ref", Kind::Text, "The model to talk to; `default` unless given."),
        optional("system_message", Kind::Template, "Instructions for the model."),
        optional("tools", Kind::References, "The tools the model may call."),
        optional("default_prompt", Kind::Text, "What the first input starts with."),
        optional("user_banner", Kind::Text, "Markdown shown at the start."),
    ],
);

static CLI: Shape = strict(
    "cli",
    "The batch program.",
    &[
        required(
            "process_input",
            Kind::Word(&["one_by_one", "all_as_list"]),
            "One run for each input, or one for all.",
        ),
        optional("tools", Kind::References, "Tools for the flow, beside the shared ones."),
        optional(
            "json_output",
            Kind::JsonOutput,
            "Print results as JSON: `true` on one line, `pretty` indented.",
        ),
        required("do", Kind::Body, "The flow; `${input}` is the input."),
    ],
);

const RETURN_DIRECT: Key =
    optional("return_direct", Kind::Flag, "The result goes to the user as it is, and the turn ends.");
const CONFIDENTIAL: Key =
    optional("confidential", Kind::Flag, "The result is never shown to a model; implies `return_direct`.");
const CONFIRMATION: Key =
    optional("require_confirmation", Kind::Flag, "Whether a person must confirm each call.");
const HINT: Key =
    optional("ui_hint", Kind::Hint, "What a person is shown during a call; `false` shows nothing.");
const HINT_ARGS: Key =
    optional("ui_hint_args", Kind::Texts, "Patterns of the arguments shown when `ui_hint` is `true`.");
const CONFIG: Key = optional("config", Kind::Any, "Settings of the imported tool.");

pub(crate) static IMPORT_TOOL: Shape = strict(
    "import_tool",
    "One tool from elsewhere.",
    &[
        required("import_tool", Kind::Text, "A built-in's name, `mcp:server/tool`, or `toolkit/tool`."),
        optional("name", Kind::Text, "Another name for it."),
        optional("description", Kind::Text, "Another description for models."),
        CONFIG,
        RETURN_DIRECT,
        CONFIDENTIAL,
        CONFIRMATION,
        HINT,
        HINT_ARGS,
    ],
);

pub(crate) static IMPORT_TOOLS: Shape = strict(
    "import_tools",
    "Many tools from elsewhere.",
    &[
        required("import_tools", Kind::Text, "A toolkit's name or `mcp:server`."),
        required("prefix", Kind::Text, "What each name gets in front; may be empty."),
        optional("filter", Kind::Texts, "Patterns of the tools to take; `!` takes away."),
        optional("force_ui_hints_for", Kind::Texts, "Patterns of tools that show a hint."),
        optional("force_no_ui_hints_for", Kind::Texts, "Patterns of tools that show none."),
        optional("ui_hints_args", Kind::Texts, "Patterns of the arguments shown in hints."),
        optional("force_require_confirmation_for", Kind::Texts, "Patterns of tools a person must confirm."),
        optional("force_no_confirmation_for", Kind::Texts, "Patterns of tools nobody is asked about."),
    ],
);

pub(crate) static CUSTOM: Shape = Shape {
    name: "tool",
    about: "A tool made of statements.",
    unknown: Unknown::Warning,
    keys: &[
        required("name", Kind::Text, "The name models and flows call it by."),
        optional("description", Kind::Text, "What it does and when to use it, for models."),
        optional("input", Kind::Inputs, "Its parameters."),
        optional(
            "tools",
            Kind::Definitions,
            "Tools only this one can call; they hide shared ones of the same name.",
        ),
        required("do", Kind::Body, "A statement or a list of them; the last result is the tool's."),
        RETURN_DIRECT,
        CONFIDENTIAL,
        CONFIRMATION,
        HINT,
        HINT_ARGS,
        CONFIG,
    ],
};

pub(crate) static INPUT: Shape = strict(
    "input",
    "One parameter of a tool.",
    &[
        required("name", Kind::Text, "The variable it becomes."),
        optional("description", Kind::Text, "What it means, for models."),
        required(
            "type",
            Kind::Text,
            "`str`, `int`, `float`, `bool`, `dict`, `list`, `list[T]`, `dict[K, V]`, `literal:a|b`.",
        ),
        optional("default", Kind::Any, "The value when none is given; without it the parameter is required."),
    ],
);

const STORE_AS: Key = optional("store_as", Kind::Text, "Also keep the result under this name.");

pub(crate) static CALL: Shape = strict(
    "call",
    "Calls a tool.",
    &[
        required("call", Kind::Text, "The tool's name: a local tool, else a shared one."),
        optional("params", Kind::Documents, "Its arguments."),
        optional(
            "catch",
            Kind::TextOrTexts,
            "Errors that become the value `{error, message}`; `*` or `all` for any.",
        ),
        optional("ui_hint", Kind::Template, "What a person is shown in place of the tool's own hint."),
        STORE_AS,
    ],
);

pub(crate) static EVAL: Shape = strict(
    "eval",
    "Evaluates a value.",
    &[required("eval", Kind::Document, "Any value; every text in it is a template."), STORE_AS],
);

pub(crate) static IF: Shape = strict(
    "if",
    "Takes one of two ways.",
    &[
        required("if", Kind::Template, "The condition, by Python's rules of truth."),
        required("then", Kind::Body, "What to do when it holds."),
        optional("else", Kind::Body, "What to do otherwise; without it the result is null."),
        STORE_AS,
    ],
);

pub(crate) static EACH: Shape = strict(
    "for_each",
    "Does something for each element.",
    &[
        required("for_each", Kind::Document, "A list, a dict, or a single value."),
        required("do", Kind::Body, "What to do; `${_}` is the element and, for dicts, `${key}` its key."),
        optional("parallelism", Kind::Count, "How many elements are worked on at once."),
        STORE_AS,
    ],
);

pub(crate) static MATCH: Shape = strict(
    "match",
    "Takes the first way that fits a text.",
    &[
        required("match", Kind::Template, "The value to look at."),
        optional("trim", Kind::Flag, "Whether to drop blanks around it first."),
        required("matchers", Kind::Matchers, "The ways, tried in order."),
        required("default", Kind::Body, "What to do when none fits, or the one that fits gives null."),
        STORE_AS,
    ],
);

pub(crate) static MATCHER: Shape = strict(
    "matcher",
    "One way of a `match`.",
    &[
        optional("case", Kind::Text, "The text the value must equal."),
        optional("pattern", Kind::Text, "The regular expression the whole text must match."),
        required("then", Kind::Body, "What to do."),
    ],
);

pub(crate) static SCRIPT: Shape = strict(
    "starlark",
    "Runs a script.",
    &[
        required(
            "starlark",
            Kind::Text,
            "The script; its result is the variable `result`, else what `run()` returns.",
        ),
        STORE_AS,
    ],
);

/// The statements, by the key that tells them apart.
pub(crate) static STATEMENTS: &[&Shape] = &[&CALL, &EVAL, &IF, &EACH, &MATCH, &SCRIPT];

/// The definitions of tools, by the key that tells them apart.
pub(crate) static DEFINITIONS: &[(&str, &Shape)] =
    &[("import_tool", &IMPORT_TOOL), ("import_tools", &IMPORT_TOOLS), ("do", &CUSTOM)];

/// Every shape, for the schema and the reference page.
pub(crate) static ALL: &[&Shape] = &[
    &FILE,
    &ENV,
    &SERVER_STDIO,
    &SERVER_HTTP,
    &SHARED,
    &CHAT,
    &CLI,
    &IMPORT_TOOL,
    &IMPORT_TOOLS,
    &CUSTOM,
    &INPUT,
    &CALL,
    &EVAL,
    &IF,
    &EACH,
    &MATCH,
    &MATCHER,
    &SCRIPT,
];

/// Checks a node against a shape: it is a map, its keys are known, the required ones are there, and simple values are of
/// the right kind. Bodies, definitions and the like are checked where they are built. False when the node is no map.
pub(crate) fn check(problems: &mut Problems, node: &Node, shape: &Shape) -> bool {
    let Data::Map(entries) = &node.data else {
        if !matches!(node.data, Data::Bad) {
            problems.error(node.place, format!("{} is a map, not {}", with_article(shape.name), node.kind()));
        }
        return false;
    };
    for (key, value) in entries {
        let name = key.key_text();
        match shape.keys.iter().find(|known| known.name == name) {
            Some(known) => check_kind(problems, value, known, shape),
            None => unknown_key(problems, key, &name, shape),
        }
    }
    for key in shape.keys.iter().filter(|key| key.needed == Needed::Required) {
        if node.get(key.name).is_none() {
            problems.error(node.place, format!("{} needs the key `{}`", with_article(shape.name), key.name));
        }
    }
    true
}

fn unknown_key(problems: &mut Problems, key: &Node, name: &str, shape: &Shape) {
    let message =
        format!("{} has no key `{}`", with_article(shape.name), toolwright_core::text::clip(name, 80));
    let names = shape.keys.iter().map(|key| key.name);
    let hint = match nearest(name, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the keys are: {}", names.collect::<Vec<_>>().join(", ")),
    };
    match shape.unknown {
        Unknown::Error => problems.error_hint(key.place, message, hint),
        Unknown::Warning => problems.warn_hint(key.place, format!("{message}; it is ignored"), hint),
    }
}

fn check_kind(problems: &mut Problems, node: &Node, key: &Key, shape: &Shape) {
    if matches!(node.data, Data::Bad) {
        return;
    }
    // Null stands for a key that is not there, except where any value will do.
    if matches!(node.data, Data::Null) && key.needed == Needed::Optional {
        return;
    }
    let text = |node: &Node| matches!(node.data, Data::Text(_) | Data::Bad);
    let wanted = match key.kind {
        Kind::Any | Kind::Document => return,
        Kind::Text | Kind::Template => (!text(node)).then_some("text"),
        Kind::Flag => (!matches!(node.data, Data::Bool(_))).then_some("true or false"),
        Kind::Count => (!matches!(node.data, Data::Int(_))).then_some("an integer"),
        Kind::Documents | Kind::TemplateMap => (!matches!(node.data, Data::Map(_))).then_some("a map"),
        Kind::Texts | Kind::Templates => match &node.data {
            Data::List(items) if items.iter().all(text) => None,
            _ => Some("a list of texts"),
        },
        Kind::TextOrTexts => match &node.data {
            Data::Text(_) => None,
            Data::List(items) if items.iter().all(text) => None,
            _ => Some("text or a list of texts"),
        },
        Kind::Hint => (!text(node) && !matches!(node.data, Data::Bool(_))).then_some("text, true or false"),
        Kind::JsonOutput => match &node.data {
            Data::Bool(_) => None,
            Data::Text(word) if &**word == "pretty" => None,
            _ => Some("true, false or `pretty`"),
        },
        Kind::Word(words) => {
            let known = node.text().is_some_and(|text| words.contains(&&**text));
            if !known {
                let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                problems.error(node.place, format!("`{}` is one of {}", key.name, words.join(", ")));
            }
            return;
        }
        Kind::Object(inner) => {
            check(problems, node, inner);
            return;
        }
        Kind::Named(inner) => match &node.data {
            Data::Map(entries) => {
                for (_, value) in entries {
                    if !matches!(value.data, Data::Null) {
                        check(problems, value, inner);
                    }
                }
                None
            }
            _ => Some("a map"),
        },
        Kind::Servers => {
            check_servers(problems, node);
            return;
        }
        Kind::Body | Kind::Inputs | Kind::Definitions | Kind::References | Kind::Matchers => match key.kind {
            Kind::Body => return,
            _ => (!matches!(node.data, Data::List(_))).then_some("a list"),
        },
    };
    if let Some(wanted) = wanted {
        let message =
            format!("`{}` of {} is {wanted}, not {}", key.name, with_article(shape.name), node.kind());
        problems.error(node.place, message);
    }
}

fn check_servers(problems: &mut Problems, node: &Node) {
    let Data::Map(entries) = &node.data else {
        problems.error(node.place, format!("`mcp` is a map from names to servers, not {}", node.kind()));
        return;
    };
    for (name, server) in entries {
        match server.get("transport").and_then(Node::text).map(|text| &**text) {
            Some("stdio") => {
                check(problems, server, &SERVER_STDIO);
            }
            Some("streamable_http") => {
                check(problems, server, &SERVER_HTTP);
            }
            _ => problems.error_hint(
                server.get("transport").map_or(server.place, |node| node.place),
                format!("the MCP server `{}` has no transport we know", name.key_text()),
                "use `transport: stdio` or `transport: streamable_http`",
            ),
        }
    }
}

/// The name of a shape with an article before it, for messages.
fn with_article(name: &str) -> String {
    match name {
        "shared" | "chat" | "cli" | "if" | "call" | "eval" | "for_each" | "match" | "starlark"
        | "import_tool" | "import_tools" => format!("`{name}`"),
        "file" => "the file".to_owned(),
        _ if name.starts_with(['a', 'e', 'i', 'o', 'u', 'M']) => format!("an {name}"),
        _ => format!("a {name}"),
    }
}
