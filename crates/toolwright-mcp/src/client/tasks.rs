//! Tools that a server runs as tasks only (revision 2025-11-25): the call makes a task, which is looked at until it is over,
//! and then its result is asked for.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolwright_core::text;

use super::Client;
use super::caller::Caller;
use super::connection::Ask;
use crate::error::{McpError, McpErrorKind};

/// How often a task is looked at when the server does not say, and the bounds of what it may say.
const POLL: Duration = Duration::from_secs(1);
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(10);

impl Client {
    /// Whether a tool is run as a task only.
    pub(super) fn runs_as_task(&self, tool: &str) -> bool {
        let offers = self.greeting.capabilities.pointer("/tasks/requests/tools/call").is_some();
        offers && self.tasked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains(tool)
    }

    /// Calls a tool as a task. Whoever gives up on it has the server told.
    pub(super) async fn call_as_task(
        &self,
        caller: Option<&Arc<Caller>>,
        ask: Ask<'_>,
    ) -> Result<Value, McpError> {
        let Ask { method, mut params, timeout, progress, headers } = ask;
        let until = Instant::now() + timeout.min(Duration::from_secs(365 * 24 * 3600));
        let left = || until.saturating_duration_since(Instant::now());
        let late =
            || McpError::new(McpErrorKind::Timeout, format!("the task was not done within {timeout:?}"));
        if let Value::Object(members) = &mut params {
            let lives = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            members.insert("task".to_owned(), json!({"ttl": lives}));
        }
        let made = Ask { method, params, timeout, progress: progress.clone(), headers };
        let made = self.request_for(caller, made).await?;
        let Some(mut task) = made.get("task").cloned() else {
            // It answered at once.
            return Ok(made);
        };
        let Some(id) = task.get("taskId").and_then(Value::as_str).map(str::to_owned) else {
            return Err(McpError::new(McpErrorKind::Protocol, "the task the server made has no id"));
        };
        let mut running = Running { client: self, id: &id, over: false };
        let about = json!({"taskId": id});
        let (mut looks, mut told) = (0.0, None);
        while task.get("status").and_then(Value::as_str) == Some("working") {
            let said = task.get("statusMessage").and_then(Value::as_str).map(|said| text::clip(said, 1000));
            looks += 1.0;
            if let (Some(progress), Some(_)) = (&progress, said.as_ref().filter(|_| said != told)) {
                progress(looks, None, said.clone());
            }
            told = said;
            tokio::time::sleep(poll(&task).min(left())).await;
            if left().is_zero() {
                return Err(late());
            }
            let look = Ask::new("tasks/get", about.clone(), left().min(self.options.request_timeout));
            task = self.request_for(caller, look).await?;
        }
        // A task that waits for an answer asks for it while its result is waited for.
        let result = self.request_for(caller, Ask::new("tasks/result", about, left())).await;
        running.over = !matches!(&result, Err(error) if error.kind() == McpErrorKind::Timeout);
        result
    }
}

fn poll(task: &Value) -> Duration {
    let said = task.get("pollInterval").and_then(Value::as_u64).map(Duration::from_millis);
    said.unwrap_or(POLL).clamp(SHORTEST_POLL, LONGEST_POLL)
}

/// A task that is told to stop when nobody waits for it any more.
struct Running<'a> {
    client: &'a Client,
    id: &'a str,
    over: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.over || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (connection, about) = (self.client.connection.clone(), json!({"taskId": self.id}));
        let timeout = self.client.options.silence;
        tokio::spawn(async move {
            let _ = connection.request(Ask::new("tasks/cancel", about, timeout)).await;
        });
    }
}
