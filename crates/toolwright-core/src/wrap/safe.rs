//! Errors as data, for callers that want one shape for every outcome.

use serde_json::json;

use super::around;
use crate::definition::{ToolDef, new_identity};
use crate::error::{ErrorKind, ToolError};
use crate::output::ToolOutput;
use crate::tool::Tool;

pub(super) fn wrap(tool: impl Tool + 'static) -> ToolDef {
    let def = around(tool, |tool, context, arguments| {
        Box::pin(async move { outcome(tool.call(context, arguments).await) })
    });
    // Its results are others, so a cache must not take it for the tool inside.
    def.edit(|spec, _| spec.output_schema = None).with_identity(new_identity())
}

fn outcome(result: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
    match result {
        Ok(output) => {
            let media =
                output.content.iter().filter(|block| block.as_text().is_none()).cloned().collect::<Vec<_>>();
            let mut wrapped = ToolOutput::json(json!({"success": true, "result": output.value()}));
            wrapped.content.extend(media);
            wrapped.metadata = output.metadata;
            wrapped.extras = output.extras;
            wrapped.confidential = output.confidential;
            Ok(wrapped)
        }
        Err(error) if error.is_fatal() => Err(error),
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
    async fn every_outcome_but_a_fatal_one_has_the_same_shape() {
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
        assert!(call(|| Err(ToolError::fatal("broken"))).await.unwrap_err().is_fatal());
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
