//! Lists, tuples and ranges.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use super::release::{dismantle, nested};
use super::{Value, lock};

/// A shared list that programs can change in place.
///
/// The items sit behind a second reference count so that readers take a snapshot in constant time and
/// nothing is ever compared, printed or converted while the lock is held.
#[derive(Clone)]
pub struct List(pub(super) Arc<ListData>);

pub(super) struct ListData {
    items: Mutex<Arc<Vec<Value>>>,
}

impl List {
    /// A new list.
    pub fn new(items: Vec<Value>) -> Self {
        List(Arc::new(ListData { items: Mutex::new(Arc::new(items)) }))
    }

    /// The items as they are now.
    pub fn snapshot(&self) -> Arc<Vec<Value>> {
        Arc::clone(&lock(&self.0.items))
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        lock(&self.0.items).len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`.
    pub fn get(&self, index: usize) -> Option<Value> {
        lock(&self.0.items).get(index).cloned()
    }

    /// Adds an item at the end. Adding a list to itself leaks it; programs are kept from doing so.
    pub fn push(&self, item: Value) {
        self.change(|items| items.push(item));
    }

    pub(crate) fn change<T>(&self, edit: impl FnOnce(&mut Vec<Value>) -> T) -> T {
        edit(Arc::make_mut(&mut *lock(&self.0.items)))
    }
}

impl Drop for ListData {
    fn drop(&mut self) {
        dismantle(self.take());
    }
}

impl ListData {
    pub(super) fn take(&mut self) -> Vec<Value> {
        nested(Arc::get_mut(self.items.get_mut().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// A shared, unchanging sequence.
#[derive(Clone)]
pub struct Tuple(pub(super) Arc<TupleData>);

pub(super) struct TupleData {
    pub(super) items: Vec<Value>,
}

impl Tuple {
    /// A new tuple.
    pub fn new(items: Vec<Value>) -> Self {
        Tuple(Arc::new(TupleData { items }))
    }
}

impl Deref for Tuple {
    type Target = [Value];
    fn deref(&self) -> &[Value] {
        &self.0.items
    }
}

impl Drop for TupleData {
    fn drop(&mut self) {
        dismantle(nested(Some(&mut self.items)));
    }
}

/// An arithmetic progression, never written out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// First number.
    pub start: i64,
    /// The bound that is not reached.
    pub stop: i64,
    /// Distance between two numbers, never zero.
    pub step: i64,
}

impl Range {
    /// How many numbers the range holds.
    pub fn count(&self) -> u64 {
        let (low, high, step) = if self.step > 0 {
            (self.start, self.stop, self.step.unsigned_abs())
        } else {
            (self.stop, self.start, self.step.unsigned_abs())
        };
        if low >= high || step == 0 { 0 } else { (high.abs_diff(low) - 1) / step + 1 }
    }

    /// The number at `index`, which must be below [`count`](Self::count).
    pub(crate) fn at(&self, index: u64) -> i64 {
        self.start.wrapping_add((index as i64).wrapping_mul(self.step))
    }
}
