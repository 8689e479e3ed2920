//! Pinecone, a store of vectors.

use serde_json::{Value, json};
use toolwright_core::{BoxFuture, Secret, ToolError};

use crate::api::{Address, Api, segment};
use crate::search::SearchResult;
use crate::vector::{Embedding, VectorStore};

/// Pinecone's address.
pub(crate) const PINECONE: &str = "https://api.pinecone.io";

/// How many vectors are sent at a time.
const BATCH: usize = 128;

/// An index of Pinecone. The text of a vector is kept in its metadata.
#[derive(Debug)]
pub struct Pinecone {
    api: Api,
    dimension: usize,
    batch: usize,
}

impl Pinecone {
    /// An index, which must exist.
    pub async fn connect(key: &Secret, index: &str) -> Result<Self, ToolError> {
        Self::at(PINECONE, key, index).await
    }

    /// An index that Pinecone's API at another address knows.
    pub async fn at(address: impl Into<Address>, key: &Secret, index: &str) -> Result<Self, ToolError> {
        let address = address.into();
        let header = || Some(("api-key", key.expose().to_owned()));
        let control = Api::new(&address, header())?;
        let answer = control.get(&format!("/indexes/{}", segment(index)), &[]).await?;
        if answer.0 == 404 {
            return Err(ToolError::invalid(format!("Pinecone index {index} does not exist")));
        }
        let about = control.expect("Pinecone", answer)?;
        let host = about.get("host").and_then(Value::as_str).unwrap_or_default();
        let host = if host.contains("://") { host.to_owned() } else { format!("https://{host}") };
        let api = Api::new(&Address::from(host).through(address.proxies), header())?;
        let stats = api.post("/describe_index_stats", &json!({})).await?;
        let stats = api.expect("Pinecone", stats)?;
        let dimension = stats.get("dimension").and_then(Value::as_u64).unwrap_or_default();
        Ok(Pinecone { api, dimension: usize::try_from(dimension).unwrap_or_default(), batch: BATCH })
    }

    /// Sends so many vectors at a time (128).
    #[must_use]
    pub fn batch(mut self, vectors: usize) -> Self {
        self.batch = vectors.max(1);
        self
    }

    async fn count(&self) -> Result<u64, ToolError> {
        let stats = self.api.post("/describe_index_stats", &json!({})).await?;
        let stats = self.api.expect("Pinecone", stats)?;
        Ok(stats.get("totalVectorCount").and_then(Value::as_u64).unwrap_or_default())
    }
}

impl VectorStore for Pinecone {
    fn query<'a>(
        &'a self,
        vector: &'a [f32],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>> {
        Box::pin(async move {
            if vector.len() != self.dimension {
                return Err(ToolError::invalid(format!(
                    "Query embedding dimension {} does not match Pinecone index dimension {}",
                    vector.len(),
                    self.dimension
                )));
            }
            let body = json!({"vector": vector, "topK": most, "includeMetadata": true});
            let answer = self.api.post("/query", &body).await?;
            let answer = self.api.expect("Pinecone", answer)?;
            let matches = answer.get("matches").and_then(Value::as_array).cloned().unwrap_or_default();
            let result = |found: &Value| {
                let content = found.pointer("/metadata/text")?.as_str()?.to_owned();
                let source = found.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                Some(SearchResult { source, title: String::new(), content })
            };
            Ok(matches.iter().filter_map(result).take(most).collect())
        })
    }

    /// Ids go on from the number of vectors there are.
    fn upsert<'a>(&'a self, embeddings: &'a [Embedding]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let mut next = self.count().await? + 1;
            for batch in embeddings.chunks(self.batch) {
                let vectors: Vec<_> = batch
                    .iter()
                    .zip(next..)
                    .map(|(each, id)| {
                        json!({"id": id.to_string(), "values": each.vector, "metadata": {"text": each.text}})
                    })
                    .collect();
                next += vectors.len() as u64;
                let answer = self.api.post("/vectors/upsert", &json!({"vectors": vectors})).await?;
                self.api.expect("Pinecone", answer)?;
            }
            Ok(())
        })
    }
}
