//! The model contract: a request of messages and tools in, one assistant message out.
//!
//! Vendors' formats and HTTP live in `toolwright-models`; the loop that alternates between model and tools in
//! `toolwright-runtime`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::{AssistantMessage, Message};
use crate::output::Content;
use crate::tool::ToolSpec;

/// Something that answers a conversation.
pub trait Model: Send + Sync {
    /// The model's name, as `vendor/model`.
    fn name(&self) -> &str;

    /// Answers once. Write it as `async fn`.
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> impl Future<Output = Result<ModelReply, ModelError>> + Send;

    /// Answers once, and tells `sink` about each piece as it comes. The reply is the same as without a sink;
    /// on an error, the pieces told so far are worth nothing.
    ///
    /// A model that cannot stream answers first and then tells everything.
    fn generate_streaming<'a>(
        &'a self,
        request: ModelRequest<'a>,
        sink: DeltaSink<'a>,
    ) -> impl Future<Output = Result<ModelReply, ModelError>> + Send {
        async move {
            let reply = self.generate(request).await?;
            reply.message.content.iter().for_each(|block| match block {
                Content::Text { text, .. } => sink(ModelDelta::Text(text)),
                Content::Reasoning { text, .. } if !text.is_empty() => sink(ModelDelta::Reasoning(text)),
                _ => {}
            });
            reply.message.tool_calls.iter().for_each(|call| sink(ModelDelta::Call { name: &call.name }));
            Ok(reply)
        }
    }

    /// What these tokens cost, in dollars; `None` when nobody knows the price. A run with a limit on its cost
    /// does not ask a model without a price.
    fn cost(&self, _usage: &Usage) -> Option<f64> {
        None
    }
}

/// Who listens while a model answers.
pub type DeltaSink<'a> = &'a mut (dyn FnMut(ModelDelta<'_>) + Send);

/// A piece of an answer, as it comes.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelDelta<'a> {
    /// More of what it says.
    Text(&'a str),
    /// More of what it thinks, when the vendor shows it.
    Reasoning(&'a str),
    /// It begins to ask for a tool; the arguments follow in the reply.
    Call {
        /// The tool's name.
        name: &'a str,
    },
}

/// What a model is asked.
#[derive(Debug, Clone)]
pub struct ModelRequest<'a> {
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The tools it may call.
    pub tools: &'a [ToolSpec],
    /// Whether it must, may or may not call one.
    pub tool_choice: &'a ToolChoice,
    /// Everything else.
    pub options: &'a ModelOptions,
}

/// Whether a model must, may or may not call a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must call some tool.
    Any,
    /// It may not call any.
    None,
    /// It must call this one. While no tool has this name, the model is given none, as Inspect does it.
    Tool(String),
}

impl ToolChoice {
    /// What a vendor is sent: a named tool leaves only that tool; no tools, or an unknown name, means `None`.
    pub fn resolve(&self, tools: Vec<ToolSpec>) -> (Vec<ToolSpec>, ToolChoice) {
        let tools: Vec<ToolSpec> = match self {
            ToolChoice::None => Vec::new(),
            ToolChoice::Tool(name) => tools.into_iter().filter(|tool| *tool.name == **name).collect(),
            ToolChoice::Auto | ToolChoice::Any => tools,
        };
        let choice = if tools.is_empty() { ToolChoice::None } else { self.clone() };
        (tools, choice)
    }
}

/// How a model is to answer. `extra` goes to the vendor as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelOptions {
    /// The most tokens to write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How adventurous to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Where to stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The JSON Schema the answer must follow. Vendors hold the model to it where they can; the answer may
    /// still break it, so its reader validates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// Whether tools go out in the vendor's strict mode, where it has one and their schemas allow it. Not
    /// when it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// Whether the vendor is asked to keep what stays the same from turn to turn. When it is not said, it is
    /// asked as soon as there are tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<bool>,
    /// Vendor-specific fields.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl ModelOptions {
    /// These options, with `defaults` where they are not set. Fields of `extra` are taken one by one.
    #[must_use]
    pub fn or(&self, defaults: &ModelOptions) -> ModelOptions {
        let mut extra = defaults.extra.clone();
        extra.extend(self.extra.iter().map(|(key, value)| (key.clone(), value.clone())));
        ModelOptions {
            max_tokens: self.max_tokens.or(defaults.max_tokens),
            temperature: self.temperature.or(defaults.temperature),
            stop: if self.stop.is_empty() { defaults.stop.clone() } else { self.stop.clone() },
            response_schema: self.response_schema.clone().or_else(|| defaults.response_schema.clone()),
            strict: self.strict.or(defaults.strict),
            cache: self.cache.or(defaults.cache),
            extra,
        }
    }
}

/// What a model answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The message.
    pub message: AssistantMessage,
    /// Why it stopped.
    #[serde(default)]
    pub stop: StopReason,
    /// What it cost in tokens.
    #[serde(default)]
    pub usage: Usage,
}

impl From<AssistantMessage> for ModelReply {
    fn from(message: AssistantMessage) -> Self {
        let stop = if message.tool_calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolCalls };
        ModelReply { message, stop, usage: Usage::default() }
    }
}

/// Why a model stopped.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    #[default]
    EndTurn,
    /// It wants tools called.
    ToolCalls,
    /// It reached the most tokens it may write.
    MaxTokens,
    /// The conversation no longer fits its context.
    ContextLength,
    /// A stop text appeared.
    StopSequence,
    /// The vendor's filter stepped in, or the model refused.
    Refusal,
    /// It meant to call a tool, and the vendor could not read the call, or refused it. A loop asks the model
    /// to correct it.
    MalformedCall,
    /// The vendor interrupted a long turn. The model goes on when it gets the conversation back.
    Paused,
    /// Something this version does not know.
    Other,
}

impl StopReason {
    /// What a person should know about an answer that ended so; `None` when it is whole.
    ///
    /// ```
    /// use toolwright_core::StopReason;
    ///
    /// assert_eq!(StopReason::MaxTokens.warning(), Some("the answer was cut off at the token limit"));
    /// assert_eq!(StopReason::EndTurn.warning(), None);
    /// ```
    pub fn warning(self) -> Option<&'static str> {
        Some(match self {
            StopReason::EndTurn | StopReason::ToolCalls | StopReason::StopSequence => return None,
            StopReason::MaxTokens => "the answer was cut off at the token limit",
            StopReason::ContextLength => "the answer was cut off: the conversation no longer fits the model",
            StopReason::Refusal => "the model refused, or the vendor's filter stepped in",
            StopReason::MalformedCall => {
                "the model meant to call a tool, and the vendor could not read the call or refused it"
            }
            StopReason::Paused => "the vendor interrupted the answer",
            StopReason::Other => "the model stopped for a reason that is not known",
        })
    }
}

/// Tokens read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Of the tokens read, those that came from a cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Of the tokens read, those that were put into a cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Of the tokens written, those spent on reasoning.
    #[serde(default)]
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Tokens read and written.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// As a person reads it: `1,290 (1,234 in, 56 out, 7 reasoning) | Cache: 100`.
impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::text::count;
        let (input, output) = (count(self.input_tokens), count(self.output_tokens));
        write!(f, "{} ({input} in, {output} out", count(self.total()))?;
        if self.reasoning_tokens > 0 {
            write!(f, ", {} reasoning", count(self.reasoning_tokens))?;
        }
        f.write_str(")")?;
        if self.cache_read_tokens > 0 {
            write!(f, " | Cache: {}", count(self.cache_read_tokens))?;
        }
        Ok(())
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}

/// Why a model could not answer.
#[derive(Debug)]
pub struct ModelError {
    kind: ModelErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kind of a [`ModelError`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The request was wrong; trying again will not help.
    Request,
    /// The conversation no longer fits the model's context.
    ContextLength,
    /// The key is missing or refused.
    Auth,
    /// Too many requests; trying later may help.
    RateLimit,
    /// The server failed or could not be reached; trying again may help.
    Unavailable,
    /// The reply could not be understood.
    Reply,
    /// A scripted or recorded model has no answer left, or the request is not the one recorded.
    Script,
}

impl ModelError {
    /// An error of the given kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        ModelError { kind, message: message.into(), source: None }
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What to match on.
    pub fn kind(&self) -> ModelErrorKind {
        self.kind
    }
}

impl std::fmt::Display for ModelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ModelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_tool_is_the_only_one_sent_and_an_unknown_name_sends_none() {
        let tools = || vec![ToolSpec::new("add", "Adds."), ToolSpec::new("sub", "Subtracts.")];
        let names = |tools: &[ToolSpec]| tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>();

        let (sent, choice) = ToolChoice::Tool("add".into()).resolve(tools());
        assert_eq!((names(&sent), choice), (vec!["add".to_owned()], ToolChoice::Tool("add".into())));
        let (sent, choice) = ToolChoice::Tool("nope".into()).resolve(tools());
        assert_eq!((sent.len(), choice), (0, ToolChoice::None));
        let (sent, choice) = ToolChoice::Any.resolve(Vec::new());
        assert_eq!((sent.len(), choice), (0, ToolChoice::None));
        let (sent, choice) = ToolChoice::None.resolve(tools());
        assert_eq!((sent.len(), choice), (0, ToolChoice::None));
        assert_eq!(ToolChoice::Auto.resolve(tools()).0.len(), 2);
    }
}
