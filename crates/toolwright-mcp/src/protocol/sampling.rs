//! `sampling/createMessage` and `roots/list`: what a server may ask of a client beside its user.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient::lenient;

/// `sampling/createMessage`. Messages and preferences pass through.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SampleParams {
    pub(crate) messages: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system_prompt: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stop_sequences: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model_preferences: Option<Value>,
    pub(crate) max_tokens: u64,
}

/// The answer to `sampling/createMessage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SampleResult {
    /// One block, or several where tools are used.
    pub(crate) content: Value,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) stop_reason: Option<String>,
}

/// The answer to `roots/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RootsResult {
    pub(crate) roots: Vec<Value>,
}
