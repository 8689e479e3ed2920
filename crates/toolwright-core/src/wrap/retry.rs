//! Trying again, with growing pauses.

use std::time::Duration;

use super::around;
use crate::definition::ToolDef;
use crate::dispatch::CallNote;
use crate::error::{ErrorKind, ToolError};
use crate::tool::Tool;

/// How often, and how patiently, a failing call is tried again.
///
/// Tried again are the tool's own errors and time-outs inside it; wrong arguments, refusals, limits and fatal
/// errors are not, because trying again cannot help.
#[derive(Debug, Clone)]
pub struct Retry {
    attempts: u32,
    pause: Duration,
    longest_pause: Duration,
}

impl Retry {
    /// At most `attempts` attempts in all (at least one), with pauses of 0.1 s, 0.2 s, 0.4 s and so on up to
    /// 10 s.
    pub fn times(attempts: u32) -> Self {
        Retry {
            attempts: attempts.max(1),
            pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
        }
    }

    /// The first pause; each further one is twice as long.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The longest pause.
    #[must_use]
    pub fn longest_pause(mut self, longest: Duration) -> Self {
        self.longest_pause = longest;
        self
    }

    fn pause_after(&self, attempt: u32) -> Duration {
        let factor = 2_u32.saturating_pow(attempt.saturating_sub(1));
        self.pause.saturating_mul(factor).min(self.longest_pause)
    }
}

fn may_help(error: &ToolError) -> bool {
    matches!(error.kind(), ErrorKind::Unknown | ErrorKind::Timeout)
}

pub(super) fn wrap(tool: impl Tool + 'static, retry: Retry) -> ToolDef {
    around(tool, move |tool, context, arguments| {
        let retry = retry.clone();
        Box::pin(async move {
            let mut attempt = 1;
            loop {
                match tool.call(context, arguments.clone()).await {
                    Err(error) if attempt < retry.attempts && may_help(&error) => {
                        let wait = retry.pause_after(attempt);
                        context.note(CallNote::Retry { attempt, error: error.message().to_owned(), wait });
                        tokio::time::sleep(wait).await;
                        attempt += 1;
                    }
                    outcome => return outcome,
                }
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToolContext, ToolExt, ToolSpec};
    use serde_json::json;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    async fn attempts(kind: ErrorKind, succeed_at: u32) -> (bool, u32) {
        let count = Arc::new(AtomicU32::new(0));
        let seen = count.clone();
        let tool = ToolDef::dynamic(ToolSpec::new("flaky", "Flaky."), move |_, _| {
            let n = seen.fetch_add(1, Ordering::SeqCst) + 1;
            async move { if n >= succeed_at { Ok("done") } else { Err(ToolError::of(kind, "not yet")) } }
        });
        let result = tool.retry(Retry::times(3)).call(&ToolContext::detached(), json!({})).await;
        (result.is_ok(), count.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn only_failures_that_may_pass_are_tried_again() {
        assert_eq!(attempts(ErrorKind::Unknown, 3).await, (true, 3));
        assert_eq!(attempts(ErrorKind::Unknown, 9).await, (false, 3));
        assert_eq!(attempts(ErrorKind::Parsing, 2).await, (false, 1));
        assert_eq!(attempts(ErrorKind::Fatal, 2).await, (false, 1));
    }
}
