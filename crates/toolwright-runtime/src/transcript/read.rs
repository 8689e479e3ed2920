//! Reading a transcript.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use toolwright_core::{Error, FileLocation};

use crate::events::{Event, EventKind};

/// The longest line that is read; what the writer makes stays far below it.
const MAX_LINE: u64 = 1 << 30;

/// A transcript in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    /// The events, in order.
    pub events: Vec<Event>,
    /// True when the last line was torn, and therefore left out.
    pub torn: bool,
}

impl Transcript {
    /// Reads the transcript at `path`. A torn last line, as a killed process may leave it, is not an error; a
    /// broken line anywhere else is.
    pub fn load(path: &Path) -> Result<Self, TranscriptError> {
        let file = File::open(path).map_err(|error| TranscriptError::io(path, error))?;
        Ok(Contents::read(path, &file)?.transcript)
    }

    /// The calls that were started and not finished.
    pub fn open_calls(&self) -> BTreeSet<u64> {
        let mut open = BTreeSet::new();
        for event in &self.events {
            match &event.kind {
                EventKind::CallStarted { span, .. } => {
                    open.insert(*span);
                }
                EventKind::CallFinished { span, .. } => {
                    open.remove(span);
                }
                _ => {}
            }
        }
        open
    }

    /// The highest number any call has.
    pub(super) fn highest_span(&self) -> Option<u64> {
        self.events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::CallStarted { span, .. } => Some(span),
                _ => None,
            })
            .max()
    }
}

/// What a file holds.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) transcript: Transcript,
    /// The length of its whole lines.
    pub(super) whole: u64,
    /// What stands after them.
    pub(super) tail: Vec<u8>,
}

impl Contents {
    /// Reads the file from its beginning.
    pub(super) fn read(path: &Path, file: &File) -> Result<Self, TranscriptError> {
        let mut contents = Contents::default();
        let mut reader = BufReader::new(file);
        for number in 1_usize.. {
            let mut line = std::mem::take(&mut contents.tail);
            line.clear();
            let mut bounded = (&mut reader).take(MAX_LINE);
            let read =
                bounded.read_until(b'\n', &mut line).map_err(|error| TranscriptError::io(path, error))?;
            let broken = |source| TranscriptError { path: path.to_owned(), line: Some(number), source };
            if read as u64 == MAX_LINE {
                return Err(broken(std::io::Error::other("it is too long")));
            }
            if line.last() != Some(&b'\n') {
                contents.transcript.torn = !line.is_empty();
                contents.tail = line;
                break;
            }
            let event = serde_json::from_slice(&line).map_err(|error| broken(error.into()))?;
            contents.transcript.events.push(event);
            contents.whole += line.len() as u64;
            contents.tail = line;
        }
        Ok(contents)
    }
}

/// Why a transcript cannot be read or written.
#[derive(Debug)]
pub struct TranscriptError {
    path: PathBuf,
    line: Option<usize>,
    source: std::io::Error,
}

impl TranscriptError {
    pub(super) fn io(path: &Path, source: std::io::Error) -> Self {
        TranscriptError { path: path.to_owned(), line: None, source }
    }

    /// The line that is broken, counting from 1.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

/// A line that is no event is the file's fault; the rest is the disk's.
impl From<TranscriptError> for Error {
    fn from(error: TranscriptError) -> Self {
        let Some(line) = error.line else { return Error::unavailable(error) };
        let file = error.path.to_string_lossy().into();
        Error::file(error).at(FileLocation { file, line, column: 0 })
    }
}

impl std::fmt::Display for TranscriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match self.line {
            Some(line) => write!(f, "line {line} of the transcript `{path}` is not an event"),
            None => write!(f, "cannot use the transcript `{path}`"),
        }
    }
}

impl std::error::Error for TranscriptError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
