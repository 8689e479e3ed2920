//! Search by meaning: texts become vectors, and near vectors are near in meaning.

use std::sync::{Arc, Mutex};

use toolwright_core::{BoxFuture, ToolError};
use toolwright_util::lock;

use crate::search::{Search, SearchResult};

/// A text and its vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// The text.
    pub text: String,
    /// The vector.
    pub vector: Vec<f32>,
}

/// Makes vectors of texts.
pub trait Embedder: Send + Sync {
    /// One vector for each text, in order.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ToolError>>;
}

/// Keeps vectors and finds the nearest.
pub trait VectorStore: Send + Sync {
    /// The texts whose vectors are nearest, the nearest first.
    fn query<'a>(
        &'a self,
        vector: &'a [f32],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>>;

    /// Adds texts.
    fn upsert<'a>(&'a self, embeddings: &'a [Embedding]) -> BoxFuture<'a, Result<(), ToolError>>;
}

/// Search by meaning.
pub struct VectorSearch {
    embedder: Arc<dyn Embedder>,
    store: Arc<dyn VectorStore>,
}

impl VectorSearch {
    /// Searches `store` for what `embedder` makes of a query. Both must be those that the store was filled
    /// with.
    pub fn new(embedder: Arc<dyn Embedder>, store: Arc<dyn VectorStore>) -> Self {
        VectorSearch { embedder, store }
    }
}

impl Search for VectorSearch {
    fn search<'a>(
        &'a self,
        query: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>> {
        Box::pin(async move {
            let vectors = self.embedder.embed(&[query.to_owned()]).await?;
            let vector = vectors.first().ok_or_else(|| ToolError::new("there is no vector for the query"))?;
            self.store.query(vector, most).await
        })
    }
}

/// A store in memory, for tests and for what fits there: every query compares with every vector.
#[derive(Debug, Default)]
pub struct MemoryStore {
    embeddings: Mutex<Vec<Embedding>>,
}

impl VectorStore for MemoryStore {
    fn query<'a>(
        &'a self,
        vector: &'a [f32],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>> {
        let embeddings = lock(&self.embeddings);
        let mut ranked: Vec<_> = embeddings
            .iter()
            .zip(1..)
            .map(|(each, number)| (nearness(&each.vector, vector), number, each))
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let results = ranked.into_iter().take(most).map(|(_, number, each): (_, usize, _)| SearchResult {
            source: number.to_string(),
            title: String::new(),
            content: each.text.clone(),
        });
        let results = results.collect();
        Box::pin(async move { Ok(results) })
    }

    fn upsert<'a>(&'a self, embeddings: &'a [Embedding]) -> BoxFuture<'a, Result<(), ToolError>> {
        lock(&self.embeddings).extend_from_slice(embeddings);
        Box::pin(async { Ok(()) })
    }
}

/// The cosine of the angle between two vectors.
fn nearness(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let length = (dot(a, a) * dot(b, b)).sqrt();
    if length > 0.0 && a.len() == b.len() { dot(a, b) / length } else { -1.0 }
}
