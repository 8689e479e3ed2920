//! The endpoint: what POST, GET and DELETE do, and in which era a request is made.
//!
//! An answer is plain JSON when it comes soon and alone. When there is something to say before, or it takes long, the
//! answer becomes a stream of events.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use toolwright_core::CancelToken;

use super::bearer::Bad;
use super::body::{self, Body};
use super::gate::{self, Refusal};
use super::sessions::HttpSession;
use super::stream::{SIGN_OF_LIFE, Stream, parse_event_id};
use super::{Site, mirror};
use crate::jsonrpc::{
    self, BUSY, HEADER_MISMATCH, INVALID_REQUEST, Id, METHOD_NOT_FOUND, MISSING_CAPABILITY, Malformed,
    Message, PARSE_ERROR, RpcError, UNSUPPORTED_VERSION,
};
use crate::protocol::{SESSION_VERSIONS, STATELESS_VERSION, VERSION_KEY};
use crate::server::answer::introduction;
use crate::server::pipe::reply;
use crate::server::session::Session;
use crate::server::{Era, Outcome, Outlet, Request, hub};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// An answer that takes longer than this becomes a stream, so that nothing on the way takes it for dead.
const PATIENCE: Duration = Duration::from_secs(5);

type Answer = Response<Body>;

/// Answers one HTTP request.
pub(super) async fn respond(site: &Arc<Site>, from: IpAddr, request: hyper::Request<Incoming>) -> Answer {
    let origin = match site.gate.check_place(request.headers()) {
        Ok(origin) => origin,
        Err(refusal) => return refused(&refusal),
    };
    let mut answer = route(site, from, request).await;
    if let Some(origin) = origin.and_then(|origin| HeaderValue::from_str(&origin).ok()) {
        let headers = answer.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Mcp-Session-Id"));
    }
    answer
}

async fn route(site: &Arc<Site>, from: IpAddr, request: hyper::Request<Incoming>) -> Answer {
    let path = request.uri().path();
    if path == "/health" {
        return whole(StatusCode::OK, "application/json", r#"{"status":"ok"}"#);
    }
    if let Some(bearer) = &site.bearer
        && path
            .strip_prefix("/.well-known/oauth-protected-resource")
            .is_some_and(|at| at.is_empty() || at == site.options.path)
    {
        return whole(StatusCode::OK, "application/json", bearer.description().to_string());
    }
    if path != site.options.path {
        return whole(
            StatusCode::NOT_FOUND,
            "text/plain",
            format!("the endpoint is {}\n", site.options.path),
        );
    }
    if request.method() == Method::OPTIONS {
        return preflight();
    }
    let subject = match who(site, request.headers(), from).await {
        Ok(subject) => subject,
        Err(refusal) => return site.challenged(&refusal, refused(&refusal)),
    };
    if let Err(refusal) = site.gate.check_rate(&subject, from) {
        return refused(&refusal);
    }
    match *request.method() {
        Method::POST => post(site, subject, request).await,
        Method::GET => get(site, &subject, request.headers()),
        Method::DELETE => delete(site, &subject, request.headers()),
        _ => {
            let mut answer = whole(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
            answer
        }
    }
}

/// Who asks, as far as a token says.
async fn who(site: &Site, headers: &HeaderMap, from: IpAddr) -> Result<Arc<str>, Refusal> {
    let Some(bearer) = &site.bearer else { return site.gate.check_token(headers, from) };
    bearer.check(gate::bearer(headers)?).await.map_err(|bad| match bad {
        Bad::Token => Refusal::WrongToken,
        Bad::Scope => Refusal::TooFewScopes,
        Bad::Unavailable => Refusal::NobodyToAsk,
    })
}

impl Site {
    /// Tells a client without a good token where to get one.
    fn challenged(&self, refusal: &Refusal, mut answer: Answer) -> Answer {
        let Some(bearer) = &self.bearer else { return answer };
        let error = match refusal {
            Refusal::NoToken => "",
            Refusal::WrongToken => r#"error="invalid_token", "#,
            Refusal::TooFewScopes => r#"error="insufficient_scope", "#,
            _ => return answer,
        };
        let scopes = bearer.scopes();
        let scopes = if scopes.is_empty() { String::new() } else { format!(r#"scope="{scopes}", "#) };
        let place = bearer.description_url(&self.options.path).unwrap_or_default();
        let challenge = format!(r#"Bearer {error}{scopes}resource_metadata="{place}""#);
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        answer
    }
}

async fn post(site: &Arc<Site>, subject: Arc<str>, request: hyper::Request<Incoming>) -> Answer {
    let (head, incoming) = request.into_parts();
    let headers = head.headers;
    if !is_json(&headers) {
        return whole(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "text/plain",
            "the body must be application/json\n",
        );
    }
    let body = match read(site, incoming).await {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    let message = match jsonrpc::parse(&body) {
        Ok(message) => message,
        Err(Malformed { code, problem, id }) => {
            return error(StatusCode::BAD_REQUEST, id.as_ref(), RpcError::new(code, problem));
        }
    };
    drop(body);
    match message {
        Message::Request { id, method, params } => ask(site, subject, &headers, id, method, params).await,
        Message::Notification { method, params } => match session_of(site, &subject, &headers) {
            Ok(Some(session)) => {
                session.session.notified(&method, &params);
                whole(StatusCode::ACCEPTED, "text/plain", "")
            }
            Ok(None) => whole(StatusCode::ACCEPTED, "text/plain", ""),
            Err(answer) => *answer,
        },
        Message::Response { id, outcome } => match session_of(site, &subject, &headers) {
            Ok(Some(session)) => {
                session.session.answered(&id, outcome);
                whole(StatusCode::ACCEPTED, "text/plain", "")
            }
            Ok(None) => {
                let problem = "nothing was asked outside a session";
                error(StatusCode::BAD_REQUEST, Some(&id), RpcError::new(INVALID_REQUEST, problem))
            }
            Err(answer) => *answer,
        },
    }
}

/// Reads a whole body, within its bounds.
async fn read(site: &Site, incoming: Incoming) -> Result<Bytes, Answer> {
    let most = site.options.max_body;
    let too_large = || {
        let problem = RpcError::new(INVALID_REQUEST, format!("a request has at most {most} bytes"));
        error(StatusCode::PAYLOAD_TOO_LARGE, None, problem)
    };
    if hyper::body::Body::size_hint(&incoming).lower() > most as u64 {
        return Err(too_large());
    }
    let collected = Limited::new(incoming, most).collect();
    match tokio::time::timeout(site.options.body_time, collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(cause)) if cause.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => {
            Err(error(StatusCode::BAD_REQUEST, None, RpcError::new(PARSE_ERROR, "the request broke off")))
        }
        Err(_) => Err(error(
            StatusCode::REQUEST_TIMEOUT,
            None,
            RpcError::new(PARSE_ERROR, "the request took too long to arrive"),
        )),
    }
}

/// Answers a JSON-RPC request.
async fn ask(
    site: &Arc<Site>,
    subject: Arc<str>,
    headers: &HeaderMap,
    id: Id,
    method: String,
    params: Value,
) -> Answer {
    let version = text(headers, &VERSION);
    let said = params.get("_meta").and_then(|meta| meta.get(VERSION_KEY));
    let known = version.is_some_and(|version| SESSION_VERSIONS.contains(&version));
    if said.is_some() || version.is_some_and(|_| !known) {
        return ask_alone(site, subject, headers, id, method, params).await;
    }
    if method == "initialize" {
        return initialize(site, subject, &id, &params);
    }
    match session_of(site, &subject, headers) {
        Ok(Some(session)) => ask_in_session(site, &session, subject, headers, id, method, params).await,
        Ok(None) => {
            let problem = "begin a session with `initialize`, or say the revision in `_meta`";
            error(StatusCode::BAD_REQUEST, Some(&id), RpcError::new(INVALID_REQUEST, problem))
        }
        Err(answer) => *answer,
    }
}

/// Answers a request that stands for itself.
async fn ask_alone(
    site: &Arc<Site>,
    subject: Arc<str>,
    headers: &HeaderMap,
    id: Id,
    method: String,
    params: Value,
) -> Answer {
    let said = match checked(site, headers, &method, &params) {
        Ok(said) => said,
        Err(problem) => return error(StatusCode::BAD_REQUEST, Some(&id), problem),
    };
    let (messages, written) = mpsc::channel(256);
    let outlet = Outlet::new(messages);
    // Whoever closes the connection wants no answer any more.
    let cancel = site.stop.child_token();
    let request = Request {
        id: id.clone(),
        era: Era::STATELESS,
        capabilities: said.capabilities,
        log_level: said.log_level,
        session: None,
        outlet: outlet.clone(),
        cancel: cancel.clone(),
        subject,
    };
    let work = site.server.clone().answer(request, method, params);
    let gone = cancel.drop_guard();
    let exchange = Exchange { id, written, outlet, keep: None, may_stream: accepts_events(headers) };
    match exchange.begin(work).await {
        Begun::Answer(answer) => answer,
        Begun::Stream(mut exchange, outcome, first) => {
            let (frames, read) = mpsc::channel(16);
            tokio::spawn(async move { exchange.pump(outcome, first, frames).await });
            events(Body::Events { frames: read, _gone: Some(gone) })
        }
    }
}

/// Checks the headers of a request without a session against its body, and reads what it says of itself.
fn checked(
    site: &Site,
    headers: &HeaderMap,
    method: &str,
    params: &Value,
) -> Result<crate::server::answer::Introduction, RpcError> {
    let version = text(headers, &VERSION);
    let said = params.get("_meta").and_then(|meta| meta.get(VERSION_KEY));
    if let (Some(said), version) = (said, version)
        && said.as_str() != version
    {
        return Err(mirror::mismatch("`MCP-Protocol-Version` does not say what `_meta` says"));
    }
    if said.is_none() && version != Some(STATELESS_VERSION) {
        let mut error = RpcError::new(UNSUPPORTED_VERSION, "this revision is not spoken here");
        error.data = Some(json!({"supported": [STATELESS_VERSION], "requested": version}));
        return Err(error);
    }
    let said = introduction(params)?;
    mirror::check(headers, method, params)?;
    if method == "tools/call"
        && let Some((tools, at)) =
            params.get("name").and_then(Value::as_str).and_then(|name| site.server.tool(name))
        && let Some(spec) = tools.get(at)
    {
        mirror::check_arguments(headers, spec, params)?;
    }
    Ok(said)
}

fn initialize(site: &Site, subject: Arc<str>, id: &Id, params: &Value) -> Answer {
    let session = Arc::new(Session::new());
    let outcome = session.initialize(&site.server, params);
    let result = match outcome {
        Ok(result) => result,
        Err(problem) => return error(StatusCode::BAD_REQUEST, Some(id), problem),
    };
    let Some(name) = site.sessions.add(session, subject) else {
        let problem = RpcError::new(BUSY, "there are too many sessions; try again later");
        return error(StatusCode::SERVICE_UNAVAILABLE, Some(id), problem);
    };
    let mut answer = whole(StatusCode::OK, "application/json", jsonrpc::response(Some(id), Ok(result)));
    if let Ok(name) = HeaderValue::from_str(&name) {
        answer.headers_mut().insert(SESSION, name);
    }
    answer
}

async fn ask_in_session(
    site: &Arc<Site>,
    session: &Arc<HttpSession>,
    subject: Arc<str>,
    headers: &HeaderMap,
    id: Id,
    method: String,
    params: Value,
) -> Answer {
    let Some(agreed) = session.session.agreed() else {
        let problem = RpcError::new(INVALID_REQUEST, "the session begins with `initialize`");
        return error(StatusCode::BAD_REQUEST, Some(&id), problem);
    };
    let under_way = match session.session.enter(&id, site.server.max_calls) {
        Ok(under_way) => under_way,
        Err(problem) => return error(StatusCode::BAD_REQUEST, Some(&id), problem),
    };
    let (messages, written) = mpsc::channel(256);
    let outlet = Outlet::new(messages);
    let request = Request {
        id: id.clone(),
        era: Era { version: agreed.version },
        capabilities: agreed.capabilities.clone(),
        log_level: None,
        session: Some(session.session.clone()),
        outlet: outlet.clone(),
        cancel: under_way.cancel.clone(),
        subject,
    };
    let work = site.server.clone().answer(request, method, params);
    let work = async move {
        let _under_way = under_way;
        work.await
    };
    let exchange = Exchange {
        id,
        written,
        outlet: outlet.clone(),
        keep: Some(session.clone()),
        may_stream: accepts_events(headers),
    };
    match exchange.begin(work).await {
        Begun::Answer(answer) => answer,
        Begun::Stream(mut exchange, outcome, first) => {
            let stream = session.new_stream();
            let hang_up = outlet.hang_up.clone();
            // Clients of older revisions do not know events without content.
            let from = u64::from(agreed.version < "2025-11-25");
            let following = stream.clone().follow(from, hang_up);
            tokio::spawn(async move { exchange.keep(outcome, first, &stream).await });
            events(following)
        }
    }
}

/// A request that is being worked on.
struct Exchange {
    id: Id,
    /// What is said before the answer.
    written: mpsc::Receiver<Vec<u8>>,
    outlet: Outlet,
    /// Holds the session open while its request is worked on.
    keep: Option<Arc<HttpSession>>,
    may_stream: bool,
}

enum Begun {
    Answer(Answer),
    Stream(Box<Exchange>, oneshot::Receiver<Outcome>, Option<Vec<u8>>),
}

impl Exchange {
    /// Works until there is an answer, or something to be said before it.
    async fn begin(mut self, work: impl Future<Output = Outcome> + Send + 'static) -> Begun {
        let mut work = Box::pin(work);
        let first = std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
        if let Poll::Ready(outcome) = first {
            return Begun::Answer(self.answer_now(outcome));
        }
        let (told, mut outcome) = oneshot::channel();
        tokio::spawn(async move {
            let _ = told.send(work.await);
        });
        loop {
            tokio::select! {
                biased;
                outcome = &mut outcome => return Begun::Answer(self.answer_now(outcome.unwrap_or_default())),
                Some(first) = self.written.recv() => {
                    if self.may_stream {
                        return Begun::Stream(Box::new(self), outcome, Some(first));
                    }
                }
                () = self.outlet.hang_up.cancelled(), if self.may_stream => {
                    return Begun::Stream(Box::new(self), outcome, None);
                }
                () = tokio::time::sleep(PATIENCE), if self.may_stream => {
                    return Begun::Stream(Box::new(self), outcome, None);
                }
            }
        }
    }

    /// The whole answer, with what was said on the way.
    fn answer_now(&mut self, outcome: Outcome) -> Answer {
        let status = status_of(&outcome);
        let Some(last) = reply(&self.id, outcome) else {
            return whole(StatusCode::OK, "application/json", "");
        };
        let mut said: Vec<u8> = Vec::new();
        while let Ok(message) = self.written.try_recv() {
            said.extend_from_slice(&body::event(&message, None));
        }
        if said.is_empty() || !self.may_stream {
            return whole(status, "application/json", last);
        }
        said.extend_from_slice(&body::event(&last, None));
        events(Body::Whole(Some(said.into())))
    }

    /// Sends everything on until the answer is out, or nobody reads any more.
    async fn pump(
        &mut self,
        mut outcome: oneshot::Receiver<Outcome>,
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
                outcome = &mut outcome => {
                    let last = reply(&self.id, outcome.unwrap_or_default());
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
    async fn keep(
        &mut self,
        mut outcome: oneshot::Receiver<Outcome>,
        first: Option<Vec<u8>>,
        stream: &Stream,
    ) {
        if let Some(first) = first {
            stream.push(&first);
        }
        loop {
            tokio::select! {
                biased;
                Some(message) = self.written.recv() => stream.push(&message),
                outcome = &mut outcome => {
                    while let Ok(message) = self.written.try_recv() {
                        stream.push(&message);
                    }
                    if let Some(last) = reply(&self.id, outcome.unwrap_or_default()) {
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

/// A stream to listen on, or the rest of one that was lost.
fn get(site: &Arc<Site>, subject: &Arc<str>, headers: &HeaderMap) -> Answer {
    if !accepts_events(headers) {
        return whole(StatusCode::NOT_ACCEPTABLE, "text/plain", "only text/event-stream is sent here\n");
    }
    let session = match session_of(site, subject, headers) {
        Ok(Some(session)) => session,
        Ok(None) => {
            let mut answer = whole(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "there is no session\n");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            return answer;
        }
        Err(answer) => return *answer,
    };
    if headers.contains_key(&LAST_EVENT) {
        let last = text(headers, &LAST_EVENT).and_then(parse_event_id);
        let Some((stream, last)) = last.and_then(|(id, last)| Some((session.stream(id)?, last))) else {
            return whole(StatusCode::NOT_FOUND, "text/plain", "there is no such stream\n");
        };
        return events(stream.follow(last.saturating_add(1), CancelToken::new()));
    }
    let (lines, mut written) = mpsc::channel::<Vec<u8>>(64);
    let (frames, read) = mpsc::channel(16);
    let changes = site.server.hub.subscribe();
    let closing = session.closing.clone();
    tokio::spawn({
        let closing = closing.clone();
        let session = session.session.clone();
        async move {
            tokio::select! {
                () = hub::tell_session(changes, &session, &lines) => {}
                () = closing.cancelled() => {}
            }
        }
    });
    tokio::spawn(async move {
        loop {
            let frame = tokio::select! {
                message = written.recv() => match message {
                    Some(message) => body::event(&message, None),
                    None => return,
                },
                () = tokio::time::sleep(SIGN_OF_LIFE) => body::sign_of_life(),
                () = closing.cancelled() => return,
                () = frames.closed() => return,
            };
            if frames.send(frame).await.is_err() {
                return;
            }
        }
    });
    events(Body::Events { frames: read, _gone: None })
}

fn delete(site: &Site, subject: &Arc<str>, headers: &HeaderMap) -> Answer {
    match text(headers, &SESSION) {
        Some(id) if site.sessions.end(id, subject) => whole(StatusCode::NO_CONTENT, "text/plain", ""),
        Some(_) => whole(StatusCode::NOT_FOUND, "text/plain", "there is no such session\n"),
        None => whole(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "there is no session to end\n"),
    }
}

/// The session a request belongs to; `None` when it names none.
fn session_of(
    site: &Site,
    subject: &Arc<str>,
    headers: &HeaderMap,
) -> Result<Option<Arc<HttpSession>>, Box<Answer>> {
    if !headers.contains_key(&SESSION) {
        return Ok(None);
    }
    let version = text(headers, &VERSION);
    if version.is_some_and(|version| !SESSION_VERSIONS.contains(&version)) {
        let problem = RpcError::new(INVALID_REQUEST, "this revision has no sessions");
        return Err(Box::new(error(StatusCode::BAD_REQUEST, None, problem)));
    }
    match text(headers, &SESSION).and_then(|id| site.sessions.get(id, subject)) {
        Some(session) => Ok(Some(session)),
        None => {
            let problem = RpcError::new(INVALID_REQUEST, "there is no such session; begin a new one");
            Err(Box::new(error(StatusCode::NOT_FOUND, None, problem)))
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = text(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accept = text(headers, &header::ACCEPT).unwrap_or("*/*").to_ascii_lowercase();
    ["text/event-stream", "text/*", "*/*"].iter().any(|kind| accept.contains(kind))
}

/// The status that goes with an answer. Only errors of the protocol have one of their own.
fn status_of(outcome: &Outcome) -> StatusCode {
    match outcome {
        Some(Err(error)) => match error.code {
            METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION | INVALID_REQUEST => {
                StatusCode::BAD_REQUEST
            }
            BUSY => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        },
        _ => StatusCode::OK,
    }
}

fn refused(refusal: &Refusal) -> Answer {
    let (status, message) = match refusal {
        Refusal::Host => (StatusCode::FORBIDDEN, "this host name is not served here"),
        Refusal::Origin => (StatusCode::FORBIDDEN, "pages of this origin may not use the server"),
        Refusal::NoToken | Refusal::WrongToken => (StatusCode::UNAUTHORIZED, "a valid token is needed"),
        Refusal::TooFewScopes => (StatusCode::FORBIDDEN, "the token is not good for this"),
        Refusal::NobodyToAsk => {
            (StatusCode::SERVICE_UNAVAILABLE, "the authorization server cannot be asked; try again later")
        }
        Refusal::TooOften => (StatusCode::TOO_MANY_REQUESTS, "too many requests; slow down"),
    };
    let mut answer = error(status, None, RpcError::new(INVALID_REQUEST, message));
    let headers = answer.headers_mut();
    match refusal {
        Refusal::NoToken => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        Refusal::WrongToken => {
            let challenge = HeaderValue::from_static(r#"Bearer error="invalid_token""#);
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        Refusal::TooOften => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        Refusal::Host | Refusal::Origin | Refusal::TooFewScopes | Refusal::NobodyToAsk => {}
    }
    answer
}

fn preflight() -> Answer {
    let mut answer = whole(StatusCode::NO_CONTENT, "text/plain", "");
    let headers = answer.headers_mut();
    let methods = HeaderValue::from_static("POST, GET, DELETE");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let allowed = "Content-Type, Accept, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, \
                   Mcp-Name, Last-Event-ID";
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    answer
}

fn error(status: StatusCode, id: Option<&Id>, problem: RpcError) -> Answer {
    whole(status, "application/json", jsonrpc::response(id, Err(problem)))
}

fn whole(status: StatusCode, kind: &'static str, content: impl Into<Bytes>) -> Answer {
    let content: Bytes = content.into();
    let mut answer = Response::new(Body::Whole((!content.is_empty()).then_some(content)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn events(body: Body) -> Answer {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    answer
}
