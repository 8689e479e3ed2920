//! The data a program works on: Python's plain values, shared by reference and safe to share between
//! threads. Operations on them live in `ops`, their text form in `repr`; here is only what they are.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use compact_str::CompactString;
use indexmap::{Equivalent, IndexMap, IndexSet};
use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};

use crate::builtins::{Builtin, Method};
use crate::eval::{Closure, Generator};
use crate::host::HostFunction;
use crate::iter::Iter;
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

/// A shared, unchanging text that knows its length in characters. Up to 24 bytes sit beside the reference count, so
/// that a short text is one allocation.
#[derive(Clone)]
pub struct Text(Arc<TextData>);

struct TextData {
    text: CompactString,
    chars: usize,
}

impl Text {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Length in characters (Unicode code points), which is Python's `len`.
    pub fn chars_len(&self) -> usize {
        self.0.chars
    }

    pub(crate) fn is_ascii(&self) -> bool {
        self.0.chars == self.0.text.len()
    }

    /// The text of one character, without allocating for ASCII.
    pub(crate) fn one(character: char) -> Text {
        static ASCII: LazyLock<Vec<Text>> =
            LazyLock::new(|| (0..128u8).map(|byte| Text::from(char::from(byte).to_string())).collect());
        if character.is_ascii()
            && let Some(text) = ASCII.get(character as usize)
        {
            return text.clone();
        }
        Text::from(character.to_string())
    }

    pub(crate) fn empty() -> Text {
        static EMPTY: LazyLock<Text> = LazyLock::new(|| Text::from(String::new()));
        EMPTY.clone()
    }
}

impl From<CompactString> for Text {
    fn from(text: CompactString) -> Self {
        let chars = if text.is_ascii() { text.len() } else { text.chars().count() };
        Text(Arc::new(TextData { text, chars }))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text::from(CompactString::from(text))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text::from(CompactString::new(text))
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0.text
    }
}

/// A shared, unchanging byte string.
#[derive(Clone)]
pub struct Bytes(Arc<Vec<u8>>);

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// A shared list that programs can change in place.
///
/// The items sit behind a second reference count so that readers take a snapshot in constant time and
/// nothing is ever compared, printed or converted while the lock is held.
#[derive(Clone)]
pub struct List(Arc<ListData>);

struct ListData {
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
    fn take(&mut self) -> Vec<Value> {
        nested(Arc::get_mut(self.items.get_mut().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// A shared, unchanging sequence.
#[derive(Clone)]
pub struct Tuple(Arc<TupleData>);

struct TupleData {
    items: Vec<Value>,
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

/// A shared dict that programs can change in place; keys keep the order they came in.
#[derive(Clone)]
pub struct Dict(Arc<DictData>);

struct DictData {
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

    /// A dict with the same entries that later changes of this one do not reach. Nothing is copied until then.
    pub fn copy(&self) -> Dict {
        Dict(Arc::new(DictData { map: Mutex::new(self.snapshot()) }))
    }

    /// A dict with the same keys in the same order, and these values. Keys for which there is none keep theirs.
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
    fn take(&mut self) -> Vec<Value> {
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
pub struct Set(Arc<SetData>);

struct SetData {
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
    fn take(&mut self) -> Vec<Value> {
        match Arc::get_mut(self.items.get_mut().unwrap_or_else(PoisonError::into_inner)) {
            Some(items) if items.iter().any(|key| key.value.is_container()) => {
                std::mem::take(items).into_iter().map(|key| key.value).collect()
            }
            _ => Vec::new(),
        }
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

/// Which part of a dict a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewKind {
    Keys,
    Values,
    Items,
}

/// A rarer value: see [`Value::Object`].
#[derive(Clone)]
pub struct Object(Arc<ObjectData>);

pub(crate) enum ObjectData {
    Complex {
        re: f64,
        im: f64,
    },
    Slice([Value; 3]),
    View(ViewKind, Dict),
    Iter(Type, Mutex<Iter>),
    Generator(Generator),
    Closure(Closure),
    Method(Value, &'static Method),
    Unbound(Type, &'static Method),
    Struct(IndexMap<Arc<str>, Value>),
    Exception(Type, Vec<Value>),
    /// A value to be shown as YAML, with the number of lines a text may have.
    Yaml(Value, Option<usize>),
    Host(Box<dyn HostFunction>),
    Cell(Mutex<Value>),
}

impl Object {
    #[expect(clippy::new_ret_no_self, reason = "objects are only ever used wrapped in a Value")]
    pub(crate) fn new(data: ObjectData) -> Value {
        Value::Object(Object(Arc::new(data)))
    }

    pub(crate) fn data(&self) -> &ObjectData {
        &self.0
    }
}

impl Drop for ObjectData {
    fn drop(&mut self) {
        dismantle(self.take());
    }
}

impl ObjectData {
    fn take(&mut self) -> Vec<Value> {
        match self {
            ObjectData::Slice(parts) => parts.iter_mut().map(unbind).collect(),
            ObjectData::Method(receiver, _) | ObjectData::Yaml(receiver, _) => vec![unbind(receiver)],
            ObjectData::Struct(fields) => std::mem::take(fields).into_values().collect(),
            ObjectData::Exception(_, args) => std::mem::take(args),
            ObjectData::Cell(cell) => vec![unbind(cell.get_mut().unwrap_or_else(PoisonError::into_inner))],
            ObjectData::Closure(closure) => closure.take_values(),
            ObjectData::Generator(generator) => generator.take_values(),
            ObjectData::Iter(_, iter) => {
                let mut values = Vec::new();
                iter.get_mut().unwrap_or_else(PoisonError::into_inner).take_values(&mut values);
                values
            }
            ObjectData::View(_, dict) => {
                vec![Value::Dict(std::mem::replace(dict, Dict::new(DictMap::default())))]
            }
            ObjectData::Complex { .. } | ObjectData::Unbound(..) | ObjectData::Host(_) => Vec::new(),
        }
    }
}

fn unbind(slot: &mut Value) -> Value {
    std::mem::replace(slot, Value::Unbound)
}

/// Takes the items out of a container that is going away, if any of them could hold others in turn.
fn nested(items: Option<&mut Vec<Value>>) -> Vec<Value> {
    match items {
        Some(items) if items.iter().any(Value::is_container) => std::mem::take(items),
        _ => Vec::new(),
    }
}

/// Drops values without recursion, so that a list nested a million deep cannot overflow the stack.
fn dismantle(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::List(list) => {
                if let Some(mut data) = Arc::into_inner(list.0) {
                    pending.append(&mut data.take());
                }
            }
            Value::Tuple(tuple) => {
                if let Some(mut data) = Arc::into_inner(tuple.0) {
                    pending.append(&mut nested(Some(&mut data.items)));
                }
            }
            Value::Dict(dict) => {
                if let Some(mut data) = Arc::into_inner(dict.0) {
                    pending.append(&mut data.take());
                }
            }
            Value::Set(set) => {
                if let Some(mut data) = Arc::into_inner(set.0) {
                    pending.append(&mut data.take());
                }
            }
            Value::Object(object) => {
                if let Some(mut data) = Arc::into_inner(object.0) {
                    pending.append(&mut data.take());
                }
            }
            _ => {}
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hashable value with its hash, computed once and metered by `ops::key`.
#[derive(Clone)]
pub(crate) struct Key {
    hash: u64,
    pub(crate) value: Value,
}

impl Key {
    pub(crate) fn text(text: impl Into<Text>) -> Key {
        let text = text.into();
        Key { hash: hash_text(&text), value: Value::Str(text) }
    }

    /// Pairs a value with a hash made by the functions below.
    pub(crate) fn with_hash(value: Value, hash: u64) -> Key {
        Key { hash, value }
    }

    pub(crate) fn hash_code(&self) -> u64 {
        self.hash
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.hash == other.hash && same_key(&self.value, &other.value)
    }
}

impl Eq for Key {}

/// Equality of hashable values. Depth is bounded because `ops::key` bounded it when hashing.
fn same_key(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Str(a), Value::Str(b)) => **a == **b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| same_key(x, y))
        }
        (Value::Bytes(a), Value::Bytes(b)) => **a == **b,
        (Value::Set(a), Value::Set(b)) => {
            let (a, b) = (a.snapshot(), b.snapshot());
            a.len() == b.len() && a.iter().all(|key| b.contains(key))
        }
        (Value::Range(a), Value::Range(b)) => crate::ops::same_range(a, b),
        (Value::Object(a), Value::Object(b)) => match (a.data(), b.data()) {
            (ObjectData::Complex { re, im }, ObjectData::Complex { re: r, im: i }) => re == r && im == i,
            (ObjectData::Struct(a), ObjectData::Struct(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| same_key(value, other)))
            }
            (ObjectData::Slice(a), ObjectData::Slice(b)) => a.iter().zip(b).all(|(x, y)| same_key(x, y)),
            _ => left.is(right),
        },
        _ if left.is(right) => true,
        _ => crate::ops::number::same(left, right),
    }
}

/// Looks a text up among keys without making a value of it.
pub(crate) struct TextKey<'a> {
    hash: u64,
    text: &'a str,
}

impl<'a> TextKey<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        TextKey { hash: hash_text(text), text }
    }

    pub(crate) fn with_hash(text: &'a str, hash: u64) -> Self {
        TextKey { hash, text }
    }
}

impl Hash for TextKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Equivalent<Key> for TextKey<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.hash == key.hash && matches!(&key.value, Value::Str(text) if text.as_str() == self.text)
    }
}

static SEED: LazyLock<foldhash::fast::RandomState> = LazyLock::new(foldhash::fast::RandomState::default);

/// Hashes are seeded per process, so that nobody can prepare keys that collide.
pub(crate) fn hash_text(text: &str) -> u64 {
    SEED.hash_one(text.as_bytes())
}

pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    SEED.hash_one((1u8, bytes))
}

pub(crate) fn hash_int(number: i64) -> u64 {
    SEED.hash_one(number)
}

pub(crate) fn hash_big(number: &BigInt) -> u64 {
    match number.to_i64() {
        Some(small) => hash_int(small),
        None => SEED.hash_one(number),
    }
}

/// Equal numbers hash equally, whatever their type.
pub(crate) fn hash_float(number: f64) -> u64 {
    if number.is_finite() && number.fract() == 0.0 {
        if number.abs() < 9.0e18 {
            return hash_int(number as i64);
        }
        if let Some(big) = BigInt::from_f64(number) {
            return hash_big(&big);
        }
    }
    SEED.hash_one((2u8, number.to_bits()))
}

pub(crate) fn hash_mix(tag: u8, parts: &[u64]) -> u64 {
    SEED.hash_one((tag, parts))
}

/// The hasher of maps whose keys carry their hash.
#[derive(Clone, Default)]
pub(crate) struct Prehashed;

impl BuildHasher for Prehashed {
    type Hasher = PrehashedHasher;
    fn build_hasher(&self) -> PrehashedHasher {
        PrehashedHasher(0)
    }
}

pub(crate) struct PrehashedHasher(u64);

impl Hasher for PrehashedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
}

impl fmt::Display for Value {
    /// The text Python's `str()` gives; data too large or too deep to print says so instead.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = crate::Limits::default();
        match crate::repr::text(self, &mut crate::fuel::Fuel::new(&limits)) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

impl fmt::Debug for Value {
    /// The text Python's `repr()` gives.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = crate::Limits::default();
        match crate::repr::repr(self, &mut crate::fuel::Fuel::new(&limits)) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

impl PartialEq for Value {
    /// Python's `==`; values too large or too deep to compare are unequal.
    fn eq(&self, other: &Value) -> bool {
        let limits = crate::Limits::default();
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
        fn check<T: Send + Sync>() {}
        check::<Value>();
    }

    #[test]
    fn a_million_nested_lists_drop_without_recursion() {
        let mut value = Value::None;
        for round in 0..1_000_000 {
            value = match round % 3 {
                0 => Value::list(vec![value]),
                1 => Value::tuple(vec![value]),
                _ => Value::dict([("k", value)]),
            };
        }
        drop(value);
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
