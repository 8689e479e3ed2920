//! The wording of schema problems: which field, what was there, what was expected.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use crate::error::ToolError;
use crate::text::clip;

/// The words for a value whose problems cannot be told.
pub(super) const UNEXPLAINED: &str =
    "it does not fit the schema, which has too many ways to read it to say where; try a smaller part of it";

/// How much of a value is shown.
const SHOWN: usize = 120;

/// One error for the model from all problems of its arguments.
pub(super) fn problems<'a>(
    errors: impl Iterator<Item = ValidationError<'a>>,
    schema: &Value,
    most: usize,
) -> ToolError {
    let mut errors = errors.fuse();
    let mut message = "the arguments do not fit:".to_owned();
    for error in errors.by_ref().take(most) {
        message.push_str("\n- ");
        message.push_str(&problem(&error));
    }
    match errors.count() {
        0 => {}
        more => message.push_str(&format!("\n- and {more} more problems")),
    }
    hinted(ToolError::invalid(message), schema)
}

/// The error for arguments whose problems cannot be told.
pub(super) fn unexplained(schema: &Value) -> ToolError {
    hinted(ToolError::invalid(format!("the arguments do not fit:\n- {UNEXPLAINED}")), schema)
}

fn hinted(error: ToolError, schema: &Value) -> ToolError {
    match parameter_list(schema) {
        Some(list) => error.hint(list),
        None if takes_nothing(schema) => error.hint("this tool takes no parameters"),
        None => error,
    }
}

/// Whether a schema without properties leaves no other way to give any.
fn takes_nothing(schema: &Value) -> bool {
    let others =
        ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"];
    schema.get("additionalProperties") == Some(&Value::Bool(false))
        && others.iter().all(|keyword| schema.get(keyword).is_none())
}

/// One problem in words.
pub(super) fn problem(error: &ValidationError<'_>) -> String {
    let place = place(error.instance_path().as_str());
    let value = shown(error.instance(), SHOWN);
    let at = |text: String| if place.is_empty() { text } else { format!("`{place}`: {text}") };
    let inside = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("`{}` is missing", inside(property.as_str().unwrap_or("?")))
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<_> =
                unexpected.iter().take(10).map(|name| format!("`{}`", inside(&clip(name, 80)))).collect();
            let verb = if names.len() == 1 { "is not a parameter" } else { "are not parameters" };
            format!("{} {verb}", names.join(", "))
        }
        ValidationErrorKind::Type { kind } => at(format!("{value} is not {}", type_words(kind))),
        ValidationErrorKind::Enum { options } => {
            // No more options than can be shown.
            let options = options.as_array().into_iter().flatten().take(200);
            let options: Vec<String> = options.map(|option| shown(option, 400)).collect();
            at(format!("{value} is not one of {}", clip(&options.join(", "), 400)))
        }
        ValidationErrorKind::Constant { expected_value } => {
            at(format!("{value} is not {}", shown(expected_value, 400)))
        }
        ValidationErrorKind::Minimum { limit } => at(format!("{value} is less than {limit}")),
        ValidationErrorKind::Maximum { limit } => at(format!("{value} is more than {limit}")),
        ValidationErrorKind::ExclusiveMinimum { limit } => at(format!("{value} is not more than {limit}")),
        ValidationErrorKind::ExclusiveMaximum { limit } => at(format!("{value} is not less than {limit}")),
        ValidationErrorKind::MinLength { limit } => at(format!("{value} is shorter than {limit} characters")),
        ValidationErrorKind::MaxLength { limit } => at(format!("{value} is longer than {limit} characters")),
        ValidationErrorKind::MinItems { limit } => at(format!("there are fewer than {limit} items")),
        ValidationErrorKind::MaxItems { limit } => at(format!("there are more than {limit} items")),
        ValidationErrorKind::Pattern { pattern } => at(format!("{value} does not match `{pattern}`")),
        ValidationErrorKind::UniqueItems => at("the items are not all different".to_owned()),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let reasons: Vec<String> =
                context.iter().filter_map(|branch| branch.first()).take(6).map(problem).collect();
            at(format!("{value} fits none of the alternatives ({})", clip(&reasons.join("; "), 400)))
        }
        ValidationErrorKind::FalseSchema => at(format!("{value} is not allowed here")),
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            at(format!("{value} fits more than one of the alternatives, and must fit exactly one"))
        }
        ValidationErrorKind::Contains => {
            let rule = error.schema_path().as_str().rsplit('/').next().unwrap_or_default();
            at(match rule {
                "maxContains" => "the number of items of the wanted kind is not right".to_owned(),
                "minContains" => "there are too few items of the wanted kind".to_owned(),
                _ => "there is no item of the wanted kind".to_owned(),
            })
        }
        ValidationErrorKind::PropertyNames { error } => {
            at(format!("a name is not allowed: {}", problem(error)))
        }
        ValidationErrorKind::Not { schema } => {
            at(format!("{value} is what must not be: {}", shown(schema, 200)))
        }
        // The value itself may be large, so it is not part of the words.
        _ => at(clip(&error.masked_with(value).to_string(), 400)),
    }
}

/// The start of a value's JSON text. No more of it is made than is shown.
fn shown(value: &Value, bytes: usize) -> String {
    let mut start = Start { text: Vec::new(), most: bytes + 4 };
    // An error only says that there was more.
    let _ = serde_json::to_writer(&mut start, value);
    clip(&String::from_utf8_lossy(&start.text), bytes)
}

/// Keeps the first bytes that are written and refuses the rest.
struct Start {
    text: Vec<u8>,
    most: usize,
}

impl std::io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = bytes.len().min(self.most - self.text.len());
        self.text.extend(bytes.iter().take(room));
        Ok(room)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn type_words(kind: &TypeKind) -> String {
    let word = |name: &str| match name {
        "integer" => "an integer",
        "array" => "an array",
        "object" => "an object",
        "number" => "a number",
        "string" => "a string",
        "boolean" => "true or false",
        _ => "null",
    };
    match kind {
        TypeKind::Single(kind) => word(kind.as_str()).to_owned(),
        TypeKind::Multiple(kinds) => {
            kinds.iter().map(|kind| word(kind.as_str())).collect::<Vec<_>>().join(" or ")
        }
    }
}

/// `/a/0/b~1c` as people write it: `a[0].b/c`.
fn place(pointer: &str) -> String {
    let mut out = String::new();
    for part in pointer.split('/').skip(1) {
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push_str(&format!("[{part}]"));
            continue;
        }
        if !out.is_empty() {
            out.push('.');
        }
        out.push_str(&clip(&part.replace("~1", "/").replace("~0", "~"), 80));
    }
    out
}

/// The parameters in one line: `x: integer (required), y: string = "a"`.
fn parameter_list(schema: &Value) -> Option<String> {
    let properties = schema.get("properties")?.as_object().filter(|map| !map.is_empty())?;
    let required = schema.get("required").and_then(Value::as_array);
    let list: Vec<String> = properties
        .iter()
        .map(|(name, property)| {
            let kind = match property.get("type") {
                Some(Value::String(kind)) => format!(": {kind}"),
                Some(Value::Array(kinds)) => {
                    format!(": {}", kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "))
                }
                _ => String::new(),
            };
            let needed = required.is_some_and(|names| names.iter().any(|known| known == name));
            let needed = if needed { " (required)" } else { "" };
            let default = property.get("default").map(|value| format!(" = {value}")).unwrap_or_default();
            format!("{name}{kind}{needed}{default}")
        })
        .collect();
    Some(format!("the parameters are: {}", clip(&list.join(", "), 1000)))
}

#[cfg(test)]
mod tests {
    use super::super::{Schema, Strictness};
    use super::*;
    use serde_json::json;

    fn refused(schema: Value, given: Value) -> ToolError {
        Schema::compile(&schema).unwrap().validate(given, Strictness::Lenient).unwrap_err()
    }

    #[test]
    fn hints_say_nothing_that_is_not_so() {
        let hint = |schema: Value| refused(schema, json!({"y": 1})).info().hint;
        let none = json!({"type": "object", "additionalProperties": false});
        assert_eq!(hint(none).as_deref(), Some("this tool takes no parameters"));
        let all = json!({"type": "object", "allOf": [{"properties": {"x": {}}, "required": ["x"]}]});
        assert_eq!(hint(all), None);
        let pattern =
            json!({"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": false});
        assert_eq!(hint(pattern), None);
    }

    #[test]
    fn how_many_items_are_wanted_is_told_as_it_is() {
        let check = |rule: Value, want: &str| {
            let error =
                refused(json!({"type": "object", "properties": {"l": rule}}), json!({"l": [1, 2, 3]}));
            assert_eq!(error.message(), format!("the arguments do not fit:\n- `l`: {want}"));
        };
        let integer = json!({"type": "integer"});
        check(
            json!({"contains": integer, "maxContains": 2}),
            "the number of items of the wanted kind is not right",
        );
        check(json!({"contains": {"type": "string"}}), "there is no item of the wanted kind");
        check(json!({"contains": integer, "minContains": 4}), "there are too few items of the wanted kind");
    }

    #[test]
    fn large_values_are_shown_by_their_start() {
        assert_eq!(shown(&json!({"a": ["é", 1]}), 100), "{\"a\":[\"é\",1]}");
        assert_eq!(shown(&json!("é".repeat(1_000_000)), 4), "\"é…");
        assert_eq!(shown(&json!("abc"), 5), "\"abc\"");
        let error = refused(json!({"type": "object", "maxProperties": 0}), json!({"a": "x".repeat(100_000)}));
        assert!(error.message().len() < 600, "{}", error.message());
    }
}
