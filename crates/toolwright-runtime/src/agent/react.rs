//! An agent that works until it submits an answer.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_core::{BoxFuture, Content, Message, Model, ToolDef, ToolResult, ToolSpec};

use crate::conversation::Conversation;
use crate::run::RunEnd;
use crate::turn::{RunError, StopWhen, ToolCalls};

type Judge = Arc<dyn Fn(String) -> BoxFuture<'static, bool> + Send + Sync>;

/// How an agent works until it submits an answer with the tool `submit`.
///
/// An answer without a call is followed by the word to go on, until the limits of the agent or the run are reached. An
/// agent without limits of its own may take at most 100 turns.
#[derive(Clone)]
pub struct React {
    submit: String,
    prompt: String,
    go_on: String,
    incorrect: String,
    attempts: u32,
    judge: Option<Judge>,
    keep_submit: bool,
}

/// The turns of an agent without limits of its own.
pub(super) const DEFAULT_TURNS: u64 = 100;

impl Default for React {
    fn default() -> Self {
        React {
            submit: "submit".to_owned(),
            prompt: "Work step by step, with the tools you have. When you are done, report your answer with the \
                     `submit` tool; until then, call a tool in every message."
                .to_owned(),
            go_on: "Please go on with the next step. When you are done, report your answer with the `submit` tool."
                .to_owned(),
            incorrect: "Your answer was not correct. Please go on and find the correct one.".to_owned(),
            attempts: 1,
            judge: None,
            keep_submit: false,
        }
    }
}

impl React {
    /// Lets the agent try so often: `judge` says whether an answer is right. The last attempt counts either way.
    #[must_use]
    pub fn attempts<F, Fut>(mut self, attempts: u32, judge: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        self.attempts = attempts;
        self.judge = Some(Arc::new(move |answer| Box::pin(judge(answer))));
        self
    }

    /// Tells the agent this when it has answered without a call.
    #[must_use]
    pub fn go_on(mut self, text: impl Into<String>) -> Self {
        self.go_on = text.into();
        self
    }

    /// Tells the agent this when an answer was not right.
    #[must_use]
    pub fn incorrect(mut self, text: impl Into<String>) -> Self {
        self.incorrect = text.into();
        self
    }

    /// Tells the agent this about how to work, in place of the usual words.
    #[must_use]
    pub fn prompted(mut self, text: impl Into<String>) -> Self {
        self.prompt = text.into();
        self
    }

    /// Leaves the submission in the conversation as the call it was; otherwise the answer is added to the words of the
    /// message that made it.
    #[must_use]
    pub fn keep_submit(mut self) -> Self {
        self.keep_submit = true;
        self
    }

    pub(super) fn prompt(&self) -> &str {
        &self.prompt
    }

    pub(super) fn submit_tool(&self) -> ToolDef {
        let mut spec = ToolSpec::new(self.submit.as_str(), "Submits the answer, and ends the work.");
        spec.parameters = json!({
            "type": "object", "required": ["answer"], "additionalProperties": false,
            "properties": {"answer": {"type": "string", "description": "The answer."}}
        });
        let tool = ToolDef::dynamic(spec, |_, arguments: Value| async move {
            arguments.get("answer").and_then(Value::as_str).unwrap_or_default().to_owned()
        });
        tool.with_max_output(0).with_parallel(false)
    }

    pub(super) async fn go(
        &self,
        conversation: &mut Conversation,
        model: &dyn Model,
    ) -> Result<(Option<String>, RunEnd), RunError> {
        let submit = self.submit.clone();
        let stop = StopWhen::new(move |messages| submitted(messages, &submit).is_some());
        conversation.how_mut().stop_when.push(stop);
        // A submission is a call: there is no answer unless calls are made.
        conversation.how_mut().tool_calls = ToolCalls::Loop;
        let mut attempts = 0;
        loop {
            let end = conversation.answer(model).await?.unwrap_or(RunEnd::Done);
            let answer = submitted(conversation.messages(), &self.submit);
            if end != RunEnd::Done {
                return Ok((answer, end));
            }
            let Some(answer) = answer else {
                conversation.push(Message::user(&self.go_on));
                continue;
            };
            attempts += 1;
            let right = match &self.judge {
                Some(judge) if attempts < self.attempts => judge(answer.clone()).await,
                _ => true,
            };
            if right {
                return Ok((Some(answer), end));
            }
            conversation.push(Message::user(&self.incorrect));
        }
    }

    /// Makes submissions words, unless they are to stay calls.
    pub(super) fn tidy(&self, messages: &mut Vec<Message>) {
        if !self.keep_submit {
            fold_submissions(messages, &self.submit);
        }
    }
}

impl std::fmt::Debug for React {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("React").field("attempts", &self.attempts).finish_non_exhaustive()
    }
}

/// The answer among the results after the model's last message.
fn submitted(messages: &[Message], submit: &str) -> Option<String> {
    let results = messages.iter().rev().map_while(|message| match message {
        Message::Tool(result) => Some(result),
        _ => None,
    });
    let answers = results.filter(|result| *result.name == *submit && !result.is_error());
    answers.last().map(ToolResult::to_text)
}

/// Makes submissions part of what was said: the calls and their results go, and each answer joins its message.
fn fold_submissions(messages: &mut Vec<Message>, submit: &str) {
    let mut ids = Vec::new();
    for message in messages.iter_mut() {
        match message {
            Message::Assistant(said) => {
                let calls = said.tool_calls.len();
                said.tool_calls.retain(|call| {
                    let is_submit = *call.name == *submit;
                    if is_submit {
                        ids.push(call.id.clone());
                        if let Some(answer) = call.arguments.get("answer").and_then(Value::as_str) {
                            said.content.push(Content::text(answer));
                        }
                    }
                    !is_submit
                });
                if said.tool_calls.len() < calls {
                    // The places of those that are left count calls that are gone.
                    said.calls_after.clear();
                }
            }
            Message::System { .. } | Message::User { .. } | Message::Tool(_) => {}
        }
    }
    messages.retain(
        |message| !matches!(message, Message::Tool(result) if *result.name == *submit && ids.contains(&result.call_id)),
    );
}
