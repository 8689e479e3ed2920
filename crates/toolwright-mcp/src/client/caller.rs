//! Calls that an MCP client of ours made: questions that a server asks while it works on one are passed on to
//! that client.
//!
//! A server that asks over its session does not name the call. With one client's calls under way that is
//! clear; with those of several nobody is asked, because one of them would read what is meant for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolwright_core::{CancelToken, FormBody, canonical_json};

use super::answers::{not_offered, read_form, sampled_messages, sampled_tokens};
use crate::jsonrpc::RpcError;
use crate::protocol::{ClientCapabilities, ElicitationCapability, Empty, LogLevel, SampleParams};
use crate::server::{Peer, Question};

/// How many log messages of one call are passed on.
const MAX_LOGS: u32 = 1000;

/// A call that a client made, while a server works on it.
pub(crate) struct Caller {
    peer: Peer,
    /// The server, as the program calls it.
    server: String,
    /// What is called, so that its questions are known again when the call is made again.
    called: String,
    asked: AtomicUsize,
    logged: AtomicU32,
    /// Fires when the client must answer first, and make its call again with the answer.
    pub(super) put_off: CancelToken,
    /// Fires when the call is over.
    pub(super) over: CancelToken,
}

/// The client is to make its call again, with an answer.
pub(crate) struct PutOff;

impl Caller {
    pub(super) fn new(peer: Peer, server: &str, tool: &str, arguments: &Value) -> Arc<Self> {
        Arc::new(Caller {
            peer,
            server: server.to_owned(),
            called: canonical_json(&json!([server, tool, arguments])),
            asked: AtomicUsize::new(0),
            logged: AtomicU32::new(0),
            put_off: CancelToken::new(),
            over: CancelToken::new(),
        })
    }

    /// True when both calls come from one client, as far as anybody can tell.
    pub(super) fn same_client(&self, other: &Caller) -> bool {
        self.peer.same_client(&other.peer)
    }

    /// What a server may ask during this call.
    pub(super) fn capabilities(&self) -> ClientCapabilities {
        let ways = ElicitationCapability {
            form: self.peer.can_fill_in().then_some(Empty {}),
            url: self.peer.can_open_pages().then_some(Empty {}),
        };
        ClientCapabilities {
            elicitation: Some(ways).filter(|ways| ways.form.is_some() || ways.url.is_some()),
            sampling: self.peer.can_sample().then_some(Empty {}),
            ..ClientCapabilities::default()
        }
    }

    /// Asks the client one thing. When that means making the call again, the server gets an error, once it
    /// has been told that the call is off.
    pub(super) async fn ask(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        let answers = tokio::select! {
            answers = self.ask_all(vec![(method, params)]) => answers,
            () = self.over.cancelled() => Err(PutOff),
        };
        match answers {
            Ok(mut answers) => answers.pop().unwrap_or_else(|| Err(not_offered(method))),
            Err(PutOff) => {
                self.over.cancelled().await;
                // An error ends what would go on after "nobody answered", and ask the next thing.
                Err(RpcError::new(-1, "the call was cancelled"))
            }
        }
    }

    /// Asks the client several things at once.
    pub(super) async fn ask_all(
        &self,
        questions: Vec<(&str, &Value)>,
    ) -> Result<Vec<Result<Value, RpcError>>, PutOff> {
        let mut answers = Vec::new();
        let (mut places, mut asked) = (Vec::new(), Vec::new());
        for (method, params) in questions {
            let number = self.asked.fetch_add(1, Ordering::Relaxed);
            match self.question(method, params) {
                Err(error) => answers.push(Err(error)),
                Ok(question) if !self.peer.can_answer(&question) => {
                    answers.push(unanswered(method, "decline"))
                }
                Ok(question) => {
                    places.push((answers.len(), method));
                    answers.push(unanswered(method, "cancel"));
                    asked.push((self.key(number, &question), question));
                }
            }
        }
        if asked.is_empty() {
            return Ok(answers);
        }
        match self.peer.ask_all(asked).await {
            Ok(replies) => {
                for ((at, _), reply) in places.into_iter().zip(replies) {
                    if let Some(answer) = answers.get_mut(at) {
                        *answer = Ok(reply.value().clone());
                    }
                }
            }
            Err(_) if self.peer.must_answer_first() => {
                self.put_off.cancel();
                return Err(PutOff);
            }
            // The client refused, or its answer does not fit the question: the question stays unanswered.
            Err(_) => {}
        }
        Ok(answers)
    }

    /// The question to the client, which names the server that asks.
    fn question(&self, method: &str, params: &Value) -> Result<Question, RpcError> {
        match method {
            "elicitation/create" => {
                let form = read_form(&self.server, params)?;
                let message = format!("The server `{}` asks: {}", self.server, form.message);
                Ok(match &form.body {
                    FormBody::Page(url) => {
                        let id = params.get("elicitationId").and_then(Value::as_str).unwrap_or_default();
                        Question::open_page(message, url.clone(), id)
                    }
                    _ => Question::elicit(message, form.schema()),
                })
            }
            "sampling/createMessage" => {
                let member = |key: &str| params.get(key).cloned();
                Ok(Question::sample_as(SampleParams {
                    messages: sampled_messages(params)?.clone(),
                    system_prompt: member("systemPrompt"),
                    temperature: member("temperature"),
                    stop_sequences: member("stopSequences"),
                    model_preferences: member("modelPreferences"),
                    max_tokens: sampled_tokens(params),
                }))
            }
            _ => Err(not_offered(method)),
        }
    }

    /// The same for the same question each time the call is made, and for no other.
    fn key(&self, number: usize, question: &Question) -> String {
        let whole = format!("{}\n{number}\n{}", self.called, question.key());
        let hash = Sha256::digest(whole.as_bytes());
        let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("asked-{hash}")
    }

    /// Passes on a log message of the server.
    pub(super) fn log(&self, level: LogLevel, data: Value) {
        if self.logged.fetch_add(1, Ordering::Relaxed) < MAX_LOGS {
            self.peer.log_as(&self.server, level, data);
        }
    }
}

/// The answer to a server when nobody answers.
pub(super) fn unanswered(method: &str, action: &str) -> Result<Value, RpcError> {
    match method {
        "elicitation/create" => Ok(json!({"action": action})),
        _ => Err(not_offered(method)),
    }
}
