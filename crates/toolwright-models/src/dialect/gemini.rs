//! Gemini's subset. It takes every schema as it is, and reads past what it does not know.

use serde_json::Value;

use super::{Change, ChangeReport, Effect, MAX_NODES, SchemaPath};

/// Keywords that Gemini follows; it reads past the others.
const GEMINI: [&str; 26] = [
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
    "default",
    "examples",
    "$comment",
    "deprecated",
    "$schema",
];

/// What Gemini reads past in a schema, which it takes as it is.
pub(crate) fn ignored(schema: &Value) -> Vec<Change> {
    let mut report = ChangeReport { root: schema, changes: Vec::new(), left: MAX_NODES };
    look(schema, &SchemaPath::Root, &mut report);
    return report.changes;

    fn look(schema: &Value, at: &SchemaPath<'_>, report: &mut ChangeReport<'_>) {
        let Some(schema) = schema.as_object() else { return };
        if report.enter(at).is_err() {
            return;
        }
        for (key, value) in schema {
            if !GEMINI.contains(&key.as_str()) {
                report.changed(at, format!("the vendor does not know `{key}`"), Effect::Looser);
            } else if key == "oneOf" {
                report.changed(at, "`oneOf` is read as `anyOf`", Effect::Looser);
            }
            let place = SchemaPath::In(at, key);
            match (key.as_str(), value) {
                ("properties" | "$defs", Value::Object(inner)) => {
                    inner.iter().for_each(|(key, value)| look(value, &SchemaPath::In(&place, key), report));
                }
                ("anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                    let list = list.iter().enumerate();
                    list.for_each(|(index, value)| {
                        look(value, &SchemaPath::In(&place, &index.to_string()), report)
                    });
                }
                ("items" | "additionalProperties", value) => look(value, &place, report),
                _ => {}
            }
        }
    }
}
