//! The wording of schema problems: which field, what was there, what was expected.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use crate::error::ToolError;
use crate::text::clip;

/// One error for the model from all problems of its arguments.
pub(super) fn problems<'a>(
    errors: impl Iterator<Item = ValidationError<'a>>,
    schema: &Value,
    most: usize,
) -> ToolError {
    let all: Vec<String> = errors.take(most * 50).map(|error| problem(&error)).collect();
    let mut message = "the arguments do not fit:".to_owned();
    for problem in all.iter().take(most) {
        message.push_str("\n- ");
        message.push_str(problem);
    }
    if all.len() > most {
        message.push_str(&format!("\n- and {} more problems", all.len() - most));
    }
    let error = ToolError::invalid(message);
    match parameter_list(schema) {
        Some(list) => error.hint(list),
        None => error.hint("this tool takes no parameters"),
    }
}

/// One problem in words.
pub(super) fn problem(error: &ValidationError<'_>) -> String {
    let place = place(error.instance_path().as_str());
    let value = clip(&error.instance().to_string(), 120);
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
            let options =
                options.as_array().map(|all| all.iter().map(Value::to_string).collect::<Vec<_>>().join(", "));
            at(format!("{value} is not one of {}", clip(&options.unwrap_or_default(), 400)))
        }
        ValidationErrorKind::Constant { expected_value } => at(format!("{value} is not {expected_value}")),
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
        _ => at(clip(&error.to_string(), 300)),
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
