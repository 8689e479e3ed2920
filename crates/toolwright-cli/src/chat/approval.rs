//! Calls that need the person's word: they wait until the screen has asked.

use tokio::sync::{mpsc, oneshot};
use toolwright::{ApprovalRequest, Approver, BoxFuture, Choice, Decision, Validator, call_text};

use super::ui::News;
use crate::prompt::printable;

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

/// Asks the person in the chat.
pub struct Asker(pub mpsc::UnboundedSender<News>);

impl Approver for Asker {
    fn name(&self) -> &str {
        "human"
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let (answer, decided) = oneshot::channel();
            let shown = match &request.view.call {
                Some(view) => view.content.clone(),
                None => call_text(request.call),
            };
            let question = Question {
                shown: printable(&shown),
                reason: request.reason.as_deref().map(printable),
                what: format!("{} {}", request.call.name, request.call.arguments),
                arguments: request.call.arguments.clone(),
                validator: request.validator.clone(),
                keys: KEYS.iter().filter(|key| request.offers(key.3)).map(|key| key.0).collect(),
                answer,
            };
            let nobody = || Decision::reject("nobody answered");
            match self.0.send(News::Question(question)) {
                Ok(()) => decided.await.unwrap_or_else(|_| nobody()),
                Err(_) => nobody(),
            }
        })
    }
}
