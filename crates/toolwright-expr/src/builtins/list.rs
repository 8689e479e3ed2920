//! Functions over anything that can be iterated, and methods of lists, tuples and ranges.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Builtin, Constructor, Method, constructor, function, method};
use crate::ast::{BinaryOp, CompareOp};
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::iter::Iter;
use crate::ops;
use crate::ops::sequence::ITEM;
use crate::types::Type;
use crate::value::{Object, ObjectData, Range, Value};

pub(crate) static FUNCTIONS: &[Builtin] = &[
    function("len", "len(x)", "How many items or characters there are.", |_, args| {
        Ok(Value::from(ops::length(&args.one("len")?)?))
    }),
    function("sorted", "sorted(items, key=None, reverse=False)", "A sorted list.", sorted),
    function(
        "min",
        "min(items, key=None, default=...)",
        "The smallest item, or the smallest argument.",
        |e, a| extreme(e, a, "min", CompareOp::Lt),
    ),
    function(
        "max",
        "max(items, key=None, default=...)",
        "The largest item, or the largest argument.",
        |e, a| extreme(e, a, "max", CompareOp::Gt),
    ),
    function("sum", "sum(items, start=0)", "All items added up.", sum),
    function("any", "any(items)", "Whether at least one item counts as true.", |e, a| {
        quantify(e, a, "any", true)
    }),
    function("all", "all(items)", "Whether every item counts as true.", |e, a| quantify(e, a, "all", false)),
    function(
        "isinstance",
        "isinstance(x, type)",
        "Whether the value is of the type (or one of a tuple).",
        isinstance,
    ),
    function("issubclass", "issubclass(a, b)", "Whether one type is derived from another.", issubclass),
    function("callable", "callable(x)", "Whether the value can be called.", |_, args| {
        Ok(Value::Bool(args.one("callable")?.is_callable()))
    }),
    function(
        "setattr",
        "setattr(x, name, value)",
        "Always an error: data has no attributes to set.",
        |_, args| {
            args.bind("setattr", ["/x", "/name", "/value"], 3)?;
            Err(Error::type_("attribute-less object (assign or del)"))
        },
    ),
];

pub(crate) static CONSTRUCTORS: &[Constructor] = &[
    constructor(Type::LIST, "list(items=())", "A new list.", |eval, args| {
        let [items] = args.bind("list", ["/items"], 0)?;
        Ok(Value::list(items.map_or(Ok(Vec::new()), |items| eval.collect_value(&items))?))
    }),
    constructor(Type::TUPLE, "tuple(items=())", "A tuple.", |eval, args| {
        let [items] = args.bind("tuple", ["/items"], 0)?;
        match items {
            Some(tuple @ Value::Tuple(_)) => Ok(tuple),
            Some(items) => Ok(Value::tuple(eval.collect_value(&items)?)),
            None => Ok(Value::tuple(Vec::new())),
        }
    }),
    constructor(Type::RANGE, "range(start=0, stop, step=1)", "The integers from start up to stop.", range),
    constructor(Type::SLICE, "slice(start=None, stop, step=None)", "A slice to index with.", slice),
    constructor(Type::ZIP, "zip(*iterables, strict=False)", "Tuples of the first, second, ... items.", zip),
    constructor(Type::ENUMERATE, "enumerate(items, start=0)", "Tuples of number and item.", enumerate),
    constructor(Type::MAP, "map(function, *iterables)", "The function applied to each item.", map),
    constructor(Type::FILTER, "filter(function, items)", "The items for which the function is true.", filter),
    constructor(Type::REVERSED, "reversed(items)", "The items from last to first.", reversed),
    constructor(Type::TYPE, "type(x)", "The type of a value.", |_, args| {
        Ok(Value::Type(Type::of(&args.one("type")?)))
    }),
];

pub(crate) static LIST_METHODS: &[Method] = &[
    method("append", "l.append(x)", "Adds an item at the end.", append),
    method("extend", "l.extend(items)", "Adds all items at the end.", extend),
    method("insert", "l.insert(i, x)", "Adds an item before position `i`.", insert),
    method("pop", "l.pop(i=-1)", "Takes an item out and gives it.", pop),
    method("remove", "l.remove(x)", "Takes the first equal item out.", remove),
    method("clear", "l.clear()", "Takes everything out.", |_, list, args| {
        args.none("clear")?;
        if let Value::List(list) = list {
            list.change(Vec::clear);
        }
        Ok(Value::None)
    }),
    method("copy", "l.copy()", "A new list of the same items.", |eval, list, args| {
        args.none("copy")?;
        Ok(Value::list(eval.collect_value(list)?))
    }),
    method("reverse", "l.reverse()", "Turns the list around in place.", |eval, list, args| {
        args.none("reverse")?;
        if let Value::List(list) = list {
            eval.fuel.spend(list.len() as u64 / 4)?;
            list.change(|items| items.reverse());
        }
        Ok(Value::None)
    }),
    method("sort", "l.sort(key=None, reverse=False)", "Sorts in place.", sort),
    method("index", "l.index(x, start=0, end=None)", "Where the first equal item is.", index),
    method("count", "l.count(x)", "How many items are equal.", count),
];

pub(crate) static TUPLE_METHODS: &[Method] = &[
    method("index", "t.index(x, start=0, end=None)", "Where the first equal item is.", index),
    method("count", "t.count(x)", "How many items are equal.", count),
];

fn sorted(eval: &mut Eval<'_>, mut args: Args) -> Result<Value, Error> {
    if args.positional.len() != 1 {
        return Err(Error::type_(format!("sorted expected 1 argument, got {}", args.positional.len())));
    }
    let items = args.positional.pop().unwrap_or(Value::None);
    let [key, reverse] = args.bind("sort", ["key", "reverse"], 0)?;
    let items = eval.collect_value(&items)?;
    sort_items(eval, items, key, reverse).map(Value::list)
}

fn sort(eval: &mut Eval<'_>, list: &Value, args: Args) -> Result<Value, Error> {
    if !args.positional.is_empty() {
        return Err(Error::type_("sort() takes no positional arguments"));
    }
    let [key, reverse] = args.bind("sort", ["key", "reverse"], 0)?;
    let items = eval.collect_value(list)?;
    let sorted = sort_items(eval, items, key, reverse)?;
    if let Value::List(list) = list {
        list.change(|items| *items = sorted);
    }
    Ok(Value::None)
}

/// A stable sort whose comparisons may fail and are paid for.
fn sort_items(
    eval: &mut Eval<'_>,
    items: Vec<Value>,
    key: Option<Value>,
    reverse: Option<Value>,
) -> Result<Vec<Value>, Error> {
    let reverse = reverse.is_some_and(|flag| ops::truth(&flag));
    let key = key.filter(|key| !matches!(key, Value::None));
    eval.fuel.allocate_many(items.len(), 2 * ITEM)?;
    let mut pairs: Vec<(Value, Value)> = Vec::with_capacity(items.len());
    for item in items {
        let rank = match &key {
            Some(key) => eval.call_with(key, std::slice::from_ref(&item))?,
            None => item.clone(),
        };
        pairs.push((rank, item));
    }
    let mut failure = None;
    if reverse {
        // Reversed twice, equal items keep their order.
        pairs.reverse();
    }
    pairs.sort_by(|(a, _), (b, _)| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        match rank(eval, a, b) {
            Ok(order) => order,
            Err(error) => {
                failure = Some(error);
                Ordering::Equal
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    if reverse {
        pairs.reverse();
    }
    Ok(pairs.into_iter().map(|(_, item)| item).collect())
}

/// The order of two items from `<` alone, which is all Python asks of them.
fn rank(eval: &mut Eval<'_>, a: &Value, b: &Value) -> Result<Ordering, Error> {
    eval.fuel.spend(2)?;
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => return Ok(a.cmp(b)),
        (Value::Str(a), Value::Str(b)) => return Ok((**a).cmp(&**b)),
        _ => {}
    }
    if ops::order(CompareOp::Lt, a, b, &mut eval.fuel)? {
        return Ok(Ordering::Less);
    }
    Ok(if ops::order(CompareOp::Lt, b, a, &mut eval.fuel)? { Ordering::Greater } else { Ordering::Equal })
}

fn extreme(eval: &mut Eval<'_>, args: Args, name: &str, op: CompareOp) -> Result<Value, Error> {
    let several = args.positional.len() > 1;
    let positional = args.positional;
    let [key, default] = Args { named: args.named, ..Args::default() }.bind(name, ["key", "default"], 0)?;
    let key = key.filter(|key| !matches!(key, Value::None));
    let mut iter = if several {
        if default.is_some() {
            return Err(Error::type_(format!(
                "Cannot specify a default for {name}() with multiple positional arguments"
            )));
        }
        Iter::Values(positional.into_vec().into_iter())
    } else {
        match positional.first() {
            Some(items) => Iter::over(items)?,
            None => return Err(Error::type_(format!("{name} expected at least 1 argument, got 0"))),
        }
    };
    let mut best: Option<(Value, Value)> = None;
    while let Some(item) = eval.next(&mut iter)? {
        eval.fuel.spend(1)?;
        let rank = match &key {
            Some(key) => eval.call_with(key, std::slice::from_ref(&item))?,
            None => item.clone(),
        };
        let better = match &best {
            Some((known, _)) => ops::order(op, &rank, known, &mut eval.fuel)?,
            None => true,
        };
        if better {
            best = Some((rank, item));
        }
    }
    match (best, default) {
        (Some((_, item)), _) => Ok(item),
        (None, Some(default)) => Ok(default),
        (None, None) => Err(Error::value(format!("{name}() iterable argument is empty"))
            .with_hint(format!("give {name}() a default=..."))),
    }
}

fn sum(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [items, start] = args.bind("sum", ["/iterable", "start"], 1)?;
    let mut total = start.unwrap_or(Value::Int(0));
    match &total {
        Value::Str(_) => return Err(Error::type_("sum() can't sum strings [use ''.join(seq) instead]")),
        Value::Bytes(_) => return Err(Error::type_("sum() can't sum bytes [use b''.join(seq) instead]")),
        _ => {}
    }
    let mut iter = Iter::over(&items.unwrap_or(Value::None))?;
    let mut floats: Option<Compensated> = None;
    while let Some(item) = eval.next(&mut iter)? {
        eval.fuel.spend(1)?;
        // Since 3.12 Python adds floats with a correction for the digits lost on the way.
        match (&mut floats, &total, &item) {
            (Some(sum), _, Value::Float(x)) => sum.add(*x),
            (Some(sum), _, Value::Int(n)) => sum.add_plain(*n as f64),
            (Some(sum), _, Value::Bool(flag)) => sum.add_plain(f64::from(u8::from(*flag))),
            (Some(sum), _, _) => {
                total = Value::Float(sum.total());
                floats = None;
                total = ops::binary(BinaryOp::Add, &total, &item, &mut eval.fuel)?;
            }
            (None, Value::Float(start), Value::Float(x)) => {
                let mut sum = Compensated { high: *start, low: 0.0 };
                sum.add(*x);
                floats = Some(sum);
            }
            (None, Value::Float(start), Value::Int(n)) => {
                floats = Some(Compensated { high: *start + *n as f64, low: 0.0 });
            }
            _ => total = ops::binary(BinaryOp::Add, &total, &item, &mut eval.fuel)?,
        }
    }
    Ok(floats.map_or(total, |sum| Value::Float(sum.total())))
}

/// A float sum that remembers its rounding errors.
struct Compensated {
    high: f64,
    low: f64,
}

impl Compensated {
    fn add(&mut self, x: f64) {
        let sum = self.high + x;
        self.low += if self.high.abs() >= x.abs() { (self.high - sum) + x } else { (x - sum) + self.high };
        self.high = sum;
    }

    fn add_plain(&mut self, x: f64) {
        self.high += x;
    }

    fn total(&self) -> f64 {
        if self.low != 0.0 && self.low.is_finite() { self.high + self.low } else { self.high }
    }
}

fn quantify(eval: &mut Eval<'_>, args: Args, name: &str, stop: bool) -> Result<Value, Error> {
    let mut iter = Iter::over(&args.one(name)?)?;
    while let Some(item) = eval.next(&mut iter)? {
        eval.fuel.spend(1)?;
        if ops::truth(&item) == stop {
            return Ok(Value::Bool(stop));
        }
    }
    Ok(Value::Bool(!stop))
}

fn isinstance(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [value, class] = args.bind("isinstance", ["/object", "/class"], 2)?;
    let kind = Type::of(&value.unwrap_or(Value::None));
    derives(
        eval,
        kind,
        &class.unwrap_or(Value::None),
        "isinstance() arg 2 must be a type, a tuple of types, or a union",
    )
}

fn issubclass(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [kind, class] = args.bind("issubclass", ["/class", "/parent"], 2)?;
    let Some(Value::Type(kind)) = kind else {
        return Err(Error::type_("issubclass() arg 1 must be a class"));
    };
    derives(
        eval,
        kind,
        &class.unwrap_or(Value::None),
        "issubclass() arg 2 must be a class, a tuple of classes, or a union",
    )
}

fn derives(eval: &mut Eval<'_>, kind: Type, class: &Value, message: &'static str) -> Result<Value, Error> {
    match class {
        Value::Type(class) => Ok(Value::Bool(kind.derives_from(*class))),
        // `struct` is a function here, but people ask for it as a type.
        Value::Builtin(builtin) if builtin.name == "struct" => Ok(Value::Bool(kind == Type::STRUCT)),
        Value::Tuple(classes) => {
            eval.fuel.enter()?;
            for class in classes.iter() {
                eval.fuel.spend(1)?;
                if matches!(derives(eval, kind, class, message)?, Value::Bool(true)) {
                    eval.fuel.leave();
                    return Ok(Value::Bool(true));
                }
            }
            eval.fuel.leave();
            Ok(Value::Bool(false))
        }
        _ => Err(Error::type_(message)),
    }
}

fn range(_: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    args.no_keywords("range")?;
    let [first, second, step] = args.bind("range", ["/", "/", "/"], 1)?;
    let part = |value: &Value| match value {
        Value::Big(_) => Err(Error::overflow("range() takes integers of up to 64 bits")),
        other => ops::index(other),
    };
    let first = part(&first.unwrap_or(Value::None))?;
    let (start, stop) = match second {
        Some(stop) => (first, part(&stop)?),
        None => (0, first),
    };
    let step = step.map_or(Ok(1), |step| part(&step))?;
    if step == 0 {
        return Err(Error::value("range() arg 3 must not be zero"));
    }
    Ok(Value::Range(Arc::new(Range { start, stop, step })))
}

fn slice(_: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [first, second, step] = args.bind("slice", ["/", "/", "/"], 1)?;
    let first = first.unwrap_or(Value::None);
    let parts = match second {
        None => [Value::None, first, Value::None],
        Some(stop) => [first, stop, step.unwrap_or(Value::None)],
    };
    Ok(Object::new(ObjectData::Slice(parts)))
}

fn zip(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let positional = args.positional;
    let [strict] = Args { named: args.named, ..Args::default() }.bind("zip", ["strict"], 0)?;
    let strict = strict.is_some_and(|strict| ops::truth(&strict));
    let parts = positional.iter().map(Iter::over).collect::<Result<Vec<_>, _>>()?;
    eval.lazy_value(Iter::Zip(parts, strict), Type::ZIP)
}

fn enumerate(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [items, start] = args.bind("enumerate", ["iterable", "start"], 1)?;
    let start = start.unwrap_or(Value::Int(0));
    if !ops::is_instance(&start, Type::INT) {
        return Err(Error::type_(format!(
            "'{}' object cannot be interpreted as an integer",
            start.type_name()
        )));
    }
    let inner = Iter::over(&items.unwrap_or(Value::None))?;
    eval.lazy_value(Iter::Enumerate(Box::new(inner), start), Type::ENUMERATE)
}

fn map(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    args.no_keywords("map")?;
    let mut values = args.positional.into_iter();
    let Some(function) = values.next() else {
        return Err(Error::type_("map() must have at least two arguments."));
    };
    let parts = values.map(|value| Iter::over(&value)).collect::<Result<Vec<_>, _>>()?;
    if parts.is_empty() {
        return Err(Error::type_("map() must have at least two arguments."));
    }
    eval.lazy_value(Iter::Map(function, parts), Type::MAP)
}

fn filter(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [function, items] = args.bind("filter", ["/function", "/items"], 2)?;
    let inner = Iter::over(&items.unwrap_or(Value::None))?;
    eval.lazy_value(Iter::Filter(function.unwrap_or(Value::None), Box::new(inner)), Type::FILTER)
}

fn reversed(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let value = args.one("reversed")?;
    let iter = match &value {
        Value::List(list) => Iter::ListReversed(list.clone(), list.len()),
        Value::Str(_) | Value::Tuple(_) | Value::Bytes(_) | Value::Range(_) | Value::Dict(_) => {
            let mut items = eval.collect_value(&value)?;
            items.reverse();
            Iter::Values(items.into_iter())
        }
        Value::Object(object) if matches!(object.data(), ObjectData::View(..)) => {
            let mut items = eval.collect_value(&value)?;
            items.reverse();
            Iter::Values(items.into_iter())
        }
        _ => return Err(Error::type_(format!("'{}' object is not reversible", value.type_name()))),
    };
    eval.lazy_value(iter, Type::REVERSED)
}

fn append(eval: &mut Eval<'_>, list: &Value, args: Args) -> Result<Value, Error> {
    let item = args.one("list.append")?;
    eval.guard_cycle(list, &item)?;
    eval.fuel.allocate(ITEM)?;
    if let Value::List(list) = list {
        list.push(item);
    }
    Ok(Value::None)
}

fn extend(eval: &mut Eval<'_>, list: &Value, args: Args) -> Result<Value, Error> {
    let source = args.one("list.extend")?;
    let items = eval.collect_value(&source)?;
    for item in &items {
        eval.guard_cycle(list, item)?;
    }
    if let Value::List(list) = list {
        list.change(|all| all.extend(items));
    }
    Ok(Value::None)
}

fn insert(eval: &mut Eval<'_>, list: &Value, args: Args) -> Result<Value, Error> {
    let [at, item] = args.bind("insert", ["/index", "/object"], 2)?;
    let at = ops::index(&at.unwrap_or(Value::None))?;
    let item = item.unwrap_or(Value::None);
    eval.guard_cycle(list, &item)?;
    eval.fuel.allocate(ITEM)?;
    if let Value::List(list) = list {
        let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
        eval.fuel.spend(length as u64 >> 5)?;
        let at = if at < 0 { at.saturating_add(length).max(0) } else { at.min(length) };
        list.change(|items| items.insert(usize::try_from(at).unwrap_or(0).min(items.len()), item));
    }
    Ok(Value::None)
}

fn pop(eval: &mut Eval<'_>, list: &Value, args: Args) -> Result<Value, Error> {
    let [at] = args.bind("pop", ["/index"], 0)?;
    let at = at.map_or(Ok(-1), |at| ops::index(&at))?;
    let Value::List(list) = list else { return Ok(Value::None) };
    if list.is_empty() {
        return Err(Error::index("pop from empty list"));
    }
    if at != -1 {
        eval.fuel.spend(list.len() as u64 >> 5)?;
    }
    let taken = list.change(|items| ops::sequence::position(at, items.len()).map(|at| items.remove(at)));
    taken.ok_or_else(|| Error::index("pop index out of range"))
}

fn remove(eval: &mut Eval<'_>, list: &Value, args: Args) -> Result<Value, Error> {
    let item = args.one("list.remove")?;
    let Value::List(list) = list else { return Ok(Value::None) };
    let items = list.snapshot();
    for (at, candidate) in items.iter().enumerate() {
        eval.fuel.spend(1)?;
        if candidate.is(&item) || ops::equal(candidate, &item, &mut eval.fuel)? {
            drop(items);
            list.change(|items| {
                if at < items.len() {
                    items.remove(at);
                }
            });
            return Ok(Value::None);
        }
    }
    Err(Error::value("list.remove(x): x not in list"))
}

fn index(eval: &mut Eval<'_>, sequence: &Value, args: Args) -> Result<Value, Error> {
    let [item, start, end] = args.bind("index", ["/value", "/start", "/stop"], 1)?;
    let item = item.unwrap_or(Value::None);
    if matches!(start, Some(Value::None)) || matches!(end, Some(Value::None)) {
        return Err(Error::type_("slice indices must be integers or have an __index__ method"));
    }
    let parts = [start.unwrap_or(Value::None), end.unwrap_or(Value::None), Value::None];
    let length = ops::length(sequence)?;
    let bounds = ops::sequence::bounds(&parts, length)?;
    for (at, _) in (bounds.start..).zip(0..bounds.count) {
        eval.fuel.spend(1)?;
        let candidate = ops::sequence::subscript(sequence, &Value::Int(at), &mut eval.fuel)?;
        if candidate.is(&item) || ops::equal(&candidate, &item, &mut eval.fuel)? {
            return Ok(Value::Int(at));
        }
    }
    Err(match sequence {
        Value::List(_) => {
            Error::value(format!("{} is not in list", crate::repr::repr(&item, &mut eval.fuel)?))
        }
        _ => Error::value("tuple.index(x): x not in tuple"),
    })
}

fn count(eval: &mut Eval<'_>, sequence: &Value, args: Args) -> Result<Value, Error> {
    let item = args.one("count")?;
    let mut iter = Iter::over(sequence)?;
    let mut found = 0;
    while let Some(candidate) = eval.next(&mut iter)? {
        eval.fuel.spend(1)?;
        if candidate.is(&item) || ops::equal(&candidate, &item, &mut eval.fuel)? {
            found += 1;
        }
    }
    Ok(Value::Int(found))
}
