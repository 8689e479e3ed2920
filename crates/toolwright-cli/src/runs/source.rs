//! A transcript and its index: single events are read from the file when somebody looks at them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use regex::bytes::RegexBuilder;
use toolwright::content::{Message, ToolResult};
use toolwright::events::{Event, EventKind};
use toolwright::tool::CallNote;

use super::index::{Index, LineRange, TimelineItem, TimelineKind};

/// The longest event that is read whole.
const MAX_EVENT: u64 = 64 << 20;

/// How many notes of one call are read.
const MAX_NOTES: usize = 200;

pub struct TranscriptSource {
    pub path: PathBuf,
    pub index: Index,
}

/// One item with everything that is known about it.
pub struct Whole {
    pub event: EventKind,
    pub decided: Option<EventKind>,
    pub finished: Option<EventKind>,
    pub notes: Vec<CallNote>,
}

impl TranscriptSource {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let index = Index::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(TranscriptSource { path: path.to_owned(), index })
    }

    /// The first event, which says what the run is about.
    pub fn beginning(&self) -> Option<EventKind> {
        let mut line = Vec::new();
        let file = File::open(&self.path).ok()?;
        BufReader::new(file).take(MAX_EVENT).read_until(b'\n', &mut line).ok()?;
        serde_json::from_slice::<Event>(&line).ok().map(|event| event.kind)
    }

    /// The event that stands at a place.
    pub fn event(&self, place: LineRange) -> anyhow::Result<Event> {
        Ok(serde_json::from_slice(&self.line(place)?)?)
    }

    /// The line that stands at a place.
    pub fn line(&self, LineRange(at, length): LineRange) -> anyhow::Result<Vec<u8>> {
        anyhow::ensure!(length <= MAX_EVENT, "the event has {length} bytes, which is too much to look at");
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(at))?;
        let mut line = vec![0; usize::try_from(length)?];
        file.read_exact(&mut line)?;
        Ok(line)
    }

    /// The item, its decision, its end and its notes.
    pub fn whole(&self, item: &TimelineItem) -> anyhow::Result<Whole> {
        let event = self.event(item.at)?.kind;
        let Some(call) = item.call.as_ref().filter(|_| item.kind == TimelineKind::Call) else {
            return Ok(Whole { event, decided: None, finished: None, notes: Vec::new() });
        };
        let read = |place: Option<LineRange>| place.map(|place| self.event(place)).transpose();
        let decided = read(call.decided)?.map(|event| event.kind);
        let finished = read(call.end)?.map(|event| event.kind);
        let notes = self.notes(call.span, item.at, call.end)?;
        Ok(Whole { event, decided, finished, notes })
    }

    /// What was noted inside a call, as far as it stands within a few megabytes of its beginning.
    fn notes(&self, span: u64, from: LineRange, to: Option<LineRange>) -> anyhow::Result<Vec<CallNote>> {
        const WINDOW: u64 = 4 << 20;
        let start = from.0 + from.1;
        let end = to.map_or(self.index.bytes, |to| to.0);
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(start))?;
        let reader = BufReader::new(file.take(end.saturating_sub(start).min(WINDOW)));
        let mut notes = Vec::new();
        for line in reader.split(b'\n') {
            let line = line?;
            let wanted = format!("\"event\":\"call_noted\",\"span\":{span},");
            if !line.windows(wanted.len()).take(80).any(|part| part == wanted.as_bytes()) {
                continue;
            }
            if let Ok(Event { kind: EventKind::CallNoted { note, .. }, .. }) = serde_json::from_slice(&line) {
                notes.push(note);
            }
            if notes.len() >= MAX_NOTES {
                break;
            }
        }
        Ok(notes)
    }

    /// The items whose lines contain a text, whatever its case; at most so many.
    pub fn search(&self, text: &str, most: usize) -> anyhow::Result<Vec<usize>> {
        let quoted = serde_json::to_string(text)?;
        let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&quoted);
        let pattern = RegexBuilder::new(&regex::escape(inner)).case_insensitive(true).build()?;
        // A line belongs to the item it begins, or to the call whose end or decision it is.
        let mut lines: Vec<(u64, usize)> = Vec::new();
        for (number, item) in self.index.items.iter().enumerate() {
            lines.push((item.at.0, number));
            if let Some(call) = &item.call {
                lines.extend([call.end, call.decided].into_iter().flatten().map(|place| (place.0, number)));
            }
        }
        lines.sort_unstable();
        // A call has up to three lines, and is found once.
        let mut found = BTreeSet::new();
        let mut reader = BufReader::with_capacity(1 << 20, File::open(&self.path)?);
        let mut line = Vec::new();
        let mut at = 0;
        while at < self.index.bytes && found.len() < most {
            line.clear();
            let read = (&mut reader).take(MAX_EVENT).read_until(b'\n', &mut line)? as u64;
            if read == 0 {
                break;
            }
            if pattern.is_match(&line)
                && let Ok(place) = lines.binary_search_by_key(&at, |(start, _)| *start)
                && let Some((_, number)) = lines.get(place)
            {
                found.insert(*number);
            }
            at += read;
        }
        Ok(found.into_iter().collect())
    }
}

impl Whole {
    /// The message, when the item is one.
    pub fn message(&self) -> Option<&Message> {
        match &self.event {
            EventKind::MessageAdded { message } => Some(message),
            _ => None,
        }
    }

    /// What the call gave back.
    pub fn result(&self) -> Option<&ToolResult> {
        match &self.finished {
            Some(EventKind::CallFinished { result, .. }) => result.as_ref(),
            _ => None,
        }
    }
}
