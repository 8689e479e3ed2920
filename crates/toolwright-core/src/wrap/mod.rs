//! Wrappers around any tool: safe results, rate limits, caches, retries.
//!
//! Each is one line on a tool, keeps its definition, and reports what it did as notes of the call. A
//! [`RateLimit`] or a [`Cache`] can be shared between tools.

mod cache;
mod rate;
mod retry;
mod safe;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::erased::DynTool;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{BoxFuture, Tool};

pub use cache::Cache;
pub use rate::RateLimit;
pub use retry::Retry;

/// One-line wrappers for each tool.
///
/// ```
/// use std::time::Duration;
/// use toolwright_core::{Retry, ToolDef, ToolExt, ToolSpec};
/// # let search = ToolDef::dynamic(ToolSpec::new("search", "Searches."), |_, _| async { "hit" });
///
/// let search = search
///     .retry(Retry::times(3))
///     .cached(Duration::from_secs(300))
///     .rate_limited(10, Duration::from_secs(60))
///     .safe();
/// assert_eq!(&*search.spec().name, "search");
/// ```
pub trait ToolExt: Tool + Sized + 'static {
    /// Turns whatever the tool raises into a result, panics and fatal errors included: `{success: true,
    /// result}` or `{success: false, error, error_type}`. Cancellation, limits of the run and errors of the
    /// runtime itself (a record that cannot be written, a nested call that ended the run) stay errors.
    fn safe(self) -> ToolDef {
        safe::wrap(self)
    }

    /// Lets at most `calls` calls start in any `period`; the others wait their turn.
    fn rate_limited(self, calls: usize, period: Duration) -> ToolDef {
        self.rate_limited_by(&RateLimit::new(calls, period))
    }

    /// Puts calls under a limit that other tools may share.
    fn rate_limited_by(self, limit: &RateLimit) -> ToolDef {
        rate::wrap(self, limit.clone())
    }

    /// Keeps successful results for `ttl`; equal arguments, in whatever order, share one. Every run has
    /// results of its own, and forgets them when it is over.
    fn cached(self, ttl: Duration) -> ToolDef {
        cache::of_run(self, ttl)
    }

    /// [`cached`](Self::cached), where each result says whether it is an earlier one: `{result, cached}`. The
    /// tool gets a parameter `use_cache`, true unless it is given; with `false` the work is done again, and
    /// its result is kept.
    fn cached_reporting(self, ttl: Duration) -> ToolDef {
        cache::reporting(self, ttl)
    }

    /// Keeps successful results in a cache that other tools and other runs may share; see [`Cache`] for what
    /// it does not look at.
    fn cached_in(self, cache: &Cache) -> ToolDef {
        cache::shared(self, cache.clone())
    }

    /// Tries again when the work fails.
    fn retry(self, retry: Retry) -> ToolDef {
        retry::wrap(self, retry)
    }

    /// Stops calls that take longer than this.
    fn with_timeout(self, timeout: Duration) -> ToolDef {
        ToolDef::of(self).with_timeout(timeout)
    }
}

impl<T: Tool + Sized + 'static> ToolExt for T {}

/// A tool with the definition and policy of another, and code around its calls. It counts as the same tool.
fn around<T, F>(tool: T, code: F) -> ToolDef
where
    T: Tool + 'static,
    F: for<'a> Fn(Arc<T>, &'a ToolContext, Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
{
    let tool = Arc::new(tool);
    let inside: Arc<DynTool> = tool.clone();
    ToolDef::around(inside, move |context, arguments| code(tool.clone(), context, arguments))
}

/// The output inside a map, with what a map has no place for beside it.
fn in_map(output: ToolOutput, map: impl FnOnce(Value) -> Value) -> ToolOutput {
    let mut wrapped = ToolOutput::json(map(output.value()));
    wrapped.content.extend(output.content.into_iter().filter(|block| block.as_text().is_none()));
    wrapped.metadata = output.metadata;
    wrapped.extras = output.extras;
    wrapped.confidential = output.confidential;
    wrapped
}
