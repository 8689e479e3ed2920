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
