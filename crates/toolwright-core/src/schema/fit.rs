//! Schema-guided reading of values that plainly mean the right thing.
//!
//! Only readings that lose nothing are made: text that is a number where a number is wanted, JSON text where a list or
//! an object is wanted, a number where text is wanted, null for an optional that does not take null, an item twice in a
//! set. The caller checks the result against the schema again, so a wrong guess here can only fail, never pass.

use std::cell::Cell;

use serde_json::{Map, Number, Value};

/// How often references and alternatives are followed before a value is left as it is.
const MAX_HOPS: u8 = 16;

/// How many places of schemas are looked at for one value. A schema that leads to itself in many ways has no end.
const MAX_STEPS: u32 = 50_000;

/// Fits a value to a schema as far as it can be done safely.
pub(super) fn fit(value: &mut Value, schema: &Value) {
    Fitter::new(schema, false).fit(value, schema, 0);
}

/// Turns 5.0 into 5 wherever the schema wants an integer.
pub(super) fn integers(value: &mut Value, schema: &Value) {
    Fitter::new(schema, true).fit(value, schema, 0);
}

/// True when some number in the value was written as a fraction.
pub(super) fn has_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_float),
        Value::Object(map) => map.values().any(has_float),
        _ => false,
    }
}

struct Fitter<'a> {
    root: &'a Value,
    only_integers: bool,
    steps: Cell<u32>,
}

impl<'a> Fitter<'a> {
    fn new(root: &'a Value, only_integers: bool) -> Self {
        Fitter { root, only_integers, steps: Cell::new(0) }
    }

    /// Counts a step; false when there were too many, and what is left stays as it is.
    fn step(&self) -> bool {
        self.steps.set(self.steps.get().saturating_add(1));
        self.steps.get() <= MAX_STEPS
    }

    fn fit(&self, value: &mut Value, schema: &Value, hops: u8) {
        if hops > MAX_HOPS || !self.step() {
            return;
        }
        let Some(map) = schema.as_object() else { return };
        if let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|name| self.resolve(name)) {
            self.fit(value, target, hops + 1);
        }
        for branch in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.fit(value, branch, hops + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = map.get(keyword).and_then(Value::as_array) {
                self.fit_alternatives(value, branches, hops + 1);
            }
        }
        let kinds = kinds(map);
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_kind(value, kind)) && !self.only_integers {
            read_as(value, &kinds);
        }
        match value {
            Value::Number(number) if kinds.contains(&"integer") && !kinds.contains(&"number") => {
                if let Some(whole) = whole(number) {
                    *number = whole;
                }
            }
            Value::Array(items) => {
                self.fit_items(items, map);
                if map.get("uniqueItems") == Some(&Value::Bool(true)) && !self.only_integers {
                    dedup(items);
                }
            }
            Value::Object(fields) => self.fit_fields(fields, map),
            _ => {}
        }
    }

    fn fit_items(&self, items: &mut [Value], schema: &Map<String, Value>) {
        let prefix = schema.get("prefixItems").and_then(Value::as_array);
        let rest = schema.get("items");
        for (index, item) in items.iter_mut().enumerate() {
            let own = prefix.and_then(|schemas| schemas.get(index)).or(rest);
            if let Some(own) = own {
                self.fit(item, own, 0);
            }
        }
    }

    fn fit_fields(&self, fields: &mut Map<String, Value>, schema: &Map<String, Value>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        let required = schema.get("required").and_then(Value::as_array);
        let mut absent = Vec::new();
        for (name, field) in fields.iter_mut() {
            let Some(own) = properties.and_then(|all| all.get(name)).or(others) else { continue };
            let needed = required.is_some_and(|names| names.iter().any(|known| known == name));
            if field.is_null() && !needed && !self.only_integers && !self.takes_null(own, 0) {
                absent.push(name.clone());
                continue;
            }
            self.fit(field, own, 0);
        }
        for name in absent {
            fields.shift_remove(&name);
        }
    }

    /// A value that one alternative takes as it is belongs to that one; otherwise the first that a reading fits.
    fn fit_alternatives(&self, value: &mut Value, branches: &[Value], hops: u8) {
        if let Some(branch) = branches.iter().find(|branch| self.takes_kind(value, branch, 0)) {
            self.fit(value, branch, hops);
            return;
        }
        for branch in branches {
            if !self.step() {
                return;
            }
            let mut attempt = value.clone();
            self.fit(&mut attempt, branch, hops);
            if self.takes_kind(&attempt, branch, 0) {
                *value = attempt;
                return;
            }
        }
    }

    fn takes_kind(&self, value: &Value, schema: &Value, hops: u8) -> bool {
        let Some(map) = schema.as_object() else { return schema.as_bool().unwrap_or(false) };
        if let Some(constant) = map.get("const") {
            return constant == value;
        }
        if let Some(options) = map.get("enum").and_then(Value::as_array) {
            return options.contains(value);
        }
        if let Some(target) = map.get("$ref").and_then(Value::as_str)
            && hops < MAX_HOPS
        {
            return self.resolve(target).is_some_and(|target| self.takes_kind(value, target, hops + 1));
        }
        let kinds = kinds(map);
        kinds.is_empty() || kinds.iter().any(|kind| is_kind(value, kind))
    }

    fn takes_null(&self, schema: &Value, hops: u8) -> bool {
        let Some(map) = schema.as_object() else { return schema.as_bool().unwrap_or(false) };
        if hops > MAX_HOPS || !self.step() {
            return true;
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = map.get(keyword).and_then(Value::as_array) {
                return branches.iter().any(|branch| self.takes_null(branch, hops + 1));
            }
        }
        self.takes_kind(&Value::Null, schema, hops)
    }

    fn resolve(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

/// A set that names an item twice is still that set.
fn dedup(items: &mut Vec<Value>) {
    let mut seen = std::collections::HashSet::new();
    items.retain(|item| seen.insert(crate::tool::canonical_json(item)));
}

fn kinds(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_number().is_some_and(|number| !number.is_f64() || whole(number).is_some()),
        _ => false,
    }
}

fn read_as(value: &mut Value, kinds: &[&str]) {
    let reading = match value {
        Value::String(text) => kinds.iter().find_map(|kind| read_text(text.trim(), kind)),
        Value::Number(number) if kinds.contains(&"string") => Some(Value::String(number.to_string())),
        _ => None,
    };
    if let Some(reading) = reading {
        *value = reading;
    }
}

fn read_text(text: &str, kind: &str) -> Option<Value> {
    match kind {
        "integer" => integer(text).map(Value::Number),
        "number" => integer(text).or_else(|| decimal(text)).map(Value::Number),
        "boolean" if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        "boolean" if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        "null" if text.eq_ignore_ascii_case("null") || text.eq_ignore_ascii_case("none") => Some(Value::Null),
        "array" if text.starts_with('[') => serde_json::from_str(text).ok(),
        "object" if text.starts_with('{') => serde_json::from_str(text).ok(),
        _ => None,
    }
}

fn integer(text: &str) -> Option<Number> {
    let small = text.parse::<i64>().map(Number::from);
    let large = || text.parse::<u64>().map(Number::from);
    small.or_else(|_| large()).ok().or_else(|| decimal(text).and_then(|number| whole(&number)))
}

fn decimal(text: &str) -> Option<Number> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    plain.then(|| text.parse::<f64>().ok()).flatten().and_then(Number::from_f64)
}

/// The integer a fraction stands for, when it is one exactly.
fn whole(number: &Number) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let value = number.as_f64()?;
    if !number.is_f64() {
        return Some(number.clone());
    }
    #[expect(clippy::cast_possible_truncation, reason = "the value is whole and below 2^53")]
    let integer = (value.fract() == 0.0 && value.abs() < EXACT).then_some(value as i64);
    integer.map(Number::from)
}
