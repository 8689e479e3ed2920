//! Texts, lists, tuples, bytes and ranges: joining, repeating, indexing and slicing. Every result is paid
//! for by its length before it is built.

use std::sync::Arc;

use compact_str::CompactString;
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use crate::error::{Error, ErrorKind};
use crate::fuel::Fuel;
use crate::ops;
use crate::value::{Object, ObjectData, Range, Text, Value};

/// Bytes a value takes in a list or tuple.
pub(crate) const ITEM: usize = size_of::<Value>();

/// `left + right` for sequences.
pub(crate) fn concat(left: &Value, right: &Value, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    match (left, right) {
        (Value::Str(a), Value::Str(b)) => {
            fuel.allocate(a.len() + b.len())?;
            let mut text = CompactString::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Ok(Value::str(text))
        }
        (Value::List(a), Value::List(b)) => {
            let (a, b) = (a.snapshot(), b.snapshot());
            joined(&a, &b, fuel).map(Value::list)
        }
        (Value::Tuple(a), Value::Tuple(b)) => joined(a, b, fuel).map(Value::tuple),
        (Value::Bytes(a), Value::Bytes(b)) => {
            fuel.allocate(a.len() + b.len())?;
            Ok(Value::bytes([&**a, &**b].concat()))
        }
        (Value::Str(_), _) => {
            Err(Error::type_(format!("can only concatenate str (not \"{}\") to str", right.type_name()))
                .with_hint("turn the other value into text with str()"))
        }
        (Value::List(_), _) => {
            Err(Error::type_(format!("can only concatenate list (not \"{}\") to list", right.type_name())))
        }
        (Value::Tuple(_), _) => {
            Err(Error::type_(format!("can only concatenate tuple (not \"{}\") to tuple", right.type_name())))
        }
        (Value::Bytes(_), _) => Err(Error::type_(format!("can't concat {} to bytes", right.type_name()))),
        _ => Err(ops::unsupported(crate::ast::BinaryOp::Add, left, right)),
    }
}

fn joined(a: &[Value], b: &[Value], fuel: &mut Fuel<'_>) -> Result<Vec<Value>, Error> {
    fuel.allocate_many(a.len() + b.len(), ITEM)?;
    let mut items = Vec::with_capacity(a.len() + b.len());
    items.extend_from_slice(a);
    items.extend_from_slice(b);
    Ok(items)
}

/// `left * right` where one side is a sequence and the other a count.
pub(crate) fn repeat(left: &Value, right: &Value, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    let is_sequence =
        |value: &Value| matches!(value, Value::Str(_) | Value::List(_) | Value::Tuple(_) | Value::Bytes(_));
    let (sequence, count) = match (is_sequence(left), is_sequence(right)) {
        (true, _) => (left, right),
        (false, true) => (right, left),
        (false, false) => return Err(ops::unsupported(crate::ast::BinaryOp::Mul, left, right)),
    };
    let count = match count {
        Value::Int(number) => usize::try_from(*number).unwrap_or(0),
        Value::Bool(flag) => usize::from(*flag),
        Value::Big(_) => return Err(Error::overflow("cannot fit 'int' into an index-sized integer")),
        other => {
            return Err(Error::type_(format!(
                "can't multiply sequence by non-int of type '{}'",
                other.type_name()
            )));
        }
    };
    Ok(match sequence {
        Value::Str(text) => {
            fuel.allocate_many(text.len(), count)?;
            Value::str(text.repeat(if text.is_empty() { 0 } else { count }))
        }
        Value::Bytes(bytes) => {
            fuel.allocate_many(bytes.len(), count)?;
            Value::bytes(bytes.repeat(if bytes.is_empty() { 0 } else { count }))
        }
        Value::List(list) => Value::list(repeated(&list.snapshot(), count, fuel)?),
        Value::Tuple(tuple) => Value::tuple(repeated(tuple, count, fuel)?),
        _ => return Err(ops::unsupported(crate::ast::BinaryOp::Mul, left, right)),
    })
}

fn repeated(items: &[Value], count: usize, fuel: &mut Fuel<'_>) -> Result<Vec<Value>, Error> {
    let length = items.len().saturating_mul(count);
    fuel.allocate_many(length, ITEM)?;
    // Copying values touches their reference counts, so it costs more than the bytes alone.
    fuel.spend(length as u64 / 4)?;
    let mut all = Vec::with_capacity(length);
    if !items.is_empty() {
        for _ in 0..count {
            all.extend_from_slice(items);
        }
    }
    Ok(all)
}

/// `value[index]`.
pub(crate) fn subscript(value: &Value, index: &Value, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    match (value, index) {
        (Value::List(list), Value::Int(at)) => {
            let items = list.snapshot();
            return match position(*at, items.len()).and_then(|at| items.get(at)) {
                Some(item) => Ok(item.clone()),
                None => Err(Error::index("list index out of range")),
            };
        }
        (Value::Dict(dict), Value::Str(text)) => {
            return dict.get(text).ok_or_else(|| missing_key(index, fuel));
        }
        (Value::Dict(dict), _) => {
            let key = ops::key(index, fuel)?;
            return dict.find(&key).ok_or_else(|| missing_key(index, fuel));
        }
        _ => {}
    }
    if let Value::Object(object) = index
        && let ObjectData::Slice(parts) = object.data()
    {
        return slice(value, parts, fuel);
    }
    let kind = match value {
        Value::Str(_) => "string",
        Value::List(_) => "list",
        Value::Tuple(_) => "tuple",
        Value::Bytes(_) => "bytes",
        Value::Range(_) => "range",
        _ => return Err(Error::type_(format!("'{}' object is not subscriptable", value.type_name()))),
    };
    let at = item_index(index, kind)?;
    let length = ops::length(value)?;
    let out_of_range = || {
        let name = if kind == "range" { "range object" } else { kind };
        Error::index(if kind == "bytes" {
            "index out of range".to_owned()
        } else {
            format!("{name} index out of range")
        })
    };
    let at = position(at, length).ok_or_else(out_of_range)?;
    match value {
        Value::Str(text) => {
            if text.is_ascii() {
                let byte = text.as_bytes().get(at).ok_or_else(out_of_range)?;
                return Ok(Value::Str(Text::one(char::from(*byte))));
            }
            fuel.spend(at as u64 >> 4)?;
            text.chars().nth(at).map(|c| Value::Str(Text::one(c))).ok_or_else(out_of_range)
        }
        Value::List(list) => list.get(at).ok_or_else(out_of_range),
        Value::Tuple(tuple) => tuple.get(at).cloned().ok_or_else(out_of_range),
        Value::Bytes(bytes) => {
            bytes.get(at).map(|byte| Value::Int(i64::from(*byte))).ok_or_else(out_of_range)
        }
        Value::Range(range) => Ok(Value::Int(range.at(at as u64))),
        _ => Err(out_of_range()),
    }
}

#[cold]
fn missing_key(index: &Value, fuel: &mut Fuel<'_>) -> Error {
    match crate::repr::repr(index, fuel) {
        Ok(text) => Error::new(ErrorKind::Key, text),
        Err(error) => error,
    }
}

pub(crate) fn key_error(key: &Value, fuel: &mut Fuel<'_>) -> Error {
    missing_key(key, fuel)
}

fn item_index(index: &Value, kind: &str) -> Result<i64, Error> {
    match index {
        Value::Int(number) => Ok(*number),
        Value::Bool(flag) => Ok(i64::from(*flag)),
        Value::Big(_) => Err(Error::index("cannot fit 'int' into an index-sized integer")),
        other if kind == "string" => {
            Err(Error::type_(format!("string indices must be integers, not '{}'", other.type_name())))
        }
        other => {
            Err(Error::type_(format!("{kind} indices must be integers or slices, not {}", other.type_name())))
        }
    }
}

/// The place a possibly negative index means, if it is inside.
#[inline]
pub(crate) fn position(index: i64, length: usize) -> Option<usize> {
    let at = if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(at).ok().filter(|at| *at < length)
}

/// Start, stop and step of a slice over `length` items, with `count` items in it.
pub(crate) struct SliceBounds {
    pub(crate) start: i64,
    stop: i64,
    pub(crate) step: i64,
    pub(crate) count: usize,
}

/// Resolves a slice the way Python does: missing parts, negative and far-out positions.
pub(crate) fn bounds(parts: &[Value; 3], length: usize) -> Result<SliceBounds, Error> {
    let [start, stop, step] = parts;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let step = slice_part(step)?.unwrap_or(1);
    if step == 0 {
        return Err(Error::value("slice step cannot be zero"));
    }
    let step = step.max(-i64::MAX);
    let (low, high) = if step < 0 { (-1, length - 1) } else { (0, length) };
    let clamp = |part: i64| {
        let part = if part < 0 { part.saturating_add(length) } else { part };
        part.clamp(low, high)
    };
    let start = slice_part(start)?.map_or(if step < 0 { high } else { low }, clamp);
    let stop = slice_part(stop)?.map_or(if step < 0 { low } else { high }, clamp);
    let count = Range { start, stop, step }.count();
    Ok(SliceBounds { start, stop, step, count: usize::try_from(count).unwrap_or(usize::MAX) })
}

fn slice_part(part: &Value) -> Result<Option<i64>, Error> {
    match part {
        Value::None => Ok(None),
        Value::Int(number) => Ok(Some(*number)),
        Value::Bool(flag) => Ok(Some(i64::from(*flag))),
        Value::Big(number) => Ok(Some(if number.is_negative() { i64::MIN } else { i64::MAX })),
        _ => Err(Error::type_("slice indices must be integers or None or have an __index__ method")),
    }
}

fn slice(value: &Value, parts: &[Value; 3], fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    match value {
        Value::Str(text) => slice_text(text, parts, fuel).map(Value::Str),
        Value::List(list) => {
            let items = list.snapshot();
            let bounds = bounds(parts, items.len())?;
            Ok(Value::list(picked(&items, &bounds, ITEM, fuel)?))
        }
        Value::Tuple(items) => {
            let bounds = bounds(parts, items.len())?;
            Ok(Value::tuple(picked(items, &bounds, ITEM, fuel)?))
        }
        Value::Bytes(bytes) => {
            let bounds = bounds(parts, bytes.len())?;
            Ok(Value::bytes(picked(bytes, &bounds, 1, fuel)?))
        }
        Value::Range(range) => slice_range(range, parts),
        Value::Dict(_) => Err(Error::type_("unhashable type: 'slice'")),
        _ => Err(Error::type_(format!("'{}' object is not subscriptable", value.type_name()))),
    }
}

fn picked<T: Clone>(
    items: &[T],
    bounds: &SliceBounds,
    size: usize,
    fuel: &mut Fuel<'_>,
) -> Result<Vec<T>, Error> {
    fuel.allocate_many(bounds.count, size)?;
    fuel.spend(bounds.count as u64 / 4)?;
    if bounds.step == 1 {
        let start = usize::try_from(bounds.start).unwrap_or(0);
        return Ok(items.get(start..start + bounds.count).unwrap_or_default().to_vec());
    }
    let mut at = bounds.start;
    let mut result = Vec::with_capacity(bounds.count);
    for _ in 0..bounds.count {
        if let Some(item) = usize::try_from(at).ok().and_then(|at| items.get(at)) {
            result.push(item.clone());
        }
        at = at.saturating_add(bounds.step);
    }
    Ok(result)
}

fn slice_text(text: &Text, parts: &[Value; 3], fuel: &mut Fuel<'_>) -> Result<Text, Error> {
    let bounds = bounds(parts, text.chars_len())?;
    if bounds.step == 1 && bounds.count == text.chars_len() {
        return Ok(text.clone());
    }
    if bounds.step == 1 {
        let start = usize::try_from(bounds.start).unwrap_or(0);
        let part = char_range(text, start, bounds.count);
        fuel.allocate(part.len())?;
        if !text.is_ascii() {
            fuel.spend(text.len() as u64 >> 6)?;
        }
        return Ok(Text::from(part));
    }
    fuel.allocate(text.len() + bounds.count)?;
    if text.is_ascii() {
        let bytes = picked(text.as_bytes(), &bounds, 1, fuel)?;
        return Ok(Text::from(String::from_utf8(bytes).unwrap_or_default()));
    }
    fuel.allocate_many(text.chars_len(), size_of::<char>())?;
    let characters: Vec<char> = text.chars().collect();
    Ok(Text::from(picked(&characters, &bounds, size_of::<char>(), fuel)?.into_iter().collect::<String>()))
}

/// `count` characters of a text from character `start` on.
pub(crate) fn char_range(text: &Text, start: usize, count: usize) -> &str {
    if text.is_ascii() {
        return text.get(start..start + count).unwrap_or_default();
    }
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let from = places.nth(start).unwrap_or(text.len());
    let to = if count == 0 { from } else { places.nth(count - 1).unwrap_or(text.len()) };
    text.get(from..to).unwrap_or_default()
}

fn slice_range(range: &Range, parts: &[Value; 3]) -> Result<Value, Error> {
    let length = usize::try_from(range.count()).unwrap_or(usize::MAX);
    let bounds = bounds(parts, length)?;
    let exact = |index: i64| BigInt::from(range.start) + BigInt::from(index) * BigInt::from(range.step);
    let step = BigInt::from(range.step) * BigInt::from(bounds.step);
    match (exact(bounds.start).to_i64(), exact(bounds.stop).to_i64(), step.to_i64()) {
        (Some(start), Some(stop), Some(step)) => Ok(Value::Range(Arc::new(Range { start, stop, step }))),
        _ => Err(Error::overflow("this range needs numbers of more than 64 bits")),
    }
}

/// A slice object from its three parts.
pub(crate) fn slice_value(parts: [Value; 3]) -> Value {
    Object::new(ObjectData::Slice(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(parts: [Option<i64>; 3], length: usize) -> (i64, i64, usize) {
        let parts = parts.map(|part| part.map_or(Value::None, Value::Int));
        let bounds = bounds(&parts, length).unwrap();
        (bounds.start, bounds.step, bounds.count)
    }

    #[test]
    fn slices_resolve_like_pythons() {
        assert_eq!(span([None, None, None], 5), (0, 1, 5));
        assert_eq!(span([None, None, Some(-1)], 5), (4, -1, 5));
        assert_eq!(span([Some(-100), Some(2), None], 5), (0, 1, 2));
        assert_eq!(span([Some(3), Some(1), None], 5).2, 0);
        assert_eq!(span([None, None, Some(i64::MIN)], 5), (4, -i64::MAX, 1));
    }

    #[test]
    fn positions_outside_are_none() {
        assert_eq!(position(-1, 3), Some(2));
        assert_eq!(position(3, 3), None);
        assert_eq!(position(i64::MIN, 3), None);
    }
}
