//! YAML tool files: flows of calls, expressions, branches and loops that load as ordinary tools.
//!
//! A file holds shared data, tools made of statements, and the sections of the chat and batch programs. It
//! becomes tools in three steps: [`SourceFile::parse`] reads it with everything it includes,
//! [`SourceFile::bind`] evaluates what depends on variables, and [`BoundFile::compile`] makes a
//! [`Toolset`](toolwright_core::Toolset), with the tools of the MCP servers that the program has connected in
//! between. [`load`] does all three. From there on a flow is a tool like any other, called by the runtime's
//! one path.
//!
//! ```
//! use serde_json::json;
//! use toolwright_core::ToolCall;
//! use toolwright_lang::{Host, Source, load};
//! use toolwright_runtime::Run;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let file = "
//! tools:
//!   - name: greet
//!     input:
//!       - {name: names, type: 'list[str]'}
//!     do:
//!       for_each: ${names}
//!       do: {eval: 'Hello, ${_}!'}
//! ";
//! let loaded = load(Source::text("greet.yaml", file), &Host::new()).unwrap();
//! let run = Run::builder(loaded.tools().clone()).build()?;
//! let result = run.call(ToolCall::new("1", "greet", json!({"names": ["Ann", "Bob"]}))).await?;
//! assert_eq!(result.to_text(), r#"["Hello, Ann!","Hello, Bob!"]"#);
//! # Ok::<(), toolwright_core::ToolError>(())
//! # }).unwrap();
//! ```

mod bind;
mod blocks;
mod build;
mod cache;
mod check;
mod cli;
mod dotenv;
mod env;
mod error;
mod exec;
mod file;
mod file_sources;
mod files;
mod flow;
mod hint;
mod host;
mod imports;
mod input;
mod json;
mod json_nodes;
mod lints;
mod llm;
mod load;
mod missing_tools;
mod models;
mod needs;
mod parse;
mod references;
mod schema;
mod sections;
mod server_imports;
mod shape;
mod statements;
mod step;
mod strict_arguments;
mod template;
mod type_words;

pub use bind::BoundFile;
pub use cache::cache_key;
pub use check::NOT_STARTED;
pub use cli::{CLI_TOOL, Cli, CliOutput, CliResult, ProcessInput};
pub use dotenv::{find_dotenv, parse_dotenv};
pub use env::Variable;
pub use error::{Raised, class_of, raise, raised};
pub use exec::FlowLimits;
pub use files::{FileDigest, Source};
pub use flow::FAILED_AT;
pub use hint::format_arguments;
pub use host::{Host, Imports, Models, Server, ServerState, ServerTools, Trust};
pub use input::split_type_parameters;
pub use llm::ExtractJson;
pub use load::{Loaded, load, load_all};
pub use needs::{Needs, Wanted};
pub use parse::{Section, SourceFile};
pub use schema::{file_schema, reference_page};
pub use sections::Chat;
pub use server_imports::CurrentTools;
pub(crate) use toolwright_yaml::{self as yaml, diag};
pub use toolwright_yaml::{Diagnostic, LoadError, Severity, read_data};
