//! The calls under way, as a tree with elapsed times; a finished tree is a few lines for the scrollback.

use std::time::Instant;

use toolwright::approval::call_text;
use toolwright::content::{Message, ToolCall, ToolResult};
use toolwright::events::EventKind;
use toolwright::tool::{CallNote, ErrorInfo};
use toolwright_core::text;

use crate::commands::runs::span;
use crate::lines::{DIM, GREEN, PLAIN, RED, StyledLine, YELLOW, cut};
use crate::prompt::printable;
use crate::report::{counted, way_out_of};

#[derive(Default)]
pub struct CallTree {
    nodes: Vec<CallNode>,
    /// What the model asked for last, as far as it was not begun.
    asked: Vec<ToolCall>,
}

struct CallNode {
    span: u64,
    parent: Option<u64>,
    depth: usize,
    title: String,
    /// Its author wants nothing shown of it.
    silent: bool,
    /// What it is doing, and what was decided about it.
    doing: Option<String>,
    decided: Option<String>,
    started: Instant,
    end: Option<CallEnd>,
}

struct CallEnd {
    /// Nobody knows it of a call of earlier.
    took: Option<u64>,
    failed: bool,
    text: String,
    /// What the person can do about it.
    hint: Option<String>,
}

impl CallNode {
    fn of(call: &ToolCall) -> Self {
        CallNode {
            span: 0,
            parent: None,
            depth: 0,
            title: printable(&text::clip(&call_text(call), 300)).replace('\n', " "),
            silent: false,
            doing: None,
            decided: None,
            started: Instant::now(),
            end: None,
        }
    }
}

impl CallEnd {
    fn of(error: Option<&ErrorInfo>, result: Option<&ToolResult>) -> Self {
        let words = match (error, result) {
            (Some(error), _) => format!("{}: {}", error.kind, error.message),
            (None, Some(result)) => result.to_text(),
            (None, None) => String::new(),
        };
        let text = printable(&text::clip(&words, 400));
        CallEnd { took: None, failed: error.is_some(), text, hint: way_out_of(error, result) }
    }
}

/// The lines of a call of earlier: what is left of it are its arguments and its result.
pub fn earlier(call: &ToolCall, result: Option<&ToolResult>) -> Vec<StyledLine> {
    let end = result.map(|result| CallEnd::of(result.error.as_ref(), Some(result)));
    finished(&CallNode { end, ..CallNode::of(call) }, true)
}

/// How many nested calls of one call are kept in the scrollback.
const NESTED: usize = 8;

impl CallTree {
    /// The model asks for these.
    pub fn ask_for(&mut self, calls: &[ToolCall]) {
        self.asked = calls.to_vec();
    }

    /// Takes an event; gives the lines of a call that is over, with everything inside it.
    pub fn take(&mut self, event: &EventKind) -> Vec<StyledLine> {
        match event {
            // A call that is refused before it begins has only a result.
            EventKind::MessageAdded { message: Message::Tool(result) } => {
                let asked = self.asked.iter().position(|call| call.id == result.call_id);
                if let Some(at) = asked {
                    return earlier(&self.asked.remove(at), Some(result));
                }
            }
            EventKind::CallStarted { span, parent, call_id, tool, arguments } => {
                if parent.is_none() {
                    self.asked.retain(|call| call.id != *call_id);
                }
                let depth = parent
                    .and_then(|parent| self.find(parent))
                    .map_or(0, |node| node.depth + usize::from(!node.silent));
                let call = ToolCall::new(call_id.clone(), tool.clone(), arguments.clone());
                self.nodes.push(CallNode { span: *span, parent: *parent, depth, ..CallNode::of(&call) });
            }
            EventKind::CallNoted { span, note } => {
                let Some(node) = self.find(*span) else { return Vec::new() };
                match note {
                    CallNote::Hint { text } if text.is_empty() => node.silent = true,
                    CallNote::Hint { text } => {
                        node.title = printable(&text::clip(text, 300)).replace('\n', " ");
                    }
                    CallNote::Progress { message: Some(message), .. } => {
                        node.doing = Some(printable(message))
                    }
                    CallNote::Output { text, .. } => {
                        let last = text.lines().rfind(|line| !line.trim().is_empty());
                        node.doing = last.map(|line| printable(&text::clip(line, 200))).or(node.doing.take());
                    }
                    CallNote::RateLimited { wait } => {
                        node.doing = Some(format!("waits {wait:.0?} for its turn"))
                    }
                    CallNote::Retry { attempt, .. } => node.doing = Some(format!("attempt {attempt} failed")),
                    _ => {}
                }
            }
            // An approval shows in what follows, and a refusal in the error.
            EventKind::CallDecided { span, arguments, .. } => {
                if let Some(node) = self.find(*span) {
                    // What follows is the tool's own time.
                    let now = Instant::now();
                    let waited = now.duration_since(std::mem::replace(&mut node.started, now));
                    let mut around = node.parent;
                    let changed = arguments.as_ref().map(|arguments| format!("changed to {arguments}"));
                    node.decided = changed.map(|changed| printable(&text::clip(&changed, 300)));
                    // The calls around it did not work meanwhile either.
                    while let Some(outer) = around.and_then(|span| self.find(span)) {
                        outer.started = (outer.started + waited).min(now);
                        around = outer.parent;
                    }
                }
            }
            EventKind::CallFinished { span, result, error, duration, .. } => {
                let Some(node) = self.find(*span) else { return Vec::new() };
                let took = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
                node.end = Some(CallEnd { took: Some(took), ..CallEnd::of(error.as_ref(), result.as_ref()) });
                if node.parent.is_none() {
                    return self.remove(*span);
                }
            }
            _ => {}
        }
        Vec::new()
    }

    pub fn clear(&mut self) {
        self.nodes.clear();
        self.asked.clear();
    }

    /// The calls under way, one row each; of many nested ones the last.
    pub fn rows(&self, spinner: char, width: usize) -> Vec<StyledLine> {
        let running = self.nodes.iter().filter(|node| node.end.is_none() && !node.silent);
        let rows = running.map(|node| {
            let time = format!(" {:.0}s", node.started.elapsed().as_secs_f64());
            let doing = node.doing.as_ref().map(|doing| format!("  {doing}")).unwrap_or_default();
            let indent = "  ".repeat(node.depth);
            let mark = if node.depth == 0 { format!("{spinner} ") } else { format!("{indent}└ ") };
            let room = width.saturating_sub(mark.chars().count() + time.len());
            let title = cut(&node.title, room);
            let doing = cut(&doing, room.saturating_sub(title.chars().count()));
            StyledLine::new(YELLOW, mark).and(PLAIN, title).and(DIM, doing).and(DIM, time)
        });
        rows.collect()
    }

    fn find(&mut self, span: u64) -> Option<&mut CallNode> {
        self.nodes.iter_mut().rev().find(|node| node.span == span)
    }

    /// The lines of a call that is over. Its tree leaves the list.
    fn remove(&mut self, top: u64) -> Vec<StyledLine> {
        let mut inside = vec![top];
        let mut tree = Vec::new();
        let mut others = Vec::new();
        for node in std::mem::take(&mut self.nodes) {
            if node.span == top || node.parent.is_some_and(|parent| inside.contains(&parent)) {
                inside.push(node.span);
                tree.push(node);
            } else {
                others.push(node);
            }
        }
        self.nodes = others;
        // A silent call is shown when it failed.
        tree.retain(|node| !node.silent || node.end.as_ref().is_some_and(|end| end.failed));
        let nested = tree.len().saturating_sub(1);
        let mut lines = Vec::new();
        for node in tree.iter().take(NESTED + 1) {
            lines.extend(finished(node, node.depth == 0));
        }
        if nested > NESTED {
            lines.push(StyledLine::new(DIM, format!("  └ and {} further calls", nested - NESTED)));
        }
        lines
    }
}

fn finished(node: &CallNode, top: bool) -> Vec<StyledLine> {
    let indent = "  ".repeat(node.depth);
    let (mark, style) = match &node.end {
        Some(end) if end.failed => ("⏺ ", RED),
        Some(_) => ("⏺ ", GREEN),
        None => ("○ ", YELLOW),
    };
    let took = node.end.as_ref().and_then(|end| end.took);
    let time = took.map(|took| format!("  {}", span(took))).unwrap_or_default();
    let mark = if top { mark.to_owned() } else { format!("{indent}└ ") };
    let hang = mark.chars().count();
    let mut lines =
        vec![StyledLine::new(style, mark).and(PLAIN, node.title.clone()).and(DIM, time).hanging(hang)];
    if let Some(decided) = &node.decided {
        lines.push(StyledLine::new(DIM, format!("{indent}  {decided}")).hanging(hang));
    }
    let Some(end) = node.end.as_ref().filter(|end| top || end.failed) else { return lines };
    let style = if end.failed { RED } else { DIM };
    let shown: Vec<&str> = end.text.lines().filter(|line| !line.trim().is_empty()).collect();
    for line in shown.iter().take(3) {
        lines.push(StyledLine::new(style, format!("{indent}  │ {}", cut(line, 160))).hanging(hang + 2));
    }
    if shown.len() > 3 {
        lines.push(StyledLine::new(
            DIM,
            format!("{indent}  │ … {}", counted((shown.len() - 3) as u64, "more line")),
        ));
    }
    let hint =
        end.hint.as_ref().map(|hint| format!("{indent}  │ hint: {}", printable(&text::clip(hint, 300))));
    lines.extend(hint.map(|hint| StyledLine::new(DIM, hint.replace('\n', " ")).hanging(hang + 2)));
    lines
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use toolwright::tool::ErrorKind;

    use super::*;

    fn started(span: u64, parent: Option<u64>, tool: &str) -> EventKind {
        let (call_id, tool) = (format!("call_{span}").into(), tool.into());
        EventKind::CallStarted { span, parent, call_id, tool, arguments: json!({}) }
    }

    fn ended(span: u64, error: Option<&str>) -> EventKind {
        let error = error.map(|message| ErrorInfo {
            kind: ErrorKind::Unknown,
            message: message.to_owned(),
            hint: None,
        });
        EventKind::CallFinished { span, result: None, error, duration: Duration::ZERO, interrupted: false }
    }

    fn shown(error: Option<&str>) -> (Vec<String>, Vec<String>) {
        let mut calls = CallTree::default();
        calls.take(&started(1, None, "outer"));
        calls.take(&EventKind::CallNoted { span: 1, note: CallNote::Hint { text: String::new() } });
        calls.take(&started(2, Some(1), "inner"));
        let under_way = calls.rows('*', 80).iter().map(StyledLine::text).collect();
        calls.take(&ended(2, None));
        (under_way, calls.take(&ended(1, error)).iter().map(StyledLine::text).collect())
    }

    #[test]
    fn a_call_that_was_refused_before_it_began_is_shown_once() {
        let call = |id: &str| ToolCall::new(id, "look", json!({}));
        let error = ErrorInfo { kind: ErrorKind::Parsing, message: "not offered".to_owned(), hint: None };
        let told = |id: &str| EventKind::MessageAdded {
            message: Message::Tool(ToolResult::failed(&call(id), error.clone())),
        };
        let mut calls = CallTree::default();
        calls.ask_for(&[call("call_1"), call("refused")]);
        calls.take(&started(1, None, "look"));
        assert_eq!(calls.take(&ended(1, None)).len(), 1);
        assert!(calls.take(&told("call_1")).is_empty(), "it was shown when it was over");
        let lines: Vec<String> = calls.take(&told("refused")).iter().map(StyledLine::text).collect();
        assert!(lines[0].contains("look()") && lines[1].contains("not offered"), "{lines:?}");
        assert!(calls.take(&told("refused")).is_empty());
    }

    #[test]
    fn a_silent_call_shows_what_is_in_it_and_itself_when_it_fails() {
        let (under_way, after) = shown(None);
        assert!(matches!(under_way.as_slice(), [row] if row.starts_with("* inner")), "{under_way:?}");
        assert!(matches!(after.as_slice(), [line] if line.starts_with("⏺ inner")), "{after:?}");
        let (_, after) = shown(Some("no luck"));
        assert!(after.iter().any(|line| line.contains("no luck")), "{after:?}");
    }
}
