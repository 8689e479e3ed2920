//! Search engines of the web, as servers that check requests against the vendors' documented shapes.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright_core::{
    AssistantMessage, Content, ErrorKind, Model, ModelError, ModelReply, ModelRequest, ToolCall, ToolResult,
    Toolset,
};
use toolwright_data::DataTools;
use toolwright_net::{HostRules, Reach};
use toolwright_runtime::Run;
use toolwright_testkit::server::{Reply, Server};

fn tools(variables: &[(&str, &str)]) -> DataTools {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    DataTools::new(std::env::temp_dir(), move |name| {
        variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    })
}

async fn call(tools: &DataTools, name: &str, config: Value, arguments: Value) -> ToolResult {
    let tool = tools.tool(name, &config).unwrap().unwrap();
    let run = Run::builder(Toolset::new().with(tool).unwrap()).build().unwrap();
    run.call(ToolCall::new("1", name, arguments)).await.unwrap()
}

fn cats() -> Value {
    json!({"query": "cats & dogs"})
}

/// An engine that answers every request with this.
fn engine(answer: Value) -> Server {
    Server::start(move |_| Reply::json(200, &answer)).unwrap()
}

/// One provider under its own configuration; gives the text and what the server was asked.
async fn asked(
    provider: &str,
    key: (&str, &str),
    answer: Value,
) -> (String, toolwright_testkit::server::Request) {
    let server = engine(answer);
    let tools = tools(&[key, ("GOOGLE_CSE_ID", "engine-1")]);
    let config = json!({"provider": {provider: {"address": server.url()}}});
    let result = call(&tools, "web_search", config, cats()).await;
    assert!(result.error.is_none(), "{result:?}");
    assert_eq!(result.metadata["answered"], provider);
    let request = server.requests().remove(0);
    assert_eq!(server.requests().len(), 1);
    (result.to_text(), request)
}

#[tokio::test(flavor = "multi_thread")]
async fn tavily_is_asked_as_its_documentation_says() {
    let answer =
        json!({"answer": "the answer", "results": [{"title": "T1", "url": "https://a", "content": "c1"}]});
    let (text, request) = asked("tavily", ("TAVILY_API_KEY", "tk"), answer).await;
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/search"));
    assert_eq!(request.header("authorization"), Some("Bearer tk"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(
        String::from_utf8(request.body).unwrap(),
        r#"{"query":"cats & dogs","max_results":3,"include_answer":true}"#
    );
    assert_eq!(text, "the answer\n\n1. T1\n   https://a\n   c1\n\nanswered: tavily");
}

#[tokio::test(flavor = "multi_thread")]
async fn exa_is_asked_as_its_documentation_says() {
    let answer =
        json!({"answer": "exa answer", "citations": [{"title": "B", "url": "https://b", "text": "bt"}]});
    let (text, request) = asked("exa", ("EXA_API_KEY", "ek"), answer).await;
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/answer"));
    assert_eq!(request.header("x-api-key"), Some("ek"));
    assert_eq!(String::from_utf8(request.body).unwrap(), r#"{"query":"cats & dogs","text":true}"#);
    assert_eq!(text, "exa answer\n\n1. B\n   https://b\n   bt\n\nanswered: exa");
}

#[tokio::test(flavor = "multi_thread")]
async fn google_brave_searxng_and_wikipedia_are_asked_as_their_documentation_says() {
    let items = json!({"items": [{"title": "G", "link": "https://g", "snippet": "gs"}]});
    let (text, request) = asked("google", ("GOOGLE_CSE_API_KEY", "gk"), items).await;
    assert_eq!(request.target, "/customsearch/v1?q=cats+%26+dogs&key=gk&cx=engine-1&start=1");
    assert_eq!(
        (request.method.as_str(), text.as_str()),
        ("GET", "1. G\n   https://g\n   gs\n\nanswered: google")
    );

    let found = json!({"web": {"results": [{"title": "R", "url": "https://r", "description": "<strong>rs</strong>"}]}});
    let (text, request) = asked("brave", ("BRAVE_API_KEY", "bk"), found).await;
    assert_eq!(request.target, "/res/v1/web/search?q=cats+%26+dogs&count=3");
    assert_eq!(request.header("x-subscription-token"), Some("bk"));
    assert!(text.contains("1. R\n   https://r\n   rs\n"), "{text}");

    let found = json!({"results": [{"title": "S", "url": "https://s", "content": "ss"}],
        "unresponsive_engines": [["bing", "timeout"]]});
    let (text, request) = asked("searxng", ("X", "x"), found).await;
    assert_eq!(request.target, "/search?q=cats+%26+dogs&format=json&pageno=1");
    assert!(text.ends_with("answered: searxng; failed: bing (timeout)"), "{text}");

    let found = json!({"query": {"search": [{"title": "Big cat", "snippet": "a <span class=\"m\">cat</span> &amp; more"}]}});
    let (text, request) = asked("wikipedia", ("X", "x"), found).await;
    let wanted =
        "/w/api.php?action=query&format=json&formatversion=2&list=search&srsearch=cats+%26+dogs&srlimit=3";
    assert_eq!(request.target, wanted);
    assert!(text.contains("1. Big cat\n   http://127.0.0.1") && text.contains("/wiki/Big_cat\n"), "{text}");
    assert!(text.contains("a cat & more"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_engine_answers_when_one_fails_and_both_are_named() {
    let closed = Server::start(|_| Reply::json(403, &json!({"error": "no JSON"}))).unwrap();
    let empty = engine(json!({"results": []}));
    let good = engine(json!({"items": [{"title": "G", "link": "https://g", "snippet": "gs"}]}));
    let tools = tools(&[("TAVILY_API_KEY", "tk"), ("GOOGLE_CSE_ID", "i"), ("GOOGLE_CSE_API_KEY", "gk")]);
    let config = json!({"provider": {
        "searxng": {"address": closed.url()},
        "brave": {"address": closed.url()},
        "tavily": {"address": empty.url()},
        "exa": false,
        "google": {"address": good.url()},
    }});
    let result = call(&tools, "web_search", config.clone(), cats()).await;
    assert_eq!(result.metadata["answered"], "google");
    let failed: Vec<&str> = result.metadata["failed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["provider"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["searxng", "brave", "tavily"]);
    let text = result.to_text();
    assert!(text.contains("brave (the key is missing: `BRAVE_API_KEY` is not set)"), "{text}");
    // No engine answers: each is named, and what to set up.
    let config = json!({"provider": {"searxng": {"address": closed.url()}, "brave": null}});
    let error = call(&tools, "web_search", config, cats()).await.error.unwrap();
    assert!(error.message.contains("searxng") && error.message.contains("brave"), "{error:?}");
    assert!(error.hint.unwrap().contains("SEARXNG_URL"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_does_not_repeat_a_key() {
    let echo = Server::start(|request| Reply::json(400, &json!({"error": request.target.clone()}))).unwrap();
    let tools = tools(&[("GOOGLE_CSE_ID", "i"), ("GOOGLE_CSE_API_KEY", "sk-google-secret")]);
    let config = json!({"provider": {"google": {"address": echo.url()}}});
    let error = call(&tools, "web_search", config, cats()).await.error.unwrap();
    assert!(error.message.contains("400") && !error.message.contains("sk-google-secret"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn search_web_gives_the_list_of_marsys_from_the_engine_that_was_asked_for() {
    let searxng = engine(json!({"results": [
        {"title": "One", "url": "https://1", "content": "first"},
        {"title": "Two", "url": "https://2", "content": "second"},
    ]}));
    let with = tools(&[("SEARXNG_URL", &searxng.url())]);
    for name in ["google", "bing", "duckduckgo"] {
        let arguments = json!({"query": "x", "max_results": 1, "search_engine": name});
        let result = call(&with, "search_web", Value::Null, arguments).await;
        let list: Value = serde_json::from_str(&result.to_text()).unwrap();
        assert_eq!(list, json!([{"title": "One", "url": "https://1", "snippet": "first"}]));
        let target = searxng.requests().last().unwrap().target.clone();
        assert_eq!(target, format!("/search?q=x&format=json&pageno=1&engines={name}"));
    }
    // Nothing is set up: the error says what would help.
    let without = tools(&[]);
    for (name, variable) in [("google", "GOOGLE_CSE_ID"), ("bing", "SEARXNG_URL")] {
        let arguments = json!({"query": "x", "search_engine": name});
        let error = call(&without, "search_web", Value::Null, arguments).await.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Permission);
        assert!(error.hint.unwrap().contains(variable), "{name}");
    }
    let spec = without.tool("search_web", &Value::Null).unwrap().unwrap().spec().parameters.clone();
    assert_eq!(spec["required"], json!(["query"]));
    assert_eq!(spec["properties"]["max_results"]["default"], 5);
}

#[test]
fn what_a_file_says_wrong_about_providers_is_said_when_it_is_loaded() {
    let tools = tools(&[]);
    for config in [
        json!({"provider": "bogus"}),
        json!({"provider": ["tavily", "bogus"]}),
        json!({"provider": {"tavily": 5}}),
        json!({"provider": {"tavily": {"keyenv": "X"}}}),
        json!({"provider": "openai"}),
        json!({"provider": 5}),
        json!({"providers": "elasticsearch"}),
        json!({"numresults": 3}),
    ] {
        let error = tools.tool("web_search", &config).unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parsing, "{config}");
    }
    assert!(tools.tool("web_search", &json!({"provider": {"tavily": true, "exa": false}})).unwrap().is_ok());
}

/// Calls a page relevant that speaks of cats.
struct Judge;

impl Model for Judge {
    fn name(&self) -> &str {
        "test/judge"
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let page = request.messages[0].text().split("Page content:").nth(1).unwrap().contains("cats");
        let word = if page { "Yes!" } else { "No." };
        let message = AssistantMessage { content: vec![Content::text(word)], ..AssistantMessage::default() };
        Ok(ModelReply::from(message))
    }
}

/// Inspect's way: pages are read, and a model says which are relevant.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_judges_pages_until_there_are_enough() {
    let site = Server::start(|request| match request.target.as_str() {
        "/good" => Reply::of("text/html", "<p>About <b>cats</b></p><script>no()</script>"),
        "/bad" => Reply::of("text/html", "<p>About cars</p>"),
        _ => Reply::json(404, &Value::Null),
    })
    .unwrap();
    let (own, pages) = (site.url(), Arc::new(Mutex::new(0)));
    let api = Server::start(move |request| {
        *pages.lock().unwrap() += 1;
        let first = request.target.ends_with("start=1");
        let paths: &[&str] = if first { &["/bad", "/gone"] } else { &["/good"] };
        let item = |path: &&str| json!({"title": path, "link": format!("{own}{path}"), "snippet": "s"});
        Reply::json(200, &json!({"items": paths.iter().map(item).collect::<Vec<_>>()}))
    })
    .unwrap();
    let tools = tools(&[("GOOGLE_CSE_ID", "i"), ("GOOGLE_CSE_API_KEY", "gk")]);
    let config = json!({"provider": {"google": {"address": api.url()}}, "num_results": 1, "model": true});
    let tool = tools.tool("web_search", &config).unwrap().unwrap();
    let here =
        Reach::Hosts(HostRules::parse(&[site.url().trim_start_matches("http://").to_owned()]).unwrap());
    let run =
        Run::builder(Toolset::new().with(tool).unwrap()).state(here).model(Arc::new(Judge)).build().unwrap();
    let result = run.call(ToolCall::new("1", "web_search", cats())).await.unwrap();
    assert!(result.error.is_none(), "{result:?}");
    let text = result.to_text();
    assert!(text.contains("/good") && text.contains("About cats") && !text.contains("/bad"), "{text}");
    let starts: Vec<bool> =
        api.requests().iter().map(|request| request.target.ends_with("start=11")).collect();
    assert_eq!(starts, [false, true]);
}
