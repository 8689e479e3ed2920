//! What a client asks with POST: in which era, in which session, and with what right.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::answers::{Answer, SESSION, VERSION, accepts_events, error, events, text, whole};
use super::body::Body;
use super::exchange::{Begun, Exchange};
use super::sessions::HttpSession;
use super::{Site, mirror};
use crate::jsonrpc::{self, BUSY, INVALID_REQUEST, Id, RpcError, UNSUPPORTED_VERSION};
use crate::protocol::{SESSION_VERSIONS, STATELESS_VERSION, VERSION_KEY};
use crate::server::answer::{Introduction, introduction};
use crate::server::session::Session;
use crate::server::{Era, Outlet, Request};

/// Answers a JSON-RPC request.
pub(super) async fn ask(
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
fn checked(site: &Site, headers: &HeaderMap, method: &str, params: &Value) -> Result<Introduction, RpcError> {
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
