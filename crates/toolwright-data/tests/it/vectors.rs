//! Search by meaning.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_core::{BoxFuture, Secret, ToolError};
use toolwright_data::{
    Document, Embedder, Embedding, HuggingFace, MemoryStore, Pinecone, Search as _, VectorSearch,
    VectorStore as _, WordTokenizer, embed_and_store, read_documents,
};
use toolwright_testkit::server::{Reply, Server};

/// Counts letters, so that texts with the same letters are near.
struct Letters;

impl Embedder for Letters {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ToolError>> {
        let vector = |text: &String| "abct".chars().map(|c| text.matches(c).count() as f32).collect();
        let vectors = texts.iter().map(vector).collect();
        Box::pin(async move { Ok(vectors) })
    }
}

#[tokio::test]
async fn documents_are_cut_stored_and_found() {
    let store = Arc::new(MemoryStore::default());
    let documents = [Document { text: "cat cat bab bab".into(), metadata: Value::Null }];
    embed_and_store(&documents, (2, 2), &WordTokenizer, &Letters, &*store).await.unwrap();
    let found = VectorSearch::new(Arc::new(Letters), store.clone()).search("tac", 1).await.unwrap();
    assert_eq!(found[0].content, "cat cat");
    assert!(embed_and_store(&documents, (2, 0), &WordTokenizer, &Letters, &*store).await.is_err());
}

#[test]
fn files_of_documents_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        read_documents(&path).map_err(|error| error.message().to_owned())
    };
    let good =
        read("a.jsonl", "{\"text\": \"x\", \"metadata\": {\"id\": 1}}\n\n{\"text\": \"y\"}\n").unwrap();
    assert_eq!(good[0], Document { text: "x".into(), metadata: json!({"id": 1}) });
    assert_eq!(good[1].metadata, Value::Null);
    assert_eq!(read("a.txt", "").unwrap_err(), "Invalid file_type. Supported types: 'jsonl'");
    for bad in ["{\"body\": \"x\"}", "{\"text\": null}"] {
        assert_eq!(read("b.jsonl", bad).unwrap_err(), "Invalid jsonl file. 'text' key is missing on line 0");
    }
    assert!(read("c.jsonl", "{").unwrap_err().starts_with("line 0 is not JSON"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pinecone_is_filled_and_asked() {
    let data = Server::start(|request| match request.target.as_str() {
        "/describe_index_stats" => Reply::json(200, &json!({"dimension": 2, "totalVectorCount": 10})),
        "/query" => Reply::json(200, &json!({"matches": [{"id": "7", "metadata": {"text": "found"}}]})),
        _ => Reply::json(200, &json!({})),
    })
    .unwrap();
    let host = data.url();
    let control = Server::start(move |request| match request.target.as_str() {
        "/indexes/here" => Reply::json(200, &json!({"host": host})),
        _ => Reply::json(404, &json!({})),
    })
    .unwrap();
    let key = Secret::new("pc-key");
    let missing = Pinecone::at(control.url(), &key, "gone").await.unwrap_err();
    assert_eq!(missing.message(), "Pinecone index gone does not exist");
    let store = Pinecone::at(control.url(), &key, "here").await.unwrap().batch(2);
    let short = store.query(&[1.0], 1).await.unwrap_err();
    assert_eq!(short.message(), "Query embedding dimension 1 does not match Pinecone index dimension 2");
    let found = store.query(&[1.0, 0.0], 1).await.unwrap();
    assert_eq!((found[0].source.as_str(), found[0].content.as_str()), ("7", "found"));
    let embeddings: Vec<_> =
        (0..3).map(|n| Embedding { text: format!("t{n}"), vector: vec![n as f32, 0.0] }).collect();
    store.upsert(&embeddings).await.unwrap();
    let sent: Vec<_> = data
        .requests()
        .iter()
        .filter(|each| each.target == "/vectors/upsert")
        .map(|each| each.json())
        .collect();
    let ids: Vec<Vec<_>> = sent
        .iter()
        .map(|body| body["vectors"].as_array().unwrap().iter().map(|vector| vector["id"].clone()).collect())
        .collect();
    assert_eq!(json!(ids), json!([["11", "12"], ["13"]]));
    assert!(data.requests().iter().all(|request| request.header("api-key") == Some("pc-key")));
}

#[tokio::test(flavor = "multi_thread")]
async fn hugging_face_makes_one_vector_for_each_text() {
    let server = Server::start(|request| {
        let texts = request.json()["inputs"].as_array().map_or(0, Vec::len);
        match (request.target.as_str(), texts) {
            ("/a/b/pipeline/feature-extraction", 1) => Reply::json(200, &json!([[0.5, 1.0]])),
            ("/a/b/pipeline/feature-extraction", 2) => Reply::json(200, &json!([[0.5, 1.0]])),
            _ => Reply::json(200, &json!({"error": "Model is loading"})),
        }
    })
    .unwrap();
    let model = |name| HuggingFace::at(server.url(), name, &Secret::new("hf")).unwrap();
    assert_eq!(model("a/b").embed(&["x".into()]).await.unwrap(), [[0.5, 1.0]]);
    assert!(model("a/b").embed(&["x".into(), "y".into()]).await.is_err());
    assert!(model("c").embed(&["x".into()]).await.unwrap_err().message().contains("Model is loading"));
}
