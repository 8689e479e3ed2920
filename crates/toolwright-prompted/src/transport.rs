//! How a prompt reaches a model: the shapes anthropic-tools sends, and any model of ours.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use toolwright_core::{
    BoxFuture, DynModel, Message, Model, ModelError, ModelErrorKind, ModelOptions, ModelRequest, StopReason,
    ToolChoice, Usage,
};

use crate::error::{PromptError, PromptErrorKind};
use crate::message::{ASSISTANT, HUMAN};
use crate::stops::{self, Stops};

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
    /// Where results of tools stand in the prompt, in order, in bytes. What only looks like results is not
    /// among them.
    pub results: Vec<Range<usize>>,
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

    /// What these tokens cost, in dollars; `None` when the price is unknown. A run with a limit on its cost
    /// does not ask for a completion without a price.
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
/// How a request is sent is the caller's: a path and a body go out, the reply comes back. With a model of a
/// vendor that is `VendorModel::post`, which adds the key or the signature.
///
/// Without a [price](Self::priced), a run with a limit on its cost does not ask it. Text completions on
/// Bedrock do not say how many tokens they took: they are estimated as one per four bytes.
#[derive(Clone)]
pub struct TransportCompleter<S> {
    transport: Transport,
    model: String,
    send: S,
    price: Option<Arc<PriceOf>>,
}

type PriceOf = dyn Fn(&Usage) -> Option<f64> + Send + Sync;

impl<S> TransportCompleter<S>
where
    S: Fn(String, Json) -> BoxFuture<'static, Result<Json, ModelError>> + Send + Sync,
{
    /// Completes prompts with the model of that name; `default` is the one the package comes with.
    pub fn new(transport: Transport, model: &str, send: S) -> Result<Self, PromptError> {
        Ok(TransportCompleter { transport, model: transport.model(model)?.to_owned(), send, price: None })
    }

    /// The completer with a price: what so many tokens cost, in dollars. With a model of a vendor that is its
    /// `Model::cost`.
    #[must_use]
    pub fn priced(mut self, price: impl Fn(&Usage) -> Option<f64> + Send + Sync + 'static) -> Self {
        self.price = Some(Arc::new(price));
        self
    }
}

impl<S> std::fmt::Debug for TransportCompleter<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("TransportCompleter");
        shown.field("transport", &self.transport).field("model", &self.model).finish_non_exhaustive()
    }
}

impl<S> Completer for TransportCompleter<S>
where
    S: Fn(String, Json) -> BoxFuture<'static, Result<Json, ModelError>> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.model
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        self.price.as_ref().and_then(|price| price(usage))
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
    ) -> BoxFuture<'a, Result<Completion, ModelError>> {
        Box::pin(async move {
            let body = self.transport.body(&self.model, request);
            let body = body.map_err(|error| ModelError::new(ModelErrorKind::Request, error.to_string()))?;
            let reply = (self.send)(self.transport.path(&self.model), body).await?;
            let mut completion = self.transport.reply(&reply)?;
            if completion.usage == Usage::default() {
                let tokens = |text: &str| text.len().div_ceil(4) as u64;
                completion.usage.input_tokens = tokens(&request.prompt);
                completion.usage.output_tokens = tokens(&completion.text);
            }
            Ok(completion)
        })
    }
}

/// A turn of the Messages API: who speaks, and what is said.
pub type PromptTurn = (&'static str, String);

/// A prompt as the system text and the turns of the Messages API.
pub fn to_messages_api(prompt: &str) -> Result<(String, Vec<PromptTurn>), PromptError> {
    let (system, turns) = speakers(prompt)?;
    Ok((strip(system), turns.into_iter().map(|(role, _, said)| (role, strip(said))).collect()))
}

/// A turn in a prompt: who speaks, where it begins, and what is said.
type Spoken<'a> = (&'static str, usize, &'a str);

fn speakers(prompt: &str) -> Result<(&str, Vec<Spoken<'_>>), PromptError> {
    let mut parts = prompt.split(HUMAN);
    let system = parts.next().unwrap_or_default();
    let parts: Vec<&str> = parts.collect();
    if parts.is_empty() {
        return Err(PromptError::messages("No human message found in the completion"));
    }
    let (mut turns, mut at) = (Vec::new(), system.len());
    for (index, part) in parts.iter().enumerate() {
        at += HUMAN.len();
        match part.split_once(ASSISTANT) {
            Some((user, assistant)) => {
                turns.push(("user", at, user));
                turns.push(("assistant", at + user.len() + ASSISTANT.len(), assistant));
            }
            None if index + 1 == parts.len() => turns.push(("user", at, *part)),
            None => return Err(PromptError::messages("Consecutive human messages found")),
        }
        at += part.len();
    }
    Ok((system, turns))
}

/// Text without the space around it, as Python sees space.
fn strip(text: &str) -> String {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\x1c'..='\x1f')).to_owned()
}

/// The words of the Messages API for the ends of an answer that a person should know of.
const ENDS: [(&str, StopReason); 6] = [
    ("max_tokens", StopReason::MaxTokens),
    ("model_context_window_exceeded", StopReason::ContextLength),
    ("refusal", StopReason::Refusal),
    ("malformed_tool_use", StopReason::MalformedCall),
    ("pause_turn", StopReason::Paused),
    ("other", StopReason::Other),
];

/// The word for the end of an answer.
fn stop_reason(stop: StopReason) -> &'static str {
    ENDS.iter().find(|(_, known)| *known == stop).map_or("end_turn", |(word, _)| word)
}

impl Completion {
    /// Why it ended, as all models say it.
    pub(crate) fn ended(&self) -> StopReason {
        match &*self.stop_reason {
            "stop_sequence" | "end_turn" | "" => StopReason::EndTurn,
            word => {
                ENDS.iter().find(|(known, _)| *known == word).map_or(StopReason::Other, |(_, stop)| *stop)
            }
        }
    }
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
/// The original lets the model go on from text that is put into its mouth. Models of today refuse that, so
/// results are sent in the user's turn instead, unless [`prefill`](Self::prefill) says that this model takes
/// it.
#[derive(Clone)]
pub struct ModelCompleter {
    model: Arc<DynModel>,
    prefill: bool,
    stops: Stops,
}

impl ModelCompleter {
    /// Completes prompts with this model.
    pub fn new(model: Arc<DynModel>) -> Self {
        ModelCompleter { model, prefill: false, stops: Stops::default() }
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
            let (system, turns) = speakers(&request.prompt)
                .map_err(|error| ModelError::new(ModelErrorKind::Request, error.to_string()))?;
            let mut messages = vec![Message::system(strip(system))];
            for (role, at, said) in turns {
                match role {
                    "user" => messages.push(Message::user(strip(said))),
                    _ if self.prefill => messages.extend(by_the_model(said)),
                    _ => messages.extend(told_by_the_user(said, at, &request.results)),
                }
            }
            let mut stops = self.stops.to_send(&STOP_SEQUENCES);
            let mut reply = loop {
                let options = ModelOptions {
                    max_tokens: Some(request.max_tokens),
                    temperature: request.temperature,
                    stop: stops.iter().map(|text| (*text).to_owned()).collect(),
                    ..ModelOptions::default()
                };
                let request = ModelRequest {
                    messages: &messages,
                    tools: &[],
                    tool_choice: &ToolChoice::None,
                    options: &options,
                };
                match self.model.generate(request).await {
                    Err(error) if !stops.is_empty() && self.stops.are_refused(&error) => stops = &[],
                    reply => break reply?,
                }
            };
            let cut = match stops {
                [] => stops::cut(&mut reply.message, "", &STOP_SEQUENCES),
                _ => None,
            };
            let text = reply.message.text();
            let stopped = cut.is_some() || reply.stop.warning().is_none();
            let guessed = if wants_its_end(&text) { "</function_calls>" } else { HUMAN };
            Ok(Completion {
                stop_reason: if stopped { "stop_sequence" } else { stop_reason(reply.stop) }.to_owned(),
                stop: stopped.then(|| cut.unwrap_or(guessed).to_owned()),
                text,
                usage: reply.usage,
            })
        })
    }
}

/// True when the text is a block of calls that lacks no more than its end. Vendors say that the model
/// stopped, and not at which stop sequence: where a call stands half written, it was not the end of the
/// block.
fn wants_its_end(text: &str) -> bool {
    let last = |tag: &str| text.rfind(tag);
    let open = last("<function_calls>") > last("</function_calls>") && last("</invoke>") > last("<invoke>");
    let after = text.rsplit_once("</invoke>").map_or(text, |(_, after)| after);
    open && !after.contains('<')
}

/// A turn of the model with results in it, as turns of both. It begins at this place of the prompt.
fn told_by_the_user(said: &str, at: usize, results: &[Range<usize>]) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut from = 0;
    for result in results {
        let place = result.start.checked_sub(at).zip(result.end.checked_sub(at));
        let Some((start, end)) = place.filter(|(start, _)| *start >= from) else { continue };
        let (Some(words), Some(told)) = (said.get(from..start), said.get(start..end)) else { continue };
        messages.extend(by_the_model(words));
        messages.push(Message::user(strip(told)));
        from = end;
    }
    messages.extend(by_the_model(said.get(from..).unwrap_or_default()));
    messages
}

fn by_the_model(words: &str) -> Option<Message> {
    let words = strip(words);
    (!words.is_empty()).then(|| Message::assistant(words))
}
