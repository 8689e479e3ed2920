//! Support for the code that `#[tool]` and `#[toolset]` write.
//!
//! A tool's return type is known where the macro expands, so the choice between "is a `Result`", "has its own
//! conversion" and "serialises" is made by method resolution on references to `Returned`: the trait
//! implemented for more references is tried first. Bounds that stand on a method instead of its impl do not
//! take part in that choice; they are there to fail with a message that says what to write.

pub use schemars;
pub use serde;
pub use serde_json;

pub use crate::{
    State, ToolContext, ToolDef, ToolExt, ToolSpec, Toolset, ToolsetError, run_blocking, schema,
};

use std::cell::Cell;
use std::marker::PhantomData;

use serde::Serialize;
use serde_json::Value;

use crate::error::ToolError;
use crate::output::{IntoToolOutput, Structured, ToolOutput};
use crate::prepare::CallView;

/// A returned value: `(&&Returned::new(value)).split()` takes a `Result` apart, and
/// `(&&Returned::new(value)).convert()` makes the output.
pub struct Returned<T>(Cell<Option<T>>);

impl<T> Returned<T> {
    pub fn new(value: T) -> Self {
        Returned(Cell::new(Some(value)))
    }

    fn take(&self) -> Result<T, ToolError> {
        self.0.take().ok_or_else(|| ToolError::fatal("a tool's result was converted twice"))
    }
}

/// First choice: a `Result`, whose error must be one for a tool.
pub trait SplitResult<T, E> {
    fn split(&self) -> Result<T, ToolError>
    where
        E: ToolFailure;
}

impl<T, E> SplitResult<T, E> for &Returned<Result<T, E>> {
    fn split(&self) -> Result<T, ToolError>
    where
        E: ToolFailure,
    {
        self.take()?.map_err(ToolFailure::into_tool_error)
    }
}

/// Second choice: anything else.
pub trait SplitOther<T> {
    fn split(&self) -> Result<T, ToolError>;
}

impl<T> SplitOther<T> for Returned<T> {
    fn split(&self) -> Result<T, ToolError> {
        self.take()
    }
}

/// First choice: the type has its own conversion.
pub trait ConvertDirectly {
    fn convert(&self) -> Result<ToolOutput, ToolError>;
}

impl<T: IntoToolOutput> ConvertDirectly for &Returned<T> {
    fn convert(&self) -> Result<ToolOutput, ToolError> {
        self.take()?.into_tool_output()
    }
}

/// Second choice: the type must serialise.
pub trait ConvertSerialized<T> {
    fn convert(&self) -> Result<ToolOutput, ToolError>
    where
        T: ToolReturn;
}

impl<T> ConvertSerialized<T> for Returned<T> {
    fn convert(&self) -> Result<ToolOutput, ToolError>
    where
        T: ToolReturn,
    {
        self.take()?.into_output()
    }
}

/// What a tool may return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "neither a tool's output nor serialisable",
    note = "derive `serde::Serialize` for it, or return `String`, `Content`, `ToolOutput` or a `Result` of one of these"
)]
pub trait ToolReturn {
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> ToolReturn for T {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        ToolOutput::serialize(&self)
    }
}

/// What a tool may fail with.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "does not convert into `ToolError`",
    note = "return `Result<_, ToolError>` and convert where it fails, for example \
            `.map_err(|error| ToolError::new(error.to_string()))`, or give your own error type `impl From<..> for ToolError`"
)]
pub trait ToolFailure {
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> ToolFailure for E {
    fn into_tool_error(self) -> ToolError {
        self.into()
    }
}

/// What the function named by `viewer = ...` may return.
#[diagnostic::on_unimplemented(
    message = "a viewer cannot return `{Self}`",
    label = "not a view of a call",
    note = "write it as `fn(&Value) -> CallView` or `fn(&Value) -> Result<CallView, ToolError>`"
)]
pub trait IntoCallView {
    fn into_call_view(self) -> Result<CallView, ToolError>;
}

impl IntoCallView for CallView {
    fn into_call_view(self) -> Result<CallView, ToolError> {
        Ok(self)
    }
}

impl<E: Into<ToolError>> IntoCallView for Result<CallView, E> {
    fn into_call_view(self) -> Result<CallView, ToolError> {
        self.map_err(Into::into)
    }
}

/// Finds the output schema of a return type, when it is [`Structured`] or promises an object:
/// `(&&&&ReturnType::<T>(PhantomData)).schema()`.
pub struct ReturnType<T>(pub PhantomData<T>);

/// First choice: a type that says it is structured has a schema whatever it is.
pub trait StructuredSchema {
    fn schema(&self) -> Option<Value>;
}

impl<T: schemars::JsonSchema> StructuredSchema for &&&ReturnType<Structured<T>> {
    fn schema(&self) -> Option<Value> {
        Some(crate::schema::output_schema_of::<T>())
    }
}

impl<T: schemars::JsonSchema, E> StructuredSchema for &&&ReturnType<Result<Structured<T>, E>> {
    fn schema(&self) -> Option<Value> {
        Some(crate::schema::output_schema_of::<T>())
    }
}

/// Next choice: a `Result`, because `schemars` describes one as an object with `Ok` and `Err`.
pub trait ResultObjectSchema {
    fn schema(&self) -> Option<Value>;
}

impl<T: schemars::JsonSchema, E> ResultObjectSchema for &&ReturnType<Result<T, E>> {
    fn schema(&self) -> Option<Value> {
        object_schema::<T>()
    }
}

/// Next choice: a type that has a schema.
pub trait ObjectSchema {
    fn schema(&self) -> Option<Value>;
}

impl<T: schemars::JsonSchema> ObjectSchema for &ReturnType<T> {
    fn schema(&self) -> Option<Value> {
        object_schema::<T>()
    }
}

/// Last choice: any other type promises nothing.
pub trait NoSchema {
    fn schema(&self) -> Option<Value>;
}

impl<T> NoSchema for ReturnType<T> {
    fn schema(&self) -> Option<Value> {
        None
    }
}

fn object_schema<T: schemars::JsonSchema>() -> Option<Value> {
    let schema = crate::schema::output_schema_of::<T>();
    (schema.get("type").and_then(Value::as_str) == Some("object")).then_some(schema)
}
