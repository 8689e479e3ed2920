//! The approver contract: a decision about a call before it runs. The human side of a run is a
//! [`Person`](crate::Person), which is an approver too.
//!
//! Policies, which pick an approver for a call, live in `toolwright-runtime`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dispatch::Requester;
use crate::error::ToolError;
use crate::message::ToolCall;
use crate::prepare::CallView;
use crate::tool::Annotations;

/// Decides about calls: a [`Person`](crate::Person), or a program.
pub trait Approver: Send + Sync {
    /// The name written into events, for example `human`.
    fn name(&self) -> &str;

    /// Decides about one call. The arguments have passed the schema. Write it as `async fn`.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest<'a>) -> impl Future<Output = Decision> + Send;
}

/// A call that waits for a decision. [`ApprovalRequest::new`] makes one, for tests of an approver.
#[non_exhaustive]
#[derive(Debug)]
pub struct ApprovalRequest<'a> {
    /// The call, with validated arguments.
    pub call: &'a ToolCall,
    /// What the tool says about its effects.
    pub annotations: &'a Annotations,
    /// The call as it should be shown.
    pub view: CallView,
    /// Why somebody is asked.
    pub reason: Option<String>,
    /// How many calls this one is nested in.
    pub depth: u32,
    /// Who asked for the call, or for the call that this one is part of.
    pub requester: Requester,
    /// The only answers that may be given, where the policy names them.
    pub choices: Option<&'a [Choice]>,
    /// Checks changed arguments, for approvers that edit a call.
    pub validator: Validator,
}

/// Validates arguments as the runtime will when a decision brings them, so that an approver can report a
/// mistake while the person can still correct it. The default accepts everything.
#[derive(Clone, Default)]
pub struct Validator(Option<Arc<ValidateArguments>>);

type ValidateArguments = dyn Fn(Value) -> Result<(), ToolError> + Send + Sync;

impl Validator {
    /// Validates by a function.
    pub fn new(validate: impl Fn(Value) -> Result<(), ToolError> + Send + Sync + 'static) -> Self {
        Validator(Some(Arc::new(validate)))
    }

    /// What is wrong with the arguments, if anything is.
    pub fn validate(&self, arguments: Value) -> Result<(), ToolError> {
        self.0.as_ref().map_or(Ok(()), |validate| validate(arguments))
    }
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Validator")
    }
}

impl<'a> ApprovalRequest<'a> {
    /// A call that a model asks for, shown as it is and for no reason given; everything else can be set.
    pub fn new(call: &'a ToolCall, annotations: &'a Annotations) -> Self {
        ApprovalRequest {
            call,
            annotations,
            view: CallView::default(),
            reason: None,
            depth: 0,
            requester: Requester::default(),
            choices: None,
            validator: Validator::default(),
        }
    }

    /// True when this answer may be given. Passing a call on is offered only where the policy names it.
    pub fn offers(&self, choice: Choice) -> bool {
        self.choices.map_or(choice != Choice::Escalate, |choices| choices.contains(&choice))
    }
}

/// An answer that an approver may give; [`Decision`] says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the decision of the same name")]
pub enum Choice {
    Approve,
    Modify,
    Reject,
    Escalate,
    Terminate,
}

/// An approver's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// Run the call.
    Approve,
    /// Run the call with other arguments. Nothing but the arguments can change.
    Modify {
        /// The arguments to use; they are validated again.
        arguments: Value,
    },
    /// Do not run it; the model gets the reason.
    Reject {
        /// The reason for the model.
        reason: String,
    },
    /// Let the next approver decide; when there is none, the call is refused.
    Escalate,
    /// End the run.
    Terminate {
        /// The reason for the operator.
        reason: String,
    },
}

impl Decision {
    /// A refusal with its reason.
    pub fn reject(reason: impl Into<String>) -> Self {
        Decision::Reject { reason: reason.into() }
    }

    /// The word used in events and policies.
    pub fn as_str(&self) -> &'static str {
        match self {
            Decision::Approve => "approve",
            Decision::Modify { .. } => "modify",
            Decision::Reject { .. } => "reject",
            Decision::Escalate => "escalate",
            Decision::Terminate { .. } => "terminate",
        }
    }
}
