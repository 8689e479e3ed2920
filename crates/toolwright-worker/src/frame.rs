//! Messages on the wire: `u32` length of the header, `u32` number of attachments, the header as JSON, the
//! attachments. The header states the length of each attachment.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// What one side says to the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkerMessage {
    /// Parent to worker: do this.
    Call {
        /// What to do.
        operation: String,
        /// With what.
        arguments: Json,
    },
    /// Worker to parent: how far it is.
    Progress {
        /// What is done so far.
        done: u64,
        /// Of how much; 0 when unknown.
        total: u64,
    },
    /// Worker to parent: a part of the result.
    Output {
        /// The part.
        value: Json,
    },
    /// Worker to parent: a question, answered by an `answer`.
    Ask {
        /// The question.
        question: Json,
    },
    /// Parent to worker: the answer to its question.
    Answer {
        /// The answer.
        value: Json,
    },
    /// Worker to parent: the end of the call.
    Result {
        /// What came out.
        value: Json,
    },
    /// Worker to parent: the call failed.
    Error {
        /// Why.
        failure: Failure,
    },
    /// Parent to worker: stop.
    Cancel,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, as the operation names it.
    pub kind: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Bounds of a message, checked before it is read.
#[derive(Debug, Clone, Copy)]
pub struct FrameLimits {
    /// Bytes of the header.
    pub header: u32,
    /// Number of attachments.
    pub attachments: u32,
    /// Bytes of all attachments together.
    pub attached: u64,
}

impl Default for FrameLimits {
    fn default() -> Self {
        FrameLimits { header: 64 << 20, attachments: 4_096, attached: 512 << 20 }
    }
}

#[derive(Serialize)]
struct HeaderOut<'m> {
    #[serde(flatten)]
    message: &'m WorkerMessage,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<u64>,
}

#[derive(Deserialize)]
struct HeaderIn {
    #[serde(flatten)]
    message: WorkerMessage,
    #[serde(default)]
    attachments: Vec<u64>,
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

pub(crate) fn write(out: &mut impl Write, message: &WorkerMessage, attachments: &[&[u8]]) -> io::Result<()> {
    let lengths = attachments.iter().map(|attachment| attachment.len() as u64).collect();
    let header = serde_json::to_vec(&HeaderOut { message, attachments: lengths })?;
    let length = u32::try_from(header.len()).map_err(|_| invalid("the header of a message is too long"))?;
    let count =
        u32::try_from(attachments.len()).map_err(|_| invalid("a message has too many attachments"))?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(&count.to_be_bytes())?;
    out.write_all(&header)?;
    for attachment in attachments {
        out.write_all(attachment)?;
    }
    out.flush()
}

/// Reads a message; `None` when the other side has closed the connection between two.
pub(crate) fn read(
    input: &mut impl Read,
    limits: &FrameLimits,
) -> io::Result<Option<(WorkerMessage, Vec<Vec<u8>>)>> {
    let mut length = [0; 4];
    if !fill(input, &mut length)? {
        return Ok(None);
    }
    let mut count = [0; 4];
    input.read_exact(&mut count)?;
    let (length, count) = (u32::from_be_bytes(length), u32::from_be_bytes(count));
    if length > limits.header {
        return Err(invalid(format!(
            "the header of a message has {length} bytes; at most {} are read",
            limits.header
        )));
    }
    if count > limits.attachments {
        return Err(invalid(format!(
            "a message has {count} attachments; at most {} are read",
            limits.attachments
        )));
    }
    let mut header = vec![0; length as usize];
    input.read_exact(&mut header)?;
    let header: HeaderIn = serde_json::from_slice(&header)
        .map_err(|error| invalid(format!("the header of a message is wrong: {error}")))?;
    if header.attachments.len() != count as usize {
        return Err(invalid("a message states two numbers of attachments"));
    }
    let attached = header.attachments.iter().try_fold(0u64, |sum, length| sum.checked_add(*length));
    if attached.is_none_or(|attached| attached > limits.attached) {
        return Err(invalid(format!(
            "the attachments of a message have more than {} bytes",
            limits.attached
        )));
    }
    let mut attachments = Vec::with_capacity(header.attachments.len());
    for length in header.attachments {
        // What is stated is not allocated before it arrives.
        let mut attachment = Vec::new();
        input.by_ref().take(length).read_to_end(&mut attachment)?;
        if attachment.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        attachments.push(attachment);
    }
    Ok(Some((header.message, attachments)))
}

/// Fills a buffer; `false` when there is nothing at all.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::{FrameLimits, WorkerMessage, read, write};

    fn output() -> WorkerMessage {
        WorkerMessage::Output { value: serde_json::json!({"page": 1}) }
    }

    #[test]
    fn a_message_comes_out_as_it_went_in() {
        let mut wire = Vec::new();
        write(&mut wire, &output(), &[b"abc", b""]).expect("a buffer takes everything");
        write(&mut wire, &WorkerMessage::Cancel, &[]).expect("a buffer takes everything");
        let mut input = wire.as_slice();
        let limits = FrameLimits::default();
        assert_eq!(
            read(&mut input, &limits).ok().flatten(),
            Some((output(), vec![b"abc".to_vec(), Vec::new()]))
        );
        assert_eq!(read(&mut input, &limits).ok().flatten(), Some((WorkerMessage::Cancel, Vec::new())));
        assert!(read(&mut input, &limits).is_ok_and(|end| end.is_none()));
    }

    #[test]
    fn lengths_are_checked_before_anything_is_read() {
        let limits = FrameLimits { header: 100, attachments: 2, attached: 10 };
        let refused = |wire: &[u8]| {
            let error = read(&mut &*wire, &limits).expect_err("the message is refused");
            error.to_string()
        };
        assert_eq!(
            refused(&[255, 255, 255, 255, 0, 0, 0, 0]),
            "the header of a message has 4294967295 bytes; at most 100 are read"
        );
        assert_eq!(refused(&[0, 0, 0, 2, 0, 0, 0, 9]), "a message has 9 attachments; at most 2 are read");
        let mut wire = Vec::new();
        write(&mut wire, &WorkerMessage::Cancel, &[&[0; 20]]).expect("a buffer takes everything");
        assert_eq!(refused(&wire), "the attachments of a message have more than 10 bytes");
        wire.truncate(6);
        assert_eq!(
            read(&mut wire.as_slice(), &limits).map(|_| ()).map_err(|error| error.kind()),
            Err(std::io::ErrorKind::UnexpectedEof)
        );
    }
}
