//! How a prompt reaches a model: the shapes anthropic-tools sends, and any model of ours.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use toolwright_core::{
    BoxFuture, Message, Model, ModelError, ModelErrorKind, ModelOptions, ModelRequest, StopReason,
    ToolChoice, Usage,
};

use crate::error::{PromptError, PromptErrorKind};
use crate::message::{ASSISTANT, HUMAN};

/// What ends a completion: the end of a block of calls, or the user's turn.
pub const STOP_SEQUENCES: [&str; 2] = ["</function_calls>", HUMAN];

/// A prompt to be completed.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionRequest {
    /// The whole prompt: instructions, then the turns with their markers.
    pub prompt: String,
    /// The most tokens to write.
    pub max_tokens: u32,
    /// How adventurous to be; left to the model when absent.
    pub temperature: Option<f64>,
}

/// What a model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text, without the stop sequence.
    pub text: String,
    /// Why it ended: `stop_sequence`, `max_tokens` or what else the vendor says.
    pub stop_reason: String,
    /// The stop sequence that ended it.
    pub stop: Option<String>,
    /// The tokens it took, as far as that is known. The run is charged for them.
    pub usage: Usage,
}

/// Something that completes prompts.
pub trait Completer: Send + Sync {
    /// What the record calls it.
    fn name(&self) -> &str {
        "completer"
    }

    /// What these tokens cost, in dollars; `None` when nobody knows the price. A run with a limit on its cost does not
    /// ask for a completion without a price.
    fn cost(&self, _usage: &Usage) -> Option<f64> {
        None
    }

    /// Completes one.
    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
    ) -> BoxFuture<'a, Result<Completion, ModelError>>;
}

/// Where anthropic-tools sends its prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Anthropic's Messages API.
    FirstParty,
    /// Text completions on Amazon Bedrock.
    Bedrock,
}

impl Transport {
    /// The model for a name; `default` is the one the package comes with. Bedrock has a single one.
    pub fn model(self, name: &str) -> Result<&str, PromptError> {
        match (self, name) {
            (Transport::FirstParty, "default") => Ok("claude-3-opus-20240229"),
            (Transport::FirstParty, other) => Ok(other),
            (Transport::Bedrock, "default" | "anthropic.claude-v2:1") => Ok("anthropic.claude-v2:1"),
            (Transport::Bedrock, _) => Err(PromptError::new(
                PromptErrorKind::Setting,
                "Only Claude 2.1 is currently supported when working with bedrock in this sdk. If you'd like to use \
                 another model, please use the first party anthropic API (and set first_party=true).",
            )),
        }
    }

    /// The path of a request, after the vendor's base address.
    pub fn path(self, model: &str) -> String {
        match self {
            Transport::FirstParty => "/v1/messages".to_owned(),
            Transport::Bedrock => format!("/model/{model}/invoke"),
        }
    }

    /// The body of a request.
    pub fn body(self, model: &str, request: &CompletionRequest) -> Result<Json, PromptError> {
        let mut body = match self {
            Transport::FirstParty => {
                let (system, messages) = to_messages_api(&request.prompt)?;
                let messages =
                    messages.iter().map(|(role, content)| json!({"role": role, "content": content}));
                json!({
                    "model": model, "max_tokens": request.max_tokens, "stop_sequences": STOP_SEQUENCES,
                    "messages": messages.collect::<Vec<_>>(), "system": system
                })
            }
            Transport::Bedrock => json!({
                "prompt": request.prompt, "max_tokens_to_sample": request.max_tokens,
                "stop_sequences": STOP_SEQUENCES, "anthropic_version": "bedrock-2023-05-31"
            }),
        };
        if let (Some(temperature), Some(body)) = (request.temperature, body.as_object_mut()) {
            body.insert("temperature".to_owned(), json!(temperature));
        }
        Ok(body)
    }
}

impl Transport {
    /// Reads the reply to a request.
    pub fn reply(self, reply: &Json) -> Result<Completion, ModelError> {
        let text = |path: &str| reply.pointer(path).and_then(Json::as_str);
        let missing = |what: &str| {
            ModelError::new(ModelErrorKind::Reply, format!("the reply to a completion has no `{what}`"))
        };
        match self {
            Transport::FirstParty => {
                let blocks = reply.get("content").and_then(Json::as_array);
                let blocks = blocks.ok_or_else(|| missing("content"))?.iter();
                let texts: Vec<&str> = blocks.filter_map(|block| block.get("text")?.as_str()).collect();
                let stop_reason = text("/stop_reason").ok_or_else(|| missing("stop_reason"))?;
                let count = |path: &str| reply.pointer(path).and_then(Json::as_u64).unwrap_or(0);
                let usage = Usage {
                    input_tokens: count("/usage/input_tokens"),
                    output_tokens: count("/usage/output_tokens"),
                    ..Usage::default()
                };
                Ok(Completion { usage, ..from_messages_api(stop_reason, text("/stop_sequence"), &texts) })
            }
            Transport::Bedrock => Ok(Completion {
                text: text("/completion").ok_or_else(|| missing("completion"))?.to_owned(),
                stop_reason: text("/stop_reason").unwrap_or_default().to_owned(),
                stop: text("/stop").map(str::to_owned),
                usage: Usage::default(),
            }),
        }
    }
}

/// Completes prompts as anthropic-tools does: with its own requests, over one of its transports.
///
/// How a request is sent is the caller's: a path and a body go out, the reply comes back. With a model of a vendor that
/// is `VendorModel::post`, which adds the key or the signature.
#[derive(Debug, Clone)]
pub struct TransportCompleter<S> {
    transport: Transport,
    model: String,
    send: S,
}

impl<S> TransportCompleter<S>
where
    S: Fn(String, Json) -> BoxFuture<'static, Result<Json, ModelError>> + Send + Sync,
{
    /// Completes prompts with the model of that name; `default` is the one the package comes with.
    pub fn new(transport: Transport, model: &str, send: S) -> Result<Self, PromptError> {
        Ok(TransportCompleter { transport, model: transport.model(model)?.to_owned(), send })
    }
}

impl<S> Completer for TransportCompleter<S>
where
    S: Fn(String, Json) -> BoxFuture<'static, Result<Json, ModelError>> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.model
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
    ) -> BoxFuture<'a, Result<Completion, ModelError>> {
        Box::pin(async move {
            let body = self.transport.body(&self.model, request);
            let body = body.map_err(|error| ModelError::new(ModelErrorKind::Request, error.to_string()))?;
            self.transport.reply(&(self.send)(self.transport.path(&self.model), body).await?)
        })
    }
}

/// A turn of the Messages API: who speaks, and what is said.
pub type Turn = (&'static str, String);

/// A prompt as the system text and the turns of the Messages API.
pub fn to_messages_api(prompt: &str) -> Result<(String, Vec<Turn>), PromptError> {
    let mut parts = prompt.split(HUMAN);
    let system = parts.next().map(strip).unwrap_or_default();
    let parts: Vec<&str> = parts.collect();
    if parts.is_empty() {
        return Err(PromptError::messages("No human message found in the completion"));
    }
    let mut messages = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        match part.split_once(ASSISTANT) {
            Some((user, assistant)) => {
                messages.push(("user", strip(user)));
                messages.push(("assistant", strip(assistant)));
            }
            None if index + 1 == parts.len() => messages.push(("user", strip(part))),
            None => return Err(PromptError::messages("Consecutive human messages found")),
        }
    }
    Ok((system, messages))
}

/// Text without the space around it, as Python sees space.
fn strip(text: &str) -> String {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\x1c'..='\x1f')).to_owned()
}

/// A reply of the Messages API as a completion: only the first text counts.
pub fn from_messages_api(stop_reason: &str, stop_sequence: Option<&str>, texts: &[&str]) -> Completion {
    let stop_reason = if stop_reason == "end_turn" { "stop_sequence" } else { stop_reason };
    Completion {
        text: texts.first().copied().unwrap_or_default().to_owned(),
        stop_reason: stop_reason.to_owned(),
        stop: Some(stop_sequence.unwrap_or(HUMAN).to_owned()),
        usage: Usage::default(),
    }
}

/// Completes prompts with any model.
///
/// The original lets the model go on from text that is put into its mouth. Models of today refuse that, so results are
/// told by the user instead, unless [`prefill`](Self::prefill) says that this model takes it.
#[derive(Clone)]
pub struct ModelCompleter {
    model: Arc<dyn Model>,
    prefill: bool,
}

impl ModelCompleter {
    /// Completes prompts with this model.
    pub fn new(model: Arc<dyn Model>) -> Self {
        ModelCompleter { model, prefill: false }
    }

    /// Lets the model go on from its own unfinished turn.
    #[must_use]
    pub fn prefill(mut self) -> Self {
        self.prefill = true;
        self
    }
}

impl Completer for ModelCompleter {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        self.model.cost(usage)
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
    ) -> BoxFuture<'a, Result<Completion, ModelError>> {
        Box::pin(async move {
            let (system, turns) = to_messages_api(&request.prompt)
                .map_err(|error| ModelError::new(ModelErrorKind::Request, error.to_string()))?;
            let mut messages = vec![Message::system(system)];
            for (role, content) in turns {
                match role {
                    "user" => messages.push(Message::user(content)),
                    _ if content.is_empty() => {}
                    _ if self.prefill => messages.push(Message::assistant(content)),
                    _ => messages.extend(told_by_the_user(&content)),
                }
            }
            let options = ModelOptions {
                max_tokens: Some(request.max_tokens),
                temperature: request.temperature,
                stop: STOP_SEQUENCES.map(str::to_owned).to_vec(),
                ..ModelOptions::default()
            };
            let request = ModelRequest {
                messages: &messages,
                tools: &[],
                tool_choice: &ToolChoice::None,
                options: &options,
            };
            let reply = self.model.generate(request).await?;
            let text = reply.message.text();
            // Vendors say that a stop sequence was met, and not which: an open block of calls tells.
            let open = text.rfind("<function_calls>") > text.rfind("</function_calls>");
            let stopped = matches!(reply.stop, StopReason::StopSequence | StopReason::EndTurn);
            Ok(Completion {
                stop_reason: if stopped { "stop_sequence" } else { "max_tokens" }.to_owned(),
                stop: stopped.then(|| if open { "</function_calls>" } else { HUMAN }.to_owned()),
                text,
                usage: reply.usage,
            })
        })
    }
}

/// A turn of the model with results in it, as turns of both.
fn told_by_the_user(content: &str) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut rest = content;
    while let Some((said, after)) = rest.split_once("<function_results>") {
        let (results, after) = after.split_once("</function_results>").unwrap_or((after, ""));
        if !said.trim().is_empty() {
            messages.push(Message::assistant(said.trim()));
        }
        messages.push(Message::user(format!("<function_results>{results}</function_results>")));
        rest = after;
    }
    if !rest.trim().is_empty() {
        messages.push(Message::assistant(rest.trim()));
    }
    messages
}
