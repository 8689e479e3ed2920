use serde_json::json;

use super::*;

fn changes(schema: Value, dialect: Dialect) -> Vec<(String, Effect)> {
    let adapted = adapt(&schema, dialect).unwrap();
    adapted
        .changes
        .into_iter()
        .map(|change| (format!("{}: {}", change.at, change.what), change.effect))
        .collect()
}

#[test]
fn whatever_gets_looser_or_tighter_is_reported_with_its_place() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "pattern": "^a", "default": "a"},
        "b": {"oneOf": [{"type": "integer"}, {"type": "null"}]},
    }, "required": ["a"]});
    assert_eq!(
        changes(schema.clone(), Dialect::AnthropicStrict),
        [
            ("/properties/a: `pattern` is only described".to_owned(), Effect::Looser),
            ("/properties/b: `oneOf` becomes `anyOf`".to_owned(), Effect::Looser),
            (": only the named properties remain".to_owned(), Effect::Closed),
        ]
    );
    assert_eq!(
        changes(schema, Dialect::OpenAiStrict),
        [
            (": only the named properties remain".to_owned(), Effect::Closed),
            ("/properties/b: the vendor may refuse `oneOf`".to_owned(), Effect::Refused),
            (": `b` becomes required".to_owned(), Effect::Tighter),
        ]
    );
}

#[test]
fn a_schema_that_fits_is_left_alone() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "description": "n"}},
        "required": ["a"], "additionalProperties": false});
    for dialect in [Dialect::AnthropicStrict, Dialect::OpenAiStrict] {
        assert_eq!(adapt(&schema, dialect), Ok(Adapted { schema: schema.clone(), changes: Vec::new() }));
    }
}

#[test]
fn references_without_end_are_an_error_and_not_a_loop() {
    let schema = json!({"$ref": "#/$defs/A", "description": "d",
        "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A", "description": "again"}}}}});
    assert!(adapt(&schema, Dialect::OpenAiStrict).is_err());
    let missing = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/B", "title": "t"}}});
    let error = adapt(&missing, Dialect::OpenAiStrict).unwrap_err();
    assert_eq!(
        (error.at.as_str(), error.problem.as_str()),
        ("/properties/a", "there is nothing at \"#/$defs/B\"")
    );
    let deep = (0..500).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    for dialect in [Dialect::AnthropicStrict, Dialect::OpenAiStrict] {
        assert!(adapt(&deep, dialect).is_err());
    }
}

#[test]
fn a_union_at_the_root_is_joined_within_bounds() {
    let object = |names: std::ops::Range<usize>| -> Value {
        let properties: Map<String, Value> =
            names.map(|name| (format!("p{name}"), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": properties, "required": ["p0"]})
    };
    let size = |adapted: &Adapted| adapted.schema["properties"].as_object().map_or(0, Map::len);
    // The same variant again and again: a table of all by all took half a minute.
    let same = json!({"anyOf": vec![json!({"$ref": "#/$defs/A"}); 5000], "$defs": {"A": object(0..900)}});
    let adapted = plain(&same);
    assert_eq!((size(&adapted), &adapted.schema["required"]), (900, &json!(["p0"])));
    let many: Vec<Value> = (0..300).map(|from| object(from..from + 300)).collect();
    let adapted = plain(&json!({"type": "object", "description": "d", "anyOf": many}));
    assert_eq!(adapted.schema, json!({"type": "object", "description": "d"}));
    assert_eq!(adapted.changes[0].what, "`anyOf` is too large to be joined, and is left out");
    // Different schemas of one property are one list.
    let one = |kind: &str| json!({"properties": {"p": {"type": kind}}});
    let adapted = plain(&json!({"oneOf": [one("string"), one("integer"), one("string"), one("boolean")]}));
    let kinds = json!([{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]);
    assert_eq!(adapted.schema["properties"], json!({"p": {"anyOf": kinds}}));
    let own = json!({"properties": {"p": {"minLength": 1}}, "allOf": [one("string"), one("string")]});
    let rules = json!({"p": {"allOf": [{"minLength": 1}, {"type": "string"}]}});
    assert_eq!(plain(&own).schema["properties"], rules);
}
