//! Schemas of OpenAPI as JSON Schema 2020-12: a `$ref` stays one, into `$defs` that hold what a tool reaches.
//!
//! What is left out is not of a request (`readOnly`) or says nothing to a model (`xml`, `example`). A keyword
//! whose value is not what the keyword takes is left out, which accepts more and never less.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Value, json};
use toolwright_core::schema::Schema;
use toolwright_core::text::clip;

use crate::names::{self, unique};
use crate::pointer;

/// The most definitions one tool may reach.
const MAX_DEFINITIONS: usize = 2_000;

/// The longest description inside of a schema, in bytes.
const MAX_DESCRIPTION: usize = 600;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// The schemas of a document, each read once.
pub(crate) struct Schemas<'d> {
    root: &'d Value,
    /// OpenAPI 3.1: schemas are JSON Schema already.
    modern: bool,
    names: HashMap<String, String>,
    taken: HashSet<String>,
    read: HashMap<String, Result<Rc<SharedSchema>, String>>,
    /// Patterns, and whether arguments can be checked with them.
    patterns: HashMap<String, bool>,
}

/// One definition, and the references it holds.
struct SharedSchema {
    schema: Value,
    references: BTreeSet<String>,
}

/// A schema with the definitions it refers to, directly.
#[derive(Debug, Clone, Default)]
pub(crate) struct Converted {
    pub(crate) schema: Value,
    pub(crate) references: BTreeSet<String>,
}

impl<'d> Schemas<'d> {
    pub(crate) fn new(root: &'d Value, modern: bool) -> Self {
        Schemas {
            root,
            modern,
            names: HashMap::new(),
            taken: HashSet::new(),
            read: HashMap::new(),
            patterns: HashMap::new(),
        }
    }

    /// A schema of a request.
    pub(crate) fn convert(&mut self, schema: &Value) -> Result<Converted, String> {
        let mut references = BTreeSet::new();
        let schema = self.schema(schema, &mut references)?;
        Ok(Converted { schema, references })
    }

    /// The definitions that these references reach, by their names.
    pub(crate) fn definitions(
        &mut self,
        references: &BTreeSet<String>,
    ) -> Result<Map<String, Value>, String> {
        let mut found: Map<String, Value> = Map::new();
        let mut open: Vec<String> = references.iter().cloned().collect();
        let mut seen: HashSet<String> = references.iter().cloned().collect();
        while let Some(reference) = open.pop() {
            if found.len() >= MAX_DEFINITIONS {
                return Err(format!("its schemas refer to more than {MAX_DEFINITIONS} others"));
            }
            let definition = self.definition(&reference)?;
            open.extend(definition.references.iter().filter(|next| seen.insert((*next).clone())).cloned());
            found.insert(self.name_of(&reference), definition.schema.clone());
        }
        found.sort_keys();
        Ok(found)
    }

    fn definition(&mut self, reference: &str) -> Result<Rc<SharedSchema>, String> {
        if let Some(known) = self.read.get(reference) {
            return known.clone();
        }
        let made = pointer::target(self.root, reference).and_then(|schema| {
            let mut references = BTreeSet::new();
            let schema = self.schema(schema, &mut references)?;
            Ok(Rc::new(SharedSchema { schema, references }))
        });
        self.read.insert(reference.to_owned(), made.clone());
        made
    }

    fn name_of(&mut self, reference: &str) -> String {
        if let Some(name) = self.names.get(reference) {
            return name.clone();
        }
        let last = reference.rsplit('/').next().unwrap_or_default();
        let name = match names::legal(last) {
            name if name.is_empty() => "schema".to_owned(),
            name => name,
        };
        let name = unique(&mut self.taken, name, reference);
        self.names.insert(reference.to_owned(), name.clone());
        name
    }

    fn schema(&mut self, schema: &Value, references: &mut BTreeSet<String>) -> Result<Value, String> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) => return Ok(schema.clone()),
            _ => return Ok(json!({})),
        };
        let mut made = Map::new();
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            pointer::target(self.root, reference)?;
            references.insert(reference.to_owned());
            made.insert("$ref".into(), json!(format!("#/$defs/{}", self.name_of(reference))));
            if !self.modern {
                // What stands beside a reference does not count, but a description helps a model.
                copy_description(members, &mut made);
                return Ok(made.into());
            }
        }
        let hidden: Vec<&String> = members
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter(|(_, schema)| flag(schema, "readOnly"))
            .map(|(name, _)| name)
            .collect();
        for (key, value) in members {
            if let Some(value) = self.keyword(key, value, &hidden, references)? {
                made.insert(key.clone(), value);
            }
        }
        copy_description(members, &mut made);
        self.check_pattern(&mut made);
        if !self.modern {
            old_bounds(members, &mut made);
            if flag(schema, "nullable") {
                return Ok(nullable(made));
            }
        }
        Ok(made.into())
    }

    /// A pattern that arguments cannot be checked with becomes words for the model: those of Java or Python
    /// are no regular expressions of JSON Schema, and one that may take exponential time is not run.
    fn check_pattern(&mut self, made: &mut Map<String, Value>) {
        let Some(pattern) = made.get("pattern").and_then(Value::as_str).map(str::to_owned) else { return };
        let usable = *self
            .patterns
            .entry(pattern.clone())
            .or_insert_with(|| Schema::compile(&json!({"type": "string", "pattern": pattern})).is_ok());
        if !usable {
            made.shift_remove("pattern");
            let told = format!("Must match the pattern {}", clip(&pattern, 200));
            let text = match made.get("description").and_then(Value::as_str) {
                Some(text) => format!("{text} {told}"),
                None => told,
            };
            made.insert("description".into(), text.into());
        }
    }

    /// The value of a keyword; `None` when the keyword is left out.
    fn keyword(
        &mut self,
        key: &str,
        value: &Value,
        hidden: &[&String],
        references: &mut BTreeSet<String>,
    ) -> Result<Option<Value>, String> {
        let is_hidden = |name: &str| hidden.iter().any(|hidden| *hidden == name);
        Ok(match (key, value) {
            ("properties", Value::Object(members)) => {
                let shown = members.iter().filter(|(name, _)| !is_hidden(name));
                Some(self.map_of(shown, references)?)
            }
            ("patternProperties" | "$defs" | "definitions" | "dependentSchemas", Value::Object(members)) => {
                Some(self.map_of(members.iter(), references)?)
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(items)) if !items.is_empty() => {
                Some(self.list_of(items, references)?)
            }
            ("items", Value::Array(_)) => None,
            (
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                Value::Object(_) | Value::Bool(_),
            ) => Some(self.schema(value, references)?),
            ("type", value) => types(value),
            ("required", Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str).filter(|name| !is_hidden(name));
                let mut names: Vec<&str> = names.collect();
                names.sort_unstable();
                names.dedup();
                (!names.is_empty()).then(|| json!(names))
            }
            ("enum", Value::Array(values)) if !values.is_empty() => {
                let mut kept: Vec<Value> = Vec::new();
                let mut seen = HashSet::new();
                kept.extend(values.iter().filter(|value| seen.insert(value.to_string())).cloned());
                Some(kept.into())
            }
            ("const" | "default", value) => Some(value.clone()),
            ("title" | "format" | "pattern" | "contentMediaType" | "contentEncoding", Value::String(_)) => {
                Some(value.clone())
            }
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", value) => number(value),
            ("multipleOf", value) => {
                number(value).filter(|number| number.as_f64().is_some_and(|step| step > 0.0))
            }
            (
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
                | "minContains" | "maxContains",
                value,
            ) => number(value).and_then(|number| count(&number)).map(Value::from),
            ("uniqueItems" | "deprecated", Value::Bool(_)) => Some(value.clone()),
            ("dependentRequired", Value::Object(_)) => Some(value.clone()),
            _ => None,
        })
    }

    fn map_of<'v>(
        &mut self,
        members: impl Iterator<Item = (&'v String, &'v Value)>,
        references: &mut BTreeSet<String>,
    ) -> Result<Value, String> {
        let mut made = Map::new();
        for (name, schema) in members {
            made.insert(name.clone(), self.schema(schema, references)?);
        }
        Ok(made.into())
    }

    fn list_of(&mut self, items: &[Value], references: &mut BTreeSet<String>) -> Result<Value, String> {
        let made: Result<Vec<Value>, String> =
            items.iter().map(|item| self.schema(item, references)).collect();
        Ok(made?.into())
    }
}

pub(crate) fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn copy_description(from: &Map<String, Value>, into: &mut Map<String, Value>) {
    if let Some(text) = from.get("description").and_then(Value::as_str).map(str::trim)
        && !text.is_empty()
    {
        into.insert("description".into(), clip(text, MAX_DESCRIPTION).into());
    }
}

/// `type` as a word or a list of them; one that JSON Schema does not have is left out.
fn types(value: &Value) -> Option<Value> {
    let known = |value: &Value| {
        let word = value.as_str()?;
        TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(word)).or(match word {
            "int" | "long" => Some("integer"),
            "float" | "double" => Some("number"),
            "bool" => Some("boolean"),
            "file" => Some("string"),
            _ => None,
        })
    };
    match value {
        Value::Array(items) => {
            let mut words: Vec<&str> = items.iter().filter_map(known).collect();
            words.dedup();
            (!words.is_empty() && words.len() == items.len()).then(|| json!(words))
        }
        word => known(word).map(Value::from),
    }
}

fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => match text.trim().parse::<i64>() {
            Ok(whole) => Some(whole.into()),
            Err(_) => text.trim().parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::from),
        },
        _ => None,
    }
}

fn count(value: &Value) -> Option<u64> {
    let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole, not negative and small"
    )]
    value.as_u64().or_else(|| whole(value.as_f64()?).map(|number| number as u64))
}

/// Before 3.1 `exclusiveMinimum: true` says how `minimum` is meant.
fn old_bounds(from: &Map<String, Value>, made: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if from.get(exclusive) == Some(&Value::Bool(true))
            && let Some(value) = made.shift_remove(bound)
        {
            made.insert(exclusive.to_owned(), value);
        }
    }
}

/// A schema that accepts null too.
fn nullable(mut made: Map<String, Value>) -> Value {
    if let Some(Value::Array(values)) = made.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let combined = ["allOf", "anyOf", "oneOf", "not", "const"].iter().any(|key| made.contains_key(*key));
    match made.get("type").cloned() {
        Some(Value::String(word)) if !combined => {
            made.insert("type".into(), json!([word, "null"]));
            made.into()
        }
        None if !combined => made.into(),
        _ => {
            let description = made.shift_remove("description");
            let mut outer = Map::new();
            outer.insert("anyOf".into(), json!([made, {"type": "null"}]));
            if let Some(description) = description {
                outer.insert("description".into(), description);
            }
            outer.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_keywords_become_those_of_json_schema() {
        let root = json!({"components": {"schemas": {"A": {"type": "string"}}}});
        let mut schemas = Schemas::new(&root, false);
        for (schema, expected) in [
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
            (
                json!({"type": "string", "enum": ["a", "a"], "nullable": true}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (
                json!({"allOf": [{"$ref": "#/components/schemas/A"}], "nullable": true, "description": "d"}),
                json!({"anyOf": [{"allOf": [{"$ref": "#/$defs/A"}]}, {"type": "null"}], "description": "d"}),
            ),
            (json!({"minimum": 1, "exclusiveMinimum": true}), json!({"exclusiveMinimum": 1})),
            (json!({"minimum": 1, "exclusiveMinimum": false}), json!({"minimum": 1})),
            (
                json!({"type": "int", "required": true, "maxLength": "7"}),
                json!({"type": "integer", "maxLength": 7}),
            ),
            (
                json!({"properties": {"id": {"readOnly": true}, "n": {"example": 1}}, "required": ["id", "n"]}),
                json!({"properties": {"n": {}}, "required": ["n"]}),
            ),
        ] {
            assert_eq!(schemas.convert(&schema).unwrap().schema, expected, "{schema}");
        }
    }

    #[test]
    fn recursion_ends_in_definitions_and_bad_references_are_told() {
        let root = json!({"components": {"schemas": {
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "x": {"$ref": "#/components/schemas/Leaf"}}},
            "Leaf": {"type": "string"}, "Other": {"type": "number"}, "Bad": {"$ref": "#/nosuch"},
        }}});
        let mut schemas = Schemas::new(&root, true);
        let node = schemas.convert(&json!({"$ref": "#/components/schemas/Node"})).unwrap();
        let definitions = schemas.definitions(&node.references).unwrap();
        assert_eq!(definitions.keys().collect::<Vec<_>>(), ["Leaf", "Node"]);
        assert_eq!(definitions["Node"]["properties"]["next"], json!({"$ref": "#/$defs/Node"}));
        let bad = schemas.convert(&json!({"items": {"$ref": "#/components/schemas/Bad"}})).unwrap();
        assert!(schemas.definitions(&bad.references).unwrap_err().contains("#/nosuch"));
    }
}
