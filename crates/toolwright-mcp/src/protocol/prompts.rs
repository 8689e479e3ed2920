//! `prompts/*`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CacheHint, ContentBlock, Round};
use crate::jsonrpc::{INVALID_PARAMS, RpcError};

/// A prompt as a server lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The name to get it by.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the prompt needs it.
    #[serde(default)]
    pub required: bool,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// The answer to `prompts/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListPromptsResult {
    pub(crate) prompts: Vec<Prompt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
    #[serde(flatten)]
    pub(crate) cache: Option<CacheHint>,
}

/// `prompts/get`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct GetPromptParams {
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
    #[serde(flatten)]
    pub(crate) round: Round,
}

impl GetPromptParams {
    /// Reads the parameters; a prompt without a name has the empty one, which no server lists.
    pub(crate) fn read(mut params: Map<String, Value>) -> Result<Self, RpcError> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = match params.remove("arguments") {
            None => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(RpcError::new(INVALID_PARAMS, "`arguments` must be an object")),
        };
        Ok(GetPromptParams { name, arguments, round: Round::take(&mut params)? })
    }
}

/// The answer to `prompts/get`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct GetPromptResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) messages: Vec<WirePromptMessage>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct WirePromptMessage {
    pub(crate) role: Role,
    pub(crate) content: ContentBlock,
}

/// The answer of a server to `prompts/get`, as our client reads it: each message with its author and its
/// content.
#[derive(Debug)]
pub(crate) struct PromptAnswer {
    pub(crate) description: Option<String>,
    pub(crate) messages: Vec<(Role, Value)>,
}

impl PromptAnswer {
    /// Reads an answer; `None` without a list of messages. Authors that we do not know count as the user.
    pub(crate) fn read(answer: Value) -> Option<Self> {
        let Value::Object(mut members) = answer else { return None };
        let Some(Value::Array(messages)) = members.remove("messages") else { return None };
        let message = |mut message: Value| {
            let role =
                message.get("role").and_then(|role| Role::deserialize(role).ok()).unwrap_or(Role::User);
            (role, message.get_mut("content").map(Value::take).unwrap_or_default())
        };
        let description = match members.remove("description") {
            Some(Value::String(description)) => Some(description),
            _ => None,
        };
        Some(PromptAnswer { description, messages: messages.into_iter().map(message).collect() })
    }
}
