//! Writing a transcript.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use toolwright_core::schema::{depth, flatten};
use toolwright_core::{ErrorInfo, ErrorKind, ToolError};
use toolwright_util::lock;

use super::read::{Contents, Transcript, TranscriptError};
use crate::events::{Event, EventKind, EventSink};
use crate::redact::{EventRedactor, Redactor};

/// How deep a line is nested; what a tool gave or a model sent may be deeper, and is then text from there on.
/// Readers of JSON, ours too, stop at 128.
const MAX_LEVELS: usize = 120;

/// How often a writer that waits for another one looks again.
const JOIN_PAUSE: Duration = Duration::from_millis(5);

/// What an event survives once it was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The death of this process.
    #[default]
    Process,
    /// The death of the machine: every finished call is synced to disk.
    Machine,
}

/// Appends events to a file.
#[derive(Debug)]
pub struct TranscriptWriter {
    out: Mutex<Out>,
    redactor: EventRedactor,
    durability: Durability,
    /// The number the next event must have.
    next_seq: u64,
    next_span: u64,
}

/// The file, which always ends with a whole line.
#[derive(Debug)]
struct Out {
    file: File,
    length: u64,
    /// Set when a line could not be written. What comes later would be a record with a hole in it.
    broken: bool,
}

impl Out {
    fn append(&mut self, line: &[u8]) -> std::io::Result<()> {
        if self.broken {
            return Err(std::io::Error::other("an earlier event could not be written"));
        }
        if let Err(error) = self.file.write_all(line) {
            self.broken = true;
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += line.len() as u64;
        Ok(())
    }
}

impl TranscriptWriter {
    /// Opens, or makes, the transcript at `path`. A torn last line is cut off, and calls that were under way
    /// are closed as interrupted. A file that another process is writing is refused, and so is a file that is
    /// not a transcript; both stay as they are.
    pub fn open(path: &Path, redactor: Redactor) -> Result<Self, TranscriptError> {
        let (mut writer, earlier) = Self::open_locked(path, redactor, |file| match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(std::io::Error::other("another run is writing it")),
            // Not every file system has locks; then nobody can tell.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
        })?;
        for span in earlier.open_calls() {
            let error = ErrorInfo {
                kind: ErrorKind::Cancelled,
                message: "the process ended before the call did".to_owned(),
                hint: None,
            };
            let kind = EventKind::CallFinished {
                span,
                result: None,
                error: Some(error),
                duration: Duration::ZERO,
                interrupted: true,
            };
            writer.append(kind).map_err(|error| TranscriptError::io(path, std::io::Error::other(error)))?;
        }
        Ok(writer)
    }

    /// Joins, or makes, a transcript that several processes write in turn: another writer is waited for, at
    /// most so long, and calls that are under way stay open. Returns what was written before, too.
    pub fn join(
        path: &Path,
        redactor: Redactor,
        patience: Duration,
    ) -> Result<(Self, Transcript), TranscriptError> {
        let start = Instant::now();
        Self::open_locked(path, redactor, |file| {
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                        std::thread::sleep(JOIN_PAUSE);
                    }
                    Err(TryLockError::WouldBlock) => {
                        return Err(std::io::Error::other("another process is writing it"));
                    }
                    // Several writers without a lock would write over one another's numbers.
                    Err(TryLockError::Error(error)) => return Err(error),
                }
            }
        })
    }

    /// Records the next event.
    pub fn append(&mut self, kind: EventKind) -> Result<(), ToolError> {
        self.take(&Event { seq: self.next_seq, time: std::time::SystemTime::now(), kind })?;
        self.next_seq += 1;
        Ok(())
    }

    /// A number for a new call.
    pub fn new_span(&mut self) -> u64 {
        let span = self.next_span;
        self.next_span += 1;
        span
    }

    fn open_locked(
        path: &Path,
        redactor: Redactor,
        locked: impl FnOnce(&File) -> std::io::Result<()>,
    ) -> Result<(Self, Transcript), TranscriptError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|error| TranscriptError::io(path, error))?;
        let regular =
            file.metadata().map(|found| found.is_file()).map_err(|error| TranscriptError::io(path, error))?;
        if !regular {
            // A device or a pipe cannot be read back, and may never end.
            return Err(TranscriptError::io(path, std::io::Error::other("it is not a regular file")));
        }
        locked(&file).map_err(|error| TranscriptError::io(path, error))?;
        let contents = Contents::read(path, &file)?;
        let (earlier, length) = (contents.transcript, contents.whole);
        if earlier.torn {
            if !is_torn_event(&contents.tail, earlier.events.last()) {
                let why = "it holds something else, and was left as it is; name another file";
                return Err(TranscriptError::io(path, std::io::Error::other(why)));
            }
            file.set_len(length).map_err(|error| TranscriptError::io(path, error))?;
        }
        let writer = TranscriptWriter {
            out: Mutex::new(Out { file, length, broken: false }),
            redactor: EventRedactor::new(redactor),
            durability: Durability::default(),
            next_seq: earlier.events.last().map_or(0, |event| event.seq.saturating_add(1)),
            next_span: earlier.highest_span().map_or(0, |span| span.saturating_add(1)),
        };
        Ok((writer, earlier))
    }

    /// The same writer with another durability.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The number of the next event; more than 0 when the run is taken up again.
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The number of the next call.
    pub(crate) fn next_span(&self) -> u64 {
        self.next_span
    }

    fn line(&self, event: &Event) -> Result<Vec<u8>, serde_json::Error> {
        let mut value = serde_json::to_value(event)?;
        if depth(&value) > MAX_LEVELS {
            flatten(&mut value, MAX_LEVELS);
        }
        self.redactor.redact(&mut value);
        let mut line = serde_json::to_vec(&value)?;
        line.push(b'\n');
        Ok(line)
    }
}

impl EventSink for TranscriptWriter {
    fn take(&self, event: &Event) -> Result<(), ToolError> {
        let unwritable =
            |error: std::io::Error| ToolError::fatal("the transcript cannot be written").with_source(error);
        let line = self.line(event).map_err(|error| unwritable(error.into()))?;
        let mut out = lock(&self.out);
        out.append(&line).map_err(unwritable)?;
        if self.durability == Durability::Machine && matches!(event.kind, EventKind::CallFinished { .. }) {
            out.file.sync_data().map_err(unwritable)?;
        }
        Ok(())
    }
}

/// True when this is certainly the beginning of a line of ours: of the one that comes after `last`. Before
/// the first one nothing else tells whose the file is, so its beginning must be there.
fn is_torn_event(tail: &[u8], last: Option<&Event>) -> bool {
    match last {
        Some(last) => {
            let start = format!("{{\"seq\":{},", last.seq.saturating_add(1));
            tail.starts_with(start.as_bytes()) || start.as_bytes().starts_with(tail)
        }
        None => {
            // As long as `2026-01-01T00:00:00.000000Z`.
            const TIME: usize = 27;
            let after_time = tail.strip_prefix(b"{\"seq\":0,\"time\":\"").and_then(|rest| rest.get(TIME..));
            after_time.is_some_and(|rest| rest.starts_with(b"\",\"event\":\""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_written_is_the_last_and_two_writers_are_one_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let mut out = Out { file: File::open(&path).unwrap(), length: 3, broken: false };
        assert!(out.append(b"x\n").is_err());
        out.file = OpenOptions::new().append(true).open(&path).unwrap();
        let refused = out.append(b"y\n").unwrap_err();
        assert_eq!(refused.to_string(), "an earlier event could not be written");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}\n");

        let path = folder.path().join("other.jsonl");
        let first = TranscriptWriter::open(&path, Redactor::default()).unwrap();
        let refused = TranscriptWriter::open(&path, Redactor::default()).unwrap_err();
        assert!(format!("{refused:?}").contains("another run is writing it"), "{refused:?}");
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiting = path.clone();
        let joining = std::thread::spawn(move || {
            let patience = Duration::from_secs(60);
            sender.send(TranscriptWriter::join(&waiting, Redactor::default(), patience).is_ok()).unwrap();
        });
        let refused = TranscriptWriter::join(&path, Redactor::default(), Duration::ZERO).unwrap_err();
        assert!(format!("{refused:?}").contains("another process is writing it"), "{refused:?}");
        drop(first);
        assert!(receiver.recv().unwrap());
        joining.join().unwrap();
        TranscriptWriter::open(&path, Redactor::default()).unwrap();
    }

    #[test]
    fn calls_stay_open_for_a_writer_that_joins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        let join = || TranscriptWriter::join(&path, Redactor::default(), Duration::ZERO).unwrap();
        let (mut writer, earlier) = join();
        assert!(earlier.events.is_empty());
        let span = writer.new_span();
        let (call_id, tool) = ("c".into(), "t".into());
        let call = EventKind::CallStarted { span, parent: None, call_id, tool, arguments: 1.into() };
        writer.append(call).unwrap();
        drop(writer);
        let (mut writer, earlier) = join();
        assert_eq!(earlier.open_calls().into_iter().collect::<Vec<_>>(), [span]);
        assert_eq!((writer.next_seq(), writer.new_span()), (1, span + 1));
        drop(writer);
        drop(TranscriptWriter::open(&path, Redactor::default()).unwrap());
        let (_, earlier) = join();
        assert!(earlier.open_calls().is_empty(), "a run of its own closes what was cut off");
    }
}
