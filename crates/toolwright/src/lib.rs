//! The tool runtime for language models: write a tool once, give it to any model or any MCP client; every call is
//! validated, approved, bounded, sandboxed and recorded.
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
//! This crate only puts the parts together; each feature adds one:
//!
//! | feature | adds |
//! | --- | --- |
//! | `runtime` (on) | runs: calls, batches, policies, limits, events, transcripts, the model loop |
//! | `models` (on) | models to ask: seventeen vendors over six wire formats, and the scripted one |
//! | `prompted` | tools for models without a tool API, and the prompt format of anthropic-tools |
//! | `data` | tools that look things up: SQL databases, search engines, vector stores |
//! | `lang` | tools written in YAML, and the expression language they use |
//! | `mcp` | the tools of MCP servers in a run, and a run's tools served to MCP clients |
//! | `tools` | the standard tools: shell, Python, files, search, memory, plans |
//! | `sandbox` | sandboxes for them (Linux) |
//! | `chrono`, `jiff` | their dates and times as parameters |
//! | `testkit` | conformance suites and recorded exchanges for your own tests |

#[doc(inline)]
pub use toolwright_core::*;

#[doc(hidden)]
pub use toolwright_core::__private;

#[cfg(feature = "models")]
#[doc(inline)]
pub use toolwright_models::*;

#[cfg(feature = "runtime")]
#[doc(inline)]
pub use toolwright_runtime::*;

/// Tools written in YAML.
#[cfg(feature = "lang")]
pub mod lang {
    pub use toolwright_lang::*;
}

/// The expression language of YAML tools.
#[cfg(feature = "lang")]
pub mod expr {
    pub use toolwright_expr::*;
}

/// Tools that look things up elsewhere.
#[cfg(feature = "data")]
pub mod data {
    pub use toolwright_data::*;
}

/// MCP, as client and as server.
#[cfg(feature = "mcp")]
pub mod mcp {
    pub use toolwright_mcp::*;
}

/// Tools for models without a tool API.
#[cfg(feature = "prompted")]
pub mod prompted {
    pub use toolwright_prompted::*;
}

/// The standard tools.
#[cfg(feature = "tools")]
pub mod tools {
    pub use toolwright_tools::*;
}

/// Places to run commands and keep files where a model cannot do harm.
#[cfg(feature = "sandbox")]
pub mod sandbox {
    pub use toolwright_sandbox::*;
}

/// For testing your own tools, models and executors.
#[cfg(feature = "testkit")]
pub mod testkit {
    pub use toolwright_testkit::*;
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
