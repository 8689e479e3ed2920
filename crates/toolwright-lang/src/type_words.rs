//! Kinds of JSON values, as far as they are known before anything runs: what a name holds, and what a
//! parameter takes.

use serde_json::Value as Json;
use toolwright_expr::{TemplatePiece, Value};

use crate::input::Type;
use crate::template::TemplateTree;

/// A kind in JSON Schema's words.
pub(crate) type TypeWord = &'static str;

/// The kind of a parameter's type. Text is left out: it may be read as almost anything.
pub(crate) fn of_type(kind: &Type) -> Option<TypeWord> {
    match kind {
        Type::Integer => Some("integer"),
        Type::Number => Some("number"),
        Type::Boolean => Some("boolean"),
        Type::List(_) => Some("array"),
        Type::Dict(_) => Some("object"),
        Type::Text | Type::Literal(_) | Type::Any => None,
    }
}

/// The kind of a value that is there already.
pub(crate) fn of_value(value: &Value) -> Option<TypeWord> {
    match value {
        Value::Int(_) => Some("integer"),
        Value::Float(_) => Some("number"),
        Value::Bool(_) => Some("boolean"),
        Value::List(_) | Value::Tuple(_) | Value::Set(_) => Some("array"),
        Value::Dict(_) => Some("object"),
        _ => None,
    }
}

/// What a parameter wants, in words, when it cannot take a value of that kind. `lax`: a number may stand for
/// text.
pub(crate) fn refused(given: TypeWord, schema: &Json, lax: bool) -> Option<&'static str> {
    let wanted: Vec<&str> = match schema.get("type")? {
        Json::String(kind) => vec![kind],
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => return None,
    };
    let takes = |kind: &str| match kind {
        // Numbers and truth values are read as one another where nothing is lost, which only the value tells.
        "integer" | "number" | "boolean" => !matches!(given, "array" | "object"),
        "string" => lax && matches!(given, "integer" | "number"),
        other => other == given,
    };
    let first = wanted.iter().find(|kind| **kind != "null")?;
    (!wanted.iter().any(|kind| takes(kind))).then(|| word(first))
}

/// What a parameter wants, in words, when it is a number and the text around the code of a template holds
/// what no number has.
pub(crate) fn no_number(document: &TemplateTree, schema: &Json) -> Option<&'static str> {
    let TemplateTree::Template(snippet) = document else { return None };
    let kind = schema.get("type").and_then(Json::as_str)?;
    let written = match kind {
        "integer" => "0123456789+-_.",
        "number" => "0123456789+-_.einfatyEINFATY",
        _ => return None,
    };
    let foreign = |c: char| !c.is_whitespace() && !written.contains(c);
    let mut pieces = snippet.template.pieces();
    let never = pieces.any(|piece| matches!(piece, TemplatePiece::Text(text) if text.contains(foreign)));
    never.then(|| word(kind))
}

/// A kind in words.
pub(crate) fn word(kind: &str) -> &'static str {
    match kind {
        "string" => "text",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a dict",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_can_never_fit_is_refused() {
        let text = json!({"type": "string"});
        assert_eq!(refused("integer", &text, false), Some("text"));
        assert_eq!(refused("integer", &text, true), None);
        assert_eq!(refused("array", &text, true), Some("text"));
        assert_eq!(refused("boolean", &json!({"type": "integer"}), true), None);
        assert_eq!(refused("object", &json!({"type": ["null", "array"]}), true), Some("a list"));
        assert_eq!(refused("object", &json!({"anyOf": []}), true), None);
    }
}
