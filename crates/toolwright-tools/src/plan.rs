//! `update_plan` and `todo_write`: what is to be done, and how far it is. Both keep one plan in the run's
//! state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{ToolContext, ToolError, tool};

use crate::options::Options;

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
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
}

/// The most steps of a plan.
const MOST_STEPS: usize = 500;

/// The tool `update_plan`.
#[tool(
    description = "Write down the plan: the steps and how far each is. Use it for work of several steps, and again whenever \
                   a step is begun or done.",
    category = "planning",
    read_only
)]
pub async fn update_plan(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// All steps, in order.
    plan: Vec<PlanStep>,
    /// Why the plan changes.
    explanation: Option<String>,
) -> Result<&'static str, ToolError> {
    keep(context, options, plan, explanation)?;
    Ok("the plan is written down")
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
#[tool(
    description = "Write down what is to be done and how far each item is. Use it for work of several steps: mark an item \
                   when it is begun, and again as soon as it is done.",
    category = "planning",
    read_only
)]
pub async fn todo_write(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// All items, in order; they take the place of those before.
    todos: Vec<Todo>,
    /// Why the list changes.
    explanation: Option<String>,
) -> Result<&'static str, ToolError> {
    let step = |todo: Todo| {
        let status = match todo.status {
            TodoStatus::Pending => "pending",
            TodoStatus::InProgress => "in_progress",
            TodoStatus::Completed => "completed",
        };
        PlanStep { step: todo.content, status: status.to_owned() }
    };
    keep(context, options, todos.into_iter().map(step).collect(), explanation)?;
    Ok("the list is written down")
}

fn keep(
    context: &ToolContext,
    options: &Options,
    steps: Vec<PlanStep>,
    explanation: Option<String>,
) -> Result<(), ToolError> {
    if steps.len() > MOST_STEPS {
        return Err(ToolError::invalid(format!(
            "a plan has at most {MOST_STEPS} steps, and this has {}",
            steps.len()
        )));
    }
    context.store_as::<Plan>(options.instance_name()).set(Plan { steps, explanation });
    Ok(())
}
