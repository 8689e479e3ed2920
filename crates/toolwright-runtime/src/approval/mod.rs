//! Deciding about calls before they run.
//!
//! A [`Policy`] picks the rules that match a call; the strictest wins. What rules change is changed before
//! anybody is asked, so a person sees what will run. What no rule decides is asked: one approver after the
//! other, until one does not pass it on (an `approvers:` file goes on with its next entry then). When there
//! is nobody to ask, or nobody left, the call is refused. A run without a policy approves everything but the
//! calls of tools that wait for a person's word.

#[cfg(test)]
mod approvers_tests;
mod call_text;
mod effect_judge;
mod effects;
mod layers;
mod matching;
mod naming;
mod policy;
mod review;
mod rule;
mod shell;
#[cfg(test)]
mod shell_tests;
mod unmatched_rules;

use std::sync::Arc;

use serde_json::Value;
use toolwright_core::{
    ApprovalRequest, Choice, Decision, DynApprover, Entry, ErrorKind, Prepared, ToolCall, ToolContext,
    ToolError, ToolPolicy, ToolSpec, Validator,
};

use crate::clock::Clock;
use crate::events::EventKind;
use crate::guard;
use crate::record::CallFrame;
use crate::run::RunFrame;

pub use call_text::call_text;
pub use effects::{Above, EffectDecision, EffectExample, EffectExamples, EffectMatch, EffectRule};
pub use layers::{strictest_ruling, strictest_ruling_about};
pub use matching::ArgumentMatch;
pub use policy::{Policy, PolicyError, Ruling};
pub(crate) use review::{ModelLookup, Reviewer};
pub use rule::{Examples, Rule, RuleDecision};

/// The reason for the model when every approver passed the call on.
const NOBODY_LEFT: &str = "nobody granted approval for this call";

/// Who and what decides about the calls of a run.
#[derive(Clone, Default)]
pub(crate) struct Approvals {
    pub(crate) policy: Option<Arc<Policy>>,
    /// All policies that were added.
    layers: Vec<Arc<Policy>>,
    /// Policies that are judged beside the first.
    beside: Vec<Arc<Policy>>,
    /// Rules that nothing loosens.
    mandatory: Option<Arc<Policy>>,
    /// What would be asked is approved.
    pub(crate) assume_yes: bool,
    /// Who is asked, in this order, until one decides.
    pub(crate) approvers: Vec<Arc<DynApprover>>,
    /// The models that rules name.
    pub(crate) reviewers: Vec<Reviewer>,
}

/// Who decided, what, and why.
type DecisionReport<'a> = (&'a str, Decision, Option<String>);

impl Approvals {
    /// Decides about one call, and returns it as it may run. An error is for the model, unless the run is to
    /// end.
    pub(crate) async fn review(
        &self,
        run: &RunFrame,
        entry: &Entry,
        call: &mut ToolCall,
        prepared: Prepared,
        frame: &CallFrame<'_>,
    ) -> Result<Prepared, ToolError> {
        if run.by_person {
            if self.mandatory.is_some() {
                let judged = ToolCall { arguments: prepared.arguments.clone(), ..call.clone() };
                let policy = Policy::approve_all();
                let case = Case { run, entry, policy: &policy, prepared, frame };
                self.allowed_to_person(&case, &judged, frame)?;
                record(run, frame.info.span, "person", "approve", None, None)?;
                return Ok(case.prepared);
            }
            record(run, frame.info.span, "person", "approve", None, None)?;
            return Ok(prepared);
        }
        // Without rules every call is approved, unless the tool was told to wait for a person's word.
        let rules = self.policy.is_some() || self.mandatory.is_some();
        if !rules && entry.tool.policy().require_confirmation != Some(true) {
            return Ok(prepared);
        }
        // Boxed here and where somebody is asked, so that calls that need none of this stay small.
        Box::pin(self.judge(run, entry, call, prepared, frame)).await
    }

    /// Decides by the rules.
    async fn judge(
        &self,
        run: &RunFrame,
        entry: &Entry,
        call: &mut ToolCall,
        mut prepared: Prepared,
        frame: &CallFrame<'_>,
    ) -> Result<Prepared, ToolError> {
        let all;
        let policy = match &self.policy {
            Some(policy) => policy.as_ref(),
            None => {
                all = Policy::approve_all();
                &all
            }
        };
        // Rules and people look at the whole call.
        call.arguments = prepared.arguments.take();
        let mut case = Case { run, entry, policy, prepared, frame };
        let (spec, tool) = (entry.tool.spec(), entry.tool.policy());
        let ruling = policy.ruling(call, spec, tool, is_contained(run, tool));
        let mut ruling = self.strictest(ruling, call, &case.subject());
        let changed = case.change(call, &mut ruling)?;
        let Some((approver, decision, reason)) = self.decide(&case, call, ruling).await? else {
            return Ok(case.into_prepared(call));
        };
        let (reason, arguments) = match &decision {
            Decision::Reject { reason } | Decision::Terminate { reason } => (Some(reason.clone()), None),
            Decision::Modify { arguments } => (reason, Some(arguments)),
            Decision::Approve | Decision::Escalate => (reason, changed.then_some(&call.arguments)),
        };
        record(run, frame.info.span, approver, decision.as_str(), reason, arguments)?;
        match decision {
            Decision::Approve => Ok(case.into_prepared(call)),
            Decision::Modify { arguments } => entry.prepare(arguments, run.shared.strictness),
            Decision::Reject { reason } => Err(ToolError::of(ErrorKind::Approval, reason)),
            Decision::Escalate => Err(ToolError::of(ErrorKind::Approval, NOBODY_LEFT)),
            Decision::Terminate { reason } => {
                run.end(crate::run::RunEnd::Terminated { reason: reason.clone() });
                Err(ToolError::fatal(format!("the run was ended by an approver: {reason}")))
            }
        }
    }

    /// The verdict of the policy, or of the approvers it defers to; `None` if a rule modified the call
    /// (already recorded).
    async fn decide(
        &self,
        case: &Case<'_>,
        call: &ToolCall,
        mut ruling: Ruling,
    ) -> Result<Option<DecisionReport<'_>>, ToolError> {
        loop {
            ruling = case.confirmed(ruling);
            let reason = ruling.reason.clone();
            return Ok(Some(match ruling.decision {
                RuleDecision::Review => {
                    let verdict = Box::pin(Reviewer::review(&self.reviewers, case, call, &ruling)).await?;
                    if verdict.approved {
                        (verdict.reviewer, Decision::Approve, Some(verdict.reason))
                    } else {
                        let span = case.frame.info.span;
                        let reason = Some(verdict.reason.clone());
                        record(case.run, span, verdict.reviewer, "escalate", reason, None)?;
                        let reason = format!("{}: {}", verdict.reviewer, verdict.reason);
                        ruling = Ruling::of(RuleDecision::Ask, Some(reason));
                        continue;
                    }
                }
                RuleDecision::Ask
                    if self.assume_yes && ruling.offers_approval() && !self.must_ask(case, call) =>
                {
                    ("assume_yes", Decision::Approve, reason)
                }
                RuleDecision::Ask => {
                    match (Box::pin(self.ask(case, call, &ruling)).await?, ruling.passed_on_to()) {
                        (Some(verdict), _) => verdict,
                        (None, Some(next)) => {
                            ruling = self.strictest(case.rule_from(next, call), call, &case.subject());
                            continue;
                        }
                        (None, None) => ("policy", Decision::reject(NOBODY_LEFT), None),
                    }
                }
                RuleDecision::Approve => ("policy", Decision::Approve, reason),
                RuleDecision::Reject => {
                    let reason = reason.unwrap_or_else(|| "the policy does not allow this call".to_owned());
                    ("policy", Decision::reject(reason), None)
                }
                RuleDecision::Modify => return Ok(None),
                RuleDecision::Terminate => {
                    let reason = reason.unwrap_or_else(|| "the policy ends the run".to_owned());
                    ("policy", Decision::Terminate { reason }, None)
                }
            }));
        }
    }

    /// Asks the approvers, one after the other, until one decides; `None` when nobody does. Whoever passes
    /// the call on is on record too.
    async fn ask(
        &self,
        case: &Case<'_>,
        call: &ToolCall,
        ruling: &Ruling,
    ) -> Result<Option<DecisionReport<'_>>, ToolError> {
        let &Case { run, entry, frame, .. } = case;
        if self.approvers.is_empty() {
            let reason = format!("`{}` needs approval, and there is nobody to ask", call.name);
            return Ok(Some(("policy", Decision::reject(reason), None)));
        };
        let description = case.prepared.description.as_deref();
        if let Some(problem) = description.and_then(|description| description.view_error.as_deref()) {
            let reason = format!("the call could not be shown for approval: {problem}");
            return Ok(Some(("policy", Decision::reject(reason), None)));
        }
        let view = description.map(|description| description.view.clone()).unwrap_or_default();
        let view = view.substitute(&call.arguments);
        let &CallFrame { ref info, clock, person } = frame;
        let span = info.span;
        let annotations = &entry.tool.spec().annotations;
        let mut request = ApprovalRequest::new(call, annotations);
        (request.view, request.depth, request.requester) = (view, info.depth, info.requester.clone());
        (request.reason, request.choices) = (ruling.reason.clone(), ruling.choices.as_deref());
        let (tool, strictness) = (entry.clone(), run.shared.strictness);
        request.validator = Validator::new(move |arguments| tool.prepare(arguments, strictness).map(drop));
        // While somebody is asked the call can be cancelled like any other.
        let mut waiting = info.clone();
        (waiting.tool, waiting.deadline) = (call.name.clone(), None);
        let waiting = ToolContext::new(run.host()?, waiting);
        let _active = run.shared.active.enter(&waiting, clock, person);
        // Waiting for a person counts neither towards the run's working time nor the time of the call.
        let _idle = (run.limits.clock().pause(), clock.map(Clock::pause), person.pause());
        for approver in &self.approvers {
            let deadline = run.limits.waiting_deadline()?;
            let deciding = guard::caught("the approver", async { approver.decide(&request).await });
            let decided = guard::unless_stopped(run, waiting.cancel_token(), deadline, deciding).await?;
            let decision = decided.unwrap_or_else(|_| Decision::reject("the approver of this call panicked"));
            // An answer that the policy does not offer lets no call run.
            let offered = match decision {
                Decision::Approve => request.offers(Choice::Approve),
                Decision::Modify { .. } => request.offers(Choice::Modify),
                // Where the policy names no answers, one approver may leave a call to the next.
                Decision::Escalate => request.choices.is_none() || request.offers(Choice::Escalate),
                Decision::Reject { .. } | Decision::Terminate { .. } => true,
            };
            if !offered {
                let reason = format!("the policy does not offer to {} this call", decision.as_str());
                return Ok(Some((approver.name(), Decision::reject(reason), None)));
            }
            match decision {
                Decision::Escalate => record(run, span, approver.name(), "escalate", None, None)?,
                decision => return Ok(Some((approver.name(), decision, None))),
            }
        }
        Ok(None)
    }
}

/// A call before its judges.
struct Case<'a> {
    run: &'a RunFrame,
    entry: &'a Entry,
    policy: &'a Policy,
    /// The call as the tool prepared it. Its arguments are in the call while rules and people look at it.
    prepared: Prepared,
    frame: &'a CallFrame<'a>,
}

impl Case<'_> {
    /// What the rules from this one on say.
    fn rule_from(&self, first: usize, call: &ToolCall) -> Ruling {
        let tool = &self.entry.tool;
        self.policy.rule_from(first, call, tool.spec(), tool.policy(), is_contained(self.run, tool.policy()))
    }

    /// The call as it may run.
    fn into_prepared(self, call: &mut ToolCall) -> Prepared {
        let mut prepared = self.prepared;
        prepared.arguments = call.arguments.take();
        prepared
    }

    /// Changes the arguments as the rules say; true when they did.
    fn change(&mut self, call: &mut ToolCall, ruling: &mut Ruling) -> Result<bool, ToolError> {
        if ruling.set.is_empty() || ruling.decision >= RuleDecision::Reject {
            return Ok(false);
        }
        let Value::Object(given) = &mut call.arguments else {
            let reason = "the policy changes arguments of this call by name, and it has none";
            return Err(ToolError::of(ErrorKind::Approval, reason));
        };
        given.append(&mut ruling.set);
        let arguments = call.arguments.take();
        let reason = ruling.reason.clone().filter(|_| ruling.decision == RuleDecision::Modify);
        record(self.run, self.frame.info.span, "policy", "modify", reason, Some(&arguments))?;
        self.prepared = self.entry.prepare(arguments, self.run.shared.strictness)?;
        call.arguments = self.prepared.arguments.take();
        in_declared_order(self.entry.tool.spec(), &mut call.arguments);
        Ok(true)
    }

    /// The ruling; where the rules would let the call run and the tool itself wants it confirmed, somebody is
    /// asked.
    fn confirmed(&self, ruling: Ruling) -> Ruling {
        if ruling.decision >= RuleDecision::Ask {
            return ruling;
        }
        match self.wants_confirmation() {
            None => ruling,
            reason => Ruling { set: ruling.set, ..Ruling::of(RuleDecision::Ask, reason) },
        }
    }

    /// Why the tool itself wants this call confirmed, if it does.
    fn wants_confirmation(&self) -> Option<String> {
        let said = self.prepared.wants_confirmation();
        let confirm = self.entry.tool.policy().require_confirmation.unwrap_or(said);
        let action = || self.prepared.description.as_ref()?.action.as_deref();
        let reason = || match action() {
            Some(action) => format!("the tool asks for confirmation to {action}"),
            None => "the tool asks for confirmation".to_owned(),
        };
        confirm.then(reason)
    }
}

/// Whether a tool works in an isolating sandbox; the tool is only as safe as that sandbox.
fn is_contained(run: &RunFrame, policy: &ToolPolicy) -> bool {
    policy.sandboxed && run.scope.sandboxes.values().all(|sandbox| sandbox.isolates())
}

/// Puts arguments in the order in which the tool declares them, and others after them by name: what a rule or
/// a person reads does not depend on the order a model chose.
fn in_declared_order(spec: &ToolSpec, arguments: &mut Value) {
    let Value::Object(given) = arguments else { return };
    let declared = spec.parameters.get("properties").and_then(Value::as_object);
    let place = |name: &str| declared.and_then(|all| all.keys().position(|known| known == name));
    let place = |name: &str| place(name).unwrap_or(usize::MAX);
    if !given.keys().map(|name| (place(name), name)).is_sorted() {
        let mut entries: Vec<_> = std::mem::take(given).into_iter().collect();
        entries.sort_by_cached_key(|(name, _)| (place(name), name.clone()));
        given.extend(entries);
    }
}

fn record(
    run: &RunFrame,
    span: u64,
    approver: &str,
    decision: &str,
    reason: Option<String>,
    arguments: Option<&Value>,
) -> Result<(), ToolError> {
    if !run.shared.events.wanted() {
        return Ok(());
    }
    run.shared.events.emit(EventKind::CallDecided {
        span,
        approver: approver.to_owned(),
        decision: decision.to_owned(),
        reason,
        arguments: arguments.cloned(),
    })
}
