//! Deciding about calls before they run.
//!
//! A [`Policy`] picks the rules that match a call; the strictest wins. What rules change is changed before anybody is
//! asked, so a person sees what will run. What no rule decides is asked: one approver after the other, until one does not
//! pass it on (an `approvers:` file goes on with its next entry then). When there is nobody to ask, or nobody left, the call
//! is refused. A run without a policy approves everything but the calls of tools that wait for a person's word.

mod call_text;
mod matching;
mod misses;
mod naming;
mod policy;
mod rule;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;
use toolwright_core::{
    ApprovalRequest, Approver, CallView, Choice, Decision, Entry, ErrorKind, ToolCall, ToolContext,
    ToolError, ToolSettings, ToolSpec,
};

use crate::call::{Active, Standing, validate};
use crate::events::EventKind;
use crate::guard;
use crate::run::RunInner;

pub use call_text::call_text;
pub use matching::Match;
pub use policy::{Policy, PolicyError};
pub use rule::{Examples, Rule, RuleDecision};

use policy::Ruling;

/// What the model is told when every approver passed the call on.
const NOBODY_LEFT: &str = "nobody granted approval for this call";

/// Who and what decides about the calls of a run.
#[derive(Clone, Default)]
pub(crate) struct Approvals {
    pub(crate) policy: Option<Arc<Policy>>,
    /// Who is asked, in this order, until one decides.
    pub(crate) approvers: Vec<Arc<dyn Approver>>,
}

/// What was decided about a call that may run.
pub(crate) struct Approved {
    /// The arguments to use.
    pub(crate) arguments: Value,
    /// True when they are not the ones that were validated.
    pub(crate) changed: bool,
}

impl Approvals {
    /// Decides about one call. An error is for the model, unless the run is to end.
    pub(crate) async fn review(
        &self,
        run: &RunInner,
        entry: &Entry,
        call: &mut ToolCall,
        standing: &Standing<'_>,
    ) -> Result<Approved, ToolError> {
        let (settings, span) = (entry.tool.settings(), standing.span);
        if run.by_person {
            record(run, span, "person", "approve", None, None)?;
            return Ok(Approved { arguments: call.arguments.take(), changed: false });
        }
        // Without rules every call is approved, unless the tool was told to wait for a person's word.
        let all;
        let policy = match &self.policy {
            Some(policy) => policy.as_ref(),
            None if settings.require_confirmation != Some(true) => {
                return Ok(Approved { arguments: call.arguments.take(), changed: false });
            }
            None => {
                all = Policy::approve_all();
                &all
            }
        };
        in_declared_order(entry.tool.spec(), &mut call.arguments);
        // A tool that works in a sandbox is no safer than the sandbox it is given.
        let exposed = settings.sandboxed && run.scope.sandboxes.values().any(|sandbox| !sandbox.isolates());
        let mut trusted = Cow::Borrowed(settings);
        if exposed {
            trusted.to_mut().sandboxed = false;
        }
        let mut ruling = policy.rule_on(call, entry.tool.spec(), &trusted);
        let changed = !ruling.set.is_empty() && ruling.decision < RuleDecision::Reject;
        if changed {
            let Value::Object(given) = &mut call.arguments else {
                let reason = "the policy changes arguments of this call by name, and it has none";
                return Err(ToolError::of(ErrorKind::Approval, reason));
            };
            given.append(&mut ruling.set);
            let arguments = call.arguments.take();
            let reason = ruling.reason.clone().filter(|_| ruling.decision == RuleDecision::Modify);
            record(run, span, "policy", "modify", reason, Some(&arguments))?;
            call.arguments = validate(run, entry, arguments)?;
            in_declared_order(entry.tool.spec(), &mut call.arguments);
        }
        if ruling.decision < RuleDecision::Ask
            && let Some(reason) = wants_confirmation(settings, &call.arguments)
        {
            let (decision, reason) = (RuleDecision::Ask, Some(reason));
            ruling = Ruling { decision, reason, set: ruling.set, choices: None, next: None };
        }
        let mut asked = None;
        while ruling.decision == RuleDecision::Ask {
            asked = self.ask(run, entry, call, &ruling, standing).await?;
            let Some(next) = ruling.next.filter(|_| asked.is_none()) else { break };
            ruling = policy.rule_from(next, call, entry.tool.spec(), &trusted);
        }
        let (approver, decision, reason) = match ruling.decision {
            RuleDecision::Ask => asked.unwrap_or(("policy", Decision::reject(NOBODY_LEFT), None)),
            RuleDecision::Approve => ("policy", Decision::Approve, ruling.reason),
            RuleDecision::Reject => {
                let reason =
                    ruling.reason.unwrap_or_else(|| "the policy does not allow this call".to_owned());
                ("policy", Decision::reject(reason), None)
            }
            // It was done, and is on record.
            RuleDecision::Modify => {
                return Ok(Approved { arguments: call.arguments.take(), changed: false });
            }
            RuleDecision::Terminate => {
                let reason = ruling.reason.unwrap_or_else(|| "the policy ends the run".to_owned());
                ("policy", Decision::Terminate { reason }, None)
            }
        };
        let (reason, arguments) = match &decision {
            Decision::Reject { reason } | Decision::Terminate { reason } => (Some(reason.clone()), None),
            Decision::Modify { arguments } => (reason, Some(arguments)),
            Decision::Approve | Decision::Escalate => (reason, changed.then_some(&call.arguments)),
        };
        record(run, span, approver, decision.as_str(), reason, arguments)?;
        match decision {
            Decision::Approve => Ok(Approved { arguments: call.arguments.take(), changed: false }),
            Decision::Modify { arguments } => Ok(Approved { arguments, changed: true }),
            Decision::Reject { reason } => Err(ToolError::of(ErrorKind::Approval, reason)),
            Decision::Escalate => Err(ToolError::of(ErrorKind::Approval, NOBODY_LEFT)),
            Decision::Terminate { reason } => {
                run.end(crate::run::RunEnd::Terminated { reason: reason.clone() });
                Err(ToolError::fatal(format!("the run was ended by an approver: {reason}")))
            }
        }
    }

    /// Asks the approvers, one after the other, until one decides; `None` when nobody does. Whoever passes the call on is on
    /// record too.
    async fn ask(
        &self,
        run: &RunInner,
        entry: &Entry,
        call: &ToolCall,
        ruling: &Ruling,
        standing: &Standing<'_>,
    ) -> Result<Option<(&str, Decision, Option<String>)>, ToolError> {
        if self.approvers.is_empty() {
            let reason = format!("`{}` needs approval, and there is nobody to ask", call.name);
            return Ok(Some(("policy", Decision::reject(reason), None)));
        };
        let view = match &entry.tool.settings().viewer {
            None => CallView::default(),
            Some(viewer) => {
                let shown = catch_unwind(AssertUnwindSafe(|| viewer(call)));
                let shown = shown.unwrap_or_else(|_| Err(ToolError::new("its viewer panicked")));
                match shown {
                    Ok(view) => view.substitute(&call.arguments),
                    Err(error) => {
                        let reason = format!("the call could not be shown for approval: {}", error.message());
                        return Ok(Some(("policy", Decision::reject(reason), None)));
                    }
                }
            }
        };
        let &Standing { span, depth, cancel, ref asker } = standing;
        let annotations = &entry.tool.spec().annotations;
        let (reason, choices) = (ruling.reason.clone(), ruling.choices.as_deref());
        let request =
            ApprovalRequest { call, annotations, view, reason, depth, asker: asker.clone(), choices };
        // While somebody is asked the call can be cancelled like any other.
        let waiting = ToolContext::new(
            run.host()?,
            call.id.clone(),
            call.name.clone(),
            span,
            depth,
            None,
            cancel.clone(),
        );
        let _active = Active::enter(run, span, &waiting);
        let _asking = run.limits.wait(None);
        for approver in &self.approvers {
            let deadline = run.limits.waiting_deadline()?;
            let deciding = guard::Catch(Box::pin(async { Ok(approver.decide(&request).await) }));
            let decided = run.unless_stopped(waiting.cancel_token(), deadline, deciding).await?;
            let decision = decided.unwrap_or_else(|_| {
                Decision::reject("whoever decides about this call could not: the approver panicked")
            });
            // What the policy does not offer lets no call run, whoever answers it.
            let runs = match decision {
                Decision::Approve => Some(Choice::Approve),
                Decision::Modify { .. } => Some(Choice::Modify),
                Decision::Reject { .. } | Decision::Escalate | Decision::Terminate { .. } => None,
            };
            if runs.is_some_and(|choice| !request.offers(choice)) {
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

/// Puts arguments in the order in which the tool declares them, and others after them by name: what a rule or a person
/// reads does not depend on the order a model chose.
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

/// Why the tool itself wants this call confirmed, if it does.
fn wants_confirmation(settings: &ToolSettings, arguments: &Value) -> Option<String> {
    let words = settings.words.as_ref().map(|words| words(arguments)).unwrap_or_default();
    let confirm = settings.require_confirmation.unwrap_or(words.confirm);
    let reason = || match words.action {
        Some(action) => format!("the tool asks for confirmation to {action}"),
        None => "the tool asks for confirmation".to_owned(),
    };
    confirm.then(reason)
}

fn record(
    run: &RunInner,
    span: u64,
    approver: &str,
    decision: &str,
    reason: Option<String>,
    arguments: Option<&Value>,
) -> Result<(), ToolError> {
    if !run.events.wanted() {
        return Ok(());
    }
    run.events.emit(EventKind::CallDecided {
        span,
        approver: approver.to_owned(),
        decision: decision.to_owned(),
        reason,
        arguments: arguments.cloned(),
    })
}
