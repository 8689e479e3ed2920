//! `subscriptions/listen` (2026-07-28).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient::lenient;
use crate::jsonrpc::{INVALID_PARAMS, RpcError};

/// `subscriptions/listen`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ListenParams {
    pub(crate) notifications: SubscriptionFilter,
}

/// The notifications that a stream carries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SubscriptionFilter {
    #[serde(deserialize_with = "lenient", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tools_list_changed: bool,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) prompts_list_changed: bool,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) resources_list_changed: bool,
    /// The resources whose changes are wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_subscriptions: Vec<String>,
    /// The tasks whose changes are wanted. We announce none; a client without the extension may not ask for
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task_ids: Option<Value>,
}

impl ListenParams {
    /// The most resources that one stream watches.
    const MAX_WATCHED: usize = 1000;

    /// Reads the parameters.
    pub(super) fn read(mut params: Map<String, Value>) -> Result<Self, RpcError> {
        let invalid = |message: String| RpcError::new(INVALID_PARAMS, message);
        let Some(Value::Object(mut wanted)) = params.remove("notifications") else {
            return Err(invalid(
                "`notifications` must be an object that names what to listen for".to_owned(),
            ));
        };
        let watched = wanted.remove("resourceSubscriptions").map(serde_json::from_value::<Vec<String>>);
        let mut notifications: SubscriptionFilter =
            serde_json::from_value(Value::Object(wanted)).unwrap_or_default();
        notifications.resource_subscriptions = match watched {
            None => Vec::new(),
            Some(Ok(uris)) if uris.len() <= Self::MAX_WATCHED => uris,
            Some(_) => {
                let most = Self::MAX_WATCHED;
                return Err(invalid(format!(
                    "`resourceSubscriptions` must be a list of at most {most} strings"
                )));
            }
        };
        Ok(ListenParams { notifications })
    }
}
