//! State that tools keep between the calls of one run.
//!
//! A value is found by its type and, where one tool is given several times, an instance name. Everything in
//! the store serialises, so a run can be saved and resumed elsewhere.

use std::any::Any;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

use toolwright_util::lock;

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

struct Inner {
    entries: Mutex<HashMap<String, Arc<StoreEntry>>>,
    /// Why a value could not be given, and what helps.
    refused: OnceLock<(String, &'static str)>,
    /// Results that tools keep for the run, each for as long as its tool says; they are not saved with it.
    cache: Cache,
}

impl Default for Inner {
    fn default() -> Self {
        let cache = Cache::new(Duration::ZERO);
        Inner { entries: Mutex::default(), refused: OnceLock::new(), cache }
    }
}

/// Where a value is, and which thread has it.
struct StoreEntry {
    slot: Mutex<ValueSlot>,
    holder: Mutex<Option<ThreadId>>,
}

impl StoreEntry {
    fn new(slot: ValueSlot) -> Arc<Self> {
        Arc::new(StoreEntry { slot: Mutex::new(slot), holder: Mutex::default() })
    }

    /// The value, once nobody else has it; none when it is this very thread that has it, which would wait for
    /// ever.
    fn hold(&self) -> Option<Held<'_>> {
        let me = std::thread::current().id();
        if *lock(&self.holder) == Some(me) {
            return None;
        }
        let slot = lock(&self.slot);
        *lock(&self.holder) = Some(me);
        Some(Held { slot, holder: &self.holder })
    }
}

/// A value that this thread has.
struct Held<'a> {
    slot: MutexGuard<'a, ValueSlot>,
    holder: &'a Mutex<Option<ThreadId>>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *lock(self.holder) = None;
    }
}

/// A value in use, one that nobody asked for yet, or one that was restored and not asked for yet.
enum ValueSlot {
    Live(Box<dyn StoredValue>),
    Fresh,
    Saved { key: String, value: Value },
}

trait StoredValue: Any + Send {
    fn save(&self) -> serde_json::Result<Value>;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: StoreState> StoredValue for T {
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
        let place =
            lock(&self.inner.entries).entry(key).or_insert_with(|| StoreEntry::new(ValueSlot::Fresh)).clone();
        Stored { place, store: self.inner.clone(), kind: PhantomData }
    }

    /// Everything in the store, as data. An error when a value cannot be written as JSON, such as a map whose
    /// keys are not text: a run that goes on from what was saved would begin without it.
    pub fn save(&self) -> Result<Map<String, Value>, ToolError> {
        // A tool that holds one value may ask for another, so no two locks are held here.
        let entries: Vec<_> =
            lock(&self.inner.entries).iter().map(|(key, place)| (key.clone(), place.clone())).collect();
        let mut saved = Vec::with_capacity(entries.len());
        for (key, place) in entries {
            let Some(held) = place.hold() else {
                let (why, hint) = in_use(&key);
                return Err(ToolError::fatal(why).hint(hint));
            };
            let value = match &*held.slot {
                ValueSlot::Live(live) => live.save().map_err(|error| {
                    ToolError::fatal(format!("the state `{key}` cannot be saved as JSON: {error}"))
                        .hint("keep only what serialises to JSON: the keys of a map must be text or numbers")
                })?,
                ValueSlot::Fresh => Value::Null,
                ValueSlot::Saved { value, .. } => value.clone(),
            };
            saved.push((key, value));
        }
        saved.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(saved.into_iter().collect())
    }

    /// A store with what [`save`](Store::save) gave.
    pub fn restore(saved: Map<String, Value>) -> Self {
        let slot = |(key, value): (String, Value)| {
            let slot =
                if value.is_null() { ValueSlot::Fresh } else { ValueSlot::Saved { key: key.clone(), value } };
            (key, StoreEntry::new(slot))
        };
        let entries = Mutex::new(saved.into_iter().map(slot).collect());
        Store { inner: Arc::new(Inner { entries, ..Inner::default() }) }
    }

    /// The results that tools keep for the run.
    pub(crate) fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    /// A fatal error when a restored value was asked for and does not fit its type, or when a value was asked
    /// for by code that had it already. The value stays as it was, and what a tool did meanwhile is not kept.
    pub fn check(&self) -> Result<(), ToolError> {
        match self.inner.refused.get() {
            None => Ok(()),
            Some((why, hint)) => Err(ToolError::fatal(why.clone()).hint(*hint)),
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
    place: Arc<StoreEntry>,
    store: Arc<Inner>,
    kind: PhantomData<fn() -> T>,
}

impl<T: StoreState> Stored<T> {
    /// Looks at the value, as [`update`](Self::update) changes it.
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.update(|value| look(value))
    }

    /// Changes the value; no other call sees it half changed. Do not use other values inside `change`:
    /// two calls that each hold what the other needs deadlock. For a value the thread holds already, and for
    /// a restored one that does not fit the type, the store gives the default, keeps the value as it was, and
    /// [`Store::check`] reports it.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let Some(mut held) = self.place.hold() else {
            return self.refuse(change, in_use(std::any::type_name::<T>()));
        };
        let slot = &mut *held.slot;
        let live = match &*slot {
            ValueSlot::Live(_) => None,
            ValueSlot::Fresh => Some(T::default()),
            ValueSlot::Saved { key, value } => match T::deserialize(value) {
                Ok(live) => Some(live),
                Err(error) => {
                    let hint = "resume with the version of the tool that saved it, or take the key out of the saved state";
                    return self
                        .refuse(change, (format!("the saved state `{key}` does not fit: {error}"), hint));
                }
            },
        };
        if let Some(live) = live {
            *slot = ValueSlot::Live(Box::new(live));
        }
        if let ValueSlot::Live(live) = slot
            && let Some(value) = (**live).as_any_mut().downcast_mut::<T>()
        {
            return change(value);
        }
        // The key holds the type's name, so another type can only be here if two types share one name. Start
        // over.
        let mut fresh = T::default();
        let result = change(&mut fresh);
        *slot = ValueSlot::Live(Box::new(fresh));
        result
    }

    /// Lets `change` work on a value that nobody keeps, and the run know why.
    fn refuse<R>(&self, change: impl FnOnce(&mut T) -> R, why: (String, &'static str)) -> R {
        self.store.refused.get_or_init(|| why);
        change(&mut T::default())
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

/// Why a value is not given to code that has it already.
fn in_use(key: &str) -> (String, &'static str) {
    let why = format!("the state `{key}` was asked for inside a `read` or an `update` of it");
    (why, "use the value that the closure is given, or ask after the closure is over")
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
    fn asking_for_a_value_inside_its_own_update_is_told_and_does_not_hang() {
        let store = Store::default();
        let notes = store.of::<Notes>(None);
        notes.update(|held| {
            held.items.push("kept".into());
            assert_eq!(store.of::<Notes>(None).get(), Notes::default());
            assert!(store.save().unwrap_err().message().contains("Notes` was asked for inside"));
            store.of::<Notes>(Some("other")).update(|other| other.items.push("also kept".into()));
        });
        assert_eq!(notes.get().items, ["kept"]);
        assert_eq!(store.of::<Notes>(Some("other")).get().items, ["also kept"]);
        let error = store.check().unwrap_err();
        assert!(error.is_fatal() && error.message().contains("inside a `read` or an `update`"));
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
