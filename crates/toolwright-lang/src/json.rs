//! Values on their way out of a flow. Tools speak JSON; what JSON lacks leaves as text, as llm-workers prints it.

use serde_json::{Map, Number, Value as Json};
use toolwright_expr::Value;

/// How deep a value may be before the rest is left out.
const MAX_DEPTH: usize = 90;

/// The value as JSON. Tuples and sets become lists, structs objects; NaN, bytes, functions and large integers text.
pub(crate) fn from_value(value: &Value) -> Json {
    match value {
        Value::None => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => (*number).into(),
        Value::Str(text) => Json::String(text.to_string()),
        other => other.to_json().unwrap_or_else(|_| lossy(other, 0)),
    }
}

fn lossy(value: &Value, depth: usize) -> Json {
    if depth > MAX_DEPTH {
        return Json::String("...".to_owned());
    }
    let list = |items: &[Value]| Json::Array(items.iter().map(|item| lossy(item, depth + 1)).collect());
    match value {
        Value::None => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => (*number).into(),
        Value::Float(number) => {
            Number::from_f64(*number).map_or_else(|| Json::String(value.to_string()), Json::Number)
        }
        Value::List(items) => list(&items.snapshot()),
        Value::Tuple(items) => list(items),
        Value::Set(set) => list(&set.members()),
        Value::Dict(dict) => {
            let entries = dict.entries();
            Json::Object(
                entries
                    .iter()
                    .map(|(key, value)| (key.to_string(), lossy(value, depth + 1)))
                    .collect::<Map<_, _>>(),
            )
        }
        other => Json::String(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwright_expr::{Limits, Program};

    #[test]
    fn what_json_lacks_leaves_as_text() {
        let source =
            "{'a': (1, {2}), 'n': float('nan'), 'b': b'x', 'big': 10 ** 30, 's': struct(q=1), 1: None}";
        let value = Program::compile(source).unwrap().evaluate(&(), &Limits::default()).unwrap();
        assert_eq!(
            from_value(&value),
            json!({"a": [1, [2]], "n": "nan", "b": "b'x'", "big": "1000000000000000000000000000000",
                "s": "struct(q=1)", "1": null})
        );
    }
}
