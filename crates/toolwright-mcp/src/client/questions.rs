//! The questions of a server: bounded, and answered by the program's own answers or by the client whose call
//! the server works on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use tokio::sync::watch;
use toolwright_core::CancelToken;
use toolwright_util::lock;

use super::answers::Answers;
use super::caller::{Caller, PutOff, unanswered};
use super::calls::CallOrigin;
use super::connection::ServerConnection;
use crate::jsonrpc::{self, BUSY, Id, RpcError};
use crate::protocol::ClientCapabilities;
/// The most questions of a server that are answered at once.
const MAX_QUESTIONS: usize = 8;

/// The most questions that a server may ask for each call that is made of it. People and models are not to be
/// kept busy.
const MAX_QUESTIONS_A_CALL: usize = 100;

/// The questions of one server.
pub(super) struct Questions {
    answers: Answers,
    /// What the program calls the server.
    server: String,
    /// How many are being answered.
    open: AtomicUsize,
    /// Those that are being answered; the server may cancel one.
    answering: Mutex<Vec<(Id, CancelToken)>>,
    /// How many were asked since the last call.
    since_call: AtomicUsize,
    /// How many a person is asked now.
    people: watch::Sender<usize>,
}

/// A question that a person is asked, until it is dropped.
struct PersonAsked<'a>(&'a watch::Sender<usize>);

impl Drop for PersonAsked<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|people| *people -= 1);
    }
}

impl Questions {
    pub(super) fn new(answers: Answers, server: String) -> Self {
        let (open, since_call) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let people = watch::Sender::new(0);
        Questions { answers, server, open, answering: Mutex::default(), since_call, people }
    }

    /// Begins to count anew: a call is made of the server.
    pub(super) fn call_begins(&self) {
        self.since_call.store(0, Ordering::Relaxed);
    }

    /// How many questions a person is asked, now and from now on.
    pub(super) fn people(&self) -> watch::Receiver<usize> {
        self.people.subscribe()
    }

    fn ask_person(&self) -> PersonAsked<'_> {
        self.people.send_modify(|people| *people += 1);
        PersonAsked(&self.people)
    }

    /// What the program calls the server.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Whether calls are registered with the clients they are for.
    pub(super) fn notes_callers(&self) -> bool {
        self.answers.passed_on
    }

    /// Whether the client that made a call answers this.
    fn passes_on(&self, method: &str) -> bool {
        let given = method == "sampling/createMessage" && self.answers.sampling.is_some();
        self.answers.passed_on && !given && method != "roots/list"
    }

    /// What a server may ask, during this client's call or any.
    pub(super) fn capabilities(&self, caller: Option<&Arc<Caller>>) -> ClientCapabilities {
        let Some(caller) = caller else { return self.answers.capabilities() };
        let own = Answers { passed_on: false, person: None, ..self.answers.clone() }.capabilities();
        let theirs = caller.capabilities();
        ClientCapabilities {
            sampling: own.sampling.or(theirs.sampling),
            elicitation: theirs.elicitation,
            ..own
        }
    }

    /// Stops answering a question that the server has cancelled: a model is not asked for nothing.
    pub(super) fn cancelled(&self, id: &Id) {
        let answering = self.answering().clone();
        answering.iter().filter(|(other, _)| other == id).for_each(|(_, token)| token.cancel());
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0 && self.answering().is_empty()
    }

    fn answering(&self) -> MutexGuard<'_, Vec<(Id, CancelToken)>> {
        lock(&self.answering)
    }
}

impl ServerConnection {
    /// Answers a question of the server; what takes time goes on by itself.
    pub(super) fn asked(self: &Arc<Self>, id: Id, method: String, params: Value, whose: Option<CallOrigin>) {
        if method == "ping" {
            self.try_send("", jsonrpc::result(&id, &json!({})));
            return;
        }
        let questions = &self.questions;
        let too_many = questions.since_call.fetch_add(1, Ordering::Relaxed) >= MAX_QUESTIONS_A_CALL;
        if questions.open.fetch_add(1, Ordering::AcqRel) >= MAX_QUESTIONS || too_many {
            questions.open.fetch_sub(1, Ordering::AcqRel);
            let error = RpcError::new(BUSY, "too many questions, at once or for one call");
            self.try_send("", jsonrpc::error(Some(&id), &error));
            return;
        }
        let (connection, cancelled) = (self.clone(), CancelToken::new());
        questions.answering().push((id.clone(), cancelled.clone()));
        tokio::spawn(async move {
            let outcome = tokio::select! {
                outcome = connection.answer_question(&method, &params, whose) => Some(outcome),
                () = connection.closed().cancelled() => None,
                // The protocol forbids answers to cancelled requests.
                () = cancelled.cancelled() => None,
            };
            let questions = &connection.questions;
            {
                let mut answering = questions.answering();
                let at = answering.iter().position(|(other, _)| *other == id);
                at.map(|at| answering.swap_remove(at));
            }
            questions.open.fetch_sub(1, Ordering::AcqRel);
            match outcome {
                Some(Ok(answer)) => connection.try_send("", jsonrpc::result(&id, &answer)),
                Some(Err(error)) => connection.try_send("", jsonrpc::error(Some(&id), &error)),
                None => {}
            }
        });
    }

    /// Answers a question; without `whose`, one that came without naming the call it is for.
    pub(super) async fn answer_question(
        &self,
        method: &str,
        params: &Value,
        whose: Option<CallOrigin>,
    ) -> Result<Value, RpcError> {
        let (caller, payer) = match whose {
            Some(CallOrigin { caller, payer }) => (Some(caller), payer.or_else(|| self.calls.payer())),
            None => (self.calls.caller(), self.calls.payer()),
        };
        // A person who thinks uses up no time of the call.
        let by_person = method == "elicitation/create";
        let _asked = by_person.then(|| self.questions.ask_person());
        let waiting = payer.as_ref().filter(|_| by_person);
        let _wait = waiting.map(|context| context.host().person_wait(context));
        let Questions { answers, server, .. } = &self.questions;
        match caller {
            Some(Some(caller)) if self.questions.passes_on(method) => caller.ask(method, params).await,
            Some(_) => answers.answer(server, method, params, payer).await,
            None => {
                self.log(&format!(
                    "`{method}` came during calls of several clients, and none of them was asked"
                ));
                unanswered(method, "decline")
            }
        }
    }

    /// Answers the questions that a server asks in place of a result, all of them at once.
    pub(super) async fn answer_all(
        &self,
        whose: &CallOrigin,
        questions: &[(&str, &Value)],
    ) -> Result<Vec<Result<Value, RpcError>>, PutOff> {
        let caller = whose.caller.as_ref();
        let passed_on = |method: &str| caller.is_some() && self.questions.passes_on(method);
        let mut theirs: std::vec::IntoIter<_> = match caller {
            Some(caller) => {
                let theirs = questions.iter().filter(|(method, _)| passed_on(method)).copied().collect();
                caller.ask_all(theirs).await?.into_iter()
            }
            None => Vec::new().into_iter(),
        };
        let Questions { answers, server, .. } = &self.questions;
        let mut all = Vec::new();
        for (method, params) in questions {
            let answer = if passed_on(method) { theirs.next() } else { None };
            all.push(match answer {
                Some(answer) => answer,
                None => {
                    let payer = whose.payer.clone().or_else(|| self.calls.payer());
                    answers.answer(server, method, params, payer).await
                }
            });
        }
        Ok(all)
    }
}
