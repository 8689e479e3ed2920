//! How many there are of something for each name, with a bound: connections of an address, calls of a client.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts by name. A name that nothing is counted for takes no room.
pub(super) struct Crowd<K: Eq + Hash> {
    inside: Mutex<HashMap<K, usize>>,
    most: usize,
}

impl<K: Eq + Hash + Clone> Crowd<K> {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Crowd { inside: Mutex::default(), most })
    }

    /// Counts one more until the guard is gone; `None` when there are as many as there may be.
    pub(super) fn enter(self: &Arc<Self>, who: &K) -> Option<Inside<K>> {
        let mut inside = self.inside();
        let count = inside.get(who).copied().unwrap_or(0);
        if count >= self.most {
            return None;
        }
        inside.insert(who.clone(), count + 1);
        drop(inside);
        Some(Inside { crowd: self.clone(), who: who.clone() })
    }
}

impl<K: Eq + Hash> Crowd<K> {
    fn inside(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that is counted.
pub(super) struct Inside<K: Eq + Hash> {
    crowd: Arc<Crowd<K>>,
    who: K,
}

impl<K: Eq + Hash> Drop for Inside<K> {
    fn drop(&mut self) {
        let mut inside = self.crowd.inside();
        if let Some(count) = inside.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                inside.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_own_places_and_gets_them_back() {
        let crowd = Crowd::new(2);
        let (first, _second) = (crowd.enter(&"a"), crowd.enter(&"a"));
        assert!(first.is_some() && crowd.enter(&"a").is_none());
        assert!(crowd.enter(&"b").is_some());
        drop(first);
        assert!(crowd.enter(&"a").is_some());
        assert_eq!(crowd.inside().len(), 1, "who is gone is not remembered");
    }
}
