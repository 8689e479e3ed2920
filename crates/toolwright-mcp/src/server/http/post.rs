//! A request that came with POST: its era, its session, and the checks of its headers.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::body::ResponseBody;
use super::exchange::{Begun, Exchange};
use super::keyed_counter::Counted;
use super::responses::{HttpResponse, SESSION, VERSION, accepts_events, error, events, text, whole};
use super::sessions::HttpSession;
use super::{Site, header_consistency};
use crate::jsonrpc::{BUSY, INVALID_REQUEST, Id, RpcError};
use crate::protocol::{ClientCapabilities, ClientRequest, RequestMeta, SESSION_VERSIONS, STATELESS_VERSION};
use crate::server::readers::Readers;
use crate::server::response::Response;
use crate::server::session::Session;
use crate::server::{Audience, ClientSender, Era, IncomingRequest};

/// A place among the calls that a client may have under way.
type CallSlot = Counted<Arc<str>>;

/// A JSON-RPC request that came with POST.
pub(super) struct Post {
    pub(super) site: Arc<Site>,
    /// The client's identity.
    pub(super) subject: Arc<str>,
    pub(super) headers: HeaderMap,
    pub(super) id: Id,
    pub(super) method: String,
}

impl Post {
    pub(super) async fn answer(self, mut params: Value) -> HttpResponse {
        // However a client spreads its calls over sessions and connections, it has so many at once.
        let Some(place) = self.site.calls.enter(&self.subject) else {
            let most = self.site.server.max_calls;
            let problem = RpcError::new(BUSY, format!("at most {most} calls may run at once"));
            return self.refused(StatusCode::SERVICE_UNAVAILABLE, problem);
        };
        let version = text(&self.headers, &VERSION);
        let known = version.is_some_and(|version| SESSION_VERSIONS.contains(&version));
        let meta = RequestMeta::take(&mut params);
        if meta.version.is_some() || version.is_some_and(|_| !known) {
            return self.answer_alone(meta, params, place).await;
        }
        if self.method == "initialize" {
            return self.initialize(params);
        }
        match session_of(&self.site, &self.subject, &self.headers) {
            Ok(Some(session)) => self.answer_in(&session, meta, params, place).await,
            Ok(None) => {
                let problem = "begin a session with `initialize`, or name the revision in `_meta`";
                self.refused(StatusCode::BAD_REQUEST, RpcError::new(INVALID_REQUEST, problem))
            }
            Err(answer) => *answer,
        }
    }

    fn refused(&self, status: StatusCode, problem: RpcError) -> HttpResponse {
        error(status, Some(&self.id), problem)
    }

    /// Answers a request without a session.
    async fn answer_alone(self, mut meta: RequestMeta, params: Value, place: CallSlot) -> HttpResponse {
        let capabilities = match self.introduction(&mut meta) {
            Ok(capabilities) => capabilities,
            Err(problem) => return self.refused(StatusCode::BAD_REQUEST, problem),
        };
        let call = self.site.server.read(Era::STATELESS, &self.method, params);
        if let Ok(call) = &call
            && let Err(problem) = self.check_headers(call).await
        {
            return self.refused(StatusCode::BAD_REQUEST, problem);
        }
        let Post { site, subject, headers, id, method: _ } = self;
        let (messages, written) = mpsc::channel(256);
        let sender = ClientSender::new(messages, Audience::Connected);
        // Closing the connection cancels the request.
        let never_ends = matches!(call, Ok(ClientRequest::Listen(_)));
        let cancel = if never_ends { site.closing.child_token() } else { site.stop.child_token() };
        let request = IncomingRequest {
            id: id.clone(),
            era: Era::STATELESS,
            capabilities: Arc::new(capabilities),
            log_level: meta.log_level,
            progress_token: meta.progress_token,
            session: None,
            sender: sender.clone(),
            cancel: cancel.clone(),
            subject,
        };
        let server = site.server.clone();
        let work = async move {
            let _place = place;
            match call {
                Ok(call) => server.answer(request, call).await,
                Err(problem) => Response::Error(problem),
            }
        };
        let gone = cancel.drop_guard();
        let (stop, may_stream) = (site.stop.clone(), accepts_events(&headers));
        let exchange = Exchange { id, era: Era::STATELESS, written, sender, keep: None, may_stream, stop };
        match exchange.begin(work).await {
            Begun::Answer(answer) => answer,
            Begun::Stream(mut exchange, response, first) => {
                let (frames, read) = mpsc::channel(16);
                tokio::spawn(async move { exchange.pump(response, first, frames).await });
                events(ResponseBody::Events { frames: read, _gone: Some(gone) })
            }
        }
    }

    /// Checks the revision of a request without a session, and the header for its method; returns the
    /// client's capabilities.
    fn introduction(&self, meta: &mut RequestMeta) -> Result<ClientCapabilities, RpcError> {
        let version = text(&self.headers, &VERSION);
        match &meta.version {
            Some(named) if named.as_str() != version => {
                return Err(header_consistency::mismatch("`MCP-Protocol-Version` contradicts `_meta`"));
            }
            None if version != Some(STATELESS_VERSION) => {
                return Err(RpcError::unsupported_version(&json!(version)));
            }
            _ => {}
        }
        let capabilities = meta.introduction()?;
        header_consistency::check_method(&self.headers, &self.method)?;
        Ok(capabilities)
    }

    /// Checks the headers that repeat the name and the arguments.
    async fn check_headers(&self, call: &ClientRequest) -> Result<(), RpcError> {
        if let Some(name) = call.name() {
            header_consistency::check_name(&self.headers, name)?;
        }
        if let ClientRequest::CallTool(params) = call
            && let Some((tools, at)) = self.site.server.tool(&params.name).await?
            && let Some(spec) = tools.get(at)
        {
            header_consistency::check_arguments(&self.headers, spec, &params.arguments)?;
        }
        Ok(())
    }

    fn initialize(self, params: Value) -> HttpResponse {
        let session = Arc::new(Session::new());
        let result = match session.initialize(&self.site.server, params) {
            Ok(result) => Response::from(result),
            Err(problem) => return self.refused(StatusCode::BAD_REQUEST, problem),
        };
        let Some(name) = self.site.sessions.add(session, self.subject.clone()) else {
            let problem = RpcError::new(BUSY, "there are too many sessions; try again later");
            return self.refused(StatusCode::SERVICE_UNAVAILABLE, problem);
        };
        let message = result.into_line(&self.id).unwrap_or_default();
        let mut answer = whole(StatusCode::OK, "application/json", message);
        if let Ok(name) = HeaderValue::from_str(&name) {
            answer.headers_mut().insert(SESSION, name);
        }
        answer
    }

    async fn answer_in(
        self,
        session: &Arc<HttpSession>,
        meta: RequestMeta,
        params: Value,
        place: CallSlot,
    ) -> HttpResponse {
        let Some(agreed) = session.session.agreed() else {
            let problem = RpcError::new(INVALID_REQUEST, "a session must begin with `initialize`");
            return self.refused(StatusCode::BAD_REQUEST, problem);
        };
        let under_way = match session.session.enter(&self.id, self.site.server.max_calls) {
            Ok(under_way) => under_way,
            Err(problem) if problem.code == BUSY => {
                return self.refused(StatusCode::SERVICE_UNAVAILABLE, problem);
            }
            Err(problem) => return self.refused(StatusCode::BAD_REQUEST, problem),
        };
        let era = Era { version: agreed.version };
        let call = match self.site.server.read(era, &self.method, params) {
            Ok(call) => call,
            Err(problem) => return self.refused(StatusCode::OK, problem),
        };
        let Post { site, subject, headers, id, method: _ } = self;
        let (messages, written) = mpsc::channel(256);
        let (readers, may_stream) = (Readers::new(site.options.return_time), accepts_events(&headers));
        let audience = if may_stream { Audience::Returning(readers.clone()) } else { Audience::Nobody };
        let sender = ClientSender::new(messages, audience);
        let request = IncomingRequest {
            id: id.clone(),
            era,
            capabilities: agreed.capabilities.clone(),
            log_level: None,
            progress_token: meta.progress_token,
            session: Some(session.session.clone()),
            sender: sender.clone(),
            cancel: under_way.cancel.clone(),
            subject,
        };
        let work = site.server.clone().answer(request, call);
        let work = async move {
            let (_under_way, _place) = (under_way, place);
            work.await
        };
        let exchange = Exchange {
            id,
            era,
            written,
            sender: sender.clone(),
            keep: Some(session.clone()),
            may_stream,
            stop: site.stop.clone(),
        };
        match exchange.begin(work).await {
            Begun::Answer(answer) => answer,
            Begun::Stream(mut exchange, response, first) => {
                let stream = session.new_stream(readers);
                let hang_up = sender.hang_up.clone();
                // Clients of older revisions do not know events without content.
                let from = u64::from(agreed.version < "2025-11-25");
                let following = stream.clone().follow(from, hang_up);
                let session = session.clone();
                tokio::spawn(async move {
                    exchange.keep(response, first, &stream).await;
                    site.sessions.ended(&session);
                });
                events(following)
            }
        }
    }
}

/// The session a request belongs to; `None` when it names none.
pub(super) fn session_of(
    site: &Site,
    subject: &Arc<str>,
    headers: &HeaderMap,
) -> Result<Option<Arc<HttpSession>>, Box<HttpResponse>> {
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
