//! A model that uses tools through the prompt, in manual or automatic mode.

use std::ops::Range;
use std::sync::Arc;

use toolwright_core::{
    AskPurpose, AssistantMessage, Content, Dispatch, ErrorKind, Model, ModelError, ModelOptions, ModelReply,
    ModelRequest, Origin, ToolCall, ToolChoice, ToolResult, Usage,
};
use toolwright_expr::Value;

use crate::error::{PromptError, PromptErrorKind};
use crate::message::{
    HUMAN, PromptMessage, ToolInput, ToolOutcome, inject_error, inject_success, render_marked,
};
use crate::parse::{CheckedRequest, check};
use crate::tool::{PromptTool, system_prompt};
use crate::transport::{Completer, CompletionRequest};

/// Who makes the calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallMode {
    /// The caller: each answer of the model comes back as it is.
    #[default]
    Manual,
    /// The run: only the model's last words come back.
    Automatic,
}

impl std::str::FromStr for CallMode {
    type Err = PromptError;

    fn from_str(text: &str) -> Result<Self, PromptError> {
        match text {
            "manual" => Ok(CallMode::Manual),
            "automatic" => Ok(CallMode::Automatic),
            other => Err(PromptError::new(
                PromptErrorKind::Setting,
                format!(
                    "Error: execution_mode must be either 'manual' or 'automatic'. Provided Value: {other}"
                ),
            )),
        }
    }
}

/// What the model answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// A message: its words, or the calls it asks for.
    Message(PromptMessage),
    /// It wrote a call that cannot be made; the text says what is wrong. Answer with [`Next::correction`].
    Mistake(String),
}

impl Next {
    /// The message that tells the model about its mistake.
    pub fn correction(&self) -> Option<PromptMessage> {
        match self {
            Next::Message(_) => None,
            Next::Mistake(error) => Some(PromptMessage::ToolOutputs(Err(error.clone()))),
        }
    }
}

/// How much of the prompt is shown to a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// The messages and what is added to them.
    Half,
    /// Every prompt in full.
    Full,
}

type Watcher = (Verbosity, Arc<dyn Fn(&str) + Send + Sync>);

/// Lets a model use the tools of a run through the prompt.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolwright_core::{ToolDef, ToolSpec, Toolset};
/// use toolwright_models::{Reply, ScriptedModel};
/// use toolwright_prompted::{CallMode, ModelCompleter, Next, PromptMessage, ToolUser};
/// use toolwright_runtime::Run;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let ping = ToolDef::dynamic(ToolSpec::new("ping", "Answers."), |_, _| async { "pong" });
/// let run = Run::builder(Toolset::new().with(ping)?).build()?;
/// let call = "<function_calls><invoke><tool_name>ping</tool_name><parameters></parameters></invoke></function_calls>";
/// let model = ScriptedModel::new([Reply::text(call), Reply::text("It says pong.").expecting("<stdout>\npong")]);
/// let user = ToolUser::new(run.dispatch(), Arc::new(ModelCompleter::new(Arc::new(model)))).await?;
/// let messages = PromptMessage::list_from_json(&json!([{"role": "user", "content": "Ping!"}]))?;
/// let answer = user.use_tools(&messages, CallMode::Automatic).await?;
/// assert_eq!(answer, Next::Message(PromptMessage::Assistant { content: "It says pong.".into() }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct ToolUser {
    /// The tools, as text for the model.
    pub tools: Vec<PromptTool>,
    /// How many mistakes in a row the model may correct before the run fails.
    pub max_retries: u32,
    /// How many completions one answer may take before that is an error. The limits of the run hold beside
    /// it: each completion is one of its turns.
    pub max_turns: u32,
    /// The most tokens of one completion.
    pub max_tokens: u32,
    /// How adventurous the model is; left to the model when absent.
    pub temperature: Option<f64>,
    run: Arc<dyn Dispatch>,
    completer: Arc<dyn Completer>,
    watcher: Option<Watcher>,
}

impl ToolUser {
    /// A user of all tools of a run; those of its sources are asked for.
    pub async fn new(run: Arc<dyn Dispatch>, completer: Arc<dyn Completer>) -> Result<Self, PromptError> {
        let tools = run.fresh_specs().await?.iter().map(PromptTool::from_spec).collect();
        Ok(ToolUser {
            tools,
            max_retries: 3,
            max_turns: 100,
            max_tokens: 2000,
            temperature: None,
            run,
            completer,
            watcher: None,
        })
    }

    /// The user, shown at work: `watcher` gets each piece of text, with a line above it that says what it
    /// is.
    #[must_use]
    pub fn watched(mut self, verbosity: Verbosity, watcher: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.watcher = Some((verbosity, Arc::new(watcher)));
        self
    }

    /// Lets the model answer the messages.
    pub async fn use_tools(&self, messages: &[PromptMessage], mode: CallMode) -> Result<Next, PromptError> {
        let Some(last) = messages.last() else {
            return Err(PromptError::messages("Messages must be a list of length > 0."));
        };
        let (conversation, results) = render_marked(messages)?;
        let system = system_prompt(&self.tools);
        let mut prompt = format!("{system}{conversation}");
        let mut results: Vec<Range<usize>> =
            results.into_iter().map(|place| system.len() + place.start..system.len() + place.end).collect();
        if matches!(last, PromptMessage::User { .. }) {
            prompt.push_str("\n\nAssistant:");
        }
        self.show(Verbosity::Full, "CURRENT PROMPT", &prompt);
        self.show(Verbosity::Half, "INPUT (TO SEE SYSTEM PROMPT WITH TOOLS SET verbose=1)", &conversation);
        let mut said = messages.len();
        let mut completion = self.complete(&prompt, &results, said).await?;
        self.show(Verbosity::Full, "COMPLETION", &completion);
        self.show(Verbosity::Half, "CLAUDE GENERATION", &completion);
        let (mut turns, mut mistakes) = (1, 0);
        loop {
            let injection = match (check(&completion, &self.tools), mode) {
                (CheckedRequest::Nothing, _) => {
                    return Ok(Next::Message(PromptMessage::Assistant { content: completion }));
                }
                (CheckedRequest::Calls { prefix, calls }, CallMode::Manual) => {
                    let message = PromptMessage::ToolInputs { content: prefix, tool_inputs: calls };
                    return Ok(Next::Message(message));
                }
                (CheckedRequest::Mistake(reason), CallMode::Manual) => return Ok(Next::Mistake(reason)),
                (CheckedRequest::Calls { calls, .. }, CallMode::Automatic) => {
                    match self.call(&calls).await? {
                        Ok(outcomes) => {
                            mistakes = 0;
                            inject_success(&outcomes)
                        }
                        Err(reason) => self.tell(&reason, &mut mistakes)?,
                    }
                }
                (CheckedRequest::Mistake(reason), CallMode::Automatic) => {
                    self.tell(&reason, &mut mistakes)?
                }
            };
            if turns >= self.max_turns {
                let message = format!("the model was still using tools after {turns} completions");
                return Err(PromptError::new(PromptErrorKind::Turns, message));
            }
            turns += 1;
            prompt.push_str(&format!("{completion}\n\n"));
            results.push(prompt.len()..prompt.len() + injection.len());
            prompt.push_str(&injection);
            self.show(Verbosity::Half, "RESPONSE TO FUNCTION CALLS (fed back into Claude)", &injection);
            self.show(Verbosity::Full, "CURRENT PROMPT", &prompt);
            // The calls, and what came of them.
            said += 2;
            completion = self.complete(&prompt, &results, said).await?;
            self.show(Verbosity::Full, "CLAUDE GENERATION", &completion);
            self.show(Verbosity::Half, "CLAUDE GENERATION", &completion);
        }
    }

    /// The text that tells a model about its mistake, unless it made too many.
    fn tell(&self, reason: &str, mistakes: &mut u32) -> Result<String, PromptError> {
        if *mistakes == self.max_retries {
            let message = "Hit maximum number of retries attempting to use tools.";
            return Err(PromptError::new(PromptErrorKind::Retries, message));
        }
        *mistakes += 1;
        Ok(inject_error(reason))
    }

    /// Completes a prompt of so many messages, as a turn of the run.
    async fn complete(
        &self,
        prompt: &str,
        results: &[Range<usize>],
        messages: usize,
    ) -> Result<String, PromptError> {
        let request = CompletionRequest {
            prompt: prompt.to_owned(),
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            results: results.to_vec(),
        };
        let model = Completing { completer: self.completer.clone(), request };
        let asked = ModelRequest {
            messages: &[],
            tools: &[],
            tool_choice: &ToolChoice::None,
            options: &ModelOptions::default(),
        };
        let reply = self
            .run
            .ask(AskPurpose::Turn { messages }, &model, asked)
            .await
            .map_err(PromptError::ended)??;
        Ok(reply.message.text())
    }

    /// Makes the calls of a `tool_inputs` message, and gives the message that answers it: what a program in
    /// manual mode does between two answers of the model, after it has looked at the calls.
    pub async fn run_tools(&self, inputs: &[ToolInput]) -> Result<PromptMessage, PromptError> {
        Ok(PromptMessage::ToolOutputs(self.call(inputs).await?))
    }

    /// Makes the calls one after the other; the model gets the first failure.
    async fn call(&self, inputs: &[ToolInput]) -> Result<Result<Vec<ToolOutcome>, String>, PromptError> {
        let mut outcomes = Vec::with_capacity(inputs.len());
        for (index, input) in inputs.iter().enumerate() {
            let name = &input.tool_name;
            if !self.tools.iter().any(|tool| tool.name == *name) {
                return Ok(Err(format!("No tool named <tool_name>{name}</tool_name> available.")));
            }
            let arguments = Value::dict(input.tool_arguments.iter().cloned());
            let Ok(json) = arguments.to_json() else {
                return Ok(Err(format!(
                    "The arguments {arguments} for <tool_name>{name}</tool_name> cannot be sent."
                )));
            };
            let call = ToolCall::new(format!("call_{index}"), name.as_str(), json);
            let mut result = self.run.call(call, Origin::default()).await?;
            result.conceal();
            if let Some(error) = &result.error {
                if error.kind == ErrorKind::Cancelled {
                    return Err(PromptError::new(PromptErrorKind::Cancelled, error.message.clone()));
                }
                return Ok(Err(format!("{name}: {}", error.message)));
            }
            outcomes.push(ToolOutcome { tool_result: value(&result), tool_name: name.clone() });
        }
        Ok(Ok(outcomes))
    }

    fn show(&self, level: Verbosity, title: &str, text: &str) {
        if let Some((_, watcher)) = self.watcher.as_ref().filter(|(wanted, _)| *wanted == level) {
            watcher(&format!("----------{title}----------\n{text}\n"));
        }
    }
}

/// One completion as the answer of a model, so that a run can admit, charge and record it. What is asked is
/// in the completion's own request.
struct Completing {
    completer: Arc<dyn Completer>,
    request: CompletionRequest,
}

impl Model for Completing {
    fn name(&self) -> &str {
        self.completer.name()
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        self.completer.cost(usage)
    }

    async fn generate(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let completion = self.completer.complete(&self.request).await?;
        let stop = completion.ended();
        let cut = completion.stop_reason == "stop_sequence"
            && completion.stop.as_deref() == Some("</function_calls>");
        let mut text = if cut { completion.text + "</function_calls>" } else { completion.text };
        // Who does not stop where the user's turn begins speaks for the user.
        text.truncate(text.find(HUMAN).unwrap_or(text.len()));
        let message = AssistantMessage { content: vec![Content::text(text)], ..AssistantMessage::default() };
        Ok(ModelReply { message, stop, usage: completion.usage })
    }
}

impl std::fmt::Debug for ToolUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolUser").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// What a tool returned, as the format can say it: it has no place for pictures and sounds.
fn value(result: &ToolResult) -> Value {
    let facts = result.explanation();
    if let ([Content::Json { value }], None) = (result.content.as_slice(), &facts) {
        return Value::from_json(value);
    }
    let words = |block: &Content| match block.in_words() {
        Some(text) => text.into_owned(),
        None => "[something that is not text]".to_owned(),
    };
    let facts = facts.map(|facts| match facts.as_str() {
        Some(note) => format!("Metadata: {note}"),
        None => format!("Metadata: {facts}"),
    });
    let parts: Vec<String> = result.content.iter().map(words).chain(facts).collect();
    Value::str(parts.join("\n"))
}
