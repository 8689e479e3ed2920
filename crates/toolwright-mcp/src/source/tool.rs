//! One tool of a server: its spec, and how it is called.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use toolwright_core::schema::Schema;
use toolwright_core::{
    Annotations, CallNote, ErrorKind, Tool, ToolContext, ToolError, ToolOutput, ToolPolicy, ToolSpec,
};

use super::Inner;
use crate::bridge;
use crate::client::OnProgress;
use crate::error::McpError;
use crate::protocol::ToolDefinition;

/// One tool of a server.
pub(super) struct McpTool {
    server: Arc<Inner>,
    remote: String,
    hash: String,
    spec: ToolSpec,
    policy: ToolPolicy,
    output_schema: Option<Schema>,
    timeout: Duration,
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let since = Instant::now();
        match self.attempt(context, arguments.clone(), since).await {
            // The server lost the session before it began with the call, so the call is made again in a
            // new one.
            Err(error) if McpError::is_unheard(&error) => self.attempt(context, arguments, since).await,
            other => other,
        }
    }
}

impl McpTool {
    pub(super) fn new(server: &Arc<Inner>, definition: ToolDefinition, hash: String) -> Result<Self, String> {
        let mut spec = ToolSpec::new(
            format!("{}{}", server.offer.prefix, definition.name),
            definition.description.unwrap_or_default(),
        );
        let mut annotations = definition.annotations.as_ref().map(Annotations::from).unwrap_or_default();
        annotations.title = annotations.title.or(definition.title);
        if !server.offer.trusted {
            // Hints may only make a policy stricter.
            annotations.read_only = annotations.read_only.filter(|read_only| !read_only);
            annotations.destructive = annotations.destructive.filter(|destructive| *destructive);
            annotations.idempotent = None;
            annotations.open_world = annotations.open_world.filter(|open| *open);
        }
        spec.annotations = annotations;
        spec.extras = bridge::tool_extras(definition.icons, definition.meta);
        spec.parameters = definition.input_schema;
        let output_schema = match &definition.output_schema {
            Some(schema) => {
                let compiled = Schema::compile_any(schema);
                Some(compiled.map_err(|error| format!("its output schema is not usable: {error}"))?)
            }
            None => None,
        };
        spec.output_schema = definition.output_schema;
        let timeout = server.timeouts.of(&definition.name);
        Ok(McpTool {
            server: server.clone(),
            remote: definition.name,
            hash,
            spec,
            policy: ToolPolicy::default(),
            output_schema,
            timeout,
        })
    }

    /// Makes the call in the time that is left. Starting the server is part of it.
    async fn attempt(
        &self,
        context: &ToolContext,
        arguments: Value,
        since: Instant,
    ) -> Result<ToolOutput, ToolError> {
        let left = || {
            // In whole milliseconds, so that a call that did not wait reports its timeout as it was set.
            let gone = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.timeout.saturating_sub(Duration::from_millis(gone))
        };
        let client = self.server.session_within(left()).await?;
        // A server that was started again may have changed since the model saw the tool.
        self.offered()?;
        let noting = context.clone();
        let on_progress: OnProgress = Arc::new(move |done, total, message| {
            noting.note(CallNote::Progress { done, total, message });
        });
        let output =
            client.call_tool_for(Some(context), &self.remote, arguments, left(), Some(on_progress)).await?;
        self.check(output)
    }

    /// Fails when the server no longer offers this tool, or offers it with another definition.
    fn offered(&self) -> Result<(), ToolError> {
        let seen = self.server.seen();
        if seen.offered.iter().any(|(tool, hash)| tool.name == self.remote && *hash == self.hash) {
            return Ok(());
        }
        if !seen.listed.iter().any(|tool| tool.name == self.remote) {
            return Err(ToolError::new(format!("the server no longer offers `{}`", self.spec.name)));
        }
        let message = format!("the definition of `{}` changed and needs approval", self.spec.name);
        let hint = format!(
            "a person looks at it and approves it: `toolwright mcp lock --name {}` for a file, `McpServer::approve` in a program",
            self.server.name
        );
        Err(ToolError::of(ErrorKind::Approval, message).hint(hint))
    }

    /// Checks a structured result against the output schema. A missing one is accepted: many servers answer
    /// with text although they list an output schema.
    fn check(&self, output: ToolOutput) -> Result<ToolOutput, ToolError> {
        if let (Some(schema), Some(value)) = (&self.output_schema, &output.structured) {
            let problems = schema.problems(value);
            if !problems.is_empty() {
                let problems = toolwright_core::text::clip(&problems.join("; "), 1000);
                let message = format!(
                    "the result of `{}` does not match its output schema: {problems}",
                    self.spec.name
                );
                return Err(ToolError::new(message).with_partial(ToolOutput::blocks(output.content)));
            }
        }
        Ok(output)
    }
}
