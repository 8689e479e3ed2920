//! The options of `#[tool(...)]`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::{Annotations, CallView, RunScope, State, Tool, ToolContext, ToolDef, ToolError, tool};

use crate::value;

/// Has every option.
#[tool(
    name = "everything",
    title = "Everything",
    category = "tests",
    parallel = false,
    timeout = "1.5s",
    max_output = 4096,
    read_only,
    destructive = false,
    idempotent,
    open_world = false,
    sandboxed,
    return_direct,
    confidential
)]
async fn with_options() {}

#[test]
fn options_become_annotations_and_policy() {
    let tool = with_options();
    let settings = tool.policy();
    assert_eq!(&*tool.spec().name, "everything");
    assert_eq!(
        tool.spec().annotations,
        Annotations {
            title: Some("Everything".to_owned()),
            read_only: Some(true),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: Some(false),
        }
    );
    assert_eq!(settings.parallel, Some(false));
    assert_eq!(settings.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(settings.max_output, Some(4096));
    assert_eq!(settings.category.as_deref(), Some("tests"));
    assert!(settings.sandboxed && settings.return_direct && settings.confidential);
}

/// Has none.
#[tool]
async fn without_options() {}

#[test]
fn without_options_nothing_is_said() {
    let tool = without_options();
    let settings = tool.policy();
    assert!(tool.spec().annotations.is_empty());
    assert_eq!((settings.parallel, settings.timeout, settings.max_output), (None, None, None));
    assert!(settings.is_parallel() && !settings.sandboxed);
}

/// Whole seconds.
#[tool(timeout = 30, parallel)]
async fn whole_seconds() {}

/// A fraction of a second.
#[tool(timeout = 0.25)]
async fn part_of_a_second() {}

/// Minutes.
#[tool(timeout = "2m")]
async fn minutes() {}

/// Hours.
#[tool(timeout = "1h")]
async fn hours() {}

#[test]
fn a_timeout_has_a_unit_or_is_in_seconds() {
    let timeout = |tool: ToolDef| tool.policy().timeout.unwrap().as_millis();
    let all = [whole_seconds(), part_of_a_second(), minutes(), hours()].map(timeout);
    assert_eq!(all, [30_000, 250, 120_000, 3_600_000]);
    assert_eq!(whole_seconds().policy().parallel, Some(true));
}

fn show(arguments: &Value) -> CallView {
    CallView::markdown("Run", format!("`{}`", arguments["command"]))
}

fn show_or_refuse(arguments: &Value) -> Result<CallView, ToolError> {
    if arguments["command"] == "" {
        return Err(ToolError::new("nothing to show"));
    }
    Ok(show(arguments))
}

/// Runs a command.
#[tool(viewer = show)]
async fn viewed(
    /// The command.
    command: String,
) -> String {
    command
}

/// Runs a command.
#[tool(viewer = self::show_or_refuse)]
async fn viewed_with_care(
    /// The command.
    command: String,
) -> String {
    command
}

#[test]
fn a_viewer_shows_calls_to_an_approver() {
    let described = |tool: ToolDef, command: &str| {
        *tool.prepared(json!({"command": command})).unwrap().description.unwrap()
    };
    let shown = described(viewed(), "ls").view;
    assert_eq!(shown, CallView::markdown("Run", "`\"ls\"`"));
    assert_eq!(described(viewed_with_care(), "ls").view, shown);
    let refused = described(viewed_with_care(), "");
    assert_eq!((refused.view, refused.view_error.as_deref()), (CallView::default(), Some("nothing to show")));
}

static LIMITED: AtomicUsize = AtomicUsize::new(0);

/// Counts its calls.
#[tool(rate_limit = "2/10s", category = "slow")]
async fn limited() -> usize {
    LIMITED.fetch_add(1, Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_makes_calls_wait() {
    let start = tokio::time::Instant::now();
    let mut times = Vec::new();
    for _ in 0..5 {
        limited().call(&ToolContext::detached(), json!({})).await.unwrap();
        times.push(start.elapsed().as_secs());
    }
    assert_eq!(times, [0, 0, 10, 10, 20]);
    assert_eq!(limited().policy().category.as_deref(), Some("slow"));
}

static CACHED: AtomicUsize = AtomicUsize::new(0);

/// Counts its calls, and remembers them.
#[tool(cache = "5m", rate_limit = "1/h")]
async fn cached(
    /// What to look up.
    #[expect(unused_variables, reason = "only the cache looks at it")]
    key: String,
) -> usize {
    CACHED.fetch_add(1, Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn a_cache_answers_again_without_taking_a_turn() {
    let (start, run) = (tokio::time::Instant::now(), ToolContext::detached());
    let ask = async |key: &str| cached().call(&run, json!({"key": key})).await.unwrap().value();
    assert_eq!((ask("a").await, ask("a").await), (json!(0), json!(0)));
    assert_eq!(start.elapsed().as_secs(), 0);
    assert_eq!(ask("b").await, json!(1));
    assert_eq!(start.elapsed().as_secs(), 3600);
    assert_eq!(ask("a").await, json!(2));
}

struct User(&'static str);

/// Shows the mail of the user.
#[tool(cache = "5m")]
async fn mail(user: State<User>) -> String {
    format!("mail of {}", user.0.0)
}

#[tokio::test]
async fn a_cache_does_not_answer_one_run_with_the_result_of_another() {
    for user in ["alice", "bob"] {
        let run = ToolContext::detached_in(RunScope::default().with_state(User(user)));
        let said = mail().call(&run, json!({})).await.unwrap().to_text();
        assert_eq!(said, format!("mail of {user}"));
    }
}

mod renamed {
    pub(super) use toolwright_core as tools;
}

/// Finds core elsewhere.
#[tool(crate = renamed::tools)]
async fn elsewhere(
    /// A number.
    #[tool(default = 1)]
    x: i32,
) -> i32 {
    x
}

/// Finds core elsewhere.
#[tool(crate = "crate::options::renamed::tools")]
fn elsewhere_in_quotes() -> i32 {
    1
}

#[tokio::test]
async fn core_can_be_elsewhere() {
    assert_eq!(value(&elsewhere(), json!({})).await, json!(1));
    assert_eq!(value(&elsewhere_in_quotes(), json!({})).await, json!(1));
}
