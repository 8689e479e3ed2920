//! OpenAPI documents (2.0, 3.0 and 3.1) as tools: a document becomes [operations](ApiOperation), each with
//! the definition models receive, and arguments become [requests](ApiRequest). Nothing here does I/O: no
//! `$ref` is fetched, no request is sent.
//!
//! ```
//! use serde_json::json;
//! use toolwright_openapi::{ApiDocument, ImportOptions};
//!
//! let text = "
//! openapi: 3.1.0
//! servers: [{url: https://api.example/v1}]
//! paths:
//!   /pets/{id}:
//!     get:
//!       operationId: getPet
//!       parameters: [{name: id, in: path, required: true}]
//! ";
//! let api = ApiDocument::parse("pets.yaml", text)?.import(&ImportOptions::default())?;
//! let get = &api.operations[0];
//! assert_eq!(&*get.spec().name, "getPet");
//! assert_eq!(get.request(&json!({"id": "a/b"}))?.url, "https://api.example/v1/pets/a%2Fb");
//! # Ok::<(), toolwright_core::ToolError>(())
//! ```

mod arguments;
mod body;
mod document;
mod import;
mod multipart;
mod names;
mod operation;
mod pages;
mod pointer;
mod request;
mod schema;
mod security;
mod server;
mod style;
mod swagger;

pub use document::ApiDocument;
pub use import::{ImportOptions, ImportedApi, LeftOutOperation};
pub use multipart::{FormPart, PartContent, multipart};
pub use operation::ApiOperation;
pub use pages::{PageCursor, items, next_page};
pub use pointer::find;
pub use request::{ApiRequest, RequestBody};
pub use security::{SecurityKind, SecurityScheme};
