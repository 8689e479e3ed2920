//! Dicts and structs, `get`, and the functions that read and write JSON and YAML.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{Builtin, Constructor, Method, constructor, function, method, type_method};
use crate::error::Error;
use crate::eval::{Args, Eval, view};
use crate::iter::Iter;
use crate::ops::{self, DICT_ENTRY};
use crate::types::Type;
use crate::value::{Dict, DictMap, Key, Object, ObjectData, Value, ViewKind};

pub(crate) static FUNCTIONS: &[Builtin] = &[
    function(
        "get",
        "get(container, key, default=None)",
        "The item at a key or position, else the default.",
        get,
    ),
    function("struct", "struct(**fields)", "A record with the given fields, read as `s.name`.", new_struct),
    function("parse_json", "parse_json(text, ignore_error=False)", "The value of a JSON text.", parse_json),
    function("print_json", "print_json(value, pretty=False)", "The value as JSON text.", print_json),
    function("as_yaml", "as_yaml(value, trim=True)", "The value as YAML, made when it is shown.", as_yaml),
    function("log", "log(message, *args)", "Writes to the flow's log; gives None.", log),
];

pub(crate) static CONSTRUCTORS: &[Constructor] =
    &[constructor(Type::DICT, "dict(entries=(), **named)", "A new dict.", new)];

pub(crate) static METHODS: &[Method] = &[
    method("get", "d.get(key, default=None)", "The value of a key, else the default.", |e, d, a| {
        let [key, default] = a.bind("get", ["/key", "/default"], 1)?;
        let found = find(e, d, &key.unwrap_or(Value::None))?;
        Ok(found.or(default).unwrap_or(Value::None))
    }),
    method("keys", "d.keys()", "A view of the keys.", |_, d, a| shown(d, a, "keys", ViewKind::Keys)),
    method("values", "d.values()", "A view of the values.", |_, d, a| {
        shown(d, a, "values", ViewKind::Values)
    }),
    method("items", "d.items()", "A view of keys and values, as tuples.", |_, d, a| {
        shown(d, a, "items", ViewKind::Items)
    }),
    method("pop", "d.pop(key, default=...)", "Takes an entry out and gives its value.", pop),
    method("popitem", "d.popitem()", "Takes the last entry out and gives it as a tuple.", |_, d, a| {
        a.none("popitem")?;
        match dict(d).and_then(|dict| dict.change(DictMap::pop)) {
            Some((key, value)) => Ok(Value::tuple(vec![key.value, value])),
            None => Err(Error::new(crate::ErrorKind::Key, "'popitem(): dictionary is empty'")),
        }
    }),
    method(
        "setdefault",
        "d.setdefault(key, default=None)",
        "The value of a key, put there first if missing.",
        setdefault,
    ),
    method("update", "d.update(entries=(), **named)", "Puts all entries in.", |e, d, a| {
        let entries = entries(e, a, "update")?;
        for value in entries.values() {
            e.guard_cycle(d, value)?;
        }
        if let Some(dict) = dict(d) {
            dict.change(|map| map.extend(entries));
        }
        Ok(Value::None)
    }),
    method("copy", "d.copy()", "A new dict of the same entries.", |e, d, a| {
        a.none("copy")?;
        let Some(dict) = dict(d) else { return Ok(Value::None) };
        let map = dict.snapshot();
        e.fuel.allocate_many(map.len(), DICT_ENTRY)?;
        Ok(Value::Dict(Dict::new((*map).clone())))
    }),
    method("clear", "d.clear()", "Takes everything out.", |_, d, a| {
        a.none("clear")?;
        if let Some(dict) = dict(d) {
            dict.change(DictMap::clear);
        }
        Ok(Value::None)
    }),
    type_method(
        "fromkeys",
        "dict.fromkeys(keys, value=None)",
        "A dict with the same value for each key.",
        |e, _, a| {
            let [keys, value] = a.bind("fromkeys", ["/iterable", "/value"], 1)?;
            let value = value.unwrap_or(Value::None);
            let keys = e.collect_value(&keys.unwrap_or(Value::None))?;
            e.fuel.allocate_many(keys.len(), DICT_ENTRY)?;
            let mut map = DictMap::default();
            for key in keys {
                map.insert(ops::key(&key, &mut e.fuel)?, value.clone());
            }
            Ok(Value::Dict(Dict::new(map)))
        },
    ),
];

fn dict(value: &Value) -> Option<&Dict> {
    match value {
        Value::Dict(dict) => Some(dict),
        _ => None,
    }
}

fn find(eval: &mut Eval<'_>, value: &Value, key: &Value) -> Result<Option<Value>, Error> {
    let Some(dict) = dict(value) else { return Ok(None) };
    match key {
        Value::Str(text) => Ok(dict.get(text)),
        other => Ok(dict.find(&ops::key(other, &mut eval.fuel)?)),
    }
}

fn shown(value: &Value, args: Args, name: &str, kind: ViewKind) -> Result<Value, Error> {
    args.none(name)?;
    Ok(dict(value).map_or(Value::None, |dict| view(kind, dict)))
}

fn pop(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [key, default] = args.bind("pop", ["/key", "/default"], 1)?;
    let key = key.unwrap_or(Value::None);
    let wanted = ops::key(&key, &mut eval.fuel)?;
    let Some(dict) = dict(value) else { return Ok(Value::None) };
    eval.fuel.spend(dict.len() as u64 >> 4)?;
    match (dict.change(|map| map.shift_remove(&wanted)), default) {
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default),
        (None, None) => Err(ops::sequence::key_error(&key, &mut eval.fuel)),
    }
}

fn setdefault(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [key, default] = args.bind("setdefault", ["/key", "/default"], 1)?;
    let key = ops::key(&key.unwrap_or(Value::None), &mut eval.fuel)?;
    let default = default.unwrap_or(Value::None);
    eval.guard_cycle(value, &default)?;
    eval.fuel.allocate(DICT_ENTRY)?;
    let Some(dict) = dict(value) else { return Ok(Value::None) };
    Ok(dict.change(|map| map.entry(key).or_insert(default).clone()))
}

fn new(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    Ok(Value::Dict(Dict::new(entries(eval, args, "dict")?)))
}

/// Entries from a dict, an iterable of pairs, and named arguments.
fn entries(eval: &mut Eval<'_>, args: Args, name: &str) -> Result<DictMap, Error> {
    if args.positional.len() > 1 {
        return Err(Error::type_(format!(
            "{name} expected at most 1 argument, got {}",
            args.positional.len()
        )));
    }
    let mut map = DictMap::default();
    match args.positional.first() {
        None => {}
        Some(Value::Dict(dict)) => {
            let other = dict.snapshot();
            eval.fuel.allocate_many(other.len(), DICT_ENTRY)?;
            map = (*other).clone();
        }
        Some(other) => {
            let mut iter = Iter::over(other)?;
            let mut number = 0usize;
            while let Some(item) = eval.next(&mut iter)? {
                let pair = Iter::over(&item).map_err(|_| {
                    Error::type_(format!(
                        "cannot convert dictionary update sequence element #{number} to a sequence"
                    ))
                })?;
                let mut pair = eval.collect(pair)?;
                match (pair.pop(), pair.pop(), pair.len()) {
                    (Some(value), Some(key), 0) => {
                        eval.fuel.allocate(DICT_ENTRY)?;
                        map.insert(ops::key(&key, &mut eval.fuel)?, value);
                    }
                    (value, key, more) => {
                        let length = usize::from(value.is_some()) + usize::from(key.is_some()) + more;
                        return Err(Error::value(format!(
                            "dictionary update sequence element #{number} has length {length}; 2 is required"
                        )));
                    }
                }
                number += 1;
            }
        }
    }
    for (key, value) in args.named {
        eval.fuel.allocate(DICT_ENTRY)?;
        map.insert(Key::text(&*key), value);
    }
    Ok(map)
}

/// An item of a dict, list or anything else that has items; never an error for a missing one.
fn get(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [container, key, default] = args.bind("get", ["container", "key", "default"], 2)?;
    let (container, key) = (container.unwrap_or(Value::None), key.unwrap_or(Value::None));
    let default = default.unwrap_or(Value::None);
    match &container {
        Value::Dict(_) => Ok(find(eval, &container, &key)?.unwrap_or(default)),
        Value::List(_) | Value::Tuple(_) | Value::Str(_) | Value::Bytes(_) | Value::Range(_) => {
            match ops::sequence::subscript(&container, &key, &mut eval.fuel) {
                Err(error) if error.kind() == crate::ErrorKind::Index => Ok(default),
                other => other,
            }
        }
        Value::None => Ok(default),
        Value::Object(object) => match (object.data(), &key) {
            (ObjectData::Struct(fields), Value::Str(name)) => {
                Ok(fields.get(name.as_str()).cloned().unwrap_or(default))
            }
            _ => Err(Error::type_(format!("get() cannot look into '{}'", container.type_name()))),
        },
        _ => Err(Error::type_(format!("get() cannot look into '{}'", container.type_name()))),
    }
}

fn new_struct(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    if !args.positional.is_empty() {
        return Err(Error::type_("struct() takes named arguments only"));
    }
    eval.fuel.allocate_many(args.named.len(), DICT_ENTRY)?;
    let fields: IndexMap<Arc<str>, Value> = args.named.into_iter().collect();
    Ok(Object::new(ObjectData::Struct(fields)))
}

fn parse_json(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [text, ignore] = args.bind("parse_json", ["arg", "ignore_error"], 1)?;
    let ignore = ignore.is_some_and(|ignore| ops::truth(&ignore));
    let value = text.unwrap_or(Value::None);
    let text = match &value {
        Value::Str(text) => text.as_str().to_owned(),
        Value::Bytes(bytes) => std::str::from_utf8(bytes)
            .map_err(|error| Error::value(error.to_string()).with_class("UnicodeDecodeError"))?
            .to_owned(),
        other => {
            return Err(Error::type_(format!(
                "the JSON object must be str, bytes or bytearray, not {}",
                other.type_name()
            )));
        }
    };
    match crate::json::parse(&text, &mut eval.fuel) {
        Err(error) if error.kind() == crate::ErrorKind::Value && ignore => Ok(value),
        Err(error) if error.kind() == crate::ErrorKind::Value => {
            let reason = error.message().to_owned();
            let head: String = text.lines().next().unwrap_or_default().chars().take(80).collect();
            Err(Error::value(format!("Failed to parse JSON from: {head}")).with_hint(reason))
        }
        other => other,
    }
}

fn print_json(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [value, pretty] = args.bind("print_json", ["arg", "pretty"], 1)?;
    let pretty = pretty.is_some_and(|pretty| ops::truth(&pretty));
    crate::json::print(&value.unwrap_or(Value::None), pretty, &mut eval.fuel).map(Value::str)
}

fn as_yaml(_: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [value, trim] = args.bind("as_yaml", ["arg", "trim"], 1)?;
    let trim = match trim {
        None | Some(Value::Bool(true)) => Some(1),
        Some(Value::Bool(false)) => None,
        Some(lines) => Some(ops::index(&lines)?),
    };
    Ok(Object::new(ObjectData::Yaml(value.unwrap_or(Value::None), trim)))
}

/// `log('%s items', n)`: the arguments fill the message as `%` would.
fn log(eval: &mut Eval<'_>, mut args: Args) -> Result<Value, Error> {
    if args.positional.is_empty() && matches!(args.named.as_slice(), [(name, _)] if &**name == "msg") {
        args.positional.extend(args.named.pop().map(|(_, message)| message));
    }
    args.no_keywords("log")?;
    let Some((message, rest)) = args.positional.split_first() else {
        return Err(Error::type_("log() missing 1 required positional argument: 'msg'"));
    };
    let mut text = crate::repr::text(message, &mut eval.fuel)?;
    if !rest.is_empty() {
        // A message that does not fit its arguments is logged as it is; logging never fails a flow.
        match crate::format::percent(&text, &Value::tuple(rest.to_vec()), &mut eval.fuel) {
            Ok(filled) => text = filled,
            Err(error) if error.limit().is_some() => return Err(error),
            Err(_) => {}
        }
    }
    eval.scope().log(&text);
    Ok(Value::None)
}
