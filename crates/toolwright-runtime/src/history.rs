//! What of a conversation a model is sent.
//!
//! The conversation itself is never changed: confidential answers are masked, old results are rewritten by
//! their tools, and when all of it no longer fits, the middle is left out.

use std::borrow::Cow;
use std::ops::Range;

use toolwright_core::{Content, Message, RewriteResults, ToolError, Toolset};

use crate::{direct, guard};

/// What is left when the middle of a conversation is left out, of the messages after the first question.
const KEPT: f64 = 0.5;

/// The messages as the model is sent them; `left_out` is the part that no longer fits. A fatal error when a
/// tool's code for that panics.
pub(crate) fn for_model<'a>(
    messages: &'a [Message],
    tools: &Toolset,
    left_out: Range<usize>,
) -> Result<Cow<'a, [Message]>, ToolError> {
    let mut sent = match direct::masked(messages) {
        Some(masked) => Cow::Owned(masked),
        None => Cow::Borrowed(messages),
    };
    let rewriters: Vec<(&str, &dyn RewriteResults)> = tools
        .iter()
        .filter_map(|entry| Some((&*entry.tool.spec().name, entry.tool.result_rewriter()?)))
        .collect();
    if !rewriters.is_empty() {
        guard::contain(|| rewrite(sent.to_mut(), &rewriters))?;
    }
    if !left_out.is_empty() {
        let note = Message::user(format!("[… {} earlier messages left out …]", left_out.len()));
        sent.to_mut().splice(left_out, [note]);
    }
    Ok(sent)
}

/// Lets tools rewrite their results: each is told which of its own results it is, counted from 0, and how
/// many of its own there are.
fn rewrite(messages: &mut [Message], rewriters: &[(&str, &dyn RewriteResults)]) {
    for (name, rewriter) in rewriters {
        let own = messages.iter_mut().filter_map(|message| match message {
            Message::Tool(result) if *result.name == **name => Some(&mut result.content),
            _ => None,
        });
        let own: Vec<&mut Vec<Content>> = own.collect();
        let total = own.len();
        for (index, content) in own.into_iter().enumerate() {
            *content = rewriter.rewrite(index, total, content);
        }
    }
}

/// Which messages to leave out, after those already left out, so that a conversation gets shorter: the
/// middle. The instructions, the first question and the latest messages stay; a result never stays without
/// its call. Empty when nothing more can go.
pub(crate) fn middle(messages: &[Message], left_out: &Range<usize>) -> Range<usize> {
    let question = messages.iter().position(|message| matches!(message, Message::User { .. }));
    let head = question.map_or(0, |at| at + 1);
    let from = left_out.end.max(head);
    let rest = messages.len().saturating_sub(from);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "half of a number of messages"
    )]
    let kept = (rest as f64 * KEPT).floor() as usize;
    let mut end = messages.len() - kept;
    while matches!(messages.get(end), Some(Message::Tool(_))) {
        end += 1;
    }
    // What is to be answered stays: the last message, or the last calls with all their results.
    if end >= messages.len() {
        let result = |message: &&Message| matches!(message, Message::Tool(_));
        end = messages.len().saturating_sub(1 + messages.iter().rev().take_while(result).count());
    }
    if end <= from { 0..0 } else { head..end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwright_core::{AssistantMessage, ToolCall, ToolDef, ToolResult, ToolSpec};

    fn talk(rounds: usize) -> Vec<Message> {
        let mut messages = vec![Message::system("s"), Message::user("q")];
        for round in 0..rounds {
            let call = ToolCall::new(round.to_string(), "look", json!({}));
            messages.push(Message::Assistant(AssistantMessage::calls([call.clone()])));
            messages.push(Message::Tool(ToolResult::text(&call, format!("seen {round}"))));
        }
        messages
    }

    #[test]
    fn old_results_are_rewritten_for_the_model_only() {
        let look = ToolDef::dynamic(ToolSpec::new("look", "Looks."), |_, _| async { "x" });
        let look = look.with_model_input(|index, total, content| match index + 1 == total {
            true => content.to_vec(),
            false => vec![Content::text("(old)")],
        });
        let tools = Toolset::new().with(look).unwrap();
        let messages = talk(3);
        let sent = for_model(&messages, &tools, 0..0).unwrap();
        let texts: Vec<String> =
            sent.iter().skip(2).map(Message::text).filter(|text| !text.is_empty()).collect();
        assert_eq!(texts, ["(old)", "(old)", "seen 2"]);
        assert_eq!(messages, talk(3));
        assert!(matches!(for_model(&messages, &Toolset::new(), 0..0).unwrap(), Cow::Borrowed(_)));
    }

    #[test]
    fn the_middle_goes_first_and_results_stay_with_their_calls() {
        let messages = talk(10);
        let left_out = middle(&messages, &(0..0));
        assert_eq!(left_out, 2..12);
        let sent = for_model(&messages, &Toolset::new(), left_out.clone()).unwrap();
        assert_eq!(sent[2].text(), "[… 10 earlier messages left out …]");
        assert!(matches!(sent[3], Message::Assistant(_)));
        let more = middle(&messages, &left_out);
        assert_eq!(more, 2..18, "17 would leave a result without its call");
        assert_eq!(middle(&talk(1), &(0..0)), 0..0, "what is to be answered stays");
        let mut many = talk(3);
        let calls: Vec<_> =
            (0..20).map(|each| ToolCall::new(format!("b{each}"), "look", json!({}))).collect();
        many.push(Message::Assistant(AssistantMessage::calls(calls.clone())));
        many.extend(calls.iter().map(|call| Message::Tool(ToolResult::text(call, "seen"))));
        assert_eq!(middle(&many, &(0..0)), 2..8, "a large batch does not keep everything before it");
        assert_eq!(middle(&many, &(2..8)), 0..0);
        assert_eq!(middle(&[], &(0..0)), 0..0);
    }
}
