//! The tasks extension: calls that go on after their request was answered, and are looked at from time to time.
//!
//! Tasks live in this process. They are kept for an hour, and there is a bound on how many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use toolwright_core::time::Civil;
use toolwright_core::{CancelToken, ErrorKind, ToolError};

use super::peer::{Question, Reply};
use super::{Outcome, Request};
use crate::jsonrpc::{INVALID_PARAMS, MISSING_CAPABILITY, RpcError};
use crate::protocol::TASKS_EXTENSION;
use crate::random::random_name;

/// How long a task is kept.
pub(super) const LIFETIME: Duration = Duration::from_secs(3600);

/// How often a client should look.
const POLL: Duration = Duration::from_millis(500);

/// How many tasks are kept at once, and how many of one client.
const MAX_TASKS: usize = 1000;
const MAX_TASKS_EACH: usize = 250;

/// How many bytes of results are kept; the oldest go first.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// When the call of a tool goes on as a task, for clients that know tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSupport {
    /// When it takes longer than this; other clients wait.
    After(Duration),
    /// At once; other clients wait.
    Always,
    /// At once; other clients are refused.
    Required,
}

/// The tasks of one server.
#[derive(Clone, Default)]
pub(super) struct Tasks(Arc<Mutex<HashMap<String, Arc<Task>>>>);

pub(super) struct Task {
    id: String,
    owner: Arc<str>,
    created: (SystemTime, Instant),
    pub(super) cancel: CancelToken,
    state: Mutex<State>,
}

struct State {
    status: Status,
    updated: SystemTime,
    questions: Vec<Waiting>,
    /// How large the result is.
    bytes: usize,
}

enum Status {
    Working,
    Done(Result<Value, RpcError>),
    Cancelled,
}

struct Waiting {
    key: String,
    question: Question,
    reply: oneshot::Sender<Value>,
}

impl Tasks {
    /// A new task, known to its owner before anybody is told of it; `None` when there are too many.
    pub(super) fn create(&self, request: &Request) -> Option<Arc<Task>> {
        let mut tasks = self.tasks();
        let of_owner = |task: &Arc<Task>| task.owner == request.subject;
        if tasks.values().filter(|task| of_owner(task)).count() >= MAX_TASKS_EACH {
            drop_oldest(&mut tasks, of_owner)?;
        }
        if tasks.len() >= MAX_TASKS {
            drop_oldest(&mut tasks, |_| true)?;
        }
        let task = Arc::new(Task {
            id: random_name(),
            owner: request.subject.clone(),
            created: (SystemTime::now(), Instant::now()),
            cancel: CancelToken::new(),
            state: Mutex::new(State {
                status: Status::Working,
                updated: SystemTime::now(),
                questions: Vec::new(),
                bytes: 0,
            }),
        });
        tasks.insert(task.id.clone(), task.clone());
        Some(task)
    }

    /// Forgets a task nobody was told of, because its call was answered directly.
    pub(super) fn forget(&self, task: &Task) {
        self.tasks().remove(&task.id);
    }

    /// Notes how the work of a task ended, and drops the oldest results when there are too many bytes of them.
    pub(super) fn ended(&self, task: &Task, outcome: Outcome) {
        task.ended(outcome);
        let mut tasks = self.tasks();
        let mut kept: usize = tasks.values().map(|task| task.bytes()).sum();
        while kept > MAX_BYTES {
            let Some(gone) = drop_oldest(&mut tasks, |other| other.id != task.id) else { break };
            kept -= gone.bytes();
        }
    }

    /// The tasks that are not too old. Those that are end: their clients were told how long they may take.
    fn tasks(&self) -> MutexGuard<'_, HashMap<String, Arc<Task>>> {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|_, task| {
            let lives = task.created.1.elapsed() < LIFETIME;
            if !lives {
                task.stop();
            }
            lives
        });
        tasks
    }

    /// Answers `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(super) fn answer(&self, request: &Request, method: &str, params: &Value) -> Result<Value, RpcError> {
        if !request.client_has_extension(TASKS_EXTENSION) {
            return Err(needs_extension());
        }
        let id = params.get("taskId").and_then(Value::as_str).unwrap_or_default();
        // Another client's task is as good as none.
        let task = self.tasks().get(id).filter(|task| task.owner == request.subject).cloned();
        let task = task.ok_or_else(|| RpcError::new(INVALID_PARAMS, "there is no such task"))?;
        match method {
            "tasks/get" => Ok(task.detailed()),
            "tasks/update" => {
                let Some(answers) = params.get("inputResponses").and_then(Value::as_object) else {
                    return Err(RpcError::new(INVALID_PARAMS, "`inputResponses` must be an object"));
                };
                task.answered(answers);
                Ok(json!({}))
            }
            _ => {
                task.stop();
                Ok(json!({}))
            }
        }
    }
}

/// Drops the oldest of these tasks that is over; `None` when none is.
fn drop_oldest(tasks: &mut HashMap<String, Arc<Task>>, of: impl Fn(&Arc<Task>) -> bool) -> Option<Arc<Task>> {
    let over = tasks.values().filter(|task| task.is_over() && of(task));
    let oldest = over.min_by_key(|task| task.created.1).map(|task| task.id.clone())?;
    tasks.remove(&oldest)
}

/// The error for clients that do not know tasks.
pub(super) fn needs_extension() -> RpcError {
    let mut error = RpcError::new(MISSING_CAPABILITY, "this needs a client that knows the tasks extension");
    error.data = Some(json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}));
    error
}

impl Task {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        !matches!(self.state().status, Status::Working)
    }

    fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// The answer to the request that made the task.
    pub(super) fn created(&self) -> Value {
        let mut created = self.summary(&self.state());
        created.insert("resultType".to_owned(), json!("task"));
        created.into()
    }

    fn summary(&self, state: &State) -> Map<String, Value> {
        let status = match &state.status {
            Status::Working if !state.questions.is_empty() => "input_required",
            Status::Working => "working",
            Status::Done(Ok(_)) => "completed",
            Status::Done(Err(_)) => "failed",
            Status::Cancelled => "cancelled",
        };
        Map::from_iter([
            ("taskId".to_owned(), json!(self.id)),
            ("status".to_owned(), json!(status)),
            ("createdAt".to_owned(), json!(timestamp(self.created.0))),
            ("lastUpdatedAt".to_owned(), json!(timestamp(state.updated))),
            ("ttlMs".to_owned(), json!(u64::try_from(LIFETIME.as_millis()).unwrap_or(u64::MAX))),
            ("pollIntervalMs".to_owned(), json!(u64::try_from(POLL.as_millis()).unwrap_or(u64::MAX))),
        ])
    }

    fn detailed(&self) -> Value {
        let state = self.state();
        let mut detailed = self.summary(&state);
        match &state.status {
            Status::Done(Ok(result)) => {
                detailed.insert("result".to_owned(), result.clone());
            }
            Status::Done(Err(error)) => {
                detailed.insert("error".to_owned(), json!(error));
            }
            Status::Working if !state.questions.is_empty() => {
                let requests: Map<String, Value> = state
                    .questions
                    .iter()
                    .map(|waiting| (waiting.key.clone(), waiting.question.to_wire()))
                    .collect();
                detailed.insert("inputRequests".to_owned(), requests.into());
            }
            Status::Working | Status::Cancelled => {}
        }
        detailed.into()
    }

    /// Notes how the work ended. What was cancelled stays so.
    fn ended(&self, outcome: Outcome) {
        let bytes = match &outcome {
            Some(Ok(result)) => result.to_string().len(),
            _ => 0,
        };
        let mut state = self.state();
        if let Status::Working = state.status {
            state.bytes = bytes;
            state.status = outcome.map_or(Status::Cancelled, Status::Done);
            state.updated = SystemTime::now();
            state.questions.clear();
        }
    }

    fn stop(&self) {
        self.ended(None);
        self.cancel.cancel();
    }

    /// Hands answers to those who wait for them. One that does not fit, or that nobody waits for, is passed over.
    fn answered(&self, answers: &Map<String, Value>) {
        let mut state = self.state();
        let (done, open) = std::mem::take(&mut state.questions).into_iter().partition(|waiting| {
            answers.get(&waiting.key).is_some_and(|answer| waiting.question.fits(answer))
        });
        state.questions = open;
        state.updated = SystemTime::now();
        let done: Vec<Waiting> = done;
        for waiting in done {
            let answer = answers.get(&waiting.key).cloned().unwrap_or_default();
            let _ = waiting.reply.send(answer);
        }
    }

    /// Puts questions on the task, and waits until the client has answered them all.
    pub(super) async fn ask(&self, questions: Vec<(String, Question)>) -> Result<Vec<Reply>, ToolError> {
        let mut answers = Vec::new();
        {
            let mut state = self.state();
            for (key, question) in questions {
                let (reply, answer) = oneshot::channel();
                state.questions.push(Waiting { key, question, reply });
                answers.push(answer);
            }
            state.updated = SystemTime::now();
        }
        let mut replies = Vec::new();
        for answer in answers {
            let gone = |_| ToolError::of(ErrorKind::Cancelled, "the task was cancelled");
            replies.push(Reply(answer.await.map_err(gone)?));
        }
        Ok(replies)
    }
}

/// A moment as ISO 8601 writes it, in UTC.
fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:03}Z", Civil::of_system(at), since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        let at = |seconds: u64| timestamp(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7));
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_785_254_399), "2026-07-28T15:59:59.007Z");
    }
}
