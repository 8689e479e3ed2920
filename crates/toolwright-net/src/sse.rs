//! Server-sent events out of bytes, wherever the bytes are cut. What the events mean belongs to others.

use std::time::Duration;

/// Why bytes are not an event stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseError(String);

impl std::fmt::Display for SseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SseError {}

/// The longest a server may ask a reader to stay away.
const MAX_RETRY: Duration = Duration::from_secs(60);

/// The longest id of an event that is kept.
const MAX_ID: usize = 4096;

/// One event: its name, if it has one, and its data lines joined by newlines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The name; empty when the server gave none.
    pub name: String,
    /// The data.
    pub data: String,
}

/// Reads events from chunks of bytes.
#[derive(Debug)]
pub struct SseReader {
    max_event: usize,
    /// The line being read, without its end.
    line: Vec<u8>,
    /// True after a carriage return, whose newline belongs to the same line end.
    after_return: bool,
    /// True until the first byte that is not part of a byte-order mark.
    at_start: bool,
    event: SseEvent,
    has_data: bool,
    last_id: Option<String>,
    /// The id of the event that is coming in.
    next_id: Option<String>,
    retry: Option<Duration>,
}

impl SseReader {
    /// A reader that refuses events of more than `max_event` bytes.
    pub fn new(max_event: usize) -> Self {
        SseReader {
            max_event,
            line: Vec::new(),
            after_return: false,
            at_start: true,
            event: SseEvent::default(),
            has_data: false,
            last_id: None,
            next_id: None,
            retry: None,
        }
    }

    /// The id of the last event that came whole, to say from where to go on.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server asks a reader to wait before it comes back, at most a minute.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes the next bytes and gives the events they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut done = Vec::new();
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (part, end) = rest.split_at(at);
            let (end, after) = end.split_first().unwrap_or((&b'\n', &[]));
            let half = std::mem::take(&mut self.after_return) && *end == b'\n' && part.is_empty();
            self.extend(part)?;
            if !half {
                self.end_line(&mut done)?;
            }
            self.after_return = *end == b'\r';
            rest = after;
        }
        if !rest.is_empty() {
            self.after_return = false;
        }
        self.extend(rest)?;
        Ok(done)
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), SseError> {
        let size = self.line.len() + self.event.data.len() + self.event.name.len();
        if size + part.len() > self.max_event {
            return Err(SseError(format!("an event of the stream is over {} bytes", self.max_event)));
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self, done: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        let line =
            String::from_utf8(line).map_err(|_| SseError("the stream is not UTF-8 text".to_owned()))?;
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix('\u{feff}').unwrap_or(&line)
        } else {
            &line
        };
        if line.is_empty() {
            // Only now has the event come whole; a reader that lost the rest of it must ask for it again.
            self.last_id = self.next_id.take().or(self.last_id.take());
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                done.push(event);
            }
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "id" if value.len() <= MAX_ID && !value.contains('\0') => self.next_id = Some(value.to_owned()),
            "retry" => {
                let wait = value.parse().ok().map(|wait| Duration::from_millis(wait).min(MAX_RETRY));
                self.retry = wait.or(self.retry);
            }
            // Comments (an empty field name) and whatever a server makes up.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<SseEvent> {
        let mut reader = SseReader::new(1000);
        chunks.iter().flat_map(|chunk| reader.push(chunk).unwrap()).collect()
    }

    #[test]
    fn the_same_events_come_wherever_the_bytes_are_cut() {
        let text =
            "\u{feff}event: a\r\ndata: é1\r\ndata:2\r\n\r\n: note\r\n\rdata: x\n\nid: 1\n\ndata\n\ndata: cut";
        let whole = read(&[text.as_bytes()]);
        let wanted = [("a", "é1\n2"), ("", "x"), ("", "")];
        let wanted = wanted.map(|(name, data)| SseEvent { name: name.into(), data: data.into() });
        assert_eq!(whole, wanted);
        for at in 0..text.len() {
            let (left, right) = text.as_bytes().split_at(at);
            assert_eq!(read(&[left, right]), whole, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }

    #[test]
    fn ids_and_waits_are_remembered() {
        let mut reader = SseReader::new(1000);
        reader.push(b"id: 1\nretry: 500\ndata: \n\nid: 2\nretry: soon\n\n").unwrap();
        assert_eq!((reader.last_id(), reader.retry()), (Some("2"), Some(Duration::from_millis(500))));
        reader.push(b"id: 3\ndata: cut o").unwrap();
        assert_eq!(reader.last_id(), Some("2"), "what did not come whole has not come");
        let mut reader = SseReader::new(1000);
        reader.push(b"retry: 99999999999\n").unwrap();
        assert_eq!(reader.retry(), Some(MAX_RETRY));
    }

    #[test]
    fn an_endless_line_and_endless_data_are_refused() {
        let mut reader = SseReader::new(100);
        assert!(reader.push(&[b'x'; 101]).is_err());
        let mut reader = SseReader::new(100);
        let error = (0..100).find_map(|_| reader.push(b"data: 0123456789\n").err()).unwrap();
        assert_eq!(error.to_string(), "an event of the stream is over 100 bytes");
        assert!(SseReader::new(100).push(b"data: \xff\n").is_err());
    }
}
