//! The calls of one assistant message.
//!
//! They are cut into stages: a run of parallel tools is one stage, whose calls run at the same time; any
//! other call is a stage of its own, and a barrier. Results come back in the order of the calls. One failing
//! call stops no other; a fatal error cancels the rest of its stage, and the stages after it do not begin.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use toolwright_core::{CancelToken, ErrorInfo, ErrorKind, ToolCall, ToolError, ToolResult, Toolset};
use toolwright_util::lock;

use crate::call::{ExternalCall, run_external, to_real_names};
use crate::guard;
use crate::run::RunFrame;

/// The results of a batch, each in the place of its call. Whoever stops waiting still finds here what was
/// done.
#[derive(Clone, Default)]
pub(crate) struct Results(Arc<Mutex<BTreeMap<usize, ToolResult>>>);

impl Results {
    fn set(&self, place: usize, result: ToolResult) {
        self.lock().insert(place, result);
    }

    /// Puts in the results of calls that were not made. The calls that were are counted without them.
    pub(crate) fn insert(&self, refused: Vec<(usize, ToolResult)>) {
        let mut results = self.lock();
        for (place, result) in refused {
            let after = results.split_off(&place);
            results.extend(after.into_iter().map(|(place, result)| (place + 1, result)));
            results.insert(place, result);
        }
    }

    /// The results there are, in the order of the calls.
    pub(crate) fn take(&self) -> Vec<ToolResult> {
        std::mem::take(&mut *self.lock()).into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, ToolResult>> {
        lock(&self.0)
    }
}

/// Makes the calls and gives their results.
pub(crate) async fn run_batch(
    run: &Arc<RunFrame>,
    calls: Vec<ToolCall>,
    fail_fast: &[String],
    cancel: &CancelToken,
) -> Result<Vec<ToolResult>, ToolError> {
    let results = Results::default();
    let tools = run.refresh_tools(cancel).await?;
    run_into(&results, run, &tools, calls, fail_fast, cancel).await?;
    Ok(results.take())
}

/// Makes the calls with these tools; every result is there as soon as its call is over.
pub(crate) async fn run_into(
    results: &Results,
    run: &Arc<RunFrame>,
    tools: &Toolset,
    mut calls: Vec<ToolCall>,
    fail_fast: &[String],
    cancel: &CancelToken,
) -> Result<(), ToolError> {
    to_real_names(tools, &mut calls);
    let mut failed: Vec<Arc<str>> = Vec::new();
    let mut place = 0;
    for stage in stages(tools, calls, fail_fast) {
        let first = place;
        place += stage.len();
        let call = match <[ToolCall; 1]>::try_from(stage) {
            Ok([call]) => call,
            Err(stage) => {
                run_stage(results, first, run, tools, stage, cancel).await?;
                continue;
            }
        };
        if failed.contains(&call.name) {
            results.set(first, skipped(&call));
            continue;
        }
        let name = call.name.clone();
        let from = ExternalCall::of_model(run, cancel);
        let result = run_external(run, call, Some(tools), from).await?;
        if result.is_error() && fail_fast.iter().any(|known| **known == *name) {
            failed.push(name);
        }
        results.set(first, result);
    }
    Ok(())
}

/// Cuts calls into stages: runs of parallel calls stay together, every other call stands alone.
fn stages(tools: &Toolset, calls: Vec<ToolCall>, fail_fast: &[String]) -> Vec<Vec<ToolCall>> {
    let parallel = |call: &ToolCall| {
        tools.get(&call.name).is_some_and(|entry| entry.tool.policy().is_parallel())
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
    results: &Results,
    first: usize,
    run: &Arc<RunFrame>,
    tools: &Toolset,
    stage: Vec<ToolCall>,
    cancel: &CancelToken,
) -> Result<(), ToolError> {
    // Each call has a task of its own, so that one which computes does not hold up the others; only so many
    // at a time, since each may hold a sandbox. Dropping the set, as when the caller is cancelled, stops them
    // all.
    let mut tasks = tokio::task::JoinSet::new();
    let mut waiting = stage.into_iter().enumerate();
    let mut fatal = None;
    loop {
        while tasks.len() < run.shared.max_parallel
            && fatal.is_none()
            && let Some((index, call)) = waiting.next()
        {
            let (run, tools, cancel, results) = (run.clone(), tools.clone(), cancel.clone(), results.clone());
            tasks.spawn(async move {
                let from = ExternalCall::of_model(&run, &cancel);
                let result = run_external(&run, call, Some(&tools), from).await?;
                results.set(first + index, result);
                Ok(())
            });
        }
        let Some(joined) = tasks.join_next().await else { break };
        if let Some(Err(error)) = guard::joined(joined)
            && fatal.is_none()
        {
            fatal = Some(error);
            tasks.abort_all();
        }
    }
    fatal.map_or(Ok(()), Err)
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
