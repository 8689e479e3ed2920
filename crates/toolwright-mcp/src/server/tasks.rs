//! The tasks extension: calls that go on after their request was answered, and are polled by their clients.
//!
//! Tasks live in this process. They are kept for an hour, and their number is bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use toolwright_core::time::Civil;
use toolwright_core::{CancelToken, ErrorKind, ToolError};
use toolwright_util::lock;

use super::IncomingRequest;
use super::peer::{ClientReply, Question};
use super::response::Response;
use crate::jsonrpc::{INVALID_PARAMS, MISSING_CAPABILITY, RpcError};
use crate::protocol::{
    CreateTaskResult, DetailedTask, Empty, ResultBody, ResultMessage, TASKS_EXTENSION, TaskStatus,
    UpdateTaskParams,
};
use crate::random::random_name;

/// How long a task is kept.
pub(super) const LIFETIME: Duration = Duration::from_secs(3600);

/// How often a client should poll.
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
    state: Mutex<TaskState>,
}

struct TaskState {
    status: TaskPhase,
    updated: SystemTime,
    questions: Vec<Waiting>,
    /// How large the result is.
    bytes: usize,
}

enum TaskPhase {
    Working,
    Completed(Box<ResultMessage>),
    Failed(RpcError),
    Cancelled,
}

struct Waiting {
    key: String,
    question: Question,
    reply: oneshot::Sender<Value>,
}

impl Tasks {
    /// A new task, which exists before its id is sent; `None` when there are too many.
    pub(super) fn create(&self, request: &IncomingRequest) -> Option<Arc<Task>> {
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
            state: Mutex::new(TaskState {
                status: TaskPhase::Working,
                updated: SystemTime::now(),
                questions: Vec::new(),
                bytes: 0,
            }),
        });
        tasks.insert(task.id.clone(), task.clone());
        Some(task)
    }

    /// Removes a task whose id was never sent, because its call was answered directly.
    pub(super) fn forget(&self, task: &Task) {
        self.tasks().remove(&task.id);
    }

    /// Records how the work of a task ended, and drops the oldest results when there are too many bytes of
    /// them.
    pub(super) fn ended(&self, task: &Task, response: Response) {
        task.ended(response);
        let mut tasks = self.tasks();
        let mut kept: usize = tasks.values().map(|task| task.bytes()).sum();
        while kept > MAX_BYTES {
            let Some(gone) = drop_oldest(&mut tasks, |other| other.id != task.id) else { break };
            kept -= gone.bytes();
        }
    }

    /// The tasks that have not expired. Expired ones are stopped: their clients know their lifetime.
    fn tasks(&self) -> MutexGuard<'_, HashMap<String, Arc<Task>>> {
        let mut tasks = lock(&self.0);
        tasks.retain(|_, task| {
            let lives = task.created.1.elapsed() < LIFETIME;
            if !lives {
                task.stop();
            }
            lives
        });
        tasks
    }

    /// Answers `tasks/get`.
    pub(super) fn get(&self, request: &IncomingRequest, id: &str) -> Result<ResultBody, RpcError> {
        Ok(ResultBody::DetailedTask(self.of(request, id)?.detailed()))
    }

    /// Answers `tasks/update`.
    pub(super) fn update(
        &self,
        request: &IncomingRequest,
        params: UpdateTaskParams,
    ) -> Result<ResultBody, RpcError> {
        let task = self.of(request, &params.task_id)?;
        let problem = "`inputResponses` must be an object";
        task.answered(&params.input_responses.ok_or_else(|| RpcError::new(INVALID_PARAMS, problem))?);
        Ok(ResultBody::Empty(Empty {}))
    }

    /// Answers `tasks/cancel`.
    pub(super) fn stop(&self, request: &IncomingRequest, id: &str) -> Result<ResultBody, RpcError> {
        self.of(request, id)?.stop();
        Ok(ResultBody::Empty(Empty {}))
    }

    /// The task of that id, if it is the client's own: another client's does not exist for it.
    fn of(&self, request: &IncomingRequest, id: &str) -> Result<Arc<Task>, RpcError> {
        if !request.knows_tasks() {
            return Err(needs_extension());
        }
        let task = self.tasks().get(id).filter(|task| task.owner == request.subject).cloned();
        task.ok_or_else(|| RpcError::new(INVALID_PARAMS, "there is no such task"))
    }
}

/// Drops the oldest of these tasks that is over; `None` when none is.
fn drop_oldest(tasks: &mut HashMap<String, Arc<Task>>, of: impl Fn(&Arc<Task>) -> bool) -> Option<Arc<Task>> {
    let over = tasks.values().filter(|task| task.is_over() && of(task));
    let oldest = over.min_by_key(|task| task.created.1).map(|task| task.id.clone())?;
    tasks.remove(&oldest)
}

/// The error for clients without the tasks extension.
pub(super) fn needs_extension() -> RpcError {
    let mut error = RpcError::new(MISSING_CAPABILITY, "this needs a client with the tasks extension");
    error.data = Some(json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}));
    error
}

impl Task {
    fn state(&self) -> MutexGuard<'_, TaskState> {
        lock(&self.state)
    }

    fn is_over(&self) -> bool {
        !matches!(self.state().status, TaskPhase::Working)
    }

    fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// The answer to the request that made the task.
    pub(super) fn created(&self) -> CreateTaskResult {
        self.summary(&self.state())
    }

    fn summary(&self, state: &TaskState) -> CreateTaskResult {
        let status = match &state.status {
            TaskPhase::Working if !state.questions.is_empty() => TaskStatus::InputRequired,
            TaskPhase::Working => TaskStatus::Working,
            TaskPhase::Completed(_) => TaskStatus::Completed,
            TaskPhase::Failed(_) => TaskStatus::Failed,
            TaskPhase::Cancelled => TaskStatus::Cancelled,
        };
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        CreateTaskResult {
            task_id: self.id.clone(),
            status,
            created_at: timestamp(self.created.0),
            last_updated_at: timestamp(state.updated),
            ttl_ms: millis(LIFETIME),
            poll_interval_ms: millis(POLL),
        }
    }

    fn detailed(&self) -> DetailedTask {
        let state = self.state();
        let mut detailed =
            DetailedTask { task: self.summary(&state), result: None, error: None, input_requests: None };
        match &state.status {
            TaskPhase::Completed(result) => detailed.result = Some(result.clone()),
            TaskPhase::Failed(error) => detailed.error = Some(error.clone()),
            TaskPhase::Working if !state.questions.is_empty() => {
                let requests = state.questions.iter();
                let requests = requests.map(|waiting| (waiting.key.clone(), waiting.question.to_wire()));
                detailed.input_requests = Some(requests.collect());
            }
            TaskPhase::Working | TaskPhase::Cancelled => {}
        }
        detailed
    }

    /// Records how the work ended. A cancelled task stays cancelled.
    fn ended(&self, response: Response) {
        let mut state = self.state();
        if let TaskPhase::Working = state.status {
            state.status = match response {
                Response::Result(result) => {
                    state.bytes = serde_json::to_vec(&result).map_or(0, |bytes| bytes.len());
                    TaskPhase::Completed(result)
                }
                Response::Error(error) => TaskPhase::Failed(error),
                Response::Cancelled => TaskPhase::Cancelled,
            };
            state.updated = SystemTime::now();
            state.questions.clear();
        }
    }

    fn stop(&self) {
        self.ended(Response::Cancelled);
        self.cancel.cancel();
    }

    /// Delivers answers to the calls that wait for them. One that does not fit its question is ignored.
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

    /// Adds questions to the task, and waits until the client has answered them all.
    pub(super) async fn ask(
        &self,
        questions: Vec<(String, Question)>,
    ) -> Result<Vec<ClientReply>, ToolError> {
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
            replies.push(ClientReply(answer.await.map_err(gone)?));
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
    fn timestamps_are_in_utc() {
        let at = |seconds: u64| timestamp(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7));
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_785_254_399), "2026-07-28T15:59:59.007Z");
    }
}
