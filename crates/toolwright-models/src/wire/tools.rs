//! Definitions of tools as each format takes them, and what a vendor does not get to know.

use serde_json::{Map, Value, json};
use toolwright_core::{ModelError, ModelOptions, ModelRequest, ToolSpec};

use super::names::{ToolNames, rename};
use super::{ModelTarget, Wire, object};
use crate::dialect::{self, Adapted, Change, Dialect, Effect};
use crate::error;
use crate::vendor::Vendor;

/// What Anthropic holds to schemas in one request: so many tools, and together so many optional parameters
/// and unions. More is refused because the grammar gets too large.
const MOST_STRICT: [usize; 3] = [20, 24, 16];

/// A tool in a vendor's format.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The definition.
    pub json: Value,
    /// What is not as it was.
    pub changes: Vec<Change>,
}

/// The definitions of tools for a vendor, in its strict mode if that is wanted and possible.
///
/// ```
/// use toolwright_core::ToolSpec;
/// use toolwright_models::{vendor, wire};
///
/// let tools = [ToolSpec::new("files.list", "Lists files.")];
/// let definitions = wire::define(vendor::find("openai-chat").unwrap(), &tools, false);
/// assert_eq!(definitions[0].json["function"]["name"], "files_list");
/// assert_eq!(definitions[0].changes[0].to_string(), "it is called `files_list`");
/// ```
pub fn define(vendor: &Vendor, tools: &[ToolSpec], strict: bool) -> Vec<Definition> {
    let options = ModelOptions { strict: Some(strict), ..ModelOptions::default() };
    let request = ModelRequest { messages: &[], tools, tool_choice: &Default::default(), options: &options };
    definitions(ModelTarget { vendor, model: "" }, &request, &names(vendor.wire, &request))
}

/// The names of a request's tools and, where the format is particular about them, of their parameters.
pub(super) fn names(wire: Wire, request: &ModelRequest<'_>) -> ToolNames {
    let names = ToolNames::new(request);
    match wire {
        Wire::AnthropicMessages | Wire::BedrockInvoke | Wire::BedrockConverse => {
            names.with_parameters(request)
        }
        Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Gemini => names,
    }
}

/// The definitions of a request's tools.
pub(super) fn definitions(
    target: ModelTarget<'_>,
    request: &ModelRequest<'_>,
    names: &ToolNames,
) -> Vec<Definition> {
    let vendor = target.vendor;
    let wanted = request.options.strict == Some(true);
    let mut left = MOST_STRICT;
    let one = |tool: &ToolSpec| {
        let name = names.to_wire(&tool.name);
        let mut changes = Vec::new();
        let mut note = |what: String| changes.push(Change { at: String::new(), what, effect: Effect::Told });
        if name != *tool.name {
            note(format!("it is called `{name}`"));
        }
        if tool.output_schema.is_some() {
            note("the schema of its output is not sent".to_owned());
        }
        for (native, wire) in names.parameters(&tool.name) {
            note(format!("its parameter `{native}` is called `{wire}`"));
        }
        let mut strict = None;
        match vendor.quirks.strict.filter(|_| wanted) {
            None if wanted && vendor.wire != Wire::Gemini => note("the vendor has no strict mode".to_owned()),
            None => {}
            Some(dialect) => match strict_schema(&tool.parameters, dialect) {
                Err(problem) => note(format!("it is not sent in strict mode: {problem}")),
                Ok(adapted) if dialect == Dialect::AnthropicStrict => {
                    let [tools, optional, unions] = left;
                    let after = [
                        tools.checked_sub(1),
                        optional.checked_sub(optional_parameters(&adapted.schema)),
                        unions.checked_sub(unions_of(&adapted.schema)),
                    ];
                    match after {
                        _ if !is_plain_object(&adapted.schema) => {
                            note("it is not sent in strict mode: its arguments are a union".to_owned());
                        }
                        [Some(tools), Some(optional), Some(unions)] => {
                            left = [tools, optional, unions];
                            strict = Some(adapted);
                        }
                        _ => {
                            note("it is not sent in strict mode: there are too many strict tools".to_owned())
                        }
                    }
                }
                Ok(adapted) => strict = Some(adapted),
            },
        }
        let is_strict = strict.is_some();
        let schema = match strict {
            Some(adapted) => {
                changes.extend(adapted.changes);
                adapted.schema
            }
            None if vendor.wire == Wire::Gemini => {
                changes.extend(dialect::ignored_by_gemini(&tool.parameters));
                tool.parameters.clone()
            }
            None => {
                let adapted = dialect::plain(&tool.parameters);
                changes.extend(adapted.changes);
                adapted.schema
            }
        };
        let schema = renamed(schema, names.parameters(&tool.name));
        Definition { json: definition(vendor.wire, name, tool, schema, is_strict), changes }
    };
    request.tools.iter().map(one).collect()
}

/// A schema whose properties have the names that the vendor takes.
fn renamed(mut schema: Value, parameters: &[(String, String)]) -> Value {
    let wire = |name: &str| parameters.iter().find(|(native, _)| native == name).map(|(_, wire)| wire);
    if let Some(Value::Object(properties)) = schema.get_mut("properties").filter(|_| !parameters.is_empty()) {
        *properties = rename(std::mem::take(properties), wire);
        for name in schema.get_mut("required").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(wire) = name.as_str().and_then(wire) {
                *name = wire.as_str().into();
            }
        }
    }
    schema
}

fn definition(wire: Wire, name: String, tool: &ToolSpec, schema: Value, strict: bool) -> Value {
    let mut fields = object(json!({"name": name}));
    // Converse refuses a description without words.
    if wire != Wire::BedrockConverse || !tool.description.trim().is_empty() {
        fields.insert("description".to_owned(), tool.description.as_str().into());
    }
    let (key, schema) = match wire {
        Wire::AnthropicMessages | Wire::BedrockInvoke => ("input_schema", schema),
        Wire::OpenAiChat | Wire::OpenAiResponses => ("parameters", schema),
        Wire::Gemini => ("parametersJsonSchema", schema),
        Wire::BedrockConverse => ("inputSchema", json!({"json": schema})),
    };
    fields.insert(key.to_owned(), schema);
    // Left out, the Responses API would assume strict mode and refuse most schemas.
    if strict || wire == Wire::OpenAiResponses {
        fields.insert("strict".to_owned(), strict.into());
    }
    match wire {
        Wire::OpenAiChat => json!({"type": "function", "function": fields}),
        Wire::OpenAiResponses => {
            let mut flat = object(json!({"type": "function"}));
            flat.extend(fields);
            Value::Object(flat)
        }
        Wire::BedrockConverse => json!({"toolSpec": fields}),
        _ => Value::Object(fields),
    }
}

/// The schema in a dialect, when it still lets a model say everything it could say before.
fn strict_schema(schema: &Value, dialect: Dialect) -> Result<Adapted, String> {
    if dialect::is_recursive(schema) {
        return Err("the schema refers to itself".to_owned());
    }
    let adapted = dialect::adapt(schema, dialect).map_err(|error| error.problem)?;
    match adapted.changes.iter().find(|change| matches!(change.effect, Effect::Tighter | Effect::Refused)) {
        Some(Change { at, what, .. }) if at.is_empty() => Err(what.clone()),
        Some(Change { at, what, .. }) => Err(format!("{what} (at {at})")),
        None => Ok(adapted),
    }
}

/// How many parameters at any depth may be left out.
fn optional_parameters(schema: &Value) -> usize {
    let own = || {
        let properties = schema.get("properties")?.as_object()?.len();
        let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        Some(properties.saturating_sub(required))
    };
    let inner: usize = match schema {
        Value::Object(map) => map.values().map(optional_parameters).sum(),
        Value::Array(list) => list.iter().map(optional_parameters).sum(),
        _ => 0,
    };
    inner + own().unwrap_or(0)
}

/// How many schemas at any depth are unions.
fn unions_of(schema: &Value) -> usize {
    let inner = match schema {
        Value::Object(map) => map.values().map(unions_of).sum(),
        Value::Array(list) => list.iter().map(unions_of).sum(),
        _ => 0,
    };
    inner + usize::from(schema.get("anyOf").is_some_and(Value::is_array))
}

/// Whether a schema is an object and no union, as the root of a tool's arguments must be.
fn is_plain_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
        && ["anyOf", "oneOf", "allOf"].iter().all(|key| schema.get(key).is_none())
}

/// The schema that an answer must follow, as the vendor takes it, and whether it is held to it exactly.
pub(super) fn response_schema(vendor: &Vendor, schema: &Value) -> Result<(Value, bool), ModelError> {
    let dialect = vendor.quirks.strict.unwrap_or(Dialect::OpenAiStrict);
    match strict_schema(schema, dialect) {
        Ok(adapted) => Ok((adapted.schema, true)),
        // Anthropic has no mode that is not strict.
        Err(problem) if dialect == Dialect::AnthropicStrict => {
            Err(error::request(format!("the response schema cannot be sent: {problem}")))
        }
        Err(_) => Ok((schema.clone(), false)),
    }
}

/// The fields by which a request asks for an answer that follows a schema.
pub(super) fn respond_with(vendor: &Vendor, schema: &Value) -> Result<Map<String, Value>, ModelError> {
    let named = |schema: Value, strict: bool| json!({"name": "answer", "schema": schema, "strict": strict});
    let fields = match vendor.wire {
        Wire::AnthropicMessages | Wire::BedrockInvoke => {
            let (schema, _) = response_schema(vendor, schema)?;
            json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}})
        }
        // Nothing but "some JSON" can be asked for; the instructions say which.
        Wire::OpenAiChat if !vendor.quirks.response_schemas => {
            json!({"response_format": {"type": "json_object"}})
        }
        Wire::OpenAiChat => {
            let (schema, strict) = response_schema(vendor, schema)?;
            json!({"response_format": {"type": "json_schema", "json_schema": named(schema, strict)}})
        }
        Wire::OpenAiResponses => {
            let (schema, strict) = response_schema(vendor, schema)?;
            let mut format = object(json!({"type": "json_schema"}));
            format.extend(object(named(schema, strict)));
            json!({"text": {"format": format}})
        }
        Wire::Gemini => {
            json!({"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema}})
        }
        Wire::BedrockConverse => {
            let (schema, _) = response_schema(vendor, schema)?;
            let schema = json!({"jsonSchema": {"name": "answer", "schema": schema.to_string()}});
            json!({"outputConfig": {"textFormat": {"type": "json_schema", "structure": schema}}})
        }
    };
    Ok(object(fields))
}

/// Instructions for a vendor that can only be asked for "some JSON".
pub(super) fn told_schema(vendor: &Vendor, options: &ModelOptions) -> Option<String> {
    let schema = options.response_schema.as_ref().filter(|_| !vendor.quirks.response_schemas)?;
    Some(format!("Answer with nothing but JSON that follows this JSON Schema:\n{schema}"))
}
