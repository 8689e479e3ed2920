//! Frames between us and the worker: `u32` length of the header, `u32` number of attachments, the header as
//! JSON, the attachments. Every length is checked before anything is read.

use std::io;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest header: arguments and results as JSON are in it.
const MAX_HEADER: u32 = 64 << 20;
/// The most attachments of one frame.
const MAX_ATTACHMENTS: u32 = 1_024;
/// The most bytes of all attachments of one frame.
const MAX_ATTACHED: u64 = 128 << 20;

/// One frame of the worker.
#[derive(Debug)]
pub(crate) struct WorkerFrame {
    pub(crate) header: Value,
    pub(crate) attachments: Vec<Vec<u8>>,
}

#[derive(Deserialize)]
struct Lengths {
    #[serde(default)]
    attachments: Vec<u64>,
}

/// A frame as bytes.
pub(crate) fn encode(mut header: Value, attachments: &[&[u8]]) -> io::Result<Vec<u8>> {
    if !attachments.is_empty() {
        let lengths: Vec<usize> = attachments.iter().map(|attachment| attachment.len()).collect();
        if let Some(members) = header.as_object_mut() {
            members.insert("attachments".to_owned(), lengths.into());
        }
    }
    let header = serde_json::to_vec(&header)?;
    let too_long = |_| invalid("the arguments are too long to be sent".to_owned());
    let length = u32::try_from(header.len()).map_err(too_long)?;
    let count = u32::try_from(attachments.len()).map_err(too_long)?;
    let mut bytes = Vec::with_capacity(8 + header.len());
    bytes.extend(length.to_be_bytes());
    bytes.extend(count.to_be_bytes());
    bytes.extend(header);
    attachments.iter().for_each(|attachment| bytes.extend(*attachment));
    Ok(bytes)
}

/// Reads a frame; `None` when the worker closed the connection between two.
pub(crate) async fn read(input: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<WorkerFrame>> {
    let mut length = [0; 4];
    let first = input.read(&mut length).await?;
    if first == 0 {
        return Ok(None);
    }
    if let Some(rest) = length.get_mut(first..) {
        input.read_exact(rest).await?;
    }
    let (length, count) = (u32::from_be_bytes(length), input.read_u32().await?);
    if length > MAX_HEADER || count > MAX_ATTACHMENTS {
        return Err(invalid(format!(
            "a frame of {length} bytes and {count} attachments, more than {MAX_HEADER} and {MAX_ATTACHMENTS}"
        )));
    }
    let header = take(input, u64::from(length)).await?;
    let header: Value = serde_json::from_slice(&header).map_err(|error| invalid(error.to_string()))?;
    let Lengths { attachments: lengths } =
        Lengths::deserialize(&header).map_err(|error| invalid(error.to_string()))?;
    let sum = lengths.iter().try_fold(0u64, |sum, length| sum.checked_add(*length));
    if lengths.len() != count as usize || sum.is_none_or(|sum| sum > MAX_ATTACHED) {
        return Err(invalid("a frame whose attachments do not add up".to_owned()));
    }
    let mut attachments = Vec::with_capacity(lengths.len());
    for length in lengths {
        attachments.push(take(input, length).await?);
    }
    Ok(Some(WorkerFrame { header, attachments }))
}

/// Reads so many bytes; memory grows with what arrives, not with what is announced.
async fn take(input: &mut (impl AsyncRead + Unpin), length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_frame_comes_out_as_it_went_in() {
        let bytes = encode(json!({"type": "start"}), &[b"abc", b""]).unwrap();
        let mut input = bytes.as_slice();
        let frame = read(&mut input).await.unwrap().unwrap();
        assert_eq!(frame.header, json!({"type": "start", "attachments": [3, 0]}));
        assert_eq!(frame.attachments, [b"abc".to_vec(), Vec::new()]);
        assert!(read(&mut input).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn lengths_are_checked_before_anything_is_read() {
        for (bytes, kind) in [
            (vec![255, 255, 255, 255, 0, 0, 0, 0], io::ErrorKind::InvalidData),
            (vec![0, 0, 0, 2, 0, 1, 0, 0], io::ErrorKind::InvalidData),
            (vec![0, 0, 0, 2, 0, 0, 0, 1, b'{', b'}'], io::ErrorKind::InvalidData),
            (vec![0, 0, 0, 9, 0, 0, 0, 0, b'{', b'}'], io::ErrorKind::UnexpectedEof),
            (vec![0, 0, 0], io::ErrorKind::UnexpectedEof),
            (encode(json!({"attachments": [u64::MAX, 2]}), &[]).unwrap(), io::ErrorKind::InvalidData),
        ] {
            assert_eq!(read(&mut bytes.as_slice()).await.unwrap_err().kind(), kind, "{bytes:?}");
        }
    }
}
