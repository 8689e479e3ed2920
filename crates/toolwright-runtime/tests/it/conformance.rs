//! Our own parts pass the suites we offer to others.

use serde_json::json;
use toolwright_core::{ToolDef, ToolSpec};
use toolwright_models::{Reply, ScriptedModel};
use toolwright_runtime::LocalExecutor;
use toolwright_testkit::conformance;

use crate::support::{add, plain};

#[tokio::test(flavor = "multi_thread")]
async fn the_local_executor_conforms() {
    conformance::executor(LocalExecutor).await.assert();
}

#[tokio::test]
async fn the_scripted_model_conforms() {
    let model =
        ScriptedModel::new([Reply::text("3"), Reply::text("3"), Reply::call("add", json!({"x": 1, "y": 2}))]);
    conformance::model(&model).await.assert();
}

#[tokio::test]
async fn a_good_tool_conforms_and_a_bad_one_is_caught() {
    conformance::tool(add(), json!({"x": 1, "y": 2})).await.assert();
    let fatal =
        plain("fatal", |_| async { Err(toolwright_core::ToolError::fatal("always")) }).with_description("");
    let needs_state = ToolDef::dynamic(ToolSpec::new("user", "Says who it is."), |context, _| async move {
        context.state::<String>().map(|user| user.to_string())
    });
    assert!(!conformance::tool(needs_state.clone(), json!({})).await.failed.is_empty());
    conformance::tool_in(needs_state, json!({}), |run| run.state("alice".to_owned())).await.assert();
    let report = conformance::tool(fatal, json!({})).await;
    assert!(report.failed.iter().any(|line| line.starts_with("it has a description")), "{report:?}");
    assert!(report.failed.iter().any(|line| line.starts_with("it takes the given arguments")), "{report:?}");
}
