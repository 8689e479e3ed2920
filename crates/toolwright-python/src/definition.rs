//! What the worker reports of a file: its tools, and the functions that are left out.

use serde::Deserialize;
use serde_json::Value;

/// One tool, as the worker reads it from hints and docstring.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct PythonDefinition {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) parameters: Value,
    #[serde(default)]
    pub(crate) output: Option<Value>,
    #[serde(rename = "async", default)]
    pub(crate) is_async: bool,
    /// What was guessed.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    #[serde(default)]
    pub(crate) read_only: Option<bool>,
    #[serde(default)]
    pub(crate) parallel: Option<bool>,
    /// In seconds.
    #[serde(default)]
    pub(crate) timeout: Option<f64>,
}

/// A function that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// The line in the file, where that is known.
    #[serde(default)]
    pub line: Option<u32>,
    /// The reason.
    pub reason: String,
}

/// All that a worker reports of its file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Description {
    pub(crate) tools: Vec<PythonDefinition>,
    #[serde(default)]
    pub(crate) left_out: Vec<LeftOut>,
    /// The version of the interpreter.
    #[serde(default)]
    pub(crate) python: String,
}
