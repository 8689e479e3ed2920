//! State that tools keep between the calls of one run.
//!
//! A value is found by its type and, where one tool is given several times, an instance name. Everything in the store
//! serialises, so a run can be saved and resumed elsewhere.

use std::any::Any;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What can be kept in a [`Store`]: any default-constructible value that serialises.
pub trait StoreState: Serialize + DeserializeOwned + Default + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Default + Send + 'static> StoreState for T {}

/// The state of one run. Clones share the same state.
#[derive(Clone, Default)]
pub struct Store {
    entries: Arc<Mutex<HashMap<String, Arc<Mutex<Slot>>>>>,
}

/// A value in use, or one that was restored and has not been asked for yet.
enum Slot {
    Live(Box<dyn Live>),
    Saved(Value),
}

trait Live: Any + Send {
    fn save(&self) -> Value;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: StoreState> Live for T {
    fn save(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Store {
    /// The value of type `T` and that instance name, made from `T::default()` on first use.
    pub fn of<T: StoreState>(&self, instance: Option<&str>) -> Stored<T> {
        let key = match instance {
            None => std::any::type_name::<T>().to_owned(),
            Some(instance) => format!("{}:{instance}", std::any::type_name::<T>()),
        };
        let slot = lock(&self.entries)
            .entry(key)
            .or_insert_with(|| Arc::new(Mutex::new(Slot::Saved(Value::Null))))
            .clone();
        Stored { slot, kind: PhantomData }
    }

    /// Everything in the store, as data.
    pub fn save(&self) -> Map<String, Value> {
        // A tool that holds one value may ask for another, so no two locks are held here.
        let entries: Vec<_> =
            lock(&self.entries).iter().map(|(key, slot)| (key.clone(), slot.clone())).collect();
        let mut saved: Vec<_> = entries
            .into_iter()
            .map(|(key, slot)| {
                let value = match &*lock(&slot) {
                    Slot::Live(live) => live.save(),
                    Slot::Saved(value) => value.clone(),
                };
                (key, value)
            })
            .collect();
        saved.sort_by(|a, b| a.0.cmp(&b.0));
        saved.into_iter().collect()
    }

    /// A store with what [`save`](Store::save) gave.
    pub fn restore(saved: Map<String, Value>) -> Self {
        let entries =
            saved.into_iter().map(|(key, value)| (key, Arc::new(Mutex::new(Slot::Saved(value))))).collect();
        Store { entries: Arc::new(Mutex::new(entries)) }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.save()).finish()
    }
}

/// A handle to one value in a [`Store`].
///
/// ```
/// use toolwright_core::ToolContext;
///
/// #[derive(Default, serde::Serialize, serde::Deserialize)]
/// struct Counter { n: u32 }
///
/// let ctx = ToolContext::detached();
/// ctx.store::<Counter>().update(|counter| counter.n += 1);
/// assert_eq!(ctx.store::<Counter>().read(|counter| counter.n), 1);
/// assert_eq!(ctx.store_as::<Counter>("other").read(|counter| counter.n), 0);
/// ```
pub struct Stored<T> {
    slot: Arc<Mutex<Slot>>,
    kind: PhantomData<fn() -> T>,
}

impl<T: StoreState> Stored<T> {
    /// Looks at the value. Do not call other tools from inside `look`.
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.update(|value| look(value))
    }

    /// Changes the value; no other call sees it half changed.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut slot = lock(&self.slot);
        if let Slot::Saved(value) = &mut *slot {
            let live: T = serde_json::from_value(value.take()).unwrap_or_default();
            *slot = Slot::Live(Box::new(live));
        }
        if let Slot::Live(live) = &mut *slot
            && let Some(value) = (**live).as_any_mut().downcast_mut::<T>()
        {
            return change(value);
        }
        // The key holds the type's name, so another type can only be here if two types share one name. Start over.
        let mut fresh = T::default();
        let result = change(&mut fresh);
        *slot = Slot::Live(Box::new(fresh));
        result
    }

    /// A copy of the value.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        self.read(T::clone)
    }

    /// Puts another value in its place.
    pub fn set(&self, value: T) {
        self.update(|old| *old = value);
    }
}

/// Locks, also after a panic elsewhere: the state is plain data, and the run has ended fatally anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Notes {
        items: Vec<String>,
    }

    #[test]
    fn instances_and_stores_are_isolated() {
        let (one, two) = (Store::default(), Store::default());
        one.of::<Notes>(None).update(|notes| notes.items.push("a".into()));
        one.of::<Notes>(Some("x")).update(|notes| notes.items.push("b".into()));
        assert_eq!(one.of::<Notes>(None).get().items, ["a"]);
        assert_eq!(one.of::<Notes>(Some("x")).get().items, ["b"]);
        assert!(two.of::<Notes>(None).get().items.is_empty());
    }

    #[test]
    fn a_saved_store_comes_back() {
        let store = Store::default();
        store.of::<Notes>(Some("x")).set(Notes { items: vec!["kept".into()] });
        let restored = Store::restore(store.save());
        assert_eq!(restored.save(), store.save());
        assert_eq!(restored.of::<Notes>(Some("x")).get().items, ["kept"]);
    }
}
