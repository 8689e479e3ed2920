//! How failures of a vendor become a [`ModelError`]. Nothing here ever shows a key: whatever text comes from
//! outside is clipped, and known keys are taken out of it.

use serde_json::Value;
use toolwright_core::{ModelError, ModelErrorKind, Secret, text};

/// How much of a server's own words an error shows.
const SHOWN: usize = 500;

/// A reply that cannot be understood.
pub(crate) fn reply(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Reply, message)
}

/// A request that cannot be made.
pub(crate) fn request(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Request, message)
}

/// A server that failed, or could not be reached.
pub(crate) fn unavailable(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Unavailable, message)
}

/// What an HTTP status means.
pub(crate) fn from_status(status: u16, body: &[u8], secrets: &[Secret]) -> ModelError {
    let kind = match status {
        401 | 403 => ModelErrorKind::Auth,
        429 => ModelErrorKind::RateLimit,
        // 424 is Bedrock's word for a model that failed.
        408 | 409 | 424 | 500.. => ModelErrorKind::Unavailable,
        _ => ModelErrorKind::Request,
    };
    let said = String::from_utf8_lossy(body.get(..body.len().min(64 * 1024)).unwrap_or_default());
    let said = match serde_json::from_slice::<Value>(body).ok().as_ref().and_then(message_in) {
        Some(message) => message,
        None => said.into_owned(),
    };
    let kind = if kind == ModelErrorKind::Request { or_overflow(kind, &said) } else { kind };
    let said = shown(&said, secrets);
    let text = if said.is_empty() {
        format!("the server answered {status}")
    } else {
        format!("the server answered {status}: {said}")
    };
    ModelError::new(kind, text)
}

/// An error that a server reports inside an otherwise fine reply or stream, by its type or code.
pub(crate) fn from_event(error: &Value) -> ModelError {
    let word = |key| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let code = error.get("code").and_then(Value::as_u64).unwrap_or_default();
    let kind = match (word("type"), word("code"), word("status"), code) {
        ("authentication_error" | "permission_error", ..) | (.., 401 | 403) => ModelErrorKind::Auth,
        ("rate_limit_error", ..) | (_, "rate_limit_exceeded", ..) | (.., 429) => ModelErrorKind::RateLimit,
        ("invalid_request_error" | "not_found_error" | "request_too_large", ..) | (.., 400 | 404 | 413) => {
            ModelErrorKind::Request
        }
        _ => ModelErrorKind::Unavailable,
    };
    let said = message_in(error).unwrap_or_else(|| error.to_string());
    let kind = or_overflow(kind, &format!("{} {said}", word("code")));
    ModelError::new(kind, format!("the server reported an error: {}", shown(&said, &[])))
}

/// The kind, unless the words say that the conversation is too long.
pub(crate) fn or_overflow(kind: ModelErrorKind, said: &str) -> ModelErrorKind {
    let vague = matches!(kind, ModelErrorKind::Request | ModelErrorKind::Unavailable);
    if vague && is_overflow(said) { ModelErrorKind::ContextLength } else { kind }
}

/// How vendors say that a conversation is too long: there is no common code for it.
fn is_overflow(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    [
        "context_length_exceeded",
        "maximum context length",
        "context window",
        "prompt is too long",
        "input is too long",
        "exceeds the available context size",
        "input token count",
        "too many tokens in",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// What the name of one of Amazon's exceptions means.
pub(crate) fn aws_kind(name: &str) -> Option<ModelErrorKind> {
    Some(match name.to_ascii_lowercase().trim_end_matches("exception") {
        "throttling" | "servicequotaexceeded" | "modelnotready" => ModelErrorKind::RateLimit,
        "accessdenied" | "unrecognizedclient" | "expiredtoken" => ModelErrorKind::Auth,
        "validation" | "resourcenotfound" => ModelErrorKind::Request,
        "internalserver" | "serviceunavailable" | "modelstreamerror" | "modeltimeout" | "modelerror" => {
            ModelErrorKind::Unavailable
        }
        _ => return None,
    })
}

/// The message in the error bodies vendors send: `{error: {message}}`, `{error: text}`, `{message}`,
/// `{Message}` or `{detail}`.
fn message_in(body: &Value) -> Option<String> {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let inner = body.get("error").filter(|inner| !inner.is_null()).unwrap_or(body);
    let message = inner
        .get("message")
        .or_else(|| inner.get("Message"))
        .or_else(|| inner.get("detail"))
        .unwrap_or(inner);
    let message = match message {
        Value::String(message) => message.clone(),
        other => other.to_string(),
    };
    let kind = inner.get("type").and_then(Value::as_str);
    Some(match kind {
        Some(kind) if kind != "error" && !message.contains(kind) => format!("{message} ({kind})"),
        _ => message,
    })
}

/// Text from outside, fit to be shown: one line, clipped, without control characters and without keys.
pub(crate) fn shown(said: &str, secrets: &[Secret]) -> String {
    let mut said = said.trim().to_owned();
    for secret in secrets.iter().filter(|secret| !secret.expose().is_empty()) {
        said = said.replace(secret.expose(), "[secret]");
    }
    let said: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text::clip(&said, SHOWN)
}

/// The same error without keys, should any have found their way into its text.
pub(crate) fn scrub(error: ModelError, secrets: &[Secret]) -> ModelError {
    let text = error.to_string();
    let leaks = |secret: &&Secret| !secret.expose().is_empty() && text.contains(secret.expose());
    match secrets.iter().find(leaks) {
        None => error,
        Some(_) => ModelError::new(error.kind(), shown(&text, secrets)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_repeats_the_key_does_not_make_us_repeat_it() {
        let key = Secret::new("sk-very-secret");
        let body = br#"{"error": {"message": "bad key sk-very-secret", "type": "authentication_error"}}"#;
        let error = from_status(401, body, &[key]);
        assert_eq!(error.kind(), ModelErrorKind::Auth);
        assert_eq!(error.to_string(), "the server answered 401: bad key [secret] (authentication_error)");
    }

    #[test]
    fn every_known_shape_of_error_gives_its_message() {
        for (body, wanted) in [
            (r#"{"error": "plain"}"#, "the server answered 400: plain"),
            (r#"{"message": "m"}"#, "the server answered 400: m"),
            (r#"{"detail": "d"}"#, "the server answered 400: d"),
            (r#"[{"error": {"message": "listed", "code": 400}}]"#, "the server answered 400: listed"),
            ("<html>\nno</html>", "the server answered 400: <html> no</html>"),
            ("", "the server answered 400"),
        ] {
            assert_eq!(from_status(400, body.as_bytes(), &[]).to_string(), wanted);
        }
    }
}
