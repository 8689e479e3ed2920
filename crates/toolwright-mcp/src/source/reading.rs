//! A server's resources and prompts as tools, for models that have nothing but tools.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_core::{Annotations, Content, Tool, ToolContext, ToolError, ToolOutput, ToolPolicy, ToolSpec};

use super::Inner;
use crate::bridge;
use crate::error::McpError;
use crate::protocol::Role;

/// What a tool reads.
#[derive(Clone, Copy)]
enum Feature {
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

/// A tool that reads something a server has beside tools.
pub(super) struct ReadingTool {
    server: Arc<Inner>,
    what: Feature,
    spec: ToolSpec,
    policy: ToolPolicy,
}

/// The tools for what the server says it has.
pub(super) fn tools(server: &Arc<Inner>, capabilities: &Value) -> Vec<ReadingTool> {
    let has = |key: &str| capabilities.get(key).is_some_and(Value::is_object);
    let text = |about: &str| json!({"type": "string", "description": about});
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let nothing = object(json!({}), json!([]));
    let mut wanted = Vec::new();
    if has("resources") {
        wanted.push((Feature::ListResources, "list_resources", "Lists what can be read.", nothing.clone()));
        let parameters = object(json!({"uri": text("The address, as listed.")}), json!(["uri"]));
        wanted.push((Feature::ReadResource, "read_resource", "Reads one of the resources.", parameters));
    }
    if has("prompts") {
        wanted.push((Feature::ListPrompts, "list_prompts", "Lists the prompts.", nothing));
        let arguments = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let parameters =
            object(json!({"name": text("The prompt, as listed."), "arguments": arguments}), json!(["name"]));
        wanted.push((Feature::GetPrompt, "get_prompt", "Gets a prompt, filled in.", parameters));
    }
    let tool = |(what, name, about, parameters): (Feature, &str, &str, Value)| {
        let mut spec = ToolSpec::new(
            format!("{}{name}", server.offer.prefix),
            format!("{about} Server: {}.", server.name),
        );
        spec.parameters = parameters;
        // Reading is asked of a server nobody vouches for, so a policy may still want to look.
        spec.annotations = Annotations { open_world: Some(true), ..Annotations::default() };
        ReadingTool { server: server.clone(), what, spec, policy: ToolPolicy::default() }
    };
    wanted.into_iter().map(tool).collect()
}

impl Tool for ReadingTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        match self.read(context, &arguments).await {
            // The server forgot the session: it is asked again in a new one.
            Err(error) if McpError::is_unheard(&error) => self.read(context, &arguments).await,
            other => other,
        }
    }
}

impl ReadingTool {
    async fn read(&self, context: &ToolContext, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let client = self.server.session_within(self.server.timeouts.call).await?;
        let _paying = client.paid_by(context);
        let said = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        Ok(match self.what {
            Feature::ListResources => {
                // Many servers know no templates. Whether the session is known shows with the resources, so
                // they go first.
                let resources = client.list_resources().await?;
                let templates = client.list_resource_templates().await.unwrap_or_default();
                ToolOutput::json(json!({"resources": resources, "templates": templates}))
            }
            Feature::ReadResource => {
                let contents = client.read_resource(said("uri")).await?;
                let block = |content| bridge::read_block(json!({"type": "resource", "resource": content}));
                ToolOutput::blocks(contents.into_iter().map(block))
            }
            Feature::ListPrompts => ToolOutput::json(json!({"prompts": client.list_prompts().await?})),
            Feature::GetPrompt => {
                let given: Map<String, Value> =
                    arguments.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
                let prompt = client.get_prompt(said("name"), given).await?;
                ToolOutput::blocks(prompt.messages.into_iter().flat_map(|message| {
                    let who = match message.role {
                        Role::User => "user:",
                        Role::Assistant => "assistant:",
                    };
                    [Content::text(who), message.content]
                }))
            }
        })
    }
}
