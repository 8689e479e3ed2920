//! `elicitation/create`: a question of a server to the user of a client.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient::lenient;

/// `elicitation/create`. Without a mode it is a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ElicitParams {
    /// Asks to open a page.
    #[serde(rename_all = "camelCase")]
    Page {
        /// Always `url`.
        mode: PageMode,
        message: String,
        url: String,
        elicitation_id: String,
    },
    /// Asks to fill in a form: a flat object of plain values.
    #[serde(rename_all = "camelCase")]
    Form { message: String, requested_schema: Value },
}

/// The mode of a question that asks to open a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PageMode {
    Url,
}

/// The answer to `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ElicitResult {
    pub(crate) action: ElicitAction,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Map<String, Value>>,
}

/// What the user did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ElicitAction {
    Accept,
    Decline,
    Cancel,
}
