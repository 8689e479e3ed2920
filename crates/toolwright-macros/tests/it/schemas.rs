//! How each Rust type appears to a model. The same table is the reference page `docs/reference/types.md`; run
//! with `TOOLWRIGHT_BLESS=1` to write it again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_core::schema::Schema;
use toolwright_core::{ToolDef, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Fast,
    Careful,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is looked at")]
enum Shape {
    Circle { radius: f64 },
    Point,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is looked at")]
enum NameOrNumber {
    Name(String),
    Number(i64),
}

/// A town on a map.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is looked at")]
struct Town {
    /// What it is called.
    name: String,
    height: Option<f64>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "only the schema is looked at")]
struct Node {
    value: i64,
    next: Option<Box<Node>>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "only the schema is looked at")]
struct Metres(f64);

struct Row {
    rust: &'static str,
    tool: ToolDef,
    want: Value,
}

/// A tool that takes a value of the type, and the schema the value should have.
macro_rules! rows {
    ($($rust:ty => $want:tt),* $(,)?) => {
        vec![$({
            /// Takes a value.
            #[tool]
            async fn take(
                /// The value.
                value: $rust,
            ) {
                let _ = value;
            }
            Row { rust: stringify!($rust), tool: take(), want: json!($want) }
        }),*]
    };
}

fn numbers_and_text() -> Vec<Row> {
    rows! {
        bool => {"type": "boolean"},
        i64 => {"type": "integer"},
        i32 => {"type": "integer"},
        i8 => {"type": "integer", "minimum": -128, "maximum": 127},
        u64 => {"type": "integer", "minimum": 0},
        usize => {"type": "integer", "minimum": 0},
        u8 => {"type": "integer", "minimum": 0, "maximum": 255},
        std::num::NonZeroU32 => {"type": "integer", "minimum": 1},
        f64 => {"type": "number"},
        f32 => {"type": "number"},
        Metres => {"$ref": "#/$defs/Metres", "$defs": {"Metres": {"type": "number"}}},
        String => {"type": "string"},
        char => {"type": "string", "minLength": 1, "maxLength": 1},
        PathBuf => {"type": "string"},
        jiff::civil::Date => {"type": "string", "format": "date"},
        jiff::civil::Time => {"type": "string", "format": "partial-time"},
        jiff::civil::DateTime => {"type": "string", "format": "partial-date-time"},
        jiff::Timestamp => {"type": "string", "format": "date-time"},
        jiff::Zoned => {"type": "string", "format": "zoned-date-time"},
        jiff::Span => {"type": "string", "format": "duration"},
    }
}

fn collections() -> Vec<Row> {
    rows! {
        Option<String> => {"type": ["string", "null"]},
        Vec<i64> => {"type": "array", "items": {"type": "integer"}},
        VecDeque<Vec<String>> => {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        [f64; 2] => {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        BTreeSet<String> => {"type": "array", "uniqueItems": true, "items": {"type": "string"}},
        HashSet<i64> => {"type": "array", "uniqueItems": true, "items": {"type": "integer"}},
        (String, i64) => {
            "type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "maxItems": 2
        },
        BTreeMap<String, i64> => {"type": "object", "additionalProperties": {"type": "integer"}},
        HashMap<String, Vec<String>> => {
            "type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}
        },
        serde_json::Map<String, Value> => {"type": "object", "additionalProperties": true},
        Value => {},
    }
}

fn own_types() -> Vec<Row> {
    rows! {
        Mode => {"$ref": "#/$defs/Mode", "$defs": {"Mode": {"type": "string", "enum": ["fast", "careful"]}}},
        Shape => {"$ref": "#/$defs/Shape", "$defs": {"Shape": {"oneOf": [
            {
                "type": "object",
                "properties": {"radius": {"type": "number"}, "kind": {"type": "string", "const": "circle"}},
                "required": ["kind", "radius"]
            },
            {
                "type": "object",
                "properties": {"kind": {"type": "string", "const": "point"}},
                "required": ["kind"]
            }
        ]}}},
        NameOrNumber => {
            "$ref": "#/$defs/NameOrNumber",
            "$defs": {"NameOrNumber": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}
        },
        Town => {"$ref": "#/$defs/Town", "$defs": {"Town": {
            "description": "A town on a map.",
            "type": "object",
            "properties": {
                "name": {"description": "What it is called.", "type": "string"},
                "height": {"type": ["number", "null"]}
            },
            "additionalProperties": false,
            "required": ["name"]
        }}},
        Option<Mode> => {
            "anyOf": [{"$ref": "#/$defs/Mode"}, {"type": "null"}],
            "$defs": {"Mode": {"type": "string", "enum": ["fast", "careful"]}}
        },
        Vec<Mode> => {
            "type": "array", "items": {"$ref": "#/$defs/Mode"},
            "$defs": {"Mode": {"type": "string", "enum": ["fast", "careful"]}}
        },
        Node => {"$ref": "#/$defs/Node", "$defs": {"Node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}
            },
            "required": ["value"]
        }}},
        Arc<str> => {"type": "string"},
        Box<Mode> => {
            "$ref": "#/$defs/Mode", "$defs": {"Mode": {"type": "string", "enum": ["fast", "careful"]}}
        },
    }
}

/// The schema of the only parameter, with the definitions it refers to and without its description.
fn schema(tool: &ToolDef) -> Value {
    let parameters = &tool.spec().parameters;
    let mut schema = parameters["properties"]["value"].clone();
    let map = schema.as_object_mut().expect("a schema with a description is an object");
    assert_eq!(map.shift_remove("description"), Some(json!("The value.")));
    if let Some(definitions) = parameters.get("$defs") {
        map.insert("$defs".to_owned(), definitions.clone());
    }
    schema
}

fn is_required(tool: &ToolDef) -> bool {
    tool.spec().parameters["required"] == json!(["value"])
}

#[test]
fn each_type_has_the_schema_of_the_table() {
    for row in numbers_and_text().into_iter().chain(collections()).chain(own_types()) {
        assert_eq!(schema(&row.tool), row.want, "{}", row.rust);
        assert_eq!(is_required(&row.tool), !row.rust.starts_with("Option"), "{}", row.rust);
        Schema::compile(&row.tool.spec().parameters).expect(row.rust);
    }
}

#[test]
fn the_reference_page_shows_the_table() {
    let mut page = "# How Rust types appear to a model\n\n\
        A parameter of this type gets this JSON Schema, with its description beside it. A parameter is required unless it\n\
        is an `Option` or has a default. Types under `$defs` are listed once, at the end of a tool's parameters.\n"
        .to_owned();
    for (title, rows) in [
        ("Numbers and text", numbers_and_text()),
        ("Collections and optional values", collections()),
        ("Your own types", own_types()),
    ] {
        write!(page, "\n## {title}\n\n| Rust | JSON Schema | required |\n| --- | --- | --- |\n").unwrap();
        for row in rows {
            let required = if is_required(&row.tool) { "yes" } else { "no" };
            writeln!(page, "| `{}` | `{}` | {required} |", row.rust, schema(&row.tool)).unwrap();
        }
    }
    page.push_str(OWN_TYPES);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/types.md");
    if std::env::var_os("TOOLWRIGHT_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let current = std::fs::read_to_string(&path).expect("docs/reference/types.md is there");
    assert_eq!(
        current, page,
        "docs/reference/types.md is out of date; run this test with TOOLWRIGHT_BLESS=1"
    );
}

const OWN_TYPES: &str = "
The types of the last table are these, each with `#[derive(serde::Deserialize, schemars::JsonSchema)]`:

```rust
#[serde(rename_all = \"snake_case\")]
enum Mode {
    Fast,
    Careful,
}

#[serde(tag = \"kind\", rename_all = \"snake_case\")]
enum Shape {
    Circle { radius: f64 },
    Point,
}

#[serde(untagged)]
enum NameOrNumber {
    Name(String),
    Number(i64),
}

/// A town on a map.
#[serde(deny_unknown_fields)]
struct Town {
    /// What it is called.
    name: String,
    height: Option<f64>,
}

struct Node {
    value: i64,
    next: Option<Box<Node>>,
}

struct Metres(f64);
```
";
