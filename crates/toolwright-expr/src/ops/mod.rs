//! What operators mean: Python's rules for each pair of types, each paying for its work before doing it.
//! Numbers, sequences and comparison have a file each; this one chooses among them.

pub(crate) mod compare;
pub(crate) mod complex;
pub(crate) mod number;
pub(crate) mod sequence;

pub(crate) use compare::{contains, equal, key, order, same_range};

use crate::ast::{BinaryOp, UnaryOp};
use crate::error::Error;
use crate::fuel::Fuel;
use crate::types::Type;
use crate::value::{Dict, KeySet, ObjectData, Set, Value, ViewKind};

/// `left op right`.
pub(crate) fn binary(op: BinaryOp, left: &Value, right: &Value, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    if let Some(result) = number::binary(op, left, right, fuel)? {
        return Ok(result);
    }
    match op {
        BinaryOp::Add => sequence::concat(left, right, fuel),
        BinaryOp::Mul => sequence::repeat(left, right, fuel),
        BinaryOp::Mod => match left {
            Value::Str(template) => crate::format::percent(template, right, fuel).map(Value::str),
            _ => Err(unsupported(op, left, right)),
        },
        BinaryOp::Or => match (left, right) {
            (Value::Dict(a), Value::Dict(b)) => merged(a, b, fuel),
            _ => set_operation(op, left, right, fuel),
        },
        BinaryOp::And | BinaryOp::Sub | BinaryOp::Xor => set_operation(op, left, right, fuel),
        _ => Err(unsupported(op, left, right)),
    }
}

#[cold]
pub(crate) fn unsupported(op: BinaryOp, left: &Value, right: &Value) -> Error {
    let error = Error::type_(format!(
        "unsupported operand type(s) for {}: '{}' and '{}'",
        op.symbol(),
        left.type_name(),
        right.type_name()
    ));
    match (op, left, right) {
        (BinaryOp::Add, Value::Str(_), _) | (BinaryOp::Add, _, Value::Str(_)) => {
            error.with_hint("turn the number into text with str()")
        }
        _ => error,
    }
}

fn merged(left: &Dict, right: &Dict, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    let (left, right) = (left.snapshot(), right.snapshot());
    fuel.allocate_many(left.len() + right.len(), DICT_ENTRY)?;
    let mut map = (*left).clone();
    map.extend(right.iter().map(|(key, value)| (key.clone(), value.clone())));
    Ok(Value::Dict(Dict::new(map)))
}

/// What one entry of a dict is counted as, table and all.
pub(crate) const DICT_ENTRY: usize = 64;
/// What one member of a set is counted as.
pub(crate) const SET_ENTRY: usize = 48;

fn set_operation(op: BinaryOp, left: &Value, right: &Value, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    let beside_view = |other: &Value| {
        matches!(other, Value::Object(object)
            if matches!(object.data(), ObjectData::View(ViewKind::Keys | ViewKind::Items, _)))
    };
    let a = as_set(left, beside_view(right), fuel)?;
    let b = as_set(right, beside_view(left), fuel)?;
    let (Some(a), Some(b)) = (a, b) else {
        return Err(unsupported(op, left, right));
    };
    // With a view the result is a set that can change.
    let frozen = matches!((left, right), (Value::Set(set), Value::Set(_)) if set.is_frozen());
    fuel.allocate_many(a.len() + b.len(), SET_ENTRY)?;
    let result: KeySet = match op {
        BinaryOp::Or => a.union(&b).cloned().collect(),
        // Equal members of different type are taken from the smaller side, as Python does.
        BinaryOp::And if b.len() > a.len() => a.intersection(&b).cloned().collect(),
        BinaryOp::And => b.intersection(&a).cloned().collect(),
        BinaryOp::Sub => a.difference(&b).cloned().collect(),
        _ => a.symmetric_difference(&b).cloned().collect(),
    };
    Ok(Value::Set(Set::new(result, frozen)))
}

/// Sets, and views of dicts that behave like sets. Beside a view, any collection counts as its members.
pub(crate) fn as_set(
    value: &Value,
    beside_view: bool,
    fuel: &mut Fuel<'_>,
) -> Result<Option<std::sync::Arc<KeySet>>, Error> {
    match value {
        Value::Set(set) => Ok(Some(set.snapshot())),
        Value::Dict(dict) if beside_view => {
            let map = dict.snapshot();
            fuel.allocate_many(map.len(), SET_ENTRY)?;
            Ok(Some(std::sync::Arc::new(map.keys().cloned().collect())))
        }
        Value::List(list) if beside_view => members(&list.snapshot(), fuel).map(Some),
        Value::Tuple(items) if beside_view => members(items, fuel).map(Some),
        Value::Str(text) if beside_view => {
            fuel.allocate_many(text.len(), SET_ENTRY)?;
            let letters: Vec<Value> =
                text.chars().map(|c| Value::str(&*c.encode_utf8(&mut [0; 4]))).collect();
            members(&letters, fuel).map(Some)
        }
        Value::Bytes(bytes) if beside_view => {
            fuel.allocate_many(bytes.len(), SET_ENTRY)?;
            let numbers: Vec<Value> = bytes.iter().map(|byte| Value::Int((*byte).into())).collect();
            members(&numbers, fuel).map(Some)
        }
        Value::Range(range) if beside_view => {
            let count = usize::try_from(range.count()).unwrap_or(usize::MAX);
            fuel.allocate_many(count, SET_ENTRY)?;
            let numbers =
                (0..count as i64).map(|at| Value::Int(range.start.wrapping_add(at.wrapping_mul(range.step))));
            members(&numbers.collect::<Vec<_>>(), fuel).map(Some)
        }
        Value::Object(object) => match object.data() {
            ObjectData::View(ViewKind::Keys, dict) => {
                let map = dict.snapshot();
                fuel.allocate_many(map.len(), SET_ENTRY)?;
                Ok(Some(std::sync::Arc::new(map.keys().cloned().collect())))
            }
            ObjectData::View(ViewKind::Items, dict) => {
                let map = dict.snapshot();
                fuel.allocate_many(map.len(), SET_ENTRY * 2)?;
                let mut items = KeySet::default();
                for (key_, value) in map.iter() {
                    items.insert(key(&Value::tuple(vec![key_.value.clone(), value.clone()]), fuel)?);
                }
                Ok(Some(std::sync::Arc::new(items)))
            }
            ObjectData::View(ViewKind::Values, dict) if beside_view => {
                let values: Vec<Value> = dict.snapshot().values().cloned().collect();
                members(&values, fuel).map(Some)
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn members(items: &[Value], fuel: &mut Fuel<'_>) -> Result<std::sync::Arc<KeySet>, Error> {
    fuel.allocate_many(items.len(), SET_ENTRY)?;
    let keys = items.iter().map(|item| key(item, fuel)).collect::<Result<KeySet, _>>()?;
    Ok(std::sync::Arc::new(keys))
}

/// `-x`, `+x`, `~x`.
pub(crate) fn unary(op: UnaryOp, value: &Value, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    if let Some(result) = number::unary(op, value, fuel)? {
        return Ok(result);
    }
    let symbol = match op {
        UnaryOp::Minus => "-",
        UnaryOp::Plus => "+",
        UnaryOp::Invert => "~",
    };
    Err(Error::type_(format!("bad operand type for unary {symbol}: '{}'", value.type_name())))
}

/// Python's truth of a value.
pub(crate) fn truth(value: &Value) -> bool {
    match value {
        Value::None | Value::Unbound => false,
        Value::Bool(flag) => *flag,
        Value::Int(number) => *number != 0,
        Value::Float(number) => *number != 0.0,
        Value::Str(text) => !text.is_empty(),
        Value::Bytes(bytes) => !bytes.is_empty(),
        Value::List(list) => !list.is_empty(),
        Value::Tuple(tuple) => !tuple.is_empty(),
        Value::Dict(dict) => !dict.is_empty(),
        Value::Set(set) => !set.is_empty(),
        Value::Range(range) => range.count() > 0,
        Value::Big(_) | Value::Ellipsis | Value::Type(_) | Value::Builtin(_) => true,
        Value::Object(object) => match object.data() {
            ObjectData::Complex { re, im } => *re != 0.0 || *im != 0.0,
            ObjectData::View(_, dict) => !dict.is_empty(),
            _ => true,
        },
    }
}

/// Python's `len`.
pub(crate) fn length(value: &Value) -> Result<usize, Error> {
    Ok(match value {
        Value::Str(text) => text.chars_len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Tuple(tuple) => tuple.len(),
        Value::Dict(dict) => dict.len(),
        Value::Set(set) => set.len(),
        Value::Range(range) => usize::try_from(range.count())
            .ok()
            .filter(|count| i64::try_from(*count).is_ok())
            .ok_or_else(|| Error::overflow("Python int too large to convert to C ssize_t"))?,
        Value::Object(object) => match object.data() {
            ObjectData::View(_, dict) => dict.len(),
            _ => return Err(no_length(value)),
        },
        _ => return Err(no_length(value)),
    })
}

#[cold]
fn no_length(value: &Value) -> Error {
    Error::type_(format!("object of type '{}' has no len()", value.type_name()))
}

/// A value used as a position or count.
pub(crate) fn index(value: &Value) -> Result<i64, Error> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::Bool(flag) => Ok(i64::from(*flag)),
        Value::Big(_) => Err(Error::overflow("Python int too large to convert to C ssize_t")),
        _ => Err(Error::type_(format!("'{}' object cannot be interpreted as an integer", value.type_name()))),
    }
}

/// Whether `value` is an instance of `class`.
pub(crate) fn is_instance(value: &Value, class: Type) -> bool {
    Type::of(value).derives_from(class)
}

#[cfg(test)]
mod tests {
    use crate::{EvalLimits, Program};

    #[test]
    fn corners_are_those_of_python() {
        for (source, wanted) in [
            ("{'a': 1}.keys() < {'a', 'b'}", "True"),
            ("{'a': 1}.items() == {('a', 1)}", "True"),
            ("{'a': 1}.keys() | range(2)", "{'a', 0, 1}"),
            ("len == len", "True"),
            ("'%08.2f|%+06d' % (float('inf'), 5)", "'00000inf|+00005'"),
            ("'{:#}'.format(1e20)", "'1.e+20'"),
            ("b'abcd'.hex('-', 2)", "'6162-6364'"),
            ("'abc'.translate(['x'] * 98)", "'xbc'"),
            ("sorted([1, 2], reverse='yes')", "[2, 1]"),
            ("dict(_a=1)", "{'_a': 1}"),
            ("f'\\{1}'", "'\\\\1'"),
            ("rb'\\''", "b\"\\\\'\""),
            ("'ᾳ ᾷx'.title()", "'ᾼ Α\u{342}\u{345}x'"),
            ("'ⓐ'.isidentifier()", "False"),
            ("int.from_bytes([1, 2])", "258"),
            ("round(5, 2**70), round(5, -2**70), round(1.5, 2**70)", "(5, 0, 1.5)"),
            ("complex(0, -0.0)", "-0j"),
            ("hash(1j)", "1000003"),
            ("log(msg='a')", "None"),
        ] {
            let value = Program::compile(source).unwrap().evaluate(&(), &EvalLimits::default()).unwrap();
            assert_eq!(format!("{value:?}"), wanted, "{source}");
        }
        for (source, class) in [
            ("1.5 & 10**400", "TypeError"),
            ("'%5%' % ()", "TypeError"),
            ("'[%0%]' % (1,)", "ValueError"),
            ("bytes(3, 'x')", "TypeError"),
            ("[1].index(1, None)", "TypeError"),
            ("{1}.copy(2)", "TypeError"),
            ("[1][*[0]]", "TypeError"),
            ("'a'.split('', '-')", "TypeError"),
            ("'%(k)s %s' % {'k': 1}", "TypeError"),
            ("setattr('x', 'a', 1)", "TypeError"),
            ("int('z', 2**70)", "ValueError"),
            ("chr(123456789012345678)", "OverflowError"),
            ("parse_json(b'\\xff')", "UnicodeDecodeError"),
        ] {
            let error = Program::compile(source).unwrap().evaluate(&(), &EvalLimits::default()).unwrap_err();
            assert_eq!(error.python_class(), class, "{source}");
        }
        for source in ["len(**{}, *[[1]])", "*[1],", "1, *[2]", "f'{1! r}'"] {
            assert!(Program::compile(source).is_err(), "{source}");
        }
        let shown = Program::compile("f'{ 1 = }'").unwrap().evaluate(&(), &EvalLimits::default()).unwrap();
        assert_eq!(shown.to_string(), " 1 = 1");
    }

    #[test]
    fn beside_a_view_anything_that_has_members_is_a_set() {
        for (source, wanted) in [
            ("sorted({}.keys() | 'KEY')", "['E', 'K', 'Y']"),
            ("'a' | {}.keys()", "{'a'}"),
            ("'ab' - {'a': 1}.keys()", "{'b'}"),
            ("{97: 1}.keys() & b'ab'", "{97}"),
            ("{1: 2}.keys() | {1: 2}.values()", "{1, 2}"),
            ("frozenset([1]) | {2: 3}.keys()", "{1, 2}"),
            ("frozenset([1]) | {2}", "frozenset({1, 2})"),
        ] {
            let value = Program::compile(source).unwrap().evaluate(&(), &EvalLimits::default()).unwrap();
            assert_eq!(format!("{value:?}"), wanted, "{source}");
        }
        for source in ["{1: 2}.values() | [1]", "{1: 2}.keys() | 5", "'a' | 'b'", "{1} | 'b'"] {
            let error = Program::compile(source).unwrap().evaluate(&(), &EvalLimits::default()).unwrap_err();
            assert_eq!(error.python_class(), "TypeError", "{source}");
        }
    }
}
