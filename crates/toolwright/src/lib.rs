//! The tool runtime for language models: write a tool once, give it to any model or any MCP client; every
//! call is validated, approved, bounded and recorded, and what it runs can be sandboxed.
//!
#![doc = include_str!("docs/toolwright.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// The front page.
#[cfg(feature = "models")]
pub use connect::connect;
#[doc(inline)]
pub use toolwright_core::{
    Error, Tool, ToolContext, ToolError, ToolOutput, Toolset, parameters, tool, toolset,
};
#[cfg(feature = "runtime")]
#[doc(inline)]
pub use toolwright_runtime::{Policy, Run};
// Types of parameters and results derive their traits, whatever else a program depends on.
#[doc(no_inline)]
pub use toolwright_core::__private::{schemars, serde, serde_json::json};

#[doc(hidden)]
pub use toolwright_core::__private;

#[cfg(feature = "runtime")]
pub mod approval;
#[cfg(feature = "browser")]
#[doc(inline)]
pub use toolwright_browser as browser;
#[cfg(feature = "models")]
mod connect;
pub mod content;
#[cfg(feature = "data")]
#[doc(inline)]
pub use toolwright_data as data;
#[cfg(feature = "documents")]
pub mod documents;
mod environment;
#[cfg(feature = "runtime")]
pub mod events;
#[cfg(all(feature = "lang", feature = "runtime"))]
pub mod file;
#[cfg(feature = "lang")]
pub mod lang;
#[cfg(feature = "runtime")]
pub mod limits;
#[cfg(feature = "mcp")]
#[doc(inline)]
pub use toolwright_mcp as mcp;
pub mod model;
#[cfg(feature = "prompted")]
#[doc(inline)]
pub use toolwright_prompted as prompted;
#[cfg(feature = "runtime")]
pub mod run;
pub mod sandbox;
#[cfg(all(feature = "lang", feature = "runtime"))]
mod session;
#[cfg(any(feature = "models", feature = "testkit"))]
pub mod testing;
pub mod tool;
#[cfg(feature = "tools")]
#[doc(inline)]
pub use toolwright_tools as tools;

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
