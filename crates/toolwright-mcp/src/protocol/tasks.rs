//! Tasks: the experimental ones of 2025-11-25, where a client asks for them, and the extension of 2026-07-28,
//! where a server decides.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ResultMessage;
use super::lenient::lenient;
use crate::jsonrpc::RpcError;

/// Asks for a task in place of a result (2025-11-25).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskMetadata {
    /// For how long the task is wanted, in milliseconds.
    pub(crate) ttl: u64,
}

/// `tasks/get`, `tasks/cancel` and `tasks/result`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskParams {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) task_id: String,
}

/// `tasks/update`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpdateTaskParams {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) task_id: String,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) input_responses: Option<Map<String, Value>>,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

/// A task as our server describes it (2026-07-28).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateTaskResult {
    pub(crate) task_id: String,
    pub(crate) status: TaskStatus,
    /// When it was made and when it last changed, as ISO 8601 in UTC.
    pub(crate) created_at: String,
    pub(crate) last_updated_at: String,
    /// For how long it is kept, in milliseconds.
    pub(crate) ttl_ms: u64,
    /// How often a client should look, in milliseconds.
    pub(crate) poll_interval_ms: u64,
}

/// The answer to `tasks/get` (2026-07-28): the task with its outcome or its questions.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DetailedTask {
    #[serde(flatten)]
    pub(crate) task: CreateTaskResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Box<ResultMessage>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<RpcError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_requests: Option<Map<String, Value>>,
}

/// A task as a server of either era describes it to our client. An unknown state counts as absent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Task {
    #[serde(deserialize_with = "lenient")]
    pub(crate) task_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) status: Option<TaskStatus>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) status_message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    poll_interval_ms: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    poll_interval: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error: Option<RpcError>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) input_requests: Map<String, Value>,
    #[serde(skip)]
    pub(crate) result: Value,
}

impl Task {
    /// Reads the description of a task. Its result is moved, however large it is.
    pub(crate) fn read(task: Value) -> Self {
        let Value::Object(mut members) = task else { return Task::default() };
        let result = members.remove("result").unwrap_or_default();
        Task { result, ..serde_json::from_value(Value::Object(members)).unwrap_or_default() }
    }

    /// How often the server wants to be asked, in milliseconds. The eras name it differently.
    pub(crate) fn poll_interval(&self) -> Option<u64> {
        self.poll_interval_ms.or(self.poll_interval)
    }
}
