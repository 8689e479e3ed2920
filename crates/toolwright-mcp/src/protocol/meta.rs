//! `_meta` of requests: progress in both eras, and in the one without sessions what `initialize` says in the
//! other.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient::{lenient, object};
use super::{
    CLIENT_CAPABILITIES_KEY, ClientCapabilities, Implementation, LogLevel, SERVER_INFO_KEY,
    STATELESS_VERSION, VERSION_KEY,
};
use crate::jsonrpc::{INVALID_PARAMS, RpcError};

/// Names a request in the progress notifications of its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ProgressToken {
    /// A number. Fractions are not in the protocol, but there are clients that send them.
    Number(serde_json::Number),
    /// A text.
    Text(String),
}

impl ProgressToken {
    /// The token as one of our own requests has it.
    pub(crate) fn as_id(&self) -> Option<i64> {
        match self {
            ProgressToken::Number(number) => number.as_i64(),
            ProgressToken::Text(_) => None,
        }
    }
}

/// `_meta` of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RequestMeta {
    #[serde(rename = "progressToken", deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) progress_token: Option<ProgressToken>,
    /// The revision: kept as it came, since an answer repeats one that is not supported.
    #[serde(
        rename = "io.modelcontextprotocol/protocolVersion",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) version: Option<Value>,
    #[serde(
        rename = "io.modelcontextprotocol/clientInfo",
        deserialize_with = "object",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) client_info: Option<Implementation>,
    #[serde(
        rename = "io.modelcontextprotocol/clientCapabilities",
        deserialize_with = "object",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) capabilities: Option<ClientCapabilities>,
    /// The least important log messages that the request wants.
    #[serde(
        rename = "io.modelcontextprotocol/logLevel",
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) log_level: Option<LogLevel>,
}

/// Reads `null` as a value: a revision that is `null` was named, and is not one.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl RequestMeta {
    /// Takes `_meta` out of a request's parameters. One that is not an object counts as absent.
    pub(crate) fn take(params: &mut Value) -> Self {
        match params.as_object_mut().and_then(|members| members.remove("_meta")) {
            Some(meta @ Value::Object(_)) => serde_json::from_value(meta).unwrap_or_default(),
            _ => RequestMeta::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == RequestMeta::default()
    }

    /// The capabilities of a client without a session, whose request must name our revision and them.
    pub(crate) fn introduction(&mut self) -> Result<ClientCapabilities, RpcError> {
        let Some(version) = &self.version else {
            return Err(RpcError::new(INVALID_PARAMS, format!("`_meta` needs `{VERSION_KEY}`, a string")));
        };
        if version.as_str() != Some(STATELESS_VERSION) {
            return Err(RpcError::unsupported_version(version));
        }
        self.capabilities.take().ok_or_else(|| {
            let message = format!("`_meta` needs `{CLIENT_CAPABILITIES_KEY}`, an object");
            RpcError::new(INVALID_PARAMS, message)
        })
    }
}

/// The name and version of the server in `_meta` of a result (2026-07-28).
pub(crate) fn server_info(result: &Value) -> Option<Implementation> {
    Implementation::deserialize(result.get("_meta")?.get(SERVER_INFO_KEY)?).ok()
}
