//! Calls that go on as tasks, which are polled until they are over.
//!
//! In 2025-11-25 a tool may require a task, and the result is requested when the task is over. In the tasks
//! extension of 2026-07-28 the server decides at each call, and the task carries its questions and its
//! result.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;
use toolwright_core::text;
use toolwright_util::lock;

use super::calls::CallOrigin;
use super::connection::OnProgress;
use super::requests::Ask;
use super::{Client, MAX_ROUNDS};
use crate::error::{McpError, McpErrorKind};
use crate::protocol::{
    CallParams, ClientRequest, RequestMeta, Task, TaskMetadata, TaskParams, TaskStatus, UpdateTaskParams,
};
/// How often a task is polled by default, and the bounds of the interval that a server may ask for.
const POLL: Duration = Duration::from_secs(1);
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(10);

/// How many polls in a row may fail, as behind a busy gateway, before the task is given up.
const FAILED_LOOKS: u32 = 5;

impl Client {
    /// Whether a tool is run as a task only.
    pub(super) fn runs_as_task(&self, tool: &str) -> bool {
        let offers = self.info.capabilities.pointer("/tasks/requests/tools/call").is_some();
        offers && lock(&self.tasked).contains(tool)
    }

    /// Calls a tool as a task (2025-11-25). Dropping the future cancels the task.
    pub(super) async fn call_as_task(
        &self,
        whose: &CallOrigin,
        params: CallParams,
        timeout: Duration,
        progress: Option<OnProgress>,
        headers: Vec<(String, String)>,
    ) -> Result<Value, McpError> {
        let time = Time::new(timeout);
        let ttl = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let params = CallParams { task: Some(TaskMetadata { ttl }), ..params };
        let request = ClientRequest::CallTool(params);
        let made = Ask { progress: progress.clone(), headers, ..Ask::new(&request, timeout) };
        let mut made = self.request_for(whose, made).await?;
        let Some(task) = made.get_mut("task").map(Value::take) else {
            // It answered at once.
            return Ok(made);
        };
        let mut task = Task::read(task);
        let mut running = PolledTask::of(self, &task)?;
        let mut reporter = StatusReporter::new(progress);
        while task.status == Some(TaskStatus::Working) {
            reporter.report(&task);
            task = self.look(whose, &running, &task, time).await?;
        }
        // A task that waits for an answer asks for it while its result is waited for.
        let request = ClientRequest::TaskResult(running.params());
        let result = self.request_for(whose, Ask::new(&request, time.left())).await;
        running.over = !matches!(&result, Err(error) if error.kind() == McpErrorKind::Timeout);
        result
    }

    /// Waits for a task that the server made in place of a result (2026-07-28), and answers its questions.
    /// Dropping the future cancels the task.
    pub(super) async fn follow_task(
        &self,
        whose: &CallOrigin,
        mut task: Task,
        time: Time,
        progress: Option<OnProgress>,
    ) -> Result<Value, McpError> {
        let mut running = PolledTask::of(self, &task)?;
        let (mut reporter, mut answered) = (StatusReporter::new(progress), Answered::default());
        loop {
            let outcome = match task.status {
                Some(TaskStatus::Working) => {
                    reporter.report(&task);
                    None
                }
                Some(TaskStatus::InputRequired) => {
                    let open = answered.open(&task)?;
                    if !open.is_empty() {
                        self.answer_task(whose, &running, open, time).await?;
                    }
                    None
                }
                Some(TaskStatus::Completed) => Some(Ok(std::mem::take(&mut task.result))),
                Some(TaskStatus::Failed) => Some(Err(failure(&task))),
                Some(TaskStatus::Cancelled) => {
                    Some(Err(McpError::new(McpErrorKind::Refused, "the server cancelled the task")))
                }
                None => return Err(McpError::new(McpErrorKind::Protocol, "the task is in no known state")),
            };
            if let Some(outcome) = outcome {
                running.over = true;
                return outcome;
            }
            task = self.look(whose, &running, &task, time).await?;
        }
    }

    /// The task as it is after a pause. A look that fails costs no task: it goes on at the server, and is
    /// looked at again.
    async fn look(
        &self,
        whose: &CallOrigin,
        running: &PolledTask<'_>,
        task: &Task,
        time: Time,
    ) -> Result<Task, McpError> {
        let request = ClientRequest::GetTask(running.params());
        let mut failed = 0;
        loop {
            tokio::time::sleep(poll(task).min(time.left())).await;
            if time.left().is_zero() {
                return Err(time.late());
            }
            let most = time.left().min(self.options.request_timeout);
            let looked = self.request_for(whose, Ask::new(&request, most)).await;
            match looked.as_ref().map_err(McpError::kind) {
                Err(McpErrorKind::Closed | McpErrorKind::Timeout)
                    if failed < FAILED_LOOKS && !self.connection.closed().is_cancelled() =>
                {
                    failed += 1;
                }
                _ => return looked.map(Task::read),
            }
        }
    }

    /// Answers what a task asks.
    async fn answer_task(
        &self,
        whose: &CallOrigin,
        running: &PolledTask<'_>,
        open: Map<String, Value>,
        time: Time,
    ) -> Result<(), McpError> {
        let answers = tokio::time::timeout(time.left(), self.answer_questions(whose, &open)).await;
        let input_responses = Some(answers.map_err(|_| time.late())??);
        let request =
            ClientRequest::UpdateTask(UpdateTaskParams { task_id: running.id.clone(), input_responses });
        let most = time.left().min(self.options.request_timeout);
        self.request_for(whose, Ask::new(&request, most)).await.map(drop)
    }
}

/// How much time a call has.
#[derive(Clone, Copy)]
pub(super) struct Time {
    all: Duration,
    until: Instant,
}

impl Time {
    pub(super) fn new(all: Duration) -> Self {
        Time { all, until: Instant::now() + all.min(Duration::from_secs(365 * 24 * 3600)) }
    }

    fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn late(self) -> McpError {
        McpError::new(McpErrorKind::Timeout, format!("the task was not done within {:?}", self.all))
    }
}

/// What was asked before. A question stands there until the server has read its answer, and is not answered
/// twice.
#[derive(Default)]
struct Answered {
    keys: HashSet<String>,
    rounds: usize,
}

impl Answered {
    /// The questions that are new.
    fn open(&mut self, task: &Task) -> Result<Map<String, Value>, McpError> {
        let open: Map<String, Value> = task
            .input_requests
            .iter()
            .filter(|(key, _)| !self.keys.contains(*key))
            .map(|(key, question)| (key.clone(), question.clone()))
            .collect();
        if !open.is_empty() {
            self.keys.extend(open.keys().cloned());
            self.rounds += 1;
        }
        if self.rounds > MAX_ROUNDS {
            let problem = format!("the server asked for more in {MAX_ROUNDS} rounds");
            return Err(McpError::new(McpErrorKind::Limit, problem));
        }
        Ok(open)
    }
}

/// Reports each status message of a task as progress, once.
struct StatusReporter {
    progress: Option<OnProgress>,
    looks: f64,
    last: Option<String>,
}

impl StatusReporter {
    fn new(progress: Option<OnProgress>) -> Self {
        StatusReporter { progress, looks: 0.0, last: None }
    }

    fn report(&mut self, task: &Task) {
        let message = task.status_message.as_ref().map(|message| text::clip(message, 1000));
        self.looks += 1.0;
        if let (Some(progress), Some(_)) = (&self.progress, message.as_ref().filter(|_| message != self.last))
        {
            progress(self.looks, None, message.clone());
        }
        self.last = message;
    }
}

/// The error of the request that the task was made for.
fn failure(task: &Task) -> McpError {
    let failed = || McpError::new(McpErrorKind::Refused, "the task failed");
    task.error.as_ref().map_or_else(failed, McpError::refused)
}

/// How long to wait before the task is polled again.
fn poll(task: &Task) -> Duration {
    let wanted = task.poll_interval().map(Duration::from_millis);
    wanted.unwrap_or(POLL).clamp(SHORTEST_POLL, LONGEST_POLL)
}

/// A task that is cancelled when nobody waits for it any more.
struct PolledTask<'a> {
    client: &'a Client,
    id: String,
    over: bool,
}

impl<'a> PolledTask<'a> {
    fn of(client: &'a Client, task: &Task) -> Result<Self, McpError> {
        let id = task.task_id.clone();
        let missing = || McpError::new(McpErrorKind::Protocol, "the task the server made has no id");
        Ok(PolledTask { client, id: id.ok_or_else(missing)?, over: false })
    }

    fn params(&self) -> TaskParams {
        TaskParams { task_id: self.id.clone() }
    }
}

impl Drop for PolledTask<'_> {
    fn drop(&mut self) {
        if self.over || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let request = ClientRequest::CancelTask(self.params());
        let meta = match self.client.is_stateless() {
            true => self.client.introduction(&CallOrigin::default()),
            false => RequestMeta::default(),
        };
        let (connection, timeout) = (self.client.connection.clone(), self.client.options.silence);
        tokio::spawn(async move {
            let _ = connection.request(Ask { meta, ..Ask::new(&request, timeout) }).await;
        });
    }
}
