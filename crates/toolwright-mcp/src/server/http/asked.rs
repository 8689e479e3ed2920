//! What a client asks with POST: in which era, in which session, and with what right.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::answers::{Answer, SESSION, VERSION, accepts_events, error, events, text, whole};
use super::body::Body;
use super::crowd::Inside;
use super::exchange::{Begun, Exchange};
use super::sessions::HttpSession;
use super::{Site, mirror};
use crate::jsonrpc::{self, BUSY, INVALID_REQUEST, Id, RpcError, UNSUPPORTED_VERSION};
use crate::protocol::{SESSION_VERSIONS, STATELESS_VERSION, VERSION_KEY};
use crate::server::answer::{Introduction, introduction};
use crate::server::readers::Readers;
use crate::server::session::Session;
use crate::server::{Audience, Era, Outlet, Request};

/// A place among the calls a client may have under way.
type Place = Inside<Arc<str>>;

/// A JSON-RPC request that came with POST.
pub(super) struct Asked {
    pub(super) site: Arc<Site>,
    /// Who asks.
    pub(super) subject: Arc<str>,
    pub(super) headers: HeaderMap,
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Value,
}

impl Asked {
    pub(super) async fn answer(self) -> Answer {
        // However a client spreads its calls over sessions and connections, it has so many at once.
        let Some(place) = self.site.asking.enter(&self.subject) else {
            let most = self.site.server.max_calls;
            let problem = RpcError::new(BUSY, format!("at most {most} calls may run at once"));
            return self.refused(StatusCode::SERVICE_UNAVAILABLE, problem);
        };
        let version = text(&self.headers, &VERSION);
        let said = self.said_version();
        let known = version.is_some_and(|version| SESSION_VERSIONS.contains(&version));
        if said.is_some() || version.is_some_and(|_| !known) {
            return self.answer_alone(place).await;
        }
        if self.method == "initialize" {
            return self.initialize();
        }
        match session_of(&self.site, &self.subject, &self.headers) {
            Ok(Some(session)) => self.answer_in(&session, place).await,
            Ok(None) => {
                let problem = "begin a session with `initialize`, or say the revision in `_meta`";
                self.refused(StatusCode::BAD_REQUEST, RpcError::new(INVALID_REQUEST, problem))
            }
            Err(answer) => *answer,
        }
    }

    /// The revision the body says it is written in, which only the era without sessions does.
    fn said_version(&self) -> Option<&Value> {
        self.params.get("_meta").and_then(|meta| meta.get(VERSION_KEY))
    }

    fn refused(&self, status: StatusCode, problem: RpcError) -> Answer {
        error(status, Some(&self.id), problem)
    }

    /// Answers a request that stands for itself.
    async fn answer_alone(self, place: Place) -> Answer {
        let said = match self.checked().await {
            Ok(said) => said,
            Err(problem) => return self.refused(StatusCode::BAD_REQUEST, problem),
        };
        let Asked { site, subject, headers, id, method, params } = self;
        let (messages, written) = mpsc::channel(256);
        let outlet = Outlet::new(messages, Audience::Connected);
        // Whoever closes the connection wants no answer any more.
        let never_ends = method == "subscriptions/listen";
        let cancel = if never_ends { site.closing.child_token() } else { site.stop.child_token() };
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
        let work = async move {
            let _place = place;
            work.await
        };
        let gone = cancel.drop_guard();
        let (stop, may_stream) = (site.stop.clone(), accepts_events(&headers));
        let exchange = Exchange { id, era: Era::STATELESS, written, outlet, keep: None, may_stream, stop };
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
    async fn checked(&self) -> Result<Introduction, RpcError> {
        let Asked { site, headers, method, params, .. } = self;
        let version = text(headers, &VERSION);
        let said = self.said_version();
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
            && let Some(name) = params.get("name").and_then(Value::as_str)
            && let Some((tools, at)) = site.server.tool(name).await?
            && let Some(spec) = tools.get(at)
        {
            mirror::check_arguments(headers, spec, params)?;
        }
        Ok(said)
    }

    fn initialize(self) -> Answer {
        let session = Arc::new(Session::new());
        let result = match session.initialize(&self.site.server, &self.params) {
            Ok(result) => result,
            Err(problem) => return self.refused(StatusCode::BAD_REQUEST, problem),
        };
        let Some(name) = self.site.sessions.add(session, self.subject.clone()) else {
            let problem = RpcError::new(BUSY, "there are too many sessions; try again later");
            return self.refused(StatusCode::SERVICE_UNAVAILABLE, problem);
        };
        let message = jsonrpc::response(Some(&self.id), Ok(result));
        let mut answer = whole(StatusCode::OK, "application/json", message);
        if let Ok(name) = HeaderValue::from_str(&name) {
            answer.headers_mut().insert(SESSION, name);
        }
        answer
    }

    async fn answer_in(self, session: &Arc<HttpSession>, place: Place) -> Answer {
        let Some(agreed) = session.session.agreed() else {
            let problem = RpcError::new(INVALID_REQUEST, "the session begins with `initialize`");
            return self.refused(StatusCode::BAD_REQUEST, problem);
        };
        let under_way = match session.session.enter(&self.id, self.site.server.max_calls) {
            Ok(under_way) => under_way,
            Err(problem) if problem.code == BUSY => {
                return self.refused(StatusCode::SERVICE_UNAVAILABLE, problem);
            }
            Err(problem) => return self.refused(StatusCode::BAD_REQUEST, problem),
        };
        let Asked { site, subject, headers, id, method, params } = self;
        let (messages, written) = mpsc::channel(256);
        let (readers, may_stream) = (Readers::new(site.options.return_time), accepts_events(&headers));
        let audience = if may_stream { Audience::Returning(readers.clone()) } else { Audience::Nobody };
        let outlet = Outlet::new(messages, audience);
        let era = Era { version: agreed.version };
        let request = Request {
            id: id.clone(),
            era,
            capabilities: agreed.capabilities.clone(),
            log_level: None,
            session: Some(session.session.clone()),
            outlet: outlet.clone(),
            cancel: under_way.cancel.clone(),
            subject,
        };
        let work = site.server.clone().answer(request, method, params);
        let work = async move {
            let (_under_way, _place) = (under_way, place);
            work.await
        };
        let exchange = Exchange {
            id,
            era,
            written,
            outlet: outlet.clone(),
            keep: Some(session.clone()),
            may_stream,
            stop: site.stop.clone(),
        };
        match exchange.begin(work).await {
            Begun::Answer(answer) => answer,
            Begun::Stream(mut exchange, outcome, first) => {
                let stream = session.new_stream(readers);
                let hang_up = outlet.hang_up.clone();
                // Clients of older revisions do not know events without content.
                let from = u64::from(agreed.version < "2025-11-25");
                let following = stream.clone().follow(from, hang_up);
                let session = session.clone();
                tokio::spawn(async move {
                    exchange.keep(outcome, first, &stream).await;
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
