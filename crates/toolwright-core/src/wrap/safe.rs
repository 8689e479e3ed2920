//! Errors as data, for callers that want one shape for each outcome.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use serde_json::json;

use super::{around, in_map};
use crate::context::ToolContext;
use crate::definition::{ToolDef, new_identity, panic_error};
use crate::error::{ErrorKind, ToolError};
use crate::output::ToolOutput;
use crate::tool::{BoxFuture, Tool};

pub(super) fn wrap(tool: impl Tool + 'static) -> ToolDef {
    let def = around(tool, |tool, context, arguments| {
        Box::pin(async move {
            let outcome = match caught(|| tool.call_boxed(context, arguments)) {
                Ok(work) => Caught(work).await,
                Err(panic) => Err(panic),
            };
            as_data(context, outcome)
        })
    });
    // Its results are others, so a cache must not take it for the tool inside.
    def.edit(|spec, _| spec.output_schema = None).with_identity(new_identity())
}

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, ToolError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| panic_error(&*payload))
}

/// The work of a tool, in which a panic becomes an error. It is not polled again after that.
struct Caught<'a>(BoxFuture<'a, Result<ToolOutput, ToolError>>);

impl Future for Caught<'_> {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        caught(|| self.0.as_mut().poll(cx)).unwrap_or_else(|panic| Poll::Ready(Err(panic)))
    }
}

fn as_data(context: &ToolContext, outcome: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
    match outcome {
        Ok(output) => Ok(in_map(output, |result| json!({"success": true, "result": result}))),
        // What stops the run or the call is not the tool's failure.
        Err(error)
            if error.is_of_runtime() || error.kind() == ErrorKind::Cancelled || context.is_cancelled() =>
        {
            Err(error)
        }
        Err(error) => {
            let prefix = match error.kind() {
                ErrorKind::Parsing => "Invalid input: ",
                ErrorKind::Timeout => "Operation timed out: ",
                _ => "Unexpected error: ",
            };
            let told = ToolOutput::json(json!({
                "success": false,
                "error": format!("{prefix}{}", error.message()),
                "error_type": error.kind(),
            }));
            Ok(ToolOutput { confidential: error.is_confidential(), ..told })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToolContext, ToolExt, ToolSpec};

    async fn call(result: fn() -> Result<String, ToolError>) -> Result<serde_json::Value, ToolError> {
        let tool = ToolDef::dynamic(ToolSpec::new("t", "T."), move |_, _| async move { result() }).safe();
        tool.call(&ToolContext::detached(), json!({})).await.map(|output| output.value())
    }

    #[tokio::test]
    async fn every_outcome_of_the_tool_has_the_same_shape() {
        assert_eq!(call(|| Ok("r".into())).await.unwrap(), json!({"success": true, "result": "r"}));
        assert_eq!(
            call(|| Err(ToolError::invalid("empty"))).await.unwrap(),
            json!({"success": false, "error": "Invalid input: empty", "error_type": "parsing"})
        );
        assert_eq!(
            call(|| Err(ToolError::of(ErrorKind::Timeout, "slow"))).await.unwrap()["error"],
            json!("Operation timed out: slow")
        );
        assert_eq!(call(|| Err(ToolError::new("k"))).await.unwrap()["error"], json!("Unexpected error: k"));
        let refused = || Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into());
        for failure in [refused, || Err(ToolError::fatal("broken")), || panic!("broken")] {
            let told = call(failure).await.unwrap();
            assert_eq!((&told["success"], &told["error_type"]), (&json!(false), &json!("fatal")));
            assert!(told["error"].as_str().unwrap().starts_with("Unexpected error: "), "{told}");
        }
    }

    #[tokio::test]
    async fn what_stops_the_run_or_the_call_stays_an_error() {
        for failure in [
            || Err(ToolError::fatal("the run is gone").in_runtime()),
            || Err(ToolError::of(ErrorKind::Limit, "used up").in_runtime()),
            || Err(ToolError::of(ErrorKind::Cancelled, "stopped")),
        ] {
            assert!(call(failure).await.is_err());
        }
        let tool = ToolDef::dynamic(ToolSpec::new("t", "T."), |_, _| async {
            Err::<String, _>(ToolError::new("late"))
        });
        let context = ToolContext::detached();
        context.stop();
        assert!(tool.safe().call(&context, json!({})).await.is_err());
    }

    /// With every wrapper, and behind all of them.
    #[tokio::test(start_paused = true)]
    async fn what_is_confidential_stays_so_in_every_wrapping() {
        type Outcome = Result<ToolOutput, ToolError>;
        let secret = || Ok(ToolOutput { confidential: true, ..ToolOutput::text("s") });
        let failure = || Err(ToolError::new("s").in_confidence());
        for outcome in [secret as fn() -> Outcome, failure] {
            let tool = ToolDef::dynamic(ToolSpec::new("t", "T."), move |_, _| async move { outcome() });
            let minute = std::time::Duration::from_secs(60);
            let cache = crate::Cache::new(minute);
            for wrapped in [
                tool.clone().safe(),
                tool.clone().cached(minute).safe(),
                tool.clone().safe().cached_in(&cache),
                tool.clone().retry(crate::Retry::times(2)),
                tool.clone().cached(minute),
                tool.clone().rate_limited(9, minute),
                tool.clone().with_timeout(minute),
                ToolDef::of(tool.clone()).with_name("u"),
            ] {
                for _ in 0..2 {
                    let said = wrapped.call(&ToolContext::detached(), json!({})).await;
                    let kept =
                        said.map_or_else(|error| error.is_confidential(), |output| output.confidential);
                    assert!(kept, "{wrapped:?}");
                }
            }
        }
    }
}
