//! Requests of InvokeModel for Claude: those of the Messages API, but for what the address says already.

use serde_json::{Map, Value};
use toolwright_core::{ModelError, ModelRequest};

use super::super::{Delivery, ModelTarget, anthropic};

/// The version of the Messages API that every Claude on Bedrock knows; `extra` may name another.
const VERSION: &str = "bedrock-2023-05-31";

pub(crate) fn encode(
    target: ModelTarget<'_>,
    request: &ModelRequest<'_>,
) -> Result<Map<String, Value>, ModelError> {
    let mut body = anthropic::encode(target, request, Delivery::Whole)?;
    body.shift_remove("model");
    body.insert("anthropic_version".to_owned(), VERSION.into());
    Ok(body)
}
