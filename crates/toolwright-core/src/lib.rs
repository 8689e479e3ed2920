//! The contract between tools, models, sandboxes and the runtime that calls them. Nothing in this crate does
//! I/O.
//!
//! A tool is a function with a description; `#[tool]` makes one, and the doc comments are what a model reads:
//!
//! ```
//! use toolwright_core::{Toolset, tool};
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
//! let tools = Toolset::new().with(add())?;
//! assert_eq!(tools.names().collect::<Vec<_>>(), ["add"]);
//! # Ok::<(), toolwright_core::ToolsetError>(())
//! ```
//!
//! Calls are made by `toolwright-runtime`, which validates, approves, bounds and records them.

mod approval;
mod context;
mod data_error;
mod definition;
mod dispatch;
mod effect;
mod erased;
mod error;
mod glob;
mod idle;
mod into_toolset;
mod message;
mod model;
mod nearest;
mod output;
mod path;
mod person;
mod preparation;
mod prepare;
mod sandbox;
pub mod schema;
mod secret;
mod setup_error;
mod shape;
mod store;
pub mod text;
pub mod time;
mod tool;
mod tool_policy;
mod toolset;
mod wrap;

pub use approval::{ApprovalRequest, Approver, Choice, Decision, Validator};
pub use context::{CallInfo, CancelToken, RunScope, State, ToolContext};
pub use data_error::{DataError, PathSegment, read_data};
pub use definition::{ToolDef, panic_error, panic_of, run_blocking};
pub use dispatch::{
    AskPurpose, CallNote, CallTimeout, Dispatch, Invocation, InvokeOptions, Origin, PersonWait,
    ProgressListener, Requester,
};
pub use effect::{
    CallEffect, ChangeKind, EFFECT_NOTE, EffectJudge, EffectOutcome, EffectVerdict, FileChange, KeepReason,
    KeptBackChange, MAX_JUDGED_CHANGES, MAX_LISTED_CHANGES, StagedEffect,
};
pub use erased::{DynApprover, DynModel, DynPerson, DynProcessHandle, DynSandbox, DynTool, DynToolSource};
pub use error::{ErrorInfo, ErrorKind, ForeignClass, ResultExt, ToolError};
pub use glob::{Patterns, glob_match};
pub use idle::{wait, with_idle_listener};
pub use into_toolset::IntoToolset;
pub use message::{AssistantMessage, CONFIDENTIAL, Message, ToolCall, ToolResult, Truncation};
pub use model::{
    DeltaSink, Model, ModelDelta, ModelError, ModelErrorKind, ModelOptions, ModelReply, ModelRequest,
    StopReason, ToolChoice, Usage,
};
pub use nearest::{nearest, nearest_word};
pub use output::{
    Citation, Content, Detail, IntoToolOutput, Json, Media, MediaSource, Structured, ToolOutput, json_size,
};
pub use path::{PathParameters, RootedPath, WorkspacePath};
pub use person::{Form, FormAuthor, FormBody, FormReply, Notice, Person};
pub use preparation::Preparation;
pub use prepare::{Arguments, CallDescription, CallView, Prepared, ViewContent, ViewFormat};
pub use sandbox::{
    Connection, ExecRequest, ExecResult, MAX_EXEC_OUTPUT, MAX_READ_FILE, OutputSink, OutputStream,
    PLACEHOLDER_LOGIN, PLACEHOLDER_TIME, ProcessHandle, Sandbox, SandboxProcess, SpawnRequest, TerminalSize,
};
pub use secret::Secret;
pub use setup_error::{Error, FileLocation};
pub use shape::JsonShape;
pub use store::{Store, StoreState, Stored};
pub use tool::{
    Annotations, BoxFuture, Fingerprint, Handoff, RewriteResults, Tool, ToolSpec, canonical_json,
    empty_parameters,
};
pub use tool_policy::ToolPolicy;
pub use toolset::{Entry, ToolSource, Toolset, ToolsetError, register, registered};
pub use wrap::{Cache, RateLimit, Retry, ToolExt};

#[cfg(feature = "macros")]
pub use toolwright_macros::{parameters, tool, toolset};

/// What the macros' output needs; not for use by hand.
#[doc(hidden)]
pub mod __private;
