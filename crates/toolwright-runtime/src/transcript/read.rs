//! Reading a transcript.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

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
    /// Reads the transcript at `path`. A torn last line, as a killed process may leave it, is no error; a broken line
    /// anywhere else is.
    pub fn load(path: &Path) -> Result<Self, TranscriptError> {
        let file = File::open(path).map_err(|error| TranscriptError::io(path, error))?;
        let mut transcript = Transcript::default();
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        for number in 1_usize.. {
            line.clear();
            let mut bounded = (&mut reader).take(MAX_LINE);
            let read =
                bounded.read_until(b'\n', &mut line).map_err(|error| TranscriptError::io(path, error))?;
            if read == 0 {
                break;
            }
            if line.last() != Some(&b'\n') {
                transcript.torn = true;
                break;
            }
            let event = serde_json::from_slice(&line).map_err(|error| TranscriptError {
                path: path.to_owned(),
                line: Some(number),
                source: error.into(),
            })?;
            transcript.events.push(event);
        }
        Ok(transcript)
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
