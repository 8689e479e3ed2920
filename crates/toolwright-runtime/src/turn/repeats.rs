//! Models that go in circles: the same calls again, or the same few calls by turns.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;
use toolwright_core::{Message, ToolCall};

/// The longest circle that is noticed, in turns.
const LONGEST: usize = 3;

/// How many turns are looked back at.
const MEMORY: usize = 64;

/// What was asked for lately, turn by turn.
#[derive(Default)]
pub(super) struct Repeats {
    recent: VecDeque<Vec<(Arc<str>, Value)>>,
}

impl Repeats {
    /// What was asked for since the user spoke last, so that a model which is asked step by step, or by
    /// another process, goes in no more circles. With `pending` calls, the last that were asked for are yet
    /// to be counted.
    pub(super) fn so_far(messages: &[Message], pending: bool) -> Self {
        let since = messages.iter().rev().take_while(|message| !matches!(message, Message::User { .. }));
        let asked = since.filter_map(|message| match message {
            Message::Assistant(said) if !said.tool_calls.is_empty() => Some(&*said.tool_calls),
            _ => None,
        });
        let mut lately: Vec<&[ToolCall]> = asked.skip(usize::from(pending)).take(MEMORY).collect();
        lately.reverse();
        let mut repeats = Repeats::default();
        for calls in lately {
            repeats.count(calls);
        }
        repeats
    }

    /// Notes the calls of a turn, and says how many times in a row they were asked for: alone, or as part of
    /// a circle.
    pub(super) fn count(&mut self, calls: &[ToolCall]) -> u64 {
        if self.recent.len() == MEMORY {
            self.recent.pop_front();
        }
        self.recent.push_back(calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect());
        let rounds = (1..=LONGEST).map(|period| {
            let before = self.recent.iter().rev().skip(period);
            let same = self.recent.iter().rev().zip(before).take_while(|(now, before)| now == before).count();
            same / period + 1
        });
        rounds.max().unwrap_or(1) as u64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counts(turns: &str) -> Vec<u64> {
        let mut repeats = Repeats::default();
        let call = |name: char| ToolCall::new("1", name.to_string(), json!({}));
        turns.chars().map(|name| repeats.count(&[call(name)])).collect()
    }

    #[test]
    fn circles_are_counted_by_their_rounds() {
        assert_eq!(counts("aaab"), [1, 2, 3, 1]);
        assert_eq!(counts("ababab"), [1, 1, 1, 2, 2, 3]);
        assert_eq!(counts("abcabcabc"), [1, 1, 1, 1, 1, 2, 2, 2, 3]);
        assert_eq!(counts("abcdeabcde"), [1; 10]);
        assert_eq!(counts(&"a".repeat(100)).last(), Some(&64));
    }
}
