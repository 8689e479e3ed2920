//! A cache of results that are still fresh. Equal calls that arrive together do the work once.
//!
//! Nobody waits for work that waits for him: a call waits only for an equal one that is as deep as itself,
//! and so never for one that it is part of. A cached tool is another tool than the one inside it, so one
//! cache can hold both.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use toolwright_util::lock;

use super::{around, in_map};
use crate::context::ToolContext;
use crate::definition::{ToolDef, new_identity};
use crate::dispatch::CallNote;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{Tool, canonical_json};

/// How many results a cache keeps unless told otherwise.
const DEFAULT_CAPACITY: usize = 1024;

/// Results by tool and canonical arguments, for each run that uses it. Clones share it, so several tools can
/// use one.
///
/// A call gets the result of an earlier one of the same tool with equal arguments, from any caller. The cache
/// does not look at the run's `State`, sandbox or store, nor at the requester: a tool whose result depends on
/// them is cached for each run alone, with [`cached`](super::ToolExt::cached). Copies of one [`ToolDef`] are
/// one tool, also under other names; two tools of one name are not.
///
/// Only successful results are kept. When the cache is full, what is oldest makes room.
#[derive(Debug, Clone)]
pub struct Cache {
    ttl: Duration,
    capacity: usize,
    entries: Arc<Mutex<HashMap<CacheKey, Arc<CacheSlot>>>>,
}

/// Which tool, and its arguments in one spelling.
type CacheKey = (u64, String);

#[derive(Debug)]
struct CacheSlot {
    made: Instant,
    /// How long its maker keeps it.
    ttl: Duration,
    /// How deep the call is that makes it.
    depth: u32,
    result: OnceCell<ToolOutput>,
}

/// Which results a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcceptedResult {
    /// An earlier one, while it is fresh.
    Kept,
    /// A new one, which replaces the earlier one.
    Fresh,
}

/// A result, and whether it is an earlier one.
struct CachedOutput {
    output: ToolOutput,
    cached: bool,
}

impl CacheSlot {
    fn is_fresh(&self, now: Instant, ttl: Duration) -> bool {
        now.saturating_duration_since(self.made) < ttl
    }
}

impl Cache {
    /// Keeps each result for `ttl`.
    pub fn new(ttl: Duration) -> Self {
        Cache { ttl, capacity: DEFAULT_CAPACITY, entries: Arc::default() }
    }

    /// Keeps at most so many results (at least one).
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity.max(1);
        self
    }

    /// Forgets everything.
    pub fn clear(&self) {
        lock(&self.entries).clear();
    }

    /// How many results there are, fresh or not.
    pub fn len(&self) -> usize {
        lock(&self.entries).len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot for a key: the one that is there and younger than `oldest`, or a new empty one that is kept
    /// for `ttl`.
    fn slot(&self, key: &CacheKey, oldest: Duration, ttl: Duration, depth: u32) -> Arc<CacheSlot> {
        let now = Instant::now();
        let mut entries = lock(&self.entries);
        if let Some(slot) = entries.get(key)
            && slot.is_fresh(now, oldest)
        {
            return slot.clone();
        }
        if entries.len() >= self.capacity {
            entries.retain(|_, slot| slot.is_fresh(now, slot.ttl));
        }
        if entries.len() >= self.capacity
            && let Some(oldest) = entries.iter().min_by_key(|(_, slot)| slot.made).map(|(key, _)| key.clone())
        {
            entries.remove(&oldest);
        }
        let slot = Arc::new(CacheSlot { made: now, ttl, depth, result: OnceCell::new() });
        entries.insert(key.clone(), slot.clone());
        slot
    }

    /// Takes an empty slot away, so that a failure is not remembered.
    fn forget(&self, key: &CacheKey, slot: &Arc<CacheSlot>) {
        let mut entries = lock(&self.entries);
        if entries.get(key).is_some_and(|current| Arc::ptr_eq(current, slot)) {
            entries.remove(key);
        }
    }

    async fn call(
        &self,
        ttl: Duration,
        tool: &ToolDef,
        context: &ToolContext,
        arguments: Value,
        wanted: AcceptedResult,
    ) -> Result<CachedOutput, ToolError> {
        let key = (tool.identity(), canonical_json(&arguments));
        let ttl_of_kept = if wanted == AcceptedResult::Fresh { Duration::ZERO } else { ttl };
        let slot = self.slot(&key, ttl_of_kept, ttl, context.depth());
        if slot.depth != context.depth() && !slot.result.initialized() {
            return Ok(CachedOutput { output: tool.call(context, arguments).await?, cached: false });
        }
        let mut hit = true;
        let made = slot.result.get_or_try_init(|| {
            hit = false;
            tool.call(context, arguments)
        });
        match made.await {
            Ok(output) => {
                let output = output.clone();
                if hit {
                    context.note(CallNote::CacheHit { age: slot.made.elapsed() });
                }
                Ok(CachedOutput { output, cached: hit })
            }
            Err(error) => {
                self.forget(&key, &slot);
                Err(error)
            }
        }
    }
}

/// Keeps results in a cache that others may share.
pub(super) fn shared(tool: impl Tool + 'static, cache: Cache) -> ToolDef {
    let def = around(ToolDef::of(tool), move |tool, context, arguments| {
        let cache = cache.clone();
        Box::pin(async move {
            let answer = cache.call(cache.ttl, &tool, context, arguments, AcceptedResult::Kept).await?;
            Ok(answer.output)
        })
    });
    def.with_identity(new_identity())
}

/// Keeps results for as long as the run that they were made in.
pub(super) fn of_run(tool: impl Tool + 'static, ttl: Duration) -> ToolDef {
    let def = around(ToolDef::of(tool), move |tool, context, arguments| {
        Box::pin(async move {
            let cache = context.scope().store.cache();
            Ok(cache.call(ttl, &tool, context, arguments, AcceptedResult::Kept).await?.output)
        })
    });
    def.with_identity(new_identity())
}

/// The parameter that asks for a new result.
const USE_CACHE: &str = "use_cache";

/// [`of_run`], where each result says whether it is an earlier one, and a call may ask for a new one.
pub(super) fn reporting(tool: impl Tool + 'static, ttl: Duration) -> ToolDef {
    let tool = ToolDef::of(tool);
    let own = tool.spec().parameter_names().any(|name| name == USE_CACHE);
    let def = around(tool, move |tool, context, mut arguments| {
        Box::pin(async move {
            let given = match (own, &mut arguments) {
                (true, arguments) => arguments.get(USE_CACHE).cloned(),
                (false, Value::Object(arguments)) => arguments.shift_remove(USE_CACHE),
                _ => None,
            };
            let wanted =
                if given == Some(Value::Bool(false)) { AcceptedResult::Fresh } else { AcceptedResult::Kept };
            let answer = context.scope().store.cache().call(ttl, &tool, context, arguments, wanted).await?;
            Ok(in_map(answer.output, |result| json!({"result": result, "cached": answer.cached})))
        })
    });
    let def = def.edit(|spec, _| {
        spec.output_schema = None;
        if let (false, Some(parameters)) = (own, spec.parameters.as_object_mut()) {
            let about = "Whether the result of an earlier call will do.";
            let schema = json!({"type": "boolean", "default": true, "description": about});
            let properties = parameters.entry("properties").or_insert_with(|| json!({}));
            if let Some(properties) = properties.as_object_mut() {
                properties.insert(USE_CACHE.to_owned(), schema);
            }
        }
    });
    def.with_identity(new_identity())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToolExt, ToolSpec};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn counting(cache: &Cache, fail_first: bool) -> (ToolDef, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let seen = count.clone();
        let tool = ToolDef::dynamic(ToolSpec::new("slow", "Slow."), move |_, _| {
            let n = seen.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                if fail_first && n == 0 { Err(ToolError::new("first")) } else { Ok(format!("run {n}")) }
            }
        });
        (tool.cached_in(cache), count)
    }

    #[tokio::test(start_paused = true)]
    async fn equal_calls_at_the_same_time_do_the_work_once() {
        let (tool, count) = counting(&Cache::new(Duration::from_secs(60)), false);
        let tasks: Vec<_> = (0..50)
            .map(|i| {
                let tool = tool.clone();
                let arguments = if i % 2 == 0 { json!({"a": 1, "b": 2}) } else { json!({"b": 2, "a": 1}) };
                tokio::spawn(async move {
                    tool.call(&ToolContext::detached(), arguments).await.unwrap().to_text()
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), "run 0");
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn results_expire_failures_are_not_kept_and_types_differ() {
        let cache = Cache::new(Duration::from_secs(60));
        let (tool, count) = counting(&cache, true);
        let context = ToolContext::detached();
        assert!(tool.call(&context, json!({"x": 1})).await.is_err());
        assert_eq!(tool.call(&context, json!({"x": 1})).await.unwrap().to_text(), "run 1");
        assert_eq!(tool.call(&context, json!({"x": 1})).await.unwrap().to_text(), "run 1");
        assert_eq!(tool.call(&context, json!({"x": "1"})).await.unwrap().to_text(), "run 2");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(tool.call(&context, json!({"x": 1})).await.unwrap().to_text(), "run 3");
        assert_eq!(count.load(Ordering::SeqCst), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_cache_of_its_own_a_tool_keeps_results_for_each_run_alone() {
        let mail = ToolDef::dynamic(ToolSpec::new("mail", "Mail."), |context, _| async move {
            context.state::<String>().map(|user| format!("mail of {user}"))
        });
        let mail = mail.cached(Duration::from_secs(60));
        for user in ["alice", "bob"] {
            let scope = crate::RunScope::default().with_state(user.to_owned());
            let context = ToolContext::detached_in(scope);
            let first = mail.call(&context, json!({})).await.unwrap();
            assert_eq!(first.to_text(), format!("mail of {user}"));
            let one = context.scope().store.cache().len();
            assert_eq!((mail.call(&context, json!({})).await.unwrap(), one), (first, 1));
        }
    }

    #[tokio::test]
    async fn tools_of_one_name_do_not_answer_for_each_other_and_copies_of_one_do() {
        let cache = Cache::new(Duration::from_secs(60));
        let search = |what: &'static str| {
            ToolDef::dynamic(ToolSpec::new("search", "Searches."), move |_, _| async move { what })
        };
        let (a, b) = (search("from a"), search("from b"));
        let context = ToolContext::detached();
        for (tool, says, kept) in [
            (a.clone().cached_in(&cache), "from a", 1),
            (b.cached_in(&cache), "from b", 2),
            (a.clone().with_name("other").retry(crate::Retry::times(2)).cached_in(&cache), "from a", 2),
            (a.safe().cached_in(&cache), r#"{"success":true,"result":"from a"}"#, 3),
        ] {
            let said = tool.call(&context, json!({})).await.unwrap().to_text();
            assert_eq!((said.as_str(), cache.len()), (says, kept));
        }
    }

    #[tokio::test]
    async fn a_tool_that_is_cached_already_can_be_cached_again() {
        let hour = Duration::from_secs(3600);
        let cache = Cache::new(hour);
        let tool = || counting(&cache, false);
        let of_run = |(tool, count): (ToolDef, _)| (tool.cached(hour).cached(hour), count);
        let retried = |(tool, count): (ToolDef, _)| {
            (tool.cached(hour).retry(crate::Retry::times(2)).cached(hour).cached_in(&cache), count)
        };
        for (tool, count) in [of_run(tool()), retried(tool())] {
            let context = ToolContext::detached();
            for _ in 0..2 {
                let call = tool.call(&context, json!({}));
                let said = tokio::time::timeout(Duration::from_secs(60), call).await.expect("it hangs");
                assert_eq!(said.unwrap().to_text(), "run 0");
            }
            assert_eq!(count.load(Ordering::SeqCst), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_caller_says_how_old_a_result_may_be() {
        let count = Arc::new(AtomicUsize::new(0));
        let clock = ToolDef::dynamic(ToolSpec::new("clock", "Counts."), move |_, _| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            async move { n.to_string() }
        });
        let (hour, second) = (Duration::from_secs(3600), Duration::from_secs(1));
        let (patient, hasty) = (clock.clone().cached(hour), clock.cached(second));
        let context = ToolContext::detached();
        for (tool, says) in [(&patient, "0"), (&hasty, "1"), (&patient, "1")] {
            assert_eq!(tool.call(&context, json!({})).await.unwrap().to_text(), says);
            tokio::time::advance(Duration::from_secs(10)).await;
        }
    }

    #[tokio::test]
    async fn a_tool_taken_out_of_a_set_is_the_one_that_was_put_in() {
        let search = ToolDef::dynamic(ToolSpec::new("search", "Searches."), |_, _| async { "hit" });
        let set = crate::Toolset::new().with(search).unwrap();
        let (cache, context) = (Cache::new(Duration::from_secs(60)), ToolContext::detached());
        for _ in 0..2 {
            let out = set.get("search").unwrap().tool.clone().cached_in(&cache);
            out.call(&context, json!({})).await.unwrap();
        }
        assert_eq!(cache.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn reporting_cache_says_where_a_result_is_from_and_takes_use_cache() {
        let count = Arc::new(AtomicUsize::new(0));
        let mut spec = ToolSpec::new("clock", "Counts.");
        spec.parameters = json!({
            "type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": false,
        });
        let clock = ToolDef::dynamic(spec, move |_, arguments| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            async move { format!("{n} {arguments}") }
        });
        let clock = clock.cached_reporting(Duration::from_secs(300));
        let context = ToolContext::detached();
        for (arguments, result, cached) in [
            (json!({"x": 1}), "0 {\"x\":1}", false),
            (json!({"x": 1}), "0 {\"x\":1}", true),
            (json!({"x": 1, "use_cache": true}), "0 {\"x\":1}", true),
            (json!({"x": 1, "use_cache": false}), "1 {\"x\":1}", false),
            (json!({"x": 1}), "1 {\"x\":1}", true),
        ] {
            let arguments = clock.prepared(arguments).unwrap().arguments;
            let output = clock.call(&context, arguments).await.unwrap();
            assert_eq!(output.value(), json!({"result": result, "cached": cached}));
        }
        assert!(clock.prepared(json!({"x": 1, "use_cache": "never"})).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_cache_drops_the_oldest() {
        let cache = Cache::new(Duration::from_secs(60)).capacity(2);
        let (tool, count) = counting(&cache, false);
        let context = ToolContext::detached();
        for x in [1, 2, 3, 2, 3, 1] {
            tool.call(&context, json!({"x": x})).await.unwrap();
        }
        assert_eq!((cache.len(), count.load(Ordering::SeqCst)), (2, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_first_call_does_not_block_the_next() {
        let (tool, count) = counting(&Cache::new(Duration::from_secs(60)), false);
        let context = ToolContext::detached();
        let cut = tokio::time::timeout(Duration::from_millis(5), tool.call(&context, json!({}))).await;
        assert!(cut.is_err());
        assert_eq!(tool.call(&context, json!({})).await.unwrap().to_text(), "run 1");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }
}
