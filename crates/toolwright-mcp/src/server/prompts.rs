//! Prompts made by tools: a prompt's arguments are a tool's parameters, and what the tool returns is what it
//! says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value};
use toolwright_core::{BoxFuture, Content, Dispatch, ToolCall, ToolError, ToolSpec};

use super::{Peer, PromptMessage, PromptResult, Prompts};
use crate::protocol::{Prompt, PromptArgument, Role};

/// Counts the prompts that were made, so that each has an id of its own.
static MADE: AtomicU64 = AtomicU64::new(1);

/// Offers the tools of a run as prompts. Each is run like any other call: validated, approved, bounded,
/// recorded.
///
/// A text is what the person says. A list of maps with `role` and `content` is a conversation; other blocks,
/// such as images, are messages of the person.
#[derive(Clone)]
pub struct ToolPrompts {
    dispatch: Arc<dyn Dispatch>,
}

impl ToolPrompts {
    /// Offers the tools of a run as prompts.
    pub fn new(dispatch: Arc<dyn Dispatch>) -> Self {
        ToolPrompts { dispatch }
    }
}

impl std::fmt::Debug for ToolPrompts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolPrompts").finish_non_exhaustive()
    }
}

impl Prompts for ToolPrompts {
    fn list(&self) -> Vec<Prompt> {
        self.dispatch.specs().iter().map(prompt).collect()
    }

    fn get<'a>(
        &'a self,
        peer: &'a Peer,
        name: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<Option<PromptResult>, ToolError>> {
        Box::pin(async move {
            let id = format!("prompt-{}", MADE.fetch_add(1, Ordering::Relaxed));
            let call = ToolCall::new(id, name, Value::Object(arguments.clone()));
            // A client that no longer waits drops this, and the call with it.
            let origin = peer.origin(None, None);
            let result = self.dispatch.call(call, origin).await?;
            match result.error {
                Some(error) => Err(error.into()),
                None => {
                    let messages = result.content.into_iter().flat_map(messages).collect();
                    Ok(Some(PromptResult { description: None, messages }))
                }
            }
        })
    }
}

fn prompt(spec: &ToolSpec) -> Prompt {
    let member = |key: &str| spec.parameters.get(key);
    let required: Vec<&str> = member("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let argument = |(name, about): (&String, &Value)| PromptArgument {
        name: name.clone(),
        description: about.get("description").and_then(Value::as_str).map(str::to_owned),
        required: required.contains(&name.as_str()),
    };
    let arguments =
        member("properties").and_then(Value::as_object).into_iter().flatten().map(argument).collect();
    Prompt {
        name: spec.name.to_string(),
        title: spec.annotations.title.clone(),
        description: Some(spec.description.to_string()).filter(|text| !text.is_empty()),
        arguments,
    }
}

/// What a block of the result says, and who says it.
fn messages(block: Content) -> Vec<PromptMessage> {
    if let Content::Json { value: Value::Array(items) } = &block {
        let said: Option<Vec<PromptMessage>> = items.iter().map(message).collect();
        if let Some(said) = said.filter(|said| !said.is_empty()) {
            return said;
        }
    }
    vec![PromptMessage::user(block)]
}

fn message(item: &Value) -> Option<PromptMessage> {
    let role = match item.get("role")?.as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return None,
    };
    Some(PromptMessage { role, content: Content::text(item.get("content")?.as_str()?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_of_roles_is_a_conversation_and_anything_else_what_the_person_says() {
        let talk = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]);
        let said = messages(Content::json(talk));
        assert_eq!(said.len(), 2);
        assert_eq!((said[1].role, &said[1].content), (Role::Assistant, &Content::text("Hello")));
        for other in [json!([]), json!([1]), json!([{"role": "system", "content": "x"}]), json!({"a": 1})] {
            assert_eq!(messages(Content::json(other.clone())), [PromptMessage::user(Content::json(other))]);
        }
    }
}
