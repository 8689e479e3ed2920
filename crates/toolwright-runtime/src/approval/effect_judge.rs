//! Decides what becomes of a call's effect: by the rules, by their defaults, and by whoever is asked.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_core::{
    Annotations, ApprovalRequest, Approver as _, CallNote, CallView, Choice, Decision, Dispatch as _,
    DynApprover, EffectVerdict, StagedEffect, ToolCall, ToolContext,
};

use super::Approvals;
use super::effects::{CompiledEffectRule, EffectDecision, default_reason};
use crate::guard;
use crate::run::{RunEnd, RunFrame};

/// The name of the note that says who decided about an effect.
const NOTE: &str = "effect_decision";

/// The most paths that a person is offered to choose from.
const MAX_CHOICES: usize = 200;

/// What the rules say.
struct EffectRuling {
    decision: EffectDecision,
    reason: String,
    /// Whether changes of protected files are meant, too.
    protected: bool,
    /// Whether somebody is asked for the protected files alone.
    only_protected: bool,
    /// Whether nothing but a person answers.
    mandatory: bool,
}

impl Approvals {
    fn effect_ruling(&self, staged: &StagedEffect, tool: &str) -> EffectRuling {
        let matching = |rules: &'_ [CompiledEffectRule]| -> Vec<CompiledEffectRule> {
            rules.iter().filter(|rule| rule.matches(staged, tool)).cloned().collect()
        };
        let own: Vec<_> = self.layers.iter().flat_map(|policy| matching(&policy.effects)).collect();
        let binding: Vec<_> = self.mandatory.iter().flat_map(|policy| matching(&policy.effects)).collect();
        let binding: Vec<_> =
            binding.into_iter().filter(|rule| rule.rule.decision > EffectDecision::Commit).collect();
        // Of equally strict rules the first one gives the reason.
        let strictest = own.iter().chain(&binding).rev().max_by_key(|rule| rule.rule.decision);
        let mut ruling = match strictest {
            Some(rule) => EffectRuling {
                decision: rule.rule.decision,
                reason: rule.rule.reason.clone().unwrap_or_else(|| "a rule of the policy".to_owned()),
                protected: false,
                only_protected: false,
                mandatory: false,
            },
            None => EffectRuling {
                decision: EffectDecision::Commit,
                reason: String::new(),
                protected: false,
                only_protected: false,
                mandatory: false,
            },
        };
        ruling.mandatory =
            binding.iter().any(|rule| rule.rule.decision == ruling.decision) && !binding.is_empty();
        ruling.protected =
            own.iter().any(|rule| rule.rule.decision == EffectDecision::Commit && rule.covers_protected());
        // The defaults hold where no rule speaks, and for protected files where none speaks of them.
        let unspoken = strictest.is_none() || staged.ask;
        let protected = !staged.protected.is_empty() && !ruling.protected;
        if ruling.decision == EffectDecision::Commit
            && (unspoken || protected)
            && let Some((reason, only_protected)) = default_reason(staged)
        {
            let only_protected = only_protected || (!unspoken && protected);
            ruling = EffectRuling { decision: EffectDecision::Ask, reason, only_protected, ..ruling };
        }
        ruling
    }

    /// Decides about the effect of a call.
    pub(crate) async fn judge_effect(
        &self,
        run: &RunFrame,
        context: &ToolContext,
        staged: &StagedEffect,
    ) -> EffectVerdict {
        let ruling = self.effect_ruling(staged, context.tool_name());
        let (by, verdict) = match ruling.decision {
            EffectDecision::Commit => {
                return EffectVerdict::Commit { protected: ruling.protected, except: Vec::new() };
            }
            EffectDecision::Discard => ("policy", EffectVerdict::Discard { reason: ruling.reason.clone() }),
            EffectDecision::Ask if self.assume_yes && !ruling.mandatory => {
                ("assume_yes", EffectVerdict::Commit { protected: true, except: Vec::new() })
            }
            EffectDecision::Ask => match self.ask_about_effect(run, context, staged, &ruling).await {
                Some((by, verdict)) => (by, verdict),
                // The rest of the call is not held up for them.
                None if ruling.only_protected => return EffectVerdict::default(),
                None => ("policy", EffectVerdict::SetAside { reason: ruling.reason.clone() }),
            },
        };
        let decision = match &verdict {
            EffectVerdict::Commit { .. } => "commit",
            EffectVerdict::SetAside { .. } => "set_aside",
            EffectVerdict::Discard { .. } => "discard",
        };
        let value = json!({"by": by, "decision": decision, "reason": ruling.reason});
        run.note(context, CallNote::Data { name: NOTE.to_owned(), value });
        verdict
    }

    /// Asks the approvers, or the person of the run, until one decides; `None` when nobody does.
    async fn ask_about_effect(
        &self,
        run: &RunFrame,
        context: &ToolContext,
        staged: &StagedEffect,
        ruling: &EffectRuling,
    ) -> Option<(&'static str, EffectVerdict)> {
        // What a process does after its call has ended concerns nobody who is there.
        run.shared.active.person_clock(context.span())?;
        let all = || staged.changes.iter().chain(&staged.protected);
        let paths: Vec<&str> = all().take(MAX_CHOICES).map(|change| change.path.as_str()).collect();
        let call =
            ToolCall::new(context.call_id().to_string(), &**context.tool_name(), json!({"commit": paths}));
        let annotations = Annotations::default();
        let mut request = ApprovalRequest::new(&call, &annotations);
        request.view = CallView::text(shown(staged, context.tool_name()));
        request.reason = Some(ruling.reason.clone());
        (request.depth, request.requester) = (context.depth(), context.requester().clone());
        const CHOICES: [Choice; 4] = [Choice::Approve, Choice::Modify, Choice::Reject, Choice::Terminate];
        request.choices = Some(&CHOICES);
        let asked: Vec<Arc<DynApprover>> = match context.person() {
            Some(person) if self.approvers.is_empty() => vec![Arc::new(person)],
            _ => self.approvers.clone(),
        };
        let _wait = run.person_wait(context);
        for approver in asked {
            let deciding = guard::caught("the approver", async { approver.decide(&request).await });
            let decided = tokio::select! {
                decided = deciding => decided,
                () = context.cancel_token().cancelled() => return None,
            };
            let verdict = match decided.unwrap_or_else(|_| Decision::reject("the approver panicked")) {
                Decision::Approve => EffectVerdict::Commit { protected: true, except: Vec::new() },
                Decision::Modify { arguments } => chosen(&paths, &arguments),
                Decision::Reject { reason } => EffectVerdict::Discard { reason },
                Decision::Escalate => continue,
                Decision::Terminate { reason } => {
                    run.end(RunEnd::Terminated { reason: reason.clone() });
                    run.cancel.cancel();
                    EffectVerdict::SetAside { reason }
                }
            };
            return Some(("person", verdict));
        }
        None
    }
}

/// The verdict of a person who left some of the paths.
fn chosen(paths: &[&str], arguments: &Value) -> EffectVerdict {
    let kept = arguments.get("commit").and_then(Value::as_array).into_iter().flatten();
    let kept: HashSet<&str> = kept.filter_map(Value::as_str).collect();
    let except = paths.iter().filter(|path| !kept.contains(**path)).map(|path| (*path).to_owned());
    EffectVerdict::Commit { protected: true, except: except.collect() }
}

/// What a person sees of an effect.
fn shown(staged: &StagedEffect, tool: &str) -> String {
    const MAX_LINES: usize = 40;
    let mut text = format!("apply what `{tool}` changed in {}:\n", staged.folders.join(", "));
    let all = staged
        .changes
        .iter()
        .map(|change| (change, ""))
        .chain(staged.protected.iter().map(|change| (change, "  (programs outside obey it)")));
    for (change, note) in all.take(MAX_LINES) {
        let from = change.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        let runs = if change.executable { "  executable" } else { "" };
        text.push_str(&format!("{:<7} {}{from}{runs}{note}\n", change.change.as_str(), change.path));
    }
    let count = (staged.changes.len() + staged.protected.len()) as u64 + staged.more;
    let rest = count.saturating_sub(MAX_LINES as u64);
    if rest > 0 {
        text.push_str(&format!("and {rest} more\n"));
    }
    if !staged.diff.is_empty() {
        text.push('\n');
        text.push_str(&staged.diff);
    }
    text
}
