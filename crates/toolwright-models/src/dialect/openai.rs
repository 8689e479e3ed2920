//! OpenAI's strict subset: every property is required and no others are allowed.

use serde_json::{Map, Value};

use super::{DialectError, Effect, Place, Report};

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

pub(super) fn adapt(schema: Value, at: &Place<'_>, report: &mut Report<'_>) -> Result<Value, DialectError> {
    report.enter(at)?;
    let Value::Object(mut schema) = schema else { return Err(at.error("a schema must be an object")) };
    for key in ["$defs", "definitions"] {
        if let Some(Value::Object(definitions)) = schema.get_mut(key) {
            each(definitions, &Place::In(at, key), report)?;
        }
    }
    if schema.get("type").and_then(Value::as_str) == Some("object")
        && !schema.contains_key("additionalProperties")
    {
        schema.insert("additionalProperties".to_owned(), false.into());
        report.changed(at, "only the named properties remain", Effect::Closed);
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        each(properties, &Place::In(at, "properties"), report)?;
        let names: Vec<Value> = properties.keys().map(|name| name.as_str().into()).collect();
        let required = schema.get("required").and_then(Value::as_array);
        let optional = names.iter().filter(|name| !required.is_some_and(|list| list.contains(name)));
        for name in optional.filter_map(Value::as_str) {
            report.changed(at, format!("`{name}` becomes required"), Effect::Tighter);
        }
        schema.insert("required".to_owned(), names.into());
    }
    if let Some(items) = schema.get_mut("items").filter(|items| items.is_object()) {
        *items = adapt(items.take(), &Place::In(at, "items"), report)?;
    }
    for key in ["anyOf", "allOf"] {
        let place = Place::In(at, key);
        if let Some(Value::Array(variants)) = schema.get_mut(key) {
            for (index, variant) in variants.iter_mut().enumerate() {
                *variant = adapt(variant.take(), &Place::In(&place, &index.to_string()), report)?;
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

fn each(
    schemas: &mut Map<String, Value>,
    at: &Place<'_>,
    report: &mut Report<'_>,
) -> Result<(), DialectError> {
    for (key, schema) in schemas {
        *schema = adapt(schema.take(), &Place::In(at, key), report)?;
    }
    Ok(())
}

/// Writes a reference out, because nothing may stand beside one. What stands beside it wins.
fn in_place(
    mut schema: Map<String, Value>,
    at: &Place<'_>,
    report: &mut Report<'_>,
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
    adapt(Value::Object(schema), &Place::In(at, "$ref"), report)
}

/// Whether a keyword says what is accepted.
fn is_rule(key: &str) -> bool {
    !matches!(
        key,
        "description"
            | "title"
            | "default"
            | "examples"
            | "$comment"
            | "deprecated"
            | "$defs"
            | "definitions"
    )
}
