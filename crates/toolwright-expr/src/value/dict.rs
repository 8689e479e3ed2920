//! Dicts and sets.

use std::sync::{Arc, Mutex, PoisonError};

use indexmap::{IndexMap, IndexSet};

use super::key::{Key, Prehashed, TextKey};
use super::release::dismantle;
use super::{Value, lock};

/// A shared dict that programs can change in place; keys keep the order they came in.
#[derive(Clone)]
pub struct Dict(pub(super) Arc<DictData>);

pub(super) struct DictData {
    map: Mutex<Arc<DictMap>>,
}

pub(crate) type DictMap = IndexMap<Key, Value, Prehashed>;

impl Dict {
    pub(crate) fn new(map: DictMap) -> Self {
        Dict(Arc::new(DictData { map: Mutex::new(Arc::new(map)) }))
    }

    /// The entries as they are now.
    pub(crate) fn snapshot(&self) -> Arc<DictMap> {
        Arc::clone(&lock(&self.0.map))
    }

    /// Whether others hold this dict, or the entries in it, too.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1 || Arc::strong_count(&lock(&self.0.map)) > 1
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        lock(&self.0.map).len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value under a text key.
    pub fn get(&self, key: &str) -> Option<Value> {
        lock(&self.0.map).get(&TextKey::new(key)).cloned()
    }

    /// Puts a value under a text key. Putting a dict into itself leaks it; programs are kept from doing so.
    pub fn insert(&self, key: &str, value: Value) {
        self.change(|map| map.insert(Key::text(key), value));
    }

    /// A dict with the same entries that later changes of this one do not reach. Nothing is copied until
    /// then.
    pub fn copy(&self) -> Dict {
        Dict(Arc::new(DictData { map: Mutex::new(self.snapshot()) }))
    }

    /// A dict with the same keys in the same order, and these values. Keys for which there is none keep
    /// theirs.
    pub fn with_values(&self, values: Vec<Value>) -> Dict {
        let mut map = (*self.snapshot()).clone();
        map.values_mut().zip(values).for_each(|(place, value)| *place = value);
        Dict::new(map)
    }

    /// All entries in order.
    pub fn entries(&self) -> Vec<(Value, Value)> {
        self.snapshot().iter().map(|(key, value)| (key.value.clone(), value.clone())).collect()
    }

    pub(crate) fn get_hashed(&self, key: &TextKey<'_>) -> Option<Value> {
        lock(&self.0.map).get(key).cloned()
    }

    pub(crate) fn find(&self, key: &Key) -> Option<Value> {
        lock(&self.0.map).get(key).cloned()
    }

    pub(crate) fn entry_at(&self, index: usize) -> Option<(Value, Value)> {
        lock(&self.0.map).get_index(index).map(|(key, value)| (key.value.clone(), value.clone()))
    }

    pub(crate) fn change<T>(&self, edit: impl FnOnce(&mut DictMap) -> T) -> T {
        edit(Arc::make_mut(&mut *lock(&self.0.map)))
    }
}

impl Drop for DictData {
    fn drop(&mut self) {
        dismantle(self.take());
    }
}

impl DictData {
    pub(super) fn take(&mut self) -> Vec<Value> {
        match Arc::get_mut(self.map.get_mut().unwrap_or_else(PoisonError::into_inner)) {
            Some(map) if map.iter().any(|(key, value)| value.is_container() || key.value.is_container()) => {
                std::mem::take(map).into_iter().flat_map(|(key, value)| [key.value, value]).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A shared set; frozen ones never change. Members keep the order they came in.
#[derive(Clone)]
pub struct Set(pub(super) Arc<SetData>);

pub(super) struct SetData {
    items: Mutex<Arc<KeySet>>,
    frozen: bool,
}

pub(crate) type KeySet = IndexSet<Key, Prehashed>;

impl Set {
    pub(crate) fn new(items: KeySet, frozen: bool) -> Self {
        Set(Arc::new(SetData { items: Mutex::new(Arc::new(items)), frozen }))
    }

    pub(crate) fn snapshot(&self) -> Arc<KeySet> {
        Arc::clone(&lock(&self.0.items))
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.0.frozen
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        lock(&self.0.items).len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All members, in the order they came in.
    pub fn members(&self) -> Vec<Value> {
        self.snapshot().iter().map(|key| key.value.clone()).collect()
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        lock(&self.0.items).contains(key)
    }

    pub(crate) fn change<T>(&self, edit: impl FnOnce(&mut KeySet) -> T) -> T {
        edit(Arc::make_mut(&mut *lock(&self.0.items)))
    }
}

impl Drop for SetData {
    fn drop(&mut self) {
        dismantle(self.take());
    }
}

impl SetData {
    pub(super) fn take(&mut self) -> Vec<Value> {
        match Arc::get_mut(self.items.get_mut().unwrap_or_else(PoisonError::into_inner)) {
            Some(items) if items.iter().any(|key| key.value.is_container()) => {
                std::mem::take(items).into_iter().map(|key| key.value).collect()
            }
            _ => Vec::new(),
        }
    }
}
