//! An index of one transcript: where each message and call stands, how it went, how long it took.
//!
//! Building it reads the file once and keeps a few dozen bytes per item, so a transcript of a gigabyte opens
//! at the speed of the disk, and a growing one is only read where it grew. The index of a large transcript is
//! kept beside it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolwright::content::Message;
use toolwright::events::{Event, EventKind};
use toolwright::model::Usage;

use super::head::LineHead;
use super::process;
use crate::write_file::{self, FileAccess};

/// Transcripts from this size on have their index kept beside them.
const KEPT_FROM: u64 = 32 << 20;

/// The longest line that is looked at; a longer one is counted as broken.
const MAX_LINE: u64 = 256 << 20;

/// The version of a kept index.
const VERSION: u32 = 5;

/// The times a record can tell of, in microseconds since 1970: from 2020, before there was this program, to
/// 2100.
const TIMES: std::ops::Range<u64> = 1_577_836_800_000_000..4_102_444_800_000_000;

/// The longest that anything takes: a year, in microseconds.
const LONGEST: u64 = 366 * 24 * 3600 * 1_000_000;

/// How exactly the system tells when a process began, in microseconds.
const CLOCKS: u64 = 2_000_000;

/// What stands where in a transcript.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Index {
    version: u32,
    pub run_id: String,
    pub labels: BTreeMap<String, String>,
    /// How it ended; empty while it goes on.
    pub status: String,
    /// When it began, in microseconds since 1970; absent when the record has no such time.
    pub started: Option<u64>,
    /// When something happened last.
    last: Option<u64>,
    /// True when something has no time, so that nobody knows when it happened.
    undated: bool,
    /// What the user said first.
    pub prompt: String,
    pub items: Vec<TimelineItem>,
    pub replies: Vec<RecordedReply>,
    /// Names of tools and models, which items and replies refer to.
    pub names: Vec<String>,
    pub usage: Usage,
    pub cost: f64,
    pub calls: u64,
    pub errors: u64,
    pub events: u64,
    pub broken_lines: u64,
    /// How much of the file is in the index.
    pub bytes: u64,
    /// The items of calls that have begun and not ended.
    open: HashMap<u64, usize>,
    /// The ids of the calls that have begun, and whose result is still to come.
    begun: HashSet<String>,
    /// The reply that the next message of the model belongs to.
    pending_reply: Option<u32>,
}

/// One thing on the timeline.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TimelineItem {
    pub kind: TimelineKind,
    /// Where its line is.
    pub at: LineRange,
    pub time: Option<u64>,
    /// The reply that made this message of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallItem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimelineKind {
    System,
    User,
    Assistant,
    Call,
    /// The result of a call that was not made here: it was refused before it began, or the caller made it.
    Given,
    /// A model could not answer.
    Failed,
    /// Somebody stopped an answer.
    Stopped,
    /// The end of the conversation was taken back.
    Rewound,
    Limit,
    End,
}

/// How a call went.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallItem {
    pub tool: u32,
    pub span: u64,
    /// The number of the item whose call made this one; it is a smaller number than this item's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    pub depth: u16,
    pub state: ItemState,
    pub duration_us: Option<u64>,
    /// Where its last line is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<LineRange>,
    /// Where the decision about it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<LineRange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    Running,
    Ok,
    Error,
    Refused,
    Interrupted,
}

/// A line of the file: where it begins, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange(pub u64, pub u64);

/// One answer of a model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedReply {
    pub model: u32,
    pub duration_us: Option<u64>,
    pub usage: Usage,
    pub cost: f64,
}

impl CallItem {
    /// How it stands: one that has not ended, in a run that does not go on, was interrupted.
    pub fn state_in(&self, running: bool) -> ItemState {
        match self.state {
            ItemState::Running if !running => ItemState::Interrupted,
            state => state,
        }
    }
}

impl Index {
    /// The index of a transcript: the kept one, brought up to date, or a new one.
    pub fn open(path: &Path) -> std::io::Result<Index> {
        let kept = std::fs::read(sidecar(path)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut index = kept.filter(|index: &Index| index.version == VERSION).unwrap_or_default();
        index.version = VERSION;
        let before = index.bytes;
        index.update(path)?;
        if index.bytes >= KEPT_FROM && index.bytes > before {
            // An index that cannot be kept is made again next time.
            let _ = keep(path, &index);
        }
        Ok(index)
    }

    /// Takes in what was added to the file. True when there was something.
    pub fn update(&mut self, path: &Path) -> std::io::Result<bool> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        if length < self.bytes {
            *self = Index { version: VERSION, ..Index::default() };
        }
        if length == self.bytes {
            return Ok(false);
        }
        file.seek(SeekFrom::Start(self.bytes))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut line = Vec::new();
        let before = self.bytes;
        loop {
            line.clear();
            let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line)? as u64;
            if read == 0 || (line.last() != Some(&b'\n') && read < MAX_LINE) {
                // The end, or a line that is still being written.
                break;
            }
            let place = LineRange(self.bytes, read);
            self.bytes += read;
            self.events += 1;
            match LineHead::read(&line) {
                Some(head) => self.take(head, place, &line),
                None => self.broken_lines += 1,
            }
        }
        Ok(self.bytes > before)
    }

    fn take(&mut self, head: LineHead, at: LineRange, line: &[u8]) {
        let told = time(&head.time);
        self.last = self.last.max(told);
        self.undated |= told.is_none();
        // What has no time of its own happened after what stands before it.
        let time = told.or(self.last);
        match head.event.as_str() {
            "run_started" => {
                if self.run_id.is_empty() {
                    (self.run_id, self.labels, self.started) = (head.run_id, head.labels, told);
                }
                self.status.clear();
            }
            "message_added" => {
                let kind = match head.role.as_str() {
                    "system" => TimelineKind::System,
                    "user" => TimelineKind::User,
                    "assistant" => TimelineKind::Assistant,
                    // The result of a call is shown with the call.
                    _ if self.begun.remove(&head.call_id) => return,
                    // What comes before the first answer is a conversation that is taken up.
                    "tool" if !self.replies.is_empty() => return self.given(&head, at, time, line),
                    _ => return,
                };
                if kind == TimelineKind::Assistant && self.open.is_empty() {
                    // What is left was called by other calls, and has no message.
                    self.begun.clear();
                }
                if kind == TimelineKind::User && self.prompt.is_empty() {
                    self.prompt = head.said;
                }
                let reply = if kind == TimelineKind::Assistant { self.pending_reply.take() } else { None };
                self.items.push(TimelineItem { kind, at, time, reply, call: None });
            }
            "model_replied" => {
                self.usage += head.usage;
                self.cost += head.cost;
                self.pending_reply = u32::try_from(self.replies.len()).ok();
                let model = self.name(&head.model);
                let duration_us = head.duration_us.filter(|took| *took <= LONGEST);
                self.replies.push(RecordedReply { model, duration_us, usage: head.usage, cost: head.cost });
            }
            "call_started" => self.call_started(head, at, time),
            "call_decided" => {
                if let Some(call) = self.open_call(head.span) {
                    call.decided = Some(at);
                    if matches!(head.decision.as_str(), "reject" | "terminate") {
                        call.state = ItemState::Refused;
                    }
                }
            }
            "call_finished" => self.call_finished(&head, at),
            "model_failed" => self.push(TimelineKind::Failed, at, time),
            "answer_stopped" => self.push(TimelineKind::Stopped, at, time),
            "rewound" => self.push(TimelineKind::Rewound, at, time),
            "limit_hit" => self.push(TimelineKind::Limit, at, time),
            "run_finished" => {
                self.status = head.status;
                self.push(TimelineKind::End, at, time);
            }
            _ => {}
        }
    }

    fn push(&mut self, kind: TimelineKind, at: LineRange, time: Option<u64>) {
        self.items.push(TimelineItem { kind, at, time, reply: None, call: None });
    }

    fn call_started(&mut self, head: LineHead, at: LineRange, time: Option<u64>) {
        let Some(span) = head.span else { return };
        let parent = head.parent.and_then(|parent| self.open.get(&parent)).copied();
        let outer = parent.and_then(|at| self.items.get(at)).and_then(|item| item.call.as_ref());
        let depth = outer.map_or(0, |call| call.depth.saturating_add(1));
        if depth == 0 {
            self.calls += 1;
        }
        let tool = self.name(&head.tool);
        let state = ItemState::Running;
        let call = CallItem { tool, span, parent, depth, state, duration_us: None, end: None, decided: None };
        self.open.insert(span, self.items.len());
        self.begun.insert(head.call_id);
        self.items.push(TimelineItem { kind: TimelineKind::Call, at, time, reply: None, call: Some(call) });
    }

    /// Only such lines are read whole: whether it is an error stands behind what was given.
    fn given(&mut self, head: &LineHead, at: LineRange, time: Option<u64>, line: &[u8]) {
        let failed = match serde_json::from_slice::<Event>(line).map(|event| event.kind) {
            Ok(EventKind::MessageAdded { message: Message::Tool(result) }) => result.error.is_some(),
            _ => false,
        };
        self.calls += 1;
        self.errors += u64::from(failed);
        let (tool, state) = (self.name(&head.tool), if failed { ItemState::Error } else { ItemState::Ok });
        let call = CallItem {
            tool,
            span: 0,
            parent: None,
            depth: 0,
            state,
            duration_us: Some(0),
            end: None,
            decided: None,
        };
        self.items.push(TimelineItem { kind: TimelineKind::Given, at, time, reply: None, call: Some(call) });
    }

    fn call_finished(&mut self, head: &LineHead, at: LineRange) {
        let failed = head.error.is_some();
        let mut top = false;
        if let Some(call) = self.open_call(head.span) {
            top = call.depth == 0;
            call.end = Some(at);
            call.duration_us = head.duration_us.filter(|took| *took <= LONGEST);
            call.state = match (call.state, failed) {
                (ItemState::Refused, _) => ItemState::Refused,
                _ if head.interrupted => ItemState::Interrupted,
                (_, true) => ItemState::Error,
                (_, false) => ItemState::Ok,
            };
        }
        self.errors += u64::from(failed && top);
        if let Some(span) = head.span {
            self.open.remove(&span);
        }
    }

    fn open_call(&mut self, span: Option<u64>) -> Option<&mut CallItem> {
        let at = *self.open.get(&span?)?;
        self.items.get_mut(at)?.call.as_mut()
    }

    fn name(&mut self, name: &str) -> u32 {
        let known = self.names.iter().position(|known| known == name);
        let at = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// The name a number stands for.
    pub fn name_of(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }

    /// True when something in it went wrong: a call, an answer, or the whole.
    pub fn failed(&self) -> bool {
        let unanswered = || self.items.iter().any(|item| item.kind == TimelineKind::Failed);
        self.errors > 0 || !matches!(self.state(), "done" | "running") || unanswered()
    }

    /// True while something may still be added.
    pub fn is_running(&self) -> bool {
        self.state() == "running"
    }

    /// The models that answered.
    pub fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = self.replies.iter().map(|reply| self.name_of(reply.model)).collect();
        models.sort_unstable();
        models.dedup();
        models
    }

    /// How long it took so far; absent when the times of the record do not say so.
    pub fn duration_us(&self) -> Option<u64> {
        let took = self.last?.checked_sub(self.started?)?;
        (took <= LONGEST && !self.undated).then_some(took)
    }

    /// How the run stands: `done`, `failed` and so on, `running`, or `cut off` when its process is gone.
    pub fn state(&self) -> &str {
        if !self.status.is_empty() {
            return &self.status;
        }
        // The second part of an id is the process, in hexadecimal.
        let process = self.run_id.split('-').nth(1).and_then(|text| u32::from_str_radix(text, 16).ok());
        let alive = process.and_then(process::began).is_some_and(|began| {
            // One that began after the last event has only got its number.
            self.last.is_none_or(|last| began <= last.saturating_add(CLOCKS))
        });
        if alive { "running" } else { "cut off" }
    }
}

/// The time a line tells, in microseconds since 1970.
fn time(text: &str) -> Option<u64> {
    let since = toolwright_runtime::parse_time(text)?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_micros()).ok().filter(|time| TIMES.contains(time))
}

/// Where the index of a large transcript is kept.
pub fn sidecar(path: &Path) -> PathBuf {
    path.with_extension("index")
}

fn keep(path: &Path, index: &Index) -> anyhow::Result<()> {
    write_file::replace(&sidecar(path), &serde_json::to_vec(index)?, FileAccess::Owner)
}
