//! Models that go in circles: the same calls again with the same results, or the same few turns of them.

use toolwright_core::{ErrorKind, Message, ToolCall, ToolResult};

/// The longest circle that is noticed, in turns.
const LONGEST: usize = 3;

/// How many turns are looked back at.
const MEMORY: usize = 64;

/// The calls of one turn, and what they gave.
struct Turn<'a> {
    calls: &'a [ToolCall],
    results: Vec<&'a ToolResult>,
}

impl Turn<'_> {
    /// Whether both turns made the same calls and learnt the same. Calls that were refused, or have no result
    /// yet, are compared by themselves.
    fn repeats(&self, earlier: &Turn<'_>) -> bool {
        let same_calls = self.calls.len() == earlier.calls.len()
            && self
                .calls
                .iter()
                .zip(earlier.calls)
                .all(|(a, b)| a.name == b.name && a.arguments == b.arguments);
        if !same_calls || self.is_open() || earlier.is_open() {
            return same_calls;
        }
        let message = |result: &ToolResult| result.error.as_ref().map(|error| error.message.clone());
        let same = |a: &ToolResult, b: &ToolResult| a.content == b.content && message(a) == message(b);
        self.results.len() == earlier.results.len()
            && self.results.iter().zip(&earlier.results).all(|(a, b)| same(a, b))
    }

    fn is_open(&self) -> bool {
        let refused =
            |result: &&ToolResult| result.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Limit);
        self.results.is_empty() || self.results.iter().any(refused)
    }
}

/// How many times in a row the calls of the last turn were asked for, alone or as part of a circle, since the
/// user spoke last. It is read from the messages, so that a model which is asked step by step, or by another
/// process, goes in no more circles.
pub(super) fn rounds(messages: &[Message]) -> u64 {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    let mut results = Vec::new();
    for message in messages.iter().rev() {
        match message {
            Message::User { .. } => break,
            Message::Tool(result) => results.push(result),
            Message::Assistant(said) if !said.tool_calls.is_empty() => {
                turns.push(Turn { calls: &said.tool_calls, results: std::mem::take(&mut results) });
            }
            Message::Assistant(_) | Message::System { .. } => results.clear(),
        }
        if turns.len() == MEMORY {
            break;
        }
    }
    let rounds = (1..=LONGEST).map(|period| {
        let pairs = turns.iter().zip(turns.iter().skip(period));
        pairs.take_while(|(now, before)| now.repeats(before)).count() / period + 1
    });
    rounds.max().unwrap_or(1) as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwright_core::AssistantMessage;

    use super::*;

    /// A letter is a call, a digit behind it its result.
    fn conversation(turns: &str) -> Vec<Message> {
        let call = |name: char| ToolCall::new("1", name.to_string(), json!({}));
        let mut messages = vec![Message::user("go")];
        for name in turns.chars() {
            messages.push(match name.to_digit(10) {
                None => Message::Assistant(AssistantMessage::calls([call(name)])),
                Some(digit) => Message::Tool(ToolResult::text(&call('x'), digit.to_string())),
            });
        }
        messages
    }

    #[test]
    fn circles_are_counted_by_their_rounds() {
        let counts = |turns: &str| -> Vec<u64> {
            (1..=turns.len())
                .map(|count| rounds(&conversation(&turns.chars().take(count).collect::<String>())))
                .collect()
        };
        assert_eq!(counts("aaab"), [1, 2, 3, 1]);
        assert_eq!(counts("ababab"), [1, 1, 1, 2, 2, 3]);
        assert_eq!(counts("abcabcabc"), [1, 1, 1, 1, 1, 2, 2, 2, 3]);
        assert_eq!(counts("abcdeabcde"), [1; 10]);
        assert_eq!(counts(&"a".repeat(100)).last(), Some(&64));
    }

    #[test]
    fn a_call_with_a_new_result_is_no_repetition() {
        for (turns, count) in [("a1a", 2), ("a1a1a", 3), ("a1a2a", 2), ("a1a2a2a", 3), ("a1b2a1b2a", 2)] {
            assert_eq!(rounds(&conversation(turns)), count, "{turns}");
        }
        let mut messages = conversation("a1a1a1");
        messages.push(Message::user("again"));
        assert_eq!(rounds(&messages), 1);
    }

    #[test]
    fn a_refusal_is_part_of_the_circle() {
        let mut messages = conversation("a1a1a");
        let call = ToolCall::new("1", "a", json!({}));
        let error = toolwright_core::ErrorInfo { kind: ErrorKind::Limit, message: "no".into(), hint: None };
        messages.push(Message::Tool(ToolResult::failed(&call, error)));
        messages.push(Message::Assistant(AssistantMessage::calls([call])));
        assert_eq!(rounds(&messages), 4);
    }
}
