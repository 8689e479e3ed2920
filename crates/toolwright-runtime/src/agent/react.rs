//! An agent that works until it submits an answer.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_core::{BoxFuture, Content, DynModel, Message, StopReason, ToolDef, ToolResult, ToolSpec};

use crate::conversation::Conversation;
use crate::guard;
use crate::run::RunEnd;
use crate::turn::{RunError, StopWhen, ToolCalls, completion};

type Judge = Arc<dyn Fn(String) -> BoxFuture<'static, bool> + Send + Sync>;

/// How an agent works until it submits an answer with the tool `submit`.
///
/// An answer without a call is followed by the word to go on, until the limits of the agent or the run are
/// reached, a [stop condition](crate::LoopOptions::stop_when) holds, the conversation no longer fits the
/// model, or the model refuses three times in a row: then there is no answer. Unless its limits say how many
/// turns it may take, these are at most 100, whatever else they limit. In everything the agent is told,
/// `{submit}` stands for the name of the tool.
#[derive(Clone)]
pub struct React {
    /// The name and the description of the tool; without one the agent is done when it answers without a
    /// call.
    submit: Option<(String, String)>,
    prompt: Option<String>,
    go_on: String,
    incorrect: String,
    attempts: u32,
    judge: Option<Judge>,
    keep_submit: bool,
}

/// How many refusals in a row end the work.
const MAX_REFUSALS: u32 = 3;

/// The turns of an agent whose limits do not say how many.
pub(super) const DEFAULT_TURNS: u64 = 100;

impl Default for React {
    fn default() -> Self {
        React {
            submit: Some(("submit".to_owned(), "Submits the answer, and ends the work.".to_owned())),
            prompt: None,
            go_on: "Please go on with the next step. When you are done, report your answer with the `{submit}` tool."
                .to_owned(),
            incorrect: "Your answer was not correct. Please go on and find the correct one.".to_owned(),
            attempts: 1,
            judge: None,
            keep_submit: false,
        }
    }
}

const PROMPT: &str = "Work step by step, with the tools you have. When you are done, report your answer with the \
                      `{submit}` tool; until then, call a tool in every message.";
const PROMPT_WITHOUT_SUBMIT: &str =
    "Work step by step, with the tools you have. When you are done, answer without calling a tool.";

impl React {
    /// Gives the tool that submits an answer this name and this description.
    #[must_use]
    pub fn submit_as(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.submit = Some((name.into(), description.into()));
        self
    }

    /// Works without a tool that submits: what the agent says without a call is its answer, so it is never
    /// told to go on.
    #[must_use]
    pub fn without_submit(mut self) -> Self {
        self.submit = None;
        self
    }

    /// Lets the agent try so often: `judge` says whether an answer is right. The last attempt counts either
    /// way.
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
        self.prompt = Some(text.into());
        self
    }

    /// Leaves the submission in the conversation as the call it was; otherwise the answer is added to the
    /// words of the message that made it.
    #[must_use]
    pub fn keep_submit(mut self) -> Self {
        self.keep_submit = true;
        self
    }

    pub(super) fn prompt(&self) -> String {
        let usual = if self.submit.is_some() { PROMPT } else { PROMPT_WITHOUT_SUBMIT };
        self.told(self.prompt.as_deref().unwrap_or(usual))
    }

    /// A text with the name of the tool in it.
    fn told(&self, text: &str) -> String {
        match &self.submit {
            Some((name, _)) => text.replace("{submit}", name),
            None => text.to_owned(),
        }
    }

    pub(super) fn submit_tool(&self) -> Option<ToolDef> {
        let (name, description) = self.submit.as_ref()?;
        let mut spec = ToolSpec::new(name.as_str(), description.as_str());
        spec.parameters = json!({
            "type": "object", "required": ["answer"], "additionalProperties": false,
            "properties": {"answer": {"type": "string", "description": "The answer."}}
        });
        let tool = ToolDef::dynamic(spec, |_, arguments: Value| async move {
            arguments.get("answer").and_then(Value::as_str).unwrap_or_default().to_owned()
        });
        Some(tool.with_max_output(0).with_parallel(false))
    }

    pub(super) async fn go(
        &self,
        conversation: &mut Conversation,
        model: &DynModel,
    ) -> Result<(Option<String>, RunEnd), RunError> {
        let stop_when = conversation.options_mut().stop_when.clone();
        if let Some((submit, _)) = self.submit.clone() {
            let stop = StopWhen::new(move |messages| submitted(messages, &submit).is_some());
            conversation.options_mut().stop_when.push(stop);
        }
        // A submission is a call: there is no answer unless calls are made.
        conversation.options_mut().tool_calls = ToolCalls::Loop;
        let (mut attempts, mut refusals) = (0, 0);
        loop {
            let end = conversation.answer(model).await?.unwrap_or(RunEnd::Done);
            let messages = conversation.messages();
            let submitted = self.submit.as_ref().and_then(|(name, _)| submitted(messages, name));
            let refused = conversation.last_stop() == Some(StopReason::Refusal);
            refusals = if refused { refusals + 1 } else { 0 };
            // A conversation that is full, or that the model does not want, gets no better by one message
            // more.
            let stuck =
                conversation.last_stop() == Some(StopReason::ContextLength) || refusals >= MAX_REFUSALS;
            if end != RunEnd::Done || stuck || stop_when.iter().any(|stop| stop.holds(messages)) {
                return Ok((submitted, end));
            }
            let answer = match &self.submit {
                Some(_) => submitted.clone(),
                None => Some(completion(messages)),
            };
            let Some(answer) = answer else {
                conversation.push(Message::user(self.told(&self.go_on)));
                continue;
            };
            attempts += 1;
            let right = match &self.judge {
                Some(judge) if attempts < self.attempts => {
                    guard::caught("the judge of the agent's answers", async { judge(answer).await }).await?
                }
                _ => true,
            };
            if right {
                return Ok((submitted, end));
            }
            conversation.push(Message::user(self.told(&self.incorrect)));
        }
    }

    /// True when the agent is told this on the way, and nobody else said it.
    pub(super) fn tells(&self, message: &Message) -> bool {
        [&self.go_on, &self.incorrect].iter().any(|text| *message == Message::user(self.told(text)))
    }

    /// Makes submissions words, unless they are to stay calls.
    pub(super) fn tidy(&self, messages: &mut Vec<Message>) {
        if let (false, Some((name, _))) = (self.keep_submit, &self.submit) {
            fold_submissions(messages, name);
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

/// Makes submissions part of what was said: the calls and their results go, and each answer joins its
/// message.
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
