//! Security schemes of a document, and how a secret proves who asks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use toolwright_core::Secret;

use crate::request::ApiRequest;
use crate::style::Escape;

/// One way to prove who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityScheme {
    /// What the document calls it.
    pub name: String,
    /// How the secret is sent.
    pub kind: SecurityKind,
}

/// How a secret is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityKind {
    /// In a header of this name.
    Header(String),
    /// In a parameter of the query.
    Query(String),
    /// In a cookie.
    Cookie(String),
    /// `Authorization: Bearer`, also for OAuth 2 and OpenID Connect: the secret is the token.
    Bearer,
    /// `Authorization: Basic`: the secret is `user:password`.
    Basic,
    /// Another scheme of HTTP, or one that is not known; nothing can be sent for it.
    Unsupported(String),
}

/// The schemes of a document.
pub(crate) fn schemes(root: &Value) -> Vec<SecurityScheme> {
    let all = root.pointer("/components/securitySchemes").and_then(Value::as_object);
    let scheme = |(name, scheme): (&String, &Value)| {
        let scheme = crate::pointer::resolved(root, scheme).unwrap_or(scheme);
        SecurityScheme { name: name.clone(), kind: kind(scheme) }
    };
    all.into_iter().flatten().map(scheme).collect()
}

fn kind(scheme: &Value) -> SecurityKind {
    let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = || text("name").to_owned();
    match (text("type"), text("in"), text("scheme").to_ascii_lowercase().as_str()) {
        ("apiKey", "header", _) => SecurityKind::Header(name()),
        ("apiKey", "query", _) => SecurityKind::Query(name()),
        ("apiKey", "cookie", _) => SecurityKind::Cookie(name()),
        ("http", _, "bearer") | ("oauth2" | "openIdConnect", ..) => SecurityKind::Bearer,
        ("http", _, "basic") => SecurityKind::Basic,
        ("http", _, other) => SecurityKind::Unsupported(format!("http {other}")),
        (other, ..) => SecurityKind::Unsupported(other.to_owned()),
    }
}

/// The names of schemes in each alternative of a `security` list; an empty one means that nothing is needed.
pub(crate) fn alternatives(operation: &Value, root: &Value) -> Vec<Vec<String>> {
    let list = operation.get("security").or_else(|| root.get("security")).and_then(Value::as_array);
    let names = |one: &Value| one.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    list.into_iter().flatten().map(names).collect()
}

impl SecurityKind {
    /// Adds the secret to a request. False when it cannot be sent so.
    pub(crate) fn apply(&self, request: &mut ApiRequest, secret: &Secret) -> bool {
        let secret = secret.expose();
        let fits = !secret.is_empty() && secret.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        match self {
            SecurityKind::Unsupported(_) => return false,
            SecurityKind::Query(name) => {
                request.add_query(&Escape::Strict.apply(name), &Escape::Strict.apply(secret));
            }
            _ if !fits => return false,
            SecurityKind::Header(name) => request.set_header(name, secret),
            SecurityKind::Cookie(name) => request.add_cookie(name, &Escape::Strict.apply(secret)),
            SecurityKind::Bearer => request.set_header("authorization", &format!("Bearer {secret}")),
            SecurityKind::Basic => {
                request.set_header("authorization", &format!("Basic {}", STANDARD.encode(secret)));
            }
        }
        true
    }
}
