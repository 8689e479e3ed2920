//! What becomes of documents: names, filters, servers, secrets, operations that are left out.

use serde_json::{Value, json};
use toolwright_core::Secret;
use toolwright_openapi::{ApiDocument, ImportOptions};

use crate::{import, only};

fn document(paths: Value) -> Value {
    json!({"openapi": "3.1.0", "servers": [{"url": "https://{region}.example/v1/", "variables": {"region": {"default": "eu"}}}], "paths": paths})
}

#[test]
fn a_bad_operation_does_not_take_the_others_away() {
    let api = import(&document(json!({
        "/good": {"get": {"operationId": "good"}},
        "/far": {"get": {"requestBody": {"$ref": "https://evil.example/x.yaml#/y"}}},
        "/nowhere": {"post": {"requestBody": {"content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/nosuch"}}}}}}},
        "/loop": {"get": {"parameters": [{"$ref": "#/paths/~1loop/get/parameters/0"}]}},
        "/odd": {"get": {"parameters": [{"name": "x", "in": "nowhere"}]}},
    })));
    let names: Vec<&str> = api.operations.iter().map(|one| &*one.spec().name).collect();
    assert_eq!(names, ["good"]);
    let left: Vec<&str> = api.left_out.iter().map(|one| one.operation.as_str()).collect();
    assert_eq!(left, ["GET /far", "POST /nowhere", "GET /loop", "GET /odd"]);
    assert!(api.left_out[0].reason.contains("none is fetched"), "{:?}", api.left_out);
    assert!(api.left_out[1].reason.contains("#/nosuch"));
}

#[test]
fn names_are_legal_and_a_filter_renames_nothing() {
    let paths = json!({
        "/a": {"get": {"operationId": "list/things", "tags": ["t"]}, "delete": {"operationId": "list.things"}},
        "/b/{id}": {"get": {}, "put": {"x-speakeasy-mcp": {"name": "put_b"}}, "post": {"x-speakeasy-mcp": {"disabled": true}}},
    });
    let text = document(paths).to_string();
    let names = |options: ImportOptions| -> Vec<String> {
        let api = ApiDocument::parse("t", &text).unwrap().import(&options).unwrap();
        api.operations.iter().map(|one| one.spec().name.to_string()).collect()
    };
    let all = names(ImportOptions::default());
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!((all[0].as_str(), all[2].as_str(), all[3].as_str()), ("list_things", "get_b_id", "put_b"));
    assert!(all[1].starts_with("list_things_"));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(names(ImportOptions { methods: words(&["DELETE"]), ..Default::default() }), [all[1].clone()]);
    assert_eq!(names(ImportOptions { tags: words(&["t"]), ..Default::default() }), ["list_things"]);
    assert_eq!(names(ImportOptions { paths: words(&["/b*"]), ..Default::default() }), ["get_b_id", "put_b"]);
    assert_eq!(
        names(ImportOptions { operations: words(&["put_*", "list.things"]), ..Default::default() }),
        [all[1].clone(), "put_b".into()]
    );
}

#[test]
fn annotations_follow_the_method() {
    let api = import(&document(json!({"/a": {"get": {}, "delete": {}, "post": {}, "put": {}}})));
    let of =
        |method: &str| &api.operations.iter().find(|one| one.method() == method).unwrap().spec().annotations;
    assert_eq!((of("GET").read_only, of("GET").destructive), (Some(true), None));
    assert_eq!((of("DELETE").read_only, of("DELETE").destructive), (Some(false), Some(true)));
    assert_eq!(
        (of("POST").read_only, of("POST").destructive, of("POST").idempotent),
        (Some(false), Some(false), None)
    );
    assert_eq!(of("PUT").idempotent, Some(true));
}

#[test]
fn recursion_is_shared_and_nothing_else_comes_along() {
    let mut text = document(
        json!({"/a": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}}}}),
    );
    text["components"] = json!({"schemas": {
        "Node": {"type": "object", "properties": {"value": {"type": "string"}, "next": {"$ref": "#/components/schemas/Node"}}},
        "Unused": {"type": "object"},
    }});
    let parameters = only(&text).spec().parameters.clone();
    assert_eq!(parameters["$defs"].as_object().unwrap().keys().collect::<Vec<_>>(), ["Node"]);
    assert_eq!(parameters["properties"]["next"], json!({"$ref": "#/$defs/Node"}));
    toolwright_core::schema::Schema::compile(&parameters).unwrap();
}

#[test]
fn secrets_are_sent_as_the_document_says_and_are_no_arguments() {
    let schemes = json!({
        "header": {"type": "apiKey", "in": "header", "name": "X-Key"}, "query": {"type": "apiKey", "in": "query", "name": "key"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"}, "bearer": {"type": "http", "scheme": "Bearer"},
        "basic": {"type": "http", "scheme": "basic"}, "oauth": {"type": "oauth2"}, "odd": {"type": "http", "scheme": "digest"},
    });
    let sent = |security: Value, known: &[&str]| {
        let parameters = json!([{"name": "x-key", "in": "header"}, {"name": "key", "in": "query"}, {"name": "q", "in": "query"}]);
        let mut text = document(json!({"/a": {"get": {"parameters": parameters, "security": security}}}));
        text["components"] = json!({"securitySchemes": schemes.clone()});
        let operation = only(&text);
        assert_eq!(operation.spec().parameter_names().collect::<Vec<_>>(), ["q"]);
        let mut request = operation.request(&json!({"q": "1"})).unwrap();
        let whole =
            operation.authorise(&mut request, &|name| known.contains(&name).then(|| Secret::new("u:p w")));
        let mut headers = request.headers;
        headers.retain(|(name, _)| name != "accept");
        (request.url.strip_prefix("https://eu.example/v1/a").unwrap().to_owned(), headers, whole)
    };
    let header = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let q = || "?q=1".to_owned();
    assert_eq!(sent(json!([{"header": []}]), &["header"]), (q(), header("X-Key", "u:p w"), true));
    assert_eq!(sent(json!([{"query": []}]), &["query"]), ("?q=1&key=u%3Ap%20w".to_owned(), vec![], true));
    assert_eq!(sent(json!([{"cookie": []}]), &["cookie"]), (q(), header("cookie", "sid=u%3Ap%20w"), true));
    assert_eq!(
        sent(json!([{"bearer": []}]), &["bearer"]),
        (q(), header("authorization", "Bearer u:p w"), true)
    );
    assert_eq!(
        sent(json!([{"basic": []}]), &["basic"]),
        (q(), header("authorization", "Basic dTpwIHc="), true)
    );
    assert_eq!(
        sent(json!([{"oauth": []}]), &["oauth"]),
        (q(), header("authorization", "Bearer u:p w"), true)
    );
    // An alternative counts only when all of it is there.
    assert_eq!(
        sent(json!([{"odd": []}, {"header": [], "bearer": []}, {"bearer": []}]), &["odd", "bearer"]),
        (q(), header("authorization", "Bearer u:p w"), true)
    );
    assert_eq!(sent(json!([{"header": [], "bearer": []}]), &["bearer"]), (q(), vec![], false));
    assert_eq!(sent(json!([{}, {"header": []}]), &["header"]), (q(), header("X-Key", "u:p w"), true));
    assert_eq!(sent(json!([{}, {"header": []}]), &[]).1, vec![]);
}

#[test]
fn what_is_no_usable_document_is_refused_with_the_reason() {
    for (text, part) in [
        ("{", "is not JSON"),
        ("[1, 2", "is not YAML"),
        ("a: 1", "is not an OpenAPI document"),
        ("openapi: 4.0.0", "version `4.0.0`"),
        ("swagger: 1.2", "version `1.2`"),
    ] {
        let error = ApiDocument::parse("x", text).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let relative = "openapi: 3.0.0\nservers: [{url: /v1}]\npaths: {/a: {get: {}}}";
    let document = ApiDocument::parse("x", relative).unwrap();
    let error = document.import(&ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("names no server"), "{error}");
    let base_url = Some("http://127.0.0.1:8080/v2/".to_owned());
    let api = document.import(&ImportOptions { base_url, ..Default::default() }).unwrap();
    assert_eq!(api.operations[0].request(&json!({})).unwrap().url, "http://127.0.0.1:8080/v2/a");
    let deep = format!("{{\"openapi\": \"3.0.0\", \"x\": {}1{}}}", "[".repeat(125), "]".repeat(125));
    assert!(ApiDocument::parse("x", &deep).is_err());
    let user =
        "openapi: 3.0.0\nservers: [{url: 'https://good.example@evil.example/'}]\npaths: {/a: {get: {}}}";
    assert!(ApiDocument::parse("x", user).unwrap().import(&ImportOptions::default()).is_err());
}

#[test]
fn yaml_words_and_numbers_are_those_of_yaml_1_2() {
    let text = "
openapi: 3.0.3
servers: [{url: https://a.example}]
paths:
  /a:
    get:
      parameters:
        - {name: sort, in: query, schema: {type: string, enum: [on, off, no]}}
      responses: {200: {content: {text/csv: {}}}}
";
    let document = ApiDocument::parse("x", text).unwrap();
    let api = document.import(&ImportOptions::default()).unwrap();
    let operation = &api.operations[0];
    assert_eq!(operation.spec().parameters["properties"]["sort"]["enum"], json!(["on", "off", "no"]));
    assert_eq!(
        operation.request(&json!({})).unwrap().headers,
        [("accept".to_owned(), "text/csv".to_owned())]
    );
}
