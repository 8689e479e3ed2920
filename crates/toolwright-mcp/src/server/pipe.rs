//! One client over two streams: a message per line, in either era.

use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::answer::introduction;
use super::session::{Session, UnderWay};
use super::{Audience, CANCEL_GRACE, Era, Inner, Outcome, Outlet, Request, hub};
use crate::jsonrpc::{self, BUSY, INTERNAL_ERROR, INVALID_REQUEST, Id, Message, PARSE_ERROR, RpcError};
use crate::protocol::{LATEST_SESSION_VERSION, VERSION_KEY};
use crate::transport::lines::{Beside, Line, LineReader, write_lines_and};

pub(super) async fn serve(
    server: &Arc<Inner>,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<()> {
    let (out, lines) = mpsc::channel(256);
    // Reading and writing share one task, so that an answer goes out without waking another thread.
    let beside = Beside::default();
    let mut writer = std::pin::pin!(write_lines_and(lines, &beside, output));
    let session = Arc::new(Session::new());
    let _end = session.ended.clone().drop_guard();
    let telling = {
        let (changes, session, out) = (server.hub.subscribe(), session.clone(), out.clone());
        tokio::spawn(async move { hub::tell_session(changes, &session, &out).await })
    };
    let pipe = Pipe { server: server.clone(), session: session.clone(), out, beside: &beside };
    let read = tokio::select! {
        // The writer comes second, so that it finds what was put beside.
        biased;
        read = pipe.read_all(input) => read,
        // The client no longer reads, so nobody waits for the calls either.
        written = &mut writer => return written,
    };
    // What was asked is answered by nobody: whoever waits for that need not wait for the calls to be stopped.
    session.silent.cancel();
    let ending = async {
        if tokio::time::timeout(server.drain, session.idle()).await.is_err() {
            session.ended.cancel();
            let _ = tokio::time::timeout(CANCEL_GRACE * 2, session.idle()).await;
        }
        session.ended.cancel();
        // It may be in the middle of telling a client that does not read.
        telling.abort();
        drop(pipe);
    };
    tokio::select! {
        () = ending => {}
        _ = &mut writer => return read,
    }
    let _ = tokio::time::timeout(server.drain, writer).await;
    read
}

struct Pipe<'p> {
    server: Arc<Inner>,
    session: Arc<Session>,
    out: mpsc::Sender<Vec<u8>>,
    /// Where answers go that are there at once.
    beside: &'p Beside,
}

impl Pipe<'_> {
    async fn read_all(&self, input: impl AsyncRead + Unpin) -> std::io::Result<()> {
        let mut lines = LineReader::new(input, jsonrpc::MAX_MESSAGE_BYTES);
        loop {
            let message = match lines.next().await? {
                Line::End => return Ok(()),
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Line::Whole(line) => jsonrpc::parse(line),
                Line::TooLong => {
                    let most = jsonrpc::MAX_MESSAGE_BYTES;
                    let problem = format!("a message has at most {most} bytes");
                    Err(jsonrpc::Malformed { code: PARSE_ERROR, problem, id: None })
                }
            };
            let reply = match message {
                // A client that waits for each answer gets it without a detour; one that sends many requests gets
                // them worked on side by side.
                Ok(message) => self.take(message, !lines.has_more()).await,
                Err(malformed) => {
                    let error = RpcError::new(malformed.code, malformed.problem);
                    Some(jsonrpc::response(malformed.id.as_ref(), Err(error)))
                }
            };
            let Some(reply) = reply else { continue };
            // What was said before it, such as the progress of a call, goes out before it.
            let put = match self.out.capacity() == self.out.max_capacity() {
                true => self.beside.put(reply),
                false => Err(reply),
            };
            if let Err(reply) = put
                && self.out.send(reply).await.is_err()
            {
                return Ok(());
            }
        }
    }

    /// Deals with one message; what takes time goes on by itself.
    async fn take(&self, message: Message, at_once: bool) -> Option<Vec<u8>> {
        match message {
            Message::Request { id, method, params } => {
                let outcome = match self.begin(&id, &method, &params) {
                    Ok(Begun::Answered(result)) => Ok(result),
                    Ok(Begun::Request(request, under_way)) => {
                        return self.work(*request, under_way, method, params, at_once).await;
                    }
                    Err(error) => Err(error),
                };
                Some(jsonrpc::response(Some(&id), outcome))
            }
            Message::Notification { method, params } => {
                self.session.notified(&method, &params);
                None
            }
            Message::Response { id, outcome } => {
                self.session.answered(&id, outcome);
                None
            }
        }
    }

    /// Works on a request: here as long as it does not have to wait, then by itself.
    async fn work(
        &self,
        request: Request,
        under_way: UnderWay,
        method: String,
        params: Value,
        at_once: bool,
    ) -> Option<Vec<u8>> {
        let id = request.id.clone();
        let mut work = Box::pin(self.server.clone().answer(request, method, params));
        if at_once {
            let first = std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
            if let Poll::Ready(outcome) = first {
                return reply(&id, outcome);
            }
        }
        let (out, session) = (self.out.clone(), self.session.clone());
        tokio::spawn(async move {
            let _under_way = under_way;
            let outcome = tokio::select! {
                biased;
                outcome = work => outcome,
                // Not everything that is asked for can be stopped.
                () = given_up(&session) => None,
            };
            // Who cancelled a call wants no answer; who closed its side may still read.
            let outcome = outcome.or_else(|| {
                let problem = "the call was stopped: the client closed its side, and it took too long";
                session.ended.is_cancelled().then(|| Err(RpcError::new(BUSY, problem)))
            });
            if let Some(reply) = reply(&id, outcome) {
                let _ = out.send(reply).await;
            }
        });
        None
    }

    /// Finds out in which era a request is made.
    fn begin(&self, id: &Id, method: &str, params: &Value) -> Result<Begun, RpcError> {
        let stateless = params.get("_meta").is_some_and(|meta| meta.get(VERSION_KEY).is_some());
        if method == "initialize" && !stateless {
            return self.session.initialize(&self.server, params).map(Begun::Answered);
        }
        let (era, capabilities, log_level, session) = if stateless {
            let said = introduction(params)?;
            (Era::STATELESS, said.capabilities, said.log_level, None)
        } else {
            match self.session.agreed() {
                Some(agreed) => {
                    let era = Era { version: agreed.version };
                    (era, agreed.capabilities.clone(), None, Some(self.session.clone()))
                }
                None if method == "ping" => {
                    let era = Era { version: LATEST_SESSION_VERSION };
                    (era, Arc::default(), None, Some(self.session.clone()))
                }
                None => return Err(RpcError::new(INVALID_REQUEST, "the session begins with `initialize`")),
            }
        };
        let under_way = self.session.enter(id, self.server.max_calls)?;
        let request = Request {
            id: id.clone(),
            era,
            capabilities,
            log_level,
            session,
            outlet: Outlet::new(self.out.clone(), Audience::Connected),
            cancel: under_way.cancel.clone(),
            subject: "".into(),
        };
        Ok(Begun::Request(Box::new(request), under_way))
    }
}

/// Waits until the session is over and what was under way had the time to stop.
async fn given_up(session: &Session) {
    session.ended.cancelled().await;
    tokio::time::sleep(CANCEL_GRACE * 3 / 2).await;
}

enum Begun {
    Answered(Value),
    Request(Box<Request>, UnderWay),
}

/// The line that answers a request; `None` when who asked wants no answer.
pub(super) fn reply(id: &Id, outcome: Outcome) -> Option<Vec<u8>> {
    let line = jsonrpc::response(Some(id), outcome?);
    if line.len() <= jsonrpc::MAX_MESSAGE_BYTES {
        return Some(line);
    }
    let most = jsonrpc::MAX_MESSAGE_BYTES;
    let error = RpcError::new(INTERNAL_ERROR, format!("the result is larger than {most} bytes"));
    Some(jsonrpc::response(Some(id), Err(error)))
}
