//! An OpenAPI document that was read: bounded, its version known, Swagger 2.0 rewritten as 3.0.

use serde_json::Value;
use toolwright_core::{ErrorKind, ToolError};

use crate::import::{self, ImportOptions, ImportedApi};
use crate::swagger;

/// The most bytes of a document.
const MAX_BYTES: usize = 64 << 20;

/// How deep a document may be nested.
const MAX_DEPTH: usize = 120;

/// An OpenAPI document.
#[derive(Debug, Clone)]
pub struct ApiDocument {
    pub(crate) root: Value,
    /// Before 3.1 a schema has `nullable`, and siblings of a `$ref` do not count.
    pub(crate) is_draft_2020: bool,
}

impl ApiDocument {
    /// Reads a document of JSON or YAML. The name is for messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ToolError> {
        if text.len() > MAX_BYTES {
            let message =
                format!("`{name}` has {} bytes, and an OpenAPI document may have {MAX_BYTES}", text.len());
            return Err(ToolError::of(ErrorKind::Limit, message));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = match text.trim_start().starts_with('{') {
            true => serde_json::from_str(text)
                .map_err(|error| ToolError::invalid(format!("`{name}` is not JSON: {error}")))?,
            false => toolwright_yaml::read_plain_data(name, text)
                .map_err(|error| ToolError::invalid(format!("`{name}` is not YAML: {error}")))?,
        };
        Self::read(name, root)
    }

    fn read(name: &str, root: Value) -> Result<Self, ToolError> {
        if depth_over(&root, MAX_DEPTH) {
            let message = format!("`{name}` is nested deeper than {MAX_DEPTH} levels");
            return Err(ToolError::of(ErrorKind::Limit, message));
        }
        let version = |key: &str| root.get(key).map(version_text);
        match (version("openapi"), version("swagger")) {
            (Some(version), _) if version.starts_with("3.0") => {
                Ok(ApiDocument { root, is_draft_2020: false })
            }
            (Some(version), _) if version.starts_with("3.") => Ok(ApiDocument { root, is_draft_2020: true }),
            (None, Some(version)) if version.starts_with('2') => {
                Ok(ApiDocument { root: swagger::as_version_3(&root), is_draft_2020: false })
            }
            (Some(version), _) | (None, Some(version)) => {
                Err(ToolError::invalid(format!("`{name}` is of version `{version}`, which is not supported"))
                    .hint("OpenAPI 2.0, 3.0 and 3.1 are read"))
            }
            (None, None) => Err(ToolError::invalid(format!("`{name}` is not an OpenAPI document"))
                .hint("it has neither `openapi: 3.x` nor `swagger: '2.0'` at its top")),
        }
    }

    /// The operations that the options want, as tools. One that cannot be a tool is listed with the reason.
    pub fn import(&self, options: &ImportOptions) -> Result<ImportedApi, ToolError> {
        import::import(self, options)
    }

    /// What the API is called.
    pub fn title(&self) -> &str {
        self.root.pointer("/info/title").and_then(Value::as_str).unwrap_or("an API")
    }
}

fn version_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn depth_over(value: &Value, most: usize) -> bool {
    let Some(left) = most.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| depth_over(item, left)),
        Value::Object(members) => members.values().any(|member| depth_over(member, left)),
        _ => false,
    }
}
