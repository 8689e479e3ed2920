//! Types as words, as definitions and docstrings write them.

use serde_json::{Value, json};

/// How deep types may be nested.
const MAX_DEPTH: usize = 8;

/// The schema of a type word, such as `int`, `list[str]` or `Optional[float]`; `None` when it is not known.
pub(crate) fn schema_of(word: &str) -> Option<Value> {
    at_depth(word.trim(), MAX_DEPTH)
}

fn at_depth(word: &str, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    if let Some(choices) = word.strip_prefix("literal:") {
        return Some(json!({"type": "string", "enum": choices.split('|').collect::<Vec<_>>()}));
    }
    let parts = split(word, '|');
    if parts.len() > 1 {
        let others: Vec<&str> = parts.into_iter().map(str::trim).filter(|part| !is_null(part)).collect();
        let schemas: Vec<Value> = others.iter().map(|part| at_depth(part, depth)).collect::<Option<_>>()?;
        return Some(match <[Value; 1]>::try_from(schemas) {
            Ok([schema]) => schema,
            Err(schemas) => json!({"anyOf": schemas}),
        });
    }
    if let Some(item) = word.strip_suffix("[]") {
        return Some(json!({"type": "array", "items": at_depth(item, depth)?}));
    }
    if let Some((outer, inner)) = word.strip_suffix(']').and_then(|word| word.split_once('[')) {
        let name = outer.rsplit('.').next().unwrap_or(outer).to_ascii_lowercase();
        return match name.as_str() {
            "list" | "sequence" | "iterable" | "set" => {
                Some(json!({"type": "array", "items": at_depth(inner.trim(), depth)?}))
            }
            "dict" | "mapping" => {
                let value = split(inner, ',').into_iter().nth(1)?;
                Some(json!({"type": "object", "additionalProperties": at_depth(value.trim(), depth)?}))
            }
            "optional" => at_depth(inner.trim(), depth),
            "union" => {
                let schemas: Vec<Value> = split(inner, ',')
                    .into_iter()
                    .map(|part| at_depth(part.trim(), depth))
                    .collect::<Option<_>>()?;
                Some(json!({"anyOf": schemas}))
            }
            "literal" => {
                let values: Vec<Value> =
                    split(inner, ',').into_iter().map(|part| literal(part.trim())).collect();
                Some(match values.iter().all(Value::is_string) {
                    true => json!({"type": "string", "enum": values}),
                    false => json!({"enum": values}),
                })
            }
            _ => None,
        };
    }
    let kind = match word.rsplit('.').next().unwrap_or(word).to_ascii_lowercase().as_str() {
        "str" | "string" | "text" | "path" => "string",
        "int" | "integer" => "integer",
        "float" | "number" => "number",
        "bool" | "boolean" => "boolean",
        "list" | "array" | "set" | "tuple" => "array",
        "dict" | "object" | "mapping" => "object",
        "any" | "*" => return Some(json!({})),
        _ => return None,
    };
    Some(json!({"type": kind}))
}

fn is_null(word: &str) -> bool {
    ["None", "null", "undefined"].contains(&word)
}

/// A literal of Python or JavaScript as JSON; what is not one is text.
pub(crate) fn literal(text: &str) -> Value {
    let quoted = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    match (quoted, text) {
        (Some(text), _) => text.into(),
        (None, "True") => true.into(),
        (None, "False") => false.into(),
        (None, "None") => Value::Null,
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

/// The parts between separators that stand in no bracket and no quotes.
pub(crate) fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '(' | '{' | '<') => depth += 1,
            (None, ']' | ')' | '}' | '>') => depth = depth.saturating_sub(1),
            (None, _) if letter == separator && depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_words_are_schemas() {
        for (word, schema) in [
            ("str", json!({"type": "string"})),
            ("Optional[int]", json!({"type": "integer"})),
            ("int | None", json!({"type": "integer"})),
            ("typing.List[str]", json!({"type": "array", "items": {"type": "string"}})),
            ("string[]", json!({"type": "array", "items": {"type": "string"}})),
            ("Literal['a', \"b\"]", json!({"type": "string", "enum": ["a", "b"]})),
            ("Literal[1, 'a']", json!({"enum": [1, "a"]})),
            (
                "dict[str, list[int]]",
                json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}),
            ),
            ("literal:a|b", json!({"type": "string", "enum": ["a", "b"]})),
            ("'a'|'b'", Value::Null),
            ("Thing", Value::Null),
            (&"list[".repeat(100), Value::Null),
        ] {
            assert_eq!(schema_of(word).unwrap_or_default(), schema, "{word}");
        }
    }
}
