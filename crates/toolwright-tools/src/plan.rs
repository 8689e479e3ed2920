//! `update_plan` and `todo_write`: what is to be done, and how far it is. Both keep one plan in the run's
//! state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{ToolContext, ToolDef, ToolError};

use crate::options::{Effect, Options, finish};

/// The plan of a run, which programs can show: `context.store_as::<Plan>("")`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps in order.
    pub steps: Vec<PlanStep>,
    /// Why it was last changed.
    pub explanation: Option<String>,
}

/// One step of a [`Plan`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// What is to be done.
    pub step: String,
    /// How far it is, for example `pending`, `in_progress` or `completed`.
    pub status: String,
}

/// The most steps of a plan.
const MOST_STEPS: usize = 500;

#[derive(Deserialize, JsonSchema)]
struct UpdatePlan {
    /// All steps, in order; they take the place of those before.
    plan: Vec<PlanStep>,
    /// Why the plan changes.
    explanation: Option<String>,
}

/// The tool `update_plan`.
pub fn update_plan(options: &Options) -> ToolDef {
    let description = "Write down the plan: the steps and how far each is. Use it for work of several steps, and again \
        whenever a step is begun or done.";
    let instance = options.instance_name().to_owned();
    let tool =
        ToolDef::typed("update_plan", description, move |context: ToolContext, arguments: UpdatePlan| {
            let kept = keep(&context, &instance, arguments.plan, arguments.explanation);
            async move { kept.map(|()| "the plan is written down") }
        });
    finish(tool, "planning", Effect::Reads, &[])
}

#[derive(Deserialize, JsonSchema)]
struct TodoWrite {
    /// All items, in order; they take the place of those before.
    todos: Vec<Todo>,
    /// Why the list changes.
    explanation: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(deny_unknown_fields)]
struct Todo {
    /// What is to be done.
    content: String,
    /// How far it is.
    status: TodoStatus,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

/// The tool `todo_write`.
pub fn todo_write(options: &Options) -> ToolDef {
    let description = "Write down what is to be done and how far each item is. Use it for work of several steps: mark an \
        item when it is begun, and again as soon as it is done.";
    let instance = options.instance_name().to_owned();
    let tool =
        ToolDef::typed("todo_write", description, move |context: ToolContext, arguments: TodoWrite| {
            let step = |todo: Todo| {
                let status = match todo.status {
                    TodoStatus::Pending => "pending",
                    TodoStatus::InProgress => "in_progress",
                    TodoStatus::Completed => "completed",
                };
                PlanStep { step: todo.content, status: status.to_owned() }
            };
            let steps = arguments.todos.into_iter().map(step).collect();
            let kept = keep(&context, &instance, steps, arguments.explanation);
            async move { kept.map(|()| "the list is written down") }
        });
    finish(tool, "planning", Effect::Reads, &[])
}

fn keep(
    context: &ToolContext,
    instance: &str,
    steps: Vec<PlanStep>,
    explanation: Option<String>,
) -> Result<(), ToolError> {
    if steps.len() > MOST_STEPS {
        return Err(ToolError::invalid(format!(
            "a plan has at most {MOST_STEPS} steps, and this has {}",
            steps.len()
        )));
    }
    context.store_as::<Plan>(instance).set(Plan { steps, explanation });
    Ok(())
}
