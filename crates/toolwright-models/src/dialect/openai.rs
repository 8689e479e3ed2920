//! OpenAI's strict subset: every property is required and no others are allowed.

use serde_json::{Map, Value};

use super::{ChangeReport, DialectError, Effect, MAX_NODES, SchemaPath, is_rule};

/// The vendor's limits.
const MAX_LEVELS: usize = 10;
const MAX_PROPERTIES: usize = 5000;
const MAX_VALUES: usize = 1000;
const MAX_LETTERS: usize = 120_000;
const LONG_ENUM: usize = 250;
const MAX_LONG_ENUM: usize = 15_000;

/// Keywords the vendor's strict mode refuses; they are sent as they are, and the report says so.
const REFUSED: [&str; 11] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
];

pub(super) fn adapt(
    schema: Value,
    at: &SchemaPath<'_>,
    report: &mut ChangeReport<'_>,
) -> Result<Value, DialectError> {
    report.enter(at)?;
    let Value::Object(mut schema) = schema else { return Err(at.error("a schema must be an object")) };
    for key in ["$defs", "definitions"] {
        if let Some(Value::Object(definitions)) = schema.get_mut(key) {
            each(definitions, &SchemaPath::In(at, key), report)?;
        }
    }
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    match schema.get("additionalProperties") {
        None if schema.get("type").and_then(Value::as_str) == Some("object") => {
            report.closed(at, properties, None);
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        None | Some(Value::Bool(false)) => {}
        Some(_) => report.changed(at, "the vendor refuses properties without a name", Effect::Refused),
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        each(properties, &SchemaPath::In(at, "properties"), report)?;
        let names: Vec<Value> = properties.keys().map(|name| name.as_str().into()).collect();
        let required = schema.get("required").and_then(Value::as_array);
        let optional = names.iter().filter(|name| !required.is_some_and(|list| list.contains(name)));
        for name in optional.filter_map(Value::as_str) {
            report.changed(at, format!("`{name}` becomes required"), Effect::Tighter);
        }
        schema.insert("required".to_owned(), names.into());
    }
    if let Some(items) = schema.get_mut("items").filter(|items| items.is_object()) {
        *items = adapt(items.take(), &SchemaPath::In(at, "items"), report)?;
    }
    for key in ["anyOf", "allOf"] {
        let place = SchemaPath::In(at, key);
        if let Some(Value::Array(variants)) = schema.get_mut(key) {
            for (index, variant) in variants.iter_mut().enumerate() {
                *variant = adapt(variant.take(), &SchemaPath::In(&place, &index.to_string()), report)?;
            }
        }
    }
    // One schema that always holds is part of the schema itself.
    if let Some([Value::Object(only)]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        let only = only.clone();
        schema.shift_remove("allOf");
        if schema.keys().any(|key| is_rule(key)) {
            report.changed(at, "the rules of `allOf` replace those beside it", Effect::Looser);
        }
        schema.extend(only);
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.shift_remove("default");
    }
    if schema.len() > 1 && schema.contains_key("$ref") {
        return in_place(schema, at, report);
    }
    for key in REFUSED.iter().filter(|key| schema.contains_key(**key)) {
        report.changed(at, format!("the vendor may refuse `{key}`"), Effect::Refused);
    }
    Ok(Value::Object(schema))
}

/// Why the vendor refuses a schema that says nothing it does not know: the root is a union, or there is too
/// much of it.
pub(super) fn refused(schema: &Value) -> Option<String> {
    let mut count = SchemaCount { left: MAX_NODES, ..SchemaCount::default() };
    count.add(schema);
    if schema.get("anyOf").is_some() {
        return Some("the vendor refuses `anyOf` at the root".to_owned());
    }
    let mut left = MAX_NODES;
    let levels = levels(schema, schema, &mut left);
    let limits = [
        (levels, MAX_LEVELS, "levels"),
        (count.properties, MAX_PROPERTIES, "properties"),
        (count.values, MAX_VALUES, "values in its `enum`s"),
        (count.letters, MAX_LETTERS, "letters in its names and values"),
        (count.longest, MAX_LONG_ENUM, "letters in one `enum` of over 250 values"),
    ];
    let over = limits.iter().find(|(found, most, _)| found > most);
    over.map(|(_, most, what)| format!("the vendor takes at most {most} {what}"))
}

/// What the vendor counts in a schema.
#[derive(Default)]
struct SchemaCount {
    properties: usize,
    values: usize,
    letters: usize,
    longest: usize,
    /// How many more schemas are looked at.
    left: usize,
}

impl SchemaCount {
    fn add(&mut self, schema: &Value) {
        let Some(schema) = schema.as_object().filter(|_| self.left > 0) else { return };
        self.left -= 1;
        let length = |value: &Value| value.as_str().map_or_else(|| value.to_string().len(), str::len);
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let letters = values.iter().map(length).sum();
            self.values += values.len();
            self.letters += letters;
            if values.len() > LONG_ENUM {
                self.longest = self.longest.max(letters);
            }
        }
        self.letters += schema.get("const").map_or(0, length);
        for key in ["properties", "$defs", "definitions"] {
            for (name, inner) in schema.get(key).and_then(Value::as_object).into_iter().flatten() {
                self.properties += usize::from(key == "properties");
                self.letters += name.len();
                self.add(inner);
            }
        }
        schema.get("items").into_iter().for_each(|items| self.add(items));
        schema.get("anyOf").and_then(Value::as_array).into_iter().flatten().for_each(|inner| self.add(inner));
    }
}

/// How many objects and lists are inside one another, at most one more than are allowed. Counts down what is
/// looked at: references may lead to the same place very often.
fn levels(schema: &Value, root: &Value, left: &mut usize) -> usize {
    fn deepest(schema: &Value, root: &Value, outer: usize, left: &mut usize) -> usize {
        *left = left.saturating_sub(1);
        if *left == 0 || outer > MAX_LEVELS {
            return MAX_LEVELS + 1;
        }
        let target = |reference: &str| root.pointer(reference.strip_prefix('#')?);
        if let Some(schema) = schema.get("$ref").and_then(Value::as_str).and_then(target) {
            return deepest(schema, root, outer, left);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let inner: Vec<&Value> =
            properties.into_iter().flat_map(Map::values).chain(schema.get("items")).collect();
        let union = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        let own = outer + usize::from(!inner.is_empty());
        let below = inner.into_iter().map(|schema| (schema, own)).chain(union.map(|schema| (schema, outer)));
        below.fold(own, |most, (schema, outer)| most.max(deepest(schema, root, outer, left)))
    }
    deepest(schema, root, 0, left)
}

fn each(
    schemas: &mut Map<String, Value>,
    at: &SchemaPath<'_>,
    report: &mut ChangeReport<'_>,
) -> Result<(), DialectError> {
    for (key, schema) in schemas {
        *schema = adapt(schema.take(), &SchemaPath::In(at, key), report)?;
    }
    Ok(())
}

/// Writes a reference out, because nothing may stand beside one. What stands beside it wins.
fn in_place(
    mut schema: Map<String, Value>,
    at: &SchemaPath<'_>,
    report: &mut ChangeReport<'_>,
) -> Result<Value, DialectError> {
    let reference = schema.shift_remove("$ref");
    let reference = reference.as_ref().and_then(Value::as_str).unwrap_or_default();
    let Some(pointer) = reference.strip_prefix('#').filter(|pointer| pointer.starts_with('/')) else {
        return Err(at.error(format!("`$ref` must point into the schema, and {reference:?} does not")));
    };
    let Some(Value::Object(target)) = report.root.pointer(pointer) else {
        return Err(at.error(format!("there is nothing at {reference:?}")));
    };
    if schema.keys().any(|key| is_rule(key)) {
        report.changed(at, "the rules beside `$ref` replace those it leads to", Effect::Looser);
    }
    for (key, value) in target {
        schema.entry(key.clone()).or_insert_with(|| value.clone());
    }
    adapt(Value::Object(schema), &SchemaPath::In(at, "$ref"), report)
}
