//! Who decides about calls: the rules of a [`Policy`](crate::Policy), approvers, and the person of a run.

#[doc(inline)]
pub use toolwright_core::{
    ApprovalRequest, Approver, Choice, Decision, DynApprover, DynPerson, Form, FormAuthor, FormBody,
    FormReply, Notice, Person, Validator,
};
#[doc(inline)]
pub use toolwright_runtime::{
    Above, ArgumentMatch, EffectDecision, EffectExample, EffectExamples, EffectMatch, EffectRule, Examples,
    PolicyError, Rule, RuleDecision, Ruling, call_text, strictest_ruling, strictest_ruling_about,
};
