//! The path of one tool call, and everything around it: batches, approvals, limits, events and transcripts.
//!
//! A [`Run`] holds the tools, the policy and the limits. Every call, from any origin, is parsed, found,
//! validated, approved, admitted, run, bounded and recorded, in that order; `call.rs` is that path.
//!
//! ```
//! use serde_json::json;
//! use toolwright_core::{ToolCall, ToolDef, ToolSpec, Toolset};
//! use toolwright_runtime::{RunLimits, Policy, Run};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let echo = ToolDef::dynamic(ToolSpec::new("echo", "Says hello."), |_, _| async { "hello" });
//! let run = Run::builder(Toolset::new().with(echo)?)
//!     .policy(Policy::from_yaml("- {tools: echo, decision: approve}")?)
//!     .limits(RunLimits { tool_calls: Some(1), ..RunLimits::default() })
//!     .build()?;
//! assert_eq!(run.call(ToolCall::new("1", "echo", json!({}))).await?.to_text(), "hello");
//! let second = run.call(ToolCall::new("2", "echo", json!({}))).await?;
//! assert_eq!(second.error.unwrap().message, "the limit of 1 tool calls is used up");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! A model works with a run's tools through [`Run::generate_loop`] (one question) or [`Conversation`] (a
//! chat, manual mode, anything that goes on); `turn.rs` is that loop. An [`Agent`] is a model with
//! instructions and tools of its own, that works inside a run: by itself, as a tool of another, or by taking
//! a conversation over.

mod active;
mod agent;
mod approval;
mod ask;
mod batch;
mod call;
mod clock;
mod conversation;
mod direct;
mod events;
mod executor;
mod guard;
mod hidden;
mod history;
mod limits;
mod parse;
mod record;
mod redact;
mod render;
mod run;
mod state;
mod time;
mod transcript;
mod turn;

pub use agent::{Agent, AgentOutcome, React};
pub use approval::{
    Above, ArgumentMatch, EffectDecision, EffectExample, EffectExamples, EffectMatch, EffectRule, Examples,
    Policy, PolicyError, Rule, RuleDecision, Ruling, call_text, strictest_ruling, strictest_ruling_about,
};
pub use conversation::{Conversation, Stopper};
pub use events::{Event, EventKind, EventSink, FORMAT_VERSION, ToolStamp};
pub use executor::{Envelope, Executor, LocalExecutor};
pub use limits::{LimitKind, LimitReached, LimitScope, RunLimits, Spent};
pub use redact::{REDACTED, Redactor, StreamRedactor, is_secret_name};
pub use render::DEFAULT_MAX_OUTPUT;
pub use run::{DEFAULT_MAX_DEPTH, DEFAULT_MAX_PARALLEL, Run, RunBuilder, RunEnd};
pub use state::{RunState, STATE_VERSION};
pub use time::{format_time, parse_time, utc_date};
pub use transcript::{Durability, Transcript, TranscriptError, TranscriptWriter};
pub use turn::{LoopOptions, LoopOutcome, Overflow, RunError, StopWhen, ToolCalls, completion};
