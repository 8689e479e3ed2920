//! The bodies of answers: a whole one, or events as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

/// The body of an answer.
pub(super) enum ResponseBody {
    Whole(Option<Bytes>),
    Events {
        frames: mpsc::Receiver<Bytes>,
        /// Says that nobody reads any more, when that matters.
        _gone: Option<DropGuard>,
    },
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            ResponseBody::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            ResponseBody::Events { frames, .. } => {
                frames.poll_recv(context).map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ResponseBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            ResponseBody::Events { .. } => SizeHint::default(),
        }
    }
}

/// A message as an event. A message is one line, and ends with its line end.
pub(super) fn event(message: &[u8], id: Option<&str>) -> Bytes {
    let mut event = Vec::with_capacity(message.len() + 64);
    if let Some(id) = id {
        event.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    event.extend_from_slice(b"event: message\ndata: ");
    event.extend_from_slice(message);
    if !message.ends_with(b"\n") {
        event.push(b'\n');
    }
    event.push(b'\n');
    event.into()
}

/// The event without content that tells a client from where to go on.
pub(super) fn priming(id: &str, retry: u32) -> Bytes {
    format!("id: {id}\nretry: {retry}\ndata: \n\n").into()
}

/// Something that means nothing, so that the connection is not taken for dead.
pub(super) fn sign_of_life() -> Bytes {
    Bytes::from_static(b": \n\n")
}
