//! A run as lines of text that two runs can be compared by: what was said, called, decided and given back. Times,
//! ids and numbers of calls are left out.

use std::collections::HashMap;

use toolwright::{Event, EventKind, Message, RunEnd, ToolCall, ToolResult};

/// The lines. Calls stand in the order the model asked for them, so that what ran at the same time has one order.
pub fn lines(events: &[Event]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut calls = Calls::of(events);
    let talks = events.iter().any(|event| matches!(event.kind, EventKind::MessageAdded { .. }));
    for event in events {
        match &event.kind {
            EventKind::MessageAdded { message } => match message {
                Message::System { .. } => say(&mut lines, "system", &message.text()),
                Message::User { .. } => say(&mut lines, "user", &message.text()),
                Message::Assistant(assistant) => {
                    say(&mut lines, "assistant", &assistant.text());
                    for call in &assistant.tool_calls {
                        lines.push(format!("  call {} {}", call.name, call.arguments));
                        lines.extend(calls.decision(&call.id));
                    }
                }
                Message::Tool(result) => give_back(&mut lines, result),
            },
            EventKind::CallStarted { parent: None, call_id, tool, arguments, .. } if !talks => {
                let call = ToolCall::new(call_id.clone(), tool.clone(), arguments.clone());
                lines.push(format!("  call {} {}", call.name, call.arguments));
                lines.extend(calls.decision(&call.id));
            }
            EventKind::CallFinished { result: Some(result), span, .. } if !talks && calls.top(*span) => {
                give_back(&mut lines, result);
            }
            EventKind::LimitHit { limit } => lines.push(format!("limit: {limit}")),
            EventKind::RunFinished { end } => lines.push(format!("end: {}", end_text(end))),
            _ => {}
        }
    }
    lines
}

fn say(lines: &mut Vec<String>, who: &str, text: &str) {
    if !text.is_empty() {
        lines.extend(text.lines().map(|line| format!("{who}: {line}")));
    }
}

fn give_back(lines: &mut Vec<String>, result: &ToolResult) {
    lines.extend(result.to_text().lines().map(|line| format!("  {} gives {line}", result.name)));
    let media = result.content.iter().filter(|block| block.as_text().is_none()).count();
    if media > 0 {
        lines.push(format!("  {} gives {media} further blocks", result.name));
    }
}

pub fn end_text(end: &RunEnd) -> String {
    match end {
        RunEnd::Done => "done".to_owned(),
        RunEnd::Limit { limit } => limit.to_string(),
        RunEnd::Terminated { reason } => format!("ended by an approver: {reason}"),
        RunEnd::Cancelled => "cancelled".to_owned(),
        RunEnd::Failed { message } => format!("failed: {message}"),
    }
}

/// Decisions by the id of their call, in the order they were made.
struct Calls {
    decisions: HashMap<String, std::collections::VecDeque<String>>,
    top: std::collections::HashSet<u64>,
}

impl Calls {
    fn of(events: &[Event]) -> Self {
        let mut calls = Calls { decisions: HashMap::new(), top: std::collections::HashSet::new() };
        let mut ids: HashMap<u64, &str> = HashMap::new();
        for event in events {
            match &event.kind {
                EventKind::CallStarted { span, parent: None, call_id, .. } => {
                    ids.insert(*span, call_id);
                    calls.top.insert(*span);
                }
                EventKind::CallDecided { span, decision, reason, arguments, .. } => {
                    let Some(id) = ids.get(span) else { continue };
                    let mut line = format!("    {decision}");
                    if let Some(arguments) = arguments {
                        line = format!("{line} {arguments}");
                    }
                    if let Some(reason) = reason.as_ref().filter(|_| decision != "approve") {
                        line = format!("{line}: {reason}");
                    }
                    calls.decisions.entry((*id).to_owned()).or_default().push_back(line);
                }
                _ => {}
            }
        }
        calls
    }

    fn decision(&mut self, id: &str) -> Option<String> {
        self.decisions.get_mut(id)?.pop_front()
    }

    fn top(&self, span: u64) -> bool {
        self.top.contains(&span)
    }
}
