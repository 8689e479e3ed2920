//! Documents from a file of lines, cut into chunks and stored.

use std::path::Path;

use serde_json::Value;
use toolwright_core::ToolError;

use crate::tokens::{Tokenizer, chunks};
use crate::vector::{Embedder, Embedding, VectorStore};

/// How many chunks are embedded at a time.
const BATCH: usize = 128;

/// A text, and what else is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The text.
    pub text: String,
    /// Anything.
    pub metadata: Value,
}

/// Reads a file of documents: each line of a `.jsonl` file is an object with `text` and perhaps `metadata`.
pub fn read_documents(path: &Path) -> Result<Vec<Document>, ToolError> {
    if path.extension().is_none_or(|extension| extension != "jsonl") {
        return Err(ToolError::invalid("Invalid file_type. Supported types: 'jsonl'"));
    }
    let lines = std::fs::read_to_string(path)?;
    lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(document).collect()
}

fn document((number, line): (usize, &str)) -> Result<Document, ToolError> {
    let parsed: Result<Value, _> = serde_json::from_str(line);
    let mut fields =
        parsed.map_err(|cause| ToolError::invalid(format!("line {number} is not JSON: {cause}")))?;
    let text = match fields.get_mut("text").map(Value::take) {
        Some(Value::String(text)) => text,
        _ => {
            let text = format!("Invalid jsonl file. 'text' key is missing on line {number}");
            return Err(ToolError::invalid(text));
        }
    };
    let metadata = fields.get_mut("metadata").map(Value::take).unwrap_or_default();
    Ok(Document { text, metadata })
}

/// Cuts documents into chunks of `size` tokens (384 is usual), each beginning `stride` tokens after the one
/// before, and stores their vectors.
pub async fn embed_and_store(
    documents: &[Document],
    (size, stride): (usize, usize),
    tokenizer: &dyn Tokenizer,
    embedder: &dyn Embedder,
    store: &dyn VectorStore,
) -> Result<(), ToolError> {
    if size == 0 || stride == 0 {
        return Err(ToolError::invalid("a chunk has at least one token, and so has its stride"));
    }
    let texts: Vec<String> =
        documents.iter().flat_map(|document| chunks(tokenizer, &document.text, size, stride)).collect();
    for batch in texts.chunks(BATCH) {
        let vectors = embedder.embed(batch).await?;
        let embeddings: Vec<_> = batch
            .iter()
            .zip(vectors)
            .map(|(text, vector)| Embedding { text: text.clone(), vector })
            .collect();
        store.upsert(&embeddings).await?;
    }
    Ok(())
}
