//! For testing your own tools, models and executors.
//!
//! - [`conformance`]: suites that any tool, model or executor should pass, as ordinary functions.
//! - [`exchange`]: a model that records exchanges, and one that replays them.
//! - [`server`]: a loopback server with scripted replies.
//! - [`vectors`]: files of observed inputs and outputs, and the count of how they fared.
//!
//! ```
//! use serde_json::json;
//! use toolwright_core::{ToolDef, ToolSpec};
//! use toolwright_testkit::conformance;
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap().block_on(async {
//! let mut spec = ToolSpec::new("greet", "Greets somebody.");
//! spec.parameters = json!({
//!     "type": "object",
//!     "properties": {"name": {"type": "string", "description": "Who to greet."}},
//!     "required": ["name"]
//! });
//! let greet = ToolDef::dynamic(spec, |_, arguments| async move { format!("hello {}", arguments["name"]) });
//! conformance::tool(greet, json!({"name": "Ada"})).await.assert();
//! # });
//! ```

pub mod accounts;
pub mod conformance;
pub mod exchange;
pub mod server;
pub mod vectors;
