//! Schema-guided reading of values that plainly mean the right thing.
//!
//! Only readings that lose nothing are made: text that is a number where a number is wanted, JSON text where
//! a list or an object is wanted, a number where text is wanted, null for an optional that does not take
//! null, an item twice in a set. The caller checks the result against the schema again, so a wrong guess here
//! can only fail, never pass.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::cost::size;

/// How much is looked at for one value, in parts of it and places of schemas.
const MAX_STEPS: usize = 100_000;

/// The largest whole number up to which a fraction is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The names of fields that `patternProperties` speaks of, compiled.
pub(super) type Patterns = HashMap<String, jsonschema::Validator>;

/// Fits a value to a schema as far as it can be done safely. Returns a number that was wanted as an integer
/// and is too large for one.
pub(super) fn fit(value: &mut Value, schema: &Value, patterns: &Patterns) -> Option<Number> {
    let fitter = Fitter::new(schema, patterns, false);
    fitter.fit(value, schema);
    fitter.lost.into_inner()
}

/// Turns 5.0 into 5 wherever the schema wants an integer. Returns a number that is too large for one.
pub(super) fn integers(value: &mut Value, schema: &Value, patterns: &Patterns) -> Option<Number> {
    let fitter = Fitter::new(schema, patterns, true);
    fitter.fit(value, schema);
    fitter.lost.into_inner()
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
    patterns: &'a Patterns,
    only_integers: bool,
    left: Cell<usize>,
    /// A number that was wanted as an integer, and whose last digits are lost.
    lost: RefCell<Option<Number>>,
}

impl<'a> Fitter<'a> {
    fn new(root: &'a Value, patterns: &'a Patterns, only_integers: bool) -> Self {
        Fitter { root, patterns, only_integers, left: Cell::new(MAX_STEPS), lost: RefCell::new(None) }
    }

    /// Counts work; false when there was too much, and what is left stays as it is.
    fn pay(&self, steps: usize) -> bool {
        self.left.set(self.left.get().saturating_sub(steps));
        self.left.get() > 0
    }

    /// Counts one place of a schema and what there is to read of a value.
    fn step(&self, value: &Value) -> bool {
        self.pay(1 + value.as_str().map_or(0, |text| text.len() / 64))
    }

    fn fit(&self, value: &mut Value, schema: &Value) {
        if !self.step(value) {
            return;
        }
        let Some(map) = schema.as_object() else { return };
        if let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|name| self.resolve(name)) {
            self.fit(value, target);
        }
        for branch in list(map, "allOf") {
            self.fit(value, branch);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = map.get(keyword).and_then(Value::as_array) {
                self.fit_alternatives(value, branches);
            }
        }
        let kinds = kinds(map);
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_kind(value, kind)) && !self.only_integers {
            read_as(value, &kinds);
        }
        match value {
            Value::Number(number) if kinds.contains(&"integer") && !kinds.contains(&"number") => {
                match whole(number) {
                    Some(whole) => *number = whole,
                    None if is_inexact(number) => *self.lost.borrow_mut() = Some(number.clone()),
                    None => {}
                }
            }
            Value::Array(items) => {
                self.fit_items(items, map);
                let is_set = map.get("uniqueItems") == Some(&Value::Bool(true));
                if is_set && !self.only_integers && items.iter().all(|item| self.pay(size(item, MAX_STEPS))) {
                    dedup(items);
                }
            }
            Value::Object(fields) => self.fit_fields(fields, map),
            _ => {}
        }
    }

    fn fit_items(&self, items: &mut [Value], schema: &Map<String, Value>) {
        for (index, item) in items.iter_mut().enumerate() {
            if let Some(own) = item_schema(schema, index) {
                self.fit(item, own);
            }
        }
    }

    fn fit_fields(&self, fields: &mut Map<String, Value>, schema: &Map<String, Value>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let mut absent = Vec::new();
        for (name, field) in fields.iter_mut() {
            let own = self.field_schemas(name, schema);
            let optional = properties.is_some_and(|all| all.contains_key(name))
                && !required.is_some_and(|names| names.iter().any(|known| known == name));
            if field.is_null() && optional && !self.only_integers {
                // When there is no telling, the null stays.
                if !own.iter().all(|own| self.accepts(field, own)) && self.pay(1) {
                    absent.push(name.clone());
                }
                continue;
            }
            for own in own {
                self.fit(field, own);
            }
        }
        for name in absent {
            fields.shift_remove(&name);
        }
    }

    /// The schemas a field must fit: its own and those of its name's patterns, else the one for all others.
    fn field_schemas<'s>(&self, name: &str, schema: &'s Map<String, Value>) -> Vec<&'s Value> {
        let own = schema.get("properties").and_then(|all| all.get(name));
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let matching = patterns.into_iter().flatten().filter(|(pattern, _)| {
            self.pay(1 + name.len() / 64)
                && self.patterns.get(*pattern).is_some_and(|pattern| pattern.is_valid(&Value::from(name)))
        });
        let mut schemas: Vec<&Value> = own.into_iter().chain(matching.map(|(_, schema)| schema)).collect();
        if schemas.is_empty() {
            schemas.extend(schema.get("additionalProperties"));
        }
        schemas
    }

    /// A value that one alternative takes as it is stays as it is; otherwise the first that a reading fits.
    fn fit_alternatives(&self, value: &mut Value, branches: &[Value]) {
        if let Some(branch) = branches.iter().find(|branch| self.accepts(value, branch)) {
            self.fit(value, branch);
            return;
        }
        if let Value::Number(number) = &*value
            && is_inexact(number)
            && branches
                .iter()
                .any(|branch| branch.as_object().is_some_and(|map| kinds(map).contains(&"integer")))
        {
            *self.lost.borrow_mut() = Some(number.clone());
        }
        if self.only_integers {
            return;
        }
        for branch in branches {
            if !self.pay(size(value, MAX_STEPS)) {
                return;
            }
            let mut attempt = value.clone();
            self.fit(&mut attempt, branch);
            if self.accepts(&attempt, branch) {
                *value = attempt;
                return;
            }
        }
    }

    /// Whether a value is of the right kind, all the way down: kinds, constants and names, but not bounds.
    fn accepts(&self, value: &Value, schema: &Value) -> bool {
        let Some(map) = schema.as_object() else { return schema.as_bool().unwrap_or(true) };
        if !self.step(value) {
            return false;
        }
        if map.get("const").is_some_and(|constant| constant != value) {
            return false;
        }
        if let Some(options) = map.get("enum").and_then(Value::as_array)
            && !(self.pay(options.len()) && options.contains(value))
        {
            return false;
        }
        let kinds = kinds(map);
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_kind(value, kind)) {
            return false;
        }
        if let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|name| self.resolve(name))
            && !self.accepts(value, target)
        {
            return false;
        }
        let fits = |branch: &Value| self.accepts(value, branch);
        let any = |keyword: &str| !map.contains_key(keyword) || list(map, keyword).any(fits);
        if !list(map, "allOf").all(fits) || !any("anyOf") || !any("oneOf") {
            return false;
        }
        match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .all(|(index, item)| item_schema(map, index).is_none_or(|own| self.accepts(item, own))),
            Value::Object(fields) => {
                list(map, "required").filter_map(Value::as_str).all(|name| fields.contains_key(name))
                    && fields.iter().all(|(name, field)| {
                        self.field_schemas(name, map).iter().all(|own| self.accepts(field, own))
                    })
            }
            _ => true,
        }
    }

    fn resolve(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

fn list<'s>(schema: &'s Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'s Value> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn item_schema(schema: &Map<String, Value>, index: usize) -> Option<&Value> {
    let prefix = schema.get("prefixItems").and_then(Value::as_array);
    prefix.and_then(|schemas| schemas.get(index)).or_else(|| schema.get("items"))
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
        // A large whole number that does not fit an integer has lost its last digits already.
        Value::Number(number) if kinds.contains(&"string") && !is_inexact(number) => {
            Some(Value::String(number.to_string()))
        }
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

pub(super) fn decimal(text: &str) -> Option<Number> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    let value = plain.then(|| text.parse::<f64>().ok()).flatten()?;
    (digits(text) == digits(&format!("{value:e}"))).then(|| Number::from_f64(value)).flatten()
}

/// The digits of a decimal without zeros around them, and where its point is.
fn digits(text: &str) -> (String, i64) {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (before, after) = number.split_once('.').unwrap_or((number, ""));
    let all: String = before.chars().chain(after.chars()).filter(char::is_ascii_digit).collect();
    let significant = all.trim_start_matches('0');
    let leading = all.len() - significant.len();
    let whole = before.chars().filter(char::is_ascii_digit).count();
    let significant = significant.trim_end_matches('0');
    if significant.is_empty() {
        return (String::new(), 0);
    }
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let point =
        exponent.parse::<i64>().unwrap_or(0).saturating_add(count(whole)).saturating_sub(count(leading));
    (significant.to_owned(), point)
}

fn is_inexact(number: &Number) -> bool {
    number.is_f64() && number.as_f64().is_some_and(|value| value.abs() >= EXACT)
}

/// The integer a fraction stands for, when it is one exactly.
fn whole(number: &Number) -> Option<Number> {
    let value = number.as_f64()?;
    if !number.is_f64() {
        return Some(number.clone());
    }
    #[expect(clippy::cast_possible_truncation, reason = "the value is whole and below 2^53")]
    let integer = (value.fract() == 0.0 && value.abs() < EXACT).then_some(value as i64);
    integer.map(Number::from)
}

#[cfg(test)]
mod tests {
    use super::super::{Schema, Strictness};
    use serde_json::{Value, json};

    fn check(schema: Value, given: Value, want: Value) {
        let schema = Schema::compile(&schema).unwrap();
        assert_eq!(schema.validate(given.clone(), Strictness::Lenient).unwrap(), want, "{given}");
    }

    fn refused(schema: Value, given: Value) -> String {
        let schema = Schema::compile(&schema).unwrap();
        schema.validate(given, Strictness::Lenient).unwrap_err().message().to_owned()
    }

    /// The schema of `a`, beside an integer that is in need of fitting.
    fn beside(a: Value) -> Value {
        json!({"type": "object", "properties": {"a": a, "n": {"type": "integer"}}})
    }

    fn record(fields: Value) -> Value {
        json!({"type": "object", "properties": fields})
    }

    #[test]
    fn what_is_right_already_stays_when_something_else_is_fitted() {
        let ids = json!({"anyOf": [record(json!({"id": {"type": "string"}})), record(json!({"id": {"type": "integer"}}))]});
        check(beside(ids), json!({"a": {"id": 5}, "n": "7"}), json!({"a": {"id": 5}, "n": 7}));
        let maybe = json!({"anyOf": [record(json!({"v": {"type": "string"}})), record(json!({"v": {"type": "null"}}))]});
        check(beside(maybe), json!({"a": {"v": null}, "n": "7"}), json!({"a": {"v": null}, "n": 7}));
    }

    #[test]
    fn a_tagged_alternative_is_the_one_its_tag_names() {
        let tagged = json!({"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "text"}, "v": {"type": "string"}}, "required": ["kind", "v"]},
            {"type": "object", "properties": {"kind": {"const": "count"}, "v": {"type": "integer"}}, "required": ["kind", "v"]}
        ]});
        let given = json!({"a": {"kind": "count", "v": 5}, "n": "7"});
        check(beside(tagged.clone()), given, json!({"a": {"kind": "count", "v": 5}, "n": 7}));
        let given = json!({"a": {"kind": "count", "v": "5"}, "n": "7"});
        check(beside(tagged.clone()), given, json!({"a": {"kind": "count", "v": 5}, "n": 7}));
        let message = refused(beside(tagged), json!({"a": {"kind": "text", "v": "x"}, "n": "seven"}));
        assert_eq!(message, "the arguments do not fit:\n- `n`: \"seven\" is not an integer");
    }

    #[test]
    fn names_that_match_a_pattern_follow_it() {
        let schema = json!({
            "type": "object", "properties": {"n": {"type": "integer"}},
            "patternProperties": {"^x": {"type": ["string", "null"]}}, "additionalProperties": false
        });
        check(schema, json!({"x1": null, "n": "5"}), json!({"x1": null, "n": 5}));
        let schema = json!({
            "type": "object", "patternProperties": {"^s_": {"type": "string"}},
            "additionalProperties": {"type": "integer"}
        });
        check(schema.clone(), json!({"s_a": "5", "b": "7"}), json!({"s_a": "5", "b": 7}));
        assert!(refused(schema, json!({"s_a": "5", "b": null})).contains("`b`: null"));
    }

    #[test]
    fn numbers_keep_all_their_digits_or_are_refused() {
        let text = record(json!({"a": {"type": "string"}}));
        check(text.clone(), json!({"a": u64::MAX}), json!({"a": "18446744073709551615"}));
        check(text.clone(), json!({"a": 0.1}), json!({"a": "0.1"}));
        assert!(refused(text, json!({"a": 123_456_789_012_345_678_901_234_f64})).contains("is not a string"));
        let number = record(json!({"a": {"type": "number"}}));
        for (given, want) in
            [("0.10", 0.1), ("-1.5e-3", -0.0015), ("00.5", 0.5), ("1e300", 1e300), (".25", 0.25)]
        {
            check(number.clone(), json!({"a": given}), json!({"a": want}));
        }
        check(number.clone(), json!({"a": "0.0"}), json!({"a": 0}));
        for given in ["12345678901234567890123", "0.12345678901234567890123", "9007199254740993.0"] {
            assert!(refused(number.clone(), json!({"a": given})).contains("is not a number"), "{given}");
        }
    }

    #[test]
    fn a_large_value_is_not_copied_without_end() {
        let many: Vec<Value> =
            (0..3000).map(|n| json!({"type": "object", "required": [n.to_string()]})).collect();
        let message = refused(beside(json!({"anyOf": many})), json!({"a": "{".repeat(800_000)}));
        assert!(message.starts_with("the arguments do not fit"), "{message}");
    }
}
