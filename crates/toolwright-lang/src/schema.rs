//! The JSON Schema of tool files for editors, and the reference page, both written from the tables in `file`.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::file;
use crate::input::Type;
use crate::shape::{EXTRACTS, Needed, Shape, ShapeKey, ShapeKind, Unknown};

/// The JSON Schema of tool files.
pub fn file_schema() -> Value {
    let mut definitions = Map::new();
    for shape in file::ALL {
        definitions.insert(name(shape), object(shape));
    }
    if let Some(Value::Object(import)) = definitions.get_mut("import_tool") {
        let model = json!({"properties": {"import_tool": {"pattern": r"(^|llm_tool\.)build_llm_tool$"}}});
        import.insert("if".to_owned(), model);
        let config = or_null(reference(&file::MODEL_TOOL));
        import.insert("then".to_owned(), json!({"properties": {"config": config}}));
    }
    let any_of =
        |shapes: Vec<&Shape>| json!({"oneOf": shapes.into_iter().map(reference).collect::<Vec<_>>()});
    definitions.insert("statement".to_owned(), any_of(file::STATEMENTS.to_vec()));
    definitions.insert(
        "body".to_owned(),
        json!({"oneOf": [
            {"$ref": "#/$defs/statement"},
            {"type": "array", "items": {"$ref": "#/$defs/statement"}}
        ]}),
    );
    let tools: Vec<&Shape> = file::DEFINITIONS.iter().map(|(_, shape)| *shape).collect();
    definitions.insert("definition".to_owned(), any_of(tools));
    definitions.insert("server".to_owned(), any_of(vec![&file::SERVER_STDIO, &file::SERVER_HTTP]));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Toolwright tool file",
        "$ref": "#/$defs/file",
        "$defs": definitions,
    })
}

/// The name of a shape among the definitions.
fn name(shape: &Shape) -> String {
    shape.name.replace([' ', '('], "_").replace(')', "").replace("__", "_").to_lowercase()
}

fn reference(shape: &Shape) -> Value {
    json!({"$ref": format!("#/$defs/{}", name(shape))})
}

fn object(shape: &Shape) -> Value {
    let properties: Map<String, Value> =
        shape.keys.iter().map(|key| (key.name.to_owned(), described(key))).collect();
    let required: Vec<&str> =
        shape.keys.iter().filter(|key| key.needed == Needed::Required).map(|key| key.name).collect();
    json!({
        "description": shape.about,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": shape.unknown == Unknown::Warning,
    })
}

fn described(key: &ShapeKey) -> Value {
    let mut schema = Map::new();
    schema.insert("description".to_owned(), key.about.into());
    let kind = kind(key.kind);
    // Null stands for a key that is not there.
    let kind = if key.needed == Needed::Optional { or_null(kind) } else { kind };
    if let Value::Object(kind) = kind {
        schema.extend(kind);
    }
    Value::Object(schema)
}

fn or_null(mut schema: Value) -> Value {
    let any = schema.as_object().is_some_and(Map::is_empty);
    match schema.get_mut("type") {
        Some(Value::Array(kinds)) => kinds.push("null".into()),
        Some(one) => *one = json!([one.take(), "null"]),
        None if any => {}
        None => return json!({"anyOf": [schema, {"type": "null"}]}),
    }
    schema
}

fn kind(kind: ShapeKind) -> Value {
    let text = json!({"type": "string"});
    let list = |items: Value| json!({"type": "array", "items": items});
    match kind {
        ShapeKind::Text | ShapeKind::Template => text,
        ShapeKind::Flag => json!({"type": "boolean"}),
        ShapeKind::Count => json!({"type": "integer"}),
        ShapeKind::Whole(least) => json!({"type": "integer", "minimum": least}),
        ShapeKind::Number => json!({"type": "number", "minimum": 0}),
        ShapeKind::Timeout => {
            json!({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": "none"}]})
        }
        ShapeKind::NumberMap => {
            json!({"type": "object", "additionalProperties": {"type": "number", "minimum": 0}})
        }
        ShapeKind::Any | ShapeKind::Document => json!({}),
        ShapeKind::Map | ShapeKind::Documents => json!({"type": "object"}),
        ShapeKind::Word(words) => json!({"enum": words}),
        ShapeKind::Texts | ShapeKind::Templates => list(text),
        ShapeKind::TextOrTexts => json!({"oneOf": [text, list(json!({"type": "string"}))]}),
        ShapeKind::TemplateMap | ShapeKind::TextMap => {
            json!({"type": "object", "additionalProperties": text})
        }
        ShapeKind::Body => json!({"$ref": "#/$defs/body"}),
        ShapeKind::Inputs => list(reference(&file::INPUT)),
        ShapeKind::Definitions => list(json!({"$ref": "#/$defs/definition"})),
        ShapeKind::References => list(json!({"oneOf": [
            {"type": "string"},
            {"type": "object", "properties": {"match": {"type": "array", "items": {"type": "string"}}},
                "required": ["match"], "additionalProperties": false},
            {"$ref": "#/$defs/definition"}
        ]})),
        ShapeKind::Matchers => list(reference(&file::MATCHER)),
        ShapeKind::Hint => json!({"type": ["string", "boolean"]}),
        ShapeKind::JsonOutput => json!({"enum": [true, false, "pretty"]}),
        ShapeKind::ExtractJson => json!({"anyOf": [{"type": "boolean"}, {"enum": EXTRACTS}]}),
        ShapeKind::Object(shape) => reference(shape),
        ShapeKind::Named(shape) => {
            json!({"type": "object", "additionalProperties": {"oneOf": [reference(shape), {"type": "null"}]}})
        }
        ShapeKind::Servers => json!({"type": "object", "additionalProperties": {"$ref": "#/$defs/server"}}),
    }
}

/// The reference page: every map of a file with its keys.
pub fn reference_page() -> String {
    let mut page = "# The file format\n\nWritten from the code, and kept fresh by a test. What the words mean is \
        explained in the [guide](../guide/yaml-tools.md); expressions have a [page of their own](expressions.md). \
        Editors can use [`toolwright.schema.json`](toolwright.schema.json).\n\nIn the tables, *template* is text with \
        `${...}`; *any, with templates* is any value in which every text is a template.\n"
        .to_owned();
    for shape in file::ALL {
        let _ = write!(
            page,
            "\n## {}\n\n{}\n\n| key | holds | meaning |\n| --- | --- | --- |\n",
            shape.name, shape.about
        );
        for key in shape.keys {
            let needed = if key.needed == Needed::Required { " (required)" } else { "" };
            let about = key.about.replace('|', "\\|");
            let _ = writeln!(page, "| `{}`{needed} | {} | {about} |", key.name, holds(key.kind));
        }
        if shape.unknown == Unknown::Warning {
            page.push_str("\nOther keys are ignored with a warning.\n");
        }
    }
    let _ = write!(page, "\n## Types of parameters\n\n{}.\n", Type::WORDS.replace('|', "\\|"));
    page
}

fn holds(kind: ShapeKind) -> String {
    match kind {
        ShapeKind::Text => "text".to_owned(),
        ShapeKind::Template => "template".to_owned(),
        ShapeKind::Flag => "true or false".to_owned(),
        ShapeKind::Count => "integer".to_owned(),
        ShapeKind::Whole(least) => format!("integer, {least} or more"),
        ShapeKind::Number => "number, 0 or more".to_owned(),
        ShapeKind::Timeout => "number above 0, or `none`".to_owned(),
        ShapeKind::NumberMap => "map of numbers, 0 or more".to_owned(),
        ShapeKind::Any => "any".to_owned(),
        ShapeKind::Document => "any, with templates".to_owned(),
        ShapeKind::Map => "map".to_owned(),
        ShapeKind::Documents => "map, with templates".to_owned(),
        ShapeKind::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        ShapeKind::Texts => "list of texts".to_owned(),
        ShapeKind::TextOrTexts => "text or list of texts".to_owned(),
        ShapeKind::Templates => "list of templates".to_owned(),
        ShapeKind::TemplateMap => "map of templates".to_owned(),
        ShapeKind::TextMap => "map of texts".to_owned(),
        ShapeKind::Body => "statement or list of statements".to_owned(),
        ShapeKind::Inputs => "list of inputs".to_owned(),
        ShapeKind::Definitions => "list of tool definitions".to_owned(),
        ShapeKind::References => "list of tool names, `{match: [patterns]}`, and definitions".to_owned(),
        ShapeKind::Matchers => "list of matchers".to_owned(),
        ShapeKind::Hint => "template, true or false".to_owned(),
        ShapeKind::JsonOutput => "`false`, `true`, `pretty`".to_owned(),
        ShapeKind::ExtractJson => {
            let words: Vec<_> = EXTRACTS.iter().map(|word| format!("`{word}`")).collect();
            format!("true, false, {}", words.join(", "))
        }
        ShapeKind::Object(shape) => format!("map: {}", shape.name),
        ShapeKind::Named(shape) => format!("map of names to: {}", shape.name),
        ShapeKind::Servers => "map of names to MCP servers".to_owned(),
    }
}
