//! The arguments of earlier calls, on their way back to a vendor. What a model wrote may be no JSON at all;
//! sent as it is, some servers refuse the whole conversation for it, so it goes back inside an object.

use serde_json::{Map, Value, json};

/// Arguments as an object; anything else is kept as the text the model wrote.
pub(super) fn as_object(arguments: &Value) -> Map<String, Value> {
    let shown = |text: &str| Map::from_iter([("INVALID_JSON".to_owned(), json!(text))]);
    match arguments {
        Value::Object(map) => map.clone(),
        Value::Null => Map::new(),
        Value::String(text) if text.trim().is_empty() => Map::new(),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(map)) => map,
            Ok(Value::Null) => Map::new(),
            _ => shown(text),
        },
        other => shown(&other.to_string()),
    }
}

/// Arguments as the text of an object: what the model wrote, byte for byte, when it is one.
pub(super) fn as_text(arguments: &Value) -> String {
    match arguments {
        Value::String(text) if serde_json::from_str::<Map<String, Value>>(text).is_ok() => text.clone(),
        other => Value::Object(as_object(other)).to_string(),
    }
}
