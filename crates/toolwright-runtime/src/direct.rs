//! Results that go to the user as they are.
//!
//! A tool whose policy says `return_direct` ends the turn: its result becomes an answer of its own, and the
//! model is only told that there was one. So does any result that is `confidential`; that one no model is
//! shown afterwards either: every request to a model goes through [`masked`].

use toolwright_core::{AssistantMessage, CONFIDENTIAL, Content, Message, ToolResult, Toolset};

/// What a model reads in place of a result that went to the user.
const SHOWN: &str = "The user was shown the result. Nothing more is to be done about it.";

/// True when the results of that tool go to the user.
pub(crate) fn is_direct(tools: &Toolset, name: &str) -> bool {
    let policy = tools.find(name).map(|entry| entry.tool.policy());
    policy.is_ok_and(|policy| policy.return_direct || policy.confidential)
}

/// The answer made of results that go to the user, which are then taken out of what the model reads; `None`
/// when there are none. Calls that failed stay as they are: the model may mend them.
pub(crate) fn answer(tools: &Toolset, results: &mut [ToolResult]) -> Option<Message> {
    let mut texts = Vec::new();
    let mut blocks = Vec::new();
    let mut confidential = false;
    let mut found = false;
    for result in results.iter_mut() {
        if result.is_error() {
            result.conceal();
            continue;
        }
        if !result.confidential && !is_direct(tools, &result.name) {
            continue;
        }
        found = true;
        confidential |= result.confidential;
        texts.push(result.to_text().trim().to_owned());
        let other = |block: &Content| !matches!(block, Content::Text { .. } | Content::Json { .. });
        blocks.extend(result.content.drain(..).filter(other));
        result.confidential = true;
        result.conceal();
        result.content = vec![Content::text(SHOWN)];
    }
    let text = texts.join("\n");
    if !text.is_empty() {
        blocks.insert(0, Content::text(text));
    }
    let message = AssistantMessage { content: blocks, confidential, ..AssistantMessage::default() };
    found.then_some(Message::Assistant(message))
}

/// The messages as a model may read them, when they differ from what was said.
pub(crate) fn masked(messages: &[Message]) -> Option<Vec<Message>> {
    let secret = |message: &Message| match message {
        Message::Assistant(answer) => answer.confidential,
        Message::Tool(result) => result.confidential,
        Message::System { .. } | Message::User { .. } => false,
    };
    let mask = |message: &Message| match message {
        Message::Assistant(answer) if answer.confidential => Message::assistant(CONFIDENTIAL),
        Message::Tool(result) if result.confidential => {
            let mut result = result.clone();
            result.conceal();
            Message::Tool(result)
        }
        _ => message.clone(),
    };
    messages.iter().any(secret).then(|| messages.iter().map(mask).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwright_core::{ErrorInfo, ErrorKind, ToolCall, ToolDef, ToolSpec};

    fn tools() -> Toolset {
        let tool = |name: &str| ToolDef::dynamic(ToolSpec::new(name, "d"), |_, _| async { "ok" });
        let direct = tool("direct").edit(|_, policy| policy.return_direct = true);
        Toolset::new().with(direct).unwrap().with(tool("plain")).unwrap()
    }

    fn call(name: &str) -> ToolCall {
        ToolCall::new(name, name, json!({}))
    }

    #[test]
    fn failed_calls_are_left_to_the_model() {
        let error = ErrorInfo { kind: ErrorKind::Unknown, message: "no".to_owned(), hint: None };
        let mut results = [ToolResult::failed(&call("direct"), error), ToolResult::text(&call("plain"), "x")];
        let before = results.clone();
        assert_eq!(answer(&tools(), &mut results), None);
        assert_eq!(results, before);
    }

    #[test]
    fn what_a_confidential_tool_said_before_it_failed_is_not_told() {
        let error =
            ErrorInfo { kind: ErrorKind::Timeout, message: "the PIN".into(), hint: Some("PIN".into()) };
        let mut result = ToolResult::failed(&call("quiet"), error);
        result.content = vec![Content::text("the PIN is 1234")];
        result.metadata.insert("PIN".into(), json!(1234));
        result.confidential = true;
        let pushed = masked(&[Message::Tool(result.clone())]).unwrap();
        let mut results = [result];
        assert_eq!(answer(&tools(), &mut results), None);
        assert!(!serde_json::to_string(&results).unwrap().contains("PIN"), "{results:?}");
        assert!(!serde_json::to_string(&pushed).unwrap().contains("PIN"), "{pushed:?}");
    }
}
