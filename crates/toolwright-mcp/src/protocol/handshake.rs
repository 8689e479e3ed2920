//! `initialize`, `server/discover`, and the capabilities of both sides.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient::{lenient, object, or_default};
use crate::jsonrpc::{INVALID_PARAMS, RpcError};

/// The name and version that a client or server gives itself. Nothing verifies it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Implementation {
    /// The name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The version.
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl Implementation {
    /// A name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Implementation { name: name.into(), version: version.into(), title: None }
    }

    /// This library.
    pub(crate) fn ours() -> Self {
        Implementation::new("toolwright", env!("CARGO_PKG_VERSION"))
    }
}

/// An object whose members mean nothing to us: its presence is the message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Empty {}

/// The abilities that a client names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ClientCapabilities {
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub(crate) elicitation: Option<ElicitationCapability>,
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub(crate) sampling: Option<Empty>,
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub(crate) roots: Option<Empty>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Map::is_empty")]
    pub(crate) extensions: Map<String, Value>,
}

/// The ways in which a client can ask its user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ElicitationCapability {
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub(crate) form: Option<Empty>,
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<Empty>,
}

impl ElicitationCapability {
    /// True when the client takes forms. One that names no way takes them: they are older than the other way.
    pub(crate) fn takes_forms(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }
}

/// The abilities of our server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ServerCapabilities {
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<ListChanged>,
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<ResourcesCapability>,
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub(crate) prompts: Option<ListChanged>,
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub(crate) completions: Option<Empty>,
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub(crate) logging: Option<Empty>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Map::is_empty")]
    pub(crate) extensions: Map<String, Value>,
}

/// Whether changes of a list are announced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListChanged {
    #[serde(deserialize_with = "lenient")]
    pub(crate) list_changed: bool,
}

/// What a server can do with resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ResourcesCapability {
    #[serde(deserialize_with = "lenient")]
    pub(crate) list_changed: bool,
    #[serde(deserialize_with = "lenient")]
    pub(crate) subscribe: bool,
}

/// `initialize`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeParams {
    pub(crate) protocol_version: String,
    #[serde(default, deserialize_with = "object")]
    pub(crate) capabilities: ClientCapabilities,
    #[serde(default, deserialize_with = "object")]
    pub(crate) client_info: Implementation,
}

impl InitializeParams {
    /// The most bytes that a client may name as capabilities: they are kept as long as the session.
    const MAX_CAPABILITIES: usize = 64 * 1024;

    /// Reads the parameters; capabilities without bound are refused before they are kept.
    pub(crate) fn read(params: Value) -> Result<Self, RpcError> {
        let missing = || RpcError::new(INVALID_PARAMS, "`protocolVersion` is missing");
        if params.get("protocolVersion").and_then(Value::as_str).is_none() {
            return Err(missing());
        }
        let capabilities = params.get("capabilities").filter(|capabilities| capabilities.is_object());
        let most = Self::MAX_CAPABILITIES;
        if capabilities.is_some_and(|capabilities| capabilities.to_string().len() > most) {
            let problem = format!("`capabilities` has more than {most} bytes");
            return Err(RpcError::new(INVALID_PARAMS, problem));
        }
        serde_json::from_value(params).map_err(|_| missing())
    }
}

/// The answer to `initialize`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResult<C = ServerCapabilities> {
    pub(crate) protocol_version: String,
    #[serde(default)]
    pub(crate) capabilities: C,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) server_info: Implementation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<String>,
}

/// The answer to `server/discover`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiscoverResult<C = ServerCapabilities> {
    pub(crate) supported_versions: Vec<String>,
    #[serde(default)]
    pub(crate) capabilities: C,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<String>,
}
