//! The shapes of a tool file: which keys stand where, what they hold, and what they are for.
//!
//! These tables are the one definition of the format. The loader checks files against them, the JSON Schema
//! for editors and the reference page are written from them. What the values mean is decided in `build`.

use crate::shape::{Key, Kind, Shape, Unknown, optional, required, strict};

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
            "prompts",
            Kind::Definitions,
            "Prompts that `serve` offers to MCP clients, written like tools: the result is what the prompt says.",
        ),
        optional(
            "resources",
            Kind::Texts,
            "Files that `serve` lets MCP clients read: paths and patterns, relative to the file.",
        ),
        optional(
            "models",
            Kind::Any,
            "What the names of models in `model_ref` stand for: a map of names to `vendor/model` or to a map with `model`, address, options and price; or a list of such maps with a `name`.",
        ),
        optional("policy", Kind::Any, "Approval rules."),
        optional("limits", Kind::Object(&LIMITS), "What a run may spend, and how much it does at once."),
        optional(
            "sandbox",
            Kind::Any,
            "Where tools that start programs run: a kind (`process`, `docker:IMAGE`, `podman:IMAGE`, `local`, `none`), or a map of `kind`, `read`, `write`, `network`, `mask`, `protect`, `env`, `limits`, `require`, `files` and `setup`.",
        ),
        optional(
            "sandboxes",
            Kind::Any,
            "More sandboxes: a map of names to what `sandbox` may be. A tool works in one with `config: {sandbox: NAME}`.",
        ),
    ],
);

static LIMITS: Shape = strict(
    "limits",
    "What a run may spend; a limit that is left out does not hold, unless another is named here.",
    &[
        optional("turns", Kind::Whole(0), "Answers of the model."),
        optional("messages", Kind::Whole(0), "Messages in the conversation."),
        optional("tool_calls", Kind::Whole(0), "Calls of tools, those that tools make included."),
        optional(
            "repeats",
            Kind::Whole(0),
            "The same calls asked for again and again: one more is refused, the next ends the run.",
        ),
        optional("tokens", Kind::Whole(0), "Tokens read and written."),
        optional("cost", Kind::Number, "Money, in US dollars."),
        optional("wall_time", Kind::Number, "Seconds by the clock."),
        optional("working_time", Kind::Number, "Seconds by the clock, less those spent waiting."),
        optional(
            "max_parallel",
            Kind::Whole(1),
            "Calls of one message that run at the same time; 16 unless said.",
        ),
        optional(
            "max_output",
            Kind::Whole(0),
            "Bytes of text of one call that a model is given, its beginning and its end; 16384 unless said, and 0 is no limit.",
        ),
        optional(
            "steps",
            Kind::Whole(1),
            "Steps of one expression, about one for each operator; 2,000,000 unless said. A script may take ten times as many.",
        ),
        optional(
            "memory",
            Kind::Whole(1),
            "Bytes one expression allocates, what it gives back included; 24 MiB unless said. A script may take twice as many.",
        ),
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

const SERVER_REQUIRED: Key = optional(
    "required",
    Kind::Flag,
    "Whether the file is of no use without it; `false` leaves its tools out when it cannot be reached.",
);

const SERVER_SAMPLING: Key = optional(
    "sampling",
    Kind::Text,
    "The model it may ask; the policy decides about each question as about a call of `mcp_sampling`.",
);

const SERVER_READING: Key = optional(
    "reading_tools",
    Kind::Flag,
    "Whether its resources and prompts can be read with tools: `list_resources`, `read_resource`, `list_prompts`, `get_prompt`.",
);

const SERVER_CALL_TIMEOUT: Key = optional(
    "call_timeout",
    Kind::Number,
    "How many seconds a call of one of its tools may take; 300 unless given.",
);

const SERVER_TOOL_TIMEOUTS: Key = optional(
    "tool_timeouts",
    Kind::NumberMap,
    "The same for single tools, by name or pattern; the first that matches counts.",
);

pub(crate) static SERVER_STDIO: Shape = strict(
    "MCP server (stdio)",
    "A server that is started as a program.",
    &[
        required("transport", Kind::Word(&["stdio"]), "How to reach the server."),
        required("command", Kind::Text, "The program to start."),
        optional("args", Kind::Templates, "Its arguments."),
        optional("env", Kind::TemplateMap, "Its environment variables."),
        optional("cwd", Kind::Template, "The folder it runs in."),
        optional(
            "sandbox",
            Kind::Document,
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
            Kind::Word(&["streamable_http", "sse"]),
            "How to reach the server; `sse` is the transport of 2024-11-05.",
        ),
        required("url", Kind::Text, "Its address."),
        optional("headers", Kind::TemplateMap, "Headers to send."),
        optional("timeout", Kind::Number, "How many seconds a connection may take; 10 unless given."),
        optional("sse_read_timeout", Kind::Number, "How many seconds it may be silent; 300 unless given."),
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
const PARALLEL: Key = optional(
    "parallel",
    Kind::Flag,
    "Whether calls may run beside others that a model asks for together; a tool made of statements may.",
);
const CONFIG: Key = optional("config", Kind::Map, "Settings of the imported tool.");

pub(crate) static IMPORT_TOOL: Shape = strict(
    "import_tool",
    "One tool from elsewhere.",
    &[
        required("import_tool", Kind::Text, "A built-in's name, `mcp:server/tool`, or `toolkit/tool`."),
        optional("name", Kind::Text, "Another name for it."),
        optional("description", Kind::Text, "Another description for models."),
        optional("parameters", Kind::TextMap, "Other descriptions of its parameters, by name."),
        PARALLEL,
        CONFIG,
        RETURN_DIRECT,
        CONFIDENTIAL,
        CONFIRMATION,
        HINT,
        HINT_ARGS,
    ],
);

pub(crate) static MODEL_TOOL: Shape = strict(
    "config of a model",
    "The `config` of `import_tool: build_llm_tool`.",
    &[
        optional("model_ref", Kind::Text, "The model: a name of `models`, or `vendor/model`."),
        optional(
            "system_message",
            Kind::Template,
            "What the model is told first; over `env` and the shared data.",
        ),
        optional("tools", Kind::References, "The tools the model may call."),
        optional(
            "extract_json",
            Kind::ExtractJson,
            "Which fenced JSON of the answer is the result; `true` is `first`.",
        ),
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
            "output",
            Kind::Any,
            "What its result is: a type, as in `input`, or a JSON Schema. Another result is an error.",
        ),
        optional(
            "annotations",
            Kind::Object(&ANNOTATIONS),
            "What it does to the world, for policies and clients.",
        ),
        optional(
            "tools",
            Kind::Definitions,
            "Tools only this one can call; they hide shared ones of the same name.",
        ),
        required("do", Kind::Body, "A statement or a list of them; the last result is the tool's."),
        PARALLEL,
        RETURN_DIRECT,
        CONFIDENTIAL,
        CONFIRMATION,
        HINT,
        HINT_ARGS,
        optional("config", Kind::Object(&CUSTOM_CONFIG), "How its calls are treated."),
    ],
};

/// llm-workers ignores a `config` here, so what it has for others is a warning.
pub(crate) static CUSTOM_CONFIG: Shape = Shape {
    name: "config of a tool",
    about: "The `config` of a tool made of statements.",
    unknown: Unknown::Warning,
    keys: &[
        optional("timeout", Kind::Number, "How many seconds a call may take, from 0.001 to 86400."),
        CONFIRMATION,
    ],
};

pub(crate) static ANNOTATIONS: Shape = strict(
    "annotations",
    "What a tool does to the world. Policies and MCP clients go by it; nobody checks it.",
    &[
        optional("title", Kind::Text, "A name for people."),
        optional("read_only", Kind::Flag, "It changes nothing."),
        optional("destructive", Kind::Flag, "It may destroy something."),
        optional("idempotent", Kind::Flag, "Calling it twice is the same as calling it once."),
        optional("open_world", Kind::Flag, "It reaches things outside, such as the internet."),
    ],
);

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
        optional(
            "pattern",
            Kind::Text,
            "The regular expression the whole text must match. Its groups are `match0`, `match1`, ... in `then`, and together `_match_groups`.",
        ),
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
