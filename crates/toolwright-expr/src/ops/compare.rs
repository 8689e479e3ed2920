//! Equality, order, membership and hashing across types. All of it is metered, because two small values can
//! share structure so much that comparing them naively takes forever.

use std::cmp::Ordering;

use crate::ast::CompareOp;
use crate::error::Error;
use crate::fuel::Fuel;
use crate::ops::number::{self, Number};
use crate::value::{self, Key, KeySet, ObjectData, Range, Value, ViewKind};

/// Python's `==`.
pub(crate) fn equal(left: &Value, right: &Value, fuel: &mut Fuel<'_>) -> Result<bool, Error> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Ok(a == b),
        (Value::Str(a), Value::Str(b)) => {
            fuel.spend(a.len().min(b.len()) as u64 >> 8)?;
            Ok(**a == **b)
        }
        (Value::None, Value::None) | (Value::Ellipsis, Value::Ellipsis) => Ok(true),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(**a == **b),
        (Value::List(a), Value::List(b)) => all_equal(&a.snapshot(), &b.snapshot(), fuel),
        (Value::Tuple(a), Value::Tuple(b)) => all_equal(a, b, fuel),
        (Value::Dict(a), Value::Dict(b)) => {
            let (a, b) = (a.snapshot(), b.snapshot());
            if std::sync::Arc::ptr_eq(&a, &b) {
                return Ok(true);
            }
            if a.len() != b.len() {
                return Ok(false);
            }
            nested(fuel, |fuel| {
                for (key, value) in a.iter() {
                    fuel.spend(2)?;
                    match b.get(key) {
                        Some(other) if value.is(other) || equal(value, other, fuel)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            })
        }
        (Value::Set(a), Value::Set(b)) => {
            let (a, b) = (a.snapshot(), b.snapshot());
            Ok(a.len() == b.len() && subset(&a, &b, fuel)?)
        }
        (Value::Range(a), Value::Range(b)) => Ok(same_range(a, b)),
        (Value::Type(a), Value::Type(b)) => Ok(a == b),
        (Value::Builtin(_), Value::Builtin(_)) => Ok(left.is(right)),
        (Value::Object(_), _) | (_, Value::Object(_)) => objects(left, right, fuel),
        _ => Ok(number::same(left, right)),
    }
}

fn all_equal(left: &[Value], right: &[Value], fuel: &mut Fuel<'_>) -> Result<bool, Error> {
    if left.len() != right.len() {
        return Ok(false);
    }
    nested(fuel, |fuel| {
        for (a, b) in left.iter().zip(right) {
            fuel.spend(1)?;
            if !a.is(b) && !equal(a, b, fuel)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

fn nested<T>(fuel: &mut Fuel<'_>, work: impl FnOnce(&mut Fuel<'_>) -> Result<T, Error>) -> Result<T, Error> {
    fuel.enter()?;
    let result = work(fuel);
    fuel.leave();
    result
}

fn objects(left: &Value, right: &Value, fuel: &mut Fuel<'_>) -> Result<bool, Error> {
    if number::same(left, right) || left.is(right) {
        return Ok(true);
    }
    if matches!(left, Value::Set(_)) || matches!(right, Value::Set(_)) {
        let (a, b) = (super::as_set(left, false, fuel)?, super::as_set(right, false, fuel)?);
        return match (a, b) {
            (Some(a), Some(b)) => Ok(a.len() == b.len() && subset(&a, &b, fuel)?),
            _ => Ok(false),
        };
    }
    let (Value::Object(a), Value::Object(b)) = (left, right) else { return Ok(false) };
    match (a.data(), b.data()) {
        (ObjectData::Struct(a), ObjectData::Struct(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            nested(fuel, |fuel| {
                for (name, value) in a {
                    fuel.spend(1)?;
                    match b.get(name) {
                        Some(other) if equal(value, other, fuel)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            })
        }
        (ObjectData::Slice(a), ObjectData::Slice(b)) => all_equal(a, b, fuel),
        (ObjectData::View(ViewKind::Keys, a), ObjectData::View(ViewKind::Keys, b)) => {
            let (a, b) = (a.snapshot(), b.snapshot());
            fuel.spend(a.len() as u64)?;
            Ok(a.len() == b.len() && a.keys().all(|key| b.contains_key(key)))
        }
        (ObjectData::View(ViewKind::Items, a), ObjectData::View(ViewKind::Items, b)) => {
            equal(&Value::Dict(a.clone()), &Value::Dict(b.clone()), fuel)
        }
        _ => Ok(false),
    }
}

pub(crate) fn subset(small: &KeySet, large: &KeySet, fuel: &mut Fuel<'_>) -> Result<bool, Error> {
    fuel.spend(small.len() as u64)?;
    Ok(small.iter().all(|key| large.contains(key)))
}

/// Two ranges are equal when they hold the same numbers.
pub(crate) fn same_range(left: &Range, right: &Range) -> bool {
    let count = left.count();
    count == right.count()
        && (count == 0 || left.start == right.start && (count == 1 || left.step == right.step))
}

/// `<`, `<=`, `>`, `>=`.
pub(crate) fn order(op: CompareOp, left: &Value, right: &Value, fuel: &mut Fuel<'_>) -> Result<bool, Error> {
    if let (Some(a), Some(b)) = (Number::of(left), Number::of(right)) {
        if matches!(a, Number::Complex(..)) || matches!(b, Number::Complex(..)) {
            return Err(unordered(op, left, right));
        }
        return Ok(number::compare(a, b).is_some_and(|order| accepts(op, order)));
    }
    let order = match (left, right) {
        (Value::Str(a), Value::Str(b)) => {
            fuel.spend(a.len().min(b.len()) as u64 >> 8)?;
            (**a).cmp(&**b)
        }
        (Value::Bytes(a), Value::Bytes(b)) => (**a).cmp(&**b),
        (Value::List(a), Value::List(b)) => return lexicographic(op, &a.snapshot(), &b.snapshot(), fuel),
        (Value::Tuple(a), Value::Tuple(b)) => return lexicographic(op, a, b, fuel),
        (Value::Set(_) | Value::Object(_), Value::Set(_) | Value::Object(_)) => {
            // Views of keys and of items are sets too.
            let (a, b) = (super::as_set(left, false, fuel)?, super::as_set(right, false, fuel)?);
            let (Some(a), Some(b)) = (a, b) else { return Err(unordered(op, left, right)) };
            return Ok(match op {
                CompareOp::Le => subset(&a, &b, fuel)?,
                CompareOp::Lt => a.len() < b.len() && subset(&a, &b, fuel)?,
                CompareOp::Ge => subset(&b, &a, fuel)?,
                _ => b.len() < a.len() && subset(&b, &a, fuel)?,
            });
        }
        _ => return Err(unordered(op, left, right)),
    };
    Ok(accepts(op, order))
}

fn accepts(op: CompareOp, order: Ordering) -> bool {
    match op {
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        CompareOp::Ge => order.is_ge(),
        CompareOp::Eq => order.is_eq(),
        _ => order.is_ne(),
    }
}

fn lexicographic(op: CompareOp, left: &[Value], right: &[Value], fuel: &mut Fuel<'_>) -> Result<bool, Error> {
    nested(fuel, |fuel| {
        for (a, b) in left.iter().zip(right) {
            fuel.spend(1)?;
            if !a.is(b) && !equal(a, b, fuel)? {
                return order(op, a, b, fuel);
            }
        }
        Ok(accepts(op, left.len().cmp(&right.len())))
    })
}

#[cold]
fn unordered(op: CompareOp, left: &Value, right: &Value) -> Error {
    Error::type_(format!(
        "'{}' not supported between instances of '{}' and '{}'",
        op.symbol(),
        left.type_name(),
        right.type_name()
    ))
}

/// Whether `item` is in a container that is not an iterator; `None` when the container must be iterated.
pub(crate) fn contains(container: &Value, item: &Value, fuel: &mut Fuel<'_>) -> Result<Option<bool>, Error> {
    Ok(Some(match container {
        Value::Str(text) => match item {
            Value::Str(part) => {
                fuel.spend(text.len() as u64 >> 6)?;
                text.contains(&**part)
            }
            other => {
                return Err(Error::type_(format!(
                    "'in <string>' requires string as left operand, not {}",
                    other.type_name()
                )));
            }
        },
        Value::List(list) => among(&list.snapshot(), item, fuel)?,
        Value::Tuple(tuple) => among(tuple, item, fuel)?,
        Value::Dict(dict) => match item {
            Value::Str(text) => dict.get(text).is_some(),
            other => dict.find(&key(other, fuel)?).is_some(),
        },
        Value::Set(set) => {
            // A set is looked for as the frozen set of its members.
            set.contains(&key_or_frozen(item, fuel)?)
        }
        Value::Range(range) => match Number::of(item) {
            Some(Number::Int(number)) => in_range(range, number),
            Some(Number::Float(number)) if number.fract() == 0.0 && number.abs() < 9.0e18 => {
                in_range(range, number as i64)
            }
            _ => false,
        },
        Value::Bytes(bytes) => match item {
            Value::Int(_) | Value::Bool(_) | Value::Big(_) => {
                match item.as_i64().and_then(|byte| u8::try_from(byte).ok()) {
                    Some(byte) => bytes.contains(&byte),
                    None => return Err(Error::value("byte must be in range(0, 256)")),
                }
            }
            Value::Bytes(part) => {
                fuel.spend((bytes.len() as u64).saturating_mul(part.len() as u64) >> 6)?;
                part.is_empty() || bytes.windows(part.len()).any(|window| window == &**part)
            }
            other => {
                return Err(Error::type_(format!(
                    "a bytes-like object is required, not '{}'",
                    other.type_name()
                )));
            }
        },
        Value::Object(object) => match object.data() {
            ObjectData::View(ViewKind::Keys, dict) => dict.find(&key(item, fuel)?).is_some(),
            ObjectData::View(ViewKind::Values, dict) => {
                let map = dict.snapshot();
                for value in map.values() {
                    fuel.spend(1)?;
                    if value.is(item) || equal(value, item, fuel)? {
                        return Ok(Some(true));
                    }
                }
                false
            }
            ObjectData::View(ViewKind::Items, dict) => match item {
                Value::Tuple(pair) => match &**pair {
                    [first, second] => match dict.find(&key(first, fuel)?) {
                        Some(found) => equal(&found, second, fuel)?,
                        None => false,
                    },
                    _ => false,
                },
                _ => false,
            },
            ObjectData::Iter(..) | ObjectData::Generator(_) => return Ok(None),
            _ => return Err(not_iterable(container)),
        },
        _ => return Err(not_iterable(container)),
    }))
}

#[cold]
fn not_iterable(container: &Value) -> Error {
    Error::type_(format!("argument of type '{}' is not iterable", container.type_name()))
}

pub(crate) fn among(items: &[Value], item: &Value, fuel: &mut Fuel<'_>) -> Result<bool, Error> {
    for candidate in items {
        fuel.spend(1)?;
        if candidate.is(item) || equal(candidate, item, fuel)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn in_range(range: &Range, number: i64) -> bool {
    let inside = if range.step > 0 {
        range.start <= number && number < range.stop
    } else {
        range.stop < number && number <= range.start
    };
    inside && (i128::from(number) - i128::from(range.start)) % i128::from(range.step) == 0
}

/// The value as a key of a dict or member of a set.
pub(crate) fn key(value: &Value, fuel: &mut Fuel<'_>) -> Result<Key, Error> {
    Ok(Key::with_hash(value.clone(), hash(value, fuel)?))
}

/// As [`key`], but a set may be looked up although it could not be stored.
pub(crate) fn key_or_frozen(value: &Value, fuel: &mut Fuel<'_>) -> Result<Key, Error> {
    match value {
        Value::Set(set) => Ok(Key::with_hash(value.clone(), hash_set(&set.snapshot(), fuel)?)),
        _ => key(value, fuel),
    }
}

fn hash(value: &Value, fuel: &mut Fuel<'_>) -> Result<u64, Error> {
    Ok(match value {
        Value::Str(text) => {
            fuel.spend(1 + (text.len() as u64 >> 6))?;
            value::hash_text(text)
        }
        Value::Int(number) => value::hash_int(*number),
        Value::Bool(flag) => value::hash_int(i64::from(*flag)),
        Value::Big(number) => value::hash_big(number),
        Value::Float(number) => value::hash_float(*number),
        Value::None => value::hash_mix(3, &[]),
        Value::Ellipsis => value::hash_mix(4, &[]),
        Value::Bytes(bytes) => {
            fuel.spend(1 + (bytes.len() as u64 >> 6))?;
            value::hash_bytes(bytes)
        }
        Value::Tuple(items) => nested(fuel, |fuel| {
            fuel.allocate_many(items.len(), size_of::<u64>())?;
            fuel.spend(1 + items.len() as u64)?;
            let parts = items.iter().map(|item| hash(item, fuel)).collect::<Result<Vec<_>, _>>()?;
            Ok(value::hash_mix(5, &parts))
        })?,
        Value::Set(set) if set.is_frozen() => hash_set(&set.snapshot(), fuel)?,
        Value::Range(range) => {
            let count = range.count();
            value::hash_mix(6, &[count, if count > 0 { range.start as u64 } else { 0 }])
        }
        Value::Type(kind) => value::hash_mix(7, &[kind.index() as u64]),
        Value::Builtin(builtin) => value::hash_text(builtin.name),
        Value::Object(object) => match object.data() {
            ObjectData::Complex { re, im } if *im == 0.0 => value::hash_float(*re),
            ObjectData::Complex { re, im } => value::hash_mix(8, &[re.to_bits(), im.to_bits()]),
            ObjectData::Slice(parts) => nested(fuel, |fuel| {
                let parts = parts.iter().map(|part| hash(part, fuel)).collect::<Result<Vec<_>, _>>()?;
                Ok(value::hash_mix(9, &parts))
            })?,
            ObjectData::Struct(_) | ObjectData::View(..) => return Err(unhashable(value)),
            _ => value::hash_mix(10, &[value.address() as u64]),
        },
        Value::List(_) | Value::Dict(_) | Value::Set(_) | Value::Unbound => return Err(unhashable(value)),
    })
}

fn hash_set(items: &KeySet, fuel: &mut Fuel<'_>) -> Result<u64, Error> {
    fuel.spend(1 + items.len() as u64)?;
    let sum = items.iter().fold(0u64, |sum, key| sum.wrapping_add(key.hash_code().rotate_left(17)));
    Ok(value::hash_mix(11, &[items.len() as u64, sum]))
}

#[cold]
fn unhashable(value: &Value) -> Error {
    let error = Error::type_(format!("unhashable type: '{}'", value.type_name()));
    match value {
        Value::List(_) => error.with_hint("a tuple can be a key: (1, 2) instead of [1, 2]"),
        _ => error,
    }
}
