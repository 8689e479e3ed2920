//! Frames of Amazon's event streams out of bytes, wherever the bytes are cut.
//!
//! A frame is: its length, the length of its headers, a checksum of those two, the headers, the payload, and
//! a checksum of everything before. A wrong checksum ends the stream: nothing after it can be trusted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use toolwright_core::{ModelError, ModelErrorKind};

use crate::error;
use toolwright_net::SseEvent;

/// The two lengths and their checksum.
const PRELUDE: usize = 12;

/// The most bytes of headers, as in Amazon's own clients.
const MAX_HEADERS: usize = 128 << 10;

/// One frame.
#[derive(Debug, Clone, PartialEq)]
pub struct EventFrame {
    /// Its headers: texts, numbers and truth values; bytes are base64.
    pub headers: Map<String, Value>,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// Reads frames from chunks of bytes.
#[derive(Debug)]
pub struct EventStreamReader {
    max_frame: usize,
    buffer: Vec<u8>,
}

impl EventStreamReader {
    /// A reader that refuses frames of more than `max_frame` bytes.
    pub fn new(max_frame: usize) -> Self {
        EventStreamReader { max_frame, buffer: Vec::new() }
    }

    /// Takes the next bytes and gives the frames they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<EventFrame>, ModelError> {
        self.buffer.extend_from_slice(bytes);
        let mut frames = Vec::new();
        let mut rest = self.buffer.as_slice();
        while let Some(length) = frame_length(rest, self.max_frame)? {
            let Some((frame, after)) = rest.split_at_checked(length) else { break };
            frames.push(read_frame(frame)?);
            rest = after;
        }
        let done = self.buffer.len() - rest.len();
        self.buffer.drain(..done);
        Ok(frames)
    }

    /// True when the bytes so far end inside a frame.
    pub fn in_frame(&self) -> bool {
        !self.buffer.is_empty()
    }
}

impl EventFrame {
    /// The frame as an event. One that reports a failure is an error; a `chunk` is what it wraps; every other
    /// is an object with its type as the only key.
    pub(crate) fn into_event(self) -> Result<SseEvent, ModelError> {
        let word = |name: &str| self.headers.get(name).and_then(Value::as_str).unwrap_or_default();
        let payload = || {
            std::str::from_utf8(&self.payload)
                .map_err(|cause| error::reply("a frame of the stream is not text").with_source(cause))
        };
        match word(":message-type") {
            "exception" => return Err(failure(word(":exception-type"), payload()?)),
            "error" => return Err(failure(word(":error-code"), word(":error-message"))),
            _ => {}
        }
        let name = word(":event-type").to_owned();
        let data = if name == "chunk" {
            let chunk: Value = serde_json::from_slice(&self.payload)
                .map_err(|cause| error::reply("a frame of the stream is not JSON").with_source(cause))?;
            let bytes = chunk.get("bytes").and_then(Value::as_str).unwrap_or_default();
            let bytes = STANDARD.decode(bytes).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            bytes.ok_or_else(|| error::reply("a frame of the stream does not hold text"))?
        } else {
            format!("{{{}:{}}}", Value::from(name.as_str()), payload()?)
        };
        Ok(SseEvent { name, data })
    }
}

/// The length of the frame that starts here, once it is known.
fn frame_length(bytes: &[u8], most: usize) -> Result<Option<usize>, ModelError> {
    let Some(prelude) = bytes.get(..PRELUDE) else { return Ok(None) };
    let (lengths, checksum) = prelude.split_at(8);
    if number(checksum) != crc32(lengths) {
        return Err(error::reply("the stream is damaged: a checksum is wrong"));
    }
    let (total, headers) = lengths.split_at(4);
    let (total, headers) = (number(total) as usize, number(headers) as usize);
    if total > most {
        return Err(error::reply(format!("an event of the stream is over {most} bytes")));
    }
    if headers > MAX_HEADERS || headers + PRELUDE + 4 > total {
        return Err(error::reply("the stream is damaged: a length is wrong"));
    }
    Ok(Some(total))
}

/// Reads a frame whose lengths are known to be good.
fn read_frame(frame: &[u8]) -> Result<EventFrame, ModelError> {
    let damaged = || error::reply("the stream is damaged: a frame is cut short");
    let (content, checksum) = frame.split_last_chunk::<4>().ok_or_else(damaged)?;
    if u32::from_be_bytes(*checksum) != crc32(content) {
        return Err(error::reply("the stream is damaged: a checksum is wrong"));
    }
    let headers = number(content.get(4..8).ok_or_else(damaged)?) as usize;
    let (headers, payload) =
        content.get(PRELUDE..).and_then(|rest| rest.split_at_checked(headers)).ok_or_else(damaged)?;
    let headers =
        read_headers(headers).ok_or_else(|| error::reply("the stream is damaged: a header is wrong"))?;
    Ok(EventFrame { headers, payload: payload.to_vec() })
}

/// Reads headers; `None` when they are damaged or one comes twice.
fn read_headers(mut rest: &[u8]) -> Option<Map<String, Value>> {
    let mut headers = Map::new();
    while let Some((length, after)) = rest.split_first() {
        let (name, after) = after.split_at_checked(usize::from(*length))?;
        let name = std::str::from_utf8(name).ok()?;
        let (kind, after) = after.split_first()?;
        let fixed = |length: usize| after.split_at_checked(length);
        let sized = || {
            let (length, after) = after.split_first_chunk::<2>()?;
            after.split_at_checked(usize::from(u16::from_be_bytes(*length)))
        };
        let (value, after) = match kind {
            0 => (true.into(), after),
            1 => (false.into(), after),
            2 => fixed(1).map(|(bytes, after)| (signed(bytes), after))?,
            3 => fixed(2).map(|(bytes, after)| (signed(bytes), after))?,
            4 => fixed(4).map(|(bytes, after)| (signed(bytes), after))?,
            5 | 8 => fixed(8).map(|(bytes, after)| (signed(bytes), after))?,
            6 => sized().map(|(bytes, after)| (STANDARD.encode(bytes).into(), after))?,
            7 => {
                let (bytes, after) = sized()?;
                (std::str::from_utf8(bytes).ok()?.into(), after)
            }
            9 => fixed(16).map(|(bytes, after)| (STANDARD.encode(bytes).into(), after))?,
            _ => return None,
        };
        if headers.insert(name.to_owned(), value).is_some() {
            return None;
        }
        rest = after;
    }
    Some(headers)
}

/// An unsigned number, most significant byte first.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

/// A signed number of up to eight bytes, most significant byte first.
fn signed(bytes: &[u8]) -> Value {
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let start = if negative { -1_i64 } else { 0 };
    bytes.iter().fold(start, |number, byte| (number << 8) | i64::from(*byte)).into()
}

/// What a reported failure means.
fn failure(kind: &str, payload: &str) -> ModelError {
    let said = serde_json::from_str::<Value>(payload).ok();
    let said = said.as_ref().and_then(|said| said.get("message").or_else(|| said.get("Message"))?.as_str());
    let said = error::shown(said.unwrap_or(payload), &[]);
    let text = format!("the server reported an error: {said} ({})", error::shown(kind, &[]));
    let kind = error::aws_kind(kind).unwrap_or(ModelErrorKind::Unavailable);
    ModelError::new(error::or_overflow(kind, &said), text)
}

/// The checksum of IEEE 802.3.
pub fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        let at = usize::from((crc ^ u32::from(*byte)) as u8);
        (crc >> 8) ^ TABLE.get(at).copied().unwrap_or_default()
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[expect(clippy::indexing_slicing, reason = "worked out while compiling; the index ends at 256")]
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    fn frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
        let total = u32::try_from(PRELUDE + headers.len() + payload.len() + 4).unwrap();
        let mut bytes = [total.to_be_bytes(), u32::try_from(headers.len()).unwrap().to_be_bytes()].concat();
        bytes.extend(crc32(&bytes).to_be_bytes());
        bytes.extend_from_slice(headers);
        bytes.extend_from_slice(payload);
        bytes.extend(crc32(&bytes).to_be_bytes());
        bytes
    }

    #[test]
    fn every_kind_of_header_is_read() {
        let headers = [
            b"\x01a\x00\x01b\x01\x01c\x02\xff\x01d\x03\x00\x02\x01e\x04\xff\xff\xff\xfe".as_slice(),
            b"\x01f\x05\x00\x00\x00\x00\x00\x00\x01\x00\x01g\x06\x00\x02hi\x01h\x07\x00\x02hi",
            b"\x01i\x08\x00\x00\x00\x00\x00\x00\x00\x05\x01j\x090123456789abcdef",
        ];
        let frames = EventStreamReader::new(1000).push(&frame(&headers.concat(), b"x")).unwrap();
        let wanted = serde_json::json!({"a": true, "b": false, "c": -1, "d": 2, "e": -2, "f": 256, "g": "aGk=",
            "h": "hi", "i": 5, "j": "MDEyMzQ1Njc4OWFiY2RlZg=="});
        assert_eq!((Value::from(frames[0].headers.clone()), &*frames[0].payload), (wanted, b"x".as_slice()));
    }

    #[test]
    fn the_same_frames_come_wherever_the_bytes_are_cut_and_damage_is_seen_anywhere() {
        let bytes = [frame(b"\x01h\x07\x00\x02hi", b"one"), frame(b"", b""), frame(b"", b"three")].concat();
        let whole = EventStreamReader::new(100).push(&bytes).unwrap();
        assert_eq!(whole.len(), 3);
        for at in 0..bytes.len() {
            let mut reader = EventStreamReader::new(100);
            let mut frames = reader.push(&bytes[..at]).unwrap();
            frames.extend(reader.push(&bytes[at..]).unwrap());
            assert_eq!((frames, reader.in_frame()), (whole.clone(), false), "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let read = EventStreamReader::new(100).push(&damaged);
            assert!(read.is_err(), "damaged at {at}: {read:?}");
        }
    }

    #[test]
    fn bad_headers_and_lengths_are_refused_before_anything_is_kept() {
        for headers in [
            b"\x05ab".as_slice(),
            b"\x01a\x0a",
            b"\x01a\x07\x00\xffx",
            b"\x01a\x00\x01a\x00",
            b"\x01\xff\x00",
        ] {
            assert!(EventStreamReader::new(1000).push(&frame(headers, b"")).is_err(), "{headers:?}");
        }
        for lengths in [[0_u32, 0], [15, 0], [16, 1], [1 << 20, 1 << 19], [u32::MAX, 0]] {
            let mut bytes = lengths.map(u32::to_be_bytes).concat();
            bytes.extend(crc32(&bytes).to_be_bytes());
            assert!(EventStreamReader::new(2 << 20).push(&bytes).is_err(), "{lengths:?}");
        }
        let error = EventStreamReader::new(100).push(&frame(b"", &[0; 100])).unwrap_err();
        assert_eq!(error.to_string(), "an event of the stream is over 100 bytes");
    }
}
