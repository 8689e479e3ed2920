//! What a script says of itself: its name and parameters, and how arguments and results are passed.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolwright_core::ToolSpec;

/// How arguments reach a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentStyle {
    /// One JSON object on stdin.
    Json,
    /// `--name value`, and positional arguments where the definition has them.
    Flags,
    /// Variables `argc_NAME`.
    Env,
    /// One argument, a JSON object.
    ArgvJson,
}

impl ArgumentStyle {
    pub(crate) const WORDS: &'static str = "`json`, `flags`, `env` and `argv-json`";

    pub(crate) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "json" => ArgumentStyle::Json,
            "flags" => ArgumentStyle::Flags,
            "env" => ArgumentStyle::Env,
            "argv-json" => ArgumentStyle::ArgvJson,
            _ => return None,
        })
    }
}

/// What starts a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptRunner {
    /// The file itself.
    Itself,
    /// Python, which calls the function `run` of the file.
    PythonRun,
    /// Node, which calls `exports.run` of the file.
    NodeRun,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScriptParameter {
    /// As models know it.
    pub(crate) name: String,
    /// The flag with its dashes; `None` for a positional argument.
    pub(crate) flag: Option<String>,
    /// JSON Schema, with its description.
    pub(crate) schema: Value,
    pub(crate) required: bool,
    /// Whether it is a flag without a value.
    pub(crate) switch: bool,
    /// Whether all values stand behind one flag.
    pub(crate) spread: bool,
    /// Joins the values of a list into one argument.
    pub(crate) separator: Option<char>,
    pub(crate) default: Option<Value>,
}

impl ScriptParameter {
    pub(crate) fn new(name: &str, schema: Value) -> Self {
        ScriptParameter {
            name: name.to_owned(),
            flag: Some(format!("--{name}")),
            schema,
            required: false,
            switch: false,
            spread: false,
            separator: None,
            default: None,
        }
    }
}

/// A script, understood.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScriptDefinition {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Vec<ScriptParameter>,
    pub(crate) arguments: ArgumentStyle,
    pub(crate) runner: ScriptRunner,
    /// Whether stdout is JSON.
    pub(crate) json_output: bool,
    pub(crate) output_schema: Option<Value>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) read_only: Option<bool>,
    /// Variables that must be set.
    pub(crate) required_env: Vec<String>,
    /// Variables that have a value when they are not set.
    pub(crate) default_env: Vec<(String, String)>,
    /// Whether `argc --argc-eval` is answered, and whether its answer calls `main`.
    pub(crate) argc: Option<bool>,
}

impl ScriptDefinition {
    pub(crate) fn new(name: &str) -> Self {
        ScriptDefinition {
            name: name.to_owned(),
            description: String::new(),
            parameters: Vec::new(),
            arguments: ArgumentStyle::Json,
            runner: ScriptRunner::Itself,
            json_output: false,
            output_schema: None,
            timeout: None,
            read_only: None,
            required_env: Vec::new(),
            default_env: Vec::new(),
            argc: None,
        }
    }

    /// What models see.
    pub(crate) fn spec(&self) -> ToolSpec {
        let mut properties = Map::new();
        for parameter in &self.parameters {
            let mut schema = parameter.schema.clone();
            if let (Some(members), Some(default)) = (schema.as_object_mut(), &parameter.default) {
                members.insert("default".to_owned(), default.clone());
            }
            properties.insert(parameter.name.clone(), schema);
        }
        let required: Vec<&str> =
            self.parameters.iter().filter(|one| one.required).map(|one| one.name.as_str()).collect();
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if let Some(members) = schema.as_object_mut()
            && !required.is_empty()
        {
            members.insert("required".to_owned(), json!(required));
        }
        let mut spec = ToolSpec::new(self.name.as_str(), self.description.clone());
        spec.parameters = schema;
        spec.output_schema = self.output_schema.clone();
        spec.annotations.read_only = self.read_only;
        spec
    }
}
