//! How a loop goes: which calls are made, how the model answers, and when it is over.

use std::sync::Arc;

use toolwright_core::{Message, ModelOptions, ToolChoice};

/// Which of the model's calls are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolCalls {
    /// All, until the model asks for nothing more.
    #[default]
    Loop,
    /// Those of the first answer; then the loop returns.
    Single,
    /// None: the loop returns with the calls pending, for the caller to make.
    None,
}

/// How a loop goes.
#[derive(Debug, Clone, Default)]
pub struct LoopOptions {
    /// Which calls are made.
    pub tool_calls: ToolCalls,
    /// Whether the model must, may or may not call a tool.
    pub tool_choice: ToolChoice,
    /// What the choice becomes once tools were called, for example [`ToolChoice::None`] to switch them off.
    /// Left out, a named tool is asked for once and then the model is free; everything else stays.
    pub choice_after: Option<ToolChoice>,
    /// How the model is to answer.
    pub options: ModelOptions,
    /// What happens when the conversation no longer fits the model.
    pub overflow: Overflow,
    /// Ends the loop when one of these holds after calls were made.
    pub stop_when: Vec<StopWhen>,
}

/// What happens when a conversation no longer fits its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The middle of it is no longer sent: the instructions, the first question and the latest messages are,
    /// with a note in between. The conversation itself stays whole.
    #[default]
    LeaveOutMiddle,
    /// The model's answer, or its error, is the end.
    Stop,
}

/// A reason to end a loop; it looks at the conversation.
#[derive(Clone)]
pub struct StopWhen(Arc<Condition>);

type Condition = dyn Fn(&[Message]) -> bool + Send + Sync;

impl StopWhen {
    /// Ends the loop when this holds.
    pub fn new(holds: impl Fn(&[Message]) -> bool + Send + Sync + 'static) -> Self {
        StopWhen(Arc::new(holds))
    }

    pub(crate) fn holds(&self, messages: &[Message]) -> bool {
        (self.0)(messages)
    }
}

impl std::fmt::Debug for StopWhen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StopWhen")
    }
}
