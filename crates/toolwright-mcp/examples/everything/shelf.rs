//! Resources and prompts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use toolwright_core::{BoxFuture, Content, ToolError};
use toolwright_mcp::{
    CompletionRequest, Completions, Peer, Prompt, PromptArgument, PromptMessage, PromptResult, Prompts,
    Resource, ResourceBody, ResourceContents, ResourceTemplate, Resources,
};

use crate::PIXEL;
use crate::asking::one_field;

/// Everything the server has beside tools.
#[derive(Clone, Default)]
pub(crate) struct Shelf {
    /// Whether there is one prompt more.
    pub(crate) more: Arc<AtomicBool>,
}

impl Resources for Shelf {
    fn list(&self) -> Vec<Resource> {
        let resource = |uri: &str, name: &str, mime_type: &str| Resource {
            uri: uri.to_owned(),
            name: name.to_owned(),
            description: Some(format!("The {name}, for trying clients.")),
            mime_type: Some(mime_type.to_owned()),
            ..Resource::default()
        };
        vec![
            resource("test://static-text", "static text", "text/plain"),
            resource("test://static-binary", "static picture", "image/png"),
            resource("test://watched-resource", "watched text", "text/plain"),
        ]
    }

    fn templates(&self) -> Vec<ResourceTemplate> {
        vec![ResourceTemplate {
            uri_template: "test://template/{id}/data".to_owned(),
            name: "template".to_owned(),
            description: Some("Data for any id.".to_owned()),
            mime_type: Some("application/json".to_owned()),
            ..ResourceTemplate::default()
        }]
    }

    fn read<'a>(
        &'a self,
        _peer: &'a Peer,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<ResourceContents>>, ToolError>> {
        Box::pin(async move {
            let text = |text: &str| ("text/plain", ResourceBody::Text(text.to_owned()));
            let (mime_type, body) = match uri {
                "test://static-text" => text("This is the content of the static text resource."),
                "test://watched-resource" => text("This text is watched."),
                "test://static-binary" => ("image/png", ResourceBody::Blob(PIXEL.to_owned())),
                _ => {
                    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
                    let Some(id) = id.filter(|id| !id.is_empty() && !id.contains('/')) else {
                        return Ok(None);
                    };
                    let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                    ("application/json", ResourceBody::Text(data.to_string()))
                }
            };
            Ok(Some(vec![ResourceContents {
                uri: uri.to_owned(),
                mime_type: Some(mime_type.to_owned()),
                body,
            }]))
        })
    }
}

impl Prompts for Shelf {
    fn list(&self) -> Vec<Prompt> {
        let prompt = |name: &str, description: &str, arguments: &[&str]| Prompt {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            arguments: arguments
                .iter()
                .map(|name| PromptArgument { name: (*name).to_owned(), description: None, required: true })
                .collect(),
            ..Prompt::default()
        };
        let mut prompts = vec![
            prompt("test_simple_prompt", "A prompt without arguments.", &[]),
            prompt("test_prompt_with_arguments", "A prompt with two arguments.", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", "A prompt that holds a resource.", &["resourceUri"]),
            prompt("test_prompt_with_image", "A prompt that holds a picture.", &[]),
            prompt("test_input_required_result_prompt", "A prompt that asks first.", &[]),
        ];
        if self.more.load(Ordering::Acquire) {
            prompts.push(prompt("one_more", "A prompt that comes and goes.", &[]));
        }
        prompts
    }

    fn get<'a>(
        &'a self,
        peer: &'a Peer,
        name: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<Option<PromptResult>, ToolError>> {
        Box::pin(async move {
            let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
            let contents = match name {
                "test_simple_prompt" => vec![Content::text("This is a simple prompt for testing.")],
                "test_prompt_with_arguments" => vec![Content::text(format!(
                    "Prompt with arguments: arg1='{}', arg2='{}'",
                    given("arg1"),
                    given("arg2")
                ))],
                "test_prompt_with_embedded_resource" => vec![
                    Content::document(
                        "text/plain",
                        given("resourceUri"),
                        b"Embedded resource content for testing.",
                    ),
                    Content::text("Please process the embedded resource above."),
                ],
                "test_prompt_with_image" => {
                    vec![crate::pixel(), Content::text("Please analyze the image above.")]
                }
                "test_input_required_result_prompt" => {
                    let question = one_field("What context should the prompt use?", "context", "string");
                    let reply = peer.ask("user_context", question).await?;
                    let context =
                        reply.accepted().and_then(|said| said.get("context")).and_then(Value::as_str);
                    vec![Content::text(format!("The context is {}", context.unwrap_or("not given")))]
                }
                "one_more" => vec![Content::text("One more.")],
                _ => return Ok(None),
            };
            let messages = contents.into_iter().map(PromptMessage::user).collect();
            Ok(Some(PromptResult { description: None, messages }))
        })
    }
}

impl Completions for Shelf {
    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
    ) -> BoxFuture<'a, Result<Vec<String>, ToolError>> {
        Box::pin(async move {
            let known = ["paris", "park", "party", "test", "text"];
            let fitting = known.iter().filter(|value| value.starts_with(&request.value));
            Ok(fitting.map(|value| (*value).to_owned()).collect())
        })
    }
}
