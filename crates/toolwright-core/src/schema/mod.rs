//! JSON Schema: made from Rust types, compiled once, and checked against what a model sends.
//!
//! Nothing of a schema is dropped on the way: `$ref`, `oneOf` and `const` reach the model as they were
//! written. Checking reports every problem with its place. Values that plainly mean the right thing (`"5"`
//! for an integer) are accepted unless [`Strictness::Strict`] is asked for; that part is in `fit`, the
//! wording of problems in `explain`. Checking takes bounded time whatever the schema and the value are; that
//! is in `cost` and `patterns`.

mod cost;
mod explain;
mod fit;
mod numbers;
mod patterns;
mod references;
mod repeated;

use std::collections::BTreeSet;
use std::ops::Bound;

use jsonschema::ValidationError;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use crate::error::ToolError;
use crate::path::PathParameters;
use cost::{Cost, Telling};

pub use numbers::lossy_integer;
pub use repeated::repeated_key;

/// How deep arguments may be nested.
pub const MAX_DEPTH: usize = 100;

/// The largest schema that is compiled, in bytes of JSON text.
const MAX_SCHEMA_BYTES: usize = 1024 * 1024;

/// How many problems the model receives; the rest are counted.
const MAX_PROBLEMS: usize = 20;

/// Whether values that plainly mean the right thing are accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strictness {
    /// `"5"` is accepted for an integer, `"[1]"` for an array, null for an absent optional.
    #[default]
    Lenient,
    /// Only what the schema accepts.
    Strict,
}

/// A compiled schema.
pub struct Schema {
    json: Value,
    validator: jsonschema::Validator,
    /// The patterns that names of fields are held to.
    patterns: fit::Patterns,
    cost: Cost,
}

impl Schema {
    /// Compiles the schema of a tool's parameters, which must describe an object.
    pub fn compile(json: &Value) -> Result<Self, SchemaError> {
        if !json.is_object() {
            return Err(SchemaError("it is not a JSON object".to_owned()));
        }
        match json.get("type") {
            None => {}
            Some(Value::String(kind)) if kind == "object" => {}
            Some(other) => {
                return Err(SchemaError(format!("its type is {other}, but parameters are an object")));
            }
        }
        Self::compile_any(json)
    }

    /// Compiles any schema. References outside the schema are not fetched; they are an error.
    pub fn compile_any(json: &Value) -> Result<Self, SchemaError> {
        if depth(json) > MAX_DEPTH {
            return Err(SchemaError(format!("it is nested more than {MAX_DEPTH} deep")));
        }
        let text = json.to_string();
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(SchemaError(format!("it is larger than {MAX_SCHEMA_BYTES} bytes")));
        }
        let linear = patterns::without_look_ahead(json, &text);
        patterns::check_weight(&linear)?;
        let cost = Cost::of(&linear)?;
        let validator = patterns::compiled(&linear)?;
        Ok(Schema { json: json.clone(), validator, patterns: patterns::names(json)?, cost })
    }

    /// About how many bytes the patterns of a schema take once compiled, estimated without compiling them;
    /// `None` for a schema with more patterns than are compiled. It bounds the memory of many schemas from
    /// one untrusted source.
    pub fn pattern_weight(json: &Value) -> Option<usize> {
        patterns::weight(json)
    }

    /// The schema as it was given.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Checks arguments, reporting every problem with its place; returns them ready for the tool.
    ///
    /// ```
    /// use toolwright_core::schema::{Schema, Strictness};
    /// use serde_json::json;
    ///
    /// let schema = Schema::compile(&json!({
    ///     "type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]
    /// })).unwrap();
    /// assert_eq!(schema.validate(json!({"x": "5"}), Strictness::Lenient).unwrap(), json!({"x": 5}));
    /// let error = schema.validate(json!({"x": "five"}), Strictness::Lenient).unwrap_err();
    /// assert_eq!(error.message(), "the arguments do not fit:\n- `x`: \"five\" is not an integer");
    /// ```
    pub fn validate(&self, arguments: Value, strictness: Strictness) -> Result<Value, ToolError> {
        if depth(&arguments) > MAX_DEPTH {
            return Err(ToolError::invalid(format!("the arguments are nested more than {MAX_DEPTH} deep")));
        }
        if !self.cost.allows(&arguments) {
            return Err(too_much());
        }
        let mut arguments = arguments;
        if self.validator.is_valid(&arguments) {
            // JSON Schema accepts 5.0 for an integer; Rust integers do not.
            if fit::has_float(&arguments)
                && let Some(lost) = fit::integers(&mut arguments, &self.json, &self.patterns)
            {
                return Err(rounded(&lost));
            }
            return Ok(arguments);
        }
        let mut left = None;
        if strictness == Strictness::Lenient {
            let mut fitted = arguments.clone();
            let lost = fit::fit(&mut fitted, &self.json, &self.patterns);
            // JSON inside text may be deep or large too.
            if depth(&fitted) <= MAX_DEPTH && self.cost.allows(&fitted) {
                if self.validator.is_valid(&fitted) {
                    return lost.map_or(Ok(fitted), |lost| Err(rounded(&lost)));
                }
                left = matches!(self.cost.telling(&fitted), Telling::All).then(|| self.places(&fitted));
            }
        }
        // What the model sent is explained, not what was made of it; and only what could not be read
        // leniently.
        Err(match self.cost.telling(&arguments) {
            Telling::All => {
                let left = left.unwrap_or_default();
                let mut errors: Vec<_> = self.validator.iter_errors(&arguments).collect();
                let stays = |error: &ValidationError<'_>| holds(&left, error.instance_path().as_str());
                if errors.iter().any(stays) {
                    errors.retain(stays);
                }
                explain::problems(errors.into_iter(), &self.json, MAX_PROBLEMS)
            }
            Telling::First => {
                let first = self.validator.validate(&arguments).err();
                explain::problems(first.into_iter(), &self.json, MAX_PROBLEMS)
            }
            Telling::Nothing => explain::unexplained(&self.json),
        })
    }

    /// Where a value has problems, as JSON pointers.
    fn places(&self, value: &Value) -> BTreeSet<String> {
        self.validator.iter_errors(value).map(|error| error.instance_path().to_string()).collect()
    }

    /// The problems of a value, for schemas that are not a tool's parameters. Empty when it fits.
    pub fn problems(&self, value: &Value) -> Vec<String> {
        if depth(value) > MAX_DEPTH {
            return vec![format!("the value is nested more than {MAX_DEPTH} deep")];
        }
        if !self.cost.allows(value) {
            return vec![too_much().message().to_owned()];
        }
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        match self.cost.telling(value) {
            Telling::All => {
                let errors = self.validator.iter_errors(value).take(MAX_PROBLEMS);
                errors.map(|error| explain::problem(&error)).collect()
            }
            Telling::First => self.validator.validate(value).err().iter().map(explain::problem).collect(),
            Telling::Nothing => vec![explain::UNEXPLAINED.to_owned()],
        }
    }
}

fn rounded(number: &Number) -> ToolError {
    ToolError::invalid(format!(
        "the arguments do not fit:\n- {number} is too large for an integer: its last digits are lost"
    ))
    .hint("integers have at most 64 bits here; send a larger one as text where the tool takes text")
}

fn too_much() -> ToolError {
    ToolError::invalid(
        "checking this against the schema is too much work: the schema has too many ways to read it",
    )
    .hint("send less in one call, or nest it less")
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Schema").field(&self.json).finish()
    }
}

/// Why a schema cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError(String);

impl std::fmt::Display for SchemaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SchemaError {}

/// How deep a value is nested; a scalar is 0 deep. Does not recurse.
pub fn depth(value: &Value) -> usize {
    let holds = |value: &&Value| matches!(value, Value::Array(_) | Value::Object(_));
    let mut deepest = 0;
    // Only what can hold others is put aside, so that a long list of numbers costs one look at each.
    let mut todo: Vec<(&Value, usize)> = Vec::new();
    let mut next = Some((value, 0)).filter(|(value, _)| holds(value));
    while let Some((value, above)) = next {
        let level = above + 1;
        deepest = deepest.max(level);
        match value {
            Value::Array(items) => todo.extend(items.iter().filter(holds).map(|item| (item, level))),
            Value::Object(map) => todo.extend(map.values().filter(holds).map(|item| (item, level))),
            _ => {}
        }
        next = todo.pop();
    }
    deepest
}

/// Makes a value at most `levels` deep: what lies deeper is its JSON text instead. For what is written to be
/// read again, since readers of JSON go only so deep.
pub fn flatten(value: &mut Value, levels: usize) {
    if levels == 0 && depth(value) > 0 {
        *value = Value::String(value.to_string());
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| flatten(item, levels - 1)),
        Value::Object(map) => map.values_mut().for_each(|item| flatten(item, levels - 1)),
        _ => {}
    }
}

/// The parameter schema of a type whose fields are the parameters.
///
/// Unknown parameters are refused, `required` is always there, and number formats that only mean something to
/// Rust are left out.
pub fn parameters_of<A: JsonSchema>() -> Value {
    parameters_and_paths::<A>().0
}

/// The parameter schema of a type, and which of the parameters are paths.
pub fn parameters_and_paths<A: JsonSchema>() -> (Value, PathParameters) {
    let mut schema = marked_schema::<A>(SchemaSettings::draft2020_12());
    let paths = PathParameters::taken_from(&mut schema);
    if let Some(map) = schema.as_object_mut() {
        map.shift_remove("title");
        map.shift_remove("description");
        map.entry("type").or_insert_with(|| "object".into());
        map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        map.entry("required").or_insert_with(|| Value::Array(Vec::new()));
        // `additionalProperties` knows only the properties beside it, not those of the variants of an enum.
        let elsewhere = ["oneOf", "anyOf", "allOf", "$ref"].iter().any(|keyword| map.contains_key(*keyword));
        let others = if elsewhere { "unevaluatedProperties" } else { "additionalProperties" };
        if !map.contains_key("additionalProperties") {
            map.entry(others).or_insert(Value::Bool(false));
        }
    }
    (schema, paths)
}

/// The schema of a type as it is read.
pub fn schema_of<A: JsonSchema>() -> Value {
    root_schema::<A>(SchemaSettings::draft2020_12())
}

/// The schema of a type as it is written, which may have other fields than are read.
pub fn output_schema_of<A: JsonSchema>() -> Value {
    root_schema::<A>(SchemaSettings::draft2020_12().for_serialize())
}

fn root_schema<A: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut schema = marked_schema::<A>(settings);
    PathParameters::taken_from(&mut schema);
    schema
}

/// The schema of a type, in which paths are marked.
fn marked_schema<A: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.meta_schema = None);
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    strip_number_formats(&mut schema);
    schema
}

fn strip_number_formats(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let rust_only = matches!(
                map.get("format").and_then(Value::as_str),
                Some(
                    "int8"
                        | "int16"
                        | "int32"
                        | "int64"
                        | "int128"
                        | "int"
                        | "uint8"
                        | "uint16"
                        | "uint32"
                        | "uint64"
                        | "uint128"
                        | "uint"
                        | "float"
                        | "double"
                )
            );
            if rust_only {
                map.shift_remove("format");
            }
            map.values_mut().for_each(strip_number_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_number_formats),
        _ => {}
    }
}

/// Whether a place, or one inside it, is among the given ones.
fn holds(places: &BTreeSet<String>, place: &str) -> bool {
    let inside = format!("{place}/");
    let after = places.range::<str, _>((Bound::Included(inside.as_str()), Bound::Unbounded));
    places.contains(place) || after.into_iter().next().is_some_and(|next| next.starts_with(&inside))
}

/// Reads validated arguments into a type. What the schema cannot express (a date that does not exist) is an
/// error for the model, with its place.
pub fn read_arguments<A: DeserializeOwned>(arguments: Value) -> Result<A, ToolError> {
    A::deserialize(&arguments).map_err(|first| {
        let located = serde_path_to_error::deserialize::<_, A>(&arguments);
        let message = match located {
            Err(error) if error.path().to_string() != "." => {
                format!("`{}`: {}", error.path(), error.inner())
            }
            _ => first.to_string(),
        };
        ToolError::invalid(format!("the arguments do not fit:\n- {message}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: Value, arguments: Value, want: Result<Value, &str>) {
        let schema = Schema::compile(&schema).unwrap();
        let got = schema.validate(arguments, Strictness::Lenient);
        assert_eq!(got.as_ref().map_err(ToolError::message), want.as_ref().map_err(|text| *text));
    }

    fn object(properties: Value) -> Value {
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    }

    #[test]
    fn safe_readings_are_accepted() {
        let integer = object(json!({"x": {"type": "integer"}}));
        check(integer.clone(), json!({"x": "5"}), Ok(json!({"x": 5})));
        check(integer.clone(), json!({"x": 5.0}), Ok(json!({"x": 5})));
        check(integer.clone(), json!({"x": null}), Ok(json!({})));
        check(integer, json!({"x": true}), Err("the arguments do not fit:\n- `x`: true is not an integer"));
        let list = object(json!({"x": {"type": "array", "items": {"type": "number"}}}));
        check(list.clone(), json!({"x": "[1, 2.5]"}), Ok(json!({"x": [1, 2.5]})));
        check(list, json!({"x": ["1", "2.5"]}), Ok(json!({"x": [1, 2.5]})));
        let set = object(json!({"x": {"type": "array", "uniqueItems": true}}));
        check(set, json!({"x": ["b", "a", "a"]}), Ok(json!({"x": ["b", "a"]})));
        check(object(json!({"x": {"type": "boolean"}})), json!({"x": "True"}), Ok(json!({"x": true})));
        check(object(json!({"x": {"type": "string"}})), json!({"x": 5}), Ok(json!({"x": "5"})));
    }

    #[test]
    fn an_enum_and_a_struct_with_one_in_it_are_parameters_too() {
        #[derive(serde::Deserialize, JsonSchema)]
        #[serde(tag = "op", rename_all = "snake_case")]
        #[expect(dead_code, reason = "only read")]
        enum Op {
            Add { x: i64, y: i64 },
            Nop,
        }
        #[derive(serde::Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only read")]
        struct Numbered {
            n: i64,
            #[serde(flatten)]
            op: Op,
        }
        #[derive(serde::Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only read")]
        enum Outside {
            Add { x: i64 },
        }
        let add = json!({"op": "add", "x": 1, "y": 2});
        let mut numbered = add.clone();
        numbered["n"] = json!(1);
        for (schema, mut good) in [
            (parameters_of::<Op>(), add.clone()),
            (parameters_of::<Op>(), json!({"op": "nop"})),
            (parameters_of::<Numbered>(), numbered),
            (parameters_of::<Outside>(), json!({"Add": {"x": 1}})),
        ] {
            let schema = Schema::compile(&schema).unwrap();
            for strictness in [Strictness::Strict, Strictness::Lenient] {
                assert_eq!(schema.validate(good.clone(), strictness).unwrap(), good);
            }
            good["other"] = json!(1);
            let error = schema.validate(good, Strictness::Strict).unwrap_err();
            assert!(error.message().contains("other"), "{}", error.message());
        }
    }

    #[test]
    fn an_integer_that_lost_digits_is_refused() {
        let lost: Value = serde_json::from_str(r#"{"x": 123456789012345678901234}"#).unwrap();
        let refused = |x: Value| {
            let schema = object(json!({"x": x, "n": {"type": "integer"}}));
            let schema = Schema::compile(&schema).unwrap();
            let mut beside = lost.clone();
            beside["n"] = json!("7");
            [lost.clone(), beside].map(|given| schema.validate(given, Strictness::Lenient).is_err())
        };
        for integer in [
            json!({"type": "integer"}),
            json!({"type": ["integer", "null"]}),
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ] {
            assert_eq!(refused(integer.clone()), [true, true], "{integer}");
        }
        for number in [json!({"type": "number"}), json!({}), json!({"type": ["integer", "number"]})] {
            assert_eq!(refused(number.clone()), [false, false], "{number}");
        }
        let schema = Schema::compile(&object(json!({"x": {"type": "integer"}}))).unwrap();
        let message = schema.validate(lost, Strictness::Strict).unwrap_err();
        assert!(message.message().contains("e+23 is too large"), "{}", message.message());
    }

    #[test]
    fn a_union_that_takes_the_value_keeps_it() {
        let either = object(json!({"x": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}));
        check(either, json!({"x": "5"}), Ok(json!({"x": "5"})));
        let maybe = object(json!({"x": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}));
        check(maybe, json!({"x": "5"}), Ok(json!({"x": 5})));
    }

    #[test]
    fn what_was_read_leniently_is_no_problem() {
        let two = json!({"x": {"type": "integer"}, "y": {"type": "array", "items": {"type": "integer"}}});
        let schema = json!({"type": "object", "required": ["y"], "properties": two});
        let missing = "the arguments do not fit:\n- `y` is missing";
        check(schema.clone(), json!({"x": "1"}), Err(missing));
        let wrong = "the arguments do not fit:\n- `y[1]`: \"b\" is not an integer";
        check(schema, json!({"x": "1", "y": ["1", "b"]}), Err(wrong));
    }

    #[test]
    fn every_problem_is_reported_with_its_place() {
        let schema = json!({
            "type": "object", "required": ["y"], "additionalProperties": false,
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}, "l": {"items": {"enum": ["a", "b"]}}}
        });
        check(
            schema,
            json!({"x": "a", "q": 1, "l": ["a", "c"]}),
            Err(concat!(
                "the arguments do not fit:\n- `x`: \"a\" is not an integer\n- `l[1]`: \"c\" is not one of \"a\", \"b\"\n",
                "- `q` is not a parameter\n- `y` is missing"
            )),
        );
    }

    #[test]
    fn references_are_followed_and_foreign_ones_refused() {
        let schema = json!({
            "type": "object", "properties": {"n": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "properties": {
                "v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}
            }}}
        });
        check(
            schema,
            json!({"n": {"v": "1", "next": {"v": "2", "next": null}}}),
            Ok(json!({"n": {"v": 1, "next": {"v": 2, "next": null}}})),
        );
        let foreign =
            json!({"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:1/schema.json"}}});
        assert!(Schema::compile(&foreign).is_err());
        let file = json!({"type": "object", "properties": {"x": {"$ref": "file:///etc/passwd"}}});
        assert!(Schema::compile(&file).is_err());
    }

    #[test]
    fn deep_arguments_are_refused_before_anything_recurses() {
        let mut deep = json!(1);
        for _ in 0..300 {
            deep = Value::Array(vec![deep]);
        }
        let schema = Schema::compile(&json!({"type": "object"})).unwrap();
        let error = schema.validate(json!({"p": deep}), Strictness::Lenient).unwrap_err();
        assert_eq!(error.message(), "the arguments are nested more than 100 deep");
    }

    #[test]
    fn what_is_too_deep_becomes_text() {
        let mut value = json!({"a": [[1, [2]], 3], "b": {}});
        flatten(&mut value, 3);
        assert_eq!(value, json!({"a": [[1, "[2]"], 3], "b": {}}));
        flatten(&mut value, 1);
        assert_eq!(value, json!({"a": "[[1,\"[2]\"],3]", "b": "{}"}));
    }

    #[test]
    fn depth_counts_containers() {
        assert_eq!(
            [depth(&json!(1)), depth(&json!([])), depth(&json!({"a": [1]})), depth(&json!([[[]]]))],
            [0, 1, 2, 3]
        );
    }

    #[test]
    fn type_schemas_say_what_a_model_needs_and_no_more() {
        #[derive(serde::Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only the schema is looked at")]
        struct Arguments {
            /// How many.
            count: u32,
            ratio: Option<f32>,
        }
        assert_eq!(
            parameters_of::<Arguments>(),
            json!({
                "type": "object",
                "properties": {
                    "count": {"description": "How many.", "type": "integer", "minimum": 0},
                    "ratio": {"type": ["number", "null"]}
                },
                "required": ["count"],
                "additionalProperties": false
            })
        );
    }

    #[test]
    fn what_a_schema_cannot_say_is_still_an_error_with_a_place() {
        #[derive(Debug, serde::Deserialize)]
        struct Arguments {
            #[expect(dead_code, reason = "only the error is looked at")]
            when: Vec<jiff::civil::Date>,
        }
        let error = read_arguments::<Arguments>(json!({"when": ["2026-02-30"]})).unwrap_err();
        assert!(error.message().contains("`when[0]`"), "{}", error.message());
    }
}
