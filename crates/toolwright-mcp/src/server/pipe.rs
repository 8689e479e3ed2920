//! One client over two streams: one message per line, in either era.

use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::response::Response;
use super::session::{Session, UnderWay};
use super::{Audience, CANCEL_GRACE, ClientSender, Era, IncomingRequest, Inner, hub};
use crate::jsonrpc::{self, BUSY, INTERNAL_ERROR, INVALID_REQUEST, Id, PARSE_ERROR, RpcError, RpcMessage};
use crate::protocol::{ClientNotification, ClientRequest, LATEST_SESSION_VERSION, RequestMeta};
use crate::transport::lines::{Beside, LineRead, LineReader, write_lines_and};

/// Serves one client. When it has closed its side, calls may go on for a while, unless `reader_gone` says
/// that nobody reads their answers.
pub(super) async fn serve(
    server: &Arc<Inner>,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
    reader_gone: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let (out, lines) = mpsc::channel(256);
    // Reading and writing share one task, so that an answer goes out without waking another thread.
    let beside = Beside::default();
    let mut writer = std::pin::pin!(write_lines_and(lines, &beside, output));
    let session = Arc::new(Session::new());
    let _end = session.ended.clone().drop_guard();
    let announcing = {
        let (changes, session, out) = (server.hub.subscribe(), session.clone(), out.clone());
        tokio::spawn(async move { hub::announce_to_session(changes, &session, &out).await })
    };
    let pipe = Pipe { server: server.clone(), session: session.clone(), out, beside: &beside };
    let read = tokio::select! {
        // The writer comes second, so that it finds what was put beside.
        biased;
        read = pipe.read_all(input) => read,
        // The client no longer reads, so nobody waits for the calls either.
        written = &mut writer => return written,
    };
    // No question is answered any more, so nobody needs to wait for that until the calls are stopped.
    session.silent.cancel();
    let ending = async {
        let finished = tokio::select! {
            idle = tokio::time::timeout(server.drain, session.idle()) => idle.is_ok(),
            // The client has died: nobody can read the answers.
            () = reader_gone => false,
        };
        session.ended.cancel();
        if !finished {
            let _ = tokio::time::timeout(CANCEL_GRACE * 2, session.idle()).await;
        }
        // It may be blocked on a client that does not read.
        announcing.abort();
        drop(pipe);
    };
    tokio::select! {
        () = ending => {}
        _ = &mut writer => return read,
    }
    let _ = tokio::time::timeout(server.drain, writer).await;
    read
}

/// Answers the first request with an error, and ends.
pub(super) async fn refuse(
    input: impl AsyncRead + Unpin + Send,
    mut output: impl AsyncWrite + Unpin + Send,
    why: &str,
) -> std::io::Result<()> {
    /// A client sends its first request as soon as it has started a server.
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
    let first_request = async {
        let mut lines = LineReader::new(input, jsonrpc::MAX_MESSAGE_BYTES);
        loop {
            match lines.next().await? {
                LineRead::Whole(line) => {
                    if let Ok(RpcMessage::Request { id, .. }) = jsonrpc::parse(line) {
                        return Ok(Some(id));
                    }
                }
                LineRead::TooLong => {}
                LineRead::End => return Ok(None),
            }
        }
    };
    let first = tokio::time::timeout(PATIENCE, first_request).await;
    let Some(id) = first.unwrap_or(std::io::Result::Ok(None))? else { return Ok(()) };
    let mut line = jsonrpc::error(Some(&id), &RpcError::new(INTERNAL_ERROR, why));
    if line.last() != Some(&b'\n') {
        line.push(b'\n');
    }
    output.write_all(&line).await?;
    output.flush().await
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
                LineRead::End => return Ok(()),
                LineRead::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
                LineRead::Whole(line) => jsonrpc::parse(line),
                LineRead::TooLong => {
                    let most = jsonrpc::MAX_MESSAGE_BYTES;
                    let problem = format!("a message has at most {most} bytes");
                    Err(jsonrpc::Malformed { code: PARSE_ERROR, problem, id: None })
                }
            };
            let reply = match message {
                // A client that waits for each answer gets it without a detour; one that sends many requests
                // gets them worked on side by side.
                Ok(message) => self.take(message, !lines.has_more()).await,
                Err(malformed) => {
                    let error = RpcError::new(malformed.code, malformed.problem);
                    Some(jsonrpc::error(malformed.id.as_ref(), &error))
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

    /// Handles one message; what takes time goes on by itself.
    async fn take(&self, message: RpcMessage, at_once: bool) -> Option<Vec<u8>> {
        match message {
            RpcMessage::Request { id, method, params } => match self.begin(&id, &method, params) {
                Ok(Begun::Answered(response)) => response.into_line(&id),
                Ok(Begun::Request(request, under_way, call)) => {
                    self.work(*request, under_way, *call, at_once).await
                }
                Err(error) => Some(jsonrpc::error(Some(&id), &error)),
            },
            RpcMessage::Notification { method, params } => {
                self.session.notified(ClientNotification::read(&method, params));
                None
            }
            RpcMessage::Response { id, outcome } => {
                self.session.answered(&id, outcome);
                None
            }
        }
    }

    /// Works on a request: here as long as it does not have to wait, then by itself.
    async fn work(
        &self,
        request: IncomingRequest,
        under_way: UnderWay,
        call: ClientRequest,
        at_once: bool,
    ) -> Option<Vec<u8>> {
        let id = request.id.clone();
        let mut work = Box::pin(self.server.clone().answer(request, call));
        if at_once {
            let first = std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
            if let Poll::Ready(response) = first {
                return response.into_line(&id);
            }
        }
        let (out, session) = (self.out.clone(), self.session.clone());
        tokio::spawn(async move {
            let _under_way = under_way;
            let response = tokio::select! {
                biased;
                response = work => response,
                // Not everything that is asked for can be stopped.
                () = given_up(&session) => Response::Cancelled,
            };
            // A cancelled call gets no answer; a client that closed its side may still read one.
            let response = response.or_else(|| match session.ended.is_cancelled() {
                true => {
                    let problem =
                        "the call was stopped: the client closed its side, and the call took too long";
                    RpcError::new(BUSY, problem).into()
                }
                false => Response::Cancelled,
            });
            if let Some(line) = response.into_line(&id) {
                let _ = out.send(line).await;
            }
        });
        None
    }

    /// Finds out in which era a request is made, and reads it.
    fn begin(&self, id: &Id, method: &str, mut params: Value) -> Result<Begun, RpcError> {
        let mut meta = RequestMeta::take(&mut params);
        let stateless = meta.version.is_some();
        if method == "initialize" && !stateless {
            let result = self.session.initialize(&self.server, params)?;
            return Ok(Begun::Answered(result.into()));
        }
        let (era, capabilities, log_level, session) = if stateless {
            let capabilities = Arc::new(meta.introduction()?);
            (Era::STATELESS, capabilities, meta.log_level, None)
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
                None => return Err(RpcError::new(INVALID_REQUEST, "a session must begin with `initialize`")),
            }
        };
        let under_way = self.session.enter(id, self.server.max_calls)?;
        let call = self.server.read(era, method, params)?;
        let request = IncomingRequest {
            id: id.clone(),
            era,
            capabilities,
            log_level,
            progress_token: meta.progress_token,
            session,
            sender: ClientSender::new(self.out.clone(), Audience::Connected),
            cancel: under_way.cancel.clone(),
            subject: "".into(),
        };
        Ok(Begun::Request(Box::new(request), under_way, Box::new(call)))
    }
}

/// Waits until the session is over and what was under way had the time to stop.
async fn given_up(session: &Session) {
    session.ended.cancelled().await;
    tokio::time::sleep(CANCEL_GRACE * 3 / 2).await;
}

enum Begun {
    Answered(Response),
    Request(Box<IncomingRequest>, UnderWay, Box<ClientRequest>),
}
