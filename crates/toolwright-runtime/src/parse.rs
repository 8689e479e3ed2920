//! Reading the arguments a model wrote.
//!
//! Most come as a JSON object and pass untouched. Text is read leniently: code fences are taken off, a stray
//! quote after a complete object is ignored, and bare text becomes the first parameter. Text that was cut off
//! is never completed by guessing, because half a command is not the command that was meant.

use serde_json::{Map, Value};
use toolwright_core::schema::{MAX_DEPTH, depth, lossy_integer, repeated_key};
use toolwright_core::{ToolCall, ToolError, ToolSpec, text};
use toolwright_yaml::YamlDocument;

/// How much of unreadable text is shown to the model again.
const SHOWN: usize = 2048;

/// The largest bare text that is read as YAML; longer text is taken as it is.
const MAX_YAML: usize = 64 * 1024;

/// The arguments as an object. `tool` is the tool that was found, if any.
pub(crate) fn arguments(given: Value, tool: Option<&ToolSpec>) -> Result<Value, ToolError> {
    match given {
        Value::Object(_) => Ok(given),
        Value::Null => Ok(Value::Object(Map::new())),
        Value::String(text) => from_text(&text, tool),
        other => Err(ToolError::invalid(format!(
            "the arguments must be a JSON object, not {}",
            text::clip(&other.to_string(), 200)
        ))),
    }
}

fn from_text(given: &str, tool: Option<&ToolSpec>) -> Result<Value, ToolError> {
    let text = unfence(given.trim());
    if text.starts_with('{') {
        return from_object_text(text, given);
    }
    // The JSON of nothing, which some models write for a call without arguments.
    if text.is_empty() || text == "null" {
        return Ok(Value::Object(Map::new()));
    }
    let first = tool.and_then(|tool| tool.parameter_names().next().map(|name| (tool, name)));
    let Some((tool, first)) = first else { return Ok(Value::Object(Map::new())) };
    let value = bare(text, &kinds(tool, first));
    if depth(&value) >= MAX_DEPTH {
        return Err(too_deep());
    }
    Ok(Value::Object(Map::from_iter([(first.to_owned(), value)])))
}

/// Takes off a Markdown code fence around the whole text.
fn unfence(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|rest| rest.trim_end().strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, body)) if language.trim().chars().all(|c| c.is_ascii_alphanumeric()) => body.trim(),
        _ => text,
    }
}

fn from_object_text(text: &str, given: &str) -> Result<Value, ToolError> {
    if let Some(number) = lossy_integer(text) {
        let number = text::clip(number, 100);
        return Err(ToolError::invalid(format!("the number {number} has more digits than are kept")).hint(
            "integers have at most 64 bits here; send a larger one as text where the tool takes text",
        ));
    }
    if let Some(key) = repeated_key(text) {
        let key = text::clip(&key, 100);
        return Err(ToolError::invalid(format!("the key `{key}` is in the arguments twice"))
            .hint("send each argument once"));
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>();
    let problem = match stream.next() {
        Some(Ok(map)) => {
            let rest = text.get(stream.byte_offset()..).unwrap_or_default();
            if rest.chars().all(|c| c == '"' || c.is_whitespace()) {
                let object = Value::Object(map);
                return if depth(&object) > MAX_DEPTH { Err(too_deep()) } else { Ok(object) };
            }
            format!("there is more text after the object: {}", text::clip(rest, 80))
        }
        Some(Err(error)) if error.is_eof() => {
            return Err(ToolError::invalid(format!("the arguments were cut off:\n\n{}", shown(given))).hint(
                "send the whole call again; if it is long, split the work into several shorter calls",
            ));
        }
        Some(Err(error)) if error.to_string().starts_with("recursion limit") => return Err(too_deep()),
        Some(Err(error)) => error.to_string(),
        None => "there is nothing".to_owned(),
    };
    Err(ToolError::invalid(format!("the arguments are not JSON ({problem}):\n\n{}", shown(given)))
        .hint("send one JSON object, with keys and text in double quotes"))
}

/// Makes arguments that are deeper than any tool takes the text they are, so that what holds them (a saved
/// state, say) can be read again: a reader of JSON goes only so deep.
pub(crate) fn deep_as_text(calls: &mut [ToolCall]) {
    for call in calls.iter_mut().filter(|call| depth(&call.arguments) > MAX_DEPTH) {
        call.arguments = Value::String(call.arguments.to_string());
    }
}

fn too_deep() -> ToolError {
    ToolError::invalid(format!("the arguments are nested more than {MAX_DEPTH} deep"))
}

/// The start and end of text that could not be read.
fn shown(given: &str) -> String {
    if given.len() <= SHOWN {
        return given.to_owned();
    }
    let left_out = given.len() - SHOWN;
    format!(
        "{}\n[… {left_out} bytes left out …]\n{}",
        text::head(given, SHOWN / 2),
        text::tail(given, SHOWN / 2)
    )
}

/// What kinds of values a parameter takes, as far as its schema says.
fn kinds<'a>(tool: &'a ToolSpec, parameter: &str) -> Vec<&'a str> {
    let followed = |schema: &'a Value| {
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
        reference.and_then(|pointer| tool.parameters.pointer(pointer)).unwrap_or(schema)
    };
    let schema = tool.parameters.get("properties").and_then(|all| all.get(parameter)).map(followed);
    let branches =
        schema.into_iter().flat_map(|schema| ["anyOf", "oneOf"].map(|keyword| schema.get(keyword)));
    let branches = branches.flatten().filter_map(Value::as_array).flatten().map(followed);
    let mut kinds = Vec::new();
    for schema in schema.into_iter().chain(branches) {
        match schema.get("type") {
            Some(Value::String(kind)) => kinds.push(kind.as_str()),
            Some(Value::Array(all)) => kinds.extend(all.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    kinds
}

/// Text that is not an object, for the first parameter: JSON if it is JSON, plain text where text is wanted,
/// else what YAML makes of it. Where a list or an object may be given as well as text, JSON of that kind is
/// one.
fn bare(text: &str, kinds: &[&str]) -> Value {
    let wants_text = kinds.contains(&"string");
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let is_meant = match &value {
            Value::String(_) => true,
            Value::Array(_) => !wants_text || kinds.contains(&"array"),
            Value::Object(_) => !wants_text || kinds.contains(&"object"),
            _ => !wants_text,
        };
        if is_meant {
            return value;
        }
    }
    if wants_text || text.len() > MAX_YAML {
        return Value::String(text.to_owned());
    }
    YamlDocument::read_plain("arguments", text)
        .map_or_else(|_| Value::String(text.to_owned()), |document| document.to_json())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(kind: &str) -> ToolSpec {
        let mut spec = ToolSpec::new("one", "One.");
        spec.parameters =
            json!({"type": "object", "properties": {"p": {"type": kind}, "q": {"type": "integer"}}});
        spec
    }

    fn check(text: &str, want: Result<Value, &str>) {
        check_for("object", text, want);
    }

    fn check_for(kind: &str, text: &str, want: Result<Value, &str>) {
        check_with(&tool(kind), text, want);
    }

    fn check_with(tool: &ToolSpec, text: &str, want: Result<Value, &str>) {
        let got = arguments(Value::String(text.to_owned()), Some(tool));
        match (got, want) {
            (Ok(got), Ok(want)) => assert_eq!(got, want, "{text}"),
            (Err(got), Err(want)) => assert!(got.message().starts_with(want), "{text}: {}", got.message()),
            (got, want) => panic!("{text}: got {got:?}, wanted {want:?}"),
        }
    }

    #[test]
    fn objects_are_read_with_the_mistakes_models_make() {
        check(r#"{"p": 1}"#, Ok(json!({"p": 1})));
        check("```json\n{\"p\": 1}\n```", Ok(json!({"p": 1})));
        check("```\n{\"p\": 1}\n```", Ok(json!({"p": 1})));
        check(r#"{}"""#, Ok(json!({})));
        check("{\"p\":1}\"\n", Ok(json!({"p": 1})));
    }

    #[test]
    fn broken_objects_are_errors_and_cut_off_ones_say_so() {
        check(r#"{"p":"a"#, Err("the arguments were cut off"));
        check("{\"p\":", Err("the arguments were cut off"));
        check("{'p': 1}", Err("the arguments are not JSON"));
        check("{}'", Err("the arguments are not JSON"));
        check(r#"{"p":1}{"p":2}"#, Err("the arguments are not JSON"));
        check(&format!("{{\"p\":{}{}}}", "[".repeat(100), "]".repeat(100)), Err("the arguments are nested"));
        check(
            &format!("{{\"p\":{}{}}}", "[".repeat(5000), "]".repeat(5000)),
            Err("the arguments are nested"),
        );
    }

    #[test]
    fn bare_text_becomes_the_first_parameter() {
        check("hello world", Ok(json!({"p": "hello world"})));
        check("42", Ok(json!({"p": 42})));
        check("true", Ok(json!({"p": true})));
        check("a: 1", Ok(json!({"p": {"a": 1}})));
        check("\"hi\"", Ok(json!({"p": "hi"})));
        check("foo: bar: baz", Ok(json!({"p": "foo: bar: baz"})));
        check("[{\"p\":1}]", Ok(json!({"p": [{"p": 1}]})));
        check("", Ok(json!({})));
        check_for("string", "a: 1", Ok(json!({"p": "a: 1"})));
        check_for("string", "42", Ok(json!({"p": "42"})));
    }

    #[test]
    fn text_that_may_be_absent_is_text_all_the_same() {
        let with = |schema: Value| {
            let mut spec = ToolSpec::new("one", "One.");
            spec.parameters = json!({
                "type": "object", "properties": {"p": schema}, "$defs": {"t": {"type": "string"}}
            });
            spec
        };
        for schema in [
            json!({"type": ["string", "null"]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"oneOf": [{"type": "null"}, {"$ref": "#/$defs/t"}]}),
            json!({"$ref": "#/$defs/t"}),
        ] {
            for text in ["1.10", "true", "[1]", "a: 1"] {
                check_with(&with(schema.clone()), text, Ok(json!({"p": text})));
            }
            check_with(&with(schema.clone()), " null\n", Ok(json!({})));
            check_with(&with(schema.clone()), "\"null\"", Ok(json!({"p": "null"})));
            check_with(&with(schema), "\"hi\"", Ok(json!({"p": "hi"})));
        }
        let either = with(json!({"anyOf": [{"type": "string"}, {"type": "array"}]}));
        check_with(&either, "[1]", Ok(json!({"p": [1]})));
        check_with(&either, "1.10", Ok(json!({"p": "1.10"})));
    }

    #[test]
    fn other_values_are_refused_and_nothing_means_no_arguments() {
        assert_eq!(arguments(Value::Null, None).unwrap(), json!({}));
        assert!(arguments(json!([1]), None).is_err());
        assert_eq!(arguments(json!("hello"), None).unwrap(), json!({}));
    }

    /// F23, JS-01: a rule, a person and a tool must not see different values.
    #[test]
    fn a_key_that_is_there_twice_is_refused() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"o":{"a":1,"a":1}}"#, "```json\n{\"a\":1,\"a\":2}\n```"] {
            let error = arguments(Value::String(text.to_owned()), None).unwrap_err();
            assert_eq!(error.kind(), toolwright_core::ErrorKind::Parsing, "{text}");
        }
        assert!(arguments(Value::String(r#"{"a":{"a":1}}"#.to_owned()), None).is_ok());
    }
}
