//! What the attributes promise: behaviour, schemas and messages.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the functions of a test program are tests too"
)]

mod behaviour;
mod docs;
mod options;
mod parameters;
mod returns;
mod schemas;
mod sets;
mod ui;

use serde_json::Value;
use toolwright_core::schema::{Schema, Strictness};
use toolwright_core::{Tool, ToolContext, ToolDef, ToolError, ToolOutput};

/// Calls a tool the way a runtime does: the arguments pass the schema first.
async fn call(tool: &ToolDef, arguments: Value) -> Result<ToolOutput, ToolError> {
    call_in(&ToolContext::detached(), tool, arguments).await
}

async fn call_in(context: &ToolContext, tool: &ToolDef, arguments: Value) -> Result<ToolOutput, ToolError> {
    let schema = Schema::compile(&tool.spec().parameters).expect("the schema compiles");
    let arguments = schema.validate(arguments, Strictness::Lenient)?;
    tool.call(context, arguments).await
}

/// The value a call gives.
async fn value(tool: &ToolDef, arguments: Value) -> Value {
    call(tool, arguments).await.expect("the call succeeds").value()
}

/// The message of a call that fails.
async fn failure(tool: &ToolDef, arguments: Value) -> String {
    call(tool, arguments).await.expect_err("the call fails").message().to_owned()
}
