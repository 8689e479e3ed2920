//! Tools as a file asks for them.

use serde_json::{Value, json};
use toolwright_core::{ErrorKind, ToolCall, ToolResult, Toolset};
use toolwright_data::{DataTools, Database};
use toolwright_runtime::Run;
use toolwright_testkit::server::{Reply, Server};

fn tools(variables: &[(&str, String)]) -> DataTools {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    DataTools::new(std::env::temp_dir(), move |name| {
        variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    })
}

async fn call(tools: &DataTools, name: &str, config: Value, arguments: Value) -> ToolResult {
    let tool = tools.tool(name, &config).unwrap().unwrap();
    let run = Run::builder(Toolset::new().with(tool).unwrap()).build().unwrap();
    run.call(ToolCall::new("1", name, arguments)).await.unwrap()
}

fn query() -> Value {
    json!({"query": "otters", "n_search_results_to_use": 1})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_can_be_read_and_written_only_when_the_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("staff.db");
    let database = Database::open(&path).unwrap();
    database.run("CREATE TABLE staff (name TEXT)").unwrap();
    database.run("INSERT INTO staff VALUES ('Ada')").unwrap();
    let tools = DataTools::new(folder.path(), |_| None);
    let read = json!({"database": "staff.db", "description": "Who works here."});
    let tool = tools.tool("sql_query", &read).unwrap().unwrap();
    assert!(tool.spec().description.starts_with("Who works here.\n"));
    assert!(tool.spec().description.contains("CREATE TABLE staff"));
    let rows = call(&tools, "sql_query", read.clone(), json!({"sql_query": "SELECT name FROM staff"})).await;
    assert_eq!(rows.to_text(), r#"{"columns":["name"],"rows":[["Ada"]]}"#);
    let gone = json!({"sql_query": "DELETE FROM staff"});
    assert!(call(&tools, "sql_query", read, gone.clone()).await.is_error());
    let write = json!({"database": "staff.db", "read_only": false});
    assert!(!call(&tools, "sql_query", write, gone).await.is_error());
    assert_eq!(database.run("SELECT * FROM staff").unwrap().rows.len(), 0);
}

#[test]
fn what_a_file_says_wrong_is_said_when_it_is_loaded() {
    let tools = tools(&[]);
    let refused = |name: &str, config: Value| tools.tool(name, &config).unwrap().unwrap_err();
    let missing = refused("sql_query", json!({"database": "no-such.db"}));
    assert_eq!(missing.kind(), ErrorKind::FileNotFound);
    assert!(refused("sql_query", json!({})).message().contains("missing field `database`"));
    assert!(refused("search_brave", json!({"key": "sk-1"})).message().contains("unknown field `key`"));
    assert!(refused("search_wikipedia", json!({"address": "nowhere"})).message().contains("not an address"));
    let index = json!({"index": "i", "key_id": "k"});
    assert!(refused("search_elasticsearch", index).message().contains("`address` and `cloud_id`"));
    assert!(tools.tool("read_file", &json!({})).is_none());
    for name in DataTools::NAMES {
        assert!(tools.tool(name, &Value::Null).is_some(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_looked_for_when_the_tool_is_used() {
    let api = Server::start(|_| Reply::json(200, &json!({}))).unwrap();
    let config = json!({"address": api.url(), "key_env": "MY_BRAVE_KEY"});
    let refused = call(&tools(&[]), "search_brave", config.clone(), query()).await;
    let error = refused.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Permission);
    assert!(error.message.contains("`MY_BRAVE_KEY` is not set"), "{}", error.message);
    assert_eq!(api.requests(), []);
    let found = call(&tools(&[("MY_BRAVE_KEY", "sk-9".into())]), "search_brave", config, query()).await;
    assert_eq!(found.to_text(), "\n<search_results>\n\n</search_results>");
    assert_eq!(api.requests()[0].header("x-subscription-token"), Some("sk-9"));
}

#[tokio::test(flavor = "multi_thread")]
async fn services_are_reached_through_the_proxies_of_the_environment() {
    let proxy = Server::start(|_| Reply::json(200, &json!({"query": {"search": []}}))).unwrap();
    let tools = tools(&[("http_proxy", proxy.url())]);
    let config = json!({"address": "http://wiki.invalid"});
    let found = call(&tools, "search_wikipedia", config, query()).await;
    assert!(!found.is_error(), "{}", found.to_text());
    let asked = proxy.requests();
    assert!(asked[0].target.starts_with("http://wiki.invalid/w/api.php?"), "{}", asked[0].target);
    // A service on this machine is reached without one.
    let nowhere = self::tools(&[("http_proxy", "http://127.0.0.1:9".to_owned())]);
    let found = call(&nowhere, "search_wikipedia", json!({"address": proxy.url()}), query()).await;
    assert!(!found.is_error(), "{}", found.to_text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_and_a_store_of_vectors_are_searched() {
    let api = Server::start(|request| match request.target.as_str() {
        "/docs/_mapping" => Reply::json(200, &json!({"docs": {"mappings": {"properties": {"text": {}}}}})),
        "/docs/_search" => {
            Reply::json(200, &json!({"hits": {"hits": [{"_id": "7", "_source": {"text": "on otters"}}]}}))
        }
        "/indexes/docs" => {
            let host = request.header("host").unwrap_or_default();
            Reply::json(200, &json!({"host": format!("http://{host}")}))
        }
        "/describe_index_stats" => Reply::json(200, &json!({"dimension": 2, "totalVectorCount": 1})),
        "/query" => Reply::json(200, &json!({"matches": [{"id": "9", "metadata": {"text": "near otters"}}]})),
        "/m/pipeline/feature-extraction" => Reply::json(200, &json!([[0.5, 0.5]])),
        _ => Reply::json(404, &Value::Null),
    })
    .unwrap();
    let keys = ["ELASTICSEARCH_API_KEY", "PINECONE_API_KEY", "HUGGINGFACE_API_KEY"];
    let tools = tools(&keys.map(|name| (name, "k".to_owned())));
    let config = json!({"address": api.url(), "index": "docs", "key_id": "id"});
    let found = call(&tools, "search_elasticsearch", config, query()).await.to_text();
    assert!(found.contains("on otters"), "{found}");
    let config = json!({"address": api.url(), "index": "docs", "model": "m", "model_address": api.url()});
    let found = call(&tools, "search_vectors", config, query()).await.to_text();
    assert!(found.contains("<source>9</source>") && found.contains("near otters"), "{found}");
}

/// The description of each tool as models receive it, byte for byte.
#[cfg(feature = "sql")]
#[test]
fn definitions_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(&folder.path().join("staff.db")).unwrap();
    database.run("CREATE TABLE staff (name TEXT)").unwrap();
    let tools = DataTools::new(folder.path(), |_| None);
    let configs = [
        ("sql_query", json!({"database": "staff.db", "description": "Who works here."})),
        ("query_data", json!({})),
        ("describe_data", json!({"sandbox": "files"})),
        ("save_table", json!({})),
        ("search_brave", json!({})),
        ("search_wikipedia", json!({})),
        ("search_elasticsearch", json!({"address": "http://localhost", "index": "docs", "key_id": "k"})),
        ("search_vectors", json!({"index": "docs"})),
        ("web_search", json!({})),
        ("search_web", json!({})),
    ];
    assert_eq!(configs.each_ref().map(|(name, _)| *name), *DataTools::NAMES);
    let specs = configs.map(|(name, config)| tools.tool(name, &config).unwrap().unwrap().spec().clone());
    insta::assert_snapshot!(serde_json::to_string_pretty(&specs).unwrap());
}
