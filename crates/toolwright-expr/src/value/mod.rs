//! The data a program works on: Python's plain values, shared by reference and safe to share between
//! threads. Operations on them live in `ops`, their text form in `repr`; here is only what they are.

mod dict;
mod key;
mod object;
mod release;
mod sequence;
mod text;

pub use self::dict::{Dict, Set};
pub(crate) use self::dict::{DictMap, KeySet};
pub(crate) use self::key::{
    Key, Prehashed, TextKey, hash_big, hash_bytes, hash_float, hash_int, hash_mix, hash_text,
};
pub use self::object::Object;
pub(crate) use self::object::{ObjectData, ViewKind};
pub use self::sequence::{List, Range, Tuple};
pub use self::text::{Bytes, Text};

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::builtins::Builtin;
use crate::host::HostFunction;
use crate::types::Type;

/// One value. Cloning is cheap: lists, dicts and texts are shared, as in Python.
///
/// The tag takes a whole word: with a one-byte tag the compiler copies values in pieces that stall the
/// processor, which made evaluation five times slower.
#[non_exhaustive]
#[repr(u64)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer that fits 64 bits; larger ones are [`Value::Big`].
    Int(i64),
    /// An integer outside the range of `i64`.
    Big(Arc<BigInt>),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Str(Text),
    /// A byte string.
    Bytes(Bytes),
    /// A list.
    List(List),
    /// A tuple.
    Tuple(Tuple),
    /// A dict.
    Dict(Dict),
    /// A set or frozen set.
    Set(Set),
    /// A range of integers.
    Range(Arc<Range>),
    /// `...`.
    Ellipsis,
    /// A type such as `int`, or an exception class.
    Type(Type),
    /// A built-in function.
    Builtin(&'static Builtin),
    /// Everything rarer: functions, iterators, views, structs, exceptions, complex numbers.
    Object(Object),
    /// A variable without a value. Programs never see it.
    #[doc(hidden)]
    Unbound,
}

/// Numbers and constants are copied in place; only shared values pay for a call.
impl Clone for Value {
    #[inline(always)]
    fn clone(&self) -> Self {
        match self {
            Value::Int(number) => Value::Int(*number),
            Value::Float(number) => Value::Float(*number),
            Value::Unbound => Value::Unbound,
            _ => self.share(),
        }
    }
}

impl Value {
    #[inline(never)]
    fn share(&self) -> Value {
        match self {
            Value::None => Value::None,
            Value::Bool(flag) => Value::Bool(*flag),
            Value::Int(number) => Value::Int(*number),
            Value::Big(number) => Value::Big(Arc::clone(number)),
            Value::Float(number) => Value::Float(*number),
            Value::Str(text) => Value::Str(text.clone()),
            Value::Bytes(bytes) => Value::Bytes(bytes.clone()),
            Value::List(list) => Value::List(list.clone()),
            Value::Tuple(tuple) => Value::Tuple(tuple.clone()),
            Value::Dict(dict) => Value::Dict(dict.clone()),
            Value::Set(set) => Value::Set(set.clone()),
            Value::Range(range) => Value::Range(Arc::clone(range)),
            Value::Ellipsis => Value::Ellipsis,
            Value::Type(kind) => Value::Type(*kind),
            Value::Builtin(builtin) => Value::Builtin(builtin),
            Value::Object(object) => Value::Object(object.clone()),
            Value::Unbound => Value::Unbound,
        }
    }

    /// A text value.
    pub fn str(text: impl Into<Text>) -> Self {
        Value::Str(text.into())
    }

    /// A new list of the given values.
    pub fn list(items: Vec<Value>) -> Self {
        Value::List(List::new(items))
    }

    /// A tuple of the given values.
    pub fn tuple(items: Vec<Value>) -> Self {
        Value::Tuple(Tuple::new(items))
    }

    /// A byte string.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Value::Bytes(Bytes(Arc::new(bytes.into())))
    }

    /// A new dict with text keys, in the given order; a repeated key keeps its first place and last value.
    pub fn dict<K: AsRef<str>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        let mut map = DictMap::default();
        for (key, value) in entries {
            map.insert(Key::text(key.as_ref()), value);
        }
        Value::Dict(Dict::new(map))
    }

    /// A function of the host, callable from programs.
    pub fn host(function: impl HostFunction + 'static) -> Self {
        Object::new(ObjectData::Host(Box::new(function)))
    }

    /// An integer of any size, in its smallest form.
    pub fn integer(number: BigInt) -> Self {
        match number.to_i64() {
            Some(small) => Value::Int(small),
            None => Value::Big(Arc::new(number)),
        }
    }

    /// The name of the value's type, as Python spells it.
    pub fn type_name(&self) -> &'static str {
        Type::of(self).name()
    }

    /// The text, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is an integer that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Bool(flag) => Some(i64::from(*flag)),
            _ => None,
        }
    }

    /// Whether this is a function, type or anything else a program can call.
    pub fn is_callable(&self) -> bool {
        match self {
            Value::Builtin(_) | Value::Type(_) => true,
            Value::Object(object) => matches!(
                object.data(),
                ObjectData::Closure(_)
                    | ObjectData::Method(..)
                    | ObjectData::Unbound(..)
                    | ObjectData::Host(_)
            ),
            _ => false,
        }
    }

    /// Whether two values are the same object. Numbers and texts are compared by value.
    pub fn is(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::None, Value::None) | (Value::Ellipsis, Value::Ellipsis) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Big(a), Value::Big(b)) => Arc::ptr_eq(a, b),
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Str(a), Value::Str(b)) => Arc::ptr_eq(&a.0, &b.0) || **a == **b,
            (Value::Bytes(a), Value::Bytes(b)) => Arc::ptr_eq(&a.0, &b.0),
            (Value::List(a), Value::List(b)) => Arc::ptr_eq(&a.0, &b.0),
            (Value::Tuple(a), Value::Tuple(b)) => Arc::ptr_eq(&a.0, &b.0) || a.is_empty() && b.is_empty(),
            (Value::Dict(a), Value::Dict(b)) => Arc::ptr_eq(&a.0, &b.0),
            (Value::Set(a), Value::Set(b)) => Arc::ptr_eq(&a.0, &b.0),
            (Value::Range(a), Value::Range(b)) => Arc::ptr_eq(a, b),
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::Builtin(a), Value::Builtin(b)) => std::ptr::eq(*a, *b),
            (Value::Object(a), Value::Object(b)) => Arc::ptr_eq(&a.0, &b.0),
            _ => false,
        }
    }

    /// A number that tells this object from others alive at the same time.
    pub(crate) fn address(&self) -> usize {
        match self {
            Value::Str(text) => Arc::as_ptr(&text.0).addr(),
            Value::Bytes(bytes) => Arc::as_ptr(&bytes.0).addr(),
            Value::List(list) => Arc::as_ptr(&list.0).addr(),
            Value::Tuple(tuple) => Arc::as_ptr(&tuple.0).addr(),
            Value::Dict(dict) => Arc::as_ptr(&dict.0).addr(),
            Value::Set(set) => Arc::as_ptr(&set.0).addr(),
            Value::Object(object) => Arc::as_ptr(&object.0).addr(),
            Value::Int(number) => *number as usize,
            _ => 0,
        }
    }

    /// Whether others may hold this object, or what is in it, too.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Value::List(list) => Arc::strong_count(&list.0) > 1,
            Value::Tuple(tuple) => Arc::strong_count(&tuple.0) > 1,
            Value::Dict(dict) => dict.is_shared(),
            _ => true,
        }
    }

    fn is_container(&self) -> bool {
        matches!(self, Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Set(_) | Value::Object(_))
    }

    pub(crate) fn is_unbound(&self) -> bool {
        matches!(self, Value::Unbound)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Value::Int(i64::from(number))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        i64::try_from(number).map_or_else(|_| Value::integer(BigInt::from(number)), Value::Int)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Float(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::str(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::str(text)
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Value::Str(text)
    }
}

impl From<Dict> for Value {
    fn from(dict: Dict) -> Self {
        Value::Dict(dict)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Value::List(list)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Value::list(items)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for Value {
    /// The text Python's `str()` gives; data too large or too deep to print says so instead.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = crate::EvalLimits::default();
        match crate::repr::text(self, &mut crate::fuel::Fuel::new(&limits)) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

impl fmt::Debug for Value {
    /// The text Python's `repr()` gives.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = crate::EvalLimits::default();
        match crate::repr::repr(self, &mut crate::fuel::Fuel::new(&limits)) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

impl PartialEq for Value {
    /// Python's `==`; values too large or too deep to compare are unequal.
    fn eq(&self, other: &Value) -> bool {
        let limits = crate::EvalLimits::default();
        crate::ops::equal(self, other, &mut crate::fuel::Fuel::new(&limits)).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_two_words() {
        assert_eq!(size_of::<Value>(), 16);
        assert_eq!(size_of::<Result<Value, crate::Error>>(), 16);
    }

    #[test]
    fn values_cross_threads() {
        let value = Value::list(vec![Value::Int(1), Value::str("two")]);
        let sent = value.clone();
        let back = std::thread::spawn(move || sent).join().unwrap();
        assert_eq!(back.address(), value.address());
    }

    #[test]
    fn a_million_nested_lists_drop_without_recursion() {
        let innermost = List::new(Vec::new());
        let mut value = Value::List(innermost.clone());
        for round in 0..1_000_000 {
            value = match round % 3 {
                0 => Value::list(vec![value]),
                1 => Value::tuple(vec![value]),
                _ => Value::dict([("k", value)]),
            };
        }
        drop(value);
        // The drop reached the innermost list: only our own reference is left.
        assert_eq!(Arc::strong_count(&innermost.0), 1);
    }

    #[test]
    fn a_snapshot_does_not_see_later_changes() {
        let list = List::new(vec![Value::Int(1)]);
        let before = list.snapshot();
        list.push(Value::Int(2));
        assert_eq!((before.len(), list.len()), (1, 2));
    }

    #[test]
    fn equal_numbers_hash_equally() {
        assert_eq!(hash_int(7), hash_float(7.0));
        assert_eq!(hash_big(&BigInt::from(1u128 << 70)), hash_float((1u128 << 70) as f64));
    }

    #[test]
    fn extreme_ranges_count_without_overflow() {
        let all = Range { start: i64::MIN, stop: i64::MAX, step: 1 };
        assert_eq!(all.count(), u64::MAX);
        assert_eq!(Range { start: i64::MAX, stop: i64::MIN, step: i64::MIN }.count(), 2);
    }
}
