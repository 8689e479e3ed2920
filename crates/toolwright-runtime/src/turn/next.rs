//! What a loop does next, from what happened last: a state machine without side effects.

use toolwright_core::{Message, StopReason, ToolCall, ToolChoice};

use super::{LoopOptions, StopWhen, ToolCalls};

/// How many replies in a row may hold a call that the vendor could not read.
const MAX_UNREADABLE: usize = 3;

/// How many replies in a row may be a pause in which the model says nothing.
const MAX_PAUSES: usize = 3;

/// The part of a loop's state that decides how it continues.
pub(super) struct LoopState {
    tool_calls: ToolCalls,
    /// Whether the model must, may or may not call a tool this time.
    pub(super) choice: ToolChoice,
    choice_after: Option<ToolChoice>,
    stop_when: Vec<StopWhen>,
    /// Replies in a row with a call that could not be read.
    unreadable: usize,
    /// Replies in a row that paused and said nothing.
    pauses: usize,
}

/// What happened.
#[derive(Debug, Clone)]
pub(super) enum LoopEvent {
    /// The loop began, with calls that an earlier reply left.
    Began { pending: Vec<ToolCall> },
    /// The conversation did not fit the model, and more of its middle was left out.
    Shortened,
    /// The model replied. `silent` when it neither said nor called anything.
    Replied { stop: StopReason, silent: bool, calls: Vec<ToolCall> },
    /// Calls were made. `over` when one of them was the answer, or ended the run.
    Called { over: bool },
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    /// Ask the model.
    Ask(AskRequest),
    /// Make the calls.
    Call(Vec<ToolCall>),
    /// Leave the calls to the caller.
    Hand(Vec<ToolCall>),
    /// Nothing more.
    Stop,
}

/// What the model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskRequest {
    /// To take a turn.
    Turn,
    /// The same request again; it does not count as a turn.
    Again,
    /// To take a turn, and to repeat a call that could not be read.
    Repair,
}

impl LoopState {
    pub(super) fn new(options: &LoopOptions) -> Self {
        LoopState {
            tool_calls: options.tool_calls,
            choice: options.tool_choice.clone(),
            choice_after: options.choice_after.clone(),
            stop_when: options.stop_when.clone(),
            unreadable: 0,
            pauses: 0,
        }
    }

    /// Offers the model no more tools.
    pub(super) fn withhold_tools(&mut self) {
        (self.choice, self.choice_after) = (ToolChoice::None, None);
    }

    /// What to do after an event; `messages` is the conversation with all that came of it.
    pub(super) fn step(&mut self, event: LoopEvent, messages: &[Message]) -> Next {
        match event {
            // Calls that an earlier reply left are made first: this is how another process takes a run up.
            LoopEvent::Began { pending } if pending.is_empty() => Next::Ask(AskRequest::Turn),
            LoopEvent::Began { pending } => self.make(pending),
            LoopEvent::Shortened => Next::Ask(AskRequest::Again),
            LoopEvent::Replied { stop, silent, calls } => self.replied(stop, silent, calls),
            LoopEvent::Called { over } => self.called(over, messages),
        }
    }

    fn replied(&mut self, stop: StopReason, silent: bool, calls: Vec<ToolCall>) -> Next {
        self.pauses = if silent { self.pauses + 1 } else { 0 };
        if stop == StopReason::MalformedCall {
            if self.unreadable >= MAX_UNREADABLE {
                return Next::Stop;
            }
            self.unreadable += 1;
            return Next::Ask(AskRequest::Repair);
        }
        if !matches!(stop, StopReason::Refusal | StopReason::Other) {
            self.unreadable = 0;
        }
        if !calls.is_empty() {
            return self.make(calls);
        }
        // A reply that was interrupted goes on once the model has its own words back.
        if stop == StopReason::Paused && self.pauses < MAX_PAUSES {
            return Next::Ask(AskRequest::Turn);
        }
        Next::Stop
    }

    fn make(&self, calls: Vec<ToolCall>) -> Next {
        if self.tool_calls == ToolCalls::None { Next::Hand(calls) } else { Next::Call(calls) }
    }

    fn called(&mut self, over: bool, messages: &[Message]) -> Next {
        if over
            || self.tool_calls == ToolCalls::Single
            || self.stop_when.iter().any(|stop| stop.holds(messages))
        {
            return Next::Stop;
        }
        match (&self.choice_after, &self.choice) {
            (Some(after), _) => self.choice = after.clone(),
            (None, ToolChoice::Tool(_)) => self.choice = ToolChoice::Auto,
            (None, ToolChoice::Auto | ToolChoice::Any | ToolChoice::None) => {}
        }
        Next::Ask(AskRequest::Turn)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ASK: Next = Next::Ask(AskRequest::Turn);
    const REPAIR: Next = Next::Ask(AskRequest::Repair);

    fn calls() -> Vec<ToolCall> {
        vec![ToolCall::new("1", "look", json!({}))]
    }

    fn replied(stop: StopReason, silent: bool, calls: Vec<ToolCall>) -> LoopEvent {
        LoopEvent::Replied { stop, silent, calls }
    }

    fn said(stop: StopReason) -> LoopEvent {
        replied(stop, false, Vec::new())
    }

    fn steps(options: LoopOptions, events: &[LoopEvent]) -> Vec<Next> {
        let mut state = LoopState::new(&options);
        events.iter().map(|event| state.step(event.clone(), &[])).collect()
    }

    #[test]
    fn each_event_leads_to_one_next_step() {
        use StopReason::{EndTurn, MalformedCall, MaxTokens, Other, Paused, Refusal, ToolCalls};
        let silent = |stop| replied(stop, true, Vec::new());
        let asks = || replied(ToolCalls, false, calls());
        let rows: Vec<(&str, Vec<LoopEvent>, Vec<Next>)> = vec![
            (
                "an answer ends it",
                vec![LoopEvent::Began { pending: vec![] }, said(EndTurn)],
                vec![ASK, Next::Stop],
            ),
            (
                "calls are made, and the model is asked again",
                vec![asks(), LoopEvent::Called { over: false }, said(EndTurn)],
                vec![Next::Call(calls()), ASK, Next::Stop],
            ),
            (
                "pending calls come first",
                vec![LoopEvent::Began { pending: calls() }],
                vec![Next::Call(calls())],
            ),
            ("a result can be the answer", vec![LoopEvent::Called { over: true }], vec![Next::Stop]),
            (
                "a shorter conversation does not count as a turn",
                vec![LoopEvent::Shortened, said(EndTurn)],
                vec![Next::Ask(AskRequest::Again), Next::Stop],
            ),
            (
                "calls of a cut-off reply are made",
                vec![replied(MaxTokens, false, calls())],
                vec![Next::Call(calls())],
            ),
            ("a refusal ends it", vec![said(Refusal)], vec![Next::Stop]),
            ("an unknown end is an end", vec![said(Other)], vec![Next::Stop]),
            (
                "unreadable calls are asked for again three times",
                vec![said(MalformedCall), said(MalformedCall), said(MalformedCall), said(MalformedCall)],
                vec![REPAIR, REPAIR, REPAIR, Next::Stop],
            ),
            (
                "a readable call starts the count anew",
                vec![
                    said(MalformedCall),
                    asks(),
                    said(MalformedCall),
                    said(MalformedCall),
                    said(MalformedCall),
                ],
                vec![REPAIR, Next::Call(calls()), REPAIR, REPAIR, REPAIR],
            ),
            (
                "a model may pause as long as it says something",
                vec![said(Paused), said(Paused), said(Paused), said(Paused)],
                vec![ASK, ASK, ASK, ASK],
            ),
            (
                "the third silent pause ends it",
                vec![silent(Paused), silent(Paused), silent(Paused)],
                vec![ASK, ASK, Next::Stop],
            ),
            (
                "what is said between pauses starts the count anew",
                vec![silent(Paused), silent(Paused), said(Paused), silent(Paused)],
                vec![ASK, ASK, ASK, ASK],
            ),
        ];
        for (name, events, want) in rows {
            assert_eq!(steps(LoopOptions::default(), &events), want, "{name}");
        }
    }

    #[test]
    fn options_say_who_makes_the_calls_and_how_often() {
        let asks = replied(StopReason::ToolCalls, false, calls());
        let with = |tool_calls| LoopOptions { tool_calls, ..LoopOptions::default() };
        let by_caller = [LoopEvent::Began { pending: calls() }, asks.clone()];
        let handed = Next::Hand(calls());
        assert_eq!(steps(with(ToolCalls::None), &by_caller), [handed.clone(), handed]);
        let once = [asks.clone(), LoopEvent::Called { over: false }];
        assert_eq!(steps(with(ToolCalls::Single), &once), [Next::Call(calls()), Next::Stop]);
        let stop_when = vec![StopWhen::new(|_| false), StopWhen::new(<[Message]>::is_empty)];
        let stopping = LoopOptions { stop_when, ..LoopOptions::default() };
        assert_eq!(steps(stopping, &once), [Next::Call(calls()), Next::Stop]);
    }

    #[test]
    fn the_choice_changes_once_calls_were_made() {
        let named = || ToolChoice::Tool("look".into());
        let rows = [
            (named(), None, ToolChoice::Auto),
            (ToolChoice::Any, None, ToolChoice::Any),
            (ToolChoice::None, None, ToolChoice::None),
            (ToolChoice::Auto, Some(ToolChoice::None), ToolChoice::None),
            (named(), Some(named()), named()),
        ];
        for (tool_choice, choice_after, want) in rows {
            let options =
                LoopOptions { tool_choice: tool_choice.clone(), choice_after, ..LoopOptions::default() };
            let mut state = LoopState::new(&options);
            state.step(said(StopReason::EndTurn), &[]);
            assert_eq!(state.choice, tool_choice, "no calls yet");
            state.step(LoopEvent::Called { over: false }, &[]);
            assert_eq!(state.choice, want);
        }
    }
}
