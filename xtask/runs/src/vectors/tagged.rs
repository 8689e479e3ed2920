//! Python values written in JSON: plain where JSON has the value, otherwise an object with one `$` key.

use serde_json::Value as Json;
use toolwright_expr::{EvalLimits, Program, Value};

/// The value a tagged document stands for.
pub fn from_tagged(json: &Json) -> Value {
    match json {
        Json::Array(items) => Value::list(items.iter().map(from_tagged).collect()),
        Json::Object(fields) => match fields.iter().next() {
            Some((tag, payload)) if fields.len() == 1 && tag.starts_with('$') => from_tag(tag, payload),
            _ => Value::dict(fields.iter().map(|(key, value)| (key, from_tagged(value)))),
        },
        other => Value::from_json(other),
    }
}

fn from_tag(tag: &str, payload: &Json) -> Value {
    let items =
        || payload.as_array().map(|items| items.iter().map(from_tagged).collect()).unwrap_or_default();
    let text = payload.as_str().unwrap_or_default();
    let made = match tag {
        "$tuple" => return Value::tuple(items()),
        "$bytes" => call("bytes.fromhex(x)", Value::str(text)),
        "$set" => call("set(x)", Value::list(items())),
        "$dict" => call("dict(x)", Value::list(items())),
        "$int" | "$int_hex" => call("int(x, 0)", Value::str(text)),
        "$float" => call("float(x)", Value::str(text)),
        "$complex" => call("complex(x[0], x[1])", Value::list(items())),
        "$ellipsis" => call("...", Value::None),
        "$range" => call("range(x[0], x[1], x[2])", Value::list(items())),
        _ => None,
    };
    made.unwrap_or(Value::None)
}

fn call(source: &str, x: Value) -> Option<Value> {
    Program::compile(source).ok()?.evaluate(&[("x", x)], &EvalLimits::default()).ok()
}

fn ask(source: &str, x: &Value) -> bool {
    matches!(call(source, x.clone()), Some(Value::Bool(true)))
}

fn ask_list(source: &str, x: &Value) -> Vec<Value> {
    match call(source, x.clone()) {
        Some(Value::List(list)) => list.snapshot().to_vec(),
        _ => Vec::new(),
    }
}

/// Whether a value is the one a tagged document describes: same type, same contents, all the way down.
pub fn matches(wanted: &Json, value: &Value) -> bool {
    match (wanted, value) {
        (Json::Null, Value::None) => true,
        (Json::Bool(wanted), Value::Bool(value)) => wanted == value,
        (Json::Number(wanted), Value::Int(value)) => wanted.as_i64() == Some(*value),
        (Json::Number(wanted), Value::Float(value)) => {
            wanted.is_f64() && wanted.as_f64().is_some_and(|wanted| wanted.to_bits() == value.to_bits())
        }
        (Json::String(wanted), Value::Str(value)) => wanted == value.as_str(),
        (Json::Array(wanted), Value::List(value)) => all_match(wanted, &value.snapshot()),
        (Json::Object(fields), _) => match fields.iter().next() {
            Some((tag, payload))
                if tag.starts_with('$')
                    && (fields.len() == 1 || fields.contains_key("args") || fields.contains_key("items")) =>
            {
                tag_matches(tag, payload, fields, value)
            }
            _ => match value {
                Value::Dict(dict) => {
                    let entries = dict.entries();
                    entries.len() == fields.len()
                        && entries.iter().zip(fields).all(|((key, value), (name, wanted))| {
                            key.as_str() == Some(name) && matches(wanted, value)
                        })
                }
                _ => false,
            },
        },
        _ => false,
    }
}

fn all_match(wanted: &[Json], values: &[Value]) -> bool {
    wanted.len() == values.len() && wanted.iter().zip(values).all(|(wanted, value)| matches(wanted, value))
}

fn tag_matches(tag: &str, payload: &Json, fields: &serde_json::Map<String, Json>, value: &Value) -> bool {
    let text = payload.as_str().unwrap_or_default();
    let items = payload.as_array().map(Vec::as_slice).unwrap_or_default();
    match (tag, value) {
        ("$tuple", Value::Tuple(values)) => all_match(items, values),
        ("$set", Value::Set(set)) => {
            let members = set.members();
            members.len() == items.len()
                && items.iter().all(|item| members.iter().any(|member| matches(item, member)))
        }
        ("$dict", Value::Dict(dict)) => {
            let entries = dict.entries();
            entries.len() == items.len()
                && entries.iter().zip(items).all(|((key, value), pair)| {
                    pair.get(0).is_some_and(|wanted| matches(wanted, key))
                        && pair.get(1).is_some_and(|wanted| matches(wanted, value))
                })
        }
        ("$int", _) => value.type_name() == "int" && value.to_string() == text,
        ("$int_hex", _) => call("hex(x)", value.clone()).is_some_and(|shown| shown.as_str() == Some(text)),
        ("$float", Value::Float(_)) => value.to_string() == text,
        ("$bytes", Value::Bytes(bytes)) => {
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == text
        }
        ("$complex", _) => all_match(items, &ask_list("[x.real, x.imag]", value)),
        ("$range", Value::Range(_)) => all_match(items, &ask_list("[x.start, x.stop, x.step]", value)),
        ("$slice", _) => all_match(items, &ask_list("[x.start, x.stop, x.step]", value)),
        ("$ellipsis", Value::Ellipsis) => true,
        ("$type", Value::Type(kind)) => kind.name() == text,
        ("$opaque", _) => value.type_name() == text,
        ("$view", _) => {
            let wanted = fields.get("items").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
            value.type_name() == text && all_match(wanted, &ask_list("list(x)", value))
        }
        ("$exception", _) => {
            let wanted = fields.get("args").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
            value.type_name() == text && all_match(wanted, &ask_list("list(x.args)", value))
        }
        ("$struct", _) => {
            let Some(wanted) = payload.as_object() else { return false };
            let same_fields =
                value.to_json().is_ok_and(|json| json.as_object().is_some_and(|o| o.len() == wanted.len()));
            same_fields
                && wanted.iter().all(|(name, wanted)| {
                    call(&format!("x.{name}"), value.clone()).is_some_and(|field| matches(wanted, &field))
                })
                && ask("isinstance(x, struct)", value)
        }
        _ => false,
    }
}
