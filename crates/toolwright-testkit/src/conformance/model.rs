//! What every model should do: answer, report its tokens sensibly, and only ask for tools it was offered.

use serde_json::json;
use toolwright_core::{DynModel, Message, ModelOptions, ModelRequest, ToolChoice, ToolSpec};

use super::{Report, ensure};

/// Checks a model with a few harmless questions. It must be able to answer three requests.
pub async fn model(model: &DynModel) -> Report {
    let mut report = Report::default();
    let named =
        model.name().split_once('/').is_some_and(|(vendor, name)| !vendor.is_empty() && !name.is_empty());
    report.check("its name is vendor/model", ensure(named, || model.name().to_owned()));
    let mut add = ToolSpec::new("add", "Adds two numbers.");
    add.parameters = json!({
        "type": "object",
        "properties": {"x": {"type": "integer", "description": "One."}, "y": {"type": "integer", "description": "Two."}},
        "required": ["x", "y"]
    });
    let options = ModelOptions::default();
    let questions = [
        ("without tools", vec![], ToolChoice::None),
        ("with a tool", vec![add.clone()], ToolChoice::Auto),
        ("with a tool it must call", vec![add], ToolChoice::Any),
    ];
    for (what, tools, choice) in questions {
        let messages = [Message::user("What is 1 + 2?")];
        let request =
            ModelRequest { messages: &messages, tools: &tools, tool_choice: &choice, options: &options };
        let reply = match model.generate(request).await {
            Ok(reply) => reply,
            Err(error) => {
                report.check(&format!("it answers {what}"), Err(error.to_string()));
                continue;
            }
        };
        report.check(&format!("it answers {what}"), Ok(()));
        let calls = &reply.message.tool_calls;
        let empty = calls.is_empty() && reply.message.content.is_empty();
        report.check(
            &format!("its answer {what} says or asks something"),
            ensure(!empty, || "it is empty".to_owned()),
        );
        let unknown = calls.iter().find(|call| !tools.iter().any(|tool| tool.name == call.name));
        report.check(
            &format!("it asks only for tools it was offered, {what}"),
            unknown.map_or(Ok(()), |call| Err(format!("it asked for `{}`", call.name))),
        );
        let mut ids: Vec<_> = calls.iter().map(|call| &call.id).collect();
        ids.sort();
        ids.dedup();
        let distinct = ids.len() == calls.len() && ids.iter().all(|id| !id.is_empty());
        report.check(
            &format!("its calls have ids of their own, {what}"),
            ensure(distinct, || format!("{ids:?}")),
        );
    }
    report
}
