//! Tools as the prompt describes them.

use serde_json::Value as Json;
use toolwright_core::ToolSpec;

use crate::error::{PromptError, PromptErrorKind};
use crate::message::tame;

/// A tool as the prompt describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTool {
    /// The name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes; all of it must be given.
    pub parameters: Vec<Parameter>,
    /// What a model should know when it calls the tool.
    pub usage_notes: Vec<String>,
}

/// A parameter of a [`PromptTool`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The type, by its Python name; see [`convert`](crate::convert).
    pub kind: String,
    /// What it is for.
    pub description: String,
}

impl PromptTool {
    /// A tool without parameters.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        PromptTool {
            name: name.into(),
            description: description.into(),
            parameters: Vec::new(),
            usage_notes: Vec::new(),
        }
    }

    /// The tool with one more parameter.
    #[must_use]
    pub fn with(mut self, name: &str, kind: &str, description: &str) -> Self {
        self.parameters.push(Parameter {
            name: name.into(),
            kind: kind.into(),
            description: description.into(),
        });
        self
    }

    /// The tool, told to work on a database of that dialect and schema.
    #[must_use]
    pub fn on_database(mut self, dialect: &str, schema: &str) -> Self {
        self.description.push_str(&format!(
            "\nThe database uses {dialect} dialect. The schema of the database is provided to you here:\n\
             <schema>\n{schema}\n</schema>"
        ));
        let note =
            "When invoking this tool, the contents of the 'query' parameter does NOT need to be XML-escaped.";
        self.usage_notes.push(note.to_owned());
        self
    }

    /// A tool of ours. The format knows no optional parameters: those are left out, and a default takes their
    /// place.
    pub fn from_spec(spec: &ToolSpec) -> Self {
        let mut tool = PromptTool::new(&*spec.name, &spec.description);
        let required = spec.parameters.get("required").and_then(Json::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|each| each == name));
        for (name, schema) in
            spec.parameters.get("properties").and_then(Json::as_object).into_iter().flatten()
        {
            if is_required(name) {
                let described = schema.get("description").and_then(Json::as_str).unwrap_or_default();
                tool = tool.with(name, python_type(schema), described);
            }
        }
        tool
    }

    /// Reads a tool as anthropic-tools writes it: `name`, `description` and a list of `parameters`, each with
    /// `name`, `type` and `description`.
    pub fn from_json(json: &Json) -> Result<Self, PromptError> {
        let field = |object: &Json, key: &str| {
            let found = object.get(key).and_then(Json::as_str).map(str::to_owned);
            found.ok_or_else(|| {
                PromptError::new(PromptErrorKind::Tool, format!("a tool or parameter lacks the text `{key}`"))
            })
        };
        let mut tool = PromptTool::new(field(json, "name")?, field(json, "description")?);
        for parameter in json.get("parameters").and_then(Json::as_array).into_iter().flatten() {
            let (name, kind) = (field(parameter, "name")?, field(parameter, "type")?);
            tool = tool.with(&name, &kind, &field(parameter, "description")?);
        }
        Ok(tool)
    }

    /// The block that describes the tool in a prompt.
    pub fn describe(&self) -> String {
        let parameters = self.parameters.iter().map(|parameter| {
            let Parameter { name, kind, description } = parameter;
            format!(
                "<parameter>\n<name>{name}</name>\n<type>{kind}</type>\n<description>{description}</description>\n</parameter>"
            )
        });
        let parameters = parameters.collect::<Vec<_>>().join("\n");
        let notes = match self.usage_notes.as_slice() {
            [] => String::new(),
            notes => format!("\n<important_usage_notes>\n* {}\n</important_usage_notes>", notes.join("\n* ")),
        };
        // Tools may come from third parties, so their texts are untrusted.
        tame(format!(
            "<tool_description>\n<tool_name>{}</tool_name>\n<description>\n{}\n</description>\n\
             <parameters>\n{parameters}\n</parameters>{notes}\n</tool_description>",
            self.name, self.description
        ))
    }
}

/// The instructions that teach a model to use these tools.
pub fn system_prompt(tools: &[PromptTool]) -> String {
    let tools: Vec<_> = tools.iter().map(PromptTool::describe).collect();
    format!(
        "In this environment you have access to a set of tools you can use to answer the user's question.\n\n\
         You may call them like this:\n<function_calls>\n<invoke>\n<tool_name>$TOOL_NAME</tool_name>\n<parameters>\n\
         <$PARAMETER_NAME>$PARAMETER_VALUE</$PARAMETER_NAME>\n...\n</parameters>\n</invoke>\n</function_calls>\n\n\
         Here are the tools available:\n<tools>\n{}\n</tools>",
        tools.join("\n")
    )
}

/// The type of a truth value that is read by its words.
pub(crate) const BOOLEAN: &str = "boolean";

/// The Python type that holds what a schema accepts.
fn python_type(schema: &Json) -> &'static str {
    match schema.get("type").and_then(Json::as_str) {
        Some("integer") => "int",
        Some("number") => "float",
        Some("boolean") => BOOLEAN,
        Some("array") => "list",
        Some("object") => "dict",
        _ => "str",
    }
}
