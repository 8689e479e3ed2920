//! Sets, frozen sets, and the set-like methods of dict views.

use super::{Constructor, Method, constructor, method};
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::iter::Iter;
use crate::ops::{self, SET_ENTRY};
use crate::types::Type;
use crate::value::{KeySet, Set, Value};

pub(crate) static CONSTRUCTORS: &[Constructor] = &[
    constructor(Type::SET, "set(items=())", "A set.", |eval, args| new(eval, args, "set", false)),
    constructor(Type::FROZENSET, "frozenset(items=())", "A set that never changes.", |eval, args| {
        new(eval, args, "frozenset", true)
    }),
];

pub(crate) static METHODS: &[Method] = &[
    method("union", "s.union(*others)", "Members of any.", |e, s, a| {
        combine(e, s, a, |set, other| {
            set.extend(other.iter().cloned());
        })
    }),
    method("intersection", "s.intersection(*others)", "Members of all.", intersection),
    method("difference", "s.difference(*others)", "Members the others lack.", |e, s, a| {
        combine(e, s, a, |set, other| {
            set.retain(|key| !other.contains(key));
        })
    }),
    method("symmetric_difference", "s.symmetric_difference(other)", "Members of exactly one.", |e, s, a| {
        combine(e, s, single(a, "symmetric_difference")?, symmetric)
    }),
    method("issubset", "s.issubset(other)", "Whether the other has all members.", |e, s, a| {
        let other = a.one("issubset")?;
        let common = common(e, s, std::slice::from_ref(&other))?;
        Ok(Value::Bool(common.len() == length(s)))
    }),
    method("issuperset", "s.issuperset(other)", "Whether it has all members of the other.", |e, s, a| {
        let other = a.one("issuperset")?;
        first_member(e, s, &other, false).map(|missing| Value::Bool(!missing))
    }),
    method("isdisjoint", "s.isdisjoint(other)", "Whether there is no common member.", isdisjoint),
    method("copy", "s.copy()", "A new set of the same members.", |e, s, a| {
        a.none("copy")?;
        combine(e, s, Args::default(), |_, _| {})
    }),
];

pub(crate) static VIEW_METHODS: &[Method] =
    &[method("isdisjoint", "v.isdisjoint(other)", "Whether there is no common member.", isdisjoint)];

pub(crate) static CHANGING_METHODS: &[Method] = &[
    method("add", "s.add(x)", "Adds a member.", |e, s, a| {
        let item = a.one("add")?;
        let key = ops::key(&item, &mut e.fuel)?;
        e.fuel.allocate(SET_ENTRY)?;
        change(s, |set| set.insert(key));
        Ok(Value::None)
    }),
    method("discard", "s.discard(x)", "Takes a member out, if it is there.", |e, s, a| {
        let key = ops::compare::key_or_frozen(&a.one("discard")?, &mut e.fuel)?;
        e.fuel.spend(length(s) as u64 >> 4)?;
        change(s, |set| set.shift_remove(&key));
        Ok(Value::None)
    }),
    method("remove", "s.remove(x)", "Takes a member out; a missing one is an error.", |e, s, a| {
        let item = a.one("remove")?;
        let key = ops::compare::key_or_frozen(&item, &mut e.fuel)?;
        e.fuel.spend(length(s) as u64 >> 4)?;
        match change(s, |set| set.shift_remove(&key)) {
            Some(true) => Ok(Value::None),
            _ => Err(ops::sequence::key_error(&item, &mut e.fuel)),
        }
    }),
    method("pop", "s.pop()", "Takes some member out and gives it.", |_, s, a| {
        a.none("pop")?;
        let first = match s {
            Value::Set(set) => crate::iter::set_order(&set.snapshot()).into_iter().next(),
            _ => None,
        };
        let Some(first) = first else {
            return Err(Error::new(crate::ErrorKind::Key, "'pop from an empty set'"));
        };
        change(s, |set| set.retain(|key| !key.value.is(&first)));
        Ok(first)
    }),
    method("clear", "s.clear()", "Takes everything out.", |_, s, a| {
        a.none("clear")?;
        change(s, KeySet::clear);
        Ok(Value::None)
    }),
    method("update", "s.update(*others)", "Adds the members of the others.", |e, s, a| {
        update(e, s, a, |set, other| set.extend(other.iter().cloned()))
    }),
    method("intersection_update", "s.intersection_update(*others)", "Keeps common members.", |e, s, a| {
        update(e, s, a, |set, other| set.retain(|key| other.contains(key)))
    }),
    method(
        "difference_update",
        "s.difference_update(*others)",
        "Takes out the others' members.",
        |e, s, a| update(e, s, a, |set, other| set.retain(|key| !other.contains(key))),
    ),
    method(
        "symmetric_difference_update",
        "s.symmetric_difference_update(other)",
        "Keeps members of exactly one.",
        |e, s, a| update(e, s, single(a, "symmetric_difference_update")?, symmetric),
    ),
];

/// Keeps what all have. Like Python it takes equal members of different type from the smaller set, or from an
/// iterable, and stops reading an iterable once every member was met.
fn intersection(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    args.no_keywords("intersection")?;
    let result = common(eval, value, &args.positional)?;
    let frozen = matches!(value, Value::Set(set) if set.is_frozen());
    Ok(Value::Set(Set::new(result, frozen)))
}

fn common(eval: &mut Eval<'_>, value: &Value, others: &[Value]) -> Result<KeySet, Error> {
    let mut result = members(eval, value)?;
    for other in others {
        let mut found = KeySet::default();
        if let Value::Set(other) = other {
            let other = other.snapshot();
            let (small, large) =
                if other.len() > result.len() { (&result, &*other) } else { (&*other, &result) };
            eval.fuel.allocate_many(small.len(), SET_ENTRY)?;
            found.extend(small.iter().filter(|key| large.contains(*key)).cloned());
        } else {
            let mut iter = Iter::over(other)?;
            while let Some(item) = eval.next(&mut iter)? {
                let key = ops::key(&item, &mut eval.fuel)?;
                eval.fuel.allocate(SET_ENTRY)?;
                if result.contains(&key) {
                    found.insert(key);
                    if found.len() >= result.len() {
                        break;
                    }
                }
            }
        }
        result = found;
    }
    Ok(result)
}

fn symmetric(set: &mut KeySet, other: &KeySet) {
    let fresh: Vec<_> = other.iter().filter(|key| !set.contains(*key)).cloned().collect();
    set.retain(|key| !other.contains(key));
    set.extend(fresh);
}

fn new(eval: &mut Eval<'_>, args: Args, name: &str, frozen: bool) -> Result<Value, Error> {
    let [items] = args.bind(name, ["/items"], 0)?;
    let set = match items {
        Some(items) => members(eval, &items)?,
        None => KeySet::default(),
    };
    Ok(Value::Set(Set::new(set, frozen)))
}

/// The members of any iterable.
fn members(eval: &mut Eval<'_>, value: &Value) -> Result<KeySet, Error> {
    if let Value::Set(set) = value {
        let set = set.snapshot();
        eval.fuel.allocate_many(set.len(), SET_ENTRY)?;
        return Ok((*set).clone());
    }
    let items = eval.collect_value(value)?;
    eval.fuel.allocate_many(items.len(), SET_ENTRY)?;
    let mut set = KeySet::default();
    for item in items {
        set.insert(ops::key(&item, &mut eval.fuel)?);
    }
    Ok(set)
}

/// The one argument that a method takes.
fn single(args: Args, name: &str) -> Result<Args, Error> {
    let other = args.one(name)?;
    Ok(Args { positional: [other].into_iter().collect(), ..Args::default() })
}

fn combine(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    apply: fn(&mut KeySet, &KeySet),
) -> Result<Value, Error> {
    args.no_keywords("set method")?;
    let mut result = members(eval, value)?;
    for other in &args.positional {
        let other = members(eval, other)?;
        eval.fuel.allocate_many(other.len(), SET_ENTRY)?;
        apply(&mut result, &other);
    }
    let frozen = matches!(value, Value::Set(set) if set.is_frozen());
    Ok(Value::Set(Set::new(result, frozen)))
}

fn update(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    apply: fn(&mut KeySet, &KeySet),
) -> Result<Value, Error> {
    args.no_keywords("set method")?;
    for other in &args.positional {
        let other = members(eval, other)?;
        change(value, |set| apply(set, &other));
    }
    Ok(Value::None)
}

fn isdisjoint(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let other = args.one("isdisjoint")?;
    first_member(eval, value, &other, true).map(|common| Value::Bool(!common))
}

/// Whether an item of `other` is a member (or, if `wanted` is false, is not); stops at the first one.
fn first_member(eval: &mut Eval<'_>, value: &Value, other: &Value, wanted: bool) -> Result<bool, Error> {
    let mine = members(eval, value)?;
    let mut iter = Iter::over(other)?;
    while let Some(item) = eval.next(&mut iter)? {
        eval.fuel.spend(1)?;
        if mine.contains(&ops::key(&item, &mut eval.fuel)?) == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

fn change<T>(value: &Value, edit: impl FnOnce(&mut KeySet) -> T) -> Option<T> {
    match value {
        Value::Set(set) => Some(set.change(edit)),
        _ => None,
    }
}

fn length(value: &Value) -> usize {
    match value {
        Value::Set(set) => set.len(),
        _ => 0,
    }
}
