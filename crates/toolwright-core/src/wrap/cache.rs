//! A cache of results that are still fresh. Equal calls that arrive together do the work once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::{around, lock};
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::dispatch::CallNote;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{Tool, canonical_json};

/// How many results a cache keeps unless told otherwise.
const DEFAULT_CAPACITY: usize = 1024;

/// Results by tool and canonical arguments. Clones share it, so several tools can use one.
///
/// Only successful results are kept. When the cache is full, what expires first makes room.
#[derive(Debug, Clone)]
pub struct Cache {
    ttl: Duration,
    capacity: usize,
    entries: Arc<Mutex<HashMap<String, Arc<Slot>>>>,
}

#[derive(Debug)]
struct Slot {
    made: Instant,
    result: OnceCell<ToolOutput>,
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

    /// The slot for a key: the fresh one that is there, or a new empty one.
    fn slot(&self, key: &str) -> Arc<Slot> {
        let now = Instant::now();
        let mut entries = lock(&self.entries);
        if let Some(slot) = entries.get(key)
            && now.saturating_duration_since(slot.made) < self.ttl
        {
            return slot.clone();
        }
        if entries.len() >= self.capacity {
            entries.retain(|_, slot| now.saturating_duration_since(slot.made) < self.ttl);
        }
        if entries.len() >= self.capacity
            && let Some(oldest) = entries.iter().min_by_key(|(_, slot)| slot.made).map(|(key, _)| key.clone())
        {
            entries.remove(&oldest);
        }
        let slot = Arc::new(Slot { made: now, result: OnceCell::new() });
        entries.insert(key.to_owned(), slot.clone());
        slot
    }

    /// Takes an empty slot away, so that a failure is not remembered.
    fn forget(&self, key: &str, slot: &Arc<Slot>) {
        let mut entries = lock(&self.entries);
        if entries.get(key).is_some_and(|current| Arc::ptr_eq(current, slot)) {
            entries.remove(key);
        }
    }

    async fn call(
        &self,
        tool: &impl Tool,
        context: &ToolContext,
        arguments: Value,
    ) -> Result<ToolOutput, ToolError> {
        let key = format!("{}\0{}", tool.spec().name, canonical_json(&arguments));
        let slot = self.slot(&key);
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
                Ok(output)
            }
            Err(error) => {
                self.forget(&key, &slot);
                Err(error)
            }
        }
    }
}

pub(super) fn wrap(tool: impl Tool + 'static, cache: Cache) -> ToolDef {
    around(tool, move |tool, context, arguments| {
        let cache = cache.clone();
        Box::pin(async move { cache.call(&tool, context, arguments).await })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToolExt, ToolSpec};
    use serde_json::json;
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
