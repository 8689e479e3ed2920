//! What a run consists of: a frame of its own, and the part it shares with the runs of agents inside it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use toolwright_core::schema::Strictness;
use toolwright_core::{
    CallInfo, CancelToken, DynToolSource, ErrorKind, Message, ProgressListener, Requester, RunScope,
    ToolContext, ToolError, Toolset,
};
use toolwright_util::lock;

use super::tools::RunTools;
use super::{Run, RunEnd};
use crate::active::ActiveCalls;
use crate::approval::Approvals;
use crate::events::{DeltaListener, EventKind, Events};
use crate::executor::ErasedExecutor;
use crate::guard;
use crate::hidden::HiddenSecrets;
use crate::limits::{LimitReached, LimitScope, RunLimits};

/// What a run and the runs of agents inside it have in common.
pub(crate) struct RunShared {
    pub(crate) approvals: Approvals,
    pub(crate) executor: Arc<dyn ErasedExecutor>,
    /// What goes with each call to where it is done.
    pub(crate) trace: BTreeMap<String, String>,
    pub(crate) events: Events,
    /// What results and messages to models do not show.
    pub(crate) hidden: Arc<HiddenSecrets>,
    pub(crate) active: ActiveCalls,
    pub(crate) strictness: Strictness,
    pub(crate) max_output: usize,
    pub(crate) max_depth: u32,
    pub(crate) max_parallel: usize,
}

/// One run: that of the program, or that of an agent inside it.
pub(crate) struct RunFrame {
    me: Weak<RunFrame>,
    pub(crate) shared: Arc<RunShared>,
    pub(crate) scope: RunScope,
    pub(crate) tools: RunTools,
    /// True when a person makes the calls, and not a model.
    pub(crate) by_person: bool,
    pub(crate) limits: LimitScope,
    pub(crate) cancel: CancelToken,
    end: Mutex<Option<RunEnd>>,
    /// The run an agent works in, when this is the agent's.
    pub(crate) outer: Option<OuterRun>,
}

/// What a run may use and spend; an agent and the run of a program are set up with the same.
#[derive(Clone, Default)]
pub(crate) struct RunOptions {
    pub(crate) tools: Toolset,
    pub(crate) sources: Vec<Arc<DynToolSource>>,
    pub(crate) limits: RunLimits,
}

/// Where the run of an agent stands.
pub(crate) struct OuterRun {
    run: Arc<RunFrame>,
    agent: Arc<str>,
    /// The call that the agent answers; `None` when it has the conversation to itself.
    pub(crate) call: Option<AnsweredCall>,
    /// How deep its calls are.
    pub(crate) depth: u32,
    /// How many agents around it, itself included, were handed the conversation: each works inside the loop
    /// of the one that had it.
    pub(crate) handoffs: u32,
    /// Whether its messages go on record.
    recorded: bool,
}

/// The call that an agent answers.
#[derive(Clone)]
pub(crate) struct AnsweredCall {
    pub(crate) span: u64,
    /// The ids of the agent's calls begin with it.
    pub(crate) call_id: Arc<str>,
    pub(crate) requester: Requester,
    pub(crate) listener: Option<ProgressListener>,
}

/// Why an agent works.
#[derive(Clone, Copy)]
pub(crate) enum AgentRole<'a> {
    /// It has a conversation to itself.
    Own,
    /// It answers a call.
    Answers(&'a ToolContext),
    /// It was handed the conversation of another agent, until this fires; that one's loop records the
    /// messages.
    TakesOver(&'a CancelToken),
}

/// Lets tools of this crate find the run they work in.
pub(super) struct RunHandle(pub(super) Weak<RunFrame>);

impl RunFrame {
    /// The frame of a run of its own.
    pub(super) fn root(
        shared: RunShared,
        scope: RunScope,
        tools: RunTools,
        limits: LimitScope,
        cancel: CancelToken,
        by_person: bool,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me: &Weak<RunFrame>| RunFrame {
            me: me.clone(),
            shared: Arc::new(shared),
            scope: scope.with_state(RunHandle(me.clone())),
            tools,
            by_person,
            limits,
            cancel,
            end: Mutex::default(),
            outer: None,
        })
    }

    /// The frame of an agent inside `around`: other tools, and limits of its own within those of `around`.
    fn nested(around: &Arc<Self>, agent: Arc<str>, options: RunOptions, role: AgentRole<'_>) -> Arc<Self> {
        let RunOptions { tools, sources, limits } = options;
        let outer = around.outer.as_ref();
        let depth = outer.map_or(0, |outer| outer.depth);
        let handoffs = outer.map_or(0, |outer| outer.handoffs);
        let call = || outer.and_then(|outer| outer.call.clone());
        let (cancel, call, depth, handoffs, recorded) = match role {
            AgentRole::Own => (&around.cancel, call(), depth, handoffs, true),
            AgentRole::TakesOver(stop) => (stop, call(), depth, handoffs + 1, false),
            AgentRole::Answers(context) => {
                let call = AnsweredCall {
                    span: context.span(),
                    call_id: context.call_id().clone(),
                    requester: context.requester().clone(),
                    listener: context.listener().cloned(),
                };
                (context.cancel_token(), Some(call), context.depth() + 1, handoffs, true)
            }
        };
        let cancel = cancel.child_token();
        let outer = OuterRun { run: around.clone(), agent, call, depth, handoffs, recorded };
        Arc::new_cyclic(|me: &Weak<RunFrame>| RunFrame {
            me: me.clone(),
            shared: around.shared.clone(),
            scope: around.scope.clone().with_state(RunHandle(me.clone())),
            tools: RunTools::new(tools, sources),
            by_person: false,
            limits: around.limits.nested(limits),
            cancel,
            end: Mutex::default(),
            outer: Some(outer),
        })
    }

    /// The frame itself, for what outlives the borrow.
    pub(crate) fn host(&self) -> Result<Arc<RunFrame>, ToolError> {
        self.me.upgrade().ok_or_else(|| ToolError::fatal("the run is gone"))
    }

    /// The call that the run's agent answers, if it answers one.
    pub(crate) fn answered_call(&self) -> Option<&AnsweredCall> {
        self.outer.as_ref().and_then(|outer| outer.call.as_ref())
    }

    /// How deep the calls of the run's own loop are.
    pub(crate) fn depth(&self) -> u32 {
        self.outer.as_ref().map_or(0, |outer| outer.depth)
    }

    /// Whether the run goes on, and a call of it may be as deep as this one.
    pub(crate) fn may_call(&self, call: &CallInfo) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() || call.cancel.is_cancelled() {
            return Err(guard::cancelled());
        }
        // Callers may not know that the run has ended: a flow that catches everything, the client of a
        // server.
        match self.ended() {
            Some(RunEnd::Terminated { reason }) => {
                return Err(ToolError::fatal(format!("the run was ended by an approver: {reason}")));
            }
            Some(RunEnd::Limit { limit }) => return Err(ToolError::from(limit)),
            _ => {}
        }
        let handoffs = self.outer.as_ref().map_or(0, |outer| outer.handoffs);
        let most = self.shared.max_depth;
        if call.depth.saturating_add(handoffs) <= most {
            return Ok(());
        }
        let may = if handoffs == 0 {
            "tools may call tools"
        } else {
            "tools and agents may call one another and hand over"
        };
        Err(ToolError::of(ErrorKind::Limit, format!("{may} {most} deep, and this call would be one deeper")))
    }

    /// Who receives what the model says while it comes. What an agent says while it answers a call is not the
    /// answer of the conversation.
    pub(crate) fn delta_listeners(&self) -> &[DeltaListener] {
        if self.answered_call().is_some() { &[] } else { &self.shared.events.deltas }
    }

    /// Ends the run; the first end stays, and is returned.
    pub(crate) fn end(&self, end: RunEnd) -> RunEnd {
        // An approver who ends the run means all of it.
        if let (RunEnd::Terminated { .. }, Some(outer)) = (&end, &self.outer) {
            outer.run.end(end.clone());
        }
        let mut slot = lock(&self.end);
        slot.get_or_insert(end).clone()
    }

    /// Ends the run at a limit. That is written before it holds: a run whose record cannot be kept has
    /// failed.
    pub(crate) fn limit_reached(&self, limit: LimitReached) -> Result<(), ToolError> {
        let written = self.shared.events.emit(EventKind::LimitHit { limit: limit.clone() });
        self.end(match &written {
            Ok(()) => RunEnd::Limit { limit },
            Err(error) => RunEnd::Failed { message: error.message().to_owned() },
        });
        written
    }

    /// Ends the run at a limit; returns the error for the call that reached it.
    pub(crate) fn refuse(&self, limit: LimitReached) -> ToolError {
        self.limit_reached(limit.clone()).err().unwrap_or_else(|| limit.into())
    }

    pub(crate) fn ended(&self) -> Option<RunEnd> {
        lock(&self.end).clone()
    }

    /// Records a message.
    pub(crate) fn record(&self, message: &Message) -> Result<(), ToolError> {
        if !self.shared.events.wanted() {
            return Ok(());
        }
        let message = message.clone();
        self.shared.events.emit(match &self.outer {
            Some(OuterRun { recorded: false, .. }) => return Ok(()),
            Some(OuterRun { agent, call: Some(call), .. }) => {
                EventKind::AgentMessage { span: call.span, agent: agent.clone(), message }
            }
            _ => EventKind::MessageAdded { message },
        })
    }
}

impl Run {
    /// The run that makes the call of `context`, for tools that work with a run of their own inside it.
    pub(crate) fn of(context: &ToolContext) -> Result<Run, ToolError> {
        let handle = context.state::<RunHandle>().map_err(|_| {
            ToolError::fatal("the call belongs to no run, so no agent can work in it")
                .hint("make the call through a `Run`; a context from `ToolContext::detached` has none")
        })?;
        let frame = handle.0.upgrade().ok_or_else(|| ToolError::fatal("the run is gone"))?;
        Ok(Run { frame })
    }

    /// A run inside this one for an agent: other tools and its own limits within these; the same policy,
    /// approvers, sandboxes, state, executor and record.
    pub(crate) fn nested(&self, agent: Arc<str>, options: RunOptions, role: AgentRole<'_>) -> Run {
        Run { frame: RunFrame::nested(&self.frame, agent, options, role) }
    }
}
