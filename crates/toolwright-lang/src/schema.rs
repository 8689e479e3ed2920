//! The JSON Schema of tool files for editors, and the reference page, both written from the tables in `file`.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::file;
use crate::input::Type;
use crate::shape::{EXTRACTS, Key, Kind, Needed, Shape, Unknown};

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

fn described(key: &Key) -> Value {
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

fn kind(kind: Kind) -> Value {
    let text = json!({"type": "string"});
    let list = |items: Value| json!({"type": "array", "items": items});
    match kind {
        Kind::Text | Kind::Template => text,
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Count => json!({"type": "integer"}),
        Kind::Whole(least) => json!({"type": "integer", "minimum": least}),
        Kind::Number => json!({"type": "number", "minimum": 0}),
        Kind::NumberMap => {
            json!({"type": "object", "additionalProperties": {"type": "number", "minimum": 0}})
        }
        Kind::Any | Kind::Document => json!({}),
        Kind::Map | Kind::Documents => json!({"type": "object"}),
        Kind::Word(words) => json!({"enum": words}),
        Kind::Texts | Kind::Templates => list(text),
        Kind::TextOrTexts => json!({"oneOf": [text, list(json!({"type": "string"}))]}),
        Kind::TemplateMap | Kind::TextMap => json!({"type": "object", "additionalProperties": text}),
        Kind::Body => json!({"$ref": "#/$defs/body"}),
        Kind::Inputs => list(reference(&file::INPUT)),
        Kind::Definitions => list(json!({"$ref": "#/$defs/definition"})),
        Kind::References => list(json!({"oneOf": [
            {"type": "string"},
            {"type": "object", "properties": {"match": {"type": "array", "items": {"type": "string"}}},
                "required": ["match"], "additionalProperties": false},
            {"$ref": "#/$defs/definition"}
        ]})),
        Kind::Matchers => list(reference(&file::MATCHER)),
        Kind::Hint => json!({"type": ["string", "boolean"]}),
        Kind::JsonOutput => json!({"enum": [true, false, "pretty"]}),
        Kind::ExtractJson => json!({"anyOf": [{"type": "boolean"}, {"enum": EXTRACTS}]}),
        Kind::Object(shape) => reference(shape),
        Kind::Named(shape) => {
            json!({"type": "object", "additionalProperties": {"oneOf": [reference(shape), {"type": "null"}]}})
        }
        Kind::Servers => json!({"type": "object", "additionalProperties": {"$ref": "#/$defs/server"}}),
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

fn holds(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Template => "template".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Count => "integer".to_owned(),
        Kind::Whole(least) => format!("integer, {least} or more"),
        Kind::Number => "number, 0 or more".to_owned(),
        Kind::NumberMap => "map of numbers, 0 or more".to_owned(),
        Kind::Any => "any".to_owned(),
        Kind::Document => "any, with templates".to_owned(),
        Kind::Map => "map".to_owned(),
        Kind::Documents => "map, with templates".to_owned(),
        Kind::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Texts => "list of texts".to_owned(),
        Kind::TextOrTexts => "text or list of texts".to_owned(),
        Kind::Templates => "list of templates".to_owned(),
        Kind::TemplateMap => "map of templates".to_owned(),
        Kind::TextMap => "map of texts".to_owned(),
        Kind::Body => "statement or list of statements".to_owned(),
        Kind::Inputs => "list of inputs".to_owned(),
        Kind::Definitions => "list of tool definitions".to_owned(),
        Kind::References => "list of tool names, `{match: [patterns]}`, and definitions".to_owned(),
        Kind::Matchers => "list of matchers".to_owned(),
        Kind::Hint => "template, true or false".to_owned(),
        Kind::JsonOutput => "`false`, `true`, `pretty`".to_owned(),
        Kind::ExtractJson => {
            let words: Vec<_> = EXTRACTS.iter().map(|word| format!("`{word}`")).collect();
            format!("true, false, {}", words.join(", "))
        }
        Kind::Object(shape) => format!("map: {}", shape.name),
        Kind::Named(shape) => format!("map of names to: {}", shape.name),
        Kind::Servers => "map of names to MCP servers".to_owned(),
    }
}
