//! The closed table of functions, types and methods a program can reach. A name that is not in a table here
//! does not exist: there is no way from data to anything else. The reference page is written from these
//! tables.

pub(crate) mod dict;
pub(crate) mod list;
pub(crate) mod number;
pub(crate) mod set;
pub(crate) mod text;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::types::Type;
use crate::value::{ObjectData, Value};

/// These tables hold only our own names, so an attacker cannot cause hash collisions.
type FastHash = foldhash::fast::FixedState;

type BuiltinFn = fn(&mut Eval<'_>, Args) -> Result<Value, Error>;
type MethodCall = fn(&mut Eval<'_>, &Value, Args) -> Result<Value, Error>;

/// A function every program can call.
pub struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    pub(crate) about: &'static str,
    pub(crate) call: BuiltinFn,
}

/// A method of a type.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    pub(crate) about: &'static str,
    /// Called on the type itself, as `dict.fromkeys`.
    pub(crate) of_type: bool,
    pub(crate) call: MethodCall,
}

/// A type that can be called to make or convert a value.
pub(crate) struct Constructor {
    pub(crate) kind: Type,
    pub(crate) usage: &'static str,
    pub(crate) about: &'static str,
    pub(crate) call: BuiltinFn,
}

/// Shortens the tables: name, usage, what it does, function.
pub(crate) const fn function(
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    call: BuiltinFn,
) -> Builtin {
    Builtin { name, usage, about, call }
}

pub(crate) const fn method(
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    call: MethodCall,
) -> Method {
    Method { name, usage, about, of_type: false, call }
}

pub(crate) const fn type_method(
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    call: MethodCall,
) -> Method {
    Method { name, usage, about, of_type: true, call }
}

pub(crate) const fn constructor(
    kind: Type,
    usage: &'static str,
    about: &'static str,
    call: BuiltinFn,
) -> Constructor {
    Constructor { kind, usage, about, call }
}

static FUNCTIONS: &[&[Builtin]] = &[number::FUNCTIONS, text::FUNCTIONS, list::FUNCTIONS, dict::FUNCTIONS];

static CONSTRUCTORS: &[&[Constructor]] =
    &[number::CONSTRUCTORS, text::CONSTRUCTORS, list::CONSTRUCTORS, set::CONSTRUCTORS, dict::CONSTRUCTORS];

static METHODS: &[(Type, &[Method])] = &[
    (Type::STR, text::METHODS),
    (Type::BYTES, text::BYTES_METHODS),
    (Type::INT, number::INT_METHODS),
    (Type::FLOAT, number::FLOAT_METHODS),
    (Type::COMPLEX, number::COMPLEX_METHODS),
    (Type::LIST, list::LIST_METHODS),
    (Type::TUPLE, list::TUPLE_METHODS),
    (Type::RANGE, list::TUPLE_METHODS),
    (Type::DICT, dict::METHODS),
    (Type::SET, set::METHODS),
    (Type::SET, set::CHANGING_METHODS),
    (Type::FROZENSET, set::METHODS),
    (Type::DICT_KEYS, set::VIEW_METHODS),
    (Type::DICT_ITEMS, set::VIEW_METHODS),
];

/// The value a name has when no variable hides it.
pub(crate) fn lookup(name: &str) -> Option<Value> {
    NAMES.get(name).cloned()
}

/// Every built-in name.
pub(crate) fn names<'a>() -> impl Iterator<Item = &'a str> {
    NAMES.keys().copied()
}

static NAMES: LazyLock<HashMap<&'static str, Value, FastHash>> = LazyLock::new(|| {
    let functions =
        FUNCTIONS.iter().copied().flatten().map(|builtin| (builtin.name, Value::Builtin(builtin)));
    let types = CONSTRUCTORS.iter().copied().flatten().map(|made| (made.kind.name(), Value::Type(made.kind)));
    let exceptions = Type::exceptions().map(|(name, class)| (name, Value::Type(class)));
    functions.chain(types).chain(exceptions).chain([("Ellipsis", Value::Ellipsis)]).collect()
});

/// Methods by type and row; a row is the number of a method name.
struct MethodTable {
    rows: HashMap<&'static str, u16, FastHash>,
    cells: Vec<Option<&'static Method>>,
}

static TABLE: LazyLock<MethodTable> = LazyLock::new(|| {
    let mut rows = HashMap::with_hasher(FastHash::default());
    for method in METHODS.iter().flat_map(|(_, methods)| methods.iter()) {
        let next = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        rows.entry(method.name).or_insert(next);
    }
    let mut cells = vec![None; rows.len() * Type::COUNT];
    let bool_methods = (Type::BOOL, number::INT_METHODS);
    for (kind, methods) in METHODS.iter().chain([&bool_methods]) {
        for method in *methods {
            let row = rows.get(method.name).copied().unwrap_or(0);
            if let Some(cell) = cells.get_mut(kind.index() * rows.len() + usize::from(row)) {
                *cell = Some(method);
            }
        }
    }
    MethodTable { rows, cells }
});

/// The row of a method name, if any type has such a method.
pub(crate) fn method_row(name: &str) -> Option<u16> {
    TABLE.rows.get(name).copied()
}

/// The method in a row, if the type has it.
#[inline]
pub(crate) fn method_of(kind: Type, row: u16) -> Option<&'static Method> {
    let table = &*TABLE;
    table.cells.get(kind.index() * table.rows.len() + usize::from(row)).copied().flatten()
}

/// Names of a type's methods.
pub(crate) fn method_names<'a>(kind: Type) -> impl Iterator<Item = &'a str> {
    METHODS.iter().filter(move |(of, _)| *of == kind).flat_map(|(_, methods)| methods.iter().map(|m| m.name))
}

/// Calls a type.
pub(crate) fn construct(eval: &mut Eval<'_>, kind: Type, args: Args) -> Result<Value, Error> {
    if kind.is_exception() {
        args.no_keywords(kind.name())?;
        eval.fuel.allocate(args.positional.len() * 16)?;
        let data = ObjectData::Exception(kind, args.positional.into_vec());
        return Ok(crate::value::Object::new(data));
    }
    match CONSTRUCTORS.iter().copied().flatten().find(|made| made.kind == kind) {
        Some(made) => (made.call)(eval, args),
        None => Err(Error::type_(format!("cannot create '{}' instances", kind.name()))),
    }
}

/// Attributes that are data rather than methods.
pub(crate) fn property(value: &Value, name: &str) -> Option<Value> {
    match (value, name) {
        (Value::Int(_) | Value::Big(_), "real" | "numerator") => Some(value.clone()),
        (Value::Bool(flag), "real" | "numerator") => Some(Value::Int(i64::from(*flag))),
        (Value::Int(_) | Value::Big(_) | Value::Bool(_), "imag") => Some(Value::Int(0)),
        (Value::Int(_) | Value::Big(_) | Value::Bool(_), "denominator") => Some(Value::Int(1)),
        (Value::Float(_), "real") => Some(value.clone()),
        (Value::Float(_), "imag") => Some(Value::Float(0.0)),
        (Value::Range(range), "start") => Some(Value::Int(range.start)),
        (Value::Range(range), "stop") => Some(Value::Int(range.stop)),
        (Value::Range(range), "step") => Some(Value::Int(range.step)),
        (Value::Object(object), _) => match (object.data(), name) {
            (ObjectData::Complex { re, .. }, "real") => Some(Value::Float(*re)),
            (ObjectData::Complex { im, .. }, "imag") => Some(Value::Float(*im)),
            (ObjectData::Slice([start, _, _]), "start") => Some(start.clone()),
            (ObjectData::Slice([_, stop, _]), "stop") => Some(stop.clone()),
            (ObjectData::Slice([_, _, step]), "step") => Some(step.clone()),
            (ObjectData::Exception(_, args), "args") => Some(Value::tuple(args.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// The tables of the reference page, as Markdown.
pub(crate) fn reference() -> String {
    let mut out = String::from("### Functions\n\n| call | gives |\n| --- | --- |\n");
    let mut rows: Vec<(&str, &str)> = FUNCTIONS
        .iter()
        .copied()
        .flatten()
        .map(|builtin| (builtin.usage, builtin.about))
        .chain(CONSTRUCTORS.iter().copied().flatten().map(|made| (made.usage, made.about)))
        .collect();
    rows.sort_unstable();
    for (usage, about) in rows {
        out.push_str(&format!("| `{}` | {about} |\n", usage.replace('|', "\\|")));
    }
    let mut seen: Vec<Type> = Vec::new();
    for (kind, _) in METHODS {
        if seen.contains(kind) {
            continue;
        }
        seen.push(*kind);
        out.push_str(&format!("\n### Methods of {}\n\n| call | gives |\n| --- | --- |\n", kind.name()));
        let mut rows: Vec<&Method> =
            METHODS.iter().filter(|(of, _)| of == kind).flat_map(|(_, methods)| methods.iter()).collect();
        rows.sort_by_key(|method| method.name);
        for method in rows {
            out.push_str(&format!("| `{}` | {} |\n", method.usage.replace('|', "\\|"), method.about));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_documented_and_usage_starts_with_its_name() {
        for builtin in FUNCTIONS.iter().copied().flatten() {
            assert!(builtin.usage.starts_with(builtin.name), "{}", builtin.name);
            assert!(builtin.about.ends_with('.'), "{}", builtin.name);
        }
        for (_, methods) in METHODS {
            for method in *methods {
                assert!(method.usage.contains(method.name), "{}", method.name);
                assert!(method.about.ends_with('.'), "{}", method.name);
            }
        }
    }

    #[test]
    fn nothing_that_reaches_outside_exists() {
        for name in
            ["eval", "exec", "open", "compile", "getattr", "globals", "vars", "dir", "input", "object"]
        {
            assert!(lookup(name).is_none(), "{name}");
        }
    }
}
