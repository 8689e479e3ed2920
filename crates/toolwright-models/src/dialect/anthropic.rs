//! Anthropic's strict subset. What it cannot express is described to the model in the tool's description, in
//! the same words as the vendor's own client uses, so that both behave alike.

use serde_json::{Map, Value};

use super::{ChangeReport, DialectError, Effect, SchemaPath};

/// The formats of text that the vendor checks.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Keywords that only speak to people; describing them loses nothing.
const NOTES: [&str; 5] = ["default", "examples", "$comment", "deprecated", "$schema"];

pub(super) fn adapt(
    schema: &Value,
    at: &SchemaPath<'_>,
    report: &mut ChangeReport<'_>,
) -> Result<Value, DialectError> {
    report.enter(at)?;
    let Some(schema) = schema.as_object() else { return Err(at.error("a schema must be an object")) };
    let mut rest = schema.clone();
    let mut strict = Map::new();
    if let Some(Value::Object(definitions)) = rest.shift_remove("$defs") {
        strict.insert("$defs".to_owned(), each(&definitions, &SchemaPath::In(at, "$defs"), report)?);
    }
    if let Some(reference) = rest.shift_remove("$ref") {
        if reference.as_str().is_none_or(|reference| !reference.starts_with("#/$defs/")) {
            report.changed(at, format!("the vendor may refuse the reference {reference}"), Effect::Refused);
        }
        strict.insert("$ref".to_owned(), reference);
        for key in rest.keys().filter(|key| !NOTES.contains(&key.as_str()) && !is_words(key)) {
            report.changed(at, format!("`{key}` beside `$ref` is left out"), Effect::Looser);
        }
        return Ok(Value::Object(strict));
    }
    let kind = rest.shift_remove("type");
    let unions = ["anyOf", "oneOf", "allOf"].map(|key| (key, rest.shift_remove(key)));
    let literals = take_literals(&mut rest, &mut strict);
    let mut union = unions.into_iter().filter_map(|(key, list)| match list {
        Some(Value::Array(list)) => Some((key, list)),
        _ => None,
    });
    if literals && kind.as_ref().is_some_and(|kind| !all_are(&strict, kind)) {
        report.changed(at, "`type` is left out beside the values", Effect::Looser);
    }
    let mut kind = kind.filter(|_| !literals);
    if let Some((key, variants)) = union.next() {
        if key == "oneOf" {
            report.changed(at, "`oneOf` becomes `anyOf`", Effect::Looser);
        }
        for (key, _) in union {
            report.changed(at, format!("`{key}` is left out"), Effect::Looser);
        }
        // Each object allows its own properties only, so that two of them at once allow none.
        let own = kind.as_ref().is_some_and(|kind| kind == "object");
        let several = own || key == "allOf" && variants.len() > 1;
        if several && variants.iter().any(may_be_object) {
            report.changed(at, format!("the objects of `{key}` exclude each other"), Effect::Tighter);
        }
        let place = SchemaPath::In(at, key);
        let variants = variants.iter().enumerate();
        let variants = variants
            .map(|(index, variant)| adapt(variant, &SchemaPath::In(&place, &index.to_string()), report));
        let name = if key == "allOf" { "allOf" } else { "anyOf" };
        strict.insert(name.to_owned(), variants.collect::<Result<_, _>>()?);
        if kind.is_some() {
            report.changed(at, format!("`type` is left out beside `{name}`"), Effect::Looser);
        }
        kind = kind.filter(Value::is_string);
    } else if !literals {
        let kind = kind
            .as_ref()
            .ok_or_else(|| at.error("it needs a `type`, a union, a `const`, or an `enum` of plain values"))?;
        strict.insert("type".to_owned(), kind.clone());
    }
    for key in ["description", "title"] {
        strict
            .extend(rest.shift_remove(key).filter(|text| !text.is_null()).map(|text| (key.to_owned(), text)));
    }
    match kind.as_ref().map(Value::as_str) {
        Some(Some("object")) => object(&mut rest, &mut strict, at, report)?,
        Some(Some("string")) => {
            let known =
                rest.get("format").and_then(Value::as_str).is_some_and(|format| FORMATS.contains(&format));
            if let Some(format) = rest.shift_remove("format").filter(|format| *format != "") {
                let home = if known { &mut strict } else { &mut rest };
                home.insert("format".to_owned(), format);
            }
        }
        Some(Some("array")) => {
            if let Some(items) = rest.shift_remove("items") {
                strict.insert("items".to_owned(), adapt(&items, &SchemaPath::In(at, "items"), report)?);
            }
            if let Some(least) = rest.shift_remove("minItems") {
                let known = least.as_f64().is_some_and(|least| least == 0.0 || least == 1.0);
                let home = if known { &mut strict } else { &mut rest };
                home.insert("minItems".to_owned(), least);
            }
        }
        None | Some(Some("boolean" | "integer" | "number" | "null")) => {}
        Some(_) => return Err(at.error("`type` must be one of the seven types")),
    }
    describe(&rest, &mut strict, at, report);
    Ok(Value::Object(strict))
}

/// Whether an object may follow this schema.
fn may_be_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str).is_none_or(|kind| kind == "object")
}

fn each(
    schemas: &Map<String, Value>,
    at: &SchemaPath<'_>,
    report: &mut ChangeReport<'_>,
) -> Result<Value, DialectError> {
    let adapted = schemas
        .iter()
        .map(|(key, schema)| Ok((key.clone(), adapt(schema, &SchemaPath::In(at, key), report)?)));
    adapted.collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

/// Moves `enum` and `const` over when their values are plain; they make a `type` needless.
fn take_literals(rest: &mut Map<String, Value>, strict: &mut Map<String, Value>) -> bool {
    let plain = |value: &Value| !value.is_array() && !value.is_object();
    let some = |list: &Vec<Value>| !list.is_empty() && list.iter().all(plain);
    if rest.get("enum").and_then(Value::as_array).is_some_and(some) {
        strict.extend(rest.shift_remove("enum").map(|list| ("enum".to_owned(), list)));
    }
    if rest.get("const").is_some_and(plain) {
        strict.extend(rest.shift_remove("const").map(|value| ("const".to_owned(), value)));
    }
    strict.contains_key("enum") || strict.contains_key("const")
}

/// Whether every value that is listed is of that type, so that saying it is needless.
fn all_are(strict: &Map<String, Value>, kind: &Value) -> bool {
    let is = |value: &Value| match kind.as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        _ => false,
    };
    let listed = strict.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed.chain(strict.get("const")).all(is)
}

fn object(
    rest: &mut Map<String, Value>,
    strict: &mut Map<String, Value>,
    at: &SchemaPath<'_>,
    report: &mut ChangeReport<'_>,
) -> Result<(), DialectError> {
    let properties = match rest.shift_remove("properties") {
        Some(Value::Object(properties)) => properties,
        None => Map::new(),
        Some(_) => return Err(at.error("`properties` must be an object")),
    };
    let place = SchemaPath::In(at, "properties");
    strict.insert("properties".to_owned(), each(&properties, &place, report)?);
    report.closed(at, &properties, rest.shift_remove("additionalProperties").as_ref());
    if rest.contains_key("patternProperties") {
        report.changed(at, "`patternProperties` cannot be said", Effect::Tighter);
    }
    strict.insert("additionalProperties".to_owned(), false.into());
    let required = rest.shift_remove("required").filter(|list| !list.is_null());
    strict.extend(required.map(|list| ("required".to_owned(), list)));
    Ok(())
}

/// Puts what is left into the description, so that the model may still follow it.
fn describe(
    rest: &Map<String, Value>,
    strict: &mut Map<String, Value>,
    at: &SchemaPath<'_>,
    report: &mut ChangeReport<'_>,
) {
    if rest.is_empty() {
        return;
    }
    for key in rest.keys().filter(|key| !NOTES.contains(&key.as_str())) {
        report.changed(at, format!("`{key}` is only described"), Effect::Looser);
    }
    let words: Vec<String> =
        rest.iter().map(|(key, value)| format!("{key}: {}", python(value, true))).collect();
    let words = format!("{{{}}}", words.join(", "));
    let description = match strict.get("description").and_then(Value::as_str) {
        Some(said) => format!("{said}\n\n{words}"),
        None => words,
    };
    strict.insert("description".to_owned(), description.into());
}

fn is_words(key: &str) -> bool {
    matches!(key, "description" | "title")
}

/// A number as Python prints it: as Rust does, but for exponents, which have a sign and two digits.
fn python_float(float: f64) -> String {
    let text = format!("{float:?}");
    match text.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(small) => format!("{digits}e-{small:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        None => text,
    }
}

/// A value as Python prints it; `outer` text has no quotes.
fn python(value: &Value, outer: bool) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => python_float(float),
            None => number.to_string(),
        },
        Value::String(text) if outer => text.clone(),
        Value::String(text) => {
            let escaped =
                text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
            match text.contains('\'') && !text.contains('"') {
                true => format!("\"{escaped}\""),
                false => format!("'{}'", escaped.replace('\'', "\\'")),
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| python(item, false)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entries = map.iter().map(|(key, item)| {
                format!("{}: {}", python(&Value::String(key.clone()), false), python(item, false))
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}
