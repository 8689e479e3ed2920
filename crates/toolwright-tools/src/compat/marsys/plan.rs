//! The plan tools of MARSYS: a goal, items with ids that are changed one by one. They keep a plan of their
//! own in the run's state.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{ToolContext, ToolError, tool};

use crate::options::Options;

/// How many items a plan has when it is made.
const ITEMS: std::ops::RangeInclusive<usize> = 2..=20;
/// The longest title or text, in characters.
const LONGEST: usize = 500;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Items {
    goal: Option<String>,
    items: Vec<PlanItem>,
    /// How many there ever were; ids are not used twice.
    count: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PlanItem {
    id: String,
    title: String,
    content: String,
    /// The item as something that is being done.
    #[serde(default)]
    active_form: Option<String>,
    priority: Priority,
    status: ItemStatus,
    #[serde(default)]
    blocked_reason: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum Priority {
    Low,
    #[default]
    Medium,
    High,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum ItemStatus {
    Pending,
    InProgress,
    Completed,
    Blocked,
}

impl ItemStatus {
    fn word(self) -> &'static str {
        match self {
            ItemStatus::Pending => "pending",
            ItemStatus::InProgress => "in progress",
            ItemStatus::Completed => "completed",
            ItemStatus::Blocked => "blocked",
        }
    }

    fn mark(self) -> char {
        match self {
            ItemStatus::Pending => ' ',
            ItemStatus::InProgress => '>',
            ItemStatus::Completed => 'x',
            ItemStatus::Blocked => '!',
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct NewItem {
    /// What the item is called.
    title: String,
    /// What is to be done.
    #[serde(default)]
    content: String,
    /// The same as something that is being done, for example `Writing the tests`.
    active_form: Option<String>,
    /// How much it matters.
    #[serde(default)]
    priority: Priority,
}

impl Items {
    fn add(&mut self, new: NewItem, at: Option<usize>) -> Result<PlanItem, ToolError> {
        let active = new.active_form.as_deref().unwrap_or_default();
        for (name, text) in
            [("title", new.title.as_str()), ("content", &new.content), ("active_form", active)]
        {
            short(name, text)?;
        }
        if new.title.trim().is_empty() {
            return Err(ToolError::invalid("`title` is empty"));
        }
        self.count += 1;
        let item = PlanItem {
            id: self.count.to_string(),
            title: new.title,
            content: new.content,
            active_form: new.active_form,
            priority: new.priority,
            status: ItemStatus::Pending,
            blocked_reason: None,
        };
        let at = at.unwrap_or(self.items.len()).min(self.items.len());
        self.items.insert(at, item.clone());
        Ok(item)
    }

    fn place(&self, id: &str) -> Result<usize, ToolError> {
        self.items.iter().position(|item| item.id == id).ok_or_else(|| {
            let known: Vec<String> =
                self.items.iter().map(|item| format!("{} ({})", item.id, item.title)).collect();
            ToolError::invalid(format!(
                "there is no item `{}`; the items are: {}",
                id.escape_debug(),
                known.join(", ")
            ))
        })
    }

    fn told(&self) -> String {
        let mut text = String::new();
        if let Some(goal) = &self.goal {
            let _ = writeln!(text, "Goal: {goal}");
        }
        let done = self.items.iter().filter(|item| item.status == ItemStatus::Completed).count();
        let all = self.items.len();
        let _ = writeln!(text, "Progress: {done}/{all} ({}%)", done * 100 / all.max(1));
        for (at, item) in self.items.iter().enumerate() {
            let priority = match item.priority {
                Priority::Low => " [LOW]",
                Priority::Medium => "",
                Priority::High => " [HIGH]",
            };
            let (mark, title) = (item.status.mark(), &item.title);
            let _ = write!(text, "\n{}. [{mark}] {title}{priority} (id: {})", at + 1, item.id);
            if !item.content.is_empty() {
                let _ = write!(text, "\n   {}", item.content);
            }
            match (item.status, &item.active_form, &item.blocked_reason) {
                (ItemStatus::InProgress, Some(active), _) => drop(write!(text, "\n   Currently: {active}")),
                (ItemStatus::Blocked, _, Some(reason)) => drop(write!(text, "\n   Blocked: {reason}")),
                _ => {}
            }
        }
        text
    }
}

fn short(name: &str, text: &str) -> Result<(), ToolError> {
    match text.chars().count() {
        count if count > LONGEST => {
            Err(ToolError::invalid(format!("`{name}` has {count} characters, and {LONGEST} is the most")))
        }
        _ => Ok(()),
    }
}

/// Changes the plan there is, or says that there is none.
fn change<T>(
    context: &ToolContext,
    options: &Options,
    work: impl FnOnce(&mut Items) -> Result<T, ToolError>,
) -> Result<T, ToolError> {
    context.store_as::<Option<Items>>(options.instance_name()).update(|plan| match plan {
        Some(plan) => {
            // A change that fails half way changes nothing.
            let mut changed = plan.clone();
            let done = work(&mut changed)?;
            *plan = changed;
            Ok(done)
        }
        None => Err(ToolError::invalid("there is no plan").hint("make one with `plan_create`")),
    })
}

/// Make a plan: what it is for, and 2 to 20 items. It takes the place of the plan before.
#[tool(category = "planning", read_only)]
pub(crate) async fn plan_create(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// What it is all for.
    goal: Option<String>,
    /// The items in order, 2 to 20.
    items: Vec<NewItem>,
) -> Result<String, ToolError> {
    let count = items.len();
    if !ITEMS.contains(&count) {
        let message = format!("a plan has {} to {} items, and this has {count}", ITEMS.start(), ITEMS.end());
        return Err(ToolError::invalid(message));
    }
    let mut plan = Items { goal, ..Items::default() };
    if let Some(goal) = &plan.goal {
        short("goal", goal)?;
    }
    for item in items {
        plan.add(item, None)?;
    }
    let told = plan.told();
    context.store_as::<Option<Items>>(options.instance_name()).set(Some(plan));
    Ok(told)
}

/// See the plan, the ids of its items, and how far it is.
#[tool(category = "planning", read_only)]
pub(crate) async fn plan_read(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
) -> Result<String, ToolError> {
    change(context, options, |plan| Ok(plan.told()))
}

/// Change an item of the plan: begin it, finish it, or word it anew.
#[tool(category = "planning", read_only)]
pub(crate) async fn plan_update(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// Which item.
    item_id: String,
    /// How far it is.
    status: Option<ItemStatus>,
    /// A new title.
    title: Option<String>,
    /// A new text.
    content: Option<String>,
    /// The item as something that is being done.
    active_form: Option<String>,
    /// How much it matters.
    priority: Option<Priority>,
    /// What it waits for, when it is blocked.
    blocked_reason: Option<String>,
) -> Result<String, ToolError> {
    change(context, options, |plan| {
        let at = plan.place(&item_id)?;
        let texts = [
            ("title", &title),
            ("content", &content),
            ("active_form", &active_form),
            ("blocked_reason", &blocked_reason),
        ];
        for (name, text) in texts {
            short(name, text.as_deref().unwrap_or_default())?;
        }
        if status.is_none() && priority.is_none() && texts.iter().all(|(_, text)| text.is_none()) {
            return Err(ToolError::invalid("there is nothing to change: name at least one new value"));
        }
        let others = plan.items.iter().enumerate().filter(|(other, _)| *other != at);
        let busy = others.map(|(_, item)| item).find(|item| item.status == ItemStatus::InProgress);
        if let (Some(ItemStatus::InProgress), Some(busy)) = (status, busy) {
            let message = format!("one item at a time is in progress, and `{}` is", busy.title);
            return Err(ToolError::invalid(message).hint("finish it first"));
        }
        let item = plan.items.get_mut(at).ok_or_else(|| ToolError::new("the item is gone"))?;
        item.status = status.unwrap_or(item.status);
        item.title = title.unwrap_or_else(|| item.title.clone());
        item.content = content.unwrap_or_else(|| item.content.clone());
        item.priority = priority.unwrap_or(item.priority);
        item.active_form = active_form.or_else(|| item.active_form.take());
        item.blocked_reason = blocked_reason.or_else(|| item.blocked_reason.take());
        Ok(format!("updated `{}`: {}", item.title, item.status.word()))
    })
}

/// Add an item to the plan, at its end or after another.
#[tool(category = "planning", read_only)]
pub(crate) async fn plan_add_item(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// What the item is called.
    title: String,
    /// What is to be done.
    #[tool(default)]
    content: String,
    /// The same as something that is being done, for example `Writing the tests`.
    active_form: Option<String>,
    /// How much it matters.
    #[tool(default)]
    priority: Priority,
    /// The item it comes after; the last one when left out.
    after_item_id: Option<String>,
) -> Result<String, ToolError> {
    change(context, options, |plan| {
        if plan.items.len() >= *ITEMS.end() {
            return Err(ToolError::invalid(format!("a plan has at most {} items", ITEMS.end())));
        }
        let at = after_item_id.map(|id| plan.place(&id)).transpose()?;
        let added = plan.add(NewItem { title, content, active_form, priority }, at.map(|at| at + 1))?;
        Ok(format!("added `{}` (id: {})", added.title, added.id))
    })
}

/// Take an item out of the plan.
#[tool(category = "planning", read_only)]
pub(crate) async fn plan_remove_item(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// Which item.
    item_id: String,
) -> Result<String, ToolError> {
    change(context, options, |plan| {
        let at = plan.place(&item_id)?;
        Ok(format!("removed `{}`", plan.items.remove(at).title))
    })
}

/// Forget the plan.
#[tool(category = "planning", read_only)]
pub(crate) async fn plan_clear(context: &ToolContext, #[tool(setup)] options: &Options) -> &'static str {
    context.store_as::<Option<Items>>(options.instance_name()).set(None);
    "the plan is forgotten"
}
