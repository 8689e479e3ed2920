//! A run as steps that two runs can be compared by: what was said, called, decided and given back. Times, ids
//! and numbers of calls are left out.
//!
//! Of each step only a hash is kept. Its text is read from the transcript where two runs differ, so that
//! transcripts of any length can be compared.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, ChangeTag, DiffOp, TextDiff, capture_diff_slices_deadline};
use toolwright::content::{Message, ToolResult};
use toolwright::events::EventKind;
use toolwright::run::RunEnd;

use super::head::LineHead;
use super::index::{TimelineItem, TimelineKind};
use super::source::TranscriptSource;

/// How many lines of one step are shown; what follows is told by its number and its hash.
const LINES: usize = 1000;

/// How many bytes of one line are shown.
const WIDTH: usize = 2000;

/// How many unchanged lines are shown around a change.
const AROUND: usize = 2;

/// How long the shortest way from one run to the other is looked for; after that, a longer one will do.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Story<'a> {
    source: &'a TranscriptSource,
    steps: Vec<StoryStep>,
}

/// One step: an item of the index, or its second half.
struct StoryStep {
    item: usize,
    part: StoryPart,
    hash: u64,
}

#[derive(Clone, Copy)]
enum StoryPart {
    /// A message, and how many of the calls it asks for were begun.
    Message(usize),
    /// A call and what was decided about it.
    Begin,
    /// What a call gave back.
    Result,
    /// The end, or what happened to an answer.
    Other,
}

impl<'a> Story<'a> {
    /// Reads every step once.
    pub fn of(source: &'a TranscriptSource) -> Self {
        Story::read(source, |_| true, &HashSet::new())
    }

    /// The same without what a replay does not do again: nobody stops an answer, and nothing is taken back.
    /// The calls inside of those that were answered whole (`answered`, by their items) are not made.
    pub fn played(source: &'a TranscriptSource, answered: &HashSet<usize>) -> Self {
        Story::read(
            source,
            |kind| !matches!(kind, TimelineKind::Failed | TimelineKind::Stopped | TimelineKind::Rewound),
            answered,
        )
    }

    fn read(
        source: &'a TranscriptSource,
        wanted: fn(TimelineKind) -> bool,
        answered: &HashSet<usize>,
    ) -> Self {
        let mut story = Story { source, steps: Vec::new() };
        let mut inside: HashMap<usize, Vec<usize>> = HashMap::new();
        // The message of the model whose calls are being gathered, and those calls.
        let (mut message, mut calls) = (None, Vec::new());
        let last = source.index.items.len().checked_sub(1);
        for (number, item) in source.index.items.iter().enumerate().filter(|(_, item)| wanted(item.kind)) {
            match (&item.call, item.kind) {
                // The message that asks for it says that it was not made.
                (_, TimelineKind::Given) => {}
                (Some(call), _) => match call.parent {
                    Some(parent) if answered.contains(&parent) => {}
                    Some(parent) => inside.entry(parent).or_default().push(number),
                    None => calls.push(number),
                },
                (None, TimelineKind::System | TimelineKind::User | TimelineKind::Assistant) => {
                    story.turn(message.replace(number), &mut calls, &inside);
                }
                // A run that was taken up again has one end. A limit that ended it is told there, and one
                // that ended an agent in the result of its call.
                (None, TimelineKind::End) if last != Some(number) => {}
                (None, TimelineKind::Limit | TimelineKind::Call) => {}
                (
                    None,
                    TimelineKind::End | TimelineKind::Failed | TimelineKind::Stopped | TimelineKind::Rewound,
                ) => {
                    story.turn(message.take(), &mut calls, &inside);
                    story.push(number, StoryPart::Other);
                }
            }
        }
        story.turn(message, &mut calls, &inside);
        story
    }

    /// A message and the calls it led to, in the order in which the model asked for them: what ran at the
    /// same time has one order then.
    fn turn(&mut self, message: Option<usize>, calls: &mut Vec<usize>, inside: &HashMap<usize, Vec<usize>>) {
        if let Some(number) = message {
            self.push(number, StoryPart::Message(calls.len()));
            if calls.len() > 1 {
                let asked = self.asked(number);
                calls.sort_by_key(|call| {
                    let id = self.call_id(*call);
                    asked.iter().position(|asked| id.as_deref() == Some(asked)).unwrap_or(usize::MAX)
                });
            }
        }
        // A list in place of recursion: how deep calls are nested is for the file to say.
        let mut todo: Vec<(usize, StoryPart)> =
            calls.drain(..).rev().map(|call| (call, StoryPart::Begin)).collect();
        while let Some((number, part)) = todo.pop() {
            self.push(number, part);
            if matches!(part, StoryPart::Begin) {
                todo.push((number, StoryPart::Result));
                let nested = inside.get(&number).into_iter().flatten().rev();
                todo.extend(nested.map(|nested| (*nested, StoryPart::Begin)));
            }
        }
    }

    fn push(&mut self, item: usize, part: StoryPart) {
        let mut hasher = DefaultHasher::new();
        match (part, self.source.index.items.get(item)) {
            (StoryPart::Result, Some(item)) => self.hash_result(item, &mut hasher),
            _ => self.lines(item, part).hash(&mut hasher),
        }
        self.steps.push(StoryStep { item, part, hash: hasher.finish() });
    }

    /// Results are most of a transcript, so their bytes are hashed as they stand: why it failed, and the
    /// content.
    fn hash_result(&self, item: &TimelineItem, hasher: &mut DefaultHasher) {
        let end = item.call.as_ref().and_then(|call| call.end);
        let Some(line) = end.and_then(|end| self.source.line(end).ok()) else { return };
        // Inside a JSON text the quotes would be escaped, so this is the key.
        let key = b"\"content\":";
        match line.windows(key.len()).position(|part| part == key) {
            Some(at) => line.get(at..).hash(hasher),
            None => LineHead::read(&line).and_then(|head| head.error).map(|error| error.message).hash(hasher),
        }
    }

    /// The ids of the calls that a message asks for.
    fn asked(&self, item: usize) -> Vec<String> {
        match self.event(item) {
            Some(EventKind::MessageAdded { message: Message::Assistant(answer) }) => {
                answer.tool_calls.iter().map(|call| call.id.to_string()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn call_id(&self, item: usize) -> Option<String> {
        match self.event(item)? {
            EventKind::CallStarted { call_id, .. } => Some(call_id.to_string()),
            _ => None,
        }
    }

    fn event(&self, item: usize) -> Option<EventKind> {
        let item = self.source.index.items.get(item)?;
        self.source.event(item.at).ok().map(|event| event.kind)
    }

    /// One step as text.
    fn lines(&self, number: usize, part: StoryPart) -> Vec<String> {
        let Some(item) = self.source.index.items.get(number) else { return Vec::new() };
        let indent = "  ".repeat(item.call.as_ref().map_or(0, |call| usize::from(call.depth).min(32)) + 1);
        let read = |place| self.source.event(place).map(|event| event.kind);
        let mut lines = Vec::new();
        match part {
            StoryPart::Message(made) => match read(item.at) {
                Ok(EventKind::MessageAdded { message }) => say(&mut lines, &message, made),
                _ => lines.push("(a message that cannot be read)".to_owned()),
            },
            StoryPart::Begin => match read(item.at) {
                Ok(EventKind::CallStarted { tool, arguments, .. }) => {
                    lines.push(format!("{indent}call {tool} {arguments}"));
                    let decided = item.call.as_ref().and_then(|call| call.decided);
                    lines.extend(decided.and_then(|place| decision(read(place).ok()?, &indent)));
                }
                _ => lines.push(format!("{indent}(a call that cannot be read)")),
            },
            StoryPart::Result => match item.call.as_ref().and_then(|call| call.end).map(read) {
                Some(Ok(EventKind::CallFinished { result: Some(result), .. })) => {
                    give_back(&mut lines, &indent, &result);
                }
                Some(Ok(EventKind::CallFinished { error: Some(error), .. })) => {
                    lines.push(format!("{indent}  fails: {}", error.message));
                }
                Some(_) => lines.push(format!("{indent}(a result that cannot be read)")),
                None => {}
            },
            StoryPart::Other => match read(item.at) {
                Ok(EventKind::RunFinished { end }) => lines.push(format!("end: {}", end_text(&end))),
                Ok(event) => lines.extend(turn_text(&event)),
                Err(_) => {}
            },
        }
        if lines.len() > LINES {
            let rest = lines.split_off(LINES);
            lines.push(format!("{indent}and {} further lines ({:x})", rest.len(), hash(&rest)));
        }
        lines.iter_mut().for_each(cut);
        lines
    }

    fn text(&self, steps: Range<usize>) -> Vec<String> {
        let steps = self.steps.get(steps).unwrap_or_default();
        steps.iter().flat_map(|step| self.lines(step.item, step.part)).collect()
    }
}

/// Shortens a long line; the hash of the rest still tells two apart.
fn cut(line: &mut String) {
    if line.len() <= WIDTH {
        return;
    }
    let rest = line.split_off(line.floor_char_boundary(WIDTH));
    *line += &format!("… and {} further bytes ({:x})", rest.len(), hash(&rest));
}

fn hash(what: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

fn say(lines: &mut Vec<String>, message: &Message, made: usize) {
    let who = match message {
        Message::System { .. } => "system",
        Message::User { .. } => "user",
        Message::Assistant(_) => "assistant",
        Message::Tool(_) => return,
    };
    lines.extend(message.text().lines().map(|line| format!("{who}: {line}")));
    if let Message::Assistant(answer) = message {
        let unmade = answer.tool_calls.iter().skip(made);
        lines.extend(unmade.map(|call| format!("  call {} {} (not made)", call.name, call.arguments)));
    }
}

fn decision(event: EventKind, indent: &str) -> Option<String> {
    let EventKind::CallDecided { decision, reason, arguments, .. } = event else { return None };
    let arguments = arguments.map(|arguments| format!(" {arguments}")).unwrap_or_default();
    let reason = reason.filter(|_| decision != "approve");
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    Some(format!("{indent}  {decision}{arguments}{reason}"))
}

fn give_back(lines: &mut Vec<String>, indent: &str, result: &ToolResult) {
    let name = &result.name;
    lines.extend(result.to_text().lines().map(|line| format!("{indent}{name} gives {line}")));
    let media = result.content.iter().filter(|block| block.as_text().is_none()).count();
    if media > 0 {
        lines.push(format!("{indent}{name} gives {media} further blocks"));
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

/// What happened to a conversation as a whole, when it is that.
pub fn turn_text(event: &EventKind) -> Option<String> {
    Some(match event {
        EventKind::ModelFailed { message, .. } => format!("the model could not answer: {message}"),
        EventKind::AnswerStopped => "the answer was stopped".to_owned(),
        EventKind::Rewound { messages } => {
            let left = crate::report::counted(*messages as u64, "message");
            format!("the conversation was taken back to {left}")
        }
        _ => return None,
    })
}

/// The lines of two stories: `-` only in the first, `+` only in the second, ` ` around them.
pub fn compare(a: &Story<'_>, b: &Story<'_>) -> Vec<String> {
    let hashes = |story: &Story<'_>| story.steps.iter().map(|step| step.hash).collect::<Vec<_>>();
    let patience = Some(Instant::now() + PATIENCE);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &hashes(a), &hashes(b), patience);
    let mut lines: Vec<(char, String)> = Vec::new();
    for op in ops {
        let (old, new) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { len, .. } = op {
            // Only the ends of what is the same can stand beside a change. A step may have no line, hence a
            // few more.
            let near = 4 * AROUND;
            let same = if len <= 2 * near {
                a.text(old)
            } else {
                let mut text = a.text(old.start..old.start + near);
                text.push(String::new());
                text.extend(a.text(old.end - near..old.end));
                text
            };
            lines.extend(same.into_iter().map(|line| (' ', line)));
            continue;
        }
        let (old, new) = (a.text(old), b.text(new));
        let old: Vec<&str> = old.iter().map(String::as_str).collect();
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        let diff = TextDiff::configure().timeout(PATIENCE).diff_slices(&old, &new);
        lines.extend(diff.iter_all_changes().map(|change| {
            let mark = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            (mark, change.value().to_owned())
        }));
    }
    changed(&lines)
}

/// The changes, with a little of what is around them.
fn changed(lines: &[(char, String)]) -> Vec<String> {
    let changes: Vec<usize> =
        lines.iter().enumerate().filter(|(_, (mark, _))| *mark != ' ').map(|(at, _)| at).collect();
    let near = |at: usize| {
        let next = changes.partition_point(|change| *change < at);
        let after = changes.get(next).is_some_and(|change| change - at <= AROUND);
        let before = next.checked_sub(1).and_then(|last| changes.get(last));
        after || before.is_some_and(|change| at - change <= AROUND)
    };
    let mut out = Vec::new();
    let mut last = None;
    for (at, (mark, line)) in lines.iter().enumerate().filter(|(at, _)| near(*at)) {
        if last.is_some_and(|last| last + 1 < at) {
            out.push("  ...".to_owned());
        }
        last = Some(at);
        out.push(format!("{mark} {line}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_a_change_is_shown() {
        let line = |text: &str| {
            let mut letters = text.chars();
            (letters.next().unwrap_or(' '), letters.collect::<String>())
        };
        let lines: Vec<_> = [" a", " b", " c", "-d", " e", " f", " g", " h", "+i"].map(line).into();
        let shown = ["  b", "  c", "- d", "  e", "  f", "  g", "  h", "+ i"];
        assert_eq!(changed(&lines), shown);
        let lines: Vec<_> = ["-a", " b", " c", " d", " e", " f", "+g"].map(line).into();
        assert_eq!(changed(&lines), ["- a", "  b", "  c", "  ...", "  e", "  f", "+ g"]);
        assert!(changed(&[line(" a")]).is_empty());
        let mut long = ["é".repeat(2000), "é".repeat(1999) + "e"];
        long.iter_mut().for_each(cut);
        assert!(long.iter().all(|line| line.len() < 2100) && long.first() != long.last());
    }
}
