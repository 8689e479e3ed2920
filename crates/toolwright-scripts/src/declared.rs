//! Definitions as data: the fenced block of a script, or the file `NAME.tool.yaml` beside it.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::definition::{ArgumentStyle, ScriptDefinition, ScriptParameter};
use crate::parameters::schema_of;

/// The longest that a call may be given.
const MAX_TIME: Duration = Duration::from_secs(86_400);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    name: Option<String>,
    description: Option<String>,
    #[serde(default)]
    input: Vec<DeclaredInput>,
    args: Option<String>,
    /// `text`, `json`, or a JSON Schema.
    output: Option<Value>,
    timeout: Option<f64>,
    read_only: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredInput {
    name: String,
    /// A type word, or a JSON Schema.
    #[serde(rename = "type")]
    kind: Value,
    description: Option<String>,
    #[serde(default)]
    default: Option<Value>,
    #[serde(default)]
    optional: bool,
    /// Passed by its place instead of as a flag.
    #[serde(default)]
    positional: bool,
}

/// Reads a definition. Its `name` is that of the file where it says none.
pub(crate) fn read(name: &str, yaml: &str) -> Result<ScriptDefinition, String> {
    let value = toolwright_yaml::read_data("the definition", yaml).map_err(|error| error.to_string())?;
    let declared: Declared = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let mut definition = ScriptDefinition::new(declared.name.as_deref().unwrap_or(name));
    definition.description = declared.description.unwrap_or_default();
    definition.read_only = declared.read_only;
    if let Some(word) = &declared.args {
        definition.arguments = ArgumentStyle::of(word)
            .ok_or_else(|| format!("`args` must be one of {}, got `{word}`", ArgumentStyle::WORDS))?;
    }
    if let Some(seconds) = declared.timeout {
        let time = Duration::try_from_secs_f64(seconds).ok();
        let time = time.filter(|time| !time.is_zero() && *time <= MAX_TIME);
        let time = time.ok_or_else(|| {
            format!("`timeout` must be a positive number of seconds, at most 86400, got {seconds}")
        })?;
        definition.timeout = Some(time);
    }
    match declared.output {
        None => {}
        Some(Value::String(word)) if word == "text" => {}
        Some(Value::String(word)) if word == "json" => definition.json_output = true,
        Some(schema @ Value::Object(_)) => {
            definition.json_output = true;
            definition.output_schema = Some(schema);
        }
        Some(other) => return Err(format!("`output` must be `text`, `json` or a JSON Schema, got {other}")),
    }
    for input in declared.input {
        if definition.parameters.iter().any(|known| known.name == input.name) {
            return Err(format!("the parameter `{}` comes twice", input.name));
        }
        definition.parameters.push(parameter(input)?);
    }
    Ok(definition)
}

fn parameter(input: DeclaredInput) -> Result<ScriptParameter, String> {
    let mut schema = match input.kind {
        Value::String(word) => {
            schema_of(&word).ok_or_else(|| format!("the type `{word}` of `{}` is not known", input.name))?
        }
        schema @ Value::Object(_) => schema,
        other => {
            return Err(format!("the type of `{}` must be a word or a JSON Schema, got {other}", input.name));
        }
    };
    if let (Some(members), Some(text)) = (schema.as_object_mut(), input.description) {
        members.insert("description".to_owned(), text.into());
    }
    let mut parameter = ScriptParameter::new(&input.name, schema);
    parameter.switch = parameter.schema.get("type").and_then(Value::as_str) == Some("boolean");
    parameter.required = input.default.is_none() && !input.optional;
    parameter.default = input.default.filter(|value| !value.is_null());
    if input.positional {
        parameter.flag = None;
        parameter.switch = false;
    }
    Ok(parameter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_is_read_and_its_mistakes_are_named() {
        let text = "name: count\ndescription: Counts.\nargs: flags\noutput: json\ntimeout: 2.5\nread_only: true\ninput:\n  - {name: path, type: str, description: Where., positional: true}\n  - {name: deep, type: bool, default: false}\n  - {name: kinds, type: 'list[str]', optional: true}\n  - {name: size, type: {type: integer, minimum: 1}, default: 3}\n";
        let found = read("x", text).unwrap();
        assert_eq!((found.name.as_str(), found.arguments), ("count", ArgumentStyle::Flags));
        assert_eq!((found.timeout, found.json_output), (Some(Duration::from_millis(2_500)), true));
        let parameters = found.spec().parameters;
        assert_eq!(parameters["required"], json!(["path"]));
        assert_eq!(parameters["properties"]["size"], json!({"type": "integer", "minimum": 1, "default": 3}));
        for (text, words) in [
            ("input: [{name: a, type: wat}]", "`wat`"),
            ("args: pipe", "`argv-json`, got `pipe`"),
            ("timeout: 0", "positive"),
            ("timeout: 100000", "at most 86400"),
            ("output: xml", "`text`, `json`"),
            ("inptu: []", "inptu"),
            ("input: [{name: a, type: str}, {name: a, type: str}]", "twice"),
            ("a: [", "definition"),
        ] {
            let error = read("x", text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
