//! The person at the chat: questions, forms and notices become news for the screen, and wait there for an
//! answer.

use tokio::sync::{mpsc, oneshot};
use toolwright::approval::{ApprovalRequest, Decision, Form, FormReply, Notice, Person, call_text};

use super::approval::{KEYS, Question, approving_rule};
use super::form::FormEditor;
use super::ui::News;
use crate::prompt::printable;

pub struct ChatPerson(pub mpsc::UnboundedSender<News>);

impl ChatPerson {
    async fn decide(&self, request: &ApprovalRequest<'_>) -> Option<Decision> {
        let (answer, decided) = oneshot::channel();
        let shown = match &request.view.call {
            Some(view) => view.content.clone(),
            None => call_text(request.call),
        };
        let question = Question {
            shown: printable(&shown),
            reason: request.reason.as_deref().map(printable),
            rule: approving_rule(request.call),
            arguments: request.call.arguments.clone(),
            validator: request.validator.clone(),
            keys: KEYS.iter().filter(|key| request.offers(key.3)).map(|key| key.0).collect(),
            answer,
        };
        self.0.send(News::Question(question)).ok()?;
        decided.await.ok()
    }

    async fn fill_in(&self, form: &Form) -> Option<FormReply> {
        let (sender, reply) = oneshot::channel();
        self.0.send(News::Form(FormEditor::new(form, sender))).ok()?;
        reply.await.ok()
    }
}

impl Person for ChatPerson {
    async fn approve(&self, request: &ApprovalRequest<'_>) -> Decision {
        self.decide(request).await.unwrap_or_else(|| Decision::reject("nobody answered"))
    }

    async fn answer(&self, form: &Form) -> FormReply {
        self.fill_in(form).await.unwrap_or(FormReply::Cancelled)
    }

    async fn notify(&self, notice: &Notice) {
        // A chat that has ended shows nothing.
        let _ = self.0.send(News::Notice(notice.clone()));
    }
}
