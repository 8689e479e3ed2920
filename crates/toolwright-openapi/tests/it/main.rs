//! The integration tests: documents in, definitions and requests out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests"
)]

mod bodies;
mod documents;
mod paging;
mod styles;

use serde_json::Value;
use toolwright_openapi::{ApiDocument, ApiOperation, ImportOptions, ImportedApi};

fn import(document: &Value) -> ImportedApi {
    ApiDocument::parse("t.json", &document.to_string()).unwrap().import(&ImportOptions::default()).unwrap()
}

fn only(document: &Value) -> ApiOperation {
    let mut api = import(document);
    assert!(api.left_out.is_empty(), "{:?}", api.left_out);
    assert_eq!(api.operations.len(), 1);
    api.operations.remove(0)
}
