//! Iterators: what `for` walks over, and the lazy results of `zip`, `map` and their kin. The state is plain
//! data; the evaluator, which can call functions, advances it.

use std::sync::Arc;

use crate::error::Error;
use crate::types::Type;
use crate::value::{Dict, KeySet, List, Object, ObjectData, Range, Set, Text, Tuple, Value, ViewKind, lock};

/// Where an iteration stands.
pub(crate) enum Iter {
    List(List, usize),
    Tuple(Tuple, usize),
    /// Byte position in a text.
    Text(Text, usize),
    Bytes(crate::value::Bytes, usize),
    Range(Range, u64, u64),
    Dict(Dict, ViewKind, usize, usize),
    Set(Arc<Vec<Value>>, Set, usize),
    ListReversed(List, usize),
    Values(std::vec::IntoIter<Value>),
    /// Another iterator or a generator, shared with its other holders.
    Shared(Value),
    Zip(Vec<Iter>, bool),
    Enumerate(Box<Iter>, Value),
    Map(Value, Vec<Iter>),
    Filter(Value, Box<Iter>),
    Done,
}

impl Iter {
    /// An iterator over a value, or Python's complaint that it has none.
    pub(crate) fn over(value: &Value) -> Result<Iter, Error> {
        Ok(match value {
            Value::List(list) => Iter::List(list.clone(), 0),
            Value::Tuple(tuple) => Iter::Tuple(tuple.clone(), 0),
            Value::Str(text) => Iter::Text(text.clone(), 0),
            Value::Bytes(bytes) => Iter::Bytes(bytes.clone(), 0),
            Value::Range(range) => Iter::Range((**range).clone(), 0, range.count()),
            Value::Dict(dict) => Iter::Dict(dict.clone(), ViewKind::Keys, 0, dict.len()),
            Value::Set(set) => Iter::Set(Arc::new(set_order(&set.snapshot())), set.clone(), 0),
            Value::Object(object) => match object.data() {
                ObjectData::View(kind, dict) => Iter::Dict(dict.clone(), *kind, 0, dict.len()),
                ObjectData::Iter(..) | ObjectData::Generator(_) => Iter::Shared(value.clone()),
                _ => return Err(not_iterable(value)),
            },
            _ => return Err(not_iterable(value)),
        })
    }

    /// The iterator as a value of the given type.
    pub(crate) fn into_value(self, kind: Type) -> Value {
        Object::new(ObjectData::Iter(kind, std::sync::Mutex::new(self)))
    }

    /// How many iterators are stacked inside this one; advancing it recurses as deep.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Iter::Zip(parts, _) | Iter::Map(_, parts) => 1 + parts.iter().map(Iter::depth).max().unwrap_or(0),
            Iter::Enumerate(inner, _) | Iter::Filter(_, inner) => 1 + inner.depth(),
            Iter::Shared(Value::Object(object)) => match object.data() {
                ObjectData::Iter(_, inner) => 1 + lock(inner).depth(),
                _ => 1,
            },
            _ => 1,
        }
    }

    /// The next value of an iterator that needs no call; `Err(Step::Call)` asks the evaluator to do it.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<Option<Value>, Step> {
        Ok(match self {
            Iter::List(list, at) => {
                let item = list.get(*at);
                *at += 1;
                item
            }
            Iter::Tuple(tuple, at) => {
                let item = tuple.get(*at).cloned();
                *at += 1;
                item
            }
            Iter::Text(text, at) => {
                let next = text.get(*at..).and_then(|rest| rest.chars().next());
                *at += next.map_or(0, char::len_utf8);
                next.map(|c| Value::Str(Text::one(c)))
            }
            Iter::Bytes(bytes, at) => {
                let item = bytes.get(*at).map(|byte| Value::Int(i64::from(*byte)));
                *at += 1;
                item
            }
            Iter::Range(range, at, count) => (*at < *count).then(|| {
                let number = range.at(*at);
                *at += 1;
                Value::Int(number)
            }),
            Iter::Dict(dict, kind, at, length) => {
                if dict.len() != *length {
                    return Err(Step::Fail(Error::runtime("dictionary changed size during iteration")));
                }
                let entry = dict.entry_at(*at);
                *at += 1;
                entry.map(|(key, value)| match kind {
                    ViewKind::Keys => key,
                    ViewKind::Values => value,
                    ViewKind::Items => Value::tuple(vec![key, value]),
                })
            }
            Iter::Set(members, set, at) => {
                if set.len() != members.len() {
                    return Err(Step::Fail(Error::runtime("Set changed size during iteration")));
                }
                let item = members.get(*at).cloned();
                *at += 1;
                item
            }
            Iter::ListReversed(list, left) => match left.checked_sub(1) {
                Some(at) => {
                    *left = at;
                    list.get(at)
                }
                None => None,
            },
            Iter::Values(values) => values.next(),
            Iter::Done => None,
            Iter::Shared(_) | Iter::Zip(..) | Iter::Enumerate(..) | Iter::Map(..) | Iter::Filter(..) => {
                return Err(Step::Call);
            }
        })
    }

    /// Moves every value out, so that long chains of iterators can be dropped without recursion.
    pub(crate) fn take_values(&mut self, values: &mut Vec<Value>) {
        match std::mem::replace(self, Iter::Done) {
            Iter::List(list, _) | Iter::ListReversed(list, _) => values.push(Value::List(list)),
            Iter::Tuple(tuple, _) => values.push(Value::Tuple(tuple)),
            Iter::Dict(dict, ..) => values.push(Value::Dict(dict)),
            Iter::Set(_, set, _) => values.push(Value::Set(set)),
            Iter::Values(rest) => values.extend(rest),
            Iter::Shared(value) => values.push(value),
            Iter::Zip(mut parts, _) => parts.iter_mut().for_each(|part| part.take_values(values)),
            Iter::Map(function, mut parts) => {
                values.push(function);
                parts.iter_mut().for_each(|part| part.take_values(values));
            }
            Iter::Enumerate(mut inner, count) => {
                values.push(count);
                inner.take_values(values);
            }
            Iter::Filter(function, mut inner) => {
                values.push(function);
                inner.take_values(values);
            }
            Iter::Text(..) | Iter::Bytes(..) | Iter::Range(..) | Iter::Done => {}
        }
    }
}

/// Why `advance` gave no value.
pub(crate) enum Step {
    /// The evaluator has to call a function or run a generator.
    Call,
    /// The iteration failed.
    Fail(Error),
}

#[cold]
fn not_iterable(value: &Value) -> Error {
    let error = Error::type_(format!("'{}' object is not iterable", value.type_name()));
    match value {
        Value::Int(_) => error.with_hint("count with range(n)"),
        _ => error,
    }
}

/// Members in the order Python would show them.
///
/// Python orders a set by hash. Hashes of numbers are public knowledge, so sets of small numbers come out the
/// same here; anything else keeps the order it came in, where Python's order changes from run to run.
pub(crate) fn set_order(set: &KeySet) -> Vec<Value> {
    let plain = || set.iter().map(|key| key.value.clone()).collect();
    let mut hashes = Vec::with_capacity(set.len());
    for key in set {
        match crate::builtins::number::python_hash(&key.value) {
            Some(hash) => hashes.push(hash),
            None => return plain(),
        }
    }
    if set.len() > 50_000 {
        return plain();
    }
    let table = hash_table(&hashes);
    table.into_iter().flatten().filter_map(|at| set.get_index(at)).map(|key| key.value.clone()).collect()
}

/// Fills a table the way CPython's set does, one insertion after the other.
fn hash_table(hashes: &[i64]) -> Vec<Option<usize>> {
    let mut table: Vec<Option<usize>> = vec![None; 8];
    let mut used = 0usize;
    for (index, hash) in hashes.iter().enumerate() {
        place(&mut table, *hash, index);
        used += 1;
        if used * 5 >= (table.len() - 1) * 3 {
            let wanted = if used > 50_000 { used * 2 } else { used * 4 };
            let mut size = 8usize;
            while size <= wanted {
                size *= 2;
            }
            let mut larger = vec![None; size];
            for old in table.iter().flatten() {
                if let Some(hash) = hashes.get(*old) {
                    place(&mut larger, *hash, *old);
                }
            }
            table = larger;
        }
    }
    table
}

fn place(table: &mut [Option<usize>], hash: i64, index: usize) {
    const PROBES: usize = 9;
    let mask = table.len() - 1;
    let mut perturb = hash as u64 as usize;
    let mut at = perturb & mask;
    loop {
        let probes = if at + PROBES <= mask { PROBES } else { 0 };
        for offset in 0..=probes {
            if let Some(slot) = table.get_mut(at + offset)
                && slot.is_none()
            {
                *slot = Some(index);
                return;
            }
        }
        perturb >>= 5;
        at = (at.wrapping_mul(5).wrapping_add(1).wrapping_add(perturb)) & mask;
    }
}
