//! Tools for long work, which clients that know the tasks extension look at from time to time.

use std::time::Duration;

use toolwright_core::{ToolContext, ToolDef, ToolError, tool};
use toolwright_mcp::{Question, Server, TaskSupport};

use crate::asking::{one_field, peer};

pub(crate) fn tools() -> Vec<ToolDef> {
    vec![
        greet(),
        slow_compute(),
        failing_job(),
        protocol_error_job(),
        confirm_delete(),
        multi_input(),
        test_tool_with_task(),
    ]
}

/// Says which tools are tasks.
pub(crate) fn support(server: Server) -> Server {
    server
        .tasks(["failing_job"], TaskSupport::Required)
        .tasks(["slow_compute", "protocol_error_job", "confirm_delete", "multi_input"], TaskSupport::Always)
        .tasks(["test_tool_with_task"], TaskSupport::After(Duration::from_millis(50)))
}

/// Greets somebody, at once.
#[tool(read_only)]
async fn greet(
    /// Whom.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

/// Takes its time.
#[tool(read_only)]
async fn slow_compute(
    /// How many seconds.
    seconds: f64,
    /// A name for the work.
    #[tool(default = "work")]
    label: String,
) -> String {
    tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))).await;
    format!("{label} is done")
}

/// Fails after a moment.
#[tool(read_only)]
async fn failing_job() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    Err(ToolError::new("the job failed, as it always does"))
}

/// Ends in an error of the protocol.
#[tool(read_only)]
async fn protocol_error_job(context: &ToolContext) -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    Err(peer(context)?.refuse(-32603, "the job broke the protocol on purpose"))
}

/// Asks before it goes on.
#[tool(read_only)]
async fn confirm_delete(
    context: &ToolContext,
    /// The file.
    filename: String,
) -> Result<String, ToolError> {
    let question = one_field(&format!("Delete {filename}?"), "confirm", "boolean");
    let reply = peer(context)?.ask("confirm", question).await?;
    Ok(format!("{filename}: {}", reply.value()))
}

/// Asks two things at once.
#[tool(read_only)]
async fn multi_input(context: &ToolContext) -> Result<String, ToolError> {
    let ask = |what: &str| (what.to_owned(), one_field(&format!("The {what}?"), "name", "string"));
    let questions: Vec<(String, Question)> = vec![ask("first"), ask("second")];
    let replies = peer(context)?.ask_all(questions).await?;
    Ok(format!("{} answers came", replies.len()))
}

/// Asks for a name, and then works for a while.
#[tool(read_only)]
async fn test_tool_with_task(context: &ToolContext) -> Result<String, ToolError> {
    let reply = peer(context)?.ask("user_name", one_field("What is your name?", "name", "string")).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let name = reply.accepted().and_then(|said| said.get("name"));
    Ok(name.map_or_else(|| "Done for nobody".to_owned(), |name| format!("Done for {name}")))
}
