//! MCP as client and as server: every server's tools in, our tools out. No other crate knows MCP's JSON.
//!
//! A server's tools join a run as a [`ToolSource`](toolwright_core::ToolSource):
//!
//! ```no_run
//! use toolwright_core::ToolSource as _;
//! use toolwright_mcp::{McpServer, ServerCommand};
//!
//! # async fn example() -> Result<(), toolwright_core::ToolError> {
//! let server = McpServer::builder("time", ServerCommand::new("mcp-server-time")).prefix("time_").build();
//! let tools = server.tools().await?;
//! # let _ = tools; Ok(()) }
//! ```
//!
//! And the tools of a run are served to any client, through the same checks as a model's calls:
//!
//! ```no_run
//! # async fn example(run: std::sync::Arc<dyn toolwright_core::Dispatch>) -> std::io::Result<()> {
//! toolwright_mcp::Server::new(run).serve_stdio().await
//! # }
//! ```
//!
//! Everything a peer sends is bounded before it is kept: the length of a message, its nesting depth and
//! number of values, and the number of tools, pages and progress notifications.

mod bridge;
mod client;
mod error;
mod inspection;
mod jsonrpc;
mod lock;
mod oauth;
mod protocol;
mod random;
mod server;
mod source;
mod transport;

pub use client::{
    Answers, Client, ClientOptions, HttpTarget, Listing, MAX_TOOLS, OnLog, OnProgress, Paying, Sampling,
    SessionInfo, Target, ThroughApprover, servers_ended,
};
pub use error::{McpError, McpErrorKind};
pub use inspection::{DefinitionFinding, FindingKind, inspect_definition};
pub use jsonrpc::{MAX_MESSAGE_BYTES, MAX_MESSAGE_DEPTH, MAX_MESSAGE_VALUES};
pub use lock::{
    Identity, LockError, LockFile, LockedServer, LockedTool, Suspension, differences, fingerprint,
};
pub use oauth::{Browser, Credentials, LoopbackBrowser, Machine, OAuthOptions, TokenStore};
pub use protocol::{
    Hints, Implementation, LATEST_SESSION_VERSION, LogLevel, Prompt, PromptArgument, Resource, ResourceBody,
    ResourceContents, ResourceTemplate, Role, SESSION_VERSIONS, STATELESS_VERSION, ToolDefinition,
};
pub use server::{
    Changes, ClientPerson, ClientReply, CompletionRequest, Completions, FileResources, HttpOptions,
    HttpServer, Peer, PromptMessage, PromptResult, Prompts, Question, ResourceServer, Resources, Server,
    StateKey, TaskSupport, ToolPrompts, Watching,
};
pub use source::{DEFAULT_CALL_TIMEOUT, McpServer, McpServerBuilder, Pinning, ServerState, ServerStatus};
pub use toolwright_core::text::visible;
pub use toolwright_net::{Proxies, ProxyError};
pub use transport::stdio::{DEFAULT_ENVIRONMENT, ServerCommand};
