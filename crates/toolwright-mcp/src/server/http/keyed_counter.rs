//! A bounded per-key counter: connections of an address, calls of a client.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use toolwright_util::lock;

/// Counts by key. A key whose count is zero takes no memory.
pub(super) struct KeyedCounter<K: Eq + Hash> {
    counts: Mutex<HashMap<K, usize>>,
    most: usize,
}

impl<K: Eq + Hash + Clone> KeyedCounter<K> {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(KeyedCounter { counts: Mutex::default(), most })
    }

    /// Counts one more until the guard is dropped; `None` at the bound.
    pub(super) fn enter(self: &Arc<Self>, key: &K) -> Option<Counted<K>> {
        let mut counts = lock(&self.counts);
        let count = counts.get(key).copied().unwrap_or(0);
        if count >= self.most {
            return None;
        }
        counts.insert(key.clone(), count + 1);
        drop(counts);
        Some(Counted { counter: self.clone(), key: key.clone() })
    }
}

/// One unit of a key's count.
pub(super) struct Counted<K: Eq + Hash> {
    counter: Arc<KeyedCounter<K>>,
    key: K,
}

impl<K: Eq + Hash> Drop for Counted<K> {
    fn drop(&mut self) {
        let mut counts = lock(&self.counter.counts);
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_count_and_releases_it() {
        let counter = KeyedCounter::new(2);
        let (first, _second) = (counter.enter(&"a"), counter.enter(&"a"));
        assert!(first.is_some() && counter.enter(&"a").is_none());
        assert!(counter.enter(&"b").is_some());
        drop(first);
        assert!(counter.enter(&"a").is_some());
        assert_eq!(lock(&counter.counts).len(), 1, "a key without a count is not kept");
    }
}
