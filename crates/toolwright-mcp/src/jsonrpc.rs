//! JSON-RPC 2.0 messages, read with their size, depth and number of values bounded before memory is taken.
//!
//! The meaning of methods and parameters belongs to the client and the server.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_core::JsonShape;
use toolwright_core::schema::{lossy_integer, repeated_key};
use toolwright_core::text::clip;

use crate::protocol::STATELESS_VERSION;

/// The longest message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// The greatest nesting depth of a message.
pub const MAX_MESSAGE_DEPTH: usize = 100;

/// How many values a message may hold. A line of `[0,0,0,…]` takes over thirty times its length in memory, so
/// a bound on the length is not enough.
pub const MAX_MESSAGE_VALUES: usize = 200_000;

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// More calls at once than the server takes.
pub(crate) const BUSY: i64 = -32000;
/// A resource that does not exist, in the revisions with sessions.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
/// A session that the server does not know; the official packages use this code.
pub(crate) const SESSION_NOT_FOUND: i64 = -32001;
/// A header contradicts the body (2026-07-28).
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The client lacks something the request needs (2026-07-28).
pub(crate) const MISSING_CAPABILITY: i64 = -32021;
/// The requested revision is not supported (2026-07-28).
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// The id of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Id {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}

/// One message, of a client or of a server.
#[derive(Debug, PartialEq)]
pub(crate) enum RpcMessage {
    Request { id: Id, method: String, params: Value },
    Notification { method: String, params: Value },
    Response { id: Id, outcome: Result<Value, RpcError> },
}

/// The error member of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RpcError {
    /// The kind of error.
    pub code: i64,
    /// The problem, for people.
    #[serde(default)]
    pub message: String,
    /// Details, by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        RpcError { code, message: message.into(), data: None }
    }

    /// The error for a request in a revision that has no sessions and is not ours.
    pub(crate) fn unsupported_version(requested: &Value) -> Self {
        let data = json!({"supported": [STATELESS_VERSION], "requested": requested});
        RpcError { data: Some(data), ..RpcError::new(UNSUPPORTED_VERSION, "unsupported protocol version") }
    }
}

/// The reason why a line is not a message. The id is that of the request or response, when it could be read.
#[derive(Debug, PartialEq)]
pub(crate) struct Malformed {
    pub(crate) code: i64,
    pub(crate) problem: String,
    pub(crate) id: Option<Id>,
}

/// Reads one message.
pub(crate) fn parse(line: &[u8]) -> Result<RpcMessage, Malformed> {
    let broken = |code, problem: String| Malformed { code, problem, id: None };
    check_shape(line).map_err(|problem| broken(INVALID_REQUEST, problem))?;
    let value: Value =
        serde_json::from_slice(line).map_err(|error| broken(PARSE_ERROR, format!("not JSON: {error}")))?;
    let Value::Object(mut members) = value else {
        let problem =
            if value.is_array() { "batches are not supported" } else { "a message must be a JSON object" };
        return Err(broken(INVALID_REQUEST, problem.to_owned()));
    };
    let raw_id = members.remove("id");
    let id = raw_id.clone().and_then(|id| serde_json::from_value::<Id>(id).ok());
    let malformed =
        |problem: &str| Malformed { code: INVALID_REQUEST, problem: problem.to_owned(), id: id.clone() };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(malformed("`jsonrpc` must be \"2.0\""));
    }
    let params = members.remove("params").unwrap_or(Value::Null);
    match members.remove("method") {
        Some(Value::String(method)) => match (raw_id, id.clone()) {
            (None, _) => Ok(RpcMessage::Notification { method, params }),
            (Some(_), Some(id)) if method == "tools/call" => match lossy(line) {
                // An argument would not be what was sent.
                Some(problem) => Err(Malformed { code: INVALID_PARAMS, problem, id: Some(id) }),
                None => Ok(RpcMessage::Request { id, method, params }),
            },
            (Some(_), Some(id)) => Ok(RpcMessage::Request { id, method, params }),
            (Some(_), None) => Err(malformed("an id must be a string or an integer")),
        },
        Some(_) => Err(malformed("`method` must be a string")),
        None => {
            let Some(known) = id.clone() else {
                return Err(malformed("neither a request nor a response with an id"));
            };
            let outcome = match (members.remove("result"), members.remove("error")) {
                (Some(result), None) => Ok(result),
                (None, Some(error)) => {
                    Err(serde_json::from_value(error).map_err(|_| malformed("`error` has no code"))?)
                }
                (Some(_), Some(_)) => return Err(malformed("both a result and an error")),
                (None, None) => return Err(malformed("neither a result nor an error")),
            };
            Ok(RpcMessage::Response { id: known, outcome })
        }
    }
}

/// What of a call would be lost when it is read.
fn lossy(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    if let Some(number) = lossy_integer(text) {
        let number = clip(number, 100);
        return Some(format!("the number {number} has more digits than can be kept; send it as a string"));
    }
    repeated_key(text).map(|key| format!("the key `{}` is there twice", clip(&key, 100)))
}

/// Checks the shape before memory is taken for the values.
fn check_shape(line: &[u8]) -> Result<(), String> {
    let shape = JsonShape::of(line);
    if shape.depth > MAX_MESSAGE_DEPTH {
        return Err(format!("nested more than {MAX_MESSAGE_DEPTH} deep"));
    }
    if shape.values > MAX_MESSAGE_VALUES {
        return Err(format!("more than {MAX_MESSAGE_VALUES} values"));
    }
    Ok(())
}

/// The line of a request.
pub(crate) fn request(id: &Id, method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'r, P> {
        jsonrpc: &'static str,
        id: &'r Id,
        method: &'r str,
        params: &'r P,
    }
    line(&Request { jsonrpc: "2.0", id, method, params })
}

/// The line of a notification.
pub(crate) fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'n, P> {
        jsonrpc: &'static str,
        method: &'n str,
        params: &'n P,
    }
    line(&Notification { jsonrpc: "2.0", method, params })
}

/// The line of a response that has a result.
pub(crate) fn result(id: &Id, result: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'r, R> {
        jsonrpc: &'static str,
        id: &'r Id,
        result: &'r R,
    }
    line(&Response { jsonrpc: "2.0", id, result })
}

/// The line of a response that is an error; without an id when the request had none that could be read.
pub(crate) fn error(id: Option<&Id>, error: &RpcError) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'r> {
        jsonrpc: &'static str,
        id: Option<&'r Id>,
        error: &'r RpcError,
    }
    line(&Response { jsonrpc: "2.0", id, error })
}

/// One line: compact JSON holds no line break.
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(message).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: &str) -> (i64, Option<Id>) {
        let malformed = parse(line.as_bytes()).unwrap_err();
        (malformed.code, malformed.id)
    }

    #[test]
    fn a_call_with_a_number_that_reading_would_change_is_refused() {
        let line = |method: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{"arguments":{{"id":123456789012345678901234}}}}}}"#
            )
        };
        assert_eq!(problem(&line("tools/call")), (INVALID_PARAMS, Some(Id::Number(7))));
        assert!(parse(line("other").as_bytes()).is_ok());
    }

    /// F23.
    #[test]
    fn a_call_with_a_key_twice_is_refused() {
        let line = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"a":1,"a":2}}}"#;
        assert_eq!(problem(line), (INVALID_PARAMS, Some(Id::Number(7))));
    }

    #[test]
    fn each_kind_of_message_is_read() {
        assert_eq!(
            parse(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).unwrap(),
            RpcMessage::Request { id: Id::Number(1), method: "ping".into(), params: Value::Null }
        );
        assert_eq!(
            parse(br#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#).unwrap(),
            RpcMessage::Notification { method: "x".into(), params: json!({"a": 1}) }
        );
        assert_eq!(
            parse(br#"{"jsonrpc":"2.0","id":"a","result":{}}"#).unwrap(),
            RpcMessage::Response { id: Id::Text("a".into()), outcome: Ok(json!({})) }
        );
        let error = parse(br#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"m"}}"#).unwrap();
        assert_eq!(error, RpcMessage::Response { id: Id::Number(3), outcome: Err(RpcError::new(-1, "m")) });
    }

    #[test]
    fn what_is_no_message_says_why_and_for_whom() {
        assert_eq!(problem("{"), (PARSE_ERROR, None));
        assert_eq!(problem("[]"), (INVALID_REQUEST, None));
        assert_eq!(problem("3"), (INVALID_REQUEST, None));
        assert_eq!(problem(r#"{"id":1,"method":"ping"}"#), (INVALID_REQUEST, Some(Id::Number(1))));
        assert_eq!(problem(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), (INVALID_REQUEST, None));
        assert_eq!(problem(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), (INVALID_REQUEST, None));
        let both = r#"{"jsonrpc":"2.0","id":7,"result":1,"error":{"code":1}}"#;
        assert_eq!(problem(both), (INVALID_REQUEST, Some(Id::Number(7))));
    }

    #[test]
    fn depth_and_number_of_values_are_bounded_before_parsing() {
        assert_eq!(problem(&"[".repeat(1_000_000)).0, INVALID_REQUEST);
        let many = format!("[{}0]", "0,".repeat(MAX_MESSAGE_VALUES));
        assert!(parse(many.as_bytes()).unwrap_err().problem.contains("values"));
        // Brackets inside a text are only text.
        let text = json!({"jsonrpc": "2.0", "method": "m", "params": "[\"\\".repeat(1000)}).to_string();
        assert!(parse(text.as_bytes()).is_ok());
    }
}
