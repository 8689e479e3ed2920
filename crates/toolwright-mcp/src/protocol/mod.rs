//! The messages of MCP as types: one file per family, both eras side by side.
//!
//! Up to 2025-11-25 a session begins with `initialize`. From 2026-07-28 on every request carries its revision
//! and the client's capabilities in `_meta`, and every result says of what type it is.
//!
//! Members that we do not know are ignored where a message ends here, and kept where it passes through: the
//! members of content blocks, of `_meta` and of a tool's schemas. A required member that is missing or has
//! the wrong type is an error; an optional one of the wrong type counts as absent, because peers write `null`
//! and odder things for "not set". What may be large (arguments, structured results, schemas) stays a
//! [`serde_json::Value`] that is moved, never read twice. `testdata/mcp` holds one example of every message;
//! `golden.rs` checks that each is read and written unchanged.

mod completion;
mod content;
mod elicitation;
#[cfg(test)]
mod golden;
mod handshake;
mod lenient;
mod logging;
mod meta;
mod notification;
mod prompts;
mod request;
mod resources;
mod result;
mod sampling;
mod subscriptions;
mod tasks;
mod tools;

pub(crate) use self::completion::{CompleteParams, CompleteResult, Completion, Reference};
pub(crate) use self::content::{
    AudioBlock, ContentBlock, EmbeddedResource, ImageBlock, LinkBlock, ResourceBlock, TextBlock,
};
pub(crate) use self::elicitation::{ElicitAction, ElicitParams, ElicitResult, PageMode};
pub use self::handshake::Implementation;
pub(crate) use self::handshake::{
    ClientCapabilities, DiscoverResult, ElicitationCapability, Empty, InitializeParams, InitializeResult,
    ListChanged, ResourcesCapability, ServerCapabilities,
};
pub use self::logging::LogLevel;
pub(crate) use self::logging::{LogMessageParams, SetLevelParams};
pub(crate) use self::meta::{ProgressToken, RequestMeta, server_info};
pub(crate) use self::notification::{
    CancelledParams, ClientNotification, ProgressParams, ServerNotification,
};
pub(crate) use self::prompts::{
    GetPromptParams, GetPromptResult, ListPromptsResult, PromptAnswer, WirePromptMessage,
};
pub use self::prompts::{Prompt, PromptArgument, Role};
pub(crate) use self::request::{ClientRequest, Method, PageParams, Round, ServerRequest, UriParams};
pub(crate) use self::resources::{ListResourcesResult, ListTemplatesResult, ReadResourceResult};
pub use self::resources::{Resource, ResourceBody, ResourceContents, ResourceTemplate};
pub(crate) use self::result::{
    CacheHint, InputRequired, PageOf, ResultBody, ResultMessage, ResultType, WithCache,
};
pub(crate) use self::sampling::{RootsResult, SampleParams, SampleResult};
pub(crate) use self::subscriptions::{ListenParams, SubscriptionFilter};
pub(crate) use self::tasks::{
    CreateTaskResult, DetailedTask, Task, TaskMetadata, TaskParams, TaskStatus, UpdateTaskParams,
};
pub(crate) use self::tools::{
    CallAnswer, CallParams, CallResult, ListToolsResult, TaskMode, is_object_schema, wrapped_schema,
};
pub use self::tools::{Hints, ToolDefinition};

/// The revisions that begin with `initialize`, oldest first.
pub const SESSION_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The newest revision that begins with `initialize`.
pub const LATEST_SESSION_VERSION: &str = "2025-11-25";

/// The revision without sessions.
pub const STATELESS_VERSION: &str = "2026-07-28";

pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// Names the stream that a notification belongs to.
pub(crate) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
/// The name of the tasks extension.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The key of a parameter's schema that names the header in which its value is repeated.
pub(crate) const PARAMETER_HEADER: &str = "x-mcp-header";
/// Facts beside the content, for which MCP has no member.
pub(crate) const METADATA_KEY: &str = "toolwright/metadata";
/// The key in the `_meta` of a block of text that is the JSON of a value, and not text itself.
pub(crate) const JSON_KEY: &str = "toolwright/json";
/// The sources of a text, for which MCP has no member.
pub(crate) const CITATIONS_KEY: &str = "toolwright/citations";
