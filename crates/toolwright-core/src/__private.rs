//! Support for the code that `#[tool]` and `#[toolset]` write.
//!
//! A tool's return type is known where the macro expands, so the choice between "has its own conversion", "serialises"
//! and "is a `Result` of one of these" is made by method resolution on references to [`Returned`].

pub use schemars;
pub use serde;
pub use serde_json;

use std::marker::PhantomData;

use serde::Serialize;
use serde_json::Value;

use crate::error::ToolError;
use crate::output::{IntoToolOutput, ToolOutput};

/// Wraps a returned value so that the best conversion is picked: `(&&Returned::new(value)).convert()`.
pub struct Returned<T>(std::cell::Cell<Option<T>>);

impl<T> Returned<T> {
    pub fn new(value: T) -> Self {
        Returned(std::cell::Cell::new(Some(value)))
    }

    fn take(&self) -> Result<T, ToolError> {
        self.0.take().ok_or_else(|| ToolError::fatal("a tool's result was converted twice"))
    }
}

/// First choice: the type has its own conversion.
pub trait ConvertDirectly {
    fn convert(&self) -> Result<ToolOutput, ToolError>;
}

impl<T: IntoToolOutput> ConvertDirectly for &&Returned<T> {
    fn convert(&self) -> Result<ToolOutput, ToolError> {
        self.take()?.into_tool_output()
    }
}

/// Second choice: a `Result` of something that serialises.
pub trait ConvertResult {
    fn convert(&self) -> Result<ToolOutput, ToolError>;
}

impl<T: Serialize, E: Into<ToolError>> ConvertResult for &Returned<Result<T, E>> {
    fn convert(&self) -> Result<ToolOutput, ToolError> {
        let value = self.take()?.map_err(Into::into)?;
        ToolOutput::serialize(&value)
    }
}

/// Last choice: the type serialises.
pub trait ConvertSerialized {
    fn convert(&self) -> Result<ToolOutput, ToolError>;
}

impl<T: Serialize> ConvertSerialized for Returned<T> {
    fn convert(&self) -> Result<ToolOutput, ToolError> {
        ToolOutput::serialize(&self.take()?)
    }
}

/// Finds the output schema of a return type, when it has one that promises an object.
pub struct ReturnType<T>(pub PhantomData<T>);

pub trait ObjectSchema {
    fn schema(&self) -> Option<Value>;
}

impl<T: schemars::JsonSchema> ObjectSchema for &&ReturnType<T> {
    fn schema(&self) -> Option<Value> {
        object_schema::<T>()
    }
}

pub trait ResultObjectSchema {
    fn schema(&self) -> Option<Value>;
}

impl<T: schemars::JsonSchema, E> ResultObjectSchema for &ReturnType<Result<T, E>> {
    fn schema(&self) -> Option<Value> {
        object_schema::<T>()
    }
}

pub trait NoSchema {
    fn schema(&self) -> Option<Value>;
}

impl<T> NoSchema for ReturnType<T> {
    fn schema(&self) -> Option<Value> {
        None
    }
}

fn object_schema<T: schemars::JsonSchema>() -> Option<Value> {
    let schema = crate::schema::schema_of::<T>();
    (schema.get("type").and_then(Value::as_str) == Some("object")).then_some(schema)
}
