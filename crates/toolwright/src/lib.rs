//! The tool runtime for language models: write a tool once, give it to any model or any MCP client; every
//! call is validated, approved, bounded and recorded, and what it runs can be sandboxed.
//!
//! ```
//! use serde_json::json;
//! use toolwright::{Run, ToolCall, Toolset, tool};
//!
//! /// Adds two numbers.
//! #[tool]
//! async fn add(
//!     /// First number.
//!     x: i64,
//!     /// Second number.
//!     y: i64,
//! ) -> i64 {
//!     x + y
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let run = Run::builder(Toolset::new().with(add())?).build()?;
//! let result = run.call(ToolCall::new("1", "add", json!({"x": 1, "y": 2}))).await?;
//! assert_eq!(result.to_text(), "3");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Where to look
//!
//! | you want to | look at |
//! | --- | --- |
//! | write a tool | [`#[tool]`](tool), [`#[toolset]`](toolset); by hand [`ToolDef`], [`ToolSpec`], [`Tool`] |
//! | take and give values | [`ToolContext`], [`ToolOutput`], [`Content`], [`Media`], [`Json`]; state in [`State`], [`Stored`] |
//! | fail well | [`ToolError`], [`ErrorKind`], [`ResultExt`] |
//! | put tools together | [`Toolset`], [`ToolSource`]; wrappers in [`ToolExt`]: [`Cache`], [`RateLimit`], [`Retry`] |
//! | run calls | [`Run`], [`RunBuilder`], [`ToolCall`], [`ToolResult`] |
//! | let a model work | [`connect`], [`LoopOptions`], [`Conversation`], [`Agent`], [`React`]; without a network [`ScriptedModel`] |
//! | decide about calls | [`Policy`], [`Rule`], [`Approver`], [`Decision`] |
//! | bound what a run spends | [`RunLimits`], [`LimitKind`], [`Price`] |
//! | see and keep what happened | [`Event`], [`EventSink`], [`Transcript`], [`RunState`] |
//! | run commands safely | [`Sandbox`], and the module `sandbox` |
//! | serve or use MCP | the module `mcp` |
//! | say where pages may be fetched from, or ask a service | the module `net` (with `tools` or `data`) |
//! | use a file of tools | the modules `file` (parse and check) and `session` (open and run); `lang` is the language |
//!
//! # Features
//!
//! This crate only puts the parts together (for a file of tools, in the module `file`); each feature adds
//! one:
//!
//! | feature | adds |
//! | --- | --- |
//! | `runtime` (on) | runs: calls, batches, policies, limits, events, transcripts, the model loop |
//! | `models` (on) | models to ask: seventeen vendors over six wire formats, and the scripted one |
//! | `prompted` | tools for models without a tool API, and the prompt format of anthropic-tools |
//! | `browser` | tools that use the web in a real browser, inside the sandbox of a run |
//! | `data` | tools that look things up: SQL databases, search engines, vector stores |
//! | `documents` | files read as blocks: Office, HTML, mail, workbooks and more |
//! | `pdf` | PDF files too |
//! | `lang` | tools written in YAML, and the expression language they use |
//! | `mcp` | the tools of MCP servers in a run, and a run's tools served to MCP clients |
//! | `tools` | the standard tools: shell, Python, files, search, memory, plans |
//! | `sandbox` | sandboxes for them (Linux) |
//! | `chrono`, `jiff` | their dates and times as parameters |
//! | `testkit` | conformance suites and recorded exchanges for your own tests; with `sandbox`, the suite for sandboxes too |

// Writing tools.
#[doc(inline)]
pub use toolwright_core::{
    Annotations, Arguments, CallDescription, CallView, Entry, Fingerprint, Handoff, PathParameters, Prepared,
    RewriteResults, RootedPath, Tool, ToolDef, ToolExt, ToolPolicy, ToolSource, ToolSpec, Toolset,
    ToolsetError, ViewContent, ViewFormat, WorkspacePath, canonical_json, empty_parameters, panic_error,
    panic_of, register, registered, run_blocking, tool, toolset,
};
// What they take, give and keep.
#[doc(inline)]
pub use toolwright_core::{
    BoxFuture, CancelToken, Citation, Content, Detail, ErrorInfo, ErrorKind, IntoToolOutput, Json, JsonShape,
    Media, MediaSource, ResultExt, RunScope, Secret, State, Store, StoreState, Stored, Structured,
    ToolContext, ToolError, ToolOutput, json_size,
};
// Wrappers, names that are nearly right, and data that does not fit.
#[doc(inline)]
pub use toolwright_core::{
    Cache, DataError, PathSegment, Patterns, RateLimit, Retry, glob_match, nearest, nearest_word, read_data,
};
// Calls and their results.
#[doc(inline)]
pub use toolwright_core::{
    ApprovalRequest, Approver, AskPurpose, AssistantMessage, CONFIDENTIAL, CallInfo, CallNote, CallTimeout,
    Choice, Decision, Dispatch, ForeignClass, Form, FormAuthor, FormBody, FormReply, Invocation,
    InvokeOptions, Message, Notice, Origin, Person, PersonWait, ProgressListener, Requester, ToolCall,
    ToolResult, Truncation, Validator,
};
// Models, as the loop sees them.
#[doc(inline)]
pub use toolwright_core::{
    DeltaSink, Model, ModelDelta, ModelError, ModelErrorKind, ModelOptions, ModelReply, ModelRequest,
    StopReason, ToolChoice, Usage, wait, with_idle_listener,
};
// Sandboxes, as tools see them.
#[doc(inline)]
pub use toolwright_core::{
    CallEffect, ChangeKind, Connection, EFFECT_NOTE, EffectJudge, EffectOutcome, EffectVerdict, ExecRequest,
    ExecResult, FileChange, KeepReason, KeptBackChange, MAX_EXEC_OUTPUT, MAX_JUDGED_CHANGES,
    MAX_LISTED_CHANGES, MAX_READ_FILE, OutputSink, OutputStream, PLACEHOLDER_LOGIN, PLACEHOLDER_TIME,
    Preparation, ProcessHandle, Sandbox, SandboxProcess, SpawnRequest, StagedEffect, TerminalSize,
};
#[doc(inline)]
pub use toolwright_core::{schema, text, time};

#[doc(hidden)]
pub use toolwright_core::__private;

// Models to ask.
#[cfg(feature = "models")]
#[doc(inline)]
pub use toolwright_models::{
    ConfigError, ConnectError, HttpLimits, ModelConfig, ModelSettings, Offer, Pace, Price, Proxies,
    ProxyError, Reply, RetryPolicy, ScriptError, ScriptedCall, ScriptedModel, VendorModel, connect, offered,
};
#[cfg(feature = "models")]
#[doc(inline)]
pub use toolwright_models::{aws, dialect, price, retry, tokens, vendor, wire};

// Runs and the loop.
#[cfg(feature = "runtime")]
#[doc(inline)]
pub use toolwright_runtime::{
    Agent, AgentOutcome, Conversation, DEFAULT_MAX_DEPTH, DEFAULT_MAX_OUTPUT, DEFAULT_MAX_PARALLEL, Envelope,
    Executor, LocalExecutor, LoopOptions, LoopOutcome, Overflow, React, Run, RunBuilder, RunEnd, RunError,
    RunState, STATE_VERSION, StopWhen, Stopper, ToolCalls, completion,
};
// Who decides, and what a run may spend.
#[cfg(feature = "runtime")]
#[doc(inline)]
pub use toolwright_runtime::{
    ArgumentMatch, Examples, LimitKind, LimitReached, LimitScope, Policy, PolicyError, Rule, RuleDecision,
    Ruling, RunLimits, Spent, call_text, strictest_ruling,
};
// What happened.
#[cfg(feature = "runtime")]
#[doc(inline)]
pub use toolwright_runtime::{
    Durability, Event, EventKind, EventSink, FORMAT_VERSION, REDACTED, Redactor, StreamRedactor, ToolStamp,
    Transcript, TranscriptError, TranscriptWriter, format_time, is_secret_name, parse_time, utc_date,
};

mod environment;
#[cfg(all(feature = "lang", feature = "runtime"))]
pub mod file;
#[cfg(all(feature = "lang", feature = "runtime"))]
pub mod session;

pub use environment::Environment;

#[cfg(feature = "browser")]
#[doc(inline)]
pub use toolwright_browser as browser;
#[cfg(feature = "data")]
#[doc(inline)]
pub use toolwright_data as data;
#[cfg(feature = "documents")]
pub mod documents;
#[cfg(feature = "sandbox")]
#[doc(inline)]
pub use toolwright_effects as effects;
#[cfg(feature = "lang")]
#[doc(inline)]
pub use toolwright_expr as expr;
#[cfg(feature = "lang")]
#[doc(inline)]
pub use toolwright_lang as lang;
#[cfg(feature = "mcp")]
#[doc(inline)]
pub use toolwright_mcp as mcp;
#[cfg(any(feature = "data", feature = "tools"))]
#[doc(inline)]
pub use toolwright_net as net;
#[cfg(feature = "prompted")]
#[doc(inline)]
pub use toolwright_prompted as prompted;
#[cfg(feature = "sandbox")]
#[doc(inline)]
pub use toolwright_sandbox as sandbox;
#[cfg(feature = "testkit")]
#[doc(inline)]
pub use toolwright_testkit as testkit;
#[cfg(feature = "tools")]
#[doc(inline)]
pub use toolwright_tools as tools;

#[cfg(test)]
mod tests {
    #[cfg(feature = "tools")]
    #[test]
    fn what_the_options_of_a_tool_take_has_a_name_here() {
        let options = crate::tools::Options::new().reach(crate::net::Reach::Public);
        assert!(format!("{options:?}").contains("Public"));
    }

    /// The lists above are by hand, so that the page reads well; nothing may be missing in them.
    #[test]
    fn everything_the_parts_offer_is_here() {
        let here = include_str!("lib.rs");
        for part in [
            include_str!("../../toolwright-core/src/lib.rs"),
            include_str!("../../toolwright-models/src/lib.rs"),
            include_str!("../../toolwright-runtime/src/lib.rs"),
        ] {
            let public = part
                .split(';')
                .filter_map(|item| item.split_once("pub use ").or(item.split_once("pub mod ")));
            for (_, item) in public {
                let names = item.rsplit("::").next().unwrap_or(item);
                for name in
                    names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty())
                {
                    let named =
                        here.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
                    assert!(named, "`{name}` is not re-exported");
                }
            }
        }
    }
}

/// The Rust examples of the README and the guide are tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/rust-tools.md")]
    struct RustTools;
    #[doc = include_str!("../../../docs/tutorial.md")]
    struct Tutorial;
    #[doc = include_str!("../../../docs/guide/models.md")]
    struct Models;
    #[cfg(feature = "lang")]
    #[doc = include_str!("../../../docs/guide/yaml-tools.md")]
    struct YamlTools;
    #[doc = include_str!("../../../docs/guide/policies.md")]
    struct Policies;
    #[doc = include_str!("../../../docs/guide/testing.md")]
    struct Testing;
    #[cfg(feature = "prompted")]
    #[doc = include_str!("../../../docs/guide/agents.md")]
    struct Agents;
    #[cfg(feature = "prompted")]
    #[doc = include_str!("../../../docs/migrate/anthropic-tools.md")]
    struct FromAnthropicTools;
    #[doc = include_str!("../../../docs/migrate/inspect.md")]
    struct FromInspect;
    #[doc = include_str!("../../../docs/migrate/marsys.md")]
    struct FromMarsys;
    #[cfg(feature = "documents")]
    #[doc = include_str!("../../../docs/guide/documents.md")]
    struct Documents;
    #[cfg(feature = "data")]
    #[doc = include_str!("../../../docs/guide/data.md")]
    struct Data;
    #[cfg(feature = "sandbox")]
    #[doc = include_str!("../../../docs/guide/sandbox.md")]
    struct Sandboxes;
    #[cfg(all(feature = "tools", feature = "sandbox"))]
    #[doc = include_str!("../../../docs/guide/standard-tools.md")]
    struct StandardTools;
    #[cfg(feature = "mcp")]
    #[doc = include_str!("../../../docs/guide/mcp.md")]
    struct Mcp;
}
