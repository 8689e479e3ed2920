//! Tools for models without a tool API: the tools are described in the prompt, and the calls are read from
//! the text.
//!
//! [`Prompted`] makes any model one that can call tools, for the same loop as all others. [`ToolUser`] speaks
//! the prompt format of the anthropic-tools package as it is: its structured messages, its XML, its manual
//! and automatic modes. Values in that format are Python's, so this crate reads and writes them as Python
//! does; nothing a model writes is run.
//!
//! ```
//! use toolwright_prompted::{PromptMessage, PromptTool, system_prompt};
//!
//! let tool = PromptTool::new("ping", "Answers.").with("times", "int", "How often.");
//! assert!(system_prompt(&[tool]).contains("<tool_name>ping</tool_name>"));
//! let messages = serde_json::json!([{"role": "user", "content": "Ping!"}]);
//! assert_eq!(PromptMessage::list_from_json(&messages)?, [PromptMessage::User { content: "Ping!".into() }]);
//! # Ok::<(), toolwright_prompted::PromptError>(())
//! ```

mod calls;
mod error;
mod media;
mod message;
mod model;
mod parse;
mod python;
mod stops;
mod tool;
mod tool_user;
mod transport;

pub use error::{PromptError, PromptErrorKind};
pub use message::{PromptMessage, ToolInput, ToolOutcome, inject_error, inject_success, render};
pub use model::{PromptFormat, Prompted};
pub use parse::{CheckedRequest, Invoke, ParsedReply, check, extract};
pub use python::convert;
pub use tool::{Parameter, PromptTool, system_prompt};
pub use tool_user::{CallMode, Next, ToolUser, Verbosity};
pub use transport::{
    Completer, Completion, CompletionRequest, ModelCompleter, PromptTurn, STOP_SEQUENCES, Transport,
    TransportCompleter, from_messages_api, to_messages_api,
};
