//! Patterns in linear time.
//!
//! A pattern comes from anywhere, and an engine that goes back can take for ever with it: counting how often it goes
//! back does not bound what it does in between. The linear engine knows no look-ahead, but `^(?=A)(?!B)C` says the same
//! as three patterns without any: it matches `^A`, does not match `^B`, and matches `^C`. That covers what schemas
//! use it for. Any other look-around makes a schema that cannot be compiled.

use std::borrow::Cow;
use std::collections::HashMap;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::SchemaError;

/// What holds data and no schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];

/// A schema with the linear engine for its patterns.
pub(super) fn compiled(schema: &Value) -> Result<Validator, SchemaError> {
    let patterns = jsonschema::PatternOptions::regex().size_limit(1024 * 1024);
    let options = jsonschema::options().with_pattern_options(patterns);
    options.build(schema).map_err(|error| SchemaError(error.to_string()))
}

/// The names of fields that `patternProperties` speaks of, wherever it is in a schema.
pub(super) fn names(schema: &Value) -> Result<HashMap<String, Validator>, SchemaError> {
    let mut found = HashMap::new();
    let mut todo = vec![schema];
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(map) => {
                let patterns = map.get("patternProperties").and_then(Value::as_object);
                for pattern in patterns.into_iter().flat_map(|all| all.keys()) {
                    if !found.contains_key(pattern) {
                        found.insert(pattern.clone(), compiled(&json!({"pattern": pattern}))?);
                    }
                }
                todo.extend(map.values());
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The same schema without look-ahead at the start of patterns. `text` is its JSON text.
pub(super) fn without_look_ahead<'a>(schema: &'a Value, text: &str) -> Cow<'a, Value> {
    if !text.contains("^(?=") && !text.contains("^(?!") {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    replace(&mut schema);
    Cow::Owned(schema)
}

/// Recurses as deep as the schema, which is bounded.
fn replace(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(replace),
        Value::Object(map) => {
            for (keyword, part) in map.iter_mut() {
                if !DATA.contains(&keyword.as_str()) {
                    replace(part);
                }
            }
            let parts = map.get("pattern").and_then(Value::as_str).and_then(split);
            let all = map.get("allOf").is_none_or(Value::is_array);
            if let Some(parts) = parts.filter(|_| all) {
                map.shift_remove("pattern");
                if let Value::Array(all) = map.entry("allOf").or_insert_with(|| json!([])) {
                    all.extend(parts);
                }
            }
        }
        _ => {}
    }
}

/// What a pattern with look-ahead at its start demands, in schemas without.
fn split(pattern: &str) -> Option<Vec<Value>> {
    let mut rest = pattern.strip_prefix('^')?;
    let mut parts = Vec::new();
    while let Some(inner) = rest.strip_prefix("(?=").or_else(|| rest.strip_prefix("(?!")) {
        let end = plain(inner)?.find(|(_, c, depth)| *c == ')' && *depth == 0)?.0;
        let ahead = format!("^(?:{})", inner.get(..end)?);
        parts.push(if rest.starts_with("(?=") {
            json!({"pattern": ahead})
        } else {
            json!({"not": {"type": "string", "pattern": ahead}})
        });
        rest = inner.get(end + 1..)?;
    }
    let several = plain(rest)?.any(|(_, c, depth)| c == '|' && depth == 0);
    if parts.is_empty() || several || rest.starts_with(['*', '+', '?', '{']) {
        return None;
    }
    parts.push(json!({"pattern": format!("^(?:{rest})")}));
    Some(parts)
}

/// The characters that stand for something, and how many groups are open before each. Nothing for odd classes.
fn plain(pattern: &str) -> Option<impl Iterator<Item = (usize, char, usize)>> {
    if pattern.contains("[]") || pattern.contains("[^]") {
        return None;
    }
    let (mut escaped, mut in_class, mut depth) = (false, false, 0_usize);
    Some(pattern.char_indices().filter_map(move |(place, c)| {
        if std::mem::take(&mut escaped) {
            return None;
        }
        let before = depth;
        match c {
            '\\' => escaped = true,
            ']' => in_class = false,
            '[' => in_class = true,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth = depth.saturating_sub(1),
            _ => {}
        }
        (!in_class).then_some((place, c, before))
    }))
}

#[cfg(test)]
mod tests {
    use super::super::{Schema, Strictness};
    use super::*;

    fn check(pattern: &str, good: &[&str], bad: &[&str]) {
        let schema = json!({"type": "object", "properties": {"a": {"pattern": pattern}}});
        let schema = Schema::compile(&schema).unwrap();
        let fits = |text: &str| schema.validate(json!({"a": text}), Strictness::Strict).is_ok();
        for text in good {
            assert!(fits(text), "{pattern} and {text}");
        }
        for text in bad {
            assert!(!fits(text), "{pattern} and {text}");
        }
        assert!(schema.validate(json!({"a": 5}), Strictness::Strict).is_ok());
    }

    #[test]
    fn look_ahead_at_the_start_is_understood() {
        check("^(?!foo).*$", &["bar", "", "afoo"], &["foo", "foobar"]);
        check(r"^(?=.*[A-Z])(?=.*\d).{4,}$", &["Abc1"], &["abc1", "Abcd", "A1"]);
        check(r"^(?!(?:a|b)\)[)]x)[a-z)]+$", &["ab", "a))"], &["a))x", "b))x", "1"]);
        check("^(?!a|b)(?!c)", &["d", ""], &["a", "bb", "c"]);
    }

    #[test]
    fn other_look_around_is_refused_with_the_reason() {
        for pattern in ["a(?!b)", "(?<=a)b", "^(?!a)b|c", "^(?!a(?!b))", r"^(a)\1$", "^(?!a)*b"] {
            let schema = json!({"properties": {"a": {"pattern": pattern}}});
            let reason = Schema::compile(&schema).unwrap_err().to_string();
            assert!(reason.contains("regex") || reason.contains("pattern"), "{pattern}: {reason}");
        }
    }

    #[test]
    fn the_schema_stays_as_it_was_given_and_data_is_not_touched() {
        let schema = json!({
            "properties": {"a": {"pattern": "^(?!b)", "allOf": [{"maxLength": 3}]}, "d": {"const": {"pattern": "^(?!b)"}}}
        });
        let compiled = Schema::compile(&schema).unwrap();
        assert_eq!(compiled.json(), &schema);
        assert!(compiled.problems(&json!({"a": "abc", "d": {"pattern": "^(?!b)"}})).is_empty());
        assert_eq!(compiled.problems(&json!({"a": "bbbb"})).len(), 2);
    }
}
