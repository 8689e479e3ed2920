//! `completion/complete`.

use serde::{Deserialize, Serialize};

use super::lenient::lenient;

/// `completion/complete`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CompleteParams {
    #[serde(rename = "ref")]
    pub(crate) reference: Reference,
    pub(crate) argument: CompletedArgument,
}

/// The prompt or resource template whose argument is completed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum Reference {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

/// The argument, as far as it was typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CompletedArgument {
    pub(crate) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) value: String,
}

/// The answer to `completion/complete`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CompleteResult {
    pub(crate) completion: Completion,
}

/// The proposed values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Completion {
    pub(crate) values: Vec<String>,
    pub(crate) total: usize,
    pub(crate) has_more: bool,
}
