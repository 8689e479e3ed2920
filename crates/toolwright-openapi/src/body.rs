//! The body of a request: which media type is sent, and how arguments become it.

use serde_json::{Map, Value, json};
use toolwright_core::ToolError;

use crate::arguments::{ArgumentList, argument_name, describe};
use crate::multipart::{FormPart, PartContent};
use crate::names;
use crate::pointer;
use crate::request::RequestBody;
use crate::schema::{Converted, Schemas, flag};
use crate::style::{Escape, ParameterStyle, pairs, plain};

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    Form,
    Multipart,
    Text,
    Binary,
}

/// The body of an operation.
#[derive(Debug, Clone)]
pub(crate) struct BodyPlan {
    media: Media,
    content_type: String,
    /// The argument that holds all of it; without one its fields are arguments.
    whole: Option<String>,
    fields: Vec<BodyField>,
}

/// One field of a body that is an object.
#[derive(Debug, Clone)]
struct BodyField {
    argument: String,
    name: String,
    style: Option<(ParameterStyle, bool)>,
    content_type: Option<String>,
    /// The value is the path of a file.
    file: bool,
    /// The value is a list of such paths.
    files: bool,
}

/// The body of an operation, and its arguments.
pub(crate) fn body(
    root: &Value,
    operation: &Value,
    schemas: &mut Schemas<'_>,
    arguments: &mut ArgumentList,
) -> Result<Option<BodyPlan>, String> {
    let Some(described) = operation.get("requestBody") else { return Ok(None) };
    let described = pointer::resolved(root, described)?;
    let content = described.get("content").and_then(Value::as_object);
    let mut kinds: Vec<(Media, &String, &Value)> =
        content.into_iter().flatten().map(|(kind, media)| (media_of(kind), kind, media)).collect();
    // The order of the document decides among equals.
    kinds.sort_by_key(|(media, ..)| match media {
        Media::Json => 0,
        Media::Multipart => 1,
        Media::Form => 2,
        Media::Text => 3,
        Media::Binary => 4,
    });
    let Some((media, kind, described_media)) = kinds.first().copied() else { return Ok(None) };
    let required = flag(described, "required");
    let content_type = match kind.contains('*') {
        true if media == Media::Json => "application/json".to_owned(),
        true => "application/octet-stream".to_owned(),
        false => kind.clone(),
    };
    let empty = json!({});
    let written = described_media.get("schema").unwrap_or(&empty);
    let schema = pointer::resolved(root, written)?;
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields: Vec<BodyField> = match media {
        Media::Form | Media::Multipart | Media::Json => {
            let encoding = described_media.get("encoding");
            let of = |(name, property): (&String, &Value)| field(root, name, property, encoding, media);
            properties.into_iter().flatten().map(of).collect()
        }
        Media::Text | Media::Binary => Vec::new(),
    };
    let mut body = BodyPlan { media, content_type, whole: None, fields };
    if !body.fields.is_empty() && is_flat(schema) && body.name_fields(arguments) {
        let needed: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut kept = Vec::new();
        for field in std::mem::take(&mut body.fields) {
            let property = properties.and_then(|all| all.get(&field.name)).unwrap_or(&empty);
            if flag(pointer::resolved(root, property)?, "readOnly") {
                continue;
            }
            let converted = field.converted(property, schemas)?;
            if field.file || field.files {
                arguments.paths.push(field.argument.clone());
            }
            arguments.taken.insert(field.argument.clone());
            let needed = required && needed.contains(&field.name.as_str());
            arguments.add(&field.argument, converted, needed);
            kept.push(field);
        }
        body.fields = kept;
        return Ok(Some(body));
    }
    let argument = argument_name(&mut arguments.taken, "body", "request");
    let mut converted = match media {
        Media::Binary => {
            arguments.paths.push(argument.clone());
            path_schema("a file", &json!({}))
        }
        Media::Text => Converted { schema: json!({"type": "string"}), ..Converted::default() },
        _ => schemas.convert(written)?,
    };
    if media != Media::Binary {
        describe(&mut converted, described);
    }
    if media == Media::Text
        && let Some(members) = converted.schema.as_object_mut()
    {
        let text = members.get("description").and_then(Value::as_str).unwrap_or("The body.");
        let text = format!("{text} ({})", body.content_type);
        members.insert("description".into(), text.into());
    }
    arguments.add(&argument, converted, required);
    body.whole = Some(argument);
    Ok(Some(body))
}

fn media_of(kind: &str) -> Media {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/x-www-form-urlencoded" => Media::Form,
        "multipart/form-data" => Media::Multipart,
        "application/json" | "text/json" | "*/*" | "application/*" => Media::Json,
        kind if kind.ends_with("+json") || kind.ends_with("/json-patch") => Media::Json,
        "application/xml"
        | "application/yaml"
        | "application/x-yaml"
        | "application/graphql"
        | "application/x-ndjson"
        | "application/jsonl" => Media::Text,
        kind if kind.starts_with("text/") || kind.ends_with("+xml") || kind.ends_with("+yaml") => Media::Text,
        _ => Media::Binary,
    }
}

/// Whether the fields of a body say all of it.
fn is_flat(schema: &Value) -> bool {
    let object = matches!(schema.get("type"), None | Some(Value::String(_)))
        && schema.get("type").is_none_or(|kind| kind == "object");
    let more =
        ["allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "minProperties", "dependentRequired"];
    let closed = matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false)));
    object && closed && !more.iter().any(|key| schema.get(key).is_some()) && !flag(schema, "nullable")
}

fn field(root: &Value, name: &str, property: &Value, encoding: Option<&Value>, media: Media) -> BodyField {
    let encoding = encoding.and_then(|all| all.get(name));
    let text = |key: &str| encoding?.get(key)?.as_str();
    let style = text("style").and_then(ParameterStyle::of);
    let explode = encoding.and_then(|one| one.get("explode")).and_then(Value::as_bool);
    let style = match (style, explode) {
        (None, None) => None,
        (style, explode) => {
            let style = style.unwrap_or(ParameterStyle::Form);
            Some((style, explode.unwrap_or(style == ParameterStyle::Form)))
        }
    };
    let is_file = |schema: &Value| {
        let schema = pointer::resolved(root, schema).unwrap_or(schema);
        let raw = schema.get("contentMediaType").is_some() && schema.get("contentEncoding").is_none();
        schema.get("format").and_then(Value::as_str) == Some("binary") || raw
    };
    let schema = pointer::resolved(root, property).unwrap_or(property);
    let multipart = media == Media::Multipart;
    BodyField {
        argument: String::new(),
        name: name.to_owned(),
        style,
        content_type: text("contentType")
            .and_then(|kind| kind.split(',').next())
            .map(|kind| kind.trim().to_owned()),
        file: multipart && is_file(property),
        files: multipart && schema.get("items").is_some_and(is_file),
    }
}

fn path_schema(what: &str, of: &Value) -> Converted {
    let text = of.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = format!("{text} The path of {what} in the workspace, whose content is sent.");
    Converted { schema: json!({"type": "string", "description": text.trim()}), ..Converted::default() }
}

impl BodyField {
    fn converted(&self, property: &Value, schemas: &mut Schemas<'_>) -> Result<Converted, String> {
        if self.file {
            return Ok(path_schema("a file", property));
        }
        if self.files {
            let one = path_schema("a file", property);
            return Ok(Converted { schema: json!({"type": "array", "items": one.schema}), ..one });
        }
        schemas.convert(property)
    }

    /// The pairs of a form.
    fn pairs(&self, value: &Value) -> Vec<(String, String)> {
        match (self.style, value) {
            (Some((style, explode)), _) => pairs(&self.name, value, style, explode, Escape::Form),
            // Without a style an object is JSON, as the specification has it for `application/json`.
            (None, Value::Object(_)) => {
                vec![(Escape::Form.apply(&self.name), Escape::Form.apply(&value.to_string()))]
            }
            (None, _) => pairs(&self.name, value, ParameterStyle::Form, true, Escape::Form),
        }
    }

    fn parts(&self, value: &Value) -> Vec<FormPart> {
        let part = |content_type: Option<&str>, content: PartContent| FormPart {
            name: self.name.clone(),
            content_type: content_type.map(str::to_owned),
            content,
        };
        let own = self.content_type.as_deref().filter(|kind| !kind.contains('*'));
        match value {
            Value::Array(items) => items.iter().flat_map(|item| self.parts(item)).collect(),
            Value::String(path) if self.file || self.files => {
                vec![part(own, PartContent::File(path.clone()))]
            }
            Value::Object(_) => {
                vec![part(
                    own.or(Some("application/json")),
                    PartContent::Bytes(value.to_string().into_bytes()),
                )]
            }
            scalar => vec![part(own, PartContent::Bytes(plain(scalar).into_bytes()))],
        }
    }
}

impl BodyPlan {
    /// Names the fields as arguments; false, and nothing changes, when one of the names is taken.
    fn name_fields(&mut self, arguments: &ArgumentList) -> bool {
        let mut taken = arguments.taken.clone();
        for field in &mut self.fields {
            let name = names::legal(&field.name);
            if name.is_empty() || !taken.insert(name.clone()) {
                return false;
            }
            field.argument = name;
        }
        true
    }

    /// The body for these arguments.
    pub(crate) fn write(&self, arguments: &Map<String, Value>) -> Result<RequestBody, ToolError> {
        let value = match &self.whole {
            Some(argument) => match arguments.get(argument) {
                Some(value) => value.clone(),
                None => return Ok(RequestBody::Empty),
            },
            None => {
                let given =
                    |field: &BodyField| Some((field.name.clone(), arguments.get(&field.argument)?.clone()));
                let members: Map<String, Value> = self.fields.iter().filter_map(given).collect();
                if members.is_empty() && self.media != Media::Json {
                    return Ok(RequestBody::Empty);
                }
                members.into()
            }
        };
        let content_type = self.content_type.clone();
        let bytes = match self.media {
            Media::Json => value.to_string().into_bytes(),
            Media::Text => plain(&value).into_bytes(),
            Media::Binary => {
                return Ok(RequestBody::File { content_type, path: plain(&value) });
            }
            Media::Form | Media::Multipart => {
                let Value::Object(members) = &value else {
                    return Err(ToolError::invalid("the body of a form must be an object with its fields"));
                };
                let members = members.iter().filter(|(_, value)| !value.is_null());
                if self.media == Media::Multipart {
                    let parts = members.flat_map(|(name, value)| self.field(name).parts(value)).collect();
                    return Ok(RequestBody::Multipart(parts));
                }
                let pairs = members.flat_map(|(name, value)| self.field(name).pairs(value));
                let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={value}")).collect();
                pairs.join("&").into_bytes()
            }
        };
        Ok(RequestBody::Bytes { content_type, bytes })
    }

    /// How a field is written; one that the document does not know is plain.
    fn field(&self, name: &str) -> BodyField {
        self.fields.iter().find(|field| field.name == name).cloned().unwrap_or_else(|| BodyField {
            argument: String::new(),
            name: name.to_owned(),
            style: None,
            content_type: None,
            file: false,
            files: false,
        })
    }
}
