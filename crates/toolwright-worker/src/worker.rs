//! The side of the worker: it takes a call from its standard input, which is a socket, and answers on it.

use std::fs::File;
use std::io::{self, BufWriter, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use serde_json::Value as Json;

use crate::frame::{self, Failure, FrameLimits, WorkerMessage};

/// The connection of a worker to its parent.
pub struct Connection {
    input: UnixStream,
    output: BufWriter<UnixStream>,
}

impl Connection {
    /// Takes the connection from the standard input of this process.
    pub fn from_stdin() -> io::Result<Self> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Connection { input: socket.try_clone()?, output: BufWriter::with_capacity(64 << 10, socket) })
    }

    /// Takes the call: what to do, with what, and on which files.
    pub fn call(&mut self) -> io::Result<(String, Json, Vec<File>)> {
        self.call_with_bytes().map(|(operation, arguments, files, _)| (operation, arguments, files))
    }

    /// Takes the call: what to do, with what, on which files, and on which bytes.
    #[expect(clippy::type_complexity, reason = "the parts of a call, taken apart at once")]
    pub fn call_with_bytes(&mut self) -> io::Result<(String, Json, Vec<File>, Vec<Vec<u8>>)> {
        let mut count = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let read =
            rustix::net::recvmsg(&self.input, &mut [IoSliceMut::new(&mut count)], &mut ancillary, flags)?;
        let files: Vec<File> = ancillary
            .drain()
            .flat_map(|message| match message {
                RecvAncillaryMessage::ScmRights(handles) => handles.collect::<Vec<OwnedFd>>(),
                _ => Vec::new(),
            })
            .map(File::from)
            .collect();
        if read.bytes != 1 || files.len() != usize::from(count[0]) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "this process was not started as a worker",
            ));
        }
        match frame::read(&mut self.input, &FrameLimits::default())? {
            Some((WorkerMessage::Call { operation, arguments }, bytes)) => {
                Ok((operation, arguments, files, bytes))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "expected a call")),
        }
    }

    /// Says how far the work is.
    pub fn progress(&mut self, done: u64, total: u64) -> io::Result<()> {
        frame::write(&mut self.output, &WorkerMessage::Progress { done, total }, &[])
    }

    /// Hands over a part of the result.
    pub fn output(&mut self, value: Json, attachments: &[&[u8]]) -> io::Result<()> {
        frame::write(&mut self.output, &WorkerMessage::Output { value }, attachments)
    }

    /// Asks the parent something and waits for the answer.
    pub fn ask(&mut self, question: Json) -> io::Result<Json> {
        frame::write(&mut self.output, &WorkerMessage::Ask { question }, &[])?;
        match frame::read(&mut self.input, &FrameLimits::default())? {
            Some((WorkerMessage::Answer { value }, _)) => Ok(value),
            _ => Err(io::ErrorKind::Interrupted.into()),
        }
    }

    /// Ends the call with its result.
    pub fn result(mut self, value: Json) -> io::Result<()> {
        frame::write(&mut self.output, &WorkerMessage::Result { value }, &[])
    }

    /// Ends the call with a failure.
    pub fn error(mut self, failure: Failure) -> io::Result<()> {
        frame::write(&mut self.output, &WorkerMessage::Error { failure }, &[])
    }
}
