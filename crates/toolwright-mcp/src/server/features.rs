//! What a server offers beside tools: resources, prompts, and proposals for their arguments.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolwright_core::{BoxFuture, Content, ToolError};

use super::Peer;
use crate::bridge;

/// Things a client can read, by address. The lists are asked for anew each time and keep their order.
pub trait Resources: Send + Sync {
    /// The resources with an address of their own.
    fn list(&self) -> Vec<Resource>;

    /// The patterns of addresses, for resources that are too many to list.
    fn templates(&self) -> Vec<ResourceTemplate> {
        Vec::new()
    }

    /// How clients learn that one changed.
    fn watching(&self) -> Watching {
        Watching::Told
    }

    /// For [`Watching::Looked`]: a number that differs when the content does; `None` when there is no such resource.
    fn mark(&self, uri: &str) -> Option<u64> {
        let _ = uri;
        None
    }

    /// Reads one; `None` when there is no such resource.
    fn read<'a>(
        &'a self,
        peer: &'a Peer,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<ResourceContents>>, ToolError>>;
}

/// How clients learn that a resource changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watching {
    /// Not at all, so they cannot ask for it.
    No,
    /// The program says so: [`Changes::resource`](super::Changes::resource).
    Told,
    /// The server looks at [`Resources::mark`] once a second, as long as a client watches the resource.
    Looked,
}

/// A thing that can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// A name for programs.
    #[serde(default)]
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// A pattern of addresses, as RFC 6570 writes them: `file:///{path}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The pattern.
    pub uri_template: String,
    /// A name for programs.
    #[serde(default)]
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type they all have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// What a resource holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    /// The address that was read, or one below it.
    pub uri: String,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The content.
    #[serde(flatten)]
    pub body: ResourceBody,
}

/// Text, or bytes in Base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes in Base64.
    Blob(String),
}

/// Conversations to begin with, which a person picks.
pub trait Prompts: Send + Sync {
    /// The prompts.
    fn list(&self) -> Vec<Prompt>;

    /// One of them, filled in; `None` when there is none of that name. Required arguments were checked.
    fn get<'a>(
        &'a self,
        peer: &'a Peer,
        name: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<Option<PromptResult>, ToolError>>;
}

/// A conversation to begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The name to get it by.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What can be filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// What can be filled in a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True when the prompt makes no sense without it.
    #[serde(default)]
    pub required: bool,
}

/// A prompt, filled in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptResult {
    /// What it is for.
    pub description: Option<String>,
    /// The messages.
    pub messages: Vec<PromptMessage>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: Content,
}

/// Who says something in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl PromptMessage {
    /// Something the person says.
    pub fn user(content: Content) -> Self {
        PromptMessage { role: Role::User, content }
    }
}

impl PromptResult {
    pub(super) fn to_wire(&self) -> Value {
        let messages: Vec<Value> = self
            .messages
            .iter()
            .map(|message| json!({"role": message.role, "content": bridge::write_block(message.content.clone())}))
            .collect();
        match &self.description {
            Some(text) => json!({"description": text, "messages": messages}),
            None => json!({"messages": messages}),
        }
    }
}

/// Proposes values for arguments.
pub trait Completions: Send + Sync {
    /// The values that go on from what was typed, best first.
    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
    ) -> BoxFuture<'a, Result<Vec<String>, ToolError>>;
}

/// What a value is wanted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The prompt's name, or the pattern of a resource template.
    pub of: String,
    /// True for a prompt.
    pub is_prompt: bool,
    /// Which argument.
    pub argument: String,
    /// What was typed so far.
    pub value: String,
}
