//! A request on its way to its answer.
//!
//! The answer is plain JSON when it comes soon and alone. When there is something to say before, or it takes
//! long, it becomes a stream of events.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use tokio::sync::{mpsc, oneshot};
use toolwright_core::CancelToken;

use super::body::{self, ResponseBody};
use super::responses::{HttpResponse, error, events, status_of, whole};
use super::sessions::HttpSession;
use super::stream::{EventStream, SIGN_OF_LIFE};
use crate::jsonrpc::{BUSY, INVALID_REQUEST, Id, RpcError};
use crate::server::response::Response;
use crate::server::{ClientSender, Era};

/// An answer that takes longer than this becomes a stream, so that nothing on the way takes it for dead.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request that is being worked on.
pub(super) struct Exchange {
    pub(super) id: Id,
    pub(super) era: Era,
    /// What is said before the answer.
    pub(super) written: mpsc::Receiver<Vec<u8>>,
    pub(super) sender: ClientSender,
    /// Holds the session open while its request is worked on.
    pub(super) keep: Option<Arc<HttpSession>>,
    pub(super) may_stream: bool,
    /// Fires when the server ends without waiting for the answer.
    pub(super) stop: CancelToken,
}

pub(super) enum Begun {
    Answer(HttpResponse),
    Stream(Box<Exchange>, oneshot::Receiver<Response>, Option<Vec<u8>>),
}

/// Why a request was given up that its client still waits for.
enum GivenUp {
    ServerEnded,
    SessionEnded,
}

impl GivenUp {
    fn problem(&self) -> RpcError {
        match self {
            GivenUp::ServerEnded => RpcError::new(BUSY, "the server ended before the call did; try again"),
            GivenUp::SessionEnded => {
                RpcError::new(INVALID_REQUEST, "the session ended before the call did; begin a new one")
            }
        }
    }
}

impl Exchange {
    /// Works until there is an answer, or something to be said before it.
    pub(super) async fn begin(mut self, work: impl Future<Output = Response> + Send + 'static) -> Begun {
        let mut work = Box::pin(work);
        let first = std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
        if let Poll::Ready(response) = first {
            return Begun::Answer(self.answer_now(response));
        }
        let (done, mut response) = oneshot::channel();
        tokio::spawn(async move {
            let _ = done.send(work.await);
        });
        loop {
            tokio::select! {
                biased;
                response = &mut response => return Begun::Answer(self.answer_now(response.unwrap_or_default())),
                Some(first) = self.written.recv() => {
                    if self.may_stream {
                        return Begun::Stream(Box::new(self), response, Some(first));
                    }
                }
                () = self.sender.hang_up.cancelled(), if self.may_stream => {
                    return Begun::Stream(Box::new(self), response, None);
                }
                () = tokio::time::sleep(PATIENCE), if self.may_stream => {
                    return Begun::Stream(Box::new(self), response, None);
                }
            }
        }
    }

    /// The whole answer, with what was said on the way.
    fn answer_now(&mut self, response: Response) -> HttpResponse {
        let status = status_of(&response, self.era);
        let Some(last) = response.into_line(&self.id) else {
            match self.given_up() {
                Some(GivenUp::ServerEnded) => {
                    let problem = GivenUp::ServerEnded.problem();
                    return error(StatusCode::SERVICE_UNAVAILABLE, Some(&self.id), problem);
                }
                // Not 404, which says that the session is gone and the request was never looked at: clients
                // would make a call again that has begun.
                Some(GivenUp::SessionEnded) => {
                    return error(StatusCode::OK, Some(&self.id), GivenUp::SessionEnded.problem());
                }
                None => {}
            }
            // A cancelled call needs no answer, but HTTP does; this one is empty.
            return whole(StatusCode::ACCEPTED, "text/plain", "");
        };
        let mut said: Vec<u8> = Vec::new();
        while let Ok(message) = self.written.try_recv() {
            said.extend_from_slice(&body::event(&message, None));
        }
        if said.is_empty() || !self.may_stream {
            return whole(status, "application/json", last);
        }
        said.extend_from_slice(&body::event(&last, None));
        events(ResponseBody::Whole(Some(said.into())))
    }

    /// Why there is no answer, when it is not the client that wanted none.
    fn given_up(&self) -> Option<GivenUp> {
        let session_ended = || self.keep.as_ref().is_some_and(|keep| keep.session.ended.is_cancelled());
        match self.stop.is_cancelled() {
            true => Some(GivenUp::ServerEnded),
            false => session_ended().then_some(GivenUp::SessionEnded),
        }
    }

    /// The last message of a stream; `None` for a cancelled call.
    fn last(&self, response: Response) -> Option<Vec<u8>> {
        let given_up = || self.given_up().map_or(Response::Cancelled, |given_up| given_up.problem().into());
        response.or_else(given_up).into_line(&self.id)
    }

    /// Sends everything on until the answer is out, or nobody reads any more.
    pub(super) async fn pump(
        &mut self,
        mut response: oneshot::Receiver<Response>,
        first: Option<Vec<u8>>,
        frames: mpsc::Sender<Bytes>,
    ) {
        let mut next = first.map(|message| body::event(&message, None));
        loop {
            if let Some(frame) = next.take()
                && frames.send(frame).await.is_err()
            {
                return;
            }
            next = tokio::select! {
                biased;
                Some(message) = self.written.recv() => Some(body::event(&message, None)),
                response = &mut response => {
                    let last = self.last(response.unwrap_or_default());
                    while let Ok(message) = self.written.try_recv() {
                        let _ = frames.send(body::event(&message, None)).await;
                    }
                    if let Some(last) = last {
                        let _ = frames.send(body::event(&last, None)).await;
                    }
                    return;
                }
                () = tokio::time::sleep(SIGN_OF_LIFE) => Some(body::sign_of_life()),
                () = frames.closed() => return,
            };
        }
    }

    /// Keeps everything on a stream until the answer is there, whether anybody reads or not.
    pub(super) async fn keep(
        &mut self,
        mut response: oneshot::Receiver<Response>,
        first: Option<Vec<u8>>,
        stream: &EventStream,
    ) {
        if let Some(first) = first {
            stream.push(&first);
        }
        loop {
            tokio::select! {
                biased;
                Some(message) = self.written.recv() => stream.push(&message),
                response = &mut response => {
                    while let Ok(message) = self.written.try_recv() {
                        stream.push(&message);
                    }
                    if let Some(last) = self.last(response.unwrap_or_default()) {
                        stream.push(&last);
                    }
                    break;
                }
            }
        }
        stream.finish();
        self.keep = None;
    }
}
