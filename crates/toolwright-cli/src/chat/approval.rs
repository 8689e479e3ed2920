//! Calls that wait for the person's decision.

use tokio::sync::oneshot;
use toolwright::approval::{Choice, Decision, Validator};

/// The keys that answer a question: the word each stands for, how it is offered, and what it comes to.
pub const KEYS: [(char, &str, &str, Choice); 6] = [
    ('y', "yes", "[y]es once", Choice::Approve),
    ('a', "always", "[a]lways for these arguments", Choice::Approve),
    ('e', "edit", "[e]dit", Choice::Modify),
    ('n', "no", "[n]o", Choice::Reject),
    ('p', "pass", "[p]ass it on", Choice::Escalate),
    ('q', "quit", "[q]uit the run", Choice::Terminate),
];

/// A call that waits for the person's word.
pub struct Question {
    pub shown: String,
    pub reason: Option<String>,
    /// The tool and its arguments: what "always" is about.
    pub what: String,
    pub arguments: serde_json::Value,
    /// Whether the tool takes what somebody makes of them.
    pub validator: Validator,
    /// The keys of the answers that may be given.
    pub keys: Vec<char>,
    pub answer: oneshot::Sender<Decision>,
}
