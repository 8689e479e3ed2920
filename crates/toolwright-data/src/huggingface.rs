//! Hugging Face's inference API, which makes vectors of texts.

use serde_json::{Value, json};
use toolwright_core::{BoxFuture, Secret, ToolError};

use crate::api::{Address, Api, segment};
use crate::vector::Embedder;

/// The model that is used when none is named.
pub(crate) const MODEL: &str = "sentence-transformers/all-mpnet-base-v2";

/// Where models run.
pub(crate) const INFERENCE: &str = "https://router.huggingface.co/hf-inference/models";

/// A model of Hugging Face's that makes vectors.
#[derive(Debug)]
pub struct HuggingFace {
    api: Api,
    path: String,
}

impl HuggingFace {
    /// The default model, `sentence-transformers/all-mpnet-base-v2`.
    pub fn new(key: &Secret) -> Result<Self, ToolError> {
        Self::at(INFERENCE, MODEL, key)
    }

    /// A model, and the address where models run.
    pub fn at(address: impl Into<Address>, model: &str, key: &Secret) -> Result<Self, ToolError> {
        let api = Api::new(&address.into(), Some(("authorization", format!("Bearer {}", key.expose()))))?;
        let model: Vec<_> = model.split('/').map(segment).collect();
        Ok(HuggingFace { api, path: format!("/{}/pipeline/feature-extraction", model.join("/")) })
    }
}

impl Embedder for HuggingFace {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ToolError>> {
        Box::pin(async move {
            let answer = self.api.post(&self.path, &json!({"inputs": texts})).await?;
            let answer = self.api.expect("Hugging Face", answer)?;
            // An answer of 200 may still be an error.
            if let Some(error) = answer.get("error").and_then(Value::as_str) {
                return Err(ToolError::new(format!("Hugging Face says: {error}")));
            }
            let vectors: Vec<Vec<f32>> = serde_json::from_value(answer).map_err(|cause| {
                ToolError::new("Hugging Face did not answer with vectors").with_source(cause)
            })?;
            if vectors.len() != texts.len() {
                let text = format!("Hugging Face gave {} vectors for {} texts", vectors.len(), texts.len());
                return Err(ToolError::new(text));
            }
            Ok(vectors)
        })
    }
}
