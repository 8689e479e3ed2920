//! Values on their way out of a flow. Tools speak JSON; what JSON lacks leaves as text, as llm-workers prints
//! it.

use serde_json::Value as Json;
use toolwright_expr::{Error, EvalLimits, Value};

/// The value as JSON. Tuples, sets and iterators become lists, structs objects; NaN, bytes, functions and
/// large integers text. An iterator is used up by it; `limits` are for all of them together, as for one
/// expression.
pub(crate) fn from_value(value: &Value, limits: &EvalLimits) -> Result<Json, Error> {
    Ok(match value {
        Value::None => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => (*number).into(),
        Value::Str(text) => Json::String(text.to_string()),
        other => other.to_lossy_json(limits)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwright_core::{ErrorKind, ToolError};
    use toolwright_expr::Program;

    fn json_of(source: &str) -> Result<Json, ToolError> {
        let limits = EvalLimits::default();
        let json = from_value(&Program::compile(source).unwrap().evaluate(&(), &limits).unwrap(), &limits);
        json.map_err(|error| crate::error::stays(error, None))
    }

    #[test]
    fn what_json_lacks_leaves_as_text() {
        let source =
            "{'a': (1, {2}), 'n': float('nan'), 'b': b'x', 'big': 10 ** 30, 's': struct(q=1), 1: None}";
        assert_eq!(
            json_of(source).unwrap(),
            json!({"a": [1, [2]], "n": "nan", "b": "b'x'", "big": "1000000000000000000000000000000",
                "s": {"q": 1}, "1": null})
        );
    }

    #[test]
    fn what_is_too_large_or_fails_on_its_way_is_an_error() {
        let error = json_of("[[[[0] * 100] * 100] * 100] * 100").unwrap_err();
        let told = "a value cannot leave the flow: it takes more than 128 MiB of memory";
        assert_eq!((error.kind(), error.message()), (ErrorKind::Limit, told));
        let error = json_of("[(n for n in range(1000) if n < 0) for i in range(1000)]").unwrap_err();
        let told = "a value cannot leave the flow: the evaluation needs more than 2000000 steps";
        assert_eq!((error.kind(), error.message()), (ErrorKind::Limit, told));
        assert_eq!(error.hint_text(), Some("`limits: {steps: ...}` in the file allows more"));
        let error = json_of("(1 // n for n in [0])").unwrap_err();
        assert_eq!(
            (crate::class_of(&error), error.message()),
            ("ToolException", "a value cannot leave the flow: integer division or modulo by zero")
        );
    }
}
