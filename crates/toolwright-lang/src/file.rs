//! The shapes of a tool file: which keys stand where, what they hold, and what they are for.
//!
//! These tables are the one definition of the format. The loader checks files against them, the JSON Schema
//! for editors and the reference page are written from them. What the values mean is decided in `build`.

use crate::shape::{Shape, ShapeKey, ShapeKind, Unknown, optional, required, strict};

pub(crate) static FILE: Shape = strict(
    "file",
    "The top of a tool file.",
    &[
        optional("env", ShapeKind::Named(&ENV), "Environment variables the file uses."),
        optional("mcp", ShapeKind::Servers, "MCP servers whose tools the file uses."),
        optional(
            "python",
            ShapeKind::Object(&PYTHON),
            "How the files of Python functions run that the file imports with `python:FILE.py`.",
        ),
        optional("shared", ShapeKind::Object(&SHARED), "Data and tools for the whole file."),
        optional("tools", ShapeKind::Definitions, "The same as `shared.tools`."),
        optional("chat", ShapeKind::Object(&CHAT), "The chat program."),
        optional("cli", ShapeKind::Object(&CLI), "The batch program: one run for each input."),
        optional(
            "prompts",
            ShapeKind::Definitions,
            "Prompts that `serve` offers to MCP clients, written like tools: the result is what the prompt says.",
        ),
        optional(
            "resources",
            ShapeKind::Texts,
            "Files that `serve` lets MCP clients read: paths and patterns, relative to the file.",
        ),
        optional(
            "title",
            ShapeKind::Text,
            "What `serve` calls itself, for people: a name for this set of tools.",
        ),
        optional(
            "instructions",
            ShapeKind::Text,
            "What `serve` says to the model of an MCP client about these tools: when and how to use them.",
        ),
        optional(
            "models",
            ShapeKind::Any,
            "What the names of models in `model_ref` stand for: a map of names to `vendor/model` or to a map with `model`, address, options and price; or a list of such maps with a `name`.",
        ),
        optional("policy", ShapeKind::Any, "Approval rules."),
        optional("limits", ShapeKind::Object(&LIMITS), "What a run may spend, and how much it does at once."),
        optional(
            "sandbox",
            ShapeKind::Any,
            "Where tools that start programs run: a kind (`process`, `docker:IMAGE`, `podman:IMAGE`, `local`, `none`), or a map of `kind`, `read`, `write`, `network`, `mask`, `protect`, `env`, `limits`, `require`, `changes`, `files` and `setup`.",
        ),
        optional(
            "sandboxes",
            ShapeKind::Any,
            "More sandboxes: a map of names to what `sandbox` may be. A tool works in one with `config: {sandbox: NAME}`.",
        ),
    ],
);

static PYTHON: Shape = strict(
    "python",
    "Python functions run in a worker of their own, in a sandbox that shows the folder of their file and nothing to write or reach.",
    &[
        optional(
            "interpreter",
            ShapeKind::Text,
            "The interpreter: a path relative to the file, or a program; without one a `.venv` beside or above the Python file, then `VIRTUAL_ENV`, then `python3`.",
        ),
        optional("read", ShapeKind::Texts, "More folders and files to show, relative to the file."),
        optional("write", ShapeKind::Texts, "Folders that may be written, relative to the file."),
        optional(
            "network",
            ShapeKind::Any,
            "What may be reached: `off`, `full`, or a list of hosts, as in `sandbox`.",
        ),
        optional("env", ShapeKind::Texts, "Names of environment variables that the functions see."),
        optional("timeout", ShapeKind::Number, "Seconds that a call may take; 60 unless said."),
        optional(
            "import_timeout",
            ShapeKind::Number,
            "Seconds that the import of a file may take; 60 unless said.",
        ),
    ],
);

static LIMITS: Shape = strict(
    "limits",
    "What a run may spend; a limit that is left out does not hold, unless another is named here.",
    &[
        optional("turns", ShapeKind::Whole(0), "Answers of the model."),
        optional("messages", ShapeKind::Whole(0), "Messages in the conversation."),
        optional("tool_calls", ShapeKind::Whole(0), "Calls of tools, those that tools make included."),
        optional(
            "repeats",
            ShapeKind::Whole(0),
            "The same calls asked for again and again: one more is refused, the next ends the run.",
        ),
        optional("tokens", ShapeKind::Whole(0), "Tokens read and written."),
        optional("cost", ShapeKind::Number, "Money, in US dollars."),
        optional("wall_time", ShapeKind::Number, "Seconds by the clock."),
        optional("working_time", ShapeKind::Number, "Seconds by the clock, less those spent waiting."),
        optional(
            "max_parallel",
            ShapeKind::Whole(1),
            "Calls of one message that run at the same time; 16 unless said.",
        ),
        optional(
            "max_output",
            ShapeKind::Whole(0),
            "Bytes of text of one call that a model is given, its beginning and its end; by default 16384; 0 means unlimited.",
        ),
        optional(
            "steps",
            ShapeKind::Whole(1),
            "Steps of one expression, about one for each operator; 2,000,000 unless said. A script may take ten times as many.",
        ),
        optional(
            "memory",
            ShapeKind::Whole(1),
            "Bytes one expression allocates, what it gives back included; 24 MiB unless said. A script may take twice as many.",
        ),
    ],
);

static ENV: Shape = strict(
    "environment variable",
    "A variable the file uses as `${env.NAME}`.",
    &[
        optional("description", ShapeKind::Template, "What a person is asked when it is not set."),
        optional("persistent", ShapeKind::Flag, "Whether an answer is kept in the `.env` file."),
        optional(
            "secret",
            ShapeKind::Flag,
            "Whether the value is hidden while typed, in records and from models.",
        ),
        optional(
            "secret_visible_to_model",
            ShapeKind::Flag,
            "Whether models and people may read a secret in results.",
        ),
    ],
);

const SCOPES: ShapeKind = ShapeKind::Word(&["none", "shared", "chat"]);

const SERVER_REQUIRED: ShapeKey = optional(
    "required",
    ShapeKind::Flag,
    "Whether the file is of no use without it; `false` leaves its tools out when it cannot be reached.",
);

const SERVER_SAMPLING: ShapeKey = optional(
    "sampling",
    ShapeKind::Text,
    "The model it may ask; the policy decides about each question as about a call of `mcp_sampling`.",
);

const SERVER_READING: ShapeKey = optional(
    "reading_tools",
    ShapeKind::Flag,
    "Whether its resources and prompts can be read with tools: `list_resources`, `read_resource`, `list_prompts`, `get_prompt`.",
);

const SERVER_CALL_TIMEOUT: ShapeKey = optional(
    "call_timeout",
    ShapeKind::Number,
    "How many seconds a call of one of its tools may take; 600 unless given, begun anew by progress.",
);

const SERVER_TOOL_TIMEOUTS: ShapeKey = optional(
    "tool_timeouts",
    ShapeKind::NumberMap,
    "The same for single tools, by name or pattern; the first that matches counts.",
);

pub(crate) static SERVER_STDIO: Shape = strict(
    "MCP server (stdio)",
    "A server that is started as a program.",
    &[
        required("transport", ShapeKind::Word(&["stdio"]), "How to reach the server."),
        required("command", ShapeKind::Text, "The program to start."),
        optional("args", ShapeKind::Templates, "Its arguments."),
        optional("env", ShapeKind::TemplateMap, "Its environment variables."),
        optional("cwd", ShapeKind::Template, "The folder it runs in."),
        optional(
            "sandbox",
            ShapeKind::Document,
            "The sandbox it runs in, as a policy: `{}` shows it nothing but the system and its own program.",
        ),
        SERVER_CALL_TIMEOUT,
        SERVER_TOOL_TIMEOUTS,
        SERVER_READING,
        SERVER_REQUIRED,
        SERVER_SAMPLING,
        required("auto_import_scope", SCOPES, "Where all its tools appear as `<server>_<tool>`."),
    ],
);

pub(crate) static SERVER_HTTP: Shape = strict(
    "MCP server (HTTP)",
    "A server that is reached over HTTP.",
    &[
        required(
            "transport",
            ShapeKind::Word(&["streamable_http", "sse"]),
            "How to reach the server; `sse` is the transport of 2024-11-05.",
        ),
        required("url", ShapeKind::Text, "Its address."),
        optional("headers", ShapeKind::TemplateMap, "Headers to send."),
        optional("timeout", ShapeKind::Number, "How many seconds a connection may take; 10 unless given."),
        optional(
            "sse_read_timeout",
            ShapeKind::Number,
            "How many seconds it may be silent; 300 unless given.",
        ),
        SERVER_CALL_TIMEOUT,
        SERVER_TOOL_TIMEOUTS,
        SERVER_READING,
        SERVER_REQUIRED,
        SERVER_SAMPLING,
        required("auto_import_scope", SCOPES, "Where all its tools appear as `<server>_<tool>`."),
    ],
);

static SHARED: Shape = strict(
    "shared",
    "What everything in the file can use.",
    &[
        optional(
            "data",
            ShapeKind::Documents,
            "Values by name, evaluated once in order; later ones see earlier ones.",
        ),
        optional("tools", ShapeKind::Definitions, "Tools, made in order; a flow can call the ones above it."),
    ],
);

static CHAT: Shape = strict(
    "chat",
    "The chat program.",
    &[
        optional("model_ref", ShapeKind::Text, "The model to talk to; `default` unless given."),
        optional("system_message", ShapeKind::Template, "Instructions for the model."),
        optional("tools", ShapeKind::References, "The tools the model may call."),
        optional("default_prompt", ShapeKind::Text, "What the first input starts with."),
        optional("user_banner", ShapeKind::Text, "Markdown shown at the start."),
    ],
);

static CLI: Shape = strict(
    "cli",
    "The batch program.",
    &[
        required(
            "process_input",
            ShapeKind::Word(&["one_by_one", "all_as_list"]),
            "One run for each input, or one for all.",
        ),
        optional("tools", ShapeKind::References, "Tools for the flow, beside the shared ones."),
        optional(
            "json_output",
            ShapeKind::JsonOutput,
            "Print results as JSON: `true` on one line, `pretty` indented.",
        ),
        required("do", ShapeKind::Body, "The flow; `${input}` is the input."),
    ],
);

const RETURN_DIRECT: ShapeKey =
    optional("return_direct", ShapeKind::Flag, "The result goes to the user as it is, and the turn ends.");
const CONFIDENTIAL: ShapeKey = optional(
    "confidential",
    ShapeKind::Flag,
    "The result is never shown to a model; implies `return_direct`.",
);
const CONFIRMATION: ShapeKey =
    optional("require_confirmation", ShapeKind::Flag, "Whether a person must confirm each call.");
const HINT: ShapeKey =
    optional("ui_hint", ShapeKind::Hint, "What a person is shown during a call; `false` shows nothing.");
const HINT_ARGS: ShapeKey =
    optional("ui_hint_args", ShapeKind::Texts, "Patterns of the arguments shown when `ui_hint` is `true`.");
const PARALLEL: ShapeKey = optional(
    "parallel",
    ShapeKind::Flag,
    "Whether calls may run beside others that a model asks for together; a tool made of statements may.",
);
const TIMEOUT: ShapeKey = optional(
    "timeout",
    ShapeKind::Timeout,
    "How many seconds a call may take, less the time it waits for a person; `none` for no bound.",
);
const CONFIG: ShapeKey = optional("config", ShapeKind::Map, "Settings of the imported tool.");

pub(crate) static IMPORT_TOOL: Shape = strict(
    "import_tool",
    "One tool from elsewhere.",
    &[
        required("import_tool", ShapeKind::Text, "A built-in's name, `mcp:server/tool`, or `toolkit/tool`."),
        optional("name", ShapeKind::Text, "Another name for it."),
        optional("description", ShapeKind::Text, "Another description for models."),
        optional("parameters", ShapeKind::TextMap, "Other descriptions of its parameters, by name."),
        PARALLEL,
        CONFIG,
        RETURN_DIRECT,
        CONFIDENTIAL,
        CONFIRMATION,
        TIMEOUT,
        HINT,
        HINT_ARGS,
    ],
);

pub(crate) static MODEL_TOOL: Shape = strict(
    "config of a model",
    "The `config` of `import_tool: build_llm_tool`.",
    &[
        optional("model_ref", ShapeKind::Text, "The model: a name of `models`, or `vendor/model`."),
        optional(
            "system_message",
            ShapeKind::Template,
            "What the model is told first; over `env` and the shared data.",
        ),
        optional("tools", ShapeKind::References, "The tools the model may call."),
        optional(
            "extract_json",
            ShapeKind::ExtractJson,
            "Which fenced JSON of the answer is the result; `true` is `first`.",
        ),
    ],
);

pub(crate) static IMPORT_TOOLS: Shape = strict(
    "import_tools",
    "Many tools from elsewhere.",
    &[
        required("import_tools", ShapeKind::Text, "A toolkit's name, `mcp:SERVER` or `python:FILE.py`."),
        optional("prefix", ShapeKind::Text, "What each name gets in front; nothing unless said."),
        optional("filter", ShapeKind::Texts, "Patterns of the tools to take; `!` takes away."),
        optional("force_ui_hints_for", ShapeKind::Texts, "Patterns of tools that show a hint."),
        optional("force_no_ui_hints_for", ShapeKind::Texts, "Patterns of tools that show none."),
        optional("ui_hints_args", ShapeKind::Texts, "Patterns of the arguments shown in hints."),
        optional(
            "force_require_confirmation_for",
            ShapeKind::Texts,
            "Patterns of tools a person must confirm.",
        ),
        optional("force_no_confirmation_for", ShapeKind::Texts, "Patterns of tools nobody is asked about."),
    ],
);

pub(crate) static CUSTOM: Shape = Shape {
    name: "tool",
    about: "A tool made of statements.",
    unknown: Unknown::Warning,
    keys: &[
        required("name", ShapeKind::Text, "The name models and flows call it by."),
        optional("description", ShapeKind::Text, "What it does and when to use it, for models."),
        optional("input", ShapeKind::Inputs, "Its parameters."),
        optional(
            "output",
            ShapeKind::Any,
            "What its result is: a type, as in `input`, or a JSON Schema. Another result is an error.",
        ),
        optional(
            "annotations",
            ShapeKind::Object(&ANNOTATIONS),
            "What it does to the world, for policies and clients.",
        ),
        optional(
            "tools",
            ShapeKind::Definitions,
            "Tools only this one can call; they hide shared ones of the same name.",
        ),
        required("do", ShapeKind::Body, "A statement or a list of them; the last result is the tool's."),
        PARALLEL,
        RETURN_DIRECT,
        CONFIDENTIAL,
        CONFIRMATION,
        TIMEOUT,
        HINT,
        HINT_ARGS,
        optional("config", ShapeKind::Object(&CUSTOM_CONFIG), "How its calls are treated."),
    ],
};

/// llm-workers ignores a `config` here, so what it has for others is a warning.
pub(crate) static CUSTOM_CONFIG: Shape = Shape {
    name: "config of a tool",
    about: "The `config` of a tool made of statements.",
    unknown: Unknown::Warning,
    keys: &[
        optional("timeout", ShapeKind::Number, "How many seconds a call may take, from 0.001 to 86400."),
        CONFIRMATION,
    ],
};

pub(crate) static ANNOTATIONS: Shape = strict(
    "annotations",
    "What a tool does to the world. Policies and MCP clients go by it; nobody checks it.",
    &[
        optional("title", ShapeKind::Text, "A name for people."),
        optional("read_only", ShapeKind::Flag, "It changes nothing."),
        optional("destructive", ShapeKind::Flag, "It may destroy something."),
        optional("idempotent", ShapeKind::Flag, "Calling it twice is the same as calling it once."),
        optional("open_world", ShapeKind::Flag, "It reaches things outside, such as the internet."),
    ],
);

pub(crate) static INPUT: Shape = strict(
    "input",
    "One parameter of a tool.",
    &[
        required("name", ShapeKind::Text, "The variable it becomes."),
        optional("description", ShapeKind::Text, "What it means, for models."),
        required(
            "type",
            ShapeKind::Text,
            "`str`, `int`, `float`, `bool`, `dict`, `list`, `list[T]`, `dict[K, V]`, `literal:a|b`.",
        ),
        optional(
            "default",
            ShapeKind::Any,
            "The value when none is given; without it the parameter is required.",
        ),
    ],
);

const STORE_AS: ShapeKey = optional("store_as", ShapeKind::Text, "Also keep the result under this name.");

pub(crate) static CALL: Shape = strict(
    "call",
    "Calls a tool.",
    &[
        required("call", ShapeKind::Text, "The tool's name: a local tool, else a shared one."),
        optional("params", ShapeKind::Documents, "Its arguments."),
        optional(
            "catch",
            ShapeKind::TextOrTexts,
            "Errors that become the value `{error, message}`; `*` or `all` for any.",
        ),
        optional("ui_hint", ShapeKind::Template, "What a person is shown in place of the tool's own hint."),
        TIMEOUT,
        STORE_AS,
    ],
);

pub(crate) static EVAL: Shape = strict(
    "eval",
    "Evaluates a value.",
    &[required("eval", ShapeKind::Document, "Any value; every text in it is a template."), STORE_AS],
);

pub(crate) static IF: Shape = strict(
    "if",
    "Takes one of two ways.",
    &[
        required("if", ShapeKind::Template, "The condition, by Python's rules of truth."),
        required("then", ShapeKind::Body, "What to do when it holds."),
        optional("else", ShapeKind::Body, "What to do otherwise; without it the result is null."),
        STORE_AS,
    ],
);

pub(crate) static EACH: Shape = strict(
    "for_each",
    "Does something for each element.",
    &[
        required("for_each", ShapeKind::Document, "A list, a dict, or a single value."),
        required(
            "do",
            ShapeKind::Body,
            "What to do; `${_}` is the element and, for dicts, `${key}` its key.",
        ),
        optional("parallelism", ShapeKind::Count, "How many elements are worked on at once."),
        STORE_AS,
    ],
);

pub(crate) static MATCH: Shape = strict(
    "match",
    "Takes the first way that fits a text.",
    &[
        required("match", ShapeKind::Template, "The value to look at."),
        optional("trim", ShapeKind::Flag, "Whether to drop blanks around it first."),
        required("matchers", ShapeKind::Matchers, "The ways, tried in order."),
        required("default", ShapeKind::Body, "What to do when none fits, or the one that fits gives null."),
        STORE_AS,
    ],
);

pub(crate) static MATCHER: Shape = strict(
    "matcher",
    "One way of a `match`.",
    &[
        optional("case", ShapeKind::Text, "The text the value must equal."),
        optional(
            "pattern",
            ShapeKind::Text,
            "The regular expression the whole text must match. Its groups are `match0`, `match1`, ... in `then`, and together `_match_groups`.",
        ),
        required("then", ShapeKind::Body, "What to do."),
    ],
);

pub(crate) static SCRIPT: Shape = strict(
    "starlark",
    "Runs a script.",
    &[
        required(
            "starlark",
            ShapeKind::Text,
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
    &PYTHON,
    &LIMITS,
    &ENV,
    &SERVER_STDIO,
    &SERVER_HTTP,
    &SHARED,
    &CHAT,
    &CLI,
    &IMPORT_TOOL,
    &MODEL_TOOL,
    &IMPORT_TOOLS,
    &CUSTOM,
    &CUSTOM_CONFIG,
    &INPUT,
    &ANNOTATIONS,
    &CALL,
    &EVAL,
    &IF,
    &EACH,
    &MATCH,
    &MATCHER,
    &SCRIPT,
];
