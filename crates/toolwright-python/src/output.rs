//! The end of a call as an output or an error.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use toolwright_core::{Content, ErrorKind, ToolError, ToolOutput};

use crate::frame::WorkerFrame;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text { text: String },
    Image { mime: String, at: usize },
}

#[derive(Deserialize)]
struct Success {
    #[serde(default)]
    blocks: Vec<Block>,
    #[serde(default)]
    has_value: bool,
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    hint: Option<String>,
    #[serde(default)]
    trace: String,
}

/// Where a function failed, for the operator.
#[derive(Debug)]
struct Traceback(String);

impl fmt::Display for Traceback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.trim_end())
    }
}

impl std::error::Error for Traceback {}

/// What a call returned, or why it failed.
pub(crate) fn of(frame: WorkerFrame) -> Result<ToolOutput, ToolError> {
    let broken =
        |error: serde_json::Error| ToolError::new(format!("the worker's result cannot be read: {error}"));
    if frame.header.get("type").and_then(Value::as_str) == Some("error") {
        return Err(error(Failure::deserialize(frame.header).map_err(broken)?));
    }
    let Success { blocks, has_value, value } = Success::deserialize(frame.header).map_err(broken)?;
    let mut output = if has_value { ToolOutput::json(value) } else { ToolOutput::default() };
    for block in blocks {
        output.content.push(match block {
            Block::Text { text } => Content::text(text),
            Block::Image { mime, at } => match frame.attachments.get(at) {
                Some(bytes) if mime.starts_with("image/") => Content::image(mime, bytes),
                _ => return Err(ToolError::new("the worker's result has a picture without its bytes")),
            },
        });
    }
    Ok(output)
}

fn error(failure: Failure) -> ToolError {
    let kind = serde_json::from_value(Value::String(failure.kind)).unwrap_or(ErrorKind::Unknown);
    let mut error = ToolError::of(kind, failure.message);
    if let Some(hint) = failure.hint {
        error = error.hint(hint);
    }
    if failure.trace.is_empty() { error } else { error.with_source(Traceback(failure.trace)) }
}
