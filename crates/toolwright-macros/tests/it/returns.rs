//! What a tool may return, and what it promises about it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolwright_core::{Content, ErrorKind, Json, Structured, ToolDef, ToolError, ToolOutput, tool};

use crate::{call, value};

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Weather {
    /// In degrees.
    temperature: f64,
    place: Town,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Town {
    name: String,
}

#[derive(serde::Serialize)]
struct Undescribed {
    fine: bool,
}

fn weather() -> Weather {
    Weather { temperature: 21.5, place: Town { name: "Oslo".to_owned() } }
}

/// Returns a struct.
#[tool]
async fn structured() -> Weather {
    weather()
}

/// Returns a struct or fails.
#[tool]
fn structured_or_error() -> Result<Weather, std::io::Error> {
    Ok(weather())
}

/// Returns a list that says it is structured.
#[tool]
async fn rows() -> Result<Structured<Vec<String>>, ToolError> {
    Ok(Structured(vec!["a".to_owned()]))
}

#[tokio::test]
async fn structured_list_has_an_output_schema() {
    let schema = rows().spec().output_schema.clone().unwrap();
    assert_eq!((&schema["type"], &schema["items"]["type"]), (&json!("array"), &json!("string")));
    assert_eq!(value(&rows(), json!({})).await, json!(["a"]));
}

/// Returns a map.
#[tool]
async fn map() -> BTreeMap<String, i64> {
    BTreeMap::from([("a".to_owned(), 1)])
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Job {
    #[serde(rename(serialize = "number", deserialize = "id"))]
    id: u32,
    #[serde(skip_deserializing)]
    age: u32,
    #[serde(skip_serializing, default)]
    #[expect(dead_code, reason = "it is not written")]
    secret: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
}

/// Returns what is read otherwise than it is written.
#[tool]
async fn job() -> Result<Job, ToolError> {
    Ok(Job { id: 1, age: 5, secret: "s".to_owned(), errors: Vec::new() })
}

#[tokio::test]
async fn the_schema_of_a_result_is_that_of_what_is_written() {
    let schema = output_schema(&job()).unwrap();
    let written = value(&job(), json!({})).await;
    assert_eq!(written, json!({"number": 1, "age": 5}));
    let names: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((names, &schema["required"]), (vec!["number", "age", "errors"], &json!(["number", "age"])));
    let checked = toolwright_core::schema::Schema::compile(&schema).unwrap();
    checked.validate(written, toolwright_core::schema::Strictness::Strict).unwrap();
}

fn output_schema(tool: &ToolDef) -> Option<Value> {
    tool.spec().output_schema.clone()
}

#[tokio::test]
async fn a_struct_is_json_and_its_schema_is_promised() {
    let schema = json!({
        "title": "Weather",
        "type": "object",
        "properties": {
            "temperature": {"description": "In degrees.", "type": "number"},
            "place": {"$ref": "#/$defs/Town"}
        },
        "required": ["temperature", "place"],
        "$defs": {"Town": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
    });
    for tool in [structured(), structured_or_error()] {
        assert_eq!(value(&tool, json!({})).await, json!({"temperature": 21.5, "place": {"name": "Oslo"}}));
        assert_eq!(output_schema(&tool), Some(schema.clone()));
    }
    assert_eq!(value(&map(), json!({})).await, json!({"a": 1}));
    assert_eq!(output_schema(&map()).unwrap()["additionalProperties"], json!({"type": "integer"}));
}

/// Nothing.
#[tool]
async fn nothing() {}

/// Text.
#[tool]
async fn text() -> &'static str {
    "text"
}

/// Anything.
#[tool]
async fn anything() -> Value {
    json!({"a": 1})
}

/// Anything or an error.
#[tool]
async fn anything_or_error() -> Result<Value, ToolError> {
    Ok(json!({"a": 1}))
}

/// A list.
#[tool]
async fn list() -> Vec<u8> {
    vec![1, 2]
}

/// Not described.
#[tool]
async fn undescribed() -> Undescribed {
    Undescribed { fine: true }
}

/// Wrapped.
#[tool]
async fn wrapped() -> Json<Undescribed> {
    Json(Undescribed { fine: true })
}

/// A type without a name.
#[tool]
async fn unnamed() -> impl serde::Serialize {
    (1, "a")
}

/// Perhaps.
#[tool]
async fn perhaps() -> Option<String> {
    None
}

#[tokio::test]
async fn other_values_are_converted_and_promise_nothing() {
    let cases = [
        (nothing(), json!(null)),
        (text(), json!("text")),
        (anything(), json!({"a": 1})),
        (anything_or_error(), json!({"a": 1})),
        (list(), json!([1, 2])),
        (undescribed(), json!({"fine": true})),
        (wrapped(), json!({"fine": true})),
        (unnamed(), json!([1, "a"])),
        (perhaps(), json!(null)),
    ];
    for (tool, want) in cases {
        assert_eq!(
            (value(&tool, json!({})).await, output_schema(&tool)),
            (want, None),
            "{}",
            tool.spec().name
        );
    }
}

/// A picture.
#[tool]
async fn picture() -> Content {
    Content::image("image/png", b"png")
}

/// Several blocks.
#[tool]
async fn blocks() -> Result<Vec<Content>, ToolError> {
    Ok(vec![Content::text("a"), Content::image("image/png", b"png")])
}

/// Everything at once.
#[tool]
async fn output() -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::text("a").with_structured(json!(1)).with_metadata("pages", 3))
}

#[tokio::test]
async fn content_and_metadata_arrive_as_they_are() {
    let image = Content::image("image/png", b"png");
    assert_eq!(call(&picture(), json!({})).await.unwrap(), ToolOutput::block(image.clone()));
    let both = ToolOutput::text("a").with(image);
    assert_eq!(call(&blocks(), json!({})).await.unwrap(), both);
    let full = ToolOutput::text("a").with_structured(json!(1)).with_metadata("pages", 3);
    assert_eq!(call(&output(), json!({})).await.unwrap(), full);
    for tool in [picture(), blocks(), output()] {
        assert_eq!(output_schema(&tool), None);
    }
}

/// Reads a file.
#[tool]
fn read(
    /// Which.
    path: String,
) -> Result<String, ToolError> {
    Ok(std::fs::read_to_string(path)?)
}

#[derive(Debug)]
struct Busy;

impl From<Busy> for ToolError {
    fn from(_: Busy) -> Self {
        ToolError::of(ErrorKind::Limit, "too busy")
    }
}

/// Fails in its own way.
#[tool]
async fn own_error() -> Result<Undescribed, Busy> {
    Err(Busy)
}

#[tokio::test]
async fn errors_keep_their_kind() {
    let missing = call(&read(), json!({"path": "/no/such/file"})).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::FileNotFound);
    let busy = call(&own_error(), json!({})).await.unwrap_err();
    assert_eq!((busy.kind(), busy.message()), (ErrorKind::Limit, "too busy"));
}
