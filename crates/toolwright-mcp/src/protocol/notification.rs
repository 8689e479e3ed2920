//! Notifications, of servers and of clients.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient::lenient;
use super::{LogMessageParams, ProgressToken, SubscriptionFilter};
use crate::jsonrpc::Id;

/// `notifications/progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressParams {
    pub(crate) progress_token: ProgressToken,
    pub(crate) progress: f64,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<f64>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// `notifications/cancelled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelledParams {
    pub(crate) request_id: Id,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// `notifications/resources/updated`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResourceUpdatedParams {
    pub(crate) uri: String,
}

/// `notifications/subscriptions/acknowledged`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AcknowledgedParams {
    pub(crate) notifications: SubscriptionFilter,
}

/// A notification of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum ServerNotification {
    ToolsChanged(Map<String, Value>),
    PromptsChanged(Map<String, Value>),
    ResourcesChanged(Map<String, Value>),
    ResourceUpdated(ResourceUpdatedParams),
    Acknowledged(AcknowledgedParams),
    Progress(ProgressParams),
    LogMessage(LogMessageParams),
    Cancelled(CancelledParams),
}

impl ServerNotification {
    /// Reads a notification; `None` for one that we do not know or cannot use, which the protocol has us
    /// ignore.
    pub(crate) fn read(method: &str, params: Value) -> Option<Self> {
        use ServerNotification as N;
        let object = |params: Value| params.as_object().is_some().then_some(params);
        Some(match method {
            "notifications/tools/list_changed" => N::ToolsChanged(Map::new()),
            "notifications/prompts/list_changed" => N::PromptsChanged(Map::new()),
            "notifications/resources/list_changed" => N::ResourcesChanged(Map::new()),
            "notifications/resources/updated" => {
                N::ResourceUpdated(serde_json::from_value(object(params)?).ok()?)
            }
            "notifications/subscriptions/acknowledged" => {
                N::Acknowledged(serde_json::from_value(object(params)?).ok()?)
            }
            "notifications/progress" => N::Progress(serde_json::from_value(object(params)?).ok()?),
            "notifications/message" => N::LogMessage(serde_json::from_value(object(params)?).ok()?),
            "notifications/cancelled" => N::Cancelled(serde_json::from_value(object(params)?).ok()?),
            _ => return None,
        })
    }

    pub(crate) fn method(&self) -> &'static str {
        match self {
            ServerNotification::ToolsChanged(_) => "notifications/tools/list_changed",
            ServerNotification::PromptsChanged(_) => "notifications/prompts/list_changed",
            ServerNotification::ResourcesChanged(_) => "notifications/resources/list_changed",
            ServerNotification::ResourceUpdated(_) => "notifications/resources/updated",
            ServerNotification::Acknowledged(_) => "notifications/subscriptions/acknowledged",
            ServerNotification::Progress(_) => "notifications/progress",
            ServerNotification::LogMessage(_) => "notifications/message",
            ServerNotification::Cancelled(_) => "notifications/cancelled",
        }
    }

    /// The address of a resource changed its content.
    pub(crate) fn resource_updated(uri: String) -> Self {
        ServerNotification::ResourceUpdated(ResourceUpdatedParams { uri })
    }

    pub(crate) fn acknowledged(notifications: SubscriptionFilter) -> Self {
        ServerNotification::Acknowledged(AcknowledgedParams { notifications })
    }
}

/// A notification of a client.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum ClientNotification {
    Initialized(Map<String, Value>),
    Cancelled(CancelledParams),
    RootsChanged(Map<String, Value>),
}

impl ClientNotification {
    /// Reads a notification; `None` for one that we do not know or cannot use, which the protocol has us
    /// ignore.
    pub(crate) fn read(method: &str, params: Value) -> Option<Self> {
        Some(match method {
            "notifications/initialized" => ClientNotification::Initialized(Map::new()),
            "notifications/roots/list_changed" => ClientNotification::RootsChanged(Map::new()),
            "notifications/cancelled" if params.is_object() => {
                ClientNotification::Cancelled(serde_json::from_value(params).ok()?)
            }
            _ => return None,
        })
    }

    pub(crate) fn method(&self) -> &'static str {
        match self {
            ClientNotification::Initialized(_) => "notifications/initialized",
            ClientNotification::Cancelled(_) => "notifications/cancelled",
            ClientNotification::RootsChanged(_) => "notifications/roots/list_changed",
        }
    }
}
