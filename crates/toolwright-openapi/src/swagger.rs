//! Swagger 2.0 rewritten as OpenAPI 3.0, so that the rest reads one format. References keep their places.

use serde_json::{Map, Value, json};

use crate::pointer;

/// Keys of a Swagger parameter that belong to it and not to the schema of its value.
const OF_PARAMETER: [&str; 8] =
    ["name", "in", "description", "required", "collectionFormat", "schema", "allowEmptyValue", "$ref"];

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// The document as 3.0. What cannot be read stays as it is, and its operations are left out later.
pub(crate) fn as_version_3(root: &Value) -> Value {
    let Some(members) = root.as_object() else { return root.clone() };
    let mut made = members.clone();
    made.insert("openapi".into(), json!("3.0.3"));
    made.insert("servers".into(), servers(root));
    let schemes: Map<String, Value> = root
        .get("securityDefinitions")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, scheme)| (name.clone(), security(scheme)))
        .collect();
    made.insert("components".into(), json!({"securitySchemes": schemes}));
    if let Some(Value::Object(paths)) = made.get_mut("paths") {
        for item in paths.values_mut() {
            let Some(item) = item.as_object_mut() else { continue };
            let shared = item.shift_remove("parameters");
            let shared = shared.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
            for (_, operation) in item.iter_mut().filter(|(key, _)| METHODS.contains(&key.as_str())) {
                if let Some(operation) = operation.as_object_mut() {
                    rewrite(root, operation, &shared);
                }
            }
        }
    }
    made.into()
}

fn servers(root: &Value) -> Value {
    let base = root.get("basePath").and_then(Value::as_str).unwrap_or_default();
    let Some(host) = root.get("host").and_then(Value::as_str) else { return json!([{"url": base}]) };
    let schemes = root.get("schemes").and_then(Value::as_array);
    let schemes: Vec<&str> = schemes.into_iter().flatten().filter_map(Value::as_str).collect();
    let scheme = match schemes.as_slice() {
        [] => "https",
        all if all.contains(&"https") => "https",
        [first, ..] => first,
    };
    json!([{"url": format!("{scheme}://{host}{base}")}])
}

fn security(scheme: &Value) -> Value {
    match scheme.get("type").and_then(Value::as_str) {
        Some("basic") => json!({"type": "http", "scheme": "basic"}),
        _ => scheme.clone(),
    }
}

fn rewrite(root: &Value, operation: &mut Map<String, Value>, shared: &[Value]) {
    let own = operation.shift_remove("parameters");
    let own = own.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let mut parameters: Vec<Value> = Vec::new();
    let (mut body, mut form, mut required) = (None, Map::new(), Vec::new());
    let mut encoding = Map::new();
    let mut has_file = false;
    let place = |parameter: &Value| (parameter.get("name").cloned(), parameter.get("in").cloned());
    let resolved = |parameter: &Value| match pointer::resolved(root, parameter) {
        Ok(found) => found.clone(),
        // The operation is left out with this reason.
        Err(_) => parameter.clone(),
    };
    let own: Vec<Value> = own.iter().map(resolved).collect();
    let shared = shared.iter().map(resolved);
    let inherited = shared.filter(|one| !own.iter().any(|other| place(other) == place(one)));
    let all: Vec<Value> = inherited.chain(own.iter().cloned()).collect();
    for parameter in &all {
        match parameter.get("in").and_then(Value::as_str) {
            Some("body") => body = Some(parameter.clone()),
            Some("formData") => {
                let Some(name) = parameter.get("name").and_then(Value::as_str) else { continue };
                let mut schema = schema_of(parameter);
                if parameter.get("type").and_then(Value::as_str) == Some("file") {
                    has_file = true;
                    schema = json!({"type": "string", "format": "binary"});
                }
                if let (Some(text), Some(members)) = (parameter.get("description"), schema.as_object_mut()) {
                    members.insert("description".into(), text.clone());
                }
                if parameter.get("required") == Some(&Value::Bool(true)) {
                    required.push(name.to_owned());
                }
                if parameter.get("collectionFormat").is_some() {
                    let (style, explode) = style(parameter);
                    encoding.insert(name.to_owned(), json!({"style": style, "explode": explode}));
                }
                form.insert(name.to_owned(), schema);
            }
            Some(place) => {
                let mut made = Map::new();
                for key in ["name", "in", "description", "required"] {
                    if let Some(value) = parameter.get(key) {
                        made.insert(key.into(), value.clone());
                    }
                }
                made.insert("schema".into(), schema_of(parameter));
                if parameter.get("type").and_then(Value::as_str) == Some("array") {
                    let (style, explode) = style(parameter);
                    // In a path and a header only commas are known to 3.0.
                    if matches!(place, "query") {
                        made.insert("style".into(), json!(style));
                        made.insert("explode".into(), json!(explode));
                    }
                }
                parameters.push(made.into());
            }
            None => parameters.push(parameter.clone()),
        }
    }
    operation.insert("parameters".into(), parameters.into());
    let consumes = operation.get("consumes").or_else(|| root.get("consumes")).and_then(Value::as_array);
    let consumes: Vec<String> =
        consumes.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if let Some(body) = body {
        let schema = body.get("schema").cloned().unwrap_or_else(|| json!({}));
        let of_body = |kind: &&String| !kind.starts_with("multipart/") && !kind.contains("urlencoded");
        let mut kinds: Vec<String> = consumes.iter().filter(of_body).cloned().collect();
        if kinds.is_empty() {
            kinds.push("application/json".into());
        }
        let content: Map<String, Value> =
            kinds.into_iter().map(|kind| (kind, json!({"schema": schema.clone()}))).collect();
        let needed = body.get("required").cloned().unwrap_or(Value::Bool(false));
        let text = body.get("description").cloned().unwrap_or_default();
        operation.insert(
            "requestBody".into(),
            json!({"required": needed, "content": content, "description": text}),
        );
    } else if !form.is_empty() {
        let multipart = has_file || consumes.iter().any(|kind| kind.starts_with("multipart/form-data"));
        let kind = if multipart { "multipart/form-data" } else { "application/x-www-form-urlencoded" };
        let needed = !required.is_empty();
        let schema = json!({"type": "object", "properties": form, "required": required});
        let content = json!({kind: {"schema": schema, "encoding": encoding}});
        operation.insert("requestBody".into(), json!({"required": needed, "content": content}));
    }
}

fn schema_of(parameter: &Value) -> Value {
    let members = parameter.as_object().into_iter().flatten();
    let members = members.filter(|(key, _)| !OF_PARAMETER.contains(&key.as_str()));
    Value::Object(members.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn style(parameter: &Value) -> (&'static str, bool) {
    match parameter.get("collectionFormat").and_then(Value::as_str) {
        Some("ssv") => ("spaceDelimited", false),
        Some("tsv") => ("tabDelimited", false),
        Some("pipes") => ("pipeDelimited", false),
        Some("multi") => ("form", true),
        _ => ("form", false),
    }
}
