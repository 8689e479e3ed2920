//! The keys of a tool file and what they open. A key that is missing here is shown whole on the trust screen.

use serde_json::Value;

use super::AuthorityReader;

/// What a key means for trust.
#[derive(Clone, Copy)]
pub(super) enum KeyMeaning {
    /// It opens nothing: text for models and people, data, or something that only restricts.
    Inert,
    /// A map of this shape.
    Shape(&'static str),
    /// A list of this shape.
    List(&'static str),
    /// A map from names to this shape.
    Map(&'static str),
    /// It is read by a function of its own.
    Read(fn(&mut AuthorityReader, &str, &Value)),
}

/// ShapeKeys whose texts are for people and models: an address in them is reached by nobody.
pub(super) const FOR_PEOPLE: [&str; 12] = [
    "description",
    "title",
    "instructions",
    "system_message",
    "default_prompt",
    "user_banner",
    "ui_hint",
    "reason",
    "parameters",
    "thought_description",
    "prefix",
    "pattern",
];

type ShapeKeys = &'static [(&'static str, KeyMeaning)];

/// What the keys of each shape open. Shapes that are read as a whole have their keys here too, so that new
/// ones are noticed.
pub(super) const FORMAT: &[(&str, ShapeKeys)] = {
    use KeyMeaning::{Inert, List, Map, Read, Shape};
    &[
        (
            "file",
            &[
                // What clients of `serve` show, and their models read.
                ("title", Inert),
                ("instructions", Inert),
                ("env", Read(AuthorityReader::variables)),
                ("mcp", Map("server")),
                ("python", Shape("python")),
                ("scripts", Shape("scripts")),
                ("openapi", Map("openapi")),
                ("shared", Shape("shared")),
                ("tools", List("definition")),
                ("chat", Shape("chat")),
                ("cli", Shape("cli")),
                ("prompts", List("definition")),
                ("resources", Read(AuthorityReader::resources)),
                ("models", Read(AuthorityReader::models)),
                ("policy", Read(AuthorityReader::policy)),
                ("limits", Shape("limits")),
                // It hides definitions from models and gives none.
                ("search", Inert),
                // Read as they were parsed.
                ("sandbox", Inert),
                ("sandboxes", Inert),
            ],
        ),
        (
            "limits",
            &[
                ("turns", Read(AuthorityReader::limit)),
                ("messages", Inert),
                ("tool_calls", Inert),
                ("repeats", Inert),
                ("tokens", Inert),
                ("cost", Inert),
                ("wall_time", Inert),
                ("working_time", Inert),
                ("max_parallel", Read(AuthorityReader::limit)),
                ("max_output", Read(AuthorityReader::limit)),
                ("steps", Read(AuthorityReader::limit)),
                ("memory", Read(AuthorityReader::limit)),
            ],
        ),
        (
            "python",
            &[
                ("interpreter", Read(AuthorityReader::python_setting)),
                ("read", Read(AuthorityReader::python_setting)),
                ("write", Read(AuthorityReader::python_setting)),
                ("network", Read(AuthorityReader::python_setting)),
                ("env", Read(AuthorityReader::python_setting)),
                ("isolate", Inert),
                ("timeout", Inert),
                ("import_timeout", Inert),
            ],
        ),
        ("scripts", &[("env", Read(AuthorityReader::script_setting)), ("timeout", Inert)]),
        (
            "search",
            &[("when", Inert), ("tools", Inert), ("tokens", Inert), ("keep", Inert), ("results", Inert)],
        ),
        (
            "openapi",
            &[
                ("base_url", Read(AuthorityReader::openapi_setting)),
                ("auth", Read(AuthorityReader::openapi_setting)),
                ("tags", Inert),
                ("methods", Inert),
                ("paths", Inert),
                ("operations", Inert),
                ("headers", Read(AuthorityReader::openapi_setting)),
                ("network", Read(AuthorityReader::openapi_setting)),
                ("select", Inert),
                ("pages", Inert),
                ("timeout", Inert),
                ("max_output", Inert),
            ],
        ),
        (
            "environment_variable",
            &[
                ("description", Inert),
                ("persistent", Inert),
                // Read with the variables as a whole.
                ("secret", Inert),
                ("secret_visible_to_model", Inert),
            ],
        ),
        (
            "mcp_server_stdio",
            &[
                ("transport", Inert),
                // Read with the server as a whole.
                ("command", Inert),
                ("args", Inert),
                ("env", Inert),
                ("cwd", Inert),
                ("sandbox", Inert),
                ("call_timeout", Inert),
                ("tool_timeouts", Inert),
                ("reading_tools", Inert),
                ("required", Inert),
                ("sampling", Read(AuthorityReader::asked_model)),
                ("auto_import_scope", Inert),
            ],
        ),
        (
            "mcp_server_http",
            &[
                ("transport", Inert),
                // Read with the server as a whole.
                ("url", Inert),
                ("headers", Inert),
                ("timeout", Inert),
                ("sse_read_timeout", Inert),
                ("call_timeout", Inert),
                ("tool_timeouts", Inert),
                ("reading_tools", Inert),
                ("required", Inert),
                ("sampling", Read(AuthorityReader::asked_model)),
                ("auto_import_scope", Inert),
            ],
        ),
        ("shared", &[("data", Inert), ("tools", List("definition"))]),
        (
            "chat",
            &[
                ("model_ref", Read(AuthorityReader::asked_model)),
                ("system_message", Inert),
                ("tools", List("definition")),
                ("default_prompt", Inert),
                ("user_banner", Inert),
            ],
        ),
        (
            "cli",
            &[
                ("process_input", Inert),
                ("tools", List("definition")),
                ("json_output", Inert),
                ("do", Shape("body")),
            ],
        ),
        (
            "import_tool",
            &[
                // Read with the import as a whole.
                ("import_tool", Inert),
                ("name", Inert),
                ("description", Inert),
                ("parameters", Inert),
                ("parallel", Inert),
                ("config", Inert),
                ("return_direct", Inert),
                ("confidential", Inert),
                ("require_confirmation", Inert),
                ("ui_hint", Inert),
                ("ui_hint_args", Inert),
                ("timeout", Read(AuthorityReader::call_time)),
            ],
        ),
        (
            "config_of_a_model",
            &[
                ("model_ref", Read(AuthorityReader::asked_model)),
                ("system_message", Inert),
                ("tools", List("definition")),
                ("extract_json", Inert),
            ],
        ),
        (
            "import_tools",
            &[
                ("import_tools", Read(AuthorityReader::toolkit)),
                ("prefix", Inert),
                ("filter", Inert),
                ("force_ui_hints_for", Inert),
                ("force_no_ui_hints_for", Inert),
                ("ui_hints_args", Inert),
                ("force_require_confirmation_for", Inert),
                ("force_no_confirmation_for", Read(AuthorityReader::unconfirmed)),
            ],
        ),
        (
            "tool",
            &[
                ("name", Inert),
                ("description", Inert),
                ("input", Inert),
                ("output", Inert),
                ("annotations", Inert),
                ("tools", List("definition")),
                ("do", Shape("body")),
                ("parallel", Inert),
                ("return_direct", Inert),
                ("confidential", Inert),
                // Read with the tool as a whole.
                ("require_confirmation", Inert),
                ("ui_hint", Inert),
                ("ui_hint_args", Inert),
                ("config", Shape("config_of_a_tool")),
                ("timeout", Read(AuthorityReader::call_time)),
            ],
        ),
        // Names and patterns refer to tools that are defined elsewhere.
        ("definition", &[("match", Inert)]),
        // `require_confirmation` is read with the tool as a whole.
        ("config_of_a_tool", &[("timeout", Inert), ("require_confirmation", Inert)]),
        ("input", &[("name", Inert), ("description", Inert), ("type", Inert), ("default", Inert)]),
        (
            "annotations",
            &[
                ("title", Inert),
                // Read with the tool as a whole.
                ("read_only", Inert),
                ("destructive", Inert),
                ("idempotent", Inert),
                ("open_world", Inert),
            ],
        ),
        (
            "call",
            &[
                ("call", Inert),
                ("params", Inert),
                ("catch", Inert),
                ("ui_hint", Inert),
                ("store_as", Inert),
                ("timeout", Read(AuthorityReader::call_time)),
            ],
        ),
        ("eval", &[("eval", Inert), ("store_as", Inert)]),
        ("if", &[("if", Inert), ("then", Shape("body")), ("else", Shape("body")), ("store_as", Inert)]),
        (
            "for_each",
            &[("for_each", Inert), ("do", Shape("body")), ("parallelism", Inert), ("store_as", Inert)],
        ),
        (
            "match",
            &[
                ("match", Inert),
                ("trim", Inert),
                ("matchers", List("matcher")),
                ("default", Shape("body")),
                ("store_as", Inert),
            ],
        ),
        ("matcher", &[("case", Inert), ("pattern", Inert), ("then", Shape("body"))]),
        ("starlark", &[("starlark", Inert), ("store_as", Inert)]),
    ]
};

/// The keys of a shape.
pub(super) fn keys(shape: &str) -> ShapeKeys {
    FORMAT.iter().find(|(name, _)| *name == shape).map(|(_, keys)| *keys).unwrap_or_default()
}

/// The shape that a value has where there are several, told apart by a key.
pub(super) fn alternative(shape: &str, value: &Value) -> Option<&'static str> {
    let has = |key: &str| value.get(key).is_some();
    let statements = ["call", "eval", "if", "for_each", "match", "starlark"];
    match shape {
        "server" if has("url") => Some("mcp_server_http"),
        "server" => Some("mcp_server_stdio"),
        "definition" if has("import_tool") => Some("import_tool"),
        "definition" if has("import_tools") => Some("import_tools"),
        "definition" if has("do") => Some("tool"),
        "body" if value.is_object() => Some("statement"),
        "statement" => statements.into_iter().find(|key| has(key)),
        _ => None,
    }
}
