//! A small client of D-Bus over any pair of streams: calls and their replies, nothing else. What comes from
//! the bus was written by programs of the sandbox, and is bounded while it is read.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// How long replies may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest message.
const MAX_MESSAGE: usize = 4 << 20;
/// How deep values may be nested.
const MAX_DEPTH: u32 = 16;
/// The most messages that are passed over while a reply is waited for.
const MAX_OTHERS: usize = 10_000;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BusError {
    /// The bus is gone, does not answer, or breaks its protocol.
    Lost(&'static str),
    /// The other side refused the call.
    Refused(String),
}

/// A value of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BusValue {
    Number(i64),
    Double(f64),
    Text(String),
    /// An array, a structure, or an entry of a map.
    List(Vec<BusValue>),
    Variant(Box<BusValue>),
}

impl BusValue {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            BusValue::Text(text) => Some(text),
            BusValue::Variant(inner) => inner.text(),
            _ => None,
        }
    }

    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            BusValue::Number(number) => Some(*number),
            BusValue::Variant(inner) => inner.number(),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> &[BusValue] {
        match self {
            BusValue::List(list) => list,
            BusValue::Variant(inner) => inner.list(),
            _ => &[],
        }
    }
}

/// A call of a method.
#[derive(Debug, Clone)]
pub(crate) struct BusCall<'a> {
    pub(crate) to: &'a str,
    pub(crate) path: &'a str,
    pub(crate) interface: &'static str,
    pub(crate) member: &'static str,
    pub(crate) arguments: Vec<Argument<'a>>,
}

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument<'a> {
    Text(&'a str),
    Int(i32),
    Uint(u32),
}

/// A connection to a bus.
pub(crate) struct Bus {
    /// Never locked: the mutex only makes streams that one owner uses part of something shared.
    streams: Mutex<BusStreams>,
    serial: u32,
}

struct BusStreams {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Bus {
    /// Signs in as the user with this number.
    pub(crate) async fn open(
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
        user: &str,
    ) -> Result<Bus, BusError> {
        let mut streams = BusStreams { reader, writer };
        let user: String = user.bytes().map(|byte| format!("{byte:02x}")).collect();
        let greeting = format!("\0AUTH EXTERNAL {user}\r\n");
        let signing_in = async {
            streams.writer.write_all(greeting.as_bytes()).await.ok()?;
            streams.writer.flush().await.ok()?;
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") && line.len() < 512 {
                line.push(streams.reader.read_u8().await.ok()?);
            }
            line.starts_with(b"OK ").then_some(())?;
            streams.writer.write_all(b"BEGIN\r\n").await.ok()
        };
        let signed_in = timeout(ANSWER_TIMEOUT, signing_in).await.ok().flatten();
        signed_in.ok_or(BusError::Lost("the bus refused the connection"))?;
        let mut bus = Bus { streams: Mutex::new(streams), serial: 0 };
        let hello = BusCall {
            to: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            member: "Hello",
            arguments: Vec::new(),
        };
        bus.call(&hello).await?;
        Ok(bus)
    }

    /// Calls one method.
    pub(crate) async fn call(&mut self, call: &BusCall<'_>) -> Result<Vec<BusValue>, BusError> {
        let mut replies = self.calls(std::slice::from_ref(call)).await?;
        replies.pop().unwrap_or(Err(BusError::Lost("no reply came")))
    }

    /// Calls several methods at once; replies are in the order of the calls.
    pub(crate) async fn calls(
        &mut self,
        calls: &[BusCall<'_>],
    ) -> Result<Vec<Result<Vec<BusValue>, BusError>>, BusError> {
        let first = self.serial.wrapping_add(1);
        let mut bytes = Vec::new();
        for call in calls {
            self.serial = self.serial.wrapping_add(1).max(1);
            encode(&mut bytes, self.serial, call);
        }
        let work = async {
            // The bus sends replies while we still write: reading and writing go on together.
            let streams = self.streams.get_mut().unwrap_or_else(PoisonError::into_inner);
            let BusStreams { reader, writer } = streams;
            let writing = async {
                writer.write_all(&bytes).await.map_err(|_| BusError::Lost("the bus is gone"))?;
                writer.flush().await.map_err(|_| BusError::Lost("the bus is gone"))
            };
            let reading = async {
                let mut replies: Vec<Option<Result<Vec<BusValue>, BusError>>> = vec![None; calls.len()];
                let mut left = calls.len();
                let mut others = 0;
                while left > 0 {
                    let message = read_message(reader).await?;
                    let at = message.reply_to.checked_sub(first).and_then(|at| usize::try_from(at).ok());
                    match at.and_then(|at| replies.get_mut(at)).filter(|reply| reply.is_none()) {
                        Some(reply) => {
                            *reply = Some(message.result);
                            left -= 1;
                        }
                        None if others == MAX_OTHERS => return Err(BusError::Lost("the bus sent too much")),
                        None => others += 1,
                    }
                }
                Ok(replies.into_iter().flatten().collect())
            };
            let (written, replies) = tokio::join!(writing, reading);
            written.and(replies)
        };
        timeout(ANSWER_TIMEOUT, work).await.unwrap_or(Err(BusError::Lost("the bus did not answer in 5 s")))
    }
}

fn pad(bytes: &mut Vec<u8>, start: usize, to: usize) {
    while !(bytes.len() - start).is_multiple_of(to) {
        bytes.push(0);
    }
}

fn put_text(bytes: &mut Vec<u8>, start: usize, text: &str) {
    pad(bytes, start, 4);
    bytes.extend(u32::try_from(text.len()).unwrap_or_default().to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.push(0);
}

fn put_signature(bytes: &mut Vec<u8>, signature: &str) {
    bytes.push(u8::try_from(signature.len()).unwrap_or_default());
    bytes.extend(signature.as_bytes());
    bytes.push(0);
}

/// Adds a call to what is sent.
fn encode(out: &mut Vec<u8>, serial: u32, call: &BusCall<'_>) {
    let mut body = Vec::new();
    let mut signature = String::new();
    for argument in &call.arguments {
        match argument {
            Argument::Text(text) => {
                signature.push('s');
                put_text(&mut body, 0, text);
            }
            Argument::Int(number) => {
                signature.push('i');
                pad(&mut body, 0, 4);
                body.extend(number.to_le_bytes());
            }
            Argument::Uint(number) => {
                signature.push('u');
                pad(&mut body, 0, 4);
                body.extend(number.to_le_bytes());
            }
        }
    }
    let mut fields = Vec::new();
    for (code, kind, value) in
        [(1, "o", call.path), (2, "s", call.interface), (3, "s", call.member), (6, "s", call.to)]
    {
        pad(&mut fields, 0, 8);
        fields.push(code);
        put_signature(&mut fields, kind);
        put_text(&mut fields, 0, value);
    }
    if !signature.is_empty() {
        pad(&mut fields, 0, 8);
        fields.push(8);
        put_signature(&mut fields, "g");
        put_signature(&mut fields, &signature);
    }
    let start = out.len();
    // Little-endian, a call, no flags, version 1.
    out.extend([b'l', 1, 0, 1]);
    out.extend(u32::try_from(body.len()).unwrap_or_default().to_le_bytes());
    out.extend(serial.to_le_bytes());
    out.extend(u32::try_from(fields.len()).unwrap_or_default().to_le_bytes());
    out.extend(fields);
    pad(out, start, 8);
    out.extend(body);
}

/// A message that came.
struct Message {
    /// The call that it answers; 0 for none.
    reply_to: u32,
    result: Result<Vec<BusValue>, BusError>,
}

async fn read_message(reader: &mut (dyn AsyncRead + Send + Unpin)) -> Result<Message, BusError> {
    let mut head = [0; 16];
    reader.read_exact(&mut head).await.map_err(|_| BusError::Lost("the bus is gone"))?;
    let [order, kind, _, _, b0, b1, b2, b3, _, _, _, _, f0, f1, f2, f3] = head;
    if order != b'l' {
        return Err(BusError::Lost("a message in another byte order"));
    }
    let length = |bytes: [u8; 4]| usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX);
    let (body, fields) = (length([b0, b1, b2, b3]), length([f0, f1, f2, f3]));
    if body > MAX_MESSAGE || fields > MAX_MESSAGE {
        return Err(BusError::Lost("a message that is too large"));
    }
    let padded = fields.next_multiple_of(8);
    let mut rest = vec![0; padded + body];
    reader.read_exact(&mut rest).await.map_err(|_| BusError::Lost("the bus is gone"))?;
    let (fields, body) = (rest.get(..fields).unwrap_or_default(), rest.get(padded..).unwrap_or_default());
    let broken = || BusError::Lost("a message that cannot be read");
    let (mut reply_to, mut signature, mut error) = (0, String::new(), None);
    // The fields start at byte 16, which is aligned like 0.
    let mut reader = ValueReader { bytes: fields, at: 0 };
    while reader.at < fields.len() {
        let field = reader.value(b"(yv)", 0).ok_or_else(broken)?.0;
        let [code, value] = field.list() else { return Err(broken()) };
        match code.number() {
            Some(4) => error = value.text().map(str::to_owned),
            Some(5) => {
                reply_to = value.number().and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
            }
            Some(8) => signature = value.text().unwrap_or_default().to_owned(),
            _ => {}
        }
    }
    if !matches!(kind, 2 | 3) {
        return Ok(Message { reply_to: 0, result: Ok(Vec::new()) });
    }
    let mut reader = ValueReader { bytes: body, at: 0 };
    let mut values = Vec::new();
    let mut types = signature.as_bytes();
    while !types.is_empty() {
        let (value, left) = reader.value(types, 0).ok_or_else(broken)?;
        values.push(value);
        types = left;
    }
    let result = match (kind, error) {
        (2, _) => Ok(values),
        (_, name) => {
            let words = values.first().and_then(BusValue::text).unwrap_or_default();
            Err(BusError::Refused(format!("{}: {words}", name.unwrap_or_default())))
        }
    };
    Ok(Message { reply_to, result })
}

/// Reads values as a signature says. Each value takes at least a byte, so a message bounds how many there
/// are.
struct ValueReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ValueReader<'a> {
    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.align(N);
        self.take(N)?.try_into().ok()
    }

    fn string(&mut self, length: usize) -> Option<String> {
        let text = std::str::from_utf8(self.take(length)?).ok()?.to_owned();
        self.take(1)?;
        Some(text)
    }

    /// The value of the first type, and the types after it.
    fn value<'s>(&mut self, types: &'s [u8], depth: u32) -> Option<(BusValue, &'s [u8])> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (kind, rest) = types.split_first()?;
        let value = match kind {
            b'y' => BusValue::Number(i64::from(*self.take(1)?.first()?)),
            b'b' | b'u' | b'h' => BusValue::Number(i64::from(u32::from_le_bytes(self.fixed()?))),
            b'n' => BusValue::Number(i64::from(i16::from_le_bytes(self.fixed()?))),
            b'q' => BusValue::Number(i64::from(u16::from_le_bytes(self.fixed()?))),
            b'i' => BusValue::Number(i64::from(i32::from_le_bytes(self.fixed()?))),
            b'x' | b't' => BusValue::Number(i64::from_le_bytes(self.fixed()?)),
            b'd' => BusValue::Double(f64::from_le_bytes(self.fixed()?)),
            b's' | b'o' => {
                let length = usize::try_from(u32::from_le_bytes(self.fixed()?)).ok()?;
                BusValue::Text(self.string(length)?)
            }
            b'g' => {
                let length = usize::from(*self.take(1)?.first()?);
                BusValue::Text(self.string(length)?)
            }
            b'v' => {
                let length = usize::from(*self.take(1)?.first()?);
                let signature = self.string(length)?;
                let (value, left) = self.value(signature.as_bytes(), depth + 1)?;
                left.is_empty().then_some(())?;
                BusValue::Variant(Box::new(value))
            }
            b'a' => {
                let element = rest.get(..length_of(rest, 0)?)?;
                let length = usize::try_from(u32::from_le_bytes(self.fixed()?)).ok()?;
                self.align(match element.first()? {
                    b'(' | b'{' | b'x' | b't' | b'd' => 8,
                    _ => 1,
                });
                let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len())?;
                let mut list = Vec::new();
                while self.at < end {
                    list.push(self.value(element, depth + 1)?.0);
                }
                return Some((BusValue::List(list), rest.get(element.len()..)?));
            }
            b'(' | b'{' => {
                self.align(8);
                let close = if *kind == b'(' { b')' } else { b'}' };
                let mut list = Vec::new();
                let mut types = rest;
                while types.first()? != &close {
                    let (value, left) = self.value(types, depth + 1)?;
                    list.push(value);
                    types = left;
                }
                (!list.is_empty()).then_some(())?;
                return Some((BusValue::List(list), types.get(1..)?));
            }
            _ => return None,
        };
        Some((value, rest))
    }
}

/// How long the first complete type is.
fn length_of(types: &[u8], depth: u32) -> Option<usize> {
    if depth > MAX_DEPTH {
        return None;
    }
    match types.first()? {
        b'a' => Some(1 + length_of(types.get(1..)?, depth + 1)?),
        open @ (b'(' | b'{') => {
            let close = if *open == b'(' { &b')' } else { &b'}' };
            let mut at = 1;
            while types.get(at)? != close {
                at += length_of(types.get(at..)?, depth + 1)?;
            }
            Some(at + 1)
        }
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(types: &str, bytes: &[u8]) -> Option<BusValue> {
        let mut reader = ValueReader { bytes, at: 0 };
        reader.value(types.as_bytes(), 0).map(|(value, _)| value)
    }

    #[test]
    fn values_are_read_as_the_specification_lays_them_out() {
        let mut bytes = Vec::new();
        put_text(&mut bytes, 0, "hi");
        assert_eq!(read("s", &bytes), Some(BusValue::Text("hi".to_owned())));
        // An array of one structure of a number and an object path.
        let mut bytes = vec![10, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0];
        put_text(&mut bytes, 0, "/");
        let structure = BusValue::List(vec![BusValue::Number(7), BusValue::Text("/".to_owned())]);
        assert_eq!(read("a(uo)", &bytes), Some(BusValue::List(vec![structure])));
        assert_eq!(
            read("v", &[1, b'n', 0, 0, 0xff, 0xff]),
            Some(BusValue::Variant(Box::new(BusValue::Number(-1))))
        );
    }

    #[test]
    fn nothing_that_is_sent_makes_the_reader_panic_or_grow() {
        let deep = "a".repeat(300);
        for types in ["s", "a(uo)", "a{sv}", "v", "a()", "()", "a", "(", &deep, "a{s", "z"] {
            for length in 0..40 {
                for byte in [0, 1, 8, 40, 97, 118, 255] {
                    let _ = read(types, &vec![byte; length]);
                }
            }
        }
        assert_eq!(
            read("a()", &[8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            None,
            "it would never end"
        );
    }

    #[tokio::test]
    async fn calls_are_answered_in_their_order_whatever_comes_between() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(ours);
        let streams = BusStreams { reader: Box::new(reader), writer: Box::new(writer) };
        let mut bus = Bus { streams: Mutex::new(streams), serial: 0 };
        let call = BusCall {
            to: "a.b",
            path: "/",
            interface: "a.b",
            member: "C",
            arguments: vec![Argument::Uint(1)],
        };
        let reply = |to: u32, number: u32| {
            let mut fields = vec![5, 1, b'u', 0];
            fields.extend(to.to_le_bytes());
            fields.extend([8, 1, b'g', 0, 1, b'u', 0]);
            let mut bytes = vec![b'l', 2, 0, 1, 4, 0, 0, 0, 9, 0, 0, 0];
            bytes.extend(u32::try_from(fields.len()).unwrap().to_le_bytes());
            bytes.extend(fields);
            pad(&mut bytes, 0, 8);
            bytes.extend(number.to_le_bytes());
            bytes
        };
        let answers = [reply(2, 22), reply(99, 0), reply(1, 11)].concat();
        theirs.write_all(&answers).await.unwrap();
        let replies = bus.calls(&[call.clone(), call]).await.unwrap();
        assert_eq!(replies, [Ok(vec![BusValue::Number(11)]), Ok(vec![BusValue::Number(22)])]);
        theirs.write_all(&[b'l', 2, 0, 1, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let call = BusCall { to: "a.b", path: "/", interface: "a.b", member: "C", arguments: Vec::new() };
        assert_eq!(bus.call(&call).await, Err(BusError::Lost("a message that is too large")));
    }
}
