//! State that tools keep between the calls of one run.
//!
//! A value is found by its type and, where one tool is given several times, an instance name. Everything in the store
//! serialises, so a run can be saved and resumed elsewhere.

use std::any::Any;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::ToolError;
use crate::wrap::Cache;

/// What can be kept in a [`Store`]: any default-constructible value that serialises.
pub trait StoreState: Serialize + DeserializeOwned + Default + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Default + Send + 'static> StoreState for T {}

/// The state of one run. Clones share the same state.
#[derive(Clone, Default)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: Mutex<HashMap<String, Arc<Mutex<Slot>>>>,
    /// Why a restored value could not be used.
    unreadable: OnceLock<String>,
    /// Results that tools keep for the run; they are not saved with it.
    cache: Cache,
}

/// A value in use, one that nobody asked for yet, or one that was restored and not asked for yet.
enum Slot {
    Live(Box<dyn Live>),
    Fresh,
    Saved { key: String, value: Value },
}

trait Live: Any + Send {
    fn save(&self) -> serde_json::Result<Value>;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: StoreState> Live for T {
    fn save(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
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
        let slot =
            lock(&self.inner.entries).entry(key).or_insert_with(|| Arc::new(Mutex::new(Slot::Fresh))).clone();
        Stored { slot, store: self.inner.clone(), kind: PhantomData }
    }

    /// Everything in the store, as data. An error when a value cannot be written as JSON, such as a map whose keys are not
    /// text: a run that goes on from what was saved would begin without it.
    pub fn save(&self) -> Result<Map<String, Value>, ToolError> {
        // A tool that holds one value may ask for another, so no two locks are held here.
        let entries: Vec<_> =
            lock(&self.inner.entries).iter().map(|(key, slot)| (key.clone(), slot.clone())).collect();
        let mut saved = Vec::with_capacity(entries.len());
        for (key, slot) in entries {
            let value = match &*lock(&slot) {
                Slot::Live(live) => live.save().map_err(|error| {
                    ToolError::fatal(format!("the state `{key}` cannot be saved as JSON: {error}"))
                        .hint("keep only what serialises to JSON: the keys of a map must be text or numbers")
                })?,
                Slot::Fresh => Value::Null,
                Slot::Saved { value, .. } => value.clone(),
            };
            saved.push((key, value));
        }
        saved.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(saved.into_iter().collect())
    }

    /// A store with what [`save`](Store::save) gave.
    pub fn restore(saved: Map<String, Value>) -> Self {
        let slot = |(key, value): (String, Value)| {
            let slot = if value.is_null() { Slot::Fresh } else { Slot::Saved { key: key.clone(), value } };
            (key, Arc::new(Mutex::new(slot)))
        };
        let entries = Mutex::new(saved.into_iter().map(slot).collect());
        Store { inner: Arc::new(Inner { entries, ..Inner::default() }) }
    }

    /// The results that tools keep for the run.
    pub(crate) fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    /// A fatal error when a restored value was asked for and does not fit its type. The value stays as it was saved, and
    /// what a tool did meanwhile is not kept.
    pub fn check(&self) -> Result<(), ToolError> {
        match self.inner.unreadable.get() {
            None => Ok(()),
            Some(why) => Err(ToolError::fatal(why.clone()).hint(
                "resume with the version of the tool that saved it, or take the key out of the saved state",
            )),
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.save() {
            Ok(saved) => f.debug_tuple("Store").field(&saved).finish(),
            Err(error) => f.debug_tuple("Store").field(&error.message()).finish(),
        }
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
    store: Arc<Inner>,
    kind: PhantomData<fn() -> T>,
}

impl<T: StoreState> Stored<T> {
    /// Looks at the value. Do not call other tools from inside `look`.
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.update(|value| look(value))
    }

    /// Changes the value; no other call sees it half changed. A restored value that does not fit the type is not touched:
    /// `change` gets the default, and [`Store::check`] tells.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut slot = lock(&self.slot);
        let live = match &*slot {
            Slot::Live(_) => None,
            Slot::Fresh => Some(T::default()),
            Slot::Saved { key, value } => match T::deserialize(value) {
                Ok(live) => Some(live),
                Err(error) => {
                    let why = || format!("the saved state `{key}` does not fit: {error}");
                    self.store.unreadable.get_or_init(why);
                    return change(&mut T::default());
                }
            },
        };
        if let Some(live) = live {
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
        let restored = Store::restore(store.save().unwrap());
        assert_eq!(restored.save().unwrap(), store.save().unwrap());
        assert_eq!(restored.of::<Notes>(Some("x")).get().items, ["kept"]);
        assert!(restored.check().is_ok());
    }

    #[test]
    fn state_that_is_no_json_is_told_and_not_lost() {
        type Board = HashMap<(u8, u8), String>;
        let store = Store::default();
        store.of::<Board>(None).set(Board::from([((1, 2), "o".to_owned())]));
        let error = store.save().unwrap_err();
        assert!(error.is_fatal() && error.message().contains("HashMap<(u8, u8)"), "{}", error.message());
        assert_eq!(store.of::<Board>(None).get().len(), 1, "the run itself goes on with it");
    }

    #[test]
    fn saved_state_that_does_not_fit_is_kept_and_told() {
        let store = Store::default();
        store.of::<Notes>(None).set(Notes { items: vec!["kept".into()] });
        let mut saved = store.save().unwrap();
        for value in saved.values_mut() {
            *value = serde_json::json!({"items": "kept"});
        }
        let restored = Store::restore(saved.clone());
        restored.of::<Notes>(None).update(|notes| notes.items.push("lost".into()));
        assert_eq!(restored.save().unwrap(), saved);
        let error = restored.check().unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Fatal);
        assert!(error.message().contains("Notes` does not fit"), "{}", error.message());
    }
}
