//! The features of a server beside tools: resources, prompts, and completions of their arguments.

use serde_json::{Map, Value};
use toolwright_core::{BoxFuture, Content, ToolError};

use super::Peer;
use crate::bridge;
use crate::protocol::{
    CompleteParams, GetPromptResult, Prompt, Reference, Resource, ResourceContents, ResourceTemplate, Role,
    WirePromptMessage,
};

/// Resources that clients can read by address. The lists are requested anew each time and keep their order.
pub trait Resources: Send + Sync {
    /// The resources with an address of their own.
    fn list(&self) -> Vec<Resource>;

    /// The patterns of addresses, for resources that are too many to list.
    fn templates(&self) -> Vec<ResourceTemplate> {
        Vec::new()
    }

    /// How clients learn that one changed.
    fn watching(&self) -> Watching {
        Watching::Announced
    }

    /// For [`Watching::Polled`]: a number that differs when the content does; `None` when there is no such
    /// resource.
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
    /// Not at all: clients cannot subscribe.
    No,
    /// The program says so: [`Changes::resource`](super::Changes::resource).
    Announced,
    /// The server polls [`Resources::mark`] once a second, as long as a client watches the resource.
    Polled,
}

/// Prompts: conversations to begin with, which a person picks.
pub trait Prompts: Send + Sync {
    /// The prompts.
    fn list(&self) -> Vec<Prompt>;

    /// One of them, filled in; `None` when none has that name. Required arguments are present.
    fn get<'a>(
        &'a self,
        peer: &'a Peer,
        name: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<Option<PromptResult>, ToolError>>;
}

/// A prompt, filled in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptResult {
    /// A description.
    pub description: Option<String>,
    /// The messages.
    pub messages: Vec<PromptMessage>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Its author.
    pub role: Role,
    /// The content.
    pub content: Content,
}

impl PromptMessage {
    /// A message of the person.
    pub fn user(content: Content) -> Self {
        PromptMessage { role: Role::User, content }
    }
}

impl PromptResult {
    pub(super) fn into_wire(self) -> GetPromptResult {
        let message = |PromptMessage { role, content }| {
            let content = bridge::write_block(content);
            WirePromptMessage { role, content }
        };
        let messages = self.messages.into_iter().map(message).collect();
        GetPromptResult { description: self.description, messages }
    }
}

/// Proposes values for arguments.
pub trait Completions: Send + Sync {
    /// The values that begin with the typed text, best first.
    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
    ) -> BoxFuture<'a, Result<Vec<String>, ToolError>>;
}

/// The argument whose value is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The prompt's name, or the pattern of a resource template.
    pub of: String,
    /// True for a prompt.
    pub is_prompt: bool,
    /// The name of the argument.
    pub argument: String,
    /// The text typed so far.
    pub value: String,
}

impl From<CompleteParams> for CompletionRequest {
    fn from(params: CompleteParams) -> Self {
        let (of, is_prompt) = match params.reference {
            Reference::Prompt { name } => (name, true),
            Reference::Resource { uri } => (uri, false),
        };
        CompletionRequest { of, is_prompt, argument: params.argument.name, value: params.argument.value }
    }
}
