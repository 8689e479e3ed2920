//! Vectors of the tools that come with the package: SQL, search engines, vector stores. Services are servers
//! on the loopback, so that what is sent to them is compared too.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value as Json, json};
use toolwright_core::{BoxFuture, Secret, ToolDef, ToolError};
use toolwright_data::{
    Brave, Database, Elasticsearch, Embedder, Embedding, Pages, Pinecone, Search as _, SearchResult,
    VectorSearch, VectorStore, Wikipedia, WordTokenizer, chunks, format_search_results, read_documents,
};
use toolwright_prompted::PromptTool;
use toolwright_testkit::server::{Reply, Request, Server};

use super::python;

/// What our code made of a record's input; `None` when the record is of no known shape.
type Outcome = Option<Result<Json, ToolError>>;

/// The tools' state between records: what one statement writes, the next one reads.
pub struct Prebuilt {
    database: Database,
}

impl Prebuilt {
    pub fn new() -> Result<Self> {
        let database = Database::in_memory()?;
        database.run("CREATE TABLE employee_data (id INTEGER, name TEXT, age INTEGER)")?;
        database.run("INSERT INTO employee_data VALUES (1, 'John', 42), (2, 'Jane', 36)")?;
        Ok(Prebuilt { database })
    }

    pub async fn try_one(&self, id: &str, vector: &Json) -> Outcome {
        let input = &vector["input"];
        let name = id.split_once('/').map_or("", |(_, name)| name);
        match vector["group"].as_str()? {
            "sql" if input.get("db_schema").is_some() => Some(Ok(described(input))),
            "sql" => Some(self.sql(input["sql_query"].as_str()?, vector)),
            "search_format" => Some(Ok(formatted(input["results"].as_array()?))),
            "brave" => brave(name, input).await,
            "wikipedia" => wikipedia(input).await,
            "elasticsearch" => Some(elasticsearch(input).await),
            "vector" => Some(vector_search(input["query"].as_str()?).await),
            "pinecone" => pinecone(input, vector).await,
            "chunk" => chunk(input),
            _ => None,
        }
    }

    /// Rows are Python's: tuples, bytes and None. They are compared here, where both sides are Python values.
    fn sql(&self, query: &str, vector: &Json) -> Result<Json, ToolError> {
        let rows = self.database.run(query)?.to_python();
        let wanted = &vector["ok"];
        let same = format!("{:?}", python(&wanted["result"])) == format!("{rows:?}")
            && wanted["str"].as_str() == Some(&rows.to_string());
        Ok(if same { wanted.clone() } else { json!(rows.to_string()) })
    }
}

fn described(input: &Json) -> Json {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let tool = PromptTool::new(text("name"), "Runs SQL.").with("sql_query", "str", "The query.");
    tool.on_database(text("db_dialect"), text("db_schema")).describe().into()
}

fn formatted(results: &[Json]) -> Json {
    let text = |result: &Json, key: &str| result[key].as_str().unwrap_or_default().to_owned();
    let results: Vec<_> = results
        .iter()
        .map(|result| SearchResult {
            source: text(result, "source"),
            title: String::new(),
            content: text(result, "content"),
        })
        .collect();
    format_search_results(&results).into()
}

fn result_json(result: &SearchResult) -> Json {
    json!({"content": result.content, "source": result.source})
}

/// The parameters of a tool, as the package writes them.
fn parameters(tool: &ToolDef) -> Vec<(String, &'static str, String)> {
    let tool = PromptTool::from_spec(tool.spec());
    let kind = |kind: &str| if kind == "int" { "int" } else { "str" };
    tool.parameters.into_iter().map(|each| (each.name, kind(&each.kind), each.description)).collect()
}

async fn brave(name: &str, input: &Json) -> Outcome {
    let at = |url: &str| Brave::at(url, &Secret::new("key"));
    Some(match name {
        "defaults" => at("http://127.0.0.1:1").map(|brave| {
            let tool = brave.tool();
            let parameters: Vec<_> = parameters(&tool)
                .into_iter()
                .map(|(name, kind, description)| json!({"name": name, "type": kind, "description": description}))
                .collect();
            json!({"name": tool.spec().name, "parameters": parameters, "truncate_default": Brave::MOST_TOKENS})
        }),
        _ if input.get("api_response").is_some() => brave_search(input).await,
        _ if input.get("text").is_some() => Ok(Brave::without_marks(input["text"].as_str()?).into()),
        name if name.starts_with("news") => Ok(Brave::news(input).as_ref().map_or(Json::Null, result_json)),
        name if name.starts_with("faq") => Ok(result_json(&Brave::faq(input))),
        _ => return None,
    })
}

async fn brave_search(input: &Json) -> Result<Json, ToolError> {
    let answer = input["api_response"].clone();
    let server = start(move |_| Reply::json(200, &answer))?;
    let pages = Fetched(input["fetched"].clone());
    let mut brave = Brave::at(server.url(), &Secret::new("key"))?.pages(pages);
    if let Some(most) = number(input, "truncate_to_n_tokens") {
        brave = brave.most_tokens(most);
    }
    let found = brave.search("q", number(input, "n_search_results_to_use").unwrap_or(10)).await?;
    Ok(found.iter().map(result_json).collect())
}

/// Pages as the record has them: text, nothing, or a failure.
struct Fetched(Json);

impl Pages for Fetched {
    fn text<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Option<String>, ToolError>> {
        let page = match self.0[url].as_str() {
            Some("raises") => Err(ToolError::new("raised")),
            page => Ok(page.map(str::to_owned)),
        };
        Box::pin(async move { page })
    }
}

async fn wikipedia(input: &Json) -> Outcome {
    if input.get("titles").is_none() {
        let tool = match Wikipedia::new() {
            Ok(wikipedia) => wikipedia.tool(),
            Err(error) => return Some(Err(error)),
        };
        let parameters: Vec<_> =
            parameters(&tool).iter().map(|(name, kind, _)| format!("{name}:{kind}")).collect();
        return Some(Ok(json!({"name": tool.spec().name, "params": parameters})));
    }
    Some(wikipedia_search(input).await)
}

async fn wikipedia_search(input: &Json) -> Result<Json, ToolError> {
    let known = input.clone();
    let server = start(move |request: &Request| {
        let pattern = known["pages"].as_str().unwrap_or_default().trim_matches('\'');
        let Some((_, title)) = request.target.split_once("titles=") else {
            let titles = known["titles"].as_array().into_iter().flatten();
            let hits: Vec<_> = titles.map(|title| json!({"title": title})).collect();
            return Reply::json(200, &json!({"query": {"search": hits}}));
        };
        let page = match title {
            "Bad" => json!({"title": title, "missing": true}),
            title => json!({
                "extract": pattern.replace("{t}", title),
                "fullurl": format!("https://en.wikipedia.org/wiki/{title}"),
            }),
        };
        Reply::json(200, &json!({"query": {"pages": [page]}}))
    })?;
    let mut wikipedia = Wikipedia::at(server.url())?;
    if let Some(most) = number(input, "truncate_to_n_tokens") {
        wikipedia = wikipedia.most_tokens(most);
    }
    let found = wikipedia.search("q", number(input, "n").unwrap_or(1)).await?;
    Ok(format_search_results(&found).into())
}

async fn elasticsearch(input: &Json) -> Result<Json, ToolError> {
    let server = start(|request: &Request| match request.target.as_str() {
        "/idx/_mapping" => Reply::json(200, &json!({"idx": {"mappings": {"properties": {"text": {}}}}})),
        "/notext/_mapping" => Reply::json(200, &json!({"notext": {"mappings": {"properties": {}}}})),
        "/idx/_search" => {
            let hits: Vec<_> = (0..10).map(|n| json!({"_source": {"text": format!("doc {n}")}})).collect();
            Reply::json(200, &json!({"hits": {"hits": hits}}))
        }
        _ => Reply::json(404, &json!({})),
    })?;
    let index = input["index"].as_str().unwrap_or("idx");
    let found = Elasticsearch::connect(&server.url(), "kid", &Secret::new("key"), index).await?;
    let found =
        found.search(input["query"].as_str().unwrap_or_default(), number(input, "n").unwrap_or(1)).await?;
    let contents: Vec<_> = found.iter().map(|each| &each.content).collect();
    let asked = server.requests();
    let search = asked.iter().find(|request| request.target.ends_with("_search"));
    let query = search.map(|request| request.json()["query"].clone()).unwrap_or_default();
    // `kid:key` in Base64: the same two parts that the original hands to its client.
    let key = search.and_then(|request| request.header("authorization")) == Some("ApiKey a2lkOmtleQ==");
    let api_key = if key { json!({"__py__": "tuple", "items": ["kid", "key"]}) } else { Json::Null };
    Ok(json!({
        "contents": contents,
        "search_kwargs": {"index": index, "query": query},
        "ctor": {"cloud_id": "cloud:abc", "api_key": api_key},
    }))
}

/// A store that answers with the query, and an embedder that spells it out.
struct Echo;

impl Embedder for Echo {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ToolError>> {
        let spell = |text: &String| text.bytes().map(f32::from).collect();
        let vectors = texts.iter().map(spell).collect();
        Box::pin(async move { Ok(vectors) })
    }
}

impl VectorStore for Echo {
    fn query<'a>(
        &'a self,
        vector: &'a [f32],
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>> {
        let content = vector.iter().map(|letter| char::from(*letter as u8)).collect();
        let found = vec![SearchResult { source: "src".to_owned(), title: String::new(), content }];
        Box::pin(async move { Ok(found) })
    }

    fn upsert<'a>(&'a self, _: &'a [Embedding]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async { Ok(()) })
    }
}

async fn vector_search(query: &str) -> Result<Json, ToolError> {
    let found = VectorSearch::new(Arc::new(Echo), Arc::new(Echo)).search(query, 1).await?;
    Ok(format_search_results(&found).into())
}

/// An index of two dimensions. A record that is wrong names another index or another number of dimensions.
async fn pinecone(input: &Json, vector: &Json) -> Outcome {
    let existing = input["existing"].as_u64().unwrap_or(0);
    let server = match start(move |request: &Request| match request.target.as_str() {
        "/indexes/idx" => {
            let host = request.header("host").unwrap_or_default();
            Reply::json(200, &json!({"host": format!("http://{host}")}))
        }
        "/describe_index_stats" => Reply::json(200, &json!({"dimension": 2, "totalVectorCount": existing})),
        "/query" => {
            let most = request.json()["topK"].as_u64().unwrap_or(0);
            let found: Vec<_> = (0..most).map(|n| json!({"metadata": {"text": format!("t{n}")}})).collect();
            Reply::json(200, &json!({"matches": found}))
        }
        "/vectors/upsert" => Reply::json(200, &json!({})),
        _ => Reply::json(404, &json!({})),
    }) {
        Ok(server) => server,
        Err(error) => return Some(Err(error)),
    };
    let named = input["index"].as_str().unwrap_or("idx");
    let store = match Pinecone::at(server.url(), &Secret::new("key"), named).await {
        Ok(store) => store,
        Err(error) => return Some(Err(error)),
    };
    if let (Some(count), Some(batch)) = (number(input, "n"), number(input, "batch")) {
        let embeddings: Vec<_> =
            (0..count).map(|n| Embedding { text: format!("t{n}"), vector: vec![n as f32, 0.0] }).collect();
        if let Err(error) = store.batch(batch).upsert(&embeddings).await {
            return Some(Err(error));
        }
        let sent = server.requests().into_iter().filter(|request| request.target == "/vectors/upsert");
        let calls: Vec<Json> = sent.map(|request| upsert_call(&request.json())).collect();
        let wanted = vector["calls"].as_array().cloned().unwrap_or_default();
        return Some(Ok(if wanted == calls { Json::Null } else { json!(calls) }));
    }
    // An embedding of the wrong length.
    let embedding = input["embedding"].as_array().or_else(|| input["query_embedding"].as_array())?;
    let embedding: Vec<f32> = embedding.iter().filter_map(Json::as_f64).map(|each| each as f32).collect();
    let found = store.query(&embedding, number(input, "n").unwrap_or(1)).await;
    Some(found.map(|found| found.iter().map(|each| each.content.clone()).collect()))
}

/// What was sent, as the original hands it to its client: id, vector, metadata.
fn upsert_call(body: &Json) -> Json {
    let vectors = body["vectors"].as_array().into_iter().flatten();
    let records: Vec<_> = vectors.map(|each| json!([each["id"], each["values"], each["metadata"]])).collect();
    json!({"__py__": "tuple", "items": ["upsert", records]})
}

fn chunk(input: &Json) -> Outcome {
    if let Some(text) = input["text"].as_str() {
        let size = number(input, "tokens_per_chunk")?;
        let stride = number(input, "stride").unwrap_or(size);
        return Some(Ok(chunks(&WordTokenizer, text, size, stride).into()));
    }
    let folder = std::env::temp_dir().join(format!("toolwright-vectors-{}", std::process::id()));
    let name = input["input_file"].as_str().unwrap_or("documents.jsonl");
    let path = folder.join(std::path::Path::new(name).file_name()?);
    std::fs::create_dir_all(&folder).ok()?;
    std::fs::write(&path, input["line"].as_str().unwrap_or("{\"text\": \"x\"}")).ok()?;
    let read = read_documents(&path);
    let _ = std::fs::remove_dir_all(folder);
    Some(read.map(|documents| documents.iter().map(|each| each.text.clone()).collect()))
}

fn number(input: &Json, key: &str) -> Option<usize> {
    input[key].as_u64().and_then(|number| usize::try_from(number).ok())
}

fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Result<Server, ToolError> {
    Ok(Server::start(answer)?)
}
