//! HTTP responses, and the headers of requests.

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::ResponseBody;
use super::gate::GateRefusal;
use crate::jsonrpc::{
    self, BUSY, HEADER_MISMATCH, INVALID_REQUEST, Id, METHOD_NOT_FOUND, MISSING_CAPABILITY, RpcError,
    UNSUPPORTED_VERSION,
};
use crate::server::Era;
use crate::server::response::Response as RpcResponse;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

pub(super) type HttpResponse = Response<ResponseBody>;

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = text(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    let accept = text(headers, &header::ACCEPT).unwrap_or("*/*").to_ascii_lowercase();
    ["text/event-stream", "text/*", "*/*"].iter().any(|kind| accept.contains(kind))
}

/// The status of an answer. Only errors of the protocol have one of their own, and only without a session: in
/// one, 404 means that it is gone, and clients take any other failure for one of the connection.
pub(super) fn status_of(response: &RpcResponse, era: Era) -> StatusCode {
    match response {
        RpcResponse::Error(error) if era.is_stateless() => match error.code {
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

pub(super) fn refused(refusal: &GateRefusal) -> HttpResponse {
    let (status, message) = match refusal {
        GateRefusal::Host => (StatusCode::FORBIDDEN, "unknown host name"),
        GateRefusal::Origin => (StatusCode::FORBIDDEN, "this origin is not allowed"),
        GateRefusal::NoToken | GateRefusal::WrongToken => {
            (StatusCode::UNAUTHORIZED, "a valid token is required")
        }
        GateRefusal::TooFewScopes => (StatusCode::FORBIDDEN, "the token lacks a required scope"),
        GateRefusal::AuthorizationUnreachable => {
            (StatusCode::SERVICE_UNAVAILABLE, "the authorization server is unreachable; try again later")
        }
        GateRefusal::TooOften => (StatusCode::TOO_MANY_REQUESTS, "too many requests; slow down"),
    };
    let mut answer = error(status, None, RpcError::new(INVALID_REQUEST, message));
    let headers = answer.headers_mut();
    match refusal {
        GateRefusal::NoToken => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        GateRefusal::WrongToken => {
            let challenge = HeaderValue::from_static(r#"Bearer error="invalid_token""#);
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        GateRefusal::TooOften => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        GateRefusal::Host
        | GateRefusal::Origin
        | GateRefusal::TooFewScopes
        | GateRefusal::AuthorizationUnreachable => {}
    }
    answer
}

pub(super) fn preflight() -> HttpResponse {
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

pub(super) fn error(status: StatusCode, id: Option<&Id>, problem: RpcError) -> HttpResponse {
    whole(status, "application/json", jsonrpc::error(id, &problem))
}

pub(super) fn whole(status: StatusCode, kind: &'static str, content: impl Into<Bytes>) -> HttpResponse {
    let content: Bytes = content.into();
    let mut answer = Response::new(ResponseBody::Whole((!content.is_empty()).then_some(content)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

pub(super) fn events(body: ResponseBody) -> HttpResponse {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    answer
}
