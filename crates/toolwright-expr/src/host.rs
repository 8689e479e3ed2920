//! The two doors to the host: functions it lends to programs, and the variables programs read. Both are
//! traits, so that a flow can build a scope for each statement without copying anything.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::value::{DictMap, Key, TextKey, Value};

/// A function of the host that programs can call. It may block; evaluation waits for it.
pub trait HostFunction: Send + Sync {
    /// The name shown in messages.
    fn name(&self) -> &str;

    /// Runs the function.
    ///
    /// # Errors
    /// Whatever the host reports; the program ends with an error of the given class.
    fn call(&self, args: HostArgs) -> Result<Value, HostError>;
}

/// What a program passed to a host function. Iterators are lists in it.
#[derive(Debug, Default)]
pub struct HostArgs {
    /// Arguments without a name, in order.
    pub positional: Vec<Value>,
    /// Arguments with a name, in order.
    pub named: IndexMap<Arc<str>, Value>,
}

/// Why a host function failed: a class name flows can catch, a message, and the host's own error.
#[derive(Debug)]
pub struct HostError {
    pub(crate) class: String,
    pub(crate) message: String,
    pub(crate) source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl HostError {
    /// An error of the given class.
    pub fn new(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class: class.into(), message: message.into(), source: None }
    }

    /// Keeps the host's own error, to be taken back out with
    /// [`Error::into_host_source`](crate::Error::into_host_source).
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HostError {}

/// A closure with a name, as a host function.
pub struct NamedFunction<F> {
    name: String,
    function: F,
}

impl<F> NamedFunction<F>
where
    F: Fn(HostArgs) -> Result<Value, HostError> + Send + Sync,
{
    /// Gives `function` a name.
    pub fn new(name: impl Into<String>, function: F) -> Self {
        Self { name: name.into(), function }
    }
}

impl<F> HostFunction for NamedFunction<F>
where
    F: Fn(HostArgs) -> Result<Value, HostError> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, args: HostArgs) -> Result<Value, HostError> {
        (self.function)(args)
    }
}

/// The variables a program can read.
pub trait Scope {
    /// The value of a variable.
    fn get(&self, name: &str) -> Option<Value>;

    /// As [`get`](Self::get), with the hash the program computed when it was compiled. Only scopes made of
    /// [`Variables`] have a use for it.
    fn get_hashed(&self, name: &str, hash: u64) -> Option<Value> {
        let _ = hash;
        self.get(name)
    }

    /// Calls `visit` with every variable name, for hints in error messages.
    fn names(&self, visit: &mut dyn FnMut(&str));

    /// Receives the text of `log(...)` calls.
    fn log(&self, message: &str) {
        let _ = message;
    }
}

/// A scope without variables.
impl Scope for () {
    fn get(&self, _name: &str) -> Option<Value> {
        None
    }

    fn names(&self, _visit: &mut dyn FnMut(&str)) {}
}

impl<K, S> Scope for HashMap<K, Value, S>
where
    K: std::borrow::Borrow<str> + Eq + std::hash::Hash,
    S: std::hash::BuildHasher,
{
    fn get(&self, name: &str) -> Option<Value> {
        HashMap::get(self, name).cloned()
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        self.keys().for_each(|name| visit(name.borrow()));
    }
}

impl<K, S> Scope for IndexMap<K, Value, S>
where
    K: std::borrow::Borrow<str> + Eq + std::hash::Hash,
    S: std::hash::BuildHasher,
{
    fn get(&self, name: &str) -> Option<Value> {
        IndexMap::get(self, name).cloned()
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        self.keys().for_each(|name| visit(name.borrow()));
    }
}

/// A handful of variables, searched in order: the cheapest scope for one or two names.
impl<K: AsRef<str>> Scope for [(K, Value)] {
    fn get(&self, name: &str) -> Option<Value> {
        self.iter().find(|(known, _)| known.as_ref() == name).map(|(_, value)| value.clone())
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        self.iter().for_each(|(name, _)| visit(name.as_ref()));
    }
}

impl<K: AsRef<str>, const N: usize> Scope for [(K, Value); N] {
    fn get(&self, name: &str) -> Option<Value> {
        self.as_slice().get_value(name)
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        self.iter().for_each(|(name, _)| visit(name.as_ref()));
    }
}

trait GetValue {
    fn get_value(&self, name: &str) -> Option<Value>;
}

impl<K: AsRef<str>> GetValue for [(K, Value)] {
    fn get_value(&self, name: &str) -> Option<Value> {
        Scope::get(self, name)
    }
}

impl<S: Scope + ?Sized> Scope for &S {
    fn get(&self, name: &str) -> Option<Value> {
        (**self).get(name)
    }

    fn get_hashed(&self, name: &str, hash: u64) -> Option<Value> {
        (**self).get_hashed(name, hash)
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        (**self).names(visit);
    }

    fn log(&self, message: &str) {
        (**self).log(message);
    }
}

/// Named values in the order they came, found by the hash a program carries: the fastest scope of any size.
#[derive(Clone, Default)]
pub struct Variables {
    map: DictMap,
}

impl Variables {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a variable a value; gives back the one it had.
    pub fn insert(&mut self, name: &str, value: Value) -> Option<Value> {
        self.map.insert(Key::text(name), value)
    }

    /// Takes a variable away.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(&TextKey::new(name))
    }

    /// The value of a variable.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.map.get(&TextKey::new(name))
    }

    /// Number of variables.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// All names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.map.iter().filter_map(|(key, value)| key.value.as_str().map(|name| (name, value)))
    }
}

impl<K: AsRef<str>> FromIterator<(K, Value)> for Variables {
    fn from_iter<T: IntoIterator<Item = (K, Value)>>(entries: T) -> Self {
        let map = entries.into_iter().map(|(name, value)| (Key::text(name.as_ref()), value)).collect();
        Self { map }
    }
}

impl Scope for Variables {
    fn get(&self, name: &str) -> Option<Value> {
        self.value(name).cloned()
    }

    fn get_hashed(&self, name: &str, hash: u64) -> Option<Value> {
        self.map.get(&TextKey::with_hash(name, hash)).cloned()
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        self.iter().for_each(|(name, _)| visit(name));
    }
}

/// Two scopes in one: names of `inner` hide those of `outer`. Nesting them makes a chain of any length.
pub struct Nested<'a, I: ?Sized, O: ?Sized> {
    /// Searched first.
    pub inner: &'a I,
    /// Searched when `inner` does not know the name.
    pub outer: &'a O,
}

impl<I: Scope + ?Sized, O: Scope + ?Sized> Scope for Nested<'_, I, O> {
    fn get(&self, name: &str) -> Option<Value> {
        self.inner.get(name).or_else(|| self.outer.get(name))
    }

    fn get_hashed(&self, name: &str, hash: u64) -> Option<Value> {
        self.inner.get_hashed(name, hash).or_else(|| self.outer.get_hashed(name, hash))
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        self.inner.names(visit);
        self.outer.names(visit);
    }

    fn log(&self, message: &str) {
        self.outer.log(message);
    }
}
