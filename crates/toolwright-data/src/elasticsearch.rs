//! Elasticsearch: an index whose documents have a field `text`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolwright_core::{BoxFuture, Secret, ToolError};

use crate::api::{Address, Api, segment};
use crate::documents::Document;
use crate::search::{Search, SearchResult};

/// How many documents are sent at a time.
const BATCH: usize = 500;

/// An index of Elasticsearch.
#[derive(Debug)]
pub struct Elasticsearch {
    api: Api,
    index: String,
}

impl Elasticsearch {
    /// An index of the server at `address` (for Elastic Cloud see [`cloud_address`]), with an API key and its
    /// id. The index must exist, and its documents must have a field `text`.
    pub async fn connect(
        address: impl Into<Address>,
        key_id: &str,
        key: &Secret,
        index: &str,
    ) -> Result<Self, ToolError> {
        let found = Self::unchecked(address, key_id, key, index)?;
        let answer = found.api.get(&format!("/{}/_mapping", segment(index)), &[]).await?;
        if answer.0 == 404 {
            return Err(ToolError::invalid(format!("Elasticsearch Index {index} does not exist.")));
        }
        let mapping = found.api.expect("Elasticsearch", answer)?;
        // An alias answers with the names of the indices behind it.
        let has_text = |index: &Value| index.pointer("/mappings/properties/text").is_some();
        if !mapping.as_object().is_some_and(|indices| indices.values().any(has_text)) {
            return Err(ToolError::invalid(format!("Index {index} does not have a field called 'text'.")));
        }
        Ok(found)
    }

    /// An index that is filled first.
    pub fn unchecked(
        address: impl Into<Address>,
        key_id: &str,
        key: &Secret,
        index: &str,
    ) -> Result<Self, ToolError> {
        let proof = format!("ApiKey {}", STANDARD.encode(format!("{key_id}:{}", key.expose())));
        let api = Api::new(&address.into(), Some(("authorization", proof)))?;
        Ok(Elasticsearch { api, index: index.to_owned() })
    }

    /// Adds documents, numbered from 0, and makes them searchable.
    pub async fn store(&self, documents: &[Document]) -> Result<(), ToolError> {
        for (batch, start) in documents.chunks(BATCH).zip((0..).step_by(BATCH)) {
            let lines = batch.iter().zip(start..).map(|(document, number): (_, usize)| {
                let target = json!({"index": {"_index": self.index, "_id": number.to_string()}});
                let fields = json!({"text": document.text, "metadata": document.metadata});
                format!("{target}\n{fields}\n")
            });
            let answer = self.api.post_text("/_bulk", lines.collect(), "application/x-ndjson").await?;
            let answer = self.api.expect("Elasticsearch", answer)?;
            if answer.get("errors") == Some(&Value::Bool(true)) {
                return Err(ToolError::new("Elasticsearch did not take all documents"));
            }
        }
        let answer = self.api.post(&format!("/{}/_refresh", segment(&self.index)), &json!({})).await?;
        self.api.expect("Elasticsearch", answer).map(drop)
    }
}

impl Search for Elasticsearch {
    fn search<'a>(
        &'a self,
        query: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>> {
        Box::pin(async move {
            let body = json!({"query": {"match": {"text": query}}, "size": most.max(10)});
            let answer = self.api.post(&format!("/{}/_search", segment(&self.index)), &body).await?;
            let answer = self.api.expect("Elasticsearch", answer)?;
            let hits = answer.pointer("/hits/hits").and_then(Value::as_array).cloned().unwrap_or_default();
            let result = |hit: &Value| {
                let content = hit.pointer("/_source/text")?.as_str()?.to_owned();
                let source = hit.get("_id").and_then(Value::as_str).unwrap_or_default().to_owned();
                Some(SearchResult { source, title: String::new(), content })
            };
            Ok(hits.iter().filter_map(result).take(most).collect())
        })
    }
}

/// The address of a deployment of Elastic Cloud, from its cloud id.
pub fn cloud_address(cloud_id: &str) -> Result<String, ToolError> {
    let bad = || ToolError::invalid("the cloud id is not one: it is `name:` and a text in Base64");
    let (_, encoded) = cloud_id.rsplit_once(':').ok_or_else(bad)?;
    let text =
        STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(bad)?;
    let mut parts = text.split('$');
    let (host, id) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if host.is_empty() || id.is_empty() {
        return Err(bad());
    }
    let (host, port) = host.split_once(':').unwrap_or((host, "443"));
    Ok(format!("https://{id}.{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cloud_ids_hold_an_address() {
        let id = format!("my:{}", STANDARD.encode("eu.example.com$abc$kib"));
        assert_eq!(cloud_address(&id).unwrap(), "https://abc.eu.example.com:443");
        for bad in ["", "abc", "my:!!", "my:YWJj"] {
            assert!(cloud_address(bad).is_err(), "{bad}");
        }
    }
}
