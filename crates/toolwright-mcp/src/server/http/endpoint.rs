//! The endpoint: what POST, GET and DELETE do.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::sync::mpsc;
use toolwright_core::CancelToken;
use toolwright_net::LobbyGuest;

use super::Site;
use super::bearer::Bad;
use super::body::{self, ResponseBody};
use super::gate::{self, GateRefusal};
use super::post::{Post, session_of};
use super::responses::{
    HttpResponse, LAST_EVENT, SESSION, accepts_events, error, events, is_json, preflight, refused, text,
    whole,
};
use super::stream::{SIGN_OF_LIFE, parse_event_id};
use crate::jsonrpc::{self, INVALID_REQUEST, Malformed, PARSE_ERROR, RpcError, RpcMessage};
use crate::protocol::ClientNotification;
use crate::server::hub;

/// Says whether the server is up.
const HEALTH: &str = "/health";

/// Answers one HTTP request.
pub(super) async fn respond(
    site: &Arc<Site>,
    from: IpAddr,
    guest: &LobbyGuest,
    request: hyper::Request<Incoming>,
) -> HttpResponse {
    let checked = match request.uri().path() {
        // Health checks reach each instance under an address of its own.
        HEALTH => site.gate.check_origin(request.headers(), ""),
        _ => site.gate.check_place(request.headers()),
    };
    let origin = match checked {
        Ok(origin) => origin,
        Err(refusal) => return refused(&refusal),
    };
    let mut answer = route(site, from, guest, request).await;
    if let Some(origin) = origin.and_then(|origin| HeaderValue::from_str(&origin).ok()) {
        let headers = answer.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Mcp-Session-Id"));
    }
    answer
}

async fn route(
    site: &Arc<Site>,
    from: IpAddr,
    guest: &LobbyGuest,
    request: hyper::Request<Incoming>,
) -> HttpResponse {
    let path = request.uri().path();
    if path == HEALTH {
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
        Err(refusal) => {
            // Guesses count too, so that tokens cannot be tried one after the other.
            let refusal = site.gate.count_guess(from).err().unwrap_or(refusal);
            return site.challenged(&refusal, refused(&refusal));
        }
    };
    guest.admit();
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
async fn who(site: &Site, headers: &HeaderMap, from: IpAddr) -> Result<Arc<str>, GateRefusal> {
    site.gate.check_guesses(from)?;
    let Some(bearer) = &site.bearer else { return site.gate.check_token(headers, from) };
    bearer.check(gate::bearer(headers)?).await.map_err(|bad| match bad {
        Bad::Token => GateRefusal::WrongToken,
        Bad::Scope => GateRefusal::TooFewScopes,
        Bad::Unavailable => GateRefusal::AuthorizationUnreachable,
    })
}

impl Site {
    /// Tells a client without a good token where to get one.
    fn challenged(&self, refusal: &GateRefusal, mut answer: HttpResponse) -> HttpResponse {
        let Some(bearer) = &self.bearer else { return answer };
        let error = match refusal {
            GateRefusal::NoToken => "",
            GateRefusal::WrongToken => r#"error="invalid_token", "#,
            GateRefusal::TooFewScopes => r#"error="insufficient_scope", "#,
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

async fn post(site: &Arc<Site>, subject: Arc<str>, request: hyper::Request<Incoming>) -> HttpResponse {
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
        RpcMessage::Request { id, method, params } => {
            Post { site: site.clone(), subject, headers, id, method }.answer(params).await
        }
        RpcMessage::Notification { method, params } => match session_of(site, &subject, &headers) {
            Ok(Some(session)) => {
                session.session.notified(ClientNotification::read(&method, params));
                whole(StatusCode::ACCEPTED, "text/plain", "")
            }
            Ok(None) => whole(StatusCode::ACCEPTED, "text/plain", ""),
            Err(answer) => *answer,
        },
        RpcMessage::Response { id, outcome } => match session_of(site, &subject, &headers) {
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
async fn read(site: &Site, incoming: Incoming) -> Result<Bytes, HttpResponse> {
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

/// A stream to listen on, or the rest of one that was lost.
fn get(site: &Arc<Site>, subject: &Arc<str>, headers: &HeaderMap) -> HttpResponse {
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
            // 404 would say that the session is gone.
            return whole(StatusCode::BAD_REQUEST, "text/plain", "there is no such stream\n");
        };
        return events(stream.follow(last.saturating_add(1), CancelToken::new()));
    }
    let (lines, mut written) = mpsc::channel::<Vec<u8>>(64);
    let (frames, read) = mpsc::channel(16);
    let changes = site.server.hub.subscribe();
    let listening = session.listen();
    tokio::spawn({
        let closing = listening.over.clone();
        let session = session.session.clone();
        async move {
            tokio::select! {
                () = hub::announce_to_session(changes, &session, &lines) => {}
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
                () = listening.over.cancelled() => return,
                () = frames.closed() => return,
            };
            if frames.send(frame).await.is_err() {
                return;
            }
        }
    });
    events(ResponseBody::Events { frames: read, _gone: None })
}

fn delete(site: &Site, subject: &Arc<str>, headers: &HeaderMap) -> HttpResponse {
    match text(headers, &SESSION) {
        Some(id) if site.sessions.end(id, subject) => whole(StatusCode::NO_CONTENT, "text/plain", ""),
        Some(_) => whole(StatusCode::NOT_FOUND, "text/plain", "there is no such session\n"),
        None => whole(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "there is no session to end\n"),
    }
}
