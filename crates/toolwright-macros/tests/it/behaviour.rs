//! How a tool made from a function behaves: what it is called, where it can stand, how it runs.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use toolwright_core::{ErrorKind, Tool, ToolContext, ToolError, Toolset, tool};

use crate::{call, failure, value};

/// Adds two numbers.
#[tool]
async fn add(
    /// First number.
    x: i64,
    /// Second number.
    y: i64,
) -> i64 {
    x + y
}

#[tokio::test]
async fn a_tool_is_called_with_json_and_its_function_directly() {
    assert_eq!(value(&add(), json!({"x": 1, "y": 2})).await, json!(3));
    assert_eq!(add::run(1, 2).await, 3);
}

#[test]
fn a_tool_can_be_bound_to_its_own_name() {
    let add = add();
    assert_eq!((&*add.spec().name, add.spec().description.as_str()), ("add", "Adds two numbers."));
    assert_eq!(
        add.spec().parameters,
        json!({
            "type": "object",
            "properties": {
                "x": {"type": "integer", "description": "First number."},
                "y": {"type": "integer", "description": "Second number."}
            },
            "required": ["x", "y"],
            "additionalProperties": false
        })
    );
}

#[test]
fn a_definition_is_made_once() {
    let (first, second) = (add(), add());
    assert!(std::ptr::eq(first.spec(), second.spec()));
}

#[tokio::test]
async fn a_tool_can_stand_inside_a_function_and_use_what_is_there() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Point {
        x: i64,
    }
    const STEP: i64 = 10;

    /// Moves a point.
    #[tool]
    async fn shift(
        /// Where it is.
        point: Point,
        /// How far.
        #[tool(default = STEP)]
        by: i64,
    ) -> i64 {
        point.x + by
    }
    assert_eq!(value(&shift(), json!({"point": {"x": 1}})).await, json!(11));
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_explained() {
    assert_eq!(
        failure(&add(), json!({"x": "one", "z": 1})).await,
        "the arguments do not fit:\n- `y` is missing\n- `x`: \"one\" is not an integer\n- `z` is not a parameter"
    );
    // Without a runtime in front, the tool itself refuses.
    let error = add().call(&ToolContext::detached(), json!({"x": 1, "y": 2, "z": 3})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parsing);
    assert!(error.message().contains("unknown field `z`"), "{}", error.message());
}

/// Sleeps, without yielding.
#[tool]
fn nap(
    /// For how long, in milliseconds.
    millis: u64,
) -> String {
    std::thread::sleep(std::time::Duration::from_millis(millis));
    format!("{:?}", std::thread::current().id())
}

#[tokio::test]
async fn a_plain_function_runs_off_the_async_thread() {
    let other = value(&nap(), json!({"millis": 1})).await;
    assert_ne!(other, json!(format!("{:?}", std::thread::current().id())));
    assert!(!nap::run(0).is_empty());
}

/// Panics.
#[tool]
async fn explode() {
    panic!("boom");
}

/// Panics on its own thread.
#[tool]
fn explode_blocking() {
    panic!("boom");
}

#[tokio::test]
async fn a_panic_is_left_to_the_runtime() {
    let task = tokio::spawn(async { explode().call(&ToolContext::detached(), json!({})).await });
    assert!(task.await.unwrap_err().is_panic());
    let error = call(&explode_blocking(), json!({})).await.unwrap_err();
    assert!(error.is_fatal() && error.message().contains("boom"));
}

/// Counts up.
#[tool]
async fn count(ctx: &ToolContext) -> Result<usize, ToolError> {
    let counter = ctx.state::<AtomicUsize>()?;
    Ok(counter.fetch_add(1, Ordering::SeqCst) + 1)
}

#[tokio::test]
async fn a_tool_without_parameters_takes_an_empty_object() {
    assert_eq!(count().spec().parameters, toolwright_core::empty_parameters());
    let scope = toolwright_core::RunScope::default().with_state(AtomicUsize::new(4));
    let context = ToolContext::detached_in(scope);
    assert_eq!(count().call(&context, json!({})).await.unwrap().value(), json!(5));
}

/// Has a name that is a word of Rust.
#[tool]
async fn r#match(
    /// The kind.
    r#type: String,
    /// The rest.
    mut text: String,
) -> String {
    text.push_str(&r#type);
    text
}

#[tokio::test]
async fn words_of_rust_are_plain_names_to_a_model() {
    assert_eq!(&*r#match().spec().name, "match");
    assert_eq!(value(&r#match(), json!({"type": "b", "text": "a"})).await, json!("ab"));
}

/// Names its call.
#[tool]
#[expect(clippy::needless_lifetimes, reason = "to see that a lifetime may be named")]
async fn call_id<'a>(
    ctx: &'a ToolContext,
    /// Unused, but there.
    _x: Option<i64>,
) -> &'a str {
    ctx.call_id()
}

#[tokio::test]
async fn what_the_program_provides_may_be_returned_in_part() {
    assert_eq!(value(&call_id(), json!({})).await, json!("call"));
    assert_eq!(call_id().spec().parameter_names().collect::<Vec<_>>(), ["_x"]);
}

mod elsewhere {
    use toolwright_core::tool;

    /// Says hello.
    #[tool]
    pub(crate) fn hello() -> &'static str {
        "hello"
    }

    /// Says goodbye.
    #[tool(name = "say/good-bye", description = concat!("Says ", "goodbye."))]
    #[allow(clippy::unnecessary_wraps, reason = "to see the attribute arrive")]
    #[cfg(not(any()))]
    pub(crate) async fn goodbye() -> Option<&'static str> {
        Some("goodbye")
    }
}

#[tokio::test]
async fn tools_keep_the_visibility_and_attributes_of_their_functions() {
    use elsewhere::{goodbye, hello};
    let tools = Toolset::new().with(hello()).unwrap().with(goodbye()).unwrap();
    assert_eq!(tools.names().collect::<Vec<_>>(), ["hello", "say/good-bye"]);
    assert_eq!(goodbye().spec().description, "Says goodbye.");
    assert_eq!((hello::run(), goodbye::run().await), ("hello", Some("goodbye")));
}
