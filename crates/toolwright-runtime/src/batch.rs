//! The calls of one assistant message.
//!
//! They are cut into stages: a run of parallel tools is one stage, whose calls run at the same time; any other call is
//! a stage of its own, and a barrier. Results come back in the order of the calls. One failing call stops no other; a
//! fatal error cancels the rest of its stage, and the stages after it do not begin.

use std::sync::Arc;

use toolwright_core::{CancelToken, ErrorInfo, ErrorKind, ToolCall, ToolError, ToolResult, Toolset};

use crate::call::run_call;
use crate::run::RunInner;

pub(crate) async fn run_batch(
    run: &Arc<RunInner>,
    calls: Vec<ToolCall>,
    fail_fast: &[String],
    cancel: &CancelToken,
) -> Result<Vec<ToolResult>, ToolError> {
    let tools = run.refresh_tools().await?;
    let mut results = Vec::with_capacity(calls.len());
    let mut failed: Vec<Arc<str>> = Vec::new();
    for stage in stages(&tools, calls, fail_fast) {
        let [call] = stage.as_slice() else {
            results.extend(run_stage(run, &tools, stage, cancel).await?);
            continue;
        };
        if failed.contains(&call.name) {
            results.push(skipped(call));
            continue;
        }
        let result = run_call(run, call.clone(), Some(&tools), cancel).await?;
        if result.is_error() && fail_fast.iter().any(|name| **name == *call.name) {
            failed.push(call.name.clone());
        }
        results.push(result);
    }
    Ok(results)
}

/// Cuts calls into stages: runs of parallel calls stay together, every other call stands alone.
fn stages(tools: &Toolset, calls: Vec<ToolCall>, fail_fast: &[String]) -> Vec<Vec<ToolCall>> {
    let parallel = |call: &ToolCall| {
        tools.get(&call.name).is_some_and(|entry| entry.tool.settings().is_parallel())
            && !fail_fast.iter().any(|name| **name == *call.name)
    };
    let mut stages: Vec<Vec<ToolCall>> = Vec::new();
    let mut joins = false;
    for call in calls {
        let is_parallel = parallel(&call);
        match stages.last_mut() {
            Some(stage) if joins && is_parallel => stage.push(call),
            _ => stages.push(vec![call]),
        }
        joins = is_parallel;
    }
    stages
}

async fn run_stage(
    run: &Arc<RunInner>,
    tools: &Toolset,
    stage: Vec<ToolCall>,
    cancel: &CancelToken,
) -> Result<Vec<ToolResult>, ToolError> {
    // Each call has a task of its own, so that one which computes does not hold up the others. Dropping the set, as
    // when the caller is cancelled, stops them all.
    let mut tasks = tokio::task::JoinSet::new();
    for (index, call) in stage.iter().enumerate() {
        let (run, tools, call, cancel) = (run.clone(), tools.clone(), call.clone(), cancel.clone());
        tasks.spawn(async move { (index, run_call(&run, call, Some(&tools), &cancel).await) });
    }
    let mut results: Vec<Option<ToolResult>> = stage.iter().map(|_| None).collect();
    let mut fatal = None;
    while let Some(joined) = tasks.join_next().await {
        match joined {
            Ok((index, Ok(result))) => {
                if let Some(slot) = results.get_mut(index) {
                    *slot = Some(result);
                }
            }
            Ok((_, Err(error))) if fatal.is_none() => {
                fatal = Some(error);
                tasks.abort_all();
            }
            Ok((_, Err(_))) => {}
            Err(error) if error.is_panic() && fatal.is_none() => {
                fatal = Some(toolwright_core::panic_error(&*error.into_panic()));
                tasks.abort_all();
            }
            Err(_) => {}
        }
    }
    match fatal {
        Some(error) => Err(error),
        None => Ok(results.into_iter().flatten().collect()),
    }
}

fn skipped(call: &ToolCall) -> ToolResult {
    let error = ErrorInfo {
        kind: ErrorKind::Cancelled,
        message: format!("not run: an earlier call of `{}` in this message failed", call.name),
        hint: None,
    };
    ToolResult::failed(call, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwright_core::{ToolDef, ToolSpec};

    #[test]
    fn runs_of_parallel_calls_are_stages_and_other_calls_are_barriers() {
        let tool = |name: &str| ToolDef::dynamic(ToolSpec::new(name, "d"), |_, _| async { "ok" });
        let tools = Toolset::new().with(tool("p")).unwrap().with(tool("q")).unwrap();
        let tools = tools.with(tool("s").with_parallel(false)).unwrap();
        let cut = |names: &str, fail_fast: &[String]| {
            let calls = names.split(' ').map(|name| ToolCall::new("1", name, json!({}))).collect();
            let stages = stages(&tools, calls, fail_fast);
            stages
                .iter()
                .map(|stage| stage.iter().map(|call| &*call.name).collect::<String>())
                .collect::<Vec<_>>()
        };
        assert_eq!(cut("p q s q p", &[]), ["pq", "s", "qp"]);
        assert_eq!(cut("p unknown p s s", &[]), ["p", "unknown", "p", "s", "s"]);
        assert_eq!(cut("p q p", &["p".to_owned()]), ["p", "q", "p"]);
    }
}
