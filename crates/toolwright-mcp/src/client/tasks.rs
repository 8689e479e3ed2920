//! Calls that go on as tasks, which are looked at until they are over.
//!
//! In 2025-11-25 a tool says that it is run as a task only, and the result is asked for when the task is over. In the tasks
//! extension of 2026-07-28 the server decides at each call, and the task brings its questions and its result along.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolwright_core::text;

use super::connection::{Ask, OnProgress, Whose};
use super::{Client, MAX_ROUNDS};
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::RpcError;
use crate::protocol::STATELESS_VERSION;

/// How often a task is looked at when the server does not say, and the bounds of what it may say.
const POLL: Duration = Duration::from_secs(1);
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(10);

/// How many looks in a row may fail, as behind a busy gateway, before the task is given up.
const FAILED_LOOKS: u32 = 5;

impl Client {
    /// Whether a tool is run as a task only.
    pub(super) fn runs_as_task(&self, tool: &str) -> bool {
        let offers = self.greeting.capabilities.pointer("/tasks/requests/tools/call").is_some();
        offers && self.tasked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains(tool)
    }

    /// Calls a tool as a task (2025-11-25). Whoever gives up on it has the server told.
    pub(super) async fn call_as_task(&self, whose: &Whose, ask: Ask<'_>) -> Result<Value, McpError> {
        let Ask { method, mut params, timeout, progress, headers, .. } = ask;
        let time = Time::new(timeout);
        if let Value::Object(members) = &mut params {
            let lives = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            members.insert("task".to_owned(), json!({"ttl": lives}));
        }
        let made = Ask { progress: progress.clone(), headers, ..Ask::new(method, params, timeout) };
        let made = self.request_for(whose, made).await?;
        let Some(mut task) = made.get("task").cloned() else {
            // It answered at once.
            return Ok(made);
        };
        let mut running = Running::of(self, &task)?;
        let mut telling = Telling::new(progress);
        while status(&task) == "working" {
            telling.tell(&task);
            task = self.look(whose, &running, &task, time).await?;
        }
        // A task that waits for an answer asks for it while its result is waited for.
        let result = self.request_for(whose, Ask::new("tasks/result", running.about(), time.left())).await;
        running.over = !matches!(&result, Err(error) if error.kind() == McpErrorKind::Timeout);
        result
    }

    /// Waits for a task that the server made in place of a result (2026-07-28), and answers what it asks. Whoever gives up on it has
    /// the server told.
    pub(super) async fn follow_task(
        &self,
        whose: &Whose,
        mut task: Value,
        time: Time,
        progress: Option<OnProgress>,
    ) -> Result<Value, McpError> {
        let mut running = Running::of(self, &task)?;
        let (mut telling, mut answered) = (Telling::new(progress), Answered::default());
        loop {
            let outcome = match status(&task) {
                "working" => {
                    telling.tell(&task);
                    None
                }
                "input_required" => {
                    let open = answered.open(&task)?;
                    if !open.is_empty() {
                        self.answer_task(whose, &running, open, time).await?;
                    }
                    None
                }
                "completed" => Some(Ok(task.get_mut("result").map(Value::take).unwrap_or_default())),
                "failed" => Some(Err(failure(&task))),
                "cancelled" => {
                    Some(Err(McpError::new(McpErrorKind::Refused, "the server called the task off")))
                }
                _ => return Err(McpError::new(McpErrorKind::Protocol, "the task is in no known state")),
            };
            if let Some(outcome) = outcome {
                running.over = true;
                return outcome;
            }
            task = self.look(whose, &running, &task, time).await?;
        }
    }

    /// The task as it is after a pause. A look that fails costs no task: it goes on at the server, and is looked at again.
    async fn look(
        &self,
        whose: &Whose,
        running: &Running<'_>,
        task: &Value,
        time: Time,
    ) -> Result<Value, McpError> {
        let mut failed = 0;
        loop {
            tokio::time::sleep(poll(task).min(time.left())).await;
            if time.left().is_zero() {
                return Err(time.late());
            }
            let most = time.left().min(self.options.request_timeout);
            let looked = self.request_for(whose, Ask::new("tasks/get", running.about(), most)).await;
            match looked.as_ref().map_err(McpError::kind) {
                Err(McpErrorKind::Closed | McpErrorKind::Timeout)
                    if failed < FAILED_LOOKS && !self.connection.closed().is_cancelled() =>
                {
                    failed += 1;
                }
                _ => return looked,
            }
        }
    }

    /// Answers what a task asks.
    async fn answer_task(
        &self,
        whose: &Whose,
        running: &Running<'_>,
        open: Map<String, Value>,
        time: Time,
    ) -> Result<(), McpError> {
        let questions = json!({"inputRequests": open});
        let answers = tokio::time::timeout(time.left(), self.answer_questions(whose, &questions)).await;
        let mut params = running.about();
        if let Value::Object(members) = &mut params {
            members.extend(answers.map_err(|_| time.late())??);
        }
        let most = time.left().min(self.options.request_timeout);
        self.request_for(whose, Ask::new("tasks/update", params, most)).await.map(drop)
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

/// What was asked before. A question stands there until the server has read its answer, and is not answered twice.
#[derive(Default)]
struct Answered {
    keys: HashSet<String>,
    rounds: usize,
}

impl Answered {
    /// The questions that are new.
    fn open(&mut self, task: &Value) -> Result<Map<String, Value>, McpError> {
        let asked = task.get("inputRequests").and_then(Value::as_object).into_iter().flatten();
        let open: Map<String, Value> = asked
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

/// Tells what a task says of itself as progress, once each.
struct Telling {
    progress: Option<OnProgress>,
    looks: f64,
    told: Option<String>,
}

impl Telling {
    fn new(progress: Option<OnProgress>) -> Self {
        Telling { progress, looks: 0.0, told: None }
    }

    fn tell(&mut self, task: &Value) {
        let said = task.get("statusMessage").and_then(Value::as_str).map(|said| text::clip(said, 1000));
        self.looks += 1.0;
        if let (Some(progress), Some(_)) = (&self.progress, said.as_ref().filter(|_| said != self.told)) {
            progress(self.looks, None, said.clone());
        }
        self.told = said;
    }
}

fn status(task: &Value) -> &str {
    task.get("status").and_then(Value::as_str).unwrap_or_default()
}

/// The error of the request that the task was made for.
fn failure(task: &Value) -> McpError {
    let error = task.get("error").and_then(|error| serde_json::from_value::<RpcError>(error.clone()).ok());
    error.map_or_else(
        || McpError::new(McpErrorKind::Refused, "the task failed"),
        |error| McpError::refused(&error),
    )
}

/// How long to wait before the next look. The revisions call it differently.
fn poll(task: &Value) -> Duration {
    let said = task.get("pollIntervalMs").or_else(|| task.get("pollInterval"));
    let said = said.and_then(Value::as_u64).map(Duration::from_millis);
    said.unwrap_or(POLL).clamp(SHORTEST_POLL, LONGEST_POLL)
}

/// A task that is told to stop when nobody waits for it any more.
struct Running<'a> {
    client: &'a Client,
    id: String,
    over: bool,
}

impl<'a> Running<'a> {
    fn of(client: &'a Client, task: &Value) -> Result<Self, McpError> {
        let id = task.get("taskId").and_then(Value::as_str).map(str::to_owned);
        let missing = || McpError::new(McpErrorKind::Protocol, "the task the server made has no id");
        Ok(Running { client, id: id.ok_or_else(missing)?, over: false })
    }

    fn about(&self) -> Value {
        json!({"taskId": self.id})
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.over || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let mut about = self.about();
        if self.client.greeting.version == STATELESS_VERSION {
            self.client.say_who(&Whose::default(), &mut about);
        }
        let (connection, timeout) = (self.client.connection.clone(), self.client.options.silence);
        tokio::spawn(async move {
            let _ = connection.request(Ask::new("tasks/cancel", about, timeout)).await;
        });
    }
}
