//! Search engines, as servers on the loopback that check what they are asked.

use serde_json::{Value, json};
use toolwright_core::{ErrorKind, Secret, ToolCall, Toolset};
use toolwright_data::{Brave, Document, Elasticsearch, Pages, Search, WebPages, Wikipedia};
use toolwright_net::Reach;
use toolwright_runtime::Run;
use toolwright_testkit::server::{Reply, Request, Server};

fn key() -> Secret {
    Secret::new("sk-very-secret")
}

#[tokio::test(flavor = "multi_thread")]
async fn brave_finds_pages_and_reads_them() {
    let site = Server::start(|request| match request.target.as_str() {
        "/moved" => {
            Reply { status: 301, headers: vec![("location".into(), "/page".into())], body: Vec::new() }
        }
        "/page" => Reply::of("text/html", "<p>What it <b>says</b></p><script>no()</script>"),
        _ => Reply::json(404, &Value::Null),
    })
    .unwrap();
    let (moved, gone) = (format!("{}/moved", site.url()), format!("{}/gone", site.url()));
    let answer = json!({
        "mixed": {"main": [{"type": "web"}, {"type": "web"}, {"type": "faq"}, {"type": "web"}]},
        "web": {"results": [{"url": moved, "title": "T", "description": "<strong>d</strong>"}, {"url": gone}]},
        "faq": {"results": [{"question": "Q"}]},
    });
    let api = Server::start(move |_| Reply::json(200, &answer)).unwrap();
    let brave = Brave::at(api.url(), &key()).unwrap().pages(WebPages::within(Reach::Anywhere).unwrap());
    let run = Run::builder(Toolset::new().with(brave.tool()).unwrap()).build().unwrap();
    let arguments = json!({"query": "a b&c", "n_search_results_to_use": 5});
    let found = run.call(ToolCall::new("1", "search_brave", arguments)).await.unwrap().to_text();
    let first = format!(
        "<source>{moved}</source>\n<page_content>\nWeb Page Title: TWeb Page URL: {moved}Web Page Description: d\n\
         Web Page Content: What it\nsays\n</page_content>"
    );
    assert!(found.contains(&first), "{found}");
    assert!(
        found.contains(&format!("<source>{gone}</source>\n<page_content>\n\n</page_content>")),
        "{found}"
    );
    assert!(found.contains("FAQ Title: UnknownQuestion: QAnswer: Unknown"), "{found}");
    let asked = api.requests();
    assert_eq!(asked[0].target, "/res/v1/web/search?q=a+b%26c&count=20");
    assert_eq!(asked[0].header("x-subscription-token"), Some("sk-very-secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_this_machine_are_not_read() {
    let site = Server::start(|_| Reply::of("text/plain", "secret")).unwrap();
    let pages = WebPages::public().unwrap();
    let port = site.url().rsplit(':').next().unwrap().to_owned();
    for url in [site.url(), format!("http://[::ffff:127.0.0.1]:{port}"), "file:///etc/passwd".to_owned()] {
        assert_eq!(pages.text(&url).await.unwrap_err().kind(), ErrorKind::Permission, "{url}");
    }
    // A name is judged by what it stands for.
    assert!(pages.text(&format!("http://localhost:{port}")).await.is_err());
    assert_eq!(site.requests(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_said_and_not_shown() {
    let api = Server::start(|request| {
        let said = format!("no such key: {}", request.header("x-subscription-token").unwrap_or_default());
        Reply::json(401, &json!({"error": said}))
    })
    .unwrap();
    let error = Brave::at(api.url(), &key()).unwrap().search("x", 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Permission);
    assert!(error.message().contains("401") && !error.message().contains("very"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wikipedia_skips_what_cannot_be_read() {
    let wiki = Server::start(|request| {
        let page = |title: &str| {
            json!({"query": {"pages": [
                {"title": title, "extract": " One two three four", "fullurl": format!("https://w/{title}")}
            ]}})
        };
        let titles = ["A", "Missing", "Many", "C"].map(|title| json!({"title": title}));
        let answer = match request.target.rsplit('=').next() {
            Some("Missing") => json!({"query": {"pages": [{"title": "Missing", "missing": true}]}}),
            Some("Many") => json!({"query": {"pages": [
                {"extract": "Many may mean", "fullurl": "https://w/Many", "pageprops": {"disambiguation": ""}}
            ]}}),
            Some("A") => page("A"),
            Some("C") => page("C"),
            _ => json!({"query": {"search": titles}}),
        };
        Reply::json(200, &answer)
    })
    .unwrap();
    let found = Wikipedia::at(wiki.url()).unwrap().most_tokens(3).search("letters", 2).await.unwrap();
    let found: Vec<_> = found.iter().map(|each| (each.source.as_str(), each.content.as_str())).collect();
    assert_eq!(found, [("https://w/A", "One two three"), ("https://w/C", "One two three")]);
}

fn elastic(request: &Request) -> Reply {
    match (request.method.as_str(), request.target.as_str()) {
        ("GET", "/idx/_mapping") => {
            Reply::json(200, &json!({"idx": {"mappings": {"properties": {"text": {"type": "text"}}}}}))
        }
        ("GET", "/notext/_mapping") => Reply::json(200, &json!({"notext": {"mappings": {}}})),
        ("POST", "/idx/_search") => {
            let hits: Vec<_> = (0..3)
                .map(|n| json!({"_id": n.to_string(), "_source": {"text": format!("doc {n}")}}))
                .collect();
            Reply::json(200, &json!({"hits": {"hits": hits}}))
        }
        ("POST", "/_bulk") => Reply::json(200, &json!({"errors": false})),
        ("POST", "/idx/_refresh") => Reply::json(200, &json!({})),
        _ => Reply::json(404, &json!({"error": "no such index"})),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn elasticsearch_is_checked_filled_and_searched() {
    let server = Server::start(elastic).unwrap();
    let connect = |index: &'static str| {
        let url = server.url();
        async move { Elasticsearch::connect(&url, "kid", &key(), index).await }
    };
    let missing = connect("nope").await.unwrap_err();
    assert_eq!(missing.message(), "Elasticsearch Index nope does not exist.");
    let other = connect("notext").await.unwrap_err();
    assert_eq!(other.message(), "Index notext does not have a field called 'text'.");
    let index = connect("idx").await.unwrap();
    index.store(&[Document { text: "doc 0".into(), metadata: json!({"n": 0}) }]).await.unwrap();
    let found = index.search("toy", 2).await.unwrap();
    assert_eq!(found.iter().map(|each| each.content.as_str()).collect::<Vec<_>>(), ["doc 0", "doc 1"]);
    let asked = server.requests();
    let search = asked.iter().find(|request| request.target == "/idx/_search").unwrap();
    assert_eq!(search.json()["query"], json!({"match": {"text": "toy"}}));
    assert_eq!(search.header("authorization"), Some("ApiKey a2lkOnNrLXZlcnktc2VjcmV0"));
    let bulk = asked.iter().find(|request| request.target == "/_bulk").unwrap();
    let lines =
        "{\"index\":{\"_index\":\"idx\",\"_id\":\"0\"}}\n{\"text\":\"doc 0\",\"metadata\":{\"n\":0}}\n";
    assert_eq!(String::from_utf8_lossy(&bulk.body), lines);
}
