//! A model, an approver and a tool of the program's own, each with `async fn`.

use std::sync::atomic::{AtomicBool, Ordering};

use toolwright::approval::{ApprovalRequest, Approver, Decision};
use toolwright::content::{AssistantMessage, Content, Message, ToolCall, Value};
use toolwright::model::{Model, ModelError, ModelReply, ModelRequest};
use toolwright::tool::ToolSpec;
use toolwright::{Error, Run, Tool, ToolContext, ToolError, ToolOutput, json, tool};

/// Calls every tool once, and then reports what came back.
#[derive(Default)]
struct Eager {
    has_called: AtomicBool,
}

impl Model for Eager {
    fn name(&self) -> &str {
        "program/eager"
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let mut message = AssistantMessage::default();
        if self.has_called.swap(true, Ordering::Relaxed) {
            let results = request.messages.iter().filter_map(|message| match message {
                Message::Tool(result) => Some(result.to_text()),
                _ => None,
            });
            message.content = vec![Content::text(results.collect::<Vec<_>>().join(" and "))];
        } else {
            let calls = request.tools.iter().enumerate();
            message.tool_calls =
                calls.map(|(n, tool)| ToolCall::new(n.to_string(), &*tool.name, json!({}))).collect();
        }
        Ok(ModelReply::from(message))
    }
}

/// Lets through what only reads.
struct ReadersOnly;

impl Approver for ReadersOnly {
    fn name(&self) -> &str {
        "readers only"
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        match request.annotations.read_only {
            Some(true) => Decision::Approve,
            _ => Decision::reject("this program only reads"),
        }
    }
}

/// The temperature outside, in degrees.
#[tool(read_only)]
async fn temperature() -> i64 {
    21
}

/// A tool without `#[tool]`: its definition is made at run time.
struct Heating {
    spec: ToolSpec,
}

impl Tool for Heating {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolError> {
        ToolOutput::serialize(&"it is on")
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let heating = Heating { spec: ToolSpec::new("heating", "Turns the heating on.") };
    let run = Run::builder((temperature(), heating)).approver(ReadersOnly).build()?;
    let outcome = run.ask(&Eager::default(), "Is it warm enough?").await?;
    println!("{}", outcome.completion());
    Ok(())
}
