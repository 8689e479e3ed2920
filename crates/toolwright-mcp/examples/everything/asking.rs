//! Tools that ask the client something, or tell it things while they run.

use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::{ToolContext, ToolDef, ToolError, tool};
use toolwright_mcp::{LogLevel, Peer, Question};

pub(crate) fn tools() -> Vec<ToolDef> {
    vec![
        test_tool_with_logging(),
        test_logging_tool(),
        test_sampling(),
        test_elicitation(),
        test_elicitation_sep1034_defaults(),
        test_elicitation_sep1330_enums(),
        test_streaming_elicitation(),
        test_missing_capability(),
        test_reconnection(),
        test_input_required_result_elicitation(),
        test_input_required_result_sampling(),
        test_input_required_result_list_roots(),
        test_input_required_result_request_state(),
        test_input_required_result_multiple_inputs(),
        test_input_required_result_multi_round(),
        test_input_required_result_tampered_state(),
        test_input_required_result_capabilities(),
    ]
}

pub(crate) fn peer(context: &ToolContext) -> Result<Peer, ToolError> {
    Peer::of(context).ok_or_else(|| ToolError::new("no client made this call"))
}

/// A form with one field that must be filled in.
pub(crate) fn one_field(message: &str, name: &str, kind: &str) -> Question {
    let schema = json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]});
    Question::elicit(message, schema)
}

/// Says three things for the log while it runs.
#[tool(read_only)]
async fn test_tool_with_logging(context: &ToolContext) -> Result<&'static str, ToolError> {
    let peer = peer(context)?;
    peer.log(LogLevel::Info, "Tool execution started");
    tokio::time::sleep(Duration::from_millis(50)).await;
    peer.log(LogLevel::Info, "Tool processing data");
    tokio::time::sleep(Duration::from_millis(50)).await;
    peer.log(LogLevel::Info, "Tool execution completed");
    Ok("Three messages were logged")
}

/// Says one thing for the log.
#[tool(read_only)]
async fn test_logging_tool(context: &ToolContext) -> Result<&'static str, ToolError> {
    peer(context)?.log(LogLevel::Warning, "a message for clients that want this level");
    Ok("logged")
}

/// Asks the client's model.
#[tool(read_only)]
async fn test_sampling(
    context: &ToolContext,
    /// What to ask it.
    prompt: String,
) -> Result<String, ToolError> {
    let reply = peer(context)?.ask("sample", Question::sample(prompt, 100)).await?;
    Ok(format!("LLM response: {}", reply.text()))
}

/// Asks the person for a name and an address.
#[tool(read_only)]
async fn test_elicitation(
    context: &ToolContext,
    /// What to tell them.
    message: String,
) -> Result<String, ToolError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"}
        },
        "required": ["username", "email"]
    });
    let reply = peer(context)?.ask("user", Question::elicit(message, schema)).await?;
    Ok(format!("User response: {}", reply.value()))
}

/// Asks with a default for each kind of value.
#[tool(read_only)]
async fn test_elicitation_sep1034_defaults(context: &ToolContext) -> Result<String, ToolError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true}
        },
        "required": []
    });
    completed(context, Question::elicit("Please check these values", schema)).await
}

/// Asks for one or more of a few values, in each way the protocol knows.
#[tool(read_only)]
async fn test_elicitation_sep1330_enums(context: &ToolContext) -> Result<String, ToolError> {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = |word: &str| -> Value {
        let names = ["First", "Second", "Third"].iter().zip(1..);
        let entries =
            names.map(|(name, at)| json!({"const": format!("value{at}"), "title": format!("{name} {word}")}));
        entries.collect()
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}}
        },
        "required": []
    });
    completed(context, Question::elicit("Please choose", schema)).await
}

async fn completed(context: &ToolContext, question: Question) -> Result<String, ToolError> {
    let reply = peer(context)?.ask("values", question).await?;
    let action = reply.value().get("action").and_then(Value::as_str).unwrap_or_default();
    let content = reply.value().get("content").unwrap_or(&Value::Null);
    Ok(format!("Elicitation completed: action={action}, content={content}"))
}

/// Says how far it is, and then asks.
#[tool(read_only)]
async fn test_streaming_elicitation(context: &ToolContext) -> Result<String, ToolError> {
    context.progress(1.0, Some(2.0), "about to ask");
    let reply = peer(context)?.ask("go_on", one_field("Go on?", "ok", "boolean")).await?;
    Ok(format!("answered: {}", reply.value()))
}

/// Needs a client that lets its model be asked.
#[tool(read_only)]
async fn test_missing_capability(context: &ToolContext) -> Result<String, ToolError> {
    let reply = peer(context)?.ask("sample", Question::sample("Say hello", 10)).await?;
    Ok(reply.text())
}

/// Closes the stream, and answers on the next one.
#[tool(read_only)]
async fn test_reconnection(context: &ToolContext) -> Result<&'static str, ToolError> {
    peer(context)?.hang_up();
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok("the connection was closed and taken up again")
}

/// Asks for a name.
#[tool(read_only)]
async fn test_input_required_result_elicitation(context: &ToolContext) -> Result<String, ToolError> {
    let question = one_field("What is your name?", "name", "string");
    let reply = peer(context)?.ask("user_name", question).await?;
    let name = reply.accepted().and_then(|said| said.get("name")).and_then(Value::as_str);
    Ok(format!("Hello, {}!", name.unwrap_or("stranger")))
}

/// Asks the client's model about France.
#[tool(read_only)]
async fn test_input_required_result_sampling(context: &ToolContext) -> Result<String, ToolError> {
    let question = Question::sample("What is the capital of France?", 100);
    Ok(peer(context)?.ask("capital_question", question).await?.text())
}

/// Asks which folders the client works in.
#[tool(read_only)]
async fn test_input_required_result_list_roots(context: &ToolContext) -> Result<String, ToolError> {
    let reply = peer(context)?.ask("client_roots", Question::roots()).await?;
    Ok(format!("The roots are {}", reply.value()["roots"]))
}

/// Asks for a confirmation, and says whether the state came back whole.
#[tool(read_only)]
async fn test_input_required_result_request_state(context: &ToolContext) -> Result<&'static str, ToolError> {
    let peer = peer(context)?;
    peer.ask("confirm", one_field("Please confirm", "ok", "boolean")).await?;
    Ok(if peer.resumed() { "state-ok" } else { "answered without a state" })
}

/// Asks for three things at once.
#[tool(read_only)]
async fn test_input_required_result_multiple_inputs(context: &ToolContext) -> Result<String, ToolError> {
    let questions = vec![
        ("user_name".to_owned(), one_field("What is your name?", "name", "string")),
        ("greeting".to_owned(), Question::sample("Generate a greeting", 50)),
        ("client_roots".to_owned(), Question::roots()),
    ];
    let replies = peer(context)?.ask_all(questions).await?;
    Ok(format!("{} answers came", replies.len()))
}

/// Asks twice, one after the other.
#[tool(read_only)]
async fn test_input_required_result_multi_round(context: &ToolContext) -> Result<String, ToolError> {
    let peer = peer(context)?;
    let name = peer.ask("step1", one_field("Step 1: What is your name?", "name", "string")).await?;
    let color = one_field("Step 2: What is your favorite color?", "color", "string");
    let color = peer.ask("step2", color).await?;
    Ok(format!("{} and {}", name.value()["content"], color.value()["content"]))
}

/// Asks for a confirmation whose state must not be changed.
#[tool(read_only)]
async fn test_input_required_result_tampered_state(context: &ToolContext) -> Result<&'static str, ToolError> {
    peer(context)?.ask("confirm", one_field("Please confirm", "ok", "boolean")).await?;
    Ok("confirmed")
}

/// Asks only what the client can answer.
#[tool(read_only)]
async fn test_input_required_result_capabilities(context: &ToolContext) -> Result<String, ToolError> {
    let peer = peer(context)?;
    let mut questions = vec![
        ("name".to_owned(), one_field("What is your name?", "name", "string")),
        ("greeting".to_owned(), Question::sample("Generate a greeting", 50)),
    ];
    questions.retain(|(_, question)| peer.can_answer(question));
    let replies = peer.ask_all(questions).await?;
    Ok(format!("{} answers came", replies.len()))
}
