//! Consistency of the headers that repeat parts of the body, so that proxies can route without reading it
//! (2026-07-28). A header that contradicts the body is refused: otherwise a proxy and the server would act on
//! different requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use serde_json::Value;
use toolwright_core::ToolSpec;

use crate::jsonrpc::{HEADER_MISMATCH, RpcError};
use crate::protocol::PARAMETER_HEADER;

/// Checks the header for the method.
pub(super) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    same(headers, "mcp-method", method)
}

/// Checks the header for the name of the tool, prompt, resource or task.
pub(super) fn check_name(headers: &HeaderMap, name: &str) -> Result<(), RpcError> {
    same(headers, "mcp-name", name)
}

/// Checks the headers of arguments whose schema names a header.
pub(super) fn check_arguments(
    headers: &HeaderMap,
    spec: &ToolSpec,
    arguments: &Value,
) -> Result<(), RpcError> {
    let Some(properties) = spec.parameters.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (name, schema) in properties {
        let Some(suffix) = schema.get(PARAMETER_HEADER).and_then(Value::as_str) else { continue };
        let header = format!("mcp-param-{}", suffix.to_ascii_lowercase());
        let value = match arguments.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
        };
        match value {
            Some(value) => same(headers, &header, &value)?,
            None if headers.contains_key(&header) => {
                return Err(mismatch(&format!(
                    "the header `{header}` repeats an argument that the body lacks"
                )));
            }
            None => {}
        }
    }
    Ok(())
}

fn same(headers: &HeaderMap, header: &str, wanted: &str) -> Result<(), RpcError> {
    let mut values = headers.get_all(header).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(mismatch(&format!("the header `{header}` must be present exactly once")));
    };
    let decoded = value.to_str().ok().and_then(decode);
    if decoded.as_deref() == Some(wanted) {
        return Ok(());
    }
    Err(mismatch(&format!("the header `{header}` contradicts the body")))
}

/// Decodes a header's value: plain text, or Base64 between `=?base64?` and `?=`.
fn decode(value: &str) -> Option<String> {
    let value = value.trim_matches([' ', '\t']);
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

pub(super) fn mismatch(message: &str) -> RpcError {
    RpcError::new(HEADER_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_themselves_or_base64() {
        assert_eq!(decode(" Hello "), Some("Hello".into()));
        assert_eq!(decode("=?base64?SGVsbG8=?="), Some("Hello".into()));
        assert_eq!(decode("=?base64?SGVsbG8="), Some("=?base64?SGVsbG8=".into()));
        assert_eq!(decode("SGVsbG8="), Some("SGVsbG8=".into()));
        for bad in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?="] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
