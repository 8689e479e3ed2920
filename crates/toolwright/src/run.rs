//! Runs in detail: the builder, the loop of a model, conversations, agents, and runs that go on elsewhere.

#[doc(inline)]
pub use toolwright_core::{AskPurpose, Dispatch, Invocation, Origin, PersonWait, Requester};
#[doc(inline)]
pub use toolwright_runtime::{
    Agent, AgentOutcome, Conversation, DEFAULT_MAX_DEPTH, DEFAULT_MAX_OUTPUT, DEFAULT_MAX_PARALLEL, Envelope,
    Executor, LocalExecutor, LoopOptions, LoopOutcome, Overflow, React, RunBuilder, RunEnd, RunError,
    RunState, StopWhen, Stopper, ToolCalls, completion,
};
