//! What every executor should do: the same as running the call in this process.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::{ErrorKind, ToolCall, ToolContext, ToolDef, ToolError, ToolSpec, Toolset};
use toolwright_runtime::{Executor, Run};

use super::{Report, ensure};

/// The tools the suite calls; a remote executor must offer the same set on its side.
pub fn tools() -> Toolset {
    let open = |name: &str| {
        let mut spec = ToolSpec::new(name, "A tool of the conformance suite.");
        spec.parameters = json!({"type": "object", "properties": {}, "additionalProperties": true});
        spec
    };
    let all = [
        ToolDef::dynamic(open("echo"), |_, arguments: Value| async move { arguments }),
        ToolDef::dynamic(open("fail"), |_, _| async {
            Err::<String, _>(ToolError::new("no").hint("try echo"))
        }),
        ToolDef::dynamic(open("break"), |_, _| async { Err::<String, _>(ToolError::fatal("broken")) }),
        ToolDef::dynamic(open("stall"), |context: ToolContext, _| async move {
            context.cancel_token().cancelled().await;
            Err::<String, _>(ToolError::of(ErrorKind::Cancelled, "stopped"))
        })
        .with_timeout(Duration::from_millis(100)),
    ];
    all.into_iter().fold(Toolset::new(), |set, tool| set.clone().with(tool).unwrap_or(set))
}

/// Checks an executor through a run that uses it.
pub async fn executor(executor: impl Executor + 'static) -> Report {
    let mut report = Report::default();
    let run = match Run::builder(tools()).executor(executor).build() {
        Ok(run) => run,
        Err(error) => {
            report.check("a run can be built", Err(error.to_string()));
            return report;
        }
    };
    let call = |tool: &str, arguments: Value| run.call(ToolCall::new("check", tool, arguments));

    let arguments = json!({"text": "é\n\u{1F600}", "list": [1, 2.5, null, true], "deep": {"a": {"b": []}}});
    let echoed = call("echo", arguments.clone())
        .await
        .map(|result| serde_json::from_str(&result.to_text()).unwrap_or_default());
    report.check(
        "arguments and output arrive unchanged",
        ensure(echoed.as_ref().is_ok_and(|value: &Value| *value == arguments), || format!("{echoed:?}")),
    );
    let failed = call("fail", json!({})).await.map(|result| result.error);
    let as_told = |error: &toolwright_core::ErrorInfo| {
        error.kind == ErrorKind::Unknown && error.message == "no" && error.hint.as_deref() == Some("try echo")
    };
    report.check(
        "an error arrives with kind, message and hint",
        ensure(matches!(&failed, Ok(Some(error)) if as_told(error)), || format!("{failed:?}")),
    );
    let broken = call("break", json!({})).await;
    report.check(
        "a fatal error ends the run",
        ensure(broken.as_ref().is_err_and(|error| error.is_fatal()), || format!("{broken:?}")),
    );
    let stalled = tokio::time::timeout(Duration::from_secs(5), call("stall", json!({}))).await;
    let timed_out = matches!(&stalled, Ok(Ok(result)) if result.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Timeout));
    report.check("a time-out is reported on time", ensure(timed_out, || format!("{stalled:?}")));
    let many = futures(&run).await;
    report.check("many calls at once get their own answers", many);
    report
}

async fn futures(run: &Run) -> Result<(), String> {
    let calls = (0..100).map(|n| ToolCall::new(format!("c{n}"), "echo", json!({"n": n}))).collect();
    let results = run.call_all(calls).await.map_err(|error| error.to_string())?;
    for (n, result) in results.iter().enumerate() {
        let wanted: Arc<str> = format!("c{n}").into();
        ensure(result.call_id == wanted && result.to_text() == format!("{{\"n\":{n}}}"), || {
            format!("{result:?}")
        })?;
    }
    ensure(results.len() == 100, || format!("{} results", results.len()))
}
